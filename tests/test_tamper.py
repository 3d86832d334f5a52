"""Tampering: whatever is changed in a certificate or its head, nothing false passes.

Unsigned, every change is refused. Signed again, a changed certificate may be accepted
only if it claims no more than the exact oracle allows and if the change is one of the
weakenings listed here.
"""

import copy
import functools
import hashlib
import itertools
import json
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mutants import load_copy

import geobounds as gb
from geobounds.claims import InversionRegime, claim_from_json, claim_to_json
from geobounds.exact import oracle
from geobounds.separability import f_score, interval_counts

# A copy in which no types are checked at every call: these are many.
verify = load_copy().verify
# Norms and cosines are rational, so that every number of a regime can be exact.
WEIGHTS = [0.3125, 0.0, 0.5, 0.125, 0.0625, 0.03125, 0.03125]
VALUES = [[-1, 0], [9, 9], [-3, 4], [6, 8], [8, 6], [4, 3], [-5, 0]]
VISIBLE = [True, False, True, True, True, True, True]
# F_2 = 1 and F_3 = 12/17, of which roles certify 2/5 and 4/7.
HEAD = gb.HeadData(WEIGHTS, VALUES, visible=VISIBLE, meta={"model": "m", "layer": 3})
# F_2 = 1/2 and F_3 = 12/17, of which all pairs certify 2/5 twice.
PAIRS = gb.HeadData(
    [0.3125, 0.5, 0.0625, 0.0625, 0.03125, 0.03125],
    [[0, -1], [4, -3], [3, -4], [0, -5], [5, 0], [5, 0]],
)
BARE = gb.HeadData(WEIGHTS, visible=VISIBLE)
# Contributions 128,201 apart from their last bits: T8 cannot tell their distances.
DOUBT = gb.HeadData(
    np.float32([0.25 * 512_804 / 512_695, 0.25]),
    np.float32([[512_695], [512_804]]),
    sink=None,
)
TINY = Fraction(1, 2**200)


def plain(certificate):
    """Return the JSON data of a certificate."""
    return json.loads(json.dumps(certificate.to_dict()))


def exact_regime(head, n=None, *, tokens=False, **options):
    """Return the pairwise regime of a head with rational norms, rounded nowhere."""
    chosen = gb.rank(head, **options).select(n or 1)
    keys, sink = [int(k) for k in chosen.keys], head.sink
    v = {k: [int(x) for x in head.values[k]] for k in keys}
    norm = {k: Fraction(math.isqrt(sum(x * x for x in v[k]))) for k in keys}
    assert all(norm[k] ** 2 == sum(x * x for x in v[k]) for k in keys)
    S = [k for k in keys[: chosen.n] if k != sink]
    U = [k for k in keys[chosen.n :] if k != sink]
    own = [k for k in keys if k == sink]
    pulled = bool(own) and sink in keys[: chosen.n] and n is not None
    across = U if sink in keys[: chosen.n] else S
    if n is None:
        S = U = across = S + U

    def cosines(rows, columns):
        return [
            Fraction(sum(a * b for a, b in zip(v[i], v[k], strict=True)))
            / (norm[i] * norm[k])
            for i in rows
            for k in columns
            if i != k
        ]

    def span(group):
        found = [norm[k] for k in group]
        return (min(found), max(found)) if found else None

    weight = {k: Fraction(float(head.weights[0][k])) for k in keys}
    total = [sum(weight[k] * v[k][c] for k in keys[: chosen.n]) for c in range(2)]
    pulls = [sum(a * b for a, b in zip(v[j], total, strict=True)) / norm[j] for j in U]
    return gb.PairwiseRegime(
        ("roles-norms" if tokens else "roles") if n else "all",
        n,
        span(S),
        span(U),
        min(cosines(S, S), default=None),
        max(cosines(S, U), default=None),
        span(own),
        min(cosines(own, S), default=None),
        max(cosines(own, across), default=None),
        max(pulls) if pulled else None,
        tuple((k, norm[k], norm[k]) for k in keys) if tokens else (),
    )


