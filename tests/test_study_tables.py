"""Tables of a study, against loops over entries and against resampled documents."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from study_cases import made_up_pair

import geobounds as gb
from empirical import ScanError
from empirical.metrics import classes as metrics_classes
from empirical.metrics import enclosures, metrics
from empirical.store import Store
from empirical.study import TABLES, StudyData, load_study, tables
from empirical.study.resample import Estimate, interval
from geobounds.separability import f_score, precision, recall

COLUMNS = {
    "separability": "distance ranking n value low high least greatest",
    "policies": "head_class sink_policy metric n value low high",
    "sink_selected": "n selected_share f_keep f_drop ratio low high",
    "sink_geometry": "layer head norm_ratio cosine head_class",
    "classes": "layer head head_class current_share sink_share other_share",
    "class_shares": "layer head_class share low high",
    "agreement": "comparison kappa low high heads",
    "alignment": "head_class toward value low high",
    "tightness": "enclosure label numbers sink_policy group which n value low high",
    "numbers_needed": "sink_policy n numbers share",
    "removals": "sink_policy removal n value low high",
    "causes": "cause n gain low high",
    "collapse": "layer head n predicted measured condition",
    "regime": "quantity layer q10 median q90",
    "bos": "bos policy n value low high",
    "found_sink": "bos position_0_share layer",
}
# Sums of at most some hundreds of numbers below 1, in another order.
CLOSE = {"rel": 1e-12, "abs": 1e-13, "nan_ok": True}


@pytest.fixture(scope="module")
def study():
    """A made-up study with missing entries and a head without class."""
    main, bare = made_up_pair(seed=1)
    for scan in (main, bare):
        for name in ("current", "sink", "other"):
            scan[f"class_{name}"].loc[{"layer": 2, "head": 3}] = 0
    main["sink_cosine"].loc[{"window": 3, "layer": 1, "head": 1}] = np.nan
    return StudyData(main, bare, "made up")


@pytest.fixture(scope="module")
def partner():
    """The same model on another text, fewer documents."""
    scans = made_up_pair(seed=2, windows=9, corpus="others", corpus_sha256="cd" * 32)
    return StudyData(*scans, "other")


@pytest.fixture(scope="module")
def found(study, partner):
    """All tables."""
    return tables(study, partner)


def entries(array):
    """The numbers of every (document, layer, head), in that order."""
    return array.transpose("window", "layer", "head").values.ravel().tolist()


def fractions(scan, kind, n, **at):
    """Exact F of every entry from its counts; None where missing."""
    fp, fn = (
        entries(scan[f"{kind}false_{x}"].sel({**at, "n": n}))
        for x in ("positives", "negatives")
    )
    return [None if p < 0 else f_score(n, p, q) for p, q in zip(fp, fn, strict=True)]


def names_of(scan):
    """The class of every entry's head, over all documents."""
    heads = [class_of(scan, layer, head) for layer, head in np.ndindex(3, 4)]
    return heads * scan.sizes["window"]


def mean(xs):
    """The mean of what is there."""
    xs = [x for x in xs if x is not None and not (isinstance(x, float) and x != x)]
    return float(sum(xs) / len(xs)) if xs else math.nan


def class_of(scan, layer, head, windows=None, prefix=None):
    """D10 by the library, counts added over windows."""
    at = scan.sel(layer=layer, head=head, prefix=prefix or int(scan["prefix"].max()))
    at = at.isel(
        window=list(range(scan.sizes["window"]) if windows is None else windows)
    )
    counts = [int(at[f"class_{x}"].sum()) for x in ("current", "sink", "other")]
    return gb.HeadClass(*counts).name


