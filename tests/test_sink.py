"""The sink's value among the others, and the key that attracts most weight.

Cosines and norms are float64 estimates. Where the tests allow a difference it is
1e-12: some tens of roundings of numbers near 1, far below anything a description needs.
"""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

import geobounds as gb
from geobounds.sink import find_sink, sink_geometry

_ROUNDING = 1e-12


def random_head(seed, *, n_query=3, n_key=6, d=3, scale=0, dtype=np.float64):
    """Return a head with hidden keys, zero values and zero weights; key 1 is seen."""
    rng = np.random.default_rng(seed)
    visible = rng.random((n_query, n_key)) < 0.6
    visible[:, 1] |= rng.random(n_query) < 0.5
    visible[0, 1] = True
    weights = np.where(visible, rng.integers(0, 5, (n_query, n_key)) / 8, 0)
    weights[:, 1] = visible[:, 1] * 0.25
    values = np.ldexp(rng.normal(0.5, 1, (n_key, d)), scale)
    values[rng.random(n_key) < 0.15] = 0
    return gb.HeadData(
        weights.astype(dtype),
        values.astype(dtype),
        visible=visible,
        query_positions=rng.integers(0, n_key, n_query),
        sink=1,
    )


def loops(head, key):
    """Return norms and cosines of the other seen keys by the definition, slowly."""
    v = [[Fraction(float(x)) for x in row] for row in head.values]
    squares = [sum((x * x for x in row), Fraction(0)) for row in v]
    others = [
        j for j in range(head.n_key) if j != key and any(head.visible[:, j].tolist())
    ]
    dots = {j: sum(a * b for a, b in zip(v[j], v[key], strict=True)) for j in others}
    # The square of a cosine is rational: only its root is rounded.
    cosines = [
        math.copysign(math.sqrt(dots[j] ** 2 / (squares[j] * squares[key])), dots[j])
        for j in others
        if squares[j] and squares[key]
    ]
    return [math.sqrt(squares[j]) for j in others], cosines


