"""SPECTER's training files (Cohan et al., 2020): which papers each paper cites, and the papers' texts.

    data.json             for each query, its documents and how near they are: {"QUERY": {"DOCUMENT": {"count": 5}}}
    metadata.json         title and abstract of each paper, by its name
    train.txt, val.txt    names of the queries of each split

The triplets of SPECTER2 are rows of texts in Parquet.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.rows import read_members, read_objects
from cocite.triplets.brought_pairs.reading import (
    DOCUMENTS,
    TEXTS_AT_ONCE,
    TRAINING,
    UNTOLD,
    VALIDATION,
    Brought,
    Example,
    Texts,
    key_of,
    keys_of,
)
from cocite.triplets.brought_pairs.scores import Bounds
from cocite.triplets.brought_pairs.text_rows import read_text_rows

DIRECT = 5
"""The count of a document that the query cites; a lesser count is of one that is cited by a paper which it cites."""
OF_NEITHER = "queries of data.json in neither train.txt nor val.txt"


def read_specter(folder: Path, patterns: Sequence[str]) -> Brought:
    """Papers by their names, and how often each is cited by a query: 5 for a direct citation, 1 for one two away."""
    if not (folder / "data.json").is_file():
        return read_text_rows(folder, patterns, Bounds())
    if not (folder / "metadata.json").is_file():
        raise InputError(f"{folder}: holds data.json and no metadata.json, which has the titles and abstracts.")
    return Brought(examples=partial(_examples_of_counts, folder), texts=partial(_texts_of_metadata, folder))


def _examples_of_counts(folder: Path, counts: Counter[str]) -> Iterator[Example]:
    splits = dict[str, str]()
    for name, split in (("train", TRAINING), ("val", VALIDATION)):
        path = folder / f"{name}.txt"
        if path.is_file():
            with explain_unreadable(path, "file of text"):
                names = path.read_text(encoding="utf-8-sig").splitlines()
            splits |= {line.strip(): split for line in names if line.strip()}
    counts[OF_NEITHER] += 0
    for query, others in read_members(folder / "data.json"):
        place = f"{folder / 'data.json'}, {query}"
        if splits and query not in splits:
            counts[OF_NEITHER] += 1
            continue
        near, far = list[int](), list[int]()
        for document, said in others.items() if isinstance(others, Mapping) else [("", None)]:
            count = said.get("count") if isinstance(said, Mapping) else None
            if isinstance(count, bool) or not isinstance(count, int | float):
                raise InputError(f'{place}: must be an object such as {{"DOCUMENT": {{"count": 5}}}}.')
            (near if count >= DIRECT else far).append(key_of(document, DOCUMENTS))
        yield Example(key_of(query, DOCUMENTS), near, far, splits.get(query, UNTOLD))


def _texts_of_metadata(folder: Path) -> Iterator[Texts]:
    path = folder / "metadata.json"
    names, titles, abstracts = list[str](), list[str | None](), list[str | None]()
    for name, row in read_objects(path):
        names.append(name)
        titles.append(row.text("title"))
        abstracts.append(row.text("abstract"))
        if len(names) == TEXTS_AT_ONCE:
            yield Texts(keys_of(names, DOCUMENTS), titles, abstracts, are_queries=False)
            names, titles, abstracts = [], [], []
    yield Texts(keys_of(names, DOCUMENTS), titles, abstracts, are_queries=False)