def row(table, **where):
    """The only row with these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_every_table_has_its_columns(found):
    """Names and order are what figures and files rely on."""
    assert {k: " ".join(v.columns) for k, v in found.items()} == COLUMNS
    assert list(found) == list(TABLES)
    assert all(len(table) for table in found.values())


def test_intervals_hold_their_values_and_have_a_width(found):
    """Where there is a value there is an interval around it, or nearly so."""
    for name, table in found.items():
        if "low" not in table:
            continue
        value = {"sink_selected": "ratio", "class_shares": "share"}.get(name, "value")
        value = {"agreement": "kappa", "causes": "gain"}.get(name, value)
        known = table.dropna(subset=[value, "low", "high"])
        assert len(known) > len(table) / 2
        assert (known["low"] <= known["high"]).all()
        assert (known["low"] < known["high"]).mean() > 0.5
        if name != "agreement":  # naming classes anew moves kappa
            assert (known["low"] <= known[value] + 1e-12).mean() > 0.95


def test_separability_is_the_mean_over_entries(study, found):
    """Of exact F, one by one; random rankings pooled and each apart."""
    for n in (1, 8, 32):
        for distance in ("euclidean", "cosine"):
            for ranking in ("weight", "contribution"):
                at = {"distance": distance, "ranking": ranking, "sink_policy": "keep"}
                expected = mean(fractions(study.main, "", n, **at))
                line = row(
                    found["separability"], distance=distance, ranking=ranking, n=n
                )
                assert line["value"] == pytest.approx(expected, **CLOSE)
                assert math.isnan(line["least"])
            single = [
                mean(fractions(study.main, "random_", n, distance=distance, repeat=r))
                for r in range(3)
            ]
            line = row(found["separability"], distance=distance, ranking="random", n=n)
            assert line["value"] == pytest.approx(mean(single), **CLOSE)
            assert line["least"] == pytest.approx(min(single), **CLOSE)
            assert line["greatest"] == pytest.approx(max(single), **CLOSE)


def test_policies_are_the_means_by_class(study, found):
    """P, R and F (D7) of the entries of each class."""
    names = names_of(study.main)
    for policy in ("keep", "drop", "compete"):
        at = {"distance": "euclidean", "ranking": "weight", "sink_policy": policy}
        for n in (2, 32):
            counts = [
                entries(study.main[f"false_{x}"].sel({**at, "n": n}))
                for x in ("positives", "negatives")
            ]
            for name in ("all", "Retriever", "Mixer", "Reset"):
                chosen = [
                    (fp, fn)
                    for fp, fn, own in zip(*counts, names, strict=True)
                    if fp >= 0 and name in ("all", own)
                ]
                expected = {
                    "precision": mean(precision(n, fp) for fp, _ in chosen),
                    "recall": mean(recall(n, fn) for _, fn in chosen),
                    "f": mean(f_score(n, *c) for c in chosen),
                }
                for metric, value in expected.items():
                    line = row(
                        found["policies"],
                        head_class=name,
                        sink_policy=policy,
                        metric=metric,
                        n=n,
                    )
                    assert line["value"] == pytest.approx(value, **CLOSE)


def test_sink_selected_compares_where_it_is_selected(study, found):
    """Entries whose sink has a place before N by weight."""
    at = {"distance": "euclidean", "ranking": "weight"}
    places = entries(study.main["sink_rank"].sel(ranking="weight"))
    for n in (1, 8, 32):
        kept, dropped = (
            fractions(study.main, "", n, sink_policy=policy, **at)
            for policy in ("keep", "drop")
        )
        chosen = [
            (k, d)
            for k, d, place in zip(kept, dropped, places, strict=True)
            if k is not None and 0 <= place < n
        ]
        measured = sum(k is not None for k in kept)
        line = row(found["sink_selected"], n=n)
        assert line["selected_share"] == pytest.approx(len(chosen) / measured, **CLOSE)
        keep, drop = mean(k for k, _ in chosen), mean(d for _, d in chosen)
        assert line["f_keep"] == pytest.approx(keep, **CLOSE)
        assert line["f_drop"] == pytest.approx(drop, **CLOSE)
        assert line["ratio"] == pytest.approx(keep / drop, **CLOSE)


def test_classes_are_the_librarys(study, found):
    """By D10 over all documents; "none" where nothing was measured."""
    names, shares = metrics_classes(study.main)
    for line in found["classes"].to_dict("records"):
        layer, head = line["layer"], line["head"]
        assert line["head_class"] == (names[layer, head] or "none")
        at = study.main.sel(layer=layer, head=head).isel(prefix=-1)
        counts = {x: int(at[f"class_{x}"].sum()) for x in ("current", "sink", "other")}
        for name, count in counts.items():
            total = sum(counts.values())
            expected = count / total if total else math.nan
            assert line[f"{name}_share"] == pytest.approx(expected, **CLOSE)
    assert (found["classes"]["head_class"] == "none").sum() == 1
    for name, share in shares.items():
        line = row(found["class_shares"], layer=-1, head_class=name)
        assert line["share"] == pytest.approx(share, **CLOSE)
        by_layer = [names[2, h] for h in range(4) if names[2, h]]
        line = row(found["class_shares"], layer=2, head_class=name)
        assert line["share"] == pytest.approx(by_layer.count(name) / 3, **CLOSE)


def test_every_replicate_names_its_classes_anew(study):
    """Counts of the documents drawn, as often as they were drawn."""
    for r in (0, 1, 2, 1999):
        drawn = [d for d, k in enumerate(study.weights[r]) for _ in range(int(k))]
        for h, (layer, head) in enumerate(zip(study.layers, study.heads, strict=True)):
            expected = class_of(study.main, layer, head, drawn)
            code = study.head_classes[r, h]
            assert ("Retriever", "Mixer", "Reset", None)[code] == expected


def plain_kappa(pairs):
    """Cohen's kappa by its definition, in fractions."""
    pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    n = len(pairs)
    observed = Fraction(sum(a == b for a, b in pairs), n)
    chance = sum(
        Fraction(sum(a == k for a, _ in pairs) * sum(b == k for _, b in pairs), n * n)
        for k in {a for a, _ in pairs}
    )
    return float((observed - chance) / (1 - chance)), n


