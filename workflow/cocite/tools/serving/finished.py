"""A finished run as the page asks for it: opened once with the indexes of its models, then only read.

Each function that answers gives plain values of JSON; ids are texts there, since JavaScript has no whole numbers of 63
bits. Several threads may ask at once: DuckDB gets a cursor for each answer, and one text is embedded at a time.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import numpy as np

from cocite.config.stale import configuration_of
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import path_of
from cocite.tools.inspection.nearest import Model, choose_model, models_of, text_embedder
from cocite.tools.inspection.opening import changed_files, open_results
from cocite.tools.serving import relations
from cocite.tools.serving.cache import cache_of, cached
from cocite.tools.serving.catalogue import Catalogue, make_catalogue
from cocite.tools.serving.maps import PaperMap, maps_of, points_of
from cocite.tools.serving.vectors import VectorIndex, make_index

MEMORY_MB = 400
"""What DuckDB may take to look relations up."""
ENCODERS = 2
"""Encoders in memory at most: those of the two models side by side."""
MAPS = 4
"""Maps in memory at most."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the page can be asked about."""

    results: Path
    models: dict[str, Model]
    """By name and seed, such as cocite/1."""
    indexes: dict[str, VectorIndex]
    """The index of each model."""
    catalogue: Catalogue
    maps: list[PaperMap]
    database: duckdb.DuckDBPyConnection
    """Views over the tables of `relations.TABLES`."""
    embed: Callable[[str, str], list[float]]
    """The vector that a model, by its name and seed, gives to a text; `MissingError` if the model was made again."""
    points: Callable[[PaperMap], dict[str, Any]]


class MissingError(InputError):
    """What a request names and the run does not have."""


@contextmanager
def open_run(results: Path, names: Sequence[str], cache: Path, configfile: Path | None = None) -> Iterator[Run]:
    """A run with the models of these names, or model/seed, or all that have vectors; indexes that lack are made first.

    Raises `InputError` where there is no such model, or one has no vectors.
    """
    chosen = _models(results, names, configfile)
    embed = _embedding(chosen)
    folder = cache_of(results, cache)
    with open_results(results, {"papers"}) as database:
        papers = checked_files(path_of(results, "papers"), "papers")
        catalogue = Catalogue(cached(folder, "papers", papers, lambda made: make_catalogue(database, made)))
    indexes = {}
    for name, model in chosen.items():
        report(f"Opening the papers' vectors of {name}.")
        indexes[name] = VectorIndex(_index_of(folder, model))
    with open_results(results, relations.TABLES) as database:
        database.execute(f"SET memory_limit = '{MEMORY_MB}MB'; SET threads = {os.cpu_count()}")
        yield Run(
            results=results,
            models=chosen,
            indexes=indexes,
            catalogue=catalogue,
            maps=maps_of(results),
            database=database,
            embed=embed,
            points=lru_cache(MAPS)(lambda chosen: points_of(results, chosen)),
        )


def _models(results: Path, names: Sequence[str], configfile: Path | None) -> dict[str, Model]:
    if names:
        chosen = [choose_model(results, name, configfile) for name in names]
    else:
        chosen = [model for model in models_of(results) if model.vectors]
    chosen = chosen or [choose_model(results, None, configfile)]  # which says how to make vectors
    return {f"{model.name}/{model.seed}": model for model in chosen}


def _index_of(folder: Path, model: Model) -> Path:
    files = checked_files(model.vectors, "paper_embeddings")
    return cached(folder, f"{model.name}-{model.seed}", files, lambda made: make_index(files, made))


def _embedding(models: dict[str, Model]) -> Callable[[str, str], list[float]]:
    """A function that embeds a text with a model, unless its encoder is not the one that made the papers' vectors."""
    opened, lock = lru_cache(ENCODERS)(lambda name: text_embedder(models[name])), Lock()
    states = {name: _state_of(model.folder) for name, model in models.items()}

    def check(name: str) -> None:
        if _state_of(models[name].folder) != states[name]:
            raise MissingError(
                f"Model {name} was made again since its papers' vectors were opened; start `cocite serve` again."
            )

    def embed(name: str, text: str) -> list[float]:
        with lock:
            check(name)
            of_text = opened(name)
            check(name)
            return of_text(text)

    return embed


def _state_of(folder: Path) -> list[tuple[str, int, int, int]]:
    """The files of a folder, with what changes when they are written again."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    states = [(path, path.stat()) for path in files]
    return [(str(path), state.st_ino, state.st_size, state.st_mtime_ns) for path, state in states]


def described(run: Run) -> dict[str, Any]:
    """What the run is, its models with how they are searched, and its maps."""
    config = configuration_of(run.results) or {}
    return {
        "run": run.results.resolve().name,
        "release": config.get("release"),
        "papers": run.catalogue.size,
        "models": [
            {"name": name, "papers": len(index.ids), "lists": index.lists} for name, index in run.indexes.items()
        ],
        "maps": [{"name": each.name, "model": each.model} for each in run.maps],
    }


def suggested(run: Run, words: str, limit: int) -> list[dict[str, Any]]:
    """Papers whose titles have these words."""
    return [
        {"paper": str(found.corpusid), "title": found.title, "year": found.year}
        for found in run.catalogue.with_words(words, limit)
    ]


def nearest(run: Run, name: str, k: int, *, paper: int | None = None, text: str = "") -> list[dict[str, Any]]:
    """The k papers that a model places nearest to a paper, without itself, or to a text.

    Raises `MissingError` where the run has no such model, or the model no vector of the paper.
    """
    index = _index(run, name)
    vector = np.array(run.embed(name, text), np.float32) if paper is None else index.vector_of(paper)
    if vector is None:
        raise MissingError(f"Model {name} has no vector of paper {paper}: it is not in the corpus, or has no text.")
    ids, distances = index.nearest(vector, k, but=paper)
    records = run.catalogue.papers(ids.tolist())
    return [
        {
            "paper": str(found),
            "distance": distance,
            "title": records[found].title if found in records else None,
            "year": records[found].year if found in records else None,
        }
        for found, distance in zip(ids.tolist(), distances.tolist(), strict=True)
    ]


def record(run: Run, paper: int) -> dict[str, Any]:
    """Title and year of a paper. Raises `MissingError` where the corpus has no record of it."""
    found = run.catalogue.papers([paper])
    if paper not in found:
        raise MissingError(f"The corpus has no record of paper {paper}.")
    return {"paper": str(paper), "title": found[paper].title, "year": found[paper].year}


def related(run: Run, paper: int, others: Collection[int]) -> dict[str, Any]:
    """What the graph and the triplets say of a paper and each of the others."""
    try:
        found = relations.relations(run.database.cursor(), paper, others)
    except duckdb.Error as error:
        raise changed_files(run.results, error) from error
    return {str(other): of_other for other, of_other in found.items()}


def points(run: Run, name: str, model: str) -> dict[str, Any]:
    """The points of a map by a model. Raises `MissingError` where the run has no such map, or no such model on it."""
    for each in run.maps:
        if (each.name, each.model) == (name, model):
            return run.points(each)
    raise MissingError(f"This run has no map {name!r:.80} by the model {model!r:.80}.")


def _index(run: Run, name: str) -> VectorIndex:
    if name not in run.indexes:
        raise MissingError(f"This run has no model {name!r:.80} with vectors; there is {' or '.join(run.indexes)}.")
    return run.indexes[name]
