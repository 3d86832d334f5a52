"""Changes of single operators that no other test noticed: found by mutation testing."""

import copy
import dataclasses
import itertools
import re
import zipfile
from fractions import Fraction

import numpy as np
import pytest
import test_tamper
import test_verify

import geobounds as gb
from geobounds import regime as regime_module
from geobounds.bounds import capped_f_bound
from geobounds.cells import arrange
from geobounds.power import (
    DotProducts,
    cosine_enclosure,
    dot_products,
    power_enclosure,
    rounding_radius,
)
from geobounds.regime import fit_cells
from geobounds.separability import interval_counts, selection_counts
from geobounds.verify import main

# T2 (b) under caps


@pytest.mark.parametrize("counts", [(0, 2, 3), (2, 0, 3), (2, 2, 0)])
def test_no_false_positive_or_no_false_negative_or_no_inversion_certifies_all(counts):
    """FP = 0 iff FN = 0 iff G = 0: each of them alone gives F = 1."""
    assert capped_f_bound(4, *counts) == 1


# T8: radii and enclosures from dot products given by hand


def products(w, t, q, t_radius=0.0, q_radius=0.0, bulk=0.0):
    """Return the numbers of one selected token, followed by an unselected one."""
    rows = [w, t, q, bulk, t_radius, q_radius]
    return DotProducts(*(np.array([x, 1.0]) for x in rows))


PAIR = gb.HeadData([0.5, 0.25], [[1.0], [2.0]])
CHOICE = gb.rank(PAIR).select(1)


def kappa_hull(t_low, t_high, q_low, q_high):
    """Return the least and the greatest sign(t) t^2 / q over the box, exactly."""
    ends = [
        Fraction(t) * abs(Fraction(t)) / Fraction(q)
        for t in (t_low, t_high)
        for q in (q_low, q_high)
    ]
    return min(ends), max(ends)


@pytest.mark.parametrize("t", [-5.0, -3.0, -0.5, 0.25, 0.5, 3.0, 5.0])
@pytest.mark.parametrize("t_radius", [0.0, 0.125, 0.375, 1.0])
@pytest.mark.parametrize(("q", "q_radius"), [(6.0, 0.0), (6.0, 2.0), (0.5, 0.25)])
def test_cosine_keys_are_the_quotients_of_the_ends_hardly_widened(
    t, t_radius, q, q_radius
):
    """The hull over the box of t and q, outward by at most nine units of rounding."""
    x = products(1.0, t, q, t_radius, q_radius)
    found = cosine_enclosure(PAIR, CHOICE, x)
    least, greatest = kappa_hull(t - t_radius, t + t_radius, q - q_radius, q + q_radius)
    lo, hi = -Fraction(float(found.hi[0])), -Fraction(float(found.lo[0]))

    assert least - 9 * abs(least) / 2**53 <= lo < least
    assert greatest < hi <= greatest + 9 * abs(greatest) / 2**53


@pytest.mark.parametrize("t", [3.0, -3.0])
def test_cosine_keys_are_widened_by_four_units_and_one_step(t):
    """9 / 6 = 3/2 exactly, four units of which are three steps."""
    found = cosine_enclosure(PAIR, CHOICE, products(1.0, t, 6.0))
    step = 2.0**-52

    assert found.lo[0] == -np.sign(t) * 1.5 - 4 * step
    assert found.hi[0] == -np.sign(t) * 1.5 + 4 * step


