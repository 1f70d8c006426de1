"""What a baseline is to the configuration: an entry of its settings.

The baselines are classes in `baselines/methods`; how to add one is in docs/how-to/new-baseline.md.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Strict, ValidationError

from cocite.config.entries import Entry, Seeds, Text, Whole, all_parts, as_json, distinct, fields_of, filled

Source = Literal[
    "papers",
    "citations",
    "baseline",
    "paper_vectors",
    "document_vectors",
    "joined_vectors",
    "document_papers",
    "edges",
    "examples",
]
"""What a step of a baseline can read.

papers and citations: the tables of the corpus. baseline: the trained model of the baseline under `of`. paper_vectors:
the vectors of all papers of the corpus, by the baseline under `of` or the encoder under `encoder`. document_vectors:
those of the benchmark's documents, by the same. joined_vectors: those by each of the models under `models`.
document_papers: which of these are papers of the corpus, where their ids are of another origin. edges: those of the
graph under `graph`. examples: the examples of the set under `triplets`, with the texts of their documents.
"""


Choices = Annotated[
    tuple[int | float | bool | str, ...], Strict(False), AfterValidator(distinct), AfterValidator(filled)
]
"""Values of a key that are tried."""
UNTRIED = ("kind", "of", "encoder", "graph", "triplets", "seeds", "grid")
"""The keys that a grid cannot name."""


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values of some keys, the last key moving first."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


class Baseline(Entry):
    """What models are compared with; a baseline has a field `kind`, its name."""

    kind: str
    """What the baseline is."""
    ranks_alone: ClassVar[bool] = False
    """Whether it ranks documents and has no vectors; the stage evaluation does its work."""
    is_reported: ClassVar[bool] = False
    """Whether its scores are those that others reported: it has neither vectors nor a place in comparisons."""
    about_held_out: ClassVar[bool] = False
    """Whether it is scored only on benchmarks made of held-out papers."""
    knows_all_papers: ClassVar[bool] = True
    """Whether it can compare any paper of the corpus, and so search it."""
    is_chance: ClassVar[bool] = False
    """Whether it shows what chance alone gives; it is far from everything else in a figure."""
    trained_on: ClassVar[tuple[Source, ...]] = ()
    """What its training reads; nothing where it is not trained."""
    embeds_with: ClassVar[tuple[Source, ...]] = ()
    """What it reads to embed documents, beside their texts and what it was trained to."""
    training_cores: ClassVar[int] = 1
    """Cores that a training uses."""

    @property
    def points(self) -> list["Baseline"]:
        """The baselines that its grid stands for, the last key moving first; none without a grid."""
        return []

    @property
    def files(self) -> tuple[str, ...]:
        """Files and folders that the user brings, which its embedding reads."""
        return ()

    @property
    def has_only(self) -> tuple[str, ...]:
        """The benchmarks that it can be scored on; empty for all."""
        return ()

    @property
    def under(self) -> str | None:
        """The baseline that it stands on."""
        of: str | None = getattr(self, "of", None)
        return of

    def training_memory(self, sources_mb: float) -> float:
        """Memory that a training takes, MB, by the size of what it reads, MB as well."""
        return 1000

    def training_minutes(self, sources_mb: float) -> float:
        """Time that a training takes, by the size of what it reads, MB."""
        return 30 + sources_mb

    def embedding_memory(self, sources_mb: float) -> float:
        """Memory that embedding takes, MB, by the size of its model and of what it reads beside the documents, MB."""
        return 1000 + 3 * sources_mb

    def embedding_minutes(self, sources_mb: float) -> float:
        """Time that embedding takes, by the same."""
        return 20 + 0.1 * sources_mb

    def train(self, training: Any) -> None:
        """Train on the sources of `baselines.steps.Training`, and write the model into its folder `output`.

        What the training resumes from lies in the folder `state` (see `core.checkpoints`), which the caller removes.
        The model depends on the sources and the seeds alone, and holds no pickle.
        """
        raise NotImplementedError

    def embed(self, embedding: Any) -> Iterator[tuple[list[Any], Any]]:
        """The vectors of the documents of `baselines.steps.Embedding`, some thousand at a time.

        A pair holds the names of documents and their vectors (documents × dimension). All come in the order of the
        table; a document that has no vector is left out.
        """
        raise NotImplementedError

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """The name of a model: both are scored under their names."""
        name = key.removeprefix("baselines.")
        if name in config.models:
            yield f"{key}: a model has that name, and both are scored; give the baseline another."

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A baseline that stands on itself, or on one that cannot bear it."""
        baselines, name = config.baselines, key.removeprefix("baselines.")
        if self.under is None:
            return
        if name in all_parts(name, lambda each: [under] if (under := baselines[each].under) else []):
            yield f"{key}.of: a baseline must not stand on itself."
        below = baselines[self.under]
        has_vectors = not (below.ranks_alone or below.is_reported)
        if not has_vectors or ("baseline" in {*self.trained_on, *self.embeds_with} and not below.trained_on):
            has = "is not trained" if has_vectors else "has no vectors"
            yield f"{key}.of: the baseline {self.under} ({below.kind}) {has}."
        own = getattr(self, "seeds", None)
        trained = getattr(below, "seeds", None)
        for seed in set(own or ()).difference(trained or own or ()):
            yield f"{key}.seeds has {seed}, and baselines.{self.under}, which it stands on, has no such training."


class Trained(Baseline):
    """What every baseline has that is trained."""

    grid: dict[Text, Choices] | None = None
    """Values to try for some of the keys, each key with a list: every combination is trained, and the one that is best
    on the validation queries is scored (docs/baselines.md). Left out, there is nothing to choose."""

    @property
    def points(self) -> list[Baseline]:
        """The baselines that its grid stands for, the last key moving first; none without a grid."""
        return [self._point(values) for values in combinations(self.grid)] if self.grid else []

    def _point(self, values: Mapping[str, Any]) -> Baseline:
        given = {**as_json(self), **values}
        given.pop("grid")
        return type(self).model_validate_json(json.dumps(given), by_alias=True, by_name=False)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A grid over what is no setting of a training, or with a value that the key cannot have."""
        yield from super().check_environment(key, config)
        known = [name for name in fields_of(type(self)) if name not in UNTRIED]
        for name in self.grid or {}:
            if name not in known:
                yield f"{key}.grid names {name!r}; it can name {', '.join(known)}."
        for point in combinations(self.grid) if self.grid else ():
            try:
                self._point(point)
            except ValidationError as error:
                values = ", ".join(f"{name}: {value}" for name, value in point.items())
                yield f"{key}.grid: {values} cannot be trained ({error.errors()[0]['msg'].strip(' .')})."


class Seeded(Trained):
    """What every baseline has whose training draws at random."""

    seeds: Seeds = (1,)
    """Seeds, each a training of its own."""