def case(heads, *arguments, **options):
    """Return the JSON data of a certificate, and the heads that it is about."""
    return plain(gb.certify(heads[0], *arguments, **options)), heads


ASIDE = {"ranking": "contribution", "sink_policy": "compete"}
CASES = {
    "cells": case([HEAD], [2, 3]),
    "few cells": case([HEAD], 3, resolution=3),
    "inversions": case([HEAD], [2, 3], regime="inversions"),
    "all pairs": case([PAIRS], 3, regime=exact_regime(PAIRS)),
    "roles": case([HEAD], regime=exact_regime(HEAD, 3)),
    "roles, two selected": case([HEAD], regime=exact_regime(HEAD, 2)),
    "roles, sink aside": case([HEAD], regime=exact_regime(HEAD, 2, **ASIDE), **ASIDE),
    "roles, no sink": case(
        [HEAD],
        regime=exact_regime(HEAD, 2, sink_policy="drop"),
        sink_policy="drop",
    ),
    "roles, one selected": case([HEAD], regime=exact_regime(HEAD, 1)),
    "roles, norms": case([HEAD], regime=exact_regime(HEAD, 3, tokens=True)),
    "scores": case([HEAD], 2, ranking=[6, 0, 1, 5, 4, 3, 2]),
    "interval": case([DOUBT], regime=gb.CellRegime.fit(DOUBT, 1), settle_doubt=False),
    "undecided": case([DOUBT], 1, regime="inversions", settle_doubt=False),
    "weights alone": case([BARE], regime=exact_regime(HEAD, 3)),
    "set": (
        plain(gb.certify_all([HEAD, PAIRS], n=2, regime="inversions")),
        [HEAD, PAIRS],
    ),
}


def signed(data):
    """Return the data with digests that fit, those of the members of a set too."""
    if not isinstance(data, dict):
        return data
    body = {key: value for key, value in data.items() if key != "sha256"}
    if isinstance(body.get("certificates"), list):
        body["certificates"] = [signed(member) for member in body["certificates"]]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


# The edits


@dataclass(frozen=True)
class Edit:
    """One change: the value at a path, before and after, and the data with it."""

    path: tuple[Any, ...]
    old: Any
    new: Any
    data: Any

    @property
    def at(self):
        """The path within the certificate that it is in."""
        return self.path[2:] if self.path[:1] == ("certificates",) else self.path

    @property
    def name(self):
        """The last field on the path."""
        return next((x for x in reversed(self.at) if isinstance(x, str)), None)

    @property
    def last(self):
        """The last step of the path, if any."""
        return self.at[-1] if self.at else None

    @property
    def grows(self):
        """Whether a number grew (1), shrank (-1) or is none (0)."""
        old, new = number(self.old), number(self.new)
        return 0 if None in (old, new) else (new > old) - (new < old)

    @property
    def end(self):
        """Whether the number is the upper end of an interval (1) or the lower (-1)."""
        place = self.last - (self.name == "token_norms")
        return 2 * place - 1 if place in (0, 1) else 0


def number(text):
    """Return an exact number as the format writes it, or None."""
    try:
        value = Fraction(text) if isinstance(text, str) else None
    except (ValueError, ZeroDivisionError):
        return None
    return value if str(value) == text else None


