"""Counts of every row at once: equal to those of geobounds, row by row."""

import functools
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from battery import POLICIES

from empirical.kernels import rows
from empirical.kernels.batch import count_selections
from empirical.kernels.rows import LayerKeys, count_rows
from geobounds import ArgumentError, HeadData, HeadDataError, rank

numba = pytest.importorskip("numba", reason="compiled kernels need the extra 'fast'")

SEED = 20_261_202
SOURCE = Path(rows.__file__).with_name("rows_numba.py")
NS = (1, 2, 3, 8, 20, 64, 90)
RANKINGS = ("weight", "contribution")


def softmax(rng, shape, spread):
    logits = rng.normal(0, spread, shape)
    logits[..., 0] += 3
    x = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def attention(rng, shape, d):
    """Softmax weights, spread values."""
    return softmax(rng, shape, 2), rng.normal(0.3, 1, (2, shape[2], d))


def peaked(rng, shape, d):
    """Weights down to subnormals and to zero."""
    return softmax(rng, shape, 40), rng.normal(0.3, 1, (2, shape[2], d))


def flat(rng, shape, d):
    """Nearly equal weights: little for a radix sort to go by."""
    return 1 / shape[2] + rng.normal(0, 1e-6, shape), rng.normal(
        0.3, 1, (2, shape[2], d)
    )


def lattice(rng, shape, d):
    """Small integers: ties among weights, powers and contributions."""
    return rng.integers(0, 5, shape) / 8, rng.integers(-2, 3, (2, shape[2], d))


def copies(rng, shape, d):
    """Few distinct tokens, moved by single units of float32."""
    pool = rng.normal(0, 1, (2, 3, d))
    values = pool[:, rng.integers(0, 3, shape[2])]
    values = values * (1 + rng.integers(-1, 2, values.shape) * 2.0**-23)
    return rng.integers(1, 4, shape) / 4 * (1 + 2.0**-23), values


def close(rng, shape, d):
    """Long values close together: powers cancel."""
    values = 2**18 + rng.integers(0, 99, (2, shape[2], d)) / 4
    return 0.25 * (1 + rng.integers(-3, 4, shape) * 2.0**-22), values


def subnormal(rng, shape, d):
    """Subnormal float32 numbers of either kind."""
    weights = rng.integers(1, 9, shape) * 2.0 ** rng.choice([-3, -70, -149], shape)
    scale = 2.0 ** rng.choice([0, -60, -149], (2, shape[2], 1))
    return weights, rng.integers(-3, 4, (2, shape[2], d)) * scale


def permuted(rng, shape, d):
    """Equal norms that floats tell apart, few weights."""
    one = rng.normal(0, 1, d)
    values = np.array([[rng.permutation(one) for _ in range(shape[2])] for _ in "ab"])
    return rng.integers(1, 3, shape) / 4, values


def great(rng, shape, d):
    """Numbers beyond what float32 arithmetic can take."""
    return rng.integers(1, 9, shape) / 8, rng.normal(0, 1, (2, shape[2], d)) * 2.0**80


KINDS = (
    attention, peaked, flat, lattice, copies, close, subnormal, permuted, great,
)  # fmt: skip


def masks(rng, n_rows, n_key):
    """Yield (name, visible): causal rows, a sliding window, all keys, and holes."""
    index = np.arange(n_key)
    last = np.linspace(1, n_key - 1, n_rows).astype(int)[:, None]
    yield "causal", index <= last
    yield "window", (index <= last) & (index > last - 70)
    yield "all", np.ones((n_rows, n_key), dtype=bool)
    holes = (index <= last) & (rng.random((n_rows, n_key)) < 0.9)
    holes[:, :2] = True
    yield "holes", holes


