"""T4: the regime of norms and cosines, its checks, and the certificates it gives."""

import dataclasses
import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest
from cases import draw_heads
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import POLICIES, build, choices, signed_permutations

import geobounds as gb
from geobounds.cosines import (
    UnitVectors,
    cosine_at_least,
    cosine_at_most,
    norm_within,
)
from geobounds.exact import ExactGeometry
from geobounds.pairwise import SCOPES, fit_pairwise, rounded_pairwise_counts
from geobounds.separability import interval_counts

NAMES = ("pairwise", "pairwise-roles", "pairwise-roles-norms")
TINY = Fraction(1, 2**300)
ULP = Fraction(1, 2**53)  # of a number in [1/2, 1)

# Norms and cosines are rational. Key 0 is the sink; for N = 3 it is selected.
#   key     0       1       2       3        4        5
HEAD = gb.HeadData(
    [0.25, 0.21875, 0.1875, 0.15625, 0.09375, 0.0625],
    [[0.0, 2.0], [3.0, 4.0], [4.0, 3.0], [10.0, 0.0], [-3.0, 4.0], [0.0, -5.0]],
)
NORMS = (2, 5, 5, 10, 5, 5)


def q(text):
    """Return the fraction written."""
    return Fraction(text)


def span(low, high):
    """Return a norm interval of two whole numbers."""
    return Fraction(low), Fraction(high)


def norms_of(*keys):
    """Return exact norms of some keys of HEAD."""
    return tuple((k, Fraction(NORMS[k]), Fraction(NORMS[k])) for k in keys)


ALL = gb.PairwiseRegime(
    "all",
    None,
    norms_selected=span(5, 10),
    norms_unselected=span(5, 10),
    cosine_selected=q("-4/5"),
    cosine_across=q("24/25"),
    sink_norm=span(2, 2),
    sink_selected=q("-1"),
    sink_across=q("4/5"),
)
ROLES = gb.PairwiseRegime(
    "roles",
    3,
    norms_selected=span(5, 5),
    norms_unselected=span(5, 10),
    cosine_selected=q("24/25"),
    cosine_across=q("4/5"),
    sink_norm=span(2, 2),
    sink_selected=q("3/5"),
    sink_across=q("4/5"),
    pull_across=q("45/32"),
)
TOKENS = dataclasses.replace(
    ROLES, scope="roles-norms", token_norms=norms_of(0, 1, 2, 3, 4, 5)
)
DROPPED = gb.PairwiseRegime(
    "roles",
    2,
    norms_selected=span(5, 5),
    norms_unselected=span(5, 10),
    cosine_selected=q("24/25"),
    cosine_across=q("4/5"),
    sink_norm=None,
    sink_selected=None,
    sink_across=None,
)
COMPETING = dataclasses.replace(
    DROPPED, sink_norm=span(2, 2), sink_selected=q("3/5"), sink_across=q("4/5")
)
# What the numbers of HEAD are, exactly: (regime, sink policy).
EXACT = {
    "all": (ALL, "keep"),
    "roles, sink selected": (ROLES, "keep"),
    "norms, sink selected": (TOKENS, "keep"),
    "roles, sink dropped": (DROPPED, "drop"),
    "roles, sink competing": (COMPETING, "compete"),
    "norms, sink dropped": (
        dataclasses.replace(
            DROPPED, scope="roles-norms", token_norms=norms_of(1, 2, 3, 4, 5)
        ),
        "drop",
    ),
    "norms, sink competing": (
        dataclasses.replace(
            COMPETING, scope="roles-norms", token_norms=norms_of(0, 1, 2, 3, 4, 5)
        ),
        "compete",
    ),
}


COMPETES = "roles, sink competing"


def signed_square(x):
    """Return x |x|, which orders numbers as x does and needs no root."""
    return x * abs(x)


def powers(head, selection):
    """Return the exact power of every candidate."""
    exact = ExactGeometry(head, selection)
    scale = Fraction(2) ** (2 * (exact.w_exponent + exact.v_exponent))
    return [scale * phi for phi in exact.powers().tolist()]


def contains(enclosure, exact):
    """Whether every interval contains its number."""
    return all(
        low <= x <= high
        for low, x, high in zip(enclosure.lo, exact, enclosure.hi, strict=True)
    )


def claimed(certificate):
    """Return what is claimed by N, without the regimes."""
    return {
        c.n: (c.false_positives, c.false_negatives, c.f_score, c.verdict)
        for c in certificate.values()
    }


def resigned(data):
    """Return certificate data with a digest that fits."""
    body = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


# Examples: the gap form of T4, by hand


def constant_norm(least, greatest):
    """Return the regime of unit vectors with cosines in [least, greatest], no sink."""
    one = span(1, 1)
    return gb.PairwiseRegime("all", None, one, one, least, greatest, None, None, None)


def certifies(weights, n, least, greatest):
    """Whether the regime of unit vectors certifies F_N = 1, and whether the gap does.

    The values of the head take no part: the regime stands for them.
    """
    ranked = sorted((Fraction(w) for w in weights), reverse=True)
    head = gb.HeadData(
        [float(w) for w in weights], np.ones((len(weights), 1)), sink=None
    )
    selection = gb.rank(head).select(n)
    a, b, total = ranked[n - 1], ranked[n], sum(ranked[:n])
    gap = a * a + b * b + 2 * least * a * (total - a) > 2 * greatest * total * b
    bound = constant_norm(least, greatest).enclosure(head, selection)
    return interval_counts(bound).f_score.lower == 1, gap


