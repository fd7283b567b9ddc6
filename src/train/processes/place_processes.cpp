// Assignment of a host's cores to its processes.
#include "heed/train/processes/processes.h"
#include "launcher.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace heed {

Cores part_of_cores(int place, int processes, int cores) {
  const int first = cores * place / processes;
  return {first, std::max(1, cores * (place + 1) / processes - first)};
}

Place place_processes(Ranks& ranks, int threads) {
  if (launched() == 0) return {};
  // mpirun may have bound each process to one core, so its processes divide the cores of mpirun, their parent.
  const bool bound = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  cpu_set_t cores;
  sched_getaffinity(bound ? getppid() : 0, sizeof cores, &cores);

  const std::vector<std::string> hosts = ranks.texts(host_name());
  const auto self = hosts.begin() + ranks.rank();
  const int on_host = static_cast<int>(std::count(hosts.begin(), hosts.end(), *self));
  const int place = static_cast<int>(std::count(hosts.begin(), self, *self)), all = CPU_COUNT(&cores);
  const Cores own = part_of_cores(place, on_host, all);
  if (threads <= own.count && on_host <= all)
    for (int core = 0, number = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &cores)) {
        if (number < own.first || number >= own.first + own.count) CPU_CLR(core, &cores);
        ++number;
      }
  sched_setaffinity(0, sizeof cores, &cores);
  return {static_cast<int>(std::set<std::string>(hosts.begin(), hosts.end()).size()), own.count};
}

}  // namespace heed
