"""The independent checker: repeats a certificate's argument in integers and fractions.

Imports nothing of geobounds and can be read, and run, alone:
``python verify.py CERT.json HEAD.npz``. A certificate is accepted only if its digest,
its form and its head fit, and if every number of its regimes, every count and every
bound follows from the exact data. Statement ids refer to the documentation: T1 turns
intervals into counts, T2 inversions into bounds, T6 cells into intervals.
"""

import hashlib
import json
import sys
from dataclasses import dataclass
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
            _check_claim(claim, row, candidates, ranked, data["definitions"]["sink"])
        except _Refusal as reason:
            reasons.append(f"n={claim['n']}: {reason}")
    return Verification(ok=not reasons, reasons=tuple(reasons))


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise _Refusal(reason)


def _certificate_data(certificate: Any) -> dict[str, Any]:
    if isinstance(certificate, (str, Path)):
        text = Path(certificate).read_text(encoding="utf-8")
        try:
            certificate = json.loads(text, object_pairs_hook=_unique)
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
        found == ("geobounds-certificate", 1),
        f"format: unknown, {found[0]!r} version {found[1]!r}",
    )
    _require(set(data) == _TOP | {"sha256"}, "certificate: missing or unknown fields")
    body = {key: data[key] for key in _TOP}
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
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
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in names}
                header = archive["header"].tobytes()
        else:
            from safetensors import safe_open  # needed for this file type only

            with safe_open(path, framework="numpy") as archive:
                arrays = {name: archive.get_tensor(name) for name in names}
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
    positions = [int(p) for p in arrays["query_positions"]]
    for index, position in enumerate(positions):
        if position == stored["query_position"]:
            if _head_digest(arrays, index) == stored["sha256"]:
                return _exact_row(arrays, index)
            msg = "head: not the head that was certified (its sha256 differs)"
            raise _Refusal(msg)
    msg = f"head: no query at position {stored['query_position']}"
    raise _Refusal(msg)


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
    _require(definitions["sink"] == row.sink, "definitions: another sink")
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
        _require(stored[key] == value, f"head: {key} is {value}, not {stored[key]}")
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
    _require(isinstance(text, str), f"a number is no fraction string: {text!r:.40}")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        msg = f"a number is no fraction: {text!r:.40}"
        raise _Refusal(msg) from error


def _check_claim(
    claim: dict[str, Any],
    row: _Row,
    candidates: list[int],
    ranked: list[tuple[Any, int]],
    sink: int | None,
) -> None:
    n = claim["n"]
    _require(type(n) is int and 1 <= n < len(candidates), "n: out of range")
    selected = [key for _, key in ranked[:n]]
    _require(claim["selected"] == selected, "selected: not the n best keys")
    tie = n < len(ranked) and ranked[n - 1][0] == ranked[n][0]
    _require(claim["boundary_tie"] is tie, f"boundary_tie: should be {tie}")
    chosen = set(selected)
    unselected = [key for _, key in ranked[n:]] + [
        key for key in candidates if key not in {k for _, k in ranked}
    ]
    _require(claim["n_unselected"] == len(unselected), "n_unselected: wrong")

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
        _require(
            regime.get("name") == "cells" and set(regime) == {"name", "cells"},
            "regime: unknown name or fields",
        )
        ends = _cell_ends(regime["cells"])
        order = _arrangement(selected, unselected, sink)
        _check_cover(ends, len(order), n, order, sink)
        # In units of the integers above.
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
