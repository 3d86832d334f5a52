"""T5: what a selected sink does to heads that T3 would separate.

Setting. Euclidean distance, S the N candidates of largest weight, the sink (index 0) in
S. The other candidates have values of norm 1; all cosines of S x C without the sink are
equal to one mu; the sink has norm k and one cosine sigma with all others. B is the
selected weight without the sink's, and the pull m = B mu + k alpha_0 sigma = <u_j, s_N>
for every unselected value u_j.

Statement (T5). alpha_N > 0 and either

- (wide) m >= 0 and mu <= 1/2, and not all of mu = 1/2, m = 0 and a zero weight in U, or
- (narrow) mu < 1 and m >= mu alpha_i for every selected i other than the sink (for
  mu >= 0 it is enough to ask it of the largest, for mu < 0 of the smallest).

Then phi_i < phi_j for every selected i other than the sink and every j in U.

Proof. Let a = alpha_i, b = alpha_j, so a >= alpha_N >= b >= 0, a > 0.

*powers.* <u_i, s_N> = a + (B - a) mu + k alpha_0 sigma = a + m - a mu, so that phi_i =
a^2 - 2 a (a + m - a mu) = -a^2 (1 - 2 mu) - 2 a m; phi_j = b^2 - 2 b m. Their gap is
g = phi_j - phi_i = a^2 (1 - 2 mu) + b^2 + 2 m (a - b): i and j are separated iff g > 0.

*criterion.* (wide) All three terms are at least 0. For mu < 1/2 the first is positive.
For mu = 1/2 either b > 0 and the second is, or b = 0 and then m > 0: the third is.
(narrow) m >= mu a and a >= b, so g >= a^2 (1 - 2 mu) + b^2 + 2 mu a (a - b) = a^2 +
b^2 - 2 mu a b, which for mu >= 0 is (1 - mu)(a^2 + b^2) + mu (a - b)^2 > 0, and for
mu < 0 at least a^2.

*corner.* mu = 1/2, m = 0, b = 0 gives g = 0, a tie: the exception is needed.

*sharp criterion.* For one a and every b in [0, a]: g is a convex parabola in b with its
vertex at m. For 0 <= m <= a its least value is 2 a^2 (1 - mu) - (a - m)^2, so all such
pairs are separated iff (a - m)^2 < 2 a^2 (1 - mu). For m > a it is 2 a^2 (1 - mu), at
b = a: iff mu < 1. For m < 0 it is a (a (1 - 2 mu) + 2 m), at b = 0: iff that is
positive. (wide) and (narrow) are sufficient, and simpler.

Statement (T5-counts). Then phi_0 = -k alpha_0 (k alpha_0 + 2 B sigma), FP is the number
of j in U with phi_j <= phi_0, and FN is 1 if FP > 0, else 0. If phi_0 >= 0, then FP is
the number of j in U with alpha_j <= m + sqrt(m^2 + phi_0).

Proof. *powers.* <y_0, s_N> = (k alpha_0)^2 + k alpha_0 sigma B, so phi_0 =
(k alpha_0)^2 - 2 <y_0, s_N> is as stated. *counts.* By T5 the other selected tokens lie
below all of U, so max_S phi >= phi_j iff phi_0 >= phi_j: this gives FP. None of them is
a false negative; the sink is one iff phi_0 >= min_U phi, that is FP > 0. *root form.*
phi_j <= phi_0 iff (b - m)^2 <= m^2 + phi_0. With phi_0 >= 0 the root is at least |m|,
hence b >= 0 >= m - root holds anyway, and what remains is b <= m + root; without roots:
b <= m or (b - m)^2 <= m^2 + phi_0.

*collapse.* For N >= 2, phi_0 > 0 iff k alpha_0 > 0 and sigma < -k alpha_0 / (2 B). All
weights of U at most m + sqrt(m^2 + phi_0), a positive number that does not depend on U,
makes FP = |U|: however many negligible tokens there are, P_N = N / |C| and R_N =
(N - 1) / N.

Beyond mu = 1/2 the pull must be strong: weights (1/2, 1/2, 0), k = 1, mu = 3/4, sigma =
-3/5 have m = 3/40 > 0 and g = -1/20 for the token of weight 0.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.separability import measure
from geobounds.situation import HeadCase, head_from_gram
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T5",
    scope="all N and d (symbolic, z3); counts by z3 for N <= 4, |U| <= 3; grid heads "
    "|C| <= 5; heads of up to 204 tokens",
)
_NORMS = (Fraction(1, 2), Fraction(2))


def _powers(a: Any, b: Any, sink: Any, mu: Any, sigma: Any) -> tuple[Any, Any, Any]:
    """Powers by D9, each from its inner products with the selected contributions.

    a are the weights of the selected others, b those of U, ``sink`` is k alpha_0.
    """
    inside = []
    for i, x in enumerate(a):
        others = [y for k, y in enumerate(a) if k != i]
        inside.append(
            -x * x - 2 * x * sink * sigma - sum(2 * x * y * mu for y in others)
        )
    outside = [x * x - 2 * x * sink * sigma - sum(2 * x * y * mu for y in a) for x in b]
    return -sink * sink - sum(2 * sink * x * sigma for x in a), inside, outside


@PROOF.step("powers", "symbolic")
def powers() -> Outcome:
    """Each gap and the sink's power are the closed forms, for N - 1 up to 3."""
    k0, mu, sigma, b, m = sp.symbols("k0 mu sigma b m", real=True)
    found = []
    for count in (1, 2, 3):
        a = sp.symbols(f"a0:{count}", real=True)
        B = sum(a)
        first, inside, (other,) = _powers(a, [b], k0, mu, sigma)
        pull = B * mu + k0 * sigma
        found += [
            other - phi - closed_forms.sink_collapse_gap(x, b, pull, mu)
            for x, phi in zip(a, inside, strict=True)
        ]
        found += [
            first - form.sink_power(k0**2, k0 * sigma, B)
            for form in (closed_forms, symbolic)
        ]
        found.append(first + k0 * (k0 + 2 * B * sigma))
    x = sp.Symbol("x", real=True)
    found.append(
        closed_forms.sink_collapse_gap(x, b, m, mu)
        - symbolic.sink_collapse_gap(x, b, m, mu)
    )
    return zero(*found)


