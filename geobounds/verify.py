"""The independent checker: repeats a certificate's argument in integers and fractions.

Standard library only, nothing of geobounds; ``python verify.py CERT.json HEAD.npz ...``
runs it alone. A certificate is accepted only if its digest, form and head fit, and if
every number of its regimes, every count and every bound follows from the exact data.
docs/certificate-format.md describes the fields. T1 turns intervals into counts, T2
inversions into bounds, T4 norms and cosines, T6 cells of tokens into intervals.
"""

import hashlib
import io
import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite, lcm, prod
from operator import mul
from pathlib import Path
from typing import Any

__all__ = ["Verification", "read_arrays", "unique_keys", "verify"]

LIMIT = 1 << 31  # bytes of a file
JSON_LIMIT = 1 << 28
# Types of arrays: struct's letter, numpy's and safetensors' name.
_TYPES = {
    "float16": ("e", "<f2", "F16"),
    "float32": ("f", "<f4", "F32"),
    "float64": ("d", "<f8", "F64"),
    "bool": ("?", "|b1", "BOOL"),
    "int64": ("q", "<i8", "I64"),
    "uint16": ("H", "<u2", "U16"),
    "uint8": ("B", "|u1", "U8"),
}
_NAMES = {theirs: name for name, row in _TYPES.items() for theirs in row[1:]}
_ARRAYS = {
    "weights": "float",
    "visible": "bool",
    "values": "float",
    "query_positions": "int64",
}
_DEFINITIONS = {
    "distance": ("euclidean",),
    "ranking": ("weight", "contribution", "scores"),
    "sink_policy": ("keep", "drop", "compete"),
    "ties": ("smaller index first",),
    "comparison": ("ties count against separability",),
}
# What a NumPy file says of its array; not evaluated, which could warn on stderr.
_FACTS = (
    r"\A\{'descr': '([^']*)', 'fortran_order': (True|False), "
    r"'shape': \(([0-9, ]*)\),? ?\}\s*\Z"
)
# The fields of every object, beside those of the definitions.
_TOP = "format version definitions head claims provenance versions"
_HEAD = "sha256 query_position n_key n_candidates d_head mass"
_CLAIM = """n n_unselected selected boundary_tie regime false_positives false_negatives
precision recall f_score measured verdict"""
_COSINES = ("cosine_selected", "cosine_across", "sink_selected", "sink_across")
_Keys = list[int]
_SPANS = ("norms_selected", "norms_unselected", "sink_norm")
_PAIRWISE = " ".join(("name", *_COSINES, *_SPANS, "pull_across token_norms"))


@dataclass(frozen=True)
class Verification:
    """The outcome: ``ok``, and every reason why not. True in a condition if ok.

    ``conditional``: some head holds no values, so that its claims are about all values
    that meet the regime, which itself cannot be checked.
    """

    ok: bool
    reasons: tuple[str, ...] = ()
    conditional: bool = False

    def __bool__(self) -> bool:
        """Whether every check held."""
        return self.ok


class _Refusal(ValueError):  # noqa: N818 - a verdict, not an error
    """A reason to refuse the certificate."""


def verify(certificate: Any, *heads: Any) -> Verification:
    """Check a certificate, or a set of them, against heads, exactly and independently.

    Parameters
    ----------
    certificate : Certificate, CertificateSet, dict, str or Path
        The certificate, its JSON data, or the path of its file.
    *heads : HeadData, str or Path
        The head, or its .npz or .safetensors file; several for a set. A head may hold
        further queries: the one certified is found by its position and digest.

    Returns
    -------
    Verification
        ``ok`` only if everything holds; ``reasons`` lists what does not.

    Raises
    ------
    OSError
        A file cannot be read.

    Notes
    -----
    Bounds weaker than what the data gives are accepted, stronger ones never. The
    fields ``provenance`` and ``versions`` are not checked: they are informative.
    """
    try:
        members = _members(certificate)
        _require(heads, "head: none given")
        rows = [row for head in heads for row in _rows(head)]
    except _Refusal as reason:
        return Verification(ok=False, reasons=(str(reason),))
    except ValueError as error:  # a null byte in a path, NaN in an object
        return Verification(ok=False, reasons=(f"certificate: {error}",))
    reasons = [
        place + reason for place, data in members for reason in _refusals(data, rows)
    ]
    conditional = not reasons and any(x["head"]["d_head"] is None for _, x in members)
    return Verification(not reasons, tuple(reasons), conditional)


