#include "heed/draw/attention_sheet.h"

#include "colour.h"
#include "heed/base/matrix.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

constexpr std::uint8_t brightest = 255;
constexpr Colour paper{255, 255, 255}, ink{34, 34, 34}, pale_ink{120, 120, 120};
constexpr Index margin = 28, gap = 14, label_gap = 14, least_text_width = 330;

/// Layout in pixels.
struct Layout {
  Index cell_height, cell_width;  ///< size of a map
  Index heads, images;            ///< number of map columns and of image columns before them
  Index left, right, top;         ///< position of the maps
  Index header_text, text_width;  ///< start and width of the header's text
  std::vector<std::string> title;
  std::vector<Index> rows;  ///< top of each row's maps, and the end of the last row
  Index column(Index head) const { return left + (images + head) * (cell_width + gap); }
};

/// Sets the size of a map to that of the image, scaled. A width above 256 pixels is reduced to 256. A smaller image is
/// enlarged by the least integer factor that gives a width of at least 150 pixels, which the text below a map needs;
/// with an integer factor, all its pixels have the same size.
void set_cell(Layout& at, ImageSize image) {
  constexpr Index least = 150, most = 256;
  const Index factor = (least + image.width - 1) / image.width;
  at.cell_width = image.width > most ? most : image.width * factor;
  at.cell_height = image.width > most ? std::max<Index>(image.height * most / image.width, 1) : image.height * factor;
}

/// Returns the column of a row's map.
Index column_of(const SheetRow& row, Index map) {
  return row.columns.empty() ? map : row.columns[static_cast<std::size_t>(map)];
}

