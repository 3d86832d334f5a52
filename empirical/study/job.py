"""What a study is asked to do, and the manifest that repeats it."""

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from empirical.errors import StudyError
from empirical.models import BOS_RULES, DTYPES
from empirical.scan import ScanSpec

__all__ = ["FORMAT", "StudyJob", "manifest", "read_manifest"]

FORMAT = "geobounds-study-1"
_KINDS: dict[str, type | tuple[type, ...]] = {
    "length": int,
    "seed": int,
    "limit": (int, type(None)),
    "field": str,
    "bos": str,
    "device": str,
    "dtype": str,
    "revision": (str, type(None)),
    "trust_remote_code": bool,
}


@dataclass(frozen=True)
class StudyJob:
    """A study by names, as the command line states it.

    Attributes
    ----------
    models, corpora : tuple of str
        Every model is studied on every text.
    windows : tuple of int
        Windows of each text, or as many as it holds: one number for all texts, or one
        for each.
    length : int
        Tokens of a window, its BOS included; the scan without BOS has one less.
    n_grid : tuple of int
        Numbers of selected tokens.
    limit : int or None
        For a quick look: only the first windows are scanned and shown.
    field, seed, bos, device, dtype, revision, trust_remote_code
        As for a scan.

    Raises
    ------
    StudyError, ScanError
        A number that leaves nothing to measure.
    """

    models: tuple[str, ...] = ("smollm2",)
    corpora: tuple[str, ...] = ("python-docs",)
    windows: tuple[int, ...] = (16,)
    length: int = 512
    n_grid: tuple[int, ...] = ScanSpec().n_grid
    limit: int | None = None
    field: str = "text"
    seed: int = 0
    bos: str = "auto"
    device: str = "cpu"
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Refuse what no scan could do."""
        if self.limit is not None and self.limit < 1:
            msg = f"study: limit must be at least 1, got limit={self.limit}."
            raise StudyError(msg)
        if self.length < 5:
            msg = (
                f"study: length must be at least 5, got length={self.length}. The "
                "windows without BOS have one token less."
            )
            raise StudyError(msg)
        for name, known in (("bos", BOS_RULES), ("dtype", tuple(DTYPES))):
            if getattr(self, name) not in known:
                msg = (
                    f"study: {name} must be one of {', '.join(known)}, "
                    f"got {name}={getattr(self, name)!r}."
                )
                raise StudyError(msg)
        if len(self.windows) not in (1, len(self.corpora)):
            msg = (
                "study: windows must be one number, or one for each of the "
                f"{len(self.corpora)} texts, got {len(self.windows)} numbers."
            )
            raise StudyError(msg)
        for windows in self.windows:
            # Refuses windows, N and seed, and an N beyond the shorter windows.
            self.main(windows)
            self.bare(windows)

    @property
    def windows_by_text(self) -> tuple[int, ...]:
        """Windows asked of each text."""
        several = len(self.windows) == len(self.corpora)
        return self.windows if several else self.windows * len(self.corpora)

    def main(self, windows: int) -> ScanSpec:
        """Return the scan with the BOS by the model's rule."""
        return ScanSpec(
            windows=windows,
            length=self.length,
            n_grid=self.n_grid,
            resolutions=(3, 5, 9, 17, 33),
            bos=self.bos,
            seed=self.seed,
        )

    def bare(self, windows: int) -> ScanSpec:
        """Return the scan of the same tokens without the BOS.

        What only ``main`` is asked for (random sets, finer cells) is left out.
        """
        return ScanSpec(
            windows=windows,
            length=self.length - 1,
            n_grid=self.n_grid,
            resolutions=(9,),
            random_rankings=1,
            bos="none",
            seed=self.seed,
        )

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> "StudyJob":
        """Build a job from parsed options; None stands for the default."""
        given: dict[str, Any] = {
            "models": options.model and tuple(dict.fromkeys(options.model)),
            "corpora": options.corpus and tuple(dict.fromkeys(options.corpus)),
            "n_grid": options.n,
        }
        rest = {f.name for f in fields(cls)} - set(given)
        given |= {name: getattr(options, name) for name in rest}
        return cls(**{k: v for k, v in given.items() if v is not None})


def manifest(job: StudyJob, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what repeats a study, as JSON data.

    Parameters
    ----------
    job : StudyJob
        What was asked, names as they were typed.
    pairs : sequence of dict
        What identifies each model and text, and its scans.
    """
    names = ("torch", "transformers", "numpy", "xarray", "zarr", "matplotlib")
    return {
        "format": FORMAT,
        "options": asdict(job),
        "studies": list(pairs),
        "versions": {
            "geobounds": _version("geobounds"),
            "python": platform.python_version(),
            **{name: _version(name) for name in names},
        },
    }


def read_manifest(path: Path) -> tuple[StudyJob, dict[str, Any]]:
    """Read a manifest; return its job and all it holds.

    Raises
    ------
    StudyError
        No such file, or not the manifest of a study.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        msg = f"study: {path} must be the manifest of a study ({reason})."
        raise StudyError(msg) from error
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"study: {path} must be the manifest of a study, got no JSON ({error})."
        raise StudyError(msg) from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT:
        msg = (
            f"study: {path} must be the manifest of a study in format {FORMAT}, "
            f"got {found if isinstance(found, str) else 'other JSON':.60}."
        )
        raise StudyError(msg)
    return _job(path, data), data


def _job(path: Path, data: dict[str, Any]) -> StudyJob:
    """Build the job of a manifest, whose options may have been edited by hand."""
    options = data.get("options")
    known = {f.name for f in fields(StudyJob)}
    if not isinstance(options, dict) or set(options) != known:
        msg = f"study: options of {path} must be {', '.join(sorted(known))}, no others."
        raise StudyError(msg)
    job = dict(options)
    members = {"models": str, "corpora": str, "windows": int, "n_grid": int}
    for name, member in members.items():
        job[name] = _tuple(path, name, options[name], member)
    for name, kind in _KINDS.items():
        value = options[name]
        if not isinstance(value, kind) or (isinstance(value, bool) != (kind is bool)):
            msg = f"study: {name} of {path} has the wrong type, got {value!r:.60}."
            raise StudyError(msg)
    studies = data.get("studies")
    needed = {"folder", "model_fingerprint", "corpus_sha256", "windows"}
    if not isinstance(studies, list) or not all(
        isinstance(x, dict) and needed <= set(x) for x in studies
    ):
        msg = f"study: studies of {path} must each have {', '.join(sorted(needed))}."
        raise StudyError(msg)
    return StudyJob(**job)


def _tuple(path: Path, name: str, value: Any, member: type) -> tuple[Any, ...]:
    ok = isinstance(value, list) and value and all(type(x) is member for x in value)
    if not ok:
        msg = f"study: {name} of {path} must be a list that is not empty of "
        msg += f"{member.__name__}, got {value!r:.60}."
        raise StudyError(msg)
    return tuple(value)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
