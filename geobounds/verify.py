"""The independent checker: repeats a certificate's argument in integers and fractions.

Imports nothing of geobounds and can be read, and run, alone:
``python verify.py CERT.json HEAD.npz``. A certificate is accepted only if its digest,
its form and its head fit, and if every number of its regimes, every count and every
bound follows from the exact data. Statement ids refer to the documentation: T1 turns
intervals into counts, T2 inversions into bounds, T6 cells into intervals.
"""

import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Verification", "verify"]

_TOP = {"format", "version", "definitions", "head", "claims", "provenance", "versions"}
_HEAD = {"sha256", "query_position", "n_key", "n_candidates", "d_head", "mass"}
_DEFINITIONS = {
    "distance": ("euclidean",),
    "ranking": ("weight", "contribution", "scores"),
    "sink_policy": ("keep", "drop", "compete"),
    "ties": ("smaller index first",),
    "comparison": ("ties count against separability",),
}
_CLAIM = {
    "n",
    "n_unselected",
    "selected",
    "boundary_tie",
    "regime",
    "false_positives",
    "false_negatives",
    "precision",
    "recall",
    "f_score",
    "measured",
    "verdict",
}


@dataclass(frozen=True)
class Verification:
    """The outcome: ``ok``, and every reason why not. True in a condition if ok."""

    ok: bool
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether every check held."""
        return self.ok


class _Refusal(Exception):  # noqa: N818 - a verdict, not an error
    """A reason to refuse the certificate."""


def verify(certificate: Any, head: Any) -> Verification:
    """Check a certificate against a head, exactly and independently.

    Parameters
    ----------
    certificate : Certificate, dict, str or Path
        The certificate, its JSON data, or the path of its file.
    head : HeadData, str or Path
        The head, or the path of its .npz or .safetensors file. It may hold further
        queries: the one certified is found by its position.

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
        data = _certificate_data(certificate)
        _check_form(data)
        row = _find_row(data["head"], _head_arrays(head))
        candidates, ranked = _rank(row, data["definitions"], data["head"])
    except _Refusal as reason:
        return Verification(ok=False, reasons=(str(reason),))
    reasons = []
    for claim in data["claims"]:
        try:
            _check_claim(claim, row, candidates, ranked)
        except _Refusal as reason:
            reasons.append(f"n={claim['n']}: {reason}")
    return Verification(ok=not reasons, reasons=tuple(reasons))


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise _Refusal(reason)


