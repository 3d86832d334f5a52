"""100,000 small heads of every type and scale against plain integers.

What is measured must be exact for whatever numbers a type holds: near-ties, cancelling
powers, subnormals, numbers whose squares leave the range of float64. The truth is
computed here from the bits of the arrays, with nothing of the library.
"""

import dataclasses
import itertools
from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from mutants import load_copy

from geobounds.exact import oracle

# The library without the type checks of a test run, which take most of the time.
PLAIN = load_copy()
HEADS = 20_000  # of each type
POLICIES = ("keep", "drop", "compete")
RANKINGS = ("weight", "contribution")


@dataclasses.dataclass(frozen=True)
class Format:
    """A floating-point format: its unsigned integers, and its bits of mantissa."""

    name: str
    bits: type
    mantissa: int
    dtype: type

    @property
    def exponents(self):
        """Largest exponent field of a finite number."""
        return (1 << (8 * np.dtype(self.bits).itemsize - 1 - self.mantissa)) - 2


FORMATS = {
    "float16": Format("float16", np.uint16, 10, np.float16),
    "bfloat16": Format("bfloat16", np.uint16, 7, ml_dtypes.bfloat16),
    "bfloat16 bits": Format("bfloat16", np.uint16, 7, ml_dtypes.bfloat16),
    "float32": Format("float32", np.uint32, 23, np.float32),
    "float64": Format("float64", np.uint64, 52, np.float64),
}


# Heads, as bits: rows of weights (not negative) and of values.


def some(rng, form, shape, low, high, *, signed):
    """Random mantissas under exponent fields from ``low`` to ``high``."""
    field = rng.integers(low, high + 1, shape).astype(np.uint64) << form.mantissa
    found = field | rng.integers(0, 1 << form.mantissa, shape).astype(np.uint64)
    top = 8 * np.dtype(form.bits).itemsize - 1
    return found | (rng.integers(0, 2, shape).astype(np.uint64) << top) * signed


def bits_of(form, numbers):
    """Round numbers to the format and return their bits."""
    with np.errstate(over="ignore"):
        return numbers.astype(form.dtype).view(form.bits).astype(np.uint64)


def ordinary(rng, form, w_shape, v_shape):
    """Softmax weights, some below the format's range, and normal values."""
    logits = rng.normal(0, 2, w_shape)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return bits_of(form, weights), bits_of(form, rng.normal(0.5, 1, v_shape))


def tied(rng, form, w_shape, v_shape):
    """Few small numbers: equal weights, equal distances, zeros."""
    weights = rng.integers(0, 4, w_shape) / 8
    return bits_of(form, weights), bits_of(form, 1.0 * rng.integers(-2, 3, v_shape))


def near(rng, form, w_shape, v_shape):
    """One token moved by a few units in the last place: all but equal distances."""
    middle = form.exponents // 2
    weights = some(rng, form, (w_shape[0], 1), middle - 2, middle, signed=False)
    values = some(rng, form, (v_shape[0], 1, v_shape[2]), middle, middle, signed=True)
    return (
        weights + rng.integers(0, 3, w_shape).astype(np.uint64),
        values + rng.integers(0, 3, v_shape).astype(np.uint64),
    )


