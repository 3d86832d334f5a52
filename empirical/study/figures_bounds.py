"""Figures of F5 and F6: how tight the bounds are, what separability is lost to."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from empirical.drawing import BLUE, GREEN, GREY, ORANGE, Drawing
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
    grid,
    legend_below,
    near,
    rows,
)

__all__ = [
    "causes",
    "collapse",
    "numbers_needed",
    "removals",
    "tightness_by_class",
    "tightness_by_layer",
    "tightness_by_n",
]

_TIGHTNESS = (
    "Tightness is mean certified F over mean measured F: 1 is all of it, 0 nothing."
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)))


def _looks(table: pd.DataFrame) -> dict[str, tuple[str, Series]]:
    """Return label and look of every enclosure: colour by kind, marker by member."""
    found: dict[str, tuple[str, Series]] = {}
    members: dict[str, int] = {}
    labels = table.drop_duplicates("enclosure").set_index("enclosure")["label"]
    for key, label in labels.items():
        color = {"t4": ORANGE, "t2": GREEN, "t6": BLUE}.get(str(key)[:2], GREY)
        place = members[color] = members.get(color, -1) + 1
        # Markers differ over all enclosures, dashes within a kind.
        marker = _MARKERS[len(found) % len(_MARKERS)]
        series = Series(color, marker, _DASHES[place % len(_DASHES)])
        found[str(key)] = (str(label), series)
    return found


def tightness_by_n(tables: Tables, about: About) -> Drawing:
    """Tightness of every enclosure over N (F5)."""
    table = rows(tables["tightness"], group="all")
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"keep": "sink kept", "drop": "sink dropped"}
    for axes, (policy, title) in zip(panels, titles.items(), strict=True):
        for key, (label, series) in _looks(tables["tightness"]).items():
            found = rows(table, sink_policy=policy, enclosure=key)
            draw_line(axes, found, series, label)
        axes.set_title(title, fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("certified F / measured F")
    legend_below(figure, panels[0])
    return Drawing(
        "tightness_by_n",
        "How much of measured F each bound certifies, over N",
        f"How to read it: {_TIGHTNESS} Orange: norms and cosines between two numbers "
        "each (T4), for all tokens, by role, with every norm. Green: from the number "
        "of inversions (T2). Blue: from cells of two numbers each (T6). Selected by "
        "weight, Euclidean distance; bands are 95 % intervals over documents. "
        f"{about.origin(table['n'])}",
        figure,
    )


def tightness_by_layer(tables: Tables, about: About) -> Drawing:
    """Tightness of every enclosure by layer at one N (F5)."""
    table = rows(tables["tightness"], group="layer", sink_policy="keep")
    (n,) = near(table["n"], 8)
    table = rows(table, n=n)
    looks = _looks(tables["tightness"])
    labels = {key: label for key, (label, _) in looks.items()}
    table = table.assign(which=table["which"].astype(int))
    values = grid(table, "enclosure", "which", "value").reindex(list(labels))
    height = 1.6 + 0.3 * len(labels)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    axes.set_yticks(range(len(labels)), list(labels.values()), fontsize=9)
    axes.set_xlabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=axes, label="certified F / measured F", location="top")
    return Drawing(
        "tightness_by_layer",
        f"How much of measured F each bound certifies, by layer (N = {n})",
        f"How to read it: one row a bound, one column a layer. {_TIGHTNESS} Bright: "
        "the bound proves nearly all of what is measured. White: F is 0 there. Sink "
        f"kept, selected by weight, Euclidean distance. {about.origin([n])}",
        figure,
    )


def tightness_by_class(tables: Tables, about: About) -> Drawing:
    """Tightness of every enclosure by class at one N (F5)."""
    table = rows(tables["tightness"], group="head_class", sink_policy="keep")
    (n,) = near(tables["tightness"]["n"], 8)
    table = rows(table, n=n)
    looks = _looks(tables["tightness"])
    order = list(looks)
    figure = Figure(figsize=(WIDTH, 1.5 + 0.36 * len(order)), layout="constrained")
    axes = figure.subplots()
    for shift, name in zip((0.22, 0.0, -0.22), CLASSES, strict=True):
        found = rows(table, which=name).set_index("enclosure").reindex(order)
        places = [len(order) - 1 - i + shift for i in range(len(order))]
        dots(axes, found, places, CLASS_SERIES[name], name)
    labels = [label for label, _ in looks.values()]
    axes.set_yticks(range(len(order)), labels[::-1], fontsize=9)
    axes.set_xlim(-0.03, 1.05)
    axes.set_xlabel("certified F / measured F")
    axes.grid(visible=True, axis="x", alpha=0.25)
    legend_below(figure, axes)
    return Drawing(
        "tightness_by_class",
        f"How much of measured F each bound certifies, by class (N = {n})",
        f"How to read it: one row a bound, one mark a class of heads. {_TIGHTNESS} "
        "Bars are 95 % intervals over documents. Sink kept, selected by weight, "
        f"Euclidean distance. {about.origin([n])}",
        figure,
    )


def numbers_needed(tables: Tables, about: About) -> Drawing:
    """Share of entries that a number of cells certifies almost wholly (F5)."""
    table = tables["numbers_needed"]
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    wanted = near(table["n"], 2, 8, 32, 128)
    titles = {"keep": "sink kept", "drop": "sink dropped"}
    for axes, (policy, title) in zip(panels, titles.items(), strict=True):
        for n, series in zip(wanted, SERIES, strict=False):
            found = rows(table, sink_policy=policy, n=n).sort_values("numbers")
            draw_line(axes, found, series, f"N = {n}", x="numbers", y="share")
        axes.set_xscale("log", base=2)
        numbers = sorted(set(table["numbers"]))
        axes.set_xticks(numbers, [str(k) for k in numbers], fontsize=9)
        axes.minorticks_off()
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlabel("numbers known of the head")
        axes.set_title(title, fontsize=11)
        axes.grid(visible=True, alpha=0.25)
    panels[0].set_ylabel("share of heads and windows")
    legend_below(figure, panels[0], 4)
    return Drawing(
        "numbers_needed",
        "How many numbers certify 90 % of measured F",
        "How to read it: over all heads and windows with F > 0, the share for which "
        "cells of two numbers each (T6) prove at least 90 % of the measured F. Where a "
        "line ends below 1, the rest needs more numbers than were tried. Selected by "
        f"weight, Euclidean distance. {about.origin(wanted)}",
        figure,
    )


def removals(tables: Tables, about: About) -> Drawing:
    """F with causes of lost separability removed (F6)."""
    table = tables["removals"]
    names = {
        "none": "nothing removed",
        "norms": "norms equal",
        "cosines": "cosines equal",
        "cosines, nonnegative": "cosines equal, not < 0",
        "norms and cosines": "norms and cosines equal",
        "norms and cosines, nonnegative": "both equal, not < 0",
    }
    figure = Figure(figsize=(WIDTH, 4.3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"keep": "sink kept", "drop": "sink dropped"}
    for axes, (policy, title) in zip(panels, titles.items(), strict=True):
        for (removal, label), series in zip(names.items(), SERIES, strict=False):
            found = rows(table, sink_policy=policy, removal=removal)
            draw_line(axes, found, series, label)
        axes.set_title(title, fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("F, mean over heads")
    legend_below(figure, panels[0], 2)
    return Drawing(
        "removals",
        "F after causes of lost separability are removed",
        "How to read it: each head's Gram matrix is changed and F computed again: all "
        "norms made equal, all cosines made equal, a negative common cosine replaced "
        "by 0, alone and together; right also the sink left out. With all of them "
        "gone T3 says F = 1. Estimates, not bounds; selected by weight, Euclidean "
        f"distance. {about.origin(table['n'])}",
        figure,
    )


def causes(tables: Tables, about: About) -> Drawing:
    """Gain in F when one cause is removed (F6)."""
    table = tables["causes"]
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color=GREY, linewidth=1, linestyle="--")
    for cause, series in zip(dict.fromkeys(table["cause"]), SERIES, strict=False):
        draw_line(axes, rows(table, cause=cause), series, cause, y="gain")
    axis_of_n(axes, table["n"], share=False)
    axes.set_ylabel("gain in F, mean over heads")
    legend_below(figure, axes, 2)
    return Drawing(
        "causes",
        "What separability is lost to: the gain in F when one cause is removed",
        "How to read it: F with one cause removed minus F as measured; above the "
        "dashed line removing it helps. Gains do not add up. A negative common cosine "
        "is replaced by 0 after norms and cosines were made equal and the sink was "
        "dropped, since only then there is one. Bands are 95 % intervals over "
        "documents. Selected by weight, Euclidean distance. "
        f"{about.origin(table['n'])}",
        figure,
    )


def collapse(tables: Tables, about: About) -> Drawing:
    """Predicted against measured F where the sink is selected (F6)."""
    table = tables["collapse"].dropna(subset=["predicted", "measured"])
    wanted = near(table["n"], 2, 8, 64) if len(table) else [2]
    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    panels = figure.subplots(1, len(wanted), sharex=True, sharey=True, squeeze=False)
    for axes, n in zip(panels[0], wanted, strict=True):
        found = rows(table, n=n)
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        holds = found["condition"] >= 0.5
        for chosen, series, filled, label in (
            (found[holds], SERIES[1], True, "condition holds"),
            (found[~holds], SERIES[2], False, "condition fails"),
        ):
            axes.scatter(
                chosen["predicted"],
                chosen["measured"],
                s=18,
                marker=series.marker,
                facecolors=series.color if filled else "none",
                edgecolors=series.color,
                alpha=0.6,
                label=label,
            )
        axes.set_title(f"N = {n}", fontsize=11)
        axes.set_xlim(-0.04, 1.04)
        axes.set_ylim(-0.04, 1.04)
        axes.set_aspect("equal")
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_xlabel("predicted F")
    panels[0, 0].set_ylabel("measured F")
    legend_below(figure, panels[0, 0])
    return Drawing(
        "collapse",
        "F that the sink's collapse predicts (T5) against measured F",
        "How to read it: one mark a head, mean over the windows in which it selects "
        "the sink. Predicted from the head's mean norm and cosines alone; on the line "
        "the prediction is right. Filled: T5's condition holds for most of these "
        "windows; open: it does not. Selected by weight, Euclidean distance, sink "
        f"kept. {about.origin(wanted)}",
        figure,
    )
