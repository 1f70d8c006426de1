"""What the stage neighbours writes: the nearest papers of each query, and the candidates of mined negatives."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, TEXT, Column, Table, corpus_id, required

TABLES = [
    Table(
        name="neighbours",
        path="neighbours/{embedding}/neighbours/{bucket}.parquet",
        description=(
            "The k nearest neighbours of each query in a graph embedding, or by walks on a graph; the query itself is "
            "never among them. Sharded by query modulo the number of shards."
        ),
        key=("query", "rank"),
        columns={
            "query": corpus_id("corpus id of the query", "RLE_DICTIONARY"),
            "rank": Column(
                type=pa.int32(),
                meaning="1 is the nearest, and none is left out; ties are broken by corpus id",
                encoding="DELTA_BINARY_PACKED",
            ),
            "neighbour": corpus_id("corpus id of the neighbour", "DELTA_BINARY_PACKED"),
            "distance": required(
                pa.float32(),
                "1 − cosine, the squared Euclidean distance or minus the inner product, as the search was asked for; "
                "by walks, minus the natural logarithm of the score",
            ),
        },
    ),
    Table(
        name="search_quality",
        path="neighbours/{embedding}/search_quality.parquet",
        description=(
            "How many of the true neighbours an approximate index leads to, measured on some queries; there is none "
            "where the search is exact."
        ),
        key=("k",),
        columns={
            "metric": required(TEXT, "cosine, l2 or inner_product"),
            "index": required(TEXT, "ivf or hnsw"),
            "k": required(pa.int32(), "ranks that are compared, from the nearest on"),
            "queries": required(COUNT, "queries that were searched both ways"),
            "recall": required(pa.float64(), "share of the k true neighbours that are among the k found"),
            "seconds": required(pa.float64(), "time of the search with the index for all k, seconds"),
            "exact_seconds": required(pa.float64(), "time of the exact search of the same queries, seconds"),
        },
    ),
    Table(
        name="mined_candidates",
        path="neighbours/mined_{triplets}/candidates.parquet",
        description=(
            "The documents that rank highest for each query of a set whose negatives are mined. Neither the query nor "
            "one of its positives is among them."
        ),
        key=("query", "rank"),
        columns={
            "query": corpus_id("id of the query", "RLE_DICTIONARY"),
            "rank": Column(
                type=pa.int32(),
                meaning="1 has the highest score; ties are broken by id",
                encoding="DELTA_BINARY_PACKED",
            ),
            "document": corpus_id("id of the document", "DELTA_BINARY_PACKED"),
            "score": required(
                pa.float32(), "BM25, cosine, minus the squared Euclidean distance, or inner product, as was asked for"
            ),
            "likeness": required(
                pa.float32(),
                "largest cosine of the document to the query or to one of its positives; by BM25, of their vectors of "
                "weighted words",
            ),
        },
    ),
    Table(
        name="mined_positives",
        path="neighbours/mined_{triplets}/positives.parquet",
        description="The scores of the positives of each query of a set whose negatives are mined.",
        key=("query", "positive"),
        columns={
            "query": corpus_id("id of the query"),
            "positive": corpus_id("id of the positive"),
            "score": required(pa.float32(), "as that of the candidates"),
        },
    ),
]
