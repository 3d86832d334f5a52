"""The commands capture and inspect, what they list and what they draw."""

import hashlib
import io
import itertools
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from cases import SHAPES, draw_heads
from tiny import save_tiny_model

import geobounds as gb
from empirical import hand
from empirical.drawing import save_drawing
from empirical.hand_plot import distance_by_weight
from geobounds.cli import main
from geobounds.exact import oracle
from geobounds.inspection import Inspection, inspect

POLICIES = ("keep", "drop", "compete")
PROMPT = "w5 w9 w7 w5 w40 w41 w42 w9 w11 w12 w13 w80"
HEAD = gb.HeadData(
    [[0.25, 0.375, 0.0, 0.0], [0.25, 0.375, 0.125, 0.25]],
    [[2.0, 0.0], [0.0, 4.0], [-4.0, 1.0], [0.0, 2.0]],
    visible="causal",
)


def with_tokens(tokens, weights=(0.5, 0.25, 0.125, 0.0625), **meta):
    """Return a head of four keys whose tokens have those texts."""
    return gb.HeadData(
        weights, [[1.0], [1.0], [-1.0], [2.0]], meta={"tokens": tokens, **meta}
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of a tiny model."""
    return str(save_tiny_model(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a head."""
    monkeypatch.chdir(tmp_path)
    HEAD.save("h.npz")
    return tmp_path


def take(model, *options):
    """Run capture with a prompt, layer 1 and head 2."""
    return main(
        ["capture", model, "--prompt", PROMPT, "--layer", "1", "--head", "2", *options]
    )


# What is listed


def cases():
    """Yield every small head with every policy, N and ranking."""
    for case in draw_heads(seed=23, count=3 * len(SHAPES)):
        head = gb.HeadData(
            case.weights, case.values, visible=case.visible, sink=case.sink
        )
        for policy, ranking in itertools.product(POLICIES, ("weight", "contribution")):
            order = gb.rank(head, sink_policy=policy)
            for n in range(1, min(order.n_candidates, len(order.keys) + 1)):
                yield case, head, n, policy, ranking


def test_membership_counts_and_metrics_are_those_of_the_oracle():
    """Exactly, on every shape, ties and overflowing numbers included."""
    seen = set()
    for case, head, n, policy, ranking in cases():
        found = inspect(head, n, ranking=ranking, sink_policy=policy)
        truth = oracle(
            case.weights.tolist(),
            case.values.tolist(),
            case.visible.tolist(),
            case.sink,
            n,
            ranking=ranking,
            sink_policy=policy,
        )

        assert tuple(row.key for row in found.selected) == truth.selected
        assert {row.key for row in found.unselected} == set(truth.unselected)
        assert len(found.false_positives) == truth.false_positives
        assert len(found.false_negatives) == truth.false_negatives
        assert found.inversions == truth.inversions
        assert found.boundary_tie is truth.boundary_tie
        assert (found.precision, found.recall, found.f_score) == (
            truth.precision,
            truth.recall,
            truth.f_score,
        )
        assert found.n_candidates == n + len(truth.unselected)
        seen.add((case.shape, truth.false_positives > 0))
    assert {shape for shape, _ in seen} == {shape.__name__ for shape in SHAPES}
    assert {wrong for _, wrong in seen} == {True, False}


def exact_squares(case, selected):
    """Return D^2 of every key in fractions, from the arrays alone."""
    w = [Fraction(x) for x in case.weights.tolist()]
    y = [
        [a * Fraction(x) for x in v]
        for a, v in zip(w, case.values.tolist(), strict=True)
    ]
    total = [sum(column) for column in zip(*(y[i] for i in selected), strict=True)]
    return [sum((a - s) ** 2 for a, s in zip(row, total, strict=True)) for row in y]


def test_false_tokens_are_the_ones_that_the_definition_names():
    """Keys, not only counts; the unselected nearest first, by key on ties."""
    for case, head, n, policy, ranking in cases():
        found = inspect(head, n, ranking=ranking, sink_policy=policy)
        selected = [row.key for row in found.selected]
        unselected = [row.key for row in found.unselected]
        squares = exact_squares(case, selected)
        far = max(squares[i] for i in selected)
        near = min(squares[j] for j in unselected)

        assert [row.key for row in found.false_negatives] == [
            i for i in selected if squares[i] >= near
        ]
        assert [row.key for row in found.false_positives] == [
            j for j in unselected if squares[j] <= far
        ]
        assert unselected == sorted(unselected, key=lambda j: (squares[j], j))
        middle = found.margin.lower + found.margin.upper
        assert (middle > 0, middle < 0) == (near > far, near < far)


def test_numbers_are_the_exact_ones_where_they_are_representable():
    """Weight, norm, power and distance of a head that can be done by hand."""
    head = gb.HeadData([0.5, 0.25, 0.25], [[6.0, 8.0], [12.0, 16.0], [-12.0, -16.0]])
    found = inspect(head, 2)

    # y = (3, 4), (3, 4), (-3, -4); s = (6, 8)
    rows = {row.key: row for row in (*found.selected, *found.unselected)}
    assert [rows[k].weight for k in range(3)] == [0.5, 0.25, 0.25]
    assert [rows[k].norm for k in range(3)] == [5.0, 5.0, 5.0]
    assert [rows[k].power for k in range(3)] == [-75.0, -75.0, 125.0]
    assert [rows[k].distance for k in range(3)] == [5.0, 5.0, 15.0]
    assert (found.rho_max, found.rho_min) == (5.0, 15.0)
    assert found.boundary_tie
    assert [row.sink for row in found.selected] == [True, False]


def test_a_query_is_a_row_and_hidden_keys_are_no_candidates():
    found = inspect(HEAD, 1, query=0)

    assert found.query_position == 2
    assert {row.key for row in (*found.selected, *found.unselected)} == {0, 1, 2}


def test_the_default_n_is_eight_or_what_the_head_allows():
    assert inspect(HEAD).n == 3
    assert inspect(gb.HeadData(np.ones(20) / 20, np.eye(20))).n == 8


def test_scores_may_be_given_as_an_array():
    found = inspect(HEAD, 1, ranking=[0, 0, 1, 0])

    assert [row.key for row in found.selected] == [2]
    assert found.ranking == "scores"


# The table


def test_the_table_of_a_small_head():
    head = with_tokens(
        ["<s>", " keys", " to", "?"],
        model="m",
        fingerprint="sha256:0123456789abcdef",
        layer=4,
        head=2,
        dtype="float32",
    )

    assert str(inspect(head, 2)).splitlines() == [
        "m (sha256:0123456789ab), layer 4, head 2, float32",
        "query 3 '?', 4 candidates, ranking weight, sink keep",
        "N = 2   P = 1   R = 1   F = 1",
        "margin 0.1250 = rho_min 0.625000 - rho_max 0.500000",
        "inversions 0, false positives 0, false negatives 0, boundary tie: no",
        "",
        "selected, best first (FN: no nearer than some unselected token)",
        "   key      weight        norm         phi    distance  mark     token",
        "     0      0.5000      0.5000     -0.5000    0.250000  sink     '<s>'",
        "     1      0.2500      0.2500     -0.3125    0.500000           ' keys'",
        "",
        "false positives: none",
    ]


def test_false_tokens_ties_and_the_sink_are_marked():
    head = gb.HeadData([0.25] * 4, [[1.0], [1.0], [1.0], [-1.0]], sink=1)
    lines = str(inspect(head, 1, sink_policy="compete")).splitlines()

    assert lines[1] == "N = 1   P = 1/3 = 0.3333   R = 0   F = 0"
    assert lines[3].endswith("boundary tie: yes (the selected set is a convention)")
    assert lines[6] == "   key      weight        norm         phi    distance  mark"
    assert lines[7].split()[-1] == "FN"
    assert [line.split()[0] for line in lines[11:]] == ["1", "2"]
    assert lines[11].endswith("  sink")


def test_at_most_twenty_false_positives_are_printed():
    head = gb.HeadData(np.full(30, 1 / 32), np.ones((30, 1)))
    text = str(inspect(head, 1))

    assert text.splitlines()[-1] == "and 9 others, farther"
    assert len(inspect(head, 1).to_dict()["false_positives"]) == 29
    exactly = str(inspect(gb.HeadData(np.full(21, 1 / 32), np.ones((21, 1))), 1))
    assert "others" not in exactly


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" the", "' the'"),
        ("", "''"),
        ("\n\n", r"'\n\n'"),
        ("\t\r\x1b[31m\x00", r"'\t\r\x1b[31m\x00'"),
        (
            "\u2028\u200b\u202e",
            r"'\u2028\u200b\u202e'",
        ),  # line end, invisible, override
        ("שלום", r"'\u05e9\u05dc\u05d5\u05dd'"),  # right to left
        ("é中😀", "'é中😀'"),
        ("❤\ufe0f", r"'❤\ufe0f'"),
        ("\u0301a\u0301", "'\\u0301a\u0301'"),  # a mark must not sit on the quote
        ("\ud800", r"'\ud800'"),
        ("\U000e0001", r"'\U000e0001'"),
        ("it's", '"it\'s"'),
        ("'\"", "'\\'\"'"),
        ("a\\n", r"'a\\n'"),
        ("x" * 24, f"'{'x' * 24}'"),
        ("x" * 25, f"'{'x' * 24}'..."),
        ("中" * 13, f"'{'中' * 12}'..."),
        ("\n" * 13, "'" + r"\n" * 12 + "'..."),
    ],
)
def test_no_text_of_a_token_breaks_its_line(token, shown):
    plain = str(inspect(with_tokens(["a", "b", "c", "d"]), 1)).split("\n")
    lines = str(inspect(with_tokens([token, "b", "c", "d"]), 1)).split("\n")

    assert len(lines) == len(plain)
    i = next(i for i, line in enumerate(plain) if line.endswith("'a'"))
    assert lines[i] == plain[i].removesuffix("'a'") + shown


