"""The statements in SymPy: every closed form again, with symbols for its arguments.

``symbols_for`` turns the arguments of a numeric function into symbols with the right
assumptions (numbers that shape a formula, such as N, stay numbers); the function of the
same name here takes them and returns an expression. SymPy is imported only by this
module.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp

__all__ = ["evaluate", "expression", "symbols_for"]

# Assumptions of every argument that becomes a symbol; the others stay numbers.
_NONNEGATIVE = [
    "a",
    "b",
    "A",
    "B",
    "x",
    "weight",
    "weights",
    "low",
    "high",
    "norm",
    "bulk",
    "length",
    "norm_low",
    "norm_high",
    "r1_square",
    "r2_square",
    "sink_square",
    "probability",
]
_REAL = [
    "mu",
    "mu_low",
    "mu_high",
    "pull",
    "pull_low",
    "pull_high",
    "sink_dot",
    "dot",
    "lo",
    "hi",
    "values",
    "dot_low",
    "dot_high",
    "delta",
]
_ASSUMPTIONS: dict[str, dict[str, bool]] = {
    **{name: {"nonnegative": True} for name in _NONNEGATIVE},
    **{name: {"real": True} for name in _REAL},
}


def symbols_for(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Replace numbers by symbols: x by Symbol("x"), sequences by x_0, x_1, ..."""

    def replaced(name: str, value: Any, facts: dict[str, bool]) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(
                replaced(f"{name}_{i}", item, facts) for i, item in enumerate(value)
            )
        return sp.Symbol(name, **facts)

    return {
        name: replaced(name, value, _ASSUMPTIONS[name])
        if name in _ASSUMPTIONS
        else value
        for name, value in arguments.items()
    }


