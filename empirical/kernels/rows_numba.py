"""Counts of every query row and N of one layer, compiled (D6, D8; T1, T8).

One row at a time: its keys are sorted by score; the aggregates s_N of all N grow along
that order; t = <v, s_N> of all keys and N is a small matrix product over tiles of keys;
powers with a radius and the comparisons of T1 follow while these are in the cache.

The matrix product is in float32. Pairs that its radius leaves open are compared again
in float64, token by token; where a count of false positives or negatives is open, all
keys of that N are. What is open even then is flagged. ``rows`` derives the radii.
"""

import numpy as np
from numba import njit, prange

__all__ = ["OPEN", "OPEN_SET", "TIE", "TILE", "count_rows"]

TILE = 64  # keys handled together; a tile of values stays in the first cache
TIE, OPEN, OPEN_SET = 1, 2, 4  # flags
_ROWS = 8  # rows of a task
_FEW = 16  # selected keys compared with all others as they stand
_GROUP = 3  # numbers N handled together
_SCALE = np.float32(2.0**64)  # lifts the least float32 weight far above underflow
_UNIT = 2.0**-24
_UNIT64 = 2.0**-53
_MARGIN = 1 + 2.0**-10  # roundings of a radius, and second-order terms
_FLOOR = np.float32(2.0**-90)  # underflow, in units of a weight times a norm
_LEAST = np.float32(2.0**-120)  # underflow of a power or its radius
_NEVER = np.float32(2.0**20)  # a level beyond every grid
_APART = np.float32(1 + 2.0**-20)  # scores this far apart are in order

# A product and a sum may be fused, which saves a rounding; sums keep their order.
_FUSED = {"contract"}
# Sums in any order; there are no NaNs.
_ANY_ORDER = {"contract", "reassoc", "nnan", "nsz"}
# Lets extremes be searched in vectors.
_EXTREME = {"nnan", "nsz"}


@njit(cache=True, nogil=True)
def _order(scores: np.ndarray, keys: np.ndarray, places: np.ndarray) -> int:
    """Sort scores >= 0: greatest first, equal ones by place. Return the half used.

    ``keys`` and ``places`` have shape (2, n). Two stable passes over the upper half of
    the bits leave little to an insertion sort; where they do not, two more passes
    precede them.
    """
    n = len(scores)
    bits = scores.view(np.int32)
    counts = np.empty(256, np.int32)
    k0, k1, p0, p1 = keys[0], keys[1], places[0], places[1]
    for attempt in range(2):
        for i in range(n):
            k0[i] = ~bits[i]
            p0[i] = i
        if attempt:
            _pass(k0, p0, k1, p1, 0, counts)
            _pass(k1, p1, k0, p0, 8, counts)
        _pass(k0, p0, k1, p1, 15, counts)
        _pass(k1, p1, k0, p0, 23, counts)
        if _insertion(k0, p0):
            break
    return 0


@njit(cache=True, nogil=True)
def _pass(
    keys: np.ndarray,
    places: np.ndarray,
    to_keys: np.ndarray,
    to_places: np.ndarray,
    shift: int,
    counts: np.ndarray,
) -> None:
    """Sort by eight bits, stably."""
    counts[:] = 0
    for i in range(len(keys)):
        counts[(keys[i] >> shift) & 255] += np.int32(1)
    total = np.int32(0)
    for b in range(256):
        count = counts[b]
        counts[b] = total
        total = np.int32(total + count)
    for i in range(len(keys)):
        key = keys[i]
        b = (key >> shift) & 255
        to = counts[b]
        counts[b] = np.int32(to + 1)
        to_keys[to] = key
        to_places[to] = places[i]


