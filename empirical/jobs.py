"""What the command line runs: resolve, load, scan, and build the page."""

import argparse
import dataclasses
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from empirical.corpora import load_corpus
from empirical.errors import ScanError
from empirical.models import ModelSource, bos_rule, load, resolve
from empirical.progress import say, window_progress
from empirical.query_report import write_query_report
from empirical.report import write_report
from empirical.scan import ScanSpec, estimate, scan

__all__ = ["Job", "check_device", "cost", "run_report", "run_scan"]


@dataclass(frozen=True)
class Job:
    """Scans by names, as the command line states them."""

    models: tuple[str, ...] = ("smollm2",)
    corpus: str = "python-docs"
    field: str = "text"
    spec: ScanSpec = dataclasses.field(default_factory=ScanSpec)
    device: str = "cpu"
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> "Job":
        """Build a job from parsed options."""
        grid = {} if options.n is None else {"n_grid": options.n}
        spec = ScanSpec(
            windows=options.windows,
            length=options.length,
            seed=options.seed,
            bos=options.bos,
            queries=options.queries,
            controls=not options.no_controls,
            cells=not options.no_cells,
            **grid,
        )
        return cls(
            tuple(dict.fromkeys(options.model or cls.models)),
            options.corpus,
            options.field,
            spec,
            options.device,
            options.dtype,
            options.revision,
            options.trust_remote_code,
        )


def run_scan(job: Job, store: Path) -> dict[str, Any]:
    """Run a scan; return where it is, and what it took."""
    if len(job.models) != 1:
        msg = f"scan: model must be one, got {', '.join(job.models)}."
        raise ScanError(msg)
    started = time.monotonic()
    _scan(job, _source(job, job.models[0]), store)
    return {"store": str(store), **cost(started)}


def run_report(job: Job, folder: Path) -> dict[str, Any]:
    """Run the scans into ``folder`` and build their page; return where it is."""
    started = time.monotonic()
    # All names are known to be good before the first long run.
    sources = [_source(job, model) for model in job.models]
    folder.mkdir(parents=True, exist_ok=True)
    stores = [
        folder / (f"scan-{i}.zarr" if i else "scan.zarr") for i in range(len(sources))
    ]
    scans = [
        _scan(job, source, store) for source, store in zip(sources, stores, strict=True)
    ]
    write = write_query_report if job.spec.lean else write_report
    page = write(scans, folder)
    return {"page": str(page), "stores": [str(s) for s in stores], **cost(started)}


def _source(job: Job, name: str) -> ModelSource:
    return resolve(name, revision=job.revision, log=say)


def _scan(job: Job, source: ModelSource, store: Path) -> xr.Dataset:
    check_device(job.device)
    corpus = load_corpus(job.corpus, field=job.field)
    say(f"loading {source.name}")
    model, tokenizer = load(
        source,
        device=job.device,
        dtype=job.dtype,
        trust_remote_code=job.trust_remote_code,
    )
    warning = bos_rule(model, tokenizer, job.spec.bos).warning
    if warning:
        say(f"warning: {warning}")
    say(estimate(model, job.spec))
    with window_progress(f"{source.name} on {corpus.name}") as progress:
        return scan(
            model, tokenizer, source, corpus, store, job.spec, progress=progress
        )


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use, with ScanError."""
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        msg = (
            f"scan: device must be one torch can use, got device={device!r} ({reason})."
        )
        raise ScanError(msg) from error


def cost(started: float) -> dict[str, float]:
    """Return seconds since ``started`` and GiB of memory at the peak."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": round(time.monotonic() - started, 1),
        "peak_gib": round(peak * unit / 2**30, 3),
    }
