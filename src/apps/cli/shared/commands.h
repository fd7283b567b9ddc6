// Commands of the program. Each adds itself to the command line; its action returns the exit status.
#pragma once

#include "command_line.h"

#include "heed/base/printable.h"
#include "heed/train/processes/processes.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heed::cli {

/// Exit statuses.
inline constexpr int ok = 0, check_failed = 1, bad_input = 2, diverged = 3, undecided = 4, interrupted = 130;

/// Function that adds a command to the program.
using AddCommand = void(Command program);
AddCommand add_train, add_sweep, add_compare, add_diff, add_verdict, add_report, add_lr, add_eval, add_features,
    add_predict, add_generate, add_image, add_maps, add_spectrum, add_residual, add_gradcheck, add_selftest, add_list,
    add_plugin, add_lab, add_grade, add_convert, add_probe, add_cost, add_bench, add_scaling, add_sequence_data;
void add_help(Command program, const CommandLine& line);
void add_completion(Command program, const CommandLine& line);

/// Returns the name by which the program was called, as a word for the shell (shell_word()), for commands to paste.
std::string& program_name();

/// Prints the warnings so far (base/warnings.h) on stderr. Called before training, and after other commands unless they
/// throw Error, which is printed as a single line without warnings.
void print_warnings();

/// Prints an error as one line on stderr, escaping names and paths; returns `status`.
int report_error(std::string what, int status = bad_input);

/// Calls `work` and returns its result or, if it throws, the exit status and message for the exception: success without
/// a message for OtherFailed, since the other process reports its failure.
Ending ending_of(const std::function<Ending()>& work);

/// Adds --set key=value, repeatable, one value per occurrence; `offered` are keys, and keys with values, for shell
/// completion.
void add_sets(Command command, std::vector<std::string>& sets, const std::string& meaning,
              const std::vector<std::string>& offered = {});

/// Return words for shell completion: arguments of --set, such as "optim.lr=" and, for keys with fixed values,
/// "optim.name=sgd"; the fixed values of a key; and the mechanisms.
std::vector<std::string> config_keys();
std::vector<std::string> config_values(const std::string& key);
std::vector<std::string> mechanism_names();

/// Returns the values of --set OPTION=VALUE by name; a value may be in quotes.
std::map<std::string, std::string> parse_options(const std::vector<std::string>& sets);

/// Adds --threads N. use_threads() sets the number of threads; 0 stands for the option's default or, with several
/// processes, for this process's share of its host's cores.
void add_threads(Command command, int& threads);
Place use_threads(int threads);

}  // namespace heed::cli
