"""From stored counts to precision, recall, F and bounds, and their means by N."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from geobounds import inversion_bounds
from geobounds.separability import f_score

__all__ = ["metrics", "table_by_n"]


def metrics(scan: xr.Dataset) -> xr.Dataset:
    """Return F and its bounds for every entry of a scan, as float64.

    Parameters
    ----------
    scan : xarray.Dataset
        Counts, as returned by ``scan`` or ``read_scan``.

    Returns
    -------
    xarray.Dataset
        ``f``: measured F_N; ``t2_separate`` and ``t2_joint``: the bounds T2 (a) and
        (b); ``t6``: the cell bound by resolution (weight ranking). NaN where N is out
        of range for a head. Each follows from the counts by geobounds' own formula,
        rounded to float64 once.
    """
    n = scan["n"]
    unselected = scan["n_candidates"] - n
    fp, fn, g = (scan[k] for k in ("false_positives", "false_negatives", "inversions"))
    return xr.Dataset(
        {
            "f": _apply(_f, n, fp, fn),
            "t2_separate": _apply(_t2_separate, n, unselected, g),
            "t2_joint": _apply(_t2_joint, n, unselected, g),
            "t6": _apply(
                _f, n, scan["cell_false_positives"], scan["cell_false_negatives"]
            ),
        },
        attrs=scan.attrs,
    )


def table_by_n(values: xr.Dataset) -> list[dict[str, Any]]:
    """Return one row an N: means over windows, layers and heads.

    Notes
    -----
    ``tightness`` is mean certified F over mean measured F at the finest resolution;
    ``separable`` the share of (window, head) pairs with certified F = 1.
    """
    over = ("window", "layer", "head")
    rows = []
    finest = int(values["resolution"].max())
    for n in values["n"].values.tolist():
        at = values.sel(n=n)
        row: dict[str, Any] = {"n": n}
        for policy in ("keep", "drop"):
            f = at["f"].sel(ranking="weight", sink_policy=policy)
            t6 = at["t6"].sel(sink_policy=policy)
            best = t6.sel(resolution=finest)
            part = {
                "f": f.mean(over),
                "random": at["f"].sel(ranking="random", sink_policy=policy).mean(over),
                "t2_separate": at["t2_separate"]
                .sel(ranking="weight", sink_policy=policy)
                .mean(over),
                "t2_joint": at["t2_joint"]
                .sel(ranking="weight", sink_policy=policy)
                .mean(over),
                **{
                    f"t6_{k}": t6.sel(resolution=k).mean(over)
                    for k in values["resolution"].values.tolist()
                },
                "tightness": best.mean(over) / f.mean(over),
                "separable": (best == 1).where(best.notnull()).mean(over),
            }
            row[policy] = {name: float(value) for name, value in part.items()}
        rows.append(row)
    return rows


def _apply(
    function: Callable[..., float], n: xr.DataArray, *counts: xr.DataArray
) -> Any:
    """Apply an exact formula of integers elementwise; counts below 0 give NaN."""

    @cache
    def value(n_selected: int, *integers: int) -> float:
        return np.nan if min(integers) < 0 else function(n_selected, *integers)

    def each(*arrays: np.ndarray) -> np.ndarray:
        flat = zip(*(a.ravel().tolist() for a in arrays), strict=True)
        result = np.array([value(*integers) for integers in flat])
        return result.reshape(arrays[0].shape)

    return xr.apply_ufunc(each, *xr.broadcast(n, *counts)).transpose(*_order(counts))


def _order(counts: tuple[xr.DataArray, ...]) -> tuple[Any, ...]:
    return max((c.dims for c in counts), key=len)


def _f(n: int, fp: int, fn: int) -> float:
    return float(f_score(n, fp, fn))


def _t2_separate(n: int, unselected: int, inversions: int) -> float:
    return float(inversion_bounds(n, unselected, inversions).f_separate)


def _t2_joint(n: int, unselected: int, inversions: int) -> float:
    return float(inversion_bounds(n, unselected, inversions).f_joint)
