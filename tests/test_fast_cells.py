"""Fast cells of many N at once: the same counts as geobounds, one N at a time."""

from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from battery import POLICIES
from cases import SHAPES, captured_like, draw_heads

from empirical.kernels import cells
from geobounds import ArgumentError, HeadData, HeadDataError
from geobounds.regime import rounded_cell_counts
from geobounds.selection import random_scores, rank

numba = pytest.importorskip("numba", reason="compiled kernels need the extra 'fast'")

SEED = 20_261_201
RESOLUTIONS = (3, 4, 5, 9, 17)
SOURCE = Path(cells.__file__).with_name("cells_numba.py")


def reference(head, order, ns, resolutions):
    """Return the counts by geobounds, N by N."""
    counts = np.empty((len(resolutions), len(ns), 2), dtype=np.int64)
    for k, n in enumerate(ns):
        found = rounded_cell_counts(head, order.select(n), resolutions)
        counts[:, k] = [(c.fp_upper, c.fn_upper) for c in found]
    return counts


def orders_of(head):
    """Yield every policy and ranking that leaves two candidates."""
    for policy in POLICIES:
        for ranking in ("weight", "contribution", random_scores(head.n_key, [SEED])):
            order = rank(head, -1, ranking, policy)
            if order.n_candidates >= 2:
                yield order


@pytest.fixture(scope="module")
def small():
    """(shape, head, order, all N, counts by geobounds) for heads of every shape."""
    rows = []
    for case in draw_heads(SEED, 6 * len(SHAPES)):
        head = HeadData(case.weights, case.values, visible=case.visible, sink=case.sink)
        for order in orders_of(head):
            ns = tuple(range(1, order.n_candidates))
            rows.append(
                (case.shape, head, order, ns, reference(head, order, ns, RESOLUTIONS))
            )
    return rows


@pytest.fixture(scope="module")
def captured():
    """Heads as captured, with the sink first, last, in the middle and absent."""
    rng = np.random.default_rng(SEED)
    ns = (1, 2, 4, 8, 16, 32, 64, 128, 254)
    rows = []
    for sink in (0, 255, 100, None):
        weights, values = captured_like(rng, 256, 32)
        if sink:
            weights[[0, sink]], values[[0, sink]] = (
                weights[[sink, 0]],
                values[[sink, 0]],
            )
        head = HeadData(weights, values, sink=sink)
        rows += [
            ("captured", head, order, ns, reference(head, order, ns, RESOLUTIONS))
            for order in (rank(head, -1, "weight", p) for p in POLICIES)
        ]
    return rows


def check(module, rows, resolutions=RESOLUTIONS):
    """Compare every row with geobounds; return the number of N by shape."""
    seen = Counter()
    for shape, head, order, ns, expected in rows:
        found = module.cell_counts(head, order, ns, resolutions)
        assert found.tolist() == expected.tolist(), (shape, head.sink)
        seen[shape] += len(ns)
    return seen


def plain(old="", new=""):
    """Return ``cells`` with the compiled code run by Python, one text replaced."""
    source = SOURCE.read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{old!r} must stand exactly once"
    kernel = ModuleType("cells_numba_copy")
    text = source.replace(old, new) if old else source
    text = text.replace("from numba import njit", "njit = lambda **_: (lambda f: f)")
    exec(compile(text, "cells_numba", "exec"), vars(kernel))
    copy = ModuleType("cells_copy")
    exec(
        compile(Path(cells.__file__).read_text(encoding="utf-8"), "cells", "exec"),
        vars(copy),
    )
    copy.count_cells = kernel.count_cells
    return copy


def test_counts_of_every_shape_are_those_of_geobounds(small):
    """Ties, duplicates, zeros, subnormal and huge numbers, every N there is."""
    seen = check(cells, small)

    assert set(seen) == {shape.__name__ for shape in SHAPES}
    assert seen.total() > 2_000


def test_counts_of_captured_rows_are_those_of_geobounds(captured):
    check(cells, captured)


