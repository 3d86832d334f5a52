"""Capture the attention of real models: the model's own weights, checked as they pass.

While a capture is open the model runs its own ``eager_attention_forward`` under a
private name in transformers' attention and mask registries, so nothing is computed a
second way. Two checks hold the result to things that capture did not compute: the
weighted values against what enters the output projection, in every layer, and the
final output against a run without capture.
"""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from empirical.checks import check_projection, check_rows, compare_outputs
from empirical.errors import CaptureError, UnsupportedModelError
from geobounds import HeadData, split_heads

__all__ = ["Receiver", "capture", "heads"]

_SAMPLED = 8  # rows of a streamed block that are checked
_LEAST_BLOCK = 64  # one-row blocks were not bit-equal to the whole

Receiver = Callable[..., None]  # (layer, weights, values, visible), and rows

# What the families of transformers call the output projection of an attention module.
_PROJECTIONS = ("o_proj", "out_proj", "c_proj", "dense", "wo", "out_lin", "proj")
_numbers = itertools.count()


@contextmanager
def capture(
    model: Any,
    receive: Receiver,
    *,
    queries: str | int | Sequence[int] = "last",
    check: bool = True,
    block: int | None = None,
    stream: bool = False,
) -> Iterator[None]:
    """Hand the attention of every layer to ``receive`` while the model runs.

    Parameters
    ----------
    model : PreTrainedModel
        A transformers model in evaluation mode. Run it, or its ``base_model``, inside
        the ``with`` block.
    receive : callable
        Called once a layer and forward as ``receive(layer, weights, values, visible)``
        with tensors of shapes (batch, n_heads, n_query, n_key), (batch, n_kv_heads,
        n_key, d_head) and (batch, n_query, n_key). Keep what you need: nothing is
        kept here.
    queries : "last", "all", int or sequence of int
        Which query rows to hand over; an int k means every k-th.
    check : bool
        Compare the first forward with a run of the same model without capture; they
        must be equal bit for bit. Costs that run. The check of the output projection
        is always made.
    block : int, optional
        Run attention on blocks of at least this many query rows, 64 or more, so that
        a layer's maps take memory of block times length, not length squared, a head.
        Such blocks were bit-equal to the whole on every model tried, and ``check``
        says if not; its plain run needs the whole of one layer. The model's own
        ``output_attentions`` is then not filled.
    stream : bool
        Hand over each block as soon as it is computed, so that a layer's maps never
        exist as a whole: ``receive(layer, weights, values, visible, rows)`` with the
        rows of this block. The output projection is checked after the layer's blocks
        were handed over, and it and the weights on some rows of each block; drop what
        you have if a CaptureError follows.

    Raises
    ------
    UnsupportedModelError
        The model does not run its attention through the registry.
    CaptureError
        A check fails, nothing was captured, or the model is in training mode.

    Notes
    -----
    The registries and the model's configuration are as before when the block ends,
    also after an exception. Captures nest, and other models are not affected.
    """
    name = f"geobounds_capture_{next(_numbers)}"
    session = _Session(model, receive, queries, name, block, stream=stream)
    configs = {
        id(m.config): m.config
        for m in model.modules()
        if hasattr(getattr(m, "config", None), "_attn_implementation_internal")
    }.values()
    before = [(config, config._attn_implementation_internal) for config in configs]

    def use(implementation: str) -> None:
        for config, _ in before:
            config._attn_implementation_internal = implementation

    runnable = {id(m): m for m in (model, model.base_model)}.values()
    hooks = []
    AttentionInterface.register(name, session.attention)
    AttentionMaskInterface.register(name, eager_mask)
    try:
        use(name)
        for module in runnable:
            hooks.append(module.register_forward_pre_hook(session.begin))
            hooks.append(
                module.register_forward_hook(
                    session.finish(
                        lambda: use("eager"), lambda: use(name), check=check
                    ),
                    with_kwargs=True,
                )
            )
        for module in model.modules():
            if "Attention" in type(module).__name__:
                hooks.append(module.register_forward_hook(session.attention_done))
        yield
    finally:
        for hook in hooks:
            hook.remove()
        session.close()
        for config, implementation in before:
            config._attn_implementation_internal = implementation
        AttentionInterface._global_mapping.pop(name, None)
        AttentionMaskInterface._global_mapping.pop(name, None)


