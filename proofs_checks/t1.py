"""T1: intervals around a distance key bound the counts, and no better bound exists.

Notation. Keys x_i order the candidates as their distances do; FP = #{j in U : x_j <=
max_S x}, FN = #{i in S : x_i >= min_U x}, G = #{(i, j) : x_j <= x_i}. A pair with
x_j <= x_i is an inversion. N = |S|, M = |U|.

Statement (T1). Let lo_i <= x_i <= hi_i. With FP+ = #{j : lo_j <= max_S hi}, FN+ =
#{i : hi_i >= min_U lo}, FP- = #{j : hi_j <= max_S lo}, FN- = #{i : lo_i >= min_U hi}
(G+ and G- likewise): FP- <= FP <= FP+, FN- <= FN <= FN+, G- <= G <= G+, and P, R, F
lie between the values that the upper and the lower counts give. F = 1 follows from the
intervals iff max_S hi < min_U lo. All bounds are attained, the upper ones together and
the lower ones together; for N >= 2 and d >= 2 by contributions whose powers lie in
the given intervals.

Proof.

*order alone counts.* FP, FN, G compare keys only. For a strictly increasing g, x <= y
iff g(x) <= g(y), so neither the counts of x nor those of the ends change under g. The
power D^2 - ||s||^2 is strictly increasing in D >= 0. The key -kappa of the cosine
distance is ||s||^2 times -c|c|, c the cosine, and c -> c|c| is strictly increasing.
So T1 holds for each of these keys.

*within the intervals.* If j is a false positive, some i in S has x_j <= x_i, so
lo_j <= x_j <= x_i <= hi_i <= max_S hi. Conversely hi_j <= lo_i gives x_j <= hi_j <=
lo_i <= x_i. The same two chains serve FN and G, pair by pair.

*metrics fall with the counts.* P = N/(N + FP) and R = 1 - FN/N fall in FP and in FN.
For FN < N, 1/F = (1 + FP/N + N/(N - FN))/2, and raising FP by x and FN by y raises it
by x/(2N) + N y/(2 (N - FN)(N - FN - y)) >= 0; for FN = N, F = 0 is least.

*both ends are attained.* The keys x = hi on S and x = lo on U turn every inequality
above into an equality and so attain FP+, FN+ and G+ together; x = lo on S and x = hi on
U attain FP-, FN- and G-. Hence the ends of P, R and F are attained too, and F = 1 for
all keys in the intervals iff FP+ = 0, that is max_S hi < min_U lo.

*every power vector.* N >= 2, phi any vector of rationals; we construct rational
contributions. Multiply phi by the square of a common denominator: let phi be integral.
Take an integer m = t^2 with (N - 1) m >= max_S phi and Q = N (N - 1) m - sum_S phi >=
max(0, -min_U phi). Each pair i < k of S has a coordinate in which y_i is t and y_k is
-t, and each token has coordinates of its own, in which y_i, i in S, has squared length
(N - 1) m - phi_i, a sum of four squares. Then <y_i, y_k> = -m, r_i^2 = 2 (N - 1) m -
phi_i, so -r_i^2 - 2 sum_{k in S, k != i} <y_i, y_k> = phi_i, and ||s||^2 = Q. For j in
U let y_j be s plus a vector of squared length Q + phi_j >= 0 in its own coordinates:
r_j^2 - 2 <y_j, s> = (2Q + phi_j) - 2Q = phi_j. Values v = y/alpha with any strictly
decreasing weights alpha make S the N candidates of largest weight.

*powers in the plane.* d = 2 suffices for real contributions, hence every d >= 2. Let
L = max |phi|, s = (sigma, 0) with sigma > 0 and sigma^2 >= N L, and D_i =
sqrt(phi_i + sigma^2), which is real. A point at distance D_i from s has power phi_i,
since ||s + w||^2 - 2 <s + w, s> = ||w||^2 - sigma^2. Put y_j = s + (D_j, 0) for U. For
S we need vectors w_i of lengths D_i with sum_S (s + w_i) = s, i.e. sum_S w_i =
-(N - 1) s. Let w_i = (-D_i, 0) for i >= 3; then w_1 + w_2 = (-rho, 0) with rho =
(N - 1) sigma - sum_{i >= 3} D_i, which a triangle with sides D_1, D_2, rho > 0 solves:
w_1 = (-x, h), w_2 = (x - rho, -h), x = (D_1^2 - D_2^2 + rho^2)/(2 rho), h^2 =
D_1^2 - x^2, and 4 rho^2 h^2 = ((D_1 + D_2)^2 - rho^2)(rho^2 - (D_1 - D_2)^2).

*the triangle closes.* Let sigma = 1 and e = L <= 1/N. Then 1 - e <= D_i <= 1 + e/2, so
rho lies in [1 - (N - 2) e/2, 1 + (N - 2) e]. It is positive; at most 2 - 2e <= D_1 +
D_2, as N e <= 1; and at least 3e/2 >= |D_1 - D_2|, as (N + 1) e <= 2.

*fewer do not suffice.* On a line the powers (1, 1) of S and -1 of U are impossible for
N = 2, and N = 1 allows no positive selected power: it is -r^2.

Statement (T1-pairs). Let Delta_ij >= x_i - x_j for i in S, j in U. Then FP <= #{j :
some Delta_ij >= 0}, FN <= #{i : some Delta_ij >= 0}, G <= #{(i, j) : Delta_ij >= 0},
and F is at least the least value under these three caps and T2b. With Delta_ij =
hi_i - lo_j the three counts are those of T1, so the bound is never below that of T1,
and smaller Delta only raise it.

Proof.

*only open pairs can be inverted.* An inversion has 0 <= x_i - x_j <= Delta_ij. The
token j is a false positive iff it takes part in an inversion (with the farthest i),
and i a false negative iff it does (with the nearest j).

*least F under the caps.* By T2b, FP >= 1 and FN >= 1 as soon as G >= 1, and FP + FN <=
G + 1; F falls in both counts, so for each FN the greatest FP allowed, min(cap, G + 1 -
FN), decides. The set allowed shrinks with each cap, so its least F rises.

*intervals are a special case.* hi_i - lo_j >= 0 for some i iff lo_j <= max_S hi, and
likewise for FN and G. F at the two caps alone is one of the values T1 gives, and the
line FP + FN <= G + 1 only removes values.

*shared norms.* The source of differences here: norms x = r_i, y = r_j, r_k of the other
selected tokens k, cosines at least mu- within S and at most mu+ across. x_i - x_j =
-x^2 - y^2 + 2 <y_i, y_j> + 2 sum_k (<y_j, y_k> - <y_i, y_k>), and replacing the inner
products by mu+ x y, mu+ y r_k, mu- x r_k adds 2 (mu+ x y - <y_i, y_j>) + 2 sum_k
((mu+ y r_k - <y_j, y_k>) + (<y_i, y_k> - mu- x r_k)) >= 0. With X = sum_k r_k the bound
is q(x, y) + 2 X (mu+ y - mu- x), linear in X, so the ends of X suffice. In (x, y) it is
-(y - mu+ x)^2 - (1 - mu+^2) x^2 plus linear terms, concave for |mu+| <= 1. A concave
function has its greatest value on a box at a stationary point inside or on an edge; for
|mu+| = 1 it is linear along (1, mu+), so an edge always has it.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import lcm
from random import Random
from typing import Any

import numpy as np
import sympy as sp
import z3

from geobounds import closed_forms, pairform, symbolic
from geobounds.bounds import capped_f_bound
from geobounds.errors import ArgumentError
from geobounds.exact import oracle
from geobounds.head import HeadData
from geobounds.pairwise import (
    check_pairwise,
    fit_pairwise,
    rounded_pairwise_counts,
)
from geobounds.power import Enclosure
from geobounds.separability import Counts, f_score, interval_counts, measure
from geobounds.situation import HeadCase, Keys, column_of, vectors_of
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T1",
    scope="all N, M and d (symbolic); z3 for N, M <= 3; every order of the ends of 3 "
    "intervals; rational contributions for N <= 4, M <= 4",
)

_SIZES = tuple(itertools.product((1, 2, 3), repeat=2))


def _bounds(lo: Any, hi: Any, n: int) -> Counts:
    return interval_counts(Enclosure(column_of(lo), column_of(hi), n))


def _triple(counts: Counts) -> tuple[int, int, int]:
    """FP, FN and G of exact counts."""
    return counts.fp_upper, counts.fn_upper, counts.inversions_upper


# Order alone counts.


def _order_changed(x: Any, y: Any, gx: Any, gy: Any) -> Any:
    return z3.Xor(x <= y, gx <= gy)


@PROOF.step("order alone counts", "z3")
def order_alone() -> Outcome:
    """Refute that an increasing g, D^2 - c or c|c| changes a comparison."""
    x, y, c = z3.Reals("x y c")
    g = z3.Function("g", z3.RealSort(), z3.RealSort())
    increasing = [z3.Implies(p < q, g(p) < g(q)) for p, q in ((x, y), (y, x))]

    def signed(z: Any) -> Any:
        return z3.If(z < 0, -z * z, z * z)

    return refuted(
        [*increasing, _order_changed(x, y, g(x), g(y))],
        [x >= 0, y >= 0, _order_changed(x, y, x * x - c, y * y - c)],
        [_order_changed(x, y, signed(x), signed(y))],
    )


@PROOF.step("increasing maps of the ends", "exact arithmetic")
def increasing_maps() -> Outcome:
    """Count the same in random rational intervals after increasing maps."""
    rng, cases = Random(1), 0
    maps: tuple[Callable[[Fraction], Fraction], ...] = (
        lambda x: x * abs(x),
        lambda x: x**3 + x,
        lambda x: Fraction(2, 3) * x - 5,
        lambda x: x / (1 + abs(x)),
    )
    for _ in range(150):
        lo, hi, n = _random_intervals(rng, rng.randint(2, 6), 1)
        expected = _bounds(lo, hi, n)
        for g in maps:
            cases += 1
            if _bounds([g(x) for x in lo], [g(x) for x in hi], n) != expected:
                return Outcome(holds=False, cases=cases, note=f"{lo} {hi}")
    return Outcome(holds=True, cases=cases)


def _random_intervals(
    rng: Random, size: int, least_n: int
) -> tuple[list[Fraction], list[Fraction], int]:
    """Draw rationals with few denominators, so that ends often coincide."""
    lo = [Fraction(rng.randint(-6, 6), rng.randint(1, 2)) for _ in range(size)]
    hi = [x + Fraction(rng.randint(0, 5), rng.randint(1, 2)) for x in lo]
    return lo, hi, rng.randint(least_n, size - 1)


def _random_head(rng: Random, size: int, *, sink: int | None = None) -> HeadData:
    """Draw small integers: ties and zero contributions are frequent."""
    width = rng.randint(1, 3)
    weights = [float(rng.randint(0, 4)) for _ in range(size - 1)] + [1.0]
    values = [[float(rng.randint(-2, 2)) for _ in range(width)] for _ in weights]
    return HeadData(weights, values, visible="all", sink=sink)


@PROOF.step("one count for every key of a head", "exact arithmetic")
def keys_of_heads() -> Outcome:
    """Powers, their ranks, squared distances and cosine keys agree with D1 to D8."""
    rng, cases = Random(2), 0
    for _ in range(60):
        head = _random_head(rng, rng.randint(2, 6))
        for n, distance in itertools.product(
            range(1, head.n_key), ("euclidean", "cosine")
        ):
            cases += 1
            expected = _by_definition(head, n, distance)
            exact = HeadCase(head, n).exact
            if distance == "euclidean":
                keys = (exact.powers(), exact.power_ranks(), exact.squared_distances())
            else:
                signed = [-sign * square for sign, square in exact.cosine_squares()]
                # With s_N = 0 every cosine counts as 0, as every key does.
                keys = (exact.cosine_keys(), exact.cosine_ranks(), signed)
            found = [_triple(_bounds(key, key, n)) for key in keys]
            found.append(_triple(measure(head, n, distance=distance).counts))
            if set(found) != {expected}:
                return Outcome(holds=False, cases=cases, note=f"{head} {n} {distance}")
    return Outcome(holds=True, cases=cases)


def _by_definition(
    head: HeadData, n: int, distance: str = "euclidean"
) -> tuple[int, int, int]:
    values = head.values64.tolist()
    row = head.weights[0].tolist()
    found = oracle(row, values, [True] * len(row), None, n, distance=distance)
    return found.false_positives, found.false_negatives, found.inversions


# Both ends, sound and attained.


def _total(conditions: list[Any]) -> Any:
    return z3.Sum([z3.If(c, 1, 0) for c in conditions])


def _counted(selected: list[Any], unselected: list[Any]) -> tuple[Any, Any, Any]:
    """FP, FN and G in terms of order, for z3."""
    pairs = [[u <= s for u in unselected] for s in selected]
    return (
        _total([z3.Or(*column) for column in zip(*pairs, strict=True)]),
        _total([z3.Or(*row) for row in pairs]),
        _total([p for row in pairs for p in row]),
    )


def _interval_problem(n: int, m: int) -> tuple[list[Any], Any, Any, Any]:
    """Return the hypotheses, and the true, upper and lower counts."""
    x, lo, hi = (
        [z3.Real(f"{name}{i}") for i in range(n + m)] for name in ("x", "lo", "hi")
    )
    inside = [z3.And(a <= b, b <= c) for a, b, c in zip(lo, x, hi, strict=True)]
    true = _counted(x[:n], x[n:])
    return inside, true, _counted(hi[:n], lo[n:]), _counted(lo[:n], hi[n:])


@PROOF.step("within the intervals", "z3")
def within_intervals() -> Outcome:
    """No keys in their intervals have a count outside its bounds, N, M <= 3."""
    problems = []
    for n, m in _SIZES:
        inside, true, upper, lower = _interval_problem(n, m)
        above = [t > u for t, u in zip(true, upper, strict=True)]
        below = [t < b for t, b in zip(true, lower, strict=True)]
        problems.append([*inside, z3.Or(*above, *below)])
    return refuted(*problems)


@PROOF.step("the counts are not fixed by the intervals", "z3")
def counts_open() -> Outcome:
    """Show that the refutation is not empty: all counts strictly between."""
    inside, true, upper, lower = _interval_problem(2, 2)
    between = [z3.And(b < t, t < u) for b, t, u in zip(lower, true, upper, strict=True)]
    return satisfiable([*inside, *between])


@PROOF.step("metrics fall with the counts", "symbolic")
def metrics_fall() -> Outcome:
    """1/F rises by two non-negative terms; F is the harmonic mean of P and R."""
    N, a, b, x, y = sp.symbols("N a b x y", positive=True)

    def inverse(fp: Any, fn: Any) -> Any:
        return 1 / symbolic._f_score(N, fp, fn)

    P, R = N / (N + a), 1 - b / N
    rise = x / (2 * N) + N * y / (2 * (N - b) * (N - b - y))
    return zero(
        1 / inverse(a, b) - 2 * P * R / (P + R),
        inverse(a + x, b + y) - inverse(a, b) - rise,
        sp.diff(P, a) + N / (N + a) ** 2,
        sp.diff(R, b) + 1 / N,
    )


@PROOF.step("metrics fall, number by number", "enumeration")
def metrics_fall_in_numbers() -> Outcome:
    """Check the fall of P, R and F for N <= 6 up to FN = N, where F is 0."""
    slacks = []
    for n in range(1, 7):
        for a, b in itertools.product(range(7), range(n)):
            here = Counts(n, 7, a, a, b, b, 0, 0)
            for c, d in ((a + 1, b), (a, b + 1)):
                there = Counts(n, 7, c, c, d, d, 0, 0)
                for name in ("precision", "recall", "f_score"):
                    high, low = getattr(here, name), getattr(there, name)
                    slacks.append(high.lower - low.upper)
            p, r = here.precision.lower, here.recall.lower
            slacks.append(-abs(here.f_score.lower - 2 * p * r / (p + r)))
        slacks.append(-f_score(n, 3, n))
    return worst(slacks)


@cache
def _of_key(key: tuple[int, ...], n: int) -> tuple[tuple[int, int, int], Any]:
    """Return the counts and the metrics of integer keys."""
    counts = Keys(key, n).counts
    metrics = (counts.precision.lower, counts.recall.lower, counts.f_score.lower)
    return _triple(counts), metrics


def _grids() -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Intervals with integer ends: 3 tokens on 6 levels, 4 on 3, 2 on 4."""
    for size, levels in ((2, 4), (3, 6), (4, 3)):
        ends = list(itertools.combinations_with_replacement(range(levels), 2))
        for intervals in itertools.product(ends, repeat=size):
            for n in range(1, size):
                yield intervals, n


