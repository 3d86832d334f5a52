"""T8: a power computed in float64 lies within a known radius of the exact one.

Statement (T8). u = 2^-53, e = 2^-1075, N selected tokens, values in R^d, n = N + d + 2
< 2^26. Compute s_N, t = <v, s_N>, q = ||v||^2 by sums of products in any order, fused
or not, and phi^ = w*w*q - 2*w*t, to nearest with gradual underflow. With S_k = sum_S
w_i |v_ik|, T = sum_k |v_k| S_k, l = sum_k |v_k|, B = w*w*q + 2*w*T and E = q + d w^2 +
2 w (N l + d) + 2, all computed in the same way, |phi^ - phi| <= rad, rad = (N + d + 4)
u B + 8 e E. Where no number overflows, [phi^ - rad, phi^ + rad], each end moved one
float outward, contains phi; elsewhere the interval is the whole line.

Proof. Model: fl(a + b) = (a + b)(1 + x), fl(ab) = ab(1 + x) + y and, fused, fl(ab + c)
= (ab + c)(1 + x) + y with |x| <= u, |y| <= e: sums do not underflow, a product that
does is off by at most half of the least positive float. 2*w is exact.

*powers of 1 + u.* (1 + u)^n <= 1 / (1 - n u) for n u < 1 and (1 - u)^n >= 1 - n u, by
induction: (1 - n u) - (1 + u)(1 - (n + 1) u) = (n + 1) u^2 and (1 - u)(1 - n u) -
(1 - (n + 1) u) = n u^2. So (1 + u)^n - 1 <= n u / (1 - n u), and this is at most
(n + 1) u if n (n + 1) u <= 1.

*rounding counts.* In a sum of m products every product meets at most m roundings,
whatever the order: its own and at most m - 1 sums, and a fused step counts once. So
s_k passes N, t passes N + d and q passes d; in phi^ the term w^2 q meets d + 3 (w*w,
*q, the difference) and 2 w t meets N + d + 2 (*t, the difference): at most n, as N >=
1. phi^ is a polynomial in w, the values, and all x and y; its part without x and y is
phi. Bound the rest term by term: put |x| = u, |y| = e, absolute values for inputs, plus
for minus. What results, M(u, e), has M(0, 0) = B and |phi^ - phi| <= M - B. Each y that
enters s_k counts |v_k| 2w, N in each k; one in t counts 2w, d of them; one in q counts
w^2, d of them; that of w*w counts q + d e; those of the two products in phi^ count 1.
Hence M <= (1 + u)^n (B + e (E + d e)), and
    |phi^ - phi| <= ((1 + u)^n - 1) B + (1 + u)^n e (E + d e).                     (1)

*computed bounds.* The computed B^ has the same M, and its terms without y are those of
B, each times at least (1 - u)^n: B^ >= (1 - u)^n B - (1 + u)^n e (E + d e). In E^ the
terms meet at most n + 1 roundings (d + 4 on l, 5 on d w w), and the y add up to at most
e (d + 2 + 3 w)(1 + u)^(n+1) <= u E / 2, as E >= 2 and E >= 2 w: E^ >= (1 - u)^(n+2) E.
The factor c = (n + 2) u is exact; two products and a sum follow:
    rad >= (1 - u) (c B^ (1 - u) + 8 e E^ - 2 e).                                  (2)

*the constant.* (2) covers the first term of (1) if c (1 - u)^(n+2) >= n u / (1 - n u),
for which (n + 2)(1 - (n + 2) u)(1 - n u) >= n suffices. The difference of the sides is
2 (1 - (n + 1)(n + 2) u) + n (n + 2)^2 u^2, positive if (n + 1)(n + 2) u <= 1; n < 2^26
gives (n + 1)(n + 2) <= 2^26 (2^26 + 1) < 2^53. *the underflow term.* The rest, divided
by e and with E >= 2, d e <= u: (1 - u)(8 (1 - (n + 2) u) E - c (E + d e) / (1 - n u)
- 2) >= (E + d e) / (1 - n u), by the same condition on n u^2. Both hold strictly: the
radius is never attained.

*ends.* If x is any number, the float before fl(x) is at most x. Applied to phi^ -+ rad.
*overflow.* A number that overflows becomes infinite, and every later sum or product of
phi^ and rad with it is infinite or undefined (0 times infinity is), so an end is not
finite. *32 bits.* Inputs of at most 32 bits are multiples of 2^-149 below 2^128.
Rounding a multiple of a power of two leaves one (or 0, where it underflows); so w v
and s_k are multiples of 2^-298, as are w^2 and q, t of 2^-447, w t and w^2 q of
2^-596; and nothing exceeds 2^600. No product under- or overflows, (1) holds with e = 0.

*dot products.* The same count bounds the error of t, m = N + d, G = N l + d, by
((1 + u)^m - 1) T + (1 + u)^m e G, and what is computed as (m + 3) u T + 4 e (G + 1) is
at least (1 - u)((m + 3) u (1 - u)^(m+1) T - (m + 3) u (1 + u)^m e G +
4 e (1 - u)^(m+2) (G + 1) - 3 e), more than that. Likewise (d + 2) u q + 4 e (d + 1)
for q, whose second term is exact.

*flushing to zero* makes a y as large as 2^-1022: w w q with w^2 below that is lost
whole, whatever q, which no multiple of e E covers.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.examples import examples_of
from geobounds.head import HeadData
from geobounds.power import DotProducts, dot_products, power_enclosure
from geobounds.separability import interval_counts
from geobounds.situation import HeadCase
from geobounds.slacks import SLACKS
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, zero

PROOF = Proof(
    "T8",
    scope="all n with (n+1)(n+2) u <= 1 (symbolic, z3); all orders for N, d <= 3; all "
    "digits of 5 and 6 bits; float16 to float64, 1e-300 to 1e300, N <= 64, d <= 128",
)


@PROOF.step("powers of 1 + u", "symbolic")
def powers_of_unit() -> Outcome:
    """Take both inductions by one step each, and bound by (n + 1) u."""
    n, u = sp.symbols("n u", positive=True)
    following = 1 - (n + 1) * u
    return zero(
        (1 - n * u) - (1 + u) * following - (n + 1) * u**2,
        (1 - u) * (1 - n * u) - following - n * u**2,
        1 / (1 - n * u) - 1 - n * u / (1 - n * u),
        (n + 1) * u - n * u / (1 - n * u) - u * (1 - n * (n + 1) * u) / (1 - n * u),
    )


@PROOF.step("powers of 1 + u", "enumeration")
def powers_of_unit_in_numbers() -> Outcome:
    """Try every n with n u < 1 for u = 2^-9."""
    u, up, down = Fraction(1, 2**9), Fraction(1), Fraction(1)
    slacks = []
    for n in range(1, 2**9):
        up, down = up * (1 + u), down * (1 - u)
        gamma = n * u / (1 - n * u)
        slacks += [gamma - (up - 1), down - (1 - n * u)]
        if n * (n + 1) * u <= 1:
            slacks.append((n + 1) * u - gamma)
    return Outcome(min(slacks) >= 0, len(slacks), min(slacks))


# Orders of summation. A tree is a leaf k (the k-th product) or (left, right, fused):
# fused 1 or 2 takes the product of that leaf and the sum with one rounding.
Tree = Any


@dataclass(frozen=True)
class Arithmetic:
    """Sum, product and fused product of some kind of numbers, each rounded once."""

    add: Callable[[Any, Any], Any]
    mul: Callable[[Any, Any], Any]
    fma: Callable[[Any, Any, Any], Any]

    def dot(self, tree: Tree, x: Sequence[Any], y: Sequence[Any]) -> Any:
        """Sum x_k y_k in the order of a tree."""
        if isinstance(tree, int):
            return self.mul(x[tree], y[tree])
        left, right, fused = tree
        if not fused:
            return self.add(self.dot(left, x, y), self.dot(right, x, y))
        leaf, rest = (left, right) if fused == 1 else (right, left)
        return self.fma(x[leaf], y[leaf], self.dot(rest, x, y))


def _trees(leaves: tuple[int, ...]) -> Iterator[Tree]:
    """Yield all orders of a sum, each node fused in every way it can be."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    first, rest = leaves[0], leaves[1:]
    for size in range(len(rest)):
        for chosen in itertools.combinations(rest, size):
            one = (first, *chosen)
            other = tuple(k for k in rest if k not in chosen)
            for left, right in itertools.product(_trees(one), _trees(other)):
                yield left, right, 0
                if isinstance(left, int):
                    yield left, right, 1
                if isinstance(right, int):
                    yield left, right, 2


