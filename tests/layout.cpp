// The source is laid out as docs/architecture.md says: a folder for each layer, in include/heed, src and tests alike,
// includes that run downward only, and headers of a layer's own beside its files. The same checks are shown to find
// faults that are planted in a small tree.
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace heed;
namespace fs = std::filesystem;

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const fs::path& path) {
  std::istringstream text(read_file(path.string()));
  Lines lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// The layers from the ground up: the first column of the table under "## Layers".
Lines listed_layers(const fs::path& root) {
  static const std::regex row("^\\| `(\\w+)` \\|.*");
  Lines layers;
  bool inside = false;
  for (const std::string& line : lines_of(root / "docs/architecture.md")) {
    if (line.starts_with("## ")) inside = line == "## Layers";
    if (std::smatch match; inside && std::regex_match(line, match, row)) layers.push_back(match[1]);
  }
  return layers;
}

class Layout {
 public:
  explicit Layout(const fs::path& root) : root_(root), layers_(listed_layers(root)) {
    check_folders("include/heed", {}, {"heed.h"});
    check_folders("src", {}, {});
    check_folders("tests", {"support", "datasets", "experiments", "fuzz"}, {});
    for (const std::string& layer : layers_)
      if (!fs::exists(root / "include/heed" / layer) && !fs::exists(root / "src" / layer))
        fault("docs/architecture.md", "the layer '" + layer + "' has no folder");
    for (const char* top : {"include/heed", "src", "tests"}) read_includes(top);
    find_public();
    check_users();
    std::sort(faults_.begin(), faults_.end());
  }

  /// What is wrong, a line each.
  Lines faults() const { return faults_; }

 private:
  void fault(const std::string& where, const std::string& what) { faults_.push_back(where + ": " + what); }

  bool is_layer(const std::string& name) const {
    return std::find(layers_.begin(), layers_.end(), name) != layers_.end();
  }

  /// Position in the list; after all layers for what is in none.
  std::ptrdiff_t height(const std::string& layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) - layers_.begin();
  }

  /// "tape" of include/heed/tape/tape.h, src/tape/tape.cpp and tests/tape/tape.cpp; "" of what lies in no folder.
  static std::string layer_of(const std::string& path) {
    static const std::regex in_folder("^(?:include/heed|src|tests)/(\\w+)/.*");
    std::smatch match;
    return std::regex_match(path, match, in_folder) ? match[1].str() : "";
  }

  /// Files may lie loose in tests, elsewhere only those named.
  void check_folders(const std::string& top, const std::set<std::string>& more, const std::set<std::string>& loose) {
    if (!fs::exists(root_ / top)) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(root_ / top)) {
      const std::string name = entry.path().filename();
      if (entry.is_directory() && !is_layer(name) && !more.contains(name))
        fault(top + "/" + name, "the list of layers in docs/architecture.md has no '" + name + "'");
      if (!entry.is_directory() && top != "tests" && !loose.contains(name))
        fault(top + "/" + name, "lies in no layer's folder");
    }
  }

  void read_includes(const std::string& top) {
    static const std::regex include("^\\s*#\\s*include\\s*(?:\"([^\"]+)\"|<(heed/[^>]+)>).*");
    if (!fs::exists(root_ / top)) return;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_ / top)) {
      const std::string path = entry.path().lexically_relative(root_), extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      if (extension == ".h" && top != "tests") users_[path];
      const Lines lines = lines_of(entry.path());
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (std::smatch match; std::regex_match(lines[i], match, include))
          check_include(path, path + ":" + std::to_string(i + 1), match[1].matched ? match[1] : match[2]);
    }
  }

  void check_include(const std::string& path, const std::string& where, const std::string& header) {
    if (header.find("../") != std::string::npos) return fault(where, "includes '" + header + "', out of its folder");
    const bool of_heed = header.starts_with("heed/");
    if (of_heed) users_["include/" + header].insert(path);
    if (path.starts_with("tests/")) {
      if (!header.starts_with("src/")) return;
      users_[header].insert(path);
      if (layer_of(path) != layer_of(header))
        fault(where, "includes '" + header + "', which is for the tests of " + layer_of(header));
      return;
    }
    if (!of_heed) {
      const fs::path beside = fs::path(path).parent_path() / header;
      users_[beside].insert(path);
      if (!fs::exists(root_ / beside)) fault(where, "includes '" + header + "', which is not beside it");
      return;
    }
    const std::string from = layer_of(path), to = layer_of("include/" + header);
    if (height(from) < height(to))
      fault(where, from + " includes '" + header + "' of " + (to.empty() ? "no layer" : to + ", a later layer"));
  }

  /// A header is public if a file of another layer uses it, heed.h among them, or a public header does. Tests do not
  /// count: they test what there is.
  void find_public() {
    public_ = {"include/heed/heed.h"};
    for (std::size_t before = 0; before < public_.size();) {
      before = public_.size();
      for (const auto& [header, users] : users_)
        if (std::any_of(users.begin(), users.end(), [&, layer = layer_of(header)](const std::string& user) {
              return !user.starts_with("tests/") && (layer_of(user) != layer || public_.contains(user));
            }))
          public_.insert(header);
    }
  }

  void check_users() {
    for (const auto& [header, users] : users_) {
      const std::string layer = layer_of(header);
      if (layer.empty()) continue;
      if (!fs::exists(root_ / header)) {
        if (header.starts_with("include/")) fault(*users.begin(), "includes " + header + ", which does not exist");
      } else if (users.empty()) {
        fault(header, "no file uses it");
      } else if (header.starts_with("src/")) {
        continue;
      } else if (users.size() == 1 && layer_of(*users.begin()) != layer) {
        fault(header, "only " + *users.begin() + " uses it, from another folder");
      } else if (!public_.contains(header)) {
        fault(header, "no other layer uses it; its place is src/" + layer);
      }
    }
  }

  fs::path root_;
  Lines layers_, faults_;
  std::map<std::string, std::set<std::string>>
      users_;                     ///< of each header but those of tests: the files that include it
  std::set<std::string> public_;  ///< headers
};

