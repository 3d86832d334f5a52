"""Seeded heads on which the closed forms' hypotheses often hold, and others.

All numbers are small integers, so every inner product is exact.
"""

import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import geobounds as gb
from geobounds.integers import square_root_enclosure
from geobounds.situation import HeadCase, Keys

POLICIES = ("keep", "drop", "compete")


def equiangular(rng, n):
    """Equal norms and one cosine, of either sign, at every pair."""
    scale = rng.randint(1, 6)
    return np.eye(n) * scale * n + rng.randint(-scale, 4)


def any_norms(rng, n):
    """One cosine at every pair, any norms."""
    return equiangular(rng, n) * np.array([[rng.randint(1, 4)] for _ in range(n)])


def sink_and_equals(rng, n):
    """Equal others at one cosine; a sink of any norm, mostly at one cosine."""
    values = np.zeros((n, n + 1))
    values[:, 1:] = equiangular(rng, n)
    values[0] = [rng.randint(0, 3 * n), *[rng.randint(-5, 5)] * n]
    if rng.random() < 0.1:
        values[0, 1:] = [rng.randint(-5, 5) for _ in range(n)]
    return values


def one_norm(rng, n):
    """One vector with coordinates permuted and signed: one norm, many cosines."""
    one = [rng.randint(0, 4) for _ in range(4)]
    one[0] = one[0] or 1
    rows = [rng.sample(one, 4) for _ in range(n)]
    return np.array([[rng.choice((1, 1, 1, -1)) * x for x in row] for row in rows])


def grid(rng, n):
    """Anything on a small grid: duplicates, multiples and zeros are common."""
    return np.array([[rng.randint(-2, 2) for _ in range(2)] for _ in range(n)])


SHAPES = (
    equiangular,
    any_norms,
    sink_and_equals,
    one_norm,
    grid,
    sink_and_equals,
    sink_and_equals,
)


def situations(seed: int, heads: int) -> Iterator[HeadCase]:
    """Yield every N of seeded heads, the shapes in turn, under drawn options."""
    rng = random.Random(seed)
    for k in range(heads):
        n_key = rng.randint(2, 6)
        values = SHAPES[k % len(SHAPES)](rng, n_key).astype(float)
        most = rng.choice((2, 5, 9))
        weights = [rng.randint(0, most) for _ in range(n_key)]
        if SHAPES[k % len(SHAPES)] is sink_and_equals and rng.random() < 0.8:
            weights[0] = most
        weights[-1] = weights[-1] or 1
        sink = rng.choice((0, 0, None, n_key - 1))
        head = gb.HeadData(weights, values, visible="all", sink=sink)
        policy = rng.choice(POLICIES)
        dropped = sink is not None and policy == "drop"
        ranking = rng.choice(("weight", "weight", "contribution"))
        if rng.random() < 0.1:
            ranking = [rng.randint(0, 5) for _ in range(n_key)]
        distance = rng.choice(("euclidean", "euclidean", "cosine"))
        for n in range(1, n_key - dropped):
            case = HeadCase(head, n, policy, ranking, distance)
            yield HeadCase(head, n, policy, ranking, distance, numbers(case))


def numbers(case: HeadCase) -> dict:
    """Return what statements need besides: range of the cosines, the ranking's sum."""
    size = range(len(case.gram))
    found = [cosine(case, i, k) for i in size for k in size if i < k]
    return {
        "mu_low": min((low for low, _ in found), default=Fraction(0)),
        "mu_high": max((high for _, high in found), default=Fraction(0)),
        "measured": case.ranking if isinstance(case.ranking, str) else "weight",
    }


def cosine(case: HeadCase, i: int, k: int) -> tuple[Fraction, Fraction]:
    """Return rationals around the cosine of two values, both equal if it is one."""
    square = case.signed_cosine_square(i, k) or Fraction(0)
    low, high = square_root_enclosure(abs(square))
    return (low, high) if square >= 0 else (-high, -low)


def staircases(seed: int, count: int) -> Iterator[Keys]:
    """Yield small sets of integer keys, ties included."""
    rng = random.Random(seed)
    for _ in range(count):
        n, m = rng.randint(1, 5), rng.randint(1, 5)
        top = rng.choice((3, 8))
        yield Keys([rng.randint(0, top) for _ in range(n + m)], n)
