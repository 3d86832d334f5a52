"""Figures of F4, F7 and F8: classes, the regime's hypotheses, no BOS."""

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator

from empirical.drawing import BLUE, GREEN, GREY, Drawing
from empirical.metrics import CLASSES
from empirical.study.style import (
    CLASS_SERIES,
    SERIES,
    WIDTH,
    About,
    Tables,
    axis_of_n,
    dots,
    draw_line,
    finite,
    grid,
    legend_below,
    rows,
    shade,
)

__all__ = [
    "agreement",
    "alignment",
    "bos",
    "class_map",
    "class_shares",
    "found_sink",
    "regime",
]

_FILLS = {"Retriever": BLUE, "Mixer": "#f2a65a", "Reset": "#d9d9d9"}
_HATCHES = {"Retriever": "", "Mixer": "////", "Reset": ""}
_CLASSING = (
    "At every query the token with the greatest contribution is the current token, the "
    "sink, or another. Retriever: mostly the current token. Mixer: mostly the sink. "
    "Reset: the rest."
)


def class_map(tables: Tables, about: About) -> Drawing:
    """Layer by head map of the classes (F4)."""
    table = tables["classes"]
    codes = {name: code for code, name in enumerate(CLASSES)}
    known = table.assign(code=table["head_class"].map(codes).astype(float))
    values = grid(known, "layer", "head", "code")
    layers, heads = values.shape
    height = max(3.2, 0.19 * layers + 1.3)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.imshow(
        values,
        cmap=ListedColormap(list(_FILLS.values())),
        vmin=0,
        vmax=2,
        aspect="auto",
        origin="lower",
    )
    if layers * heads <= 1200:  # letters too: a grey print shows no colours
        for (layer, head), code in np.ndenumerate(values.to_numpy()):
            letter = {0.0: "R", 1.0: "M"}.get(float(code), "")
            color = "white" if letter == "R" else "black"
            axes.text(
                head, layer, letter, ha="center", va="center", fontsize=8, color=color
            )
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(FixedLocator(range(0, heads, max(1, heads // 16))))
    axes.yaxis.set_major_locator(FixedLocator(range(0, layers, max(1, layers // 10))))
    counts = table["head_class"].value_counts()
    figure.legend(
        handles=[
            Patch(
                facecolor=_FILLS[name],
                edgecolor=GREY,
                label=f"{name}: {counts.get(name, 0)} heads",
            )
            for name in CLASSES
        ],
        loc="outside upper center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    return Drawing(
        "class_map",
        "What each head takes its output from",
        f"How to read it: one cell a head. {_CLASSING} Letters: R Retriever, M Mixer, "
        "none Reset. White: no query to judge by. Classed over all windows together. "
        f"{about.origin((), 'all queries')}",
        figure,
    )


def class_shares(tables: Tables, about: About) -> Drawing:
    """Shares of the classes by layer and in the whole model (F4)."""
    table = tables["class_shares"]
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    by_layer = table[table["layer"] >= 0]
    base: pd.Series | float = 0.0
    for name in CLASSES:
        share = by_layer[by_layer["head_class"] == name].set_index("layer")["share"]
        left.bar(
            share.index,
            share,
            bottom=base,
            width=0.9,
            color=_FILLS[name],
            hatch=_HATCHES[name],
            edgecolor="white",
            linewidth=0.4,
            label=name,
        )
        base = share + base
    left.set_xlabel("layer")
    left.set_ylabel("share of heads")
    left.set_ylim(0, 1)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    whole = rows(table, layer=-1).rename(columns={"share": "value"})
    right.axvspan(0.058, 0.172, color=GREEN, alpha=0.15, linewidth=0)
    for place, name in enumerate(reversed(CLASSES)):
        dots(right, rows(whole, head_class=name), [place], CLASS_SERIES[name], name)
    right.set_yticks(range(len(CLASSES)), list(reversed(CLASSES)))
    right.set_ylim(-0.6, len(CLASSES) - 0.4)
    right.set_xlim(-0.03, 1.03)
    right.set_xlabel("share in the whole model")
    right.grid(visible=True, axis="x", alpha=0.25)
    legend_below(figure, left)
    return Drawing(
        "class_shares",
        "Shares of the three classes by layer and in the whole model",
        f"How to read it: {_CLASSING} Left: the heads of each layer. Right: all heads "
        "with the 95 % interval over documents; green is the range that arXiv "
        "2602.01893 gives for Retrievers, 5.8 to 17.2 %. "
        f"{about.origin((), 'all queries')}",
        figure,
    )


def agreement(tables: Tables, about: About) -> Drawing:
    """Cohen's kappa between classes found in two ways (F4)."""
    table = tables["agreement"].reset_index(drop=True)
    table = table.assign(value=table["kappa"])
    height = 1.5 + 0.5 * len(table)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(0.6, 1, color=GREEN, alpha=0.15, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=1, linestyle="--")
    places = [len(table) - 1 - i for i in range(len(table))]
    dots(axes, table, places, SERIES[0], "kappa")
    labels = [fill(str(words), 26) for words in table["comparison"]]
    axes.set_yticks(places, labels, fontsize=9)
    axes.set_ylim(-0.6, len(table) - 0.4)
    least = float(np.nanmin([0.0, *table["low"].dropna(), *table["kappa"].dropna()]))
    axes.set_xlim(min(-0.05, least - 0.05), 1.03)
    axes.set_xlabel("Cohen's kappa")
    axes.grid(visible=True, axis="x", alpha=0.25)
    return Drawing(
        "agreement",
        "Do heads keep their class?",
        "How to read it: agreement of the classes found in two ways, beyond chance: 1 "
        "is the same class for every head, 0 what chance gives. Green: 0.6 and more, "
        "substantial. Bars are 95 % intervals over documents; no mark: undefined, "
        f"as where all heads are of one class. {about.origin((), 'all queries')}",
        figure,
    )


def alignment(tables: Tables, about: About) -> Drawing:
    """Where outputs point, by class (F4)."""
    table = tables["alignment"]
    targets = list(dict.fromkeys(table["toward"]))
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(targets), sharex=True, sharey=True))
    names = [x for x in ("all", *CLASSES) if x in set(table["head_class"])]
    for axes, target in zip(panels, targets, strict=True):
        for place, name in enumerate(reversed(names)):
            found = rows(table, toward=target, head_class=name)
            dots(axes, found, [place] * len(found), CLASS_SERIES[name], name)
        axes.axvline(0, color=GREY, linewidth=1, linestyle="--")
        axes.set_yticks(range(len(names)), list(reversed(names)))
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_title(f"toward the {target.removeprefix('the ')}", fontsize=11)
        axes.set_xlabel("mean cosine")
        axes.grid(visible=True, axis="x", alpha=0.25)
    return Drawing(
        "alignment",
        "Where the outputs of each class point",
        "How to read it: mean cosine of a head's output with the value of the sink "
        "and with that of the query's own token, by class, with the 95 % interval over "
        "documents. 1: the same direction; 0: a right angle. "
        f"{about.origin((), 'all queries')}",
        figure,
    )


def regime(tables: Tables, about: About) -> Drawing:
    """How far values are from equal norms and one common cosine, by layer (F7)."""
    table = finite(tables["regime"])
    quantities = list(dict.fromkeys(table["quantity"]))
    lines = -(-len(quantities) // 2)
    size = (WIDTH, 1.9 * lines + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(lines, 2, sharex=True, squeeze=False).ravel()
    for axes, quantity in zip(panels, quantities, strict=False):
        found = table[(table["quantity"] == quantity) & (table["layer"] >= 0)]
        found = found.sort_values("layer")
        shade(axes, found["layer"], found["q10"], found["q90"], BLUE)
        axes.plot(
            found["layer"], found["median"], color=BLUE, marker="o", markersize=3.5
        )
        if found["q10"].min() < 0 < found["q90"].max():
            axes.axhline(0, color=GREY, linewidth=1, linestyle="--")
        if quantity.startswith("share"):
            axes.set_ylim(-0.05, 1.05)
        axes.set_title(quantity, fontsize=10)
        axes.grid(visible=True, alpha=0.25)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in panels[len(quantities) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(quantities) - 2) : len(quantities)]:
        axes.set_xlabel("layer")
        axes.tick_params(labelbottom=True)
    return Drawing(
        "regime",
        "How far the values are from the regime of the theory, by layer",
        "How to read it: the constant-norm regime (T4) takes all norms to be equal (a "
        "spread of 0) and all cosines to lie between two numbers near each other; the "
        "collapse (T5) takes the sink to point against the others. Line: median over "
        "heads, band: 10 to 90 % of heads, of the means over windows. Values that the "
        f"last query sees. {about.origin(())}",
        figure,
    )


def bos(tables: Tables, about: About) -> Drawing:
    """F with and without a BOS token (F8)."""
    table = tables["bos"]
    words = {
        "keep": "first token kept",
        "drop": "first token dropped",
        "drop found sink": "found sink dropped",
    }
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, which in zip(panels, ("with", "without"), strict=True):
        for (policy, label), series in zip(words.items(), SERIES, strict=False):
            found = rows(table, bos=which, policy=policy)
            draw_line(axes, found, series, label)
        axes.set_title(f"{which} BOS", fontsize=11)
        axis_of_n(axes, table["n"])
    panels[0].set_ylabel("F, mean over heads")
    legend_below(figure, panels[0])
    return Drawing(
        "bos",
        "Separability with and without the BOS token",
        "How to read it: the same tokens, left with the BOS before them, right without "
        "it. First token: the BOS, or without it the text's first token. Found sink: "
        "the token with the greatest mean weight over the queries, wherever it is. "
        "Selected by weight, Euclidean distance; bands are 95 % intervals over "
        f"documents. {about.origin(table['n'])}",
        figure,
    )


def found_sink(tables: Tables, about: About) -> Drawing:
    """Share of heads whose sink is the first token, by layer (F8)."""
    table = tables["found_sink"]
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    for which, series in (("with", SERIES[0]), ("without", SERIES[1])):
        found = table[(table["bos"] == which) & (table["layer"] >= 0)]
        found = found.sort_values("layer")
        label = f"{which} BOS"
        draw_line(axes, found, series, label, x="layer", y="position_0_share")
    axes.axhline(0.9, color=GREY, linewidth=1, linestyle="--")
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlabel("layer")
    axes.set_ylabel("share of heads and windows")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=True, alpha=0.25)
    legend_below(figure, axes)
    return Drawing(
        "found_sink",
        "Is the token with the most attention the first one?",
        "How to read it: the share of heads and windows in which the token with the "
        "greatest mean weight over the queries is token 0, by layer, with and without "
        "the BOS. Dashed: 90 %. "
        f"{about.origin((), 'all queries')}",
        figure,
    )
