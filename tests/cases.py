"""Seeded heads of many shapes, small enough for exact arithmetic on every one.

A *case* is one (head, N, sink policy). Shapes are named, so that a count by shape can
show what was covered.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

Arrays = tuple[np.ndarray, np.ndarray]
Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class CaseHead:
    """Arrays of one head with one query, and the shape they were drawn from."""

    shape: str
    weights: np.ndarray
    values: np.ndarray
    visible: np.ndarray
    sink: int | None


def grid(rng: Generator, n: int, d: int) -> Arrays:
    """Weights in eighths, values small integers: ties are common."""
    return rng.integers(0, 5, n) / 8, rng.integers(-3, 4, (n, d)).astype(float)


def equal_weights(rng: Generator, n: int, d: int) -> Arrays:
    """Two weights only: boundary ties."""
    return rng.integers(1, 3, n) / 8, rng.integers(-2, 3, (n, d)).astype(float)


def duplicates(rng: Generator, n: int, d: int) -> Arrays:
    """Few distinct vectors and weights: equal contributions."""
    pool = rng.integers(-2, 3, (2, d)).astype(float)
    return rng.integers(1, 4, n) / 4, pool[rng.integers(0, 2, n)]


def zeros(rng: Generator, n: int, d: int) -> Arrays:
    """Many zero weights and zero values."""
    weights, values = grid(rng, n, d)
    weights[rng.random(n) < 0.4] = 0
    values[rng.random(n) < 0.4] = 0
    return weights, values


def one_dimension(rng: Generator, n: int, _d: int) -> Arrays:
    """Values on a line, d = 1."""
    return grid(rng, n, 1)


def equiangular(rng: Generator, n: int, _d: int) -> Arrays:
    """Equal norms and equal cosines, up to a few perturbed entries."""
    values = np.eye(n) + int(rng.integers(0, 4))
    return rng.integers(1, 9, n) / 16, values


def near_ties(rng: Generator, n: int, d: int) -> Arrays:
    """Equal tokens moved by single units in the last place of float64."""
    weights, values = duplicates(rng, n, d)
    values = values * (1 + rng.integers(-2, 3, values.shape) * 2.0**-52)
    return weights * (1 + rng.integers(-2, 3, n) * 2.0**-52), values


def large_close(rng: Generator, n: int, d: int) -> Arrays:
    """Large float32 vectors close together, where power cancels badly."""
    values = 512_695 + rng.integers(0, 110, (n, d))
    weights = 0.25 * (1 + rng.integers(-3, 4, n) * 2.0**-22)
    return weights.astype(np.float32), values.astype(np.float32)


def tiny(rng: Generator, n: int, d: int) -> Arrays:
    """Subnormal float64 numbers, and weights whose squares underflow."""
    weights = rng.integers(1, 9, n) * 2.0 ** rng.choice([-3.0, -538.0, -1074.0], n)
    if rng.random() < 0.5:
        weights = rng.integers(1, 9, n) * 2.0**-538
    scales = 2.0 ** rng.choice([20.0, 0.0, -500.0, -1073.0], (n, 1))
    return weights, rng.integers(-3, 4, (n, d)) * scales


def huge(rng: Generator, n: int, d: int) -> Arrays:
    """Numbers whose squares overflow float64."""
    scales = 2.0 ** rng.choice([0.0, 600.0, 1000.0], (n, 1))
    return rng.integers(1, 9, n) / 8, rng.integers(-3, 4, (n, d)) * scales


def captured_like(rng: Generator, n: int, d: int) -> Arrays:
    """Softmax weights with a sink and Gaussian values in float32."""
    logits = rng.normal(0, 2, n)
    logits[0] += 3
    weights = np.exp(logits - logits.max())
    values = rng.normal(0.5, 1, (n, d))
    values[0] /= 4
    return (weights / weights.sum()).astype(np.float32), values.astype(np.float32)


def half_precision(rng: Generator, n: int, d: int) -> Arrays:
    """float16 weights and values."""
    weights, values = captured_like(rng, n, d)
    return weights.astype(np.float16), values.astype(np.float16)


def permuted(rng: Generator, n: int, _d: int) -> Arrays:
    """One vector with its coordinates permuted: equal norms that floats tell apart."""
    one = rng.normal(0, 1, 4)
    values = np.array([rng.permutation(one) for _ in range(n)])
    return rng.integers(1, 3, n) / 4, values


def orthogonal(rng: Generator, n: int, _d: int) -> Arrays:
    """Light tokens all but orthogonal to a heavy one: <v, s> is mere rounding."""
    a, b = rng.normal(0, 1, 2)
    values = np.outer(rng.integers(1, 9, n) * rng.choice([-1.0, 1.0], n), [-b, a])
    values *= rng.normal(1, 0.2, (n, 1))
    values[0] = a, b
    weights = np.full(n, 2.0**-60)  # lighter than the rounding of <v, s>
    weights[0] = 1
    return weights, values


def strong_sink(rng: Generator, n: int, d: int) -> Arrays:
    """Key 0 heavier than all others, short and opposed or orthogonal to them."""
    values = rng.integers(0, 4, (n, d)).astype(float)
    values[0] = rng.integers(-1, 1, d)
    weights = rng.integers(0, 5, n) / 64
    weights[0] = int(rng.choice([16, 32, 64])) / 64
    return weights, values


def opposed(rng: Generator, n: int, _d: int) -> Arrays:
    """Corners of a simplex: equal norms and one negative cosine; ties among weights."""
    return rng.integers(1, 5, n) / 16, n * np.eye(n) - 1


Shape = Callable[[Generator, int, int], Arrays]
SHAPES: tuple[Shape, ...] = (
    grid,
    equal_weights,
    duplicates,
    zeros,
    one_dimension,
    equiangular,
    near_ties,
    large_close,
    tiny,
    huge,
    captured_like,
    half_precision,
    permuted,
    orthogonal,
)
# Apart, because the draws of a seed follow the number of shapes.
ALL_SHAPES: tuple[Shape, ...] = (*SHAPES, strong_sink, opposed)


def draw_heads(
    seed: int, count: int, shapes: tuple[Shape, ...] = SHAPES
) -> Iterator[CaseHead]:
    """Yield ``count`` heads, the shapes in turn."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        shape = shapes[made % len(shapes)]
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        weights, values = shape(rng, n, d)
        visible = np.ones(n, dtype=bool)
        if rng.random() < 0.3:
            visible[rng.random(n) < 0.3] = False
        sink = None if rng.random() < 0.1 else int(rng.integers(0, n))
        if shape is strong_sink:
            sink = 0
        weights = np.where(visible, weights, 0).astype(weights.dtype)
        if visible.sum() < 2 or not weights.any():
            continue
        made += 1
        yield CaseHead(shape.__name__, weights, values, visible, sink)
