"""Figures of a scan and of one query. They read results, never a model.

Lines and dots differ by marker and dash as well as colour, so that a grey print and a
colour-blind reader see the same.
"""

import textwrap
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, NullLocator

from geobounds import ArgumentError
from geobounds.files import replacing
from geobounds.inspection import Inspection, TokenRow

__all__ = [
    "Drawing",
    "add_caption",
    "all_figures",
    "distance_by_weight",
    "save_drawing",
]

_BLUE, _ORANGE, _GREEN, _GREY = "#0b5394", "#d95f02", "#1b7837", "#6e6e6e"
_STYLE: dict[str, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """One figure with what a page says around it."""

    name: str
    title: str
    caption: str
    figure: Figure


def all_figures(values: xr.Dataset, table: list[dict[str, Any]]) -> list[Drawing]:
    """Return the figures of a page.

    Parameters
    ----------
    values : xarray.Dataset
        As returned by ``metrics``.
    table : list of dict
        As returned by ``table_by_n``.
    """
    with mpl.rc_context(rc=_STYLE):  # type: ignore[arg-type]
        return [
            bounds_by_n(values, table),
            head_map(values),
            certified_against_measured(values),
        ]


def add_caption(drawing: Drawing) -> None:
    """Write title and caption into the figure, above and below what it shows."""
    figure = drawing.figure
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(drawing.caption, int(width * 15.5))
    text_height, title_height = 0.165 * len(lines) + 0.15, 0.4
    total = height + text_height + title_height
    figure.set_size_inches(width, total)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, text_height / total, 1, height / total))
    figure.text(0.02, 1 - 0.12 / total, drawing.title, va="top", fontsize=12)
    figure.text(0.02, 0.08 / total, "\n".join(lines), va="bottom", fontsize=8.5)


def save_drawing(drawing: Drawing, path: Path) -> None:
    """Write a figure with title and caption as a PNG file, whole or not at all."""
    with mpl.rc_context(rc=_STYLE):  # type: ignore[arg-type]
        add_caption(drawing)
    metadata = {"Title": drawing.title, "Description": drawing.caption}
    with replacing(path) as temporary:
        drawing.figure.savefig(temporary, format="png", dpi=150, metadata=metadata)


def _origin(values: xr.Dataset) -> str:
    attrs = values.attrs
    count = values.sizes["window"]
    windows = "1 window" if count == 1 else f"{count} windows"
    return (
        f"{attrs['model']} ({attrs['model_fingerprint'][:19]}), {attrs['corpus']}, "
        f"{windows} of {attrs['spec']['length']} tokens, last query, "
        f"{attrs['dtype']}, BOS: {attrs['bos']}."
    )


def bounds_by_n(values: xr.Dataset, table: list[dict[str, Any]]) -> Drawing:
    """Measured F and its certified lower bounds over N."""
    n = [row["n"] for row in table]
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    resolutions = values["resolution"].values.tolist()
    cells = ", ".join(map(str, resolutions))
    measured = [
        ("F measured, sink kept", "keep", "f", "black", "o", "-"),
        ("F measured, sink dropped", "drop", "f", _GREY, "D", "-"),
    ]
    certified = [
        (f"certified, {k} cells (T6)", "keep", f"t6_{k}", _BLUE, m, d)
        for k, m, d in zip(
            reversed(resolutions), ("s", "^", "v"), ("--", "-.", ":"), strict=False
        )
    ]
    rest = [
        ("certified, inversions (T2)", "keep", "t2_joint", _ORANGE, "x", "--"),
        ("F of random sets", "keep", "random", _GREEN, "+", ":"),
    ]
    for label, policy, key, color, marker, dash in (*measured, *certified, *rest):
        axes.plot(
            n,
            [row[policy][key] for row in table],
            label=label,
            color=color,
            marker=marker,
            linestyle=dash,
            markersize=6,
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(n))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([str(k) for k in n])
    axes.set_ylim(-0.02, 1.05)
    axes.set_xlabel("N, number of selected tokens")
    axes.set_ylabel("F, mean over heads")
    axes.grid(visible=True, alpha=0.25)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        fontsize=9,
        frameon=False,
    )
    return Drawing(
        "bounds_by_n",
        "Certified bound and measured F over N",
        "How to read it: black is how separable the N most attended tokens are, with "
        "the attention sink kept; blue and orange are lower bounds on it that hold "
        "with certainty, so they lie below black everywhere; the nearer, the better. "
        f"Blue uses {cells} cells of two numbers each, orange the number of "
        "inversions. Grey is the same measurement without the sink, green what random "
        "sets of the same size reach. Mean over all heads and windows. "
        f"{_origin(values)}",
        figure,
    )


