// What the launcher that has started this process, mpirun or srun, says in the environment.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace heed {

/// The number that stands under the first of these names that is there; `otherwise` where none is.
inline int told(std::initializer_list<const char*> names, int otherwise) {
  for (const char* const name : names)
    if (const char* const number = std::getenv(name)) return std::atoi(number);
  return otherwise;
}

/// How many processes it has started; 0: there is none.
inline int launched() { return told({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 0); }

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace heed
