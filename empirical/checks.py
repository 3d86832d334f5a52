"""What captured attention is held to: things that capture did not compute itself."""

from typing import Any

import torch

from empirical.errors import CaptureError

__all__ = ["check_projection", "check_rows", "compare_outputs"]

_CHECKED_ROWS = 8


def check_rows(layer: int, weights: torch.Tensor, visible: torch.Tensor) -> None:
    """Refuse weight on hidden keys and rows that sum to too much.

    A row that sees no key (padding) has no meaning and is left to HeadData, which
    refuses that row alone.
    """
    shown = visible[:, None]
    used = shown.any(dim=-1, keepdim=True)
    hidden = weights.masked_fill(shown | ~used, 0)
    if bool((hidden != 0).any()):
        msg = (
            f"capture: weights of layer {layer} must be 0 on keys that the mask hides, "
            f"got {float(hidden.abs().max()):.3g}. The mask is not the one applied."
        )
        raise CaptureError(msg)
    mass = weights.double().sum(dim=-1, keepdim=True).masked_fill(~used, 0)
    eps32 = torch.finfo(torch.float32).eps
    most = 1 + 2 * torch.finfo(weights.dtype).eps + weights.shape[-1] * eps32
    if bool((mass > most).any()):
        msg = (
            f"capture: weights of layer {layer} must sum to at most {most:.9g}, "
            f"got {float(mass.max()):.9g}."
        )
        raise CaptureError(msg)


def check_projection(
    layer: int,
    weights: torch.Tensor,
    values: torch.Tensor,
    visible: torch.Tensor,
    head_outputs: torch.Tensor,
    rows: list[int],
) -> None:
    """Compare sum_i alpha_i v_i with what enters the output projection.

    The allowance is the rounding of that sum in the model's own type: n_key + 2
    roundings of the float32 accumulator and two of the stored type, on the sum of the
    absolute products.
    """
    step = max(1, len(rows) // _CHECKED_ROWS)
    some = list(range(len(rows)))[::-1][::step]
    n_heads, n_kv_heads = weights.shape[1], values.shape[1]
    if n_heads % n_kv_heads:
        msg = (
            f"capture: the KV heads of layer {layer} must divide its heads, "
            f"got {n_kv_heads} and {n_heads}."
        )
        raise CaptureError(msg)
    v = values.double().repeat_interleave(n_heads // n_kv_heads, dim=1)
    w = weights[:, :, some].double()
    expected = (w @ v).transpose(1, 2).flatten(2)
    bulk = (w @ v.abs()).transpose(1, 2).flatten(2)
    if head_outputs.shape[-1] != expected.shape[-1]:
        msg = (
            f"capture: the output projection of layer {layer} must receive the heads' "
            f"outputs ({expected.shape[-1]} wide), got {head_outputs.shape[-1]}."
        )
        raise CaptureError(msg)
    found = head_outputs.reshape(weights.shape[0], -1, expected.shape[-1])
    found = found[:, [rows[i] for i in some]].double()
    eps = (weights.shape[-1] + 2) * torch.finfo(torch.float32).eps
    eps += 2 * torch.finfo(head_outputs.dtype).eps
    used = visible[:, some].any(dim=-1, keepdim=True)
    excess = ((found - expected).abs() - eps * bulk).masked_fill(~used, 0)
    if not bool((excess <= 0).all()):
        msg = (
            f"capture: in layer {layer} the weighted values must equal what enters the "
            f"output projection, got a difference of {float(excess.max()):.3g} beyond "
            "rounding. The model's heads are not what was captured (KV order, gate)."
        )
        raise CaptureError(msg)


def compare_outputs(output: Any, reference: Any) -> None:
    """Refuse unless two outputs of the model are equal bit for bit."""
    found, expected = _main_tensor(output), _main_tensor(reference)
    same = found.shape == expected.shape and torch.allclose(
        found, expected, rtol=0, atol=0, equal_nan=True
    )
    if not same:
        msg = (
            "capture: the model's output must be the same with and without capture, "
            "got a difference. Attention under capture is not the model's own."
        )
        raise CaptureError(msg)


def _main_tensor(output: Any) -> torch.Tensor:
    for name in ("logits", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            tensor: torch.Tensor = getattr(output, name)
            return tensor
    first: torch.Tensor = output[0]
    return first
