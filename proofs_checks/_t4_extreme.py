"""Steps of T4-attained and T4-pair: extreme Gram matrices, as forms and as heads."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from random import Random
from typing import Any

import sympy as sp
import z3

from geobounds import closed_forms as forms
from geobounds import symbolic
from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.pairwise import PairwiseRegime
from geobounds.separability import interval_counts, measure
from geobounds.situation import (
    HeadCase,
    Numbers,
    head_from_gram,
    pivots,
    vectors_of,
)
from geobounds.theorems import THEOREMS
from proofs_checks._t4_heads import exact_powers
from proofs_checks._template import Outcome, refuted, satisfiable, worst, zero

__all__ = ["STEPS"]

Gram = list[list[Fraction]]


def _form(gram: Any, x: list[Any]) -> Any:
    """Quadratic form of a matrix."""
    pairs = itertools.product(range(len(x)), repeat=2)
    return sum(gram[i][k] * x[i] * x[k] for i, k in pairs)


def _spread(x: list[Any]) -> tuple[Any, Any]:
    """Mean, and sum of squares around it."""
    mean = sp.Rational(1, len(x)) * sum(x)
    return mean, sum((v - mean) ** 2 for v in x)


def _extreme(n: int, m: int, low: Any, high: Any, within: Any) -> Any:
    """Gram matrix: S at ``low``, U at ``within``, across at ``high``."""

    def cosine(i: int, k: int) -> Any:
        if i == k:
            return Fraction(1)
        inside = (i < n) + (k < n)
        return (within, high, low)[inside]

    return [[cosine(i, k) for k in range(n + m)] for i in range(n + m)]


def quadratic_form() -> Outcome:
    """Squares with e as a factor, N <= 5; all N by the mean; M > 1 at mu+ in U."""
    low, high, y = sp.symbols("mu- mu+ y", real=True)
    rest = []
    for n in range(1, 6):
        x = list(sp.symbols(f"x0:{n}", real=True))
        mean, spread = _spread(x)
        e = forms.attainment_slack(n, low, high)
        gram = _extreme(n, 1, low, high, None)
        squares = (1 - low) * spread + (y + n * high * mean) ** 2 + n * mean**2 * e
        rest += [
            _form(gram, [*x, y]) - squares,
            _form(gram, [1] * n + [-n * high]) - n * e,
            symbolic.attainment_slack(n, low, high) - e,
        ]
    for n, m in itertools.product((1, 2, 3), (2, 3)):
        x = list(sp.symbols(f"x0:{n}", real=True))
        z = list(sp.symbols(f"z0:{m}", real=True))
        (mean, spread), (other, other_spread) = _spread(x), _spread(z)
        gram = _extreme(n, m, low, high, high)
        means = n * (1 + (n - 1) * low) * mean**2 + 2 * n * m * high * mean * other
        means += m * (1 + (m - 1) * high) * other**2
        squares = (1 - low) * spread + (1 - high) * other_spread + means
        rest.append(_form(gram, x + z) - squares)
    return zero(*rest)


_CIRCLE = [Fraction(k, 12) for k in range(13)]


def attained_both_ways() -> Outcome:
    """Compare the sign of the least pivot with e; vectors exist accordingly."""
    seen = {True: 0, False: 0}
    for n, (low, high) in itertools.product(
        range(1, 7), itertools.combinations_with_replacement(_CIRCLE, 2)
    ):
        numbers = Numbers({"n": n, "mu_low": low, "mu_high": high})
        exists = forms.attainment_slack(n, low, high) >= 0
        seen[exists] += 1
        statement = THEOREMS["T4-attained"]
        if statement.applies(numbers) != exists:
            return Outcome(holds=False, note=f"hypotheses at {n}, {low}, {high}")
        if (statement.slack(numbers) >= 0) != exists:
            return Outcome(holds=False, note=f"pivots at {n}, {low}, {high}")
        gram = _extreme(n, 1, low, high, None)
        if _realised(gram) != exists:
            return Outcome(holds=False, note=f"vectors at {n}, {low}, {high}")
        for m in (1, 2, 3) if n < 5 else ():
            inside, outside = 1 + (n - 1) * low, 1 + (m - 1) * high
            together = inside * outside >= n * m * high * high
            least = min(pivots(_extreme(n, m, low, high, high)))
            if (least >= 0) != together or (m == 1 and together != exists):
                return Outcome(
                    holds=False, note=f"all pairs at {n}, {m}, {low}, {high}"
                )
    return Outcome(min(seen.values()) > 0, sum(seen.values()), None, f"exist: {seen}")


def _realised(gram: Gram) -> bool:
    """Whether vectors with these inner products are found, and have them."""
    try:
        v = vectors_of(gram)
    except ArgumentError:
        return False
    size = range(len(gram))
    return all(
        sum((a * b for a, b in zip(v[i], v[k], strict=True)), Fraction(0)) == gram[i][k]
        for i in size
        for k in size
    )


# N, mu-, mu+: the first seven at e = 0, the others above.
_NUMBERS = (
    *((1, "0", "1"), (2, "1/8", "3/4"), (3, "1/6", "2/3"), (4, "0", "1/2")),
    *((5, "1/16", "1/2"), (5, "1/5", "3/5"), (6, "1/10", "1/2"), (2, "0", "1/2")),
    *((3, "1/4", "1/2"), (4, "1/3", "1/2"), (6, "1/8", "1/3")),
)


def _configurations(rng: Random, scope: str) -> Iterator[tuple[HeadCase, Any, Any]]:
    """Yield heads in the extreme position, on the edge of the condition too."""
    for (n, a, b), m, _ in itertools.product(_NUMBERS, (1, 2, 4), range(8)):
        low, high = Fraction(a), Fraction(b)
        within = Fraction(1) if scope == "roles" else high
        gram = _extreme(n, m, low, high, within)
        if min(pivots(gram)) < 0:
            continue
        most = rng.choice((6, 12, 30))
        weights = sorted((rng.randint(1, most) for _ in range(n + m)), reverse=True)
        yield HeadCase(head_from_gram(weights, gram), n), low, high


def _regime(
    case: HeadCase, scope: str, low: Fraction, high: Fraction
) -> PairwiseRegime:
    """Build the regime with the head's one norm, an integer."""
    square = sum(int(x) ** 2 for x in case.head.require_values("t4")[0].tolist())
    norm = (Fraction(isqrt(square)),) * 2
    n = None if scope == "all" else case.n
    return PairwiseRegime(scope, n, norm, norm, low, high, None, None, None)


