"""What every input must survive, whatever its bytes: three readers and their checks.

Each function takes one input and raises for anything but a documented outcome: an
error of the library, or an exit code of 0, 1 or 2. ``run.py`` lets atheris search for
inputs; ``test_fuzz_corpus.py`` replays those that are kept. Nothing here needs atheris.
"""

import contextlib
import hashlib
import io
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import geobounds as gb
from geobounds.claims import REGIMES
from geobounds.cli import main
from geobounds.verify import read_arrays

WEIGHTS = [0.25, 0.0, 0.375, 0.125, 0.125, 0.125]
VALUES = [[2.0, 0.0], [9.0, 9.0], [0.0, 4.0], [-4.0, 1.0], [0.0, -4.0], [0.0, 2.0]]
VISIBLE = [True, False, True, True, True, True]
HEAD = gb.HeadData(WEIGHTS, VALUES, visible=VISIBLE)
# A head without values, whose claims are conditional.
BARE = gb.HeadData(WEIGHTS, visible=VISIBLE, sink=None)
HEADS = (HEAD, BARE)
MOST_NUMBERS = 200  # of a head that is certified: exact arithmetic takes its time
COMMANDS = (
    "inspect FILE",
    "inspect FILE --n N --json",
    "inspect FILE --query 0 --ranking contribution --sink-policy drop",
    "certify FILE -o out.json",
    "certify FILE --n N --resolution N --json",
    "certify FILE --n 1,2 --regime pairwise",
    "certify FILE --regime pairwise-roles --sink-policy compete",
    "certify FILE --regime pairwise-roles-norms --query 0 -o out.json",
    "certify FILE --regime inversions --ranking contribution",
    "certify good.npz FILE --n 2 -o out.json",
    "verify good.json FILE",
    "verify good.json good.npz FILE --json",
    "verify FILE good.npz bare.npz",
    "verify FILE good.npz --json",
)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Work in an empty folder, and let no warning pass."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir=shared) as name:
        os.chdir(name)
        try:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                yield Path(name)
            assert not seen, f"a warning: {seen[0].message}"
        finally:
            os.chdir(before)


def _require_clear(message: str) -> None:
    assert message, "no message"
    assert "\n" not in message, f"lines: {message!r}"
    assert len(message) < 1000, f"{len(message)} characters: {message[:200]!r}"


def ending(data: bytes) -> str:
    """Tell the file type by its first bytes."""
    return {b"PK": ".npz", b"{": ".json", b"[": ".json"}.get(
        data[:2] if data[:2] == b"PK" else data[:1], ".safetensors"
    )


# Head files.


def heads(data: bytes) -> None:
    """Read a head file in both ways; what is read survives saving and certifying."""
    with _folder() as folder:
        path = folder / f"head{'.npz' if data[:2] == b'PK' else '.safetensors'}"
        path.write_bytes(data)
        readable = _read(path)
        try:
            head = gb.HeadData.load(path)
        except gb.HeadDataError as error:
            _require_clear(str(error))
            return
        assert readable, "HeadData reads what the checker does not"
        repr(head)
        row = next(k for k in range(head.n_query) if k not in head.problems)
        again = folder / f"again{('.npz', '.safetensors')[len(data) % 2]}"
        head.save(again)
        assert gb.HeadData.load(again).digest(row) == head.digest(row), "another head"
        if head.values is not None and head.values.size <= MOST_NUMBERS:
            _certify(head, row, again, REGIMES[len(data) % len(REGIMES)])


def _read(path: Path) -> bool:
    try:
        read_arrays(path)
    except ValueError as error:
        _require_clear(str(error))
        return False
    return True


def _certify(head: gb.HeadData, row: int, path: Path, regime: str) -> None:
    try:
        certificate = gb.certify(head, query=row, regime=regime)
    except gb.GeoboundsError as error:
        _require_clear(str(error))
        return
    outcome = gb.verify(certificate, path)
    assert outcome.ok, f"a true certificate is refused: {outcome.reasons}"


# Certificates.


