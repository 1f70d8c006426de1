"""The papers nearest to a text or a paper by a trained model or found by an index, and the models of a run.

The distance of a model is Euclidean, as in the benchmarks that rank models. The search reads all vectors in blocks: its
memory does not grow with the corpus, its time does. Indexes are folders that a run lays out (`retrieval.building`).
"""

import difflib
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from pyarrow.parquet import read_schema

from cocite.config.configuration import Configuration
from cocite.config.index import searches
from cocite.config.runs import UNTRAINED, encoders_of_index, first_seed, names_in_order
from cocite.config.started import remaking_command
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import checked_files, read_table
from cocite.core.tables.places import files_by_place, path_of
from cocite.core.written_ids import Ids
from cocite.plan.recorded import configuration_of, configured_in
from cocite.retrieval.search import Answer as FoundPaper
from cocite.retrieval.search import Index, of_length_1
from cocite.tools.answers import Answer, fetched
from cocite.tools.contents import NO_RECORD, corpus_id, known_as

SEED = re.compile(r"seed-(\d+)")
AWAY = 0.5
"""How far a search moves away from papers that are not wanted: a share of the way from them to those that are."""
COLUMNS = ("rank", "score", "similarity", "words", "links", "citations", "age", "cited", "corpusid", "year", "title")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model with one of its seeds."""

    name: str
    seed: int
    folder: Path
    """That of the encoder."""
    made: float
    """When it was trained, in seconds since 1970."""
    vectors: list[Path]
    """The buckets of the table paper_embeddings; empty unless each bucket of papers has one newer than the model."""

    @property
    def full_name(self) -> str:
        """Its name and seed, such as cocite/1."""
        return f"{self.name}/{self.seed}"


def choose_model(results: Path, name: str | None, configfile: Path | None = None, *, embed: bool = False) -> Model:
    """As `find_model`, for a model with vectors, which `embed` makes first. Raises `InputError` if it has none."""
    chosen = find_model(results, name)
    if embed and not chosen.vectors:
        command = _embedding_command(results, chosen, configfile)
        report(f"Embedding the papers by model {chosen.name}, seed {chosen.seed}:\n  {command}")
        subprocess.run(["bash", "-c", command], stdout=sys.stderr, check=False)
        chosen = find_model(results, chosen.full_name)
        if not chosen.vectors:
            raise InputError(f"The papers were not embedded by model {chosen.name}, seed {chosen.seed}; see above.")
    if not chosen.vectors:
        ready = [model.full_name for model in models_of(results) if model.vectors]
        others = f" Vectors exist of {', '.join(ready)} (--model)." if ready else ""
        try:
            command = _embedding_command(results, chosen, configfile)
            how = f"`cocite search --embed` or this embeds them, and can take long on a large corpus:\n  {command}"
        except InputError as error:
            how = str(error)
        lacks = f"The papers have no vectors of model {chosen.name}, seed {chosen.seed}, that are newer than it is."
        raise InputError(f"{lacks}{others} {how}")
    return chosen


def find_model(results: Path, name: str | None, option: str = "--model") -> Model:
    """The model of this name with its first seed, or model/seed, or the first model of the configuration if there is no
    name. Raises `InputError` with the choices if no model has this name."""
    models = models_of(results)
    named = [model for model in models if name in (None, model.name, model.full_name)]
    if not named:
        if not models:
            lacks = f"{results}/encoder holds no trained model"
            raise InputError(f"{lacks}; finish a run, or name other results with --results.")
        close = difflib.get_close_matches(str(name), [model.name for model in models], n=1)
        other = f"did you mean {close[0]}? {option}" if close else option
        choices = " or ".join(model.full_name for model in models)
        raise InputError(f"There is no model {name!r}; {other} can be {choices}.")
    return named[0]


def models_of(results: Path) -> list[Model]:
    """All models in the order of the configuration, and by seed; the trained ones come first."""
    configured = configured_in(config := configuration_of(results))
    names = names_in_order(config) if config else []
    vectors = files_by_place(results, TABLES["paper_embeddings"])
    papers = {path.name for path in path_of(results, "papers").glob("*.parquet")}
    found = []
    for modules in sorted(results.glob("encoder/*/seed-*/model/modules.json")):
        folder = modules.parent
        name, seed = folder.parent.parent.name, SEED.fullmatch(folder.parent.name)
        if seed and configured({"model": name, "seed": seed[1]}):
            trained = modules.stat().st_mtime
            made = vectors.get((("model", name), ("seed", seed[1])), [])
            current = [path for path in made if path.stat().st_mtime >= trained]
            whole = current if {path.name for path in current} == papers else []
            found.append(Model(name=name, seed=int(seed[1]), folder=folder, made=trained, vectors=whole))
    names = [*names, *sorted({model.name for model in found}.difference(names))]
    return sorted(found, key=lambda of: (of.name.startswith(UNTRAINED), names.index(of.name), of.seed))


def _embedding_command(results: Path, model: Model, configfile: Path | None) -> str:
    """The command that embeds the papers. Raises `InputError` if there are none, or the run is elsewhere."""
    buckets = sorted(int(path.stem) for path in path_of(results, "papers").glob("[0-9]*.parquet"))
    if not buckets:
        raise InputError(f"{results} holds no table papers, and a search needs it; run the workflow up to its end.")
    braces = f"{{{buckets[0]}..{buckets[-1]}}}" if len(buckets) > 1 else str(buckets[0])
    target = str(path_of(Path(), "paper_embeddings", model=model.name, seed=model.seed, bucket=braces))
    return remaking_command(results, [target], configfile)


_NEAREST = """
    WITH nearest AS (
        SELECT corpusid, list_distance(vector, $vector::FLOAT[]) AS distance
        FROM read_parquet($files, hive_partitioning = false) WHERE corpusid IS DISTINCT FROM $itself
        ORDER BY distance, corpusid LIMIT $limit
    )
    SELECT row_number() OVER (ORDER BY distance, nearest.corpusid) AS rank, distance, nearest.corpusid, year, title
    FROM nearest LEFT JOIN papers USING (corpusid) ORDER BY rank"""


def nearest_papers(db: duckdb.DuckDBPyConnection, model: Model, query: str, limit: int) -> Answer:
    """The nearest papers to a text or a corpus id, without that paper. Raises `InputError` if it has no vector."""
    paper = corpus_id(query) if query.strip().isdecimal() else None
    files = [escape(str(path)) for path in checked_files(model.vectors, "paper_embeddings")]
    if paper is None:
        vector, shown = text_embedder(model)(query), f"“{query}”"
    else:
        own = "SELECT vector FROM read_parquet($files, hive_partitioning = false) WHERE corpusid = $paper"
        rows = db.execute(own, {"files": files, "paper": paper}).fetchall()
        if not rows:
            why = "it is not a paper of the corpus, or has no text"
            raise InputError(f"Paper {paper} has no vector of model {model.name}: {why}.")
        vector, shown = list(rows[0][0]), f"paper {paper}, {known_as(db, paper) or NO_RECORD},"
    found = db.execute(_NEAREST, {"vector": vector, "files": files, "itself": paper, "limit": limit})
    return Answer(f"Nearest to {shown} by model {model.name}, seed {model.seed}", *fetched(found))


def text_embedder(model: Model) -> Callable[[str], list[float]]:
    """A function that embeds a text by the encoder of a model, which is opened once: in float32, whatever the papers
    were embedded in, and by the adapter of queries if the model has one."""
    from cocite.config.tasks import ADAPTERS
    from cocite.encoder.adapters import adapters_in, read_adapter, switch_on
    from cocite.encoder.embedding import embed_texts
    from cocite.encoder.model import open_encoder

    # The vectors of the papers may have been cut.
    encoder = open_encoder(model.folder, dimension=read_schema(model.vectors[0]).field("vector").type.list_size)
    present = adapters_in(model.folder)
    adapter = next((name for name in ADAPTERS["search"] if name in present), None)
    if adapter is not None:
        switch_on(encoder, read_adapter(encoder, model.folder, adapter))

    return lambda text: embed_texts(encoder, [encoder.tokenizer.short_query(0, text)])[0].tolist()


@dataclass(frozen=True, kw_only=True)
class RunIndex:
    """An index of a run, with its first seed."""

    name: str
    seed: int
    folder: Path
    """Where it is laid out."""
    weights: Path
    recall: float
    """On the selection queries, the mean over tasks; −1 if it is not known."""
    models: Mapping[str, Model]
    """The encoders that embed a text, by the names of the index's models; none if the results lack one."""


