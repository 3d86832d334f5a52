"""Scans made up from random numbers: every array of the layout, no model behind it."""

from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from empirical.reduce import LAYOUT, Grid, empty_arrays


def made_up_scan(
    windows: int = 10,
    shape: tuple[int, int] = (3, 4),
    *,
    length: int = 64,
    n: tuple[int, ...] = (1, 2, 4, 8, 32),
    resolutions: tuple[int, ...] = (3, 5, 9),
    repeats: int = 3,
    seed: int = 0,
    bos: bool = True,
) -> xr.Dataset:
    """Return a scan of random counts that a real scan could hold.

    Bounds are no better than what is measured, counts lie in range, some entries are
    missing. What the numbers say about heads is nothing.
    """
    generator = np.random.default_rng([seed, length])
    grid = Grid(shape, length, n, resolutions, repeats, seed)
    data = empty_arrays(grid, windows)
    dims = {name: ("window", *LAYOUT[name]) for name in LAYOUT}
    scan = xr.Dataset(
        {name: (dims[name], data[name]) for name in LAYOUT},
        coords={"window": np.arange(windows), **grid.coordinates},
    )
    scan["n_candidates"][:] = length
    scan["n_candidates"].loc[{"sink_policy": "drop"}] = length - 1
    for name, array in scan.data_vars.items():
        if array.dtype.kind == "f":
            array[:] = generator.uniform(0.1, 1, array.shape)
        elif name.startswith("class_"):
            array[:] = generator.integers(0, 9, array.shape)
    scan["sink_cosine"] -= 0.9
    scan["cosine_least"] -= 0.5
    scan["sink_rank"][:] = generator.integers(-1, 12, scan["sink_rank"].shape)
    scan["found_sink"][:] = generator.integers(0, 2, scan["found_sink"].shape)
    selected = scan["sink_rank"].sel(ranking="weight", drop=True)
    selected = (selected >= 0) & (selected < scan["n"])
    truth = generator.integers(0, 2, scan["collapse"].shape)
    scan["collapse"][:] = np.where(selected.transpose(*dims["collapse"]), truth, -1)
    for kind in ("", "random_", "found_", "removed_"):
        _counts(scan, kind, generator)
    fp, fn = scan["false_positives"], scan["false_negatives"]
    scan["inversions"][:] = np.maximum(fp + fn - 1, 0)  # the fewest (T2)
    at = {"distance": "euclidean", "ranking": "weight", "sink_policy": ["keep", "drop"]}
    renamed = {"sink_policy": "certified_policy"}
    for kind in ("cell_", "pairwise_"):
        for name in ("false_positives", "false_negatives"):
            measured = scan[name].sel(at).rename(renamed)
            bound = scan[kind + name]
            more = generator.integers(0, 3, bound.shape)
            cap = scan["n"] if name == "false_negatives" else scan["n_candidates"].max()
            worse = np.minimum(measured + xr.DataArray(more, dims=bound.dims), cap)
            bound[:] = worse.transpose(*bound.dims)
    missing = {"window": 0, "layer": 0, "head": 0, "n": n[-1]}  # seen by no window
    for name, array in scan.data_vars.items():
        if "false_" in name or name == "inversions":
            array.loc[missing] = -1
    scan["collapse"].loc[missing] = -1
    scan.attrs = {
        "model": "made-up",
        "model_fingerprint": "sha256:0",
        "corpus": "texts",
        "corpus_sha256": "ab" * 32,
        "bos": "token 1 first in every window" if bos else "none: left out on request",
        "documents": [f"text {i} @0" for i in range(windows)],
        "dtype": "float32",
        "spec": {"windows": windows, "length": length, "seed": seed},
    }
    return scan


def made_up_pair(seed: int = 0, **options: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """Return main and bare scans of the same documents, to be changed at will."""
    attrs = {k: options.pop(k) for k in list(options) if k in _ATTRS}
    main, bare = _made_up_pair(seed, **options)
    return (
        main.copy(deep=True).assign_attrs(attrs),
        bare.copy(deep=True).assign_attrs(attrs),
    )


_ATTRS = ("model_fingerprint", "corpus", "corpus_sha256", "documents")


@cache
def _made_up_pair(seed: int, **options: Any) -> tuple[xr.Dataset, xr.Dataset]:
    length = options.pop("length", 64)
    bare = {**options, "resolutions": (9,), "repeats": 1, "bos": False}
    return (
        made_up_scan(length=length, seed=seed, **options),
        made_up_scan(length=length - 1, seed=seed, **bare),
    )


def _counts(scan: xr.Dataset, kind: str, generator: np.random.Generator) -> None:
    """Fill false positives and negatives: both 0 or neither."""
    fp, fn = scan[f"{kind}false_positives"], scan[f"{kind}false_negatives"]
    n = scan["n"].broadcast_like(fp).transpose(*fp.dims).values
    wrong = generator.integers(0, 2, fp.shape)
    fp[:] = wrong * generator.integers(1, 25, fp.shape)
    fn[:] = wrong * np.minimum(n, generator.integers(1, 40, fn.shape))