@pytest.mark.parametrize(
    ("weights", "n", "least", "greatest", "expected"),
    [
        # a = 1/2, b = 1/4, A = 1: 1/4 + 1/16 + mu-/2 > mu+/2
        ([0.5, 0.5, 0.25], 2, "0", "5/8", False),  # equality
        ([0.5, 0.5, 0.25], 2, "0", "4/8", True),
        ([0.5, 0.5, 0.25], 2, "3/8", "1", False),  # equality
        ([0.5, 0.5, 0.25], 2, "4/8", "1", True),
        ([0.5, 0.5, 0.25], 2, "2/8", "1", False),
        # N = 1: a^2 + b^2 > 2 mu+ a b holds unless a = b and mu+ = 1.
        ([0.5, 0.5], 1, "0", "1", False),
        ([0.5, 0.25], 1, "0", "1", True),
        # Weights zero: nothing is certified at a = b = 0, all is at b = 0.
        ([0.5, 0.0, 0.0], 2, "1", "1", False),
        ([0.5, 0.25, 0.0], 2, "0", "1", True),
    ],
)
def test_the_gap_decides_as_computed_by_hand(weights, n, least, greatest, expected):
    assert certifies(weights, n, q(least), q(greatest)) == (expected, expected)


# Oracle


fractions01 = st.fractions(0, 1, max_denominator=12)


@given(
    st.lists(st.integers(0, 8), min_size=3, max_size=7).filter(any),
    st.integers(1, 6),
    fractions01,
    fractions01,
)
@example([4, 4, 2], 2, q("0"), q("5/8"))
def test_the_regime_certifies_iff_the_gap_form_of_t4_holds(eighths, n, mu, nu):
    """Both ways, equality included."""
    n = min(n, len(eighths) - 1)
    found, gap = certifies([w / 8 for w in eighths], n, min(mu, nu), max(mu, nu))

    assert found is gap


def equality(weights, n, least):
    """Return the mu+ at which the two sides of the gap form are equal."""
    ranked = sorted(map(Fraction, weights), reverse=True)
    a, b, total = ranked[n - 1], ranked[n], sum(ranked[:n])
    return (a * a + b * b + 2 * least * a * (total - a)) / (2 * total * b)


@given(
    st.lists(st.integers(1, 8), min_size=3, max_size=7),
    st.integers(1, 6),
    st.fractions(0, Fraction(11, 12), max_denominator=12),
)
def test_the_gap_is_strict_at_its_equality(eighths, n, least):
    """Not certified where the two sides are equal; certified a hair below."""
    n = min(n, len(eighths) - 1)
    weights = [Fraction(w, 8) for w in eighths]
    equal = equality(weights, n, least)

    assert certifies(weights, n, least, equal) == (False, False)
    assert certifies(weights, n, least, equal - TINY) == (True, True)


@given(choices(policies=("drop",)), st.data())
def test_the_algebra_of_the_bounds_is_the_extremum_over_the_norms(choice, data):
    """T4's clip: no r of the interval beats it, one attains it; roles by hand."""
    head = build(choice.case)
    selection = gb.rank(head, -1, **choice.options).select(choice.n)
    numbers = st.fractions(-1, 1, max_denominator=5)
    least, greatest = data.draw(numbers), data.draw(numbers)
    low, width = data.draw(fractions01), data.draw(fractions01)
    regime = gb.PairwiseRegime(
        "roles",
        choice.n,
        (low, low + width),
        (low, low + width),
        least,
        greatest,
        None,
        None,
        None,
    )
    bound = regime.enclosure(head, selection)
    weights = [Fraction(float(w)) for w in head.weights[0][selection.keys]]
    ends = [(w * low, w * (low + width)) for w in weights]
    n = choice.n

    for i, (r_low, r_high) in enumerate(ends):
        others = [ends[k] for k in range(n) if k != i]
        mu = least if i < n else greatest
        lowest = sum((min(mu * a, mu * b) for a, b in others), Fraction(0))
        highest = sum((max(mu * a, mu * b) for a, b in others), Fraction(0))
        x, sign = (lowest, -1) if i < n else (highest, 1)
        grid = [r_low + (r_high - r_low) * Fraction(k, 8) for k in range(9)]
        grid += [min(max(sign * x, r_low), r_high)]
        found = [sign * r * r - 2 * r * x for r in grid]
        expected = (-np.inf, max(found)) if i < n else (min(found), np.inf)
        assert (bound.lo[i], bound.hi[i]) == expected


@given(st.integers(-9, 9), st.integers(0, 40), st.fractions(-2, 2, max_denominator=9))
def test_cosine_comparisons_are_exact_for_irrational_cosines(dot, square, bound):
    """Against x |x|, which needs no case distinction."""
    exact = signed_square(dot) - signed_square(bound) * square

    assert cosine_at_least(dot, square, bound) == (exact >= 0 or square == 0)
    assert cosine_at_most(dot, square, bound) == (exact <= 0 or square == 0)


