"""Write the inputs that a search starts from: ``python seeds.py``, once."""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

import numpy as np  # noqa: E402
from damaged import WEIGHTS as FOUR  # noqa: E402
from damaged import archive, members, npy, signed, tensors  # noqa: E402
from harness import BARE, COMMANDS, HEAD, VALUES, VISIBLE, WEIGHTS  # noqa: E402

import geobounds as gb  # noqa: E402
from geobounds.claims import REGIMES  # noqa: E402


def heads() -> dict[str, gb.HeadData]:
    """Heads of every dtype, of one query and of several, whole and with problems."""
    weights, values = np.array(WEIGHTS), np.array(VALUES)
    bits = (weights.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    wide = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    rows = [[1.0, 0, 0], [0.5, 0.5, 0], [np.nan, 0.25, 0.25]]
    return {
        "plain": HEAD,
        "bare": BARE,
        "half": gb.HeadData(weights.astype(np.float16), values, visible=VISIBLE),
        "bits": gb.HeadData(bits, wide, visible=VISIBLE, dtype="bfloat16"),
        "rows": gb.HeadData(rows, np.eye(3), visible="causal", meta={"tokens": ["a"]}),
    }


def certificates() -> dict[str, gb.Certificate | gb.CertificateSet]:
    """Certificates of every kind."""
    whole = gb.PairwiseRegime.fit(HEAD)
    found = {name: gb.certify(HEAD, [2, 3], regime=name) for name in REGIMES}
    found["scores"] = gb.certify(HEAD, 2, ranking=[5, 0, 4, 3, 2, 1])
    found["drop"] = gb.certify(HEAD, 2, sink_policy="drop", ranking="contribution")
    found["open"] = gb.certify(HEAD, 2, settle_doubt=False)
    blank = gb.HeadData(WEIGHTS, visible=VISIBLE)
    found["bare"] = gb.certify(blank, 2, regime=whole)
    return found | {"set": gb.CertificateSet([found["cells"], found["inversions"]])}


def once_broken() -> dict[str, dict[str, bytes]]:
    """Inputs that once crashed, hung, warned, or were read in two ways."""
    cells = json.loads(json.dumps(gb.certify(HEAD, 2).to_dict()))
    claim = cells["claims"][0]
    wide = json.dumps(cells).encode("utf-16")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "h.npz"
        texts = {"tokens": ["a"] * 6}
        gb.HeadData(WEIGHTS, VALUES, query_positions=[99], meta=texts).save(path)
        late = path.read_bytes()
    return {
        "heads": {
            "escape.npz": archive(members(weights=npy(FOUR, shape=r"'\d'"))),
            "truth.npz": archive(members(visible=npy(b"\1\1\1\2", "|b1", (1, 4)))),
            "rows.npz": archive(members(weights=npy(b"", "<f8", (2**70, 0)))),
            "axes.npz": archive(members(weights=npy(FOUR, shape=(1,) * 99 + (4,)))),
            "product.safetensors": tensors(weights={"shape": [10**3000] * 5}),
            "overlap.safetensors": tensors(weights={"data_offsets": [8, 40]}),
            "no-weights.safetensors": tensors(weights=None),
        },
        "certificates": {
            "utf-16.json": wide,
            "lines.json": json.dumps(
                signed(cells | {"claims": [claim | {"n": "a\nb\x1b[31m"}]})
            ).encode(),
            "format.json": json.dumps({"format": "x" * 5000, "version": 2}).encode(),
            "provenance.json": json.dumps(signed(cells | {"provenance": 1})).encode(),
        },
        "command": {
            "utf-16.json": bytes((12, 0)) + wide,
            "position.npz": bytes((0, 0)) + late,
        },
    }


def main() -> None:
    """Write the seeds of the three harnesses."""
    folders = {name: HERE / "corpus" / name for name in ("heads", "certificates")}
    folders["command"] = HERE / "corpus" / "command"
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    files = {}
    with tempfile.TemporaryDirectory() as name:
        for title, head in heads().items():
            for ending in (".npz", ".safetensors"):
                path = Path(name) / f"{title}{ending}"
                head.save(path)
                files[path.name] = path.read_bytes()
                (folders["heads"] / path.name).write_bytes(files[path.name])
    for title, certificate in certificates().items():
        files[f"{title}.json"] = json.dumps(certificate.to_dict()).encode()
        path = folders["certificates"] / f"{title}.json"
        path.write_bytes(files[path.name])
    for at, text in enumerate(COMMANDS):
        name = "cells.json" if text.startswith("verify FILE") else "plain.npz"
        path = folders["command"] / f"{at:02}-{name}"
        path.write_bytes(bytes((at, 2)) + files[name])
    for name, inputs in once_broken().items():
        for title, content in inputs.items():
            (folders[name] / f"broken-{title}").write_bytes(content)


if __name__ == "__main__":
    main()
