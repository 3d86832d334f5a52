"""Inputs that a search has found, replayed; and a short search where atheris is."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"
CORPUS = sorted(path for path in (FUZZ / "corpus").rglob("*") if path.is_file())
NAMES = ("heads", "certificates", "command")
SECONDS = 3  # of each search


def load(name):
    """A module of the folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FUZZ / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HARNESSES = load("harness").HARNESSES


@pytest.mark.parametrize(
    "path", CORPUS, ids=[f"{path.parent.name}/{path.name}" for path in CORPUS]
)
def test_every_input_kept_gives_a_documented_outcome(path):
    HARNESSES[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_every_harness_has_inputs_to_start_from(name):
    assert sum(path.parent.name == name for path in CORPUS) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_a_harness_refuses_what_is_not_documented(name, monkeypatch):
    """Else a search would find nothing because it looks at nothing."""
    module = load("harness")

    def broken(*_, **__):
        raise KeyError(name)

    monkeypatch.setattr(module.gb.HeadData, "load", broken)
    monkeypatch.setattr(module.gb, "verify", broken)
    monkeypatch.setattr(module, "main", broken)
    seed = next(path for path in CORPUS if path.parent.name == name)

    with pytest.raises(KeyError, match=name):
        module.HARNESSES[name](seed.read_bytes())


def test_a_harness_notices_a_claim_that_is_too_high(monkeypatch):
    module = load("harness")
    accepted = module.gb.Verification(ok=True)
    monkeypatch.setattr(module.gb, "verify", lambda *_: accepted)
    text = (FUZZ / "corpus" / "certificates" / "cells.json").read_text("utf-8")
    false = text.replace('"precision": "2/3"', '"precision": "1"')
    assert false != text
    (signed,) = module._signed(false.encode())

    with pytest.raises(AssertionError, match="precision is too high"):
        module.certificates(signed)


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed (pip install 'geobounds[fuzz]'): kept inputs only",
)
@pytest.mark.parametrize("name", NAMES)
def test_a_short_search_finds_nothing(name, tmp_path):
    run = subprocess.run(
        [
            *(sys.executable, FUZZ / "run.py", name),
            *(f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/"),
        ],
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stderr[-3000:]
    assert "Done" in run.stderr
