"""Settings of every test: Hypothesis profiles, and no network."""

import os

import pytest
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports transformers

settings.register_profile("dev", max_examples=50, deadline=None)
# Hypothesis' own ci profile replays the same examples for ever; this one searches.
settings.register_profile(
    "ci",
    settings.get_profile("ci"),
    max_examples=200,
    derandomize=False,
    deadline=None,
    print_blob=True,
)
settings.register_profile("thorough", max_examples=5000, deadline=None, print_blob=True)
_DEFAULT = "ci" if os.environ.get("CI") else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or _DEFAULT)


@pytest.fixture(scope="session")
def plain():
    """Return a geobounds without pytest's type checks: wrong types reach its own."""
    from mutants import load_copy

    return load_copy()
