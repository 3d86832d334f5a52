"""The Zarr store of a scan: a template, one chunk a window, a flag when it is whole."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from empirical.errors import ScanError

__all__ = ["FORMAT", "Store", "read_scan"]

FORMAT = "geobounds-scan-2"


class Store:
    """A scan on disk that survives being killed at any moment.

    The template is built beside its place and renamed. A window's arrays are written
    first and its ``done`` flag last; a window without the flag counts as absent and is
    written again.
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def open(self, template: xr.Dataset) -> np.ndarray:
        """Create the store, or find the same scan there; return which windows are done.

        Raises
        ------
        ScanError
            The folder holds something else.
        """
        if not self.path.exists():
            self._create(template)
        found = read_scan(self.path, whole=False)
        expected = _comparable(template)
        actual = _comparable(found)
        if actual != expected:
            differs = sorted(k for k in expected if actual.get(k) != expected[k])
            msg = (
                f"scan: {self.path} must be new or hold the same scan, got one that "
                f"differs in {', '.join(differs) or 'its form'}. Choose another folder "
                "or delete it."
            )
            raise ScanError(msg)
        for leftover in self.path.rglob("*.partial"):
            leftover.unlink()
        return found["done"].values.astype(bool)

    def write(self, index: int, window: xr.Dataset) -> None:
        """Write one window, then mark it done."""
        region = {"window": slice(index, index + 1)}
        self._put(window, region)
        self._put(xr.Dataset({"done": ("window", np.array([True]))}), region)

    def read(self) -> xr.Dataset:
        """Return the whole scan."""
        return read_scan(self.path)

    def _put(self, data: xr.Dataset, region: dict[str, slice]) -> None:
        data.to_zarr(self.path, region=region, consolidated=False)

    def _create(self, template: xr.Dataset) -> None:
        count = template.sizes["window"]
        whole = template.assign(done=("window", np.zeros(count, dtype=bool)))
        encoding = {
            name: {"chunks": (1, *array.shape[1:]), "fill_value": _fill(array.dtype)}
            for name, array in whole.data_vars.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=self.path.parent, prefix=".scan-")
        try:
            whole.to_zarr(temporary, mode="w", encoding=encoding, consolidated=False)
            Path(temporary).rename(self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def read_scan(path: Any, *, whole: bool = True) -> xr.Dataset:
    """Read a scan into memory.

    Raises
    ------
    ScanError
        No scan there, or (if ``whole``) one with windows missing.
    """
    try:
        with xr.open_zarr(path, consolidated=False, mask_and_scale=False) as opened:
            data: xr.Dataset = opened.load()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120]
        msg = f"scan: {path} must be the store of a scan ({reason})."
        raise ScanError(msg) from error
    found = data.attrs.get("format")
    if found != FORMAT or "done" not in data:
        msg = (
            f"scan: {path} must be the store of a scan in format {FORMAT}, "
            f"got {found or 'another Zarr store'}. Scan again into another folder."
        )
        raise ScanError(msg)
    missing = int((~data["done"].values.astype(bool)).sum())
    if whole and missing:
        msg = (
            f"scan: {path} must be complete, got {missing} windows unfinished. "
            "Run the same scan again: it goes on where it stopped."
        )
        raise ScanError(msg)
    return data


def _fill(dtype: Any) -> Any:
    if dtype.kind == "b":
        return False
    return np.nan if np.issubdtype(dtype, np.floating) else -1


def _comparable(data: xr.Dataset) -> dict[str, str]:
    """Attributes and coordinates as text, by name."""
    flat = {k: json.dumps(v, sort_keys=True) for k, v in data.attrs.items()}
    flat |= {name: str(coord.values.tolist()) for name, coord in data.coords.items()}
    return flat
