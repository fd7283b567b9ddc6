// Window attention: softmax attention within a neighbourhood.
//
//   S_ts = q_t k_s / sqrt(d) where t sees s,    A = softmax(S) row by row,    out = A v
//
//   dims=1    t sees s where |t - s| < window, along the tokens. Beltagy, Peters, Cohan, "Longformer", 2020,
//             arXiv:2004.05150v2, Section 3.1.
//   dims=2    t sees the tokens of its cell; cells of window x window divide the image grid. Liu, Lin, Cao, Hu, Wei,
//             Zhang, Lin, Guo, "Swin Transformer", 2021, arXiv:2103.14030v2, Section 3.2; without its position bias.
//
// shift=s (dims=2) is Swin's shifted partition: the grid is rolled by s rows and columns towards the origin before it
// is divided, and tokens of a cell that came from opposite borders do not see each other. The seam between such tokens
// divides their cell into parts, each contiguous in the original grid. So it suffices to divide the grid itself at the
// rows and columns s, s + window, s + 2 window, ...: nothing is rolled or masked.
//
// Time 4 N w d for the w keys that a query sees, N w exps; memory O(N). A sequence is one band, whose passes are in
// band.h; the tokens of a cell, gathered, are a sequence in which all tokens see each other.
//
// Differs from Longformer, where a class token sees all tokens, and all see it: here it is like any other token, and in
// a model of few blocks it does not see the whole image. With pool = "mean", all patches reach the classifier.
#include "src/attention/shared/image_grid.h"
#include "band.h"

#include "heed/attention/capabilities/map.h"

namespace heed {

class Window : public MechanismBase<Window>, public WithMap<Window> {
 public:
  static constexpr const char* mechanism_name = "window";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v among nearby tokens, or tokens of the same cell";
  static constexpr const char* complexity = "time O(N w d) for w keys in a window, memory O(N)";

  Index window = not_set, dims = 1, shift = 0;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("window", window,
          "w: a token sees tokens less than w away, w - 1 on each side; dims=2: side of a cell (required)");
    visit("dims", dims, "1: along the tokens; 2: cells of the image grid");
    visit("shift", shift, "dims=2: rows and columns that the cells are shifted by, less than window");
  }

  static std::vector<OptionValues> variants() {
    return {{{"window", "1"}},
            {{"window", "3"}},
            {{"window", "100"}},
            {{"window", "2"}, {"dims", "2"}},
            {{"window", "2"}, {"dims", "2"}, {"shift", "1"}}};
  }
  static std::vector<MechanismSetting> settings() { return {{"window", {{"window", "8"}}, true}}; }

  void check(const AttentionShape& s) const override {
    require(dims == 1 || dims == 2, "[window] dims is {}; expected 1 or 2", dims);
    require(window >= 1, "[window] window is {}; expected 1 or more", option_text(window));
    if (dims == 1) {
      require(shift == 0, "[window] shift is {}; expected 0; only windows of a grid, dims=2, are shifted", shift);
      require(s.queries - s.keys < window,
              "[window] window is {}; the last of {} queries sees none of the {} keys: expected {} or more", window,
              s.queries, s.keys, s.queries - s.keys + 1);
      return;
    }
    require_image_grid_alone(s, name(), "dims is 2", "dims=1");
    require_cells(s, name(), "window", window);
    require(shift >= 0 && shift < window, "[window] shift is {}; expected 0 to {}, less than window", shift,
            window - 1);
  }

