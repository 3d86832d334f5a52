"""The independent checker: what it accepts, and everything it must refuse."""

import copy
import hashlib
import json
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from strategies import build, choices

import geobounds as gb
from geobounds.verify import main

ENDINGS = (".npz", ".safetensors")
MODULE = sys.modules["geobounds.verify"]  # its name in geobounds is the function
# F_2 = 4/7 and F_3 = 6/13, certified by four cells or by inversions as 4/7 and less.
WEIGHTS = [0.25, 0.0, 0.375, 0.125, 0.125, 0.125]
VALUES = [[2.0, 0.0], [9.0, 9.0], [0.0, 4.0], [-4.0, 1.0], [0.0, -4.0], [0.0, 2.0]]
VISIBLE = [True, False, True, True, True, True]
HEAD = gb.HeadData(WEIGHTS, VALUES, visible=VISIBLE, meta={"model": "hand-made"})
SCORES = [5, 0, 4, 3, 2, 1]


def certificate_data(**options):
    """Return JSON data of claims for N = 2 and 3."""
    certificate = gb.certify(HEAD, [2, 3], resolution=4, **options)
    return json.loads(json.dumps(certificate.to_dict()))


def resigned(data):
    """Return the data with a digest that fits."""
    body = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def leaves(data, path=()):
    """Yield the path of every number, text, truth value and null."""
    steps = {dict: dict.keys, list: lambda x: range(len(x))}.get(type(data))
    if steps is None:
        yield path
    else:
        for step in steps(data):
            yield from leaves(data[step], (*path, step))


def put(data, path, value):
    """Return a copy with one place set."""
    result = copy.deepcopy(data)
    place = result
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return result


def get(data, path):
    """Return one place."""
    for step in path:
        data = data[step]
    return data


def another(value):
    """Return a different value of the same kind."""
    kinds = {
        bool: lambda x: not x,
        int: lambda x: x + 1,
        str: lambda x: x + "0",
        type(None): lambda _: 0,
    }
    return kinds[type(value)](value)


BASE = {
    "cells": certificate_data(),
    "inversions": certificate_data(regime="inversions"),
    "scores": certificate_data(ranking=SCORES),
    "drop": certificate_data(sink_policy="drop", ranking="contribution"),
}
LEAVES = [(name, path) for name, data in BASE.items() for path in leaves(data)]


# Examples


@pytest.mark.parametrize("name", BASE)
def test_true_certificates_are_accepted(name):
    outcome = gb.verify(BASE[name], HEAD)

    assert outcome == gb.Verification(ok=True, reasons=())
    assert bool(outcome) is True


def test_a_refusal_is_false_and_lists_reasons():
    outcome = gb.Verification(ok=False, reasons=("no",))

    assert bool(outcome) is False


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", [str, Path])
def test_files_are_accepted_in_both_formats(tmp_path, ending, kind):
    gb.certify(HEAD, [2, 3]).save(tmp_path / "c.json")
    HEAD.save(tmp_path / f"h{ending}")

    assert gb.verify(kind(tmp_path / "c.json"), kind(tmp_path / f"h{ending}"))


def test_a_head_with_further_queries_is_searched_for_the_position():
    head = gb.HeadData(
        [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], [[1.0], [2.0], [3.0]], visible="causal"
    )
    certificate = gb.certify(head, 1, query=1)

    assert gb.verify(certificate, head)
    assert gb.verify(certificate, head[1])
    assert gb.verify(certificate, head[0]).reasons == ("head: no query at position 2",)


def test_numbers_on_keys_the_query_does_not_see_take_no_part():
    values = np.array(VALUES)
    values[1] = np.nan
    head = gb.HeadData(WEIGHTS, values, visible=VISIBLE)

    assert gb.verify(gb.certify(head, 2), head)


