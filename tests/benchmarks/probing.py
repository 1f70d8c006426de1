"""A probe of a set beside one fine-tuning on it, and the memory of a probe as the papers become more.

The set has 15,000 triplets of 3,000 queries, and vectors of 384 dimensions. A probe trains six maps: two losses with
three seeds. The fine-tuning is that of an encoder of MiniLM's size on the texts of a part of such a set, by the triplet
loss; its time for all triplets is reckoned from it.
"""

import statistics
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.made_triplets import PER_QUERY, write_encoder, write_triplets
from tests.benchmarks.measuring import answer, cocite, python, run, say
from tests.benchmarks.training import train

from cocite.core.tables.files import vector_column, write_table

IN_TRIPLETS = 30_000
"""Papers that documents of triplets are drawn from."""
PAPERS = (IN_TRIPLETS, 10 * IN_TRIPLETS, 30 * IN_TRIPLETS)
ROUNDS = 3
TUNED = {"training": 24, "validation": 4}
"""Queries of the fine-tuning."""
SETTINGS = {"losses": ["triplet", {"kind": "mnrl", "scale": 10.0}], "seeds": [1, 2, 3]}
QUERIES, DIMENSION = 3000, 384


def main(folder: Path) -> None:
    seconds = {}
    for papers in PAPERS:
        part = folder / str(papers)
        run(python(write_set, part, papers))
        options = {"vectors": part / "papers", "settings": SETTINGS, "seed": 1, "threads": 2}
        probe = cocite("encoder", "probe", part / "examples.parquet", **options, output=part / "maps.safetensors")
        costs = [run(probe) for _ in range(ROUNDS)]
        seconds[papers] = statistics.median(cost.wall for cost in costs)
        say(
            f"Six maps of {QUERIES * PER_QUERY:,} triplets among {papers:,} papers: {seconds[papers]:.1f} s, "
            f"{statistics.median(cost.cpu for cost in costs):.1f} s of the processors, peak "
            f"{max(cost.peak_mb for cost in costs):.0f} MB (medians of {ROUNDS}, start included)"
        )
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate(TUNED.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    cost, taken = answer(train, folder, "ours", "float32")
    triplets = TUNED["training"] * PER_QUERY
    whole = taken / triplets * QUERIES * PER_QUERY
    say(
        f"One fine-tuning by the triplet loss: {taken:.0f} s for {triplets} triplets, peak {cost.peak_mb:.0f} MB; an "
        f"epoch of {QUERIES * PER_QUERY:,} would take {whole / 60:.0f} minutes, {whole / seconds[PAPERS[0]]:.0f} × the "
        "time of the six maps."
    )


def write_set(folder: Path, papers: int) -> None:
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((papers, DIMENSION), dtype=np.float32)
    table = pa.table({"corpusid": np.arange(papers), "vector": vector_column(vectors)})
    write_table(folder / "papers/0.parquet", "paper_embeddings", table)
    query = np.repeat(np.arange(QUERIES), PER_QUERY)
    others = draw.integers(QUERIES, IN_TRIPLETS, (2, len(query), 1))
    columns = {"query": query, "positives": others[0].tolist(), "negatives": others[1].tolist()}
    write_table(folder / "examples.parquet", "training_examples", pa.table(columns))
