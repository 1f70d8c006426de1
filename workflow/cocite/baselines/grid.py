"""Grids of settings: what their points are judged on, and the choice among them.

A point is judged on validation queries: for each the papers that it cites, among random ones, all with a text and none
kept out, as tables of a benchmark. A cited paper is ranked by its distance from the query, and a point is worth the
mean of 1 / rank. A tie counts half a rank. A paper or query without a vector counts 0. Of equal points, the first is
chosen.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.core.atomic import atomic_path, read_json
from cocite.core.errors import InputError
from cocite.core.options import Citations, Output, Papers, Queries, Seed
from cocite.core.progress import report
from cocite.core.randomness import generator, priorities, smallest
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import checked_files, open_table, read_table, vectors_of, write_table
from cocite.core.tables.papers import read_kept_out, read_validation_queries
from cocite.core.written_ids import Ids, distinct, look_up

QUERIES, CITED, RANDOM = 1000, 5, 50  # largest numbers of queries, of cited papers per query, and of random papers
POOL = 20_000  # papers that random ones are drawn from, themselves drawn from all
TASK = "validation"

Judged = Mapping[str, tuple[list[str], list[str]]]  # query → the papers that it cites, and the random ones


def draw_validation(
    *,
    papers: Papers,
    citations: Citations,
    queries: Queries,
    seed: Seed,
    documents: Annotated[Path, typer.Option(help="Table documents to write.")],
    judgements: Annotated[Path, typer.Option(help="Table judgements to write.")],
) -> None:
    """Draw the judgements for a grid: papers that validation queries cite, among random ones.

    Raises `InputError` if the corpus is too small for it.
    """
    kept_out = read_kept_out(queries)["corpusid"].combine_chunks()
    candidates = read_validation_queries(queries)
    cited = _cited(citations, candidates)
    pool, with_text = _pool(papers, kept_out, distinct(candidates, *cited.values()), seed)
    judged = _judged(cited, pool, with_text, seed)
    if not judged or len(pool) <= RANDOM + CITED:
        raise InputError(
            f"The corpus is too small for a grid: {len(judged)} of {len(candidates)} validation queries cite a paper "
            f"with a text, and {len(pool):,} papers have one, of which more than {RANDOM + CITED} are needed. Take a "
            "larger corpus or more validation queries, or give each key of the grid one value."
        )
    of_each = f"each with up to {CITED} papers that it cites and {RANDOM} random ones"
    report(f"{len(judged):,} validation queries, {of_each}.")
    rows = sorted(
        (str(query), str(candidate), int(place < len(found)))
        for query, (found, others) in judged.items()
        for place, candidate in enumerate([*found, *others])
    )
    columns = dict(zip(("query", "candidate", "relevance"), map(list, zip(*rows, strict=True)), strict=True))
    write_table(judgements, "judgements", _made("judgements", len(rows), {"task": [TASK] * len(rows), **columns}))
    needed = pa.array(np.unique([*judged, *map(int, columns["candidate"])]))
    batches = _batches(papers, "papers", "corpusid", "title", "abstract")
    texts = pa.Table.from_batches(batch.filter(pc.is_in(batch["corpusid"], needed)) for batch in batches)
    texts = texts.set_column(0, "document", texts["corpusid"].cast(pa.string())).sort_by("document")
    found = {**texts.to_pydict(), "more": [[]] * len(texts)}
    write_table(documents, "documents", _made("documents", len(texts), found))


def _made(table: str, rows: int, columns: dict[str, list[Any]]) -> pa.Table:
    schema = pa.schema([field for field in empty_schema(TABLES[table]) if field.name != "is_query"])
    return pa.table({name: columns.get(name, [None] * rows) for name in schema.names}, schema=schema)


def _batches(folder: Path, table: str, *columns: str) -> Iterator[pa.RecordBatch]:
    """The rows of a table in several files, some thousand at a time: a scan would keep many more in memory."""
    for path in checked_files(folder, table):
        with open_table(path, table) as file:
            yield from file.iter_batches(columns=columns)


def _cited(citations: Path, queries: Ids) -> dict[int, Ids]:
    """The papers that each query cites, rising."""
    wanted, ends = pa.array(queries), ("citing", "cited")
    batches = [batch.filter(pc.is_in(batch["citing"], wanted)) for batch in _batches(citations, "citations", *ends)]
    citing, cited = (np.concatenate([queries[:0], *(batch[end].to_numpy() for batch in batches)]) for end in ends)
    order = np.argsort(citing, kind="stable")
    bounds = (np.searchsorted(citing[order], queries, side) for side in ("left", "right"))
    places = zip(queries.tolist(), *bounds, strict=True)
    return {query: distinct(cited[order[first:last]]) for query, first, last in places}


def _pool(papers: Path, kept_out: pa.Array, wanted: Ids, seed: int) -> tuple[Ids, set[int]]:
    """Random papers with a text, and which of the wanted papers have one; none is kept out."""
    pool, order, with_text = np.empty(0, np.int64), np.empty(0, np.uint64), set[int]()
    for batch in _batches(papers, "papers", "corpusid", "has_text"):
        is_seen = pc.and_(batch["has_text"], pc.invert(pc.is_in(batch["corpusid"], kept_out)))
        ids = batch["corpusid"].filter(is_seen).to_numpy()
        with_text.update(ids[look_up(wanted, ids)[1]].tolist())
        pool, order = np.append(pool, ids), np.append(order, priorities(seed, "grid papers", ids))
        first = np.argsort(order, kind="stable")[:POOL]
        pool, order = pool[first], order[first]
    return pool, with_text


def _judged(cited: dict[int, Ids], pool: Ids, with_text: set[int], seed: int) -> dict[int, tuple[list[int], list[int]]]:
    """For each query the papers that it cites and the random ones, of the queries that have both."""
    judged = {}
    for query, of_query in cited.items():
        found = [paper for paper in of_query.tolist() if paper in with_text and paper != query]
        if query in with_text and found:
            draw = generator(seed, "grid", query)
            near = sorted(draw.permutation(found)[:CITED].tolist())
            judged[query] = near, draw.permutation(pool[~np.isin(pool, [query, *of_query])])[:RANDOM].tolist()
    kept = smallest(np.array(sorted(judged), np.int64), QUERIES, seed, "grid queries")
    return {query: judged[query] for query in np.sort(kept).tolist()}


def choose_point(
    points: Annotated[Sequence[Path], typer.Argument(help="Models of the points of a grid, then the vectors of each.")],
    *,
    judgements: Annotated[Path, typer.Option(help="Table judgements to score them on.")],
    grid: Annotated[Path, typer.Option(help="Table grid to write: the score of each point.")],
    output: Output,
) -> None:
    """Take the point of a grid that ranks best, and write down what all of them reached."""
    models, vectors = points[: len(points) // 2], points[len(points) // 2 :]
    judged = read_judged(judgements)
    values = [reciprocal_rank(path, judged) for path in vectors]
    best = int(np.argmax(values))
    settings = [json.dumps(read_json(model / "settings.json")["baseline"], sort_keys=True) for model in models]
    reached = f"with a mean reciprocal rank of {values[best]:.4f}"
    report(f"Point {best} of {len(models)} is best, {reached}: {settings[best]}")
    columns = {
        "point": pa.array(range(len(models)), pa.int64()),
        "settings": settings,
        "reciprocal_rank": values,
        "judged": pa.array([sum(len(cited) for cited, _ in judged.values())] * len(models), pa.int64()),
        "chosen": [number == best for number in range(len(models))],
    }
    write_table(grid, "baseline_grid", pa.table(columns))
    with atomic_path(output) as folder:
        shutil.copytree(models[best], folder, ignore=shutil.ignore_patterns(".*"))


def read_judged(path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """The judgements by query."""
    judged: dict[str, tuple[list[str], list[str]]] = {}
    for row in read_table(path, "judgements", ["query", "candidate", "relevance"]).to_pylist():
        cited, others = judged.setdefault(row["query"], ([], []))
        (cited if row["relevance"] else others).append(row["candidate"])
    return judged


def reciprocal_rank(vectors: Path, judged: Judged) -> float:
    """The mean of 1 / the rank of each cited paper among the random ones, by Euclidean distance."""
    with open_table(vectors, "baseline_embeddings") as file:
        table = file.read(["document", "vector"])
    matrix, rows = vectors_of(table), {name: row for row, name in enumerate(table["document"].to_pylist())}
    found: list[float] = []
    for query, (cited, others) in judged.items():
        if query not in rows:
            found += [0.0] * len(cited)
            continue
        there = np.array([rows.get(paper, -1) for paper in (query, *cited, *others)])
        distances = np.linalg.norm(matrix[there].astype(np.float64) - matrix[there[0]], axis=1)
        distances[there < 0] = np.inf
        to_others = distances[1 + len(cited) :]
        for distance in distances[1 : 1 + len(cited)]:
            nearer, as_near = np.count_nonzero(to_others < distance), np.count_nonzero(to_others == distance)
            found.append(1 / (1 + nearer + as_near / 2) if np.isfinite(distance) else 0.0)
    return float(np.mean(found))
