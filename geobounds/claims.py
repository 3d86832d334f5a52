"""What is certified for one N, as an object and as JSON data."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geobounds.errors import CertificateFormatError
from geobounds.regime import Cell, CellRegime, InversionRegime

__all__ = ["REGIMES", "Claim", "claim_from_json", "claim_to_json"]

REGIMES = ("cells", "inversions")


@dataclass(frozen=True)
class Claim:
    """What is certified for one N.

    Attributes
    ----------
    n : int
        Number of selected tokens N.
    n_unselected : int
        Number of unselected candidates.
    selected : tuple of int
        Selected keys, best first.
    boundary_tie : bool
        Whether equal scores across the boundary make the selected set a convention.
    false_positives, false_negatives : int
        Upper bounds on FP and FN.
    precision, recall, f_score : Fraction
        Lower bounds on P_N, R_N and F_N.
    measured : Fraction
        The measured F_N.
    regime : CellRegime or InversionRegime
        What the bounds follow from.
    """

    n: int
    n_unselected: int
    selected: tuple[int, ...]
    boundary_tie: bool
    false_positives: int
    false_negatives: int
    precision: Fraction
    recall: Fraction
    f_score: Fraction
    measured: Fraction
    regime: CellRegime | InversionRegime

    @property
    def tightness(self) -> Fraction | None:
        """Certified F over measured F; None where the measured F is 0."""
        return self.f_score / self.measured if self.measured else None

    @property
    def verdict(self) -> str:
        """The word for the bound on F_N: separable (1), bounded or vacuous (0)."""
        if self.f_score == 1:
            return "separable"
        return "bounded" if self.f_score else "vacuous"


def claim_to_json(claim: Claim) -> dict[str, Any]:
    """Return a claim as JSON data, exact numbers as fraction strings."""
    if isinstance(claim.regime, CellRegime):
        regime: dict[str, Any] = {
            "name": "cells",
            "cells": [
                {
                    "start": cell.start,
                    "stop": cell.stop,
                    "norm": str(cell.norm),
                    "dot": str(cell.dot),
                }
                for cell in claim.regime.cells
            ],
        }
    else:
        regime = {"name": "inversions", "inversions": claim.regime.inversions}
    return {
        "n": claim.n,
        "n_unselected": claim.n_unselected,
        "selected": list(claim.selected),
        "boundary_tie": claim.boundary_tie,
        "regime": regime,
        "false_positives": claim.false_positives,
        "false_negatives": claim.false_negatives,
        "precision": str(claim.precision),
        "recall": str(claim.recall),
        "f_score": str(claim.f_score),
        "measured": str(claim.measured),
        "verdict": claim.verdict,
    }


def claim_from_json(data: dict[str, Any]) -> Claim:
    """Return a claim from its JSON data; errors of any kind mean a bad file."""
    n, stored = data["n"], data["regime"]
    if stored["name"] == "cells":
        regime: CellRegime | InversionRegime = CellRegime(
            n,
            tuple(
                Cell(c["start"], c["stop"], Fraction(c["norm"]), Fraction(c["dot"]))
                for c in stored["cells"]
            ),
        )
    elif stored["name"] == "inversions":
        regime = InversionRegime(n, stored["inversions"])
    else:
        msg = f"Certificate: regime must be one of {REGIMES}, got {stored['name']!r}."
        raise CertificateFormatError(msg)
    return Claim(
        n,
        data["n_unselected"],
        tuple(data["selected"]),
        data["boundary_tie"],
        data["false_positives"],
        data["false_negatives"],
        Fraction(data["precision"]),
        Fraction(data["recall"]),
        Fraction(data["f_score"]),
        Fraction(data["measured"]),
        regime,
    )
