// Logits and running statistics of every host family, for each of its keys, compared in double with plain loops after
// shared/spec: token by token, image by image, without fused operations. Mechanisms have tests of their own; here
// attention is softmax, or SimA in class attention.
#include "heed/nn/families.h"
#include "heed/nn/sequence.h"
#include "support/families.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <numbers>

using namespace heed;
using namespace heed::test;

namespace {

/// Layers of all families on lists of rows.
class PlainHost {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;
  using Batch = std::vector<Rows>;

  PlainHost(const ModelConfig& config, const Parameters<double>& parameters, bool training)
      : c_(config), p_(parameters), training_(training) {}

  /// Running statistics after the pass, by tensor.
  std::map<std::string, Row> running;

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
  bool has(const std::string& name) const { return p_.list().find(name) >= 0; }
  double at(const std::string& name, Index i) const { return has(name) ? p_[p_.list().find(name)][i] : 0; }
  double at(const std::string& name, std::size_t i) const { return at(name, static_cast<Index>(i)); }
  const Shape& shape_of(const std::string& name) const { return p_.list()[p_.list().find(name)].shape; }
  static std::string text(const char* format, auto... values) { return fmt::format(fmt::runtime(format), values...); }

  template <class F>
  static Batch each(Batch x, const F& f) {
    for (Rows& rows : x) rows = f(rows);
    return x;
  }
  static Rows sum(Rows x, const Rows& y) {
    for (std::size_t n = 0; n < x.size(); ++n)
      for (std::size_t d = 0; d < x[n].size(); ++d) x[n][d] += y[n][d];
    return x;
  }
  static Rows product(Rows x, const Rows& y) {
    for (std::size_t n = 0; n < x.size(); ++n)
      for (std::size_t d = 0; d < x[n].size(); ++d) x[n][d] *= y[n][d];
    return x;
  }
  Rows scaled(Rows x, const std::string& gamma) const {
    for (Row& row : x)
      for (std::size_t d = 0; d < row.size(); ++d) row[d] *= at(gamma, d);
    return x;
  }
  Rows with_class_token(Rows x, const std::string& name) const {
    Row token;
    for (std::size_t d = 0; d < x[0].size(); ++d) token.push_back(at(name, d));
    x.insert(x.begin(), token);
    return x;
  }
  Rows with_positions(Rows x, const std::string& name) const {
    for (std::size_t n = 0; n < x.size(); ++n)
      for (std::size_t d = 0; d < x[n].size(); ++d) x[n][d] += at(name, n * x[n].size() + d);
    return x;
  }
  static Row mean_of(const Rows& x) {
    Row mean(x[0].size());
    for (const Row& row : x)
      for (std::size_t d = 0; d < row.size(); ++d) mean[d] += row[d] / static_cast<double>(x.size());
    return mean;
  }

  Rows norm(Rows x, const std::string& name, double eps = 1e-6) const {
    for (Row& row : x) row = norm_of(row, 0, row.size(), name, eps);
    return x;
  }
  /// Normalises elements first to first + width of a row.
  Row norm_of(Row row, std::size_t first, std::size_t width, const std::string& name, double eps) const {
    double mean = 0, variance = 0;
    for (std::size_t d = first; d < first + width; ++d) mean += row[d] / static_cast<double>(width);
    for (std::size_t d = first; d < first + width; ++d)
      variance += (row[d] - mean) * (row[d] - mean) / static_cast<double>(width);
    for (std::size_t d = 0; d < width; ++d)
      row[first + d] =
          (row[first + d] - mean) / std::sqrt(variance + eps) * at(name + ".weight", d) + at(name + ".bias", d);
    return row;
  }
  Rows head_norm(Rows x, const std::string& name) const {
    const auto width = static_cast<std::size_t>(shape_of(name + ".weight")[0]);
    for (Row& row : x)
      for (std::size_t first = 0; first < row.size(); first += width) row = norm_of(row, first, width, name, 1e-6);
    return x;
  }

