"""Statistics that tables and findings share: each is computed in one place.

Every function returns one row for each row of ``StudyData.weights``: the data first,
then the replicates. A head's class is named anew in every replicate.
"""

from typing import Any

import numpy as np

from empirical.metrics import CLASSES, enclosures
from empirical.study.data import NO_CLASS, StudyData
from empirical.study.resample import ratio, weighted_mean

__all__ = [
    "CAUSES",
    "cause_gain",
    "class_masks",
    "class_means",
    "class_shares",
    "class_sums",
    "cohen_kappa",
    "collapse_means",
    "head_means",
    "mean_over_heads",
    "mean_over_n",
    "median_over_heads",
    "random_f",
    "rank_correlation",
    "selected_entries",
    "tightness",
    "usable_n",
]

# T3's four causes of lost separability.
CAUSES = ("cosine spread", "norm spread", "sink", "negative common cosine")


def usable_n(study: StudyData, least: int = 2, greatest: float = np.inf) -> np.ndarray:
    """Return which N lie in a range; N = 1 says nothing (T7)."""
    return (study.n >= least) & (study.n <= greatest)


def mean_over_n(statistic: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the mean over the chosen N, each N counting alike.

    N that are undefined for the data are left out in every row; a replicate that lacks
    another one is undefined.
    """
    chosen = chosen & ~np.isnan(statistic[0])
    if not chosen.any():
        return np.full(len(statistic), np.nan)
    return np.asarray(statistic[:, chosen].mean(axis=1))


def mean_over_heads(x: np.ndarray) -> np.ndarray:
    """Return the mean of (rows, heads) over the heads that have a number."""
    present = ~np.isnan(x)
    return ratio(np.where(present, x, 0.0).sum(axis=1), present.sum(axis=1))


def median_over_heads(x: np.ndarray) -> np.ndarray:
    """Return the median of (rows, heads) over the heads that have a number."""
    found = np.full(len(x), np.nan)
    some = ~np.isnan(x).all(axis=1)
    found[some] = np.nanmedian(x[some], axis=1)
    return found


def random_f(study: StudyData, distance: str) -> np.ndarray:
    """Return F of every random ranking: (repeats, documents, heads, n)."""
    found = study.values["f_random"].sel(distance=distance)
    return np.stack([study.by_head(found.sel(repeat=r)) for r in found["repeat"]])


def class_masks(codes: np.ndarray) -> np.ndarray:
    """Return (classes, rows, heads): where each class of ``CLASSES`` holds."""
    return np.stack([codes == k for k in range(len(CLASSES))])


def class_sums(weights: np.ndarray, masks: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return sums over documents and the heads of each mask.

    Parameters
    ----------
    weights : ndarray of shape (rows, documents)
        Weights of the documents.
    masks : ndarray of bool, shape (classes, rows, heads)
        Heads of each class under each row.
    x : ndarray of shape (documents, heads, last)
        Numbers without NaN.

    Returns
    -------
    ndarray of shape (rows, classes, last)
        One ``last`` at a time: (rows, heads) numbers are the most held at once.
    """
    masks = masks.astype(float)
    sums = np.empty((len(weights), len(masks), x.shape[2]))
    for k in range(x.shape[2]):
        by_head = weights @ x[:, :, k]
        sums[:, :, k] = np.einsum("rh,crh->rc", by_head, masks)
    return sums


def class_means(weights: np.ndarray, masks: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return means over documents and the heads of each mask; NaN is left out."""
    present = ~np.isnan(x)
    sums = class_sums(weights, masks, np.where(present, x, 0.0))
    return ratio(sums, class_sums(weights, masks, present.astype(float)))


def class_shares(codes: np.ndarray) -> np.ndarray:
    """Return (rows, classes): shares among the heads that have a class."""
    counts = class_masks(codes).sum(axis=2).T
    return ratio(counts, (codes != NO_CLASS).sum(axis=1)[:, None])


def cohen_kappa(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Cohen's kappa between two classifications of the same heads.

    Parameters
    ----------
    a, b : ndarray of int, shape (rows, heads)
        Codes; a head without class (-1) on either side is left out.

    Returns
    -------
    ndarray of shape (rows,)
        (p_o - p_e) / (1 - p_e), where p_o is the share of heads with one class on both
        sides and p_e that share if both sides were independent with their own class
        shares. NaN where one class holds all heads on both sides, or no head is left.

    Notes
    -----
    Source: Cohen, Educational and Psychological Measurement 20 (1960) 37-46.
    """
    both = (a != NO_CLASS) & (b != NO_CLASS)
    count = both.sum(axis=1)
    observed = ((a == b) & both).sum(axis=1)
    # In whole numbers: kappa is undefined exactly where chance agreement is certain.
    by_chance = sum(
        ((a == k) & both).sum(axis=1) * ((b == k) & both).sum(axis=1)
        for k in range(len(CLASSES))
    )
    return ratio(observed * count - by_chance, count * count - by_chance)


def cause_gain(study: StudyData, cause: str) -> np.ndarray:
    """Return F with a cause of T3 removed less F, by entry: (documents, heads, n).

    Spread of cosines or norms: equalised, the sink kept. Sink: dropped. Negative common
    cosine: replaced by 0 after sink, norm spread and cosine spread are gone.
    """
    if cause == "negative common cosine":
        equal = study.f_removed("norms and cosines", "drop")
        lifted = study.f_removed("norms and cosines, nonnegative", "drop")
        return np.asarray(lifted - equal)
    removal, policy = {
        "cosine spread": ("cosines", "keep"),
        "norm spread": ("norms", "keep"),
        "sink": ("none", "drop"),
    }[cause]
    measured = study.f_removed("none", "keep")
    return np.asarray(study.f_removed(removal, policy) - measured)


def selected_entries(study: StudyData) -> tuple[np.ndarray, np.ndarray]:
    """Return F under keep and under drop where the sink is selected, NaN elsewhere."""
    keep, drop = study.f("keep"), study.f("drop")
    used = study.sink_selected & ~np.isnan(keep) & ~np.isnan(drop)
    return np.where(used, keep, np.nan), np.where(used, drop, np.nan)


def tightness(
    study: StudyData, policy: str, groups: dict[str, dict[Any, np.ndarray]]
) -> dict[str, dict[str, np.ndarray]]:
    """Return mean certified F over mean measured F by enclosure and group.

    Parameters
    ----------
    study : StudyData
        The study.
    policy : str
        Sink policy.
    groups : dict
        By name of a grouping, the mask (rows, heads) or (heads,) of each of its groups.

    Returns
    -------
    dict
        By enclosure, by grouping: ndarray of shape (rows, groups, n).
    """
    measured = study.f(policy)
    present = ~np.isnan(measured)
    totals = _group_sums(study, groups, np.where(present, measured, 0.0))
    found = {}
    for key, (_, bound) in enclosures(study.values).items():
        certified = study.by_head(bound.sel(certified_policy=policy))
        sums = _group_sums(study, groups, np.where(present, certified, 0.0))
        found[key] = {name: ratio(sums[name], totals[name]) for name in groups}
    return found


def collapse_means(
    study: StudyData, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted (T5) and measured F of every head where the condition holds.

    Means over documents and the chosen N of the entries in which the sink is selected
    and T5's condition holds: two arrays of shape (rows, heads), NaN where none does.
    """
    used = (study.collapse == 1) & chosen
    pair = []
    for f in (study.f_removed("norms and cosines", "keep"), study.f("keep")):
        kept = used & ~np.isnan(f)
        sums = np.where(kept, f, 0.0).sum(axis=2)
        pair.append(ratio(study.weights @ sums, study.weights @ kept.sum(axis=2)))
    return pair[0], pair[1]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation over heads in each row; ties get mean ranks.

    Parameters
    ----------
    a, b : ndarray of shape (rows, heads)
        A head that is NaN on either side is left out.

    Returns
    -------
    ndarray of shape (rows,)
        NaN where fewer than three heads are left or one side is constant.
    """
    found = np.full(len(a), np.nan)
    for row, (x, y) in enumerate(zip(a, b, strict=True)):
        both = ~(np.isnan(x) | np.isnan(y))
        if both.sum() < 3:
            continue
        p, q = _centred_ranks(x[both]), _centred_ranks(y[both])
        size = np.sqrt((p @ p) * (q @ q))
        if size > 0:
            found[row] = p @ q / size
    return found


def head_means(study: StudyData, x: np.ndarray) -> np.ndarray:
    """Return the mean over documents of (documents, heads): (rows, heads)."""
    return weighted_mean(study.weights, x)


def _centred_ranks(x: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place] - (len(x) + 1) / 2


def _group_sums(
    study: StudyData, groups: dict[str, dict[Any, np.ndarray]], x: np.ndarray
) -> dict[str, np.ndarray]:
    """Return weighted sums over documents and each group's heads: (rows, groups, n)."""
    found = {}
    for name, masks in groups.items():
        stacked = np.stack(list(masks.values()))
        if stacked.ndim == 3:  # heads change their group with the replicate
            found[name] = class_sums(study.weights, stacked, x)
        else:
            by_document = np.einsum("gh,dhn->dgn", stacked.astype(float), x)
            found[name] = np.tensordot(study.weights, by_document, 1)
    return found
