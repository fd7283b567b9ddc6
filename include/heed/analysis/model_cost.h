// The cost of a model. The counts are those of the code that runs: a dry run takes the model through its own forward
// pass on the tape, where every operation states its closed form (cost/counts.h), and adds what the tape does itself.
#pragma once

#include "heed/cost/counts.h"
#include "heed/nn/model.h"

#include <string>
#include <vector>

namespace heed {

/// The operations that are counted: matrix products, convolutions, distances and weighted sums only, as the papers
/// count; or every floating-point operation of the textbook algorithm.
enum class Convention { contractions, all };

/// Describes what a convention counts, and that the counts are those of the textbook algorithm.
std::string counted(Convention convention);

/// From images to logits as in inference; from the gradient of the logits back to that of every weight; both, as in a
/// training step. The loss and the optimiser are not the model's and not counted.
enum class CostPass { forward, backward, step };

/// The subject of a row of a cost table: a layer by timm's name, a block, or a kind of operation.
enum class CostGroup { layer, block, kind };

/// Numbers that an operation moves to and from memory, if it reads each operand and weight once, writes its result and
/// what it keeps for the backward pass once, and nothing stays in a cache between operations. Its backward pass reads
/// the result's gradient, the operands and what was kept, and writes each operand's gradient, which it reads first
/// where it adds to one.
struct Traffic {
  Index activations = 0;  ///< for each image
  Index weights = 0;      ///< once for all images of a batch

  Traffic& operator+=(const Traffic& b) {
    activations += b.activations, weights += b.weights;
    return *this;
  }
};

/// One operation on one image. Its backward cost is zero where no gradient passes, and has an addition per element
/// where its gradient joins that of another use of the same tensor.
struct OperationCost {
  std::string layer;  ///< "blocks.0.attn.qkv"
  std::string operation;
  Cost cost;
  Traffic forward, backward;
  Index parameters = 0;  ///< trainable numbers that are its own
  Index held = 0;        ///< numbers that it leaves in memory: its result and what it keeps
  double rows = 0;       ///< numbers in the rows that its weights multiply: of a convolution, in all windows
};

/// All operations of a model, in the order in which they run, on one image. Over a batch everything is proportional to
/// the number of images, and in addition the gradients of n images take n - 1 additions per weight to sum up.
struct ModelCost {
  std::string example;                             ///< the name of an example, to which the cost belongs
  std::vector<OperationCost> inference, training;  ///< training has dropout, where the experiment asks for it
  Index parameters = 0;                            ///< trainable numbers
  Index kept = 0;                                  ///< numbers that a training step keeps until its backward pass
};

/// Throws Error where counts could leave 64 bits.
ModelCost cost_of(const Model& model);

/// The operations of one example's forward pass up to the logits, as the tape records them.
std::vector<TraceEntry> trace_of(const Model& model, bool training);

/// The operations of one example as a pass runs them, which is not as papers count them: what is computed together is
/// one operation, what nobody reads is left out, and so is what is prepared once per step.
std::vector<OperationCost> operations_as_run(const Model& model, bool training);

struct CostQuery {
  Convention convention = Convention::contractions;
  CostPass pass = CostPass::forward;
  CostGroup by = CostGroup::layer;
  Index batch = 1;  ///< examples that share one reading of the weights
};

/// Per example.
struct CostRow {
  std::string name;
  Counts counts;
  double moved = 0;  ///< numbers moved to and from memory
  Index parameters = 0;
};

/// A layer's name around the number of its block: "blocks.3.attn.qkv" is "blocks.", 3 and ".attn.qkv". The number
/// follows a part that has "block" in it, as in "stage1.blocks.3.norm1" and "block1.3.norm1"; -1 for what is in no
/// block.
struct BlockName {
  explicit BlockName(const std::string& layer);

  std::string stem, rest;
  Index number = -1;
};

/// The rows of a table, in the order in which they first run.
std::vector<CostRow> cost_rows(const ModelCost& model, const CostQuery& query);

/// Their sum.
CostRow cost_total(const ModelCost& model, const CostQuery& query);

/// Exponentials in the attention mechanisms of a forward pass.
Index attention_exponentials(const ModelCost& model);

}  // namespace heed
