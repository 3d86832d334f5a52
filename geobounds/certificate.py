"""certify: conservative lower bounds on P, R and F that anyone can check again.

A certificate holds what the head was (a SHA-256 of its exact data), which definitions
were used, and for each N a regime, the counts it implies and the bounds they give. All
numbers are exact. ``geobounds.verify`` repeats the argument without this module.
"""

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, overload

import numpy as np

from geobounds.bounds import inversion_bounds
from geobounds.claims import (
    REGIMES,
    Claim,
    Regime,
    claim_from_json,
    claim_to_json,
    require_usable,
)
from geobounds.errors import ArgumentError, CertificateFormatError
from geobounds.files import write_text
from geobounds.head import HeadData
from geobounds.pairwise import PairwiseRegime, check_pairwise, fit_pairwise
from geobounds.regime import CellRegime, InversionRegime, check_cells, fit_cells
from geobounds.selection import Ranking, Selection, rank, scores_of
from geobounds.separability import Interval, interval_counts, selection_counts
from geobounds.verify import unique_keys

__all__ = ["Certificate", "CertificateSet", "certify", "certify_all"]

FORMAT = "geobounds-certificate"
FORMAT_VERSION = 2
SET_FORMAT = "geobounds-certificates"
# Version 1 had no interval of the measured F and no head without values.
_READABLE = (1, 2)


