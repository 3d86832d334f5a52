"""HeadData: one attention head at one or more queries, validated once (D1, D2).

Everything downstream relies on the checks made here: weights are finite and
non-negative on visible keys and exactly zero on hidden ones, values are finite
wherever some query sees them, and every array holds the exact numbers it was given.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64

from geobounds import headfile
from geobounds.arrays import (
    frozen,
    json_data,
    positions_of,
    real_array,
    row_problems,
    sink_index,
    value_vectors,
    visibility,
    weights_shape_message,
)
from geobounds.errors import ArgumentError, HeadDataError
from geobounds.integers import common_integers

__all__ = ["HeadData", "require_head", "split_heads"]


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
    dtype : "bfloat16", optional
        Says that weights and values are uint16 arrays of bfloat16 bits; other types
        say what they are.

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
        dtype: str | None = None,
    ) -> None:
        array, self.dtype_name = real_array(weights, "weights", dtype=dtype)
        if array.ndim not in (1, 2):
            raise HeadDataError(weights_shape_message(array.shape))
        rows: Float[np.ndarray, "n_query n_key"] = np.atleast_2d(array)
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            msg = (
                "HeadData: weights must hold at least one query and one key, "
                f"got shape {array.shape}."
            )
            raise HeadDataError(msg)
        self.weights = frozen(rows)
        self.query_positions = positions_of(query_positions, *rows.shape)
        self.visible: Bool[np.ndarray, "n_query n_key"] = frozen(
            visibility(visible, array.ndim, self.query_positions, rows.shape)
        )
        self.sink = sink_index(sink, rows.shape[1])
        self.meta = json_data(meta)
        self.values: Float[np.ndarray, "n_key d_head"] | None = None
        self.value_dtype_name: str | None = None
        if values is not None:
            vectors, self.value_dtype_name = real_array(values, "values", dtype=dtype)
            self.values = frozen(value_vectors(vectors, self.visible))
        self.problems = row_problems(self.weights, self.visible)
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
    def power_scales64(self) -> Float64[np.ndarray, " n_query"]:
        """Upper bound on w^2 q + 2 w T (T8) over all keys and N of each query, rounded.

        With the greatest weight w and norm m: w m^2 (w + 2 sum of all weights).
        """
        with np.errstate(all="ignore"):
            shown = np.where(self.visible, self.weights, 0).astype(np.float64)
            greatest, total = shown.max(axis=1), shown.sum(axis=1)
            squares: np.ndarray = greatest * self.squared_norms64.max()
            return squares * (greatest + 2 * total)

    @property
    def is_narrow(self) -> bool:
        """Whether all numbers have at most 32 bits: their products cannot underflow."""
        return max(self.weights.itemsize, self.require_values("head").itemsize) <= 4

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

    @cached_property
    def integer_squared_norms(self) -> Any:
        """Squared norms of ``integer_values``, exact, in units of its square."""
        values, _ = self.integer_values
        return (values * values).sum(axis=1)

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.n_query

    def __iter__(self) -> Iterator["HeadData"]:
        """Yield every query as a head of its own; one with a problem raises."""
        return (self[query] for query in range(self.n_query))

    def __getitem__(self, query: int) -> "HeadData":
        """Return one query as a head of its own."""
        row = self.row_index(query, "HeadData")
        head = HeadData(
            self.weights[row],
            self.values,
            visible=self.visible[row],
            query_positions=self.query_positions[row : row + 1],
            sink=self.sink,
            meta=self.meta,
        )
        head._take_names(self.dtype_name, self.value_dtype_name)
        return head

    def with_meta(self, meta: Mapping[str, Any]) -> "HeadData":
        """Return the same head with other ``meta``."""
        head = HeadData(
            self.weights,
            self.values,
            visible=self.visible,
            query_positions=self.query_positions,
            sink=self.sink,
            meta=meta,
        )
        head._take_names(self.dtype_name, self.value_dtype_name)
        return head

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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that make up the head, by the names its files use."""
        found = {
            "weights": self.weights,
            "visible": self.visible,
            "query_positions": self.query_positions,
        }
        if self.values is not None:
            found["values"] = self.values
        return found

    def stored(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays as (dtype, shape, little-endian bytes), and what files add.

        The form in which ``geobounds.verify``, which knows no HeadData, reads a head.
        """
        arrays = {
            name: (
                array.dtype.name,
                array.shape,
                array.astype(array.dtype.newbyteorder("<")).tobytes(),
            )
            for name, array in self.arrays().items()
        }
        return arrays, self._extra()

    def _extra(self) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "meta": self.meta,
            # bfloat16 is held as float32 here; files hold its upper half and this tag.
            "dtypes": [self.dtype_name, self.value_dtype_name],
        }

    def save(self, path: str | Path) -> None:
        """Write the head to ``path`` (.npz or .safetensors), whole or not at all."""
        headfile.write(Path(path), self.arrays(), self._extra())

    @classmethod
    def load(cls, path: str | Path) -> "HeadData":
        """Read a head written by ``save``; pickled arrays are never read.

        Raises
        ------
        HeadDataError
            The file is missing, is not such a file, or holds no valid head.
        """
        arrays, extra = headfile.read(Path(path))
        try:
            head = cls(
                arrays["weights"],
                arrays.get("values"),
                visible=arrays.get("visible"),
                query_positions=arrays.get("query_positions"),
                sink=extra.get("sink", 0),
                meta=extra.get("meta"),
            )
            weights, values = extra.get("dtypes", [None, None])
        except (TypeError, ValueError) as error:
            if isinstance(error, HeadDataError):
                raise
            msg = f"HeadData: {path} must hold a head, got a field amiss ({error})."
            raise HeadDataError(msg) from error
        head._take_names(weights, values)
        return head

    def _take_names(self, weights: object, values: object) -> None:
        """Keep the name of the type the numbers came in, where it was widened."""
        for attribute, name in (("dtype_name", weights), ("value_dtype_name", values)):
            # A file may say so of other types; only float32 holds widened numbers.
            if name == "bfloat16" and getattr(self, attribute) == "float32":
                setattr(self, attribute, name)

    def __repr__(self) -> str:
        """Shapes in words."""
        queries = "1 query" if self.n_query == 1 else f"{self.n_query} queries"
        d_head = "no values" if self.values is None else f"d_head={self.d_head}"
        return (
            f"HeadData({queries}, {self.n_key} keys, {d_head}, {self.dtype_name}, "
            f"sink={self.sink})"
        )


def require_head(given: Any, function: str) -> HeadData:
    """Return ``given`` if it is a head, or refuse it in the name of ``function``."""
    if not isinstance(given, HeadData):
        msg = f"{function}: head must be a HeadData, got {type(given).__name__}."
        raise TypeError(msg)
    return given


def split_heads(
    weights: Any, values: Any, *, dtype: str | None = None, **options: Any
) -> list[HeadData]:
    """Split one layer into its heads, each with the values of its KV head.

    Parameters
    ----------
    weights : array_like of shape (n_heads, n_query, n_key) or (n_heads, n_key)
        Attention weights of every query head.
    values : array_like of shape (n_kv_heads, n_key, d_head)
        Value vectors of every KV head; n_kv_heads divides n_heads.
    dtype : "bfloat16", optional
        As for HeadData.
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
    rows, dtype_name = real_array(weights, "weights", "split_heads", dtype)
    vectors, value_dtype_name = real_array(values, "values", "split_heads", dtype)
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
    for head in heads:
        head._take_names(dtype_name, value_dtype_name)
    return heads
