// All headers for training, running and analysing models; docs/library.md has a short program.
#pragma once

// Models and their parts.
#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"
#include "heed/nn/families.h"
#include "heed/nn/vit.h"

// Operations with gradients: elementary ones, and those of models beyond the Vision Transformer.
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/losses.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/elementary/shapes.h"
#include "heed/ops/activation.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/composed_attention.h"
#include "heed/ops/conv2d.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/linear.h"
#include "heed/ops/softmax.h"

// Images.
#include "heed/data/dataset.h"
#include "heed/data/images/image.h"
#include "heed/data/loader.h"

// Training, by a hand-written loop or an experiment file.
#include "heed/train/tasks/classification.h"
#include "heed/train/evaluate.h"
#include "heed/train/optimizer.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"
#include "heed/train/trainer.h"

// Cost of models.
#include "heed/config/energy_table.h"
#include "heed/cost/energy.h"
#include "heed/analysis/model_cost.h"

// Weight files; tensors as text; checks of gradients and costs; threads.
#include "heed/base/print.h"
#include "heed/checks/report.h"
#include "heed/io/weights.h"
#include "heed/base/parallel.h"
#include "heed/base/subnormals.h"
