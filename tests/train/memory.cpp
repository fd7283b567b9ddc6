// Training reuses its memory: after two steps have determined the required size, the training thread allocates nothing,
// neither in a step nor for its batch. (The end of an epoch evaluates and writes files, which allocates.)
//
// The allocation functions of this test program count the calls of each thread and forward them to glibc.
#include "support/command.h"
#include "support/training.h"

#include "heed/nn/vit.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/optimizer.h"
#include "heed/train/step.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace {

constinit thread_local long allocations = 0;

}  // namespace

#ifndef HEED_SANITIZED
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t align, std::size_t size) {
  ++allocations;
  return __libc_memalign(align, size);
}
void* aligned_alloc(std::size_t align, std::size_t size) { return memalign(align, size); }
int posix_memalign(void** memory, std::size_t align, std::size_t size) {
  *memory = memalign(align, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset) {
  ++allocations;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}
void* mmap64(void* address, std::size_t length, int protection, int flags, int file, off_t offset) {
  return mmap(address, length, protection, flags, file, offset);
}

}  // extern "C"
#endif

using namespace heed;
using namespace heed::test;

namespace {

/// Observer that counts this thread's allocation calls after the second step, from the end of one step to the end of
/// the next step of the same epoch, including the calls for its batch.
class Watch : public TrainObserver {
 public:
  void step(const StepReport& report) override {
    if (report.step > 2 && report.batch > 1) calls += allocations - before_;
    if (report.step > 2 && report.batch > 1) ++steps;
    before_ = allocations;
  }

  long calls = 0, steps = 0;

 private:
  long before_ = 0;
};

void check(const Experiment& x, const std::string& directory) {
  Watch watch;
  TrainOptions options;
  options.run = directory;
  train(x, options, watch);
  BOOST_TEST(watch.steps == 5 + 6 + 6);
  BOOST_TEST(watch.calls == 0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory, *boost::unit_test::precondition(without_sanitizer))

// The counters detect allocations.
BOOST_AUTO_TEST_CASE(allocations_are_counted) {
  const auto calls_of = [](auto f) {
    const long before = allocations;
    f();
    return allocations - before;
  };
  BOOST_TEST(calls_of([] { free(malloc(10)); }) == 1);
  BOOST_TEST(calls_of([] { free(realloc(calloc(3, 5), 30)); }) == 2);
  BOOST_TEST(calls_of([] { ::operator delete(::operator new(10)); }) == 1);
  BOOST_TEST(calls_of([] { Buffer<float> buffer(10); }) == 1);
  BOOST_TEST(calls_of([] { std::string text(100, 'x'); }) == 1);
  BOOST_TEST(calls_of([] { munmap(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096); }) == 1);
}

BOOST_AUTO_TEST_CASE(no_allocation_after_the_second_step) {
  for (const int count : {1, 2}) {
    const WithThreads with(count);
    const Workshop workshop;
    Experiment x = workshop.experiment();
    check(x, workshop / "plain");
    x.train.log_steps = true;
    check(x, workshop / "log");
    x.train.dtype = "f64";
    check(x, workshop / "double");
    ask_for_everything(x);
    x.train.dtype = "f32";
    x.model.pool = "mean";
    x.optim.name = "sgd";
    x.model.act = "relu";
    check(x, workshop / "everything");
  }
}

// Lanes in lockstep, each with a stack, and a teacher that computes its outputs before each step.
BOOST_AUTO_TEST_CASE(nor_with_batch_norm_and_a_teacher) {
  for (const int count : {1, 2}) {
    const WithThreads with(count);
    const Workshop workshop;
    Experiment x = dino_with_batch_norm(workshop);
    x.train.method = "supervised";
    check(x, workshop / "batch-norm");
    x.train.recompute = true;
    check(x, workshop / "recompute");
    for (Experiment teacher : {dino_experiment(workshop), dino_with_batch_norm(workshop)}) {
      teacher.dino.freeze_last_layer = 0;  // a step with frozen tensors allocates their list
      check(teacher, workshop / (teacher.model.family + "-teacher"));
    }
  }
}

// Nine million weights: threads share the optimizer step and the sum of the lanes' gradients, or, if lanes are
// streamed, the operations of each lane.
BOOST_AUTO_TEST_CASE(nor_with_a_large_model) {
  const WithThreads with(2);
  const Workshop workshop(10, 10);
  Experiment x = workshop.experiment();
  x.model.dim = 768;
  x.model.hidden = 4096;
  x.model.depth = 1;
  const VisionTransformer model(x.model, x.attention);
  Parameters<float> parameters(model.parameters());
  Optimizer<float> optimizer(x.optim, parameters);
  const Tensor<float> images(Shape{4, 1, 8, 8});
  Tensor<float> targets(Shape{4, 10});
  for (Index i = 0; i < 4; ++i) targets[10 * i] = 1;
  const int labels[4] = {};
  const ClassificationBatch<float> batch({images.view()}, std::as_const(targets).view(), labels, 0.1);
  for (const LaneMemory memory : {LaneMemory::per_lane, LaneMemory::streamed}) {
    BatchGradient<float> gradient(model, parameters, 4, {.microbatch = 2}, one_process(), memory);
    for (int step = 1; step <= 4; ++step) {
      const long before = allocations;
      gradient.run(batch, RandomStream(1));
      optimizer.step(parameters, gradient.gradients(), {1e-3, 0.05}, clip_by_norm(gradient.gradients(), 1).factor);
      if (step > 2) BOOST_TEST(allocations == before);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
