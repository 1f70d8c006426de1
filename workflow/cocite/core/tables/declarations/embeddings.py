"""What the stage embeddings writes: graph embeddings and their scores."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, TEXT, VECTOR, Table, corpus_id, required

TABLES = [
    Table(
        name="graph_scores",
        path="embeddings/{embedding}/graph_scores.parquet",
        description=(
            "Link prediction of a graph embedding on the edges that its training never saw, each ranked among 1,000 "
            "papers of other held-out edges and 1,000 of all; these are the same for all embeddings of a graph."
        ),
        key=("epoch", "metric", "filtered"),
        columns={
            "epoch": required(pa.int32(), "epochs trained, from 1"),
            "metric": required(TEXT, "loss, mean_rank, mrr, hits_at_1, hits_at_10, hits_at_50 or auc"),
            "filtered": required(pa.bool_(), "true if other neighbours of a paper do not count among its negatives"),
            "value": required(
                pa.float64(),
                "the metric's value; all but mean_rank and loss, a sum over negatives, lie between 0 and 1",
            ),
            "edges": required(COUNT, "held-out edges it was measured on"),
        },
    ),
    Table(
        name="graph_embeddings",
        path="embeddings/{embedding}/graph_embeddings.parquet",
        description="One vector for each paper that has an edge.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "vector": required(VECTOR, "position in the graph embedding"),
        },
    ),
]
