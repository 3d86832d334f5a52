"""Counts of many selections at once: equal to the reference and to the oracle."""

import dataclasses
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from battery import POLICIES
from cases import SHAPES, captured_like, draw_heads

from empirical.kernels import batch
from geobounds import ArgumentError, HeadData, HeadDataError
from geobounds.exact import oracle
from geobounds.power import cosine_enclosure, power_enclosure
from geobounds.selection import Selection, random_scores, rank
from geobounds.separability import selection_counts

DISTANCES = ("euclidean", "cosine")
SEED = 20_261_130


def reference(head, selections, distance):
    """Return counts of each selection by the library, one by one."""
    found = [selection_counts(head, s, distance) for s in selections]
    return [[c.fp_lower, c.fn_lower, c.inversions_lower] for c in found]


def selections_of(head, rng):
    """Yield (policy, ranking, selection): all policies and rankings, several N."""
    for policy in POLICIES:
        for ranking in ("weight", "contribution", random_scores(head.n_key, [SEED])):
            order = rank(head, -1, ranking, policy)
            largest = order.n_candidates - 1
            some = {1, largest, int(rng.integers(1, max(largest, 1) + 1))}
            for n in sorted(x for x in some if 1 <= x <= largest):
                yield policy, ranking, order.select(n)


@pytest.fixture(scope="module")
def cases():
    """(shape, head, distance, selections mixed in one call, counts by the oracle)."""
    rng = np.random.default_rng(SEED)
    rows = []
    for case in draw_heads(SEED, 8 * len(SHAPES)):
        head = HeadData(case.weights, case.values, visible=case.visible, sink=case.sink)
        drawn = list(selections_of(head, rng))
        drawn = [drawn[i] for i in rng.permutation(len(drawn))]
        for distance in DISTANCES:
            truths = [
                oracle(
                    case.weights.tolist(),
                    case.values.tolist(),
                    case.visible.tolist(),
                    case.sink,
                    s.n,
                    ranking=ranking if isinstance(ranking, str) else ranking.tolist(),
                    sink_policy=policy,
                    distance=distance,
                )
                for policy, ranking, s in drawn
            ]
            counts = [
                [t.false_positives, t.false_negatives, t.inversions] for t in truths
            ]
            rows.append((case.shape, head, distance, [s for *_, s in drawn], counts))
    return rows


@pytest.fixture(scope="module")
def captured():
    """One head as captured, and 9 N of 16 random and three other rankings."""
    weights, values = captured_like(np.random.default_rng(SEED), 256, 32)
    head = HeadData(weights, values)
    random = [rank(head, -1, random_scores(256, k)) for k in range(16)]
    other = [rank(head, -1, "contribution", p) for p in POLICIES]
    sizes = (1, 2, 4, 8, 16, 32, 64, 128, 254)
    return head, [order.select(n) for order in random + other for n in sizes]


def load(old="", new=""):
    """Return a copy of the module under test with one text replaced."""
    source = Path(batch.__file__).read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{old!r} must stand exactly once"
    copy = ModuleType("batch_copy")
    copy.__dict__["__name__"] = batch.__name__  # dataclasses look their module up
    exec(
        compile(source.replace(old, new) if old else source, "batch", "exec"),
        vars(copy),
    )
    return copy


def check_counts(module, cases, *, inversions=True):
    """Compare every case with the oracle; return the number of cases by shape."""
    seen = Counter()
    for shape, head, distance, selections, counts in cases:
        found = module.count_selections(
            head, selections, distance, inversions=inversions
        )
        expected = counts if inversions else [[*c[:2], -1] for c in counts]
        assert found.tolist() == expected, (shape, distance)
        seen[shape] += len(counts)
    return seen


def exact_head(n_key, d_head):
    """Return a head on which every float64 operation of T8 is exact, in any order."""
    rng = np.random.default_rng(SEED)
    weights = rng.integers(0, 9, n_key) / 8
    return HeadData(weights, rng.integers(-3, 4, (n_key, d_head)).astype(float))