@PROOF.step("both ends are attained", "enumeration")
def both_ends() -> Outcome:
    """Find the bounds as extremes over all integer keys, attained together."""
    cases = 0
    for intervals, n in _grids():
        cases += 1
        lo, hi = zip(*intervals, strict=True)
        counts = _bounds(lo, hi, n)
        keys = itertools.product(*(range(a, b + 1) for a, b in intervals))
        found = [_of_key(key, n) for key in keys]
        if not _extremes_are(counts, [t for t, _ in found], [m for _, m in found]):
            return Outcome(holds=False, cases=cases, note=f"{intervals} N = {n}")
        certified = max(hi[:n]) < min(lo[n:])
        if (counts.f_score.lower == 1) != certified:
            return Outcome(holds=False, cases=cases, note=f"F = 1: {intervals} {n}")
    return Outcome(holds=True, cases=cases)


def _extremes_are(
    counts: Counts, triples: list[tuple[int, int, int]], metrics: list[Any]
) -> bool:
    """Whether the bounds are the least and greatest of each, in one key each."""
    upper = counts.fp_upper, counts.fn_upper, counts.inversions_upper
    lower = counts.fp_lower, counts.fn_lower, counts.inversions_lower
    columns = list(zip(*triples, strict=True))
    ends = (counts.precision, counts.recall, counts.f_score)
    return (
        tuple(map(max, columns)) == upper
        and tuple(map(min, columns)) == lower
        and {upper, lower} <= set(triples)
        and all(
            (min(column), max(column)) == (end.lower, end.upper)
            for column, end in zip(zip(*metrics, strict=True), ends, strict=True)
        )
    )