  Rows biased(Rows x, const std::string& name) const {
    for (Row& row : x)
      for (std::size_t o = 0; o < row.size(); ++o) row[o] += at(name + ".bias", o);
    return x;
  }
  Rows linear(const Rows& x, const std::string& name, bool distances = false) const {
    const Shape& shape = shape_of(name + ".weight");
    Rows y;
    for (const Row& row : x) {
      Row& out = y.emplace_back();
      for (Index o = 0; o < shape[0]; ++o) {
        double sum = 0;
        for (Index i = 0; i < shape[1]; ++i) {
          const double w = at(name + ".weight", o * shape[1] + i), v = row[static_cast<std::size_t>(i)];
          sum += distances ? -std::abs(v - w) : v * w;
        }
        out.push_back(sum);
      }
    }
    return biased(y, name);
  }
  /// A linear layer, or adder layer and norm.
  Rows projection(const Rows& x, const std::string& name) const {
    return has(name + "_ln.weight") ? norm(linear(x, name, true), name + "_ln") : linear(x, name);
  }

  static Rows act(Rows x, const std::string& name) {
    for (Row& row : x)
      for (double& h : row)
        h = name == "relu"         ? std::max(h, 0.0)
            : name == "quick_gelu" ? h / (1 + std::exp(-1.702 * h))
            : name == "gelu_tanh"
                ? h / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (h + 0.044715 * h * h * h)))
            : name == "silu" ? h / (1 + std::exp(-h))
            : name == "gelu" ? h / 2 * (1 + std::erf(h / std::sqrt(2.0)))
                             : h;
    return x;
  }
  Rows mlp(const Rows& x, const std::string& name, const std::string& f) const {
    const bool adder = has(name + ".fc1_ln.weight");
    return projection(act(projection(x, name + ".fc1"), adder ? c_.ffn_act : f), name + ".fc2");
  }

  static Rows attend(const Rows& q, const Rows& k, const Rows& v, std::size_t heads, bool causal = false,
                     double factor = 1) {
    const std::size_t D = q[0].size(), d = D / heads;
    Rows out(q.size(), Row(D));
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < q.size(); ++i) {
        Row weights;
        double sum = 0;
        for (std::size_t j = 0; j < (causal ? i + 1 : k.size()); ++j) {
          double dot = 0;
          for (std::size_t e = h * d; e < (h + 1) * d; ++e) dot += factor * q[i][e] * k[j][e];
          sum += weights.emplace_back(std::exp(dot / std::sqrt(static_cast<double>(d))));
        }
        for (std::size_t j = 0; j < weights.size(); ++j)
          for (std::size_t e = h * d; e < (h + 1) * d; ++e) out[i][e] += weights[j] / sum * v[j][e];
      }
    return out;
  }
  Rows projected(Rows out, const Rows& x, const std::string& name) const {
    if (has(name + ".out_ln.weight")) out = norm(out, name + ".out_ln");
    if (has(name + ".gate.weight"))
      out = product(out, act(linear(x, name + ".gate"), c_.gate_act == "silu" ? "silu" : "none"));
    return projection(out, name + ".proj");
  }
  /// The attention layer of all families but CvT, of x after its norm.
  Rows attention(const Rows& x, const std::string& name, Index heads) const {
    const bool adder = has(name + ".q_ln.weight");
    const Rows qkv = linear(x, name + ".qkv", adder);
    Rows parts[3];
    for (std::size_t part = 0; part < 3; ++part) {
      const auto D = static_cast<std::ptrdiff_t>(x[0].size()), first = static_cast<std::ptrdiff_t>(part) * D;
      for (const Row& row : qkv) parts[part].emplace_back(row.begin() + first, row.begin() + first + D);
      const std::string letter = std::string(1, "qkv"[part]);
      if (adder) parts[part] = norm(parts[part], name + "." + letter + "_ln");
      if (part < 2 && has(name + ".q_norm.weight")) parts[part] = head_norm(parts[part], name + "." + letter + "_norm");
    }
    return projected(attend(parts[0], parts[1], parts[2], static_cast<std::size_t>(heads), c_.task == "lm"), x, name);
  }
  Rows block(Rows x, const std::string& name, Index heads, const std::string& f, double eps = 1e-6) const {
    x = sum(x, attention(norm(x, name + ".norm1", eps), name + ".attn", heads));
    return sum(x, mlp(norm(x, name + ".norm2", eps), name + ".mlp", f));
  }

  /// Convolves grids of `side` x `side`, and sets the side of the result. Depth-wise if a filter has one channel.
  Batch conv(const Batch& x, const std::string& name, Index& side, Index stride, Index padding) const {
    const Shape& shape = shape_of(name + ".weight");
    const Index k = shape[2], in = shape[1], out_side = (side + 2 * padding - k) / stride + 1;
    const bool depthwise = in != static_cast<Index>(x[0][0].size());
    Batch y = each(x, [&](const Rows& image) {
      Rows rows;
      for (Index n = 0; n < out_side * out_side; ++n) {
        Row& row = rows.emplace_back();
        for (Index o = 0; o < shape[0]; ++o) {
          double sum = at(name + ".bias", o);
          for (Index ch = 0; ch < in; ++ch)
            for (Index i = 0; i < k; ++i)
              for (Index j = 0; j < k; ++j) {
                const Index r = n / out_side * stride + i - padding, s = n % out_side * stride + j - padding;
                if (r < 0 || s < 0 || r >= side || s >= side) continue;
                sum += at(name + ".weight", ((o * in + ch) * k + i) * k + j) *
                       image[static_cast<std::size_t>(r * side + s)][static_cast<std::size_t>(depthwise ? o : ch)];
              }
          row.push_back(sum);
        }
      }
      return rows;
    });
    side = out_side;
    return y;
  }

  Batch batch_norm(Batch x, const std::string& name) {
    const std::size_t width = x[0][0].size();
    const std::size_t group = c_.bn_group > 0 ? static_cast<std::size_t>(c_.bn_group) : x.size();
    Row& mean_buffer = running[name + ".running_mean"];
    Row& variance_buffer = running[name + ".running_var"];
    for (std::size_t d = 0; d < width; ++d) {
      mean_buffer.push_back(at(name + ".running_mean", d));
      variance_buffer.push_back(at(name + ".running_var", d));
    }
    for (std::size_t first = 0; first < x.size(); first += group)
      for (std::size_t d = 0; d < width; ++d) {
        double mean = mean_buffer[d], variance = variance_buffer[d];
        if (training_) {
          const double n = static_cast<double>(group * x[0].size());
          mean = variance = 0;
          for (std::size_t b = first; b < first + group; ++b)
            for (const Row& row : x[b]) mean += row[d] / n;
          for (std::size_t b = first; b < first + group; ++b)
            for (const Row& row : x[b]) variance += (row[d] - mean) * (row[d] - mean) / n;
          mean_buffer[d] = 0.9 * mean_buffer[d] + 0.1 * mean;
          variance_buffer[d] = 0.9 * variance_buffer[d] + 0.1 * variance * n / (n - 1);
        }
        for (std::size_t b = first; b < first + group; ++b)
          for (Row& row : x[b])
            row[d] = (row[d] - mean) / std::sqrt(variance + 1e-5) * at(name + ".weight", d) + at(name + ".bias", d);
      }
    return x;
  }

  /// Logits of token 0, or of the mean, after the norm.
  Rows classified(const Batch& x, double eps) const {
    Rows y;
    for (const Rows& image : x) {
      const Rows z = norm(image, "norm", eps);
      y.push_back(linear({c_.pool == "cls" ? z[0] : mean_of(z)}, "head")[0]);
    }
    return y;
  }

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

  /// The projected code of sines and cosines of the row and the column.
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

  const ModelConfig& c_;
  const Parameters<double>& p_;
  bool training_;
};

