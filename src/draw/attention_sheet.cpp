#include "heed/draw/attention_sheet.h"

#include "colour.h"
#include "heed/base/matrix.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

constexpr std::uint8_t brightest = 255;
constexpr Colour paper{255, 255, 255}, ink{34, 34, 34}, pale_ink{120, 120, 120};
constexpr const char* channels_label = "channels";
constexpr Index margin = 28, gap = 14, label_gap = 14, least_text_width = 330;

/// Where things stand, in pixels.
struct Layout {
  Index cell;                     ///< side of a map
  Index heads;                    ///< columns
  Index left, right, top;         ///< of the maps
  Index header_text, text_width;  ///< where the header's text begins, and the space it has
  std::vector<std::string> title;
  std::vector<Index> rows;  ///< top of each block's maps; one more for the end
  Index column(Index head) const { return left + head * (cell + gap); }
};

/// Small images are enlarged by a whole number, so that all pixels stay alike.
Index cell_side(Index image) {
  constexpr Index least = 150, most = 256;
  return image > most ? most : image * ((least + image - 1) / image);
}

Layout lay_out(const AttentionSheet& sheet) {
  Layout at{};
  at.cell = cell_side(sheet.image.size.width);
  Index labels = 0;
  for (std::size_t i = 0; i < sheet.blocks.size(); ++i) {
    const BlockWeights& block = sheet.blocks[i];
    if (block.weights.size() > 0) at.heads = std::max(at.heads, block.weights.shape()[0]);
    labels = std::max({labels, text_width(fmt::format("block {}", i + 1)), text_width(block.mechanism),
                       block.of_channels ? text_width(channels_label) : 0});
  }
  at.left = margin + labels + label_gap;
  at.header_text = at.left + at.cell + 2 * gap;
  at.right = std::max(at.column(at.heads) - gap, at.header_text + least_text_width);
  at.text_width = at.right - at.header_text;
  at.title = wrap_text(sheet.title, at.text_width);
  const Index text_lines = static_cast<Index>(at.title.size()) + 4;  // subtitle, scale, its numbers and their meaning
  at.top = margin + std::max(at.cell, text_lines * line_height + gap) + 2 * gap + line_height;
  Index y = at.top;
  for (const BlockWeights& block : sheet.blocks) {
    at.rows.push_back(y);
    y += block.weights.size() > 0 ? at.cell + line_height + gap : 2 * line_height + gap;
  }
  at.rows.push_back(y);
  return at;
}

float largest_magnitude(const float* weights, Index count) {
  float largest = 0;
  for (Index i = 0; i < count; ++i) largest = std::max(largest, std::abs(weights[i]));
  return largest;
}

class Drawing {
 public:
  explicit Drawing(const AttentionSheet& sheet)
      : sheet_(sheet),
        at_(lay_out(sheet)),
        canvas_(at_.rows.back() + margin - gap, at_.right + margin, paper),
        grey_(convert(sheet.image, {1, at_.cell, at_.cell})) {
    for (const BlockWeights& block : sheet.blocks)
      if (block.weights.size() > 0 && *std::min_element(block.weights.begin(), block.weights.end()) < 0) signed_ = true;
  }

  Image draw() {
    header();
    for (Index h = 0; h < at_.heads; ++h)
      centred(at_.top - line_height, at_.column(h), fmt::format("head {}", h + 1), ink);
    for (std::size_t i = 0; i < sheet_.blocks.size(); ++i) row(i);
    return canvas_.image();
  }

 private:
  /// The image itself, what the sheet shows, and the scale.
  void header() {
    const Image image = convert(sheet_.image, {3, at_.cell, at_.cell});
    const std::uint8_t* const pixels = image.pixels.data();
    const Index count = image.size.pixels();
    for (Index i = 0; i < count; ++i)
      canvas_.set(margin + i / at_.cell, at_.left + i % at_.cell,
                  {pixels[i], pixels[count + i], pixels[2 * count + i]});
    canvas_.frame(margin - 1, at_.left - 1, at_.cell + 2, at_.cell + 2, 1, pale_ink);
    mark_query(margin, at_.left);
    Index y = margin;
    for (const std::string& line : at_.title) {
      canvas_.text(y, at_.header_text, line, ink);
      y += line_height;
    }
    canvas_.text(y, at_.header_text, shorten_text(sheet_.subtitle, at_.text_width), pale_ink);
    scale(y + line_height + gap);
  }

  /// All colours: weights from left to right, the image's brightness, which shows through, from top to bottom.
  void scale(Index y) {
    const Index width = std::min<Index>(at_.text_width, 300), height = line_height;
    for (Index row = 0; row < height; ++row)
      for (Index x = 0; x < width; ++x) {
        const double share = static_cast<double>(x) / static_cast<double>(width - 1);
        const auto brightness = static_cast<std::uint8_t>(255 * row / (height - 1));
        canvas_.set(y + row, at_.header_text + x, over_grey(colour(signed_ ? 2 * share - 1 : share), brightness));
      }
    const auto number = [&](const std::string& text, Index half_widths) {
      canvas_.text(y + height + 6, at_.header_text + half_widths * (width - text_width(text)) / 2, text, ink);
    };
    number(signed_ ? "-max" : "0", 0);
    if (signed_) number("0", 1);
    number("max", 2);
    canvas_.text(y + height + 6 + line_height, at_.header_text,
                 signed_ ? "max: the map's largest magnitude" : "max: the map's largest weight", pale_ink);
  }

