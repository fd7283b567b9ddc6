// From patches to tokens and back: class token, position embedding, and the pooling that ends a model.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// y[b] = [class_token; x[b]] + position: x [B, P, D], class_token [1, 1, D] or left out, position [1, N, D]
/// or left out, y [B, N, D] with N = P + 1 where there is a class token, else P. arXiv:2010.11929v2, Eq. 1.
///
///   dx += dy of its rows;  dposition += sum over images of dy;  dclass_token += the same of the first rows
template <class T>
Var<T> embed_tokens(Var<T> x, Var<T> class_token, Var<T> position);

/// A position embedding on another grid: y = [x[..skip]; M x[skip..]] with M the bicubic interpolation from a square
/// grid of side `from` to one of side `to` (kernels/grids/bicubic.h): x [1, skip + from^2, D], y [1, skip + to^2, D].
/// dx gets the first rows of dy and M^T times the others.
template <class T>
Var<T> interpolate_positions(Var<T> x, Index skip, Index from, Index to);

/// y[b] = x[b, token]: x [B, N, D], y [B, D]. dx gets dy in that row and zero in the others.
template <class T>
Var<T> select_token(Var<T> x, Index token);

/// y[b] = x[b] without its first `count` tokens: x [B, N, D], y [B, N - count, D]. dx gets zero in these.
template <class T>
Var<T> skip_tokens(Var<T> x, Index count);

/// y[b] = [first[b]; rest[b]]: first [B, D] or [B, 1, D], rest [B, N, D], y [B, N + 1, D]. Both get their rows of dy.
template <class T>
Var<T> join_tokens(Var<T> first, Var<T> rest);

/// Each channel of x [B, N, D] divided by the larger of `least` and the sum of its magnitudes over the tokens of its
/// image (kernels/sums/normalize.h, with the gradient).
template <class T>
Var<T> l1_normalize_tokens(Var<T> x, double least);

/// y[b] = mean over tokens of x[b]: x [B, N, D], y [B, D]. dx[b, n] += dy[b] / N.
template <class T>
Var<T> mean_tokens(Var<T> x);

}  // namespace heed