def test_agreement_is_kappa_over_the_heads(study, partner, found):
    """Of prefixes, without BOS, and on the other text."""
    cases = {
        "first 16 tokens against 64": (study.main, 16),
        "first 32 tokens against 64": (study.main, 32),
        "without BOS": (study.bare, 63),
        "others against texts": (partner.main, 64),
    }
    assert list(found["agreement"]["comparison"]) == list(cases)
    for words, (scan, prefix) in cases.items():
        pairs = [
            (class_of(scan, i, h, prefix=prefix), class_of(study.main, i, h))
            for i, h in np.ndindex(3, 4)
        ]
        kappa, heads = plain_kappa(pairs)
        line = row(found["agreement"], comparison=words)
        assert line["kappa"] == pytest.approx(kappa, **CLOSE)
        assert line["heads"] == heads == 11


def test_two_texts_are_resampled_independently(study, partner):
    """Texts have draws of their own; two models on one text share them."""
    scans = made_up_pair(seed=1, corpus_sha256="ef" * 32)
    other = StudyData(*scans, "as many documents")
    assert (study.weights != other.weights).any()
    r = np.corrcoef(study.weights[1:].ravel(), other.weights[1:].ravel())[0, 1]
    assert abs(r) < 0.05
    same = StudyData(*made_up_pair(seed=1, model_fingerprint="sha256:1"), "model 2")
    np.testing.assert_array_equal(study.weights, same.weights)


def test_alignment_is_the_mean_by_class(study, found):
    """Over documents and the heads of the class."""
    names = names_of(study.main)
    arrays = {"sink": "sink_alignment", "current token": "current_alignment"}
    for toward, name in arrays.items():
        for head_class in ("all", "Mixer"):
            expected = mean(
                x
                for x, own in zip(entries(study.main[name]), names, strict=True)
                if head_class in ("all", own)
            )
            line = row(found["alignment"], head_class=head_class, toward=toward)
            assert line["value"] == pytest.approx(expected, **CLOSE)


