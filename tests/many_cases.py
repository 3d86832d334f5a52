"""Every bound of the core on every N and sink policy of a head, against plain integers.

A case is one (head, N, policy). Its truth is computed here from definitions D1 to D8 in
integers, with nothing of the library. To check many cases, what the head, the policy
or a few counts determine is computed once, and T4 is taken in rounded floats. On some
heads one case goes through the battery of exact fractions too, in another copy: it is
measured as a user would, against the oracle, T4 is taken token by token, and every
fitted number is checked.

Policies that leave the ranking of a head as it is make no case of their own.
"""

import dataclasses
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import inf
from operator import is_not
from types import ModuleType
from typing import Any

import battery
import evidence
import numpy as np
from cases import ALL_SHAPES, CaseHead, draw_heads
from mutants import load_copy

STATEMENTS = ("T1", "T1-pairs", "T2a", "T2b", "T4", "T6", "T8")
METHOD = "exact cases"
_BATTERY_EVERY = 15  # prime to the number of shapes, so that each has its turn
_OTHER_MEASURES = (
    ("contribution", "euclidean"),
    ("weight", "cosine"),
    ("contribution", "cosine"),
)

Metrics = tuple[Fraction, Fraction, Fraction]
Found = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Truth:
    """One case by definition.

    ``keys`` are the selected ones, best first, then the unselected ones; ``squares``
    their D^2 (D5) and ``center`` is ||s_N||^2, both in units of 1 / ``unit``.
    """

    n: int
    keys: tuple[int, ...]
    tie: bool
    squares: tuple[int, ...]
    center: int
    unit: int
    fp: int
    fn: int
    inversions: int

    @property
    def metrics(self) -> Metrics:
        """P, R and F."""
        return metrics(self.n, self.fp, self.fn)


@cache
def metrics(n: int, fp: int, fn: int) -> Metrics:
    """P, R and F by D7."""
    p, r = Fraction(n, n + fp), 1 - Fraction(fn, n)
    return p, r, 2 * p * r / (p + r)


class Integers:
    """Weights and contributions of the visible keys of one head, as integers."""

    def __init__(self, case: CaseHead) -> None:
        self.keys = np.flatnonzero(case.visible).tolist()
        self.sink = case.sink if case.sink in self.keys else None
        rows = case.values[self.keys].tolist()
        d = len(rows[0])
        flat, v_unit = _whole([x for row in rows for x in row])
        weights, w_unit = _whole(case.weights[self.keys].tolist())
        self.unit = (w_unit * v_unit) ** 2
        self.weights = dict(zip(self.keys, weights, strict=True))
        self.contributions = {
            key: [w * x for x in flat[i * d : i * d + d]]
            for i, (key, w) in enumerate(self.weights.items())
        }

    def ranked(self, policy: str) -> tuple[list[int], list[int]]:
        """Keys that may be selected, best first, and candidates that may not (D2)."""
        keys = sorted(self.keys, key=lambda key: (-self.weights[key], key))
        if policy == "keep" or self.sink is None:
            return keys, []
        keys.remove(self.sink)
        return keys, [self.sink] * (policy == "compete")

    def truths(self, policy: str) -> Iterator[Truth]:
        """Every N of one policy, by D1 to D8."""
        ranked, barred = self.ranked(policy)
        keys = (*ranked, *barred)
        points = [self.contributions[key] for key in keys]
        weights = [self.weights[key] for key in ranked]
        total = [0] * len(points[0])
        for n in range(1, len(keys)):
            total = [a + b for a, b in zip(total, points[n - 1], strict=True)]
            squares = tuple(_square(point, total) for point in points)
            tie = n < len(weights) and weights[n - 1] == weights[n]
            center = sum(a * a for a in total)
            counts = _counts(squares, n)
            yield Truth(n, keys, tie, squares, center, self.unit, *counts)


