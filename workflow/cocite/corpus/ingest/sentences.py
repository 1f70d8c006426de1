"""Merge one bucket of the contexts that were ingested: each sentence of a citing paper once, with the papers it cites.

Sentences are compared, and measured, without their citation markers, names included: numbers in square brackets,
`[12]`, `[3, 4–6]`, and keys such as `[BCV13]` (an interval such as `[1, 2]` is removed too); authors and years in
brackets, `(Smith et al., 2019; Doe, 2020a, b)`, or `Smith et al. (2019)`. But `(3)` is as often an equation, and stays.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from cocite.config.settings import GivenAsJson
from cocite.config.source import ContextSettings
from cocite.core.database import connect, number
from cocite.core.options import Bucket, MemoryMb, Omissions, Output, Threads, Until
from cocite.core.tables.files import verified_files, write_omissions, write_table
from cocite.core.written_ids import sql_of_text_id
from cocite.corpus.ingest.merge import leave_out_later

_UNSEEN = r"\v\x00-\x1f\x7f\x85"
_OTHER_BLANKS = r"\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WHITE_SPACE = rf"[ {_UNSEEN}{_OTHER_BLANKS}]{{2,}}|[{_UNSEEN}{_OTHER_BLANKS}]"
"""All white space except single spaces, which stay: replacing each of them would take five times as long."""
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
"""Regular expressions and their replacements, in this order; white space is already single spaces."""


def with_single_blanks(text: str) -> str:
    """SQL expression: a text with all white space and invisible characters as single spaces."""
    return f"trim(regexp_replace({text}, '{_WHITE_SPACE}', ' ', 'g'))"


def without_markers(text: str) -> str:
    """SQL expression: a text with single spaces, without citation markers."""
    cleaned = text
    for pattern, instead in _REPLACED:
        cleaned = f"regexp_replace({cleaned}, '{pattern.replace(APOSTROPHE, 2 * APOSTROPHE)}', '{instead}', 'g')"
    # A sentence without a bracket has no marker.
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
        SELECT citing, cited, TRY(from_json(decode(contexts), '["VARCHAR"]')) AS texts FROM ingested_contexts
    ), spaced AS (
        SELECT citing, cited, texts IS NULL AS is_unreadable,
            {with_single_blanks("unnest(coalesce(texts, [NULL]))")} AS text
        FROM lists
    ), cleaned AS (SELECT citing, cited, is_unreadable, {without_markers("text")} AS sentence FROM spaced
    ), judged AS (SELECT *, 1 + length(sentence) - length(replace(sentence, ' ', '')) AS words FROM cleaned
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
    papers: Annotated[Path, typer.Option(help="Folder of the table ingested_papers, read if there is a last year.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    until: Until = None,
) -> None:
    """Write a bucket of contexts: the sentences of each citing paper, cleaned, each once, with what they cite.

    Raises `InputError` if no paper has a year, or `until` is before or after all years.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        folders = {"ingested_contexts": ingested} | ({} if until is None else {"ingested_papers": papers})
        for name, folder in folders.items():
            files = verified_files(folder, name, bucket=bucket)
            connection.read_parquet(files).filter(f"bucket = {bucket}").create_view(name)
        later = {} if until is None else leave_out_later(connection, ["contexts"], papers, until)
        from_later = {reason: number(connection, query) for reason, query in later.items()}
        connection.execute(_SENTENCES, {"min_words": settings.min_words, "max_words": settings.max_words})
        written = write_table(output, "contexts", _united(connection.sql(_KEPT).to_arrow_reader(ROWS_AT_ONCE)))
        counts = dict(connection.execute("SELECT outcome, count(*) FROM sentences GROUP BY outcome").fetchall())
        connection.read_parquet(str(output)).create_view("written")
        united = number(connection, "SELECT coalesce(sum(len(cited)), 0)::BIGINT FROM written") if written else 0
    left_out = {reason: counts.get(outcome, 0) for outcome, reason in REASONS.items()}
    write_omissions(omissions, {**left_out, **from_later, COPIES: counts.get(KEPT, 0) - united})


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
        # The last sentence may continue in the next batch.
        end = len(rows) if batch is None else int(starts[-1]) if len(starts) else 0
        starts, rest = starts[starts < end], rows.slice(end)
        if len(starts):
            kept = np.flatnonzero(is_new[:end])
            offsets = np.append(np.searchsorted(kept, starts), len(kept)).astype(np.int32)
            columns: dict[str, Any] = {name: ids[name][starts] for name in ("citing", "context")}
            columns["cited"] = pa.ListArray.from_arrays(offsets, ids["cited"][kept])
            columns["sentence"] = rows["sentence"].take(pa.array(starts)).combine_chunks()
            yield pa.record_batch(columns)


def _differs(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones(min(len(ids), 1), dtype=bool), ids[1:] != ids[:-1]])
