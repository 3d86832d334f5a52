"""The power and the cosine key as enclosures: T8, and refusing flush-to-zero."""

import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from cases import SHAPES, captured_like, draw_heads, large_close
from hypothesis import given
from mutants import load_copy
from strategies import build, choices

import geobounds as gb
from geobounds import integers
from geobounds.exact import ExactGeometry
from geobounds.power import (
    cosine_enclosure,
    dot_products,
    power_enclosure,
    quick_power_enclosure,
)
from geobounds.selection import rank

# Heads whose numbers leave the range in which T8's first term is all of the radius.
ORDINARY = {shape.__name__ for shape in SHAPES} - {"tiny", "huge"}
# The term for underflow, all that is left where phi is 0.
TINY = Fraction(1, 2**1050)


def selections(seed, count):
    """Yield every selection by weight of seeded heads of all shapes."""
    for case in draw_heads(seed, count):
        head = build(case)
        order = gb.rank(head)
        for n in range(1, order.n_candidates):
            yield case.shape, head, order.select(n)


def exact_phi(head, selection):
    """Return phi by D9, literally: r_i^2 - 2 <y_i, s_N> in fractions."""
    row = [Fraction(x) for x in head.weights[selection.row].tolist()]
    values = [[Fraction(x) for x in v] for v in head.values.tolist()]
    y = {k: [row[k] * x for x in values[k]] for k in selection.keys.tolist()}
    s = [sum(y[i][k] for i in selection.selected) for k in range(head.d_head)]
    return [
        sum(x * x for x in y[k]) - 2 * sum(a * b for a, b in zip(y[k], s, strict=True))
        for k in selection.keys.tolist()
    ]


def exact_radius(head, selection):
    """Return (N + d + 4) 2^-53 B of T8 in fractions."""
    keys, n = selection.keys.tolist(), selection.n
    row = [Fraction(x) for x in head.weights[selection.row].tolist()]
    absolute = [[abs(Fraction(x)) for x in v] for v in head.values.tolist()]
    s = [sum(row[i] * absolute[i][k] for i in keys[:n]) for k in range(head.d_head)]
    result = []
    for key in keys:
        q = sum(x * x for x in absolute[key])
        bulk = sum(a * b for a, b in zip(absolute[key], s, strict=True))
        b_term = row[key] ** 2 * q + 2 * row[key] * bulk
        result.append((n + head.d_head + 4) * b_term / 2**53)
    return result


def test_a_head_on_small_integers_has_the_power_in_the_middle():
    """y = 1, 1/2, -1/2; s = 3/2 for N = 2; phi = r^2 - 2 y s."""
    head = gb.HeadData([0.5, 0.25, 0.25], [[2.0], [2.0], [-2.0]])
    found = power_enclosure(head, gb.rank(head).select(2))

    assert ((found.lo + found.hi) / 2).tolist() == [-2.0, -1.25, 1.75]
    assert (found.lo < found.hi).all()
    assert found.n == 2


def test_the_power_is_the_squared_distance_less_the_aggregate():
    """D9: phi = D^2 - ||s||^2, for the exact integers."""
    head = gb.HeadData([0.5, 0.25, 0.25], [[2.0], [2.0], [-2.0]])
    exact = ExactGeometry(head, gb.rank(head).select(2))

    assert exact.squared_distances() == [Fraction(1, 4), 1, 4]
    assert [Fraction(phi, 4) for phi in exact.powers()] == [
        -2,
        Fraction(-5, 4),
        Fraction(7, 4),
    ]


def test_a_number_that_overflows_is_given_the_whole_line():
    head = gb.HeadData([0.5, 0.25], [[2.0**600], [1.0]])
    found = power_enclosure(head, gb.rank(head).select(1))

    assert (found.lo[0], found.hi[0]) == (-np.inf, np.inf)


