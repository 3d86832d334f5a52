"""Captured attention is the model's own, and whatever is not is refused."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from tiny import CONFIGS, tiny_model, tokens
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForCausalLM,
    BertConfig,
    BertModel,
    BloomConfig,
)

import geobounds as gb
from empirical import CaptureError, UnsupportedModelError, capture, heads

FAMILIES = sorted(CONFIGS)


def eager_attentions(model, ids, **options):
    """Run the model's own eager attention and return its weights by layer."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            output = model.base_model(
                ids, output_attentions=True, use_cache=False, **options
            )
    finally:
        model.set_attn_implementation(before)
    return output.attentions


def captured(model, ids, queries="all", check=True, **options):
    """Return what capture hands over, by layer."""
    found = {}
    with (
        torch.no_grad(),
        capture(
            model,
            lambda layer, *x: found.update({layer: x}),
            queries=queries,
            check=check,
        ),
    ):
        model(ids, **options)
    return found


def registry_names():
    return set(AttentionInterface._global_mapping), set(
        AttentionMaskInterface._global_mapping
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_weights_equal_eager_weights_bit_for_bit(family):
    """Every family, all queries; the model itself runs sdpa by default."""
    model, ids = tiny_model(family), tokens()

    found = captured(model, ids)

    expected = eager_attentions(model, ids)
    assert sorted(found) == list(range(len(expected)))
    for layer, attention in enumerate(expected):
        assert torch.equal(found[layer][0], attention)


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_measure_and_certify(family):
    """From a model to a certificate, for every head."""
    found = heads(tiny_model(family), tokens())

    assert len(found) == 2 * 4
    for head in found.values():
        certificate = gb.certify(head)
        assert gb.verify(certificate, head)


@pytest.mark.parametrize("family", ["mistral", "gemma2", "gpt_oss"])
def test_keys_outside_the_window_are_no_candidates(family):
    """A window of 6 hides the older keys in the sliding layer."""
    found = captured(tiny_model(family), tokens(12), queries="last")

    sizes = {layer: int(visible.sum()) for layer, (_, _, visible) in found.items()}
    assert 6 in sizes.values()


def test_learned_sink_logits_leave_rows_below_one():
    """gpt-oss gives part of each row's mass to a learned sink."""
    found = heads(tiny_model("gpt_oss"), tokens())

    assert all(head.mass[0] < 1 for head in found.values())


@pytest.mark.parametrize("queries", ["last", "all", 5, [0, 3, 11]])
def test_rows_asked_for_are_the_rows_of_the_full_map(queries):
    """Positions travel with the rows."""
    model, ids = tiny_model("llama"), tokens()
    whole = captured(model, ids)[1][0]

    head = heads(model, ids, [1], queries=queries)[1, 2]

    rows = head.query_positions.tolist()
    assert np.array_equal(head.weights, whole[0, 2][rows].numpy())
    assert np.array_equal(head.visible.sum(axis=1), np.array(rows) + 1)


def test_last_query_of_left_padded_prompts_is_unchanged():
    """Pad keys are no candidates and positions do not shift what is measured."""
    model, ids = tiny_model("llama"), tokens(8)
    plain = heads(model, ids)
    for pads in (1, 2):
        padded = torch.cat([torch.zeros((1, pads), dtype=torch.long), ids], dim=1)
        mask = (torch.arange(8 + pads) >= pads).long()[None]
        found = captured(model, padded, queries="last", attention_mask=mask)
        for (layer, h), head in plain.items():
            weights, values, visible = (x[0] for x in found[layer])
            split = gb.split_heads(weights, values, visible=visible, sink=pads)
            for n in (1, 2, 4):
                expected, m = gb.measure(head, n), gb.measure(split[h], n)
                assert m.counts == expected.counts
                assert np.array_equal(m.selected - pads, expected.selected)


def test_pad_rows_are_refused_and_the_others_used():
    """Two prompts of lengths 6 and 2, right-padded, in one batch."""
    model, ids = tiny_model("llama"), tokens(6, batch=2)
    mask = torch.tensor([[1] * 6, [1] * 2 + [0] * 4])
    found = captured(model, ids, attention_mask=mask)
    for weights, values, visible in found.values():
        head = gb.split_heads(weights[1], values[1], visible=visible[1])[0]
        assert not head.visible[:, 2:].any()
        assert np.isfinite(head.mass[:2]).all()


def test_encoder_without_causal_mask_is_captured():
    """BERT returns its heads' output itself: checked there."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=96,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
    )
    model = BertModel(config).eval()
    found = captured(model, tokens())
    assert all(bool(visible.all()) for _, _, visible in found.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_models_are_captured_and_recorded(dtype):
    """The check's allowance follows the type."""
    model = tiny_model("llama").to(dtype)
    found = heads(model, tokens())
    name = str(dtype).removeprefix("torch.")
    assert {head.dtype_name for head in found.values()} == {name}


# What the self-check is for: each fault is put into the model's own module.


def test_wrong_order_of_kv_heads_is_refused(monkeypatch):
    """A model that tiles KV heads where the library repeats them."""
    module = sys.modules["transformers.models.llama.modeling_llama"]
    model = tiny_model("llama")
    monkeypatch.setattr(module, "repeat_kv", lambda x, n: x.repeat(1, n, 1, 1))

    with pytest.raises(CaptureError, match="must equal what enters the output proj"):
        heads(model, tokens())


def test_dropped_softcap_is_refused(monkeypatch):
    """Capture without the softcap differs from the model's own run."""
    model = tiny_model("gemma2")
    real = sys.modules["transformers.models.gemma2.modeling_gemma2"]
    eager = real.eager_attention_forward

    def without_softcap(*args, **options):
        private = model.config._attn_implementation.startswith("geobounds")
        return eager(*args, **options | ({"softcap": None} if private else {}))

    monkeypatch.setattr(real, "eager_attention_forward", without_softcap)
    with pytest.raises(CaptureError, match="same with and without capture"):
        heads(model, tokens())


def test_shifted_mask_is_refused(monkeypatch):
    """Visibility that is not the mask applied puts weight on hidden keys."""
    module = sys.modules["empirical.capture"]
    real = module._visible
    monkeypatch.setattr(module, "_visible", lambda *args: real(*args).roll(1, dims=-1))
    with pytest.raises(CaptureError, match="must be 0 on keys that the mask hides"):
        heads(tiny_model("llama"), tokens(), queries="all")


def test_mask_lost_in_the_registry_is_refused(monkeypatch):
    """Without a mask function causality is silently lost: capture must notice."""
    module = sys.modules["empirical.capture"]
    monkeypatch.setattr(module, "eager_mask", lambda *_args, **_options: None)
    with pytest.raises(CaptureError, match="must receive a mask, got None"):
        heads(tiny_model("llama"), tokens())


def test_mask_shifted_in_the_registry_is_refused(monkeypatch):
    """A mask that lets queries see one key more changes the output."""
    module = sys.modules["empirical.capture"]
    real = module.eager_mask

    def shifted(*args, **options):
        mask = real(*args, **options)
        return torch.cat([mask[..., 1:, :], mask[..., -1:, :]], dim=-2)

    monkeypatch.setattr(module, "eager_mask", shifted)
    with pytest.raises(CaptureError, match="same with and without capture"):
        heads(tiny_model("llama"), tokens())


def test_output_gate_is_refused():
    """A gate between the heads and the projection: their sum is not its input."""
    model = tiny_model("llama")
    projection = model.model.layers[1].self_attn.o_proj
    projection.register_forward_pre_hook(lambda _m, args: (args[0] * 0.5,))

    with pytest.raises(CaptureError, match="layer 1 the weighted values"):
        heads(model, tokens())


def test_weights_withheld_by_a_backend_are_an_error(monkeypatch):
    """An attention function that returns None for its weights."""
    module = sys.modules["transformers.models.llama.modeling_llama"]
    eager = module.eager_attention_forward
    monkeypatch.setattr(
        module, "eager_attention_forward", lambda *a, **k: (eager(*a, **k)[0], None)
    )
    with pytest.raises(CaptureError, match="must return its attention weights"):
        heads(tiny_model("llama"), tokens())


def test_too_much_mass_is_refused(monkeypatch):
    """Rows that sum beyond rounding are no attention weights."""
    module = sys.modules["transformers.models.llama.modeling_llama"]
    eager = module.eager_attention_forward

    def doubled(*args, **options):
        output, weights = eager(*args, **options)
        return 2 * output, 2 * weights

    monkeypatch.setattr(module, "eager_attention_forward", doubled)
    with pytest.raises(CaptureError, match="must sum to at most"):
        heads(tiny_model("llama"), tokens())


def test_model_outside_the_registry_is_refused_by_name():
    """Bloom runs its own attention."""
    config = BloomConfig(vocab_size=96, hidden_size=32, n_layer=1, n_head=4)
    model = AutoModelForCausalLM.from_config(config).eval()
    with pytest.raises(UnsupportedModelError, match="BloomForCausalLM must run"):
        heads(model, tokens())


def test_training_mode_is_refused():
    """Dropout would make the weights random."""
    with pytest.raises(CaptureError, match="evaluation mode"):
        heads(tiny_model("llama").train(), tokens())


@pytest.mark.parametrize("queries", ["first", 0, [], [99], True])
def test_queries_out_of_range_are_refused(queries):
    """The message names the argument."""
    with pytest.raises(CaptureError, match="queries must be"):
        captured(tiny_model("llama"), tokens(), queries=queries)


def test_batch_of_prompts_is_refused_by_heads():
    """heads is for one prompt."""
    with pytest.raises(CaptureError, match="ids must have shape"):
        heads(tiny_model("llama"), tokens(batch=2))


# A capture leaves no trace.


def state(model):
    """Everything a capture touches."""
    hooks = sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()
    )
    return registry_names(), model.config._attn_implementation, hooks