@njit(cache=True, nogil=True)
def _insertion(keys: np.ndarray, places: np.ndarray) -> bool:
    """Sort stably what is nearly sorted; give up after many moves."""
    left = 8 * len(keys) + 64
    for i in range(1, len(keys)):
        key, place, j = keys[i], places[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], places[j] = keys[j - 1], places[j - 1]
            j -= 1
            left -= 1
        keys[j], places[j] = key, place
        if left < 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _at_most(x: np.ndarray, limit: float) -> int:
    """Count the numbers <= limit."""
    count = np.int32(0)
    for i in range(len(x)):
        count = np.int32(count + np.int32(x[i] <= limit))
    return count


@njit(cache=True, nogil=True)
def _at_least(x: np.ndarray, limit: float) -> int:
    """Count the numbers >= limit."""
    count = np.int32(0)
    for i in range(len(x)):
        count = np.int32(count + np.int32(x[i] >= limit))
    return count


@njit(cache=True, nogil=True, fastmath=_EXTREME)
def _greatest(x: np.ndarray) -> float:
    """Return the greatest number."""
    best = x[0]
    for i in range(len(x)):
        best = max(best, x[i])
    return best


@njit(cache=True, nogil=True, fastmath=_EXTREME)
def _least(x: np.ndarray) -> float:
    """Return the least number."""
    best = x[0]
    for i in range(len(x)):
        best = min(best, x[i])
    return best


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _multiply(s: np.ndarray, v: np.ndarray, t: np.ndarray, d: int) -> None:
    """Add the dot products of three aggregates with the keys of one tile.

    ``s`` (3 * d), ``v`` (d * TILE) and ``t`` (3 * TILE) are flat. Four terms are
    summed, then added: no product passes through more than d / 4 + 4 roundings.
    """
    for k in range(0, d, 4):
        a0, a1, a2, a3 = s[k], s[k + 1], s[k + 2], s[k + 3]
        b0, b1, b2, b3 = s[d + k], s[d + k + 1], s[d + k + 2], s[d + k + 3]
        e = 2 * d + k
        c0, c1, c2, c3 = s[e], s[e + 1], s[e + 2], s[e + 3]
        x = v[k * TILE : (k + 4) * TILE]
        for j in range(TILE):
            x0, x1, x2, x3 = x[j], x[TILE + j], x[2 * TILE + j], x[3 * TILE + j]
            t[j] += ((a0 * x0 + a1 * x1) + a2 * x2) + a3 * x3
            t[TILE + j] += ((b0 * x0 + b1 * x1) + b2 * x2) + b3 * x3
            t[2 * TILE + j] += ((c0 * x0 + c1 * x1) + c2 * x2) + c3 * x3


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _prepare(w: np.ndarray, q: np.ndarray, m: np.ndarray, row: np.ndarray) -> None:
    """Write w q, w SCALE, w m and w m SCALE of one tile."""
    for j in range(TILE):
        row[j] = w[j] * q[j]
        row[TILE + j] = w[j] * _SCALE
        row[2 * TILE + j] = w[j] * m[j]
        row[3 * TILE + j] = w[j] * _SCALE * m[j]


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _powers(
    row: np.ndarray,
    t: np.ndarray,
    e1: float,
    e2: float,
    level: np.ndarray,
    k: float,
    ends: np.ndarray,
    extremes: np.ndarray,
) -> None:
    """Write both ends of the powers of one tile, times SCALE, and extremes so far.

    All arrays are flat, by place in the tile. ``level``: the place in the grid of the
    first N that selects a key, and the same with -1 for what is no candidate. ``ends``:
    both ends, then both with infinity for what is not unselected. ``extremes``: the
    greatest ends of S and the least of U.
    """
    infinite = np.float32(np.inf)
    for j in range(TILE):
        power = row[TILE + j] * (row[j] - (t[j] + t[j]))
        radius = row[3 * TILE + j] * (e1 * row[2 * TILE + j] + e2)
        radius += _LEAST if row[3 * TILE + j] > 0 else np.float32(0)
        low, high = power - radius, power + radius
        ends[j] = low
        ends[TILE + j] = high
        s_low = low if level[j] <= k else -infinite
        s_high = high if level[j] <= k else -infinite
        u_low = low if level[TILE + j] > k else infinite
        u_high = high if level[TILE + j] > k else infinite
        ends[2 * TILE + j] = u_low
        ends[3 * TILE + j] = u_high
        extremes[j] = s_low if s_low > extremes[j] else extremes[j]
        x = extremes[TILE + j]
        extremes[TILE + j] = s_high if s_high > x else x
        x = extremes[2 * TILE + j]
        extremes[2 * TILE + j] = u_low if u_low < x else x
        x = extremes[3 * TILE + j]
        extremes[3 * TILE + j] = u_high if u_high < x else x


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _add_two(
    total: np.ndarray, w0: float, v0: np.ndarray, w1: float, v1: np.ndarray
) -> None:
    """Add two contributions in float64, where products of float32 are exact."""
    for k in range(len(total)):
        total[k] += w0 * np.float64(v0[k]) + w1 * np.float64(v1[k])