@pytest.mark.parametrize(
    ("t", "t_radius", "q", "q_radius"),
    [
        (2.0**-450, 0.0, 1.0, 0.0),
        (-(2.0**-450), 0.0, 1.0, 0.0),
        (1.5 * 2.0**-450, 2.0**-451, 1.0, 0.0),
        (-1.5 * 2.0**-450, 2.0**-451, 1.0, 0.0),
        (0.5, 0.5, 1.0, 0.0),
        (-0.5, 0.5, 1.0, 0.0),
        (1.0, 0.0, 2.0**-450, 0.0),
        (1.0, 0.0, 1.0, 1.0),
        (1.0, 0.0, 1.0, 2.0),
        (2.0**512, 0.0, 1.0, 0.0),
        (2.0**511, 2.0**511, 1.0, 0.0),
        (-(2.0**511), 2.0**511, 1.0, 0.0),
        (2.0**512, 2.0**511 * 3, 1.0, 0.0),
    ],
)
def test_cosine_keys_near_underflow_or_overflow_are_given_the_whole_line(
    t, t_radius, q, q_radius
):
    """Each number alone suffices, at the limit itself too, and no warning is raised."""
    found = cosine_enclosure(PAIR, CHOICE, products(1.0, t, q, t_radius, q_radius))

    assert (found.lo[0], found.hi[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("t", "q"), [(2.0**-449, 1.0), (-(2.0**-449), 1.0), (1.0, 2.0**-449)]
)
def test_cosine_keys_just_above_the_limit_are_bounded(t, q):
    """Twice the limit of safe numbers."""
    found = cosine_enclosure(PAIR, CHOICE, products(1.0, t, q))

    assert np.isfinite([found.lo[0], found.hi[0]]).all()


def test_cosine_keys_of_weight_zero_or_of_the_zero_vector_are_zero_and_counted():
    """Either makes the contribution zero; a vector with some zeros is not zero."""
    head = gb.HeadData([0.5, 0.25, 0.0], [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = cosine_enclosure(head, gb.rank(head).select(2))

    assert found.n == 2
    assert (found.lo == 0).tolist() == [True, False, True]
    assert (found.hi == 0).tolist() == [True, False, True]


def test_the_power_is_widened_by_its_radius_and_one_step():
    """w = 3, t = 5, q = 7, T = 11: phi = 33, B = 129, and the step is outward."""
    found = power_enclosure(PAIR, CHOICE, products(3.0, 5.0, 7.0, bulk=11.0))
    radius = (1 + 1 + 4) * 129 * 2.0**-53

    assert found.lo[0] == np.nextafter(33 - radius, -np.inf)
    assert found.hi[0] == np.nextafter(33 + radius, np.inf)


@pytest.mark.parametrize("t", [2.0**1023, -(2.0**1023)])
def test_a_power_with_one_infinite_end_is_given_the_whole_line(t):
    """2 w t overflows on one side only: both ends are infinite, and nothing warns."""
    x = products(0.5, t, 0.0, bulk=2.0**1023)
    wide = products(0.5, t * (2 - 2.0**-52), 0.0, bulk=2.0**1023)

    assert np.isfinite(power_enclosure(PAIR, CHOICE, x).lo[0])
    found = power_enclosure(PAIR, CHOICE, wide)
    assert (found.lo[0], found.hi[0]) == (-np.inf, np.inf)


def test_the_rounding_radius_of_fractions_is_the_number_of_the_statement():
    """N = 2, d = 13: B = 45 + 42 = 87 and E = 5 + 117 + 210 + 2 = 334."""
    expected = Fraction(19 * 87, 2**53) + Fraction(334, 2**1072)

    assert rounding_radius(*map(Fraction, (3, 5, 7, 11)), 2, 13) == expected
    assert rounding_radius(3, 5, 7, 11, 2, 13) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((3.0, 5.0, 7.0, 11.0), 19 * 87 * 2.0**-53),
        ((3.0, 0.0, 0.0, 11.0), 329 * 2.0**-1072),
        ((0.0, 5.0, 7.0, 11.0), 7 * 2.0**-1072),
    ],
)
def test_the_rounding_radius_of_floats_is_a_float(numbers, expected):
    """The term for underflow stands alone where B is 0."""
    found = rounding_radius(*numbers, 2, 13)

    assert type(found) is float
    assert found == expected


def test_the_radii_of_dot_products_are_those_of_the_statement():
    """Powers of two and small integers: no number here is rounded."""
    head = gb.HeadData([0.5, 0.25, 0.0], [[2.0, -1.0], [4.0, 3.0], [1.0, -5.0]])
    x = dot_products(head, gb.rank(head).select(2))
    unit = 2.0**-53

    # s = (2, 1/4) and S = (2, 5/4).
    assert x.w.tolist() == [0.5, 0.25, 0.0]
    assert x.t.tolist() == [3.75, 8.75, 0.75]
    assert x.q.tolist() == [5.0, 25.0, 26.0]
    assert x.bulk.tolist() == [5.25, 11.75, 8.25]
    assert x.t_radius.tolist() == [7 * unit * b for b in x.bulk]
    assert x.q_radius.tolist() == [4 * unit * q for q in x.q]


def test_the_radii_of_dot_products_cover_underflow():
    """Where all products are 0: 2^-1073 (N l + d + 1) and 2^-1073 (d + 1)."""
    head = gb.HeadData([0.0, 0.0, 0.5], [[2.0, -1.0], [4.0, 3.0], [1.0, -5.0]])
    x = dot_products(head, gb.rank(head, ranking=[3, 2, 1]).select(2))
    assert x.t_radius.tolist() == [2.0**-1073 * (2 * s + 3) for s in (3, 7, 6)]

    small = gb.HeadData([0.5, 0.25], [[2.0**-600, 0.0], [0.0, 2.0**-600]])
    x = dot_products(small, gb.rank(small).select(1))
    assert x.q.tolist() == [0.0, 0.0]
    assert x.q_radius.tolist() == [3 * 2.0**-1073] * 2


def test_dot_products_of_huge_values_overflow_in_silence():
    """No warning leaves the function, though every product is infinite."""
    head = gb.HeadData([0.5, 0.25], [[2.0**1000], [-(2.0**1000)]])
    x = dot_products(head, gb.rank(head).select(1))

    assert x.t.tolist() == [np.inf, -np.inf]
    assert x.q.tolist() == [np.inf, np.inf]


# Cells

LINE = gb.HeadData(
    [0.5, 0.25, 0.25, 0.125, 0.125],
    [[4.0], [4.0], [2.0], [-4.0], [0.0]],
    sink=None,
)
TWO_QUERIES = gb.HeadData(
    [[0.5, 0.25, 0.25, 0.0], [0.125, 0.25, 0.25, 0.5]],
    [[1.0], [2.0], [3.0], [4.0]],
    visible="all",
)


@pytest.mark.parametrize("search", [gb.CellRegime.fit, gb.CellRegime.fewest])
@pytest.mark.parametrize(
    ("head", "n", "options"),
    [
        (LINE, 5, {}),
        (LINE, 2, {"ranking": "norm"}),
        (LINE, 2, {"sink_policy": "skip"}),
        (LINE, 2, {"query": 1}),
        (gb.HeadData([0.5, 0.25, 0.25]), 1, {}),
    ],
)
def test_whatever_is_wrong_is_refused_in_the_name_of_the_regime(
    search, head, n, options
):
    """N, the ranking, the policy, the query and missing values, by every function."""
    regime = gb.CellRegime(n, (gb.Cell(0, n, Fraction(1), Fraction(1)),))

    with pytest.raises(gb.GeoboundsError, match=r"^CellRegime: "):
        search(head, n, **options)
    with pytest.raises(gb.GeoboundsError, match=r"^CellRegime: "):
        regime.check(head, **options)


@pytest.mark.parametrize("wrong", ["one", float("nan")])
def test_a_number_of_a_cell_is_refused_in_the_name_of_the_cell(plain, wrong):
    """Each field by its own name, text and NaN alike."""
    with pytest.raises(plain.ArgumentError, match=r"^Cell: norm must "):
        plain.Cell(0, 1, wrong, Fraction(1))
    with pytest.raises(plain.ArgumentError, match=r"^Cell: dot must "):
        plain.Cell(0, 1, Fraction(1), wrong)


@pytest.mark.parametrize(
    ("n", "options", "boundaries"),
    [
        (3, {}, (0, 3, 4)),
        (3, {"query": 0}, (0, 1, 3, 4)),
        (3, {"query": 0, "sink_policy": "compete"}, None),
        (2, {}, None),
        (2, {"ranking": [0, 1, 2, 3]}, (0, 2, 3, 4)),
        (2, {"ranking": [0, 1, 2, 3], "query": 0}, None),
    ],
)
def test_the_fewest_cells_follow_query_ranking_and_policy(n, options, boundaries):
    """Each option alone changes the answer."""
    found = gb.CellRegime.fewest(TWO_QUERIES, n, **options)

    assert (found and found.boundaries) == boundaries


def test_fewest_cells_that_exact_numbers_do_not_confirm_are_none(monkeypatch):
    """The search in floats is asked, its answer is not believed."""
    assert gb.CellRegime.fewest(LINE, 2).boundaries == (0, 2, 5)
    assert gb.CellRegime.fewest(LINE, 4) is None

    monkeypatch.setattr(regime_module, "fewest_cuts", lambda *_: (4,))
    assert gb.CellRegime.fewest(LINE, 4) is None


def test_cells_of_single_tokens_bound_the_power_exactly_with_a_selected_sink():
    """The sink, third by weight, is the first cell; s = 7/2, phi = y^2 - 7 y."""
    head = gb.HeadData(LINE.weights[0], LINE.values, sink=2)
    regime = gb.CellRegime.fit(head, 3, split=[1, 2, 3, 4])
    found = regime.enclosure(head, gb.rank(head).select(3))

    assert found.hi[:3].tolist() == [-10, -6, Fraction(-13, 4)]
    assert found.lo[3:].tolist() == [Fraction(15, 4), 0]


def spread(n_key, seed):
    """Return a head of random numbers without a sink."""
    rng = np.random.default_rng(seed)
    weights = rng.random(n_key)
    return gb.HeadData(weights, rng.normal(size=(n_key, 3)), sink=None)


def test_nine_cells_are_the_most_unless_told_otherwise():
    """Of a head where ten certify more."""
    head = spread(40, 0)
    selection = gb.rank(head).select(10)

    assert len(gb.CellRegime.fit(head, 10, resolution=10).cells) == 10
    assert len(gb.CellRegime.fit(head, 10).cells) == 9
    assert len(fit_cells(head, selection).cells) == 9


@pytest.mark.parametrize("split", ["fast", "optimal", [1, 2, 3]])
def test_cells_are_rounded_outward_where_doubt_is_not_to_be_settled(split):
    """Every number is looser than the exact one, by less than 2^-40."""
    head = spread(6, 1)
    selection = gb.rank(head).select(2)
    exact = fit_cells(head, selection, split=split)
    loose = fit_cells(head, selection, split=split, settle_doubt=False)

    assert [c.stop for c in exact.cells] == [c.stop for c in loose.cells]
    for own, wide in zip(exact.cells, loose.cells, strict=True):
        sign = 1 if own.stop <= 2 else -1
        assert 0 < sign * (wide.norm - own.norm) < Fraction(1, 2**40)
        assert 0 < sign * (own.dot - wide.dot) < Fraction(1, 2**40)


def test_the_fast_search_serves_more_tokens_than_the_optimal_one():
    """Nine selected are too many for the latter only."""
    assert len(gb.CellRegime.fit(spread(12, 2), 9, split="fast").cells) > 1
    message = r'^CellRegime: n must be at most 8 for split="optimal", got n=9\.$'
    with pytest.raises(gb.ArgumentError, match=message):
        gb.CellRegime.fit(spread(12, 2), 9, split="optimal")


def test_an_unknown_split_is_refused_in_these_words():
    """The whole message."""
    message = (
        r'^CellRegime: split must be "fast", "optimal" or cuts, got split=\'x\'\.$'
    )
    with pytest.raises(gb.ArgumentError, match=message):
        gb.CellRegime.fit(LINE, 2, split="x")


ONE_EACH = arrange(CHOICE, None)


@pytest.mark.parametrize(
    ("numbers", "hi", "lo"),
    [
        ((1.0, -1.0, 5.5), 7.5 + 7 * 2.0**-50, 7.5 - 6 * 2.0**-50),
        ((1.0, -3.5, 0.5), 7.5 + 6 * 2.0**-50, 7.5 - 6 * 2.0**-50),
        ((0.0, -1.0, 5.0), 29 * 2.0**-1074, -29 * 2.0**-1074),
        ((1.0, 0.0, 0.0), 20 * 2.0**-1074, -20 * 2.0**-1074),
        ((2.0, 0.0, 0.0), 49 * 2.0**-1074, -49 * 2.0**-1074),
    ],
)
def test_rounded_cells_are_widened_by_four_units_the_term_for_underflow_and_steps(
    numbers, hi, lo
):
    """phi = 15/2, or 0: a step each of q, of t and of the end; the rest is B and E."""
    w, t, q = numbers
    x = DotProducts(*(np.array([a, a]) for a in (w, t, q, 0.0, 0.0, 0.0)))
    found = regime_module._rounded_cells(x, ONE_EACH, ())

    assert (found.hi.tolist(), found.lo.tolist()) == ([hi, np.inf], [-np.inf, lo])
    assert found.n == 1


@pytest.mark.parametrize("sink", [None, 0, 1, 7])
@pytest.mark.parametrize("cuts", [(), (3,), (1, 3, 5, 6)])
@pytest.mark.parametrize("radius", [0.0, 0.25])
def test_rounded_cells_are_the_exact_bounds_hardly_widened(sink, cuts, radius):
    """Against the extremes of q and t, moved by their radii, in every cell."""
    rng = np.random.default_rng(3)
    head = gb.HeadData(rng.random(8), rng.normal(size=(8, 3)), sink=sink)
    selection = gb.rank(head).select(3)
    arrangement = arrange(selection, sink)
    x = dot_products(head, selection)
    wide = x.q_radius + radius, x.t_radius + radius / 2
    x = DotProducts(x.w, x.t, x.q, x.bulk, wide[1], wide[0])
    found = regime_module._rounded_cells(x, arrangement, cuts)

    order = arrangement.order.tolist()
    w, t, q, tr, qr = (
        [Fraction(a) for a in column[order].tolist()]
        for column in (x.w, x.t, x.q, x.t_radius, x.q_radius)
    )
    ends = sorted({*arrangement.boundaries, *cuts})
    for start, stop in itertools.pairwise(ends):
        sign = 1 if stop <= 3 else -1
        norm = max(sign * q[i] + qr[i] for i in range(start, stop))
        dot = min(sign * t[i] - tr[i] for i in range(start, stop))
        for i in range(start, stop):
            true = w[i] * w[i] * norm - 2 * w[i] * dot
            most = w[i] * w[i] * abs(norm) + 2 * w[i] * abs(dot)
            end = Fraction(float(found.hi[i] if sign > 0 else -found.lo[i]))
            assert true < end <= true + 12 * most / 2**53
            assert (found.lo[i] if sign > 0 else found.hi[i]) == -sign * np.inf


@pytest.mark.parametrize(
    ("index", "field", "number", "text"),
    [
        (0, "norm", 15, "cell [0, 2) must be at least %s, got 15 against 16 at key 0."),
        (0, "dot", 13, "cell [0, 2) must be at most %s, got 13 against 12 at key 0."),
        (1, "norm", 1, "cell [2, 5) must be at most %s, got 1 against 0 at key 4."),
        (1, "dot", 5, "cell [2, 5) must be at least %s, got 5 against 6 at key 2."),
    ],
)
def test_a_wrong_number_is_named_in_these_words(index, field, number, text):
    """Limit, number and key; the assumption is named too."""
    cells = list(gb.CellRegime.fit(LINE, 2, resolution=2).cells)
    cells[index] = dataclasses.replace(cells[index], **{field: Fraction(number)})

    with pytest.raises(gb.AssumptionError) as caught:
        gb.CellRegime(2, tuple(cells)).check(LINE)
    words = text % "that of its tokens"
    assert str(caught.value) == f"CellRegime: {field} of {words}"
    assert caught.value.assumption == f"{field} bound"


def test_cells_that_do_not_cover_are_named_in_these_words():
    """The boundaries wanted and those found."""
    wrong = gb.CellRegime(2, (gb.Cell(0, 2, Fraction(1), Fraction(1)),))

    with pytest.raises(gb.AssumptionError) as caught:
        wrong.check(LINE)
    assert str(caught.value) == (
        "CellRegime: cells must cover the 5 candidates in order and keep the "
        "boundaries (0, 2, 5), got boundaries (0, 2)."
    )


def test_cuts_that_are_no_integers_or_out_of_range_are_refused_in_these_words(plain):
    """The whole messages."""
    head = plain.HeadData(LINE.weights[0], LINE.values)
    with pytest.raises(TypeError) as caught:
        plain.CellRegime.fit(head, 2, split=[1.5])
    assert str(caught.value) == ("CellRegime: split must hold integer cuts, got [1.5].")
    with pytest.raises(gb.ArgumentError) as refused:
        gb.CellRegime.fit(LINE, 2, split=[6])
    assert str(refused.value) == (
        "CellRegime: split must hold cuts from 1 to 4, got [6]."
    )


def test_cells_that_overflow_in_floats_are_refused_in_these_words():
    """Only where doubt is not to be settled."""
    head = gb.HeadData([0.5, 0.25], [[2.0**1000], [1.0]], sink=None)
    selection = gb.rank(head).select(1)

    assert len(fit_cells(head, selection, split=[1]).cells) == 2
    with pytest.raises(gb.ArgumentError) as caught:
        fit_cells(head, selection, split=[1], settle_doubt=False)
    assert str(caught.value) == (
        "CellRegime: numbers must be finite in float64 where doubt is not settled, "
        "got an overflow. Use settle_doubt=True."
    )


def test_the_fewest_cells_hold_exact_numbers():
    """Those of the same cuts, though no number of this head is short."""
    head = gb.HeadData(
        [0.7, 0.2, 0.1], [[1.1, 0.1], [0.9, 0.2], [-1.3, 0.7]], sink=None
    )
    found = gb.CellRegime.fewest(head, 2)

    assert found == gb.CellRegime.fit(head, 2, split=found.boundaries[1:-1])


def test_the_optimal_search_certifies_more_than_the_fast_one_somewhere():
    """0 against 1/3."""
    head = spread(10, 10)
    selection = gb.rank(head).select(3)
    bounds = [
        interval_counts(
            fit_cells(head, selection, resolution=4, split=split).enclosure(
                head, selection
            )
        ).f_score.lower
        for split in ("fast", "optimal")
    ]

    assert bounds == [0, Fraction(1, 3)]


@pytest.mark.parametrize("w", [0.0, 1.0])
def test_rounded_cells_that_overflow_are_given_the_whole_line(w):
    """0 times infinity, and infinity less infinity."""
    x = DotProducts(*(np.array([a, a]) for a in (w, np.inf, np.inf, 0.0, 0.0, 0.0)))
    found = regime_module._rounded_cells(x, ONE_EACH, ())

    assert found.hi.tolist() == [np.inf, np.inf]
    assert found.lo.tolist() == [-np.inf, -np.inf]


def test_numbers_rounded_outward_are_one_step_beyond_their_radius():
    """Norms and products of single tokens, on both sides."""
    head = spread(6, 1)
    selection = gb.rank(head).select(2)
    x = dot_products(head, selection)
    regime = fit_cells(head, selection, split=[1, 2, 3, 4, 5], settle_doubt=False)

    for i, cell in enumerate(regime.cells):
        sign = 1 if i < 2 else -1
        norm = np.nextafter(x.q[i] + sign * x.q_radius[i], sign * np.inf)
        dot = np.nextafter(x.t[i] - sign * x.t_radius[i], -sign * np.inf)
        assert (cell.norm, cell.dot) == (Fraction(float(norm)), Fraction(float(dot)))


@pytest.mark.parametrize(
    ("n", "cuts", "boundaries"),
    [(2, (1,), (0, 1, 2, 5)), (4, (2,), (0, 3, 4, 5))],
)
def test_the_better_of_both_searches_is_kept_and_of_equals_the_optimal_one(
    monkeypatch, n, cuts, boundaries
):
    """Whatever the search in floats returns: it is judged exactly."""
    monkeypatch.setattr(regime_module, "optimal_cuts", lambda *_: cuts)
    found = gb.CellRegime.fit(LINE, n, resolution=5, split="optimal")

    assert found.boundaries == boundaries


@pytest.mark.parametrize(
    ("weights", "values", "sink", "boundaries"),
    [
        (
            [3, 1, 2, 4, 3, 1],
            [[1, 1], [2, -2], [-2, 2], [-2, 0], [-2, -1], [0, 0]],
            2,
            (0, 1, 2, 4, 5, 6),
        ),
        (
            [1, 2, 4, 1, 4],
            [[1, 0], [2, 2], [0, 1], [1, 1], [0, 2]],
            4,
            (0, 1, 2, 4, 5),
        ),
    ],
)
def test_the_fewest_cells_are_searched_with_an_unselected_sink_at_the_end(
    weights, values, sink, boundaries
):
    """Among the others, it would cost a cell or the certificate."""
    head = gb.HeadData(np.array(weights) / 8, np.array(values, float), sink=sink)

    assert gb.CellRegime.fewest(head, 1).boundaries == boundaries


# Counts of a selection


def test_counts_of_a_selection_are_euclidean_and_settled_unless_told_otherwise():
    """Cosines of (1) and (5) tie, their distances do not; equal contributions do."""
    line = gb.HeadData([0.5, 0.25], [[1.0], [5.0]])
    clear = selection_counts(line, gb.rank(line).select(1))

    assert clear.exact
    assert clear.fp_upper == 0
    assert selection_counts(line, gb.rank(line).select(1), "cosine").fp_lower == 1
    assert selection_counts(PAIR, CHOICE).fp_lower == 1
    assert not selection_counts(PAIR, CHOICE, settle_doubt=False).exact


def test_counts_of_a_selection_use_the_dot_products_given():
    """Those of another head settle what is a tie of this one."""
    x = products(1.0, 100.0, 0.0)

    assert selection_counts(PAIR, CHOICE, dots=x).fp_upper == 0
    assert selection_counts(PAIR, CHOICE).fp_upper == 1


# The margin of cosines

THREE = [[1.0, 0.0], [1.0, 1.0]]


def test_the_cosine_margin_of_a_tie_of_irrational_cosines_is_zero():
    """An unselected token equals the far selected one: both ends are 0."""
    head = gb.HeadData([0.5, 0.25, 0.25], [*THREE, [1.0, 1.0]])

    assert gb.measure(head, 2, distance="cosine").margin == gb.Interval(
        Fraction(0), Fraction(0)
    )


def test_a_positive_cosine_margin_is_enclosed():
    """s = (3/4, 1/4): sqrt(4/5) - sqrt(1/10), of square 9/10 - (2/5) sqrt(2)."""
    head = gb.HeadData([0.5, 0.25, 0.25], [*THREE, [0.0, 1.0]])
    margin = gb.measure(head, 2, distance="cosine").margin

    assert 0 < margin.lower < margin.upper < margin.lower + Fraction(1, 2**50)
    root = [
        (Fraction(9, 10) - x * x) / Fraction(2, 5) for x in (margin.lower, margin.upper)
    ]
    assert root[1] ** 2 <= 2 <= root[0] ** 2


def test_a_negative_cosine_margin_is_enclosed():
    """s = (1/2, 1/4): sqrt(1/5) - sqrt(9/10), of square 11/10 - (3/5) sqrt(2)."""
    head = gb.HeadData([0.5, 0.25, 0.125], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    margin = gb.measure(head, 2, distance="cosine").margin

    assert 0 > margin.upper > margin.lower > margin.upper - Fraction(1, 2**50)
    root = [
        (Fraction(11, 10) - x * x) / Fraction(3, 5)
        for x in (margin.lower, margin.upper)
    ]
    assert root[0] ** 2 <= 2 <= root[1] ** 2


# The independent checker: every reason word for word

SENTENCES = {
    "boundary_tie: should be False",
    "cell [0, 1): does not hold at key 0",
    "cell [4, 5): does not hold at key 5",
    "cells: missing or unknown fields",
    "cells: not a list",
    "cells: one holds selected and unselected keys",
    "cells: the sink shares a cell",
    "cells: they do not cover the candidates in order",
    "certificate: missing or unknown fields",
    "claims: missing or unknown fields",
    "claims: none",
    "claims: one n twice",
    "definitions: missing or unknown fields",
    "definitions: not an object",
    "definitions: sink: should be 0",
    "definitions: unknown comparison",
    "definitions: unknown distance",
    "definitions: unknown ranking",
    "definitions: unknown sink_policy",
    "definitions: unknown ties",
    "f_score: should be '4/7'",
    "false_negatives: at least 1 follow",
    "false_negatives: range",
    "false_positives: at least 1 follow",
    "false_positives: range",
    "format: unknown, 'geobounds-certificate' version 2.0",
    "format: unknown, 'geobounds-certificate' version 3",
    "format: unknown, 'geobounds-certificate' version True",
    "format: unknown, 'x' version 2",
    "format: unknown, None version 2",
    "head: d_head: should be 2",
    "head: mass: should be '1'",
    "head: missing or unknown fields",
    "head: n_candidates: should be 4",
    "head: n_candidates: should be 5",
    "head: n_key: should be 6",
    "head: no query at position 9",
    "head: not the head that was certified (its sha256 differs)",
    "inversions: there are 1",
    "measured: should be '4/7'",
    "n: out of range",
    "n_unselected: should be 3",
    "precision: should be '2/3'",
    "recall: should be '1/2'",
    "regime: missing or unknown fields",
    "regime: not an object",
    "regime: unknown name",
    "selected: should be [2, 0]",
    "selected: should be [2, 3, 0]",
    "selected: should be [2, 3, 4]",
    "selected: should be [2, 3]",
    "selected: should be [2]",
    "verdict: should be 'bounded'",
}


@pytest.mark.parametrize("name", test_verify.EDITS)
def test_every_reason_is_a_known_sentence(name):
    """No word more or less: the sentences are matched by readers and by scripts."""
    data = copy.deepcopy(test_verify.BASE["cells"])
    test_verify.EDITS[name][0](data)

    for reason in gb.verify(test_verify.resigned(data), test_verify.HEAD).reasons:
        sentence = re.sub(r"\A(n=[^:]*: )?(a number .* terms: .*)?", "", reason)
        assert sentence in SENTENCES | {""}


TOKENS = test_tamper.TOKENS
NORMS, ALONE = "roles, norms", "weights alone"


def halfway(limit, base):
    """Return a fraction hardly away from a number, over this denominator."""
    return str(base + Fraction(limit, abs(limit) ** 2))


LOW, HIGH = (lambda d: halfway(-d, 5)), (lambda d: halfway(d, 10))
LIST = "token_norms: not a list, or not for this regime"
TRIPLE = "token_norms: not [key, low, high]"
BITS = "norms_selected: no common denominator of 8192 bits"
SPAN = "norms_selected: not [low, high]"
REGIMES = [
    ("roles", {"token_norms": "x"}, LIST),
    ("roles", {"token_norms": {}}, LIST),
    ("roles", {"token_norms": None}, LIST),
    (NORMS, {"token_norms": "x"}, LIST),
    (NORMS, {"token_norms": {}}, LIST),
    *(
        (NORMS, {"token_norms": [*TOKENS, token]}, TRIPLE)
        for token in (
            [2, "5"],
            ["2", "5", "5"],
            [True, "5", "5"],
            [7, "5", "5"],
            [-1, "5", "5"],
            5,
            "abc",
        )
    ),
    (NORMS, {"token_norms": [*TOKENS, TOKENS[0]]}, "token_norms: a key twice"),
    (NORMS, {"token_norms": TOKENS[:-1]}, "token_norms: none for key 6"),
    (
        NORMS,
        {"norms_selected": None, "norms_unselected": ["6", "10"]},
        "norms: do not hold at key 5",
    ),
    (NORMS, {"norms_selected": None}, None),
    *(
        (case, {label: None}, f"{label}: missing")
        for case in ("roles", ALONE)
        for label in (
            "norms_selected",
            "norms_unselected",
            "sink_norm",
            "cosine_selected",
            "cosine_across",
            "sink_selected",
            "sink_across",
        )
    ),
    *(
        ("roles", {"norms_selected": pair}, SPAN)
        for pair in ("ab", ["5"], ["5", "10", "11"])
    ),
    *(
        (case, {"norms_selected": pair}, "norms: do not hold at key 2")
        for case in ("roles", ALONE)
        for pair in (["-1", "10"], ["10", "5"])
    ),
    ("roles", {"norms_selected": ["6", "10"]}, "norms: do not hold at key 2"),
    (ALONE, {"norms_selected": ["6", "10"]}, None),
    ("roles", {"norms_selected": ["5", "9"]}, "norms: do not hold at key 3"),
    ("roles", {"norms_selected": [LOW(2**8191), "10"]}, None),
    ("roles", {"norms_selected": ["5", HIGH(2**8191)]}, None),
    ("roles", {"norms_selected": [LOW(2**8192 - 1), "10"]}, None),
    ("roles", {"norms_selected": [LOW(2**8192), "10"]}, BITS),
    ("roles", {"norms_selected": ["5", HIGH(2**8192)]}, BITS),
    ("roles", {"norms_selected": [LOW(3), HIGH(2**8191)]}, BITS),
    (
        "roles",
        {"norms_selected": [LOW(2**8191), "10"], "norms_unselected": [LOW(3), "10"]},
        BITS.replace("selected", "unselected"),
    ),
    (
        "roles",
        {"cosine_selected": "8/25"},
        "cosine_selected: does not hold at keys 2, 3",
    ),
    ("roles", {"cosine_across": "23/25"}, "cosine_across: does not hold at keys 3, 4"),
    ("roles", {"sink_selected": "-2/5"}, "sink_selected: does not hold at keys 0, 3"),
    ("roles", {"sink_across": "9/10"}, "sink_across: does not hold at keys 0, 6"),
    ("roles", {"pull_across": "1"}, "pull_across: does not hold at key 6"),
    (ALONE, {"pull_across": "1"}, None),
    (ALONE, {"cosine_selected": "8/25"}, None),
    (
        "roles, sink aside",
        {"pull_across": "9"},
        "pull_across: by role with the sink selected only",
    ),
    (
        "all pairs",
        {"pull_across": "9"},
        "pull_across: by role with the sink selected only",
    ),
    (
        "all pairs",
        {"norms_selected": ["5", "6"]},
        "regime: norms by role in the regime of all pairs",
    ),
    ("roles", {"note": "x"}, "regime: missing or unknown fields"),
]


@pytest.mark.parametrize(("case", "fields", "reason"), REGIMES)
def test_a_pairwise_number_is_refused_in_these_words_or_accepted(case, fields, reason):
    """Each number alone is changed; those that are still true pass."""
    data, heads = test_tamper.CASES[case]
    found = test_tamper.verify(test_tamper.with_regime(case, **fields), *heads)
    n = data["claims"][0]["n"]

    assert found.reasons == (() if reason is None else (f"n={n}: {reason}",))


HALF = gb.HeadData(
    test_tamper.WEIGHTS,
    np.array(test_tamper.VALUES) / 2,
    visible=test_tamper.VISIBLE,
)


@pytest.mark.parametrize(
    "regime",
    ["cells", "inversions", "pairwise", "pairwise-roles", "pairwise-roles-norms"],
)
@pytest.mark.parametrize("options", [{}, test_tamper.ASIDE, {"sink_policy": "drop"}])
def test_values_in_halves_are_certified_and_accepted(regime, options):
    """Neither the unit of the weights nor that of the values is 1."""
    data = test_tamper.plain(gb.certify(HALF, [2, 3], regime=regime, **options))

    assert test_tamper.verify(data, HALF).reasons == ()


def test_a_certificate_of_weights_alone_holds_on_a_condition(tmp_path, capsys):
    """The program says so in one line, and the outcome is conditional."""
    data, (head,) = test_tamper.CASES[ALONE]
    (tmp_path / "c.json").write_text(test_tamper.json.dumps(data), encoding="utf-8")
    head.save(tmp_path / "h.npz")
    paths = [str(tmp_path / name) for name in ("c.json", "h.npz")]

    assert gb.verify(*paths) == gb.Verification(ok=True, conditional=True)
    assert main(paths) == 0
    assert capsys.readouterr().out == "holds if the values meet the regime\n"


def test_the_program_names_a_file_that_it_cannot_read(tmp_path, capsys):
    """On stderr, with status 2, and nothing on stdout."""
    path = str(tmp_path / "none.json")

    assert main([path, path]) == 2
    assert capsys.readouterr() == ("", f"verify: {path}: No such file or directory\n")


def test_the_program_says_how_it_is_used_in_one_line(capsys):
    """On stderr, and nothing on stdout."""
    assert main([]) == 2
    usage = "usage: python verify.py CERT.json HEAD.npz [HEAD ...]\n"
    assert capsys.readouterr() == ("", usage)


def test_the_program_prints_each_reason_in_ascii_on_a_line_of_its_own(tmp_path, capsys):
    """Two false claims are two lines; letters of a path are escaped."""
    data = copy.deepcopy(test_verify.BASE["cells"])
    for claim in data["claims"]:
        claim["recall"] = "9/10"
    text = test_verify.json.dumps(test_verify.resigned(data))
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    test_verify.HEAD.save(tmp_path / "h.npz")

    assert main([str(tmp_path / "c.json"), str(tmp_path / "h.npz")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20] for line in lines] == [
        "n=2: recall: should ",
        "n=3: recall: should ",
    ]

    (tmp_path / "h\xe9.npz").write_bytes(b"no head")
    assert main([str(tmp_path / "c.json"), str(tmp_path / "h\xe9.npz")]) == 1
    assert "h\\xe9.npz is not a head file" in capsys.readouterr().out


def test_no_head_at_all_is_a_refusal():
    """In these words."""
    found = gb.verify(test_verify.BASE["cells"])

    assert found == gb.Verification(ok=False, reasons=("head: none given",))


SET, SET_HEADS = test_tamper.CASES["set"]


def with_second_recall():
    """Return a signed set whose second certificate claims too much."""
    data = copy.deepcopy(SET)
    data["certificates"][1]["claims"][0]["recall"] = "9/10"
    data["certificates"][1] = test_tamper.signed(data["certificates"][1])
    return test_tamper.signed(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        *(
            (test_tamper.signed(SET | {"certificates": members}), "certificates: none")
            for members in ([], {}, "x", {"a": 1}, None)
        ),
        (
            test_tamper.signed(SET | {"version": 1}),
            "format: unknown, 'geobounds-certificates' version 1",
        ),
        (
            test_tamper.signed(SET | {"note": 1}),
            "certificate: missing or unknown fields",
        ),
        (
            SET | {"certificates": SET["certificates"][:1]},
            "sha256: the content was changed after signing",
        ),
        (with_second_recall(), "certificate 1: n=2: recall: should be '0'"),
    ],
)
def test_a_wrong_set_is_refused_in_these_words(data, reason):
    """One reason, with the place of the certificate that it is about."""
    assert gb.verify(SET, *SET_HEADS).reasons == ()
    assert gb.verify(data, *SET_HEADS).reasons == (reason,)


def test_a_set_without_one_of_its_heads_is_refused():
    """The place of the certificate whose head is missing."""
    found = gb.verify(SET, SET_HEADS[0]).reasons

    assert found == ("certificate 1: head: no query at position 5",)


CELLS, PLAIN = test_verify.BASE["cells"], test_verify.HEAD


@pytest.mark.parametrize(
    ("data", "heads", "reason"),
    [
        (
            CELLS | {"versions": {}},
            [PLAIN],
            "sha256: the content was changed after signing",
        ),
        (
            CELLS,
            [gb.HeadData(test_verify.WEIGHTS, visible=test_verify.VISIBLE)],
            "head: it has no values",
        ),
        ("a\0b", [PLAIN], "certificate: embedded null byte"),
        (
            CELLS | {"versions": {"a": {1}}},
            [PLAIN],
            "certificate: not JSON data (Object of type set is not JSON serializable)",
        ),
        (3, [PLAIN], "certificate: not a JSON object"),
        (
            CELLS,
            [3],
            "head: 3 is not a head file ('int' object has no attribute 'stored')",
        ),
    ],
)
def test_what_is_no_certificate_or_no_head_is_refused_in_these_words(
    data, heads, reason
):
    """One reason, and the outcome is false without a condition."""
    found = gb.verify(data, *heads)

    assert found == gb.Verification(ok=False, reasons=(reason,), conditional=False)
    assert found.ok is False


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"values": np.full((6, 2), np.nan)}, "head: NaN or infinity"),
        (
            {"weights": np.array([[-1, 0, 0.25, 0.5, 0, 0.0]])},
            "head: a negative weight, or weight on a hidden key",
        ),
        (
            {"weights": np.array([[1, 0.5, 0.25, 0.5, 0, 0]])},
            "head: a negative weight, or weight on a hidden key",
        ),
    ],
)
def test_a_head_that_was_not_validated_is_refused_in_these_words(changes, reason):
    """Whole messages."""
    head = test_verify.Arrays(**changes)

    assert gb.verify(head.signed(), head).reasons == (reason,)