def heads(
    model: Any,
    ids: Any,
    layers: Sequence[int] | None = None,
    *,
    queries: str | int | Sequence[int] = "last",
    check: bool = True,
) -> dict[tuple[int, int], HeadData]:
    """Run one prompt and return its heads as HeadData.

    Parameters
    ----------
    model : PreTrainedModel
        A transformers model in evaluation mode.
    ids : tensor of int, shape (1, n_token) or (n_token,)
        Token ids of one prompt.
    layers : sequence of int, optional
        Layers to keep; default all.
    queries, check
        As for ``capture``.

    Returns
    -------
    dict
        (layer, head) -> HeadData.
    """
    tokens = torch.as_tensor(ids).to(model.device)
    tokens = tokens[None] if tokens.ndim == 1 else tokens
    if tokens.ndim != 2 or tokens.shape[0] != 1:
        msg = (
            "heads: ids must have shape (1, n_token) or (n_token,), "
            f"got shape {tuple(tokens.shape)}."
        )
        raise CaptureError(msg)
    rows = list(_rows(queries, tokens.shape[1]))
    result: dict[tuple[int, int], HeadData] = {}

    def receive(
        layer: int, weights: torch.Tensor, values: torch.Tensor, visible: torch.Tensor
    ) -> None:
        if layers is None or layer in layers:
            split = split_heads(
                weights[0], values[0], visible=visible[0], query_positions=rows
            )
            result.update({(layer, h): head for h, head in enumerate(split)})

    with torch.no_grad(), capture(model, receive, queries=queries, check=check):
        model.base_model(input_ids=tokens, use_cache=False)
    return result


