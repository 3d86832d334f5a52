"""Run by hand or in CI in an environment that holds the core's requirements only."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import geobounds as gb


def main() -> None:
    """Measure, certify, save, load and verify without torch, from code and command."""
    extras = "torch", "transformers", "matplotlib", "xarray", "rich", "z3", "cvxpy"
    for extra in extras:
        assert importlib.util.find_spec(extra) is None, f"{extra} is installed"
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(12)).astype(np.float32)
    head = gb.HeadData(weights, rng.normal(size=(12, 4)).astype(np.float32))
    certificate = gb.certify(head)
    assert gb.verify(certificate, head)

    command = [sys.executable, "-m", "geobounds"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head.save(folder / "h.npz")
        run = subprocess.run(
            [*command, "certify", "h.npz", "-o", "c.json"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        assert run.stdout.strip() == str(certificate)
        subprocess.run([*command, "verify", "c.json", "h.npz"], cwd=folder, check=True)
        # Alone, without the package: the checker needs Python only.
        alone = folder / "verify.py"
        alone.write_text(Path(gb.verify.__code__.co_filename).read_text())
        subprocess.run(
            [sys.executable, "-P", "verify.py", "c.json", "h.npz"],
            cwd=folder,
            check=True,
        )
        subprocess.run([*command, "theorems", "--list"], cwd=folder, check=True)
        for name, extra in (("models", "models,report"), ("theorems", "proofs")):
            refused = subprocess.run(
                [*command, name],
                cwd=folder,
                check=False,
                capture_output=True,
                text=True,
            )
            assert refused.returncode == 2
            assert f"pip install 'geobounds[{extra}]'" in refused.stderr
    assert not {"torch", "transformers"} & set(sys.modules)
    print("core only: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