def changes(value):
    """Yield other values for one place of the data."""
    yield from (None, True, False, 0, 1, -1, 0.5, "", "0", "1", "-1", "x", [], {})
    yield from ([value], {"x": value}, ["0", "1"])
    if isinstance(value, bool):
        yield from (not value, int(value), float(value))
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 2 * value, -value, float(value), str(value))
        yield 10**30
    elif isinstance(value, str):
        yield from (value + "0", " " + value, value + "\n", value.upper())
        x = number(value)
        if x is not None:
            for y in (x + TINY, x - TINY, x + 1, x - 1, 2 * x, x / 2, -x, 1 / (x + 2)):
                yield str(y)
            yield f"{2 * x.numerator}/{2 * x.denominator}"
            yield from (f"{x.numerator}/0", f"{x.numerator}/1", float(x))
    elif isinstance(value, list):
        yield from (value[:-1], value[1:], value[::-1], value + value[-1:])
        yield from ([*value, None], value + value, dict.fromkeys("ab", value))
        yield from (value[:i] + value[i + 1 :] for i in range(len(value)))
        for i, k in itertools.combinations(range(len(value)), 2):
            swapped = list(value)
            swapped[i], swapped[k] = value[k], value[i]
            yield swapped
    elif isinstance(value, dict):
        yield from (list(value), list(value.items()), value | {"note": 1})
        for key in value:
            rest = {k: x for k, x in value.items() if k != key}
            yield from (rest, rest | {key + "_": value[key]})


def places(data, path=()):
    """Yield the path and value of every place, leaves and branches."""
    yield path, data
    if isinstance(data, (dict, list)):
        for step in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[step], (*path, step))


def replaced(data, path, value):
    """Return a copy of the data with one place set."""
    if not path:
        return value
    result = copy.copy(data)
    result[path[0]] = replaced(data[path[0]], path[1:], value)
    return result


def text(data):
    """Return JSON text, in which 1, 1.0 and true are three."""
    return json.dumps(data, sort_keys=True)


def edits(data):
    """Yield every edit of the data that changes it, once."""
    seen = {text(data)}
    for path, old in places(data):
        # Of what is informative a few do.
        few = 5 if {"provenance", "versions"} & set(path) else None
        for new in itertools.islice(changes(old), few):
            changed = replaced(data, path, new)
            if isinstance(changed, str):
                continue  # the name of a file
            if (found := text(changed)) not in seen:
                seen.add(found)
                yield Edit(path, old, new, changed)


@functools.cache
def edits_of(name):
    """Return every edit of a case."""
    return list(edits(CASES[name][0]))


# What may pass


def is_condition(edit):
    """Whether a claim about weights alone has another condition: it is not checked."""
    return edit.at[2:3] == ("regime",) and "name" not in edit.at


def selected_cell(edit):
    """Whether a cell holds selected keys."""
    place = edit.path[edit.path.index("claims") + 1]
    return (
        within(edit, "cells")[edit.at[-2]]["stop"] <= within(edit, "claims")[place]["n"]
    )


def is_part(edit, name):
    """Whether a list of this name lost members, and none came or moved."""
    left = iter(map(text, edit.old if edit.name == name else ()))
    return (
        edit.last == name
        and isinstance(edit.new, list)
        and all(text(x) in left for x in edit.new)
    )


def is_order(edit, name):
    """Whether the members of a list of this name only moved."""
    return (
        edit.last == name
        and isinstance(edit.new, list)
        and sorted(map(text, edit.new)) == sorted(map(text, edit.old))
    )


