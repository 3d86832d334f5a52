"""Counts of every query row and N of one layer, compiled (D6, D8; T1, T8).

One row at a time: its keys are sorted by score; t = <v, s_N> of all keys grows
along that order by products of keys while N is small, and is a small matrix product of
the aggregates and tiles of keys beyond; powers with a radius and the comparisons of T1
follow while these are in the cache.

The matrix product is in float32. Pairs that its radius leaves open are compared again
in float64, token by token; where a count of false positives or negatives is open, all
keys of that N are. What is open even then is flagged. ``rows`` derives the radii.
"""

import numpy as np
from numba import njit, prange

__all__ = ["OPEN", "OPEN_SET", "TIE", "TILE", "count_rows", "fill_products"]

TILE = 64  # keys handled together; a tile of values stays in the first cache
TIE, OPEN, OPEN_SET = 1, 2, 4  # flags
_ROWS = 8  # rows of a task
_SHORT = 16  # contributions summed in float32
_FEW = 16  # selected keys compared with all others as they stand
_PRODUCTS = 64  # numbers N up to this are served by products of values
_SCALE = np.float32(2.0**64)  # lifts the least float32 weight far above underflow
_UNIT = 2.0**-24
_UNIT64 = 2.0**-53
_MARGIN = 1 + 2.0**-10  # roundings of a radius, and second-order terms
_FLOOR = np.float32(2.0**-90)  # underflow, in units of a weight times a norm
_LEAST = np.float32(2.0**-120)  # underflow of a power or its radius
_APART = np.float32(1 + 2.0**-20)  # scores this far apart are in order

# A product and a sum may be fused, which saves a rounding; sums keep their order.
_FUSED = {"contract"}
# Sums in any order; there are no NaNs.
_ANY_ORDER = {"contract", "reassoc", "nnan", "nsz"}


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
    greatest = bits[0]
    for i in range(n):
        greatest = max(greatest, bits[i])
    for attempt in range(2):
        for i in range(n):
            k0[i] = np.int32(greatest - bits[i])
            p0[i] = i
        if attempt:
            _pass(k0, p0, k1, p1, 0, counts)
            _pass(k1, p1, k0, p0, 8, counts)
            _pass(k0, p0, k1, p1, 16, counts)
            _pass(k1, p1, k0, p0, 24, counts)
        else:
            # What is 2^-64 of the greatest or less comes last, in any order.
            _pass(k0, p0, k1, p1, 13, counts)
            _pass(k1, p1, k0, p0, 21, counts)
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
    """Sort by eight bits, stably; the last pass takes all above for 255."""
    most = 255 if shift > 20 else 2**31
    counts[:] = 0
    for i in range(len(keys)):
        counts[min(keys[i] >> shift, most) & 255] += np.int32(1)
    total = np.int32(0)
    for b in range(256):
        count = counts[b]
        counts[b] = total
        total = np.int32(total + count)
    for i in range(len(keys)):
        key = keys[i]
        b = min(key >> shift, most) & 255
        to = counts[b]
        counts[b] = np.int32(to + 1)
        to_keys[to] = key
        to_places[to] = places[i]


@njit(cache=True, nogil=True)
def _insertion(keys: np.ndarray, places: np.ndarray) -> bool:
    """Sort stably what is nearly sorted; give up after many moves."""
    left = 8 * len(keys) + 64
    for i in range(1, len(keys)):
        if keys[i - 1] <= keys[i]:
            continue
        key, place, j = keys[i], places[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], places[j] = keys[j - 1], places[j - 1]
            j -= 1
            left -= 1
        keys[j], places[j] = key, place
        if left < 0:
            return False
    return True


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _multiply(s: np.ndarray, g: int, v: np.ndarray, t: np.ndarray, d: int) -> None:
    """Write the dot products of two aggregates with the keys of one tile.

    ``s`` holds the aggregates from the place ``g`` on; ``v`` (d * TILE) and ``t``
    (2 * TILE) are flat. Four terms are summed, then added: no product passes through
    more than d / 4 + 4 roundings.
    """
    t[:] = 0
    for k in range(0, d, 4):
        e = g * d + k
        a0, a1, a2, a3 = s[e], s[e + 1], s[e + 2], s[e + 3]
        e += d
        b0, b1, b2, b3 = s[e], s[e + 1], s[e + 2], s[e + 3]
        x = v[k * TILE : (k + 4) * TILE]
        for j in range(TILE):
            x0, x1, x2, x3 = x[j], x[TILE + j], x[2 * TILE + j], x[3 * TILE + j]
            t[j] += ((a0 * x0 + a1 * x1) + a2 * x2) + a3 * x3
            t[TILE + j] += ((b0 * x0 + b1 * x1) + b2 * x2) + b3 * x3


