"""T10: what the output of a head loses when only the selected tokens are kept.

Let z be the sum of y_k = w_k v_k over all visible k, s_N the sum over S, J the visible
keys outside S; under the policy ``drop`` the sink, if visible, is one of them. W and
W_S are the total and the selected weight, v_S and v_J the weighted means of the values
over S and over J.

Statement (T10). z - s_N = sum_J y_j.

Proof. *deletion.* S is a part of the visible keys, so the difference of the two sums is
the sum over the rest. Nothing was assumed about the policy: what matters is that the
rest is taken among visible keys, not among candidates. If W_S < W it is (W - W_S) v_J.

Statement (T10-norm). ||z - s_N|| <= sum_J r_j <= max_J ||v_j|| (W - W_S).

Proof. *triangle.* (sum_J r_j)^2 - ||sum_J y_j||^2 = 2 sum_{i<j} (r_i r_j - <y_i, y_j>),
and each bracket is at least 0 by Cauchy: r_i^2 r_j^2 - <y_i, y_j>^2 is the sum over
pairs of coordinates of the squared minors of (y_i, y_j). *greatest norm.* r_j =
w_j ||v_j|| <= w_j max_J ||v||, w_j >= 0; add up. Both are equalities if all discarded
values are equal.

Statement (T10-optimal). Let A be the keys that the policy lets a selection take, N <=
|A|. Among the N-subsets T of A, the one of greatest weights discards the least weight,
and the one of greatest contributions the least sum of norms r_j.

Proof. *exchange.* Let x_k be w_k or r_k (ranking by r_k^2 is ranking by r_k >= 0). What
is discarded is the total over the visible keys, which does not depend on T, less what
is kept. S kept the N greatest x of A. T has as many keys outside S as S has outside T,
and they lie in A, so the x of none of them exceeds that of a key of S. Hence sum_S x >=
sum_T x. The same in sorted form: the k-th greatest x of S is at least the k-th of T;
compared by squares this needs no root. Neither ranking minimises ||z - s_N|| itself,
where contributions may cancel: *cancelling contributions*.

Statement (T10-rescaled). For 0 < W_S < W the error after restoring the mass is
z - (W / W_S) s_N = (W - W_S)(v_J - v_S).

Proof. *restored mass.* s_N = W_S v_S and z - s_N = (W - W_S) v_J, so the error
z - (W / W_S) s_N is (W - W_S) v_J + W_S v_S - W v_S.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import sympy as sp
import z3

from geobounds import closed_forms, symbolic
from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.situation import HeadCase
from geobounds.theorems import THEOREMS
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

PROOF = Proof(
    "T10",
    scope="identities at N, M <= 3; Cauchy for d <= 4; z3 for M <= 3, |A| <= 5; all "
    "subsets of seeded heads of up to 8 keys",
)
_SIZES = tuple(itertools.product((1, 2, 3), repeat=2))
_POLICIES = ("keep", "drop", "compete")


def _both(*outcomes: Outcome) -> Outcome:
    """Hold iff every outcome holds."""
    notes = [o.note for o in outcomes if o.note]
    return Outcome(
        all(o.holds for o in outcomes),
        sum(o.cases for o in outcomes),
        None,
        "; ".join(notes),
    )


def _symbols(size: int) -> tuple[Any, Any]:
    return sp.symbols(f"w0:{size}", positive=True), sp.symbols(f"v0:{size}", real=True)


@PROOF.step("deletion", "symbolic")
def deletion() -> Outcome:
    """Equate output less aggregate, the closed form and (W - W_S) v_J."""
    rest = []
    for n, m in _SIZES:
        w, v = _symbols(n + m)
        products = [x * y for x, y in zip(w, v, strict=True)]
        lost = sum(w[n:])
        mean = sum(products[n:]) / lost
        own = closed_forms.discarded_error(w, v, n)
        rest += [symbolic.discarded_error(w, v, n) - own, own - lost * mean]
    return zero(*rest)


@PROOF.step("restored mass", "symbolic")
def restored_mass() -> Outcome:
    """Equate output less rescaled aggregate and (W - W_S)(v_J - v_S)."""
    rest = []
    for n, m in _SIZES:
        w, v = _symbols(n + m)
        products = [x * y for x, y in zip(w, v, strict=True)]
        kept, lost = sum(w[:n]), sum(w[n:])
        means = sum(products[:n]) / kept, sum(products[n:]) / lost
        form = symbolic.rescaled_error(w, v, n)
        rest.append(sp.together(form - lost * (means[1] - means[0])))
    return zero(*rest)


@PROOF.step("Cauchy", "symbolic")
def cauchy() -> Outcome:
    """Write r_i^2 r_j^2 - <y_i, y_j>^2 as the sum of the squared minors."""
    rest = []
    for d in range(1, 5):
        x, y = sp.symbols(f"x0:{d}", real=True), sp.symbols(f"y0:{d}", real=True)
        dot = sum(a * b for a, b in zip(x, y, strict=True))
        minors = [
            x[i] * y[j] - x[j] * y[i] for i, j in itertools.combinations(range(d), 2)
        ]
        product = sum(a * a for a in x) * sum(b * b for b in y)
        rest.append(product - dot**2 - sum(minor**2 for minor in minors))
    return zero(*rest)


@PROOF.step("triangle", "symbolic")
def triangle() -> Outcome:
    """Expand (sum r)^2 - ||sum y||^2 in vectors of up to 3 coordinates."""
    rest = []
    for m, d in itertools.product(range(1, 5), range(1, 4)):
        y = [sp.symbols(f"y{j}_0:{d}", real=True) for j in range(m)]
        r = sp.symbols(f"r0:{m}", nonnegative=True)
        total = [sum(column) for column in zip(*y, strict=True)]
        # r_j^2 stands for ||y_j||^2.
        own = {r[j] ** 2: sum(a * a for a in y[j]) for j in range(m)}
        pairs = itertools.combinations(range(m), 2)
        brackets = sum(
            r[i] * r[j] - sum(a * b for a, b in zip(y[i], y[j], strict=True))
            for i, j in pairs
        )
        left = sp.expand(sum(r) ** 2 - sum(a * a for a in total) - 2 * brackets)
        rest.append(left.subs(own))
    return zero(*rest)


def _gram(m: int) -> tuple[Any, dict[tuple[int, int], Any], list[Any]]:
    """Norms and inner products of m vectors, under Cauchy's inequality."""
    r = [z3.Real(f"r{j}") for j in range(m)]
    g = {(i, j): z3.Real(f"g{i}{j}") for i, j in itertools.combinations(range(m), 2)}
    given = [x >= 0 for x in r]
    given += [g[i, j] * g[i, j] <= r[i] * r[i] * r[j] * r[j] for i, j in g]
    return r, g, given


