"""Candidates, sink policies, rankings and ties (D2, D3)."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from cases import draw_heads
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, RANKINGS, build, choices, heads

import geobounds as gb

HEAD = gb.HeadData(
    [0.25, 0.0, 0.5, 0.125, 0.125],
    [[4.0], [9.0], [-1.0], [1.0], [8.0]],
    visible=[True, False, True, True, True],
)


def keys(ranking):
    return ranking.keys.tolist()


def test_weights_rank_visible_keys_only():
    order = gb.rank(HEAD)

    assert keys(order) == [2, 0, 3, 4]
    assert order.tied.tolist() == [False, False, True]
    assert order.barred.tolist() == []
    assert order.n_candidates == 4


def test_contributions_rank_by_weight_times_norm():
    """Contributions are 1, 1/2, 1/8 and 1: keys 0 and 4 tie."""
    order = gb.rank(HEAD, ranking="contribution")

    assert keys(order) == [0, 4, 2, 3]
    assert order.tied.tolist() == [True, False, False]


def test_scores_of_a_selector_rank_in_place_of_the_weights():
    order = gb.rank(HEAD, ranking=[0, 100, 1, 3, 3])

    assert keys(order) == [3, 4, 2, 0]
    assert order.tied.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("policy", "ranked", "barred", "count"),
    [
        ("keep", [2, 0, 3, 4], [], 4),
        ("drop", [2, 3, 4], [], 3),
        ("compete", [2, 3, 4], [0], 4),
    ],
)
def test_each_sink_policy_does_what_it_says(policy, ranked, barred, count):
    order = gb.rank(HEAD, sink_policy=policy)

    assert (keys(order), order.barred.tolist()) == (ranked, barred)
    assert order.n_candidates == count


@pytest.mark.parametrize("sink", [None, 1])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_has_no_effect_without_a_visible_sink(policy, sink):
    head = gb.HeadData(HEAD.weights[0], visible=HEAD.visible[0], sink=sink)
    order = gb.rank(head, sink_policy=policy)

    assert (keys(order), order.barred.tolist()) == ([2, 0, 3, 4], [])


@pytest.mark.parametrize(
    ("n", "selected", "unselected", "tie"),
    [
        (1, [2], [0, 3, 4], False),
        (2, [2, 0], [3, 4], False),
        (3, [2, 0, 3], [4], True),
    ],
)
def test_the_n_best_are_selected_and_a_boundary_tie_is_flagged(
    n, selected, unselected, tie
):
    chosen = gb.rank(HEAD).select(n)

    assert chosen.n == n
    assert chosen.selected.tolist() == selected
    assert chosen.unselected.tolist() == unselected
    assert chosen.keys.tolist() == selected + unselected
    assert chosen.boundary_tie is tie


def test_a_competing_sink_is_unselected_and_makes_no_boundary_tie():
    """All scores tie, but at N = 2 no key that may be selected is left out."""
    chosen = gb.rank(gb.HeadData([0.5, 0.5, 0.5]), sink_policy="compete").select(2)

    assert chosen.selected.tolist() == [1, 2]
    assert chosen.unselected.tolist() == [0]
    assert chosen.boundary_tie is False


def test_contributions_equal_up_to_the_order_of_coordinates_tie_exactly():
    """Float norms of a permuted vector differ by rounding; the exact ones do not."""
    values = np.array([[0.1, 0.7, 1e8], [1e8, 0.1, 0.7], [0.7, 1e8, 0.1]])
    order = gb.rank(gb.HeadData([0.5] * 3, values), ranking="contribution")

    assert keys(order) == [0, 1, 2]
    assert order.tied.tolist() == [True, True]


def test_contributions_one_unit_apart_are_told_apart():
    up = np.nextafter(3.0, 4)
    values = [[3.0, 4.0], [4.0, up], [4.0, 3.0]]
    order = gb.rank(gb.HeadData([0.5] * 3, values), ranking="contribution")

    assert keys(order) == [1, 0, 2]
    assert order.tied.tolist() == [False, True]


def test_contributions_that_overflow_are_ranked_exactly():
    values = [[2.0**600], [2.0**601], [1.0]]
    order = gb.rank(gb.HeadData([0.5] * 3, values), ranking="contribution")

    assert keys(order) == [1, 0, 2]


def test_contributions_that_underflow_are_ranked_exactly():
    values = [[2.0**-600], [2.0**-599], [0.0]]
    order = gb.rank(gb.HeadData([0.5] * 3, values), ranking="contribution")

    assert keys(order) == [1, 0, 2]
    assert order.tied.tolist() == [False, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_scores_may_be_a_tensor(dtype):
    scores = torch.tensor([0, 9, 1, 3, 2], dtype=dtype)

    assert keys(gb.rank(HEAD, ranking=scores)) == [3, 4, 2, 0]


def test_scores_may_be_a_tensor_that_requires_grad():
    scores = torch.tensor([0.0, 9, 1, 3, 2], requires_grad=True)

    assert keys(gb.rank(HEAD, ranking=scores)) == [3, 4, 2, 0]


def test_scores_of_hidden_keys_may_be_anything():
    scores = [0, np.nan, 1, 3, 2]

    assert keys(gb.rank(HEAD, ranking=scores)) == [3, 4, 2, 0]


def test_a_query_is_a_row_and_may_count_from_the_end():
    head = gb.HeadData([[0.5, 0.25], [0.25, 0.5]], visible="all")

    assert keys(gb.rank(head, 0)) == [0, 1]
    assert keys(gb.rank(head, -2)) == [0, 1]
    assert keys(gb.rank(head, 1)) == [1, 0]
    assert gb.rank(head, -2).row == 0


def test_random_scores_are_a_seeded_permutation():
    scores = gb.random_scores(50, 3)

    assert sorted(scores.tolist()) == list(range(50))
    assert scores.dtype == np.float64
    assert scores.tolist() == gb.random_scores(50, 3).tolist()
    assert scores.tolist() != gb.random_scores(50, 4).tolist()
    assert (
        gb.random_scores(50, [1, 2]).tolist() != gb.random_scores(50, [2, 1]).tolist()
    )


def test_random_selections_are_nested_in_n():
    order = gb.rank(HEAD, ranking=gb.random_scores(5, 0))
    chosen = [order.select(n).selected.tolist() for n in (1, 2, 3)]

    assert chosen[0] == chosen[1][:1]
    assert chosen[1] == chosen[2][:2]


@given(choices())
def test_selection_equals_the_oracle(choice):
    """Fails for a wrong order of ties, a hidden candidate or a wrong policy."""
    truth = choice.truth()
    order = gb.rank(build(choice.case), **choice.options)
    chosen = order.select(choice.n)

    assert tuple(chosen.selected) == truth.selected
    assert set(chosen.unselected.tolist()) == set(truth.unselected)
    assert chosen.boundary_tie == truth.boundary_tie


def test_contribution_ranking_equals_the_oracle_on_every_shape_of_head():
    """Near-ties, overflow and underflow included: the order is exact."""
    for case in draw_heads(seed=21, count=280):
        exact = [
            Fraction(w) ** 2 * sum(Fraction(x) ** 2 for x in row)
            for w, row in zip(case.weights.tolist(), case.values.tolist(), strict=True)
        ]
        seen = np.flatnonzero(case.visible).tolist()
        order = gb.rank(build(case), ranking="contribution")
        expected = sorted(seen, key=lambda k: (-exact[k], k))
        assert keys(order) == expected
        assert order.tied.tolist() == [
            exact[a] == exact[b] for a, b in itertools.pairwise(expected)
        ]


@given(heads(), st.sampled_from(RANKINGS), st.sampled_from(POLICIES))
def test_every_visible_key_is_ranked_barred_or_the_dropped_sink(case, ranking, policy):
    """Fails if a key is lost or stands twice."""
    order = gb.rank(build(case), ranking=ranking, sink_policy=policy)
    seen = set(np.flatnonzero(case.visible).tolist())
    sink = {case.sink} & seen
    found = keys(order) + order.barred.tolist()

    assert len(found) == len(set(found)) == order.n_candidates
    assert set(found) == (seen - sink if policy == "drop" else seen)
    assert set(order.barred.tolist()) == (sink if policy == "compete" else set())


@given(heads(), st.data())
def test_a_distinct_ranking_moves_with_the_keys(case, data):
    """Permuting the keys with their scores permutes the answer."""
    n_key = len(case.weights)
    scores = np.array(data.draw(st.permutations(range(n_key))))
    moved = np.array(data.draw(st.permutations(range(n_key))))
    head = gb.HeadData(case.weights, visible=case.visible, sink=None)
    other = gb.HeadData(case.weights[moved], visible=case.visible[moved], sink=None)

    assert (
        moved[gb.rank(other, ranking=scores[moved]).keys].tolist()
        == gb.rank(head, ranking=scores).keys.tolist()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranking": "norm"}, r'ranking must be "weight", "contribution" or an array'),
        ({"ranking": [1, 2]}, r"scores of shape \(5,\), one a key, got shape \(2,\)"),
        ({"ranking": np.ones((1, 5))}, r"got shape \(1, 5\)"),
        ({"ranking": [1, 1, np.inf, 1, 1]}, r"must be finite, got inf at key 2"),
        ({"ranking": [1, 1, 1, np.nan, 1]}, r"must be finite, got nan at key 3"),
        ({"sink_policy": "ignore"}, r"one of keep, drop, compete, got .*'ignore'"),
        ({"query": 1}, r"query must lie between -1 and 0, got query=1"),
        ({"query": -2}, r"query must lie between -1 and 0, got query=-2"),
    ],
)
def test_what_cannot_be_ranked_is_refused(options, message):
    with pytest.raises(gb.ArgumentError, match=r"^rank: " + ".*" + message):
        gb.rank(HEAD, **options)


@pytest.mark.parametrize("scores", [["a"] * 5, [1j] * 5, [None] * 5])
def test_scores_that_are_no_real_numbers_are_refused(scores):
    with pytest.raises(
        TypeError, match="ranking must be float16, bfloat16, float32 or float64"
    ):
        gb.rank(HEAD, ranking=scores)


def test_contributions_need_values():
    with pytest.raises(gb.HeadDataError, match=r"^rank: values must be given"):
        gb.rank(gb.HeadData([0.5, 0.5]), ranking="contribution")


@pytest.mark.parametrize(
    ("n", "reason"),
    [
        (4, "No token would be left unselected"),
        (9, "No token would be left unselected"),
        (0, "Select at least one token"),
        (-1, "Select at least one token"),
    ],
)
def test_an_n_out_of_range_is_refused_with_its_reason(n, reason):
    message = rf"n must lie between 1 and 3 \(4 candidates\), got n={n}\. {reason}"

    with pytest.raises(gb.ArgumentError, match=r"^select: " + message):
        gb.rank(HEAD).select(n)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_candidates_cannot_be_selected_from(count):
    """With one visible key, the sink, dropping it leaves none."""
    visible = [True, False]
    head = gb.HeadData([0.5, 0.0], visible=visible, sink=0 if count == 0 else None)
    order = gb.rank(head, sink_policy="drop")

    with pytest.raises(
        gb.ArgumentError, match=f"at least 2 candidates .* got {count} at query 0"
    ):
        order.select(1)


def test_no_candidate_at_all_can_still_be_ranked_by_contribution():
    head = gb.HeadData([0.5, 0.0], [[1.0], [1.0]], visible=[True, False])
    order = gb.rank(head, ranking="contribution", sink_policy="drop")

    assert order.n_candidates == 0


def test_a_truth_value_is_no_n():
    with pytest.raises(TypeError, match="select: n must be an int, got n=True"):
        gb.rank(HEAD).select(True)


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None])
def test_an_n_or_query_that_is_no_int_is_refused(plain, wrong):
    head = plain.HeadData([0.5, 0.25, 0.25])

    with pytest.raises(TypeError, match="select: n must be an int, got n="):
        plain.rank(head).select(wrong)
    with pytest.raises(TypeError, match="rank: query must be an int, got query="):
        plain.rank(head, wrong)


def test_numpy_integers_serve_as_n_and_query(plain):
    head = plain.HeadData([0.5, 0.25, 0.25])

    assert plain.rank(head, np.int64(-1)).select(np.int32(2)).n == 2
