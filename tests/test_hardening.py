"""Inputs that once broke something, each refused or taken for what it is."""

import contextlib
import dataclasses
import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest
import torch

import geobounds as gb
from geobounds.cli import main

HEAD = gb.HeadData([0.5, 0.25, 0.125, 0.125], [[1.0], [2.0], [3.0], [4.0]])


def signed(data):
    body = {k: v for k, v in data.items() if k != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


# 1. certify with own scores


@pytest.mark.parametrize(
    "scores",
    [
        [2**53, 2**53 - 1, 0, 0],
        torch.tensor([4.0, 3, 2, 1], requires_grad=True),
        torch.tensor([4.0, 3, 2, 1], dtype=torch.bfloat16),
    ],
    ids=["int", "grad", "bfloat16"],
)
def test_certificates_by_any_scores_verify(scores):
    assert gb.verify(gb.certify(HEAD, 1, ranking=scores), HEAD)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([2**53, 2**53 + 1, 0, 0], "ranking must be exact as float64"),
        (np.ones(4, dtype=np.longdouble), "ranking must be float16"),
    ],
)
def test_scores_that_no_float64_holds_are_refused(scores, message):
    with pytest.raises((TypeError, gb.HeadDataError), match=message):
        gb.certify(HEAD, 1, ranking=scores)


# 2. certify with a regime object of another kind


def test_an_unsupported_regime_object_is_refused(plain):
    head = plain.HeadData(HEAD.weights[0], HEAD.values)
    with pytest.raises((TypeError, ValueError), match="regime"):
        plain.certify(head, 2, regime=plain.InversionRegime(2, 0))


# 3. verify raises where it should refuse


def test_a_binary_file_is_no_certificate(tmp_path):
    HEAD.save(tmp_path / "h.npz")
    outcome = gb.verify(tmp_path / "h.npz", tmp_path / "h.npz")
    assert "not JSON data" in outcome.reasons[0]


@pytest.mark.parametrize("positions", [[1, 3], ["a"], 3])
def test_a_head_file_with_odd_positions_is_refused(tmp_path, positions):
    np.savez(
        tmp_path / "h.npz",
        header=header(sink=0),
        weights=HEAD.weights,
        values=HEAD.values,
        visible=HEAD.visible,
        query_positions=np.array(positions),
    )
    assert not gb.verify(gb.certify(HEAD, 1), tmp_path / "h.npz")


def test_two_queries_at_one_position_can_both_be_verified():
    head = gb.HeadData(
        [[0.5, 0.5], [0.25, 0.75]],
        [[1.0], [2.0]],
        visible="all",
        query_positions=[1, 1],
    )
    assert gb.verify(gb.certify(head, 1, query=1), head)


# 4. verify and Certificate.load disagree


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("claims", 0, "f_score"), "0/5"),
        (("head", "n_key"), 4.0),
        (("definitions", "sink"), False),
        (("claims", 0, "selected"), [0.0]),
        (("head", "query_position"), 3.0),
    ],
)
def test_a_certificate_that_verifies_is_written_canonically(place, value):
    data = json.loads(json.dumps(gb.certify(HEAD, 1).to_dict()))
    at = data
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    assert not gb.verify(signed(data), HEAD)


# 5. Certificate.from_dict raises another error


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("claims", 0, "precision"), float("inf")),
        (("provenance",), {"x": float("nan")}),
        (("claims", 0, "n"), float("nan")),
    ],
)
def test_numbers_that_are_no_json_are_refused(place, value):
    data = json.loads(json.dumps(gb.certify(HEAD, 1).to_dict()))
    at = data
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    with pytest.raises(gb.CertificateFormatError):
        gb.Certificate.from_dict(data)


# 6. AssumptionError cannot be built for huge numbers


def test_a_wrong_number_on_a_huge_head_is_named():
    head = gb.HeadData([0.5, 0.25], [[2.0**600], [1.0]], sink=None)
    good = gb.CellRegime.fit(head, 1, resolution=2).cells
    wrong = gb.CellRegime(1, (gb.Cell(0, 1, Fraction(1), good[0].dot), good[1]))
    with pytest.raises(gb.AssumptionError):
        wrong.check(head)