SPANS = ("norms_selected", "norms_unselected", "sink_norm", "token_norms")
LEAST, GREATEST = ("cosine_selected", "sink_selected"), ("cosine_across", "sink_across")
LISTED = {
    "informative": lambda e: e.at[:1] in (("provenance",), ("versions",)),
    "version 1 can say it too": lambda e: (e.at, e.new) == (("version",), 1),
    "a claim less": lambda e: is_part(e, "claims"),
    "claims in another order": lambda e: is_order(e, "claims"),
    "a certificate of a set less": lambda e: is_set(e) and set(members(e)) < {0, 1},
    "a set in another order": lambda e: is_set(e) and members(e) == [1, 0],
    "a certificate of a set twice": lambda e: is_set(e) and len(e.new) > 2,
    "a greater norm or a lesser product in a selected cell": lambda e: (
        (e.name, e.grows) in (("norm", 1), ("dot", -1)) and selected_cell(e)
    ),
    "a lesser norm or a greater product in an unselected cell": lambda e: (
        (e.name, e.grows) in (("norm", -1), ("dot", 1)) and not selected_cell(e)
    ),
    "more inversions where all is lost": lambda e: (
        e.name == "inversions" and type(e.new) is int and e.new > e.old
    ),
    "a wider interval of norms": lambda e: (
        (e.name in SPANS and e.grows and e.end == e.grows)
        or (e.last in SPANS[:3] and is_around(e.new, e.old))
    ),
    "norms by token in another order": lambda e: is_order(e, "token_norms"),
    "norms of a group left out beside those by token": lambda e: (
        e.name in SPANS[:3] and e.new is None and "token_norms" not in e.at
    ),
    "norms of no key": lambda e: (
        e.last in SPANS and e.old is None and e.new == ["0", "1"]
    ),
    "a lower least cosine": lambda e: e.name in LEAST and e.grows == -1,
    "a higher greatest cosine": lambda e: e.name in GREATEST and e.grows == 1,
    "a cosine of no pair": lambda e: (
        e.name in LEAST + GREATEST and e.old is None and number(e.new) is not None
    ),
    "a greater pull": lambda e: e.name == "pull_across" and e.grows == 1,
    "no pull": lambda e: e.name == "pull_across" and e.new is None,
    "other scores of the same keys": lambda e: (
        "scores" in e.at and best_two(e.data) == best_two(CASES["scores"][0])
    ),
    "the measured F, or an interval around it": lambda e: (
        e.name == "measured" and is_around(measured(e), [true_f(e)] * 2)
    ),
}


def best_two(data):
    """Return the two keys that the scores of a certificate put first."""
    found = [number(x) for x in data["definitions"]["scores"]]
    keys = [k for k, seen in enumerate(VISIBLE) if seen]
    return sorted(keys, key=lambda k: (-found[k], k))[:2]


def within(edit, name):
    """Return what stands at the first field of this name on the path of an edit."""
    place = edit.data
    for step in edit.path[: edit.path.index(name) + 1]:
        place = place[step]
    return place


def measured(edit):
    """Return the measured F after an edit of it."""
    return within(edit, "measured")


def true_f(edit):
    """Return F as it was measured; it is 1 where that was an interval."""
    return edit.old if edit.last == "measured" and isinstance(edit.old, str) else "1"


def is_around(wide, narrow):
    """Whether an interval holds another."""
    wide = [wide, wide] if isinstance(wide, str) else wide
    if not isinstance(wide, list) or not isinstance(narrow, list):
        return False
    (a, b), (x, y) = map(number, wide), map(number, narrow)
    return a <= x <= y <= b


def is_set(edit):
    """Whether the members of a set changed, each being one that there was."""
    return (
        edit.path == ("certificates",)
        and isinstance(edit.new, list)
        and all(x in edit.old for x in edit.new)
    )


def members(edit):
    """Return which of the old members the new ones are."""
    return [edit.old.index(x) for x in edit.new]


def allowed(certificate, head, claim):
    """Return P, R and F by the oracle; for weights alone what the regime allows."""
    chosen, n = certificate["definitions"], claim["n"]
    if head.values is None:
        regime = claim_from_json(claim).regime
        order = gb.rank(head, sink_policy=chosen["sink_policy"])
        found = interval_counts(regime.enclosure(head, order.select(n)))
        return found.precision.lower, found.recall.lower, found.f_score.lower
    ranking = chosen["ranking"]
    if ranking == "scores":
        ranking = tuple(float(Fraction(x or 0)) for x in chosen["scores"])
    return truth(head, n, ranking, chosen["sink_policy"])


@functools.cache
def truth(head, n, ranking, sink_policy):
    """Return P, R and F by the oracle."""
    arrays = (x.tolist() for x in (head.weights[0], head.values, head.visible[0]))
    options = {"ranking": ranking, "sink_policy": sink_policy}
    found = oracle(*arrays, head.sink, n, **options)
    return found.precision, found.recall, found.f_score


