"""InPars (Bonifacio et al., 2022): queries that a language model wrote, each for one document, as JSON Lines.

A line has a query, the doc_id of its document or its doc_text (or text), the log_probs of the query's tokens and, where
it was ranked again, a score.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from cocite.core.errors import InputError
from cocite.core.rows import Row, read_rows
from cocite.core.text_ids import text_id
from cocite.triplets.brought_pairs.reading import (
    DOCUMENTS,
    TEXTS_AT_ONCE,
    Brought,
    Example,
    Texts,
    as_list,
    collection_files,
    key_of,
    named_texts,
    row_files,
)
from cocite.triplets.brought_pairs.text_rows import Part, inline


def read_inpars(folder: Path, collection: Path, patterns: Sequence[str], top: int | None) -> Brought:
    """Queries that a language model wrote, each for one document; of all of them those with the best scores.

    A score is that of a reranker or, where there is none, the mean of the logarithms of the tokens' probabilities.
    """
    files = row_files(folder, patterns)
    has_names = any(_text_in(row) is None for path, _ in files for row in _first(read_rows(path)))
    if has_names and not collection_files(collection, DOCUMENTS):
        raise InputError(
            f"{collection}: holds no documents, and the queries name theirs by doc_id; there should be a corpus.jsonl, "
            "or layout.collection names one."
        )
    return Brought(
        examples=partial(_examples_of_inpars, files, top),
        texts=partial(_texts_of_inpars, files, collection if has_names else None),
    )


def _first(rows: Iterator[Row]) -> Iterator[Row]:
    row = next(rows, None)
    if row is not None:
        yield row


def _examples_of_inpars(files: Sequence[tuple[Path, str]], top: int | None, counts: Counter[str]) -> Iterator[Example]:
    chosen: set[int] | None = None
    if top is not None:
        found = np.array([_score_of_inpars(row) for path, _ in files for row in read_rows(path)])
        chosen = set(np.argsort(-found, kind="stable")[:top].tolist())
        counts["queries beyond the best scores"] += len(found) - len(chosen)
    numbered = enumerate((row, split) for path, split in files for row in read_rows(path))
    for number, (row, split) in numbered:
        if chosen is not None and number not in chosen:
            continue
        query = text_id(row.text("query", "question"), None, is_query=True)
        document = _text_in(row)
        near = key_of(row.identifier("doc_id"), DOCUMENTS) if document is None else text_id(*document, is_query=False)
        yield Example(query, [near], [], split)


def _texts_of_inpars(files: Sequence[tuple[Path, str]], collection: Path | None) -> Iterator[Texts]:
    queries, documents = list[str | None](), list[Part]()
    for path, _ in files:
        for row in read_rows(path):
            queries.append(row.text("query", "question"))
            document = _text_in(row)
            if document is not None:
                documents.append(document)
            if len(queries) >= TEXTS_AT_ONCE:
                yield from inline(queries, documents)
                queries, documents = [], []
    yield from inline(queries, documents)
    if collection is not None:
        yield from named_texts(collection, DOCUMENTS)


def _text_in(row: Row) -> Part | None:
    """The title and the text of the document that a query brings, if it does."""
    text = row.text("doc_text", "text")
    return None if text is None else (row.text("title"), text)


def _score_of_inpars(row: Row) -> float:
    key = next((key for key in ("score", "log_probs") if row.values.get(key) is not None), None)
    if key is None:
        raise InputError(f"{row.place}: has no score and no log_probs, and layout.top chooses by them.")
    given = [row.as_number(value, key) for value in as_list(row, key)]
    return float(np.mean(given)) if given else -np.inf