def test_norms_and_cosines_by_hand():
    """Cosines with the sink (3, 0) are 1, 0 and -1; norms are 6, 5 and 1."""
    head = gb.HeadData([0.25] * 4, [[3.0, 0.0], [6.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])
    found = sink_geometry(head)

    assert (found.sink, found.n_other) == (0, 3)
    assert (found.sink_norm, found.median_norm) == (3.0, 5.0)
    assert found.norm_ratio == 5 / 3
    assert (found.least_cosine, found.mean_cosine, found.greatest_cosine) == (-1, 0, 1)


def test_another_key_can_be_described_in_place_of_the_heads_sink():
    head = gb.HeadData([0.25] * 3, [[3.0, 4.0], [0.0, 2.0], [0.0, -1.0]], sink=None)
    found = sink_geometry(head, sink=1)

    assert (found.sink, found.sink_norm) == (1, 2.0)
    assert (found.least_cosine, found.greatest_cosine) == (-1.0, 0.8)


def test_keys_that_no_query_sees_are_left_out():
    """Their values may even be NaN."""
    head = gb.HeadData(
        [0.5, 0.5, 0.0],
        [[1.0], [2.0], [np.nan]],
        visible=[True, True, False],
    )
    found = sink_geometry(head)

    assert (found.n_other, found.median_norm, found.least_cosine) == (1, 2.0, 1.0)


def test_zero_vectors_count_in_the_norms_and_have_no_cosine():
    head = gb.HeadData([0.25] * 4, [[2.0], [0.0], [4.0], [0.0]])
    found = sink_geometry(head)

    assert (found.n_other, found.median_norm, found.norm_ratio) == (3, 0.0, 0.0)
    assert (found.least_cosine, found.mean_cosine, found.greatest_cosine) == (1, 1, 1)


@pytest.mark.parametrize("others", [[[1.0], [3.0]], [[0.0], [0.0]]])
def test_a_sink_of_norm_zero_has_an_infinite_ratio_and_no_cosine(others):
    found = sink_geometry(gb.HeadData([0.5, 0.25, 0.25], [[0.0], *others]))

    assert found.norm_ratio == math.inf
    assert math.isnan(found.mean_cosine)
    assert math.isnan(found.least_cosine)
    assert math.isnan(found.greatest_cosine)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_a_sink_alone_has_a_norm_and_nothing_else(value):
    found = sink_geometry(gb.HeadData([1.0], [[value]]))

    assert (found.sink_norm, found.n_other) == (value, 0)
    assert math.isnan(found.median_norm)
    assert math.isnan(found.norm_ratio)
    assert math.isnan(found.mean_cosine)


@pytest.mark.parametrize("scale", [0, -1040, -600, 600, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimates_agree_with_loops_over_fractions(scale, dtype):
    """Also where squares under- or overflow; for float32 scales that it holds."""
    power = scale if dtype is np.float64 else scale // 10
    compared = 0
    for seed in range(60):
        head = random_head(seed, scale=power, dtype=dtype)
        found = sink_geometry(head)
        # Scaled back exactly, where fractions have roots within float64.
        whole = np.ldexp(head.values.astype(np.float64), -power)
        near = gb.HeadData(head.weights, whole, visible=head.visible, sink=1)
        norms, cosines = loops(near, 1)
        sink_norm = math.hypot(*whole[1])

        assert found.n_other == len(norms)
        # A subnormal norm is rounded to a multiple of 2^-1074.
        coarse = 2.0 ** max(-1074 - power, -1074) if power < 0 else 0
        for got, wanted in (
            (found.sink_norm, sink_norm),
            (found.median_norm, statistics.median(norms)),
        ):
            assert math.ldexp(got, -power) == pytest.approx(
                wanted, rel=_ROUNDING, abs=coarse
            )
        if cosines:
            compared += 1
            wanted = [statistics.fmean(cosines), min(cosines), max(cosines)]
            got = [found.mean_cosine, found.least_cosine, found.greatest_cosine]

            assert got == pytest.approx(wanted, abs=_ROUNDING)
    assert compared >= 40


def test_a_norm_that_float64_cannot_hold_is_infinite():
    found = sink_geometry(gb.HeadData([0.5, 0.5], [[1.0, 0.0], [1.5e308, 1.5e308]]))

    assert found.median_norm == found.norm_ratio == math.inf
    assert found.mean_cosine == pytest.approx(math.sqrt(0.5), abs=_ROUNDING)


@pytest.mark.parametrize("power", [-60, 3, 60])
def test_scaling_the_values_scales_the_norms_and_nothing_else(power):
    for seed in range(50):
        head = random_head(seed)
        before = sink_geometry(head)
        after = sink_geometry(
            gb.HeadData(
                head.weights,
                np.ldexp(head.values, power),
                visible=head.visible,
                sink=1,
            )
        )

        assert after.sink_norm == math.ldexp(before.sink_norm, power)
        assert after.median_norm == math.ldexp(before.median_norm, power)
        np.testing.assert_equal(
            [after.norm_ratio, after.mean_cosine, after.least_cosine],
            [before.norm_ratio, before.mean_cosine, before.least_cosine],
        )


def test_cosines_stay_within_one():
    """Parallel vectors whose rounded cosine would pass 1."""
    direction = np.random.default_rng(5).normal(0, 1, 7)
    for factor in np.linspace(0.1, 9, 200):
        found = sink_geometry(
            gb.HeadData(
                [0.5] * 3, np.array([direction, factor * direction, -direction])
            )
        )

        assert -1 <= found.least_cosine <= found.greatest_cosine <= 1


def test_the_sink_is_the_key_with_the_greatest_mean_weight():
    head = gb.HeadData(
        [[1, 0, 0, 0], [0.3, 0.7, 0, 0], [0.1, 0.6, 0.3, 0], [0.1, 0.4, 0.2, 0.3]],
        visible="causal",
    )

    assert find_sink(head) == 1


def test_a_query_does_not_count_for_its_own_key():
    """Every query reads mostly itself; of the others, key 0 attracts most."""
    head = gb.HeadData(
        [[1, 0, 0], [0.1, 0.9, 0], [0.06, 0.04, 0.9]],
        visible="causal",
    )

    assert find_sink(head) == 0


def test_a_mean_is_taken_over_the_queries_that_see_the_key():
    """Key 2 has the smaller sum, from two queries only, and the greater mean."""
    head = gb.HeadData(
        [[0.4, 0, 0], [0.3, 0.2, 0.5], [0.4, 0.1, 0.5]],
        visible=[[True, True, False], [True, True, True], [True, True, True]],
        query_positions=[3, 4, 5],
    )

    assert find_sink(head) == 2


def test_a_key_that_few_queries_see_is_left_out():
    """Key 2 has the greater mean, but one query in three sees it."""
    head = gb.HeadData(
        [[0.4, 0, 0], [0.4, 0, 0], [0.3, 0.2, 0.5]],
        visible=[[True, True, False], [True, True, False], [True, True, True]],
        query_positions=[3, 4, 5],
    )

    assert find_sink(head) == 0


@pytest.mark.parametrize(
    ("row", "key"), [([0.1, 0.2, 0.7], 2), ([0.4, 0.4, 0.2], 0), ([0.0, 0.5, 0.5], 1)]
)
def test_one_row_gives_its_heaviest_visible_key(row, key):
    """The smaller index on ties, the current token included."""
    assert find_sink(gb.HeadData(row)) == key


def test_hidden_keys_are_never_found():
    head = gb.HeadData([0.0, 0.0, 1e-9], visible=[False, False, True])

    assert find_sink(head) == 2


def test_equal_means_go_to_the_smaller_index():
    head = gb.HeadData(
        [[0.25, 0.5, 0.25, 0], [0.5, 0.25, 0, 0.25]],
        visible="all",
        query_positions=[4, 5],
    )

    assert find_sink(head) == 0


def test_rows_with_a_problem_are_not_counted():
    head = gb.HeadData(
        [[0, 1, np.nan], [0.6, 0.2, 0.2], [0.5, 0.2, 0.3]],
        visible="all",
        query_positions=[3, 4, 5],
    )

    assert find_sink(head) == 0


def test_means_agree_with_loops_over_fractions():
    """Weights in eighths over few queries: sums are exact, and equal means tie."""
    for seed in range(300):
        head = random_head(seed)
        means, seen = {}, {}
        for j in range(head.n_key):
            rows = [
                t
                for t in range(head.n_query)
                if t not in head.problems
                and head.visible[t, j]
                and head.query_positions[t] != j
            ]
            if rows:
                total = sum(Fraction(float(head.weights[t, j])) for t in rows)
                means[j] = total / len(rows)
                seen[j] = len(rows)
        often = [j for j in means if 2 * seen[j] >= max(seen.values())]

        assert find_sink(head) == min(often, key=lambda j: (-means[j], j))


def test_a_head_without_a_sink_is_refused():
    head = gb.HeadData([0.5, 0.5], [[1.0], [1.0]], sink=None)
    message = r"^sink_geometry: sink must be a key index, got sink=None and a head wit"

    with pytest.raises(gb.HeadDataError, match=message):
        sink_geometry(head)


def test_a_sink_that_no_query_sees_is_refused():
    head = gb.HeadData([0.0, 0.5], [[1.0], [1.0]], visible=[False, True])
    message = r"^sink_geometry: sink must be visible to some query, got sink=0, hidden"

    with pytest.raises(gb.HeadDataError, match=message):
        sink_geometry(head)


@pytest.mark.parametrize("sink", [-1, 2])
def test_a_sink_beyond_the_keys_is_refused(sink):
    head = gb.HeadData([0.5, 0.5], [[1.0], [1.0]])
    message = rf"must lie between 0 and 1 \(2 keys\), got sink={sink}"

    with pytest.raises(gb.ArgumentError, match=message):
        sink_geometry(head, sink=sink)


def test_a_sink_that_is_no_int_is_refused():
    head = gb.HeadData([0.5, 0.5], [[1.0], [1.0]])

    with pytest.raises(TypeError, match=r"^sink_geometry: sink must be an int, got"):
        sink_geometry(head, sink=True)


def test_a_head_without_values_has_no_sink_geometry():
    with pytest.raises(gb.HeadDataError, match=r"^sink_geometry: values must be given"):
        sink_geometry(gb.HeadData([0.5, 0.5]))


def test_a_head_whose_queries_see_only_themselves_has_no_sink():
    head = gb.HeadData(np.eye(2), visible=np.eye(2, dtype=bool))

    with pytest.raises(
        gb.HeadDataError, match=r"^find_sink: head must have a usable q"
    ):
        find_sink(head)
