"""The verdicts at a glance: every effect with its interval and hypothesis."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empirical.drawing import BLUE, GREEN, GREY, ORANGE, Drawing
from empirical.study.style import WIDTH, About, Series, Tables
from empirical.study.verdicts import MARKS, number

__all__ = ["verdicts"]

_LOOKS = {
    "supported": Series(BLUE, "o", "-"),
    "not supported": Series(ORANGE, "X", "-"),
    "undecided": Series(GREY, "D", "-"),
}


def verdicts(tables: Tables, about: About) -> Drawing:
    """Forest plot: each effect on a scale of its own, against where it should lie."""
    table = tables["findings"].reset_index(drop=True)
    count = len(table)
    figure = Figure(figsize=(WIDTH, 0.26 * count + 0.9), layout="constrained")
    axes = figure.subplots()
    for index, row in table.iterrows():
        _row(axes, row, count - 1 - int(str(index)))
    axes.set_yticks(range(count), list(table["id"])[::-1], fontsize=8.5)
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6, count - 0.4)
    axes.set_xticks([])
    axes.set_xlabel("effect, each row on its own scale", fontsize=9)
    for verdict, look in _LOOKS.items():
        axes.plot(
            [],
            [],
            look.marker,
            color=look.color,
            label=f"{MARKS[verdict]} {verdict}",
        )
    axes.fill_between([], [], [], color=GREEN, alpha=0.25, label="hypothesis")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return Drawing(
        "verdicts",
        "Effects with their intervals against what was hypothesised",
        "How to read it: one row a finding, on a scale of its own. Green is where the "
        "hypothesis says the effect lies; bars are 95 % intervals over documents, the "
        "numbers stand at the right. Supported: the whole interval is in the green; "
        "not supported: all of it is outside; undecided: neither, or too few "
        f"documents. {about.origin(about.n)}",
        figure,
    )


def _row(axes: Axes, row: pd.Series, place: int) -> None:
    """Draw one effect, mapped so that it and the ends of its range are in view."""
    ends = np.array([row["least"], row["greatest"]], dtype=float)
    effect = np.array([row["low"], row["value"], row["high"]], dtype=float)
    shown = np.concatenate([ends, effect])
    shown = shown[np.isfinite(shown)]
    low, high = (shown.min(), shown.max()) if len(shown) else (0.0, 1.0)
    pad = 0.2 * (high - low) or 0.5 * max(abs(high), 1)
    left, width = low - pad, high - low + 2 * pad

    def at(x: np.ndarray) -> np.ndarray:
        return np.clip((x - left) / width, 0, 1)

    start, stop = at(ends)
    # A range of one number is drawn as a line that can be seen.
    start, stop = (start - 0.004, stop + 0.004) if start == stop else (start, stop)
    axes.fill_between(
        [start, stop], place - 0.38, place + 0.38, color=GREEN, alpha=0.25, linewidth=0
    )
    look = _LOOKS[row["verdict"]]
    axes.plot(at(effect[[0, 2]]), [place, place], color=look.color, linewidth=1.6)
    if np.isfinite(effect[1]):
        axes.plot(
            at(effect[1:2]), [place], look.marker, color=look.color, markersize=5.5
        )
    text = f"{MARKS[row['verdict']]} {number(effect[1])}"
    if np.isfinite(effect[0]) and effect[0] < effect[2]:
        text += f"  [{number(effect[0])}, {number(effect[2])}]"
    axes.annotate(
        f"{text}   {row['expected']}",
        (1, place),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        annotation_clip=False,
    )