  void row(std::size_t i) {
    const BlockWeights& block = sheet_.blocks[i];
    const bool has_map = block.weights.size() > 0;
    const Index y = at_.rows[i], middle = y + (has_map ? at_.cell / 2 : line_height);
    right_aligned(middle - line_height, fmt::format("block {}", i + 1), ink);
    right_aligned(middle + 4, block.mechanism, pale_ink);
    if (block.of_channels) right_aligned(middle + 4 + line_height, channels_label, pale_ink);
    if (!has_map) {
      centred(middle - capital_height / 2, at_.left, "no map", pale_ink);
      return;
    }
    const Index heads = block.weights.shape()[0], rows = block.weights.shape()[1], columns = block.weights.shape()[2];
    for (Index h = 0; h < heads; ++h) {
      const Matrix weights(block.weights.data() + h * rows * columns, rows, columns);
      map(y, at_.column(h), weights, !block.of_channels);
      if (!block.of_channels) mark_query(y, at_.column(h));
    }
  }

  /// With the image's brightness showing through or in full colours.
  void map(Index y, Index x, Matrix<const float> weights, bool over_image) {
    const float largest = largest_magnitude(weights.data, weights.rows * weights.columns);
    for (Index row = 0; row < at_.cell; ++row)
      for (Index column = 0; column < at_.cell; ++column) {
        const float weight = weights(row * weights.rows / at_.cell, column * weights.columns / at_.cell);
        const double share = largest > 0 ? static_cast<double>(weight / largest) : 0;
        const auto pixel = static_cast<std::size_t>(row * at_.cell + column);
        canvas_.set(y + row, x + column, over_grey(colour(share), over_image ? grey_.pixels[pixel] : brightest));
      }
    centred(y + at_.cell + 6, x, fmt::format("max {:.3g}", largest), pale_ink);
  }

  /// White within black stands out from every colour.
  void mark_query(Index y, Index x) {
    if (!sheet_.query) return;
    const PatchGrid grid = sheet_.grid;
    const Index top = sheet_.query->row * at_.cell / grid.rows, left = sheet_.query->column * at_.cell / grid.columns;
    const Index height = at_.cell / grid.rows, width = at_.cell / grid.columns;
    canvas_.frame(y + top - 1, x + left - 1, height + 2, width + 2, 1, {0, 0, 0});
    canvas_.frame(y + top, x + left, height, width, 2, paper);
  }

  Colour colour(double share) const { return signed_ ? diverging_colour(share) : sequential_colour(share); }

  void centred(Index y, Index x, const std::string& text, Colour colour) {
    canvas_.text(y, x + (at_.cell - text_width(text)) / 2, text, colour);
  }

  void right_aligned(Index y, const std::string& text, Colour colour) {
    canvas_.text(y, at_.left - label_gap - text_width(text), text, colour);
  }

  const AttentionSheet& sheet_;
  Layout at_;
  Canvas canvas_;
  Image grey_;
  bool signed_ = false;
};

void require_finite(View<const float> map) {
  for (const float weight : map) require(std::isfinite(weight), "an attention map holds {}", weight);
}

/// The grid of a map's keys, the queries' own or a coarser one of the same proportions.
PatchGrid key_grid(Index keys, PatchGrid queries, bool class_token) {
  const Index patches = keys - (class_token ? 1 : 0);
  PatchGrid grid = queries;
  while (grid.rows > 0 && grid.patches() > patches)
    --grid.rows, grid.columns = grid.rows * queries.columns / queries.rows;
  require(grid.rows > 0 && grid.patches() == patches && grid.rows * queries.columns == grid.columns * queries.rows,
          "an attention map has {} keys; expected a grid of patches like that of the queries, {} x {}", keys,
          queries.rows, queries.columns);
  return grid;
}

}  // namespace

Tensor<float> patch_weights(View<const float> map, PatchGrid grid, std::optional<Patch> query) {
  const Index heads = map.shape()[0], queries = map.shape()[1], keys = map.shape()[2];
  const Index class_tokens = queries - grid.patches();
  HEED_ASSERT(class_tokens == 0 || class_tokens == 1);
  require_finite(map);
  const Index patch = query ? class_tokens + query->row * grid.columns + query->column : 0;
  const bool mean = !query && class_tokens == 0;
  const Index first = mean ? 0 : patch, end = mean ? queries : patch + 1;
  const PatchGrid of_keys = key_grid(keys, grid, class_tokens == 1);
  Tensor<float> weights(Shape{heads, of_keys.rows, of_keys.columns});
  for (Index h = 0; h < heads; ++h)
    for (Index p = 0; p < of_keys.patches(); ++p) {
      double sum = 0;
      for (Index q = first; q < end; ++q) sum += static_cast<double>(map[(h * queries + q) * keys + class_tokens + p]);
      weights.data()[h * of_keys.patches() + p] = static_cast<float>(sum / static_cast<double>(end - first));
    }
  return weights;
}

Tensor<float> channel_weights(View<const float> map) {
  require_finite(map);
  Tensor<float> weights(map.shape());
  std::copy(map.begin(), map.end(), weights.begin());
  return weights;
}

std::vector<std::string> weight_colours(std::size_t steps, bool with_negative) {
  std::vector<std::string> colours;
  for (std::size_t i = 0; i < steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps - 1);
    const Colour colour = with_negative ? diverging_colour(2 * share - 1) : sequential_colour(share);
    colours.push_back(fmt::format("{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue));
  }
  return colours;
}

Image draw_attention(const AttentionSheet& sheet) { return Drawing(sheet).draw(); }

}  // namespace heed