def _certificate_data(certificate: Any) -> dict[str, Any]:
    if isinstance(certificate, (str, Path)):
        content = Path(certificate).read_bytes()
        try:
            certificate = json.loads(content, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            msg = f"certificate: not JSON data ({error})"
            raise _Refusal(msg) from error
    elif hasattr(certificate, "to_dict"):
        certificate = certificate.to_dict()
    _require(isinstance(certificate, dict), "certificate: not a JSON object")
    data: dict[str, Any] = certificate
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        msg = "a key stands twice"
        raise ValueError(msg)
    return dict(pairs)


def _check_form(data: dict[str, Any]) -> None:
    found = (data.get("format"), data.get("version"))
    _require(
        found == ("geobounds-certificate", 1) and type(found[1]) is int,
        f"format: unknown, {found[0]!r} version {found[1]!r}",
    )
    _require(set(data) == _TOP | {"sha256"}, "certificate: missing or unknown fields")
    body = {key: data[key] for key in _TOP}
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"certificate: not JSON data ({error})"
        raise _Refusal(msg) from error
    _require(
        hashlib.sha256(text.encode("ascii")).hexdigest() == data["sha256"],
        "sha256: the content was changed after signing",
    )
    definitions, head, claims = data["definitions"], data["head"], data["claims"]
    _require(isinstance(head, dict) and set(head) == _HEAD, "head: wrong fields")
    _require(isinstance(definitions, dict), "definitions: not an object")
    scores = {"scores"} if definitions.get("ranking") == "scores" else set()
    _require(
        set(definitions) == {*_DEFINITIONS, "sink"} | scores,
        "definitions: wrong fields",
    )
    for key, allowed in _DEFINITIONS.items():
        _require(definitions[key] in allowed, f"definitions: unknown {key}")
    _require(isinstance(claims, list) and claims, "claims: none")
    for claim in claims:
        _require(
            isinstance(claim, dict) and set(claim) == _CLAIM, "claims: wrong fields"
        )
    _require(
        len({json.dumps(claim["n"]) for claim in claims}) == len(claims),
        "claims: one n twice",
    )


@dataclass(frozen=True)
class _Row:
    """One query in exact integers: weights times 2^-a, values times 2^-b."""

    weights: list[int]
    weight_shift: int
    values: list[list[int]]
    value_shift: int
    visible: list[bool]
    sink: int | None
    held: set[Any] = field(default_factory=set)  # questions answered with yes


def _head_arrays(head: Any) -> dict[str, Any]:
    if isinstance(head, (str, Path)):
        return _read_head(Path(head))
    return {
        "weights": head.weights,
        "values": head.values,
        "visible": head.visible,
        "query_positions": head.query_positions,
        "sink": head.sink,
    }


def _read_head(path: Path) -> dict[str, Any]:
    names = ("weights", "values", "visible", "query_positions")
    try:
        if path.suffix == ".npz":
            with path.open("rb") as stream:
                archive = np.load(stream, allow_pickle=False)
                arrays = {k: archive.get(k) for k in names}
                header = archive["header"].tobytes()
        else:
            from safetensors import safe_open  # needed for this file type only

            with safe_open(path, framework="numpy") as archive:
                present = set(archive.keys())
                arrays = {
                    k: archive.get_tensor(k) if k in present else None for k in names
                }
                header = (archive.metadata() or {})["header"]
        extra = json.loads(header)
        return {**arrays, "sink": extra["sink"]}
    except OSError:
        raise
    except Exception as error:
        msg = f"head: {path} is not a head file ({error})"
        raise _Refusal(msg) from error


def _find_row(stored: dict[str, Any], arrays: dict[str, Any]) -> _Row:
    _require(arrays["values"] is not None, "head: it has no values")
    _check_types(arrays)
    try:
        places = [
            index
            for index, position in enumerate(arrays["query_positions"])
            if _same(int(position), stored["query_position"])
        ]
        for index in places:
            if _head_digest(arrays, index) == stored["sha256"]:
                return _exact_row(arrays, index)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        msg = f"head: its arrays do not form a head ({error})"
        raise _Refusal(msg) from error
    _require(places, f"head: no query at position {stored['query_position']}")
    msg = "head: not the head that was certified (its sha256 differs)"
    raise _Refusal(msg)


def _check_types(arrays: dict[str, Any]) -> None:
    """Refuse arrays that would not be read as the numbers they hold."""
    floats = ("float16", "float32", "float64")
    for name, kinds, ndim in (
        ("weights", floats, 2),
        ("values", floats, 2),
        ("visible", ("bool",), 2),
        ("query_positions", ("int8", "int16", "int32", "int64"), 1),
    ):
        array = arrays[name]
        kind = getattr(getattr(array, "dtype", None), "name", None)
        _require(
            kind in kinds and array.ndim == ndim,
            f"head: its arrays do not form a head ({name} of type {kind})",
        )
    shape = arrays["weights"].shape
    fits = (
        arrays["visible"].shape == shape
        and arrays["query_positions"].shape == shape[:1]
        and arrays["values"].shape[0] == shape[1]
    )
    _require(fits, "head: its arrays do not form a head (their shapes differ)")
    sink = arrays["sink"]
    _require(
        sink is None or (type(sink) is int and 0 <= sink < shape[1]),
        f"head: the sink {sink!r} is no key",
    )


def _same(found: Any, claimed: Any) -> bool:
    """Whether two JSON values are equal in type too: 1, 1.0 and true are three."""
    return json.dumps(found) == json.dumps(claimed)


def _head_digest(arrays: dict[str, Any], index: int) -> str:
    parts = {
        "weights": arrays["weights"][index],
        "visible": arrays["visible"][index].astype(np.uint8),
        "values": arrays["values"],
    }
    header = {
        "format": "geobounds-head-1",
        "query_position": int(arrays["query_positions"][index]),
        "sink": arrays["sink"],
        **{k: [v.dtype.name, list(v.shape)] for k, v in parts.items()},
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    hasher = hashlib.sha256(text.encode())
    for array in parts.values():
        hasher.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return hasher.hexdigest()


def _exact_row(arrays: dict[str, Any], index: int) -> _Row:
    visible = [bool(x) for x in arrays["visible"][index]]
    weights = [float(x) for x in arrays["weights"][index]]
    rows = [
        [float(x) for x in row] if seen else [0.0] * len(row)
        for row, seen in zip(arrays["values"], visible, strict=True)
    ]
    finite = all(
        abs(x) < float("inf") for x in [*weights, *(x for r in rows for x in r)]
    )
    _require(finite, "head: NaN or infinity")
    _require(
        all(
            w >= 0 and (seen or w == 0)
            for w, seen in zip(weights, visible, strict=True)
        ),
        "head: a negative weight, or weight on a hidden key",
    )
    flat, shift = _integers(weights)
    cells, value_shift = _integers([x for row in rows for x in row])
    width = len(rows[0])
    values = [cells[i : i + width] for i in range(0, len(cells), width)]
    return _Row(flat, shift, values, value_shift, visible, arrays["sink"])


def _integers(numbers: list[float]) -> tuple[list[int], int]:
    """Return m and a with ``numbers == m / 2^a`` exactly."""
    ratios = [x.as_integer_ratio() for x in numbers]
    shift = max((d.bit_length() - 1 for _, d in ratios), default=0)
    return [m << (shift - d.bit_length() + 1) for m, d in ratios], shift


def _rank(
    row: _Row, definitions: dict[str, Any], stored: dict[str, Any]
) -> tuple[list[int], list[tuple[Any, int]]]:
    """Return the candidates, and (score, key) of those to select from (D2, D3)."""
    _require(_same(row.sink, definitions["sink"]), "definitions: another sink")
    candidates = [k for k, seen in enumerate(row.visible) if seen]
    eligible = list(candidates)
    if row.sink in candidates and definitions["sink_policy"] != "keep":
        eligible.remove(row.sink)
        if definitions["sink_policy"] == "drop":
            candidates.remove(row.sink)
    mass = Fraction(sum(row.weights), 1 << row.weight_shift)
    for key, value in (
        ("n_key", len(row.weights)),
        ("d_head", len(row.values[0])),
        ("n_candidates", len(candidates)),
        ("mass", str(mass)),
    ):
        _require(
            _same(value, stored[key]), f"head: {key} is {value}, not {stored[key]!r}"
        )
    score: dict[int, Any]
    if definitions["ranking"] == "weight":
        score = {k: row.weights[k] for k in eligible}
    elif definitions["ranking"] == "contribution":
        squares = {k: sum(x * x for x in row.values[k]) for k in eligible}
        score = {k: row.weights[k] ** 2 * squares[k] for k in eligible}
    else:
        given = definitions["scores"]
        _require(
            isinstance(given, list) and len(given) == len(row.weights),
            "definitions: scores of wrong length",
        )
        score = {k: _fraction(given[k]) for k in eligible}
    ranked = sorted(((score[k], k) for k in eligible), key=lambda x: (-x[0], x[1]))
    return candidates, ranked


def _fraction(text: Any) -> Fraction:
    """Return an exact number written in lowest terms, such as "2/3"; no exponents."""
    if isinstance(text, str) and re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
        try:
            value = Fraction(text)
        except (ValueError, ZeroDivisionError):  # more digits than Python takes
            value = None
        if value is not None and str(value) == text:
            return value
    msg = f"a number is no fraction in lowest terms: {text!r:.40}"
    raise _Refusal(msg)


def _check_claim(
    claim: dict[str, Any],
    row: _Row,
    candidates: list[int],
    ranked: list[tuple[Any, int]],
) -> None:
    n = claim["n"]
    _require(type(n) is int and 1 <= n < len(candidates), "n: out of range")
    selected = [key for _, key in ranked[:n]]
    _require(_same(selected, claim["selected"]), "selected: not the n best keys")
    tie = n < len(ranked) and ranked[n - 1][0] == ranked[n][0]
    _require(claim["boundary_tie"] is tie, f"boundary_tie: should be {tie}")
    unselected = [key for _, key in ranked[n:]] + [
        key for key in candidates if key not in {k for _, k in ranked}
    ]
    _require(_same(len(unselected), claim["n_unselected"]), "n_unselected: wrong")

    width = range(len(row.values[0]))
    aggregate = [
        sum(row.weights[i] * row.values[i][k] for i in selected) for k in width
    ]
    norm = {k: sum(x * x for x in row.values[k]) for k in candidates}
    dot = {
        k: sum(x * y for x, y in zip(row.values[k], aggregate, strict=True))
        for k in candidates
    }
    power = {
        k: row.weights[k] * (row.weights[k] * norm[k] - 2 * dot[k]) for k in candidates
    }
    inside, outside = [power[i] for i in selected], [power[j] for j in unselected]
    measured = _f_score(n, *_counts(inside, outside))
    _require(_fraction(claim["measured"]) == measured, f"measured: F is {measured}")
    fp, fn = claim["false_positives"], claim["false_negatives"]
    _require(type(fp) is int and 0 <= fp <= len(unselected), "false_positives: range")
    _require(type(fn) is int and 0 <= fn <= n, "false_negatives: range")
    regime = claim["regime"]
    _require(isinstance(regime, dict), "regime: not an object")
    if regime.get("name") == "inversions":
        _require(set(regime) == {"name", "inversions"}, "regime: wrong fields")
        g = regime["inversions"]
        true_g = sum(x <= y for x in outside for y in inside)
        _require(type(g) is int and g >= true_g, f"inversions: there are {true_g}")
        least = (min(g, len(unselected)), min(g, n))
        f_score = _joint_bound(n, len(unselected), g)
    else:
        if regime.get("name") == "cells":
            bound = _cell_bounds(regime, row, selected, unselected, norm, dot)
        else:
            bound = _pairwise_bounds(regime, row, selected, unselected, norm, dot)
        least = _counts([bound[i] for i in selected], [bound[j] for j in unselected])
        f_score = _f_score(n, fp, fn)
    _require(fp >= least[0], f"false_positives: at least {least[0]} follow")
    _require(fn >= least[1], f"false_negatives: at least {least[1]} follow")
    for name, value in (
        ("precision", Fraction(n, n + fp)),
        ("recall", 1 - Fraction(fn, n)),
        ("f_score", f_score),
    ):
        _require(_fraction(claim[name]) == value, f"{name}: should be {value}")
    verdict = "separable" if f_score == 1 else "bounded" if f_score else "vacuous"
    _require(claim["verdict"] == verdict, f"verdict: should be {verdict}")


def _counts(inside: list[Any], outside: list[Any]) -> tuple[int, int]:
    """FP and FN (D6; T1 when given upper bounds inside and lower bounds outside)."""
    far, near = max(inside), min(outside)
    return sum(x <= far for x in outside), sum(x >= near for x in inside)


def _f_score(n: int, fp: int, fn: int) -> Fraction:
    """F_N of D7."""
    return Fraction(0) if fn == n else 2 / (1 + Fraction(fp, n) + Fraction(n, n - fn))


def _joint_bound(n: int, m: int, g: int) -> Fraction:
    """T2 (b): the least F over all FP, FN with FP + FN = G + 1 within their ranges."""
    if g == 0:
        return Fraction(1)
    if g >= n:
        return Fraction(0)
    return min(_f_score(n, g + 1 - fn, fn) for fn in range(max(1, g + 1 - m), g + 1))


def _cell_bounds(
    regime: dict[str, Any],
    row: _Row,
    selected: list[int],
    unselected: list[int],
    norm: dict[int, int],
    dot: dict[int, int],
) -> dict[int, Any]:
    """T6: check the numbers of every cell and bound phi by them, key by key."""
    _require(set(regime) == {"name", "cells"}, "regime: wrong fields")
    ends = _cell_ends(regime["cells"])
    order = _arrangement(selected, unselected, row.sink)
    _check_cover(ends, len(order), len(selected), order, row.sink)
    chosen = set(selected)
    # In units of the row's integers.
    norm_unit = 1 << (2 * row.value_shift)
    dot_unit = 1 << (row.weight_shift + 2 * row.value_shift)
    bound: dict[int, Any] = {}
    for cell, (start, stop) in zip(regime["cells"], ends, strict=True):
        q = _fraction(cell["norm"]) * norm_unit
        t = _fraction(cell["dot"]) * dot_unit
        for key in order[start:stop]:
            holds = (
                q >= norm[key] and t <= dot[key]
                if key in chosen
                else q <= norm[key] and t >= dot[key]
            )
            _require(holds, f"cell [{start}, {stop}): does not hold at key {key}")
            bound[key] = row.weights[key] * (row.weights[key] * q - 2 * t)
    return bound


_PAIRWISE = {
    "name",
    "norms_selected",
    "norms_unselected",
    "cosine_selected",
    "cosine_across",
    "sink_norm",
    "sink_selected",
    "sink_across",
    "pull_across",
    "token_norms",
}


def _pairwise_bounds(
    regime: dict[str, Any],
    row: _Row,
    selected: list[int],
    unselected: list[int],
    norm: dict[int, int],
    dot: dict[int, int],
) -> dict[int, Any]:
    """T4: check norms and cosines by squares, then bound phi by them, key by key."""
    name, sink = regime.get("name"), row.sink
    _require(
        name in ("pairwise", "pairwise-roles", "pairwise-roles-norms"),
        "regime: unknown name",
    )
    _require(set(regime) == _PAIRWISE, "regime: wrong fields")
    inside = [k for k in selected if k != sink]
    outside = [k for k in unselected if k != sink]
    _require(
        name != "pairwise"
        or (
            regime["norms_selected"] == regime["norms_unselected"]
            and regime["pull_across"] is None
        ),
        "regime: numbers by role in the regime of all pairs",
    )
    sink_in, sink_out = sink in selected, sink in unselected
    sinks = [] if sink is None or not (sink_in or sink_out) else [sink]
    by_role = name != "pairwise"
    number = {
        k: None if regime[k] is None else _fraction(regime[k])
        for k in _PAIRWISE
        if k.startswith(("cosine", "sink_s", "sink_a", "pull"))
    }

    # Norms, in units of the row's values.
    spans: dict[int, tuple[Fraction, Fraction]] = {}
    if name == "pairwise-roles-norms":
        _require(isinstance(regime["token_norms"], list), "token_norms: not a list")
        for entry in regime["token_norms"]:
            _require(
                isinstance(entry, list) and len(entry) == 3 and type(entry[0]) is int,
                "token_norms: not [key, low, high]",
            )
            _require(entry[0] not in spans, f"token_norms: key {entry[0]} twice")
            spans[entry[0]] = (_fraction(entry[1]), _fraction(entry[2]))
    else:
        _require(regime["token_norms"] == [], "token_norms: not for this regime")
        for label, keys in (
            ("norms_selected", inside),
            ("norms_unselected", outside),
            ("sink_norm", sinks),
        ):
            pair = regime[label]
            for key in keys:
                _require(isinstance(pair, list) and len(pair) == 2, f"{label}: missing")
                spans[key] = (_fraction(pair[0]), _fraction(pair[1]))
    unit = 1 << (2 * row.value_shift)
    for key in [*selected, *unselected]:
        _require(key in spans, f"token_norms: none for key {key}")
        low, high = spans[key]
        _require(
            0 <= low <= high and low * low * unit <= norm[key] <= high * high * unit,
            f"norms: do not hold at key {key}",
        )

    # Cosines: least and greatest over the pairs that the bound below uses.
    pairs = [("cosine_selected", 1, inside, inside)]
    pairs += [("cosine_across", -1, inside, outside)]
    pairs += [("sink_selected", 1, sinks if sink_in else [], inside)]
    pairs += [("sink_across", -1, sinks, outside if sink_in else inside)]
    everyone = inside + outside
    if not by_role:
        pairs = [("cosine_selected", 1, everyone, everyone)]
        pairs += [("cosine_across", -1, everyone, everyone)]
        pairs += [("sink_selected", 1, sinks, everyone)]
        pairs += [("sink_across", -1, sinks, everyone)]
    for name_of, sign, rows, columns in pairs:
        _check_cosines(name_of, sign, number[name_of], row, rows, columns, norm)

    # With a cosine that no pair has, every inner product is 0.
    least, greatest, sink_least, sink_greatest = (
        number[k] or Fraction(0)
        for k in ("cosine_selected", "cosine_across", "sink_selected", "sink_across")
    )
    weight = {
        k: Fraction(row.weights[k], 1 << row.weight_shift)
        for k in [*selected, *unselected]
    }
    r = {k: (weight[k] * spans[k][0], weight[k] * spans[k][1]) for k in weight}

    def low_product(cosine: Fraction, key: int) -> Fraction:
        return cosine * r[key][0 if cosine >= 0 else 1]

    def high_product(cosine: Fraction, key: int) -> Fraction:
        return cosine * r[key][1 if cosine >= 0 else 0]

    bound: dict[int, Any] = {}
    all_low = sum((low_product(least, k) for k in inside), Fraction(0))
    for i in selected:
        if i == sink:
            x = sum((low_product(sink_least, k) for k in inside), Fraction(0))
        else:
            x = all_low - low_product(least, i)
            if sink_in and sink is not None:
                x += low_product(sink_least, sink)
        at = min(max(-x, r[i][0]), r[i][1])
        bound[i] = -at * at - 2 * at * x
    all_high = sum((high_product(greatest, k) for k in inside), Fraction(0))
    pull = number["pull_across"]
    if pull is not None:
        _require(
            by_role and sink_in, "pull_across: by role with the sink selected only"
        )
        for j in outside:
            scale = 1 << (row.weight_shift + 2 * row.value_shift)
            held = _cosine_at_least(
                -dot[j], norm[j], -pull * scale / (1 << row.value_shift)
            )
            _require(held, f"pull_across: does not hold at key {j}")
    for j in unselected:
        if j == sink:
            x = sum((high_product(sink_greatest, k) for k in inside), Fraction(0))
        else:
            x = all_high
            if sink_in and sink is not None:
                x += high_product(sink_greatest, sink)
            if pull is not None:
                x = min(x, pull)
        at = min(max(x, r[j][0]), r[j][1])
        bound[j] = at * at - 2 * at * x
    return bound


def _check_cosines(
    label: str,
    sign: int,
    bound: Fraction | None,
    row: _Row,
    rows: list[int],
    columns: list[int],
    norm: dict[int, int],
) -> None:
    """Check that every cosine is at least (sign 1) or at most (sign -1) the bound."""
    question = (sign, bound, frozenset(rows), frozenset(columns))
    if question in row.held:  # the same for every N of the regime of all pairs
        return
    seen = set()
    for i in rows:
        for k in columns:
            if i == k or (k, i) in seen or norm[i] == 0 or norm[k] == 0:
                continue
            seen.add((i, k))
            _require(bound is not None, f"{label}: missing")
            product = sum(
                x * y for x, y in zip(row.values[i], row.values[k], strict=True)
            )
            held = _cosine_at_least(
                sign * product, norm[i] * norm[k], sign * (bound or Fraction(0))
            )
            _require(held, f"{label}: does not hold at keys {i}, {k}")
    row.held.add(question)


def _cosine_at_least(dot: int, square: int, bound: Fraction) -> bool:
    """Whether dot / sqrt(square) >= bound, by squares; true for a zero vector."""
    if square == 0:
        return True
    top, bottom = bound.numerator**2 * square, bound.denominator**2 * dot * dot
    if bound >= 0:
        return dot >= 0 and bottom >= top
    return dot >= 0 or bottom <= top


def _cell_ends(cells: Any) -> list[tuple[int, int]]:
    _require(isinstance(cells, list), "cells: not a list")
    for cell in cells:
        _require(
            isinstance(cell, dict)
            and set(cell) == {"start", "stop", "norm", "dot"}
            and type(cell["start"]) is int
            and type(cell["stop"]) is int,
            "cells: wrong fields",
        )
    return [(cell["start"], cell["stop"]) for cell in cells]


def _arrangement(
    selected: list[int], unselected: list[int], sink: int | None
) -> list[int]:
    """Order the keys: selected best first, then the others; sink first or last (T6)."""
    others = [k for k in selected if k != sink] + [k for k in unselected if k != sink]
    if sink in selected:
        return [sink, *others] if sink is not None else others
    return [*others, sink] if sink in unselected and sink is not None else others


def _check_cover(
    ends: list[tuple[int, int]], count: int, n: int, order: list[int], sink: int | None
) -> None:
    flat = [end for pair in ends for end in pair]
    _require(
        flat and flat[0] == 0 and flat[-1] == count and flat[1:-1:2] == flat[2::2],
        "cells: they do not cover the candidates in order",
    )
    _require(all(start < stop for start, stop in ends), "cells: an empty cell")
    _require(n in flat, "cells: one holds selected and unselected keys")
    if sink is not None and sink in order:
        place = order.index(sink)
        _require((place, place + 1) in ends, "cells: the sink shares a cell")


def main(arguments: list[str]) -> int:
    """Check one certificate against one head file; 0 if it holds, else 1."""
    if len(arguments) != 2:
        print("usage: python verify.py CERT.json HEAD.npz", file=sys.stderr)
        return 2
    outcome = verify(*arguments)
    print("holds" if outcome else "\n".join(outcome.reasons))
    return 0 if outcome else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
