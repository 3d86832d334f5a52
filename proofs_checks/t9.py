"""T9: random directions are nearly orthogonal; their pulls grow like the root of N.

Statement (T9). u_1, ..., u_L independent and uniform on the unit sphere of R^d, L >= 2,
d >= 1, 0 < delta < 1. With probability at least 1 - delta all |<u_i, u_k>|, i < k, are
at most eps = sqrt(2 ln(L (L - 1) / delta) / d).

Statement (T9-token). L candidates with contributions y_k = r_k u_k; norms, weights and
S independent of the directions (S may follow any rule from norms and weights). Let
R = sqrt(sum_S r_k^2), R_i the same without i, tau = sqrt(2 ln(L / delta) / d). With
probability at least 1 - delta, for all tokens at once, <u_j, s_N> <= tau R for j in U
and <u_i, s_N - y_i> >= -tau R_i for i in S; hence phi_j >= r_j^2 - 2 r_j tau R and
phi_i <= -r_i^2 + 2 r_i tau R_i. By T1 these intervals bound the counts and F_N.

Proof. Let u be uniform, e a fixed unit vector, x = <u, e>. By invariance under
rotations x is distributed like a coordinate of u.

*moments.* x and -x have one law, so odd moments vanish. A standard Gaussian g of R^d is
|g| u with u uniform and independent of |g|, so E g_1^{2k} = E |g|^{2k} E x^{2k}, that
is (2k-1)!! = d (d+2) ... (d+2k-2) E x^{2k}. This covers d = 1, where x = -1 or 1. For
d >= 2 the density of x is proportional to (1 - x^2)^{(d-3)/2}, and one integration by
parts gives the same: (d + 2k) E x^{2k+2} = (2k + 1) E x^{2k}.

*term by term.* E exp(s x) is the sum of s^{2k} E x^{2k} / (2k)!, exp(s^2 / (2d)) that
of s^{2k} / (2^k k! d^k). Both coefficients are 1 at k = 0; from k to k + 1 the first is
multiplied by 1 / ((2k+2)(d+2k)), the second by 1 / ((2k+2) d), which is no less (*no
greater coefficient*). So E exp(s x) <= exp(s^2 / (2d)) for every real s.

*tail.* P(x >= t) <= exp(-s t + s^2 / (2d)) for s >= 0, least at s = d t:
P(x >= t) <= exp(-d t^2 / 2) for t >= 0. *sphere of odd dimension* compares the two for
d = 1, 3, ..., 15, where the left side is a polynomial in t.

*union bound.* Given u_k, <u_i, u_k> is distributed like x, so a pair exceeds eps in
absolute value with probability at most 2 exp(-d eps^2 / 2). There are L (L-1) / 2
pairs, and L (L-1) exp(-d eps^2 / 2) = delta.

*token.* Fix j in U and condition on u_j, the norms and S. The <u_k, u_j>, k in S, are
independent and distributed like x; hence E exp(s <u_j, s_N>) is the product of the
E exp(s r_k x) and at most exp(s^2 R^2 / (2d)). For R > 0 the best s = d tau / R gives
P(<u_j, s_N> > tau R) <= exp(-d tau^2 / 2) = delta / L; for R = 0 both sides are 0. For
i in S the same holds with S less i and -u_i. One event a candidate: delta in all.

*powers.* phi_j = r_j^2 - 2 r_j <u_j, s_N>, phi_i = -r_i^2 - 2 r_i <u_i, s_N - y_i>.

*gain.* N pairs at eps give <u_j, s_N> <= eps sum_S r_k. By Cauchy R <= sum_S r_k <=
sqrt(N) R, with equality on the right for equal norms; and L / delta <= L (L-1) / delta
<= (L / delta)^2 gives tau <= eps <= sqrt(2) tau. So the token bound is never the
weaker, and for equal norms better by sqrt(N) eps / tau, between sqrt(N) and sqrt(2N).
"""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import sympy as sp
import z3
from scipy.stats import binomtest

