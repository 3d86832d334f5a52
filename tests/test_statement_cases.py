"""The closed forms on seeded heads: no slack is negative where the hypotheses hold.

And wrong statements, each with a hypothesis dropped or a constant improved: the same
heads catch every one.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import statement_cases
from evidence import record

import geobounds as gb
from geobounds import bounds, closed_forms, isotropic, power, slacks
from geobounds.hypotheses import Hypothesis
from geobounds.power import Enclosure
from geobounds.situation import Numbers
from geobounds.theorems import THEOREMS

_HEADS = 4000
_FORMS = [
    i
    for i, s in THEOREMS.items()
    if s.given == "head" and i not in ("T4", "T6")  # they need a fitted regime
]


@pytest.fixture(scope="module")
def pool():
    return list(statement_cases.situations(1, _HEADS))


@pytest.fixture(scope="module")
def keys():
    return list(statement_cases.staircases(2, 1500))


@pytest.mark.parametrize("name", _FORMS)
def test_no_slack_is_negative_where_the_hypotheses_hold(name, pool):
    """Exactly, on every situation the statement speaks of."""
    statement = THEOREMS[name]
    found = [statement.slack(s) for s in pool if statement.applies(s)]

    assert min(found) >= 0
    assert len(found) >= 100, f"{name} applied to {len(found)} situations only"
    record(name, len(found), min(found), "exact cases")


def test_the_heads_give_every_kind_of_outcome(pool):
    """A test of the heads: F is 1, 0 and between, under every policy and distance."""
    kinds = Counter(
        (s.sink_policy, s.distance, float(s.counts.f_score.lower) in (0, 1))
        for s in pool
    )

    assert len(kinds) == 12
    assert min(kinds.values()) > 50


def dropped(name, hypothesis):
    """Return the statement's test without one of its hypotheses."""
    rest = [h for h in THEOREMS[name].hypotheses if h.name != hypothesis]
    assert len(rest) == len(THEOREMS[name].hypotheses) - 1
    return name, lambda s: all(h.holds(s) for h in rest)


DROPPED = [
    ("T3", "mu >= 0"),
    ("T3", "all selectable"),
    ("T3", "equal cosines"),
    ("T3", "alpha_N > 0"),
    ("T3-contribution", "equal cosines"),
    ("T3-cosine", "y_i != 0"),
    ("T5", "pull"),
    ("T5-counts", "common sink cosine"),
    ("T7", "N = 1"),
    ("T7-cosine", "N = 1"),
    ("T4-gap", "equal norms"),
    ("T10-rescaled", "0 < W_S < W"),
]


@pytest.mark.parametrize(("name", "hypothesis"), DROPPED)
def test_statement_without_a_hypothesis_is_caught(name, hypothesis, pool):
    name, applies = dropped(name, hypothesis)

    assert any(THEOREMS[name].slack(s) < 0 for s in pool if applies(s))


# A constant improved: module, function and its wrong version.
IMPROVED = {
    "T4-roots: 1 - mu- for 1 - 2 mu-": (
        "T4-roots",
        "false_positive_polynomial",
        lambda x, a, A, mu_low, mu_high: (
            x * x - 2 * x * A * mu_high + a * a * (1 - mu_low) + 2 * A * a * mu_low
        ),
    ),
    "T4-gap: A for A - a": (
        "T4-gap",
        "constant_norm_gap",
        lambda a, b, A, mu_low, mu_high: (
            a * a + b * b + 2 * mu_low * a * A - 2 * mu_high * A * b
        ),
    ),
    "T4-cosine: mu+ for mu+ - mu-": (
        "T4-cosine",
        "constant_norm_cosine_gap",
        lambda a, A, mu_low, mu_high: a * (1 - mu_low) - A * (mu_high - mu_low) / 2,
    ),
    "T5-counts: B for 2 B": (
        "T5-counts",
        "sink_power",
        lambda sink_square, sink_dot, B: -sink_square - B * sink_dot,
    ),
    "T7: duplicates allowed": (
        "T7",
        "single_f_score",
        lambda equal: Fraction(1),
    ),
    "T7-two: max for min": (
        "T7-two",
        "two_power",
        lambda r1_square, r2_square, dot: -max(r1_square, r2_square) - 2 * dot,
    ),
    "T10: the first discarded token left out": (
        "T10",
        "discarded_error",
        lambda weights, values, n: sum(
            w * v for w, v in zip(weights[n + 1 :], values[n + 1 :], strict=True)
        ),
    ),
    "T10-rescaled: v_T for v_T - v_S": (
        "T10-rescaled",
        "rescaled_error",
        lambda weights, values, n: sum(
            w * v for w, v in zip(weights[n:], values[n:], strict=True)
        ),
    ),
}


