"""T4: norms and cosines between two numbers each bound every power.

Setting. Euclidean distance. r_k = ||y_k|| lies in [l_k, h_k], l_k >= 0: the weight
times the norms of its role, of the sink or of the token. <y_i, y_k> = m r_i r_k with m
in [m-, m+], the numbers of the pair's kind (within S, across, or with the sink).

Statement (T4). Let X_i- be the sum over k in S, k != i, of m- l_k where m- >= 0 and of
m- h_k where m- < 0; X_i+ the sum of m+ h_k where m+ >= 0 and of m+ l_k where m+ < 0.
With clip(x) = min(max(x, l_i), h_i): for i in S, phi_i <= -t^2 - 2 t X_i-,
t = clip(-X_i-), and phi_i >= the lesser of -r^2 - 2 r X_i+ at r = l_i, h_i; for j in U,
phi_j >= t^2 - 2 t X_j+, t = clip(X_j+), and phi_j <= the greater of r^2 - 2 r X_j- at
r = l_j, h_j. Each is attained by some r and X. With T1 they bound F.

Proof. *inner products.* For l <= r <= h, m >= m-: m r - m- l = (m - m-) r + m- (r - l)
if m- >= 0, and m r - m- h = (m - m-) r - m- (h - r) if m- < 0: sums of non-negative
products. The other side is the same with (m, m-) replaced by (-m, -m+). Added over k:
the inner product of y_i and the others of S is r_i X_i with X_i- <= X_i <= X_i+. (With
a zero vector any m serves: take one of its interval.) *extremes.* As r >= 0,
-r^2 - 2 r X_i <= g(r) = -r^2 - 2 r X with X = X_i-, and g(t) - g(r) =
(r - t)(r + t + 2 X): this is (r + X)^2 for t = -X; for t = l >= -X both factors are
>= 0; for t = h <= -X both are <= 0. From below, with X = X_i+: (h - l) g(r) -
(h - r) g(l) - (r - l) g(h) = (h - l)(r - l)(h - r) >= 0, so g(r) is at least the lesser
of g(l) and g(h). r^2 - 2 r X is -g with X negated. *regimes token by token.* FP+ and
FN+ read only hi on S and lo on U, hence m- within S, m+ across, and the norms: the
numbers may be kept by role, the norms by token. A bound on <y_j, s_N> / r_j as a whole
may replace X_j+.

Statement (T4-gap). Norm 1, S ranked by weight, cosines in [mu-, mu+] in [0, 1];
a = alpha_N, b = alpha_{N+1} the greatest unselected weight, A the selected weight. The
intervals certify F = 1 iff gap = a^2 + b^2 + 2 mu- a (A - a) - 2 mu+ A b > 0.
Proof. *gap: selected and unselected.* hi(x) = -x^2 - 2 x mu- (A - x), lo(y) = y^2 -
2 y mu+ A; gap = lo(b) - hi(a), so no certificate without a gap. hi(a) - hi(x) =
(x - a)((1 - mu-)(x + a) + mu- (2 A - x - a)) >= 0, as A >= x + a or x = a: max_S hi =
hi(a). lo(y) - lo(b) = (b - y)(2 A mu+ - y - b) >= 0 for y <= b <= A mu+: then min_U lo
= lo(b). If b > A mu+, then a >= b > A mu+ and lo(y) - hi(a) = (y - A mu+)^2 +
(a^2 - A^2 mu+^2) + 2 mu- a (A - a) > 0 for every y: a gap and a certificate.

Statement (T4-roots). An unselected x is counted in FP+ iff p(x) = lo(x) - hi(a) =
x^2 - 2 x A mu+ + a^2 (1 - 2 mu-) + 2 A a mu- <= 0, that is between *roots* A mu+ -+
sqrt(A^2 mu+^2 - a^2 (1 - 2 mu-) - 2 A a mu-); never, if they are not real. Proof. FP+
counts lo(x) <= max_S hi = hi(a).

Statement (T4-cosine). In cosine distance a (1 - mu-) > A (mu+ - mu-) implies F = 1.
Proof. *cosine: projections.* <u_i, s_N> >= x + mu- (A - x) >= a (1 - mu-) + mu- A =: T
for x = alpha_i >= a, as mu- <= 1; <u_j, s_N> <= mu+ A < T where alpha_j > 0, and a zero
contribution has key 0 <= mu+ A < T. The norms are equal: every selected cosine is
greater than every unselected one.

Statement (T4-attained). Norm 1, no sink, by role: cosines within S at least mu-, across
at most mu+. If e = 1 + (N - 1) mu- - N mu+^2 >= 0, unit vectors exist with all cosines
within S equal to mu- and all of U one vector at mu+ to S; then every power is its
bound, FP = FP+, FN = FN+ and F is the least over the regime. If e < 0 there are none.
Proof. *attained: quadratic form.* With x the mean of x_1, ..., x_N and V the sum of
(x_i - x)^2, the Gram matrix of S and that vector gives (1 - mu-) V + (y + N mu+ x)^2 +
N x^2 e: >= 0 if e >= 0; N e at x_i = 1, y = -N mu+. *attained: powers of heads.* At
these cosines X_i = mu- (A - alpha_i) and X_j = mu+ A, the intervals' own ends.
*attained: not attained.* With e < 0 the counts too may be out of reach: N = 2, weights
(1, 1; 1/3), mu- = 0, mu+ = 1: FP+ = 1, but phi_j <= phi_i needs ||s_N|| - 1 <= 1/3
while ||s_N|| >= sqrt(2). Where mu+ also binds within U, its M tokens at mu+ to each
other are best, and the condition is (1 + (N - 1) mu-)(1 + (M - 1) mu+) >= N M mu+^2.

Statement (T4-pair). N >= 2, positive weights, norm 1, all cosines in [mu-, mu+],
|mu-| <= mu+ <= 1. Some unit vectors attain hi_i - lo_j for one pair iff
e2 = (1 + (N-2) mu+)(1 - mu+^2) - (N-1)(mu+^2 + mu-^2 - 2 mu- mu+^2) >= 0.
Proof. It takes i at mu- and j at mu+ to the K = N - 1 others, and i, j at mu+. The mean
of a Gram matrix over permutations of the others keeps all that: their cosines are one
nu, between mu- and mu+.
*pair: form.* (1 - nu) V + K (1 + (K-1) nu) x^2 + u^2 + v^2 + 2 K x (mu- u + mu+ v) +
2 mu+ u v. Raising nu to mu+ adds K (K-1)(mu+ - nu) x^2 and leaves (1 - mu+) V >= 0:
nu = mu+ is best. The form in (sqrt(K) x, u, v) decides; its determinant is e2.
*pair: minors.* Let c = 1 + (K-1) mu+ > 0. The Schur complement of c is [[1, mu+],
[mu+, 1]] less one square; its determinant is e2 / c >= 0 and, by interlacing, its
greater eigenvalue at least 1 - mu+: for mu+ < 1 both are >= 0. For mu+ = 1, e2 =
-K (1 - mu-)^2 forces mu- = 1: equal vectors. *pair: both ways.* By role nothing bounds
the cosines within S from above: nu = 1 is best, and the determinant over K is
(1 - mu-)(1 + mu- - 2 mu+^2), e2 of N = 2.

T1-pairs with T4. *pairs: shared norms.* With x = r_i, y = r_j and X the sum of the
other selected norms, the powers are at most -x^2 - 2 x mu- X and at least y^2 -
2 y mu+ (x + X) at the same norms. Their difference -x^2 - y^2 + 2 mu+ x y +
2 X (mu+ y - mu- x) is at most hi_i - lo_j, linear in X and concave in (x, y): the
Hessian's minors are -2 and 4 (1 - mu+^2). *pairs: box maximum.* So its greatest value
lies at an end of X and, in (x, y), at the stationary point, on an edge or at a corner.
"""

