"""An index laid out as arrays on the disk (`retrieval.search` reads them): vectors, words and links of all papers.

Memory is needed for some tens of bytes per paper, the distinct words, a sample of vectors, and a block of each table.
Tables of vectors and texts are read twice, or three times if centroids are computed: they are counted before they are
laid out. All citations of the corpus count, also those of held-out papers: a corpus that is searched has them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from bm25s.tokenization import STOPWORDS_EN
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.config.index import Lists
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path, write_json
from cocite.core.database import connect
from cocite.core.database import number as number_in
from cocite.core.errors import InputError
from cocite.core.options import Citations, MemoryMb, Output, Papers, Threads
from cocite.core.progress import progress, report
from cocite.core.randomness import derive_seed, generator
from cocite.core.searching import of_unit_length, vector_blocks
from cocite.core.tables.files import ages_of_papers, checked_files, count_rows, open_table, scan_table, table_in
from cocite.core.words import UsualFormula, count_words, inverse_frequency, texts_of_papers
from cocite.core.written_ids import Ids, look_up
from cocite.retrieval.search import hash_of

ALL_IN_ONE = 50_000
"""Vectors that are all compared with each query; of more, those in the nearest lists are."""
SAMPLE_OF_LIST = 64
"""Papers that the centroids are computed from, for each list."""
PAPERS_AT_ONCE = 16_384
ROWS_AT_ONCE = 1_000_000
SEED = 1
"""An index depends on no seed of a run but those of its models."""
LARGEST = 127
CITED = "SELECT row, count(*) AS times FROM citations JOIN papers ON cited = id WHERE citing <> cited GROUP BY row"


def build_index(
    vectors: Annotated[Sequence[Path], typer.Argument(help="Folder of the vectors of all papers by each model.")],
    *,
    settings: GivenAsJson[Lists],
    models: Annotated[str, typer.Option(help="Names of the models, with commas between them.")],
    papers: Papers,
    citations: Citations,
    links: Annotated[Path, typer.Option(help="Folder of the citations that link papers, or of the edges of a graph.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Lay out the folder of an index.

    Raises `InputError` if a model has no vectors of the papers, or no two papers are linked.
    """
    ids = _papers_with_texts(papers)
    with atomic_path(output) as folder, threadpool_limits(threads):
        names = models.split(",")
        for name, given in zip(names, vectors, strict=True):
            _write_vectors(given, ids, folder / "vectors" / name)
        if settings.words:
            _write_words(papers, ids, folder / "words")
        with connect(memory_mb=memory_mb // 2, threads=threads, spill_to=folder) as db:
            db.register("papers", pa.table({"id": ids, "row": np.arange(len(ids), dtype=np.int32)}))
            db.register("citations", scan_table(citations, "citations"))
            cited, times = db.sql(CITED).fetchnumpy(), np.zeros(len(ids), np.int32)
            times[cited["row"]] = cited["times"]
            _save(folder, papers=ids, citations=times)
            _write_links(db, links, len(ids), folder / "links")
        _save(folder, ages=ages_of_papers(papers, ids))
        write_json(
            folder / "index.json", {"models": names, "words": settings.words, "stop_words": sorted(STOPWORDS_EN)}
        )
    report(f"{len(ids):,} papers")


def _papers_with_texts(papers: Path) -> Ids:
    blocks = [np.empty(0, np.int64)]
    for path in checked_files(papers, "papers"):
        with open_table(path, "papers") as file:
            for batch in file.iter_batches(PAPERS_AT_ONCE, columns=["corpusid", "title", "abstract"]):
                has_text = pc.or_(batch["title"].is_valid(), batch["abstract"].is_valid())
                blocks.append(batch["corpusid"].filter(has_text).to_numpy())
    return np.sort(np.concatenate(blocks))


def _write_vectors(source: Path, ids: Ids, folder: Path) -> None:
    """Sort the vectors of a model into lists, as whole numbers of 8 bits."""
    files = sorted(source.glob("*.parquet"))
    number = count_rows(files)
    if not number:
        raise InputError(f"{source}: has no vectors; embed the corpus by the model first.")
    lists = round(number**0.5) if number > ALL_IN_ONE else 1
    centroids = _centroids(files, ids, number, lists)
    nearest = faiss.IndexFlatIP(centroids.shape[1])
    nearest.add(centroids)
    of_list = np.full(len(ids), -1, np.int32)
    for rows, matrix in _vectors(files, ids, "Sorted"):
        of_list[rows] = nearest.search(matrix, 1)[1][:, 0]
    has_vector = np.flatnonzero(of_list >= 0)
    order = has_vector[np.argsort(of_list[has_vector], kind="stable")]
    places = np.full(len(ids), -1, np.int32)
    places[order] = np.arange(len(order))
    starts = np.searchsorted(of_list[order], np.arange(lists + 1))
    _save(folder, centroids=centroids, starts=starts, rows=order, places=places)
    numbers = _new(folder / "numbers.npy", np.int8, (len(order), centroids.shape[1]))
    factors = _new(folder / "factors.npy", np.float32, (len(order),))
    for rows, matrix in _vectors(files, ids, "Laid out"):
        whole, factor = in_8_bits(matrix)
        numbers[places[rows]], factors[places[rows]] = whole, factor


def in_8_bits(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Vectors as whole numbers from -127 to 127, and the factor that gives each the length 1."""
    largest = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-30)
    whole = np.rint(matrix * (LARGEST / largest)).astype(np.int8)
    lengths = np.linalg.norm(whole.astype(np.float32), axis=1)
    return whole, (1 / np.maximum(lengths, 1)).astype(np.float32)


def _centroids(files: Sequence[Path], ids: Ids, number: int, lists: int) -> NDArray[np.float32]:
    """The centroids of lists of vectors of length 1, by k-means on a sample."""
    if lists == 1:
        with open_table(files[0], "paper_embeddings") as file:
            dimension: int = file.schema_arrow.field("vector").type.list_size
        return np.zeros((1, dimension), np.float32)
    drawn = generator(SEED, "sample of centroids").random(len(ids)) < min(1, lists * SAMPLE_OF_LIST / number)
    sample = np.concatenate([matrix[drawn[rows]] for rows, matrix in _vectors(files, ids, "Sampled")])
    seed = derive_seed(SEED, "centroids") % 2**31
    means = faiss.Kmeans(sample.shape[1], lists, niter=10, spherical=True, seed=seed, min_points_per_centroid=1)
    means.train(sample)
    return np.asarray(means.centroids)


def _vectors(files: Sequence[Path], ids: Ids, of: str) -> Iterator[tuple[Ids, NDArray[np.float32]]]:
    """The rows of papers and their vectors of length 1; those that are not finite are left out."""
    for rows, matrix in progress(vector_blocks(files, ids, PAPERS_AT_ONCE), of=of, unit="block"):
        is_finite = np.isfinite(matrix).all(axis=1)
        yield rows[is_finite], of_unit_length(matrix[is_finite]).astype(np.float32)


def _write_words(papers: Path, ids: Ids, folder: Path) -> None:
    formula = UsualFormula()
    vocabulary: dict[str, int] = {}
    having, lengths = np.zeros(0, np.int64), np.zeros(len(ids))
    for some, texts in progress(texts_of_papers(papers, ids, PAPERS_AT_ONCE), of="Counted", unit="block"):
        rows = count_words(some, texts, vocabulary)
        lengths[look_up(ids, some)[0]] = rows.lengths
        having = np.pad(having, (0, len(vocabulary) - len(having)))
        np.add.at(having, rows.words, 1)
    hashes = np.array([hash_of(word) for word in vocabulary], np.uint64)
    order = np.argsort(hashes)
    place_of = np.empty_like(order)
    place_of[order] = np.arange(len(order))
    starts = np.concatenate([[0], np.cumsum(having[order])])
    _save(folder, hashes=hashes[order], starts=starts)
    worth = inverse_frequency(formula, having[order].astype(np.float64), len(ids))
    norm = formula.k1 * (1 - formula.b + formula.b * lengths / max(lengths.mean(), 1e-9))
    listed = _new(folder / "papers.npy", np.int32, (int(starts[-1]),))
    scores = _new(folder / "scores.npy", np.float32, (int(starts[-1]),))
    cursor = starts[:-1].copy()
    for some, texts in progress(texts_of_papers(papers, ids, PAPERS_AT_ONCE), of="Laid out", unit="block"):
        rows = count_words(some, texts, vocabulary)
        of_row = np.repeat(look_up(ids, some)[0], np.diff(rows.starts))
        order = np.lexsort((of_row, place_of[rows.words]))
        places, of_row, times = place_of[rows.words][order], of_row[order], rows.counts[order].astype(np.int64)
        at = cursor[places] + np.arange(len(places)) - np.searchsorted(places, places)
        listed[at], scores[at] = of_row, worth[places] * times / (times + norm[of_row])
        np.add.at(cursor, places, 1)


def _write_links(db: DuckDBPyConnection, links: Path, papers: int, folder: Path) -> None:
    table = table_in(min(links.glob("*.parquet")))
    ends = "citing, cited" if table == "citations" else "source, target"
    db.register("links", scan_table(links, table))
    db.execute(f"""
        CREATE VIEW linked (a, b) AS SELECT one.row, other.row FROM (SELECT {ends} FROM links) AS pairs (a, b)
        JOIN papers AS one ON pairs.a = one.id JOIN papers AS other ON pairs.b = other.id
        WHERE one.row <> other.row""")
    if not (count := number_in(db, "SELECT count(*) FROM linked")):
        raise InputError(f"{links}: links no two papers with a text; name a graph of citations.")
    number, end = np.zeros(papers + 1, np.int64), 0
    folder.mkdir()
    others = _new(folder / "others.npy", np.int32, (2 * count,))
    both = db.sql("SELECT a, b FROM linked UNION ALL SELECT b, a FROM linked ORDER BY a, b")
    for batch in both.to_arrow_reader(ROWS_AT_ONCE):
        number += np.bincount(batch["a"].to_numpy() + 1, minlength=len(number))
        others[end : end + len(batch)] = batch["b"].to_numpy()
        end += len(batch)
    _save(folder, starts=np.cumsum(number))


def _save(folder: Path, **arrays: NDArray[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def _new(path: Path, of: type, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.lib.format.open_memmap(path, "w+", of, shape)
