"""Training beside sentence-transformers' own trainer: MiniLM's size, five triplets a query, two threads.

Both train the same encoder on the same triplets, with the same batches, learning rate and validation at the end. The
seconds are those without imports, but with opening the encoder, tokenising, validating and saving.
"""

import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

from tests.benchmarks.made_triplets import PER_QUERY, write_encoder, write_triplets
from tests.benchmarks.measuring import Cost, answer, say, spread_of

QUERIES = {"training": 24, "validation": 8}
ROUNDS = 3
BATCH, LR = 16, 2e-5
THREADS = 2


def main(folder: Path) -> None:
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate(QUERIES.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    ways = list(product(("ours", "rival"), answer(precisions)[1]))
    measured: dict[tuple[str, str], list[tuple[Cost, float]]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, rounds in measured.items():
            rounds.append(answer(train, folder, *way))
    triplets = QUERIES["training"] * PER_QUERY
    for (who, precision), rounds in measured.items():
        seconds = statistics.median(taken for _, taken in rounds)
        say(
            f"{who} in {precision}: {triplets / seconds:.2f} triplets a second ({seconds:.1f} s for {triplets}, "
            f"validation included), {statistics.median(cost.cpu for cost, _ in rounds):.0f} s of the processors, "
            f"peak {max(cost.peak_mb for cost, _ in rounds):.0f} MB"
        )
    for ours, rival in product(*([way for way in ways if way[0] == who] for who in ("ours", "rival"))):
        ratios = [theirs / mine for (_, mine), (_, theirs) in zip(measured[ours], measured[rival], strict=True)]
        faster = f"{statistics.median(ratios):.2f} × the triplets a second ({spread_of(ratios)})"
        say(f"ours in {ours[1]} to the rival in {rival[1]}: {faster}")


def precisions() -> list[str]:
    """What to train in: in bfloat16 as well where the CPU has instructions for it."""
    import torch

    from cocite.core.gpus import computes_in

    return ["float32", *(["bfloat16"] if computes_in("auto", torch.device("cpu")) == torch.bfloat16 else [])]


def train(folder: Path, way: str, precision: str) -> float:
    shutil.rmtree(folder / "work", ignore_errors=True)
    return {"ours": train_ours, "rival": train_rival}[way](folder, folder / "work" / way, precision)


def train_ours(folder: Path, output: Path, precision: str) -> float:
    return seconds_of_ours(folder, output, precision, batch_size=BATCH, lr=LR)


def seconds_of_ours(folder: Path, output: Path, precision: str, **settings: Any) -> float:
    """Seconds of a training of the encoder in a folder on the examples there, from their texts on."""
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import torch._dynamo  # of the optimiser, and loaded by then in the rival as well
    import torch.utils.tensorboard  # noqa: F401
    from tests.encoder.building import outputs_in
    from tests.examples import files_in

    from cocite.config.models import TrainingSettings
    from cocite.encoder.tokens import tokenise_table
    from cocite.encoder.trainer import Inputs, train_encoder

    sets = {name: files_in(folder / name) for name in ("training", "validation")}
    inputs = Inputs(encoder=folder / "encoder", training=[sets["training"]], validation=[sets["validation"]])
    given = TrainingSettings(**settings, warmup=0.0, validations=1)
    start = time.perf_counter()
    for name, files in sets.items():
        shutil.rmtree(files.tokens)
        where = {"encoder": folder / "encoder", "threads": THREADS, "output": files.tokens}
        tokenise_table(folder / name / "documents", **where)
    where = {"threads": THREADS, "state": output / "state", "precision": precision}
    train_encoder(inputs, outputs_in(output), given, seed=1, training_seed=1, **where)
    return time.perf_counter() - start


def train_rival(folder: Path, output: Path, precision: str) -> float:
    """Seconds of a training with sentence-transformers' trainer and its triplet loss, as its manual has it."""

    def triplet_loss(losses: Any, model: Any) -> Any:
        return losses.TripletLoss(model, distance_metric=losses.TripletDistanceMetric.EUCLIDEAN, triplet_margin=1.0)

    more = {"eval_strategy": "epoch", "save_strategy": "epoch", "bf16": precision == "bfloat16"}
    return seconds_of_rival(
        folder, output, triplet_loss, batch_size=BATCH, lr=LR, roles=("query", "positive", "negative"), **more
    )


def seconds_of_rival(
    folder: Path,
    output: Path,
    loss: Callable[[Any, Any], Any],
    *,
    batch_size: int,
    lr: float,
    roles: Sequence[str],
    separator: str = "[SEP]",
    of: str = "",
    **more: Any,
) -> float:
    """Seconds of a training with sentence-transformers' trainer on the same texts, which lie in the subfolder `of`."""
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
    from tests.examples import files_in, texts_of_examples

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    model, sets = SentenceTransformer(str(folder / "encoder"), device="cpu"), []
    for name in ("training", "validation"):
        texts = zip(*texts_of_examples(files_in(folder / of / name), separator), strict=True)
        sets.append(Dataset.from_dict(dict(zip(roles, map(list, texts), strict=False))))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output / "checkpoints"),
        **{"num_train_epochs": 1, "per_device_train_batch_size": batch_size, "per_device_eval_batch_size": batch_size},
        **{"learning_rate": lr, "report_to": "none", "use_cpu": True, **more},
    )
    with redirect_stdout(sys.stderr):  # what it logs there would be taken for the answer
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=sets[0], eval_dataset=sets[1], loss=loss(losses, model)
        ).train()
    model.save_pretrained(str(output / "model"), create_model_card=False)
    return time.perf_counter() - start
