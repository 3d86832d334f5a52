"""The power phi (D9) and the cosine key (D5) as enclosures with a rounding radius (T8).

Letters: w weight, v value vector, s the aggregate, t = <v, s>, q = ||v||^2, N selected
tokens, d the width of v, u = 2^-53.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float64

from geobounds.head import HeadData
from geobounds.integers import refuse_flush_to_zero
from geobounds.selection import Selection

__all__ = [
    "DotProducts",
    "Enclosure",
    "cosine_enclosure",
    "dot_products",
    "power_enclosure",
    "quick_power_enclosure",
    "rounding_radius",
]

_UNIT = 2.0**-53
# Below this a square or a quotient could underflow; such tokens go the exact way.
_SMALL = 2.0**-450


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Intervals [lo, hi] around a distance key of every candidate.

    Attributes
    ----------
    lo, hi : ndarray of shape (n_candidates,)
        The first ``n`` belong to selected tokens, the others to unselected ones.
        float64, or object arrays of exact integers or fractions.
    n : int
        Number of selected tokens.
    """

    lo: Any
    hi: Any
    n: int


@dataclass(frozen=True, eq=False)
class DotProducts:
    """w, t and q of every candidate in float64, with the radii of t and q.

    ``bulk`` is T of statement T8: the sum of the absolute products behind t.
    """

    w: Float64[np.ndarray, " n_candidates"]
    t: Float64[np.ndarray, " n_candidates"]
    q: Float64[np.ndarray, " n_candidates"]
    bulk: Float64[np.ndarray, " n_candidates"]
    t_radius: Float64[np.ndarray, " n_candidates"]
    q_radius: Float64[np.ndarray, " n_candidates"]


def dot_products(head: HeadData, selection: Selection) -> DotProducts:
    """Return <v, s_N> and ||v||^2 of every candidate with radii (T8).

    Notes
    -----
    t passes through N + d roundings on a bulk of T, q through d on itself; the
    counts are raised by 3 and 2 to cover the rounding of the radii themselves. The
    2^-1073 terms cover products that underflow.
    """
    refuse_flush_to_zero()
    head.require_values("power")
    n, d_head, keys = selection.n, head.d_head, selection.keys
    row = head.weights[selection.row].astype(np.float64)
    chosen = selection.selected
    with np.errstate(all="ignore"):
        aggregate = row[chosen] @ head.values64[chosen]
        absolute = row[chosen] @ head.abs_values64[chosen]
        t = (head.values64 @ aggregate)[keys]
        bulk = (head.abs_values64 @ absolute)[keys]
        q = head.squared_norms64[keys]
        underflow = 2.0**-1073 * (n * head.abs_sums64[keys] + d_head + 1)
        t_radius = (n + d_head + 3) * _UNIT * bulk + underflow
        q_radius = (d_head + 2) * _UNIT * q + 2.0**-1073 * (d_head + 1)
    return DotProducts(row[keys], t, q, bulk, t_radius, q_radius)


def power_enclosure(
    head: HeadData, selection: Selection, dots: DotProducts | None = None
) -> Enclosure:
    """Return intervals that contain phi = w^2 q - 2 w t of every candidate.

    Notes
    -----
    Statement T8: |phi^ - phi| <= (N + d + 4) u B + 2^-1072 E with
    B = w^2 q + 2 w T. Where a number is not finite the interval is the whole line.
    """
    x = dots or dot_products(head, selection)
    n, d_head = selection.n, head.d_head
    with np.errstate(all="ignore"):
        phi = x.w * x.w * x.q - 2 * x.w * x.t
        length = head.abs_sums64[selection.keys]
        radius = rounding_radius(x.w, x.q, x.bulk, length, n, d_head)
        return _outward(phi, radius, n)


