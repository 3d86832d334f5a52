"""Measure, bound and certify the geometry of token selection in attention heads."""

from typing import Any

from geobounds.bounds import InversionBounds, inversion_bounds
from geobounds.certificate import (
    Certificate,
    CertificateSet,
    certify,
    certify_all,
)
from geobounds.claims import Claim
from geobounds.errors import (
    ArgumentError,
    AssumptionError,
    CertificateFormatError,
    GeoboundsError,
    HeadDataError,
)
from geobounds.head import HeadData, split_heads
from geobounds.isotropic import IsotropicRegime
from geobounds.pairform import pair_counts, pair_f_bound
from geobounds.pairwise import PairwiseRegime
from geobounds.regime import Cell, CellRegime, InversionRegime
from geobounds.selection import random_scores, rank
from geobounds.separability import Counts, Interval, Measurement, measure
from geobounds.sink import SinkGeometry, find_sink, sink_geometry
from geobounds.taxonomy import HeadClass, classify
from geobounds.verify import Verification, verify

__all__ = [
    "THEOREMS",
    "ArgumentError",
    "AssumptionError",
    "Cell",
    "CellRegime",
    "Certificate",
    "CertificateFormatError",
    "CertificateSet",
    "Claim",
    "Counts",
    "GeoboundsError",
    "HeadClass",
    "HeadData",
    "HeadDataError",
    "Interval",
    "InversionBounds",
    "InversionRegime",
    "IsotropicRegime",
    "Measurement",
    "PairwiseRegime",
    "SinkGeometry",
    "Verification",
    "certify",
    "certify_all",
    "classify",
    "find_sink",
    "inversion_bounds",
    "measure",
    "pair_counts",
    "pair_f_bound",
    "random_scores",
    "rank",
    "sink_geometry",
    "split_heads",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import THEOREMS when it is asked for: SymPy takes longer than all the rest."""
    if name != "THEOREMS":
        msg = f"module 'geobounds' has no attribute {name!r}"
        raise AttributeError(msg)
    from geobounds.theorems import THEOREMS

    return THEOREMS