LIMITS = "measured: not [low, high]"
MEASURED = [
    (["1/3"], LIMITS),
    (["0", "1/2", "1"], LIMITS),
    (["1", "0"], "measured: F is 1"),
    (["0", "1"], None),
    (["1/2", "1"], None),
    (["1/2", "1/2"], "measured: F is 1"),
    (["1", "1"], "measured: F is 1"),
    (["-1", "1"], "measured: F is 1"),
    (["0", "2"], "measured: F is 1"),
    (["0", "1/2"], "measured: F is 1"),
    ("0", "measured: should be '1'"),
    (None, "measured: should be '1'"),
    (["0", 1], "a number is no fraction in lowest terms: 1"),
    ([None, "1"], "a number is no fraction in lowest terms: None"),
]


@pytest.mark.parametrize("name", ["interval", "undecided"])
@pytest.mark.parametrize(("measured", "reason"), MEASURED)
def test_an_interval_measured_is_accepted_or_refused_in_these_words(
    name, measured, reason
):
    """F is 1, between the limits of the metric, and the interval is no number."""
    data, heads = test_tamper.CASES[name]
    path = ("claims", 0, "measured")
    changed = test_tamper.signed(test_tamper.replaced(data, path, measured))

    found = test_tamper.verify(changed, *heads).reasons
    assert found == (() if reason is None else (f"n=1: {reason}",))


