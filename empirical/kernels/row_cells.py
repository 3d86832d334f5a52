"""Bounds from fast cells (T6) for every query row of a layer, all heads and N."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from empirical.kernels.cells import cell_counts
from empirical.kernels.rows import MISSING, LayerKeys, as_array, row_ranges
from geobounds import ArgumentError, HeadData, rank
from geobounds.selection import SINK_POLICIES

compiled: Any
try:
    from empirical.kernels import row_cells_numba as compiled
except ModuleNotFoundError:  # numba is an extra
    compiled = None

__all__ = ["count_row_cells"]


def count_row_cells(
    weights: Any,
    keys: LayerKeys,
    visible: Any,
    ns: Sequence[int],
    resolutions: Sequence[int],
    *,
    sink: int | None = 0,
    policies: Sequence[str] = ("keep", "drop"),
    fast: bool = True,
) -> np.ndarray:
    """Upper bounds on FP and FN from fast cells, weight ranking, Euclidean.

    Parameters
    ----------
    weights, keys, visible, ns, sink, policies, fast
        As for ``count_rows``.
    resolutions : sequence of int
        Numbers of cells, at least 3: selected, unselected and the sink.

    Returns
    -------
    ndarray of int32, shape (2, n_policies, n_heads, n_rows, n_n, n_resolutions)
        Upper bounds on FP and on FN; -1 where N leaves no token unselected.

    Raises
    ------
    ArgumentError
        A resolution below 3.
    HeadDataError
        A row that cannot be used.

    Notes
    -----
    Statement T6. The cuts and bounds are those of ``rounded_cell_counts`` for the dot
    products of ``row_dots``, whose radius is that of T8 with T <= ||v|| sum of w ||v||.
    """
    if min(resolutions) < 3:
        msg = (
            "count_row_cells: resolutions must be at least 3 (selected, unselected and "
            f"the sink are cells of their own), got {tuple(resolutions)}."
        )
        raise ArgumentError(msg)
    w, seen = as_array(weights), as_array(visible)
    n_heads, n_rows, _ = w.shape
    shape = (n_heads, n_rows, len(policies), len(ns), len(resolutions), 2)
    found = np.full(shape, MISSING, dtype=np.int32)
    starts, stops, whole = row_ranges(seen)
    usable = fast and compiled is not None and keys.moderate and w.dtype == np.float32
    if usable:
        # A weight that is no number is named by geobounds, below.
        good = ((w >= 0) & (w <= 1 + 2.0**-10)).all(axis=2) & w.any(axis=2) & whole
        compiled.count_row_cells(
            np.ascontiguousarray(w),
            np.where(good.all(axis=0), starts, 0),
            np.where(good.all(axis=0), stops, 0),
            keys.padded,
            keys.squares64,
            keys.norms64,
            -1 if sink is None else sink,
            np.array(ns, dtype=np.int64),
            np.array([SINK_POLICIES.index(p) for p in policies], dtype=np.int64),
            np.array(resolutions, dtype=np.int64),
            found,
        )
        left = np.flatnonzero(~good.all(axis=0))
    else:
        left = np.arange(n_rows)
    group = n_heads // len(keys.array)
    for r in left.tolist():
        for h in range(n_heads):
            _settle(w[h, r], keys.array[h // group], seen[r], sink, policies, ns,
                    resolutions, found[h, r])  # fmt: skip
    return np.ascontiguousarray(found.transpose(5, 2, 0, 1, 3, 4))


def _settle(
    w: Any, v: Any, seen: Any, sink: int | None, policies: Sequence[str],
    ns: Sequence[int], resolutions: Sequence[int], out: np.ndarray,
) -> None:  # fmt: skip
    """Let geobounds bound the counts of one row."""
    if np.count_nonzero(seen) < 2:
        return
    head = HeadData(w, v, visible=seen, sink=sink)
    for p, policy in enumerate(policies):
        order = rank(head, -1, "weight", policy)
        some = [k for k, n in enumerate(ns) if n < order.n_candidates]
        counts = cell_counts(head, order, [ns[k] for k in some], resolutions)
        out[p, some] = counts.transpose(1, 0, 2)