from geobounds import symbolic
from geobounds.errors import ArgumentError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.isotropic import (
    IsotropicRegime,
    isotropic_cosine_bound,
    isotropic_token_bound,
)
from geobounds.selection import Selection, rank
from geobounds.separability import Counts, interval_counts
from geobounds.situation import Numbers, column_of
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T9",
    scope="all L, N, d, delta (symbolic); d = 1 by enumeration, odd d <= 15 by "
    "polynomials; simulations at significance 1e-6",
)
# Significance of every binomial test: how often one of them would err by chance.
ALPHA = 1e-6


def _all(*outcomes: Outcome) -> Outcome:
    """Hold iff every outcome holds."""
    notes = [o.note for o in outcomes if o.note]
    return Outcome(
        all(o.holds for o in outcomes),
        sum(o.cases for o in outcomes),
        None,
        "; ".join(notes),
    )


@PROOF.step("moments", "symbolic")
def moments() -> Outcome:
    """Derive the moments of a coordinate, from Gaussians and from its density."""
    k = sp.Symbol("k", integer=True, nonnegative=True)
    d, r = sp.symbols("d r", positive=True)
    bell = sp.exp(-(r**2) / 2)
    normal = 2 * sp.integrate(r ** (2 * k) * bell, (r, 0, sp.oo)) / sp.sqrt(2 * sp.pi)
    radial = sp.integrate(r ** (2 * k + d - 1) * bell, (r, 0, sp.oo))
    moment = normal / (radial / radial.subs(k, 0))
    x = sp.Symbol("x", real=True)
    density = (1 - x**2) ** ((d - 3) / 2)
    # What integration by parts moves; it vanishes at both ends for d > 1.
    parts = sp.diff(x ** (2 * k + 1) * (1 - x**2) * density, x)
    split = (2 * k + 1) * x ** (2 * k) - (d + 2 * k) * x ** (2 * k + 2)

    def factor(f: Any) -> Any:
        return sp.gammasimp(sp.expand_func(f.subs(k, k + 1)) / f)

    return zero(
        sp.gammasimp(moment.subs(k, 0)) - 1,
        factor(normal) - (2 * k + 1),
        factor(radial) - (d + 2 * k),
        (d + 2 * k) * factor(moment) - (2 * k + 1),
        sp.simplify(parts / density) - split,
    )


@PROOF.step("term by term", "symbolic")
def term_by_term() -> Outcome:
    """Compare the factors from one coefficient to the next; sum the greater ones."""
    k = sp.Symbol("k", integer=True, nonnegative=True)
    d, s = sp.symbols("d s", positive=True)
    greater = 1 / (2**k * sp.factorial(k) * d**k)
    own = (2 * k + 1) / ((d + 2 * k) * (2 * k + 1) * (2 * k + 2))
    step = sp.gammasimp(sp.combsimp(greater.subs(k, k + 1) / greater))
    excess = sp.factor(step - own)
    identities = zero(
        step - 1 / ((2 * k + 2) * d),
        own - 1 / ((2 * k + 2) * (d + 2 * k)),
        excess - k / (d * (k + 1) * (d + 2 * k)),
        sp.summation(greater * s ** (2 * k), (k, 0, sp.oo)) - sp.exp(s**2 / (2 * d)),
    )
    return _all(identities, Outcome(bool(excess.is_nonnegative)))


@PROOF.step("no greater coefficient", "z3")
def no_greater_coefficient() -> Outcome:
    """Seek a factor of E exp(s x) above that of exp(s^2 / (2d)): none."""
    d, k = z3.Reals("d k")
    own, other = (2 * k + 2) * (d + 2 * k), (2 * k + 2) * d
    range_ = [d > 0, k >= 0]
    found = refuted([*range_, own < other])
    strict = satisfiable([*range_, own > other])
    return _all(found, strict)


@PROOF.step("moments of small dimensions", "exact arithmetic")
def small_moments() -> Outcome:
    """Compare moments with the law itself: signs at d = 1, polynomials at odd d."""
    slacks = []
    for d, k in itertools.product((1, 3, 5, 7, 9), range(7)):
        moment = Fraction(1)
        for m in range(k):
            moment *= Fraction(2 * m + 1, d + 2 * m)
        law = Fraction(1) if d == 1 else _integral(d, 2 * k) / _integral(d, 0)
        if moment != law:
            return Outcome(holds=False, note=f"moment {2 * k} at d = {d}")
        odd = math.prod(range(1, 2 * k, 2))
        slacks.append(Fraction(odd, d**k) - moment)
    return worst(slacks)


