"""F8: what changes without the BOS, and where the sink is then."""

from empirical.study.data import StudyData
from empirical.study.finding import Finding, Range
from empirical.study.findings_classes import SUBSTANTIAL, kappa_note
from empirical.study.hypotheses import ABOVE_ZERO, NOTHING, sampled, shown
from empirical.study.measures import cohen_kappa, mean_over_n, usable_n
from empirical.study.resample import pooled_mean

__all__ = ["bos_findings"]

_NO_BOS = "The model names no BOS: both scans are without it."


def bos_findings(study: StudyData) -> list[Finding]:
    """F8: the sink's cost, its place, and the classes, with and without BOS."""
    return [
        _cost(study),
        _place(study, bare=False),
        _place(study, bare=True),
        _classes(study),
    ]


def _cost(study: StudyData) -> Finding:
    statistic, note = NOTHING, _NO_BOS
    if study.has_bos:
        kept, gain = [
            mean_over_n(pooled_mean(study.weights, x - y), usable_n(study))
            for x, y in (
                (study.f("keep"), study.f("keep", bare=True)),
                (
                    study.f("drop") - study.f("keep"),
                    study.f("drop", bare=True) - study.f("keep", bare=True),
                ),
            )
        ]
        statistic = gain
        difference = shown(kept, study.n_documents)
        note = f"F with BOS minus F without, first token kept: {difference}."
    return sampled(
        study,
        "F8-bos",
        "Without BOS the first token costs less",
        hypothesis="Dropping the first token raises F less when it is no BOS.",
        measure="F with the first token dropped minus F with it kept: that difference "
        "with BOS minus that without; mean over heads and over N >= 2, weight, "
        "Euclidean distance (difference in F)",
        statistic=statistic,
        expected=ABOVE_ZERO,
        figure="bos",
        note=note,
    )


def _place(study: StudyData, *, bare: bool) -> Finding:
    which = "without" if bare else "with"
    statistic, note = NOTHING, _NO_BOS
    if bare or study.has_bos:
        first = study.at_first(bare=bare)[..., None]
        statistic, note = pooled_mean(study.weights, first)[:, 0], ""
    return sampled(
        study,
        f"F8-found-{which}",
        f"The sink is the first token, {which} BOS",
        hypothesis=f"In at least 90 % of heads the first token, {which} BOS, is the "
        "one with the greatest mean weight.",
        measure="Share of heads and documents in which it is (share)",
        statistic=statistic,
        expected=Range(least=0.9),
        figure="found_sink",
        note=note,
    )


def _classes(study: StudyData) -> Finding:
    statistic, note = NOTHING, _NO_BOS
    if study.has_bos:
        a, b = study.classes(bare=True), study.head_classes
        statistic, note = cohen_kappa(a, b), kappa_note(a, b)
    return sampled(
        study,
        "F8-classes",
        "Heads keep their class without BOS",
        hypothesis="The same heads fall into the same classes with and without BOS.",
        measure="Agreement of the classes with and without BOS beyond chance (Cohen's "
        "kappa)",
        statistic=statistic,
        expected=SUBSTANTIAL,
        figure="agreement",
        note=note,
    )
