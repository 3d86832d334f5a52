"""Intervals by resampling documents: the document is the unit, never a head or an N.

A statistic is a function of the documents' weights. ``draws`` gives one row of weights
a replicate, and a first row of ones for the data themselves; a statistic turns the rows
into one number (or array) each, and ``interval`` reads value and interval off them.
"""

from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

__all__ = [
    "FEWEST_DOCUMENTS",
    "LEVEL",
    "REPLICATES",
    "Estimate",
    "bounds",
    "draws",
    "interval",
    "pooled_mean",
    "ratio",
    "tail",
    "weighted_mean",
    "weighted_median",
]

REPLICATES = 2000
LEVEL = 0.95
# Below this many documents an interval says too little for a verdict.
FEWEST_DOCUMENTS = 8


@dataclass(frozen=True)
class Estimate:
    """A number measured on the documents, with its 95 % bootstrap interval.

    Attributes
    ----------
    value : float
        The statistic of the documents as they are; NaN where it is undefined.
    low, high : float
        Ends of the interval; NaN where they are undefined. Both equal ``value`` where
        nothing was sampled.
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """Return a number that holds of the scan as it is, without sampling error."""
        return cls(float(value), float(value), float(value))


def draws(
    n_documents: int, replicates: int = REPLICATES, seed: Any = 0
) -> Float64[np.ndarray, "rows n_documents"]:
    """Return how often each replicate contains each document, after a row of ones.

    Parameters
    ----------
    n_documents : int
        Number of documents, at least 1.
    replicates : int
        Number of resamples, each of ``n_documents`` documents with replacement.
    seed : int or sequence of int
        Seed of the draws.

    Returns
    -------
    ndarray of shape (1 + replicates, n_documents)
        Weights; every row sums to ``n_documents``.
    """
    generator = np.random.default_rng(seed)
    shares = np.full(n_documents, 1 / n_documents)
    counts = generator.multinomial(n_documents, shares, size=replicates)
    return np.vstack([np.ones(n_documents), counts])


def interval(statistic: Float[np.ndarray, " rows"], n_documents: int) -> Estimate:
    """Return value and interval of one statistic; see ``bounds``."""
    low, high = bounds(np.asarray(statistic)[:, None], n_documents)
    return Estimate(float(statistic[0]), float(low[0]), float(high[0]))


def bounds(
    statistic: Float[np.ndarray, "rows *shape"], n_documents: int
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Return the ends of the interval of many statistics.

    Parameters
    ----------
    statistic : ndarray of shape (1 + replicates, ...)
        The statistic under each row of ``draws``.
    n_documents : int
        Number of documents resampled; of two samples, the smaller number.

    Returns
    -------
    low, high : ndarray of shape (...)
        Order statistics of the replicates, outward at ``tail(n_documents)``. NaN where
        the statistic is undefined for the data, where only one document was given, and
        where so many replicates are undefined that an end could be anything: an
        undefined replicate counts as lying beyond both ends.
    """
    statistic = np.asarray(statistic, dtype=float)
    nothing = np.full(statistic.shape[1:], np.nan)
    if n_documents < 2 or len(statistic) < 2:
        return nothing, nothing.copy()
    last = len(statistic) - 2
    place = int(tail(n_documents) * last)
    undefined = np.isnan(statistic[1:])
    ends = []
    for worst, at in ((-np.inf, place), (np.inf, last - place)):
        filled = np.where(undefined, worst, statistic[1:])
        end = np.partition(filled, at, axis=0)[at]
        lost = undefined.any(axis=0) & (end == worst)
        ends.append(np.where(lost | np.isnan(statistic[0]), np.nan, end))
    return ends[0], ends[1]


@cache
def tail(n_documents: int, level: float = LEVEL) -> float:
    """Return the share of replicates to leave out at each end of an interval.

    Parameters
    ----------
    n_documents : int
        Number of documents resampled, at least 2.
    level : float
        Coverage aimed at.

    Returns
    -------
    float
        ``Phi(-sqrt(n / (n - 1)) t)``, where t is the quantile of Student's t with n - 1
        degrees of freedom that leaves (1 - level) / 2 above.

    Notes
    -----
    Few documents make the plain percentile interval too short: it knows neither that
    the spread of a resample falls short by (n - 1) / n nor that the spread itself is
    uncertain. The expanded percentile of a mean has about the length of the t interval.
    Source: Hesterberg, The American Statistician 69 (2015) 371-386.
    """
    t = _student_quantile(n_documents - 1, (1 + level) / 2)
    return NormalDist().cdf(-sqrt(n_documents / (n_documents - 1)) * t)