@given(
    st.fractions(-1, 1, max_denominator=20),
    st.integers(1, 20),
    st.sampled_from([0, 1, -1]),
)
def test_cosine_comparisons_are_sharp_at_rational_cosines(cosine, root, side):
    dot, square = cosine * root, Fraction(root * root)

    assert cosine_at_least(dot, square, cosine + side * TINY) == (side <= 0)
    assert cosine_at_most(dot, square, cosine + side * TINY) == (side >= 0)


@given(
    *(st.fractions(0, 3, max_denominator=9) for _ in range(3)),
    st.sampled_from([0, 1, -1]),
)
def test_norms_are_compared_exactly(norm, a, b, side):
    low, high = min(a, b), max(a, b)

    assert norm_within(norm * norm, low, high) == (low <= norm <= high)
    assert norm_within(norm * norm, norm, norm)
    assert norm_within(norm * norm, max(norm + side * TINY, Fraction(0)), norm + 1) == (
        side <= 0
    )
    assert norm_within(norm * norm, Fraction(0), max(norm + side * TINY, 0 * norm)) == (
        side >= 0 or norm == 0
    )


SHAPED = list(draw_heads(5, 140))


@pytest.mark.parametrize("index", range(14))
def test_exact_cosines_and_norms_lie_within_the_radius(index):
    """Every shape of head, by squares in integers; the radius is small as well."""
    compared = 0
    for case in SHAPED[index::14]:
        head = build(case)
        keys = np.flatnonzero(case.visible)
        x = UnitVectors(head, keys)
        integers, exponent = head.integer_values
        vectors = [integers[k].tolist() for k in keys]
        squares = [sum(a * a for a in v) for v in vectors]
        radius = Fraction(x.radius)
        assert x.radius <= 40 * 2.0**-53
        for i, k in np.ndindex(x.table.shape):
            defined = i != k and squares[i] > 0 and squares[k] > 0
            assert np.isfinite(x.table[i, k]) == defined
            pair = [(vectors[i], vectors[k])] if defined else []
            for v, w in pair:
                compared += 1
                dot = sum(a * b for a, b in zip(v, w, strict=True))
                near, square = Fraction(x.table[i, k]), squares[i] * squares[k]
                low, high = signed_square(near - radius), signed_square(near + radius)
                assert low * square <= signed_square(dot) <= high * square
        unit = Fraction(2) ** (2 * exponent)
        for i, (_, low, high) in enumerate(x.all_norms(keys)):
            assert low * low <= squares[i] * unit <= high * high
            assert high - low <= 40 * ULP * high
    assert compared > 0


@pytest.mark.parametrize("name", EXACT)
def test_fitted_numbers_are_the_exact_ones_rounded_outward(name):
    exact, policy = EXACT[name]
    fitted = gb.PairwiseRegime.fit(
        HEAD, n=exact.n, sink_policy=policy, exact_norms=exact.scope == "roles-norms"
    )
    few = 64 * ULP

    assert (fitted.scope, fitted.n, fitted.name) == (exact.scope, exact.n, exact.name)
    for field, up in (
        ("cosine_selected", -1),
        ("cosine_across", 1),
        ("sink_selected", -1),
        ("sink_across", 1),
        ("pull_across", 1),
    ):
        pair = getattr(fitted, field), getattr(exact, field)
        assert (pair[0] is None) == (pair[1] is None)
        found, true = pair if pair[1] is not None else (Fraction(0), Fraction(0))
        assert 0 <= up * (found - true) <= few
    spans = [getattr(r, f) for r in (fitted, exact) for f in SPANS]
    for found, true in zip(spans[:3], spans[3:], strict=True):
        assert (found is None) == (true is None)
        low, high = found or (Fraction(0), Fraction(0))
        least, greatest = true or (Fraction(0), Fraction(0))
        assert 0 <= least - low <= few * 16
        assert 0 <= high - greatest <= few * 16
    assert {k for k, _, _ in fitted.token_norms} == {k for k, _, _ in exact.token_norms}


SPANS = ("norms_selected", "norms_unselected", "sink_norm")


# Properties


@pytest.mark.parametrize("scope", SCOPES)
@given(choices())
def test_fitted_regimes_hold_and_contain_the_exact_power(scope, choice):
    """Any ranking, sink policy, hidden keys, zeros and duplicates; d = 1 included."""
    head = build(choice.case)
    selection = gb.rank(head, -1, **choice.options).select(choice.n)
    regime = gb.PairwiseRegime.fit(
        head,
        n=None if scope == "all" else choice.n,
        exact_norms=scope == "roles-norms",
        **choice.options,
    )
    regime.check(head, **choice.options)

    assert regime.scope == scope
    assert contains(regime.enclosure(head, selection), powers(head, selection))


@given(choices())
def test_nested_scopes_never_certify_less(choice):
    """all, roles, roles-norms, the measurement."""
    head = build(choice.case)
    n = choice.n
    scores = [
        gb.certify(head, n, regime=name, **choice.options)[n].f_score for name in NAMES
    ]
    truth = choice.truth().f_score

    assert scores == sorted(scores)
    assert scores[-1] <= truth


@given(choices())
def test_every_interval_of_a_finer_scope_lies_within_the_coarser_one(choice):
    head = build(choice.case)
    selection = gb.rank(head, -1, **choice.options).select(choice.n)
    bounds = [
        fit_pairwise(head, selection, scope).enclosure(head, selection)
        for scope in SCOPES
    ]

    for coarse, fine in ((bounds[0], bounds[1]), (bounds[1], bounds[2])):
        assert (coarse.lo <= fine.lo).all()
        assert (fine.hi <= coarse.hi).all()


