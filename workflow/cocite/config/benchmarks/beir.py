"""Benchmarks of searches by short or long texts: `beir`, any in the layout of BEIR, `litsearch` and `doris_mae`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config.benchmark import Fetched, FolderBenchmark, HubBenchmark, UserSuppliedBenchmark
from cocite.config.entries import MEASURE, Commit, Entry, GivenPath, Name, Text, Whole, distinct, inconsistent
from cocite.config.source import DocumentIds
from cocite.config.tasks import InMteb, Task

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/{split}.tsv"  # the files of a dataset in BEIR's layout
ROWS = (".jsonl", ".jsonl.gz", ".parquet")  # suffixes of files with queries or documents, in order of preference
TEXTS = (".tsv", ".csv", ".txt", ".qrel", ".qrels")
JUDGED = (*(f"{end}{packed}" for end in TEXTS for packed in ("", ".gz")), *ROWS)  # suffixes of files with judgements
MAIN = "ndcg_cut_10"  # the main metric of a search
METRICS = (MAIN, "recip_rank_10", "recall_100")
PREFIX = "beir_"
PUBLISHED = {
    "scifact": InMteb(name="SciFact", queries=300, documents=5183),
    "nfcorpus": InMteb(name="NFCorpus", queries=323, documents=3633),
    "trec-covid": InMteb(name="TRECCOVID", queries=50, documents=171332),
    "arguana": InMteb(name="ArguAna", queries=1406, documents=8674, ignores_identical_ids=True),
    "scidocs": InMteb(name="SCIDOCS", queries=1000, documents=25657),
}
"""The scientific part of BEIR (Thakur et al., 2021), over which averages are published, and its tasks in mteb."""
Measure = Annotated[str, Field(pattern=MEASURE)]  # a metric as in trec_eval; the reciprocal rank has a depth too
SPECIFICITIES = {0: "broad", 1: "specific"}  # the values of `specificity` of a question of LitSearch, and their names
IN_LITSEARCH = {"kind": "retrieval", "group": "litsearch", "texts": "litsearch"}
IN_DORIS_MAE = {"kind": "search", "group": "doris_mae", "texts": "doris_mae"}
NO_NAME = re.compile("[^a-z0-9]+")


def _search(name: str, *metrics: str, **others: Any) -> Task:
    return Task(name=name, metrics=metrics, similarity="cosine", **others)


def task_of(dataset: str) -> Task:
    """The task of a dataset."""
    name = f"{PREFIX}{dataset.replace('-', '_')}"
    return _search(name, *METRICS, kind="retrieval", group="beir", test=dataset, mteb=PUBLISHED.get(dataset))


def task_named(name: str) -> Task | None:
    """The task of a dataset in BEIR's layout with this name; None if the name has another form."""
    return task_of(name.removeprefix(PREFIX).replace("_", "-")) if re.fullmatch(f"{PREFIX}[a-z0-9_]+", name) else None


def datasets_in(folder: Path) -> dict[str, str]:
    """The datasets in a folder, or the one that it is itself, by name. Raises a sentence if two have the same."""
    if _is_dataset(folder):
        return {_name_of(folder.resolve()): str(folder)}
    found = sorted(path for path in folder.iterdir() if path.is_dir() and _is_dataset(path))
    named = {_name_of(path): path for path in found}
    if len(named) < len(found):
        [again, *_] = [path for path in found if path not in named.values()]
        raise inconsistent(f".folder contains {again.name} and {named[_name_of(again)].name}; both become one task.")
    return {name: str(path) for name, path in sorted(named.items())}


def files_of(folder: Path, split: str) -> list[Path]:
    """The corpus, the queries and the judgements of a dataset, each in the form that is there, or else as in BEIR."""
    judged = [folder / QRELS.format(split=split), *([folder / "qrels.tsv"] if split == "test" else [])]
    return [_there([folder / CORPUS], ROWS), _there([folder / QUERIES], ROWS), _there(judged, JUDGED)]


def _there(paths: Sequence[Path], ends: Sequence[str]) -> Path:
    """The first file that is there of some with other ends; the first of all where none is."""
    named = (path.with_name(f"{path.stem}{end}") for path in paths for end in ends)
    return next(filter(Path.is_file, named), paths[0])


def _is_dataset(folder: Path) -> bool:
    return any(file.is_file() for file in files_of(folder, "")[:2])


def _name_of(folder: Path) -> str:
    return NO_NAME.sub("-", folder.name.lower()).strip("-") or "dataset"


class BeirSettings(Entry):
    """How datasets in BEIR's layout are read."""

    datasets: dict[Name, GivenPath] = Field(default={})
    """Folders of datasets by name: `my-papers` becomes the task beir_my_papers. Each contains corpus.jsonl,
    queries.jsonl and a table of judgements in qrels; gzip, Parquet and TREC qrels are also read."""
    queries: Literal["auto", "short", "documents"] = "auto"
    """How queries are embedded. auto embeds queries with a title and a text as documents, and queries with only a text
    as short queries. short embeds the text of each as a short query, as BEIR does. documents embeds each as a
    document."""
    split: Text = "test"
    """Name of the table of judgements in qrels, without .tsv."""
    missing_documents: Literal["keep", "drop"] = "keep"
    """Judged documents that are missing from the corpus. keep counts them as not found, as trec_eval and mteb do; drop
    removes their judgements, and queries that have no others."""
    ignore_identical_ids: bool | Literal["auto"] = "auto"
    """Whether to exclude the document with the query's own id. auto excludes it if most such queries have the words of
    that document, as in ArguAna, and keeps it if queries and documents merely share a numbering."""


