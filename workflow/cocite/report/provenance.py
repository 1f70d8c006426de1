"""What made the results: the configuration with all defaults, the release, the machine, and the versions."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.config.terms import packages_of
from cocite.report.machine import describe_machine
from cocite.tables.files import read_json, write_text

LIBRARIES = (
    "snakemake",
    "polars",
    "pyarrow",
    "duckdb",
    "torchbiggraph",
    "faiss-cpu",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "peft",
    "numba",
    "scipy",
    "scikit-learn",
    "pytrec-eval-terrier",
    "bm25s",
    "numpy",
)
DESCRIBING = ("README*", "LICENSE*", "LICENCE*", "ATTRIBUTION*", "CITATION*", "release.json")
"""What files are called in which the folder of a release says whose it is."""


def write_provenance(configuration: dict[str, Any], manifest: Path, output: Path) -> None:
    """Write configuration, release, machine and versions as one JSON object.

    Its keys are not sorted: the report shows models and benchmarks in the order in which they were configured.
    """
    listed = read_json(manifest)
    described = {
        "configuration": configuration,
        "release": listed["release"],
        "shards": {name: len(dataset["shards"]) for name, dataset in listed["datasets"].items()},
        "readmes": {name: dataset.get("readme", "") for name, dataset in listed["datasets"].items()},
        "release_files": _describing_files(configuration),
        "packages": packages_of(configuration),
        "machine": describe_machine(),
        "versions": {
            "cocite": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
    }
    write_text(output, json.dumps(described, indent=2, ensure_ascii=False) + "\n")


def _describing_files(configuration: Mapping[str, Any]) -> list[str]:
    """The files of a release in a folder that may say whose it is."""
    corpus = configuration.get("corpus", {})
    if corpus.get("source") != "directory":
        return []
    folder = Path(corpus["path"])
    return sorted({file.name for pattern in DESCRIBING for file in folder.glob(pattern)})
