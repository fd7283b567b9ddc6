// Patches of one grid in another. Includes the tested source file.
#include "src/apps/cli/looking/layer_map.cpp"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(cli_layer_map)

// The centre of patch (r, c) has the coordinates (r + 1/2) / rows from top to bottom and (c + 1/2) / columns from left
// to right, relative to the image's height and width.
BOOST_AUTO_TEST_CASE(a_patch_is_found_in_other_grids_by_its_centre) {
  const PatchGrid grids[] = {{1, 1}, {2, 5}, {4, 10}, {10, 4}, {7, 3}, {8, 8}, {3, 4}};
  for (const PatchGrid& first : grids)
    for (const PatchGrid& grid : grids)
      for (Index row = 0; row < first.rows; ++row)
        for (Index column = 0; column < first.columns; ++column) {
          const Patch found = cli::patch_in(grid, first, {row, column});
          BOOST_TEST_CONTEXT(first.rows << " x " << first.columns << " in " << grid.rows << " x " << grid.columns) {
            BOOST_TEST(2 * first.rows * found.row <= (2 * row + 1) * grid.rows);
            BOOST_TEST(2 * first.rows * (found.row + 1) > (2 * row + 1) * grid.rows);
            BOOST_TEST(2 * first.columns * found.column <= (2 * column + 1) * grid.columns);
            BOOST_TEST(2 * first.columns * (found.column + 1) > (2 * column + 1) * grid.columns);
          }
        }
}

BOOST_AUTO_TEST_SUITE_END()
