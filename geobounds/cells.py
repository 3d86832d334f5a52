"""Where to cut the candidates into cells (T6): a fast search in plain float64.

Nothing here has to be sound. It returns positions; the regime then takes its numbers
from the exact data of the cells so chosen, and any cells give a valid bound.

Cells are ranges of an *arrangement* of the candidates: the selected tokens, best first,
then the unselected ones in rank order. The sink, where it is a candidate, is moved to
the front (selected) or to the end (unselected) and is a cell of its own.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from geobounds.errors import ArgumentError
from geobounds.selection import Selection

__all__ = [
    "Arrangement",
    "PrefixBounds",
    "arrange",
    "f_values",
    "greedy_cuts",
    "prefix_bounds",
]

# Rows of a table evaluated at once: bounds memory where every prefix is a new record.
_TABLE_SIZE = 2**20


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Candidates in cell order, and the boundaries that every partition must keep.

    Attributes
    ----------
    order : ndarray of int, shape (n_candidates,)
        Positions in ``Selection.keys``.
    boundaries : tuple of int
        0, the ends of the coarsest cells, n_candidates.
    n : int
        Number of selected tokens; always one of the boundaries.
    """

    order: Int[np.ndarray, " n_candidates"]
    boundaries: tuple[int, ...]
    n: int


def arrange(selection: Selection, sink: int | None) -> Arrangement:
    """Return the arrangement of a selection; see the module docstring."""
    n, keys = selection.n, selection.keys
    order = np.arange(len(keys))
    boundaries = {0, n, len(keys)}
    if sink is not None and (keys == sink).any():
        position = int(np.argmax(keys == sink))
        rest = np.delete(order, position)
        if position < n:
            order = np.concatenate([[position], rest])
            boundaries.add(1)
        else:
            order = np.concatenate([rest, [position]])
            boundaries.add(len(keys) - 1)
    return Arrangement(order, tuple(sorted(boundaries)), n)


def require_resolution(
    resolution: int, arrangement: Arrangement, function: str
) -> None:
    """Refuse a number of cells below that of the coarsest partition."""
    if isinstance(resolution, bool) or not isinstance(resolution, (int, np.integer)):
        msg = f"{function}: resolution must be an int, got resolution={resolution!r}."
        raise TypeError(msg)
    least = len(arrangement.boundaries) - 1
    if resolution < least:
        msg = (
            f"{function}: resolution must be at least {least} (selected, unselected "
            f"and the sink are cells of their own), got resolution={resolution}."
        )
        raise ArgumentError(msg)


def greedy_cuts(
    w: Float64[np.ndarray, " n_candidates"],
    t: Float64[np.ndarray, " n_candidates"],
    q: Float64[np.ndarray, " n_candidates"],
    arrangement: Arrangement,
    resolution: int,
) -> list[int]:
    """Return cuts, best first, that refine the coarsest cells to ``resolution`` cells.

    Parameters
    ----------
    w, t, q : ndarray of float64, shape (n_candidates,)
        Weight, <v, s_N> and ||v||^2 in the order of the arrangement.
    arrangement : Arrangement
        The coarsest cells.
    resolution : int
        Largest number of cells.

    Returns
    -------
    list of int
        Each cut is the one that raises the certified F most, then the gap between
        the two sides. The first k cuts are the answer for k fewer cells too. Stops
        when the cells certify all that is measured.
    """
    n = arrangement.n
    boundaries = list(arrangement.boundaries)
    with np.errstate(all="ignore"):
        phi = w * w * q - 2 * w * t
        target = f_values(
            n,
            (phi[n:] <= phi[:n].max()).sum(),
            (phi[:n] >= phi[n:].min()).sum(),
        )
        sides = (_Side(w[:n], t[:n], q[:n], 1), _Side(w[n:], t[n:], q[n:], -1))
        cuts: list[int] = []
        while len(boundaries) - 1 < resolution:
            cut, reached = _best_cut(sides, boundaries, n)
            if reached >= target:
                break
            if cut is None:
                break
            cuts.append(cut)
            boundaries = sorted([*boundaries, cut])
    return cuts


class _Side:
    """One side of the cut, signed so that the selected side's algebra serves both.

    With sign = +1 (selected) the bound of a cell is the greatest w^2 q - 2 w t over the
    greatest q and the least t. With sign = -1 (unselected) q, t and the bound change
    sign, and "least lo" becomes "greatest -lo".
    """

    def __init__(self, w: np.ndarray, t: np.ndarray, q: np.ndarray, sign: int) -> None:
        self.w, self.t, self.q, self.sign = w, t, q, sign
        self.profiles: dict[tuple[int, int], _Profile] = {}

    def bound(self, start: int, stop: int) -> np.ndarray:
        """Signed bound of every token of one cell."""
        part = slice(start, stop)
        q = (self.sign * self.q[part]).max()
        t = (self.sign * self.t[part]).min()
        return self.w[part] * self.w[part] * q - 2 * self.w[part] * t

    def profile(self, start: int, stop: int) -> "_Profile":
        """All prefixes and suffixes of one cell, remembered between steps."""
        key = (start, stop)
        if key not in self.profiles:
            part = slice(start, stop)
            columns = (
                self.w[part],
                self.sign * self.t[part],
                self.sign * self.q[part],
            )
            self.profiles[key] = _Profile(
                prefix_bounds(*columns), prefix_bounds(*(c[::-1] for c in columns))
            )
        return self.profiles[key]


