"""Files that hold one head: .npz and .safetensors. Only arrays and JSON are read.

Reading is the checker's own (``geobounds.verify``), which allocates nothing that the
file does not hold.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from geobounds.errors import HeadDataError
from geobounds.files import replacing
from geobounds.verify import read_arrays

__all__ = ["read", "write"]

FORMAT = "geobounds-head-1"


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
    arrays = {
        name: _narrowed(array, _tag(extra, name)) for name, array in arrays.items()
    }
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            text = np.frombuffer(header.encode(), dtype=np.uint8)
            with temporary.open("wb") as stream:
                np.savez(stream, header=text, **arrays)  # type: ignore[arg-type]
        else:
            save_file(arrays, temporary, metadata={"header": header})


def _tag(extra: dict[str, Any], name: str) -> str | None:
    """Return the type that the header names for an array."""
    tags: dict[str, str | None] = dict(
        zip(("weights", "values"), extra["dtypes"], strict=True)
    )
    return tags.get(name)


def _narrowed(array: np.ndarray, tag: str | None) -> np.ndarray:
    """Return a bfloat16 as uint16: the upper half of the float32 that holds it."""
    if tag != "bfloat16":
        return array
    bits = np.ascontiguousarray(array).view(np.uint32)
    return array if (bits & 0xFFFF).any() else (bits >> 16).astype(np.uint16)


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
    try:
        stored, extra = read_arrays(path)
    except (OSError, ValueError) as error:
        msg = f"HeadData: {path} must be a head written by HeadData.save ({error})."
        raise HeadDataError(msg) from error
    found = extra.get("format")
    if found != FORMAT:
        msg = f"HeadData: {path} must have the format {FORMAT!r}, got {found!r:.40}."
        raise HeadDataError(msg)
    for name in ("weights", "values"):
        # Bits of bfloat16 that lost their tag would pass for whole numbers.
        if name in stored and not stored[name][0].startswith("float"):
            msg = f"HeadData: {name} of {path} must be floats, got {stored[name][0]}."
            raise HeadDataError(msg)
    arrays = {
        name: np.frombuffer(raw, dtype=np.dtype(kind).newbyteorder("<")).reshape(shape)
        for name, (kind, shape, raw) in stored.items()
    }
    return arrays, extra


def _check_ending(path: Path) -> None:
    if path.suffix not in (".npz", ".safetensors"):
        msg = (
            "HeadData: a head file must end in .npz or .safetensors, "
            f"got {path.name!r}."
        )
        raise HeadDataError(msg)
