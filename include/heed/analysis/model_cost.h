// Cost of a model, derived from the code that runs: a dry run executes the model's forward pass on the tape, where
// every operation states its closed form (cost/counts.h). The additions by which the tape sums gradients are included.
#pragma once

#include "heed/cost/counts.h"
#include "heed/nn/model.h"

#include <string>
#include <vector>

namespace heed {

/// Operations that are counted: only matrix products, convolutions, distances and weighted sums, as in papers; or every
/// floating-point operation of the textbook algorithm.
enum class Convention { contractions, all };

/// Returns a description: "every floating-point operation, by the textbook algorithm; float may use a faster one".
std::string counted(Convention convention);

/// Pass that is counted: from an example to its logits as in inference; from the gradient of the logits to that of
/// every weight; or both, as in a training step. Loss and optimiser are not counted.
enum class CostPass { forward, backward, step };

/// Subject of a row in a cost table: a layer (named as in timm), a block, or a kind of operation.
enum class CostGroup { layer, block, kind };

/// Elements that an operation transfers to and from memory, if it reads each operand and weight once, writes its result
/// and saved tensors once, and nothing stays cached between operations. Its backward pass reads the result's gradient,
/// the operands and the saved tensors, and writes each operand's gradient, which it reads first if it accumulates.
struct Traffic {
  Index activations = 0;  ///< per example
  Index weights = 0;      ///< once per batch

  Traffic& operator+=(const Traffic& b) {
    activations += b.activations, weights += b.weights;
    return *this;
  }
};

/// One operation on one example. Its backward cost is zero if no gradient passes through it, and includes the additions
/// of an operand's gradient to that of another use of the same tensor.
struct OperationCost {
  std::string layer;  ///< "blocks.0.attn.qkv"
  std::string operation;
  Cost cost;
  Traffic forward, backward;
  Index parameters = 0;  ///< trainable elements that no earlier operation uses
  Index held = 0;        ///< elements held in memory: its result and saved tensors
  double rows = 0;       ///< elements of the rows that its weights multiply; for a convolution, elements of all windows
};

/// All operations of a model on one example, in execution order. A batch of n examples costs n times as much, plus
/// n - 1 additions per weight to sum the gradients.
struct ModelCost {
  std::string example;                             ///< noun for an example, such as "image"; costs are per example
  std::vector<OperationCost> inference, training;  ///< training includes dropout, if the experiment has it
  Index parameters = 0;                            ///< trainable elements
  Index kept = 0;                                  ///< elements of all results and saved tensors, in training
};

/// Returns the cost of a model. Throws Error if counts could overflow 64 bits.
ModelCost cost_of(const Model& model);

/// Returns the operations of one example's forward pass up to the logits, as recorded by a dry run on the tape: each
/// separately or, if `as_run`, as in operations_as_run().
std::vector<TraceEntry> trace_of(const Model& model, bool training, bool as_run = false);

/// Returns the operations of one example as executed. They differ from those that papers count: fused operations count
/// as one operation, and unused results and tensors prepared once per step are omitted.
std::vector<OperationCost> operations_as_run(const Model& model, bool training);

/// Selection of counts: the convention of counting, the pass, the rows of the table, and the batch size.
struct CostQuery {
  Convention convention = Convention::contractions;
  CostPass pass = CostPass::forward;
  CostGroup by = CostGroup::layer;
  Index batch = 1;  ///< examples that share one read of the weights
};

/// Row of a cost table, per example.
struct CostRow {
  std::string name;
  Counts counts;
  double moved = 0;  ///< elements transferred to and from memory
  Index parameters = 0;
};

/// A layer's name split around the index of its block: "blocks.3.attn.qkv" into "blocks.", 3 and ".attn.qkv". The index
/// follows a part that contains "block", as in "stage1.blocks.3.norm1" and "block1.3.norm1"; it is -1 outside of
/// blocks.
struct BlockName {
  explicit BlockName(const std::string& layer);

  std::string stem, rest;
  Index number = -1;
};

/// Returns the rows of a table, in the order of first execution.
std::vector<CostRow> cost_rows(const ModelCost& model, const CostQuery& query);

/// Returns the sum of the rows.
CostRow cost_total(const ModelCost& model, const CostQuery& query);

/// Returns the number of exp evaluations by the attention mechanisms in a forward pass.
Index attention_exponentials(const ModelCost& model);

}  // namespace heed
