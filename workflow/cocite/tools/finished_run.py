"""A finished run behind the page: opened once with the indexes of its models, then only read.

Each function that answers gives plain values of JSON; ids are texts there, since JavaScript has no whole numbers of 63
bits. Several threads may call at once: DuckDB gets a cursor for each answer, and one text is embedded at a time.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import numpy as np

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import checked_files, read_table
from cocite.core.tables.papers import NO_PAPER, papers_of_documents
from cocite.core.tables.places import files_by_place, path_of
from cocite.plan.recorded import configuration_of, configured_in
from cocite.retrieval.search import KNOWN, Index
from cocite.tools.contents import changed_files, open_results, viewed_tables
from cocite.tools.nearest import Model, OpenIndex, choose_index, choose_model, current_indexes, models_of, text_embedder
from cocite.tools.search_indexes import (
    Paper,
    Titles,
    VectorIndex,
    cache_of,
    cached,
    index_titles,
    index_vectors,
)

MEMORY_MB = 400
"""What DuckDB may take to look relations up."""
ENCODERS = 4
"""Encoders in memory at most: those of two models, or of two indexes of two models each."""
MAPS = 4
"""Maps in memory at most."""
SUGGESTIONS = 8
RELATIONS: Mapping[str, str] = {
    "citations": """
        SELECT DISTINCT cited AS other, 'cites' AS relation, NULL AS name, NULL AS count
        FROM citations WHERE citing = $paper AND cited IN $others
        UNION ALL SELECT DISTINCT citing, 'is cited by', NULL, NULL
        FROM citations WHERE citing IN $others AND cited = $paper""",
    "cocitations": """
        SELECT other, 'co-cited', graph, count FROM cocitations WHERE paper = $paper AND other IN $others
        UNION ALL SELECT paper, 'co-cited', graph, count FROM cocitations WHERE paper IN $others AND other = $paper""",
    "triplets": """
        SELECT positive, 'positive', triplets, NULL FROM triplets WHERE query = $paper AND positive IN $others
        UNION SELECT negative, 'negative', triplets, NULL FROM triplets WHERE query = $paper AND negative IN $others""",
    "sampled_examples": """
        WITH of_query AS (FROM sampled_examples WHERE query = $paper), of_papers AS (
            SELECT unnest(positives) AS other, 'positive' AS role, triplets FROM of_query
            UNION SELECT unnest(negatives), 'negative', triplets FROM of_query)
        SELECT other, role, triplets, NULL FROM of_papers WHERE other IN $others""",
}
"""Table → its query for the relations of a paper and others. Tables of citations and pairs are in the order of their
first column. So each is queried twice, for the paper on either side, and DuckDB skips parts of files without either."""
ORDER = ("cites", "is cited by", "co-cited", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class PaperMap:
    """A map of the report as one model places its papers."""

    name: str
    model: str
    """Name of the model and its seed, such as cocite/1."""
    path: Path
    """Its table `map_points`."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run, opened for searches; models and their indexes are by name and seed, such as cocite/1."""

    results: Path
    models: dict[str, Model]
    vectors: dict[str, VectorIndex]
    found_by: dict[str, OpenIndex]
    """Indexes by name; the one with the highest recall on the selection queries comes first."""
    titles: Titles
    maps: list[PaperMap]
    database: duckdb.DuckDBPyConnection
    """Views over the tables of `RELATIONS`."""
    embed: Callable[[str, str], list[float]]
    """The vector that a model, by its name and seed, gives to a text; `MissingError` if the model was made again."""
    points: Callable[[PaperMap], dict[str, Any]]


class WrongRequestError(InputError):
    """A request that cannot be answered as it is."""


class MissingError(InputError):
    """A request for something that the run does not have."""