def layers(n_key=90, n_rows=3, n_masks=2):
    """Yield (name, weights, values, visible, sink) for every kind and mask."""
    rng = np.random.default_rng(SEED)
    for i, kind in enumerate(KINDS):
        d = (5, 8, 3)[i % 3]
        shown = list(masks(rng, n_rows, n_key))
        for name, visible in (shown * 2)[i % 4 : i % 4 + n_masks]:
            weights, values = kind(rng, (2, n_rows, n_key), d)
            weights = np.where(visible, weights, 0).astype(np.float32)
            none = ~weights.any(axis=-1)  # a row needs mass
            weights[none] = np.broadcast_to(visible, weights.shape)[none] / 4
            sink = (0, 66, None)[int(rng.integers(0, 3))]
            yield (
                f"{kind.__name__} {name}",
                weights,
                values.astype(np.float32),
                visible,
                sink,
            )


def reference(weights, values, visible, ns, sink, ranking, policies):
    """Return counts and ties by geobounds, row by row."""
    shape = (len(policies), *weights.shape[:2], len(ns))
    found = np.full((4, *shape), -1)
    found[3] = 0
    for h, r in np.ndindex(weights.shape[:2]):
        head = HeadData(
            weights[h, r], values[h * len(values) // len(weights)],
            visible=visible[r], sink=sink,
        )  # fmt: skip
        for p, policy in enumerate(policies):
            order = rank(head, -1, ranking, policy)
            usable = [k for k, n in enumerate(ns) if n < order.n_candidates]
            some = [order.select(ns[k]) for k in usable]
            found[:3, p, h, r, usable] = count_selections(head, some).T
            found[3, p, h, r, usable] = [s.boundary_tie for s in some]
    return found


@pytest.fixture(scope="module")
def cases():
    """Every layer with the counts of geobounds by ranking."""
    return with_counts(layers())


def with_counts(some):
    """Return layers with the counts of geobounds by ranking."""
    return [
        (
            *layer,
            {k: reference(*layer[1:4], NS, layer[4], k, POLICIES) for k in RANKINGS},
        )
        for layer in some
    ]


def check(cases, *, fast):
    """Compare with geobounds; return how many entries, and how many were settled."""
    seen, settled = Counter(), Counter()
    for name, weights, values, visible, sink, truth in cases:
        for ranking in RANKINGS:
            found = count_rows(
                weights, LayerKeys(values), visible, NS,
                sink=sink, ranking=ranking, policies=POLICIES, fast=fast,
            )  # fmt: skip
            parts = (
                found.false_positives,
                found.false_negatives,
                found.inversions,
                found.boundary_tie,
            )
            for part, expected in zip(parts, truth[ranking], strict=True):
                assert np.array_equal(part, expected), (name, ranking)
            seen[name] += int((found.false_positives >= 0).sum())
            settled[name] += found.settled
    return seen, settled


def test_compiled_counts_are_those_of_geobounds(cases):
    """Every kind of numbers, all rankings and policies."""
    seen, settled = check(cases, fast=True)

    assert seen.total() > 2_500
    assert settled["attention causal"] == 0


def test_counts_without_products_are_those_of_geobounds(cases, monkeypatch):
    """As where there are many keys: tiles of values serve every N."""
    monkeypatch.setattr(rows, "_MOST_PRODUCTS", 0)
    seen, settled = check(cases, fast=True)

    assert seen.total() > 2_500
    assert settled["attention causal"] == 0


def test_torch_counts_are_those_of_geobounds(cases):
    seen, settled = check(cases, fast=False)

    assert seen.total() > 2_500
    assert settled["attention causal"] == 0


@pytest.mark.parametrize("fast", [True, False])
def test_half_types_are_taken_as_the_numbers_they_hold(cases, fast):
    """bfloat16 and float16 tensors count like their float32 copies."""
    _, weights, values, visible, sink, _ = cases[0]
    for dtype in (torch.bfloat16, torch.float16):
        w, v = (torch.from_numpy(x).to(dtype) for x in (weights, values))
        found = count_rows(
            w, LayerKeys(v), torch.from_numpy(visible), NS, sink=sink, fast=fast
        )
        w, v = w.float().numpy(), v.float().numpy()
        expected = reference(w, v, visible, NS, sink, "weight", ("keep",))
        assert np.array_equal(found.false_positives, expected[0])
        assert np.array_equal(found.inversions, expected[2])


def test_float64_is_left_to_geobounds(cases):
    """It may hold numbers that only exact arithmetic tells apart."""
    _, weights, values, visible, sink, truth = cases[0]
    found = count_rows(
        weights.astype(float), LayerKeys(values.astype(float)), visible, NS, sink=sink
    )
    assert np.array_equal(found.inversions[0], truth["weight"][2, 0])
    assert found.settled == (found.inversions >= 0).sum()


def test_numbers_are_counted_in_the_order_asked_for(cases):
    _, weights, values, visible, sink, truth = cases[0]
    found = count_rows(weights, LayerKeys(values), visible, NS[::-1], sink=sink)
    assert np.array_equal(found.inversions[0][..., ::-1], truth["weight"][2, 0])


def test_a_row_without_two_candidates_has_no_counts():
    weights = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]], np.float32)
    visible = np.array([[True, False, False], [True, True, False]])
    keys = LayerKeys(np.ones((1, 3, 2), np.float32))
    found = count_rows(weights, keys, visible, (1, 2), policies=("keep", "drop"))
    assert found.n_candidates.tolist() == [[1, 2], [0, 1]]
    assert found.false_positives[0, 0].tolist() == [[-1, -1], [1, -1]]
    assert (found.false_positives[1] == -1).all()
    assert found.boundary_tie[0, 0].tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("at", "value"), [(0, np.nan), (0, -0.5), (1, np.inf)])
