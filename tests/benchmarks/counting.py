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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import (
    Command,
    Cost,
    cocite,
    compare,
    in_turn,
    median_ratio,
    python,
    run,
    run_together,
    say,
)

from cocite.core.tables.files import write_table

CITATIONS = 25_500_000
QUERIES = 20_000
JOINED = ((3_000_000, 3_000), (12_000_000, 20_000))
"""Citations and queries of the runs beside DuckDB's join, which spills to disk beyond."""
BUCKETS = 2
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


@dataclass(frozen=True)
class Case:
    """Citations and queries in files that are made where they are not there yet, and the counting of their pairs."""

    folder: Path
    citations: int
    queries: int
    factor: int = 1
    """What ids are multiplied by."""

    def files(self) -> tuple[Path, Path]:
        """The folder of the citations, and the file of queries."""
        corpus = self.folder / f"citations/{self.citations}-{self.factor}"
        if not all((corpus / f"{bucket}.parquet").exists() for bucket in range(BUCKETS)):
            _write_citations(corpus, self.citations, self.factor)
        queries = self.folder / f"queries-{self.queries}-{self.factor}.parquet"
        # The most cited papers, the same number in each field.
        ids = np.arange(self.queries) * SCALE * self.factor
        write_table(queries, "queries", pa.table({"corpusid": ids, "split": ["train"] * self.queries}))
        return corpus, queries

    @property
    def counted(self) -> Path:
        return self.folder / "cocitations"

    @cached_property
    def jobs(self) -> list[list[Command]]:
        """Two jobs to run side by side, one a bucket."""
        corpus, queries = self.files()
        settings = {"signal": "cocitation", "pairs": "query"}
        options = {"queries": queries, "settings": settings, "buckets": BUCKETS, "memory_mb": MEMORY_MB}
        written = [self.counted / f"{bucket}.parquet" for bucket in range(BUCKETS)]
        outputs = [{"output": path, "omissions": path.with_suffix(".omissions")} for path in written]
        citations = [corpus / path.name for path in written]
        return [[cocite("graph", "count", *citations, **options, bucket=n, **of)] for n, of in enumerate(outputs)]

    def count(self) -> Cost:
        return run_together(self.jobs)

    def tell(self) -> Cost:
        """Count, and say what it took; the memory of the jobs that run side by side is summed."""
        cost = self.count()
        found = f"SELECT sum(count), count(*) FROM '{self.counted}/*.parquet'"
        (joined, pairs), *_ = duckdb.execute(found).fetchall()
        say(
            f"Counting {joined:,} joined pairs of {self.citations:,} citations and {self.queries:,} queries, "
            f"{pairs:,} of them distinct: {cost.wall:.1f} s, peak memory {BUCKETS * cost.peak_mb:.0f} MB."
        )
        return cost


def main(kept: Path, citations: int = CITATIONS, queries: int = QUERIES) -> None:
    for sizes in JOINED:
        _compare_join(Case(kept, *sizes))
    once = Case(kept, citations, queries)
    files = once.files()
    product = python(sparse_product, *files, kept / "rival.parquet")
    compare("Counting to a sparse product that holds everything", once.count, product, "wall", rounds=3)
    compare("One Python dictionary to counting", python(dictionary, *files), once.count, "wall", rounds=1)
    cost = once.tell()

    # The same citations with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's.
    spread = Case(kept, citations, queries, FAR_APART)
    title = "Counting with ids all over 63 bits to counting with small ones"
    for of in ("wall", "cpu"):
        compare(title, spread.count, once.count, of, rounds=3)
    spread.tell()

    larger = Case(kept, 4 * citations, queries).tell()
    say(f"Counting four times the citations within the same limit: {larger.wall / cost.wall:.2f} × the time.")
    Case(kept, 4 * citations, 3 * queries).tell()


def _compare_join(case: Case) -> None:
    """Beside DuckDB's join of the citations with themselves, with the same memory and threads, and the same output."""
    joined = case.folder / "joined.parquet"
    join = python(join_citations, *case.files(), joined, BUCKETS * MEMORY_MB, BUCKETS)
    rounds = in_turn({"Counting": case.count, "DuckDB's self-join": lambda: run(join)}, 3)
    run(python(check, case.counted, joined))
    say(f"Of {case.citations:,} citations and {case.queries:,} queries:")
    for title, costs in rounds.items():
        wall, cpu, peak = (statistics.median(getattr(cost, of) for cost in costs) for of in ("wall", "cpu", "peak_mb"))
        peak *= BUCKETS if title == "Counting" else 1
        say(f"{title}, with the same pairs and counts: {wall:.2f} s, {cpu:.2f} s of CPU, peak memory {peak:.0f} MB.")
    counting, joining = ([cost.wall for cost in costs] for costs in rounds.values())
    say(f"DuckDB's self-join to counting, the time: {median_ratio(joining, counting)}")


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


def _write_citations(folder: Path, citations: int, factor: int) -> None:
    """Write at least so many citations into buckets by the citing paper, their ids times the factor; deterministic."""
    papers = int(citations / MEAN_REFERENCES * 1.03)
    for bucket in range(BUCKETS):
        rng = np.random.default_rng([citations, bucket])
        batches = _batches(rng, papers // BUCKETS, bucket, factor)
        write_table(folder / f"{bucket}.parquet", "citations", batches)


def _batches(rng: np.random.Generator, papers: int, bucket: int, factor: int) -> Iterator[pa.RecordBatch]:
    first_id = CITED_PAPERS * SCALE // BUCKETS + 1
    for first in range(0, papers, PAPERS_AT_ONCE):
        count = min(PAPERS_AT_ONCE, papers - first)
        drawn = rng.lognormal(np.log(MEAN_REFERENCES) - SPREAD**2 / 2, SPREAD, count)
        references = np.clip(drawn.round(), 1, MOST_REFERENCES).astype(np.int64)
        paper = np.repeat(np.arange(first, first + count), references)
        field = np.repeat(rng.integers(0, _FIELDS, count), references)
        elsewhere = rng.random(len(field)) >= OWN_FIELD
        field[elsewhere] = rng.integers(0, _FIELDS, int(elsewhere.sum()))
        pairs = np.unique(paper << 32 | _cited(rng, field))
        citing = (first_id + (pairs >> 32)) * BUCKETS + bucket
        ends = {"citing": citing * factor, "cited": (pairs & 0xFFFFFFFF) * factor}
        nothing = pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(len(pairs), dtype=np.int8)))
        yield pa.record_batch({**ends, "influential": np.zeros(len(pairs), dtype=bool), "intents": nothing})


def _cited(rng: np.random.Generator, field: np.ndarray) -> np.ndarray:
    """The id of a paper of each field, drawn by preferential attachment."""
    number = (PAPERS_OF_A_FIELD * rng.random(len(field)) ** 2).astype(np.int64)
    return (number * _FIELDS + field) * SCALE