@PROOF.step("random keys in random intervals", "exact arithmetic")
def random_keys() -> Outcome:
    """Draw rational keys in rational intervals: the bound stays below F."""
    rng, slacks = Random(9), []
    statement = THEOREMS["T1"]
    for _ in range(1500):
        lo, hi, n = _random_intervals(rng, rng.randint(2, 7), 1)
        key = [
            a + (b - a) * Fraction(rng.randint(0, 3), 3)
            for a, b in zip(lo, hi, strict=True)
        ]
        case = Keys(key, n, {"lo": lo, "hi": hi})
        if not statement.applies(case):
            return Outcome(holds=False, note=f"does not apply: {key} {lo} {hi}")
        slacks.append(statement.slack(case))
    return worst(slacks)


# Contributions with given powers.


def contributions(phi: Sequence[Fraction], n: int) -> list[list[Fraction]]:
    """Return rational contributions with these powers, the first ``n`` selected."""
    if n < 2:
        msg = f"contributions: n must be at least 2, got n={n}."
        raise ArgumentError(msg)
    scale = lcm(*(x.denominator for x in phi))
    power = [int(x * scale * scale) for x in phi]
    t = 0
    while not _large_enough(t, power, n):
        t += 1
    m = t * t
    square = n * (n - 1) * m - sum(power[:n])
    own = [(n - 1) * m - x for x in power[:n]] + [square + x for x in power[n:]]
    size = range(len(own))
    private = vectors_of([[own[i] if i == k else 0 for k in size] for i in size])
    pairs = list(itertools.combinations(range(n), 2))
    vectors = [
        [Fraction(t * ((i == a) - (i == b))) for a, b in pairs] + private[i]
        for i in range(n)
    ]
    total = [sum(column, Fraction(0)) for column in zip(*vectors, strict=True)]
    for extra in private[n:]:
        tail = [Fraction(0)] * len(pairs) + extra
        vectors.append([a + b for a, b in zip(total, tail, strict=True)])
    return [[x / scale for x in vector] for vector in vectors]