def claims_too_much(data, heads):
    """Whether any bound of the data exceeds what is allowed."""
    by_digest = {head.digest(): head for head in heads}
    for certificate in data.get("certificates", [data]):
        head = by_digest[certificate["head"]["sha256"]]
        for claim in certificate["claims"]:
            claimed = (Fraction(claim[k]) for k in ("precision", "recall", "f_score"))
            limits = allowed(certificate, head, claim)
            if any(x > y for x, y in zip(claimed, limits, strict=True)):
                return True
    return False


@functools.cache
def accepted(name):
    """Return the edits that pass once signed again."""
    data, heads = CASES[name]
    found = []
    for edit in edits_of(name):
        again = signed(edit.data)
        if text(again) != text(data) and verify(again, *heads):
            found.append(Edit(edit.path, edit.old, edit.new, again))
    return found


def listed(name, edit):
    """Return the weakenings of the list that an edit is."""
    if name == "weights alone" and is_condition(edit):
        return ["another condition"]
    return [word for word, fits in LISTED.items() if fits(edit)]


# Tests


@pytest.mark.parametrize("name", CASES)
def test_the_untouched_certificate_is_accepted(name):
    data, heads = CASES[name]

    assert verify(data, *heads).reasons == ()
    assert signed(data) == data
    assert not claims_too_much(data, heads)


@pytest.mark.parametrize("name", CASES)
def test_every_change_is_refused_by_the_digest(name):
    _, heads = CASES[name]
    count = 0
    for edit in edits_of(name):
        count += 1
        outcome = verify(edit.data, *heads)
        assert not outcome
        assert len(outcome.reasons) == 1

    assert count > 500


@pytest.mark.parametrize("name", CASES)
def test_no_change_that_is_signed_again_claims_more_than_is_true(name):
    _, heads = CASES[name]

    for edit in accepted(name):
        assert not claims_too_much(edit.data, heads), (edit.path, edit.new)


@pytest.mark.parametrize("name", CASES)
def test_every_change_that_passes_signed_again_is_a_listed_weakening(name):
    for edit in accepted(name):
        assert listed(name, edit), (edit.path, edit.old, edit.new)


def test_every_listed_weakening_passes_somewhere():
    found = {
        word for name in CASES for edit in accepted(name) for word in listed(name, edit)
    }

    assert found == {*LISTED, "another condition"}


# Changes that are consistent in themselves


def restated(claim, fp, fn, f):
    """Return a claim with other counts and the bounds that belong to them."""
    n = claim.n
    return claim_to_json(
        replace(
            claim,
            false_positives=fp,
            false_negatives=fn,
            precision=Fraction(n, n + fp),
            recall=1 - Fraction(fn, n),
            f_score=f,
        )
    )


SINGLE = [name for name in CASES if name != "set"]


@pytest.mark.parametrize("name", SINGLE)
def test_counts_pass_with_their_bounds_only_if_none_is_smaller(name):
    """The counts of the certificate are the least that follow from its regime."""
    data, heads = CASES[name]
    for place, given in enumerate(data["claims"]):
        claim = claim_from_json(given)
        if isinstance(claim.regime, InversionRegime):
            continue  # their F is not that of the counts
        least = claim.false_positives, claim.false_negatives
        pairs = itertools.product(range(claim.n_unselected + 1), range(claim.n + 1))
        for fp, fn in pairs:
            other = restated(claim, fp, fn, f_score(claim.n, fp, fn))
            again = signed(replaced(data, ("claims", place), other))
            weaker = fp >= least[0] and fn >= least[1]
            assert verify(again, *heads).ok is weaker