def _members(data: Any) -> list[tuple[str, Any]]:
    """Return the certificate, or those of a set, each with its place in words."""
    if isinstance(data, (str, Path)):
        data = _json(_content(Path(data)), "certificate")
    elif hasattr(data, "to_dict"):
        data = data.to_dict()
    kind = "geobounds-certificates"
    if not isinstance(data, dict) or data.get("format") != kind:
        return [("", data)]
    _check_signature(data, kind, "format version certificates", 2)
    members = data["certificates"]
    _require(type(members) is list and members, "certificates: none")
    return [(f"certificate {place}: ", x) for place, x in enumerate(members)]


def _refusals(data: Any, rows: list["_Row"]) -> Iterator[str]:
    """Yield every reason to refuse one certificate."""
    try:
        _check_signature(data, "geobounds-certificate", _TOP, 1, 2)
        _check_form(data)
        query = _query(data, rows)
    except _Refusal as reason:
        yield str(reason)
        return
    for claim in data["claims"]:
        try:
            _check_claim(claim, query, data["version"])
        except _Refusal as reason:
            yield f"n={claim['n']!r:.40}: {reason}"


def _check_signature(data: Any, kind: str, names: str, *versions: int) -> None:
    """Require format, version, fields and the digest of the canonical JSON."""
    _require(isinstance(data, dict), "certificate: not a JSON object")
    try:
        digest = _digest({name: x for name, x in data.items() if name != "sha256"})
    except (TypeError, ValueError, RecursionError) as error:
        raise _Refusal(f"certificate: not JSON data ({error})") from error
    found = data.get("format"), data.get("version")
    known = found[0] == kind and type(found[1]) is int and found[1] in versions
    _require(known, f"format: unknown, {found[0]!r:.60} version {found[1]!r:.60}")
    _require_fields(data, names + " sha256", "certificate")
    _require(digest == data["sha256"], "sha256: the content was changed after signing")


def _check_form(data: dict[str, Any]) -> None:
    chosen, claims = data["definitions"], data["claims"]
    _require(isinstance(chosen, dict), "definitions: not an object")
    scores = " scores" * (chosen.get("ranking") == "scores")
    _require_fields(chosen, " ".join(_DEFINITIONS) + " sink" + scores, "definitions")
    for name, allowed in _DEFINITIONS.items():
        _require(chosen[name] in allowed, f"definitions: unknown {name}")
    _require_fields(data["head"], _HEAD, "head")
    _require(type(claims) is list and claims, "claims: none")
    for claim in claims:
        _require_fields(claim, _CLAIM, "claims")
    numbers = {json.dumps(claim["n"]) for claim in claims}
    _require(len(numbers) == len(claims), "claims: one n twice")


# Claims. S holds the selected keys and U the other candidates, both best first.


