"""The paper's findings and ours as hypotheses, each with its test and verdict."""

from collections.abc import Sequence

from empirical.study.data import StudyData
from empirical.study.finding import Finding
from empirical.study.findings_bos import bos_findings
from empirical.study.findings_bounds import bound_findings
from empirical.study.findings_causes import cause_findings, regime_findings
from empirical.study.findings_classes import class_findings
from empirical.study.findings_selection import (
    separability,
    sink_cost,
    sink_geometry,
)

__all__ = ["findings"]


def findings(study: StudyData, partners: Sequence[StudyData] = ()) -> list[Finding]:
    """Test every hypothesis on a study.

    Parameters
    ----------
    study : StudyData
        The scans of one model and text.
    partners : sequence of StudyData
        Studies of the same model on other texts.

    Returns
    -------
    list of Finding
        F1 to F8 in order. Nothing is tuned to a model: hypotheses and thresholds are
        the same for all. There is no correction for their number.

    Raises
    ------
    ScanError
        A partner is of another model, or of the same text.
    """
    return [
        *separability(study),
        *sink_geometry(study),
        *sink_cost(study),
        *class_findings(study, partners),
        *bound_findings(study),
        *cause_findings(study),
        *regime_findings(study),
        *bos_findings(study),
    ]