/// Compares results, sums of some dozens of terms of order 1 to 100 through a dozen layers.
void check_plain(const PlainHost::Rows& expected, const double* got, const std::string& label) {
  for (const PlainHost::Row& row : expected)
    for (const double value : row) {
      BOOST_TEST(std::abs(*got - value) < 1e-10 * std::max(1.0, std::abs(value)),
                 label << ": " << *got << ", expected " << value);
      ++got;
    }
}

/// Compares evaluation, training with its statistics, and evaluation without fused operations.
void check_images(const Experiment& x, const std::string& label) {
  for (const auto& [training, traced] : {std::pair(false, false), {false, true}, {true, false}}) {
    SmallTraining t(x, 4);
    PlainHost plain(x.model, t.parameters, training);
    const PlainHost::Rows expected = plain.image_logits(t.images);
    std::vector<TraceEntry> trace;
    Tape<double> tape(
        {.parameters = &t.parameters, .training = training, .observers = {.trace = traced ? &trace : nullptr}});
    const Var<double> logits = t.model->logits(tape, ModelInput<double>{.images = t.images.view()});
    BOOST_TEST(logits.size() == 4 * 3);
    check_plain(expected, logits.data(), label + (training ? ", training" : traced ? ", traced" : ""));
    for (const auto& [name, values] : plain.running) {
      const ParameterId id = t.parameters.list().find(name);
      BOOST_REQUIRE_MESSAGE(id >= 0, name);
      check_plain({values}, t.parameters[id].data(), label + ", " + name);
    }
  }
}

