"""What a statement speaks of: distance keys, a head at one selection, or bare numbers.

A statement's hypotheses and its slack (``geobounds.theorems``) are functions of one of
these. Everything is exact: integers and fractions, no rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isqrt, lcm
from typing import Any

import numpy as np

from geobounds.errors import ArgumentError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.pairwise import sink_place
from geobounds.power import Enclosure
from geobounds.selection import Selection, rank
from geobounds.separability import Counts, interval_counts

__all__ = [
    "HeadCase",
    "Keys",
    "Numbers",
    "column_of",
    "head_from_gram",
    "pivots",
    "vectors_of",
]


@dataclass(frozen=True, eq=False)
class Keys:
    """Distance keys of the candidates alone, the selected ones first.

    Attributes
    ----------
    key : sequence of numbers
        Any strictly increasing function of the distances.
    n : int
        Number of selected tokens.
    numbers : mapping
        What a statement needs besides: ``lo`` and ``hi``, ``delta``, ``inversions``.
    """

    key: Sequence[Any]
    n: int
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Counts:
        """True FP, FN and inversions (D6, D8)."""
        return _counts(self.key, self.n)


@dataclass(frozen=True, eq=False)
class HeadCase:
    """One head, one query, one selection; candidates in selection order.

    Attributes
    ----------
    head : HeadData
        The head; its last query is meant.
    n : int
        Number of selected tokens.
    sink_policy, ranking, distance
        As for ``measure``.
    numbers : mapping
        What a statement needs besides, such as a ``regime``.
    """

    head: HeadData
    n: int
    sink_policy: str = "keep"
    ranking: Any = "weight"
    distance: str = "euclidean"
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def selection(self) -> Selection:
        """S and U (D3)."""
        return rank(self.head, -1, self.ranking, self.sink_policy).select(self.n)

    @cached_property
    def exact(self) -> ExactGeometry:
        """Exact integers of the selection."""
        return ExactGeometry(self.head, self.selection)

    @cached_property
    def weights(self) -> list[int]:
        """Weights of the candidates, in one common unit."""
        return [int(w) for w in self.exact.weights]

    @cached_property
    def gram(self) -> list[list[int]]:
        """Inner products of the values of the candidates, in one common unit."""
        vectors = self.head.integer_values[0][self.selection.keys]
        return [[int(x) for x in row] for row in vectors @ vectors.T]

    @cached_property
    def powers(self) -> list[int]:
        """Phi (D9) of the candidates, in units of weight^2 value^2."""
        return [int(x) for x in self.exact.powers()]

    @cached_property
    def counts(self) -> Counts:
        """True FP, FN and inversions for the distance (D5, D6, D8)."""
        key = self.powers if self.distance == "euclidean" else self.exact.cosine_keys()
        return _counts(key, self.n)

    @cached_property
    def sink_at(self) -> int | None:
        """Place of the sink among the candidates, None if it is none of them."""
        return sink_place(self.head, self.selection)

    @property
    def selected(self) -> range:
        """Places of the selected tokens."""
        return range(self.n)

    @property
    def unselected(self) -> range:
        """Places of the unselected candidates."""
        return range(self.n, len(self.selection.keys))

    @property
    def others(self) -> list[int]:
        """Places of the candidates other than the sink."""
        return [i for i in range(len(self.selection.keys)) if i != self.sink_at]

    def signed_cosine_square(self, i: int, k: int) -> Fraction | None:
        """sign(c) c^2 of the cosine c of two values; None if one of them is 0."""
        dot, size = self.gram[i][k], self.gram[i][i] * self.gram[k][k]
        return Fraction(dot * abs(dot), size) if size else None


@dataclass(frozen=True, eq=False)
class Numbers:
    """The arguments of a statement that needs no head."""

    numbers: Mapping[str, Any]


def column_of(numbers: Any) -> np.ndarray:
    """Return an object array of exact numbers, as an enclosure takes it."""
    column = np.empty(len(numbers), dtype=object)
    column[:] = list(numbers)
    return column


def _counts(key: Any, n: int) -> Counts:
    column = column_of(key)
    return interval_counts(Enclosure(column, column, n))


def pivots(gram: Sequence[Sequence[Any]]) -> list[Fraction]:
    """Pivots of a symmetric matrix; it is positive semidefinite iff none is negative.

    Elimination in fractions. A zero pivot whose row is not zero makes the matrix
    indefinite; -1 is returned in its place.
    """
    return _factors(gram)[1]


def _factors(
    gram: Sequence[Sequence[Any]],
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Return a unit lower triangular L and pivots D with gram = L D L^T."""
    size = len(gram)
    rest = [[Fraction(x) for x in row] for row in gram]
    lower = [[Fraction(int(i == k)) for k in range(size)] for i in range(size)]
    found = []
    for k in range(size):
        pivot = rest[k][k]
        if pivot == 0:
            pivot = Fraction(-1 if any(rest[k][k:]) else 0)
        found.append(pivot)
        if pivot <= 0:
            continue
        for i in range(k + 1, size):
            lower[i][k] = rest[i][k] / pivot
            for j in range(k + 1, size):
                rest[i][j] -= lower[i][k] * rest[k][j]
    return lower, found