def weighted_mean(
    weights: Float64[np.ndarray, "rows n_documents"],
    x: Float[np.ndarray, "n_documents *shape"],
) -> Float64[np.ndarray, "rows *shape"]:
    """Return the mean over documents under each row of weights; NaN is left out.

    Parameters
    ----------
    weights : ndarray of shape (rows, n_documents)
        As ``draws`` returns them.
    x : ndarray of shape (n_documents, ...)
        One number a document, NaN where it has none.

    Returns
    -------
    ndarray of shape (rows, ...)
        NaN where no document of positive weight has a number.
    """
    flat = np.asarray(x, dtype=float).reshape(len(x), -1)
    present = ~np.isnan(flat)
    sums = weights @ np.where(present, flat, 0.0)
    mean = ratio(sums, weights @ present.astype(float))
    return mean.reshape(len(weights), *x.shape[1:])


def pooled_mean(
    weights: Float64[np.ndarray, "rows n_documents"],
    x: Float[np.ndarray, "n_documents *middle last"],
) -> Float64[np.ndarray, "rows last"]:
    """Return the mean over documents and all middle axes; NaN is left out.

    Parameters
    ----------
    weights : ndarray of shape (rows, n_documents)
        As ``draws`` returns them.
    x : ndarray of shape (n_documents, ..., last)
        Entries of each document, such as heads; every entry counts alike.

    Returns
    -------
    ndarray of shape (rows, last)
        NaN where no document of positive weight has an entry.
    """
    middle = tuple(range(1, x.ndim - 1))
    present = ~np.isnan(x)
    sums = np.where(present, x, 0.0).sum(axis=middle)
    return ratio(weights @ sums, weights @ present.sum(axis=middle, dtype=float))


def weighted_median(
    weights: Float64[np.ndarray, "rows n_documents"],
    x: Float[np.ndarray, "n_documents *shape"],
) -> Float64[np.ndarray, "rows *shape"]:
    """Return the median over documents under each row of weights; NaN is left out.

    Notes
    -----
    The median of the documents repeated as often as their weights say: with an even
    number, the mean of the two in the middle.
    """
    flat = np.asarray(x, dtype=float).reshape(len(x), -1)
    result = np.full((len(weights), flat.shape[1]), np.nan)
    for k, column in enumerate(flat.T):
        order = np.argsort(column)[: np.count_nonzero(~np.isnan(column))]
        if not order.size:
            continue
        counted = np.cumsum(weights[:, order], axis=1)
        total = counted[:, -1]
        lower = (counted > (total[:, None] - 1) // 2).argmax(axis=1)
        upper = (counted > total[:, None] // 2).argmax(axis=1)
        middle = (column[order][lower] + column[order][upper]) / 2
        result[:, k] = np.where(total > 0, middle, np.nan)
    return result.reshape(len(weights), *x.shape[1:])


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, NaN where b is not above 0."""
    quotient = np.full(np.shape(a), np.nan)
    np.divide(a, b, out=quotient, where=np.asarray(b) > 0)
    return quotient


def _student_quantile(freedom: int, level: float) -> float:
    """Return the quantile of Student's t at ``level`` > 1/2, by bisection."""
    low, high = 0.0, 1.0
    while _student_cdf(high, freedom) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if _student_cdf(middle, freedom) < level
            else (
                low,
                middle,
            )
        )
    return high


def _student_cdf(t: float, freedom: int) -> float:
    """Return P(T <= t) for t >= 0 by the finite series for whole degrees of freedom.

    Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(freedom))
    term = cos(angle) if freedom % 2 else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    if freedom % 2:
        both = 2 / pi * (angle + (sin(angle) * total if freedom > 1 else 0.0))
    else:
        both = sin(angle) * total
    return (1 + both) / 2
