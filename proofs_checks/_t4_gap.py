"""Steps of T4-gap, T4-roots and T4-cosine: one norm, no sink, cosines in [mu-, mu+]."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import sympy as sp
import z3

from geobounds import closed_forms as forms
from geobounds import symbolic
from geobounds.head import HeadData
from geobounds.situation import HeadCase
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, refuted, satisfiable, worst, zero

__all__ = ["STEPS"]


def gap_identities() -> Outcome:
    """Factor the differences of hi and of lo; the gap is lo(b) less hi(a)."""
    a, b, A, x, y = sp.symbols("a b A x y", nonnegative=True)
    low, high = sp.symbols("mu- mu+", real=True)

    def hi(w: Any) -> Any:
        pull = low * (A - w)
        # Both ends meet at a fixed norm; the first of them is written without cases.
        return symbolic.power_interval(w, w, pull, pull, selected=True)[0]

    def lo(w: Any) -> Any:
        return symbolic.power_interval(w, w, high * A, high * A, selected=False)[1]

    beyond = (y - A * high) ** 2 + a * a - (A * high) ** 2 + 2 * low * a * (A - a)
    return zero(
        hi(a) - hi(x) - (x - a) * ((1 - low) * (x + a) + low * (2 * A - x - a)),
        lo(y) - lo(b) - (b - y) * (2 * A * high - y - b),
        lo(y) - hi(a) - beyond,
        symbolic.constant_norm_gap(a, b, A, low, high) - (lo(b) - hi(a)),
        forms.constant_norm_gap(a, b, A, low, high) - (lo(b) - hi(a)),
        symbolic.false_positive_polynomial(x, a, A, low, high) - (lo(x) - hi(a)),
        forms.false_positive_polynomial(x, a, A, low, high) - (lo(x) - hi(a)),
    )


def _range() -> tuple[Any, Any, list[Any]]:
    low, high = z3.Reals("mu- mu+")
    return low, high, [low >= 0, low <= high, high <= 1]


def gap_any_size() -> Outcome:
    """Any N and M: hi is greatest at a, and a gap puts lo of every y <= b above it.

    The selected weights are a, x and others of sum R.
    """
    low, high, given = _range()
    a, b, x, y, R = z3.Reals("a b x y R")
    given += [a >= 0, R >= 0]
    A = a + x + R
    farther = -x * x - 2 * x * low * (A - x) > -a * a - 2 * a * low * (A - a)
    A = a + R
    gap = forms.constant_norm_gap(a, b, A, low, high)
    below = y * y - 2 * y * high * A <= -a * a - 2 * a * low * (A - a)
    ranked = [a >= b, b >= y, y >= 0]
    return refuted(
        [*given, x >= a, farther],
        [*given, *ranked, gap > 0, below],
        [*given, gap <= 0, b * b - 2 * b * high * A > -a * a - 2 * a * low * (A - a)],
    )


def _head(n: int, m: int) -> tuple[list[Any], Any, list[Any], list[Any], list[Any]]:
    """Give ranked weights, their sum over S, hypotheses, hi of S and lo of U."""
    w = z3.Reals(" ".join(f"w{i}" for i in range(n + m)))
    low, high, given = _range()
    A = z3.Sum(w[:n])
    given += [w[i] >= w[i + 1] for i in range(n + m - 1)] + [w[-1] >= 0]
    his = [-x * x - 2 * x * low * (A - x) for x in w[:n]]
    return w, A, given, his, [y * y - 2 * y * high * A for y in w[n:]]


def gap_both_ways() -> Outcome:
    """Whole heads, N + M <= 4: certified iff gap > 0; FP+ by the polynomial."""
    low, high, _ = _range()
    problems = []
    for n, m in ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)):
        w, A, given, his, los = _head(n, m)
        gap = forms.constant_norm_gap(w[n - 1], w[n], A, low, high)
        inverted = z3.Or(*(q <= p for p in his for q in los))
        problems += [[*given, gap > 0, inverted], [*given, gap <= 0, z3.Not(inverted)]]
        for y, q in zip(w[n:], los, strict=True):
            inside = forms.false_positive_polynomial(y, w[n - 1], A, low, high) <= 0
            counted = z3.Or(*(q <= p for p in his))
            problems.append([*given, inside != counted])
    return refuted(*problems)


def gap_needs_sign() -> Outcome:
    """Show that the refutations are not empty: a negative mu- has a solution."""
    w, A, given, his, los = _head(2, 2)
    low, high, _ = _range()
    gap = forms.constant_norm_gap(w[1], w[2], A, low, high)
    kept = [c for c in given if not c.eq(low >= 0)]
    inverted = z3.Or(*(q <= p for p in his for q in los))
    return satisfiable([*kept, low > -1, high >= 0, gap > 0, inverted])


def roots() -> Outcome:
    """Write the polynomial as the product over its roots; check the discriminant."""
    x, a, A = sp.symbols("x a A", nonnegative=True)
    low, high = sp.symbols("mu- mu+", real=True)
    found = forms.false_positive_polynomial(x, a, A, low, high)
    square = (A * high) ** 2 - a**2 * (1 - 2 * low) - 2 * A * a * low
    ends = [A * high + sign * sp.sqrt(square) for sign in (-1, 1)]
    return zero(
        found - (x - ends[0]) * (x - ends[1]),
        sp.discriminant(found, x) - 4 * square,
        found - ((x - A * high) ** 2 - square),
    )


def cosine_distance() -> Outcome:
    """Least selected less greatest unselected projection, and its growth in x."""
    a, A, x = sp.symbols("a A x", nonnegative=True)
    low, high = sp.symbols("mu- mu+", real=True)
    T = a * (1 - low) + low * A
    gap = forms.constant_norm_cosine_gap(a, A, low, high)
    return zero(
        gap - (T - high * A),
        gap - symbolic.constant_norm_cosine_gap(a, A, low, high),
        x + low * (A - x) - T - (x - a) * (1 - low),
    )


def _cosine_problems(given: list[Any], n: int, w: list[Any], A: Any) -> list[list[Any]]:
    """Let an unselected projection, or 0, reach that of some selected token."""
    low, high, _ = _range()
    cosines = z3.Reals(" ".join(f"c{k}" for k in range(2 * n)))
    given = given + [z3.And(low <= c, c <= high) for c in cosines]
    gap = forms.constant_norm_cosine_gap(w[n - 1], A, low, high)
    unselected = z3.Sum([c * x for c, x in zip(cosines[:n], w[:n], strict=True)])
    problems = []
    for i in range(n):
        others = [cosines[n + k] * w[k] for k in range(n) if k != i]
        selected = z3.Sum([w[i], *others])
        wrong = z3.Or(selected <= unselected, selected <= 0)
        problems.append([*given, gap > 0, wrong])
    return problems


def no_cosine_counterexample() -> Outcome:
    """Leave the cosines free, N <= 3: no unselected projection reaches S."""
    problems = []
    for n in (1, 2, 3):
        w, A, given, _, _ = _head(n, 1)
        problems += _cosine_problems(given, n, w, A)
    return refuted(*problems)


def cosine_needs_sign() -> Outcome:
    """Show that the refutation is not empty: a negative mu- has a solution."""
    w, A, given, _, _ = _head(2, 1)
    low, _, _ = _range()
    kept = [c for c in given if not c.eq(low >= 0)]
    return satisfiable(_cosine_problems([*kept, low > -1], 2, w, A)[1])


# Integer vectors of norm 15 whose cosines lie between 0 and 1.
_VECTORS = (
    *((15, 0, 0), (0, 15, 0), (9, 12, 0), (12, 9, 0), (0, 9, 12), (10, 10, 5)),
    *((5, 10, 10), (14, 5, 2), (2, 14, 5), (2, 5, 14), (11, 10, 2), (14, 2, 5)),
)


def heads_of_one_norm() -> Outcome:
    """Take seeded heads, with room around their cosines; every part on each."""
    rng, slacks = Random(15), []
    telling = {"T4-gap": 0, "T4-roots": 0, "T4-cosine": 0}
    for _ in range(500):
        size = rng.randint(2, 6)
        values = np.array([rng.choice(_VECTORS) for _ in range(size)])
        weights = [rng.choice((0, 1, 2, 3, 5, 8, 13, 40)) for _ in range(size)]
        weights[0] += not any(weights)  # a head has some mass
        pairs = itertools.combinations(values, 2)
        cosines = [Fraction(int(a @ b), 225) for a, b in pairs]
        room = Fraction(rng.randint(0, 3), 20)
        numbers = {
            "mu_low": max(min(cosines) - room, Fraction(0)),
            "mu_high": min(max(cosines) + room, Fraction(1)),
        }
        head = HeadData(weights, values, visible="all", sink=None)
        n = rng.randint(1, size - 1)
        for part in telling:
            distance = "cosine" if part == "T4-cosine" else "euclidean"
            case = HeadCase(head, n, distance=distance, numbers=numbers)
            if not THEOREMS[part].applies(case):
                return Outcome(holds=False, note=f"{part} does not apply")
            slacks.append(THEOREMS[part].slack(case))
            telling[part] += _telling(part, case)
    note = ", ".join(f"{part} {count}" for part, count in telling.items())
    if min(telling.values()) < 40:
        return Outcome(holds=False, note=f"too few telling cases: {note}")
    return worst(slacks, f"telling cases: {note}")


def _telling(part: str, case: HeadCase) -> bool:
    """Whether the gap is positive, or the polynomial splits the unselected tokens."""
    w, n = case.weights, case.n
    given = {"a": w[n - 1], "A": sum(w[:n]), **case.numbers}
    if part == "T4-gap":
        return bool(forms.constant_norm_gap(b=w[n], **given) > 0)
    if part == "T4-cosine":
        return bool(forms.constant_norm_cosine_gap(**given) > 0)
    inside = [forms.false_positive_polynomial(x, **given) <= 0 for x in w[n:]]
    return any(inside) and not all(inside)


STEPS: tuple[tuple[str, str, Callable[[], Outcome]], ...] = (
    ("gap: selected and unselected", "symbolic", gap_identities),
    ("gap: any size", "z3", gap_any_size),
    ("gap and roots: both ways", "z3", gap_both_ways),
    ("gap: needs mu- >= 0", "z3", gap_needs_sign),
    ("roots", "symbolic", roots),
    ("cosine: projections", "symbolic", cosine_distance),
    ("cosine: no counterexample", "z3", no_cosine_counterexample),
    ("cosine: needs mu- >= 0", "z3", cosine_needs_sign),
    ("heads of one norm", "exact arithmetic", heads_of_one_norm),
)