@contextmanager
def open_run(
    results: Path,
    names: Sequence[str],
    cache: Path,
    configfile: Path | None = None,
    index_names: Sequence[str] = (),
) -> Iterator[Run]:
    """A run with the models of these names, or model/seed, and the indexes of theirs; without names, with all that can
    answer. Files of the cache that are missing are made first.

    Raises `InputError` if there is no such model or index, or one is not ready.
    """
    chosen = [choose_model(results, name, configfile) for name in names]
    indexes = [index for name in index_names if (index := choose_index(results, name, configfile))]
    if not names and not index_names:
        chosen, indexes = [model for model in models_of(results) if model.vectors], current_indexes(results)
        if not chosen and not indexes:  # The error says how to make vectors.
            choose_model(results, None, configfile)
    models = {_called(model): model for model in chosen}
    of_indexes = {_called(model): model for index in indexes for model in index.models.values()}
    embed = _embedding(models | of_indexes)
    folder = cache_of(results, cache)
    with open_results(results, {"papers"}) as database:
        papers = checked_files(path_of(results, "papers"), "papers")
        titles = Titles(cached(folder, "papers", papers, lambda made: index_titles(database, made)))

    def open_vectors(model: Model) -> VectorIndex:
        report(f"Opening the papers' vectors of {model.name}/{model.seed}.")
        files = checked_files(model.vectors, "paper_embeddings")
        name = f"{model.name}-{model.seed}"
        return VectorIndex(cached(folder, name, files, lambda made: index_vectors(files, made)))

    vectors = {name: open_vectors(model) for name, model in models.items()}
    maps = files_by_place(results, TABLES["map_points"], configured_in(configuration_of(results)))
    with open_results(results, {*RELATIONS, "papers"}) as database:
        database.execute(f"SET memory_limit = '{MEMORY_MB}MB'; SET threads = {os.cpu_count()}")
        yield Run(
            results=results,
            models=models,
            vectors=vectors,
            found_by={
                index.name: OpenIndex(
                    index, Index(index.folder, index.weights), lambda model, text: embed(_called(model), text)
                )
                for index in indexes
            },
            titles=titles,
            maps=[
                PaperMap(name=of["map"], model=f"{of['model']}/{of['seed']}", path=path)
                for of, path in ((dict(place), path) for place, (path,) in maps.items())
            ],
            database=database,
            embed=embed,
            points=lru_cache(MAPS)(lambda chosen: _points(results, chosen)),
        )


def _called(model: Model) -> str:
    return f"{model.name}/{model.seed}"


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
    """The files of a folder, with the marks that change when they are written again."""
    states = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [(str(path), state.st_ino, state.st_size, state.st_mtime_ns) for path, state in states]


def _points(results: Path, chosen: PaperMap) -> dict[str, Any]:
    """The points of a map: corpus ids, x and y of its documents that are papers of the corpus."""
    config = configuration_of(results)
    listed = config and path_of(results, "document_papers", benchmark=config.maps[chosen.name].benchmark)
    table = read_table(chosen.path, "map_points")
    ids = papers_of_documents(listed if listed and listed.is_file() else None)(table["document"].combine_chunks())
    is_paper = ids != NO_PAPER
    return {
        "papers": [str(paper) for paper in ids[is_paper].tolist()],
        "x": table["x"].to_numpy()[is_paper].tolist(),
        "y": table["y"].to_numpy()[is_paper].tolist(),
    }


def described(run: Run) -> dict[str, Any]:
    """The run, its models with the way in which they are searched, and its maps."""
    return {
        "run": run.results.resolve().name,
        "release": configuration.release if (configuration := configuration_of(run.results)) else None,
        "papers": run.titles.size,
        "models": [
            *({"name": name, "known": of.arrays.weights.known, "lists": 0} for name, of in run.found_by.items()),
            *({"name": name, "known": None, "lists": index.lists} for name, index in run.vectors.items()),
        ],
        "maps": [{"name": each.name, "model": each.model} for each in run.maps],
    }


def suggested(run: Run, words: str) -> list[dict[str, Any]]:
    """Papers whose titles have these words."""
    return [_shown(found) for found in run.titles.with_words(words, SUGGESTIONS)]


