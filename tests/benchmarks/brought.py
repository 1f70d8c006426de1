"""Brought vectors of 100,000 documents in the layout of SPECTER's files, beside `json` line by line.

Ours is the whole command: it reads the documents, reads and checks the vectors, and writes the table of them. By hand,
the vectors are read and stacked, and neither checked nor written.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.measuring import cocite, python, run, say

from cocite.core.tables.files import write_table

DOCUMENTS = 100_000
DIMENSION = 768


def main(folder: Path, documents: int = DOCUMENTS) -> None:
    run(python(write_vectors, folder, documents))
    path = folder / "vectors.jsonl"
    settings = {"kind": "brought", "path": str(path)}
    options = {"sources": {}, "seed": 1, "threads": 2, "output": folder / "embeddings.parquet"}
    ours = cocite("baselines", "embed", folder / "documents.parquet", settings=settings, **options)
    for name, command in (("The command", ours), ("By hand", python(by_hand, path))):
        size = path.stat().st_size / 1e9
        say(f"{name}, {documents:,} documents, {size:.1f} GB of JSON: {run(command)}.")


def by_hand(path: Path) -> None:
    with path.open(encoding="utf-8") as lines:
        np.stack([np.array(json.loads(line)["embedding"], np.float32) for line in lines])


def write_vectors(folder: Path, documents: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw, names = np.random.default_rng(1), [f"{number:040x}" for number in range(documents)]
    with (folder / "vectors.jsonl").open("w", encoding="utf-8") as file:
        for name in names:
            vector = draw.standard_normal(DIMENSION).tolist()
            file.write(json.dumps({"paper_id": name, "title": f"On the paper {name}", "embedding": vector}) + "\n")
    columns = {"document": names, "title": names, "abstract": pa.nulls(documents, pa.string())}
    more = {"more": pa.array([[]] * documents, pa.list_(pa.string())), "field": pa.nulls(documents, pa.string())}
    write_table(folder / "documents.parquet", "documents", pa.table({**columns, **more}))
