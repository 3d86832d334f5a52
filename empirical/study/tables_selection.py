"""Tables of what is selected: against random sets, and with and without the sink."""

import numpy as np
import pandas as pd

from empirical.reduce import DISTANCES, RANKINGS, SINK_POLICIES
from empirical.study.data import StudyData
from empirical.study.measures import (
    class_masks,
    class_means,
    random_f,
    selected_entries,
)
from empirical.study.resample import (
    pooled_mean,
    ratio,
    weighted_mean,
    weighted_median,
)
from empirical.study.tidy import CLASS_NAMES, class_names, joined, tidy

__all__ = [
    "bos",
    "found_sink",
    "policies",
    "separability",
    "sink_geometry",
    "sink_selected",
]

WHOLE = -1  # in place of a layer: all of them


def separability(study: StudyData) -> pd.DataFrame:
    """Mean F by distance, ranking and N, the sink kept; random rankings beside them.

    ``least`` and ``greatest``: of the means of the single random rankings.
    """
    frames = []
    for distance in DISTANCES:
        for ranking in (*RANKINGS, "random"):
            if ranking == "random":
                found = random_f(study, distance)
                alone = np.stack([_plain_mean(f) for f in found])
                ends = alone.min(axis=0), alone.max(axis=0)
                f = np.concatenate(list(found), axis=1)
            else:
                ends = (np.nan, np.nan)
                f = study.f("keep", ranking, distance)
            frame = tidy(
                pooled_mean(study.weights, f),
                study.n_documents,
                {"n": study.n},
                distance=distance,
                ranking=ranking,
            )
            frames.append(frame.assign(least=ends[0], greatest=ends[1]))
    columns = ("distance", "ranking", "n", "value", "low", "high", "least", "greatest")
    return joined(frames, columns)


def policies(study: StudyData) -> pd.DataFrame:
    """Mean precision, recall and F (D7) by class, sink policy and N."""
    everyone = np.ones((1, *study.head_classes.shape), dtype=bool)
    masks = np.concatenate([everyone, class_masks(study.head_classes)])
    frames = []
    for policy in SINK_POLICIES:
        for metric, x in study.precision_recall_f(policy).items():
            found = class_means(study.weights, masks, x)
            frame = tidy(
                found,
                study.n_documents,
                {"head_class": CLASS_NAMES, "n": study.n},
                sink_policy=policy,
                metric=metric,
            )
            frames.append(frame)
    columns = ("head_class", "sink_policy", "metric", "n", "value", "low", "high")
    return joined(frames, columns)


def sink_selected(study: StudyData) -> pd.DataFrame:
    """How often the sink is selected, and mean F with it kept and dropped there.

    ``ratio``: f_keep / f_drop, with its interval.
    """
    keep, drop = (pooled_mean(study.weights, f) for f in selected_entries(study))
    measured = ~np.isnan(study.f("keep"))
    selected = np.where(measured, study.sink_selected, np.nan)
    frame = tidy(ratio(keep, drop), study.n_documents, {"n": study.n}, "ratio")
    frame = frame.assign(
        selected_share=_plain_mean(selected), f_keep=keep[0], f_drop=drop[0]
    )
    columns = ("n", "selected_share", "f_keep", "f_drop", "ratio", "low", "high")
    return joined([frame], columns)


def sink_geometry(study: StudyData) -> pd.DataFrame:
    """Norm ratio (median over documents) and cosine (mean) of the sink by head."""
    once = study.weights[:1]
    return pd.DataFrame(
        {
            "layer": study.layers,
            "head": study.heads,
            "norm_ratio": weighted_median(once, study.numbers("sink_norm_ratio"))[0],
            "cosine": weighted_mean(once, study.numbers("sink_cosine"))[0],
            "head_class": class_names(study.head_classes[0]),
        }
    )


def bos(study: StudyData) -> pd.DataFrame:
    """Mean F with and without BOS, the first token or the found sink dropped."""
    frames = []
    for which, bare in _sides(study):
        for policy in ("keep", "drop", "drop found sink"):
            found = policy == "drop found sink"
            f = study.f_found(bare=bare) if found else study.f(policy, bare=bare)
            mean = pooled_mean(study.weights, f)
            axes = {"n": study.n}
            frames.append(tidy(mean, study.n_documents, axes, bos=which, policy=policy))
    return joined(frames, ("bos", "policy", "n", "value", "low", "high"))


def found_sink(study: StudyData) -> pd.DataFrame:
    """Share of (document, head) whose greatest mean weight is on the first token."""
    frames = []
    for which, bare in _sides(study):
        first = study.at_first(bare=bare)
        by_layer = pd.Series(first.mean(axis=0)).groupby(study.layers).mean()
        frames.append(
            pd.DataFrame(
                {
                    "bos": which,
                    "position_0_share": [*by_layer, first.mean()],
                    "layer": [*by_layer.index, WHOLE],
                }
            )
        )
    return joined(frames, ("bos", "position_0_share", "layer"))


def _sides(study: StudyData) -> list[tuple[str, bool]]:
    """Return with and without BOS; a model that names no BOS has no first side."""
    return [("with", False)] * study.has_bos + [("without", True)]


def _plain_mean(x: np.ndarray) -> np.ndarray:
    """Return the mean over documents and heads by N; NaN is left out."""
    return np.asarray(pooled_mean(np.ones((1, len(x))), x)[0])
