"""Figures of what a scan measured and certified. They read results, never a model."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from empirical.drawing import BLUE, GREEN, GREY, ORANGE, Drawing, nearest, origin
from empirical.metrics import enclosures

__all__ = [
    "bounds_by_n",
    "certified_against_measured",
    "enclosure_ladder",
    "head_map",
    "map_of_heads",
    "policies_by_n",
    "random_band",
]

# Bands over documents need enough of them to mean something.
FEWEST_FOR_BANDS = 8


def bounds_by_n(values: xr.Dataset, table: list[dict[str, Any]]) -> Drawing:
    """Measured F and its certified lower bounds over N."""
    n = [row["n"] for row in table]
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    resolutions = values["resolution"].values.tolist()
    cells = ", ".join(map(str, resolutions))
    measured = [
        ("F measured, sink kept", "keep", "f", "black", "o", "-"),
        ("F measured, sink dropped", "drop", "f", GREY, "D", "-"),
    ]
    certified = [
        (f"certified, {k} cells (T6)", "keep", f"t6_{k}", BLUE, m, d)
        for k, m, d in zip(
            reversed(resolutions), ("s", "^", "v"), ("--", "-.", ":"), strict=False
        )
    ]
    rest = [
        ("certified, inversions (T2)", "keep", "t2_joint", ORANGE, "x", "--"),
        ("certified, 8 numbers by role (T4)", "keep", "t4_roles", ORANGE, "1", ":"),
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
    axes.plot(
        n,
        [row["random"] for row in table],
        label="F of random sets",
        color=GREEN,
        marker="+",
        linestyle=":",
    )
    kept = values["f"].sel(distance="euclidean", ranking="weight", sink_policy="keep")
    _document_band(axes, kept, "black")
    _axis_of_n(axes, values)
    axes.set_ylabel("F, mean over heads")
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
        f"{origin(values)}",
        figure,
    )


def head_map(values: xr.Dataset) -> Drawing:
    """Layer by head map of F at one N."""
    n = nearest(values, 8)
    f = values["f"].sel(distance="euclidean", ranking="weight", sink_policy="keep", n=n)
    figure = map_of_heads(f.mean("window"), f"F at N = {n}, mean over windows")
    return Drawing(
        "head_map",
        f"Which heads select separable tokens (N = {n})",
        f"How to read it: one cell a head, its layer upward. Bright: the {n} most "
        "attended tokens lie nearer to their own sum than all others (F = 1). Dark: "
        f"they do not. The sink is kept. {origin(values)}",
        figure,
    )


def map_of_heads(f: xr.DataArray, label: str) -> Figure:
    """Draw F by layer and head, bright where it is 1."""
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
    figure.colorbar(image, ax=axes, label=label)
    return figure


def certified_against_measured(values: xr.Dataset) -> Drawing:
    """Certified F against measured F, one dot a head."""
    wanted = dict.fromkeys(nearest(values, n) for n in (2, 8, 64))
    resolution = int(values["resolution"].max())
    figure = Figure(figsize=(7, 2.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(wanted), sharex=True, sharey=True))
    for axes, n in zip(panels, wanted, strict=True):
        f = values["f"].sel(
            distance="euclidean", ranking="weight", sink_policy="keep", n=n
        )
        t6 = values["t6"].sel(resolution=resolution, certified_policy="keep", n=n)
        measured = f.mean("window").values.ravel()
        bound = t6.mean("window").values.ravel()
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        axes.scatter(measured, bound, s=16, color=BLUE, alpha=0.5, edgecolors="none")
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
        f"no dot can lie. {resolution} cells (T6), sink kept. {origin(values)}",
        figure,
    )


def enclosure_ladder(values: xr.Dataset, table: list[dict[str, Any]]) -> Drawing:
    """Certified over measured F, from the fewest numbers to one a token."""
    rungs = {key: label for key, (label, _) in enclosures(values).items()}
    rungs.pop("t2_separate", None)
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rungs) + 1)
    wanted = dict.fromkeys(nearest(values, n) for n in (2, 8, 64))
    styles = (("o", "-", BLUE), ("s", "--", ORANGE), ("^", ":", GREEN))
    for n, (marker, dash, color) in zip(wanted, styles, strict=False):
        row = next(r for r in table if r["n"] == n)["keep"]
        shares = [row[key] / row["f"] if row["f"] else np.nan for key in rungs]
        axes.plot(
            places,
            [*shares, 1.0],
            marker=marker,
            linestyle=dash,
            color=color,
            label=f"N = {n}",
        )
    axes.set_xticks(places, [*rungs.values(), "measured"], rotation=30, ha="right")
    axes.set_ylim(-0.02, 1.05)
    axes.set_ylabel("certified F / measured F")
    axes.set_xlabel("what is known of the head")
    axes.grid(visible=True, alpha=0.25)
    axes.legend(loc="upper left", fontsize=9, frameon=False)
    return Drawing(
        "enclosure_ladder",
        "What more knowledge of a head certifies",
        "How to read it: from left to right more numbers about the head are known: the "
        "eight of the constant-norm regime, the same by role for one N, with every "
        "token's norm, the number of inversions, then cells of two numbers each. "
        "Height is the share of the measured F (mean over heads, sink kept) that the "
        f"bound proves; 1 is all of it. {origin(values)}",
        figure,
    )


def policies_by_n(values: xr.Dataset) -> Drawing:
    """Precision is not shown: F over N when the sink is kept, dropped, competing."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    styles = {
        "keep": ("kept", "o", "-", "black"),
        "drop": ("dropped", "D", "--", GREY),
        "compete": ("competing", "v", ":", ORANGE),
    }
    for axes, ranking in zip(panels, ("weight", "contribution"), strict=True):
        for policy, (label, marker, dash, color) in styles.items():
            f = values["f"].sel(
                distance="euclidean", ranking=ranking, sink_policy=policy
            )
            axes.plot(
                values["n"].values,
                f.mean(("window", "layer", "head")).values,
                marker=marker,
                linestyle=dash,
                color=color,
                label=f"sink {label}",
            )
            if policy == "keep":
                _document_band(axes, f, color)
        axes.set_title(f"selected by {ranking}", fontsize=11)
        _axis_of_n(axes, values)
    panels[0].set_ylabel("F, mean over heads")
    panels[0].legend(fontsize=9, frameon=False, loc="lower left")
    return Drawing(
        "policies_by_n",
        "The sink kept, dropped or competing",
        "How to read it: three ways to treat the sink (the first token). Kept: it is "
        "selected if its weight is large. Dropped: it is left out altogether. "
        "Competing: it cannot be selected, but counts as a false positive where it "
        "lies near. The gap between kept and dropped is what selecting the sink "
        f"costs. {origin(values)}",
        figure,
    )


