"""Examples of one positive and ten negatives beside triplets: a training's time for each distinct document of a batch.

MiniLM's size, texts as long as those of hci, two threads. Both have the same documents: an example is a query with its
eleven others, of which the triplets pair five positives with six negatives. Triplets have the triplet loss, examples
SupCon in the spaces of three aspects; batches have about as many documents, each of which is embedded once. The steps
of two epochs are measured, after one in which memory is taken, without opening, validating and saving.
"""

import statistics
import time
from pathlib import Path

import numpy as np
from tests.benchmarks.made_triplets import paper_text, write_encoder
from tests.benchmarks.measuring import Cost, answer, say, spread_of
from tests.examples import Row, files_in, written_aspects, written_examples

from cocite.config.graphs import ASPECTS
from cocite.config.models import TrainingSettings

QUERIES, POSITIVES, OTHERS = 12, 5, 11
ROUNDS, EPOCHS = 3, 3
SETTINGS = {
    "triplets": {"batch_size": 18, "epochs": EPOCHS},
    "examples": {"batch_size": 3, "epochs": EPOCHS, "objectives": [{"loss": "supcon", "space": "aspects"}]},
}


def main(folder: Path) -> None:
    write_encoder(folder / "encoder")
    write_sets(folder)
    measured: dict[str, list[tuple[float, float, Cost]]] = {name: [] for name in SETTINGS}
    for _ in range(ROUNDS):
        for name, rounds in measured.items():
            cost, found = answer(measure, name, folder)
            rounds.append((*found, cost))
    for name, rounds in measured.items():
        milliseconds, documents = statistics.median(taken for taken, _, _ in rounds), rounds[0][1]
        peak = max(cost.peak_mb for _, _, cost in rounds)
        say(f"{name}: {milliseconds:.1f} ms for each of {documents:.1f} distinct documents a batch, peak {peak:.0f} MB")
    both = zip(measured["examples"], measured["triplets"], strict=True)
    ratios = [ours / theirs for (ours, *_), (theirs, *_) in both]
    say(f"examples to triplets: {statistics.median(ratios):.2f} × the time for each document ({spread_of(ratios)})")


def write_sets(folder: Path) -> None:
    random = np.random.default_rng(1)
    texts = dict(enumerate(paper_text(random) for _ in range(QUERIES * (1 + OTHERS))))
    examples: list[Row] = []
    triplets = []
    for number in range(QUERIES):
        query, *others = range(number * (1 + OTHERS), (number + 1) * (1 + OTHERS))
        kinds = ["linked"] * (OTHERS - 1)
        examples.append((query, others[:1], others[1:], ASPECTS[number % len(ASPECTS)], kinds))
        positives, negatives = others[:POSITIVES], others[POSITIVES:]
        triplets += [(query, positives[place % POSITIVES], negative) for place, negative in enumerate(negatives)]
    written_aspects(folder / "examples", examples, texts, folder / "encoder")
    written_examples(folder / "triplets", triplets, texts, folder / "encoder")


def measure(name: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of a step for each distinct document of its batch, and the documents of a batch."""
    from cocite.encoder import work_offline

    work_offline(2)
    import torch

    from cocite.encoder.examples import open_examples
    from cocite.encoder.measuring import KEEP_FREED, set_memory
    from cocite.encoder.model import open_encoder
    from cocite.encoder.objective import new_learner
    from cocite.encoder.trainer import Trainer

    torch.set_num_threads(2)
    set_memory(KEEP_FREED)
    settings, examples = TrainingSettings(**SETTINGS[name]), open_examples(files_in(folder / name))
    encoder = open_encoder(folder / "encoder")
    learner = new_learner(encoder, settings, 1, () if examples.aspects is None else ASPECTS)
    training = Trainer(learner, examples, [examples], settings, seed=1, state=folder / "state")
    epochs = list(training.steps())
    first, measured = epochs[: len(epochs) // EPOCHS], epochs[len(epochs) // EPOCHS :]
    for step, batches in first:
        training.step(step, batches)
    start = time.perf_counter()
    for step, batches in measured:
        training.step(step, batches)
    seconds = time.perf_counter() - start
    documents = [len(batch.documents) for _, batches in measured for batch in batches]
    return 1000 * seconds / sum(documents), sum(documents) / len(documents)
