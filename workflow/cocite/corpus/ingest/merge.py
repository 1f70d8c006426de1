"""Merge one bucket of what was ingested: each paper with its abstract, each citation and each context once.

What is kept of several copies of a record depends on their content alone, never on the shard that they came from: of an
abstract the longest, and among these the first by text; of a paper the one that has a title and states most citations;
of a citation the union of the intents, and it is influential if any copy says so. Of several copies of a work, however,
the one in the last file by name, and so by day, counts with all that is in it; nothing of an earlier copy stays.

A context is a sentence of a citing paper, with the papers that it cites. The release gives a sentence in the record of
each paper that is cited in it, and a record may be in several shards; the same sentence in several records of one
citing paper is one row here. Sentences are compared, and measured, without their citation markers. A marker goes as a
whole, names included, so that no style of citing is left:

- numbers in square brackets: `[12]`, `[3, 4–6]`, and keys such as `[BCV13]`;
- authors and years in brackets: `(Smith et al., 2019; Doe, 2020a, b)`, `(see, e.g., van Dyk and Lee, 2001, p. 7)`;
- authors before a year in brackets: `Smith et al. (2019)`, `Smith and Doe (2019)`.

What only looks like a marker goes with them: an interval such as `[1, 2]`, or `(March 2012)`. Numbers in round
brackets, `(3)`, are as often numbers of equations or of items of a list, and stay.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import duckdb
import numpy as np
import pyarrow as pa
import typer

from cocite.config.aspects import INTENTS
from cocite.config.settings import GivenAsJson
from cocite.config.source import ContextSettings
from cocite.core.database import connect, number
from cocite.core.options import Bucket, MemoryMb, Omissions, Output, Threads
from cocite.core.tables.declarations.corpus import AUTHORS, MAG, SHARD
from cocite.core.tables.files import scan_table, verified_files, write_omissions, write_table
from cocite.core.text_ids import sql_of_text_id
from cocite.corpus.ingest.records import BUCKET_KEYS, INFLUENTIAL, UNKNOWN_INTENT

ROWS_IN_BATCH = {"papers": 20_000, "abstracts": 20_000, "citations": 100_000}
"""Rows that are written at once: abstracts come at about 1.3 kB, and a batch of them must stay small."""

_PAPERS = """
    WITH distinct_papers AS (
        SELECT * EXCLUDE bucket FROM ingested_papers
        QUALIFY row_number() OVER (
            PARTITION BY corpusid
            ORDER BY title IS NULL, citation_count DESC NULLS LAST, reference_count DESC NULLS LAST,
                title, year, venue, doi, fields{further}
        ) = 1
    ), distinct_abstracts AS (
        SELECT * EXCLUDE bucket FROM ingested_abstracts
        QUALIFY row_number() OVER (PARTITION BY corpusid ORDER BY length(abstract) DESC, abstract) = 1
    )
    SELECT *, title IS NOT NULL AND (abstract IS NOT NULL OR {titles_alone}) AS has_text
    FROM distinct_papers LEFT JOIN distinct_abstracts USING (corpusid) ORDER BY corpusid
"""
_INTENTS = ", ".join(f"CASE WHEN traits & {1 << bit} > 0 THEN '{name}' END" for bit, name in enumerate(INTENTS))
_CITATIONS = f"""
    WITH united AS (SELECT citing, cited, bit_or(traits) AS traits FROM ingested_citations GROUP BY citing, cited)
    SELECT citing, cited, traits & {INFLUENTIAL} > 0 AS influential,
        list_filter([{_INTENTS}], lambda name: name IS NOT NULL) AS intents
    FROM united ORDER BY citing, cited
