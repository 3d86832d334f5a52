"""The conclusions of the statements as slacks: at least 0 iff the conclusion holds.

For a lower bound the slack is the true metric minus the bound; for an identity it is
minus the absolute difference of its sides. Everything is exact.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from geobounds import closed_forms as forms
from geobounds.bounds import capped_f_bound, inversion_bounds
from geobounds.integers import square_root_enclosure
from geobounds.isotropic import isotropic_cosine_bound, isotropic_token_bound
from geobounds.pairwise import PairwiseRegime
from geobounds.power import Enclosure, power_enclosure
from geobounds.separability import Counts, interval_counts
from geobounds.situation import HeadCase, Keys, Numbers, column_of, pivots

__all__ = ["SLACKS"]


def _f(counts: Counts) -> Fraction:
    return counts.f_score.lower


def _intervals(s: Keys) -> Fraction:
    """T1: F between its bounds, and each count between its own."""
    lo, hi = column_of(s.numbers["lo"]), column_of(s.numbers["hi"])
    found, true = interval_counts(Enclosure(lo, hi, s.n)), s.counts
    below = _f(true) - found.f_score.lower
    others: Any = min(
        found.f_score.upper - _f(true),
        true.fp_upper - found.fp_lower,
        true.fn_upper - found.fn_lower,
        found.fp_upper - true.fp_upper,
        found.fn_upper - true.fn_upper,
    )
    return min(below, Fraction(others)) if others < 0 else below


def _pairs(s: Keys) -> Fraction:
    """T1-pairs with T2b under its caps."""
    bound = capped_f_bound(s.n, *forms.pair_form_counts(s.numbers["delta"]))
    return _f(s.counts) - bound


def _given_inversions(s: Keys) -> Any:
    counts = s.counts
    given = s.numbers.get("inversions", counts.inversions_upper)
    return inversion_bounds(s.n, counts.n_unselected, given)


def _separate(s: Keys) -> Fraction:
    """T2a: the worse of P and R."""
    b = _given_inversions(s)
    return min(s.counts.precision.lower - b.precision, s.counts.recall.lower - b.recall)


def _joint(s: Keys) -> Fraction:
    """T2b: F."""
    return _f(s.counts) - _given_inversions(s).f_joint


def _separable(s: HeadCase) -> Fraction:
    """T3: F_N = 1."""
    return _f(s.counts) - 1


def _certified(s: HeadCase) -> Fraction:
    """T4 and T6: F minus what the regime certifies."""
    bound = s.numbers["regime"].enclosure(s.head, s.selection)
    return _f(s.counts) - interval_counts(bound).f_score.lower


def _gap_arguments(s: HeadCase) -> dict[str, Any]:
    w, n = s.weights, s.n
    found = {"a": w[n - 1], "b": max(w[n:]), "A": sum(w[:n])}
    return found | {k: Fraction(s.numbers[k]) for k in ("mu_low", "mu_high")}


def _constant_norm_counts(s: HeadCase) -> Counts:
    """Certify with the constant-norm regime of these cosines."""
    one = (Fraction(1), Fraction(1))
    regime = PairwiseRegime(
        "all",
        None,
        one,
        one,
        Fraction(s.numbers["mu_low"]),
        Fraction(s.numbers["mu_high"]),
        None,
        None,
        None,
    )
    return interval_counts(regime.enclosure(s.head, s.selection))


def _gap(s: HeadCase) -> Fraction:
    """T4-gap: positive iff the regime certifies F = 1, which then holds."""
    positive = forms.constant_norm_gap(**_gap_arguments(s)) > 0
    if positive != (_f(_constant_norm_counts(s)) == 1):
        return Fraction(-1)
    return _f(s.counts) - 1 if positive else Fraction(0)


def _cosine_gap(s: HeadCase) -> Fraction:
    """T4-cosine: a positive gap implies F = 1."""
    arguments = _gap_arguments(s)
    del arguments["b"]
    positive = forms.constant_norm_cosine_gap(**arguments) > 0
    return _f(s.counts) - 1 if positive else Fraction(0)


def _roots(s: HeadCase) -> Fraction:
    """T4-roots: the regime's false positives are those between the roots."""
    arguments = _gap_arguments(s)
    del arguments["b"]
    inside = [
        forms.false_positive_polynomial(x, **arguments) <= 0 for x in s.weights[s.n :]
    ]
    found = _constant_norm_counts(s).fp_upper
    if found != sum(inside):
        return Fraction(-abs(found - sum(inside)))
    return Fraction(min(0, found - s.counts.fp_upper))