def test_bad_numbers_are_refused_by_name(fast, at, value):
    weights, values = (
        np.full((1, 2, 4), 0.25, np.float32),
        np.ones((1, 4, 3), np.float32),
    )
    (weights, values)[at][0, 1, 1] = value
    visible = np.ones((2, 4), dtype=bool)
    with pytest.raises(HeadDataError, match=r"HeadData: (weights|values) must"):
        count_rows(weights, LayerKeys(values), visible, (1, 2), fast=fast)


def test_bad_arguments_are_refused():
    weights, visible = np.full((1, 2, 4), 0.25, np.float32), np.ones((2, 4), dtype=bool)
    keys = LayerKeys(np.ones((1, 4, 3), np.float32))
    for options, words in (
        ({"ns": ()}, "ns must be different numbers from 1 on"),
        ({"ns": (0, 1)}, "ns must be different numbers from 1 on"),
        ({"ns": (2, 2)}, "ns must be different numbers from 1 on"),
        ({"ns": (1,), "ranking": "random"}, "ranking must be"),
        ({"ns": (1,), "policies": ("hide",)}, "policies must be among keep, drop"),
    ):
        with pytest.raises(ArgumentError, match=f"count_rows: {words}"):
            count_rows(weights, keys, visible, **options)
    with pytest.raises(ArgumentError, match="count_rows: weights, values and visible"):
        count_rows(weights, keys, visible[:, :3], (1,))


def plain(old="", new=""):
    """Return ``count_rows`` with the compiled code run by Python, one text replaced."""
    source = SOURCE.read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{old!r} must stand exactly once"
    kernel = ModuleType("rows_numba_copy")
    text = source.replace(old, new) if old else source
    text = text.replace(
        "from numba import njit, prange",
        "njit, prange = lambda **_: (lambda f: f), range",
    )
    exec(compile(text, "rows_numba", "exec"), vars(kernel))
    return kernel


