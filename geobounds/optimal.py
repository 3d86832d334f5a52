"""Optimal cells (T6): exact search over cuts, in plain float64.

For a fixed greatest bound H of the selected side and a fixed threshold for the least
bound of the unselected side, the two sides decouple: FP is a sum over unselected cells
and the threshold a condition on each of them, so a dynamic program finds the best cuts.
The few ways to cut up to eight selected tokens are enumerated. As in ``cells``, only
positions are returned, and the regime takes its numbers from the exact data. Where
float64 cannot tell tokens apart the search is blind and its answer merely valid.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Float64

from geobounds.cells import Arrangement, f_values, prefix_bounds

__all__ = ["MOST_SELECTED", "fewest_cuts", "optimal_cuts"]

MOST_SELECTED = 8  # selected tokens whose cuts can be enumerated


@dataclass(frozen=True, eq=False)
class _Partition:
    """One way to cut the selected tokens: its cuts and the bounds hi they give."""

    cuts: tuple[int, ...]
    hi: np.ndarray  # descending


def optimal_cuts(
    w: Float64[np.ndarray, " n_candidates"],
    t: Float64[np.ndarray, " n_candidates"],
    q: Float64[np.ndarray, " n_candidates"],
    arrangement: Arrangement,
    resolution: int,
) -> list[int]:
    """Return the cuts with the greatest certified F at ``resolution`` cells.

    Arguments are as for ``greedy_cuts``; at most ``MOST_SELECTED`` selected tokens.

    Notes
    -----
    Statement T6. A selected partition is tried in the order of what it could reach at
    best, and left out once that is no more than what has been reached.
    """
    n = arrangement.n
    spare = resolution - (len(arrangement.boundaries) - 1)
    with np.errstate(all="ignore"):
        sides = _Unselected(w, t, q, arrangement)
        tries = []
        for part in _selected_partitions(w, t, q, arrangement, spare):
            # No cells of the other side beat its own exact powers.
            fp = int((sides.power <= part.hi[0]).sum())
            fn = int((part.hi >= sides.power.min()).sum())
            tries.append((float(f_values(n, fp, fn)), len(part.cuts), part))
        tries.sort(key=lambda x: (-x[0], x[1]))
        best, cuts = -1.0, []
        for most, _, part in tries:
            if most <= best:
                break
            found, other = sides.best(part.hi, spare - len(part.cuts), best)
            if found > best:
                best, cuts = found, [*part.cuts, *other]
    return sorted(cuts)


def fewest_cuts(
    w: Float64[np.ndarray, " n_candidates"],
    t: Float64[np.ndarray, " n_candidates"],
    q: Float64[np.ndarray, " n_candidates"],
    arrangement: Arrangement,
) -> list[int] | None:
    """Return the fewest cuts that certify F = 1, or None if no cuts do.

    Notes
    -----
    Statement T6. For a threshold H, extending every cell as far as its bound stays on
    its side of H is optimal. The number of selected cells falls as H rises and that
    of unselected ones rises; only the least H for each number of selected cells can be
    best.
    """
    n = arrangement.n
    with np.errstate(all="ignore"):
        phi = w * w * q - 2 * w * t
        if phi[:n].max() >= phi[n:].min():
            return None
        start = arrangement.boundaries[1] if arrangement.boundaries[1] < n else 0
        stop = arrangement.boundaries[-2]
        stop = len(w) if stop == n else stop
        plain = slice(start, n)
        # Greatest bound of every selected cell [a, b): the thresholds that matter.
        heights = {phi[:n].max()}
        for a in range(start, n):
            table = prefix_bounds(w[a:n], t[a:n], q[a:n])
            heights |= set(table.greatest.tolist())
        best: list[int] | None = None
        for height in sorted(h for h in heights if phi[:n].max() <= h):
            if height >= phi[n:].min():
                break
            inside = _extend(w[plain], t[plain], q[plain], height)
            outside = _extend(w[n:stop], -t[n:stop], -q[n:stop], -height, strictly=True)
            cuts = [start + c for c in inside] + [n + c for c in outside]
            if best is None or len(cuts) < len(best):
                best = cuts
    return best


def _extend(
    w: np.ndarray,
    t: np.ndarray,
    q: np.ndarray,
    height: float,
    *,
    strictly: bool = False,
) -> list[int]:
    """Cut into cells as long as possible whose bounds stay at most ``height``."""
    cuts: list[int] = []
    a = 0
    while a < len(w):
        greatest = prefix_bounds(w[a:], t[a:], q[a:]).greatest
        fits = greatest < height if strictly else greatest <= height
        a += max(1, int(np.argmin(fits)) if not fits.all() else len(fits))
        if a < len(w):
            cuts.append(a)
    return cuts


def _selected_partitions(
    w: np.ndarray, t: np.ndarray, q: np.ndarray, arrangement: Arrangement, spare: int
) -> Iterator[_Partition]:
    """Yield the ways to cut the selected tokens with at most ``spare`` cuts."""
    n = arrangement.n
    fixed = [b for b in arrangement.boundaries if b <= n]
    free = [c for c in range(1, n) if c not in fixed]
    for count in range(min(spare, len(free)) + 1):
        for cuts in combinations(free, count):
            edges = sorted([*fixed, *cuts])
            hi = np.empty(n)
            for a, b in pairwise(edges):
                part = slice(a, b)
                hi[part] = (
                    w[part] * w[part] * q[part].max() - 2 * w[part] * t[part].min()
                )
            yield _Partition(cuts, np.sort(hi)[::-1])


class _Unselected:
    """The unselected side: bounds of all its cells, and the dynamic program."""

    def __init__(
        self, w: np.ndarray, t: np.ndarray, q: np.ndarray, arrangement: Arrangement
    ) -> None:
        n = arrangement.n
        self.n = n
        self.power = (w * w * q - 2 * w * t)[n:]
        # The sink, if unselected, is the last token and a cell of its own.
        self.size = arrangement.boundaries[-2] - n or len(self.power)
        self.fixed = self.power[self.size :]
        part = slice(n, n + self.size)
        # Signed as in prefix_bounds: rows[a] holds the prefixes that start at a.
        self.rows = [
            prefix_bounds(w[part][a:], -t[part][a:], -q[part][a:])
            for a in range(self.size)
        ]
        self.least = np.full((self.size, self.size), -np.inf)
        for a, row in enumerate(self.rows):
            self.least[a, a:] = -row.greatest
        self.counts: dict[float, np.ndarray] = {}

    def best(self, hi: np.ndarray, spare: int, least: float) -> tuple[float, list[int]]:
        """Return the greatest F above ``least`` and its cuts, given the bounds hi."""
        height = float(hi[0])
        cost = self._cost(height)
        extra = int((self.fixed <= height).sum())
        best, cuts = least, []
        for fn in range(self.n + 1):
            # FN stays at fn if every lo exceeds the next bound hi.
            floor = hi[fn] if fn < self.n else -np.inf
            if fn and hi[fn - 1] == floor:
                continue
            if len(self.fixed) and self.fixed.min() <= floor:
                continue
            lowest = int((self.power <= height).sum())
            if float(f_values(self.n, lowest, fn)) <= best:
                break
            allowed = np.where(self.least > floor, cost, np.inf)
            count, found = _shortest(allowed, spare + 1)
            if not np.isfinite(count):
                continue
            f = float(f_values(self.n, count + extra, fn))
            if f > best:
                best, cuts = f, [self.n + c for c in found]
        return best, cuts

    def _cost(self, height: float) -> np.ndarray:
        """For every cell [a, b], the number of its tokens with lo <= height."""
        if height not in self.counts:
            cost = np.full((self.size, self.size), np.inf)
            for a, row in enumerate(self.rows):
                cost[a, a:] = row.counts(-height)
            self.counts = {height: cost}  # partitions come in any order; keep one
        return self.counts[height]


def _shortest(cost: np.ndarray, cells: int) -> tuple[float, list[int]]:
    """Return the least total of ``cost[a, b]`` over at most ``cells`` cells, and cuts.

    ``cost[a, b]`` is that of the cell from a to b inclusive, infinite if not allowed.
    """
    size = len(cost)
    total = cost[0].copy()
    origins: list[np.ndarray] = []
    for _ in range(1, cells):
        # Best total of the tokens before a, then one more cell from a on.
        before = np.concatenate([[np.inf], total[:-1]])
        through = before[:, None] + cost
        origin = np.argmin(through, axis=0)
        better = through[origin, np.arange(size)]
        keep = total <= better
        origins.append(np.where(keep, -1, origin))
        total = np.where(keep, total, better)
    cuts: list[int] = []
    end = size - 1
    for origin in reversed(origins):
        if origin[end] >= 0:
            cuts.append(int(origin[end]))
            end = int(origin[end]) - 1
    return float(total[-1]), sorted(cuts)
