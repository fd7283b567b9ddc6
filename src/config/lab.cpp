#include "heed/config/lab.h"

#include "toml_document.h"
#include "heed/base/suggest.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace heed {

namespace {

const std::vector<std::string> kinds{"mechanism", "python", "answers", "personal"};
constexpr const char* extensions[] = {".h", ".py", ".toml", ".h"};

/// Keys of one table. finish() throws Error for keys that were not read.
class Keys {
 public:
  Keys(std::string path, const toml::table& table, std::string name)
      : path_(std::move(path)), table_(table), name_(std::move(name)) {}

  /// Reads the key's value into the member. Returns false if the key is missing.
  template <class T>
  bool take(const std::string& key, T& member) {
    const toml::node* const node = node_of(key);
    if (node == nullptr) return false;
    require(assign(*node, member), "{}: {}: expected {}, found {}", at(*node), in_quotes(label(key)),
            expected(member, anything()), found(*node));
    return true;
  }
  template <class T>
  void need(const std::string& key, T& member) {
    require(take(key, member), "{}: {} is missing", path_, in_quotes(label(key)));
  }

  const toml::table* table(const std::string& key) {
    const toml::node* const node = node_of(key);
    if (node == nullptr) return nullptr;
    require(node->is_table(), "{}: {}: expected a table, found {}", at(*node), in_quotes(label(key)), found(*node));
    return node->as_table();
  }

  const toml::node* node_of(const std::string& key) {
    known_.push_back(key);
    return table_.get(key);
  }

  void finish() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      require(std::find(known_.begin(), known_.end(), name) != known_.end(), "{}:{}: unknown key {}{}", path_,
              key.source().begin.line, in_quotes(label(name)), suggestion(name, known_));
    }
  }

  std::string at(const toml::node& node) const { return fmt::format("{}:{}", path_, node.source().begin.line); }
  std::string label(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }

 private:
  std::string path_;
  const toml::table& table_;
  std::string name_;
  std::vector<std::string> known_;
};

class LabReader {
 public:
  explicit LabReader(const std::string& directory)
      : path_(directory + "/lab.toml"), document_(parse_toml_file(path_)), keys_(path_, document_, "") {
    lab_.directory = directory;
    std::filesystem::path place(directory);
    if (!place.has_filename()) place = place.parent_path();
    lab_.name = place.filename();
    if (!is_plain_name(lab_.name)) lab_.name = std::filesystem::weakly_canonical(place).filename();
    require(is_plain_name(lab_.name), "{}: the lab's directory has the name {}; expected letters, digits, - and _",
            path_, in_quotes(lab_.name));
  }

  Lab read() {
    keys_.need("title", lab_.title);
    std::string kind;
    keys_.need("kind", kind);
    const auto at = std::find(kinds.begin(), kinds.end(), kind);
    require(at != kinds.end(), "{}: kind is {}{}", path_, in_quotes(kind), suggestion(kind, kinds));
    lab_.kind = static_cast<LabKind>(at - kinds.begin());
    keys_.need("minutes", lab_.minutes);
    require(lab_.minutes > 0 && lab_.minutes < 1e4, "{}: minutes is {}; expected a number above 0 and below 10000",
            path_, lab_.minutes);
    keys_.take("hints", lab_.hints);
    if (lab_.kind == LabKind::mechanism) read_mechanism();
    if (lab_.kind == LabKind::answers) read_values();
    if (lab_.kind == LabKind::personal) read_personal();
    read_points();
    keys_.finish();
    return std::move(lab_);
  }

 private:
  void read_texts(Keys& keys, const std::string& key, std::map<std::string, std::string>& texts) {
    const toml::table* const table = keys.table(key);
    if (table == nullptr) return;
    Keys options(path_, *table, keys.label(key));
    for (const auto& [name, node] : *table) options.take(std::string(name.str()), texts[std::string(name.str())]);
  }

  void read_slack(Keys& keys) {
    keys.take("slack", lab_.slack);
    require(lab_.slack >= 1 && lab_.slack <= 1e6, "{}: {} is {}; expected a number from 1 to 1000000", path_,
            keys.label("slack"), lab_.slack);
  }

  void read_mechanism() {
    const toml::table* const table = keys_.table("mechanism");
    require(table != nullptr, "{}: a lab of kind 'mechanism' needs a table [mechanism]", path_);
    Keys keys(path_, *table, "mechanism");
    keys.need("name", lab_.mechanism);
    keys.take("reference", lab_.reference);
    read_texts(keys, "options", lab_.options);
    read_texts(keys, "reference_options", lab_.reference_options);
    read_slack(keys);
    keys.take("forbidden", lab_.forbidden);
    keys.finish();
  }

  void read_personal() {
    const toml::table* const table = keys_.table("personal");
    require(table != nullptr, "{}: a lab of kind 'personal' needs a table [personal]", path_);
    Keys keys(path_, *table, "personal");
    std::string task;
    keys.need("task", task);
    require(task == "write" || task == "repair", "{}: personal.task is {}; expected write or repair", path_,
            in_quotes(task));
    lab_.repair = task == "repair";
    read_slack(keys);
    keys.finish();
  }

