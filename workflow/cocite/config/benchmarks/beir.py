"""The benchmark `beir`: searches of whole collections, any in the layout of BEIR."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from cocite.config.benchmark import BroughtBenchmark
from cocite.config.entries import Entry, GivenPath, Name, Text, Whole, inconsistent
from cocite.config.id_spaces import DocumentIds
from cocite.config.tasks import InMteb, Task

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/{split}.tsv"
"""The files of a dataset."""
PREFIX = "beir_"
PUBLISHED = {
    "scifact": InMteb(name="SciFact", queries=300),
    "nfcorpus": InMteb(name="NFCorpus", queries=323),
    "trec-covid": InMteb(name="TRECCOVID", queries=50),
    "arguana": InMteb(name="ArguAna", queries=1406),
    "scidocs": InMteb(name="SCIDOCS", queries=1000),
}
"""The scientific part of BEIR (Thakur et al., 2021), over which averages are published, and its tasks in mteb."""
NO_NAME = re.compile("[^a-z0-9]+")


def task_of(dataset: str) -> Task:
    """The task of a dataset."""
    return Task(
        name=f"{PREFIX}{dataset.replace('-', '_')}",
        kind="retrieval",
        group="beir",
        metrics=("ndcg_cut_10", "recip_rank_10", "recall_100"),
        similarity="cosine",
        test=dataset,
        mteb=PUBLISHED.get(dataset),
    )


def task_named(name: str) -> Task | None:
    """The task of this name, if it is one of a dataset in BEIR's layout: they are known by their names alone."""
    return task_of(name.removeprefix(PREFIX).replace("_", "-")) if re.fullmatch(f"{PREFIX}[a-z0-9_]+", name) else None


def datasets_in(folder: Path) -> dict[str, Path]:
    """The datasets in a folder by name, or the one that it is itself, in the order of their names.

    Raises a sentence where two have the same name.
    """
    if _is_dataset(folder):
        return {_name_of(folder.resolve()): folder}
    found = sorted(path for path in folder.iterdir() if path.is_dir() and _is_dataset(path))
    named = {_name_of(path): path for path in found}
    if len(named) < len(found):
        [again, *_] = [path for path in found if path not in named.values()]
        raise inconsistent(f".folder holds {again.name} and {named[_name_of(again)].name}, whose tasks have one name.")
    return dict(sorted(named.items()))


def _is_dataset(folder: Path) -> bool:
    return (folder / CORPUS).is_file() or (folder / QUERIES).is_file()


def _name_of(folder: Path) -> str:
    return NO_NAME.sub("-", folder.name.lower()).strip("-") or "dataset"


class BeirSettings(Entry):
    """How datasets in BEIR's layout are read."""

    datasets: dict[Name, GivenPath] = Field(default={})
    """Folders of datasets by name: that of `my-papers` is the task beir_my_papers. Each holds corpus.jsonl,
    queries.jsonl and a table of judgements in qrels."""
    queries: Literal["auto", "short", "documents"] = "auto"
    """What queries are embedded as. auto takes those with a title and a text for documents, and those with a text alone
    for short queries; short takes the text of each, as BEIR does; documents takes each for a document."""
    split: Text = "test"
    """The table of judgements, in qrels, by its name without .tsv."""


class Beir(BroughtBenchmark, BeirSettings):
    """BEIR, or any datasets in its layout, where queries are searched in whole collections (Thakur et al., 2021)."""

    kind: Literal["beir"]
    declared = tuple(task_of(dataset) for dataset in PUBLISHED)
    id_space: DocumentIds = "own"
    """Whose ids the documents have: s2 stands for Semantic Scholar's corpus ids, which SciFact has; openalex for the
    numbers of OpenAlex's works; corpus for the ids of this run's corpus; own for others, which are compared with no
    ids of papers."""
    folder: GivenPath | None = None
    """Instead of `datasets`, a folder that holds some, each in a folder of its name, or the folder of one. Variables of
    the environment are filled in. The resolved configuration has them under `datasets`."""

    @classmethod
    def tasks_in(cls, entry: Mapping[str, Any]) -> Sequence[Task]:
        """The tasks of an entry: one for each of its datasets, or those that it lists."""
        tasks = map(task_of, entry.get("datasets", ()))
        return [task for task in tasks if task.name in entry.get("tasks", (task.name,))]

    @model_validator(mode="after")
    def _with_the_datasets_of_its_folder(self) -> "Beir":
        if (self.folder is None) == (not self.datasets):
            raise inconsistent(" needs exactly one of folder and datasets.")
        if self.folder is None or not Path(self.folder).is_dir():
            return self
        found = {name: str(path) for name, path in datasets_in(Path(self.folder)).items()}
        return self.model_copy(update={"folder": None, "datasets": found}) if found else self

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """Folders or files that are not there, and tasks that no dataset has."""
        if self.folder is not None:
            there = Path(self.folder).is_dir()
            what = f"holds no dataset, nor is it one: there is no {CORPUS}" if there else "does not exist"
            yield f"{key}.folder: the folder {self.folder} {what}."
        for name, folder in self.datasets.items():
            for file in (CORPUS, QUERIES, QRELS.format(split=self.split)):
                if not Path(folder, file).is_file():
                    yield f"{key}: the folder {folder} of the dataset {name} has no file {file}."
        known = [task_of(dataset).name for dataset in self.datasets]
        for task in self.tasks or ():
            if task not in known:
                yield f"{key}.tasks names {task!r}, which is the task of no dataset (they are {', '.join(known)})."