@pytest.mark.parametrize("fault", [None, RuntimeError, KeyboardInterrupt])
def test_capture_leaves_no_trace(fault):
    """Also after an exception in the middle of a forward."""
    outcome = pytest.raises(fault) if fault else nullcontext()
    model, ids = tiny_model("llama"), tokens()
    before = state(model)
    with torch.no_grad():
        expected = model(ids).logits

    def receive(layer, *_tensors):
        if fault is not None and layer == 1:
            raise fault

    with outcome, torch.no_grad(), capture(model, receive):
        model(ids)

    assert state(model) == before
    with torch.no_grad():
        assert torch.equal(model(ids).logits, expected)


def test_capture_goes_on_after_an_exception_inside_the_block():
    """A failed forward does not spoil the next one."""
    model, ids = tiny_model("llama"), tokens()
    layers = []

    def receive(layer, *_tensors):
        layers.append(layer)
        if len(layers) == 1:
            raise RuntimeError

    with torch.no_grad(), capture(model, receive):
        with pytest.raises(RuntimeError):
            model.base_model(ids)
        model.base_model(ids)
    assert layers == [0, 0, 1]


def test_captures_of_two_models_do_not_disturb_each_other():
    """One inside the other, and the second model runs as before."""
    one, two, ids = tiny_model("llama"), tiny_model("llama", seed=1), tokens()
    alone = {k: h.weights for k, h in heads(one, ids).items()}
    with torch.no_grad():
        expected = two(ids).logits
    seen = []
    with torch.no_grad(), capture(one, lambda layer, *_: seen.append(layer)):
        assert torch.equal(two(ids).logits, expected)
        assert seen == []
        nested = heads(two, ids)
        again = heads(one, ids)
        one(ids)
    assert len(nested) == 8
    assert seen == [0, 1]
    assert all(np.array_equal(again[k].weights, w) for k, w in alone.items())


