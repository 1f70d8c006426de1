"""The sections `embeddings` and `walks`: graph embeddings, the search for neighbours in them, and random walks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.engine import Engine, HeldOutEdges
from cocite.config.entries import Count, Entry, Refers, ShortFor, Whole, all_parts, inconsistent, one_of
from cocite.config.settings import settings_of


class Links(Entry):
    """What walks go along."""

    weighted: bool = False
    """Whether a walk takes heavier edges more often, in proportion to their weights. Left out, every edge of a paper
    is as likely as any other."""


class WalkSettings(Entry):
    """How papers are ranked by random walks."""

    restart: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Chance that a walk returns to the query instead of taking a further step. A larger one stays nearer to it."""
    score: Literal["symmetric", "walk"] = "symmetric"
    """What ranks a paper. walk is the chance that a walk from the query stops there, which is high for papers with many
    edges; symmetric multiplies it by √(degree of the query / degree of the paper), and so is the same either way."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-6
    """Largest error of the probability that a walk stops at a paper, per edge of the paper. Smaller values reach more
    papers and take longer: a query visits at most 1 / (restart · tolerance) edges."""
    k: Count = 1000
    """Neighbours of each query, fewer where walks reach fewer; k_negative of the triplets drawn from them may not
    exceed it."""


class Walks(Links, WalkSettings):
    """Ranks papers by random walks with restart from each query; samplers can use it in place of a graph embedding."""

    graph: Annotated[str, Refers("graphs")]
    """Name of the graph. Walks go along an edge in either direction."""
    among: Literal["edges", "texts"] = "edges"
    """edges ranks all papers that have an edge; texts only those among them with text, so that no rank
    falls to a paper that cannot become a sample. Walks go through the others in either case."""
    query_jobs: Count = 1
    """Jobs that share the queries."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """More neighbours than the release can have papers."""
        yield from more_than_papers(f"{key}.k", self.k, config)


def more_than_papers(key: str, k: int, config: Whole) -> Iterator[str]:
    """A sentence if the release has too few papers for k neighbours per query."""
    largest = config.corpus.largest_index
    if largest is not None and k >= largest - 1:
        yield f"{key} ({k}) must be smaller than {largest - 1}: the release has at most {largest} papers."


ENGINES = "cocite.embeddings.engines"
Metric = Literal["cosine", "l2", "inner_product"]


class FlatIndex(Entry):
    """Compares each query with every paper; exact."""

    kind: Literal["flat"]
    """How papers are arranged for the search."""


class IvfIndex(Entry):
    """What an IVF index is built with."""

    kind: Literal["ivf"]
    """How papers are arranged for the search."""
    nlist: Count = 1024
    """Lists that the papers are sorted into; 4 to 16 times the root of their number is usual."""


class IvfProbing(Entry):
    """How an IVF index is searched."""

    kind: Literal["ivf"]
    nprobe: Count = 32
    """Inverted lists read per query (nprobe); more if they contain fewer than k papers."""


class HnswIndex(Entry):
    """What an HNSW index is built with."""

    kind: Literal["hnsw"]
    """How papers are arranged for the search."""
    links: Annotated[int, Field(ge=2)] = 32
    """Links of each paper (M)."""
    ef_construction: Count = 100
    """Candidates that are kept while a paper is linked."""


class HnswWalk(Entry):
    """How an HNSW index is searched."""

    kind: Literal["hnsw"]
    ef_search: Count = 100
    """Candidates that are kept while a query is searched; at least a few more than k are."""


class Approximate(Entry):
    """What every index has that does not find all neighbours."""

    recall_queries: Count = 200
    """Queries on which the recall is measured."""


class Ivf(IvfIndex, IvfProbing, Approximate):
    """Reads only the lists of papers near a query."""

    @model_validator(mode="after")
    def _probes_its_lists(self) -> "Ivf":
        if self.nprobe > self.nlist:
            raise inconsistent(f".nprobe ({self.nprobe}) must not exceed nlist ({self.nlist}).")
        return self


class Hnsw(HnswIndex, HnswWalk, Approximate):
    """Graph-based search (HNSW). Keeps all vectors in memory."""


class IndexSettings(Entry):
    """The keys of `Neighbours` that an approximate index is built with."""

    metric: Metric = "cosine"
    index: Annotated[IvfIndex | HnswIndex, Field(discriminator="kind")]


class SearchSettings(Entry):
    """The keys of `Neighbours` that a search depends on."""

    metric: Metric = "cosine"
    k: Count = 5000
    index: Annotated[FlatIndex | IvfProbing | HnswWalk, Field(discriminator="kind"), ShortFor("kind")] = FlatIndex(
        kind="flat"
    )


class Neighbours(Entry):
    """The search for the nearest neighbours of the queries."""

    metric: Metric = "cosine"
    """cosine is the default. l2 reproduces published CoCite, in which untrained papers crowd out real neighbours.
    inner_product favours long vectors."""
    among: Literal["edges", "texts"] = "edges"
    """edges searches all papers that have an edge, as published. texts searches only those that also have text, so that
    no rank goes to a paper that cannot become a sample."""
    papers_of: Annotated[str | None, Refers("triplets")] = None
    """Name of a set of triplets: only its papers are searched, as SciNCL ranked the papers of its triplets. In place of
    among."""
    k: Count = 5000
    """Neighbours of each query; k_negative of the triplets drawn from them may not exceed it."""
    query_jobs: Count = 1
    """Jobs that share the queries; each streams all vectors past its share."""
    index: Annotated[FlatIndex | Ivf | Hnsw, Field(discriminator="kind"), ShortFor("kind")] = FlatIndex(kind="flat")
    """What the search goes through: a name, or a name and its settings. The recall of ivf and hnsw is measured."""


class GraphEmbedding(HeldOutEdges):
    """What a graph embedding has with any engine: its graph, the held-out edges, and the neighbours in it."""

    graph: Annotated[str, Refers("graphs")]
    """Name of the graph."""
    neighbours: Neighbours = Neighbours()
    """The search for the nearest neighbours of the queries."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A sentence if it asks for more neighbours than papers, or for the papers of no or of its own triplets."""
        yield from more_than_papers(f"{key}.neighbours.k", self.neighbours.k, config)
        at, name = f"{key}.neighbours.papers_of", self.neighbours.papers_of
        if name is None:
            return
        if self.neighbours.among == "texts":
            yield f"{at} takes the place of among: texts; leave one of them out."

        def behind(each: str) -> list[str]:
            """The parts of a set, and the set whose papers are searched for the neighbours that it is sampled from."""
            embedding = config.embeddings.get(getattr(config.triplets[each], "embedding", None))
            return [*config.triplets[each].parts, *filter(None, [embedding and embedding.neighbours.papers_of])]

        sets = [name, *all_parts(name, behind)]
        if any(getattr(config.triplets[each], "embedding", None) == key.removeprefix("embeddings.") for each in sets):
            yield f"{at}: the set {name} is sampled from these neighbours; name one that is not."
        if any(each.gives != "triplets" for each in config.set_with_parts(name).values()):
            yield f"{at}: the set {name} has examples, and no triplets."


if TYPE_CHECKING:
    AnyEngine = Engine

    class Embedding(Engine, GraphEmbedding):
        """An entry of the section: the settings of its engine, and what a graph embedding has with it."""

else:
    # A training is not given the keys of the import: what they change reaches it through the imported edges.
    AnyEngine = one_of(ENGINES, "engine", default="biggraph")
    Embedding = one_of(ENGINES, "engine", default="biggraph", beside=lambda engine: (GraphEmbedding, engine.edges))


def edge_settings(entry: "Embedding") -> dict[str, Any]:
    """The keys of the import in an entry: those of any engine, and those that go with its own."""
    return {**settings_of(entry, HeldOutEdges), **settings_of(entry, entry.edges)}
