"""What every figure shares: its form, colours, captions and how it is saved.

Lines and dots differ by marker and dash as well as colour, so that a grey print and a
colour-blind reader see the same.
"""

import io
import textwrap
from collections.abc import Mapping, Sequence
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
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALETTE",
    "STYLE",
    "YELLOW",
    "Drawing",
    "add_caption",
    "nearest",
    "origin",
    "origin_of",
    "png_of",
    "save_both",
    "save_drawing",
]

BLACK, BLUE, ORANGE = "#000000", "#0b5394", "#d95f02"
GREEN, GREY, YELLOW = "#2aa876", "#6e6e6e", "#f0b429"
# Far apart also for readers without one of the three kinds of cones.
PALETTE = (BLACK, BLUE, ORANGE, GREEN, GREY, YELLOW)
STYLE: dict[str, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # letters stay letters: searchable, and fit for journals
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
    lines = textwrap.wrap(drawing.caption, int(width * 15))
    text_height, title_height = 0.165 * len(lines) + 0.15, 0.4
    total = height + text_height + title_height
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        below, above = _legend_strips(figure, height)
        figure.set_size_inches(width, total)
        middle = height - below - above
        engine.set(rect=(0, (text_height + below) / total, 1, middle / total))
        frame = (0, text_height / total, 1, height / total)
        for legend in figure.legends:
            legend.set_bbox_to_anchor(frame, transform=figure.transFigure)
    else:
        figure.set_size_inches(width, total)
    figure.text(0.02, 1 - 0.12 / total, drawing.title, va="top", fontsize=12)
    figure.text(0.02, 0.08 / total, "\n".join(lines), va="bottom", fontsize=8.5)


def _legend_strips(figure: Figure, height: float) -> tuple[float, float]:
    """Return the inches that legends outside the panels take below and above them.

    The layout keeps such legends at the edge of the figure, where the caption comes;
    they are given a place of their own instead.
    """
    below = above = 0.0
    for legend in figure.legends:
        box = legend.get_window_extent()
        strip = box.height / figure.dpi + 0.1
        if (box.y0 + box.y1) / 2 < height * figure.dpi / 2:
            below += strip
        else:
            above += strip
    return below, above


def png_of(drawing: Drawing) -> bytes:
    """Return a figure as a PNG image."""
    stream = io.BytesIO()
    metadata = {"Title": drawing.title, "Description": drawing.caption}
    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        drawing.figure.savefig(stream, format="png", dpi=150, metadata=metadata)
    return stream.getvalue()


def save_drawing(drawing: Drawing, path: Path) -> None:
    """Write a figure with title and caption as a PNG file, whole or not at all."""
    add_caption(drawing)
    _write(path, png_of(drawing))


def save_both(drawing: Drawing, folder: Path) -> bytes:
    """Write a figure as PNG and PDF, each with title and caption in it.

    Parameters
    ----------
    drawing : Drawing
        The figure; its name is the name of the files.
    folder : Path
        Where to write; it must exist.

    Returns
    -------
    bytes
        The figure alone as a PNG image, for a page with a caption of its own.
    """
    alone = png_of(drawing)
    add_caption(drawing)
    _write(folder / f"{drawing.name}.png", png_of(drawing))
    drawing.figure.set_layout_engine("none")  # it is laid out: half the time again
    stream = io.BytesIO()
    # No date: the same figure is the same file.
    metadata = {
        "Title": drawing.title,
        "Subject": drawing.caption,
        "CreationDate": None,
    }
    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        drawing.figure.savefig(stream, format="pdf", metadata=metadata)
    _write(folder / f"{drawing.name}.pdf", stream.getvalue())
    return alone


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def origin(values: xr.Dataset, queries: str = "last query") -> str:
    """Say where the numbers are from: ``origin_of`` a scan."""
    sizes, n = values.sizes, values["n"].values.tolist()
    return origin_of(values.attrs, sizes["window"], n, queries)


def origin_of(
    attrs: Mapping[str, Any],
    windows: int,
    n: Sequence[int],
    queries: str = "last query",
) -> str:
    """Say where numbers are from: model, text, windows, N, type, BOS and seed.

    Parameters
    ----------
    attrs : mapping
        What identifies the scan, as it is stored.
    windows : int
        Number of windows the numbers are from.
    n : sequence of int
        The N shown; empty if they depend on none.
    queries : str
        The queries they are from.
    """
    count = "1 window" if windows == 1 else f"{windows} windows"
    if len(n) > 3:
        shown = f"N = {min(n)} to {max(n)}, "
    else:
        shown = f"N = {', '.join(map(str, n))}, " if n else ""
    return (
        f"{attrs['model']} ({attrs['model_fingerprint'][:19]}), {attrs['corpus']}, "
        f"{count} of {attrs['spec']['length']} tokens, {queries}, {shown}"
        f"{attrs['dtype']}, BOS: {attrs['bos']}, seed {attrs['spec']['seed']}."
    )


def nearest(values: xr.Dataset, n: int) -> int:
    """Return the measured N nearest to ``n`` on a logarithmic scale."""
    grid = values["n"].values.tolist()
    return int(min(grid, key=lambda k: (abs(np.log2(k / n)), k)))
