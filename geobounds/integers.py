"""Floats as exact integers with a common power of two: the base of every exact path."""

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Float

__all__ = ["common_integers", "square_root_enclosure"]

_DOUBLE_BITS = 53


def common_integers(array: Float[np.ndarray, "..."]) -> tuple[Any, int]:
    """Return Python integers m and an exponent e with ``array == m * 2**e`` exactly.

    Parameters
    ----------
    array : ndarray of float
        Finite numbers of at most 64 bits.

    Returns
    -------
    integers : ndarray of object
        Python integers, shaped like ``array``.
    exponent : int
        The common exponent of two; 0 if every number is 0.

    Examples
    --------
    >>> common_integers(np.array([0.75, -2.0]))
    (array([3, -8], dtype=object), -2)
    """
    mantissa, exponent = np.frexp(array.astype(np.float64))
    whole = np.ldexp(mantissa, _DOUBLE_BITS).astype(np.int64)
    _, lowest = np.frexp((whole & -whole).astype(np.float64))
    trailing = np.where(whole == 0, 0, lowest - 1)
    shifts = exponent - _DOUBLE_BITS + trailing
    nonzero = shifts[whole != 0]
    common = int(nonzero.min()) if nonzero.size else 0
    pairs = zip(
        (whole >> trailing).ravel().tolist(),
        np.where(whole == 0, common, shifts).ravel().tolist(),
        strict=True,
    )
    result = np.empty(array.size, dtype=object)
    result[:] = [m << (e - common) for m, e in pairs]
    return result.reshape(array.shape), common


def square_root_enclosure(x: Fraction, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Return rationals around the square root of ``x >= 0``, to ``bits`` bits.

    Notes
    -----
    Both are equal exactly when the scaled integer is a perfect square.
    """
    if x == 0:
        return Fraction(0), Fraction(0)
    size = x.numerator.bit_length() - x.denominator.bit_length()
    k = max(0, bits - size // 2 + 1)
    scaled, rest = divmod(x.numerator << (2 * k), x.denominator)
    root = isqrt(scaled)
    exact = rest == 0 and root * root == scaled
    return Fraction(root, 1 << k), Fraction(root + (not exact), 1 << k)
