"""One self-contained HTML page from scans. It reads results, never a model."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined

from empirical.drawing import STYLE, Drawing, png_of, save_drawing
from empirical.head_plots import class_map, sink_geometry_by_layer
from empirical.metrics import classes, enclosures, metrics, table_by_n, to_frame
from empirical.plots import (
    bounds_by_n,
    certified_against_measured,
    enclosure_ladder,
    head_map,
    policies_by_n,
    random_band,
)
from geobounds.files import replacing, write_text

__all__ = ["all_figures", "figure_parts", "page_environment", "write_report"]


def all_figures(
    scan: xr.Dataset, values: xr.Dataset, table: list[dict[str, Any]]
) -> list[Drawing]:
    """Return the figures of one scan, in the order of the page."""
    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        return [
            bounds_by_n(values, table),
            enclosure_ladder(values, table),
            certified_against_measured(values),
            policies_by_n(values),
            random_band(values),
            head_map(values),
            class_map(scan),
            sink_geometry_by_layer(scan),
        ]


def page_environment() -> Environment:
    """Return the templates of pages, with the ways numbers are printed."""
    environment = Environment(
        loader=PackageLoader("empirical"), undefined=StrictUndefined, autoescape=True
    )
    environment.filters["number"] = lambda x: f"{x:.3f}"
    environment.filters["bound"] = _down
    environment.filters["percent"] = lambda x: f"{100 * x:.1f} %"
    return environment


def write_report(scans: Sequence[xr.Dataset], folder: Path) -> Path:
    """Write ``index.html``, and per scan its figures, table and values.

    Parameters
    ----------
    scans : sequence of xarray.Dataset
        Complete scans, one a model; several stand side by side.
    folder : Path
        Where to write; it must exist. The page is written last.

    Returns
    -------
    Path
        The page.
    """
    parts = [_part(scan, folder, prefix=len(scans) > 1) for scan in scans]
    html = page_environment().get_template("report.html").render(parts=parts)
    page = folder / "index.html"
    write_text(page, html)
    return page


def figure_parts(
    drawings: Sequence[Drawing], folder: Path, stem: str
) -> list[dict[str, str]]:
    """Write figures as files; return what a page says of each."""
    (folder / "figures").mkdir(exist_ok=True)
    figures = []
    for drawing in drawings:
        figures.append(
            {
                "id": f"{stem}{drawing.name}",
                "title": drawing.title,
                "caption": drawing.caption,
                "data": base64.b64encode(png_of(drawing)).decode(),
            }
        )
        # A file stands alone, its caption in it; the page has its own text.
        save_drawing(drawing, folder / "figures" / f"{stem}{drawing.name}.png")
    return figures


def _part(scan: xr.Dataset, folder: Path, *, prefix: bool) -> dict[str, Any]:
    """Write the files of one scan and return what the page says of it."""
    values = metrics(scan)
    table = table_by_n(values)
    _, shares = classes(scan)
    name = "".join(c if c.isalnum() else "-" for c in Path(scan.attrs["model"]).name)
    stem = f"{name}-" if prefix else ""
    figures = figure_parts(all_figures(scan, values, table), folder, stem)
    record = {"table": table, "classes": shares, "provenance": scan.attrs}
    write_text(folder / f"{stem}table.json", json.dumps(record, indent=1) + "\n")
    with replacing(folder / f"{stem}values.csv") as temporary:
        to_frame(values).to_csv(temporary, index=False)
    return {
        "name": name,
        "attrs": scan.attrs,
        "sizes": dict(scan.sizes),
        "table": table,
        "shares": shares,
        "bounds": [(key, label) for key, (label, _) in enclosures(values).items()],
        "finest": int(values["resolution"].max()),
        "figures": figures,
        "summary": _summary(table),
    }


def _down(x: float) -> str:
    """Three decimals, rounded down: a printed bound must not exceed the bound."""
    return f"{int(x * 1000) / 1000:.3f}"


def _summary(table: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row told in words: N = 8, or the one nearest to it."""
    return min(table, key=lambda row: (abs(row["n"] - 8), row["n"]))
