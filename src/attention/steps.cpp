#include "heed/attention/steps.h"

#include <utility>

namespace heed {

namespace {

thread_local const StepObserver* observer = nullptr;

}  // namespace

StepObserver::StepObserver(See see) : see_(std::move(see)), outer_(std::exchange(observer, this)) {}

StepObserver::~StepObserver() { observer = outer_; }

const StepObserver* StepObserver::current() { return observer; }

}  // namespace heed
