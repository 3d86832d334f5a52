"""Intervals over documents, kappa, rank correlation, and the rule of a verdict."""

import math
import statistics

import numpy as np
import pytest

from empirical.study.finding import Range, judge
from empirical.study.measures import (
    class_masks,
    class_means,
    class_shares,
    cohen_kappa,
    mean_over_n,
    rank_correlation,
)
from empirical.study.resample import (
    Estimate,
    bounds,
    draws,
    interval,
    pooled_mean,
    tail,
    weighted_mean,
    weighted_median,
)

NAN = float("nan")


def repeated(x, row):
    """The documents as often as a row of weights says."""
    return [v for v, k in zip(x, row, strict=True) for _ in range(int(k))]


def test_draws_are_seeded_counts_of_documents_after_the_data():
    """Each replicate has as many documents as the data."""
    weights = draws(5, 50, seed=3)
    assert weights.shape == (51, 5)
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 5).all()
    assert (weights == weights.round()).all()
    np.testing.assert_array_equal(weights, draws(5, 50, seed=3))
    assert (weights[1:] != draws(5, 50, seed=4)[1:]).any()


def test_draws_choose_every_document_alike():
    """Each document has mean weight 1 and binomial variance."""
    weights = draws(6, 20_000)[1:]
    # Six standard errors of the mean and about that of the variance.
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.04)
    np.testing.assert_allclose(weights.var(axis=0), 5 / 6, atol=0.06)


@pytest.mark.parametrize(
    ("n", "t"), [(2, 12.7062047), (3, 4.3026527), (8, 2.3646243), (33, 2.0369333)]
)
def test_tail_is_that_of_student(n, t):
    """Against tabulated quantiles of Student's t."""
    expected = statistics.NormalDist().cdf(-math.sqrt(n / (n - 1)) * t)
    assert tail(n) == pytest.approx(expected, rel=1e-6)


def test_tail_tends_to_the_plain_percentile():
    """With many documents nothing is to be corrected."""
    assert tail(10_001) == pytest.approx(0.025, rel=1e-3)
    assert tail(8) < tail(16) < tail(32) < 0.025


@pytest.mark.parametrize("n", [8, 16, 32])
def test_interval_covers_the_mean_as_often_as_it_says(n):
    """95 % of normal samples; the plain percentile has 88 % at n = 8."""
    x = np.random.default_rng(n).normal(3, 2, size=(n, 4000))
    low, high = bounds(weighted_mean(draws(n), x), n)
    covered = np.mean((low <= 3) & (high >= 3))
    assert 0.94 <= covered <= 0.965  # three standard errors and the bootstrap's own
    assert 0.94 <= np.mean(high >= 3) + np.mean(low <= 3) - 1 <= 0.965
    assert 0.015 <= np.mean(low > 3) <= 0.035  # on each side alike
    width = (high - low).mean() / (2 * 1.96 * 2 / math.sqrt(n))
    assert 1 <= width <= 1.2  # no wider than Student's t makes it


def test_bounds_are_order_statistics_of_the_replicates():
    """By hand: 1001 replicates, the data apart; tail(10) is .0086."""
    statistic = np.array([9999.0, *range(1000, -1, -1)])
    assert interval(statistic, 10) == Estimate(9999.0, 8, 992)


def test_undefined_replicates_count_as_beyond_both_ends():
    """Few widen the interval, many leave none."""
    statistic = np.concatenate([[0.5], np.linspace(0, 1, 2000)])
    clean = interval(statistic, 100)
    statistic[1000:1020] = NAN
    few = interval(statistic, 100)
    assert few.low < clean.low
    assert few.high > clean.high
    statistic[1000:1100] = NAN
    many = interval(statistic, 100)
    assert many.value == 0.5
    assert math.isnan(many.low)
    assert math.isnan(many.high)


def test_no_interval_from_one_document_or_an_undefined_value():
    """The bootstrap of one document would claim certainty."""
    statistic = np.full(2001, 0.5)
    assert math.isnan(interval(statistic, 1).low)
    statistic[0] = NAN
    assert math.isnan(interval(statistic, 9).high)