@given(choices(), st.sampled_from(SCOPES))
def test_rounded_counts_are_never_stronger_than_the_exact_ones(choice, scope):
    head = build(choice.case)
    selection = gb.rank(head, -1, **choice.options).select(choice.n)
    regime = fit_pairwise(head, selection, scope)
    exact = interval_counts(regime.enclosure(head, selection))
    rounded = rounded_pairwise_counts(head, selection, scope)

    assert rounded.fp_upper >= exact.fp_upper
    assert rounded.fn_upper >= exact.fn_upper


@given(choices(), st.sampled_from(NAMES), st.sampled_from([-300, -7, 1, 40, 300]))
def test_a_power_of_two_on_all_values_changes_norms_only(choice, name, exponent):
    head, n = build(choice.case), choice.n
    scaled = gb.HeadData(
        head.weights, head.values * 2.0**exponent, visible=head.visible, sink=head.sink
    )
    before = gb.certify(head, n, regime=name, **choice.options)
    after = gb.certify(scaled, n, regime=name, **choice.options)
    one, other = before[n].regime, after[n].regime
    scale = Fraction(2) ** exponent

    assert claimed(before) == claimed(after)
    for field in ("cosine_selected", "cosine_across", "sink_selected", "sink_across"):
        assert getattr(one, field) == getattr(other, field)
    for field in SPANS:
        found = getattr(one, field)
        assert getattr(other, field) == (found and tuple(scale * x for x in found))


@given(choices(), st.sampled_from(NAMES), st.data())
def test_signed_permutations_of_the_coordinates_change_nothing(choice, name, data):
    head, n = build(choice.case), choice.n
    turned = gb.HeadData(
        head.weights,
        head.values @ data.draw(signed_permutations(head.d_head)),
        visible=head.visible,
        sink=head.sink,
    )
    before = gb.certify(head, n, regime=name, **choice.options)
    after = gb.certify(turned, n, regime=name, **choice.options)

    assert before[n] == after[n]


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.fractions(0, Fraction(11, 12), max_denominator=12),
)
def test_rounded_counts_at_the_gaps_equality_are_not_stronger(seed, n, least):
    """Exact norms leave no slack: only the radius of the float bounds covers them."""
    weights = np.random.default_rng(seed).random(n + 1) + 2.0**-9
    head = gb.HeadData(weights, np.ones((n + 1, 1)), sink=None)
    selection = gb.rank(head).select(n)
    regime = constant_norm(least, equality(weights, n, least))
    rounded = rounded_pairwise_counts(head, selection, "all", regime=regime)

    assert rounded.fp_upper == 1
    assert rounded.fn_upper >= 1


# The sink in every place, and degenerate heads


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("sink", "visible", "policy", "n", "role"),
    [
        (0, True, "keep", 3, "selected"),
        (5, True, "keep", 3, "unselected"),
        (0, True, "drop", 3, None),
        (0, True, "compete", 3, "unselected"),
        (None, True, "keep", 3, None),
        (1, False, "keep", 3, None),
        (1, False, "compete", 3, None),
    ],
)
def test_the_sink_is_treated_by_its_role(scope, sink, visible, policy, n, role):
    """Selected, unselected, dropped, competing, none, hidden."""
    seen = np.ones(6, dtype=bool)
    seen[1] = visible
    head = gb.HeadData(
        np.where(seen, HEAD.weights[0], 0), HEAD.values, visible=seen, sink=sink
    )
    selection = gb.rank(head, sink_policy=policy).select(n)
    regime = fit_pairwise(head, selection, scope)
    regime.check(head, sink_policy=policy)
    bound = regime.enclosure(head, selection)

    assert contains(bound, powers(head, selection))
    assert (regime.sink_norm is None) == (role is None)
    assert (regime.sink_across is None) == (role is None)
    by_role = scope != "all" and role == "selected"
    assert (regime.pull_across is not None) == by_role


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("values", "f"),
    [
        ([[0.0]] * 4, 0),  # all zero: every power is 0
        ([[1.0]] * 4, 0),  # duplicates
        ([[1.0], [1.0], [0.0], [0.0]], 1),  # powers -1/2, -1/2 and 0, 0 times w
        ([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], 1),
    ],
)
def test_zero_values_duplicates_and_lines(name, values, f):
    head = gb.HeadData([0.25] * 4, values, sink=None)
    certificate = gb.certify(head, 2, regime=name)

    assert certificate[2].measured == f
    assert certificate[2].f_score <= f
    assert gb.verify(certificate, head)


def test_a_head_of_zeros_has_no_cosines():
    head = gb.HeadData([0.5, 0.25, 0.25], [[0.0], [0.0], [0.0]])
    regime = gb.PairwiseRegime.fit(head, n=2)
    zero = span(0, 0)

    assert regime == gb.PairwiseRegime(
        "roles", 2, zero, zero, None, None, zero, None, None
    )
    regime.check(head)


# T3: equiangular heads


def with_cosine(x, y, count):
    """Return (x, y e_i): norm sqrt(x^2 + y^2), cosines x^2 / (x^2 + y^2)."""
    return np.hstack([np.full((count, 1), float(x)), y * np.eye(count)])


