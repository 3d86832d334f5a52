"""F4: the classes of heads, how stable they are, and where their outputs point."""

from collections.abc import Sequence

import numpy as np

from empirical.metrics import CLASSES
from empirical.study.data import NO_CLASS, StudyData
from empirical.study.finding import Finding, Range
from empirical.study.hypotheses import ABOVE_ZERO, NOTHING, sampled, shown
from empirical.study.measures import class_means, class_shares, cohen_kappa
from empirical.study.tables_classes import TARGETS, compared_classes

__all__ = ["SUBSTANTIAL", "class_findings", "kappa_note"]

# "Substantial" agreement: Landis and Koch, Biometrics 33 (1977) 159-174.
SUBSTANTIAL = Range(least=0.6)


def class_findings(study: StudyData, partners: Sequence[StudyData]) -> list[Finding]:
    """F4: shares of the classes, agreement, alignment."""
    shares = class_shares(study.head_classes)
    every = ", ".join(
        f"{name} {shown(shares[:, k], study.n_documents)}"
        for k, name in enumerate(CLASSES)
    )
    return [
        sampled(
            study,
            "F4-retriever",
            "5.8 to 17.2 % of heads are Retrievers",
            hypothesis="The share of Retrievers lies in the range that the paper "
            "reports for other models, 5.8 to 17.2 %.",
            measure="Share of Retrievers among the heads of the model (share)",
            statistic=shares[:, CLASSES.index("Retriever")],
            expected=Range(0.058, 0.172),
            figure="class_shares",
            note=f"{every}.",
        ),
        *(_between_texts(study, partners)),
        _between_lengths(study),
        _alignment(study, "Retriever", "current token"),
        _alignment(study, "Mixer", "sink"),
    ]


def kappa_note(a: np.ndarray, b: np.ndarray) -> str:
    """Say in how many heads two classifications agree, and where kappa has no value."""
    both = (a[0] != NO_CLASS) & (b[0] != NO_CLASS)
    same = int(((a[0] == b[0]) & both).sum())
    words = f"{same} of {int(both.sum())} heads have the same class."
    if np.isnan(cohen_kappa(a[:1], b[:1])[0]):
        words += " Kappa is undefined: one class holds all of them."
    return words


def _between_texts(study: StudyData, partners: Sequence[StudyData]) -> list[Finding]:
    words = {
        "title": "Heads keep their class on another text",
        "hypothesis": "The same heads fall into the same classes on two texts.",
        "measure": "Agreement of the classes on two texts beyond chance, both texts "
        "resampled (Cohen's kappa)",
        "expected": SUBSTANTIAL,
        "figure": "agreement",
    }
    if not partners:
        note = "No second text of this model was studied."
        return [sampled(study, "F4-corpora", statistic=NOTHING, note=note, **words)]  # type: ignore[arg-type]
    found = []
    for partner in partners:
        compared = compared_classes(study, [partner])
        a, b, documents = list(compared.values())[-1]
        suffix = f"-{partner.corpus}" if len(partners) > 1 else ""
        note = f"{partner.corpus} against {study.corpus}: {kappa_note(a, b)}"
        finding = sampled(
            study,
            f"F4-corpora{suffix}",
            statistic=cohen_kappa(a, b),
            note=" ".join(x for x in (note, partner.warning) if x),
            documents=documents,
            **words,  # type: ignore[arg-type]
        )
        found.append(finding)
    return found


def _between_lengths(study: StudyData) -> Finding:
    half = study.length // 2
    statistic, note = NOTHING, "The scan holds no shorter windows."
    if half in study.main["prefix"].values and half < study.length:
        a, b = study.classes(half), study.head_classes
        statistic, note = cohen_kappa(a, b), kappa_note(a, b)
    return sampled(
        study,
        "F4-length",
        "Heads keep their class in shorter windows",
        hypothesis=f"The same heads fall into the same classes in windows of {half} "
        f"and of {study.length} tokens.",
        measure=f"Agreement of the classes by the first {half} and by all "
        f"{study.length} tokens beyond chance (Cohen's kappa)",
        statistic=statistic,
        expected=SUBSTANTIAL,
        figure="agreement",
        note=note,
    )


def _alignment(study: StudyData, name: str, toward: str) -> Finding:
    codes, code = study.head_classes, CLASSES.index(name)
    masks = np.stack([codes == code, (codes != code) & (codes != NO_CLASS)])
    x = study.numbers(TARGETS[toward])[..., None]
    means = class_means(study.weights, masks, x)[..., 0]
    return sampled(
        study,
        f"F4-alignment-{name}",
        f"{name}s point toward the {toward}",
        hypothesis=f"The outputs of {name}s are more aligned with the value of the "
        f"{toward} than those of the other heads.",
        measure=f"Mean cosine of the output with the value of the {toward}: {name}s "
        "minus all other heads (cosine)",
        statistic=means[:, 0] - means[:, 1],
        expected=ABOVE_ZERO,
        figure="alignment",
        note=f"{name}s {means[0, 0]:.3f}, the others {means[0, 1]:.3f}.",
    )
