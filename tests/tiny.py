"""Tiny random models of real architectures, and a word-level tokenizer for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

VOCABULARY = 96
_SHARED: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def _without(*names: str) -> dict[str, Any]:
    return {k: v for k, v in _SHARED.items() if k not in names}


CONFIGS: dict[str, Callable[[], Any]] = {
    "llama": lambda: LlamaConfig(**_SHARED),
    "mistral": lambda: MistralConfig(**_SHARED, sliding_window=6),
    "gemma2": lambda: Gemma2Config(
        **_SHARED, sliding_window=6, attn_logit_softcapping=2.0, query_pre_attn_scalar=8
    ),
    "qwen3": lambda: Qwen3Config(**_SHARED),
    "gpt2": lambda: GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=128,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "gpt_neox": lambda: GPTNeoXConfig(**_without("num_key_value_heads", "head_dim")),
    "gpt_oss": lambda: GptOssConfig(
        **_SHARED,
        sliding_window=6,
        num_local_experts=2,
        num_experts_per_tok=1,
        layer_types=["sliding_attention", "full_attention"],
    ),
}


def tiny_model(name: str, seed: int = 0) -> Any:
    """Return a random model whose attention is far from uniform, in evaluation mode."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(CONFIGS[name]())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12)
    return model.eval()


def tokens(length: int = 12, batch: int = 1) -> torch.Tensor:
    """Return fixed token ids with a BOS."""
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(3, VOCABULARY, (batch, length), generator=generator)
    ids[:, 0] = 1
    return ids


def save_tiny_model(folder: Path, name: str = "llama") -> Path:
    """Save a tiny model with a tokenizer that knows the words w3, w4, ..."""
    model = tiny_model(name)
    model.save_pretrained(folder)
    words = {"<unk>": 0, "<s>": 1, "</s>": 2}
    words |= {f"w{i}": i for i in range(3, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    return folder


def save_text(path: Path, words: int, seed: int = 0) -> Path:
    """Write a text of that many words."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCABULARY, (words,), generator=generator).tolist()
    path.write_text(" ".join(f"w{i}" for i in ids), encoding="utf-8")
    return path
