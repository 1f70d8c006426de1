"""The environment of steps that use no network and only some threads."""

import os


def work_offline(threads: int) -> None:
    """Allow no network and only so many threads, and keep the libraries' advice out of the logs.

    It has to come before torch, transformers and tokenizers are imported: the settings of the tokenizers and of cuBLAS,
    which is only deterministic with a workspace of fixed size, are read from the environment alone. So are those of a
    GPU's memory, which rows of packed documents of all lengths would cut into pieces that fit no other.
    """
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    os.environ.update(OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
