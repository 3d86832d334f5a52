"""Bounds from fast cells (T6) for every row and N of one layer, compiled."""

import numpy as np
from numba import njit, prange

from empirical.kernels.cells_numba import count_one
from empirical.kernels.rows_numba import _FUSED, _dot, _order

__all__ = ["count_row_cells", "row_dots"]

_UNIT = 2.0**-53
_MARGIN = 1 + 2.0**-20  # for norms and sums, which are rounded


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _add(total: np.ndarray, w: float, v: np.ndarray) -> None:
    """Add a contribution in float64, where products of float32 are exact."""
    for k in range(len(total)):
        total[k] += w * np.float64(v[k])


@njit(cache=True, nogil=True)
def row_dots(
    w: np.ndarray,
    values: np.ndarray,
    m: np.ndarray,
    ranked: np.ndarray,
    n: int,
    t: np.ndarray,
    t_radius: np.ndarray,
) -> None:
    """Write <v, s_N> of the ranked keys and its radius (T8, with T <= m sum of w m).

    ``ranked`` holds keys, the N selected ones first.
    """
    d = values.shape[1]
    total, size = np.zeros(d), 0.0
    for i in range(n):
        key = ranked[i]
        _add(total, np.float64(w[key]), values[key])
        size += np.float64(w[key]) * m[key]
    scale = _MARGIN * (n + d + 3) * _UNIT * size
    for i in range(len(ranked)):
        key = ranked[i]
        t[i] = _dot(total, values[key])
        t_radius[i] = scale * m[key]


@njit(cache=True, nogil=True)
def _count_row(
    w: np.ndarray,
    start: int,
    stop: int,
    values: np.ndarray,
    q: np.ndarray,
    m: np.ndarray,
    sink: int,
    ns: np.ndarray,
    policies: np.ndarray,
    resolutions: np.ndarray,
    out: np.ndarray,
) -> None:
    """Count one row; arguments as for ``count_row_cells``."""
    size = stop - start
    d = values.shape[1]
    keys, places = np.empty((2, size), np.int32), np.empty((2, size), np.int32)
    scores = np.empty(size, np.float32)
    for j in range(size):
        scores[j] = w[start + j] + np.float32(0)
    half = _order(scores, keys, places)
    room = max(resolutions.max(), 4) + 2
    edges, coarse = np.empty(room, np.int64), np.empty(room, np.int64)
    cuts = np.empty(room, np.int64)
    scratch, order = np.empty((6, size)), np.empty(size, np.int64)
    ranked = np.empty(size, np.int64)
    x = np.empty((5, size))
    for p in range(len(policies)):
        apart = policies[p] > 0 and start <= sink < stop
        length, place = 0, -1
        for j in range(size):
            key = start + places[half, j]
            if apart and key == sink:
                continue
            if key == sink:
                place = length
            ranked[length] = key
            length += 1
        if apart and policies[p] == 2:
            ranked[length], place = sink, length
            length += 1
        for j in range(length):
            key = ranked[j]
            x[0, j], x[1, j] = w[key], q[key]
            x[2, j] = (d + 2) * _UNIT * q[key] * _MARGIN
        for k in range(len(ns)):
            if ns[k] > length - 1:
                continue
            t, t_radius = x[3, :length], x[4, :length]
            row_dots(w, values, m, ranked[:length], ns[k], t, t_radius)
            count_one(
                x[0, :length], t, x[1, :length], t_radius, x[2, :length], place, ns[k],
                resolutions, out[p, k],
                edges, coarse, cuts, scratch, order,
            )  # fmt: skip


@njit(cache=True, nogil=True, parallel=True)
def count_row_cells(
    weights: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    values: np.ndarray,
    q: np.ndarray,
    m: np.ndarray,
    sink: int,
    ns: np.ndarray,
    policies: np.ndarray,
    resolutions: np.ndarray,
    out: np.ndarray,
) -> None:
    """Bound the counts of every row of a layer; see ``rows_numba.count_rows``.

    Parameters
    ----------
    resolutions : ndarray of int64
        Numbers of cells.
    out : ndarray of int32, shape (n_heads, n_rows, n_policies, n_n, n_resolutions, 2)
        Upper bounds on FP and FN. Left alone where N is out of range.
    """
    n_heads, n_rows, _ = weights.shape
    group = n_heads // len(values)
    for i in prange(n_heads * n_rows):
        h = i // n_rows
        r = i - h * n_rows
        if stops[r] - starts[r] >= 2:
            kv = h // group
            _count_row(
                weights[h, r], starts[r], stops[r], values[kv], q[kv], m[kv],
                sink, ns, policies, resolutions, out[h, r],
            )  # fmt: skip
