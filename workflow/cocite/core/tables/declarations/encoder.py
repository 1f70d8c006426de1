"""What the stage encoder writes: the curves of a training, and documents as vectors."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, ID, TEXT, VECTOR, Table, corpus_id, required

TABLES = [
    Table(
        name="training_curves",
        path="encoder/{model}/seed-{seed}/training_curves.parquet",
        description="What was measured while an encoder was trained.",
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
        name="document_embeddings",
        path="encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
        description=(
            "One vector for each document of a benchmark; of an encoder with adapters, one by each adapter that the "
            "benchmark's formats use."
        ),
        key=("adapter", "document"),
        columns={
            "adapter": required(TEXT, "the adapter that was switched on; empty where none was"),
            "document": required(TEXT, "the benchmark's id of the document"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        name="paper_embeddings",
        path="encoder/{model}/seed-{seed}/papers/{bucket}.parquet",
        description=(
            "One vector for each paper of the corpus that has a title or an abstract, held-out papers included, for "
            "`cocite search` and for mined negatives; made when it is asked for. Sharded like `papers`."
        ),
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
    Table(
        name="text_embeddings",
        path="encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet",
        description="One vector for each text of a set of examples that is no paper, for mined negatives.",
        key=("text",),
        columns={
            "text": required(ID, "negative id of the text"),
            "vector": required(VECTOR, "the encoder's pooled output"),
        },
    ),
]
