"""Regimes: few numbers about a head that imply bounds (T6, T2)."""

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from geobounds.cells import Arrangement, arrange, greedy_cuts, require_resolution
from geobounds.errors import ArgumentError, AssumptionError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.integers import exact_number, shown
from geobounds.optimal import MOST_SELECTED, fewest_cuts, optimal_cuts
from geobounds.power import DotProducts, Enclosure, dot_products
from geobounds.selection import Selection, rank
from geobounds.separability import Counts, interval_counts

__all__ = ["Cell", "CellRegime", "InversionRegime", "rounded_cell_counts"]

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Cell:
    """One cell: positions [start, stop) of the arrangement, and its two numbers.

    Attributes
    ----------
    start, stop : int
        Range in the arrangement of ``geobounds.cells``.
    norm : Fraction
        Selected cell: at least every ||v||^2 in it. Unselected: at most.
    dot : Fraction
        Selected cell: at most every <v, s_N> in it. Unselected: at least.
    """

    start: int
    stop: int
    norm: Fraction
    dot: Fraction

    def __post_init__(self) -> None:
        """Take floats for the exact numbers they hold: no comparison may round."""
        for name in ("norm", "dot"):
            exact = exact_number(getattr(self, name), name, "Cell")
            object.__setattr__(self, name, exact)


@dataclass(frozen=True)
class InversionRegime:
    """All that is known of one query and N is its number of inversions (T2)."""

    n: int
    inversions: int


@dataclass(frozen=True)
class CellRegime:
    """Cells of one query and N, with the numbers that bound phi from both sides (T6).

    Attributes
    ----------
    n : int
        Number of selected tokens. Cells with ``stop <= n`` are selected.
    cells : tuple of Cell
        In order, covering every candidate.
    """

    n: int
    cells: tuple[Cell, ...]

    @property
    def boundaries(self) -> tuple[int, ...]:
        """0 and the end of every cell."""
        return (0, *(cell.stop for cell in self.cells))

    @classmethod
    def fit(
        cls,
        head: HeadData,
        n: int,
        *,
        resolution: int = 9,
        split: str | Sequence[int] = "fast",
        query: int = -1,
        ranking: Any = "weight",
        sink_policy: str = "keep",
    ) -> "CellRegime":
        """Describe one query and N by at most ``resolution`` cells.

        Parameters
        ----------
        head : HeadData
            A head with values.
        n : int
            Number of selected tokens.
        resolution : int
            Largest number of cells, the sink's own included; at least 2, or 3 where
            the sink is a candidate. Fewer are used where they certify as much.
        split : "fast", "optimal" or sequence of int
            Greedy search; the best cuts there are, for at most 8 selected tokens; or
            cuts of your own in the arrangement (``resolution`` is then not used).
        query, ranking, sink_policy
            As for ``measure``.

        Returns
        -------
        CellRegime
            With the exact extremes of the head's own numbers.

        Raises
        ------
        ArgumentError
            N, the resolution, the split or another argument is out of range.
        HeadDataError
            The head has no values, or this query's row cannot be used.
        """
        selection = rank(
            head, query, ranking, sink_policy, function="CellRegime"
        ).select(n, "CellRegime")
        head.require_values("CellRegime")
        return fit_cells(head, selection, resolution=resolution, split=split)

    @classmethod
    def fewest(
        cls,
        head: HeadData,
        n: int,
        *,
        query: int = -1,
        ranking: Any = "weight",
        sink_policy: str = "keep",
    ) -> "CellRegime | None":
        """Return the regime of fewest cells that certifies F = 1, or None if none does.

        Arguments and errors are as for ``fit``.
        """
        order = rank(head, query, ranking, sink_policy, function="CellRegime")
        selection = order.select(n, "CellRegime")
        head.require_values("CellRegime")
        arrangement = arrange(selection, head.sink)
        cuts = fewest_cuts(
            *_columns(dot_products(head, selection), arrangement), arrangement
        )
        if cuts is None:
            return None
        found = _from_cuts(head, selection, cuts)
        counts = interval_counts(found.enclosure(head, selection))
        # The search runs in floats; what it found is judged exactly.
        return found if counts.fp_upper == 0 else None

    def check(
        self,
        head: HeadData,
        *,
        query: int = -1,
        ranking: Any = "weight",
        sink_policy: str = "keep",
    ) -> None:
        """Raise AssumptionError unless every number of the regime holds."""
        selection = rank(
            head, query, ranking, sink_policy, function="CellRegime"
        ).select(self.n, "CellRegime")
        head.require_values("CellRegime")
        check_cells(self, head, selection)

    def enclosure(self, head: HeadData, selection: Selection) -> Enclosure:
        """Return exact one-sided intervals around phi, in selection order.

        Selected tokens get hi = w^2 norm - 2 w dot, unselected ones lo likewise; the
        other side is unbounded.
        """
        arrangement = arrange(selection, head.sink)
        weights = head.weights[selection.row][selection.keys][arrangement.order]
        bound = np.empty(len(weights), dtype=object)
        for cell in self.cells:
            for i in range(cell.start, cell.stop):
                w = Fraction(float(weights[i]))
                bound[arrangement.order[i]] = w * (w * cell.norm - 2 * cell.dot)
        lo = np.full(len(weights), -np.inf, dtype=object)
        hi = np.full(len(weights), np.inf, dtype=object)
        hi[: self.n] = bound[: self.n]
        lo[self.n :] = bound[self.n :]
        return Enclosure(lo, hi, self.n)


