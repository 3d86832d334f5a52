"""Scans of many queries: exact counts and two bounds, layer by layer, block by block.

What a scan of the last query adds (other rankings, distances, controls, classes) is
left out, so that every head, query and N takes about as long as the model itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from empirical.errors import ScanError
from empirical.kernels.row_cells import count_row_cells
from empirical.kernels.rows import MISSING, LayerKeys, count_rows

__all__ = [
    "POLICIES",
    "QueryCollector",
    "QueryGrid",
    "empty_query_arrays",
    "query_rows",
]

POLICIES = ("keep", "drop")

_COUNTS = ("certified_policy", "layer", "head", "query", "n")
LAYOUT: dict[str, tuple[str, ...]] = {
    "false_positives": _COUNTS,
    "false_negatives": _COUNTS,
    "inversions": _COUNTS,
    "boundary_tie": _COUNTS,
    "n_candidates": ("certified_policy", "layer", "query"),
}
CELLS: dict[str, tuple[str, ...]] = {
    "cell_false_positives": _COUNTS,
    "cell_false_negatives": _COUNTS,
}


@dataclass(frozen=True)
class QueryGrid:
    """Coordinates of such a scan other than windows.

    Attributes
    ----------
    shape : (int, int)
        Numbers of layers and heads.
    n : tuple of int
        Numbers of selected tokens.
    length : int
        Tokens of a window.
    queries : tuple of int
        Positions of the queries.
    policies : tuple of str
        What the sink may do.
    cells : int or None
        Number of cells of the bound T6; None for none.
    """

    shape: tuple[int, int]
    n: tuple[int, ...]
    length: int
    queries: tuple[int, ...]
    policies: tuple[str, ...] = POLICIES
    cells: int | None = 9

    @property
    def layout(self) -> dict[str, tuple[str, ...]]:
        """Dimensions of every array after ``window``."""
        return LAYOUT | (CELLS if self.cells else {})

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates by dimension."""
        return {
            "certified_policy": np.array(self.policies, dtype=object),
            "layer": np.arange(self.shape[0]),
            "head": np.arange(self.shape[1]),
            "query": np.array(self.queries),
            "n": np.array(self.n),
        } | ({"resolution": self.cells} if self.cells else {})

    @property
    def bytes_a_window(self) -> int:
        """Size of the arrays of one window."""
        return sum(x.nbytes for x in empty_query_arrays(self, 1).values())


def query_rows(queries: str | int, length: int) -> tuple[int, ...]:
    """Return the positions that "last", "all" or an int k, every k-th, stand for."""
    if queries == "last":
        return (length - 1,)
    step = 1 if queries == "all" else int(queries)
    return tuple(range(step - 1, length, step))


def empty_query_arrays(grid: QueryGrid, windows: int) -> dict[str, np.ndarray]:
    """Return arrays before anything is measured; they take no memory until written."""
    sizes = {k: np.size(values) for k, values in grid.coordinates.items()}
    small = np.int16 if grid.length < 2**15 else np.int32
    arrays: dict[str, np.ndarray] = {}
    for name, dims in grid.layout.items():
        shape = (windows, *(sizes[d] for d in dims))
        if name == "boundary_tie":
            arrays[name] = np.broadcast_to(np.zeros((), dtype=bool), shape)
        else:
            dtype = np.int32 if name == "inversions" else small
            arrays[name] = np.broadcast_to(np.array(MISSING, dtype=dtype), shape)
    return arrays


class QueryCollector:
    """Receives one window by layers and blocks of rows, and keeps its counts only."""

    def __init__(self, grid: QueryGrid) -> None:
        self.grid = grid
        self.place = {q: i for i, q in enumerate(grid.queries)}
        self.data: dict[str, np.ndarray] = {}
        self.keys: tuple[int, LayerKeys] | None = None

    def start(self, window: int) -> None:  # noqa: ARG002
        """Begin a window."""
        self.data = {k: x.copy() for k, x in empty_query_arrays(self.grid, 1).items()}
        self.keys = None

    def receive(
        self,
        layer: int,
        weights: torch.Tensor,
        values: torch.Tensor,
        visible: torch.Tensor,
        rows: Sequence[int],
    ) -> None:
        """Reduce some rows of one layer."""
        grid = self.grid
        layers, n_heads = grid.shape
        if layer >= layers or weights.shape[1] != n_heads:
            msg = (
                f"scan: layers must be {layers} with {n_heads} heads as the config "
                f"says, got layer {layer} with {weights.shape[1]} heads."
            )
            raise ScanError(msg)
        if self.keys is None or self.keys[0] != layer:
            self.keys = layer, LayerKeys(values[0])
        keys, seen = self.keys[1], visible[0]
        found = count_rows(weights[0], keys, seen, grid.n, policies=grid.policies)
        at = slice(self.place[rows[0]], self.place[rows[-1]] + 1)
        data = self.data
        data["false_positives"][0, :, layer, :, at] = found.false_positives
        data["false_negatives"][0, :, layer, :, at] = found.false_negatives
        data["inversions"][0, :, layer, :, at] = found.inversions
        data["boundary_tie"][0, :, layer, :, at] = found.boundary_tie
        data["n_candidates"][0, :, layer, at] = found.n_candidates
        if grid.cells:
            bounds = count_row_cells(
                weights[0], keys, seen, grid.n, (grid.cells,), policies=grid.policies
            )
            data["cell_false_positives"][0, :, layer, :, at] = bounds[0, ..., 0]
            data["cell_false_negatives"][0, :, layer, :, at] = bounds[1, ..., 0]
