"""Figures of a scan. They read results, never a model.

Lines and dots differ by marker and dash as well as colour, so that a grey print and a
colour-blind reader see the same.
"""

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, NullLocator

__all__ = ["Drawing", "add_caption", "all_figures"]

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
    import matplotlib as mpl

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