def test_a_zero_contribution_has_cosine_key_zero():
    head = gb.HeadData([0.5, 0.25, 0.0], [[1.0], [0.0], [7.0]])
    found = cosine_enclosure(head, gb.rank(head).select(1))

    assert found.lo.tolist()[1:] == found.hi.tolist()[1:] == [0.0, 0.0]
    assert found.lo[0] <= -0.25 <= found.hi[0]


def test_powers_lie_in_their_enclosures_on_every_shape_of_head():
    """T8 against fractions. Fails if a term of the radius or a nextafter is lost."""
    shapes = set()
    for shape, head, selection in selections(seed=5, count=280):
        shapes.add(shape)
        found = power_enclosure(head, selection)
        for lo, phi, hi in zip(
            found.lo.tolist(),
            exact_phi(head, selection),
            found.hi.tolist(),
            strict=True,
        ):
            assert lo <= phi <= hi
    assert shapes == {shape.__name__ for shape in SHAPES}


def test_enclosures_are_no_wider_than_the_stated_radius():
    """A uselessly wide enclosure fails: twice T8's radius and three units of phi."""
    chosen = [x for x in selections(seed=6, count=140) if x[0] in ORDINARY]
    assert len(chosen) > 200
    for _, head, selection in chosen:
        found = power_enclosure(head, selection)
        for lo, hi, radius in zip(
            found.lo, found.hi, exact_radius(head, selection), strict=True
        ):
            width = Fraction(float(hi)) - Fraction(float(lo))
            unit = Fraction(float(np.spacing(max(abs(lo), abs(hi)))))
            assert width <= 2 * radius * (1 + Fraction(1, 2**40)) + 3 * unit + TINY


def test_cosine_keys_lie_in_their_enclosures_on_every_shape_of_head():
    """Fails if a rounding of the interval division is rounded inward."""
    for _, head, selection in selections(seed=7, count=280):
        found = cosine_enclosure(head, selection)
        exact = ExactGeometry(head, selection)
        # -kappa in the units of the head.
        scale = exact.dot_scale**2 / exact.norm_scale
        for lo, key, hi in zip(
            found.lo.tolist(), exact.cosine_keys(), found.hi.tolist(), strict=True
        ):
            assert lo <= key * scale <= hi


@given(choices())
def test_dot_products_lie_within_their_radii(choice):
    """Fails if N, d or the underflow term is left out of a radius that needs it."""
    head = build(choice.case)
    selection = gb.rank(head, **choice.options).select(choice.n)
    x = dot_products(head, selection)
    exact = ExactGeometry(head, selection)

    for t, radius, true in zip(x.t, x.t_radius, exact.dots, strict=True):
        assert abs(Fraction(t) - true * exact.dot_scale) <= Fraction(radius)
    for q, radius, true in zip(x.q, x.q_radius, exact.norms, strict=True):
        assert abs(Fraction(q) - true * exact.norm_scale) <= Fraction(radius)


@given(choices())
def test_dot_products_given_are_not_computed_again(choice):
    """The same enclosure with and without them."""
    head = build(choice.case)
    selection = gb.rank(head, **choice.options).select(choice.n)
    x = dot_products(head, selection)

    for enclose in (power_enclosure, cosine_enclosure):
        ours, theirs = enclose(head, selection, x), enclose(head, selection)
        assert ours.lo.tolist() == theirs.lo.tolist()
        assert ours.hi.tolist() == theirs.hi.tolist()


def test_geometry_needs_values():
    head = gb.HeadData([0.5, 0.25])

    with pytest.raises(gb.HeadDataError, match=r"^power: values must be given"):
        power_enclosure(head, gb.rank(head).select(1))


