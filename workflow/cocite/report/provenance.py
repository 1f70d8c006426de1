"""What made the results: the configuration with all defaults, the release, and the versions of the libraries."""

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.files import read_json, write_text

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


def write_provenance(configuration: dict[str, Any], manifest: Path, output: Path) -> None:
    """Write configuration, release and versions as one JSON object.

    Its keys are not sorted: the report shows models and benchmarks in the order in which they were configured.
    """
    listed = read_json(manifest)
    described = {
        "configuration": configuration,
        "release": listed["release"],
        "shards": {name: len(dataset["shards"]) for name, dataset in listed["datasets"].items()},
        "versions": {
            "cocite": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
    }
    write_text(output, json.dumps(described, indent=2, ensure_ascii=False) + "\n")
