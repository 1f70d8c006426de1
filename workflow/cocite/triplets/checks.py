"""Checks of a set of triplets or examples, and the quality of bands of ranks: how many neighbours there are related.

A positive b of the query a collides if a is a negative of the query b (with aspects: of the same aspect). Ostendorff et
al., 2022 ("SciNCL", figure 4) find that collisions increase as the ranks of hard negatives approach those of the
positives. Mined negatives may be unlabelled positives: those that are related to the query, or score higher than one of
its positives. Positives should come from bands of ranks with many related papers, hard negatives from bands with few.
Relations of a sample of the queries are read from the citations, because a graph may have only some of them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.entries import Count, Entry
from cocite.config.settings import GivenAsJson
from cocite.core.database import READ_BY_TRAINING, connect, view_citations_of_works
from cocite.core.id_sets import IdSet, are_in, id_set, places_of, set_of
from cocite.core.options import MemoryMb, Output, Papers, Queries, Seed, Threads
from cocite.core.progress import report
from cocite.core.randomness import smallest
from cocite.core.tables import papers as paper_tables
from cocite.core.tables.files import checked_files, open_table, read_table, table_in, verified_files, write_table
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.triplets.sampled import ROLES, among, read_papers
from cocite.triplets.texts import user_supplied_queries

COLLISION, NO_TEXT, IN_BENCHMARK, SERVED = "collision", "no text", "in benchmark", "served"
NOT_MATCHED, FALSE_NEGATIVE = "not matched", "false negative"
RELATIONS = {"co-cited": "cocited", "citing or cited": "cited"}  # and their columns in `sampled_relations`
COLUMNS = ("check", "part", "found", "among")
POINTS = 40  # ranks at which the curve of collisions is measured, evenly spaced in their logarithm
ROWS_AT_ONCE = 1 << 20

Pairs = tuple[Ids, Ids]  # queries, and as many other papers
Rows = Iterator[tuple[str, str, int, int]]  # rows of the table `triplet_checks`: check, part, found, among
Places = Callable[[Ids], NDArray[Any]]  # gives papers their places among those of a set

QUERIES_SAMPLED = 500  # queries whose relations are looked up
_RELATED = """
WITH citing AS (SELECT citing, cited AS query FROM known WHERE cited IN (FROM sampled)),
cocited AS (
    SELECT query, cited AS paper, count(*) AS cocited
    FROM citing JOIN known USING (citing) WHERE cited <> query GROUP BY ALL
),
either_way AS (
    SELECT query, citing AS paper FROM citing UNION SELECT citing, cited FROM known WHERE citing IN (FROM sampled)
)
SELECT query, paper, coalesce(cocited, 0) AS cocited, either_way.paper IS NOT NULL AS cited
FROM cocited FULL JOIN either_way USING (query, paper) WHERE paper <> query ORDER BY query, paper
"""
WIDTH = 5  # ranks of a band
LADDER = (5, 10, 25, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000)  # the last ranks of bands, for every set
_MEASURED = """
WITH bands AS (SELECT DISTINCT unnest($ranks)::INTEGER AS last_rank)
SELECT last_rank, greatest(last_rank - $width, 0) + 1 AS first_rank, count(DISTINCT found.query) AS queries,
    count(*) AS papers, count(*) FILTER (cocited > 0) AS cocited, count(*) FILTER (cited) AS cited
FROM read_parquet($neighbours, hive_partitioning = false) AS found
    JOIN bands ON rank <= last_rank AND rank > last_rank - $width
    LEFT JOIN twins ON neighbour = corpusid
    LEFT JOIN read_parquet($relations, hive_partitioning = false) AS related
        ON related.query = found.query AND paper = coalesce(work, neighbour)
