"""F5: every bound holds, and how much of measured F it certifies."""

import numpy as np
import xarray as xr

from empirical.kernels.rows import MISSING
from empirical.reduce import CERTIFIED_POLICIES
from empirical.study.data import StudyData
from empirical.study.finding import Finding, Range
from empirical.study.hypotheses import NOTHING, exactly, sampled
from empirical.study.measures import tightness
from geobounds import inversion_bounds
from geobounds.separability import f_score, precision, recall

__all__ = ["bound_findings", "count_violations"]

_AT = 8  # N at which bounds are judged


def bound_findings(study: StudyData) -> list[Finding]:
    """F5: soundness in every entry; what nine cells and the paper's regime certify."""
    wrong, compared = 0, 0
    for scan in (study.main, study.bare):
        violations = count_violations(scan)
        wrong += violations[0]
        compared += violations[1]
    whole = {"all": {"all": np.ones(len(study.layers), dtype=bool)}}
    tight = tightness(study, "keep", whole)
    return [
        exactly(
            "F5-sound",
            "No bound exceeds what is measured",
            hypothesis="Every certified bound lies at or below the measurement.",
            measure="Entries in which a bound claims fewer false positives or "
            "negatives than were counted, or a greater F (number of entries)",
            number=wrong,
            expected=Range(0, 0),
            figure="tightness_by_n",
            note=f"{compared:,} comparisons of whole numbers or fractions, all "
            "documents of both scans.",
        ),
        _share(
            study,
            tight.get("t6_9"),
            Range(least=0.9),
            id_="F5-nine",
            title="Nine cells certify nearly all of F",
            hypothesis="Nine cells of two numbers each (T6) certify at least 90 % of "
            f"mean F at N = {_AT}.",
        ),
        _share(
            study,
            tight.get("t4_all"),
            Range(least=0.1),
            id_="F5-paper",
            title="The paper's regime certifies a tenth of F",
            hypothesis="The paper's regime, eight numbers for all pairs (T4), "
            f"certifies at least 10 % of mean F at N = {_AT}.",
        ),
    ]


def count_violations(scan: xr.Dataset) -> tuple[int, int]:
    """Count bounds of a scan that the measurement contradicts, without rounding.

    Parameters
    ----------
    scan : xarray.Dataset
        Counts.

    Returns
    -------
    wrong, compared : int
        Entries in which a regime's FP or FN (T4, T6) lies below the measured one, or
        F or P or R by the inversions (T2) above it; and all entries compared.
    """
    wrong = compared = 0
    at = scan.sel(distance="euclidean", ranking="weight", drop=True)
    for policy in CERTIFIED_POLICIES:
        one = at.sel(sink_policy=policy, certified_policy=policy, drop=True)
        fp, fn = one["false_positives"], one["false_negatives"]
        for kind in ("pairwise", "cell"):
            fp_bound, fn_bound = (
                one[f"{kind}_false_{which}"] for which in ("positives", "negatives")
            )
            there = (fp >= 0) & (fp_bound >= 0)
            failed = there & ((fp_bound < fp) | (fn_bound < fn))
            wrong += int(failed.sum())
            compared += int(there.sum())
        counts = _by_inversions(one)
        wrong += sum(
            count for entry, count in counts.items() if not _inversions_hold(*entry)
        )
        compared += sum(counts.values())
    return wrong, compared


def _by_inversions(one: xr.Dataset) -> dict[tuple[int, ...], int]:
    """Return how often each (N, |U|, inversions, FP, FN) occurs."""
    fp = one["false_positives"]
    columns = xr.broadcast(
        one["n"], one["n_candidates"] - one["n"], one["inversions"], fp
    )
    fn = one["false_negatives"].broadcast_like(columns[0]).transpose(*columns[0].dims)
    table = np.stack([x.values.ravel() for x in (*columns, fn)], axis=1)
    table = table[(table != MISSING).all(axis=1)]
    entries, counts = np.unique(table, axis=0, return_counts=True)
    return dict(zip(map(tuple, entries.tolist()), counts.tolist(), strict=True))


def _inversions_hold(n: int, unselected: int, g: int, fp: int, fn: int) -> bool:
    bound = inversion_bounds(n, unselected, g)
    return (
        max(bound.f_joint, bound.f_separate) <= f_score(n, fp, fn)
        and bound.precision <= precision(n, fp)
        and bound.recall <= recall(n, fn)
    )


def _share(
    study: StudyData,
    tight: dict[str, np.ndarray] | None,
    expected: Range,
    *,
    id_: str,
    title: str,
    hypothesis: str,
) -> Finding:
    """Return a finding on how much of mean F one bound certifies."""
    place = np.flatnonzero(study.n == _AT)
    statistic, note = NOTHING, f"The scan holds no such bound at N = {_AT}."
    if tight is not None and place.size:
        statistic, note = tight["all"][:, 0, place[0]], ""
    return sampled(
        study,
        id_,
        title,
        hypothesis=hypothesis,
        measure=f"Mean certified F over mean measured F at N = {_AT}; weight, "
        "Euclidean distance, sink kept (ratio)",
        statistic=statistic,
        expected=expected,
        figure="tightness_by_n",
        note=note,
    )
