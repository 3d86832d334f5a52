"""Figures and pages of a study from hand-made tables: what is drawn, told, escaped."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from study_tables import ABOUT, ATTRS, hand_made

from empirical.drawing import PALETTE
from empirical.study import figures, page
from empirical.study.figures import ACROSS, FIGURES, draw
from empirical.study.finding import Finding, Range
from empirical.study.page import Outcome, write_across, write_pair
from empirical.study.resample import Estimate
from empirical.study.style import CLASS_SERIES, SERIES, near
from empirical.study.tables import TABLES
from empirical.study.verdicts import MARKS, findings_table, number

FINDINGS = [
    Finding(
        id_,
        f"title of {id_}",
        f"hypothesis of {id_} <script>",
        "difference of F",
        estimate,
        range_,
        verdict,
        "",
        figure,
    )
    for id_, estimate, range_, verdict, figure in (
        ("F1-a", Estimate(0.2, 0.1, 0.3), Range(0, strict=True), "supported", "bos"),
        ("F1-b", Estimate(2.5, 2.0, 2.9), Range(3, 10), "not supported", "bos"),
        ("F2-a", Estimate(0.0, -0.1, 0.1), Range(0), "undecided", "sink_map"),
        ("F5-sound", Estimate.exact(0), Range(0, 0), "supported", "nowhere"),
        ("F8-a", Estimate(*[math.nan] * 3), Range(0.6), "undecided", "bos"),
    )
]
TABLES_MADE = hand_made() | {"findings": findings_table(FINDINGS)}


@pytest.fixture(scope="module")
def drawings():
    """Every figure of one study."""
    return draw(FIGURES, TABLES_MADE, ABOUT)


@pytest.fixture
def few(monkeypatch):
    """Pages with one figure each: they are the same for all, and drawing is slow."""
    for name, kept in (("FIGURES", "found_sink"), ("ACROSS", "tightness_across")):
        monkeypatch.setattr(page, name, {kept: getattr(figures, name)[kept]})


def outcome(about=ABOUT, folder="tiny-text", notes=()):
    return Outcome.of(folder, about, hand_made(), FINDINGS, notes)


# colours

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(color, deficiency):
    """Return CIE L*a*b* (D65) of a colour as a reader sees it."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(DEFICIENCIES[deficiency] @ linear, 0, 1)
    t = TO_XYZ @ seen / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def ciede2000(one, other):
    """Return the colour difference of Sharma, Wu and Dalal 2005."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(c**7 / (c**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    grey = c1 * c2 == 0
    dh = 0.0 if grey else (h2 - h1 + 180) % 360 - 180
    dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh / 2))
    lm, cm = (l1 + l2) / 2, (c1 + c2) / 2
    hm = h1 + h2 if grey else (h1 + h2) / 2
    if not grey and abs(h1 - h2) > 180:
        hm += 180 if h1 + h2 < 360 else -180
    angles = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    t = 1 + sum(x * math.cos(math.radians(k * hm + p)) for x, k, p in angles)
    turn = 30 * math.exp(-(((hm - 275) / 25) ** 2))
    rc = 2 * math.sqrt(cm**7 / (cm**7 + 25**7))
    sl = 1 + 0.015 * (lm - 50) ** 2 / math.sqrt(20 + (lm - 50) ** 2)
    sc, sh = 1 + 0.045 * cm, 1 + 0.015 * cm * t
    cross = -math.sin(math.radians(2 * turn)) * rc * (c2 - c1) / sc * dh / sh
    return math.sqrt(
        ((l2 - l1) / sl) ** 2 + ((c2 - c1) / sc) ** 2 + (dh / sh) ** 2 + cross
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_that_of_its_authors(one, other, expected):
    """A test of the test: pairs of Sharma, Wu and Dalal, table 1."""
    assert ciede2000(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_stay_apart_under_every_deficiency(deficiency):
    """By at least 10, and so do the fills of the class map."""
    for colors in (PALETTE, ("#0b5394", "#f2a65a", "#d9d9d9")):
        for one, other in itertools.combinations(colors, 2):
            apart = ciede2000(lab(one, deficiency), lab(other, deficiency))
            assert apart >= 10, (one, other)


def test_series_differ_by_marker_too():
    """So that a grey print tells them apart."""
    for several in (SERIES, CLASS_SERIES.values()):
        markers = [series.marker for series in several]
        assert len(markers) == len(set(markers))
        assert {series.color for series in several} <= set(PALETTE)


def test_lines_of_one_panel_look_different(drawings):
    """No two labelled lines of a panel share marker and colour."""
    for drawing in drawings.values():
        for axes in drawing.figure.axes:
            lines = [x for x in axes.lines if not x.get_label().startswith("_")]
            looks = [(x.get_color(), x.get_marker()) for x in lines]
            assert len(looks) == len(set(looks)), drawing.name


# figures


def test_every_figure_is_drawn_and_says_where_it_is_from(drawings):
    """Model, hash, text, windows, length, BOS rule and seed; N where there is one."""
    assert set(drawings) == set(FIGURES)
    for name, drawing in drawings.items():
        assert drawing.name == name
        assert drawing.title
        assert drawing.caption.startswith("How to read it: ")
        for fact in (
            ATTRS["model"],
            "sha256:0123456789ab",
            ATTRS["corpus"],
            "9 windows of 24 tokens",
            "float32",
            f"BOS: {ATTRS['bos']}",
            "seed 5.",
        ):
            assert fact in drawing.caption, name
        if "n" in TABLES_MADE[FIGURES[name].tables[0]].columns:
            assert "N = " in drawing.caption, name
        assert "Quick look" not in drawing.caption


def test_every_table_has_a_figure():
    """Nothing is computed that no figure shows."""
    assert {t for plot in FIGURES.values() for t in plot.tables} == {
        *TABLES,
        "findings",
    }


def test_figures_show_the_numbers_of_their_tables(drawings):
    """Heights of lines are the table's values, untouched."""
    table = TABLES_MADE["causes"]
    lines = {x.get_label(): x for x in drawings["causes"].figure.axes[0].lines}
    for cause, expected in table.groupby("cause"):
        assert lines[cause].get_ydata().tolist() == expected["gain"].tolist()
        assert lines[cause].get_xdata().tolist() == expected["n"].tolist()
    table = TABLES_MADE["separability"].set_index(["distance", "ranking"])
    kinds = itertools.product(("euclidean", "cosine"), ("weight", "contribution"))
    panels = drawings["separability"].figure.axes
    for axes, kind in zip(panels, kinds, strict=True):
        lines = {x.get_label(): x for x in axes.lines}
        for label, which in (
            ("the N greatest", kind),
            ("random sets", (kind[0], "random")),
        ):
            expected = table.loc[which, "value"].tolist()
            assert lines[label].get_ydata().tolist() == expected