def test_provenance_and_versions_may_say_anything_once_signed():
    """They are informative, and documented as not checked."""
    data = BASE["cells"] | {"provenance": {"model": "other"}, "versions": {}}

    assert gb.verify(resigned(data), HEAD)


# Oracle: weaker claims are accepted, stronger ones never


def weaker(data, claim):
    """Return the data with more inversions, and the bounds that these give."""
    n, m = claim["n"], claim["n_unselected"]
    g = claim["regime"]["inversions"]
    b = gb.inversion_bounds(n, m, g)
    changed = copy.deepcopy(data)
    changed["claims"][0] = claim | {
        "false_positives": min(g, m),
        "false_negatives": min(g, n),
        "precision": str(b.precision),
        "recall": str(b.recall),
        "f_score": str(b.f_joint),
        "verdict": "separable"
        if b.f_joint == 1
        else "bounded"
        if b.f_joint
        else "vacuous",
    }
    return resigned(changed)


@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_more_inversions_with_their_bounds_are_accepted(more):
    data = BASE["inversions"]
    claim = copy.deepcopy(data["claims"][0])
    claim["regime"]["inversions"] += more

    assert gb.verify(weaker(data, claim), HEAD).reasons == ()


def test_fewer_inversions_with_their_bounds_are_refused():
    data = BASE["inversions"]
    claim = copy.deepcopy(data["claims"][0])
    true = claim["regime"]["inversions"]
    claim["regime"]["inversions"] -= 1

    assert true > 0
    assert gb.verify(weaker(data, claim), HEAD).reasons == (
        f"n=2: inversions: there are {true}",
    )


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_the_checkers_own_joint_bound_is_that_of_t2(n, m, data):
    """The two are written differently; fails if either errs."""
    g = data.draw(st.integers(0, n * m))

    assert MODULE._joint_bound(n, g) == gb.inversion_bounds(n, m, g).f_joint


def test_looser_cells_with_their_counts_are_accepted():
    claim = copy.deepcopy(BASE["cells"]["claims"][0])
    for cell in claim["regime"]["cells"]:
        up = 100 if cell["stop"] <= claim["n"] else -100
        cell["norm"] = str(Fraction(cell["norm"]) + up)
        cell["dot"] = str(Fraction(cell["dot"]) - up)
    claim |= {
        "false_positives": 3,
        "false_negatives": 2,
        "precision": "2/5",
        "recall": "0",
        "f_score": "0",
        "verdict": "vacuous",
    }

    assert gb.verify(resigned(put(BASE["cells"], ("claims", 0), claim)), HEAD)


def test_looser_counts_with_their_bounds_are_accepted():
    """Counts may exceed what the cells give, as bounds are one-sided."""
    claim = BASE["cells"]["claims"][0] | {
        "false_positives": 3,
        "false_negatives": 2,
        "precision": "2/5",
        "recall": "0",
        "f_score": "0",
        "verdict": "vacuous",
    }

    assert gb.verify(resigned(put(BASE["cells"], ("claims", 0), claim)), HEAD)


@given(choices(), st.sampled_from(("false_positives", "false_negatives")))
def test_one_count_fewer_is_refused_even_with_consistent_bounds(choice, name):
    """A stronger claim, signed again and consistent in itself."""
    head = build(choice.case)
    data = gb.certify(head, choice.n, **choice.options).to_dict()
    claim = data["claims"][0]
    claim[name] -= 1
    n, fp, fn = choice.n, claim["false_positives"], claim["false_negatives"]
    f = gb.separability.f_score(n, max(fp, 0), max(fn, 0))
    claim |= {
        "precision": str(Fraction(n, n + max(fp, 0))),
        "recall": str(1 - Fraction(max(fn, 0), n)),
        "f_score": str(f),
        "verdict": "separable" if f == 1 else "bounded" if f else "vacuous",
    }
    reasons = gb.verify(resigned(data), head).reasons

    assert len(reasons) == 1
    assert f"{name}: " in reasons[0]