def _square(r: Any, g: dict[tuple[int, int], Any]) -> Any:
    return z3.Sum([x * x for x in r] + [2 * x for x in g.values()])


@PROOF.step("norm from the Gram matrix", "z3")
def norm_from_gram() -> Outcome:
    """Seek an error beyond the sum of norms, or a sum beyond the last bound: none."""
    problems = []
    for m in (1, 2, 3):
        r, g, given = _gram(m)
        problems.append([*given, _square(r, g) > z3.Sum(r) * z3.Sum(r)])
        w = [z3.Real(f"w{j}") for j in range(m)]
        norms = [z3.Real(f"c{j}") for j in range(m)]
        top = z3.Real("top")
        ranges = [x >= 0 for x in (*w, *norms)] + [top >= c for c in norms]
        total = z3.Sum([x * c for x, c in zip(w, norms, strict=True)])
        problems.append([*ranges, total > top * z3.Sum(w)])
    return refuted(*problems)


@PROOF.step("the norm bound is attained", "z3")
def norm_attained() -> Outcome:
    """Show that the refutation is not empty: equality, and excess without Cauchy."""
    r, g, given = _gram(2)
    positive = [x > 0 for x in r]
    equal = satisfiable([*given, *positive, _square(r, g) == z3.Sum(r) * z3.Sum(r)])
    beyond = satisfiable([*positive, _square(r, g) > z3.Sum(r) * z3.Sum(r)])
    return _both(equal, beyond)


@PROOF.step("exchange", "z3")
def exchange() -> Outcome:
    """Seek a set of N that keeps more than the N greatest: none."""
    problems = []
    for size in range(2, 6):
        x = [z3.Real(f"x{k}") for k in range(size)]
        ranked = [a >= b for a, b in itertools.pairwise(x)]
        for n in range(1, size):
            others = itertools.combinations(x, n)
            more = z3.Or(*(z3.Sum(other) > z3.Sum(x[:n]) for other in others))
            problems.append([*ranked, x[-1] >= 0, more])
    a, b = z3.Reals("a b")
    unranked = satisfiable([a >= 0, b >= 0, b > a])
    # Ranking by squares is ranking by norms.
    squares = [a >= 0, b >= 0, a * a >= b * b, a < b]
    return _both(refuted(*problems, squares), unranked)


