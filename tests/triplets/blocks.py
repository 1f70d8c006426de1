"""Small tables for the samplers, what they make of them as plain rows, and the steps `sample` and `check` on them."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from tests.papers import papers_table
from tests.rows import table_of, write_rows

from cocite.config.configuration import TripletSet
from cocite.config.settings import parse_settings
from cocite.core.id_sets import set_of
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table, table_in, vector_column, write_table
from cocite.triplets.checks import check_triplets
from cocite.triplets.sampled import Block
from cocite.triplets.sampling import sample as run_sampler
from cocite.triplets.texts import training_examples, validation_examples

TRIPLET = "query positive negative split positive_rank negative_rank negative_kind"
COLUMNS = ("query", "positive", "negative", "positive_rank", "negative_rank", "negative_kind")


def block(queries, texts, sources=(), *, seed=1, split="train"):
    queries = sorted(queries)
    return Block(
        queries=np.array(queries, dtype=np.int64),
        splits=pa.chunked_array([pa.array([split] * len(queries), pa.string())]),
        papers=set_of(np.array(sorted(texts), dtype=np.int64)),
        sources=list(sources),
        seed=seed,
    )


def sample(name, given, **settings):
    """What a sampler makes of a block."""
    return sampler(name, **settings).sample(given)


def sampler(name, **settings):
    """A sampler with these settings; what it is sampled from has a name that nobody looks up."""
    named = {"neighbours": {"embedding": "e"}}
    named |= {name: {"graph": "g"} for name in ("citations", "cocited", "linked", "links", "undirected", "aspects")}
    sets = {"union": {"of": ["one", "other"]}, "subset": {"of": "one"}}
    return parse_settings(TripletSet, json.dumps({"sampler": name, **(named | sets).get(name, {}), **settings}))


def rows_of(sampled):
    """The triplets as tuples of ids, ranks and kind, in the order in which they came."""
    return list(zip(*(sampled.rows[name].to_pylist() for name in COLUMNS), strict=True))


def examples_to_train_on(sampled, group, seed):
    """The training examples of a set, in one table."""
    with TemporaryDirectory() as folder:
        return pa.concat_tables(training_examples(sampled, group, seed, Path(folder)))


def examples_to_validate_on(group, seed):
    """The validation examples of a group, in one table."""
    with TemporaryDirectory() as folder:
        return pa.concat_tables(validation_examples(group, seed, Path(folder)))


def unserved(sampled, of="a triplet"):
    """How many queries have no triplet, by reason; reasons that never occurred are left out."""
    start = f"queries without {of}: "
    return {name.removeprefix(start): n for name, n in sampled.omissions.items() if n and name.startswith(start)}


def written_sample(folder, asked, sources=(), *, output="sampled.parquet", threads=1, texts=None, seed=1):
    """What the step `sample` writes of the tables queries and papers of a folder: rows, and counts by reason."""
    run_sampler(
        asked,
        list(sources),
        queries=folder / "queries.parquet",
        papers=folder / "papers",
        seed=seed,
        threads=threads,
        output=folder / output,
        omissions=folder / "omissions.parquet",
        written_settings=folder / "settings.json",
        texts=texts,
    )
    omitted = read_table(folder / "omissions.parquet", "omissions").to_pylist()
    return read_table(folder / output, table_in(folder / output)), {row["reason"]: row["count"] for row in omitted}


def written_checks(folder, triplets, benchmarks=(), **more):
    """What the step `check` writes of a set: rows of triplet_checks, triplets_per_query and collisions."""
    tables = {"checks": "triplet_checks", "per_query": "triplets_per_query", "collisions": "collisions"}
    outputs = {name: folder / f"{name}.parquet" for name in tables}
    given = {"queries": folder / "queries.parquet", "papers": folder / "papers", **more}
    check_triplets(benchmarks, triplets=triplets, **given, **outputs)
    return [read_table(outputs[name], table).to_pylist() for name, table in tables.items()]


def found_by(checks):
    """The rows of triplet_checks by check and part."""
    return {(row["check"], row["part"]): (row["found"], row["among"]) for row in checks}


def write_queries(folder, splits):
    """splits: corpus id → split."""
    return write_rows(folder / "queries.parquet", "queries", "corpusid split", sorted(splits.items()))


def write_papers(folder, papers, bucket=0):
    """papers: ids, or {id: (title, abstract)}."""
    texts = papers if isinstance(papers, dict) else dict.fromkeys(papers, ("title", "abstract"))
    write_table(folder / f"papers/{bucket}.parquet", "papers", papers_table(texts))
    return folder / "papers"


def write_neighbours(path, neighbours):
    """neighbours: {query: [(paper, distance), …]}, the nearest first; papers alone are 0.5 away."""
    rows = [
        (query, rank, *(found if isinstance(found, tuple) else (found, 0.5)))
        for query in sorted(neighbours)
        for rank, found in enumerate(neighbours[query], 1)
    ]
    return write_rows(path, "neighbours", "query rank neighbour distance", rows)


def write_edges(path, edges, intents=None):
    """edges: pairs (citing, cited); intents: {pair: its intents}, by default none."""
    rows = [(*edge, 1.0, sorted((intents or {}).get(edge, ()))) for edge in sorted(edges)]
    return write_rows(path, "edges", "source target weight intents", rows)


def write_cocitations(path, counts):
    """counts: {(paper, other): count}."""
    return write_rows(path, "cocitations", "paper other count", [(*pair, counts[pair]) for pair in sorted(counts)])


def write_triplets(path, rows, split="train"):
    """rows: (query, positive, negative), or with the split behind."""
    rows = sorted((*row, split)[:4] for row in rows)
    return write_rows(path, "triplets", TRIPLET, [(*row, None, None, "hard") for row in rows])


def write_examples(path, rows, kind="easy"):
    """rows: (query, aspect, positives, negatives), with the split behind where it is not train."""
    rows = sorted(((*row, "train")[:5] for row in rows), key=lambda row: (row[0], row[1] or "", *row[2:]))
    numbers = [1 + sum(other[0] == row[0] for other in rows[:place]) for place, row in enumerate(rows)]
    columns = "query aspect positives negatives split number negative_kinds"
    rows = [(*row, number, [kind] * len(row[3])) for row, number in zip(rows, numbers, strict=True)]
    table = table_of("sampled_examples", columns, rows)
    write_table(path, "sampled_examples", table if any(row[1] for row in rows) else table.drop_columns(["aspect"]))
    return path


def write_vectors(path, vectors, table="graph_embeddings", rows=100_000):
    """vectors: {paper or text: vector}, so many rows to a group."""
    [key], ids = TABLES[table].key, sorted(vectors)
    column = vector_column(np.array([vectors[each] for each in ids], dtype=np.float32))
    write_table(path, table, iter(pa.table({key: pa.array(ids, pa.int64()), "vector": column}).to_batches(rows)))
    return path
