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
UNTRIED = ("kind", "of", "encoder", "graph", "triplets", "seeds", "grid")  # the keys that a grid cannot name


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
    screens: ClassVar[bool] = False
    """Whether it is scored only in the screening of reviews, by the words of their papers."""
    about_held_out: ClassVar[bool] = False
    """Whether it is scored only on benchmarks made of held-out papers."""
    knows_all_papers: ClassVar[bool] = True
    """Whether it can compare any paper of the corpus, and so search it."""
    is_chance: ClassVar[bool] = False
    """Whether it shows the level of chance. Figures may omit it, since its scores are far below all others."""
    trained_on: ClassVar[tuple[Source, ...]] = ()
    """The tables that its training reads; empty if it is not trained."""
    embeds_with: ClassVar[tuple[Source, ...]] = ()
    """The tables that it reads to embed documents, in addition to their texts and its trained model."""
    training_cores: ClassVar[int] = 1
    """Cores that a training uses."""

    @property
    def points(self) -> list["Baseline"]:
        """One baseline per combination of the values of its grid, the last key varying fastest; none without a grid."""
        return []

    @property
    def files(self) -> tuple[str, ...]:
        """User-supplied files and folders that its embedding reads: that under `path`."""
        path: str | None = getattr(self, "path", None)
        return () if path is None else (path,)

    @property
    def has_only(self) -> tuple[str, ...]:
        """The benchmarks that it can be scored on; empty for all."""
        return ()

    @property
    def under(self) -> str | None:
        """The baseline that it is derived from."""
        return getattr(self, "of", None)

    def training_memory(self, sources_mb: float) -> float:
        """Memory that a training takes, MB, by the size of what it reads, MB as well."""
        return 1000

    def training_minutes(self, sources_mb: float) -> float:
        """Time that a training takes, by the size of what it reads, MB."""
        return 30 + sources_mb

    def embedding_memory(self, sources_mb: float) -> float:
        """Memory of the embedding in MB, from the size of its model and of its other inputs (both in MB)."""
        return 1000 + 3 * sources_mb

    def embedding_minutes(self, sources_mb: float) -> float:
        """Time that embedding takes, by the same."""
        return 20 + 0.1 * sources_mb

    def train(self, training: Any) -> None:
        """Train on the sources of `baselines.steps.Training`, and write the model into its folder `output`.

        `state` is the folder that a killed training resumes from (see `core.checkpoints`); the caller removes it. The
        model depends only on the sources and the seeds, and contains no pickle.
        """
        raise NotImplementedError

    def embed(self, embedding: Any) -> Iterator[tuple[list[Any], Any]]:
        """Yield the vectors of `baselines.steps.Embedding` in batches of some thousands: ids and vectors (documents ×
        dimension), in the order of the table. Documents without a vector are left out."""
        raise NotImplementedError

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """The name of a model: both are scored under their names."""
        name = key.removeprefix("baselines.")
        if name in config.models:
            yield f"{key}: a model has that name, and both are scored; give the baseline another."

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A sentence for each baseline that is derived from itself, or from one that does not support it."""
        baselines, name = config.baselines, key.removeprefix("baselines.")
        if self.under is None:
            return
        if name in all_parts(name, lambda each: [under] if (under := baselines[each].under) else []):
            yield f"{key}.of: a baseline cannot be derived from itself."
        below = baselines[self.under]
        has_vectors = not (below.ranks_alone or below.is_reported)
        if not has_vectors or ("baseline" in {*self.trained_on, *self.embeds_with} and not below.trained_on):
            has = "is not trained" if has_vectors else "has no vectors"
            yield f"{key}.of: the baseline {self.under} ({below.kind}) {has}."
        own = getattr(self, "seeds", None) or ()
        for seed in set(own).difference(getattr(below, "seeds", None) or own):
            yield f"{key}.seeds has {seed}, but baselines.{self.under}, which it is derived from, has no such training."


class Trained(Baseline):
    """What every baseline has that is trained."""

    grid: dict[Text, Choices] | None = None
    """Values to try for some of the keys, each key with a list: every combination is trained, and the one that is best
    on the validation queries is scored (docs/baselines.md). Left out, there is nothing to choose."""

    @property
    def points(self) -> list[Baseline]:
        """One baseline per combination of the values of its grid, the last key varying fastest; none without a grid."""
        return [self._point(values) for values in combinations(self.grid)] if self.grid else []

    def _point(self, values: Mapping[str, Any]) -> Baseline:
        given = {key: value for key, value in {**as_json(self), **values}.items() if key != "grid"}
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
    """Training seeds. Each trains a separate model."""
