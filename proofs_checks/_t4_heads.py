"""Seeded heads and regimes of T4, with its intervals written out token by token.

Nothing here shares code with ``geobounds.pairwise`` but the regime's numbers.
"""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

from geobounds.closed_forms import power_interval
from geobounds.head import HeadData
from geobounds.pairwise import SCOPES, PairwiseRegime, fit_pairwise
from geobounds.situation import HeadCase

__all__ = [
    "draw_head",
    "exact_powers",
    "fitted",
    "free_regimes",
    "intervals",
    "norm_ends",
    "widened",
]

Interval = tuple[Fraction, Fraction]


def draw_head(rng: Random) -> HeadCase:
    """Small integers for weights and values: ties, zeros and every option occur."""
    size, width = rng.randint(3, 6), rng.randint(1, 3)
    weights = [rng.randint(0, 6) for _ in range(size)]
    weights[0] += not any(weights)  # a head has some mass
    values = [[rng.randint(-3, 3) for _ in range(width)] for _ in range(size)]
    sink = rng.choice((None, 0, 0, rng.randrange(size)))
    policy = rng.choice(("keep", "keep", "drop", "compete"))
    ranking: Any = rng.choice(("weight", "contribution", "scores"))
    if ranking == "scores":
        ranking = [float(x) for x in rng.sample(range(size), size)]
    dropped = policy == "drop" and sink is not None
    barred = policy == "compete" and sink is not None
    head = HeadData(weights, values, visible="all", sink=sink)
    n = rng.randint(1, size - 1 - dropped)
    return HeadCase(head, n - (barred and n > 1), policy, ranking)


def fitted(case: HeadCase) -> Iterator[PairwiseRegime]:
    """Yield the regimes fitted to the head, one a scope."""
    for scope in SCOPES:
        yield fit_pairwise(case.head, case.selection, scope)


def widened(regime: PairwiseRegime, rng: Random) -> PairwiseRegime:
    """Move every number outward by a fraction, so that it still holds."""

    def step() -> Fraction:
        return Fraction(rng.randint(0, 4), rng.randint(1, 7))

    def span(old: Interval | None) -> Interval | None:
        return old and (max(old[0] - step(), Fraction(0)), old[1] + step())

    def moved(old: Fraction | None, sign: int) -> Fraction | None:
        return None if old is None else old + sign * step()

    inside = span(regime.norms_selected)
    whole = regime.scope == "all"
    return dataclasses.replace(
        regime,
        norms_selected=inside,
        norms_unselected=inside if whole else span(regime.norms_unselected),
        cosine_selected=moved(regime.cosine_selected, -1),
        cosine_across=moved(regime.cosine_across, 1),
        sink_norm=span(regime.sink_norm),
        sink_selected=moved(regime.sink_selected, -1),
        sink_across=moved(regime.sink_across, 1),
        pull_across=moved(regime.pull_across, 1),
        token_norms=tuple(
            (key, max(low - step(), Fraction(0)), high + step())
            for key, low, high in regime.token_norms
        ),
    )


def free_regimes(case: HeadCase, rng: Random) -> Iterator[PairwiseRegime]:
    """Yield a regime a scope whose numbers have nothing to do with the values."""

    def span() -> Interval:
        low = Fraction(rng.randint(0, 6), rng.randint(1, 6))
        return low, low + Fraction(rng.randint(0, 6), rng.randint(1, 6))

    def cosine() -> Fraction:
        return Fraction(rng.randint(-6, 6), 6)

    for scope in SCOPES:
        inside, cosines = span(), [cosine() for _ in range(4)]
        whole = scope == "all"
        if whole:
            cosines = sorted(cosines[:2]) + sorted(cosines[2:])
        with_pull = not whole and rng.random() < 0.7
        yield PairwiseRegime(
            scope,
            None if whole else case.n,
            inside,
            inside if whole else span(),
            cosines[0],
            rng.choice((None, cosines[1])),
            span(),
            rng.choice((None, cosines[2])),
            cosines[3],
            Fraction(rng.randint(-9, 30), 4) if with_pull else None,
            tuple((int(key), *span()) for key in case.selection.keys)
            if scope == "roles-norms"
            else (),
        )


def norm_ends(regime: PairwiseRegime, case: HeadCase) -> list[Interval]:
    """Bounds on the norm of every contribution: the weight times the value's."""
    keys = [int(key) for key in case.selection.keys]
    row = case.head.weights[-1]
    by_key = {key: (low, high) for key, low, high in regime.token_norms}
    ends = []
    for i, key in enumerate(keys):
        own = regime.norms_selected if i < case.n else regime.norms_unselected
        norm = by_key.get(key) or (regime.sink_norm if i == case.sink_at else own)
        weight = Fraction(float(row[key]))
        low, high = norm or (Fraction(0), Fraction(0))
        ends.append((weight * low, weight * high))
    return ends


def intervals(regime: PairwiseRegime, case: HeadCase) -> list[Interval]:
    """Interval of every power by the statement's formulas, one token at a time.

    By role only hi of the selected and lo of the unselected tokens are claims.
    """
    ends = norm_ends(regime, case)
    return [_interval(regime, case, ends, i) for i in range(len(ends))]


def _interval(
    regime: PairwiseRegime, case: HeadCase, ends: list[Interval], i: int
) -> Interval:
    """Add the least and the greatest inner products, then take the extremes."""
    sink, pull_low, pull_high = case.sink_at, Fraction(0), Fraction(0)
    for k in range(case.n):
        if k == i:
            continue
        with_sink = sink is not None and sink in (i, k)
        least = regime.sink_selected if with_sink else regime.cosine_selected
        greatest = regime.sink_across if with_sink else regime.cosine_across
        low, high = ends[k]
        if least is not None:
            pull_low += least * (low if least >= 0 else high)
        if greatest is not None:
            pull_high += greatest * (high if greatest >= 0 else low)
    selected = i < case.n
    sink_selected = sink is not None and sink < case.n
    if regime.pull_across is not None and sink_selected and not selected:
        pull_high = min(pull_high, regime.pull_across)
    return power_interval(*ends[i], pull_low, pull_high, selected=selected)


def exact_powers(case: HeadCase) -> list[Fraction]:
    """Phi of every candidate in the units of the weights and values given."""
    scale = Fraction(2) ** (2 * (case.exact.w_exponent + case.exact.v_exponent))
    return [scale * power for power in case.powers]
