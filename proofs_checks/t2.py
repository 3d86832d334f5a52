"""T2: the number of inversions bounds P, R and F, each exactly.

Notation. Keys order the candidates as their distances do, S selected, U not, N = |S|,
M = |U|. The pair (i in S, j in U) is an inversion if x_j <= x_i; G is their number.
FP = #{j : x_j <= max_S x}, FN = #{i : x_i >= min_U x}.

Statement (T2a). P >= N/(N + min(G, M)) and R >= max(0, 1 - G/N), each attained for
every G from 0 to N M.

Statement (T2b). For G >= 1: FP + FN <= G + 1, FP FN >= G, 1 <= FP <= M, 1 <= FN <= N,
and every such (FP, FN) occurs. The least F for given N, M, G is F*: 1 for G = 0, 0 for
G >= N, else 2/(1 + max(h(b_lo), h(G))) with h(b) = (G + 1 - b)/N + N/(N - b), b_lo =
max(1, G + 1 - M). F* does not rise with G, so an upper bound on G serves as well, and
it is never below the F that the bounds of (a) give together.

Proof.

*inversions form a staircase.* Order S from the farthest and U from the nearest. If
(i, j) is an inversion, so are all pairs with i farther and j nearer. So the inversions
are the cells of a Ferrers diagram: row i has the cells j that i is inverted with, and
the rows are nested. The first row belongs to max_S x and has FP cells; the first column
belongs to min_U x and has FN.

*joint counts.* First row and first column share one cell and lie in the diagram:
FP + FN - 1 <= G. The diagram lies in their box: G <= FP FN. If G >= 1 both are at
least 1.

*separate counts.* FP <= min(G, M) and FN <= min(G, N), as a row or a column has at most
G cells. P = N/(N + FP) and R = 1 - FN/N fall in them: (a).

*the chord.* F = 2/(1 + FP/N + N/(N - FN)) for FN < N falls in both counts (T1), and is
0 for FN = N. If G >= N, a diagram with N rows exists, and F = 0. Let 1 <= G < N. For
each FN = b <= G the greatest FP allowed is min(M, G + 1 - b). Where b < b_lo that is M,
and F only falls until b = b_lo; from there on FP = G + 1 - b and F = 2/(1 + h(b)).
h'' = 2N/(N - b)^3 > 0, so h is convex and its greatest value on [b_lo, G] is at an end.

*one end decides.* Even more: h(c) - h(b) = (c - b)(N^2 - (N - b)(N - c))/(N (N - b)
(N - c)) >= 0 for 0 <= b <= c < N. So h(G) is the greater end, whatever M is: F* =
2/(1 + 1/N + N/(N - G)), one false positive and G false negatives. A false negative
costs more than a false positive. Under caps on both counts the greatest FN allowed
decides likewise. In G, 1/F* rises by N/(2 (N - G)(N - G - 1)) from G to G + 1 < N; F*
is below 1 at G = 1 and 0 from G = N on. So F* does not rise with G.

*all staircases.* Every Ferrers diagram in the N x M box with G cells is the inversion
pattern of some keys: x_j = 2j for the j-th of U, x_i = 2 rho_i + 1 for a row of length
rho_i. A pair (a, b) with a + b - 1 <= G <= a b is first row and first column of a
diagram: fill the box of the hook with G - (a + b - 1) further cells row by row. One row
of min(G, M) cells (and further rows below it) attains the bound on P, a column of
min(G, N) cells that on R.

*never below (a).* The F of (a) has FP = min(G, M) and FN = min(G, N) at once. Each
(FP, FN) of (b) lies below that in both counts, and F falls in both.

*on a line.* N >= 2, d >= 1, e a unit vector: distances D_i > 0 on S and D_j >= 0 on U
are given. Put s = -(sum_S D_i)/(N - 1) e, y_i = s + D_i e and y_j = s + D_j e. Then
sum_S y_i = N s + (sum_S D_i) e = N s - (N - 1) s = s: s is the aggregate, and the
distances to it are the given ones. With v = y/alpha, alpha strictly decreasing, S is
the set of the N largest weights. So every staircase is that of actual contributions.

*one token.* N = 1: D_1 = 0, and the one row holds the duplicates of y_1, as many as one
likes; with G >= 1, F = 0 = F*.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import sympy as sp
import z3

from geobounds import symbolic
from geobounds.bounds import InversionBounds, capped_f_bound, inversion_bounds
from geobounds.exact import oracle
from geobounds.head import HeadData
from geobounds.separability import f_score, measure, precision, recall
from geobounds.situation import HeadCase, Keys
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T2",
    scope="all N, M and G (symbolic); z3 for N, M <= 3; every Ferrers diagram for "
    "N, M <= 8; contributions for N, M <= 4",
)

_SIZES = tuple(itertools.product((1, 2, 3), repeat=2))


# Keys and their staircase.


def _inverted(n: int, m: int) -> list[list[Any]]:
    """Inversions of n selected and m unselected keys, for z3."""
    s, u = (
        [z3.Real(f"{name}{i}") for i in range(k)] for name, k in (("s", n), ("u", m))
    )
    return [[x_j <= x_i for x_j in u] for x_i in s]


def _total(conditions: Sequence[Any]) -> Any:
    return z3.Sum([z3.If(c, 1, 0) for c in conditions])


def _counts(rows: list[list[Any]]) -> tuple[Any, Any, Any]:
    """FP, FN and G."""
    return (
        _total([z3.Or(*column) for column in zip(*rows, strict=True)]),
        _total([z3.Or(*row) for row in rows]),
        _total([pair for row in rows for pair in row]),
    )


@PROOF.step("inversions form a staircase", "z3")
def staircase() -> Outcome:
    """Refute rows that are not nested, or FP and FN not the longest row and column."""
    problems = []
    for n, m in _SIZES:
        rows = _inverted(n, m)
        fp, fn, _ = _counts(rows)
        columns = list(zip(*rows, strict=True))
        crossed = [
            z3.And(a[j], z3.Not(a[k]), b[k], z3.Not(b[j]))
            for a, b in itertools.permutations(rows, 2)
            for j, k in itertools.combinations(range(m), 2)
        ]
        row_longest = z3.Or(*(_total(row) == fp for row in rows))
        column_longest = z3.Or(*(_total(column) == fn for column in columns))
        wrong = [*crossed, z3.Not(z3.And(row_longest, column_longest))]
        problems.append([z3.Or(*wrong)])
    return refuted(*problems)


@PROOF.step("joint counts", "z3")
def joint_counts() -> Outcome:
    """Refute keys with G >= 1 and FP + FN > G + 1 or FP FN < G, or a count of 0."""
    problems = []
    for n, m in _SIZES:
        fp, fn, g = _counts(_inverted(n, m))
        wrong = z3.Or(fp + fn > g + 1, fp * fn < g, fp < 1, fn < 1)
        problems += [[g >= 1, wrong], [g == 0, z3.Or(fp > 0, fn > 0)]]
    return refuted(*problems)


@PROOF.step("both joint bounds are attained", "z3")
def joint_attained() -> Outcome:
    """Show that the refutation is not empty: a hook, equal in the first bound only."""
    fp, fn, g = _counts(_inverted(3, 3))
    return satisfiable([fp + fn == g + 1, g == 4, fp == 3, fp * fn > g])


@PROOF.step("separate counts", "z3")
def separate_counts() -> Outcome:
    """Refute keys with more than min(G, M) false positives or min(G, N) negatives."""
    problems = []
    for n, m in _SIZES:
        fp, fn, g = _counts(_inverted(n, m))
        problems.append([z3.Or(fp > g, fp > m, fn > g, fn > n)])
    return refuted(*problems)


@PROOF.step("all orders of few keys", "enumeration")
def all_orders() -> Outcome:
    """Take (a) and (b) on every weak order of up to 5 keys, G exact or one too many."""
    slacks = []
    for size in range(2, 6):
        for key in itertools.product(range(size), repeat=size):
            # One representative of each weak order: levels without gaps.
            if set(key) != set(range(len(set(key)))):
                continue
            for n in range(1, size):
                slacks += _slacks(key, n)
    return worst(slacks)


def _slacks(key: tuple[int, ...], n: int) -> list[Fraction]:
    found = []
    inversions = Keys(key, n).counts.inversions_upper
    for given in {inversions, min(inversions + 1, n * (len(key) - n))}:
        case = Keys(key, n, {"inversions": given})
        for part in ("T2a", "T2b"):
            # A situation outside the hypotheses would count as a failure.
            applies = THEOREMS[part].applies(case)
            found.append(THEOREMS[part].slack(case) if applies else Fraction(-1))
    return found


# The least F.

_N, _G, _B, _C = sp.symbols("N G b c", positive=True)


def _h(b: Any) -> Any:
    return (_G + 1 - b) / _N + _N / (_N - b)


@PROOF.step("the chord", "symbolic")
def chord() -> Outcome:
    """Reduce F on FP + FN = G + 1 to h; h'' and the library's form follow."""
    fp = _G + 1 - _B
    P, R = _N / (_N + fp), 1 - _B / _N
    slope = _N / (_N - _B) ** 2 - 1 / _N
    checks = [
        2 * P * R / (P + R) - 2 / (1 + _h(_B)),
        sp.diff(_h(_B), _B) - slope,
        sp.diff(_h(_B), _B, 2) - 2 * _N / (_N - _B) ** 3,
    ]
    for n, m, g in itertools.product(range(2, 6), range(1, 6), range(1, 5)):
        if g < n and g <= n * m:
            ends = {_h(b).subs({_N: n, _G: g}) for b in (max(1, g + 1 - m), g)}
            checks.append(symbolic.joint_bound(n, m, g) - 2 / (1 + max(ends)))
    return zero(*checks)