class _Session:
    """State of one capture: what runs, and the layers of the forward under way."""

    def __init__(
        self,
        model: Any,
        receive: Receiver,
        queries: Any,
        name: str,
        block: int | None,
        *,
        stream: bool,
    ) -> None:
        if block is not None and block < _LEAST_BLOCK:
            msg = f"capture: block must be at least {_LEAST_BLOCK}, got block={block}."
            raise CaptureError(msg)
        if model.training:
            msg = "capture: model must be in evaluation mode. Call model.eval() first."
            raise CaptureError(msg)
        if not any(_eager_of(module) for module in model.modules()):
            msg = (
                f"capture: {type(model).__name__} must run its attention through "
                "transformers' attention registry, and does not; its weights cannot "
                "be captured faithfully."
            )
            raise UnsupportedModelError(msg)
        self.model = model
        self.receive = receive
        self.queries = queries
        self.name = name
        self.block = block
        self.stream = stream
        self.outermost: Any = None
        self.checked = False
        self.layers: list[int] = []
        self.pending: dict[int, Any] = {}

    def attention(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        **options: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run the model's eager attention and note what it did."""
        eager = _eager_of(module)
        if eager is None:
            msg = f"capture: {type(module).__name__} has no eager attention to capture."
            raise UnsupportedModelError(msg)
        n_query = query.shape[2]
        rows = _rows(self.queries, n_query)
        layer = getattr(module, "layer_idx", None)
        layer = len(self.layers) if layer is None else int(layer)
        values = value.detach()
        found: list[tuple[torch.Tensor, torch.Tensor, Sequence[int]]] = []

        def use(weights: torch.Tensor, some: Sequence[int]) -> None:
            """Note the rows of one block, or hand them over and note a few."""
            shown = _visible(module, attention_mask, weights, n_query, some)
            if self.stream:
                step = max(1, len(some) // _SAMPLED)
                few = list(range(len(some)))[::-1][::step][::-1]
                sample = weights[:, :, few], shown[:, few]
                check_rows(layer, *sample)
                self.receive(layer, weights, values, shown, some)
                weights, shown, some = *sample, [some[i] for i in few]
            found.append((weights, shown, some))

        parts = (eager, module, query, key, value, attention_mask, options)
        output, whole = _run_blocks(parts, layer, rows, self.block, use)
        weights = _joined([w for w, _, _ in found], 2)
        visible = _joined([shown for _, shown, _ in found], 1)
        used = [r for _, _, some in found for r in some]
        pending = _Pending(self, layer, weights, values, visible, used)
        pending.await_projection(module)
        self.layers.append(layer)
        return output, whole

    def attention_done(self, module: Any, _args: Any, output: Any) -> None:
        """Hand over a layer whose attention module has no projection of its own."""
        pending = self.pending.get(id(module))
        if pending is not None and pending.hook is None:
            pending.hand_over(output[0] if isinstance(output, tuple) else output)

    def runs(self) -> bool:
        """Whether a forward under way is this capture's.

        Not so while it compares with the plain model, or inside a nested capture.
        """
        implementation: str = self.model.config._attn_implementation_internal
        return implementation == self.name

    def begin(self, module: Any, _args: Any) -> None:
        """Note the outermost module of a forward."""
        if not self.runs():
            return
        if self.outermost is None or module in (self.model, self.outermost):
            self.outermost = module
            self.layers.clear()
            self._drop_pending()

    def finish(
        self, plain: Callable[[], None], private: Callable[[], None], *, check: bool
    ) -> Callable[..., None]:
        """Return the hook that ends a forward."""

        def hook(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if not self.runs() or module is not self.outermost:
                return
            self.outermost = None
            if not self.layers or self.pending:
                missed = sorted(p.layer for p in self.pending.values())
                msg = (
                    "capture: every attention layer must reach its output projection, "
                    f"got {len(self.layers)} layers, unfinished: {missed}."
                )
                raise CaptureError(msg)
            if check and not self.checked:
                self.checked = True
                plain()
                try:
                    with torch.no_grad():
                        reference = module(*args, **kwargs)
                finally:
                    private()
                compare_outputs(output, reference)

        return hook

    def close(self) -> None:
        """Remove what an interrupted forward left behind."""
        self._drop_pending()

    def _drop_pending(self) -> None:
        for pending in list(self.pending.values()):
            pending.drop()


class _Pending:
    """One layer's attention, waiting to be compared at the output projection."""

    def __init__(
        self,
        session: _Session,
        layer: int,
        weights: torch.Tensor,
        values: torch.Tensor,
        visible: torch.Tensor,
        rows: list[int],
    ) -> None:
        self.session, self.layer, self.rows = session, layer, rows
        self.weights, self.values, self.visible = weights, values, visible
        self.hook: Any = None

    def await_projection(self, module: Any) -> None:
        """Hand over once the module's output projection is called.

        A module without one, as in BERT, returns the heads' output itself; the hook
        for that is set when the capture opens, since it must precede the call.
        """
        projection = next(
            (c for n, c in module.named_children() if n in _PROJECTIONS), None
        )
        if projection is not None:
            self.hook = projection.register_forward_pre_hook(self._at_projection)
        self.session.pending[id(module)] = self

    def _at_projection(self, _module: Any, args: Any) -> None:
        self.hand_over(args[0])

    def hand_over(self, head_outputs: torch.Tensor) -> None:
        """Check the layer against the heads' outputs and pass it on."""
        self.drop()
        if not self.session.stream:
            check_rows(self.layer, self.weights, self.visible)
        check_projection(
            self.layer, self.weights, self.values, self.visible, head_outputs, self.rows
        )
        if not self.session.stream:
            self.session.receive(self.layer, self.weights, self.values, self.visible)

    def drop(self) -> None:
        """Forget this layer."""
        if self.hook is not None:
            self.hook.remove()
        waiting = self.session.pending
        for key in [k for k, pending in waiting.items() if pending is self]:
            del waiting[key]


def _eager_of(module: Any) -> Callable[..., Any] | None:
    source = sys.modules.get(type(module).__module__)
    eager: Callable[..., Any] | None = getattr(source, "eager_attention_forward", None)
    return eager


def _rows(queries: Any, n_query: int) -> range | list[int]:
    if queries == "last":
        return range(n_query - 1, n_query)
    if queries == "all":
        return range(n_query)
    if isinstance(queries, int) and not isinstance(queries, bool) and queries >= 1:
        return range(0, n_query, queries)
    if not isinstance(queries, (str, int)):
        rows = [int(q) for q in queries]
        if rows and all(0 <= q < n_query for q in rows):
            return rows
    msg = (
        'capture: queries must be "last", "all", an int >= 1 or rows below '
        f"{n_query}, got queries={queries!r}."
    )
    raise CaptureError(msg)


def _run_blocks(
    parts: tuple[Any, ...],
    layer: int,
    rows: Sequence[int],
    block: int | None,
    use: Callable[[torch.Tensor, Sequence[int]], None],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Pass the weights of the rows wanted to ``use``; return output and all weights.

    All weights are returned only if there is one block.
    """
    eager, module, query, key, value, mask, options = parts
    n_query = query.shape[2]
    edges = [0, n_query]
    if block is not None and n_query >= 2 * block:
        edges = [*range(0, n_query - block + 1, block), n_query]  # the last is longest
    outputs: list[torch.Tensor] = []
    for start, stop in itertools.pairwise(edges):
        part = mask
        if mask is not None and mask.shape[-2] == n_query:
            part = mask[..., start:stop, :]
        output, weights = eager(
            module, query[:, :, start:stop], key, value, part, **options
        )
        if weights is None:
            msg = (
                f"capture: layer {layer} must return its attention weights, got None. "
                "This version of the model cannot be captured."
            )
            raise CaptureError(msg)
        outputs.append(output)
        some = [r for r in rows if start <= r < stop]
        if len(some) == stop - start:
            use(weights.detach(), some)
        elif some:
            use(weights.detach()[:, :, [r - start for r in some]], some)
        if len(edges) == 2:
            return output, weights
    return torch.cat(outputs, dim=1), None


def _joined(parts: list[torch.Tensor], dim: int) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)


def _span(rows: Sequence[int]) -> Any:
    """Return an index of rows; a slice, which copies nothing, if they are adjacent."""
    whole = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1
    adjacent = whole and all(b - a == 1 for a, b in itertools.pairwise(rows))
    return slice(rows[0], rows[-1] + 1) if adjacent else list(rows)


def _visible(
    module: Any,
    mask: torch.Tensor | None,
    weights: torch.Tensor,
    n_query: int,
    rows: Sequence[int],
) -> torch.Tensor:
    """Return which keys the mask shows, as bool of shape (batch, n_rows, n_key)."""
    batch, _, n_rows, n_key = weights.shape
    if mask is None:
        if n_query > 1 and getattr(module, "is_causal", True):
            msg = (
                "capture: a causal layer must receive a mask, got None; "
                "which keys are visible is not known."
            )
            raise CaptureError(msg)
        return torch.ones(batch, n_rows, n_key, dtype=torch.bool, device=weights.device)
    part = (
        mask[..., _span(rows), :n_key]
        if mask.shape[-2] == n_query
        else mask[..., :n_key]
    )
    shown = part if part.dtype == torch.bool else part > torch.finfo(part.dtype).min / 2
    first = shown[:, 0]
    if not torch.equal(shown, first[:, None].expand_as(shown)):
        msg = (
            "capture: all heads of a layer must see the same keys, got a mask by head."
        )
        raise CaptureError(msg)
    return first.expand(batch, n_rows, n_key)
