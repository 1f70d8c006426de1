"""Small tables for the samplers, what they make of them as plain rows, and the steps `sample` and `check` on them."""

import json

import numpy as np
import pyarrow as pa
from tests.papers import papers_table

from cocite.config.settings import parse_settings
from cocite.config.triplets import TripletSet
from cocite.core.id_sets import set_of
from cocite.core.tables.files import read_table, table_in, write_table
from cocite.triplets.checks import check_triplets
from cocite.triplets.sampled import Block
from cocite.triplets.sampling import sample as run_sampler

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
    named |= {name: {"graph": "g"} for name in ("citations", "cocited", "linked", "undirected", "aspects")}
    sets = {"union": {"of": ["one", "other"]}, "subset": {"of": "one"}}
    return parse_settings(TripletSet, json.dumps({"sampler": name, **(named | sets).get(name, {}), **settings}))


def rows_of(sampled):
    """The triplets as tuples of ids, ranks and kind, in the order in which they came."""
    return list(zip(*(sampled.rows[name].to_pylist() for name in COLUMNS), strict=True))


def unserved(sampled, of="a triplet"):
    """How many queries have no triplet, by reason; reasons that never occurred are left out."""
    start = f"queries without {of}: "
    return {name.removeprefix(start): n for name, n in sampled.omissions.items() if n and name.startswith(start)}


def written_sample(folder, asked, sources=(), *, output="sampled.parquet", threads=1, texts=None):
    """What the step `sample` writes of the tables queries and papers of a folder: rows, and counts by reason."""
    run_sampler(
        asked,
        list(sources),
        queries=folder / "queries.parquet",
        papers=folder / "papers",
        seed=1,
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
    """splits: corpus id → split, in rising order."""
    table = pa.table({"corpusid": list(splits), "split": list(splits.values())})
    write_table(folder / "queries.parquet", "queries", table)
    return folder / "queries.parquet"


def write_papers(folder, papers, bucket=0):
    """papers: ids, or {id: (title, abstract)}."""
    texts = papers if isinstance(papers, dict) else dict.fromkeys(papers, ("title", "abstract"))
    write_table(folder / f"papers/{bucket}.parquet", "papers", papers_table(texts))
    return folder / "papers"


def write_neighbours(path, neighbours):
    """neighbours: {query: [(paper, distance), …]}, the nearest first; papers alone are 0.5 away."""
    ranked = {
        query: [each if isinstance(each, tuple) else (each, 0.5) for each in neighbours[query]] for query in neighbours
    }
    rows = [(query, rank, *found) for query in sorted(ranked) for rank, found in enumerate(ranked[query], 1)]
    types = {"query": pa.int64(), "rank": pa.int32(), "neighbour": pa.int64(), "distance": pa.float32()}
    write_table(path, "neighbours", _table(rows, types))
    return path


def write_edges(path, edges, intents=None):
    """edges: pairs (citing, cited); intents: {pair: its intents}, by default none."""
    rows = [(*edge, 1.0, sorted((intents or {}).get(edge, ()))) for edge in sorted(edges)]
    types = {"source": pa.int64(), "target": pa.int64(), "weight": pa.float32(), "intents": pa.list_(pa.string())}
    write_table(path, "edges", _table(rows, types))
    return path


def write_cocitations(path, counts):
    """counts: {(paper, other): count}."""
    types = {"paper": pa.int64(), "other": pa.int64(), "count": pa.int64()}
    write_table(path, "cocitations", _table([(*pair, counts[pair]) for pair in sorted(counts)], types))
    return path


def write_triplets(path, rows, split="train"):
    """rows: (query, positive, negative), or with the split behind."""
    types = {"query": pa.int64(), "positive": pa.int64(), "negative": pa.int64(), "split": pa.string()}
    table = _table(sorted(row if len(row) == 4 else (*row, split) for row in rows), types)
    for name, column in {
        "positive_rank": pa.nulls(len(table), pa.int32()),
        "negative_rank": pa.nulls(len(table), pa.int32()),
        "negative_kind": pa.array(["hard"] * len(table)),
    }.items():
        table = table.append_column(name, column)
    write_table(path, "triplets", table)
    return path


def write_examples(path, rows, kind="easy"):
    """rows: (query, aspect, positives, negatives), with the split behind where it is not train."""
    rows = sorted(((*row, "train")[:5] for row in rows), key=lambda row: (row[0], row[1] or "", *row[2:]))
    numbers = [1 + sum(other[0] == row[0] for other in rows[:place]) for place, row in enumerate(rows)]
    lists = pa.list_(pa.int64())
    table = pa.table(
        {
            "query": pa.array([row[0] for row in rows], pa.int64()),
            "number": pa.array(numbers, pa.int32()),
            "split": [row[4] for row in rows],
            "positives": pa.array([row[2] for row in rows], lists),
            "negatives": pa.array([row[3] for row in rows], lists),
            "negative_kinds": pa.array([[kind] * len(row[3]) for row in rows], pa.list_(pa.string())),
        }
    )
    if any(row[1] for row in rows):
        table = table.append_column("aspect", pa.array([row[1] for row in rows]))
    write_table(path, "sampled_examples", table)
    return path


def write_vectors(path, vectors):
    """vectors: {paper: vector}."""
    ids = sorted(vectors)
    column = pa.array([vectors[paper] for paper in ids], pa.list_(pa.float32(), len(vectors[ids[0]])))
    write_table(path, "graph_embeddings", pa.table({"corpusid": pa.array(ids, pa.int64()), "vector": column}))
    return path


def _table(rows, types):
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})
