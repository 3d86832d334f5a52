"""The search and the bounds of ``cells``, compiled: geobounds' float64 operations.

Signs by role make one piece of code serve both sides, as in ``geobounds.cells``: with
q and t of unselected tokens negated, the bound of a token is
b = w^2 max(q) - 2 w min(t), an upper bound on phi for selected tokens and on -phi for
unselected ones. A token counts against its side if its b reaches minus the other
side's greatest b.

All numbers are finite here (``cells`` sees to that), so that "no NaN, any zero" may be
assumed where a greatest number is searched; nothing is contracted or reordered.
"""

import numpy as np
from numba import njit

__all__ = ["count_cells", "count_one"]

_UNIT = 2.0**-53
_TINY = 2.0**-1072
_MAXIMUM = {
    "nnan",
    "nsz",
}  # lets a maximum be searched in vectors; its value is the same


@njit(cache=True, nogil=True, fastmath=False, error_model="numpy")
def _f_value(n: int, fp: int, fn: int) -> float:
    """F_N in float64, 0 where no selected token is kept."""
    kept = n - fn
    if kept <= 0:
        return 0.0
    return 2 * n * kept / max(n * kept + fp * kept + n * n, 1)


@njit(cache=True, nogil=True, fastmath=_MAXIMUM)
def _greatest(x: np.ndarray) -> float:
    """Return the greatest number, -inf if there is none."""
    best = -np.inf
    for i in range(len(x)):
        best = max(best, x[i])
    return best


@njit(cache=True, nogil=True, fastmath=_MAXIMUM)
def _least(x: np.ndarray) -> float:
    """Return the least number, inf if there is none."""
    best = np.inf
    for i in range(len(x)):
        best = min(best, x[i])
    return best


@njit(cache=True, nogil=True, fastmath=False)
def _reaching(x: np.ndarray, threshold: float) -> int:
    """Count the numbers >= threshold."""
    count = 0
    for i in range(len(x)):
        count += x[i] >= threshold
    return count


@njit(cache=True, nogil=True, fastmath=False)
def _write_bounds(
    square: np.ndarray, double: np.ndarray, q: float, t: float, out: np.ndarray
) -> None:
    """Write the bounds of tokens that share q and t."""
    for i in range(len(out)):
        out[i] = square[i] * q - double[i] * t


@njit(cache=True, nogil=True, fastmath=False)
def _prefixes(
    square: np.ndarray,
    double: np.ndarray,
    t: np.ndarray,
    q: np.ndarray,
    threshold: float,
    scratch: np.ndarray,
    counts: np.ndarray,
    greatest: np.ndarray,
) -> None:
    """For every prefix of a cell: bounds >= threshold, and the greatest bound.

    The prefixes between two records of (greatest q, least t) share one set of bounds.
    """
    k, size = 0, len(q)
    q_max, t_min = q[0], t[0]
    while k < size:
        part = scratch[: k + 1]
        _write_bounds(square, double, q_max, t_min, part)
        count, best = _reaching(part, threshold), _greatest(part)
        counts[k], greatest[k] = count, best
        k += 1
        while k < size and q[k] <= q_max and t[k] >= t_min:
            bound = square[k] * q_max - double[k] * t_min
            count += bound >= threshold
            best = max(best, bound)
            counts[k], greatest[k] = count, best
            k += 1
        if k < size:
            q_max, t_min = max(q_max, q[k]), min(t_min, t[k])