class Beir(UserSuppliedBenchmark, BeirSettings):
    """BEIR, or any datasets in its layout, where queries are searched in whole collections (Thakur et al., 2021)."""

    kind: Literal["beir"]
    has_hashes = True
    declared = tuple(task_of(dataset) for dataset in PUBLISHED)
    id_space: DocumentIds = "own"
    """The id space of the documents: s2 for Semantic Scholar's corpus ids (as in SciFact), openalex for OpenAlex's work
    numbers, corpus for the ids of this run's corpus, own for others, which are matched to no papers by id."""
    folder: GivenPath | None = None
    """A folder of datasets, one subfolder each, or of one dataset; in place of `datasets`. Environment variables are
    expanded. The resolved configuration lists them under `datasets`."""
    metrics: Annotated[tuple[Measure, ...], Strict(False), Field(min_length=1), AfterValidator(distinct)] = METRICS
    """Metrics of each search, as trec_eval names them: ndcg_cut_20, map, map_cut_100, recall_1000, P_10, success_5,
    recip_rank_10 or Rprec. Those without a depth look at the first 1,000 hits. nDCG@10 (ndcg_cut_10) is the
    main metric, and is measured even if it is not among them."""

    @property
    def scored_tasks(self) -> Sequence[Task]:
        """A task for each of its datasets, or those that it lists."""
        tasks = [replace(task_of(dataset), metrics=self.asked_metrics or METRICS) for dataset in self.datasets]
        return [task for task in tasks if self.tasks is None or task.name in self.tasks]

    @property
    def asked_metrics(self) -> tuple[str, ...]:
        """The metrics of all its tasks if they replace the declared ones, else none."""
        metrics = tuple(dict.fromkeys((MAIN, *self.metrics)))
        return () if metrics == METRICS else metrics

    @property
    def asks_shortly(self) -> bool:
        """Whether its searches ask with short queries."""
        return self.queries != "documents"

    @model_validator(mode="after")
    def _with_the_datasets_of_its_folder(self) -> "Beir":
        if (self.folder is None) == (not self.datasets):
            raise inconsistent(" needs exactly one of folder and datasets.")
        found = datasets_in(Path(self.folder)) if self.folder is not None and Path(self.folder).is_dir() else {}
        return self.model_copy(update={"folder": None, "datasets": found}) if found else self

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Folders or files that are not there, and tasks that no dataset has."""
        if self.folder is not None:
            there = Path(self.folder).is_dir()
            what = f"is no dataset and contains none ({CORPUS} is missing)" if there else "does not exist"
            yield f"{key}.folder: the folder {self.folder} {what}."
        for name, folder in self.datasets.items():
            for file in files_of(Path(folder), self.split):
                if not file.is_file():
                    lacks = f"has no file {file.relative_to(folder)}, nor one in another form that is read"
                    yield f"{key}: the folder {folder} of the dataset {name} {lacks} (docs/benchmarks.md)."
        known = [task_of(dataset).name for dataset in self.datasets]
        for task in self.tasks or ():
            if task not in known:
                yield f"{key}.tasks names {task!r}, which is the task of no dataset (they are {', '.join(known)})."


class Collection(Entry):
    """The dataset on the Hugging Face hub with the questions and the corpus."""

    dataset: Text = "princeton-nlp/LitSearch"
    """Its name."""
    revision: Commit = "9573fb284a1026c998df47024b888a163f0f0e25"
    """Its commit, 40 hexadecimal digits. The default is the last one of July 2024."""


class LitSearch(HubBenchmark):
    """LitSearch, questions about the literature that are searched in 64,183 papers (Ajith et al., 2024).

    "LitSearch: A Retrieval Benchmark for Scientific Literature Search".
    """

    kind: Literal["litsearch"]
    reads: ClassVar = ("corpus_clean", "query")
    split: ClassVar[str] = "full"
    """The one split of each config."""
    # Most of a file are full texts, which are not read: 1,200 MB took 484 MB.
    memory_of_byte: ClassVar = 0.5
    declared: ClassVar = (
        _search("litsearch_broad", "recall_20", "ndcg_cut_10", test="broad", **IN_LITSEARCH),
        _search("litsearch_specific", "recall_5", "recall_20", "ndcg_cut_10", test="specific", **IN_LITSEARCH),
    )
    hub: Collection | None = None
    """Dataset on the Hugging Face hub, in place of a folder. Each config is downloaded once, by its own job."""

    @property
    def from_hub(self) -> Mapping[str, Fetched]:
        """The questions and the corpus, not the one with full texts by paragraph; nothing if it is here."""
        if self.hub is None:
            return {}
        return {f"data/{each}": Fetched(self.hub.dataset, self.hub.revision, [self.split]) for each in self.reads}


class DorisMae(FolderBenchmark):
    """DORIS-MAE, descriptions of a need with many aspects, each with some 100 abstracts to rank (Wang et al., 2023).

    "DORIS-MAE: Scientific Document Retrieval using Multi-level Aspect-based Queries". An abstract is relevant to the
    task doris_mae where its mean score over the aspects of the query is 1 or more; doris_mae_graded knows the sums.
    """

    kind: Literal["doris_mae"]
    # Most of the abstracts are passed over: 64 MB took 240 MB, of which 150 are those of a reader at rest.
    memory_of_byte: ClassVar = 3
    declared = (
        _search("doris_mae", "recall_5", "recall_20", "Rprec", "map", **IN_DORIS_MAE),
        _search("doris_mae_graded", "ndcg_10%", "ndcg_10%_exp", "recip_rank_10_best", **IN_DORIS_MAE),
    )
    id_space: DocumentIds = "own"
    """The id space of the documents. The released ones are own, which are matched to no papers by id; s2 means Semantic
    Scholar's corpus ids, openalex OpenAlex's work numbers, corpus the ids of this run's corpus."""
