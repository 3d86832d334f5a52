"""README says what is true: its Python runs with the output it shows."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_python_in_readme_gives_the_output_shown(tmp_path, monkeypatch):
    """Run in an empty folder, since the examples save files."""
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(ROOT / "README.md"), module_relative=False)

    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_make_targets_named_in_readme_exist():
    """And the tests and page they promise are what CI runs."""
    named = set(
        re.findall(r"make (report|test|check|core)\b", (ROOT / "README.md").read_text())
    )
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {"report", "test", "check"} <= named <= targets