using Sets = std::vector<std::string>;

/// Checks a family with these keys, softmax in every block or stage.
void check_family(const std::string& family, const Sets& sets) {
  Experiment x = small_experiment(family, sets);
  x.attention = {};
  check_images(x, fmt::format("{}, {}", family, fmt::join(sets, ", ")));
}

const Sets around_attention[] = {{"model.qk_norm=true"},
                                 {"model.gate=true"},
                                 {"model.gate=true", "model.gate_act=silu"},
                                 {"model.gate=true", "model.qk_norm=true"}};
const char* const acts[] = {"relu", "gelu_tanh", "quick_gelu"};

Experiment plain_sequence(const char* task) {
  Experiment x;
  ModelConfig& m = x.model;
  m.family = "sequence", m.task = task, m.vocab = 7, m.context = 9, m.pool = "mean", m.classes = 3;
  m.dim = 6, m.depth = 2, m.heads = 2, m.hidden = 5;
  return x;
}

/// Compares the logits of sequences of several lengths, together in a batch; those of a language model are equal.
void check_sequences(const Experiment& x, const std::string& label) {
  const auto model = make_model(x);
  const bool lm = x.model.task == "lm", pairs = x.model.task == "pair";
  Parameters<double> parameters(model->parameters());
  for (Index i = 0; i < parameters.size(); ++i) parameters.data()[i] = RandomStream(3).normal(i);
  const std::vector<Index> given = lm ? std::vector<Index>{9, 9} : std::vector<Index>{4, 9, 1};
  const auto count = static_cast<Index>(given.size());
  Tensor<int> tokens(Shape{count, 9}), others(Shape{count, 9}), lengths(Shape{count}), other_lengths(Shape{count});
  std::vector<std::vector<int>> first(given.size()), second(given.size());
  for (std::size_t b = 0; b < given.size(); ++b) {
    const auto row = static_cast<Index>(b);
    lengths[row] = static_cast<int>(given[b]), other_lengths[row] = static_cast<int>(given[given.size() - 1 - b]);
    for (Index t = 0; t < 9; ++t) {
      tokens[9 * row + t] = static_cast<int>(RandomStream(5).below(9 * row + t, 7));
      others[9 * row + t] = static_cast<int>(RandomStream(6).below(9 * row + t, 7));
    }
    first[b].assign(tokens.data() + 9 * row, tokens.data() + 9 * row + lengths[row]);
    second[b].assign(others.data() + 9 * row, others.data() + 9 * row + other_lengths[row]);
  }
  ModelInput<double> in{.sequences = {tokens.view(), lengths.view()}};
  if (lm) in.sequences.lengths = {};
  if (pairs) in.partners = {others.view(), other_lengths.view()};
  Tape<double> tape({.parameters = &parameters});
  const Var<double> logits = model->logits(tape, in);
  PlainHost::Rows expected;
  for (std::size_t b = 0; b < given.size(); ++b)
    for (PlainHost::Row& row : PlainHost(x.model, parameters, false).sequence_logits(first[b], second[b]))
      expected.push_back(std::move(row));
  BOOST_REQUIRE(logits.size() == static_cast<Index>(expected.size() * expected[0].size()));
  check_plain(expected, logits.data(), label);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plain_families)

BOOST_AUTO_TEST_CASE(xcit_by_definition) {
  std::vector<Sets> keys{{},
                         {"model.lpi=false"},
                         {"model.pos_embed=false"},
                         {"model.tokens_norm=false"},
                         {"model.cls_attention=sima"},
                         {"model.cls_depth=3"},
                         {"model.cls_depth=2", "model.tokens_norm=false", "model.cls_attention=sima"},
                         {"model.bn_group=2"},
                         {"model.patch=2", "model.image=6"},
                         {"model.patch=8", "model.image=16", "model.dim=8"}};
  keys.insert(keys.end(), std::begin(around_attention), std::end(around_attention));
  for (const char* act : acts) keys.push_back({std::string("model.act=") + act});
  for (const Sets& sets : keys) check_family("xcit", sets);
}

