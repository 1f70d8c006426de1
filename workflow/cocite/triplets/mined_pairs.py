"""MS MARCO's mined negatives, as sentence-transformers publishes them (`msmarco-hard-negatives.jsonl.gz`), and scores.

A line has a query, its positives and, by the name of each system that mined them, documents that rank high:
{"qid": 867436, "pos": [5238393], "neg": {"bm25": [...], ...}}. The 160 million scores of a cross-encoder are in another
order: both are partitioned by query into files on the disk, one of which is in memory at a time.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.rows import Row, is_json_lines, read_fields, read_rows, shown
from cocite.core.written_ids import Ids, look_up
from cocite.triplets import user_pairs
from cocite.triplets.samplers.pairs import MsMarco
from cocite.triplets.user_pairs import DOCUMENTS, QUERIES, TOO_CLOSE, Example, UserPairs, as_list, key_of, keys_of

BEYOND = "negatives beyond per_system"
NO_POSITIVE = "queries without a positive"
MINED = "msmarco-hard-negatives.jsonl"
PARTS = 64
PAIR = np.dtype([("query", np.int64), ("document", np.int64), ("score", np.float64)])
QUERY_KEYS = ("query_id", "qid")
DOCUMENT_KEYS = ("corpus_id", "passage_id", "doc_id", "pid")
PICKLED = (".pkl", ".pickle", ".pkl.gz", ".pickle.gz")
PUBLISHED = "sentence-transformers/msmarco-scores-ms-marco-MiniLM-L6-v2"
SCORES_AT_ONCE = 10_000


def read_msmarco(folder: Path, collection: Path, scored: Path | None, layout: MsMarco, spill_to: Path) -> UserPairs:
    """Queries with positives and, of each of several systems, negatives that it ranks high, by their names. As
    published, a negative scores at most the query's lowest positive less a margin, and each system gives up to
    `per_system` that no system before it gave."""
    paths = [folder] if folder.is_file() else [folder / f"{MINED}.gz", folder / MINED]
    mined = next((path for path in paths if path.is_file()), None)
    if mined is None:
        raise InputError(f"{folder}: contains no {MINED}.gz, as sentence-transformers publishes MS MARCO's negatives.")
    files = None if scored is None else _score_files(scored)

    def examples(counts: Counter[str]) -> Iterator[Example]:
        counts.update(dict.fromkeys((TOO_CLOSE, BEYOND, NO_POSITIVE), 0))
        example_of = partial(_example_of, layout=layout, counts=counts)
        if files is None:
            for row in read_rows(mined):
                yield from example_of(row, None)
            return
        with spill_folder(spill_to) as temporary:
            deal_out_scores(files, Path(temporary))
            paths = [Path(temporary, f"rows-{part}.jsonl") for part in range(PARTS)]
            with ExitStack() as stack:
                parts = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
                for row in read_rows(mined):
                    part = key_of(row.identifier("qid"), QUERIES) % PARTS
                    parts[part].write(json.dumps({**row.values, "line": row.at}) + "\n")
            for part, path in enumerate(paths):
                known = Scores(np.fromfile(Path(temporary, f"scores-{part}"), dtype=PAIR))
                for row in read_rows(path):
                    yield from example_of(Row(row.values, mined, row.values["line"]), known)

    return UserPairs(examples=examples, texts=partial(user_pairs.all_named, collection))


def _example_of(row: Row, known: "Scores | None", *, layout: MsMarco, counts: Counter[str]) -> Iterator[Example]:
    query = key_of(row.identifier("qid"), QUERIES)
    near = _keys(row, "pos", as_list(row, "pos")).tolist()
    mined = row.values.get("neg") or {}
    if not isinstance(mined, Mapping):
        raise InputError(f"{row.place}: neg must be an object of systems and their documents, not {shown(mined)}.")
    unknown = [name for name in layout.systems if name not in mined]
    if unknown and row.at == 1:
        raise InputError(f"{row.place}: has no system {unknown[0]!r}; it has {', '.join(mined)}.")
    if not near:
        counts[NO_POSITIVE] += 1
        return
    given = {name: mined.get(name, []) for name in layout.systems or mined}
    for name, documents in given.items():
        if not isinstance(documents, list):
            raise InputError(f"{row.place}: neg must have a list for the system {name!r}, not {shown(documents)}.")
    far = _keys(row, "neg", [document for of_system in given.values() for document in of_system])
    is_kept = np.ones(len(far), dtype=bool)
    if known is not None:
        of_positives = known.of(query, near)
        is_kept = user_pairs.kept(layout, of_positives[~np.isnan(of_positives)].tolist(), known.of(query, far))
        counts[TOO_CLOSE] += len(far) - int(is_kept.sum())
    taken, first = dict[int, None](), 0
    for of_system in given.values():
        some = slice(first, first + len(of_system))
        fresh = [key for key in dict.fromkeys(far[some][is_kept[some]].tolist()) if key not in taken]
        counts[BEYOND] += len(fresh) - len(fresh[: layout.per_system])
        taken |= dict.fromkeys(fresh[: layout.per_system])
        first = some.stop
    yield Example(query, near, list(taken))


def _keys(row: Row, key: str, documents: Sequence[Any]) -> Ids:
    for document in documents:
        if type(document) is not int:
            row.as_identifier(document, key)
    return keys_of(documents, DOCUMENTS)


class Scores:
    """The scores of some queries."""

    def __init__(self, pairs: NDArray[Any]) -> None:
        self.pairs = pairs[np.lexsort((pairs["document"], pairs["query"]))]

    def of(self, query: int, documents: Sequence[int] | Ids) -> NDArray[np.float64]:
        """The scores of a query's documents; NaN for a missing one."""
        known = self.pairs[slice(*np.searchsorted(self.pairs["query"], [query, query + 1]))]
        found = np.full(len(documents), np.nan, dtype=np.float64)
        places, is_known = look_up(known["document"], np.asarray(documents, dtype=np.int64))
        found[is_known] = known["score"][places[is_known]]
        return found


