"""BEIR's layout (Thakur et al., 2021): queries and documents by their names, and judgements of them.

corpus.jsonl       documents: _id, title, text
queries.jsonl      queries: _id, text
qrels/train.tsv    query, document and relevance between tabs, behind a line of names
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from cocite.core.errors import InputError
from cocite.core.rows import read_fields, shown
from cocite.triplets.brought_pairs.reading import (
    DOCUMENTS,
    QUERIES,
    TRAINING,
    UNTOLD,
    VALIDATION,
    Brought,
    Example,
    all_named,
    key_of,
)


def read_beir(folder: Path, qrels: Path, validate: str) -> Brought:
    """Queries and documents by their names, and judgements: of a relevance of 0, a document is a negative."""
    files = {TRAINING: _qrels_in(qrels, "train")}
    if files[TRAINING] is None:
        raise InputError(f"{qrels}: holds no qrels/train.tsv, the judgements to train on.")
    if validate != "share":
        files[VALIDATION] = _qrels_in(qrels, validate)
    if validate == "test" and files[VALIDATION] is None:
        raise InputError(f"{qrels}: holds no qrels/test.tsv, and layout.validate_on is test.")
    return Brought(
        examples=partial(_examples_of_qrels, {split: path for split, path in files.items() if path}),
        texts=partial(all_named, folder),
    )


def _qrels_in(folder: Path, name: str) -> Path | None:
    places = [folder / inner / f"{name}.tsv{end}" for inner in ("qrels", ".") for end in ("", ".gz")]
    return next((path for path in places if path.is_file()), None)


def _examples_of_qrels(files: Mapping[str, Path], counts: Counter[str]) -> Iterator[Example]:
    for split, path in files.items():
        queries, documents, grades = array("q"), array("q"), array("d")
        for number, (query, document, grade) in read_fields(path, 3):
            try:
                relevance = float(grade)
            except ValueError:
                if number == 1:  # the names of the columns
                    continue
                relevance = math.nan
            if not math.isfinite(relevance):
                raise InputError(f"{path}, line {number}: the relevance must be a number, not {shown(grade)}.")
            grades.append(relevance)
            queries.append(key_of(query, QUERIES))
            documents.append(key_of(document, DOCUMENTS))
        of_queries, of_documents = np.array(queries), np.array(documents)
        is_near = np.array(grades) > 0
        order = np.argsort(of_queries, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(of_queries[order], prepend=-1)), len(order))
        told = split if len(files) > 1 else UNTOLD
        for first, last in pairwise(starts.tolist()):
            rows = order[first:last]
            near, far = (of_documents[rows[is_near[rows] == which]].tolist() for which in (True, False))
            yield Example(int(of_queries[rows[0]]), near, far, told)
