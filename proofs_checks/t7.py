"""T7: what one or two selected tokens say.

Statement (T7). Euclidean distance, N = 1, any selection rule: F_1 = 1 iff no unselected
contribution equals y_1, and else F_1 = 0. So F_1 says nothing of how y_1 was selected.

Proof. *one selected.* s_N = y_1, hence D_1 = 0, D_j = ||y_j - y_1|| (as powers,
phi_j - phi_1 = ||y_j - y_1||^2). An unselected j is a false positive iff D_j <= 0, that
is y_j = y_1; then D_1 >= rho_min and FN = 1 = N. So F_1 is 1 without such a j, else 0.
The rule only decides which contribution is y_1.

Statement (T7-cosine). Cosine distance, N = 1, any selection rule: F_1 = 1 iff y_1 != 0
and no unselected y_j is a positive multiple of y_1, and else F_1 = 0.

Proof. *positive multiples.* If y_1 = 0 then s_N = 0 and all keys are 0: every token
ties, FN = 1 = N. Else cos(y_1, s_N) = 1. A y_j = 0 has key 0, less than that of y_1.
For y_j != 0, D_j <= D_1 iff cos(y_j, y_1) = 1, that is <y_j, y_1> > 0 with equality in
||y_1||^2 ||y_j||^2 - <y_1, y_j>^2 = sum over k < l of (y_1k y_jl - y_1l y_jk)^2 >= 0;
the sum is 0 iff y_j is a multiple of y_1, and the sign makes it a positive one.

Statement (T7-two). Euclidean distance, N = 2: D_1 = r_2, D_2 = r_1, max_S phi =
-min(r_1, r_2)^2 - 2 <y_1, y_2>, and F_2 is 1, 0 or 4 / (6 + FP).

Proof. *two selected.* s_N = y_1 + y_2, so y_1 - s_N = -y_2 and y_2 - s_N = -y_1. Hence
phi_1 = r_2^2 - ||s_N||^2 = -r_1^2 - 2 <y_1, y_2>, phi_2 likewise, and the greater of
the two has the smaller of r_1, r_2. *values of F_2.* FN = 0 iff FP = 0: F_2 = 1.
FN = 2: F_2 = 0. FN = 1: F_2 = 2 / (1 + FP/2 + 2/1) = 4 / (6 + FP). With r_1 = r_2 the
distances of both agree, FN is never 1, and F_2 is 1 or 0.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.exact import oracle
from geobounds.head import HeadData
from geobounds.separability import f_score, measure
from geobounds.situation import HeadCase
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T7",
    scope="all d and |C| (symbolic; z3 in the plane); all heads of small integers with "
    "|C| <= 5",
)
Vector = tuple[int, ...]


def _dot(x: Any, y: Any) -> Any:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _power(y: Any, aggregate: Any) -> Any:
    """D9: ||y||^2 - 2 <y, s_N>."""
    return _dot(y, y) - 2 * _dot(y, aggregate)


def _plus(x: Any, y: Any) -> Any:
    return [a + b for a, b in zip(x, y, strict=True)]


@PROOF.step("one selected", "symbolic")
def one_selected() -> Outcome:
    """Show a gap of powers to be a squared distance, in up to 4 dimensions."""
    found = []
    for d in (1, 2, 3, 4):
        y, z = sp.symbols(f"y0:{d}", real=True), sp.symbols(f"z0:{d}", real=True)
        difference = [a - b for a, b in zip(z, y, strict=True)]
        found.append(_power(z, y) - _power(y, y) - _dot(difference, difference))
    return zero(*found)


@PROOF.step("positive multiples", "symbolic")
def positive_multiples() -> Outcome:
    """Lagrange's identity, in up to 4 dimensions."""
    found = []
    for d in (2, 3, 4):
        y, z = sp.symbols(f"y0:{d}", real=True), sp.symbols(f"z0:{d}", real=True)
        pairs = itertools.combinations(range(d), 2)
        minors = sum((y[k] * z[i] - y[i] * z[k]) ** 2 for k, i in pairs)
        found.append(_dot(y, y) * _dot(z, z) - _dot(y, z) ** 2 - minors)
    return zero(*found)


@PROOF.step("two selected", "symbolic")
def two_selected() -> Outcome:
    """Distances and powers of both, in up to 4 dimensions; the greater power."""
    found = []
    for d in (1, 2, 3, 4):
        y, z = sp.symbols(f"y0:{d}", real=True), sp.symbols(f"z0:{d}", real=True)
        total = _plus(y, z)
        away = [a - b for a, b in zip(y, total, strict=True)]
        found += [
            _dot(away, away) - _dot(z, z),
            _power(y, total) - (_dot(z, z) - _dot(total, total)),
            _power(y, total) + _dot(y, y) + 2 * _dot(y, z),
        ]
    low, more = sp.symbols("low more", nonnegative=True)
    dot = sp.Symbol("dot", real=True)
    for r1, r2 in ((low, low + more), (low + more, low)):
        found.append(symbolic.two_power(r1, r2, dot) + low + 2 * dot)
    return zero(*found)


