"""THEOREMS: every statement once, with its hypotheses, numeric and symbolic form.

The only link between theory and code. The statements are numbered as in the docstrings,
proofs (``proofs_checks/t1.py`` to ``t10.py``), tests and tables; ``T4-gap`` is a part
of T4 and proved in its file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from geobounds import closed_forms, isotropic, symbolic
from geobounds.bounds import inversion_bounds
from geobounds.errors import ArgumentError
from geobounds.hypotheses import HYPOTHESES, Hypothesis
from geobounds.power import Enclosure
from geobounds.separability import interval_counts
from geobounds.situation import column_of
from geobounds.slacks import SLACKS

__all__ = ["THEOREMS", "Statement", "described", "statements_for", "table"]

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Statement:
    """One statement about the separability of token selection.

    Attributes
    ----------
    id : str
        Such as "T2b"; the same everywhere.
    title : str
        What it says, in one line.
    kind : "lower bound", "identity", "exact", "upper bound" or "probability"
        ``lower bound``: never above the true metric. ``exact``: the value itself, or
        an equivalence. ``probability``: holds for random directions, not for a head.
    given : "keys", "head" or "numbers"
        What a situation of it is (``geobounds.situation``).
    code : str
        Dotted name of the function or class that carries it in the library.
    numeric : callable
        The closed form, exact for fractions.
    form : str
        Name of the symbolic form in ``geobounds.symbolic``.
    sample : callable
        ``sample(rng)`` draws arguments of ``numeric`` within its range.
    source : str
        The paper, or "ours".
    """

    id: str
    title: str
    kind: str
    given: str
    code: str
    numeric: Callable[..., Any]
    form: str
    sample: Callable[[Random], dict[str, Any]]
    source: str

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What it rests on, each an exact predicate of a situation."""
        return HYPOTHESES[self.id]

    @property
    def family(self) -> str:
        """Number of the statement it is part of: T2 for T2b, T4 for T4-gap."""
        return self.id.split("-")[0].rstrip("ab")

    @property
    def symbolic(self) -> Callable[..., Any]:
        """The same closed form in SymPy."""
        return symbolic.FORMS[self.form]

    def applies(self, situation: Any) -> bool:
        """Whether every hypothesis holds, exactly."""
        return all(h.holds(situation) for h in self.hypotheses)

    def failing(self, situation: Any) -> list[str]:
        """Names of the hypotheses that fail."""
        return [h.name for h in self.hypotheses if not h.holds(situation)]

    def slack(self, situation: Any) -> Fraction:
        """Return the true metric minus the bound; negative iff the claim is false."""
        return SLACKS[self.id](situation)


def _fraction(rng: Random, low: int = 0, high: int = 8) -> Fraction:
    return Fraction(rng.randint(6 * low, 6 * high), rng.randint(1, 6))


def _unit(rng: Random) -> Fraction:
    return Fraction(rng.randint(0, 12), 12)


def _draw(*names: str, **others: Callable[[Random], Any]) -> Callable[..., Any]:
    """Sampler: non-negative fractions for ``names``, their own draws for the others."""

    def sample(rng: Random) -> dict[str, Any]:
        found: dict[str, Any] = {name: _fraction(rng) for name in names}
        return found | {name: draw(rng) for name, draw in others.items()}

    return sample


def _signed(rng: Random) -> Fraction:
    return _fraction(rng, -8)


def _sizes(rng: Random) -> dict[str, Any]:
    n, m = rng.randint(1, 6), rng.randint(1, 6)
    return {"n": n, "n_unselected": m, "inversions": rng.randint(0, n * m)}


def _intervals(rng: Random) -> dict[str, Any]:
    lo = tuple(_signed(rng) for _ in range(rng.randint(2, 5)))
    hi = tuple(x + _fraction(rng, 0, 2) for x in lo)
    return {"lo": lo, "hi": hi, "n": rng.randint(1, len(lo) - 1)}


