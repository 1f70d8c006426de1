"""The indexes of a search in a cache: the vectors of each model, and in papers.sqlite what is shown of all papers.

Up to `EXACT_UP_TO` papers are all compared. FAISS sorts copies of more, of 8 bits per number, into lists by their
nearest centroid (IVF with a scalar quantizer, Jégou, Douze & Schmid 2011), and reads the nearest lists; the best papers
are then compared by their whole vectors, read from the disk. So every distance is exact, and only papers in other lists
can be missed. The lists are mapped into memory; whole vectors, of which one would bring many pages of others, are not.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import faiss
import numpy as np
from numpy.typing import NDArray

from cocite.core.atomic import atomic_path, read_object, write_json
from cocite.core.errors import InputError
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import count_rows, finite_vectors
from cocite.core.written_ids import Ids

if TYPE_CHECKING:
    from tqdm import tqdm

FORMAT = 2
"""Raised when the layout of an index changes."""
DIGITS = 16
"""Hexadecimal digits of a digest in a name."""
SIZES = "sizes.json"
"""The sizes of the files of an index."""
EXACT_UP_TO = 50_000
"""Papers that are all compared with each query."""
NPROBE = 32
"""Lists that are read for a query."""
SPARE = 90
"""Papers compared by their whole vectors beyond those asked for: numbers of 8 bits confuse near ties."""
LONG = 5
"""Seconds from which on work shows its progress."""
ROWS_AT_ONCE = 16_384
SEED = 1
"""An index is no result, and needs no seed of a run."""

FILE = "papers.sqlite"
_TABLES = """
    CREATE TABLE papers (place INTEGER PRIMARY KEY, corpusid INTEGER NOT NULL, title TEXT, year INTEGER);
    CREATE TABLE counts (word TEXT PRIMARY KEY, titles INTEGER) WITHOUT ROWID;
    CREATE TABLE records (corpusid INTEGER PRIMARY KEY, doi TEXT COLLATE NOCASE, packed BLOB);
    CREATE VIRTUAL TABLE words USING fts5 (
        title, content = 'papers', content_rowid = 'place', tokenize = 'unicode61 remove_diacritics 2');"""
_INDEXES = """
    INSERT INTO words (rowid, title) SELECT place, title FROM papers WHERE title IS NOT NULL;
    INSERT INTO words (words) VALUES ('optimize');
    CREATE UNIQUE INDEX by_id ON papers (corpusid);
    CREATE INDEX by_doi ON records (doi) WHERE doi IS NOT NULL;
    CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row);
    INSERT INTO counts SELECT term, doc FROM vocabulary;"""
_PAPERS = "SELECT corpusid, title, year FROM papers ORDER BY citation_count DESC NULLS LAST, corpusid"
_SHOWN = "SELECT corpusid, papers.title, year, doi, packed FROM papers JOIN records USING (corpusid)"
_BY_IDS = f"{_SHOWN} WHERE corpusid IN (SELECT value FROM json_each(?)) ORDER BY +place LIMIT ?"  # +: no scan by place
_WITH_WORDS = f"{_SHOWN} JOIN words ON place = words.rowid WHERE words MATCH ? ORDER BY words.rowid LIMIT ?"
_COUNTS = "SELECT word, titles FROM counts WHERE word IN (SELECT value FROM json_each(?))"
PACKED = ("authors", "venue", "fields", "citation_count", "abstract")
DOI = re.compile(r"(?i:(?:https?://)?(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)")


def cache_of(results: Path, cache: Path | None) -> Path:
    """The folder of a run's indexes, by default in the user's cache. Raises `InputError` if it is in the results."""
    within, users = results.resolve(), Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = cache or users / "cocite" / "serve"
    if cache.resolve().is_relative_to(within):
        raise InputError(f"--cache {cache} lies within the results {results}, which are only read; name another.")
    return cache / _digest(str(within))


def cached(folder: Path, name: str, files: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """The folder of an index of these files, which `make` fills unless it is whole; others of this name are deleted."""
    states = [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in files]
    made = folder / f"{name}-{_digest(repr((FORMAT, states)))}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:  # held, so that other servers of the run wait for the index
        with suppress(OSError):  # A disk without locks cannot hold them back.
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_whole(made):
            with atomic_path(made) as temporary:
                temporary.mkdir()
                make(temporary)
                written = [path for path in temporary.rglob("*") if path.is_file()]
                sizes = {str(path.relative_to(temporary)): path.stat().st_size for path in written}
                write_json(temporary / SIZES, sizes)
        for other in folder.glob(f"{name}-{'[0-9a-f]' * DIGITS}"):
            if other != made:
                shutil.rmtree(other)
    return made


def _is_whole(made: Path) -> bool:
    """Whether a folder has all of its files: systems delete old files of caches, and a crash leaves short ones."""
    try:
        return all((made / name).stat().st_size == size for name, size in read_object(made / SIZES).items())
    except (InputError, OSError):
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def index_vectors(files: Sequence[Path], folder: Path) -> None:
    """Write `ids` (int64) and `vectors` (float32), plain bytes in the order of the table, into an empty folder; and
    `lists.faiss`, if there are more than `EXACT_UP_TO` papers. Vectors that are not finite are left out and counted."""
    papers = 0
    with (
        (folder / "ids").open("wb") as ids,
        (folder / "vectors").open("wb") as vectors,
        progress_bar(of="copy vectors", unit="papers", total=count_rows(files), delay=LONG) as bar,
    ):
        for of_block, block in finite_vectors(files):
            ids.write(of_block.tobytes())
            vectors.write(block.tobytes())
            papers += len(block)
            bar.update(len(block))
        if papers < bar.total:
            report(f"{bar.total - papers} papers have vectors that are not finite, and are never found.")
    if papers > EXACT_UP_TO:
        faiss.write_index(_sorted_into_lists(folder / "vectors", papers, block.shape[1]), str(folder / "lists.faiss"))


def _sorted_into_lists(vectors: Path, papers: int, dimension: int) -> Any:
    nlist = round(papers**0.5)
    report(f"Computing the centroids of {nlist:,} lists.")
    index: Any = faiss.index_factory(dimension, f"IVF{nlist},SQ8", faiss.METRIC_L2)
    index.cp.seed = derive_seed(SEED, "centroids") % 2**31
    drawn = generator(SEED, "sample of centroids").choice(papers, min(papers, 64 * nlist), replace=False)
    is_drawn = np.zeros(papers, dtype=bool)
    is_drawn[drawn] = True
    blocks = _blocks(vectors, dimension)
    index.train(np.concatenate([block[is_drawn[start : start + len(block)]] for start, block in blocks]))
    with progress_bar(of="sort into lists", unit="papers", total=papers, delay=LONG) as bar:
        for _, block in _blocks(vectors, dimension):
            index.add(block)
            bar.update(len(block))
    return index


def _blocks(vectors: Path, dimension: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The vectors in a file, and the row that each block begins with."""
    with vectors.open("rb") as file:
        start = 0
        while (block := np.fromfile(file, np.float32, ROWS_AT_ONCE * dimension)).size:
            yield start, block.reshape(-1, dimension)
            start += block.size // dimension


