"""From counts of many queries to F and its bounds, and one page of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from empirical.drawing import BLUE, GREY, ORANGE, STYLE, Drawing, nearest, origin
from empirical.plots import map_of_heads
from empirical.report import figure_parts, page_environment
from geobounds.files import write_text

__all__ = ["query_metrics", "write_query_report"]

_ACROSS = ("window", "layer", "head", "query")
_BANDS = 16  # most bands of query positions
_COLUMNS = {
    "precision": "precision",
    "recall": "recall",
    "f": "F",
    "t2_joint": "F >=, inversions (T2)",
    "t6": "F >=, cells (T6)",
}


def query_metrics(scan: xr.Dataset) -> xr.Dataset:
    """Return P, R, F and the bounds T2b and T6 of every entry, as float64.

    NaN where N leaves no token unselected. Each follows from whole numbers below 2^53
    by one division, so it is the exact fraction, rounded once.
    """
    n = scan["n"].astype(np.float64)
    fp, fn, g = (
        scan[x].where(scan[x] >= 0).astype(np.float64)
        for x in ("false_positives", "false_negatives", "inversions")
    )
    # The least F for G inversions has min(G, N) false negatives (T2b).
    most_fn = np.minimum(g, n)
    least = _f(n, np.minimum(scan["n_candidates"] - n, g + 1 - most_fn), most_fn)
    found = {
        "precision": n / (n + fp),
        "recall": (n - fn) / n,
        "f": _f(n, fp, fn),
        "t2_joint": _choose(g == 0, 1.0, least),
    }
    if "cell_false_positives" in scan:
        cells = (
            scan[f"cell_false_{x}"].where(scan[f"cell_false_{x}"] >= 0)
            for x in ("positives", "negatives")
        )
        found["t6"] = _f(n, *(x.astype(np.float64) for x in cells))
    found["t2_joint"] = found["t2_joint"].where(g.notnull())
    order = scan["false_positives"].dims
    return xr.Dataset(
        {k: x.transpose(*order) for k, x in found.items()}, attrs=scan.attrs
    )


def _f(n: Any, fp: Any, fn: Any) -> Any:
    """F_N (D7), 0 where no selected token is kept."""
    kept = n - fn
    found = 2 * n * kept / (n * kept + fp * kept + n * n)
    return _choose(kept == 0, 0.0, found).where(fp.notnull())


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    chosen: Any = xr.where(condition, yes, no)  # type: ignore[no-untyped-call]
    return chosen


def table(values: xr.Dataset) -> list[dict[str, Any]]:
    """Return one row an N and policy: means over windows, heads and queries."""
    rows = []
    for policy in values["certified_policy"].values.tolist():
        for n in values["n"].values.tolist():
            at = values.sel(certified_policy=policy, n=n)
            means = {str(k): x for k, x in at.mean(_ACROSS).data_vars.items()}
            # No number where no query sees more than n tokens.
            found = {k: float(x) if x.notnull() else None for k, x in means.items()}
            rows.append({"policy": policy, "n": n, **found})
    return rows


def _by_n(values: xr.Dataset, rows: list[dict[str, Any]]) -> Drawing:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    lines = [("keep", "f", "F measured, sink kept", "black", "o", "-")]
    lines += [("drop", "f", "F measured, sink dropped", GREY, "D", "-")]
    lines += [("keep", "t6", "certified, cells (T6)", BLUE, "s", "--")]
    lines += [("keep", "t2_joint", "certified, inversions (T2)", ORANGE, "x", "--")]
    for policy, key, label, color, marker, dash in lines:
        some = [r for r in rows if r["policy"] == policy and key in r]
        axes.plot(
            [r["n"] for r in some],
            [np.nan if r[key] is None else r[key] for r in some],
            label=label, color=color, marker=marker, linestyle=dash,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("N, number of selected tokens")
    axes.set_ylabel("F, mean over heads and queries")
    axes.legend(fontsize=9, frameon=False)
    return Drawing(
        "f_by_n",
        "Measured F and its certified bounds over N",
        "How to read it: black is how separable the N most attended tokens are, blue "
        "and orange are lower bounds that hold with certainty. Each N over the queries "
        f"that see more than N tokens. {origin(values, _which(values))}",
        figure,
    )


def _by_position(values: xr.Dataset) -> Drawing:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    at = values["f"].sel(certified_policy="keep")
    count = at.sizes["query"]
    width = -(-count // _BANDS)
    shown = dict.fromkeys(nearest(values, n) for n in (2, 8, 64))
    for n, color, marker in zip(shown, (BLUE, ORANGE, GREY), "os^", strict=False):
        bands = [
            at.sel(n=n).isel(query=slice(a, a + width)) for a in range(0, count, width)
        ]
        x = [float(b["query"].mean()) for b in bands]
        y = [float(b.mean()) if bool(b.notnull().any()) else np.nan for b in bands]
        axes.plot(x, y, color=color, marker=marker, label=f"N = {n}")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("position of the query")
    axes.set_ylabel("F, mean over heads and windows")
    axes.legend(fontsize=9, frameon=False)
    return Drawing(
        "f_by_position",
        "Measured F over the position of the query",
        "How to read it: queries further right choose among more tokens. One dot a "
        "band of neighbouring queries; the sink is kept. "
        f"{origin(values, _which(values))}",
        figure,
    )


def _head_map(values: xr.Dataset) -> Drawing:
    n = nearest(values, 8)
    f = values["f"].sel(certified_policy="keep", n=n).mean(("window", "query"))
    figure = map_of_heads(f, f"F at N = {n}, mean over queries")
    return Drawing(
        "head_map",
        f"Which heads select separable tokens (N = {n})",
        "How to read it: one cell a head, its layer upward. Bright: the tokens it "
        "selects lie nearer to their own sum than all others. "
        f"{origin(values, _which(values))}",
        figure,
    )


def _which(values: xr.Dataset) -> str:
    queries = values.attrs["queries"]
    words = {"last": "last query", "all": "all queries"}
    return words.get(queries, f"every {queries}th query")


def write_query_report(scans: Sequence[xr.Dataset], folder: Path) -> Path:
    """Write ``index.html``, and per scan its figures and table.

    Parameters
    ----------
    scans : sequence of xarray.Dataset
        Complete scans of many queries.
    folder : Path
        Where to write; it must exist. The page is written last.

    Returns
    -------
    Path
        The page.
    """
    parts = []
    for i, scan in enumerate(scans):
        values = query_metrics(scan)
        rows = table(values)
        stem = f"{i}-" if len(scans) > 1 else ""
        record = {"table": rows, "provenance": scan.attrs}
        write_text(folder / f"{stem}table.json", json.dumps(record, indent=1) + "\n")
        with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
            drawings = [_by_n(values, rows), _by_position(values), _head_map(values)]
        parts.append(
            {
                "attrs": scan.attrs,
                "sizes": dict(scan.sizes),
                "table": rows,
                "columns": [(k, x) for k, x in _COLUMNS.items() if k in rows[0]],
                "figures": figure_parts(drawings, folder, stem),
            }
        )
    text = page_environment().get_template("queries.html").render(parts=parts)
    page = folder / "index.html"
    write_text(page, text)
    return page
