"""Exact numbers: floats as integers with a common power of two, fractions as text."""

import re
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Float

from geobounds.errors import ArgumentError, GeoboundsError

__all__ = [
    "common_integers",
    "exact_number",
    "parse_fraction",
    "refuse_flush_to_zero",
    "shown",
    "square_root_enclosure",
]

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


def refuse_flush_to_zero() -> None:
    """Raise GeoboundsError if this process flushes subnormal numbers to zero.

    Every rounding radius here rests on gradual underflow.
    """
    smallest_normal = np.array([2.0**-1022])
    if (smallest_normal * 0.5)[0] == 0:
        msg = (
            "geobounds: subnormal numbers must not be flushed to zero, got "
            "flush-to-zero switched on in this process. Switch it off "
            "(torch.set_flush_denormal)."
        )
        raise GeoboundsError(msg)


def parse_fraction(text: object) -> Fraction:
    """Return the fraction written as ``str(Fraction)`` writes it.

    Raises
    ------
    ValueError
        Anything else: decimals, exponents (which could be huge), terms not lowest.
    """
    if isinstance(text, str) and re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
        try:
            value = Fraction(text)
        except ZeroDivisionError:
            value = None
        if value is not None and str(value) == text:
            return value
    msg = f"must be a fraction in lowest terms such as '2/3', got {text!r:.40}"
    raise ValueError(msg)


def exact_number(x: Any, name: str, function: str) -> Fraction:
    """Return the exact number that ``x`` holds, or refuse it by its name."""
    try:
        return Fraction(x)
    except (ArithmeticError, TypeError, ValueError) as error:
        msg = f"{function}: {name} must be a finite number, got {x!r:.40}."
        raise ArgumentError(msg) from error


def shown(x: Fraction) -> str:
    """Six digits of a number of any size, for messages."""
    try:
        return f"{float(x):.6g}"
    except OverflowError:
        size = x.numerator.bit_length() - x.denominator.bit_length()
        return f"{'-' if x < 0 else ''}2**{size}"
