"""The baselines that are not trained: `bm25`, `brought`, `joined`, `popularity`, `random`, `reported` and `tfidf`.

Joined vectors are each scaled to length 1 and by the root of its share of the weights, so that the cosine of two of
them is the weighted mean of the cosines. A document that one of the models has no vector for has none.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, Strict, model_validator

from cocite.config.baseline import Baseline
from cocite.config.entries import GivenPath, Names, NonNegative, Positive, Refers, Seeds, Text, Whole, inconsistent
from cocite.config.sampler import oracle_models
from cocite.config.tasks import result_files
from cocite.core.errors import InputError
from cocite.core.progress import report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cocite.baselines.steps import Batch, Embedding

    Vectors = NDArray[np.float32]


class BM25(Baseline):
    """Ranks documents by the words of the query in them, with bm25s; it scores rankings and nothing else.

    Words are counted over all documents of a task, without English stop words (Lù, 2024).
    """

    kind: Literal["bm25"]
    k1: NonNegative = 1.5
    """How much a word that comes again adds; 0 counts each word once."""
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    """How much a long document counts less: from 0, not at all, to 1."""
    method: Literal["lucene", "robertson", "atire"] = "lucene"
    """The variant of the formula, as bm25s names it."""
    ranks_alone = True


class Popularity(Baseline):
    """Ranks papers by how often training sees them cited, without reading a word; scored on held-out papers only.

    It shows how much of a score is popularity: relevant papers are cited more often than random ones.
    """

    kind: Literal["popularity"]
    ranks_alone = True
    about_held_out = True


class TfIdf(Baseline):
    """Screens reviews by the words of their papers: TF-IDF of words and pairs of words, without English stop words."""

    kind: Literal["tfidf"]
    ranks_alone = True
    screens = True


class RandomVectors(Baseline):
    """A vector from the standard normal distribution for each document: what chance reaches (SPECTER, 2020)."""

    kind: Literal["random"]
    dimension: Annotated[int, Field(ge=1, le=4096)] = 25
    """Number of dimensions of the vectors, whose mean is zero."""
    is_chance = True

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Draw the vectors from the run's seed: of documents one after the other, of papers by their ids, so that those
        in other buckets have others."""
        import numpy as np
        from scipy.special import ndtri

        from cocite.core.randomness import fractions, generator, priorities

        random = generator(embedding.seed, "random vectors")
        for batch in embedding.documents():
            shape = (len(batch.names), self.dimension)
            if embedding.table == "papers":
                ids, numbers = np.repeat(batch.names, self.dimension), np.tile(np.arange(self.dimension), shape[0])
                uniform = fractions(priorities(embedding.seed, "random vectors", ids, numbers))
                yield batch.names, ndtri(np.maximum(uniform, 2.0**-54)).reshape(shape).astype(np.float32)
            else:
                yield batch.names, random.standard_normal(shape, dtype=np.float32)


