#include "intake.h"

#include "submission.h"

#include "heed/base/printable.h"
#include "heed/io/file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <regex>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

constexpr Index largest_archive = Index{16} << 20;

/// Names of files and directories that are handed in by accident, or that belong to a lab and are not marked, as a
/// regular expression for this program and for Python.
constexpr const char* ignored_names =
    R"((\.[\s\S]*|__MACOSX|__pycache__|Thumbs\.db|desktop\.ini|lab\.toml|judge\.py|calls\.py|student\.txt)?)";

/// Python program that sends the number of an archive's files, and the paths and contents of at most 300 of them: the
/// first 1 MB of a file, or 8 MB of a notebook, and one byte more, which shows that a file is too large. Files with an
/// ignored name in their path are not counted. In zip files of Windows PowerShell 5, backslashes separate directories.
/// A link in a tar file has the content of its target in the archive; it is empty if the target is outside.
constexpr const char* unpack_program = R"(
import io, os, re, struct, sys, tarfile, zipfile
def text(): return sys.stdin.buffer.read(*struct.unpack('<q', sys.stdin.buffer.read(8)))
packed, ignored, found = io.BytesIO(text()), re.compile(text().decode()), []
if zipfile.is_zipfile(packed):
    archive = zipfile.ZipFile(packed)
    members = [(m.filename.replace('\\', '/'), lambda m=m: archive.open(m)) for m in archive.infolist()]
else:
    packed.seek(0)
    archive = tarfile.open(fileobj=packed)
    def target(m):
        try: return archive.extractfile(m) or io.BytesIO()
        except KeyError: return io.BytesIO()
    members = [(m.name, lambda m=m: target(m)) for m in archive if not m.isdir()]
members = [(os.path.normpath('/' + name).lstrip('/'), opened) for name, opened in members if not name.endswith('/')]
members = [(name, opened) for name, opened in members if not any(map(ignored.fullmatch, name.split('/')))]
for name, opened in members[:300]:
    most = (8 << 20 if name.endswith('.ipynb') else 1 << 20) + 1
    found += [name.encode('utf-8', 'replace')[:1000], opened().read(most)]
data = struct.pack('<qq', len(members), len(found) // 2) + b''.join(struct.pack('<q', len(x)) + x for x in found)
data = struct.pack('<q', len(data)) + data
while data:
    data = data[os.write(3, data):]
)";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_ignored(const std::string& name) {
  static const std::regex ignored(ignored_names);
  return std::regex_match(name, ignored);
}

/// Returns an archive's name without its extensions; none for other files.
std::optional<std::string> archive_stem(const std::string& name) {
  static const std::regex archive("(.+?)\\.(zip|tar|tgz|tar\\.(gz|bz2|xz))", std::regex::icase);
  std::smatch match;
  return std::regex_match(name, match, archive) ? std::optional(match[1].str()) : std::nullopt;
}

/// Returns a file's name in lower case, with hyphens for spaces and underscores, and without endings such as " (1)",
/// "-2", "_copy" and "-final", which browsers, Canvas and users add.
std::string plain_name_of(const std::string& stem) {
  static const std::regex added("( ?\\(\\d+\\)|[-_ ]\\d{1,2}| ?- ?copy|[-_ ]copy|[-_ ]final)+$");
  std::string name = std::regex_replace(lower(stem), added, "");
  std::ranges::replace_if(
      name, [](char c) { return c == '_' || c == ' '; }, '-');
  return name;
}

/// A file as Canvas names it, such as doejane_LATE_12345_678910_sima.h; the first number is the student's.
struct CanvasFile {
  std::string student, number, file;
};

std::optional<CanvasFile> canvas_file(const std::string& name) {
  static const std::regex canvas("([^_]+)_(?:LATE_)?(\\d+)_\\d+_(.+)");
  std::smatch match;
  return std::regex_match(name, match, canvas) ? std::optional(CanvasFile{match[1], match[2], match[3]}) : std::nullopt;
}

}  // namespace

Intake::Intake(const std::string& directory, std::vector<ExpectedFile> expected) : expected_(std::move(expected)) {
  const std::set<Path> entries(fs::directory_iterator(directory), {});
  for (const Path& entry : entries)
    if (const auto canvas = canvas_file(entry.filename()); canvas && !fs::is_directory(entry))
      canvas_numbers_[lower(canvas->student)].insert(canvas->number);
  for (const Path& entry : entries) take_root(entry);
  std::ranges::sort(students_);
  name_moodle_numbers();
  for (const auto& [key, candidates] : candidates_) choose(key.first, key.second, candidates);
}