def _large_enough(t: int, power: list[int], n: int) -> bool:
    square = n * (n - 1) * t * t - sum(power[:n])
    return (n - 1) * t * t >= max(power[:n]) and square >= max(0, -min(power[n:]))


def _head_of(vectors: list[list[Fraction]]) -> tuple[HeadData, int]:
    """Give strictly decreasing weights; contributions are multiplied by a scale."""
    scale = lcm(*(x.denominator for vector in vectors for x in vector))
    weights = [2.0**-i for i in range(len(vectors))]
    # The weight is a power of two: the value is an integer, exact in float64.
    values = [
        [float(x * scale * 2**i) for x in vector] for i, vector in enumerate(vectors)
    ]
    return HeadData(weights, values, visible="all", sink=None), scale


@PROOF.step("every power vector", "symbolic")
def every_power_vector() -> Outcome:
    """Derive the powers asked for from the inner products, N = 2 to 5."""
    m, q, p = sp.symbols("m Q phi_j")
    own = q + p  # squared length of y_j - s
    checks = [(q + own) - 2 * q - p]
    for n in range(2, 6):
        phi = sp.symbols(f"phi_0:{n}")
        gram = sp.Matrix(
            n, n, lambda i, k, n=n, phi=phi: 2 * (n - 1) * m - phi[i] if i == k else -m
        )
        checks += [gram[i, i] - 2 * sum(gram[i, :]) - phi[i] for i in range(n)]
        checks.append(sum(gram) - (n * (n - 1) * m - sum(phi)))
    return zero(*checks)


