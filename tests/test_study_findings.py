"""Findings: each is supported by data that show it and refused by the opposite."""

import math

import numpy as np
import pytest
import scan_children
from study_cases import made_up_pair
from tiny import save_text, save_tiny_model

from empirical.scan import ScanSpec
from empirical.study import StudyData, findings
from empirical.study.findings_bos import bos_findings
from empirical.study.findings_bounds import bound_findings, count_violations
from empirical.study.findings_causes import cause_findings, regime_findings
from empirical.study.findings_classes import class_findings
from empirical.study.findings_selection import (
    separability,
    sink_cost,
    sink_geometry,
)
from empirical.study.hypotheses import ABOVE_ZERO
from empirical.study.resample import interval

YES, NO = "supported", "not supported"
DOCUMENTS, SHAPE, N = 12, (3, 4), (1, 2, 8, 32, 64)
BOTH = "norms and cosines"


def pair(**options):
    """Scans of twelve documents with N up to 64."""
    return made_up_pair(windows=DOCUMENTS, shape=SHAPE, n=N, length=100, **options)


def by_id(study, partners=()):
    """The findings of a study."""
    found = findings(study, partners)
    assert len({x.id for x in found}) == len(found)
    return {x.id: x for x in found}


def separate(scan, kind, share, **at):
    """Make that share of entries separable (F = 1) and the rest have F = 0."""
    fp, fn = (scan[f"{kind}false_{x}"] for x in ("positives", "negatives"))
    n = scan["n"].broadcast_like(fp).transpose(*fp.dims).sel(at)
    wrong = np.random.default_rng(7).random(n.shape) >= share
    fp.loc[at] = wrong * 5
    fn.loc[at] = wrong * n.values


def both_ends(share):
    """A share and its opposite."""
    return {YES: share, NO: 1 - share}


def attention(distance, ranking):
    def change(main, bare, verdict):
        at = {"distance": distance, "ranking": ranking, "sink_policy": "keep"}
        separate(main, "", both_ends(0.9)[verdict], **at)
        separate(main, "random_", both_ends(0.1)[verdict], distance=distance)

    return change


def small(main, bare, verdict):
    at = {"distance": "euclidean", "ranking": "weight", "sink_policy": "keep"}
    separate(main, "random_", 0.1)
    separate(main, "", both_ends(0.9)[verdict], **at, n=[2, 8, 32])
    separate(main, "", both_ends(0.1)[verdict], **at, n=[64])
    separate(main, "", both_ends(0.1)[verdict], **at, n=[1])  # must not count


def between(name, yes, no):
    def change(main, bare, verdict):
        ends = yes if verdict == YES else no
        shape = main[name].shape
        main[name][:] = np.random.default_rng(5).uniform(*ends, shape)

    return change


def cost(main, bare, verdict):
    at = {"distance": "euclidean", "ranking": "weight"}
    separate(main, "", both_ends(0.2)[verdict], **at, sink_policy="keep")
    separate(main, "", both_ends(0.8)[verdict], **at, sink_policy="drop")


def half(main, bare, verdict):
    """Only where the sink is selected: elsewhere the opposite."""
    opposite = NO if verdict == YES else YES
    cost(main, bare, opposite)
    fp, fn = main["false_positives"], main["false_negatives"]
    other = main.copy(deep=True)
    cost(other, bare, verdict)
    place = main["sink_rank"].sel(ranking="weight", drop=True)
    selected = (place >= 0) & (place < main["n"])
    for name, array in (("false_positives", fp), ("false_negatives", fn)):
        main[name][:] = other[name].where(selected, array).transpose(*array.dims)


def name_heads(scan, names, prefix=None):
    """Give the heads these classes, by large counts."""
    at = {} if prefix is None else {"prefix": prefix}
    sources = {"Retriever": "current", "Mixer": "sink", "Reset": "other"}
    for name, source in sources.items():
        won = np.array([x == name for x in names]).reshape(SHAPE)
        counts = scan[f"class_{source}"]
        counts.loc[at] = 10 + 80 * np.broadcast_to(won, counts.sel(at).shape)


