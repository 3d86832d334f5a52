"""Scans of many queries: every count is what the library says of the captured head."""

import argparse

import numpy as np
import pytest
import torch
from tiny import save_text, save_tiny_model, tiny_model, tokens

import geobounds as gb
from empirical import capture, estimates, heads, load
from empirical.corpora import cut_windows, load_corpus
from empirical.errors import CaptureError, ScanError
from empirical.estimates import query_cost
from empirical.jobs import Job, run_report
from empirical.models import resolve
from empirical.queries import query_rows
from empirical.query_report import query_metrics
from empirical.scan import ScanSpec, _grid, estimate, scan
from geobounds.bounds import inversion_bounds
from geobounds.cli_parser import parser

NS = (1, 2, 4, 8)


@pytest.fixture(scope="module", params=["llama", "mistral"])
def scanned(request, tmp_path_factory):
    """A scan of all queries of two windows: full attention, sliding windows."""
    folder = tmp_path_factory.mktemp(request.param)
    model_path = save_tiny_model(folder / "model", request.param)
    text = save_text(folder / "text.txt", 200)
    source = resolve(str(model_path))
    model, tokenizer = load(source)
    spec = ScanSpec(2, 20, n_grid=(*NS, 30), queries="all", resolutions=(3, 5))
    corpus = load_corpus(str(text))
    found = scan(model, tokenizer, source, corpus, folder / "all.zarr", spec)
    windows = cut_windows(corpus, tokenizer, count=2, length=20, bos=1, seed=0)
    return model, tokenizer, source, corpus, windows, found


def test_every_count_is_that_of_the_captured_head(scanned):
    """All windows, layers, heads, queries, policies and N."""
    model, _, _, _, windows, found = scanned
    checked = 0
    for w, window in enumerate(windows):
        captured = heads(model, [window.ids], queries="all")
        for (layer, h), head in captured.items():
            at = found.sel(window=w, layer=layer, head=h)
            for q in range(20):
                for policy in ("keep", "drop"):
                    candidates = gb.rank(head, q, "weight", policy).n_candidates
                    here = at.sel(query=q, certified_policy=policy)
                    assert here["n_candidates"] == candidates
                    for n in NS:
                        mine = here.sel(n=n)
                        if n >= candidates:
                            assert mine["false_positives"] == -1
                            continue
                        m = gb.measure(head, n, query=q, sink_policy=policy)
                        assert mine["false_positives"] == m.false_positives
                        assert mine["false_negatives"] == m.false_negatives
                        assert mine["inversions"] == m.inversions
                        assert mine["boundary_tie"] == m.boundary_tie
                        checked += 1
    assert checked > 500


def test_bounds_lie_below_the_measurement(scanned):
    """T2 is geobounds' own; T6 never exceeds the measured F and says something."""
    found = scanned[-1]
    values = query_metrics(found)
    assert bool(
        (values["t2_joint"] <= values["f"]).where(values["f"].notnull(), True).all()
    )
    assert bool((values["t6"] <= values["f"]).where(values["f"].notnull(), True).all())
    assert float(values["t6"].mean()) > 0.5 * float(values["f"].mean())
    flat = found.stack(all=found["inversions"].dims)
    measured = values.stack(all=found["inversions"].dims)
    for i in range(0, flat.sizes["all"], 37):
        entry, value = flat.isel(all=i), measured.isel(all=i)
        n, g = int(entry["n"]), int(entry["inversions"])
        if g >= 0:
            bound = inversion_bounds(n, int(entry["n_candidates"]) - n, g)
            assert float(value["t2_joint"]) == float(bound.f_joint)
            exact = gb.separability.f_score(
                n, int(entry["false_positives"]), int(entry["false_negatives"])
            )
            assert float(value["f"]) == float(exact)


def test_fewer_queries_give_the_same_counts(scanned, tmp_path):
    """Every third query, the last alone, and without cells."""
    model, tokenizer, source, corpus, _, found = scanned
    for queries, rows in ((3, range(2, 20, 3)), ("last", [19])):
        spec = ScanSpec(2, 20, n_grid=NS, queries=queries, controls=False, cells=False)
        part = scan(model, tokenizer, source, corpus, tmp_path / f"{queries}", spec)
        assert part["query"].values.tolist() == list(rows)
        assert "cell_false_positives" not in part
        for name in ("false_positives", "inversions", "n_candidates"):
            assert np.array_equal(part[name], found[name].sel(query=list(rows)))


def test_a_killed_scan_goes_on(scanned, tmp_path):
    """Windows that are done are not run again; the result is the same."""
    model, tokenizer, source, corpus, _, found = scanned
    spec = ScanSpec(2, 20, n_grid=(*NS, 30), queries="all", resolutions=(3, 5))

    def stop(done, _total):
        if done == 1:
            raise KeyboardInterrupt

    where = tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        scan(model, tokenizer, source, corpus, where, spec, progress=stop)
    seen = []
    again = scan(
        model, tokenizer, source, corpus, where, spec,
        progress=lambda done, _: seen.append(done),
    )  # fmt: skip
    assert seen == [1, 2]
    assert again.identical(found)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "gpt_oss"])
