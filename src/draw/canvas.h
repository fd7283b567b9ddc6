// A colour picture with functions for rectangles and text.
#pragma once

#include "heed/data/images/image.h"

#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

class Canvas {
 public:
  Canvas(Index height, Index width, Colour background);

  /// Returns the picture.
  const Image& image() const { return image_; }

  /// Set a pixel, and fill a rectangle, clipped to the picture.
  void set(Index y, Index x, Colour colour);
  void fill(Index y, Index x, Index height, Index width, Colour colour);

  /// Draws the border of a rectangle, `thickness` pixels wide, inside it.
  void frame(Index y, Index x, Index height, Index width, Index thickness, Colour colour);

  /// Writes a line of text with its upper left corner at (y, x).
  void text(Index y, Index x, std::string_view line, Colour colour);

 private:
  Image image_;
};

/// Height of a capital letter, and distance between lines of text, in pixels.
inline constexpr Index capital_height = 14, line_height = 24;

/// Returns the width of a line of text in pixels.
Index text_width(std::string_view line);

/// Splits the text at each '\n' and into lines of at most `width` pixels; longer words stay whole.
std::vector<std::string> wrap_text(std::string_view text, Index width);

/// Returns the text if it fits `width` pixels, otherwise its longest prefix that fits with "...", followed by "...".
std::string shorten_text(std::string_view text, Index width);

}  // namespace heed
