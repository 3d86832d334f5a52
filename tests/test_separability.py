"""Counts and metrics of one query: D5 to D8, T1, T3, T7."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from cases import draw_heads
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import build, choices, heads, intervals, signed_permutations

import geobounds as gb
from geobounds import separability
from geobounds.exact import ExactGeometry, oracle
from geobounds.power import Enclosure, power_enclosure
from geobounds.separability import f_score, interval_counts, precision, recall

DISTANCES = ("euclidean", "cosine")
COUNTS = ("fp", "fn", "inversions")


def numbers(m):
    """Return the three counts of a measurement."""
    return m.false_positives, m.false_negatives, m.inversions


def keyed(selected, unselected):
    """Return the counts of exact keys."""
    keys = np.array([*selected, *unselected])
    return interval_counts(Enclosure(keys, keys, len(selected)))


def contributions(case):
    """Return y_i = alpha_i v_i as tuples of fractions."""
    return [
        tuple(Fraction(w) * Fraction(x) for x in v)
        for w, v in zip(case.weights.tolist(), case.values.tolist(), strict=True)
    ]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def equiangular(norms, common):
    """Return vectors norms[i] * (common, e_i): equal cosines c^2 / (1 + c^2)."""
    n = len(norms)
    unit = np.concatenate([np.full((n, 1), float(common)), np.eye(n)], axis=1)
    return np.array(norms, dtype=float)[:, None] * unit


# Examples


def test_ties_count_against_separability_on_both_sides():
    """Row 37: selected at distances 1 and 2, unselected at 2: P = 2/3, R = 1/2."""
    m = keyed([1, 2], [2])

    assert (m.precision.lower, m.precision.upper) == (Fraction(2, 3), Fraction(2, 3))
    assert (m.recall.lower, m.recall.upper) == (Fraction(1, 2), Fraction(1, 2))
    assert (m.fp_upper, m.fn_upper, m.inversions_upper) == (1, 1, 1)


def test_ties_of_actual_contributions_count_against_separability():
    """Row 37 on a line: y = -2, -1, -5 give s = -3 and distances 1, 2 and 2."""
    head = gb.HeadData([0.5, 0.25, 0.125], [[-4.0], [-4.0], [-40.0]])
    m = gb.measure(head, 2)

    assert (m.precision.lower, m.recall.lower) == (Fraction(2, 3), Fraction(1, 2))
    assert numbers(m) == (1, 1, 1)


def test_a_measurement_tells_what_was_measured():
    head = gb.HeadData(
        [[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]],
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        visible="causal",
    )
    m = gb.measure(head, 2, query=0)

    assert (m.n, m.selected.tolist(), m.boundary_tie) == (2, [0, 1], True)
    assert (m.query_position, m.distance) == (2, "euclidean")
    assert str(m.f_score) == "1"
    assert m.precision.exact
    assert float(m.recall) == 1.0
    assert (m.counts.n, m.counts.n_unselected) == (2, 1)


def test_a_measurement_prints_as_one_line():
    head = gb.HeadData([0.5, 0.25, 0.125], [[-4.0], [-4.0], [-40.0]])

    assert repr(gb.measure(head, 2)) == (
        "Measurement(n=2, P=2/3, R=1/2, F=4/7, FP=1, FN=1, inversions=1, euclidean)"
    )


def test_a_selected_duplicate_of_an_unselected_token_is_an_inversion():
    head = gb.HeadData([0.5, 0.5, 0.25], [[1.0], [1.0], [9.0]])

    assert numbers(gb.measure(head, 1)) == (1, 1, 1)


def test_one_query_of_several_is_measured_with_its_own_candidates():
    """Future keys are no candidates: the first query has two."""
    weights = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]
    head = gb.HeadData(weights, [[1.0], [2.0], [3.0]], visible="causal")

    with pytest.raises(gb.ArgumentError, match=r"between 1 and 1 \(2 candidates\)"):
        gb.measure(head, 2, query=0)
    assert gb.measure(head, 2, query=1).n == 2


@pytest.mark.parametrize(
    ("fp", "fn", "p", "r", "f"),
    [
        (0, 0, 1, 1, 1),
        (2, 1, Fraction(1, 2), Fraction(1, 2), Fraction(1, 2)),
        (2, 2, Fraction(1, 2), 0, 0),
        (1, 1, Fraction(2, 3), Fraction(1, 2), Fraction(4, 7)),
    ],
)
def test_metrics_of_counts_for_two_selected_tokens(fp, fn, p, r, f):
    assert (precision(2, fp), recall(2, fn), f_score(2, fp, fn)) == (p, r, f)


def test_intervals_print_as_one_number_or_both_ends():
    third = Fraction(1, 3)

    assert str(separability.Interval(third, third)) == "1/3"
    assert str(separability.Interval(Fraction(0), third)) == "[0, 1/3]"
    assert float(separability.Interval(Fraction(0), Fraction(1, 2))) == 0.25
    assert separability.Interval(third, third).exact
    assert not separability.Interval(Fraction(0), third).exact


def test_large_float32_vectors_that_are_equal_tie_exactly():
    """Power cancels badly at 512695 and 512804; the radius says so."""
    values = np.float32([[512695, 512804], [512804, 512695], [512695, 512804]])
    head = gb.HeadData(np.float32([0.25] * 3), values)
    loose = gb.measure(head, 2, settle_doubt=False)

    assert numbers(gb.measure(head, 2)) == (1, 2, 2)
    assert loose.false_negatives == separability.Interval(Fraction(0), Fraction(2))
    assert loose.f_score == separability.Interval(Fraction(0), Fraction(1))


def test_large_float32_vectors_one_unit_apart_separate_exactly():
    """The exact margin is 0.0108; float64 alone leaves the question open."""
    weights = np.float32([0.25, np.nextafter(np.float32(0.25), np.float32(0)), 0.125])
    values = np.float32([[512804, 512804], [512804, 512804], [512695, 512695]])
    head = gb.HeadData(weights, values)
    m, loose = gb.measure(head, 1), gb.measure(head, 1, settle_doubt=False)

    assert numbers(m) == (0, 0, 0)
    assert m.margin.lower > 0
    assert loose.false_positives == separability.Interval(Fraction(0), Fraction(1))
    assert not loose.counts.exact


def test_margin_of_pythagorean_distances_is_one_fraction():
    """y = (3, 4), (0, 0), (6, 8): N = 1 gives rho_min = 5 and rho_max = 0."""
    values = [[6.0, 8.0], [0.0, 0.0], [24.0, 32.0]]
    m = gb.measure(gb.HeadData([0.5, 0.25, 0.25], values), 1)

    assert m.margin == separability.Interval(Fraction(5), Fraction(5))


def test_cosine_margin_of_opposite_and_equal_directions_is_one_fraction():
    """Cosines to s: 1 for the selected, -1 and 0 for the others."""
    values = [[1.0, 0.0], [-3.0, 0.0], [0.0, 2.0]]
    m = gb.measure(gb.HeadData([0.5, 0.25, 0.25], values), 1, distance="cosine")

    assert m.margin == separability.Interval(Fraction(1), Fraction(1))


def test_a_zero_aggregate_makes_all_cosines_tie():
    head = gb.HeadData([0.5, 0.5, 0.25], [[1.0], [-1.0], [1.0]])
    m = gb.measure(head, 2, distance="cosine")

    assert numbers(m) == (1, 2, 2)
    assert m.margin == separability.Interval(Fraction(0), Fraction(0))


# Oracle


@given(choices(), st.sampled_from(DISTANCES))
def test_measurements_equal_the_oracle(choice, distance):
    """Fails for a lost tie, a wrong sign of the power, or hidden candidates."""
    truth = choice.truth(distance)
    m = gb.measure(build(choice.case), choice.n, distance=distance, **choice.options)

    assert numbers(m) == (
        truth.false_positives,
        truth.false_negatives,
        truth.inversions,
    )
    assert (m.precision.lower, m.recall.lower, m.f_score.lower) == (
        truth.precision,
        truth.recall,
        truth.f_score,
    )
    assert m.precision.exact
    assert m.recall.exact
    assert m.f_score.exact
    assert tuple(m.selected) == truth.selected
    assert m.boundary_tie == truth.boundary_tie


@given(heads(min_visible=3), st.integers(0, 2**32 - 1))
def test_measurements_by_own_scores_equal_the_oracle(case, seed):
    """The control ranking; fails if scores are read by rank in place of by key."""
    scores = gb.random_scores(len(case.weights), seed)
    truth = oracle(
        case.weights.tolist(),
        case.values.tolist(),
        case.visible.tolist(),
        case.sink,
        2,
        ranking=scores.tolist(),
    )
    m = gb.measure(build(case), 2, ranking=scores)

    assert tuple(m.selected) == truth.selected
    assert numbers(m) == (
        truth.false_positives,
        truth.false_negatives,
        truth.inversions,
    )


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, 9), st.integers(0, n))
    )
)
def test_f_is_the_harmonic_mean_of_precision_and_recall(counts):
    n, fp, fn = counts
    p, r = precision(n, fp), recall(n, fn)

    assert f_score(n, fp, fn) * (p + r) == 2 * p * r


# Properties


@given(intervals(), st.data())
def test_counts_of_any_keys_inside_intervals_lie_between_the_bounds(given_, data):
    """T1 holds. Fails for a strict comparison or the wrong end of an interval."""
    lo, hi, n = given_
    inside = data.draw(
        st.tuples(*(st.integers(a, b) for a, b in zip(lo, hi, strict=True)))
    )
    bound, true = interval_counts(Enclosure(lo, hi, n)), keyed(inside[:n], inside[n:])

    for name in COUNTS:
        count = getattr(true, f"{name}_lower")
        assert getattr(bound, f"{name}_lower") <= count
        assert count <= getattr(bound, f"{name}_upper")
    for name in ("precision", "recall", "f_score"):
        metric = getattr(true, name).lower
        assert getattr(bound, name).lower <= metric <= getattr(bound, name).upper


@given(intervals())
def test_separability_is_certified_iff_the_intervals_are_apart(given_):
    """T1: F_N = 1 iff max_S hi < min_U lo."""
    lo, hi, n = given_
    counts = interval_counts(Enclosure(lo, hi, n))

    assert (counts.f_score.lower == 1) == (hi[:n].max() < lo[n:].min())


@given(choices(), st.sampled_from(DISTANCES))
def test_false_positives_false_negatives_and_inversions_vanish_together(
    choice, distance
):
    """D6, D8: FP = 0 iff FN = 0 iff G = 0 iff gamma > 0."""
    m = gb.measure(build(choice.case), choice.n, distance=distance, **choice.options)
    none = [count == 0 for count in numbers(m)]

    assert none == [none[0]] * 3
    assert (m.margin.upper > 0 and m.margin.lower >= 0) == none[0]
    assert (m.f_score.lower == 1) == none[0]


@given(choices())
def test_euclidean_margin_contains_the_exact_one(choice):
    """Squared ends enclose (gamma + rho_max)^2 = rho_min^2; the width is 60 bits."""
    head = build(choice.case)
    m = gb.measure(head, choice.n, **choice.options)
    order = gb.rank(head, **choice.options).select(choice.n)
    squares = ExactGeometry(head, order).squared_distances()
    far, near = max(squares[: choice.n]), min(squares[choice.n :])

    # gamma <= x iff sqrt(near) <= x + sqrt(far), decided in squares.
    assert difference_is_at_most(near, far, m.margin.upper)
    assert difference_is_at_most(far, near, -m.margin.lower)
    assert (near > far) == (m.margin.upper > 0)
    assert (near < far) == (m.margin.lower < 0)
    assert m.margin.upper - m.margin.lower <= (1 + near + far) / Fraction(2**60)


def difference_is_at_most(a, b, x):
    """Whether sqrt(a) - sqrt(b) <= x, in fractions only."""
    # sqrt(a) <= x + sqrt(b)
    gap = a - b - x * x  # against 2 x sqrt(b), once x + sqrt(b) >= 0
    if x < 0 and x * x > b:
        return False
    if x >= 0:
        return gap <= 0 or gap * gap <= 4 * x * x * b
    return gap <= 0 and gap * gap >= 4 * x * x * b


@given(choices())
def test_cosine_margin_lies_between_minus_two_and_two_with_its_sign(choice):
    """Fails if the far and the near token are exchanged."""
    head = build(choice.case)
    m = gb.measure(head, choice.n, distance="cosine", **choice.options)
    order = gb.rank(head, **choice.options).select(choice.n)
    keys = ExactGeometry(head, order).cosine_keys()
    gap = min(keys[choice.n :]) - max(keys[: choice.n])

    assert -2 <= m.margin.lower <= m.margin.upper <= 2
    assert (gap > 0) == (m.margin.upper > 0)
    assert (gap < 0) == (m.margin.lower < 0)
    assert m.margin.upper - m.margin.lower <= Fraction(1, 2**58)


@given(choices(), st.sampled_from(DISTANCES))
def test_cosine_and_euclidean_margins_are_the_floats_to_rounding(choice, distance):
    """A second way, in float64: the radius is generous, a wrong formula is not near."""
    case = choice.case
    y = case.weights[:, None] * case.values
    truth = choice.truth(distance)
    s = y[list(truth.selected)].sum(axis=0)
    distances = np.linalg.norm(y - s, axis=1)
    lengths = np.linalg.norm(y, axis=1) * np.linalg.norm(s)
    cosines = np.divide(y @ s, lengths, out=np.zeros(len(y)), where=lengths > 0)
    d = {"euclidean": distances, "cosine": 1 - cosines}[distance]
    expected = d[list(truth.unselected)].min() - d[list(truth.selected)].max()
    m = gb.measure(build(case), choice.n, distance=distance, **choice.options)

    # Not soundness: eight roundings on numbers below 100.
    assert abs(float(m.margin) - expected) < 1e-12


@given(choices(), st.sampled_from(DISTANCES))
def test_doubt_left_open_gives_intervals_around_the_truth(choice, distance):
    """settle_doubt=False; fails if the enclosure is moved inward."""
    head = build(choice.case)
    options = {"distance": distance, **choice.options}
    m = gb.measure(head, choice.n, **options)
    loose = gb.measure(head, choice.n, settle_doubt=False, **options)

    for name in ("precision", "recall", "f_score"):
        true, interval = getattr(m, name).lower, getattr(loose, name)
        assert interval.lower <= true <= interval.upper
    for name in COUNTS:
        true = getattr(m.counts, f"{name}_lower")
        assert getattr(loose.counts, f"{name}_lower") <= true
        assert true <= getattr(loose.counts, f"{name}_upper")


@given(choices(), st.sampled_from(DISTANCES), st.data())
def test_moving_keys_with_their_distinct_scores_changes_nothing(choice, distance, data):
    """Invariance: no count depends on the order of the keys."""
    case, n_key = choice.case, len(choice.case.weights)
    scores = np.array(data.draw(st.permutations(range(n_key))))
    moved = np.array(data.draw(st.permutations(range(n_key))))
    sink = None if case.sink is None else int(np.argmax(moved == case.sink))
    other = gb.HeadData(
        case.weights[moved],
        case.values[moved],
        visible=case.visible[moved],
        sink=sink,
    )
    options = {"sink_policy": choice.sink_policy, "distance": distance}
    first = gb.measure(build(case), choice.n, ranking=scores, **options)
    second = gb.measure(other, choice.n, ranking=scores[moved], **options)

    assert first.counts == second.counts
    assert moved[second.selected].tolist() == first.selected.tolist()
    assert first.margin == second.margin


@given(
    choices(),
    st.sampled_from(DISTANCES),
    st.integers(-40, 40),
    st.integers(-40, 40),
)
def test_scaling_weights_or_values_by_powers_of_two_changes_no_count(
    choice, distance, a, b
):
    """Invariance, exact: the margin of distances scales, that of cosines stays."""
    case = choice.case
    other = gb.HeadData(
        case.weights * 2.0**a,
        case.values * 2.0**b,
        visible=case.visible,
        sink=case.sink,
    )
    options = {"distance": distance, **choice.options}
    first = gb.measure(build(case), choice.n, **options)
    second = gb.measure(other, choice.n, **options)

    assert first.counts == second.counts
    assert first.selected.tolist() == second.selected.tolist()
    assert first.boundary_tie == second.boundary_tie


@given(choices(), st.sampled_from(DISTANCES), st.data())
def test_rotating_all_values_together_changes_nothing(choice, distance, data):
    """Invariance under signed permutations of the coordinates, which are exact."""
    case = choice.case
    rotation = data.draw(signed_permutations(case.values.shape[1]))
    other = gb.HeadData(
        case.weights, case.values @ rotation, visible=case.visible, sink=case.sink
    )
    options = {"distance": distance, **choice.options}
    first = gb.measure(build(case), choice.n, **options)
    second = gb.measure(other, choice.n, **options)

    assert first == second
    assert first.margin == second.margin


@given(choices())
def test_hidden_keys_and_their_values_change_nothing(choice):
    """Restated needlessly: the head with its hidden keys removed."""
    case = choice.case
    seen = np.flatnonzero(case.visible)
    sink = np.flatnonzero(seen == case.sink)
    other = gb.HeadData(
        case.weights[seen],
        case.values[seen],
        sink=int(sink[0]) if len(sink) else None,
    )
    first = gb.measure(build(case), choice.n, **choice.options)
    second = gb.measure(other, choice.n, **choice.options)

    assert first.counts == second.counts
    assert seen[second.selected].tolist() == first.selected.tolist()


@given(
    st.lists(st.integers(0, 6), min_size=3, max_size=7),
    st.integers(0, 4),
    st.data(),
)
def test_equiangular_heads_of_equal_norms_separate(weights, common, data):
    """T3: weight selection of all of C, cosine mu in [0, 1), alpha_N > 0: F = 1."""
    n = data.draw(st.integers(1, len(weights) - 1))
    assume(sorted(weights)[-n] > 0)
    head = gb.HeadData(np.array(weights) / 8, equiangular([1] * len(weights), common))

    assert gb.measure(head, n).f_score.lower == 1


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=3, max_size=7),
    st.integers(0, 4),
    st.data(),
)
def test_equiangular_heads_separate_by_contribution_whatever_the_norms(
    tokens, common, data
):
    """T3 under contribution selection."""
    n = data.draw(st.integers(1, len(tokens) - 1))
    assume(sorted(w * r for w, r in tokens)[-n] > 0)
    values = equiangular([r for _, r in tokens], common)
    head = gb.HeadData(np.array([w for w, _ in tokens]) / 8, values)

    assert gb.measure(head, n, ranking="contribution").f_score.lower == 1


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3)), min_size=3, max_size=7),
    st.integers(0, 4),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_equiangular_heads_separate_by_cosine_whatever_the_selection(
    tokens, common, seed, data
):
    """T3 for cosine distance: any norms, any selection of positive weights."""
    n = data.draw(st.integers(1, len(tokens) - 1))
    values = equiangular([r for _, r in tokens], common)
    head = gb.HeadData(np.array([w for w, _ in tokens]) / 8, values)
    scores = gb.random_scores(len(tokens), seed)

    assert gb.measure(head, n, ranking=scores, distance="cosine").f_score.lower == 1


@given(heads(), st.sampled_from(("weight", "contribution", "random")), st.data())
def test_one_selected_token_separates_iff_no_other_contribution_equals_it(
    case, ranking, data
):
    """T7, Euclidean, N = 1, for every selection rule."""
    scores = np.array(data.draw(st.permutations(range(len(case.weights)))))
    m = gb.measure(build(case), 1, ranking=scores if ranking == "random" else ranking)
    y, chosen = contributions(case), int(m.selected[0])
    others = [y[k] for k in np.flatnonzero(case.visible) if k != chosen]

    assert m.f_score.lower == (y[chosen] not in others)


@given(heads(), st.data())
def test_one_selected_token_separates_by_cosine_iff_no_other_points_its_way(case, data):
    """T7, cosine, N = 1: y_1 != 0 and no unselected y is a positive multiple."""
    scores = np.array(data.draw(st.permutations(range(len(case.weights)))))
    m = gb.measure(build(case), 1, ranking=scores, distance="cosine")
    y, chosen = contributions(case), int(m.selected[0])
    one = y[chosen]
    parallel = [
        dot(y[k], one) > 0 and dot(y[k], one) ** 2 == dot(y[k], y[k]) * dot(one, one)
        for k in np.flatnonzero(case.visible)
        if k != chosen
    ]

    assert m.f_score.lower == (any(one) and not any(parallel))


@given(choices(min_n=2))
def test_two_selected_tokens_swap_their_norms_as_distances(choice):
    """T7, N = 2: D_1 = r_2, D_2 = r_1 and F_2 is 1, 0 or 4 / (6 + FP)."""
    head = build(choice.case)
    selection = gb.rank(head, **choice.options).select(2)
    exact = ExactGeometry(head, selection)
    first, second = (contributions(choice.case)[k] for k in selection.selected)
    r1, r2 = dot(first, first), dot(second, second)
    squares = exact.squared_distances()
    m = gb.measure(head, 2, **choice.options)
    scale = exact.dot_scale**2 / exact.norm_scale

    assert squares[:2] == [r2, r1]
    assert max(exact.powers()[:2]) * scale == -min(r1, r2) - 2 * dot(first, second)
    assert m.f_score.lower in {1, 0, Fraction(4, 6 + m.false_positives)}


# Tightness


@given(intervals())
def test_interval_counts_are_attained_together(given_):
    """T1 tight: hi on S and lo on U attains all upper counts, the reverse the lower."""
    lo, hi, n = given_
    bound = interval_counts(Enclosure(lo, hi, n))
    worst, best = keyed(hi[:n], lo[n:]), keyed(lo[:n], hi[n:])

    for name in COUNTS:
        assert getattr(bound, f"{name}_upper") == getattr(worst, f"{name}_upper")
        assert getattr(bound, f"{name}_lower") == getattr(best, f"{name}_lower")
    assert bound.f_score.lower == worst.f_score.lower
    assert bound.f_score.upper == best.f_score.upper


def test_interval_counts_are_the_extremes_over_all_keys_inside():
    """T1 exhaustively: three selected, two unselected, all integer keys inside."""
    lo, hi = np.array([0, 1, -1, 0, 2]), np.array([1, 3, 0, 2, 3])
    bound = interval_counts(Enclosure(lo, hi, 3))
    ranges = (range(a, b + 1) for a, b in zip(lo, hi, strict=True))
    found = [keyed(keys[:3], keys[3:]) for keys in itertools.product(*ranges)]

    for name in COUNTS:
        counts = [getattr(x, f"{name}_lower") for x in found]
        assert getattr(bound, f"{name}_lower") == min(counts)
        assert getattr(bound, f"{name}_upper") == max(counts)


def test_doubt_is_settled_only_where_intervals_meet():
    """The exact path runs for large close vectors, not for clear ones."""
    clear = gb.HeadData([0.5, 0.25, 0.25], [[1.0], [9.0], [-1.0]])

    def never():
        pytest.fail("exact keys were asked for")

    enclosure = power_enclosure(clear, gb.rank(clear).select(1))
    assert separability.settle(enclosure, never).exact
    keys = np.array([1, 1])
    doubtful = Enclosure(np.array([0.0, 0.0]), np.array([2.0, 2.0]), 1)
    assert separability.settle(doubtful, lambda: keys).fp_lower == 1


def test_settled_counts_are_exact_on_every_shape_of_head():
    """No shape leaves an interval once doubt is settled."""
    for case in draw_heads(seed=8, count=140):
        m = gb.measure(build(case), 1, distance="cosine")
        assert m.counts.exact
        assert gb.measure(build(case), 1).counts.exact


# Refutations


def test_an_unselected_sink_breaks_equiangular_separability():
    """T3 needs S on top of all of C: compete, mu = 9/10, sink 1/2 unselected: F = 0."""
    values = equiangular([1, 1, 1], 3)
    assert values[0] @ values[1] == 9
    assert values[0] @ values[0] == 10
    head = gb.HeadData([0.5, 0.25, 0.25], values, sink=0)

    assert gb.measure(head, 2, sink_policy="compete").f_score.lower == 0
    assert gb.measure(head, 2, sink_policy="keep").f_score.lower == 1


def test_a_negative_common_cosine_breaks_equiangular_separability():
    """T3 needs mu >= 0: weights 4 : 1 : 0, mu = -1/4, N = 2 give F = 4/7."""
    values = np.array(
        [
            [1, 1, 1, 1, 0, 0, 0, 0, 0],
            [-1, 0, 0, 0, 1, 1, 1, 0, 0],
            [0, -1, 0, 0, -1, 0, 0, 1, 1],
        ],
        dtype=float,
    )
    assert (values @ values.T == 5 * np.eye(3) - 1).all()
    m = gb.measure(gb.HeadData([0.5, 0.125, 0.0], values), 2)

    assert m.f_score.lower == Fraction(4, 7)


def test_equal_vectors_at_a_boundary_tie_break_equiangular_separability():
    """T3 needs mu < 1."""
    m = gb.measure(gb.HeadData([0.5, 0.25, 0.25], [[1.0]] * 3), 2)

    assert m.boundary_tie
    assert m.f_score.lower < 1


def test_unequal_norms_break_equiangular_separability_by_weight():
    """T3 needs equal norms under weight selection: mu = 9/10, norms 8 : 1 : 8."""
    head = gb.HeadData([0.5, 0.25, 0.125], equiangular([8, 1, 8], 3))

    assert gb.measure(head, 2).f_score.lower < 1
    assert gb.measure(head, 2, ranking="contribution").f_score.lower == 1


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"distance": "manhattan"},
            'distance must be "euclidean" or "cosine", got .*m',
        ),
        ({"n": 3}, r"n must lie between 1 and 2 \(3 candidates\), got n=3"),
        ({"query": 4}, "query must lie between -1 and 0, got query=4"),
        ({"ranking": "best"}, "ranking must be"),
        ({"sink_policy": "skip"}, "sink_policy must be one of keep, drop, compete"),
    ],
)
def test_arguments_out_of_range_are_refused_in_the_name_of_measure(options, message):
    head = gb.HeadData([0.5, 0.25, 0.25], [[1.0]] * 3)

    with pytest.raises(gb.ArgumentError, match=r"^measure: " + message):
        gb.measure(head, **{"n": 1, **options})


def test_a_head_without_values_cannot_be_measured():
    with pytest.raises(gb.HeadDataError, match=r"^measure: values must be given"):
        gb.measure(gb.HeadData([0.5, 0.25]), 1)


def test_a_row_with_a_problem_cannot_be_measured():
    head = gb.HeadData([[0.5, 0.5], [np.nan, 0.5]], [[1.0], [2.0]], visible="all")

    assert gb.measure(head, 1, query=0).n == 1
    with pytest.raises(gb.HeadDataError, match=r"^measure: weights must be finite"):
        gb.measure(head, 1, query=1)