def test_verdicts_lie_in_their_range_or_outside(drawings):
    """Each effect is drawn on the side of its range on which it lies."""
    axes = drawings["verdicts"].figure.axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [finding.id for finding in FINDINGS][::-1]
    boxes = [c.get_paths()[0].vertices for c in axes.collections if c.get_paths()]
    ranges = {
        round(box[:, 1].min() + box[:, 1].max()) // 2: (
            box[:, 0].min(),
            box[:, 0].max(),
        )
        for box in boxes
    }
    dots = {
        line.get_ydata()[0]: line.get_xdata()[0]
        for line in axes.lines
        if len(line.get_xdata()) == 1
    }
    assert len(dots) == len(FINDINGS) - 1  # one effect is undefined
    for place, finding in enumerate(reversed(FINDINGS)):
        if finding.verdict != "undecided":
            low, high = ranges[place]
            inside = low <= dots[place] <= high
            assert inside == (finding.verdict == "supported")
    words = " ".join(text.get_text() for text in axes.texts)
    assert "✓ 0.200  [0.100, 0.300]   greater than 0" in words
    assert "✗ 2.50  [2.00, 2.90]   3 to 10" in words
    assert "? undefined   at least 0.6" in words


def test_a_table_without_numbers_is_drawn_all_the_same():
    """A model without any value to show breaks no figure."""
    blank = {}
    for name, table in hand_made().items():
        numbers = table.select_dtypes("float").columns
        blank[name] = table.assign(**dict.fromkeys(numbers, np.nan))
    blank["findings"] = TABLES_MADE["findings"]
    for drawing in draw(FIGURES, blank, ABOUT).values():
        drawing.figure.draw_without_rendering()


def test_a_figure_of_an_empty_table_is_left_out():
    """And only that."""
    empty = TABLES_MADE | {"bos": TABLES_MADE["bos"].iloc[:0]}
    assert set(FIGURES) - set(draw(FIGURES, empty, ABOUT)) == {"bos"}


