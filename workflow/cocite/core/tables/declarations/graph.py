"""What the stages graph, embeddings and neighbours write: pairs and edges, vectors and scores, nearest papers."""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, TEXT, VECTOR, Column, corpus_id, extra, required, table
from cocite.core.tables.declarations.corpus import CITATION_ENDS, WEIGHT


def _pair_columns(count: str) -> dict[str, Column]:
    """The columns of a table of pairs, whose count means this."""
    return {
        "paper": corpus_id("corpus id, the smaller of the two"),
        "other": corpus_id("corpus id, the larger of the two"),
        "count": required(COUNT, count),
        "strength": extra(pa.float64(), "the measure graphs.<name>.strength; absent for count"),
    }


TABLES = [
    table(
        "split_citations",
        "graph/split_citations/{part}/{bucket}.parquet",
        "Temporary: the citations of one bucket of citing papers, by bucket of the cited paper.",
        ("cited", "citing"),
        **CITATION_ENDS,
        **WEIGHT,
    ),
    table(
        "citations_by_cited",
        "graph/citations_by_cited/{bucket}.parquet",
        "Temporary: the citations that are not by or of papers that are kept out, sharded by cited modulo the number "
        "of buckets.",
        ("cited", "citing"),
        **CITATION_ENDS,
        **WEIGHT,
    ),
    table(
        "cocitations",
        "graph/{graph}/cocitations/{bucket}.parquet",
        "Pairs of papers that are cited together, each pair once (paper < other); sharded by paper.",
        ("paper", "other"),
        **_pair_columns("distinct papers that cite both; with signal: sentence-cocitation, distinct sentences"),
    ),
    table(
        "couplings",
        "graph/{graph}/couplings/{bucket}.parquet",
        "Pairs of papers that cite the same papers, each pair once (paper < other); sharded by paper.",
        ("paper", "other"),
        **_pair_columns("distinct papers that both cite"),
    ),
    table(
        "edges",
        "graph/{graph}/edges/{bucket}.parquet",
        "The edges that a graph embedding is trained on, without excluded papers. In an undirected graph each pair "
        "occurs once, source < target. Sharded by source.",
        ("source", "target"),
        source=corpus_id("corpus id; the citing paper in a directed citation graph"),
        target=corpus_id("corpus id; the cited paper in a directed citation graph"),
        weight=required(
            pa.float32(),
            "the strength of a pair, by default its count; 1 for a citation without `citations.weights`; in a "
            "combination, the weighted sum",
        ),
        intents=extra(pa.list_(TEXT), "intents of the citation, in a directed citation graph; not there in others"),
    ),
    table(
        "intent_counts",
        "graph/{graph}/intent_counts.parquet",
        "How many citations of a directed citation graph have which intent.",
        ("intent",),
        "unordered",
        intent=required(TEXT, "one of background, methodology, result; several of them; or none"),
        citations=required(COUNT, "citations of that kind"),
    ),
    table(
        "graph_scores",
        "embeddings/{embedding}/graph_scores.parquet",
        "Link prediction of a graph embedding on the edges that its training never saw, each ranked among 1,000 papers "
        "of other held-out edges and 1,000 of all; these are the same for all embeddings of a graph.",
        ("epoch", "metric", "filtered"),
        epoch=required(pa.int32(), "epochs trained, from 1"),
        metric=required(TEXT, "loss, mean_rank, mrr, hits_at_1, hits_at_10, hits_at_50 or auc"),
        filtered=required(pa.bool_(), "true if other neighbours of a paper do not count among its negatives"),
        value=required(
            pa.float64(), "the metric's value; all but mean_rank and loss, a sum over negatives, are between 0 and 1"
        ),
        edges=required(COUNT, "held-out edges it was measured on"),
    ),
    table(
        "graph_embeddings",
        "embeddings/{embedding}/graph_embeddings.parquet",
        "One vector for each paper that has an edge.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        vector=required(VECTOR, "position in the graph embedding"),
    ),
    table(
        "neighbours",
        "neighbours/{embedding}/neighbours/{bucket}.parquet",
        "The k nearest neighbours of each query in a graph embedding, or by walks on a graph; the query itself is "
        "never among them. Sharded by query modulo the number of shards.",
        ("query", "rank"),
        query=corpus_id("corpus id of the query", encoding="RLE_DICTIONARY"),
        rank=required(
            pa.int32(),
            "1 is the nearest, and none is left out; ties are broken by corpus id",
            encoding="DELTA_BINARY_PACKED",
        ),
        neighbour=corpus_id("corpus id of the neighbour", encoding="DELTA_BINARY_PACKED"),
        distance=required(
            pa.float32(),
            "1 − cosine, the squared Euclidean distance or minus the inner product, by the metric of the search; by "
            "walks, minus the natural logarithm of the score",
        ),
    ),
    table(
        "search_quality",
        "neighbours/{embedding}/search_quality.parquet",
        "Recall of an approximate index: the share of true neighbours that it finds, measured on some queries. No "
        "table for an exact search.",
        ("k",),
        metric=required(TEXT, "cosine, l2 or inner_product"),
        index=required(TEXT, "ivf or hnsw"),
        k=required(pa.int32(), "ranks that are compared, from the nearest on"),
        queries=required(COUNT, "queries that were searched both ways"),
        recall=required(pa.float64(), "share of the k true neighbours that are among the k found"),
        seconds=required(pa.float64(), "time of the search with the index for all k, seconds"),
        exact_seconds=required(pa.float64(), "time of the exact search of the same queries, seconds"),
    ),
    table(
        "mined_candidates",
        "neighbours/mined_{triplets}/candidates.parquet",
        "The documents that rank highest for each query of a set whose negatives are mined. Neither the query nor one "
        "of its positives is among them.",
        ("query", "rank"),
        query=corpus_id("id of the query", encoding="RLE_DICTIONARY"),
        rank=Column(
            type=pa.int32(), meaning="1 has the highest score; ties are broken by id", encoding="DELTA_BINARY_PACKED"
        ),
        document=corpus_id("id of the document", encoding="DELTA_BINARY_PACKED"),
        score=required(
            pa.float32(), "BM25, cosine, minus the squared Euclidean distance, or inner product, by the method"
        ),
        likeness=required(
            pa.float32(),
            "largest cosine of the document to the query or to one of its positives; by BM25, of their vectors of "
            "weighted words",
        ),
    ),
    table(
        "mined_positives",
        "neighbours/mined_{triplets}/positives.parquet",
        "The scores of the positives of each query of a set whose negatives are mined.",
        ("query", "positive"),
        query=corpus_id("id of the query"),
        positive=corpus_id("id of the positive"),
        score=required(pa.float32(), "as that of the candidates"),
    ),
]