import itertools
from fractions import Fraction
from random import Random
from typing import Any

import sympy as sp
import z3

from geobounds import closed_forms as forms
from geobounds import symbolic
from geobounds.pairwise import check_pairwise
from geobounds.theorems import THEOREMS
from proofs_checks import _t4_extreme, _t4_gap, _t4_pairs
from proofs_checks._t4_heads import (
    draw_head,
    exact_powers,
    fitted,
    free_regimes,
    intervals,
    widened,
)
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T4",
    scope="all N, M and d (symbolic, z3); whole heads N + M <= 4 (z3); seeded heads of "
    "3 to 6 tokens in three scopes; Gram matrices N <= 6; semidefinite programs N <= 8",
)


@PROOF.step("inner products", "symbolic")
def inner_products() -> Outcome:
    """Excess over the least product, split into non-negative products."""
    m, least, r, low, high = sp.symbols("m m- r l h", real=True)
    return zero(
        (m * r - least * low) - ((m - least) * r + least * (r - low)),
        (m * r - least * high) - ((m - least) * r - least * (high - r)),
    )


def _sum_problem(signs: tuple[bool, ...], *, least: bool) -> list[Any]:
    """State that a sum of products lies beyond its bound; signs of the end cosines."""
    given: list[Any] = []
    total, bound = z3.RealVal(0), z3.RealVal(0)
    for k, positive in enumerate(signs):
        m, low, high, r, end = z3.Reals(f"m{k} l{k} h{k} r{k} e{k}")
        given += [low >= 0, low <= r, r <= high, m >= end if least else m <= end]
        given.append(end >= 0 if positive else end < 0)
        total += m * r
        bound += end * (low if positive == least else high)
    return [*given, total < bound if least else total > bound]


