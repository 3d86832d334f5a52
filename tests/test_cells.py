"""T6: cells, their fit, their check, and where to cut."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from cases import draw_heads
from hypothesis import given
from hypothesis import strategies as st
from strategies import build, choices, signed_permutations

import geobounds as gb
from geobounds import cells
from geobounds.cells import arrange, greedy_cuts
from geobounds.power import dot_products
from geobounds.regime import fit_cells, rounded_cell_counts
from geobounds.separability import interval_counts

# y = 2, 1, 1/2, -1/2, 0 with N = 2: s = 3, phi = -8, -5, -11/4, 13/4, 0.
HEAD = gb.HeadData(
    [0.5, 0.25, 0.25, 0.125, 0.125],
    [[4.0], [4.0], [2.0], [-4.0], [0.0]],
    sink=None,
)


def selection_of(choice):
    """Return the head and its selection."""
    head = build(choice.case)
    return head, gb.rank(head, **choice.options).select(choice.n)


def certified(head, selection, **options):
    """Return the fitted regime and the counts it implies."""
    regime = fit_cells(head, selection, **options)
    return regime, interval_counts(regime.enclosure(head, selection))


def cuts_of(head, selection, resolution):
    """Return the greedy cuts, best first."""
    arrangement = arrange(selection, head.sink)
    x, order = dot_products(head, selection), arrangement.order
    return greedy_cuts(x.w[order], x.t[order], x.q[order], arrangement, resolution)


def changed(regime, index, **numbers):
    """Return the regime with some fields of one cell replaced."""
    cells_ = list(regime.cells)
    cells_[index] = dataclasses.replace(cells_[index], **numbers)
    return gb.CellRegime(regime.n, tuple(cells_))


# Examples


def test_two_cells_hold_the_extremes_of_each_side():
    """Selected: greatest q, least t. Unselected: least q, greatest t."""
    regime = gb.CellRegime.fit(HEAD, 2, resolution=2)

    assert regime.cells == (
        gb.Cell(0, 2, Fraction(16), Fraction(12)),
        gb.Cell(2, 5, Fraction(0), Fraction(6)),
    )
    assert regime.boundaries == (0, 2, 5)


def test_cells_bound_the_power_from_one_side():
    """hi = w^2 q - 2 w t on S and lo likewise on U; the other side is open."""
    regime = gb.CellRegime.fit(HEAD, 2, resolution=2)
    found = regime.enclosure(HEAD, gb.rank(HEAD).select(2))

    assert found.hi.tolist() == [-8, -5, np.inf, np.inf, np.inf]
    assert found.lo.tolist() == [
        -np.inf,
        -np.inf,
        -3,
        Fraction(-3, 2),
        Fraction(-3, 2),
    ]


def test_the_arrangement_moves_a_selected_sink_to_the_front():
    head = gb.HeadData([0.25, 0.5, 0.125, 0.125], sink=0)
    chosen = gb.rank(head).select(2)
    found = arrange(chosen, head.sink)

    assert chosen.keys[found.order].tolist() == [0, 1, 2, 3]
    assert found.boundaries == (0, 1, 2, 4)


def test_the_arrangement_moves_an_unselected_sink_to_the_end():
    head = gb.HeadData([0.125, 0.5, 0.25, 0.0625], sink=0)
    chosen = gb.rank(head).select(2)
    found = arrange(chosen, head.sink)

    assert chosen.keys[found.order].tolist() == [1, 2, 3, 0]
    assert found.boundaries == (0, 2, 3, 4)


@pytest.mark.parametrize("sink", [None, 1])
def test_the_arrangement_without_a_candidate_sink_is_the_ranking(sink):
    head = gb.HeadData([0.25, 0.0, 0.5], visible=[True, False, True], sink=sink)
    found = arrange(gb.rank(head).select(1), head.sink)

    assert found.order.tolist() == [0, 1]
    assert found.boundaries == (0, 1, 2)


def test_cuts_of_your_own_are_kept():
    regime = gb.CellRegime.fit(HEAD, 2, split=[4, 1, 4])

    assert regime.boundaries == (0, 1, 2, 4, 5)


def test_fewer_cells_are_used_where_they_certify_as_much():
    """Two cells certify F = 1 here, so nine are not needed."""
    regime = gb.CellRegime.fit(HEAD, 2, resolution=9)

    assert len(regime.cells) == 2
    assert gb.measure(HEAD, 2).f_score.lower == 1


def test_cells_follow_query_ranking_and_policy():
    head = gb.HeadData(
        [[0.5, 0.25, 0.25, 0.0], [0.125, 0.25, 0.25, 0.5]],
        [[1.0], [2.0], [3.0], [4.0]],
        visible="all",
    )
    options = {"query": 0, "ranking": [0, 1, 2, 3], "sink_policy": "compete"}
    regime = gb.CellRegime.fit(head, 2, resolution=3, **options)

    regime.check(head, **options)
    # Selected are keys 3 and 2, y = 0 and 3/4; the sink, key 0, is the last cell.
    assert regime.cells[0] == gb.Cell(0, 2, Fraction(16), Fraction(9, 4))
    assert regime.cells[-1] == gb.Cell(3, 4, Fraction(1), Fraction(3, 4))


# Properties


@given(choices(), st.data())
def test_any_cuts_give_a_valid_bound(choice, data):
    """T6 holds. Fails for a wrong extreme, a lost factor 2 or a merged sink."""
    head, selection = selection_of(choice)
    truth = choice.truth()
    size = len(selection.keys)
    cuts = data.draw(st.lists(st.integers(1, size - 1)))
    regime, counts = certified(head, selection, split=cuts)

    gb.CellRegime.check(regime, head, **choice.options)
    assert counts.fp_upper >= truth.false_positives
    assert counts.fn_upper >= truth.false_negatives
    assert counts.inversions_upper >= truth.inversions
    assert counts.precision.lower <= truth.precision
    assert counts.recall.lower <= truth.recall
    assert counts.f_score.lower <= truth.f_score


@given(choices(), st.data())
def test_refining_never_weakens(choice, data):
    """T6: one more cut lowers no bound."""
    head, selection = selection_of(choice)
    size = len(selection.keys)
    cuts = data.draw(st.lists(st.integers(1, size - 1)))
    _, coarse = certified(head, selection, split=cuts)
    _, fine = certified(
        head, selection, split=[*cuts, data.draw(st.integers(1, size - 1))]
    )

    assert fine.fp_upper <= coarse.fp_upper
    assert fine.fn_upper <= coarse.fn_upper
    assert fine.f_score.lower >= coarse.f_score.lower


@given(choices())
def test_as_many_cells_as_candidates_certify_the_measurement(choice):
    """The top of the ladder, for greedy cells; numbers are exact in float64 here."""
    head, selection = selection_of(choice)
    size = len(selection.keys)
    regime, counts = certified(head, selection, resolution=max(size, 3))
    _, finest = certified(head, selection, split=range(1, size))
    f = choice.truth().f_score

    assert len(regime.cells) <= size
    assert counts.f_score.lower == finest.f_score.lower == f


@given(choices())
def test_greedy_cuts_are_nested_in_the_resolution(choice):
    """The first k cuts are the answer for fewer cells."""
    head, selection = selection_of(choice)
    base = len(arrange(selection, head.sink).boundaries) - 1
    most = cuts_of(head, selection, 20)

    for k in range(base, 20):
        assert cuts_of(head, selection, k) == most[: k - base]


@given(choices())
def test_greedy_cells_never_weaken_with_the_resolution(choice):
    """And never use more cells than allowed."""
    head, selection = selection_of(choice)
    base = len(arrange(selection, head.sink).boundaries) - 1
    found = [certified(head, selection, resolution=k) for k in range(base, base + 6)]
    bounds = [counts.f_score.lower for _, counts in found]

    assert bounds == sorted(bounds)
    assert all(
        len(regime.cells) <= k for k, (regime, _) in enumerate(found, start=base)
    )


@given(choices())
def test_the_first_greedy_cut_is_the_best_single_cut(choice):
    """Fails if a candidate cut is scored wrongly: compared with trying every one."""
    head, selection = selection_of(choice)
    base = len(arrange(selection, head.sink).boundaries) - 1
    _, greedy = certified(head, selection, resolution=base + 1)
    tried = [
        certified(head, selection, split=[cut])[1].f_score.lower
        for cut in range(1, len(selection.keys))
    ]

    assert greedy.f_score.lower == max(tried)


def assert_greedy(head, selection):
    """Every cut raises F most, then the gap; return the number of cuts."""
    n = selection.n

    def gain(cuts):
        regime, counts = certified(head, selection, split=cuts)
        bound = regime.enclosure(head, selection)
        return counts.f_score.lower, bound.lo[n:].min() - bound.hi[:n].max()

    taken = []
    for cut in cuts_of(head, selection, 20):
        present = {*arrange(selection, head.sink).boundaries, *taken}
        free = set(range(len(selection.keys))) - present
        assert cut in free
        assert gain([*taken, cut]) == max(gain([*taken, x]) for x in free)
        taken.append(cut)
    return len(taken)


@given(choices())
def test_every_greedy_cut_is_the_best_next_one(choice):
    """Compared, step by step, with trying every cut in exact numbers."""
    assert_greedy(*selection_of(choice))


@pytest.mark.parametrize("seed", range(4))
def test_every_greedy_cut_of_a_longer_head_is_the_best_next_one(seed):
    """Many cuts that leave F as it is: the gap decides."""
    rng = np.random.default_rng(seed)
    head = gb.HeadData(rng.dirichlet(np.full(16, 0.5)), rng.normal(1, 1, (16, 3)))

    assert assert_greedy(head, gb.rank(head).select(4)) > 3


@given(choices())
def test_the_sink_is_a_cell_of_its_own(choice):
    head, selection = selection_of(choice)
    regime = fit_cells(head, selection, resolution=3)
    arrangement = arrange(selection, head.sink)
    keys = selection.keys[arrangement.order].tolist()
    members = [keys[cell.start : cell.stop] for cell in regime.cells]

    assert list(itertools.chain(*members)) == keys
    assert all(len(m) == 1 for m in members if head.sink in m)
    assert all(cell.stop <= choice.n or cell.start >= choice.n for cell in regime.cells)


@given(choices(), st.integers(3, 9))
def test_cells_in_rounded_floats_are_never_stronger(choice, k):
    """The scan's counts; equal on these grids up to ties inside the radius."""
    head, selection = selection_of(choice)
    (rounded,) = rounded_cell_counts(head, selection, (k,))
    _, exact = certified(head, selection, resolution=k)

    assert rounded.fp_upper >= exact.fp_upper
    assert rounded.fn_upper >= exact.fn_upper


