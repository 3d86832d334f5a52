"""What every figure shares: its form, colours, captions and how it is saved.

Lines and dots differ by marker and dash as well as colour, so that a grey print and a
colour-blind reader see the same.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from geobounds.files import replacing

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "STYLE",
    "Drawing",
    "add_caption",
    "nearest",
    "origin",
    "save_drawing",
]

BLUE, ORANGE, GREEN, GREY = "#0b5394", "#d95f02", "#1b7837", "#6e6e6e"
STYLE: dict[str, Any] = {
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
    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        add_caption(drawing)
    metadata = {"Title": drawing.title, "Description": drawing.caption}
    with replacing(path) as temporary:
        drawing.figure.savefig(temporary, format="png", dpi=150, metadata=metadata)


def origin(values: xr.Dataset, queries: str = "last query") -> str:
    """Say where the numbers are from: model, text, windows, type and BOS."""
    attrs = values.attrs
    count = values.sizes["window"]
    windows = "1 window" if count == 1 else f"{count} windows"
    return (
        f"{attrs['model']} ({attrs['model_fingerprint'][:19]}), {attrs['corpus']}, "
        f"{windows} of {attrs['spec']['length']} tokens, {queries}, "
        f"{attrs['dtype']}, BOS: {attrs['bos']}."
    )


def nearest(values: xr.Dataset, n: int) -> int:
    """Return the measured N nearest to ``n`` on a logarithmic scale."""
    grid = values["n"].values.tolist()
    return int(min(grid, key=lambda k: (abs(np.log2(k / n)), k)))