def expression(name: str, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the symbolic form ``name`` at these arguments' shapes, and its symbols."""
    symbols = symbols_for(arguments)
    return FORMS[name](**symbols), symbols


def evaluate(name: str, arguments: Mapping[str, Any]) -> Any:
    """Build the symbolic form and substitute the numbers exactly."""
    found, symbols = expression(name, arguments)
    numbers: dict[Any, Any] = {}

    def collect(symbol: Any, value: Any) -> None:
        if isinstance(symbol, tuple):
            for one, item in zip(symbol, value, strict=True):
                collect(one, item)
        elif isinstance(symbol, sp.Symbol):
            numbers[symbol] = sp.Rational(value)

    for key, symbol in symbols.items():
        collect(symbol, arguments[key])
    parts = found if isinstance(found, tuple) else (found,)
    values = tuple(sp.sympify(part).subs(numbers) for part in parts)
    return values if isinstance(found, tuple) else values[0]


def _count(conditions: Sequence[Any]) -> Any:
    return sp.Add(*(sp.Piecewise((1, c), (0, True)) for c in conditions))


def interval_counts(lo: Sequence[Any], hi: Sequence[Any], n: int) -> tuple[Any, ...]:
    """T1: FP+, FN+, FP- and FN-."""
    return (
        _count([x <= sp.Max(*hi[:n]) for x in lo[n:]]),
        _count([x >= sp.Min(*lo[n:]) for x in hi[:n]]),
        _count([x <= sp.Max(*lo[:n]) for x in hi[n:]]),
        _count([x >= sp.Min(*hi[n:]) for x in lo[:n]]),
    )


def pair_form_counts(delta: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """T1-pairs: FP, FN and inversions."""
    return (
        _count(
            [sp.Or(*(d >= 0 for d in column)) for column in zip(*delta, strict=True)]
        ),
        _count([sp.Or(*(d >= 0 for d in row)) for row in delta]),
        _count([d >= 0 for row in delta for d in row]),
    )


def _f_score(n: Any, fp: Any, fn: Any) -> Any:
    return 2 / (1 + sp.sympify(fp) / n + sp.sympify(n) / (n - fn))


def separate_bounds(n: int, n_unselected: int, inversions: int) -> tuple[Any, Any]:
    """T2a: bounds on P and R."""
    G, N, M = sp.Integer(inversions), sp.Integer(n), sp.Integer(n_unselected)
    return N / (N + sp.Min(G, M)), sp.Max(0, 1 - G / N)


def joint_bound(n: int, n_unselected: int, inversions: int) -> Any:
    """T2b: F*(N, M, G), with h convex in b so that an end of its range decides."""
    G, N, M = sp.Integer(inversions), sp.Integer(n), sp.Integer(n_unselected)
    b = sp.Symbol("b", positive=True)
    h = (G + 1 - b) / N + N / (N - b)
    if G == 0:
        return sp.Integer(1)
    if G >= N:
        return sp.Integer(0)
    ends = (sp.Max(1, G + 1 - M), G)
    return 2 / (1 + sp.Max(*(h.subs(b, end) for end in ends)))


def equiangular_gap(a: Any, b: Any, A: Any, mu: Any) -> Any:
    """T3: squared distance plus the excess."""
    distance = a**2 + b**2 - 2 * a * b * mu
    return distance + 2 * mu * (a - b) * (A - a)


def equiangular_cosine_gap(a: Any, mu: Any) -> Any:
    """T3-cosine: u_i.s = a + mu (A - a) less u_j.s = mu A."""
    A = sp.Symbol("A", nonnegative=True)
    return sp.expand((a + mu * (A - a)) - mu * A)


def power_interval(
    low: Any, high: Any, pull_low: Any, pull_high: Any, *, selected: bool
) -> tuple[Any, Any]:
    """T4: extremes of -r^2 - 2 r X and r^2 - 2 r X by cases of the vertex."""
    sign, inner, outer = (
        (-1, pull_low, pull_high) if selected else (1, pull_high, pull_low)
    )

    def power(r: Any, pull: Any) -> Any:
        return sign * r**2 - 2 * r * pull

    vertex = sign * inner
    attained = sp.Piecewise(
        (power(low, inner), vertex <= low),
        (power(high, inner), vertex >= high),
        (-sign * inner**2, True),
    )
    end = (sp.Min if selected else sp.Max)(power(low, outer), power(high, outer))
    return (end, attained) if selected else (attained, end)


def constant_norm_gap(a: Any, b: Any, A: Any, mu_low: Any, mu_high: Any) -> Any:
    """T4-gap: lo of alpha_{N+1} less hi of alpha_N."""
    return (b**2 - 2 * b * A * mu_high) - (-(a**2) - 2 * a * (A - a) * mu_low)


def constant_norm_cosine_gap(a: Any, A: Any, mu_low: Any, mu_high: Any) -> Any:
    """T4-cosine: least u_i.s less greatest u_j.s."""
    return (a + mu_low * (A - a)) - A * mu_high


def false_positive_polynomial(x: Any, a: Any, A: Any, mu_low: Any, mu_high: Any) -> Any:
    """T4-roots: the product over its two roots."""
    constant = a**2 * (1 - 2 * mu_low) + 2 * A * a * mu_low
    root = sp.sqrt((A * mu_high) ** 2 - constant)
    return sp.expand((x - A * mu_high - root) * (x - A * mu_high + root))


def _bordered_determinant(n: Any, inner: Any, border: Any) -> Any:
    """Return the Gram determinant of n unit vectors at cosine ``inner`` and one more.

    The last has cosine ``border`` with all others.

    The eigenvalues of the inner block are 1 - inner, n - 1 times, and
    1 + (n - 1) inner on the vector of ones.
    """
    return (1 - inner) ** (n - 1) * (1 + (n - 1) * inner - n * border**2)


def attainment_slack(n: Any, mu_low: Any, mu_high: Any) -> Any:
    """T4-attained: the Gram determinant over its positive factor (1 - mu-)^(N-1)."""
    found = _bordered_determinant(n, mu_low, mu_high)
    return sp.cancel(found / (1 - mu_low) ** (n - 1))


def pair_attainment_slack(n: Any, mu_low: Any, mu_high: Any) -> Any:
    """T4-pair: Schur complement of the others (cosine mu+) in the pair's block."""
    others = n - 1
    # <1, G^-1 1> of the others, all at cosine mu+.
    weight = sp.Integer(others) / (1 + (others - 1) * mu_high)
    block = sp.Matrix(
        [
            [1 - mu_low**2 * weight, mu_high - mu_low * mu_high * weight],
            [mu_high - mu_low * mu_high * weight, 1 - mu_high**2 * weight],
        ]
    )
    return sp.cancel(block.det() * (1 + (others - 1) * mu_high))


def sink_collapse_gap(a: Any, b: Any, pull: Any, mu: Any) -> Any:
    """T5: the two powers, each from its inner products."""
    selected = a**2 - 2 * a * (a + pull - a * mu)
    unselected = b**2 - 2 * b * pull
    return unselected - selected


def sink_power(sink_square: Any, sink_dot: Any, B: Any) -> Any:
    """T5-counts: ||y_0||^2 - 2 <y_0, s_N>."""
    return sink_square - 2 * (sink_square + B * sink_dot)


def cell_interval(
    weight: Any, norm_low: Any, norm_high: Any, dot_low: Any, dot_high: Any
) -> tuple[Any, Any]:
    """T6: w (w q - 2 t) at the two corners."""
    return (
        weight * (weight * norm_low - 2 * dot_high),
        weight * (weight * norm_high - 2 * dot_low),
    )


def single_f_score(equal: int) -> Any:
    """T7 and T7-cosine."""
    return sp.Piecewise((1, sp.Eq(equal, 0)), (0, True))


def two_power(r1_square: Any, r2_square: Any, dot: Any) -> Any:
    """T7-two: the greater of phi_1 = D_1^2 - ||s||^2, D_1 = r_2, and phi_2."""
    total = r1_square + r2_square + 2 * dot
    return sp.Max(r2_square - total, r1_square - total)


def two_f_score(false_positives: int, false_negatives: int) -> Any:
    """T7-two: the three values of F_2."""
    return sp.Piecewise(
        (1, sp.Eq(false_negatives, 0) & sp.Eq(false_positives, 0)),
        (sp.Rational(4, 6 + false_positives), sp.Eq(false_negatives, 1)),
        (0, True),
    )


def rounding_radius(
    weight: Any, norm: Any, bulk: Any, length: Any, n: int, d_head: int
) -> Any:
    """T8: relative part on the bulk, absolute part for underflow."""
    relative = sp.Rational(n + d_head + 4, 2**53) * weight * (weight * norm + 2 * bulk)
    absolute = norm + d_head * weight**2 + 2 * weight * (n * length + d_head) + 2
    return relative + absolute / sp.Integer(2) ** 1072


def isotropic_cosine_bound(n_vectors: Any, d_head: Any, probability: Any) -> Any:
    """T9: eps."""
    pairs = n_vectors * (n_vectors - 1)
    return sp.sqrt(2 * sp.log(pairs / sp.sympify(probability)) / d_head)


def isotropic_token_bound(n_vectors: Any, d_head: Any, probability: Any) -> Any:
    """T9-token: tau."""
    return sp.sqrt(2 * sp.log(n_vectors / sp.sympify(probability)) / d_head)


def discarded_error(weights: Sequence[Any], values: Sequence[Any], n: int) -> Any:
    """T10: output less aggregate."""
    products = [w * v for w, v in zip(weights, values, strict=True)]
    return sp.Add(*products) - sp.Add(*products[:n])


def rescaled_error(weights: Sequence[Any], values: Sequence[Any], n: int) -> Any:
    """T10-rescaled: output less the rescaled aggregate."""
    products = [w * v for w, v in zip(weights, values, strict=True)]
    scale = sp.Add(*weights) / sp.Add(*weights[:n])
    return sp.Add(*products) - scale * sp.Add(*products[:n])


FORMS = {
    form.__name__: form
    for form in (
        attainment_slack,
        cell_interval,
        constant_norm_cosine_gap,
        constant_norm_gap,
        discarded_error,
        equiangular_cosine_gap,
        equiangular_gap,
        false_positive_polynomial,
        interval_counts,
        isotropic_cosine_bound,
        isotropic_token_bound,
        joint_bound,
        pair_attainment_slack,
        pair_form_counts,
        power_interval,
        rescaled_error,
        rounding_radius,
        separate_bounds,
        single_f_score,
        sink_collapse_gap,
        sink_power,
        two_f_score,
        two_power,
    )
}