def record(run: Run, paper: int) -> dict[str, Any]:
    """Title and year of a paper. Raises `MissingError` if the corpus has no record of it."""
    found = run.titles.papers([paper])
    if paper not in found:
        raise MissingError(f"The corpus has no record of paper {paper}.")
    return _shown(found[paper])


def _shown(paper: Paper) -> dict[str, Any]:
    return {"paper": str(paper.corpusid), "title": paper.title, "year": paper.year}


def nearest(
    run: Run, model: str, *, paper: int | None = None, text: str | None = None, k: int = 10, known: str | None = None
) -> list[dict[str, Any]]:
    """The k papers that an index finds or a model places nearest, for a paper, without itself, or for a text.

    Those of a model have a distance, those of an index a score and its parts. `known` is for indexes: more, balanced or
    less. Raises `MissingError` if the run has no such model, or the model no vector of the paper.
    """
    if (paper is None) == (text is None):
        raise WrongRequestError("A search is for a paper or for a text: give one of the two.")
    if model in run.found_by:
        return _found_by_index(run, run.found_by[model], paper if text is None else text, k, known)
    if model not in run.vectors:
        names = " or ".join([*run.found_by, *run.vectors])
        raise MissingError(f"This run has no model {model!r:.80} with vectors; there is {names}.")
    index = run.vectors[model]
    vector = index.vector_of(paper) if paper is not None else np.array(run.embed(model, str(text)), np.float32)
    if vector is None:
        raise MissingError(f"Model {model} has no vector of paper {paper}: it is not in the corpus, or has no text.")
    ids, distances = index.nearest(vector, k, but=paper)
    extra = [{"distance": distance} for distance in distances.tolist()]
    return _with_records(run, ids.tolist(), extra)


def _found_by_index(
    run: Run, index: OpenIndex, query: str | int | None, k: int, known: str | None
) -> list[dict[str, Any]]:
    if known not in (None, *KNOWN):
        raise WrongRequestError(f"known is {known!r:.80}; it can be {', '.join(KNOWN)}.")
    try:
        found = index.find(run.database.cursor(), query if isinstance(query, int) else str(query), k, known)
    except duckdb.Error as error:
        raise changed_files(run.results, error) from error
    extra = [{"score": each.score, "parts": each.parts, "cited": each.facts["citations"]} for each in found]
    return _with_records(run, [each.paper for each in found], extra)


def _with_records(run: Run, ids: list[int], extra: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Papers with title and year, and what is added to each."""
    records = run.titles.papers(ids)
    return [
        {**_shown(records.get(found, Paper(found, None, None))), **more} for found, more in zip(ids, extra, strict=True)
    ]


def related(run: Run, paper: int, others: Collection[int]) -> dict[str, list[dict[str, Any]]]:
    """The relations of a paper to each of the others in the graph and the triplets, by `ORDER` and by name.

    Each has its kind, from the paper to the other one; its graph or set of triplets; and the number of co-citations.
    """
    asked = {"paper": paper, "others": list(others)}
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        database = run.database.cursor()
        for table in filter(RELATIONS.get, viewed_tables(database)):
            for other, relation, name, count in database.execute(RELATIONS[table], asked).fetchall():
                found.setdefault(str(other), []).append({"relation": relation, "name": name, "count": count})
    except duckdb.Error as error:
        raise changed_files(run.results, error) from error
    for of_other in found.values():
        of_other.sort(key=lambda each: (ORDER.index(each["relation"]), each["name"] or ""))
    return found


def points(run: Run, name: str, model: str) -> dict[str, Any]:
    """The points of a map by a model. Raises `MissingError` if the run has no such map, or no such model on it."""
    for each in run.maps:
        if (each.name, each.model) == (name, model):
            return run.points(each)
    raise MissingError(f"This run has no map {name!r:.80} by the model {model!r:.80}.")