std::set<std::string> Intake::numbers_of(const std::string& student) const {
  const auto at = numbers_.find(student);
  return at == numbers_.end() ? std::set<std::string>() : at->second;
}

std::string Intake::file_of(const std::string& student, const std::string& lab) const {
  const auto at = files_.find({student, lab});
  return at == files_.end() ? "" : at->second;
}

std::string Intake::student_of(const std::string& name) const {
  const auto found = by_key_.find(lower(name));
  return found == by_key_.end() ? name : found->second;
}

std::string Intake::student_called(const std::string& name, const std::string& number) {
  const auto [at, is_new] = by_key_.try_emplace(lower(name), name);
  if (is_new) students_.push_back(name);
  if (!number.empty()) numbers_[at->second].insert(number);
  return at->second;
}

/// Prints the students with several Moodle numbers on stderr. Moodle gives a student a new number in each assignment,
/// but the numbers may also belong to different students with the same name.
void Intake::name_moodle_numbers() const {
  std::string names;
  for (const auto& [student, numbers] : numbers_)
    if (numbers.size() > 1)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", printable(student), fmt::join(numbers, ", "));
  if (!names.empty())
    std::cerr << fmt::format(
        "heed: students with several Moodle numbers, each graded as one student: {}; if students share a name, rename "
        "their directories\n",
        names);
}

/// Reads an entry of the class's directory: a student's directory, or a file whose name begins with the student's name.
void Intake::take_root(const Path& entry) {
  const std::string name = entry.filename();
  if (is_ignored(name)) return;
  const bool plain = std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const bool link = fs::is_symlink(entry);
  if (!plain || (link && fs::is_directory(entry))) {
    std::cerr << "heed: " << printable(entry.string())
              << (plain ? ": left out: it is a symbolic link\n" : ": left out: its name has control characters\n");
    return;
  }
  const auto student = [&](const std::string& text) {
    static const std::regex moodle("(.+)_(\\d+)_assignsubmission_.+");
    std::smatch match;
    return std::regex_match(text, match, moodle) ? student_called(match[1], match[2]) : student_called(text, "");
  };
  if (fs::is_directory(entry)) return walk(student(name), entry, name, 0);
  if (const auto canvas = canvas_file(name)) {
    const bool unique = canvas_numbers_[lower(canvas->student)].size() == 1;
    const std::string owner =
        student_called(unique ? canvas->student : canvas->student + "_" + canvas->number, canvas->number);
    return take_file(owner, entry, Path(owner) / canvas->file);
  }
  const auto stem = archive_stem(name);
  // An archive STUDENT_LAB.zip belongs to STUDENT, like a file STUDENT_LAB.h.
  const auto names_lab = [&](std::size_t from) {
    return stem ? from < stem->size() &&
                      std::ranges::any_of(
                          expected_,
                          [&](const ExpectedFile& one) {
                            return expected_of(stem->substr(from) + Path(one.file).extension().string()) != nullptr;
                          })
                : expected_of(name.substr(from)) != nullptr;
  };
  for (std::size_t at = name.find_first_of("_- "); at != std::string::npos; at = name.find_first_of("_- ", at + 1))
    if (at > 0 && names_lab(at + 1)) {
      const std::string owner = student(name.substr(0, at));
      return take_file(owner, entry, Path(owner) / name.substr(at + 1));
    }
  if (stem) return unpack(student(*stem), entry, name);
  leave_out("", name, "the student is unknown; put the file into a directory named after the student");
}

void Intake::walk(const std::string& student, const Path& directory, const Path& shown, int depth) {
  const std::set<Path> entries(fs::directory_iterator(directory), {});
  for (const Path& entry : entries) {
    const std::string name = entry.filename();
    if (is_ignored(name)) continue;
    if (fs::is_directory(fs::symlink_status(entry))) {
      if (depth < 8)
        walk(student, entry, shown / name, depth + 1);
      else if (too_deep_.insert(student).second)
        leave_out(student, shown / name, "directories nested more than 8 deep are not read; nest them less");
    } else {
      take_file(student, entry, shown / name);
    }
  }
}

