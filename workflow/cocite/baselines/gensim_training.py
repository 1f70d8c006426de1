"""The words of the corpus, and models of gensim that are trained on them.

A training reads the corpus once and writes its words to a file, one paper per line; epochs read that file. A model is
trained one epoch at a time, so that a killed training resumes, and on one thread: with more, results are not
reproducible. The result is bit for bit that of one call of gensim. Weights are saved as plain arrays, without pickles.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.steps import Training
from cocite.core.atomic import add_mark, atomic_path, checked_path, read_json, write_json
from cocite.core.checkpoints import open_state, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.progress import progress, report
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import count_rows

Arrays = dict[str, NDArray[Any]]
SECONDS_BETWEEN_CHECKPOINTS = 60.0
CHECKPOINT, REACHED = "reached", "reached.json"

Accents = Literal["unicode", "ascii"]  # how they are removed; `ascii` also drops letters without a counterpart in ASCII


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How many papers have words, how many words there are, and how often and in how many papers each occurs."""

    papers: int
    words: int
    occurrences: dict[str, int]  # in the order in which they came
    in_papers: dict[str, int]


class Lines:
    """The words of each paper, read again from a file with each pass; numbered, as Doc2Vec takes them. gensim reads
    them in a thread, and would wait for ever if that died of an error; so errors are kept."""

    def __init__(self, path: Path, *, numbered: bool = False) -> None:
        self.path, self.numbered = path, numbered
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        """Read the file."""
        from gensim.models.doc2vec import TaggedDocument

        try:
            with self.path.open(encoding="utf-8") as file:
                for number, line in enumerate(file):
                    words = line.split()
                    yield TaggedDocument(words, [number]) if self.numbered else words
        except Exception as error:
            self.error = error


def analyser(accents: Accents = "unicode") -> Callable[[str], list[str]]:
    """From a text to its words, of two or more letters or digits, in lowercase and without accents."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(strip_accents=accents).build_analyzer()


def write_words(training: Training, path: Path, most: int, accents: Accents = "unicode") -> Counted:
    """Write the words of the papers that are not excluded, one paper per line, and count them; existing counts are
    reused. Beyond `most` distinct words the rarest are dropped, as in gensim. Raises `InputError` if no paper has a
    word."""
    counts = path.with_suffix(".json")
    if counts.exists() and path.exists():
        return Counted(**read_json(counts))
    words_of, occurrences, in_papers = analyser(accents), Counter[str](), Counter[str]()
    papers = words = floor = 0
    batches = progress(training.seen(), of="Words", unit="batch", total=-(-count_rows(training.papers) // 4096))
    with checked_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for batch in batches:
            for found in filter(None, map(words_of, batch.texts)):
                file.write(" ".join(found) + "\n")
                papers, words = papers + 1, words + len(found)
                occurrences.update(found)
                in_papers.update(dict.fromkeys(found, 1))
            while len(occurrences) > most:
                floor += 1
                occurrences = Counter({word: count for word, count in occurrences.items() if count > floor})
                in_papers = Counter({word: in_papers[word] for word in occurrences})
    if not papers:
        raise InputError("No paper of the corpus that is not kept out has a title or an abstract; nothing to train on.")
    counted = Counted(papers=papers, words=words, occurrences=occurrences, in_papers=in_papers)
    with checked_path(counts) as temporary:  # with the words in their order, which the training depends on
        temporary.write_text(json.dumps(vars(counted)), encoding="utf-8")
    return counted


def check_frequent(counted: Counted, min_count: int) -> None:
    """Raise `InputError` if no word occurs so often."""
    most = max(counted.occurrences.values())
    if most < min_count:
        of = f"the most frequent of {len(counted.occurrences):,} words occurs {most} times"
        raise InputError(f"No word is left: {of}, and min_count is {min_count}; lower it, or take more papers.")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each word of a text counts: its tf–idf, as TfidfVectorizer has it."""

    words: Sequence[str]  # the words that count, sorted
    idf: NDArray[np.float64]
    norm: Literal["l2", "none"] = "l2"
    accents: Accents = "unicode"

    def of(self, texts: Sequence[str]) -> Any:
        """The weights of the words (columns) in each text (rows), a sparse matrix."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        norm = None if self.norm == "none" else self.norm
        vectorizer = TfidfVectorizer(strip_accents=self.accents, norm=norm, vocabulary=list(self.words))
        vectorizer.idf_ = self.idf
        return vectorizer.transform(texts)


def weigh(counted: Counted, *, min_df: int, max_df: float) -> Weights:
    """The weights of the words in at least `min_df` papers and at most the share `max_df` of them, without English stop
    words. Raises `InputError` if there are none."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    most = max_df * counted.papers
    frequent = [word for word, count in counted.in_papers.items() if min_df <= count <= most]
    words = sorted(set(frequent) - ENGLISH_STOP_WORDS)
    if not words:
        of = f"of {len(counted.in_papers):,} words in {counted.papers:,} papers, none is in at least {min_df} (min_df)"
        most_of = f"at most {max_df:.0%} of them (max_df)"
        raise InputError(f"No word is left: {of} and {most_of} and no stop word; take more papers, or lower min_df.")
    in_papers = np.array([counted.in_papers[word] for word in words])
    return Weights(words=words, idf=np.log((1 + counted.papers) / (1 + in_papers)) + 1)


