"""Exact counts of every query row of a layer, all heads and a grid of N (D6, D8).

Three ways, each for what the one before leaves open: float32 with a radius (compiled,
``rows_numba``) or float64 by torch where numba is missing (``rows_torch``); float64,
token by token; geobounds itself. The counts are always the exact ones.

The radius in float32. For a row, let u = 2^-24, d the width, m = ||v||, s = s_N and
R = sum over S of w m. t = <v, s> comes in one of two ways, each off by at most m T:

From tiles of values (large N). Sixteen contributions at a time are summed in float32
and these sums in float64, which s then leaves rounded once: every coordinate is off by
at most u |s_k| + 10 u sum_S w |v_k|. A product of s and v passes through at most
d/4 + 4 roundings. By Cauchy's inequality T = (d/4 + 5) u |s| + 10 u R, to first order.

From products of keys (small N). t is the sum over S of w <v_i, v>. The product of
an inner product passes through at most d/4 + 4 roundings, so that it is off by at most
(d + 4) u m_i m; a term passes through at most N + 1 more, hence T = (N + d + 5) u R.

w q, the difference, the product with w and an end cost one rounding each, and q one,
so that phi = w (w q - 2 t) is off by at most

    w m ((d/4 + 9) u (w m) + 2 (T + 4 u |t| / m)),

where |t| / m is at most |s|, and |s| at most R. The compiled code takes d/4 + 12,
N + d + 12 and 12 for d/4 + 9, N + d + 9 and 10, and enlarges the sum by a factor
1 + 2^-10, which covers the second order and the roundings of the radius itself; d is
at most 2^10 for that. Underflow: the last factor w is taken times 2^64, exactly, which
makes every nonzero float32 weight normal; m is at least 2^-40 where v is not zero, and
2^-90 added inside the bracket exceeds what the underflow of sums and products comes
to: with tiles 2 d 2^-149 and 2 N d 2^-149 m, with products, where N is at most 64 and
a weight at most 2, 2 (2 d + 1) N 2^-149. The
last product and its radius are covered by 2^-120 where neither w nor v is zero. A
weight or a value of zero has power 0 and radius 0, so that the many zero weights of a
row tie exactly. The radius in float64 is that of T8 with T <= m R.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64

from empirical.kernels.batch import count_selections
from empirical.kernels.rows_torch import count_rows_torch
from geobounds import ArgumentError, HeadData, rank
from geobounds.integers import refuse_flush_to_zero
from geobounds.selection import SINK_POLICIES

compiled: Any
try:
    from empirical.kernels import rows_numba as compiled
except ModuleNotFoundError:  # numba is an extra
    compiled = None

__all__ = ["LayerKeys", "RowCounts", "as_array", "count_rows", "row_ranges"]

MISSING = -1
# Beyond these a float32 could overflow: norms, weights, keys, width.
_MOST_SQUARE, _MOST_WEIGHT, _MOST_KEYS, _MOST_WIDTH = 2.0**40, 2.0, 2**18, 2**10
# The products of more keys would take too much memory.
_MOST_PRODUCTS = 2048


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Counts by policy, head, row and N; -1 where N leaves no token unselected.

    Attributes
    ----------
    false_positives, false_negatives, inversions : ndarray of int32
        Shape (n_policies, n_heads, n_rows, n_n).
    boundary_tie : ndarray of bool
        The same shape; see ``Selection``.
    n_candidates : ndarray of int64, shape (n_policies, n_rows)
        |C|.
    settled : int
        How many of the entries geobounds had to settle.
    """

    false_positives: np.ndarray
    false_negatives: np.ndarray
    inversions: np.ndarray
    boundary_tie: np.ndarray
    n_candidates: np.ndarray
    settled: int


