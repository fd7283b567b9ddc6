// Plugins: compiles the mechanism of docs/adding-a-mechanism.md once, outside the source tree, and tests its use and
// the error messages.
#include "support/cli.h"
#include "support/command.h"
#include "support/images.h"
#include "support/lines.h"
#include "support/temporary.h"

#include "heed/attention/plugin.h"
#include "heed/io/json.h"
#include "heed/io/safetensors.h"

#include <cstddef>
#include <cstdlib>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns `text` with each `from` replaced by `to`; checks that `from` occurs.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "the header has no '" << from << "'");
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

/// Returns the page's header, changed so that environment variables make it throw when the plugin is loaded or the
/// mechanism is created. The same mechanism follows under another name, with errors: the gradient of v has the wrong
/// sign, the backward cost lacks a multiplication for each element of q and k, and a variable is unused.
std::string hydra_header() {
  const std::string page = read_file("docs/adding-a-mechanism.md");
  const std::size_t from = page.find("// hydra.h\n"), to = page.find("```", from);
  BOOST_REQUIRE(from != std::string::npos);
  const std::string header = page.substr(from, to - from), eps = "  double eps = 1e-12;\n", last = "template Mech";
  std::string wrong = replaced(replaced(header, "Hydra", "Wrong"), "\"hydra\"", "\"wrong\"");
  wrong = replaced(wrong, "to.v[0](j, c), f.kn(j, c)", "to.v[0](j, c), -f.kn(j, c)");
  wrong = replaced(replaced(wrong, ".mul = 4 * d", ".mul = 3 * d"), "Cost cost;", "Cost cost;\n    Index unused = 0;");
  return replaced(replaced(header, eps, "  Hydra() {\n    if (std::getenv(\"HYDRA_MAKE\")) throw 42;\n  }\n" + eps),
                  last, "static const bool loaded = std::getenv(\"HYDRA_LOAD\") ? throw 42 : true;\n" + last) +
         wrong;
}

/// The plugin, compiled at its first use.
class Hydra {
  TemporaryDirectory directory_;

 public:
  static const Hydra& once() {
    static const Hydra hydra;
    return hydra;
  }
  std::string file(const std::string& name) const { return directory_ / name; }

  /// Writes a copy of the plugin whose record has `text` at offset `member`, in place of another text of the same
  /// length; returns its path.
  std::string with(std::size_t member, const std::string& text) const {
    std::string object = read_file(plugin);
    const std::size_t record = object.find(std::string(plugin_mark, sizeof plugin_mark));
    BOOST_REQUIRE(record != std::string::npos);
    object.replace(record + member, text.size(), text);
    write_file(file("other.so"), object);
    return file("other.so");
  }

  std::string header, plugin, printed;

 private:
  Hydra() : header(file("hydra.h")), plugin(file("hydra.so")) {
    write_file(header, hydra_header());
    printed = output_of({"plugin", header});
  }
};

/// Writes a script that acts as a compiler and fails with this message; returns its path.
std::string failing_compiler(const TemporaryDirectory& directory, const std::string& says) {
  write_file(directory / "says", says);
  write_file(directory / "compiler", fmt::format("#!/bin/sh\ncat '{}' >&2\nexit 1\n", (directory / "says").string()));
  std::filesystem::permissions(directory / "compiler", std::filesystem::perms::owner_all);
  return directory / "compiler";
}

