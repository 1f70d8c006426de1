"""The baseline `sgc`: features passed along the edges of a graph: Sᵏ X with S = D^-½ (A + I) D^-½ (Wu et al., 2019).

A is the undirected graph, with the larger weight if an edge has both directions, and D the row sums of A + I. The
features are propagated some columns at a time, which are saved in the state; a killed propagation resumes from them. A
model's folder has papers.npy, corpus ids, rising, and vectors.npy, the vectors of these papers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.baseline import Trained
from cocite.config.entries import Name, Refers, inconsistent
from cocite.core.errors import InputError
from cocite.core.progress import progress, report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from cocite.baselines.steps import Embedding, Training
    from cocite.core.written_ids import Ids

    Vectors = NDArray[np.float32]

ROWS_AT_ONCE = 8192
EDGES_AT_ONCE = 1 << 18
PAPERS, VECTORS, FEATURES = "papers.npy", "vectors.npy", "features.npy"


class PropagatedFeatures(Trained):
    """Features passed along the edges of a graph (Wu et al., 2019, "Simplifying graph convolutional networks").

    The features are the vectors of another baseline or of an encoder before fine-tuning. The graph is taken as
    undirected. Papers that are kept out have no edges in it, and those of validation queries are left out too: hops can
    be chosen on them, and held-out papers are embedded as they are, by their own features. So is a document that is no
    paper of the corpus. All vectors are of length 1.
    """

    kind: Literal["sgc"]
    of: Annotated[Name | None, Refers("baselines")] = None
    """Name of the baseline whose vectors are the features."""
    encoder: Annotated[Name | None, Refers("encoders")] = None
    """Name of the encoder whose vectors are the features, as it is before fine-tuning; in place of `of`."""
    graph: Annotated[Name, Refers("graphs")]
    """Name of the graph."""
    hops: Annotated[int, Field(ge=1, le=64)] = 2
    """How many times features are passed on; 1 to 8 were tried as a baseline of SPECTER."""
    trained_on = ("paper_vectors", "edges")
    embeds_with = ("document_vectors", "document_papers")

    @model_validator(mode="after")
    def _stands_on_one(self) -> "PropagatedFeatures":
        if (self.of is None) == (self.encoder is None):
            raise inconsistent(" must have either of (a baseline) or encoder, from which its features come.")
        if self.grid is not None and self.of is None:
            raise inconsistent(".grid needs of, a baseline: no vectors of validation papers by an encoder are made.")
        return self

    def training_memory(self, sources_mb: float) -> float:
        """Memory that a training takes, MB: the graph twice while it is read, and a few columns of the features."""
        return 1000 + 2 * sources_mb

    def train(self, training: "Training") -> None:
        """Propagate the features of all papers that have a vector. Raises `InputError` if none has one."""
        import numpy as np

        from cocite.core.checkpoints import open_state, open_whole, sampled_fingerprint
        from cocite.core.searching import of_unit_length

        files = [*training.paper_vectors, *training.edges]
        follows_from = {"hops": self.hops, "inputs": sampled_fingerprint(files)}
        open_state(training.state, follows_from, work="propagation", independent=True, scratch=[FEATURES])
        papers, features = _read_features(training.paper_vectors, training.state / FEATURES)
        graph = _smoothing(training, papers)
        width = max(1, int(training.memory_mb * 1e6 / 4 / (4 * len(papers))))
        starts = range(0, features.shape[1], width)
        for first in progress(starts, of="Columns", unit="block"):
            done = training.state / f"{width}-{first}.npy"
            if not done.exists():
                columns = np.ascontiguousarray(features[:, first : first + width])
                with open_whole(done) as file:
                    np.save(file, propagated(graph, columns, self.hops))
        blocks = [np.load(training.state / f"{width}-{first}.npy", mmap_mode="r") for first in starts]
        np.save(training.output / PAPERS, papers)
        vectors = np.lib.format.open_memmap(training.output / VECTORS, "w+", np.float32, features.shape)
        for first in range(0, len(papers), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            vectors[rows] = of_unit_length(np.concatenate([some[rows] for some in blocks], axis=1))
        vectors.flush()

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The propagated features of papers of the corpus, and the own features of other documents."""
        import numpy as np

        from cocite.baselines.steps import vector_batches
        from cocite.core.searching import of_unit_length
        from cocite.core.tables import TABLES
        from cocite.core.tables.files import table_in
        from cocite.core.tables.papers import papers_of_documents
        from cocite.core.written_ids import look_up

        model, path = embedding.given("model"), embedding.given("document_vectors")
        papers = np.load(model / PAPERS)
        vectors = np.load(model / VECTORS, mmap_mode="r")
        papers_of = papers_of_documents(embedding.document_papers)
        own, are_papers = 0, TABLES[table_in(path)].key[-1] == "corpusid"
        for names, features in vector_batches(path):
            found = of_unit_length(features)
            places, is_paper = look_up(papers, names.to_numpy() if are_papers else papers_of(names))
            found[is_paper] = vectors[places[is_paper]]
            own += int(np.count_nonzero(~is_paper))
            yield names.to_pylist(), found
        are = "are no" if embedding.document_papers is None else "are not known to be"
        report(f"{own:,} documents {are} papers of the corpus, and keep their own features")


