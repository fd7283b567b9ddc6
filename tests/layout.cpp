// Checks that the source layout matches docs/architecture.md: a layer's folder has the same name in include/heed, src
// and tests; files include only headers of their own and of lower layers; private headers are in src; a folder has a
// limited number of files; operations are in sources named like their headers. The same checks must find faults planted
// in a small tree.
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

/// Returns the layers from the lowest up: the first column of the table under "## Layers".
Lines listed_layers(const fs::path& root) {
  static const std::regex row("^\\| `([\\w/]+)` \\|.*");
  Lines layers;
  bool inside = false;
  for (const std::string& line : lines_of(root / "docs/architecture.md")) {
    if (line.starts_with("## ")) inside = line == "## Layers";
    if (std::smatch match; inside && std::regex_match(line, match, row)) layers.push_back(match[1]);
  }
  return layers;
}

/// Maximum number of sources per folder, so that a folder can be surveyed.
constexpr std::size_t folder_limit = 24;

class Layout {
 public:
  explicit Layout(const fs::path& root) : root_(root), layers_(listed_layers(root)) {
    check_folders("include/heed", {}, {"heed.h"});
    check_folders("src", {}, {"README.md"});
    check_folders("tests", {"support", "datasets", "experiments", "fuzz", "transcripts"}, {});
    check_sizes();
    check_mirror();
    for (const std::string& layer : layers_)
      if (!fs::exists(root / "include/heed" / layer) && !fs::exists(root / "src" / layer))
        fault("docs/architecture.md", "the layer '" + layer + "' has no folder");
    for (const char* top : {"include/heed", "src", "tests"}) read_includes(top);
    find_public();
    check_users();
    check_operations();
    std::sort(faults_.begin(), faults_.end());
  }

  /// Returns the faults, one per line.
  Lines faults() const { return faults_; }

 private:
  void fault(const std::string& where, const std::string& what) { faults_.push_back(where + ": " + what); }

  bool is_layer(const std::string& name) const {
    return std::find(layers_.begin(), layers_.end(), name) != layers_.end();
  }