def check_enclosures(module):
    """The radius of each selection is that of T8 with its own N, bit by bit."""
    head = exact_head(90, 2)
    order = rank(head, -1, "weight", "compete")
    selections = [order.select(n) for n in (1, 80, 7, 7, 33)]
    query = module._query(head, 0)
    packed = module._batch(selections, head.n_key)
    lo, hi = module._powers(query, packed)
    lo, hi = np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)
    cosine_lo, cosine_hi = module._cosines(query, packed)
    for i, s in enumerate(selections):
        power = power_enclosure(head, s)
        assert np.array_equal(lo[i, s.keys], power.lo)
        assert np.array_equal(hi[i, s.keys], power.hi)
        cosine = cosine_enclosure(head, s)
        open_line = np.isnan(cosine_lo[i, s.keys])
        assert np.array_equal(open_line, np.isinf(cosine.lo))
        assert np.array_equal(open_line, np.isnan(cosine_hi[i, s.keys]))
        assert np.array_equal(cosine_lo[i, s.keys][~open_line], cosine.lo[~open_line])
        assert np.array_equal(cosine_hi[i, s.keys][~open_line], cosine.hi[~open_line])


def test_counts_equal_the_oracle_on_every_shape(cases):
    """Mixed N, policies and rankings in one call; the number of cases is stated."""
    seen = check_counts(batch, cases)

    assert set(seen) == {shape.__name__ for shape in SHAPES}
    assert min(seen.values()) >= 100
    assert seen.total() >= 3000


def test_counts_equal_the_reference_on_every_shape(cases):
    for shape, head, distance, selections, _ in cases:
        expected = reference(head, selections, distance)
        found = batch.count_selections(head, selections, distance)

        assert found.dtype == np.int64
        assert found.tolist() == expected, (shape, distance)


def test_without_inversions_the_other_counts_stay(cases):
    check_counts(batch, cases[::3], inversions=False)


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_captured_head_with_random_rankings_needs_no_reference(
    captured, distance, monkeypatch
):
    head, selections = captured
    expected = reference(head, selections, distance)
    monkeypatch.delattr(batch, "selection_counts")

    assert batch.count_selections(head, selections, distance).tolist() == expected


def test_chunks_and_pieces_of_products_change_nothing(captured, monkeypatch):
    """Selections in chunks of three; products in small pieces of every axis."""
    head, selections = captured
    expected = reference(head, selections, "euclidean")
    monkeypatch.setattr(batch, "_CHUNK", 3 * head.n_key)
    monkeypatch.setattr(batch, "_ONE_THREAD", 5000)

    assert batch.count_selections(head, selections).tolist() == expected


def test_a_wide_head_is_multiplied_in_pieces(monkeypatch):
    """More coordinates than keys: the other axis is cut."""
    weights, values = captured_like(np.random.default_rng(SEED), 5, 40)
    head = HeadData(weights, values)
    selections = [rank(head).select(n) for n in (1, 2, 3, 4)]
    monkeypatch.setattr(batch, "_ONE_THREAD", 400)

    found = batch.count_selections(head, selections)
    assert found.tolist() == reference(head, selections, "euclidean")


def test_rows_of_one_head_are_counted_each_by_itself():
    rng = np.random.default_rng(SEED)
    logits = np.where(np.tri(6, dtype=bool), rng.normal(0, 1, (6, 6)), -np.inf)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    head = HeadData(weights, rng.normal(0, 1, (6, 3)), visible="causal")
    for row in (2, 4, 5):
        selections = [rank(head, row).select(n) for n in range(1, row + 1)]

        found = batch.count_selections(head, selections)
        assert found.tolist() == reference(head, selections, "euclidean")