@given(choices())
def test_one_search_serves_every_resolution(choice):
    head, selection = selection_of(choice)
    dots = dot_products(head, selection)
    together = rounded_cell_counts(head, selection, (3, 5, 4), dots)

    assert together == [
        rounded_cell_counts(head, selection, (k,))[0] for k in (3, 5, 4)
    ]


@given(choices(), st.data())
def test_rotating_all_values_together_keeps_every_cell(choice, data):
    """Invariance under signed permutations of the coordinates."""
    case = choice.case
    head, selection = selection_of(choice)
    rotation = data.draw(signed_permutations(case.values.shape[1]))
    other = gb.HeadData(
        case.weights, case.values @ rotation, visible=case.visible, sink=case.sink
    )

    assert fit_cells(other, selection) == fit_cells(head, selection)


@given(choices(), st.integers(-30, 30), st.integers(-30, 30))
def test_scaling_by_powers_of_two_scales_the_numbers_of_every_cell(choice, a, b):
    """Norms scale as v^2 and dots as w v^2; cells and counts stay."""
    case = choice.case
    head, selection = selection_of(choice)
    other = gb.HeadData(
        case.weights * 2.0**a,
        case.values * 2.0**b,
        visible=case.visible,
        sink=case.sink,
    )
    regime, counts = certified(head, selection)
    scaled, same = certified(other, selection)

    assert scaled.cells == tuple(
        dataclasses.replace(
            cell,
            norm=cell.norm * Fraction(4) ** b,
            dot=cell.dot * Fraction(2) ** (a + 2 * b),
        )
        for cell in regime.cells
    )
    assert same == counts


