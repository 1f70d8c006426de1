"""Find the papers that are one work under several ids, the table `twins`, and unite the records of a work.

Papers that share a DOI, a title or a band of the signature of their abstracts are compared (`same_work`), and linked
papers form groups. A key that more than 50 papers share joins none, so the pairs grow in proportion to the papers. A
group of many titles was chained by abstracts that are written alike: it loses its links by abstract, or is dropped.
"""

from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.core.database import connect, number
from cocite.core.options import MemoryMb, Omissions, Output, Threads
from cocite.core.progress import progress_bar, report
from cocite.core.tables.declarations.corpus import AUTHORS
from cocite.core.tables.files import checked_files, count_rows, open_table, verified_files, write_omissions, write_table
from cocite.corpus.matching import sql_of_doi
from cocite.corpus.same_work import BANDS, bands_of, compared, jaccard, reason_of, record, title_words

LARGEST = 50
"""Papers that may share a key, and papers of a group."""
MOST_TITLES = 4
"""Different titles that the papers of a group may have."""
PAPERS_AT_ONCE, PAIRS_AT_ONCE = 8_192, 2_048
BAND_KEYS = [f"band_{band}" for band in range(BANDS)]
SHARED = {"doi": "DOIs", "title": "titles", **dict.fromkeys(BAND_KEYS, "bands of abstracts")}
"""What papers may share, and what it is called."""
COMPARED = ["title", "year", "doi", AUTHORS]
"""Columns of a record; abstracts are compared by themselves."""

NO_KEY = "papers without a DOI, a title and an abstract of 30 words"
NO_TWINS = "pairs with a key in common that are not one work"
CHAINED = f"links by abstract in groups of more than {MOST_TITLES} titles or {LARGEST} papers"
REFUSED = f"papers in groups that still have more than {MOST_TITLES} titles or {LARGEST} papers"

_BY_ABSTRACT = "FROM edges WHERE reason = 'abstract' AND corpusid IN (FROM chained)"

ROWS_AT_ONCE = {"papers": 20_000, "citations": 100_000, "contexts": 20_000}
MERGED = {
    "papers": "papers of which another record of the same work is kept",
    "citations": "citations between records of one work, or of several records of a work",
    "contexts": "sentences that several records of a work have, or that cite their own work alone",
}
_UNITED = {
    "papers": "SELECT * FROM bucket WHERE corpusid NOT IN (SELECT corpusid FROM others) ORDER BY corpusid",
    "citations": """
        SELECT citing, coalesce(work, cited) AS cited, bool_or(influential) AS influential,
            list_sort(list_distinct(flatten(list(intents)))) AS intents
        FROM bucket LEFT JOIN others ON cited = corpusid
        WHERE citing <> coalesce(work, cited)
        GROUP BY ALL ORDER BY ALL
    """,
    "contexts": """
        SELECT citing, context, list_sort(list(DISTINCT coalesce(work, paper))) AS cited,
            any_value(sentence) AS sentence
        FROM (SELECT citing, context, unnest(cited) AS paper, sentence FROM bucket)
        LEFT JOIN others ON paper = corpusid
        WHERE citing <> coalesce(work, paper)
        GROUP BY citing, context ORDER BY citing, context
    """,
}


def too_common(key: str) -> str:
    """What is said of keys that too many papers share."""
    return f"{SHARED[key]} that more than {LARGEST} papers share, which join none"