def _check_claim(claim: dict[str, Any], query: "_Query", version: int) -> None:
    n, w, v = claim["n"], query.weights, query.vectors
    _require(type(n) is int and 1 <= n < len(query.order), "n: out of range")
    S, U = query.order[:n], query.order[n:]
    tie = query.score[S[-1]] == query.score.get(U[0])
    _require_equal(claim, {"selected": S, "n_unselected": len(U), "boundary_tie": tie})
    dot: dict[int, int] = {}  # <v, s_N>
    phi: dict[int, int] = {}  # the power of D9
    if v:
        columns = zip(*(v[i] for i in S), strict=True)
        aggregate = [sum(map(mul, column, (w[i] for i in S))) for column in columns]
        dot = {k: sum(map(mul, v[k], aggregate)) for k in query.order}
        phi = {k: w[k] * (w[k] * query.norm[k] - 2 * dot[k]) for k in query.order}

    fp, fn, regime = claim["false_positives"], claim["false_negatives"], claim["regime"]
    _require(type(fp) is int and 0 <= fp <= len(U), "false_positives: range")
    _require(type(fn) is int and 0 <= fn <= n, "false_negatives: range")
    _require(isinstance(regime, dict), "regime: not an object")
    name, f_score = regime.get("name"), _f_score(n, fp, fn)
    _require(v or name not in ("cells", "inversions"), "head: it has no values")
    if name == "inversions":
        _require_fields(regime, "name inversions", "regime")
        g, true_g = regime["inversions"], sum(phi[j] <= phi[i] for i in S for j in U)
        _require(type(g) is int and g >= true_g, f"inversions: there are {true_g}")
        least, f_score = (min(g, len(U)), min(g, n)), _joint_bound(n, g)
    elif name == "cells":
        least = _counts(_cell_bounds(regime, query, S, U, dot), S, U)
    else:
        least = _counts(_pairwise_bounds(regime, query, S, U, dot), S, U)
    _require(fp >= least[0], f"false_positives: at least {least[0]} follow")
    _require(fn >= least[1], f"false_negatives: at least {least[1]} follow")

    true_f = _f_score(n, *_counts(phi, S, U)) if v else None
    measured, verdict = claim["measured"], "bounded" if f_score else "vacuous"
    if version > 1 and type(measured) is list and true_f is not None:
        _require(len(measured) == 2, "measured: not [low, high]")
        low, high = map(_fraction, measured)
        holds = 0 <= low <= true_f <= high <= 1 and low < high
        _require(holds, f"measured: F is {true_f}")
        verdict = "undecided" if high == 1 else verdict
    else:
        _require_equal(claim, {"measured": true_f if true_f is None else str(true_f)})
    verdict = "separable" if f_score == 1 else verdict
    found = {"precision": str(Fraction(n, n + fp)), "recall": str(1 - Fraction(fn, n))}
    _require_equal(claim, found | {"f_score": str(f_score), "verdict": verdict})


def _counts(phi: dict[int, Any], S: _Keys, U: _Keys) -> tuple[int, int]:
    """FP and FN (D6); T1: bounds on them from those on phi, upper in S, lower in U."""
    far, near = max(phi[i] for i in S), min(phi[j] for j in U)
    return sum(phi[j] <= far for j in U), sum(phi[i] >= near for i in S)


def _f_score(n: int, fp: int, fn: int) -> Fraction:
    """F_N of D7."""
    return Fraction(0) if fn == n else 2 / (1 + Fraction(fp, n) + Fraction(n, n - fn))


def _joint_bound(n: int, g: int) -> Fraction:
    """T2b: of all with FP + FN <= G + 1, F is least at FP = 1, FN = G."""
    return _f_score(n, 1, min(g, n)) if g else Fraction(1)


def _cell_bounds(regime: Any, query: "_Query", S: _Keys, U: _Keys, dot: Any) -> Any:
    """T6: check the numbers of every cell and bound phi by them, key by key."""
    _require_fields(regime, "name cells", "regime")
    _require(type(regime["cells"]) is list, "cells: not a list")
    n, w, sink, at, bound = len(S), query.weights, query.sink, 0, {}
    # The sink comes first if it is selected, else last.
    order = sorted(S + U, key=lambda k: (k == sink) != (sink in S))
    norm_unit, dot_unit = query.v_unit**2, query.w_unit * query.v_unit**2
    for cell in regime["cells"]:
        _require_fields(cell, "start stop norm dot", "cells")
        start, stop = cell["start"], cell["stop"]
        fits = type(start) is type(stop) is int and at == start < stop <= len(order)
        _require(fits, "cells: they do not cover the candidates in order")
        keys, at, alone = order[start:stop], stop, stop - start == 1
        fits = stop <= n or start >= n
        _require(fits, "cells: one holds selected and unselected keys")
        _require(alone or sink not in keys, "cells: the sink shares a cell")
        q, t = _fraction(cell["norm"]) * norm_unit, _fraction(cell["dot"]) * dot_unit
        sign = 1 if stop <= n else -1  # in S norms are bounded above, products below
        for k in keys:
            holds = sign * (q - query.norm[k]) >= 0 >= sign * (t - dot[k])
            _require(holds, f"cell [{start}, {stop}): does not hold at key {k}")
            bound[k] = w[k] * (w[k] * q - 2 * t)
    _require(at == len(order), "cells: they do not cover the candidates in order")
    return bound