@pytest.mark.parametrize("name", ["inversions", "undecided"])
def test_inversions_pass_with_their_bounds_only_if_there_are_no_more(name):
    data, heads = CASES[name]
    for place, given in enumerate(data["claims"]):
        claim = claim_from_json(given)
        n, m = claim.n, claim.n_unselected
        true = gb.measure(*heads, n).inversions
        for g in range(n * m + 2):
            f = gb.inversion_bounds(n, m, min(g, n * m)).f_joint
            other = replace(claim, regime=InversionRegime(n, g))
            again = restated(other, min(g, m), min(g, n), f)
            again = signed(replaced(data, ("claims", place), again))
            assert verify(again, *heads).ok is (g >= true)


def recounted(edit, head):
    """Return the data of an edited regime with all that would follow from it."""
    place = edit.path[1]
    claim = claim_from_json(edit.data["claims"][place])
    chosen = edit.data["definitions"]
    ranking = chosen["ranking"] if "scores" not in chosen else [6, 0, 1, 5, 4, 3, 2]
    order = gb.rank(head, ranking=ranking, sink_policy=chosen["sink_policy"])
    found = interval_counts(claim.regime.enclosure(head, order.select(claim.n)))
    other = restated(claim, found.fp_upper, found.fn_upper, found.f_score.lower)
    return signed(replaced(edit.data, ("claims", place), other))


@pytest.mark.parametrize(
    "name", [n for n in SINGLE if n not in ("inversions", "undecided", "weights alone")]
)
def test_a_regime_passes_with_what_follows_only_if_it_is_a_listed_weakening(name):
    """A forger who computes: every number moved, and the counts moved with it."""
    _, heads = CASES[name]
    passed, refused = 0, 0
    for edit in edits_of(name):
        if edit.path[2:3] == ("regime",) and edit.grows:
            try:
                again = recounted(edit, *heads)
            except gb.ArgumentError:
                continue  # a regime that cannot be; the checker refused it above
            if verify(again, *heads):
                passed += 1
                assert listed(name, edit), (edit.path, edit.old, edit.new)
                assert not claims_too_much(again, heads)
            else:
                refused += 1

    assert passed > 10
    assert refused > 10


def with_regime(name, **fields):
    """Return the data of a case with other numbers in its first regime, signed."""
    data, _ = CASES[name]
    path = ("claims", 0, "regime")
    return signed(replaced(data, path, data["claims"][0]["regime"] | fields))


