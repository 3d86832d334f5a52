"""Changes that keep an input readable far enough to reach what lies behind the readers.

Bytes changed at random rarely pass a checksum or a JSON parser. These take a file
apart, change one part of it and put it together again.
"""

import io
import json
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any

MOST_TOKENS = 100
Mutate = Callable[[bytes, int], bytes]
NUMBERS = (0, 1, 2, 3, -1, 7, 2**31, 2**63, 2**64, 10**12, 10**30, 0.5, 1e308, -0.0)
TEXTS = (
    *(
        "",
        "0",
        "1",
        "-1",
        "1/2",
        "2/3",
        "2/4",
        "1/0",
        "-0",
        "9" * 50,
        "9" * 5000,
        "1e9",
    ),
    *("float16", "float32", "float64", "bfloat16", "F64", "F32", "F16", "BOOL", "U16"),
    *("<f8", "<f4", "<f2", "|b1", "<i8", "<u2", "|u1", "|O", ">f8", "geobounds-head-1"),
    *("weight", "contribution", "scores", "keep", "drop", "compete", "cells"),
    *("pairwise", "pairwise-roles", "pairwise-roles-norms", "inversions"),
    *(
        "separable",
        "bounded",
        "vacuous",
        "undecided",
        "\ud800",
        "\x1b[31m",
        "é中",
        "\n",
    ),
)
CONSTANTS = (None, True, False, float("nan"), float("inf"))
KINDS = (
    "<f8",
    "<f4",
    "<f2",
    "|b1",
    "<i8",
    "<u2",
    "|u1",
    "|O",
    ">f8",
    "<c16",
    "float64",
)


def head_file(data: bytes, mutate: Mutate, size: int, seed: int) -> bytes:
    """Change one part of a head file of either kind."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return mutate(data, size)
    try:
        change = _archive if data[:2] == b"PK" else _tensors
        return change(data, mutate, rng)[:size]
    except Exception:  # it is too damaged to be taken apart
        return mutate(data, size)


def certificate(data: bytes, mutate: Mutate, size: int, seed: int) -> bytes:
    """Change some places of JSON data."""
    rng = random.Random(seed)
    if rng.random() < 0.1:
        return mutate(data, size)
    try:
        found = json.loads(data)
        if rng.random() < 0.4:
            _forge(rng.choice(found.get("certificates", [found])), rng)
        else:
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                found = _json(found, rng)
        return json.dumps(found).encode()[:size]
    except Exception:  # it is too damaged to be taken apart
        return mutate(data, size)


def command(data: bytes, mutate: Mutate, size: int, seed: int) -> bytes:
    """Change the command's two bytes, or its file."""
    rng = random.Random(seed)
    choice, content = data[:2].ljust(2, b"\0"), data[2:]
    if rng.random() < 0.3:
        choice = bytes((rng.randrange(256), rng.randrange(256)))
        if rng.random() < 0.5:
            return choice + content
    change = certificate if content[:1] == b"{" else head_file
    return choice + change(content, mutate, size - 2, seed)


def _forge(certificate: dict[str, Any], rng: random.Random) -> None:
    """Claim other counts, with the bounds that they give, from a regime near the true.

    Without this a false claim is always refused for the sums that do not add up.
    """
    claim = rng.choice(certificate["claims"])
    n, m, regime = claim["n"], claim["n_unselected"], claim["regime"]
    if max(n, m) > MOST_TOKENS:
        raise ValueError  # an earlier change; the sums would take long
    if rng.random() < 0.7:
        _json(regime, rng)
    fp, fn = rng.choice(((0, 0), (rng.randint(1, m), rng.randint(1, n))))
    f_score = _f_score(n, fp, fn)
    if regime.get("name") == "inversions":
        g = regime["inversions"] = rng.randint(0, n * m)
        fp, fn = min(g, m), min(g, n)
        pairs = ((g + 1 - x, x) for x in range(max(1, g + 1 - m), g + 1))
        least = min((_f_score(n, *pair) for pair in pairs), default=Fraction(1))
        f_score = Fraction(0) if g >= n else least
    verdict = "separable" if f_score == 1 else "bounded" if f_score else "vacuous"
    claim |= {"false_positives": fp, "false_negatives": fn, "verdict": verdict}
    claim |= {"precision": str(Fraction(n, n + fp)), "recall": str(1 - Fraction(fn, n))}
    claim["f_score"] = str(f_score)


def _f_score(n: int, fp: int, fn: int) -> Fraction:
    kept = n - fn
    if kept <= 0:
        return Fraction(0)
    return Fraction(2 * n * kept, n * kept + fp * kept + n * n)