@njit(cache=True, nogil=True)
def _four(
    w: np.ndarray, chosen: np.ndarray, i: int, n: int
) -> tuple[int, int, int, int, float, float, float, float]:
    """Return four keys from the place ``i`` on and their weights, 0 from ``n`` on."""
    zero = np.float32(0)
    a = chosen[i]
    b = chosen[i + 1] if i + 1 < n else a
    c = chosen[i + 2] if i + 2 < n else a
    e = chosen[i + 3] if i + 3 < n else a
    return (
        a, b, c, e, w[a],
        w[b] if i + 1 < n else zero,
        w[c] if i + 2 < n else zero,
        w[e] if i + 3 < n else zero,
    )  # fmt: skip


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _grow(
    t: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    chosen: np.ndarray,
    done: int,
    n: int,
) -> None:
    """Add the scaled rows of ``x`` of the chosen keys from ``done`` to ``n``.

    From the first key on even if it is not seen: an index that might be negative would
    keep the loop from running in vectors.
    """
    for i in range(done, n, 4):
        a, b, c, e, w0, w1, w2, w3 = _four(w, chosen, i, n)
        for j in range(len(t)):
            t[j] += ((w0 * x[a, j] + w1 * x[b, j]) + w2 * x[c, j]) + w3 * x[e, j]


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _prepare(
    w: np.ndarray,
    q: np.ndarray,
    m: np.ndarray,
    e1: float,
    wq: np.ndarray,
    lifted: np.ndarray,
    lifted_m: np.ndarray,
    fixed: np.ndarray,
) -> None:
    """Write w q, w SCALE, w m SCALE and the part of the radius that no N changes."""
    zero = np.float32(0)
    for j in range(len(w)):
        up = w[j] * _SCALE
        up_m = up * m[j]
        wq[j] = w[j] * q[j]
        lifted[j] = up
        lifted_m[j] = up_m
        fixed[j] = up_m * (e1 * (w[j] * m[j])) + (_LEAST if up_m > zero else zero)


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _powers(
    wq: np.ndarray,
    lifted: np.ndarray,
    lifted_m: np.ndarray,
    fixed: np.ndarray,
    t: np.ndarray,
    e2: float,
    lo: np.ndarray,
    hi: np.ndarray,
) -> None:
    """Write both ends of the powers, times SCALE."""
    for j in range(len(t)):
        power = lifted[j] * (wq[j] - (t[j] + t[j]))
        radius = lifted_m[j] * e2 + fixed[j]
        lo[j] = power - radius
        hi[j] = power + radius


@njit(cache=True, nogil=True)
def _both_least(
    lo: np.ndarray, hi: np.ndarray, scratch: np.ndarray
) -> tuple[float, float]:
    """Return the least of either array.

    As integers, which order as the floats do once the lower bits of negative ones are
    turned: such a search is done in vectors. 0 may come before -0, which is as good.
    """
    x, y, one = lo.view(np.int32), hi.view(np.int32), scratch.view(np.int32)
    turn = np.int32(0x7FFFFFFF)
    a = b = turn
    for j in range(len(x)):
        u, v = x[j], y[j]
        u = np.int32(u ^ (np.int32(u >> 31) & turn))
        v = np.int32(v ^ (np.int32(v >> 31) & turn))
        a = min(a, u)
        b = min(b, v)
    one[0] = np.int32(a ^ (np.int32(a >> 31) & turn))
    one[1] = np.int32(b ^ (np.int32(b >> 31) & turn))
    return scratch[0], scratch[1]


