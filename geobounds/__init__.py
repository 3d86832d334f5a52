"""Measure, bound and certify the geometry of token selection in attention heads."""

from geobounds.bounds import InversionBounds, inversion_bounds
from geobounds.certificate import Certificate, certify
from geobounds.claims import Claim
from geobounds.errors import (
    ArgumentError,
    AssumptionError,
    CertificateFormatError,
    GeoboundsError,
    HeadDataError,
)
from geobounds.head import HeadData, split_heads
from geobounds.regime import Cell, CellRegime, InversionRegime
from geobounds.selection import random_scores, rank
from geobounds.separability import Counts, Interval, Measurement, measure
from geobounds.verify import Verification, verify

__all__ = [
    "ArgumentError",
    "AssumptionError",
    "Cell",
    "CellRegime",
    "Certificate",
    "CertificateFormatError",
    "Claim",
    "Counts",
    "GeoboundsError",
    "HeadData",
    "HeadDataError",
    "Interval",
    "InversionBounds",
    "InversionRegime",
    "Measurement",
    "Verification",
    "certify",
    "inversion_bounds",
    "measure",
    "random_scores",
    "rank",
    "split_heads",
    "verify",
]
