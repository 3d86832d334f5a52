"""Files that hold one head: .npz and .safetensors. Only arrays and JSON are read."""

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from geobounds.errors import HeadDataError
from geobounds.files import replacing

__all__ = ["read", "write"]

FORMAT = "geobounds-head-1"
_ARRAYS = ("weights", "values", "visible", "query_positions")


def write(path: Path, arrays: dict[str, np.ndarray], extra: dict[str, Any]) -> None:
    """Write arrays and JSON data to ``path``, whole or not at all.

    Raises
    ------
    HeadDataError
        The ending is neither .npz nor .safetensors.
    OSError
        The folder cannot be written.
    """
    header = json.dumps({"format": FORMAT} | extra, sort_keys=True)
    _check_ending(path)
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            text = np.frombuffer(header.encode(), dtype=np.uint8)
            with temporary.open("wb") as stream:
                np.savez(stream, header=text, **arrays)  # type: ignore[arg-type]
        else:
            save_file(arrays, temporary, metadata={"header": header})


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what ``write`` wrote.

    Raises
    ------
    HeadDataError
        No such file, another format, or a file that is damaged.
    """
    _check_ending(path)
    if not path.is_file():
        msg = f"HeadData: {path} must be a file, got none there."
        raise HeadDataError(msg)
    reader = _read_npz if path.suffix == ".npz" else _read_safetensors
    try:
        arrays, header = reader(path)
        extra = json.loads(header)
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        TypeError,  # an .npy file under another name
        RuntimeError,  # encrypted, or an unknown compression; nested too deeply
        zipfile.BadZipFile,
        zlib.error,
        SafetensorError,
    ) as error:
        msg = f"HeadData: {path} must be a head written by HeadData.save ({error})."
        raise HeadDataError(msg) from error
    if not isinstance(extra, dict) or extra.get("format") != FORMAT:
        msg = f"HeadData: {path} must have the format {FORMAT!r}, got another."
        raise HeadDataError(msg)
    return arrays, extra


def _check_ending(path: Path) -> None:
    if path.suffix not in (".npz", ".safetensors"):
        msg = (
            "HeadData: a head file must end in .npz or .safetensors, "
            f"got {path.name!r}."
        )
        raise HeadDataError(msg)


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], str]:
    # The stream is ours: numpy leaves its own open when the archive is torn.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        header = archive["header"].astype(np.uint8).tobytes().decode()
        names = [n for n in _ARRAYS if n in archive.files]
        return {n: archive[n] for n in ["weights", *names]}, header


def _read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], str]:
    with safe_open(path, framework="numpy") as archive:
        header = (archive.metadata() or {})["header"]
        present = set(archive.keys())
        names = [n for n in _ARRAYS if n in present]
        return {n: archive.get_tensor(n) for n in ["weights", *names]}, header