@PROOF.step("one end decides", "symbolic")
def one_end() -> Outcome:
    """Factor h(c) - h(b), the rise of 1/F* and F* itself."""
    factored = _N**2 - (_N - _B) * (_N - _C)
    least = 2 / (1 + 1 / _N + _N / (_N - _G))
    rise = _N / (2 * (_N - _G) * (_N - _G - 1))
    below = least.subs(_G, 1)
    return zero(
        _h(_C) - _h(_B) - (_C - _B) * factored / (_N * (_N - _B) * (_N - _C)),
        2 / (1 + _h(_G)) - least,
        1 / least.subs(_G, _G + 1) - 1 / least - rise,
        1 / below - 1 - (2 * _N - 1) / (2 * _N * (_N - 1)),
    )


@PROOF.step("h rises and is convex", "z3")
def h_rises() -> Outcome:
    """Refute reals 0 <= b <= c < N, G with h(c) < h(b), or a chord below h."""
    N, G, b, c = z3.Reals("N G b c")

    def h_times(x: Any, others: Any) -> Any:
        """Multiply h(x) by N (N - x) and by the other denominators."""
        return ((G + 1 - x) * (N - x) + N * N) * others

    ordered = [b >= 0, b <= c, c < N, N >= 1, G >= 1]
    middle = (b + c) / 2
    # 2 h(middle) > h(b) + h(c), times the three denominators.
    bowed = 2 * h_times(middle, (N - b) * (N - c)) > (
        h_times(b, (N - middle) * (N - c)) + h_times(c, (N - middle) * (N - b))
    )
    return refuted(
        [*ordered, h_times(c, N - b) < h_times(b, N - c)],
        [*ordered, bowed],
    )


