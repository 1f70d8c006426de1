"""The sampler `file`: user-supplied triplets as Parquet, rows of three corpus ids, whatever they are called."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cocite.config.entries import Count, GivenPath, Whole
from cocite.config.sampler import Sampler
from cocite.core.errors import InputError, explain_unreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

COLUMNS = (("query",), ("positive", "pos"), ("negative", "neg"))
ID_NAMES = ("corpus_id", "doc_id")
NO_NUMBER = "triplets with an id that is no number"
NO_QUERY = "triplets of papers that are no queries"
NO_TEXT = "triplets with a paper without text"
TWICE = "triplets that hold a paper twice"


class UserSuppliedTriplets(Sampler):
    """User-supplied triplets as Parquet: corpus ids, or rows in the form of SPECTER2's `cite_prediction_new`.

    In the latter, each row has query, pos and neg (Singh et al., 2023), each with an id and its texts; texts are taken
    from the corpus nevertheless. Triplets of this run's queries are used if they have three papers, each with a text.
    """

    sampler: Literal["file"]
    path: GivenPath | None = None
    """Parquet file with the columns query, positive and negative, of corpus ids, or query, pos and neg with a corpus_id
    each; or a folder of such files. Ids are those of this run's corpus. Left out, SPECTER2's triplets of
    queries.dataset. Environment variables are expanded."""
    per_query: Count | None = None
    """At most so many triplets of a query, at random. Left out, all."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Files that are not there, or published triplets without their commit."""
        if self.path is not None:
            path = Path(self.path)
            if not (any(path.rglob("*.parquet")) if path.is_dir() else path.is_file()):
                yield f"{key}.path: {path} is neither a file nor a folder of Parquet files."
        elif config.queries.from_ != "triplets":
            yield f"{key} has no path, and so uses published triplets, which needs queries.from: triplets."
        elif config.corpus.whose_ids != "s2":
            published = f"{key} has no path, and so uses published triplets, whose ids are Semantic Scholar's"
            yield f"{published}; those of the corpus are others, so supply triplets with ids of the corpus."

    def sources(self, name: str, plan: Any) -> list[str]:
        """The user-supplied files; without a path, the published ones."""
        if self.path is None:
            published: str | list[str] = plan.corpus.triplets
            return published if isinstance(published, list) else [published]
        path = Path(self.path)
        return sorted(map(str, path.rglob("*.parquet"))) if path.is_dir() else [self.path]

    def sample(self, block: "Block") -> "Sampled":
        """Take the triplets of the block's queries from the files, in whatever order they are there.

        Raises `InputError` for a file that is no Parquet, or has no columns of ids.
        """
        import numpy as np
        import pyarrow as pa

        from cocite.core.id_sets import are_in
        from cocite.core.randomness import priorities
        from cocite.triplets.sampled import ROLES, UNSERVED, Sampled, as_triplets, first_of_groups

        counts: Counter[str] = Counter({NO_NUMBER: 0, NO_QUERY: 0, NO_TEXT: 0, TWICE: 0})
        files = (sorted(path.rglob("*.parquet")) if path.is_dir() else [path] for path in block.sources)
        found = [rows for of_path in files for file in of_path for rows in _of_queries(block, file, counts)]
        rows = np.concatenate([np.empty((0, 3), dtype=np.int64), *found])
        places = np.searchsorted(block.queries, rows[:, 0])
        is_known = np.bincount(places, minlength=len(block.queries)) > 0
        holds_three = (rows != np.roll(rows, 1, axis=1)).all(axis=1)
        has_text = are_in(block.papers, rows[:, 1:]).all(axis=1)
        is_usable = holds_three & has_text
        kinds = np.full(np.count_nonzero(is_usable), "given")
        triplets = as_triplets(block, places[is_usable], *rows[is_usable, 1:].T, negative_kind=kinds)
        taken = triplets
        if self.per_query is not None:
            ids = [triplets[role].to_numpy() for role in ROLES]
            keys = priorities(block.seed, "brought triplets", *ids)
            taken = triplets.take(pa.array(first_of_groups(ids[0], keys, self.per_query)))
        is_served = np.isin(block.queries, taken["query"].to_numpy())
        unserved = UNSERVED["triplets"]
        more = {
            TWICE: int(np.count_nonzero(~holds_three)),
            NO_TEXT: int(np.count_nonzero(holds_three & ~has_text)),
            "triplets that come again": len(kinds) - len(triplets),
            "triplets beyond per_query": len(triplets) - len(taken),
            f"{unserved}: none was brought": int(np.count_nonzero(~is_known)),
            f"{unserved}: theirs hold papers without text, or one twice": int(np.count_nonzero(is_known & ~is_served)),
        }
        return Sampled(rows=taken, omissions=dict(counts) | more)


def _of_queries(block: "Block", path: Path, counts: Counter[str]) -> Iterator["Ids"]:
    """The ids of the triplets of the block's queries, triplets × 3."""
    import numpy as np
    import pyarrow as pa

    for ids in read_ids(path):
        is_whole = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in ids])
        rows = np.stack([column.filter(pa.array(is_whole)).to_numpy() for column in ids], axis=1)
        rows = block.twins.works_of(rows)
        is_ours = np.isin(rows[:, 0], block.queries)
        # Blocks read the same files: rows of no block are the first block's rows minus those of all blocks.
        counts[NO_NUMBER] += (len(is_whole) - len(rows)) * block.is_first
        counts[NO_QUERY] += len(rows) * block.is_first - int(np.count_nonzero(is_ours))
        yield rows[is_ours]


def read_ids(path: Path) -> Iterator[list["pa.Array"]]:
    """The three ids of each triplet, some at a time; null if one is neither a whole number from 0 nor its digits."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from cocite.core.rows import PARQUET, read_batches
    from cocite.core.written_ids import corpus_ids

    def ids_of(batch: "pa.RecordBatch", name: str) -> "pa.Array":
        column, _, field = name.partition(".")
        return corpus_ids(batch[name] if name in batch.schema.names else pc.struct_field(batch[column], field))

    with explain_unreadable(path, PARQUET):
        schema = pq.read_metadata(path).schema
        paths = [schema.column(place).path for place in range(len(schema.names))]
        columns = [_column(paths, path, names) for names in COLUMNS]
        for batch in read_batches(path, columns):
            yield [ids_of(batch, name) for name in columns]


def _column(paths: Sequence[str], path: Path, names: tuple[str, ...]) -> str:
    """The path of the column of ids that has one of these names, itself or in its fields."""
    wanted = [*names, *(f"{name}.{field}" for name in names for field in ID_NAMES)]
    found = next((each for each in wanted if each in paths), None)
    if found is None:
        named = f"nor a {names[-1]} with a {' or '.join(ID_NAMES)}"
        raise InputError(f"{path}: has no column {names[0]} of corpus ids, {named}.")
    return found
