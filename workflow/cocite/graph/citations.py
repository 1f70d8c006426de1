"""The citations that a graph is counted from: which are chosen, and how they are sharded.

Each citation that is left out counts for the first reason that applies; self-citations come last, so that their share
is that among the citations that the other keys leave. Coupling and undirected edges ask who cites a paper: each bucket
is cut by the cited paper, then the cuts are united; each citation is written twice, however many buckets there are.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from duckdb import DuckDBPyConnection

from cocite.config.graphs import CitationChoice, CitationWeights
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path
from cocite.core.database import connect, count_mentions, number
from cocite.core.errors import InputError
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries, Threads
from cocite.core.tables.declarations.corpus import AUTHORS
from cocite.core.tables.files import checked_files, open_table, scan_table, verified_files, write_omissions, write_table
from cocite.core.tables.papers import HASHED_AUTHORS, read_kept_out

BATCH_ROWS = 100_000
SENTENCES_READ = 20_000
REASONS = {
    "max_references": "citations by papers with more references than citations.max_references",
    "influential": "citations that are not influential",
    "intents": "citations with none of citations.intents",
    "min_mentions": "citations that fewer contexts make than citations.min_mentions",
}
"""Key of the choice → what is left out by it, in the order in which reasons count."""
SELF = "self-citations"
KEPT = "citations that the graph is built from (kept)"
OF_NO_CITATION = "sentences of which no citation is chosen"


def split_citations(
    citations: Annotated[Path, typer.Argument(help="One bucket of the table citations.")],
    *,
    queries: Queries,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Cut one bucket of citations into a folder with a file for each bucket of the cited paper.

    Citations by or of papers that are kept out are dropped.
    """
    with atomic_path(output) as folder, connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        db.execute(f"""
            CREATE TEMP TABLE kept AS
            SELECT cited % {buckets} AS bucket, * EXCLUDE (influential, intents) FROM citations
            WHERE citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
            ORDER BY bucket, cited, citing
        """)
        folder.mkdir()
        for bucket in range(buckets):
            rows = db.sql(f"SELECT * EXCLUDE bucket FROM kept WHERE bucket = {bucket} ORDER BY cited, citing")
            write_table(folder / f"{bucket}.parquet", "split_citations", rows.to_arrow_reader(BATCH_ROWS))