@pytest.mark.parametrize("distance", DISTANCES)
def test_only_a_selection_in_doubt_goes_to_the_reference(distance, monkeypatch):
    """Keys 1 and 2 tie exactly, so N = 2 is left open; N = 1 and 3 are decided."""
    first, second = ([0.3, 0.1], [0.3, 0.1])
    if distance == "cosine":  # equal values are known to tie: parallel ones are not
        second = [0.6, 0.2]
    head = HeadData([0.5, 0.3, 0.3, 0.1], [[1.0, 0.0], first, second, [-1.0, 1.0]])
    selections = [rank(head).select(n) for n in (1, 2, 3)]
    expected = reference(head, selections, distance)
    asked = []

    def counted(head, selection, distance):
        asked.append(selection.n)
        return selection_counts(head, selection, distance)

    monkeypatch.setattr(batch, "selection_counts", counted)

    assert batch.count_selections(head, selections, distance).tolist() == expected
    assert asked == [2]


def test_equal_values_are_compared_without_the_reference(monkeypatch):
    """Their cosines are equal, whatever the weights, but for weight 0: kappa is 0."""
    rng = np.random.default_rng(8)
    words = rng.normal(size=(5, 3))
    values = words[rng.integers(0, 5, 24)]
    weights = rng.dirichlet(np.ones(24))
    weights[rng.integers(0, 24, 4)] = 0
    head = HeadData(weights, values)
    selections = [rank(head).select(n) for n in (1, 2, 5, 9, 16, 21)]
    expected = reference(head, selections, "cosine")
    monkeypatch.setattr(batch, "selection_counts", None)
    assert batch.count_selections(head, selections, "cosine").tolist() == expected


def test_equal_values_near_others_stay_in_doubt():
    """Directions that differ by less than the radius are not put in order by it."""
    rng = np.random.default_rng(9)
    for _ in range(60):
        word, other = rng.normal(size=(2, 4))
        near = word * (1 + 2.0**-50 * rng.integers(-3, 4, 4))
        values = np.array([word, near, other, word, near, other, word, near])
        head = HeadData(rng.dirichlet(np.ones(8)), values[rng.permutation(8)])
        selections = [rank(head).select(n) for n in range(1, 8)]
        expected = reference(head, selections, "cosine")
        assert batch.count_selections(head, selections, "cosine").tolist() == expected


def test_numbers_that_are_not_finite_go_to_the_reference(monkeypatch):
    head = HeadData([0.5, 0.25, 0.25], [[1e200], [2e200], [-1e200]])
    asked = []

    def counted(*given):
        asked.append(given)
        return selection_counts(*given)

    monkeypatch.setattr(batch, "selection_counts", counted)
    selections = [rank(head).select(n) for n in (1, 2)]

    found = batch.count_selections(head, selections).tolist()
    assert found == reference(head, selections, "euclidean")
    assert len(asked) == 2


def test_an_inversion_in_doubt_alone_goes_to_the_reference_only_where_asked(
    monkeypatch,
):
    """A tie between inner tokens leaves FP and FN decided."""
    weights = np.array([1.0, 0.5, 0.3, 0.3, 0.2])
    values = [[1.0, 0.0], [-4.0, 0.0], [0.7, 1.3], [0.7, 1.3], [0.1, 0.0]]
    head = HeadData(weights, values)
    selections = [rank(head).select(3)]
    expected = reference(head, selections, "euclidean")
    asked = []

    def counted(*given):
        asked.append(given)
        return selection_counts(*given)

    monkeypatch.setattr(batch, "selection_counts", counted)
    batch.count_selections(head, selections, inversions=False)
    assert asked == []

    assert batch.count_selections(head, selections).tolist() == expected
    assert len(asked) == 1


def test_each_radius_is_that_of_the_library():
    check_enclosures(batch)