def large(rng, form, w_shape, v_shape):
    """Large values whose contributions are as close as the format has them.

    The power of a token is then far smaller than the terms it is computed from.
    """
    numbers = rng.uniform(1, 2, (*w_shape, 1)) * 2.0 ** min(form.exponents // 4, 60)
    weights = 0.25 * numbers.min(axis=1, keepdims=True) / numbers
    direction = rng.choice([1.0, 1.0, -1.0, 0.5], (v_shape[0], 1, v_shape[2]))
    return bits_of(form, weights[..., 0]), bits_of(form, numbers * direction)


def permuted(rng, form, w_shape, v_shape):
    """The coordinates of one vector in any order: only rounding tells norms apart."""
    one = bits_of(form, rng.normal(0, 1, (v_shape[0], 1, v_shape[2])))
    order = rng.permuted(np.broadcast_to(np.arange(v_shape[2]), v_shape), axis=2)
    weights = bits_of(form, rng.integers(1, 3, w_shape) / 4)
    return weights, np.take_along_axis(np.broadcast_to(one, v_shape), order, axis=2)


def scaled(rng, form, w_shape, v_shape):
    """Every exponent there is, subnormals included: 1e-300 and 1e300 in one head."""
    top = form.exponents
    return (
        some(rng, form, w_shape, 0, top, signed=False),
        some(rng, form, v_shape, 0, top, signed=True),
    )


def one_scale(rng, form, w_shape, v_shape):
    """Any exponent for the weights of a head and any other for its values."""
    weights = some(rng, form, w_shape, 1, 4, signed=False)
    values = some(rng, form, v_shape, 1, 4, signed=True)
    for bits in (weights, values):
        up = rng.integers(0, form.exponents - 3, len(bits)).astype(np.uint64)
        bits += (up << form.mantissa).reshape(-1, *[1] * (bits.ndim - 1))
    return weights, values


def subnormal(rng, form, w_shape, v_shape):
    """Below the normal numbers: weights, values or both, few distinct ones."""
    most = min(1 << form.mantissa, 6)
    tiny = rng.integers(0, most, w_shape).astype(np.uint64)
    sign = rng.integers(0, 2, v_shape).astype(np.uint64)
    sign <<= 8 * np.dtype(form.bits).itemsize - 1
    values = rng.integers(0, most, v_shape).astype(np.uint64) | sign
    weights, other = tied(rng, form, w_shape, v_shape)
    kind = rng.integers(0, 3, len(tiny))
    tiny = np.where((kind < 2)[:, None], tiny, weights)
    return tiny, np.where((kind > 0)[:, None, None], values, other)


SHAPES = (ordinary, tied, near, large, permuted, scaled, one_scale, subnormal)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One head as bits, and what is asked about it."""

    shape: str
    weights: np.ndarray
    values: np.ndarray
    visible: np.ndarray
    sink: int | None
    n: int
    ranking: str
    policy: str


def draw(form, seed, count):
    """Yield ``count`` cases of a format, an equal number of every shape."""
    rng = np.random.default_rng(seed)
    size = -(-count // len(SHAPES))
    for shape in SHAPES:
        weights, values = shape(rng, form, (size, 8), (size, 8, 3))
        weights, values = weights.astype(form.bits), values.astype(form.bits)
        hidden = (rng.random((size, 8)) < 0.2) & (rng.random((size, 1)) < 0.4)
        numbers = rng.integers(0, 2**30, (size, 6)).tolist()
        left = min(size, count)
        count -= left
        for at, (a, b, c, e, f, g) in enumerate(numbers[:left]):
            keys, width, sink = 3 + a % 6, 1 + b % 3, c % 10
            w, seen = weights[at, :keys].copy(), ~hidden[at, :keys]
            seen[[0, -1]] = True  # so that there are at least two candidates
            sink = None if sink >= keys else sink
            policy = POLICIES[e % 3]
            dropped = policy == "drop" and sink is not None and seen[sink]
            if dropped and seen.sum() == 2:
                seen[1] = True
            w[~seen] = 0
            if not w.any():
                w[0] = 1
            v = values[at, :keys, :width].copy()
            if g % 3:  # what a hidden key holds is of no account
                v[~seen] = (form.exponents + 1) << form.mantissa | b % 2
            n = 1 + f % int(seen.sum() - dropped - 1)
            yield Case(
                shape.__name__,
                w,
                v,
                seen,
                sink,
                n,
                RANKINGS[g % 2],
                policy,
            )


# The truth, in integers


def integers(form, bits):
    """Return the numbers behind finite bits, times one power of two for all."""
    sign = 1 << (8 * bits.itemsize - 1)
    hidden = 1 << form.mantissa
    parts = [
        ((b & (sign - 1)) // hidden, b % hidden, b & sign)
        for b in bits.ravel().tolist()
    ]
    parts = [(e, m | hidden, s) if e else (1, m, s) for e, m, s in parts]
    least = min(e for e, _, _ in parts)
    return [-(m << (e - least)) if s else m << (e - least) for e, m, s in parts]


def truth(form, case):
    """Selected keys, boundary tie, FP, FN and inversions, by D2 to D8."""
    w, flat = integers(form, case.weights), integers(form, case.values)
    keys, width = case.values.shape
    y = [
        [w[k] * x for x in flat[k * width : (k + 1) * width]] if case.visible[k] else []
        for k in range(keys)
    ]
    chosen = candidates = [k for k in range(keys) if case.visible[k]]
    if case.sink in candidates and case.policy != "keep":
        chosen = [k for k in candidates if k != case.sink]
        candidates = chosen if case.policy == "drop" else candidates
    score = w if case.ranking == "weight" else [sum(x * x for x in v) for v in y]
    ranked = sorted(chosen, key=lambda k: (-score[k], k))
    selected = ranked[: case.n]
    tie = case.n < len(ranked) and score[ranked[case.n - 1]] == score[ranked[case.n]]
    total = [sum(column) for column in zip(*(y[i] for i in selected), strict=True)]
    distance = {
        k: sum((a - b) ** 2 for a, b in zip(y[k], total, strict=True))
        for k in candidates
    }
    inside = [distance[i] for i in selected]
    outside = [distance[j] for j in candidates if j not in selected]
    fp = sum(x <= max(inside) for x in outside)
    fn = sum(x >= min(outside) for x in inside)
    inversions = sum(x <= y for x in outside for y in inside)
    return tuple(selected), tie, fp, fn, inversions


def given(name, form, bits):
    """Return the array that a caller would pass."""
    return bits if name == "bfloat16 bits" else bits.view(form.dtype)


def build(package, name, form, case):
    return package.HeadData(
        given(name, form, case.weights),
        given(name, form, case.values),
        visible=case.visible,
        sink=case.sink,
        dtype="bfloat16" if name == "bfloat16 bits" else None,
    )


def measured(package, name, form, case):
    """Return what the library measures, in the form of ``truth``."""
    head = build(package, name, form, case)
    options = {"ranking": case.ranking, "sink_policy": case.policy}
    m = package.measure(head, case.n, **options)
    counts = m.false_positives, m.false_negatives, m.inversions
    return (tuple(m.selected.tolist()), m.boundary_tie, *counts)


def wrong_cases(package, name, seed, count):
    """Yield the cases in which the library is wrong."""
    form = FORMATS[name]
    for case in draw(form, seed, count):
        if measured(package, name, form, case) != truth(form, case):
            yield case


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_measured_is_exact_for_every_type_and_scale(name, monkeypatch):
    """No tolerance: selections, ties, FP, FN and inversions of 20,000 heads each."""
    form, settled, seen = FORMATS[name], [], Counter()
    exact = PLAIN.separability.ExactGeometry

    def counting(*arguments):
        settled.append(1)
        return exact(*arguments)

    monkeypatch.setattr(PLAIN.separability, "ExactGeometry", counting)
    for case in draw(form, 7, HEADS):
        true = truth(form, case)
        before = len(settled)
        assert measured(PLAIN, name, form, case) == true, case
        seen["heads"] += 1
        seen[case.shape] += 1
        seen[case.shape, "settled"] += len(settled) - before
        seen[case.ranking, case.policy] += 1
        seen["tie"] += true[1]
        seen["false positives"] += true[2] > 0
        seen["separable"] += true[2] == 0

    assert seen["heads"] == HEADS
    assert {seen[shape.__name__] for shape in SHAPES} == {HEADS // len(SHAPES)}
    for pair in itertools.product(RANKINGS, POLICIES):
        assert seen[pair] > HEADS // 8, pair
    # The hard cases occur: ties, near-ties that floats cannot decide, both outcomes.
    assert seen["tie"] > HEADS // 20
    assert min(seen["separable"], seen["false positives"]) > HEADS // 5
    for shape in ("tied", "near", "permuted", "subnormal"):
        assert seen[shape, "settled"] > HEADS // 100, shape
    # A type of few bits has no numbers so close that float64 could not tell them.
    least = {"float32": HEADS // 40, "float64": HEADS // 10}.get(name, 20)
    assert seen["large", "settled"] > least


@pytest.mark.parametrize("name", FORMATS)
def test_the_integers_are_the_numbers_that_the_type_holds(name):
    """Bits read by hand against numpy's own reading, every pattern of 16 bits."""
    form = FORMATS[name]
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 8 * np.dtype(form.bits).itemsize, 65_536, np.uint64)
    if form.bits is np.uint16:
        bits = np.arange(65_536)
    bits = bits.astype(form.bits)
    fields = (bits >> form.mantissa) & (form.exponents + 1)
    finite = bits[fields <= form.exponents]
    least = np.array([1], dtype=form.bits)  # the smallest number there is
    found = integers(form, np.concatenate([least, finite]))[1:]
    ratios = [float(x).as_integer_ratio() for x in finite.view(form.dtype)]
    _, unit = float(least.view(form.dtype)[0]).as_integer_ratio()

    assert len(finite) > 60_000
    assert found == [top * (unit // bottom) for top, bottom in ratios]


@pytest.mark.parametrize("name", FORMATS)
def test_the_truth_is_that_of_the_exact_oracle(name):
    """Two independent definitions, in integers and in fractions, on a sample."""
    form = FORMATS[name]
    for case in draw(form, 8, 200):
        values = np.where(case.visible[:, None], case.values, 0).astype(form.bits)
        arrays = [x.view(form.dtype).astype(float) for x in (case.weights, values)]
        found = oracle(
            *(x.tolist() for x in arrays),
            case.visible.tolist(),
            case.sink,
            case.n,
            ranking=case.ranking,
            sink_policy=case.policy,
        )
        expected = truth(form, case)
        assert expected == (
            found.selected,
            found.boundary_tie,
            found.false_positives,
            found.false_negatives,
            found.inversions,
        )


# Wrong versions: what is replaced, and in which type it shows.
MUTANTS = {
    "the radius of the power is 0": (
        ("power", "(n + d_head + 4) * unit * b_term + ", ""),
        "float64",
    ),
    "the radius knows no underflow": (
        ("power", " + tiny * e_term", ""),
        "float64",
    ),
    "contributions are ranked as floats": (
        ("selection", "(d_head + 4) * 2.0**-53 * score + ", ""),
        "float64",
    ),
    "bfloat16 loses its sign": (
        (
            "arrays",
            "found.astype(np.uint32) << 16",
            "(found & 0x7FFF).astype(np.uint32) << 16",
        ),
        "bfloat16 bits",
    ),
    "ties do not count": (
        (
            "separability",
            "(unselected_lo <= selected_hi.max())",
            "(unselected_lo < selected_hi.max())",
        ),
        "float16",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_library_is_found_wrong(mutant):
    """On heads on which the library as it is has no fault."""
    change, name = MUTANTS[mutant]

    assert next(wrong_cases(PLAIN, name, 7, 1_600), None) is None
    assert next(wrong_cases(load_copy(change), name, 7, 1_600), None) is not None
