"""Which papers are queries, which are excluded from training, and which are documents of a benchmark.

The table queries lists the queries and the excluded papers: those held out for this run's own benchmarks, those that
the configuration excludes, and all papers from the year `queries.holdout_from` on. They occur in no graph, index,
triplet or vocabulary. Of papers that are one work, one represents the others, its twins.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables.files import open_table, read_table, table_in
from cocite.core.written_ids import distinct, ids_in, look_up, text_ids

VALIDATION = "validation"
QUERIES = ("train", VALIDATION)
HELD_OUT = "holdout"
EXCLUDED = "excluded"
HELD_OUT_BY_TIME = "holdout-by-time"
LATER = "later"
FROM_THE_CUT_ON = (HELD_OUT_BY_TIME, LATER)
KEPT_OUT = (HELD_OUT, EXCLUDED, *FROM_THE_CUT_ON)
TWIN = "twin"
NO_TEXT = 0
"""In place of the id of a document without a text."""
NO_PAPER = -1
"""In place of the corpus id of a document that is not known to be a paper of the corpus."""
ROWS_AT_ONCE = 4096
HASHED_AUTHORS = r"""
    list_transform(list_filter(list_transform(authors, lambda author:
        trim(regexp_replace(lower(strip_accents(author)), '[^\p{L}\p{N}]+', ' ', 'g'))
    ), lambda name: name <> ''), lambda name: hash(name))
"""
"""The names of the authors of a paper, without case, accents and punctuation, in SQL. Hashes are of one size, whatever
the names, so that joining them takes less memory."""

Names = TypeVar("Names", pa.Array, pa.ChunkedArray)


def read_queries(path: Path) -> pa.Table:
    """The papers that anchor triplets: corpusid, split (train or validation)."""
    return _of_splits(path, QUERIES)


def read_validation_queries(path: Path) -> Any:
    """The queries that are validated on, by their corpus ids."""
    return _of_splits(path, (VALIDATION,))["corpusid"].to_numpy()


def read_kept_out(path: Path) -> pa.Table:
    """The papers that are kept out: corpusid, split (one of `KEPT_OUT`)."""
    return _of_splits(path, KEPT_OUT)


class Twins(NamedTuple):
    """Papers, rising, and the papers that represent them, which are other records of the same works."""

    papers: NDArray[np.int64]
    works: NDArray[np.int64]

    def members(self) -> "Twins":
        """All papers of works with twins, including the representatives."""
        papers = distinct(self.papers, self.works)
        return Twins(papers, self.works_of(papers))

    def as_table(self) -> pa.Table:
        """The columns corpusid and work."""
        return pa.table({"corpusid": self.papers, "work": self.works})

    def works_of(self, papers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The papers that represent some papers: most of them themselves."""
        places, is_twin = look_up(self.papers, papers)
        works = papers.copy()
        works[is_twin] = self.works[places[is_twin]]
        return works


NO_TWINS = Twins(np.empty(0, np.int64), np.empty(0, np.int64))


def read_twins(path: Path) -> Twins:
    """The papers of the table queries that another one represents."""
    with open_table(path, "queries") as file:
        if "work" not in file.schema_arrow.names:
            return NO_TWINS
        rows = file.read(["corpusid", "work"])
    rows = rows.filter(rows["work"].is_valid())
    return Twins(rows["corpusid"].to_numpy(), rows["work"].to_numpy())


def _of_splits(path: Path, splits: tuple[str, ...]) -> pa.Table:
    table = open_table(path, "queries").read(["corpusid", "split"])
    return table.filter(pc.is_in(table["split"], pa.array(splits)))


def numbers_of(documents: Path) -> pa.Table:
    """Name (`document`) and number, or null, of the documents that are no short queries in a table documents."""
    names = names_of_papers(documents)
    return pa.table({"document": names, "number": numbers_in(names)})