def test_the_size_of_a_table_changes_no_cut(monkeypatch):
    """Long cells are searched in pieces; the pieces add up."""
    drawn = [
        (head, gb.rank(head).select(3))
        for head in (
            build(case)
            for case in draw_heads(seed=3, count=140)
            if case.visible.sum() > 5
        )
    ]
    whole = [cuts_of(head, selection, 9) for head, selection in drawn]
    monkeypatch.setattr(cells, "_TABLE_SIZE", 2)

    assert [cuts_of(head, selection, 9) for head, selection in drawn] == whole
    assert sum(map(len, whole)) > 50


def test_a_search_among_numbers_that_overflow_ends():
    """Powers are NaN; any cells still give a valid bound."""
    head = gb.HeadData([0.5, 0.25, 0.125], [[2.0**600], [2.0**601], [-(2.0**600)]])
    selection = gb.rank(head).select(2)
    regime, counts = certified(head, selection, resolution=9)

    regime.check(head)
    assert len(regime.cells) == 3
    assert counts.f_score.lower <= gb.measure(head, 2).f_score.lower


def test_rounded_cells_hold_on_every_shape_of_head():
    """T6 in floats against exact counts, overflow and underflow included."""
    for case in draw_heads(seed=9, count=140):
        head = build(case)
        selection = gb.rank(head).select(1)
        m = gb.measure(head, 1)
        for counts in rounded_cell_counts(head, selection, (3, 6)):
            assert counts.fp_upper >= m.false_positives
            assert counts.fn_upper >= m.false_negatives


