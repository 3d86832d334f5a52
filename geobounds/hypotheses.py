"""The hypotheses of the statements, each an exact predicate of a situation.

A predicate takes a ``Keys``, ``HeadCase`` or ``Numbers`` (``geobounds.situation``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geobounds.closed_forms import attainment_slack, pair_attainment_slack
from geobounds.cosines import cosine_at_least, cosine_at_most
from geobounds.errors import AssumptionError
from geobounds.pairwise import check_pairwise
from geobounds.regime import check_cells
from geobounds.situation import HeadCase, Keys, Numbers

__all__ = ["HYPOTHESES", "Hypothesis"]


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a statement.

    Attributes
    ----------
    name : str
        Short name; counterexamples refer to it.
    text : str
        The hypothesis in words.
    holds : callable
        ``holds(situation) -> bool``, exact.
    sufficient_only : str
        Empty if the statement breaks without it (then a counterexample is on record);
        else why no counterexample is claimed.
    """

    name: str
    text: str
    holds: Callable[[Any], bool]
    sufficient_only: str = ""


def _enclosed(s: Keys) -> bool:
    bounds = zip(s.numbers["lo"], s.key, s.numbers["hi"], strict=True)
    return all(lo <= key <= hi for lo, key, hi in bounds)


def _differences(s: Keys) -> bool:
    return all(
        d >= s.key[i] - s.key[s.n + j]
        for i, row in enumerate(s.numbers["delta"])
        for j, d in enumerate(row)
    )


def _inversions(s: Keys) -> bool:
    given = s.numbers.get("inversions", s.counts.inversions_upper)
    return bool(given >= s.counts.inversions_upper)


def _all_selectable(s: HeadCase) -> bool:
    """No candidate is barred from being selected."""
    return s.sink_policy != "compete" or s.sink_at is None


def _positive_last(s: HeadCase) -> bool:
    return all(s.weights[i] > 0 for i in s.selected)


def _nonzero_selected(s: HeadCase) -> bool:
    return all(s.weights[i] > 0 and s.gram[i][i] > 0 for i in s.selected)


def _equal_norms(s: HeadCase) -> bool:
    found = {s.gram[i][i] for i in s.others}
    return len(found) == 1 and 0 not in found


def _equal_all_norms(s: HeadCase) -> bool:
    found = {row[i] for i, row in enumerate(s.gram)}
    return len(found) == 1 and 0 not in found


def _role_pairs(s: HeadCase) -> list[tuple[int, int]]:
    """S x C without the diagonal."""
    return [(i, k) for i in s.selected for k in range(len(s.gram)) if k != i]


def _cosines(s: HeadCase, pairs: list[tuple[int, int]]) -> set[Fraction]:
    """Signed squares of the cosines of these pairs, where both values are not 0."""
    found = {s.signed_cosine_square(i, k) for i, k in pairs}
    return {c for c in found if c is not None}


def _role_cosines(s: HeadCase) -> set[Fraction]:
    return _cosines(s, _role_pairs(s))


def _no_sink(s: HeadCase) -> bool:
    return s.sink_at is None


def _regime_holds(check: Callable[..., None]) -> Callable[[HeadCase], bool]:
    def holds(s: HeadCase) -> bool:
        try:
            check(s.numbers["regime"], s.head, s.selection)
        except AssumptionError:
            return False
        return True

    return holds


def _cosines_between(s: HeadCase) -> bool:
    low, high = s.numbers["mu_low"], s.numbers["mu_high"]
    size = range(len(s.gram))
    return all(
        cosine_at_least(s.gram[i][k], s.gram[i][i] * s.gram[k][k], low)
        and cosine_at_most(s.gram[i][k], s.gram[i][i] * s.gram[k][k], high)
        for i in size
        for k in size
        if i < k
    )


def _cosine_range(s: HeadCase | Numbers) -> bool:
    return bool(0 <= s.numbers["mu_low"] <= s.numbers["mu_high"] <= 1)


def _sink_selected(s: HeadCase) -> bool:
    return s.sink_at is not None and s.sink_at < s.n


def _other_cosines(s: HeadCase) -> set[Fraction]:
    """Cosines of S x C without the sink."""
    inside = [i for i in s.selected if i != s.sink_at]
    return _cosines(s, [(i, k) for i in inside for k in s.others if k != i])


def _common_sink_cosine(s: HeadCase) -> bool:
    sink = s.sink_at
    # A sink of value 0 has no cosine, with none of them.
    return sink is None or len({s.signed_cosine_square(sink, i) for i in s.others}) == 1


