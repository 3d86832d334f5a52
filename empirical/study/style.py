"""What the study's figures share: series, axes, intervals, and where numbers are from.

A series has a colour, a marker and a dash of its own, so that two series differ in a
grey print too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from empirical.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, YELLOW, origin_of

__all__ = [
    "CLASS_SERIES",
    "SERIES",
    "WIDTH",
    "About",
    "Series",
    "Tables",
    "axis_of_n",
    "dots",
    "draw_line",
    "finite",
    "grid",
    "legend_below",
    "log_limits",
    "log_ticks",
    "near",
    "rows",
    "shade",
]

Tables = Mapping[str, pd.DataFrame]
WIDTH = 6.2  # inches; text of 9 points can still be read on a phone


@dataclass(frozen=True)
class Series:
    """How one series looks: colour, marker and dash as Matplotlib names them."""

    color: str
    marker: str
    dash: Any


SERIES = (
    Series(BLACK, "o", "-"),
    Series(BLUE, "s", "--"),
    Series(ORANGE, "^", "-."),
    Series(GREEN, "D", ":"),
    Series(GREY, "v", (0, (5, 1, 1, 1, 1, 1))),
    Series(YELLOW, "P", (0, (3, 1))),
    Series(BLACK, "X", ":"),
    Series(BLUE, "<", "-."),
    Series(ORANGE, ">", "-"),
    Series(GREEN, "*", "--"),
)
CLASS_SERIES = {
    "all": SERIES[0],
    "Retriever": SERIES[1],
    "Mixer": SERIES[2],
    "Reset": SERIES[4],
}


@dataclass(frozen=True)
class About:
    """What a figure's numbers are from.

    Attributes
    ----------
    attrs : mapping
        What identifies the scan, as it is stored.
    windows : int
        Number of windows (documents) used.
    asked : int
        Number of windows of the whole study; more than ``windows`` in a quick look.
    n : tuple of int
        Numbers of selected tokens measured.
    layers, heads : int
        Shape of the model.
    """

    attrs: Mapping[str, Any]
    windows: int
    asked: int
    n: tuple[int, ...]
    layers: int
    heads: int

    @classmethod
    def of(cls, scan: xr.Dataset) -> "About":
        """Describe a scan, whole or in part."""
        return cls(
            scan.attrs,
            scan.sizes["window"],
            int(scan.attrs["spec"]["windows"]),
            tuple(scan["n"].values.tolist()),
            scan.sizes["layer"],
            scan.sizes["head"],
        )

    @property
    def quick(self) -> str:
        """What to say of a part of the windows; empty if all were used."""
        if self.windows == self.asked:
            return ""
        return (
            f"Quick look: {self.windows} of {self.asked} windows, intervals mean "
            "little."
        )

    def origin(self, n: Iterable[int], queries: str = "last query") -> str:
        """Return the end of a caption."""
        text = origin_of(self.attrs, self.windows, sorted(set(n)), queries)
        return f"{text} {self.quick}".strip()


def rows(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Return the rows that have these values, in order of N where there is one."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.sort_values("n", kind="stable") if "n" in frame.columns else frame


def grid(frame: pd.DataFrame, index: str, columns: str, values: str) -> pd.DataFrame:
    """Return one column of a table as a matrix; what is missing stays NaN."""
    return frame.set_index([index, columns])[values].unstack(columns)


def near(grid: Iterable[int], *wanted: int) -> list[int]:
    """Return the numbers of a grid nearest to those wanted on a logarithmic scale."""
    known = sorted(set(grid))
    nearest = [min(known, key=lambda k: (abs(np.log2(k / n)), k)) for n in wanted]
    return list(dict.fromkeys(nearest))


def draw_line(
    axes: Axes,
    frame: pd.DataFrame,
    series: Series,
    label: str,
    *,
    x: str = "n",
    y: str = "value",
    band: tuple[str, str] = ("low", "high"),
) -> None:
    """Draw a series over N with its interval, if the rows hold one."""
    axes.plot(
        frame[x],
        frame[y],
        color=series.color,
        marker=series.marker,
        linestyle=series.dash,
        linewidth=1.4,
        markersize=5,
        label=label,
    )
    low, high = band
    if low in frame.columns and frame[low].notna().any():
        shade(axes, frame[x], frame[low], frame[high], series.color)


def shade(axes: Axes, x: Any, low: Any, high: Any, color: str) -> None:
    """Shade an interval."""
    axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def dots(
    axes: Axes, frame: pd.DataFrame, places: Sequence[float], series: Series, label: str
) -> None:
    """Draw values with their intervals at places on the y axis."""
    value = frame["value"].to_numpy(dtype=float)
    low = value - frame["low"].to_numpy(dtype=float)
    high = frame["high"].to_numpy(dtype=float) - value
    # A percentile interval may miss its value by a little; a bar cannot be negative.
    spread = np.nan_to_num(np.clip([low, high], 0, None))
    axes.errorbar(
        value,
        places,
        xerr=spread,
        fmt=series.marker,
        color=series.color,
        markersize=6,
        elinewidth=1.4,
        capsize=3,
        linestyle="none",
        label=label,
    )


def axis_of_n(axes: Axes, n: Iterable[int], *, share: bool = True) -> None:
    """Make x the logarithmic axis of N, and y that of a share if it is one."""
    grid = sorted(set(n))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(grid))
    axes.xaxis.set_minor_locator(NullLocator())
    # Every other number where all would touch.
    step = 2 if len(grid) > 6 else 1
    labels = [str(k) if i % step == 0 else "" for i, k in enumerate(grid)]
    axes.set_xticklabels(labels, fontsize=9)
    axes.set_xlabel("N, selected tokens")
    axes.grid(visible=True, alpha=0.25)
    if share:
        axes.set_ylim(-0.03, 1.05)


def log_limits(values: pd.Series) -> tuple[float, float]:
    """Return limits of a logarithmic axis that shows 1, 10 and all positive values."""
    known = [0.9, 11.0, *values[values > 0].dropna()]
    return min(known) / 1.1, max(known) * 1.1


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Label a logarithmic axis by plain numbers, few enough to be read."""
    decades = range(-4, 7)
    dense = [m * 10.0**k for k in decades for m in (1, 2, 5)]
    sparse = [10.0**k for k in decades]
    inside = [x for x in dense if low <= x <= high]
    ticks = inside if len(inside) <= 7 else [x for x in sparse if low <= x <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def finite(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with infinite numbers as missing: they have no place to draw."""
    return frame.replace([np.inf, -np.inf], np.nan)


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """Put the legend of one panel under the whole figure."""
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=columns,
        fontsize=9,
        frameon=False,
    )
