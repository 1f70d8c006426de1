"""Rows that hold texts: JSON Lines or Parquet with a query, positives and, where there are some, negatives and scores.

A short query is a plain string. A document is one, or an object of a title and an abstract; so is a query that is a
paper, as in SPECTER2's triplets (`cite_prediction_new`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cocite.core.errors import InputError
from cocite.core.rows import Row, read_rows
from cocite.core.text_ids import text_id, text_ids
from cocite.triplets.brought_pairs.reading import (
    TEXTS_AT_ONCE,
    Brought,
    Example,
    Texts,
    as_list,
    row_files,
)
from cocite.triplets.brought_pairs.scores import TOO_CLOSE, Bounds

Part = tuple[str | None, str | None]
"""The title and the abstract of a text."""

COLUMNS = {
    "query": re.compile("query|anchor"),
    "positives": re.compile(r"positives?|pos|positive_\d+"),
    "negatives": re.compile(r"negatives?|neg|negative_\d+"),
    "positive_scores": re.compile("positive_scores?"),
    "negative_scores": re.compile("negative_scores?"),
    "": re.compile("_?id|(query|positive|negative)_ids?|metadata"),
}
"""What each column is, by its name; those of no role are not read."""


def read_text_rows(folder: Path, patterns: Sequence[str], bounds: Bounds) -> Brought:
    """Rows whose texts stand in them: plain strings, or objects of a title and an abstract."""
    files = row_files(folder, patterns)
    return Brought(examples=partial(_examples_of_rows, files, bounds), texts=partial(_texts_of_rows, files))


def _examples_of_rows(files: Sequence[tuple[Path, str]], bounds: Bounds, counts: Counter[str]) -> Iterator[Example]:
    for path, split in files:
        for row in read_rows(path):
            query, positives, negatives = _parts_of(row)
            near = [_document(part) for part in positives]
            far = [_document(part) for part in negatives]
            if bounds:
                kept = bounds.kept(*_scores_of(row, bounds, len(near), len(far)))
                counts[TOO_CLOSE] += len(far) - int(kept.sum())
                far = [key for key, is_kept in zip(far, kept.tolist(), strict=True) if is_kept]
            yield Example(_query(query), near, far, split)


def _texts_of_rows(files: Sequence[tuple[Path, str]]) -> Iterator[Texts]:
    queries, documents = list[str | None](), list[Part]()
    for path, _ in files:
        for row in read_rows(path):
            query, positives, negatives = _parts_of(row)
            if isinstance(query, tuple):
                documents.append(query)
            else:
                queries.append(query)
            documents += [*positives, *negatives]
            if len(documents) + len(queries) >= TEXTS_AT_ONCE:
                yield from inline(queries, documents)
                queries, documents = [], []
    yield from inline(queries, documents)


def inline(queries: Sequence[str | None], documents: Sequence[Part]) -> Iterator[Texts]:
    """Texts that stand in rows: their keys are their ids."""
    none = [None] * len(queries)
    titles, abstracts = [title for title, _ in documents], [abstract for _, abstract in documents]
    yield Texts(text_ids(queries, none, is_query=True), queries, none, are_queries=True)
    yield Texts(text_ids(titles, abstracts, is_query=False), titles, abstracts, are_queries=False)


def _parts_of(row: Row) -> tuple[str | Part | None, list[Part], list[Part]]:
    """The query of a row, a short one as text, its positives and its negatives."""
    roles = _roles(row)
    [query] = roles["query"]
    given = row.values[query]
    positives = [part for key in roles["positives"] for part in _parts(row, key)]
    negatives = [part for key in roles["negatives"] for part in _parts(row, key)]
    if isinstance(given, Mapping):
        return _part(row, given, query), positives, negatives
    return (None if given is None else row.as_text(given, query)), positives, negatives


def _roles(row: Row) -> dict[str, list[str]]:
    """The columns of a row by what they are. Raises `InputError` where one is unknown, or there is no query."""
    roles: dict[str, list[str]] = {role: [] for role in COLUMNS}
    for key in row.values:
        role = next((role for role, name in COLUMNS.items() if name.fullmatch(key)), None)
        if role is None:
            raise InputError(
                f"{row.place}: has the unknown column {key!r}; a row has a query, positives, negatives, "
                "positive_scores and negative_scores."
            )
        roles[role].append(key)
    if len(roles["query"]) != 1 or not roles["positives"]:
        raise InputError(f"{row.place}: has no query, or no positive (its columns: {', '.join(row.values) or 'none'}).")
    return roles


def _parts(row: Row, key: str) -> Iterator[Part]:
    return (_part(row, value, key) for value in as_list(row, key) if value is not None)


def _part(row: Row, value: Any, key: str) -> Part:
    """A document: a text, or an object of a title and an abstract, or a text in its place."""
    if not isinstance(value, Mapping):
        return None, row.as_text(value, key)
    inner = Row(dict(value), row.path, row.at)
    return inner.text("title"), inner.text("abstract", "text")


def _query(part: str | Part | None) -> int:
    return _document(part) if isinstance(part, tuple) else text_id(part, None, is_query=True)


def _document(part: Part) -> int:
    return text_id(*part, is_query=False)


def _scores_of(row: Row, bounds: Bounds, positives: int, negatives: int) -> tuple[list[float], Any]:
    """The scores of a row's positives and negatives. Raises `InputError` where there are not as many."""
    roles, found = _roles(row), list[list[float]]()
    for role, count in (("positive_scores", positives), ("negative_scores", negatives)):
        given = [value for key in roles[role] for value in as_list(row, key)]
        needed = role == "negative_scores" or bounds.margin is not None
        if needed and len(given) != count:
            raise InputError(
                f"{row.place}: has {len(given)} {role} for {count} {role.removesuffix('_scores')}s; margin and "
                "max_score need one for each."
            )
        found.append([row.as_number(value, role) for value in given])
    return found[0], np.array(found[1], dtype=np.float64)
