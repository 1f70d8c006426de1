"""The definition of a task: how it is read and scored, how its scores are averaged, and its counterpart in mteb.

The tasks themselves are declared in `benchmarks`. This module does not import mteb, which writes a JSON file per task,
`results/<model>/<revision>/<task>.json`, with `model_meta.json` in the same folder.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cocite.core.errors import InputError

FORMATS = {
    **dict.fromkeys(("binary", "multiclass", "multilabel"), "classification"),
    "regression": "regression",
    **dict.fromkeys(("ranking", "clicks"), "proximity"),
    "reviewers": "reviewer-matching",
    **dict.fromkeys(("search", "retrieval"), "search"),
    "corpus": "corpus-search",
    "disambiguation": "disambiguation",
    "screening": "screening",
}
"""The kinds of tasks, and the format that the scores of each are averaged by."""

ADAPTERS = {
    **dict.fromkeys(("classification", "screening"), ("classification", "classification")),
    **dict.fromkeys(("proximity", "reviewer-matching", "corpus-search", "disambiguation"), ("proximity", "proximity")),
    "regression": ("regression", "regression"),
    "search": ("search", "proximity"),
}
"""The adapters that each format of tasks uses for queries and for other documents, if an encoder has adapters
(SPECTER2, Singh et al., 2023)."""

BOTH = "both"  # the mode of scores that do not depend on it
WITH_FEW_SHOT = "_with_few_shot"  # after a metric whose value is ½ training on everything + ½ the few-shot stages
OVER_FOLDS = "_folds"  # after a metric whose value is the mean of the means over the test folds of a benchmark
POSITIVE = "1"  # the class of binary tasks whose F1 is measured

LARGEST_MISSING_SHARE = 0.01  # of a task's documents without text or vector: counted; more is an error

META = "model_meta.json"  # the file in the folder of a model's results that names the model
SPLIT, SUBSET = "test", "default"  # of mteb's retrieval tasks, and of tasks without subsets
CUT = re.compile(r"(ndcg_cut|map_cut|recip_rank|recall|P)_(\d+)")  # a metric at a depth, as trec_eval names it
MEASURES = {"ndcg_cut": "ndcg", "map_cut": "map", "recip_rank": "mrr", "recall": "recall", "P": "precision"}  # → mteb


@dataclass(frozen=True, kw_only=True)
class FewShot:
    """A training on small samples, repeated: `size` documents (of each class, in a multi-label task) in each run."""

    size: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class InMteb:
    """The same task in the library mteb (Muennighoff et al., 2023, "MTEB: Massive Text Embedding Benchmark")."""

    name: str  # what it is called there
    queries: int  # how many queries its split `test` has
    documents: int  # how many documents are searched there
    ignores_identical_ids: bool = False  # whether a query does not find the document with its own id there


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a benchmark."""

    name: str
    """Name in the tables; also its folder of labels, unless `test` says another."""
    kind: str
    """How it is read and scored, one of `FORMATS`."""
    group: str
    """What its scores are averaged with: in-train or out-of-train for encoders of SciRepEval, or its benchmark."""
    metrics: tuple[str, ...]
    """f1, f1_macro, kendall_tau, b3_f1, b3_precision, b3_recall, or measures as named by trec_eval."""
    texts: str = ""
    """Folder of its texts, if it is not that of its labels."""
    test: str = ""
    """Folder of its labels or judgements, if it is not its name."""
    split: str = "test"
    """File of its judgements."""
    relevant_from: int = 1
    """The smallest grade of a candidate that is relevant to metrics that know no grades."""
    few_shot: tuple[FewShot, ...] = ()
    """Stages averaged with the training on everything: that counts one half, these share the other."""
    grid: tuple[float, ...] = ()
    """Values of C to choose from, rising, if they are not those of its kind."""
    similarity: Literal["distance", "cosine"] = "distance"
    """The ranking of documents: by the Euclidean distance, or by the cosine, as in BEIR. Reviewers are always ranked by
    the cosine."""
    mteb: InMteb | None = None
    """The same task in mteb, if it has it."""
    is_union: bool = False
    """Whether it repeats the queries of the other tasks of its group, and so is averaged and compared with none."""
    large: bool = False
    """Whether it takes minutes or gigabytes as it was published, and so needs a separate job."""

    @property
    def format(self) -> str:
        """The format that the task's scores are averaged in."""
        return FORMATS[self.kind]

    def adapters_among(self, present: Container[str]) -> tuple[str, str]:
        """The adapters for its queries and for its other documents; an empty name means none. Without the adapter for
        documents they are embedded without one; without that for queries, these are embedded like documents."""
        asking, asked = ADAPTERS[self.format]
        of_others = asked if asked in present else ""
        return (asking if asking in present else of_others), of_others

    @property
    def labels_folder(self) -> str:
        """Folder of labels or judgements."""
        return self.test or self.name

    @property
    def texts_folder(self) -> str:
        """Folder of texts."""
        return self.texts or self.labels_folder

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of its labels or judgements."""
        return ("train", "test") if self.is_supervised else (self.split,)

    @property
    def is_supervised(self) -> bool:
        """Whether linear models are fitted to labels."""
        return self.format in ("classification", "regression")

    @property
    def is_ranking(self) -> bool:
        """Whether queries rank documents; such tasks can be scored by words as well."""
        return self.format in ("proximity", "reviewer-matching", "search", "corpus-search")

    @property
    def is_by_words(self) -> bool:
        """Whether it can be scored without vectors."""
        return self.is_ranking or self.kind == "screening"

    @property
    def main_metric(self) -> str:
        """The main metric of the task: the first."""
        return self.metrics[0]

    def is_main(self, metric: str) -> bool:
        """Whether a metric is the main one, however either is averaged."""
        return _measure(metric) == _measure(self.main_metric)

    @property
    def query_namespace(self) -> str:
        """The namespace of its queries' ids: their own for queries of words, that of the documents for papers."""
        return f"{self.texts_folder}-query" if self.kind in ("search", "retrieval") else self.texts_folder


