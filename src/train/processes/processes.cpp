#include "heed/train/processes/processes.h"

#include "launcher.h"

#ifdef HEED_MPI
#include "heed/io/file.h"
#include "heed/train/runs/commit.h"
#include "tree_exchange.h"

#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <iterator>
#include <optional>
#include <thread>
#else
#include <dlfcn.h>
#endif

namespace heed {

#ifdef HEED_MPI

namespace {

using Clock = std::chrono::steady_clock;

/// Returns a text that identifies the host and its process namespace, in which process ids are unique.
std::string where_numbers_count() {
  char space[64] = {};
  return host_name() + (readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0 ? space : "");
}

/// Throws Error unless all processes run the same build: rounding may differ between builds, and weights would diverge.
void require_one_program(Ranks& ranks) {
  const std::string own = std::to_string(std::hash<std::string>{}(read_file("/proc/self/exe"))) + source_commit();
  const std::vector<std::string> programs = ranks.texts(own), hosts = ranks.texts(host_name());
  for (std::size_t i = 1; i < programs.size(); ++i)
    require(programs[i] == programs[0],
            "process {} on {} runs a different build from process 0 on {}; all must run the same program", i, hosts[i],
            hosts[0]);
}

/// The run's other processes on this host. Those on other hosts are watched by the launcher.
class Neighbours {
 public:
  explicit Neighbours(Ranks& ranks) : rank_(ranks.rank()) {
    const std::vector<std::string> hosts = ranks.texts(where_numbers_count()),
                                   ids = ranks.texts(std::to_string(getpid()));
    for (int i = 0; i < ranks.count(); ++i)
      if (i != rank_ && hosts[i] == hosts[rank_])
        others_.push_back({i, ids[i], static_cast<int>(syscall(SYS_pidfd_open, std::stoi(ids[i]), 0))});
  }

  /// Ends this process if another one on this host has died. The lowest living rank on this host reports the death in
  /// one line, unless several processes have died: one of them has then reported the first death.
  void require_alive() const {
    const auto dead = [](const Other& other) {
      pollfd file{other.file, POLLIN, 0};
      return other.file >= 0 && poll(&file, 1, 0) == 1;
    };
    std::vector<Other> found;
    std::copy_if(others_.begin(), others_.end(), std::back_inserter(found), dead);
    if (found.empty()) return;
    const Other& first = found.front();
    const bool speaks = std::none_of(others_.begin(), others_.end(),
                                     [&](const Other& o) { return o.rank < rank_ && o.rank != first.rank; });
    if (found.size() == 1 && speaks)
      fmt::print(stderr,
                 "heed: process {} (pid {} on {}) has died, so all processes end; continue the run with --resume\n",
                 first.rank, first.id, host_name());
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // lets another process report it first
    _exit(1);
  }

 private:
  struct Other {
    int rank;
    std::string id;
    int file;  ///< becomes readable when the process ends; -1: unsupported
  };
  int rank_;
  std::vector<Other> others_;
};

class MpiRanks : public Ranks, private Wire {
 public:
  MpiRanks() : rank_(number_by(MPI_Comm_rank)), count_(number_by(MPI_Comm_size)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &sums_);
    MPI_Comm_dup(MPI_COMM_WORLD, &alarms_);
  }

  /// Makes every wait check that the other processes on this host are alive.
  void watch() { neighbours_.emplace(*this); }

  int count() const override { return count_; }
  int rank() const override { return rank_; }
  void sum(std::span<float> numbers) override { exchange_.sum(numbers); }
  void sum(std::span<double> numbers) override {
    if (std::has_single_bit(static_cast<unsigned>(count_))) return exchange_.sum(numbers);
    // A tree needs a power of two. Any other number of processes is reported as an error later; until then, MPI sums.
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, sums_);
  }

  // Broadcasts by a tree: each process that has the bytes sends them to the process `step` ranks after it.
  void share(std::span<std::byte> bytes) override {
    constexpr std::size_t part = std::size_t{1} << 30;  // message sizes are ints
    for (; bytes.size() > part; bytes = bytes.subspan(part)) share(bytes.first(part));
    int step = count_ / 2;
    for (; step > 0 && rank_ % (2 * step) != 0; step /= 2)
      if (rank_ % (2 * step) == step) start(rank_ - step, {}, bytes), finish();
    for (; step > 0; step /= 2) start(rank_ + step, bytes, {}), finish();
  }

  /// Notifies the other processes of a failure.
  void raise_alarm() {
    for (int i = 0; i < count_; ++i)
      if (MPI_Request request; i != rank_) {
        MPI_Isend(nullptr, 0, MPI_BYTE, i, 0, alarms_, &request);
        MPI_Request_free(&request);
      }
  }

 private:
  static int number_by(int (*ask)(MPI_Comm, int*)) {
    int number = 0;
    ask(MPI_COMM_WORLD, &number);
    return number;
  }

  struct Exchange {
    MPI_Request requests[2];  ///< receive, send
  };

