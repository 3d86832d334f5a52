"""The machine proofs hold, and a proof that is broken says so."""

import json

import pytest
import z3
from evidence import record

from geobounds.theorems import statements_for
from proofs_checks import _template, runner
from proofs_checks._template import Outcome, Proof, refuted, satisfiable, worst, zero

FAMILIES = runner.families()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_the_proof_holds(family):
    """In at most a minute, by two kinds of evidence besides its examples."""
    report = runner.prove(family)

    broken = {s.name: s.outcome.note for s in report.steps if not s.outcome.holds}
    assert not broken
    assert report.holds
    assert len(set(report.methods) - {"witness", "counterexample"}) >= 2
    assert report.seconds < 60
    for step in report.steps:
        record(family, step.outcome.cases, step.outcome.slack, step.method)


def test_every_statement_has_a_proof_file():
    assert [f"T{i}" for i in range(1, 11)] == FAMILIES
    assert {s.family for s in statements_for()} == set(FAMILIES)


def broken_proof(step, method="z3"):
    proof = Proof("T1", "nothing")
    proof.step("a", "symbolic")(lambda: Outcome(holds=True))
    proof.step("b", method)(step)
    return proof.run()


@pytest.mark.parametrize(
    "step",
    [
        lambda: Outcome(holds=False),
        lambda: Outcome(holds=True, cases=0),
        lambda: 1 / 0,
        lambda: worst([]),
        lambda: zero("x - y"),
        lambda: refuted([z3.Real("x") > 0]),
        lambda: satisfiable([z3.Real("x") > 0, z3.Real("x") < 0]),
    ],
    ids=["false", "no cases", "raises", "empty", "not zero", "satisfied", "refuted"],
)
def test_a_step_that_does_not_hold_fails_the_proof(step):
    report = broken_proof(step)

    assert not report.steps[1].outcome.holds
    assert not report.holds


def test_a_solver_that_does_not_know_fails_the_proof(monkeypatch):
    """Square roots and exponentials: z3 answers unknown."""
    x, y = z3.Reals("x y")
    hard = [2**x == y, y**x == 3, x * y == z3.ToReal(z3.Int("n")), x > 1]

    outcome = refuted(hard, timeout_ms=300)

    assert not outcome.holds
    assert "unknown" in outcome.note


def test_one_kind_of_evidence_is_not_enough(monkeypatch):
    monkeypatch.setattr(_template, "examples_of", lambda part: [])
    proof = Proof("T1", "nothing")
    proof.step("a", "symbolic")(lambda: Outcome(holds=True))

    report = proof.run()

    assert report.steps[0].outcome.holds
    assert not report.holds


def test_a_method_must_be_a_known_one():
    with pytest.raises(ValueError, match=r"method must be one of symbolic, .*'guess'"):
        Proof("T1", "nothing").step("a", "guess")


def test_the_printed_table_names_what_fails(capsys):
    """And the exit code says so."""
    good, bad = runner.prove("T3"), broken_proof(lambda: Outcome(False, 1, None, "why"))

    assert runner.print_reports([good]) == 0
    assert runner.print_reports([good, bad]) == 1
    out = capsys.readouterr().out
    assert "b: DOES NOT HOLD. why" in out
    assert runner.print_reports([]) == 1
    capsys.readouterr()
    assert runner.print_reports([bad], as_json=True) == 1
    assert json.loads(capsys.readouterr().out)[0]["holds"] is False