def _pull(s: HeadCase) -> bool:
    """T5: for every m = <u_j, s_N> of U and every cosine mu, as signed squares."""
    w, q, t = s.weights, s.exact.norms, s.exact.dots
    outside = [j for j in s.unselected if j != s.sink_at and q[j]]
    pulls = {Fraction(int(t[j] * abs(t[j])), int(q[j])) for j in outside}
    cosines, half = _other_cosines(s), Fraction(1, 4)
    zero_weight = any(w[j] == 0 for j in outside)
    degenerate = half in cosines and 0 in pulls and zero_weight
    inside = [w[i] ** 2 * int(q[i]) for i in s.selected if i != s.sink_at]
    first = all(m >= 0 for m in pulls) and all(c <= half for c in cosines)
    second = all(c < 1 and m >= c * r for c in cosines for m in pulls for r in inside)
    return (first and not degenerate) or second


def _both_have_weight(s: HeadCase) -> bool:
    inside = sum(s.weights[: s.n])
    row = s.exact.w_exponent
    total = sum(Fraction(float(w)) for w in s.head.weights[-1])
    return 0 < inside * Fraction(2) ** row < total


def _is(name: str, value: str) -> Callable[[HeadCase], bool]:
    return lambda s: bool(getattr(s, name) == value)


def _all(*names: str) -> tuple[Hypothesis, ...]:
    return tuple(_KNOWN[name] for name in names)


_NOT_NEEDED = "a choice of what is spoken of, not a condition"
_KNOWN = {
    h.name: h
    for h in (
        Hypothesis("enclosure", "lo <= key <= hi for every candidate", _enclosed),
        Hypothesis(
            "differences", "delta_ij >= key_i - key_j for every pair", _differences
        ),
        Hypothesis("inversions", "the number given is at least GInv_N", _inversions),
        Hypothesis("weight ranking", "S is ranked by weight", _is("ranking", "weight")),
        Hypothesis(
            "contribution ranking",
            "S is ranked by contribution",
            _is("ranking", "contribution"),
        ),
        Hypothesis(
            "euclidean",
            "distance is Euclidean",
            _is("distance", "euclidean"),
            _NOT_NEEDED,
        ),
        Hypothesis(
            "cosine", "distance is cosine", _is("distance", "cosine"), _NOT_NEEDED
        ),
        Hypothesis(
            "all selectable", "S is the top N of all candidates", _all_selectable
        ),
        Hypothesis("alpha_N > 0", "selected weights are positive", _positive_last),
        Hypothesis("y_i != 0", "no selected contribution is zero", _nonzero_selected),
        Hypothesis("equal norms", "values have one norm, not 0", _equal_all_norms),
        Hypothesis(
            "equal cosines",
            "all cosines of S x C are equal",
            lambda s: len(_role_cosines(s)) <= 1,
        ),
        Hypothesis(
            "mu >= 0",
            "no cosine of S x C is negative",
            lambda s: all(c >= 0 for c in _role_cosines(s)),
        ),
        Hypothesis(
            "mu < 1",
            "every cosine of S x C is below 1",
            lambda s: all(c < 1 for c in _role_cosines(s)),
        ),
        Hypothesis(
            "pairwise regime",
            "every number of the regime holds",
            _regime_holds(check_pairwise),
        ),
        Hypothesis(
            "cell regime", "every number of the cells holds", _regime_holds(check_cells)
        ),
        Hypothesis(
            "no sink",
            "the sink is no candidate",
            _no_sink,
            "a sink that obeys the same numbers is a token like the others",
        ),
        Hypothesis(
            "cosines between", "all cosines lie in [mu-, mu+]", _cosines_between
        ),
        Hypothesis("0 <= mu- <= mu+ <= 1", "range of the cosines", _cosine_range),
        Hypothesis(
            "attainable",
            "1 + (N - 1) mu- >= N mu+^2",
            lambda s: attainment_slack(**_three(s)) >= 0,
        ),
        Hypothesis(
            "pair attainable",
            "(1 + (N-2) mu+)(1 - mu+^2) >= (N-1)(mu+^2 + mu-^2 - 2 mu- mu+^2)",
            lambda s: pair_attainment_slack(**_three(s)) >= 0,
        ),
        Hypothesis("sink selected", "the sink is one of the selected", _sink_selected),
        Hypothesis("equal other norms", "norms of the others are equal", _equal_norms),
        Hypothesis(
            "common cosines",
            "all cosines of S x C without the sink are equal",
            lambda s: len(_other_cosines(s)) <= 1,
        ),
        Hypothesis(
            "common sink cosine",
            "the sink has one cosine with all others",
            _common_sink_cosine,
        ),
        Hypothesis(
            "pull",
            "m >= 0, mu <= 1/2 and not all of mu = 1/2, m = 0, a zero weight in U; or "
            "mu < 1 and m >= mu alpha_i for every selected i other than the sink",
            _pull,
        ),
        Hypothesis("N = 1", "one token is selected", lambda s: s.n == 1),
        Hypothesis("N = 2", "two tokens are selected", lambda s: s.n == 2),
        Hypothesis(
            "short sums",
            "N + d + 2 < 2^26",
            lambda s: s.n + s.head.d_head + 2 < 2**26,
            "it bounds the second-order terms; sums so long are out of reach here",
        ),
        Hypothesis(
            "gradual underflow",
            "subnormal numbers are not flushed to zero",
            lambda s: s.numbers.get("underflow", "gradual") == "gradual",
        ),
        Hypothesis(
            "independent",
            "directions are independent",
            lambda s: s.numbers["draws"] != "equal",
        ),
        Hypothesis(
            "uniform",
            "directions are uniform on the sphere",
            lambda s: s.numbers["draws"] != "cone",
        ),
        Hypothesis(
            "norms independent",
            "norms and weights do not depend on the directions",
            lambda s: s.numbers["draws"] != "aligned norms",
        ),
        Hypothesis(
            "all visible",
            "the sum runs over all visible keys, a dropped sink included",
            lambda s: s.numbers.get("over", "visible") == "visible",
        ),
        Hypothesis(
            "ranking fits",
            "weight ranking for the weight, contribution ranking for the norms",
            lambda s: s.ranking == s.numbers["measured"],
        ),
        Hypothesis("0 < W_S < W", "both parts carry weight", _both_have_weight),
        Hypothesis(
            "allowed keys",
            "the other sets hold keys that the policy lets it select",
            lambda s: s.numbers.get("among", "allowed") == "allowed",
        ),
    )
}


