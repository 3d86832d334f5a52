"""Tables of the head classes: shares, agreement, where outputs point."""

import numpy as np
import pandas as pd

from empirical.errors import ScanError
from empirical.metrics import CLASSES
from empirical.study.data import NO_CLASS, StudyData
from empirical.study.measures import (
    class_masks,
    class_means,
    class_shares,
    cohen_kappa,
)
from empirical.study.resample import ratio
from empirical.study.tables_selection import WHOLE
from empirical.study.tidy import CLASS_NAMES, class_names, joined, tidy

__all__ = [
    "TARGETS",
    "agreement",
    "alignment",
    "classes",
    "compared_classes",
    "shares_by_layer",
]

# Where an output may point, and the array that holds the mean cosine.
TARGETS = {"sink": "sink_alignment", "current token": "current_alignment"}


def classes(study: StudyData) -> pd.DataFrame:
    """Class of every head, and the shares of its queries won by each source (D10)."""
    counts = [x.sum(axis=0) for x in study.class_counts()]
    shares = [ratio(x.astype(float), sum(counts)) for x in counts]
    names = class_names(study.head_classes[0])
    return pd.DataFrame(
        {
            "layer": study.layers,
            "head": study.heads,
            "head_class": names,
            "current_share": shares[0],
            "sink_share": shares[1],
            "other_share": shares[2],
        }
    )


def shares_by_layer(study: StudyData) -> pd.DataFrame:
    """Share of heads of each class by layer; layer -1 is the whole model."""
    frames = []
    codes = study.head_classes
    for layer in (WHOLE, *np.unique(study.layers)):
        here = np.ones(codes.shape[1], bool) if layer < 0 else study.layers == layer
        shares = class_shares(codes[:, here])
        axes = {"head_class": CLASSES}
        frames.append(tidy(shares, study.n_documents, axes, "share", layer=layer))
    return joined(frames, ("layer", "head_class", "share", "low", "high"))


def compared_classes(
    study: StudyData, partners: list[StudyData]
) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Return pairs of classifications of the same heads, by what is compared.

    Parameters
    ----------
    study : StudyData
        The study.
    partners : list of StudyData
        Studies of the same model on other texts.

    Returns
    -------
    dict
        By comparison in words: codes (rows, heads) of both sides, and the number of
        documents behind them (of two texts, the smaller).

    Raises
    ------
    ScanError
        A partner is of another model, or of the same text.
    """
    whole = study.head_classes
    found = {}
    prefixes = sorted(int(p) for p in study.main["prefix"].values)
    for prefix in prefixes[:-1]:
        words = f"first {prefix} tokens against {study.length}"
        found[words] = (study.classes(prefix), whole, study.n_documents)
    if study.has_bos:
        bare = study.classes(bare=True)
        found["without BOS"] = (bare, whole, study.n_documents)
    for partner in partners:
        if partner.attrs["model_fingerprint"] != study.attrs["model_fingerprint"]:
            msg = (
                "compared_classes: partners must be of the same model, got "
                f"{partner.attrs['model']!r:.60} for {study.attrs['model']!r:.60}. "
                "Heads of two models have nothing in common."
            )
            raise ScanError(msg)
        if partner.attrs["corpus_sha256"] == study.attrs["corpus_sha256"]:
            msg = (
                "compared_classes: partners must be of another text, got "
                f"{partner.corpus!r:.60} twice. Study a second text."
            )
            raise ScanError(msg)
        # Both texts are resampled, each by its own draws.
        fewer = min(study.n_documents, partner.n_documents)
        words = f"{partner.corpus} against {study.corpus}"
        found[words] = (partner.head_classes, whole, fewer)
    return found


def agreement(study: StudyData, partner: StudyData | None = None) -> pd.DataFrame:
    """Cohen's kappa between classes of the same heads found in two ways."""
    frames = []
    partners = [] if partner is None else [partner]
    for words, (a, b, documents) in compared_classes(study, partners).items():
        kappa = cohen_kappa(a, b)[:, None]
        frame = tidy(kappa, documents, {"comparison": [words]}, "kappa")
        heads = int(((a[0] != NO_CLASS) & (b[0] != NO_CLASS)).sum())
        frames.append(frame.assign(heads=heads))
    return joined(frames, ("comparison", "kappa", "low", "high", "heads"))


def alignment(study: StudyData) -> pd.DataFrame:
    """Mean cosine of outputs with the sink's value and the own position's, by class."""
    everyone = np.ones((1, *study.head_classes.shape), dtype=bool)
    masks = np.concatenate([everyone, class_masks(study.head_classes)])
    frames = []
    for toward, name in TARGETS.items():
        x = study.numbers(name)[..., None]
        found = class_means(study.weights, masks, x)[..., 0]
        axes = {"head_class": CLASS_NAMES}
        frames.append(tidy(found, study.n_documents, axes, toward=toward))
    return joined(frames, ("head_class", "toward", "value", "low", "high"))
