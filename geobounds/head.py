"""HeadData: one attention head at one or more queries, validated once (D1, D2).

Everything downstream relies on the checks made here: weights are finite and
non-negative on visible keys and exactly zero on hidden ones, values are finite
wherever some query sees them, and every array holds the exact numbers it was given.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from geobounds import headfile
from geobounds.errors import ArgumentError, HeadDataError
from geobounds.integers import common_integers

__all__ = ["HeadData", "split_heads"]

_FLOATS = ("float16", "float32", "float64")
_LARGEST_EXACT_INTEGER = 2**53


class HeadData:
    """One attention head: weights of one or more queries, and the values they read.

    Parameters
    ----------
    weights : array_like of shape (n_query, n_key) or (n_key,)
        Attention weights after the softmax, one row a query. Non-negative on visible
        keys and exactly 0 on hidden ones. A row need not sum to 1.
    values : array_like of shape (n_key, d_head), optional
        Value vectors that this head reads (with grouped queries: those of its KV
        head). None keeps weights only: nothing that needs geometry can be measured.
    visible : "causal", "all" or bool array shaped like weights, optional
        Which keys the mask lets each query see. Required for more than one row.
    query_positions : array_like of int, shape (n_query,), optional
        Position of each query among the keys. Default: the last n_query positions.
    sink : int or None
        Key index of the attention sink, or None if the head has none.
    meta : mapping, optional
        What produced the head (model, layer, head, text). Must be JSON data.

    Raises
    ------
    HeadDataError
        A shape, a sign, a NaN or a mask that cannot be a head. Where only some rows
        are bad the head is kept, ``problems`` names those rows, and using one raises.
    TypeError
        Not an array of real numbers (a tuple of layers, complex or object arrays).

    Notes
    -----
    float16, float32 and float64 are kept as they are; bfloat16 is widened to float32
    and integers to float64, both without loss. Arrays are copied and read-only.

    Examples
    --------
    >>> head = HeadData([0.5, 0.3, 0.2], [[1.0], [1.0], [-1.0]])
    >>> head
    HeadData(1 query, 3 keys, d_head=1, float64, sink=0)
    """

    def __init__(
        self,
        weights: Any,
        values: Any = None,
        *,
        visible: Any = None,
        query_positions: Any = None,
        sink: int | None = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        array, self.dtype_name = _real_array(weights, "weights")
        if array.ndim not in (1, 2):
            raise HeadDataError(_weights_shape_message(array.shape))
        rows: Float[np.ndarray, "n_query n_key"] = np.atleast_2d(array)
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            msg = (
                "HeadData: weights must hold at least one query and one key, "
                f"got shape {array.shape}."
            )
            raise HeadDataError(msg)
        self.weights = _frozen(rows)
        self.query_positions = _positions(query_positions, *rows.shape)
        self.visible: Bool[np.ndarray, "n_query n_key"] = _frozen(
            _visibility(visible, array.ndim, self.query_positions, rows.shape)
        )
        self.sink = _sink(sink, rows.shape[1])
        self.meta = _json_data(meta)
        self.values: Float[np.ndarray, "n_key d_head"] | None = None
        if values is not None:
            vectors, self.value_dtype_name = _real_array(values, "values")
            self.values = _frozen(_values(vectors, self.visible))
        self.problems = _row_problems(self.weights, self.visible)
        if len(self.problems) == self.n_query:
            first = self.problems[0]
            msg = f"HeadData: {first}" + (
                f" (and {self.n_query - 1} more rows)." if self.n_query > 1 else "."
            )
            raise HeadDataError(msg)

    @property
    def n_query(self) -> int:
        """Number of queries (rows of ``weights``)."""
        return int(self.weights.shape[0])

    @property
    def n_key(self) -> int:
        """Number of keys (columns of ``weights``)."""
        return int(self.weights.shape[1])

    @property
    def d_head(self) -> int:
        """Width of a value vector; raises HeadDataError without values."""
        return int(self.require_values("d_head").shape[1])

    @property
    def mass(self) -> Float64[np.ndarray, " n_query"]:
        """Sum of the weights of each query; NaN where the row cannot be used."""
        shown = np.where(self.visible, self.weights, 0)
        total: np.ndarray = shown.sum(axis=1, dtype=np.float64)
        total[list(self.problems)] = np.nan
        return total

    def require_values(self, function: str) -> Float[np.ndarray, "n_key d_head"]:
        """Return the values, or refuse in the name of ``function``."""
        if self.values is None:
            msg = (
                f"{function}: values must be given, got values=None. "
                "This head holds weights only; build it with its value vectors."
            )
            raise HeadDataError(msg)
        return self.values

    def row_index(self, query: int, function: str) -> int:
        """Return ``query`` as a non-negative row index; refuse a row with a problem."""
        if isinstance(query, bool) or not isinstance(query, (int, np.integer)):
            msg = f"{function}: query must be an int, got query={query!r}."
            raise TypeError(msg)
        if not -self.n_query <= query < self.n_query:
            msg = (
                f"{function}: query must lie between {-self.n_query} and "
                f"{self.n_query - 1}, got query={query}."
            )
            raise ArgumentError(msg)
        index = int(query) % self.n_query
        if index in self.problems:
            msg = f"{function}: {self.problems[index]}."
            raise HeadDataError(msg)
        return index

    @cached_property
    def values64(self) -> Float64[np.ndarray, "n_key d_head"]:
        """Values as float64, exact; rows no query sees are zero."""
        seen = np.atleast_1d(self.visible.any(axis=0))[:, None]
        exact: np.ndarray = np.where(seen, self.require_values("values64"), 0)
        return exact.astype(np.float64)

    @cached_property
    def abs_values64(self) -> Float64[np.ndarray, "n_key d_head"]:
        """Absolute values of ``values64``."""
        return np.abs(self.values64)

    @cached_property
    def squared_norms64(self) -> Float64[np.ndarray, " n_key"]:
        """Squared norms of ``values64`` as float64 dot products, rounded."""
        with np.errstate(all="ignore"):
            squares: np.ndarray = np.einsum("kd,kd->k", self.values64, self.values64)
        return squares

    @cached_property
    def abs_sums64(self) -> Float64[np.ndarray, " n_key"]:
        """Sum of ``abs_values64`` over the axis of d_head, rounded."""
        with np.errstate(all="ignore"):
            sums: np.ndarray = self.abs_values64.sum(axis=1)
        return sums

    @cached_property
    def integer_values(self) -> tuple[Any, int]:
        """Values as exact integers with a common exponent; see common_integers."""
        return common_integers(self.values64)

    def __getitem__(self, query: int) -> "HeadData":
        """Return one query as a head of its own."""
        row = self.row_index(query, "HeadData")
        return HeadData(
            self.weights[row],
            self.values,
            visible=self.visible[row],
            query_positions=self.query_positions[row : row + 1],
            sink=self.sink,
            meta=self.meta,
        )

    def digest(self, query: int = -1) -> str:
        """SHA-256, in hex, of the exact data that one query of this head reads.

        Notes
        -----
        Hashed: a canonical JSON header (dtypes, shapes, sink, query position), then
        the row of weights, the row of ``visible`` and the values as little-endian
        bytes. The same for a head and for its one-row slice.
        """
        row = self.row_index(query, "digest")
        parts: dict[str, np.ndarray] = {
            "weights": self.weights[row],
            "visible": self.visible[row].astype(np.uint8),
        }
        if self.values is not None:
            parts["values"] = self.values
        header = {
            "format": "geobounds-head-1",
            "query_position": int(self.query_positions[row]),
            "sink": self.sink,
        } | {k: [v.dtype.name, list(v.shape)] for k, v in parts.items()}
        text = json.dumps(header, sort_keys=True, separators=(",", ":"))
        hasher = hashlib.sha256(text.encode())
        for array in parts.values():
            hasher.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return hasher.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the head to ``path`` (.npz or .safetensors), whole or not at all."""
        arrays = {
            "weights": self.weights,
            "visible": self.visible,
            "query_positions": self.query_positions,
        }
        if self.values is not None:
            arrays["values"] = self.values
        headfile.write(Path(path), arrays, {"sink": self.sink, "meta": self.meta})

    @classmethod
    def load(cls, path: str | Path) -> "HeadData":
        """Read a head written by ``save``; pickled arrays are never read.

        Raises
        ------
        HeadDataError
            The file is missing, is not such a file, or holds no valid head.
        """
        arrays, extra = headfile.read(Path(path))
        return cls(
            arrays.pop("weights"),
            arrays.pop("values", None),
            **arrays,
            sink=extra.get("sink", 0),
            meta=extra.get("meta"),
        )

    def __repr__(self) -> str:
        """Shapes in words."""
        queries = "1 query" if self.n_query == 1 else f"{self.n_query} queries"
        d_head = "no values" if self.values is None else f"d_head={self.d_head}"
        return (
            f"HeadData({queries}, {self.n_key} keys, {d_head}, {self.dtype_name}, "
            f"sink={self.sink})"
        )


