"""What the points of a grid are judged on: for each validation query the papers that it cites, among random ones.

All of them have a title and an abstract, and none is kept out. Which queries, which of their references and which
random papers are taken follows from the run's seed alone. The tables are those of a benchmark, so that a baseline
embeds the papers as it embeds any documents.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.options import Citations, Papers, Queries, Seed
from cocite.core.progress import report
from cocite.core.randomness import generator, priorities
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import checked_files, open_table, write_table
from cocite.core.tables.splits import read_kept_out, read_validation_queries

QUERIES, CITED, RANDOM = 1000, 5, 50
"""Queries at most, papers that one cites at most, and random papers beside them."""
POOL = 20_000
"""Papers that random ones are drawn from, themselves drawn from all."""
TASK = "validation"

Ids = NDArray[np.int64]


def draw_validation(
    *,
    papers: Papers,
    citations: Citations,
    queries: Queries,
    seed: Seed,
    documents: Annotated[Path, typer.Option(help="Table documents, written.")],
    judgements: Annotated[Path, typer.Option(help="Table judgements, written.")],
) -> None:
    """Draw what a grid is judged on: papers that validation queries cite, among random ones.

    Raises `InputError` where the corpus is too small for it.
    """
    texts = checked_files(papers, "papers")
    kept_out = read_kept_out(queries)["corpusid"].combine_chunks()
    candidates = read_validation_queries(queries)
    cited = _cited(checked_files(citations, "citations"), candidates)
    pool, with_text = _pool(texts, kept_out, np.unique(np.concatenate([candidates, *cited.values()])), seed)
    judged = _judged(cited, pool, with_text, seed)
    if not judged or len(pool) <= RANDOM + CITED:
        raise InputError(
            f"The corpus is too small for a grid: {len(judged)} of {len(candidates)} validation queries cite a paper "
            f"with a text, and {len(pool):,} papers have one, of which more than {RANDOM + CITED} are needed. Take a "
            "larger corpus or more validation queries, or give each key of the grid one value."
        )
    report(
        f"{len(judged):,} validation queries, each with up to {CITED} papers that it cites and {RANDOM} random ones."
    )
    rows = [
        (str(query), str(candidate), int(place < len(found)))
        for query, (found, others) in judged.items()
        for place, candidate in enumerate([*found, *others])
    ]
    write_table(judgements, "judgements", _judgements(rows))
    needed = np.unique([*judged, *(int(candidate) for _, candidate, _ in rows)])
    write_table(documents, "documents", _documents(texts, needed))


def _cited(citations: Sequence[Path], queries: Ids) -> dict[int, Ids]:
    """The papers that each query cites."""
    found: dict[int, set[int]] = {int(query): set() for query in queries}
    wanted = pa.array(queries)
    for path in citations:
        with open_table(path, "citations") as file:
            for batch in file.iter_batches(columns=["citing", "cited"]):
                chosen = batch.filter(pc.is_in(batch["citing"], wanted))
                for citing, cited in zip(*(chosen[name].to_pylist() for name in ("citing", "cited")), strict=True):
                    found[citing].add(cited)
    return {query: np.array(sorted(of_query), np.int64) for query, of_query in found.items()}


def _pool(papers: Sequence[Path], kept_out: pa.Array, wanted: Ids, seed: int) -> tuple[Ids, set[int]]:
    """Random papers with a text, and which of the wanted papers have one; none is kept out."""
    pool, order, with_text = np.empty(0, np.int64), np.empty(0, np.uint64), set[int]()
    for path in papers:
        with open_table(path, "papers") as file:
            for batch in file.iter_batches(columns=["corpusid", "has_text"]):
                seen = pc.and_(batch["has_text"], pc.invert(pc.is_in(batch["corpusid"], value_set=kept_out)))
                ids = batch["corpusid"].filter(seen).to_numpy(zero_copy_only=False)
                with_text.update(ids[np.isin(ids, wanted)].tolist())
                pool, order = np.append(pool, ids), np.append(order, priorities(seed, "grid papers", ids))
                first = np.argsort(order, kind="stable")[:POOL]
                pool, order = pool[first], order[first]
    return pool, with_text


def _judged(cited: dict[int, Ids], pool: Ids, with_text: set[int], seed: int) -> dict[int, tuple[list[int], list[int]]]:
    """For each query the papers that it cites and the random ones, of the queries that have both."""
    judged = {}
    for query, of_query in cited.items():
        found = [int(paper) for paper in of_query if paper in with_text and paper != query]
        if query in with_text and found:
            draw = generator(seed, "grid", query)
            others = pool[~np.isin(pool, [query, *of_query])]
            judged[query] = (
                sorted(draw.permutation(found)[:CITED].tolist()),
                draw.permutation(others)[:RANDOM].tolist(),
            )
    chosen = np.array(sorted(judged), np.int64)
    kept = chosen[np.argsort(priorities(seed, "grid queries", chosen), kind="stable")[:QUERIES]]
    return {int(query): judged[int(query)] for query in np.sort(kept)}


def _judgements(rows: Sequence[tuple[str, str, int]]) -> pa.Table:
    query, candidate, relevance = zip(*sorted(rows), strict=True)
    columns = {"task": [TASK] * len(rows), "query": query, "candidate": candidate, "relevance": relevance}
    schema = pa.schema([field for field in empty_schema(TABLES["judgements"]) if field.name != "fold"])
    return pa.table({**columns, "propensity": [None] * len(rows)}, schema=schema)


def _documents(papers: Sequence[Path], needed: Ids) -> pa.Table:
    """The papers that are needed, named by their corpus ids, in the order of the names."""
    rows = sorted(row for path in papers for row in _texts(path, needed))
    names, titles, abstracts = zip(*rows, strict=True)
    columns = {"document": names, "title": titles, "abstract": abstracts, "more": [[]] * len(rows)}
    schema = pa.schema([field for field in empty_schema(TABLES["documents"]) if field.name != "is_query"])
    return pa.table({**columns, "field": [None] * len(rows)}, schema=schema)


def _texts(path: Path, needed: Ids) -> Iterator[tuple[str, str, str]]:
    with open_table(path, "papers") as file:
        for batch in file.iter_batches(columns=["corpusid", "title", "abstract"]):
            chosen = batch.filter(pc.is_in(batch["corpusid"], pa.array(needed)))
            for row in chosen.to_pylist():
                yield str(row["corpusid"]), row["title"], row["abstract"]
