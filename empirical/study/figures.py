"""Every figure of a study by name: what draws it, and the tables it reads.

Figures read tables, never scans; no figure computes a statistic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd

from empirical.drawing import STYLE, Drawing
from empirical.study import figures_across as across
from empirical.study import figures_bounds as bounds
from empirical.study import figures_heads as heads
from empirical.study import figures_selection as selection
from empirical.study.figures_verdicts import verdicts
from empirical.study.style import About

__all__ = ["ACROSS", "FIGURES", "GROUPS", "Plot", "draw"]

GROUPS = {
    "F1": "Separability against random sets",
    "F2": "The geometry of the sink",
    "F3": "What selecting the sink costs",
    "F4": "Classes of heads",
    "F5": "How tight the bounds are",
    "F6": "What separability is lost to",
    "F7": "How far the hypotheses of the theory hold",
    "F8": "Without BOS, and with the sink found from data",
}


@dataclass(frozen=True)
class Plot:
    """A figure to be drawn.

    Attributes
    ----------
    function : callable
        Takes the tables and what they are from.
    tables : tuple of str
        Names of the tables that it reads.
    group : str
        Group of findings that it belongs to; empty for the verdicts.
    """

    function: Callable[[Any, Any], Drawing]
    tables: tuple[str, ...]
    group: str


FIGURES: dict[str, Plot] = {
    "verdicts": Plot(verdicts, ("findings",), ""),
    "separability": Plot(selection.separability, ("separability",), "F1"),
    "sink_geometry": Plot(selection.sink_geometry, ("sink_geometry",), "F2"),
    "sink_map": Plot(selection.sink_map, ("sink_geometry",), "F2"),
    "policies": Plot(selection.policies, ("policies",), "F3"),
    "policies_by_class": Plot(selection.policies_by_class, ("policies",), "F3"),
    "sink_selected": Plot(selection.sink_selected, ("sink_selected",), "F3"),
    "class_map": Plot(heads.class_map, ("classes",), "F4"),
    "class_shares": Plot(heads.class_shares, ("class_shares",), "F4"),
    "agreement": Plot(heads.agreement, ("agreement",), "F4"),
    "alignment": Plot(heads.alignment, ("alignment",), "F4"),
    "tightness_by_n": Plot(bounds.tightness_by_n, ("tightness",), "F5"),
    "tightness_by_layer": Plot(bounds.tightness_by_layer, ("tightness",), "F5"),
    "tightness_by_class": Plot(bounds.tightness_by_class, ("tightness",), "F5"),
    "numbers_needed": Plot(bounds.numbers_needed, ("numbers_needed",), "F5"),
    "removals": Plot(bounds.removals, ("removals",), "F6"),
    "causes": Plot(bounds.causes, ("causes",), "F6"),
    "collapse": Plot(bounds.collapse, ("collapse",), "F6"),
    "regime": Plot(heads.regime, ("regime",), "F7"),
    "bos": Plot(heads.bos, ("bos",), "F8"),
    "found_sink": Plot(heads.found_sink, ("found_sink",), "F8"),
}
ACROSS: dict[str, Plot] = {
    "separability_across": Plot(across.separability_across, ("separability",), "F1"),
    "sink_geometry_across": Plot(across.sink_geometry_across, ("sink_geometry",), "F2"),
    "class_shares_across": Plot(across.class_shares_across, ("class_shares",), "F4"),
    "tightness_across": Plot(across.tightness_across, ("tightness",), "F5"),
}


def draw(
    plots: Mapping[str, Plot],
    tables: Mapping[str, pd.DataFrame],
    about: About | Mapping[str, About],
) -> dict[str, Drawing]:
    """Draw the figures whose tables hold something, by name."""
    with mpl.rc_context(rc=STYLE):  # type: ignore[arg-type]
        return {
            name: plot.function(tables, about)
            for name, plot in plots.items()
            if not any(tables[table].empty for table in plot.tables)
        }