def fit_cells(
    head: HeadData,
    selection: Selection,
    *,
    resolution: int = 9,
    split: str | Sequence[int] = "fast",
    settle_doubt: bool = True,
) -> CellRegime:
    """Fit cells to one selection; see ``CellRegime.fit``."""
    arrangement = arrange(selection, head.sink)
    if isinstance(split, str):
        if split not in ("fast", "optimal"):
            msg = (
                'CellRegime: split must be "fast", "optimal" or cuts, '
                f"got split={split!r}."
            )
            raise ArgumentError(msg)
        require_resolution(resolution, arrangement, "CellRegime")
        columns = _columns(dot_products(head, selection), arrangement)
        fast = greedy_cuts(*columns, arrangement, resolution)
        found = _from_cuts(head, selection, fast, settle_doubt=settle_doubt)
        if split == "fast":
            return found
        if selection.n > MOST_SELECTED:
            msg = (
                f'CellRegime: n must be at most {MOST_SELECTED} for split="optimal", '
                f"got n={selection.n}."
            )
            raise ArgumentError(msg)
        best = optimal_cuts(*columns, arrangement, resolution)
        other = _from_cuts(head, selection, best, settle_doubt=settle_doubt)

        def certified(regime: CellRegime) -> Fraction:
            return interval_counts(regime.enclosure(head, selection)).f_score.lower

        # The search runs in floats; what it found is judged exactly.
        return other if certified(other) >= certified(found) else found
    return _from_cuts(head, selection, split, settle_doubt=settle_doubt)


def _from_cuts(
    head: HeadData,
    selection: Selection,
    cuts: Sequence[int],
    *,
    settle_doubt: bool = True,
) -> CellRegime:
    """Return the regime with these cuts and the extremes of every cell.

    Exact, or rounded outward if doubt is not to be settled.
    """
    arrangement = arrange(selection, head.sink)
    try:
        boundaries = sorted({*arrangement.boundaries, *map(operator.index, cuts)})
    except TypeError as error:
        msg = f"CellRegime: split must hold integer cuts, got {cuts!r:.60}."
        raise TypeError(msg) from error
    if boundaries[0] != 0 or boundaries[-1] != len(selection.keys):
        msg = (
            f"CellRegime: split must hold cuts from 1 to {len(selection.keys) - 1}, "
            f"got {list(cuts)}."
        )
        raise ArgumentError(msg)
    if settle_doubt:
        exact, order = ExactGeometry(head, selection), arrangement.order
        low = high = exact.norms[order], exact.dots[order]
        norm_unit, dot_unit = exact.norm_scale, exact.dot_scale
    else:
        low, high = _rounded_columns(head, selection, arrangement)
        norm_unit = dot_unit = Fraction(1)
    cells = []
    norm: Any
    dot: Any
    for start, stop in itertools.pairwise(boundaries):
        part = slice(start, stop)
        if stop <= selection.n:
            norm, dot = high[0][part].max(), low[1][part].min()
        else:
            norm, dot = low[0][part].min(), high[1][part].max()
        norm, dot = norm_unit * Fraction(norm), dot_unit * Fraction(dot)
        cells.append(Cell(start, stop, norm, dot))
    return CellRegime(selection.n, tuple(cells))


