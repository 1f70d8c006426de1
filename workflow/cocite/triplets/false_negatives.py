"""How many mined negatives may be positives that nobody has marked: the check of a set whose negatives were mined.

Of a sample of the queries, `sampled_relations` says which papers are co-cited with them, cite them or are cited by them
in the whole corpus, whatever graphs the set was mined with. And a negative that scores higher than a positive of its
query is one that the ranking takes for a better match.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.core.id_sets import Ids
from cocite.core.tables.files import read_table
from cocite.triplets.mining import among

FALSE_NEGATIVE = "false negative"
RELATIONS = {"co-cited": "cocited", "citing or cited": "cited"}
"""What the relations are called, and the columns of `sampled_relations` that hold them."""


def check_mined(examples: pa.Table, relations: Path, positives: Path) -> Iterator[tuple[str, str, int, int]]:
    """The rows of `triplet_checks` on the mined negatives of a set of examples.

    `relations` is the table `sampled_relations`, `positives` the table `mined_positives` of the set.
    """
    queries, negatives, scores = mined_pairs(examples)
    known = read_table(relations, "sampled_relations")
    is_sampled = np.isin(queries, known["query"].to_numpy())
    for part, column in RELATIONS.items():
        related = known.filter(pc.greater(known[column].cast(pa.int64()), 0))
        pairs = related["query"].to_numpy(), related["paper"].to_numpy()
        is_related = among(queries[is_sampled], negatives[is_sampled], iter([pairs]))
        yield FALSE_NEGATIVE, part, int(np.count_nonzero(is_related)), int(np.count_nonzero(is_sampled))
    lowest = read_table(positives, "mined_positives").group_by("query").aggregate([("score", "min")]).sort_by("query")
    places = np.searchsorted(lowest["query"].to_numpy(), queries)
    is_above = scores > lowest["score_min"].to_numpy()[places]
    yield FALSE_NEGATIVE, "above a positive", int(np.count_nonzero(is_above)), len(queries)


def mined_pairs(examples: pa.Table) -> tuple[Ids, Ids, np.ndarray]:
    """The distinct pairs of a query and a mined negative, and the score of each."""
    lists = {name: examples[name].combine_chunks() for name in ("negatives", "negative_scores")}
    queries = examples["query"].to_numpy()[pc.list_parent_indices(lists["negatives"]).to_numpy()]
    scores = lists["negative_scores"].flatten()
    is_mined = scores.is_valid().to_numpy(zero_copy_only=False)
    pairs = np.stack([queries, lists["negatives"].flatten().to_numpy()])[:, is_mined]
    distinct, first = np.unique(pairs, axis=1, return_index=True)
    return distinct[0], distinct[1], scores.filter(pa.array(is_mined)).to_numpy()[first]
