"""How a finding is made: a statistic under every row of weights becomes a verdict."""

import numpy as np

from empirical.study.data import StudyData
from empirical.study.finding import Finding, Range, judge
from empirical.study.resample import Estimate, interval

__all__ = ["ABOVE_ZERO", "BELOW_ZERO", "NOTHING", "exactly", "sampled", "shown"]

ABOVE_ZERO = Range(least=0.0, strict=True)
BELOW_ZERO = Range(greatest=0.0, strict=True)
NOTHING = np.full(2, np.nan)  # the statistic where there is nothing to measure


def sampled(
    study: StudyData,
    id_: str,
    title: str,
    *,
    hypothesis: str,
    measure: str,
    statistic: np.ndarray,
    expected: Range,
    figure: str,
    note: str = "",
    documents: int | None = None,
) -> Finding:
    """Return a finding about the texts that the documents are a sample of.

    Parameters
    ----------
    study : StudyData
        Whose documents were resampled.
    id_, title, hypothesis, measure, figure, note : str
        As in ``Finding``; the study's own warning follows the note.
    statistic : ndarray of shape (rows,)
        The effect of the data, then of the replicates.
    expected : Range
        Where the hypothesis says that the effect lies.
    documents : int, optional
        Documents behind the statistic; default those of the study.
    """
    count = study.n_documents if documents is None else documents
    estimate = interval(statistic, count)
    verdict = judge(estimate, expected, count)
    words = " ".join(x for x in (note, study.warning) if x)
    return Finding(
        id_, title, hypothesis, measure, estimate, expected, verdict, words, figure
    )


def exactly(
    id_: str,
    title: str,
    *,
    hypothesis: str,
    measure: str,
    number: float,
    expected: Range,
    figure: str,
    note: str = "",
) -> Finding:
    """Return a finding about the entries of the scan themselves: nothing is sampled."""
    estimate = Estimate.exact(number)
    verdict = judge(estimate, expected, None)
    return Finding(
        id_, title, hypothesis, measure, estimate, expected, verdict, note, figure
    )


def shown(statistic: np.ndarray, documents: int) -> str:
    """Return value and interval in words, for a note."""
    x = interval(statistic, documents)
    return f"{x.value:.3f} (95 % interval {x.low:.3f} to {x.high:.3f})"