def _delta(rng: Random) -> dict[str, Any]:
    n, m = rng.randint(1, 3), rng.randint(1, 3)
    rows = tuple(
        tuple(Fraction(rng.randint(-2, 1)) for _ in range(m)) for _ in range(n)
    )
    return {"delta": rows}


def _powers(rng: Random) -> dict[str, Any]:
    low, pull = _fraction(rng, 0, 3), _fraction(rng, -4, 4)
    return {
        "low": low,
        "high": low + _fraction(rng, 0, 3),
        "pull_low": pull,
        "pull_high": pull + _fraction(rng, 0, 3),
        "selected": rng.random() < 0.5,
    }


def _cell(rng: Random) -> dict[str, Any]:
    norm, dot = _fraction(rng), _signed(rng)
    return {
        "weight": _fraction(rng),
        "norm_low": norm,
        "norm_high": norm + _fraction(rng),
        "dot_low": dot,
        "dot_high": dot + _fraction(rng),
    }


def _tokens(rng: Random) -> dict[str, Any]:
    n = rng.randint(1, 3)
    size = n + rng.randint(1, 3)
    return {
        "weights": tuple(_fraction(rng) + Fraction(1, 6) for _ in range(size)),
        "values": tuple(_signed(rng) for _ in range(size)),
        "n": n,
    }


def _directions(rng: Random) -> dict[str, Any]:
    return {
        "n_vectors": rng.randint(2, 600),
        "d_head": rng.randint(1, 256),
        "probability": Fraction(1, rng.randint(2, 1000)),
    }


def _counts(lo: Any, hi: Any, n: int) -> tuple[int, int, int, int]:
    found = interval_counts(Enclosure(column_of(lo), column_of(hi), n))
    return found.fp_upper, found.fn_upper, found.fp_lower, found.fn_lower


def _separate(**sizes: int) -> tuple[Fraction, Fraction]:
    found = inversion_bounds(**sizes)
    return found.precision, found.recall


def _joint(**sizes: int) -> Fraction:
    return inversion_bounds(**sizes).f_joint


def _count(low: int, high: int) -> Callable[[Random], int]:
    return lambda rng: rng.randint(low, high)


_PAPER = "arXiv 2602.01893"
_OURS = "ours"
_BOUND, _EXACT, _IDENTITY, _CHANCE = "lower bound", "exact", "identity", "probability"
_GAP = {"mu_low": _unit, "mu_high": _unit}
_FORMS = closed_forms

