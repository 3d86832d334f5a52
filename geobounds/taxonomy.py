"""Head classes: which contribution wins at each query (D10), decided exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int

from geobounds.errors import ArgumentError
from geobounds.head import HeadData, require_head
from geobounds.integers import common_integers

__all__ = ["HeadClass", "classify", "classify_prefixes", "winning_sources"]


@dataclass(frozen=True)
class HeadClass:
    """How often each kind of source wins a query of one head (D10).

    Counts of several windows add up: ``sum(classes, HeadClass())``.

    Attributes
    ----------
    current : int
        Queries won by their own position.
    sink : int
        Queries won by the sink.
    other : int
        Queries won by any other key.

    Examples
    --------
    >>> (HeadClass(current=2) + HeadClass(current=1, sink=1)).name
    'Retriever'
    """

    current: int = 0
    sink: int = 0
    other: int = 0

    @property
    def n_query(self) -> int:
        """Number of queries measured."""
        return self.current + self.sink + self.other

    @property
    def current_share(self) -> Fraction | None:
        """Share of the queries won by their own position; None if none measured."""
        return self._share(self.current)

    @property
    def sink_share(self) -> Fraction | None:
        """Share of the queries won by the sink; None if none measured."""
        return self._share(self.sink)

    @property
    def other_share(self) -> Fraction | None:
        """Share of the queries won by any other key; None if none measured."""
        return self._share(self.other)

    @property
    def shares(self) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
        """Shares of current, sink and other; three times None if none measured."""
        return self.current_share, self.sink_share, self.other_share

    @property
    def name(self) -> Literal["Retriever", "Mixer", "Reset"] | None:
        """The class: Retriever, Mixer or Reset; None if no query was measured."""
        if self.n_query == 0:
            return None
        if self.current > max(self.sink, self.other):
            return "Retriever"
        if self.sink > max(self.current, self.other):
            return "Mixer"
        return "Reset"

    def __add__(self, more: "HeadClass") -> "HeadClass":
        return HeadClass(
            self.current + more.current,
            self.sink + more.sink,
            self.other + more.other,
        )

    def _share(self, count: int) -> Fraction | None:
        return Fraction(count, self.n_query) if self.n_query else None


def classify(head: HeadData, *, first_query: int = 0) -> HeadClass:
    """Count which source wins each query of a head (D10).

    Parameters
    ----------
    head : HeadData
        A head with values and one or more queries.
    first_query : int
        Queries at earlier positions are left out, such as the first ones of a window,
        which see few keys.

    Returns
    -------
    HeadClass
        Counts over the queries measured. Not measured: rows with a problem, the query
        at the sink's own position, and queries whose visible contributions are all 0.

    Raises
    ------
    HeadDataError
        The head holds weights only.
    ArgumentError
        ``first_query`` is negative.

    Notes
    -----
    Definition D10, exact: see ``winning_sources``. A sink that is None or hidden wins
    no query.

    Examples
    --------
    >>> head = HeadData([[0.5, 0.5, 0], [0.8, 0.1, 0.1]], [[1.0], [2.0], [9.0]],
    ...                 visible="causal")
    >>> classify(head)
    HeadClass(current=2, sink=0, other=0)
    """
    require_head(head, "classify").require_values("classify")
    if isinstance(first_query, bool) or not isinstance(first_query, (int, np.integer)):
        msg = f"classify: first_query must be an int, got first_query={first_query!r}."
        raise TypeError(msg)
    if first_query < 0:
        msg = (
            "classify: first_query must be non-negative, "
            f"got first_query={first_query}. It is a position among the keys."
        )
        raise ArgumentError(msg)
    return _counted(head, winning_sources(head), first_query)


def classify_prefixes(head: HeadData, lengths: Sequence[int]) -> list[HeadClass]:
    """Count which source wins each query of the first tokens of a window (D10).

    Parameters
    ----------
    head : HeadData
        A head with values and one or more queries.
    lengths : sequence of int
        Numbers of first tokens.

    Returns
    -------
    list of HeadClass
        For each length, counts over the queries at earlier positions. In a causal
        model these are the counts of a shorter window of the same text.

    Raises
    ------
    HeadDataError
        The head holds weights only.

    Examples
    --------
    >>> head = HeadData([[0.5, 0.5, 0], [0.8, 0.1, 0.1]], [[1.0], [2.0], [9.0]],
    ...                 visible="causal")
    >>> classify_prefixes(head, [2, 3])
    [HeadClass(current=1, sink=0, other=0), HeadClass(current=2, sink=0, other=0)]
    """
    require_head(head, "classify_prefixes").require_values("classify_prefixes")
    winners = winning_sources(head)
    return [_counted(head, winners, stop=stop) for stop in lengths]


def _counted(
    head: HeadData,
    winners: np.ndarray,
    first_query: int = 0,
    stop: int | float = np.inf,
) -> HeadClass:
    positions = head.query_positions
    sink = -1 if head.sink is None else head.sink
    measured = (winners >= 0) & (positions >= first_query) & (positions != sink)
    measured &= positions < stop
    current = int((measured & (winners == positions)).sum())
    by_sink = int((measured & (winners == sink)).sum())
    return HeadClass(current, by_sink, int(measured.sum()) - current - by_sink)


def winning_sources(head: HeadData) -> Int[np.ndarray, " n_query"]:
    """Return the key of the largest contribution of each query, exactly.

    Parameters
    ----------
    head : HeadData
        A head with values and one or more queries.

    Returns
    -------
    ndarray of int, shape (n_query,)
        Argmax of alpha_j^2 ||v_j||^2 over the visible keys, the smaller index on ties;
        -1 where a row has a problem or all its contributions are 0. The query at the
        sink's own position has a winner here, although ``classify`` leaves it out.

    Raises
    ------
    HeadDataError
        The head holds weights only.

    Notes
    -----
    Rounding: floats decide where the best lies above the others by more than twice
    the radius; other rows are settled in integers, and only among the keys inside.

    Examples
    --------
    >>> winning_sources(HeadData([0.25, 0.5, 0.25], [[4.0], [2.0], [3.0]]))
    array([0])
    """
    head.require_values("winning_sources")
    usable = np.ones(head.n_query, dtype=bool)
    usable[list(head.problems)] = False
    open_to, certain = _contenders(head)
    winners = np.where(certain & usable, open_to.argmax(axis=1), -1)
    rows = np.flatnonzero(~certain & usable)
    if rows.size:
        # Exactly these have a contribution above 0; hidden keys have weight 0.
        positive = (head.weights[rows] > 0) & head.values64.any(axis=1)
        winners[rows] = _settled(head, rows, open_to[rows] & positive)
    return winners


def _contenders(
    head: HeadData,
) -> tuple[Bool[np.ndarray, "n_query n_key"], Bool[np.ndarray, " n_query"]]:
    """Return which keys may win by floats, and the rows where one key does for sure.

    A score w^2 q is off by at most r = (d + 4) 2^-53 w^2 q + 2^-1072 (q + d w^2 + 1).
    What lies 2 r and the roundings of the threshold below the best cannot win. Scores
    that overflow make the threshold or themselves NaN, and NaN leaves a key open.
    """
    q = head.squared_norms64
    with np.errstate(all="ignore"):
        score: Float64[np.ndarray, "n_query n_key"] = head.weights.astype(np.float64)
        score *= score
        heaviest = score.max(axis=1)
        score *= q
        best = score.max(axis=1)
        threshold = best - (head.d_head + 8) * 2.0**-52 * best
        threshold -= 2.0**-1070 * (q.max() + head.d_head * heaviest + 1)
        open_to = ~(score < threshold[:, None])
        certain = (threshold > 0) & (np.count_nonzero(open_to, axis=1) == 1)
    return open_to, certain


def _settled(
    head: HeadData, rows: np.ndarray, open_to: Bool[np.ndarray, "n_row n_key"]
) -> Int[np.ndarray, " n_row"]:
    """Return the winner among the open keys of each row in integers; -1 without one."""
    winners = np.full(len(rows), -1)
    several = np.count_nonzero(open_to, axis=1) > 1
    keys = np.flatnonzero(open_to[several].any(axis=0))
    vectors, _ = common_integers(head.values64[keys])
    norms = dict(zip(keys.tolist(), (vectors * vectors).sum(axis=1), strict=True))
    for i, row in enumerate(rows):
        contenders = np.flatnonzero(open_to[i])
        if several[i]:
            weights, _ = common_integers(head.weights[row][contenders])
            exact = [
                w * w * norms[j]
                for w, j in zip(weights.tolist(), contenders.tolist(), strict=True)
            ]
            winners[i] = contenders[exact.index(max(exact))]
        elif contenders.size:
            winners[i] = contenders[0]
    return winners