def choose_index(results: Path, name: str | None, configfile: Path | None = None) -> RunIndex | None:
    """The index of this name; without a name the one with the highest recall on the selection queries, if the run has
    any. Raises `InputError` with the choices, or with what to run if its models embedded the papers since."""
    config = configuration_of(results)
    names = list(config.indexes) if config else []
    if name is not None and name not in names:
        choices = " or ".join(names)
        raise InputError(f"There is no index {name!r}; --index can be {choices}." if names else "The run has no index.")
    chosen = next(iter(_indexes_of(results, config, name)), None)
    if chosen is None:
        if name is None:
            return None
        lacks = "they are learned on a hold-out with `search: true`, which the run lacks"
        raise InputError(f"Index {name} has no weights: {lacks}.")
    if not _is_current(chosen):
        targets = [str(path.relative_to(results)) for path in (chosen.folder, chosen.weights)]
        command = remaking_command(results, targets, configfile)
        why = f"Index {chosen.name} was not laid out since its models embedded the papers"
        raise InputError(f"{why}. This does it:\n  {command}")
    return chosen


def current_indexes(results: Path) -> list[RunIndex]:
    """The indexes of a run that are laid out, the one with the highest recall on the selection queries first."""
    return [index for index in _indexes_of(results, configuration_of(results)) if _is_current(index)]


