"""Numbers that describe a head: spread of its values, direction of its outputs.

All are float64 estimates; nothing here is a bound.
"""

from dataclasses import dataclass

import numpy as np

from geobounds import HeadData
from geobounds.cosines import UnitVectors

__all__ = ["ValueSpread", "alignments", "value_spread"]


@dataclass(frozen=True)
class ValueSpread:
    """Norms and cosines of the values that one query sees, the sink apart.

    Attributes
    ----------
    norm_mean, norm_sd, norm_least, norm_greatest : float
        Over the non-sink values; the length of a value is what it is.
    cosine_mean, cosine_sd, cosine_least, cosine_greatest : float
        Over pairs of distinct non-sink values that are not zero.
    sink_norm : float
        Norm of the sink's value.
    sink_cosine_sd, sink_cosine_least, sink_cosine_greatest : float
        Over the cosines between the sink's value and the others.
    """

    norm_mean: float
    norm_sd: float
    norm_least: float
    norm_greatest: float
    cosine_mean: float
    cosine_sd: float
    cosine_least: float
    cosine_greatest: float
    sink_norm: float
    sink_cosine_sd: float
    sink_cosine_least: float
    sink_cosine_greatest: float


def value_spread(head: HeadData, table: UnitVectors) -> ValueSpread:
    """Describe norms and cosines of the values of a head with one query.

    Parameters
    ----------
    head : HeadData
        A head with values and one query.
    table : UnitVectors
        ``cosine_table`` of this head.

    Returns
    -------
    ValueSpread
        What T4's regime takes to be constant or narrow. NaN where no value or pair
        is left.
    """
    norms = np.mean(table.float_norms(), axis=0)
    seen = np.asarray(head.visible[0])
    plain = seen.copy()
    has_sink = head.sink is not None and bool(seen[head.sink])
    if head.sink is not None:
        plain[head.sink] = False
    valued = np.flatnonzero(plain & ~table.zero)
    pairs = table.table[np.ix_(valued, valued)][np.triu_indices(len(valued), 1)]
    by_sink = np.empty(0)
    if has_sink and not table.zero[head.sink]:
        by_sink = table.table[head.sink][valued]
    sink_norm = float(norms[head.sink]) if has_sink else float("nan")
    sink = _spread(by_sink)
    return ValueSpread(*_spread(norms[plain]), *_spread(pairs), sink_norm, *sink[1:])


def alignments(head: HeadData) -> tuple[float, float]:
    """Return how an output points: mean cosine with the sink's and the own value.

    Parameters
    ----------
    head : HeadData
        A head with values and all its queries.

    Returns
    -------
    sink, current : float
        Means over the queries other than the sink of the cosine between z, the sum of
        all contributions, and the value of the sink or of the query's own position.
        Cosines with a zero vector are left out; NaN if none is left.
    """
    z = head.weights.astype(np.float64) @ head.values64
    positions = head.query_positions
    measured = np.ones(len(positions), dtype=bool)
    if head.sink is not None:
        measured = positions != head.sink
    measured &= (positions >= 0) & (positions < head.n_key)
    own = _cosines(z[measured], head.values64[positions[measured]])
    if head.sink is None:
        return float("nan"), own
    return _cosines(z[measured], head.values64[head.sink][None]), own


def _cosines(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        dots = np.einsum("qd,qd->q", a, np.broadcast_to(b, a.shape))
        cosines = dots / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    cosines = cosines[np.isfinite(cosines)]
    return float(cosines.mean()) if cosines.size else float("nan")


def _spread(x: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard deviation, least and greatest; NaN over nothing."""
    if not x.size:
        return (float("nan"),) * 4
    return float(x.mean()), float(x.std()), float(x.min()), float(x.max())
