"""One window's layers reduced to numbers as they pass; nothing n x n is kept.

``LAYOUT`` names every array of a scan with its dimensions after ``window``: the one
place that says what a scan holds.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch

from empirical.describe import ValueSpread, alignments, value_spread
from empirical.errors import ScanError
from empirical.kernels.batch import count_selections
from empirical.kernels.cells import cell_counts
from empirical.kernels.pairwise import cosine_table, pairwise_counts
from empirical.kernels.removals import REMOVALS, removal_counts
from empirical.kernels.rows import MISSING
from geobounds import (
    HeadData,
    find_sink,
    random_scores,
    rank,
    sink_geometry,
    split_heads,
)
from geobounds.pairwise import SCOPES
from geobounds.taxonomy import classify_prefixes

__all__ = [
    "CERTIFIED_POLICIES",
    "DISTANCES",
    "LAYOUT",
    "RANKINGS",
    "REMOVALS",
    "SCOPES",
    "SINK_POLICIES",
    "Collector",
    "Grid",
    "empty_arrays",
]

DISTANCES = ("euclidean", "cosine")
RANKINGS = ("weight", "contribution")
SINK_POLICIES = ("keep", "drop", "compete")
CERTIFIED_POLICIES = ("keep", "drop")  # bounds are computed for these

_HEAD = ("layer", "head")
_MEASURED = ("distance", "ranking", "sink_policy", *_HEAD, "n")
_RANDOM = ("distance", "repeat", *_HEAD, "n")
_CELLS = ("certified_policy", "resolution", *_HEAD, "n")
_PAIRWISE = ("certified_policy", "scope", *_HEAD, "n")
_REMOVED = ("certified_policy", "removal", *_HEAD, "n")
_CLASSES = ("prefix", *_HEAD)
LAYOUT: dict[str, tuple[str, ...]] = {
    "false_positives": _MEASURED,
    "false_negatives": _MEASURED,
    "inversions": _MEASURED,
    "boundary_tie": ("ranking", "sink_policy", *_HEAD, "n"),
    "random_false_positives": _RANDOM,
    "random_false_negatives": _RANDOM,
    "cell_false_positives": _CELLS,
    "cell_false_negatives": _CELLS,
    "pairwise_false_positives": _PAIRWISE,
    "pairwise_false_negatives": _PAIRWISE,
    "n_candidates": ("sink_policy", *_HEAD),
    "removed_false_positives": _REMOVED,
    "removed_false_negatives": _REMOVED,
    "collapse": (*_HEAD, "n"),
    "class_current": _CLASSES,
    "class_sink": _CLASSES,
    "class_other": _CLASSES,
    "sink_rank": ("ranking", *_HEAD),
    "found_sink": _HEAD,
    "found_false_positives": (*_HEAD, "n"),
    "found_false_negatives": (*_HEAD, "n"),
    "mass": _HEAD,
    "sink_norm_ratio": _HEAD,
    "sink_cosine": _HEAD,
    "found_norm_ratio": _HEAD,
    "found_cosine": _HEAD,
    "sink_alignment": _HEAD,
    "current_alignment": _HEAD,
    **{field.name: _HEAD for field in fields(ValueSpread)},
}
_FLOATS = (
    "mass",
    "sink_norm_ratio",
    "sink_cosine",
    "found_norm_ratio",
    "found_cosine",
    "sink_alignment",
    "current_alignment",
    *(field.name for field in fields(ValueSpread)),
)


@dataclass(frozen=True)
class Grid:
    """Coordinates of a scan other than windows."""

    shape: tuple[int, int]
    length: int
    n: tuple[int, ...]
    resolutions: tuple[int, ...]
    repeats: int
    seed: int

    @property
    def prefixes(self) -> tuple[int, ...]:
        """First tokens over which heads are classed: a quarter, half, all."""
        return tuple(dict.fromkeys(self.length // k for k in (4, 2, 1)))

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates by dimension; words as objects, so that any length fits."""
        return {
            "distance": np.array(DISTANCES, dtype=object),
            "ranking": np.array(RANKINGS, dtype=object),
            "sink_policy": np.array(SINK_POLICIES, dtype=object),
            "certified_policy": np.array(CERTIFIED_POLICIES, dtype=object),
            "scope": np.array(SCOPES, dtype=object),
            "resolution": np.array(self.resolutions),
            "repeat": np.arange(self.repeats),
            "removal": np.array(REMOVALS, dtype=object),
            "prefix": np.array(self.prefixes),
            "layer": np.arange(self.shape[0]),
            "head": np.arange(self.shape[1]),
            "n": np.array(self.n),
        }


def empty_arrays(grid: Grid, windows: int) -> dict[str, np.ndarray]:
    """Return the arrays of ``windows`` windows before anything is measured."""
    sizes = {name: len(values) for name, values in grid.coordinates.items()}
    arrays: dict[str, np.ndarray] = {}
    for name, dims in LAYOUT.items():
        shape = (windows, *(sizes[d] for d in dims))
        if name == "boundary_tie":
            arrays[name] = np.zeros(shape, dtype=bool)
        elif name in _FLOATS:
            arrays[name] = np.full(shape, np.nan)
        else:
            arrays[name] = np.full(shape, MISSING, dtype=np.int32)
    return arrays