def _three(s: Numbers) -> dict[str, Any]:
    return {name: s.numbers[name] for name in ("n", "mu_low", "mu_high")}


# Hypotheses of every statement, by its id.
HYPOTHESES: dict[str, tuple[Hypothesis, ...]] = {
    "T1": _all("enclosure"),
    "T1-pairs": _all("differences"),
    "T2a": _all("inversions"),
    "T2b": _all("inversions"),
    "T3": _all(
        "euclidean",
        "weight ranking",
        "all selectable",
        "alpha_N > 0",
        "equal norms",
        "equal cosines",
        "mu >= 0",
        "mu < 1",
    ),
    "T3-contribution": _all(
        "euclidean",
        "contribution ranking",
        "all selectable",
        "y_i != 0",
        "equal cosines",
        "mu >= 0",
        "mu < 1",
    ),
    "T3-cosine": _all("cosine", "y_i != 0", "equal cosines", "mu >= 0", "mu < 1"),
    "T4": _all("euclidean", "pairwise regime"),
    "T4-gap": _all(
        "euclidean",
        "weight ranking",
        "no sink",
        "equal norms",
        "cosines between",
        "0 <= mu- <= mu+ <= 1",
    ),
    "T4-cosine": _all(
        "cosine",
        "weight ranking",
        "no sink",
        "equal norms",
        "cosines between",
        "0 <= mu- <= mu+ <= 1",
    ),
    "T4-roots": _all(
        "euclidean",
        "weight ranking",
        "no sink",
        "equal norms",
        "cosines between",
        "0 <= mu- <= mu+ <= 1",
    ),
    "T4-attained": _all("0 <= mu- <= mu+ <= 1", "attainable"),
    "T4-pair": _all("0 <= mu- <= mu+ <= 1", "pair attainable"),
    "T5": _all(
        "euclidean",
        "weight ranking",
        "sink selected",
        "equal other norms",
        "common cosines",
        "common sink cosine",
        "alpha_N > 0",
        "pull",
    ),
    "T5-counts": _all(
        "euclidean",
        "weight ranking",
        "sink selected",
        "equal other norms",
        "common cosines",
        "common sink cosine",
        "alpha_N > 0",
        "pull",
    ),
    "T6": _all("euclidean", "cell regime"),
    "T7": _all("euclidean", "N = 1"),
    "T7-cosine": _all("cosine", "N = 1"),
    "T7-two": _all("euclidean", "N = 2"),
    "T8": _all("euclidean", "short sums", "gradual underflow"),
    "T9": _all("independent", "uniform"),
    "T9-token": _all("independent", "uniform", "norms independent"),
    "T10": _all("all visible"),
    "T10-norm": _all("all visible"),
    "T10-optimal": _all("allowed keys", "ranking fits"),
    "T10-rescaled": _all("all visible", "0 < W_S < W"),
}