def _pairwise_bounds(
    regime: Any, query: "_Query", S: _Keys, U: _Keys, dot: Any
) -> dict[int, Fraction]:
    """T4: check the numbers of the regime and bound phi by them, key by key."""
    names = ("pairwise", "pairwise-roles", "pairwise-roles-norms")
    _require(regime.get("name") in names, "regime: unknown name")
    _require_fields(regime, _PAIRWISE, "regime")
    sink, by_role = query.sink, regime["name"] != "pairwise"
    inside, outside = [k for k in S if k != sink], [k for k in U if k != sink]
    own, own_in = [k for k in S + U if k == sink], [k for k in S if k == sink]
    norms = _check_norms(regime, query, inside, outside, own)
    # The pairs that each cosine is about: of two tokens, then of the sink.
    pairs = [(inside, inside), (inside, outside)]
    pairs += [(own, inside), (own, outside if own_in else inside)]
    if not by_role:
        same = regime["norms_selected"] == regime["norms_unselected"]
        _require(same, "regime: norms by role in the regime of all pairs")
        plain = inside + outside
        pairs = [(plain, plain), (plain, plain), (own, plain), (own, plain)]
    solid = {k for k in S + U if (query.norm[k] if query.vectors else norms[k][0])}
    cosines = []
    for label, (rows, columns) in zip(_COSINES, pairs, strict=True):
        cosine = Fraction(0)  # where no pair has one, all inner products are 0
        if regime[label] is None:
            both = (i != k for i in solid & {*rows} for k in solid & {*columns})
            _require(not any(both), f"{label}: missing")
        else:
            cosine = _fraction(regime[label])
            _check_cosine(cosine, query, label, rows, columns)
        cosines.append(cosine)
    pull = regime["pull_across"]
    if pull is not None:
        pull = _fraction(pull)
        _require(by_role and own_in, "pull_across: by role with the sink selected only")
        square = pull * abs(pull) * (query.w_unit * query.v_unit) ** 2
        for j in outside if query.vectors else ():
            holds = dot[j] * abs(dot[j]) <= square * query.norm[j]
            _require(holds, f"pull_across: does not hold at key {j}")
    return _norm_bounds(query, S, U, norms, cosines, pull)


def _check_norms(regime: Any, query: "_Query", *groups: _Keys) -> dict[int, Any]:
    """Return the norm interval of every key, by group or, where given, by token."""
    each, tokens = regime["name"] == "pairwise-roles-norms", regime["token_norms"]
    fits = type(tokens) is list and (each or not tokens)
    _require(fits, "token_norms: not a list, or not for this regime")
    rows = list(zip(_SPANS, groups, (regime[label] for label in _SPANS), strict=True))
    for token in tokens:
        fits = type(token) is list and len(token) == 3 and type(token[0]) is int
        fits = fits and 0 <= token[0] < len(query.weights)
        _require(fits, "token_norms: not [key, low, high]")
        rows.append(("token_norms", token[:1], token[1:]))
    named = {token[0] for token in tokens}
    _require(len(named) == len(tokens), "token_norms: a key twice")
    for k in query.order if each else ():
        _require(k in named, f"token_norms: none for key {k}")
    norms: dict[int, Any] = {}
    unit = 1
    for label, keys, pair in rows:
        if pair is None:
            _require(each or not keys, f"{label}: missing")
            continue
        _require(type(pair) is list and len(pair) == 2, f"{label}: not [low, high]")
        low, high = map(_fraction, pair)
        # Their sum is over this: with long primes it would take hours.
        unit = lcm(unit, low.denominator, high.denominator)
        _require(unit < 1 << 8192, f"{label}: no common denominator of 8192 bits")
        least, most = (low * query.v_unit) ** 2, (high * query.v_unit) ** 2
        for k in keys:
            holds = not query.vectors or least <= query.norm[k] <= most
            _require(0 <= low <= high and holds, f"norms: do not hold at key {k}")
            norms[k] = low, high
    return norms