"""
_QUERIES = {"papers": _PAPERS, "citations": _CITATIONS}
_OMISSIONS = {
    "papers": {
        "papers without title (kept, with a null title)": "SELECT count(*) FROM written WHERE title IS NULL",
        "papers without the texts that triplets need (kept)": "SELECT count(*) FROM written WHERE NOT has_text",
        "further copies of a paper": "SELECT count(*) - (SELECT count(*) FROM written) FROM ingested_papers",
        "further copies of an abstract": "SELECT count(*) - count(DISTINCT corpusid) FROM ingested_abstracts",
        "abstracts without a paper": """
            SELECT count(DISTINCT corpusid) FROM ingested_abstracts
            WHERE corpusid NOT IN (SELECT corpusid FROM ingested_papers)
        """,
    },
    "citations": {
        "further copies of a citation": "SELECT count(*) - (SELECT count(*) FROM written) FROM ingested_citations",
        "copies of a citation with an unknown intent (kept, as if they had none)": f"""
            SELECT count(*) FROM ingested_citations WHERE traits & {UNKNOWN_INTENT} > 0
        """,
    },
}
WITHOUT_AUTHORS = {"papers without authors (kept)": f"SELECT count(*) FROM written WHERE len({AUTHORS}) = 0"}
"""What is counted as well where the names of authors are kept."""


def merge(
    table: Annotated[Literal["papers", "citations"], typer.Argument(help="The table to write.")],
    *,
    ingested: Annotated[Path, typer.Option(help="Folder of what was ingested, with a folder for each dataset.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    titles_alone: Annotated[bool, typer.Option(help="A paper without an abstract has a text too.")] = False,
) -> None:
    """Write a bucket of papers, each once and with its abstract, or of citations, each once.

    Of works, the ingested papers say which copy of one is the newest, for citations as well.
    """
    datasets = ["papers", "abstracts"] if table == "papers" else ["citations"]
    if table == "citations" and SHARD in scan_table(ingested / "citations", "ingested_citations").schema.names:
        datasets.append("papers")
    sources = {f"ingested_{dataset}": ingested / dataset for dataset in datasets}
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        tables = {
            name: connection.read_parquet(verified_files(folder, name, bucket=bucket)).filter(f"bucket = {bucket}")
            for name, folder in sources.items()
        }
        of_older_copies = keep_newest(connection, tables)
        columns = connection.view("ingested_papers").columns if table == "papers" else []
        further = [name for name in (AUTHORS, MAG) if name in columns]
        query = _QUERIES[table].replace("{further}", "".join(f", {name}" for name in further))
        query = query.replace("{titles_alone}", str(titles_alone))
        write_table(output, table, connection.sql(query).to_arrow_reader(ROWS_IN_BATCH[table]))
        connection.read_parquet(str(output)).create_view("written")
        queries = _OMISSIONS[table] | of_older_copies | (WITHOUT_AUTHORS if AUTHORS in further else {})
        write_omissions(omissions, {reason: number(connection, query) for reason, query in queries.items()})


_OLDER = {
    "ingested_papers": "older copies of a paper, which is in a newer file as well",
    "ingested_abstracts": "abstracts of older copies of a paper",
    "ingested_citations": "citations of older copies of the paper that cites",
}


def keep_newest(connection: duckdb.DuckDBPyConnection, tables: dict[str, duckdb.DuckDBPyRelation]) -> dict[str, str]:
    """Create a view of each table, one bucket, with the rows that count; return reason → query for how many do not."""
    works = any(SHARD in rows.columns for rows in tables.values())
    for name, rows in tables.items():
        rows.create_view(f"all_{name}" if works else name)
    if not works:
        return {}
    connection.execute(
        "CREATE TEMP TABLE newest AS SELECT corpusid, max(shard::VARCHAR) AS shard FROM all_ingested_papers "
        "GROUP BY corpusid HAVING count(*) > 1"
    )
    reasons = {}
    for name in tables:
        paper = BUCKET_KEYS[name.removeprefix("ingested_")]
        taken = "NOT rows.left_out" if name == "ingested_papers" else "true"
        older = "rows.shard::VARCHAR < newest.shard"
        joined = f"FROM all_{name} AS rows LEFT JOIN newest ON newest.corpusid = rows.{paper}"
        unwanted = f"{SHARD}, left_out" if name == "ingested_papers" else SHARD
        connection.execute(
            f"CREATE VIEW {name} AS SELECT rows.* EXCLUDE ({unwanted}) {joined} "
            f"WHERE {taken} AND NOT coalesce({older}, false)"
        )
        if name != "ingested_papers" or "ingested_abstracts" in tables:  # beside citations, papers only say what counts
            reasons[_OLDER[name]] = f"SELECT count(*) {joined} WHERE {taken} AND {older}"
    return reasons


_UNSEEN = r"\v\x00-\x1f\x7f\x85"
_OTHER_BLANKS = r"\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WHITE_SPACE = rf"[ {_UNSEEN}{_OTHER_BLANKS}]{{2,}}|[{_UNSEEN}{_OTHER_BLANKS}]"
"""All but single blanks, which stay as they are: to replace each of them as well would take five times as long."""
APOSTROPHE = "'"
_PARTICLES = r"(?:(?:[Vv]an|[Vv]on|[Dd]e|der|den|del|della|[Dd]i|da|du|[Ll]a|[Ll]e|el|al|bin|ter|ten|dos|das) )*"
_YEAR = r"(?:1[6-9]|20)\d\d[a-z]?"
_YEARS = rf"{_YEAR}(?: ?[,;/–-] ?(?:{_YEAR}|[a-z]\b))*"
_PAGES = r"(?: ?[,:] ?(?:pp?\.? ?)?\d[\d–-]*)?"
_WORDS_BEFORE = (
    r"(?:(?:see|[Ee]\. ?g\.|[Ii]\. ?e\.|eg|ie|cf\.?|also|for example|for instance|reviewed (?:in|by)|as in|and|but|in"
    r"|refs?\.?),? ?)*"
)
_NAME = rf"{_PARTICLES}\p{{Lu}}[\p{{L}}\p{{M}}'’-]+"
_OTHERS = r",? (?:et ?al\.?|and (?:others|colleagues|co-?workers))"
_AUTHORS = rf"{_NAME}(?:(?:, {_NAME})*(?:{_OTHERS}|,? (?:and|&) {_NAME}(?:{_OTHERS})?))?"
_LISTED_NAME = rf"{_PARTICLES}\p{{Lu}}[\p{{L}}\p{{M}}\d'’./&-]*"
_LISTED_AUTHORS = rf"{_LISTED_NAME}(?:(?:,? (?:and|&) |, | ){_LISTED_NAME})*(?:{_OTHERS})?"
_LISTED = rf"{_LISTED_AUTHORS},? ?\(?{_YEARS}\)?{_PAGES}"
_NUMBER = r"[1-9]\d{0,3}[a-z]?"
_KEY = r"\p{Lu}[\p{L}+]{0,9}\d\d[a-z]?"

_REPLACED = (
    (rf"\[ ?{_WORDS_BEFORE}{_NUMBER}(?: ?[,;–—−-] ?{_NUMBER})* ?\]", " "),
    (rf"\[ ?{_KEY}(?: ?[,;] ?{_KEY})* ?\]", " "),
    (rf"[(\[] ?{_WORDS_BEFORE}{_LISTED}(?: ?[;,] ?{_WORDS_BEFORE}{_LISTED})* ?[)\]]", " "),
    (rf"(^|[^\p{{L}}]){_AUTHORS},? ?[(\[] ?{_YEARS}{_PAGES} ?[)\]]", r"\1 "),
    (r"  +", " "),
    (rf"[(\[][ ,;.]*{_WORDS_BEFORE}[ ,;.]*[)\]]", " "),
    (r"  +", " "),
    (r" ([,.;:!?)\]])", r"\1"),
    (r"([(\[]) ", r"\1"),
    (r"([,;])[,; ]*([,;.])", r"\2"),
    (r"^[ ,;:.)\]]+|[ ,;:(\[]+$", ""),
)
"""Regular expressions and what stands for what they find, in this order; white space is single blanks by then."""


def with_single_blanks(text: str) -> str:
    """SQL expression: a text whose white space, and what else cannot be seen, is single blanks."""
    return f"trim(regexp_replace({text}, '{_WHITE_SPACE}', ' ', 'g'))"


def without_markers(text: str) -> str:
    """SQL expression: a text with single blanks as it is without citation markers."""
    cleaned = text
    for pattern, instead in _REPLACED:
        cleaned = f"regexp_replace({cleaned}, '{pattern.replace(APOSTROPHE, 2 * APOSTROPHE)}', '{instead}', 'g')"
    # A sentence without a bracket holds no marker.
    return f"CASE WHEN contains({text}, '[') OR contains({text}, '(') THEN {cleaned} ELSE {text} END"


KEPT, UNREADABLE, EMPTY, SHORT, LONG = range(5)
REASONS = {
    UNREADABLE: "lists of contexts that cannot be read (broken escapes, not UTF-8)",
    EMPTY: "contexts that are empty, or nothing but citation markers",
    SHORT: "contexts of fewer words than min_words",
    LONG: "contexts of more words than max_words",
}
COPIES = "further copies of a context of a citation"
ROWS_AT_ONCE = 20_000
_SENTENCES = f"""
    CREATE TEMP TABLE sentences AS
    WITH lists AS (
        SELECT citing, cited, TRY(from_json(decode(contexts), '["VARCHAR"]')) AS texts FROM ingested
    ), spaced AS (
        SELECT citing, cited, texts IS NULL AS is_unreadable,
            {with_single_blanks("unnest(coalesce(texts, [NULL]))")} AS text
        FROM lists
    ), cleaned AS (
        SELECT citing, cited, is_unreadable, {without_markers("text")} AS sentence FROM spaced
    ), judged AS (
        SELECT *, 1 + length(sentence) - length(replace(sentence, ' ', '')) AS words FROM cleaned
    ), told AS (
        SELECT *, CASE
            WHEN is_unreadable THEN {UNREADABLE}
            WHEN sentence IS NULL OR sentence = '' THEN {EMPTY}
            WHEN words < $min_words THEN {SHORT}
            WHEN words > $max_words THEN {LONG}
            ELSE {KEPT} END::UTINYINT AS outcome
        FROM judged
    )
    SELECT citing, cited, outcome, CASE WHEN outcome = {KEPT} THEN sentence END AS sentence FROM told