@njit(cache=True, nogil=True)
def _both_at_most(
    lo: np.ndarray, hi: np.ndarray, top_lo: float, top_hi: float
) -> tuple[int, int]:
    """Count lo <= top_hi and hi <= top_lo."""
    most = least = np.int32(0)
    for j in range(len(lo)):
        most = np.int32(most + np.int32(lo[j] <= top_hi))
        least = np.int32(least + np.int32(hi[j] <= top_lo))
    return most, least


@njit(cache=True, nogil=True, fastmath=_FUSED)
def _aggregates(
    w: np.ndarray,
    values: np.ndarray,
    chosen: np.ndarray,
    ns: np.ndarray,
    first: int,
    used: int,
    some: np.ndarray,
    total: np.ndarray,
    s: np.ndarray,
    lengths: np.ndarray,
) -> None:
    """Write s_N and its length for the numbers N from the place ``first`` on.

    A few contributions are summed in float32, then added to a ``total`` in float64:
    each passes through at most nine roundings.
    """
    d = values.shape[1]
    total[:] = 0
    done = 0
    for k in range(first, used):
        n = ns[k]
        for i in range(done, n, _SHORT):
            some[:] = 0
            _grow(some, values, w, chosen, i, min(i + _SHORT, n))
            for j in range(d):
                total[j] += np.float64(some[j])
        done = n
        square = 0.0
        for i in range(d):
            s[(k - first) * d + i] = total[i]
            square += total[i] * total[i]
        lengths[k] = np.sqrt(square)


