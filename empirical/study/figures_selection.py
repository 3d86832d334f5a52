"""Figures of F1 to F3: selections against random ones, the sink, its policies."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from empirical.drawing import GREEN, GREY, Drawing
from empirical.metrics import CLASSES
from empirical.study.style import (
    CLASS_SERIES,
    SERIES,
    WIDTH,
    About,
    Tables,
    axis_of_n,
    draw_line,
    finite,
    grid,
    legend_below,
    log_limits,
    log_ticks,
    rows,
    shade,
)

__all__ = [
    "policies",
    "policies_by_class",
    "separability",
    "sink_geometry",
    "sink_map",
    "sink_selected",
]

_POLICIES = {"keep": "kept", "drop": "dropped", "compete": "competing"}
_WAYS = (
    "Kept: the sink is a token like any other. Dropped: it is left out altogether. "
    "Competing: it cannot be selected, but counts as a false positive where it lies "
    "near."
)


def separability(tables: Tables, about: About) -> Drawing:
    """F of attention's selections against random rankings (F1)."""
    table = tables["separability"]
    figure = Figure(figsize=(WIDTH, 5.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, distance in zip(panels, ("euclidean", "cosine"), strict=True):
        random = rows(table, distance=distance, ranking="random")
        for axes, ranking in zip(row, ("weight", "contribution"), strict=True):
            shade(axes, random["n"], random["least"], random["greatest"], GREEN)
            draw_line(axes, random, SERIES[3], "random sets", band=("least", "least"))
            chosen = rows(table, distance=distance, ranking=ranking)
            draw_line(axes, chosen, SERIES[0], "the N greatest")
            word = distance.replace("euclid", "Euclid")
            axes.set_title(f"by {ranking}, {word} distance", fontsize=10)
            axis_of_n(axes, table["n"])
            axes.label_outer()
        row[0].set_ylabel("F, mean over heads")
    legend_below(figure, panels[0, 0])
    return Drawing(
        "separability",
        "What attention selects against random sets of the same size",
        "How to read it: black selects the N tokens with the greatest weight (left) or "
        "contribution (right), with its 95 % interval over documents. Green selects at "
        "random: the line is the mean over the random rankings, the band holds all of "
        "them. The gap is what attention adds. At N = 1 almost every set is separable. "
        f"Sink kept. {about.origin(table['n'])}",
        figure,
    )


def sink_geometry(tables: Tables, about: About) -> Drawing:
    """Norm and direction of the sink's value by layer, one mark a head (F2)."""
    table = finite(tables["sink_geometry"])
    figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, column in ((left, "norm_ratio"), (right, "cosine")):
        for name in CLASSES:
            heads = rows(table, head_class=name)
            series = CLASS_SERIES[name]
            axes.scatter(
                heads["layer"],
                heads[column],
                s=20,
                color=series.color,
                marker=series.marker,
                alpha=0.6,
                edgecolors="none",
                label=name,
            )
        middle = table.groupby("layer")[column].median()
        axes.plot(middle.index, middle, color="black", linewidth=1.3, label="median")
        axes.set_xlabel("layer")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=True, alpha=0.25)
    left.set_yscale("log")
    limits = log_limits(table["norm_ratio"])
    left.set_ylim(*limits)
    log_ticks(left.yaxis, *limits)
    left.axhspan(3, 10, color=GREEN, alpha=0.15, linewidth=0)
    left.axhline(1, color=GREY, linewidth=1, linestyle="--")
    left.set_ylabel("norm of others / norm of sink")
    right.axhline(0, color=GREY, linewidth=1, linestyle="--")
    right.set_ylabel("mean cosine with the sink")
    right.set_ylim(-1.05, 1.05)
    legend_below(figure, left, 4)
    return Drawing(
        "sink_geometry",
        "The attention sink: its norm and its direction, by layer",
        "How to read it: one mark a head, by class; heads of a group share values. "
        "Left: how many times shorter the sink's value vector is than the median "
        "other. Green: the 3 to 10 times of arXiv 2602.01893; below the dashed line "
        "the sink is longer. Right: mean cosine of the sink's value with the others; "
        "below the dashed line it points against them. Sink: token 0. "
        f"{about.origin(())}",
        figure,
    )


def sink_map(tables: Tables, about: About) -> Drawing:
    """Norm ratio and cosine of the sink, layer by head (F2)."""
    table = finite(tables["sink_geometry"])
    height = max(3.2, 0.17 * about.layers + 1.6)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    ratio = grid(table, "layer", "head", "norm_ratio")
    cosine = grid(table, "layer", "head", "cosine")
    # Both scales are symmetric about "no difference", so that its colour is the same.
    known = ratio.to_numpy()[ratio.to_numpy() > 0]
    distance = np.abs(np.log(known))
    reach = float(np.exp(np.max(distance, initial=np.log(2))))
    _map(figure, left, ratio, LogNorm(1 / reach, reach), "others / sink, norm")
    _map(figure, right, cosine, Normalize(-1, 1), "mean cosine with the sink")
    left.set_ylabel("layer")
    return Drawing(
        "sink_map",
        "The attention sink by layer and head",
        "How to read it: one cell a head. White: no difference (the same norm, a right "
        "angle). Left, the more orange, the shorter the sink's value is than the "
        "median other. Right, the more purple, the more the sink points against the "
        f"others. Heads of a group share values. Sink: token 0. {about.origin(())}",
        figure,
    )


def _map(
    figure: Figure, axes: Axes, values: pd.DataFrame, norm: Any, label: str
) -> None:
    # Purple to orange stays apart under all three common colour deficiencies.
    colors = "PuOr_r"
    image = axes.imshow(values, cmap=colors, norm=norm, aspect="auto", origin="lower")
    layers, heads = values.shape
    axes.set_xlabel("head")
    axes.xaxis.set_major_locator(FixedLocator(range(0, heads, max(1, heads // 8))))
    axes.yaxis.set_major_locator(FixedLocator(range(0, layers, max(1, layers // 10))))
    bar = figure.colorbar(image, ax=axes, label=label, location="top")
    bar.ax.tick_params(labelsize=9)
    if isinstance(norm, LogNorm):
        log_ticks(bar.ax.xaxis, float(norm.vmin or 0), float(norm.vmax or 0))
    else:
        bar.set_ticks([-1, -0.5, 0, 0.5, 1], labels=["−1", "−0.5", "0", "0.5", "1"])


def policies(tables: Tables, about: About) -> Drawing:
    """Precision, recall and F with the sink kept, dropped, competing (F3)."""
    table = rows(tables["policies"], head_class="all")
    figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, metric in zip(panels, ("precision", "recall", "f"), strict=True):
        for (policy, word), series in zip(_POLICIES.items(), SERIES, strict=False):
            lines = rows(table, metric=metric, sink_policy=policy)
            draw_line(axes, lines, series, f"sink {word}")
        axes.set_title("F" if metric == "f" else metric, fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("mean over heads")
    legend_below(figure, panels[0])
    return Drawing(
        "policies",
        "Precision, recall and F with the sink kept, dropped or competing",
        f"How to read it: {_WAYS} The gap between kept and dropped is what selecting "
        "the sink costs. Selected by weight, Euclidean distance; bands are 95 % "
        f"intervals over documents. {about.origin(table['n'])}",
        figure,
    )


def policies_by_class(tables: Tables, about: About) -> Drawing:
    """F under the three policies, a panel a class (F3)."""
    table = rows(tables["policies"], metric="f")
    figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
    panels = figure.subplots(1, len(CLASSES), sharey=True)
    for axes, name in zip(panels, CLASSES, strict=True):
        for (policy, word), series in zip(_POLICIES.items(), SERIES, strict=False):
            lines = rows(table, head_class=name, sink_policy=policy)
            draw_line(axes, lines, series, f"sink {word}")
        axes.set_title(f"{name} heads", fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("F, mean over heads")
    legend_below(figure, panels[0])
    return Drawing(
        "policies_by_class",
        "What the sink costs heads of each class",
        f"How to read it: {_WAYS} Heads that take most of their output from the sink "
        "(Mixers) should lose the most by it. An empty panel: no head of that class. "
        f"Selected by weight, Euclidean distance. {about.origin(table['n'])}",
        figure,
    )


def sink_selected(tables: Tables, about: About) -> Drawing:
    """How often the sink is selected, and F with and without it there (F3)."""
    table = rows(tables["sink_selected"])
    figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_line(left, table, SERIES[1], "share", y="selected_share", band=("", ""))
    left.set_title("sink selected", fontsize=11)
    left.set_ylabel("share of heads and windows")
    for column, series, word in (
        ("f_keep", SERIES[0], "sink kept"),
        ("f_drop", SERIES[1], "sink dropped"),
    ):
        draw_line(middle, table, series, word, y=column, band=("", ""))
    middle.set_title("F where it is", fontsize=11)
    draw_line(right, table, SERIES[0], "kept / dropped", y="ratio")
    right.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
    right.set_title("F kept / F dropped", fontsize=11)
    for axes in (left, middle, right):
        axis_of_n(axes, table["n"])
    tops = (1.0, table["ratio"].max(), table["high"].max())
    right.set_ylim(-0.03, 1.05 * float(np.nanmax(tops)))
    legend_below(figure, middle)
    return Drawing(
        "sink_selected",
        "What it costs to select the sink",
        "How to read it: left, the share of heads and windows whose N greatest weights "
        "hold the sink. Middle, over these alone, mean F with the sink kept and with "
        "it dropped. Right, the one over the other with its 95 % interval over "
        "documents; on the dashed line the sink halves F. Selected by weight, "
        f"Euclidean distance. {about.origin(table['n'])}",
        figure,
    )