@njit(cache=True, nogil=True, fastmath=False)
def _search(
    w: np.ndarray,
    t: np.ndarray,
    q: np.ndarray,
    n: int,
    edges: np.ndarray,
    resolution: int,
    cuts: np.ndarray,
) -> int:
    """Write the cuts of ``geobounds.cells.greedy_cuts``; return how many there are.

    ``edges`` holds the coarsest boundaries, with room for the cuts; ``t`` and ``q`` are
    signed by role.
    """
    size = len(w)
    n_edges = 0
    while edges[n_edges] < size:
        n_edges += 1
    n_edges += 1
    square, double = w * w, 2 * w
    signed_phi = square * q - double * t
    target = _f_value(
        n,
        _reaching(signed_phi[n:], -_greatest(signed_phi[:n])),
        _reaching(signed_phi[:n], -_greatest(signed_phi[n:])),
    )
    bounds, scratch = np.empty(size), np.empty(size)
    back = np.empty((4, size))
    counts = np.empty((2, size), np.int64)
    greatest = np.empty((2, size))
    n_cuts = 0
    while n_edges - 1 < resolution:
        for c in range(n_edges - 1):
            a, b = edges[c], edges[c + 1]
            _write_bounds(
                square[a:b], double[a:b], _greatest(q[a:b]), _least(t[a:b]), bounds[a:b]
            )
        selected, unselected = bounds[:n], bounds[n:]
        top, low = _greatest(selected), _greatest(unselected)
        fn, fp = _reaching(selected, -low), _reaching(unselected, -top)
        if _f_value(n, fp, fn) >= target:
            break
        best_f, best_gap, cut = -1.0, -np.inf, -1
        for c in range(n_edges - 1):
            a, b = edges[c], edges[c + 1]
            length = b - a
            if length < 2:
                continue
            is_selected = b <= n
            other_top = low if is_selected else top
            other = unselected if is_selected else selected
            threshold = -other_top
            _prefixes(
                square[a:b], double[a:b], t[a:b], q[a:b], threshold,
                scratch, counts[0], greatest[0],
            )  # fmt: skip
            for i in range(length):
                back[0, i], back[1, i] = square[b - 1 - i], double[b - 1 - i]
                back[2, i], back[3, i] = t[b - 1 - i], q[b - 1 - i]
            _prefixes(
                back[0, :length], back[1, :length], back[2, :length], back[3, :length],
                threshold, scratch, counts[1], greatest[1],
            )  # fmt: skip
            first, last = (0, n) if is_selected else (n, size)
            rest = max(_greatest(bounds[first:a]), _greatest(bounds[b:last]))
            mine = (fn if is_selected else fp) - _reaching(bounds[a:b], threshold)
            f, gap, place = -1.0, -np.inf, -1
            before, theirs = np.nan, 0
            for k in range(length - 1):
                reach = max(rest, max(greatest[0, k], greatest[1, length - 2 - k]))
                if reach != before:  # neighbours often agree
                    before, theirs = reach, _reaching(other, -reach)
                own = mine + counts[0, k] + counts[1, length - 2 - k]
                if is_selected:
                    value = _f_value(n, theirs, own)
                else:
                    value = _f_value(n, own, theirs)
                space = threshold - reach
                # Of equals the last, as a stable sort has it.
                if value > f or (value == f and space >= gap):
                    f, gap, place = value, space, a + k + 1
            if f > best_f or (f == best_f and gap > best_gap):
                best_f, best_gap, cut = f, gap, place
        if cut < 0:
            break
        cuts[n_cuts] = cut
        n_cuts += 1
        _insert(edges, n_edges, cut)
        n_edges += 1
    return n_cuts


@njit(cache=True, nogil=True, fastmath=False)
def _insert(edges: np.ndarray, n_edges: int, cut: int) -> None:
    """Put a cut in its place among the boundaries."""
    k = n_edges
    while edges[k - 1] > cut:
        edges[k] = edges[k - 1]
        k -= 1
    edges[k] = cut


@njit(cache=True, nogil=True, fastmath=False)
def _rounded(
    w: np.ndarray,
    norm: np.ndarray,
    dot: np.ndarray,
    n: int,
    edges: np.ndarray,
    n_edges: int,
    bounds: np.ndarray,
) -> tuple[int, int]:
    """Return (FP, FN) of the bounds of ``geobounds.regime``'s rounded cells.

    ``norm`` and ``dot`` are signed and hold their radii. ``nextafter`` grows with its
    argument, so it is taken of the extremes only: of the two ends of a comparison, both
    on one side.
    """
    for c in range(n_edges - 1):
        a, b = edges[c], edges[c + 1]
        norm_up = np.nextafter(_greatest(norm[a:b]), np.inf)
        dot_down = np.nextafter(_least(dot[a:b]), -np.inf)
        for i in range(a, b):
            square, double = w[i] * w[i], 2 * w[i]
            radius = 4 * _UNIT * (square * abs(norm_up) + double * abs(dot_down))
            radius += _TINY * (abs(norm_up) + 2 * w[i] * w[i] + 2)
            bounds[i] = (square * norm_up - double * dot_down) + radius
    top, low = _greatest(bounds[:n]), _greatest(bounds[n:])
    fp = _reaching(bounds[n:], -np.nextafter(np.nextafter(top, np.inf), np.inf))
    fn = _reaching(bounds[:n], -np.nextafter(np.nextafter(low, np.inf), np.inf))
    return fp, fn