# Tampering


@pytest.mark.parametrize(("name", "path"), LEAVES, ids=str)
def test_every_changed_leaf_is_refused(name, path):
    """No field is outside the digest."""
    data = BASE[name]
    changed = put(data, path, another(get(data, path)))
    reasons = gb.verify(changed, HEAD).reasons
    expected = "format: " if path in (("format",), ("version",)) else "sha256: "

    assert len(reasons) == 1
    assert reasons[0].startswith(expected)
    with pytest.raises(gb.CertificateFormatError):
        gb.Certificate.from_dict(changed)


def stronger(data, path):
    """Return a value that claims more than the data at this place."""
    value, name = get(data, path), path[-1]
    step = {"norm": -1, "dot": 1}.get(name)
    if step is not None:
        selected = get(data, path[:-1])["stop"] <= get(data, path[:2])["n"]
        return str(Fraction(value) + step * (1 if selected else -1) * TINY)
    if name in ("precision", "recall", "f_score", "measured", "mass"):
        return str(Fraction(value) + TINY)
    if name in ("false_positives", "false_negatives", "inversions"):
        return value - 1
    return another(value)


TINY = Fraction(1, 2**99)
UNCHECKED = ("sha256", "provenance", "versions")
CHECKED = [
    (name, path)
    for name, path in LEAVES
    if path[0] not in UNCHECKED and "scores" not in path
]


@pytest.mark.parametrize(("name", "path"), CHECKED, ids=str)
def test_every_leaf_that_claims_more_is_refused_though_signed_again(name, path):
    """Each checked field by a check of its own; the scores have their own test."""
    data = BASE[name]
    outcome = gb.verify(resigned(put(data, path, stronger(data, path))), HEAD)

    assert len(outcome.reasons) == 1
    assert not outcome


def cell(index, **fields):
    """Return an edit of one cell of the claim for N = 2."""

    def edit(data):
        data["claims"][0]["regime"]["cells"][index] |= fields

    return edit


def claim(**fields):
    """Return an edit of the claim for N = 2."""
    return lambda data: data["claims"][0].update(fields)


def part(name, **fields):
    """Return an edit of the head or the definitions."""
    return lambda data: data[name].update(fields)


def ends(*pairs):
    """Return an edit that replaces the cells of the claim for N = 2."""
    cells = [
        {"start": a, "stop": b, "norm": "1000" if b <= 2 else "0", "dot": "0"}
        for a, b in pairs
    ]
    return lambda data: data["claims"][0]["regime"].update(cells=cells)


def without(*path):
    """Return an edit that removes a field."""

    def edit(data):
        del get(data, path[:-1])[path[-1]]

    return edit