Layout lay_out(const AttentionSheet& sheet) {
  Layout at{};
  at.images = sheet.image.pixels.empty() ? 1 : 0;
  set_cell(at, at.images ? sheet.rows.front().image.size : sheet.image.size);
  Index labels = 0;
  for (const SheetRow& row : sheet.rows) {
    if (row.weights.size() > 0) at.heads = std::max(at.heads, 1 + column_of(row, row.weights.shape()[0] - 1));
    for (const std::string& line : row.label) labels = std::max(labels, text_width(line));
  }
  at.left = margin + labels + label_gap;
  at.header_text = at.left + (at.images ? 0 : at.cell_width + 2 * gap);
  at.right = std::max(at.column(at.heads) - gap, at.header_text + least_text_width);
  at.text_width = at.right - at.header_text;
  at.title = wrap_text(sheet.title, at.text_width);
  // Height of the title, the subtitle, the scale, its numbers and their meaning.
  const Index text_lines = static_cast<Index>(at.title.size()) + (sheet.subtitle.empty() ? 0 : 1) + 3;
  const Index text_height = text_lines * line_height + gap;
  at.top = margin + (at.images ? text_height : std::max(at.cell_height, text_height)) + 2 * gap + line_height;
  Index y = at.top;
  for (const SheetRow& row : sheet.rows) {
    at.rows.push_back(y);
    y += row.weights.size() > 0 || at.images ? at.cell_height + line_height + gap : 2 * line_height + gap;
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
      : sheet_(sheet), at_(lay_out(sheet)), canvas_(at_.rows.back() + margin - gap, at_.right + margin, paper) {
    for (const SheetRow& row : sheet.rows)
      if (row.weights.size() > 0 && *std::min_element(row.weights.begin(), row.weights.end()) < 0) signed_ = true;
  }

  Image draw() {
    header();
    for (std::size_t h = 0; h < sheet_.columns.size(); ++h)
      centred(at_.top - line_height, at_.column(static_cast<Index>(h)), sheet_.columns[h], ink);
    for (std::size_t i = 0; i < sheet_.rows.size(); ++i) row(sheet_.rows[i], at_.rows[i]);
    return canvas_.image();
  }

 private:
  /// Draws an image without a map.
  void picture(Index y, const Image& shown) {
    const Image image = convert(shown, {3, at_.cell_height, at_.cell_width});
    const std::uint8_t* const pixels = image.pixels.data();
    const Index count = image.size.pixels();
    for (Index i = 0; i < count; ++i)
      canvas_.set(y + i / at_.cell_width, at_.left + i % at_.cell_width,
                  {pixels[i], pixels[count + i], pixels[2 * count + i]});
    canvas_.frame(y - 1, at_.left - 1, at_.cell_height + 2, at_.cell_width + 2, 1, pale_ink);
    mark_query(y, at_.left);
  }

  /// Draws the sheet's image, the description and the scale.
  void header() {
    if (!at_.images) picture(margin, sheet_.image);
    Index y = margin;
    for (const std::string& line : at_.title) {
      canvas_.text(y, at_.header_text, shorten_text(line, at_.text_width), ink);
      y += line_height;
    }
    if (!sheet_.subtitle.empty()) {
      canvas_.text(y, at_.header_text, shorten_text(sheet_.subtitle, at_.text_width), pale_ink);
      y += line_height;
    }
    scale(y + gap);
  }

  /// Draws the colour scale: weights from left to right, the brightness of the underlying image from top to bottom.
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
    const char* const explanation = signed_ ? "max: below a map, dash: negative" : "max: the number below each map";
    canvas_.text(y + height + 6 + line_height, at_.header_text, explanation, pale_ink);
  }

  void row(const SheetRow& row, Index y) {
    const bool has_map = row.weights.size() > 0;
    const Index middle = y + (has_map || at_.images ? at_.cell_height / 2 : line_height);
    Index line_top = middle - line_height;
    for (const std::string& line : row.label) {
      const bool first = &line == &row.label.front();
      right_aligned(line_top, line, first ? ink : pale_ink);
      line_top += line_height + (first ? 4 : 0);
    }
    if (at_.images) picture(y, row.image);
    if (!has_map) {
      centred(middle - capital_height / 2, at_.column(0), "no " + sheet_.kind, pale_ink);
      return;
    }
    const Image grey = convert(at_.images ? row.image : sheet_.image, {1, at_.cell_height, at_.cell_width});
    const Index heads = row.weights.shape()[0], rows = row.weights.shape()[1], columns = row.weights.shape()[2];
    for (Index h = 0; h < heads; ++h) {
      const Matrix weights(row.weights.data() + h * rows * columns, rows, columns);
      const Index x = at_.column(column_of(row, h));
      map(y, x, weights, row.over_image ? &grey : nullptr);
      if (row.over_image) mark_query(y, x);
    }
  }

  /// Draws a map over the image's brightness or, without an image, in full colours.
  void map(Index y, Index x, Matrix<const float> weights, const Image* grey) {
    const float largest = largest_magnitude(weights.data, weights.rows * weights.columns);
    for (Index row = 0; row < at_.cell_height; ++row)
      for (Index column = 0; column < at_.cell_width; ++column) {
        const float weight = weights(row * weights.rows / at_.cell_height, column * weights.columns / at_.cell_width);
        const double share = largest > 0 ? static_cast<double>(weight / largest) : 0;
        const auto pixel = static_cast<std::size_t>(row * at_.cell_width + column);
        canvas_.set(y + row, x + column, over_grey(colour(share), grey ? grey->pixels[pixel] : brightest));
      }
    mark_negative(y, x, weights, largest);
    centred(y + at_.cell_height + 6, x, fmt::format("max {:.3g}", largest), pale_ink);
  }

  /// Draws a dash on each weight below a tenth of -`largest`, if there is room, so that the sign is visible without
  /// colours.
  void mark_negative(Index y, Index x, Matrix<const float> weights, float largest) {
    constexpr Index least = 10;
    const Index height = at_.cell_height / weights.rows, width = at_.cell_width / weights.columns;
    if (std::min(height, width) < least) return;
    for (Index row = 0; row < weights.rows; ++row)
      for (Index column = 0; column < weights.columns; ++column) {
        const float weight = weights(row, column);
        if (weight >= -largest / 10) continue;
        const Index top = row * at_.cell_height / weights.rows + height / 2,
                    left = column * at_.cell_width / weights.columns;
        canvas_.fill(y + top - 1, x + left + width / 3, 2, width / 3, weight < -largest / 2 ? paper : ink);
      }
  }

  /// Draws a white frame within a black one around the query's patch, visible on every colour.
  void mark_query(Index y, Index x) {
    if (!sheet_.query) return;
    const PatchGrid grid = sheet_.grid;
    const Index top = sheet_.query->row * at_.cell_height / grid.rows,
                left = sheet_.query->column * at_.cell_width / grid.columns;
    const Index height = at_.cell_height / grid.rows, width = at_.cell_width / grid.columns;
    canvas_.frame(y + top - 1, x + left - 1, height + 2, width + 2, 1, {0, 0, 0});
    canvas_.frame(y + top, x + left, height, width, 2, paper);
  }

  Colour colour(double share) const { return signed_ ? diverging_colour(share) : sequential_colour(share); }

  void centred(Index y, Index x, const std::string& text, Colour colour) {
    canvas_.text(y, x + (at_.cell_width - text_width(text)) / 2, text, colour);
  }

  void right_aligned(Index y, const std::string& text, Colour colour) {
    canvas_.text(y, at_.left - label_gap - text_width(text), text, colour);
  }

  const AttentionSheet& sheet_;
  Layout at_;
  Canvas canvas_;
  bool signed_ = false;
};