@PROOF.step("sums of inner products", "z3")
def sums_of_products() -> Outcome:
    """Up to three terms, every pattern of signs, both sides: no sum beyond."""
    return refuted(
        *(
            _sum_problem(signs, least=least)
            for count in (1, 2, 3)
            for signs in itertools.product((True, False), repeat=count)
            for least in (True, False)
        )
    )


@PROOF.step("the sums need r >= 0", "z3")
def sums_need_norms() -> Outcome:
    """Show that the refutation is not empty: with l < 0 a sum lies beyond."""
    problem = _sum_problem((True, True), least=True)
    return satisfiable([c for c in problem if not c.eq(z3.Real("l0") >= 0)])


@PROOF.step("extremes", "symbolic")
def extremes() -> Outcome:
    """Each case of the closed form against a free r: the stated factors."""
    low, high = sp.symbols("low high", nonnegative=True)
    r, below, above = sp.symbols("r X- X+", real=True)
    rest = []
    for sign, inner, outer in ((-1, below, above), (1, above, below)):
        ends = symbolic.power_interval(low, high, below, above, selected=sign < 0)
        vertex, end = ends[::-1] if sign < 0 else ends

        def g(x: Any, pull: Any, sign: int = sign) -> Any:
            return sign * x * x - 2 * x * pull

        at_low, at_high, between = (branch for branch, _ in vertex.args)
        turn = sign * inner
        rest += [
            at_low - g(r, inner) - sign * (low - r) * (low + r - 2 * turn),
            at_high - g(r, inner) - sign * (high - r) * (high + r - 2 * turn),
            between - g(r, inner) + sign * (r - turn) ** 2,
            (high - low) * g(r, outer)
            - (high - r) * g(low, outer)
            - (r - low) * g(high, outer)
            + sign * (high - low) * (r - low) * (high - r),
            sum(end.args) - g(low, outer) - g(high, outer),
        ]
    return zero(*rest)


