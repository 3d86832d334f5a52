"""Exact counts of many selections of one query at once (D6, D8 through T1 and T8).

The selections are rows of one matrix, so that every dot product of T8 is part of a
matrix product. What the radius leaves open goes to ``selection_counts``, selection by
selection: the result is always the exact one, and only the time depends on the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.integers import refuse_flush_to_zero
from geobounds.power import _SMALL, _UNIT
from geobounds.selection import Selection
from geobounds.separability import selection_counts

__all__ = ["count_selections"]

# Numbers in one temporary array, 2 MiB; about six such arrays live at a time.
_CHUNK = 2**18
# OpenBLAS multiplies on one thread up to this many products. Its threads wait for one
# another, for tens of milliseconds where cores are shared.
_ONE_THREAD = 2**18

_Matrix = Float64[np.ndarray, "n_selections n_key"]
_Vector = Float64[np.ndarray, " n"]


def count_selections(
    head: HeadData,
    selections: Sequence[Selection],
    distance: str = "euclidean",
    *,
    inversions: bool = True,
) -> Int64[np.ndarray, "n_selections 3"]:
    """Return the exact counts of many selections of one query.

    Parameters
    ----------
    head : HeadData
        A head with values.
    selections : sequence of Selection
        Selections of one row of the head; N and candidates may differ.
    distance : "euclidean" or "cosine"
        Distance of a contribution to the aggregate.
    inversions : bool
        Whether inversions are counted.

    Returns
    -------
    ndarray of int64, shape (n_selections, 3)
        FP, FN and inversions of each selection, as ``selection_counts`` gives them;
        -1 for inversions that are not asked for.

    Raises
    ------
    ArgumentError
        Selections of several rows, one without selected or unselected keys, or an
        unknown distance.
    HeadDataError
        The head has no values.

    Notes
    -----
    Statements T8 and T1. A row of the matrix of weights is zero outside S. A zero
    product and its addition are exact, so t passes through N + d roundings as in T8
    whatever the number of keys.
    """
    if distance not in ("euclidean", "cosine"):
        msg = (
            'count_selections: distance must be "euclidean" or "cosine", '
            f"got distance={distance!r}."
        )
        raise ArgumentError(msg)
    head.require_values("count_selections")
    counts = np.full((len(selections), 3), -1, dtype=np.int64)
    if not selections:
        return counts
    rows = sorted({s.row for s in selections})
    if len(rows) > 1:
        msg = (
            "count_selections: selections must be of one query, "
            f"got rows={rows}. Call it once a row."
        )
        raise ArgumentError(msg)
    for i, s in enumerate(selections):
        if not (len(s.selected) and len(s.unselected)):
            msg = (
                "count_selections: selections must hold selected and unselected keys, "
                f"got {len(s.selected)} and {len(s.unselected)} in selection {i}."
            )
            raise ArgumentError(msg)
    refuse_flush_to_zero()
    query = _query(head, rows[0])
    step = max(1, _CHUNK // head.n_key)
    with np.errstate(all="ignore"):
        for start in range(0, len(selections), step):
            part = selections[start : start + step]
            found = counts[start : start + step]
            doubt = _count(query, part, distance, found, inversions=inversions)
            for i in np.flatnonzero(doubt).tolist():
                exact = selection_counts(head, part[i], distance)
                found[i, :2] = exact.fp_lower, exact.fn_lower
                if inversions:
                    found[i, 2] = exact.inversions_lower
    return counts


@dataclass(frozen=True, eq=False)
class _Query:
    """What all selections of one query share, one number or vector a key.

    ``abs_sums`` is l of T8; ``groups`` numbers the distinct contributions' directions.
    """

    w: _Vector
    q: _Vector
    abs_sums: _Vector
    values: Float64[np.ndarray, "n_key d_head"]
    abs_values: Float64[np.ndarray, "n_key d_head"]
    transposed: Float64[np.ndarray, "d_head n_key"]
    abs_transposed: Float64[np.ndarray, "d_head n_key"]
    groups: Int64[np.ndarray, " n_key"]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Selections as index arrays: those of selection i begin at ``starts[i]``."""

    n: Int64[np.ndarray, " n_selections"]
    starts: Int64[np.ndarray, " n_selections"]
    selected: Int64[np.ndarray, " total"]
    flat: Int64[np.ndarray, " total"]  # position in a matrix of selections and keys


def _query(head: HeadData, row: int) -> _Query:
    w = head.weights[row].astype(np.float64)
    return _Query(
        w,
        head.squared_norms64,
        head.abs_sums64,
        head.values64,
        head.abs_values64,
        np.ascontiguousarray(head.values64.T),
        np.ascontiguousarray(head.abs_values64.T),
        _groups(head.values64, w),
    )


