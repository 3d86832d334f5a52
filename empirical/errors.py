"""Refusals of the empirical side; each message is one clear line."""

from geobounds import GeoboundsError

__all__ = [
    "CaptureError",
    "CorpusError",
    "ModelNotFoundError",
    "ScanError",
    "StudyError",
    "UnsupportedModelError",
]


class CaptureError(GeoboundsError):
    """What was captured is not what the model computed, or nothing was captured."""


class UnsupportedModelError(GeoboundsError):
    """A model whose attention cannot be captured faithfully."""


class ModelNotFoundError(GeoboundsError):
    """No such packaged model, folder, file or Hugging Face name."""


class CorpusError(GeoboundsError):
    """No such text, or a text too short for the windows asked for."""


class ScanError(GeoboundsError):
    """A scan that cannot run or cannot be resumed as asked."""


class StudyError(GeoboundsError):
    """A study that cannot run as asked, or a manifest that cannot be repeated."""