def test_infinite_replicates_are_numbers():
    """A ratio over 0 may be infinite; that is no gap."""
    statistic = np.concatenate([[1.0], np.full(1000, 1.0), np.full(1000, np.inf)])
    assert interval(statistic, 9) == Estimate(1.0, 1.0, np.inf)


def test_weighted_mean_and_median_are_those_of_repeated_documents():
    """For every row, gaps left out; even and odd numbers of documents."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(6, 4))
    x[generator.random(x.shape) < 0.25] = NAN
    x[:, 3] = [NAN, NAN, 2.0, NAN, np.inf, NAN]
    weights = draws(6, 200)
    mean, median = weighted_mean(weights, x[:, :3]), weighted_median(weights, x)
    for r, row in enumerate(weights):
        for k in range(4):
            there = [v for v in repeated(x[:, k], row) if not math.isnan(v)]
            if not there:
                assert math.isnan(median[r, k])
                continue
            assert median[r, k] == statistics.median(there)
            if k < 3:
                assert mean[r, k] == pytest.approx(statistics.fmean(there), rel=1e-12)


def test_pooled_mean_counts_every_entry_alike():
    """A document with fewer entries weighs less."""
    x = np.array([[[1.0], [2.0], [3.0]], [[10.0], [NAN], [NAN]]])
    weights = np.array([[1.0, 1.0], [0.0, 2.0], [2.0, 0.0]])
    np.testing.assert_array_equal(pooled_mean(weights, x)[:, 0], [4.0, 10.0, 2.0])
    assert np.isnan(pooled_mean(weights, np.full((2, 3, 1), NAN))).all()


def test_mean_over_n_gives_each_n_the_same_weight():
    """Only the chosen ones; one that the data lack is left out of every row."""
    statistic = np.array([[9.0, 1.0, NAN, 3.0], [9.0, 2.0, 5.0, NAN], [9.0, 2, NAN, 4]])
    found = mean_over_n(statistic, np.array([False, True, True, True]))
    assert found[0] == 2
    assert math.isnan(found[1])
    assert found[2] == 3
    assert np.isnan(mean_over_n(statistic, np.array([False, False, True, False]))).all()


def test_class_means_follow_heads_that_change_class():
    """In each row over the heads of that row's class, missing entries left out."""
    codes = np.array([[0, 0, 1, 2], [0, 1, 1, -1]], dtype=np.int8)
    weights = np.array([[1.0, 1.0], [0.0, 2.0]])
    x = np.array([[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [NAN], [8.0]]])
    found = class_means(weights, class_masks(codes), x)[..., 0]
    np.testing.assert_array_equal(found[0], [(1 + 2 + 5 + 6) / 4, 3, 6])
    np.testing.assert_array_equal(found[1], [5, 6, NAN])
    np.testing.assert_array_equal(
        class_shares(codes), [[0.5, 0.25, 0.25], [1 / 3, 2 / 3, 0]]
    )


KAPPAS = [
    ([0, 1, 2, 0], [0, 1, 2, 0], 1.0),
    # p_o = 1/2; marginals (1/2, 1/2) both: p_e = 1/2.
    ([0, 0, 1, 1], [0, 1, 0, 1], 0.0),
    ([0, 0, 1, 1], [1, 1, 0, 0], -1.0),
    # p_o = 3/5; p_e = (3 * 2 + 2 * 2 + 0 * 1) / 25 = 2/5; (3/5 - 2/5) / (3/5) = 1/3.
    ([0, 0, 0, 1, 1], [0, 0, 1, 1, 2], 1 / 3),
    # Heads without class on either side do not count: 3 of 4, p_e = (3 * 2 + 1) / 16.
    ([0, 0, 0, 1, -1, 2], [0, 0, 1, 1, 2, -1], 0.5),
    # One class on both sides: chance agrees always, kappa is undefined.
    ([2, 2, 2], [2, 2, 2], NAN),
    # One class on one side only: agreement is what chance gives.
    ([2, 2, 2, 2], [2, 2, 0, 1], 0.0),
    ([-1, -1], [0, 1], NAN),
]


