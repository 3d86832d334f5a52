"""The picture of one query: every candidate's distance against its weight."""

from math import log10
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from empirical.drawing import BLUE, GREEN, ORANGE, STYLE, Drawing
from geobounds import ArgumentError
from geobounds.inspection import Inspection, TokenRow

__all__ = ["distance_by_weight"]


def distance_by_weight(found: Inspection) -> Drawing:
    """Distance to the aggregate against attention weight, one marker a candidate.

    Raises
    ------
    ArgumentError
        A distance lies beyond the range of float64.
    """
    rows = (*found.selected, *found.unselected)
    distances = [row.distance for row in rows]
    # Half the range, so that the axis' own margins stay inside it.
    if not max(distances) < np.finfo(np.float64).max / 2:
        msg = "plot: distances must lie in the range of float64, got a larger one."
        raise ArgumentError(msg)
    logs = [log10(row.weight) for row in rows if row.weight > 0] or [0.0]
    low, high = min(logs), max(logs)
    zero = low - max(0.12 * (high - low), 0.3)  # where weights of 0 are drawn
    x = {r.key: log10(r.weight) if r.weight > 0 else zero for r in rows}
    ticks = _log_ticks(low, high)
    if zero in x.values():
        ticks = {zero: "0"} | ticks
    # Light tokens crowd at the length of the sum: the lines between them need a view
    # of their own wherever they would run together.
    gap = abs(found.rho_max - found.rho_min)
    finest = 1e-9 * found.rho_max  # below this an axis of float64 has no room
    zoom = finest < gap < 0.1 * (max(distances) - min(distances))

    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(7, 7.4 if zoom else 4.9), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1 + zoom, 1, sharex=True))
        for axes in panels:
            for label, members, style in _groups(found):
                if members:
                    axes.scatter(
                        [x[row.key] for row in members],
                        [row.distance for row in members],
                        label=label,
                        zorder=3,
                        **style,
                    )
            for label, height, color, dash in (
                ("rho_max: farthest selected", found.rho_max, BLUE, "--"),
                ("rho_min: nearest unselected", found.rho_min, ORANGE, ":"),
            ):
                axes.axhline(height, label=label, color=color, linestyle=dash, zorder=2)
            axes.grid(visible=True, alpha=0.25)
            axes.set_ylabel("distance D")
        if zoom:
            middle = (found.rho_max + found.rho_min) / 2
            panels[1].set_ylim(middle - gap, middle + gap)
            panels[1].ticklabel_format(axis="y", useOffset=False)
            panels[0].set_title("all tokens", fontsize=10, loc="left")
            panels[1].set_title("near the two lines", fontsize=10, loc="left")
        panels[-1].set_xlabel("attention weight (logarithmic)")
        panels[-1].xaxis.set_minor_locator(NullLocator())
        panels[-1].set_xticks(list(ticks), list(ticks.values()))
        handles, labels = panels[0].get_legend_handles_labels()
        panels[-1].legend(
            handles,
            labels,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.22 if zoom else -0.16),
            ncols=2,
            fontsize=9,
            frameon=False,
        )
    # The font may lack letters of a name.
    name = found.origin.encode("ascii", "backslashreplace").decode()
    origin = f"{name}, " if name else ""
    zeros = "Weights of 0 stand at the left edge. " if zero in x.values() else ""
    views = "The lower panel enlarges what lies near the lines. " if zoom else ""
    caption = (
        "How to read it: one marker a candidate token, farther right the more "
        "attended, lower the nearer to the sum of the selected. An open marker on or "
        "below the blue dashed line is a false positive, a filled one on or above the "
        "orange dotted line a false negative; both are crossed. The selection is "
        f"separable (F = 1) only if the dotted line lies above the dashed one. {views}"
        f"{zeros}Here P = {float(found.precision):.3f}, R = {float(found.recall):.3f}, "
        f"F = {float(found.f_score):.3f}. {origin}query {found.query_position}, "
        f"ranking {found.ranking}, sink {found.sink_policy}."
    )
    return Drawing(
        "distance_by_weight",
        "Distance to the sum of the selected against weight, "
        f"N = {found.n} of {found.n_candidates} tokens",
        caption.replace("$", r"\$"),  # a dollar would open a formula
        figure,
    )


def _groups(found: Inspection) -> list[tuple[str, list[TokenRow], dict[str, Any]]]:
    """Return label, tokens and marker of everything drawn by distance_by_weight."""
    others = [row for row in found.unselected if not row.sink]
    chosen = [row for row in found.selected if not row.sink]
    sinks = [row for row in (*found.selected, *found.unselected) if row.sink]
    wrong = [*found.false_positives, *found.false_negatives]
    filled = bool(sinks) and sinks[0].selected
    return [
        (
            f"unselected ({len(others)})",
            others,
            {"marker": "s", "facecolors": "none", "edgecolors": ORANGE, "s": 40},
        ),
        (
            f"selected ({len(chosen)})",
            chosen,
            {"marker": "o", "color": BLUE, "s": 48},
        ),
        (
            f"attention sink ({'selected' if filled else 'unselected'})",
            sinks,
            {
                "marker": "*",
                "s": 200,
                "edgecolors": "black",
                "facecolors": GREEN if filled else "white",
            },
        ),
        (
            f"false positive or negative ({len(wrong)})",
            wrong,
            {"marker": "x", "color": "black", "s": 20, "linewidths": 1},
        ),
    ]


def _log_ticks(low: float, high: float) -> dict[float, str]:
    """Place ticks of a logarithmic axis between two powers of ten."""
    first, last = int(np.floor(low)), int(np.ceil(high))
    if high - low > 2:
        step = max(1, round((last - first) / 8))
        decades = [k for k in range(last, first - 1, -step) if low <= k <= high]
        return {float(k): f"$10^{{{k}}}$" for k in reversed(decades)}
    fine = {
        log10(m) + k: f"{m * 10.0**k:g}" for k in range(first, last) for m in (1, 2, 5)
    }
    inside = {x: label for x, label in fine.items() if low <= x <= high}
    return (
        inside if len(inside) > 1 else {low: f"{10**low:.2g}", high: f"{10**high:.2g}"}
    )
