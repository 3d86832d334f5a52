"""Counts of the norms-and-cosines regime (T4) for many N of one ranking at once.

What ``geobounds.pairwise.rounded_pairwise_counts`` gives for one N and one scope, for
all scopes and a grid of N. The candidates are arranged once, best first and barred keys
last; the extremes that the regimes of all N need are read off one table of cosines, cut
into blocks at the N asked for, and from running extremes over the arranged tokens. The
algebra is geobounds' own. "Plain" means: not the sink.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from geobounds.cosines import UnitVectors
from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.pairwise import SCOPES, PairwiseRegime, _one_sided
from geobounds.power import dot_products
from geobounds.selection import Ranking, Selection

__all__ = ["cosine_table", "pairwise_counts"]

_UNIT = 2.0**-53
_NONE = float("nan")  # an extreme over no pair


def cosine_table(head: HeadData) -> UnitVectors:
    """Return norms and cosines of all keys, to be shared between ``pairwise_counts``.

    One table serves every ranking of the head and every head with the same values and
    the same hidden keys (the query heads of one KV head).
    """
    return UnitVectors(head, np.arange(head.n_key))


def pairwise_counts(
    head: HeadData,
    ranking: Ranking,
    ns: Sequence[int],
    table: UnitVectors | None = None,
) -> np.ndarray:
    """Upper bounds on FP and FN from the regimes fitted to each N, in every scope.

    Parameters
    ----------
    head : HeadData
        A head with values.
    ranking : Ranking
        A ranking of its candidates; N selects ``ranking.select(N)``.
    ns : sequence of int
        Numbers of selected tokens, each between 1 and |C| - 1, in any order.
    table : UnitVectors, optional
        ``cosine_table`` of this head or of one with the same values.

    Returns
    -------
    ndarray of int64, shape (len(SCOPES), len(ns), 2)
        (fp_upper, fn_upper) by scope and N. Never below the counts of the exact
        enclosure of ``fit_pairwise``. Without ``table`` every step is that of
        ``rounded_pairwise_counts``; with it the counts can be greater where a
        comparison falls within the rounding of a cosine.

    Raises
    ------
    ArgumentError
        An N out of range, or a table of other values.

    Notes
    -----
    Statement T4, one-sided, then T1. The rows of a shared table are multiplied in other
    blocks than those of the candidates alone, so its cosines may differ from those that
    ``fit_pairwise`` finds, by twice the radius of either: that much is added.
    """
    selections = [ranking.select(n, "pairwise_counts") for n in ns]
    arranged = _Arranged(head, ranking, table)
    counts = np.empty((len(SCOPES), len(selections), 2), dtype=np.int64)
    whole, parts = arranged.regimes(selections)
    for column, (selection, by_role) in enumerate(zip(selections, parts, strict=True)):
        n = selection.n
        for line, scope in enumerate(SCOPES):
            low, high = arranged.norms(scope, n)
            regime = whole if scope == "all" else by_role
            bound = arranged.bound(low, high, n, regime)
            chosen, others = bound[:n], bound[n:]
            counts[line, column] = (
                np.count_nonzero(others <= chosen.max()),
                np.count_nonzero(chosen >= others.min()),
            )
    return counts


class _Arranged:
    """The candidates of one query, best first, and their norms and cosines."""

    def __init__(
        self, head: HeadData, ranking: Ranking, table: UnitVectors | None
    ) -> None:
        self.head = head
        keys = np.concatenate([ranking.keys, ranking.barred])
        self.w = head.weights[ranking.row][keys].astype(np.float64)
        if table is None:
            self.vectors, self.rows = UnitVectors(head, keys), np.arange(len(keys))
            self.radius = self.vectors.radius
        else:
            _refuse_other_values(head, keys, table)
            self.vectors, self.rows = table, keys
            self.radius = 3 * table.radius
        self.zero = self.vectors.zero[self.rows]
        low, high = self.vectors.float_norms()
        self.token_norms = low[self.rows], high[self.rows]
        self.span = _span_norms(self.vectors, self.rows)

        at = np.flatnonzero(keys == (-1 if head.sink is None else head.sink))
        self.sink_at = int(at[0]) if len(at) else None
        plain = np.ones(len(keys), dtype=bool)
        plain[at] = False
        self.plain = np.flatnonzero(plain)
        self.valued = np.flatnonzero(plain & ~self.zero)  # cosines are defined
        # How many of the first N tokens are plain, and have a value besides.
        self.n_plain = np.concatenate([[0], np.cumsum(plain)])
        self.n_valued = np.concatenate([[0], np.cumsum(plain & ~self.zero)])

        low, high = (norms[self.plain] for norms in self.span)
        # Extremes of the first i plain tokens and of all but them.
        self.least_norm = _before(np.minimum, low), _behind(np.minimum, low)
        self.greatest_norm = _before(np.maximum, high), _behind(np.maximum, high)
        self.sink_cosines = np.empty(0)
        if self.sink_at is not None and not self.zero[self.sink_at]:
            sink_row = self.vectors.table[self.rows[self.sink_at]]
            self.sink_cosines = sink_row[self.rows[self.valued]]

    def norms(self, scope: str, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the norm of every token's value, as the scope knows them."""
        if scope == "roles-norms":
            return self.token_norms
        low, high = np.empty(len(self.w)), np.empty(len(self.w))
        count = 0 if scope == "all" else int(self.n_plain[n])
        for array, (before, behind), span in (
            (low, self.least_norm, self.span[0]),
            (high, self.greatest_norm, self.span[1]),
        ):
            array[:n] = behind[0] if scope == "all" else before[count]
            array[n:] = behind[count]
            if self.sink_at is not None:
                array[self.sink_at] = span[self.sink_at]
        return low, high

    def regimes(
        self, selections: Sequence[Selection]
    ) -> tuple[PairwiseRegime, list[PairwiseRegime]]:
        """Cosines and pulls of scope ``all`` and, for each N, by role.

        Bounded as by ``fit_pairwise``, without the norms.
        """
        counts = [int(self.n_valued[s.n]) for s in selections]
        cosines = self._cosines(counts)
        s = self.sink_cosines
        if not len(s):
            s = np.full(len(self.valued), _NONE)
        least, greatest = _before(np.minimum, s), _before(np.maximum, s)
        whole = self._regime(None, *cosines[-1], least[-1], greatest[-1], None)
        greatest_behind = _behind(np.maximum, s)
        by_role = []
        for selection, count, pair in zip(
            selections, counts, cosines[:-1], strict=True
        ):
            sink_selected = self.sink_at is not None and self.sink_at < selection.n
            sink_across = greatest_behind if sink_selected else greatest
            by_role.append(
                self._regime(
                    selection.n,
                    *pair,
                    least[count],
                    sink_across[count],
                    self._pull(selection) if sink_selected else None,
                )
            )
        return whole, by_role

    def bound(
        self, low: np.ndarray, high: np.ndarray, n: int, regime: PairwiseRegime
    ) -> np.ndarray:
        """One-sided bounds on the powers, as ``rounded_pairwise_counts`` rounds."""
        with np.errstate(all="ignore"):
            low = np.maximum(np.nextafter(self.w * low, -np.inf), 0)
            high = np.nextafter(self.w * high, np.inf)
            bound = _one_sided(low, high, n, self.sink_at, regime)
            total = high[:n].sum()
            radius = 2 * (n + 12) * _UNIT * high * (high + 2 * total) + 2.0**-1000
            np.negative(radius[n:], out=radius[n:])
            outward = np.full(len(high), np.inf)
            outward[n:] = -np.inf
            bound = np.nextafter(bound + radius, outward)
        return np.where(np.isfinite(bound), bound, outward)

    def _cosines(self, counts: Sequence[int]) -> list[tuple[float, float]]:
        """Least and greatest cosine for each count of selected plain tokens.

        Least among the first ``count`` plain tokens with a value, greatest between
        them and the others; last of all both among all of them. NaN over no pair.
        """
        size = len(self.valued)
        if size < 2:
            return [(_NONE, _NONE)] * (len(counts) + 1)
        rows = self.rows[self.valued]
        part = self.vectors.table[rows[:, None], rows]
        cuts = np.unique([0, *(c for c in counts if c < size)])
        np.fill_diagonal(part, np.inf)  # a token with itself is no pair
        within = _running(np.minimum, _block_extremes(np.minimum, part, cuts))
        np.fill_diagonal(part, -np.inf)
        across = _block_extremes(np.maximum, part, cuts)[:, ::-1]
        across = _running(np.maximum, across)[:, ::-1]
        found = []
        for end in np.searchsorted(cuts, counts).tolist():  # selected blocks
            least = float(within[end - 1, end - 1]) if end else _NONE
            least = _NONE if np.isinf(least) else least  # one token: no pair
            some = 0 < end < len(cuts)
            found.append((least, float(across[end - 1, end]) if some else _NONE))
        return [*found, (float(within[-1, -1]), float(across[-1, 0]))]

    def _regime(
        self,
        n: int | None,
        least: float,
        greatest: float,
        sink_least: float,
        sink_greatest: float,
        pull: float | None,
    ) -> PairwiseRegime:
        """Round outward what the algebra of T4 reads; norms are kept apart."""

        def down(x: float) -> Fraction | None:
            low = math.nextafter(x - self.radius, -math.inf)
            return None if math.isnan(x) else Fraction(max(low, -1.0))

        def up(x: float) -> Fraction | None:
            high = math.nextafter(x + self.radius, math.inf)
            return None if math.isnan(x) else Fraction(min(high, 1.0))

        return PairwiseRegime(
            "all" if n is None else "roles",
            n,
            None,
            None,
            down(least),
            up(greatest),
            None,
            down(sink_least),
            up(sink_greatest),
            None if pull is None else Fraction(pull),
        )

    def _pull(self, selection: Selection) -> float | None:
        """Greatest <v_j / ||v_j||, s_N> as ``UnitVectors.greatest_pull`` bounds it."""
        others = self.valued[self.n_valued[selection.n] :]
        if not len(others):
            return None
        dots = dot_products(self.head, selection)
        low, high = (norms[others] for norms in self.token_norms)
        with np.errstate(all="ignore"):
            top = dots.t[others] + dots.t_radius[others]
            pull = np.where(top >= 0, top / low, top / high)
            pull = pull + 4 * _UNIT * np.abs(pull)
        if not np.isfinite(pull).all():
            return None
        return float(np.nextafter(pull.max(), np.inf))


