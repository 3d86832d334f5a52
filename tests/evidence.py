"""What each statement was checked on in this run, for the table at its end.

Tests call ``record``; every process of the run keeps its rows, and ``conftest`` gathers
them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geobounds.theorems import THEOREMS


@dataclass(frozen=True)
class Row:
    """One check: how many cases, the smallest slack of any bound, and the method."""

    statement: str
    cases: int
    slack: Fraction | None
    method: str


ROWS: list[Row] = []
SHAPES: dict[str, int] = {}


def record(statement: str, cases: int, slack: Fraction | None, method: str) -> None:
    """Keep one row; ``slack`` is None where a check measures none."""
    ROWS.append(Row(statement, cases, slack, method))


def record_shapes(counts: dict[str, int]) -> None:
    """Add numbers of exact cases by shape of the head."""
    for shape, cases in counts.items():
        SHAPES[shape] = SHAPES.get(shape, 0) + cases


def packed() -> dict[str, Any]:
    """Return the rows as plain data, to be sent from one process to another."""
    rows = [
        [r.statement, r.cases, None if r.slack is None else str(r.slack), r.method]
        for r in ROWS
    ]
    return {"rows": rows, "shapes": SHAPES}


def unpack(data: dict[str, Any]) -> None:
    """Add what another process recorded."""
    for statement, cases, slack, method in data["rows"]:
        record(statement, cases, None if slack is None else Fraction(slack), method)
    record_shapes(data["shapes"])


def summary(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one entry a statement or family that something was recorded for."""
    rows = list(rows)
    names = [*THEOREMS, *dict.fromkeys(s.family for s in THEOREMS.values())]
    found = []
    for name in dict.fromkeys(names):
        own = [r for r in rows if r.statement == name]
        if not own:
            continue
        slacks = [r.slack for r in own if r.slack is not None]
        exact = [r for r in own if r.method == "exact cases"]
        found.append(
            {
                "statement": name,
                "exact_cases": sum(r.cases for r in exact),
                "other_cases": sum(r.cases for r in own if r not in exact),
                "smallest_slack": str(min(slacks)) if slacks else None,
                "methods": sorted({r.method for r in own}),
            }
        )
    return sorted(found, key=lambda entry: _order(entry["statement"]))


def _order(name: str) -> tuple[int, str]:
    number = name.split("-")[0].rstrip("ab")
    return int(number[1:]), name


def lines(entries: list[dict[str, Any]]) -> list[str]:
    """Return the table that a run of the tests ends with."""
    head = f"{'statement':16} {'exact cases':>11} {'others':>8} {'slack':>9}  methods"
    table = [head]
    for e in entries:
        slack = e["smallest_slack"]
        shown = "" if slack is None else f"{float(Fraction(slack)):.3g}"
        table.append(
            f"{e['statement']:16} {e['exact_cases']:11,} {e['other_cases']:8,} "
            f"{shown:>9}  {', '.join(e['methods'])}"
        )
    if SHAPES:
        counts = ", ".join(f"{k} {v:,}" for k, v in sorted(SHAPES.items()))
        table.append(f"exact cases by shape: {counts}")
    return table


def as_json(entries: list[dict[str, Any]]) -> str:
    """Return the same as JSON."""
    data = {"statements": entries, "exact_cases_by_shape": SHAPES}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"
