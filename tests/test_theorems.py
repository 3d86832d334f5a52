"""THEOREMS: numeric and symbolic forms agree; hypotheses and examples are complete."""

import importlib
import json
import random
import re
from fractions import Fraction
from math import nextafter
from pathlib import Path

import pytest
import sympy as sp
from evidence import record

import geobounds as gb
from geobounds import symbolic
from geobounds.examples import Example, examples, examples_of
from geobounds.theorems import described, statements_for, table

ROOT = Path(__file__).parents[1]
IDS = list(gb.THEOREMS)
_DRAWS = 100
# A radius holds for every order of summation and is attained by none.
_TIGHT = [
    i
    for i, s in gb.THEOREMS.items()
    if s.kind in ("lower bound", "upper bound", "exact") and i != "T8"
]


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", [i for i in IDS if not i.startswith("T9")])
def test_numeric_and_symbolic_form_agree_exactly(name):
    """On random rational arguments, with no tolerance."""
    statement, rng = gb.THEOREMS[name], random.Random(name)
    for _ in range(_DRAWS):
        arguments = statement.sample(rng)
        numbers = as_tuple(statement.numeric(**arguments))
        symbols = as_tuple(symbolic.evaluate(statement.form, arguments))

        assert len(numbers) == len(symbols)
        for number, symbol in zip(numbers, symbols, strict=True):
            difference = symbol - sp.Rational(number)
            assert difference == 0 or sp.simplify(difference) == 0, arguments
    record(name, _DRAWS, None, "symbolic")


@pytest.mark.parametrize("name", ["T9", "T9-token"])
def test_isotropic_bound_is_the_least_double_above_the_symbolic_form(name):
    statement, rng = gb.THEOREMS[name], random.Random(name)
    for _ in range(_DRAWS):
        arguments = statement.sample(rng)
        found = statement.numeric(**arguments)
        exact = symbolic.evaluate(statement.form, arguments)

        assert sp.Rational(nextafter(found, 0)) < exact <= sp.Rational(found)
    record(name, _DRAWS, None, "symbolic")


def test_a_wrong_closed_form_disagrees_with_its_symbolic_form():
    """A test of the test above: one sign changed in each of four forms."""
    wrong = {
        "T3": lambda a, b, A, mu: a * a + b * b + 2 * a * mu * (A - a) + 2 * b * mu * A,
        "T4-gap": lambda a, b, A, mu_low, mu_high: (
            a * a - b * b + 2 * mu_low * a * (A - a) - 2 * mu_high * A * b
        ),
        "T5": lambda a, b, pull, mu: a * a * (1 - mu) + b * b + 2 * pull * (a - b),
        "T7-two": lambda r1_square, r2_square, dot: -max(r1_square, r2_square) - dot,
    }
    for name, form in wrong.items():
        statement, rng = gb.THEOREMS[name], random.Random(name)
        draws = [statement.sample(rng) for _ in range(_DRAWS)]

        assert any(
            symbolic.evaluate(statement.form, x) != sp.Rational(form(**x))
            for x in draws
        ), name


@pytest.mark.parametrize("name", IDS)
def test_every_hypothesis_has_a_counterexample_or_a_reason(name):
    """And no counterexample is recorded for a hypothesis that does not exist."""
    statement = gb.THEOREMS[name]
    dropped = {e.drops for e in examples_of(name) if e.kind == "counterexample"}
    needed = {h.name for h in statement.hypotheses if not h.sufficient_only}

    assert dropped == needed


@pytest.mark.parametrize("name", _TIGHT)
def test_what_is_called_tight_or_exact_has_a_witness(name):
    assert any(e.kind == "witness" for e in examples_of(name))


@pytest.mark.parametrize("example", examples(), ids=lambda e: f"{e.statement} {e.name}")
def test_example_shows_what_it_says(example):
    """A witness attains the bound; a counterexample breaks one hypothesis only."""
    statement, situation = gb.THEOREMS[example.statement], example.situation()
    failing, slack = statement.failing(situation), statement.slack(situation)

    if example.kind == "witness":
        assert (failing, slack) == ([], 0)
    else:
        assert example.kind == "counterexample"
        assert failing == [example.drops]
        assert slack < 0
    record(example.statement, 1, slack if slack >= 0 else None, example.kind)


def test_examples_have_names_of_their_own():
    names = [(e.statement, e.name) for e in examples()]

    assert len(set(names)) == len(names) > 40


def test_example_numbers_are_exact():
    """A fraction written as text stays one; nothing passes through a float."""
    example = Example(
        "T3",
        "x",
        "witness",
        "",
        "",
        {"weights": ["1/3", "1/3"], "gram": [[1, 0], [0, 1]], "n": 1},
    )

    assert example.situation().weights == [1, 1]
    data = {"key": ["1/3", "2/3"], "n": 1}
    keys = Example("T1", "x", "witness", "", "", data).situation()
    assert keys.key == [Fraction(1, 3), Fraction(2, 3)]


def test_table_of_statements_in_readme_is_the_registry():
    assert table() in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", IDS)
def test_statement_names_code_and_proof_that_exist(name):
    """Code by its dotted name, proof by its file, which states the id; tests by id."""
    facts = described(gb.THEOREMS[name])
    module, _, attribute = facts["code"].rpartition(".")
    proof = (ROOT / facts["proof"]).read_text(encoding="utf-8")

    found = getattr(importlib.import_module(module), attribute)
    assert re.search(rf"\b{gb.THEOREMS[name].family}\b", found.__doc__), name
    assert proof.startswith(f'"""{gb.THEOREMS[name].family}: ')
    assert re.search(rf"\({re.escape(name)}\)", proof), f"{name} has no written proof"
    assert facts["symbolic"].rpartition(".")[2] in symbolic.FORMS


def test_ids_name_a_statement_or_a_family():
    assert [s.id for s in statements_for(["T2"])] == ["T2a", "T2b"]
    assert [s.id for s in statements_for(["T4-gap", "T7"])] == [
        "T4-gap",
        "T7",
        "T7-cosine",
        "T7-two",
    ]
    with pytest.raises(
        gb.ArgumentError, match=r"theorems: id must be one of T1, .*'T0'"
    ):
        list(statements_for(["T0"]))


def test_statements_are_json_data():
    assert json.loads(json.dumps([described(s) for s in gb.THEOREMS.values()]))