@njit(cache=True, nogil=True)
def _aggregates(
    w: np.ndarray,
    values: np.ndarray,
    norms: np.ndarray,
    chosen: np.ndarray,
    ns: np.ndarray,
    used: int,
    s64: np.ndarray,
    s: np.ndarray,
    sizes: np.ndarray,
    lengths: np.ndarray,
) -> None:
    """Write s_N, the sum of w m over S, and what t is measured against, by N."""
    d = values.shape[1]
    total = np.zeros(d)
    size, done = 0.0, 0
    for k in range(used):
        n = ns[k]
        while done < n:
            one = chosen[done]
            w_one, two, w_two = np.float64(w[one]), one, 0.0
            if done + 1 < n:
                two = chosen[done + 1]
                w_two = np.float64(w[two])
            _add_two(total, w_one, values[one], w_two, values[two])
            size += w_one * norms[one] + w_two * norms[two]
            done = min(done + 2, n)
        square = 0.0
        for i in range(d):
            s64[k, i] = total[i]
            s[k * d + i] = total[i]
            square += total[i] * total[i]
        sizes[k] = size
        lengths[k] = np.sqrt(square) + n * (_UNIT64 / _UNIT) * size


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _dot(s: np.ndarray, v: np.ndarray) -> float:
    """Return <s, v> in float64."""
    total = 0.0
    for k in range(len(s)):
        total += s[k] * np.float64(v[k])
    return total


@njit(cache=True, nogil=True)
def _power64(
    w: float, v: np.ndarray, q: float, m: float, s: np.ndarray, size: float, n: int
) -> tuple[float, float]:
    """Return both ends of one power from float64 (T8, T by Cauchy)."""
    power = w * (w * q - 2 * _dot(s, v))
    radius = _MARGIN * (n + len(s) + 12) * _UNIT64 * (w * (w * q + 2 * m * size))
    return power - radius, power + radius


@njit(cache=True, nogil=True)
def _spread(
    ends: np.ndarray, lo: np.ndarray, hi: np.ndarray, u_lo: np.ndarray, u_hi: np.ndarray
) -> None:
    """Put the ends of one tile in their places in the row."""
    for j in range(TILE):
        lo[j] = ends[j]
        hi[j] = ends[TILE + j]
        u_lo[j] = ends[2 * TILE + j]
        u_hi[j] = ends[3 * TILE + j]


