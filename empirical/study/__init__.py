"""The study: the paper's findings as hypotheses, tested on the scans of a model."""

from empirical.study.data import StudyData, load_study
from empirical.study.finding import Finding, Range, judge
from empirical.study.findings import findings
from empirical.study.resample import Estimate
from empirical.study.tables import TABLES, tables

__all__ = [
    "TABLES",
    "Estimate",
    "Finding",
    "Range",
    "StudyData",
    "findings",
    "judge",
    "load_study",
    "tables",
]