@PROOF.step("intervals attained by contributions", "exact arithmetic")
def attained_by_heads() -> Outcome:
    """Heads with powers hi on S and lo on U (and the reverse) attain both counts."""
    rng, cases = Random(3), 0
    for _ in range(120):
        n = rng.randint(2, 4)
        lo, hi, _ = _random_intervals(rng, n + rng.randint(1, 4), 1)
        counts = _bounds(lo, hi, n)
        for phi, expected in (
            ([*hi[:n], *lo[n:]], (counts.fp_upper, counts.fn_upper)),
            ([*lo[:n], *hi[n:]], (counts.fp_lower, counts.fn_lower)),
        ):
            cases += 1
            head, scale = _head_of(contributions(phi, n))
            if _exact_powers(head, n) != [scale * scale * x for x in phi]:
                return Outcome(holds=False, cases=cases, note=f"powers {phi}, {n}")
            found = measure(head, n)
            counted = found.counts.fp_upper, found.counts.fn_upper
            if not found.counts.exact or counted != expected:
                return Outcome(holds=False, cases=cases, note=f"{lo} {hi} {n}")
            if _by_definition(head, n)[:2] != expected:
                return Outcome(holds=False, cases=cases, note=f"D6: {lo} {hi} {n}")
    return Outcome(holds=True, cases=cases)


def _exact_powers(head: HeadData, n: int) -> list[Fraction]:
    """Powers of the candidates by key; the selected ones are the first ``n``."""
    case = HeadCase(head, n)
    if case.selection.keys.tolist() != list(range(head.n_key)):
        return []
    unit = Fraction(2) ** (2 * (case.exact.w_exponent + case.exact.v_exponent))
    return [unit * x for x in case.powers]


def _plane(
    sigma: Any, distances: Sequence[Any], n: int, h: Any
) -> tuple[list[tuple[Any, Any]], Any, Any]:
    """Return y of S and U in the plane, rho and x (see *powers in the plane*)."""
    rho = (n - 1) * sigma - sum(distances[2:n])
    x = (distances[0] ** 2 - distances[1] ** 2 + rho**2) / (2 * rho)
    points = [(sigma - x, h), (sigma + x - rho, -h)]
    points += [(sigma - d, sp.Integer(0)) for d in distances[2:n]]
    points += [(sigma + d, sp.Integer(0)) for d in distances[n:]]
    return points, rho, x


