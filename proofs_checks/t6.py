"""T6: cells of tokens, each described by extremes of ||v||^2 and <v, s_N>.

Statement (T6). Cut the candidates into cells, each inside S or inside U. Let q- <=
||v||^2 <= q+ and t- <= <v, s_N> <= t+ for the tokens of a cell. Then every power of the
cell lies in [alpha^2 q- - 2 alpha t+, alpha^2 q+ - 2 alpha t-], and T1 turns the upper
ends in S and the lower ends in U into upper bounds on FP and FN, the other ends into
lower bounds. Refining never weakens; one cell a token gives the measured value.

Proof. *interval.* phi = alpha^2 q - 2 alpha t with q = ||v||^2, t = <v, s_N>. Then
hi - phi = alpha^2 (q+ - q) + 2 alpha (t - t-) and phi - lo = alpha^2 (q - q-) +
2 alpha (t+ - t), sums of products of numbers that are not negative, since alpha >= 0.
With alpha < 0 the second product changes sign: weights must not be negative. Both ends
are attained, by a token at the cell's corner (q+, t-) or (q-, t+). That the cells are
contiguous in rank, or that the sink is alone, plays no part: any cells inside S or
inside U will do, these are merely described by their ends.

*refining.* Extremes over a part of a cell lie between those over the cell, so by the
same two identities, now for two numbers of q and of t each, hi falls and lo rises for
every token. max_S hi then falls and min_U lo rises, so {j in U : lo_j <= max_S hi} and
{i in S : hi_i >= min_U lo} shrink, while the sets behind FP- and FN- grow. *F is
monotone*: F = 2 / h, h = 1 + FP/N + N/(N - FN), rises by 1/N with FP and by
N / ((N - FN)(N - FN - 1)) with FN, and F = 0 at FN = N. So certified F never falls.

*one cell a token.* Then q- = q+ = q, t- = t+ = t, lo = hi = phi: the counts of T1 are
the true counts.

*best cells of a given number.* Fix a partition of S, with bounds hi in descending order
hi_1 >= ... >= hi_N, and H = hi_1. For a partition of U, FP = #{lo_j <= H} is a sum over
its cells. *the sides decouple*: FN <= k iff min_U lo > hi_{k+1} (no condition for
k = N), a condition on each cell of U alone. So for each k the least FP among the
partitions of U into at most K' cells that obey it is a shortest path over positions:
best(b, c) = min over a <= b of best(a, c - 1) + cost(a, b), with cost infinite for a
cell that breaks the condition. F falls with FP and FN, so the best F is the greatest
over k of F(least FP_k, k), at each k where the path exists: the partition behind the
best F is met at k = its FN, and what is found at k has FN at most k. The best of all
follows by trying the partitions of S.

*fewest cells for F = 1.* F = 1 is certified iff some H separates: hi <= H on all of S,
lo > H on all of U. A part of a cell on its side of H is on its side of H, by refining.
*greedy extension*: let cells be allowed such that every part of an allowed one is
allowed. Take the longest allowed cell from the start, and so on. By induction the k-th
greedy cell ends no earlier than the k-th cell of any allowed partition: if it starts no
later than that ends, the rest of that cell is allowed. So greedy needs the fewest
cells. H may be taken as max_S hi of the partition, one of finitely many cell bounds;
as H rises the selected side needs no more cells and the unselected side no fewer.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.cells import Arrangement
from geobounds.exact import oracle
from geobounds.head import HeadData
from geobounds.optimal import MOST_SELECTED, fewest_cuts, optimal_cuts
from geobounds.power import Enclosure
from geobounds.regime import CellRegime, rounded_cell_counts
from geobounds.separability import f_score, interval_counts
from geobounds.situation import HeadCase, column_of
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T6", scope="all heads (symbolic, z3); all cuts of 210 heads of up to 8 candidates"
)

POLICIES = ("keep", "drop", "compete")


@PROOF.step("interval", "symbolic")
def interval() -> Outcome:
    """Both ends by the two identities, attained at the corners of a cell."""
    w, q, q0, q1 = sp.symbols("w q q0 q1", nonnegative=True)
    t, t0, t1 = sp.symbols("t t0 t1", real=True)
    lo, hi = closed_forms.cell_interval(w, q0, q1, t0, t1)
    phi = w**2 * q - 2 * w * t
    form = symbolic.cell_interval(w, q0, q1, t0, t1)
    return zero(
        hi - phi - (w**2 * (q1 - q) + 2 * w * (t - t0)),
        phi - lo - (w**2 * (q - q0) + 2 * w * (t1 - t)),
        form[0] - lo,
        form[1] - hi,
        hi - phi.subs({q: q1, t: t0}),
        lo - phi.subs({q: q0, t: t1}),
    )


@PROOF.step("interval", "z3")
def no_power_outside() -> Outcome:
    """No token of a cell has its power outside, nor has a part of it wider ends."""
    w, q, t, phi, inside = _token_in_cell()
    lo, hi = closed_forms.cell_interval(w, *inside[:4])
    part = z3.Reals("p0 p1 s0 s1")
    shrunk = [
        part[0] >= inside[0],
        part[1] <= inside[1],
        part[2] >= inside[2],
        part[3] <= inside[3],
        part[0] <= q,
        q <= part[1],
        part[2] <= t,
        t <= part[3],
    ]
    low, high = closed_forms.cell_interval(w, *part)
    return refuted(
        [w >= 0, *inside[4:], phi > hi],
        [w >= 0, *inside[4:], phi < lo],
        [w >= 0, *shrunk, z3.Or(high > hi, low < lo)],
    )


def _token_in_cell() -> tuple[Any, Any, Any, Any, list[Any]]:
    """Return a token, its power, the numbers of its cell and what they obey."""
    w, q, t = z3.Reals("w q t")
    q0, q1, t0, t1 = z3.Reals("q0 q1 t0 t1")
    facts = [q0 <= q, q <= q1, t0 <= t, t <= t1, q0 >= 0]
    return w, q, t, w * w * q - 2 * w * t, [q0, q1, t0, t1, *facts]


@PROOF.step("a negative weight leaves the interval", "z3")
def negative_weight() -> Outcome:
    """Show that alpha >= 0 is used."""
    w, _, _, phi, inside = _token_in_cell()
    _, hi = closed_forms.cell_interval(w, *inside[:4])
    return satisfiable([w < 0, *inside[4:], phi > hi])


@PROOF.step("refining a cell of three", "z3")
def refining() -> Outcome:
    """Cut after the first or the second token, no bound of either side weakens."""
    w, q, t = (z3.Reals(f"{x}0 {x}1 {x}2") for x in "wqt")
    q_max, t_min = z3.Reals("Q T")
    whole = [*_extreme(q_max, q, 1), *_extreme(t_min, t, -1)]
    problems = []
    for part in ((0,), (0, 1), (1, 2), (2,)):
        p, s = z3.Reals("P S")
        extremes = _extreme(p, [q[k] for k in part], 1)
        extremes += _extreme(s, [t[k] for k in part], -1)
        for k in part:
            before = w[k] * w[k] * q_max - 2 * w[k] * t_min
            after = w[k] * w[k] * p - 2 * w[k] * s
            problems.append([w[k] >= 0, *whole, *extremes, after > before])
    return refuted(*problems)


def _extreme(x: Any, of: Sequence[Any], sign: int) -> list[Any]:
    """Say that x is the greatest (sign 1) or the least (sign -1) of some numbers."""
    return [*(sign * x >= sign * y for y in of), z3.Or(*(x == y for y in of))]


@PROOF.step("F is monotone", "symbolic")
def monotone_form() -> Outcome:
    """Show that h = 2 / F rises with FP and with FN."""
    n, fp, fn = sp.symbols("N FP FN", positive=True)
    h = 1 + fp / n + n / (n - fn)
    kept = n - fn
    return zero(
        h.subs(fp, fp + 1) - h - 1 / n,
        h.subs(fn, fn + 1) - h - n / (kept * (kept - 1)),
        2 / h - 2 * n * kept / (n * kept + fp * kept + n**2),
    )


@PROOF.step("F is monotone", "enumeration")
def monotone_values() -> Outcome:
    """Let F fall with FP and FN and be 2PR / (P + R), for N <= 8."""
    slacks = []
    for n, fp, fn in itertools.product(range(1, 9), range(9), range(9)):
        if fn > n:
            continue
        f, p, r = f_score(n, fp, fn), Fraction(n, n + fp), 1 - Fraction(fn, n)
        if f != (2 * p * r / (p + r)):
            return Outcome(holds=False, note=f"F at {n, fp, fn}")
        slacks.append(f - f_score(n, fp + 1, fn))
        if fn < n:
            slacks.append(f - f_score(n, fp, fn + 1))
    return worst(slacks)


# Small heads, and everything about their cells once more in integers.


@dataclass(frozen=True)
class Columns:
    """Integers w, q, t in cell order, and the edges that every partition keeps."""

    n: int
    w: tuple[int, ...]
    q: tuple[int, ...]
    t: tuple[int, ...]
    edges: tuple[int, ...]

    @property
    def powers(self) -> list[int]:
        """Phi of every token, in cell order."""
        return [
            w * w * q - 2 * w * t
            for w, q, t in zip(self.w, self.q, self.t, strict=True)
        ]

    def intervals(self, cuts: Sequence[int]) -> tuple[list[int], list[int]]:
        """Both ends of every token from the four numbers of its cell."""
        lo, hi = [], []
        for a, b in itertools.pairwise(sorted({*self.edges, *cuts})):
            q, t = self.q[a:b], self.t[a:b]
            for w in self.w[a:b]:
                low, high = closed_forms.cell_interval(
                    w, min(q), max(q), min(t), max(t)
                )
                lo.append(low)
                hi.append(high)
        return lo, hi

    def certified(self, cuts: Sequence[int]) -> tuple[int, int]:
        """FP and FN at most, by T1."""
        lo, hi = self.intervals(cuts)
        top, bottom = max(hi[: self.n]), min(lo[self.n :])
        fp = sum(x <= top for x in lo[self.n :])
        return fp, sum(x >= bottom for x in hi[: self.n])

    def free(self) -> list[int]:
        """Return the positions where a partition may be cut."""
        return [c for c in range(1, len(self.w)) if c not in self.edges]

    def partitions(self) -> Iterator[tuple[int, ...]]:
        """Yield all cuts, the fewest first."""
        free = self.free()
        for count in range(len(free) + 1):
            yield from itertools.combinations(free, count)


@dataclass(frozen=True)
class Small(Columns):
    """The columns of a head; ``order`` are the places in its selection.

    The sink, where it is a candidate, comes first of S or last of U and is a cell of
    its own.
    """

    case: HeadCase
    order: tuple[int, ...]

    def fit(self, cuts: Sequence[int]) -> CellRegime:
        """Fit the library's regime with these cuts."""
        case = self.case
        return CellRegime.fit(
            case.head, case.n, split=cuts, sink_policy=case.sink_policy
        )


