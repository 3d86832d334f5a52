"""Load a copy of geobounds, as it is or with one line changed, beside the real one."""

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import geobounds

_FOLDER = Path(geobounds.__file__).parent


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Serves geobounds' own sources, one of them with a text replaced."""

    def __init__(self, change: tuple[str, str, str] | None) -> None:
        module, self.old, self.new = change or ("", "", "")
        self.changed = f"geobounds.{module}"

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.split(".")[0] != "geobounds":
            return None
        return importlib.util.spec_from_loader(
            name, self, is_package=name == "geobounds"
        )

    def get_source(self, fullname: str) -> str:
        part = fullname.partition(".")[2] or "__init__"
        source = (_FOLDER / f"{part}.py").read_text(encoding="utf-8")
        if fullname == self.changed:
            found = source.count(self.old)
            if found != 1:
                msg = f"{self.changed}: {self.old!r} stands {found} times, not once"
                raise LookupError(msg)
            source = source.replace(self.old, self.new)
        return source


def load_copy(change: tuple[str, str, str] | None = None) -> ModuleType:
    """Return a fresh geobounds, free of the type checks that pytest's hook adds.

    With ``change = (module, old, new)`` the one place of ``old`` in that module's
    source is replaced by ``new``.
    """
    real = {k: m for k, m in sys.modules.items() if k.split(".")[0] == "geobounds"}
    for name in real:
        del sys.modules[name]
    finder = _Finder(change)
    # Ahead of every other finder, jaxtyping's checking hook included.
    sys.meta_path.insert(0, finder)
    try:
        copy = importlib.import_module("geobounds")
        for name in ("cells", "cosines", "exact", "pairform", "pairwise", "regime"):
            importlib.import_module(f"geobounds.{name}")
    finally:
        sys.meta_path.remove(finder)
        for name in [k for k in sys.modules if k.split(".")[0] == "geobounds"]:
            del sys.modules[name]
        sys.modules.update(real)
    return copy
