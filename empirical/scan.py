"""Scan a model: counts of every head at the last query of each window.

What is stored are exact integer counts; precision, recall, F and the bounds follow from
them (``metrics``). One window is one chunk of the store, so a scan that was killed goes
on where it stopped.
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
from empirical.models import ModelSource, bos_id
from empirical.store import Store
from geobounds import HeadData, random_scores, rank, split_heads
from geobounds.power import dot_products
from geobounds.regime import rounded_cell_counts
from geobounds.separability import selection_counts

__all__ = ["RANKINGS", "SINK_POLICIES", "ScanSpec", "scan"]

RANKINGS = ("weight", "random")
SINK_POLICIES = ("keep", "drop")
COUNTS = ("false_positives", "false_negatives", "inversions")
MISSING = -1


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
    seed : int
        Seed of the order of documents and of the random rankings.
    """

    windows: int = 4
    length: int = 512
    n_grid: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    resolutions: tuple[int, ...] = (3, 5, 9)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that leave nothing to measure."""
        for name, least in (("windows", 1), ("length", 4), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                msg = f"scan: {name} must be at least {least}, got {name}={value}."
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
        """The part of the grid that leaves a token unselected under every policy."""
        return tuple(n for n in self.n_grid if 1 <= n <= self.length - 2)


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
    """Scan the last query of each window over all layers and heads, resumably.

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
    bos = bos_id(model, tokenizer)
    windows = cut_windows(
        corpus,
        tokenizer,
        count=spec.windows,
        length=spec.length,
        bos=bos,
        seed=spec.seed,
    )
    config = model.config.get_text_config()
    shape = (config.num_hidden_layers, config.num_attention_heads)
    template = _template(spec, shape)
    template.attrs = _provenance(model, source, corpus, spec, windows, bos)
    store = Store(path)
    done = store.open(template)
    if progress is not None:
        progress(int(done.sum()), spec.windows)
    collector = _Collector(spec, shape)
    with torch.no_grad(), capture(model, collector.receive):
        for index in np.flatnonzero(~done).tolist():
            collector.start(index)
            ids = torch.tensor([windows[index].ids], device=model.device)
            model.base_model(input_ids=ids, use_cache=False)
            store.write(index, collector.dataset(template))
            done[index] = True
            if progress is not None:
                progress(int(done.sum()), spec.windows)
    return store.read()


class _Collector:
    """Receives the layers of one window and keeps their counts only."""

    def __init__(self, spec: ScanSpec, shape: tuple[int, int]) -> None:
        self.spec = spec
        self.shape = shape
        self.index = 0
        self.data: dict[str, np.ndarray] = {}

    def start(self, index: int) -> None:
        """Begin a window."""
        self.index = index
        self.data = _empty(self.spec, self.shape, 1)

    def receive(
        self,
        layer: int,
        weights: torch.Tensor,
        values: torch.Tensor,
        visible: torch.Tensor,
    ) -> None:
        """Reduce one layer to its counts."""
        heads = split_heads(weights[0], values[0], visible=visible[0])
        if layer >= self.shape[0] or len(heads) != self.shape[1]:
            msg = (
                f"scan: layers must be {self.shape[0]} with {self.shape[1]} heads as "
                f"the config says, got layer {layer} with {len(heads)} heads."
            )
            raise ScanError(msg)
        for h, head in enumerate(heads):
            self._head(layer, h, head)

    def _head(self, layer: int, h: int, head: HeadData) -> None:
        spec, data = self.spec, self.data
        data["mass"][0, layer, h] = head.mass[0]
        seed = [spec.seed, self.index, layer, h]
        scores = {"weight": "weight", "random": random_scores(head.n_key, seed)}
        for p, policy in enumerate(SINK_POLICIES):
            for r, ranking in enumerate(RANKINGS):
                order = rank(head, -1, scores[ranking], policy)
                data["n_candidates"][0, p, layer, h] = order.n_candidates
                for k, n in enumerate(spec.usable_n):
                    if n > order.n_candidates - 1:
                        continue
                    selection = order.select(n)
                    dots = dot_products(head, selection)
                    counts = selection_counts(head, selection, dots=dots)
                    at = (0, r, p, layer, h, k)
                    data["false_positives"][at] = counts.fp_upper
                    data["false_negatives"][at] = counts.fn_upper
                    data["inversions"][at] = counts.inversions_upper
                    if ranking != "weight":
                        continue
                    data["boundary_tie"][0, p, layer, h, k] = selection.boundary_tie
                    cells = rounded_cell_counts(head, selection, spec.resolutions, dots)
                    for c, bound in enumerate(cells):
                        cell = (0, p, c, layer, h, k)
                        data["cell_false_positives"][cell] = bound.fp_upper
                        data["cell_false_negatives"][cell] = bound.fn_upper

    def dataset(self, template: xr.Dataset) -> xr.Dataset:
        """Return the counts of the window as a dataset with one window."""
        return xr.Dataset(
            {name: (template[name].dims, array) for name, array in self.data.items()}
        )