def _small(case: HeadCase) -> Small:
    keys = case.selection.keys.tolist()
    selected, n, size, sink = keys[: case.n], case.n, len(keys), case.head.sink
    edges = {0, n, size}
    if sink in selected:
        keys.remove(sink)
        keys.insert(0, sink)
        edges.add(1)
    elif sink in keys:
        keys.remove(sink)
        keys.append(sink)
        edges.add(size - 1)
    w = [int(x) for x in case.head.weights[-1]]
    v = [[int(x) for x in row] for row in case.head.values64]
    total = [sum(w[i] * v[i][k] for i in selected) for k in range(len(v[0]))]
    products = [sum(x * s for x, s in zip(row, total, strict=True)) for row in v]
    places = case.selection.keys.tolist()
    return Small(
        n,
        tuple(w[i] for i in keys),
        tuple(sum(x * x for x in v[i]) for i in keys),
        tuple(products[i] for i in keys),
        tuple(sorted(edges)),
        case,
        tuple(places.index(i) for i in keys),
    )


def _integer_head(rng: np.random.Generator, kind: int, size: int) -> HeadData:
    """Draw weights and values: plain, few distinct ones, on a line, a heavy sink."""
    d = 1 if kind == 2 else int(rng.integers(1, 4))
    weights = rng.integers(0, 7, size)
    values = rng.integers(-2, 4, (size, d))
    if kind == 1:
        values = values[rng.integers(0, 2, size)]
    if kind == 3:
        weights[0] += 12
        values[0] = -1
    weights[-1] += 1
    sink = None if kind == 2 else 0
    return HeadData(weights.astype(float), values.astype(float), sink=sink)


