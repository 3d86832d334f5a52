"""The command study: from names to pages, resumed, limited, repeated, refused."""

import html.parser
import json
import re
import shutil

import pandas as pd
import pytest
from tiny import save_text, save_tiny_model

from empirical.store import Store, read_scan
from empirical.study import figures, page, run
from empirical.study.data import load_study
from empirical.study.figures import ACROSS, FIGURES
from empirical.study.job import StudyJob
from empirical.study.page import verdict_counts
from empirical.study.tables import TABLES
from geobounds.cli import main

SIZES = ["--windows", "3", "--length", "12", "--n", "2,8"]
FOLDERS = ("model-a-txt", "model-b-txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a tiny model and two texts, one too short for all windows."""
    folder = tmp_path_factory.mktemp("names")
    save_tiny_model(folder / "model")
    save_text(folder / "a.txt", words=100)
    save_text(folder / "b.txt", words=2 * 11 + 1, seed=1)
    return folder


@pytest.fixture(scope="module")
def names(folder):
    """Options that name them."""
    texts = ["--corpus", str(folder / "a.txt"), "--corpus", str(folder / "b.txt")]
    return ["--model", str(folder / "model"), *texts, *SIZES]


@pytest.fixture(scope="module")
def study(names, tmp_path_factory):
    """A whole study of one model on two texts, with few figures."""
    out = tmp_path_factory.mktemp("out") / "study"
    with pytest.MonkeyPatch.context() as patch:
        draw_few(patch)
        assert main(["study", *names, "-o", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def whole(study, names, tmp_path_factory):
    """The first of them with all figures; its scans are there."""
    out = tmp_path_factory.mktemp("whole") / "study"
    shutil.copytree(study / FOLDERS[0], out / FOLDERS[0])
    assert main(["study", *names[:4], *SIZES, "-o", str(out)]) == 0
    return out


def draw_few(patch):
    """Draw one figure a page: they are slow, and most tests are about scans."""
    for name, kept in (("FIGURES", "found_sink"), ("ACROSS", "class_shares_across")):
        patch.setattr(page, name, {kept: getattr(figures, name)[kept]})


@pytest.fixture
def few(monkeypatch):
    """See ``draw_few``."""
    draw_few(monkeypatch)


@pytest.fixture
def scans_only(monkeypatch):
    """Leave tables and pages out."""
    monkeypatch.setattr(run, "_evaluate", lambda *_args: [])
    monkeypatch.setattr(run, "write_across", lambda *_args: "nowhere")


def stores(out):
    return {
        f"{name}/{scan}": read_scan(out / name / f"{scan}.zarr", whole=False)
        for name in FOLDERS
        for scan in ("main", "bare")
        if (out / name / f"{scan}.zarr").exists()
    }


# what one command makes


def test_every_figure_is_png_pdf_and_csv(study, whole):
    """With a page for each model and text, and one across."""
    tables = {p.stem for p in (whole / FOLDERS[0] / "tables").glob("*.csv")}
    assert tables == {*TABLES, "findings"}
    for folder, plots in ((whole / FOLDERS[0], FIGURES), (whole, ACROSS)):
        drawn = {p.name for p in (folder / "figures").iterdir()}
        assert drawn == {f"{x}.{end}" for x in plots for end in ("png", "pdf")}
    joined = pd.read_csv(study / "tables" / "class_shares.csv")
    assert set(joined["study"]) == set(FOLDERS)
    for path in whole.rglob("*.pdf"):
        data = path.read_bytes()
        assert data.startswith(b"%PDF")
        assert b"/Type3" not in data.replace(b" ", b"")  # letters stay letters


def test_captions_in_the_files_say_where_they_are_from(whole):
    """A figure that leaves the page takes its origin along."""
    for path in whole.rglob("*.png"):
        text = path.read_bytes().decode("latin-1")
        assert "How to read it" in text
        assert "seed 0" in text
        assert "of 12 tokens" in text


class Reader(html.parser.HTMLParser):
    """Collects what a page links and shows; fails on tags that do not close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.images, self.ids = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        if tag == "a":
            self.links.append(found["href"])
        if tag == "img":
            self.images.append(found)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "html":
            assert found["lang"] == "en"
        assert tag not in ("script", "link", "iframe")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_pages_are_self_contained(study, whole):
    """Images are inside, with words for who cannot see them; links stay within."""
    for path in (*study.rglob("index.html"), *whole.rglob("index.html")):
        read = Reader(path.read_text(encoding="utf-8"))
        assert len(set(read.ids)) == len(read.ids)
        for image in read.images:
            assert image["src"].startswith("data:image/png;base64,")
            assert image["alt"]
        for link in read.links:
            if link.startswith("#"):
                assert link[1:] in read.ids
            else:
                assert (path.parent / link).is_file(), link
    for folder, plots in ((whole / FOLDERS[0], FIGURES), (whole, ACROSS)):
        read = Reader((folder / "index.html").read_text(encoding="utf-8"))
        assert {x for x in read.ids if x in plots} == set(plots)
        assert len(read.images) == len(plots)


def test_pages_show_every_finding(study):
    """Effect, interval and verdict, as in findings.json and the matrix."""
    across = (study / "index.html").read_text(encoding="utf-8")
    for name in FOLDERS:
        records = json.loads((study / name / "findings.json").read_text("utf-8"))
        text = (study / name / "index.html").read_text(encoding="utf-8")
        assert len(records) >= 25
        assert {r["id"].partition("-")[0] for r in records} == {
            f"F{i}" for i in range(1, 9)
        }
        for record in records:
            assert f'id="finding-{record["id"]}"' in text
            assert f"<strong>{record['id']}</strong>" in across
            # A finding without a figure could not be looked at.
            assert record["figure"] in FIGURES
        table = pd.read_csv(study / name / "tables" / "findings.csv")
        counts = verdict_counts(table)
        assert sum(counts.values()) == len(records)
        assert f"{counts['supported']} findings are supported" in text


def test_short_texts_are_said(study):
    """The second text holds two windows; no verdict follows from so few."""
    text = (study / FOLDERS[1] / "index.html").read_text(encoding="utf-8")
    assert "b.txt holds 2 blocks of 12 tokens or more; 3 windows were asked" in text
    table = pd.read_csv(study / FOLDERS[1] / "tables" / "findings.csv")
    sampled = table[~table["id"].isin(["F5-sound", "F6-all"])]
    assert set(sampled["verdict"]) == {"undecided"}
    assert read_scan(study / FOLDERS[1] / "main.zarr").sizes["window"] == 2


def test_the_scan_without_bos_has_the_same_tokens(study):
    """One token less, from the same places of the text."""
    found = load_study(study / FOLDERS[0])
    assert found.main.attrs["spec"]["length"] == 12
    assert found.bare.attrs["spec"]["length"] == 11
    assert found.main.attrs["documents"] == found.bare.attrs["documents"]
    assert found.bare.attrs["bos"].startswith("none")
    assert found.main["resolution"].values.tolist() == [3, 5, 9, 17, 33]
    assert found.bare.sizes["repeat"] == 1


# again, repeated, limited, interrupted


def test_a_second_run_finds_all_done(study, names, few, capsys, monkeypatch):
    """No window is measured again, and it says what came out."""

    def measured(*_args):
        raise AssertionError

    monkeypatch.setattr(Store, "write", measured)
    assert main(["study", *names, "-o", str(study)]) == 0
    out, err = capsys.readouterr()
    assert f"page: {study / 'index.html'}" in out
    assert re.search(r"model-a-txt: \d+ supported, \d+ not supported, \d+ undec", out)
    assert "model-a-txt, main: window 3 of 3; study 40 % scanned\n" in err
    assert "s left" not in err  # nothing was left


def test_a_manifest_repeats_the_stores(study, scans_only, tmp_path):
    """From names alone, in another folder: identical."""
    manifest = study / "manifest.json"
    again = tmp_path / "again"
    assert main(["study", "--from", str(manifest), "-o", str(again)]) == 0
    first, second = stores(study), stores(again)
    assert len(first) == 4
    for name, scan in first.items():
        assert scan.identical(second[name]), name
    assert (again / "manifest.json").read_text("utf-8") == manifest.read_text("utf-8")
    data = json.loads(manifest.read_text("utf-8"))
    assert data["versions"]["geobounds"]
    assert [s["folder"] for s in data["studies"]] == list(FOLDERS)
    for entry in data["studies"]:
        scan = first[f"{entry['folder']}/main"]
        assert entry["model_fingerprint"] == scan.attrs["model_fingerprint"]
        assert entry["corpus_sha256"] == scan.attrs["corpus_sha256"]


def test_a_quick_look_is_the_start_of_the_whole(study, names, few, tmp_path, capsys):
    """Only the first windows are scanned; lifting the limit scans the rest."""
    one = [*names[:4], *SIZES]
    out = tmp_path / "quick"
    assert main(["study", *one, "-o", str(out), "--limit", "2"]) == 0
    looked = read_scan(out / FOLDERS[0] / "main.zarr", whole=False)
    assert looked["done"].values.tolist() == [True, True, False]
    text = (out / FOLDERS[0] / "index.html").read_text(encoding="utf-8")
    assert "Quick look: 2 of 3 windows, intervals mean little." in text
    assert "Quick look" in (out / "index.html").read_text(encoding="utf-8")
    assert "window 2 of 2" in capsys.readouterr().err
    assert main(["study", *one, "-o", str(out)]) == 0
    for name, scan in stores(out).items():
        assert scan.identical(read_scan(study / f"{name}.zarr"))
    text = (out / FOLDERS[0] / "index.html").read_text(encoding="utf-8")
    assert "Quick look" not in text
    # A limit on a whole study shows its first windows and scans nothing.
    assert main(["study", *one, "-o", str(out), "--limit", "1"]) == 0
    text = (out / FOLDERS[0] / "index.html").read_text(encoding="utf-8")
    assert "Quick look: 1 of 3 windows" in text


def test_an_interrupted_study_goes_on(
    study, names, scans_only, tmp_path, capsys, monkeypatch
):
    """Exit code 130; then the same stores as undisturbed, no window twice."""
    one = [*names[:4], *SIZES]
    out = tmp_path / "s"
    written = []
    write = Store.write

    def counted(self, index, window):
        if len(written) == 4:
            raise KeyboardInterrupt
        write(self, index, window)
        written.append((self.path.parent.name, self.path.name, index))

    monkeypatch.setattr(Store, "write", counted)
    assert main(["study", *one, "-o", str(out)]) == 130
    assert "interrupted" in capsys.readouterr().err
    written.append("interrupted")
    assert main(["study", *one, "-o", str(out)]) == 0
    assert len(set(written)) == len(written) == 2 * 3 + 1
    for name, scan in stores(out).items():
        assert scan.identical(read_scan(study / f"{name}.zarr"))


def test_a_page_is_whole_or_as_it_was(study, names, few, monkeypatch):
    """A fault while figures are drawn leaves the old page."""
    before = (study / FOLDERS[0] / "index.html").read_bytes()

    def full(*_args, **_options):
        raise OSError(28, "No space left on device", "x.png")

    monkeypatch.setattr(page, "save_both", full)
    assert main(["study", *names, "-o", str(study)]) == 2
    assert (study / FOLDERS[0] / "index.html").read_bytes() == before


def test_without_bos_there_is_one_scan(names, few, tmp_path, capsys):
    """And the page says why."""
    out = tmp_path / "s"
    options = [*names[:4], *SIZES, "--bos", "none", "--limit", "1"]
    assert main(["study", *options, "-o", str(out), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert not (out / FOLDERS[0] / "bare.zarr").exists()
    text = (out / FOLDERS[0] / "index.html").read_text(encoding="utf-8")
    assert "No BOS opens the windows" in text
    assert outcome["studies"][0]["folder"] == FOLDERS[0]
    assert sum(outcome["studies"][0]["verdicts"].values()) >= 25


def test_equal_names_get_folders_of_their_own():
    """Models of one name in two places, texts likewise."""
    taken = set()
    for _ in range(3):
        taken.add(run._folder_name("a/model", "x/t.txt", taken))
    assert taken == {"model-t-txt", "model-t-txt-2", "model-t-txt-3"}
    assert run._folder_name("org/Model.v1", "hf:a/b", set()) == "Model-v1-b"


# refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "./nowhere"], "models: ./nowhere must be a packaged name"),
        (["--corpus", "nowhere"], "corpora: corpus must be one of python-docs"),
        (["--windows", "0"], "scan: windows must be at least 1, got windows=0."),
        (["--limit", "0"], "study: limit must be at least 1, got limit=0."),
        (["--length", "4"], "study: length must be at least 5, got length=4."),
        (["--length", "99"], "must hold a window of 99 tokens, got none"),
        (["--n", "99"], "scan: n_grid must hold a number between 1 and 10"),
        (["--seed", "-1"], "scan: seed must be at least 0"),
        (["--device", "nothing"], "scan: device must be one torch can use"),
        (["-o", "/proc/nowhere"], "study: No such file or directory"),
        (["-o", "file"], "study: File exists: file."),
        (["--from", "m.json"], "study: --from must stand alone, with -o and --json"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    names, options, message, capsys, tmp_path, monkeypatch
):
    """No traceback, and nothing is scanned before every name is known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["study", *names, *options]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert err[-1].startswith("geobounds: ")
    assert message in err[-1]
    assert not any("Traceback" in line for line in err)
    assert list(tmp_path.rglob("*.zarr")) == []


def edited(study, **changes):
    data = json.loads((study / "manifest.json").read_text("utf-8"))
    data["options"] |= changes
    return data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "must be the manifest of a study (No such file or directory)."),
        ("{", "must be the manifest of a study, got no JSON"),
        ("[" * 100000, "must be the manifest of a study, got no JSON"),
        ("\xff", "must be the manifest of a study (not UTF-8)."),
        ("[]", "in format geobounds-study-1, got other JSON."),
        ('{"format": "x"}', "in format geobounds-study-1, got x."),
        ('{"format": "geobounds-study-1"}', "options of m.json must be bos, corpora,"),
    ],
)
def test_what_is_no_manifest_is_refused(text, message, tmp_path, capsys, monkeypatch):
    """One line says what it must be."""
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "m.json").write_bytes(text.encode("latin-1"))
    assert main(["study", "--from", "m.json"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windows": 8}, "windows of m.json must be a list that is not empty of int"),
        ({"windows": [True]}, "windows of m.json must be a list that is not empty"),
        ({"windows": [2, 3, 2]}, "one for each of the 2 texts, got 3 numbers."),
        ({"length": True}, "length of m.json has the wrong type, got True."),
        ({"trust_remote_code": 1}, "trust_remote_code of m.json has the wrong type"),
        ({"models": []}, "models of m.json must be a list that is not empty of str"),
        ({"models": "m"}, "models of m.json must be a list that is not empty of str"),
        ({"n_grid": [1.5]}, "n_grid of m.json must be a list that is not empty of int"),
        ({"dtype": "float8"}, "dtype must be one of float32, bfloat16, float16"),
        ({"bos": "maybe"}, "bos must be one of auto, none, got bos='maybe'."),
        ({"windows": [0]}, "windows must be at least 1"),
        ({"more": 0}, "options of m.json must be bos, corpora,"),
    ],
)
def test_an_edited_manifest_is_checked(
    study, changes, message, tmp_path, capsys, monkeypatch
):
    """A manifest is a file, and files are edited."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(json.dumps(edited(study, **changes)))
    assert main(["study", "--from", "m.json"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


def test_another_model_than_the_manifest_says_is_refused(
    study, tmp_path, capsys, monkeypatch
):
    """Before anything is scanned or written."""
    monkeypatch.chdir(tmp_path)
    data = edited(study)
    data["studies"][1]["corpus_sha256"] = "0" * 64
    (tmp_path / "m.json").write_text(json.dumps(data))
    assert main(["study", "--from", "m.json", "-o", "s"]) == 2
    err = capsys.readouterr().err
    assert "study: corpus_sha256 of model-b-txt must be 000" in err
    assert not (tmp_path / "s").exists()
    data["studies"] = [{"folder": "x"}]
    (tmp_path / "m.json").write_text(json.dumps(data))
    assert main(["study", "--from", "m.json", "-o", "s"]) == 2
    assert "studies of m.json must each have corpus_sha256" in capsys.readouterr().err


def test_other_versions_are_told(study, scans_only, tmp_path, capsys, monkeypatch):
    """Numbers may differ in the last place."""
    monkeypatch.setattr(run, "_scan_model", lambda *_args: [])
    data = edited(study)
    path = tmp_path / "m.json"
    for numpy, told in ((data["versions"]["numpy"], False), ("0", True)):
        data["versions"]["numpy"] = numpy
        path.write_text(json.dumps(data))
        assert main(["study", "--from", str(path), "-o", str(tmp_path / "s")]) == 0
        assert ("warning: versions differ" in capsys.readouterr().err) == told


def test_defaults_are_those_of_the_job():
    """Nothing given: the job's own defaults, whatever the parser holds."""
    from geobounds.cli_parser import parser

    plain = StudyJob.from_options(parser("x").parse_args(["study"]))
    assert plain == StudyJob()
    assert plain.windows == (16,)
    two = ["study", "--corpus", "a", "--corpus", "b", "--windows", "16,32"]
    job = StudyJob.from_options(parser("x").parse_args(two))
    assert job.windows_by_text == (16, 32)
    assert StudyJob(corpora=("a", "b"), windows=(4,)).windows_by_text == (4, 4)
    given = parser("x").parse_args(
        ["study", "--model", "a", "--model", "b", "--model", "a", "--seed", "3"]
    )
    assert StudyJob.from_options(given) == StudyJob(models=("a", "b"), seed=3)


def test_time_left_is_judged_by_this_run(capsys, monkeypatch):
    """What an earlier run did is told, but took no time."""
    from empirical import progress

    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.study_progress(100) as report:
        report("one", 50, 50)
        report("two", 60, 50)
        report("two", 100, 50)
    assert capsys.readouterr().err.splitlines() == [
        "one; study 50 % scanned",
        "two; study 60 % scanned, about 40 s left",
        "two; study 100 % scanned",
    ]


def test_progress_of_a_study_is_a_bar_on_a_terminal(capsys, monkeypatch):
    """Of what is left, with the time that takes."""
    from empirical import progress

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.study_progress(100) as report:
        report("one", 50, 50)
        report("two", 75, 50)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert "two" in text
    assert "50 % of what is left to scan" in text
