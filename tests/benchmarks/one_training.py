"""One training, ours or sentence-transformers' own, as a process of its own: its seconds and its peak memory.

    python -m tests.benchmarks.one_training ours|rival float32|bfloat16 FOLDER SECONDS

Both train the same encoder on the same triplets, with the same batches, learning rate and validation at the end.
SECONDS is a file that the seconds are written to, without the imports, but with opening the encoder, tokenising,
validating and saving.
"""

import json
import shutil
import sys
import time
from pathlib import Path

BATCH, LR = 16, 2e-5
THREADS = 2


def train_ours(folder: Path, output: Path, precision: str) -> float:
    """Seconds of a training with the stage encoder."""
    from cocite.encoder.offline import work_offline

    work_offline(THREADS)
    from tests.examples import files_in

    from cocite.config.models import TrainingSettings
    from cocite.encoder.results import Outputs
    from cocite.encoder.tokens import tokenise_table
    from cocite.encoder.training import Inputs, train_encoder

    outputs = Outputs(
        model=output / "model",
        curves=output / "curves.parquet",
        settings=output / "settings.json",
        events=output / "tensorboard",
    )
    sets = {name: files_in(folder / name) for name in ("training", "validation")}
    inputs = Inputs(encoder=folder / "encoder", training=[sets["training"]], validation=[sets["validation"]])
    settings = TrainingSettings(batch_size=BATCH, lr=LR, warmup=0.0, evaluations=1)
    start = time.perf_counter()
    for name, files in sets.items():
        shutil.rmtree(files.tokens)
        where = {"encoder": folder / "encoder", "threads": THREADS, "output": files.tokens}
        tokenise_table(folder / name / "documents", **where)
    where = {"threads": THREADS, "state": output / "state", "precision": precision}
    train_encoder(inputs, outputs, settings, seed=1, training_seed=1, **where)
    return time.perf_counter() - start


def train_rival(folder: Path, output: Path, precision: str) -> float:
    """Seconds of a training with sentence-transformers' trainer and its triplet loss, as its manual has it."""
    from cocite.encoder.offline import work_offline

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
    model = SentenceTransformer(str(folder / "encoder"))
    sets = []
    for name in ("training", "validation"):
        texts = texts_of_examples(files_in(folder / name), "[SEP]")
        sets.append(
            Dataset.from_dict(dict(zip(("query", "positive", "negative"), zip(*texts, strict=True), strict=True)))
        )
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output / "checkpoints"),
        num_train_epochs=1,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        learning_rate=LR,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to="none",
        use_cpu=True,
        bf16=precision == "bfloat16",
    )
    loss = losses.TripletLoss(model, distance_metric=losses.TripletDistanceMetric.EUCLIDEAN, triplet_margin=1.0)
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=sets[0], eval_dataset=sets[1], loss=loss
    )
    trainer.train()
    model.save_pretrained(str(output / "model"), create_model_card=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    way, precision, folder, seconds = *sys.argv[1:3], *map(Path, sys.argv[3:])
    taken = {"ours": train_ours, "rival": train_rival}[way](folder, seconds.parent / way, precision)
    seconds.write_text(json.dumps(taken))