EDITS = {
    "a stronger F": (
        claim(f_score="9/10"),
        r"n=2: f_score: should be",
    ),
    "a stronger precision": (claim(precision="9/10"), r"n=2: precision: should be"),
    "a stronger recall": (claim(recall="9/10"), r"n=2: recall: should be"),
    "a better verdict": (claim(verdict="separable"), r"n=2: verdict: should be"),
    "a measured F of 1": (claim(measured="1"), r"n=2: measured: should be '4/7'"),
    "a measured F that is no text": (claim(measured=1), "measured: should be '4/7'"),
    "an F that is no fraction": (claim(f_score="two"), "f_score: should be '4/7'"),
    "an F divided by zero": (claim(f_score="1/0"), "f_score: should be '4/7'"),
    "other keys": (claim(selected=[2, 3]), r"n=2: selected: should be \[2, 0\]"),
    "keys in another order": (claim(selected=[0, 2]), r"selected: should be \[2, 0\]"),
    "a key too few": (claim(selected=[2]), r"selected: should be \[2, 0\]"),
    "keys as decimals": (claim(selected=[2.0, 0.0]), r"selected: should be \[2, 0\]"),
    "no keys": (claim(selected=None), r"selected: should be \[2, 0\]"),
    "a tie": (claim(boundary_tie=True), "boundary_tie: should be False"),
    "a tie as a number": (claim(boundary_tie=0), "boundary_tie: should be False"),
    "other unselected": (claim(n_unselected=4), "n_unselected: should be 3"),
    "no false positive": (claim(false_positives=0), "false_positives: at least"),
    "no false negative": (claim(false_negatives=0), "false_negatives: at least"),
    "negative counts": (claim(false_positives=-1), "false_positives: range"),
    "more than all": (claim(false_positives=4), "false_positives: range"),
    "more than n": (claim(false_negatives=3), "false_negatives: range"),
    "a count as text": (claim(false_negatives="2"), "false_negatives: range"),
    "a count as truth": (claim(false_positives=True), "false_positives: range"),
    "n of 0": (claim(n=0), "n=0: n: out of range"),
    "n of all": (claim(n=5), "n=5: n: out of range"),
    "n as truth": (claim(n=True), "n=True: n: out of range"),
    "n as text": (claim(n="2"), "n='2': n: out of range"),
    "one n twice": (claim(n=3), "claims: one n twice"),
    "n of another claim": (claim(n=1), r"n=1: selected: should be \[2\]"),
    "no regime": (claim(regime=None), "regime: not an object"),
    "an unknown regime": (claim(regime={"name": "luck"}), "regime: unknown name"),
    "a regime without cells": (
        claim(regime={"name": "cells"}),
        "regime: missing or unknown fields",
    ),
    "inversions without a number": (
        claim(regime={"name": "inversions"}),
        "regime: missing or unknown fields",
    ),
    "inversions as text": (
        claim(regime={"name": "inversions", "inversions": "9"}),
        "inversions: there are",
    ),
    "too few inversions": (
        claim(regime={"name": "inversions", "inversions": 0}),
        "inversions: there are",
    ),
    "cells that are no list": (
        claim(regime={"name": "cells", "cells": 1}),
        "cells: not a list",
    ),
    "no cells": (ends(), "they do not cover"),
    "cells of numbers": (
        claim(regime={"name": "cells", "cells": [1]}),
        "cells: missing or unknown fields",
    ),
    "a cell with a note": (cell(0, note="x"), "cells: missing or unknown fields"),
    "a start as text": (cell(0, start="0"), "cells: they do not cover"),
    "a start as truth": (cell(0, start=False), "cells: they do not cover"),
    "a stop as decimal": (cell(0, stop=1.0), "cells: they do not cover"),
    "overlapping cells": (ends((0, 1), (0, 2), (2, 5)), "they do not cover"),
    "a gap between cells": (ends((0, 1), (1, 2), (3, 5)), "they do not cover"),
    "cells that end early": (ends((0, 1), (1, 2), (2, 4)), "they do not cover"),
    "cells that start late": (ends((1, 2), (2, 5)), "they do not cover"),
    "cells that end late": (ends((0, 1), (1, 2), (2, 6)), "they do not cover"),
    "an empty cell": (ends((0, 1), (1, 1), (1, 2), (2, 5)), "they do not cover"),
    "a cell backwards": (
        ends((0, 1), (1, 2), (2, 4), (4, 3), (3, 5)),
        "they do not cover",
    ),
    "a cell of both kinds": (
        ends((0, 1), (1, 5)),
        "cells: one holds selected and unselected keys",
    ),
    "a sink that shares a cell": (ends((0, 2), (2, 5)), "the sink shares a cell"),
    "a norm too small": (cell(0, norm="1/2"), r"cell \[0, 1\): does not hold at key 0"),
    "a dot too large": (cell(0, dot="9"), r"cell \[0, 1\): does not hold at key 0"),
    "an unselected norm too large": (cell(-1, norm="99"), "does not hold at key"),
    "an unselected dot too small": (cell(-1, dot="-99"), "does not hold at key"),
    "a norm that is no number": (
        cell(0, norm=None),
        "no fraction in lowest terms: None",
    ),
    "a norm that is no text": (cell(0, norm=9), "no fraction in lowest terms: 9"),
    "a norm in words": (cell(0, norm="two"), "no fraction in lowest terms: 'two'"),
    "a norm divided by zero": (
        cell(0, norm="9/0"),
        "no fraction in lowest terms: '9/0'",
    ),
    "a norm not in lowest terms": (
        cell(0, norm="18/2"),
        "no fraction in lowest terms: '18/2'",
    ),
    "a norm as decimal": (cell(0, norm="9.5"), "no fraction in lowest terms: '9.5'"),
    "a norm with an exponent": (cell(0, norm="1e9"), "in lowest terms: '1e9'"),
    "a norm of minus zero": (cell(0, dot="-0"), "in lowest terms: '-0'"),
    "a norm with a line behind": (cell(0, norm="9\n"), "in lowest terms: '9"),
    "a norm in other digits": (cell(0, norm="٩"), "in lowest terms: '٩'"),
    "a norm too long": (cell(0, norm="1" * 5000), "in lowest terms: '111"),
    "an unknown field": (lambda data: data.update(note=1), "missing or unknown fields"),
    "a missing field": (without("versions"), "missing or unknown fields"),
    "an unknown version": (
        lambda data: data.update(version=3),
        "format: unknown, .* 3",
    ),
    "a version as decimal": (
        lambda data: data.update(version=2.0),
        "format: unknown, .* 2.0",
    ),
    "a version as truth": (
        lambda data: data.update(version=True),
        "format: unknown, .* True",
    ),
    "another format": (lambda data: data.update(format="x"), "format: unknown, 'x'"),
    "no format": (without("format"), "format: unknown, None version 2"),
    "no claims": (lambda data: data.update(claims=[]), "claims: none"),
    "claims by name": (lambda data: data.update(claims={"2": 1}), "claims: none"),
    "a claim that is none": (
        lambda data: data.update(claims=[1]),
        "claims: missing or unknown fields",
    ),
    "a claim with a note": (claim(note="x"), "claims: missing or unknown fields"),
    "a claim without verdict": (
        without("claims", 0, "verdict"),
        "claims: missing or unknown fields",
    ),
    "a head that is none": (
        lambda data: data.update(head=[]),
        "head: missing or unknown fields",
    ),
    "a head with a note": (part("head", note="x"), "head: missing or unknown fields"),
    "another head": (part("head", sha256="0" * 64), "not the head that was certified"),
    "another position": (part("head", query_position=9), "no query at position 9"),
    "another mass": (part("head", mass="2"), "head: mass: should be '1'"),
    "another n_key": (part("head", n_key=5), "head: n_key: should be 6"),
    "another width": (part("head", d_head=3), "head: d_head: should be 2"),
    "more candidates": (
        part("head", n_candidates=6),
        "head: n_candidates: should be 5",
    ),
    "definitions that are none": (
        lambda data: data.update(definitions=[]),
        "definitions: not an object",
    ),
    "a definition too many": (
        part("definitions", note=1),
        "definitions: missing or unknown fields",
    ),
    "a definition missing": (
        without("definitions", "ties"),
        "definitions: missing or unknown fields",
    ),
    "scores without need": (
        part("definitions", scores=[]),
        "definitions: missing or unknown fields",
    ),
    "missing scores": (
        part("definitions", ranking="scores"),
        "definitions: missing or unknown fields",
    ),
    "an unknown ranking": (part("definitions", ranking="norm"), "unknown ranking"),
    "another ranking": (
        part("definitions", ranking="contribution"),
        r"n=2: selected: should be \[2, 3\]",
    ),
    "a strict comparison": (part("definitions", comparison="strict"), "unknown compar"),
    "cosine distance": (part("definitions", distance="cosine"), "unknown distance"),
    "another tie rule": (part("definitions", ties="larger"), "unknown ties"),
    "an unknown policy": (
        part("definitions", sink_policy="skip"),
        "unknown sink_policy",
    ),
    "another policy": (
        part("definitions", sink_policy="drop"),
        "n_candidates: should be 4",
    ),
    "a policy of as many candidates": (
        part("definitions", sink_policy="compete"),
        r"n=2: selected: should be \[2, 3\]",
    ),
    "another sink": (part("definitions", sink=1), "definitions: sink: should be 0"),
    "no sink": (part("definitions", sink=None), "definitions: sink: should be 0"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_false_certificate_signed_again_is_refused_with_its_reason(name):
    edit, reason = EDITS[name]
    data = copy.deepcopy(BASE["cells"])
    edit(data)
    outcome = gb.verify(resigned(data), HEAD)

    assert not outcome
    assert re.search(reason, "\n".join(outcome.reasons))


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([1, 2], "scores of wrong length"),
        ("5", "scores of wrong length"),
        ([5, None, 4, 3, 2, 1], "no fraction in lowest terms: 5"),
        (["5", None, None, "3", "2", "1"], "no fraction in lowest terms: None"),
        (["5", None, "4", "3", "2", "one"], "no fraction in lowest terms: 'one'"),
        (["1", None, "4", "3", "2", "1"], "n=2: selected: should be [2, 3]"),
        (["5", None, "4", "4", "2", "1"], "n=2: boundary_tie: should be True"),
    ],
)
def test_false_scores_signed_again_are_refused(scores, reason):
    data = put(BASE["scores"], ("definitions", "scores"), scores)
    reasons = gb.verify(resigned(data), HEAD).reasons

    assert any(reason in x for x in reasons)


