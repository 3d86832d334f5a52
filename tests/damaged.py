"""Head files and certificates written by hand, byte by byte, so as to be damaged."""

import hashlib
import io
import json
import struct
import zipfile
from warnings import catch_warnings, simplefilter

LETTERS = {"<f8": "d", "<f4": "f", "<f2": "e", "<i8": "q", "|b1": "?", "|u1": "B"}
WEIGHTS = (0.5, 0.25, 0.125, 0.125)
VALUES = (1.0, 2.0, 3.0, 4.0)


def npy(numbers, kind="<f8", shape=None, *, order="False", magic=b"\x93NUMPY\x01\x00"):
    """Return a NumPy file; ``shape`` may lie."""
    raw = numbers
    if not isinstance(numbers, bytes):
        raw = struct.pack(f"<{len(numbers)}{LETTERS[kind]}", *numbers)
        shape = (len(numbers),) if shape is None else shape
    facts = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}\n"
    return magic + struct.pack("<H", len(facts)) + facts.encode() + raw


def header(**fields):
    """Return the JSON header of a head file as text."""
    facts = {"format": "geobounds-head-1", "sink": 0, "meta": {}}
    return json.dumps(facts | {"dtypes": ["float64", "float64"]} | fields)


def members(text=None, **changes):
    """Return the members of a good archive by name, with some replaced or taken out."""
    text = header() if text is None else text
    found = {
        "header": npy(text.encode(), "|u1", (len(text),)),
        "weights": npy(WEIGHTS, shape=(1, 4)),
        "visible": npy((True,) * 4, "|b1", (1, 4)),
        "query_positions": npy((3,), "<i8"),
        "values": npy(VALUES, shape=(4, 1)),
    }
    found |= changes
    return {f"{name}.npy": x for name, x in found.items() if x is not None}


def archive(parts, compression=zipfile.ZIP_STORED):
    """Return a ZIP archive of (name, bytes) pairs; names may stand twice."""
    pairs = parts.items() if isinstance(parts, dict) else parts
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as opened, catch_warnings():
        simplefilter("ignore")  # a name that stands twice
        for name, content in pairs:
            opened.writestr(zipfile.ZipInfo(name), content, compression)
    return stream.getvalue()


def entries(text=None, **changes):
    """Return the JSON entries and the data of a good tensor file, with changes."""
    parts = {
        "query_positions": ("I64", [1], struct.pack("<q", 3)),
        "values": ("F64", [4, 1], struct.pack("<4d", *VALUES)),
        "visible": ("BOOL", [1, 4], b"\1" * 4),
        "weights": ("F64", [1, 4], struct.pack("<4d", *WEIGHTS)),
    }
    found, data = {}, b""
    for name, (kind, shape, raw) in parts.items():
        offsets = [len(data), len(data) + len(raw)]
        found[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        found[name] |= changes.get(name) or {}
        data += raw
    found["__metadata__"] = {"header": header() if text is None else text}
    found |= {k: x for k, x in changes.items() if k not in parts}
    return {k: x for k, x in found.items() if changes.get(k, x) is not None}, data


def tensors(text=None, *, length=None, **changes):
    """Return a tensor file; ``length`` lies about its header's."""
    found, data = entries(text, **changes)
    head = json.dumps(found).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data


def signed(data):
    """Return the data with a digest that fits."""
    body = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def patched(central, local, value, content=None):
    """Return an archive with bytes of its second member's records replaced.

    ``central`` and ``local`` are offsets in the record of the central directory and in
    that before the member; None leaves a record as it is.
    """
    found = bytearray(archive(members()) if content is None else content)
    for signature, place in ((b"PK\x01\x02", central), (b"PK\x03\x04", local)):
        at = found.index(signature, found.index(signature) + 1)
        if place is not None:
            found[at + place : at + place + len(value)] = value
    return bytes(found)
