"""What random directions would give (T9): a baseline, and no certificate of a head."""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np

from geobounds.errors import ArgumentError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.integers import exact_number, square_root_enclosure
from geobounds.power import Enclosure
from geobounds.selection import Selection
from geobounds.separability import Counts, interval_counts

__all__ = ["IsotropicRegime", "isotropic_cosine_bound", "isotropic_token_bound"]

_DIGITS = 60


def isotropic_cosine_bound(
    n_vectors: int | np.integer, d_head: int | np.integer, probability: Any
) -> float:
    """Upper bound on all pairwise cosines of random unit vectors, in absolute value.

    Parameters
    ----------
    n_vectors : int
        L >= 2 independent vectors, uniform on the unit sphere.
    d_head : int
        Dimension d >= 1.
    probability : Fraction or float
        delta, how often the bound may fail; 0 < delta < 1.

    Returns
    -------
    float
        eps, rounded up to the next double. A value above 1 says nothing.

    Notes
    -----
    Statement T9 (probability): eps = sqrt(2 ln(L (L-1) / delta) / d); a pair exceeds it
    with probability at most 2 exp(-d eps^2 / 2), and there are L (L-1) / 2 pairs.

    Examples
    --------
    >>> round(isotropic_cosine_bound(16, 512, Fraction(1, 20)), 4)
    0.182
    """
    _require(n_vectors, 2, d_head, probability, "isotropic_cosine_bound")
    count = int(n_vectors)  # a numpy integer could overflow
    return _rounded_up(count * (count - 1), d_head, probability)


def isotropic_token_bound(
    n_vectors: int | np.integer, d_head: int | np.integer, probability: Any
) -> float:
    """Upper bound on <u_j, s_N> over sqrt(sum_S r_k^2), for every token j at once.

    Parameters
    ----------
    n_vectors, d_head, probability
        As for ``isotropic_cosine_bound``; L >= 1.

    Returns
    -------
    float
        tau, rounded up.

    Notes
    -----
    Statement T9-token (probability): tau = sqrt(2 ln(L / delta) / d), for norms and
    weights independent of the directions. Given u_j the others add up to a
    sub-Gaussian variable of variance proxy sum_S r_k^2 / d, which gains about sqrt(N)
    over N pairs at eps.
    """
    _require(n_vectors, 1, d_head, probability, "isotropic_token_bound")
    return _rounded_up(int(n_vectors), d_head, probability)


@dataclass(frozen=True)
class IsotropicRegime:
    """Bounds that would hold with probability 1 - delta for random directions (T9).

    A baseline: it reads the head's weights and norms, not its cosines, so it proves
    nothing about a head and ``certify`` does not take it.

    Attributes
    ----------
    probability : Fraction
        delta, the chance that some token exceeds its bound.
    """

    probability: Any = Fraction(1, 20)

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        exact = exact_number(self.probability, "probability", "IsotropicRegime")
        object.__setattr__(self, "probability", exact)
        _require(2, 2, 1, self.probability, "IsotropicRegime")

    def enclosure(self, head: HeadData, selection: Selection) -> Enclosure:
        """Return one-sided intervals around phi, in selection order.

        Notes
        -----
        Statement T9-token: with tau for all candidates together, a selected i has
        phi_i <= -r_i^2 + 2 r_i tau sqrt(sum of the other selected r_k^2), an
        unselected j has phi_j >= r_j^2 - 2 r_j tau sqrt(sum of all selected r_k^2).
        """
        exact = ExactGeometry(head, selection)
        n, size = selection.n, len(selection.keys)
        tau = Fraction(isotropic_token_bound(size, head.d_head, self.probability))
        squares = [int(x) for x in exact.weights * exact.weights * exact.norms]
        total = sum(squares[:n])
        lo = np.full(size, -np.inf, dtype=object)
        hi = np.full(size, np.inf, dtype=object)
        for i, square in enumerate(squares):
            rest = total - square if i < n else total
            # 2 r tau sqrt(rest), all under one root.
            pull = square_root_enclosure(4 * square * rest * tau * tau)[1]
            if i < n:
                hi[i] = pull - square
            else:
                lo[i] = square - pull
        return Enclosure(lo, hi, n)

    def counts(self, head: HeadData, selection: Selection) -> Counts:
        """Upper bounds on the counts, by T1; they hold with probability 1 - delta."""
        return interval_counts(self.enclosure(head, selection))


def _rounded_up(choices: Any, d_head: Any, probability: Any) -> float:
    """sqrt(2 ln(choices / delta) / d), as the least double that is not below it."""
    delta = Fraction(probability)
    above, below = choices * delta.denominator, delta.numerator
    # The logarithm of a ratio near 1 loses the digits that the ratio shares with 1.
    lost = max(0, below.bit_length() - (above - below).bit_length())
    digits = Context(prec=_DIGITS + lost)
    ratio = digits.divide(Decimal(above), Decimal(below))
    square = digits.divide(digits.multiply(2, digits.ln(ratio)), Decimal(int(d_head)))
    root = digits.sqrt(square)
    nearest = float(root)
    # Sixty digits decide: the root of a logarithm is no double.
    return nearest if Decimal(nearest) >= root else nextafter(nearest, inf)


def _require(
    n_vectors: Any, least: int, d_head: Any, probability: Any, function: str
) -> None:
    for name, value, smallest in (
        ("n_vectors", n_vectors, least),
        ("d_head", d_head, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            msg = f"{function}: {name} must be an int, got {name}={value!r}."
            raise TypeError(msg)
        if value < smallest:
            msg = f"{function}: {name} must be at least {smallest}, got {value}."
            raise ArgumentError(msg)
    if not 0 < exact_number(probability, "probability", function) < 1:
        msg = (
            f"{function}: probability must lie strictly between 0 and 1, "
            f"got {probability}."
        )
        raise ArgumentError(msg)
