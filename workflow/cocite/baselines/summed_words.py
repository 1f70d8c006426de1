"""Learned sums of words, the model of the baseline `citeomatic` (Bhagavatula et al., 2018, "Content-based citation
recommendation", section 3.1).

Training holds the numbers of the words of all documents of a set. An epoch's batches and negatives follow from the
seeds and its number; what was learned is saved after each, and a killed training goes on from there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize, relu

from cocite.baselines.steps import Embedding, Training, read_batches
from cocite.baselines.words import analyser
from cocite.core.atomic import read_json, write_json
from cocite.core.checkpoints import open_state, sampled_fingerprint
from cocite.core.checksums import checked_path
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.lookup import look_up
from cocite.core.progress import progress, report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import read_table

if TYPE_CHECKING:
    from cocite.baselines.methods.citeomatic import SummedWords

WEIGHTS, WORDS = "weights.safetensors", "words.json"
FIELDS = 2
"""Title and abstract."""
SIMILARITIES_AT_ONCE = 16_000_000


@dataclass(frozen=True, kw_only=True)
class Words:
    """The numbers of the words of some documents, one field of one document after the other."""

    numbers: Tensor
    starts: Tensor
    """Where each field starts, and at the end how many words there are: two fields a document."""

    def choose(self, documents: Tensor) -> "Words":
        """Those of some documents."""
        fields = (FIELDS * documents[:, None] + torch.arange(FIELDS)).flatten()
        lengths = self.starts[fields + 1] - self.starts[fields]
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        first = torch.repeat_interleave(self.starts[fields] - starts[:-1], lengths)
        return Words(numbers=self.numbers[first + torch.arange(int(starts[-1]))], starts=starts)


class Sums(nn.Module):
    """Documents as sums of words."""

    def __init__(self, words: int, dimension: int) -> None:
        super().__init__()
        self.directions = nn.Parameter(torch.randn(words, dimension) / dimension**0.5)
        self.weights = nn.Parameter(torch.ones(words, FIELDS))
        self.fields = nn.Parameter(torch.ones(FIELDS))

    def forward(self, words: Words) -> Tensor:
        """Vectors of length 1 (documents × dimension), of length 0 where there are no words."""
        lengths = words.starts.diff()
        field = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        sums = embedding_bag(
            words.numbers,
            normalize(self.directions, dim=1),
            words.starts[:-1],
            mode="sum",
            per_sample_weights=self.weights[words.numbers, field % FIELDS],
        )
        of_fields = normalize(sums, dim=1).view(-1, FIELDS, sums.shape[1])
        return normalize((of_fields * self.fields[:, None]).sum(dim=1), dim=1)


def train_sums(training: Training, settings: "SummedWords") -> None:
    """Train on the examples of a set. Raises `InputError` where its documents have no word often enough."""
    examples, folder = training.given("examples"), training.given("texts")
    inputs = sampled_fingerprint([examples, folder])
    seeds = [training.seed, training.training_seed]
    open_state(training.state, {**settings.model_dump(), "seeds": seeds, "inputs": inputs}, work="training")
    torch.set_num_threads(training.threads)
    texts = sorted(folder.glob("*.parquet"))
    known = _known_words(texts, settings.min_count)
    ids, words = _read_words(texts, known)
    seed = derive_seed(training.seed, "citeomatic", training.training_seed)
    torch.manual_seed(seed)
    model = Sums(len(known), settings.dimension)
    learner = Learner(model, settings, words, _read_examples(examples, ids), seed)
    done = _restore(training.state, learner)
    for epoch in range(done, settings.epochs):
        loss = learner.learn(epoch)
        report(f"Epoch {epoch + 1} of {settings.epochs}: loss {loss:.4f}.")
        _save(training.state, learner, epoch + 1)
    save_file({name: values.contiguous() for name, values in model.state_dict().items()}, training.output / WEIGHTS)
    write_json(training.output / WORDS, list(known))


def embed_sums(embedding: Embedding) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
    """The vectors of the documents that have a word which the model knows."""
    folder = embedding.given("model")
    known = {word: number for number, word in enumerate(read_json(folder / WORDS))}
    weights = load_file(folder / WEIGHTS)
    model = Sums(*weights["directions"].shape)
    model.load_state_dict(weights)
    torch.set_num_threads(embedding.threads)
    for batch in embedding.documents():
        words = _as_words(_numbered(batch.titles, known), _numbered(_abstracts(batch), known))
        with torch.inference_mode():
            vectors = model(words).numpy()
        has_words = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0.5)
        yield [batch.names[row] for row in has_words], vectors[has_words]


@dataclass(frozen=True)
class Examples:
    """Pairs of a query and a positive, and the negatives that a set gives for each, by places of documents."""

    queries: Tensor
    positives: Tensor
    negatives: Ids
    starts: Ids
    """Where the negatives of each pair start, and at the end how many there are."""

    def draw_negatives(self, random: np.random.Generator) -> Tensor:
        """One of the negatives of each pair; a random one of all, where it has none."""
        sizes = np.diff(self.starts)
        chosen = self.starts[:-1] + (random.random(len(sizes)) * sizes).astype(np.int64)
        drawn = random.choice(self.negatives, len(sizes)) if len(self.negatives) else np.zeros(len(sizes), np.int64)
        drawn[sizes > 0] = self.negatives[chosen[sizes > 0]]
        return torch.from_numpy(drawn)


class Learner:
    """A model while it is trained."""

    def __init__(self, model: Sums, settings: "SummedWords", words: Words, examples: Examples, seed: int) -> None:
        self.model, self.settings, self.words, self.examples, self.seed = model, settings, words, examples, seed
        self.optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr)

    def learn(self, epoch: int) -> float:
        """Go through all pairs once; return the mean loss."""
        random = generator(self.seed, "epoch", epoch)
        queries, positives = self.examples.queries, self.examples.positives
        documents = len(self.words.starts) // FIELDS
        anywhere = torch.from_numpy(random.integers(0, documents, len(queries)))
        negatives = torch.stack([self.examples.draw_negatives(random), anywhere, self._near(random)], dim=1)
        order = torch.from_numpy(random.permutation(len(queries)))
        total = 0.0
        for chosen in progress(order.split(self.settings.batch_size), of=f"Epoch {epoch + 1}", unit="step"):
            asked, inverse = torch.unique(
                torch.cat([queries[chosen, None], positives[chosen, None], negatives[chosen]], dim=1),
                return_inverse=True,
            )
            vectors = self.model(self.words.choose(asked))[inverse]
            to_others = torch.einsum("bd,bnd->bn", vectors[:, 0], vectors[:, 1:])
            # A negative that is the query or the positive itself says nothing.
            is_other = (inverse[:, 2:] != inverse[:, :1]) & (inverse[:, 2:] != inverse[:, 1:2])
            losses = relu(self.settings.margin + to_others[:, 1:] - to_others[:, :1]) * is_other
            loss = losses.sum() / is_other.sum().clamp(min=1)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            total += float(loss.detach()) * len(chosen)
        return total / len(queries)

    @torch.no_grad()
    def _near(self, random: np.random.Generator) -> Tensor:
        """For each pair one of the documents that are nearest to its query and no positives of it."""
        documents = torch.arange(len(self.words.starts) // FIELDS)
        vectors = torch.cat([self.model(self.words.choose(some)) for some in documents.split(1024)])
        queries, of_pair = torch.unique(self.examples.queries, return_inverse=True)
        known = torch.cat([queries, self.examples.positives])
        rows = torch.cat([torch.arange(len(queries)), of_pair])
        order = torch.argsort(rows, stable=True)
        rows, known = rows[order], known[order]
        count = min(self.settings.nearest, len(documents))
        near = []
        for some in torch.arange(len(queries)).split(max(1, SIMILARITIES_AT_ONCE // len(documents))):
            similarities = vectors[queries[some]] @ vectors.T
            first, last = torch.searchsorted(rows, some[[0, -1]] + torch.tensor([0, 1])).tolist()
            similarities[rows[first:last] - some[0], known[first:last]] = -torch.inf
            near.append(similarities.topk(count, dim=1).indices)
        ranks = torch.from_numpy(random.integers(0, count, len(of_pair)))
        return torch.cat(near)[of_pair, ranks]


def _known_words(texts: Sequence[Path], min_count: int) -> dict[str, int]:
    """The words that are in so many documents, each with its number."""
    analyse, counts = analyser(), Counter[str]()
    for path in progress(texts, of="Words", unit="file"):
        for batch in read_batches(path, "training_documents"):
            for text in batch.texts:
                counts.update(set(analyse(text)))
    words = sorted(word for word, count in counts.items() if count >= min_count)
    if not words:
        raise InputError(
            f"{texts[0].parent}: no word is in {min_count} documents of the set; lower min_count, or use a larger set."
        )
    return {word: number for number, word in enumerate(words)}


def _read_words(texts: Sequence[Path], known: dict[str, int]) -> tuple[Ids, Words]:
    """The ids of all documents, rising, and their words in that order."""
    ids, fields = list[int](), list[Ids]()
    for path in texts:
        for batch in read_batches(path, "training_documents"):
            ids += batch.names
            titles, abstracts = _numbered(batch.titles, known), _numbered(_abstracts(batch), known)
            fields += [field for both in zip(titles, abstracts, strict=True) for field in both]
    order = np.argsort(ids)
    everyone = _as_words(fields[0::FIELDS], fields[1::FIELDS])
    return np.array(ids, dtype=np.int64)[order], everyone.choose(torch.from_numpy(order))


def _abstracts(batch: Any) -> list[str]:
    """The abstracts, and what follows them."""
    return [
        " ".join(filter(None, (abstract, *more))) for abstract, more in zip(batch.abstracts, batch.more, strict=True)
    ]


def _numbered(texts: Sequence[str | None], known: dict[str, int]) -> list[Ids]:
    analyse = analyser()
    found = ([known[word] for word in analyse(text or "") if word in known] for text in texts)
    return [np.array(numbers, dtype=np.int64) for numbers in found]


def _as_words(titles: Sequence[Ids], abstracts: Sequence[Ids]) -> Words:
    fields = [field for both in zip(titles, abstracts, strict=True) for field in both]
    starts = np.cumsum([0, *map(len, fields)])
    numbers = np.concatenate(fields) if fields else np.empty(0, dtype=np.int64)
    return Words(numbers=torch.from_numpy(numbers), starts=torch.from_numpy(starts))


def _read_examples(path: Path, ids: Ids) -> Examples:
    """The pairs of a set; its documents by their places among ids."""
    table = read_table(path, "training_examples")
    queries = table["query"].to_numpy()
    (near, near_sizes), (far, far_sizes) = (_lists(table[name].combine_chunks()) for name in ("positives", "negatives"))
    of_pair = np.repeat(np.arange(len(queries)), near_sizes)
    before, lengths = np.cumsum([0, *far_sizes]), far_sizes[of_pair]
    starts = np.cumsum([0, *lengths])
    spread = np.repeat(before[of_pair] - starts[:-1], lengths) + np.arange(starts[-1])
    asked, positives, negatives = (look_up(ids, named)[0] for named in (queries[of_pair], near, far[spread]))
    return Examples(torch.from_numpy(asked), torch.from_numpy(positives), negatives, starts)


def _lists(column: Any) -> tuple[Ids, Ids]:
    """All values of a column of lists, and the length of each list."""
    return column.flatten().to_numpy().astype(np.int64), column.value_lengths().to_numpy().astype(np.int64)


def _save(state: Path, learner: Learner, epochs: int) -> None:
    """Keep the weights and the optimiser's state after so many epochs."""
    moments = {
        f"{name}-{number}": values.contiguous()
        for number, kept in learner.optimiser.state_dict()["state"].items()
        for name, values in kept.items()
    }
    with checked_path(state / "learned.safetensors") as path:
        save_file({**learner.model.state_dict(), **moments, "epochs": torch.tensor(epochs)}, path)


def _restore(state: Path, learner: Learner) -> int:
    """Go on from what was kept; return how many epochs are done."""
    path = state / "learned.safetensors"
    if not path.exists():
        return 0
    kept = load_file(path)
    epochs = int(kept.pop("epochs"))
    learner.model.load_state_dict({name: kept.pop(name) for name in learner.model.state_dict()})
    moments: dict[int, dict[str, Tensor]] = {}
    for key, values in kept.items():
        name, _, number = key.rpartition("-")
        moments.setdefault(int(number), {})[name] = values
    learner.optimiser.load_state_dict({**learner.optimiser.state_dict(), "state": moments})
    return epochs
