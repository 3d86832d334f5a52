"""What is certified for one N, as an object and as JSON data."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geobounds.errors import CertificateFormatError
from geobounds.integers import parse_fraction
from geobounds.pairwise import PairwiseRegime
from geobounds.regime import Cell, CellRegime, InversionRegime

__all__ = ["REGIMES", "Claim", "Regime", "claim_from_json", "claim_to_json"]

REGIMES = (
    "cells",
    "pairwise",
    "pairwise-roles",
    "pairwise-roles-norms",
    "inversions",
)
Regime = CellRegime | PairwiseRegime | InversionRegime

_SPANS = ("norms_selected", "norms_unselected", "sink_norm")
_NUMBERS = (
    "cosine_selected",
    "cosine_across",
    "sink_selected",
    "sink_across",
    "pull_across",
)


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
    regime : CellRegime, PairwiseRegime or InversionRegime
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
    regime: Regime

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
    return {
        "n": claim.n,
        "n_unselected": claim.n_unselected,
        "selected": list(claim.selected),
        "boundary_tie": claim.boundary_tie,
        "regime": _regime_to_json(claim.regime),
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
    return Claim(
        data["n"],
        data["n_unselected"],
        tuple(data["selected"]),
        data["boundary_tie"],
        data["false_positives"],
        data["false_negatives"],
        parse_fraction(data["precision"]),
        parse_fraction(data["recall"]),
        parse_fraction(data["f_score"]),
        parse_fraction(data["measured"]),
        _regime_from_json(data["n"], data["regime"]),
    )


def _regime_to_json(regime: Regime) -> dict[str, Any]:
    if isinstance(regime, InversionRegime):
        return {"name": "inversions", "inversions": regime.inversions}
    if isinstance(regime, CellRegime):
        cells = [
            {"start": c.start, "stop": c.stop, "norm": str(c.norm), "dot": str(c.dot)}
            for c in regime.cells
        ]
        return {"name": "cells", "cells": cells}
    found: dict[str, Any] = {"name": regime.name}
    for name in _SPANS:
        span = getattr(regime, name)
        found[name] = None if span is None else [str(x) for x in span]
    for name in _NUMBERS:
        number = getattr(regime, name)
        found[name] = None if number is None else str(number)
    found["token_norms"] = [
        [key, str(low), str(high)] for key, low, high in regime.token_norms
    ]
    return found


def _regime_from_json(n: int, data: dict[str, Any]) -> Regime:
    name = data["name"]
    if name not in REGIMES:
        msg = f"Certificate: regime must be one of {REGIMES}, got {name!r}."
        raise CertificateFormatError(msg)
    if name == "inversions":
        return InversionRegime(n, data["inversions"])
    if name == "cells":
        cells = (
            Cell(
                c["start"],
                c["stop"],
                parse_fraction(c["norm"]),
                parse_fraction(c["dot"]),
            )
            for c in data["cells"]
        )
        return CellRegime(n, tuple(cells))
    scope = name.removeprefix("pairwise").removeprefix("-") or "all"
    numbers: dict[str, Any] = {}
    for k in _SPANS:
        numbers[k] = None
        if data[k] is not None:
            low, high = data[k]
            numbers[k] = (parse_fraction(low), parse_fraction(high))
    for k in _NUMBERS:
        numbers[k] = None if data[k] is None else parse_fraction(data[k])
    return PairwiseRegime(
        scope,
        None if scope == "all" else n,
        **numbers,
        token_norms=tuple(
            (key, parse_fraction(low), parse_fraction(high))
            for key, low, high in data["token_norms"]
        ),
    )