def attained_by_heads() -> Outcome:
    """Heads whose powers are all at their bounds: FP = FP+ and FN = FN+ together."""
    rng, telling, slacks = Random(41), 0, []
    sizes = set()
    for scope in ("roles", "all"):
        for case, low, high in _configurations(rng, scope):
            regime = _regime(case, scope, low, high)
            regime.check(case.head)
            bound = regime.enclosure(case.head, case.selection)
            if exact_powers(case) != [*bound.hi[: case.n], *bound.lo[case.n :]]:
                return Outcome(
                    holds=False, note=f"a power is not at its bound: {regime}"
                )
            least = interval_counts(bound)
            found = measure(case.head, case.n)
            if (found.false_positives, found.false_negatives) != (
                least.fp_upper,
                least.fn_upper,
            ):
                return Outcome(holds=False, note=f"counts differ: {regime}")
            f = least.f_score.lower
            slacks.append(found.f_score.lower - f)
            if 0 < f < 1:
                telling += 1
                sizes.add((case.n, len(case.unselected)))
    note = f"{telling} with 0 < F < 1, {len(sizes)} sizes"
    if telling < 100 or len(sizes) < 10:
        return Outcome(holds=False, note=f"too few telling cases: {note}")
    return worst(slacks, note)


def _three_vectors(b: Fraction) -> list[Any]:
    """Weights (1, 1; b), mu- = 0, mu+ = 1: an inversion, in z3."""
    c, p, q = z3.Reals("c p q")
    phi_i, phi_j = -1 - 2 * c, b * b - 2 * b * (p + q)
    unit = [z3.And(x >= -1, x <= 1) for x in (c, p, q)]
    gram = 1 + 2 * c * p * q - c * c - p * p - q * q >= 0
    return [*unit, gram, c >= 0, phi_j <= phi_i]


def not_attained() -> Outcome:
    """FP+ = 1 although no three unit vectors make a false positive."""
    head = HeadData([3, 3, 1], visible="all", sink=None)
    one = (Fraction(1), Fraction(1))
    regime = PairwiseRegime(
        "roles", 2, one, one, Fraction(0), Fraction(1), None, None, None
    )
    selection = HeadCase(head, 2).selection
    counted = interval_counts(regime.enclosure(head, selection)).fp_upper
    if counted != 1 or forms.attainment_slack(2, 0, 1) >= 0:
        return Outcome(holds=False, note=f"FP+ = {counted}")
    return refuted(_three_vectors(Fraction(1, 3)))


def attained_nearby() -> Outcome:
    """Show that the refutation is not empty: b = 1/2 has a solution."""
    return satisfiable(_three_vectors(Fraction(1, 2)))