# The ring of M: inputs stand for their absolute values.
_NAMES = "u e w " + " ".join(
    [f"v{k}" for k in range(3)]
    + [f"w{i}" for i in range(3)]
    + [f"x{i}{k}" for i in range(3) for k in range(3)]
)
_RING, *_GENERATORS = sp.polys.rings.ring(_NAMES, sp.ZZ)
_U, _E, _W = _GENERATORS[:3]
_VALUE, _WEIGHTS = _GENERATORS[3:6], _GENERATORS[6:9]
_VALUES = [_GENERATORS[9 + 3 * i : 12 + 3 * i] for i in range(3)]
_MAJORANT = Arithmetic(
    lambda a, b: (a + b) * (1 + _U),
    lambda a, b: a * b * (1 + _U) + _E,
    lambda a, b, c: (a * b + c) * (1 + _U) + _E,
)


def _majorants(s_tree: Tree, t_tree: Tree, n: int, d: int) -> list[Any]:
    """M(u, e) with the last difference plain and fused on either side."""
    m, v, w = _MAJORANT, _VALUE[:d], _WEIGHTS[:n]
    s = [m.dot(s_tree, w, [_VALUES[i][k] for i in range(n)]) for k in range(d)]
    t, q, square = m.dot(t_tree, v, s), m.dot(t_tree, v, v), m.mul(_W, _W)
    return [
        m.add(m.mul(square, q), m.mul(2 * _W, t)),
        m.fma(square, q, m.mul(2 * _W, t)),
        m.fma(2 * _W, t, m.mul(square, q)),
    ]


