"""certify and Certificate: claims, files, refusals."""

import copy
import json
from fractions import Fraction
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from cases import draw_heads
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, build, choices, signed_permutations

import geobounds as gb
from geobounds import certificate as module
from geobounds.separability import f_score

REGIMES = ("cells", "inversions")

HEAD = gb.HeadData(
    [0.25, 0.25, 0.125, 0.125, 0.125, 0.125],
    [[1.0, 0.0], [2.0, 1.0], [-8.0, 4.0], [1.0, 1.0], [0.0, 0.0], [1.0, -2.0]],
    meta={"model": "hand-made", "layer": 3},
)


def claims_of(certificate):
    """Return what is claimed, without the head's digest and the regimes."""
    return [
        (c.n, c.false_positives, c.false_negatives, c.f_score, c.measured, c.verdict)
        for c in certificate.values()
    ]


# Examples


def test_a_certificate_is_a_mapping_from_n_to_claims():
    certificate = gb.certify(HEAD, [3, 1])

    assert list(certificate) == [3, 1]
    assert len(certificate) == 2
    assert certificate[1].n == 1
    assert 2 not in certificate
    assert repr(certificate) == "Certificate(n=[3, 1], query_position=5)"


@pytest.mark.parametrize(
    ("count", "grid"), [(3, [2]), (4, [2]), (5, [2, 4]), (8, [2, 4]), (9, [2, 4, 8])]
)
def test_the_default_is_the_powers_of_two_below_the_candidates(count, grid):
    head = gb.HeadData([0.125] * count, np.ones((count, 1)), sink=None)

    assert list(gb.certify(head)) == grid


def test_a_claim_holds_bounds_measurement_and_verdict():
    claim = gb.certify(HEAD, 2, regime="inversions")[2]
    m = gb.measure(HEAD, 2)

    assert (claim.n, claim.n_unselected, claim.selected) == (2, 4, (0, 1))
    assert claim.measured == m.f_score.lower
    assert claim.regime == gb.InversionRegime(2, m.inversions)
    assert claim.boundary_tie is False


@pytest.mark.parametrize(
    ("values", "verdict", "f", "measured", "tightness"),
    [
        ([1.0, 2.0, -1.0, -3.0], "separable", 1, 1, 1),
        ([1.0, 1.0, 1.0, 1.0], "vacuous", 0, 0, None),
    ],
)
def test_the_verdict_is_the_word_for_the_bound(values, verdict, f, measured, tightness):
    head = gb.HeadData([0.25] * 4, np.array(values)[:, None], sink=None)
    claim = gb.certify(head, 2)[2]

    assert (claim.verdict, claim.f_score, claim.measured) == (verdict, f, measured)
    assert claim.tightness == tightness


def test_a_bound_between_zero_and_one_is_bounded():
    """y = -2, -1, -5: FP = FN = 1, so F = 4/7, and two cells certify just that."""
    head = gb.HeadData([0.5, 0.25, 0.125], [[-4.0], [-4.0], [-40.0]], sink=None)
    claim = gb.certify(head, 2, regime="inversions")[2]

    assert (claim.verdict, claim.f_score) == ("bounded", Fraction(4, 7))
    assert (claim.precision, claim.recall) == (Fraction(2, 3), Fraction(1, 2))
    assert (claim.false_positives, claim.false_negatives) == (1, 1)
    assert claim.tightness == 1


def test_the_table_shows_every_claim_and_rounds_bounds_down():
    """P = 2/3 is printed as 0.6666."""
    head = gb.HeadData([0.5, 0.25, 0.125], [[-4.0], [-4.0], [-40.0]], sink=None)
    lines = str(gb.certify(head, 2)).splitlines()

    assert lines[0] == "query 2, 3 candidates, ranking weight, sink keep"
    assert " ".join(lines[1].split()) == "N P >= R >= F >= F F>=/F verdict"
    assert " ".join(lines[2].split()) == "2 0.6666 0.5000 0.5714 0.5714 1.000 bounded"


def test_the_table_flags_a_boundary_tie_and_an_undefined_share():
    head = gb.HeadData([0.25] * 3, [[1.0]] * 3, sink=None)
    last = str(gb.certify(head, 2)).splitlines()[-1]

    assert last.endswith("-  vacuous (boundary tie)")


def test_a_certificate_records_head_definitions_and_origin():
    certificate = gb.certify(HEAD, 1, sink_policy="compete")

    assert certificate.head == {
        "sha256": HEAD.digest(),
        "query_position": 5,
        "n_key": 6,
        "n_candidates": 6,
        "d_head": 2,
        "mass": "1",
    }
    assert certificate.definitions == {
        "distance": "euclidean",
        "ranking": "weight",
        "sink_policy": "compete",
        "sink": 0,
        "ties": "smaller index first",
        "comparison": "ties count against separability",
    }
    assert certificate.provenance == {"model": "hand-made", "layer": 3}
    assert certificate.versions["numpy"] == np.__version__
    assert set(certificate.versions) == {"python", "numpy", "geobounds"}