def open_training(training: Training, settings: Mapping[str, Any]) -> None:
    """Make the state ready for a training with these settings."""
    from gensim import __version__

    inputs, seeds = sampled_fingerprint([*training.papers, training.queries]), [training.seed, training.training_seed]
    follows_from = {"settings": settings, "inputs": inputs, "seeds": seeds, "gensim": __version__}
    open_state(training.state, follows_from, work="training", scratch=["*.txt", "*.f32"])


def gensim_seed(training: Training) -> int:
    """The seed of a training as gensim takes it."""
    return derive_seed(training.seed, "baseline", training.training_seed) % 2**31


def gensim_settings(settings: Any, seed: int) -> dict[str, Any]:
    """The settings that all models of gensim have, as it calls them; they are trained on one thread."""
    kept = {key: getattr(settings, key) for key in ("window", "min_count", "negative", "sample", "epochs")}
    rates = {"alpha": settings.lr, "min_alpha": settings.lr_end}
    return {"vector_size": settings.dimension, **kept, **rates, "seed": seed, "workers": 1}


def train_epochs(model: Any, lines: Lines, papers: int, state: Path, learned: Callable[[], Arrays]) -> None:
    """Train a model whose vocabulary is built, from the epoch that is in the state to its last. `learned` lists the
    arrays that a training changes. Raises `InputError` if the lines cannot be read."""
    first, last, epochs = model.alpha, model.min_alpha, model.epochs
    done, kept_at = _resume(model, state / CHECKPOINT, learned), time.monotonic()
    for epoch in progress(range(done, epochs), of="Training", unit="epoch", total=epochs - done):
        start, end = (first - (first - last) * at / epochs for at in (epoch, epoch + 1))
        model.train(corpus_iterable=lines, total_examples=papers, epochs=1, start_alpha=start, end_alpha=end)
        if lines.error is not None:
            raise InputError(f"{state}: its words cannot be read ({lines.error}); start the training again.")
        if time.monotonic() - kept_at > SECONDS_BETWEEN_CHECKPOINTS and epoch + 1 < epochs:
            _keep(model, epoch + 1, state / CHECKPOINT, learned)
            kept_at = time.monotonic()


def _keep(model: Any, done: int, folder: Path, learned: Callable[[], Arrays]) -> None:
    """Save the position of the model, without a copy of its arrays in memory."""
    _, key, *others = model.random.get_state()
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name, array in learned().items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        write_json(temporary / REACHED, {"epochs": done, "key": key.tolist(), "others": others})
        for path in list(temporary.iterdir()):
            add_mark(path)


def _resume(model: Any, folder: Path, learned: Callable[[], Arrays]) -> int:
    """Restore the model from the state; return the number of finished epochs."""
    files = {name: folder / f"{name}.npy" for name in learned()}
    missing = [path for path in (folder / REACHED, *files.values()) if not path.is_file()]
    if missing:
        if folder.exists():
            report(f"{missing[0]}: is gone; the training starts afresh")
        return 0
    for name, array in learned().items():
        array[...] = np.load(files[name], mmap_mode="r", allow_pickle=False)
    reached = read_json(folder / REACHED)
    model.random.set_state(("MT19937", np.array(reached["key"], dtype=np.uint32), *reached["others"]))
    report(f"Resuming after {reached['epochs']} of {model.epochs} epochs.")
    return int(reached["epochs"])