def head_map(values: xr.Dataset) -> Drawing:
    """Layer by head map of F at one N."""
    n = _nearest(values, 8)
    f = values["f"].sel(ranking="weight", sink_policy="keep", n=n).mean("window")
    layers, count = f.sizes["layer"], f.sizes["head"]
    figure = Figure(figsize=(6, max(3.0, 0.2 * layers + 1.2)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        f.values, vmin=0, vmax=1, cmap="cividis", aspect="auto", origin="lower"
    )
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(FixedLocator(range(0, count, max(1, count // 16))))
    axes.yaxis.set_major_locator(FixedLocator(range(0, layers, max(1, layers // 10))))
    figure.colorbar(image, ax=axes, label=f"F at N = {n}, mean over windows")
    return Drawing(
        "head_map",
        f"Which heads select separable tokens (N = {n})",
        f"How to read it: one cell a head, its layer upward. Bright: the {n} most "
        "attended tokens lie nearer to their own sum than all others (F = 1). Dark: "
        f"they do not. The sink is kept. {_origin(values)}",
        figure,
    )


def certified_against_measured(values: xr.Dataset) -> Drawing:
    """Certified F against measured F, one dot a head."""
    wanted = dict.fromkeys(_nearest(values, n) for n in (2, 8, 64))
    resolution = int(values["resolution"].max())
    figure = Figure(figsize=(7, 2.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(wanted), sharex=True, sharey=True))
    for axes, n in zip(panels, wanted, strict=True):
        at = values.sel(n=n, sink_policy="keep")
        measured = at["f"].sel(ranking="weight").mean("window").values.ravel()
        bound = at["t6"].sel(resolution=resolution).mean("window").values.ravel()
        axes.plot([0, 1], [0, 1], color=_GREY, linewidth=1)
        axes.scatter(measured, bound, s=16, color=_BLUE, alpha=0.5, edgecolors="none")
        axes.set_title(f"N = {n}", fontsize=11)
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_aspect("equal")
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_xlabel("measured F")
    panels[0].set_ylabel(f"certified F ({resolution} cells)")
    return Drawing(
        "certified_against_measured",
        "How much of each head's F is certified",
        "How to read it: one dot a head, mean over windows. On the grey line all that "
        "is measured is certified; below it the certificate is conservative; above it "
        f"no dot can lie. {resolution} cells (T6), sink kept. {_origin(values)}",
        figure,
    )


def _nearest(values: xr.Dataset, n: int) -> int:
    grid = values["n"].values.tolist()
    return int(min(grid, key=lambda k: (abs(np.log2(k / n)), k)))


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

    with mpl.rc_context(rc=_STYLE):  # type: ignore[arg-type]
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
                ("rho_max: farthest selected", found.rho_max, _BLUE, "--"),
                ("rho_min: nearest unselected", found.rho_min, _ORANGE, ":"),
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
            {"marker": "s", "facecolors": "none", "edgecolors": _ORANGE, "s": 40},
        ),
        (
            f"selected ({len(chosen)})",
            chosen,
            {"marker": "o", "color": _BLUE, "s": 48},
        ),
        (
            f"attention sink ({'selected' if filled else 'unselected'})",
            sinks,
            {
                "marker": "*",
                "s": 200,
                "edgecolors": "black",
                "facecolors": _GREEN if filled else "white",
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
