"""At least 20,000 seeded cases against exact arithmetic, and fresh ones every run."""

import secrets
from collections import Counter

import pytest
from battery import check_head, check_pairwise_head
from cases import SHAPES, draw_heads
from mutants import load_copy

import geobounds

_PARTS = 8
_HEADS_A_PART = 420


@pytest.mark.parametrize("part", range(_PARTS))
def test_every_claim_holds_exactly_on_seeded_heads(part, record_testsuite_property):
    """No tolerance: counts equal the oracle's and no bound exceeds the metric."""
    package = load_copy()  # without run-time type checks: three times as fast
    counts = Counter()
    for i, case in enumerate(draw_heads(part, _HEADS_A_PART)):
        counts[case.shape] += check_head(package, case, seed=i)

    record_testsuite_property(f"exact cases, part {part}", dict(counts))
    assert set(counts) == {shape.__name__ for shape in SHAPES}
    assert sum(counts.values()) >= 20_000 / _PARTS


@pytest.mark.parametrize("part", range(_PARTS))
def test_pairwise_regime_holds_exactly_on_seeded_heads(part):
    """T4 in every scope: 20,000 cases more."""
    package = load_copy()
    heads = enumerate(draw_heads(100 + part, _HEADS_A_PART))
    count = sum(check_pairwise_head(package, case, seed=i) for i, case in heads)

    assert count >= 20_000 / _PARTS


def test_every_claim_holds_exactly_on_fresh_heads():
    """The seed differs in every run and is named if a case fails."""
    seed = secrets.randbits(32)
    for i, case in enumerate(draw_heads(seed, 200)):
        try:
            check_head(geobounds, case, seed=i)
            check_pairwise_head(geobounds, case, seed=i)
        except AssertionError as error:
            pytest.fail(f"seed {seed}, head {i} ({case.shape}): {error}")