def _integral(d: int, power: int, start: Fraction = Fraction(0)) -> Fraction:
    """Integral of x^power (1 - x^2)^((d-3)/2) from start to 1, d odd and at least 3."""
    half = (d - 3) // 2
    total = Fraction(0)
    for m in range(half + 1):
        degree = power + 2 * m + 1
        total += Fraction((-1) ** m * math.comb(half, m), degree) * (1 - start**degree)
    return total


def _exponential(y: Fraction, bits: int = 800) -> tuple[Fraction, Fraction]:
    """Return rationals around exp(y), y >= 0, in integers over 2^bits.

    A Taylor sum at y / 2^m <= 1/2, then m squares, each rounded outward.
    """
    one, halvings = 1 << bits, math.ceil(y).bit_length() + 1
    z = y / 2**halvings * one
    low, high, low_term, high_term = 0, 0, one, one
    for k in range(1, 150):
        low, high = low + low_term, high + high_term
        low_term = low_term * math.floor(z) // (one * k)
        high_term = -(-high_term * math.ceil(z) // (one * k))
    high += 2 * high_term  # the rest lies below a geometric series of ratio 1/2
    for _ in range(halvings):
        low, high = low * low // one, -(-high * high // one)
    return Fraction(low, one), Fraction(high, one)


@PROOF.step("tail", "symbolic")
def tail() -> Outcome:
    """Minimise the exponent of Chernoff's bound, for one direction and for a sum."""
    d, s, t, R, tau = sp.symbols("d s t R tau", positive=True)
    one = -s * t + s**2 / (2 * d)
    many = -s * tau * R + s**2 * R**2 / (2 * d)
    r = sp.symbols("r0:4", nonnegative=True)
    product = sp.prod([sp.exp((s * x) ** 2 / (2 * d)) for x in r])
    identities = zero(
        one - (s - d * t) ** 2 / (2 * d) + d * t**2 / 2,
        sp.solve(sp.diff(one, s), s)[0] - d * t,
        one.subs(s, d * t) + d * t**2 / 2,
        many - (s * R - d * tau) ** 2 / (2 * d) + d * tau**2 / 2,
        many.subs(s, d * tau / R) + d * tau**2 / 2,
        sp.log(product / sp.exp(s**2 * sum(x**2 for x in r) / (2 * d))),
    )
    convex = all(sp.diff(f, s, 2).is_positive for f in (one, many))
    return _all(identities, Outcome(convex))


@PROOF.step("sphere of odd dimension", "exact arithmetic")
def odd_sphere() -> Outcome:
    """Bound P(x >= t) by exp(-d t^2 / 2) on all of [0, 1]: both fall in t."""
    slacks, steps = [], 64
    for d in (1, 3, 5, 7, 9, 11, 13, 15):
        for m in range(steps):
            left, right = Fraction(m, steps), Fraction(m + 1, steps)
            # P at the left end bounds P on the cell; exp at its right end is least.
            chance = Fraction(1, 2)
            if d > 1:
                chance *= _integral(d, 0, left) / _integral(d, 0)
            slacks.append(1 - chance * _exponential(d * right * right / 2)[1])
    return worst(slacks)


@PROOF.step("union bound", "symbolic")
def union_bound() -> Outcome:
    """Add up the chances of all events: delta at eps and at tau."""
    L, d = sp.symbols("L d", positive=True)
    delta = sp.Symbol("delta", positive=True)
    eps = symbolic.isotropic_cosine_bound(L, d, delta)
    tau = symbolic.isotropic_token_bound(L, d, delta)

    def chance(t: Any) -> Any:
        return sp.exp(sp.expand(-d * t**2 / 2))

    return zero(
        (L * (L - 1) / 2) * 2 * chance(eps) - delta,
        L * chance(tau) - delta,
    )


@PROOF.step("powers", "z3")
def powers() -> Outcome:
    """Seek a pull within its bound and a power outside its interval: none."""
    r, pull, bound = z3.Reals("r pull bound")
    # <y_i, s_N> holds r^2 of the token's own besides the pull of the others.
    selected, unselected = r * r - 2 * (r * r + r * pull), r * r - 2 * r * pull
    given = [r >= 0, bound >= 0]
    upper, lower = -r * r + 2 * r * bound, r * r - 2 * r * bound
    found = refuted(
        [*given, pull >= -bound, selected > upper],
        [*given, pull <= bound, unselected < lower],
    )
    attained = satisfiable([*given, r > 0, pull == bound, unselected == lower])
    return _all(found, attained)


@PROOF.step("gain", "symbolic")
def gain() -> Outcome:
    """Place the gain in [1, sqrt(2N)], for equal norms in [sqrt(N), sqrt(2N)]."""
    L, d, N, r = sp.symbols("L d N r", positive=True)
    delta = sp.Symbol("delta", positive=True)
    pair, token = (
        sp.expand_log(d * f(L, d, delta) ** 2 / 2, force=True)
        for f in (symbolic.isotropic_cosine_bound, symbolic.isotropic_token_bound)
    )
    ratio = (N * r) ** 2 / (N * r**2)
    spreads = []
    for n in range(1, 6):
        x = sp.symbols(f"x0:{n}", nonnegative=True)
        pairs = itertools.combinations(x, 2)
        square, mass = sum(x) ** 2, sum(y**2 for y in x)
        spread = n * mass - square
        spreads.append(spread - sum((y - z) ** 2 for y, z in pairs))
    return zero(
        # (eps / tau)^2 >= 1 as ln(L - 1) >= 0; <= 2 as ln(L / ((L - 1) delta)) > 0.
        pair - token - sp.log(L - 1),
        2 * token - pair - sp.expand_log(sp.log(L / ((L - 1) * delta)), force=True),
        ratio - N,
        *spreads,
    )


@PROOF.step("gain of the library's bounds", "exact arithmetic")
def gain_of_the_bounds() -> Outcome:
    """Compare N pairs at eps with tau on random norms: never the weaker."""
    rng, slacks = Random(9), []
    for _ in range(400):
        n = rng.randint(1, 40)
        size = n + rng.randint(1, 400)
        arguments = size, rng.choice([1, 8, 64]), Fraction(1, rng.randint(2, 10**6))
        eps = Fraction(isotropic_cosine_bound(*arguments))
        tau = Fraction(isotropic_token_bound(*arguments))
        norms = [Fraction(rng.randint(0, 9)) for _ in range(n)]
        total, mass = sum(norms), sum(x * x for x in norms)
        slacks += [(eps * total) ** 2 - tau * tau * mass, 2 * tau * tau - eps * eps]
    return worst(slacks)


_BOUNDS = (
    (isotropic_cosine_bound, symbolic.isotropic_cosine_bound, 2),
    (isotropic_token_bound, symbolic.isotropic_token_bound, 1),
)


@PROOF.step("least double", "exact arithmetic")
def least_double() -> Outcome:
    """Find each bound x the least double with exp(d x^2 / 2) >= choices / delta."""
    cases = 0
    for (numeric, _, least), arguments in itertools.product(_BOUNDS, _arguments()):
        size, d, delta = int(arguments[0]), arguments[1], arguments[2]
        if size < least:
            continue
        cases += 1
        found = numeric(*arguments)
        choices = size * (size - 1) if least == 2 else size
        ratio = choices / Fraction(delta)
        ends = (Fraction(x) for x in (found, math.nextafter(found, 0)))
        above, below = (_exponential(int(d) * x * x / 2) for x in ends)
        if not above[0] >= ratio > below[1]:
            return Outcome(holds=False, cases=cases, note=f"{arguments}: {found}")
    return Outcome(holds=True, cases=cases)


@PROOF.step("least double of the symbolic form", "symbolic")
def least_double_of_form() -> Outcome:
    """Compare with fifty digits of the symbolic form."""
    cases = 0
    for (numeric, form, least), arguments in itertools.product(_BOUNDS, _random()):
        size, d, delta = max(arguments[0], least), arguments[1], arguments[2]
        cases += 1
        found = numeric(size, d, delta)
        true = form(size, d, sp.Rational(delta))
        # SymPy raises its precision until fifty digits of a difference are certain.
        above, under = (
            (sp.Rational(Fraction(x)) - true).evalf(50, maxn=1000, strict=True)
            for x in (found, math.nextafter(found, 0))
        )
        if not (above >= 0 > under):
            return Outcome(holds=False, cases=cases, note=f"{arguments}: {found}")
    return Outcome(holds=True, cases=cases)


def _arguments() -> Iterator[tuple[int, int, Any]]:
    """L, d and delta: small, large, near 0 and near 1; numpy's integers too."""
    chances: list[Any] = [
        Fraction(1, 20),
        0.05,
        5e-324,
        1 - 2.0**-53,
        Fraction(1, 10**400),
        1 - Fraction(1, 10**70),
    ]
    yield from itertools.product((1, 2, 16, 131072), (1, 64, 10**30), chances)
    narrow: Any = (np.int32(60000), np.int64(7))
    yield *narrow, Fraction(1, 3)
    yield from _random()


def _random() -> Iterator[tuple[int, int, Fraction]]:
    rng = Random(90)
    for _ in range(80):
        low, high = sorted(rng.sample(range(1, 10**6), 2))
        yield rng.randint(1, 5000), rng.randint(1, 1024), Fraction(low, high)


@PROOF.step("the regime's intervals", "exact arithmetic")
def intervals() -> Outcome:
    """Compare the ends with their definition, every policy and hidden keys."""
    rng, slacks = Random(91), []
    for case in range(240):
        head, choice = _small_head(rng, ("keep", "drop", "compete")[case % 3])
        delta = (Fraction(1, 20), Fraction(5e-324), 1 - Fraction(1, 2**53))[
            case // 3 % 3
        ]
        regime = IsotropicRegime(delta)
        slacks += _ends(regime, head, choice)
        if regime.counts(head, choice) != interval_counts(
            regime.enclosure(head, choice)
        ):
            return Outcome(holds=False, note="counts do not follow from intervals")
    return worst(slacks)


def _small_head(rng: Random, policy: str) -> tuple[HeadData, Selection]:
    """Draw a head of small numbers, zeros, hidden keys and a sink anywhere."""
    size, d = rng.randint(4, 8), rng.randint(1, 3)
    hidden = rng.sample(range(size), rng.randint(0, 1))
    weights = [
        0.0 if k in hidden else rng.randint(0 if k else 1, 9) / 16 for k in range(size)
    ]
    weights[0 if 0 not in hidden else 1] += 0.5
    values = [[rng.randint(-3, 3) / 2 for _ in range(d)] for _ in range(size)]
    visible = [k not in hidden for k in range(size)]
    head = HeadData(weights, values, visible=visible, sink=rng.randrange(size))
    order = rank(head, -1, rng.choice(["weight", "contribution"]), policy)
    return head, order.select(rng.randint(1, order.n_candidates - 1))


def _ends(regime: IsotropicRegime, head: HeadData, choice: Selection) -> list[Fraction]:
    """Slacks of the ends against their definition in fractions."""
    bound, exact = regime.enclosure(head, choice), ExactGeometry(head, choice)
    unit = Fraction(2) ** (2 * (exact.w_exponent + exact.v_exponent))
    keys, n = choice.keys.tolist(), choice.n
    squares = []
    for key in keys:
        norm = sum((Fraction(float(x)) ** 2 for x in head.values64[key]), Fraction(0))
        squares.append(Fraction(float(head.weights[-1][key])) ** 2 * norm)
    tau = Fraction(isotropic_token_bound(len(keys), head.d_head, regime.probability))
    slacks = []
    for k, square in enumerate(squares):
        others = sum(squares[i] for i in range(n) if i != k)
        end, open_ = (bound.hi[k], bound.lo[k]) if k < n else (bound.lo[k], bound.hi[k])
        sign = 1 if k < n else -1
        pull = sign * end * unit + square
        root = 4 * tau * tau * square * others
        near = pull * (1 - Fraction(1, 2**60))
        slacks += [pull, pull * pull - root, root - near * near]
        slacks.append(Fraction(0 if open_ == -sign * math.inf else -1))
    return slacks


@PROOF.step("refused probabilities", "exact arithmetic")
def refused() -> Outcome:
    """Refuse a delta outside (0, 1), L too small and d = 0."""
    wrong: list[Callable[[], Any]] = [
        *(lambda p=p: IsotropicRegime(p) for p in (0, 1, Fraction(-1, 2), 2)),
        *(lambda p=p: isotropic_token_bound(2, 1, p) for p in (0, 1, math.nan)),
        lambda: isotropic_cosine_bound(1, 1, Fraction(1, 2)),
        lambda: isotropic_token_bound(0, 1, Fraction(1, 2)),
        lambda: isotropic_token_bound(2, 0, Fraction(1, 2)),
    ]
    for call in wrong:
        try:
            call()
        except ArgumentError:
            continue
        return Outcome(holds=False, note="a wrong argument was taken")
    return Outcome(holds=True, cases=len(wrong))


@PROOF.step("all signs", "enumeration")
def all_signs() -> Outcome:
    """Count all signs at d = 1: how often some power leaves its interval, exactly."""
    slacks, cases = [], 0
    for weights, n, delta in (
        ((1,) * 10, 7, Fraction(9, 10)),
        ((4, 4, 4, 3, 3, 3, 3, 2, 1), 7, Fraction(1, 2)),
        ((2,) * 8 + (1,), 8, Fraction(2, 3)),
    ):
        failed, size = 0, len(weights)
        regime = IsotropicRegime(delta)
        for signs in itertools.product((1, -1), repeat=size):
            head = HeadData(weights, [[sign] for sign in signs])
            choice = rank(head).select(n)
            failed += not _inside(head, choice, regime)
        cases += 2**size
        if failed == 0:
            return Outcome(holds=False, note="no interval was ever left")
        slacks.append(delta - Fraction(failed, 2**size))
    return Outcome(min(slacks) >= 0, cases, min(slacks))


def _inside(head: HeadData, choice: Selection, regime: IsotropicRegime) -> bool:
    """Tell whether every power lies in its interval; the counts then obey T1."""
    key = column_of(ExactGeometry(head, choice).powers().tolist())
    bound = regime.enclosure(head, choice)
    inside = bool((bound.lo <= key).all() and (key <= bound.hi).all())
    if inside:
        _require_counts(
            interval_counts(bound), interval_counts(type(bound)(key, key, choice.n))
        )
    return inside


def _require_counts(found: Counts, true: Counts) -> None:
    pairs = (
        (found.fp_upper, true.fp_upper),
        (found.fn_upper, true.fn_upper),
        (true.f_score.lower, found.f_score.lower),
    )
    if any(high < low for high, low in pairs):
        msg = "powers inside their intervals, but counts outside their bounds"
        raise ValueError(msg)


def _rarer(failed: int, draws: int, delta: Fraction) -> bool:
    """Whether a failure rate of delta or more is rejected."""
    test = binomtest(failed, draws, float(delta), alternative="less")
    return bool(test.pvalue <= ALPHA)


def _more_often(failed: int, draws: int, delta: Fraction) -> bool:
    """Whether a failure rate of delta or less is rejected."""
    test = binomtest(failed, draws, float(delta), alternative="greater")
    return bool(test.pvalue <= ALPHA)


def _directions(
    rng: np.random.Generator, shape: tuple[int, ...], common: float = 0
) -> np.ndarray:
    """Draw unit vectors; ``common`` adds one Gaussian to all of a draw."""
    vectors = rng.normal(size=shape)
    shared = rng.normal(size=(*shape[:-2], 1, shape[-1]))
    vectors = vectors + common * shared
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


_PAIRS = ((3, 16, Fraction(1, 4)), (6, 32, Fraction(1, 4)), (24, 64, Fraction(1, 10)))


def _pair_failures(
    size: int, d: int, bound: float, draws: int, common: float = 0
) -> int:
    """Count the draws in which some cosine exceeds the bound."""
    u = _directions(np.random.default_rng([9, size, d]), (draws, size, d), common)
    above = np.triu_indices(size, 1)
    cosines = np.abs(u @ u.swapaxes(1, 2))[:, above[0], above[1]]
    return int((cosines > bound).any(axis=1).sum())


@PROOF.step("pairs of random directions", "simulation")
def random_pairs() -> Outcome:
    """Reject, at every size, that the bound fails at a rate of delta or more."""
    draws = 2000
    for size, d, delta in _PAIRS:
        bound = isotropic_cosine_bound(size, d, delta)
        failed = _pair_failures(size, d, bound, draws)
        if not _rarer(failed, draws, delta):
            return Outcome(holds=False, note=f"L = {size}, d = {d}: {failed} failures")
    return Outcome(holds=True, cases=len(_PAIRS) * draws)


@PROOF.step("controls of the pairs", "simulation")
def pair_controls() -> Outcome:
    """Reject a rate of delta or less for correlated directions, and at half eps."""
    draws = 500
    for size, d, delta in _PAIRS:
        bound = isotropic_cosine_bound(size, d, delta)
        correlated = _pair_failures(size, d, bound, draws, common=2)
        halved = _pair_failures(size, d, bound / 2, draws)
        for failed in (correlated, halved):
            if not _more_often(failed, draws, delta):
                return Outcome(holds=False, note=f"L = {size}: only {failed} failures")
    return Outcome(holds=True, cases=2 * len(_PAIRS) * draws)


_HEADS = (
    (6, 3, 3, Fraction(1, 2)),
    (12, 8, 8, Fraction(1, 4)),
    (24, 4, 16, Fraction(1, 10)),
)


def _head_failures(
    size: int,
    n: int,
    d: int,
    delta: Fraction,
    draws: int,
    *,
    common: float = 0,
    ranking: str = "weight",
) -> int:
    """Count the random heads in which some power leaves its interval.

    ``ranking="aligned"`` selects the tokens that point along the last one.
    """
    rng = np.random.default_rng([90, size, n, d])
    regime, failed = IsotropicRegime(delta), 0
    for _ in range(draws):
        u = _directions(rng, (size, d), common)
        weights = rng.dirichlet(np.ones(size))
        head = HeadData(weights, u * rng.uniform(1, 3, (size, 1)))
        cosines = u @ u[-1] - 3 * (np.arange(size) == size - 1)
        scores: Any = cosines if ranking == "aligned" else ranking
        failed += not _inside(head, rank(head, -1, scores).select(n), regime)
    return failed


@PROOF.step("heads of random directions", "simulation")
def random_heads() -> Outcome:
    """Reject that a share of delta or more of heads leaves its intervals."""
    draws = 300
    for sizes in _HEADS:
        failed = _head_failures(*sizes, draws)
        if not _rarer(failed, draws, sizes[-1]):
            return Outcome(holds=False, note=f"{sizes}: {failed} failures")
    return Outcome(holds=True, cases=len(_HEADS) * draws)


@PROOF.step("controls of the heads", "simulation")
def head_controls() -> Outcome:
    """Reject correlated directions, and a selection that reads directions."""
    draws = 60
    found = {
        "correlated": _head_failures(24, 12, 16, Fraction(1, 10), draws, common=2),
        "aligned": _head_failures(64, 16, 8, Fraction(1, 10), draws, ranking="aligned"),
    }
    for name, failed in found.items():
        if not _more_often(failed, draws, Fraction(1, 10)):
            return Outcome(holds=False, note=f"{name}: only {failed} failures")
    return Outcome(holds=True, cases=2 * draws)


@PROOF.step("the statements' slacks", "simulation")
def slacks_of_the_statements() -> Outcome:
    """Take the slacks of both statements, 400 draws each: significantly positive."""
    slacks = []
    for part, (size, d, delta) in itertools.product(("T9", "T9-token"), _PAIRS):
        numbers = {"n_vectors": size, "d_head": d, "probability": delta}
        situation = Numbers(numbers | {"draws": "uniform"})
        slack = THEOREMS[part].slack(situation)
        failed = int(400 * (delta - slack))
        if not (THEOREMS[part].applies(situation) and _rarer(failed, 400, delta)):
            return Outcome(holds=False, note=f"{part} at {numbers}: {failed} failures")
        slacks.append(slack)
    return worst(slacks)


prove = PROOF.run
