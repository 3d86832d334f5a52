"""What is certified for one N, as an object and as JSON data."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geobounds.errors import AssumptionError, CertificateFormatError
from geobounds.head import HeadData
from geobounds.integers import parse_fraction
from geobounds.pairwise import PairwiseRegime, covered_pairs, sink_place
from geobounds.regime import Cell, CellRegime, InversionRegime
from geobounds.selection import Selection
from geobounds.separability import Interval

__all__ = [
    "REGIMES",
    "Claim",
    "Regime",
    "claim_from_json",
    "claim_to_json",
    "require_usable",
]

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
    measured : Fraction, Interval or None
        The measured F_N; an interval where rounding leaves it open and the exact path
        was forbidden; None for a head without values.
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
    measured: Fraction | Interval | None
    regime: Regime

    @property
    def tightness(self) -> Fraction | None:
        """Certified F over measured F; None where the measured F is 0 or not known."""
        if not isinstance(self.measured, Fraction) or not self.measured:
            return None
        return self.f_score / self.measured

    @property
    def verdict(self) -> str:
        """The word for the bound on F_N: separable (1), bounded or vacuous (0).

        ``undecided`` where rounding leaves open whether F_N = 1 and the exact path was
        forbidden.
        """
        if self.f_score == 1:
            return "separable"
        x = self.measured
        if isinstance(x, Interval) and x.lower < x.upper == 1:
            return "undecided"
        return "bounded" if self.f_score else "vacuous"


def require_usable(
    regime: PairwiseRegime, head: HeadData, selection: Selection
) -> None:
    """Refuse a regime given that no certificate can hold, whatever the values are.

    It has numbers without a use, or lacks a cosine though values are not zero.
    """
    sink_at = sink_place(head, selection)
    sink_selected = sink_at is not None and sink_at < selection.n
    tokens = {key for key, _, _ in regime.token_norms}
    named = set(selection.keys.tolist()) if regime.scope == "roles-norms" else set()
    missing = _missing_cosines(regime, head, selection)
    if regime.pull_across is not None and not sink_selected:
        name = "pull_across"
        need = "be left out unless the sink is selected, got a number"
    elif not tokens <= named:
        name = "token_norms"
        need = f"hold candidates only, for roles-norms, got key {min(tokens - named)}"
    elif missing:
        name = missing[0]
        need = "be given where no value is zero, got None"
    else:
        return
    msg = f"certify: {name} must {need}."
    raise AssumptionError(msg, statement="T4", assumption=name, measured=None)


def _missing_cosines(
    regime: PairwiseRegime, head: HeadData, selection: Selection
) -> list[str]:
    """Return the cosines left out though both values of a pair cannot be zero."""
    spans, sink_at = regime._spans(head, selection), sink_place(head, selection)
    solid = {place for place, (low, _) in enumerate(spans) if low > 0}
    covered = covered_pairs(regime.scope, selection.n, sink_at, len(spans))
    return [
        name
        for name, (rows, columns) in covered.items()
        if getattr(regime, name) is None
        and any(i != k for i in solid.intersection(rows) for k in solid & {*columns})
    ]


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
        "measured": _measured_to_json(claim.measured),
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
        _measured_from_json(data["measured"]),
        _regime_from_json(data["n"], data["regime"]),
    )


def _measured_to_json(measured: Fraction | Interval | None) -> Any:
    if isinstance(measured, Interval):
        return [str(measured.lower), str(measured.upper)]
    return None if measured is None else str(measured)


def _measured_from_json(data: Any) -> Fraction | Interval | None:
    if isinstance(data, list):
        low, high = map(parse_fraction, data)
        return Interval(low, high)
    return None if data is None else parse_fraction(data)


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
        msg = f"Certificate: regime must be one of {REGIMES}, got {name!r:.60}."
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