def _extreme_gram(s: Numbers) -> Fraction:
    """T4-attained: S at mu-, all of U one vector at mu+ to S; its least pivot."""
    n, low, high = (s.numbers[k] for k in ("n", "mu_low", "mu_high"))
    gram = [[1 if i == k else low for k in range(n)] + [high] for i in range(n)]
    return min(pivots([*gram, [high] * n + [1]]))


def _pair_gram(s: Numbers) -> Fraction:
    """T4-pair: i at mu- and j at mu+ to the others of S, all else mu+."""
    n, low, high = (s.numbers[k] for k in ("n", "mu_low", "mu_high"))
    gram = [[Fraction(high)] * (n + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        gram[i][i] = Fraction(1)
    # The others first: their block is definite, the pair's Schur complement decides.
    for k in range(n - 1):
        gram[k][n - 1] = gram[n - 1][k] = low
    return min(pivots(gram))


def _sink_others(s: HeadCase) -> Fraction:
    """T5: minus the inversions of selected tokens other than the sink."""
    inside = [s.powers[i] for i in s.selected if i != s.sink_at]
    outside = [s.powers[j] for j in s.unselected]
    return Fraction(-sum(q <= p for p in inside for q in outside))


def _sink_counts(s: HeadCase) -> Fraction:
    """T5-counts: FP and FN from the power of the sink; by weights where it is > 0."""
    w, g, sink, first, last = s.weights, s.gram, s.sink_at, s.others[0], s.others[-1]
    if sink is None or not g[first][first]:
        return Fraction(-1)  # no sink or no common norm to speak of
    # Units of norm 1. First and last are selected and not, unless the sink is alone.
    unit, dot = g[first][first], Fraction(w[sink] * g[sink][first], g[first][first])
    B = sum(w[i] for i in s.selected if i != sink)
    m = B * Fraction(g[first][last], unit) + dot
    phi = forms.sink_power(Fraction(w[sink] ** 2 * g[sink][sink], unit), dot, B)
    fp = sum(s.powers[j] <= s.powers[sink] for j in s.unselected)
    fn = int(fp > 0)
    error = abs(fp - s.counts.fp_upper) + abs(fn - s.counts.fn_upper)
    error += abs(phi - Fraction(s.powers[sink], unit))
    if phi >= 0:
        # alpha <= m + sqrt(m^2 + phi), without the root.
        near = [a <= m or (a - m) ** 2 <= m * m + phi for a in w[s.n :]]
        error += abs(fp - sum(near))
    return Fraction(-error)


def _single(s: HeadCase) -> Fraction:
    """T7: F_1 by duplicates of y_1."""
    w, g = s.weights, s.gram
    own = w[0] * w[0] * g[0][0]
    equal = sum(
        own == w[j] * w[j] * g[j][j] == w[0] * w[j] * g[0][j] for j in s.unselected
    )
    return -abs(_f(s.counts) - forms.single_f_score(equal))


def _single_cosine(s: HeadCase) -> Fraction:
    """T7-cosine: F_1 by positive multiples of y_1; 0 if y_1 = 0."""
    w, g = s.weights, s.gram
    if w[0] == 0 or g[0][0] == 0:
        return -_f(s.counts)
    equal = sum(
        w[j] > 0 and g[0][j] > 0 and g[0][j] ** 2 == g[0][0] * g[j][j]
        for j in s.unselected
    )
    return -abs(_f(s.counts) - forms.single_f_score(equal))


def _two(s: HeadCase) -> Fraction:
    """T7-two: the greatest selected power, and F_2 from FP and FN."""
    w, g = s.weights, s.gram
    r1, r2 = (w[i] * w[i] * g[i][i] for i in (0, 1))
    power = forms.two_power(r1, r2, w[0] * w[1] * g[0][1])
    counts = s.counts
    values = (Fraction(1), Fraction(4, 6 + counts.fp_upper), Fraction(0))
    f = values[min(counts.fn_upper, 2)]
    return -abs(max(s.powers[: s.n]) - power) - abs(_f(counts) - f)


def _rounding(s: HeadCase) -> Fraction:
    """T8: distance of the exact power to the nearer end of its interval."""
    bound = power_enclosure(s.head, s.selection)
    scale = Fraction(2) ** (2 * (s.exact.w_exponent + s.exact.v_exponent))
    return min(
        (
            min(scale * phi - Fraction(lo), Fraction(hi) - scale * phi)
            for phi, lo, hi in zip(s.powers, bound.lo, bound.hi, strict=True)
            if np.isfinite(lo) and np.isfinite(hi)
        ),
        default=Fraction(0),
    )


def _flushed(s: HeadCase) -> Fraction:
    """T8, with a product that underflows flushed to 0 where the situation says so."""
    if s.numbers.get("underflow", "gradual") == "gradual":
        return _rounding(s)
    # Model of flush-to-zero for one key in one dimension: w * w * q and 2 * w * t.
    w, v = float(s.head.weights[-1][0]), float(s.head.values64[0][0])

    def flushed(x: float) -> float:
        return 0.0 if abs(x) < 2.0**-1022 else x

    q = flushed(v * v)
    phi = flushed(flushed(w * w) * q) - flushed(2 * flushed(w * flushed(w * q)))
    radius = forms.rounding_radius(w, q, flushed(w * q), abs(v), 1, 1)
    true = -((Fraction(w) * Fraction(v)) ** 2)
    return Fraction(radius) - abs(Fraction(phi) - true)


def _draw(rng: np.random.Generator, kind: str, count: int, width: int) -> np.ndarray:
    """Draw unit vectors of one kind: equal, cone, or else uniform."""
    vectors = rng.normal(size=(1 if kind == "equal" else count, width))
    if kind == "cone":
        vectors[:, 0] += 3 * np.sqrt(width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.repeat(vectors, count, axis=0) if kind == "equal" else vectors


def _failures(s: Numbers, exceeded: Callable[..., bool]) -> Fraction:
    """Probability minus the share of 400 seeded draws that exceed the bound."""
    rng = np.random.default_rng(0)
    sizes = s.numbers["n_vectors"], s.numbers["d_head"]
    kind = s.numbers["draws"]
    failed = sum(exceeded(_draw(rng, kind, *sizes)) for _ in range(400))
    return Fraction(s.numbers["probability"]) - Fraction(failed, 400)


def _sizes(s: Numbers) -> tuple[int, int, Fraction]:
    numbers = s.numbers
    return numbers["n_vectors"], numbers["d_head"], Fraction(numbers["probability"])


def _isotropic(s: Numbers) -> Fraction:
    """T9: how often some pair exceeds eps."""
    bound = isotropic_cosine_bound(*_sizes(s))

    def exceeded(u: np.ndarray) -> bool:
        cosines = np.abs(u @ u.T)[np.triu_indices(len(u), 1)]
        return bool((cosines > bound).any())

    return _failures(s, exceeded)


def _isotropic_token(s: Numbers) -> Fraction:
    """T9-token: how often some token exceeds tau; half of the tokens are selected."""
    bound = isotropic_token_bound(*_sizes(s))

    def exceeded(u: np.ndarray) -> bool:
        n = len(u) // 2
        norms = np.linspace(1, 2, n)
        if s.numbers["draws"] == "aligned norms":
            norms = np.maximum(u[:n] @ u[-1], 0)  # heavy where it points to the last
        pull = u[n:] @ (norms @ u[:n])
        return bool((pull > bound * np.sqrt((norms**2).sum())).any())

    return _failures(s, exceeded)


def _discarded(s: HeadCase) -> tuple[list[int], list[int]]:
    """Keys of S, and of the keys the sum of T10 runs over outside S."""
    chosen = s.selection.selected.tolist()
    visible = np.flatnonzero(s.head.visible[-1]).tolist()
    if s.numbers.get("over", "visible") == "candidates":
        visible = s.selection.keys.tolist()
    return chosen, [k for k in visible if k not in chosen]


def _row(s: HeadCase) -> tuple[list[Fraction], list[list[int]]]:
    """All weights and integer values of the query, by key."""
    weights = [Fraction(float(w)) for w in s.head.weights[-1]]
    return weights, s.head.integer_values[0].tolist()


def _error(s: HeadCase, scale: Fraction = Fraction(1)) -> list[Fraction]:
    """Z - scale * s_N, by definition over the visible keys."""
    weights, values = _row(s)
    chosen = set(s.selection.selected.tolist())
    factors = [w - scale * w if k in chosen else w for k, w in enumerate(weights)]
    return [
        sum((w * v for w, v in zip(factors, column, strict=True)), Fraction(0))
        for column in zip(*values, strict=True)
    ]


def _by_form(s: HeadCase, form: Callable[..., Any]) -> list[Fraction]:
    weights, values = _row(s)
    chosen, rest = _discarded(s)
    order = chosen + rest
    return [
        Fraction(form([weights[k] for k in order], [column[k] for k in order], s.n))
        for column in zip(*values, strict=True)
    ]


def _deleted(s: HeadCase) -> Fraction:
    """T10: the error by the discarded contributions."""
    pairs = zip(_error(s), _by_form(s, forms.discarded_error), strict=True)
    return -sum((abs(a - b) for a, b in pairs), Fraction(0))


def _deleted_norm(s: HeadCase) -> Fraction:
    """T10-norm: (max norm times discarded weight)^2 minus the squared error."""
    weights, values = _row(s)
    _, rest = _discarded(s)
    largest = max((sum(x * x for x in values[k]) for k in rest), default=0)
    lost = sum((weights[k] for k in rest), Fraction(0))
    return largest * lost * lost - sum((x * x for x in _error(s)), Fraction(0))


def _optimal(s: HeadCase) -> Fraction:
    """T10-optimal: the least excess of another allowed set's sum over ours."""
    weights, values = _row(s)
    chosen = s.selection.selected.tolist()
    allowed = [k for k in s.selection.keys.tolist() if k not in _barred(s)]
    squares = [
        w * w * sum(x * x for x in v) for w, v in zip(weights, values, strict=True)
    ]
    by_weight = s.numbers["measured"] == "weight"
    kept = sorted((weights if by_weight else squares)[k] for k in chosen)
    best = Fraction(0)
    for other in combinations(allowed, s.n):
        theirs = sorted((weights if by_weight else squares)[k] for k in other)
        pairs = zip(kept, theirs, strict=True)
        difference = _difference if not by_weight else (lambda a, b: a - b)
        # What is kept is not discarded, so ours must keep the more.
        best = min(best, sum((difference(a, b) for a, b in pairs), Fraction(0)))
    return best


def _barred(s: HeadCase) -> list[Any]:
    barred = s.sink_policy == "compete" and s.sink_at is not None
    among = s.numbers.get("among", "allowed")
    return [s.head.sink] if barred and among == "allowed" else []


def _difference(a: Fraction, b: Fraction) -> Fraction:
    """Lower bound on sqrt(a) - sqrt(b) with its sign exact."""
    if a == b:
        return Fraction(0)
    end = 1 if a > b else 0
    return (a - b) / (square_root_enclosure(a)[end] + square_root_enclosure(b)[end])


def _rescaled(s: HeadCase) -> Fraction:
    """T10-rescaled: the error after restoring the mass."""
    weights, _ = _row(s)
    chosen, _ = _discarded(s)
    kept = sum((weights[k] for k in chosen), Fraction(0))
    if kept in (0, sum(weights)):
        return Fraction(-1)  # a weighted mean of nothing
    error = _error(s, sum(weights) / kept)
    pairs = zip(error, _by_form(s, forms.rescaled_error), strict=True)
    return -sum((abs(a - b) for a, b in pairs), Fraction(0))


SLACKS: dict[str, Callable[[Any], Fraction]] = {
    "T1": _intervals,
    "T1-pairs": _pairs,
    "T2a": _separate,
    "T2b": _joint,
    "T3": _separable,
    "T3-contribution": _separable,
    "T3-cosine": _separable,
    "T4": _certified,
    "T4-gap": _gap,
    "T4-cosine": _cosine_gap,
    "T4-roots": _roots,
    "T4-attained": _extreme_gram,
    "T4-pair": _pair_gram,
    "T5": _sink_others,
    "T5-counts": _sink_counts,
    "T6": _certified,
    "T7": _single,
    "T7-cosine": _single_cosine,
    "T7-two": _two,
    "T8": _flushed,
    "T9": _isotropic,
    "T9-token": _isotropic_token,
    "T10": _deleted,
    "T10-norm": _deleted_norm,
    "T10-optimal": _optimal,
    "T10-rescaled": _rescaled,
}
