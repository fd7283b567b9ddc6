// Conversion of weights with tensor names as in the code of the papers' authors.
#pragma once

#include "heed/io/safetensors.h"

#include <string>

namespace heed {

/// Reads a safetensors file of weights and writes one with heed's names, as floats or doubles:
///
///   XCiT   pos_embeder.* -> pos_embed.*; cls_attn_blocks.I.attn.qkv.* is split into attn.q.*, attn.k.*, attn.v.*
///   SOFT   blockT.J.att.mha.W_q.*, W_v.* are joined into blockT.J.attn.qkv.*; att.mha.attn.Qlandmark_op.* ->
///          attn.landmark.*; att.mha.attn.Qnorm_act.0.* -> attn.landmark_norm.*; att.mha.attn.conv.* -> attn.vconv.*;
///          att.mha.ff.* -> attn.proj.*; att.norm1.*, att.norm2.* -> norm1.*, norm2.*; att.ff1.*, att.ff2.* ->
///          mlp.fc1.*, mlp.fc2.*; in the last stage attn.q.*, attn.kv.* are joined into attn.qkv.*
///   DINOv2 register_tokens -> reg_token; the class token's position is added to the class token; mask_token is
///          omitted
///
/// Omits the prefixes of wrappers (wrapper_prefix) and *.num_batches_tracked; other names are unchanged. Returns the
/// prefix that was removed. Throws Error, naming file and tensor, if a tensor is not floating-point, cannot be split,
/// or lacks the tensor to be joined with.
std::string convert_weights(const std::string& in, const std::string& out);

/// An opened file of weights; a wrapper's prefix is removed from the names.
struct OpenedWeights {
  SafetensorsFile file;
  std::string prefix;  ///< prefix removed from the names
};

/// Returns the file of `source`, which is FILE or FILE:PREFIX.
std::string weights_file(const std::string& source);

/// Opens `source`: FILE, or FILE:PREFIX for one of several networks in a file. Removes the prefix that a model's
/// wrapper adds to all names except a classifier's. If the file has several networks, or one with an unknown prefix,
/// and none is selected, throws Error naming them.
OpenedWeights open_weights(const std::string& source);

/// Returns the prefix that a model's wrapper adds to all names of a file except a classifier's, such as "model." or
/// "module.model."; empty if there is none.
std::string wrapper_prefix(const SafetensorsFile& file);

/// Returns true for a tensor name of Hugging Face's transformers, which `heed convert hf-vit` and its kin read.
bool is_hugging_face_name(const std::string& name);

}  // namespace heed
