"""All papers by the vectors of a model: their topics, and the map of them that the page of a search draws.

The map is t-SNE (`report.map_methods`) of `SAMPLED` papers. Each other paper is placed among the `AMONG` papers of the
sample whose vectors are nearest to its own: at the mean of their points, weighted by 1 / distance². So the time grows
with the papers as one search of each in the sample does, and the memory with their points only.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import faiss
import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict  # which pydantic asks for before Python 3.12

from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import checked_files, count_rows, finite_vectors, read_table
from cocite.core.tables.places import path_of
from cocite.core.written_ids import Ids, look_up
from cocite.report.map_layout import lay_out
from cocite.report.map_methods import TSNE
from cocite.report.map_page import ABSENT, compressed, quantised
from cocite.report.topics import write_topics
from cocite.tools.answers import Answer
from cocite.tools.nearest import Model
from cocite.tools.search_indexes import LONG, SEED, cached

SAMPLED = 5_000
"""Papers that t-SNE lays out, about; all of a smaller corpus."""
AMONG = 3
"""Papers of the sample that another one is placed among."""
_FIRST_FIELDS = """
    SELECT fields[1] AS name, row_number() OVER (ORDER BY count(*) DESC, fields[1]) - 1 AS number
    FROM papers WHERE fields[1] IS NOT NULL GROUP BY fields[1] ORDER BY number"""
_YEARS_AND_FIELDS = f"""
    SELECT corpusid, coalesce(year, {ABSENT})::INTEGER AS year, coalesce(number, {ABSENT})::INTEGER AS field
    FROM papers LEFT JOIN ({_FIRST_FIELDS}) ON name = fields[1] ORDER BY corpusid"""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The topic of each paper that has a vector of a model."""

    names: list[str]
    """The words of each topic, the largest first."""
    ids: Ids
    """The papers, by rising id."""
    numbers: NDArray[np.int64]
    """The topic of each paper."""

    def of(self, papers: Sequence[int]) -> list[str | None]:
        """The words of each paper's topic; none if it has no topic."""
        places, is_there = look_up(self.ids, np.array(papers, np.int64))
        return [self.names[self.numbers[at]] if there else None for at, there in zip(places, is_there, strict=True)]


def topics_of_run(results: Path, model: Model) -> Topics | None:
    """The topics that a run found by a model since its training; none without these."""
    of: dict[str, str | int] = {"model": model.name, "seed": model.seed}
    topics = path_of(results, "topics", **of)
    if not topics.is_file() or topics.stat().st_mtime < model.made:
        return None
    return _read_topics(topics, path_of(results, "paper_topics", **of))


def topics_of(results: Path, model: Model, cache: Path) -> Topics:
    """The topics that a run found by a model, or those of its cache, which are found first if it has none."""
    if found := topics_of_run(results, model):
        return found
    papers = path_of(results, "papers")
    vectors = checked_files(model.vectors, "paper_embeddings")

    def find(folder: Path) -> None:
        report(f"Finding the topics of the papers by {model.full_name}.")
        tables = {"topics": folder / "topics.parquet", "scores": folder / "scores.parquet", "output": folder / "papers"}
        write_topics(vectors, papers=papers, seed=SEED, threads=os.cpu_count() or 1, **tables)

    files = [*vectors, *checked_files(papers, "papers")]
    folder = cached(cache, f"{model.name}-{model.seed}-topics", files, find)
    return _read_topics(folder / "topics.parquet", folder / "papers")


def _read_topics(topics: Path, papers: Path) -> Topics:
    table = read_table(papers, "paper_topics").sort_by("corpusid")
    named = read_table(topics, "topics").sort_by([("papers", "descending")])
    by_size = np.argsort(named["topic"].to_numpy())  # topics are numbered from 0
    names = [", ".join(words) for words in named["words"].to_pylist()]
    return Topics(names=names, ids=table["corpusid"].to_numpy(), numbers=by_size[table["topic"].to_numpy()])


