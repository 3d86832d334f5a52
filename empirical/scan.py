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
from empirical.estimates import BLOCK, query_cost, require_memory
from empirical.models import BosRule, ModelSource, bos_rule
from empirical.queries import QueryCollector, QueryGrid, empty_query_arrays, query_rows
from empirical.reduce import LAYOUT, Collector, Grid, empty_arrays
from empirical.store import FORMAT, Store

__all__ = ["ScanSpec", "estimate", "scan"]


# Seen at 512 keys of 64 numbers, nine N; an order of magnitude, not a promise.
_SECONDS_A_HEAD = 0.09
_CHECKED = 512  # tokens of the run that such a scan compares with one without capture


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
    queries : "last", "all" or int
        The last query of each window, all, or every k-th.
    controls : bool
        With the last query: also other rankings, distances, random rankings, T4 and
        head classes. Other queries have none of these.
    cells : bool
        Whether the bound T6 is computed. Always with controls.
    """

    windows: int = 4
    length: int = 512
    n_grid: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    resolutions: tuple[int, ...] = (3, 5, 9)
    random_rankings: int = 16
    bos: str = "auto"
    seed: int = 0
    queries: str | int = "last"
    controls: bool = True
    cells: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that leave nothing to measure."""
        if self.queries not in ("last", "all") and not (
            isinstance(self.queries, int) and 1 <= self.queries < self.length
        ):
            msg = (
                'scan: queries must be "last", "all" or a step from 1 to '
                f"{self.length - 1}, got queries={self.queries!r}."
            )
            raise ScanError(msg)
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
    def lean(self) -> bool:
        """Whether the scan holds counts of many queries rather than controls."""
        return self.queries != "last" or not self.controls

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
    collector = _collector(grid)
    if isinstance(grid, QueryGrid):
        _check_prefix(model, windows[0].ids)
    with torch.no_grad(), capture(model, collector.receive, **_capture_options(grid)):
        for index in np.flatnonzero(~done).tolist():
            collector.start(index)
            ids = torch.tensor([windows[index].ids], device=model.device)
            model.base_model(input_ids=ids, use_cache=False)
            dims = {name: template[name].dims for name in collector.data}
            reduced = {name: (dims[name], x) for name, x in collector.data.items()}
            store.write(index, xr.Dataset(reduced))
            done[index] = True
            if progress is not None:
                progress(int(done.sum()), spec.windows)
    return store.read()


def estimate(model: Any, spec: ScanSpec) -> str:
    """Say what a scan will take: heads, time and disk, before it runs.

    The time is that of the analysis, which grows with heads and with keys, on one
    ordinary core; the first window corrects it. For a scan of many queries both the
    model and the analysis are timed on short windows.

    Raises
    ------
    ScanError
        A scan of many queries for which memory would not suffice.
    """
    grid = _grid(model, spec)
    heads = grid.shape[0] * grid.shape[1]
    what = f"{spec.windows} windows of {spec.length} tokens, {heads} heads: "
    if isinstance(grid, QueryGrid):
        cost = query_cost(model, grid, spec.queries, spec.windows)
        require_memory(cost)
        return f"{what}{cost}"
    arrays, _ = _arrays(spec, grid)
    size = sum(x.nbytes for x in arrays.values())
    seconds = spec.windows * heads * _SECONDS_A_HEAD * spec.length / 512
    return f"{what}about {seconds:.0f} s and at most {size / 2**20:.0f} MiB on disk"


def _grid(model: Any, spec: ScanSpec) -> Grid | QueryGrid:
    config = model.config.get_text_config()
    shape = (config.num_hidden_layers, config.num_attention_heads)
    if spec.lean:
        return QueryGrid(
            shape,
            spec.usable_n,
            spec.length,
            query_rows(spec.queries, spec.length),
            cells=max(spec.resolutions) if spec.cells else None,
        )
    return Grid(
        shape,
        spec.length,
        spec.usable_n,
        spec.resolutions,
        spec.random_rankings,
        spec.seed,
    )


def _collector(grid: Grid | QueryGrid) -> Any:
    return QueryCollector(grid) if isinstance(grid, QueryGrid) else Collector(grid)


def _capture_options(grid: Grid | QueryGrid) -> dict[str, Any]:
    if isinstance(grid, Grid):
        return {"queries": "all"}
    return {"queries": grid.queries, "block": BLOCK, "stream": True, "check": False}


def _check_prefix(model: Any, ids: Sequence[int]) -> None:
    """Compare a run of the first tokens with one without capture, blocks included.

    A run of the whole without capture would need the maps that blocks avoid.
    """

    def ignore(*_: Any) -> None:
        """Take no part."""

    start = torch.tensor([list(ids[:_CHECKED])], device=model.device)
    with torch.no_grad(), capture(model, ignore, block=BLOCK, stream=True):
        model.base_model(input_ids=start, use_cache=False)


def _arrays(spec: ScanSpec, grid: Grid | QueryGrid) -> tuple[dict[str, Any], Any]:
    """Return the empty arrays of a scan, and their dimensions after ``window``."""
    if isinstance(grid, QueryGrid):
        return empty_query_arrays(grid, spec.windows), grid.layout
    return empty_arrays(grid, spec.windows), LAYOUT


def _template(spec: ScanSpec, grid: Grid | QueryGrid) -> xr.Dataset:
    arrays, layout = _arrays(spec, grid)
    return xr.Dataset(
        {name: (("window", *dims), arrays[name]) for name, dims in layout.items()},
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
        "queries": (
            str(spec.queries)
            if spec.lean
            else "last for selections and bounds, all for classes"
        ),
        "spec": {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(spec).items()
        },
        "documents": [f"{window.document} @{window.start}" for window in windows],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "numpy")},
        },
    }