  /// Returns the layer's position in the list, or the list's length for an unknown layer.
  std::ptrdiff_t height(const std::string& layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) - layers_.begin();
  }

  /// Returns a path below its top folder: "tape/tape.h" for include/heed/tape/tape.h, src/tape/tape.h and
  /// tests/tape/tape.h; "" elsewhere.
  static std::string below_top(const std::string& path) {
    for (const std::string top : {"include/heed/", "src/", "tests/"})
      if (path.starts_with(top)) return path.substr(top.size());
    return "";
  }

  /// Returns the layer of a file, such as "tape" for src/tape/tape.cpp and "apps/cli" for src/apps/cli/shared/memory.h;
  /// "" outside of layers.
  std::string layer_of(const std::string& path) const {
    const std::string below = below_top(path);
    for (const std::string& layer : layers_)
      if (below.starts_with(layer + "/")) return layer;
    return "";
  }

  /// Returns true if a layer is within the folder, as "apps/cli" is within "apps". Both are relative to the top folder.
  bool above_layer(const std::string& folder) const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [&](const std::string& layer) { return layer.starts_with(folder + "/"); });
  }

  /// Reports folders that are neither layers nor in `more`, and files outside all layers. Files directly in tests and
  /// those in `loose` may be outside.
  void check_folders(const std::string& top, const std::set<std::string>& more, const std::set<std::string>& loose,
                     const std::string& prefix = "") {
    const fs::path folder = root_ / top / prefix;
    if (!fs::exists(folder)) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = prefix + entry.path().filename().string();
      if (entry.is_directory() && above_layer(name))
        check_folders(top, {}, {}, name + "/");
      else if (entry.is_directory() && !is_layer(name) && !more.contains(name))
        fault(top + "/" + name, "the list of layers in docs/architecture.md has no '" + name + "'");
      if (!entry.is_directory() && (top != "tests" || !prefix.empty()) && !loose.contains(name))
        fault(top + "/" + name, "is in no layer's folder");
    }
  }

  void check_sizes() {
    std::map<std::string, std::size_t> sources;
    for (const char* top : {"include/heed", "src", "tests"})
      if (fs::exists(root_ / top))
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_ / top))
          if (const auto extension = entry.path().extension(); extension == ".h" || extension == ".cpp")
            ++sources[entry.path().parent_path().lexically_relative(root_)];
    for (const auto& [folder, count] : sources)
      if (count > folder_limit)
        fault(folder, std::to_string(count) + " sources; a folder has at most " + std::to_string(folder_limit));
  }

  /// Reports folders of a layer's tests that exist neither in src nor in include/heed.
  void check_mirror() {
    if (!fs::exists(root_ / "tests")) return;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_ / "tests")) {
      if (!entry.is_directory()) continue;
      const std::string path = entry.path().lexically_relative(root_), below = below_top(path);
      if (!layer_of(path).empty() && !fs::exists(root_ / "src" / below) && !fs::exists(root_ / "include/heed" / below))
        fault(path, "neither src nor include/heed has '" + below + "'");
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
    if (!of_heed) return check_private(path, where, header);
    if (path.starts_with("tests/")) return;
    const std::string from = layer_of(path), to = layer_of("include/" + header);
    if (height(from) < height(to))
      fault(where, from + " includes '" + header + "' of " + (to.empty() ? "no layer" : to + ", a later layer"));
  }

  /// Checks an include of a header outside include/heed: a header in the same folder must be included by its file name,
  /// one in another folder by its path from the root. Only its own layer may include it or, if it is in a layer below
  /// apps/, higher layers too.
  void check_private(const std::string& path, const std::string& where, const std::string& header) {
    const bool in_tests = path.starts_with("tests/"), by_path = header.starts_with("src/");
    if (in_tests && !by_path) return;
    const fs::path folder = fs::path(path).parent_path();
    const std::string full = by_path ? header : (folder / header).string();
    users_[full].insert(path);
    const std::string from = layer_of(path), to = layer_of(full);
    if (!fs::exists(root_ / full))
      fault(where, "includes '" + header + "', which is not " + (by_path ? "there" : "in its folder"));
    else if (by_path && fs::path(full).parent_path() == folder)
      fault(where, "includes '" + header + "', which is in its folder, by a path");
    else if (from != to && (!to.starts_with("apps/") || height(from) < height(to)))
      fault(where, "includes '" + header + "', which is private to " + to);
    else if (path.starts_with("src/" + from + "/shared/") && !full.starts_with("src/" + from + "/shared/"))
      fault(where, "includes '" + header + "', but shared headers of " + from + " include only shared ones");
  }

  /// Finds the public headers: those included by another layer, by heed.h or by a public header. Tests do not count.
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

  /// Reports operations declared in include/heed/ops/X.h but not defined in src/ops/X.cpp, and sources there without a
  /// header of their name.
  void check_operations() {
    static const std::regex operation("^Var<T> (\\w+)\\(.*");
    const auto operations_in = [&](const fs::path& path) {
      std::set<std::string> names;
      for (const std::string& line : fs::exists(path) ? lines_of(path) : Lines())
        if (std::smatch match; std::regex_match(line, match, operation)) names.insert(match[1]);
      return names;
    };
    const fs::path headers = root_ / "include/heed", sources = root_ / "src";
    const auto for_each = [](const fs::path& folder, const std::string& extension, const auto& f) {
      if (fs::exists(folder))
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
          if (entry.path().extension() == extension) f(entry.path());
    };
    for_each(headers / "ops", ".h", [&](const fs::path& header) {
      const fs::path source = (sources / header.lexically_relative(headers)).replace_extension(".cpp");
      const std::set<std::string> defined = operations_in(source);
      for (const std::string& name : operations_in(header))
        if (!defined.contains(name))
          fault(header.lexically_relative(root_),
                "declares " + name + ", which " + source.lexically_relative(root_).string() + " does not define");
    });
    for_each(sources / "ops", ".cpp", [&](const fs::path& source) {
      const fs::path header = fs::path(source).replace_extension(".h");
      if (!fs::exists(header) && !fs::exists(headers / header.lexically_relative(sources)))
        fault(source.lexically_relative(root_), "has no header of its name");
    });
  }

  fs::path root_;
  Lines layers_, faults_;
  std::map<std::string, std::set<std::string>> users_;  ///< for each header outside tests, the files that include it
  std::set<std::string> public_;
};

/// A valid source tree with two layers, in a temporary directory.
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
  write("src/ops/add.h", "");
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
  BOOST_TEST(faults() == "include/heed/loose.h: is in no layer's folder\nsrc/loose.cpp: is in no layer's folder\n");
}

BOOST_FIXTURE_TEST_CASE(headers_of_other_folders, Tree) {
  write("src/tape/tape.cpp", "#include \"../base/strides.h\"\n#include \"strides.h\"\n");
  write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"../support/compare.h\"\n");
  BOOST_TEST(faults() ==
             "src/tape/tape.cpp:1: includes '../base/strides.h', out of its folder\n"
             "src/tape/tape.cpp:2: includes 'strides.h', which is not in its folder\n"
             "tests/tape/tape.cpp:2: includes '../support/compare.h', out of its folder\n");
}

BOOST_FIXTURE_TEST_CASE(private_headers_of_other_layers, Tree) {
  write("src/tape/tape.cpp", "#include \"src/base/strides.h\"\n");
  write("tests/tape/tape.cpp", "#include \"heed/tape/tape.h\"\n#include \"src/base/strides.h\"\n");
  BOOST_TEST(faults() ==
             "src/tape/tape.cpp:1: includes 'src/base/strides.h', which is private to base\n"
             "tests/tape/tape.cpp:2: includes 'src/base/strides.h', which is private to base\n");
}