def without_unions(tasks: Sequence[Task]) -> list[Task]:
    """The tasks without those that repeat the queries of others among them."""
    groups = {task.group for task in tasks if not task.is_union}
    return [task for task in tasks if not task.is_union or task.group not in groups]


def _measure(metric: str) -> str:
    """A metric without the way in which it is averaged."""
    return metric.removesuffix(WITH_FEW_SHOT).removesuffix(OVER_FOLDS)


def name_in_mteb(metric: str) -> str:
    """What mteb calls a metric; others keep their name."""
    cut = CUT.fullmatch(metric)
    return f"{MEASURES[cut[1]]}_at_{cut[2]}" if cut else metric


def is_same_test(task: InMteb, entry: Any, queries: int, searched: int | None) -> bool:
    """Whether a benchmark with these settings and so many queries, searched in so many documents (None if not known),
    is the same test as mteb's. Other tests are samples of either, another split, one without the judgements of missing
    documents or that embeds queries as documents, or where other queries find the document with their own id."""
    return (
        getattr(entry, "split", SPLIT) == SPLIT
        and getattr(entry, "queries", "auto") != "documents"
        and getattr(entry, "missing_documents", "keep") == "keep"
        and getattr(entry, "ignore_identical_ids", "auto") in ("auto", task.ignores_identical_ids)
        and queries == task.queries
        and searched in (None, task.documents)
    )


def result_files(path: Path) -> list[Path]:
    """The results of one model in a file, its folder, or a folder above it. Raises `InputError` if there are none, or
    those of several models or revisions."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path} does not exist.")
    found = (sorted(file for file in path.glob(pattern) if file.name != META) for pattern in ("*.json", "**/*.json"))
    files = next(filter(None, found), [])
    folders = sorted({file.parent for file in files})
    if not folders:
        raise InputError(f"{path} contains no results of mteb: there is no <task>.json.")
    if len(folders) > 1:
        raise InputError(
            f"{path} contains results of {len(folders)} models or revisions ({folders[0].relative_to(path)}, "
            f"{folders[1].relative_to(path)}{', …' if len(folders) > 2 else ''}); name the folder of one."
        )
    return files