_ALL = (
    Statement(
        "T1",
        "intervals around the distance keys bound FP, FN, P, R and F from both sides",
        _BOUND,
        "keys",
        "geobounds.separability.interval_counts",
        _counts,
        "interval_counts",
        _intervals,
        _OURS,
    ),
    Statement(
        "T1-pairs",
        "bounds on differences of two keys bound FP, FN, inversions and F",
        _BOUND,
        "keys",
        "geobounds.pairform.pair_counts",
        _FORMS.pair_form_counts,
        "pair_form_counts",
        _delta,
        _OURS,
    ),
    Statement(
        "T2a",
        "the number of inversions bounds P and R, each apart",
        _BOUND,
        "keys",
        "geobounds.bounds.inversion_bounds",
        _separate,
        "separate_bounds",
        _sizes,
        _PAPER,
    ),
    Statement(
        "T2b",
        "the number of inversions bounds F, exactly",
        _BOUND,
        "keys",
        "geobounds.bounds.inversion_bounds",
        _joint,
        "joint_bound",
        _sizes,
        _OURS,
    ),
    Statement(
        "T3",
        "heads with equal norms and equal cosines in [0, 1) separate: F = 1",
        _EXACT,
        "head",
        "geobounds.closed_forms.equiangular_gap",
        _FORMS.equiangular_gap,
        "equiangular_gap",
        _draw("a", "b", "A", mu=_signed),
        _OURS,
    ),
    Statement(
        "T3-contribution",
        "ranked by contribution, equal cosines suffice: F = 1 whatever the norms",
        _EXACT,
        "head",
        "geobounds.closed_forms.equiangular_gap",
        _FORMS.equiangular_gap,
        "equiangular_gap",
        _draw("a", "b", "A", mu=_signed),
        _OURS,
    ),
    Statement(
        "T3-cosine",
        "in cosine distance, equal cosines suffice for every selection: F = 1",
        _EXACT,
        "head",
        "geobounds.closed_forms.equiangular_cosine_gap",
        _FORMS.equiangular_cosine_gap,
        "equiangular_cosine_gap",
        _draw("a", mu=_signed),
        _OURS,
    ),
    Statement(
        "T4",
        "norms and cosines between two numbers each bound every power",
        _BOUND,
        "head",
        "geobounds.pairwise.PairwiseRegime",
        _FORMS.power_interval,
        "power_interval",
        _powers,
        _PAPER + "; closed form ours",
    ),
    Statement(
        "T4-gap",
        "constant norm: F = 1 is certified iff the attention gap beats the coherence",
        _EXACT,
        "head",
        "geobounds.closed_forms.constant_norm_gap",
        _FORMS.constant_norm_gap,
        "constant_norm_gap",
        _draw("a", "b", "A", **_GAP),
        _OURS,
    ),
    Statement(
        "T4-cosine",
        "the same for cosine distance",
        _BOUND,
        "head",
        "geobounds.closed_forms.constant_norm_cosine_gap",
        _FORMS.constant_norm_cosine_gap,
        "constant_norm_cosine_gap",
        _draw("a", "A", **_GAP),
        _OURS,
    ),
    Statement(
        "T4-roots",
        "constant norm: possible false positives lie between two roots",
        _EXACT,
        "head",
        "geobounds.closed_forms.false_positive_polynomial",
        _FORMS.false_positive_polynomial,
        "false_positive_polynomial",
        _draw("x", "a", "A", **_GAP),
        _OURS,
    ),
    Statement(
        "T4-attained",
        "one configuration attains the regime's bound for all tokens together",
        _EXACT,
        "numbers",
        "geobounds.closed_forms.attainment_slack",
        _FORMS.attainment_slack,
        "attainment_slack",
        _draw(n=_count(1, 6), **_GAP),
        _OURS,
    ),
    Statement(
        "T4-pair",
        "unit vectors attain the interval of one pair",
        _EXACT,
        "numbers",
        "geobounds.closed_forms.pair_attainment_slack",
        _FORMS.pair_attainment_slack,
        "pair_attainment_slack",
        _draw(n=_count(2, 6), **_GAP),
        _OURS,
    ),
    Statement(
        "T5",
        "with the sink selected, equal others are still separated among themselves",
        _EXACT,
        "head",
        "geobounds.closed_forms.sink_collapse_gap",
        _FORMS.sink_collapse_gap,
        "sink_collapse_gap",
        _draw("a", "b", pull=_signed, mu=_signed),
        _OURS,
    ),
    Statement(
        "T5-counts",
        "then the power of the sink alone gives FP and FN",
        _EXACT,
        "head",
        "geobounds.closed_forms.sink_power",
        _FORMS.sink_power,
        "sink_power",
        _draw("sink_square", "B", sink_dot=_signed),
        _OURS,
    ),
    Statement(
        "T6",
        "extremes of norm and <v, s_N> over cells of tokens bound every power",
        _BOUND,
        "head",
        "geobounds.regime.CellRegime",
        _FORMS.cell_interval,
        "cell_interval",
        _cell,
        _OURS,
    ),
    Statement(
        "T7",
        "N = 1: F = 1 iff no unselected contribution equals the selected one",
        _EXACT,
        "head",
        "geobounds.closed_forms.single_f_score",
        _FORMS.single_f_score,
        "single_f_score",
        _draw(equal=_count(0, 3)),
        _OURS,
    ),
    Statement(
        "T7-cosine",
        "N = 1, cosine distance: iff it is not 0 and none is a positive multiple of it",
        _EXACT,
        "head",
        "geobounds.closed_forms.single_f_score",
        _FORMS.single_f_score,
        "single_f_score",
        _draw(equal=_count(0, 3)),
        _OURS,
    ),
    Statement(
        "T7-two",
        "N = 2: the greatest selected power is -min(r_1, r_2)^2 - 2 <y_1, y_2>",
        _IDENTITY,
        "head",
        "geobounds.closed_forms.two_power",
        _FORMS.two_power,
        "two_power",
        _draw("r1_square", "r2_square", dot=_signed),
        _OURS,
    ),
    Statement(
        "T8",
        "a power computed in float64 lies within a known radius",
        "upper bound",
        "head",
        "geobounds.power.power_enclosure",
        _FORMS.rounding_radius,
        "rounding_radius",
        _draw(
            "weight", "norm", "bulk", "length", n=_count(1, 64), d_head=_count(1, 256)
        ),
        _OURS,
    ),
    Statement(
        "T9",
        "random directions: all cosines lie within eps of 0",
        _CHANCE,
        "numbers",
        "geobounds.isotropic.isotropic_cosine_bound",
        isotropic.isotropic_cosine_bound,
        "isotropic_cosine_bound",
        _directions,
        _OURS,
    ),
    Statement(
        "T9-token",
        "random directions: every token's pull stays below tau sqrt(sum of r^2)",
        _CHANCE,
        "numbers",
        "geobounds.isotropic.IsotropicRegime",
        isotropic.isotropic_token_bound,
        "isotropic_token_bound",
        _directions,
        _OURS,
    ),
    Statement(
        "T10",
        "output less aggregate is the sum of the visible keys not selected",
        _IDENTITY,
        "head",
        "geobounds.closed_forms.discarded_error",
        _FORMS.discarded_error,
        "discarded_error",
        _tokens,
        _OURS,
    ),
    Statement(
        "T10-norm",
        "its norm is at most the greatest norm times the discarded weight",
        "upper bound",
        "head",
        "geobounds.closed_forms.discarded_error",
        _FORMS.discarded_error,
        "discarded_error",
        _tokens,
        _OURS,
    ),
    Statement(
        "T10-optimal",
        "weight ranking discards least weight, contribution ranking least sum of norms",
        _EXACT,
        "head",
        "geobounds.selection.rank",
        _FORMS.discarded_error,
        "discarded_error",
        _tokens,
        _OURS,
    ),
    Statement(
        "T10-rescaled",
        "after restoring the mass the error is (W - W_S)(v_T - v_S)",
        _IDENTITY,
        "head",
        "geobounds.closed_forms.rescaled_error",
        _FORMS.rescaled_error,
        "rescaled_error",
        _tokens,
        _OURS,
    ),
)

