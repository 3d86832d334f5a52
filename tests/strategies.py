"""Hypothesis strategies: small heads on integer grids, where every edge is common.

Weights are eighths and values small integers, so that float64 is exact and ties,
duplicates, zero weights, zero values, hidden keys and sinks all occur.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from cases import CaseHead
from hypothesis import strategies as st

import geobounds as gb
from geobounds.exact import OracleResult, oracle

POLICIES = ("keep", "drop", "compete")
RANKINGS = ("weight", "contribution")


@dataclass(frozen=True, eq=False)
class Choice:
    """A head, and a selection that it allows."""

    case: CaseHead
    n: int
    ranking: str
    sink_policy: str

    @property
    def options(self) -> dict[str, Any]:
        """Return ranking and sink policy as the library's functions take them."""
        return {"ranking": self.ranking, "sink_policy": self.sink_policy}

    def truth(self, distance: str = "euclidean") -> OracleResult:
        """Return the oracle's answer."""
        case = self.case
        return oracle(
            case.weights.tolist(),
            case.values.tolist(),
            case.visible.tolist(),
            case.sink,
            self.n,
            distance=distance,
            **self.options,
        )


def build(case: CaseHead) -> gb.HeadData:
    """Return the case as a head."""
    return gb.HeadData(case.weights, case.values, visible=case.visible, sink=case.sink)


@st.composite
def heads(draw, *, min_visible: int = 2, max_key: int = 7, max_width: int = 3):
    """Heads with one query, at least ``min_visible`` visible keys and some mass."""
    hidden = draw(st.integers(0, 2))
    n_key = draw(st.integers(min_visible + hidden, max_key + hidden))
    width = draw(st.integers(1, max_width))
    vectors = st.lists(st.integers(-3, 3), min_size=width, max_size=width)
    # A pool of few vectors gives duplicates.
    pool = draw(st.lists(vectors, min_size=1, max_size=n_key))
    values = [pool[draw(st.integers(0, len(pool) - 1))] for _ in range(n_key)]
    weights = draw(st.lists(st.integers(0, 6), min_size=n_key, max_size=n_key))
    order = draw(st.permutations(range(n_key)))
    visible = np.ones(n_key, dtype=bool)
    visible[list(order[:hidden])] = False
    # The last of the order is visible and carries mass.
    weights[order[-1]] = max(weights[order[-1]], 1)
    sink = draw(st.none() | st.integers(0, n_key - 1))
    return CaseHead(
        "drawn",
        np.where(visible, np.array(weights) / 8, 0.0),
        np.array(values, dtype=float),
        visible,
        sink,
    )


@st.composite
def choices(draw, *, min_n: int = 1, policies=POLICIES, rankings=RANKINGS):
    """Heads with an N, a ranking and a sink policy that fit."""
    case = draw(heads(min_visible=min_n + 2))
    policy = draw(st.sampled_from(policies))
    dropped = policy == "drop" and case.sink is not None and case.visible[case.sink]
    candidates = int(case.visible.sum()) - dropped
    return Choice(
        case,
        draw(st.integers(min_n, candidates - 1)),
        draw(st.sampled_from(rankings)),
        policy,
    )


@st.composite
def intervals(draw, *, max_side: int = 5):
    """Integer intervals around a key: (lo, hi, N), at least one key on each side."""
    n = draw(st.integers(1, max_side))
    size = n + draw(st.integers(1, max_side))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(-4, 4), st.integers(0, 3)),
            min_size=size,
            max_size=size,
        )
    )
    lo = np.array([a for a, _ in pairs])
    return lo, lo + np.array([b for _, b in pairs]), n


@st.composite
def signed_permutations(draw, width: int):
    """Orthogonal matrices whose entries are 0, 1 and -1: exact rotations."""
    order = draw(st.permutations(range(width)))
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=width, max_size=width))
    matrix = np.zeros((width, width))
    matrix[range(width), order] = signs
    return matrix