def names_of_papers(documents: Path) -> pa.Array:
    """The names of the documents in a table documents that are no short queries."""
    names = (batch.filter(pc.invert(batch["is_query"]))["document"] for batch in read_documents(documents, texts=()))
    return pa.concat_arrays([pa.array([], pa.string()), *names])


def numbers_in(names: Names) -> Names:
    """The numbers in the names of documents, which are ids, behind a colon if tasks share it; null if not numbers."""
    return ids_in(pc.replace_substring_regex(names, r"^.*:", ""))


def keys_in(names: Names) -> Names:
    """What papers may be known by in names of documents: numbers and Semantic Scholar's hashes; null in others."""
    keys = pc.replace_substring_regex(names, r"^.*:", "")
    is_key = pc.or_(pc.is_valid(numbers_in(names)), pc.match_substring_regex(keys, "^[0-9a-fA-F]{40}$"))
    return pc.if_else(is_key, keys, pa.scalar(None, pa.string()))


def corpus_ids_of(documents: Path, papers: Path | None = None) -> tuple[NDArray[np.int64], int]:
    """Corpus ids of the documents in a table documents, and how many documents have none.

    Unless their own ids are corpus ids, `papers` is the table document_papers. Ids without a record in papers are among
    them: they may be ends of citations.
    """
    if papers is None:
        numbers = numbers_of(documents)["number"]
        return numbers.drop_null().to_numpy(), numbers.null_count
    found = read_table(papers, "document_papers", ["document", "corpusid"])
    return found["corpusid"].to_numpy(), len(names_of_papers(documents)) - len(pc.unique(found["document"]))


def papers_of_documents(papers: Path | None) -> Callable[[pa.Array], NDArray[np.int64]]:
    """Gives documents by their names their corpus ids, the first of several; NO_PAPER if none is known."""
    if papers is None:
        return lambda names: numbers_in(names).fill_null(NO_PAPER).to_numpy(zero_copy_only=False)
    known = known_papers(papers)
    documents, ids = known["document"].combine_chunks(), np.append(known["corpusid"].to_numpy(), NO_PAPER)
    return lambda names: ids[pc.index_in(names, value_set=documents).fill_null(len(known)).to_numpy()]


def known_papers(papers: Path) -> pa.Table:
    """The documents in a table document_papers that papers of the corpus are known for, with these."""
    found = read_table(papers, "document_papers", ["document", "corpusid", "has_record"])
    return found.filter(found["has_record"])


def with_papers(paths: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Each table documents among some paths with the table document_papers of its benchmark, if that is among them."""
    found = {path.stem: path for path in paths if table_in(path) == "document_papers"}
    for path in paths:
        if path not in found.values():
            yield path, found.get(path.parent.name)


def read_documents(documents: Path, texts: Sequence[str] = ("title", "abstract")) -> Iterator[pa.RecordBatch]:
    """The columns document and is_query of a table documents, and those of texts, some rows at a time."""
    file = open_table(documents, "documents")
    columns = [name for name in ("document", *texts, "is_query") if name in file.schema_arrow.names]
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
        is_query = batch["is_query"].fill_null(False) if "is_query" in columns else pa.array([False] * len(batch))
        yield pa.record_batch({**{name: batch[name] for name in ("document", *texts)}, "is_query": is_query})


def text_ids_of(documents: Path) -> Iterator[tuple[pa.Array, NDArray[np.int64]]]:
    """The names of documents, some at a time, and the id of each one's text (`text_id`), or NO_TEXT."""
    for batch in read_documents(documents):
        titles, abstracts = (batch[name].to_pylist() for name in ("title", "abstract"))
        is_query = batch["is_query"].to_numpy(zero_copy_only=False)
        ids = np.where(is_query, *(text_ids(titles, abstracts, is_query=each) for each in (True, False)))
        has_text = [bool(title or abstract) for title, abstract in zip(titles, abstracts, strict=True)]
        yield batch["document"], np.where(has_text, ids, NO_TEXT)
