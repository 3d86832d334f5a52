"""Scan a model: every head of every window, reduced to counts.

At the last query of each window selections are measured and bounded; over all queries
the head is classed. What is stored are exact integer counts; precision, recall, F and
the bounds follow from them (``metrics``). One window is one chunk of the store, so a
scan that was killed goes on where it stopped.
"""

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
import xarray as xr

from empirical.capture import capture
from empirical.corpora import Corpus, Window, cut_windows
from empirical.errors import ScanError
from empirical.models import BosRule, ModelSource, bos_rule
from empirical.reduce import LAYOUT, Collector, Grid, empty_arrays
from empirical.store import FORMAT, Store

__all__ = ["ScanSpec", "estimate", "scan"]


# Seen at 512 keys of 64 numbers, nine N; an order of magnitude, not a promise.
_SECONDS_A_HEAD = 0.09


@dataclass(frozen=True)
class ScanSpec:
    """What to scan.

    Attributes
    ----------
    windows : int
        Number of windows.
    length : int
        Tokens of a window, its BOS included.
    n_grid : tuple of int
        Numbers of selected tokens; those beyond length - 2 are left out.
    resolutions : tuple of int
        Numbers of cells for the bound T6.
    random_rankings : int
        Number of random rankings, nested in N, that measurements are compared with.
    bos : "auto" or "none"
        What opens a window; see ``bos_rule``.
    seed : int
        Seed of the order of documents and of the random rankings.
    """

    windows: int = 4
    length: int = 512
    n_grid: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    resolutions: tuple[int, ...] = (3, 5, 9)
    random_rankings: int = 16
    bos: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that leave nothing to measure."""
        for name, least in (
            ("windows", 1),
            ("length", 4),
            ("random_rankings", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value < least:
                msg = f"scan: {name} must be at least {least}, got {name}={value}."
                raise ScanError(msg)
        if len(set(self.n_grid)) < len(self.n_grid):
            msg = f"scan: n_grid must hold different numbers, got {self.n_grid}."
            raise ScanError(msg)
        if not self.usable_n:
            msg = (
                f"scan: n_grid must hold a number between 1 and {self.length - 2}, "
                f"got {self.n_grid}."
            )
            raise ScanError(msg)
        if not self.resolutions or min(self.resolutions) < 3:
            msg = (
                "scan: resolutions must be at least 3 (selected, unselected and the "
                f"sink are cells of their own), got {self.resolutions}."
            )
            raise ScanError(msg)

    @property
    def usable_n(self) -> tuple[int, ...]:
        """The numbers that leave a token unselected under every policy, ascending."""
        return tuple(sorted(n for n in self.n_grid if 1 <= n <= self.length - 2))


def scan(
    model: Any,
    tokenizer: Any,
    source: ModelSource,
    corpus: Corpus,
    path: Any,
    spec: ScanSpec | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Scan windows of a text over all layers and heads, resumably.

    Parameters
    ----------
    model, tokenizer
        As returned by ``load``.
    source : ModelSource
        Where the model came from; recorded.
    corpus : Corpus
        The text.
    path : str or Path
        Folder of the Zarr store. If it holds the same scan, unfinished, it is resumed.
    spec : ScanSpec, optional
        What to scan.
    progress : callable, optional
        Called with (windows done, windows) after each window.

    Returns
    -------
    xarray.Dataset
        The counts; ``metrics`` gives what follows from them.

    Raises
    ------
    ScanError
        The store holds another scan, or the model's layers differ from its config.
    CorpusError
        The corpus is too short.
    CaptureError
        The capture is not what the model computed.
    OSError
        The store cannot be written.
    """
    spec = spec or ScanSpec()
    rule = bos_rule(model, tokenizer, spec.bos)
    windows = cut_windows(
        corpus,
        tokenizer,
        count=spec.windows,
        length=spec.length,
        bos=rule.token,
        seed=spec.seed,
    )
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(longest, int) and spec.length > longest:
        msg = (
            f"scan: length must be at most {longest}, the positions of this model, "
            f"got length={spec.length}."
        )
        raise ScanError(msg)
    grid = _grid(model, spec)
    template = _template(spec, grid)
    template.attrs = _provenance(model, source, corpus, spec, windows, rule)
    store = Store(path)
    done = store.open(template)
    if progress is not None:
        progress(int(done.sum()), spec.windows)
    collector = Collector(grid)
    with torch.no_grad(), capture(model, collector.receive, queries="all"):
        for index in np.flatnonzero(~done).tolist():
            collector.start(index)
            ids = torch.tensor([windows[index].ids], device=model.device)
            model.base_model(input_ids=ids, use_cache=False)
            dims = {name: template[name].dims for name in LAYOUT}
            reduced = {name: (dims[name], x) for name, x in collector.data.items()}
            store.write(index, xr.Dataset(reduced))
            done[index] = True
            if progress is not None:
                progress(int(done.sum()), spec.windows)
    return store.read()


def estimate(model: Any, spec: ScanSpec) -> str:
    """Say what a scan will take: heads, time and disk, before it runs.

    The time is that of the analysis, which grows with heads and with keys, on one
    ordinary core; the first window corrects it.
    """
    grid = _grid(model, spec)
    heads = grid.shape[0] * grid.shape[1]
    size = sum(x.nbytes for x in empty_arrays(grid, spec.windows).values())
    seconds = spec.windows * heads * _SECONDS_A_HEAD * spec.length / 512
    return (
        f"{spec.windows} windows of {spec.length} tokens, {heads} heads: about "
        f"{seconds:.0f} s and at most {size / 2**20:.0f} MiB on disk"
    )


def _grid(model: Any, spec: ScanSpec) -> Grid:
    config = model.config.get_text_config()
    return Grid(
        (config.num_hidden_layers, config.num_attention_heads),
        spec.length,
        spec.usable_n,
        spec.resolutions,
        spec.random_rankings,
        spec.seed,
    )


def _template(spec: ScanSpec, grid: Grid) -> xr.Dataset:
    arrays = empty_arrays(grid, spec.windows)
    return xr.Dataset(
        {name: (("window", *dims), arrays[name]) for name, dims in LAYOUT.items()},
        coords={"window": np.arange(spec.windows), **grid.coordinates},
    )


def _provenance(
    model: Any,
    source: ModelSource,
    corpus: Corpus,
    spec: ScanSpec,
    windows: Sequence[Window],
    rule: BosRule,
) -> dict[str, Any]:
    """Return all that identifies the scan, as JSON data; nothing that varies by run."""
    return {
        "format": FORMAT,
        "model": source.name,
        "model_fingerprint": source.fingerprint,
        "model_type": str(model.config.model_type),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": model.device.type,
        "attention": "the model's own eager attention, batch 1",
        "corpus": corpus.name,
        "corpus_sha256": corpus.sha256,
        "corpus_documents": len(corpus.documents),
        "bos": rule.text,
        "bos_warning": rule.warning or "",
        "queries": "last for selections and bounds, all for classes",
        "spec": {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(spec).items()
        },
        "documents": [f"{window.document} @{window.start}" for window in windows],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "numpy")},
        },
    }
