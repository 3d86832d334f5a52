"""Floats as exact integers, and square roots between rationals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from geobounds.integers import common_integers, square_root_enclosure

FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
POSITIVE = st.fractions(min_value=0, max_value=10**9) | st.builds(
    lambda x, k: x * Fraction(2) ** k,
    st.fractions(min_value=0, max_value=1),
    st.integers(-2200, 2200),
)


def test_the_smallest_example_has_the_common_exponent_of_both():
    whole, exponent = common_integers(np.array([0.75, -2.0]))

    assert whole.tolist() == [3, -8]
    assert exponent == -2


@pytest.mark.parametrize("numbers", [[], [0.0], [0.0, -0.0]])
def test_zeros_have_exponent_zero(numbers):
    whole, exponent = common_integers(np.array(numbers, dtype=np.float64))

    assert whole.tolist() == [0] * len(numbers)
    assert exponent == 0


def test_the_extreme_doubles_are_exact():
    numbers = [5e-324, -1.7976931348623157e308, 2.0**-1022, 1.0]
    whole, exponent = common_integers(np.array(numbers))

    assert exponent == -1074
    assert [m * Fraction(2) ** exponent for m in whole] == [*map(Fraction, numbers)]


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_every_float_type_keeps_its_own_extremes(name):
    info = np.finfo(name)
    array = np.array([info.max, info.smallest_subnormal, -info.tiny])
    whole, exponent = common_integers(array)

    assert [m * Fraction(2) ** exponent for m in whole] == [
        Fraction(float(x)) for x in array
    ]


@pytest.mark.parametrize(
    ("x", "root"),
    [(0, 0), (4, 2), (Fraction(9, 4), Fraction(3, 2)), (2**4000, 2**2000)],
)
def test_a_square_of_a_dyadic_number_has_an_exact_root(x, root):
    assert square_root_enclosure(Fraction(x)) == (root, root)


def test_the_root_of_a_third_is_enclosed_but_not_met():
    low, high = square_root_enclosure(Fraction(1, 9))

    assert low < Fraction(1, 3) < high


@given(arrays(np.float64, array_shapes(min_dims=0, max_dims=2), elements=FINITE))
def test_integers_times_the_power_are_the_floats(array):
    """Fails if a shift, a sign or the shape is lost."""
    whole, exponent = common_integers(array)

    assert whole.shape == array.shape
    assert [m * Fraction(2) ** exponent for m in whole.ravel()] == [
        Fraction(float(x)) for x in array.ravel()
    ]


@given(arrays(np.float64, 3, elements=FINITE))
def test_the_common_exponent_is_the_largest_possible(array):
    """Fails if trailing zeros are left: integers would be needlessly long."""
    whole, _ = common_integers(array)

    assert not array.any() or any(m % 2 for m in whole)


@given(POSITIVE)
def test_roots_are_enclosed_to_sixty_bits(x):
    """Fails if an end is rounded inward, or if the enclosure is wide."""
    low, high = square_root_enclosure(x)

    assert low >= 0
    assert low**2 <= x <= high**2
    assert high - low <= high / 2**60
    assert (low == high) == (low**2 == x)
