"""One head of one model at one prompt, captured by hand and ready to be saved."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from empirical.capture import heads
from empirical.errors import CaptureError, CorpusError
from empirical.models import bos_rule, load, resolve
from geobounds import ArgumentError, HeadData

__all__ = ["capture_head", "read_text"]


def capture_head(
    model: str,
    text: str,
    *,
    layer: int,
    head: int,
    queries: str = "last",
    device: str = "cpu",
    dtype: str = "float32",
    revision: str | None = None,
    bos: str = "auto",
    trust_remote_code: bool = False,
    log: Callable[[str], None] | None = None,
) -> HeadData:
    """Run a model on a text and return one of its heads, checked as it was captured.

    Parameters
    ----------
    model : str
        A packaged name, a folder, a .gguf file or a Hugging Face name.
    text : str
        The prompt. The tokenizer adds no special tokens; the model's BOS, if it has
        one, is placed first.
    layer, head : int
        Which head, counted from 0.
    queries : "last" or "all"
        The last query only, or every query of the text.
    device, dtype, revision, trust_remote_code, log
        As for ``load``.
    bos : "auto" or "none"
        What opens the text; see ``bos_rule``.

    Returns
    -------
    HeadData
        Its ``meta`` says model, fingerprint, layer, head, dtype, BOS and the SHA-256
        of the text, and holds the text of every key's token.

    Raises
    ------
    ArgumentError
        An empty or too long text, a layer, a head or a device that does not exist.
    ModelNotFoundError, UnsupportedModelError, CaptureError
        The model cannot be loaded, or its attention cannot be captured faithfully.
    """
    _check(text, layer, head, device)
    source = resolve(model, revision=revision, log=log)
    network, tokenizer = load(
        source, device=device, dtype=dtype, trust_remote_code=trust_remote_code
    )
    config = network.config.get_text_config()
    _check_range("layer", layer, int(config.num_hidden_layers), "layers")
    rule = bos_rule(network, tokenizer, bos)
    if rule.warning and log is not None:
        log(f"warning: {rule.warning}")
    ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    if not ids:
        msg = f"capture: the text must hold at least one token, got {text[:40]!r}."
        raise ArgumentError(msg)
    ids = [*([] if rule.token is None else [rule.token]), *ids]
    longest = getattr(config, "max_position_embeddings", None)
    if isinstance(longest, int) and len(ids) > longest:
        msg = (
            f"capture: the text must have at most {longest} tokens, the BOS included, "
            f"got {len(ids)}. This model has no more positions."
        )
        raise ArgumentError(msg)

    found = heads(network, ids, [layer], queries=queries)
    if not found:
        msg = f"capture: layer {layer} must be an attention layer, got none there."
        raise CaptureError(msg)
    _check_range("head", head, len(found), f"heads in layer {layer}")
    captured = found[layer, head]
    meta: dict[str, Any] = {
        "model": model,
        "fingerprint": source.fingerprint,
        "layer": layer,
        "head": head,
        "dtype": dtype,
        "bos": rule.text,
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "tokens": [tokenizer.decode([i]) for i in ids],
    }
    return captured.with_meta(meta)


def read_text(path: str | Path) -> str:
    """Return a UTF-8 text file as it is, line ends included.

    Raises
    ------
    CorpusError
        Not UTF-8 text.
    OSError
        No such file, or one that cannot be read.
    """
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"capture: {path} must be a UTF-8 text file ({error})."
        raise CorpusError(msg) from error


def _check(text: str, layer: int, head: int, device: str) -> None:
    """Refuse what needs no model to be refused."""
    if not text:
        msg = "capture: the text must hold at least one token, got ''."
        raise ArgumentError(msg)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = f"capture: the text must be Unicode text ({error})."
        raise ArgumentError(msg) from error
    for name, value in (("layer", layer), ("head", head)):
        if value < 0:
            msg = f"capture: {name} must be at least 0, got {name}={value}."
            raise ArgumentError(msg)
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        msg = (
            "capture: device must be one torch can use, "
            f"got device={device!r} ({reason})."
        )
        raise ArgumentError(msg) from error


def _check_range(name: str, value: int, count: int, what: str) -> None:
    if not value < count:
        msg = (
            f"capture: {name} must lie between 0 and {count - 1} ({count} {what}), "
            f"got {name}={value}."
        )
        raise ArgumentError(msg)