def _wide(m: Any, mu: Any, b: list[Any]) -> Any:
    """Return the first alternative of T5."""
    zero_weight = z3.Or([x == 0 for x in b])
    return z3.And(m >= 0, mu <= 0.5, z3.Not(z3.And(mu == 0.5, m == 0, zero_weight)))


def _narrow(m: Any, mu: Any, a: list[Any]) -> Any:
    """Return the second alternative of T5."""
    return z3.And(mu < 1, *(m >= mu * x for x in a))


@PROOF.step("criterion", "z3")
def criterion() -> Outcome:
    """For every N: no pair with a gap at most 0 under either alternative."""
    a, b, m, mu, largest = z3.Reals("a b m mu largest")
    pair = [a > 0, b >= 0, a >= b]
    wrong = closed_forms.sink_collapse_gap(a, b, m, mu) <= 0
    return refuted(
        [*pair, _wide(m, mu, [b]), wrong],
        [*pair, _narrow(m, mu, [a]), wrong],
        [mu >= 0, largest >= a, m >= mu * largest, z3.Not(m >= mu * a)],
    )


@PROOF.step("each part of the criterion is used", "z3")
def each_is_used() -> Outcome:
    """Gaps at most 0 without a part of it; solutions with each alternative alone."""
    a, b, m, mu, largest = z3.Reals("a b m mu largest")
    pair = [a > 0, b >= 0, a >= b, mu <= 1]
    half = z3.RealVal("1/2")
    wrong = closed_forms.sink_collapse_gap(a, b, m, mu) <= 0
    wide, narrow = _wide(m, mu, [b]), _narrow(m, mu, [a])
    problems = [
        [*pair, wide, z3.Not(narrow)],
        [*pair, narrow, z3.Not(wide)],
        [*pair, mu < half, m < 0, wrong],
        [*pair, mu < 0, mu >= -half, m >= mu * largest, largest >= a, wrong],
        [*pair, mu > half, m > 0, m < mu * a, mu < 1, wrong],
        [*pair, mu == half, m == 0, b == 0, wrong],
        [*pair, mu == 1, m >= mu * a, wrong],
        [a == 0, b == 0, wide, wrong],
        [a > 0, b > a, mu == 0, m >= 0, wrong],
    ]
    found = [satisfiable(problem) for problem in problems]
    note = str([i for i, f in enumerate(found) if not f.holds] or "")
    return Outcome(all(f.holds for f in found), len(found), None, note)


