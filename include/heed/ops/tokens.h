// Operations on an image's tokens: class token, position embedding, selection and pooling.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y[b] = [prefix; x[b]] + position: x [B, P, D], prefix [1, F, D] optional (a class token, registers),
/// position [1, F + P, D] optional, y [B, F + P, D]. arXiv:2010.11929v2, Eq. 1.
///
///   dx += dy of its rows;  dposition += sum over images of dy;  dprefix += the first F rows of that sum
template <class T>
Var<T> embed_tokens(Var<T> x, Var<T> prefix, Var<T> position);

/// Interpolates a position embedding to another grid: y = [x[..skip]; M x[skip..]] with M the bicubic interpolation
/// from a square grid of side `from` to one of side `to` (kernels/grids/bicubic.h): x [1, skip + from^2, D], y
/// [1, skip + to^2, D]. dx += [dy[..skip]; M^T dy[skip..]].
template <class T>
Var<T> interpolate_positions(Var<T> x, Index skip, Index from, Index to);

/// Returns y[b] = x[b, token]: x [B, N, D], y [B, D]. dx[b, token] += dy[b].
template <class T>
Var<T> select_token(Var<T> x, Index token);

/// Returns y[b] = x[b] without its first `count` tokens: x [B, N, D], y [B, N - count, D]. dx += dy for the other
/// tokens.
template <class T>
Var<T> skip_tokens(Var<T> x, Index count);

/// Computes y[b] = [first[b]; rest[b]]: first [B, D] or [B, 1, D], rest [B, N, D], y [B, N + 1, D]. dfirst and drest
/// accumulate their rows of dy.
template <class T>
Var<T> join_tokens(Var<T> first, Var<T> rest);

/// Divides each channel of x [B, N, D] by max(`least`, sum of its magnitudes over the tokens of its image). Gradient:
/// see kernels/sums/normalize.h.
template <class T>
Var<T> l1_normalize_tokens(Var<T> x, double least);

/// Computes y[b] = mean over tokens of x[b]: x [B, N, D], y [B, D]. dx[b, n] += dy[b] / N.
template <class T>
Var<T> mean_tokens(Var<T> x);

}  // namespace heed