def test_the_mass_is_the_exact_sum_of_visible_weights():
    head = gb.HeadData(np.float32([0.1, 0.2]), [[1.0], [2.0]])
    mass = sum(Fraction(float(x)) for x in np.float32([0.1, 0.2]))

    assert gb.certify(head, 1).head["mass"] == str(mass)


def test_scores_of_ones_own_are_recorded_exactly_and_hidden_keys_left_out():
    head = gb.HeadData(
        [0.5, 0.0, 0.25, 0.25], np.ones((4, 1)), visible=[True, False, True, True]
    )
    certificate = gb.certify(head, 1, ranking=np.float32([0.5, np.nan, 3, -0.1]))
    expected = ["1/2", None, "3", str(Fraction(float(np.float32(-0.1))))]

    assert certificate.definitions["ranking"] == "scores"
    assert certificate.definitions["scores"] == expected
    assert certificate[1].selected == (2,)


def test_a_package_that_is_not_installed_is_recorded_as_such(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)

    assert gb.certify(HEAD, 1).versions["geobounds"] == "not installed"


def test_one_query_of_several_is_certified():
    head = gb.HeadData(
        [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]],
        [[1.0], [2.0], [3.0]],
        visible="causal",
    )
    certificate = gb.certify(head, 1, query=0)

    assert certificate.head["query_position"] == 1
    assert certificate.head["n_candidates"] == 2
    assert gb.verify(certificate, head)
    assert gb.verify(certificate, head[0])


def test_more_cells_certify_more_of_a_head():
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.full(24, 0.3)).astype(np.float32)
    head = gb.HeadData(weights, rng.normal(0.5, 1, (24, 3)).astype(np.float32))
    bounds = [gb.certify(head, 8, resolution=k)[8].f_score for k in (3, 5, 9, 24)]

    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] == gb.measure(head, 8).f_score.lower


# Properties


@given(choices(), st.sampled_from(REGIMES))
def test_a_claim_never_exceeds_the_truth(choice, regime):
    """The main promise. Fails for any unsound count, in either regime."""
    truth = choice.truth()
    certificate = gb.certify(
        build(choice.case), choice.n, regime=regime, resolution=4, **choice.options
    )
    claim = certificate[choice.n]

    assert claim.selected == truth.selected
    assert claim.n_unselected == len(truth.unselected)
    assert claim.boundary_tie == truth.boundary_tie
    assert claim.precision <= truth.precision
    assert claim.recall <= truth.recall
    assert claim.f_score <= truth.f_score == claim.measured
    assert claim.false_positives >= truth.false_positives
    assert claim.false_negatives >= truth.false_negatives


@given(choices(rankings=("weight", "contribution", "scores")), st.sampled_from(REGIMES))
def test_every_certificate_is_verified_and_survives_a_file(
    tmp_path_factory, choice, regime
):
    """Every regime, ranking and policy; fails if maker and checker disagree."""
    head = build(choice.case)
    options = dict(choice.options)
    options["ranking"] = {
        "scores": gb.random_scores(head.n_key, 5).astype(np.int64)
    }.get(choice.ranking, choice.ranking)
    certificate = gb.certify(head, choice.n, regime=regime, resolution=4, **options)
    path = tmp_path_factory.mktemp("certificate") / "c.json"
    certificate.save(str(path))
    loaded = gb.Certificate.load(path)

    assert gb.verify(certificate, head).reasons == ()
    assert gb.verify(certificate, head)
    assert gb.verify(path, head)
    assert loaded.claims == certificate.claims
    assert loaded.to_dict() == certificate.to_dict()
    assert str(loaded) == str(certificate)


def test_certificates_are_verified_on_every_shape_of_head():
    """Near-ties, overflow and underflow included; all N at once."""
    made = 0
    for case in draw_heads(seed=11, count=84):
        head = build(case)
        grid = range(1, int(case.visible.sum()))
        for regime in REGIMES:
            certificate = gb.certify(head, grid, regime=regime)
            assert gb.verify(certificate, head).reasons == ()
            made += len(certificate)
    assert made > 500


@given(choices(), st.data())
def test_a_regime_fitted_elsewhere_gives_the_same_claim(choice, data):
    """Passing a fitted regime is the same as having it fitted."""
    head = build(choice.case)
    k = data.draw(st.integers(3, 6))
    regime = gb.CellRegime.fit(head, choice.n, resolution=k, **choice.options)
    given_ = gb.certify(head, regime=regime, **choice.options)
    fitted = gb.certify(head, choice.n, resolution=k, **choice.options)

    assert given_.claims == fitted.claims
    assert list(given_) == [choice.n]