def propagated(graph: "csr_array", features: "Vectors", hops: int) -> "Vectors":
    """The features after so many multiplications with the graph."""
    for _ in range(hops):
        features = graph @ features
    return features


def _read_features(files: Sequence[Path], path: Path) -> tuple["Ids", "Vectors"]:
    """The papers that have a vector, rising, and their vectors, in a file on the disk."""
    import numpy as np
    import pyarrow as pa

    from cocite.core.tables.files import open_table, table_in, vectors_of

    of_files, dimension = [], 0
    for vectors in files:
        with open_table(vectors, table_in(vectors)) as file:
            of_files.append(file.read(columns=["corpusid"])["corpusid"].to_numpy())
            dimension = dimension or file.schema_arrow.field("vector").type.list_size
    papers = np.sort(np.concatenate(of_files))
    if len(papers) == 0:
        raise InputError(f"{files[0].parent}: no paper has a vector.")
    features = np.lib.format.open_memmap(path, "w+", np.float32, (len(papers), dimension))
    for vectors, ids in zip(files, of_files, strict=True):
        places, first = np.searchsorted(papers, ids), 0
        with open_table(vectors, table_in(vectors)) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=["vector"]):
                features[places[first : first + len(batch)]] = vectors_of(pa.Table.from_batches([batch]))
                first += len(batch)
    return papers, features


def _smoothing(training: "Training", papers: "Ids") -> "csr_array":
    """The matrix S of the graph, without the edges of validation queries."""
    import numpy as np
    from scipy.sparse import coo_array, csr_array, eye_array

    from cocite.core.id_sets import are_in, set_of
    from cocite.core.tables.files import open_table
    from cocite.core.tables.papers import read_validation_queries
    from cocite.core.written_ids import look_up

    unlinked = set_of(read_validation_queries(training.queries))
    found = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))]
    left_out = 0
    for path in training.edges:
        with open_table(path, "edges") as file:
            for batch in file.iter_batches(EDGES_AT_ONCE, columns=["source", "target", "weight"]):
                source, target, weight = (column.to_numpy() for column in batch.columns)
                (one, is_one), (other, is_other) = look_up(papers, source), look_up(papers, target)
                left_out += int(np.count_nonzero(~(is_one & is_other)))
                kept = is_one & is_other & ~are_in(unlinked, source) & ~are_in(unlinked, target)
                found.append((one[kept].astype(np.int32), other[kept].astype(np.int32), weight[kept]))
    ones, others, weights = map(np.concatenate, zip(*found, strict=True))
    del found  # free one of three copies of the edges
    report(f"{len(ones):,} edges; {left_out:,} left out whose papers have no vector")
    directed = coo_array((weights, (ones, others)), shape=(len(papers), len(papers))).tocsr()
    with_loops = directed.maximum(directed.T) + eye_array(len(papers), dtype=np.float32, format="csr")
    scale = 1 / np.sqrt(with_loops.sum(axis=1))
    with_loops.data *= np.repeat(scale, np.diff(with_loops.indptr)) * scale[with_loops.indices]
    return csr_array(with_loops.astype(np.float32))