@PROOF.step("corner", "symbolic")
def corner() -> Outcome:
    """At mu = 1/2, m = 0, b = 0 the gap is 0; the example beyond 1/2 gives -1/20."""
    a, half = sp.Symbol("a", positive=True), sp.Rational(1, 2)
    mu, sigma = sp.Rational(3, 4), -sp.Rational(3, 5)
    pull = half * mu + half * sigma
    beyond = symbolic.sink_collapse_gap(half, 0, pull, mu)
    return zero(
        symbolic.sink_collapse_gap(a, 0, 0, half),
        pull - sp.Rational(3, 40),
        beyond + sp.Rational(1, 20),
    )


@PROOF.step("sharp criterion, least gap", "symbolic")
def least_gap() -> Outcome:
    """Take the gap as a parabola in b: its vertex, its values there and at the ends."""
    a, b, m, mu = sp.symbols("a b m mu", real=True)
    gap = symbolic.sink_collapse_gap(a, b, m, mu)
    (vertex,) = sp.solve(sp.diff(gap, b), b)
    return zero(
        vertex - m,
        sp.diff(gap, b, 2) - 2,
        gap.subs(b, m) - (2 * a**2 * (1 - mu) - (a - m) ** 2),
        gap.subs(b, a) - 2 * a**2 * (1 - mu),
        gap.subs(b, 0) - a * (a * (1 - 2 * mu) + 2 * m),
    )


@PROOF.step("sharp criterion", "z3")
def sharp_criterion() -> Outcome:
    """Its three cases decide every b in [0, a], and both alternatives imply it."""
    a, b, m, mu = z3.Reals("a b m mu")
    sharp = z3.And(
        z3.Implies(m > a, mu < 1),
        z3.Implies(z3.And(m >= 0, m <= a), (a - m) * (a - m) < 2 * a * a * (1 - mu)),
        z3.Implies(m < 0, a * (1 - 2 * mu) + 2 * m > 0),
    )

    def gap(x: Any) -> Any:
        return closed_forms.sink_collapse_gap(a, x, m, mu)

    clipped = z3.If(m < 0, 0, z3.If(m > a, a, m))
    strictly_wide = z3.And(m >= 0, mu <= 0.5, z3.Or(mu < 0.5, m > 0))
    return refuted(
        [a > 0, b >= 0, b <= a, sharp, gap(b) <= 0],
        [a > 0, z3.Not(sharp), gap(clipped) > 0],
        [a > 0, strictly_wide, z3.Not(sharp)],
        [a > 0, _narrow(m, mu, [a]), z3.Not(sharp)],
    )


@PROOF.step("no counterexample", "z3")
def no_counterexample() -> Outcome:
    """No inversion of the first selected and the first unselected of the others.

    The order within S and within U is free, so that these stand for all.
    """
    problems = []
    sink, mu, sigma, b = z3.Reals("sink mu sigma b")
    for count in (1, 2, 3):
        a = [z3.Real(f"a{i}") for i in range(count)]
        _, inside, (other,) = _powers(a, [b], sink, mu, sigma)
        m = z3.Sum(a) * mu + sink * sigma
        given = [sink >= 0, b >= 0, *(z3.And(x > 0, x >= b) for x in a)]
        problems += [
            [*given, alternative, other <= inside[0]]
            for alternative in (_wide(m, mu, [b]), _narrow(m, mu, a))
        ]
    return refuted(*problems)


