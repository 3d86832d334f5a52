"""Steps of T4-pair by semidefinite programs, and of T1 in pair form with T4."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import cvxpy as cp
import numpy as np
import sympy as sp

from geobounds import closed_forms as forms
from geobounds import pairform
from geobounds.pairwise import PairwiseRegime, norm_bounds
from geobounds.power import Enclosure
from geobounds.separability import interval_counts
from geobounds.situation import HeadCase
from proofs_checks._t4_heads import (
    draw_head,
    exact_powers,
    fitted,
    intervals,
    norm_ends,
    widened,
)
from proofs_checks._template import Outcome, worst, zero

__all__ = ["STEPS"]

Pair = tuple[int, int]

# Interior-point answers: the solver stops at relative gaps and residuals of 1e-8, and
# the coefficients of the objective add up to less than 10. Evidence, not a bound.
_TOLERANCE = 1e-6
_CLEAR = 1e-3


def greatest_difference(
    weights: list[float], b: float, low: float, high: float, *, by_role: bool
) -> tuple[float, float]:
    """Return the maximum of phi_i - phi_j over unit vectors, and the solver's gap.

    i is the first of the selected weights, b the weight of j.
    """
    n = len(weights)
    gram = cp.Variable((n + 1, n + 1), PSD=True)
    given = [cp.diag(gram) == 1]
    for i in range(n):
        for k in range(i):
            given.append(gram[i, k] >= low)
            if not by_role:
                given.append(gram[i, k] <= high)
        given.append(gram[n, i] <= high)
        if not by_role:
            given.append(gram[n, i] >= low)
    inside = sum(w * gram[0, k] for k, w in enumerate(weights) if k > 0)
    across = sum(w * gram[n, k] for k, w in enumerate(weights))
    first = weights[0]
    aim = -(first**2) - 2 * first * inside - b**2 + 2 * b * across
    problem = cp.Problem(cp.Maximize(aim), given)
    data, chain, inverse = problem.get_problem_data(cp.CLARABEL, solver_opts={})
    solution = chain.solve_via_data(problem, data)
    problem.unpack_results(solution, chain, inverse)
    if problem.status != cp.OPTIMAL:
        return float("nan"), float("nan")
    return float(problem.value), abs(solution.obj_val - solution.obj_val_dual)


def interval_difference(
    weights: list[Fraction], b: Fraction, low: Fraction, high: Fraction
) -> Fraction:
    """Return hi_i - lo_j by the closed form, norms 1."""
    A, a = sum(weights), weights[0]
    inside, across = low * (A - a), high * A
    hi = forms.power_interval(a, a, inside, inside, selected=True)[1]
    return Fraction(hi - forms.power_interval(b, b, across, across, selected=False)[0])


_NUMBERS = (
    *((2, "1/8", "3/4"), (3, "0", "3/5"), (4, "1/5", "1/2"), (4, "-3/10", "2/5")),
    *((6, "-1/5", "3/10"), (8, "1/10", "1/5"), (2, "0", "9/10"), (3, "0", "9/10")),
    *((5, "1/10", "4/5"), (3, "-3/5", "7/10"), (6, "0", "3/4"), (8, "0", "7/10")),
    (3, "-1/2", "1/2"),
)


def pair_programs() -> Outcome:
    """Reach the interval difference iff the condition holds, in both scopes."""
    rng, found = Random(7), {True: 0, False: 0}
    gaps, gains = [], []
    for n, x, y in _NUMBERS:
        low, high = Fraction(x), Fraction(y)
        weights = [Fraction(rng.randint(4, 10), 10) for _ in range(n)]
        weights = [w / sum(weights) for w in weights]
        b = weights[0] * Fraction(4, 5)
        interval = float(interval_difference(weights, b, low, high))
        for by_role in (False, True):
            slack = forms.pair_attainment_slack(2 if by_role else n, low, high)
            best, gap = greatest_difference(
                [float(w) for w in weights],
                float(b),
                float(low),
                float(high),
                by_role=by_role,
            )
            lost = interval - best
            fits = (
                abs(lost) <= gap + _TOLERANCE
                if slack >= 0
                else lost > _CLEAR * interval
            )
            if not fits:
                note = f"N={n}, {x}, {y}: {best} against {interval}, gap {gap}"
                return Outcome(holds=False, note=note)
            found[slack >= 0] += 1
            gaps.append(gap)
            if slack < 0:
                gains.append(lost / interval)
    note = f"attained: {found}; gaps up to {max(gaps):.1e}; "
    note += f"else {min(gains):.1%} to {max(gains):.1%} less"
    return Outcome(min(found.values()) > 0, sum(found.values()), None, note)


def shared_norms() -> Outcome:
    """Derive the difference at shared norms, linear in X, and its Hessian."""
    x, y, X = sp.symbols("x y X", nonnegative=True)
    least, m, c, p = sp.symbols("mu- mu+ c p", real=True)
    hi = -(x**2) - 2 * x * least * X
    lo = y**2 - 2 * y * m * (x + X)
    stated = -(x**2) - y**2 + 2 * m * x * y + 2 * X * (m * y - least * x)
    # Powers at cosines c of i and p of j to the others, p of j to i.
    powers = (-(x**2) - 2 * x * c * X) - (y**2 - 2 * y * p * (x + X))
    hessian = sp.hessian(stated, (x, y))
    return zero(
        hi - lo - stated,
        stated - powers - 2 * x * X * (c - least) - 2 * y * (x + X) * (m - p),
        sp.diff(stated, X, 2),
        hessian[0, 0] + 2,
        hessian.det() - 4 * (1 - m**2),
    )


def _exact_box(m: Fraction, a: Fraction, b: Fraction, box: list[Fraction]) -> Fraction:
    """Greatest value over the box by cases: corners, edges, stationary point."""
    left, right, bottom, top = box

    def value(x: Fraction, y: Fraction) -> Fraction:
        return -x * x - y * y + 2 * m * x * y + a * x + b * y

    points = [(x, y) for x in (left, right) for y in (bottom, top)]
    points += [(x, m * x + b / 2) for x in (left, right)]
    points += [(m * y + a / 2, y) for y in (bottom, top)]
    if abs(m) < 1:
        scale = 2 * (1 - m * m)
        points.append(((a + m * b) / scale, (b + m * a) / scale))
    return max(
        value(x, y) for x, y in points if left <= x <= right and bottom <= y <= top
    )


def box_maximum() -> Outcome:
    """Compare the library's maximum over a box, in fractions, with cases and a grid."""
    rng, slacks = Random(8), []
    for _ in range(600):
        m = Fraction(rng.randint(-6, 6), 6)
        a, b = (Fraction(rng.randint(-30, 30), rng.randint(1, 5)) for _ in range(2))
        lows = [Fraction(rng.randint(0, 8), 4) for _ in range(2)]
        highs = [low + Fraction(rng.randint(0, 20), 4) for low in lows]
        x_ends, y_ends = (
            (_cell(low), _cell(high)) for low, high in zip(lows, highs, strict=True)
        )
        args: Any = (m, _cell(a), _cell(b), x_ends, y_ends)
        top = pairform._box_maximum(*args)[0, 0]
        if top != _exact_box(m, a, b, [lows[0], highs[0], lows[1], highs[1]]):
            return Outcome(holds=False, note=f"m={m}, a={a}, b={b}, {lows}, {highs}")
        xs, ys = (
            [low + (high - low) * Fraction(k, 5) for k in range(6)]
            for low, high in zip(lows, highs, strict=True)
        )
        grid = [-x * x - y * y + 2 * m * x * y + a * x + b * y for x in xs for y in ys]
        slacks.append(top - max(grid))
    return worst(slacks)