def random_band(values: xr.Dataset) -> Drawing:
    """F of attention's selections against a band of random ones."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    n = values["n"].values
    repeats = values.sizes["repeat"]
    for axes, distance in zip(panels, ("euclidean", "cosine"), strict=True):
        random = values["f_random"].sel(distance=distance)
        random = random.mean(("window", "layer", "head"))
        axes.fill_between(
            n,
            random.min("repeat").values,
            random.max("repeat").values,
            color=GREEN,
            alpha=0.35,
            label=f"{repeats} random rankings",
        )
        for ranking, marker, dash, color in (
            ("weight", "o", "-", "black"),
            ("contribution", "s", "--", BLUE),
        ):
            f = values["f"].sel(distance=distance, ranking=ranking, sink_policy="keep")
            axes.plot(
                n,
                f.mean(("window", "layer", "head")).values,
                marker=marker,
                linestyle=dash,
                color=color,
                label=f"by {ranking}",
            )
        axes.set_title(f"{distance} distance", fontsize=11)
        _axis_of_n(axes, values)
    panels[0].set_ylabel("F, mean over heads")
    panels[1].legend(fontsize=9, frameon=False, loc="upper right")
    return Drawing(
        "random_band",
        "Attention's selections against random ones",
        "How to read it: black selects the N largest weights, blue the N largest "
        "contributions. The green band holds the means of all random rankings, each "
        "nested in N: whatever lies above it owes its separability to attention. Sink "
        f"kept. {origin(values)}",
        figure,
    )


def _axis_of_n(axes: Axes, values: xr.Dataset) -> None:
    n = values["n"].values.tolist()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(n))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([str(k) for k in n], fontsize=8)
    axes.set_ylim(-0.02, 1.05)
    axes.set_xlabel("N, selected tokens")
    axes.grid(visible=True, alpha=0.25)


def _document_band(axes: Axes, f: xr.DataArray, color: str) -> None:
    """Shade the bootstrap interval of the mean over documents, if there are enough."""
    by_document = f.mean(("layer", "head")).values
    if len(by_document) < FEWEST_FOR_BANDS:
        return
    draws = np.random.default_rng(0).integers(
        0, len(by_document), (2000, len(by_document))
    )
    means = by_document[draws].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975), axis=0)
    axes.fill_between(f["n"].values, low, high, color=color, alpha=0.15, linewidth=0)
