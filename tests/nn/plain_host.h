// The host families and sequence models by their definitions, composed of plain layers.
#pragma once

#include "plain_layers.h"

namespace heed::test {

/// Logits of a model, image by image or sequence by sequence.
class PlainHost : public PlainLayers {
 public:
  using PlainLayers::PlainLayers;

  Rows image_logits(const Tensor<double>& images) {
    Batch x(static_cast<std::size_t>(images.shape()[0]));
    Index side = c_.image;
    for (std::size_t b = 0; b < x.size(); ++b)
      for (Index n = 0; n < side * side; ++n) {
        Row& row = x[b].emplace_back();
        for (Index ch = 0; ch < c_.channels; ++ch)
          row.push_back(images[(static_cast<Index>(b) * c_.channels + ch) * side * side + n]);
      }
    return c_.family == "xcit"  ? xcit(x, side)
           : c_.family == "cvt" ? cvt(x, side)
           : c_.family == "vit" ? vit(x, side)
                                : soft_pyramid(x, side);
  }

  /// Returns the logits of one sequence, or pair of sequences; for a language model one row for each input.
  Rows sequence_logits(const std::vector<int>& tokens, const std::vector<int>& partner) const {
    const bool lm = c_.task == "lm";
    const Rows z = encoded(tokens);
    if (lm) return c_.tied ? biased(linear(norm(z, "norm"), "tok_embed"), "head") : linear(norm(z, "norm"), "head");
    Row y = pooled(z);
    if (c_.task == "pair") {
      const Row x = y, other = pooled(encoded(partner));
      y.insert(y.end(), other.begin(), other.end());
      for (std::size_t d = 0; c_.pair == "nli" && d < x.size(); ++d) y.push_back(x[d] * other[d]);
      for (std::size_t d = 0; c_.pair == "nli" && d < x.size(); ++d) y.push_back(x[d] - other[d]);
    }
    return c_.head == "mlp" ? linear(act(linear({y}, "head.fc1"), "relu"), "head.fc2") : linear({y}, "head");
  }

 private:
  Rows vit(Batch x, Index side) const {
    x = conv(x, "patch_embed.proj", side, c_.patch, 0);
    x = each(x, [&](const Rows& z) {
      Rows y = with_positions(c_.pool == "cls" ? with_class_token(z, "cls_token") : z, "pos_embed");
      for (Index i = 0; i < c_.depth; ++i) y = block(y, text("blocks.{}", i), c_.heads, c_.act);
      return y;
    });
    return classified(x, 1e-6);
  }

  Rows xcit(Batch x, Index side) {
    Index units = 0;
    for (Index patch = c_.patch; patch > 1; patch /= 2) ++units;
    for (Index i = 0; i < units; ++i) {
      const std::string name = text("patch_embed.proj.{}", 2 * i);
      x = batch_norm(conv(x, name + ".0", side, 2, 1), name + ".1");
      if (i + 1 < units) x = each(x, [&](const Rows& z) { return act(z, c_.act); });
    }
    if (c_.pos_embed) x = each(x, [&](const Rows& z) { return sum(z, fourier_positions(side)); });
    const auto add = [&](const std::string& gamma, const auto& branch) {
      const Batch of = branch(x);
      for (std::size_t b = 0; b < x.size(); ++b) x[b] = sum(x[b], scaled(of[b], gamma));
    };
    for (Index i = 0; i < c_.depth; ++i) {
      const std::string name = text("blocks.{}.", i);
      add(name + "gamma1", [&](const Batch& of) {
        return each(of, [&](const Rows& z) { return attention(norm(z, name + "norm1"), name + "attn", c_.heads); });
      });
      if (c_.lpi)
        add(name + "gamma3", [&](const Batch& of) {
          Batch y = each(of, [&](const Rows& z) { return norm(z, name + "norm3"); });
          y = conv(y, name + "local_mp.conv1", side, 1, 1);
          y = batch_norm(each(y, [&](const Rows& z) { return act(z, c_.act); }), name + "local_mp.bn");
          return conv(y, name + "local_mp.conv2", side, 1, 1);
        });
      add(name + "gamma2", [&](const Batch& of) {
        return each(of, [&](const Rows& z) { return mlp(norm(z, name + "norm2"), name + "mlp", c_.act); });
      });
    }
    x = each(x, [&](const Rows& z) { return with_class_token(z, "cls_token"); });
    for (Index i = 0; i < c_.cls_depth; ++i)
      x = each(x, [&](const Rows& z) { return class_attention(z, text("cls_attn_blocks.{}.", i)); });
    return classified(x, 1e-6);
  }