@PROOF.step("powers in the plane", "symbolic")
def powers_in_the_plane() -> Outcome:
    """Derive the sum s and the powers asked for, N = 2 to 4; area by Heron."""
    checks = []
    sigma, h = sp.symbols("sigma h", real=True)
    for n in range(2, 5):
        D = sp.symbols(f"D_1:{n + 2}", positive=True)
        points, rho, x = _plane(sigma, D, n, h)
        height = D[0] ** 2 - x**2
        checks += [sum(p for p, _ in points[:n]) - sigma, sum(q for _, q in points[:n])]
        for (p, q), d in zip(points, D, strict=True):
            power = sp.expand(p**2 + q**2 - 2 * p * sigma)
            checks.append(power.subs(h**2, height) - (d**2 - sigma**2))
        heron = ((D[0] + D[1]) ** 2 - rho**2) * (rho**2 - (D[0] - D[1]) ** 2)
        checks.append(4 * rho**2 * height - heron)
    return zero(*checks)


@PROOF.step("the triangle closes", "z3")
def triangle_closes() -> Outcome:
    """For all N >= 2 and e <= 1/N the three sides satisfy the triangle inequality."""
    N, e, total, a, b, p = z3.Reals("N e T D1 D2 p")
    sides = _sides(N, e, total, a, b)
    rho = N - 1 - total
    closed = [rho > 0, rho <= a + b, a - b <= rho, b - a <= rho]
    root = [a >= 0, a * a == 1 + p, p <= e, -p <= e, e <= 1]
    return refuted(
        [*sides, N * e <= 1, z3.Not(z3.And(*closed))],
        [*root, z3.Not(z3.And(1 - e <= a, a <= 1 + e / 2))],
    )


def _sides(N: Any, e: Any, total: Any, a: Any, b: Any) -> list[Any]:
    """D_1 and D_2 within their range, and the sum of the other N - 2."""
    low, high = 1 - e, 1 + e / 2
    return [
        *(N >= 2, e >= 0, e <= 1, a >= low, a <= high, b >= low, b <= high),
        *((N - 2) * low <= total, total <= (N - 2) * high),
    ]


@PROOF.step("a nearer aggregate need not do", "z3")
def triangle_control() -> Outcome:
    """Show that the refutation is not empty: with N e > 1 a triangle stays open."""
    N, e, total, a, b = z3.Reals("N e T D1 D2")
    sides = _sides(N, e, total, a, b)
    return satisfiable([*sides, N == 4, N - 1 - total > a + b])


@PROOF.step("planar points", "exact arithmetic")
def planar_points() -> Outcome:
    """Random rational powers by planar points, in radicals, N = 2 and 3."""
    rng, checks = Random(4), []
    for n, draws in ((2, 12), (3, 2)):
        for _ in range(draws):
            phi = [sp.Rational(rng.randint(-6, 6), rng.randint(1, 3)) for _ in range(5)]
            sigma = sp.ceiling(sp.sqrt(n * max(map(abs, phi)))) or sp.Integer(1)
            D = [sp.sqrt(x + sigma**2) for x in phi]
            _, _, x = _plane(sigma, D, n, sp.Integer(0))
            square = sp.radsimp(sp.expand(D[0] ** 2 - x**2))
            if not square.is_nonnegative or not all(d.is_real for d in D):
                return Outcome(holds=False, note=f"not real: {phi}")
            points, _, _ = _plane(sigma, D, n, sp.sqrt(square))
            s = [sum(column) for column in zip(*points[:n], strict=True)]
            checks += [s[0] - sigma, s[1]]
            for (p, q), target in zip(points, phi, strict=True):
                power = p**2 + q**2 - 2 * (p * s[0] + q * s[1])
                checks.append(sp.radsimp(sp.expand(power - target)))
    return zero(*checks)


@PROOF.step("fewer do not suffice", "z3")
def fewer_do_not_suffice() -> Outcome:
    """Powers (1, 1 | -1) on a line, or a positive power for N = 1: no solution."""
    a, b, c = z3.Reals("a b c")
    return refuted(
        [
            *(-x * x - 2 * a * b == 1 for x in (a, b)),
            c * c - 2 * c * (a + b) == -1,
        ],
        [a * a - 2 * a * a > 0],
    )


@PROOF.step("the plane suffices", "z3")
def plane_suffices() -> Outcome:
    """Show that the refutation is not empty: (1, 1 | -1) in the plane."""
    a, b, c = ([z3.Real(f"{name}{i}") for i in range(2)] for name in "abc")

    def dot(p: list[Any], q: list[Any]) -> Any:
        return p[0] * q[0] + p[1] * q[1]

    s = [a[0] + b[0], a[1] + b[1]]
    powers = [dot(y, y) - 2 * dot(y, s) for y in (a, b, c)]
    return satisfiable([powers[0] == 1, powers[1] == 1, powers[2] == -1, s[1] == 0])


