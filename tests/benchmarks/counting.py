"""Counting co-citations beside DuckDB, a dictionary, a sparse product, and large ids; and four times the size.

DuckDB is asked at two sizes of its own.

References per paper are log-normal, with the mean and spread of hci (22, σ of the logarithm .84). What is cited follows
preferential attachment in its mean field: the i-th paper of a field has a weight of i^−½ (Barabási and Albert, 1999).
Fields have 1,000 papers; nine of ten references of a paper stay in its own, so that its papers are
cited together again and again. Four times the citations go to the same papers.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import Command, Cost, cocite, compare, python, run, run_together, say, spread_of

from cocite.core.tables.files import write_table

CITATIONS = 25_500_000
QUERIES = 20_000
JOINED = ((3_000_000, 3_000), (12_000_000, 20_000))
"""Citations and queries of the runs beside DuckDB's join, which spills to disk beyond."""
BUCKETS = 2
KEPT = True
MEMORY_MB = 1000
"""Limit of one of two jobs that run side by side."""
PAIRS = """
    WITH marked AS (
        SELECT citing, cited, cited IN (SELECT corpusid FROM read_parquet($queries)) AS is_query
        FROM read_parquet($citations)
    )
    SELECT least(query.cited, partner.cited) AS paper, greatest(query.cited, partner.cited) AS other,
        count(*)::INTEGER AS count
    FROM marked AS query JOIN marked AS partner ON query.citing = partner.citing
    WHERE query.is_query AND query.cited != partner.cited AND (query.cited < partner.cited OR NOT partner.is_query)
    GROUP BY ALL ORDER BY paper, other
"""
DIGEST = "SELECT count(*), sum(hash(paper, other, count)) FROM read_parquet($pairs)"
CITED_PAPERS = 500_000
PAPERS_OF_A_FIELD = 1_000
MEAN_REFERENCES, SPREAD = 22.0, 0.84
MOST_REFERENCES = 1000
OWN_FIELD = 0.9
SCALE = 251
"""Ids are this far apart on average, as those of a release are when few papers of it are at hand."""
FAR_APART = 2**36 + 1
"""What ids are multiplied by to lie all over 63 bits; it is odd, so that buckets of two stay as they are."""
_FIELDS = CITED_PAPERS // PAPERS_OF_A_FIELD
PAPERS_AT_ONCE = 20_000


def main(folder: Path, citations: int = CITATIONS, queries: int = QUERIES) -> None:
    for sizes in JOINED:
        _compare_join(folder, *sizes)
    once = _corpus(folder / "citations" / f"once-{citations}", citations)
    count = _count(folder, once, queries)
    files = (once[0].parent, _queries(folder, queries, 1))
    product = python(sparse_product, *files, folder / "rival.parquet")
    title = "Counting to a sparse product that holds everything"
    compare(title, lambda: run_together(count), product, "wall", rounds=3)
    title = "One Python dictionary to counting"
    compare(title, python(dictionary, *files), lambda: run_together(count), "wall", rounds=1)
    cost = _tell(folder, count, citations, queries)
    _compare_ids(folder, count, citations, queries)

    fourfold = _corpus(folder / "citations" / f"fourfold-{citations}", 4 * citations)
    larger = _tell(folder, _count(folder, fourfold, queries), 4 * citations, queries)
    say(f"Counting four times the citations within the same limit: {larger.wall / cost.wall:.2f} × the time.")
    _tell(folder, _count(folder, fourfold, 3 * queries), 4 * citations, 3 * queries)


def _compare_join(folder: Path, citations: int, queries: int) -> None:
    """Beside DuckDB's join of the citations with themselves, with the same memory and threads, and the same output."""
    corpus = _corpus(folder / "citations" / f"once-{citations}", citations)
    count = _count(folder, corpus, queries)
    joined = folder / "joined.parquet"
    limits = (BUCKETS * MEMORY_MB, BUCKETS)
    join = python(join_citations, corpus[0].parent, _queries(folder, queries, 1), joined, *limits)
    rounds = [(run_together(count), run(join)) for _ in range(3)]
    run(python(check, _counted(folder)[0].parent, joined))
    say(f"Of {citations:,} citations and {queries:,} queries:")
    for title, costs in zip(("Counting", "DuckDB's self-join"), zip(*rounds, strict=True), strict=True):
        wall, cpu, peak = (statistics.median(getattr(cost, of) for cost in costs) for of in ("wall", "cpu", "peak_mb"))
        peak *= BUCKETS if title == "Counting" else 1
        say(f"{title}, with the same pairs and counts: {wall:.2f} s, {cpu:.2f} s of CPU, peak memory {peak:.0f} MB.")
    ratios = [joining.wall / counting.wall for counting, joining in rounds]
    say(f"DuckDB's self-join to counting: {statistics.median(ratios):.2f} × the time ({spread_of(ratios)})")


