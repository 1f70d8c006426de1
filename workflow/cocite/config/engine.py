"""What an engine of graph embeddings is to the configuration: an entry of its settings, one class each.

The engines are in `embeddings/engines`; how to add one is in docs/how-to/new-engine.md. Held-out edges are the same for
every engine, so that engines can be compared. The weights of edges reach an engine as repetitions or as a weight of
each edge: an engine names the keys of the import that go with it, `Engine.edges`.
"""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Entry, Natural, NonNegative, Positive, ShortFor, Whole, inconsistent


class HeldOutEdges(Entry):
    """Which edges are kept from training."""

    holdout: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Share of the edges kept from training to measure link prediction."""
    holdout_of: Literal["pairs", "edges"] = "pairs"
    """What is held out. pairs keeps both directions of a pair from training; edges splits mirrored edges one by one, as
    published, so that the mirror of nearly every held-out edge is trained on (docs/graph-embeddings.md)."""


class RepeatedEdges(Entry):
    """How edges reach PyTorch-BigGraph, which knows no weights, and whose partitions are cut by the import."""

    import_: Literal["arrow", "tsv"] = Field(default="arrow", alias="import")
    """arrow converts the edges to PyTorch-BigGraph's files with sorted arrays, in bounded memory. tsv uses its own
    importer, as published, which keeps every paper and edge as a Python object."""
    partitions: Annotated[int, Field(ge=1, le=16)] = 1
    """Parts that the papers are cut into, two of which are in memory at a time in training. A chunk of an epoch then
    goes through all pairs of parts."""
    weights: bool = False
    """Train heavier edges more often. PyTorch-BigGraph knows no weights, so an edge is repeated once for each
    weight_unit of its weight, a fraction by chance; at least once, at most max_repetitions times. Held-out edges are
    measured once."""
    weight_unit: Positive | None = None
    """Edge weight that counts as one repetition. Default: the smallest weight of the graph."""
    max_repetitions: Annotated[int, Field(ge=1, le=1000)] = 10
    """Largest number of repetitions of an edge."""


class WeightedEdges(Entry):
    """How edges reach an engine that trains each with its weight."""

    weighted: bool = False
    """Keep the weights of edges as weights of the loss, divided by the mean weight of the edges to train on."""
    max_weight: Positive | None = None
    """Largest weight of an edge, in multiples of the mean weight; heavier edges count as much. null for none."""

    @model_validator(mode="after")
    def _bounds_weights_that_it_keeps(self) -> "WeightedEdges":
        if self.max_weight is not None and not self.weighted:
            raise inconsistent(".max_weight has no effect without weighted: true.")
        return self


class EdgeSettings(HeldOutEdges, RepeatedEdges, WeightedEdges):
    """What the import takes: the keys that go with any engine."""

    @model_validator(mode="after")
    def _weighs_once(self) -> "EdgeSettings":
        if self.weighted and self.weights:
            raise inconsistent(".weighted does not go with weights: true, which repeats edges by their weight.")
        if self.weighted and self.import_ == "tsv":
            raise inconsistent(".weighted does not go with import: tsv, whose files have no weights.")
        return self


BYTES_OF_NUMBER = 4


class Engine(Entry):
    """What trains a graph embedding; an engine has a field `engine`, its name."""

    edges: ClassVar[type[Entry]] = Entry
    """The keys of the import for this engine (see the classes above), in addition to those of the held-out edges."""

    engine: str
    """What trains the graph embedding."""
    dimension: Annotated[int, Field(ge=2, le=4096)] = 768
    """Number of dimensions of the vectors."""

    @property
    def cores(self) -> int:
        """Cores that a training uses."""
        return 1

    @property
    def devices(self) -> int:
        """GPUs that a training requests if there are any."""
        return 0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files outside the run that a training reads; it is made again when one of them changes."""
        return ()

    @property
    def remedy(self) -> str:
        """What to change if the vectors have collapsed."""
        return "change the settings of its engine"

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """Memory of a training in MB. `papers` is their number (in the two largest partitions if the import is
        partitioned), `edges_mb` the size of the imported edges."""
        return 1000 + 3 * papers * self.dimension * BYTES_OF_NUMBER / 1e6 + 15 * edges_mb

    def training_minutes(self, edges_mb: float) -> float:
        """Time that a training takes, by the size of its imported edges, MB."""
        return 30 + 0.1 * edges_mb

    @abstractmethod
    def train(self, imported: Path, *, seed: int, state: Path) -> Any:
        """Train on the edges in the folder `imported`, evaluate, and return an `embeddings.trained.Trained`.

        `embeddings.imported.ImportedFolder` reads the folder. A killed training resumes from `state` (see
        `core.checkpoints`). An engine removes `state` if it belongs to other settings, edges or another seed. It keeps
        it at the end, since the vectors may be read from it: the caller removes it after writing the results.
        """

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A file that is not there."""
        for path in self.files:
            if not path.is_file():
                yield f"{key}: the file {path} does not exist."


class RankingLoss(Entry):
    """Keeps a margin between an edge and each of its negatives, as the literature does."""

    kind: Literal["ranking"]
    """How an edge is compared with its negatives."""
    margin: NonNegative = 0.15
    """How much higher than a negative an edge is to score."""


class LogisticLoss(Entry):
    """Tells each edge from each negative by itself."""

    kind: Literal["logistic"]
    """How an edge is compared with its negatives."""


class SoftmaxLoss(Entry):
    """Picks an edge out among its negatives."""

    kind: Literal["softmax"]
    """How an edge is compared with its negatives."""


EdgeLoss = Annotated[RankingLoss | LogisticLoss | SoftmaxLoss, Field(discriminator="kind"), ShortFor("kind")]


class EdgeTraining(Engine):
    """Trains vectors so that edges score above their negatives (Lerer et al., 2019)."""

    comparator: Literal["dot", "cos"] = "dot"
    """Similarity that edges are scored with."""
    epochs: Count = 20
    """Passes over the edges."""
    lr: Positive = 0.1
    """Learning rate (row-wise Adagrad)."""
    loss: EdgeLoss = RankingLoss(kind="ranking")
    """Loss of an edge and its negatives: a name, or a name and its settings."""
    max_norm: Positive | None = 1.0
    """Largest norm of a vector; longer ones are scaled back. null for no bound."""
    batch_size: Count = 1000
    """Edges in a batch; a multiple of batch_negatives."""
    batch_negatives: Natural = 50
    """Negatives that are taken from the batch, for each edge and side."""
    uniform_negatives: Natural = 50
    """Negatives that are drawn from all papers, for each edge and side."""

    @property
    def remedy(self) -> str:
        """A smaller learning rate."""
        return f"lower lr, which is {self.lr:g}"

    @model_validator(mode="after")
    def _has_negatives(self) -> "EdgeTraining":
        if self.batch_negatives + self.uniform_negatives == 0:
            raise inconsistent(": batch_negatives and uniform_negatives are both 0; one must be more.")
        if self.batch_negatives and self.batch_size % self.batch_negatives:
            raise inconsistent(
                f".batch_size ({self.batch_size}) must be a multiple of batch_negatives ({self.batch_negatives})."
            )
        return self