EQUIANGULAR = {
    "0": (np.eye(6), q("0"), 1),
    "9/25": (with_cosine(3, 4, 6), q("9/25"), 5),
    "16/25": (with_cosine(4, 3, 6), q("16/25"), 5),
    "8/9": (np.eye(6) + 1, q("8/9"), 3),
}


@pytest.mark.parametrize("name", EQUIANGULAR)
@given(
    st.lists(st.integers(1, 16), min_size=6, max_size=6, unique=True), st.integers(1, 5)
)
def test_t3_equiangular_heads_are_certified_separable(name, sixteenths, n):
    """Different weights, one norm, one cosine below 1, no sink: F = 1, for every N."""
    values, cosine, norm = EQUIANGULAR[name]
    head = gb.HeadData([w / 16 for w in sixteenths], values, sink=None)
    one = span(norm, norm)
    exact = gb.PairwiseRegime("all", None, one, one, cosine, cosine, None, None, None)

    assert gb.certify(head, n, regime="pairwise")[n].f_score == 1
    assert gb.certify(head, n, regime=exact)[n].f_score == 1


@pytest.mark.parametrize("name", EQUIANGULAR)
def test_t3_holds_at_a_boundary_tie(name):
    values, _, _ = EQUIANGULAR[name]
    head = gb.HeadData([0.125] * 6, values, sink=None)
    claim = gb.certify(head, 3, regime="pairwise")[3]

    assert (claim.f_score, claim.boundary_tie) == (1, True)


def test_t3_needs_a_cosine_that_is_not_negative():
    """T3's counterexample: weights (4, 1, 0), cosines -1/4, N = 2: F = 4/7."""
    least = q("-1/4")
    head = gb.HeadData([0.5, 0.125, 0.0], np.ones((3, 1)), sink=None)
    selection = gb.rank(head).select(2)
    bound = constant_norm(least, least).enclosure(head, selection)

    assert interval_counts(bound).f_score.lower == Fraction(4, 7)


# Checks: every wrong number is refused, the exact one is not


@pytest.mark.parametrize("name", EXACT)
def test_numbers_equal_to_the_truth_are_accepted(name):
    regime, policy = EXACT[name]
    regime.check(HEAD, sink_policy=policy)
    selection = gb.rank(HEAD, sink_policy=policy).select(regime.n or 3)

    assert contains(regime.enclosure(HEAD, selection), powers(HEAD, selection))


LEAST, GREATEST = "the least cosine", "the greatest cosine"
SINK_LEAST, SINK_GREATEST = "the sink's least cosine", "the sink's greatest cosine"
NORM, PULL = "the norm interval", "the pull across"
BY_ROLE = [
    ("norms_selected", 0, 1, NORM, 1),
    ("norms_selected", 1, -1, NORM, 1),
    ("norms_unselected", 0, 1, NORM, 4),
    ("norms_unselected", 1, -1, NORM, 3),
    ("cosine_selected", None, 1, LEAST, 2),
    ("cosine_across", None, -1, GREATEST, 3),
]
WITH_SINK = [
    ("sink_norm", 0, 1, NORM, 0),
    ("sink_norm", 1, -1, NORM, 0),
    ("sink_selected", None, 1, SINK_LEAST, 2),
]
# (case, field, end of the interval, direction that claims more, assumption, key)
TOO_TIGHT = [
    ("all", "norms_unselected", 0, 1, NORM, 1),
    ("all", "norms_unselected", 1, -1, NORM, 3),
    ("all", "cosine_selected", None, 1, LEAST, 5),
    ("all", "cosine_across", None, -1, GREATEST, 2),
    ("all", "sink_norm", 0, 1, NORM, 0),
    ("all", "sink_norm", 1, -1, NORM, 0),
    ("all", "sink_selected", None, 1, SINK_LEAST, 5),
    ("all", "sink_across", None, -1, SINK_GREATEST, 1),
    *(("roles, sink selected", *row) for row in BY_ROLE + WITH_SINK),
    ("roles, sink selected", "sink_across", None, -1, SINK_GREATEST, 4),
    ("roles, sink selected", "pull_across", None, -1, PULL, 3),
    *(("roles, sink dropped", *row) for row in BY_ROLE),
    *(("roles, sink competing", *row) for row in BY_ROLE + WITH_SINK),
    ("roles, sink competing", "sink_across", None, -1, SINK_GREATEST, 1),
    *(("norms, sink selected", "token_norms", (k, 1), 1, NORM, k) for k in range(6)),
    *(("norms, sink selected", "token_norms", (k, 2), -1, NORM, k) for k in range(6)),
    ("norms, sink selected", "cosine_selected", None, 1, LEAST, 2),
    ("norms, sink selected", "pull_across", None, -1, PULL, 3),
]


def moved(regime, field, end, step):
    """Return the regime with one number moved.

    The other end of an interval moves along, as crossed norms are refused.
    """
    value = getattr(regime, field)
    if end is None:
        return dataclasses.replace(regime, **{field: value + step})
    if field == "token_norms":
        key, end = end
        rows = [list(row) for row in value]
        rows[key][end] += step
        rows[key][3 - end] = (max if end == 1 else min)(rows[key][1], rows[key][2])
        return dataclasses.replace(regime, token_norms=tuple(map(tuple, rows)))
    pair = list(value)
    pair[end] += step
    pair[1 - end] = (min if end == 1 else max)(*pair)
    fields = {field: tuple(pair)}
    if regime.scope == "all" and field == "norms_unselected":
        fields["norms_selected"] = tuple(pair)  # one interval for both roles
    return dataclasses.replace(regime, **fields)