def rounding_radius(
    weight: Any, norm: Any, bulk: Any, length: Any, n: int, d_head: int
) -> Any:
    """Greatest rounding error of a power computed in float64.

    Parameters
    ----------
    weight, norm, bulk, length : number or ndarray
        w, q = ||v||^2, T = sum_k |v_k| S_k and l = sum_k |v_k|.
    n, d_head : int
        N and the width of v.

    Notes
    -----
    Statement T8 (upper): (N + d + 4) 2^-53 B + 2^-1072 E, B = w^2 q + 2 w T,
    E = q + d w^2 + 2 w (N l + d) + 2. Floats give a float, rounded like its inputs
    (the statement allows for that); fractions give the exact number.
    """
    exact = isinstance(weight, (int, Fraction))
    unit, tiny = (
        (Fraction(1, 2**53), Fraction(1, 2**1072)) if exact else (2.0**-53, 2.0**-1072)
    )
    b_term = weight * weight * norm + 2 * weight * bulk
    e_term = norm + d_head * weight * weight + 2 * weight * (n * length + d_head) + 2
    return (n + d_head + 4) * unit * b_term + tiny * e_term


def quick_power_enclosure(head: HeadData, selection: Selection) -> Enclosure:
    """Return wider intervals around phi, for a head of at most 32 bits, in less time.

    Notes
    -----
    Statement T8 with one radius for all tokens and N: q <= m^2 and T <= m^2 sum of w_i
    (Cauchy) for the greatest norm m. The count of N + d + 4 roundings is raised by 8
    for those of the ends and of ``power_scales64``; E is not needed, since nothing
    underflows.
    """
    n, keys = selection.n, selection.keys
    w = head.weights[selection.row].astype(np.float64)[keys]
    aggregate = w[:n] @ head.values64[selection.selected]
    t = (head.values64 @ aggregate)[keys]
    phi = w * (w * head.squared_norms64[keys] - 2 * t)
    scale = float(head.power_scales64[selection.row])
    radius = (n + head.d_head + 12) * _UNIT * scale
    return Enclosure(phi - radius, phi + radius, n)


def cosine_enclosure(
    head: HeadData, selection: Selection, dots: DotProducts | None = None
) -> Enclosure:
    """Return intervals around -kappa, which orders candidates by cosine distance (D5).

    Notes
    -----
    kappa = sign(t) t^2 / q, and 0 for a zero contribution. Interval division with
    three roundings widened to four; numbers near underflow get the whole line.
    """
    x = dots or dot_products(head, selection)
    zero = (x.w == 0) | ~head.abs_values64[selection.keys].any(axis=1)
    with np.errstate(all="ignore"):
        t_low, t_high = x.t - x.t_radius, x.t + x.t_radius
        q_low, q_high = x.q - x.q_radius, x.q + x.q_radius
        high = np.where(t_high >= 0, t_high**2 / q_low, -(t_high**2) / q_high)
        low = np.where(t_low >= 0, t_low**2 / q_high, -(t_low**2) / q_low)
        safe = (np.abs(t_low) > _SMALL) & (np.abs(t_high) > _SMALL) & (q_low > _SMALL)
        widened = Enclosure(
            -(high + 4 * _UNIT * np.abs(high)), -(low - 4 * _UNIT * np.abs(low)), 0
        )
    safe &= np.isfinite(widened.lo) & np.isfinite(widened.hi)
    lo = np.where(safe, np.nextafter(widened.lo, -np.inf), -np.inf)
    hi = np.where(safe, np.nextafter(widened.hi, np.inf), np.inf)
    lo[zero] = hi[zero] = 0.0
    return Enclosure(lo, hi, selection.n)


def _outward(
    center: Float64[np.ndarray, " n"], radius: Float64[np.ndarray, " n"], n: int
) -> Enclosure:
    lo = np.nextafter(center - radius, -np.inf)
    hi = np.nextafter(center + radius, np.inf)
    known = np.isfinite(lo) & np.isfinite(hi)
    return Enclosure(np.where(known, lo, -np.inf), np.where(known, hi, np.inf), n)
