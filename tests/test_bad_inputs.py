"""Bad inputs: each is refused in one clear line, and nothing is lost or taken.

``bad_inputs`` holds the rows: what is wrong, what is done with it, the error (or a
command's exit code) and the whole message. Their files are made once; no row may
change, add or remove one, nor take more memory than a small file deserves.
"""

import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from bad_inputs import (
    CALLS,
    CERTIFICATE_FILES,
    COMMANDS,
    GOOD,
    HEAD,
    HEAD_FILES,
    REFUSED,
    W,
)

import geobounds
from geobounds.cli import main

MOST_MEMORY = 50_000_000  # bytes


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def head_file(name):
    """File of a row of HEAD_FILES."""
    ending, what = name.split(": ")
    return f"{slug(what)}.{ending}"


def head_message(name, message):
    """Whole message of HeadData.load for a row of HEAD_FILES."""
    if not message.startswith("HeadData: "):
        message = f"HeadData: FILE must be a head written by HeadData.save ({message})."
    return message.replace("FILE", head_file(name))


def load_head(name):
    return lambda gb: gb.HeadData.load(head_file(name))


def load_certificate(name):
    kind = "CertificateSet" if name.startswith("set, ") else "Certificate"
    return lambda gb: getattr(gb, kind).load(f"{slug(name)}.json")


def check_certificate(name):
    return lambda gb: gb.verify(f"{slug(name)}.json", "good.npz")


ROWS = [*CALLS]
ROWS += [
    (name, load_head(name), "HeadDataError", head_message(name, message))
    for name, _, message in HEAD_FILES
]
ROWS += [
    (
        f"certificate: {name}",
        load_certificate(name),
        "CertificateFormatError",
        message.replace("FILE", f"{slug(name)}.json"),
    )
    for name, _, message, _ in CERTIFICATE_FILES
    if message is not None
]
ROWS += [
    (f"checker: {name}", check_certificate(name), REFUSED, reason)
    for name, _, _, reason in CERTIFICATE_FILES
]
ROWS += [
    (f"command: {name}", text.replace("NINES", "9" * 5000).split(), code, message)
    for name, text, code, message in COMMANDS
]


