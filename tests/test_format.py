"""The documented format: docs/certificate-format.md, its schema, and samples of it.

The document, the schema, the library and the checker each say what a certificate is.
Here they are held to one another.
"""

import copy
import hashlib
import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cases import draw_heads
from jsonschema import Draft202012Validator
from safetensors import safe_open
from strategies import POLICIES, build

import geobounds as gb
from geobounds import certificate, claims, headfile
from geobounds.verify import read_arrays

ROOT = Path(__file__).parent.parent
SAMPLES = Path(__file__).parent / "samples"
DOCUMENT = (ROOT / "docs" / "certificate-format.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "certificate.schema.json").read_text("utf-8"))
VALID = Draft202012Validator(SCHEMA).is_valid

# F_2 = 4/7: two heads, one of weights alone and one whose distances nearly tie.
HEAD = gb.HeadData(
    [0.25, 0.0, 0.375, 0.125, 0.125, 0.125],
    [[2.0, 0.0], [9.0, 9.0], [0.0, 4.0], [-4.0, 1.0], [0.0, -4.0], [0.0, 2.0]],
    visible=[True, False, True, True, True, True],
    meta={"model": "hand-made", "temperature": 0.7},
)
BARE = gb.HeadData(HEAD.weights[0], visible=HEAD.visible[0])
DOUBT = gb.HeadData(
    np.float32([0.25 * 512_804 / 512_695, 0.25]),
    np.float32([[512_695], [512_804]]),
    sink=None,
)
SCORES = [5, 0, 4, 3, 2, 1]


def plain(found):
    """Return a certificate as the JSON data of its file."""
    return json.loads(json.dumps(found.to_dict()))


def resigned(data):
    """Return the data with a digest that fits; members of a set too."""
    body = {key: value for key, value in data.items() if key != "sha256"}
    if isinstance(body.get("certificates"), list):
        body["certificates"] = [
            resigned(x) if isinstance(x, dict) else x for x in body["certificates"]
        ]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def certify(**options):
    return plain(gb.certify(HEAD, [2, 3], **options))


def conditional(**options):
    regime = gb.PairwiseRegime.fit(HEAD, n=2, **options)
    return plain(gb.certify(BARE, regime=regime))


# One certificate of every kind, with the heads it is about.
KINDS = {
    **{name: (certify(regime=name), HEAD) for name in claims.REGIMES},
    "scores": (certify(ranking=SCORES), HEAD),
    "contribution": (certify(ranking="contribution", sink_policy="drop"), HEAD),
    "compete": (certify(regime="pairwise-roles", sink_policy="compete"), HEAD),
    "undecided": (plain(gb.certify(DOUBT, 1, settle_doubt=False)), DOUBT),
    "conditional": (conditional(exact_norms=True), BARE),
    "version 1": (resigned(certify() | {"version": 1}), HEAD),
}
SET = plain(gb.certify_all([HEAD, DOUBT], n=1))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_certificate_is_true_and_valid(kind):
    """The ground on which the tests below stand."""
    data, head = KINDS[kind]

    assert gb.verify(data, head).reasons == ()
    assert [e.message for e in Draft202012Validator(SCHEMA).iter_errors(data)] == []


# The document


def section(title):
    """Return the text below a heading, down to the next of its level."""
    _, _, rest = DOCUMENT.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def tabled(title, head="field"):
    """Return the first cells of all tables of a section whose first head is this."""
    found, inside = [], False
    for line in section(title).splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.startswith(f"| {head} |"):
            inside = True
        elif inside and not line.startswith("|---"):
            found += re.findall(r"`([^`]+)`", line.split("|")[1])
    return found


def paths(data, stem=""):
    """Yield the path of every field of JSON data, lists written as []."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield stem + name
            yield from paths(value, f"{stem}{name}.")
    elif isinstance(data, list):
        for value in data:
            yield from paths(value, f"{stem.removesuffix('.')}[].")


def fields_of(data):
    """Return the paths of a certificate's fields, its informative part left out."""
    body = data | {"provenance": {}, "versions": {}}
    return set(paths(body))


def test_every_field_of_a_certificate_is_in_the_tables_and_the_reverse():
    """Full paths: a field moved, added or dropped anywhere fails here."""
    occurring = set().union(*(fields_of(data) for data, _ in KINDS.values()))
    documented = tabled("The certificate") + tabled("Regimes")

    assert set(documented) == occurring
    assert len(documented) == len(set(documented))


def test_every_field_of_a_set_is_in_its_table_and_the_reverse():
    assert sorted(tabled("The set")) == sorted(SET)


def test_every_field_of_a_head_file_is_in_its_tables_and_the_reverse(tmp_path):
    HEAD.save(tmp_path / "h.safetensors")
    with safe_open(tmp_path / "h.safetensors", framework="numpy") as archive:
        arrays = list(archive.keys())
        header = json.loads(archive.metadata()["header"])

    assert sorted(tabled("The head file")) == sorted(header)
    assert sorted(tabled("The head file", "array")) == sorted(arrays)


def test_the_informative_fields_are_those_that_a_checker_ignores():
    """Each field is replaced by something else; only these two may pass."""
    ignored = set()
    for data, head in KINDS.values():
        for name in data.keys() - {"sha256"}:
            if gb.verify(resigned(data | {name: {"anything": [1.5, None]}}), head):
                ignored.add(name)
    marked = re.findall(r"\| `(\w+)` \| object \| \*\*informative only\*\*", DOCUMENT)

    assert ignored == {"provenance", "versions"}
    assert marked == ["provenance", "versions", "meta"]


def test_meta_of_a_head_file_is_in_no_digest():
    assert HEAD.with_meta({"model": "another"}).digest() == HEAD.digest()


def test_every_word_a_certificate_may_hold_is_in_the_document():
    """Verdicts, policies, rankings and regimes, as the schema lists them."""
    words = {"geobounds-certificate", "geobounds-certificates", "geobounds-head-1"}

    def collect(part):
        if isinstance(part, dict):
            words.update(
                x
                for x in [part.get("const"), *part.get("enum", [])]
                if isinstance(x, str)
            )
        for x in part.values() if isinstance(part, dict) else part:
            if isinstance(x, (dict, list)):
                collect(x)

    collect(SCHEMA)

    assert {"separable", "compete", "contribution", "pairwise-roles-norms"} < words
    for word in words - {"0", "1"}:
        assert f'"{word}"' in DOCUMENT or f"`{word}`" in DOCUMENT, word
    assert tabled("Verdicts and special cases", "verdict") == [
        "separable",
        "undecided",
        "bounded",
        "vacuous",
    ]


def test_the_names_and_versions_of_the_document_are_those_of_the_code():
    assert f'"{headfile.FORMAT}"' in section("The head file")
    assert f'"{certificate.FORMAT}"' in section("The certificate")
    assert f'"{certificate.SET_FORMAT}"' in section("The set")
    assert "version 1 or 2" in section("The certificate")
    assert certificate._READABLE == (1, 2)


def test_links_within_the_document_lead_somewhere():
    headings = re.findall(r"^#+ (.+)$", DOCUMENT, re.MULTILINE)
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", x.lower()).replace(" ", "-") for x in headings
    }
    targets = re.findall(r"\]\(([^)]+)\)", DOCUMENT)

    assert {x[1:] for x in targets if x.startswith("#")} <= anchors
    assert all((ROOT / "docs" / x).is_file() for x in targets if x[0] != "#")