def certificates(data: bytes) -> None:
    """Read and check a certificate as it is, and signed again."""
    with _folder() as folder:
        for content in (data, *_signed(data)):
            path = folder / "certificate.json"
            path.write_bytes(content)
            found = _load(path)
            outcome = gb.verify(path, *HEADS)
            for reason in outcome.reasons:
                _require_clear(reason)
            assert outcome.ok == (not outcome.reasons)
            if outcome.ok:
                odd = not _informs(json.loads(content))
                assert found or odd, "verify accepts what does not load"
                for certificate in found:
                    _require_true(certificate)


def _informs(data: dict[str, Any]) -> bool:
    """Whether the fields that no checker looks at are objects, as loading needs."""
    parts = data.get("certificates", [data])
    names = ("provenance", "versions")
    return all(isinstance(part[name], dict) for part in parts for name in names)


def _load(path: Path) -> list[gb.Certificate]:
    for kind in (gb.Certificate, gb.CertificateSet):
        try:
            found: Any = kind.load(path)
        except gb.CertificateFormatError as error:
            _require_clear(str(error))
            continue
        str(found), repr(found)
        found.save("again.json")
        assert kind.load("again.json").to_dict() == found.to_dict()
        return list(found) if kind is gb.CertificateSet else [found]
    return []


def _signed(data: bytes) -> Iterator[bytes]:
    """Yield the same with digests that fit, if it is JSON."""
    try:
        found = json.loads(data)
        members = found.get("certificates")
        if isinstance(members, list):
            found["certificates"] = [_sign(member) for member in members]
        yield json.dumps(_sign(found)).encode()
    except (AttributeError, ValueError, RecursionError):
        return


def _sign(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    body = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def _require_true(certificate: gb.Certificate) -> None:
    """Compare what was accepted with the head itself."""
    if certificate.head["d_head"] is None:
        return
    chosen = certificate.definitions
    ranking = chosen["ranking"]
    if ranking == "scores":
        ranking = [float(Fraction(x)) if x else 0.0 for x in chosen["scores"]]
        if any(
            Fraction(x or 0) != y
            for x, y in zip(chosen["scores"], ranking, strict=True)
        ):
            return  # no float holds such a score
    for n, claim in certificate.items():
        true = gb.measure(HEAD, n, ranking=ranking, sink_policy=chosen["sink_policy"])
        assert claim.precision <= true.precision.lower, "precision is too high"
        assert claim.recall <= true.recall.lower, "recall is too high"
        assert claim.f_score <= true.f_score.lower, "F is too high"
        assert claim.selected == tuple(true.selected.tolist())


# The command line.


@cache
def _good_files() -> dict[str, bytes]:
    with _folder() as folder:
        HEAD.save("good.npz")
        BARE.save("bare.npz")
        gb.certify(HEAD, 2).save("good.json")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def command(data: bytes) -> None:
    """Run a command on a file: one line if it fails, and no file lost."""
    if len(data) < 2:
        return
    content = data[2:]
    name = f"file{ending(content)}"
    text = COMMANDS[data[0] % len(COMMANDS)].replace("FILE", name)
    arguments = text.replace(" N", f" {data[1] % 7}").split()
    good = _good_files()
    with _folder() as folder:
        before = {**good, "out.json": b"here before", name: content}
        for file, known in before.items():
            (folder / file).write_bytes(known)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
        after = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert code in (0, 1, 2), f"exit code {code}"
        if code == 2:
            assert not out.getvalue(), "a result and an error"
            assert err.getvalue().startswith("geobounds: ")
            _require_clear(err.getvalue().removesuffix("\n"))
        else:
            assert not err.getvalue(), err.getvalue()
            assert out.getvalue(), "no result"
        if code == 0 and "out.json" in arguments:
            assert json.loads(after.pop("out.json"))
            del before["out.json"]
        assert after == before, "a file is lost, changed or left behind"
        encoded = out.getvalue().encode()  # nothing that no terminal can show
        assert b"\x1b" not in encoded


HARNESSES = {"heads": heads, "certificates": certificates, "command": command}
