// The verbs of the program. Each adds itself to the command line; what it returns is the exit status.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heed::cli {

/// Exit statuses.
inline constexpr int ok = 0, check_failed = 1, bad_input = 2, diverged = 3, interrupted = 130;

/// Registers a verb: the function runs when the verb was given and returns the exit status.
using Verb = std::function<int()>;
using AddVerb = std::function<void(CLI::App* command, Verb run)>;

void add_train(CLI::App& app, const AddVerb& add);
void add_eval(CLI::App& app, const AddVerb& add);
void add_predict(CLI::App& app, const AddVerb& add);
void add_gradcheck(CLI::App& app, const AddVerb& add);
void add_list(CLI::App& app, const AddVerb& add);
void add_cost(CLI::App& app, const AddVerb& add);
void add_bench(CLI::App& app, const AddVerb& add);
void add_maps(CLI::App& app, const AddVerb& add);
void add_spectrum(CLI::App& app, const AddVerb& add);
void add_residual(CLI::App& app, const AddVerb& add);
void add_scaling(CLI::App& app, const AddVerb& add);
void add_probe(CLI::App& app, const AddVerb& add);

/// How the program was called, for hints that can be pasted.
std::string& program_name();

/// --set key=value, repeatable, one value per occurrence.
CLI::Option* add_sets(CLI::App* command, std::vector<std::string>& sets, const std::string& meaning);

/// The values of --set OPTION=VALUE by name; a value may stand in quotes.
std::map<std::string, std::string> parse_options(const std::vector<std::string>& sets);

/// More threads than any machine that heed runs on has cores; the system may refuse to start more.
inline constexpr int max_threads = 1024;

/// --threads N; 0 leaves the number of cores.
CLI::Option* add_threads(CLI::App* command, int& threads);
void use_threads(int threads);

}  // namespace heed::cli