TOKENS = CASES["roles, norms"][0]["claims"][0]["regime"]["token_norms"]
CELLS = CASES["few cells"][0]["claims"][0]["regime"]["cells"]
# True as they may be of the head, these numbers are of no such regime.
FOREIGN = {
    "a pull in all pairs": ("all pairs", {"pull_across": "9"}),
    "a pull with the sink aside": ("roles, sink aside", {"pull_across": "9"}),
    "a pull without a sink": ("roles, no sink", {"pull_across": "9"}),
    "norms by role in all pairs": ("all pairs", {"norms_selected": ["5", "6"]}),
    "norms by token in roles": ("roles", {"token_norms": TOKENS}),
    "a norm of a key from the end": (
        "roles, norms",
        {"token_norms": [*TOKENS, [-1, "0", "99"]]},
    ),
    "a norm of a key behind the last": (
        "roles, norms",
        {"token_norms": [*TOKENS, [7, "0", "99"]]},
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_number_that_a_regime_does_not_have_is_refused(name):
    case, fields = FOREIGN[name]
    _, heads = CASES[case]
    (reason,) = verify(with_regime(case, **fields), *heads).reasons

    assert re.search("pull_across: by role|norms by role|token_norms: not", reason)


@pytest.mark.parametrize(
    "regime",
    [
        {"name": "inversions", "inversions": 12},
        {"name": "cells", "cells": CELLS},
        {"name": "cells", "cells": []},
    ],
)
def test_weights_alone_admit_no_regime_that_needs_values(regime):
    data, heads = CASES["weights alone"]
    forged = signed(replaced(data, ("claims", 0, "regime"), regime))

    assert verify(forged, *heads).reasons == ("n=3: head: it has no values",)


def test_weights_alone_admit_no_ranking_by_contribution():
    data, heads = CASES["weights alone"]
    forged = signed(replaced(data, ("definitions", "ranking"), "contribution"))

    assert verify(forged, *heads).reasons == (
        "definitions: ranking by contribution without values",
    )


def test_a_tie_of_distances_is_an_inversion():
    """Equal tokens on both sides: one inversion, though no distance is smaller."""
    twin = gb.HeadData([0.5, 0.5], [[1.0], [1.0]], sink=None)
    data = plain(gb.certify(twin, 1, regime="inversions"))
    claim = claim_from_json(data["claims"][0])
    forged = restated(replace(claim, regime=InversionRegime(1, 0)), 0, 0, Fraction(1))

    assert gb.measure(twin, 1).f_score.upper == 0
    assert verify(signed(data), twin)
    assert verify(signed(data | {"claims": [forged]}), twin).reasons == (
        "n=1: inversions: there are 1",
    )


# The head


class Stored:
    """A head that was never validated: arrays as the checker reads them."""

    def __init__(self, arrays, sink):
        self.arrays, self.sink = arrays, sink

    def stored(self):
        """Return what a head gives the checker."""
        found = {
            k: (x.dtype.name, x.shape, x.tobytes()) for k, x in self.arrays.items()
        }
        return found, {"sink": self.sink}


def neighbours(array):
    """Yield an array with one element moved by the smallest step, up and down."""
    for place in np.ndindex(array.shape):
        for up in (True, False):
            moved = array.copy()
            if array.dtype == bool:
                moved[place] = not array[place]
            elif array.dtype.kind == "i":
                moved[place] += 1 if up else -1
            else:
                # To 9, beyond which no element lies, and below all of them.
                moved[place] = np.nextafter(
                    array[place], array.dtype.type(99 if up else -99)
                )
            yield moved


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("regime", ["cells", "pairwise", None], ids=str)
def test_a_head_with_one_element_one_unit_away_is_refused(dtype, regime):
    """Elements that the query does not see included."""
    numbers = [np.array(x, dtype=dtype) for x in (WEIGHTS, VALUES)]
    if regime is None:
        numbers, regime = numbers[:1], exact_regime(HEAD, 2)
    head = gb.HeadData(*numbers, visible=VISIBLE)
    certificate = gb.certify(head, 2, regime=regime)
    arrays = head.arrays()
    count = 0

    assert verify(certificate, Stored(arrays, 0))
    for name, array in arrays.items():
        for moved in neighbours(array):
            assert (moved != array).sum() == 1
            assert not verify(certificate, Stored(arrays | {name: moved}, 0))
            count += 1
    assert count == 2 * sum(array.size for array in arrays.values())


def test_a_head_of_the_same_numbers_in_other_bits_is_refused():
    """Another type, the sign of a zero, another shape."""
    arrays = HEAD.arrays()
    certificate = gb.certify(HEAD, 2)
    single = {k: arrays[k].astype(np.float32) for k in ("weights", "values")}
    for changed in (
        {"weights": single["weights"]},
        {"values": single["values"]},
        single,
        {"values": np.where(arrays["values"] == 0, -0.0, arrays["values"])},
        {"weights": np.where(arrays["weights"] == 0, -0.0, arrays["weights"])},
        {"values": arrays["values"].reshape(-1, 1)[: HEAD.n_key]},
        {"values": np.hstack([arrays["values"], np.zeros((HEAD.n_key, 1))])},
        {"visible": arrays["visible"].astype(np.uint8)},
    ):
        assert not verify(certificate, Stored(arrays | changed, 0))


@pytest.mark.parametrize("sink", [None, *range(1, 7), -1, 7, 0.0, False, "0"])
def test_a_head_with_another_sink_is_refused(sink):
    assert not verify(gb.certify(HEAD, 2), Stored(HEAD.arrays(), sink))
