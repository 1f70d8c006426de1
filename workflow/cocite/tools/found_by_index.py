"""The papers that an index of a run finds for a text or a paper, and why.

A run lays each of its indexes out as a folder (`retrieval.building`); `retrieval.search` answers from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from cocite.config.configuration import Configuration
from cocite.config.index import searches
from cocite.config.runs import encoders_of_index, first_seed
from cocite.config.started import remaking_command
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.plan.recorded import configuration_of
from cocite.retrieval.search import Answer as FoundPaper
from cocite.retrieval.search import Index
from cocite.tools.answers import Answer
from cocite.tools.contents import NO_RECORD, corpus_id
from cocite.tools.nearest import Model, models_of, text_embedder

COLUMNS = ("rank", "score", "similarity", "words", "links", "citations", "age", "cited", "corpusid", "year", "title")


@dataclass(frozen=True, kw_only=True)
class RunIndex:
    """An index of a run, with its first seed."""

    name: str
    seed: int
    folder: Path
    """Where it is laid out."""
    weights: Path
    selection: Path
    """The table selection_scores of the hold-out that the weights are learned on."""
    models: Mapping[str, Model]
    """The encoders that embed a text, by the names of the index's models; none if the results lack one."""


def choose_index(results: Path, name: str | None, configfile: Path | None = None) -> RunIndex | None:
    """The index of this name; without a name the one with the highest recall on the selection queries, or none if the
    run has no indexes.

    Raises `InputError` with the choices if no index has this name, or with what to run if it was not laid out since its
    models embedded the papers.
    """
    config = configuration_of(results)
    names = list(config.indexes) if config else []
    if name is not None and name not in names:
        choices = " or ".join(names)
        raise InputError(f"There is no index {name!r}; --index can be {choices}." if names else "The run has no index.")
    if config is None or not names:
        return None
    chosen = max((_index_of(results, config, each) for each in ([name] if name else names)), key=_selection_recall)
    if not _is_current(chosen):
        targets = [str(path.relative_to(results)) for path in (chosen.folder, chosen.weights)]
        raise InputError(
            f"Index {chosen.name} was not laid out since its models embedded the papers. This does it:\n"
            f"  {remaking_command(results, targets, configfile)}"
        )
    return chosen


def current_indexes(results: Path) -> list[RunIndex]:
    """The indexes of a run that are laid out, the one with the highest recall on the selection queries first."""
    config = configuration_of(results)
    indexes = [_index_of(results, config, each) for each in config.indexes] if config else []
    return sorted(filter(_is_current, indexes), key=_selection_recall, reverse=True)


def _is_current(index: RunIndex) -> bool:
    """Whether an index is there, and newer than the vectors that it is made of, which are those of its models now."""
    written, vectors = index.folder / "index.json", [model.vectors for model in index.models.values()]
    if not (written.is_file() and index.weights.is_file() and vectors and all(vectors)):
        return False
    return max(file.stat().st_mtime for files in vectors for file in files) <= written.stat().st_mtime


def _index_of(results: Path, config: Configuration, name: str) -> RunIndex:
    finding, seed = config.indexes[name].of or name, first_seed(config, name)
    benchmark = next(each for each, entry in config.benchmarks.items() if searches(entry))
    models = {(model.name, model.seed): model for model in models_of(results)}
    runs = encoders_of_index(config, name, seed)
    of_benchmark = results / f"retrieval/{name}/seed-{seed}/{benchmark}"
    return RunIndex(
        name=name,
        seed=seed,
        folder=results / f"retrieval/{finding}/seed-{seed}/index",
        weights=of_benchmark / "weights.json",
        selection=of_benchmark / "selection_scores.parquet",
        models={model: models[run] for model, run in runs.items()} if models.keys() >= {*runs.values()} else {},
    )


def _selection_recall(index: RunIndex) -> float:
    """The mean recall over tasks of the ranking that an index has, on the selection queries."""
    if not index.selection.is_file():
        return -1
    table = read_table(index.selection, "selection_scores", ["recall", "chosen"])
    recalls = [row["recall"] for row in table.to_pylist() if row["chosen"] and row["recall"] is not None]
    return float(np.mean(recalls)) if recalls else -1


@dataclass(frozen=True)
class OpenIndex:
    """An index that answers."""

    index: RunIndex
    arrays: Index
    embed: Callable[[Model, str], Any]
    """The vector that a model gives to a text."""

    def find(
        self, db: duckdb.DuckDBPyConnection, query: str | int, k: int, known: str | None = None
    ) -> list[FoundPaper]:
        """The k papers that a text finds, or the text of a paper, without itself.

        `db` has the view papers. Raises `InputError` if a paper has no vectors in the index.
        """
        if isinstance(query, int):
            vectors: dict[str, Any] = self.arrays.vectors_of(query)
            if vectors.keys() != self.arrays.models.keys():
                raise InputError(f"Paper {query} is not in index {self.index.name}, or has no text.")
            rows = db.execute("SELECT title, abstract FROM papers WHERE corpusid = $paper", {"paper": query}).fetchall()
            text = " ".join(filter(None, rows[0] if rows else ()))
            return self.arrays.search(text, vectors, k=k, known=known, without=query)
        vectors = {name: self.embed(model, query) for name, model in self.index.models.items()}
        return self.arrays.search(query, vectors, k=k, known=known)


def papers_of_index(
    db: duckdb.DuckDBPyConnection, index: RunIndex, query: str, limit: int, known: str | None
) -> Answer:
    """The papers that an index finds for a text or, if the query is a corpus id, for that paper: their scores, what
    these are the sum of, and how often they are cited."""
    paper = corpus_id(query) if query.strip().isdecimal() else None
    open_index = OpenIndex(index, Index(index.folder, index.weights), lambda model, text: text_embedder(model)(text))
    found = open_index.find(db, query if paper is None else paper, limit, known)
    ids = [each.paper for each in found] + ([] if paper is None else [paper])
    rows = db.execute("SELECT corpusid, year, title FROM papers WHERE corpusid IN $ids", {"ids": ids}).fetchall()
    records = {row[0]: row[1:] for row in rows}
    shown = f"“{query}”" if paper is None else f"paper {paper}, {(records.get(paper) or (0, None))[1] or NO_RECORD},"
    answers = [
        (
            rank,
            each.score,
            *each.parts.values(),
            each.facts["citations"],
            each.paper,
            *records.get(each.paper, (None, None)),
        )
        for rank, each in enumerate(found, start=1)
    ]
    setting = known or open_index.arrays.weights.known
    heading = f"Found for {shown} by index {index.name}, seed {index.seed}, known: {setting}"
    if found and found[0].facts["words"] is None and open_index.arrays.words:
        heading += "; no paper has a word of it, so the vectors answer"
    return Answer(heading, COLUMNS, answers)