@PROOF.step("counts", "z3")
def counts() -> Outcome:
    """With the others separated, phi_0 decides FP, and FN is 1 if FP > 0, else 0."""
    problems, controls = [], []
    for n, m_size in itertools.product((1, 2, 3, 4), (1, 2, 3)):
        first, *inside = (z3.Real(f"s{i}") for i in range(n))
        outside = [z3.Real(f"u{j}") for j in range(m_size)]
        separated = [p < q for p in inside for q in outside]
        positives = [z3.Or([q <= p for p in [first, *inside]]) for q in outside]
        negatives = [z3.Or([q <= p for q in outside]) for p in [first, *inside]]
        fp = z3.Sum([z3.If(x, 1, 0) for x in positives])
        fn = z3.Sum([z3.If(x, 1, 0) for x in negatives])
        by_sink = z3.Sum([z3.If(q <= first, 1, 0) for q in outside])
        wrong = z3.Or(fp != by_sink, fn != z3.If(fp > 0, 1, 0))
        problems.append([*separated, wrong])
        controls += [[*separated, fp == m_size]] + ([[wrong]] if inside else [])
    proved, found = refuted(*problems), [satisfiable(c) for c in controls]
    holds = proved.holds and all(f.holds for f in found)
    return Outcome(holds, len(problems) + len(found), None, proved.note)


@PROOF.step("root form", "z3")
def root_form() -> Outcome:
    """Against the root, and without it; at phi_0 < 0 it fails."""
    b, m, phi, root = z3.Reals("b m phi root")
    near = b * b - 2 * b * m <= phi
    given = [b >= 0, phi >= 0, root >= 0, root * root == m * m + phi]
    rootless = z3.Or(b <= m, (b - m) * (b - m) <= m * m + phi)
    proved = refuted(
        [*given, near != (b <= m + root)],
        [b >= 0, phi >= 0, near != rootless],
        [phi > 0, *given, m + root <= 0],
    )
    control = satisfiable(
        [
            b >= 0,
            phi < 0,
            root >= 0,
            root * root == m * m + phi,
            b <= m + root,
            phi < b * b - 2 * b * m,
        ]
    )
    return Outcome(proved.holds and control.holds, 4, None, proved.note or control.note)


def _gram(size: int, n: int, sink: tuple[Any, Any], mu: Any, other: Any) -> list[Any]:
    """Inner products: sink (k, k sigma) first, cosine ``other`` for pairs of U."""
    k, dot = sink
    rows: list[list[Any]] = [[k * k] + [dot] * (size - 1)]
    for i in range(1, size):
        pairs = (other if min(i, j) >= n else mu for j in range(1, size))
        rows.append([dot, *pairs])
        rows[i][i] = 1
    return rows


def _grid() -> Iterator[HeadCase]:
    """Yield heads whose sink is selected, at and around the ends of the criterion.

    The pull is 0, mu alpha or a multiple of alpha, the largest weight but the sink's;
    k sigma follows from it.
    """
    cosines = [Fraction(x, 4) for x in range(-1, 5)]
    shapes = ((4, 3, 2, 1), (4, 2, 2, 2), (3, 3, 3, 1, 0), (4, 4, 1, 0, 0))
    for mu, k, w in itertools.product(cosines, _NORMS, shapes):
        pulls = {
            mu * w[1],
            mu * w[1] / 3,
            Fraction(-w[1], 2),
            Fraction(0),
            Fraction(w[1]),
        }
        for n, m in itertools.product(range(2, len(w)), sorted(pulls)):
            dot = (m - sum(w[1:n]) * mu) / w[0]
            for other in {mu, Fraction(1)}:
                gram = _gram(len(w), n, (k, dot), mu, other)
                try:
                    yield HeadCase(head_from_gram(w, gram, sink=0), n)
                except ArgumentError:  # no vectors have these inner products
                    continue


