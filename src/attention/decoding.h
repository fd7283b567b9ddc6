// What mechanisms share that keep keys and values while a sequence is decoded token by token.
#pragma once

#include "heed/attention/mechanism.h"

#include <algorithm>

namespace heed {

/// Rows of the last tokens, for each head: `room` of them, the row of token t being t modulo `room`.
template <class T>
Heads<T> kept_rows(Index heads, Index room, Index width, Carver<T>& carve) {
  return {{carve.numbers(heads * room * width), room, width}, heads, room * width};
}

/// Keeps the row of token t.
template <class T>
void keep_row(Heads<const T> row, Index t, const Heads<T>& kept) {
  for (Index h = 0; h < kept.count; ++h) std::copy_n(row[h][0], kept.first.columns, kept[h][t % kept.first.rows]);
}

}  // namespace heed