# Pair form.


def _pair_problem(n: int, m: int) -> tuple[list[Any], Any, Any]:
    """Return the hypotheses, and the true and the bounding counts."""
    x = [z3.Real(f"x{i}") for i in range(n + m)]
    delta = [[z3.Real(f"d{i}_{j}") for j in range(m)] for i in range(n)]
    given = [delta[i][j] >= x[i] - x[n + j] for i in range(n) for j in range(m)]
    rows = [[d >= 0 for d in row] for row in delta]
    caps = (
        _total([z3.Or(*column) for column in zip(*rows, strict=True)]),
        _total([z3.Or(*row) for row in rows]),
        _total([d for row in rows for d in row]),
    )
    return given, _counted(x[:n], x[n:]), caps


@PROOF.step("only open pairs can be inverted", "z3")
def only_open_pairs() -> Outcome:
    """No keys exceed one of the three counts of the pair form, N, M <= 3."""
    problems = []
    for n, m in _SIZES:
        given, true, caps = _pair_problem(n, m)
        wrong = [t > c for t, c in zip(true, caps, strict=True)]
        problems.append([*given, z3.Or(*wrong)])
    return refuted(*problems)


@PROOF.step("the caps are attained", "z3")
def pairs_control() -> Outcome:
    """Show that the refutation is not empty: every count at its cap, G = 3."""
    given, true, caps = _pair_problem(2, 2)
    attained = [t == c for t, c in zip(true, caps, strict=True)]
    return satisfiable([*given, *attained, true[2] == 3])


@PROOF.step("least F under the caps", "enumeration")
def least_under_caps() -> Outcome:
    """Find the capped bound as the least F allowed, falling in each cap."""
    slacks = []
    for n in range(1, 6):
        for caps in itertools.product(range(7), range(n + 1), range(13)):
            bound = capped_f_bound(n, *caps)
            a_cap, b_cap, g = caps
            allowed = [
                f_score(n, a, b)
                for a in range(1, a_cap + 1)
                for b in range(1, b_cap + 1)
                if a + b <= g + 1
            ]
            # One of the three counts is 0 iff all are: then F = 1.
            slacks.append(-abs(bound - min(allowed, default=Fraction(1))))
            slacks.append(bound - f_score(n, a_cap, b_cap))
            for i in range(3):
                more = [c + (i == k) for k, c in enumerate(caps)]
                if more[1] <= n:
                    slacks.append(bound - capped_f_bound(n, *more))
    return worst(slacks)


@PROOF.step("intervals are a special case", "enumeration")
def intervals_as_pairs() -> Outcome:
    """Give T1's counts by differences of ends; smaller ones are no worse."""
    rng, slacks = Random(5), []
    for size, levels in ((2, 4), (3, 4), (4, 3)):
        ends = list(itertools.combinations_with_replacement(range(levels), 2))
        for intervals in itertools.product(ends, repeat=size):
            n = rng.randint(1, size - 1)
            lo, hi = zip(*intervals, strict=True)
            counts = _bounds(lo, hi, n)
            delta = [[x - y for y in lo[n:]] for x in hi[:n]]
            caps = closed_forms.pair_form_counts(delta)
            expected = counts.fp_upper, counts.fn_upper, counts.inversions_upper
            if caps != expected:
                return Outcome(holds=False, note=f"{intervals} N = {n}")
            bound = capped_f_bound(n, *caps)
            slacks.append(bound - counts.f_score.lower)
            less = [[d - rng.randint(0, 2) for d in row] for row in delta]
            sharper = closed_forms.pair_form_counts(less)
            slacks.append(capped_f_bound(n, *sharper) - bound)
    return worst(slacks)


@PROOF.step("pair form of random keys", "exact arithmetic")
def random_pairs() -> Outcome:
    """Rational keys and differences raised at random: the bound stays below F."""
    rng, slacks = Random(6), []
    statement = THEOREMS["T1-pairs"]
    for _ in range(1500):
        n, m = rng.randint(1, 4), rng.randint(1, 4)
        key = [Fraction(rng.randint(-6, 6), rng.randint(1, 2)) for _ in range(n + m)]
        delta = [
            [x - y + Fraction(max(0, rng.randint(-3, 3)), 2) for y in key[n:]]
            for x in key[:n]
        ]
        case = Keys(key, n, {"delta": delta})
        if not statement.applies(case):
            return Outcome(holds=False, note=f"does not apply: {key} {delta}")
        slacks.append(statement.slack(case))
    return worst(slacks)


