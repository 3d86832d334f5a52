"""The shape of the code: which module may import which, and what it exports."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import geobounds

PACKAGE = Path(geobounds.__file__).parent
ROOT = PACKAGE.parent
# Data flows one way: a module imports only what stands before it.
ORDER = (
    "errors",
    "integers",
    "files",
    "verify",
    "headfile",
    "arrays",
    "head",
    "selection",
    "power",
    "exact",
    "separability",
    "inspection",
    "taxonomy",
    "sink",
    "bounds",
    "cosines",
    "pairwise",
    "pairform",
    "cells",
    "optimal",
    "regime",
    "claims",
    "cli_parser",
    "certificate",
    "closed_forms",
    "isotropic",
    "situation",
    "hypotheses",
    "slacks",
    "symbolic",
    "theorems",
    "examples",
)
EXEMPT = ("__init__", "__main__", "cli")
FORBIDDEN = {
    "torch",
    "transformers",
    "matplotlib",
    "xarray",
    "empirical",
    "proofs_checks",
}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))
EMPIRICAL = sorted((ROOT / "empirical").rglob("*.py"))


def imports(source):
    """Return the dotted names of everything imported anywhere in a source text."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # "from package import module" may import a module.
            found |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
            assert node.level == 0, "relative imports are not used here"
    return found


def source_of(module):
    return (PACKAGE / f"{module}.py").read_text(encoding="utf-8")


def siblings(module):
    """Return the modules of geobounds that one of them imports."""
    parts = [name.split(".") for name in imports(source_of(module))]
    return {p[1] for p in parts if p[0] == "geobounds" and len(p) > 1} & set(MODULES)


def roots(source):
    return {name.partition(".")[0] for name in imports(source)}


def test_imports_are_found_in_every_form():
    """A test of the test: nested, renamed and dotted imports are seen."""
    source = (
        "import torch.nn as nn\n"
        "def f():\n"
        "    from geobounds import head\n"
        "    from geobounds.power import Enclosure\n"
    )

    assert imports(source) == {
        "torch.nn",
        "geobounds",
        "geobounds.head",
        "geobounds.power",
        "geobounds.power.Enclosure",
    }
    assert "torch" in roots(source)


def test_every_module_has_its_place_in_the_order():
    assert set(MODULES) == {*ORDER, *EXEMPT}


@pytest.mark.parametrize("module", [m for m in MODULES if m != "cli"])
def test_the_core_imports_neither_models_nor_plots(module):
    assert roots(source_of(module)) & FORBIDDEN == set()


@pytest.mark.parametrize("module", ORDER)
def test_imports_go_from_later_to_earlier_modules(module):
    earlier = set(ORDER[: ORDER.index(module)])

    assert siblings(module) <= earlier


def test_the_checker_imports_nothing_of_geobounds():
    assert "geobounds" not in roots(source_of("verify"))


def test_the_command_imports_models_only_inside_the_commands_that_need_them():
    tree = ast.parse(source_of("cli"))
    kinds = (ast.Import, ast.ImportFrom)
    top = "\n".join(ast.unparse(x) for x in tree.body if isinstance(x, kinds))

    assert roots(top) & FORBIDDEN == set()


@pytest.mark.parametrize("path", EMPIRICAL, ids=str)
def test_empirical_does_not_import_the_proofs(path):
    assert "proofs_checks" not in roots(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", [m for m in MODULES if m != "__main__"])
def test_exported_names_exist_once(module):
    name = "geobounds" if module == "__init__" else f"geobounds.{module}"
    found = importlib.import_module(name)

    assert all(hasattr(found, x) for x in found.__all__)
    assert len(found.__all__) == len(set(found.__all__))


def test_what_the_package_exports_is_what_it_imports():
    """No name of the public interface is lost or leaks."""
    body = ast.parse(source_of("__init__")).body
    names = {a.name for node in body if hasattr(node, "names") for a in node.names}

    # THEOREMS is imported when it is asked for.
    assert names - {"Any"} | {"THEOREMS"} == set(geobounds.__all__)


def test_importing_the_package_does_not_import_sympy():
    """Nor the proofs' solvers: certify and verify start fast."""
    code = "import sys, geobounds; print({'sympy', 'z3', 'scipy'} & set(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert run.stdout.strip() == "set()"


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'THEOREM'"):
        geobounds.THEOREM  # noqa: B018


def test_every_error_is_an_error_of_this_library():
    errors = importlib.import_module("geobounds.errors")

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.GeoboundsError)
        assert getattr(geobounds, name) is getattr(errors, name)
    for name in set(errors.__all__) - {"GeoboundsError"}:
        assert issubclass(getattr(errors, name), ValueError)
