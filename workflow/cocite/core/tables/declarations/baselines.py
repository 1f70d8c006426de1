"""What the stage baselines writes: documents and papers as vectors of baselines."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, TEXT, VECTOR, Table, corpus_id, required

TABLES = [
    Table(
        name="baseline_embeddings",
        path="baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet",
        description=(
            "The vectors of a benchmark's documents by a baseline, with the columns of `document_embeddings`; a "
            "document that the baseline has no vector for is left out."
        ),
        key=("adapter", "document"),
        columns={
            "adapter": required(TEXT, "always empty: baselines have no adapters"),
            "document": required(TEXT, "the benchmark's id of the document"),
            "vector": required(VECTOR, "the document's vector"),
        },
    ),
    Table(
        name="baseline_paper_embeddings",
        path="baselines/{baseline}/seed-{seed}/papers/{bucket}.parquet",
        description=(
            "The vectors of the papers of the corpus by a baseline that another one stands on, with the columns of "
            "`paper_embeddings`. Sharded like `papers`."
        ),
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "vector": required(VECTOR, "the paper's vector"),
        },
    ),
    Table(
        name="baseline_grid",
        path="baselines/{baseline}/seed-{seed}/grid.parquet",
        description="What the points of a baseline's grid reach on the validation queries; the best is scored.",
        key=("point",),
        columns={
            "point": required(COUNT, "number of the point, in the order of the grid"),
            "settings": required(TEXT, "the settings of the point, as JSON"),
            "reciprocal_rank": required(
                pa.float64(), "mean of 1 / the rank of a cited paper among random ones, 0 without a vector"
            ),
            "judged": required(COUNT, "cited papers that were ranked"),
            "chosen": required(pa.bool_(), "whether it is scored"),
        },
    ),
]
