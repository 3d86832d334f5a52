"""The commands certify and verify, help, version and exit codes."""

import io
import json
import runpy
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest

import geobounds as gb
from geobounds import cli
from geobounds.cli import main

COMMANDS = ("report", "scan", "certify", "verify", "models")
HEAD = gb.HeadData(
    [[0.25, 0.375, 0.0, 0.0], [0.25, 0.375, 0.125, 0.25]],
    [[2.0, 0.0], [0.0, 4.0], [-4.0, 1.0], [0.0, 2.0]],
    visible="causal",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a head, another head and a certificate."""
    monkeypatch.chdir(tmp_path)
    HEAD.save("h.npz")
    HEAD.save("h.safetensors")
    gb.HeadData(HEAD.weights, HEAD.values * 2, visible="causal").save("other.npz")
    gb.certify(HEAD).save("c.json")
    return tmp_path


# certify


def test_certify_prints_the_table_of_the_last_query(folder, capsys):
    assert main(["certify", "h.npz"]) == 0
    out, err = capsys.readouterr()

    assert out == f"{gb.certify(HEAD)}\n"
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--n", "3,1"], {"n": [3, 1]}),
        (["--query", "0", "--n", "1"], {"query": 0, "n": 1}),
        (["--regime", "inversions"], {"regime": "inversions"}),
        (["--resolution", "4"], {"resolution": 4}),
        (["--ranking", "contribution"], {"ranking": "contribution"}),
        (["--sink-policy", "drop"], {"sink_policy": "drop"}),
        (["--sink-policy", "compete"], {"sink_policy": "compete"}),
    ],
)
def test_certify_passes_every_option_on(folder, capsys, arguments, options):
    assert main(["certify", "h.safetensors", "--json", *arguments]) == 0
    expected = gb.certify(HEAD, **options).to_dict()

    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(expected))


def test_certify_saves_a_certificate_that_verifies(folder, capsys):
    assert main(["certify", "h.npz", "-o", "new.json"]) == 0
    assert main(["verify", "new.json", "h.npz"]) == 0
    assert capsys.readouterr().out.endswith("holds: 1 claims, N = 2\n")


def test_a_vacuous_bound_is_no_failure(folder, capsys):
    gb.HeadData([0.25] * 4, np.ones((4, 1))).save("flat.npz")

    assert main(["certify", "flat.npz"]) == 0
    assert "vacuous" in capsys.readouterr().out


def test_certify_of_several_heads_prints_and_saves_all(folder, capsys):
    assert main(["certify", "h.npz", "other.npz", "-o", "all.json"]) == 0
    heads = [gb.HeadData.load(name) for name in ("h.npz", "other.npz")]
    tables = [str(gb.certify(head)) for head in heads]
    found = gb.CertificateSet.load("all.json")

    assert capsys.readouterr().out == f"h.npz\n{tables[0]}\n\nother.npz\n{tables[1]}\n"
    assert found.to_dict() == gb.certify_all(heads).to_dict()


def test_certify_of_several_heads_prints_json_of_the_set(folder, capsys):
    arguments = ["h.npz", "other.npz", "--n", "1,2", "--sink-policy", "drop", "--json"]
    assert main(["certify", *arguments]) == 0
    heads = [gb.HeadData.load(name) for name in ("h.npz", "other.npz")]
    expected = gb.certify_all(heads, n=[1, 2], sink_policy="drop").to_dict()

    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(expected))


def test_certify_names_the_head_that_could_not_be_certified(folder, capsys):
    gb.HeadData([0.5, 0.5], [[1.0], [2.0]]).save("two.npz")

    assert main(["certify", "h.npz", "two.npz", "-o", "all.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("geobounds: two.npz: certify: at least 3 candidates are nee")
    assert not (folder / "all.json").exists()


# verify


def test_verify_names_the_claims_that_hold(folder, capsys):
    gb.certify(HEAD, [1, 3]).save("two.json")

    assert main(["verify", "two.json", "h.npz"]) == 0
    assert capsys.readouterr().out == "holds: 2 claims, N = 1, 3\n"


def test_verify_takes_a_file_of_several_certificates_and_their_heads(folder, capsys):
    assert main(["certify", "h.npz", "other.npz", "-o", "all.json"]) == 0
    capsys.readouterr()

    assert main(["verify", "all.json", "h.npz", "other.npz"]) == 0
    assert capsys.readouterr().out == "holds: 1 claims, N = 2\n" * 2
    assert main(["verify", "all.json", "other.npz", "h.safetensors"]) == 0
    capsys.readouterr()
    assert main(["verify", "all.json", "other.npz"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "does not hold:"
    assert [line[:22] for line in out[1:]] == ["  certificate 0: head:"]


def test_verify_says_that_claims_about_weights_alone_are_conditional(folder, capsys):
    bare = gb.HeadData(HEAD.weights[1])
    bare.save("bare.npz")
    regime = gb.PairwiseRegime.fit(HEAD, n=2)
    gb.certify(bare, regime=regime).save("c.json")

    assert main(["verify", "c.json", "bare.npz"]) == 0
    assert capsys.readouterr().out == (
        "holds for values that meet the regime; the head file has no values.\n"
        "holds: 1 claims, N = 2\n"
    )
    assert main(["verify", "c.json", "bare.npz", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"ok": True, "reasons": [], "conditional": True}


def test_verify_fails_with_reasons(folder, capsys):
    assert main(["verify", "c.json", "other.npz"]) == 1
    out = capsys.readouterr().out

    assert out.startswith("does not hold:\n  head: not the head that was certified")


@pytest.mark.parametrize(
    ("head", "code", "ok"), [("h.npz", 0, True), ("other.npz", 1, False)]
)
def test_verify_prints_json(folder, capsys, head, code, ok):
    assert main(["verify", "c.json", head, "--json"]) == code
    found = json.loads(capsys.readouterr().out)

    assert found["ok"] is ok
    assert bool(found["reasons"]) is not ok


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_verify_fails_for_a_file_that_is_no_certificate(folder, capsys, text):
    (folder / "c.json").write_text(text, encoding="utf-8")

    assert main(["verify", "c.json", "h.npz"]) == 1
    assert capsys.readouterr().out.startswith("does not hold:\n  ")


def test_verify_fails_for_a_file_that_is_no_head(folder, capsys):
    (folder / "h.npz").write_text("no head", encoding="utf-8")

    assert main(["verify", "c.json", "h.npz"]) == 1
    assert "h.npz is not a head file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [(["none.json", "h.npz"], "none.json"), (["c.json", "none.npz"], "none.npz")],
)
def test_verify_could_not_run_without_its_files(folder, capsys, arguments, missing):
    assert main(["verify", *arguments]) == 2
    out, err = capsys.readouterr()

    assert out == ""
    assert err == f"geobounds: verify: {missing} must be a file, got none there.\n"


# Help and version


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"geobounds {version('geobounds')}\n"


def test_the_version_of_a_package_not_installed_is_said(monkeypatch, capsys):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(cli, "version", missing)
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == "geobounds (not installed)\n"


def test_the_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    out = capsys.readouterr().out

    assert caught.value.code == 0
    assert all(f"\n    {command} " in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("certify", ("--n N[,N...]", "--query", "--regime {cells,pairwise,")),
        ("certify", ("--resolution K", "--ranking {weight,contribution}", "--json")),
        ("certify", ("--sink-policy {keep,drop,compete}", "HEAD.npz", "CERT.json")),
        ("verify", ("CERT.json", "HEAD.npz", "--json", "Exit code 0 only if")),
    ],
)
def test_the_help_of_a_command_names_its_arguments(capsys, monkeypatch, command, words):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    out = capsys.readouterr().out

    assert caught.value.code == 0
    assert all(word in out for word in words)


# Errors: one line, exit code 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "HeadData: none.npz must be a file, got none there."),
        (["h.csv"], "a head file must end in .npz or .safetensors, got 'h.csv'"),
        (["h.npz", "--n", "4"], "certify: n must lie between 1 and 3 (4 candidates)"),
        (["h.npz", "--n", "2,2"], "certify: n must hold different numbers"),
        (["h.npz", "--query", "2"], "certify: query must lie between -2 and 1"),
        (["h.npz", "--query", "0", "--n", "3"], "n must lie between 1 and 2 (3 cand"),
        (["h.npz", "--resolution", "1"], "resolution must be at least 3"),
        (["h.npz", "-o", "none/c.json"], "certify: No such file or directory: "),
        (["h.npz", "-o", "folder"], "certify: Is a directory: "),
    ],
)
def test_certify_could_not_run_and_says_why_in_one_line(
    folder, capsys, arguments, message
):
    (folder / "folder").mkdir()

    assert main(["certify", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("geobounds: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"no head"])
def test_certify_could_not_run_on_a_broken_file(folder, capsys, ending, content):
    (folder / f"b{ending}").write_bytes(content)

    assert main(["certify", f"b{ending}"]) == 2
    err = capsys.readouterr().err
    assert f"b{ending} must be a head written by HeadData.save" in err


def test_certify_could_not_run_on_a_head_of_weights_only(folder, capsys):
    gb.HeadData([0.5, 0.25, 0.25]).save("w.npz")

    assert main(["certify", "w.npz"]) == 2
    assert "certify: values must be given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["prove"], "invalid choice: 'prove'"),
        (["certify"], "the following arguments are required: HEAD.npz"),
        (["certify", "h.npz", "--n", "two"], "must be whole numbers separated by comm"),
        (["certify", "h.npz", "--n", ""], "must be whole numbers separated by commas"),
        (["certify", "h.npz", "--query", "x"], "invalid int value: 'x'"),
        (["certify", "h.npz", "--regime", "x"], "invalid choice: 'x'"),
        (["certify", "h.npz", "--ranking", "x"], "invalid choice: 'x'"),
        (["certify", "h.npz", "--sink-policy", "x"], "invalid choice: 'x'"),
        (["verify", "c.json"], "the following arguments are required: HEAD.npz"),
    ],
)
def test_arguments_that_cannot_be_read_exit_with_two(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def raising(error):
    """Return a function that raises ``error`` whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail


def test_an_interruption_exits_with_130(folder, capsys, monkeypatch):
    monkeypatch.setattr(cli, "certify", raising(KeyboardInterrupt()))

    assert main(["certify", "h.npz"]) == 130
    assert capsys.readouterr().err.startswith("geobounds: interrupted")


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    folder, capsys, monkeypatch
):
    error = ModuleNotFoundError("No module named 'torch'", name="torch")
    monkeypatch.setattr(cli, "certify", raising(error))

    assert main(["certify", "h.npz"]) == 2
    assert capsys.readouterr().err == (
        "geobounds: certify: torch must be installed. "
        "Run: pip install 'geobounds[models,report]'\n"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("no more disk"), "geobounds: certify: no more disk.\n"),
        (PermissionError(13, "Denied", "x"), "geobounds: certify: Denied: x.\n"),
    ],
)
def test_an_error_of_the_system_is_one_line(
    folder, capsys, monkeypatch, error, message
):
    monkeypatch.setattr(cli, "certify", raising(error))

    assert main(["certify", "h.npz"]) == 2
    assert capsys.readouterr().err == message


def test_a_reader_that_leaves_is_no_failure(folder, monkeypatch):
    """As with ``geobounds certify h.npz | head -1``; nothing may be written then."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(cli, "certify", raising(BrokenPipeError()))

    assert main(["certify", "h.npz"]) == 0
    assert stream.closed


# As a program


def test_the_module_is_the_command(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["geobounds", "verify", "c.json", "other.npz"])

    with pytest.raises(SystemExit) as caught:
        runpy.run_module("geobounds", run_name="__main__")
    assert caught.value.code == 1
    assert capsys.readouterr().out.startswith("does not hold:")


def test_a_process_of_its_own_certifies_and_verifies_without_torch(folder):
    code = (
        "import sys\n"
        "from geobounds.cli import main\n"
        "codes = [main(['certify', 'h.npz', '-o', 'p.json']),\n"
        "         main(['verify', 'p.json', 'h.npz'])]\n"
        "print(codes, {'torch', 'transformers'} & set(sys.modules))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert run.stdout.splitlines()[-2:] == ["holds: 1 claims, N = 2", "[0, 0] set()"]
    assert run.stderr == ""