@pytest.mark.parametrize("step", [TINY, ULP, Fraction(1, 8)], ids=["2^-300", "ulp", ""])
@pytest.mark.parametrize(
    ("case", "field", "end", "sign", "assumption", "key"), TOO_TIGHT
)
def test_a_number_too_tight_is_refused(case, field, end, sign, assumption, key, step):
    regime, policy = EXACT[case]
    wrong = moved(regime, field, end, sign * step)
    with pytest.raises(gb.AssumptionError, match=rf"at key {key}\b") as caught:
        wrong.check(HEAD, sink_policy=policy)

    assert (caught.value.statement, caught.value.assumption) == ("T4", assumption)
    with pytest.raises(gb.AssumptionError):
        gb.certify(HEAD, regime.n or 3, regime=wrong, sink_policy=policy)


@pytest.mark.parametrize(
    ("case", "field", "end", "sign", "_assumption", "_key"), TOO_TIGHT
)
def test_a_number_looser_than_the_truth_is_accepted(
    case, field, end, sign, _assumption, _key
):
    regime, policy = EXACT[case]

    moved(regime, field, end, -sign * TINY).check(HEAD, sink_policy=policy)


@pytest.mark.parametrize(
    ("field", "assumption"),
    [
        ("cosine_selected", LEAST),
        ("cosine_across", GREATEST),
        ("sink_selected", SINK_LEAST),
        ("sink_across", SINK_GREATEST),
    ],
)
@pytest.mark.parametrize("name", ["all", "roles, sink selected"])
def test_a_cosine_left_out_claims_that_there_is_none(name, field, assumption):
    regime = dataclasses.replace(EXACT[name][0], **{field: None})
    with pytest.raises(gb.AssumptionError) as caught:
        regime.check(HEAD)

    assert (caught.value.statement, caught.value.assumption) == ("T4", assumption)


@pytest.mark.parametrize("field", SPANS)
def test_norms_left_out_are_refused(field):
    with pytest.raises(gb.AssumptionError, match="none for key") as caught:
        dataclasses.replace(ROLES, **{field: None}).check(HEAD)

    assert (caught.value.statement, caught.value.assumption) == ("T4", "norms given")


@pytest.mark.parametrize("name", EXACT)
def test_a_regime_of_one_head_is_refused_for_another(name):
    regime, policy = EXACT[name]
    rng = np.random.default_rng(0)
    other = gb.HeadData(HEAD.weights, rng.normal(size=(6, 2)))
    with pytest.raises(gb.AssumptionError) as caught:
        regime.check(other, sink_policy=policy)

    assert caught.value.statement == "T4"


def test_measured_is_the_value_found():
    with pytest.raises(gb.AssumptionError) as caught:
        dataclasses.replace(ROLES, cosine_across=q("1/2")).check(HEAD)

    # Within a rounding of 3/5, the first cosine that is above 1/2.
    assert abs(caught.value.measured - 0.6) < 1e-15


# Arguments


BUILD = {
    "scope": (
        {"scope": "pairwise"},
        r"scope must be one of all, roles, roles-norms, got scope='pairwise'",
    ),
    "n missing": ({"n": None}, r"n must be given for roles .* with n=None"),
    "n for all": ({"scope": "all"}, r"n must be given for roles .* with n=3"),
    "crossed cosines": (
        {"scope": "all", "n": None, "cosine_across": q("1/2")},
        r"least cosine must not exceed the greatest, got 0\.96 > 0\.5",
    ),
    "crossed sink cosines": (
        {
            "scope": "all",
            "n": None,
            "cosine_across": q("1"),
            "sink_across": q("1/2"),
        },
        r"least cosine must not exceed the greatest, got 0\.6 > 0\.5",
    ),
    **{
        f"{what} {field}": ({field: pair}, r"norms must satisfy 0 <= least <= greatest")
        for field in SPANS
        for what, pair in (("negative", span(-1, 1)), ("crossed", span(2, 1)))
    },
    "negative token norm": (
        {"scope": "roles-norms", "token_norms": ((0, q("-1"), q("1")),)},
        r"norms must satisfy 0 <= least <= greatest, got -1 and 1",
    ),
    "crossed token norms": (
        {"scope": "roles-norms", "token_norms": ((0, q("2"), q("1")),)},
        r"norms must satisfy 0 <= least <= greatest, got 2 and 1",
    ),
}


@pytest.mark.parametrize("name", BUILD)
def test_numbers_that_no_head_can_satisfy_are_refused(name):
    fields, message = BUILD[name]
    with pytest.raises(gb.ArgumentError, match=f"^PairwiseRegime: .*{message}"):
        dataclasses.replace(ROLES, **fields)


def test_least_and_greatest_may_cross_by_role():
    """They belong to different pairs there."""
    assert ROLES.cosine_selected > ROLES.cosine_across


def test_exact_norms_need_an_n():
    message = "^PairwiseRegime: exact_norms must come with n, got n=None"
    with pytest.raises(gb.ArgumentError, match=message):
        gb.PairwiseRegime.fit(HEAD, exact_norms=True)