@PROOF.step("values of F_2", "symbolic")
def values_of_f2() -> Outcome:
    """F from P and R for FN = 1 and any FP; the library's values are the same."""
    x = sp.Symbol("FP", positive=True)
    precision, recall = 2 / (2 + x), sp.Rational(1, 2)
    f = 2 * precision * recall / (precision + recall)
    found = [f - 4 / (6 + x)]
    for fp, fn in [(0, 0), *itertools.product(range(1, 40), (1, 2))]:
        value = closed_forms.two_f_score(fp, fn)
        found += [
            symbolic.two_f_score(fp, fn) - sp.Rational(value),
            sp.Rational(f_score(2, fp, fn)) - sp.Rational(value),
        ]
        if fn == 1:
            found.append(f.subs(x, fp) - sp.Rational(value))
    return zero(*found)


@PROOF.step("no counterexample in the plane", "z3")
def no_counterexample() -> Outcome:
    """All three claims for two contributions with real coordinates."""
    y, z = z3.Reals("y0 y1"), z3.Reals("z0 z1")
    c = z3.Real("c")
    same = z3.And(y[0] == z[0], y[1] == z[1])
    q1, q2, dot = _dot(y, y), _dot(z, z), _dot(y, z)
    near = z3.And(dot > 0, dot * dot >= q1 * q2)  # kappa of z is at least that of y
    multiple = z3.And(c > 0, z[0] == c * y[0], z[1] == c * y[1])
    total = _plus(y, z)
    powers = [_power(y, total), _power(z, total)]
    least = z3.If(q1 <= q2, q1, q2)
    greatest = z3.If(powers[0] >= powers[1], powers[0], powers[1])
    inverted = _power(z, y) <= _power(y, y)
    return refuted(
        [inverted, z3.Not(same)],
        [same, z3.Not(inverted)],
        [near, c * q1 == dot, z3.Not(multiple)],
        [q1 > 0, multiple, z3.Not(near)],
        [greatest != -least - 2 * dot],
        [q1 == q2, powers[0] != powers[1]],
    )


@PROOF.step("the claims are not empty", "z3")
def not_empty() -> Outcome:
    """Multiples occur, and a selected token farther than an unselected one."""
    y, z, x = z3.Reals("y0 y1"), z3.Reals("z0 z1"), z3.Reals("x0 x1")
    dot, total = _dot(y, z), _plus(y, z)
    third, first, second = (_power(v, total) for v in (x, y, z))
    near = [dot > 0, dot * dot >= _dot(y, y) * _dot(z, z), y[0] != z[0]]
    between = [second < third, third <= first]  # FP = FN = 1
    found = [satisfiable(problem) for problem in (near, between)]
    return Outcome(all(f.holds for f in found), len(found))


def _plane(*axes: Vector) -> list[Vector]:
    return list(itertools.product(*axes))


@cache
def _heads() -> tuple[tuple[HeadData, list[Vector]], ...]:
    """Heads and their contributions: 2 to 4 tokens in the plane, 5 on a line.

    Tokens of equal weight are in no order, so that each multiset of values is one head.
    """
    few, line = (-1, 0, 1), (-2, -1, 0, 1, 2)
    multisets = itertools.combinations_with_replacement
    found: list[tuple[Vector, tuple[Vector, ...]]] = [
        *(((1, 1), v) for v in multisets(_plane(few, few), 2)),
        *(((1, 1, 1), v) for v in multisets(_plane(few, few), 3)),
        *(((1,) * 4, v) for v in multisets(_plane(few, (0, 1)), 4)),
        *(((1,) * 5, v) for v in multisets(_plane((-1, 0, 1, 2)), 5)),
        *(((2, 1, 0), v) for v in itertools.product(_plane(line), repeat=3)),
    ]
    return tuple(
        (
            HeadData(w, list(v), visible="all", sink=None),
            [tuple(a * x for x in row) for a, row in zip(w, v, strict=True)],
        )
        for w, v in found
    )


def _case(part: str, head: HeadData, chosen: tuple[int, ...]) -> HeadCase:
    """Return the situation in which a rule selects the chosen tokens.

    A selection rule is its result: scores that are 1 on the chosen tokens stand for
    every rule that selects them.
    """
    scores = [float(i in chosen) for i in range(head.n_key)]
    distance = "cosine" if part == "T7-cosine" else "euclidean"
    return HeadCase(head, len(chosen), ranking=scores, distance=distance)