def test_streamed_blocks_are_the_whole(name):
    """Block by block, a layer's maps are those of one piece, bit for bit."""
    model, ids = tiny_model(name), tokens(128)
    whole, blocks = {}, {}

    def keep(layer, weights, values, visible):
        whole[layer] = weights, values, visible

    def gather(layer, weights, values, visible, rows):
        blocks.setdefault(layer, []).append((weights, values, visible, list(rows)))

    rows = list(range(1, 128, 2))
    with torch.no_grad():
        with capture(model, keep, queries=rows):
            model.base_model(input_ids=ids)
        with capture(model, gather, queries=rows, block=64, stream=True):
            model.base_model(input_ids=ids)
    assert whole.keys() == blocks.keys()
    for layer, (weights, values, visible) in whole.items():
        parts = blocks[layer]
        assert [r for *_, some in parts for r in some] == rows
        assert len(parts) == 2
        assert torch.equal(torch.cat([p[0] for p in parts], dim=2), weights)
        assert torch.equal(torch.cat([p[2] for p in parts], dim=1), visible)
        assert all(torch.equal(p[1], values) for p in parts)


def test_a_streamed_layer_that_is_not_the_models_is_refused():
    """The projection is still compared, on rows of every block."""
    model, ids = tiny_model("llama"), tokens(128)
    module = model.model.layers[1].self_attn
    hook = module.o_proj.register_forward_pre_hook(lambda _, x: (x[0] * 1.01,))
    with (
        torch.no_grad(),
        pytest.raises(CaptureError, match="layer 1 the weighted values must equal"),
        capture(model, lambda *_: None, block=64, stream=True, check=False),
    ):
        model.base_model(input_ids=ids)
    hook.remove()


def test_queries_are_the_ends_of_equal_steps():
    assert query_rows("last", 10) == (9,)
    assert query_rows("all", 4) == (0, 1, 2, 3)
    assert query_rows(3, 10) == (2, 5, 8)


@pytest.mark.parametrize("queries", ["some", 0, 512, 2.5])
def test_other_queries_are_refused(queries):
    with pytest.raises(
        ScanError, match='scan: queries must be "last", "all" or a step'
    ):
        ScanSpec(queries=queries)


def test_the_command_line_names_the_queries():
    for text, expected in (("last", "last"), ("all", "all"), ("every=8", 8)):
        assert parser("0").parse_args(["scan", "--queries", text]).queries == expected
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parser("0").parse_args(["scan", "--queries", "every=0"])


def test_the_estimate_is_within_a_factor_of_the_run(scanned):
    """Disk exactly; the time of so short a run only in its order."""
    model, _, _, _, _, found = scanned
    spec = ScanSpec(2, 20, n_grid=(*NS, 30), queries="all", resolutions=(3, 5))
    cost = query_cost(model, _grid(model, spec), "all", 2)
    stored = sum(found[k].nbytes for k in found.data_vars if k != "done")
    assert cost.disk == stored
    assert 0 < cost.seconds < 60
    assert cost.memory > stored
    assert "2 windows of 20 tokens, 8 heads: about" in estimate(model, spec)


def test_a_time_is_carried_on_by_its_two_powers(scanned, monkeypatch):
    """From runs of a n + b n^2 seconds, that of any length."""
    spec = ScanSpec(3, 2000, n_grid=NS, queries="all")
    model = scanned[0]

    def run(_model, _grid, _queries, length):
        return 3 * length + 0.5 * length**2

    monkeypatch.setattr(estimates, "_run", run)
    cost = query_cost(model, _grid(model, spec), "all", 3)
    assert cost.seconds == pytest.approx(3 * (3 * 2000 + 0.5 * 2000**2))


def test_a_scan_beyond_memory_is_refused_with_the_number(scanned, monkeypatch):
    spec = ScanSpec(1, 20, n_grid=NS, queries="all")
    monkeypatch.setattr(estimates, "free_memory", lambda: 2**10)
    with pytest.raises(
        ScanError, match=r"scan: memory must hold 0\.\d GiB more, got 0.0"
    ):
        estimate(scanned[0], spec)


def test_free_memory_is_a_number():
    assert estimates.free_memory() > 2**20


def test_report_of_many_queries_is_one_page(scanned, tmp_path):
    """A table with every N, three figures, and the numbers as JSON."""
    _, _, source, _, _, _ = scanned
    text = save_text(tmp_path / "text.txt", 200)
    spec = ScanSpec(1, 20, n_grid=NS, queries="all")
    job = Job(models=(source.name,), corpus=str(text), spec=spec)
    found = run_report(job, tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert found["page"] == str(tmp_path / "report" / "index.html")
    assert page.count("<img ") == 3
    assert all(f"<td>{n}</td>" in page for n in NS)
    assert (tmp_path / "report" / "table.json").exists()
