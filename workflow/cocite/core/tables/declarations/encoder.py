"""What the stages encoder and baselines write: the curves of a training, and documents and papers as vectors."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, ID, TEXT, VECTOR, Table, corpus_id, required

TABLES = [
    Table(
        "training_curves",
        "encoder/{model}/seed-{seed}/training_curves.parquet",
        "What was measured while an encoder was trained.",
        key=("step", "metric"),
        columns={
            "step": required(COUNT, "optimiser steps done"),
            "metric": required(
                TEXT,
                "training_loss, learning_rate, validation_loss, validation_accuracy or validation_spearman; of several "
                "objectives the means, and those of each as well, such as `validation_loss of citations`",
            ),
            "value": required(pa.float64(), "the metric's value"),
        },
    ),
    Table(
        "document_embeddings",
        "encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
        "One vector for each document of a benchmark; of an encoder with adapters, one by each adapter that the "
        "benchmark's formats use.",
        key=("adapter", "document"),
        columns={
            "adapter": required(TEXT, "the adapter that was switched on; empty where none was"),
            "document": required(TEXT, "the benchmark's id of the document"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        "paper_embeddings",
        "encoder/{model}/seed-{seed}/papers/{bucket}.parquet",
        "One vector for each paper of the corpus that has a title or an abstract, held-out papers included, for "
        "`cocite search` and for mined negatives; made when it is asked for. Sharded like `papers`.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        "text_embeddings",
        "encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet",
        "One vector for each text of a set of examples that is no paper, for mined negatives.",
        key=("text",),
        columns={
            "text": required(ID, "negative id of the text"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        "baseline_embeddings",
        "baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet",
        "The vectors of a benchmark's documents by a baseline, with the columns of `document_embeddings`; a "
        "document that the baseline has no vector for is left out.",
        key=("adapter", "document"),
        columns={
            "adapter": required(TEXT, "always empty: baselines have no adapters"),
            "document": required(TEXT, "the benchmark's id of the document"),
            "vector": required(VECTOR, "the document's vector"),
        },
    ),
    Table(
        "baseline_paper_embeddings",
        "baselines/{baseline}/seed-{seed}/papers/{bucket}.parquet",
        "The vectors of the papers of the corpus by a baseline that another one stands on, with the columns of "
        "`paper_embeddings`. Sharded like `papers`.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "vector": required(VECTOR, "the paper's vector"),
        },
    ),
    Table(
        "baseline_grid",
        "baselines/{baseline}/seed-{seed}/grid.parquet",
        "What the points of a baseline's grid reach on the validation queries; the best is scored.",
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
