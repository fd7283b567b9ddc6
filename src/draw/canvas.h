// A colour picture to draw rectangles and lines of text on.
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

  /// Picture of all that was drawn.
  const Image& image() const { return image_; }

  /// Clips to the picture.
  void set(Index y, Index x, Colour colour);
  void fill(Index y, Index x, Index height, Index width, Colour colour);

  /// The border of a rectangle, `thickness` pixels wide, drawn inside it.
  void frame(Index y, Index x, Index height, Index width, Index thickness, Colour colour);

  /// Writes a line of text with its upper left corner at (y, x).
  void text(Index y, Index x, std::string_view line, Colour colour);

 private:
  Image image_;
};

/// Pixels from the top of a capital letter to the baseline, and from a line of text to the next.
inline constexpr Index capital_height = 14, line_height = 24;

/// Pixels that a line of text takes from left to right.
Index text_width(std::string_view line);

/// The text in lines of at most `width` pixels; a longer word stays whole.
std::vector<std::string> wrap_text(std::string_view text, Index width);

/// The text, or as much of its beginning as, with "..." after it, fits `width` pixels.
std::string shorten_text(std::string_view text, Index width);

}  // namespace heed