def _pair(n: int, low: Any, high: Any, nu: Any) -> Any:
    """Gram matrix of the others at nu, then i, then j."""
    k = n - 1

    def cosine(a: int, b: int) -> Any:
        a, b = min(a, b), max(a, b)
        if a == b:
            return Fraction(1)
        if b < k:
            return nu
        return low if b == k and a < k else high

    return [[cosine(a, b) for b in range(n + 1)] for a in range(n + 1)]


def pair_form() -> Outcome:
    """Sum of squares in the spread and the mean; the determinants; the gain by nu."""
    low, high, nu, u, v = sp.symbols("mu- mu+ nu u v", real=True)
    K = sp.Symbol("K", positive=True)
    rest = []
    for n in range(2, 6):
        k = n - 1
        x = list(sp.symbols(f"x0:{k}", real=True))
        mean, spread = _spread(x)
        squares = (1 - nu) * spread + k * (1 + (k - 1) * nu) * mean**2 + u**2 + v**2
        squares += 2 * k * mean * (low * u + high * v) + 2 * high * u * v
        rest.append(_form(_pair(n, low, high, nu), [*x, u, v]) - squares)
        e2 = symbolic.pair_attainment_slack(n, low, high)
        rest.append(e2 - forms.pair_attainment_slack(n, low, high))

    def reduced(nu: Any) -> Any:
        root = sp.sqrt(K)
        rows = [[1 + (K - 1) * nu, root * low, root * high]]
        return sp.Matrix([*rows, [root * low, 1, high], [root * high, high, 1]])

    by_role = reduced(sp.Integer(1)).det() / K
    rest += [
        reduced(high).det() - forms.pair_attainment_slack(K + 1, low, high),
        by_role - forms.pair_attainment_slack(2, low, high),
        by_role - (1 - low) * forms.attainment_slack(2, low, high),
        *(reduced(high) - reduced(nu) - sp.diag((K - 1) * (high - nu), 0, 0)),
    ]
    return zero(*rest)


def pair_minors() -> Outcome:
    """Once the determinant is not negative, no principal minor is; K = N - 1 >= 1."""
    K, low, high = z3.Reals("K mu- mu+")
    e2 = forms.pair_attainment_slack(K + 1, low, high)
    given = [K >= 1, high <= 1, -high <= low, low <= high, e2 >= 0]
    corner = 1 + (K - 1) * high
    minors = (corner, 1 - high * high, corner - K * low * low, corner - K * high * high)
    return refuted(*([*given, minor < 0] for minor in minors))


def pair_minors_need_range() -> Outcome:
    """Show that the refutation is not empty: cosines above 1 have a solution."""
    K, low, high = z3.Reals("K mu- mu+")
    e2 = forms.pair_attainment_slack(K + 1, low, high)
    return satisfiable([K == 2, high > 1, low == high, e2 >= 0, 1 - high * high < 0])


def pair_both_ways() -> Outcome:
    """Pivots and closed form agree, for negative mu- and every other nu too."""
    seen = {True: 0, False: 0}
    for n, high, step in itertools.product(range(2, 7), _CIRCLE[::2], range(-6, 7)):
        low = high * Fraction(step, 6)
        exists = forms.pair_attainment_slack(n, low, high) >= 0
        seen[exists] += 1
        numbers = Numbers({"n": n, "mu_low": low, "mu_high": high})
        if (THEOREMS["T4-pair"].slack(numbers) >= 0) != exists:
            return Outcome(holds=False, note=f"pivots at {n}, {low}, {high}")
        others = [low + (high - low) * Fraction(k, 4) for k in range(4)]
        grams = [_pair(n, low, high, nu) for nu in others]
        if not exists and any(min(pivots(gram)) >= 0 for gram in grams):
            return Outcome(holds=False, note=f"another nu at {n}, {low}, {high}")
        by_role = min(pivots(_pair(n, low, high, Fraction(1)))) >= 0
        if n > 2 and by_role != (forms.pair_attainment_slack(2, low, high) >= 0):
            return Outcome(holds=False, note=f"by role at {n}, {low}, {high}")
    return Outcome(min(seen.values()) > 0, sum(seen.values()), None, f"exist: {seen}")


STEPS: tuple[tuple[str, str, Callable[[], Outcome]], ...] = (
    ("attained: quadratic form", "symbolic", quadratic_form),
    ("attained: both ways", "exact arithmetic", attained_both_ways),
    ("attained: powers of heads", "exact arithmetic", attained_by_heads),
    ("attained: not attained", "z3", not_attained),
    ("attained: within reach nearby", "z3", attained_nearby),
    ("pair: form", "symbolic", pair_form),
    ("pair: minors", "z3", pair_minors),
    ("pair: minors need mu+ <= 1", "z3", pair_minors_need_range),
    ("pair: both ways", "exact arithmetic", pair_both_ways),
)
