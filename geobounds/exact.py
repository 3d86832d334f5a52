"""Exact arithmetic: keys for comparisons a radius leaves open, and a slow oracle.

``exact_keys`` serves the library. ``oracle`` repeats definitions D1 to D8 literally in
fractions, with no powers, no floats and no code in common with the fast path: tests
compare against it, and so can anyone who doubts a measurement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np

from geobounds.head import HeadData
from geobounds.integers import common_integers
from geobounds.selection import Selection

__all__ = ["ExactGeometry", "OracleResult", "oracle"]


class ExactGeometry:
    """Exact integers for one query and selection; candidates in selection order.

    Attributes
    ----------
    weights, norms, dots : ndarray of object
        w, q = ||v||^2 and t = <v, s_N> of every candidate as integers; multiplied by
        two to the power of ``w_exponent``, ``2 * v_exponent`` and
        ``w_exponent + 2 * v_exponent`` they are the exact numbers.
    """

    def __init__(self, head: HeadData, selection: Selection) -> None:
        values, self.v_exponent = head.integer_values
        row = head.weights[selection.row][selection.keys]
        self.weights, self.w_exponent = common_integers(row)
        vectors = values[selection.keys]
        self.aggregate = self.weights[: selection.n] @ vectors[: selection.n]
        self.norms = head.integer_squared_norms[selection.keys]
        self.dots = vectors @ self.aggregate
        self.n = selection.n

    def powers(self) -> Any:
        """Phi (D9) of every candidate, as integers of one common scale."""
        w = self.weights
        return w * w * self.norms - 2 * w * self.dots

    def power_ranks(self) -> np.ndarray:
        """Ranks of the powers: ordered and tied like the distances."""
        return _ranks([(phi, 1) for phi in self.powers().tolist()])

    def cosine_ranks(self) -> np.ndarray:
        """Ranks of -kappa (D5): ordered and tied like the cosine distances."""
        columns = (self.weights.tolist(), self.dots.tolist(), self.norms.tolist())
        return _ranks(
            [
                (-t * abs(t), q) if w and q else (0, 1)
                for w, t, q in zip(*columns, strict=True)
            ]
        )

    def squared_distances(self) -> list[Fraction]:
        """D^2 = phi + ||s_N||^2 of every candidate (D5)."""
        total = (self.aggregate * self.aggregate).sum()
        scale = _power_of_two(2 * (self.w_exponent + self.v_exponent))
        return [scale * (phi + total) for phi in self.powers().tolist()]

    def cosine_keys(self) -> Any:
        """-kappa (D5) of every candidate: ordered like the cosine distance."""
        keys = np.empty(len(self.weights), dtype=object)
        keys[:] = [
            Fraction(0) if w == 0 or q == 0 else Fraction(-t * abs(t), q)
            for w, t, q in zip(self.weights, self.dots, self.norms, strict=True)
        ]
        return keys

    def cosine_squares(self) -> list[tuple[int, Fraction]]:
        """Sign and square of cos(y_i, s_N) of every candidate; (0, 0) if undefined."""
        total = int((self.aggregate * self.aggregate).sum())
        return [
            ((k < 0) - (k > 0), abs(k) / total) if total else (0, Fraction(0))
            for k in self.cosine_keys()
        ]

    @property
    def norm_scale(self) -> Fraction:
        """What ``norms`` are multiplied by."""
        return _power_of_two(2 * self.v_exponent)

    @property
    def dot_scale(self) -> Fraction:
        """What ``dots`` are multiplied by."""
        return _power_of_two(self.w_exponent + 2 * self.v_exponent)


def _ranks(pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return int64 ranks ordered and tied like the quotients a / b of pairs, b > 0.

    Equal tokens are common (a first layer sees only which token it is), and exact
    numbers are slow to compare: each distinct pair is sorted once, by products.
    """

    def compare(one: tuple[int, int], other: tuple[int, int]) -> int:
        left, right = one[0] * other[1], other[0] * one[1]
        return (left > right) - (left < right)

    distinct = sorted(set(pairs), key=cmp_to_key(compare))
    ranks = dict.fromkeys(distinct, 0)
    for before, after in pairwise(distinct):
        ranks[after] = ranks[before] + (compare(before, after) != 0)
    return np.array([ranks[pair] for pair in pairs], dtype=np.int64)


def _power_of_two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@dataclass(frozen=True)
class OracleResult:
    """Counts, metrics and keys of one query by definition, exact."""

    selected: tuple[int, ...]
    unselected: tuple[int, ...]
    boundary_tie: bool
    false_positives: int
    false_negatives: int
    inversions: int
    precision: Fraction
    recall: Fraction
    f_score: Fraction


def oracle(
    weights: Sequence[float],
    values: Sequence[Sequence[float]],
    visible: Sequence[bool],
    sink: int | None,
    n: int,
    *,
    ranking: str | Sequence[float] = "weight",
    sink_policy: str = "keep",
    distance: str = "euclidean",
) -> OracleResult:
    """Measure one query literally by D1 to D8 in fractions; slow and plain.

    Arguments are as for ``measure``, one row, as sequences of numbers.
    """
    w = [Fraction(x) for x in weights]
    v = [[Fraction(x) for x in row] for row in values]
    contributions = [[w[i] * x for x in v[i]] for i in range(len(w))]
    squared_norms = [sum((x * x for x in y), Fraction(0)) for y in contributions]
    candidates = [i for i in range(len(w)) if visible[i]]
    eligible = list(candidates)
    if sink in candidates and sink_policy in ("drop", "compete"):
        eligible.remove(sink)
        if sink_policy == "drop":
            candidates.remove(sink)
    score: Sequence[Any]
    if ranking == "weight":
        score = w
    elif ranking == "contribution":
        score = squared_norms
    else:
        score = [Fraction(float(x)) for x in ranking]
    eligible.sort(key=lambda i: (-score[i], i))
    selected = eligible[:n]
    unselected = [i for i in candidates if i not in selected]
    tie = n < len(eligible) and score[eligible[n - 1]] == score[eligible[n]]

    width = range(len(v[0]))
    zero = Fraction(0)
    aggregate = [sum((contributions[i][k] for i in selected), zero) for k in width]
    key: dict[int, Fraction]
    if distance == "euclidean":
        key = {
            i: sum(((contributions[i][k] - aggregate[k]) ** 2 for k in width), zero)
            for i in candidates
        }
    else:
        key = {}
        for i in candidates:
            # -cos^2 with the sign of cos, scaled by ||s||^2: ordered like 1 - cos.
            t = sum((contributions[i][k] * aggregate[k] for k in width), zero)
            key[i] = -t * abs(t) / squared_norms[i] if squared_norms[i] else Fraction(0)
    far = max(key[i] for i in selected)
    near = min(key[j] for j in unselected)
    fp = sum(key[j] <= far for j in unselected)
    fn = sum(key[i] >= near for i in selected)
    precision = Fraction(n, n + fp)
    recall = 1 - Fraction(fn, n)
    total = precision + recall
    return OracleResult(
        tuple(selected),
        tuple(unselected),
        tie,
        fp,
        fn,
        sum(key[j] <= key[i] for i in selected for j in unselected),
        precision,
        recall,
        2 * precision * recall / total if recall else Fraction(0),
    )