@pytest.mark.parametrize(("a", "b", "expected"), KAPPAS)
def test_kappa_of_examples_worked_by_hand(a, b, expected):
    """Also degenerate ones, in both orders."""
    for x, y in ((a, b), (b, a)):
        codes = [np.array([x], dtype=np.int8), np.array([y], dtype=np.int8)]
        found = float(cohen_kappa(*codes)[0])
        assert found == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_rank_correlation_of_examples_worked_by_hand():
    """Ties get mean ranks; gaps are left out; constants have none."""
    a = np.array([[1.0, 2, 3, 4], [1, 2, 3, NAN], [1, 1, 2, 3], [5, 5, 5, 5]])
    b = np.array([[10.0, 20, 30, 99], [3, 2, 1, 7], [1, 2, 3, 3], [1, 2, 3, 4]])
    found = rank_correlation(a, b)
    # Ranks less 2.5: (-1, -1, .5, 1.5) and (-1.5, -.5, 1, 1), product 4, squares 4.5.
    np.testing.assert_allclose(found, [1, -1, 4 / 4.5, NAN], rtol=1e-15)
    two = np.array([[1.0, 2, NAN]])
    assert np.isnan(rank_correlation(two, two)).all()


ABOVE, WITHIN, MOST = Range(least=0, strict=True), Range(3, 10), Range(greatest=0.5)
VERDICTS = [
    (ABOVE, (0.1, 0.3), "supported"),
    (ABOVE, (-0.3, -0.1), "not supported"),
    (ABOVE, (-0.1, 0.3), "undecided"),
    (ABOVE, (0.0, 0.3), "undecided"),
    (ABOVE, (-0.3, 0.0), "not supported"),
    (ABOVE, (0.0, 0.0), "not supported"),
    (WITHIN, (3.0, 10.0), "supported"),
    (WITHIN, (2.9, 9.0), "undecided"),
    (WITHIN, (1.0, 4.0), "undecided"),
    (WITHIN, (9.0, 13.0), "undecided"),
    (WITHIN, (4.0, 10.1), "undecided"),
    (WITHIN, (2.0, 11.0), "undecided"),  # on both sides is not outside
    (WITHIN, (1.0, 2.9), "not supported"),
    (WITHIN, (10.1, 12.0), "not supported"),
    (MOST, (0.2, 0.5), "supported"),
    (MOST, (0.4, 0.6), "undecided"),
    (MOST, (0.51, 0.6), "not supported"),
    (Range(0, 0), (0.0, 0.0), "supported"),
    (Range(0, 0), (3.0, 3.0), "not supported"),
    (ABOVE, (NAN, NAN), "undecided"),
    (ABOVE, (0.1, NAN), "undecided"),
    (Range(greatest=0, strict=True), (-2.0, -1.0), "supported"),
    (Range(greatest=0, strict=True), (-2.0, 0.0), "undecided"),
    (Range(greatest=0, strict=True), (0.0, 1.0), "not supported"),
]


@pytest.mark.parametrize(("expected", "ends", "verdict"), VERDICTS)
def test_verdict_is_where_the_whole_interval_lies(expected, ends, verdict):
    """Inside, outside on one side, or neither."""
    estimate = Estimate(sum(ends) / 2, *ends)
    assert judge(estimate, expected, 8) == verdict
    assert judge(estimate, expected, None) == verdict


def test_no_verdict_from_few_documents():
    """Seven are too few whatever the interval; exact numbers need none."""
    sure = Estimate(1.0, 1.0, 1.0)
    assert judge(sure, ABOVE, 7) == "undecided"
    assert judge(sure, ABOVE, 8) == "supported"
    assert judge(Estimate.exact(1), ABOVE, None) == "supported"


def test_undefined_value_has_no_verdict():
    """Even with ends."""
    assert judge(Estimate(NAN, 1.0, 1.0), ABOVE, 9) == "undecided"


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (ABOVE, "greater than 0"),
        (Range(least=0.6), "at least 0.6"),
        (Range(greatest=0, strict=True), "less than 0"),
        (MOST, "at most 0.5"),
        (WITHIN, "3 to 10"),
        (Range(0, 0), "exactly 0"),
    ],
)
def test_range_reads_as_words(expected, words):
    """As a page prints it."""
    assert str(expected) == words