@cache
def _small_heads() -> tuple[Small, ...]:
    """150 selections of 3 to 7 candidates, all sink policies."""
    rng = np.random.default_rng(6)
    found: list[Small] = []
    while len(found) < 150:
        kind, policy = len(found) % 4, POLICIES[len(found) % 3]
        size = int(rng.integers(4, 8))
        head = _integer_head(rng, kind, size)
        candidates = size - (policy == "drop" and head.sink is not None)
        most = size - (policy != "keep" and head.sink is not None)
        n = int(rng.integers(1, min(candidates - 1, most) + 1))
        found.append(_small(HeadCase(head, n, sink_policy=policy)))
    return tuple(found)


@PROOF.step("every partition and every refinement", "enumeration")
def refinements() -> Outcome:
    """All cuts, each against all with one cut more; the library's regime on each."""
    slacks: list[int | Fraction] = []
    for small in _small_heads():
        true = interval_counts(_whole(small.powers, small.powers, small.n))
        for cuts in small.partitions():
            lo, hi = small.intervals(cuts)
            counts = interval_counts(_whole(lo, hi, small.n))
            if not _regime_agrees(small, cuts, lo, hi):
                return Outcome(holds=False, note=f"the regime differs at {cuts}")
            slacks += [x - low for low, x in zip(lo, small.powers, strict=True)]
            slacks += [high - x for x, high in zip(small.powers, hi, strict=True)]
            slacks += [true.f_score.lower - counts.f_score.lower]
            slacks += [counts.f_score.upper - true.f_score.lower]
            for cut in set(small.free()) - set(cuts):
                low, high = small.intervals([*cuts, cut])
                slacks += [b - a for a, b in zip(lo, low, strict=True)]
                slacks += [a - b for a, b in zip(hi, high, strict=True)]
                finer = interval_counts(_whole(low, high, small.n))
                slacks += [
                    counts.fp_upper - finer.fp_upper,
                    counts.fn_upper - finer.fn_upper,
                    finer.fp_lower - counts.fp_lower,
                    finer.fn_lower - counts.fn_lower,
                    finer.f_score.lower - counts.f_score.lower,
                ]
    return worst([Fraction(x) for x in slacks])


