"""A finding: a hypothesis, what was measured, and the verdict that follows."""

from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

from empirical.study.resample import FEWEST_DOCUMENTS, Estimate

__all__ = ["Finding", "Range", "Verdict", "judge"]

Verdict = Literal["supported", "not supported", "undecided"]


@dataclass(frozen=True)
class Range:
    """Where a hypothesis says that an effect lies.

    Attributes
    ----------
    least, greatest : float
        Ends; infinite where there is none.
    strict : bool
        Whether the ends themselves lie outside.

    Examples
    --------
    >>> print(Range(least=0, strict=True), Range(3, 10), Range(greatest=0.5), sep="; ")
    greater than 0; 3 to 10; at most 0.5
    """

    least: float = -inf
    greatest: float = inf
    strict: bool = False

    def __str__(self) -> str:
        if self.least == self.greatest:
            return f"exactly {self.least:g}"
        if self.greatest == inf:
            return f"{'greater than' if self.strict else 'at least'} {self.least:g}"
        if self.least == -inf:
            return f"{'less than' if self.strict else 'at most'} {self.greatest:g}"
        return f"{self.least:g} to {self.greatest:g}"


@dataclass(frozen=True)
class Finding:
    """One hypothesis with its test.

    Attributes
    ----------
    id : str
        Such as "F1-euclidean-weight".
    title : str
        A few words.
    hypothesis : str
        What is claimed, as a sentence.
    measure : str
        What the estimate is, with its unit (F, ratio, share, kappa, cosine).
    estimate : Estimate
        The effect with its 95 % bootstrap interval over documents.
    range : Range
        Where the effect lies if the hypothesis holds.
    verdict : "supported", "not supported" or "undecided"
        By ``judge``.
    note : str
        What else a reader must know; may be empty.
    figure : str
        Name of the figure that shows it.
    """

    id: str
    title: str
    hypothesis: str
    measure: str
    estimate: Estimate
    range: Range
    verdict: Verdict
    note: str
    figure: str


def judge(estimate: Estimate, range_: Range, n_documents: int | None) -> Verdict:
    """Say whether an effect supports a hypothesis.

    Parameters
    ----------
    estimate : Estimate
        The effect and its interval.
    range_ : Range
        Where the hypothesis says it lies.
    n_documents : int or None
        Documents behind the interval; None if nothing was sampled.

    Returns
    -------
    str
        "supported" if the whole interval lies inside the range, "not supported" if the
        whole interval lies on one side outside it, else "undecided". With fewer than 8
        documents, or an undefined end, always "undecided".

    Examples
    --------
    >>> judge(Estimate(0.2, 0.1, 0.3), Range(least=0, strict=True), 16)
    'supported'
    >>> judge(Estimate(0.2, -0.1, 0.5), Range(least=0, strict=True), 16)
    'undecided'
    """
    if n_documents is not None and n_documents < FEWEST_DOCUMENTS:
        return "undecided"
    if isnan(estimate.value) or isnan(estimate.low) or isnan(estimate.high):
        return "undecided"
    low, high = estimate.low, estimate.high
    if range_.strict:
        if range_.least < low and high < range_.greatest:
            return "supported"
        if high <= range_.least or low >= range_.greatest:
            return "not supported"
        return "undecided"
    if range_.least <= low and high <= range_.greatest:
        return "supported"
    return (
        "not supported" if high < range_.least or low > range_.greatest else "undecided"
    )
