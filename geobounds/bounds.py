"""Bounds on precision, recall and F from the number of inversions (T2)."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geobounds.errors import ArgumentError
from geobounds.separability import f_score, precision, recall

__all__ = ["InversionBounds", "capped_f_bound", "inversion_bounds"]


@dataclass(frozen=True)
class InversionBounds:
    """Lower bounds from inversions.

    Attributes
    ----------
    precision, recall : Fraction
        Separate bounds on P_N and R_N, statement T2a.
    f_separate : Fraction
        Their harmonic mean.
    f_joint : Fraction
        Bound on F_N from both counts together, statement T2b; never below
        ``f_separate``.
    """

    precision: Fraction
    recall: Fraction
    f_separate: Fraction
    f_joint: Fraction


def inversion_bounds(n: int, n_unselected: int, inversions: int) -> InversionBounds:
    """Lower bounds on P_N, R_N and F_N from the number of inversions.

    Parameters
    ----------
    n : int
        Number of selected tokens N >= 1.
    n_unselected : int
        Number of unselected candidates M >= 1.
    inversions : int
        G = GInv_N, or an upper bound on it, 0 <= G <= N * M.

    Returns
    -------
    InversionBounds
        Exact fractions. All are 1 for G = 0.

    Raises
    ------
    ArgumentError
        A number is out of range.

    Notes
    -----
    Statement T2 (lower). (a) P >= N/(N + min(G, M)), R >= max(0, 1 - G/N).
    (b, tight) for G >= 1: FP + FN <= G + 1, FP FN >= G, 1 <= FP <= M, 1 <= FN <= N,
    because the inversions form a Ferrers diagram with FN rows and longest row FP.
    Along FP = G + 1 - b with b = FN, 1/F grows with b, so the least F is that of FP = 1
    and FN = G, whatever M is; 0 if G >= N.
    Source: (a) arXiv 2602.01893; (b) is ours.

    Examples
    --------
    >>> b = inversion_bounds(4, 8, 2)
    >>> print(b.precision, b.recall, b.f_separate, b.f_joint)
    2/3 1/2 4/7 8/13
    """
    for name, value, least in (
        ("n", n, 1),
        ("n_unselected", n_unselected, 1),
        ("inversions", inversions, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            msg = f"inversion_bounds: {name} must be an int, got {name}={value!r}."
            raise TypeError(msg)
        if value < least:
            msg = (
                f"inversion_bounds: {name} must be at least {least}, "
                f"got {name}={value}."
            )
            raise ArgumentError(msg)
    n, m, g = int(n), int(n_unselected), int(inversions)
    if g > n * m:
        msg = f"inversion_bounds: inversions must be at most {n * m}, got {g}."
        raise ArgumentError(msg)
    p = precision(n, min(g, m))
    r = recall(n, min(g, n))
    return InversionBounds(p, r, 2 * p * r / (p + r), capped_f_bound(n, m, n, g))


def capped_f_bound(n: int, most_fp: int, most_fn: int, inversions: int) -> Fraction:
    """Lower bound on F_N from upper bounds on FP, FN and the inversions together.

    Parameters
    ----------
    n : int
        Number of selected tokens N.
    most_fp, most_fn : int
        Upper bounds on FP and FN.
    inversions : int
        Upper bound on their number G.

    Returns
    -------
    Fraction
        Never below the bound from FP and FN alone.

    Notes
    -----
    Statement T2b under caps: FP + FN <= G + 1 for G >= 1, F falls in both, and no
    slower in FN than in FP, so the least F has as many false negatives as allowed.
    """
    if min(most_fp, most_fn, inversions) == 0:  # FP = 0 iff FN = 0 iff G = 0
        return Fraction(1)
    fn = min(most_fn, inversions)
    return f_score(n, min(most_fp, inversions + 1 - fn), fn)