def test_tightness_is_certified_over_measured(study, found):
    """Ratio of means, in all heads, a layer, a class; every bound has its label."""
    values = metrics(study.main)
    at = {"distance": "euclidean", "ranking": "weight"}
    names, layers = names_of(study.main), [i for i, _ in np.ndindex(3, 4)] * 10
    for policy in ("keep", "drop"):
        measured = fractions(study.main, "", 8, sink_policy=policy, **at)
        for key, (label, bound) in enclosures(values).items():
            certified = entries(bound.sel(certified_policy=policy, n=8))
            for group, which in (("all", "all"), ("layer", 1), ("head_class", "Mixer")):
                chosen = [
                    (c, f)
                    for c, f, *own in zip(
                        certified, measured, layers, names, strict=True
                    )
                    if f is not None and which in ("all", *own)
                ]
                table = found["tightness"]
                line = row(
                    table[table["which"] == which],
                    enclosure=key,
                    sink_policy=policy,
                    group=group,
                    n=8,
                )
                expected = mean(c for c, _ in chosen) / mean(f for _, f in chosen)
                assert line["value"] == pytest.approx(expected, **CLOSE)
                assert line["label"] == label
    numbers = found["tightness"].groupby(["sink_policy", "enclosure"])["numbers"].max()
    assert numbers["keep"].to_dict() == {
        "t4_all": 8,
        "t4_roles": 11,
        "t4_norms": 64 + 5,
        "t2_separate": 1,
        "t2_joint": 1,
        "t6_3": 6,
        "t6_5": 10,
        "t6_9": 18,
    }
    assert numbers["drop"]["t4_norms"] == 63 + 2


def test_numbers_needed_counts_what_is_nearly_certified(study, found):
    """At least 90 % of F; what fewer cells certify stays counted."""
    at = {"distance": "euclidean", "ranking": "weight", "sink_policy": "drop"}
    for n in (2, 32):
        bounds = {
            cells: fractions(
                study.main, "cell_", n, resolution=cells, certified_policy="drop"
            )
            for cells in (3, 5, 9)
        }
        needed, total = [], 0
        for i, f in enumerate(fractions(study.main, "", n, **at)):
            if not f:
                continue
            total += 1
            enough = [2 * k for k in bounds if bounds[k][i] >= Fraction(9, 10) * f]
            needed += enough[:1]
        for numbers in (6, 10, 18):
            line = row(
                found["numbers_needed"], sink_policy="drop", n=n, numbers=numbers
            )
            share = sum(k <= numbers for k in needed) / total
            assert line["share"] == pytest.approx(share, **CLOSE)


def test_removals_and_causes_are_means_of_changed_f(study, found):
    """Each cause by the two removals that differ in it."""
    f = {
        (policy, removal, n): mean(
            fractions(
                study.main, "removed_", n, certified_policy=policy, removal=removal
            )
        )
        for policy in ("keep", "drop")
        for removal in study.main["removal"].values
        for n in (2, 32)
    }
    for (policy, removal, n), value in f.items():
        line = row(found["removals"], sink_policy=policy, removal=removal, n=n)
        assert line["value"] == pytest.approx(value, **CLOSE)
    both = "norms and cosines"
    pairs = {
        "cosine spread": (("keep", "cosines"), ("keep", "none")),
        "norm spread": (("keep", "norms"), ("keep", "none")),
        "sink": (("drop", "none"), ("keep", "none")),
        "negative common cosine": (("drop", f"{both}, nonnegative"), ("drop", both)),
    }
    for cause, (after, before) in pairs.items():
        for n in (2, 32):
            gain = row(found["causes"], cause=cause, n=n)["gain"]
            assert gain == pytest.approx(f[*after, n] - f[*before, n], **CLOSE)


def test_collapse_is_by_head_where_the_sink_is_selected(study, found):
    """Means over the documents in which it is; heads where it never is have no row."""
    at = {"distance": "euclidean", "ranking": "weight", "sink_policy": "keep"}
    removed = {"certified_policy": "keep", "removal": "norms and cosines"}
    count = 0
    for n in study.n.tolist():
        columns = zip(
            fractions(study.main, "removed_", n, **removed),
            fractions(study.main, "", n, **at),
            entries(study.main["collapse"].sel(n=n)),
            list(np.ndindex(3, 4)) * 10,
            strict=True,
        )
        by_head = {}
        for *numbers, head in columns:
            if numbers[2] >= 0:
                by_head.setdefault(head, []).append(numbers)
        for (layer, head), rows in by_head.items():
            line = row(found["collapse"], layer=layer, head=head, n=n)
            for k, name in enumerate(("predicted", "measured", "condition")):
                assert line[name] == pytest.approx(mean(r[k] for r in rows), **CLOSE)
        count += len(by_head)
    assert count == len(found["collapse"])


