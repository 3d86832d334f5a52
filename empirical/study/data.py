"""What a study knows of one model and text: its two scans, and their documents."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from empirical.errors import ScanError
from empirical.metrics import f_of_counts, metrics
from empirical.store import read_scan
from empirical.study.resample import FEWEST_DOCUMENTS, draws, ratio

__all__ = ["NO_CLASS", "StudyData", "load_study"]

NO_CLASS = -1  # code of a head without class; others are places in metrics.CLASSES


@dataclass(frozen=True, eq=False)
class StudyData:
    """Two scans of the same model and tokens, and what follows from their counts.

    Attributes
    ----------
    main : xarray.Dataset
        Scan with the BOS that the model expects.
    bare : xarray.Dataset
        Scan of the same tokens without it.
    name : str
        What the study is called.

    Raises
    ------
    ScanError
        The scans are not of the same model and tokens, or ``bare`` has a BOS.

    Notes
    -----
    Arrays returned have documents first: (documents, heads, n) or (documents, heads),
    where heads runs over layers, then heads of a layer. NaN is missing.
    """

    main: xr.Dataset
    bare: xr.Dataset
    name: str

    def __post_init__(self) -> None:
        """Refuse two scans that do not belong together."""
        for key in ("model_fingerprint", "corpus_sha256", "documents"):
            if self.main.attrs[key] != self.bare.attrs[key]:
                msg = (
                    f"StudyData: main and bare must have the same {key}, got "
                    f"{self.main.attrs[key]!r:.60} and {self.bare.attrs[key]!r:.60}. "
                    "Scan the same model and text for both."
                )
                raise ScanError(msg)
        if _has_bos(self.bare):
            msg = (
                "StudyData: bare must be a scan without BOS, got "
                f"bos={self.bare.attrs['bos']!r}. Scan with bos='none'."
            )
            raise ScanError(msg)

    @property
    def attrs(self) -> dict[str, Any]:
        """Provenance of the main scan."""
        return dict(self.main.attrs)

    @property
    def corpus(self) -> str:
        """Name of the text."""
        return str(self.main.attrs["corpus"])

    @property
    def has_bos(self) -> bool:
        """Whether the windows of ``main`` open with a BOS."""
        return _has_bos(self.main)

    @property
    def n_documents(self) -> int:
        """Number of windows, the units that are resampled."""
        return int(self.main.sizes["window"])

    @property
    def length(self) -> int:
        """Tokens of a window of ``main``."""
        return int(self.main["prefix"].max())

    @property
    def n(self) -> np.ndarray:
        """Numbers of selected tokens, by the main scan."""
        return self.main["n"].values

    @property
    def layers(self) -> np.ndarray:
        """Layer of every head."""
        return np.repeat(self.main["layer"].values, self.main.sizes["head"])

    @property
    def heads(self) -> np.ndarray:
        """Number within its layer of every head."""
        return np.tile(self.main["head"].values, self.main.sizes["layer"])

    @property
    def warning(self) -> str:
        """What limits every interval of this study, in words; may be empty."""
        parts = []
        if self.n_documents < FEWEST_DOCUMENTS:
            parts.append(
                f"Only {self.n_documents} documents: no verdict below "
                f"{FEWEST_DOCUMENTS}."
            )
        ids = {entry.rsplit(" @", 1)[0] for entry in self.main.attrs["documents"]}
        if len(ids) < self.n_documents:
            parts.append(
                "Windows are blocks of one text, taken for independent documents: "
                "intervals may be too short."
            )
        return " ".join(parts)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of the documents, one row a replicate, after a row of ones.

        Seeded by the scan's seed and the text, so that two texts are resampled
        independently and two models on one text alike.
        """
        text = int(str(self.main.attrs["corpus_sha256"])[:8], 16)
        seed = [int(self.main.attrs["spec"]["seed"]), text]
        return draws(self.n_documents, seed=seed)

    @cached_property
    def values(self) -> xr.Dataset:
        """F and bounds of ``main``; see ``metrics``."""
        return metrics(self.main)

    @cached_property
    def bare_values(self) -> xr.Dataset:
        """F and bounds of ``bare``."""
        return metrics(self.bare)

    def f(
        self,
        policy: str = "keep",
        ranking: str = "weight",
        distance: str = "euclidean",
        *,
        bare: bool = False,
    ) -> np.ndarray:
        """Return measured F at ``self.n``."""
        values = self.bare_values if bare else self.values
        return self.by_head(
            values["f"].sel(sink_policy=policy, ranking=ranking, distance=distance)
        )

    def precision_recall_f(self, policy: str) -> dict[str, np.ndarray]:
        """Return P, R and F (D7) of the weight ranking in Euclidean distance."""
        at = {"sink_policy": policy, "ranking": "weight", "distance": "euclidean"}
        counts = self.main[["false_positives", "false_negatives"]].sel(at)
        fp, fn = (self.by_head(x).astype(float) for x in counts.data_vars.values())
        fp[fp < 0], fn[fn < 0] = np.nan, np.nan
        return {
            "precision": self.n / (self.n + fp),
            "recall": (self.n - fn) / self.n,
            "f": self.f(policy),
        }

    def f_found(self, *, bare: bool = False) -> np.ndarray:
        """Return F with the sink that the weights show dropped."""
        x = self.bare if bare else self.main
        counts = x["found_false_positives"], x["found_false_negatives"]
        return self.by_head(f_of_counts(x["n"], *counts))

    @cached_property
    def _removed(self) -> xr.DataArray:
        x = self.main
        counts = x["removed_false_positives"], x["removed_false_negatives"]
        return f_of_counts(x["n"], *counts)

    def f_removed(self, removal: str, policy: str) -> np.ndarray:
        """Return F with causes of lost separability removed (a float estimate)."""
        found = self._removed.sel(removal=removal, certified_policy=policy)
        return self.by_head(found)

    @property
    def removals(self) -> list[str]:
        """Names of the removals."""
        return [str(x) for x in self.main["removal"].values]

    def numbers(self, name: str, *, bare: bool = False) -> np.ndarray:
        """Return a float array of the scan, one number a document and head."""
        return self.by_head((self.bare if bare else self.main)[name]).astype(float)

    def at_first(self, *, bare: bool = False) -> np.ndarray:
        """Return whether the greatest mean weight is on the first token, as 0 or 1."""
        return np.asarray(self.numbers("found_sink", bare=bare) == 0, dtype=float)

    @cached_property
    def norm_spread(self) -> np.ndarray:
        """Standard deviation over mean of the norms of the values, without the sink."""
        mean = self.numbers("norm_mean")
        return ratio(self.numbers("norm_sd"), mean)

    @cached_property
    def coherent(self) -> np.ndarray:
        """Whether all cosines of values, the sink's apart, are above 0: 0 or 1."""
        least = self.numbers("cosine_least")
        return np.where(np.isnan(least), np.nan, least > 0)

    @cached_property
    def sink_selected(self) -> np.ndarray:
        """Return whether the sink is among the N of greatest weight, under keep."""
        rank = self.by_head(self.main["sink_rank"].sel(ranking="weight"))[..., None]
        return (rank >= 0) & (rank < self.n)

    @cached_property
    def collapse(self) -> np.ndarray:
        """Return whether T5's condition holds: 1, 0, or -1 (sink not selected)."""
        return self.by_head(self.main["collapse"])

    def class_counts(
        self, prefix: int | None = None, *, bare: bool = False
    ) -> tuple[np.ndarray, ...]:
        """Return the counts of D10 (current, sink, other) by document and head."""
        scan = self.bare if bare else self.main
        prefix = int(scan["prefix"].max()) if prefix is None else prefix
        names = ("current", "sink", "other")
        return tuple(self.by_head(scan[f"class_{x}"].sel(prefix=prefix)) for x in names)

    def classes(self, prefix: int | None = None, *, bare: bool = False) -> np.ndarray:
        """Return the class of every head under each row of weights (D10).

        Returns
        -------
        ndarray of int8, shape (rows, heads)
            Places in ``metrics.CLASSES``; -1 where no query was measured. The first row
            is ``metrics.classes``: counts are added over documents before a head is
            named.
        """
        counted = self.class_counts(prefix, bare=bare)
        current, sink, other = (self.weights @ x for x in counted)
        codes = np.full(current.shape, 2, dtype=np.int8)
        codes[sink > np.maximum(current, other)] = 1
        codes[current > np.maximum(sink, other)] = 0
        codes[current + sink + other == 0] = NO_CLASS
        return codes

    @cached_property
    def head_classes(self) -> np.ndarray:
        """Classes by all queries of ``main``; see ``classes``."""
        return self.classes()

    def by_head(self, array: xr.DataArray) -> np.ndarray:
        """Return an array as (documents, heads) or (documents, heads, n)."""
        last = [x for x in ("n",) if x in array.dims]
        if last and not np.array_equal(array["n"], self.n):
            array = array.reindex(n=self.n)  # the shorter windows lack the largest N
        found = array.transpose("window", "layer", "head", *last).values
        return found.reshape(len(found), -1, *found.shape[3:])


def load_study(folder: str | Path) -> StudyData:
    """Read the two scans of a study from a folder: main.zarr and bare.zarr.

    Raises
    ------
    ScanError
        A scan is missing or unfinished, or the two do not belong together.
    """
    path = Path(folder)
    main, bare = (read_scan(path / f"{name}.zarr") for name in ("main", "bare"))
    return StudyData(main, bare, path.name)


def _has_bos(scan: xr.Dataset) -> bool:
    return not str(scan.attrs["bos"]).startswith("none")