@njit(cache=True, nogil=True, fastmath=False)
def count_cells(
    w: np.ndarray,
    t: np.ndarray,
    q: np.ndarray,
    t_radius: np.ndarray,
    q_radius: np.ndarray,
    sink: int,
    ns: np.ndarray,
    resolutions: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write (FP, FN) of the fast cells of every N and resolution.

    Parameters
    ----------
    w, q, q_radius : ndarray of float64, shape (n_candidates,)
        Of the candidates in rank order; see ``geobounds.power.DotProducts``.
    t, t_radius : ndarray of float64, shape (n_n, n_candidates)
        One row for every N.
    sink : int
        Position of the sink in that order, -1 if it is no candidate.
    ns, resolutions : ndarray of int64
        Numbers of selected tokens, and of cells.
    out : ndarray of int64, shape (n_resolutions, n_n, 2)
        Where to write.
    """
    size = len(w)
    room = max(resolutions.max(), 4) + 2
    edges, coarse = np.empty(room, np.int64), np.empty(room, np.int64)
    cuts = np.empty(room, np.int64)
    x, order = np.empty((6, size)), np.empty(size, np.int64)
    for k in range(len(ns)):
        count_one(
            w, t[k], q, t_radius[k], q_radius, sink, ns[k], resolutions, out[:, k],
            edges, coarse, cuts, x, order,
        )  # fmt: skip


@njit(cache=True, nogil=True, fastmath=False)
def count_one(
    w: np.ndarray,
    t: np.ndarray,
    q: np.ndarray,
    t_radius: np.ndarray,
    q_radius: np.ndarray,
    sink: int,
    n: int,
    resolutions: np.ndarray,
    out: np.ndarray,
    edges: np.ndarray,
    coarse: np.ndarray,
    cuts: np.ndarray,
    x: np.ndarray,
    order: np.ndarray,
) -> None:
    """Write (FP, FN) of one N, by resolution; the last five arrays are scratch."""
    size = len(w)
    # The coarsest cells, as in geobounds.cells.arrange.
    edges[0], n_coarse = 0, 1
    for i in range(size):
        order[i] = i
    if 0 <= sink < n:
        for i in range(sink, 0, -1):
            order[i] = i - 1
        order[0] = sink
        if n > 1:
            edges[n_coarse] = 1
            n_coarse += 1
    edges[n_coarse] = n
    n_coarse += 1
    if sink >= n:
        for i in range(sink, size - 1):
            order[i] = i + 1
        order[size - 1] = sink
        if n < size - 1:
            edges[n_coarse] = size - 1
            n_coarse += 1
    edges[n_coarse] = size
    n_coarse += 1
    for c in range(n_coarse):
        coarse[c] = edges[c]
    sw, st, sq = x[0][:size], x[1][:size], x[2][:size]
    norm, dot, bounds = x[3][:size], x[4][:size], x[5][:size]
    for i in range(size):
        role = 1.0 if i < n else -1.0
        j = order[i]
        sw[i], st[i], sq[i] = w[j], role * t[j], role * q[j]
        norm[i] = role * q[j] + q_radius[j]
        dot[i] = role * t[j] - t_radius[j]
    n_cuts = _search(sw, st, sq, n, edges, resolutions.max(), cuts)
    for r in range(len(resolutions)):
        n_edges = n_coarse
        for c in range(n_coarse):
            edges[c] = coarse[c]
        for c in range(min(n_cuts, resolutions[r] - (n_coarse - 1))):
            _insert(edges, n_edges, cuts[c])
            n_edges += 1
        fp, fn = _rounded(sw, norm, dot, n, edges, n_edges, bounds)
        out[r, 0], out[r, 1] = fp, fn