def _whole(lo: Sequence[Any], hi: Sequence[Any], n: int) -> Enclosure:
    return Enclosure(column_of(lo), column_of(hi), n)


def _regime_agrees(
    small: Small, cuts: Sequence[int], lo: Sequence[int], hi: Sequence[int]
) -> bool:
    """Fit, check and enclose by the library; compare with the closed form."""
    case, regime = small.case, small.fit(cuts)
    regime.check(case.head, sink_policy=case.sink_policy)
    found = regime.enclosure(case.head, case.selection)
    return all(
        found.hi[place] == hi[i] if i < small.n else found.lo[place] == lo[i]
        for i, place in enumerate(small.order)
    )


@PROOF.step("one cell a token", "exact arithmetic")
def one_cell_a_token() -> Outcome:
    """Compare with the counts by definition; floats of all sizes and types."""
    rng = np.random.default_rng(66)
    cases, clear = 0, 0
    for k in range(180):
        head = _float_head(rng, k)
        policy = POLICIES[k % 3]
        n = int(rng.integers(1, head.n_key - 1))
        regime = CellRegime.fit(
            head, n, split=range(1, _candidates(head, policy)), sink_policy=policy
        )
        case = HeadCase(head, n, sink_policy=policy)
        found = interval_counts(regime.enclosure(head, case.selection))
        row = head.weights[-1].tolist()
        true = oracle(
            row,
            head.values64.tolist(),
            [True] * head.n_key,
            head.sink,
            n,
            sink_policy=policy,
        )
        measured = true.false_positives, true.false_negatives, true.f_score
        if (found.fp_upper, found.fn_upper, found.f_score.lower) != measured:
            return Outcome(holds=False, note=f"head {k}")
        cases += 1
        clear += 0 < true.f_score < 1
    return Outcome(holds=clear > 0, cases=cases, note=f"0 < F < 1 in {clear}")