MIXED = ["Retriever", *["Mixer"] * 5, *["Reset"] * 6]
SHIFTED = [*["Mixer"] * 6, *["Reset"] * 3, *["Mixer"] * 2, "Retriever"]


def mixers(main, bare, verdict):
    name_heads(main, MIXED)
    at = {"distance": "euclidean", "ranking": "weight"}
    separate(main, "", 0.5, **at)
    high, low = (0.9, 0.1) if verdict == YES else (0.1, 0.9)
    for i, name in enumerate(MIXED):
        head = {"layer": i // 4, "head": i % 4}
        if name == "Mixer":
            separate(main, "", low, **at, **head, sink_policy="keep")
            separate(main, "", high, **at, **head, sink_policy="drop")


def retrievers(main, bare, verdict):
    name_heads(main, MIXED if verdict == YES else ["Retriever"] * 6 + MIXED[6:])


def lengths(main, bare, verdict):
    name_heads(main, MIXED)
    name_heads(main, MIXED if verdict == YES else SHIFTED, prefix=50)
    name_heads(main, SHIFTED if verdict == YES else MIXED, prefix=25)  # not asked


def without_bos(main, bare, verdict):
    name_heads(main, MIXED)
    name_heads(bare, MIXED if verdict == YES else SHIFTED)


def aligned(name, array):
    def change(main, bare, verdict):
        name_heads(main, MIXED)
        chosen = np.array([x == name for x in MIXED]).reshape(SHAPE)
        main[array][:] = main[array] * 0.1 + np.where(
            chosen == (verdict == YES), 0.5, 0
        )

    return change


def sound(main, bare, verdict):
    if verdict == NO:
        place = {"certified_policy": "drop", "resolution": 9, "layer": 1, "head": 2}
        place |= {"window": 4, "n": 8}
        measured = {"distance": "euclidean", "ranking": "weight", "sink_policy": "drop"}
        at = {
            k: v
            for k, v in place.items()
            if k not in ("certified_policy", "resolution")
        }
        bare["false_positives"].loc[{**measured, **at}] = 6
        bare["cell_false_positives"].loc[place] = 5


def certifies(kind, **at):
    def change(main, bare, verdict):
        where = {"sink_policy": "keep", "distance": "euclidean", "ranking": "weight"}
        separate(main, "", 1.0, **where)
        separate(main, kind, 0.95 if verdict == YES else 0.03, **at)

    return change


def removed(after, before):
    def change(main, bare, verdict):
        for (policy, removal), share in ((after, 0.9), (before, 0.1)):
            share = both_ends(share)[verdict]
            at = {"certified_policy": policy, "removal": removal}
            separate(main, "removed_", share, **at)

    return change


def all_removed(main, bare, verdict):
    at = {"certified_policy": "drop", "removal": f"{BOTH}, nonnegative"}
    separate(main, "removed_", 1.0, **at)
    if verdict == NO:
        place = {**at, "window": 3, "layer": 1, "head": 1, "n": 8}
        main["removed_false_positives"].loc[place] = 1
        main["removed_false_negatives"].loc[place] = 1


def predicted(main, bare, verdict):
    main["collapse"][:] = 0
    main["collapse"].loc[{"n": 64}] = 1  # elsewhere the opposite, which must not count
    measured = {"distance": "euclidean", "ranking": "weight", "sink_policy": "keep"}
    at = {"certified_policy": "keep", "removal": BOTH}
    for i in range(12):
        head = {"layer": i // 4, "head": i % 4}
        separate(main, "", i / 11, **measured, **head)
        same = i / 11 if verdict == YES else 1 - i / 11
        separate(main, "removed_", 1 - same, **at, **head)
        separate(main, "removed_", same, **at, **head, n=[64])


def norms(main, bare, verdict):
    main["norm_mean"][:] = 2.0
    between("norm_sd", (0.05, 0.15), (0.5, 1.5))(main, bare, verdict)


def collapses(main, bare, verdict):
    generator = np.random.default_rng(3)
    share = 0.97 if verdict == YES else 0.6
    holds = generator.random(main["collapse"].shape) < share
    main["collapse"][:] = np.where(main["collapse"] >= 0, holds, -1)
    main["collapse"].loc[{"n": 1}] = int(verdict == NO)  # must not count


def bos_cost(main, bare, verdict):
    at = {"distance": "euclidean", "ranking": "weight"}
    for scan, gain in ((main, verdict == YES), (bare, verdict == NO)):
        separate(scan, "", 0.3, **at, sink_policy="keep")
        separate(scan, "", 0.8 if gain else 0.3, **at, sink_policy="drop")


def found_first(which):
    def change(main, bare, verdict):
        scan = main if which == "with" else bare
        share = 0.97 if verdict == YES else 0.6
        elsewhere = np.random.default_rng(2).random(scan["found_sink"].shape) >= share
        scan["found_sink"][:] = elsewhere * 3

    return change


def texts(main, bare, verdict):
    name_heads(main, MIXED)


CASES = {
    **{
        f"F1-{distance}-{ranking}": attention(distance, ranking)
        for distance in ("euclidean", "cosine")
        for ranking in ("weight", "contribution")
    },
    "F1-small": small,
    "F2-norm": between("sink_norm_ratio", (3.5, 9), (0.5, 2.5)),
    "F2-cosine": between("sink_cosine", (-0.6, 0.1), (-0.1, 0.6)),
    "F2-cosine-share": between("sink_cosine", (-0.6, 0.1), (-0.1, 0.6)),
    "F3-sink": cost,
    "F3-half": half,
    "F3-class": mixers,
    "F4-retriever": retrievers,
    "F4-corpora": texts,
    "F4-length": lengths,
    "F4-alignment-Retriever": aligned("Retriever", "current_alignment"),
    "F4-alignment-Mixer": aligned("Mixer", "sink_alignment"),
    "F5-sound": sound,
    "F5-nine": certifies("cell_", certified_policy="keep", resolution=9),
    "F5-paper": certifies("pairwise_", certified_policy="keep", scope="all"),
    "F6-cosines": removed(("keep", "cosines"), ("keep", "none")),
    "F6-norms": removed(("keep", "norms"), ("keep", "none")),
    "F6-sink": removed(("drop", "none"), ("keep", "none")),
    "F6-negative": removed(("drop", f"{BOTH}, nonnegative"), ("drop", BOTH)),
    "F6-all": all_removed,
    "F6-T5": predicted,
    "F7-norm": norms,
    "F7-cosine": between("cosine_least", (-0.1, 0.9), (-0.9, 0.1)),
    "F7-collapse": collapses,
    "F8-bos": bos_cost,
    "F8-found-with": found_first("with"),
    "F8-found-without": found_first("without"),
    "F8-classes": without_bos,
}
EXACT = {"F5-sound", "F6-all"}
GROUPS = {  # F4 apart: it reads a second text
    "F1": separability,
    "F2": sink_geometry,
    "F3": sink_cost,
    "F5": bound_findings,
    "F6": cause_findings,
    "F7": regime_findings,
    "F8": bos_findings,
}


def partner(verdict=YES):
    """The same heads on another text, of the same or of other classes."""
    main, bare = pair(seed=3, corpus="others", corpus_sha256="cd" * 32)
    name_heads(main, MIXED if verdict == YES else SHIFTED)
    return StudyData(main, bare, "partner")


@pytest.mark.parametrize("verdict", [YES, NO])
@pytest.mark.parametrize("name", CASES)
def test_data_decide(name, verdict):
    """Data made to show a hypothesis support it; data made against it do not."""
    main, bare = pair()
    CASES[name](main, bare, verdict)
    study = StudyData(main, bare, "made up")
    found = (
        class_findings(study, [partner(verdict)] if name == "F4-corpora" else [])
        if name.startswith("F4")
        else GROUPS[name[:2]](study)
    )
    (finding,) = (x for x in found if x.id == name)
    assert finding.verdict == verdict, finding
    assert finding.estimate.low <= finding.estimate.value <= finding.estimate.high


@pytest.fixture(scope="module")
def plain():
    """Findings of a made-up study that was not changed."""
    return by_id(StudyData(*pair(), "made up"), [partner()])


def test_every_finding_is_put_to_the_test(plain):
    """No hypothesis without its two cases; every figure and text is there."""
    assert set(plain) == set(CASES)
    for finding in plain.values():
        assert finding.title
        assert finding.figure
        assert finding.hypothesis.endswith(".")
        assert finding.measure.endswith(")")  # its unit


def test_random_numbers_do_not_support_a_difference(plain):
    """Made-up counts have no effect; at most one of so many is a false alarm."""
    differences = [x for x in plain.values() if x.range == ABOVE_ZERO]
    assert len(differences) == 14
    assert sum(x.verdict != "undecided" for x in differences) <= 2


def test_few_documents_leave_everything_sampled_undecided():
    """Only what is counted in the entries themselves has a verdict."""
    main, bare = made_up_pair(windows=7, shape=SHAPE)
    cost(main, bare, YES)
    found = by_id(StudyData(main, bare, "few"))
    for name, finding in found.items():
        if name in EXACT:
            assert finding.verdict in (YES, NO)
        else:
            assert finding.verdict == "undecided"
            assert "Only 7 documents" in finding.note
    assert found["F3-sink"].estimate.low > 0


def test_few_documents_of_the_other_text_leave_it_undecided():
    """The smaller number decides."""
    main, bare = pair()
    name_heads(main, MIXED)
    other = made_up_pair(
        windows=5, shape=SHAPE, n=N, length=100, corpus="few", corpus_sha256="cd" * 32
    )
    name_heads(other[0], MIXED)
    found = by_id(StudyData(main, bare, "x"), [StudyData(*other, "few")])
    assert found["F4-corpora"].estimate.low == 1
    assert found["F4-corpora"].verdict == "undecided"
    assert "Only 5 documents" in found["F4-corpora"].note
    assert found["F4-length"].verdict != "undecided"


def test_blocks_of_one_text_are_named():
    """Windows of one document are no sample of documents."""
    scans = pair(documents=[f"book.txt @{99 * i}" for i in range(DOCUMENTS)])
    for name, finding in by_id(StudyData(*scans, "blocks")).items():
        assert ("blocks of one text" in finding.note) == (name not in EXACT)


def test_one_class_leaves_kappa_undefined():
    """All heads of one class agree, and that says nothing."""
    main, bare = pair()
    for scan in (main, bare):
        name_heads(scan, ["Reset"] * 12)
    found = by_id(StudyData(main, bare, "one class"))
    for name in ("F4-length", "F8-classes"):
        assert math.isnan(found[name].estimate.value)
        assert found[name].verdict == "undecided"
        assert "Kappa is undefined" in found[name].note
    for name in ("F3-class", "F4-alignment-Mixer", "F4-alignment-Retriever"):
        assert math.isnan(found[name].estimate.value)
        assert found[name].verdict == "undecided"


def test_what_a_scan_lacks_is_undecided():
    """No nine cells, no N = 8, no second text, no BOS: said, not guessed."""
    main, bare = made_up_pair(windows=9, n=(2, 4), resolutions=(3, 5))
    main.attrs["bos"] = "none: neither the tokenizer nor the model names one"
    found = by_id(StudyData(main, bare, "little"))
    for name, words in {
        "F5-nine": "no such bound",
        "F5-paper": "no such bound",
        "F4-corpora": "No second text",
        "F8-bos": "names no BOS",
        "F8-found-with": "names no BOS",
        "F8-classes": "names no BOS",
    }.items():
        assert found[name].verdict == "undecided"
        assert math.isnan(found[name].estimate.value)
        assert words in found[name].note
    assert not math.isnan(found["F8-found-without"].estimate.value)
    assert found["F1-small"].verdict == "undecided"  # no N of 64 and more


def test_several_texts_have_a_finding_each():
    """Named by the text."""
    study = StudyData(*pair(), "x")
    partners = [
        StudyData(*pair(seed=s, corpus=name, corpus_sha256=sha * 32), name)
        for s, name, sha in ((4, "one", "aa"), (5, "two", "bb"))
    ]
    found = by_id(study, partners)
    assert {x for x in found if "corpora" in x} == {"F4-corpora-one", "F4-corpora-two"}


# One line a finding: how it follows from the data, in plain loops.
def plain_mean_gain(study, a, b, ns):
    """Mean over N of the mean over entries of a difference in F."""
    means = []
    for k, n in enumerate(study.n):
        if n in ns:
            gaps = [
                x - y
                for x, y in zip(a[:, :, k].ravel(), b[:, :, k].ravel(), strict=True)
                if not (math.isnan(x) or math.isnan(y))
            ]
            means.append(sum(gaps) / len(gaps))
    return sum(means) / len(means)


def test_values_follow_from_the_data_in_plain_loops():
    """Point values of findings that are no column of a table."""
    main, bare = pair(seed=9)
    study = StudyData(main, bare, "x")
    found = by_id(study)
    f, ns = study.f, (2, 8, 32, 64)
    random, nearby = (
        np.mean(
            [
                study.by_head(study.values["f_random"].sel(distance=d, repeat=r))
                for r in range(3)
            ],
            axis=0,
        )
        for d in ("cosine", "euclidean")
    )
    expected = {
        "F1-cosine-contribution": plain_mean_gain(
            study, f("keep", "contribution", "cosine"), random, ns
        ),
        "F3-sink": plain_mean_gain(study, f("drop"), f("keep"), ns),
        "F1-small": plain_mean_gain(study, f("keep"), nearby, (2, 8, 32))
        - plain_mean_gain(study, f("keep"), nearby, (64,)),
        "F8-bos": plain_mean_gain(
            study,
            f("drop") - f("keep"),
            f("drop", bare=True) - f("keep", bare=True),
            ns,
        ),
        "F2-norm": float(np.median(np.median(main["sink_norm_ratio"], axis=0))),
        "F2-cosine": float(main["sink_cosine"].mean()),
        "F2-cosine-share": float((main["sink_cosine"].mean("window") < 0).mean()),
        "F7-norm": float(
            np.median((main["norm_sd"] / main["norm_mean"]).mean("window"))
        ),
        "F7-cosine": float((main["cosine_least"] > 0).mean()),
        "F8-found-without": float((bare["found_sink"] == 0).mean()),
    }
    kept, dropped, holds = [], [], []
    for k, n in enumerate(study.n):
        if n < 2:
            continue
        place = study.by_head(main["sink_rank"].sel(ranking="weight"))
        chosen = (place >= 0) & (place < n) & ~np.isnan(f("keep")[:, :, k])
        kept += f("keep")[:, :, k][chosen].tolist()
        dropped += f("drop")[:, :, k][chosen].tolist()
        collapse = study.by_head(main["collapse"])[:, :, k]
        holds += collapse[collapse >= 0].tolist()
    expected["F3-half"] = sum(kept) / sum(dropped)
    expected["F7-collapse"] = sum(holds) / len(holds)
    for name, value in expected.items():
        estimate = found[name].estimate
        assert estimate.value == pytest.approx(value, rel=1e-12, abs=1e-14), name
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.low < estimate.high or value == 1


def test_a_finding_reads_its_interval_off_the_replicates():
    """The interval of F2-cosine, through the weights by hand."""
    study = StudyData(*pair(seed=9), "x")
    by_document = study.main["sink_cosine"].mean(["layer", "head"]).values
    statistic = study.weights @ by_document / DOCUMENTS
    estimate = by_id(study)["F2-cosine"].estimate
    expected = interval(statistic, DOCUMENTS)
    assert estimate.low == pytest.approx(expected.low, rel=1e-12)
    assert estimate.high == pytest.approx(expected.high, rel=1e-12)


def test_same_scans_give_the_same_findings(plain):
    """Seeded by the scan."""
    again = by_id(StudyData(*pair(), "again"), [partner()])
    for name, finding in plain.items():
        assert repr(again[name]) == repr(finding)


# Array, where in it, the measured (FP, FN, inversions), and a bound one too good.
VIOLATIONS = [
    ("pairwise_false_positives", {"scope": "roles"}, (6, 2, 7), 5),
    ("pairwise_false_negatives", {"scope": "all"}, (6, 2, 7), 1),
    ("cell_false_negatives", {"resolution": 3}, (6, 2, 7), 1),
    ("inversions", {}, (6, 1, 6), 5),  # too few for P
    ("inversions", {}, (1, 6, 6), 5),  # too few for R
    ("inversions", {}, (2, 2, 3), 2),  # enough for P and for R, not for F (T2b)
]


@pytest.mark.parametrize(("name", "at", "counts", "bound"), VIOLATIONS)
@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_every_kind_of_bound_is_held_to_the_counts(name, at, counts, bound, policy):
    """One entry too good among all is found, under both policies."""
    main, _ = pair()
    entry = {"window": 5, "layer": 2, "head": 1, "n": 8}
    measured = {"distance": "euclidean", "ranking": "weight", "sink_policy": policy}
    fp, fn, inversions = counts
    main["false_positives"].loc[{**entry, **measured}] = fp
    main["false_negatives"].loc[{**entry, **measured}] = fn
    main["inversions"].loc[{**entry, **measured}] = inversions
    for kind in ("pairwise", "cell"):
        main[f"{kind}_false_positives"].loc[{**entry, "certified_policy": policy}] = fp
        main[f"{kind}_false_negatives"].loc[{**entry, "certified_policy": policy}] = fn
    assert count_violations(main)[0] == 0
    where = measured if name == "inversions" else {"certified_policy": policy}
    main[name].loc[{**entry, **where, **at}] = bound
    wrong, compared = count_violations(main)
    assert wrong == 1
    # 12 documents, 12 heads, 5 N but for one entry; per policy 3 scopes, 3 cells, T2.
    assert compared == (12 * 12 * 5 - 1) * 2 * (3 + 3 + 1)


def test_missing_entries_are_not_compared():
    """-1 on either side is no claim."""
    main, _ = pair()
    for name in ("cell_false_positives", "cell_false_negatives"):
        main[name].loc[{"window": 1}] = -1
    main["inversions"].loc[{"window": 2}] = -1
    assert count_violations(main)[0] == 0


def test_a_scan_of_a_real_model_passes_through(tmp_path):
    """Bounds hold, T3's limit is reached, and every number is in its range."""
    model = str(save_tiny_model(tmp_path / "model"))
    text = str(save_text(tmp_path / "text.txt", words=60))
    grid = {"n_grid": (1, 2, 4, 8), "random_rankings": 2}
    main = ScanSpec(windows=2, length=24, resolutions=(3, 9), **grid)
    bare = ScanSpec(windows=2, length=23, resolutions=(9,), bos="none", **grid)
    scans = [
        scan_children.run(model, text, tmp_path / f"{name}.zarr", spec)
        for name, spec in (("main", main), ("bare", bare))
    ]
    found = by_id(StudyData(*scans, "tiny"))
    assert found["F5-sound"].verdict == YES
    assert found["F6-all"].verdict == YES
    assert found["F3-half"].estimate.value > 0
    assert -1 <= found["F2-cosine"].estimate.value <= 1
    assert 0 < found["F5-nine"].estimate.value <= 1
    for name in ("F4-retriever", "F7-cosine", "F8-found-with", "F8-found-without"):
        assert 0 <= found[name].estimate.value <= 1
    assert "blocks of one text" in found["F3-sink"].note
