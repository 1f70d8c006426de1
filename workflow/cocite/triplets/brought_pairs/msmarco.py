"""MS MARCO's mined negatives, as sentence-transformers publishes them (`msmarco-hard-negatives.jsonl.gz`).

Each line has a query, its positives and, by the name of each system that mined them, documents that rank high:
{"qid": 867436, "pos": [5238393], "neg": {"bm25": [...], ...}}. The texts are those of MS MARCO's collection.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.rows import Row, read_rows, shown
from cocite.triplets.brought_pairs import scores
from cocite.triplets.brought_pairs.reading import (
    DOCUMENTS,
    QUERIES,
    Brought,
    Example,
    all_named,
    as_list,
    key_of,
    keys_of,
)
from cocite.triplets.brought_pairs.scores import TOO_CLOSE, Bounds

BEYOND = "negatives beyond per_system"
NO_POSITIVE = "queries without a positive"


def read_msmarco(
    folder: Path,
    collection: Path,
    scored: Path | None,
    *,
    bounds: Bounds,
    per_system: int | None,
    systems: Sequence[str],
    spill_to: Path,
) -> Brought:
    """Queries with positives and, of each of several systems, negatives that it ranks high, by their names.

    As published, a negative is kept if its score is at most that of the query's lowest positive less a margin, and each
    system gives so many that no system before it gave. Raises `InputError` for bounds without scores.
    """
    mined = _mined_in(folder)
    files = None if scored is None else scores.score_files(scored)
    if files is None and bounds:
        raise InputError(
            f"{folder}: margin and max_score need scores; layout.scores names them, such as the dataset "
            f"{scores.PUBLISHED}."
        )

    def examples(counts: Counter[str]) -> Iterator[Example]:
        counts[TOO_CLOSE] += 0
        counts[BEYOND] += 0
        counts[NO_POSITIVE] += 0
        if files is None or not bounds:
            for row in read_rows(mined):
                yield from _example_of_mined(row, None, bounds, per_system, systems, counts)
            return
        with spill_folder(spill_to) as temporary:
            scores.deal_out_scores(files, Path(temporary))
            for part, rows in _dealt_out_rows(mined, Path(temporary)):
                known = scores.scores_of_part(part, Path(temporary))
                for row in rows:
                    yield from _example_of_mined(row, known, bounds, per_system, systems, counts)

    return Brought(examples=examples, texts=partial(all_named, collection))


def _mined_in(folder: Path) -> Path:
    names = ("msmarco-hard-negatives.jsonl.gz", "msmarco-hard-negatives.jsonl")
    places = [folder] if folder.is_file() else [folder / name for name in names]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise InputError(f"{folder}: holds no {names[0]}, as sentence-transformers publishes MS MARCO's negatives.")
    return found


def _dealt_out_rows(mined: Path, folder: Path) -> Iterator[tuple[int, Iterator[Row]]]:
    """The rows whose queries are dealt out to each file, file by file."""
    paths = [folder / f"rows-{part}.jsonl" for part in range(scores.PARTS)]
    files = [path.open("w", encoding="utf-8") for path in paths]
    try:
        for row in read_rows(mined):
            part = scores.part_of(key_of(row.identifier("qid"), QUERIES))
            files[part].write(json.dumps({**row.values, "line": row.at}) + "\n")
    finally:
        for file in files:
            file.close()
    for part, path in enumerate(paths):
        yield part, (Row(row.values, mined, row.values["line"]) for row in read_rows(path))


def _example_of_mined(
    row: Row,
    known: scores.Scores | None,
    bounds: Bounds,
    per_system: int | None,
    systems: Sequence[str],
    counts: Counter[str],
) -> Iterator[Example]:
    """The example of a row; none where it has no positive."""
    query = key_of(row.identifier("qid"), QUERIES)
    near = _keys(row, "pos", as_list(row, "pos")).tolist()
    mined = row.values.get("neg") or {}
    if not isinstance(mined, Mapping):
        raise InputError(f"{row.place}: neg must be an object of systems and their documents, not {shown(mined)}.")
    unknown = [name for name in systems if name not in mined]
    if unknown and row.at == 1:
        raise InputError(f"{row.place}: has no system {unknown[0]!r}; it has {', '.join(mined)}.")
    if not near:
        counts[NO_POSITIVE] += 1
        return
    given = [mined.get(name, []) for name in systems or mined]
    for name, documents in zip(systems or mined, given, strict=True):
        if not isinstance(documents, list):
            raise InputError(f"{row.place}: neg must have a list for the system {name!r}, not {shown(documents)}.")
    far = _keys(row, "neg", [document for of_system in given for document in of_system])
    is_kept = np.ones(len(far), dtype=bool)
    if known is not None:
        of_positives = known.of(query, near)
        is_kept = bounds.kept(of_positives[~np.isnan(of_positives)].tolist(), known.of(query, far))
        counts[TOO_CLOSE] += len(far) - int(is_kept.sum())
    taken, first = dict[int, None](), 0
    for of_system in given:
        some = slice(first, first + len(of_system))
        fresh = [key for key in dict.fromkeys(far[some][is_kept[some]].tolist()) if key not in taken]
        counts[BEYOND] += len(fresh) - len(fresh[:per_system])
        taken |= dict.fromkeys(fresh[:per_system])
        first = some.stop
    yield Example(query, near, list(taken))


def _keys(row: Row, key: str, documents: Sequence[Any]) -> Ids:
    """The keys of some documents. Raises `InputError` where one is no id."""
    for document in documents:
        if type(document) is not int:
            row.as_identifier(document, key)
    return keys_of(documents, DOCUMENTS)