class ReportedScores(Baseline):
    """Externally reported scores, in files of the library mteb; they are shown in the report, and nothing is computed.

    They count for the tasks that mteb shares: SciFact, NFCorpus, TRECCOVID, ArguAna and SCIDOCS.
    """

    kind: Literal["reported"]
    path: GivenPath
    """A file of results that mteb wrote, or the folder of one revision of a model. Environment variables are
    expanded."""
    is_reported = True

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder without results or with those of several models, or a run that has no task of mteb."""
        yield from super().check_environment(key, config)
        try:
            result_files(Path(self.path))
        except InputError as error:
            yield f"{key}.path: {error}"
        if not any(task.mteb for entry in config.benchmarks.values() for task in entry.scored_tasks):
            yield f"{key}: no benchmark has a task of mteb, which kind: beir has with the dataset scifact, for example."


class UserSuppliedVectors(Baseline):
    """User-supplied vectors of any model, with the ids of documents. Documents without a vector are counted.

    SPECTER's published files are read directly.
    """

    kind: Literal["brought"]
    path: GivenPath
    """File of ids and vectors, or folder of such files: Parquet, NPZ or JSON Lines. Environment variables are
    expanded."""
    ids: Text | None = None
    """Name of the column, array or key of the ids. Left out, the first of paper_id, id, ids, document, corpusid,
    corpus_id and doc_id that is there."""
    vectors: Text | None = None
    """Name of that of the vectors. Left out, the first of embedding, vector, embeddings and vectors that is there."""
    ids_of: Literal["papers", "documents"] = "papers"
    """What the ids are. papers: those of papers as the benchmark has them (corpus ids, or hashes in SciDocs), for all
    documents of a paper; documents: the names in the table documents, each for itself."""
    benchmarks: Names | None = None
    """Names of the benchmarks that it has vectors for. Left out, all."""
    knows_all_papers = False

    @property
    def has_only(self) -> tuple[str, ...]:
        """The benchmarks that it has vectors for; empty for all."""
        return self.benchmarks or ()

    def embedding_memory(self, sources_mb: float) -> float:
        """Half a gigabyte, and what an NPZ file takes, which is read as a whole."""
        return 1000 + 2 * sources_mb

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A file that is not there or of no known format, or a benchmark that is not declared."""
        from cocite.baselines.user_vectors import SUFFIXES

        yield from super().check_environment(key, config)
        path = Path(self.path)
        if not path.exists():
            yield f"{key}.path: {path} does not exist."
        elif not path.is_dir() and not path.name.endswith(SUFFIXES):
            yield f"{key}.path: {path} is none of {', '.join(SUFFIXES)}."
        for name in self.benchmarks or ():
            if name not in config.benchmarks:
                declared = ", ".join(config.benchmarks) or "none"
                yield f"{key}.benchmarks names {name!r}, which benchmarks does not declare (declared: {declared})."

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Look the documents up. Raises `InputError` if none of them has a vector."""
        from cocite.baselines.user_vectors import FieldNames, files_in, read_vectors

        path = Path(self.path)
        wanted = {each for batch in embedding.documents() for each in self._ids_of(batch) if each}
        found = read_vectors(files_in(path), wanted, FieldNames(self.ids, self.vectors))
        if not found.rows:
            of = f"one of the {len(wanted):,} of {embedding.source}, such as {min(wanted, default='nothing')!r}"
            raise InputError(f"{path}: none of its {found.read:,} ids is {of}; ids are those that the benchmark has.")
        report(f"{path}: {len(found.rows):,} of {found.read:,} vectors are of the documents of {embedding.source}.")
        for batch in embedding.documents():
            ids = self._ids_of(batch)
            known = [row for row, each in enumerate(ids) if each in found.rows]
            yield [batch.names[row] for row in known], found.matrix[[found.rows[ids[row]] for row in known]]

    def _ids_of(self, batch: "Batch") -> list[str]:
        """The ids of documents: behind a colon in their names where several share one; empty for a short query."""
        if self.ids_of == "documents":
            return [str(name) for name in batch.names]
        rows = zip(batch.names, batch.are_queries, strict=True)
        return ["" if is_query else str(name).rpartition(":")[2] for name, is_query in rows]


class JoinedVectors(Baseline):
    """The vectors of several models side by side: a static encoder and a transformer know different things of a paper.

    The cosine of two joined vectors is the weighted mean of the cosines by each model.
    """

    kind: Literal["joined"]
    models: Annotated[Names, Field(min_length=2), Refers("models", or_in="encoders")]
    """Names of models, or of encoders as they are before fine-tuning, at least two."""
    weights: Annotated[tuple[Positive, ...], Strict(False)] | None = None
    """A weight for each of them, in the same order. Left out, they are equal."""
    seeds: Seeds = (1,)
    """Seeds of the models that were trained: each has a training with each of them."""
    embeds_with = ("joined_vectors",)

    @model_validator(mode="after")
    def _has_a_weight_for_each(self) -> "JoinedVectors":
        if self.weights is not None and len(self.weights) != len(self.models):
            raise inconsistent(f".weights are {len(self.weights)}, and models are {len(self.models)}.")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A model with adapters, one that knows answers, or a seed that one of them was not trained with."""
        from cocite.config.runs import UNTRAINED, adapters_of

        yield from super().check_references(key, config)
        oracles = oracle_models(config)
        for name in self.models:
            if name in oracles:
                yield f"{key}.models names {name}, which has learned from the answers of {', '.join(oracles[name])}."
            if adapters_of(config, name if name in config.models else f"{UNTRAINED}{name}"):
                yield f"{key}.models names {name}, whose adapters give a document several vectors."
            for seed in set(self.seeds).difference(config.models[name].seeds if name in config.models else self.seeds):
                yield f"{key}.seeds has {seed}, and models.{name} has no such training."

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The joined vectors of the documents that all models have a vector for."""
        import numpy as np

        from cocite.baselines.steps import vector_batches
        from cocite.core.searching import of_unit_length

        weights = np.array(self.weights or [1.0] * len(self.models))
        shares = np.sqrt(weights / weights.sum())
        first, *others = embedding.joined_vectors
        held = [_read(path) for path in others]
        for column, vectors in vector_batches(first):
            names = column.to_pylist()
            known = [place for place, name in enumerate(names) if all(name in rows for rows, _ in held)]
            kept = [names[place] for place in known]
            of_each = [vectors[known], *(table[[rows[name] for name in kept]] for rows, table in held)]
            scaled = [share * of_unit_length(some) for share, some in zip(shares, of_each, strict=True)]
            yield kept, np.concatenate(scaled, axis=1)


def _read(path: Path) -> tuple[dict[Any, int], "Vectors"]:
    """The row of each document, and all vectors."""
    import numpy as np

    from cocite.baselines.steps import vector_batches

    found = list(vector_batches(path))
    names = [name for column, _ in found for name in column.to_pylist()]
    filled = [vectors for _, vectors in found if len(vectors)] or [np.empty((0, 1), np.float32)]
    return {name: row for row, name in enumerate(names)}, np.concatenate(filled)