def _rounded_columns(
    head: HeadData, selection: Selection, arrangement: Arrangement
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return lower and upper ends of q and t in float64, in arranged order."""
    x, order = dot_products(head, selection), arrangement.order
    with np.errstate(all="ignore"):
        ends = [
            np.nextafter(center + sign * radius, sign * np.inf)[order]
            for sign in (-1, 1)
            for center, radius in ((x.q, x.q_radius), (x.t, x.t_radius))
        ]
    if not all(np.isfinite(end).all() for end in ends):
        msg = (
            "CellRegime: numbers must be finite in float64 where doubt is not settled, "
            "got an overflow. Use settle_doubt=True."
        )
        raise ArgumentError(msg)
    return (ends[0], ends[1]), (ends[2], ends[3])


def check_cells(regime: CellRegime, head: HeadData, selection: Selection) -> None:
    """Raise AssumptionError unless the regime holds for this selection."""
    arrangement = arrange(selection, head.sink)
    boundaries = regime.boundaries
    if (
        boundaries[-1] != len(selection.keys)
        or not {*arrangement.boundaries} <= {*boundaries}
        or any(cell.start >= cell.stop for cell in regime.cells)
        or [cell.start for cell in regime.cells] != list(boundaries[:-1])
    ):
        msg = (
            "CellRegime: cells must cover the "
            f"{len(selection.keys)} candidates in order and keep the boundaries "
            f"{arrangement.boundaries}, got boundaries {boundaries}."
        )
        raise AssumptionError(
            msg, statement="T6", assumption="cells cover", measured=boundaries
        )
    exact = ExactGeometry(head, selection)
    for cell in regime.cells:
        sign = 1 if cell.stop <= regime.n else -1
        for i in range(cell.start, cell.stop):
            position = int(arrangement.order[i])
            norm = exact.norm_scale * exact.norms[position]
            dot = exact.dot_scale * exact.dots[position]
            for name, slack, found in (
                ("norm", sign * (cell.norm - norm), norm),
                ("dot", sign * (dot - cell.dot), dot),
            ):
                if slack < 0:
                    side = "at least" if (sign > 0) == (name == "norm") else "at most"
                    limit = cell.norm if name == "norm" else cell.dot
                    msg = (
                        f"CellRegime: {name} of cell [{cell.start}, {cell.stop}) must "
                        f"be {side} that of its tokens, got {shown(limit)} against "
                        f"{shown(found)} at key {selection.keys[position]}."
                    )
                    raise AssumptionError(
                        msg, statement="T6", assumption=f"{name} bound", measured=found
                    )


def _columns(
    dots: DotProducts, arrangement: Arrangement
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return w, t and q in the order of the arrangement."""
    order = arrangement.order
    return dots.w[order], dots.t[order], dots.q[order]


def rounded_cell_counts(
    head: HeadData,
    selection: Selection,
    resolutions: Sequence[int],
    dots: DotProducts | None = None,
) -> list[Counts]:
    """Upper bounds on the counts from fast cells, in float64 rounded outward.

    For scans: one search serves every resolution, and no exact number is formed. The
    counts are never below those of ``CellRegime.fit`` with the same cuts, and equal
    to them unless a bound falls within the rounding radius.
    """
    arrangement = arrange(selection, head.sink)
    require_resolution(min(resolutions), arrangement, "rounded_cell_counts")
    x = dots or dot_products(head, selection)
    cuts = greedy_cuts(*_columns(x, arrangement), arrangement, max(resolutions))
    base = len(arrangement.boundaries) - 1
    return [
        interval_counts(_rounded_cells(x, arrangement, cuts[: k - base]))
        for k in resolutions
    ]


def _rounded_cells(
    dots: DotProducts, arrangement: Arrangement, cuts: Sequence[int]
) -> Enclosure:
    """Cell bounds of phi, rounded outward, in the order of the arrangement.

    Three roundings on B = w^2 |q| + 2 w |t| are covered by four; the last term covers
    products that underflow.
    """
    n, order = arrangement.n, arrangement.order
    starts = np.array(sorted({*arrangement.boundaries[:-1], *cuts}))
    sizes = np.diff([*starts, len(order)])
    role = np.where(np.arange(len(order)) < n, 1.0, -1.0)
    w = dots.w[order]
    with np.errstate(all="ignore"):
        # Signed by role, the norm is rounded up and the dot product down.
        norm = role * dots.q[order] + dots.q_radius[order]
        dot = role * dots.t[order] - dots.t_radius[order]
        norm, dot = np.nextafter(norm, np.inf), np.nextafter(dot, -np.inf)
        norm = np.repeat(np.maximum.reduceat(norm, starts), sizes)
        dot = np.repeat(np.minimum.reduceat(dot, starts), sizes)
        bound = w * w * norm - 2 * w * dot
        radius = 4 * _UNIT * (w * w * np.abs(norm) + 2 * w * np.abs(dot))
        radius += 2.0**-1072 * (np.abs(norm) + 2 * w * w + 2)
        bound = np.nextafter(bound + radius, np.inf)
    bound[~np.isfinite(bound)] = np.inf
    lo = np.where(role < 0, -bound, -np.inf)
    hi = np.where(role > 0, bound, np.inf)
    return Enclosure(lo, hi, n)
