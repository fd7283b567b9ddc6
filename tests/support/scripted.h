// A scripted task that records its inputs.
#pragma once

#include "support/tagger.h"

#include <functional>
#include <optional>

namespace heed::test {

/// Scripted behaviour of a task.
struct Script {
  std::vector<double> right;                       ///< number of correct answers, of ten, in each validation
  std::function<void(const Tape<double>&)> watch;  ///< called for each pass of an evaluation
  std::function<bool(Index batch)> endless_slope;  ///< true for training batches (from 0) whose gradient is infinite
};

class ScriptedBatch : public TaskBatch<double> {
 public:
  ScriptedBatch(const TaskBatch<double>& of, const Script& script, double right, bool endless_slope)
      : of_(of), script_(script), right_(right), endless_slope_(endless_slope) {}

  Index size() const override { return of_.size(); }
  Index terms() const override { return of_.terms(); }
  Var<double> logits(const Model& model, Tape<double>& tape, ExampleRange microbatch,
                     const AttentionVisitor<double>* visit) const override {
    const Var<double> logits = of_.logits(model, tape, microbatch, visit);
    if (!tape.training() && script_.watch) script_.watch(tape);
    return logits;
  }
  Var<double> loss(Var<double> logits, ExampleRange microbatch, Index terms) const override {
    const Var<double> loss = of_.loss(logits, microbatch, terms);
    if (!endless_slope_) return loss;
    Tape<double>& tape = logits.tape();
    return tape.record(
        {"endless_slope", {}}, Shape{}, {loss}, [=](double* y) { *y = *loss.data(); },
        [=, &tape](const Adjoint<double>&) {
          if (const auto d = tape.target(loss)) write<double>(d.update, *d.data, INFINITY);
        });
  }
  Index correct(View<const double> logits, ExampleRange microbatch) const override {
    return of_.correct(logits, microbatch);
  }
  Score judge(View<const double> logits, ExampleRange microbatch, std::span<double> counts) const override {
    if (right_ < 0) return of_.judge(logits, microbatch, counts);
    const double share = static_cast<double>(microbatch.count) / static_cast<double>(size());
    return {10 * share, share, right_ * share};
  }

 private:
  const TaskBatch<double>& of_;
  const Script& script_;
  double right_;
  bool endless_slope_;
};

class ScriptedSource : public BatchSource<double> {
 public:
  ScriptedSource(std::unique_ptr<BatchSource<double>> of, const Script& script, Part part)
      : of_(std::move(of)), script_(script), part_(part) {}

  Index examples() const override { return of_->examples(); }
  Index batches() const override { return of_->batches(); }
  void start(Index epoch, Index first_batch) override {
    of_->start(epoch, first_batch);
    ++starts_;
  }
  const TaskBatch<double>* next() override {
    const TaskBatch<double>* const batch = of_->next();
    if (!batch) return nullptr;
    const bool scripted = part_ == Part::validation && !script_.right.empty();
    const double right = scripted ? script_.right.at(starts_ - 1) : -1;
    const bool endless = part_ == Part::train && script_.endless_slope && script_.endless_slope(taken_++);
    return &batch_.emplace(*batch, script_, right, endless);
  }

 private:
  std::unique_ptr<BatchSource<double>> of_;
  const Script& script_;
  Part part_;
  std::size_t starts_ = 0;
  Index taken_ = 0;
  std::optional<ScriptedBatch> batch_;
};

/// Returns the concatenated elements of all tensors.
inline std::vector<double> numbers_of(const Parameters<double>& parameters) {
  std::vector<double> numbers;
  for (ParameterId id = 0; id < parameters.list().size(); ++id)
    numbers.insert(numbers.end(), parameters[id].begin(), parameters[id].end());
  return numbers;
}

struct ScriptedTask : Tagging {
  ScriptedTask(const Model& model, Index batch, const Script& script) : Tagging(model, batch), script(script) {}
  std::unique_ptr<BatchSource<double>> open(Part part, bool training) override {
    return std::make_unique<ScriptedSource>(Tagging::open(part, training), script, part);
  }
  void after_step(const Parameters<double>& weights, const StepPlace& place) override {
    Tagging::after_step(weights, place);
    steps.push_back(numbers_of(weights));
  }
  const Script& script;
  std::vector<std::vector<double>> steps;  ///< weights after each step
};

}  // namespace heed::test
