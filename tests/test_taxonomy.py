"""Winning sources and head classes (D10), against exact fractions."""

import types
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cases import SHAPES

import geobounds as gb
from geobounds import taxonomy
from geobounds.taxonomy import HeadClass, classify, winning_sources

_COUNT = 2_800


@dataclass(frozen=True, eq=False)
class Window:
    """Arrays of one head with several queries; ``broken`` rows cannot be used."""

    shape: str
    weights: np.ndarray
    values: np.ndarray
    visible: np.ndarray
    positions: np.ndarray
    sink: int | None
    first_query: int
    broken: frozenset[int]

    def head(self, rows=slice(None), *, values=None, weights=None):
        """Return the rows as a head, with other values or weights where given."""
        return gb.HeadData(
            (self.weights if weights is None else weights)[rows],
            self.values if values is None else values,
            visible=self.visible[rows],
            query_positions=self.positions[rows],
            sink=self.sink,
        )


def unit_steps(rng, array, most=2):
    """Move every number by a few units in its last place."""
    for _ in range(most):
        up = np.where(rng.random(array.shape) < 0.5, np.inf, -np.inf)
        moved = np.nextafter(array, up.astype(array.dtype))
        array = np.where(rng.random(array.shape) < 0.5, moved, array)
    return array


def crossed(rng, n, d):
    """Contributions that tie with weight and norm exchanged, some one step apart."""
    a = rng.integers(1, 2**20, 2)
    swap = rng.random(n) < 0.5
    weights = np.where(swap, a[0], a[1]) * 2.0**-20
    values = np.zeros((n, d))
    values[np.arange(n), rng.integers(0, d, n)] = np.where(swap, a[1], a[0])
    if rng.random() < 0.5:
        key = rng.integers(0, n)
        weights[key] = np.nextafter(weights[key], np.inf)
    return weights, values


def permuted_steps(rng, n, _d):
    """One vector permuted, its entries moved by single units: floats mislead."""
    one = rng.normal(0, 1, 4)
    values = np.array([rng.permutation(one) for _ in range(n)])
    moved = unit_steps(rng, values, 1)
    return np.full(n, 0.5), np.where(rng.random((n, 1)) < 0.5, moved, values)


def float32_steps(rng, n, d):
    """float32 numbers that differ by single units of float32."""
    weights = np.full(n, 0.3, np.float32)
    values = np.broadcast_to(rng.normal(0, 1, d).astype(np.float32), (n, d))
    return unit_steps(rng, weights, 1), unit_steps(rng, values, 1)


ALL_SHAPES = (*SHAPES, crossed, permuted_steps, float32_steps)
_EXTREME = {"tiny", "huge"}