def _empty(
    spec: ScanSpec, shape: tuple[int, int], windows: int
) -> dict[str, np.ndarray]:
    n, p, r, c = (
        len(spec.usable_n),
        len(SINK_POLICIES),
        len(RANKINGS),
        len(spec.resolutions),
    )
    counts = (windows, r, p, *shape, n)
    cells = (windows, p, c, *shape, n)
    return {
        **{name: np.full(counts, MISSING, dtype=np.int32) for name in COUNTS},
        "cell_false_positives": np.full(cells, MISSING, dtype=np.int32),
        "cell_false_negatives": np.full(cells, MISSING, dtype=np.int32),
        "boundary_tie": np.zeros((windows, p, *shape, n), dtype=bool),
        "n_candidates": np.full((windows, p, *shape), MISSING, dtype=np.int32),
        "mass": np.full((windows, *shape), np.nan),
    }


def _template(spec: ScanSpec, shape: tuple[int, int]) -> xr.Dataset:
    heads = ("layer", "head")
    dims: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(COUNTS, ("window", "ranking", "sink_policy", *heads, "n")),
        "cell_false_positives": ("window", "sink_policy", "resolution", *heads, "n"),
        "cell_false_negatives": ("window", "sink_policy", "resolution", *heads, "n"),
        "boundary_tie": ("window", "sink_policy", *heads, "n"),
        "n_candidates": ("window", "sink_policy", *heads),
        "mass": ("window", *heads),
    }
    arrays = _empty(spec, shape, spec.windows)
    return xr.Dataset(
        {name: (dims[name], arrays[name]) for name in dims},
        coords={
            "window": np.arange(spec.windows),
            "layer": np.arange(shape[0]),
            "head": np.arange(shape[1]),
            "n": np.array(spec.usable_n),
            "resolution": np.array(spec.resolutions),
            "ranking": np.array(RANKINGS, dtype=object),
            "sink_policy": np.array(SINK_POLICIES, dtype=object),
        },
    )


def _provenance(
    model: Any,
    source: ModelSource,
    corpus: Corpus,
    spec: ScanSpec,
    windows: Sequence[Window],
    bos: int | None,
) -> dict[str, Any]:
    """Return all that identifies the scan, as JSON data; nothing that varies by run."""
    return {
        "format": "geobounds-scan-1",
        "model": source.name,
        "model_fingerprint": source.fingerprint,
        "model_type": str(model.config.model_type),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": model.device.type,
        "attention": "the model's own eager attention, batch 1",
        "corpus": corpus.name,
        "corpus_sha256": corpus.sha256,
        "bos": "none" if bos is None else f"token {bos} first in every window",
        "queries": "last",
        "spec": {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(spec).items()
        },
        "documents": [f"{window.document} @{window.start}" for window in windows],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "numpy")},
        },
    }
