"""The second half of 100,000 exact cases, fresh ones, and wrong versions caught.

Two files of equal length, so that two processes share the work.
"""

import secrets

import pytest
import test_mutants
import test_pairform
import test_pairwise_mutants
from many_cases import run, run_seeded

import geobounds

MUTANTS = {
    **test_mutants.MUTANTS,
    **test_pairwise_mutants.MUTANTS,
    **{name: ("pairform", *row) for name, row in test_pairform.MUTANTS.items()},
}
# Each with what the message of the failing check begins with.
CAUGHT = {
    "D3: ties to the larger index": "D2, D3",
    "T6: sink cell merged": "T6",
    "T6 in floats: rounded inward": "T6 in floats",
    "mu- for mu+": "T4",
    "the selected sink left out of X of the unselected": "T4",
    "the sink's pull dropped": "T1-pairs",
}


@pytest.mark.parametrize("part", range(8))
def test_every_bound_holds_exactly_on_seeded_heads(part):
    """No tolerance: 6,250 cases a part."""
    run_seeded(seed=2000 + part, cases=6250)


def test_every_bound_holds_exactly_on_fresh_heads():
    """The seed differs in every run; a failure names it."""
    run(secrets.randbits(32), 1500, other=geobounds)


@pytest.mark.parametrize("name", CAUGHT)
def test_wrong_version_is_caught(name):
    """A few heads are enough, and the check of the statement at fault fails."""
    with pytest.raises(AssertionError, match=rf"head \d+ .*Error\(['\"]{CAUGHT[name]}"):
        run(0, 600, MUTANTS[name])