def _candidates(head: HeadData, policy: str) -> int:
    return head.n_key - (policy == "drop" and head.sink is not None)


def _float_head(rng: np.random.Generator, k: int) -> HeadData:
    """Gaussian values and softmax weights, in four types and at three scales."""
    size, d = int(rng.integers(4, 9)), int(rng.integers(1, 5))
    logits = rng.normal(0, 2, size)
    weights = np.exp(logits - logits.max())
    values = rng.normal(0.5, 1, (size, d))
    values[0] /= 3
    if k % 4 == 0:
        return HeadData(weights.astype(np.float16), values.astype(np.float16))
    if k % 4 == 1:
        return HeadData(weights.astype(np.float32), values.astype(np.float32))
    if k % 4 == 2:
        near = values[rng.integers(0, 2, size)]
        near = near * (1 + rng.integers(-2, 3, near.shape) * 2.0**-52)
        return HeadData(weights / weights.sum(), near, sink=None)
    scale = float(rng.choice([1e-300, 1e300, 2.0**-1060]))
    return HeadData(weights, values * scale)


@PROOF.step("the sides decouple", "enumeration")
def decoupling() -> Outcome:
    """FN <= k iff min_U lo > hi_{k+1}: all hi of N <= 4 and thresholds up to order."""
    cases = 0
    for n in (1, 2, 3, 4):
        for hi in itertools.product(range(n), repeat=n):
            down = sorted(hi, reverse=True)
            for double in range(-1, 2 * n + 1):
                least = Fraction(double, 2)
                fn = sum(x >= least for x in hi)
                for k in range(n + 1):
                    if (fn <= k) != (k == n or least > down[k]):
                        return Outcome(holds=False, note=f"{hi, least}")
                    cases += 1
    return Outcome(holds=True, cases=cases)


@PROOF.step("optimal cells", "enumeration")
def optimal_cells() -> Outcome:
    """Compare the dynamic program with all cuts, at every number of cells."""
    better, below, slacks = 0, 0, []
    for small in _small_heads():
        case = small.case
        measured = f_score(small.n, *small.certified(range(1, len(small.w))))
        for count, f in enumerate(_best(small)):
            found, fast = (
                CellRegime.fit(
                    case.head,
                    case.n,
                    split=split,
                    resolution=len(small.edges) - 1 + count,
                    sink_policy=case.sink_policy,
                )
                for split in ("optimal", "fast")
            )
            if len(found.cells) > len(small.edges) - 1 + count:
                return Outcome(holds=False, note="too many cells")
            if _regime_f(found, case) != f:
                return Outcome(holds=False, note=f"{f} is best at {count} cuts")
            slacks.append(f - _regime_f(fast, case))
            better += slacks[-1] > 0
            below += f < measured
    note = f"greedy cells certify less in {better}, the best less than F in {below}"
    outcome = worst(slacks, note)
    return Outcome(outcome.holds and better > 0, outcome.cases, outcome.slack, note)


def _best(columns: Columns) -> list[Fraction]:
    """Return the greatest certified F with at most 0, 1, 2, ... cuts, over all cuts."""
    best: list[Fraction] = []
    for cuts in columns.partitions():
        f, size = f_score(columns.n, *columns.certified(cuts)), len(cuts)
        if size == len(best):
            best.append(max([f, *best[-1:]]))
        best[size] = max(best[size], f)
    return best