def _check(case: HeadCase) -> tuple[bool, bool]:
    """Whether the statement applies, and whether all it says of the head is true."""
    w, unit, n = case.weights, case.gram[1][1], case.n
    B = sum(w[1:n])
    dot = Fraction(w[0] * case.gram[0][1], unit)
    mu, m = Fraction(case.gram[1][2], unit), Fraction(int(case.exact.dots[n]), unit)
    form = closed_forms.sink_power(Fraction(w[0] ** 2 * case.gram[0][0], unit), dot, B)
    right = m == B * mu + dot and form * unit == case.powers[0]
    for i, j in itertools.product(range(1, n), case.unselected):
        gap = closed_forms.sink_collapse_gap(w[i], w[j], m, mu)
        right &= gap * unit == case.powers[j] - case.powers[i]
    statements = [THEOREMS["T5"], THEOREMS["T5-counts"]]
    applies = all(s.applies(case) for s in statements)
    if applies:
        right &= all(s.slack(case) == 0 for s in statements)
        right &= measure(case.head, n).counts == case.counts
        right &= case.counts.fn_upper <= 1
    return applies, right


@PROOF.step("grid heads", "exact arithmetic")
def grid_heads() -> Outcome:
    """Gaps and phi_0 on every head; T5 and its counts wherever they apply."""
    applied = cases = 0
    for case in _grid():
        applies, right = _check(case)
        cases += 1
        applied += applies
        if not right:
            return Outcome(holds=False, cases=cases, note=f"{case.weights} {case.gram}")
    note = f"{applied} of {cases} within the criterion"
    return Outcome(0 < applied < cases, cases, Fraction(0), note)


def _collapsing_head(n: int, weights: list[Fraction]) -> HeadData:
    """Return a head with mu = 1/4, k = 1/2, sigma = -1/2 and m = 0 for this N.

    The sink is -e_0 and every other value e_0 plus three unit vectors of its own. The
    N - 1 selected weights 1 add up to B, the sink has weight B, so that m = B / 4 -
    B / 4 and phi_0 = B^2 / 4, for values of norm 1. ``weights`` are those of U.
    """
    row = [Fraction(n - 1), *[Fraction(1)] * (n - 1), *weights]
    values = np.zeros((len(row), 3 * len(row) - 2))
    values[:, 0] = 1
    values[0, 0] = -1
    for i in range(1, len(row)):
        values[i, 3 * i - 2 : 3 * i + 1] = 1
    return HeadData([float(w) for w in row], values, visible="all", sink=0)


@PROOF.step("collapse", "exact arithmetic")
def collapse() -> Outcome:
    """Find P = N / |C| and R = (N - 1) / N with many negligible tokens.

    The threshold m + sqrt(m^2 + phi_0) is B / 2, at least 1 for N >= 3. At N = 2 it is
    1/2: weights above it are no false positives, one equal to it is.
    """
    slacks = []
    tiny = Fraction(1, 1024)
    for n, count in itertools.product((2, 3, 4), (1, 10, 50, 200)):
        for large in {0, count // 2} if n == 2 else {0}:
            last = min(Fraction(n - 1, 2), Fraction(1))
            weights = [Fraction(9, 16)] * large + [last] + [tiny] * (count - large - 1)
            head = _collapsing_head(n, weights)
            found, near = measure(head, n), count - large
            slacks += [
                -abs(found.precision.lower - Fraction(n, n + near)),
                -abs(found.recall.lower - Fraction(n - 1, n)),
            ]
            if count <= 50:
                case = HeadCase(head, n)
                if not all(THEOREMS[p].applies(case) for p in ("T5", "T5-counts")):
                    return Outcome(holds=False, note="T5 does not apply")
                slacks += [THEOREMS[p].slack(case) for p in ("T5", "T5-counts")]
    return worst(slacks)


prove = PROOF.run