def with_topics(results: Path, models: Collection[Model], answer: Answer) -> Answer:
    """An answer with the words of each paper's topic, if a run found those of one of the models."""
    topics = next(filter(None, (topics_of_run(results, model) for model in models)), None)
    if topics is None:
        return answer
    of_rows = topics.of([row[answer.columns.index("corpusid")] for row in answer.rows])
    rows = [(*row[:-1], topic, row[-1]) for topic, row in zip(of_rows, answer.rows, strict=True)]
    return replace(answer, columns=[*answer.columns[:-1], "topic", answer.columns[-1]], rows=rows)


class PaperMap(TypedDict):
    """All papers as a model places them. Columns are gzipped little-endian numbers in base64, one for each paper: of 64
    bits in `ids`, of 16 in others, in which 65535 is none. Points are from 0 to 65534 on both axes."""

    model: str
    papers: int
    ids: str
    x: str
    y: str
    year: str
    field: str
    topic: str
    fields: list[str]
    """Names of the numbers in `field`, the most frequent first."""
    topics: list[str]
    """The words of the numbers in `topic`, the largest first."""


def map_of(model: Model, topics: Topics, database: duckdb.DuckDBPyConnection, cache: Path) -> PaperMap:
    """The map of all papers by a model. Its points are read from the cache, and laid out first if it has none."""
    files = checked_files(model.vectors, "paper_embeddings")

    def lay_all_out(folder: Path) -> None:
        report(f"Laying out the map of all papers by {model.full_name}.")
        index_points(files, folder)

    folder = cached(cache, f"{model.name}-{model.seed}-map", files, lay_all_out)
    ids, points = np.load(folder / "ids.npy"), np.load(folder / "points.npy")
    rows: dict[str, Any] = database.execute(_YEARS_AND_FIELDS).fetchnumpy()

    def column(keys: Ids, values: NDArray[Any]) -> str:
        places, is_there = look_up(keys, ids)
        found = np.full(len(ids), ABSENT)
        found[is_there] = np.clip(values[places[is_there]], 0, ABSENT)
        return compressed(found.astype("<u2").tobytes())

    return {
        "model": model.full_name,
        "papers": len(ids),
        "ids": compressed(ids.astype("<i8").tobytes()),
        "x": compressed(points[:, 0].astype("<u2").tobytes()),
        "y": compressed(points[:, 1].astype("<u2").tobytes()),
        "year": column(rows["corpusid"], rows["year"]),
        "field": column(rows["corpusid"], rows["field"]),
        "topic": column(topics.ids, topics.numbers),
        "fields": [name for name, _ in database.execute(_FIRST_FIELDS).fetchall()],
        "topics": topics.names,
    }


def index_points(files: Sequence[Path], folder: Path) -> None:
    """Write the ids and points of all papers that have a finite vector in buckets of `paper_embeddings`."""
    papers, drawn = count_rows(files), generator(SEED, "sample of the map")
    blocks = (block[drawn.random(len(block)) * papers < SAMPLED] for _, block in finite_vectors(files))
    sample = np.concatenate([*blocks])
    layout = lay_out(sample, TSNE.model_construct(), seed=derive_seed(SEED, "map") % 2**32)
    ids, points = [np.empty(0, np.int64)], [np.empty((0, 2))]
    with progress_bar(of="place on the map", unit="papers", total=papers, delay=LONG) as bar:
        for of_block, block in finite_vectors(files):
            distances, nearest = faiss.knn(block, sample, min(AMONG, len(sample)))
            weights = 1 / np.maximum(distances, np.finfo(np.float32).tiny).astype(np.float64)
            weights /= weights.sum(axis=1, keepdims=True)
            points.append((layout[nearest] * weights[..., None]).sum(axis=1))
            ids.append(of_block)
            bar.update(len(block))
    np.save(folder / "ids.npy", np.concatenate(ids))
    np.save(folder / "points.npy", quantised(np.concatenate(points)))