def _check_cosine(
    cosine: Fraction, query: "_Query", label: str, rows: _Keys, columns: _Keys
) -> None:
    """Check a bound on the cosines of all pairs by signed squares.

    p / sqrt(q) <= c if and only if p |p| <= c |c| q.
    """
    sign = 1 if "across" in label else -1  # the least cosines turn all signs
    top = sign * cosine.numerator * abs(cosine.numerator)
    bottom = sign * cosine.denominator**2
    for i in rows if query.vectors else ():
        products, limit = query.products(i), top * query.norm[i]
        for k in columns:
            p = products[k]
            if p * abs(p) * bottom > limit * query.norm[k] and k != i:
                raise _Refusal(f"{label}: does not hold at keys {i}, {k}")


def _norm_bounds(
    query: "_Query", S: _Keys, U: _Keys, norms: Any, cosines: Any, pull: Any
) -> dict[int, Fraction]:
    """T4 itself: bounds on phi, from above in S and from below in U."""
    sink, inside = query.sink, [k for k in S if k != query.sink]
    own = [k for k in S if k == sink]
    least, greatest, sink_least, sink_greatest = cosines
    # Between these two lies r, the norm of a contribution.
    r = {k: [query.weights[k] * end / query.w_unit for end in norms[k]] for k in S + U}

    def most(cosine: Fraction, keys: _Keys) -> Fraction:
        """Return the most that the inner products with these keys sum to, over r."""
        return cosine * sum((r[k][cosine >= 0] for k in keys), Fraction(0))

    def lowest(x: Fraction, k: int) -> Fraction:
        """Return the least r^2 - 2 r x of key k."""
        at = min(max(x, r[k][0]), r[k][1])
        return at * (at - 2 * x)

    # In S the greatest -r^2 - 2 r x is wanted: all signs are turned.
    within = most(-least, inside) + most(-sink_least, own)
    across = most(greatest, inside) + most(sink_greatest, own)
    across = across if pull is None else min(across, pull)
    bound = {}
    for i in S:
        x = most(-sink_least, inside) if i == sink else within - most(-least, [i])
        bound[i] = -lowest(x, i)
    for j in U:
        bound[j] = lowest(most(sink_greatest, inside) if j == sink else across, j)
    return bound


# The query: found by its digest, read in exact integers, its keys ranked (D2, D3).


@dataclass
class _Row:
    """What one query of a head reads; arrays as (type, shape, little-endian bytes)."""

    position: int
    sink: int | None
    arrays: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        header: dict[str, Any] = {"format": "geobounds-head-1", "sink": self.sink}
        header["query_position"] = self.position
        for name, (kind, shape, _) in self.arrays.items():
            header[name] = ["uint8" if kind == "bool" else kind, list(shape)]
        return _digest(header, *(raw for _, _, raw in self.arrays.values()))


