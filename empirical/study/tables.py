"""The numbers behind every figure: one function a table, all in ``TABLES``."""

from collections.abc import Callable

import pandas as pd

from empirical.study.data import StudyData
from empirical.study.tables_bounds import numbers_needed, tightness_table
from empirical.study.tables_causes import causes, collapse, regime, removals
from empirical.study.tables_classes import (
    agreement,
    alignment,
    classes,
    shares_by_layer,
)
from empirical.study.tables_selection import (
    bos,
    found_sink,
    policies,
    separability,
    sink_geometry,
    sink_selected,
)

__all__ = ["TABLES", "tables"]

# ``agreement`` alone also reads a partner.
TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "separability": separability,
    "policies": policies,
    "sink_selected": sink_selected,
    "sink_geometry": sink_geometry,
    "classes": classes,
    "class_shares": shares_by_layer,
    "agreement": agreement,
    "alignment": alignment,
    "tightness": tightness_table,
    "numbers_needed": numbers_needed,
    "removals": removals,
    "causes": causes,
    "collapse": collapse,
    "regime": regime,
    "bos": bos,
    "found_sink": found_sink,
}


def tables(
    study: StudyData, partner: StudyData | None = None
) -> dict[str, pd.DataFrame]:
    """Return every table of a study.

    Parameters
    ----------
    study : StudyData
        The scans.
    partner : StudyData, optional
        A study of the same model on another text, for ``agreement``.

    Returns
    -------
    dict of str to pandas.DataFrame
        By name. ``value``, ``low`` and ``high`` are an estimate and its 95 % bootstrap
        interval over documents; NaN where undefined.

    Raises
    ------
    ScanError
        The partner is of another model, or of the same text.
    """
    return {
        name: table(study, partner) if name == "agreement" else table(study)
        for name, table in TABLES.items()
    }