@pytest.mark.parametrize("text", ["9", "-1/3"])
def test_the_score_of_a_key_that_is_not_seen_may_be_any_number(text):
    data = put(BASE["scores"], ("definitions", "scores", 1), text)

    assert gb.verify(resigned(data), HEAD)


@pytest.mark.parametrize("value", ["x", 9, 0.5, [], "2/2"])
def test_the_score_of_a_key_that_is_not_seen_is_a_number_if_any(value):
    data = put(BASE["scores"], ("definitions", "scores", 1), value)

    assert "no fraction in" in gb.verify(resigned(data), HEAD).reasons[0]


def test_norms_without_a_common_denominator_are_refused_at_once():
    """A sum over the denominators of all would take hours."""
    data = certificate_data(regime="pairwise-roles-norms")
    for place, (_, low, high) in enumerate(data["claims"][0]["regime"]["token_norms"]):
        unit = 10**3999 + place
        ends = (Fraction(low) * unit // 1 - 1, Fraction(high) * unit // 1 + 1)
        entry = data["claims"][0]["regime"]["token_norms"][place]
        entry[1:] = [str(max(Fraction(end, unit), Fraction(0))) for end in ends]
    reasons = gb.verify(resigned(data), HEAD).reasons

    assert reasons == ("n=2: token_norms: no common denominator of 8192 bits",)


def test_each_false_claim_is_named_and_true_ones_are_not():
    data = put(BASE["cells"], ("claims", 1, "measured"), "0")

    assert [x[:4] for x in gb.verify(resigned(data), HEAD).reasons] == ["n=3:"]


# Another head


@pytest.mark.parametrize("key", [0, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["weights", "values"])
def test_a_head_changed_by_one_unit_in_the_last_place_is_refused(name, key):
    arrays = {"weights": np.array(WEIGHTS), "values": np.array(VALUES)}
    place = arrays[name][key : key + 1]
    place[...] = np.nextafter(place, 9)
    head = gb.HeadData(**arrays, visible=VISIBLE)
    reasons = gb.verify(BASE["cells"], head).reasons

    assert reasons == ("head: not the head that was certified (its sha256 differs)",)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"visible": [True] * 6}, "sha256 differs"),
        ({"sink": 2}, "sha256 differs"),
        ({"query_positions": [4]}, "no query at position 5"),
        ({"values": None}, "it has no values"),
        ({"values": np.array(VALUES, dtype=np.float32)}, "sha256 differs"),
    ],
)
def test_a_head_that_differs_otherwise_is_refused(options, reason):
    head = gb.HeadData(WEIGHTS, **{"values": VALUES, "visible": VISIBLE, **options})

    assert reason in gb.verify(BASE["cells"], head).reasons[0]