def unite_citations(
    split: Annotated[list[Path], typer.Argument(help="Folders that `split-citations` wrote.")],
    *,
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Put one bucket of cited papers together from the folders that `split-citations` wrote."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        files = [folder / f"{bucket}.parquet" for folder in split]
        db.read_parquet(verified_files(files, "split_citations")).create_view("split")
        rows = db.sql("FROM split ORDER BY cited, citing")
        write_table(output, "citations_by_cited", rows.to_arrow_reader(BATCH_ROWS))


def choose_citations(
    citations: Annotated[Path, typer.Argument(help="Folder of the table citations.")],
    settings: GivenAsJson[CitationChoice],
    *,
    bucket: Bucket,
    papers: Annotated[Path | None, typer.Option(help="Folder of the table papers, if it has names of authors.")] = None,
    contexts: Annotated[
        Path | None, typer.Option(help="The bucket of the table contexts, for a choice or weights by mentions.")
    ] = None,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write the citations of one bucket that a graph is built from, and count the others by reason.

    With `papers`, self-citations are counted even if they are kept. Raises `InputError` if no citation of the corpus
    has the required marks, `papers` lacks the column of authors, or self-citations are to be left out and no paper has
    the name of an author.
    """
    if papers is None and not settings.self_:
        raise InputError("--papers is missing, and self-citations are known by the authors of papers.")
    conditions = settings.in_sql()
    if settings.max_references is not None:
        many = f"SELECT citing FROM citations GROUP BY citing HAVING count(*) > {settings.max_references}"
        conditions = {"max_references": f"citing NOT IN ({many})", **conditions}
    cases = "".join(f" WHEN NOT ({wanted}) THEN '{key}'" for key, wanted in conditions.items())
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        _check_marks(db, citations, conditions, settings.weights)
        db.read_parquet(verified_files(citations / f"{bucket}.parquet", "citations")).create_view("citations")
        sentences = None if contexts is None else verified_files(contexts, "contexts", ["citing", "cited"])
        count_mentions(db, None if sentences is None else db.read_parquet(sentences))
        db.execute(f"""
            CREATE TEMP TABLE judged AS
            SELECT *, {f"CASE{cases} END" if cases else "NULL::VARCHAR"} AS reason
            FROM citations LEFT JOIN mentioned USING (citing, cited)
        """)
        db.execute("CREATE TEMP TABLE selves (citing BIGINT, cited BIGINT)")
        if papers is not None:
            _find_self_citations(db, papers, are_needed=not settings.self_)
        kept = db.sql(f"""
            SELECT * EXCLUDE (reason, mentions){_weight(settings.weights)}
            FROM judged {"" if settings.self_ else "ANTI JOIN selves USING (citing, cited)"}
            WHERE reason IS NULL ORDER BY citing, cited
        """)
        rows = write_table(output, "citations", kept.to_arrow_reader(BATCH_ROWS))
        counted = dict(db.sql("SELECT reason, count(*) FROM judged GROUP BY reason").fetchall())
        selves = number(db, "SELECT count(*) FROM selves")
    left_out = {REASONS[key]: counted.get(key, 0) for key in conditions} | {KEPT: rows}
    if papers is not None:
        left_out[f"{SELF} (kept)" if settings.self_ else SELF] = selves
    write_omissions(omissions, left_out)


def _weight(weights: CitationWeights | None) -> str:
    """The column of weights, in SQL, if there are any."""
    if weights is None:
        return ""
    by_mentions = {None: "1", "count": "coalesce(mentions, 1)", "log": "1 + ln(coalesce(mentions, 1))"}
    by_influence = f"CASE WHEN influential THEN {weights.influential} ELSE 1 END"
    factors = "".join(f" WHEN '{intent}' THEN {factor}" for intent, factor in weights.intents.items())
    of_intent = f"list_max(list_transform(intents, lambda intent: CASE intent{factors} ELSE 1 END))"
    by_intent = f"coalesce({of_intent}, 1)" if factors else "1"
    return f", ({by_influence} * {by_intent} * ({by_mentions[weights.mentions]}))::FLOAT AS weight"


def _check_marks(
    db: DuckDBPyConnection, citations: Path, conditions: Mapping[str, str], weights: CitationWeights | None
) -> None:
    """Raise `InputError` if no citation of the corpus has the marks that are chosen, or one that is weighed."""
    db.register("all_citations", scan_table(citations, "citations"))
    marks = {key: wanted for key, wanted in conditions.items() if key in ("influential", "intents")}
    asked = [(" or ".join(REASONS[key] for key in marks), " AND ".join(marks.values()))] if marks else []
    if weights and weights.influential != 1:
        asked.append((REASONS["influential"], "influential"))
    if weights and weights.intents:
        of_none = "citations with none of citations.weights.intents"
        asked.append((of_none, f"list_has_any(intents, {list(weights.intents)})"))
    for said, wanted in asked:
        if not db.sql(f"SELECT 1 FROM all_citations WHERE {wanted} LIMIT 1").fetchall():
            raise InputError(f"{citations}: contains only {said}, so nothing is left for the graph, or heavier.")


def _find_self_citations(db: DuckDBPyConnection, papers: Path, *, are_needed: bool) -> None:
    """Fill the table `selves` from the citations in `judged` that no reason leaves out."""
    has_names = all(AUTHORS in pq.read_schema(file).names for file in checked_files(papers, "papers"))
    if has_names:
        db.read_parquet(verified_files(papers, "papers", ["corpusid", AUTHORS])).create_view("papers")
    named = "SELECT 1 FROM papers WHERE len(authors) > 0 LIMIT 1"
    if not has_names or (are_needed and not db.sql(named).fetchall()):
        raise InputError(f"{papers}: no paper has the name of an author, so self-citations are not known.")
    db.execute(f"""
        CREATE TEMP TABLE named AS
        WITH asked AS (SELECT citing, cited FROM judged WHERE reason IS NULL)
        SELECT corpusid, {HASHED_AUTHORS} AS names
        FROM papers WHERE corpusid IN (SELECT citing FROM asked UNION SELECT cited FROM asked)
    """)
    db.execute("""
        INSERT INTO selves SELECT citing, cited FROM judged
        JOIN named AS one ON one.corpusid = citing JOIN named AS other ON other.corpusid = cited
        WHERE reason IS NULL AND list_has_any(one.names, other.names)
    """)


def choose_sentences(
    contexts: Annotated[Path, typer.Argument(help="One bucket of the table contexts.")],
    *,
    citations: Annotated[Path, typer.Option(help="The same bucket of the selected citations.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Write the sentences of one bucket with their chosen citations, and count those that have none."""
    left_out = {OF_NO_CITATION: 0}
    of_bucket = scan_table(citations, "citations")

    def chosen() -> Iterator[pa.RecordBatch]:
        with open_table(contexts, "contexts") as file:
            for batch in file.iter_batches(SENTENCES_READ, use_threads=False):
                bounds = pc.min_max(batch["citing"]).as_py()
                at_hand = (pc.field("citing") >= bounds["min"]) & (pc.field("citing") <= bounds["max"])
                known = of_bucket.to_table(columns=["citing", "cited"], filter=at_hand)
                sentences, cited = pc.list_parent_indices(batch["cited"]), batch["cited"].flatten()
                pairs = {"row": np.arange(len(cited)), "citing": batch["citing"].take(sentences), "cited": cited}
                joined = pa.table(pairs).join(known, ["citing", "cited"], join_type="left semi")
                rows = np.sort(joined["row"].to_numpy())
                sizes = np.bincount(sentences.to_numpy()[rows], minlength=len(batch))
                ends = pa.array(np.append(0, sizes.cumsum()), pa.int32())
                lists = pa.ListArray.from_arrays(ends, cited.take(pa.array(rows)))
                left_out[OF_NO_CITATION] += int((sizes == 0).sum())
                place = batch.schema.get_field_index("cited")
                yield batch.set_column(place, "cited", lists).filter(pa.array(sizes > 0))

    write_table(output, "contexts", chosen())
    write_omissions(omissions, left_out)
