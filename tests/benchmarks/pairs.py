"""Sampling brought queries from a generated collection in the layout of MS MARCO's mined negatives, and their texts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import Command, cocite, python, run, say
from tests.papers import papers_table

from cocite.core.tables.files import count_rows, write_table

QUERIES, SYSTEMS, MINED = 60_000, 12, 50
"""As published: 12 systems, of which each has mined 50 negatives for a query; there, of 500,000 queries."""
SIZES = (1_000_000, 4_000_000)
"""Passages of the collection; the queries are the same in both."""
WORDS = 55
"""Words of a passage, about as many as those of MS MARCO have."""
KEPT = True
SETTINGS = {"sampler": "pairs", "paired": True, "per_query": 5}


def main(folder: Path) -> None:
    for passages in SIZES:
        corpus = folder / "pairs" / str(passages)
        if not (corpus / "made").exists():
            run(python(write_collection, corpus, passages))
        for name, command in _steps(corpus).items():
            say(f"{name} from {passages:,} passages: {run(command)}.")
        say(f"{count_rows(corpus / 'triplets.parquet'):,} examples, {count_rows(corpus / 'texts.parquet'):,} texts.")


def write_collection(folder: Path, passages: int) -> None:
    """Write a corpus of one paper, and the files of MS MARCO with so many passages."""
    random = np.random.default_rng(1)
    words = np.array([f"w{number:x}" for number in range(50_000)])
    brought = folder / "brought"
    brought.mkdir(parents=True, exist_ok=True)
    write_table(folder / "papers/0.parquet", "papers", papers_table({1: ("one", "first")}))
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": [1], "split": ["train"]}))
    with (brought / "collection.tsv").open("w") as file:
        for first in range(0, passages, 10_000):
            drawn = words[random.integers(0, len(words), (10_000, WORDS))]
            file.writelines(f"{first + row}\t{' '.join(some)}\n" for row, some in enumerate(drawn))
    with (brought / "queries.train.tsv").open("w") as file:
        file.writelines(f"{query}\t{' '.join(words[random.integers(0, 50_000, 6)])}\n" for query in range(QUERIES))
    scored: list[dict[str, object]] = []
    with (brought / "msmarco-hard-negatives.jsonl").open("w") as file:
        for query in range(QUERIES):
            found = random.integers(0, passages, 1 + SYSTEMS * MINED)
            mined = {f"system-{number}": found[1 + number :: SYSTEMS].tolist() for number in range(SYSTEMS)}
            file.write(json.dumps({"qid": query, "pos": [int(found[0])], "neg": mined}) + "\n")
            scores = np.append(9.0, random.normal(4, 3, len(found) - 1)).astype(np.float32)
            scored.append({"query_id": query, "corpus_id": found, "score": scores})
    pq.write_table(pa.Table.from_pylist(scored), folder / "scores.parquet", row_group_size=5_000)
    (folder / "made").touch()


def _steps(corpus: Path) -> dict[str, Command]:
    layout = {"kind": "msmarco", "scores": {"dataset": str(corpus / "scores.parquet")}, "margin": 3.0}
    settings = {**SETTINGS, "dataset": str(corpus / "brought"), "layout": layout}
    common = {"papers": corpus / "papers", "seed": 1, "threads": 2}
    triplets, texts = corpus / "triplets.parquet", corpus / "texts.parquet"
    written = {"omissions": corpus / "omissions.parquet", "written_settings": corpus / "settings.json"}
    sampled = {"settings": settings, "queries": corpus / "queries.parquet", "output": triplets, "texts": texts}
    made = {"triplets": triplets, "output": corpus / "examples.parquet", "documents": corpus / "documents"}
    return {
        "Sampling": cocite("triplets", "sample", **common, **sampled, **written),
        "Materialising": cocite("triplets", "materialise", triplets, texts, **common, **made),
    }
