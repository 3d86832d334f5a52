"""What the command line runs: resolve, load, scan, and build the page."""

import argparse
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from empirical.corpora import load_corpus
from empirical.errors import ScanError
from empirical.models import load, resolve
from empirical.progress import say, window_progress
from empirical.report import write_report
from empirical.scan import ScanSpec, scan

__all__ = ["Job", "run_report", "run_scan"]


@dataclass(frozen=True)
class Job:
    """A scan by names, as the command line states it."""

    model: str = "smollm2"
    corpus: str = "python-docs"
    spec: ScanSpec = field(default_factory=ScanSpec)
    device: str = "cpu"
    dtype: str = "float32"
    revision: str | None = None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> "Job":
        """Build a job from parsed options."""
        grid = {} if options.n is None else {"n_grid": options.n}
        spec = ScanSpec(
            windows=options.windows, length=options.length, seed=options.seed, **grid
        )
        return cls(
            options.model,
            options.corpus,
            spec,
            options.device,
            options.dtype,
            options.revision,
        )


def run_scan(job: Job, store: Path) -> dict[str, Any]:
    """Run a scan; return where it is, and what it took."""
    started = time.monotonic()
    _scan(job, store)
    return {"store": str(store), **_cost(started)}


def run_report(job: Job, folder: Path) -> dict[str, Any]:
    """Run a scan into ``folder`` and build its page; return where it is."""
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    data = _scan(job, folder / "scan.zarr")
    page = write_report(data, folder)
    return {"page": str(page), "store": str(folder / "scan.zarr"), **_cost(started)}


def _scan(job: Job, store: Path) -> xr.Dataset:
    _check_device(job.device)
    corpus = load_corpus(job.corpus)
    source = resolve(job.model, revision=job.revision, log=say)
    say(f"loading {job.model}")
    model, tokenizer = load(source, device=job.device, dtype=job.dtype)
    with window_progress(f"{job.model} on {corpus.name}") as progress:
        return scan(
            model, tokenizer, source, corpus, store, job.spec, progress=progress
        )


def _check_device(device: str) -> None:
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        msg = (
            f"scan: device must be one torch can use, got device={device!r} ({reason})."
        )
        raise ScanError(msg) from error


def _cost(started: float) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": round(time.monotonic() - started, 1),
        "peak_gib": round(peak * unit / 2**30, 3),
    }