class Collector:
    """Receives the layers of one window, all queries, and keeps their numbers only."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.window = 0
        self.data: dict[str, np.ndarray] = {}

    def start(self, window: int) -> None:
        """Begin a window."""
        self.window = window
        self.data = empty_arrays(self.grid, 1)

    def receive(
        self,
        layer: int,
        weights: torch.Tensor,
        values: torch.Tensor,
        visible: torch.Tensor,
    ) -> None:
        """Reduce one layer."""
        layers, n_heads = self.grid.shape
        heads = split_heads(weights[0], values[0], visible=visible[0])
        if layer >= layers or len(heads) != n_heads:
            msg = (
                f"scan: layers must be {layers} with {n_heads} heads as the config "
                f"says, got layer {layer} with {len(heads)} heads."
            )
            raise ScanError(msg)
        group = n_heads // values.shape[1]
        for h, head in enumerate(heads):
            last = head[-1]
            if h % group == 0:  # heads of a group read the same values
                table = cosine_table(last)
                spread = value_spread(last, table)
            for name, number in asdict(spread).items():
                self.data[name][0, layer, h] = number
            self._describe(layer, h, head)
            self._measure(layer, h, last)
            self._certify(layer, h, last, table)

    def _describe(self, layer: int, h: int, head: HeadData) -> None:
        data, at = self.data, (0, layer, h)
        counts = classify_prefixes(head, self.grid.prefixes)
        for i, found in enumerate(counts):
            data["class_current"][0, i, layer, h] = found.current
            data["class_sink"][0, i, layer, h] = found.sink
            data["class_other"][0, i, layer, h] = found.other
        data["mass"][at] = head.mass[-1]
        data["sink_alignment"][at], data["current_alignment"][at] = alignments(head)
        sink = sink_geometry(head)
        data["sink_norm_ratio"][at] = sink.norm_ratio
        data["sink_cosine"][at] = sink.mean_cosine
        self._describe_found(layer, h, head)

    def _describe_found(self, layer: int, h: int, head: HeadData) -> None:
        """Measure with the sink that the weights show dropped, wherever it is."""
        data, grid, at = self.data, self.grid, (0, layer, h)
        found = find_sink(head)
        data["found_sink"][at] = found
        sink = sink_geometry(head, sink=found)
        data["found_norm_ratio"][at] = sink.norm_ratio
        data["found_cosine"][at] = sink.mean_cosine
        last = head[-1]
        last = HeadData(last.weights, last.values, visible=last.visible, sink=found)
        order = rank(last, -1, "weight", "drop")
        used = [n for n in grid.n if n < order.n_candidates]
        selections = [order.select(n) for n in used]
        counts = count_selections(last, selections, inversions=False)
        data["found_false_positives"][(*at, slice(len(used)))] = counts[:, 0]
        data["found_false_negatives"][(*at, slice(len(used)))] = counts[:, 1]

    def _measure(self, layer: int, h: int, head: HeadData) -> None:
        """Count for every ranking, policy, distance and N of the last query."""
        data, grid = self.data, self.grid
        selections, places = [], []
        for p, policy in enumerate(SINK_POLICIES):
            for r, ranking in enumerate(RANKINGS):
                order = rank(head, -1, ranking, policy)
                data["n_candidates"][0, p, layer, h] = order.n_candidates
                if policy == "keep":
                    found = np.flatnonzero(order.keys == head.sink)
                    data["sink_rank"][0, r, layer, h] = found[0] if len(found) else -1
                for k, n in enumerate(grid.n):
                    if n < order.n_candidates:
                        selections.append(order.select(n))
                        places.append((r, p, layer, h, k))
        for d, distance in enumerate(DISTANCES):
            counts = count_selections(head, selections, distance)
            for (r, *rest), row in zip(places, counts, strict=True):
                at = (0, d, r, *rest)
                data["false_positives"][at] = row[0]
                data["false_negatives"][at] = row[1]
                data["inversions"][at] = row[2]
        for place, selection in zip(places, selections, strict=True):
            data["boundary_tie"][(0, *place)] = selection.boundary_tie
        self._measure_random(layer, h, head)

    def _measure_random(self, layer: int, h: int, head: HeadData) -> None:
        data, grid = self.data, self.grid
        selections, places = [], []
        for repeat in range(grid.repeats):
            seed = [grid.seed, self.window, layer, h, repeat]
            order = rank(head, -1, random_scores(head.n_key, seed), "keep")
            for k, n in enumerate(grid.n):
                if n < order.n_candidates:
                    selections.append(order.select(n))
                    places.append((repeat, layer, h, k))
        for d, distance in enumerate(DISTANCES):
            counts = count_selections(head, selections, distance, inversions=False)
            for place, row in zip(places, counts, strict=True):
                data["random_false_positives"][(0, d, *place)] = row[0]
                data["random_false_negatives"][(0, d, *place)] = row[1]

    def _certify(self, layer: int, h: int, head: HeadData, table: Any) -> None:
        """Bound the counts by every regime, and remove causes; weight, Euclidean."""
        data, grid = self.data, self.grid
        for p, policy in enumerate(CERTIFIED_POLICIES):
            order = rank(head, -1, "weight", policy)
            used = [n for n in grid.n if n < order.n_candidates]
            at = (0, p, slice(None), layer, h, slice(len(used)))
            for name, counts in (
                ("pairwise", pairwise_counts(head, order, used, table)),
                ("cell", cell_counts(head, order, used, grid.resolutions)),
            ):
                data[f"{name}_false_positives"][at] = counts[..., 0]
                data[f"{name}_false_negatives"][at] = counts[..., 1]
            removed, collapse = removal_counts(head, order, used)
            data["removed_false_positives"][at] = removed[..., 0]
            data["removed_false_negatives"][at] = removed[..., 1]
            if policy == "keep":
                data["collapse"][0, layer, h, : len(used)] = collapse
