"""The words of texts, as scikit-learn's TfidfVectorizer has them, and how often each occurs in the corpus.

A training reads the corpus once and writes its words to a file, a paper a line; what follows reads that file as often
as it has epochs. Memory holds the counts of the words and no text. Beyond `most` distinct words, the rarest are dropped
while they are counted, as gensim does, so that a corpus of any size fits.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.steps import Training
from cocite.core.checksums import checked_path
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.tables.files import count_rows, read_json

Counts = dict[str, int]
Accents = Literal["unicode", "ascii"]
"""How accents are removed: `ascii` also drops all letters that have no counterpart in ASCII."""
Norm = Literal["l2", "none"]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How often the words of a corpus occur."""

    papers: int
    """Papers that have words."""
    words: int
    """Words of all texts, each as often as it occurs."""
    occurrences: Counts
    """How often each word occurs, in the order in which they came."""
    in_papers: Counts
    """In how many papers each word is."""


class Lines:
    """The words of each paper, read again from a file with each pass."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[list[str]]:
        """Read the file."""
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                yield line.split()


def analyser(accents: Accents = "unicode") -> Callable[[str], list[str]]:
    """From a text to its words, of two letters or digits at least, in lowercase and without accents."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words: Callable[[str], list[str]] = TfidfVectorizer(strip_accents=accents).build_analyzer()
    return words


def write_words(training: Training, path: Path, most: int, accents: Accents = "unicode") -> Counted:
    """Write the words of the papers that are not kept out, a paper a line, and count them.

    Where both were done before, the counts are read. Raises `InputError` where no paper has a word.
    """
    counts = path.with_suffix(".json")
    if counts.exists() and path.exists():
        return Counted(**read_json(counts))
    words_of, occurrences, in_papers = analyser(accents), Counts(), Counts()
    papers = words = floor = 0
    batches = progress(training.seen(), of="Words", unit="batch", total=-(-count_rows(training.papers) // 4096))
    with checked_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for batch in batches:
            for text in batch.texts:
                found = words_of(text)
                if not found:
                    continue
                file.write(" ".join(found) + "\n")
                papers, words = papers + 1, words + len(found)
                for word, count in Counter(found).items():
                    occurrences[word] = occurrences.get(word, 0) + count
                    in_papers[word] = in_papers.get(word, 0) + 1
            while len(occurrences) > most:
                floor += 1
                occurrences = {word: count for word, count in occurrences.items() if count > floor}
                in_papers = {word: in_papers[word] for word in occurrences}
    if not papers:
        raise InputError("No paper of the corpus that is not kept out has a title or an abstract; nothing to train on.")
    counted = Counted(papers=papers, words=words, occurrences=occurrences, in_papers=in_papers)
    with checked_path(counts) as temporary:  # with the words in their order, which the training depends on
        temporary.write_text(json.dumps(vars(counted)), encoding="utf-8")
    return counted


def check_frequent(counted: Counted, min_count: int) -> None:
    """Raise `InputError` where no word occurs so often."""
    most = max(counted.occurrences.values())
    if most < min_count:
        raise InputError(
            f"No word is left: the most frequent of {len(counted.occurrences):,} words occurs {most} times, and "
            f"min_count is {min_count}; lower it, or take more papers."
        )


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each word of a text counts: its tf–idf, as TfidfVectorizer has it."""

    words: Sequence[str]
    """The words that count, sorted."""
    idf: NDArray[np.float64]
    norm: Norm = "l2"
    """Whether the weights of a text have the norm 1."""
    accents: Accents = "unicode"

    def of(self, texts: Sequence[str]) -> Any:
        """The weights of the words (columns) in each text (rows), a sparse matrix."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        norm = None if self.norm == "none" else self.norm
        vectorizer = TfidfVectorizer(strip_accents=self.accents, norm=norm, vocabulary=list(self.words))
        vectorizer.idf_ = self.idf
        return vectorizer.transform(texts)


def weigh(counted: Counted, *, min_df: int, max_df: float) -> Weights:
    """The weights of the words in at least `min_df` papers and at most that share, English stop words apart.

    Raises `InputError` where there are none.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    most = max_df * counted.papers
    kept = {
        word: count
        for word, count in counted.in_papers.items()
        if min_df <= count <= most and word not in ENGLISH_STOP_WORDS
    }
    if not kept:
        raise InputError(
            f"No word is left: of {len(counted.in_papers):,} words in {counted.papers:,} papers, none is in at least "
            f"{min_df} (min_df) and at most {max_df:.0%} of them (max_df) and no stop word; lower min_df, or take more "
            "papers."
        )
    words = sorted(kept)
    in_papers = np.array([kept[word] for word in words])
    return Weights(words=words, idf=np.log((1 + counted.papers) / (1 + in_papers)) + 1)
