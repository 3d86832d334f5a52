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


def pytest_addoption(parser):
    parser.addoption(
        "--statements-json",
        default="statements.json",
        metavar="FILE",
        help="where the table of statements is written as JSON (default: %(default)s)",
    )


def pytest_sessionfinish(session):
    """Send what a worker recorded to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        import evidence

        output["evidence"] = evidence.packed()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a worker recorded."""
    data = getattr(node, "workeroutput", {}).get("evidence")
    if data:
        import evidence

        evidence.unpack(data)


def pytest_terminal_summary(terminalreporter, config):
    """End the run with the statements certified, and write them as JSON."""
    import evidence

    entries = evidence.summary(evidence.ROWS)
    if not entries:
        return
    terminalreporter.section("statements certified in this run")
    for line in evidence.lines(entries):
        terminalreporter.write_line(line)
    path = config.rootpath / config.getoption("--statements-json")
    path.write_text(evidence.as_json(entries), encoding="utf-8")
    terminalreporter.write_line(f"the same as JSON: {path.name}")