def test_figures_across_hold_every_study():
    """Lines by study; captions with the origin of each."""
    names = [f"study {i}" for i in range(7)]
    joined = {
        name: pd.concat([table.assign(study=s) for s in names], ignore_index=True)
        for name, table in hand_made().items()
    }
    for drawing in draw(ACROSS, joined, dict.fromkeys(names, ABOUT)).values():
        drawing.figure.draw_without_rendering()
        for name in names:
            assert f"{name}: {ATTRS['model']}" in drawing.caption
        lines = [x for x in drawing.figure.axes[0].lines if x.get_label() in names]
        assert len({(x.get_color(), x.get_marker()) for x in lines}) == len(lines)


def test_near_takes_numbers_of_the_grid():
    """Each once, by ratio and not by difference."""
    assert near([1, 2, 8, 64], 2, 8, 64) == [2, 8, 64]
    assert near([5, 300], 32, 64) == [5, 300]
    assert near([3], 2, 8) == [3]


# pages


def test_names_and_words_are_escaped(few, tmp_path):
    """A name may hold any letters."""
    html = write_pair(outcome(), tmp_path).read_text(encoding="utf-8")
    assert "tiny &amp; co" in html
    assert "hypothesis of F1-a &lt;script&gt;" in html
    for raw in ("<b>tiny", "<script", "text <i>", "BOS <s>"):
        assert raw not in html
    html = write_across([outcome()], tmp_path).read_text(encoding="utf-8")
    for raw in ("<b>tiny", "<script", "text <i>", "BOS <s>"):
        assert raw not in html


def test_verdicts_are_told_by_mark_and_word(few, tmp_path):
    """Never by colour alone; a finding links to its figure if there is one."""
    shown = replace(FINDINGS[0], figure="found_sink")
    made = Outcome.of("x", ABOUT, hand_made(), [shown, *FINDINGS[1:]])
    html = write_pair(made, tmp_path).read_text(encoding="utf-8")
    for verdict, mark in MARKS.items():
        assert f'<span aria-hidden="true">{mark}</span> {verdict}</span>' in html
    assert '<a href="#found_sink">F1-a</a>' in html
    assert 'id="found_sink"' in html
    assert ">F5-sound</td>" in html  # its figure is not there
    assert "0.200 <span" in html
    assert "[0.100, 0.300]" in html
    assert "2 findings are supported, 1 are not" in html


def test_a_quick_look_says_so(few, tmp_path):
    """On the page and in every caption."""
    about = replace(ABOUT, windows=2)
    text = "Quick look: 2 of 9 windows, intervals mean little."
    html = write_pair(outcome(about), tmp_path).read_text(encoding="utf-8")
    assert html.count(text) == 2  # above the verdicts, and the one figure
    drawn = draw(FIGURES, TABLES_MADE, about)
    assert all(drawing.caption.endswith(text) for drawing in drawn.values())


def test_what_is_not_drawn_is_named(few, tmp_path):
    """With the table that holds nothing."""
    made = outcome()
    tables = {**made.tables, "found_sink": made.tables["found_sink"].iloc[:0]}
    html = write_pair(replace(made, tables=tables), tmp_path).read_text("utf-8")
    assert "Not drawn: found_sink. There is nothing to show in found_sink." in html


def test_a_study_without_a_finding_says_not_tested(few, tmp_path):
    """The matrix has a cell for every finding and study."""
    other = Outcome.of("other", ABOUT, hand_made(), FINDINGS[:1])
    html = write_across([outcome(), other], tmp_path).read_text(encoding="utf-8")
    assert html.count("not tested") == len(FINDINGS) - 1


def test_notes_stand_once(few, tmp_path):
    """What limits all findings is said above them, not in each."""
    note = "Only 2 documents: no verdict below 8."
    noted = [replace(f, note=f"Own words. {note}") for f in FINDINGS]
    made = Outcome.of("x", ABOUT, hand_made(), noted, [note])
    html = write_pair(made, tmp_path).read_text(encoding="utf-8")
    assert html.count(note) == 1
    assert html.count("Own words.") == len(FINDINGS)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (-0.5, "−0.500"),
        (12.345, "12.3"),
        (1234.5, "1234"),
        (0.0041, "0.004"),
        (-0.00096, "−0.00096"),
        (0.000012, "1.2e−05"),
        (-3e-7, "−3.0e−07"),
        (math.nan, "undefined"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_are_printed_in_three_figures(x, expected):
    """With a minus sign that reads as one."""
    assert number(x) == expected