def by_python(monkeypatch, kernel):
    monkeypatch.setattr(rows, "compiled", kernel)
    # Python's scalars warn where compiled code goes on.
    with np.errstate(all="ignore"):
        for name, weights, values, visible, sink, ranking, truth in hard_rows():
            found = count_rows(
                weights, LayerKeys(values), visible, (1, 3, 7),
                sink=sink, ranking=ranking, policies=POLICIES,
            )  # fmt: skip
            parts = (found.false_positives, found.false_negatives, found.inversions)
            for part, expected in zip((*parts, found.boundary_tie), truth, strict=True):
                assert np.array_equal(part, expected), (name, ranking)


def twins(rng, shape, d):
    """Neighbours with equal weights and values: pairs tie inside the ranges."""
    weights, values = attention(rng, shape, d)
    weights[..., 1::2], values[:, 1::2] = weights[..., ::2], values[:, ::2]
    return weights, values


@functools.cache
def hard_rows():
    """Few keys, many ties and near ties: what a broken comparison gets wrong."""
    rng = np.random.default_rng(SEED)
    drawn = []
    for kind in (lattice, copies, permuted, twins, flat):
        for ranking in RANKINGS:
            weights, values = kind(rng, (2, 2, 30), 4)
            visible = np.arange(30) <= np.array([[9], [29]])
            weights = np.where(visible, weights, 0).astype(np.float32)
            weights[..., 0] += np.float32(2.0**-9)  # a row needs mass
            sink = int(rng.integers(0, 9))
            drawn.append(
                (kind.__name__, weights, values.astype(np.float32), sink, ranking)
            )
    faint = np.zeros((2, 2, 30), np.float32)
    faint[..., 0] = 2.0**-145
    values = rng.normal(0, 1, (2, 30, 4)).astype(np.float32)
    drawn.append(("faint", faint, values, 0, "weight"))
    return [
        (name, w, v, visible, sink, ranking,
         reference(w, v, visible, (1, 3, 7), sink, ranking, POLICIES))
        for name, w, v, sink, ranking in drawn
    ]  # fmt: skip


MUTATIONS = (
    ("count + np.int32(x[i] <= limit)", "count + np.int32(x[i] < limit)"),
    ("radius = lifted_m[j] * e2 + fixed[j]", "radius = np.float32(0)"),
    ("(_LEAST if up_m > zero else zero)", "zero"),
    ("if keys[i - 1] <= keys[i]:", "if True:"),
    ("lo[j] = hi[j] = np.float32(np.inf)", "pass"),
    ("if last_in == first_out:", "if last_in != first_out:"),
    ("last_in <= first_out * _APART", "last_in <= first_out / _APART"),
    ("elif other_lo <= mine_hi:", "elif False:"),
    ("total += least", "total += most"),
    ("dropped = apart and policy == 1", "dropped = False"),
    ("apart = policy > 0 and start <= sink < stop", "apart = False"),
    ("fn += high >= least_lo", "fn += high > least_hi"),
    ("if fn != surely:", "if False:"),
    ("if fp != surely_fp:", "if False:"),
)


def test_the_code_run_by_python_passes(monkeypatch):
    """A test of the test: the copy that is broken below is whole without a break."""
    by_python(monkeypatch, plain())


@pytest.mark.parametrize(("old", "new"), MUTATIONS)
def test_a_broken_kernel_is_seen(monkeypatch, old, new):
    with pytest.raises(AssertionError, match=r"weight|contribution"):
        by_python(monkeypatch, plain(old, new))


@pytest.mark.slow
@pytest.mark.parametrize("fast", [True, False])
def test_many_counts_are_those_of_geobounds(fast):
    """Every kind under every mask, more rows and three tiles of keys."""
    seen, settled = check(with_counts(layers(150, 8, 4)), fast=fast)

    assert seen.total() > 19_000
    ordinary = [
        x for x in seen if x.startswith(("attention", "flat")) and "ho" not in x
    ]
    assert sum(settled[x] for x in ordinary) <= 0.01 * sum(seen[x] for x in ordinary)