  void start(int partner, std::span<const std::byte> sent, std::span<std::byte> received) override {
    Exchange& exchange = under_way_.emplace_back();
    MPI_Irecv(received.data(), static_cast<int>(received.size()), MPI_BYTE, partner, 0, sums_, &exchange.requests[0]);
    MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, partner, 0, sums_, &exchange.requests[1]);
  }

  void finish() override {
    const Clock::time_point begin = Clock::now();
    for (Index tries = 0;; ++tries) {
      int done = 0;
      MPI_Testall(2, under_way_.front().requests, &done, MPI_STATUSES_IGNORE);
      if (done) break;
      if (tries < 100) continue;
      // Other processes may need this core.
      const auto waited = Clock::now() - begin;
      if (waited < std::chrono::milliseconds(2))
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (waited > std::chrono::milliseconds(10)) look_around();
    }
    under_way_.pop_front();
  }

  /// Throws OtherFailed if another process has reported a failure; ends this process if another one has died.
  void look_around() {
    int raised = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, alarms_, &raised, MPI_STATUS_IGNORE);
    if (!raised) return neighbours_ ? neighbours_->require_alive() : void();
    // This process may have the same failure; it then has half a second to report its own error.
    if (!alarm_) alarm_ = Clock::now();
    if (Clock::now() - *alarm_ < std::chrono::milliseconds(500)) return;
    for (Exchange& exchange : under_way_) MPI_Cancel(&exchange.requests[0]);  // its buffer is about to be released
    under_way_.clear();
    throw OtherFailed();
  }

  int rank_, count_;
  MPI_Comm sums_, alarms_;
  std::optional<Neighbours> neighbours_;
  TreeExchange exchange_{*this, rank_, count_};
  std::deque<Exchange> under_way_;
  std::optional<Clock::time_point> alarm_;  ///< time when another process's failure was first seen
};

/// Separate communicators for work and for ending, so that a message abandoned by an interrupted process cannot match a
/// later one.
struct Exchanges {
  MpiRanks working, closing;
};
std::optional<Exchanges> exchanges;  ///< none if this process was started alone

}  // namespace

Ranks& started_processes() {
  static Ranks& ranks = []() -> Ranks& {
    if (launched() <= 1) return one_process();
    int threads = 0, size = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(size == launched(), "{} processes were started, but MPI reports {}; under Slurm, try srun --mpi=pmix",
            launched(), size);
    exchanges.emplace();
    exchanges->working.watch();
    exchanges->closing.watch();
    require_one_program(exchanges->working);
    return exchanges->working;
  }();
  return ranks;
}

Ending end_together(const Ending& own) {
  if (!exchanges) return own;
  if (!own.error.empty()) exchanges->working.raise_alarm();
  MpiRanks& closing = exchanges->closing;
  const std::vector<std::string> hosts = closing.texts(host_name()), errors = closing.texts(own.error),
                                 statuses = closing.texts(std::to_string(own.status));
  Ending all = own;
  const auto failed = std::find_if(errors.begin(), errors.end(), [](const std::string& e) { return !e.empty(); });
  if (failed != errors.end()) {
    const auto first = failed - errors.begin();
    all.status = std::stoi(statuses[first]);
    all.error = *failed;
    const bool everywhere =
        std::all_of(errors.begin(), errors.end(), [&](const std::string& e) { return e == *failed; });
    if (!everywhere && first > 0) all.error += fmt::format(" (process {} on {})", first, hosts[first]);
  }
  MPI_Finalize();
  // A launcher terminates all processes soon after one ends with an error, so process 0, which reports it, ends last.
  if (!closing.writes()) return {};
  if (all.status != 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return all;
}

std::vector<std::string> launch_words(int processes) {
  return {"mpirun", "--oversubscribe", "--allow-run-as-root", "-np", std::to_string(processes)};
}

/// Functions of this file, exported by libheed-mpi.so.
extern "C" const ProcessFunctions heed_processes{started_processes, end_together, launch_words};

#else

namespace {

/// Returns the functions of a package's libheed-mpi.so (this file, compiled with MPI); null if it or MPI is not
/// installed.
const ProcessFunctions* with_mpi() {
  static void* const library = dlopen("libheed-mpi.so", RTLD_NOW);
  return library != nullptr ? static_cast<const ProcessFunctions*>(dlsym(library, "heed_processes")) : nullptr;
}

}  // namespace

Ranks& started_processes() {
  if (launched() > 1 && with_mpi()) return with_mpi()->started();
  require(launched() <= 1,
          "{} processes were started, but this build has no MPI; `make deps MPI=1 && make MPI=1` builds "
          "build-mpi/heed, which has MPI",
          launched());
  return one_process();
}

// Without MPI the processes cannot communicate, so process 0 reports the error. The others must not fail earlier, or
// the launcher would end process 0.
Ending end_together(const Ending& own) {
  if (launched() > 1 && with_mpi()) return with_mpi()->end(own);
  return launched() <= 1 || told({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0) == 0 ? own : Ending{};
}

std::vector<std::string> launch_words(int processes) {
  return with_mpi() ? with_mpi()->launch(processes) : std::vector<std::string>{};
}

#endif

}  // namespace heed