def _archive(data: bytes, mutate: Mutate, rng: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [(x.filename, archive.read(x)) for x in archive.infolist()]
    at = rng.randrange(len(parts))
    name, content = parts[at]
    step = rng.random()
    if step < 0.05:
        del parts[at]
    elif step < 0.1:
        parts.append(parts[at])
    elif step < 0.15:
        parts[at] = rng.choice(("../", "/", "x", "")) + rng.choice(parts)[0], content
    else:
        parts[at] = name, _array(name, content, mutate, rng)
    stream = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.05 else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that stands twice
        for name, content in parts:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()


def _array(name: str, content: bytes, mutate: Mutate, rng: random.Random) -> bytes:
    start = 10 + int.from_bytes(content[8:10], "little")
    facts, raw = content[10:start], content[start:]
    if name == "header.npy":
        raw = json.dumps(_json(json.loads(raw), rng)).encode()
        return _facts("|u1", (len(raw),)) + raw
    step = rng.random()
    if step < 0.2:
        return content[:10] + mutate(facts, 200) + raw
    if step < 0.35:
        kind, shape = rng.choice(KINDS), rng.choice(((1, 6), (6, 2), (6,), (1,), ()))
        return _facts(kind, shape) + raw
    if step < 0.6:
        return content[:start] + _numbers(raw, rng)
    return content[:start] + mutate(raw, len(raw) + 8)[: len(raw)].ljust(
        len(raw), b"\0"
    )


def _facts(kind: str, shape: tuple[int, ...]) -> bytes:
    facts = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(facts)) + facts.encode()


def _numbers(raw: bytes, rng: random.Random) -> bytes:
    """Put an unusual double somewhere."""
    odd = (5e-324, 2.0**-1022, 2.0**-538, 1e308, 2.0**600, 0.0, -0.0, 1 + 2.0**-52)
    odd += (float("nan"), float("inf"), -1.0, 1 / 3)
    at = 8 * rng.randrange(max(len(raw) // 8, 1))
    found = raw[:at] + struct.pack("<d", rng.choice(odd)) + raw[at + 8 :]
    return found[: len(raw)]


def _tensors(data: bytes, mutate: Mutate, rng: random.Random) -> bytes:
    start = 8 + int.from_bytes(data[:8], "little")
    entries, raw = json.loads(data[8:start]), data[start:]
    step = rng.random()
    if step < 0.2:
        raw = mutate(raw, len(raw) + 8)
    elif step < 0.4:
        raw = _numbers(raw, rng)
    elif step < 0.6:
        inner = json.loads(entries["__metadata__"]["header"])
        entries["__metadata__"]["header"] = json.dumps(_json(inner, rng))
    else:
        entries = _json(entries, rng)
    text = json.dumps(entries).encode()
    length = len(text) if rng.random() < 0.95 else rng.choice((0, 2**40, 2**64 - 1))
    return struct.pack("<Q", length) + text + raw


def _places(data: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) in JSON data."""
    steps = data.keys() if isinstance(data, dict) else range(len(data))
    for step in steps:
        found.append((data, step))
        if isinstance(data[step], (dict, list)):
            _places(data[step], found)
    return found


def _json(data: Any, rng: random.Random) -> Any:
    """Change one place of JSON data."""
    places = _places(data, []) if isinstance(data, (dict, list)) else []
    if not places:
        return rng.choice((*NUMBERS, *TEXTS, {}, []))
    container, key = rng.choice(places)
    value, step = container[key], rng.random()
    if step < 0.1:
        del container[key]
    elif step < 0.2:
        other, place = rng.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            container[key] = json.loads(json.dumps(other[place]))
    elif step < 0.3 and isinstance(container, dict):
        container[rng.choice((*TEXTS, "sink", "meta", "more"))] = value
    elif step < 0.4 and isinstance(container, list):
        container.insert(key, value)
    elif step < 0.65:
        container[key] = _near(value, rng)
    else:
        pool = (NUMBERS, TEXTS, CONSTANTS, ({}, [], [value], {"a": value}))
        container[key] = rng.choice(rng.choice(pool))
    return data


def _near(value: Any, rng: random.Random) -> Any:
    """A value of the same kind that is a little different."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + rng.choice((-1, 1, 2, 8))
    if isinstance(value, str):
        top, bar, bottom = value.partition("/")
        if top.removeprefix("-").isdecimal():
            top = str(int(top) + rng.choice((-1, 1, 10, 1000)))
            return top + bar + bottom
        return value + rng.choice(("0", " ", "s", "\0"))
    if isinstance(value, list):
        return value[::-1] if rng.random() < 0.5 else value[:-1]
    return value


MUTATORS = {"heads": head_file, "certificates": certificate, "command": command}