def documented_code():
    """Run the document's Python and return what it defines."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    found = {}
    exec(code, found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_digest_of_the_document_is_that_of_every_certificate(kind):
    data, _ = KINDS[kind]

    assert documented_code()["certificate_digest"](data) == data["sha256"]


def test_the_digest_of_the_document_holds_for_sets_and_odd_provenance():
    """Letters outside ASCII, floats and control characters are written alike."""
    code = documented_code()
    head = HEAD.with_meta(
        {"é\x7f\U0001f600": [0.1, 1e-7, 1e22, -0.0, 1.0], "a": "\n\\"}
    )
    data = plain(gb.certify(head, 1))

    assert code["certificate_digest"](SET) == SET["sha256"]
    assert code["certificate_digest"](data) == data["sha256"]
    assert gb.verify(data, head)
    text = code["canonical"](data["provenance"]).decode("ascii")
    assert text == (
        r'{"a":"\n\\","\u00e9\u007f\ud83d\ude00":[0.1,1e-07,1e+22,-0.0,1.0]}'
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_the_head_digest_of_the_document_is_that_of_every_head(dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    weights = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], dtype=kind)
    values = np.array([[1.0, -0.0], [3.0, 4.0], [np.nan, 6.0]], dtype=kind)
    visible = np.array([[True, True, False]] * 2)
    weights[1, 2] = 0
    code = documented_code()
    for given in (values, None):
        for sink in (None, 1):
            head = gb.HeadData(weights, given, visible=visible, sink=sink)
            for row in range(2):
                found = code["head_digest"](
                    head.weights[row],
                    head.visible[row],
                    head.values,
                    int(head.query_positions[row]),
                    sink,
                )
                assert found == head.digest(row)


# The schema


def test_the_schema_is_a_schema_of_its_draft():
    Draft202012Validator.check_schema(SCHEMA)

    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("regime", claims.REGIMES)
def test_every_certificate_the_library_writes_is_valid(regime):
    """Every shape of head, ranking and policy, with huge and tiny fractions."""
    made = 0
    for case in draw_heads(seed=21, count=56):
        head = build(case)
        policy = POLICIES[made % 3]
        ranking = ("weight", "contribution", gb.random_scores(head.n_key, 1))[
            made % 5 % 3
        ]
        count = gb.rank(head, sink_policy=policy).n_candidates
        grid = range(1, count)
        if grid:
            options = {"regime": regime, "ranking": ranking, "sink_policy": policy}
            data = plain(gb.certify(head, grid, **options))
            errors = Draft202012Validator(SCHEMA).iter_errors(data)
            assert [e.message for e in errors] == []
        made += 1
    assert made == 56


def test_sets_and_weights_alone_are_valid():
    bare = [conditional(), conditional(exact_norms=True)]
    regime = gb.PairwiseRegime.fit(HEAD)
    bare.append(plain(gb.certify(BARE, [1, 4], regime=regime)))
    loose = plain(gb.certify(HEAD, 2, settle_doubt=False, regime="inversions"))

    assert all(map(VALID, [SET, loose, *bare]))
    assert [x["head"]["d_head"] for x in bare] == [None] * 3


def put(data, path, value):
    """Return a copy with one place set; ``...`` removes it."""
    result = copy.deepcopy(data)
    place = result
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


CLAIM = ("claims", 0)
REGIME = (*CLAIM, "regime")
CELL = (*REGIME, "cells", 0)
MALFORMED = {
    # what it is: kind, place, value
    "another format": ("cells", ("format",), "geobounds-certificates-2"),
    "no format": ("cells", ("format",), ...),
    "version 0": ("cells", ("version",), 0),
    "version 3": ("cells", ("version",), 3),
    "version as text": ("cells", ("version",), "2"),
    "version true": ("version 1", ("version",), True),
    "version null": ("cells", ("version",), None),
    "a note": ("cells", ("note",), "trust me"),
    "no provenance": ("cells", ("provenance",), ...),
    "no versions": ("cells", ("versions",), ...),
    "no claims": ("cells", ("claims",), ...),
    "empty claims": ("cells", ("claims",), []),
    "claims by N": ("cells", ("claims",), {"2": {}}),
    "a claim that is none": ("cells", CLAIM, 2),
    "definitions as list": ("cells", ("definitions",), []),
    "a definition missing": ("cells", ("definitions", "ties"), ...),
    "a definition too many": ("cells", ("definitions", "norm"), "l2"),
    "another distance": ("cells", ("definitions", "distance"), "cosine"),
    "another ranking": ("cells", ("definitions", "ranking"), "random"),
    "a list of policies": ("cells", ("definitions", "sink_policy"), ["keep"]),
    "another comparison": ("cells", ("definitions", "comparison"), "strict"),
    "a negative sink": ("cells", ("definitions", "sink"), -1),
    "a sink as text": ("cells", ("definitions", "sink"), "0"),
    "scores without need": ("cells", ("definitions", "scores"), SCORES),
    "no scores": ("scores", ("definitions", "scores"), ...),
    "scores as decimals": ("scores", ("definitions", "scores", 0), "5.0"),
    "scores as numbers": ("scores", ("definitions", "scores", 0), 5),
    "scores as one text": ("scores", ("definitions", "scores"), "543210"),
    "head as text": ("cells", ("head",), "h.npz"),
    "no mass": ("cells", ("head", "mass"), ...),
    "mass as number": ("cells", ("head", "mass"), 1),
    "mass as decimal": ("cells", ("head", "mass"), "1.0"),
    "a head with a note": ("cells", ("head", "note"), ""),
    "a digest as number": ("cells", ("head", "sha256"), 0),
    "a digest too short": ("cells", ("head", "sha256"), "00"),
    "a digest of capitals": ("cells", ("head", "sha256"), HEAD.digest().upper()),
    "a negative position": ("cells", ("head", "query_position"), -1),
    "n_key as text": ("cells", ("head", "n_key"), "6"),
    "n_candidates half": ("cells", ("head", "n_candidates"), 4.5),
    "d_head null with values": ("cells", ("head", "d_head"), None),
    "d_head as text": ("cells", ("head", "d_head"), "2"),
    "d_head given without values": ("conditional", ("head", "d_head"), 2),
    "n zero": ("cells", (*CLAIM, "n"), 0),
    "n half": ("cells", (*CLAIM, "n"), 2.5),
    "n as text": ("cells", (*CLAIM, "n"), "2"),
    "n true": ("cells", (*CLAIM, "n"), True),
    "n null": ("cells", (*CLAIM, "n"), None),
    "no verdict": ("cells", (*CLAIM, "verdict"), ...),
    "another verdict": ("cells", (*CLAIM, "verdict"), "certain"),
    "a verdict of another bound": ("cells", (*CLAIM, "verdict"), "undecided"),
    "a claim with a note": ("cells", (*CLAIM, "note"), ""),
    "nothing unselected": ("cells", (*CLAIM, "n_unselected"), 0),
    "selected as text": ("cells", (*CLAIM, "selected"), "20"),
    "selected empty": ("cells", (*CLAIM, "selected"), []),
    "selected as halves": ("cells", (*CLAIM, "selected"), [2.5, 0]),
    "selected twice": ("cells", (*CLAIM, "selected"), [2, 2]),
    "a tie as number": ("cells", (*CLAIM, "boundary_tie"), 0),
    "a tie as null": ("cells", (*CLAIM, "boundary_tie"), None),
    "negative counts": ("cells", (*CLAIM, "false_positives"), -1),
    "counts as text": ("cells", (*CLAIM, "false_negatives"), "1"),
    "counts as truth": ("cells", (*CLAIM, "false_negatives"), True),
    "precision as decimal": ("cells", (*CLAIM, "precision"), "0.5"),
    "precision as number": ("cells", (*CLAIM, "precision"), 0.5),
    "recall with exponent": ("cells", (*CLAIM, "recall"), "1e0"),
    "recall over one": ("cells", (*CLAIM, "recall"), "1/1"),
    "recall over zero": ("cells", (*CLAIM, "recall"), "1/0"),
    "recall with a blank": ("cells", (*CLAIM, "recall"), "1/2 "),
    "recall with a line end": ("cells", (*CLAIM, "recall"), "1/2\n"),
    "recall with a plus": ("cells", (*CLAIM, "recall"), "+1/2"),
    "recall with a zero before": ("cells", (*CLAIM, "recall"), "01/2"),
    "recall of other digits": ("cells", (*CLAIM, "recall"), "1/\u0662"),
    "recall below zero": ("cells", (*CLAIM, "recall"), "-1/2"),
    "an integer above one": ("cells", (*CLAIM, "f_score"), "2"),
    "minus zero": ("cells", (*CLAIM, "f_score"), "-0"),
    "zero over something": ("cells", (*CLAIM, "f_score"), "0/3"),
    "f_score null": ("cells", (*CLAIM, "f_score"), None),
    "measured missing": ("cells", (*CLAIM, "measured"), ...),
    "measured as number": ("cells", (*CLAIM, "measured"), 0.5),
    "measured null": ("cells", (*CLAIM, "measured"), None),
    "measured without values": ("conditional", (*CLAIM, "measured"), "1/2"),
    "an interval without values": ("conditional", (*CLAIM, "measured"), ["0", "1"]),
    "an interval of one end": ("undecided", (*CLAIM, "measured"), ["0"]),
    "an interval of three": ("undecided", (*CLAIM, "measured"), ["0", "1/2", "1"]),
    "an interval of numbers": ("undecided", (*CLAIM, "measured"), [0, 1]),
    "an interval beyond one": ("undecided", (*CLAIM, "measured"), ["0", "2"]),
    "an interval in version 1": ("undecided", ("version",), 1),
    "weights alone in version 1": ("conditional", ("version",), 1),
    "decided though open": ("undecided", (*CLAIM, "verdict"), "vacuous"),
    "bounded by nothing": ("undecided", (*CLAIM, "verdict"), "bounded"),
    "weights alone by contribution": (
        "conditional",
        ("definitions", "ranking"),
        "contribution",
    ),
    "weights alone with cells": ("conditional", REGIME, {"name": "cells", "cells": []}),
    "weights alone with inversions": (
        "conditional",
        REGIME,
        {"name": "inversions", "inversions": 99},
    ),
    "no regime": ("cells", REGIME, ...),
    "a regime as text": ("cells", REGIME, "cells"),
    "an empty regime": ("cells", REGIME, {}),
    "an unknown regime": ("cells", (*REGIME, "name"), "luck"),
    "a regime with a note": ("cells", (*REGIME, "note"), ""),
    "a regime of two kinds": ("cells", (*REGIME, "inversions"), 99),
    "no cells": ("cells", (*REGIME, "cells"), ...),
    "cells as object": ("cells", (*REGIME, "cells"), {}),
    "cells empty": ("cells", (*REGIME, "cells"), []),
    "a cell as number": ("cells", CELL, 3),
    "a cell without start": ("cells", (*CELL, "start"), ...),
    "a cell with a note": ("cells", (*CELL, "note"), ""),
    "a start as text": ("cells", (*CELL, "start"), "0"),
    "a start as truth": ("cells", (*CELL, "start"), False),
    "a stop of zero": ("cells", (*CELL, "stop"), 0),
    "a stop of a half": ("cells", (*CELL, "stop"), 0.5),
    "a norm as number": ("cells", (*CELL, "norm"), 99),
    "a norm as decimal": ("cells", (*CELL, "norm"), "99.5"),
    "a dot with exponent": ("cells", (*CELL, "dot"), "-1e9"),
    "a dot of too many digits": ("cells", (*CELL, "dot"), "-" + "9" * 4001),
    "inversions missing": ("inversions", (*REGIME, "inversions"), ...),
    "inversions as text": ("inversions", (*REGIME, "inversions"), "99"),
    "inversions half": ("inversions", (*REGIME, "inversions"), 99.5),
    "inversions as truth": ("inversions", (*REGIME, "inversions"), True),
    "inversions negative": ("inversions", (*REGIME, "inversions"), -1),
    "norms missing": ("pairwise", (*REGIME, "norms_selected"), ...),
    "norms as one number": ("pairwise", (*REGIME, "norms_selected"), "9"),
    "norms of one end": ("pairwise", (*REGIME, "norms_unselected"), ["0"]),
    "norms of numbers": ("pairwise-roles", (*REGIME, "norms_selected"), [0, 9]),
    "a sink norm as decimals": ("pairwise", (*REGIME, "sink_norm"), ["0.0", "9.0"]),
    "a cosine as number": ("pairwise", (*REGIME, "cosine_selected"), -1),
    "a cosine as decimal": ("pairwise", (*REGIME, "cosine_across"), "1.0"),
    "a cosine as list": ("pairwise", (*REGIME, "sink_selected"), ["-1"]),
    "a cosine missing": ("pairwise", (*REGIME, "sink_across"), ...),
    "a pull for all pairs": ("pairwise", (*REGIME, "pull_across"), "99"),
    "a pull as number": ("pairwise-roles", (*REGIME, "pull_across"), 99),
    "a pull missing": ("pairwise-roles", (*REGIME, "pull_across"), ...),
    "token norms for roles": (
        "pairwise-roles",
        (*REGIME, "token_norms"),
        [[0, "0", "9"]],
    ),
    "token norms for all pairs": (
        "pairwise",
        (*REGIME, "token_norms"),
        [[0, "0", "9"]],
    ),
    "token norms null": ("pairwise", (*REGIME, "token_norms"), None),
    "token norms empty": ("pairwise-roles-norms", (*REGIME, "token_norms"), []),
    "token norms by key": ("pairwise-roles-norms", (*REGIME, "token_norms"), {"0": 1}),
    "a token as text": ("pairwise-roles-norms", (*REGIME, "token_norms", 0, 0), "0"),
    "a token of two": ("pairwise-roles-norms", (*REGIME, "token_norms", 0), [0, "0"]),
    "a token norm as number": (
        "pairwise-roles-norms",
        (*REGIME, "token_norms", 0, 2),
        99,
    ),
    "norms of roles as text by token": (
        "pairwise-roles-norms",
        (*REGIME, "norms_selected"),
        "0",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_schema_and_checker_refuse_the_same_malformed_certificate(name):
    """Signed again each time; one change from a certificate that both take."""
    kind, path, value = MALFORMED[name]
    data, head = KINDS[kind]
    wrong = resigned(put(data, path, value))

    assert not VALID(wrong)
    outcome = gb.verify(wrong, head)
    assert not outcome
    assert all("sha256: the content" not in reason for reason in outcome.reasons)


@pytest.mark.parametrize("data", [None, 1, [], {}, [SET], {"certificates": []}])
def test_schema_and_checker_refuse_what_is_no_certificate(data):
    assert not VALID(data)
    assert not gb.verify(data, HEAD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("certificates",), []),
        (("certificates",), {}),
        (("certificates",), ...),
        (("certificates", 0), 1),
        (("certificates", 0, "version"), 3),
        (("certificates", 0, "claims"), []),
        (("certificates", 0, "claims", 0, "f_score"), "1.0"),
        (("version",), 1),
        (("version",), "2"),
        (("format",), "geobounds-certificate"),
        (("note",), ""),
    ],
)
def test_schema_and_checker_refuse_the_same_malformed_set(path, value):
    wrong = resigned(put(SET, path, value))

    assert VALID(SET)
    assert gb.verify(SET, HEAD, DOUBT)
    assert not VALID(wrong)
    assert not gb.verify(wrong, HEAD, DOUBT)


# What the document says that a schema cannot say: valid, yet refused.
VACUOUS = {"verdict": "vacuous"}
BEYOND = {
    "an integer as 2.0": ("cells", (*CLAIM, "n"), 2.0),
    "a version as 2.0": ("cells", ("version",), 2.0),
    "a key as 0.0": ("cells", (*CLAIM, "selected"), [2.0, 0]),
    "terms not lowest": ("cells", (*CLAIM, "recall"), "2/4"),
    "a share above one": ("cells", (*CLAIM, "measured"), "3/2"),
    "one N twice": ("cells", ("claims", 1), certify()["claims"][0]),
    "another digest of the head": ("cells", ("head", "sha256"), "0" * 64),
    "another mass": ("cells", ("head", "mass"), "2"),
    "N too large": ("cells", (*CLAIM, "n"), 99),
    "selected in another order": ("cells", (*CLAIM, "selected"), [0, 2]),
    "a wrong tie": ("cells", (*CLAIM, "boundary_tie"), True),
    "another F measured": ("cells", (*CLAIM, "measured"), "1/2"),
    "an interval upside down": (
        "undecided",
        CLAIM,
        KINDS["undecided"][0]["claims"][0] | {"measured": ["1", "0"]} | VACUOUS,
    ),
    "an interval of one number": (
        "undecided",
        CLAIM,
        KINDS["undecided"][0]["claims"][0] | {"measured": ["1", "1"]} | VACUOUS,
    ),
    "cells with a gap": ("cells", (*CELL, "start"), 1),
    "a cell too strong": ("cells", (*CELL, "norm"), "0"),
    "too few inversions": ("inversions", (*REGIME, "inversions"), 0),
    "norms upside down": ("pairwise-roles", (*REGIME, "norms_selected"), ["9", "0"]),
    "norms that differ": ("pairwise", (*REGIME, "norms_selected"), ["0", "99"]),
    "a cosine too great": ("pairwise", (*REGIME, "cosine_selected"), "1"),
    "a pull too small": ("pairwise-roles", (*REGIME, "pull_across"), "-99"),
    "a token norm missing": (
        "pairwise-roles-norms",
        (*REGIME, "token_norms", 0),
        [5, "0", "99"],
    ),
    "scores missing": ("scores", ("definitions", "scores", 0), None),
    "scores of wrong length": ("scores", ("definitions", "scores"), ["5", "4"]),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_a_schema_cannot_say_the_checker_refuses(name):
    """If the schema learns to say one of these, the document must not claim it."""
    kind, path, value = BEYOND[name]
    data, head = KINDS[kind]
    wrong = resigned(put(data, path, value))

    assert VALID(wrong)
    assert not gb.verify(wrong, head)


def test_a_field_twice_is_seen_by_the_checker_alone(tmp_path):
    """JSON readers drop one of the two before a schema sees it."""
    path = tmp_path / "c.json"
    text = json.dumps(KINDS["cells"][0]).replace("{", '{"version": 2, ', 1)
    path.write_text(text, encoding="utf-8")

    assert VALID(json.loads(text))
    assert not gb.verify(path, HEAD)


@pytest.mark.parametrize("value", [None, 1, "text", [1]])
@pytest.mark.parametrize("name", ["provenance", "versions"])
def test_the_informative_fields_are_objects_to_the_schema_alone(name, value):
    wrong = resigned(KINDS["cells"][0] | {name: value})

    assert not VALID(wrong)
    assert gb.verify(wrong, HEAD)


def test_weaker_claims_are_valid_and_accepted():
    """Greater counts with the bounds they give, and a regime with slack."""
    data = copy.deepcopy(KINDS["cells"][0])
    claim = data["claims"][0]
    claim |= {"false_positives": 3, "false_negatives": 2, "precision": "2/5"}
    claim |= {"recall": "0", "f_score": "0", "verdict": "vacuous"}
    claim["regime"]["cells"][0] |= {"norm": "1000", "dot": "-1000"}
    data = resigned(data)

    assert VALID(data)
    assert gb.verify(data, HEAD).reasons == ()


# Samples, written by the code of their version. Files of version 1 hold bfloat16 as
# float32; all must load, save and verify for as long as the format is supported.
FILES = {
    "v1-cells.json": ["v1-head.npz"],
    "v1-inversions.json": ["v1-head.npz"],
    "v1-pairwise.json": ["v1-even.npz"],
    "v1-pairwise-roles.json": ["v1-head.npz"],
    "v1-pairwise-roles-norms.json": ["v1-head.npz"],
    "v1-scores.json": ["v1-bfloat16.safetensors"],
    "v2-cells.json": ["v2-head.safetensors"],
    "v2-conditional.json": ["v2-weights.npz"],
    "v2-undecided.json": ["v2-doubt.npz"],
    "v2-set.json": ["v2-head.safetensors", "v2-bfloat16.npz"],
}
HEAD_FILES = sorted({name for names in FILES.values() for name in names})


def test_every_sample_is_used():
    assert {p.name for p in SAMPLES.iterdir()} == {*FILES, *HEAD_FILES}


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_saved_again_byte_by_byte(tmp_path, name):
    """Its version included: loading must not turn an old file into a new one."""
    kind = gb.CertificateSet if "set" in name else gb.Certificate
    text = (SAMPLES / name).read_text(encoding="ascii")
    kind.load(SAMPLES / name).save(tmp_path / name)

    assert (tmp_path / name).read_text(encoding="ascii") == text
    assert VALID(json.loads(text))
    assert json.loads(text)["version"] == int(name[1])


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_verified_with_its_head_and_with_no_other(name):
    heads = [SAMPLES / x for x in FILES[name]]
    loaded = [gb.HeadData.load(path) for path in heads]
    others = [SAMPLES / x for x in HEAD_FILES if x[3:7] not in str(FILES[name])]
    outcome = gb.verify(SAMPLES / name, *heads)

    assert outcome.reasons == ()
    assert outcome.conditional is (name == "v2-conditional.json")
    assert gb.verify(SAMPLES / name, *reversed(loaded))
    assert len(others) >= 3
    assert not gb.verify(SAMPLES / name, *others)


@pytest.mark.parametrize("name", FILES)
def test_a_sample_with_a_claim_changed_is_refused(name):
    """Signed again; the last claim of each certificate."""
    data = json.loads((SAMPLES / name).read_text(encoding="ascii"))
    heads = [gb.HeadData.load(SAMPLES / x) for x in FILES[name]]
    for place, member in enumerate(data.get("certificates", [data])):
        for field in ("selected", "n_unselected", "measured", "f_score", "verdict"):
            wrong = put(member, ("claims", -1, field), "1/7")
            if "certificates" in data:
                wrong = put(data, ("certificates", place), wrong)
            assert not gb.verify(resigned(wrong), *heads), field


@pytest.mark.parametrize("name", HEAD_FILES)
def test_a_sample_head_is_saved_again_as_the_same_head(tmp_path, name):
    head = gb.HeadData.load(SAMPLES / name)
    head.save(tmp_path / name)
    again = gb.HeadData.load(tmp_path / name)
    old, extra = read_arrays(SAMPLES / name)
    new, extra_again = read_arrays(tmp_path / name)

    assert [again.digest(q) for q in range(again.n_query)] == [
        head.digest(q) for q in range(head.n_query)
    ]
    assert old == new
    assert extra == extra_again


@pytest.mark.parametrize(
    ("name", "kind"), [("v1-bfloat16.safetensors", "F32"), ("v2-bfloat16.npz", "<u2")]
)
def test_the_samples_hold_bfloat16_as_their_version_did(name, kind):
    content = (SAMPLES / name).read_bytes()
    heads = [gb.HeadData.load(SAMPLES / x) for x in HEAD_FILES if "bfloat16" in x]

    assert kind.encode() in content
    assert {head.dtype_name for head in heads} == {"bfloat16"}
    assert len({head.digest() for head in heads}) == 1


def test_the_samples_show_every_verdict_and_a_tie():
    found = [json.loads((SAMPLES / name).read_text()) for name in FILES]
    members = [m for data in found for m in data.get("certificates", [data])]
    every = [claim for member in members for claim in member["claims"]]

    assert {claim["verdict"] for claim in every} == {
        "separable",
        "bounded",
        "vacuous",
        "undecided",
    }
    assert {claim["boundary_tie"] for claim in every} == {True, False}
    assert {claim["regime"]["name"] for claim in every} == set(claims.REGIMES)