def _bulk_and_excess(n: int, d: int) -> tuple[Any, Any]:
    """B and E in the ring."""
    q = sum(v * v for v in _VALUE[:d])
    pull = sum(
        _WEIGHTS[i] * _VALUES[i][k] * _VALUE[k] for i in range(n) for k in range(d)
    )
    length = sum(_VALUE[:d])
    excess = q + d * _W**2 + 2 * _W * (n * length + d) + 2
    return _W**2 * q + 2 * _W * pull, excess


@PROOF.step("rounding counts", "symbolic")
def rounding_counts() -> Outcome:
    """Check M <= (1 + u)^n (B + e (E + d e)) by coefficients, for all orders."""
    cases, needed = 0, True
    for n, d in itertools.product((1, 2, 3), repeat=2):
        bulk, excess = _bulk_and_excess(n, d)
        count, within = n + d + 2, bulk + _E * (excess + d * _E)
        most, fewer = (
            (1 + _U) ** count * within,
            (1 + _U) ** (count - 1) * within,
        )
        attained = False
        orders = _trees(tuple(range(n))), _trees(tuple(range(d)))
        for trees in itertools.product(*orders):
            for majorant in _majorants(*trees, n, d):
                if majorant.subs(_E, 0).subs(_U, 0) != bulk:
                    return Outcome(holds=False, note="M(0, 0) is not B")
                if min((most - majorant).coeffs()) < 0:
                    return Outcome(holds=False, note=f"{trees}")
                attained |= min((fewer - majorant).coeffs()) < 0
                cases += 1
        needed &= attained
    return Outcome(needed, cases, None, "no smaller n will do")


@PROOF.step("rounding counts of E", "symbolic")
def rounding_counts_of_excess() -> Outcome:
    """Check that the majorant of E^ is at most (1 + u)^(n+1) (E + e (d + 2 + 3 w))."""
    cases = 0
    for n, d in itertools.product((1, 2, 3), repeat=2):
        _, excess = _bulk_and_excess(n, d)
        m, length = _MAJORANT, _VALUE[0]
        for v in _VALUE[1:d]:
            length = m.add(length, v)
        inner = m.mul(2 * _W, m.add(m.mul(_RING(n), length), _RING(d)))
        for tree in _trees(tuple(range(d))):
            q = m.dot(tree, _VALUE[:d], _VALUE[:d])
            square = m.mul(m.mul(_RING(d), _W), _W)
            found = m.add(m.add(m.add(q, square), inner), _RING(2))
            most = (1 + _U) ** (n + d + 3) * (excess + _E * (d + 2 + 3 * _W))
            if min((most - found).coeffs()) < 0:
                return Outcome(holds=False, note=f"{n, d, tree}")
            cases += 1
    return Outcome(holds=True, cases=cases)


@PROOF.step("longest way through a sum", "enumeration")
def longest_way() -> Outcome:
    """Find at most m roundings on every product, for all orders of m <= 5 products."""
    cases = 0
    for m in range(1, 6):
        longest = 0
        for tree in _trees(tuple(range(m))):
            longest = max(longest, _roundings(tree))
            cases += 1
        if longest != m:
            return Outcome(holds=False, note=f"{longest} for {m}")
    return Outcome(holds=True, cases=cases)


def _roundings(tree: Tree) -> int:
    """Return the most roundings that one product of a tree meets."""
    if isinstance(tree, int):
        return 1
    left, right, fused = tree
    deepest = max(
        0 if fused == 1 else _roundings(left), 0 if fused == 2 else _roundings(right)
    )
    return deepest + 1


@PROOF.step("the constant", "symbolic")
def constant() -> Outcome:
    """Split (n + 2)(1 - (n + 2) u)(1 - n u) - n as stated; n < 2^26 suffices."""
    n, u = sp.symbols("n u", positive=True)
    margin = (n + 2) * (1 - (n + 2) * u) * (1 - n * u) - n
    found = zero(margin - 2 * (1 - (n + 1) * (n + 2) * u) - n * (n + 2) ** 2 * u**2)
    largest = 2**26 - 1
    return Outcome(
        found.holds and (largest + 1) * (largest + 2) <= 2**53, 2, None, found.note
    )


def _sizes(least: int) -> tuple[Any, Any, list[Any]]:
    """Return n, u and the condition on them."""
    n, u = z3.Reals("n u")
    return n, u, [n >= least, u > 0, (n + 1) * (n + 2) * u <= 1]


@PROOF.step("the constant and the underflow term", "z3")
def constant_by_solver() -> Outcome:
    """Refute that (2) falls below (1), in B and in E; and likewise for t and q."""
    n, u, known = _sizes(4)
    E, g = z3.Reals("E g")
    below = [
        *known,
        (n + 2) * (1 - (n + 2) * u) * (1 - n * u) <= n,
    ]
    # g is d e; both sides times 1 - n u.
    left = (8 * (1 - (n + 2) * u) * E - 2) * (1 - n * u) - (n + 2) * u * (E + g)
    underflow = [*known, E >= 2, g >= 0, g <= u, (1 - u) * left <= E + g]
    return refuted(below, underflow, *_dot_problems())


