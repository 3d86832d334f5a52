"""Causes of lost separability removed: against plain Python, T3 and T5."""

import numpy as np
import pytest

import geobounds as gb
from empirical.describe import alignments, value_spread
from empirical.kernels.pairwise import cosine_table
from empirical.kernels.removals import REMOVALS, removal_counts
from geobounds.taxonomy import classify, classify_prefixes


def random_head(seed, n_key=14, d=6, zeros=0, sink=0):
    """A head with a heavy sink of small value, as real ones have."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_key, 0.5))
    values = rng.normal(0.4, 1, (n_key, d)) * rng.uniform(0.3, 2, (n_key, 1))
    values[:1] *= 0.3
    for key in rng.choice(np.arange(1, n_key), zeros, replace=False):
        values[key] = 0
    return gb.HeadData(weights, values, sink=sink)


def plain_counts(head, order, n, removal):
    """The same from an explicit Gram matrix, one pair at a time."""
    keys = [*order.keys.tolist(), *order.barred.tolist()]
    v, w = head.values64, head.weights[0].astype(float)
    norm = {k: float(np.sqrt(v[k] @ v[k])) for k in keys}
    plain = [k for k in keys if k != head.sink and norm[k] > 0]

    def cosine(i, j):
        return float(v[i] @ v[j]) / (norm[i] * norm[j]) if norm[i] and norm[j] else 0.0

    true = {(i, j): cosine(i, j) for i in keys for j in keys}
    mean_norm = np.mean([norm[k] for k in plain])
    chosen = [k for k in plain if k in keys[:n]] or plain
    mu = np.mean([cosine(i, j) for i in chosen for j in plain if i != j])
    if "nonnegative" in removal:
        mu = max(mu, 0.0)
    sigma = np.mean([cosine(head.sink, j) for j in plain]) if head.sink in keys else 0.0
    if "norms" in removal:
        norm = norm | dict.fromkeys(plain, mean_norm)

    def dot(i, j):
        if i == j:
            return norm[i] ** 2
        c = cosine_of(i, j)
        return norm[i] * norm[j] * c

    def cosine_of(i, j):
        if "cosines" not in removal:
            return true[i, j]
        return sigma if head.sink in (i, j) else mu

    phi = {
        i: w[i] ** 2 * dot(i, i) - 2 * w[i] * sum(w[k] * dot(i, k) for k in keys[:n])
        for i in keys
    }
    far, near = max(phi[k] for k in keys[:n]), min(phi[k] for k in keys[n:])
    return [
        sum(phi[k] <= far for k in keys[n:]),
        sum(phi[k] >= near for k in keys[:n]),
    ]


@pytest.mark.parametrize("policy", ["keep", "drop", "compete"])
@pytest.mark.parametrize("zeros", [0, 3])
def test_removals_equal_a_gram_matrix_written_out(policy, zeros):
    """For every removal and N, on random heads with zero values too."""
    for seed in range(12):
        head = random_head(seed, zeros=zeros)
        order = gb.rank(head, -1, "weight", policy)
        ns = [1, 2, 3, 5, 8, order.n_candidates - 1]
        ns = [n for n in ns if n <= len(order.keys)]
        counts, _ = removal_counts(head, order, ns)
        for line, removal in enumerate(REMOVALS):
            for column, n in enumerate(ns):
                expected = plain_counts(head, order, n, removal)
                assert counts[line, column].tolist() == expected, (seed, removal, n)


def test_nothing_removed_is_the_measurement():
    """Random heads have no near-ties, so the estimate is the exact count."""
    for seed in range(30):
        head = random_head(seed)
        order = gb.rank(head, -1, "weight", "keep")
        counts, _ = removal_counts(head, order, [2, 4, 8])
        for n, row in zip((2, 4, 8), counts[0], strict=True):
            m = gb.measure(head, n)
            assert row.tolist() == [m.false_positives, m.false_negatives]


def test_all_removed_is_perfectly_separable():
    """T3: dropped sink, equal norms, one nonnegative cosine."""
    last = REMOVALS.index("norms and cosines, nonnegative")
    lost = 0
    for seed in range(40):
        head = random_head(seed)
        order = gb.rank(head, -1, "weight", "drop")
        counts, _ = removal_counts(head, order, [2, 4, 8])
        assert not counts[last].any()
        lost += bool(counts[0].any())
    assert lost > 10  # and the heads themselves are not


def test_negative_common_cosine_alone_can_cost_separability():
    """T3's counterexample: weights (4, 1, 0)/5, mu = -1/4, N = 2, F = 4/7."""
    gram = np.full((3, 3), -0.25) + 1.25 * np.eye(3)
    head = gb.HeadData([0.8, 0.2, 0.0], np.linalg.cholesky(gram), sink=None)
    counts, _ = removal_counts(head, gb.rank(head), [2])
    by_name = dict(zip(REMOVALS, counts[:, 0].tolist(), strict=True))
    assert by_name["norms and cosines"] == [1, 1]
    assert by_name["norms and cosines, nonnegative"] == [0, 0]