@PROOF.step("at a negative b h may fall", "z3")
def h_control() -> Outcome:
    """Show that the refutation is not empty: for b < 0 a greater b may lower h."""
    N, b, c = z3.Reals("N b c")
    falls = (c - b) * (N * N - (N - b) * (N - c)) < 0
    return satisfiable([b < c, c < N, N >= 1, falls])


@PROOF.step("never below (a)", "z3")
def never_below() -> Outcome:
    """Refute counts a <= a', b <= b' < N with F(a, b) < F(a', b')."""
    N, a, b, more_a, more_b = z3.Reals("N a b more_a more_b")
    # 1/F times 2 N (N - b) (N - more_b).
    fewer = ((N + a) * (N - b) + N * N) * (N - more_b)
    more = ((N + more_a) * (N - more_b) + N * N) * (N - b)
    sizes = [N >= 1, a >= 0, a <= more_a, b >= 0, b <= more_b, more_b < N]
    return refuted([*sizes, fewer > more])


@PROOF.step("the bounds in numbers", "enumeration")
def bounds_in_numbers() -> Outcome:
    """Check for N, M <= 12 and all G: (b) against (a), its form and its fall in G."""
    slacks = []
    for n, m in itertools.product(range(1, 13), repeat=2):
        before = None
        for g in range(n * m + 1):
            found = inversion_bounds(n, m, g)
            p, r = found.precision, found.recall
            harmonic = 2 * p * r / (p + r)
            closed = f_score(n, 1, g) if 0 < g < n else Fraction(int(g == 0))
            slacks += [
                found.f_joint - found.f_separate,
                -abs(found.f_separate - harmonic),
                -abs(found.f_joint - closed),
                -abs(found.f_joint - capped_f_bound(n, m, min(n, m * n), g)),
                *(_fall(before, found) if before else ()),
            ]
            before = found
    return worst(slacks)


