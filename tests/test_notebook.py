"""The notebook runs from a model name to a certified head, as a reader would run it."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

HERE = Path(__file__).parent
NOTEBOOK = HERE.parent / "docs" / "first_head.ipynb"


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook):
    """All text that the code cells print."""
    return "".join(
        output["text"]
        for cell in code_cells(notebook)
        for output in cell.outputs
        if output.output_type == "stream"
    )


@pytest.mark.slow
def test_notebook_certifies_a_head_in_ten_cells(tmp_path):
    """Run anew it ends in a certificate that holds, and prints what the file shows."""
    blank = nbformat.read(NOTEBOOK, as_version=4)
    shown = printed(blank)
    assert len(code_cells(blank)) <= 10
    for cell in code_cells(blank):
        cell.outputs = []
    nbformat.write(blank, tmp_path / "blank.ipynb")

    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "execute_notebook.py"),
            str(tmp_path / "blank.ipynb"),
            str(tmp_path / "run.ipynb"),
            str(tmp_path / "kernel"),
        ],
        env=os.environ | {"TMPDIR": str(tmp_path), "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    run = nbformat.read(tmp_path / "run.ipynb", as_version=4)
    found = printed(run)
    for part in ("270 heads", "ok=True", "not the head that was certified"):
        assert part in found
        assert part in shown
    pictures = [o for o in code_cells(run)[-1].outputs if "image/png" in o.data]
    assert len(pictures) == 1
