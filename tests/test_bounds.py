"""T2: bounds from inversions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import build, choices

import geobounds as gb
from geobounds.separability import f_score

SIZES = [(n, m) for n in range(1, 7) for m in range(1, 7)]


def staircases(n, m):
    """Return all Ferrers diagrams with at most n rows of at most m, longest first."""
    rows = itertools.combinations_with_replacement(range(m, -1, -1), n)
    return list(rows)


def f_of(rows):
    """Return F of a diagram: FP is its longest row, FN its number of rows."""
    return f_score(len(rows), rows[0], sum(row > 0 for row in rows))


def worst_staircases(n, m):
    """Return, for every number of inversions, a diagram of the least F."""
    worst = {}
    for rows in staircases(n, m):
        best = worst.setdefault(sum(rows), rows)
        if f_of(rows) < f_of(best):
            worst[sum(rows)] = rows
    return worst


def collinear_head(rows, m):
    """Return the witness of T2b: a head on a line with this diagram of inversions.

    Unselected distances are 1, ..., m; a selected token with k inversions lies at
    k + 1/2. Everything is scaled by 2 (N - 1), so that s is an integer.
    """
    n = len(rows)
    scale = 2 * (n - 1)
    inside = [scale * k + (n - 1) for k in rows]
    outside = [scale * j for j in range(1, m + 1)]
    aggregate = -sum(inside) // (n - 1)
    assert aggregate * (n - 1) == -sum(inside)
    contributions = [aggregate + d for d in inside + outside]
    weights = 2.0 ** -np.arange(1, n + m + 1)
    return gb.HeadData(weights, (contributions / weights)[:, None])


def test_the_documented_example_gives_these_fractions():
    b = gb.inversion_bounds(4, 8, 2)

    assert (b.precision, b.recall) == (Fraction(2, 3), Fraction(1, 2))
    assert (b.f_separate, b.f_joint) == (Fraction(4, 7), Fraction(8, 13))


def test_no_inversion_certifies_everything():
    b = gb.inversion_bounds(3, 5, 0)

    assert (b.precision, b.recall, b.f_separate, b.f_joint) == (1, 1, 1, 1)


def test_as_many_inversions_as_selected_tokens_certify_nothing_about_recall():
    b = gb.inversion_bounds(3, 5, 3)

    assert b.precision == Fraction(1, 2)
    assert (b.recall, b.f_separate, b.f_joint) == (0, 0, 0)


def test_one_inversion_of_two_selected_gives_four_sevenths():
    assert gb.inversion_bounds(2, 2, 1).f_joint == Fraction(4, 7)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_joint_bound_is_the_minimum_over_all_ferrers_diagrams(n, m):
    """Exhaustive: T2b is the least F of any diagram with G cells, for every G."""
    worst = worst_staircases(n, m)

    assert set(worst) == set(range(n * m + 1))
    for g, rows in worst.items():
        assert gb.inversion_bounds(n, m, g).f_joint == f_of(rows)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_separate_bounds_are_the_minima_of_precision_and_recall(n, m):
    """T2a: each bound is the least P, or the least R, of any diagram with G cells."""
    least_p, least_r = {}, {}
    for rows in staircases(n, m):
        g, fn = sum(rows), sum(row > 0 for row in rows)
        p, r = Fraction(n, n + rows[0]), 1 - Fraction(fn, n)
        least_p[g] = min(p, least_p.get(g, p))
        least_r[g] = min(r, least_r.get(g, r))

    for g in range(n * m + 1):
        b = gb.inversion_bounds(n, m, g)
        assert b.precision == least_p[g]
        assert b.recall == least_r[g]


@given(choices())
def test_no_bound_exceeds_the_metric_of_a_head(choice):
    """Fails if FP + FN could exceed G + 1, or if a tie were no inversion."""
    truth = choice.truth()
    m = gb.measure(build(choice.case), choice.n, **choice.options)
    b = gb.inversion_bounds(choice.n, len(truth.unselected), m.inversions)

    assert b.precision <= truth.precision
    assert b.recall <= truth.recall
    assert b.f_separate <= b.f_joint <= truth.f_score


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_bounds_fall_as_inversions_grow(n, m, data):
    """An upper bound on G suffices; fails if the minimum over the chord jumps up."""
    g = data.draw(st.integers(0, n * m - 1))
    fewer, more = gb.inversion_bounds(n, m, g), gb.inversion_bounds(n, m, g + 1)

    assert more.precision <= fewer.precision
    assert more.recall <= fewer.recall
    assert more.f_joint <= fewer.f_joint


@given(st.integers(1, 200), st.integers(1, 200), st.data())
def test_joint_bound_is_the_minimum_over_the_chord(n, m, data):
    """Convexity at sizes too large to enumerate: the least is at an end."""
    g = data.draw(st.integers(1, min(n * m, n)))
    chord = [f_score(n, g + 1 - b, b) for b in range(max(1, g + 1 - m), g + 1)]

    assert gb.inversion_bounds(n, m, g).f_joint == min(chord)


@pytest.mark.parametrize(("n", "m"), [(n, m) for n, m in SIZES if n >= 2])
def test_joint_bound_is_attained_on_a_line(n, m):
    """Tight: for every G an actual head has G inversions and F equal to the bound."""
    for g, rows in worst_staircases(n, m).items():
        found = gb.measure(collinear_head(rows, m), n)
        assert found.inversions == g
        assert found.f_score.lower == gb.inversion_bounds(n, m, g).f_joint


@pytest.mark.parametrize("m", range(1, 7))
def test_joint_bound_is_attained_by_duplicates_for_one_selected_token(m):
    """Tight for N = 1: G copies of y_1 are G inversions, and F is 0 from G = 1 on."""
    for g in range(m + 1):
        values = [[1.0]] * (g + 1) + [[5.0]] * (m - g)
        found = gb.measure(gb.HeadData([0.25] * (m + 1), values), 1)
        assert found.inversions == g
        assert found.f_score.lower == gb.inversion_bounds(1, m, g).f_joint


def test_joint_bound_needs_the_staircase():
    """Counts that break FP + FN <= G + 1, free of any diagram, beat the bound."""
    assert f_score(4, 2, 2) < gb.inversion_bounds(4, 8, 1).f_joint


def test_joint_bound_is_stronger_than_the_separate_ones_somewhere():
    b = gb.inversion_bounds(16, 100, 3)

    assert b.f_separate < b.f_joint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 0), r"n must be at least 1, got n=0"),
        ((-1, 2, 0), r"n must be at least 1, got n=-1"),
        ((2, 0, 0), r"n_unselected must be at least 1, got n_unselected=0"),
        ((2, 3, -1), r"inversions must be at least 0, got inversions=-1"),
        ((2, 3, 7), r"inversions must be at most 6, got 7"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(gb.ArgumentError, match=r"^inversion_bounds: " + message):
        gb.inversion_bounds(*arguments)


@pytest.mark.parametrize("position", range(3))
def test_what_is_no_int_is_refused_by_name(plain, position):
    arguments = [2, 3, 1]
    name = ("n", "n_unselected", "inversions")[position]
    message = f"^inversion_bounds: {name} must be an int, got {name}="

    arguments[position] = True
    with pytest.raises(TypeError, match=message + "True"):
        gb.inversion_bounds(*arguments)
    arguments[position] = 1.0
    with pytest.raises(TypeError, match=message + "1.0"):
        plain.inversion_bounds(*arguments)