def split_heads(weights: Any, values: Any, **options: Any) -> list[HeadData]:
    """Split one layer into its heads, each with the values of its KV head.

    Parameters
    ----------
    weights : array_like of shape (n_heads, n_query, n_key) or (n_heads, n_key)
        Attention weights of every query head.
    values : array_like of shape (n_kv_heads, n_key, d_head)
        Value vectors of every KV head; n_kv_heads divides n_heads.
    **options
        ``visible``, ``query_positions``, ``sink``, ``meta`` as for HeadData, the
        same for every head.

    Returns
    -------
    list of HeadData
        Head h reads KV head ``h // (n_heads // n_kv_heads)``.

    Raises
    ------
    HeadDataError
        A batch axis is left, or n_kv_heads does not divide n_heads.

    Examples
    --------
    >>> heads = split_heads([[0.5, 0.5]] * 4, [[[0.0], [0.0]], [[1.0], [1.0]]])
    >>> [float(head.values[0, 0]) for head in heads]
    [0.0, 0.0, 1.0, 1.0]
    """
    rows, dtype_name = _real_array(weights, "weights", "split_heads")
    vectors, value_dtype_name = _real_array(values, "values", "split_heads")
    for name, array, axes, shape in (
        ("weights", rows, (2, 3), "(n_heads, n_query, n_key) or (n_heads, n_key)"),
        ("values", vectors, (3,), "(n_kv_heads, n_key, d_head)"),
    ):
        if array.ndim not in axes:
            batch = (
                f" Axis 0 (length {array.shape[0]}) looks like a batch axis: "
                f"pass {name}[b] for one batch element b."
                if array.ndim == max(axes) + 1
                else ""
            )
            msg = (
                f"split_heads: {name} must have shape {shape}, "
                f"got shape {array.shape}.{batch}"
            )
            raise HeadDataError(msg)
    n_heads, n_kv_heads = rows.shape[0], vectors.shape[0]
    if n_kv_heads == 0 or n_heads % n_kv_heads:
        msg = (
            "split_heads: the number of KV heads must divide the number of heads, "
            f"got {n_heads} heads and {n_kv_heads} KV heads."
        )
        raise HeadDataError(msg)
    group = n_heads // n_kv_heads
    heads = [HeadData(rows[h], vectors[h // group], **options) for h in range(n_heads)]
    for head in heads:  # bfloat16 was widened above; the heads still say so
        head.dtype_name, head.value_dtype_name = dtype_name, value_dtype_name
    return heads


def _frozen(array: np.ndarray) -> np.ndarray:
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def _real_array(
    data: Any, name: str, function: str = "HeadData"
) -> tuple[np.ndarray, str]:
    """Return the data as float16/32/64 without loss, and the name of its own dtype."""
    if isinstance(data, (tuple, list)):
        _refuse_nested_arrays(data, name, function)
    if hasattr(data, "detach"):  # a torch tensor, without importing torch
        data = data.detach().cpu()
        if str(data.dtype) == "torch.bfloat16":
            return data.float().numpy(), "bfloat16"
        data = data.numpy()
    try:
        array = np.asarray(data)
    except ValueError as error:  # ragged lists
        msg = f"{function}: {name} must be one rectangular array, got a ragged list."
        raise HeadDataError(msg) from error
    if array.dtype.name == "bfloat16":  # ml_dtypes
        return array.astype(np.float32), "bfloat16"
    if array.dtype.kind in "iub" and array.size:
        largest = max(abs(int(array.max())), abs(int(array.min())))
        if largest > _LARGEST_EXACT_INTEGER:
            msg = (
                f"{function}: {name} must be exact as float64, got the integer "
                f"{largest} > 2**53."
            )
            raise HeadDataError(msg)
    if array.dtype.kind in "iub" or array.size == 0:
        return array.astype(np.float64), "float64"
    if array.dtype.name not in _FLOATS:
        msg = (
            f"{function}: {name} must be float16, bfloat16, float32 or float64, "
            f"got dtype {array.dtype}."
        )
        raise TypeError(msg)
    return array.astype(array.dtype.newbyteorder("=")), array.dtype.name


def _refuse_nested_arrays(data: Iterable[Any], name: str, function: str) -> None:
    leaf: Any = data
    depth = 0
    while isinstance(leaf, (tuple, list)) and leaf:
        leaf, depth = leaf[0], depth + 1
    if getattr(leaf, "ndim", 0):
        levels = "tuple" if depth == 1 else f"tuple of tuples ({depth} levels)"
        msg = (
            f"{function}: {name} must be one array, got a {levels} of arrays of shape "
            f"{tuple(leaf.shape)}. Models return one array per layer"
            + (" inside one tuple per generated token" if depth > 1 else "")
            + f": index down to one layer and one head, such as {name}"
            + "[step]" * (depth - 1)
            + "[layer][batch, head]."
        )
        raise TypeError(msg)


def _weights_shape_message(shape: tuple[int, ...]) -> str:
    named = {
        3: f"Axis 0 (length {shape[0] if shape else 0}) looks like a head axis: "
        "pass weights[h], or use split_heads.",
        4: f"Axis 0 (length {shape[0] if shape else 0}) looks like a batch axis and "
        f"axis 1 (length {shape[1] if len(shape) > 1 else 0}) like a head axis: pass "
        "weights[b, h], or use split_heads(weights[b], values[b]).",
    }
    return (
        "HeadData: weights must have shape (n_query, n_key) or (n_key,), "
        f"got shape {shape}. {named.get(len(shape), '')}"
    ).rstrip()


def _positions(given: Any, n_query: int, n_key: int) -> Int[np.ndarray, " n_query"]:
    if given is None:
        return _frozen(np.arange(n_query) + max(n_key - n_query, 0))
    positions = np.asarray(given)
    if positions.dtype.kind not in "iu":
        msg = (
            f"HeadData: query_positions must be integers, got dtype {positions.dtype}."
        )
        raise TypeError(msg)
    if positions.shape != (n_query,):
        msg = (
            f"HeadData: query_positions must have shape ({n_query},), "
            f"got shape {positions.shape}."
        )
        raise HeadDataError(msg)
    if positions.min() < 0:
        msg = (
            "HeadData: query_positions must be non-negative, "
            f"got {int(positions.min())}."
        )
        raise HeadDataError(msg)
    return _frozen(positions.astype(np.int64))


def _visibility(
    given: Any, weights_ndim: int, positions: np.ndarray, shape: tuple[int, int]
) -> Bool[np.ndarray, "n_query n_key"]:
    if given is None:
        if shape[0] > 1:
            msg = (
                f"HeadData: visible must be given for {shape[0]} queries, got None. "
                'Pass "causal", "all" or a bool array: hidden keys are no candidates.'
            )
            raise HeadDataError(msg)
        return np.ones(shape, dtype=bool)
    if isinstance(given, str):
        if given == "all":
            return np.ones(shape, dtype=bool)
        if given == "causal":
            return np.arange(shape[1]) <= positions[:, None]
        msg = (
            f'HeadData: visible must be "causal", "all" or a bool array, got {given!r}.'
        )
        raise HeadDataError(msg)
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    mask = np.asarray(given)
    if mask.dtype != bool:
        msg = (
            f"HeadData: visible must be a bool array, got dtype {mask.dtype}. "
            "An additive mask becomes one by comparing: mask == 0."
        )
        raise TypeError(msg)
    if mask.ndim == 1 and shape[0] == 1:
        mask = mask[None]
    if mask.shape != shape:
        expected = shape if weights_ndim > 1 else shape[1:]
        msg = (
            f"HeadData: visible must have the shape of weights {expected}, "
            f"got shape {np.shape(given)}."
        )
        raise HeadDataError(msg)
    return mask


def _sink(sink: Any, n_key: int) -> int | None:
    if sink is None:
        return None
    if isinstance(sink, bool) or not isinstance(sink, (int, np.integer)):
        msg = f"HeadData: sink must be a key index or None, got sink={sink!r}."
        raise TypeError(msg)
    if not 0 <= sink < n_key:
        msg = (
            f"HeadData: sink must lie between 0 and {n_key - 1} ({n_key} keys), "
            f"got sink={sink}."
        )
        raise HeadDataError(msg)
    return int(sink)


def _json_data(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        text = json.dumps(dict(meta or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"HeadData: meta must be JSON data, got {meta!r:.60} ({error})."
        raise HeadDataError(msg) from error
    data: dict[str, Any] = json.loads(text)
    return data


def _values(
    vectors: np.ndarray, visible: np.ndarray
) -> Float[np.ndarray, "n_key d_head"]:
    n_key = visible.shape[1]
    if vectors.ndim != 2 or vectors.shape[0] != n_key or vectors.shape[1] == 0:
        msg = (
            f"HeadData: values must have shape ({n_key}, d_head) for {n_key} keys, "
            f"got shape {vectors.shape}."
        )
        raise HeadDataError(msg)
    bad = ~np.isfinite(vectors).all(axis=1) & visible.any(axis=0)
    if bad.any():
        key = int(np.argmax(bad))
        msg = f"HeadData: values must be finite, got NaN or infinity at key {key}."
        raise HeadDataError(msg)
    return vectors


def _row_problems(weights: np.ndarray, visible: np.ndarray) -> dict[int, str]:
    """Return the reason, by row, why a query cannot be used."""
    with np.errstate(invalid="ignore"):
        not_finite = ~np.isfinite(weights) & visible
        negative = (weights < 0) & visible
        on_hidden = (weights != 0) & ~visible  # NaN is not 0 either
        no_mass = ~((weights != 0) & visible).any(axis=1)
    problems: dict[int, str] = {}
    for bad, requirement in (
        (not_finite, "be finite"),
        (negative, "be non-negative"),
        (on_hidden, "be 0 on hidden keys"),
    ):
        for row in np.flatnonzero(bad.any(axis=1)):
            key = int(np.argmax(bad[row]))
            problems.setdefault(
                int(row),
                f"weights must {requirement}, got {weights[row, key]} "
                f"at query {row}, key {key}",
            )
    for row in np.flatnonzero(no_mass):
        seen = int(visible[row].sum())
        problems.setdefault(
            int(row),
            f"weights must have mass on a visible key, got none at query {row} "
            f"({seen} visible keys: a fully masked or padded row)",
        )
    return dict(sorted(problems.items()))
