"""What the libraries read from their surroundings when they are first imported; it is set before."""

import os

VERSIONED = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def work_offline(threads: int | None = None) -> None:
    """Allow no network and so many threads, and keep the libraries' advice out of the logs.

    The settings of the tokenizers and of cuBLAS, which is only deterministic with a workspace of fixed size, are read
    from the environment alone.
    """
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if threads is not None:
        os.environ.update(OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"


def library_versions() -> dict[str, str]:
    """The versions of the libraries that a result depends on."""
    from importlib.metadata import version

    return {name: version(name) for name in VERSIONED}
