"""Models by name: packaged ones, local folders, GGUF files, Hugging Face names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
)

from empirical.errors import ModelNotFoundError, UnsupportedModelError
from empirical.packaged import PACKAGED, PackagedModel, prepare_gguf, quiet, sha256
from geobounds.errors import ArgumentError

__all__ = [
    "BOS_RULES",
    "PACKAGED",
    "BosRule",
    "ModelSource",
    "PackagedModel",
    "bos_id",
    "bos_rule",
    "load",
    "load_config",
    "resolve",
]

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
BOS_RULES = ("auto", "none")
_FILES = (".gguf", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".json")


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
        packaged = PACKAGED[name]
        paths = packaged.paths()
        if paths is None:
            msg = (
                f"models: {name} must be installed, got no package "
                f"{packaged.package}. Run: {packaged.install}"
            )
            raise ModelNotFoundError(msg)
        if paths[0].is_dir():
            return _folder(name, paths[0])
        return _gguf(name, *paths, expected=packaged.sha256, log=log)
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return _gguf(name, path, log=log)
    if path.is_dir():
        return _folder(name, path)
    if path.is_file():
        msg = (
            f"models: a model given as a file must be .gguf, got {name}. Name the "
            "folder of .safetensors weights; pickled .bin weights are never read."
        )
        raise ModelNotFoundError(msg)
    # Names of models hold dots too (Qwen2.5-0.5B): only these endings mean a file.
    if path.suffix in _FILES or name.startswith((".", "/", "~")):
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
    trust_remote_code: bool = False,
    log: Callable[[str], None] | None = None,
) -> tuple[Any, Any]:
    """Load a language model and its tokenizer, ready for capture.

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
    trust_remote_code : bool
        Run code that comes with the model. Without it such a model is refused.

    Returns
    -------
    model, tokenizer
        In evaluation mode, on ``device``. The model has a language model's head if its
        architecture has a causal one; else it is the bare network (an encoder).

    Raises
    ------
    ModelNotFoundError
        Nothing of that name can be loaded here, or not without running its code.
    UnsupportedModelError
        An encoder with a decoder that cannot be run alone.

    Notes
    -----
    Weights are read from .safetensors files only.
    """
    if dtype not in DTYPES:
        msg = f"models: dtype must be one of {', '.join(DTYPES)}, got dtype={dtype!r}."
        raise ModelNotFoundError(msg)
    if isinstance(name, ModelSource):
        source = name
    else:
        source = resolve(name, revision=revision, log=log)
    options = _options(source, trust_remote_code=trust_remote_code)
    with _refusing(source, trust_remote_code=trust_remote_code):
        config = AutoConfig.from_pretrained(source.location, **options)
        model = _auto_class(source.name, config).from_pretrained(
            source.location, dtype=DTYPES[dtype], use_safetensors=True, **options
        )
        tokenizer = AutoTokenizer.from_pretrained(source.location, **options)
    return model.to(device).eval(), tokenizer


def load_config(
    source: ModelSource, *, trust_remote_code: bool = False
) -> tuple[Any, Any]:
    """Load a model's configuration and tokenizer, not its weights.

    Parameters
    ----------
    source : ModelSource
        As returned by ``resolve``.
    trust_remote_code : bool
        See ``load``.

    Returns
    -------
    config, tokenizer
        What ``load`` reads first: enough to plan a run.

    Raises
    ------
    ModelNotFoundError
        As ``load``.
    """
    options = _options(source, trust_remote_code=trust_remote_code)
    with _refusing(source, trust_remote_code=trust_remote_code):
        config = AutoConfig.from_pretrained(source.location, **options)
        return config, AutoTokenizer.from_pretrained(source.location, **options)


def _options(source: ModelSource, *, trust_remote_code: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if source.revision:
        options["revision"] = source.revision
    return options


@contextmanager
def _refusing(source: ModelSource, *, trust_remote_code: bool) -> Iterator[None]:
    """Read quietly; say in one line what could not be read."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, ImportError) as error:
        if "trust_remote_code" in str(error) and not trust_remote_code:
            msg = (
                f"models: {source.name} must be a model of a known architecture, got "
                "one that runs code of its own. Pass trust_remote_code=True if you "
                "trust that code."
            )
            raise ModelNotFoundError(msg) from error
        first = " ".join(str(error).split())[:160]
        msg = (
            f"models: {source.name} must be a packaged name ({', '.join(PACKAGED)}), a "
            f"model folder, a .gguf file or a Hugging Face name within reach ({first})."
        )
        raise ModelNotFoundError(msg) from error