@pytest.mark.parametrize(
    ("name", "path", "value", "reason"),
    [
        (
            "undecided",
            ("claims", 0, "measured"),
            "1",
            "n=1: verdict: should be 'vacuous'",
        ),
        (ALONE, ("version",), 1, "head: it has no values"),
        (ALONE, ("claims", 0, "measured"), "1", "n=3: measured: should be None"),
        (ALONE, ("claims", 0, "measured"), ["0", "1"], "n=3: measured: should be None"),
        (
            ALONE,
            ("definitions", "ranking"),
            "contribution",
            "definitions: ranking by contribution without values",
        ),
        (
            "scores",
            ("definitions", "scores"),
            ["1"],
            "definitions: scores of wrong length",
        ),
        (
            "scores",
            ("definitions", "scores"),
            {},
            "definitions: scores of wrong length",
        ),
        (
            "interval",
            ("version",),
            1,
            "n=1: measured: should be '1'",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_refused_in_these_words(name, path, value, reason):
    """One field of a true certificate is changed."""
    data, heads = test_tamper.CASES[name]
    changed = test_tamper.signed(test_tamper.replaced(data, path, value))

    assert test_tamper.verify(changed, *heads).reasons == (reason,)


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (["1/2", "3/4"], None),
        (["1/2", "12/17"], None),
        (["12/17", "3/4"], None),
        (["1/2", "1"], "undecided"),
    ],
)
def test_a_claim_is_undecided_only_if_the_measured_f_may_be_one(measured, verdict):
    """F is 12/17; any limits around it pass, and only 1 as the upper changes this."""
    data, heads = test_tamper.CASES["few cells"]
    path = ("claims", 0, "measured")
    changed = test_tamper.signed(test_tamper.replaced(data, path, measured))
    reason = f"n=3: verdict: should be {verdict!r}"

    found = test_tamper.verify(changed, *heads).reasons
    assert found == ((reason,) if verdict else ())


class Given:
    """A head that gives the checker these arrays and facts."""

    def __init__(self, arrays, facts):
        self.stored = lambda: (arrays, facts)


@pytest.mark.parametrize(
    ("arrays", "name"),
    [({}, "weights"), ({"weights": ("float64", (1, 2), bytes(16))}, "sink")],
)
def test_a_head_without_weights_or_sink_is_refused_in_these_words(arrays, name):
    """The kind of error and what is missing."""
    reason = f"head: its arrays do not form a head (KeyError: {name!r})"

    given = Given(arrays, {"sink": 0} if name == "weights" else {})
    assert gb.verify(CELLS, given).reasons == (reason,)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_a_bfloat16_head_is_read_from_its_file_bit_by_bit(tmp_path, ending):
    """Every byte of the upper halves matters to the digest and to the claims."""
    head = gb.HeadData(
        np.array([[0x3F00, 0x3E81, 0x3E83]], np.uint16),
        np.array([[0x3F81, 0xBF03], [0x4011, 0x3E21], [0xC0A5, 0x3F77]], np.uint16),
        dtype="bfloat16",
    )
    head.save(tmp_path / f"h{ending}")

    for n in (1, 2):
        assert gb.verify(gb.certify(head, n), tmp_path / f"h{ending}").reasons == ()


@pytest.mark.parametrize("query", [0, 1])
@pytest.mark.parametrize("ending", [None, ".npz", ".safetensors"])
def test_every_query_of_a_head_is_found_and_read_by_itself(tmp_path, query, ending):
    """The first of two as well as the last, from memory and from files."""
    data = test_tamper.plain(gb.certify(TWO_QUERIES, [1, 2], query=query))
    given = TWO_QUERIES
    if ending:
        given = tmp_path / f"h{ending}"
        TWO_QUERIES.save(given)

    assert gb.verify(data, given).reasons == ()


def test_other_members_of_a_head_file_are_not_read(tmp_path):
    """An array of another name, and another file of an array's name."""
    PLAIN.save(tmp_path / "h.npz")
    with zipfile.ZipFile(tmp_path / "h.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("note.npy", b"no array")
        archive.writestr("weights.txt", b"no array")
        archive.writestr("note.txt", b"no array")

    assert gb.verify(CELLS, tmp_path / "h.npz").reasons == ()


def test_an_array_has_at_most_eight_axes():
    """Eight pass, nine do not."""
    read = test_verify.MODULE._array

    assert read("<f8", [1] * 8, bytes(8)) == ("float64", (1,) * 8, bytes(8))
    with pytest.raises(ValueError, match=r"^\[1, 1, .* is no shape of an array$"):
        read("<f8", [1] * 9, bytes(8))


def test_the_number_of_inversions_bounds_f_at_its_limits():
    """G = 0, G just below N, and G = N."""
    joint = test_verify.MODULE._joint_bound

    assert [joint(3, g) for g in range(4)] == [
        gb.inversion_bounds(3, 5, g).f_joint for g in range(4)
    ]


@pytest.mark.parametrize("name", ["roles", NORMS, "all pairs", "roles, sink aside"])
def test_one_count_fewer_than_the_pairwise_numbers_imply_is_refused(name):
    """FP and FN are the least that follow, each alone."""
    data, heads = test_tamper.CASES[name]
    claim = data["claims"][0]
    for field in ("false_positives", "false_negatives"):
        least = claim[field]
        changed = test_tamper.replaced(data, ("claims", 0, field), least - 1)
        found = test_tamper.verify(test_tamper.signed(changed), *heads).reasons
        assert found == (f"n={claim['n']}: {field}: at least {least} follow",)