def _fall(before: InversionBounds, after: InversionBounds) -> list[Fraction]:
    """By how much each bound falls as G grows."""
    names = ("precision", "recall", "f_separate", "f_joint")
    return [getattr(before, name) - getattr(after, name) for name in names]


@PROOF.step("greatest FN under caps", "enumeration")
def greatest_negative() -> Outcome:
    """Check that under caps the greatest FN allowed has the least F."""
    slacks = []
    for n in range(1, 9):
        for fp, fn, g in itertools.product(range(1, 9), range(1, n + 1), range(1, 17)):
            b = min(fn, g)
            closed = f_score(n, min(fp, g + 1 - b), b)
            slacks.append(-abs(capped_f_bound(n, fp, fn, g) - closed))
    return worst(slacks)


# Exactness.


def _diagrams(n: int, m: int) -> Iterator[tuple[int, ...]]:
    """Ferrers diagrams in the n x m box, as rows that do not grow."""
    return itertools.combinations_with_replacement(range(m, -1, -1), n)


@PROOF.step("all staircases", "enumeration")
def all_staircases() -> Outcome:
    """Find each bound as the minimum over the diagrams with G, or at most G, cells."""
    cases = 0
    for n, m in itertools.product(range(1, 9), repeat=2):
        shapes: dict[int, set[tuple[int, int]]] = {g: set() for g in range(n * m + 1)}
        for rows in _diagrams(n, m):
            cases += 1
            shapes[sum(rows)].add((rows[0], sum(row > 0 for row in rows)))
        least = Fraction(1)
        for g, pairs in shapes.items():
            found = inversion_bounds(n, m, g)
            exact = min(f_score(n, a, b) for a, b in pairs)
            least = min(least, exact)
            agree = (
                pairs == _allowed(n, m, g)
                and found.f_joint == exact == least
                and found.precision == min(precision(n, a) for a, _ in pairs)
                and found.recall == min(recall(n, b) for _, b in pairs)
            )
            if not agree:
                return Outcome(holds=False, cases=cases, note=f"{n} {m} {g}")
    return Outcome(holds=True, cases=cases)


def _allowed(n: int, m: int, g: int) -> set[tuple[int, int]]:
    """Pairs (FP, FN) that the joint counts leave."""
    if g == 0:
        return {(0, 0)}
    box = itertools.product(range(1, m + 1), range(1, n + 1))
    return {(a, b) for a, b in box if a + b - 1 <= g <= a * b}


def _distances(rows: Sequence[int], m: int, *, tied: bool) -> list[int]:
    """Distances whose inversions are these rows, all positive; some equal if tied."""
    inside = [max(2 * row, 1) if tied else 2 * row + 1 for row in rows]
    return inside + [2 * j for j in range(1, m + 1)]


@PROOF.step("keys of a staircase", "enumeration")
def keys_of_staircase() -> Outcome:
    """Compare the counts of keys with rows and columns of their diagram, N, M <= 5."""
    cases = 0
    for n, m in itertools.product(range(1, 6), repeat=2):
        for rows, tied in itertools.product(_diagrams(n, m), (False, True)):
            cases += 1
            counts = Keys(_distances(rows, m, tied=tied), n).counts
            found = counts.fp_upper, counts.fn_upper, counts.inversions_upper
            if found != _shape(rows):
                return Outcome(holds=False, cases=cases, note=f"{rows} {found}")
    return Outcome(holds=True, cases=cases)


