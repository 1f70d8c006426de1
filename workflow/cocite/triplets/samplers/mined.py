"""The sampler `mined`: the examples of a set with mined negatives.

In come a set, and the candidates and scores of positives that the stage neighbours found for its queries. Candidates
that may be positives that nobody has marked are left out. Margins are those of sentence-transformers'
`mine_hard_negatives`: they count from the lowest score of a positive of the query.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, Names, NonNegative, Refers, Whole, inconsistent
from cocite.config.mining import ByModel, SearchedDocuments, sets_behind_model
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

CANDIDATES = ("rank", "document", "score", "likeness")
QUERIES_AT_ONCE = 50_000  # queries whose candidates are in memory together
EXAMPLES_AT_ONCE = 20_000  # examples that draw from their candidates together
DUPLICATE, NEAR, OUT_OF_BOUNDS, LINKED = (
    f"candidates left out: {reason}"
    for reason in (
        "near-duplicates of the query or of a positive",
        "scores within the margin of the positives'",
        "scores above max_score or below min_score",
        "linked with the query",
    )
)
FEW = "mined negatives fewer than asked for"


class MinedNegatives(SearchedDocuments, Sampler):
    """The examples of a named set with mined negatives: documents that rank high for the query and are no positives.

    Documents are ranked by BM25, by an encoder, or by a model that was trained before. Candidates are those within
    `ranks`; the margins and bounds of scores, as sentence-transformers' `mine_hard_negatives` knows them, and
    `duplicates` and `unlinked_in` leave out those that may be positives that nobody has marked.
    """

    sampler: Literal["mined"]
    gives = "sampled_examples"
    numbers_of_kinds = (("mined", "negatives"),)  # existing negatives keep their own kinds
    of: Annotated[str, Refers("triplets")]
    """Name of the set whose examples are given mined negatives."""
    negatives: Count = 5
    """Largest number of mined negatives per example."""
    pick: Literal["best", "random"] = "best"
    """How negatives are picked among the candidates: best takes the best ranks, the same for all examples of a query;
    random samples for each example."""
    margin: NonNegative | None = None
    """How much lower than the lowest score of a positive of the query the score of a negative must be."""
    relative_margin: Annotated[float, Field(ge=0, le=1)] | None = None
    """The same as a share of that positive's score: with 0.05, at most 95% of a score above 0."""
    max_score: float | None = None
    """Highest score of a negative."""
    min_score: float | None = None
    """Lowest score of a negative."""
    duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.95
    """Cosine to the query or to one of its positives above which a document is a near-duplicate and not a negative;
    with bm25, the cosine of weighted word vectors. null keeps them all."""
    unlinked_in: Annotated[Names, Refers("graphs")] = ()
    """Names of graphs: documents linked with the query in one of them are not used as negatives."""
    others: Literal["dropped", "kept"] = "dropped"
    """Whether the examples keep their existing negatives, before the mined ones."""
    partial: Literal["kept", "dropped"] = "kept"
    """Whether to keep examples with fewer mined negatives than requested."""

    @property
    def mined_by_model(self) -> str:
        """The model by whose vectors negatives are mined, if a model mines them."""
        return self.by.name if isinstance(self.by, ByModel) else ""

    def sources(self, name: str, plan: Any) -> list[str]:
        """The set, what was mined for it, and the graphs in which negatives are not linked."""
        return [
            *super().sources(name, plan),
            *(f"<results>/neighbours/mined_{name}/{table}.parquet" for table in ("candidates", "positives")),
            *(file for graph in self.unlinked_in for file in plan.graph.pairs_or_edges(graph)),
        ]

    @model_validator(mode="after")
    def _leaves_a_choice(self) -> "MinedNegatives":
        first, last = self.ranks
        if last - first + 1 < self.negatives:
            raise inconsistent(f".ranks ([{first}, {last}]) must span at least {self.negatives} ranks (negatives).")
        if None not in (self.min_score, self.max_score) and self.min_score > self.max_score:  # type: ignore[operator]
            raise inconsistent(f".min_score ({self.min_score}) must not exceed max_score ({self.max_score}).")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A circle: a set that is a part of itself, or the model that mines depends on the set that it mines."""
        yield from super().check_references(key, config)
        if not isinstance(self.by, ByModel):
            return
        seeds = config.models[self.by.name].seeds
        if self.by.training_seed is not None and self.by.training_seed not in seeds:
            has = f"models.{self.by.name}.seeds has {', '.join(map(str, seeds))}"
            yield f"{key}.by.training_seed is {self.by.training_seed}, but {has}."
        name, model = key.removeprefix("triplets."), self.by.name
        if name in sets_behind_model(model, config, with_groups=False):
            why = f"the model {model} depends on this set (it learns from it, or from one that is mined from it)"
            yield f"{key}.by: {why}, so it cannot mine it; name a model that is trained before."
        elif name in sets_behind_model(model, config, with_groups=True):
            why = f"has a set that the model {model} learns from, and a model depends on all sets of a group"
            yield f"{key}.group ({self.group}) {why}; give the mined set a separate group."

    def sample(self, block: "Block") -> "Sampled":
        """Take the examples from their set and the candidates from `mined_candidates`; both know their queries."""
        import numpy as np
        import pyarrow as pa

        from cocite.core.tables.files import read_table, table_in
        from cocite.triplets.sampled import UNSERVED, WORDS, Sampled

        [path] = [source for source in block.sources if table_in(source) in WORDS]
        of_rows = read_table(path, table_in(path), ["query"])["query"].to_numpy()
        counts: Counter[str] = Counter({DUPLICATE: 0, NEAR: 0, OUT_OF_BOUNDS: 0, LINKED: 0, FEW: 0})
        pieces = []
        for first in range(0, len(block.queries), QUERIES_AT_ONCE):
            queries = block.queries[first : first + QUERIES_AT_ONCE]
            rows = self._examples(path, np.isin(of_rows, queries))
            candidates = self._left(block, queries, counts)
            starts = np.searchsorted(candidates["place"].to_numpy(), np.arange(len(queries) + 1))
            for at in range(0, max(1, len(rows)), EXAMPLES_AT_ONCE):
                some = rows.slice(at, EXAMPLES_AT_ONCE)
                examples, picked = self._picked(some, queries, starts, candidates, block.seed)
                counts[FEW] += len(some) * self.negatives - len(picked)
                pieces.append(self._joined(some, examples, candidates.take(pa.array(picked))))
        rows = pa.concat_tables(pieces)
        is_known, is_served = np.isin(block.queries, of_rows), np.isin(block.queries, rows["query"].to_numpy())
        for reason, holds in (("not in the set", ~is_known), ("too few candidates are left", is_known & ~is_served)):
            counts[f"{UNSERVED['sampled_examples']}: {reason}"] = int(np.count_nonzero(holds))
        return Sampled(rows=rows, omissions=dict(counts))

    def _examples(self, path: Any, is_chosen: "NDArray[np.bool_]") -> "pa.Table":
        """The chosen rows of a set as examples, numbered; without negatives, those of the same positives are one."""
        import pyarrow as pa

        from cocite.triplets.sampled import as_examples, each_once, read_chosen

        rows = read_chosen(path, is_chosen)
        if "positive" in rows.column_names:
            rows = as_examples(rows).append_column("number", pa.nulls(len(rows), pa.int32()))
        if self.others == "kept":
            return rows if rows["number"].null_count == 0 and len(rows) else each_once(rows)
        nothing = pa.array([[]] * len(rows), pa.list_(pa.int64()))
        rows = rows.set_column(rows.column_names.index("negatives"), "negatives", nothing)
        return each_once(rows.select([name for name in rows.column_names if not name.startswith("negative_")]))

    def _left(self, block: "Block", queries: "Ids", counts: Counter[str]) -> "pa.Table":
        """The candidates of some queries that may be negatives, by query and rank; counts the others by first reason.

        The column `place` is that of the query.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from cocite.core.tables.files import table_in
        from cocite.triplets.sampled import ENDS, among

        first, last = self.ranks
        in_ranks = (pc.field("rank") >= first) & (pc.field("rank") <= last)
        candidates = _rows_of(block, "mined_candidates", queries, CANDIDATES).filter(in_ranks)
        positives = _rows_of(block, "mined_positives", queries, ("score",))
        of_queries = np.full(len(queries), np.inf)  # the lowest score of a positive
        np.minimum.at(of_queries, positives["place"].to_numpy(), positives["score"].to_numpy())
        lowest = of_queries[candidates["place"].to_numpy()]
        scores = candidates["score"].to_numpy().astype(np.float64)
        is_near, is_out = np.zeros((2, len(scores)), dtype=bool)
        if self.margin is not None:
            is_near |= scores > lowest - self.margin
        if self.relative_margin is not None:
            is_near |= scores > lowest - np.abs(lowest) * self.relative_margin
        if self.max_score is not None:
            is_out |= scores > self.max_score
        if self.min_score is not None:
            is_out |= scores < self.min_score
        is_duplicate = candidates["likeness"].to_numpy() >= (np.inf if self.duplicates is None else self.duplicates)
        left = np.ones(len(scores), dtype=bool)
        for reason, is_reason in ((DUPLICATE, is_duplicate), (NEAR, is_near), (OUT_OF_BOUNDS, is_out)):
            counts[reason] += int(np.count_nonzero(is_reason & left))
            left &= ~is_reason
        candidates = candidates.filter(pa.array(left))
        ids, is_linked = queries[candidates["place"].to_numpy()], np.zeros(len(candidates), dtype=bool)
        for table in {table_in(source) for source in block.sources} & ENDS.keys():
            ends = ([batch[name].to_numpy() for name in ENDS[table]] for batch in block.read(table, ENDS[table]))
            both_ways = (pair for one, other in ends for pair in ((one, other), (other, one)))
            is_linked |= among(ids, candidates["document"].to_numpy(), both_ways)
        counts[LINKED] += int(np.count_nonzero(is_linked))
        return candidates.filter(pa.array(~is_linked))

    def _picked(
        self, rows: "pa.Table", queries: "Ids", starts: "Ids", candidates: "pa.Table", seed: int
    ) -> tuple["Ids", "Ids"]:
        """What examples pick among the candidates of their queries: the example and the candidate of each, by rank."""
        import numpy as np
        import pyarrow.compute as pc

        from cocite.core.randomness import priorities
        from cocite.triplets.sampled import among, first_of_groups, numbered

        places = np.searchsorted(queries, rows["query"].to_numpy())
        examples, nth = numbered(starts[places + 1] - starts[places])
        offered, documents = starts[places][examples] + nth, candidates["document"].to_numpy()
        if self.others == "kept":
            lists = rows["negatives"].combine_chunks()
            own = pc.list_parent_indices(lists).to_numpy(), lists.flatten().to_numpy()
            is_new = ~among(examples, documents[offered], iter([own]))
            examples, offered = examples[is_new], offered[is_new]
        keys: Any = np.arange(len(examples))
        if self.pick == "random":
            numbers = rows["number"].to_numpy().astype(np.int64)
            ids = rows["query"].to_numpy()[examples], numbers[examples], documents[offered]
            keys = priorities(seed, "mined negatives", *ids)
        taken = first_of_groups(examples, keys, self.negatives)
        return examples[taken], offered[taken]

    def _joined(self, rows: "pa.Table", examples: "Ids", picked: "pa.Table") -> "pa.Table":
        """The rows with their own negatives in front of those that they picked; those with too few are left out."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from cocite.triplets.sampled import as_lists

        lists = rows["negatives"].combine_chunks()
        own = pc.list_parent_indices(lists).to_numpy()
        kinds = np.full(len(own), None, dtype=object)
        if "negative_kinds" in rows.column_names:
            given = rows["negative_kinds"].combine_chunks()  # null for an example that came as a triplet
            is_known = np.repeat(given.is_valid().to_numpy(zero_copy_only=False), lists.value_lengths().to_numpy())
            kinds[is_known] = given.flatten().to_numpy(zero_copy_only=False)
        owners = np.concatenate([own, examples])
        order = pa.array(np.argsort(owners, kind="stable"))
        sizes = np.bincount(owners, minlength=len(rows))

        def in_lists(of_own: pa.Array, of_picked: Any, kind: pa.DataType) -> pa.ListArray:
            values = pa.concat_arrays([of_own.cast(kind), pa.array(of_picked, kind)])
            return as_lists(values.take(order), sizes)

        nothing, scores = pa.nulls(len(own)), picked["score"].to_numpy().astype(np.float64)
        columns = {
            **{name: rows[name] for name in rows.column_names if not name.startswith("negative")},
            "negatives": in_lists(lists.flatten(), picked["document"].to_numpy(), pa.int64()),
            "negative_kinds": in_lists(pa.array(kinds, pa.string()), ["mined"] * len(examples), pa.string()),
            "negative_ranks": in_lists(nothing, picked["rank"].to_numpy(), pa.int32()),
            "negative_scores": in_lists(nothing, scores, pa.float64()),
        }
        mined = np.bincount(examples, minlength=len(rows))
        is_whole = mined >= self.negatives if self.partial == "dropped" else sizes > 0
        return pa.table(columns).filter(pa.array(is_whole))


def _rows_of(block: "Block", table: str, queries: "Ids", columns: Sequence[str]) -> "pa.Table":
    """The rows of some queries in a table, and the place of the query of each."""
    import pyarrow as pa

    from cocite.core.tables import TABLES, empty_schema
    from cocite.core.written_ids import look_up

    schema = empty_schema(TABLES[table])
    schema = pa.schema([schema.field("query").with_name("place"), *(schema.field(name) for name in columns)])
    read = [schema.empty_table()]
    for batch in block.read(table, ("query", *columns)):
        places, is_ours = look_up(queries, batch["query"].to_numpy())
        rows = pa.table([pa.array(places, pa.int64()), *(batch[name] for name in columns)], schema=schema)
        read.append(rows.filter(pa.array(is_ours)))
    return pa.concat_tables(read)
