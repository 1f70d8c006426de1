"""The benchmark `doris_mae`."""

from typing import ClassVar, Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.source import DocumentIds
from cocite.config.tasks import Task


def _search(name: str, *metrics: str) -> Task:
    return Task(name=name, kind="search", group="doris_mae", metrics=metrics, similarity="cosine", texts="doris_mae")


class DorisMae(FolderBenchmark):
    """DORIS-MAE, descriptions of a need with many aspects, each with some 100 abstracts to rank (Wang et al., 2023).

    "DORIS-MAE: Scientific Document Retrieval using Multi-level Aspect-based Queries". An abstract is relevant to the
    task doris_mae where its mean score over the aspects of the query is 1 or more; doris_mae_graded knows the sums.
    """

    kind: Literal["doris_mae"]
    # Most of the abstracts are passed over: 64 MB took 240 MB, of which 150 are those of a reader at rest.
    memory_of_byte: ClassVar = 3
    declared = (
        _search("doris_mae", "recall_5", "recall_20", "Rprec", "map"),
        _search("doris_mae_graded", "ndcg_10%", "ndcg_10%_exp", "recip_rank_10_best"),
    )
    id_space: DocumentIds = "own"
    """Whose ids the documents have. Those that are released are own ones, which are compared with no ids of papers; s2
    stands for Semantic Scholar's corpus ids, openalex for the numbers of OpenAlex's works, corpus for the ids of this
    run's corpus."""