/// A tree in order, of two layers.
struct Tree {
  TemporaryDirectory directory;

  Tree() {
    write("docs/architecture.md", "## Layers\n\n| layer | knows |\n| --- | --- |\n| `base` | |\n| `tape` | |\n");
    write("include/heed/heed.h", "#include \"heed/tape/tape.h\"\n");
    write("include/heed/base/tensor.h", "#pragma once\n");
    write("include/heed/tape/tape.h", "#include \"heed/base/tensor.h\"\n");
    write("src/base/tensor.cpp", "#include \"heed/base/tensor.h\"\n#include \"strides.h\"\n");
    write("src/base/strides.h", "");
    write("tests/base/strides.cpp", "#include \"src/base/strides.h\"\n");
    write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"support/compare.h\"\n");
    write("tests/support/compare.h", "");
    write("tests/main.cpp", "");
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((directory / path).parent_path());
    write_file(directory / path, text);
  }
  std::string faults() const {
    std::string all;
    for (const std::string& fault : Layout(directory.path()).faults()) all += fault + "\n";
    return all;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(the_source_is_as_the_list_of_layers_says) {
  BOOST_TEST(listed_layers(".").size() > 10u);
  for (const std::string& fault : Layout(".").faults()) BOOST_ERROR(fault);
}

BOOST_FIXTURE_TEST_CASE(a_tree_in_order_has_no_faults, Tree) { BOOST_TEST(faults() == ""); }

BOOST_FIXTURE_TEST_CASE(an_include_that_runs_upward, Tree) {
  write("src/base/tensor.cpp", "#include \"heed/base/tensor.h\"\n\n  #  include <heed/tape/tape.h>\n");
  BOOST_TEST(faults() == "src/base/tensor.cpp:3: base includes 'heed/tape/tape.h' of tape, a later layer\n");
}

BOOST_FIXTURE_TEST_CASE(the_header_of_all_headers, Tree) {
  write("src/tape/tape.cpp", "#include \"heed/heed.h\"\n");
  BOOST_TEST(faults() == "src/tape/tape.cpp:1: tape includes 'heed/heed.h' of no layer\n");
}

BOOST_FIXTURE_TEST_CASE(folders_and_the_list_differ, Tree) {
  write("src/ops/add.cpp", "");
  write("tests/recorded/numbers.txt", "");
  fs::remove_all(directory / "include/heed/tape");
  fs::remove_all(directory / "tests/tape");
  write("include/heed/heed.h", "#include \"heed/base/tensor.h\"\n");
  BOOST_TEST(faults() ==
             "docs/architecture.md: the layer 'tape' has no folder\n"
             "src/ops: the list of layers in docs/architecture.md has no 'ops'\n"
             "tests/recorded: the list of layers in docs/architecture.md has no 'recorded'\n");
}

BOOST_FIXTURE_TEST_CASE(files_in_no_folder, Tree) {
  write("include/heed/loose.h", "");
  write("src/loose.cpp", "");
  BOOST_TEST(faults() == "include/heed/loose.h: lies in no layer's folder\nsrc/loose.cpp: lies in no layer's folder\n");
}

BOOST_FIXTURE_TEST_CASE(headers_of_other_folders, Tree) {
  write("src/tape/tape.cpp", "#include \"../base/strides.h\"\n#include \"strides.h\"\n");
  write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"../support/compare.h\"\n");
  BOOST_TEST(faults() ==
             "src/tape/tape.cpp:1: includes '../base/strides.h', out of its folder\n"
             "src/tape/tape.cpp:2: includes 'strides.h', which is not beside it\n"
             "tests/tape/tape.cpp:2: includes '../support/compare.h', out of its folder\n");
}