/// Checks that --resume rejects a run whose mechanism has changed, and that `commands` warn, both with the explanation
/// `how`.
void check_changed(const std::string& run, const std::vector<std::vector<std::string>>& commands,
                   const std::string& how) {
  check_refusal({"train", "--run", run, "--resume", "--set", "train.max_steps=9"},
                {run, "has changed: " + how, "a resumed run must keep its mechanism"});
  for (const std::vector<std::string>& command : commands) {
    const Finished finished = heed_with(command);
    BOOST_TEST(finished.status == 0, finished.err);
    check_contains(finished.err, {"heed: warning: " + run, "has changed: " + how});
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_plugin)

BOOST_AUTO_TEST_CASE(commands_know_its_mechanism) {
  const Hydra& hydra = Hydra::once();
  check_contains(hydra.printed, {"hydra.so: compiled in ", "gradcheck hydra --plugin"});
  check_contains(hydra.printed, {"warning: " + hydra.header + ":", "unused variable 'unused'"});
  check_contains(output_of({"list", "--plugin", hydra.plugin}), {"\nhydra ", "from the plugin " + hydra.plugin});
  check_contains(output_of({"list", "hydra", "--plugin", hydra.plugin}), {"eps = ", hydra.header, hydra.plugin});
  check_contains(output_of({"gradcheck", "hydra", "--plugin", hydra.plugin}),
                 {"gradients agree", "costs agree with the executed operations"});
  check_contains(output_of({"cost", "models/vit-micro.toml", "--attention", "softmax,hydra", "--plugin", hydra.plugin}),
                 {"hydra"});
  const EnvironmentVariable plugins("HEED_PLUGINS", hydra.plugin + "::");
  check_contains(output_of({"list"}), {"\nhydra "});
  check_contains(output_of({"list", "--plugin", hydra.plugin}), {"\nhydra "});  // a second load has no effect
  const TemporaryDirectory directory;
  const std::string link = directory / "link.so";
  std::filesystem::create_symlink(hydra.plugin, link);
  check_contains(output_of({"list", "--plugin", link}), {"\nhydra "});
  // Colons separate the files of HEED_PLUGINS.
  const std::string colon = directory / "a:b.so";
  write_file(colon, "");
  check_refusal({"list", "--plugin", colon}, {colon + ": expected a plugin's path without a colon"});
}

// heed sweep starts a heed process for each cell.
BOOST_AUTO_TEST_CASE(programs_that_it_starts_have_all_plugins) {
  const Hydra& hydra = Hydra::once();
  const Workshop workshop;
  std::string renamed = read_file(hydra.plugin);
  for (const auto& [from, to] : {std::pair{"hydra", "other"}, std::pair{"wrong", "alias"}}) {
    const auto alone = [](const char* name) { return std::string(1, '\0') + name + std::string(1, '\0'); };
    renamed = replaced(std::move(renamed), alone(from), alone(to));
  }
  const std::string other = workshop / "other.so", file = workshop / "both.toml";
  write_file(other, renamed);
  write_file(file, fmt::format("base = \"{}\"\nseeds = 1\n[train]\nepochs = 1\n[arms.hydra]\nattention.mechanism = "
                               "\"hydra\"\n[arms.other]\nattention.mechanism = \"other\"\n",
                               write_experiment(workshop, workshop.experiment())));
  const EnvironmentVariable plugins("HEED_PLUGINS", hydra.plugin);
  const Finished sweep = heed_with({"sweep", file, "--out", workshop / "cells", "--plugin", other});
  BOOST_TEST(sweep.status == 0, sweep.err);
}

BOOST_AUTO_TEST_CASE(gradcheck_explains_its_errors) {
  const std::string plugin = Hydra::once().plugin;
  const Finished run = heed_with({"gradcheck", "wrong", "--explain", "--plugin", plugin});
  BOOST_TEST(run.status == 1);
  BOOST_TEST(run.err == "");
  check_contains(run.out, {"the gradient of v is wrong in", "looks  like the negative of what it should be",
                           "step   undoing 2: dkn_j = v_j ds, dv_j = kn_j ds", "worst  image ", "got / expected",
                           "the gradients of k, q are right", "the cost of backward is wrong in mul",
                           "executed - stated = B M d + B N d for all shapes"});
  const Finished printed = heed_with({"gradcheck", "wrong", "--json", "--plugin", plugin});
  BOOST_TEST(printed.status == 1);
  const Json json = Json::parse(printed.out);
  BOOST_TEST(json.at("memory").items().empty());
  int wrong = 0;
  for (const Json& row : json.at("gradients").items()) {
    if (!row.contains("diagnosis")) continue;
    const Json& diagnosis = row.at("diagnosis");
    ++wrong;
    if (row.at("tensor").text() != "v") continue;
    BOOST_TEST(diagnosis.at("kind").text() == "negative");
    BOOST_TEST(diagnosis.at("wrong").integer() == row.at("elements").integer());
    BOOST_TEST(diagnosis.at("worst").at("place").contains("channel"));
    BOOST_TEST(diagnosis.at("steps").items().at(0).at("undoing").text() == "2");
  }
  BOOST_TEST(wrong > 3);
  // Item 0 is the error with packed operands, whose cost is checked in a single shape; a closed form needs several.
  BOOST_TEST(json.at("cost_errors").items().at(1).at("difference").text() == "B M d + B N d");
}

BOOST_AUTO_TEST_CASE(runs_say_where_their_mechanism_came_from) {
  const Hydra& hydra = Hydra::once();
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.attention.mechanism = {"hydra"};
  const std::string file = write_experiment(workshop, x), run = workshop / "run", image = workshop / "a.png";
  write_image(image, pattern({1, 8, 8}, 3));
  check_refusal({"train", file, "--run", run}, {"unknown mechanism 'hydra'"});
  const std::string plugin = " --plugin " + hydra.plugin;
  check_contains(output_of({"train", file, "--run", run, "--set", "train.max_steps=2", "--threads", "1", "--plugin",
                            hydra.plugin}),
                 {" train --run " + run + " --resume --threads 1" + plugin + " --set train.max_steps=0\n"});
  BOOST_TEST(Json::parse(read_file(run + "/plugins.json")).at("hydra").at("file").text() == hydra.plugin);
  // The run has a copy of the plugin; if no plugin is given, errors suggest this copy.
  const std::string copy = run + "/plugin-hydra.so";
  BOOST_TEST((read_file(copy) == read_file(hydra.plugin)));
  check_contains(output_of_unfinished({"eval", run, "--plugin", copy}), {"top-1 accuracy"});
  const std::vector<std::string> said{run, "mechanism 'hydra' of the run is from a plugin", "add --plugin " + copy};
  check_refusal({"eval", run}, said);
  check_refusal({"maps", run, image}, said);
  check_refusal({"train", "--run", run, "--resume"}, said);
  // The suggested path is a single word for the shell.
  const std::string spaced = workshop / "my run";
  std::filesystem::copy(run, spaced);
  check_refusal({"eval", spaced}, {"add --plugin '" + spaced + "/plugin-hydra.so'"});
  check_contains(output_of_unfinished({"eval", run, "--plugin", hydra.plugin}), {"top-1 accuracy"});
  check_contains(output_of({"train", "--run", run, "--resume", "--set", "train.max_steps=3", "--plugin", hydra.plugin}),
                 {"resumed after 2 steps"});
  // The same mechanism in another file, as if recompiled from another source.
  const std::string other = workshop / "other.so";
  write_file(other, read_file(hydra.plugin) + " ");
  check_refusal({"train", "--run", run, "--resume", "--set", "train.max_steps=4", "--plugin", other},
                {run, "mechanism 'hydra' of the run has changed", hydra.plugin});
  const Finished eval = heed_with({"eval", run, "--plugin", other});
  BOOST_TEST(eval.status == 0);
  check_contains(eval.err, {"heed: warning: " + run, "mechanism 'hydra' of the run has changed"});
  output_of_unfinished({"eval", run, "--plugin", hydra.plugin});
  // Without plugins.json, the run counts as started by a heed with this mechanism built in.
  std::filesystem::remove(run + "/plugins.json");
  const EnvironmentVariable plugins("HEED_PLUGINS", hydra.plugin);
  check_changed(run, {{"eval", run}}, "it was built in and is now from the plugin " + hydra.plugin);
}

// A resumed run that was given its own copies keeps them.
BOOST_AUTO_TEST_CASE(plugins_with_equal_file_names_have_separate_copies) {
  const Hydra& hydra = Hydra::once();
  const Workshop workshop;
  const std::string second = workshop / "second/hydra.so", run = workshop / "run";
  std::filesystem::create_directory(workshop / "second");
  write_file(second, replaced(replaced(read_file(hydra.plugin), "hydra", "hydrb"), "wrong", "wronb"));
  Experiment x = workshop.experiment();
  x.model.depth = 2;
  x.attention.mechanism = {"hydra", "hydrb"};
  output_of({"train", write_experiment(workshop, x), "--run", run, "--set", "train.max_steps=2", "--plugin",
             hydra.plugin, "--plugin", second});
  const std::vector<std::string> copies{run + "/plugin-hydra.so", run + "/plugin-hydra-2.so"};
  const auto check_copies = [&] {
    BOOST_TEST((read_file(copies[0]) == read_file(hydra.plugin)));
    BOOST_TEST((read_file(copies[1]) == read_file(second)));
    BOOST_TEST(!std::filesystem::exists(run + "/plugin-plugin-hydra.so"));
  };
  check_copies();
  check_refusal({"eval", run, "--plugin", copies[0]}, {"mechanism 'hydrb' of the run is from a plugin", copies[1]});
  check_contains(output_of({"train", "--run", run, "--resume", "--set", "train.max_steps=3", "--plugin", copies[0],
                            "--plugin", copies[1]}),
                 {"resumed after 2 steps"});
  check_copies();
  check_contains(output_of_unfinished({"eval", run, "--plugin", copies[0], "--plugin", copies[1]}), {"accuracy"});
}

// The command that --images prints ends with the plugin.
BOOST_AUTO_TEST_CASE(the_equivalent_command_names_the_plugin) {
  const Hydra& hydra = Hydra::once();
  const TemporaryDirectory directory;
  for (int i = 0; i < 20; ++i)
    write_image(directory / fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", i), pattern({1, 8, 8}, 7 * i));
  check_contains(output_of({"train", "--check", "--images", directory.path(), "--set", "attention.mechanism=hydra",
                            "--plugin", hydra.plugin}),
                 {" --set attention.mechanism=hydra --plugin " + hydra.plugin + "\n"});
}

// Each command that heed prints after a run, ready to paste, names the plugin. The test images are all equal, so the
// accuracy is no better than guessing; the advice about this also contains a command.
BOOST_AUTO_TEST_CASE(next_commands_name_the_plugin) {
  const Hydra& hydra = Hydra::once();
  const Workshop workshop;
  const std::string file = workshop.data() + "/t10k-images-idx3-ubyte";
  std::string images = read_file(file);
  std::fill(images.begin() + 16, images.end(), 'x');
  write_file(file, images);
  Experiment x = workshop.experiment();
  x.attention.mechanism = {"hydra"}, x.train.epochs = 1;
  const std::string run = workshop / "run", plugin = " --plugin " + hydra.plugin;
  const std::string printed =
      output_of({"train", write_experiment(workshop, x), "--run", run, "--plugin", hydra.plugin});
  check_contains(printed, {" eval " + run + plugin + "\n", " predict " + run + " IMAGE..." + plugin + "\n",
                           " maps " + run + " IMAGE" + plugin + "\n", " report " + run + plugin + "\n"});
  check_contains(in_one_line(printed), {" lr " + run + "/config.toml" + plugin + " suggests one"});
}

// A mechanism that was a plugin when the run started is built in now.
BOOST_AUTO_TEST_CASE(a_plugin_that_is_built_in_now) {
  const Workshop workshop;
  const std::string run = workshop / "run", image = workshop / "a.png";
  write_image(image, pattern({1, 8, 8}, 3));
  output_of({"train", write_experiment(workshop, workshop.experiment()), "--run", run, "--set", "train.max_steps=2",
             "--set", "attention.mechanism=sima"});
  write_file(run + "/plugins.json", R"({"sima": {"file": "/home/ada/sima.so", "checksum": "0badc0de-1024"}})");
  check_changed(run, {{"eval", run}, {"maps", run, image}},
                "it was from the plugin /home/ada/sima.so and is now built in");
}

BOOST_AUTO_TEST_CASE(what_was_made_for_another_heed) {
  const Hydra& hydra = Hydra::once();
  const auto refused = [&](std::size_t member, const std::string& text, const std::string& said) {
    const std::string other = hydra.with(member, text);
    check_refusal({"list", "--plugin", other}, {other, said, text, "compile it again: heed plugin"});
  };
  refused(offsetof(PluginRecord, mark) + plugin_mark_text, "1",
          "compiled for contract '1', but this heed for contract '2'");
  refused(offsetof(PluginRecord, version), "9.9.9", "compiled for version");
  refused(offsetof(PluginRecord, compiler), "9", "compiled by compiler");
  refused(offsetof(PluginRecord, headers), "0badc0de", "compiled with headers whose checksum is");
  refused(offsetof(PluginRecord, flags), "-std=c++98", "compiled with flags");
  for (const char* count : {"\0\0\0\0", "\xff\xff\xff\xff"})
    check_refusal({"list", "--plugin", hydra.with(offsetof(PluginRecord, count), std::string(count, 4))},
                  {"the plugin's record is damaged"});
  check_refusal({"list", "--plugin", hydra.with(0, "Heed")}, {"not compiled by `heed plugin`"});
  // A record's texts may lack terminators.
  check_refusal({"list", "--plugin", hydra.with(offsetof(PluginRecord, version), std::string(16, 'x'))},
                {"compiled for version 'xxxxxxxxxxxxxxxx'"});
}

BOOST_AUTO_TEST_CASE(what_is_no_plugin) {
  const TemporaryDirectory directory;
  const std::string text = directory / "text.so";
  write_file(text, "this is no shared object, however long it is: not even sixty-four bytes of an ELF header");
  check_refusal({"list", "--plugin", text}, {text, "cannot be loaded as a plugin", "invalid ELF header"});
  write_file(text, "");
  check_refusal({"list", "--plugin", text}, {text, "file too short"});
  check_refusal({"list", "--plugin", directory / "none.so"}, {"none.so", "the plugin does not exist"});
  check_refusal({"list", "--plugin", directory.path()}, {"the plugin does not exist"});
  check_refusal({"list", "--plugin", ""}, {"the plugin does not exist"});
  // Loading a truncated file would crash the program.
  const std::string whole = read_file(Hydra::once().plugin);
  for (const std::size_t bytes : {100, 1000, 4000, 8000}) {  // bytes after the loaded segments may be missing
    write_file(text, whole.substr(0, bytes));
    check_refusal({"list", "--plugin", text}, {text, "cannot be loaded as a plugin: the file is truncated"});
  }
  check_refusal({"gradcheck", "add", "--plugin", program()}, {"cannot be loaded as a plugin"});
  const std::string library = Hydra::once().with(0, "Heed");
  check_refusal({"list", "--plugin", library}, {"a shared object, but not compiled by"});
}

BOOST_AUTO_TEST_CASE(what_throws_or_takes_a_name) {
  const Hydra& hydra = Hydra::once();
  const std::string copy = hydra.file("copy.so");
  write_file(copy, read_file(hydra.plugin));
  check_refusal({"list", "--plugin", hydra.plugin, "--plugin", copy},
                {copy, "mechanism 'hydra' already exists", "from " + hydra.plugin});
  {
    const EnvironmentVariable thrown("HYDRA_MAKE", "1");
    check_refusal({"list", "--plugin", hydra.plugin}, {"mechanism 'hydra' cannot be created"});
  }
  const EnvironmentVariable thrown("HYDRA_LOAD", "1");
  check_refusal({"list", "--plugin", hydra.plugin}, {hydra.plugin, "throws an exception during loading"});
}

// The compiler is a script that prints warnings and copies an object. A warning about the header is printed once, even
// if the compiler repeats it, as for several instances of a template; warnings about other files are not printed.
BOOST_AUTO_TEST_CASE(warnings_are_those_about_the_header) {
  const Hydra& hydra = Hydra::once();
  const TemporaryDirectory directory;
  const std::string script = directory / "compiler", output = directory / "my own.so", header = hydra.header;
  write_file(directory / "says", header + ":7:12: warning: unused variable 'a'\n" +
                                     "/usr/include/c++/12/vector:9:1: warning: other\n" + header +
                                     ": In function 'f':\n" + header + ":7:12: warning: unused variable 'a'\n" +
                                     header + ":9:3: warning: unused variable 'b'\n");
  write_file(script, fmt::format("#!/bin/sh\ncat '{}' >&2\nwhile [ \"$1\" != -o ]; do shift; done\ncp '{}' \"$2\"\n",
                                 (directory / "says").string(), hydra.plugin));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const EnvironmentVariable compiler("CXX", script);
  const std::string printed = output_of({"plugin", header, "-o", output});
  BOOST_TEST(printed.starts_with("warning: " + header + ":7: unused variable 'a'\nwarning: " + header +
                                 ":9: unused variable 'b'\n" + output + ": compiled in "),
             printed);
  check_contains(printed, {" gradcheck hydra --plugin '" + output + "'\n"});  // a command to paste
}

// The compiler is a script that copies an object. A plugin that cannot be loaded leaves the output file unchanged.
BOOST_AUTO_TEST_CASE(only_a_plugin_that_can_be_loaded_is_written) {
  const Hydra& hydra = Hydra::once();
  const TemporaryDirectory directory;
  const std::string script = directory / "compiler", object = directory / "object", output = directory / "mine.so",
                    whole = read_file(hydra.plugin);
  write_file(script, fmt::format("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncp '{}' \"$2\"\n", object));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const EnvironmentVariable compiler("CXX", script);
  const std::vector<std::string> words{"plugin", hydra.header, "-o", output};
  const auto refused = [&](const std::string& compiled, const std::string& said) {
    write_file(object, compiled);
    for (const bool exists : {false, true}) {
      std::filesystem::remove(output);
      if (exists) write_file(output, "previous");
      check_refusal(words, {output + ": ", said});
      BOOST_TEST(std::filesystem::exists(output) == exists);
      if (exists) BOOST_TEST(read_file(output) == "previous");
    }
  };
  refused("no object", "cannot be loaded as a plugin");
  refused(whole.substr(0, 4000), "the file is truncated");
  {
    const EnvironmentVariable thrown("HYDRA_MAKE", "1");
    refused(whole, "mechanism 'hydra' cannot be created");
  }
  output_of(words);
  BOOST_TEST((read_file(output) == whole));
}

// The compiler's message is printed as one line.
BOOST_AUTO_TEST_CASE(the_first_error) {
  const TemporaryDirectory directory;
  const std::string header = directory / "mine.h";
  write_file(header, "class Mine {};\ntemplate MechanismEntry mechanism_entry<Mine>();\n");
  const auto said = [&](const std::string& errors, const std::string& line) {
    const EnvironmentVariable compiler("CXX", failing_compiler(directory, errors));
    check_refusal({"plugin", header}, {"heed: " + line + "\n"});
  };
  said(header + ":7:12: error: 'qn' was not declared in this scope; did you mean 'qm'?\n",  //
       header + ":7: 'qn' was not declared in this scope; did you mean 'qm'?");
  said("In file included from unit.cpp:1:\n" + header + ":3:10: fatal error: nothing.h: No such file or directory\n",
       header + ":3: nothing.h: No such file or directory");
  said("/usr/include/c++/12/sstream: In member function 'f':\n" + header +
           ":9:5:   required from here\n/usr/include/c++/12/vector:99:1: error: no match for 'operator*'\n",
       header + ":9: no match for 'operator*' (found at /usr/include/c++/12/vector:99)");
  said("heed/attention/plugin.h:60:3: error: static assertion failed: the mechanism has no summary\n",
       header + ": the mechanism has no summary");
  said("cc1plus: out of memory\n", header + ": the compiler fails: cc1plus: out of memory");
  BOOST_TEST(!std::filesystem::exists(directory / "mine.so"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_compiled) {
  const TemporaryDirectory directory;
  const std::string header = directory / "mine.h";
  check_refusal({"plugin", header}, {header, "the file does not exist"});
  write_file(header, "class Mine {};\n");
  check_refusal({"plugin", header}, {header, "the mechanism's class is not named"});
  const std::string text = "template MechanismEntry mechanism_entry<Mine>();\n", object = directory / "mine.so";
  write_file(header, text);
  write_file(object, text);
  const EnvironmentVariable compiler("CXX", directory / "no-compiler");
  // The header is not overwritten, even if it has the name of the default output.
  check_refusal({"plugin", header, "-o", header}, {"-o " + header + ": is also HEADER; expected another file"});
  check_refusal({"plugin", object}, {"-o " + object + ": is also HEADER; expected another file"});
  check_refusal({"plugin", header},
                {"no-compiler", "cannot be started", "; install a compiler, or name another in CXX"});
}

BOOST_AUTO_TEST_SUITE_END()