def _heads(seed: int, count: int, policy: str, ranking: Any) -> Iterator[HeadCase]:
    """Draw heads with zeros, ties and near ties, hidden keys and a sink anywhere."""
    rng = Random(seed)
    for _ in range(count):
        size, d = rng.randint(4, 8), rng.randint(1, 3)
        hidden = rng.sample(range(size), rng.randint(0, 2) if size > 5 else 0)
        visible = [k not in hidden for k in range(size)]
        weights = [rng.choice((0, 1, 2, 4)) / 16 if seen else 0.0 for seen in visible]
        weights[visible.index(True)] += 0.25
        values = [[rng.randint(-3, 3) / 2 for _ in range(d)] for _ in range(size)]
        if rng.random() < 0.3:  # contributions that differ in the last bits only
            last = [1 + rng.randint(0, 2) * 2.0**-52 for _ in range(size)]
            norms = [x / w if w else x for x, w in zip(last, weights, strict=True)]
            values = [[rng.choice((-1, 1)) * x] + [0.0] * (d - 1) for x in norms]
        head = HeadData(weights, values, visible=visible, sink=rng.randrange(size))
        sink_seen = visible[head.sink or 0] and policy != "keep"
        candidates = sum(visible) - (policy == "drop" and sink_seen)
        yield HeadCase(head, rng.randint(1, candidates - 1), policy, ranking)


def _all_heads(seed: int, count: int = 60) -> Iterator[HeadCase]:
    for policy, ranking in itertools.product(_POLICIES, ("weight", "contribution")):
        yield from _heads(seed, count, policy, ranking)


def _contributions(case: HeadCase) -> dict[int, list[Fraction]]:
    """Contributions of the visible keys, from the head's own numbers."""
    head = case.head
    row, seen, values = head.weights[-1], head.visible[-1], head.require_values("T10")
    return {
        k: [Fraction(float(row[k])) * Fraction(float(x)) for x in values[k]]
        for k in range(head.n_key)
        if seen[k]
    }


def _total(vectors: Any) -> list[Fraction]:
    return [sum(column, Fraction(0)) for column in zip(*vectors, strict=True)]