class _Query:
    """One query in exact integers: weights over ``w_unit``, values over ``v_unit``."""

    def __init__(self, row: _Row, chosen: dict[str, Any]) -> None:
        seen = row.arrays["visible"][2]
        self.weights, self.w_unit = _integers(row.arrays["weights"], b"\1" * len(seen))
        pairs = zip(self.weights, seen, strict=True)
        fits = all(w >= 0 and (shown or w == 0) for w, shown in pairs)
        _require(fits, "head: a negative weight, or weight on a hidden key")
        self.vectors: list[list[int]] = []  # none for a head without values
        self.v_unit, self.width = 1, None
        if "values" in row.arrays:
            flat, self.v_unit = _integers(row.arrays["values"], seen)
            self.width = width = row.arrays["values"][1][1]
            self.vectors = [flat[k * width : (k + 1) * width] for k in range(len(seen))]
        self.norm = [sum(map(mul, v, v)) for v in self.vectors]
        self.known: dict[int, list[int]] = {}

        # The candidates (D2), those that may be selected first and best first (D3).
        self.sink, aside = row.sink, []
        eligible = [k for k, shown in enumerate(seen) if shown]
        if self.sink in eligible and chosen["sink_policy"] != "keep":
            eligible.remove(self.sink)
            aside = [self.sink] if chosen["sink_policy"] == "compete" else []
        score = self.scores(chosen, eligible)
        self.score = {k: score[k] for k in eligible}
        self.order = sorted(eligible, key=lambda k: (-score[k], k)) + aside

    def scores(self, chosen: dict[str, Any], eligible: _Keys) -> Any:
        """Return what the keys are ranked by."""
        if chosen["ranking"] == "weight":
            return self.weights
        if chosen["ranking"] == "contribution":
            _require(
                self.vectors, "definitions: ranking by contribution without values"
            )
            return [w * w * q for w, q in zip(self.weights, self.norm, strict=True)]
        given = chosen["scores"]
        fits = type(given) is list and len(given) == len(self.weights)
        _require(fits, "definitions: scores of wrong length")
        named = {k for k, x in enumerate(given) if x is not None}
        return {k: _fraction(given[k]) for k in named.union(eligible)}

    @cached_property
    def packed(self) -> tuple[int, int, list[int]]:
        """Every coordinate of all keys as one long integer, a slot of bytes a key.

        One multiplication then serves all keys. Half of what a slot holds exceeds any
        inner product; added to each it makes all positive, so that none borrows.
        """
        most = max(abs(x) for v in self.vectors for x in v)
        slot = (len(self.vectors[0]) * most * most).bit_length() // 8 + 1
        half, columns = 1 << (8 * slot - 1), []
        for column in ([0] * len(self.vectors), *zip(*self.vectors, strict=True)):
            raw = b"".join((x + half).to_bytes(slot, "little") for x in column)
            columns.append(int.from_bytes(raw, "little"))
        halves = columns.pop(0)
        return slot, halves, [column - halves for column in columns]

    def products(self, i: int) -> list[int]:
        """Inner products of the value of key i with those of all keys."""
        if i not in self.known:
            slot, halves, columns = self.packed
            total, half = sum(map(mul, self.vectors[i], columns)), 1 << (8 * slot - 1)
            raw = (total + halves).to_bytes(slot * len(self.vectors), "little")
            parts = (raw[k : k + slot] for k in range(0, len(raw), slot))
            self.known[i] = [int.from_bytes(part, "little") - half for part in parts]
        return self.known[i]


