"""Samplers whose positives share an edge with the query in a graph: `cocited`, `linked` and, for all pairs, `links`.

A weighted pick of `linked` is the one with the smallest −ln(u) / w, where u is a number from 0 to 1 that follows from
the seed, the query and the paper, and w the weight (Efraimidis and Spirakis, 2006, "Weighted random sampling with a
reservoir"): a sample without repetition whose first draw is in proportion to the weights.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Natural, Refers, Whole, inconsistent
from cocite.config.sampler import Pairing, Sampler

if TYPE_CHECKING:
    from cocite.triplets.picking import Draws, Picks
    from cocite.triplets.sampled import Block, Sampled

PLACE_BITS = 32  # bits of the place of a paper among all papers
KEY_BITS = 32  # bits of a key for the weight; as many break ties between equal weights


class CocitedPapers(Pairing):
    """Discrete co-citations: the positive is co-cited with the query so many times, negatives are random papers.

    The counterpart of sampling from an embedding of the same pairs (CoCite, 2024): only what was counted is near, and
    of two papers that were never cited together nothing is known. Easy negatives are not co-cited with the query at
    all, as far as the graph counts; hard ones are the least co-cited.
    """

    sampler: Literal["cocited"]
    graph: Annotated[str, Refers("graphs")]
    """Name of a co-citation graph. With one of sentences, query and positive are cited in one sentence: doc2doc, as
    Parisot and Zavrel (2022) published it."""
    min_count: Count = 1
    """Papers, or sentences, that must cite query and positive together; not below the graph's own min_count."""
    hard: Natural = 0
    """Triplets per query whose negative is one of the papers least co-cited with it, and less often than min_count.
    Easy negatives replace missing ones if a query has at least one."""

    @model_validator(mode="after")
    def _has_room_for_hard_ones(self) -> "CocitedPapers":
        if self.hard > self.per_query:
            raise inconsistent(f".hard ({self.hard}) must not exceed per_query ({self.per_query}).")
        if self.hard and self.min_count < 2:
            less = "hard negatives are co-cited less often than positives, and at least once"
            raise inconsistent(f".hard needs min_count of at least 2: {less}.")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Another graph, or one that lacks what the sampler needs."""
        graph = config.graphs[self.graph]
        if graph.signal not in ("cocitation", "sentence-cocitation"):
            yield f"{key}.graph: {self.graph!r} is not a co-citation graph."
        elif self.min_count < graph.min_count:
            of_graph = f"graphs.{self.graph}.min_count ({graph.min_count})"
            yield f"{key}.min_count ({self.min_count}) must not be below {of_graph}, the least count in the graph."

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `cocitations` of a graph."""
        import numpy as np

        from cocite.core.id_sets import set_of
        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw, offer_cocited, picks

        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        hard = picks(len(block.queries), self.hard, block.seed, "hard negatives")
        easy = draw(block, self.per_query, "easy negatives")
        queries = set_of(block.queries)
        is_known = np.zeros(len(block.queries), dtype=bool)
        for batch in block.read("cocitations", ["paper", "other", "count"]):
            pairs = tuple(column.to_numpy() for column in batch.columns)
            offered = positives, hard, easy
            offer_cocited(pairs, queries, block.papers, self.min_count, self.requires_text, offered, is_known)
        reasons, few = [("no co-citations", ~is_known)], "no paper co-cited often enough"
        return pair(block, self, positives, easy, hard, reasons, fill=True, no_positive=few)


