"""Findings as rows and as JSON: what figures and pages read of them."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from empirical.study.finding import Finding

__all__ = ["MARKS", "findings_json", "findings_table", "number"]

# A mark and a word, so that no verdict is told by colour alone.
MARKS = {"supported": "✓", "not supported": "✗", "undecided": "?"}


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return one row a finding: what is claimed, the effect, the verdict."""
    records = []
    for finding in findings:
        record = {
            key: value
            for key, value in asdict(finding).items()
            if key not in ("estimate", "range")
        }
        estimate, expected = finding.estimate, finding.range
        records.append(
            record
            | {
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "least": expected.least,
                "greatest": expected.greatest,
                "expected": str(expected),
            }
        )
    columns = [
        *("id", "title", "hypothesis", "measure", "expected", "least", "greatest"),
        *("value", "low", "high", "verdict", "note", "figure"),
    ]
    return pd.DataFrame(records, columns=columns)


def findings_json(table: pd.DataFrame) -> str:
    """Return the rows as JSON text; what is not finite becomes null."""
    records = [
        {key: _plain(value) for key, value in row.items()}
        for row in table.to_dict("records")
    ]
    return json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def number(x: float) -> str:
    """Return a number in three significant figures, for print."""
    if math.isnan(x):
        return "undefined"
    if math.isinf(x) or x == 0:
        text = "∞" if x else "0"
    elif abs(x) < 0.0001:
        text = f"{abs(x):.1e}"
    else:
        digits = max(0, 2 - math.floor(math.log10(abs(x))))
        text = f"{abs(x):.{min(digits, 3 if abs(x) >= 0.001 else 5)}f}"
    return ("−" if x < 0 else "") + text.replace("-", "−")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
