"""Every table of CoCite, declared once: what it holds, its primary key, its columns, and where it lies.

The declarations are what `files.py` checks on writing, what `docs/tables.md` is generated from, and what
`results/cocite.duckdb` holds a view of. A table is written in the order of its primary key, so that the check of
uniqueness is a comparison of neighbouring rows; `ordered=False` marks the ones whose order means something else.
"""

from dataclasses import dataclass

import pyarrow as pa

ID = pa.int64()
COUNT = pa.int64()
TEXT = pa.string()
VECTOR = pa.list_(pa.float32())
"""Stands for a fixed-size list of float32 of any dimension; the files hold the fixed-size type."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its Arrow type, its meaning with its unit, and whether it may be null."""

    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table.

    `path` is relative to the results folder. Names in braces are columns of the DuckDB view that the path tells
    (`graph/{graph}/…`), except `{bucket}`, which only shards.
    """

    name: str
    description: str
    key: tuple[str, ...]
    columns: dict[str, Column]
    path: str
    ordered: bool = True


def _required(type: pa.DataType, meaning: str) -> Column:
    return Column(type=type, meaning=meaning)


def _optional(type: pa.DataType, meaning: str) -> Column:
    return Column(type=type, meaning=meaning, nullable=True)


_PAPER_COLUMNS = {
    "title": _optional(TEXT, "title; null where the release has none or an empty one"),
    "year": _optional(pa.int16(), "year of publication"),
    "venue": _optional(TEXT, "venue as the release names it"),
    "fields": _required(pa.list_(TEXT), "fields of study, distinct, in the release's order; empty where unknown"),
    "doi": _optional(TEXT, "digital object identifier"),
    "citation_count": _optional(pa.int32(), "citations that the release's record states (not a count of ours)"),
    "reference_count": _optional(pa.int32(), "references that the release's record states (not a count of ours)"),
}
_CITATION_COLUMNS = {
    "citing": _required(ID, "corpus id of the paper that cites"),
    "cited": _required(ID, "corpus id of the paper that is cited"),
    "influential": _required(pa.bool_(), "true if any copy of the citation in the release says so"),
    "intents": _required(pa.list_(TEXT), "union of background, methodology, result over all copies, sorted"),
}
_PAIR_COLUMNS = {
    "paper": _required(ID, "corpus id, the smaller of the two"),
    "other": _required(ID, "corpus id, the larger of the two"),
    "count": _required(COUNT, "distinct papers that cite both"),
}
_TRIPLET_TEXT_COLUMNS = {
    **{name: _required(ID, f"corpus id of the {name}") for name in ("query", "positive", "negative")},
    **{
        f"{name}_{part}": _required(TEXT, f"{part} of the {name}")
        for name in ("query", "positive", "negative")
        for part in ("title", "abstract")
    },
}

_DECLARATIONS = [
    Table(
        name="ingested_papers",
        path="corpus/ingested/papers/{part}/{bucket}.parquet",
        description="Temporary: the papers of some shards, before they are merged by bucket.",
        key=("corpusid",),
        ordered=False,
        columns={
            "corpusid": _required(ID, "Semantic Scholar's corpus id"),
            **_PAPER_COLUMNS,
        },
    ),
    Table(
        name="ingested_abstracts",
        path="corpus/ingested/abstracts/{part}/{bucket}.parquet",
        description="Temporary: the abstracts of some shards, before they are merged by bucket.",
        key=("corpusid",),
        ordered=False,
        columns={
            "corpusid": _required(ID, "Semantic Scholar's corpus id"),
            "abstract": _required(TEXT, "abstract, not empty"),
        },
    ),
    Table(
        name="ingested_citations",
        path="corpus/ingested/citations/{part}/{bucket}.parquet",
        description="Temporary: the citations of some shards, distinct within them, before they are merged by bucket.",
        key=("citing", "cited"),
        ordered=False,
        columns=_CITATION_COLUMNS,
    ),
    Table(
        name="papers",
        path="corpus/papers/{bucket}.parquet",
        description="The papers of the release with their abstracts; sharded by corpusid modulo the number of buckets.",
        key=("corpusid",),
        columns={
            "corpusid": _required(ID, "Semantic Scholar's corpus id"),
            "abstract": _optional(TEXT, "abstract; null where there is none"),
            **_PAPER_COLUMNS,
        },
    ),
    Table(
        name="citations",
        path="corpus/citations/{bucket}.parquet",
        description=(
            "Distinct citations of the release; sharded by citing modulo the number of buckets. Either end may be a "
            "paper without a record in `papers`."
        ),
        key=("citing", "cited"),
        columns=_CITATION_COLUMNS,
    ),
    Table(
        name="queries",
        path="corpus/queries.parquet",
        description="The papers that anchor triplets, and the papers held out of every graph, index and triplet.",
        key=("corpusid",),
        columns={
            "corpusid": _required(ID, "corpus id"),
            "split": _required(TEXT, "train, validation or holdout"),
        },
    ),
    Table(
        name="omissions",
        path="{stage}/omissions/{step}.parquet",
        description="What a step met and left out, counted by reason.",
        key=("reason",),
        columns={
            "reason": _required(TEXT, "what was left out, and why"),
            "count": _required(COUNT, "how many"),
        },
    ),
    Table(
        name="counted_cocitations",
        path="graph/{graph}/counted/{part}/{bucket}.parquet",
        description="Temporary: the co-citations by the citing papers of one bucket, before they are summed.",
        key=("paper", "other"),
        columns=_PAIR_COLUMNS,
    ),
    Table(
        name="cocitations",
        path="graph/{graph}/cocitations/{bucket}.parquet",
        description="Pairs of papers that are cited together, each pair once (paper < other); sharded by paper.",
        key=("paper", "other"),
        columns=_PAIR_COLUMNS,
    ),
    Table(
        name="edges",
        path="graph/{graph}/edges/{bucket}.parquet",
        description=(
            "The edges that a graph embedding is trained on; held-out papers have none. In an undirected graph each "
            "pair stands once, source < target. Sharded by source."
        ),
        key=("source", "target"),
        columns={
            "source": _required(ID, "corpus id; the citing paper in a directed citation graph"),
            "target": _required(ID, "corpus id; the cited paper in a directed citation graph"),
            "weight": _required(pa.float32(), "strength: the count of a co-citation, 1 for a citation"),
        },
    ),
    Table(
        name="graph_scores",
        path="biggraph/{embedding}/graph_scores.parquet",
        description="Link prediction of a graph embedding on the edges that its training never saw.",
        key=("epoch", "metric"),
        columns={
            "epoch": _required(pa.int32(), "epochs trained, from 1"),
            "metric": _required(TEXT, "loss, mean_rank, mrr, hits_at_1, hits_at_10, hits_at_50 or auc"),
            "value": _required(pa.float64(), "the metric's value; all but loss and mean_rank lie between 0 and 1"),
            "edges": _required(COUNT, "held-out edges it was measured on"),
        },
    ),
    Table(
        name="graph_embeddings",
        path="biggraph/{embedding}/graph_embeddings.parquet",
        description="One vector for each paper that has an edge.",
        key=("corpusid",),
        columns={
            "corpusid": _required(ID, "corpus id"),
            "vector": _required(VECTOR, "position in the graph embedding"),
        },
    ),
    Table(
        name="neighbours",
        path="neighbours/{embedding}/neighbours.parquet",
        description=(
            "The k nearest neighbours of each query in a graph embedding; the query itself is never among them."
        ),
        key=("query", "rank"),
        columns={
            "query": _required(ID, "corpus id of the query"),
            "rank": _required(pa.int32(), "1 is the nearest; ties are broken by corpus id"),
            "neighbour": _required(ID, "corpus id of the neighbour"),
            "distance": _required(
                pa.float32(), "1 − cosine, or the squared Euclidean distance, as the search was asked for"
            ),
        },
    ),
    Table(
        name="triplets",
        path="triplets/{triplets}/triplets.parquet",
        description="Query, positive and negative as the sampler chose them, before they are cut to equal sizes.",
        key=("query", "positive", "negative"),
        columns={
            "query": _required(ID, "corpus id of the query"),
            "positive": _required(ID, "corpus id of a paper that shall be near"),
            "negative": _required(ID, "corpus id of a paper that shall be far"),
            "split": _required(TEXT, "train or validation: that of the query"),
            "positive_rank": _optional(
                pa.int32(), "rank of the positive among the query's neighbours, where it has one"
            ),
            "negative_rank": _optional(
                pa.int32(), "rank of the negative among the query's neighbours, where it has one"
            ),
            "negative_kind": _required(TEXT, "hard or easy"),
        },
    ),
    Table(
        name="training_texts",
        path="triplets/{triplets}/training_texts.parquet",
        description=(
            "The training triplets with their texts, cut to the size of the smallest set of the group and shuffled by "
            "query."
        ),
        key=("query", "positive", "negative"),
        ordered=False,
        columns=_TRIPLET_TEXT_COLUMNS,
    ),
    Table(
        name="validation_texts",
        path="triplets/validation_{group}.parquet",
        description=(
            "The validation triplets of all sets of a group with their texts: the validation set of all their models."
        ),
        key=("query", "positive", "negative"),
        ordered=False,
        columns=_TRIPLET_TEXT_COLUMNS,
    ),
    Table(
        name="training_curves",
        path="encoder/{model}/seed-{seed}/training_curves.parquet",
        description="What was measured while an encoder was trained.",
        key=("step", "metric"),
        columns={
            "step": _required(COUNT, "optimiser steps done"),
            "metric": _required(TEXT, "training_loss, validation_loss, validation_accuracy or learning_rate"),
            "value": _required(pa.float64(), "the metric's value"),
        },
    ),
    Table(
        name="documents",
        path="evaluation/{benchmark}/documents.parquet",
        description="The distinct documents of a benchmark, each to be embedded once a model.",
        key=("document",),
        columns={
            "document": _required(TEXT, "the benchmark's id of the document"),
            "title": _optional(TEXT, "title, or the text of a query; null where there is none"),
            "abstract": _optional(TEXT, "abstract; null where there is none"),
            "more": _required(
                pa.list_(TEXT), "what its text holds after the abstract, in order: venue and year in the task search"
            ),
            "field": _optional(TEXT, "field of study, where the benchmark knows one"),
        },
    ),
    Table(
        name="judgements",
        path="evaluation/{benchmark}/judgements.parquet",
        description="The ranking tasks of a benchmark: which candidate is how relevant to which query.",
        key=("task", "query", "candidate"),
        columns={
            "task": _required(TEXT, "name of the task"),
            "query": _required(TEXT, "document id of the query"),
            "candidate": _required(TEXT, "document id of the candidate; in reviewer matching, id of the reviewer"),
            "relevance": _required(pa.int32(), "0 for not relevant, more for more relevant"),
        },
    ),
    Table(
        name="labels",
        path="evaluation/{benchmark}/labels.parquet",
        description="The classification and regression tasks of a benchmark.",
        key=("task", "split", "document"),
        columns={
            "task": _required(TEXT, "name of the task"),
            "split": _required(TEXT, "train or test"),
            "document": _required(TEXT, "document id"),
            "labels": _required(
                pa.list_(TEXT), "class names (several for multi-label tasks), or one number for regression"
            ),
        },
    ),
    Table(
        name="reviewers",
        path="evaluation/{benchmark}/reviewers.parquet",
        description="The papers of the reviewers who stand as candidates in the judgements of reviewer matching.",
        key=("reviewer", "document"),
        columns={
            "reviewer": _required(TEXT, "the benchmark's id of the reviewer"),
            "document": _required(TEXT, "document id of a paper that the reviewer wrote"),
        },
    ),
    Table(
        name="document_embeddings",
        path="encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
        description="One vector for each document of a benchmark.",
        key=("document",),
        columns={
            "document": _required(TEXT, "the benchmark's id of the document"),
            "vector": _required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        name="scores",
        path="evaluation/{folder}/scores/{file}.parquet",
        description=(
            "What a model reached on a task. Baselines stand beside the models: untrained_<encoder>, bm25 and random."
        ),
        key=("model", "seed", "benchmark", "task", "metric", "evaluation_seed"),
        columns={
            "model": _required(TEXT, "name of the model or baseline"),
            "seed": _required(pa.int32(), "the seed it was trained with; 0 for baselines"),
            "benchmark": _required(TEXT, "name of the benchmark"),
            "task": _required(TEXT, "name of the task"),
            "metric": _required(TEXT, "name of the metric"),
            "evaluation_seed": _required(pa.int32(), "seed of the random choices of the evaluation"),
            "format": _required(TEXT, "classification, regression, proximity, reviewer-matching or search"),
            "value": _required(pa.float64(), "score × 100"),
            "documents": _required(COUNT, "documents the task asked for"),
            "missing": _required(COUNT, "documents among them without a vector"),
            "mode": _required(TEXT, "compat: as published; correct: as it should be; both: the two agree"),
        },
    ),
]

TABLES = {table.name: table for table in _DECLARATIONS}


def empty_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table, with `VECTOR` standing for vectors of any dimension."""
    return pa.schema([pa.field(name, column.type, nullable=column.nullable) for name, column in table.columns.items()])
