"""What the stages graph, embeddings and neighbours write: pairs and edges, vectors and scores, nearest papers."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, TEXT, VECTOR, Column, Table, corpus_id, required
from cocite.core.tables.declarations.corpus import CITATION_ENDS


def _pair_columns(count: str) -> dict[str, Column]:
    """The columns of a table of pairs, whose count means this."""
    return {
        "paper": corpus_id("corpus id, the smaller of the two"),
        "other": corpus_id("corpus id, the larger of the two"),
        "count": required(COUNT, count),
        "strength": Column(
            type=pa.float64(),
            meaning="the measure that graphs.<name>.strength asks for; not there for count",
            optional=True,
        ),
    }


TABLES = [
    Table(
        name="split_citations",
        path="graph/split_citations/{part}/{bucket}.parquet",
        description="Temporary: the citations of one bucket of citing papers, by bucket of the cited paper.",
        key=("cited", "citing"),
        columns=CITATION_ENDS,
    ),
    Table(
        name="citations_by_cited",
        path="graph/citations_by_cited/{bucket}.parquet",
        description=(
            "Temporary: the citations that are not by or of papers that are kept out, sharded by cited modulo the "
            "number of buckets."
        ),
        key=("cited", "citing"),
        columns=CITATION_ENDS,
    ),
    Table(
        name="cocitations",
        path="graph/{graph}/cocitations/{bucket}.parquet",
        description="Pairs of papers that are cited together, each pair once (paper < other); sharded by paper.",
        key=("paper", "other"),
        columns=_pair_columns("distinct papers that cite both; with signal: sentence-cocitation, distinct sentences"),
    ),
    Table(
        name="couplings",
        path="graph/{graph}/couplings/{bucket}.parquet",
        description="Pairs of papers that cite the same papers, each pair once (paper < other); sharded by paper.",
        key=("paper", "other"),
        columns=_pair_columns("distinct papers that both cite"),
    ),
    Table(
        name="edges",
        path="graph/{graph}/edges/{bucket}.parquet",
        description=(
            "The edges that a graph embedding is trained on; papers that are kept out have none. In an undirected "
            "graph each pair stands once, source < target. Sharded by source."
        ),
        key=("source", "target"),
        columns={
            "source": corpus_id("corpus id; the citing paper in a directed citation graph"),
            "target": corpus_id("corpus id; the cited paper in a directed citation graph"),
            "weight": required(
                pa.float32(),
                "the strength of a pair, its count unless another measure is asked for; 1 for a citation; in a "
                "combination, the weighted sum",
            ),
            "intents": Column(
                type=pa.list_(TEXT),
                meaning="intents of the citation, in a directed citation graph; not there in others",
                optional=True,
            ),
        },
    ),
    Table(
        name="intent_counts",
        path="graph/{graph}/intent_counts.parquet",
        description="How many citations of a directed citation graph have which intent.",
        key=("intent",),
        columns={
            "intent": required(TEXT, "background, methodology or result alone; several of them; or none"),
            "citations": required(COUNT, "citations of that kind"),
        },
        ordered=False,
    ),
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