# Tightness


@given(choices())
def test_a_looser_regime_passes_the_check_and_claims_no_more(choice):
    """Conservative numbers are no error."""
    head, selection = selection_of(choice)
    regime, counts = certified(head, selection, resolution=3)
    looser = gb.CellRegime(
        regime.n,
        tuple(
            dataclasses.replace(
                cell,
                norm=cell.norm + (1 if cell.stop <= regime.n else -1),
                dot=cell.dot - (1 if cell.stop <= regime.n else -1),
            )
            for cell in regime.cells
        ),
    )

    looser.check(head, **choice.options)
    weaker = interval_counts(looser.enclosure(head, selection))
    assert weaker.f_score.lower <= counts.f_score.lower


# Refutations


@given(choices(), st.data())
def test_the_least_tightening_of_any_number_is_refused(choice, data):
    """Every number of a fitted cell is an extreme: nothing stronger holds (T6)."""
    head, selection = selection_of(choice)
    regime = fit_cells(head, selection)
    index = data.draw(st.integers(0, len(regime.cells) - 1))
    name = data.draw(st.sampled_from(("norm", "dot")))
    cell = regime.cells[index]
    outward = (cell.stop <= regime.n) == (name == "norm")
    step = Fraction(-1 if outward else 1, 2**200)
    wrong = changed(regime, index, **{name: getattr(cell, name) + step})

    with pytest.raises(gb.AssumptionError, match=f"{name} of cell") as caught:
        wrong.check(head, **choice.options)
    assert caught.value.statement == "T6"
    assert caught.value.assumption == f"{name} bound"


@pytest.mark.parametrize(
    ("index", "numbers", "message", "measured"),
    [
        (0, {"norm": Fraction(15)}, r"norm of cell \[0, 2\) must be at least", 16),
        (0, {"dot": Fraction(13)}, r"dot of cell \[0, 2\) must be at most", 12),
        (1, {"norm": Fraction(1)}, r"norm of cell \[2, 5\) must be at most", 0),
        (1, {"dot": Fraction(5)}, r"dot of cell \[2, 5\) must be at least", 6),
    ],
)
def test_each_kind_of_wrong_number_is_named(index, numbers, message, measured):
    wrong = changed(gb.CellRegime.fit(HEAD, 2, resolution=2), index, **numbers)

    with pytest.raises(gb.AssumptionError, match=message + ".* at key") as caught:
        wrong.check(HEAD)
    assert caught.value.statement == "T6"
    assert caught.value.measured == measured


