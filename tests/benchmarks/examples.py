"""Examples of one positive and ten negatives beside triplets: a training's time for each distinct document of a batch.

MiniLM's size, texts as long as those of hci, two threads. Triplets are five a query, in batches of 16, with the triplet
loss; examples are of three aspects, in batches of three, which have about as many documents, with SupCon in the spaces
of the aspects. Both embed each document of a batch once. Steps are measured, without opening, validating and saving.
"""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.benchmarks.made_triplets import paper_text, write_encoder, write_triplets
from tests.benchmarks.measuring import Cost, run, say
from tests.examples import Row, files_in, written_aspects

from cocite.config.aspects import ASPECTS
from cocite.config.models import TrainingSettings

QUERIES, NEGATIVES = 18, 10
ROUNDS = 3
WARM = 2
"""Steps that are not measured."""
SETTINGS = {
    "triplets": {"batch_size": 16},
    "examples": {"batch_size": 3, "objectives": [{"loss": "supcon", "space": "aspects"}]},
}


def main(folder: Path) -> None:
    """Print the milliseconds for each document and the peak memory of each, and the ratio of examples to triplets."""
    folder = folder / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    write_encoder(folder / "encoder")
    write_triplets(folder / "triplets", QUERIES, 1, folder / "encoder")
    write_examples(folder / "examples")
    measured: dict[str, list[tuple[float, float, Cost]]] = {name: [] for name in SETTINGS}
    for _ in range(ROUNDS):
        for name, rounds in measured.items():
            cost = run([sys.executable, "-m", "tests.benchmarks.examples", name, folder])
            rounds.append((*json.loads((folder / "measured.json").read_text()), cost))
    for name, rounds in measured.items():
        milliseconds, documents = statistics.median(taken for taken, _, _ in rounds), rounds[0][1]
        peak = max(cost.peak_mb for _, _, cost in rounds)
        say(f"{name}: {milliseconds:.1f} ms for each of {documents:.1f} distinct documents a batch, peak {peak:.0f} MB")
    both = zip(measured["examples"], measured["triplets"], strict=True)
    least, median, most = sorted(ours / theirs for (ours, *_), (theirs, *_) in both)
    say(f"examples to triplets: {median:.2f} × the time for each document ({least:.2f} to {most:.2f})")
    shutil.rmtree(folder)


def write_examples(folder: Path) -> None:
    """An example of each aspect for each query, with documents of its own beside it."""
    random = np.random.default_rng(2)
    examples = QUERIES // len(ASPECTS) * len(ASPECTS)
    others = QUERIES // len(ASPECTS) + examples * (1 + NEGATIVES)
    texts = dict(enumerate(paper_text(random) for _ in range(others)))
    written_aspects(folder, list(_rows(examples)), texts, folder.parent / "encoder")


def _rows(examples: int) -> Iterator[Row]:
    first = QUERIES // len(ASPECTS)
    for number in range(examples):
        positive, *negatives = range(first + number * (1 + NEGATIVES), first + (number + 1) * (1 + NEGATIVES))
        kinds = ["linked"] * len(negatives)
        yield number // len(ASPECTS), [positive], negatives, ASPECTS[number % len(ASPECTS)], kinds


def measure(name: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of a step for each distinct document of its batch, and the documents of a batch."""
    from cocite.encoder.commands import work_offline

    work_offline(2)
    import torch
    from torch import nn

    from cocite.encoder.examples import open_examples
    from cocite.encoder.learner import new_learner
    from cocite.encoder.model import open_encoder
    from cocite.encoder.training import Training

    torch.set_num_threads(2)
    settings, examples = TrainingSettings(**SETTINGS[name]), open_examples(files_in(folder / name))
    encoder = open_encoder(folder / "encoder")
    maps: dict[str, nn.Linear | None] = {} if examples.aspects is None else dict.fromkeys(ASPECTS)
    learner = new_learner(encoder, settings, 1, maps)
    training = Training(learner, examples, examples, settings, seed=1, state=folder / "state")
    seconds, documents, batches_taken = 0.0, 0, 0
    for step, batches in training.steps():
        start = time.perf_counter()
        training.take(step, batches)
        if step > WARM:
            seconds += time.perf_counter() - start
            documents += sum(len(batch.documents) for batch in batches)
            batches_taken += len(batches)
    return 1000 * seconds / documents, documents / batches_taken


if __name__ == "__main__":
    if sys.argv[1] in SETTINGS:
        folder = Path(sys.argv[2])
        (folder / "measured.json").write_text(json.dumps(measure(sys.argv[1], folder)))
    else:
        main(Path(sys.argv[1]))
