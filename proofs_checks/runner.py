"""Run proof files and print what they found."""

import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from geobounds.theorems import statements_for
from proofs_checks._template import ProofReport

__all__ = ["families", "print_reports", "prove", "run_proofs", "to_dict"]


def families(ids: Sequence[str] = ()) -> list[str]:
    """Return the numbers of the statements these ids belong to, each once."""
    return list(dict.fromkeys(s.family for s in statements_for(list(ids))))


def prove(family: str) -> ProofReport:
    """Run the proof file of one statement."""
    module = importlib.import_module(f"proofs_checks.{family.lower()}")
    report: ProofReport = module.prove()
    return report


def run_proofs(ids: Sequence[str] = ()) -> Iterator[ProofReport]:
    """Yield the report of each statement, two at a time, in order."""
    names = families(ids)
    if len(names) == 1:
        yield prove(names[0])
        return
    with ProcessPoolExecutor(2) as pool:
        yield from pool.map(prove, names)


def to_dict(report: ProofReport) -> dict[str, Any]:
    """Return a report as JSON data."""
    return {
        "statement": report.statement,
        "holds": report.holds,
        "scope": report.scope,
        "methods": list(report.methods),
        "cases": report.cases,
        "smallest_slack": None if report.slack is None else str(report.slack),
        "seconds": round(report.seconds, 2),
        "steps": [
            {
                "name": step.name,
                "method": step.method,
                "holds": step.outcome.holds,
                "cases": step.outcome.cases,
                "note": step.outcome.note,
            }
            for step in report.steps
        ],
    }


def print_reports(
    reports: Iterable[ProofReport], *, steps: bool = False, as_json: bool = False
) -> int:
    """Print each report as it comes; return 0 if all hold, else 1."""
    done = []
    if not as_json:
        print(f"{'':4} {'holds':6} {'steps':>5} {'cases':>9} {'slack':>9} {'s':>6}  by")
    for report in reports:
        done.append(report)
        if as_json:
            continue
        slack = "" if report.slack is None else f"{float(report.slack):.3g}"
        print(
            f"{report.statement:4} {'yes' if report.holds else 'NO':6} "
            f"{len(report.steps):5} {report.cases:9} {slack:>9} "
            f"{report.seconds:6.1f}  {', '.join(report.methods)}",
            flush=True,
        )
        print(f"     scope: {report.scope}")
        for step in report.steps:
            if steps or not step.outcome.holds:
                state = "holds" if step.outcome.holds else "DOES NOT HOLD"
                print(f"     {step.method}: {step.name}: {state}. {step.outcome.note}")
    if as_json:
        print(json.dumps([to_dict(report) for report in done], indent=1))
    return 0 if done and all(report.holds for report in done) else 1
