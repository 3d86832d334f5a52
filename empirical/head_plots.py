"""Figures about heads as a whole: their classes and the geometry of the sink."""

import numpy as np
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from empirical.drawing import BLUE, GREY, ORANGE, Drawing, origin
from empirical.metrics import CLASSES, classes

__all__ = ["class_map", "sink_geometry_by_layer"]

_COLORS = (BLUE, "#f2a65a", "#d9d9d9")


def class_map(scan: xr.Dataset) -> Drawing:
    """Layer by head map of Retriever, Mixer and Reset heads."""
    found, shares = classes(scan)
    layers, heads = found.shape
    codes = np.array(
        [[CLASSES.index(x) if x in CLASSES else np.nan for x in row] for row in found]
    )
    figure = Figure(figsize=(6, max(3.2, 0.2 * layers + 1.4)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(
        codes,
        cmap=ListedColormap(_COLORS),
        vmin=0,
        vmax=2,
        aspect="auto",
        origin="lower",
    )
    if layers * heads <= 600:  # letters too: a grey print shows no colours
        for (layer, head), name in np.ndenumerate(found):
            letter = {"Retriever": "R", "Mixer": "M"}.get(name, "")
            color = "white" if name == "Retriever" else "black"
            axes.text(
                head, layer, letter, ha="center", va="center", fontsize=7, color=color
            )
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(FixedLocator(range(0, heads, max(1, heads // 16))))
    axes.yaxis.set_major_locator(FixedLocator(range(0, layers, max(1, layers // 10))))
    labels = [f"{name} {100 * shares[name]:.1f} %" for name in CLASSES]
    figure.legend(
        handles=[
            Patch(facecolor=color, edgecolor=GREY, label=label)
            for label, color in zip(labels, _COLORS, strict=True)
        ],
        loc="outside upper center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    return Drawing(
        "class_map",
        "What each head takes its output from",
        "How to read it: at every query the token with the largest contribution is the "
        "current token, the sink, or another. Retriever (R): mostly the current token. "
        "Mixer (M): mostly the sink. Reset (unmarked): the rest. "
        f"{origin(scan, 'all queries')}",
        figure,
    )


def sink_geometry_by_layer(scan: xr.Dataset) -> Drawing:
    """Norm and direction of the sink's value against those of other tokens."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ratio = scan["sink_norm_ratio"].mean("window")
    cosine = scan["sink_cosine"].mean("window")
    layers = scan["layer"].values
    for axes, data, color, marker in (
        (left, ratio, BLUE, "o"),
        (right, cosine, ORANGE, "s"),
    ):
        places = np.repeat(layers, data.sizes["head"])
        axes.scatter(
            places,
            data.values.ravel(),
            s=12,
            color=color,
            alpha=0.5,
            marker=marker,
            edgecolors="none",
        )
        axes.plot(layers, data.median("head").values, color="black", linewidth=1.2)
        axes.set_xlabel("layer")
        axes.grid(visible=True, alpha=0.25)
    left.set_yscale("log")
    left.axhline(1, color=GREY, linewidth=1, linestyle="--")
    left.set_ylabel("median norm of others / sink norm")
    right.axhline(0, color=GREY, linewidth=1, linestyle="--")
    right.set_ylabel("mean cosine with the sink")
    right.set_ylim(-1, 1)
    found = scan["found_sink"].values
    first = float((found == 0).mean())
    return Drawing(
        "sink_geometry",
        "The attention sink: its norm and its direction",
        "How to read it: one dot a head (heads of a group share values), the line is "
        "the median of a layer. Left: how many times smaller the sink's value vector "
        "is than the median other; above the dashed line it is smaller. Right: the "
        "mean cosine of the sink's value with the others; below the dashed line it "
        "points against them. Estimates, not bounds. Taken as sink: token 0; the "
        f"token with the most attention is token 0 in {100 * first:.0f} % of heads and "
        f"windows. {origin(scan, 'all queries')}",
        figure,
    )