BOOST_FIXTURE_TEST_CASE(private_headers_in_tests_of_other_layers, Tree) {
  write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"src/base/strides.h\"\n");
  BOOST_TEST(faults() == "tests/tape/tape.cpp:2: includes 'src/base/strides.h', which is for the tests of base\n");
}

// Neither its layer's sources nor tests make a header public; a header that another layer uses does.
BOOST_FIXTURE_TEST_CASE(public_headers_of_one_layer, Tree) {
  write("include/heed/base/shape.h", "");
  write("include/heed/base/arena.h", "#include \"heed/base/block.h\"\n");
  write("include/heed/base/block.h", "");
  write("include/heed/base/tensor.h", "#include \"heed/base/shape.h\"\n");
  write("src/base/arena.cpp", "#include \"heed/base/arena.h\"\n");
  write("tests/base/arena.cpp", "#include \"heed/base/arena.h\"\n#include \"heed/base/block.h\"\n");
  write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"heed/base/arena.h\"\n");
  BOOST_TEST(faults() ==
             "include/heed/base/arena.h: no other layer uses it; its place is src/base\n"
             "include/heed/base/block.h: no other layer uses it; its place is src/base\n");
}

BOOST_FIXTURE_TEST_CASE(headers_of_one_use_and_of_none, Tree) {
  write("include/heed/base/arena.h", "");
  write("include/heed/base/forgotten.h", "");
  write("src/base/unused.h", "");
  write("include/heed/tape/trace.h", "");
  write("include/heed/tape/tape.h", "#include \"heed/base/tensor.h\"\n#include \"heed/base/arena.h\"\n");
  write("src/tape/tape.cpp", "#include \"heed/tape/trace.h\"\n#include \"heed/tape/lost.h\"\n");
  BOOST_TEST(faults() ==
             "include/heed/base/arena.h: only include/heed/tape/tape.h uses it, from another folder\n"
             "include/heed/base/forgotten.h: no file uses it\n"
             "include/heed/tape/trace.h: no other layer uses it; its place is src/tape\n"
             "src/base/unused.h: no file uses it\n"
             "src/tape/tape.cpp: includes include/heed/tape/lost.h, which does not exist\n");
}

BOOST_AUTO_TEST_SUITE_END()