  /// Returns the code of each position, sines and cosines of the row and the column, after its projection.
  Rows fourier_positions(Index side) const {
    Rows code;
    for (Index n = 0; n < side * side; ++n) {
      Row& row = code.emplace_back();
      for (const Index i : {n / side + 1, n % side + 1})
        for (int j = 0; j < 32; ++j) {
          const double r = 2 * std::numbers::pi * static_cast<double>(i) / (static_cast<double>(side) + 1e-6);
          const double angle = r / std::pow(10000.0, 2 * (j / 2) / 32.0);
          row.push_back(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
        }
    }
    return conv({code}, "pos_embed.token_projection", side, 1, 0)[0];
  }

  Rows class_attention(Rows x, const std::string& name) const {
    const Rows y = norm(x, name + "norm1");
    const bool sima = c_.cls_attention == "sima";
    Rows q = linear(y, name + "attn.q"), k = linear(y, name + "attn.k");
    const Rows v = linear(y, name + "attn.v");
    const auto heads = static_cast<std::size_t>(c_.heads);
    Rows mixed;
    if (sima) {
      for (Rows* of : {&q, &k})
        for (std::size_t d = 0; d < q[0].size(); ++d) {
          double length = 0;
          for (const Row& row : *of) length += std::abs(row[d]);
          for (Row& row : *of) row[d] /= std::max(length, 1e-6);
        }
      const std::size_t width = q[0].size() / heads;
      mixed.assign(1, Row(q[0].size()));
      for (std::size_t e = 0; e < mixed[0].size(); ++e)
        for (std::size_t j = 0; j < k.size(); ++j)
          for (std::size_t d = e / width * width; d < (e / width + 1) * width; ++d)
            mixed[0][e] += q[0][d] * k[j][d] * v[j][e];
    } else {
      mixed = attend({q[0]}, k, v, heads);
    }
    Rows grown = y;
    grown[0] = linear(mixed, name + "attn.proj")[0];
    x = sum(x, scaled(grown, name + "gamma1"));
    const Rows normed = norm(x, name + "norm2");
    if (c_.tokens_norm) x = normed;
    x[0] = normed[0];
    const Rows token = sum({x[0]}, scaled(mlp({x[0]}, name + "mlp", c_.act), name + "gamma2"));
    x = sum(x, x);
    x[0] = token[0];
    return x;
  }

  template <class List>
  static auto of_stage(const List& list, std::size_t i) {
    return list.size() == 1 ? list[0] : list[i];
  }

  Rows cvt(Batch x, Index side) {
    const StageSizes& s = c_.stages;
    for (std::size_t i = 0; i < s.dim.size(); ++i) {
      const std::string stage = text("stage{}.", i);
      x = conv(x, stage + "patch_embed.proj", side, s.stride[i], s.padding[i]);
      const bool cls = i + 1 == s.dim.size() && c_.pool == "cls";
      x = each(x, [&](const Rows& z) {
        const Rows tokens = norm(z, stage + "patch_embed.norm", 1e-5);
        return cls ? with_class_token(tokens, stage + "cls_token") : tokens;
      });
      for (Index b = 0; b < s.depth[i]; ++b) {
        const std::string name = text("{}blocks.{}.", stage, b);
        const Batch y = each(x, [&](const Rows& z) { return norm(z, name + "norm1", 1e-5); });
        Batch parts[3];
        for (std::size_t part = 0; part < 3; ++part) {
          const std::string letter = std::string(1, "qkv"[part]), proj = name + "attn.conv_proj_" + letter;
          Index grid = side;
          Batch patches = y;
          for (Rows& z : patches) z.erase(z.begin(), z.begin() + cls);
          patches = conv(patches, proj + ".conv", grid, part == 0 ? 1 : of_stage(s.kv_stride, i), 1);
          parts[part] = batch_norm(patches, proj + ".bn");
          for (std::size_t image = 0; image < y.size(); ++image) {
            Rows& z = parts[part][image];
            if (cls) z.insert(z.begin(), y[image][0]);
            z = linear(z, name + "attn.proj_" + letter);
            if (part < 2 && c_.qk_norm) z = head_norm(z, name + "attn." + letter + "_norm");
          }
        }
        const double factor = c_.qk_scale == "width" ? 1 / std::sqrt(static_cast<double>(s.heads[i])) : 1;
        for (std::size_t image = 0; image < x.size(); ++image) {
          const Rows mixed = attend(parts[0][image], parts[1][image], parts[2][image],
                                    static_cast<std::size_t>(s.heads[i]), false, factor);
          Rows& z = x[image];
          z = sum(z, projected(mixed, y[image], name + "attn"));
          z = sum(z, mlp(norm(z, name + "norm2", 1e-5), name + "mlp", of_stage(s.act, i)));
        }
      }
    }
    return classified(x, 1e-5);
  }

  Rows soft_pyramid(Batch x, Index side) {
    const StageSizes& s = c_.stages;
    for (std::size_t i = 0; i < s.dim.size(); ++i) {
      std::vector<Index> strides{s.stride[i]};
      if (i == 0) strides = s.stride[0] == 4 ? std::vector<Index>{2, 1, 2} : std::vector<Index>{s.stride[0], 1, 1};
      for (std::size_t unit = 0; unit < strides.size(); ++unit) {
        const std::string name = text("patch_embed{}.proj.", i + 1);
        x = batch_norm(conv(x, text("{}{}", name, 3 * unit), side, strides[unit], 1), text("{}{}", name, 3 * unit + 1));
        x = each(x, [](const Rows& z) { return act(z, "relu"); });
      }
      const bool last = i + 1 == s.dim.size();
      x = each(x, [&](const Rows& image) {
        Rows z = last && c_.pool == "cls" ? with_class_token(image, "cls_token") : image;
        z = with_positions(z, text("pos_embed{}", i + 1));
        for (Index b = 0; b < s.depth[i]; ++b) {
          const std::string name = text("block{}.{}", i + 1, b), f = of_stage(s.act, i);
          if (last) {
            z = block(z, name, s.heads[i], f);
            continue;
          }
          z = norm(sum(z, attention(z, name + ".attn", s.heads[i])), name + ".norm1", 1e-5);
          z = norm(sum(z, mlp(z, name + ".mlp", f)), name + ".norm2", 1e-5);
        }
        return z;
      });
    }
    return classified(x, 1e-6);
  }

  Rows encoded(const std::vector<int>& tokens) const {
    Rows z;
    for (const int token : tokens) {
      Row& row = z.emplace_back();
      for (Index d = 0; d < c_.dim; ++d) row.push_back(at("tok_embed.weight", token * c_.dim + d));
    }
    if (c_.task == "lm" && c_.start) z = with_class_token(z, "start_token"), z.pop_back();
    if (c_.task != "lm" && c_.pool == "cls") z = with_class_token(z, "cls_token");
    z = with_positions(z, "pos_embed");
    for (Index i = 0; i < c_.depth; ++i) z = block(z, text("blocks.{}", i), c_.heads, c_.act);
    return z;
  }
  Row pooled(const Rows& z) const {
    const Rows y = norm(z, "norm");
    return c_.pool == "mean" ? mean_of(y) : c_.pool == "cls" ? y[0] : y.back();
  }
};

}  // namespace heed::test
