"""From stored counts to precision, recall, F and bounds, and their means by N."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from geobounds import HeadClass, inversion_bounds
from geobounds.separability import f_score

__all__ = [
    "CLASSES",
    "classes",
    "enclosures",
    "f_of_counts",
    "metrics",
    "table_by_n",
    "to_frame",
]

CLASSES = ("Retriever", "Mixer", "Reset")
_OVER = ("window", "layer", "head")


def metrics(scan: xr.Dataset) -> xr.Dataset:
    """Return F and its bounds for every entry of a scan, as float64.

    Parameters
    ----------
    scan : xarray.Dataset
        Counts, as returned by ``scan`` or ``read_scan``.

    Returns
    -------
    xarray.Dataset
        ``f``: measured F_N; ``f_random``: that of random selections, sink kept;
        ``t2_separate``, ``t2_joint``, ``t4`` (by scope) and ``t6`` (by resolution):
        bounds for the weight ranking. NaN where N is out of range for a head. Each
        follows from the counts by geobounds' own formula, rounded to float64 once.
    """
    n = scan["n"]
    policies = scan["certified_policy"].values
    # Bounds are for the weight ranking, Euclidean, under the certified policies.
    at = scan.sel(distance="euclidean", ranking="weight", drop=True)
    renamed = {"sink_policy": "certified_policy"}
    at = at[["inversions", "n_candidates"]].drop_vars(
        "certified_policy", errors="ignore"
    )
    at = at.sel(sink_policy=policies).rename(renamed)
    g, unselected = at["inversions"], at["n_candidates"] - n
    return xr.Dataset(
        {
            "f": _apply(_f, n, scan["false_positives"], scan["false_negatives"]),
            "f_random": _apply(
                _f, n, scan["random_false_positives"], scan["random_false_negatives"]
            ),
            "t2_separate": _apply(_t2_separate, n, unselected, g),
            "t2_joint": _apply(_t2_joint, n, unselected, g),
            "t4": _apply(
                _f,
                n,
                scan["pairwise_false_positives"],
                scan["pairwise_false_negatives"],
            ),
            "t6": _apply(
                _f, n, scan["cell_false_positives"], scan["cell_false_negatives"]
            ),
        },
        coords=scan.coords,
        attrs=scan.attrs,
    )


def enclosures(values: xr.Dataset) -> dict[str, tuple[str, xr.DataArray]]:
    """Return every certified F by a short key, with its label; weakest first."""
    found = {
        "t4_all": ("8 numbers (T4)", values["t4"].sel(scope="all")),
        "t4_roles": ("T4 by role", values["t4"].sel(scope="roles")),
        "t4_norms": ("T4, all norms", values["t4"].sel(scope="roles-norms")),
        "t2_separate": ("inversions (T2 a)", values["t2_separate"]),
        "t2_joint": ("inversions (T2 b)", values["t2_joint"]),
    }
    for k in values["resolution"].values.tolist():
        found[f"t6_{k}"] = (f"{k} cells (T6)", values["t6"].sel(resolution=k))
    return found


def table_by_n(values: xr.Dataset) -> list[dict[str, Any]]:
    """Return one row an N: means over windows, layers and heads.

    Notes
    -----
    ``tightness`` is mean certified F over mean measured F at the finest resolution;
    ``separable`` the share of (window, head) pairs with certified F = 1.
    """
    bounds = enclosures(values)
    finest = bounds[f"t6_{int(values['resolution'].max())}"][1]
    rows = []
    for n in values["n"].values.tolist():
        row: dict[str, Any] = {
            "n": n,
            "random": float(values["f_random"].sel(distance="euclidean", n=n).mean()),
        }
        for policy in values["certified_policy"].values.tolist():
            f = values["f"].sel(
                distance="euclidean", ranking="weight", sink_policy=policy, n=n
            )
            best = finest.sel(certified_policy=policy, n=n)
            part = {"f": f.mean(_OVER)} | {
                key: bound.sel(certified_policy=policy, n=n).mean(_OVER)
                for key, (_, bound) in bounds.items()
            }
            part["tightness"] = best.mean(_OVER) / f.mean(_OVER)
            part["separable"] = (best == 1).where(best.notnull()).mean(_OVER)
            row[policy] = {name: float(value) for name, value in part.items()}
        rows.append(row)
    return rows


def classes(
    scan: xr.Dataset, prefix: int | None = None
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the class of every head over all windows (D10), and the shares.

    Parameters
    ----------
    scan : xarray.Dataset
        Counts, as returned by ``scan`` or ``read_scan``.
    prefix : int, optional
        Class by the queries of the first tokens of each window; default all.

    Returns
    -------
    classes : ndarray of object, shape (n_layers, n_heads)
        "Retriever", "Mixer", "Reset" or None.
    shares : dict of str to float
        Share of each class among the heads that have one.
    """
    names = ("current", "sink", "other")
    first = scan.sel(prefix=int(scan["prefix"].max()) if prefix is None else prefix)
    current, sink, other = (first[f"class_{x}"].sum("window").values for x in names)
    found = np.empty(current.shape, dtype=object)
    for at in np.ndindex(found.shape):
        found[at] = HeadClass(int(current[at]), int(sink[at]), int(other[at])).name
    known = [name for name in found.ravel() if name is not None]
    return found, {name: known.count(name) / max(len(known), 1) for name in CLASSES}


def to_frame(values: xr.Dataset) -> Any:
    """Return F and its bounds by window, head and N as a pandas data frame.

    One row a (window, layer, head, n): measured F by distance, ranking and policy,
    the mean over random rankings, and every bound by policy.
    """
    columns: dict[str, xr.DataArray] = {}
    for d in values["distance"].values:
        for r in values["ranking"].values:
            for p in values["sink_policy"].values:
                columns[f"f_{d}_{r}_{p}"] = values["f"].sel(
                    distance=d, ranking=r, sink_policy=p, drop=True
                )
        random = values["f_random"].sel(distance=d, drop=True)
        columns[f"f_{d}_random_mean"] = random.mean("repeat")
    for key, (_, bound) in enclosures(values).items():
        for p in values["certified_policy"].values:
            at = bound.sel(certified_policy=p, drop=True)
            columns[f"{key}_{p}"] = at.reset_coords(drop=True)
    return xr.Dataset(columns).to_dataframe().reset_index()


def f_of_counts(n: xr.DataArray, fp: xr.DataArray, fn: xr.DataArray) -> xr.DataArray:
    """Return F_N (D7) of counts; NaN where they are missing."""
    found: xr.DataArray = _apply(_f, n, fp, fn)
    return found


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

    order = max((c.dims for c in counts), key=len)
    return xr.apply_ufunc(each, *xr.broadcast(n, *counts)).transpose(*order)


def _f(n: int, fp: int, fn: int) -> float:
    return float(f_score(n, fp, fn))


def _t2_separate(n: int, unselected: int, inversions: int) -> float:
    return float(inversion_bounds(n, unselected, inversions).f_separate)


def _t2_joint(n: int, unselected: int, inversions: int) -> float:
    return float(inversion_bounds(n, unselected, inversions).f_joint)
