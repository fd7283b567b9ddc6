#include "canvas.h"

#include "font.h"

#include <algorithm>
#include <utility>

namespace heed {

namespace {

/// Pixels per side of a glyph's point.
constexpr Index point = 2;
static_assert(capital_height == point * (draw::glyph_rows - 2));

/// Returns true if pixel (y, x) of a glyph at twice its size is black. If the two points next to a corner pixel of a
/// point have one colour and the two on the opposite sides have the other, the pixel gets the colour of the former,
/// which smooths slanted strokes (Scale2x: Mazzoleni, 2001).
bool glyph_pixel(char character, Index y, Index x) {
  const auto black = [&](Index row, Index column) { return draw::glyph_point(character, row, column); };
  const Index row = y / point, column = x / point;
  const Index near_row = y % point == 0 ? row - 1 : row + 1, far_row = 2 * row - near_row;
  const Index near_column = x % point == 0 ? column - 1 : column + 1, far_column = 2 * column - near_column;
  const bool vertical = black(near_row, column), horizontal = black(row, near_column);
  const bool corner =
      vertical == horizontal && vertical != black(row, far_column) && horizontal != black(far_row, column);
  return corner ? vertical : black(row, column);
}

/// Removes UTF-8 continuation bytes, so that each character beyond ASCII is one byte, which is drawn as '?'.
std::string ascii(std::string_view text) {
  std::string result;
  for (const char byte : text)
    if ((byte & 0xc0) != 0x80) result += byte;
  return result;
}

}  // namespace

Canvas::Canvas(Index height, Index width, Colour background) {
  image_.size = {3, height, width};
  image_.pixels.resize(static_cast<std::size_t>(image_.size.elements()));
  fill(0, 0, height, width, background);
}

void Canvas::set(Index y, Index x, Colour colour) {
  const ImageSize& size = image_.size;
  if (y < 0 || y >= size.height || x < 0 || x >= size.width) return;
  std::uint8_t* const pixel = image_.pixels.data() + y * size.width + x;
  pixel[0] = colour.red;
  pixel[size.pixels()] = colour.green;
  pixel[2 * size.pixels()] = colour.blue;
}

void Canvas::fill(Index y, Index x, Index height, Index width, Colour colour) {
  for (Index row = y; row < y + height; ++row)
    for (Index column = x; column < x + width; ++column) set(row, column, colour);
}

void Canvas::frame(Index y, Index x, Index height, Index width, Index thickness, Colour colour) {
  fill(y, x, thickness, width, colour);
  fill(y + height - thickness, x, thickness, width, colour);
  fill(y, x, height, thickness, colour);
  fill(y, x + width - thickness, height, thickness, colour);
}

void Canvas::text(Index y, Index x, std::string_view line, Colour colour) {
  for (const char character : ascii(line)) {
    const Index width = point * draw::glyph_width(character);
    for (Index row = 0; row < point * draw::glyph_rows; ++row)
      for (Index column = 0; column < width; ++column)
        if (glyph_pixel(character, row, column)) set(y + row, x + column, colour);
    x += width + point;
  }
}

Index text_width(std::string_view line) {
  Index width = 0;
  for (const char character : ascii(line)) width += point * (draw::glyph_width(character) + 1);
  return std::max<Index>(width - point, 0);
}

std::vector<std::string> wrap_text(std::string_view text, Index width) {
  std::vector<std::string> lines;
  for (bool starts_line = true; !text.empty();) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string word(text.substr(0, end));
    const bool line_ends = end < text.size() && text[end] == '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!std::exchange(starts_line, line_ends) && text_width(lines.back() + " " + word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

std::string shorten_text(std::string_view text, Index width) {
  std::string line = ascii(text);
  if (text_width(line) <= width) return line;
  while (!line.empty() && text_width(line + "...") > width) line.pop_back();
  return line + "...";
}

}  // namespace heed
