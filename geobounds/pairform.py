"""T1 in pair form for the pairwise regime: bounds on phi_i - phi_j with shared norms.

The intervals of T4 let every norm take its worst value for each token apart. In the
difference of two powers the same norms stand in both, so they must be worst for both at
once. With X the sum of the norms of the other selected tokens, a selected i and an
unselected j, the difference is at most

    -x^2 - y^2 + 2 mu+ x y + 2 X (mu+ y - mu- x),   x = r_i, y = r_j,

and the sink, if selected, adds 2 r_0 (sigma+ y - sigma- x). This is linear in X and in
r_0, so their ends suffice, and concave in (x, y) for |mu+| <= 1: its maximum on the box
of the two norms lies at the stationary point, if inside, or on an edge.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from geobounds.bounds import capped_f_bound
from geobounds.head import HeadData
from geobounds.pairwise import (
    PairwiseRegime,
    float_cosine,
    norm_bounds,
    sink_place,
)
from geobounds.selection import Selection
from geobounds.separability import Counts

__all__ = ["pair_counts", "pair_f_bound"]

_UNIT = 2.0**-53


def pair_counts(regime: PairwiseRegime, head: HeadData, selection: Selection) -> Counts:
    """Upper bounds on FP, FN and inversions from pairs of tokens (T1, pair form).

    Parameters
    ----------
    regime : PairwiseRegime
        A regime that holds for the selection; it is not checked here.
    head, selection
        Only the head's weights are used.

    Returns
    -------
    Counts
        Each upper count at most that of the regime's intervals; lower counts are 0.

    Notes
    -----
    Statement T1 (pair form) with T4: from Delta_ij >= phi_i - phi_j, FP is at most the
    number of j with some Delta_ij >= 0, FN of i likewise, G of pairs. In float64,
    rounded outward by 64 units of the sum of all terms' sizes; a pair with the sink
    keeps the interval bound.
    """
    n = selection.n
    bound, low, high = norm_bounds(regime, head, selection)
    # Never worse than the intervals: the difference of their ends.
    delta = bound[:n, None] - bound[None, n:]
    delta = np.nextafter(delta + 2 * _UNIT * np.abs(delta), np.inf)
    sharper = _shared(regime, low, high, n, sink_place(head, selection))
    open_pairs = np.where(np.isnan(sharper), delta, np.minimum(delta, sharper)) >= 0
    return Counts(
        n,
        len(low) - n,
        fp_lower=0,
        fp_upper=int(open_pairs.any(axis=0).sum()),
        fn_lower=0,
        fn_upper=int(open_pairs.any(axis=1).sum()),
        inversions_lower=0,
        inversions_upper=int(open_pairs.sum()),
    )


def pair_f_bound(counts: Counts) -> Fraction:
    """Lower bound on F_N from the upper counts of ``pair_counts``, by T2b."""
    return capped_f_bound(
        counts.n, counts.fp_upper, counts.fn_upper, counts.inversions_upper
    )


def _shared(
    regime: PairwiseRegime,
    low: np.ndarray,
    high: np.ndarray,
    n: int,
    sink_at: int | None,
) -> Any:
    """Bound phi_i - phi_j with shared norms; NaN for pairs with the sink."""
    least, greatest, sink_least, sink_greatest = (
        float_cosine(x) for x in regime.cosines
    )
    plain = np.arange(len(low)) < n
    if sink_at is not None:
        plain[sink_at] = False
    sink_in = sink_at is not None and sink_at < n
    x_ends = low[:n, None], high[:n, None]
    y_ends = low[None, n:], high[None, n:]
    size = x_ends[1] + y_ends[1]
    greatest = min(greatest, 1.0)  # no cosine is greater, and the form is concave
    best = np.full((n, len(low) - n), -np.inf)
    with np.errstate(all="ignore"):
        for norms in (low, high):
            others = norms[plain].sum() - np.where(plain, norms, 0)[:n, None]
            for sink_norm in (low[sink_at], high[sink_at]) if sink_in else (0.0,):
                a = -2 * (others * least + sink_norm * sink_least)
                b = 2 * (others * greatest + sink_norm * sink_greatest)
                top = _box_maximum(greatest, a, b, x_ends, y_ends)
                terms = size * (size + 2 * (np.abs(a) + np.abs(b)))
                radius = (64 + 4 * n) * _UNIT * terms + 2.0**-1000
                best = np.maximum(best, np.nextafter(top + radius, np.inf))
    if sink_at is not None:
        if sink_in:
            best[sink_at] = np.nan
        else:
            best[:, sink_at - n] = np.nan
    best[np.isinf(best)] = np.nan
    return best


def _box_maximum(
    m: Any,
    a: Any,
    b: Any,
    x_ends: tuple[Any, Any],
    y_ends: tuple[Any, Any],
) -> Any:
    """Maximum of -x^2 - y^2 + 2 m x y + a x + b y over a box, |m| <= 1."""

    def value(x: Any, y: Any) -> Any:
        return -x * x - y * y + 2 * m * x * y + a * x + b * y

    def clip(z: Any, ends: tuple[Any, Any]) -> Any:
        return np.minimum(np.maximum(z, ends[0]), ends[1])

    # Every candidate lies in the box, so none exceeds the maximum; one attains it.
    found = [value(x, clip(m * x + b / 2, y_ends)) for x in x_ends]
    found += [value(clip(m * y + a / 2, x_ends), y) for y in y_ends]
    if abs(m) < 1:
        x = clip((a + m * b) / (2 * (1 - m * m)), x_ends)
        found.append(value(x, clip(m * x + b / 2, y_ends)))
    top: np.ndarray = np.maximum.reduce(np.broadcast_arrays(*found))
    return top
