"""Models by name: found, prepared once, refused in one line."""

import json

import pytest
import torch
from tiny import save_tiny_model

from empirical import ModelNotFoundError, load
from empirical import models as module
from empirical.models import PACKAGED, PackagedModel, bos_id, resolve


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
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