class VectorIndex:
    """The papers of an index that `index_vectors` has written."""

    def __init__(self, folder: Path) -> None:
        self.ids: Ids = np.fromfile(folder / "ids", np.int64)
        vectors, lists = folder / "vectors", folder / "lists.faiss"
        self._file = vectors.open("rb")
        self._dimension = vectors.stat().st_size // 4 // max(1, len(self.ids))
        if lists.exists():
            self._index: Any = faiss.read_index(str(lists), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        else:
            self._index = faiss.IndexFlatL2(self._dimension)
            self._index.add(np.fromfile(vectors, np.float32).reshape(len(self.ids), self._dimension))

    @property
    def lists(self) -> int:
        """The number of lists; 0 if all papers are compared."""
        return getattr(self._index, "nlist", 0)

    def vector_of(self, paper: int) -> NDArray[np.float32] | None:
        """The vector of a paper; None if it has none."""
        rows = np.flatnonzero(self.ids == paper)
        return self._whole(rows)[0] if len(rows) else None

    def nearest(
        self, vector: NDArray[np.float32], k: int, but: Collection[int] = (), within: Ids | None = None
    ) -> tuple[Ids, NDArray[np.float64]]:
        """Ids and Euclidean distances of the k papers nearest to a vector, only `within` some; ties are by id."""
        inside = None if within is None else np.isin(self.ids, within)
        rows = self._candidates(vector, k + len(but) + SPARE, inside)
        rows = rows[~np.isin(self.ids[rows], [*but])]
        distances = np.linalg.norm(self._whole(rows).astype(np.float64) - vector, axis=1)
        best = np.lexsort([self.ids[rows], distances])[:k]
        return self.ids[rows[best]], distances[best]

    def _candidates(self, vector: Any, count: int, inside: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The rows of papers among which the nearest are; only those inside, if some are."""
        number = len(self.ids) if inside is None else int(inside.sum())
        if number == 0:
            return np.empty(0, np.int64)
        parameters: Any = faiss.SearchParametersIVF() if self.lists else faiss.SearchParameters()
        if self.lists:  # The fewer papers are searched, the more lists are read.
            parameters.nprobe = min(self.lists, NPROBE * len(self.ids) // number)
        if inside is not None:
            selector: Any = faiss.IDSelectorBitmap
            parameters.sel = selector(np.packbits(inside, bitorder="little"))
        _, (rows,) = self._index.search(vector[None], count, params=parameters)
        return rows[rows >= 0]

    def _whole(self, rows: Iterable[int]) -> NDArray[np.float32]:
        width = 4 * self._dimension
        read = b"".join(os.pread(self._file.fileno(), width, int(row) * width) for row in rows)
        return np.frombuffer(read, np.float32).reshape(-1, max(1, self._dimension))


class Paper(NamedTuple):
    """A paper in a list."""

    corpusid: int
    title: str | None
    year: int | None
    doi: str | None = None
    details: Mapping[str, Any] = {}
    """Values of the columns `PACKED`."""


def index_titles(results: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write the file of all papers of the view `papers` into a folder: the most cited first, so that the first titles
    with some words are those of the best-known papers, and none has to be ranked."""
    ((papers,),) = results.execute("SELECT count(*) FROM papers").fetchall()
    packed = ", ".join(f"{name} := {name}" for name in PACKED)
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")
        with progress_bar(of="list papers", unit="papers", total=2 * papers, delay=LONG) as bar:
            for rows in _batches(results.execute(_PAPERS), bar):
                connection.executemany("INSERT INTO papers (corpusid, title, year) VALUES (?, ?, ?)", rows)
            records = results.execute(f"SELECT corpusid, doi, to_json(struct_pack({packed})) FROM papers")
            for rows in _batches(records, bar):
                made = ((paper, doi, zlib.compress(text.encode(), 1)) for paper, doi, text in rows)
                connection.executemany("INSERT INTO records VALUES (?, ?, ?)", made)
        connection.commit()
        connection.executescript(_INDEXES)


def _batches(found: duckdb.DuckDBPyConnection, bar: "tqdm[None]") -> Iterator[list[tuple[Any, ...]]]:
    while rows := found.fetchmany(ROWS_AT_ONCE):
        yield rows
        bar.update(len(rows))


class Titles:
    """The papers in a file that `index_titles` has written; several threads may ask it."""

    def __init__(self, folder: Path) -> None:
        where = f"{(folder / FILE).resolve().as_uri()}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(where, uri=True, check_same_thread=False)
        self._lock = Lock()
        self.size: int = self._rows("SELECT count(*) FROM papers", ())[0][0]

    def papers(self, ids: Collection[int], limit: int = -1) -> dict[int, Paper]:
        """The papers of these ids that have a record in the corpus, by id, the most cited first."""
        return {paper.corpusid: paper for paper in self._papers(_BY_IDS, (json.dumps([*ids]), limit))}

    def best_known(self, limit: int) -> list[Paper]:
        """The most cited papers with a title."""
        return self._papers(f"{_SHOWN} WHERE title IS NOT NULL ORDER BY place LIMIT ?", (limit,))

    def with_words(self, text: str, limit: int) -> list[Paper]:
        """The papers with a DOI, or the most cited whose titles have all words of a text, the last perhaps cut off."""
        if doi := DOI.fullmatch(text.strip()):
            return self._papers(f"{_SHOWN} WHERE doi = ? LIMIT ?", (doi[1], limit))
        # Within quotation marks, no word is an operator of the search.
        asked = " ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        return self._papers(_WITH_WORDS, (f"{asked}*", limit)) if asked else []

    def counts(self, words: Collection[str]) -> dict[str, int]:
        """In how many titles each of some words is."""
        return dict(self._rows(_COUNTS, (json.dumps([*words]),)))

    def _papers(self, query: str, values: Sequence[object]) -> list[Paper]:
        rows = self._rows(query, values)
        return [Paper._make([*row[:4], json.loads(zlib.decompress(row[4]))]) for row in rows]

    def _rows(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()
