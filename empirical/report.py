"""One self-contained HTML page from a scan. It reads results, never a model."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined

from empirical.metrics import metrics, table_by_n
from empirical.plots import Drawing, add_caption, all_figures
from geobounds.files import replacing, write_text

__all__ = ["write_report"]


def write_report(scan: xr.Dataset, folder: Path) -> Path:
    """Write ``index.html``, its figures as PNG and its table as JSON.

    Parameters
    ----------
    scan : xarray.Dataset
        A complete scan.
    folder : Path
        Where to write; it must exist. The page is written last.

    Returns
    -------
    Path
        The page.
    """
    values = metrics(scan)
    table = table_by_n(values)
    (folder / "figures").mkdir(exist_ok=True)
    figures = []
    for drawing in all_figures(values, table):
        figures.append(
            {
                "name": drawing.name,
                "title": drawing.title,
                "caption": drawing.caption,
                "data": base64.b64encode(_png(drawing)).decode(),
            }
        )
        with replacing(folder / "figures" / f"{drawing.name}.png") as temporary:
            add_caption(drawing)  # a file stands alone; the page has its own text
            temporary.write_bytes(_png(drawing))
    write_text(folder / "table.json", json.dumps(table, indent=1) + "\n")
    page = folder / "index.html"
    environment = Environment(
        loader=PackageLoader("empirical"), undefined=StrictUndefined, autoescape=True
    )
    environment.filters["number"] = lambda x: f"{x:.3f}"
    environment.filters["bound"] = _down
    environment.filters["percent"] = lambda x: f"{100 * x:.1f} %"
    html = environment.get_template("report.html").render(
        attrs=scan.attrs,
        sizes=dict(scan.sizes),
        table=table,
        resolutions=scan["resolution"].values.tolist(),
        figures=figures,
        summary=_summary(table),
    )
    write_text(page, html)
    return page


def _png(drawing: Drawing) -> bytes:
    stream = io.BytesIO()
    metadata = {"Title": drawing.title, "Description": drawing.caption}
    drawing.figure.savefig(stream, format="png", dpi=150, metadata=metadata)
    return stream.getvalue()


def _down(x: float) -> str:
    """Three decimals, rounded down: a printed bound must not exceed the bound."""
    return f"{int(x * 1000) / 1000:.3f}"


def _summary(table: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row told in words: N = 8, or the one nearest to it."""
    return min(table, key=lambda row: (abs(row["n"] - 8), row["n"]))