def collapsing(weights, k, mu, sigma):
    """The collapse flag of a head built from its Gram matrix, sink first."""
    n = len(weights)
    gram = np.full((n, n), mu) + (1 - mu) * np.eye(n)
    gram[0, 1:] = gram[1:, 0] = sigma
    root = np.linalg.cholesky(gram)
    root[0] *= k
    head = gb.HeadData(weights, root)
    return removal_counts(head, gb.rank(head), [2])[1][0]


def test_collapse_flag_is_the_condition_of_t5():
    """Selected sink; the pull m decides, and mu beyond 1/2 needs more of it."""
    assert collapsing([0.5, 0.3, 0.2], 1.0, 0.2, 0.1) == 1
    assert collapsing([0.5, 0.3, 0.2], 1.0, 0.2, -0.6) == 0  # m < 0
    # Beyond 1/2: m = .3 * .75 + .5 * sigma, needed: .75 * .3.
    assert collapsing([0.5, 0.3, 0.2], 1.0, 0.75, 0.1) == 1
    assert collapsing([0.5, 0.3, 0.2], 1.0, 0.75, -0.1) == 0
    # A long sink pulls more: m = .3 * .2 + .5 k sigma.
    assert collapsing([0.5, 0.3, 0.2], 1.0, 0.2, -0.1) == 1
    assert collapsing([0.5, 0.3, 0.2], 3.0, 0.2, -0.1) == 0
    assert collapsing([0.1, 0.5, 0.4], 1.0, 0.2, 0.1) == -1  # sink not selected


def test_values_of_any_scale_give_the_same_counts():
    """Squares of large and small values neither over- nor underflow."""
    head = random_head(3)
    order = gb.rank(head)
    expected, flags = removal_counts(head, order, [2, 4])
    for scale in (2.0**-540, 2.0**500):
        scaled = gb.HeadData(head.weights[0], head.values64 * scale)
        found, also = removal_counts(scaled, order, [2, 4])
        assert (found == expected).all()
        assert (also == flags).all()


def test_spread_describes_norms_and_cosines_apart_from_the_sink():
    """Hand-made values: norms 1, 2, 3, one zero, sink of norm 5."""
    values = [[0, 5], [1, 0], [0, 2], [-3, 0], [0, 0]]
    head = gb.HeadData(np.full(5, 0.2), np.array(values, dtype=float))
    x = value_spread(head, cosine_table(head))
    assert np.isclose([x.norm_mean, x.norm_greatest, x.sink_norm], [1.5, 3, 5]).all()
    assert x.norm_least == 0
    assert np.isclose([x.cosine_mean, x.cosine_least], [-1 / 3, -1]).all()
    assert np.isclose(x.cosine_greatest, 0, atol=1e-12)
    assert np.isclose([x.sink_cosine_greatest, x.sink_cosine_least], [1, 0]).all()
    alone = value_spread(head := gb.HeadData([1.0], [[2.0]]), cosine_table(head))
    assert np.isnan([alone.norm_mean, alone.cosine_mean, alone.sink_cosine_sd]).all()


def test_alignment_is_the_mean_cosine_of_outputs():
    """Query 1 gives half of each: 45 degrees to both; query 2 looks at the sink."""
    weights = [[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0]]
    head = gb.HeadData(
        np.array(weights, dtype=float), np.eye(3), visible="causal", sink=0
    )
    sink, current = alignments(head)
    assert np.isclose(sink, (np.sqrt(0.5) + 1) / 2)
    assert np.isclose(current, np.sqrt(0.5) / 2)


def test_prefix_classes_are_those_of_the_first_queries():
    """Counts of a prefix are the counts of the head cut there."""
    rng = np.random.default_rng(5)
    weights = np.tril(rng.uniform(0, 1, (12, 12)))
    weights /= weights.sum(axis=1, keepdims=True)
    values = rng.normal(size=(12, 3))
    head = gb.HeadData(weights, values, visible="causal")
    found = classify_prefixes(head, [3, 6, 12])
    for length, counts in zip((3, 6, 12), found, strict=True):
        cut = gb.HeadData(weights[:length, :length], values[:length], visible="causal")
        assert counts == classify(cut)
    assert found[0].n_query < found[1].n_query < found[2].n_query