# 7. HeadData.load raises another error than HeadDataError


def header(**fields):
    fields = {"format": "geobounds-head-1", "dtypes": ["float64", "float64"]} | fields
    text = json.dumps(fields)
    return np.frombuffer(text.encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    "arrays",
    [
        {"header": header(sink="a"), "weights": np.ones(2)},
        {"header": header(), "weights": np.ones(2) * 1j},
        {"header": header(), "weights": np.ones(2), "visible": np.ones(2)},
        {"header": header(), "weights": np.ones(2), "query_positions": np.ones(1)},
        {
            "header": np.frombuffer(b"[" * 100_000, dtype=np.uint8),
            "weights": np.ones(2),
        },
    ],
    ids=["sink", "complex", "mask", "positions", "recursion"],
)
def test_a_file_of_wrong_types_is_refused(tmp_path, arrays, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("h.npz", **arrays)
    with pytest.raises(gb.HeadDataError):
        gb.HeadData.load("h.npz")


def test_a_command_says_so_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("h.npz", header=header(sink="a"), weights=np.ones(2))
    assert main(["certify", "h.npz"]) == 2


def test_one_array_under_the_name_of_an_archive_is_refused(tmp_path):
    path = tmp_path / "h.npz"
    with path.open("wb") as stream:
        np.save(stream, np.ones(3))
    with pytest.raises(gb.HeadDataError):
        gb.HeadData.load(path)


@pytest.mark.parametrize("offset", range(0, 1500, 7))
def test_an_archive_with_any_byte_flipped_is_refused_or_read(tmp_path, offset):
    """No other exception than the library's own leaves the reader."""
    path = tmp_path / "h.npz"
    HEAD.save(path)
    content = bytearray(path.read_bytes())
    content[offset % len(content)] ^= 0x55
    path.write_bytes(content)
    with contextlib.suppress(gb.HeadDataError):
        assert gb.HeadData.load(path).n_key > 0


def test_a_torn_archive_is_refused_and_closed(tmp_path):
    """numpy leaks the open file: ResourceWarning, an error here."""
    path = tmp_path / "h.npz"
    HEAD.save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(gb.HeadDataError, match="must be a head written by"):
            gb.HeadData.load(path)


# 8. Small things


def test_the_queries_of_a_head_can_be_listed():
    assert len(list(gb.HeadData([[0.5, 0.5], [0.25, 0.75]], visible="all"))) == 2


def test_numpy_integers_serve_in_every_function(plain):
    assert plain.inversion_bounds(np.int64(2), np.int64(3), np.int64(1))


def test_a_float8_tensor_is_refused_by_name():
    tensor = torch.tensor([0.5, 0.5]).to(torch.float8_e4m3fn)
    with pytest.raises(
        TypeError, match=r"^HeadData: weights must be float16, bfloat16"
    ):
        gb.HeadData(tensor)


def test_a_cut_that_is_no_integer_is_refused(plain):
    head = plain.HeadData(HEAD.weights[0], HEAD.values)
    with pytest.raises((TypeError, ValueError), match="split"):
        plain.CellRegime.fit(head, 2, split=[1.5])


def test_a_bfloat16_slice_says_so():
    head = gb.HeadData(torch.tensor([[0.5, 0.5]], dtype=torch.bfloat16))
    assert head[0].dtype_name == "bfloat16"


def test_a_head_file_without_values_is_named_so(tmp_path):
    gb.HeadData([0.5, 0.25, 0.125, 0.125]).save(tmp_path / "h.npz")
    reasons = gb.verify(gb.certify(HEAD, 1), tmp_path / "h.npz").reasons
    assert len(reasons) == 1
    assert reasons[0].startswith("head: ")


def test_a_position_that_no_int64_holds_is_refused():
    with pytest.raises(gb.HeadDataError):
        gb.HeadData([0.5, 0.5], query_positions=[2**63])


# What a fresh reader of the checker found


THREE = gb.HeadData([0.5, 0.3, 0.2], [[1, 0], [0, 1], [1, 1]], sink=None)


def forged(regime, **fields):
    """A re-signed certificate that claims F = 1 at N = 2 from changed numbers."""
    data = json.loads(json.dumps(gb.certify(THREE, 2, regime=regime).to_dict()))
    claim = data["claims"][0]
    claim["regime"] |= fields
    claim |= {"false_positives": 0, "false_negatives": 0, "verdict": "separable"}
    claim |= {"precision": "1", "recall": "1", "f_score": "1"}
    return signed(data)


def test_a_negative_greatest_norm_is_refused():
    """Its square would pass; THREE measures F = 4/7."""
    outcome = gb.verify(
        forged("pairwise-roles", norms_unselected=["0", "-1000"]), THREE
    )
    assert "norms" in outcome.reasons[0]
    norms = gb.PairwiseRegime.fit(THREE, n=2, exact_norms=True).token_norms
    entries = [[k, str(a), str(b)] for k, a, b in norms[:2]] + [[2, "0", "-1000"]]
    outcome = gb.verify(forged("pairwise-roles-norms", token_norms=entries), THREE)
    assert "norms" in outcome.reasons[0]


def test_a_token_norm_given_twice_is_refused():
    norms = gb.PairwiseRegime.fit(THREE, n=2, exact_norms=True).token_norms
    entries = [[k, str(a), str(b)] for k, a, b in (*norms, norms[0])]
    outcome = gb.verify(forged("pairwise-roles-norms", token_norms=entries), THREE)
    assert "twice" in outcome.reasons[0]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("visible", np.array([[1, 1, 256]])),
        ("visible", np.array([[1.0, 1.0, 0.5]])),
        ("values", np.array([[2**53, 0], [2**53 + 1, 0], [0, 0]])),
        ("values", np.ones((3, 2), dtype=np.longdouble)),
        ("query_positions", np.array([np.inf])),
        ("query_positions", np.array([2.7])),
        ("weights", np.array([0.5, 0.3, 0.2])),
        ("values", np.ones((4, 2))),
    ],
)
def test_arrays_that_would_be_read_as_other_numbers_are_refused(tmp_path, name, array):
    """Whatever the digest says of their bytes; the true arrays are taken."""
    arrays = THREE.arrays() | {"header": header(sink=None)}
    np.savez(tmp_path / "good.npz", **arrays)
    np.savez(tmp_path / "h.npz", **(arrays | {name: array}))
    outcome = gb.verify(gb.certify(THREE, 2), tmp_path / "h.npz")
    assert gb.verify(gb.certify(THREE, 2), tmp_path / "good.npz")
    assert "do not form a head" in outcome.reasons[0]