@pytest.mark.parametrize("row", list(IMPROVED))
def test_statement_with_an_improved_constant_is_caught(row, pool, monkeypatch):
    name, function, wrong = IMPROVED[row]
    monkeypatch.setattr(closed_forms, function, wrong)

    assert any(THEOREMS[name].slack(s) < 0 for s in pool if THEOREMS[name].applies(s))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("T2a", lambda n, m, g: (Fraction(n, n + min(g, m) - 1), Fraction(0))),
        (
            "T2a",
            lambda n, m, g: (Fraction(0), max(Fraction(0), 1 - Fraction(g, n + 1))),
        ),
    ],
    ids=["P: G - 1", "R: N + 1"],
)
def test_improved_separate_bound_is_caught(name, wrong, keys, monkeypatch):
    def bounded(n, m, g):
        p, r = wrong(n, m, g) if g else (Fraction(1), Fraction(1))
        return bounds.InversionBounds(p, r, Fraction(0), Fraction(0))

    monkeypatch.setattr(slacks, "inversion_bounds", bounded)

    assert any(THEOREMS[name].slack(s) < 0 for s in keys)


@pytest.mark.parametrize("share", [0, 1, 2])
def test_improved_joint_bound_is_caught(share, keys, monkeypatch):
    """F at FP + FN = G, at the better end only, or zero only from N + 1 on."""

    def bounded(n, m, g):
        if g == 0:
            return bounds.InversionBounds(*[Fraction(1)] * 4)
        lowest = max(1, g + 1 - m)
        if share < 2 and g >= n:
            return bounds.InversionBounds(*[Fraction(0)] * 4)
        ends = [b for b in (lowest, min(g, n - 1)) if b >= 1] or [0]
        f = [
            gb.separability.f_score(n, max(0, g + (share > 0) - b), min(b, n))
            for b in ends
        ]
        return bounds.InversionBounds(*[(max if share else min)(f)] * 4)

    monkeypatch.setattr(slacks, "inversion_bounds", bounded)

    assert any(THEOREMS["T2b"].slack(s) < 0 for s in keys)


def test_isotropic_bound_without_the_union_is_caught(monkeypatch):
    """sqrt(2 ln(1 / delta) / d): one pair's bound for all pairs."""
    monkeypatch.setattr(
        slacks,
        "isotropic_cosine_bound",
        lambda n, d, delta: isotropic.isotropic_token_bound(1, d, delta),
    )
    numbers = {"draws": "uniform", "n_vectors": 32, "d_head": 64, "probability": "1/20"}

    assert THEOREMS["T9"].slack(Numbers(numbers)) < 0


def test_a_radius_without_its_count_of_roundings_is_caught(monkeypatch):
    """T8 with a sixteenth of a unit for N + d + 4 of them."""
    import cases

    real = power.power_enclosure

    def narrow(head, selection):
        bound = real(head, selection)
        known = np.isfinite(bound.lo)
        middle = np.where(known, bound.lo, 0) / 2 + np.where(known, bound.hi, 0) / 2
        width = (bound.hi - middle) / (16 * (selection.n + head.d_head + 4))
        lo = np.where(known, middle - width, -np.inf)
        return Enclosure(lo, np.where(known, middle + width, np.inf), bound.n)

    monkeypatch.setattr(slacks, "power_enclosure", narrow)
    statement, found = THEOREMS["T8"], []
    for case in cases.draw_heads(5, 200):
        head = gb.HeadData(
            case.weights, case.values, visible=case.visible, sink=case.sink
        )
        found.append(statement.slack(gb.situation.HeadCase(head, 1)))

    assert min(found) < 0


def test_the_pool_catches_a_statement_with_no_hypotheses_at_all(pool):
    """A test of the tests above: with everything dropped T3 is plainly false."""
    assert any(THEOREMS["T3"].slack(s) < 0 for s in pool)
    assert isinstance(THEOREMS["T3"].hypotheses[0], Hypothesis)
