"""Scores of a cross-encoder for pairs of a query and a document, and the negatives that are kept by them.

A published file of mined negatives has 160 million scores, and neither they nor the negatives come in one order: both
are dealt out by query to files on the disk, and memory holds those of one file.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.id_sets import Ids
from cocite.core.lookup import look_up
from cocite.core.rows import PARQUET, Row, is_json_lines, read_batches, read_fields, read_rows, shown
from cocite.triplets.brought_pairs.reading import DOCUMENTS, QUERIES, keys_of

PARTS = 64
PAIR = np.dtype([("query", np.int64), ("document", np.int64), ("score", np.float64)])
QUERY_KEYS = ("query_id", "qid")
DOCUMENT_KEYS = ("corpus_id", "passage_id", "doc_id", "pid")
PICKLED = (".pkl", ".pickle", ".pkl.gz", ".pickle.gz")
PUBLISHED = "sentence-transformers/msmarco-scores-ms-marco-MiniLM-L6-v2"
ROWS_AT_ONCE = 10_000
QUERIES_AT_ONCE = 1_000
"""Rows of Parquet, which may have hundreds of scores each."""
TOO_CLOSE = "negatives that the scores do not tell from positives, or that have no score"
"""How negatives are counted that are left out."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Which negatives are kept."""

    margin: float | None = None
    """So much less than the lowest score of a positive of the query, or still less."""
    most: float | None = None
    """A score of at most so much."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.margin is not None or self.most is not None

    def kept(self, positives: Sequence[float], negatives: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of a query's negatives is kept; without a score, which is not a number, it is not."""
        most = np.inf if self.most is None else self.most
        if self.margin is not None:
            most = min(most, min(positives, default=-np.inf) - self.margin)
        kept: NDArray[np.bool_] = negatives <= most
        return kept


class Scores:
    """The scores of some queries."""

    def __init__(self, pairs: NDArray[Any]) -> None:
        self.pairs = pairs[np.lexsort((pairs["document"], pairs["query"]))]

    def of(self, query: int, documents: Sequence[int] | Ids) -> NDArray[np.float64]:
        """The scores of a query's documents; not a number where there is none."""
        first, last = np.searchsorted(self.pairs["query"], [query, query + 1])
        known = self.pairs["document"][first:last]
        found = np.full(len(documents), np.nan, dtype=np.float64)
        places, is_known = look_up(known, np.asarray(documents, dtype=np.int64))
        found[is_known] = self.pairs["score"][first:last][places[is_known]]
        return found


def part_of(query: int) -> int:
    """The number of the file that a query is dealt out to."""
    return query & (PARTS - 1)


def score_files(folder: Path) -> list[Path]:
    """The files of scores in a folder, or that file alone. Raises `InputError` where there are none but pickles."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if not path.is_dir())
    scored = [path for path in files if path.suffix == ".parquet" or is_json_lines(path) or _is_tabs(path)]
    if not scored:
        pickled = next((path.name for path in files if path.name.endswith(PICKLED)), None)
        why = f"{pickled} is a pickle, which is not loaded" if pickled else "it holds no table"
        raise InputError(
            f"{folder}: gives no scores ({why}); a table of query, document and score is needed, as TSV, JSON Lines or "
            f"Parquet. The dataset {PUBLISHED} has those of MS MARCO."
        )
    return scored


def deal_out_scores(files: Sequence[Path], folder: Path) -> None:
    """Write the scores to the files of their queries."""
    with ExitStack() as stack:
        parts = [stack.enter_context((folder / f"scores-{part}").open("wb")) for part in range(PARTS)]
        for path in files:
            for pairs in _read(path):
                of_part = pairs["query"] & (PARTS - 1)
                order = np.argsort(of_part, kind="stable")
                ends = np.searchsorted(of_part[order], np.arange(PARTS + 1))
                for part, first, last in zip(parts, ends[:-1], ends[1:], strict=True):
                    part.write(pairs[order[first:last]].tobytes())


def scores_of_part(part: int, folder: Path) -> Scores:
    """The scores that were dealt out to a file."""
    return Scores(np.fromfile(folder / f"scores-{part}", dtype=PAIR))


def _is_tabs(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".tsv", ".txt"))


def _read(path: Path) -> Iterator[NDArray[Any]]:
    if path.suffix == ".parquet":
        with explain_unreadable(path, PARQUET):
            yield from _read_parquet(path)
    elif is_json_lines(path):
        yield from _in_parts(_of_row(row) for row in read_rows(path))
    else:
        yield from _in_parts(_of_tabs(path))


def _in_parts(rows: Iterator[tuple[str, Sequence[str], Sequence[float]]]) -> Iterator[NDArray[Any]]:
    """Queries, each with documents and their scores, as pairs, some at a time."""
    queries, documents, scores = list[str](), list[str](), list[float]()
    for query, its_documents, its_scores in rows:
        queries += [query] * len(its_documents)
        documents += its_documents
        scores += its_scores
        if len(queries) >= ROWS_AT_ONCE:
            yield _pairs(keys_of(queries, QUERIES), keys_of(documents, DOCUMENTS), np.array(scores))
            queries, documents, scores = [], [], []
    if queries:
        yield _pairs(keys_of(queries, QUERIES), keys_of(documents, DOCUMENTS), np.array(scores))


def _pairs(queries: Ids, documents: Ids, scores: NDArray[Any]) -> NDArray[Any]:
    pairs = np.empty(len(queries), dtype=PAIR)
    pairs["query"], pairs["document"], pairs["score"] = queries, documents, scores
    return pairs


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


def _read_parquet(path: Path) -> Iterator[NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from cocite.core.plain_columns import whole_numbers

    for batch in read_batches(path, [*QUERY_KEYS, *DOCUMENT_KEYS, "score"], rows=QUERIES_AT_ONCE):
        there = batch.schema.names
        query, document = (next((key for key in keys if key in there), None) for keys in (QUERY_KEYS, DOCUMENT_KEYS))
        if query is None or document is None or "score" not in there:
            raise InputError(
                f"{path}: has no columns {' or '.join(QUERY_KEYS)}, {' or '.join(DOCUMENT_KEYS)} and score."
            )
        queries, documents, scores = batch[query], batch[document], batch["score"]
        lengths = [pc.list_value_length(each) if pa.types.is_list(each.type) else None for each in (documents, scores)]
        if lengths[0] != lengths[1]:
            raise InputError(f"{path}: score must have as many items in each row as {document}.")
        if pa.types.is_list(documents.type):
            queries = queries.take(pc.list_parent_indices(documents))
            documents, scores = documents.flatten(), scores.flatten()
        ids = {query: whole_numbers(queries), document: whole_numbers(documents)}
        for key, column in ids.items():
            if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
                raise InputError(f"{path}: {key} must be a text or an integer in each row, not {column.type} or null.")
        if len(scores) != len(documents) or not (pa.types.is_floating(scores.type) or pa.types.is_integer(scores.type)):
            raise InputError(f"{path}: score must be a number for each document, not {batch['score'].type}.")
        keys = _keys(ids[query], QUERIES), _keys(ids[document], DOCUMENTS)
        yield _pairs(*keys, scores.to_numpy(zero_copy_only=False))


def _keys(column: Any, role: str) -> Ids:
    """The keys of a column of ids, whole numbers or texts."""
    import pyarrow as pa

    is_whole = pa.types.is_integer(column.type) and column.type != pa.uint64()
    return keys_of(column.to_numpy().astype(np.int64) if is_whole else column.to_pylist(), role)
