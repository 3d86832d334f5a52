"""F6 and F7: what separability is lost to, and how far the regimes hold."""

import numpy as np

from empirical.study.data import StudyData
from empirical.study.finding import Finding, Range
from empirical.study.hypotheses import ABOVE_ZERO, exactly, sampled
from empirical.study.measures import (
    CAUSES,
    cause_gain,
    collapse_means,
    head_means,
    mean_over_n,
    median_over_heads,
    rank_correlation,
    usable_n,
)
from empirical.study.resample import pooled_mean

__all__ = ["cause_findings", "regime_findings"]

_IDS = dict(zip(CAUSES, ("cosines", "norms", "sink", "negative"), strict=True))
_HOW = {
    "cosine spread": "all cosines made equal, the sink kept",
    "norm spread": "all norms but the sink's made equal, the sink kept",
    "sink": "the sink dropped",
    "negative common cosine": "a negative common cosine replaced by 0, after sink, "
    "norm spread and cosine spread are gone",
}


def cause_findings(study: StudyData) -> list[Finding]:
    """F6: each of T3's causes costs F, all together cost all of it; T5 predicts F."""
    found = [
        sampled(
            study,
            f"F6-{_IDS[cause]}",
            f"Separability is lost to: {cause}",
            hypothesis=f"F rises when the {cause} is removed.",
            measure=f"F with {_HOW[cause]}, minus F without this change; mean over "
            "heads and over N >= 2, weight, Euclidean distance (difference in F)",
            statistic=mean_over_n(
                pooled_mean(study.weights, cause_gain(study, cause)), usable_n(study)
            ),
            expected=ABOVE_ZERO,
            figure="causes",
        )
        for cause in CAUSES
    ]
    return [*found, _all_removed(study), _predicted(study)]


def regime_findings(study: StudyData) -> list[Finding]:
    """F7: how far constant norms, coherence and T5's condition hold."""
    collapse = study.collapse[:, :, usable_n(study)].reshape(study.n_documents, -1, 1)
    holds = np.where(collapse >= 0, collapse, np.nan)
    coherent = study.coherent[..., None]
    return [
        sampled(
            study,
            "F7-norm",
            "Norms are constant",
            hypothesis="Norms of values other than the sink's vary by at most 10 %.",
            measure="Standard deviation over mean of the norms, mean over documents, "
            "median over heads (ratio)",
            statistic=median_over_heads(head_means(study, study.norm_spread)),
            expected=Range(greatest=0.1),
            figure="regime",
        ),
        sampled(
            study,
            "F7-cosine",
            "Values are coherent",
            hypothesis="In at least half of the heads every cosine of two values other "
            "than the sink's is above 0.",
            measure="Share of heads and documents with a least cosine above 0 (share)",
            statistic=pooled_mean(study.weights, coherent)[:, 0],
            expected=Range(least=0.5),
            figure="regime",
        ),
        sampled(
            study,
            "F7-collapse",
            "The condition of T5 holds",
            hypothesis="Where the sink is selected, T5's condition holds for the "
            "head's mean norms and cosines in at least 90 % of the cases.",
            measure="Share of heads, documents and N >= 2 that select the sink in "
            "which the condition holds (share)",
            statistic=pooled_mean(study.weights, holds)[:, 0],
            expected=Range(least=0.9),
            figure="collapse",
        ),
    ]


def _all_removed(study: StudyData) -> Finding:
    f = study.f_removed("norms and cosines, nonnegative", "drop")
    there = ~np.isnan(f)
    short = int((f[there] < 1).sum())
    return exactly(
        "F6-all",
        "Without the four causes every selection is separable",
        hypothesis="With equal norms, one common cosine of at least 0 and no sink, F "
        "is 1 for every head and N (T3).",
        measure="Entries with F < 1 after all four causes are removed (number of "
        "entries)",
        number=short,
        expected=Range(0, 0),
        figure="removals",
        note=f"Of {int(there.sum()):,} entries, all documents, heads and N.",
    )


def _predicted(study: StudyData) -> Finding:
    predicted, measured = collapse_means(study, usable_n(study))
    error = np.abs(predicted[0] - measured[0])
    known = error[~np.isnan(error)]
    note = "No head selects the sink under the condition."
    if known.size:
        note = f"Mean absolute error over {known.size} heads: {known.mean():.3f} in F."
    return sampled(
        study,
        "F6-T5",
        "The collapse predicts F",
        hypothesis="Where the sink is selected and T5's condition holds, heads with a "
        "higher predicted F have a higher measured F.",
        measure="Rank correlation over heads of predicted and measured F, each the "
        "mean over documents and N >= 2 (Spearman's correlation)",
        statistic=rank_correlation(predicted, measured),
        expected=Range(least=0.5, strict=True),
        figure="collapse",
        note=note,
    )
