"""inspect: which tokens of one query are selected, and which lie where they should not.

Membership is exact, decided on integer keys; every printed number is a rounded float.
"""

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.integers import square_root_enclosure
from geobounds.selection import rank
from geobounds.separability import Interval, measure

__all__ = ["Inspection", "TokenRow", "inspect"]

_DEFAULT_N = 8
_FALSE_POSITIVES_SHOWN = 20
_TOKEN_WIDTH = 24
_COLUMNS = ("key", "weight", "norm", "phi", "distance")


@dataclass(frozen=True)
class TokenRow:
    """One candidate; numbers are rounded to float64 (infinite beyond its range).

    Attributes
    ----------
    key : int
        Index of the key.
    token : str or None
        Its text, if known.
    weight, norm, power, distance : float
        alpha, r = ||y||, phi (D9) and the Euclidean D (D5).
    selected : bool
        Whether the key is in S.
    wrong : bool
        Exact: a false negative if selected, else a false positive (D6).
    sink : bool
        Whether the key is the attention sink.
    """

    key: int
    token: str | None
    weight: float
    norm: float
    power: float
    distance: float
    selected: bool
    wrong: bool
    sink: bool


@dataclass(frozen=True)
class Inspection:
    """The candidates of one query, selected or not, and how separable they are.

    Attributes
    ----------
    origin : str
        What produced the head, as far as its ``meta`` says; may be empty.
    query_position, query_token : int, str or None
        The query among the keys, and its text if known.
    n, n_candidates : int
        N and |C|.
    ranking, sink_policy : str
        As asked for; "scores" for an array.
    precision, recall, f_score : Fraction
        P, R and F (D7), exact.
    inversions : int
        Number of inversions (D8).
    margin : Interval
        rho_min - rho_max (D8), to 60 bits; its sign is exact.
    boundary_tie : bool
        Whether the selected set is a convention (D3).
    rho_max, rho_min : float
        Distance of the farthest selected and of the nearest unselected token, rounded.
    selected : tuple of TokenRow
        Best first.
    unselected : tuple of TokenRow
        Nearest first; false positives therefore come first.
    """

    origin: str
    query_position: int
    query_token: str | None
    n: int
    n_candidates: int
    ranking: str
    sink_policy: str
    precision: Fraction
    recall: Fraction
    f_score: Fraction
    inversions: int
    margin: Interval
    boundary_tie: bool
    rho_max: float
    rho_min: float
    selected: tuple[TokenRow, ...]
    unselected: tuple[TokenRow, ...]

    @property
    def false_positives(self) -> tuple[TokenRow, ...]:
        """Unselected tokens with D <= rho_max, nearest first."""
        return tuple(row for row in self.unselected if row.wrong)

    @property
    def false_negatives(self) -> tuple[TokenRow, ...]:
        """Selected tokens with D >= rho_min, best first."""
        return tuple(row for row in self.selected if row.wrong)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data; numbers beyond the range of float64 become None."""
        plain = "origin query_position query_token n n_candidates ranking sink_policy"
        metrics = "precision recall f_score"
        return {
            **{name: getattr(self, name) for name in plain.split()},
            **{name: _exact_json(getattr(self, name)) for name in metrics.split()},
            "inversions": self.inversions,
            "margin": _finite(_middle(self.margin)),
            "boundary_tie": self.boundary_tie,
            "rho_max": _finite(self.rho_max),
            "rho_min": _finite(self.rho_min),
            "selected": [
                _row_json(row) | {"false_negative": row.wrong} for row in self.selected
            ],
            "false_positives": [_row_json(row) for row in self.false_positives],
        }

    def __str__(self) -> str:
        """Return a table: the metrics, the selected tokens, the false positives."""
        query = f"query {self.query_position}"
        if self.query_token is not None:
            query += f" {_shown(self.query_token)}"
        metrics = (
            f"{name} = {x}" + ("" if x.denominator == 1 else f" = {float(x):.4f}")
            for name, x in zip(
                "PRF", (self.precision, self.recall, self.f_score), strict=True
            )
        )
        tie = "yes (the selected set is a convention)" if self.boundary_tie else "no"
        wrong = self.false_positives
        title = (
            f"{query}, {self.n_candidates} candidates, "
            f"ranking {self.ranking}, sink {self.sink_policy}"
        )
        margin = (
            f"margin {_number(_middle(self.margin))} = rho_min "
            f"{_number(self.rho_min, 6)} - rho_max {_number(self.rho_max, 6)}"
        )
        counts = (
            f"inversions {self.inversions}, false positives {len(wrong)}, "
            f"false negatives {len(self.false_negatives)}, boundary tie: {tie}"
        )
        lines = [
            *([self.origin] if self.origin else []),
            title,
            "   ".join([f"N = {self.n}", *metrics]),
            margin,
            counts,
            "",
            "selected, best first (FN: no nearer than some unselected token)",
            *_table(self.selected),
            "",
        ]
        if not wrong:
            lines.append("false positives: none")
        else:
            lines += [
                "false positives, nearest first (no farther than some selected token)",
                *_table(wrong[:_FALSE_POSITIVES_SHOWN]),
            ]
        if len(wrong) > _FALSE_POSITIVES_SHOWN:
            lines.append(f"and {len(wrong) - _FALSE_POSITIVES_SHOWN} others, farther")
        return "\n".join(lines)


def inspect(
    head: HeadData,
    n: int | None = None,
    *,
    query: int = -1,
    ranking: Any = "weight",
    sink_policy: str = "keep",
) -> Inspection:
    """List the selected tokens of one query and what keeps them from being separable.

    Parameters
    ----------
    head : HeadData
        A head with values. ``meta["tokens"]``, one text a key, is shown if present.
    n : int, optional
        Number of selected tokens. Default: 8, or as many as leave one unselected.
    query : int
        Row index of the query.
    ranking : "weight", "contribution" or array_like of shape (n_key,)
        As for ``measure``.
    sink_policy : "keep", "drop" or "compete"
        As for ``measure``.

    Returns
    -------
    Inspection
        Print it for a table. Its false positives and false negatives are exactly
        those that ``measure`` counts.

    Raises
    ------
    ArgumentError
        N, the query, the ranking or the policy is out of range.
    HeadDataError
        The head has no values, or this query's row cannot be used.

    Notes
    -----
    Definitions D1 to D9, Euclidean distance.

    Examples
    --------
    >>> head = HeadData([0.5, 0.25, 0.25], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = inspect(head, 1)
    >>> [row.key for row in found.selected], found.false_positives
    ([0], ())
    """
    order = rank(head, query, ranking, sink_policy, function="inspect")
    if n is None:
        n = max(1, min(_DEFAULT_N, order.n_candidates - 1))
    choice = order.select(n, "inspect")
    head.require_values("inspect")
    options: dict[str, Any] = {"ranking": ranking, "sink_policy": sink_policy}
    found = measure(head, n, query=query, **options)

    exact = ExactGeometry(head, choice)
    squares = exact.squared_distances()
    far, near = max(squares[:n]), min(squares[n:])
    scale = Fraction(2) ** (2 * (exact.w_exponent + exact.v_exponent))
    tokens = _tokens(head)
    rows = [
        TokenRow(
            key=int(key),
            token=tokens[key] if tokens else None,
            weight=float(head.weights[choice.row, key]),
            norm=_root(scale * int(exact.weights[i]) ** 2 * int(exact.norms[i])),
            power=_float(scale * int(power)),
            distance=_root(squares[i]),
            selected=i < n,
            wrong=squares[i] >= near if i < n else squares[i] <= far,
            sink=key == head.sink,
        )
        for i, (key, power) in enumerate(
            zip(choice.keys.tolist(), exact.powers().tolist(), strict=True)
        )
    ]
    behind = sorted(range(n, len(rows)), key=lambda i: (squares[i], rows[i].key))
    position = int(head.query_positions[choice.row])
    return Inspection(
        origin=_origin(head.meta),
        query_position=position,
        query_token=tokens[position] if tokens and position < len(tokens) else None,
        n=choice.n,
        n_candidates=order.n_candidates,
        ranking=ranking if isinstance(ranking, str) else "scores",
        sink_policy=sink_policy,
        precision=found.precision.lower,
        recall=found.recall.lower,
        f_score=found.f_score.lower,
        inversions=found.counts.inversions_lower,
        margin=found.margin,
        boundary_tie=choice.boundary_tie,
        rho_max=_root(far),
        rho_min=_root(near),
        selected=tuple(rows[:n]),
        unselected=tuple(rows[i] for i in behind),
    )


def _tokens(head: HeadData) -> list[str] | None:
    tokens = head.meta.get("tokens")
    if not isinstance(tokens, list) or len(tokens) != head.n_key:
        return None
    return tokens if all(isinstance(text, str) for text in tokens) else None


def _origin(meta: dict[str, Any]) -> str:
    """Name model, layer, head and dtype on one line, as far as they are known."""
    parts = []
    if isinstance(model := meta.get("model"), str):
        fingerprint = meta.get("fingerprint")
        known = f" ({fingerprint[:19]})" if isinstance(fingerprint, str) else ""
        parts.append(_escaped(f"{model}{known}"))
    parts += [
        f"{name} {meta[name]}"
        for name in ("layer", "head")
        if isinstance(meta.get(name), int)
    ]
    if isinstance(dtype := meta.get("dtype"), str):
        parts.append(_escaped(dtype))
    return ", ".join(parts)


def _table(rows: tuple[TokenRow, ...]) -> list[str]:
    # The token stands last, so that no width of its text can move a number.
    with_tokens = any(row.token is not None for row in rows)
    key, *names = _COLUMNS
    title = f"{key:>6}" + "".join(f"{name:>12}" for name in names) + "  mark   "
    lines = [title + "  token" if with_tokens else title.rstrip()]
    for row in rows:
        marks = ("FN", row.selected and row.wrong), ("sink", row.sink)
        mark = " ".join(name for name, holds in marks if holds)
        line = f"{row.key:>6}"
        line += "".join(f"{_number(x):>12}" for x in (row.weight, row.norm, row.power))
        # Distances crowd around the length of the sum: two digits more.
        line += f"{_number(row.distance, 6):>12}  {mark:<7}"
        line += "" if row.token is None else f"  {_shown(row.token)}"
        lines.append(line.rstrip())
    return lines


def _number(x: float, digits: int = 4) -> str:
    return "0" if x == 0 else f"{x:#.{digits}g}".removesuffix(".")


def _shown(text: str) -> str:
    """Return a token's text in quotes, on one line, of bounded width."""
    quote = '"' if "'" in text and '"' not in text else "'"
    pieces: list[str] = []
    width = 0
    for i, character in enumerate(text):
        odd = character == quote or (i == 0 and unicodedata.combining(character))
        piece = _escape(character) if odd else _escaped(character)
        width += sum(_width(c) for c in piece)
        if width > _TOKEN_WIDTH:
            return f"{quote}{''.join(pieces)}{quote}..."
        pieces.append(piece)
    return f"{quote}{''.join(pieces)}{quote}"


def _escaped(text: str) -> str:
    """Escape what a terminal may not print as it stands.

    Right-to-left letters are escaped too: they would reorder the numbers of their line.
    """
    return "".join(
        c
        if c != "\\"
        and c.isprintable()
        and unicodedata.bidirectional(c) not in ("R", "AL", "AN")
        and not 0xFE00 <= ord(c) <= 0xFE0F  # variation selectors change widths
        else _escape(c)
        for c in text
    )


def _escape(character: str) -> str:
    if character in "\\'\"":
        return f"\\{character}"
    if character.isascii():
        return repr(character)[1:-1]
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _exact_json(x: Fraction) -> dict[str, Any]:
    return {"exact": str(x), "decimal": float(x)}


def _row_json(row: TokenRow) -> dict[str, Any]:
    return {"key": row.key, "token": row.token, "weight": row.weight} | {
        "norm": _finite(row.norm),
        "power": _finite(row.power),
        "distance": _finite(row.distance),
        "sink": row.sink,
    }


def _finite(x: float) -> float | None:
    return x if isfinite(x) else None


def _middle(interval: Interval) -> float:
    return _float((interval.lower + interval.upper) / 2)


def _root(square: Fraction) -> float:
    low, high = square_root_enclosure(square)
    return _float((low + high) / 2)


def _float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf
