"""The form of every proof file: a written proof, and steps that a machine repeats.

A proof file is named after its statement (``t3.py`` proves T3 with all its parts). Its
docstring holds the written proof, complete enough for a referee, step by step under the
names used below. Then::

    PROOF = Proof("T3", scope="all N and d; z3 at N, M <= 2")

    @PROOF.step("pair identity", "symbolic")
    def pair_identity() -> Outcome:
        return zero(...)

    prove = PROOF.run

A step returns an ``Outcome``: whether it holds, how many cases it looked at, the worst
slack (exact, at least 0 where the statement holds). A step that raises, that looked at
nothing, or whose solver answers ``unknown`` does not hold.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy as sp
import z3

from geobounds.examples import examples_of
from geobounds.theorems import THEOREMS, statements_for

__all__ = [
    "METHODS",
    "Outcome",
    "Proof",
    "ProofReport",
    "Step",
    "refuted",
    "satisfiable",
    "worst",
    "zero",
]

METHODS = (
    "symbolic",
    "z3",
    "enumeration",
    "semidefinite program",
    "simulation",
    "exact arithmetic",
    "witness",
    "counterexample",
)


@dataclass(frozen=True)
class Outcome:
    """What one step found.

    Attributes
    ----------
    holds : bool
        Whether the step proves what it is named for.
    cases : int
        Number of identities, solver calls, objects or draws looked at; at least 1.
    slack : Fraction or None
        Smallest slack found, where the step measures one.
    note : str
        One line: scope, or why it does not hold.
    """

    holds: bool
    cases: int = 1
    slack: Fraction | None = None
    note: str = ""


@dataclass(frozen=True)
class Step:
    """A step of a proof with its outcome and how long it took."""

    name: str
    method: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class ProofReport:
    """Outcome of one proof file.

    Attributes
    ----------
    statement : str
        Number of the statement, "T3"; its parts are proved with it.
    scope : str
        What the machine covered.
    steps : tuple of Step
        In the order of the written proof.
    """

    statement: str
    scope: str
    steps: tuple[Step, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Kinds of evidence, each once."""
        return tuple(dict.fromkeys(step.method for step in self.steps))

    @property
    def holds(self) -> bool:
        """Every step holds, and two kinds of evidence agree."""
        return len(self.methods) >= 2 and all(s.outcome.holds for s in self.steps)

    @property
    def slack(self) -> Fraction | None:
        """Smallest slack of all steps."""
        found = [s.outcome.slack for s in self.steps if s.outcome.slack is not None]
        return min(found, default=None)

    @property
    def cases(self) -> int:
        """Cases of all steps."""
        return sum(s.outcome.cases for s in self.steps)

    @property
    def seconds(self) -> float:
        """Time of all steps."""
        return sum(s.seconds for s in self.steps)


@dataclass
class Proof:
    """Collects the steps of one proof file."""

    statement: str
    scope: str
    _steps: list[tuple[str, str, Callable[[], Outcome]]] = field(default_factory=list)

    def step(
        self, name: str, method: str
    ) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
        """Register a function as a step."""
        if method not in METHODS:
            msg = f"Proof: method must be one of {', '.join(METHODS)}, got {method!r}."
            raise ValueError(msg)

        def register(function: Callable[[], Outcome]) -> Callable[[], Outcome]:
            self._steps.append((name, method, function))
            return function

        return register

    def run(self) -> ProofReport:
        """Take every step, then check the statement's examples on record."""
        steps = [*self._steps]
        for part in statements_for([self.statement]):
            steps += _example_steps(part.id)
        return ProofReport(
            self.statement, self.scope, tuple(_take(*step) for step in steps)
        )


def _take(name: str, method: str, function: Callable[[], Outcome]) -> Step:
    start = time.perf_counter()
    try:
        outcome = function()
    except Exception as error:  # a step that breaks proves nothing
        outcome = Outcome(holds=False, note=f"{type(error).__name__}: {error}")
    if outcome.cases < 1:
        outcome = Outcome(holds=False, cases=0, note="looked at nothing")
    return Step(name, method, outcome, time.perf_counter() - start)


def _example_steps(part: str) -> list[tuple[str, str, Callable[[], Outcome]]]:
    """Witnesses attain the bound; each counterexample breaks one hypothesis only."""
    statement = THEOREMS[part]
    steps: list[tuple[str, str, Callable[[], Outcome]]] = []
    for example in examples_of(part):

        def check(example: Any = example) -> Outcome:
            situation = example.situation()
            failing, slack = statement.failing(situation), statement.slack(situation)
            if example.kind == "witness":
                return Outcome(not failing and slack == 0, 1, slack, example.title)
            broken = failing == [example.drops] and slack < 0
            return Outcome(broken, 1, None, f"without {example.drops}: {example.title}")

        steps.append((f"{part} {example.name}", example.kind, check))
    return steps


def zero(*expressions: Any) -> Outcome:
    """Hold iff every expression simplifies to exactly 0 (SymPy)."""
    rest = [e for e in map(sp.sympify, expressions) if sp.simplify(sp.expand(e)) != 0]
    note = f"not 0: {rest[0]}" if rest else ""
    return Outcome(not rest, len(expressions), None, note)


def refuted(*problems: list[Any], timeout_ms: int = 20_000) -> Outcome:
    """Hold iff z3 proves that none of these sets of constraints has a solution.

    Each problem lists the hypotheses and the negated conclusion. ``unknown`` does not
    hold. State norms by their squares: z3 does not decide square roots.
    """
    for i, problem in enumerate(problems):
        answer, solver = _solve(problem, timeout_ms)
        if answer != z3.unsat:
            model = f": {solver.model()}" if answer == z3.sat else ""
            return Outcome(
                holds=False, cases=i + 1, note=f"problem {i} {answer}{model}"
            )
    return Outcome(holds=True, cases=len(problems))


def satisfiable(problem: list[Any], timeout_ms: int = 20_000) -> Outcome:
    """Hold iff z3 finds a solution: a control that a refutation is not empty."""
    answer, _ = _solve(problem, timeout_ms)
    return Outcome(answer == z3.sat, 1, None, "" if answer == z3.sat else str(answer))


def _solve(problem: list[Any], timeout_ms: int) -> tuple[Any, Any]:
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(*problem)
    return solver.check(), solver


def worst(slacks: list[Fraction], note: str = "") -> Outcome:
    """Hold iff no slack is negative; reports the smallest."""
    least = min(slacks, default=None)
    return Outcome(least is not None and least >= 0, len(slacks), least, note)