MUTANTS = {
    "radius dropped": ("    bulk += e_term[which]\n", "    bulk[:] = 0\n"),
    "cosine radius dropped": (
        "    radius += underflow[which]\n",
        "    radius[:] = 0\n",
    ),
    "cosine quotient not widened": ("t *= 4 * _UNIT", "t *= 0"),
    "wrong N in the radius": (
        "bulk *= ((batch.n + d_head + 4) * _UNIT)[:, None]",
        "bulk *= (batch.n[0] + d_head + 4) * _UNIT",
    ),
    "wrong N in the radius of t": (
        "radius *= ((batch.n + d_head + 3) * _UNIT)[:, None]",
        "radius *= (batch.n[0] + d_head + 3) * _UNIT",
    ),
    "FP: < for <=": ("unselected <= farthest", "unselected < farthest"),
    "FN: > for >=": ("selected >= np.repeat", "selected > np.repeat"),
    "inversions: ties not counted": ('side="right"', 'side="left"'),
    "candidates of another selection": (
        "row[s.unselected] = True",
        "row[selections[0].unselected] = True",
    ),
    "selected of another selection": ("np.cumsum(n) - n", "0 * n"),
    "FN from the wrong end": ("lo.min(axis=1), batch", "hi.min(axis=1), batch"),
    "doubt of inversions ignored": ("doubt[i] = counts", "_ = counts"),
    "doubt of FP ignored": ("doubt |= counts[:, 0]", "_ = counts[:, 0]"),
    "doubt of FN ignored": ("doubt |= counts[:, 1]", "_ = counts[:, 1]"),
    "not finite ignored": (
        "~np.isfinite(lo.sum(axis=1) + hi.sum(axis=1))",
        "np.zeros(len(lo), dtype=bool)",
    ),
    "small t trusted": ("~(np.abs(t) > _SMALL)", "np.abs(t) < 0"),
    "w^2 for w": ("square, double = w * w * query.q", "square, double = w * query.q"),
    "sign of kappa lost": ("np.copysign(quotient, t, out=quotient)", "pass"),
    "inversions where none are skipped": (
        "~doubt & (counts[:, 0] > 0)",
        "~doubt & (counts[:, 0] > 1)",
    ),
    "pieces overwrite": ("result[block] += left", "result[block] = left"),
}


def run_all(module, cases):
    """Run both checks; what goes to the reference is answered by the oracle."""
    known = {
        (id(s), distance): SimpleNamespace(
            fp_lower=c[0], fn_lower=c[1], inversions_lower=c[2]
        )
        for _, _, distance, selections, counts in cases
        for s, c in zip(selections, counts, strict=True)
    }
    module.selection_counts = lambda _head, s, distance: known[id(s), distance]
    check_enclosures(module)
    check_counts(module, cases)
    check_counts(module, cases, inversions=False)
    module._ONE_THREAD = 500
    check_enclosures(module)


def test_the_unchanged_copy_passes(cases):
    run_all(load(), cases)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_version_is_caught(name, cases):
    with pytest.raises((AssertionError, ValueError, IndexError)):
        run_all(load(*MUTANTS[name]), cases)


def test_nothing_to_count_gives_no_rows():
    assert batch.count_selections(exact_head(4, 2), []).shape == (0, 3)


def test_selections_of_two_rows_are_refused():
    head = HeadData(np.full((2, 4), 0.25), np.eye(4), visible="all")
    selections = [rank(head, row).select(1) for row in (0, 1)]

    with pytest.raises(ArgumentError, match=r"one query, got rows=\[0, 1\]"):
        batch.count_selections(head, selections)


def test_an_unknown_distance_is_refused():
    with pytest.raises(ArgumentError, match="got distance='angular'"):
        batch.count_selections(exact_head(4, 2), [], "angular")


@pytest.mark.parametrize("field", ["selected", "unselected"])
def test_a_selection_with_an_empty_side_is_refused(field):
    head = exact_head(4, 2)
    good = rank(head).select(2)
    bad: Selection = dataclasses.replace(good, **{field: np.empty(0, dtype=np.int64)})

    with pytest.raises(ArgumentError, match=r"must hold .* in selection 1"):
        batch.count_selections(head, [good, bad])


def test_a_head_without_values_is_refused():
    head = HeadData([0.5, 0.5])

    with pytest.raises(HeadDataError, match="count_selections: values must be given"):
        batch.count_selections(head, [rank(head).select(1)])


def test_flush_to_zero_is_refused(monkeypatch):
    class Flushed(Exception):
        pass

    def refuse():
        raise Flushed

    head = exact_head(4, 2)
    monkeypatch.setattr(batch, "refuse_flush_to_zero", refuse)
    with pytest.raises(Flushed):
        batch.count_selections(head, [rank(head).select(1)])
