"""Train a model of gensim an epoch at a time, so that a killed training goes on with the epoch that it was in.

One thread trains: with more of them, gensim writes to the same weights from all, and no two runs give the same. The
learning rate falls within an epoch from where the one before left it. That gives bit for bit what gensim gives in one
call over all epochs. After an epoch, the weights and the state of the random generator are kept as plain arrays;
gensim's own files are pickles, which are neither written nor read here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.steps import Training
from cocite.core.checkpoints import open_state, sampled_fingerprint
from cocite.core.checksums import add_mark
from cocite.core.errors import InputError
from cocite.core.progress import progress, report
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import atomic_path, read_json, write_json

Arrays = dict[str, NDArray[Any]]
SECONDS_BETWEEN_CHECKPOINTS = 60.0
CHECKPOINT, REACHED = "reached", "reached.json"


def open_training(training: Training, settings: Mapping[str, Any]) -> None:
    """Make the state ready for a training with these settings."""
    from gensim import __version__

    follows_from = {
        "settings": settings,
        "inputs": sampled_fingerprint([*training.papers, training.queries]),
        "seeds": [training.seed, training.training_seed],
        "gensim": __version__,
    }
    open_state(training.state, follows_from, work="training", scratch=["*.txt", "*.f32"])


def gensim_seed(training: Training) -> int:
    """The seed of a training as gensim takes it."""
    return derive_seed(training.seed, "baseline", training.training_seed) % 2**31


class _Read:
    """A corpus as gensim reads it, in a thread: gensim would wait for ever where that dies of an error."""

    def __init__(self, corpus: Iterable[Any]) -> None:
        self.corpus = corpus
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.corpus
        except Exception as error:
            self.error = error


def train_epochs(
    model: Any, corpus: Iterable[Any], papers: int, state: Path, weights_of: Callable[[Any], Arrays]
) -> None:
    """Train a model whose vocabulary is built, from the epoch that is in the state to its last.

    `weights_of` names the arrays that a training changes. Raises `InputError` where the corpus cannot be read.
    """
    read = _Read(corpus)
    first, last, epochs = model.alpha, model.min_alpha, model.epochs
    done, kept_at = _resume(model, state / CHECKPOINT, weights_of), time.monotonic()
    for epoch in progress(range(done, epochs), of="Training", unit="epoch", total=epochs - done):
        start, end = (first - (first - last) * at / epochs for at in (epoch, epoch + 1))
        model.train(corpus_iterable=read, total_examples=papers, epochs=1, start_alpha=start, end_alpha=end)
        if read.error is not None:
            raise InputError(f"{state}: its words cannot be read ({read.error}); start the training again.")
        if time.monotonic() - kept_at > SECONDS_BETWEEN_CHECKPOINTS and epoch + 1 < epochs:
            _keep(model, epoch + 1, state / CHECKPOINT, weights_of)
            kept_at = time.monotonic()


def _keep(model: Any, done: int, folder: Path, weights_of: Callable[[Any], Arrays]) -> None:
    """Keep where the model is. Arrays go to the disk as they stand: a copy in memory could be too large."""
    _, key, *others = model.random.get_state()
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name, array in weights_of(model).items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        write_json(temporary / REACHED, {"epochs": done, "key": key.tolist(), "others": others})
        for path in list(temporary.iterdir()):
            add_mark(path)


def _resume(model: Any, folder: Path, weights_of: Callable[[Any], Arrays]) -> int:
    """Set the model to where the state has it; return the number of epochs that are done."""
    files = {name: folder / f"{name}.npy" for name in weights_of(model)}
    missing = [path for path in (folder / REACHED, *files.values()) if not path.is_file()]
    if missing:
        if folder.exists():
            report(f"{missing[0]}: is gone; the training starts afresh")
        return 0
    for name, array in weights_of(model).items():
        array[...] = np.load(files[name], mmap_mode="r", allow_pickle=False)
    reached = read_json(folder / REACHED)
    model.random.set_state(("MT19937", np.array(reached["key"], dtype=np.uint32), *reached["others"]))
    done: int = reached["epochs"]
    report(f"Going on after {done} of {model.epochs} epochs.")
    return done
