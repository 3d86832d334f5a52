"""The sink-aware constant-norm regime (T4): norms and cosines between two numbers each.

The setting of the paper: values of all tokens but the sink have norms in one interval
and pairwise cosines in another; the sink has a norm and signed cosines of its own.
Three scopes share one algebra. ``all``: one regime for the head. ``roles``: only what
a lower bound for one N needs, the least cosine within the selected tokens and the
greatest between selected and unselected ones. ``roles-norms``: the same with every
token's norm.

By role with the sink selected, the greatest cosine across and the sink's own are
seldom attained by one token, so a single number for their sum is kept beside them: the
greatest projection of the aggregate on the direction of an unselected value.
"""

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from geobounds.cosines import (
    Span,
    UnitVectors,
    cosine_at_least,
    cosine_at_most,
    norm_within,
)
from geobounds.errors import ArgumentError, AssumptionError
from geobounds.exact import ExactGeometry
from geobounds.head import HeadData
from geobounds.integers import exact_number, shown, square_root_enclosure
from geobounds.power import Enclosure
from geobounds.selection import Selection, rank
from geobounds.separability import Counts, interval_counts

__all__ = [
    "SCOPES",
    "PairwiseRegime",
    "check_pairwise",
    "covered_pairs",
    "fit_pairwise",
    "float_cosine",
    "norm_bounds",
    "rounded_pairwise_counts",
    "sink_place",
]

SCOPES = ("all", "roles", "roles-norms")
# Every cosine in words, and whether it bounds from below.
_COSINES = {
    "cosine_selected": ("the least cosine", True),
    "cosine_across": ("the greatest cosine", False),
    "sink_selected": ("the sink's least cosine", True),
    "sink_across": ("the sink's greatest cosine", False),
}
_UNIT = 2.0**-53


