"""Scans: exact counts, resumable after any kill, refused when they would mix."""

import json
import multiprocessing
import random
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import scan_children
import torch
import xarray as xr
from tiny import save_text, save_tiny_model

import geobounds as gb
from empirical import CorpusError, ScanError, heads
from empirical.corpora import cut_windows, load_corpus
from empirical.metrics import classes, enclosures, metrics, table_by_n, to_frame
from empirical.models import bos_id, load
from empirical.reduce import DISTANCES, RANKINGS, SCOPES, SINK_POLICIES
from empirical.scan import ScanSpec, estimate
from empirical.store import Store, read_scan
from geobounds.claims import REGIMES

COUNTS = ("false_positives", "false_negatives", "inversions")
SPEC = ScanSpec(windows=5, length=24, n_grid=(1, 2, 4, 8, 30), resolutions=(3, 5))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A tiny model and a text, by path, as a user would name them."""
    folder = tmp_path_factory.mktemp("inputs")
    model = save_tiny_model(folder / "model")
    text = save_text(folder / "text.txt", words=400)
    return str(model), str(text)


def run(inputs, store, spec=SPEC, **options):
    """Load by name and scan."""
    return scan_children.run(*inputs, store, spec, **options)


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """The scan that every disturbed one must equal."""
    return run(inputs, tmp_path_factory.mktemp("whole") / "scan.zarr")


def test_scan_equals_measure_and_certify_head_by_head(inputs, undisturbed):
    """Each stored count is what the library says of the captured head."""
    model, tokenizer = load(inputs[0])
    windows = cut_windows(
        load_corpus(inputs[1]), tokenizer, count=5, length=24, bos=1, seed=0
    )
    values = metrics(undisturbed)
    for (layer, h), head in heads(model, [windows[4].ids], queries="all").items():
        found = undisturbed.sel(window=4, layer=layer, head=h)
        for policy in SINK_POLICIES:
            for ranking in RANKINGS:
                for distance in DISTANCES:
                    at = found.sel(
                        sink_policy=policy, ranking=ranking, distance=distance
                    )
                    for n in (1, 2, 4, 8):
                        m = gb.measure(
                            head,
                            n,
                            ranking=ranking,
                            sink_policy=policy,
                            distance=distance,
                        )
                        for name in (
                            "false_positives",
                            "false_negatives",
                            "inversions",
                        ):
                            assert at[name].sel(n=n) == getattr(m, name)
                        assert at["boundary_tie"].sel(n=n) == m.boundary_tie
        for repeat in (0, 15):
            scores = gb.random_scores(24, [0, 4, layer, h, repeat])
            for distance in DISTANCES:
                at = found.sel(repeat=repeat, distance=distance)
                for n in (1, 2, 4, 8):
                    m = gb.measure(head, n, ranking=scores, distance=distance)
                    assert at["random_false_positives"].sel(n=n) == m.false_positives
                    assert at["random_false_negatives"].sel(n=n) == m.false_negatives
        counted = gb.classify(head)
        for name in ("current", "sink", "other"):
            assert found[f"class_{name}"].sel(prefix=24) == getattr(counted, name)
        sink = gb.find_sink(head)
        assert found["found_sink"] == sink
        last = head[-1]
        order = gb.rank(last).keys.tolist()
        assert found["sink_rank"].sel(ranking="weight") == order.index(0)
        moved = gb.HeadData(last.weights, last.values, visible=last.visible, sink=sink)
        for n in (1, 2, 4, 8):
            m = gb.measure(moved, n, sink_policy="drop")
            assert found["found_false_positives"].sel(n=n) == m.false_positives
            assert found["found_false_negatives"].sel(n=n) == m.false_negatives
            plain = found.sel(removal="none", certified_policy="keep", n=n)
            m = gb.measure(head, n)
            assert plain["removed_false_positives"] == m.false_positives
            assert plain["removed_false_negatives"] == m.false_negatives
        geometry = gb.sink_geometry(head, sink=sink)
        assert found["found_cosine"] == geometry.mean_cosine
        bounds = values.sel(window=4, layer=layer, head=h)
        for policy in ("keep", "drop"):
            for k in (3, 5):
                cells = gb.certify(head, (1, 2, 4, 8), resolution=k, sink_policy=policy)
                at = bounds["t6"].sel(certified_policy=policy, resolution=k)
                for n, claim in cells.items():
                    assert float(at.sel(n=n)) == float(claim.f_score)
            for scope, regime in zip(SCOPES, REGIMES[1:4], strict=True):
                claims = gb.certify(
                    head, (1, 2, 4, 8), regime=regime, sink_policy=policy
                )
                at = bounds["t4"].sel(certified_policy=policy, scope=scope)
                for n, claim in claims.items():
                    assert float(at.sel(n=n)) <= float(claim.f_score)


def test_bounds_lie_below_the_measurement_everywhere(undisturbed):
    """In every entry of the scan, and the finer cells never below the coarser."""
    values = metrics(undisturbed)
    f = values["f"].sel(distance="euclidean", ranking="weight", drop=True)
    f = f.sel(sink_policy=["keep", "drop"]).rename(sink_policy="certified_policy")
    assert bool((values["t2_separate"] <= values["t2_joint"]).all())
    for _, bound in enclosures(values).values():
        assert bool((bound <= f).all())
    assert bool(
        (values["t6"].sel(resolution=3) <= values["t6"].sel(resolution=5)).all()
    )


def test_frame_has_one_row_for_each_window_head_and_n(undisturbed):
    """With every measured F and every bound."""
    frame = to_frame(metrics(undisturbed))
    assert len(frame) == 5 * 2 * 4 * 4
    assert {"window", "layer", "head", "n"} <= set(frame.columns)
    assert (frame["t6_5_keep"] <= frame["f_euclidean_weight_keep"]).all()


def test_classes_are_those_of_the_summed_windows(undisturbed):
    """Counts are added over windows before the head is named."""
    found, shares = classes(undisturbed)
    assert found.shape == (2, 4)
    assert sum(shares.values()) == 1
    at = undisturbed.sel(layer=1, head=2)
    counts = [int(at[f"class_{x}"].sum()) for x in ("current", "sink", "other")]
    assert found[1, 2] == gb.HeadClass(*counts).name


def test_grid_beyond_the_window_is_left_out(undisturbed):
    """N = 30 of 24 tokens cannot be selected."""
    assert undisturbed["n"].values.tolist() == [1, 2, 4, 8]


def test_table_has_one_row_for_each_n(undisturbed):
    """Means are those of the entries."""
    values = metrics(undisturbed)
    rows = table_by_n(values)
    assert [row["n"] for row in rows] == [1, 2, 4, 8]
    f = values["f"].sel(distance="euclidean", ranking="weight", sink_policy="drop", n=4)
    assert rows[2]["drop"]["f"] == float(f.mean())
    assert rows[2]["drop"]["tightness"] <= 1


def test_provenance_names_what_was_run(inputs, undisturbed):
    """Enough to repeat the scan."""
    attrs = undisturbed.attrs
    assert attrs["model"] == inputs[0]
    assert attrs["model_fingerprint"].startswith("sha256:")
    assert attrs["corpus_sha256"] == load_corpus(inputs[1]).sha256
    assert attrs["bos"].startswith("token 1 first in every window")
    assert attrs["dtype"] == "float32"
    assert len(attrs["documents"]) == 5
    assert attrs["versions"]["torch"] == torch.__version__


def test_same_scan_run_again_reads_what_is_there(inputs, undisturbed, tmp_path):
    """No window is measured twice, and progress says so."""
    store = tmp_path / "scan.zarr"
    run(inputs, store)
    seen = []
    again = run(inputs, store, progress=lambda *x: seen.append(x))
    assert seen == [(5, 5)]
    assert xr.Dataset.identical(again, undisturbed)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "spec"),
        ({"windows": 4}, "documents, spec, window"),
        ({"resolutions": (3, 9)}, "resolution, spec"),
    ],
)
def test_another_scan_in_the_same_store_is_refused(inputs, tmp_path, change, named):
    """What differs is named, and the store is left as it was."""
    store = tmp_path / "scan.zarr"
    small = {"windows": 2, "length": 24, "n_grid": (2,), "resolutions": (3,)}
    before = run(inputs, store, ScanSpec(**small))
    with pytest.raises(ScanError, match=f"differs in {named}"):
        run(inputs, store, ScanSpec(**(small | change)))
    assert before.identical(read_scan(store))


def test_unfinished_scan_is_not_read_as_whole(inputs, tmp_path):
    """A window without its flag counts as absent."""
    store = tmp_path / "scan.zarr"

    class Stop(Exception):
        pass

    def stop(done, _total):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        run(inputs, store, progress=stop)
    with pytest.raises(ScanError, match="must be complete, got 3 windows unfinished"):
        read_scan(store)


def test_folder_that_is_no_scan_is_refused(inputs, tmp_path):
    """Whatever lies there is not touched."""
    (tmp_path / "scan.zarr").mkdir()
    (tmp_path / "scan.zarr" / "mine.txt").write_text("mine")
    with pytest.raises(ScanError, match="must be the store of a scan"):
        run(inputs, tmp_path / "scan.zarr")
    assert (tmp_path / "scan.zarr" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"half a chunk"])
def test_damaged_store_is_refused_in_one_line(inputs, tmp_path, content):
    """As a disk that filled up or a copy that broke off leaves it."""
    store = tmp_path / "scan.zarr"
    run(inputs, store, ScanSpec(windows=1, length=24, n_grid=(2,), resolutions=(3,)))
    chunk = next(p for p in (store / "inversions" / "c").rglob("*") if p.is_file())
    chunk.write_bytes(content)
    with pytest.raises(ScanError, match="must be the store of a scan"):
        read_scan(store)


def test_window_beyond_the_models_positions_is_refused(inputs, tmp_path):
    """The tiny model has 128."""
    text = save_text(tmp_path / "long.txt", words=300)
    spec = ScanSpec(windows=1, length=200)
    with pytest.raises(ScanError, match="length must be at most 128, the positions"):
        run((inputs[0], str(text)), tmp_path / "scan.zarr", spec)


def test_text_too_short_is_refused(inputs, tmp_path):
    """The message says how many windows the text holds."""
    short = save_text(tmp_path / "short.txt", words=60)
    with pytest.raises(
        CorpusError, match=r"must hold 5 windows of 24 tokens, got 2 .* has 60"
    ):
        run((inputs[0], str(short)), tmp_path / "scan.zarr")
    assert not (tmp_path / "scan.zarr").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": 0}, "windows must be at least 1"),
        ({"length": 3}, "length must be at least 4"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"n_grid": (600,)}, "n_grid must hold a number between 1 and 510"),
        ({"n_grid": (2, 2)}, "n_grid must hold different numbers"),
        ({"resolutions": (2, 3)}, "resolutions must be at least 3"),
        ({"resolutions": ()}, "resolutions must be at least 3"),
        ({"random_rankings": 0}, "random_rankings must be at least 1"),
    ],
)
def test_spec_out_of_range_is_refused(options, message):
    """One line, naming the argument."""
    with pytest.raises(ScanError, match=message):
        ScanSpec(**options)


def test_estimate_names_heads_time_and_disk(inputs):
    """Before a long run."""
    text = estimate(load(inputs[0])[0], ScanSpec(windows=100))
    assert re.fullmatch(
        r"100 windows of 512 tokens, 8 heads: about \d+ s and at most \d+ MiB on disk",
        text,
    )


def test_run_without_bos_is_recorded_with_a_warning(inputs, tmp_path):
    """On request, for a model that expects one."""
    spec = ScanSpec(windows=1, length=24, n_grid=(2,), resolutions=(3,), bos="none")
    attrs = run(inputs, tmp_path / "scan.zarr", spec).attrs
    assert attrs["bos"].startswith("none: left out on request")
    assert "expects a BOS token (id 1)" in attrs["bos_warning"]


def test_model_without_bos_is_recorded(inputs):
    """No BOS: the window holds text only."""
    model, tokenizer = load(inputs[0])
    tokenizer.bos_token = None
    model.config.bos_token_id = None
    assert bos_id(model, tokenizer) is None
    (window,) = cut_windows(
        load_corpus(inputs[1]), tokenizer, count=1, length=9, bos=None
    )
    assert len(window.ids) == 9


# Killed at any moment. The children are forked from a server that has only imported
# what they need, so that none inherits a running thread and each starts at once.


@pytest.fixture(scope="module")
def server():
    """A context whose children start quickly."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["scan_children"])
    with pytest.MonkeyPatch.context() as patch:
        # The server imports what it preloads by the path it starts with.
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        first = context.Process(target=scan_children.nothing)
        first.start()
        first.join()
    return context


def start(server, target, inputs, store):
    process = server.Process(target=target, args=(*inputs, str(store), SPEC))
    process.start()
    return process


def test_kill_inside_the_first_write_loses_nothing(
    server, inputs, undisturbed, tmp_path
):
    """The half-written window is measured again."""
    store = tmp_path / "scan.zarr"
    killed = start(server, scan_children.run_killed_in_first_write, inputs, store)
    killed.join(120)
    assert killed.exitcode == -signal.SIGKILL
    assert list(store.rglob("*.partial"))
    assert not Store(store).open(_template_of(undisturbed)).any()

    again = run(inputs, store)

    assert again.identical(undisturbed)
    assert not list(store.rglob("*.partial"))


def test_twenty_kills_at_random_times_lose_nothing(
    server, inputs, undisturbed, tmp_path
):
    """Each child goes on where the last one died; the end result is identical."""
    times = random.Random(0)
    kills = finished = 0
    shortest = 60.0
    store = tmp_path / "scan.zarr"
    while kills < 20:
        fresh, began = not store.exists(), time.monotonic()
        process = start(server, scan_children.run, inputs, store)
        # The first child runs to its end and shows how long that takes.
        process.join(times.uniform(0.05, 1) * shortest if finished else 60)
        kills += process.exitcode is None
        process.kill()
        process.join()
        if store.exists() and bool(read_scan(store, whole=False)["done"].all()):
            assert read_scan(store).identical(undisturbed)
            if fresh:
                shortest = min(shortest, time.monotonic() - began)
            finished += 1
            store.rename(tmp_path / f"finished-{finished}.zarr")

    assert run(inputs, store).identical(undisturbed)


def _template_of(data):
    return data.drop_vars("done")


def test_attributes_are_json(undisturbed):
    """The store can be read without this library."""
    assert json.loads(json.dumps(undisturbed.attrs)) == undisturbed.attrs
    assert np.issubdtype(undisturbed["false_positives"].dtype, np.integer)
