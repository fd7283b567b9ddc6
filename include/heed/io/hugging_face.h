// Conversion of weights with tensor names as in Hugging Face's transformers library.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heed {

/// Reads a safetensors file of Hugging Face's ViT, DeiT or DINOv2 (with or without registers) and writes one with
/// timm's names:
///
///   embeddings.{cls_token, distillation_token, register_tokens, position_embeddings}
///                       cls_token, dist_token, reg_token, pos_embed
///   embeddings.patch_embeddings.projection.*      patch_embed.proj.*
///   encoder.layer.I.*, layers.I.*
///                       blocks.I.*; the projections to queries, keys and values are joined into attn.qkv
///   layernorm, classifier or cls_classifier, distillation_classifier      norm, head, head_dist
///
/// If only the class token has a classifier, a distillation token becomes reg_token. With registers and no distillation
/// token, adds the class token's position to the class token. Returns the omitted names: mask tokens, poolers, and
/// DINOv2's classifier, which reads the class token and the mean of the patches. Throws Error, naming file and tensor,
/// for any other tensor.
///
/// Before writing, calls `before` with the shapes of the converted tensors; if that throws, nothing is written.
std::vector<std::string> convert_hugging_face(
    const std::string& in, const std::string& out,
    const std::function<void(const std::map<std::string, Shape>&)>& before = [](const auto&) {});

}  // namespace heed
