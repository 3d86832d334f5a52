"""Scans of a tiny model by name, also run in processes that tests kill."""

import os
import signal
from pathlib import Path
from typing import Any

import xarray as xr
import zarr.storage._local as local_storage

from empirical.corpora import load_corpus
from empirical.models import load, resolve
from empirical.scan import ScanSpec, scan
from empirical.store import Store


def nothing() -> None:
    """Start the server."""


def run(
    model_name: str, text: str, store: str | Path, spec: ScanSpec, **options: Any
) -> xr.Dataset:
    """Load by name and scan."""
    source = resolve(model_name)
    model, tokenizer = load(source)
    return scan(
        model, tokenizer, source, load_corpus(text), Path(store), spec, **options
    )


def run_killed_in_first_write(
    model_name: str, text: str, store: str, spec: ScanSpec
) -> None:
    """Kill this process halfway through the first file of the first window."""
    atomic_write, write = local_storage._atomic_write, Store.write
    begun = []

    def note_and_write(self: Store, index: int, window: xr.Dataset) -> None:
        begun.append(index)
        write(self, index, window)

    def write_half(path: Path, mode: Any, exclusive: bool = False) -> Any:
        manager = atomic_write(path, mode, exclusive)
        if begun:
            with manager as stream:
                stream.write(b"half")
                stream.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        return manager

    Store.write = note_and_write
    local_storage._atomic_write = write_half
    run(model_name, text, store, spec)
