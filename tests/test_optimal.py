"""Optimal cells: equal to brute force where that is possible, never below the fast."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from cases import SHAPES, draw_heads

import geobounds as gb
from geobounds.cells import arrange
from geobounds.regime import CellRegime, fit_cells
from geobounds.separability import interval_counts


def certified(head, selection, regime):
    return interval_counts(regime.enclosure(head, selection)).f_score.lower


def every_partition(head, selection, most):
    """All cells of at most ``most`` cells, as (number of cells, certified F)."""
    fixed = arrange(selection, head.sink).boundaries
    free = [c for c in range(1, len(selection.keys)) if c not in fixed]
    for count in range(min(most - len(fixed) + 1, len(free)) + 1):
        for cuts in combinations(free, count):
            regime = fit_cells(head, selection, split=cuts)
            yield len(regime.cells), certified(head, selection, regime)


# The search runs in float64: where that overflows, or where only exact arithmetic tells
# tokens apart, it may miss the best cells, and its answer is merely valid.
BLIND = ("huge", "tiny", "near_ties", "large_close", "permuted", "orthogonal")


def small_selections(seed, count):
    """Selections of small heads of every shape, with each sink policy in turn."""
    rng = np.random.default_rng(seed)
    drawn = (case for case in draw_heads(seed, count) if case.shape not in BLIND)
    for i, case in enumerate(drawn):
        head = gb.HeadData(
            case.weights, case.values, visible=case.visible, sink=case.sink
        )
        policy = ("keep", "drop", "compete")[i % 3]
        order = gb.rank(head, sink_policy=policy)
        if order.n_candidates > 1:
            n = int(rng.integers(1, order.n_candidates))
            yield case.shape, head, order.select(n), policy


def test_optimal_cells_equal_brute_force():
    """Over all partitions of small heads, for every number of cells."""
    seen = Counter()
    for shape, head, selection, _ in small_selections(3, 160):
        least = len(arrange(selection, head.sink).boundaries) - 1
        for resolution in range(least, len(selection.keys) + 1):
            best = max(f for _, f in every_partition(head, selection, resolution))
            found = fit_cells(head, selection, resolution=resolution, split="optimal")
            assert len(found.cells) <= resolution
            assert certified(head, selection, found) == best, shape
            seen[shape] += 1

    assert set(seen) == {shape.__name__ for shape in SHAPES} - set(BLIND)


def test_fewest_cells_equal_brute_force():
    """None exactly where no cells certify F = 1."""
    outcomes = Counter()
    for shape, head, selection, policy in small_selections(4, 280):
        most = len(selection.keys)
        sizes = [k for k, f in every_partition(head, selection, most) if f == 1]
        found = CellRegime.fewest(head, selection.n, sink_policy=policy)
        assert (found and len(found.cells)) == (min(sizes) if sizes else None), shape
        outcomes[bool(sizes)] += 1

    assert min(outcomes.values()) > 50


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_optimal_cells_never_certify_less_than_fast_ones(n):
    """On heads like captured ones, 60 keys, at several resolutions."""
    rng = np.random.default_rng(n)
    gains = 0
    for _ in range(12):
        logits = rng.normal(0, 2, 60)
        weights = np.exp(logits - logits.max())
        values = rng.normal(0.4, 1, (60, 8))
        head = gb.HeadData((weights / weights.sum()).astype(np.float32), values)
        selection = gb.rank(head).select(n)
        before = 0
        for resolution in (3, 4, 5, 7, 9):
            fast = fit_cells(head, selection, resolution=resolution)
            best = fit_cells(head, selection, resolution=resolution, split="optimal")
            f = certified(head, selection, best)
            assert f >= certified(head, selection, fast)
            assert f >= before
            gains += f > certified(head, selection, fast)
            before = f

    assert n == 1 or gains


def test_optimal_cells_are_for_few_selected_tokens():
    """Their cuts are enumerated."""
    head = gb.HeadData(np.full(12, 1 / 16), np.eye(12))
    with pytest.raises(gb.ArgumentError, match='n must be at most 8 for split="optim'):
        CellRegime.fit(head, 9, split="optimal")
