"""Texts and the windows cut from them. A window lies inside one document."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empirical.errors import CorpusError

__all__ = ["CORPORA", "Corpus", "Document", "Window", "cut_windows", "load_corpus"]


@dataclass(frozen=True)
class Document:
    """One text: a topic, or a whole file."""

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
}


def load_corpus(name: str) -> Corpus:
    """Return a packaged corpus, or a UTF-8 text file as one document.

    Raises
    ------
    CorpusError
        No such corpus or file, or a file that is not UTF-8 text.
    """
    if name == "python-docs":
        from pydoc_data.topics import topics

        documents = tuple(Document(key, topics[key]) for key in sorted(topics))
        return Corpus(name, documents, blocks=False)
    path = Path(name)
    if not path.is_file():
        msg = (
            f"corpora: corpus must be one of {', '.join(CORPORA)} or a text file, "
            f"got corpus={name!r} and no such file."
        )
        raise CorpusError(msg)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"corpora: {name} must be a readable UTF-8 text file ({error})."
        raise CorpusError(msg) from error
    return Corpus(path.name, (Document(path.name, text),), blocks=True)


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
    need = length - (bos is not None)
    found: list[Window] = []
    longest = 0
    for document in _order(corpus, seed):
        tokens = tokenizer(document.text, add_special_tokens=False)["input_ids"]
        longest = max(longest, len(tokens))
        for start in _starts(len(tokens), need, blocks=corpus.blocks):
            ids = [*([] if bos is None else [bos]), *tokens[start : start + need]]
            found.append(Window(document.id, start, tuple(ids)))
            if len(found) == count:
                return found
    msg = (
        f"corpora: {corpus.name} must hold {count} windows of {length} tokens, got "
        f"{len(found)} (its longest document has {longest} tokens). Ask for fewer or "
        "shorter windows."
    )
    raise CorpusError(msg)


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