class Arrays:
    """A head that was never validated."""

    def __init__(self, **changes):
        self.weights = np.array([WEIGHTS])
        self.values = np.array(VALUES)
        self.visible = np.array([VISIBLE])
        self.query_positions = np.array([5])
        self.sink = 0
        self.__dict__.update(changes)

    def stored(self):
        """Return what a head gives the checker."""
        names = ("weights", "values", "visible", "query_positions")
        found = {name: getattr(self, name) for name in names}
        arrays = {k: (x.dtype.name, x.shape, x.tobytes()) for k, x in found.items()}
        return arrays, {"sink": self.sink}

    def signed(self):
        """Return certificate data that names this very head."""
        (row,) = MODULE._rows(self)
        return resigned(put(BASE["cells"], ("head", "sha256"), row.digest))


def test_an_array_of_ones_own_is_read_as_a_head():
    assert gb.verify(BASE["cells"], Arrays())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"values": np.full((6, 2), np.nan)}, "head: NaN or infinity"),
        (
            {"weights": np.array([[np.inf, 0, 0.25, 0.5, 0, 0]])},
            "head: NaN or infinity",
        ),
        ({"weights": np.array([[-1, 0, 0.25, 0.5, 0, 0.0]])}, "a negative weight, or"),
        (
            {"weights": np.array([[1, 0.5, 0.25, 0.5, 0, 0]])},
            "or weight on a hidden key",
        ),
    ],
)
def test_a_head_that_could_not_be_validated_is_refused_though_signed(changes, reason):
    """The checker trusts no one's validation."""
    head = Arrays(**changes)

    assert reason in gb.verify(head.signed(), head).reasons[0]


