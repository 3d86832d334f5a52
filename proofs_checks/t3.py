"""T3: heads whose values have equal norms and equal cosines separate perfectly.

Statement (T3). Euclidean distance, S the N candidates of largest weight among all of C,
alpha_N > 0, values of one norm c > 0, all cosines of S x C equal to one mu with
0 <= mu < 1. Then phi_j - phi_i >= ||y_i - y_j||^2 > 0 for i in S, j in U, so F_N = 1.

Proof. Let c = 1; a = alpha_i, b = alpha_j, A the sum of the weights of S.

*pair identity.* phi_i = -a^2 - 2 a mu (A - a), as every other member of S meets y_i at
cosine mu. phi_j = b^2 - 2 b mu A, likewise. Hence phi_j - phi_i = a^2 + b^2 +
2 a mu (A - a) - 2 b mu A = (a^2 + b^2 - 2 a b mu) + 2 mu (a - b)(A - a), and the first
bracket is ||y_i - y_j||^2.

*excess and distance.* a >= alpha_N >= alpha_{N+1} >= b by the ranking, A >= a since
weights are not negative, mu >= 0: the second term is at least 0. This is also true
within ties. And a^2 + b^2 - 2 a b mu = (1 - mu)(a^2 + b^2) + mu (a - b)^2 >=
(1 - mu) a^2, which is positive by mu < 1 and a >= alpha_N > 0. So every selected power
lies strictly below every unselected one: FP = FN = 0 and F = 1. Cosines of U x U never
entered.

Statement (T3-contribution). Ranked by contribution the norms may differ: with a = r_i,
b = r_j, A the sum of r over S, the same steps hold word for word. A value of 0 in U has
no cosine; its b is 0 and mu drops out.

Statement (T3-cosine). For cosine distance, any norms and any selection of non-zero
contributions: with u the unit vectors, <u_i, s_N> = a + mu (A - a) and <u_j, s_N> =
mu A, so that <u_i, s_N> - <u_j, s_N> = a (1 - mu) > 0. A zero contribution in U has key
0, and <u_i, s_N> >= a > 0 by mu >= 0; only for such a token is mu >= 0 needed.

No hypothesis can be dropped: a counterexample to each is on record, and *each
hypothesis is used* finds one more at N = 2, |U| = 1, with a Gram matrix that vectors
have.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.separability import measure
from geobounds.situation import HeadCase, head_from_gram
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof("T3", scope="all N and d (symbolic); z3 for N <= 5; grid heads |C| <= 4")


def _powers(r: Sequence[Any], inner: Any, cross: Any, n: int) -> list[Any]:
    """Powers by D9: norms r, the first n selected, cosines within S and of S x U."""
    found = []
    for i, x in enumerate(r):
        others = [r[k] for k in range(n) if k != i]
        cosine = inner if i < n else cross
        own = 2 * x * x if i < n else 0
        found.append(x * x - own - sum(2 * x * y * cosine for y in others))
    return found


@PROOF.step("pair identity", "symbolic")
def pair_identity() -> Outcome:
    """Both powers from their inner products; the gap splits as stated."""
    a, b, A, mu = sp.symbols("a b A mu", real=True)
    found = [
        closed_forms.equiangular_gap(a, b, A, mu)
        - symbolic.equiangular_gap(a, b, A, mu),
        symbolic.equiangular_cosine_gap(a, mu)
        - closed_forms.equiangular_cosine_gap(a, mu),
        (a**2 + b**2 - 2 * a * b * mu) - ((1 - mu) * (a**2 + b**2) + mu * (a - b) ** 2),
    ]
    for n in (1, 2, 3, 4):
        r = [*sp.symbols(f"r0:{n}", real=True), b]
        phi, total = _powers(r, mu, mu, n), sum(r[:n])
        for i in range(n):
            gap = closed_forms.equiangular_gap(r[i], b, total, mu)
            found.append(phi[n] - phi[i] - gap)
    return zero(*found)


@PROOF.step("excess and distance", "z3")
def excess_and_distance() -> Outcome:
    """For every N: the gap is at least the squared distance, which is positive."""
    a, b, A, mu = z3.Reals("a b A mu")
    given = [a >= b, b >= 0, a > 0, a <= A, mu >= 0, mu < 1]
    distance = a * a + b * b - 2 * a * b * mu
    gap = closed_forms.equiangular_gap(a, b, A, mu)
    return refuted([*given, gap < distance], [*given, distance <= 0])


def _problem(n: int, *, equal: bool = True) -> tuple[dict[str, Any], Any, list[Any]]:
    """Hypotheses by name, a negated conclusion, and what any vectors fulfil.

    One unselected token is enough, as the others do not enter its power, and one
    selected token may stand for all, as S is in no order.
    """
    *r, b = z3.Reals(" ".join(f"r{i}" for i in range(n + 1)))
    mu, nu = z3.Reals("mu mu") if equal else z3.Reals("mu nu")
    phi = _powers([*r, b], mu, nu, n)
    hypotheses = {
        "ranking": z3.And([a >= b for a in r]),
        "alpha_N > 0": z3.And([a > 0 for a in r]),
        "equal cosines": mu == nu,
        "mu >= 0": z3.And(mu >= 0, nu >= 0),
        "mu < 1": z3.And(mu < 1, nu < 1),
    }
    return (
        hypotheses,
        phi[n] <= phi[0],
        [b >= 0, *(a >= 0 for a in r), mu <= 1, nu <= 1],
    )


@PROOF.step("no counterexample", "z3")
def no_counterexample() -> Outcome:
    """Contributions ranked, one cosine, some phi_j <= phi_i: no solution."""
    problems = []
    for n in (1, 2, 3, 4, 5):
        hypotheses, wrong, vectors = _problem(n)
        problems.append([*hypotheses.values(), wrong, *vectors])
    return refuted(*problems)


@PROOF.step("no counterexample for cosine distance", "z3")
def no_cosine_counterexample() -> Outcome:
    """No <u_i, s_N> of S is at most one of U, nor at most 0."""
    problems = []
    for n in (1, 2, 3, 4):
        r = z3.Reals(" ".join(f"r{i}" for i in range(n)))
        mu, total = z3.Real("mu"), z3.Sum(r)
        keys = [x + mu * (total - x) for x in r]
        positive = [*(x > 0 for x in r), mu < 1]
        problems += [
            [*positive, z3.Or([key <= mu * total for key in keys])],
            [*positive, mu >= 0, z3.Or([key <= 0 for key in keys])],
        ]
    return refuted(*problems)


@PROOF.step("each hypothesis is used", "z3")
def each_is_used() -> Outcome:
    """Without any one of them, vectors at N = 2, |U| = 1 break the conclusion."""
    hypotheses, wrong, vectors = _problem(2, equal=False)
    mu, nu = z3.Reals("mu nu")
    # The Gram matrix with two rows at mu and one at nu is positive semidefinite.
    real = [*vectors, mu >= -1, nu >= -1, (1 - mu) * (1 + mu - 2 * nu * nu) >= 0]
    found = [satisfiable([*hypotheses.values(), *real])]
    for dropped in hypotheses:
        kept = [h for name, h in hypotheses.items() if name != dropped]
        found.append(satisfiable([*kept, wrong, *real]))
    return Outcome(all(f.holds for f in found), len(found))


@dataclass(frozen=True)
class _Grid:
    """A head of the grid: contributions r, norms, cosine mu of S x C.

    The parts of the unselected values outside their common direction have inner
    products ``apart`` (times 1 - mu), so that U x U is not equiangular unless it is 0.
    """

    part: str
    r: tuple[int, ...]
    norms: tuple[int, ...]
    n: int
    mu: Fraction
    apart: Fraction

    def case(self) -> HeadCase:
        """Build the head; the first n tokens are selected."""
        size, beyond = len(self.r), self.mu + (1 - self.mu) * self.apart
        cosines = [
            [
                1 if i == k else beyond if min(i, k) >= self.n else self.mu
                for k in range(size)
            ]
            for i in range(size)
        ]
        gram = [
            [c * self.norms[i] * self.norms[k] for k, c in enumerate(row)]
            for i, row in enumerate(cosines)
        ]
        weights = [Fraction(a, c) for a, c in zip(self.r, self.norms, strict=True)]
        ranking: Any = {"T3": "weight", "T3-contribution": "contribution"}.get(
            self.part, [size - i for i in range(size)]
        )
        distance = "cosine" if self.part == "T3-cosine" else "euclidean"
        head = head_from_gram(weights, gram)
        return HeadCase(head, self.n, ranking=ranking, distance=distance)


def _grid() -> Iterator[_Grid]:
    """Yield sizes up to 4; ties, zeros, all three parts; U x U of three shapes."""
    cosines, shapes = (Fraction(0), Fraction(1, 3), Fraction(4, 5)), ("0", "1", "-1/2")
    for size in (2, 3, 4):
        ranked = list(itertools.combinations_with_replacement((3, 2, 1, 0), size))
        mixed = [r[::-1] for r in ranked]  # the lightest selected
        for n, mu, apart in itertools.product(range(1, size), cosines, shapes):
            for part in ("T3", "T3-contribution", "T3-cosine"):
                norms = (1,) * size if part == "T3" else (1, 3, 2, 1)[:size]
                for r in mixed if part == "T3-cosine" else ranked:
                    if min(r[:n]) > 0:
                        yield _Grid(part, r, norms, n, mu, Fraction(apart))


def _check(grid: _Grid) -> Fraction | None:
    """Least excess of a gap over the squared distance; None if anything is off."""
    case = grid.case()
    statement, n, norms = (
        THEOREMS[grid.part],
        grid.n,
        [isqrt(g) for g in case.exact.norms],
    )
    r = [w * c for w, c in zip(case.weights, norms, strict=True)]
    found = measure(case.head, n, ranking=case.ranking, distance=case.distance)
    if (
        not statement.applies(case)
        or statement.slack(case) != 0
        or found.f_score.lower != 1
    ):
        return None
    least = []
    for i, j in itertools.product(case.selected, case.unselected):
        if grid.part == "T3-cosine":
            keys = [Fraction(int(case.exact.dots[k]), norms[k]) for k in (i, j)]
            gap, form = (
                keys[0] - keys[1],
                closed_forms.equiangular_cosine_gap(r[i], grid.mu),
            )
            distance = Fraction(0)
        else:
            gap = Fraction(case.powers[j] - case.powers[i])
            form = closed_forms.equiangular_gap(r[i], r[j], sum(r[:n]), grid.mu)
            distance = (
                r[i] ** 2
                + r[j] ** 2
                - 2 * case.weights[i] * case.weights[j] * Fraction(case.gram[i][j])
            )
        if gap != form or gap <= 0:
            return None
        least.append(gap - distance)
    return min(least)


@PROOF.step("grid heads", "exact arithmetic")
def grid_heads() -> Outcome:
    """Every part on all heads of a grid: applies, F = 1, the gap is the closed form."""
    slacks: list[Fraction] = []
    for grid in _grid():
        slack = _check(grid)
        if slack is None:
            return Outcome(holds=False, cases=len(slacks) + 1, note=str(grid))
        slacks.append(slack)
    return worst(slacks)


prove = PROOF.run