class LayerKeys:
    """The values of one layer, made ready once for all its rows.

    Parameters
    ----------
    values : tensor or ndarray, shape (n_kv_heads, n_key, d_head)
        Value vectors of every KV head, in any float type.
    """

    def __init__(self, values: Any) -> None:
        self.given = values
        self.array = as_array(values)
        self.narrow = self.array.dtype == np.float32

    @cached_property
    def width(self) -> int:
        """Number of coordinates, rounded up to a multiple of four."""
        return 4 * ((int(self.array.shape[2]) + 3) // 4)

    @cached_property
    def padded(self) -> np.ndarray:
        """Values with zero coordinates up to ``width``, contiguous."""
        n_kv_heads, n_key, d_head = self.array.shape
        padded = np.zeros((n_kv_heads, n_key, self.width), np.float32)
        padded[:, :, :d_head] = self.array
        return padded

    @cached_property
    def tiles(self) -> np.ndarray:
        """Values by tile, coordinate and key; zero beyond the last key."""
        tile = compiled.TILE
        n_kv_heads, n_key, width = self.padded.shape
        n_tiles = -(-n_key // tile)
        whole = np.zeros((n_kv_heads, n_tiles * tile, width), np.float32)
        whole[:, :n_key] = self.padded
        by_tile = whole.reshape(n_kv_heads, n_tiles, tile, width).transpose(0, 1, 3, 2)
        return np.ascontiguousarray(by_tile).reshape(n_kv_heads, -1)

    @cached_property
    def _products(self) -> np.ndarray:
        """<v_i, v_j> of all keys in float32; zero beyond the last key."""
        n_kv_heads, n_key, _ = self.array.shape
        tile = compiled.TILE
        found = np.empty((n_kv_heads, n_key, -(-n_key // tile) * tile), np.float32)
        compiled.fill_products(self.padded, self.tiles, found)
        return found

    def products(self, n_rows: int) -> np.ndarray:
        """<v_i, v_j>, or nothing where so few rows, or so many keys, do not pay."""
        n_kv_heads, n_key, _ = self.array.shape
        if n_key <= _MOST_PRODUCTS and 16 * n_rows >= n_key:
            return self._products
        return np.empty((n_kv_heads, 0, 0), np.float32)

    @cached_property
    def squares64(self) -> np.ndarray:
        """||v||^2 in float64, rounded; zero beyond the last key."""
        n_kv_heads, n_key, _ = self.array.shape
        length = -(-n_key // compiled.TILE) * compiled.TILE
        found = np.zeros((n_kv_heads, length))
        wide = self.array.astype(np.float64)
        found[:, :n_key] = np.einsum("hkd,hkd->hk", wide, wide)
        return found

    @cached_property
    def norms64(self) -> np.ndarray:
        """||v||, rounded up: d + 2 roundings are far below the factor."""
        norms: np.ndarray = np.sqrt(self.squares64) * (1 + 2.0**-30)
        return norms

    @cached_property
    def squares(self) -> np.ndarray:
        """||v||^2 in float32."""
        return self.squares64.astype(np.float32)

    @cached_property
    def norms(self) -> np.ndarray:
        """||v|| rounded up to float32, at least 2^-40 where v is not zero."""
        up = np.nextafter(self.norms64.astype(np.float32), np.float32(np.inf))
        up = np.maximum(up, np.float32(2.0**-40))
        norms: np.ndarray = np.where(self.squares64 > 0, up, np.float32(0))
        return norms

    @cached_property
    def moderate(self) -> bool:
        """Whether nothing can leave the range of float32."""
        _, n_key, d_head = self.array.shape
        with np.errstate(all="ignore"):
            return bool(
                self.narrow
                and n_key <= _MOST_KEYS
                and d_head <= _MOST_WIDTH
                and (self.squares64 <= _MOST_SQUARE).all()
            )

    @cached_property
    def has_tiny(self) -> bool:
        """Whether a nonzero norm was raised, so that it ranks no contribution."""
        return bool(((self.squares64 > 0) & (self.squares64 < 2.0**-78)).any())


def count_rows(
    weights: Any,
    keys: LayerKeys,
    visible: Any,
    ns: Sequence[int],
    *,
    sink: int | None = 0,
    ranking: str = "weight",
    policies: Sequence[str] = ("keep",),
    fast: bool = True,
) -> RowCounts:
    """Count the false positives, false negatives and inversions of many rows.

    Parameters
    ----------
    weights : tensor or ndarray, shape (n_heads, n_rows, n_key)
        Attention weights, in any float type; head h reads KV head
        ``h // (n_heads // n_kv_heads)``.
    keys : LayerKeys
        The values of the layer.
    visible : tensor or ndarray of bool, shape (n_rows, n_key)
        Which keys each row sees.
    ns : sequence of int
        Numbers of selected tokens, different, at least 1.
    sink : int or None
        Key of the sink.
    ranking : "weight" or "contribution"
        What tokens are selected by; see ``rank``.
    policies : sequence of str
        What the sink may do: "keep", "drop" or "compete".
    fast : bool
        Use the compiled code where it is installed.

    Returns
    -------
    RowCounts
        Equal to ``measure``'s of every row, policy and N, Euclidean.

    Raises
    ------
    ArgumentError
        An unknown ranking or policy, or an N below 1 or twice.
    HeadDataError
        Shapes that do not fit, or a row that cannot be used.

    Notes
    -----
    Statements T1 and T8; the radii are derived in the module's docstring.
    """
    _check(ns, ranking, policies)
    refuse_flush_to_zero()
    rows = _Rows(
        as_array(weights), keys, as_array(visible), sink, ranking, tuple(policies)
    )
    grid = np.array(sorted(ns), dtype=np.int64)
    shape = (len(policies), *rows.weights.shape[:2], len(grid))
    counts = np.full((3, *shape), MISSING, dtype=np.int32)
    flags = np.zeros(shape, dtype=np.uint8)
    usable = (grid <= rows.n_candidates[:, :, None] - 1)[:, None]
    usable = np.broadcast_to(usable, shape)
    if fast and compiled is not None:
        open_ = rows.compiled(grid, counts, flags)
    elif keys.narrow and rows.weights.dtype == np.float32:
        open_ = rows.torch(grid, counts, flags)
    else:
        open_ = np.ones(shape, dtype=bool)
    open_ &= usable
    rows.settle(grid, counts, flags, open_)
    back = np.argsort(np.argsort(ns))
    tied = ((flags & 1) > 0) & usable
    fp, fn, inversions = counts[..., back]
    settled = int(open_.sum())
    return RowCounts(fp, fn, inversions, tied[..., back], rows.n_candidates, settled)


def _check(ns: Sequence[int], ranking: str, policies: Sequence[str]) -> None:
    if not len(ns) or min(ns) < 1 or len(set(ns)) < len(ns):
        msg = f"count_rows: ns must be different numbers from 1 on, got ns={ns}."
        raise ArgumentError(msg)
    if ranking not in ("weight", "contribution"):
        msg = (
            'count_rows: ranking must be "weight" or "contribution", '
            f"got ranking={ranking!r}."
        )
        raise ArgumentError(msg)
    for policy in policies:
        if policy not in SINK_POLICIES:
            msg = (
                f"count_rows: policies must be among {', '.join(SINK_POLICIES)}, "
                f"got {policy!r}."
            )
            raise ArgumentError(msg)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of a layer, and the ways to count them."""

    weights: np.ndarray
    keys: LayerKeys
    visible: Bool[np.ndarray, "n_rows n_key"]
    sink: int | None
    ranking: str
    policies: tuple[str, ...]

    def __post_init__(self) -> None:
        n_heads, n_rows, n_key = self.weights.shape
        n_kv_heads = len(self.keys.array)
        fits = self.visible.shape == (n_rows, n_key)
        if not fits or self.keys.array.shape[1] != n_key or n_heads % n_kv_heads:
            msg = (
                "count_rows: weights, values and visible must fit, got shapes "
                f"{self.weights.shape}, {self.keys.array.shape}, {self.visible.shape}."
            )
            raise ArgumentError(msg)

    @cached_property
    def n_visible(self) -> Int64[np.ndarray, " n_rows"]:
        """Number of visible keys of each row."""
        visible: np.ndarray = np.count_nonzero(self.visible, axis=1)
        return visible

    @cached_property
    def n_candidates(self) -> Int64[np.ndarray, "n_policies n_rows"]:
        """|C| by policy and row."""
        lost = np.zeros(len(self.visible), dtype=np.int64)
        if self.sink is not None:
            lost += self.visible[:, self.sink]
        rows = [self.n_visible - (lost if p == "drop" else 0) for p in self.policies]
        candidates: np.ndarray = np.stack(rows)
        return candidates

    def compiled(self, grid: Any, counts: Any, flags: Any) -> np.ndarray:
        """Count by the compiled code; return which entries are open."""
        keys = self.keys
        if not keys.moderate or self.weights.dtype != np.float32:
            return np.ones(flags.shape, dtype=bool)
        if self.ranking == "contribution" and keys.has_tiny:
            return np.ones(flags.shape, dtype=bool)
        # Rows with holes stay as they are here and are settled one by one.
        starts, stops, whole = row_ranges(self.visible)
        good = np.zeros(self.weights.shape[:2], dtype=bool)
        compiled.count_rows(
            np.ascontiguousarray(self.weights),
            np.where(whole, starts, 0),
            np.where(whole, stops, 0),
            keys.tiles,
            keys.products(self.weights.shape[1]),
            keys.padded,
            keys.norms,
            keys.squares,
            keys.squares64,
            keys.norms64,
            -1 if self.sink is None else self.sink,
            self.ranking == "contribution",
            grid,
            np.array([SINK_POLICIES.index(p) for p in self.policies], dtype=np.int64),
            _MOST_WEIGHT,
            counts,
            flags,
            good,
        )
        found: np.ndarray = (flags & (compiled.OPEN | compiled.OPEN_SET)) > 0
        return found | ~good[None, :, :, None]

    def torch(self, grid: Any, counts: Any, flags: Any) -> np.ndarray:
        """Count by torch in float64; return which entries are open."""
        open_: np.ndarray = count_rows_torch(
            torch.from_numpy(self.weights),
            torch.from_numpy(self.keys.array),
            torch.from_numpy(self.visible),
            grid.tolist(),
            self.sink,
            self.ranking,
            self.policies,
            counts,
            flags,
        )
        return open_

    def settle(self, grid: Any, counts: Any, flags: Any, open_: np.ndarray) -> None:
        """Let geobounds count what is open."""
        group = self.weights.shape[0] // len(self.keys.array)
        for h, r in np.argwhere(open_.any(axis=(0, 3))).tolist():
            head = HeadData(
                self.weights[h, r],
                self.keys.array[h // group],
                visible=self.visible[r],
                sink=self.sink,
            )
            for p, policy in enumerate(self.policies):
                which = np.flatnonzero(open_[p, h, r])
                if not len(which):
                    continue
                order = rank(head, -1, self.ranking, policy)
                selections = [order.select(int(n)) for n in grid[which]]
                counts[:, p, h, r, which] = count_selections(head, selections).T
                flags[p, h, r, which] = [s.boundary_tie for s in selections]


def row_ranges(visible: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the keys each row sees begin and end, and if none is missing."""
    starts = np.argmax(visible, axis=1)
    stops = visible.shape[1] - np.argmax(visible[:, ::-1], axis=1)
    return starts, stops, stops - starts == np.count_nonzero(visible, axis=1)


def as_array(given: Any) -> np.ndarray:
    """Return an array of the exact numbers: half types as float32."""
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        if given.dtype in (torch.bfloat16, torch.float16):
            given = given.float()
        given = given.numpy()
    array: np.ndarray = np.asarray(given)
    return array.astype(np.float32) if array.dtype == np.float16 else array
