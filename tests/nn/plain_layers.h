// The layers of all host families as plain loops in double.
#pragma once

#include "heed/base/parameters.h"
#include "heed/config/experiment.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace heed::test {

/// Layers on lists of rows. Parameters are found by their names.
class PlainLayers {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;
  using Batch = std::vector<Rows>;

  PlainLayers(const ModelConfig& config, const Parameters<double>& parameters, bool training)
      : c_(config), p_(parameters), training_(training) {}

  /// Running statistics after the pass, by tensor.
  std::map<std::string, Row> running;

 protected:
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
  /// Normalises elements [first, first + width) of a row.
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
  /// Applies a linear layer, or an adder layer and its norm.
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
  /// Applies an attention layer of any family but CvT to x, without the block's norm.
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

  /// Convolves grids of `side` x `side`, and sets `side` to that of the result. The convolution is depth-wise if a
  /// filter has fewer channels than x.
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

  /// Returns the logits of token 0, or of the mean, after the norm.
  Rows classified(const Batch& x, double eps) const {
    Rows y;
    for (const Rows& image : x) {
      const Rows z = norm(image, "norm", eps);
      y.push_back(linear({c_.pool == "cls" ? z[0] : mean_of(z)}, "head")[0]);
    }
    return y;
  }

  const ModelConfig& c_;
  const Parameters<double>& p_;
  bool training_;
};

}  // namespace heed::test