def _compare_ids(folder: Path, count: list[list[Command]], citations: int, queries: int) -> None:
    """The same citations with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's."""
    corpus = _corpus(folder / "citations" / f"spread-{citations}", citations, FAR_APART)
    spread = _count(folder, corpus, queries, FAR_APART)
    title = "Counting with ids all over 63 bits to counting with small ones"
    for of in ("wall", "cpu"):
        compare(title, lambda: run_together(spread), lambda: run_together(count), of, rounds=3)
    _tell(folder, spread, citations, queries)


def _corpus(folder: Path, citations: int, factor: int = 1) -> list[Path]:
    """The buckets of citations, made where they are not there yet."""
    paths = [folder / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    if not all(path.exists() for path in paths):
        write_citations(folder, citations=citations, buckets=BUCKETS, factor=factor)
    return paths


def _count(folder: Path, citations: list[Path], queries: int, factor: int = 1) -> list[list[Command]]:
    """Two jobs to run side by side, one a bucket."""
    asked = _queries(folder, queries, factor)
    write_queries(asked, queries=queries, factor=factor)
    settings = {"signal": "cocitation", "pairs": "query"}
    options = {"queries": asked, "settings": settings, "buckets": BUCKETS, "memory_mb": MEMORY_MB}
    written = [{"output": path, "omissions": path.with_suffix(".omissions")} for path in _counted(folder)]
    return [
        [cocite("graph", "count", *citations, **options, bucket=bucket, **outputs)]
        for bucket, outputs in enumerate(written)
    ]


def _queries(folder: Path, queries: int, factor: int) -> Path:
    return folder / f"queries-{queries}-{factor}.parquet"


def _counted(folder: Path) -> list[Path]:
    return [folder / "cocitations" / f"{bucket}.parquet" for bucket in range(BUCKETS)]


def _tell(folder: Path, count: list[list[Command]], citations: int, queries: int) -> Cost:
    """Count, and say what it took; the memory of the jobs that run side by side is summed."""
    cost = run_together(count)
    counted = [str(path) for path in _counted(folder)]
    (joined, pairs), *_ = duckdb.execute("SELECT sum(count), count(*) FROM read_parquet(?)", [counted]).fetchall()
    say(
        f"Counting {joined:,} joined pairs of {citations:,} citations and {queries:,} queries, "
        f"{pairs:,} of them distinct: {cost.wall:.1f} s, peak memory {BUCKETS * cost.peak_mb:.0f} MB."
    )
    return cost


def dictionary(citations: Path, queries_file: Path) -> int:
    """Count in one dictionary, as CoCite (2024) did, and write nothing; return the number of pairs."""
    queries = set(pq.read_table(queries_file)["corpusid"].to_pylist())
    table = pq.read_table(citations, columns=["citing", "cited"])
    references = defaultdict(list)
    for citing, cited in zip(table["citing"].to_pylist(), table["cited"].to_pylist(), strict=True):
        references[citing].append(cited)
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    for cited in references.values():
        asked = queries.intersection(cited)
        for query in asked:
            for other in cited:
                if other != query and (query < other or other not in asked):
                    counts[(query, other) if query < other else (other, query)] += 1
    return len(counts)


def sparse_product(citations: Path, queries: Path, output: Path) -> int:
    """Multiply the matrix of citing and cited papers with itself, write the pairs; return their number.

    It counts the pairs of references with a query at one end or both, as `cocite graph count` does; so does the
    dictionary. Both hold everything in memory.
    """
    from scipy.sparse import csr_array

    table = pq.read_table(citations, columns=["citing", "cited"])
    citing, cited = (table[name].to_numpy() for name in ("citing", "cited"))
    _, rows = np.unique(citing, return_inverse=True)
    papers, columns = np.unique(cited, return_inverse=True)
    matrix = csr_array((np.ones(len(rows), np.int32), (rows, columns)))
    is_query = np.isin(papers, pq.read_table(queries)["corpusid"].to_numpy())
    matrix = matrix[np.flatnonzero(matrix[:, is_query].sum(axis=1))]
    product = (matrix[:, is_query].T.tocsr() @ matrix).tocoo()
    left, right = np.flatnonzero(is_query)[product.row], product.col
    once = np.where(is_query[right], left < right, True)
    paper, other = np.minimum(left, right)[once], np.maximum(left, right)[once]
    found = pa.table({"paper": papers[paper], "other": papers[other], "count": product.data[once]})
    pq.write_table(found, output, compression="zstd", use_dictionary=False)
    return len(found)


def join_citations(citations: Path, queries: Path, output: Path, memory_mb: int, threads: int) -> None:
    """Have DuckDB join the citations in a folder with themselves and count within a memory limit, spilling to disk.

    It counts the pairs with a query at one end or both, each once, and writes them sorted.
    """
    limits = {"memory_limit": f"{memory_mb}MB", "threads": threads, "preserve_insertion_order": False}
    connection = duckdb.connect(config={**limits, "temp_directory": str(output.with_suffix(".spill"))})
    files = {"citations": f"{citations}/*.parquet", "queries": str(queries)}
    connection.execute(f"COPY ({PAIRS}) TO '{output}' (FORMAT parquet, COMPRESSION zstd)", files)


def check(ours: Path, theirs: Path) -> None:
    """Exit with an error unless a folder and a file hold the same pairs and counts."""
    one, other = (duckdb.execute(DIGEST, {"pairs": str(pairs)}).fetchall() for pairs in (ours / "*.parquet", theirs))
    if one != other:
        sys.exit(f"{ours} and {theirs} hold other pairs: {one} and {other}")


def write_citations(folder: Path, *, citations: int, buckets: int, factor: int = 1) -> list[Path]:
    """Write at least so many citations into buckets by the citing paper, their ids times the factor; deterministic."""
    papers = int(citations / MEAN_REFERENCES * 1.03)
    paths = [folder / f"{bucket}.parquet" for bucket in range(buckets)]
    for bucket, path in enumerate(paths):
        rng = np.random.default_rng([citations, bucket])
        write_table(path, "citations", _batches(rng, papers // buckets, bucket, buckets, factor))
    return paths


def write_queries(path: Path, *, queries: int, factor: int = 1) -> None:
    """Make the most cited papers the queries, the same number in each field."""
    ids = np.arange(queries) * SCALE * factor
    write_table(path, "queries", pa.table({"corpusid": ids, "split": ["train"] * queries}))


def _batches(rng: np.random.Generator, papers: int, bucket: int, buckets: int, factor: int) -> Iterator[pa.RecordBatch]:
    first_id = CITED_PAPERS * SCALE // buckets + 1
    for first in range(0, papers, PAPERS_AT_ONCE):
        count = min(PAPERS_AT_ONCE, papers - first)
        drawn = rng.lognormal(np.log(MEAN_REFERENCES) - SPREAD**2 / 2, SPREAD, count)
        references = np.clip(drawn.round(), 1, MOST_REFERENCES).astype(np.int64)
        paper = np.repeat(np.arange(first, first + count), references)
        field = np.repeat(rng.integers(0, _FIELDS, count), references)
        elsewhere = rng.random(len(field)) >= OWN_FIELD
        field[elsewhere] = rng.integers(0, _FIELDS, int(elsewhere.sum()))
        pairs = np.unique(paper << 32 | _cited(rng, field))
        citing = (first_id + (pairs >> 32)) * buckets + bucket
        yield pa.record_batch(
            {
                "citing": citing * factor,
                "cited": (pairs & 0xFFFFFFFF) * factor,
                "influential": np.zeros(len(pairs), dtype=bool),
                "intents": pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(len(pairs), dtype=np.int8))),
            }
        )


def _cited(rng: np.random.Generator, field: np.ndarray) -> np.ndarray:
    """The id of a paper of each field, drawn by preferential attachment."""
    number = (PAPERS_OF_A_FIELD * rng.random(len(field)) ** 2).astype(np.int64)
    return (number * _FIELDS + field) * SCALE