def _whole(numbers: Sequence[float]) -> tuple[list[int], int]:
    """Return integers and their common denominator, a power of two."""
    ratios = [x.as_integer_ratio() for x in numbers]
    unit = max(below for _, below in ratios)
    return [above * (unit // below) for above, below in ratios], unit


def _square(one: list[int], other: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _counts(squares: Sequence[int], n: int) -> tuple[int, int, int]:
    """FP, FN (D6) and the number of inversions (D8)."""
    selected, unselected = squares[:n], sorted(squares[n:])
    fp = bisect_right(unselected, max(selected))
    as_near = [bisect_right(unselected, square) for square in selected]
    return fp, sum(k > 0 for k in as_near), sum(as_near)


def upper_counts(lo: Sequence[Any], hi: Sequence[Any], n: int) -> tuple[int, int]:
    """FP and FN at most, by T1."""
    top, bottom = max(hi[:n]), min(lo[n:])
    return sum(x <= top for x in lo[n:]), sum(x >= bottom for x in hi[:n])


def _exceeds(end: float, number: int, unit: int) -> bool:
    """Whether a float is greater than number / unit, exactly."""
    if abs(end) == inf:
        return end > 0
    above, below = end.as_integer_ratio()
    return above * unit > number * below


@dataclass
class Tally:
    """Cases by shape; cases and smallest slack by statement; counts met before."""

    shapes: Counter[str] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)
    slacks: dict[str, Fraction] = field(default_factory=dict)
    met: set[tuple[Any, ...]] = field(default_factory=set)

    def is_new(self, *key: Any) -> bool:
        """Whether these counts are met for the first time: metrics follow from them."""
        if key in self.met:
            return False
        self.met.add(key)
        return True

    def slack(self, statement: str, *slacks: Fraction) -> None:
        """Keep the smallest slack of a statement's bounds; none may be negative."""
        least = min(slacks)
        assert least >= 0, f"{statement}: a bound exceeds its metric by {-least}"
        self.slacks[statement] = min(least, self.slacks.get(statement, least))

    def found(self) -> Found:
        """Return the numbers to report."""
        statements = {
            name: {"cases": self.statements[name], "smallest_slack": self.slacks[name]}
            for name in STATEMENTS
        }
        return {"shape": dict(self.shapes), "statement": statements}


def remember(package: ModuleType) -> ModuleType:
    """Let a copy of the package keep what it would compute again from the same objects.

    All functions here are pure; the checks of one case pass them the same objects.
    """
    exact = _by_identity(package.exact.ExactGeometry, 2)
    package.regime.ExactGeometry = package.separability.ExactGeometry = exact
    package.regime.arrange = _by_identity(package.cells.arrange, 2)
    package.exact._power_of_two = cache(package.exact._power_of_two)
    bounds = _by_identity(package.pairwise.norm_bounds, 3)
    package.pairwise.norm_bounds = package.pairform.norm_bounds = bounds
    return package


def _by_identity(function: Callable[..., Any], leading: int) -> Callable[..., Any]:
    """Keep the last result while the leading arguments are the same objects."""
    kept: list[Any] = []

    def remembering(*given: Any) -> Any:
        if not kept or any(map(is_not, kept[0], given[:leading])):
            kept[:] = given[:leading], function(*given)
        return kept[1]

    return remembering


class HeadCheck:
    """All cases of one head."""

    def __init__(
        self, package: ModuleType, case: CaseHead, seed: int, tally: Tally
    ) -> None:
        self.package, self.case, self.tally = package, case, tally
        self.rng = random.Random(seed)
        self.head = head_of(package, case)
        self.integers = Integers(case)
        self.place = ""
        self.done: set[str] = set()

    def run(self, other: ModuleType | None) -> None:
        """Check every policy and N; with another copy, put one case to the battery."""
        cases = []
        for policy in battery.POLICIES:
            self.place = policy
            order = self.package.selection.rank(self.head, -1, "weight", policy)
            self.check_ranking(order, policy)
            if policy != "keep" and self.integers.sink is None:
                continue
            if order.n_candidates > 1:
                self.prepare(order.select(1))
            for truth in self.integers.truths(policy):
                self.place = f"{policy}, N = {truth.n}"
                self.check(order.select(truth.n), truth)
                cases.append((policy, truth))
        if other is not None:
            policy, truth = self.rng.choice(cases)
            self.place = f"battery, {policy}, N = {truth.n}"
            self.check_battery(other, policy, truth)

    def check_ranking(self, order: Any, policy: str) -> None:
        """D2, D3: who may be selected, in which order, and who else competes."""
        found = order.keys.tolist(), order.barred.tolist()
        assert found == self.integers.ranked(policy), "D2, D3: ranking"

    def prepare(self, selection: Any) -> None:
        """Compute what belongs to the candidates, whatever N."""
        self.vectors = self.package.cosines.UnitVectors(self.head, selection.keys)
        self.vectors._span = cache(self.vectors._span)
        self.vectors.float_norms = cache(self.vectors.float_norms)
        self.norms = self.vectors.all_norms(selection.keys)
        self.all_pairs = self.package.pairwise.fit_pairwise(
            self.head, selection, "all", self.vectors
        )

    def check(self, selection: Any, truth: Truth) -> None:
        """Compare one case with its truth, and count it."""
        self.done.clear()
        assert selection.n == truth.n, "D3: N"
        assert tuple(selection.keys.tolist()) == truth.keys, "D3: selection"
        assert selection.boundary_tie == truth.tie, "D3: boundary tie"
        self.dots = self.package.power.dot_products(self.head, selection)
        self.check_measured(selection, truth)
        self.check_intervals(truth)
        self.check_inversions(truth)
        self.check_pairwise(selection, truth)
        self.check_cells(selection, truth)
        self.tally.shapes[self.case.shape] += 1
        self.tally.statements.update(self.done)

    def check_measured(self, selection: Any, truth: Truth) -> None:
        """T8: the intervals hold every power; settled, the counts are the truth."""
        separability = self.package.separability
        enclosure = self.package.power.power_enclosure(self.head, selection, self.dots)
        ends = enclosure.lo.tolist(), enclosure.hi.tolist()
        for lo, hi, square in zip(*ends, truth.squares, strict=True):
            power = square - truth.center
            assert not _exceeds(lo, power, truth.unit), "T8: lower end"
            assert not _exceeds(-hi, -power, truth.unit), "T8: upper end"
        counts = separability.interval_counts(enclosure)
        self.within("T8", truth, counts)
        if not counts.exact:
            exact = separability.ExactGeometry(self.head, selection)
            counts = separability.settle(enclosure, exact.power_ranks)
        assert counts.exact, "D6: counts left open"
        found = counts.fp_upper, counts.fn_upper, counts.inversions_upper
        assert found == (truth.fp, truth.fn, truth.inversions), "D6, D8: counts"

    def check_intervals(self, truth: Truth) -> None:
        """T1: intervals drawn around the ranks of D, whose ends often touch."""
        place = {square: k for k, square in enumerate(sorted(set(truth.squares)))}
        middle = [2 * place[square] for square in truth.squares]
        wide = self.rng.choices((0, 0, 1, 2, 3), k=2 * len(middle))
        lo = [x - a for x, a in zip(middle, wide, strict=False)]
        hi = [x + a for x, a in zip(middle, reversed(wide), strict=False)]
        enclosure = self.package.power.Enclosure(np.array(lo), np.array(hi), truth.n)
        counts = self.package.separability.interval_counts(enclosure)
        self.within("T1", truth, counts)
        found = counts.fp_upper, counts.fn_upper
        assert found == upper_counts(lo, hi, truth.n), "T1: upper counts"
        found = counts.fp_lower, counts.fn_lower
        assert found == upper_counts(hi, lo, truth.n), "T1: lower counts"

    def check_inversions(self, truth: Truth) -> None:
        """T2: functions of integers, called when these are new."""
        self.done |= {"T2a", "T2b"}
        n, m, g = truth.n, len(truth.keys) - truth.n, truth.inversions
        if self.tally.is_new("T2", n, m, g, truth.fp, truth.fn):
            b = self.package.bounds.inversion_bounds(n, m, g)
            p, r, f = truth.metrics
            self.tally.slack("T2a", p - b.precision, r - b.recall, f - b.f_separate)
            self.tally.slack("T2b", f - b.f_joint)
            assert b.f_separate <= b.f_joint, "T2b: below T2a"

    def check_pairwise(self, selection: Any, truth: Truth) -> None:
        """T4 in the three scopes, and in one of them T1 in pair form."""
        pairwise = self.package.pairwise
        roles = pairwise.fit_pairwise(self.head, selection, "roles", self.vectors)
        norms = dataclasses.replace(roles, scope="roles-norms", token_norms=self.norms)
        regimes = self.all_pairs, roles, norms
        chosen = self.rng.choice(regimes)
        for regime in regimes:
            counts = pairwise.rounded_pairwise_counts(
                self.head, selection, regime.scope, self.vectors, regime
            )
            self.above("T4", truth, counts.fp_upper, counts.fn_upper)
            if regime is chosen:
                self.check_pairs(regime, selection, truth, counts)

    def check_pairs(
        self, regime: Any, selection: Any, truth: Truth, intervals: Any
    ) -> None:
        """T1 in pair form: never weaker than the intervals of the same regime."""
        pairform = self.package.pairform
        counts = pairform.pair_counts(regime, self.head, selection)
        fp, fn, g = counts.fp_upper, counts.fn_upper, counts.inversions_upper
        assert fp <= intervals.fp_upper, "T1-pairs: FP weaker than intervals"
        assert fn <= intervals.fn_upper, "T1-pairs: FN weaker than intervals"
        assert g >= truth.inversions, "T1-pairs: inversions"
        self.above("T1-pairs", truth, fp, fn)
        if self.tally.is_new("pair form", truth.n, fp, fn, g, truth.fp, truth.fn):
            bound = pairform.pair_f_bound(counts)
            self.tally.slack("T1-pairs", truth.metrics[2] - bound)

    def check_cells(self, selection: Any, truth: Truth) -> None:
        """T6: coarse cells, finer ones, one a token; and the coarse ones in floats."""
        size = len(truth.keys)
        coarse = self.rng.sample(range(1, size), self.rng.randrange(size))
        fine = [*coarse, self.rng.randrange(1, size)]
        first = self.cell_counts(selection, truth, coarse)
        second = self.cell_counts(selection, truth, fine)
        third = self.cell_counts(selection, truth, range(1, size))
        for name, *counts in zip(("FP", "FN"), first, second, third, strict=True):
            assert counts == sorted(counts, reverse=True), f"T6: refining raised {name}"
        assert third == (truth.fp, truth.fn), "T6: one cell a token is the truth"

        arrangement = self.package.regime.arrange(selection, self.head.sink)
        self.check_sink_cell(arrangement, truth)
        counts = self.package.separability.interval_counts(
            self.package.regime._rounded_cells(self.dots, arrangement, coarse)
        )
        assert counts.fp_upper >= first[0], "T6 in floats: FP"
        assert counts.fn_upper >= first[1], "T6 in floats: FN"

    def check_sink_cell(self, arrangement: Any, truth: Truth) -> None:
        """T6: the sink, where it is a candidate, shares no cell."""
        if self.integers.sink in truth.keys:
            at = truth.keys.index(self.integers.sink)
            place = arrangement.order.tolist().index(at)
            assert {place, place + 1} <= {*arrangement.boundaries}, "T6: sink cell"

    def cell_counts(
        self, selection: Any, truth: Truth, cuts: Sequence[int]
    ) -> tuple[int, int]:
        """FP and FN at most, by cells with these cuts in exact fractions."""
        fitted = self.package.regime.fit_cells(self.head, selection, split=cuts)
        enclosure = fitted.enclosure(self.head, selection)
        counts = upper_counts(enclosure.lo.tolist(), enclosure.hi.tolist(), truth.n)
        self.above("T6", truth, *counts)
        return counts

    def within(self, statement: str, truth: Truth, counts: Any) -> None:
        """Counts lie between their ends, and so do the metrics."""
        self.done.add(statement)
        fp, fn = (counts.fp_lower, counts.fp_upper), (counts.fn_lower, counts.fn_upper)
        g = counts.inversions_lower, counts.inversions_upper
        assert fp[0] <= truth.fp <= fp[1], f"{statement}: FP"
        assert fn[0] <= truth.fn <= fn[1], f"{statement}: FN"
        assert g[0] <= truth.inversions <= g[1], f"{statement}: inversions"
        if self.tally.is_new(statement, truth.n, truth.fp, truth.fn, *fp, *fn):
            ends = counts.precision, counts.recall, counts.f_score
            for true, interval in zip(truth.metrics, ends, strict=True):
                self.tally.slack(statement, true - interval.lower)
                assert true <= interval.upper, f"{statement}: above the upper end"

    def above(self, statement: str, truth: Truth, fp: int, fn: int) -> None:
        """Upper counts are not exceeded, so that no metric is below its bound."""
        self.done.add(statement)
        assert fp >= truth.fp, f"{statement}: FP"
        assert fn >= truth.fn, f"{statement}: FN"
        if self.tally.is_new(statement, truth.n, truth.fp, truth.fn, fp, fn):
            bounds = metrics(truth.n, fp, fn)
            self.tally.slack(statement, *map(Fraction.__sub__, truth.metrics, bounds))

    def check_battery(self, package: ModuleType, policy: str, truth: Truth) -> None:
        """Measure one case against the oracle; check its bounds in exact fractions."""
        head, n = head_of(package, self.case), truth.n
        given = package, head, self.case, n, policy
        oracle = battery.check_measure(*given, "weight", "euclidean")
        assert oracle.selected == truth.keys[:n], "oracle: selection"
        assert set(oracle.unselected) == set(truth.keys[n:]), "oracle: candidates"
        found = oracle.false_positives, oracle.false_negatives, oracle.inversions
        assert found == (truth.fp, truth.fn, truth.inversions), "oracle: counts"
        found = oracle.precision, oracle.recall, oracle.f_score
        assert found == truth.metrics, "oracle: metrics"
        battery.check_measure(*given, *self.rng.choice(_OTHER_MEASURES))

        order = package.selection.rank(head, -1, "weight", policy)
        rng = np.random.default_rng(self.rng.randrange(2**32))
        battery.check_bounds(package, head, order.select(n), oracle, rng)
        battery.check_pairwise(package, head, order.select(n))


def head_of(package: ModuleType, case: CaseHead) -> Any:
    """Return the head of a case as one of this package."""
    return package.head.HeadData(
        case.weights, case.values, visible=case.visible, sink=case.sink
    )


def run(
    seed: int,
    cases: int,
    change: tuple[str, str, str] | None = None,
    other: ModuleType | None = None,
) -> Found:
    """Check at least so many cases of seeded heads; return the numbers to report.

    ``change`` makes a wrong version of the library, see ``load_copy``. The battery
    judges ``other``, by default another copy of the library as it is.
    """
    package, tally = remember(load_copy(change)), Tally()
    other = other or load_copy()
    for i, case in enumerate(draw_heads(seed, cases, ALL_SHAPES)):
        check = HeadCheck(package, case, seed + i, tally)
        try:
            check.run(None if i % _BATTERY_EVERY else other)
        except Exception as error:
            msg = f"seed {seed}, head {i} ({case.shape}), {check.place}: {error!r}"
            raise AssertionError(msg) from error
        if tally.shapes.total() >= cases:
            break
    return tally.found()


def run_seeded(seed: int, cases: int) -> Found:
    """Check seeded cases, see that no shape is rare, and record what was found."""
    found = run(seed, cases)
    shapes = found["shape"]
    assert sum(shapes.values()) >= cases
    assert set(shapes) == {shape.__name__ for shape in ALL_SHAPES}
    assert min(shapes.values()) >= 0.02 * sum(shapes.values())
    for statement, row in found["statement"].items():
        assert row["cases"] == sum(shapes.values()), f"{statement}: cases left out"
        evidence.record(statement, row["cases"], row["smallest_slack"], METHOD)
    evidence.record_shapes(shapes)
    return found