def test_fit_needs_values_and_an_n_in_range():
    with pytest.raises(gb.HeadDataError, match="values must be given"):
        gb.PairwiseRegime.fit(gb.HeadData([0.5, 0.5]))
    with pytest.raises(gb.ArgumentError, match=r"^PairwiseRegime: n must lie between"):
        gb.PairwiseRegime.fit(HEAD, n=6)


# Certificates


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", NAMES)
def test_certificates_by_name_and_by_object_agree_and_verify(name, policy, tmp_path):
    certificate = gb.certify(HEAD, 2, regime=name, sink_policy=policy)
    regime = gb.PairwiseRegime.fit(
        HEAD,
        n=None if name == "pairwise" else 2,
        exact_norms=name == "pairwise-roles-norms",
        sink_policy=policy,
    )
    same = gb.certify(HEAD, 2, regime=regime, sink_policy=policy)
    certificate.save(tmp_path / "c.json")
    loaded = gb.Certificate.load(tmp_path / "c.json")

    assert certificate[2].regime == regime
    assert certificate.to_dict() == same.to_dict() == loaded.to_dict()
    assert loaded.claims == certificate.claims
    assert gb.verify(loaded, HEAD).reasons == ()
    assert gb.verify(tmp_path / "c.json", HEAD).reasons == ()


@pytest.mark.parametrize("name", EXACT)
def test_the_checker_accepts_numbers_equal_to_the_truth(name):
    regime, policy = EXACT[name]
    n = regime.n or 3
    certificate = gb.certify(HEAD, n, regime=regime, sink_policy=policy)

    assert gb.verify(certificate, HEAD).reasons == ()


@given(choices())
def test_the_checker_accepts_every_true_certificate(choice):
    head = build(choice.case)
    for name in NAMES:
        certificate = gb.certify(head, choice.n, regime=name, **choice.options)

        assert gb.verify(certificate, head).reasons == ()


def test_a_regime_of_all_pairs_serves_every_n():
    certificate = gb.certify(HEAD, regime=ALL)

    assert list(certificate) == [2, 4]
    assert list(gb.certify(HEAD, [1, 5], regime=ALL)) == [1, 5]
    assert all(claim.regime == ALL for claim in certificate.values())


@pytest.mark.parametrize("regime", [ROLES, TOKENS])
def test_a_regime_by_role_serves_its_own_n_only(regime):
    assert list(gb.certify(HEAD, regime=regime)) == [3]
    with pytest.raises(gb.ArgumentError, match=r"own n=3, got n=\[2\]"):
        gb.certify(HEAD, 2, regime=regime)
    with pytest.raises(gb.ArgumentError, match=r"own n=3, got n=\[3, 4\]"):
        gb.certify(HEAD, [3, 4], regime=regime)


def test_an_unknown_regime_is_refused_with_the_names():
    with pytest.raises(gb.ArgumentError, match=r"roles-norms.*got regime='T4'"):
        gb.certify(HEAD, 2, regime="T4")


# The checker against edited certificates


def edited(certificate, regime):
    """Return the certificate's data with another regime, signed again."""
    data = certificate.to_dict()
    other = dataclasses.replace(certificate[regime.n or 3], regime=regime)
    claims = gb.Certificate(
        [other],
        definitions=certificate.definitions,
        head=certificate.head,
        provenance={},
        versions={},
    ).to_dict()["claims"]
    return resigned(data | {"claims": claims})


WORDS = {
    NORM: r"norms: do not hold at key {key}",
    PULL: r"pull_across: does not hold at key {key}",
}


@pytest.mark.parametrize("step", [TINY, Fraction(1, 8)], ids=["2^-300", "1/8"])
@pytest.mark.parametrize(
    ("case", "field", "end", "sign", "assumption", "key"), TOO_TIGHT
)
def test_the_checker_refuses_every_number_too_tight(
    case, field, end, sign, assumption, key, step
):
    """With its own reason, however small the excess."""
    regime, policy = EXACT[case]
    n = regime.n or 3
    certificate = gb.certify(HEAD, n, regime=regime, sink_policy=policy)
    wrong = moved(regime, field, end, sign * step)
    (reason,) = gb.verify(edited(certificate, wrong), HEAD).reasons

    words = WORDS.get(assumption, field + r": does not hold at keys")
    assert reason.startswith(f"n={n}: " + words.format(key=key))


@pytest.mark.parametrize("field", ["cosine_selected", "cosine_across", "sink_selected"])
def test_the_checker_refuses_a_cosine_left_out(field):
    certificate = gb.certify(HEAD, regime=ROLES)
    wrong = dataclasses.replace(ROLES, **{field: None})

    assert gb.verify(edited(certificate, wrong), HEAD).reasons == (
        f"n=3: {field}: missing",
    )


@pytest.mark.parametrize("field", SPANS)
def test_the_checker_refuses_norms_left_out(field):
    certificate = gb.certify(HEAD, regime=ROLES)
    wrong = dataclasses.replace(ROLES, **{field: None})

    assert gb.verify(edited(certificate, wrong), HEAD).reasons == (
        f"n=3: {field}: missing",
    )


def test_a_pull_left_out_is_a_weaker_regime():
    certificate = gb.certify(HEAD, regime=dataclasses.replace(ROLES, pull_across=None))

    assert gb.verify(certificate, HEAD)


