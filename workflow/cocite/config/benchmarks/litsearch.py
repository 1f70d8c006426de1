"""The benchmark `litsearch`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from cocite.config.benchmark import Fetched, HubBenchmark
from cocite.config.entries import Commit, Entry, Text
from cocite.config.tasks import Task

SPECIFICITIES = {0: "broad", 1: "specific"}
"""The values of `specificity` of a question, and what they stand for."""
CORPUS, QUERIES, SPLIT = "corpus_clean", "query", "full"
"""The configs that are read, and the one split of each."""


def _search(name: str, *metrics: str) -> Task:
    return Task(
        name=f"litsearch_{name}",
        kind="retrieval",
        group="litsearch",
        metrics=metrics,
        similarity="cosine",
        texts="litsearch",
        test=name,
    )


class Collection(Entry):
    """The dataset of the Hugging Face hub that holds questions and corpus."""

    dataset: Text = "princeton-nlp/LitSearch"
    """Its name."""
    revision: Commit = "9573fb284a1026c998df47024b888a163f0f0e25"
    """Its commit, 40 hexadecimal digits. The default is the last one of July 2024."""


class LitSearch(HubBenchmark):
    """LitSearch, questions about the literature that are searched in 64,183 papers (Ajith et al., 2024).

    "LitSearch: A Retrieval Benchmark for Scientific Literature Search".
    """

    kind: Literal["litsearch"]
    reads: ClassVar = (CORPUS, QUERIES)
    # Most of a file are full texts, which are not read: 1,200 MB took 484 MB.
    memory_of_byte: ClassVar = 0.5
    declared: ClassVar = (
        _search("broad", "recall_20", "ndcg_cut_10"),
        _search("specific", "recall_5", "recall_20", "ndcg_cut_10"),
    )
    hub: Collection | None = None
    """Instead of a folder, the dataset of the Hugging Face hub; each config is fetched once, by a job of its own."""

    @property
    def from_hub(self) -> Mapping[str, Fetched]:
        """The questions and the corpus, not the one with full texts by paragraph; nothing if it is here."""
        if self.hub is None:
            return {}
        fetched = Fetched(dataset=self.hub.dataset, revision=self.hub.revision, splits=[SPLIT])
        return {f"data/{config}": fetched for config in (CORPUS, QUERIES)}