WHERE found.query IN (FROM sampled) GROUP BY last_rank ORDER BY last_rank
"""


def check_triplets(
    benchmarks: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Tables documents of benchmarks, and document_papers of those whose ids are of another origin."
        ),
    ] = (),
    *,
    triplets: Annotated[Path, typer.Option(help="Table triplets.")],
    neighbours: Annotated[
        Path | None, typer.Option(help="Folder of the neighbours it was sampled from, if any.")
    ] = None,
    relations: Annotated[Path | None, typer.Option(help="Table sampled_relations, if negatives were mined.")] = None,
    mined: Annotated[Path | None, typer.Option(help="Table mined_positives, if negatives were mined.")] = None,
    queries: Queries,
    papers: Papers,
    checks: Annotated[Path, typer.Option(help="Table triplet_checks to write.")],
    per_query: Annotated[Path, typer.Option(help="Table triplets_per_query to write.")],
    collisions: Annotated[Path, typer.Option(help="Table collisions to write.")],
) -> None:
    """Count the contents of a set of triplets: triplets per query, collisions, papers without text or of benchmarks."""
    table = read_table(triplets, table_in(triplets))
    asked = _asked(table, paper_tables.read_queries(queries), triplets)
    write_table(per_query, "triplets_per_query", count_per_query(table, asked))
    found = [*_by_aspect(table, len(asked)), *_on_papers(table, read_papers(papers, queries), benchmarks)]
    found += check_mined(table, relations, mined) if relations and mined else ()
    write_table(checks, "triplet_checks", pa.table([*zip(*sorted(found), strict=True)], [*COLUMNS]))
    curve = collision_curve(table, checked_files(neighbours, "neighbours")) if neighbours else []
    write_table(collisions, "collisions", curve)


def _asked(table: pa.Table, queries: pa.Table, triplets: Path) -> pa.Table:
    """The queries that a set was sampled for: its own texts, those of the corpus, and other papers that it has."""
    brought = user_supplied_queries([triplets])
    is_of_corpus = len(brought) == 0 or (table["query"].to_numpy() >= 0).any()
    if not is_of_corpus:
        return brought
    places = np.unique(table["query"].to_numpy(), return_index=True)[1]
    of_set = table.select(["query", "split"]).take(pa.array(places)).rename_columns(brought.schema.names)
    known = pa.concat_tables([brought, queries.cast(brought.schema)])
    is_further = pc.invert(pc.is_in(of_set["corpusid"], value_set=known["corpusid"].combine_chunks()))
    return pa.concat_tables([known, of_set.filter(is_further).cast(known.schema)])


def count_per_query(triplets: pa.Table, queries: pa.Table) -> pa.Table:
    """How many queries of each split have how many triplets or examples; those that could not be served have 0."""
    served, counts = np.unique(triplets["query"].to_numpy(), return_counts=True)
    asked, split = queries["corpusid"].to_numpy(), queries["split"].to_numpy(zero_copy_only=False)
    place, is_served = look_up(served, asked)
    numbers = np.zeros(len(asked), dtype=np.int64)
    numbers[is_served] = counts[place[is_served]]
    rows = pa.table({"split": split, "count": numbers}).group_by(["split", "count"]).aggregate([([], "count_all")])
    return rows.rename_columns({"count_all": "queries"}).sort_by([("split", "ascending"), ("count", "ascending")])


def _by_aspect(triplets: pa.Table, asked: int) -> Rows:
    """Collisions within each aspect, those of examples without one together, and the queries that an aspect serves."""
    if "aspect" not in triplets.column_names:
        yield (COLLISION, "pairs", *count_collisions(triplets))
        return
    aspects = triplets["aspect"].fill_null("")
    for aspect in pc.unique(aspects).to_pylist():
        rows = triplets.filter(pc.equal(aspects, aspect))
        yield (COLLISION, f"pairs in {aspect}" if aspect else "pairs", *count_collisions(rows))
        if aspect:
            yield SERVED, aspect, len(pc.unique(rows["query"])), asked


def _on_papers(triplets: pa.Table, papers: IdSet, benchmarks: Sequence[Path]) -> Rows:
    """Papers without a text, by role, and those of benchmarks."""
    of_role = {"query": distinct(triplets["query"].to_numpy())}
    of_role |= {role: distinct(papers) for role, (_, papers) in _pairs_of(triplets).items()}
    for role, ids in of_role.items():
        yield NO_TEXT, role, int(np.count_nonzero((ids >= 0) & ~are_in(papers, ids))), len(ids)
    held = distinct(*of_role.values())
    for documents, of_documents in paper_tables.with_papers(benchmarks):
        name, (found, among) = documents.parent.name, _found(documents, of_documents, held)
        if among or of_documents is None:
            yield IN_BENCHMARK, name, found, among
        if of_documents is not None:  # how many of the distinct numbers and hashes are known of no paper
            names, known = paper_tables.names_of_papers(documents), paper_tables.known_papers(of_documents)["document"]
            keys, is_known = paper_tables.keys_in(names), pc.is_in(names, value_set=known)
            every, matched = (len(pc.unique(some.drop_null())) for some in (keys, keys.filter(is_known)))
            yield NOT_MATCHED, name, every - matched, every


def _found(documents: Path, of_documents: Path | None, held: Ids) -> tuple[int, int]:
    """The number of documents of a benchmark in a set, and in all, each counted once by its corpus id. A set with its
    own texts may have a document as a text; then documents without an id count too."""
    if held[0] >= 0:
        ids = distinct(paper_tables.corpus_ids_of(documents, of_documents)[0])
        return len(np.intersect1d(ids, held, assume_unique=True)), len(ids)
    found = among = 0
    papers_of = paper_tables.papers_of_documents(of_documents)
    for names, ids in paper_tables.text_ids_of(documents):
        papers = papers_of(names)
        found += int(np.count_nonzero(np.isin(ids, held) | (np.isin(papers, held) & (papers != paper_tables.NO_PAPER))))
        among += len(ids)
    return found, among


def _pairs_of(triplets: pa.Table) -> dict[str, Pairs]:
    """The pairs of a query with a positive, and with a negative."""
    queries = triplets["query"].to_numpy()
    if "positive" in triplets.column_names:
        return {role: (queries, triplets[role].to_numpy()) for role in ROLES[1:]}
    lists = {role: triplets[f"{role}s"].combine_chunks() for role in ROLES[1:]}
    return {
        role: (queries[pc.list_parent_indices(of_role).to_numpy()], of_role.flatten().to_numpy())
        for role, of_role in lists.items()
    }


def count_collisions(triplets: pa.Table) -> tuple[int, int]:
    """How many unordered pairs are positive and negative at once, and how many are positive."""
    pairs = _pairs_of(triplets)
    papers = distinct(*(ids for of_role in pairs.values() for ids in of_role))
    positive, negative = (_distinct_pairs(of_role, papers.searchsorted) for of_role in pairs.values())
    return len(np.intersect1d(positive, negative, assume_unique=True)), len(positive)


def collision_curve(triplets: pa.Table, neighbours: Sequence[Path]) -> pa.Table:
    """The table `collisions`: how many there would be with hard negatives at other ranks: neighbours of ranks (k⁻ − h,
    k⁻], where h is the most hard negatives that a query of the set has."""
    hard = triplets.filter(pc.equal(triplets["negative_kind"], "hard"))
    of_queries = hard.group_by("query").aggregate([("negative", "count_distinct")])
    width = max(1, pc.max(of_queries["negative_count_distinct"]).as_py() or 0)
    places = partial(places_of, id_set(triplets[role].to_numpy() for role in ROLES))
    # Number of queries by their rank among the neighbours of their own positives; rank 0 means unranked.
    query, ranks = triplets["query"].to_numpy(), np.zeros(1, dtype=np.int64)
    queries, wanted = set_of(query), distinct(_as_numbers(places, triplets["positive"].to_numpy(), query))
    for file in (open_table(path, "neighbours") for path in neighbours):
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["query", "neighbour", "rank"]):
            of, found, rank = (column.to_numpy() for column in batch.columns)
            ranks = np.pad(ranks, (0, max(0, int(rank.max()) + 1 - len(ranks))))
            is_query = are_in(queries, found)
            pair = _as_numbers(places, of[is_query], found[is_query])
            ranks += np.bincount(rank[is_query][look_up(wanted, pair)[1]], minlength=len(ranks))
    # Collisions at ranks up to k are at k + width: a difference over `width` is a band, also of the first ranks.
    up_to = np.concatenate([np.zeros(width, dtype=np.int64), np.cumsum(ranks)])
    nearest = (pc.max(triplets["positive_rank"]).as_py() or 0) + width
    own = pc.max(hard["negative_rank"]).as_py() or nearest
    points = np.union1d(np.geomspace(nearest, max(nearest, len(ranks) - 1), POINTS).round().astype(np.int64), [own])
    points = points[points < len(ranks)]
    return pa.table(
        {
            "k_negative": pa.array(points, pa.int32()),
            "collisions": up_to[points + width] - up_to[points],
            "pairs": np.full(len(points), len(_distinct_pairs(_pairs_of(triplets)["positive"], places))),
        }
    )


def _distinct_pairs(pairs: Pairs, places: Places) -> Ids:
    """The unordered pairs of a query and another paper, each as one number."""
    return np.unique(_as_numbers(places, *np.sort(np.stack(pairs), axis=0)))


def _as_numbers(places: Places, first: Ids, second: Ids) -> Ids:
    """Pairs by the places of their papers; negative if the first has none."""
    return places(first).astype(np.int64) << 32 | places(second)


def check_mined(examples: pa.Table, relations: Path, positives: Path) -> Rows:
    """Check the mined negatives of a set, each once, by the tables `sampled_relations` and `mined_positives`."""
    of_negatives = examples["negative_scores"].combine_chunks().flatten()
    is_mined = of_negatives.is_valid().to_numpy(zero_copy_only=False)
    mined = np.stack(_pairs_of(examples)["negative"])[:, is_mined]
    (queries, negatives), first = np.unique(mined, axis=1, return_index=True)
    scores = of_negatives.filter(pa.array(is_mined)).to_numpy()[first]
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


class BandSettings(Entry):
    """Which bands are measured."""

    ranks: tuple[Count, ...] = ()
    """Last ranks of bands, in addition to those of the ladder."""


def sample_queries(queries: Path, seed: int) -> pa.Table:
    """The sample of the queries, the same for all embeddings: corpusid."""
    ids = paper_tables.read_queries(queries)["corpusid"].to_numpy()
    return pa.table({"corpusid": np.sort(smallest(ids, QUERIES_SAMPLED, seed, "queries that are looked at"))})


def relate_sample(
    citations: Annotated[Sequence[Path], typer.Argument(help="Files of the table citations.")],
    queries: Queries,
    *,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Find out how a sample of the queries is related to other papers: the truth that neighbours are held against."""
    files = verified_files(citations, "citations", ["citing", "cited"])
    sampled = sample_queries(queries, seed)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sampled)
        db.register("kept_out", paper_tables.read_kept_out(queries).select(["corpusid"]))
        db.register("twins", paper_tables.read_twins(queries).as_table())
        db.read_parquet(files).create_view("citations")
        db.execute(READ_BY_TRAINING)
        view_citations_of_works(db, "read_by_training", "known")
        written = write_table(output, "sampled_relations", db.sql(_RELATED).to_arrow_reader())
    report(f"{len(sampled):,} queries are related to {written:,} papers.")


def measure_bands(
    neighbours: Annotated[Sequence[Path], typer.Argument(help="Files of the table neighbours.")],
    settings: GivenAsJson[BandSettings],
    *,
    relations: Annotated[Path, typer.Option(help="Table sampled_relations.")],
    queries: Queries,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Measure how many neighbours are truly related to the query, by their rank."""
    parameters = {
        "neighbours": verified_files(neighbours, "neighbours"),
        "relations": verified_files(relations, "sampled_relations"),
        "ranks": [*LADDER, *settings.ranks],
        "width": WIDTH,
    }
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sample_queries(queries, seed))
        db.register("twins", paper_tables.read_twins(queries).as_table())
        write_table(output, "band_quality", db.sql(_MEASURED, params=parameters).to_arrow_reader())