class Certificate(Mapping[int, Claim]):
    """Claims by N for one query of one head, with all that is needed to check them.

    Attributes
    ----------
    claims : dict of int to Claim
        The claims; the certificate itself is a mapping N -> Claim.
    definitions : dict
        Ranking, sink policy, sink, distance, ties and comparison.
    head : dict
        SHA-256 of the head data, query position, sizes and attention mass.
    provenance, versions : dict
        What produced the head, and with which software. Informative only.
    """

    def __init__(
        self,
        claims: Iterable[Claim],
        *,
        definitions: dict[str, Any],
        head: dict[str, Any],
        provenance: dict[str, Any],
        versions: dict[str, str],
        format_version: int = FORMAT_VERSION,
    ) -> None:
        self.claims = {claim.n: claim for claim in claims}
        self.definitions = definitions
        self.head = head
        self.provenance = provenance
        self.versions = versions
        self.format_version = format_version

    def __getitem__(self, n: int) -> Claim:
        """Return the claim for N."""
        return self.claims[n]

    def __iter__(self) -> Iterator[int]:
        """Iterate over N."""
        return iter(self.claims)

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self.claims)

    def __repr__(self) -> str:
        """One line."""
        return (
            f"Certificate(n={list(self)}, query_position={self.head['query_position']})"
        )

    def __str__(self) -> str:
        """Return a table: bounds, measured F, how much of it is certified, verdict."""
        head, chosen = self.head, self.definitions
        title = (
            f"query {head['query_position']}, {head['n_candidates']} candidates, "
            f"ranking {chosen['ranking']}, sink {chosen['sink_policy']}"
        )
        columns = f"{'N':>5} {'P >=':>7} {'R >=':>7} {'F >=':>7} {'F':>7} {'F>=/F':>6}"
        lines = [title, f"{columns}  verdict"]
        for c in self.claims.values():
            share = "-" if c.tightness is None else f"{float(c.tightness):.3f}"
            lines.append(
                f"{c.n:>5} {_down(c.precision):>7} {_down(c.recall):>7} "
                f"{_down(c.f_score):>7} {_shown(c.measured):>7} {share:>6}  "
                f"{c.verdict}{' (boundary tie)' if c.boundary_tie else ''}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON data, its own SHA-256 included."""
        body = {
            "format": FORMAT,
            "version": self.format_version,
            "definitions": self.definitions,
            "head": self.head,
            "claims": [claim_to_json(claim) for claim in self.claims.values()],
            "provenance": self.provenance,
            "versions": self.versions,
        }
        return body | {"sha256": _digest(body)}

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON, whole or not at all."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Read a certificate; this checks its form and digest, not its claims.

        Raises
        ------
        CertificateFormatError
            Not such a file, another version, or a digest that does not fit.
        """
        return cls.from_dict(_read(path))

    @classmethod
    def from_dict(cls, data: Any) -> "Certificate":
        """Build a certificate from the JSON data of ``to_dict``."""
        try:
            _require_format(data, FORMAT, _READABLE)
            certificate = cls(
                [claim_from_json(claim) for claim in data["claims"]],
                definitions=dict(data["definitions"]),
                head=dict(data["head"]),
                provenance=dict(data["provenance"]),
                versions=dict(data["versions"]),
                format_version=data["version"],
            )
            same = certificate.to_dict() == data
            str(certificate), repr(certificate)  # what cannot be shown is malformed
        except (
            LookupError,
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
        ) as error:
            if isinstance(error, CertificateFormatError):
                raise
            msg = f"Certificate: a field is missing or malformed ({error!r})."
            raise CertificateFormatError(msg) from error
        if not same:
            raise CertificateFormatError(_CHANGED)
        return certificate


class CertificateSet(Sequence[Certificate]):
    """Certificates of several heads in one file, such as all heads of a model.

    Attributes
    ----------
    certificates : tuple of Certificate
        In the order given; the set itself is a sequence of them.
    """

    def __init__(self, certificates: Iterable[Certificate]) -> None:
        self.certificates = tuple(certificates)
        if not self.certificates:
            msg = "CertificateSet: certificates must not be empty."
            raise ArgumentError(msg)

    @overload
    def __getitem__(self, place: int) -> Certificate: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Certificate, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        """Return the certificate at this place."""
        return self.certificates[place]

    def __len__(self) -> int:
        """Return the number of certificates."""
        return len(self.certificates)

    def __repr__(self) -> str:
        """One line."""
        return f"CertificateSet({len(self)} certificates)"

    def __str__(self) -> str:
        """Return one table a certificate."""
        return "\n\n".join(map(str, self.certificates))

    def to_dict(self) -> dict[str, Any]:
        """Return the set as JSON data, its own SHA-256 included."""
        body = {
            "format": SET_FORMAT,
            "version": FORMAT_VERSION,
            "certificates": [c.to_dict() for c in self.certificates],
        }
        return body | {"sha256": _digest(body)}

    def save(self, path: str | Path) -> None:
        """Write the set as JSON, whole or not at all."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "CertificateSet":
        """Read a set; raises CertificateFormatError as ``Certificate.load`` does."""
        return cls.from_dict(_read(path))

    @classmethod
    def from_dict(cls, data: Any) -> "CertificateSet":
        """Build a set from the JSON data of ``to_dict``."""
        _require_format(data, SET_FORMAT, (FORMAT_VERSION,))
        members = data.get("certificates")
        if not isinstance(members, list) or not members:
            msg = "Certificate: certificates must be a list of at least one."
            raise CertificateFormatError(msg)
        found = cls(Certificate.from_dict(member) for member in members)
        if found.to_dict() != data:
            raise CertificateFormatError(_CHANGED)
        return found


def certify_all(heads: Iterable[HeadData], **options: Any) -> CertificateSet:
    """Certify several heads, such as all of a model, with the same options.

    Parameters
    ----------
    heads : iterable of HeadData
        For what ``empirical.heads`` returns: ``heads(model, ids).values()``.
    **options
        As for ``certify``.

    Returns
    -------
    CertificateSet
        One certificate a head, in order; ``verify(set, *heads)`` checks it.
    """
    if not isinstance(heads, Iterable):
        msg = f"certify_all: heads must be several, got {type(heads).__name__}."
        raise TypeError(msg)
    return CertificateSet(certify(head, **options) for head in heads)


def certify(
    head: HeadData,
    n: int | Iterable[int] | None = None,
    *,
    query: int = -1,
    regime: str | CellRegime | PairwiseRegime = "cells",
    resolution: int = 9,
    ranking: Any = "weight",
    sink_policy: str = "keep",
    settle_doubt: bool = True,
) -> Certificate:
    """Certify lower bounds on precision, recall and F of one query (Euclidean).

    Parameters
    ----------
    head : HeadData
        A head with values.
    n : int or iterable of int, optional
        Numbers of selected tokens. Default: the powers of two from 2 below the
        number of candidates.
    query : int
        Row index of the query.
    regime : str, CellRegime or PairwiseRegime
        What the bounds follow from: "cells" fitted to the head (T6); "pairwise",
        "pairwise-roles" or "pairwise-roles-norms" (T4); "inversions", their number
        (T2); or a regime fitted elsewhere, checked before anything is claimed.
    resolution : int
        Largest number of cells.
    ranking : "weight", "contribution" or array_like of shape (n_key,)
        As for ``measure``.
    sink_policy : "keep", "drop" or "compete"
        As for ``measure``.
    settle_doubt : bool
        Whether comparisons within the rounding radius are settled exactly. If not,
        the measured F may be an interval, cells are rounded outward, and where F = 1
        stays open the verdict is "undecided".

    Returns
    -------
    Certificate
        A mapping N -> Claim with exact fractions; print it for a table.

    Raises
    ------
    ArgumentError
        N, the query, the regime or another argument is out of range.
    AssumptionError
        A number of the given regime does not hold for this head.
    HeadDataError
        The head has no values, or this query's row cannot be used.

    Notes
    -----
    A head without values can be certified under a PairwiseRegime given: the claims are
    then about all values that meet it, and nothing is measured.

    Statements T1 with T6 (cells) or T4 (pairwise), or T2 (inversions). All arithmetic
    behind a claim is in integers and fractions, so no rounding enters. Source: T1,
    T2b, T6 and T4's closed form are ours; the definitions, T2a and the setting of
    T4 are from arXiv 2602.01893.

    Examples
    --------
    >>> head = HeadData([0.4, 0.3, 0.2, 0.1], [[1, 0], [1, 0], [0, 1], [-1, 0]])
    >>> print(certify(head, 2, sink_policy="keep"))
    query 3, 4 candidates, ranking weight, sink keep
        N    P >=    R >=    F >=       F  F>=/F  verdict
        2  1.0000  1.0000  1.0000  1.0000  1.000  separable
    """
    order = rank(head, query, ranking, sink_policy, function="certify")
    grid = _grid(n, order, regime)
    if not isinstance(regime, PairwiseRegime):
        head.require_values("certify")
    claims = [
        _claim(head, order.select(k, "certify"), regime, resolution, settle_doubt)
        for k in grid
    ]
    row = order.row
    scores = None
    if not isinstance(ranking, str):
        scores = scores_of(head, ranking, "certify")
    definitions: dict[str, Any] = {
        "distance": "euclidean",
        "ranking": ranking if scores is None else "scores",
        "sink_policy": sink_policy,
        "sink": head.sink,
        "ties": "smaller index first",
        "comparison": "ties count against separability",
    }
    if scores is not None:
        definitions["scores"] = [
            str(Fraction(float(x))) if seen and np.isfinite(x) else None
            for x, seen in zip(scores, head.visible[row], strict=True)
        ]
    return Certificate(
        claims,
        definitions=definitions,
        head={
            "sha256": head.digest(row),
            "query_position": int(head.query_positions[row]),
            "n_key": head.n_key,
            "n_candidates": order.n_candidates,
            "d_head": None if head.values is None else head.d_head,
            "mass": str(_exact_mass(head, row)),
        },
        # A certificate is handed on; the text that was read need not be.
        provenance={k: v for k, v in head.meta.items() if k != "tokens"},
        versions=_versions(),
    )


def _grid(
    n: int | Iterable[int] | None,
    order: Ranking,
    regime: str | CellRegime | PairwiseRegime,
) -> list[int]:
    if isinstance(regime, str) and regime not in REGIMES:
        msg = (
            f"certify: regime must be one of {', '.join(REGIMES)} or a fitted regime, "
            f"got regime={regime!r}."
        )
        raise ArgumentError(msg)
    if not isinstance(regime, (str, CellRegime, PairwiseRegime)):
        msg = (
            "certify: regime must be a name, a CellRegime or a PairwiseRegime, "
            f"got {type(regime).__name__}."
        )
        raise TypeError(msg)
    own = None if isinstance(regime, str) else regime.n
    if n is None:
        if own is not None:
            return [own]
        count = order.n_candidates
        grid = [2**k for k in range(1, count.bit_length()) if 2**k < count]
        if not grid:
            msg = (
                "certify: at least 3 candidates are needed for the default n, "
                f"got {count}. Pass n=1 for 2 candidates."
            )
            raise ArgumentError(msg)
        return grid
    # Anything that is not iterable is one N; select() refuses what is no integer.
    grid = list(n) if isinstance(n, Iterable) else [n]
    for k in grid:
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
            msg = f"certify: n must be an int, got n={k!r:.40}."
            raise TypeError(msg)
    if not grid or len(set(grid)) < len(grid):
        msg = f"certify: n must hold different numbers, at least one, got n={grid}."
        raise ArgumentError(msg)
    if own is not None and grid != [own]:
        msg = f"certify: n must be the regime's own n={own}, got n={grid}."
        raise ArgumentError(msg)
    return grid


def _claim(
    head: HeadData,
    selection: Selection,
    regime: str | CellRegime | PairwiseRegime,
    resolution: int,
    settle_doubt: bool,  # noqa: FBT001 - handed through
) -> Claim:
    measured: Fraction | Interval | None = None
    true = None
    if head.values is not None:
        true = selection_counts(head, selection, settle_doubt=settle_doubt)
        measured = true.f_score.lower if true.f_score.exact else true.f_score
    n, n_unselected = selection.n, len(selection.unselected)
    if true is not None and regime == "inversions":
        g = true.inversions_upper
        bounds = inversion_bounds(n, n_unselected, g)
        fp, fn = min(g, n_unselected), min(g, n)
        p, r, f = bounds.precision, bounds.recall, bounds.f_joint
        found: Regime = InversionRegime(n, g)
    else:
        fitted = _fitted(head, selection, regime, resolution, settle_doubt)
        counts = interval_counts(fitted.enclosure(head, selection))
        found = fitted
        fp, fn = counts.fp_upper, counts.fn_upper
        p, r, f = counts.precision.lower, counts.recall.lower, counts.f_score.lower
    return Claim(
        n,
        n_unselected,
        tuple(int(k) for k in selection.selected),
        selection.boundary_tie,
        fp,
        fn,
        p,
        r,
        f,
        measured,
        found,
    )


def _fitted(
    head: HeadData,
    selection: Selection,
    regime: str | CellRegime | PairwiseRegime,
    resolution: int,
    settle_doubt: bool,  # noqa: FBT001 - handed through
) -> CellRegime | PairwiseRegime:
    """Fit the regime of that name, or check the one given."""
    if isinstance(regime, CellRegime):
        check_cells(regime, head, selection)
        return regime
    if isinstance(regime, PairwiseRegime):
        if head.values is not None:
            check_pairwise(regime, head, selection)
        require_usable(regime, head, selection)
        return regime
    if regime == "cells":
        return fit_cells(
            head, selection, resolution=resolution, settle_doubt=settle_doubt
        )
    scope = regime.removeprefix("pairwise").removeprefix("-") or "all"
    return fit_pairwise(head, selection, scope)


def _exact_mass(head: HeadData, row: int) -> Fraction:
    seen = head.weights[row][head.visible[row]]
    return sum((Fraction(float(x)) for x in seen), Fraction(0))


def _down(x: Fraction) -> str:
    """Four decimals, rounded down: a printed bound must not exceed the bound."""
    return f"{int(x * 10_000) / 10_000:.4f}"


def _shown(measured: Fraction | Interval | None) -> str:
    """Return the measured F; the middle of an interval is marked."""
    if measured is None:
        return "-"
    if isinstance(measured, Interval):
        return f"~{float(measured):.4f}"
    return _down(measured)


_CHANGED = (
    "Certificate: sha256 must fit the content, got another digest or unknown fields. "
    "The file was changed."
)


def _read(path: str | Path) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=unique_keys)
    except (OSError, TypeError, ValueError, RecursionError) as error:
        msg = f"Certificate: {path} must be a JSON file ({error})."
        raise CertificateFormatError(msg) from error


def _require_format(data: Any, kind: str, versions: tuple[int, ...]) -> None:
    facts = data if isinstance(data, dict) else {}
    found = facts.get("format"), facts.get("version")
    if found[0] != kind or type(found[1]) is not int or found[1] not in versions:
        known = " or ".join(map(str, versions))
        msg = (
            f"Certificate: format must be {kind} version {known}, "
            f"got {found[0]!r:.60} version {found[1]!r:.60}."
        )
        raise CertificateFormatError(msg)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "numpy": np.__version__}
    try:
        found["geobounds"] = version("geobounds")
    except PackageNotFoundError:
        found["geobounds"] = "not installed"
    return found


def _digest(body: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON: sorted keys, no spaces, ASCII."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
