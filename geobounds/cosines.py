"""Norms and cosines of value vectors: float64 with a radius, and exact by squares.

Norms and cosines are irrational. They are bounded by outward-rounded rationals, and a
claim about them is checked by comparing squares, in integers.
"""

from fractions import Fraction

import numpy as np

from geobounds.head import HeadData
from geobounds.power import dot_products
from geobounds.selection import Selection

__all__ = [
    "Span",
    "UnitVectors",
    "cosine_at_least",
    "cosine_at_most",
    "norm_within",
]

Span = tuple[Fraction, Fraction]
_UNIT = 2.0**-53


class UnitVectors:
    """Values of some keys, each scaled by a power of two so that nothing overflows.

    Attributes
    ----------
    radius : float
        Cosines in ``table`` are off by at most this: d roundings of the inner product
        on at most the product of the norms, d / 2 + 2 of either norm and two of the
        quotient, all doubled.
    table : ndarray of float64, shape (n_keys, n_keys)
        Cosines of all pairs; NaN with a zero vector and on the diagonal.
    """

    def __init__(self, head: HeadData, keys: np.ndarray) -> None:
        values = head.values64[keys]
        self.values = values
        largest = np.abs(values).max(axis=1)
        _, self.exponents = np.frexp(largest)
        scaled = np.ldexp(values, -self.exponents[:, None])
        d_head = values.shape[1]
        self.norms = np.sqrt(np.einsum("kd,kd->k", scaled, scaled))
        self.norm_radius = (d_head + 4) * _UNIT * self.norms
        self.radius = (2 * d_head + 10) * _UNIT
        self.zero = largest == 0
        with np.errstate(all="ignore"):
            gram = scaled @ scaled.T
            table = gram / (self.norms[:, None] * self.norms)
        table[self.zero] = np.nan
        table[:, self.zero] = np.nan
        np.fill_diagonal(table, np.nan)
        self.table = table

    def cosines(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Cosines of some pairs; NaN where undefined and for a key with itself."""
        table: np.ndarray = self.table[np.ix_(rows, columns)]
        return table

    def least_cosine(self, rows: np.ndarray, columns: np.ndarray) -> Fraction | None:
        """Return a number at most every cosine, or None if no cosine is defined.

        ``rows`` and ``columns`` are bool arrays over the keys.
        """
        part = self.table[np.ix_(rows, columns)]
        if not np.isfinite(part).any():
            return None
        least = np.nextafter(np.nanmin(part) - self.radius, -np.inf)
        return Fraction(max(float(least), -1.0))

    def greatest_cosine(self, rows: np.ndarray, columns: np.ndarray) -> Fraction | None:
        """Return a number at least every cosine, or None if no cosine is defined."""
        part = self.table[np.ix_(rows, columns)]
        if not np.isfinite(part).any():
            return None
        greatest = np.nextafter(np.nanmax(part) + self.radius, np.inf)
        return Fraction(min(float(greatest), 1.0))

    def greatest_pull(
        self, head: HeadData, selection: Selection, chosen: np.ndarray
    ) -> Fraction | None:
        """Return a number at least <v_j / ||v_j||, s_N> of every chosen token.

        None if there is no chosen token with a value, or a number overflows.
        """
        dots = dot_products(head, selection)
        low, high = self.float_norms()
        with np.errstate(all="ignore"):
            top = dots.t + dots.t_radius
            # Two roundings of the sum and the quotient, doubled.
            pull = np.where(top >= 0, top / low, top / high)
            pull = pull + 4 * _UNIT * np.abs(pull)
        wanted = chosen & ~self.zero
        if not wanted.any() or not np.isfinite(pull[wanted]).all():
            return None
        return Fraction(float(np.nextafter(pull[wanted].max(), np.inf)))

    def norm_span(self, chosen: np.ndarray) -> Span | None:
        """Return numbers around the norms of the chosen keys, or None without any."""
        if not chosen.any():
            return None
        spans = [self._span(int(i)) for i in self._extremes(chosen)]
        return min(low for low, _ in spans), max(high for _, high in spans)

    def all_norms(self, keys: np.ndarray) -> tuple[tuple[int, Fraction, Fraction], ...]:
        """Return (key, low, high) around every norm."""
        return tuple((int(key), *self._span(i)) for i, key in enumerate(keys))

    def float_norms(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers around every norm as float64; infinite where they overflow."""
        low = np.nextafter(self.norms - self.norm_radius, -np.inf)
        high = np.nextafter(self.norms + self.norm_radius, np.inf)
        low[self.zero] = high[self.zero] = 0
        with np.errstate(all="ignore"):
            # Scaling back is exact unless it underflows: one step further out.
            low, high = np.ldexp(low, self.exponents), np.ldexp(high, self.exponents)
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
        low[self.zero] = high[self.zero] = 0
        return np.maximum(low, 0), high

    def _extremes(self, chosen: np.ndarray) -> list[int]:
        """Return the keys that may have the least or the greatest norm."""
        places = np.flatnonzero(chosen)
        with np.errstate(all="ignore"):
            size = np.log2(self.norms[places]) + self.exponents[places]
        size[self.zero[places]] = -np.inf
        close = 2.0**-40 * (1 + np.abs(self.exponents[places]).max())
        near = (size <= size.min() + close) | (size >= size.max() - close)
        found: list[int] = places[near].tolist()
        return found

    def _span(self, i: int) -> Span:
        if self.zero[i]:
            return Fraction(0), Fraction(0)
        low = float(np.nextafter(self.norms[i] - self.norm_radius[i], -np.inf))
        high = float(np.nextafter(self.norms[i] + self.norm_radius[i], np.inf))
        scale = Fraction(2) ** int(self.exponents[i])
        return Fraction(low) * scale, Fraction(high) * scale


def norm_within(square: Fraction, low: Fraction, high: Fraction) -> bool:
    """Whether the root of ``square`` lies in [low, high], 0 <= low; exact."""
    return low * low <= square <= high * high


def cosine_at_least(
    dot: int | Fraction, square: int | Fraction, bound: Fraction
) -> bool:
    """Whether dot / sqrt(square) >= bound; exact, true for a zero vector.

    ``square`` is the product of the two squared norms, in units that fit ``dot``.
    """
    if square == 0:
        return True
    if bound >= 0:
        return dot >= 0 and dot * dot >= bound * bound * square
    return dot >= 0 or dot * dot <= bound * bound * square


def cosine_at_most(
    dot: int | Fraction, square: int | Fraction, bound: Fraction
) -> bool:
    """Whether dot / sqrt(square) <= bound; exact, true for a zero vector."""
    return cosine_at_least(-dot, square, -bound)
