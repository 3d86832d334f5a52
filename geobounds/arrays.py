"""Turning what a caller gives into arrays of one head, or refusing it in one line."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from geobounds.errors import HeadDataError

__all__ = [
    "frozen",
    "given_array",
    "json_data",
    "positions_of",
    "real_array",
    "row_problems",
    "sink_index",
    "value_vectors",
    "visibility",
    "weights_shape_message",
]

_FLOATS = ("float16", "float32", "float64")
_LARGEST_EXACT_INTEGER = 2**53


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def given_array(data: Any, name: str, function: str = "HeadData") -> np.ndarray:
    """Return what numpy makes of the data; refuse ragged lists and masked arrays."""
    if isinstance(data, np.ma.MaskedArray):  # its mask would be lost
        msg = (
            f"{function}: {name} must be a plain array, got a masked array. "
            "Fill it, and pass the mask as visible."
        )
        raise TypeError(msg)
    try:
        return np.asarray(data)
    except ValueError as error:
        msg = f"{function}: {name} must be one rectangular array, got a ragged list."
        raise HeadDataError(msg) from error


def real_array(
    data: Any, name: str, function: str = "HeadData", dtype: str | None = None
) -> tuple[np.ndarray, str]:
    """Return the data as float16/32/64 without loss, and the name of its own dtype.

    ``dtype="bfloat16"`` says that uint16 numbers are the bits of bfloat16 ones.
    """
    if dtype is not None:
        found = given_array(data, name, function)
        if dtype != "bfloat16" or found.dtype.newbyteorder("=") != np.uint16:
            msg = (
                f'{function}: dtype must be "bfloat16" with uint16 arrays, or None, '
                f"got dtype={dtype!r} with {name} of {found.dtype}."
            )
            raise TypeError(msg)
        wide = np.asarray(found.astype(np.uint32) << 16)
        return wide.view(np.float32), dtype
    if isinstance(data, (tuple, list)):
        _refuse_nested_arrays(data, name, function)
    if hasattr(data, "detach"):  # a torch tensor, without importing torch
        data = data.detach().cpu()
        if str(data.dtype) == "torch.bfloat16":
            return data.float().numpy(), "bfloat16"
        try:
            data = data.numpy()
        except TypeError as error:  # a type that numpy does not have
            msg = (
                f"{function}: {name} must be float16, bfloat16, float32 or float64, "
                f"got dtype {data.dtype}."
            )
            raise TypeError(msg) from error
    array = given_array(data, name, function)
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


def weights_shape_message(shape: tuple[int, ...]) -> str:
    """Say which axis is one too many."""
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


def positions_of(given: Any, n_query: int, n_key: int) -> Int[np.ndarray, " n_query"]:
    """Return the position of each query among the keys; by default the last ones."""
    if given is None:
        return frozen(np.arange(n_query) + max(n_key - n_query, 0))
    positions = given_array(given, "query_positions")
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
    if positions.min() < 0 or positions.max() >= 2**62:
        worst = positions.min() if positions.min() < 0 else positions.max()
        msg = (
            "HeadData: query_positions must be non-negative and below 2**62, "
            f"got {int(worst)}."
        )
        raise HeadDataError(msg)
    return frozen(positions.astype(np.int64))


def visibility(
    given: Any, weights_ndim: int, positions: np.ndarray, shape: tuple[int, int]
) -> Bool[np.ndarray, "n_query n_key"]:
    """Return the mask as a bool array, from a word or from an array."""
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
    mask = given_array(given, "visible")
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


def sink_index(sink: Any, n_key: int) -> int | None:
    """Return the sink as a key index, or None."""
    if sink is None:
        return None
    if isinstance(sink, bool) or not isinstance(sink, (int, np.integer)):
        msg = f"HeadData: sink must be a key index or None, got sink={sink!r:.40}."
        raise TypeError(msg)
    if not 0 <= sink < n_key:
        msg = (
            f"HeadData: sink must lie between 0 and {n_key - 1} ({n_key} keys), "
            f"got sink={sink}."
        )
        raise HeadDataError(msg)
    return int(sink)


def json_data(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of ``meta`` as plain JSON data."""
    try:
        text = json.dumps(dict(meta or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"HeadData: meta must be JSON data, got {meta!r:.60} ({error})."
        raise HeadDataError(msg) from error
    except RecursionError as error:
        msg = "HeadData: meta must be JSON data, got lists or mappings nested too deep."
        raise HeadDataError(msg) from error
    data: dict[str, Any] = json.loads(text)
    return data


def value_vectors(
    vectors: np.ndarray, visible: np.ndarray
) -> Float[np.ndarray, "n_key d_head"]:
    """Return the values if they are finite wherever a query sees them."""
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


def row_problems(weights: np.ndarray, visible: np.ndarray) -> dict[int, str]:
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
