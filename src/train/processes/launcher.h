// Environment variables of the launchers mpirun and srun, and the functions that use MPI.
#pragma once

#include "heed/train/processes/processes.h"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace heed {

/// Functions of processes.cpp, as libheed-mpi.so exports them.
struct ProcessFunctions {
  Ranks& (*started)();
  Ending (*end)(const Ending&);
  std::vector<std::string> (*launch)(int);
};

/// Returns the value of the first of these environment variables that is set, or `otherwise` if none is set.
inline int told(std::initializer_list<const char*> names, int otherwise) {
  for (const char* const name : names)
    if (const char* const number = std::getenv(name)) return std::atoi(number);
  return otherwise;
}

/// Returns the number of processes started by the launcher; 0 without a launcher.
inline int launched() { return told({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 0); }

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace heed
