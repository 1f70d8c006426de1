"""What mined negatives are searched by: the words of the texts, or the vectors of an encoder or of a trained model."""

from typing import Annotated, Literal

from pydantic import Field

from cocite.config.embeddings import Metric
from cocite.config.entries import Count, Entry, Name, Ranks, Refers, ShortFor, Whole, all_parts, names_in


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