THEOREMS: dict[str, Statement] = {statement.id: statement for statement in _ALL}


def statements_for(names: list[str] | None = None) -> Iterator[Statement]:
    """Yield the statements of these ids; a family's number names all its parts.

    Raises
    ------
    ArgumentError
        No statement has that id.
    """
    for name in names or list(THEOREMS):
        found = [s for s in _ALL if name in (s.id, s.family)]
        if not found:
            msg = f"theorems: id must be one of {', '.join(THEOREMS)}, got {name!r}."
            raise ArgumentError(msg)
        yield from found


def described(statement: Statement) -> dict[str, Any]:
    """Return a statement as JSON data."""
    return {
        "id": statement.id,
        "title": statement.title,
        "kind": statement.kind,
        "hypotheses": {h.name: h.text for h in statement.hypotheses},
        "code": statement.code,
        "symbolic": f"geobounds.symbolic.{statement.form}",
        "proof": f"proofs_checks/{statement.family.lower()}.py",
        "source": statement.source,
    }


def table() -> str:
    """Return the statements as a Markdown table, as README shows it."""
    lines = [
        "| id | statement | kind | code | proof | source |",
        "|:--|:--|:--|:--|:--|:--|",
    ]
    for s in _ALL:
        proof = f"proofs_checks/{s.family.lower()}.py"
        code = s.code.removeprefix("geobounds.")
        lines.append(
            f"| {s.id} | {s.title} | {s.kind} | `{code}` | [{s.family}]({proof}) "
            f"| {s.source} |"
        )
    return "\n".join(lines)
