"""What F would be if one cause of lost separability were taken away (after T3).

T3: equal norms and one common cosine in [0, 1) between all tokens give F = 1. A head
falls short of that by the spread of its norms, the spread of its cosines, a negative
common cosine, and the sink. Each is removed from the head's own Gram matrix; dropping
the sink is the ranking's business. All numbers are float64 estimates of a matrix that
no longer belongs to real vectors: they describe a head, nothing is a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geobounds.head import HeadData
from geobounds.selection import Ranking

__all__ = ["REMOVALS", "removal_counts"]

# What is equalised; "nonnegative" replaces a negative common cosine by 0.
REMOVALS: tuple[str, ...] = (
    "none",
    "norms",
    "cosines",
    "cosines, nonnegative",
    "norms and cosines",
    "norms and cosines, nonnegative",
)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """The candidates of one query, best first: weights, norms and directions."""

    w: np.ndarray
    norms: np.ndarray
    units: np.ndarray
    sink: np.ndarray  # bool

    @property
    def plain(self) -> np.ndarray:
        """Tokens with a direction, the sink left out."""
        return ~self.sink & (self.norms > 0)


def removal_counts(
    head: HeadData, ranking: Ranking, ns: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Count FP and FN with causes of lost separability removed in turn.

    Parameters
    ----------
    head : HeadData
        A head with values.
    ranking : Ranking
        A ranking of one of its queries; N selects the first N of its keys.
    ns : sequence of int
        Numbers of selected tokens, each between 1 and |C| - 1.

    Returns
    -------
    counts : ndarray of int64, shape (len(REMOVALS), len(ns), 2)
        (FP, FN) in Euclidean distance (D6) by removal and N.
    collapse : ndarray of int64, shape (len(ns),)
        Whether T5's condition holds for the head's mean numbers: 1 or 0; -1 where the
        sink is not selected.

    Notes
    -----
    Statements T3 and T5. "norms" gives every token but the sink the mean norm of those
    tokens. "cosines" gives all pairs of distinct tokens but the sink the mean cosine mu
    of the pairs (S, C), and all pairs with the sink their mean cosine sigma. So "norms
    and cosines" with the sink kept is the setting of T5, and without it that of T3.
    Zero values stay zero. ||s_N|| does not matter to the order of distances (D9).
    """
    x = _tokens(head, ranking)
    counts = np.empty((len(REMOVALS), len(ns), 2), dtype=np.int64)
    collapse = np.full(len(ns), -1, dtype=np.int64)
    equal = np.where(x.plain, _mean(x.norms[x.plain]), x.norms)
    sigma = _mean((x.units[x.plain] @ x.units[x.sink].T).ravel())
    for column, n in enumerate(ns):
        mu = _common_cosine(x, n)
        if x.sink[:n].any():
            collapse[column] = _collapses(x, n, equal, mu, sigma)
        for line, removal in enumerate(REMOVALS):
            norms = equal if "norms" in removal else x.norms
            if "cosines" in removal:
                common = max(mu, 0.0) if "nonnegative" in removal else mu
                t = _equiangular_dots(x, n, norms, common, sigma)
            else:
                s = (x.w[:n] * norms[:n]) @ x.units[:n]
                t = norms * (x.units @ s)
            phi = x.w * x.w * norms * norms - 2 * x.w * t
            chosen, others = phi[:n], phi[n:]
            counts[line, column] = (
                np.count_nonzero(others <= chosen.max()),
                np.count_nonzero(chosen >= others.min()),
            )
    return counts, collapse


def _tokens(head: HeadData, ranking: Ranking) -> _Tokens:
    keys = np.concatenate([ranking.keys, ranking.barred])
    values = head.values64[keys]
    largest = np.abs(values).max(axis=1, initial=0.0)
    # The scale of the values does not matter; without it squares could overflow.
    values = values / (largest.max(initial=0.0) or 1.0)
    norms = np.sqrt(np.einsum("kd,kd->k", values, values))
    units = values / np.where(norms > 0, norms, 1.0)[:, None]
    sink = keys == (-1 if head.sink is None else head.sink)
    return _Tokens(head.weights[ranking.row][keys].astype(float), norms, units, sink)


def _mean(x: np.ndarray) -> float:
    return float(x.mean()) if x.size else 0.0


def _common_cosine(x: _Tokens, n: int) -> float:
    """Mean cosine of distinct pairs of S x C, the sink left out; of C x C without S."""
    plain = x.plain
    chosen = plain & (np.arange(len(plain)) < n)
    chosen = chosen if chosen.any() else plain
    count, total = int(chosen.sum()), int(plain.sum())
    if total < 2:
        return 0.0
    sums = x.units[chosen].sum(axis=0) @ x.units[plain].sum(axis=0)
    return float((sums - count) / (count * (total - 1)))


def _equiangular_dots(
    x: _Tokens, n: int, norms: np.ndarray, mu: float, sigma: float
) -> np.ndarray:
    """Return <v, s_N> of every token when cosines are mu, and sigma with the sink."""
    mine = np.where(np.arange(len(norms)) < n, x.w * norms, 0.0)
    by_sink = float(mine[x.sink].sum())
    others = float(mine.sum()) - by_sink
    return norms * np.where(
        x.sink, mine + sigma * others, mine + mu * (others - mine) + sigma * by_sink
    )


def _collapses(x: _Tokens, n: int, norms: np.ndarray, mu: float, sigma: float) -> bool:
    """Say whether T5's condition holds for the mean norm, cosine and sink cosine."""
    chosen = x.w[:n][~x.sink[:n]]
    if chosen.size and not chosen.min() > 0:
        return False
    unit = float(norms[x.plain][0]) if x.plain.any() else 1.0
    k = float(norms[x.sink][0]) / unit
    m = float(chosen.sum()) * mu + k * float(x.w[x.sink][0]) * sigma
    at_limit = mu == 0.5 and m == 0 and bool((x.w[n:] == 0).any())
    if m >= 0 and mu <= 0.5 and not at_limit:
        return True
    return mu < 1 and bool((m >= mu * chosen).all())
