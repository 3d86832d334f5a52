"""T1 in pair form: sound, never worse than the intervals, and sometimes better."""

from fractions import Fraction

import numpy as np
import pytest
from cases import draw_heads
from mutants import load_copy

import geobounds as gb
from geobounds.bounds import capped_f_bound
from geobounds.pairform import pair_counts, pair_f_bound
from geobounds.pairwise import SCOPES, fit_pairwise, rounded_pairwise_counts
from geobounds.separability import f_score, selection_counts


def selections(package, seed, count):
    """Selections of seeded heads under every policy, with N drawn."""
    rng = np.random.default_rng(seed)
    for case in draw_heads(seed, count):
        head = package.HeadData(
            case.weights, case.values, visible=case.visible, sink=case.sink
        )
        for policy in ("keep", "drop", "compete"):
            order = package.rank(head, sink_policy=policy)
            if order.n_candidates > 1:
                yield head, order.select(int(rng.integers(1, order.n_candidates)))


def first_fault(package, count):
    """Return what is wrong with the pair form on seeded heads, if anything."""
    pairform, pairwise = package.pairform, package.pairwise
    for head, selection in selections(package, 11, count):
        true = package.separability.selection_counts(head, selection)
        for scope in pairwise.SCOPES:
            regime = pairwise.fit_pairwise(head, selection, scope)
            found = pairform.pair_counts(regime, head, selection)
            for name in ("fp_upper", "fn_upper", "inversions_upper"):
                if getattr(found, name) < getattr(true, name):
                    return f"{scope}: {name}"
            if pairform.pair_f_bound(found) > true.f_score.lower:
                return f"{scope}: F"
    return None


def test_pair_bounds_hold_exactly_on_seeded_heads():
    """All shapes, scopes and policies; no tolerance."""
    assert first_fault(load_copy(), 700) is None


MUTANTS = {
    "the radius inward": (
        "np.nextafter(top + radius",
        "np.nextafter(top - 9e15 * radius",
    ),
    "mu- for mu+ across": ("b = 2 * (others * greatest", "b = 2 * (others * least"),
    "mu+ for mu- within": ("a = -2 * (others * least", "a = -2 * (others * greatest"),
    "the shared product dropped": ("_box_maximum(greatest, a", "_box_maximum(0.0, a"),
    "one end of the norms only": ("for norms in (low, high):", "for norms in (low,):"),
    "the sink's pull dropped": (
        "+ sink_norm * sink_greatest)",
        "+ 0 * sink_greatest)",
    ),
    "pairs with the sink as others": ("best[sink_at] = np.nan", "pass"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_version_is_caught(name):
    """Some exact case fails under the wrong version."""
    package = load_copy(("pairform", *MUTANTS[name]))

    assert first_fault(package, 700) is not None


def test_pair_form_is_never_worse_than_intervals_and_sometimes_better():
    """Captured-like heads whose norms spread: shared norms matter."""
    rng = np.random.default_rng(0)
    better = 0
    for _ in range(120):
        logits = rng.normal(0, 2, 24)
        weights = np.exp(logits - logits.max())
        values = rng.normal(1, 0.35, (24, 6)) * rng.uniform(0.8, 1.25, (24, 1))
        head = gb.HeadData((weights / weights.sum()).astype(np.float32), values)
        selection = gb.rank(head).select(int(rng.integers(2, 5)))
        truth = selection_counts(head, selection).f_score.lower
        for scope in SCOPES:
            regime = fit_pairwise(head, selection, scope)
            plain = rounded_pairwise_counts(head, selection, scope, regime=regime)
            found = pair_counts(regime, head, selection)
            assert found.fp_upper <= plain.fp_upper
            assert found.fn_upper <= plain.fn_upper
            bound = pair_f_bound(found)
            assert plain.f_score.lower <= bound <= truth
            better += bound > plain.f_score.lower

    assert better > 0


def test_capped_bound_is_the_least_f_within_its_limits():
    """Against all staircases, and equal to T2 (b) without caps."""
    for n in range(1, 6):
        for m in range(1, 6):
            for g in range(n * m + 1):
                whole = gb.inversion_bounds(n, m, g).f_joint
                assert capped_f_bound(n, m, n, g) == whole
                for fp in range(1, m + 1):
                    for fn in range(1, n + 1):
                        capped = capped_f_bound(n, fp, fn, max(g, 1))
                        assert f_score(n, fp, fn) <= capped <= Fraction(1)