  // Saved: the maximum and the sum of exps of each row of S; with dims=2, the rows are in the order of cells.
  template <class T>
  Heads<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return lay_out_heads(s.heads, s.queries, 2, layout);
  }

  // Scratch: blocks of A and dA; with dims=2 also q, k and v of a cell, their gradients, and its out or dout.
  template <class T>
  struct Scratch {
    WindowMaps<T> maps;
    WindowTokens<T> cell, dcell;
    Matrix<T> out;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const Index n = dims == 1 ? 0 : window * window;
    const WindowBand band = dims == 1 ? this->band(s) : band_of(s, n);
    const auto map = [&] { return layout.matrix(band.most_rows(), band.most_keys()); };
    const auto tokens = [&]() -> WindowTokens<T> {
      return {layout.matrix(n, s.width), layout.matrix(n, s.width), layout.matrix(n, s.value_width)};
    };
    return {{map(), map()}, tokens(), tokens(), layout.matrix(n, s.value_width)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> kept, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    if (dims == 1)
      return each_block<T>(band(in.shape), in.shape.heads, [&](const WindowBand& band, const WindowBlock& b, Index h) {
        band.forward(gemm, b, {in.q[h], in.k[h], in.v[h]}, kept[h], scratch.maps, out[h]);
      });
    for_each_cell(in.shape, [&](const Cell& cell) {
      for (Index h = 0; h < in.shape.heads; ++h) {
        const WindowTokens<const T> x = gather(cell, in, h, scratch);
        const Matrix<T> y = scratch.out.top_rows(cell.count());
        each_block<T>(band_of(in.shape, cell.count()), 1, [&](const WindowBand& band, const WindowBlock& b, Index) {
          band.forward(gemm, b, x, cell.of(kept[h]), scratch.maps, y);
        });
        cell.scatter(y, Update::assign, out[h]);
      }
    });
  }

  // band.h has the backward pass of a band; the gradients of gathered tokens are scattered to their positions.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, Heads<T> kept,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    const kernels::Gemm gemm{in.products};
    if (dims == 1)
      return each_block<T>(band(in.shape), in.shape.heads, [&](const WindowBand& band, const WindowBlock& b, Index h) {
        band.backward(gemm, b, {in.q[h], in.k[h], in.v[h]}, kept[h], dout[h], scratch.maps, to.update,
                      {to.q[h], to.k[h], to.v[h]});
      });
    for_each_cell(in.shape, [&](const Cell& cell) {
      const Index n = cell.count();
      const WindowTokens<T> dx{scratch.dcell.q.top_rows(n), scratch.dcell.k.top_rows(n), scratch.dcell.v.top_rows(n)};
      for (Index h = 0; h < in.shape.heads; ++h) {
        const WindowTokens<const T> x = gather(cell, in, h, scratch);
        const Matrix<const T> dy = cell.gather(dout[h], scratch.out);
        each_block<T>(band_of(in.shape, n), 1, [&](const WindowBand& band, const WindowBlock& b, Index) {
          band.backward(gemm, b, x, cell.of(kept[h]), dy, scratch.maps, Update::assign, dx);
        });
        cell.scatter(dx.q, to.update, to.q[h]);
        cell.scatter(dx.k, to.update, to.k[h]);
        cell.scatter(dx.v, to.update, to.v[h]);
      }
    });
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, Heads<T> kept, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> map = maps[h];
      fill(map, T(0));
      const auto make = [&](const WindowBand& band, const WindowTokens<const T>& x, Matrix<T> kept, const auto& token) {
        band.template for_each_block<T>([&](const WindowBlock& b) {
          const Matrix<T> A = block_of(b, scratch.maps.A);
          band.make_map(gemm, b, x, kept, A);
          for (Index i = 0; i < b.rows; ++i)
            for (Index j = 0; j < b.seen; ++j) map(token(b.first + i), token(b.first_key + j)) = A(i, j);
        });
      };
      if (dims == 1)
        make(band(in.shape), {in.q[h], in.k[h], in.v[h]}, kept[h], [](Index place) { return place; });
      else
        for_each_cell(in.shape, [&](const Cell& cell) {
          make(band_of(in.shape, cell.count()), gather(cell, in, h, scratch), cell.of(kept[h]),
               [&](Index place) { return cell.token(place); });
        });
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const Index N = shape.queries, d = shape.width, e = shape.value_width;
    MapPairs map({}, false);
    if (dims == 1)
      band(shape).add_pairs(map);
    else
      for_each_cell(shape, [&](const Cell& cell) { band_of(shape, cell.count()).add_pairs(map); });
    Cost cost;
    // Forward: 1. S; 2. A; 3. out.
    cost.forward = map.scores(d) + kernels::attention_softmax_counts(N, map.pairs) + map.to_queries(e);
    // Backward: S and A recomputed; 3. dv and dA; 2. dS; 1. dq and dk.
    cost.backward = map.scores(d) + kernels::attention_softmax_again_counts(map.pairs) + map.to_keys(e) +
                    map.scores(e) + kernels::attention_softmax_backward_counts(N, map.pairs) + map.to_queries(d) +
                    map.to_keys(d);
    cost.forward_contractions = map.contraction(d + e);
    cost.backward_contractions = 2 * map.contraction(d + e);  // recomputing S is not counted
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  /// Rows [top, bottom) and columns [left, right) of a grid; `before` is the number of tokens in earlier cells.
  struct Cell {
    Index top, bottom, left, right, grid_width, before;

    Index count() const { return (bottom - top) * (right - left); }
    Index token(Index place) const {
      return (top + place / (right - left)) * grid_width + left + place % (right - left);
    }

    /// Returns the cell's rows of a matrix whose rows are in the order of cells.
    template <class T>
    Matrix<T> of(Matrix<T> m) const {
      return m.middle_rows(before, count());
    }
    /// Copies the cell's tokens from x [N, n] to contiguous rows of `memory`, and returns these.
    template <class T>
    Matrix<const T> gather(Matrix<const T> x, Matrix<T> memory) const {
      Index place = 0;
      for (Index y = top; y < bottom; ++y)
        for (Index t = y * grid_width + left; t < y * grid_width + right; ++t)
          std::copy_n(x[t], x.columns, memory[place++]);
      return memory.top_rows(count());
    }
    /// Writes contiguous tokens to their rows of x.
    template <class T>
    void scatter(Matrix<T> tokens, Update update, Matrix<T> x) const {
      Index place = 0;
      for (Index y = top; y < bottom; ++y)
        for (Index t = y * grid_width + left; t < y * grid_width + right; ++t, ++place)
          for (Index c = 0; c < x.columns; ++c) write(update, x(t, c), tokens(place, c));
    }
  };

  template <class F>
  void for_each_cell(const AttentionShape& s, const F& f) const {
    const auto next = [this](Index place, Index end) { return std::min(place < shift ? shift : place + window, end); };
    Index before = 0;
    for (Index top = 0; top < s.grid_height; top = next(top, s.grid_height))
      for (Index left = 0; left < s.grid_width; left = next(left, s.grid_width)) {
        const Cell cell{top, next(top, s.grid_height), left, next(left, s.grid_width), s.grid_width, before};
        f(cell);
        before += cell.count();
      }
  }

  template <class T>
  static WindowTokens<const T> gather(const Cell& cell, const AttentionInput<T>& in, Index h,
                                      const Scratch<T>& scratch) {
    return {cell.gather(in.q[h], scratch.cell.q), cell.gather(in.k[h], scratch.cell.k),
            cell.gather(in.v[h], scratch.cell.v)};
  }

  /// Calls f(band, block, head), each block for all heads in turn, since its heads are adjacent in memory.
  template <class T, class F>
  static void each_block(const WindowBand& band, Index heads, const F& f) {
    band.template for_each_block<T>([&](const WindowBlock& b) {
      for (Index h = 0; h < heads; ++h) f(band, b, h);
    });
  }

  /// Return the band of dims=1, and the band of `tokens` tokens that all see each other.
  WindowBand band(const AttentionShape& s) const {
    return {s.queries, s.keys, std::min(window, std::max(s.queries, s.keys)), score_scale(s)};
  }
  static WindowBand band_of(const AttentionShape& s, Index tokens) { return {tokens, tokens, tokens, score_scale(s)}; }
};

template MechanismEntry mechanism_entry<Window>();

}  // namespace heed