@dataclass(frozen=True)
class PairwiseRegime:
    """Numbers about norms and cosines of one query that imply bounds (T4).

    Attributes
    ----------
    scope : "all", "roles" or "roles-norms"
        Which pairs the numbers cover.
    n : int or None
        N that the roles belong to; None for ``all``.
    norms_selected, norms_unselected : (Fraction, Fraction) or None
        Norms of the values of non-sink tokens by role lie between; None if there are
        none. The same for both roles in scope ``all``.
    cosine_selected : Fraction or None
        At most every cosine of two selected non-sink tokens (``all``: mu-).
    cosine_across : Fraction or None
        At least every cosine of a selected and an unselected one (``all``: mu+).
    sink_norm : (Fraction, Fraction) or None
        The sink's norm lies between; None if the sink is no candidate.
    sink_selected : Fraction or None
        At most every cosine of the sink with a selected token (``all``: with any;
        sigma-). Used where the sink is selected.
    sink_across : Fraction or None
        At least every cosine of the sink with a token of the other role (``all``:
        with any; sigma+).
    pull_across : Fraction or None
        At least <v_j / ||v_j||, s_N> for every unselected non-sink token; by role and
        with the sink selected only.
    token_norms : tuple of (key, Fraction, Fraction)
        Norm of every candidate, for ``roles-norms``.
    """

    scope: str
    n: int | None
    norms_selected: Span | None
    norms_unselected: Span | None
    cosine_selected: Fraction | None
    cosine_across: Fraction | None
    sink_norm: Span | None
    sink_selected: Fraction | None
    sink_across: Fraction | None
    pull_across: Fraction | None = None
    token_norms: tuple[tuple[int, Fraction, Fraction], ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that no head can satisfy."""
        self._make_exact()
        if self.scope not in SCOPES:
            msg = (
                f"PairwiseRegime: scope must be one of {', '.join(SCOPES)}, "
                f"got scope={self.scope!r}."
            )
            raise ArgumentError(msg)
        if (self.n is None) != (self.scope == "all"):
            msg = (
                "PairwiseRegime: n must be given for roles and only for them, got "
                f"scope={self.scope!r} with n={self.n}."
            )
            raise ArgumentError(msg)
        if self.scope == "all":
            self._refuse_roles()
        keys = [key for key, _, _ in self.token_norms]
        if len(set(keys)) < len(keys):
            msg = "PairwiseRegime: token_norms must name every key once."
            raise ArgumentError(msg)
        spans = [self.norms_selected, self.norms_unselected, self.sink_norm]
        spans += [(low, high) for _, low, high in self.token_norms]
        for span in spans:
            if span is not None and not 0 <= span[0] <= span[1]:
                msg = (
                    "PairwiseRegime: norms must satisfy 0 <= least <= greatest, got "
                    f"{shown(span[0])} and {shown(span[1])}."
                )
                raise ArgumentError(msg)

    def _make_exact(self) -> None:
        """Take floats for the exact numbers they hold: no comparison may round."""
        for name in ("norms_selected", "norms_unselected", "sink_norm"):
            span = getattr(self, name)
            if span is not None:
                object.__setattr__(self, name, _exact_span(span, name))
        for name in (
            "cosine_selected",
            "cosine_across",
            "sink_selected",
            "sink_across",
            "pull_across",
        ):
            number = getattr(self, name)
            if number is not None:
                exact = exact_number(number, name, "PairwiseRegime")
                object.__setattr__(self, name, exact)
        try:
            norms = tuple(
                (k, *_exact_span(ends, f"token_norms of {k}"))
                for k, *ends in self.token_norms
            )
        except TypeError as error:
            msg = (
                "PairwiseRegime: token_norms must hold (key, least, greatest), "
                f"got {self.token_norms!r:.60}."
            )
            raise ArgumentError(msg) from error
        object.__setattr__(self, "token_norms", norms)

    def _refuse_roles(self) -> None:
        """Refuse numbers that differ by role in the regime of all pairs."""
        for low, high in (
            (self.cosine_selected, self.cosine_across),
            (self.sink_selected, self.sink_across),
        ):
            if low is not None and high is not None and low > high:
                msg = (
                    "PairwiseRegime: the least cosine must not exceed the "
                    f"greatest, got {shown(low)} > {shown(high)}."
                )
                raise ArgumentError(msg)
        if self.norms_selected != self.norms_unselected:
            msg = "PairwiseRegime: norms of both roles must be equal for all pairs."
            raise ArgumentError(msg)
        if self.pull_across is not None:
            msg = "PairwiseRegime: pull_across must be None for all pairs."
            raise ArgumentError(msg)

    @property
    def name(self) -> str:
        """Its name in ``certify``."""
        return "pairwise" if self.scope == "all" else f"pairwise-{self.scope}"

    @property
    def cosines(self) -> tuple[Any, ...]:
        """Least, greatest, sink's least and sink's greatest cosine; 0 for None.

        A cosine that is None belongs to no pair of non-zero values, so its inner
        products are 0.
        """
        found = (
            self.cosine_selected,
            self.cosine_across,
            self.sink_selected,
            self.sink_across,
        )
        return tuple(Fraction(0) if x is None else x for x in found)

    @classmethod
    def fit(
        cls,
        head: HeadData,
        *,
        n: int | None = None,
        query: int = -1,
        ranking: Any = "weight",
        sink_policy: str = "keep",
        exact_norms: bool = False,
    ) -> "PairwiseRegime":
        """Fit the regime to one query, rounded outward.

        Parameters
        ----------
        head : HeadData
            A head with values.
        n : int, optional
            If given, the role-split regime for that N; else all pairs.
        query, ranking, sink_policy
            As for ``measure``.
        exact_norms : bool
            Keep every token's norm; needs ``n``.

        Returns
        -------
        PairwiseRegime
            Numbers that the head satisfies, each within a few roundings of the
            tightest.
        """
        if exact_norms and n is None:
            msg = "PairwiseRegime: exact_norms must come with n, got n=None."
            raise ArgumentError(msg)
        order = rank(head, query, ranking, sink_policy, function="PairwiseRegime")
        head.require_values("PairwiseRegime")
        selection = order.select(1 if n is None else n, "PairwiseRegime")
        scope = "all" if n is None else "roles-norms" if exact_norms else "roles"
        return fit_pairwise(head, selection, scope)

    def check(
        self,
        head: HeadData,
        *,
        query: int = -1,
        ranking: Any = "weight",
        sink_policy: str = "keep",
    ) -> None:
        """Raise AssumptionError unless every number holds for the head, exactly."""
        order = rank(head, query, ranking, sink_policy, function="PairwiseRegime")
        head.require_values("PairwiseRegime")
        selection = order.select(self.n or 1, "PairwiseRegime")
        check_pairwise(self, head, selection)

    def enclosure(self, head: HeadData, selection: Selection) -> Enclosure:
        """Return exact one-sided intervals around phi, in selection order.

        Notes
        -----
        Statement T4. Selected: hi = max of -r^2 - 2 r X over r in [r-, r+], at
        r = clip(-X, r-, r+). Unselected: lo = min of r^2 - 2 r X, at clip(X, r-, r+).
        X bounds the sum of the inner products over r with the other selected tokens.
        Only the head's weights are used: the regime stands for its values.
        """
        weights = [Fraction(float(w)) for w in _weights(head, selection)]
        spans = self._spans(head, selection)
        low, high = (np.empty(len(weights), dtype=object) for _ in range(2))
        low[:] = [w * s[0] for w, s in zip(weights, spans, strict=True)]
        high[:] = [w * s[1] for w, s in zip(weights, spans, strict=True)]
        bound = _one_sided(low, high, selection.n, sink_place(head, selection), self)
        return _enclosure(bound, selection.n)

    def _spans(self, head: HeadData, selection: Selection) -> list[Span]:
        """Norm interval of every candidate."""
        sink_at = sink_place(head, selection)
        if self.scope == "roles-norms":
            known = {key: (low, high) for key, low, high in self.token_norms}
            missing = [int(key) for key in selection.keys if int(key) not in known]
            if missing:
                msg = (
                    "PairwiseRegime: token_norms must hold every candidate, got none "
                    f"for key {missing[0]}."
                )
                raise AssumptionError(
                    msg, statement="T4", assumption="norms given", measured=None
                )
            return [known[int(key)] for key in selection.keys]
        spans: list[Span] = []
        for i in range(len(selection.keys)):
            own = self.norms_selected if i < selection.n else self.norms_unselected
            span = self.sink_norm if i == sink_at else own
            if span is None:
                msg = (
                    "PairwiseRegime: norms of every role present must be given, got "
                    f"none for key {selection.keys[i]}."
                )
                raise AssumptionError(
                    msg, statement="T4", assumption="norms given", measured=None
                )
            spans.append(span)
        return spans


def _exact_span(ends: Any, name: str) -> Span:
    """Return two ends as exact numbers, or refuse them by their name."""
    try:
        low, high = ends
    except (TypeError, ValueError) as error:
        msg = f"PairwiseRegime: {name} must be (least, greatest), got {ends!r:.40}."
        raise ArgumentError(msg) from error
    return (
        exact_number(low, name, "PairwiseRegime"),
        exact_number(high, name, "PairwiseRegime"),
    )


def fit_pairwise(
    head: HeadData,
    selection: Selection,
    scope: str,
    vectors: UnitVectors | None = None,
) -> PairwiseRegime:
    """Fit a regime to one selection; see ``PairwiseRegime.fit``."""
    x = vectors or UnitVectors(head, selection.keys)
    n, sink_at = selection.n, sink_place(head, selection)
    place = np.arange(len(selection.keys))
    plain = place != (-1 if sink_at is None else sink_at)
    if scope == "all":
        inside = outside = plain
    else:
        inside, outside = plain & (place < n), plain & (place >= n)
    sink = place == sink_at if sink_at is not None else np.zeros_like(plain)
    across = plain
    if scope != "all" and sink_at is not None:
        across = outside if sink_at < n else inside
    return PairwiseRegime(
        scope,
        None if scope == "all" else n,
        x.norm_span(inside),
        x.norm_span(outside),
        x.least_cosine(inside, inside),
        x.greatest_cosine(inside, outside),
        x.norm_span(sink),
        x.least_cosine(sink, inside),
        x.greatest_cosine(sink, across),
        x.greatest_pull(head, selection, outside)
        if scope != "all" and sink_at is not None and sink_at < n
        else None,
        x.all_norms(selection.keys) if scope == "roles-norms" else (),
    )


def check_pairwise(
    regime: PairwiseRegime, head: HeadData, selection: Selection
) -> None:
    """Raise AssumptionError unless the regime holds for this selection, exactly."""
    keys, n = selection.keys.tolist(), selection.n
    sink_at = sink_place(head, selection)
    spans = regime._spans(head, selection)
    values, exponent = head.integer_values
    vectors = [values[key].tolist() for key in keys]
    squares = [sum(x * x for x in v) for v in vectors]
    scale = Fraction(2) ** (2 * exponent)

    def failure(
        what: str, key: int, limit: Fraction, found: Fraction
    ) -> AssumptionError:
        msg = (
            f"PairwiseRegime: {what} must hold at key {key}, got {shown(found)} "
            f"against {shown(limit)}."
        )
        return AssumptionError(msg, statement="T4", assumption=what, measured=found)

    for i, (low, high) in enumerate(spans):
        square = squares[i] * scale
        if not norm_within(square, low, high):
            found = square_root_enclosure(square)[0]
            limit = low if square < low * low else high
            what = "the norm interval"
            raise failure(what, keys[i], limit, found)

    if regime.pull_across is not None:
        what = "the pull across"
        if sink_at is None or sink_at >= n:
            msg = f"PairwiseRegime: {what} must be None unless the sink is selected."
            raise AssumptionError(
                msg, statement="T4", assumption=what, measured=regime.pull_across
            )
        exact = ExactGeometry(head, selection)
        for i in range(n, len(keys)):
            dot, square = exact.dot_scale * exact.dots[i], squares[i] * scale
            if not cosine_at_most(dot, square, regime.pull_across):
                found = dot / square_root_enclosure(square)[1]
                raise failure(what, keys[i], regime.pull_across, found)

    x = UnitVectors(head, selection.keys)
    covered = covered_pairs(regime.scope, n, sink_at, len(keys))
    for field, (what, least) in _COSINES.items():
        bound, (rows, columns) = getattr(regime, field), covered[field]
        if not rows or not columns:
            continue
        table = x.cosines(np.array(rows), np.array(columns))
        if bound is None:  # claims that no pair has two non-zero values
            open_pairs = np.argwhere(np.isfinite(table))
        else:
            near = float(min(max(bound, Fraction(-2)), Fraction(2)))
            slack = table - near if least else near - table
            # Pairs that the rounding radius leaves open are decided exactly.
            open_pairs = np.argwhere(~(slack > x.radius + 2.0**-50) & ~np.isnan(table))
        holds = cosine_at_least if least else cosine_at_most
        for a, b in open_pairs.tolist():
            i, k = rows[a], columns[b]
            dot = sum(p * q for p, q in zip(vectors[i], vectors[k], strict=True))
            if bound is None or not holds(dot, squares[i] * squares[k], bound):
                found = Fraction(float(table[a, b]))
                raise failure(what, keys[k], bound or Fraction(0), found)


def covered_pairs(
    scope: str, n: int, sink_at: int | None, count: int
) -> dict[str, tuple[list[int], list[int]]]:
    """Return the places of the tokens whose pairs each cosine covers, by its field."""
    plain = [i for i in range(count) if i != sink_at]
    inside = outside = plain
    if scope != "all":
        inside = [i for i in plain if i < n]
        outside = [i for i in plain if i >= n]
    sink = [] if sink_at is None else [sink_at]
    return {
        "cosine_selected": (inside, inside),
        "cosine_across": (inside, outside),
        "sink_selected": (sink, inside),
        "sink_across": (sink, outside if any(i < n for i in sink) else inside),
    }


def rounded_pairwise_counts(
    head: HeadData,
    selection: Selection,
    scope: str,
    vectors: UnitVectors | None = None,
    regime: PairwiseRegime | None = None,
) -> Counts:
    """Upper bounds on the counts from a fitted regime, in float64 rounded outward.

    For scans. ``vectors`` saves preparing the same candidates again and ``regime``
    fitting the same one.
    """
    x = vectors or UnitVectors(head, selection.keys)
    regime = regime or fit_pairwise(head, selection, scope, x)
    bound, _, _ = norm_bounds(regime, head, selection, x)
    return interval_counts(_enclosure(bound, selection.n))


def norm_bounds(
    regime: PairwiseRegime,
    head: HeadData,
    selection: Selection,
    vectors: UnitVectors | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the one-sided bounds of T4 in float64, and the norms behind them.

    Returns
    -------
    bound, low, high : ndarray of float64, shape (n_candidates,)
        hi of the selected and lo of the unselected tokens, rounded outward, and
        numbers around the norm of every contribution. With ``vectors`` the norms of
        ``roles-norms`` are taken from there.
    """
    n, sink_at = selection.n, sink_place(head, selection)
    w = _weights(head, selection).astype(np.float64)
    if regime.scope == "roles-norms" and vectors is not None:
        norm_low, norm_high = vectors.float_norms()
    else:
        spans = regime._spans(head, selection)
        norm_low = np.array([_float_down(s[0]) for s in spans])
        norm_high = np.array([_float_up(s[1]) for s in spans])
    with np.errstate(all="ignore"):
        low = np.maximum(np.nextafter(w * norm_low, -np.inf), 0)
        high = np.nextafter(w * norm_high, np.inf)
        bound = _one_sided(low, high, n, sink_at, regime)
        total = high[:n].sum()
        # N additions and a few products on at most r+ (r+ + 2 sum of r+), and the
        # second-order error of the clipped argument; see the test of this radius.
        radius = 2 * (n + 12) * _UNIT * high * (high + 2 * total) + 2.0**-1000
        sign = np.where(np.arange(len(w)) < n, 1.0, -1.0)
        bound = np.nextafter(bound + sign * radius, sign * np.inf)
    return np.where(np.isfinite(bound), bound, sign * np.inf), low, high


def _one_sided(
    low: Any, high: Any, n: int, sink_at: int | None, regime: PairwiseRegime
) -> Any:
    """Return hi of the selected and lo of the unselected tokens (T4).

    ``low`` and ``high`` bound the norms r of the contributions, in float64 or in
    fractions; the algebra is the same. A cosine that is None belongs to no pair of
    non-zero values, so its inner products are 0.
    """
    exact = low.dtype == object
    number = (lambda x: x) if exact else float_cosine
    zero = Fraction(0) if low.dtype == object else 0.0
    least, greatest, sink_least, sink_greatest = (number(x) for x in regime.cosines)
    chosen = np.arange(len(low)) < n
    if sink_at is not None:
        chosen[sink_at] = False
    sink_chosen = sink_at is not None and sink_at < n

    part = low if least >= 0 else high
    pull = least * (part[chosen].sum() - part) + zero * part
    part = high if greatest >= 0 else low
    push = greatest * part[chosen].sum() + zero * part
    if sink_at is not None:
        if sink_chosen:
            part = low if sink_least >= 0 else high
            pull = pull + sink_least * part[sink_at]
            pull[sink_at] = sink_least * part[chosen].sum()
            part = high if sink_greatest >= 0 else low
            push = push + sink_greatest * part[sink_at]
        else:
            part = high if sink_greatest >= 0 else low
            push[sink_at] = sink_greatest * part[chosen].sum()
    if regime.pull_across is not None and sink_chosen:
        pull_across = regime.pull_across
        limit: Any = pull_across if exact else _float_up_any(pull_across)
        push = np.minimum(push, limit)
    r = np.minimum(np.maximum(-pull[:n], low[:n]), high[:n])
    hi = -r * r - 2 * r * pull[:n]
    r = np.minimum(np.maximum(push[n:], low[n:]), high[n:])
    lo = r * r - 2 * r * push[n:]
    return np.concatenate([hi, lo])


def _enclosure(bound: Any, n: int) -> Enclosure:
    lo, hi = bound.copy(), bound.copy()
    lo[:n], hi[n:] = -np.inf, np.inf
    return Enclosure(lo, hi, n)


def _weights(head: HeadData, selection: Selection) -> np.ndarray:
    weights: np.ndarray = head.weights[selection.row][selection.keys]
    return weights


def sink_place(head: HeadData, selection: Selection) -> int | None:
    """Position of the sink among the candidates, if it is one."""
    at = np.flatnonzero(selection.keys == head.sink)
    return int(at[0]) if head.sink is not None and len(at) else None


def float_cosine(x: Fraction) -> float:
    """Return a cosine bound as float64, moved no farther in than 2^60, if beyond it.

    Fitted numbers are floats and pass unchanged; others are rounded to the nearest,
    which the radius of ``norm_bounds`` covers.
    """
    return float(min(max(x, Fraction(-(2**60))), Fraction(2**60)))


def _float_up_any(x: Fraction) -> float:
    """Return a float at least ``x``, of either sign."""
    return _float_up(x) if x >= 0 else -_float_down(-x)


def _float_down(x: Fraction) -> float:
    """Return a float at most ``x >= 0``."""
    try:
        near = float(x)
    except OverflowError:
        return sys.float_info.max
    return near if near <= x else float(np.nextafter(near, -np.inf))


def _float_up(x: Fraction) -> float:
    """Return a float at least ``x >= 0``, infinite beyond the greatest."""
    try:
        near = float(x)
    except OverflowError:
        return float("inf")
    return near if near >= x else float(np.nextafter(near, np.inf))