@pytest.mark.parametrize(
    "tokens", [["a", "b", "c"], ["a", "b", "c", 1], "abcd", None, {"a": 1}]
)
def test_tokens_that_do_not_fit_the_keys_are_not_shown(tokens):
    found = inspect(with_tokens(tokens), 1)

    assert found.query_token is None
    assert "token" not in str(found).splitlines()[6]


def test_origin_is_one_line_whatever_the_meta():
    assert inspect(with_tokens(None, model="a\nb", layer="x"), 1).origin == r"a\nb"
    assert inspect(with_tokens(None, model=3), 1).origin == ""


def test_json_data_has_no_infinity_and_keeps_texts_as_they_are():
    big = gb.HeadData([1.0, 0.5], [[2.0**1000], [-(2.0**1000)]])
    found = inspect(big, 1)
    text = json.dumps(found.to_dict(), allow_nan=False)

    assert json.loads(text)["selected"][0]["power"] is None
    assert "-inf" in str(found)
    tokens = ["a\n", "שלום", "😀", "d"]
    data = json.loads(json.dumps(inspect(with_tokens(tokens), 2).to_dict()))
    assert [row["token"] for row in data["selected"]] == tokens[:2]
    assert data["query_token"] == "d"


# The command inspect


def test_inspect_prints_the_table_of_the_last_query(folder, capsys):
    assert main(["inspect", "h.npz", "--n", "2"]) == 0
    assert capsys.readouterr() == (f"{inspect(HEAD, 2)}\n", "")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--n", "1", "--query", "0"], {"n": 1, "query": 0}),
        (["--ranking", "contribution"], {"ranking": "contribution"}),
        (["--sink-policy", "drop"], {"sink_policy": "drop"}),
        (["--sink-policy", "compete"], {"sink_policy": "compete"}),
    ],
)
def test_inspect_passes_every_option_on(folder, capsys, arguments, options):
    assert main(["inspect", "h.npz", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == inspect(HEAD, **options).to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "HeadData: none.npz must be a file, got none there."),
        (["h.npz", "--n", "4"], "inspect: n must lie between 1 and 3 (4 candidates)"),
        (["h.npz", "--n", "0"], "inspect: n must lie between 1 and 3 (4 candidates)"),
        (["h.npz", "--query", "2"], "inspect: query must lie between -2 and 1"),
        (["w.npz"], "inspect: values must be given"),
        (["one.npz"], "inspect: at least 2 candidates are needed"),
        (["big.npz", "--plot", "p.png"], "plot: distances must lie in the range of"),
        (["h.npz", "--plot", "none/p.png"], "inspect: No such file or directory"),
    ],
)
def test_inspect_could_not_run_and_says_why_in_one_line(
    folder, capsys, arguments, message
):
    gb.HeadData([0.5, 0.25, 0.25]).save("w.npz")
    gb.HeadData([1.0], [[1.0]]).save("one.npz")
    gb.HeadData([1.0, 1.0], [[2.0**1023], [-(2.0**1023)]]).save("big.npz")

    assert main(["inspect", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"geobounds: {message}")
    assert err.count("\n") == 1


def test_a_terminal_without_the_letters_gets_escapes(folder, monkeypatch):
    with_tokens(["é", "😀", "c", "d"]).save("t.npz")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)

    assert main(["inspect", "t.npz", "--n", "2"]) == 0
    stream.flush()
    assert rb"'\xe9'" in stream.buffer.getvalue()
    assert rb"'\U0001f600'" in stream.buffer.getvalue()