def _dot_problems() -> list[list[Any]]:
    """State that a radius of t (m = N + d) or of q (m = d) falls short."""
    m, u, known = _sizes(2)
    G = z3.Real("G")
    left = (4 * (1 - (m + 2) * u) * (G + 1) - 3) * (1 - m * u) - (m + 3) * u * G
    products = [
        [*known, (m + 3) * (1 - (m + 2) * u) * (1 - m * u) <= m],
        [*known, G >= 1, (1 - u) * left <= G],
    ]
    m, u, known = _sizes(1)
    left = (4 * (m + 1) - 1) * (1 - m * u) - (m + 2) * u * m
    norms = [
        [*known, (m + 2) * (1 - (m + 2) * u) * (1 - m * u) <= m],
        [*known, (1 - u) * left <= m],
    ]
    return [*products, *norms]


@PROOF.step("n in place of n + 2 is too little", "z3")
def smaller_constant() -> Outcome:
    """Show that the refutation is not empty."""
    n, u, known = _sizes(4)
    return satisfiable([*known, n * (1 - (n + 2) * u) * (1 - n * u) <= n])


# A small binary format, held exactly in float64, where all inputs can be tried.


@dataclass(frozen=True)
class Format:
    """Floats of ``bits`` digits whose least positive number is 2^least."""

    bits: int
    least: int
    flush: bool = False

    def round(self, x: np.ndarray) -> np.ndarray:
        """Round to nearest, ties to even; flush below the least normal number."""
        _, exponent = np.frexp(x)
        step = np.maximum(exponent - self.bits, self.least)
        found = np.ldexp(np.rint(np.ldexp(x, -step)), step)
        if self.flush:
            found[np.abs(found) < 2.0 ** (self.least + self.bits - 1)] = 0
        return found

    def mul(self, a: Any, b: Any) -> np.ndarray:
        """Return the rounded product."""
        return self.round(a * b)

    def add(self, a: Any, b: Any) -> np.ndarray:
        """Return the rounded sum."""
        return self.round(a + b)

    def numbers(self, top: int) -> np.ndarray:
        """Return every non-negative number below 2^top."""
        whole = np.arange(2 ** (self.bits - 1))
        scales = range(self.least, top - self.bits + 1)
        normal = [(whole + len(whole)) * 2.0**k for k in scales]
        return np.concatenate([whole * 2.0**self.least, *normal])


def _small_ratio(
    f: Format, weight: Any, value: Any, w: Any, v: Any
) -> tuple[float, int]:
    """Greatest error / radius of a token (w, v) with one selected (weight, value).

    N = d = 1, so that the constant is 6. Every number here is exact in float64. The
    radius is computed with gradual underflow, even where the powers are flushed.
    """
    u, tiny = 2.0**-f.bits, 2.0 ** (f.least + 2)
    t, q = f.mul(v, f.mul(weight, value)), f.mul(v, v)
    phi = f.add(f.mul(f.mul(w, w), q), -f.mul(2 * w, t))
    f = replace(f, flush=False)
    q, pull = f.mul(v, v), f.mul(np.abs(v), f.mul(weight, np.abs(value)))
    bulk = f.add(f.mul(f.mul(w, w), q), f.mul(2 * w, pull))
    excess = f.add(q, f.mul(w, w))
    excess = f.add(excess, f.mul(2 * w, f.add(np.abs(v), 1.0)))
    excess = f.add(excess, 2.0)
    radius = f.add(f.mul(6 * u, bulk), f.mul(tiny, excess))
    error = np.abs(phi - (w * w * v * v - 2 * w * v * weight * value))
    return float((error / radius).max()), len(phi)


def _grid(*axes: np.ndarray) -> list[np.ndarray]:
    return [x.ravel() for x in np.meshgrid(*axes, indexing="ij")]


@PROOF.step("every input of a short format", "enumeration")
def short_formats() -> Outcome:
    """Try all digits of w_1, v_1, w, v in 5 bits at seven scales, in 6 bits at three.

    (n + 1)(n + 2) u is 30/32 and 30/64.
    """
    ratio, cases = 0.0, 0
    for bits, reach in ((5, 3), (6, 1)):
        digits = np.arange(2 ** (bits - 1), 2**bits) / 2 ** (bits - 1)
        scales = 2.0 ** np.arange(-reach, reach + 1)
        for scale, sign in itertools.product(scales, (1.0, -1.0)):
            inputs = _grid(digits, digits, digits * scale, digits * sign)
            found, count = _small_ratio(Format(bits, -80), *inputs)
            ratio, cases = max(ratio, found), cases + count
    slack = Fraction(1) - Fraction(ratio)
    return Outcome(slack >= 0, cases, slack, f"worst error / radius {ratio:.3f}")


