"""Wrong versions of every bound, each caught by the battery of exact cases.

A row names the statement, the module, the text replaced and its replacement. The
battery must pass on the library as it is and fail on each of these.
"""

import pytest
from battery import check_head
from cases import draw_heads
from mutants import load_copy

_HEADS = 420

MUTANTS = {
    # T1, upper counts from intervals.
    "T1 FP: < for <=": (
        "separability",
        "fp_upper=int((unselected_lo <= selected_hi.max()).sum())",
        "fp_upper=int((unselected_lo < selected_hi.max()).sum())",
    ),
    "T1 FP: inequality flipped": (
        "separability",
        "fp_upper=int((unselected_lo <= selected_hi.max()).sum())",
        "fp_upper=int((unselected_lo >= selected_hi.max()).sum())",
    ),
    "T1 FP: wrong end of the interval": (
        "separability",
        "fp_upper=int((unselected_lo <= selected_hi.max()).sum())",
        "fp_upper=int((unselected_hi <= selected_hi.max()).sum())",
    ),
    "T1 FP: min for max": (
        "separability",
        "fp_upper=int((unselected_lo <= selected_hi.max()).sum())",
        "fp_upper=int((unselected_lo <= selected_hi.min()).sum())",
    ),
    "T1 FN: > for >=": (
        "separability",
        "fn_upper=int((selected_hi >= unselected_lo.min()).sum())",
        "fn_upper=int((selected_hi > unselected_lo.min()).sum())",
    ),
    "T1 FN: wrong end of the interval": (
        "separability",
        "fn_upper=int((selected_hi >= unselected_lo.min()).sum())",
        "fn_upper=int((selected_lo >= unselected_lo.min()).sum())",
    ),
    "T1 inversions: ties not counted": (
        "separability",
        'selected, side="right"',
        'selected, side="left"',
    ),
    "T1 lower FP: upper end of the selected": (
        "separability",
        "fp_lower=int((unselected_hi <= selected_lo.max()).sum())",
        "fp_lower=int((unselected_lo <= selected_hi.max()).sum())",
    ),
    # T2, bounds from inversions.
    "T2a P: min dropped to 0": (
        "bounds",
        "p = precision(n, min(g, m))",
        "p = precision(n, 0)",
    ),
    "T2a R: one inversion fewer": (
        "bounds",
        "r = recall(n, min(g, n))",
        "r = recall(n, max(0, min(g, n) - 1))",
    ),
    "T2a P: G over M": (
        "bounds",
        "p = precision(n, min(g, m))",
        "p = precision(n + m, min(g, m))",
    ),
    "T2b: one false negative fewer": (
        "bounds",
        "fn = min(most_fn, inversions)\n",
        "fn = max(1, min(most_fn, inversions) - 1)\n",
    ),
    "T2b: as few false negatives as allowed": (
        "bounds",
        "fn = min(most_fn, inversions)\n",
        "fn = 1\n",
    ),
    "T2b: shared inversion dropped": (
        "bounds",
        "min(most_fp, inversions + 1 - fn), fn)",
        "min(most_fp, inversions - fn), fn)",
    ),
    "T2b: cap on the false negatives too low": (
        "bounds",
        "capped_f_bound(n, m, n, g)",
        "capped_f_bound(n, m, n - 1, g)",
    ),
    "T2b: no false positives": (
        "bounds",
        "min(most_fp, inversions + 1 - fn), fn)",
        "0, fn)",
    ),
    # T6, cells.
    "T6 selected: q- for q+": (
        "regime",
        "norm, dot = high[0][part].max(), low[1][part].min()",
        "norm, dot = high[0][part].min(), low[1][part].min()",
    ),
    "T6 selected: t+ for t-": (
        "regime",
        "norm, dot = high[0][part].max(), low[1][part].min()",
        "norm, dot = high[0][part].max(), low[1][part].max()",
    ),
    "T6 unselected: q+ for q-": (
        "regime",
        "norm, dot = low[0][part].min(), high[1][part].max()",
        "norm, dot = low[0][part].max(), high[1][part].max()",
    ),
    "T6: the weight's square dropped": (
        "regime",
        "w * (w * cell.norm - 2 * cell.dot)",
        "w * (cell.norm - 2 * cell.dot)",
    ),
    "T6: the factor 2 dropped": (
        "regime",
        "w * (w * cell.norm - 2 * cell.dot)",
        "w * (w * cell.norm - cell.dot)",
    ),
    "T6: sink cell merged": (
        "cells",
        "            boundaries.add(1)\n",
        "",
    ),
    "T6: sink cell merged, unselected": (
        "cells",
        "            boundaries.add(len(keys) - 1)\n",
        "",
    ),
    "T6: one cell across the boundary": (
        "cells",
        "boundaries = {0, n, len(keys)}",
        "boundaries = {0, len(keys)}",
    ),
    "T6 in floats: rounded inward": (
        "regime",
        "np.nextafter(bound + radius, np.inf)",
        "np.nextafter(bound - 2**20 * radius, np.inf)",
    ),
    "T6 in floats: least for greatest norm": (
        "regime",
        "np.maximum.reduceat(norm, starts)",
        "np.minimum.reduceat(norm, starts)",
    ),
    # T8, the rounding radius, and what is settled exactly.
    "T8 quick: for float64 too": (
        "separability",
        " and head.is_narrow",
        "",
    ),
    "T8: no radius": (
        "power",
        "return _outward(phi, radius, n)",
        "return _outward(phi, 0 * radius, n)",
    ),
    "T8: T left out of B": (
        "power",
        "b_term = weight * weight * norm + 2 * weight * bulk",
        "b_term = weight * weight * norm",
    ),
    "T8: underflow left out": (
        "power",
        "* b_term + tiny * e_term",
        "* b_term",
    ),
    "T8: radius moved inward": (
        "power",
        "lo = np.nextafter(center - radius, -np.inf)",
        "lo = np.nextafter(center + radius, -np.inf)",
    ),
    "T8: overflow taken as known": (
        "power",
        "Enclosure(np.where(known, lo, -np.inf)",
        "Enclosure(np.where(known, lo, np.inf)",
    ),
    "D9: the power's sign": (
        "exact",
        "return w * w * self.norms - 2 * w * self.dots",
        "return w * w * self.norms + 2 * w * self.dots",
    ),
    # D2, D3, the selection.
    "D3: ties to the larger index": (
        "selection",
        'order = (len(scores) - 1 - np.argsort(scores[::-1], kind="stable"))[::-1]',
        'order = np.argsort(scores, kind="stable")[::-1]',
    ),
    "D2: a competing sink dropped": (
        "selection",
        "barred = np.array([head.sink])",
        "pass",
    ),
    "D2: hidden keys as candidates": (
        "selection",
        "seen = head.visible[row].copy()",
        "seen = np.ones_like(head.visible[row])",
    ),
    "D3: near-ties of contributions in floats": (
        "selection",
        "radius = (d_head + 4) * 2.0**-53 * score",
        "radius = 0 * score",
    ),
    # D5, cosine.
    "D5: the sign of kappa dropped": (
        "exact",
        "(-t * abs(t), q) if w and q else (0, 1)",
        "(-t * t, q) if w and q else (0, 1)",
    ),
    "D5: cosine radius inward": (
        "power",
        "t_low, t_high = x.t - x.t_radius, x.t + x.t_radius",
        "t_low, t_high = x.t, x.t",
    ),
}


def _first_failure(package) -> str | None:
    for i, case in enumerate(draw_heads(0, _HEADS)):
        try:
            check_head(package, case, seed=i)
        except Exception as error:
            return f"{case.shape}: {type(error).__name__}"
    return None


def test_the_library_as_it_is_passes_the_battery():
    """Otherwise a caught mutant would mean nothing."""
    assert _first_failure(load_copy()) is None


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_version_is_caught(name):
    """Some exact case fails under the wrong version."""
    assert _first_failure(load_copy(MUTANTS[name])) is not None
