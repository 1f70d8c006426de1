"""Static encoders beside sentence-transformers' StaticEmbedding: pairs a second in training, documents a second.

Both start from the same table of 30,000 pieces, and train by MNRL on the same pairs in batches of 1,024, on two
threads. The seconds are those without imports, with opening the encoder, tokenising and saving. Papers are generated
(few distinct words, few of which occur twice in a text) or those of a run: `--papers results/NAME/corpus/papers`.
"""

import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmarks.made_triplets import paper_text
from tests.benchmarks.measuring import Cost, answer, say
from tests.benchmarks.training import THREADS, seconds_of_ours, seconds_of_rival
from tests.benchmarks.training_memory import write_start
from tests.examples import written_examples, written_pairs

from cocite.core.tables.files import read_table

PAPERS, PAIRS, BATCH, LR = 6000, 245_760, 1024, 5e-3
"""240 batches of pairs; a training on all links of hci has 390."""
FIELDS = ("title", "abstract")
ROUNDS = 3


def main(folder: Path, *, papers: str = "") -> None:
    random = np.random.default_rng(1)
    texts: dict[int, Any] = {paper: paper_text(random) for paper in range(PAPERS)}
    if papers:
        texts = dict(enumerate(zip(*read_table(Path(papers), "papers", FIELDS).to_pydict().values(), strict=True)))
    write_start(folder / "encoder", "static", 512, texts=texts)
    for name, number in (("training", PAIRS), ("validation", BATCH)):
        query, other = random.integers(0, len(texts), (2, number))
        rows = np.column_stack([query, (query + 1 + other % (len(texts) - 1)) % len(texts), query])
        with_negatives = written_examples(folder / "triplets" / name, rows, texts, folder / "encoder")
        written_pairs(folder / name, with_negatives, folder / "encoder")
    for what, count in (("train", PAIRS), ("embed", len(texts))):
        measured: dict[str, list[tuple[Cost, float]]] = {"ours": [], "rival": []}
        for _ in range(ROUNDS):
            for who, rounds in measured.items():
                rounds.append(answer(f"static_encoder:{what}_{who}", folder))
        for who, rounds in measured.items():
            seconds = statistics.median(taken for _, taken in rounds)
            cpu, peak = statistics.median(cost.cpu for cost, _ in rounds), max(cost.peak_mb for cost, _ in rounds)
            say(
                f"{what}, {who}: {count / seconds:,.0f} a second, {cpu:.1f} s of processors with imports, {peak:.0f} MB"
            )
        ratios = [theirs / mine for (_, mine), (_, theirs) in zip(measured["ours"], measured["rival"], strict=True)]
        say(f"{what}: {statistics.median(ratios):.1f} × as fast")


def train_ours(folder: Path) -> float:
    shutil.rmtree(folder / "ours", ignore_errors=True)
    return seconds_of_ours(folder, folder / "ours", "float32", loss="mnrl", batch_size=BATCH, lr=LR)


def train_rival(folder: Path) -> float:
    """Seconds of a training with sentence-transformers' trainer, as its manual has it for static embeddings."""

    def in_batch_loss(losses: Any, model: Any) -> Any:
        return losses.MultipleNegativesRankingLoss(model)

    how: dict[str, Any] = {"batch_size": BATCH, "lr": LR, "roles": ("anchor", "positive"), "separator": " "}
    more = {"eval_strategy": "epoch", "save_strategy": "no"}
    return seconds_of_rival(folder, folder / "rival", in_batch_loss, of="triplets", **how, **more)


def embed_ours(folder: Path) -> float:
    from cocite.cli import hide_pandas_from_pyarrow
    from cocite.encoder import work_offline

    hide_pandas_from_pyarrow()  # as the command does; the rival imports it before it starts
    work_offline(THREADS)
    from cocite.encoder.embedding import embed_tables

    start = time.perf_counter()
    where = {"threads": THREADS, "state": folder / "state", "output": folder / "vectors"}
    embed_tables(folder / "encoder", [folder / "papers.parquet"], table="papers", **where)
    return time.perf_counter() - start


def embed_rival(folder: Path) -> float:
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import pyarrow.parquet as pq
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    rows = pq.read_table(folder / "papers.parquet", columns=list(FIELDS)).to_pylist()
    model = SentenceTransformer(str(folder / "encoder"), device="cpu")
    vectors = model.encode([f"{row['title']} {row['abstract'] or ''}" for row in rows])
    np.save(folder / "vectors.npy", vectors)
    return time.perf_counter() - start