def _power_problem(*, selected: bool, upper: bool) -> list[Any]:
    """State that a power lies beyond one end, in z3."""
    r, low, high, X, below, above = z3.Reals("r l h X X- X+")
    sign = -1 if selected else 1
    given = [low >= 0, low <= r, r <= high, below <= X, above >= X]
    pull = below if upper else above
    power = sign * r * r - 2 * r * X
    if selected == upper:  # the vertex
        turn = sign * pull
        t = z3.If(turn < low, low, z3.If(turn > high, high, turn))
        end = sign * t * t - 2 * t * pull
        return [*given, power > end if upper else power < end]
    ends = [sign * x * x - 2 * x * pull for x in (low, high)]
    return [*given, *(power > e if upper else power < e for e in ends)]


@PROOF.step("no power outside", "z3")
def no_power_outside() -> Outcome:
    """All four ends of the two intervals, X anywhere between its bounds."""
    sides = itertools.product((True, False), repeat=2)
    return refuted(*(_power_problem(selected=s, upper=u) for s, u in sides))


@PROOF.step("the intervals need r >= 0", "z3")
def needs_norms() -> Outcome:
    """Show that the refutation is not empty: with r < 0 a power lies outside."""
    problem = _power_problem(selected=True, upper=True)
    return satisfiable([c for c in problem if not c.eq(z3.Real("l") >= 0)])


@PROOF.step("ends attained", "exact arithmetic")
def ends_attained() -> Outcome:
    """Both ends are powers at some r of the interval, and no r goes beyond."""
    rng, slacks = Random(0), []
    for draw_number in range(800):
        draw = THEOREMS["T4"].sample(rng)
        low, high, selected = draw["low"], draw["high"], draw["selected"]
        pulls = draw["pull_low"], draw["pull_high"]
        least, greatest = forms.power_interval(**draw)
        sign = -1 if selected else 1

        def powers(r: Fraction, sign: int = sign, pulls: Any = pulls) -> list[Fraction]:
            return [sign * r * r - 2 * r * pull for pull in pulls]

        inside = [low + (high - low) * Fraction(k, 9) for k in range(10)]
        found = [power for r in inside for power in powers(r)]
        slacks += [min(found) - least, greatest - max(found)]
        turns = [sign * pull for pull in pulls if low <= sign * pull <= high]
        ends = [power for r in (low, high, *turns) for power in powers(r)]
        if least not in ends or greatest not in ends:
            return Outcome(holds=False, note=f"not attained: {draw}")
        if draw_number < 60:
            stated = symbolic.evaluate("power_interval", draw)
            if stated != (sp.Rational(least), sp.Rational(greatest)):
                return Outcome(holds=False, note=f"symbolic form differs: {draw}")
    return worst(slacks)


@PROOF.step("regimes token by token", "exact arithmetic")
def regimes_by_token() -> Outcome:
    """Compare the library with the formula in every scope; the powers lie within."""
    rng, slacks = Random(4), []
    for _ in range(220):
        case = draw_head(rng)
        powers = exact_powers(case)
        holding = list(fitted(case))
        holding += [widened(regime, rng) for regime in holding]
        for regime in holding + list(free_regimes(case, rng)):
            bound = regime.enclosure(case.head, case.selection)
            stated = intervals(regime, case)
            found = [*bound.hi[: case.n], *bound.lo[case.n :]]
            if found != [ends[i < case.n] for i, ends in enumerate(stated)]:
                return Outcome(holds=False, note=f"{regime} differs")
            if regime not in holding:
                continue
            check_pairwise(regime, case.head, case.selection)
            for i, (power, ends) in enumerate(zip(powers, stated, strict=True)):
                if i < case.n or regime.scope == "all":
                    slacks.append(ends[1] - power)
                if i >= case.n or regime.scope == "all":
                    slacks.append(power - ends[0])
    return worst(slacks)


for _name, _method, _check in (
    *_t4_gap.STEPS,
    *_t4_extreme.STEPS,
    *_t4_pairs.STEPS,
):
    PROOF.step(_name, _method)(_check)

prove = PROOF.run