def draw_windows(seed, count):
    """Yield heads with several queries, the shapes in turn."""
    rng = np.random.default_rng(seed)
    for made in range(count):
        shape = ALL_SHAPES[made % len(ALL_SHAPES)]
        n, d = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        first, values = shape(rng, n, d)
        n_query = int(rng.integers(1, 7))
        weights = np.stack([first, *(rng.permutation(first) for _ in range(n_query))])
        weights = weights[:n_query].astype(first.dtype)
        weights[rng.random(weights.shape) < rng.choice([0, 0.3])] = 0
        if rng.random() < 0.2:
            values[rng.random(n) < 0.5] = 0
        if rng.random() < 0.1:
            values[:] = 0
        if shape.__name__ not in _EXTREME and values.dtype == np.float64:
            dtype, power = [
                (np.float32, 0),
                (np.float64, 0),
                (np.float64, -530),  # squares underflow
                (np.float64, -300),
                (np.float64, 520),  # squares overflow
            ][int(rng.integers(0, 5))]
            weights = weights.astype(dtype)
            values = np.ldexp(values, power).astype(dtype)
        positions = np.sort(rng.integers(0, n, n_query))
        if rng.random() < 0.5:
            visible = np.arange(n) <= positions[:, None]
        else:
            visible = rng.random((n_query, n)) < rng.choice([0.7, 1])
        weights = np.where(visible, weights, 0).astype(weights.dtype)
        if rng.random() < 0.1:
            weights[int(rng.integers(0, n_query)), 0] = np.nan
        broken = frozenset(
            t for t in range(n_query) if not weights[t].any() or np.isnan(weights[t, 0])
        )
        sink = None if rng.random() < 0.15 else int(rng.integers(0, n))
        start = int(rng.choice([0, 0, n // 2]))
        if len(broken) < n_query:
            yield Window(
                shape.__name__, weights, values, visible, positions, sink, start, broken
            )


def definition(window):
    """D10 word by word in fractions: kinds by row, and the winners by row."""
    squared = [
        sum((Fraction(x) ** 2 for x in vector), Fraction(0))
        for vector in window.values.tolist()
    ]
    kinds, winners = [], []
    for t, position in enumerate(window.positions.tolist()):
        winner, kind = -1, None
        if t not in window.broken:
            r = {
                j: Fraction(float(window.weights[t, j])) ** 2 * squared[j]
                for j in range(len(squared))
                if window.visible[t, j]
            }
            if any(x > 0 for x in r.values()):
                most = max(r.values())
                winner = min(j for j in r if r[j] == most)
                kind = "other"
                if winner == position:
                    kind = "current"
                elif winner == window.sink:
                    kind = "sink"
        counted = position != window.sink and position >= window.first_query
        kinds.append(kind if counted else None)
        winners.append(winner)
    return kinds, winners


def counts_of(kinds):
    found = Counter(kinds)
    return HeadClass(found["current"], found["sink"], found["other"])


@pytest.fixture(scope="module")
def windows():
    """Return seeded arrays, what the definition says of each, and the head."""
    return [(w, *definition(w), w.head()) for w in draw_windows(10, _COUNT)]


def causal(weights, values, **options):
    return gb.HeadData(weights, values, visible="causal", **options)


# Examples by hand.


def test_a_head_that_reads_its_own_token_is_a_retriever():
    found = classify(
        causal([[1, 0, 0], [0.2, 0.8, 0], [0.2, 0.2, 0.6]], [[1.0], [1.0], [1.0]])
    )

    assert found == HeadClass(current=2, sink=0, other=0)
    assert found.name == "Retriever"
    assert found.shares == (1, 0, 0)


def test_a_head_that_reads_the_sink_is_a_mixer():
    found = classify(
        causal([[1, 0, 0], [0.8, 0.2, 0], [0.6, 0.2, 0.2]], [[1.0], [1.0], [1.0]])
    )

    assert found == HeadClass(current=0, sink=2, other=0)
    assert found.name == "Mixer"


def test_a_head_that_reads_other_tokens_is_a_reset():
    """Key 1 wins by its norm although its weight is the smallest."""
    found = classify(
        causal(
            [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.4, 0.2, 0.4, 0], [0.4, 0.2, 0.2, 0.2]],
            [[1.0], [4.0], [1.0], [1.0]],
        )
    )

    assert found == HeadClass(current=1, sink=0, other=2)
    assert found.name == "Reset"
    assert found.shares == (Fraction(1, 3), 0, Fraction(2, 3))
    assert found.current_share == Fraction(1, 3)
    assert (found.sink_share, found.other_share) == (0, Fraction(2, 3))


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ((1, 0, 0), "Retriever"),
        ((3, 2, 2), "Retriever"),
        ((0, 1, 0), "Mixer"),
        ((2, 3, 2), "Mixer"),
        ((0, 0, 1), "Reset"),
        ((1, 1, 0), "Reset"),
        ((1, 0, 1), "Reset"),
        ((0, 1, 1), "Reset"),
        ((2, 2, 1), "Reset"),
        ((2, 2, 2), "Reset"),
        ((0, 0, 0), None),
    ],
)
def test_a_class_needs_strictly_more_than_both_others(counts, name):
    found = HeadClass(*counts)

    assert found.name == name
    assert found.n_query == sum(counts)


def test_a_head_without_a_measured_query_has_no_class_and_no_shares():
    """The only query is the sink's own."""
    found = classify(gb.HeadData([1.0], [[2.0]]))

    assert found == HeadClass(0, 0, 0)
    assert found.name is None
    assert found.shares == (None, None, None)
    assert found.current_share is found.sink_share is found.other_share is None


def test_a_query_whose_contributions_are_all_zero_is_not_measured():
    """At position 1 the weights meet only zero values; at 2 one contribution is left.

    The third value vector has no visible weight in the first two rows.
    """
    head = causal([[1, 0, 0], [0.5, 0.5, 0], [0.4, 0.4, 0.2]], [[0.0], [0.0], [1.0]])

    assert winning_sources(head).tolist() == [-1, -1, 2]
    assert classify(head) == HeadClass(current=1)