@njit(cache=True, nogil=True)
def _four_pairs(
    u_lo: np.ndarray, u_hi: np.ndarray, s_lo: np.ndarray, s_hi: np.ndarray
) -> tuple[int, int]:
    """Count pairs of unselected and four selected keys: most and least."""
    h0, h1, h2, h3 = s_hi[0], s_hi[1], s_hi[2], s_hi[3]
    l0, l1, l2, l3 = s_lo[0], s_lo[1], s_lo[2], s_lo[3]
    most = least = np.int32(0)
    for j in range(len(u_lo)):
        x, y = u_lo[j], u_hi[j]
        most = np.int32(
            most
            + np.int32(x <= h0)
            + np.int32(x <= h1)
            + np.int32(x <= h2)
            + np.int32(x <= h3)
        )
        least = np.int32(
            least
            + np.int32(y <= l0)
            + np.int32(y <= l1)
            + np.int32(y <= l2)
            + np.int32(y <= l3)
        )
    return most, least


@njit(cache=True, nogil=True)
def _inversions(
    u_lo: np.ndarray,
    u_hi: np.ndarray,
    u_keys: np.ndarray,
    s_lo: np.ndarray,
    s_hi: np.ndarray,
    s_keys: np.ndarray,
    n: int,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    s: np.ndarray,
    size: float,
) -> tuple[int, bool]:
    """Count pairs with u <= s; those that float32 leaves open, in float64.

    The number of selected keys is a multiple of four; filling has ends of -infinity.
    """
    total = 0
    for i in range(0, len(s_lo), 4):
        most, least = _four_pairs(u_lo, u_hi, s_lo[i : i + 4], s_hi[i : i + 4])
        total += least
        if most == least:
            continue
        for a in range(i, i + 4):
            mine_lo, mine_hi, known = 0.0, 0.0, False
            for j in range(len(u_lo)):
                if not (u_lo[j] <= s_hi[a] and u_hi[j] > s_lo[a]):
                    continue
                if not known:
                    known, key = True, s_keys[a]
                    mine_lo, mine_hi = _power64(
                        np.float64(w[key]), values[key], q64[key], m64[key], s, size, n
                    )
                key = u_keys[j]
                other_lo, other_hi = _power64(
                    np.float64(w[key]), values[key], q64[key], m64[key], s, size, n
                )
                if other_hi <= mine_lo:
                    total += 1
                elif other_lo <= mine_hi:
                    return 0, True
    return total, False


@njit(cache=True, nogil=True)
def _count_one(
    ends: np.ndarray,
    top_lo: float,
    top_hi: float,
    least_lo: float,
    least_hi: float,
    base: int,
    end: int,
    chosen: np.ndarray,
    near: np.ndarray,
    near_keys: np.ndarray,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    s: np.ndarray,
    size: float,
) -> tuple[int, int, int, bool]:
    """Return FP, FN, inversions of one N, and whether they are open in float64 too.

    ``ends`` (4, n_key): both ends of every key from ``base`` to ``end``, then both with
    infinity where a key is not unselected. ``near`` and ``near_keys`` are scratch.
    """
    if top_hi < least_lo:
        return 0, 0, 0, False
    n = len(chosen)
    lo, hi = ends[0], ends[1]
    u_lo, u_hi = ends[2][base:end], ends[3][base:end]
    fp = _at_most(u_lo, top_hi)
    fn = surely = 0
    s_lo, s_hi, s_keys = near[0], near[1], near_keys[0]
    for i in range(n):
        key = chosen[i]
        low, high = lo[key], hi[key]
        s_lo[fn], s_hi[fn], s_keys[fn] = low, high, key
        fn += high >= least_lo
        surely += low >= least_hi
    if fn != surely or fp != _at_most(u_hi, top_lo):
        return _recount(u_lo, base, chosen, w, values, q64, m64, s, size)
    m = fn
    while m % 4:
        s_lo[m] = s_hi[m] = -np.inf
        m += 1
    if fn <= _FEW:
        # Too few to pay for leaving out what lies beyond the farthest.
        inversions, open_ = _inversions(
            u_lo, u_hi, near_keys[2][base:end], s_lo[:m], s_hi[:m], s_keys,
            n, w, values, q64, m64, s, size,
        )  # fmt: skip
        return fp, fn, inversions, open_
    x_lo, x_hi, x_keys = near[2], near[3], near_keys[1]
    f = 0
    for j in range(len(u_lo)):
        x_lo[f], x_hi[f], x_keys[f] = u_lo[j], u_hi[j], base + j
        f += u_lo[j] <= top_hi
    inversions, open_ = _inversions(
        x_lo[:f], x_hi[:f], x_keys, s_lo[:m], s_hi[:m], s_keys,
        n, w, values, q64, m64, s, size,
    )  # fmt: skip
    return fp, fn, inversions, open_


