"""The attention sink: where it is and how its value lies among the others.

Everything here is a float64 estimate that describes a head. Nothing is a bound.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from geobounds.errors import ArgumentError, HeadDataError
from geobounds.head import HeadData, require_head

__all__ = ["SinkGeometry", "find_sink", "sink_geometry"]


@dataclass(frozen=True)
class SinkGeometry:
    """Norm and direction of the sink's value; float64 estimates, not bounds.

    Attributes
    ----------
    sink : int
        The key described.
    n_other : int
        Number of other keys that some query sees.
    sink_norm : float
        Norm of the sink's value.
    median_norm : float
        Median norm of the other keys' values; NaN without other keys.
    norm_ratio : float
        ``median_norm / sink_norm``; infinity if the sink's norm is 0, NaN without
        other keys.
    mean_cosine, least_cosine, greatest_cosine : float
        Of the cosines between the sink's value and the other keys' values, zero
        vectors left out; NaN if none is left.
    """

    sink: int
    n_other: int
    sink_norm: float
    median_norm: float
    norm_ratio: float
    mean_cosine: float
    least_cosine: float
    greatest_cosine: float


def sink_geometry(head: HeadData, *, sink: int | None = None) -> SinkGeometry:
    """Describe the sink's value among the values of a head: estimates, not bounds.

    Parameters
    ----------
    head : HeadData
        A head with values.
    sink : int, optional
        Key index. Default: ``head.sink``.

    Returns
    -------
    SinkGeometry
        Over the keys that some query of the head sees, whatever their weights.

    Raises
    ------
    HeadDataError
        The head holds weights only, has no sink, or no query sees the sink.
    ArgumentError
        ``sink`` is no key index.

    Notes
    -----
    Rounding: plain float64, correct to some units of the last places. Vectors are
    scaled by powers of two first, so that squares neither over- nor underflow.

    Examples
    --------
    >>> found = sink_geometry(HeadData([0.5, 0.3, 0.2], [[3.0], [6.0], [-12.0]]))
    >>> found.sink_norm, found.median_norm, found.norm_ratio, found.mean_cosine
    (3.0, 9.0, 3.0, 0.0)
    """
    require_head(head, "sink_geometry").require_values("sink_geometry")
    seen = np.atleast_1d(head.visible.any(axis=0))
    key = _checked(head, sink, seen)
    others = np.flatnonzero(seen)
    others = others[others != key]
    units, norms = _units_and_norms(head.values64)
    sink_norm = float(norms[key])
    with np.errstate(all="ignore"):
        median = float(np.median(norms[others])) if others.size else np.nan
        ratio = float(np.divide(median, sink_norm))
        if sink_norm == 0 and others.size:
            ratio = np.inf
        nonzero = others[norms[others] > 0] if sink_norm > 0 else others[:0]
        cosines = np.clip(units[nonzero] @ units[key], -1, 1)
    if not cosines.size:
        cosines = np.array([np.nan])
    return SinkGeometry(
        sink=key,
        n_other=len(others),
        sink_norm=sink_norm,
        median_norm=median,
        norm_ratio=ratio,
        mean_cosine=float(cosines.mean()),
        least_cosine=float(cosines.min()),
        greatest_cosine=float(cosines.max()),
    )


def find_sink(head: HeadData) -> int:
    """Return the key that attracts the greatest mean weight from other positions.

    Parameters
    ----------
    head : HeadData
        One or more queries; values are not needed. ``head.sink`` is not looked at.

    Returns
    -------
    int
        Of a head with one row: the visible key of greatest weight. Otherwise: the key
        with the greatest mean weight over the usable queries that see it and stand
        at another position, among the keys that at least half as many queries see as
        see the most visible one. The smaller index on ties.

    Raises
    ------
    HeadDataError
        No usable query sees a key other than its own.

    Notes
    -----
    A description found from data, not a property of the model. Late keys of a causal
    window are left out: the few queries that see them would let one win by chance.
    Means are float64 estimates, and so are their ties.

    Examples
    --------
    >>> find_sink(HeadData([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3]],
    ...                    visible="causal"))
    0
    """
    counted = require_head(head, "find_sink").visible.copy()
    counted[list(head.problems)] = False
    if head.n_query > 1:
        counted &= head.query_positions[:, None] != np.arange(head.n_key)
    counts: Int[np.ndarray, " n_key"] = counted.sum(axis=0)
    if not counts.any():
        msg = (
            "find_sink: head must have a usable query that sees another position's "
            "key, got none. Every query sees only itself."
        )
        raise HeadDataError(msg)
    with np.errstate(all="ignore"):
        total: Float64[np.ndarray, " n_key"] = np.where(counted, head.weights, 0).sum(
            axis=0, dtype=np.float64
        )
        mean = np.where(2 * counts >= counts.max(), total / counts, -1)
    return int(np.argmax(mean))


def _checked(head: HeadData, sink: int | None, seen: np.ndarray) -> int:
    key = head.sink if sink is None else sink
    if key is None:
        msg = (
            "sink_geometry: sink must be a key index, got sink=None and a head "
            "without a sink. Pass one, such as find_sink(head)."
        )
        raise HeadDataError(msg)
    if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
        msg = f"sink_geometry: sink must be an int, got sink={key!r}."
        raise TypeError(msg)
    if not 0 <= key < head.n_key:
        msg = (
            f"sink_geometry: sink must lie between 0 and {head.n_key - 1} "
            f"({head.n_key} keys), got sink={key}."
        )
        raise ArgumentError(msg)
    if not seen[key]:
        msg = (
            "sink_geometry: sink must be visible to some query, "
            f"got sink={key}, hidden from all {head.n_query}."
        )
        raise HeadDataError(msg)
    return int(key)


def _units_and_norms(
    values: Float64[np.ndarray, "n_key d_head"],
) -> tuple[Float64[np.ndarray, "n_key d_head"], Float64[np.ndarray, " n_key"]]:
    """Return unit vectors (0 for zero vectors) and norms; 0 only for zero vectors."""
    _, exponents = np.frexp(np.abs(values).max(axis=1))
    scaled = np.ldexp(values, -exponents[:, None])  # largest entry in [1/2, 1)
    lengths = np.sqrt(np.einsum("kd,kd->k", scaled, scaled))
    units = scaled / np.where(lengths > 0, lengths, 1)[:, None]
    with np.errstate(all="ignore"):
        return units, np.ldexp(lengths, exponents)