@dataclass(frozen=True, eq=False)
class PrefixBounds:
    """Bounds of all prefixes of a cell: few distinct ones, as (q, t) rarely change.

    ``table[row[k]][: k + 1]`` are the bounds in the prefix that ends at token k, and
    ``greatest[k]`` is their maximum.
    """

    row: np.ndarray
    table: np.ndarray
    greatest: np.ndarray

    def counts(self, threshold: float) -> np.ndarray:
        """For every prefix, the number of its tokens with a bound >= threshold."""
        result = np.empty(len(self.row), dtype=np.int64)
        step = max(1, _TABLE_SIZE // len(self.row))
        for first in range(0, len(self.table), step):
            total = np.cumsum(self.table[first : first + step] >= threshold, axis=1)
            mine = (self.row >= first) & (self.row < first + step)
            result[mine] = total[self.row[mine] - first, np.flatnonzero(mine)]
        return result


@dataclass(frozen=True, eq=False)
class _Profile:
    prefixes: PrefixBounds
    suffixes: PrefixBounds
    known: dict[float, np.ndarray] = field(default_factory=dict)

    def greatest(self) -> np.ndarray:
        """Greatest bound on either part, for the cuts 1, ..., m - 1."""
        return np.maximum(
            self.prefixes.greatest[:-1], self.suffixes.greatest[:-1][::-1]
        )

    def counts(self, threshold: float) -> np.ndarray:
        """Count bounds >= threshold in both parts, for the cuts 1, ..., m - 1."""
        if threshold not in self.known:  # thresholds often stay between steps
            left = self.prefixes.counts(threshold)[:-1]
            right = self.suffixes.counts(threshold)[:-1][::-1]
            self.known[threshold] = left + right
        return self.known[threshold]


def prefix_bounds(w: np.ndarray, t: np.ndarray, q: np.ndarray) -> PrefixBounds:
    """Return the bounds w^2 max(q) - 2 w min(t) of all prefixes of some tokens.

    For unselected tokens pass -t and -q: the bounds are then those of -phi.
    """
    square = w * w
    greatest_q = np.maximum.accumulate(q)
    least_t = np.minimum.accumulate(t)
    changed = np.empty(len(q), dtype=bool)
    changed[0] = True
    changed[1:] = (np.diff(greatest_q) != 0) | (np.diff(least_t) != 0)
    starts = np.flatnonzero(changed)
    row = np.cumsum(changed) - 1
    table = square * greatest_q[starts, None] - 2 * w * least_t[starts, None]
    running = np.maximum.accumulate(table, axis=1)
    return PrefixBounds(row, table, running[row, np.arange(len(q))])


def _best_cut(
    sides: tuple[_Side, _Side], boundaries: list[int], n: int
) -> tuple[int | None, float]:
    """Return the best next cut, and the F that the present cells certify."""
    cells = list(itertools.pairwise(boundaries))
    local = [(s, 0, s, e) if e <= n else (s, 1, s - n, e - n) for s, e in cells]
    bounds = [sides[side].bound(a, b) for _, side, a, b in local]
    hi = np.sort(
        np.concatenate([b for b, x in zip(bounds, local, strict=True) if not x[1]])
    )
    lo = np.sort(
        -np.concatenate([b for b, x in zip(bounds, local, strict=True) if x[1]])
    )
    top, bottom = hi[-1], lo[0]
    false_positives = int(np.searchsorted(lo, top, side="right"))
    false_negatives = n - int(np.searchsorted(hi, bottom, side="left"))
    reached = float(f_values(n, false_positives, false_negatives))
    best: tuple[float, float] = (-1.0, -np.inf)
    cut = None
    for index, (start, side, a, b) in enumerate(local):
        if b - a < 2:
            continue
        profile = sides[side].profile(a, b)
        # Greatest signed bound over this side's other cells.
        others = max(
            (
                bound.max()
                for bound, x in zip(bounds, local, strict=True)
                if x[1] == side and x[0] != start
            ),
            default=-np.inf,
        )
        greatest = np.maximum(profile.greatest(), others)
        if side == 0:
            now = int((bounds[index] >= bottom).sum())
            fn = false_negatives - now + profile.counts(bottom)
            fp = np.searchsorted(lo, greatest, side="right")
            gap = bottom - greatest
        else:
            now = int((bounds[index] >= -top).sum())
            fp = false_positives - now + profile.counts(-top)
            fn = n - np.searchsorted(hi, -greatest, side="left")
            gap = -greatest - top
        f = f_values(n, fp, fn)
        k = int(np.lexsort((gap, f))[-1])
        if (float(f[k]), float(gap[k])) > best:
            best = (float(f[k]), float(gap[k]))
            cut = start + k + 1
    return cut, reached


def f_values(n: int, false_positives: Any, false_negatives: Any) -> Any:
    """F_N in float64, 0 where no selected token is kept."""
    kept = n - false_negatives
    return np.where(
        kept > 0,
        2 * n * kept / np.maximum(n * kept + false_positives * kept + n * n, 1),
        0.0,
    )
