"""What mined negatives are searched by: the words of the texts, or the vectors of an encoder or of a trained model."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.embeddings import Metric
from cocite.config.entries import (
    Count,
    Entry,
    Name,
    Names,
    NonNegative,
    Ranks,
    Refers,
    ShortFor,
    Whole,
    all_parts,
    inconsistent,
    names_in,
)
from cocite.config.sampler import Sampler


class ByWords(Entry):
    """Ranks documents by BM25: the words of the query's title and abstract against those of the documents."""

    kind: Literal["bm25"]
    """What documents are ranked by."""


class ByVectors(Entry):
    """What every ranking by vectors has."""

    metric: Metric = "cosine"
    """What the score of two vectors is: their cosine, minus their squared distance (l2) or their inner product."""


class ByEncoder(ByVectors):
    """Ranks documents by the vectors of an encoder as it is before fine-tuning."""

    kind: Literal["encoder"]
    """What documents are ranked by."""
    name: Annotated[Name, Refers("encoders")]
    """Name of the encoder."""


class ByModel(ByVectors):
    """Ranks documents by the vectors of a model that was trained before: a further round of mining."""

    kind: Literal["model"]
    """What documents are ranked by."""
    name: Annotated[Name, Refers("models")]
    """Name of the model."""
    training_seed: Count | None = None
    """Which of the model's seeds. Left out, the first."""


Ranker = Annotated[ByWords | ByEncoder | ByModel, Field(discriminator="kind"), ShortFor("kind")]
Collection = Literal["papers", "texts", "all"]


class SearchedDocuments(Entry):
    """The settings that the search for mined negatives depends on; picking among its results depends on more."""

    by: Ranker
    """What documents are ranked by."""
    ranks: Ranks = (1, 100)
    """Ranks [first, last] that negatives are picked from, both inclusive. Rank 1 is the best document that is neither
    the query nor one of its positives."""
    collection: Collection = "papers"
    """The documents to search: papers with text that are not excluded (papers), documents supplied with the set
    (texts), or both (all)."""


def sets_behind_model(name: str, config: Whole, *, with_groups: bool) -> list[str]:
    """The sets that a model depends on: those that it and the models before it learn from, and those behind them. With
    `with_groups`, also all sets of their groups, which are cut to the size of the smallest."""
    sets, models = config.triplets, config.models

    def behind(entry: str) -> list[str]:
        section, _, called = entry.partition(".")
        if section == "models":
            learned = list(names_in(models[called], "triplets"))
            groups = {sets[each].group for each in learned} if with_groups else ()
            learned += [each for each, other in sets.items() if other.group in groups]
            before = list(names_in(models[called], "models"))
        else:
            by = getattr(sets[called], "by", None)
            learned, before = list(sets[called].parts), [by.name] if isinstance(by, ByModel) else []
        return [f"triplets.{each}" for each in learned] + [f"models.{each}" for each in before]

    found = (entry.partition(".") for entry in all_parts(f"models.{name}", behind))
    return [called for section, _, called in found if section == "triplets"]


class Mining(SearchedDocuments, Sampler):
    """What a sampler has that gives the examples of another set mined negatives."""

    gives = "sampled_examples"
    of: Annotated[str, Refers("triplets")]
    """Name of the set whose examples are given mined negatives."""
    negatives: Count = 5
    """Largest number of mined negatives per example."""
    pick: Literal["best", "random"] = "best"
    """How negatives are picked among the candidates: best takes the best ranks, the same for all examples of a query;
    random samples for each example."""
    margin: NonNegative | None = None
    """How much lower than the lowest score of a positive of the query the score of a negative must be."""
    relative_margin: Annotated[float, Field(ge=0, le=1)] | None = None
    """The same as a share of that positive's score: with 0.05, at most 95% of a score above 0."""
    max_score: float | None = None
    """Highest score of a negative."""
    min_score: float | None = None
    """Lowest score of a negative."""
    duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.95
    """Cosine to the query or to one of its positives above which a document is a near-duplicate and not a negative;
    with bm25, the cosine of weighted word vectors. null keeps them all."""
    unlinked_in: Annotated[Names, Refers("graphs")] = ()
    """Names of graphs: documents linked with the query in one of them are not used as negatives."""
    others: Literal["dropped", "kept"] = "dropped"
    """Whether the examples keep their existing negatives, before the mined ones."""
    partial: Literal["kept", "dropped"] = "kept"
    """Whether to keep examples with fewer mined negatives than requested."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The set whose examples are taken."""
        return (self.of,)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the mined negatives; existing negatives keep their own kinds."""
        return ("mined",)

    @property
    def mined_by_model(self) -> str:
        """The model by whose vectors negatives are mined, if a model mines them."""
        return self.by.name if isinstance(self.by, ByModel) else ""

    def sources(self, name: str, plan: Any) -> list[str]:
        """The set, what was mined for it, and the graphs in which negatives are not linked."""
        return [
            *super().sources(name, plan),
            *(f"<results>/neighbours/mined_{name}/{table}.parquet" for table in ("candidates", "positives")),
            *(file for graph in self.unlinked_in for file in plan.graph.pairs_or_edges(graph)),
        ]

    @model_validator(mode="after")
    def _leaves_a_choice(self) -> "Mining":
        first, last = self.ranks
        if last - first + 1 < self.negatives:
            raise inconsistent(f".ranks ([{first}, {last}]) must span at least {self.negatives} ranks (negatives).")
        if None not in (self.min_score, self.max_score) and self.min_score > self.max_score:  # type: ignore[operator]
            raise inconsistent(f".min_score ({self.min_score}) must not exceed max_score ({self.max_score}).")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A circle: a set that is a part of itself, or the model that mines depends on the set that it mines."""
        yield from super().check_references(key, config)
        if not isinstance(self.by, ByModel):
            return
        seeds = config.models[self.by.name].seeds
        if self.by.training_seed is not None and self.by.training_seed not in seeds:
            has = f"models.{self.by.name}.seeds has {', '.join(map(str, seeds))}"
            yield f"{key}.by.training_seed is {self.by.training_seed}, but {has}."
        name, model = key.removeprefix("triplets."), self.by.name
        if name in sets_behind_model(model, config, with_groups=False):
            why = f"the model {model} depends on this set (it learns from it, or from one that is mined from it)"
            yield f"{key}.by: {why}, so it cannot mine it; name a model that is trained before."
        elif name in sets_behind_model(model, config, with_groups=True):
            why = f"has a set that the model {model} learns from, and a model depends on all sets of a group"
            yield f"{key}.group ({self.group}) {why}; give the mined set a separate group."