WITHOUT = """
import sys
for name in ("torch", "transformers", "matplotlib", "xarray"):
    sys.modules[name] = None
from geobounds.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_inspect_needs_neither_torch_nor_matplotlib(folder):
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, "inspect", "h.npz"],
        capture_output=True,
        text=True,
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"{inspect(HEAD)}\n"


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (["inspect", "h.npz", "--plot", "p.png"], "inspect"),
        (["capture", "m", "--prompt", "a", "--layer", "0", "--head", "0"], "capture"),
    ],
)
def test_a_missing_extra_is_named(folder, command, missing):
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command], capture_output=True, text=True
    )

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"geobounds: {missing}: ")
    assert run.stderr.endswith(
        "must be installed. Run: pip install 'geobounds[models,report]'\n"
    )
    assert run.stderr.count("\n") == 1


# The command capture


def test_a_captured_head_is_the_models_and_says_where_it_is_from(model, folder, capsys):
    assert take(model) == 0
    out, err = capsys.readouterr()
    head = gb.HeadData.load("head.npz")
    network, tokenizer = hand.load(model)
    ids = [1, *tokenizer(PROMPT, add_special_tokens=False)["input_ids"]]
    expected = hand.heads(network, ids)[1, 2]

    assert out == f"head: head.npz, {head!r}\n"
    assert err == ""
    assert np.array_equal(head.weights, expected.weights)
    assert np.array_equal(head.values, expected.values)
    assert head.digest() == expected.digest()
    assert head.meta == {
        "model": model,
        "fingerprint": hand.resolve(model).fingerprint,
        "layer": 1,
        "head": 2,
        "dtype": "float32",
        "bos": "token 1 first in every window: the tokenizer's BOS <s>",
        "text_sha256": hashlib.sha256(PROMPT.encode()).hexdigest(),
        "tokens": ["<s>", *PROMPT.split()],
    }


def test_capture_without_bos_warns_and_says_so(model, folder, capsys):
    """On request, and in bfloat16, which the file still names."""
    options = ["--bos", "none", "--dtype", "bfloat16"]
    assert take(model, *options) == 0
    err = capsys.readouterr().err
    head = gb.HeadData.load("head.npz")

    assert "warning: " in err
    assert "expects a BOS token (id 1)" in err
    assert head.meta["bos"].startswith("none: left out on request")
    assert head.meta["tokens"] == PROMPT.split()
    assert head.dtype_name == "bfloat16"


def test_capture_then_inspect_certify_and_verify(model, folder, capsys):
    """The way of a user, from a model to a certificate that holds."""
    assert take(model, "-o", "c.safetensors", "--queries", "all") == 0
    assert main(["inspect", "c.safetensors", "--n", "4", "--plot", "p.png"]) == 0
    assert main(["certify", "c.safetensors", "-o", "c.json"]) == 0
    assert main(["verify", "c.json", "c.safetensors"]) == 0
    out = capsys.readouterr().out

    assert "query 12 'w80', 13 candidates, ranking weight, sink keep" in out
    assert str(inspect(gb.HeadData.load("c.safetensors"), 4)) in out
    assert out.endswith("holds: 3 claims, N = 2, 4, 8\n")
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    head = gb.HeadData.load("c.safetensors")
    assert head.n_query == 13
    assert inspect(head, 2, query=5).query_token == "w40"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_captured_and_recorded(model, folder, dtype):
    assert take(model, "--dtype", dtype) == 0
    head = gb.HeadData.load("head.npz")

    assert head.meta["dtype"] == dtype
    assert gb.verify(gb.certify(head), head)


def test_a_text_file_is_taken_as_it_is(model, folder):
    """Line ends of Windows count in the digest."""
    data = b"w5 w6\r\nw7\r\n"
    (folder / "t.txt").write_bytes(data)
    options = ["--text-file", "t.txt", "--layer", "0", "--head", "0"]

    assert main(["capture", model, *options]) == 0
    meta = gb.HeadData.load("head.npz").meta
    assert meta["text_sha256"] == hashlib.sha256(data).hexdigest()
    assert meta["tokens"] == ["<s>", "w5", "w6", "w7"]


HERE = ["--layer", "0", "--head", "0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (HERE, "give --prompt or --text-file, one of them, got neither."),
        (
            ["--prompt", "w5", "--text-file", "t.txt", *HERE],
            "give --prompt or --text-file, one of them, got both.",
        ),
        (["--prompt", "", *HERE], "the text must hold at least one token, got ''."),
        (["--prompt", " ", *HERE], "the text must hold at least one token, got ' '."),
        (["--prompt", "w5\udcff", *HERE], "the text must be Unicode text"),
        (["--text-file", "none.txt", *HERE], "No such file or directory: none.txt."),
        (["--text-file", "bad.txt", *HERE], "bad.txt must be a UTF-8 text file"),
        (
            ["--prompt", "w5", "--layer", "2", "--head", "0"],
            "layer must lie between 0 and 1 (2 layers), got layer=2.",
        ),
        (
            ["--prompt", "w5", "--layer", "1", "--head", "4"],
            "head must lie between 0 and 3 (4 heads in layer 1), got head=4.",
        ),
        (
            ["--prompt", "w5", "--layer", "-1", "--head", "0"],
            "layer must be at least 0, got layer=-1.",
        ),
        (
            ["--prompt", "w5", "--layer", "0", "--head", "-1"],
            "head must be at least 0, got head=-1.",
        ),
        (
            ["--prompt", "w5 " * 128, *HERE],
            "the text must have at most 128 tokens, the BOS included, got 129.",
        ),
        (["--prompt", "w5", *HERE, "-o", "h.csv"], "--out must end in .npz or .safet"),
        (["--prompt", "w5", *HERE, "-o", "no/h.npz"], "No such file or directory"),
        (["--prompt", "w5", *HERE, "--device", "no"], "device must be one torch can"),
    ],
)
def test_capture_could_not_run_and_says_why_in_one_line(
    model, folder, capsys, arguments, message
):
    (folder / "bad.txt").write_bytes(b"\xff\xfe")

    assert main(["capture", model, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"geobounds: capture: {message}")
    assert err.count("\n") == 1
    assert not (folder / "head.npz").exists()


def test_a_model_that_is_not_there_is_one_line(folder, capsys):
    assert main(["capture", "./nowhere", "--prompt", "a", *HERE]) == 2
    err = capsys.readouterr().err

    assert err.startswith("geobounds: models: ./nowhere must be a packaged name")
    assert err.count("\n") == 1


def test_a_layer_without_attention_is_refused(model, monkeypatch):
    monkeypatch.setattr(hand, "heads", lambda *_args, **_options: {})

    with pytest.raises(hand.CaptureError, match="layer 1 must be an attention layer"):
        hand.capture_head(model, PROMPT, layer=1, head=0)


# The figure


def crossed(drawing):
    """Return the number of crosses drawn in the first panel."""
    return sum(
        len(c.get_offsets())
        for c in drawing.figure.axes[0].collections
        if str(c.get_label()).startswith("false")
    )


def drawable():
    """Yield an inspection of every shape whose distances float64 can hold."""
    for case in draw_heads(seed=5, count=len(SHAPES)):
        found = inspect(
            gb.HeadData(
                case.weights, case.values, visible=case.visible, sink=case.sink
            ),
            1,
        )
        if max(found.rho_max, found.unselected[-1].distance) < 2.0**1022:
            yield found


def test_every_head_can_be_drawn_with_its_false_tokens_crossed(tmp_path):
    """Zero and subnormal weights, ties and huge distances draw without a warning."""
    drawn = 0
    for found in drawable():
        drawing = distance_by_weight(found)
        save_drawing(drawing, tmp_path / "d.png")

        wrong = len(found.false_positives) + len(found.false_negatives)
        assert crossed(drawing) == wrong
        assert drawing.caption.startswith("How to read it:")
        drawn += 1
    assert drawn > len(SHAPES) // 2


def legend_and_axes(drawing):
    """Return the pixel boxes of the legend and of every panel."""
    figure = drawing.figure
    figure.canvas.draw()
    legend = figure.axes[-1].get_legend().get_window_extent()
    return legend, [axes.get_window_extent() for axes in figure.axes]


@pytest.mark.parametrize(("third", "panels"), [(-1.0, 1), (1.0, 2)])
def test_the_legend_is_clear_of_the_data(tmp_path, third, panels):
    """And lines that run together get a view of their own."""
    weights = [0.5, 0.25, 0.0625, 0.03, 0.0]
    values = [[1.0, 0.0], [1.0, 0.2], [third, 2.0], [1.0, 1.9], [1.0, 1.0]]
    drawing = distance_by_weight(
        inspect(gb.HeadData(weights, values), 3 - (panels < 2))
    )
    save_drawing(drawing, tmp_path / "d.png")
    legend, axes = legend_and_axes(drawing)

    assert len(axes) == panels
    assert not any(legend.overlaps(box) for box in axes)
    assert "0" in [t.get_text() for t in drawing.figure.axes[-1].get_xticklabels()]
    assert drawing.figure.axes[-1].get_xlabel() == "attention weight (logarithmic)"


def test_names_with_dollars_and_foreign_letters_are_drawn(tmp_path):
    found = inspect(with_tokens(None, model="a$b$ 中"), 2)
    assert isinstance(found, Inspection)

    save_drawing(distance_by_weight(found), tmp_path / "d.png")
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