@pytest.mark.parametrize(("value", "winner"), [(0.0, -1), (5e-324, 0)])
def test_a_single_key_wins_if_its_contribution_is_positive(value, winner):
    """Its square underflows, so that floats cannot say."""
    head = gb.HeadData([0.5], [[value]], sink=None)

    assert winning_sources(head).tolist() == [winner]
    assert classify(head).n_query == winner + 1


def test_the_query_at_the_sink_is_not_measured_but_has_a_winner():
    head = causal([[1, 0], [0.25, 0.75]], [[1.0], [1.0]], sink=1)

    assert winning_sources(head).tolist() == [0, 1]
    assert classify(head) == HeadClass(current=1)
    assert classify(causal([[1, 0], [0.25, 0.75]], [[1.0], [1.0]])) == HeadClass(
        current=1
    )


def test_the_sink_is_another_token_when_the_head_has_none():
    weights, values = [[1, 0], [0.75, 0.25]], [[1.0], [1.0]]

    assert classify(causal(weights, values)) == HeadClass(sink=1)
    assert classify(causal(weights, values, sink=None)) == HeadClass(1, 0, 1)


def test_a_hidden_sink_wins_nothing():
    head = gb.HeadData(
        [0, 0.5, 0.5], [[9.0], [2.0], [1.0]], visible=[False, True, True], sink=0
    )

    assert classify(head) == HeadClass(other=1)


def test_a_query_beyond_the_keys_has_no_current_token():
    head = gb.HeadData([0.5, 0.5], [[1.0], [2.0]], query_positions=[7])

    assert classify(head) == HeadClass(other=1)


def test_queries_before_the_first_are_left_out():
    head = causal([[1, 0, 0], [0.2, 0.8, 0], [0.8, 0.2, 0]], [[1.0], [1.0], [1.0]])

    assert classify(head, first_query=1) == HeadClass(current=1, sink=1)
    assert classify(head, first_query=2) == HeadClass(sink=1)
    assert classify(head, first_query=3) == HeadClass()


@pytest.mark.parametrize(
    "row", [[0.5, np.nan, 0], [-1, 0.5, 0], [0.2, 0.2, 0.6], [0, 0, 0]]
)
def test_a_broken_row_is_skipped(row):
    """NaN, a negative weight, a weight on a hidden key, a row without mass."""
    head = causal([[1, 0, 0], row, [0.2, 0.2, 0.6]], [[1.0], [1.0], [1.0]])

    assert list(head.problems) == [1]
    assert winning_sources(head).tolist() == [0, -1, 2]
    assert classify(head) == HeadClass(current=1)


def test_equal_contributions_go_to_the_smaller_index():
    """Floats round the three equal norms apart."""
    values = np.array([[0.1, 0.7, 1e8], [1e8, 0.1, 0.7], [0.7, 1e8, 0.1]])

    assert winning_sources(gb.HeadData([0.5] * 3, values)).tolist() == [0]
    assert winning_sources(gb.HeadData([0.5] * 3, values[::-1])).tolist() == [0]


def test_one_unit_in_the_last_place_decides():
    up = np.nextafter(3.0, 4)
    values = np.array([[3.0, 4.0], [4.0, 3.0], [4.0, up], [up, 4.0]])

    assert winning_sources(gb.HeadData([0.5] * 4, values)).tolist() == [2]


def test_squares_that_underflow_or_overflow_are_compared_exactly():
    weights = np.array([3.0, 4.0]) * 2.0**-600
    values = np.array([[4.0], [3.0]])
    grown = np.nextafter(values[::-1], 9)[::-1]

    for scale in (2.0**-470, 1.0, 2.0**900):
        for vectors in (values, grown):
            head = gb.HeadData(weights, vectors * scale)
            exact = [Fraction(weights[j]) * Fraction(vectors[j, 0]) for j in (0, 1)]

            assert winning_sources(head).tolist() == [exact.index(max(exact))]


# Oracle.


