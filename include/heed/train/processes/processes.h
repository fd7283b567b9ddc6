// Processes started together by mpirun or Slurm's srun, on one or several hosts. Only this header's source uses MPI;
// without MPI there is one process.
#pragma once

#include "heed/train/processes/ranks.h"

#include <exception>

namespace heed {

/// Returns the processes started together with this one, or one_process(). Throws Error if there are several and this
/// build has no MPI.
Ranks& started_processes();

/// Thrown by an exchange if another process has failed: this process must end.
struct OtherFailed : std::exception {
  const char* what() const noexcept override { return "another process has failed"; }
};

/// Exit status of a process, and its error message if it failed.
struct Ending {
  int status = 0;
  std::string error{};
};

/// Ends the communication; must be the last call in each process. Process 0 gets the status and error of the failed
/// process of lowest rank or, if none failed, its own; the others get success. A wait for a failed process throws
/// OtherFailed.
Ending end_together(const Ending& own);

/// Cores [first, first + count) among those available on a host.
struct Cores {
  int first = 0, count = 0;
};

/// Returns the cores of process `place` among `processes` on a host with `cores` cores. The ranges of different
/// processes are disjoint, unless there are fewer cores than processes: then each range is one core.
Cores part_of_cores(int place, int processes, int cores);

/// Number of hosts, and number of cores of this process; 0 cores if none are assigned.
struct Place {
  int hosts = 1, cores = 0;
};

/// Divides the cores of each host among its processes and binds this process to its cores. Does not bind it if it runs
/// more `threads` (0: one per core) than it has cores, or if the host has more processes than cores.
Place place_processes(Ranks& ranks, int threads);

/// Returns the words of a command that starts `processes` processes on this host, to precede the program's name; empty
/// without MPI.
std::vector<std::string> launch_words(int processes);

}  // namespace heed
