"""The settings of a sampler of triplets: an entry of the configuration, one class each; and the settings of sets.

The samplers are in the modules of `triplets/samplers`; how to add one is in docs/how-to/new-sampler.md.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config import entries
from cocite.config.entries import Count, Entry, Name, Natural, Refers, ShortFor, Whole, all_parts, inconsistent

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration

QUERIES_AT_ONCE = 250_000  # of a block: some hundred bytes each, against one more reading of the sources a block


class Sampler(Entry):
    """How positives and negatives are found; the only value of a sampler's field `sampler` is its name."""

    sampler: str
    """How positives and negatives are selected."""
    gives: ClassVar[Literal["triplets", "sampled_examples"]] = "triplets"
    """The table that it produces; a combined set produces examples if one of its sets does."""
    asks_all_papers: ClassVar[bool] = False
    """Whether every paper with text is a query, instead of only those of the table `queries`, which keep their
    split."""
    memory_of_source: ClassVar[int] = 0
    """Memory that each MB of its sources takes, MB; 0 if they are streamed. Of a sampler that asks all papers, only the
    sources of the papers of a block are held."""
    brings_texts: ClassVar[bool] = False
    """Whether it gives texts that are no papers as well, and then examples (`triplets.sampled.Sampled.texts`)."""
    numbers_of_kinds: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The kinds of negatives that it tells apart, and for each the key with their number in an example."""
    needs_citations: ClassVar[bool] = False
    """Whether its graph must be a directed citation graph."""
    group: Name = "all"
    """Sets of one group are cut to the size of its smallest and share one validation set."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The sets that this one is made of: those under `of`."""
        of: str | tuple[str, ...] = getattr(self, "of", ())
        return (of,) if isinstance(of, str) else of

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that its examples have, if it tells them apart."""
        return ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of negatives of its examples, if it tells them apart."""
        return tuple(kind for kind, key in self.numbers_of_kinds if getattr(self, key))

    @property
    def gives_away(self) -> str:
        """The benchmark whose answers it takes; empty for none."""
        return ""

    @property
    def mined_by_model(self) -> str:
        """The model by whose vectors its negatives are mined; empty for none."""
        return ""

    @property
    def has_negatives(self) -> bool:
        """Whether its examples may have negatives that it finds itself."""
        return True

    def sources(self, name: str, plan: Any) -> list[str]:
        """The files that the set of this name is sampled from: what its keys refer to in `cocite.plan.Plan`."""
        graph, embedding = getattr(self, "graph", None), getattr(self, "embedding", None)
        return [
            *(plan.neighbours.of(embedding) if embedding is not None else ()),
            *(plan.graph.pairs_or_edges(graph) if graph is not None else ()),
            *map(plan.triplets.sampled, self.parts),
        ]

    @abstractmethod
    def sample(self, block: Any) -> Any:
        """The rows of the queries of a block (`triplets.sampled.Block`), and the numbers left out, by reason.

        Sources are read from front to back. The rows of a query depend only on the query and the seed. A sampler with
        user-supplied texts gets all queries in one block.
        """

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A set that is a part of itself or made of all links of a graph, or a graph that is no citation graph."""
        name = key.removeprefix("triplets.")
        if name in all_parts(name, lambda part: config.triplets[part].parts):
            yield f"{key}.of: a set of triplets must not be a part of itself."
        for part in self.parts:
            if config.triplets[part].asks_all_papers:
                yield f"{key}.of names {part!r}, whose queries are all papers; a model mixes such sets by objectives."
        graph = getattr(self, "graph", None)
        if self.needs_citations and not getattr(config.graphs[graph], "directed", False):
            yield f"{key}.graph: {graph!r} is not a directed citation graph."


class Pairing(Sampler):
    """What every sampler has that pairs positives with negatives."""

    per_query: Count = 5
    """Triplets of each query."""
    text_filter: Literal["before", "after"] = "before"
    """before leaves out papers without a text before papers are ranked or picked; after does so afterwards, and so
    leaves fewer triplets."""
    oversample: bool = False
    """A query with fewer positives than triplets uses them again."""
    partial: Literal["kept", "dropped"] = "kept"
    """Whether a query that yields fewer triplets than per_query keeps them (kept) or has none (dropped)."""

    @property
    def requires_text(self) -> bool:
        """Whether papers without a text are left out from the start."""
        return self.text_filter == "before"


class Mixing(Pairing):
    """What samplers of hard and easy negatives have."""

    easy: Natural = 0
    """Triplets of a query whose negative is an easy one; the others have hard negatives."""
    fill: bool = False
    """Easy negatives replace missing hard ones if a query has at least one hard one."""

    @property
    def hard(self) -> int:
        """Triplets of a query with a hard negative."""
        return self.per_query - self.easy

    @property
    def most_easy(self) -> int:
        """Easy negatives that a query may need."""
        return self.per_query if self.fill else self.easy

    @model_validator(mode="after")
    def _has_no_more_easy_ones_than_triplets(self) -> "Mixing":
        if self.easy > self.per_query:
            raise inconsistent(f".easy must not exceed per_query ({self.per_query}).")
        return self


class Gathering(Sampler):
    """What samplers have that gather examples of several positives and negatives from a citation graph."""

    gives = "sampled_examples"
    needs_citations = True
    graph: Annotated[str, Refers("graphs")]
    """Name of a directed citation graph; citations count in both directions."""
    positives: Count = 5
    """Largest number of positives per example."""
    easy: Natural = 3
    """Easy negatives of an example."""
    paired: bool = False
    """Whether each positive becomes a separate example with one of the negatives: triplets."""
    oversample: bool = False
    """Paired, a query with fewer positives than `positives` uses them again."""

    @model_validator(mode="after")
    def _makes_examples(self) -> "Gathering":
        if not self.kinds:
            raise inconsistent(" has no negatives, and so yields no examples.")
        if self.oversample and not self.paired:
            raise inconsistent(".oversample has no effect where positives are not paired with negatives.")
        return self


class RandomNegatives(Entry):
    """Draws from all papers but the k neighbours."""

    kind: Literal["random"]
    """Where easy negatives come from."""


class UnfilteredNegatives(Entry):
    """Draws from all papers, the neighbours included (SciNCL's pure random)."""

    kind: Literal["pure-random"]
    """Where easy negatives come from."""


class ClusterNegatives(Entry):
    """Draws from clusters of the embedding that are not the query's own."""

    kind: Literal["k-means"]
    """Where easy negatives come from."""
    clusters: Annotated[int, Field(ge=2)] = 100
    """Clusters of the graph embedding."""


class FarthestNegatives(Entry):
    """Takes the farthest of some random papers."""

    kind: Literal["sorted-random"]
    """Where easy negatives come from."""
    drawn: Count = 1000
    """Random papers of which the farthest are taken."""


WITHOUT_VECTORS = ("random", "pure-random")  # the kinds of easy negatives that need no graph embedding
EasyNegatives = Annotated[
    RandomNegatives | UnfilteredNegatives | ClusterNegatives | FarthestNegatives,
    Field(discriminator="kind"),
    ShortFor("kind"),
]


def oracles(config: "Configuration") -> dict[str, list[str]]:
    """The sets that contain answers of benchmarks, themselves or through a set they combine, with these benchmarks."""
    given_away = {}
    for name in config.triplets:
        if benchmarks := [each.gives_away for each in config.set_with_parts(name).values() if each.gives_away]:
            given_away[name] = benchmarks
    return given_away


def oracle_models(config: "Configuration") -> dict[str, list[str]]:
    """The models that have learned from answers of benchmarks, themselves or before, with these benchmarks."""

    def before(name: str) -> list[str]:
        """The models that a model goes on from, or that mined the negatives of its sets."""
        model = config.models[name]
        mined = (config.triplets[learned].mined_by_model for learned in model.learns_from)
        return [each for each in (model.from_, *mined) if each]

    sets, found = oracles(config), {}
    for name in config.models if sets else ():
        learned = [each for model in (*all_parts(name, before), name) for each in config.models[model].learns_from]
        if benchmarks := list(dict.fromkeys(benchmark for each in learned for benchmark in sets.get(each, []))):
            found[name] = benchmarks
    return found


def sets_by_aspect(config: "Configuration") -> list[str]:
    """The sets whose examples are sampled by aspect, and so know it."""
    return [name for name, entry in config.triplets.items() if entry.sampler == "aspects"]


def graphs_of_aspects(config: "Configuration") -> list[str]:
    """The graphs that those are sampled from, each once."""
    sampled = (config.triplets[name] for name in sets_by_aspect(config))
    return list(dict.fromkeys(graph for entry in sampled for graph in entries.names_in(entry, "graphs")))