def test_winners_and_counts_are_those_of_the_definition(windows):
    for window, kinds, winners, head in windows:
        assert frozenset(head.problems) == window.broken
        assert winning_sources(head).tolist() == winners, window
        assert classify(head, first_query=window.first_query) == counts_of(kinds)


def test_the_seeded_heads_cover_what_can_happen(windows):
    """A test of the test: every kind of head, class and edge is there many times."""
    seen = Counter()
    for window, kinds, winners, _ in windows:
        rows = range(len(kinds))
        seen[window.shape] += 1
        seen[counts_of(kinds).name] += 1
        seen[str(window.weights.dtype), str(window.values.dtype)] += 1
        seen["broken"] += bool(window.broken)
        seen["no sink"] += window.sink is None
        if window.sink is not None:
            seen["sink hidden"] += any(not window.visible[t, window.sink] for t in rows)
            seen["sink current"] += window.sink in window.positions
        seen["all zero"] += any(winners[t] < 0 and t not in window.broken for t in rows)
        seen["late start"] += window.first_query > 0
        seen["several"] += len(kinds) > 1
        seen.update(kinds)

    assert len(windows) >= 2_000
    for name in [shape.__name__ for shape in ALL_SHAPES]:
        assert seen[name] >= 100, name
    for name in (
        *("Retriever", "Mixer", "Reset", None, "broken", "no sink", "sink hidden"),
        *("sink current", "all zero", "late start", "several", "current", "sink"),
        *(("float32", "float32"), ("float64", "float64"), ("float16", "float16")),
    ):
        assert seen[name] >= 100, name


def test_a_long_window_is_classified_as_by_the_definition():
    """Enough keys for the float path to decide most rows and integers the others."""
    rng = np.random.default_rng(3)
    n, d = 60, 8
    weights = np.tril(np.exp(rng.normal(0, 1, (n, n)))).astype(np.float32)
    values = rng.normal(0, 1, (n, d)).astype(np.float32)
    values[1::3] = values[0]  # repeated tokens tie where the weights do
    weights[30:40] = np.tril(np.full((n, n), 0.125))[30:40]
    window = Window(
        *("long", weights, values, np.tril(np.ones((n, n), bool)), np.arange(n)),
        *(0, 0, frozenset()),
    )
    kinds, winners = definition(window)

    assert winning_sources(window.head()).tolist() == winners
    assert classify(window.head()) == counts_of(kinds)


# Invariances.


@pytest.mark.parametrize("power", [-40, 1, 40])
def test_scaling_by_powers_of_two_changes_nothing(windows, power):
    """Heads of extreme scale are left out: there the scaled numbers would round."""
    plain = [
        (window, winners)
        for window, _, winners, _ in windows
        if window.shape not in _EXTREME
        and window.values.dtype == np.float64
        and 1e-3 < np.abs(window.values).max() < 1e3
    ]

    assert len(plain) >= 200
    for window, before in plain:
        values = np.ldexp(window.values, power)
        weights = np.ldexp(window.weights, power)

        assert (np.ldexp(values, -power) == window.values).all()
        assert winning_sources(window.head(values=values)).tolist() == before
        assert winning_sources(window.head(weights=weights)).tolist() == before


def test_permuting_coordinates_changes_nothing(windows):
    for window, _, winners, _ in windows[:600]:
        turned = np.ascontiguousarray(-window.values[:, ::-1])

        assert winning_sources(window.head(values=turned)).tolist() == winners


def test_counts_of_parts_sum_to_those_of_the_whole(windows):
    """Split before a usable row, so that both parts are heads; and row by row."""
    split = 0
    for window, kinds, _, head in windows[:340]:
        usable = [t for t in range(len(kinds)) if t not in window.broken]
        single = [classify(head[t], first_query=window.first_query) for t in usable]

        assert sum(single, HeadClass()) == counts_of(kinds)
        for cut in usable[1:]:
            parts = window.head(slice(None, cut)), window.head(slice(cut, None))
            found = [classify(p, first_query=window.first_query) for p in parts]

            assert found[0] + found[1] == counts_of(kinds)
            split += 1
    assert split >= 300


# Wrong versions.