BOOST_AUTO_TEST_CASE(cvt_by_definition) {
  std::vector<Sets> keys{{},
                         {"model.pool=mean"},
                         {"model.kv_stride=1"},
                         {"model.kv_stride=[1,2]"},
                         {"model.kv_stride=[3,1]"},
                         {"model.qk_scale=width"},
                         {"model.qk_scale=width", "model.qk_norm=true"},
                         {"model.bn_group=2"},
                         {"model.patch=[5,2]", "model.padding=[2,0]", "model.stride=[2,1]"},
                         {"model.depth=[2,1]", "model.act=[\"relu\",\"gelu_tanh\"]"}};
  keys.insert(keys.end(), std::begin(around_attention), std::end(around_attention));
  for (const char* act : acts) keys.push_back({std::string("model.act=") + act});
  for (const Sets& sets : keys) check_family("cvt", sets);
}

BOOST_AUTO_TEST_CASE(soft_pyramid_by_definition) {
  std::vector<Sets> keys{{},
                         {"model.pool=mean"},
                         {"model.pos_embed=false"},
                         {"model.bn_group=2"},
                         {"model.stride=[4,2]"},
                         {"model.stride=[1,1]", "model.image=5"},
                         {"model.stride=[2,1,2]", "model.dim=[4,6,4]", "model.depth=[2,1,2]", "model.heads=[2,3,1]",
                          "model.hidden=[5,7,3]", "model.act=[\"relu\",\"quick_gelu\",\"gelu\"]",
                          "attention.mechanism=soft", "attention.vconv=0"}};
  keys.insert(keys.end(), std::begin(around_attention), std::end(around_attention));
  for (const char* act : acts) keys.push_back({std::string("model.act=") + act});
  for (const Sets& sets : keys) check_family("soft", sets);
}

// Keys that tests/nn/vit_keys.cpp leaves out: what surrounds attention, and adder layers.
BOOST_AUTO_TEST_CASE(vit_by_definition) {
  const auto check = [](const Sets& sets) {
    Sets all{"model.channels=2", "model.classes=3", "model.image=6", "model.patch=2",
             "model.dim=6",      "model.depth=2",   "model.heads=2", "model.hidden=5"};
    all.insert(all.end(), sets.begin(), sets.end());
    check_images(load_experiment("models/vit-micro.toml", all), fmt::format("vit, {}", fmt::join(sets, ", ")));
  };
  for (const Sets& sets : around_attention) check(sets);
  for (const char* act : acts) check({std::string("model.act=") + act});
  check({"model.pool=mean", "model.pos_embed=false"});
  check({"model.linear=[\"mul\",\"adder\"]", "model.act=relu"});
  for (const char* act : {"none", "gelu", "relu"}) check({"model.linear=adder", std::string("model.ffn_act=") + act});
  check({"model.linear=adder", "model.gate=true", "model.gate_act=silu", "model.qk_norm=true"});
}

BOOST_AUTO_TEST_CASE(sequences_by_definition) {
  using Change = void (*)(ModelConfig&);
  const Change keys[] = {[](ModelConfig&) {},
                         [](ModelConfig& m) { m.pos_embed = false; },
                         [](ModelConfig& m) { m.qk_norm = true; },
                         [](ModelConfig& m) { m.gate = true; },
                         [](ModelConfig& m) { m.gate = true, m.gate_act = "silu"; },
                         [](ModelConfig& m) { m.act = "relu"; },
                         [](ModelConfig& m) {
                           m.linear = {"adder", "mul"}, m.ffn_act = "relu";
                         }};
  int number = 0;
  for (const Change change : keys) {
    const auto check = [&](const char* task, const Change more) {
      Experiment x = plain_sequence(task);
      change(x.model);
      more(x.model);
      const ModelConfig& m = x.model;
      check_sequences(x, fmt::format("keys {}, {}, pool {}, head {}, pair {}, start {}, tied {}", number, task, m.pool,
                                     m.head, m.pair, m.start, m.tied));
    };
    for (const Change special : {Change([](ModelConfig&) {}), Change([](ModelConfig& m) { m.start = true; }),
                                 Change([](ModelConfig& m) { m.tied = true; })})
      check("lm", special);
    for (const char* task : {"classify", "pair"})
      for (const Change special :
           {Change([](ModelConfig& m) { m.pair = "concat"; }), Change([](ModelConfig& m) { m.pool = "cls"; }),
            Change([](ModelConfig& m) { m.pool = "last"; }), Change([](ModelConfig& m) { m.head = "mlp"; })})
        check(task, special);
    ++number;
  }
}

BOOST_AUTO_TEST_SUITE_END()
