"""The pages of a study, one a model and text and one across all.

They read tables and findings; figures, tables and pages are files written whole or not
at all, the page last.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment

from empirical.drawing import Drawing, save_both
from empirical.report import page_environment
from empirical.study.figures import ACROSS, FIGURES, GROUPS, Plot, draw
from empirical.study.finding import Finding
from empirical.study.style import About, Tables
from empirical.study.verdicts import MARKS, findings_json, findings_table, number
from geobounds.files import replacing, write_text

__all__ = ["Outcome", "verdict_counts", "write_across", "write_pair"]


@dataclass(frozen=True)
class Outcome:
    """What is known of one model and text.

    Attributes
    ----------
    folder : str
        Name of its folder.
    about : About
        What the numbers are from.
    tables : mapping
        Every table by name, and "findings".
    notes : tuple of str
        What a reader must know of how it was run.
    """

    folder: str
    about: About
    tables: Tables
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        folder: str,
        about: About,
        tables: Tables,
        findings: Sequence[Finding],
        notes: Sequence[str] = (),
    ) -> "Outcome":
        """Join tables and findings."""
        found = {**tables, "findings": findings_table(findings)}
        return cls(folder, about, found, tuple(notes))

    @property
    def title(self) -> str:
        """Model and text, in words."""
        return f"{_short(self.about.attrs['model'])} on {self.about.attrs['corpus']}"


def verdict_counts(table: pd.DataFrame) -> dict[str, int]:
    """Return how many findings have each verdict."""
    return {verdict: int((table["verdict"] == verdict).sum()) for verdict in MARKS}


def write_pair(outcome: Outcome, folder: Path) -> Path:
    """Write tables, figures, findings.json and the page of one model and text.

    Parameters
    ----------
    outcome : Outcome
        What was found.
    folder : Path
        Where to write; it must exist.

    Returns
    -------
    Path
        The page.
    """
    drawings = draw(FIGURES, outcome.tables, outcome.about)
    _write_tables(outcome.tables, folder)
    write_text(folder / "findings.json", findings_json(outcome.tables["findings"]))
    shown = _save(drawings, FIGURES, folder)
    missing = [name for name in FIGURES if name not in shown]
    records = outcome.tables["findings"].to_dict("records")
    for record in records:  # what holds for all findings stands once, above them
        for note in outcome.notes:
            record["note"] = str(record["note"]).replace(note, "").strip()
    html = (
        _environment()
        .get_template("study.html")
        .render(
            outcome=outcome,
            attrs=outcome.about.attrs,
            about=outcome.about,
            findings=records,
            counts=verdict_counts(outcome.tables["findings"]),
            verdicts=shown.get("verdicts"),
            groups=_groups(shown, FIGURES, records),
            missing=[
                (FIGURES[name].tables, FIGURES[name].group, name) for name in missing
            ],
            figures=set(shown),
        )
    )
    page = folder / "index.html"
    write_text(page, html)
    return page


def write_across(
    outcomes: Sequence[Outcome], folder: Path, notes: Sequence[str] = ()
) -> Path:
    """Write the page across models and texts, with its tables and figures.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one; their pages lie in the folders they name.
    folder : Path
        Where to write; it must exist.
    notes : sequence of str
        What a reader must know of how it was run.

    Returns
    -------
    Path
        The page.
    """
    names = {name for plot in ACROSS.values() for name in plot.tables} | {"findings"}
    joined = {name: _joined(outcomes, name) for name in sorted(names)}
    abouts = {outcome.folder: outcome.about for outcome in outcomes}
    _write_tables(joined, folder)
    shown = _save(draw(ACROSS, joined, abouts), ACROSS, folder)
    html = (
        _environment()
        .get_template("studies.html")
        .render(
            outcomes=outcomes,
            matrix=_matrix(outcomes),
            groups=_groups(shown, ACROSS, []),
            counts={o.folder: verdict_counts(o.tables["findings"]) for o in outcomes},
            notes=notes,
        )
    )
    page = folder / "index.html"
    write_text(page, html)
    return page


def _joined(outcomes: Sequence[Outcome], name: str) -> pd.DataFrame:
    parts = [o.tables[name].assign(study=o.folder) for o in outcomes]
    full = [part for part in parts if not part.empty]
    return pd.concat(full or parts, ignore_index=True)


def _matrix(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return one row a finding with one cell a study; None where it has none."""
    found: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        for record in outcome.tables["findings"].to_dict("records"):
            row = found.setdefault(str(record["id"]), {**record, "cells": {}})
            row["cells"][outcome.folder] = record
    return list(found.values())


def _write_tables(tables: Tables, folder: Path) -> None:
    (folder / "tables").mkdir(exist_ok=True)
    for name, table in tables.items():
        with replacing(folder / "tables" / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)


def _save(
    drawings: Mapping[str, Drawing], plots: Mapping[str, Plot], folder: Path
) -> dict[str, dict[str, Any]]:
    """Write the figures' files; return what the page shows of each."""
    (folder / "figures").mkdir(exist_ok=True)
    shown = {}
    for name, drawing in drawings.items():
        image = save_both(drawing, folder / "figures")
        shown[name] = {
            "id": name,
            "title": drawing.title,
            "caption": drawing.caption,
            "data": base64.b64encode(image).decode(),
            "files": [
                *(f"tables/{table}.csv" for table in plots[name].tables),
                f"figures/{name}.pdf",
                f"figures/{name}.png",
            ],
        }
    return shown


def _groups(
    shown: Mapping[str, Any],
    plots: Mapping[str, Plot],
    records: Sequence[Mapping[Any, Any]],
) -> list[dict[str, Any]]:
    """Return the figures and findings of each group, in order."""
    found = []
    for group, title in GROUPS.items():
        figures = [shown[x] for x in shown if plots[x].group == group]
        own = [r for r in records if str(r["id"]).partition("-")[0] == group]
        if figures or own:
            part = {"id": group, "title": title, "figures": figures, "findings": own}
            found.append(part)
    return found


def _short(model: str) -> str:
    """Return a name without the folders that lead to it."""
    return Path(model).name or model


def _environment() -> Environment:
    environment = page_environment()
    environment.filters["effect"] = number
    environment.globals["marks"] = MARKS
    return environment