# Separable by ROLES and by TOKENS; the values that each number may have at worst.
SEPARABLE = gb.HeadData(
    [0.25, 0.25, 0.25, 0.0625, 0.0625, 0.03125],
    [[0.0, 2.0], [3.0, 4.0], [4.0, 3.0], [4.0, -3.0], [-3.0, 4.0], [-5.0, 0.0]],
)
LOOSE = {
    "norms_selected": span(0, 5),
    "norms_unselected": span(0, 100),
    "cosine_selected": q("-1"),
    "cosine_across": q("1"),
    "sink_norm": span(0, 200),
    "sink_selected": q("-1"),
    "sink_across": q("1"),
    "pull_across": q("100"),
}


@pytest.mark.parametrize("field", LOOSE)
def test_a_looser_number_is_accepted_with_the_counts_that_follow(field):
    """And with the old counts only if they still follow."""
    tight = gb.PairwiseRegime.fit(SEPARABLE, n=3)
    loose = dataclasses.replace(tight, **{field: LOOSE[field]})
    before = gb.certify(SEPARABLE, regime=tight)
    after = gb.certify(SEPARABLE, regime=loose)
    follows = claimed(before) == claimed(after)

    assert gb.verify(after, SEPARABLE).reasons == ()
    assert gb.verify(edited(before, loose), SEPARABLE).ok is follows
    assert after[3].f_score <= before[3].f_score


def test_stale_counts_are_refused_with_what_follows():
    tight = gb.PairwiseRegime.fit(SEPARABLE, n=3)
    loose = dataclasses.replace(tight, cosine_selected=q("-1"))
    before = gb.certify(SEPARABLE, regime=tight)
    after = gb.certify(SEPARABLE, regime=loose)

    assert before[3].f_score == 1
    assert after[3].false_positives > 0
    assert gb.verify(edited(before, loose), SEPARABLE).reasons == (
        f"n=3: false_positives: at least {after[3].false_positives} follow",
    )


# Numbers of a kind that the regime must not hold


SINK_OUT = gb.HeadData([0.5, 0.5], [[1.0], [1.0]], sink=1)


def test_a_pull_does_not_bound_an_unselected_sink():
    """Two equal tokens, the second the sink: F_1 = 0, whatever is said of a pull."""
    wrong = dataclasses.replace(
        gb.PairwiseRegime.fit(SINK_OUT, n=1), pull_across=q("-1")
    )

    assert gb.measure(SINK_OUT, 1).f_score.upper == 0
    with pytest.raises(gb.AssumptionError):
        wrong.check(SINK_OUT)
    with pytest.raises(gb.AssumptionError):
        gb.certify(SINK_OUT, regime=wrong)


def test_both_norm_intervals_of_all_pairs_are_checked():
    """The check looks at N = 1, where only the sink is selected."""
    with pytest.raises(gb.GeoboundsError):
        dataclasses.replace(ALL, norms_selected=span(0, 0)).check(HEAD)


def test_a_regime_without_a_norm_for_a_candidate_is_refused():
    """Fitted without the sink, used with it."""
    regime = gb.PairwiseRegime.fit(HEAD, n=2, exact_norms=True, sink_policy="drop")
    with pytest.raises(gb.AssumptionError) as caught:
        regime.check(HEAD)

    assert caught.value.statement == "T4"


@pytest.mark.parametrize("exponent", [600, -600])
@pytest.mark.parametrize(
    ("field", "value"),
    [("norms_unselected", span(0, 0)), ("pull_across", q("-1"))],
)
def test_numbers_are_refused_where_squares_leave_the_range_of_floats(
    exponent, field, value
):
    values = np.array([[1.0], [2.0], [3.0]]) * 2.0**exponent
    head = gb.HeadData([0.5, 0.25, 0.25], values)
    regime = gb.PairwiseRegime.fit(head, n=1)
    with pytest.raises(gb.AssumptionError) as caught:
        dataclasses.replace(regime, **{field: value}).check(head)

    assert caught.value.statement == "T4"


@pytest.mark.parametrize("scope", SCOPES)
def test_rounded_counts_survive_a_norm_above_the_largest_float(scope):
    """The norm of (1.7e308, 1.7e308) is no float64."""
    head = gb.HeadData([0.5, 0.5], [[1.7e308, 1.7e308], [1.0, 1.0]])
    selection = gb.rank(head).select(1)
    counts = rounded_pairwise_counts(head, selection, scope)

    assert counts.fp_upper >= gb.measure(head, 1).false_positives


@pytest.mark.parametrize("value", [None, 3, True])
def test_the_checker_refuses_token_norms_that_are_no_list(value):
    data = gb.certify(HEAD, regime=TOKENS).to_dict()
    data["claims"][0]["regime"]["token_norms"] = value
    (reason,) = gb.verify(resigned(data), HEAD).reasons

    assert reason.startswith("n=3: token_norms: ")


@pytest.mark.parametrize("field", [*SPANS, "cosine_selected", "pull_across"])
@pytest.mark.parametrize("value", ["", [], 0, False])
def test_a_file_with_something_else_for_a_number_is_not_loaded(plain, field, value):
    data = gb.certify(HEAD, regime=ROLES).to_dict()
    data["claims"][0]["regime"][field] = value
    with pytest.raises(plain.CertificateFormatError):
        plain.Certificate.from_dict(resigned(data))