def test_regime_shows_quantiles_over_heads(study, found):
    """The median head and those at 10 and 90 %, of means over documents."""

    def of_heads(function, pick=statistics.fmean):
        return sorted(
            pick(
                [
                    function(study.main.isel(window=d, layer=i, head=h))
                    for d in range(10)
                ]
            )
            for i, h in np.ndindex(3, 4)
        )

    cases = {
        "norm spread (sd / mean)": of_heads(
            lambda x: float(x["norm_sd"]) / float(x["norm_mean"])
        ),
        "norm greatest / least": of_heads(
            lambda x: float(x["norm_greatest"]) / float(x["norm_least"]),
            statistics.median,
        ),
        "share with least cosine > 0": of_heads(lambda x: float(x["cosine_least"] > 0)),
        "sink cosine greatest": of_heads(lambda x: float(x["sink_cosine_greatest"])),
    }
    for quantity, heads in cases.items():
        line = row(found["regime"], quantity=quantity, layer=-1)
        # Places of 12 heads: .1 * 11 = 1.1, .5 * 11 = 5.5 (to the even), .9 * 11 = 9.9.
        assert line["q10"] == pytest.approx(heads[1], **CLOSE)
        assert line["median"] == pytest.approx(heads[6], **CLOSE)
        assert line["q90"] == pytest.approx(heads[10], **CLOSE)


def test_sink_geometry_is_median_and_mean_over_documents(study, found):
    """A gap in one document is left out."""
    for line in found["sink_geometry"].to_dict("records"):
        at = study.main.sel(layer=line["layer"], head=line["head"])
        ratios = at["sink_norm_ratio"].values.tolist()
        assert line["norm_ratio"] == statistics.median(ratios)
        expected = mean(at["sink_cosine"].values.tolist())
        assert line["cosine"] == pytest.approx(expected, **CLOSE)


def test_bos_tables_read_both_scans(study, found):
    """With and without; the first token and the found sink."""
    at = {"distance": "euclidean", "ranking": "weight"}
    for which, scan in (("with", study.main), ("without", study.bare)):
        for policy in ("keep", "drop"):
            expected = mean(fractions(scan, "", 8, sink_policy=policy, **at))
            line = row(found["bos"], bos=which, policy=policy, n=8)
            assert line["value"] == pytest.approx(expected, **CLOSE)
        expected = mean(fractions(scan, "found_", 8))
        line = row(found["bos"], bos=which, policy="drop found sink", n=8)
        assert line["value"] == pytest.approx(expected, **CLOSE)
        for layer, part in ((-1, scan), (1, scan.sel(layer=[1]))):
            first = [int(x) == 0 for x in part["found_sink"].values.ravel()]
            line = row(found["found_sink"], bos=which, layer=layer)
            share = sum(first) / len(first)
            assert line["position_0_share"] == pytest.approx(share, **CLOSE)


def test_a_model_without_bos_has_no_side_with_it():
    """Then nothing is shown as "with BOS"."""
    main, bare = made_up_pair(seed=1)
    main.attrs["bos"] = "none: neither the tokenizer nor the model names one"
    found = tables(StudyData(main, bare, "no BOS"))
    assert set(found["bos"]["bos"]) == {"without"}
    assert set(found["found_sink"]["bos"]) == {"without"}
    assert "without BOS" not in set(found["agreement"]["comparison"])


# Columns that are means of the data alone, without an interval.
PLAIN = {
    "separability": ["least", "greatest"],
    "sink_selected": ["selected_share"],
}