# Files


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "certificate: not JSON data"),
        ("{", "certificate: not JSON data"),
        ("[" * 100_000, "certificate: not JSON data"),
        ("[]", "certificate: not a JSON object"),
        ("1", "certificate: not a JSON object"),
        ("{}", "format: unknown, None version None"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
    ],
)
def test_a_file_that_is_no_certificate_is_refused(tmp_path, text, reason):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    outcome = gb.verify(path, HEAD)

    assert not outcome
    assert reason in outcome.reasons[0]


def test_a_key_that_stands_twice_is_refused(tmp_path):
    """Two readers could read two different claims."""
    path = tmp_path / "c.json"
    text = json.dumps(BASE["cells"])
    path.write_text(text.replace('"n": 2,', '"n": 3, "n": 2,', 1), encoding="utf-8")

    assert "a key stands twice" in gb.verify(path, HEAD).reasons[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, np.int64(1)])
def test_data_that_no_json_file_can_hold_is_refused(value):
    data = put(BASE["cells"], ("provenance",), {"x": value})

    assert "certificate: not JSON data" in gb.verify(data, HEAD).reasons[0]


def test_a_file_with_nan_is_refused(tmp_path):
    path = tmp_path / "c.json"
    data = put(BASE["cells"], ("provenance",), {"x": float("nan")})
    path.write_text(json.dumps(resigned(data)), encoding="utf-8")

    assert "certificate: not JSON data" in gb.verify(path, HEAD).reasons[0]