"""
_KEPT = f"""
    SELECT citing, {sql_of_text_id("sentence", "''", is_query=True)} AS context, cited, sentence
    FROM sentences WHERE outcome = {KEPT} ORDER BY citing, context, cited
"""


def merge_contexts(
    settings: GivenAsJson[ContextSettings],
    *,
    ingested: Annotated[Path, typer.Option(help="Folder of the table ingested_contexts.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write a bucket of contexts: the sentences of each citing paper, cleaned, each once, with what they cite."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        files = verified_files(ingested, "ingested_contexts", bucket=bucket)
        connection.read_parquet(files).filter(f"bucket = {bucket}").create_view("ingested")
        connection.execute(_SENTENCES, {"min_words": settings.min_words, "max_words": settings.max_words})
        written = write_table(output, "contexts", _united(connection.sql(_KEPT).to_arrow_reader(ROWS_AT_ONCE)))
        counts = dict(connection.execute("SELECT outcome, count(*) FROM sentences GROUP BY outcome").fetchall())
        connection.read_parquet(str(output)).create_view("written")
        united = number(connection, "SELECT coalesce(sum(len(cited)), 0)::BIGINT FROM written") if written else 0
    left_out = {reason: counts.get(outcome, 0) for outcome, reason in REASONS.items()}
    write_omissions(omissions, {**left_out, COPIES: counts.get(KEPT, 0) - united})


def _united(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The rows of `contexts`, from rows of one cited paper each, in the order of citing, context and cited."""
    rest: pa.Table | None = None
    for batch in chain(reader, [None]):
        rows = pa.Table.from_batches([batch] if batch is not None else [], reader.schema)
        rows = pa.concat_tables([rest, rows]) if rest is not None else rows
        ids = {name: rows[name].to_numpy() for name in ("citing", "context", "cited")}
        is_first = _differs(ids["citing"]) | _differs(ids["context"])
        is_new = is_first | _differs(ids["cited"])
        starts = np.flatnonzero(is_first)
        # The last sentence may go on in the next batch.
        end = len(rows) if batch is None else int(starts[-1]) if len(starts) else 0
        starts, rest = starts[starts < end], rows.slice(end)
        if len(starts):
            kept = np.flatnonzero(is_new[:end])
            offsets = np.append(np.searchsorted(kept, starts), len(kept)).astype(np.int32)
            yield pa.record_batch(
                {
                    "citing": ids["citing"][starts],
                    "context": ids["context"][starts],
                    "cited": pa.ListArray.from_arrays(offsets, ids["cited"][kept]),
                    "sentence": rows["sentence"].take(pa.array(starts)).combine_chunks(),
                }
            )


def _differs(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones(min(len(ids), 1), dtype=bool), ids[1:] != ids[:-1]])
