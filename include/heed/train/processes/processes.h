// Processes that mpirun, or Slurm's srun, has started together: on one host or on many. This and its source file are
// all that knows of MPI; built without it, there is one process.
#pragma once

#include "heed/train/processes/ranks.h"

#include <exception>

namespace heed {

/// All processes that were started together with this one, or one_process(). Throws Error where there are several and
/// this build has no MPI.
Ranks& started_processes();

/// Is thrown by an exchange when another process has failed. There is nothing left to do but to end.
struct OtherFailed : std::exception {
  const char* what() const noexcept override { return "another process has failed"; }
};

/// Exit status of a process, and what it has to say where it failed.
struct Ending {
  int status = 0;
  std::string error{};
};

/// How all processes end, each of which calls this last: process 0 with the status and the error of the first that
/// failed, the others with nothing. Processes that wait for one that failed are woken by OtherFailed.
Ending end_together(const Ending& own);

/// Cores [first, first + count) of those that the processes of a host may use.
struct Cores {
  int first = 0, count = 0;
};

/// The part of process `place` of `processes` on a host with so many cores: side by side, and none twice, unless there
/// are fewer than processes. Then it is one.
Cores part_of_cores(int place, int processes, int cores);

/// How many hosts there are, and how many cores this process is to use; none where nobody shares them out.
struct Place {
  int hosts = 1, cores = 0;
};

/// Shares the cores of each host out among its processes, and keeps this one to its part unless it is to have more
/// `threads` than there are cores in it; 0: as many. Where there are more processes than cores, they are not kept
/// apart.
Place place_processes(Ranks& ranks, int threads);

/// The words to start so many processes on this host with, to go before the program's name; none without MPI.
std::vector<std::string> launch_words(int processes);

}  // namespace heed