def find_twins(
    papers: Annotated[Path, typer.Argument(help="Folder of the table papers.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Find the papers that are one work under several ids, such as preprints and their published versions."""
    counts = dict.fromkeys(map(too_common, SHARED), 0)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        _take_keys(db, papers)
        counts[NO_KEY] = number(db, f"SELECT count(*) FROM keys WHERE coalesce({', '.join(SHARED)}) IS NULL")
        db.execute("CREATE TABLE shared (one BIGINT, other BIGINT, with_title UBIGINT)")
        for key in SHARED:
            counts[too_common(key)] += _pair(db, key)
        counts[NO_TWINS] = _compare(db, papers)
        _form_groups(db)
        counts[CHAINED] = number(db, f"SELECT count(*) // 2 {_BY_ABSTRACT}")
        if counts[CHAINED]:
            db.execute(f"DELETE {_BY_ABSTRACT}")
            _form_groups(db)
        counts[REFUSED] = number(db, "SELECT count(*) FROM chained")
        groups = number(db, 'SELECT count(DISTINCT "group") FROM members WHERE corpusid NOT IN (FROM chained)')
        rows = db.sql("""
            SELECT corpusid, coalesce(min(corpusid) FILTER (has_text) OVER (PARTITION BY "group"), "group") AS "group",
                reason::VARCHAR AS reason, score
            FROM members JOIN edges USING (corpusid) JOIN texts USING (corpusid) WHERE corpusid NOT IN (FROM chained)
            QUALIFY row_number() OVER (PARTITION BY corpusid ORDER BY edges.reason, score DESC NULLS LAST, other) = 1
            ORDER BY corpusid
        """)
        written = write_table(output, "twins", rows.to_arrow_reader(PAPERS_AT_ONCE))
    write_omissions(omissions, counts)
    report(f"{written:,} of {count_rows(papers):,} papers are {groups:,} works under several ids")
    for reason, count in counts.items():
        report(f"{count:,} {reason}")


def _take_keys(db: DuckDBPyConnection, papers: Path) -> None:
    """Make the table `keys`, of corpusid and, as hashes, what papers may share; null if a paper does not have it."""
    db.execute(f"CREATE TABLE keys (corpusid BIGINT, {', '.join(f'{key} UBIGINT' for key in SHARED)})")
    texts = (sql_of_doi("doi"), "nullif(title, '')")
    hashes = ", ".join(f"if({text} IS NULL, NULL, hash({text}))" for text in texts)
    columns = ["corpusid", "title", "abstract", "doi"]
    with progress_bar(of="Signatures", unit="papers", total=count_rows(papers)) as bar:
        for path in checked_files(papers, "papers"):
            for batch in open_table(path, "papers").iter_batches(PAPERS_AT_ONCE, columns=columns):
                bands, is_long = bands_of(batch["abstract"])
                titles = pa.array(["".join(title_words(title)) for title in batch["title"].to_pylist()], pa.string())
                rows = {"corpusid": batch["corpusid"], "doi": batch["doi"], "title": titles}
                rows |= {key: pa.array(bands[:, band], mask=~is_long) for band, key in enumerate(BAND_KEYS)}
                db.register("batch", pa.table(rows))
                db.execute(f"INSERT INTO keys SELECT corpusid, {hashes}, {', '.join(BAND_KEYS)} FROM batch")
                db.unregister("batch")
                bar.update(len(batch))


def _pair(db: DuckDBPyConnection, key: str) -> int:
    """Add the pairs of papers that share a key to `shared`; return how many keys too many papers share. `with_title` is
    how many papers have the title of a pair, and `LARGEST` + 1 if more than `LARGEST` do."""
    db.execute(f"""
        CREATE OR REPLACE TABLE blocks AS
        SELECT {key} AS key, count(*) AS papers FROM keys WHERE {key} IS NOT NULL GROUP BY {key} HAVING papers > 1
    """)
    db.execute(f"""
        INSERT INTO shared
        WITH block AS (SELECT key, papers, corpusid FROM keys JOIN blocks ON {key} = key WHERE papers <= {LARGEST})
        SELECT left_.corpusid, right_.corpusid, {"left_.papers" if key == "title" else LARGEST + 1}
        FROM block AS left_ JOIN block AS right_ USING (key) WHERE left_.corpusid < right_.corpusid
    """)
    return number(db, f"SELECT count(*) FROM blocks WHERE papers > {LARGEST}")


def _compare(db: DuckDBPyConnection, papers: Path) -> int:
    """Make the table `edges`, both ways, of the pairs that are one work; return how many are not."""
    db.execute("CREATE TABLE pairs AS SELECT one, other, min(with_title) AS with_title FROM shared GROUP BY one, other")
    db.execute("CREATE TABLE paired AS SELECT one AS corpusid FROM pairs UNION SELECT other FROM pairs")
    db.execute("CREATE TABLE titles AS SELECT corpusid, title FROM keys SEMI JOIN paired USING (corpusid)")
    db.execute("DROP TABLE shared; DROP TABLE keys")
    present = open_table(checked_files(papers, "papers")[0], "papers").schema_arrow.names
    columns = [name for name in COMPARED if name in present]
    files = verified_files(papers, "papers", ["corpusid", "has_text", "abstract", *columns])
    db.read_parquet(files, hive_partitioning=False).create_view("papers")
    db.execute(f"""
        CREATE TABLE texts AS
        SELECT corpusid, has_text, abstract, {{{", ".join(f"'{name}': {name}" for name in columns)}}} AS record
        FROM (SELECT * REPLACE ({sql_of_doi("doi")} AS doi) FROM papers) WHERE corpusid IN (FROM paired)
    """)
    db.execute("CREATE TABLE links (one BIGINT, other BIGINT, reason ENUM ('doi', 'title', 'abstract'), score FLOAT)")
    total = number(db, "SELECT count(*) FROM pairs")
    schema = pa.schema({"one": pa.int64(), "other": pa.int64(), "reason": pa.string(), "score": pa.float32()})
    with db.cursor() as reading, progress_bar(of="Comparisons", unit="pairs", total=total) as bar:
        rows = reading.sql("""
            SELECT pairs.*, first.abstract, first.record, second.abstract AS other_abstract,
                second.record AS other_record
            FROM pairs JOIN texts AS first ON one = first.corpusid JOIN texts AS second ON other = second.corpusid
        """)
        for batch in rows.to_arrow_reader(PAIRS_AT_ONCE):
            links = []
            for pair, abstracts in compared(batch):
                one, other = record(**pair["record"]), record(**pair["other_record"])
                if reason := reason_of(one, other, abstracts, pair["with_title"]):
                    links.append({**pair, "reason": reason, "score": jaccard(abstracts)})
            db.register("batch", pa.Table.from_pylist(links, schema))
            db.execute("INSERT INTO links FROM batch")
            db.unregister("batch")
            bar.update(len(batch))
    db.execute("CREATE TABLE edges AS SELECT one AS corpusid, * EXCLUDE one FROM links")
    db.execute("INSERT INTO edges SELECT other, one, reason, score FROM links")
    return total - number(db, "SELECT count(*) FROM links")


def _form_groups(db: DuckDBPyConnection) -> None:
    """Make the table `members`, with the smallest id that links lead to, and `chained`, of papers in groups too large.
    In each round a paper takes the smallest group of its neighbours, and then the group of that group."""
    db.execute('CREATE OR REPLACE TABLE members AS SELECT DISTINCT corpusid, corpusid AS "group" FROM edges')
    is_moving = True
    while is_moving:
        db.execute("""
            CREATE OR REPLACE TABLE next AS
            WITH nearer AS MATERIALIZED (
                SELECT edges.corpusid, least(any_value(members."group"), min(others."group")) AS "group"
                FROM edges JOIN members USING (corpusid) JOIN members AS others ON edges.other = others.corpusid
                GROUP BY edges.corpusid
            )
            SELECT nearer.corpusid, lowest."group"
            FROM nearer JOIN nearer AS lowest ON nearer."group" = lowest.corpusid
        """)
        moved = 'SELECT count(*) FROM next JOIN members USING (corpusid) WHERE next."group" <> members."group"'
        is_moving = number(db, moved) > 0
        db.execute("CREATE OR REPLACE TABLE members AS FROM next")
    db.execute(f"""
        CREATE OR REPLACE TABLE chained AS
        WITH chains AS (
            SELECT "group" FROM members JOIN titles USING (corpusid)
            GROUP BY "group" HAVING count(*) > {LARGEST} OR count(DISTINCT title) > {MOST_TITLES}
        )
        SELECT corpusid FROM members SEMI JOIN chains USING ("group")
    """)


def merge_twins(
    table: Annotated[Literal["papers", "citations", "contexts"], typer.Argument(help="The table to write.")],
    *,
    records: Annotated[Path, typer.Option(help="Folder of the buckets of the table, by records.")],
    twins: Annotated[Path, typer.Option(help="Table twins.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Annotated[Path, typer.Option(help="Folder of the buckets to write, by works.")],
    omissions: Omissions,
) -> None:
    """Write all buckets of a table with one paper in place of all records of a work. The paper that represents a work,
    the `group` in twins, keeps its record and takes over the citations and sentences of the others. Those in other
    buckets move to its bucket; all of them are read once."""
    files = {int(path.stem): path for path in checked_files(records, table)}
    written = 0
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.read_parquet(verified_files(twins, "twins"), hive_partitioning=False).create_view("twins")
        db.execute('CREATE TABLE others AS SELECT corpusid, "group" AS work FROM twins WHERE corpusid <> "group"')
        if table != "papers":
            db.read_parquet(verified_files(records, table)).create_view("every")
            db.execute("""
                CREATE TABLE moved AS
                SELECT * EXCLUDE (corpusid, work) REPLACE (work AS citing) FROM every JOIN others ON citing = corpusid
            """)
        for bucket, path in files.items():
            db.read_parquet(verified_files([path], table)).create_view("own", replace=True)
            moved = f"""
                WHERE citing NOT IN (SELECT corpusid FROM others)
                UNION ALL FROM moved WHERE citing % {len(files)} = {bucket}
            """
            db.execute(f"CREATE OR REPLACE VIEW bucket AS FROM own {'' if table == 'papers' else moved}")
            rows = db.sql(_UNITED[table]).to_arrow_reader(ROWS_AT_ONCE[table])
            written += write_table(output / path.name, table, rows)
    write_omissions(omissions, {MERGED[table]: count_rows(list(files.values())) - written})