def _shape(rows: Sequence[int]) -> tuple[int, int, int]:
    """FP, FN and G of a diagram."""
    return rows[0], sum(row > 0 for row in rows), sum(rows)


@PROOF.step("on a line", "symbolic")
def on_a_line() -> Outcome:
    """Derive the aggregate s and the distances to it, N = 2 to 6."""
    checks = []
    for n in range(2, 7):
        D = sp.symbols(f"D_1:{n + 2}", positive=True)
        s = -sum(D[:n]) / (n - 1)
        y = [s + d for d in D]
        total = sum(y[:n])
        checks.append(total - s)
        checks += [(y_i - total) ** 2 - d**2 for y_i, d in zip(y, D, strict=True)]
    return zero(*checks)


@PROOF.step("heads on a line", "exact arithmetic")
def heads_on_a_line() -> Outcome:
    """Measure a head for every staircase, 2 <= N <= 4, M <= 4, ties or none."""
    cases, attained = 0, set()
    for n, m in itertools.product((2, 3, 4), (1, 2, 3, 4)):
        for rows, tied in itertools.product(_diagrams(n, m), (False, True)):
            cases += 1
            D = [(n - 1) * x for x in _distances(rows, m, tied=tied)]
            s = -sum(D[:n]) // (n - 1)
            head = _head_of([s + d for d in D])
            if not _has(head, n, D, _shape(rows)):
                return Outcome(holds=False, cases=cases, note=f"{rows} {tied}")
            bound = inversion_bounds(n, m, sum(rows)).f_joint
            if measure(head, n).f_score.lower == bound:
                attained.add((n, m, sum(rows)))
    every = {
        (n, m, g) for n in (2, 3, 4) for m in (1, 2, 3, 4) for g in range(n * m + 1)
    }
    return Outcome(
        attained == every, cases, note=f"F* attained for {len(every)} N, M, G"
    )


def _head_of(points: Sequence[int]) -> HeadData:
    """Give contributions on a line strictly decreasing weights."""
    weights = [2.0**-i for i in range(len(points))]
    # The weight is a power of two: the value is an integer, exact in float64.
    values = [[float(y * 2**i)] for i, y in enumerate(points)]
    return HeadData(weights, values, visible="all", sink=None)


def _has(
    head: HeadData, n: int, distances: Sequence[int], shape: tuple[int, int, int]
) -> bool:
    """Whether weights select the first n, at these distances, with this shape."""
    case = HeadCase(head, n)
    counts = measure(head, n).counts
    row, values = head.weights[0].tolist(), head.values64.tolist()
    found = oracle(row, values, [True] * len(row), None, n)
    return (
        case.selection.keys.tolist() == list(range(len(distances)))
        and not case.selection.boundary_tie
        and case.exact.squared_distances() == [d * d for d in distances]
        and counts.exact
        and (counts.fp_upper, counts.fn_upper, counts.inversions_upper) == shape
        and (found.false_positives, found.false_negatives, found.inversions) == shape
        and found.f_score >= inversion_bounds(n, len(row) - n, shape[2]).f_joint
    )


@PROOF.step("one token", "exact arithmetic")
def one_token() -> Outcome:
    """Measure heads with N = 1 and G duplicates of y_1 among M <= 8: F = F*."""
    cases = 0
    for m in range(1, 9):
        for duplicates in range(m + 1):
            cases += 1
            distances = [0] * (1 + duplicates) + list(range(1, m - duplicates + 1))
            head = _head_of([3 + d for d in distances])
            shape = (duplicates, int(duplicates > 0), duplicates)
            bound = inversion_bounds(1, m, duplicates).f_joint
            attained = measure(head, 1).f_score.lower == bound
            if not (attained and _has(head, 1, distances, shape)):
                return Outcome(holds=False, cases=cases, note=f"{m} {duplicates}")
    return Outcome(holds=True, cases=cases)


prove = PROOF.run