def _dot(x: list[Fraction], y: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def _error(case: HeadCase, scale: Fraction = Fraction(1)) -> list[Fraction]:
    """Z - scale s_N, with the aggregate of the library."""
    unit = Fraction(2) ** (case.exact.w_exponent + case.exact.v_exponent)
    aggregate = [scale * unit * int(x) for x in case.exact.aggregate]
    output = _total(_contributions(case).values())
    return [a - b for a, b in zip(output, aggregate, strict=True)]


def _parts(case: HeadCase) -> tuple[list[int], list[int]]:
    """Visible keys in S and in J."""
    chosen = case.selection.selected.tolist()
    return chosen, [k for k in _contributions(case) if k not in chosen]


def _by_form(case: HeadCase, form: Any) -> list[Fraction]:
    """Return a closed form, coordinate by coordinate."""
    chosen, rest = _parts(case)
    order, head = chosen + rest, case.head
    weights = [Fraction(float(head.weights[-1][k])) for k in order]
    values = head.require_values("T10")[order]
    columns = [[Fraction(float(x)) for x in column] for column in values.T]
    return [Fraction(form(weights, column, case.n)) for column in columns]


@PROOF.step("errors of heads", "exact arithmetic")
def errors_of_heads() -> Outcome:
    """Find z - s_N and its closed form equal; only with dropped sinks counted in."""
    slacks, dropped = [], 0
    for case in _all_heads(10):
        error = _error(case)
        if error != _by_form(case, closed_forms.discarded_error):
            return Outcome(holds=False, note=f"form differs: {case.head.weights}")
        if not THEOREMS["T10"].applies(case):
            return Outcome(holds=False, note="T10 does not apply")
        slacks.append(THEOREMS["T10"].slack(case))
        candidates = set(case.selection.keys.tolist()) - set(_parts(case)[0])
        among = [y for k, y in _contributions(case).items() if k in candidates]
        dropped += _total(among) != error
    # A dropped sink that matters must have been among the cases.
    found = worst(slacks, f"{dropped} dropped sinks matter")
    return Outcome(found.holds and dropped > 0, found.cases, found.slack, found.note)


@PROOF.step("norms of heads", "exact arithmetic")
def norms_of_heads() -> Outcome:
    """Check Cauchy for every pair of discarded contributions, and the last bound."""
    slacks = []
    for case in _all_heads(11):
        points = _contributions(case)
        rest = [points[k] for k in _parts(case)[1]]
        for y, other in itertools.combinations(rest, 2):
            dot = _dot(y, other)
            slacks.append(_dot(y, y) * _dot(other, other) - dot * dot)
        cross = sum(2 * _dot(y, x) for y, x in itertools.combinations(rest, 2))
        error = _error(case)
        if _dot(error, error) != sum(_dot(y, y) for y in rest) + cross:
            return Outcome(holds=False, note="the Gram matrix gives another norm")
        slacks.append(THEOREMS["T10-norm"].slack(case))
    return worst(slacks)


@PROOF.step("restored mass of heads", "exact arithmetic")
def restored_mass_of_heads() -> Outcome:
    """Compare the rescaled error with its closed form; refuse an empty part."""
    slacks, refused = [], 0
    for case in _all_heads(12):
        row = case.head.weights[-1]
        chosen, rest = _parts(case)
        kept, lost = (
            sum((Fraction(float(row[k])) for k in keys), Fraction(0))
            for keys in (chosen, rest)
        )
        applies = THEOREMS["T10-rescaled"].applies(case)
        if applies != (kept > 0 and lost > 0):
            return Outcome(holds=False, note="the hypothesis misjudges the weights")
        if not applies:
            refused += _refused(case)
            continue
        form = _by_form(case, closed_forms.rescaled_error)
        if _error(case, (kept + lost) / kept) != form:
            return Outcome(holds=False, note=f"form differs: {row}")
        slacks.append(THEOREMS["T10-rescaled"].slack(case))
    found = worst(slacks, f"{refused} heads refused")
    return Outcome(found.holds and refused > 0, found.cases, found.slack, found.note)


def _refused(case: HeadCase) -> bool:
    try:
        _by_form(case, closed_forms.rescaled_error)
    except ArgumentError:
        return True
    msg = "rescaled_error took a part without weight"
    raise ValueError(msg)


def _allowed(case: HeadCase) -> list[int]:
    """Visible keys that the policy lets a selection take."""
    barred = {case.head.sink} if case.sink_policy != "keep" else set()
    return [k for k in _contributions(case) if k not in barred]


@PROOF.step("all sets", "enumeration")
def all_sets() -> Outcome:
    """Compare S in sorted order, by squares, with every set of N allowed keys."""
    slacks, cases = [], 0
    for case in _all_heads(13, 30):
        points, row = _contributions(case), case.head.weights[-1]
        by_weight = case.ranking == "weight"
        score = {
            k: Fraction(float(row[k])) if by_weight else _dot(y, y)
            for k, y in points.items()
        }
        kept = sorted(score[k] for k in case.selection.selected.tolist())
        for other in itertools.combinations(_allowed(case), case.n):
            cases += 1
            theirs = sorted(score[k] for k in other)
            slacks += [a - b for a, b in zip(kept, theirs, strict=True)]
        measured = _measured(case, case.ranking)
        if not THEOREMS["T10-optimal"].applies(measured):
            return Outcome(holds=False, note="T10-optimal does not apply")
        slacks.append(THEOREMS["T10-optimal"].slack(measured))
    found = worst(slacks)
    return Outcome(found.holds, cases, found.slack, found.note)


@PROOF.step("all sums", "enumeration")
def all_sums() -> Outcome:
    """Compare sums themselves at d = 1, where norms are rational; both measures."""
    slacks, cases, unfit = [], 0, 0
    for case, by_weight in itertools.product(_all_heads(14), (True, False)):
        if case.head.d_head > 1:
            continue
        points, row = _contributions(case), case.head.weights[-1]
        cost = {
            k: Fraction(float(row[k])) if by_weight else abs(y[0])
            for k, y in points.items()
        }
        total = sum(cost.values())
        lost = [
            total - sum(cost[k] for k in other)
            for other in itertools.combinations(_allowed(case), case.n)
        ]
        cases += len(lost)
        excess = sum((cost[k] for k in _parts(case)[1]), Fraction(0)) - min(lost)
        measured = _measured(case, "weight" if by_weight else "contribution")
        if (excess > 0) != (THEOREMS["T10-optimal"].slack(measured) < 0):
            return Outcome(holds=False, note="the slack has another sign")
        if THEOREMS["T10-optimal"].applies(measured):
            slacks += [excess, -excess]
        unfit += excess > 0
    found = worst(slacks, f"{unfit} rankings by the other score discard more")
    return Outcome(found.holds and unfit > 0, cases, found.slack, found.note)


def _measured(case: HeadCase, score: str) -> HeadCase:
    """Return the same selection, judged by a score."""
    return HeadCase(
        case.head, case.n, case.sink_policy, case.ranking, numbers={"measured": score}
    )


@PROOF.step("cancelling contributions", "exact arithmetic")
def cancelling() -> Outcome:
    """Show that the bounds, not the error, are minimised: contributions may cancel."""
    head = HeadData([0.5, 0.25, 0.25], [[3.0], [-4.0], [-4.0]])
    norms = []
    for ranking in ("contribution", [0.0, 1.0, 0.0]):
        case = HeadCase(head, 1, ranking=ranking)
        norms.append(abs(_error(case)[0]))
    return Outcome(norms == [2, Fraction(1, 2)], 2)


prove = PROOF.run