def _regime_f(regime: CellRegime, case: HeadCase) -> Fraction:
    bound = regime.enclosure(case.head, case.selection)
    return interval_counts(bound).f_score.lower


@PROOF.step("optimal cells of the most selected tokens", "enumeration")
def optimal_cells_at_the_limit() -> Outcome:
    """Eight selected tokens of ten, all cuts at the coarser numbers of cells."""
    rng = np.random.default_rng(68)
    slacks = []
    for _ in range(3):
        weights = np.sort(rng.integers(1, 40, 11))[::-1].astype(float)
        values = rng.integers(-2, 5, (11, 2)).astype(float)
        small = _small(HeadCase(HeadData(weights, values), MOST_SELECTED))
        best = Fraction(0)
        for extra in range(4):
            for cuts in itertools.combinations(small.free(), extra):
                best = max(best, f_score(small.n, *small.certified(cuts)))
            found = CellRegime.fit(
                small.case.head,
                small.n,
                split="optimal",
                resolution=len(small.edges) - 1 + extra,
            )
            if _regime_f(found, small.case) != best:
                return Outcome(holds=False, note=f"{best} is best at {extra} cuts")
            slacks.append(small.case.counts.f_score.lower - best)
    return worst(slacks)


@PROOF.step("searches on any numbers", "enumeration")
def searches_on_any_numbers() -> Outcome:
    """Search columns that need not come from a head, with a sink in S, U or neither."""
    rng = np.random.default_rng(61)
    cases, certified, spread = 0, 0, 0
    for k in range(240):
        columns = _any_columns(rng, k % 3)
        w, t, q = (np.array(c, dtype=float) for c in (columns.w, columns.t, columns.q))
        size = len(columns.w)
        arrangement = Arrangement(np.arange(size), columns.edges, columns.n)
        best = _best(columns)
        for count, f in enumerate(best[:4]):
            cuts = optimal_cuts(w, t, q, arrangement, len(columns.edges) - 1 + count)
            if len(cuts) > count or f_score(columns.n, *columns.certified(cuts)) != f:
                return Outcome(holds=False, note=f"{f} is best: {columns}")
            cases += 1
        fewest = fewest_cuts(w, t, q, arrangement)
        least = next((count for count, f in enumerate(best) if f == 1), None)
        if (None if fewest is None else len(fewest)) != least:
            return Outcome(holds=False, note=f"{least} cuts are fewest: {columns}")
        cases += 1
        certified += least is not None
        spread += len(set(best)) > 2
    note = f"F = 1 in {certified}, three or more values of F in {spread}"
    return Outcome(min(certified, spread) > 0, cases, None, note)


