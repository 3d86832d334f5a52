"""The fast path of T4: counts of all scopes and many N, against one N at a time.

Soundness is exact and without tolerance: no count lies below that of the exact
enclosure of the fitted regime. Equality is with the float path of geobounds.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from battery import POLICIES
from cases import CaseHead, captured_like, draw_heads

from empirical.kernels import pairwise as kernel
from geobounds.cosines import UnitVectors
from geobounds.errors import ArgumentError
from geobounds.head import HeadData
from geobounds.pairwise import SCOPES, fit_pairwise, rounded_pairwise_counts
from geobounds.selection import Ranking, random_scores, rank
from geobounds.separability import interval_counts

SOURCE = Path(kernel.__file__)
# Shapes whose comparisons seldom fall within the rounding of a cosine. On the others
# a shared table may cost a count; without one every step is geobounds' own.
CLEAR = {
    "grid",
    "equal_weights",
    "duplicates",
    "zeros",
    "one_dimension",
    "captured_like",
    "half_precision",
}


def build(case):
    """Return the head of a case."""
    return HeadData(case.weights, case.values, visible=case.visible, sink=case.sink)


def larger_case(seed, n, d):
    """Return a captured-like case with its sink at key 0."""
    weights, values = captured_like(np.random.default_rng(seed), n, d)
    return CaseHead("captured_like", weights, values, np.ones(n, dtype=bool), 0)


def one_by_one(head, order, ns):
    """Counts that geobounds gives for one N and scope at a time."""
    x = UnitVectors(head, order.select(1).keys)
    found = np.empty((len(SCOPES), len(ns), 2), dtype=np.int64)
    for line, scope in enumerate(SCOPES):
        for column, n in enumerate(ns):
            c = rounded_pairwise_counts(head, order.select(n), scope, x)
            found[line, column] = c.fp_upper, c.fn_upper
    return found


def exact(head, order, ns):
    """Counts of the exact enclosures of the fitted regimes."""
    found = np.empty((len(SCOPES), len(ns), 2), dtype=np.int64)
    for line, scope in enumerate(SCOPES):
        for column, n in enumerate(ns):
            selection = order.select(n)
            regime = fit_pairwise(head, selection, scope)
            c = interval_counts(regime.enclosure(head, selection))
            found[line, column] = c.fp_upper, c.fn_upper
    return found


@dataclass(frozen=True, eq=False)
class Expected:
    """One head and policy, and what geobounds says of it."""

    shape: str
    head: HeadData
    order: Ranking
    ns: list[int]
    true: np.ndarray
    reference: np.ndarray


def expectations(case, ns=None, ranking="weight", policies=POLICIES):
    """Return what geobounds says of a head, for some or all N of every policy."""
    head, found = build(case), []
    for policy in policies:
        order = rank(head, -1, ranking, policy)
        largest = order.n_candidates - 1
        grid = [n for n in ns or range(1, largest + 1) if n <= largest]
        if grid:
            true, reference = exact(head, order, grid), one_by_one(head, order, grid)
            found.append(Expected(case.shape, head, order, grid, true, reference))
    return found


@cache
def small_heads():
    """Return what geobounds says of small heads of all shapes, prepared once."""
    weights, values = np.array([4.0, 2.0, 1.0]), np.array([[1.0], [0.0], [-1.0]])
    # For N = 2 no two selected tokens have a value: no cosine is defined.
    lone = CaseHead("zeros", weights, values, np.ones(3, dtype=bool), None)
    cases = [lone, larger_case(0, 12, 3), larger_case(1, 12, 3), *draw_heads(11, 112)]
    return [expectations(case) for case in cases]


def check(module, expected):
    """Check every claim about one head; return (settings, counts beyond geobounds')."""
    settings = excess = 0
    table = module.cosine_table(expected[0].head) if expected else None
    for case in expected:
        alone = module.pairwise_counts(case.head, case.order, case.ns)
        shared = module.pairwise_counts(case.head, case.order, case.ns, table)
        true, reference = case.true, case.reference
        assert (alone >= true).all(), f"{case.shape}: below the exact enclosure"
        assert (shared >= true).all(), f"{case.shape}: below, with a table"
        assert (alone == reference).all(), f"{case.shape}: not geobounds' counts"
        assert (shared >= reference).all(), f"{case.shape}: a table strengthens"
        assert (np.diff(alone, axis=0) <= 0).all(), f"{case.shape}: scopes"
        assert (np.diff(shared, axis=0) <= 0).all(), f"{case.shape}: scopes, table"
        settings += len(case.ns)
        different = int((shared != reference).sum())
        assert case.shape not in CLEAR or not different, f"{case.shape}: table"
        excess += different
    return settings, excess


def test_counts_are_sound_and_geobounds_own_on_heads_of_all_shapes():
    """All policies and all N: never below the exact enclosure, equal to one by one."""
    found = [check(kernel, expected) for expected in small_heads()]

    settings, excess = np.sum(found, axis=0)
    assert settings > 800
    assert excess <= settings // 100


@pytest.mark.parametrize("seed", [3, 4])
def test_counts_are_sound_on_heads_as_captured(seed):
    """256 keys, float32: the N of a scan, against exact fractions."""
    case = larger_case(seed, 256, 16)

    ns, policies = (1, 4, 32, 128), ("keep", "compete")
    check(kernel, expectations(case, ns, policies=policies))


@pytest.mark.parametrize("policy", POLICIES)
def test_counts_equal_one_by_one_on_a_large_head(policy):
    """256 keys, width 64, all scopes, a sink not at key 0, table given and not."""
    case = larger_case(5, 256, 64)
    head = HeadData(case.weights, case.values, sink=int(np.argsort(case.weights)[-3]))
    order = rank(head, -1, "weight", policy)
    ns = (1, 2, 3, 4, 8, 16, 64, 128, 200, order.n_candidates - 1)

    expected = one_by_one(head, order, ns)

    assert (kernel.pairwise_counts(head, order, ns) == expected).all()
    table = kernel.cosine_table(head)
    assert (kernel.pairwise_counts(head, order, ns, table) == expected).all()


@pytest.mark.parametrize("ranking", ["contribution", "random"])
def test_any_ranking_is_served(ranking):
    """Selections by contribution and at random, where the sink stands anywhere."""
    for seed, case in enumerate(draw_heads(12, 28)):
        scores = random_scores(len(case.weights), seed)
        chosen = scores if ranking == "random" else ranking
        check(kernel, expectations(case, ranking=chosen))


def test_one_table_serves_the_query_heads_of_one_kv_head():
    """Heads with other weights on the same values read the same table."""
    case = larger_case(6, 64, 8)
    table = kernel.cosine_table(build(case))
    other = larger_case(7, 64, 8)
    head = HeadData(other.weights, case.values)
    order = rank(head)
    ns = range(1, 64)

    found = kernel.pairwise_counts(head, order, ns, table)

    assert (found == one_by_one(head, order, ns)).all()


def test_the_order_of_ns_is_free():
    """Any order, repetitions and no N at all."""
    head = build(larger_case(8, 32, 4))
    order = rank(head)
    ns = [7, 1, 31, 7, 12]

    found = kernel.pairwise_counts(head, order, ns)

    assert found.dtype == np.int64
    assert (found == one_by_one(head, order, ns)).all()
    assert kernel.pairwise_counts(head, order, []).shape == (len(SCOPES), 0, 2)


def test_norms_of_a_shared_table_are_those_of_the_candidates_alone():
    """Row by row, bit for bit: only the cosines depend on the other rows."""
    for case in draw_heads(13, 28):
        head = build(case)
        keys = np.flatnonzero(case.visible)[::-1]
        alone, table = UnitVectors(head, keys), kernel.cosine_table(head)

        assert (alone.norms == table.norms[keys]).all()
        assert (alone.norm_radius == table.norm_radius[keys]).all()


def test_norms_beyond_float64_give_sound_counts():
    """Norms that overflow bound nothing; those that underflow are rounded outward."""
    top = 1.75 * 2.0**1023
    weights = np.array([4.0, 3.0, 2.0, 1.0]) / 16
    for size in (top, 3 * 2.0**-1074):
        values = size * np.array([[1.0, 1.0], [1.0, 0.75], [0.75, 1.0], [0.0, 0.5]])
        head = HeadData(weights, values)
        order = rank(head)

        found = kernel.pairwise_counts(head, order, [1, 2, 3])

        assert (found >= exact(head, order, [1, 2, 3])).all()
        assert (found == one_by_one(head, order, [1, 2, 3])).all()


def test_a_table_of_other_values_is_refused():
    """Too few keys, other sizes, and keys that another mask hid."""
    case = larger_case(9, 12, 3)
    head = build(case)
    order = rank(head)
    few = build(larger_case(9, 11, 3))
    twice = HeadData(case.weights, 2 * case.values)
    hidden = np.arange(12) != 5
    masked = HeadData(np.where(hidden, case.weights, 0), case.values, visible=hidden)

    for other, message in (
        (few, r"table must hold all 12 keys, got 11\."),
        (twice, "table must be of this head's values, got others at key"),
        (masked, "table must be of this head's values, got others at key 5"),
    ):
        with pytest.raises(ArgumentError, match=message):
            kernel.pairwise_counts(head, order, [1], kernel.cosine_table(other))


@pytest.mark.parametrize("n", [0, 12])
def test_an_n_out_of_range_is_refused(n):
    """N = 0 and N = |C| select nothing to compare."""
    head = build(larger_case(9, 12, 3))

    with pytest.raises(ArgumentError, match="pairwise_counts: n must lie between"):
        kernel.pairwise_counts(head, rank(head), [1, n])


# Text of the kernel and what replaces it; each claims too much or too little.
MUTANTS = {
    "the least cosine over all blocks": ("within[end - 1, end - 1]", "within[-1, -1]"),
    "the least cosine of one block less": (
        "within[end - 1, end - 1]",
        "within[max(end - 2, 0), max(end - 2, 0)]",
    ),
    "the greatest cosine of one block less": (
        "float(across[end - 1, end])",
        "float(across[max(end - 2, 0), end])",
    ),
    "the greatest cosine of the unselected alone": (
        "float(across[end - 1, end])",
        "float(across[end - 1, -1])",
    ),
    "the greatest cosine with the selected": (
        "float(across[end - 1, end])",
        "float(across[end - 1, 0])",
    ),
    "the least of the whole within the first block": (
        "float(within[-1, -1])",
        "float(within[0, 0])",
    ),
    "the greatest of the whole in the last column": (
        "float(across[-1, 0])",
        "float(across[-1, -1])",
    ),
    "a token's cosine with itself": (
        "np.fill_diagonal(part, -np.inf)",
        "np.fill_diagonal(part, 1.0)",
    ),
    "the sink among the plain tokens": ("plain[at] = False", "pass"),
    "zero values among the valued": (
        "np.flatnonzero(plain & ~self.zero)",
        "np.flatnonzero(plain)",
    ),
    "zero values counted as valued": (
        "np.cumsum(plain & ~self.zero)",
        "np.cumsum(plain)",
    ),
    "cosines of other rows": (
        "rows = self.rows[self.valued]",
        "rows = self.rows[: len(self.valued)]",
    ),
    "the sink's row of other keys": (
        "sink_row[self.rows[self.valued]]",
        "sink_row[self.rows[: len(self.valued)]]",
    ),
    "no row of a sink in a shared table": (
        "self.vectors.table[self.rows[self.sink_at]]",
        "self.vectors.table[self.sink_at]",
    ),
    "the sink's cosines with the selected": (
        "greatest_behind if sink_selected else greatest\n",
        "greatest if sink_selected else greatest_behind\n",
    ),
    "the sink's least cosine with all": ("least[count],", "least[-1],"),
    "the sink's least cosine of one token less": (
        "least[count],",
        "least[max(count - 1, 0)],",
    ),
    "the sink's greatest cosine one token on": (
        "sink_across[count],",
        "sink_across[min(count + 1, len(sink_across) - 1)],",
    ),
    "norms of the other role": ("before[count]", "behind[count]"),
    "norms of one token less": ("before[count]", "before[max(count - 1, 0)]"),
    "norms behind one token on": (
        "array[n:] = behind[count]",
        "array[n:] = behind[min(count + 1, len(behind) - 2)]",
    ),
    "the sink's norm that of its role": (
        "array[self.sink_at] = span[self.sink_at]",
        "pass",
    ),
    "greatest for least norms": (
        "self.least_norm = _before(np.minimum, low), _behind(np.minimum, low)",
        "self.least_norm = _before(np.maximum, low), _behind(np.maximum, low)",
    ),
    "no pull": ("self._pull(selection) if sink_selected else None", "None"),
    "the pull of the selected": (
        "self.valued[self.n_valued[selection.n] :]",
        "self.valued[: self.n_valued[selection.n]]",
    ),
    "the pull of one token less": (
        "self.valued[self.n_valued[selection.n] :]",
        "self.valued[self.n_valued[selection.n] + 1 :]",
    ),
    "the pull's last rounding inward": ("pull + 4 * _UNIT", "pull - 2**20 * _UNIT"),
    "the pull's radius inward": (
        "dots.t[others] + dots.t_radius[others]",
        "dots.t[others] - 2**20 * dots.t_radius[others]",
    ),
    "cosines inward, least": ("x - self.radius, -", "x + 2**20 * self.radius, -"),
    "cosines inward, greatest": ("x + self.radius, ", "x - 2**20 * self.radius, "),
    "bounds inward": ("bound + radius, outward", "bound - 2**20 * radius, outward"),
    "bounds without their radius": ("bound + radius, outward", "bound, outward"),
    "bounds of the unselected outward as of the selected": (
        "np.negative(radius[n:], out=radius[n:])",
        "pass",
    ),
    "overflow taken as known": (
        "np.where(np.isfinite(bound), bound, outward)",
        "np.where(np.isfinite(bound), bound, -outward)",
    ),
    "false positives by the least": ("chosen.max()", "chosen.min()"),
    "false negatives by the greatest": ("others.min()", "others.max()"),
    "scopes swapped": ('if scope == "all" else by', 'if scope != "all" else by'),
}


def load_mutant(change) -> ModuleType:
    """Return the kernel with a text, which stands there once, replaced."""
    text, old, new = SOURCE.read_text(encoding="utf-8"), *change
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times, not once"
    module = ModuleType("pairwise_mutant")
    exec(compile(text.replace(old, new), str(SOURCE), "exec"), module.__dict__)
    return module


def first_failure(module) -> str | None:
    """Return what the checks find wrong with a kernel, if anything."""
    for expected in small_heads():
        try:
            check(module, expected)
        except Exception as error:
            return f"{type(error).__name__} {error}"[:150]
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_kernel_is_caught(name):
    """Each of the deliberately broken versions fails a check above."""
    assert first_failure(load_mutant(MUTANTS[name])) is not None