def _score_files(folder: Path) -> list[Path]:
    """The files of scores in a folder, or that file only. Raises `InputError` if there are none except pickles."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if not path.is_dir())
    tabular = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
    scored = [path for path in files if path.suffix == ".parquet" or is_json_lines(path) or path.name.endswith(tabular)]
    if not scored:
        pickled = next((path.name for path in files if path.name.endswith(PICKLED)), None)
        why = f"{pickled} is a pickle, which is not loaded" if pickled else "it contains no table"
        needed = "a table of query, document and score is needed, as TSV, JSON Lines or Parquet"
        raise InputError(f"{folder}: contains no scores ({why}); {needed}. {PUBLISHED} has those of MS MARCO.")
    return scored


def deal_out_scores(files: Sequence[Path], folder: Path) -> None:
    """Write the scores to the files of their queries."""
    with ExitStack() as stack:
        parts = [stack.enter_context((folder / f"scores-{part}").open("wb")) for part in range(PARTS)]
        for path in files:
            for pairs in _read(path):
                of_part = pairs["query"] % PARTS
                order = np.argsort(of_part, kind="stable")
                ends = np.searchsorted(of_part[order], np.arange(PARTS + 1))
                for part, first, last in zip(parts, ends[:-1], ends[1:], strict=True):
                    part.write(pairs[order[first:last]].tobytes())


def _read(path: Path) -> Iterator[NDArray[Any]]:
    queries, documents, scores = list[str](), list[str](), list[float]()
    is_table = path.suffix == ".parquet" or is_json_lines(path)
    rows = map(_of_row, read_rows(path, [*QUERY_KEYS, *DOCUMENT_KEYS, "score"])) if is_table else _of_tabs(path)
    for row in chain(rows, [None]):
        if row is not None:
            queries += [row[0]] * len(row[1])
            documents += row[1]
            scores += row[2]
        if row is None or len(queries) >= SCORES_AT_ONCE:
            pairs = np.empty(len(queries), dtype=PAIR)
            pairs["query"], pairs["document"] = keys_of(queries, QUERIES), keys_of(documents, DOCUMENTS)
            pairs["score"] = scores
            yield pairs
            queries, documents, scores = [], [], []


def _of_tabs(path: Path) -> Iterator[tuple[str, list[str], list[float]]]:
    for number, (query, document, score) in read_fields(path, 3):
        try:
            yield query, [document], [float(score)]
        except ValueError:
            if number > 1:  # the first line may name the columns
                raise InputError(f"{path}, line {number}: the score must be a number, not {shown(score)}.") from None


def _of_row(row: Row) -> tuple[str, list[str], list[float]]:
    key = next((key for key in DOCUMENT_KEYS if key in row.values), DOCUMENT_KEYS[0])
    documents, scores = row.values.get(key), row.values.get("score")
    if not isinstance(documents, list):
        documents, scores = [documents], [scores]
    if not isinstance(scores, list) or len(scores) != len(documents):
        raise InputError(f"{row.place}: score must be a list of {len(documents)} numbers, as {key} is of documents.")
    names = [row.as_identifier(document, key) for document in documents]
    return row.identifier(*QUERY_KEYS), names, [row.as_number(score, "score") for score in scores]