ONE = Fraction(1)


@pytest.mark.parametrize(
    "ends",
    [
        (),
        ((0, 2),),
        ((0, 5),),
        ((0, 3), (3, 5)),
        ((0, 2), (2, 4)),
        ((0, 2), (2, 6)),
        ((1, 2), (2, 5)),
        ((0, 2), (3, 5)),
        ((0, 2), (2, 2), (2, 5)),
        ((2, 5), (0, 2)),
        ((0, 2), (1, 5)),
    ],
)
def test_cells_that_do_not_cover_the_candidates_in_order_are_refused(ends):
    wrong = gb.CellRegime(2, tuple(gb.Cell(a, b, ONE, ONE) for a, b in ends))

    with pytest.raises(gb.AssumptionError, match="cells must cover the 5") as caught:
        wrong.check(HEAD)
    assert caught.value.statement == "T6"
    assert caught.value.assumption == "cells cover"
    assert caught.value.measured == wrong.boundaries


def test_a_sink_that_shares_a_cell_is_refused():
    head = gb.HeadData(HEAD.weights[0], HEAD.values, sink=0)
    wrong = gb.CellRegime.fit(HEAD, 2, resolution=2)

    with pytest.raises(gb.AssumptionError, match=r"keep the boundaries \(0, 1, 2, 5\)"):
        wrong.check(head)


def test_a_regime_fitted_to_one_head_is_refused_by_another():
    other = gb.HeadData(HEAD.weights[0], HEAD.values * 2, sink=None)

    with pytest.raises(gb.AssumptionError, match="norm of cell"):
        gb.CellRegime.fit(HEAD, 2).check(other)


# Errors


@pytest.mark.parametrize(
    ("sink", "resolution", "least"), [(None, 1, 2), (0, 2, 3), (0, 0, 3), (4, 2, 3)]
)
def test_too_few_cells_are_refused(sink, resolution, least):
    head = gb.HeadData(HEAD.weights[0], HEAD.values, sink=sink)
    message = f"resolution must be at least {least} .* got resolution={resolution}"

    with pytest.raises(gb.ArgumentError, match=r"^CellRegime: " + message):
        gb.CellRegime.fit(head, 2, resolution=resolution)
    with pytest.raises(gb.ArgumentError, match=r"^rounded_cell_counts: " + message):
        rounded_cell_counts(head, gb.rank(head).select(2), (resolution, 9))


def test_a_resolution_that_is_no_int_is_refused(plain):
    head = plain.HeadData(HEAD.weights[0], HEAD.values)
    message = "^CellRegime: resolution must be an int, got resolution="

    with pytest.raises(TypeError, match=message + "True"):
        gb.CellRegime.fit(HEAD, 2, resolution=True)
    with pytest.raises(TypeError, match=message + "3.0"):
        plain.CellRegime.fit(head, 2, resolution=3.0)


@pytest.mark.parametrize("cuts", [[6], [-1], [2, 99]])
def test_cuts_outside_the_candidates_are_refused(cuts):
    with pytest.raises(gb.ArgumentError, match="cuts from 1 to 4, got"):
        gb.CellRegime.fit(HEAD, 2, split=cuts)


def test_an_unknown_split_is_refused():
    with pytest.raises(
        gb.ArgumentError, match='split must be "fast", "optimal" or cuts'
    ):
        gb.CellRegime.fit(HEAD, 2, split="best")


def test_a_regime_for_more_tokens_than_the_head_has_is_refused():
    wrong = gb.CellRegime(5, (gb.Cell(0, 5, ONE, ONE),))

    with pytest.raises(
        gb.ArgumentError, match=r"^CellRegime: n must lie between 1 and"
    ):
        wrong.check(HEAD)


def test_cells_need_values():
    with pytest.raises(gb.HeadDataError, match="values must be given"):
        gb.CellRegime.fit(gb.HeadData([0.5, 0.25, 0.25]), 1, resolution=3)