@PROOF.step("shared norms", "symbolic")
def shared_norms() -> Outcome:
    """Write the excess as a sum of slacks; the form is concave in (x, y)."""
    x, y, low, high, a, b, t = sp.symbols("x y mu_low mu_high a b t", real=True)
    across = sp.Symbol("p_ij", real=True)
    checks = []
    for others in range(4):
        r, pi, pj = (sp.symbols(f"{name}_0:{others}") for name in ("r", "p_i", "p_j"))
        selected = -(x**2) - 2 * sum(pi)
        unselected = y**2 - 2 * across - 2 * sum(pj)
        X = sum(r)
        bound = -(x**2) - y**2 + 2 * high * x * y + 2 * X * (high * y - low * x)
        excess = 2 * (high * x * y - across) + 2 * sum(
            (high * y * rk - pjk) + (pik - low * x * rk)
            for rk, pik, pjk in zip(r, pi, pj, strict=True)
        )
        checks.append(bound - (selected - unselected) - excess)
    form = -(x**2) - y**2 + 2 * high * x * y + a * x + b * y
    ridge = form.subs({x: x + t, y: y + high * t}, simultaneous=True)
    return zero(
        *checks,
        form - (-((y - high * x) ** 2) - (1 - high**2) * x**2 + a * x + b * y),
        *(sp.diff(ridge.subs(high, sign), t, 2) for sign in (-1, 1)),
    )


@PROOF.step("greatest value on a box", "exact arithmetic")
def box_maximum() -> Outcome:
    """Compare the maximum with the stationary points and a grid of quarters."""
    rng, slacks = Random(7), []
    for _ in range(300):
        # All numbers and quotients are multiples of small powers of two: no rounding.
        m = Fraction(rng.choice((-4, -2, -1, 0, 1, 2, 4)), 4)
        # The form is stationary at (x, y), often inside the box.
        x, y = (Fraction(rng.randint(-2, 12), 2) for _ in range(2))
        a, b = 2 * (x - m * y), 2 * (y - m * x)
        box = [sorted(Fraction(rng.randint(0, 5)) for _ in "lh") for _ in "xy"]
        xs, ys = ([_float(end) for end in side] for side in box)
        top = pairform._box_maximum(
            float(m), _float(a), _float(b), (xs[0], xs[1]), (ys[0], ys[1])
        )
        found = Fraction(float(top[0]))
        slacks.append(-abs(found - max(_values(m, a, b, _stationary(m, a, b, box)))))
        grid = itertools.product(*(_quarters(*side) for side in box))
        slacks.append(found - max(_values(m, a, b, grid)))
    return worst(slacks)


def _float(x: Fraction) -> np.ndarray:
    return np.array([float(x)])


_Points = Iterable[tuple[Fraction, ...]]


def _values(m: Fraction, a: Fraction, b: Fraction, points: _Points) -> list[Fraction]:
    return [-x * x - y * y + 2 * m * x * y + a * x + b * y for x, y in points]


def _stationary(
    m: Fraction, a: Fraction, b: Fraction, box: list[list[Fraction]]
) -> _Points:
    """Return the corners and the stationary points of edges and inside, in the box."""
    points = [(x, y) for x in box[0] for y in box[1]]
    points += [(x, m * x + b / 2) for x in box[0]]
    points += [(m * y + a / 2, y) for y in box[1]]
    if abs(m) < 1:
        x = (a + m * b) / (2 * (1 - m * m))
        points.append((x, m * x + b / 2))
    (x0, x1), (y0, y1) = box
    return [(x, y) for x, y in points if x0 <= x <= x1 and y0 <= y <= y1]


def _quarters(low: Fraction, high: Fraction) -> list[Fraction]:
    return [low + Fraction(k, 4) for k in range(int(4 * (high - low)) + 1)]


@PROOF.step("pair counts of heads", "exact arithmetic")
def pair_counts_of_heads() -> Outcome:
    """Order the true counts, those of the pairs and of the intervals, by scope."""
    rng, slacks, gained = Random(8), [], 0
    for _ in range(60):
        size = rng.randint(2, 6)
        head = _random_head(rng, size, sink=rng.choice((None, 0)))
        case = HeadCase(head, rng.randint(1, size - 1))
        for scope in ("all", "roles", "roles-norms"):
            regime = fit_pairwise(head, case.selection, scope)
            check_pairwise(regime, head, case.selection)
            pairs = pairform.pair_counts(regime, head, case.selection)
            alone = rounded_pairwise_counts(head, case.selection, scope, regime=regime)
            ordered = [_triple(case.counts), _triple(pairs), _triple(alone)]
            if any(
                list(column) != sorted(column) for column in zip(*ordered, strict=True)
            ):
                return Outcome(holds=False, note=f"{scope} {ordered}")
            bound = pairform.pair_f_bound(pairs)
            slacks.append(case.counts.f_score.lower - bound)
            slacks.append(bound - alone.f_score.lower)
            gained += bound > alone.f_score.lower
    if gained == 0:
        return Outcome(holds=False, note="no gain over intervals anywhere")
    return worst(slacks, f"F rises above that of the intervals in {gained} cases")


prove = PROOF.run