def _any_columns(rng: np.random.Generator, sink: int) -> Columns:
    """Draw weights in order and any q and t, those of S the more favourable."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(3, 6))
    size = n + m
    w = np.sort(rng.integers(1, 9, size))[::-1]
    q, t = rng.integers(0, 20, size), rng.integers(-10, 20, size)
    t[:n] += 20
    edges = {0, n, size}
    if sink:
        place = 0 if sink == 1 else size - 1
        w[place] = rng.integers(1, 12)
        edges.add(1 if sink == 1 else size - 1)
    ints = [tuple(int(x) for x in c) for c in (w, q, t)]
    return Columns(n, ints[0], ints[1], ints[2], tuple(sorted(edges)))


@PROOF.step("greedy extension", "enumeration")
def greedy_extension() -> Outcome:
    """Fewest cells for every hereditary family of intervals of at most 7 tokens.

    Such a family is a reach: the cells allowed from a end at reach(a) at most, and
    reach does not fall.
    """
    cases = 0
    for m in range(1, 8):
        for reach in itertools.product(*(range(a + 1, m + 1) for a in range(m))):
            if any(a > b for a, b in itertools.pairwise(reach)):
                continue
            least = [0] + [m + 1] * m
            for b in range(1, m + 1):
                least[b] = 1 + min(least[a] for a in range(b) if reach[a] >= b)
            end, count = 0, 0
            while end < m:
                end, count = reach[end], count + 1
            if count != least[m]:
                return Outcome(holds=False, note=f"reach {reach}")
            cases += 1
    return Outcome(holds=True, cases=cases)


@PROOF.step("fewest cells", "enumeration")
def fewest_cells() -> Outcome:
    """Compare the search with all cuts; None iff the measured F is below 1."""
    none, counts = 0, []
    for small in [*_small_heads(), *_separable_heads()]:
        case = small.case
        sizes = [
            len(small.edges) - 1 + len(cuts)
            for cuts in small.partitions()
            if small.certified(cuts) == (0, 0)
        ]
        found = CellRegime.fewest(case.head, case.n, sink_policy=case.sink_policy)
        if (found is None) != (not sizes):
            return Outcome(holds=False, note="found none, or one that is none")
        if found is None:
            none += 1
            continue
        if len(found.cells) != min(sizes) or _regime_f(found, case) != 1:
            return Outcome(
                holds=False, note=f"{len(found.cells)} cells, not {min(sizes)}"
            )
        counts.append(min(sizes) - len(small.edges) + 1)
    note = f"cuts needed: up to {max(counts)}, some in {sum(c > 0 for c in counts)}; "
    note += f"F < 1 in {none}"
    return Outcome(none > 0 and max(counts) > 1, none + len(counts), None, note)


def _separable_heads() -> Iterator[Small]:
    """Draw heads with F = 1 and spread norms, so that two cells seldom do."""
    rng = np.random.default_rng(67)
    made = 0
    while made < 60:
        size = int(rng.integers(5, 9))
        weights = np.sort(rng.integers(1, 30, size))[::-1].astype(float)
        values = rng.integers(1, 9, (size, 2)).astype(float)
        sink = [None, 0, size - 1][made % 3]
        n = int(rng.integers(1, size - 1))
        case = HeadCase(HeadData(weights, values, sink=sink), n)
        if case.counts.f_score.lower == 1:
            made += 1
            yield _small(case)


@PROOF.step("cells in rounded floats", "exact arithmetic")
def rounded_cells() -> Outcome:
    """Let no count from floats be below that of the same cells in fractions."""
    rng = np.random.default_rng(69)
    slacks: list[Fraction] = []
    for k in range(150):
        head = _float_head(rng, k)
        n = int(rng.integers(1, head.n_key - 1))
        slacks += _rounded_slacks(HeadCase(head, n, sink_policy=POLICIES[k % 3]))
    for d in range(3, 15):
        slacks += _rounded_slacks(HeadCase(_tied_head(rng, d), d))
        # One vector four times, so long that the radii of t and q decide.
        equal = np.tile(rng.random(16 * d), (4, 1))
        slacks += _rounded_slacks(HeadCase(HeadData(np.full(4, 0.1), equal), 1))
    return worst(slacks)


def _rounded_slacks(case: HeadCase) -> list[Fraction]:
    """Excess of the rounded counts over the exact ones, at all numbers of cells."""
    head, slacks = case.head, []
    sizes = range(3, len(case.selection.keys) + 1)
    rounded = rounded_cell_counts(head, case.selection, sizes)
    for size, counts in zip(sizes, rounded, strict=True):
        exact = CellRegime.fit(
            head, case.n, resolution=size, sink_policy=case.sink_policy
        )
        same = interval_counts(exact.enclosure(head, case.selection))
        slacks += [
            Fraction(counts.fp_upper - same.fp_upper),
            Fraction(counts.fn_upper - same.fn_upper),
            case.counts.f_score.lower - same.f_score.lower,
        ]
    return slacks


def _tied_head(rng: np.random.Generator, d: int) -> HeadData:
    """Draw d cyclic shifts of one vector and four permutations, equal weights.

    For N = d all powers are equal, which rounding hides.
    """
    one = 1 + rng.random(d)
    shifts = [np.roll(one, k) for k in range(d)]
    values = np.array([*shifts, *(rng.permutation(one) for _ in range(4))])
    return HeadData(np.full(d + 4, 0.1), values, sink=None)


prove = PROOF.run
