"""The stage encoder: text encoders, built or fetched, fine-tuned on examples, and the embeddings of documents.

It imports torch, transformers and tokenizers but neither Polars, DuckDB nor FAISS, so that it can be carried alone to a
machine with a GPU. To follow a step of a training, read trainer, schedule, examples, batch, objective and model, in
this order, and its loss and pooling; processes starts a training, and tokens defines the text of a document.
"""

import os


def work_offline(threads: int) -> None:
    """Allow no network and only so many threads, and keep the libraries' advice out of the logs. They read these
    settings when they are imported. cuBLAS is deterministic only with a workspace of fixed size; packed rows would
    fragment a GPU's memory."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    os.environ.update(OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