class LinkedInGraph(Pairing):
    """Positives share an edge with the query in a graph, drawn evenly or by the weights of the edges; negatives are
    random papers that share none.

    What an edge is, and its weight, is the graph's matter: a co-citation and its strength, bibliographic coupling, a
    citation in either direction, or a combination of these.
    """

    sampler: Literal["linked"]
    graph: Annotated[str, Refers("graphs")]
    """Name of the graph."""
    pick: Literal["evenly", "weighted", "strongest"] = "evenly"
    """evenly draws from all papers that share an edge with the query; weighted draws them in proportion to the weight,
    without repetition (Efraimidis and Spirakis, 2006); strongest takes those of the heaviest edges."""

    def sources(self, name: str, plan: Any) -> list[str]:
        """The edges of the graph: pairs below its `min_count`, or of a strength of 0 or less, are none."""
        return list(plan.graph.edges(self.graph))

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `edges` of a graph."""
        from cocite.triplets.pairing import pair

        positives, easy, is_known = self.picks(block)
        none, reasons = "no edge to a paper with a text", [("no edges", ~is_known)]
        return pair(block, self, positives, easy, reasons=reasons, no_positive=none)

    def picks(self, block: "Block") -> tuple["Picks", "Draws", Any]:
        """What queries pick among the papers that share an edge with them, random others, and which have an edge."""
        import numpy as np

        from cocite.core.id_sets import places_of, set_of
        from cocite.triplets.picking import draw, offer_ends, picks

        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        easy = draw(block, self.per_query, "easy negatives")
        queries, is_known = set_of(block.queries), np.zeros(len(block.queries), dtype=bool)
        for edge in _edges(block):
            places = places_of(queries, edge[0])
            is_ours = (places >= 0) & (edge[0] != edge[1])
            places, query, paper, weight = (column[is_ours] for column in (places, *edge))
            is_known[places] = True
            keys = self._keys(block.seed, query, paper, weight)
            offer_ends((places, paper, keys), block.papers, self.requires_text, positives, easy)
        return positives, easy, is_known

    def _keys(self, seed: int, query: Any, paper: Any, weight: Any) -> Any:
        """Of each edge, a number that is smaller the sooner it is picked. Bits of positive floats rise as they do."""
        import numpy as np

        from cocite.core.randomness import fractions, priorities

        hashed = priorities(seed, "linked positives", query, paper)
        if self.pick == "evenly":
            return hashed
        with np.errstate(divide="ignore"):
            if self.pick == "strongest":
                farness = (1 / weight).astype(np.float32).view(np.uint32).astype(np.uint64)
                return (farness << np.uint64(KEY_BITS)) | (hashed >> np.uint64(KEY_BITS))
            return (-np.log1p(-fractions(hashed)) / weight).view(np.uint64)


class AllLinks(Sampler):
    """Every link of a graph as a pair without negatives, in both directions, for losses that compare a whole batch.

    All papers with a text are queries, not only those of `queries.count`. The links of validation queries are used only
    for validation.
    """

    gives = "sampled_examples"
    asks_all_papers: ClassVar[bool] = True
    has_negatives: ClassVar[bool] = False
    memory_of_source: ClassVar[int] = 50  # 120 to 150 bytes for a link of 2.3 to 3
    sampler: Literal["links"]
    graph: Annotated[str, Refers("graphs")]
    """Name of the graph; of co-citations, all pairs, whatever its min_count."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the links that is drawn, for graphs with more links than a training can use; all if not given."""

    def sample(self, block: "Block") -> "Sampled":
        """All pairs of the queries of a block, from the table `cocitations`, `couplings` or `edges` of a graph."""
        import numpy as np

        from cocite.core.id_sets import members_at, places_of, set_of
        from cocite.core.randomness import fractions, priorities
        from cocite.core.written_ids import distinct, look_up
        from cocite.triplets.pairing import examples_table, gathered
        from cocite.triplets.sampled import UNSERVED, Sampled

        queries, found, without_text = set_of(block.queries), [np.empty(0, dtype=np.int64)], 0
        for one, other, _ in _edges(block):
            is_drawn = one != other
            if self.share is not None:
                pairs = np.minimum(one, other), np.maximum(one, other)
                is_drawn &= fractions(priorities(block.seed, "links", *pairs)) < self.share
            one, other = one[is_drawn], other[is_drawn]
            places, papers = places_of(queries, one).astype(np.int64), places_of(block.papers, other)
            found.append(((places << PLACE_BITS) + papers)[(places >= 0) & (papers >= 0)])
            without_text += int(np.count_nonzero((places >= 0) & (papers < 0)))
        places, papers = np.divmod(distinct(*found), 1 << PLACE_BITS)
        papers = members_at(block.papers, papers)
        validates = look_up(block.validation, block.queries)[1][places]
        is_kept = validates | ~look_up(block.validation, papers)[1]
        places, papers = places[is_kept], papers[is_kept, None]
        lacking = f"{UNSERVED['sampled_examples']}: no link with a paper that has a text"
        omissions = {
            lacking: len(block.queries) - len(distinct(places)),
            "links with a paper that has no text or is kept out": without_text,
            "pairs that end in a validation query, which validates by them": int(np.count_nonzero(~is_kept)),
        }
        rows = examples_table(block, gathered(places, papers, [papers[:, :0]]), ("easy",))
        return Sampled(rows=rows, omissions=omissions)


def _edges(block: "Block") -> Iterator[tuple[Any, Any, Any]]:
    """One end, the other end and the weight of edges, each in both directions; counts are weights without strengths."""
    import pyarrow.parquet as pq

    from cocite.core.tables.files import table_in
    from cocite.triplets.sampled import ENDS

    table = table_in(block.sources[0])
    has_strength = "strength" in pq.read_schema(block.sources[0]).names
    weight = "weight" if table == "edges" else "strength" if has_strength else "count"
    for batch in block.read(table, [*ENDS[table], weight]):
        one, other, weights = (column.to_numpy() for column in batch.columns)
        weights = weights.astype("float64")
        yield one, other, weights
        yield other, one, weights
