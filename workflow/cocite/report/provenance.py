"""What made the results: the configuration with all defaults, the release, and the versions of the libraries."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.files import read_json

LIBRARIES = (
    "snakemake",
    "polars",
    "pyarrow",
    "duckdb",
    "torchbiggraph",
    "faiss-cpu",
    "torch",
    "transformers",
    "sentence-transformers",
    "scikit-learn",
    "pytrec-eval-terrier",
    "bm25s",
    "numpy",
)


def provenance(configuration: dict[str, Any], manifest: Path) -> dict[str, Any]:
    """Configuration, release and versions as one JSON object."""
    listed = read_json(manifest)
    return {
        "configuration": configuration,
        "release": listed["release"],
        "shards": {name: len(dataset["shards"]) for name, dataset in listed["datasets"].items()},
        "versions": {
            "cocite": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
    }