def _groups(
    values: Float64[np.ndarray, "n_key d_head"], w: _Vector
) -> Int64[np.ndarray, " n_key"]:
    """Give equal values one number; keys of weight 0 are a group of their own."""
    rows = np.ascontiguousarray(values).view(np.dtype((np.void, values[0].nbytes)))
    groups = np.unique(rows.ravel(), return_inverse=True)[1].astype(np.int64)
    groups[w == 0] = len(groups)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _batch(selections: Sequence[Selection], n_key: int) -> _Batch:
    n = np.array([len(s.selected) for s in selections], dtype=np.int64)
    selected = np.concatenate([s.selected for s in selections])
    offsets = np.repeat(np.arange(len(n), dtype=np.int64) * n_key, n)
    return _Batch(n, np.cumsum(n) - n, selected, selected + offsets)


def _unselected(selections: Sequence[Selection], n_key: int) -> Bool[np.ndarray, "..."]:
    mask = np.zeros((len(selections), n_key), dtype=bool)
    for row, s in zip(mask, selections, strict=True):
        row[s.unselected] = True
    return mask


def _dots(query: _Query, batch: _Batch) -> tuple[_Matrix, _Matrix]:
    """Return t = <v, s_N> and its bulk T for every selection and key (T8)."""
    weights = np.zeros((len(batch.n), len(query.w)))
    weights.reshape(-1)[batch.flat] = query.w[batch.selected]
    aggregate = _product(weights, query.values)
    absolute = _product(weights, query.abs_values)
    t = _product(aggregate, query.transposed)
    return t, _product(absolute, query.abs_transposed)


