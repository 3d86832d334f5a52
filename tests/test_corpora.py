"""Texts and windows: deterministic, inside one document."""

import hashlib

import pytest

from empirical import CorpusError
from empirical.corpora import Corpus, Document, cut_windows, load_corpus


class Words:
    """A tokenizer that numbers words by their length."""

    def __call__(self, text, add_special_tokens):
        assert add_special_tokens is False
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
    with pytest.raises(CorpusError, match="must be one of python-docs or a text file"):
        load_corpus("no-such-corpus")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    """One line, no traceback of the decoder."""
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(CorpusError, match="must be a readable UTF-8 text file"):
        load_corpus(str(path))