def _gguf(
    name: str,
    *pieces: Path,
    expected: str | None = None,
    log: Callable[[str], None] | None,
) -> ModelSource:
    folder, digest = prepare_gguf(name, *pieces, expected=expected, log=log)
    return ModelSource(name, str(folder), None, f"sha256:{digest}")


def _folder(name: str, path: Path) -> ModelSource:
    config, weights = path / "config.json", sorted(path.glob("*.safetensors"))
    if not weights or not config.is_file():
        msg = (
            f"models: folder {name} must hold config.json and .safetensors "
            "weights, got neither or one. Pickled .bin weights are never read."
        )
        raise ModelNotFoundError(msg)
    return ModelSource(name, str(path), None, f"sha256:{sha256(config, *weights)}")


def _auto_class(name: str, config: Any) -> Any:
    """Return the loader of the network that the checkpoint holds.

    BERT has a causal class too, so what the checkpoint names decides: a MiniLM read by
    that class would get a head of random weights.
    """
    if "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {}):
        return AutoModelForCausalLM
    two_parts = getattr(config, "is_encoder_decoder", False)
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        own = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].__name__
        causal = (own, "ForCausalLM", "LMHeadModel")
        named = config.architectures
        if two_parts or not named or any(n.endswith(causal) for n in named):
            return AutoModelForCausalLM
    elif two_parts:
        msg = (
            f"models: {name} must be a decoder or an encoder, got {config.model_type}, "
            "an encoder with a decoder that transformers cannot run alone."
        )
        raise UnsupportedModelError(msg)
    return AutoModel


@dataclass(frozen=True)
class BosRule:
    """What opens every window.

    Attributes
    ----------
    token : int or None
        Id of the token placed first, or None for no such token.
    text : str
        What was done, in words, for the record.
    warning : str or None
        Set if the model expects a BOS and gets none.
    """

    token: int | None
    text: str
    warning: str | None = None


def bos_rule(model: Any, tokenizer: Any, rule: str = "auto") -> BosRule:
    """Decide what opens every window.

    Parameters
    ----------
    model, tokenizer
        As returned by ``load``.
    rule : "auto" or "none"
        "auto" takes the tokenizer's BOS, else the model's, else the [CLS] of an
        encoder's tokenizer, whether or not the tokenizer would add it by itself.
        "none" leaves it out.

    Returns
    -------
    BosRule
        The token, and the rule in words.

    Raises
    ------
    ArgumentError
        No such rule.
    """
    if rule not in BOS_RULES:
        msg = (
            f"bos_rule: rule must be one of {', '.join(BOS_RULES)}, got rule={rule!r}."
        )
        raise ArgumentError(msg)
    token, whose = _expected_bos(model, tokenizer)
    if token is None:
        return BosRule(None, "none: neither the tokenizer nor the model names one")
    if rule == "none":
        warning = (
            f"{type(model).__name__} expects a BOS token (id {token}) and this run "
            "leaves it out"
        )
        return BosRule(None, f"none: left out on request ({whose} is {token})", warning)
    text = f"token {token} first in every window: {whose}"
    if token == getattr(tokenizer, "cls_token_id", None):
        closing = getattr(tokenizer, "sep_token_id", None)
        if closing is not None:
            text += f"; its closing {tokenizer.sep_token} ({closing}) is left out"
    return BosRule(token, text)


def bos_id(model: Any, tokenizer: Any) -> int | None:
    """Id of the token that opens a window under the rule "auto"."""
    return bos_rule(model, tokenizer).token


def _expected_bos(model: Any, tokenizer: Any) -> tuple[int | None, str]:
    """Return the token that opens a text, and whose it is."""
    config = model.config
    for token, whose in (
        (getattr(tokenizer, "bos_token_id", None), "the tokenizer's BOS"),
        (getattr(config, "bos_token_id", None), "the model's BOS"),
        (getattr(config.get_text_config(), "bos_token_id", None), "the model's BOS"),
        (getattr(tokenizer, "cls_token_id", None), "the encoder's"),
    ):
        if isinstance(token, int):
            return token, f"{whose} {tokenizer.convert_ids_to_tokens(token)}"
    return None, ""