def state(folder):
    """What each file is, without reading it."""
    stats = {path: path.stat() for path in folder.rglob("*")}
    return {p: (s.st_ino, s.st_size, s.st_mtime_ns) for p, s in stats.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with every damaged file and a few good ones."""
    made = tmp_path_factory.mktemp("bad")
    for name, content, _ in HEAD_FILES:
        (made / head_file(name)).write_bytes(content())
    for name, content, _, _ in CERTIFICATE_FILES:
        (made / f"{slug(name)}.json").write_bytes(content())
    HEAD.save(made / "good.npz")
    geobounds.HeadData(W).save(made / "weights.npz")
    geobounds.HeadData([1.0], [[1.0]]).save(made / "one.npz")
    (made / "good.json").write_bytes(GOOD)
    (made / "folder").mkdir()
    (made / "folder.npz").mkdir()
    return made


def outcome(action, gb, capsys):
    """Return the error or exit code of one row, and the message."""
    if callable(action):
        try:
            found = action(gb)
        except Exception as error:
            return error, str(error)
        assert isinstance(found, gb.Verification), f"no refusal, but {found!r:.200}"
        assert not found.ok
        assert len(found.reasons) == 1
        return REFUSED, found.reasons[0]
    try:
        code = main(action)
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    lines = (err or out).splitlines()
    if err.startswith("usage: "):
        assert sum(line.startswith("geobounds") for line in lines) == 1
    elif code == 1:
        assert lines[0] == "does not hold:"
        assert len(lines) == 2
    else:
        assert len(lines) == 1
    return code, lines[-1].strip()


@pytest.mark.parametrize(
    ("action", "expected", "message"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_a_bad_input_is_refused_in_one_clear_line(
    folder, plain, monkeypatch, capsys, action, expected, message
):
    monkeypatch.chdir(folder)
    before = state(folder)
    tracemalloc.start()
    try:
        found, text = outcome(action, plain, capsys)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    if isinstance(found, Exception):
        wanted = getattr(plain, expected) if isinstance(expected, str) else expected
        assert isinstance(found, wanted), repr(found)
        assert isinstance(found, (plain.GeoboundsError, TypeError, OSError))
    else:
        assert found == expected
    assert re.fullmatch(re.escape(message).replace("…", ".+"), text), text
    assert len(text) < 400
    assert peak < MOST_MEMORY
    assert state(folder) == before


def test_every_row_has_a_name_and_a_message_of_its_own():
    names = [row[0] for row in ROWS]

    assert len(names) >= 200
    assert len(set(names)) == len(names)
    assert all(len(message) > 10 for *_, message in ROWS)


# The environment: run by a shell; both outputs together; the exit code.

PROGRAM = f"{sys.executable} -m geobounds"
NO_SPACE = "No space left on device.\n"
ENVIRONMENT = [
    ("stdout closed", "PROGRAM inspect good.npz >&-", "", 0),
    ("stdout closed, JSON", "PROGRAM certify good.npz --json >&-", "", 0),
    ("both closed", "PROGRAM verify good.json good.npz >&- 2>&-", "", 0),
    ("stderr closed", "PROGRAM certify none.npz >&- 2>&-", "", 2),
    (
        "stdout full",
        "PROGRAM inspect good.npz >/dev/full",
        f"geobounds: inspect: {NO_SPACE}",
        2,
    ),
    (
        "stdout full, unbuffered",
        "PYTHONUNBUFFERED=1 PROGRAM certify good.npz >/dev/full",
        f"geobounds: certify: {NO_SPACE}",
        2,
    ),
    ("stdout full, help", "PROGRAM --help >/dev/full", "", 0),
    ("reader gone", "PROGRAM certify good.npz | true", "", 0),
    (
        "reader gone, unbuffered",
        "PYTHONUNBUFFERED=1 PROGRAM inspect good.npz|true",
        "",
        0,
    ),
    ("reader gone, version", "PROGRAM --version | true", "", 0),
    (
        "a name that is no text",
        r"PROGRAM certify $'none\xff.npz'",
        "geobounds: HeadData: none\\udcff.npz must be a file, got none there.\n",
        2,
    ),
    (
        "a head whose name is no text",
        r"PROGRAM verify good.json $'head\xff.npz'",
        (
            "does not hold:\n  head: head\\udcff.npz is not a head file "
            "(BadZipFile: File is not a zip file)\n"
        ),
        1,
    ),
    (
        "an output of few letters",
        "PYTHONIOENCODING=ascii PROGRAM verify letters.json good.npz",
        "does not hold:\n  format: unknown, '\\xe9\\u4e2d' version 1\n",
        1,
    ),
    (
        "the checker alone, an output of few letters",
        "PYTHONIOENCODING=ascii PYTHON CHECKER letters.json good.npz",
        "format: unknown, '\\xe9\\u4e2d' version 1\n",
        1,
    ),
    (
        "a pipe for a certificate",
        (
            "mkfifo pipe; sed -n 1p <pipe & PROGRAM certify good.npz -o pipe >&-; "
            "code=$?; wait; test -p pipe && rm pipe; exit $code"
        ),
        "{\n",
        0,
    ),
    (
        "no folder to stand in",
        (
            "mkdir gone; head=$PWD/good.npz; cd gone; rmdir ../gone; "
            "PROGRAM certify $head -o c.json >&-"
        ),
        "geobounds: certify: No such file or directory: c.json.\n",
        2,
    ),
    ("HOME unset", "env -u HOME PROGRAM verify good.json good.npz >&-", "", 0),
]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and bash are needed")
@pytest.mark.parametrize(
    ("command", "expected", "code"),
    [row[1:] for row in ENVIRONMENT],
    ids=[row[0] for row in ENVIRONMENT],
)
def test_a_bad_environment_gives_one_clear_line(folder, command, expected, code):
    (folder / "letters.json").write_text('{"format": "é中", "version": 1}', "utf-8")
    (folder / os.fsdecode(b"head\xff.npz")).write_bytes(b"no archive")
    before = state(folder)
    root = Path(geobounds.__file__).parents[1]
    inherited = {k: x for k, x in os.environ.items() if k != "PYTHONUNBUFFERED"}
    for name, text in (
        ("PROGRAM", PROGRAM),
        ("CHECKER", str(root / "geobounds" / "verify.py")),
        ("PYTHON ", f"{sys.executable} "),
    ):
        command = command.replace(name, text)
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )

    assert run.stdout == expected
    assert run.returncode == code
    assert state(folder) == before


def test_a_cache_folder_that_is_a_file_is_named(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GEOBOUNDS_CACHE", "good.json")
    (folder / "model.gguf").write_bytes(b"GGUF")
    command = "capture model.gguf --prompt x --layer 0 --head 0"

    assert main(command.split()) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "geobounds: capture: Not a directory: good.json/models."
    assert (folder / "good.json").read_bytes() == GOOD


def test_a_user_without_home_is_told_what_to_set(folder, monkeypatch, capsys):
    def no_home():
        raise RuntimeError

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("GEOBOUNDS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (folder / "model.gguf").write_bytes(b"GGUF")
    command = "capture model.gguf --prompt x --layer 0 --head 0"

    assert main(command.split()) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "geobounds: models: a cache folder must be known, got no home. "
        "Set GEOBOUNDS_CACHE."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    closed = folder / "folder"
    closed.chmod(0o500)
    try:
        assert main(["certify", "good.npz", "-o", "folder/c.json"]) == 2
    finally:
        closed.chmod(0o700)
    assert capsys.readouterr().err == (
        "geobounds: certify: Permission denied: folder/c.json.\n"
    )


def test_memory_that_does_not_suffice_is_one_line(folder, monkeypatch, capsys):
    def none_left(*_, **__):
        raise MemoryError

    monkeypatch.chdir(folder)
    monkeypatch.setattr(geobounds.HeadData, "load", none_left)

    assert main(["certify", "good.npz", "-o", "good.json"]) == 2
    assert capsys.readouterr().err == (
        "geobounds: certify: memory must suffice, got less than needed.\n"
    )
    assert (folder / "good.json").read_bytes() == GOOD
