"""Figures across models and texts: the same numbers of several studies in one."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empirical.drawing import GREEN, GREY, Drawing
from empirical.metrics import CLASSES
from empirical.study.style import (
    CLASS_SERIES,
    SERIES,
    WIDTH,
    About,
    Series,
    Tables,
    axis_of_n,
    dots,
    draw_line,
    finite,
    legend_below,
    log_limits,
    log_ticks,
    near,
    rows,
)

__all__ = [
    "class_shares_across",
    "separability_across",
    "sink_geometry_across",
    "tightness_across",
]

Abouts = Mapping[str, About]


def _looks(abouts: Abouts) -> dict[str, Series]:
    return {name: SERIES[i % len(SERIES)] for i, name in enumerate(abouts)}


def _origins(abouts: Abouts, n: list[int], queries: str = "last query") -> str:
    parts = (f"{name}: {a.origin(n, queries)}" for name, a in abouts.items())
    return " ".join(parts)


def separability_across(tables: Tables, abouts: Abouts) -> Drawing:
    """F by N of every study, and that of random sets."""
    table = rows(tables["separability"], distance="euclidean")
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"weight": "by attention weight", "random": "random sets"}
    for axes, (ranking, title) in zip(panels, titles.items(), strict=True):
        for name, series in _looks(abouts).items():
            draw_line(axes, rows(table, ranking=ranking, study=name), series, name)
        axes.set_title(title, fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("F, mean over heads")
    legend_below(figure, panels[0], 2)
    return Drawing(
        "separability_across",
        "Separability over N, all models and texts",
        "How to read it: left, F of the N greatest weights; right, F of random sets of "
        "the same size (mean over rankings). Euclidean distance, sink kept; bands are "
        f"95 % intervals over documents. {_origins(abouts, [*set(table['n'])])}",
        figure,
    )


def class_shares_across(tables: Tables, abouts: Abouts) -> Drawing:
    """Shares of the classes in every study."""
    table = rows(tables["class_shares"], layer=-1).rename(columns={"share": "value"})
    figure = Figure(figsize=(WIDTH, 1.5 + 0.45 * len(abouts)), layout="constrained")
    panels = figure.subplots(1, len(CLASSES), sharex=True, sharey=True)
    places = range(len(abouts))
    for axes, name in zip(panels, CLASSES, strict=True):
        for place, study in enumerate(reversed(list(abouts))):
            found = rows(table, head_class=name, study=study)
            dots(axes, found, [place] * len(found), CLASS_SERIES[name], study)
        axes.set_title(name, fontsize=11)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_xlabel("share of heads")
        axes.grid(visible=True, axis="x", alpha=0.25)
    panels[0].axvspan(0.058, 0.172, color=GREEN, alpha=0.15, linewidth=0)
    panels[0].set_yticks(places, list(abouts)[::-1], fontsize=9)
    panels[0].set_ylim(-0.6, len(abouts) - 0.4)
    return Drawing(
        "class_shares_across",
        "Shares of the three classes, all models and texts",
        "How to read it: share of all heads in each class with its 95 % interval over "
        "documents. Green: 5.8 to 17.2 %, the range of arXiv 2602.01893 for "
        f"Retrievers. {_origins(abouts, [], 'all queries')}",
        figure,
    )


def sink_geometry_across(tables: Tables, abouts: Abouts) -> Drawing:
    """Norm ratio and cosine of the sink, one dot a head, every study."""
    table = finite(tables["sink_geometry"])
    figure = Figure(figsize=(WIDTH, 1.6 + 0.55 * len(abouts)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, study in enumerate(reversed(list(abouts))):
        found = rows(table, study=study)
        series = _looks(abouts)[study]
        _strip(left, found, "norm_ratio", place, series)
        _strip(right, found, "cosine", place, series)
    left.set_xscale("log")
    limits = log_limits(table["norm_ratio"])
    left.set_xlim(*limits)
    log_ticks(left.xaxis, *limits)
    left.axvspan(3, 10, color=GREEN, alpha=0.15, linewidth=0)
    left.axvline(1, color=GREY, linewidth=1, linestyle="--")
    left.set_xlabel("norm of others / of sink")
    left.set_yticks(range(len(abouts)), list(abouts)[::-1], fontsize=9)
    left.set_ylim(-0.6, len(abouts) - 0.4)
    right.axvline(0, color=GREY, linewidth=1, linestyle="--")
    right.set_xlabel("mean cosine with the sink")
    right.set_xlim(-1.03, 1.03)
    for axes in (left, right):
        axes.grid(visible=True, axis="x", alpha=0.25)
    return Drawing(
        "sink_geometry_across",
        "The attention sink, all models and texts",
        "How to read it: one mark a head, spread over its row by layer. Left: how many "
        "times shorter the sink's value is than the median other; green: 3 to 10 "
        "times. Right: mean cosine of the sink's value with the others. Sink: token "
        f"0. {_origins(abouts, [])}",
        figure,
    )


def _strip(
    axes: Axes, found: pd.DataFrame, column: str, place: int, series: Series
) -> None:
    layers = found["layer"].to_numpy(dtype=float)
    spread = layers / max(float(np.max(layers, initial=0.0)), 1.0) - 0.5
    axes.scatter(
        found[column],
        place + 0.6 * spread,
        s=12,
        color=series.color,
        marker=series.marker,
        alpha=0.5,
        edgecolors="none",
    )


def tightness_across(tables: Tables, abouts: Abouts) -> Drawing:
    """Certified over measured F by N, every study, for two bounds."""
    table = rows(tables["tightness"], group="all", sink_policy="keep")
    table = table.drop_duplicates(["study", "enclosure", "n"])
    cells = table[table["enclosure"].str.startswith("t6_")]
    sizes = cells["enclosure"].str.removeprefix("t6_").astype(int)
    (nine,) = near(sizes, 9)
    chosen = {f"t6_{nine}": f"{nine} cells (T6)", "t2_joint": "inversions (T2 b)"}
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (key, title) in zip(panels, chosen.items(), strict=True):
        for name, series in _looks(abouts).items():
            draw_line(axes, rows(table, enclosure=key, study=name), series, name)
        axes.set_title(title, fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("certified F / measured F")
    legend_below(figure, panels[0], 2)
    return Drawing(
        "tightness_across",
        "How much of measured F is certified, all models and texts",
        "How to read it: mean certified F over mean measured F; 1 is all of it. Left "
        "from cells of two numbers each, right from the number of inversions. Sink "
        "kept, selected by weight, Euclidean distance; bands are 95 % intervals over "
        f"documents. {_origins(abouts, [*set(table['n'])])}",
        figure,
    )
