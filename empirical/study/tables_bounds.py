"""Tables of the bounds: how tight each is, and how many numbers are needed."""

from typing import Any

import numpy as np
import pandas as pd

from empirical.metrics import CLASSES, enclosures
from empirical.reduce import CERTIFIED_POLICIES
from empirical.study.data import StudyData
from empirical.study.measures import class_masks, tightness
from empirical.study.tidy import joined, tidy

__all__ = ["numbers_known", "numbers_needed", "tightness_table"]

NEARLY_ALL = 0.9


def numbers_known(study: StudyData, enclosure: str, policy: str) -> int:
    """Return how many numbers about the values a bound uses, at most.

    Notes
    -----
    T4: norms and cosines in [c-, c+] and [mu-, mu+], and where the sink is a candidate
    its norm and cosines. By role: norms of S and of U, a least and a greatest cosine;
    the sink's norm, two cosines, and the greatest pull. All norms: one a candidate in
    place of intervals. T2: the inversions. T6: two a cell.
    """
    sink = policy == "keep"
    if enclosure == "t4_norms":
        candidates = study.main["n_candidates"].sel(sink_policy=policy)
        return int(np.median(candidates)) + (5 if sink else 2)
    if enclosure.startswith("t6_"):
        return 2 * int(enclosure.removeprefix("t6_"))
    return {
        "t4_all": 8 if sink else 4,
        "t4_roles": 11 if sink else 6,
        "t2_separate": 1,
        "t2_joint": 1,
    }[enclosure]


def tightness_table(study: StudyData) -> pd.DataFrame:
    """Mean certified F over mean measured F, by bound, policy, N, layer and class."""
    groups: dict[str, dict[Any, np.ndarray]] = {
        "all": {"all": np.ones(len(study.layers), dtype=bool)},
        "layer": {int(x): study.layers == x for x in np.unique(study.layers)},
        "head_class": dict(zip(CLASSES, class_masks(study.head_classes), strict=True)),
    }
    labels = {key: label for key, (label, _) in enclosures(study.values).items()}
    frames = []
    for policy in CERTIFIED_POLICIES:
        for key, by_group in tightness(study, policy, groups).items():
            for group, statistic in by_group.items():
                axes: dict[str, Any] = {"which": list(groups[group]), "n": study.n}
                frame = tidy(
                    statistic, study.n_documents, axes, sink_policy=policy, group=group
                )
                numbers = numbers_known(study, key, policy)
                known = {"enclosure": key, "label": labels[key], "numbers": numbers}
                frames.append(frame.assign(**known))
    columns = ("enclosure", "label", "numbers", "sink_policy", "group", "which", "n")
    return joined(frames, (*columns, "value", "low", "high"))


def numbers_needed(study: StudyData) -> pd.DataFrame:
    """Share of entries of which cells of so many numbers certify 90 % of F.

    Of the (document, head) with F > 0. A share counts what fewer numbers certify too.
    """
    rows = []
    bounds = study.values["t6"]
    for policy in CERTIFIED_POLICIES:
        measured = study.f(policy)
        some = measured > 0
        done = np.zeros_like(some)
        for cells in sorted(int(k) for k in bounds["resolution"].values):
            at = bounds.sel(certified_policy=policy, resolution=cells)
            done |= some & (study.by_head(at) >= NEARLY_ALL * measured)
            totals = some.sum(axis=(0, 1))
            for n, count, total in zip(
                study.n.tolist(), done.sum(axis=(0, 1)), totals, strict=True
            ):
                share = count / total if total else np.nan
                row = {"sink_policy": policy, "n": n, "numbers": 2 * cells}
                rows.append({**row, "share": share})
    return joined([pd.DataFrame(rows)], ("sink_policy", "n", "numbers", "share"))