def _integers(array: Any, seen: bytes) -> tuple[list[int], int]:
    """Return m and u with ``numbers == m / u`` exactly; rows not seen are 0."""
    kind, shape, raw = array
    given = struct.unpack(f"<{prod(shape)}{_TYPES[kind][0]}", raw)
    width = prod(shape[1:])
    numbers = [x if seen[at // width] else 0.0 for at, x in enumerate(given)]
    _require(all(map(isfinite, numbers)), "head: NaN or infinity")
    ratios = [x.as_integer_ratio() for x in numbers]
    unit = max((bottom for _, bottom in ratios), default=1)  # all are powers of two
    return [top * (unit // bottom) for top, bottom in ratios], unit


def _query(data: dict[str, Any], rows: list[_Row]) -> _Query:
    """Return the query that was certified, its keys ranked, if head and sink fit."""
    chosen, stored = data["definitions"], data["head"]
    row = _find(stored, rows)
    _require_equal(chosen, {"sink": row.sink}, "definitions: ")
    query = _Query(row, chosen)
    _require(query.vectors or data["version"] > 1, "head: it has no values")
    facts = {
        "query_position": row.position,
        "n_key": len(query.weights),
        "n_candidates": len(query.order),
        "d_head": query.width,
        "mass": str(Fraction(sum(query.weights), query.w_unit)),
    }
    _require_equal(stored, facts, "head: ")
    return query


def _find(stored: dict[str, Any], rows: list[_Row]) -> _Row:
    there = [row for row in rows if row.position == stored["query_position"]]
    _require(there, f"head: no query at position {stored['query_position']!r:.40}")
    fits = stored["d_head"] is None or any("values" in row.arrays for row in there)
    _require(fits, "head: it has no values")
    for row in there:
        if row.digest == stored["sha256"]:
            return row
    raise _Refusal("head: not the head that was certified (its sha256 differs)")


# Head files: arrays and a JSON header.


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a head file as (type, shape, bytes), and its JSON header.

    Raises
    ------
    ValueError
        Damaged, or no such file; no array is larger than what the file holds.
    """
    content = _content(path)
    try:
        read = _read_npz if path.suffix == ".npz" else _read_safetensors
        arrays, header = read(content)
        _require("weights" in arrays, "no weights")
        extra = _json(header, "header")
        extra = extra if isinstance(extra, dict) else {}
        kinds = dict(zip(("weights", "values"), extra.get("dtypes", ()), strict=False))
        for name, (kind, shape, raw) in arrays.items():
            if kind == "uint16" and kinds.get(name) == "bfloat16":
                wide = bytearray(2 * len(raw))  # the upper half of each is given
                wide[2::4], wide[3::4] = raw[0::2], raw[1::2]
                arrays[name] = "float32", shape, bytes(wide)
    except _Refusal:
        raise
    except Exception as error:  # whatever is wrong with it
        raise _Refusal(f"{type(error).__name__}: {error}"[:200].rstrip(": ")) from error
    return arrays, extra


def _read_npz(content: bytes) -> tuple[dict[str, Any], bytes]:
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            name, _, ending = entry.filename.rpartition(".")
            if name not in (*_ARRAYS, "header") or ending != "npy":
                continue
            stored = entry.compress_type == zipfile.ZIP_STORED and name not in arrays
            _require(stored, "arrays are not read if compressed or given twice")
            raw = archive.read(entry)
            _require(raw[:6] == b"\x93NUMPY" and raw[6:7] in (b"\1", b"\2"), "no array")
            start = 8 + 2 * raw[6]  # behind a length of two or four bytes
            stop = start + int.from_bytes(raw[8:start], "little")
            _require(stop <= 1000, "the description of an array is too long")
            facts = re.findall(_FACTS, raw[start:stop].decode("latin-1"))
            _require(facts, "the description of an array is not as numpy writes it")
            kind, order, shape = facts[0]
            _require(order == "False", "columns before rows")
            sizes = [int(x) for x in shape.split(",") if x.strip()]
            arrays[name] = _array(kind, sizes, raw[stop:])
    _require("header" in arrays, "no header")
    return arrays, arrays.pop("header")[2]


def _read_safetensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    start, arrays = 8 + int.from_bytes(content[:8], "little"), {}
    _require(start <= len(content), "a header longer than the file")
    entries = _json(content[8:start], "header")
    _require(isinstance(entries, dict), "a header that is no JSON object")
    for name in entries.keys() & {*_ARRAYS}:
        first, last = entries[name]["data_offsets"]
        fits = type(first) is type(last) is int and 0 <= first <= last
        _require(fits, "an array outside the file")
        raw = content[start + first : start + last]
        arrays[name] = _array(entries[name]["dtype"], entries[name]["shape"], raw)
    spans = sorted(entries[name]["data_offsets"] for name in arrays)
    apart = all(a[1] <= b[0] for a, b in pairwise(spans))
    _require(apart, "arrays that overlap")
    header: Any = (entries.get("__metadata__") or {}).get("header")
    _require(isinstance(header, str), "no header")
    return arrays, header.encode()


def _array(kind: Any, shape: Any, raw: bytes) -> tuple[str, tuple[int, ...], bytes]:
    name = _NAMES.get(kind, kind)
    known = f"arrays of {kind!r:.40} do not form a head, nor do pickles"
    _require(name in _TYPES, known)
    # The product of many long numbers would take minutes.
    fits = type(shape) in (list, tuple) and len(shape) < 9
    fits = fits and all(type(x) is int and 0 < x <= LIMIT for x in shape)
    _require(fits, f"{shape!r:.40} is no shape of an array")
    size = prod(shape) * struct.calcsize(_TYPES[name][0])
    _require(size == len(raw), f"{len(raw)} bytes for an array of {size}")
    odd = name == "bool" and raw.translate(None, b"\0\1")
    _require(not odd, "a truth value is neither 0 nor 1")
    return name, tuple(shape), raw


def _rows(given: Any) -> list[_Row]:
    """Return every query of a head, or of its file."""
    is_file = isinstance(given, (str, Path))
    try:
        arrays, extra = read_arrays(Path(given)) if is_file else given.stored()
    except (AttributeError, ValueError) as error:
        raise _Refusal(f"head: {given!s:.200} is not a head file ({error})") from error
    try:
        # In the order in which they are hashed.
        arrays = {name: _array(*arrays[name]) for name in _ARRAYS if name in arrays}
        return _split(arrays, extra["sink"])
    except (LookupError, TypeError, ValueError) as error:
        reason = (
            f"head: its arrays do not form a head ({type(error).__name__}: {error})"
        )
        raise _Refusal(reason) from error


def _split(arrays: dict[str, Any], sink: Any) -> list[_Row]:
    """Return every query by itself, if the arrays form a head."""
    count, keys = arrays["weights"][1]
    width = arrays.get("values", arrays["weights"])[1][1]
    shapes: dict[str, Any] = dict.fromkeys(("weights", "visible"), (count, keys))
    shapes |= {"values": (keys, width), "query_positions": (count,)}
    for name, (kind, shape, _) in arrays.items():
        fits = kind.startswith(_ARRAYS[name]) and shape == shapes[name]
        _require(fits, f"{name}: {kind} of shape {shape}")
    is_key = sink is None or (type(sink) is int and 0 <= sink < keys)
    _require(is_key, f"the sink {sink!r:.40} is no key")

    positions = struct.unpack(f"<{count}q", arrays.pop("query_positions")[2])
    rows = []
    for at, position in enumerate(positions):
        own = dict(arrays)
        for name in ("weights", "visible"):
            kind, _, raw = arrays[name]
            size = len(raw) // count
            own[name] = kind, (keys,), raw[at * size : (at + 1) * size]
        rows.append(_Row(position, sink, own))
    return rows


def _content(path: Path) -> bytes:
    # read(LIMIT) would set that much aside for a small file too.
    small = path.stat().st_size <= LIMIT
    _require(small, f"{path}: more than {LIMIT} bytes")
    return path.read_bytes()


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or raise ValueError if a key of it stands twice."""
    _require(len(dict(pairs)) == len(pairs), "a key stands twice")
    return dict(pairs)


def _json(text: bytes, what: str) -> Any:
    _require(len(text) <= JSON_LIMIT, f"{what}: more than {JSON_LIMIT} bytes of JSON")
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise _Refusal(f"{what}: not JSON data ({error})") from error


# Small things.


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise _Refusal(reason)


def _require_fields(data: Any, names: str, where: str) -> None:
    fits = isinstance(data, dict) and set(data) == set(names.split())
    _require(fits, f"{where}: missing or unknown fields")


def _require_equal(claimed: Any, true: dict[str, Any], where: str = "") -> None:
    """Require JSON values equal in type too: 1, 1.0 and true are three."""
    for key, value in true.items():
        same = json.dumps(claimed[key]) == json.dumps(value)
        _require(same, f"{where}{key}: should be {value!r:.60}")


def _digest(data: Any, *more: bytes) -> str:
    """SHA-256 of canonical JSON, and of what follows it."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(b"".join([text.encode("ascii"), *more])).hexdigest()


def _fraction(text: Any) -> Fraction:
    """Return an exact number written in lowest terms, such as "2/3"; no exponents."""
    form = r"-?[0-9]{1,4000}(/[1-9][0-9]{0,3999})?"
    if isinstance(text, str) and re.fullmatch(form, text):
        value = Fraction(text)
        if str(value) == text:
            return value
    raise _Refusal(f"a number is no fraction in lowest terms: {text!r:.40}")


def main(arguments: list[str]) -> int:
    """Check certificates against head files; 0 if all hold, 1 if not, 2 if unread."""
    if len(arguments) < 2:
        print("usage: python verify.py CERT.json HEAD.npz [HEAD ...]", file=sys.stderr)
        return 2
    try:
        outcome = verify(*arguments)
    except OSError as error:
        print(f"verify: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    held = "holds if the values meet the regime" if outcome.conditional else "holds"
    text = held if outcome else "\n".join(outcome.reasons)
    print(text.encode("ascii", "backslashreplace").decode())  # paths hold any letters
    return 0 if outcome else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