def _is_current(index: RunIndex) -> bool:
    """Whether an index is there, and newer than the vectors that it is made of, which are those of its models now."""
    written, vectors = index.folder / "index.json", [model.vectors for model in index.models.values()]
    if not (written.is_file() and index.weights.is_file() and vectors and all(vectors)):
        return False
    return max(file.stat().st_mtime for files in vectors for file in files) <= written.stat().st_mtime


def _indexes_of(results: Path, config: Configuration | None, only: str | None = None) -> list[RunIndex]:
    """All configured indexes or `only` one, the highest recall first; none if no hold-out gives them weights."""
    benchmark = next((name for name, entry in config.benchmarks.items() if searches(entry)), None) if config else None
    if config is None or benchmark is None:
        return []
    models, found = {(model.name, model.seed): model for model in models_of(results)}, []
    for name in config.indexes if only is None else [only]:
        entry, seed = config.indexes[name], first_seed(config, name)
        runs = encoders_of_index(config, name, seed)
        folder = results / f"retrieval/{name}/seed-{seed}/{benchmark}"
        scores, recalls = folder / "selection_scores.parquet", list[float]()
        if scores.is_file():
            rows = read_table(scores, "selection_scores", ["recall", "chosen"]).to_pylist()
            recalls = [row["recall"] for row in rows if row["chosen"] and row["recall"] is not None]
        index = RunIndex(
            name=name,
            seed=seed,
            folder=results / f"retrieval/{entry.of or name}/seed-{seed}/index",
            weights=folder / "weights.json",
            recall=float(np.mean(recalls)) if recalls else -1,
            models={model: models[run] for model, run in runs.items()} if models.keys() >= {*runs.values()} else {},
        )
        found.append(index)
    return sorted(found, key=lambda index: index.recall, reverse=True)


@dataclass(frozen=True)
class OpenIndex:
    """An index that answers."""

    index: RunIndex
    arrays: Index
    embed: Callable[[Model, str], Any]
    """The vector that a model gives to a text."""

    def find(
        self,
        text: str | None,
        papers: Mapping[int, str],
        k: int,
        known: str | None = None,
        *,
        unlike: Collection[int] = (),
        within: Ids | None = None,
    ) -> list[FoundPaper]:
        """The k papers that a text finds, some papers with their texts, or both together, away from those of `unlike`
        and only `within` others, if there are some. Raises `InputError` if a paper has no vectors in the index."""
        of_papers = {paper: self.arrays.vectors_of(paper) for paper in (*papers, *unlike)}
        for paper, of_models in of_papers.items():
            if of_models.keys() != self.arrays.models.keys():
                raise InputError(f"Paper {paper} is not in index {self.index.name}, or has no text.")
        vectors = {}
        for name, model in self.arrays.models.items():
            dimension = len(model.centroids[0])
            typed = [] if text is None else [of_length_1(self.embed(self.index.models[name], text), dimension)]
            cut = {paper: of_length_1(of_models[name], dimension) for paper, of_models in of_papers.items()}
            vectors[name] = moved([*typed, *(cut[paper] for paper in papers)], [cut[paper] for paper in unlike])
        words = " ".join(filter(None, [text, *papers.values()]))
        return self.arrays.search(words, vectors, k=k, known=known, without=[*papers, *unlike], within=within)


def moved(liked: Sequence[Any], disliked: Sequence[Any]) -> Any:
    """The mean of some vectors, moved away from that of others (Rocchio, 1971)."""
    mean = np.mean(liked, axis=0)
    return mean + AWAY * (mean - np.mean(disliked, axis=0)) if disliked else mean


def papers_of_index(
    db: duckdb.DuckDBPyConnection, index: RunIndex, query: str, limit: int, known: str | None
) -> Answer:
    """The papers that an index finds for a text or a corpus id: scores, their parts, and how often they are cited."""
    paper = corpus_id(query) if query.strip().isdecimal() else None
    open_index = OpenIndex(index, Index(index.folder, index.weights), lambda model, text: text_embedder(model)(text))
    own = db.execute("SELECT title, abstract FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchall()
    texts = {} if paper is None else {paper: " ".join(filter(None, own[0] if own else ()))}
    found = open_index.find(None if texts else query, texts, limit, known)
    ids = [each.paper for each in found]
    rows = db.execute("SELECT corpusid, year, title FROM papers WHERE corpusid IN $ids", {"ids": ids}).fetchall()
    records = {row[0]: row[1:] for row in rows}
    shown = f"“{query}”" if paper is None else f"paper {paper}, {known_as(db, paper) or NO_RECORD},"
    answers: list[tuple[Any, ...]] = []
    for rank, each in enumerate(found, start=1):
        scores = (rank, each.score, *each.parts.values(), each.facts["citations"])
        answers.append((*scores, each.paper, *records.get(each.paper, (None, None))))
    setting = known or open_index.arrays.weights.known
    heading = f"Found for {shown} by index {index.name}, seed {index.seed}, known: {setting}"
    if found and found[0].facts["words"] is None and open_index.arrays.words:
        heading += "; no paper has a word of it, so the vectors answer"
    return Answer(heading, COLUMNS, answers)