@pytest.mark.parametrize(("which", "name"), [(0, "c.json"), (1, "h.npz")])
def test_a_file_that_cannot_be_read_raises(tmp_path, which, name):
    gb.certify(HEAD, 2).save(tmp_path / "c.json")
    HEAD.save(tmp_path / "h.npz")
    (tmp_path / name).unlink()

    with pytest.raises(FileNotFoundError) as caught:
        gb.verify(tmp_path / "c.json", tmp_path / "h.npz")
    assert str(caught.value.filename).endswith(("c.json", "h.npz")[which])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", [b"", b"no head"])
def test_a_damaged_head_file_is_refused(tmp_path, ending, content):
    path = tmp_path / f"h{ending}"
    path.write_bytes(content)

    assert "is not a head file" in gb.verify(BASE["cells"], path).reasons[0]


@pytest.mark.parametrize("order", [1, -1])
def test_the_arrays_of_a_file_may_stand_in_any_order(tmp_path, order):
    """They are hashed in one order; the names in a tensor file have none."""
    names = ("weights", "values", "visible", "query_positions", "header")[::order]
    text = np.frombuffer(json.dumps({"sink": 0}).encode(), dtype=np.uint8)
    arrays = HEAD.arrays() | {"header": text}
    np.savez(tmp_path / "h.npz", **{name: arrays[name] for name in names})

    assert gb.verify(BASE["cells"], tmp_path / "h.npz")


def test_a_tensor_file_without_header_is_refused(tmp_path):
    path = tmp_path / "h.safetensors"
    arrays = Arrays()
    save_file(
        {
            name: getattr(arrays, name)
            for name in ("weights", "values", "visible", "query_positions")
        },
        path,
    )

    assert "is not a head file" in gb.verify(BASE["cells"], path).reasons[0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_of_another_head_is_refused(tmp_path, ending):
    path = tmp_path / f"h{ending}"
    gb.HeadData(WEIGHTS, np.array(VALUES) * 2, visible=VISIBLE).save(path)

    assert "sha256 differs" in gb.verify(BASE["cells"], path).reasons[0]


# As a program


@pytest.fixture
def files(tmp_path):
    """A certificate, its head, and a head that is not its own."""
    gb.certify(HEAD, [2, 3]).save(tmp_path / "c.json")
    HEAD.save(tmp_path / "h.npz")
    gb.HeadData(WEIGHTS, np.array(VALUES) * 2, visible=VISIBLE).save(
        tmp_path / "other.npz"
    )
    return tmp_path


def test_the_program_prints_its_verdict(files, capsys):
    assert main([str(files / "c.json"), str(files / "h.npz")]) == 0
    assert capsys.readouterr().out == "holds\n"
    assert main([str(files / "c.json"), str(files / "other.npz")]) == 1
    assert "not the head that was certified" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["c.json"]])
def test_the_program_says_how_it_is_used(capsys, arguments):
    assert main(arguments) == 2
    assert "usage: python verify.py CERT.json HEAD.npz" in capsys.readouterr().err


def test_the_checker_runs_alone_in_a_folder_of_its_own(files):
    """Isolated, from a copy, and without geobounds being imported at all."""
    shutil.copy(MODULE.__file__, files / "verify.py")
    code = (
        "import runpy, sys\n"
        "sys.argv = ['verify.py', *sys.argv[1:]]\n"
        "try:\n"
        "    runpy.run_path('verify.py', run_name='__main__')\n"
        "finally:\n"
        "    print([m for m in sys.modules if m.startswith(('geobounds', 'torch'))])\n"
    )

    def run(head):
        return subprocess.run(
            [sys.executable, "-I", "-c", code, "c.json", head],
            cwd=files,
            capture_output=True,
            text=True,
            check=False,
        )

    good, bad = run("h.npz"), run("other.npz")
    assert (good.returncode, good.stdout) == (0, "holds\n[]\n")
    assert bad.returncode == 1
    assert bad.stdout.endswith("[]\n")