  void read_values() {
    const toml::table* const table = keys_.table("values");
    if (table == nullptr) return;
    for (const auto& [key, node] : *table) {
      const std::string name(key.str());
      LabValue& value = lab_.values[name];
      if (const toml::table* const command = node.as_table()) {
        Keys keys(path_, *command, "values." + name);
        keys.need("heed", value.heed);
        keys.need("field", value.field);
        keys.finish();
      } else {
        require(assign(node, value.number.emplace()),
                "{}: 'values.{}': expected a number or {{ heed, field }}, found {}", keys_.at(node), name, found(node));
      }
    }
  }

  void read_points() {
    const toml::node* const node = keys_.node_of("points");
    const toml::array* const list = node ? node->as_array() : nullptr;
    require(list != nullptr && !list->empty() && list->size() <= 100 && list->is_array_of_tables(),
            "{}: expected tables [[points]], at most 100", path_);
    std::set<std::string> names;
    for (const toml::node& item : *list) {
      Keys keys(path_, *item.as_table(), "points");
      LabPoint& point = lab_.points.emplace_back();
      keys.need("name", point.name);
      require(names.insert(point.name).second, "{}: two points have the name {}", keys_.at(item),
              in_quotes(point.name));
      keys.need("marks", point.marks);
      require(point.marks > 0 && point.marks <= 1000, "{}: points.marks is {}; expected a number above 0, at most 1000",
              keys_.at(item), point.marks);
      keys.take("hint", point.hint);
      if (lab_.kind == LabKind::answers) read_answer(keys, point, keys_.at(item));
      keys.finish();
    }
  }

  void read_answer(Keys& keys, LabPoint& point, const std::string& where) {
    keys.need("question", point.question);
    const bool formula = keys.take("formula", point.formula), hash = keys.take("hash", point.hash);
    require(formula != hash, "{}: a question needs a formula or a hash", where);
    require(!keys.take("tolerance", point.tolerance) || formula,
            "{}: points.tolerance is for a formula; a number with a hash has points.digits", where);
    require(point.tolerance >= 0 && point.tolerance < 1,
            "{}: points.tolerance is {}; expected a number from 0 to 1, excluding 1", where, point.tolerance);
    require(!keys.take("digits", point.digits) || hash,
            "{}: points.digits is for a hash; a formula has points.tolerance", where);
    require(point.digits >= 1 && point.digits <= 15, "{}: points.digits is {}; expected 1 to 15", where, point.digits);
  }

  std::string path_;
  toml::table document_;
  Keys keys_;
  Lab lab_;
};

}  // namespace

double Lab::marks() const {
  double sum = 0;
  for (const LabPoint& point : points) sum += point.marks;
  return sum;
}

std::string Lab::file() const { return name + extensions[static_cast<std::size_t>(kind)]; }

Lab load_lab(const std::string& directory) { return LabReader(directory).read(); }

std::vector<NotebookQuestion> load_questions(const std::string& path) {
  const toml::table document = parse_toml_file(path);
  Keys keys(path, document, "");
  const toml::node* const node = keys.node_of("questions");
  const toml::array* const list = node ? node->as_array() : nullptr;
  require(list != nullptr && list->is_array_of_tables(), "{}: expected tables [[questions]]", path);
  std::vector<NotebookQuestion> questions;
  for (const toml::node& item : *list) {
    Keys own(path, *item.as_table(), "questions");
    NotebookQuestion& question = questions.emplace_back();
    own.need("id", question.id);
    own.need("marks", question.marks);
    own.need("rubric", question.rubric);
    own.need("answer", question.answer);
    own.finish();
  }
  keys.finish();
  return questions;
}

std::map<std::string, Answer> read_answers(const std::string& text, const std::string& path) {
  constexpr std::size_t most = 1000, longest = 1000;
  std::map<std::string, Answer> answers;
  toml::table document;
  try {
    document = parse_toml(text);
  } catch (const NoToml& error) {
    fail("{}{}: {}; expected lines such as `loss = 2.303` (a decimal point) and `word = \"linear\"`", path, error.line,
         error.reason);
  }
  for (const auto& [key, node] : document) {
    const std::string name(key.str());
    require(answers.size() < most, "{}: has more than {} answers", path, most);
    double number = 0;
    std::string text;
    if (assign(node, number)) {
      answers[name] = number;
    } else {
      require(assign(node, text) && text.size() <= longest,
              "{}:{}: {}: expected a number or a string of at most {} bytes, found {}", path, node.source().begin.line,
              in_quotes(name), longest, node.is_string() ? "a longer string" : found(node));
      answers[name] = text;
    }
  }
  return answers;
}

bool is_plain_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '-' || c == '_' || c == '.'); };
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), plain);
}

}  // namespace heed
