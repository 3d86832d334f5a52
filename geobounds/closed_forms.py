"""The closed forms of T3, T4, T5, T6, T7, T8 and T10: exact functions of a few numbers.

Every function takes integers or fractions and returns them; none looks at a head. The
SymPy form of each stands under the same name in ``geobounds.symbolic``.

Letters: a and b are the norms of a selected and an unselected contribution (for values
of norm 1: their weights), A is the sum of the norms of all selected ones, mu a cosine.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from geobounds.errors import ArgumentError
from geobounds.power import rounding_radius
from geobounds.separability import f_score

__all__ = [
    "attainment_slack",
    "cell_interval",
    "constant_norm_cosine_gap",
    "constant_norm_gap",
    "discarded_error",
    "equiangular_cosine_gap",
    "equiangular_gap",
    "false_positive_polynomial",
    "pair_attainment_slack",
    "pair_form_counts",
    "power_interval",
    "rescaled_error",
    "rounding_radius",
    "single_f_score",
    "sink_collapse_gap",
    "sink_power",
    "two_f_score",
    "two_power",
]

Number = Any  # int or Fraction


def pair_form_counts(delta: Sequence[Sequence[Number]]) -> tuple[int, int, int]:
    """Upper bounds on FP, FN and inversions from bounds on power differences.

    Parameters
    ----------
    delta : N rows of M numbers
        ``delta[i][j]`` is at least phi_i - phi_j, for i selected and j unselected.

    Returns
    -------
    false_positives, false_negatives, inversions : int
        Upper bounds on the counts.

    Notes
    -----
    Statement T1-pairs (lower): only a pair with delta >= 0 can be an inversion.
    """
    rows = [[d >= 0 for d in row] for row in delta]
    columns = list(zip(*rows, strict=True))
    return sum(map(any, columns)), sum(map(any, rows)), sum(map(sum, rows))


def equiangular_gap(a: Number, b: Number, A: Number, mu: Number) -> Number:
    """Return phi_j - phi_i of an unselected j and a selected i at equal cosines mu.

    Notes
    -----
    Statement T3 (identity): a^2 + b^2 + 2 a mu (A - a) - 2 b mu A, which is
    ||y_i - y_j||^2 + 2 mu (a - b)(A - a), hence positive for 0 <= mu < 1 and
    a >= b >= 0, a > 0.

    Examples
    --------
    >>> equiangular_gap(2, 1, 3, Fraction(1, 2))
    Fraction(4, 1)
    """
    return a * a + b * b + 2 * a * mu * (A - a) - 2 * b * mu * A


def equiangular_cosine_gap(a: Number, mu: Number) -> Number:
    """Return <u_i - u_j, s_N> of unit vectors at equal cosines mu; a = ||y_i||.

    Notes
    -----
    Statement T3-cosine (identity): a (1 - mu), whatever the norms: positive for
    a > 0, mu < 1, so the selected i lies nearer in cosine distance.
    """
    return a * (1 - mu)


def power_interval(
    low: Number,
    high: Number,
    pull_low: Number,
    pull_high: Number,
    *,
    selected: bool,
) -> tuple[Number, Number]:
    """Least and greatest power of a contribution of norm r in [low, high].

    Parameters
    ----------
    low, high : number
        0 <= low <= high.
    pull_low, pull_high : number
        The other selected contributions add up to a vector whose inner product with
        this one's direction lies in [pull_low, pull_high].
    selected : bool
        Whether this contribution is one of the selected.

    Returns
    -------
    lo, hi : number
        Both attained.

    Notes
    -----
    Statement T4 (tight). phi = -r^2 - 2 r X for a selected, r^2 - 2 r X for an
    unselected contribution. The first is concave in r: greatest at clip(-X, low, high),
    least at an end; the second is convex, the other way round.
    """
    if selected:
        top = min(max(-pull_low, low), high)
        least = min(-r * r - 2 * r * pull_high for r in (low, high))
        return least, -top * top - 2 * top * pull_low
    bottom = min(max(pull_high, low), high)
    greatest = max(r * r - 2 * r * pull_low for r in (low, high))
    return bottom * bottom - 2 * bottom * pull_high, greatest


def constant_norm_gap(
    a: Number, b: Number, A: Number, mu_low: Number, mu_high: Number
) -> Number:
    """Positive iff the constant-norm regime certifies F_N = 1.

    a and b are the least selected and the greatest unselected weight.

    Notes
    -----
    Statement T4-gap (exact): a^2 + b^2 + 2 mu- a (A - a) - 2 mu+ A b, for norms equal
    to 1, no sink among the candidates and 0 <= mu- <= mu+ <= 1. To first order the
    attention gap a / b must exceed the coherence ratio mu+ / mu-.

    Examples
    --------
    >>> constant_norm_gap(2, 1, 4, Fraction(1, 4), Fraction(1, 2))
    Fraction(3, 1)
    """
    return a * a + b * b + 2 * mu_low * a * (A - a) - 2 * mu_high * A * b


def constant_norm_cosine_gap(
    a: Number, A: Number, mu_low: Number, mu_high: Number
) -> Number:
    """Positive only if F_N = 1 for cosine distance; a = alpha_N.

    Notes
    -----
    Statement T4-cosine (lower): a (1 - mu-) - A (mu+ - mu-), under T4-gap's
    hypotheses. Not necessary: unselected zero weights have key 0.
    """
    return a * (1 - mu_low) - A * (mu_high - mu_low)


def false_positive_polynomial(
    x: Number, a: Number, A: Number, mu_low: Number, mu_high: Number
) -> Number:
    """At most 0 iff an unselected weight x can be a false positive in the regime.

    Notes
    -----
    Statement T4-roots (exact): x^2 - 2 x A mu+ + a^2 (1 - 2 mu-) + 2 A a mu-, a =
    alpha_N; the possible false positives lie between its roots, and there are none if
    it has none.
    """
    constant = a * a * (1 - 2 * mu_low) + 2 * A * a * mu_low
    return x * x - 2 * x * A * mu_high + constant


def attainment_slack(n: Number, mu_low: Number, mu_high: Number) -> Number:
    """At least 0 iff one configuration attains the bound for all tokens together.

    Notes
    -----
    Statement T4-attained (exact): 1 + (N - 1) mu- - N mu+^2, for constant norm, no
    sink, cosines within S at least mu- and across at most mu+.
    """
    return 1 + (n - 1) * mu_low - n * mu_high * mu_high


def pair_attainment_slack(n: Number, mu_low: Number, mu_high: Number) -> Number:
    """At least 0 iff some unit vectors attain the interval of one pair (N >= 2).

    Notes
    -----
    Statement T4-pair (exact), for 0 <= mu+ <= 1, |mu-| <= mu+:
    (1 + (N-2) mu+)(1 - mu+^2) - (N-1)(mu+^2 + mu-^2 - 2 mu- mu+^2).
    """
    square = mu_high * mu_high
    spread = square + mu_low * mu_low - 2 * mu_low * square
    return (1 + (n - 2) * mu_high) * (1 - square) - (n - 1) * spread


def sink_collapse_gap(a: Number, b: Number, pull: Number, mu: Number) -> Number:
    """Return phi_j - phi_i of non-sink tokens while the sink is selected.

    Notes
    -----
    Statement T5 (identity): a^2 (1 - 2 mu) + b^2 + 2 m (a - b), with the pull
    m = B mu + k alpha_0 sigma, B the selected non-sink weight.
    """
    return a * a * (1 - 2 * mu) + b * b + 2 * pull * (a - b)


def sink_power(sink_square: Number, sink_dot: Number, B: Number) -> Number:
    """Power of the selected sink.

    Parameters
    ----------
    sink_square : number
        (k alpha_0)^2, the sink's squared contribution.
    sink_dot : number
        k alpha_0 sigma.
    B : number
        The selected non-sink weight.

    Notes
    -----
    Statement T5-counts (identity): -k alpha_0 (k alpha_0 + 2 B sigma).
    """
    return -sink_square - 2 * B * sink_dot


def cell_interval(
    weight: Number,
    norm_low: Number,
    norm_high: Number,
    dot_low: Number,
    dot_high: Number,
) -> tuple[Number, Number]:
    """Interval of the power of a token of a cell, from the cell's four numbers.

    Notes
    -----
    Statement T6 (lower): [w^2 q- - 2 w t+, w^2 q+ - 2 w t-], w >= 0.
    """
    square = weight * weight
    return (
        square * norm_low - 2 * weight * dot_high,
        square * norm_high - 2 * weight * dot_low,
    )


def single_f_score(equal: int) -> Fraction:
    """F_1 when ``equal`` unselected contributions equal the selected one.

    Notes
    -----
    Statement T7 (exact): 1 if there is none, else 0, whatever the selection rule.
    For cosine distance (T7-cosine) the positive multiples count, and F_1 = 0 if
    y_1 = 0.
    """
    return Fraction(1 if equal == 0 else 0)


def two_power(r1_square: Number, r2_square: Number, dot: Number) -> Number:
    """Return the greatest selected power for N = 2; dot = <y_1, y_2>.

    Notes
    -----
    Statement T7-two (identity): -min(r_1, r_2)^2 - 2 <y_1, y_2>.
    """
    return -min(r1_square, r2_square) - 2 * dot


def two_f_score(false_positives: int, false_negatives: int) -> Fraction:
    """F_2, one of 1, 0 and 4 / (6 + FP) (T7-two)."""
    if false_negatives not in (0, 1, 2):
        msg = (
            "two_f_score: false_negatives must be 0, 1 or 2, "
            f"got false_negatives={false_negatives}."
        )
        raise ArgumentError(msg)
    if (false_positives == 0) != (false_negatives == 0):
        msg = (
            "two_f_score: both counts must be 0 or neither, "
            f"got {false_positives} and {false_negatives}."
        )
        raise ArgumentError(msg)
    return f_score(2, false_positives, false_negatives)


def discarded_error(
    weights: Sequence[Number], values: Sequence[Number], n: int
) -> Number:
    """One coordinate of z - s_N; the first n tokens are the selected ones.

    Notes
    -----
    Statement T10 (identity): sum of w_j v_j over the visible j that are not selected,
    under ``drop`` the sink too.
    """
    pairs = zip(weights[n:], values[n:], strict=True)
    return sum(w * v for w, v in pairs)


def rescaled_error(
    weights: Sequence[Number], values: Sequence[Number], n: int
) -> Number:
    """One coordinate of z - (W / W_S) s_N, the error after restoring the mass.

    Notes
    -----
    Statement T10-rescaled (identity): (W - W_S)(v_T - v_S), with v_S and v_T the
    weighted means of the selected and of the other values; 0 < W_S < W.
    """
    inside, outside = sum(weights[:n]), sum(weights[n:])
    if inside <= 0 or outside <= 0:
        msg = (
            "rescaled_error: both parts must have weight, got "
            f"{inside} selected and {outside} not."
        )
        raise ArgumentError(msg)
    pairs = list(zip(weights, values, strict=True))
    kept = Fraction(sum(w * v for w, v in pairs[:n])) / inside
    lost = Fraction(sum(w * v for w, v in pairs[n:])) / outside
    return outside * (lost - kept)