def _refuse_other_values(head: HeadData, keys: np.ndarray, table: UnitVectors) -> None:
    """Refuse a table of other vectors than the values of these keys."""
    head.require_values("pairwise_counts")
    if len(table.table) != head.n_key:
        msg = (
            f"pairwise_counts: table must hold all {head.n_key} keys, got "
            f"{len(table.table)}. Build it with cosine_table."
        )
        raise ArgumentError(msg)
    same = (table.values[keys] == head.values64[keys]).all(axis=1)
    if not same.all():
        key = int(keys[np.argmin(same)])
        msg = (
            "pairwise_counts: table must be of this head's values, got others "
            f"at key {key}. Build it with cosine_table from a head with the same "
            "values and mask."
        )
        raise ArgumentError(msg)


def _span_norms(x: UnitVectors, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Norm bounds that ``UnitVectors.norm_span`` keeps, rounded outward to floats."""
    norms, radius, exponents = x.norms[rows], x.norm_radius[rows], x.exponents[rows]
    scaled_low = np.nextafter(norms - radius, -np.inf)
    scaled_high = np.nextafter(norms + radius, np.inf)
    with np.errstate(all="ignore"):
        # Scaling back is exact but for under- and overflow: then one step outward.
        low, high = np.ldexp(scaled_low, exponents), np.ldexp(scaled_high, exponents)
        inward = np.ldexp(low, -exponents) > scaled_low
        low[inward] = np.nextafter(low[inward], -np.inf)
        inward = np.ldexp(high, -exponents) < scaled_high
        high[inward] = np.nextafter(high[inward], np.inf)
    low[x.zero[rows]] = high[x.zero[rows]] = 0
    return low, high


def _before(extreme: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Extreme of the first 0, ..., len(x) numbers; NaN for none."""
    return np.concatenate([[_NONE], extreme.accumulate(x)])


def _behind(extreme: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Extreme of all but the first 0, ..., len(x) numbers; NaN for none."""
    return _before(extreme, x[::-1])[::-1]


def _running(extreme: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Extreme of all numbers above and to the left, inclusive."""
    return extreme.accumulate(extreme.accumulate(x, axis=0), axis=1)


def _block_extremes(extreme: np.ufunc, x: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Extreme of each block of rows and columns between cuts; the first cut is 0."""
    ends = [*cuts.tolist(), len(x)]
    lines = np.stack([extreme.reduce(x[a:b], axis=0) for a, b in pairwise(ends)])
    return extreme.reduceat(lines, cuts, axis=1)