def test_the_compiled_code_is_used_but_for_huge_numbers(small, monkeypatch):
    """The reference is a way out, not the way."""
    used = Counter()

    def count(*args):
        used["compiled"] += 1
        real(*args)

    real = cells.count_cells
    monkeypatch.setattr(cells, "count_cells", count)
    check(cells, [row for row in small if row[0] != "huge"])

    assert used["compiled"] == sum(row[0] != "huge" for row in small)


def test_huge_numbers_go_to_the_reference(small, monkeypatch):
    monkeypatch.setattr(cells, "count_cells", None)
    real = [row for row in small if row[0] == "huge"]

    assert check(cells, real)["huge"] > 0
    assert any(not cells._moderate(_dots(row)) for row in real)


def _dots(row):
    _, head, order, ns, _ = row
    return [cells.dot_products(head, order.select(n)) for n in ns]


def test_without_numba_the_counts_are_the_same(captured, monkeypatch):
    monkeypatch.setattr(cells, "count_cells", None)
    check(cells, captured[:2])


def test_each_resolution_stands_alone(captured):
    """The cuts for a few cells are the first cuts for many."""
    _, head, order, ns, expected = captured[0]
    for r, resolution in enumerate(RESOLUTIONS):
        found = cells.cell_counts(head, order, ns, (resolution,))
        assert found[0].tolist() == expected[r].tolist()


def test_many_cells_certify_all_that_is_measured(captured):
    """A resolution beyond what is needed changes nothing and overruns nothing."""
    _, head, order, ns, _ = captured[1]
    found = cells.cell_counts(head, order, ns, (400,))
    assert found.tolist() == reference(head, order, ns, (400,)).tolist()


MUTATIONS = (
    ("count += x[i] >= threshold", "count += x[i] > threshold"),
    ("count += bound >= threshold", "count += bound > threshold"),
    ("(value == f and space >= gap)", "(value == f and space > gap)"),
    ("value > f or (value", "value >= f or (value"),
    ("f == best_f and gap > best_gap", "False"),
    ("rest = max(_greatest(bounds[first:a]), ", "rest = max(-np.inf, "),
    ("_greatest(bounds[b:last]))", "-np.inf)"),
    ("if _f_value(n, fp, fn) >= target:", "if _f_value(n, fp, fn) > target:"),
    ("radius += _TINY * (abs(norm_up) + 2 * w[i] * w[i] + 2)", "radius += 0"),
    ("radius = 4 * _UNIT *", "radius = 2**40 * _UNIT *"),
    ("role * q[j] + q_radius[j]", "role * q[j] + 2.0**52 * q_radius[j]"),
    ("dot[i] = role * t[j] - t_radius[j]", "dot[i] = role * t[j]"),
    ("if 0 <= sink < n:", "if False:"),
    ("if sink >= n:", "if False:"),
    ("q_max, t_min = max(q_max, q[k]), min(t_min, t[k])", "q_max = max(q_max, q[k])"),
    ("resolutions[r] - (n_coarse - 1)", "resolutions[r] - n_coarse"),
    ("if kept <= 0:", "if kept <= 1:"),
)


def test_the_code_run_by_python_passes(small):
    """A test of the test: the copy that is broken below is whole without a break."""
    check(plain(), small)


@pytest.mark.parametrize(("old", "new"), MUTATIONS)
def test_a_broken_kernel_is_seen(small, old, new):
    with pytest.raises(AssertionError):
        check(plain(old, new), small)


def test_arguments_out_of_range_are_refused(captured):
    _, head, order, _, _ = captured[0]
    with pytest.raises(ArgumentError, match=r"cell_counts: n must lie between 1 and"):
        cells.cell_counts(head, order, (1, 256), (9,))
    with pytest.raises(
        ArgumentError, match=r"cell_counts: resolution must be at least 3"
    ):
        cells.cell_counts(head, order, (1, 2), (2, 9))
    bare = HeadData([0.5, 0.25, 0.25])
    with pytest.raises(HeadDataError, match="values"):
        cells.cell_counts(bare, rank(bare), (1,), (9,))


def test_no_n_gives_no_counts(captured):
    _, head, order, _, _ = captured[0]
    assert cells.cell_counts(head, order, (), (3, 9)).shape == (2, 0, 2)