@njit(cache=True, nogil=True)
def _recount(
    u_lo: np.ndarray,
    base: int,
    chosen: np.ndarray,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    s: np.ndarray,
    size: float,
) -> tuple[int, int, int, bool]:
    """Count one N in float64 alone; ``u_lo`` is infinite but at unselected keys."""
    n = len(chosen)
    lo, hi = np.empty(len(u_lo)), np.empty(len(u_lo))
    for j in range(len(u_lo)):
        key = base + j
        lo[j] = hi[j] = np.inf
        if u_lo[j] < np.inf:
            lo[j], hi[j] = _power64(
                np.float64(w[key]), values[key], q64[key], m64[key], s, size, n
            )
    s_lo, s_hi = np.empty(n), np.empty(n)
    for i in range(n):
        key = chosen[i]
        s_lo[i], s_hi[i] = _power64(
            np.float64(w[key]), values[key], q64[key], m64[key], s, size, n
        )
    fp, bottom = _at_most(lo, _greatest(s_hi)), _least(lo)
    fn = _at_least(s_hi, bottom)
    if fp != _at_most(hi, _greatest(s_lo)) or fn != _at_least(s_lo, _least(hi)):
        return 0, 0, 0, True
    most = least = 0
    for i in range(n):
        if s_hi[i] >= bottom:
            most += _at_most(lo, s_hi[i])
            least += _at_most(hi, s_lo[i])
    return fp, fn, most, most != least


@njit(cache=True, nogil=True)
def _candidates(
    order: np.ndarray, start: int, stop: int, sink: int, policy: int, chosen: np.ndarray
) -> tuple[int, int, bool]:
    """Write the best keys; return how many may be chosen, |C|, and if the sink is out.

    Policies: 0 keep, 1 drop, 2 compete.
    """
    ranked = 0
    apart = policy > 0 and start <= sink < stop
    for i in range(len(order)):
        key = start + order[i]
        if ranked == len(chosen):
            break
        if not (apart and key == sink):
            chosen[ranked] = key
            ranked += 1
    dropped = apart and policy == 1
    return stop - start - int(apart), stop - start - int(dropped), dropped