BOOST_FIXTURE_TEST_CASE(folders_of_a_layer, Tree) {
  write("src/base/shared/sizes.h", "#include \"src/base/arena/arena.h\"\n");
  write("src/base/arena/arena.h", "");
  write("src/base/arena/arena.cpp", "#include \"src/base/arena/arena.h\"\n#include \"src/base/shared/sizes.h\"\n");
  write("tests/base/shared/sizes.cpp", "");
  write("tests/base/pool/pool.cpp", "");
  BOOST_TEST(faults() ==
             "src/base/arena/arena.cpp:1: includes 'src/base/arena/arena.h', which is in its folder, by a path\n"
             "src/base/shared/sizes.h:1: includes 'src/base/arena/arena.h', but shared headers of base include only "
             "shared ones\n"
             "tests/base/pool: neither src nor include/heed has 'base/pool'\n");
}

BOOST_FIXTURE_TEST_CASE(operations_in_files_of_other_names, Tree) {
  write("docs/architecture.md", "## Layers\n\n| `base` | |\n| `tape` | |\n| `ops` | |\n| `nn` | |\n");
  write("include/heed/ops/add.h", "Var<T> add(Var<T> a,\n           Var<T> b);\nVar<T> mul(Var<T> a, Var<T> b);\n");
  write("include/heed/ops/rows.h", "void for_rows(Index rows) {}\n");
  write("src/ops/add.cpp", "#include \"heed/ops/add.h\"\nVar<T> add(Var<T> a, Var<T> b) {}\n");
  write("src/ops/products.cpp", "#include \"heed/ops/rows.h\"\nVar<T> mul(Var<T> a, Var<T> b) {}\n");
  write("src/ops/parts.cpp", "#include \"parts.h\"\n");
  write("src/ops/parts.h", "");
  write("src/nn/model.cpp", "#include \"heed/ops/add.h\"\n#include \"heed/ops/rows.h\"\n");
  BOOST_TEST(faults() ==
             "include/heed/ops/add.h: declares mul, which src/ops/add.cpp does not define\n"
             "src/ops/products.cpp: has no header of its name\n");
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_is_too_large, Tree) {
  for (std::size_t i = 0; i < folder_limit; ++i) write("src/base/file_" + std::to_string(i) + ".cpp", "");
  BOOST_TEST(faults() == "src/base: 26 sources; a folder has at most 24\n");
}

// Layers of the programs: their headers are in src, available to higher layers.
BOOST_FIXTURE_TEST_CASE(layers_below_a_common_folder, Tree) {
  write("docs/architecture.md", "## Layers\n\n| `base` | |\n| `tape` | |\n| `apps/marks` | |\n| `apps/cli` | |\n");
  write("src/apps/marks/marks.h", "");
  write("src/apps/cli/main.cpp", "#include \"src/apps/marks/marks.h\"\n");
  BOOST_TEST(faults() == "");
  write("src/apps/marks/marks.h", "#include \"src/apps/cli/main.h\"\n");
  write("src/apps/cli/main.h", "");
  write("src/apps/loose.h", "");
  BOOST_TEST(faults() ==
             "src/apps/loose.h: is in no layer's folder\n"
             "src/apps/marks/marks.h:1: includes 'src/apps/cli/main.h', which is private to apps/cli\n");
}

// A header is public if another layer or a public header uses it; sources of its own layer and tests do not count.
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

// With the C library's functions, results would depend on its version and on the CPU (heed/base/math.h).
BOOST_AUTO_TEST_CASE(the_source_calls_no_function_of_the_c_library_instead) {
  const std::map<std::string, std::string> exceptions = {
      {"src/draw/line_chart.cpp", "ticks of an axis"},
      {"src/apps/grading/marks/answer_marks.cpp", "formulas of students"},
      {"src/apps/grading/definition/features.h", "formulas of students"},
      {"src/apps/grading/definition/dual.h", "erf, in double"},
      {"src/apps/grading/definition/definition_header.cpp", "formulas of students"},
      {"src/cost/counted.cpp", "erf, which is counted"},
      {"include/heed/kernels/elements/activation.h", "erf, in double and in plain builds"},
      {"src/checks/gradcheck.cpp", "a step of differences"},
      {"src/analysis/statistics.cpp", "lgamma, for probabilities that are printed"},
      {"src/apps/cli/measuring/bench_scaling.cpp", "a model of time"},
      {"src/apps/cli/comparing/tensor_files.cpp", "digits of a number that is printed"}};
  const std::regex call(
      "\\bstd::(exp|exp2|expm1|log|log1p|log2|log10|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|pow|cbrt|hypot|erf|"
      "erfc|lgamma|tgamma)\\b");
  std::set<std::string> callers;
  for (const char* top : {"src", "include"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      const std::string path = entry.path().string();
      if (entry.is_regular_file() && (path.ends_with(".cpp") || path.ends_with(".h")) &&
          std::regex_search(read_file(path), call))
        callers.insert(path);
    }
  for (const std::string& path : callers) BOOST_TEST(exceptions.contains(path), path);
  for (const auto& [path, reason] : exceptions)
    BOOST_TEST(callers.contains(path), path + " calls none of these functions: remove its exception");
}

BOOST_AUTO_TEST_SUITE_END()