def test_a_replicate_is_the_study_of_the_documents_drawn(study):
    """Every statistic under weights equals the plain one of the repeated documents."""
    weights = study.weights[7]
    assert 0 in weights  # a document is missing, others are there more than once
    drawn = [d for d, k in enumerate(weights) for _ in range(int(k))]
    repeated = []
    for scan in (study.main, study.bare):
        part = scan.isel(window=drawn).assign_coords(window=np.arange(len(drawn)))
        documents = [scan.attrs["documents"][d] for d in drawn]
        repeated.append(part.assign_attrs(documents=documents))
    expected = tables(StudyData(*repeated, "repeated"))
    under = StudyData(study.main, study.bare, "under weights")
    under.__dict__["weights"] = np.stack([weights, study.weights[0]])
    found = tables(under)
    for name in sorted(set(TABLES) - {"classes", "numbers_needed", "found_sink"}):
        gone = ["low", "high", *PLAIN.get(name, [])]
        a, b = (x[name].drop(columns=gone, errors="ignore") for x in (found, expected))
        assert len(a) == len(b)
        for column in a:
            if a[column].dtype.kind == "f":
                np.testing.assert_allclose(
                    a[column], b[column], rtol=1e-9, atol=1e-12, err_msg=name
                )
            else:
                assert a[column].tolist() == b[column].tolist()


def test_low_and_high_are_those_of_the_replicates(study, found):
    """One table traced by hand through the weights."""
    f = study.f("keep")[:, :, 2]
    statistic = [
        sum(w * x for w, x in zip(row, f.mean(axis=1), strict=True)) / 10
        for row in study.weights
    ]
    expected = interval(np.array(statistic), 10)
    line = row(found["separability"], distance="euclidean", ranking="weight", n=4)
    assert line["low"] == pytest.approx(expected.low, **CLOSE)
    assert line["high"] == pytest.approx(expected.high, **CLOSE)


def test_same_seed_gives_the_same_tables(study, partner, found):
    """Another object of the same scans."""
    again = tables(StudyData(study.main, study.bare, "again"), partner)
    for name, table in found.items():
        assert table.equals(again[name])


def test_fewer_documents_of_two_texts_make_the_interval(study, partner, found):
    """One document on the other side leaves no interval of kappa."""
    scans = made_up_pair(seed=2, windows=1, corpus="one", corpus_sha256="cd" * 32)
    line = tables(study, StudyData(*scans, "one"))["agreement"].iloc[-1]
    assert not math.isnan(line["kappa"])
    assert math.isnan(line["low"])
    assert not math.isnan(found["agreement"].iloc[-1]["low"])


def test_scans_that_do_not_belong_together_are_refused(study):
    """Another model, text or documents, or a BOS on both sides."""
    main, bare = study.main, study.bare
    for key in ("model_fingerprint", "corpus_sha256", "documents"):
        with pytest.raises(ScanError, match=f"StudyData: .* the same {key}, got"):
            StudyData(main, bare.assign_attrs({key: ["x"]}), "x")
    with pytest.raises(ScanError, match=r"StudyData: bare must be .* without BOS, got"):
        StudyData(main, bare.assign_attrs(bos=main.attrs["bos"]), "x")


def test_a_partner_of_another_model_or_the_same_text_is_refused(study):
    """Kappa between texts needs the same heads, and two texts."""
    with pytest.raises(ScanError, match=r"compared_classes: .* another text, got"):
        tables(study, StudyData(*made_up_pair(seed=2), "x"))
    scans = made_up_pair(seed=2, model_fingerprint="sha256:1", corpus_sha256="cd" * 32)
    with pytest.raises(ScanError, match=r"compared_classes: .* of the same model, got"):
        tables(study, StudyData(*scans, "x"))


def test_study_is_read_from_its_folder(tmp_path):
    """As it was stored; a missing scan is named."""
    with pytest.raises(ScanError, match=r"main\.zarr must be the store of a scan"):
        load_study(tmp_path / "nothing")
    small = StudyData(*made_up_pair(windows=1), "small")
    for name, scan in (("main", small.main), ("bare", small.bare)):
        attrs = {**scan.attrs, "format": "geobounds-scan-2"}
        store = Store(tmp_path / "made-up" / f"{name}.zarr")
        store.open(scan.assign_attrs(attrs))
        for window in range(scan.sizes["window"]):
            part = scan.isel(window=[window]).drop_vars(list(scan.coords))
            store.write(window, part)
    read = load_study(tmp_path / "made-up")
    assert read.name == "made-up"
    assert read.main.drop_vars("done").equals(small.main)
    assert TABLES["policies"](read).equals(TABLES["policies"](small))


def test_exact_estimates_have_no_width():
    """Nothing was sampled."""
    assert Estimate.exact(3) == Estimate(3.0, 3.0, 3.0)