def _cell(x: Fraction) -> Any:
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = x
    return cell


def _cases() -> Iterator[tuple[HeadCase, PairwiseRegime]]:
    """Fit every scope to seeded heads, and widen what was fitted."""
    rng = Random(9)
    for _ in range(150):
        case = draw_head(rng)
        for regime in fitted(case):
            yield case, regime
            yield case, widened(regime, rng)


def _differences(regime: PairwiseRegime, case: HeadCase) -> dict[Pair, Fraction]:
    """Bound phi_i - phi_j at shared norms, in fractions; i and j not the sink."""
    ends, sink, n = norm_ends(regime, case), case.sink_at, case.n
    inside = [k for k in range(n) if k != sink]
    least, greatest, sink_least, sink_greatest = regime.cosines
    m = min(greatest, Fraction(1))
    found = {}
    for i, j in itertools.product(inside, range(n, len(ends))):
        if j == sink:
            continue
        sink_norms = ends[sink] if sink is not None and sink < n else (Fraction(0),)
        found[i, j] = max(
            _exact_box(
                m,
                -2 * (X * least + r * sink_least),
                2 * (X * m + r * sink_greatest),
                [*ends[i], *ends[j]],
            )
            for X in (sum(ends[k][end] for k in inside if k != i) for end in (0, 1))
            for r in sink_norms
        )
    return found


def shared_differences() -> Outcome:
    """Order true differences, exact and rounded bounds, and interval differences."""
    slacks = []
    for case, regime in _cases():
        powers, stated = exact_powers(case), intervals(regime, case)
        _, low, high = norm_bounds(regime, case.head, case.selection)
        rounded = pairform._shared(regime, low, high, case.n, case.sink_at)
        for (i, j), exact in _differences(regime, case).items():
            slacks.append(exact - (powers[i] - powers[j]))
            if regime.pull_across is None:
                slacks.append(stated[i][1] - stated[j][0] - exact)
            slacks.append(Fraction(float(rounded[i, j - case.n])) - exact)
    return worst(slacks)


def pair_counts() -> Outcome:
    """Never more than the intervals count, never less than the true counts."""
    slacks, sharper = [], 0
    for case, regime in _cases():
        bound, _, _ = norm_bounds(regime, case.head, case.selection)
        lo, hi = np.full_like(bound, -np.inf), np.full_like(bound, np.inf)
        hi[: case.n], lo[case.n :] = bound[: case.n], bound[case.n :]
        apart = interval_counts(Enclosure(lo, hi, case.n))
        pairs = pairform.pair_counts(regime, case.head, case.selection)
        powers, true = exact_powers(case), case.counts
        for i, power in enumerate(powers):  # the rounded ends contain the powers too
            slacks.append(
                Fraction(hi[i]) - power if i < case.n else power - Fraction(lo[i])
            )
        for kind in ("fp_upper", "fn_upper", "inversions_upper"):
            found = getattr(pairs, kind)
            slacks.append(Fraction(getattr(apart, kind) - found))
            slacks.append(Fraction(found - getattr(true, kind)))
        f = pairform.pair_f_bound(pairs)
        slacks += [f - apart.f_score.lower, true.f_score.lower - f]
        sharper += f > apart.f_score.lower
    if sharper == 0:
        return Outcome(holds=False, note="never sharper than the intervals")
    return worst(slacks, f"sharper in {sharper} cases")


STEPS: tuple[tuple[str, str, Callable[[], Outcome]], ...] = (
    ("pair: attained or not", "semidefinite program", pair_programs),
    ("pairs: shared norms", "symbolic", shared_norms),
    ("pairs: box maximum", "exact arithmetic", box_maximum),
    ("pairs: differences of heads", "exact arithmetic", shared_differences),
    ("pairs: counts of heads", "exact arithmetic", pair_counts),
)