@given(choices(), st.data())
def test_claims_do_not_depend_on_the_basis_of_the_values(choice, data):
    """Invariance under signed permutations of the coordinates."""
    case = choice.case
    rotation = data.draw(signed_permutations(case.values.shape[1]))
    other = gb.HeadData(
        case.weights, case.values @ rotation, visible=case.visible, sink=case.sink
    )
    first = gb.certify(build(case), choice.n, **choice.options)
    second = gb.certify(other, choice.n, **choice.options)

    assert first.claims == second.claims


@given(choices(), st.sampled_from(REGIMES), st.integers(-30, 30), st.integers(-30, 30))
def test_claims_do_not_depend_on_the_scale(choice, regime, a, b):
    """Invariance under powers of two, which are exact."""
    case = choice.case
    other = gb.HeadData(
        case.weights * 2.0**a,
        case.values * 2.0**b,
        visible=case.visible,
        sink=case.sink,
    )
    options = {"regime": regime, **choice.options}
    first = gb.certify(build(case), choice.n, **options)
    second = gb.certify(other, choice.n, **options)

    assert claims_of(first) == claims_of(second)


@given(choices(), st.data())
def test_claims_move_with_the_keys(choice, data):
    """Permuting keys with their distinct scores permutes only the selected."""
    case, n_key = choice.case, len(choice.case.weights)
    scores = np.array(data.draw(st.permutations(range(n_key))))
    moved = np.array(data.draw(st.permutations(range(n_key))))
    other = gb.HeadData(
        case.weights[moved],
        case.values[moved],
        visible=case.visible[moved],
        sink=None if case.sink is None else int(np.argmax(moved == case.sink)),
    )
    options = {"sink_policy": choice.sink_policy}
    first = gb.certify(build(case), choice.n, ranking=scores, **options)
    second = gb.certify(other, choice.n, ranking=scores[moved], **options)

    assert claims_of(first) == claims_of(second)
    assert moved[list(second[choice.n].selected)].tolist() == list(
        first[choice.n].selected
    )


# Tightness


@given(choices())
def test_enough_cells_certify_all_that_is_measured(choice):
    claim = gb.certify(build(choice.case), choice.n, resolution=99, **choice.options)[
        choice.n
    ]

    assert claim.f_score == claim.measured
    assert claim.tightness == (1 if claim.measured else None)
    assert claim.f_score == f_score(
        choice.n, claim.false_positives, claim.false_negatives
    )


# Refutations


def test_a_regime_of_another_head_claims_nothing():
    other = gb.HeadData(HEAD.weights[0], HEAD.values * 2)
    regime = gb.CellRegime.fit(HEAD, 2)

    with pytest.raises(gb.AssumptionError, match="must be at least") as caught:
        gb.certify(other, regime=regime)
    assert caught.value.statement == "T6"


def test_a_regime_of_another_policy_claims_nothing():
    """Under drop there is one candidate fewer."""
    regime = gb.CellRegime.fit(HEAD, 2, sink_policy="drop")

    with pytest.raises(gb.AssumptionError, match="cells must cover the 6 candidates"):
        gb.certify(HEAD, regime=regime)


def test_a_file_changed_after_signing_does_not_load(tmp_path):
    path = tmp_path / "c.json"
    gb.certify(HEAD, 2).save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("hand-made", "hand-mode"), encoding="utf-8")

    with pytest.raises(gb.CertificateFormatError, match="sha256 must fit the content"):
        gb.Certificate.load(path)