def _small_underflow(f: Format) -> tuple[float, int]:
    """Greatest error / radius over subnormal and small normal numbers."""
    every = f.numbers(0)
    few = np.concatenate([every[: 2 ** (f.bits - 1)], every[2 ** (f.bits - 1) :: 3]])
    pairs = np.array(_grid(every, every))
    _, distinct = np.unique(pairs[0] * pairs[1], return_index=True)
    weight, value = pairs[:, distinct]
    ratio, cases = _small_ratio(f, *pairs, *pairs)
    for w in few:
        for sign in (1.0, -1.0):
            places, v = _grid(np.arange(len(weight)), sign * few)
            at = places.astype(int)
            found, count = _small_ratio(f, weight[at], value[at], np.full_like(v, w), v)
            ratio, cases = max(ratio, found), cases + count
    return ratio, cases


@PROOF.step("subnormal inputs of a 5-bit format", "enumeration")
def short_format_underflow() -> Outcome:
    """Try all pairs below 1 as the selected token and 32 x 32 signed ones beside it."""
    ratio, cases = _small_underflow(Format(5, -7))
    slack = Fraction(1) - Fraction(ratio)
    return Outcome(slack >= 0, cases, slack, f"worst error / radius {ratio:.3f}")


@PROOF.step("flushing to zero leaves the radius", "enumeration")
def short_format_flushed() -> Outcome:
    """Find errors outside the radius in a 12-bit format, flushed."""
    f = Format(12, -40, flush=True)
    w = 2.0 ** np.arange(-30, -10)
    ratio, cases = _small_ratio(f, *_pairs_of(w))
    kept, _ = _small_ratio(replace(f, flush=False), *_pairs_of(w))
    note = f"error / radius {ratio:.3g} flushed, {kept:.3g} with gradual underflow"
    return Outcome(ratio > 1 >= kept, cases, None, note)


def _pairs_of(w: np.ndarray) -> list[np.ndarray]:
    """Return the selected token as the token looked at, with values up to 2^5."""
    weights, values = _grid(w, 2.0 ** np.arange(-10, 6))
    return [weights, values, weights, values]


@PROOF.step("flushing to zero in float64", "exact arithmetic")
def flushed_example() -> Outcome:
    """Show that the head of the counterexample obeys the radius unless flushed."""
    (example,) = [x for x in examples_of("T8") if x.kind == "counterexample"]
    situation = example.situation()
    gradual = HeadCase(situation.head, situation.n)
    slack = SLACKS["T8"](gradual)
    return Outcome(SLACKS["T8"](situation) < 0 < slack, 2, None, example.title)


# float64 itself, against integers.


def _require(condition: Any, text: str) -> None:
    if not condition:
        raise ArithmeticError(text)


@lru_cache(maxsize=4)
def _exact_bounds(case: HeadCase) -> tuple[list[Fraction], list[Fraction]]:
    """Return exact powers and exact radii."""
    x, n = case.exact, case.n
    values, exponent = case.head.integer_values
    size = abs(values[case.selection.keys])
    absolute = x.weights[:n] @ size[:n]
    w_unit, v_unit = (Fraction(2) ** k for k in (x.w_exponent, exponent))
    powers = [(w_unit * v_unit) ** 2 * int(p) for p in x.powers()]
    radii = [
        closed_forms.rounding_radius(
            w_unit * int(w),
            v_unit**2 * int(q),
            w_unit * v_unit**2 * int(bulk),
            v_unit * int(length),
            n,
            case.head.d_head,
        )
        for w, q, bulk, length in zip(
            x.weights, x.norms, size @ absolute, size.sum(axis=1), strict=True
        )
    ]
    return powers, radii


def _ratios(case: HeadCase, dots: DotProducts | None = None) -> list[Fraction]:
    """Error / radius of every token whose interval is finite; raise if one is wrong.

    The error is compared with the computed and with the exact radius, the exact power
    with both ends, and the ends with the closed form, bit by bit.
    """
    head, n = case.head, case.n
    x = dots or dot_products(head, case.selection)
    bound = power_enclosure(head, case.selection, x)
    with np.errstate(all="ignore"):
        phi = x.w * x.w * x.q - 2 * x.w * x.t
        length = head.abs_sums64[case.selection.keys]
        radius = closed_forms.rounding_radius(x.w, x.q, x.bulk, length, n, head.d_head)
        lo, hi = (
            np.nextafter(phi - radius, -np.inf),
            np.nextafter(phi + radius, np.inf),
        )
    finite = np.isfinite(lo) & np.isfinite(hi)
    _require((bound.lo == np.where(finite, lo, -np.inf)).all(), "lo is not the form's")
    _require((bound.hi == np.where(finite, hi, np.inf)).all(), "hi is not the form's")
    powers, exact_radii = _exact_bounds(case)
    found = []
    for i in np.flatnonzero(finite):
        error = abs(Fraction(phi[i]) - powers[i])
        _require(error < exact_radii[i], f"error above the exact radius at {i}")
        _require(Fraction(lo[i]) <= powers[i] <= Fraction(hi[i]), f"outside at {i}")
        found.append(error / Fraction(radius[i]))
    return found


