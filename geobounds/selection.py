"""Candidates, sink policies, rankings and the selected set (D2, D3), all exact."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from geobounds.arrays import real_array
from geobounds.errors import ArgumentError
from geobounds.head import HeadData, require_head
from geobounds.integers import common_integers, refuse_flush_to_zero

__all__ = [
    "SINK_POLICIES",
    "Ranking",
    "Selection",
    "SinkPolicy",
    "random_scores",
    "rank",
    "scores_of",
]

SinkPolicy = Literal["keep", "drop", "compete"]
SINK_POLICIES: tuple[str, ...] = get_args(SinkPolicy)


@dataclass(frozen=True, eq=False)
class Selection:
    """The N best keys S and all other candidates U of one query (D3).

    Attributes
    ----------
    row : int
        The query, as a row of the head.
    selected : ndarray of int, shape (n,)
        Keys of S, best first.
    unselected : ndarray of int, shape (n_unselected,)
        Keys of U: the remaining ranked keys, then the candidates that may not be
        selected.
    boundary_tie : bool
        The last selected and the first unselected ranked key have equal scores, so
        that the selected set is a convention (the smaller index wins).
    """

    row: int
    selected: Int[np.ndarray, " n"]
    unselected: Int[np.ndarray, " n_unselected"]
    boundary_tie: bool

    @property
    def n(self) -> int:
        """Number of selected keys."""
        return len(self.selected)

    @cached_property
    def keys(self) -> Int[np.ndarray, " n_candidates"]:
        """Selected keys, then unselected keys."""
        return np.concatenate([self.selected, self.unselected])


@dataclass(frozen=True, eq=False)
class Ranking:
    """The candidates of one query in the order in which they are selected.

    Attributes
    ----------
    row : int
        The query, as a row of the head.
    keys : ndarray of int, shape (n_ranked,)
        Keys that may be selected, best first; equal scores by smaller index.
    tied : ndarray of bool, shape (n_ranked - 1,)
        Whether a key's score equals that of the next.
    barred : ndarray of int
        Candidates that are never selected (the sink under ``compete``).
    """

    row: int
    keys: Int[np.ndarray, " n_ranked"]
    tied: Bool[np.ndarray, " n_ties"]
    barred: Int[np.ndarray, " n_barred"]

    @property
    def n_candidates(self) -> int:
        """Number of candidates |C|."""
        return len(self.keys) + len(self.barred)

    def select(self, n: int, function: str = "select") -> Selection:
        """Return the selection of the ``n`` best, 1 <= n <= |C| - 1."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            msg = f"{function}: n must be an int, got n={n!r}."
            raise TypeError(msg)
        count = self.n_candidates
        if count < 2:
            msg = (
                f"{function}: at least 2 candidates are needed to select from, "
                f"got {count} at query {self.row}."
            )
            raise ArgumentError(msg)
        if not 1 <= n <= count - 1:
            reason = (
                "No token would be left unselected."
                if n >= count
                else "Select at least one token."
            )
            msg = (
                f"{function}: n must lie between 1 and {count - 1} ({count} "
                f"candidates), got n={n}. {reason}"
            )
            raise ArgumentError(msg)
        return Selection(
            self.row,
            self.keys[:n],
            np.concatenate([self.keys[n:], self.barred]),
            bool(n <= len(self.tied) and self.tied[n - 1]),
        )


def rank(
    head: HeadData,
    query: int = -1,
    ranking: Any = "weight",
    sink_policy: str = "keep",
    *,
    function: str = "rank",
) -> Ranking:
    """Rank the candidates of one query (D2, D3).

    Parameters
    ----------
    head : HeadData
        The head.
    query : int
        Row index of the query.
    ranking : "weight", "contribution" or array_like of shape (n_key,)
        Score: the weight, the squared norm of the contribution, or scores of a
        selector of your own. Larger is better; ties go to the smaller index.
    sink_policy : "keep", "drop" or "compete"
        The sink is a candidate like any other, no candidate at all, or a candidate
        that is never selected. No effect where the sink is None or hidden.

    Returns
    -------
    Ranking
        Exact: near-ties of contributions are settled in integers.

    Raises
    ------
    ArgumentError
        An unknown ranking or policy, or scores of a wrong shape or not finite.

    Notes
    -----
    Statement T10 (T10-optimal): "weight" discards least weight and "contribution" the
    least sum of norms, of all sets of N keys that may be selected.
    """
    row = require_head(head, function).row_index(query, function)
    if not isinstance(sink_policy, str) or sink_policy not in SINK_POLICIES:
        msg = (
            f"{function}: sink_policy must be one of {', '.join(SINK_POLICIES)}, "
            f"got sink_policy={sink_policy!r}."
        )
        raise ArgumentError(msg)
    seen = head.visible[row].copy()
    barred = np.empty(0, dtype=np.int64)
    if sink_policy != "keep" and head.sink is not None and seen[head.sink]:
        seen[head.sink] = False
        if sink_policy == "compete":
            barred = np.array([head.sink])
    keys = np.flatnonzero(seen)
    if isinstance(ranking, str):
        if ranking == "weight":
            order, tied = _by_score(head.weights[row][keys])
        elif ranking == "contribution":
            order, tied = _by_contribution(head, row, keys, function)
        else:
            msg = (
                f'{function}: ranking must be "weight", "contribution" or an array '
                f"of scores, got ranking={ranking!r}."
            )
            raise ArgumentError(msg)
    else:
        scores = scores_of(head, ranking, function)
        order, tied = _by_score(_finite(scores, keys, function))
    return Ranking(row, keys[order], tied, barred)