def test_an_unknown_field_does_not_load():
    data = gb.certify(HEAD, 2).to_dict()
    data["note"] = "trust me"

    with pytest.raises(gb.CertificateFormatError, match="unknown fields"):
        gb.Certificate.from_dict(data)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": []}, r"n must hold different numbers, at least one, got n=\[\]"),
        ({"n": [2, 2]}, r"n must hold different numbers, .* got n=\[2, 2\]"),
        ({"n": 6}, r"n must lie between 1 and 5 \(6 candidates\), got n=6"),
        ({"n": [1, 0]}, r"n must lie between 1 and 5 .* got n=0\. Select"),
        ({"regime": "best"}, r"regime must be one of cells, pairwise, .* or a fitted"),
        ({"query": 1}, "query must lie between"),
        ({"ranking": "best"}, "ranking must be"),
        ({"sink_policy": "best"}, "sink_policy must be"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(gb.ArgumentError, match=r"^certify: " + message):
        gb.certify(HEAD, **options)


def test_too_few_cells_are_refused():
    with pytest.raises(gb.ArgumentError, match="resolution must be at least 3"):
        gb.certify(HEAD, 2, resolution=2)


@pytest.mark.parametrize("n", [1, [2, 3], [3]])
def test_an_n_that_is_not_the_regimes_own_is_refused(n):
    message = "n must be the regime's own n=2, got n="

    with pytest.raises(gb.ArgumentError, match=r"^certify: " + message):
        gb.certify(HEAD, n, regime=gb.CellRegime.fit(HEAD, 2))


def test_the_regimes_own_n_may_be_given():
    assert list(gb.certify(HEAD, 2, regime=gb.CellRegime.fit(HEAD, 2))) == [2]


@pytest.mark.parametrize(("count", "policy"), [(2, "keep"), (3, "drop"), (1, "keep")])
def test_too_few_candidates_for_the_default_n_are_refused(count, policy):
    head = gb.HeadData([0.25] * count, np.ones((count, 1)))
    message = r"at least 3 candidates are needed for the default n, got \d\. Pass n=1"

    with pytest.raises(gb.ArgumentError, match=r"^certify: " + message):
        gb.certify(head, sink_policy=policy)


@pytest.mark.parametrize("n", [True, 2.0, "2", [2.0]])
def test_an_n_that_is_no_int_is_refused(plain, n):
    head = plain.HeadData(HEAD.weights[0], HEAD.values)

    with pytest.raises(TypeError, match=r"^certify: n must be an int, got n="):
        plain.certify(head, n)


def test_a_head_without_values_cannot_be_certified():
    with pytest.raises(gb.HeadDataError, match=r"^certify: values must be given"):
        gb.certify(gb.HeadData([0.5, 0.25, 0.25]))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"PK\x03\x04"],
)
def test_a_file_that_is_no_json_is_refused(tmp_path, content):
    path = tmp_path / "c.json"
    path.write_bytes(content)

    with pytest.raises(gb.CertificateFormatError, match="must be a JSON file"):
        gb.Certificate.load(path)


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(
        gb.CertificateFormatError, match=r"must be a JSON file .*No such"
    ):
        gb.Certificate.load(tmp_path / "c.json")


@pytest.mark.parametrize("data", [None, 1, "text", [], {}, {"format": "x"}])
def test_json_that_is_no_certificate_is_refused(data):
    with pytest.raises(gb.CertificateFormatError, match="a field is missing or malfor"):
        gb.Certificate.from_dict(data)


@pytest.mark.parametrize(
    ("field", "value"), [("format", "other"), ("version", 2), ("version", "1")]
)
def test_another_format_or_version_is_refused(field, value):
    data = gb.certify(HEAD, 2).to_dict() | {field: value}
    message = "format must be geobounds-certificate version 1, got"

    with pytest.raises(gb.CertificateFormatError, match=message + f".*{value!r}"):
        gb.Certificate.from_dict(data)


def edited(path, value):
    """Return a certificate's data with one field set, or removed for None."""
    data = copy.deepcopy(gb.certify(HEAD, 2).to_dict())
    place = data
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("claims",), None),
        (("claims",), 5),
        (("claims",), "none"),
        (("definitions",), [1]),
        (("provenance",), "x"),
        (("claims", 0, "n"), None),
        (("claims", 0, "precision"), "one"),
        (("claims", 0, "precision"), "1/0"),
        (("claims", 0, "precision"), []),
        (("claims", 0, "selected"), 3),
        (("claims", 0, "regime"), {}),
        (("claims", 0, "regime", "cells"), 3),
        (("claims", 0, "regime", "cells", 0, "norm"), None),
    ],
)
def test_a_field_missing_or_malformed_is_refused(path, value):
    with pytest.raises(gb.CertificateFormatError, match="a field is missing or malfor"):
        gb.Certificate.from_dict(edited(path, value))


def test_an_unknown_regime_is_refused():
    data = edited(("claims", 0, "regime", "name"), "luck")

    with pytest.raises(
        gb.CertificateFormatError, match=r"regime must be one of .*'luck"
    ):
        gb.Certificate.from_dict(data)


def test_a_certificate_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "c.json"
    path.mkdir()

    with pytest.raises(OSError, match="directory"):
        gb.certify(HEAD, 2).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]


def test_the_file_is_plain_json_with_fractions_as_text(tmp_path):
    path = tmp_path / "c.json"
    gb.certify(HEAD, 2).save(path)
    data = json.loads(path.read_text(encoding="ascii"))

    assert data["format"] == "geobounds-certificate"
    assert all(
        isinstance(data["claims"][0][name], str)
        for name in ("precision", "recall", "f_score", "measured")
    )
    assert len(data["sha256"]) == 64


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_named_in_the_table(policy):
    assert f"sink {policy}" in str(gb.certify(HEAD, 1, sink_policy=policy))