def _enumerate(
    part: str,
    expected: Callable[[list[Vector], tuple[int, ...]], Fraction],
    wanted: set[Fraction],
) -> Outcome:
    """F of every head and selected set is as expected and takes the wanted values."""
    n = 2 if part == "T7-two" else 1
    slacks: list[Fraction] = []
    seen = set()
    for head, points in _heads():
        if len(points) == n:
            continue
        for chosen in itertools.combinations(range(len(points)), n):
            case, f = _case(part, head, chosen), expected(points, chosen)
            if not THEOREMS[part].applies(case) or case.counts.f_score.lower != f:
                note = f"{points}, selected {chosen}"
                return Outcome(holds=False, cases=len(slacks) + 1, note=note)
            seen.add(f)
            slacks.append(THEOREMS[part].slack(case))
    note = f"F takes the values {', '.join(map(str, sorted(seen)))}"
    return worst(slacks, note) if seen == wanted else Outcome(holds=False, note=note)


@PROOF.step("one selected, every head and rule", "enumeration")
def every_rule() -> Outcome:
    """F_1 is 1 iff y_1 occurs once, for every token that a rule may select."""

    def expected(points: list[Vector], chosen: tuple[int, ...]) -> Fraction:
        return Fraction(points.count(points[chosen[0]]) == 1)

    return _enumerate("T7", expected, {Fraction(0), Fraction(1)})


def _is_multiple(y: Vector, one: Vector) -> bool:
    """Whether y is a positive multiple of ``one``, which is not 0."""
    at = next(k for k, x in enumerate(one) if x)
    ratio = Fraction(y[at], one[at])
    return ratio > 0 and all(a == ratio * b for a, b in zip(y, one, strict=True))


@PROOF.step("positive multiples, every head and rule", "enumeration")
def every_multiple() -> Outcome:
    """F_1 for cosine distance, y_1 = 0 and negative multiples included."""

    def expected(points: list[Vector], chosen: tuple[int, ...]) -> Fraction:
        one = points[chosen[0]]
        alone = any(one) and sum(_is_multiple(y, one) for y in points) == 1
        return Fraction(alone)

    return _enumerate("T7-cosine", expected, {Fraction(0), Fraction(1)})


def _truth(points: list[Vector], chosen: tuple[int, ...]) -> tuple[int, int]:
    """FP and FN by D6 in integers, from squared distances."""
    inside = [points[i] for i in chosen]
    outside = [y for j, y in enumerate(points) if j not in chosen]
    center = [sum(column) for column in zip(*inside, strict=True)]

    def square(y: Vector) -> int:
        return sum((a - b) ** 2 for a, b in zip(y, center, strict=True))

    far, near = max(map(square, inside)), min(map(square, outside))
    return (
        sum(square(y) <= far for y in outside),
        sum(square(y) >= near for y in inside),
    )


@PROOF.step("two selected, every head and rule", "enumeration")
def every_pair() -> Outcome:
    """F_2 by FP and FN from the definitions, each value up to FP = 3 taken."""

    def expected(points: list[Vector], chosen: tuple[int, ...]) -> Fraction:
        fp, fn = _truth(points, chosen)
        return (Fraction(1), Fraction(4, 6 + fp), Fraction(0))[fn]

    wanted = {Fraction(x) for x in ("0", "1", "4/7", "1/2", "4/9")}
    return _enumerate("T7-two", expected, wanted)


@PROOF.step("rankings and sink policies", "enumeration")
def named_rules() -> Outcome:
    """T7 by weight, by contribution and by scores, under every sink policy."""
    weights = [2.0, 1.0, 0.0]
    slacks: list[Fraction] = []
    for line in itertools.product((0.0, 1.0, 2.0), repeat=3):
        values = [[x] for x in line]
        head = HeadData(weights, values, visible="all", sink=0)
        for ranking, policy, distance in itertools.product(
            ("weight", "contribution", [0.0, 1.0, 3.0]),
            ("keep", "drop", "compete"),
            ("euclidean", "cosine"),
        ):
            options: dict[str, Any] = {
                "ranking": ranking,
                "sink_policy": policy,
                "distance": distance,
            }
            part = "T7" if distance == "euclidean" else "T7-cosine"
            case = HeadCase(head, 1, **options)
            found = oracle(weights, values, [True] * 3, 0, 1, **options)
            same = found.f_score == case.counts.f_score.lower
            same &= measure(head, 1, **options).counts == case.counts
            if not (same and THEOREMS[part].applies(case)):
                note = f"{values} {options}"
                return Outcome(holds=False, cases=len(slacks) + 1, note=note)
            slacks.append(THEOREMS[part].slack(case))
    return worst(slacks)


prove = PROOF.run
