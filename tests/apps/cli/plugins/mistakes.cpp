// Mistakes in a plugin's header: each gives one line with the expected signature or types.
#include "support/cli.h"

#include <fmt/format.h>

#include <deque>

using namespace heed;
using namespace heed::test;

namespace {

/// A mechanism's header in parts, some of which a test replaces by a mistake.
struct Header {
  std::string base{}, option = "double eps = 1", visit = R"(visit("eps", eps, "meaning"))";
  std::string forward = "run_forward(const AttentionInput<T>&, Heads<T>, NoMemory, NoMemory) const";
  std::string backward =
      "run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, NoMemory, NoMemory, "
      "const AttentionGradient<T>&) const";
  std::string more{};

  std::string text() const {
    std::string made =
        "#include <heed/attention/capabilities/map.h>\n#include <heed/attention/mechanism_base.h>\n"
        "#include <heed/ops/composed_attention.h>\nnamespace heed {\n"
        "class Mine : public MechanismBase<Mine>" +
        base + " {\n public:\n";
    for (const std::string& line :
         {std::string(R"(static constexpr const char *mechanism_name = "mine", *summary = "", *complexity = "";)"),
          option + ";", "template <class Visitor> void options(Visitor& visit) { " + visit + "; }",
          std::string("static std::vector<OptionValues> variants() { return {{}}; }"),
          "template <class T> void " + forward + " {}", "template <class T> void " + backward + " {}", more,
          std::string("Cost cost(const AttentionShape&) const override { return {}; }")})
      made += "  " + line + "\n";
    return made + "};\ntemplate MechanismEntry mechanism_entry<Mine>();\n}\n";
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_plugin_mistakes)

BOOST_AUTO_TEST_CASE(each_names_what_is_expected) {
  const std::string map = ", public WithMap<Mine>", types = "an option is a bool, an Index, a double, a std::optional";
  const std::string run_map = "template <class T> void run_map(const AttentionInput<T>&, Heads<T>, NoMemory, NoMemory)";
  const std::string maps = "run_map must be run_map(const AttentionInput<T>& in, Heads<T> map, saved, scratch) const";
  const std::string without_base = "a mechanism X with run_map must be derived from WithMap<X> too";
  const std::vector<std::pair<Header, std::string>> mistakes{
      {{.base = map, .more = "template <class T> void run_map(Heads<T>, const AttentionInput<T>&) const {}"}, maps},
      {{.base = map, .more = run_map + " {}"}, maps},  // not const
      {{.more = run_map + " const {}"}, without_base},
      {{.more = "void run_map(const AttentionInput<float>&, Heads<float>) const {}"}, without_base},
      {{.more = "template <class T> Var<T> compose(const ComposedInput<T>& in) const { return in.v; }"},
       "a mechanism X with compose must be derived from ComposedMechanism<X>, or from WithComposition<X> too"},
      {{.base = ", public WithComposition<Mine>", .more = "template <class T> Var<T> compose(Var<T> v) const;"},
       "compose must be Var<T> compose(const ComposedInput<T>& in) const"},
      {{.forward = "run_forward(Heads<T>, const AttentionInput<T>&, NoMemory, NoMemory) const"},
       "run_forward must be run_forward(const AttentionInput<T>& in, Heads<T> out, saved, scratch) const"},
      {{.backward = "run_backward(const AttentionInput<T>&, Heads<const T>, NoMemory, NoMemory) const"},
       "run_backward must be run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, "
       "saved, scratch, const AttentionGradient<T>& gradient) const"},
      {{.option = "int eps = 1"}, types},
      {{.option = "float eps = 1"}, types},
      {{.option = "std::string eps"}, types},
      {{.option = "std::string eps", .visit = R"(visit("eps", eps, {"small", "large"}, "meaning"))"},
       "an option with names for its values is an enum class"},
  };
  const TemporaryDirectory directory;
  std::deque<Program> compilers;
  const auto compile = [&](std::size_t i) {
    const std::string header = directory / fmt::format("mine{}.h", i);
    write_file(header, mistakes[i].first.text());
    compilers.emplace_back(std::vector<std::string>{"plugin", header});
  };
  compile(0);
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    if (i + 1 < mistakes.size()) compile(i + 1);  // two at a time
    const Finished run = compilers[i].wait();
    BOOST_TEST(run.status == 2, mistakes[i].first.text());
    BOOST_TEST(std::count(run.err.begin(), run.err.end(), '\n') == 1, run.err);
    check_contains(run.err, {fmt::format("mine{}.h:", i), mistakes[i].second});
  }
}

BOOST_AUTO_TEST_SUITE_END()
