#include "font.h"

#include <array>
#include <string_view>

namespace heed::draw {

namespace {

constexpr Index columns = 5, glyphs_per_band = 19;

/// ASCII from space to tilde in bands of 19 glyphs, each 5 points wide with one empty point to its right.
// clang-format off
constexpr std::array<std::string_view, 5 * glyph_rows> bands = {
    //  !"#$%&'()*+,-./012
    "        #    # #   # #    #   ##     #      #      #   #      #                                   #     #    ### ",
    "        #    # #   # #   #### ##  # # #     #     #     #   # # #   #                         #  # #   ##   #   #",
    "        #    # #  ##### # #      #  # #     #    #       #   ###    #                        #  #   #   #       #",
    "        #          # #   ###    #    #           #       #  ##### #####       #####         #   #   #   #     ## ",
    "        #         #####   # #  #    # # #        #       #   ###    #                      #    #   #   #    #   ",
    "                   # #  ####  #  ## #  #          #     #   # # #   #                 ##  #      # #    #   #    ",
    "        #          # #    #      ##  ## #          #   #      #           #           ##          #    ###  #####",
    "                                                                          #                                      ",
    "                                                                         #                                       ",
    // 3456789:;<=>?@ABCDE
    " ###     #  #####  ###  #####  ###   ###                  #        #     ###   ###    #   ####   ###  ####  #####",
    "#   #   ##  #     #   #     # #   # #   #   ##           #          #   #   # #   #  # #  #   # #   # #   # #    ",
    "    #  # #  ####  #        #  #   # #   #   ##          #   #####    #      # # # # #   # #   # #     #   # #    ",
    "  ##  #  #      # ####    #    ###   ####         #    #              #   ##  # ### #   # ####  #     #   # #### ",
    "    # #####     # #   #   #   #   #     #   ##    #     #   #####    #    #   # ##  ##### #   # #     #   # #    ",
    "#   #    #  #   # #   #  #    #   # #   #   ##           #          #         #     #   # #   # #   # #   # #    ",
    " ###     #   ###   ###   #     ###   ###          #       #        #      #    #### #   # ####   ###  ####  #####",
    "                                                  #                                                              ",
    "                                                 #                                                               ",
    // FGHIJKLMNOPQRSTUVWX
    "#####  ###  #   #  ###      # #   # #     #   # #   #  ###  ####   ###  ####   ###  ##### #   # #   # #   # #   #",
    "#     #   # #   #   #       # #  #  #     ## ## #   # #   # #   # #   # #   # #   #   #   #   # #   # #   # #   #",
    "#     #     #   #   #       # # #   #     # # # ##  # #   # #   # #   # #   # #       #   #   # #   # #   #  # # ",
    "####  #  ## #####   #       # ##    #     # # # # # # #   # ####  #   # ####   ###    #   #   # #   # # # #   #  ",
    "#     #   # #   #   #       # # #   #     #   # #  ## #   # #     # # # # #       #   #   #   # #   # # # #  # # ",
    "#     #   # #   #   #   #   # #  #  #     #   # #   # #   # #     #  #  #  #  #   #   #   #   #  # #  # # # #   #",
    "#      ###  #   #  ###   ###  #   # ##### #   # #   #  ###  #      ## # #   #  ###    #    ###    #    # #  #   #",
    "                                                                                                                 ",
    "                                                                                                                 ",
    // YZ[\ ]^_`abcdefghijk
    "#   # #####  ###         ###    #          #          #               #          ##       #       #     #   #    ",
    "#   #     #  #    #        #   # #          #         #               #         #         #                 #    ",
    " # #     #   #     #       #  #   #              ###  ####   ###   ####  ###   ####  #### ####    #     #   #  # ",
    "  #     #    #      #      #                        # #   # #   # #   # #   #   #   #   # #   #   #     #   # #  ",
    "  #    #     #       #     #                     #### #   # #     #   # #####   #   #   # #   #   #     #   ##   ",
    "  #   #      #        #    #                    #   # #   # #   # #   # #       #   #   # #   #   #     #   # #  ",
    "  #   #####  ###         ###                     #### ####   ###   ####  ####   #    #### #   #   #     #   #  # ",
    "                                    #####                                               #               #        ",
    "                                                                                     ###               #         ",
    // lmnopqrstuvwxyz{|}~
    "  #                                               #                                          #    #    #         ",
    "  #                                               #                                         #     #     #        ",
    "  #   ## #  ####   ###  ####   ####  # ##  ####  #### #   # #   # #   # #   # #   # #####   #     #     #    #   ",
    "  #   # # # #   # #   # #   # #   #  ##   #       #   #   # #   # #   #  # #  #   #    #   #      #      #  # # #",
    "  #   # # # #   # #   # #   # #   #  #     ###    #   #   # #   # # # #   #   #   #   #     #     #     #      # ",
    "  #   # # # #   # #   # #   # #   #  #        #   #   #   #  # #  # # #  # #  #   #  #      #     #     #        ",
    "  #   # # # #   #  ###  ####   ####  #    ####     ##  ####   #    # #  #   #  #### #####    #    #    #         ",
    "                        #         #                                               #               #              ",
    "                        #         #                                            ###                #              ",
};
// clang-format on

/// The columns of a glyph from the first to the last with a black point.
struct Ink {
  Index first, count;
};

/// Returns true if a point of the character's cell is black.
bool place_point(char character, Index y, Index x) {
  const Index number = character - ' ';
  return bands[static_cast<std::size_t>(number / glyphs_per_band * glyph_rows + y)]
              [static_cast<std::size_t>(number % glyphs_per_band * (columns + 1) + x)] == '#';
}

Ink ink_of(char character) {
  const auto black = [&](Index x) {
    for (Index y = 0; y < glyph_rows; ++y)
      if (place_point(character, y, x)) return true;
    return false;
  };
  Index first = 0, end = columns;
  while (first < end && !black(first)) ++first;
  while (first < end && !black(end - 1)) --end;
  return first == end ? Ink{0, 3} : Ink{first, end - first};  // a space
}

char printable(char character) { return character >= ' ' && character <= '~' ? character : '?'; }

}  // namespace

Index glyph_width(char character) { return ink_of(printable(character)).count; }

bool glyph_point(char character, Index y, Index x) {
  const Ink ink = ink_of(printable(character));
  return y >= 0 && y < glyph_rows && x >= 0 && x < ink.count && place_point(printable(character), y, ink.first + x);
}

}  // namespace heed::draw
