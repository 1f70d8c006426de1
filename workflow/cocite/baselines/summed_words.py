"""The model of the baseline `citeomatic`: documents as learned sums of words.

Memory has the word numbers of all documents of a set. An epoch's batches and negatives depend only on the seed and its
number; the weights are saved after each, and a killed training resumes from there.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize, relu

from cocite.baselines.gensim_training import analyser
from cocite.baselines.methods.citeomatic import SummedWords
from cocite.baselines.steps import Batch, read_batches
from cocite.core.atomic import checked_path
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.randomness import generator
from cocite.core.tables.files import read_table
from cocite.core.written_ids import Ids, look_up

LEARNED = "learned.safetensors"
FIELDS = 2  # title and abstract
SIMILARITIES_AT_ONCE = 16_000_000


@dataclass(frozen=True, kw_only=True)
class Words:
    """The numbers of the words of some documents, one field of one document after the other."""

    numbers: Tensor
    starts: Tensor  # where each field starts, and at the end how many words there are: two fields a document

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
        """Vectors of norm 1 (documents × dimension), or 0 if there are no words."""
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


@dataclass(frozen=True)
class Examples:
    """Pairs of a query and a positive, and the negatives that a set gives for each, by places of documents. If it gives
    none at all, all documents are its negatives, and are of no pair."""

    queries: Tensor
    positives: Tensor
    negatives: Ids
    starts: Ids  # start of the negatives of each pair, and at the end their number

    def draw_negatives(self, random: np.random.Generator) -> Tensor:
        """One of the negatives of each pair; a random one of all, if it has none."""
        sizes = np.diff(self.starts)
        chosen = self.starts[:-1] + (random.random(len(sizes)) * sizes).astype(np.int64)
        drawn = random.choice(self.negatives, len(sizes))
        drawn[sizes > 0] = self.negatives[chosen[sizes > 0]]
        return torch.from_numpy(drawn)


class Learner:
    """A model while it is trained."""

    def __init__(self, model: Sums, words: Words, examples: Examples, settings: SummedWords, *, seed: int) -> None:
        self.model, self.words, self.examples, self.settings, self.seed = model, words, examples, settings, seed
        self.documents = len(words.starts) // FIELDS
        self.optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr)

    def learn(self, epoch: int) -> float:
        """Go through all pairs once; return the mean loss."""
        random = generator(self.seed, "epoch", epoch)
        queries, positives = self.examples.queries, self.examples.positives
        anywhere = torch.from_numpy(random.integers(0, self.documents, len(queries)))
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
        vectors = torch.cat([self.model(self.words.choose(some)) for some in torch.arange(self.documents).split(1024)])
        queries, of_pair = torch.unique(self.examples.queries, return_inverse=True)
        rows, order = torch.sort(torch.cat([torch.arange(len(queries)), of_pair]), stable=True)
        known = torch.cat([queries, self.examples.positives])[order]
        count = min(self.settings.nearest, self.documents)
        near = []
        for some in torch.arange(len(queries)).split(max(1, SIMILARITIES_AT_ONCE // self.documents)):
            similarities = vectors[queries[some]] @ vectors.T
            first, last = torch.searchsorted(rows, some[[0, -1]] + torch.tensor([0, 1])).tolist()
            similarities[rows[first:last] - some[0], known[first:last]] = -torch.inf
            near.append(similarities.topk(count, dim=1).indices)
        ranks = torch.from_numpy(random.integers(0, count, len(of_pair)))
        return torch.cat(near)[of_pair, ranks]

    def save(self, state: Path, epochs: int) -> None:
        """Keep the weights and the optimiser's state after so many epochs."""
        moments = {
            f"{name}-{number}": values.contiguous()
            for number, kept in self.optimiser.state_dict()["state"].items()
            for name, values in kept.items()
        }
        with checked_path(state / LEARNED) as path:
            save_file({**self.model.state_dict(), **moments, "epochs": torch.tensor(epochs)}, path)

    def restore(self, state: Path) -> int:
        """Resume from the state; return the number of finished epochs."""
        if not (state / LEARNED).exists():
            return 0
        kept = load_file(state / LEARNED)
        epochs = int(kept.pop("epochs"))
        self.model.load_state_dict({name: kept.pop(name) for name in self.model.state_dict()})
        moments: dict[int, dict[str, Tensor]] = {}
        for key, values in kept.items():
            name, _, number = key.rpartition("-")
            moments.setdefault(int(number), {})[name] = values
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": moments})
        return epochs


def known_words(texts: Sequence[Path], min_count: int) -> dict[str, int]:
    """The words that are in so many documents, each with its number."""
    analyse, counts = analyser(), Counter[str]()
    for path in progress(texts, of="Words", unit="file"):
        for text in (text for batch in read_batches(path, "training_documents") for text in batch.texts):
            counts.update(set(analyse(text)))
    words = sorted(word for word, count in counts.items() if count >= min_count)
    if not words:
        few = f"no word is in {min_count} documents of the set"
        raise InputError(f"{texts[0].parent}: {few}; lower min_count, or use a larger set.")
    return {word: number for number, word in enumerate(words)}


def read_words(texts: Sequence[Path], known: dict[str, int]) -> tuple[Ids, Words]:
    """The ids of all documents, rising, and their words in that order."""
    columns = [read_table(path, "training_documents", ["corpusid"])["corpusid"] for path in texts]
    ids = np.concatenate([column.to_numpy() for column in columns])
    batches = (batch for path in texts for batch in read_batches(path, "training_documents"))
    order = np.argsort(ids)
    return ids[order], words_of(batches, known).choose(torch.from_numpy(order))


def words_of(batches: Iterable[Batch], known: dict[str, int]) -> Words:
    """The words of some documents; what follows an abstract belongs to it."""
    analyse, fields = analyser(), [np.empty(0, dtype=np.int64)]
    for batch in batches:
        for title, abstract, more in zip(batch.titles, batch.abstracts, batch.more, strict=True):
            for text in (title or "", " ".join(filter(None, (abstract, *more)))):
                fields.append(np.array([known[word] for word in analyse(text) if word in known], dtype=np.int64))
    starts = np.cumsum(list(map(len, fields)))
    return Words(numbers=torch.from_numpy(np.concatenate(fields)), starts=torch.from_numpy(starts))


def read_examples(path: Path, ids: Ids) -> Examples:
    """The pairs of a set; its documents by their places among ids."""
    table = read_table(path, "training_examples")
    queries = table["query"].to_numpy()
    lists = [table[name].combine_chunks() for name in ("positives", "negatives")]
    near, far = (column.flatten().to_numpy().astype(np.int64) for column in lists)
    near_sizes, far_sizes = (column.value_lengths().to_numpy().astype(np.int64) for column in lists)
    of_pair = np.repeat(np.arange(len(queries)), near_sizes)
    before, lengths = np.cumsum([0, *far_sizes]), far_sizes[of_pair]
    starts = np.cumsum([0, *lengths])
    spread = np.repeat(before[of_pair] - starts[:-1], lengths) + np.arange(starts[-1])
    asked, positives, negatives = (look_up(ids, named)[0] for named in (queries[of_pair], near, far[spread]))
    negatives = negatives if len(negatives) else np.arange(len(ids))
    return Examples(torch.from_numpy(asked), torch.from_numpy(positives), negatives, starts)