def random_scores(n_key: int, seed: int | Sequence[int]) -> Float[np.ndarray, " n_key"]:
    """Scores of a random permutation: the control ranking of D3, nested in N.

    Parameters
    ----------
    n_key : int
        Number of keys.
    seed : int or sequence of int
        Seed of numpy's default generator.

    Returns
    -------
    ndarray of float64, shape (n_key,)
        A permutation of 0, ..., n_key - 1; pass it as ``ranking``.

    Raises
    ------
    ArgumentError
        ``n_key`` is below 1, or the seed is none that numpy takes.
    """
    if isinstance(n_key, bool) or not isinstance(n_key, (int, np.integer)):
        msg = f"random_scores: n_key must be an int, got n_key={n_key!r}."
        raise TypeError(msg)
    if n_key < 1:
        msg = f"random_scores: n_key must be at least 1, got n_key={n_key}."
        raise ArgumentError(msg)
    try:
        generator = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        msg = (
            "random_scores: seed must be a non-negative int or a sequence of them, "
            f"got seed={seed!r:.40}."
        )
        raise ArgumentError(msg) from error
    order: np.ndarray = generator.permutation(n_key)
    return order.astype(np.float64)


def _by_score(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Reversed twice, a stable ascending sort is descending with ties in order.
    order = (len(scores) - 1 - np.argsort(scores[::-1], kind="stable"))[::-1]
    ranked = scores[order]
    return order, ranked[:-1] == ranked[1:]


def scores_of(head: HeadData, given: Any, function: str) -> np.ndarray:
    """Return scores of your own as exact floats, one a key.

    Raises
    ------
    ArgumentError
        A wrong shape.
    TypeError, HeadDataError
        Numbers that no float64 holds exactly.
    """
    scores, _ = real_array(given, "ranking", function)
    if scores.shape != (head.n_key,):
        msg = (
            f"{function}: ranking must be scores of shape ({head.n_key},), one a key, "
            f"got shape {scores.shape}."
        )
        raise ArgumentError(msg)
    return scores


def _finite(scores: np.ndarray, keys: np.ndarray, function: str) -> np.ndarray:
    bad = ~np.isfinite(scores[keys])
    if bad.any():
        key = int(keys[np.argmax(bad)])
        msg = f"{function}: ranking must be finite, got {scores[key]} at key {key}."
        raise ArgumentError(msg)
    return scores[keys]


def _by_contribution(
    head: HeadData, row: int, keys: np.ndarray, function: str
) -> tuple[np.ndarray, np.ndarray]:
    """Order by w^2 ||v||^2: floats with a radius, integers inside the radius."""
    d_head = head.require_values(function).shape[1]
    refuse_flush_to_zero()
    w = head.weights[row][keys].astype(np.float64)
    q = head.squared_norms64[keys]
    with np.errstate(all="ignore"):
        score = w * w * q
        # d + 2 roundings, one spare; the second term is for underflow.
        radius = (d_head + 4) * 2.0**-53 * score + 2.0**-1072 * (q + d_head * w * w + 1)
        low, high = score - radius, score + radius
    unknown = ~np.isfinite(radius)
    low[unknown], high[unknown] = -np.inf, np.inf
    order, _ = _by_score(np.where(unknown, np.inf, score))
    # A gap in the order is certain where all before lie above all behind.
    lowest = np.minimum.accumulate(low[order])[:-1]
    highest = np.maximum.accumulate(high[order][::-1])[::-1][1:]
    starts = np.flatnonzero(lowest > highest) + 1
    tied = np.zeros(max(len(keys) - 1, 0), dtype=bool)
    bounds = np.concatenate([[0], starts, [len(keys)]])
    if len(bounds) - 1 < len(keys):
        weights, _ = common_integers(w)
        values, _ = head.integer_values
        for a, b in itertools.pairwise(bounds):
            if b - a < 2:
                continue
            block = np.sort(order[a:b])
            exact = [
                weights[i] ** 2 * sum(x * x for x in values[keys[i]].tolist())
                for i in block
            ]
            by_rank = sorted(range(b - a), key=lambda k: (-exact[k], k))
            order[a:b] = block[by_rank]
            tied[a : b - 1] = [
                exact[x] == exact[y] for x, y in itertools.pairwise(by_rank)
            ]
    return order, tied