def _outcome(ratios: list[Fraction], note: str = "") -> Outcome:
    """Hold iff no error exceeds its radius; the slack is 1 - error / radius."""
    largest = max(ratios)
    text = f"worst error / radius {float(largest):.3f}"
    return Outcome(
        largest < 1, len(ratios), 1 - largest, f"{text}; {note}" if note else text
    )


def _cast(array: np.ndarray, kind: str) -> np.ndarray:
    """Round to a type; bfloat16 is widened to float32."""
    if kind != "bfloat16":
        return array.astype(kind)
    bits = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    narrow: np.ndarray = bits.view(np.float32)
    return narrow


def _values(
    rng: np.random.Generator, shape: str, size: int, d: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw weights and values of one shape, of size about 1."""
    logits = rng.normal(0, 2, size)
    weights: np.ndarray = np.exp(logits - logits.max())
    values: np.ndarray = rng.normal(0, 1, (size, d))
    if shape == "cone":
        values += 3
    if shape == "cancelling":
        # Pairs of opposite contributions up to rounding: s_N is mere noise.
        half = size // 2
        values[half : 2 * half] = -values[:half] * (1 + rng.normal(0, 1e-15, (half, d)))
        weights[half : 2 * half] = weights[:half]
    if shape == "permuted":
        values = np.array([rng.permutation(values[0]) for _ in range(size)])
        weights = rng.integers(1, 3, size) / 4
    if shape == "near one":
        # Digits just above a power of two meet the largest relative error.
        values = 1 + rng.integers(0, 2**20, (size, d)) * 2.0**-26
        weights = 1 + rng.integers(0, 2**20, size) * 2.0**-26
    return weights, values


SHAPES = ("plain", "cone", "cancelling", "permuted", "near one")
SIZES = ((1, 1), (1, 3), (2, 1), (3, 7), (8, 16), (16, 64))
NARROW = {
    "float16": (1e-7, 1.0, 1e3),
    "bfloat16": (1e-38, 1.0, 1e37),
    "float32": (1e-44, 1.0, 1e37),
}
WIDE = tuple(
    itertools.product(
        (1e-300, 1e-155, 1e-20, 1.0, 1e20, 1e150),
        (1e-318, 1e-300, 1e-150, 1.0, 1e75, 1e150, 1e300),
    )
)


@PROOF.step("one formula", "exact arithmetic")
def one_formula() -> Outcome:
    """Compare the library's ends with the closed form, of arrays and of one number."""
    rng, cases = np.random.default_rng(87), 0
    for a, b in WIDE:
        weights, values = _values(rng, "plain", 9, 4)
        case = HeadCase(HeadData(weights * a, values * b), 3)
        _ratios(case)  # raises unless the arrays agree bit by bit
        x = dot_products(case.head, case.selection)
        lo = power_enclosure(case.head, case.selection).lo
        length = case.head.abs_sums64[case.selection.keys]
        columns = (x.w, x.t, x.q, x.bulk, length, lo)
        for row in zip(*(c.tolist() for c in columns), strict=True):
            w, t, q, bulk, size, end = row
            radius = closed_forms.rounding_radius(w, q, bulk, size, 3, 4)
            if np.isfinite(end):
                alone = np.nextafter(w * w * q - 2 * w * t - radius, -np.inf)
                _require(alone == end, "one number differs from the array")
                cases += 1
    return Outcome(cases > 0, cases)


@PROOF.step("types of at most 32 bits", "exact arithmetic")
def narrow_types() -> Outcome:
    """Try float16, bfloat16 and float32 from subnormal to huge; all are finite."""
    rng, ratios = np.random.default_rng(80), []
    for (kind, scales), shape in itertools.product(NARROW.items(), SHAPES):
        for scale, (n, d) in itertools.product(scales, SIZES):
            weights, values = _values(rng, shape, n + 4, d)
            weights = _cast(weights * min(scale, 1.0), kind)
            values = _cast(values * scale, kind)
            if not weights.any():
                continue
            case = HeadCase(HeadData(weights, values), n)
            found = _ratios(case)
            _require(len(found) == n + 4, "an interval is not finite")
            _require(_beyond_relative_part(case) == 0, "beyond the relative part")
            ratios += found
    return _outcome(ratios)


def _beyond_relative_part(case: HeadCase) -> int:
    """Count the finite errors above (N + d + 4) u B, the radius without E."""
    x, (powers, _) = dot_products(case.head, case.selection), _exact_bounds(case)
    with np.errstate(all="ignore"):
        phi = x.w * x.w * x.q - 2 * x.w * x.t
        bulk = x.w * x.w * x.q + 2 * x.w * x.bulk
    count = 0
    for i in np.flatnonzero(np.isfinite(phi) & np.isfinite(bulk)):
        part = (case.n + case.head.d_head + 4) * Fraction(bulk[i]) / 2**53
        count += abs(Fraction(phi[i]) - powers[i]) > part
    return count


@PROOF.step("float64 at all scales", "exact arithmetic")
def wide_scales() -> Outcome:
    """Scale weights and values from subnormal to overflow."""
    rng, ratios, infinite, beyond = np.random.default_rng(81), [], 0, 0
    for shape, (a, b) in itertools.product(SHAPES, WIDE):
        for n, d in SIZES[:4]:
            weights, values = _values(rng, shape, n + 4, d)
            case = HeadCase(HeadData(weights * a, values * b), n)
            found = _ratios(case)
            infinite += n + 4 - len(found)
            beyond += _beyond_relative_part(case)
            ratios += found
    note = f"E is needed in {beyond}; {infinite} intervals are the whole line"
    outcome = _outcome(ratios, note)
    return replace(outcome, holds=outcome.holds and min(infinite, beyond) > 0)


@PROOF.step("large close vectors", "exact arithmetic")
def large_close_vectors() -> Outcome:
    """Take float32 coordinates of 512,695 to 512,804, where the powers all but agree.

    Drawn at random, or permutations of one vector, N = d of them its cyclic shifts:
    then s_N has equal coordinates and all powers are equal.
    """
    rng, ratios, wrong, unsure = np.random.default_rng(82), [], 0, 0
    for n, d in itertools.product((1, 3, 8), (1, 2, 8, 64)):
        values = 512_695 + rng.integers(0, 110, (n + 8, d))
        weights = 0.25 * (1 + rng.integers(-3, 4, n + 8) * 2.0**-22)
        ratios += _close_ratios(weights, values, n)
    for d in (3, 4, 5, 7, 8, 16) * 3:
        one = 512_695 + 109 * rng.random(d)
        values = np.array([np.roll(one, k) for k in range(d)])
        values = np.vstack([values, *(rng.permutation(one)[None] for _ in range(6))])
        weights = np.full(d + 6, 0.25 * (1 + 3 * 2.0**-22))
        ratios += _close_ratios(weights, values, d)
        case = HeadCase(_narrow_head(weights, values), d)
        _require(len(set(case.powers)) == 1, "the powers differ")
        x = dot_products(case.head, case.selection)
        phi = x.w * x.w * x.q - 2 * x.w * x.t
        # Each pair is an inversion; floats may deny it, the intervals must not.
        wrong += int((phi[d:, None] > phi[:d]).sum())
        bound = power_enclosure(case.head, case.selection)
        found = interval_counts(bound)
        unsure += found.inversions_upper - found.inversions_lower
        _require(found.inversions_upper == 6 * d, "an inversion is denied")
    note = f"{wrong} comparisons wrong in floats, all among the {unsure} left open"
    outcome = _outcome(ratios, note)
    return replace(outcome, holds=outcome.holds and wrong > 0)


def _narrow_head(weights: np.ndarray, values: np.ndarray) -> HeadData:
    return HeadData(weights.astype(np.float32), values.astype(np.float32))


def _close_ratios(weights: np.ndarray, values: np.ndarray, n: int) -> list[Fraction]:
    case = HeadCase(_narrow_head(weights, values), n)
    _sound_counts(case)
    return _ratios(case)


def _sound_counts(case: HeadCase) -> None:
    """Require counts that contain the true ones."""
    found = interval_counts(power_enclosure(case.head, case.selection))
    true = case.counts
    _require(
        found.fp_lower <= true.fp_upper <= found.fp_upper
        and found.fn_lower <= true.fn_upper <= found.fn_upper
        and found.inversions_lower <= true.inversions_upper <= found.inversions_upper,
        "counts do not contain the true ones",
    )


@PROOF.step("permuted keys and coordinates", "exact arithmetic")
def permutations() -> Outcome:
    """Let the library sum in many orders, up to N = 64 and d = 128."""
    rng, ratios = np.random.default_rng(83), []
    for shape, (n, d) in itertools.product(
        ("plain", "cancelling", "near one"), ((4, 3), (17, 33), (64, 128))
    ):
        weights, values = _values(rng, shape, n + 6, d)
        for _ in range(3):
            keys, axes = rng.permutation(n + 6), rng.permutation(d)
            head = HeadData(weights[keys], values[keys][:, axes])
            case = HeadCase(head, n)
            ratios += _ratios(case)
            _sound_counts(case)
    return _outcome(ratios)


def _fma(a: float, b: float, c: float) -> float:
    """Round a b + c once: a quotient of integers is rounded to nearest."""
    (p, q), (r, s), (x, y) = (z.as_integer_ratio() for z in (a, b, c))
    return (p * r * y + x * q * s) / (q * s * y)


_FLOATS = Arithmetic(lambda a, b: a + b, lambda a, b: a * b, _fma)


@PROOF.step("all orders, fused or not", "exact arithmetic")
def all_orders() -> Outcome:
    """Sum in every order, each product fused in every way, at three scales."""
    rng, ratios = np.random.default_rng(84), []
    shapes = ((3, 3), (2, 3), (3, 2), (1, 3), (3, 1), (2, 2))
    for k, (n, d) in enumerate(shapes):
        for shape, scale in zip(
            ("near one", "cancelling", "plain"), (1.0, 1e-150, 1e-310), strict=True
        ):
            weights, values = _values(rng, shape, n + 2, d)
            weights[0] *= 1 + k
            case = HeadCase(HeadData(weights, values * scale), n)
            for trees in itertools.product(
                _trees(tuple(range(n))), _trees(tuple(range(d)))
            ):
                dots = _in_order(case, *trees)
                ratios += _ratios(case, dots)
                ratios += _fused_ratios(case, dots)
    return _outcome(ratios)


def _in_order(case: HeadCase, s_tree: Tree, t_tree: Tree) -> DotProducts:
    """Return w, t, q and T summed in the order of two trees; no radii."""
    keys, n = case.selection.keys, case.n
    w = case.head.weights[-1][keys].astype(np.float64)
    v = case.head.values64[keys].tolist()
    columns = [list(c) for c in zip(*v, strict=True)]
    chosen = w.tolist()[:n]
    s = [_FLOATS.dot(s_tree, chosen, c[:n]) for c in columns]
    absolute = [_FLOATS.dot(s_tree, chosen, [abs(x) for x in c[:n]]) for c in columns]
    sizes = [[abs(x) for x in row] for row in v]
    t = np.array([_FLOATS.dot(t_tree, row, s) for row in v])
    bulk = np.array([_FLOATS.dot(t_tree, row, absolute) for row in sizes])
    q = np.array([_FLOATS.dot(t_tree, row, row) for row in v])
    none = np.zeros(len(keys))
    return DotProducts(w, t, q, bulk, none, none)


def _fused_ratios(case: HeadCase, x: DotProducts) -> list[Fraction]:
    """Error / radius with the last difference fused on either side."""
    powers, _ = _exact_bounds(case)
    length = case.head.abs_sums64[case.selection.keys]
    radii = closed_forms.rounding_radius(
        x.w, x.q, x.bulk, length, case.n, case.head.d_head
    ).tolist()
    found = []
    columns = (x.w.tolist(), x.t.tolist(), x.q.tolist(), radii, powers)
    for w, t, q, radius, power in zip(*columns, strict=True):
        for phi in (_fma(w * w, q, -(2 * w * t)), _fma(-2 * w, t, w * w * q)):
            found.append(abs(Fraction(phi) - power) / Fraction(radius))
    return found


@PROOF.step("dot products", "exact arithmetic")
def radii_of_dot_products() -> Outcome:
    """Check the radii of t and q at all scales."""
    rng, ratios = np.random.default_rng(85), []
    for shape, (a, b) in itertools.product(SHAPES, WIDE):
        for n, d in ((1, 1), (3, 7)):
            weights, values = _values(rng, shape, n + 3, d)
            case = HeadCase(HeadData(weights * a, values * b), n)
            x, exact = dot_products(case.head, case.selection), case.exact
            for found, radius, true, unit in (
                (x.t, x.t_radius, exact.dots, exact.dot_scale),
                (x.q, x.q_radius, exact.norms, exact.norm_scale),
            ):
                for i in np.flatnonzero(np.isfinite(found) & np.isfinite(radius)):
                    error = abs(Fraction(found[i]) - unit * int(true[i]))
                    ratios.append(error / Fraction(radius[i]))
    return _outcome(ratios)


@PROOF.step("overflow", "exact arithmetic")
def overflow() -> Outcome:
    """Let one number at a time overflow: both ends are infinite."""
    # s_N, ||v||^2, w^2, w^2 q, 2 w and T, in turn.
    heads: list[tuple[list[float], list[list[float]]]] = [
        ([1e10, 1.0], [[1e300], [0.0]]),
        ([0.5, 0.25], [[1.0], [1e200]]),
        ([1e200, 0.0], [[1.0], [1.0]]),
        ([1e100, 0.0], [[1e100], [1.0]]),
        ([1.7e308, 0.0], [[1e-300], [0.0]]),
        ([1e8, 1e8, 1.0], [[1e300, 1.0], [-1e300, 1.0], [1e5, 1.0]]),
    ]
    cases = 0
    for weights, values in heads:
        head = HeadData(weights, values)
        case = HeadCase(head, len(weights) - 1)
        bound = power_enclosure(head, case.selection)
        open_ends = np.isneginf(bound.lo) & np.isposinf(bound.hi)
        _require(open_ends.any(), f"all finite: {weights}, {values}")
        _require((np.isneginf(bound.lo) == np.isposinf(bound.hi)).all(), "one end only")
        _ratios(case)
        cases += 1
    return Outcome(holds=True, cases=cases)


@PROOF.step("closed form", "exact arithmetic")
def closed_form() -> Outcome:
    """Compare the symbolic form with the numeric one, exactly."""
    rng = Random(86)
    for _ in range(100):
        arguments = THEOREMS["T8"].sample(rng)
        found = closed_forms.rounding_radius(**arguments)
        if symbolic.evaluate("rounding_radius", arguments) != sp.Rational(
            found.numerator, found.denominator
        ):
            return Outcome(holds=False, note=f"{arguments}")
    return Outcome(holds=True, cases=100)


prove = PROOF.run
