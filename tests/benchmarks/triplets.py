"""Sampling examples and materialising them: triplets of neighbours, and pairs that were brought."""

import json
import random
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import Command, cocite, compare, in_turn, median_ratio, python, run, say
from tests.papers import papers_table

from cocite.core.tables.files import count_rows, write_table

PAPERS, QUERIES, K = 5_000_000, 143_000, 5_000
K_POSITIVE, K_NEGATIVE, PER_QUERY = 25, 5000, 7
BANDS = {"k_positive": K_POSITIVE, "k_negative": K_NEGATIVE, "per_query": PER_QUERY, "easy": 0}
SETTINGS = {"sampler": "neighbours", "embedding": "e", **BANDS}
PART = 5
"""The loop is measured on a part of the papers and queries, since the whole would not fit into memory. Its time grows
faster than the part, so that the ratio for the whole is rather underrated."""
THREADS = 2
ROUNDS = 3
STEPS = SAMPLING, MATERIALISING = "Sampling", "Materialising"
LOOP = f"A loop over Python dictionaries, one part of {PART}"
ROLES = ("query", "positive", "negative")
TRIPLETS_AT_ONCE = 20_000

BROUGHT_QUERIES, SYSTEMS, MINED = 60_000, 12, 50
"""As published: 12 systems, of which each has mined 50 negatives for a query; there, of 500,000 queries."""
SIZES = (1_000_000, 4_000_000)
"""Passages of the collection; the queries are the same in both."""
WORDS = 55
"""Words of a passage, about as many as those of MS MARCO have."""

LARGEST_ID = 280_000_000
FAR_APART = 2**34 + 1
"""What ids are multiplied by to lie all over 63 bits; it is odd, so that buckets of two stay as they are."""
BUCKETS = 2
VOCABULARY, DRAWN_WORDS = 20_000, 4_000_000
PAPERS_AT_ONCE = 20_000
QUERIES_AT_ONCE = 200
TITLE, ABSTRACT = (40, 120), (700, 1500)
"""Characters of a title and of an abstract, from and to; Semantic Scholar's have 80 and 1,100 on average."""


