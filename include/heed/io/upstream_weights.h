// Weights under the names that the papers' authors gave them.
#pragma once

#include "heed/io/safetensors.h"

#include <string>

namespace heed {

/// Reads a safetensors file of weights and writes one with heed's names, dtypes as floats or doubles:
///
///   XCiT   pos_embeder.* is pos_embed.*; cls_attn_blocks.I.attn.qkv.* is cut into attn.q.*, attn.k.*, attn.v.*
///   SOFT   blockT.J.att.mha.W_q.*, W_v.* are joined to blockT.J.attn.qkv.*; att.mha.attn.Qlandmark_op.* is
///          attn.landmark.*, att.mha.attn.Qnorm_act.0.* attn.landmark_norm.*, att.mha.attn.conv.* attn.vconv.*,
///          att.mha.ff.* attn.proj.*, att.norm1.*, att.norm2.* are norm1.*, norm2.*, att.ff1.*, att.ff2.* mlp.fc1.*,
///          mlp.fc2.*; in the last stage attn.q.*, attn.kv.* are joined to attn.qkv.*
///   DINOv2 register_tokens is reg_token, and the class token's position is added to the class token; mask_token is
///          left out
///
/// Prefixes that wrappers put before all names (wrapper_prefix) and *.num_batches_tracked are left out; all else keeps
/// its name. Throws Error, which names file and tensor, where one is not of floats, cannot be cut, or lacks the one
/// that it belongs with.
void convert_weights(const std::string& in, const std::string& out);

/// A file of weights without the prefixes of wrappers.
struct OpenedWeights {
  SafetensorsFile file;
  std::string prefix;  ///< that was removed from its names
};

/// Opens `source`: FILE, or FILE:PREFIX for one of several networks in a file. Removes the prefixes that wrappers of
/// models put before all names but a classifier's. Throws Error, which names them, if the file holds several networks
/// and no prefix chooses one.
OpenedWeights open_weights(const std::string& source);

/// Returns the prefix that wrappers of models put before all names of a file but a classifier's, "model." or
/// "module.model."; empty if there is none.
std::string wrapper_prefix(const SafetensorsFile& file);

}  // namespace heed
