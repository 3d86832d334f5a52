"""Counts and metrics from enclosures (T1), and the measurement of one query (D6-D8)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from geobounds.errors import ArgumentError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.integers import square_root_enclosure
from geobounds.power import (
    DotProducts,
    Enclosure,
    cosine_enclosure,
    power_enclosure,
    quick_power_enclosure,
)
from geobounds.selection import Selection, rank

__all__ = [
    "Counts",
    "Interval",
    "Measurement",
    "f_score",
    "interval_counts",
    "measure",
    "precision",
    "recall",
]


@dataclass(frozen=True)
class Interval:
    """A number known to lie in [lower, upper]; ``exact`` if both ends are equal.

    ``float`` gives the number if exact, else the middle. ``==`` compares ends.
    """

    lower: Fraction
    upper: Fraction

    @property
    def exact(self) -> bool:
        """Whether the interval is one number."""
        return self.lower == self.upper

    def __float__(self) -> float:
        """Return the middle of the interval."""
        return float((self.lower + self.upper) / 2)

    def __str__(self) -> str:
        """One number, or both ends."""
        return str(self.lower) if self.exact else f"[{self.lower}, {self.upper}]"


@dataclass(frozen=True)
class Counts:
    """False positives, false negatives and inversions, each between two integers."""

    n: int
    n_unselected: int
    fp_lower: int
    fp_upper: int
    fn_lower: int
    fn_upper: int
    inversions_lower: int
    inversions_upper: int

    @property
    def exact(self) -> bool:
        """Whether every count is one number."""
        return (self.fp_lower, self.fn_lower, self.inversions_lower) == (
            self.fp_upper,
            self.fn_upper,
            self.inversions_upper,
        )

    @property
    def precision(self) -> Interval:
        """P_N between the values the counts allow."""
        n = self.n
        return Interval(precision(n, self.fp_upper), precision(n, self.fp_lower))

    @property
    def recall(self) -> Interval:
        """R_N between the values the counts allow."""
        return Interval(recall(self.n, self.fn_upper), recall(self.n, self.fn_lower))

    @property
    def f_score(self) -> Interval:
        """F_N between the values the counts allow."""
        return Interval(
            f_score(self.n, self.fp_upper, self.fn_upper),
            f_score(self.n, self.fp_lower, self.fn_lower),
        )


def precision(n: int, false_positives: int) -> Fraction:
    """P_N = N / (N + FP) (D7)."""
    return Fraction(n, n + false_positives)


def recall(n: int, false_negatives: int) -> Fraction:
    """R_N = 1 - FN / N (D7)."""
    return 1 - Fraction(false_negatives, n)


def f_score(n: int, false_positives: int, false_negatives: int) -> Fraction:
    """F_N = 2 / (1 + FP/N + N/(N - FN)), and 0 for FN = N (D7)."""
    kept = n - false_negatives
    if kept == 0:
        return Fraction(0)
    return Fraction(2 * n * kept, n * kept + false_positives * kept + n * n)


def interval_counts(enclosure: Enclosure) -> Counts:
    """Bound the counts from intervals around a distance key (D6, D8).

    Notes
    -----
    Statement T1 (tight, both sides): FP is at most the number of unselected tokens
    with lo <= max_S hi and at least the number with hi <= max_S lo; FN and the
    inversions likewise. Ties count against separability, hence ``<=`` throughout.
    """
    n = enclosure.n
    selected_lo, unselected_lo = enclosure.lo[:n], enclosure.lo[n:]
    selected_hi, unselected_hi = enclosure.hi[:n], enclosure.hi[n:]
    return Counts(
        n,
        len(unselected_lo),
        fp_lower=int((unselected_hi <= selected_lo.max()).sum()),
        fp_upper=int((unselected_lo <= selected_hi.max()).sum()),
        fn_lower=int((selected_lo >= unselected_hi.min()).sum()),
        fn_upper=int((selected_hi >= unselected_lo.min()).sum()),
        inversions_lower=_count_pairs(unselected_hi, selected_lo),
        inversions_upper=_count_pairs(unselected_lo, selected_hi),
    )


def _count_pairs(unselected: Any, selected: Any) -> int:
    """Count the pairs with unselected <= selected."""
    return int(np.searchsorted(np.sort(unselected), selected, side="right").sum())


def settle(enclosure: Enclosure, exact_ranks: Callable[[], np.ndarray]) -> Counts:
    """Return exact counts: from the intervals where they decide, else from exact keys.

    Parameters
    ----------
    enclosure : Enclosure
        Float64 intervals.
    exact_ranks : callable
        Returns integers ordered and tied like the exact keys, in the enclosure's
        order. Called only when an interval of a selected token meets one of an
        unselected token.
    """
    counts = interval_counts(enclosure)
    if counts.exact:
        return counts
    ranks = exact_ranks()
    return interval_counts(Enclosure(ranks, ranks, enclosure.n))


@dataclass(frozen=True, repr=False)
class Measurement:
    """Geometric separability of the N selected tokens of one query.

    Attributes
    ----------
    n : int
        Number of selected tokens N.
    counts : Counts
        FP, FN and inversions as integers or integer intervals.
    selected : ndarray of int, shape (n,)
        Selected keys, best first.
    boundary_tie : bool
        Whether the selected set is a convention; see Selection.
    query_position : int
        Position of the query among the keys.
    distance : str
        "euclidean" or "cosine".
    """

    n: int
    counts: Counts
    selected: Int[np.ndarray, " n"] = field(compare=False)
    boundary_tie: bool
    query_position: int
    distance: str
    _head: HeadData = field(compare=False)
    _selection: Selection = field(compare=False)

    def __repr__(self) -> str:
        """Metrics and counts in one line."""
        return (
            f"Measurement(n={self.n}, P={self.precision}, R={self.recall}, "
            f"F={self.f_score}, FP={self.false_positives}, FN={self.false_negatives}, "
            f"inversions={self.inversions}, {self.distance})"
        )

    @property
    def precision(self) -> Interval:
        """Geometric precision P_N (D7)."""
        return self.counts.precision

    @property
    def recall(self) -> Interval:
        """Geometric recall R_N (D7)."""
        return self.counts.recall

    @property
    def f_score(self) -> Interval:
        """Geometric F_N (D7)."""
        return self.counts.f_score

    @property
    def false_positives(self) -> int | Interval:
        """FP (D6): an int if exact, else an Interval."""
        return _count(self.counts.fp_lower, self.counts.fp_upper)

    @property
    def false_negatives(self) -> int | Interval:
        """FN (D6): an int if exact, else an Interval."""
        return _count(self.counts.fn_lower, self.counts.fn_upper)

    @property
    def inversions(self) -> int | Interval:
        """GInv_N (D8): an int if exact, else an Interval."""
        counts = self.counts
        return _count(counts.inversions_lower, counts.inversions_upper)

    @cached_property
    def margin(self) -> Interval:
        """gamma_N = rho_min - rho_max (D8), to 60 bits; its sign is exact.

        Distances are irrational, so this is an interval. It is computed exactly from
        the head when first asked for.
        """
        exact = ExactGeometry(self._head, self._selection)
        if self.distance == "euclidean":
            squares = exact.squared_distances()
            far, near = max(squares[: self.n]), min(squares[self.n :])
            sign = (near > far) - (near < far)
            (near_lo, near_hi), (far_lo, far_hi) = map(
                square_root_enclosure, (near, far)
            )
        else:
            # 1 - cos: the far selected token has the least cosine.
            cosines = exact.cosine_squares()
            signed = [(sign * square, sign, square) for sign, square in cosines]
            far_cos, near_cos = min(signed[: self.n]), max(signed[self.n :])
            sign = (far_cos[0] > near_cos[0]) - (far_cos[0] < near_cos[0])
            near_lo, near_hi = _signed_root(far_cos[1], far_cos[2])
            far_lo, far_hi = _signed_root(near_cos[1], near_cos[2])
        lower, upper = near_lo - far_hi, near_hi - far_lo
        zero = Fraction(0)
        return Interval(
            max(lower, zero) if sign >= 0 else lower,
            min(upper, zero) if sign <= 0 else upper,
        )


def _signed_root(sign: int, square: Fraction) -> tuple[Fraction, Fraction]:
    low, high = square_root_enclosure(square)
    return (low, high) if sign >= 0 else (-high, -low)


def _count(lower: int, upper: int) -> int | Interval:
    return lower if lower == upper else Interval(Fraction(lower), Fraction(upper))


def measure(
    head: HeadData,
    n: int,
    *,
    query: int = -1,
    ranking: Any = "weight",
    sink_policy: str = "keep",
    distance: str = "euclidean",
    settle_doubt: bool = True,
) -> Measurement:
    """Measure how separable the N selected tokens of one query are (D1 to D8).

    Parameters
    ----------
    head : HeadData
        A head with values.
    n : int
        Number of selected tokens, 1 <= n <= (number of candidates) - 1.
    query : int
        Row index of the query.
    ranking : "weight", "contribution" or array_like of shape (n_key,)
        What the tokens are selected by; see ``rank``.
    sink_policy : "keep", "drop" or "compete"
        What the sink may do; see ``rank``.
    distance : "euclidean" or "cosine"
        Distance of a contribution to the aggregate.
    settle_doubt : bool
        Decide comparisons inside the rounding radius in exact integers. If False
        they are left open and the results may be intervals.

    Returns
    -------
    Measurement
        Precision, recall and F as exact fractions, with the counts behind them.

    Raises
    ------
    ArgumentError
        N, the query, the ranking, the policy or the distance is out of range.
    HeadDataError
        The head has no values, or this query's row cannot be used.

    Notes
    -----
    Source: definitions D1 to D9 of arXiv 2602.01893. Geometry is done in float64 with
    the radius of T8; T1 gives counts from it; what T1 leaves open is settled exactly.

    Examples
    --------
    >>> head = HeadData([0.5, 0.25, 0.25], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> m = measure(head, 2)
    >>> m
    Measurement(n=2, P=1, R=1, F=1, FP=0, FN=0, inversions=0, euclidean)
    >>> m.boundary_tie
    True
    """
    choice = rank(head, query, ranking, sink_policy, function="measure").select(
        n, "measure"
    )
    head.require_values("measure")
    if distance not in ("euclidean", "cosine"):
        msg = (
            'measure: distance must be "euclidean" or "cosine", '
            f"got distance={distance!r}."
        )
        raise ArgumentError(msg)
    return Measurement(
        choice.n,
        selection_counts(head, choice, distance, settle_doubt=settle_doubt),
        choice.selected,
        choice.boundary_tie,
        int(head.query_positions[choice.row]),
        distance,
        head,
        choice,
    )


def selection_counts(
    head: HeadData,
    selection: Selection,
    distance: str = "euclidean",
    *,
    settle_doubt: bool = True,
    dots: DotProducts | None = None,
) -> Counts:
    """Return the counts of one selection; see ``measure``.

    ``dots`` saves computing ``dot_products(head, selection)`` again.
    """
    if distance == "euclidean" and dots is None and head.is_narrow:
        # Most rows need no sharper radius.
        quick = interval_counts(quick_power_enclosure(head, selection))
        if quick.exact:
            return quick
    enclose = power_enclosure if distance == "euclidean" else cosine_enclosure
    enclosure = enclose(head, selection, dots)
    if not settle_doubt:
        return interval_counts(enclosure)

    def exact_ranks() -> np.ndarray:
        exact = ExactGeometry(head, selection)
        return exact.power_ranks() if distance == "euclidean" else exact.cosine_ranks()

    return settle(enclosure, exact_ranks)