def triplets(kept: Path) -> None:
    """Sampling triplets and materialising them beside a loop over dictionaries, and with large ids."""
    whole, part, spread = (kept / "triplets" / name for name in ("whole", "part", "spread"))
    for corpus, papers, queries in ((whole, PAPERS, QUERIES), (part, PAPERS // PART, QUERIES // PART)):
        _write_corpus(corpus, papers, queries)
    commands = {**_steps(whole), LOOP: python(loop, part, part / "loop.parquet")}
    ways = {name: partial(run, command) for name, command in commands.items()}
    in_turn(ways, 1)  # all start with warm caches
    rounds = in_turn(ways, ROUNDS)
    for name, costs in rounds.items():
        wall = statistics.median(cost.wall for cost in costs)
        say(f"{name}: {wall:.1f} s, peak memory {max(cost.peak_mb for cost in costs):.0f} MB.")
    sampled, materialised, looped = ([cost.wall for cost in costs] for costs in rounds.values())
    steps, loops = map(sum, zip(sampled, materialised, strict=True)), (PART * wall for wall in looped)
    say(
        f"{QUERIES * PER_QUERY:,} triplets from {PAPERS:,} papers and {QUERIES * K:,} neighbours, steps against {PART} "
        f"times the loop, median of {ROUNDS}: as fast as {median_ratio(loops, steps)}"
    )
    # The same papers with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's.
    _write_corpus(spread, PAPERS, QUERIES, FAR_APART)
    for step in STEPS:
        large, small = (_steps(corpus)[step] for corpus in (spread, whole))
        title = f"{step} with ids all over 63 bits to that with small ones"
        cost, _ = compare(title, large, small, "wall", ROUNDS)
        say(f"With ids all over 63 bits it takes {cost.peak_mb:.0f} MB.")


def _write_corpus(corpus: Path, papers: int, queries: int, factor: int = 1) -> None:
    if not (corpus / "neighbours/0.parquet").exists():
        run(python(write_tables, corpus, papers, queries, K, factor=factor))


def _steps(corpus: Path) -> dict[str, Command]:
    """The commands from the tables of a corpus to examples and their documents, one after the other."""
    return _sampled_and_materialised(corpus, [corpus / "neighbours/0.parquet"], SETTINGS)


def _sampled_and_materialised(
    corpus: Path, sources: list[Path], settings: dict[str, object], texts: Path | None = None
) -> dict[str, Command]:
    triplets = corpus / "triplets.parquet"
    common = {"papers": corpus / "papers", "seed": 1, "threads": THREADS}
    written = {"omissions": corpus / "omissions.parquet", "written_settings": corpus / "settings.json"}
    written |= {"output": triplets, **({"texts": texts} if texts else {})}
    made = {"triplets": triplets, "output": corpus / "examples.parquet", "documents": corpus / "documents"}
    queries = corpus / "queries.parquet"
    return {
        SAMPLING: cocite("triplets", "sample", *sources, settings=settings, queries=queries, **common, **written),
        MATERIALISING: cocite("triplets", "materialise", triplets, *([texts] if texts else []), **common, **made),
    }


def loop(folder: Path, output: Path) -> None:
    """Sample from bands of neighbours, shuffle by query, join with the texts, and write one Parquet file.

    Rows are read as dictionaries; texts lie in one by paper, neighbours in one by query, in the order of ranks.
    """
    texts = {}
    for bucket in sorted((folder / "papers").iterdir()):
        for batch in pq.ParquetFile(bucket).iter_batches(columns=["corpusid", "title", "abstract"]):
            for row in batch.to_pylist():
                if row["title"] and row["abstract"]:
                    texts[row["corpusid"]] = (row["title"], row["abstract"])
    ranked: dict[int, list[int]] = {}
    for batch in pq.ParquetFile(folder / "neighbours/0.parquet").iter_batches(columns=["query", "neighbour"]):
        for row in batch.to_pylist():
            ranked.setdefault(row["query"], []).append(row["neighbour"])
    queries = pq.read_table(folder / "queries.parquet")["corpusid"].to_pylist()
    random.Random(1).shuffle(queries)
    rows: list[dict[str, int | str]] = []
    writer = None
    for query in queries:
        bands = (_band(ranked[query], last, texts) for last in (K_POSITIVE, K_NEGATIVE))
        for pair in zip(*bands, strict=False):
            row: dict[str, int | str] = dict(zip(ROLES, (query, *pair), strict=True))
            for role, paper in zip(ROLES, (query, *pair), strict=True):
                row[f"{role}_title"], row[f"{role}_abstract"] = texts[paper]
            rows.append(row)
        if len(rows) >= TRIPLETS_AT_ONCE or query == queries[-1]:
            table = pa.Table.from_pylist(rows)
            writer = writer or pq.ParquetWriter(output, table.schema, compression="zstd")
            writer.write_table(table)
            rows = []
    if writer:
        writer.close()


def _band(ranked: list[int], last: int, texts: dict[int, tuple[str, str]]) -> list[int]:
    papers = ranked[last - PER_QUERY : last]
    random.Random(last).shuffle(papers)
    return [paper for paper in papers if paper in texts]


def write_tables(folder: Path, papers: int, queries: int, k: int, factor: int = 1) -> None:
    """Write so many papers in buckets, their ids times the factor, queries, and one file of their k neighbours."""
    drawn = np.random.default_rng(1)
    ids = (np.sort(drawn.choice(LARGEST_ID, papers, replace=False)) + 1) * factor
    asked = np.sort(drawn.choice(ids, queries, replace=False))
    for bucket in range(BUCKETS):
        write_table(folder / f"papers/{bucket}.parquet", "papers", _papers(ids[ids % BUCKETS == bucket], drawn))
    split = pa.array(["train"] * queries)
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": asked, "split": split}))
    write_table(folder / "neighbours/0.parquet", "neighbours", _neighbours(asked, ids, k, drawn))


def _papers(ids: np.ndarray, drawn: np.random.Generator) -> Iterator[pa.RecordBatch]:
    words = np.array([f"{number:x}{'abcdefgh'[: number % 8]}" for number in range(VOCABULARY)])
    text = np.frombuffer(" ".join(drawn.choice(words, DRAWN_WORDS)).encode(), dtype=np.uint8)
    for start in range(0, len(ids), PAPERS_AT_ONCE):
        some = ids[start : start + PAPERS_AT_ONCE]
        title, abstract = (_texts(text, len(some), sizes, drawn) for sizes in (TITLE, ABSTRACT))
        nameless = dict.fromkeys(some.tolist(), ("", ""))
        yield from papers_table(nameless, title=title, abstract=abstract).to_batches()


def _texts(text: np.ndarray, count: int, sizes: tuple[int, int], drawn: np.random.Generator) -> pa.StringArray:
    lengths = drawn.integers(*sizes, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    starts = drawn.integers(0, len(text) - sizes[1], count)
    characters = text[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))


def _neighbours(asked: np.ndarray, ids: np.ndarray, k: int, drawn: np.random.Generator) -> Iterator[pa.RecordBatch]:
    rank = np.arange(1, k + 1, dtype=np.int32)
    for start in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked[start : start + QUERIES_AT_ONCE]
        # Steps of one or more through the papers in a circle: k different ones, none of them the query.
        steps = drawn.integers(1, len(ids) // (k + 1), (len(some), k)).cumsum(axis=1)
        places = (np.searchsorted(ids, some)[:, None] + steps) % len(ids)
        neighbours = ids[drawn.permuted(places, axis=1)].ravel()
        ranks = np.tile(rank, len(some))
        columns = {"query": np.repeat(some, k), "rank": ranks, "neighbour": neighbours}
        yield pa.RecordBatch.from_pydict({**columns, "distance": ranks.astype(np.float32)})


def pairs(kept: Path) -> None:
    """Sampling brought queries from a collection in the layout of MS MARCO's mined negatives, and their texts."""
    for passages in SIZES:
        corpus = kept / "pairs" / str(passages)
        if not (corpus / "made").exists():
            run(python(write_collection, corpus, passages))
        layout = {"kind": "msmarco", "scores": {"dataset": str(corpus / "scores.parquet")}, "margin": 3.0}
        settings = {"sampler": "pairs", "paired": True, "per_query": 5, "dataset": str(corpus / "brought")}
        steps = _sampled_and_materialised(corpus, [], settings | {"layout": layout}, corpus / "texts.parquet")
        for name, command in steps.items():
            say(f"{name} from {passages:,} passages: {run(command)}.")
        say(f"{count_rows(corpus / 'triplets.parquet'):,} examples, {count_rows(corpus / 'texts.parquet'):,} texts.")


def write_collection(folder: Path, passages: int) -> None:
    """Write a corpus of one paper, and the files of MS MARCO with so many passages."""
    random = np.random.default_rng(1)
    words = np.array([f"w{number:x}" for number in range(50_000)])
    brought = folder / "brought"
    brought.mkdir(parents=True, exist_ok=True)
    write_table(folder / "papers/0.parquet", "papers", papers_table({1: ("one", "first")}))
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": [1], "split": ["train"]}))
    with (brought / "collection.tsv").open("w") as file:
        for first in range(0, passages, 10_000):
            drawn = words[random.integers(0, len(words), (10_000, WORDS))]
            file.writelines(f"{first + row}\t{' '.join(some)}\n" for row, some in enumerate(drawn))
    with (brought / "queries.train.tsv").open("w") as file:
        file.writelines(
            f"{query}\t{' '.join(words[random.integers(0, 50_000, 6)])}\n" for query in range(BROUGHT_QUERIES)
        )
    scored: list[dict[str, object]] = []
    with (brought / "msmarco-hard-negatives.jsonl").open("w") as file:
        for query in range(BROUGHT_QUERIES):
            found = random.integers(0, passages, 1 + SYSTEMS * MINED)
            mined = {f"system-{number}": found[1 + number :: SYSTEMS].tolist() for number in range(SYSTEMS)}
            file.write(json.dumps({"qid": query, "pos": [int(found[0])], "neg": mined}) + "\n")
            scores = np.append(9.0, random.normal(4, 3, len(found) - 1)).astype(np.float32)
            scored.append({"query_id": query, "corpus_id": found, "score": scores})
    pq.write_table(pa.Table.from_pylist(scored), folder / "scores.parquet", row_group_size=5_000)
    (folder / "made").touch()