def test_a_process_that_flushes_subnormals_is_refused():
    """In a process of its own, so that the switch leaks nowhere."""
    code = (
        "import torch, geobounds as gb\n"
        "head = gb.HeadData([0.5, 0.25], [[1.0], [2.0]])\n"
        "gb.certify(head, 1)\n"
        "assert torch.set_flush_denormal(True)\n"
        "for call in (gb.measure, gb.certify):\n"
        "    try:\n"
        "        call(head, 1)\n"
        "    except gb.GeoboundsError as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all("must not be flushed to zero" in line for line in lines)
    assert all("torch.set_flush_denormal" in line for line in lines)


def test_flushed_arithmetic_is_recognised(monkeypatch):
    """The same refusal with numpy's arithmetic replaced by one that flushes."""
    flushing = SimpleNamespace(array=np.zeros_like)
    monkeypatch.setattr(integers, "np", flushing)

    with pytest.raises(gb.GeoboundsError, match="must not be flushed to zero"):
        integers.refuse_flush_to_zero()


@pytest.mark.parametrize("n", [1, 2, 40])
@pytest.mark.parametrize("d_head", [1, 3, 60])
def test_radii_of_dot_products_count_every_rounding(n, d_head):
    """T8: t passes through N + d roundings on its bulk, q through d on itself.

    Sums rarely err as much as the count allows, so the counts are compared themselves.
    """
    rng = np.random.default_rng(n + 100 * d_head)
    head = gb.HeadData(rng.random(n + 2), rng.normal(size=(n + 2, d_head)))
    x = dot_products(head, rank(head).select(n))

    assert (x.t_radius >= (n + d_head) * 2.0**-53 * x.bulk).all()
    assert (x.q_radius >= d_head * 2.0**-53 * x.q).all()


def quick_intervals_hold(package):
    """Whether the quick intervals contain every exact power of large, close vectors."""
    rng = np.random.default_rng(11)
    for _ in range(150):
        n, d_head = int(rng.integers(2, 30)), int(rng.integers(1, 20))
        weights, values = large_close(rng, n, d_head)
        head = package.head.HeadData(weights, values)
        selection = package.selection.rank(head).select(int(rng.integers(1, n)))
        bound = package.power.quick_power_enclosure(head, selection)
        exact = package.exact.ExactGeometry(head, selection)
        scale = Fraction(2) ** (2 * (exact.w_exponent + exact.v_exponent))
        for lo, phi, hi in zip(bound.lo, exact.powers(), bound.hi, strict=True):
            if not Fraction(lo) <= scale * phi <= Fraction(hi):
                return False
    return True


QUICK = {
    "no radius": (
        "return Enclosure(phi - radius, phi + radius, n)",
        "return Enclosure(phi, phi, n)",
    ),
    "a thousandth of it": ("* _UNIT * scale", "* _UNIT * scale / 1000"),
}


def test_scale_of_the_quick_radius_bounds_every_sum():
    """w^2 q + 2 w T of T8, for every key and N, in exact arithmetic."""
    one = 1 + Fraction(1, 2**40)  # its own roundings are counted in the radius
    for head in filter(lambda h: h.is_narrow, map(build, draw_heads(13, 150))):
        order, most = rank(head), one * Fraction(head.power_scales64[0])
        for n in range(1, order.n_candidates):
            x = dot_products(head, order.select(n))
            for w, q, bulk in zip(x.w, x.q, x.bulk, strict=True):
                w, q, bulk = map(Fraction, (w, q, bulk))

                assert w * w * q + 2 * w * bulk <= most


def test_quick_intervals_contain_the_exact_power():
    assert quick_intervals_hold(gb)


@pytest.mark.parametrize("name", QUICK)
def test_wrong_quick_radius_is_caught(name):
    assert not quick_intervals_hold(load_copy(("power", *QUICK[name])))


def test_quick_intervals_are_no_narrower_than_the_sharp_ones():
    """One radius for all tokens, from the greatest weight and norm."""
    rng = np.random.default_rng(12)
    for _ in range(50):
        weights, values = captured_like(rng, 40, 16)
        head = gb.HeadData(weights, values)
        selection = rank(head).select(int(rng.integers(1, 39)))
        quick = quick_power_enclosure(head, selection)
        sharp = power_enclosure(head, selection)

        assert (quick.hi - quick.lo >= sharp.hi - sharp.lo).all()