def _four_squares(n: int) -> tuple[int, int, int, int]:
    """Four squares that add up to n (Lagrange), by search from the greatest."""
    for a in range(isqrt(n), -1, -1):
        for b in range(min(a, isqrt(n - a * a)), -1, -1):
            left = n - a * a - b * b
            for c in range(min(b, isqrt(left)), -1, -1):
                d = isqrt(left - c * c)
                if c * c + d * d == left:
                    return a, b, c, d
    msg = f"four_squares: n must be at least 0, got {n}."
    raise ArgumentError(msg)


def vectors_of(gram: Sequence[Sequence[Any]]) -> list[list[Fraction]]:
    """Rational vectors with exactly these inner products.

    Parameters
    ----------
    gram : square matrix of rationals
        Positive semidefinite.

    Returns
    -------
    list of vectors
        Four coordinates for each positive pivot: a positive rational p / q is
        p q / q^2, and p q is a sum of four squares.

    Raises
    ------
    ArgumentError
        Not positive semidefinite.
    """
    lower, found = _factors(gram)
    if min(found) < 0:
        msg = f"vectors_of: gram must be positive semidefinite, got pivots {found}."
        raise ArgumentError(msg)
    vectors: list[list[Fraction]] = [[] for _ in gram]
    for k, pivot in enumerate(found):
        if pivot == 0:
            continue
        top, below = pivot.numerator, pivot.denominator
        parts = [Fraction(root, below) for root in _four_squares(top * below)]
        for i, vector in enumerate(vectors):
            vector += [lower[i][k] * part for part in parts if part]
    return vectors or [[]]


def head_from_gram(
    weights: Sequence[Any], gram: Sequence[Sequence[Any]], *, sink: int | None = None
) -> HeadData:
    """Build a head with these weights and inner products, up to a scale of each.

    Weights and values are scaled to integers (the values' scale squared multiplies
    every inner product), which float64 holds exactly below 2^53.
    """
    return HeadData(
        _whole([[Fraction(w) for w in weights]]),
        _whole(vectors_of(gram)),
        visible="all",
        sink=sink,
    )


def _whole(numbers: list[list[Fraction]]) -> np.ndarray:
    """Multiply rows by their least common denominator; float64 holds the result."""
    scale = lcm(*(x.denominator for row in numbers for x in row))
    rows = [[int(x * scale) for x in row] for row in numbers]
    if max((abs(x) for row in rows for x in row), default=0) >= 2**53:
        msg = "head_from_gram: numbers over one denominator must fit 53 bits."
        raise ArgumentError(msg)
    return np.array(rows, dtype=np.float64)