def test_a_sink_that_is_no_int_is_refused_by_the_checker(tmp_path):
    for name, sink in (("good.npz", 0), ("h.npz", 0.0)):
        np.savez(tmp_path / name, **HEAD.arrays(), header=header(sink=sink))
    outcome = gb.verify(gb.certify(HEAD, 2), tmp_path / "h.npz")
    assert gb.verify(gb.certify(HEAD, 2), tmp_path / "good.npz")
    assert "sink" in outcome.reasons[0]


def test_a_regime_in_floats_is_checked_exactly(plain):
    """Float arithmetic would lose the difference of one part in 2^60."""
    head = plain.HeadData([0.5, 0.25], [[1.0, 2.0**-30], [1.0, 0.0]], sink=None)
    cells = plain.CellRegime.fit(head, 1, resolution=2).cells
    wrong = plain.CellRegime(1, (plain.Cell(0, 1, 1.0, cells[0].dot), cells[1]))
    with pytest.raises(plain.AssumptionError, match="norm of cell"):
        wrong.check(head)


def test_scores_of_keys_that_cannot_be_selected_need_not_be_finite():
    head = gb.HeadData([0.5, 0.3, 0.2], [[1.0], [2.0], [3.0]])
    scores = [float("nan"), 1.0, 2.0]
    certificate = gb.certify(head, 1, ranking=scores, sink_policy="drop")
    assert gb.verify(certificate, head)


def test_a_cosine_bound_beyond_one_says_no_more_than_one():
    regime = gb.PairwiseRegime.fit(THREE, n=2)
    huge = dataclasses.replace(regime, cosine_across=Fraction(10) ** 400)
    true = gb.measure(THREE, 2).false_positives
    assert gb.pair_counts(huge, THREE, gb.rank(THREE).select(2)).fp_upper >= true
