"""Real attention heads: load a model, capture its heads, scan and report.

Needs the extras ``models`` and, for scans and pages, ``report``.
"""

from empirical.capture import capture, heads
from empirical.errors import (
    CaptureError,
    CorpusError,
    ModelNotFoundError,
    ScanError,
    StudyError,
    UnsupportedModelError,
)
from empirical.models import load

__all__ = [
    "CaptureError",
    "CorpusError",
    "ModelNotFoundError",
    "ScanError",
    "StudyError",
    "UnsupportedModelError",
    "capture",
    "heads",
    "load",
]