def _product(
    left: Float64[np.ndarray, "n_selections m"], right: Float64[np.ndarray, "m n"]
) -> Float64[np.ndarray, "n_selections n"]:
    """Return ``left @ right``, in pieces small enough for one thread.

    A sum over pieces is one more order of summation, which T8 allows.
    """
    inner, width = right.shape
    result = np.zeros((len(left), width))
    length = min(max(inner, width), max(_ONE_THREAD // (8 * min(inner, width)), 1))
    rows = max(_ONE_THREAD // (length * min(inner, width)), 1)
    for a in range(0, max(inner, width), length):
        part = slice(a, a + length)
        for b in range(0, len(left), rows):
            block = slice(b, b + rows)
            if width >= inner:
                np.matmul(left[block], right[:, part], out=result[block, part])
            else:
                result[block] += left[block, part] @ right[part]
    return result


def _powers(query: _Query, batch: _Batch) -> tuple[_Matrix, _Matrix]:
    """Return both ends of phi, each still to be moved outward by one ``nextafter``.

    The formulas are those of ``power_enclosure``.
    """
    t, bulk = _dots(query, batch)
    w, d_head = query.w, query.values.shape[1]
    square, double = w * w * query.q, 2 * w
    t *= double
    phi = np.subtract(square, t, out=t)
    bulk *= double
    bulk += square
    bulk *= ((batch.n + d_head + 4) * _UNIT)[:, None]
    sizes, which = np.unique(batch.n, return_inverse=True)
    e_term = (
        query.q
        + d_head * w * w
        + double * (sizes[:, None] * query.abs_sums + d_head)
        + 2
    )
    e_term *= 2.0**-1072
    bulk += e_term[which]
    lo = phi - bulk
    return lo, np.add(phi, bulk, out=bulk)


def _cosines(query: _Query, batch: _Batch) -> tuple[_Matrix, _Matrix]:
    """Return intervals around -kappa by the formulas of ``cosine_enclosure``.

    NaN stands for the whole line.
    """
    t, radius = _dots(query, batch)
    q, d_head = query.q, query.values.shape[1]
    radius *= ((batch.n + d_head + 3) * _UNIT)[:, None]
    sizes, which = np.unique(batch.n, return_inverse=True)
    underflow = 2.0**-1073 * (sizes[:, None] * query.abs_sums + d_head + 1)
    radius += underflow[which]
    q_radius = (d_head + 2) * _UNIT * q + 2.0**-1073 * (d_head + 1)
    q_low, q_high = q - q_radius, q + q_radius
    zero = (query.w == 0) | ~query.abs_values.any(axis=1)
    # The upper end of kappa gives the lower one of -kappa.
    lo = _signed_quotient(t + radius, q_low, q_high)
    t -= radius
    hi = _signed_quotient(t, q_high, q_low)
    for end, outward in ((lo, -np.inf), (hi, np.inf)):
        np.negative(end, out=end)
        np.abs(end, out=t)
        t *= 4 * _UNIT
        if outward > 0:
            end += t
        else:
            end -= t
        np.nextafter(end, outward, out=end)
        end[:, q_low <= _SMALL] = np.nan
        end[:, zero] = 0
    return lo, hi


def _settle_equal(lo: _Matrix, hi: _Matrix, groups: Int64[np.ndarray, " n"]) -> None:
    """Make points of the intervals of equal values, where no other value's meets them.

    Equal values have equal cosines (a first layer sees only which token it is, so that
    many are equal). A point inside the interval of a value then stands in the same
    order to all others as its cosine does.
    """
    first = np.unique(groups, return_index=True)[1]
    if len(first) == len(groups):
        return
    low, high = lo[:, first], hi[:, first]
    unknown = np.isnan(low) | np.isnan(high)
    low[unknown], high[unknown] = -np.inf, np.inf
    order = np.argsort(low, axis=1)
    ends = np.take_along_axis(high, order, axis=1)
    starts = np.take_along_axis(low, order, axis=1)
    apart = np.ones(low.shape, dtype=bool)
    apart[:, 1:] &= starts[:, 1:] > np.maximum.accumulate(ends, axis=1)[:, :-1]
    apart[:, :-1] &= ends[:, :-1] < starts[:, 1:]
    alone = np.empty_like(apart)
    np.put_along_axis(alone, order, apart, axis=1)
    settled = alone[:, groups]
    np.copyto(lo, low[:, groups], where=settled)
    np.copyto(hi, lo, where=settled)


def _signed_quotient(t: _Matrix, positive: _Vector, negative: _Vector) -> _Matrix:
    """Return sign(t) t^2 / q with q by the sign of t; NaN where t is too small."""
    quotient: np.ndarray = t * t
    quotient /= np.where(t >= 0, positive, negative)
    np.copysign(quotient, t, out=quotient)
    quotient[~(np.abs(t) > _SMALL)] = np.nan
    return quotient


def _count(
    query: _Query,
    selections: Sequence[Selection],
    distance: str,
    counts: Int64[np.ndarray, "n_selections 3"],
    *,
    inversions: bool,
) -> Bool[np.ndarray, " n_selections"]:
    """Write upper counts (T1) into ``counts``; return where lower ones differ."""
    n_key = len(query.w)
    batch = _batch(selections, n_key)
    lo, hi = (_powers if distance == "euclidean" else _cosines)(query, batch)
    if distance == "cosine":
        _settle_equal(lo, hi, query.groups)
    # A number that is not finite makes a sum that is not finite.
    doubt: np.ndarray = ~np.isfinite(lo.sum(axis=1) + hi.sum(axis=1))
    s_lo, s_hi = lo.reshape(-1)[batch.flat], hi.reshape(-1)[batch.flat]
    if distance == "euclidean":
        # Selected ends meet only unselected ones: both nextafters of a comparison may
        # be taken on the same side, and here the selected are the fewer.
        for _ in range(2):
            np.nextafter(s_lo, -np.inf, out=s_lo)
            np.nextafter(s_hi, np.inf, out=s_hi)
    hidden = ~_unselected(selections, n_key)
    np.copyto(lo, np.inf, where=hidden)
    np.copyto(hi, np.inf, where=hidden)
    far_hi = np.maximum.reduceat(s_hi, batch.starts)
    far_lo = np.maximum.reduceat(s_lo, batch.starts)
    counts[:, 0] = _below(lo, far_hi)
    doubt |= counts[:, 0] != _below(hi, far_lo)
    counts[:, 1] = _above(s_hi, lo.min(axis=1), batch)
    doubt |= counts[:, 1] != _above(s_lo, hi.min(axis=1), batch)
    if inversions:
        counts[:, 2] = 0  # right where there is no false positive
        ends = batch.starts + batch.n
        for i in np.flatnonzero(~doubt & (counts[:, 0] > 0)):
            own = slice(batch.starts[i], ends[i])
            counts[i, 2] = _pairs(lo[i], s_hi[own])
            doubt[i] = counts[i, 2] != _pairs(hi[i], s_lo[own])
    return doubt


def _below(
    unselected: _Matrix, farthest: _Vector
) -> Int64[np.ndarray, " n_selections"]:
    """Count the unselected that lie no farther than the farthest selected."""
    reached: np.ndarray = unselected <= farthest[:, None]
    count: np.ndarray = np.count_nonzero(reached, axis=1)
    return count


def _above(
    selected: _Vector, nearest: _Vector, batch: _Batch
) -> Int64[np.ndarray, " n_selections"]:
    """Count the selected that lie no nearer than the nearest unselected."""
    reached = selected >= np.repeat(nearest, batch.n)
    total: np.ndarray = np.add.reduceat(reached, batch.starts, dtype=np.int64)
    return total


def _pairs(unselected: _Vector, selected: _Vector) -> int:
    """Count the pairs with unselected <= selected."""
    return int(np.searchsorted(np.sort(unselected), selected, side="right").sum())