@njit(cache=True, nogil=True)
def _levels(
    level: np.ndarray,
    first: int,
    last: int,
    start: int,
    stop: int,
    missing: int,
    chosen: np.ndarray,
    ns: np.ndarray,
    used: int,
) -> None:
    """Write the levels of ``_powers`` for some tiles; ``missing`` is no candidate."""
    level[first:last] = _NEVER
    for i in (first, last - 1):
        for j in range(TILE):
            if not start <= i * TILE + j < stop:
                level[i, TILE + j] = -1
    if missing >= 0:
        level[missing // TILE, TILE + missing % TILE] = -1
    done = 0
    for k in range(used):
        for i in range(done, ns[k]):
            tile, place = chosen[i] // TILE, chosen[i] % TILE
            level[tile, place] = level[tile, TILE + place] = k
        done = ns[k]


@njit(cache=True, nogil=True)
def _count_task(
    weights: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    tiles: np.ndarray,
    values: np.ndarray,
    norms: np.ndarray,
    squares: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    sink: int,
    contribution: bool,  # noqa: FBT001
    ns: np.ndarray,
    policies: np.ndarray,
    most_weight: float,
    counts: np.ndarray,
    flags: np.ndarray,
    good: np.ndarray,
) -> None:
    """Count some rows of one head; arguments as for ``count_rows``, one head each."""
    n_key, d = values.shape
    n_tiles = (n_key + TILE - 1) // TILE
    width = n_tiles * TILE
    n_ns = len(ns)
    room = (n_ns + _GROUP - 1) // _GROUP * _GROUP
    w = np.zeros(width, np.float32)
    scores = np.empty(n_key, np.float32)
    keys, places = np.empty((2, n_key), np.int32), np.empty((2, n_key), np.int32)
    chosen = np.empty(min(n_key, ns[-1] + 1), np.int64)
    row = np.empty((n_tiles, 4 * TILE), np.float32)
    s, s64 = np.zeros(room * d, np.float32), np.empty((n_ns, d))
    t = np.empty(_GROUP * TILE, np.float32)
    sizes, lengths = np.empty(n_ns), np.empty(n_ns)
    ends = np.empty((n_ns, 4, width), np.float32)
    part, extremes = (
        np.empty(4 * TILE, np.float32),
        np.empty((n_ns, 4 * TILE), np.float32),
    )
    level = np.empty((n_tiles, 2 * TILE), np.float32)
    near, near_keys = (
        np.empty((4, width + 4), np.float32),
        np.empty((3, width + 4), np.int64),
    )
    for j in range(width):
        near_keys[2, j] = j
    unit = _MARGIN * (d // 4 + 12) * _UNIT
    e1, most = np.float32(unit), np.float32(most_weight)
    for r in range(len(weights)):
        start, stop = starts[r], stops[r]
        size = stop - start
        if size < 2:
            good[r] = size == 1
            continue
        first, last = start // TILE, (stop - 1) // TILE + 1
        base, end = first * TILE, last * TILE
        w[:] = 0
        seen = weights[r, start:stop]
        shown = w[start:stop]
        amiss, mass = np.int32(0), np.int32(0)
        for j in range(size):
            x = seen[j] + np.float32(0)  # -0 becomes 0
            amiss = np.int32(amiss + np.int32(not 0 <= x <= most))
            mass = np.int32(mass + np.int32(x > 0))
            shown[j] = x
        if amiss or not mass:
            continue
        good[r] = True
        for i in range(first, last):
            a, b = i * TILE, (i + 1) * TILE
            _prepare(w[a:b], squares[a:b], norms[a:b], row[i])
        visible = scores[:size]
        if contribution:
            for j in range(size):
                visible[j] = shown[j] * _SCALE * norms[start + j]
        else:
            visible[:] = shown
        half = _order(visible, keys[:, :size], places[:, :size])
        order = places[half, :size]
        for p in range(len(policies)):
            may, n_candidates, dropped = _candidates(
                order, start, stop, sink, policies[p], chosen
            )
            used = 0
            while used < n_ns and ns[used] <= min(n_candidates - 1, may):
                used += 1
            _aggregates(w, values, m64, chosen, ns, used, s64, s, sizes, lengths)
            extremes[:used, : 2 * TILE] = -np.inf
            extremes[:used, 2 * TILE :] = np.inf
            _levels(
                level, first, last, start, stop, sink if dropped else -1,
                chosen, ns, used,
            )  # fmt: skip
            for i in range(first, last):
                tile = tiles[i * d * TILE : (i + 1) * d * TILE]
                a, b = i * TILE, (i + 1) * TILE
                for g in range(0, used, _GROUP):
                    t[:] = 0
                    _multiply(s[g * d : (g + _GROUP) * d], tile, t, d)
                    for k in range(g, min(g + _GROUP, used)):
                        c = (k - g) * TILE
                        e2 = np.float32(unit * 2 * lengths[k]) + _FLOOR
                        _powers(
                            row[i], t[c : c + TILE], e1, e2,
                            level[i], np.float32(k), part, extremes[k],
                        )  # fmt: skip
                        x = ends[k]
                        _spread(part, x[0, a:b], x[1, a:b], x[2, a:b], x[3, a:b])
            for k in range(used):
                n = ns[k]
                x = extremes[k]
                fp, fn, inversions, open_ = _count_one(
                    ends[k],
                    _greatest(x[:TILE]),
                    _greatest(x[TILE : 2 * TILE]),
                    _least(x[2 * TILE : 3 * TILE]),
                    _least(x[3 * TILE :]),
                    base, end, chosen[:n], near, near_keys,
                    w, values, q64, m64, s64[k], sizes[k],
                )  # fmt: skip
                counts[0, p, r, k] = fp
                counts[1, p, r, k] = fn
                counts[2, p, r, k] = inversions
                flag = OPEN if open_ else 0
                if n < may:
                    last_in = visible[chosen[n - 1] - start]
                    first_out = visible[chosen[n] - start]
                    if last_in == first_out:
                        flag |= TIE
                    # Rounded scores this near do not say who comes first.
                    if contribution and last_in > 0 and last_in <= first_out * _APART:
                        flag = OPEN_SET
                flags[p, r, k] = flag


@njit(cache=True, nogil=True, parallel=True)
def count_rows(
    weights: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    tiles: np.ndarray,
    values: np.ndarray,
    norms: np.ndarray,
    squares: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    sink: int,
    contribution: bool,  # noqa: FBT001
    ns: np.ndarray,
    policies: np.ndarray,
    most_weight: float,
    counts: np.ndarray,
    flags: np.ndarray,
    good: np.ndarray,
) -> None:
    """Count every row of a layer.

    Parameters
    ----------
    weights : ndarray of float32, shape (n_heads, n_rows, n_key)
        Attention weights.
    starts, stops : ndarray of int64, shape (n_rows,)
        Row r sees the keys starts[r], ..., stops[r] - 1.
    tiles : ndarray of float32, shape (n_kv_heads, n_tiles * d * TILE)
        Values by tile, coordinate, key; zero beyond the last key.
    values : ndarray of float32, shape (n_kv_heads, n_key, d)
        Values; d a multiple of four, zero beyond the width.
    norms, squares : ndarray of float32, shape (n_kv_heads, n_tiles * TILE)
        ||v|| rounded up, and ||v||^2; zero beyond the last key.
    q64, m64 : ndarray of float64, shape (n_kv_heads, n_tiles * TILE)
        ||v||^2, and ||v|| rounded up.
    sink : int
        Key of the sink, -1 for none.
    contribution : bool
        Rank by w ||v||, not by w.
    ns, policies : ndarray of int64
        Numbers of selected tokens, ascending; 0 keep, 1 drop, 2 compete.
    most_weight : float
        Greatest weight that cannot overflow.
    counts : ndarray of int32, shape (3, n_policies, n_heads, n_rows, n_n)
        FP, FN and inversions. Left alone where N is out of range.
    flags : ndarray of uint8, shape (n_policies, n_heads, n_rows, n_n)
        TIE: the set is a convention. OPEN: float64 does not decide a count. OPEN_SET:
        it does not decide the set.
    good : ndarray of bool, shape (n_heads, n_rows)
        Set where the weights are numbers from 0 to ``most_weight``, not all 0.
    """
    n_heads, n_rows, _ = weights.shape
    group = n_heads // len(values)
    parts = (n_rows + _ROWS - 1) // _ROWS
    for i in prange(n_heads * parts):
        h = i // parts
        a = (i - h * parts) * _ROWS
        b = min(a + _ROWS, n_rows)
        kv = h // group
        _count_task(
            weights[h, a:b], starts[a:b], stops[a:b],
            tiles[kv], values[kv], norms[kv], squares[kv], q64[kv], m64[kv],
            sink, contribution, ns, policies, most_weight,
            counts[:, :, h, a:b], flags[:, h, a:b], good[h, a:b],
        )  # fmt: skip
