"""Witnesses and counterexamples of every statement, as data.

``example_data/*.json`` hold them by statement: a witness attains what is called tight,
a counterexample shows that one hypothesis cannot be dropped. All numbers are integers
or fractions written as text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from geobounds.head import HeadData
from geobounds.pairwise import PairwiseRegime
from geobounds.regime import Cell, CellRegime
from geobounds.situation import HeadCase, Keys, Numbers, head_from_gram

__all__ = ["Example", "examples", "examples_of"]


@dataclass(frozen=True)
class Example:
    """One witness or counterexample.

    Attributes
    ----------
    statement : str
        Its id, "T3".
    name : str
        Unique within the statement.
    kind : "witness" or "counterexample"
        A witness meets all hypotheses with slack 0; a counterexample meets all but
        ``drops``, and its slack is negative.
    drops : str
        Name of the hypothesis that fails; empty for a witness.
    title : str
        What it shows, in one line.
    data : mapping
        Arguments of the situation: ``key`` and ``n``; or ``weights`` with ``gram`` or
        ``values``, ``n``, ``sink`` and options of ``HeadCase``; and ``numbers``.
    """

    statement: str
    name: str
    kind: str
    drops: str
    title: str
    data: Mapping[str, Any]

    def situation(self) -> Any:
        """Build the Keys, HeadCase or Numbers it describes."""
        data = dict(self.data)
        numbers = _exact(data.pop("numbers", {}))
        if "regime" in numbers:
            numbers["regime"] = _regime(numbers["regime"])
        if "key" in data:
            return Keys(_exact(data["key"]), data["n"], numbers)
        if "weights" not in data:
            return Numbers(numbers)
        weights, sink = _exact(data.pop("weights")), data.pop("sink", None)
        if "gram" in data:
            head = head_from_gram(weights, _exact(data.pop("gram")), sink=sink)
        else:
            values = [[float(x) for x in row] for row in _exact(data.pop("values"))]
            visible = data.pop("visible", "all")
            row = [float(w) for w in weights]
            head = HeadData(row, values, visible=visible, sink=sink)
        return HeadCase(head, data.pop("n"), numbers=numbers, **data)


def _exact(data: Any) -> Any:
    """Turn text that is a fraction into one, everywhere in JSON data."""
    if isinstance(data, dict):
        return {key: _exact(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_exact(value) for value in data]
    if isinstance(data, str) and data.lstrip("-")[:1].isdigit():
        return Fraction(data)
    return data


def _regime(data: dict[str, Any]) -> Any:
    if "cells" in data:
        cells = tuple(Cell(*cell) for cell in data["cells"])
        return CellRegime(data["n"], cells)
    spans = ("norms_selected", "norms_unselected", "sink_norm")
    given: dict[str, Any] = {
        k: tuple(map(Fraction, v)) if k in spans and v is not None else v
        for k, v in data.items()
    }
    return PairwiseRegime(**given)


@cache
def examples() -> tuple[Example, ...]:
    """Return all examples on record."""
    folder = files("geobounds") / "example_data"
    found = []
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.endswith(".json"):
            text = path.read_text(encoding="utf-8")
            found += [Example(**item) for item in json.loads(text)]
    return tuple(found)


def examples_of(statement: str) -> list[Example]:
    """Return the examples of one statement."""
    return [example for example in examples() if example.statement == statement]
