"""Cell bounds of every row at once: what geobounds says of the same dot products."""

import numpy as np
import pytest
from battery import POLICIES
from test_fast_rows import NS, layers

from empirical.kernels import row_cells
from empirical.kernels.row_cells import count_row_cells
from empirical.kernels.rows import LayerKeys
from geobounds import ArgumentError, HeadData, rank
from geobounds.power import DotProducts, power_enclosure
from geobounds.regime import rounded_cell_counts
from geobounds.separability import interval_counts

numba = pytest.importorskip("numba", reason="compiled kernels need the extra 'fast'")

RESOLUTIONS = (3, 5, 9)


def dots_of(head, selection, keys, kv):
    """Return the dot products that the compiled code forms of one selection."""
    size = len(selection.keys)
    t, radius = np.empty(size), np.empty(size)
    row_cells.compiled.row_dots(
        head.weights[0] + np.float32(0), keys.padded[kv], keys.norms64[kv],
        selection.keys.astype(np.int64), selection.n, t, radius,
    )  # fmt: skip
    q = keys.squares64[kv][selection.keys]
    width = keys.padded.shape[2]
    q_radius = (width + 2) * 2.0**-53 * q * (1 + 2.0**-20)
    w = head.weights[0][selection.keys].astype(float)
    return DotProducts(w, t, q, np.full(size, np.nan), radius, q_radius)


def test_bounds_are_those_of_geobounds_for_the_same_dot_products():
    """Cuts and counts, every kind of numbers, policy and mask."""
    seen = 0
    for name, weights, values, visible, sink in layers():
        keys = LayerKeys(values)
        if not keys.moderate or "holes" in name:
            continue
        found = count_row_cells(
            weights, keys, visible, NS, RESOLUTIONS, sink=sink, policies=POLICIES
        )
        for h, r in np.ndindex(weights.shape[:2]):
            head = HeadData(weights[h, r], values[h], visible=visible[r], sink=sink)
            for p, policy in enumerate(POLICIES):
                order = rank(head, -1, "weight", policy)
                for k, n in enumerate(NS):
                    mine = found[:, p, h, r, k]
                    if n >= order.n_candidates:
                        assert (mine == -1).all()
                        continue
                    selection = order.select(n)
                    dots = dots_of(head, selection, keys, h)
                    expected = rounded_cell_counts(head, selection, RESOLUTIONS, dots)
                    assert mine[0].tolist() == [c.fp_upper for c in expected], name
                    assert mine[1].tolist() == [c.fn_upper for c in expected], name
                    seen += 1
    assert seen > 1_000


def test_dot_products_lie_within_their_radius():
    """Against an enclosure of geobounds, a sharper one."""
    for name, weights, values, visible, sink in layers():
        keys = LayerKeys(values)
        if not keys.moderate or "holes" in name:
            continue
        head = HeadData(weights[0, -1], values[0], visible=visible[-1], sink=sink)
        selection = rank(head).select(20)
        x = dots_of(head, selection, keys, 0)
        exact = power_enclosure(head, selection)
        power, radius = x.w * (x.w * x.q - 2 * x.t), 2 * x.w * x.t_radius
        radius = radius + x.w * x.w * x.q_radius + 2.0**-50 * np.abs(power)
        assert (power - radius <= exact.hi).all(), name
        assert (power + radius >= exact.lo).all(), name


def test_bounds_never_fall_below_the_counts():
    """Sound, with or without the compiled code, and no weaker for more cells."""
    for name, weights, values, visible, sink in list(layers())[::3]:
        keys = LayerKeys(values)
        for fast in (True, False):
            found = count_row_cells(
                weights[:, -1:], keys, visible[-1:], (2, 8), RESOLUTIONS,
                sink=sink, fast=fast,
            )  # fmt: skip
            for h in range(2):
                head = HeadData(
                    weights[h, -1], values[h], visible=visible[-1], sink=sink
                )
                for p, policy in enumerate(("keep", "drop")):
                    for k, n in enumerate((2, 8)):
                        s = rank(head, -1, "weight", policy).select(n)
                        least = interval_counts(power_enclosure(head, s))
                        assert (found[0, p, h, 0, k] >= least.fp_lower).all(), name
                        assert (found[1, p, h, 0, k] >= least.fn_lower).all(), name


def test_too_few_cells_are_refused():
    keys = LayerKeys(np.ones((1, 4, 2), np.float32))
    weights, visible = np.full((1, 1, 4), 0.25, np.float32), np.ones((1, 4), dtype=bool)
    with pytest.raises(ArgumentError, match="count_row_cells: resolutions must be at"):
        count_row_cells(weights, keys, visible, (1,), (2, 9))