@njit(cache=True, nogil=True)
def _sum64(w: np.ndarray, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return s_N in float64, where products of float32 are exact."""
    total = np.zeros(values.shape[1])
    for i in range(len(chosen)):
        weight, v = np.float64(w[chosen[i]]), values[chosen[i]]
        for k in range(len(total)):
            total[k] += weight * np.float64(v[k])
    return total


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
def _four_pairs(
    u_lo: np.ndarray, u_hi: np.ndarray, s_lo: np.ndarray, s_hi: np.ndarray, i: int
) -> tuple[int, int]:
    """Count pairs of unselected and four selected keys: most and least."""
    h0, h1, h2, h3 = s_hi[i], s_hi[i + 1], s_hi[i + 2], s_hi[i + 3]
    l0, l1, l2, l3 = s_lo[i], s_lo[i + 1], s_lo[i + 2], s_lo[i + 3]
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
def _open_pairs(
    lo: np.ndarray,
    hi: np.ndarray,
    base: int,
    s_lo: np.ndarray,
    s_hi: np.ndarray,
    s_keys: np.ndarray,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    s: np.ndarray,
    size: float,
    n: int,
) -> tuple[int, bool]:
    """Count pairs with u <= s among those that float32 leaves open, in float64."""
    total = 0
    for a in range(len(s_lo)):
        mine_lo, mine_hi, known = 0.0, 0.0, False
        for i in range(0, len(lo), TILE):
            some_lo, some_hi = lo[i : i + TILE], hi[i : i + TILE]
            most, least = _both_at_most(some_lo, some_hi, s_lo[a], s_hi[a])
            if most == least:
                continue
            if not known:
                known, key = True, s_keys[a]
                mine_lo, mine_hi = _power64(
                    np.float64(w[key]), values[key], q64[key], m64[key], s, size, n
                )
            for j in range(TILE):
                if not (some_lo[j] <= s_hi[a] and some_hi[j] > s_lo[a]):
                    continue
                key = base + i + j
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
    lo: np.ndarray,
    hi: np.ndarray,
    base: int,
    chosen: np.ndarray,
    n: int,
    s_lo: np.ndarray,
    s_hi: np.ndarray,
    s_keys: np.ndarray,
    x_lo: np.ndarray,
    x_hi: np.ndarray,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    size: float,
) -> tuple[int, int, int, bool]:
    """Return FP, FN, inversions of one N, and whether they are open in float64 too.

    ``lo`` and ``hi``: ends of the keys from ``base`` on, infinite where a key is no
    candidate; made infinite here where it is selected. ``s_lo`` to ``x_hi`` are
    scratch.
    """
    top_lo = top_hi = -np.float32(np.inf)
    for i in range(n):
        j = chosen[i] - base
        low, high = lo[j], hi[j]
        s_lo[i], s_hi[i] = low, high
        lo[j] = hi[j] = np.float32(np.inf)
        top_lo = low if low > top_lo else top_lo
        top_hi = high if high > top_hi else top_hi
    fp, surely_fp = _both_at_most(lo, hi, top_lo, top_hi)
    if fp == 0:
        return 0, 0, 0, False
    if fp != surely_fp:
        return _recount(lo, base, chosen[:n], w, values, q64, m64, size)
    least_lo, least_hi = _both_least(lo, hi, x_lo)
    fn = surely = 0
    for i in range(n):
        low, high = s_lo[i], s_hi[i]
        s_lo[fn], s_hi[fn], s_keys[fn] = low, high, chosen[i]
        fn += high >= least_lo
        surely += low >= least_hi
    if fn != surely:
        return _recount(lo, base, chosen[:n], w, values, q64, m64, size)
    m = fn
    while m % 4:
        s_lo[m] = s_hi[m] = -np.float32(np.inf)
        m += 1
    u_lo, u_hi = lo, hi
    if fn > _FEW:
        # Leaving out what lies beyond the farthest pays.
        f = 0
        for j in range(len(lo)):
            x = lo[j]
            x_lo[f], x_hi[f] = x, hi[j]
            f += x <= top_hi
        while f % 32:
            x_lo[f] = x_hi[f] = np.float32(np.inf)
            f += 1
        u_lo, u_hi = x_lo[:f], x_hi[:f]
    total, known = 0, False
    s = np.empty(0)
    for i in range(0, m, 4):
        most, least = _four_pairs(u_lo, u_hi, s_lo, s_hi, i)
        total += least
        if most != least:
            if not known:
                s, known = _sum64(w, values, chosen[:n]), True
            more, open_ = _open_pairs(
                lo, hi, base, s_lo[i : i + 4], s_hi[i : i + 4], s_keys[i : i + 4],
                w, values, q64, m64, s, size, n,
            )  # fmt: skip
            if open_:
                return 0, 0, 0, True
            total += more
    return fp, fn, total, False


@njit(cache=True, nogil=True)
def _recount(
    u_lo: np.ndarray,
    base: int,
    chosen: np.ndarray,
    w: np.ndarray,
    values: np.ndarray,
    q64: np.ndarray,
    m64: np.ndarray,
    size: float,
) -> tuple[int, int, int, bool]:
    """Count one N in float64 alone; ``u_lo`` is infinite but at unselected keys."""
    n = len(chosen)
    s = _sum64(w, values, chosen)
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
    fp, bottom = _at_most(lo, s_hi.max()), lo.min()
    fn = _at_least(s_hi, bottom)
    if fp != _at_most(hi, s_lo.max()) or fn != _at_least(s_lo, hi.min()):
        return 0, 0, 0, True
    most = least = 0
    for i in range(n):
        if s_hi[i] >= bottom:
            most += _at_most(lo, s_hi[i])
            least += _at_most(hi, s_lo[i])
    return fp, fn, most, most != least


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
def _count_task(
    weights: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    tiles: np.ndarray,
    products: np.ndarray,
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
    room = (n_ns + 1) // 2 * 2
    w = np.zeros(width, np.float32)
    scores = np.empty(n_key, np.float32)
    keys, places = np.empty((2, n_key), np.int32), np.empty((2, n_key), np.int32)
    chosen = np.empty(min(n_key, ns[-1] + 1), np.int64)
    row, grown = np.empty((4, width), np.float32), np.empty(width, np.float32)
    s, lengths = np.zeros(room * d, np.float32), np.empty(n_ns)
    pair, t = np.empty(2 * TILE, np.float32), np.empty((room, width), np.float32)
    lo, hi = np.empty(width, np.float32), np.empty(width, np.float32)
    s_lo, s_hi = np.empty(width + 4, np.float32), np.empty(width + 4, np.float32)
    x_lo, x_hi = np.empty(width + 32, np.float32), np.empty(width + 32, np.float32)
    s_keys, total = np.empty(width + 4, np.int64), np.empty(d)
    some = np.empty(d, np.float32)
    by_products = 0  # how many N are served by products
    while len(products) and by_products < n_ns and ns[by_products] <= _PRODUCTS:
        by_products += 1
    unit = _MARGIN * (d // 4 + 12) * _UNIT
    infinite = np.float32(np.inf)
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
        wq, lifted = row[0, base:end], row[1, base:end]
        lifted_m, fixed = row[2, base:end], row[3, base:end]
        row_lo, row_hi = lo[base:end], hi[base:end]
        _prepare(
            w[base:end], squares[base:end], norms[base:end], e1,
            wq, lifted, lifted_m, fixed,
        )  # fmt: skip
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
            if used > by_products:
                _aggregates(
                    w, values, chosen, ns, by_products, used, some, total, s, lengths
                )
                for i in range(first, last):
                    a, b = i * TILE, (i + 1) * TILE
                    tile = tiles[a * d : b * d]
                    for g in range(0, used - by_products, 2):
                        _multiply(s, g, tile, pair, d)
                        t[g, a:b] = pair[:TILE]
                        t[g + 1, a:b] = pair[TILE:]
            grown[:] = 0
            all_t = grown[:end]
            near_t = grown[base:end]
            done, mass_m = 0, 0.0
            for k in range(used):
                n = ns[k]
                for i in range(done, n):
                    mass_m += np.float64(w[chosen[i]]) * m64[chosen[i]]
                # Twice what bounds |t|, as far as it is rounded, over m.
                if k < by_products:
                    _grow(all_t, products, w, chosen, done, n)
                    at = near_t
                    bound = 2 * _MARGIN * (n + d + 12) * _UNIT * mass_m
                else:
                    at = t[k - by_products, base:end]
                    bound = 2 * (unit * lengths[k] + _MARGIN * 12 * _UNIT * mass_m)
                done = n
                e2 = np.float32(bound) + _FLOOR
                _powers(wq, lifted, lifted_m, fixed, at, e2, row_lo, row_hi)
                for j in range(base, start):  # what is no candidate
                    lo[j] = hi[j] = infinite
                for j in range(stop, end):
                    lo[j] = hi[j] = infinite
                if dropped:
                    lo[sink] = hi[sink] = infinite
                fp, fn, inversions, open_ = _count_one(
                    row_lo, row_hi, base, chosen, n, s_lo, s_hi, s_keys, x_lo, x_hi,
                    w, values, q64, m64, mass_m,
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
    products: np.ndarray,
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
    products : ndarray of float32, shape (n_kv_heads, n_key, n_tiles * TILE)
        <v_i, v_j>, each with at most d roundings; zero beyond the last key. Shape
        (n_kv_heads, 0, 0) for none: the tiles serve every N then.
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
            tiles[kv], products[kv], values[kv], norms[kv], squares[kv],
            q64[kv], m64[kv],
            sink, contribution, ns, policies, most_weight,
            counts[:, :, h, a:b], flags[:, h, a:b], good[h, a:b],
        )  # fmt: skip


@njit(cache=True, nogil=True, parallel=True)
def fill_products(values: np.ndarray, tiles: np.ndarray, products: np.ndarray) -> None:
    """Write <v_i, v_j> of all keys; shapes as for ``count_rows``."""
    n_kv_heads, n_key, d = values.shape
    n_pairs = (n_key + 1) // 2
    for i in prange(n_kv_heads * n_pairs):
        h = i // n_pairs
        a = 2 * (i - h * n_pairs)
        both = np.zeros(2 * d, np.float32)
        for k in range(d):
            both[k] = values[h, a, k]
            both[d + k] = values[h, min(a + 1, n_key - 1), k]
        pair = np.empty(2 * TILE, np.float32)
        for b in range(0, products.shape[2], TILE):
            _multiply(both, 0, tiles[h, b * d : (b + TILE) * d], pair, d)
            products[h, a, b : b + TILE] = pair[:TILE]
            if a + 1 < n_key:
                products[h, a + 1, b : b + TILE] = pair[TILE:]
