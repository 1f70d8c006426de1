"""A finished run behind the page and assistants: opened once with the indexes of its models, then only read."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock

import duckdb
import numpy as np

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import path_of
from cocite.core.written_ids import Ids
from cocite.plan.recorded import configuration_of
from cocite.retrieval.search import Index
from cocite.tools.contents import changed_files, open_results
from cocite.tools.nearest import Model, OpenIndex, choose_index, choose_model, current_indexes, models_of, text_embedder
from cocite.tools.paper_map import PaperMap, Topics, map_of, topics_of
from cocite.tools.search_indexes import Titles, VectorIndex, cache_of, cached, index_titles, index_vectors

MEMORY_MB = 400
"""What DuckDB may take to look relations up."""
ENCODERS, MAPS, FILTERS = 4, 4, 8
"""Encoders, maps, and filters whose papers are in memory at most; two indexes have two models each."""
BM25 = "bm25"
"""The name of a search by words only."""
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
CONDITIONS: Mapping[str, str] = {
    "first": "year >= $first::INTEGER",
    "last": "year <= $last::INTEGER",
    "field": "list_contains(list_transform(fields, lambda each: lower(each)), lower($field))",
    "venue": "contains(lower(venue), lower($venue))",
}
"""What a filter demands of a paper."""
_FIELDS = "SELECT field FROM (SELECT unnest(fields) AS field FROM papers) GROUP BY field ORDER BY count(*) DESC, field"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run, opened for searches; models and their indexes are by name and seed, such as cocite/1."""

    results: Path
    vectors: dict[str, VectorIndex]
    found_by: dict[str, OpenIndex]
    """Indexes by name; the one with the highest recall on the selection queries comes first."""
    titles: Titles
    topics: dict[str, Topics]
    """Those of the papers by each model, including the models of indexes."""
    database: duckdb.DuckDBPyConnection
    """Views over the tables of `RELATIONS`."""
    embed: Callable[[str, str], list[float]]
    """The vector that a model, by its name and seed, gives to a text; `MissingError` if the model was made again."""
    map_by: Callable[[str], PaperMap]
    """The map of all papers by a model, including the models of indexes."""
    within: Callable[[str | None, str | None, str | None], Ids]
    """The ids of the papers of some years, a field, and venues by a part of their names."""
    fields: list[str]
    """Fields of study, the most frequent first."""
    whose_ids: str
    """Whose ids papers have: s2, openalex or own."""

    @property
    def best(self) -> str:
        """The index or model that answers if none is named."""
        return next(iter([*self.found_by, *self.vectors]))

    def model_of(self, name: str) -> str:
        """The model whose topics and map an index, the search by words or a model has: its first one, or itself."""
        index = self.found_by.get(name) or (self.words if name == BM25 else None)
        return next(iter(index.index.models.values())).full_name if index else name

    @property
    def words(self) -> OpenIndex | None:
        """The index by whose words papers are found, if one has some."""
        return next((of for of in self.found_by.values() if of.arrays.words and BM25 not in self.found_by), None)


class WrongRequestError(InputError):
    """A request that cannot be answered as it is."""


class MissingError(InputError):
    """A request for something that the run does not have."""


@contextmanager
def open_run(
    results: Path,
    names: Sequence[str] | None,
    cache: Path | None,
    configfile: Path | None = None,
    index_names: Sequence[str] | None = None,
) -> Iterator[Run]:
    """A run with the models of these names, or model/seed, and the indexes of theirs; without names, with all that can
    answer. Files of the cache that are missing are made first. Raises `InputError` if a model or index is not ready."""
    chosen = [choose_model(results, name, configfile) for name in names or ()]
    indexes = [index for name in index_names or () if (index := choose_index(results, name, configfile))]
    if not names and not index_names:
        chosen, indexes = [model for model in models_of(results) if model.vectors], current_indexes(results)
        if not chosen and not indexes:  # The error says how to make vectors.
            choose_model(results, None, configfile)
    models = {model.full_name: model for model in chosen}
    by_name = models | {model.full_name: model for index in indexes for model in index.models.values()}
    embed = _embedding(by_name)
    folder = cache_of(results, cache)
    with open_results(results, {"papers"}) as database:
        papers = checked_files(path_of(results, "papers"), "papers")
        titles = Titles(cached(folder, "papers", papers, partial(index_titles, database)))
    vectors = {}
    for name, model in models.items():
        report(f"Opening the papers' vectors of {name}.")
        files = checked_files(model.vectors, "paper_embeddings")
        vectors[name] = VectorIndex(cached(folder, f"{model.name}-{model.seed}", files, partial(index_vectors, files)))
    topics = {name: topics_of(results, model, folder) for name, model in by_name.items()}

    def by_model(model: Model, text: str) -> list[float]:
        return embed(model.full_name, text)

    with open_results(results, {*RELATIONS, "papers"}) as database:
        database.execute(f"SET memory_limit = '{MEMORY_MB}MB'; SET threads = {os.cpu_count()}")
        yield Run(
            results=results,
            vectors=vectors,
            found_by={each.name: OpenIndex(each, Index(each.folder, each.weights), by_model) for each in indexes},
            titles=titles,
            topics=topics,
            database=database,
            embed=embed,
            map_by=lru_cache(MAPS)(lambda name: map_of(by_name[name], topics[name], database.cursor(), folder)),
            within=lru_cache(FILTERS)(lambda *demanded: _within(results, database, *demanded)),
            fields=[name for (name,) in database.execute(_FIELDS).fetchall()],
            whose_ids=configuration.corpus.whose_ids if (configuration := configuration_of(results)) else "own",
        )


def _embedding(models: dict[str, Model]) -> Callable[[str, str], list[float]]:
    """A function that embeds a text with a model, unless its encoder is not the one that made the papers' vectors."""
    opened, lock = lru_cache(ENCODERS)(lambda name: text_embedder(models[name])), Lock()
    states = {name: _state_of(model.folder) for name, model in models.items()}

    def check(name: str) -> None:
        if _state_of(models[name].folder) != states[name]:
            why = "was made again since its papers' vectors were opened; start `cocite serve` again"
            raise MissingError(f"Model {name} {why}.")

    def embed(name: str, text: str) -> list[float]:
        with lock:
            check(name)
            of_text = opened(name)
            check(name)  # It may have been made again while it was opened.
            return of_text(text)

    return embed


def _state_of(folder: Path) -> list[tuple[str, int, int, int]]:
    """The files of a folder, with the marks that change when they are written again."""
    states = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [(str(path), state.st_ino, state.st_size, state.st_mtime_ns) for path, state in states]


def _within(
    results: Path, database: duckdb.DuckDBPyConnection, years: str | None, field: str | None, venue: str | None
) -> Ids:
    first, dash, last = (years or "-").partition("-")
    values = {"first": first, "last": last if dash else first, "field": field, "venue": venue}
    values = {name: value for name, value in values.items() if value}
    query = f"SELECT corpusid FROM papers WHERE {' AND '.join(CONDITIONS[name] for name in values) or 'true'}"
    try:
        return np.asarray(database.cursor().execute(query, values).fetchnumpy()["corpusid"], np.int64)
    except duckdb.Error as error:
        raise changed_files(results, error) from error