def test_check_runs_the_model_once_more_in_the_first_forward_only():
    """Later forwards of one capture cost one run each."""
    model, ids = tiny_model("llama"), tokens()
    runs = []
    model.model.layers[0].register_forward_hook(lambda *_: runs.append(1))
    with torch.no_grad(), capture(model, lambda *_: None):
        model(ids)
        assert len(runs) == 2
        model(ids)
    assert len(runs) == 3


# Memory, packed weights, batches.


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_rows_are_bit_equal_to_the_whole(family):
    """The check compares the output with a run in one piece."""
    model, ids = tiny_model(family), tokens(128)
    rows = [0, 63, 64, 127]
    whole = captured(model, ids, queries=rows)
    blocks = {}
    with (
        torch.no_grad(),
        capture(
            model, lambda layer, *x: blocks.update({layer: x}), queries=rows, block=64
        ),
    ):
        model(ids)
    for layer, tensors in whole.items():
        assert all(map(torch.equal, tensors, blocks[layer]))


def test_blocks_too_small_are_refused():
    """Single rows would not be bit-equal."""
    with (
        pytest.raises(CaptureError, match="block must be at least 64"),
        capture(tiny_model("llama"), lambda *_: None, block=1),
    ):
        pass


PEAK = """
import resource, sys, torch
from transformers import AutoModel, LlamaConfig
from empirical import capture
n = int(sys.argv[1])
config = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=64,
    num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=2, head_dim=4,
    max_position_embeddings=8192)
model = AutoModel.from_config(config).eval()
ids = torch.full((1, n), 5)
seen = []
receive = lambda layer, w, v, s: seen.append(tuple(w.shape))
with torch.no_grad(), capture(model, receive, block=128, check=False):
    model(ids[:, :64], use_cache=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model(ids, use_cache=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_last_query_work_takes_a_fraction_of_one_layer_of_maps():
    """4096 tokens, 32 heads: the maps of one layer alone would take 2 GiB.

    The model's own mask, one n x n array for all heads, is not in our hands.
    """
    command = [sys.executable, "-c", PEAK, "4096"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)

    assert 1024 * int(run.stdout) < 32 * 4096**2 * 4 / 4


class PackedLinear(torch.nn.Module):
    """A projection whose weights are stored packed, two numbers a byte."""

    def __init__(self, linear):
        super().__init__()
        weight = linear.weight.detach()
        self.scale = weight.abs().max() / 7
        codes = (weight / self.scale).round().to(torch.int8) + 8
        self.packed = codes[:, ::2] * 16 + codes[:, 1::2]

    def forward(self, x):
        codes = self.packed.to(torch.int16) & 255
        weight = torch.stack([codes // 16, codes % 16], dim=-1).flatten(1) - 8
        return x @ (weight * self.scale).T.to(x.dtype)


def test_packed_weights_of_odd_shape_do_not_matter():
    """Capture works from activations, never from the shape of a weight."""
    model = tiny_model("llama")
    for layer in model.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            linear = getattr(layer.self_attn, name)
            setattr(layer.self_attn, name, PackedLinear(linear))
    found = heads(model, tokens())
    assert len(found) == 8
    assert all(gb.verify(gb.certify(head), head) for head in found.values())


def test_one_prompt_in_a_batch_of_three_is_captured_with_its_own_rows():
    """Each element of a batch has weights, values and visibility of its own."""
    model, ids = tiny_model("llama"), tokens(batch=3)
    together = captured(model, ids)
    for b in range(3):
        alone = captured(model, ids[b : b + 1])
        for layer, (_, _, visible) in alone.items():
            weights, values, seen = (x[b] for x in together[layer])
            assert torch.equal(seen, visible[0])
            split = gb.split_heads(weights, values, visible=seen)
            assert len(split) == 4
