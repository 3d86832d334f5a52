"""Tables of what separability is lost to, and of how far the regimes hold."""

import numpy as np
import pandas as pd

from empirical.reduce import CERTIFIED_POLICIES
from empirical.study.data import StudyData
from empirical.study.measures import CAUSES, cause_gain
from empirical.study.resample import pooled_mean, weighted_mean, weighted_median
from empirical.study.tables_selection import WHOLE
from empirical.study.tidy import joined, tidy

__all__ = ["causes", "collapse", "regime", "removals"]


def removals(study: StudyData) -> pd.DataFrame:
    """Mean F with causes of lost separability removed (float estimates)."""
    frames = []
    for policy in CERTIFIED_POLICIES:
        for removal in study.removals:
            mean = pooled_mean(study.weights, study.f_removed(removal, policy))
            axes = {"n": study.n}
            frame = tidy(
                mean, study.n_documents, axes, sink_policy=policy, removal=removal
            )
            frames.append(frame)
    return joined(frames, ("sink_policy", "removal", "n", "value", "low", "high"))


def causes(study: StudyData) -> pd.DataFrame:
    """Gain in F when one of T3's causes is removed."""
    frames = [
        tidy(
            pooled_mean(study.weights, cause_gain(study, cause)),
            study.n_documents,
            {"n": study.n},
            "gain",
            cause=cause,
        )
        for cause in CAUSES
    ]
    return joined(frames, ("cause", "n", "gain", "low", "high"))


def collapse(study: StudyData) -> pd.DataFrame:
    """F that T5 predicts and F measured, by head and N, where the sink is selected.

    Means over the documents in which it is; ``condition``: share of them in which T5's
    condition holds for the head's mean numbers.
    """
    predicted = study.f_removed("norms and cosines", "keep")
    columns = {
        "predicted": predicted,
        "measured": study.f("keep"),
        "condition": study.collapse.astype(float),
    }
    used = (study.collapse >= 0) & ~np.isnan(predicted)
    once = study.weights[:1]
    means = {
        name: weighted_mean(once, np.where(used, x, np.nan))[0]
        for name, x in columns.items()
    }
    heads, n = means["predicted"].shape
    frame = pd.DataFrame(
        {
            "layer": np.repeat(study.layers, n),
            "head": np.repeat(study.heads, n),
            "n": np.tile(study.n, heads),
            **{name: x.ravel() for name, x in means.items()},
        }
    )
    return frame.dropna(subset=["predicted"]).reset_index(drop=True)


def regime(study: StudyData) -> pd.DataFrame:
    """How far norms and cosines of the values are from one number each, by layer.

    Quantiles over heads of each head's mean over documents (norm greatest / least: of
    its median, for a value may be 0). Heads of a group share their values.
    """
    rows = []
    for quantity, x in _quantities(study).items():
        for layer in (WHOLE, *np.unique(study.layers).tolist()):
            here = x if layer == WHOLE else x[study.layers == layer]
            known = here[~np.isnan(here)]
            ends = np.full(3, np.nan)
            if known.size:
                # A head that is there: between two infinities there is no number.
                ends = np.quantile(known, [0.1, 0.5, 0.9], method="nearest")
            q = dict(zip(("q10", "median", "q90"), ends.tolist(), strict=True))
            rows.append({"quantity": quantity, "layer": layer, **q})
    columns = ("quantity", "layer", "q10", "median", "q90")
    return joined([pd.DataFrame(rows)], columns)


def _quantities(study: StudyData) -> dict[str, np.ndarray]:
    """Return what T4 and T5 take to be constant, by name, one number a head."""
    once = study.weights[:1]
    with np.errstate(divide="ignore", invalid="ignore"):
        span = study.numbers("norm_greatest") / study.numbers("norm_least")
    of_values = {
        f"{whose} {part}": study.numbers(f"{name}_{part}")
        for whose, name in (("cosine", "cosine"), ("sink cosine", "sink_cosine"))
        for part in ("sd", "least", "greatest")
    }
    by_document = {
        "norm spread (sd / mean)": study.norm_spread,
        "cosine mean": study.numbers("cosine_mean"),
        **of_values,
        "sink cosine mean": study.numbers("sink_cosine"),
        "share with least cosine > 0": study.coherent,
    }
    found = {name: weighted_mean(once, x)[0] for name, x in by_document.items()}
    return {"norm greatest / least": weighted_median(once, span)[0], **found}