void require_finite(View<const float> map) {
  for (const float weight : map)
    require(std::isfinite(weight), "an attention map contains {}; expected finite numbers", weight);
}

/// Returns the grid of a map's keys: the queries' or a coarser one with the same proportions.
PatchGrid key_grid(Index keys, PatchGrid queries, Index prefix) {
  const Index patches = keys - prefix;
  PatchGrid grid = queries;
  while (grid.rows > 0 && grid.patches() > patches)
    --grid.rows, grid.columns = grid.rows * queries.columns / queries.rows;
  require(grid.rows > 0 && grid.patches() == patches && grid.rows * queries.columns == grid.columns * queries.rows,
          "an attention map has {} keys; expected the grid of patches of the queries, {} x {}", keys, queries.rows,
          queries.columns);
  return grid;
}

}  // namespace

Tensor<float> patch_weights(View<const float> map, PatchGrid grid, std::optional<Patch> query, Index token) {
  const Index heads = map.shape()[0], queries = map.shape()[1], keys = map.shape()[2];
  const Index prefix = queries - grid.patches();
  HEED_ASSERT(prefix >= 0 && token < std::max<Index>(prefix, 1));
  require_finite(map);
  const Index chosen = query ? prefix + query->row * grid.columns + query->column : token;
  const bool mean = !query && (prefix == 0 || token < 0);
  const Index first = mean ? prefix : chosen, end = mean ? queries : chosen + 1;
  const PatchGrid of_keys = key_grid(keys, grid, prefix);
  Tensor<float> weights(Shape{heads, of_keys.rows, of_keys.columns});
  for (Index h = 0; h < heads; ++h)
    for (Index p = 0; p < of_keys.patches(); ++p) {
      double sum = 0;
      for (Index q = first; q < end; ++q) sum += static_cast<double>(map[(h * queries + q) * keys + prefix + p]);
      weights.data()[h * of_keys.patches() + p] = static_cast<float>(sum / static_cast<double>(end - first));
    }
  return weights;
}

Tensor<float> token_weights(View<const float> numbers, PatchGrid grid, Index prefix) {
  require_finite(numbers);
  const Index heads = numbers.shape()[0], tokens = numbers.shape()[1];
  const PatchGrid of_tokens = key_grid(tokens, grid, prefix);
  Tensor<float> weights(Shape{heads, of_tokens.rows, of_tokens.columns});
  for (Index h = 0; h < heads; ++h)
    std::copy_n(numbers.begin() + h * tokens + prefix, of_tokens.patches(), weights.begin() + h * of_tokens.patches());
  return weights;
}

Tensor<float> mean_of_heads(View<const float> weights) {
  const Index heads = weights.shape()[0], patches = weights.size() / heads;
  Tensor<float> mean(Shape{1, weights.shape()[1], weights.shape()[2]});
  for (Index h = 0; h < heads; ++h)
    for (Index p = 0; p < patches; ++p) mean[p] += weights[h * patches + p] / static_cast<float>(heads);
  return mean;
}

Tensor<float> matrix_weights(View<const float> matrices) {
  require_finite(matrices);
  Tensor<float> weights(matrices.shape());
  std::copy(matrices.begin(), matrices.end(), weights.begin());
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
