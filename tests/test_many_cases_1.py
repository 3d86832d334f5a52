"""The first half of 100,000 exact cases, fresh ones, and wrong versions caught by both.

Two files of equal length, so that two processes share the work.
"""

import secrets

import pytest
from many_cases import run, run_seeded
from test_mutants import MUTANTS

import geobounds

# Each with what the message of the failing check begins with.
CAUGHT = {
    "T1 FP: < for <=": "(T1|D6)",  # whichever meets a tie first
    "T1 inversions: ties not counted": "D6, D8",
    "T2a P: G over M": "T2a",
    "T2b: as few false negatives as allowed": "T2b",
    "T6 selected: t+ for t-": "T6",
    "T8: no radius": "T8",
}


@pytest.mark.parametrize("part", range(8))
def test_every_bound_holds_exactly_on_seeded_heads(part):
    """No tolerance: 6,250 cases a part."""
    run_seeded(seed=1000 + part, cases=6250)


def test_every_bound_holds_exactly_on_fresh_heads():
    """The seed differs in every run; a failure names it."""
    run(secrets.randbits(32), 1500, other=geobounds)


@pytest.mark.parametrize("name", CAUGHT)
def test_wrong_version_is_caught(name):
    """A few heads are enough, and the check of the statement at fault fails."""
    with pytest.raises(AssertionError, match=rf"head \d+ .*Error\(['\"]{CAUGHT[name]}"):
        run(0, 600, MUTANTS[name])
