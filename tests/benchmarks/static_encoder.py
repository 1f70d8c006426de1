"""Static encoders beside sentence-transformers' StaticEmbedding: pairs a second in training, documents a second.

Both start from the same table of 30,000 pieces, and train by MNRL on the same pairs in batches of 1,024, on two
threads. The seconds of a training are those without imports, with opening the encoder, tokenising and saving.
"""

import shutil
import statistics
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from tests.benchmarks.made_triplets import paper_text
from tests.benchmarks.measuring import Cost, answer, say
from tests.benchmarks.training_memory import write_start
from tests.examples import files_in, texts_of_examples, written_examples, written_pairs

PAPERS, PAIRS, BATCH, LR = 6000, 61_440, 1024, 5e-3
"""60 batches of pairs."""
THREADS, ROUNDS = 2, 3


def main(folder: Path) -> None:
    write_start(folder / "encoder", "static", 512)
    random = np.random.default_rng(1)
    texts = {paper: paper_text(random) for paper in range(PAPERS)}
    for name, number in (("training", PAIRS), ("validation", BATCH)):
        rows = random.integers(0, PAPERS, (number, 2))
        rows = np.column_stack([rows[:, 0], (rows[:, 0] + 1 + rows[:, 1] % (PAPERS - 1)) % PAPERS, rows[:, 0]])
        with_negatives = written_examples(folder / "triplets" / name, rows, texts, folder / "encoder")
        written_pairs(folder / name, with_negatives, folder / "encoder")
    for what, count in (("train", PAIRS), ("embed", PAPERS)):
        measured: dict[str, list[tuple[Cost, float]]] = {"ours": [], "rival": []}
        for _ in range(ROUNDS):
            for who, rounds in measured.items():
                rounds.append(answer(f"static_encoder:{what}_{who}", folder))
        for who, rounds in measured.items():
            seconds = statistics.median(taken for _, taken in rounds)
            say(
                f"{what}, {who}: {count / seconds:,.0f} a second, peak {max(cost.peak_mb for cost, _ in rounds):.0f} MB"
            )
        ratios = [theirs / mine for (_, mine), (_, theirs) in zip(measured["ours"], measured["rival"], strict=True)]
        say(f"{what}: {statistics.median(ratios):.1f} × as fast")


def train_ours(folder: Path) -> float:
    from cocite.encoder import work_offline

    work_offline(THREADS)
    from tests.encoder.building import outputs_in

    from cocite.config.models import TrainingSettings
    from cocite.encoder.tokens import tokenise_table
    from cocite.encoder.trainer import Inputs, train_encoder

    output = folder / "ours"
    shutil.rmtree(output, ignore_errors=True)
    sets = {name: files_in(folder / name) for name in ("training", "validation")}
    inputs = Inputs(encoder=folder / "encoder", training=[sets["training"]], validation=[sets["validation"]])
    settings = TrainingSettings(loss="mnrl", batch_size=BATCH, lr=LR, warmup=0.0, evaluations=1)
    start = time.perf_counter()
    for name, files in sets.items():
        shutil.rmtree(files.tokens)
        where = {"encoder": folder / "encoder", "threads": THREADS, "output": files.tokens}
        tokenise_table(folder / name / "documents", **where)
    where = {"threads": THREADS, "state": output / "state", "precision": "float32"}
    train_encoder(inputs, outputs_in(output), settings, seed=1, training_seed=1, **where)
    return time.perf_counter() - start


def train_rival(folder: Path) -> float:
    """Seconds of a training with sentence-transformers' trainer, as its manual has it for static embeddings."""
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    model, sets = SentenceTransformer(str(folder / "encoder"), device="cpu"), []
    for name in ("training", "validation"):
        anchors, positives, *_ = zip(*texts_of_examples(files_in(folder / "triplets" / name), " "), strict=True)
        sets.append(Dataset.from_dict({"anchor": list(anchors), "positive": list(positives)}))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder / "rival"),
        **{"num_train_epochs": 1, "per_device_train_batch_size": BATCH, "per_device_eval_batch_size": BATCH},
        **{"learning_rate": LR, "eval_strategy": "epoch", "save_strategy": "no", "report_to": "none", "use_cpu": True},
    )
    loss = losses.MultipleNegativesRankingLoss(model)
    with redirect_stdout(sys.stderr):  # what it logs there would be taken for the answer
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=sets[0], eval_dataset=sets[1], loss=loss
        ).train()
    model.save_pretrained(str(folder / "rival/model"), create_model_card=False)
    return time.perf_counter() - start


def embed_ours(folder: Path) -> float:
    from cocite.encoder import work_offline

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
    rows = pq.read_table(folder / "papers.parquet", columns=["title", "abstract"]).to_pylist()
    model = SentenceTransformer(str(folder / "encoder"), device="cpu")
    vectors = model.encode([f"{row['title']} {row['abstract']}" for row in rows])
    np.save(folder / "vectors.npy", vectors)
    return time.perf_counter() - start