/// Returns the expected file that a submitted file's name matches; null if there is none.
const ExpectedFile* Intake::expected_of(const std::string& name) const {
  Path path(name);
  if (lower(path.extension()) == ".txt" && path.stem().has_extension()) path = path.stem();
  std::string extension = lower(path.extension());
  if (extension == ".hpp" || extension == ".hh") extension = ".h";
  for (const ExpectedFile& one : expected_) {
    const bool same = plain_name_of(path.stem()) == lower(one.name) || lower(path.stem()) == lower(one.name);
    if (same && extension == Path(one.file).extension()) return &one;
  }
  return nullptr;
}

void Intake::take_file(const std::string& student, const Path& file, const Path& shown, bool packed) {
  const std::string name = shown.filename();
  if (is_ignored(name)) return;
  if (!packed && archive_stem(name)) return unpack(student, file, shown);
  const auto offer = [&](const ExpectedFile& one, int rank) {
    candidates_[{student, one.name}].push_back({shown, file, rank});
  };
  const std::string folder = shown.parent_path().filename();
  if (const ExpectedFile* const one = expected_of(name))
    return offer(*one, name != one->file ? 2 : folder == one->name ? 0 : 1);
  const auto is_notebook = [](const ExpectedFile& one) { return one.file.ends_with(".ipynb"); };
  if (name.ends_with(".ipynb") && std::ranges::none_of(expected_, is_notebook)) {
    ++notebooks_;
    return;
  }
  // In a folder named after the lab, a file with the right extension may have any name.
  for (const ExpectedFile& one : expected_)
    if (lower(folder) == lower(one.name) && Path(name).extension() == Path(one.file).extension()) return offer(one, 3);
  const int listed = unmatched_[student]++;
  if (listed < 10)
    leave_out(student, shown, "its name matches no lab; expected LAB.h, LAB.py, LAB.toml or a notebook");
  else if (listed == 10)
    leave_out(student, shown, "and more such files");
}

void Intake::unpack(const std::string& student, const Path& file, const Path& shown) {
  try {
    const std::string bytes = read_bytes(file, largest_archive);
    Confined process({"/usr/bin/python3", "-I", "-S", "-B", "-c", unpack_program},
                     {.memory = Index{512} << 20, .directory = unpacked_.path()});
    Message message;
    message.put(bytes);
    message.put(ignored_names);
    process.send_bytes(message.bytes());
    Message answer = process.receive();
    const Index files = answer.integer(0, Index{1} << 30), sent = answer.integer(0, 300);
    for (Index left = sent; left > 0; --left) {
      const Path path = Path(answer.text()).relative_path();
      const std::string place = unpacked_ / std::to_string(unpacked_count_++);
      write_file(place, answer.text(largest_notebook + 1));
      fs::last_write_time(place, fs::last_write_time(file));
      take_file(student, place, shown / path, true);
    }
    if (files == 0) leave_out(student, shown, "it contains no files; submit the files themselves");
    if (sent < files)
      leave_out(student, shown,
                fmt::format("only {} of its {} files are read; submit a smaller archive, or the files themselves", sent,
                            files));
  } catch (const Error&) {
    leave_out(student, shown, "it cannot be unpacked; submit the files themselves, or a zip file");
  }
}

void Intake::list_not_recognised(std::ostream& out, const char* begin) const {
  for (const NotRecognised& one : not_recognised_) out << begin << printable(one.file) << ": " << one.remedy << "\n";
  if (notebooks_ > 0)
    out << begin << "notebooks, " << notebooks_
        << ": notebooks/solutions/questions is missing beside the labs; grade from a checkout of the repository\n";
}

/// Chooses the candidate whose name is closest to the expected one, or none if candidates with different content are
/// equally close. All candidates that differ in content from the closest one are listed as not recognised.
void Intake::choose(const std::string& student, const std::string& lab, std::vector<Candidate> candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::rank);
  const auto content = [](const Candidate& candidate) {
    try {
      return read_submission(candidate.file, largest_notebook);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const std::string first = content(candidates[0]);
  std::vector<const Candidate*> others;
  bool clear = true;
  for (const Candidate& candidate : candidates)
    if (&candidate != &candidates[0] && content(candidate) != first) {
      others.push_back(&candidate);
      clear = clear && candidate.rank > candidates[0].rank;
    }
  if (clear) files_[{student, lab}] = candidates[0].file;
  for (const Candidate* const other : others)
    not_recognised_.push_back(
        {student, clear ? "" : lab, other->shown,
         clear ? fmt::format("{} is graded instead; submit one file of {}", candidates[0].shown, lab)
               : fmt::format("{} is another file of {}; submit only one", candidates[0].shown, lab)});
}

}  // namespace heed::cli