_STRICT_CURRENT = "self.current > max(self.sink, self.other)"
_STRICT_SINK = "self.sink > max(self.current, self.other)"
MUTANTS = {
    "Retriever: >= for >": (_STRICT_CURRENT, _STRICT_CURRENT.replace(">", ">=")),
    "Mixer: >= for >": (_STRICT_SINK, _STRICT_SINK.replace(">", ">=")),
    "Retriever: min for max": (_STRICT_CURRENT, _STRICT_CURRENT.replace("max", "min")),
    "Mixer: min for max": (_STRICT_SINK, _STRICT_SINK.replace("max", "min")),
    "larger index on ties": (
        "contenders[exact.index(max(exact))]",
        "contenders[len(exact) - 1 - exact[::-1].index(max(exact))]",
    ),
    "floats only": (
        "open_to = ~(score < threshold[:, None])",
        "open_to = np.arange(head.n_key) == score.argmax(axis=1)[:, None]",
    ),
    "no radius": ("(head.d_head + 8) * 2.0**-52 * best", "0"),
    "radius of the wrong sign": ("threshold = best - (", "threshold = best + ("),
    "no allowance for underflow": ("2.0**-1070", "0"),
    "unbounded scores pass": ("~(score < threshold[", "(score >= threshold["),
    "zero rows win": ("(threshold > 0) & (", "("),
    "positive contributions only by weight": (
        "(head.weights[rows] > 0) & head.values64.any(axis=1)",
        "head.weights[rows] > 0",
    ),
    "norms instead of their squares": ("            w * w *", "            w *"),
    "weights only": ("w * w * norms[j]", "w * w"),
    "norms only": ("        score *= score\n", ""),
    "broken rows counted": (
        "    usable[list(head.problems)] = False\n",
        "",
    ),
    "the sink's own query counted": (" & (positions != sink)", ""),
    "first_query excluded": ("positions >= first_query", "positions > first_query"),
    "first_query ignored": (" & (positions >= first_query)", ""),
    "all rows measured": ("(winners >= 0) & ", ""),
    "the sink is key 0": (
        "sink = -1 if head.sink is None else head.sink",
        "sink = 0",
    ),
    "rows instead of positions": (
        "positions = head.query_positions",
        "positions = np.arange(head.n_query)",
    ),
    "addition mixes the counts": (
        "self.sink + more.sink",
        "self.sink + more.other",
    ),
}


def copy_of_module(old="", new=""):
    """Return the module from its source, one place of ``old`` replaced."""
    source = Path(taxonomy.__file__).read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{old!r} stands {source.count(old)} x"
    module = types.ModuleType("geobounds_taxonomy_copy")
    exec(
        compile(source.replace(old, new) if old else source, "copy", "exec"),
        vars(module),
    )
    return module


def expected_name(kinds):
    """D10's rule for the class, written apart from the library."""
    found = Counter(k for k in kinds if k is not None)
    if not found:
        return None
    ahead = [k for k in found if all(found[k] > found[o] for o in {*found} - {k})]
    return {"current": "Retriever", "sink": "Mixer"}.get("".join(ahead), "Reset")


def departs(module, window, kinds, winners, head):
    """Whether a version of the module departs from the definition on one head."""
    truth = counts_of(kinds)
    found = module.classify(head, first_query=window.first_query)
    return (
        module.winning_sources(head).tolist() != winners
        or (found.current, found.sink, found.other)
        != (truth.current, truth.sink, truth.other)
        or found.name != expected_name(kinds)
        or (found + found).shares != found.shares
    )


def test_the_right_version_never_departs_from_the_definition(windows):
    module = copy_of_module()

    assert not any(departs(module, *window) for window in windows)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_version_is_caught(windows, name):
    module = copy_of_module(*MUTANTS[name])

    assert any(departs(module, *window) for window in windows)


# Messages.


def test_a_head_without_values_is_refused():
    head = gb.HeadData([0.5, 0.5])

    with pytest.raises(gb.HeadDataError, match=r"^classify: values must be given"):
        classify(head)
    with pytest.raises(gb.HeadDataError, match=r"^winning_sources: values must be"):
        winning_sources(head)


def test_a_first_query_that_is_no_position_is_refused():
    head = gb.HeadData([0.5, 0.5], [[1.0], [1.0]])

    with pytest.raises(
        gb.ArgumentError, match=r"non-negative, got first_query=-1\. It"
    ):
        classify(head, first_query=-1)
    with pytest.raises(TypeError, match=r"^classify: first_query must be an int, got"):
        classify(head, first_query=True)
