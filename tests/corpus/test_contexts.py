"""Contexts: from the lines of shards to sentences without markers, with the papers that they cite."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus.conftest import write_lines
from tests.corpus.made import LIMITS, SHARD, citation, left_out, settings, write_rows
from tests.corpus.test_scanners import lines

from cocite.config.source import ContextSettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.core.written_ids import text_id
from cocite.corpus.ingest import citations
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.release_shards import ingest_shards
from cocite.corpus.ingest.sentences import COPIES, REASONS, SHORT, merge_contexts, with_single_blanks, without_markers
from cocite.corpus.release.manifest import Shard

WORDS = "one two three four five six"


class Release:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ingest(self, *shards, buckets=1, with_contexts=True, part=0) -> dict[str, int]:
        """Ingest shards of lines, with their contexts; return the account of these."""
        folder, name = self.folder / f"shards-{part}", f"{part}.parquet"
        paths = [write_lines(folder / f"{number}-{SHARD}", *rows) for number, rows in enumerate(shards)]
        listed = [Shard(name=path.name, bytes=path.stat().st_size) for path in paths]
        written = {"output": self.folder / "citations" / name, "report": self.folder / "report" / name}
        contexts = self.folder / "contexts" / name if with_contexts else None
        ingest_shards(settings("citations", buckets=buckets), folder, listed, **written, contexts=contexts)
        counts: Counter = Counter()
        for row in read_table(written["report"], "ingest_report").to_pylist():
            if row["dataset"] == "contexts":
                counts[row["outcome"]] += row["lines"]
        return dict(+counts)

    def ingested(self, name="contexts") -> list[tuple]:
        return [tuple(row.values()) for row in pq.read_table(self.folder / name).to_pylist()]

    def merge(self, bucket=0, until=None, **bounds) -> list[dict]:
        written = {"output": self.folder / f"merged/{bucket}.parquet", "omissions": self.folder / "omissions.parquet"}
        given = {"ingested": self.folder / "contexts", "papers": self.folder / "papers", "until": until}
        merge_contexts(ContextSettings(**bounds), **given, bucket=bucket, **written, **LIMITS)
        return read_table(written["output"], "contexts").to_pylist()

    @property
    def left_out(self) -> dict[str, int]:
        return left_out(self.folder / "omissions.parquet")


@pytest.fixture
def release(tmp_path) -> Release:
    return Release(tmp_path)


def with_contexts(citing, cited, *texts, **more) -> dict:
    return citation(citing, cited, contexts=list(texts), **more)


def sentences(rows) -> dict[str, list[int]]:
    return {row["sentence"]: row["cited"] for row in rows}


@given(given_lines=st.lists(lines(), min_size=1, max_size=8), buckets=st.integers(1, 3))
def test_the_contexts_of_each_kept_citation_are_those_that_python_reads(tmp_path, given_lines, buckets):
    release = Release(tmp_path)
    account_of = release.ingest(given_lines, buckets=buckets)
    expected, kept = [], 0
    for record in map(json.loads, given_lines):
        ends = [record[key] and int(record[key]) for key in ("citingcorpusid", "citedcorpusid")]
        if None not in ends and ends[0] != ends[1]:
            kept += 1
            if record.get("contexts"):
                expected.append((ends[0] % buckets, *ends, tuple(record["contexts"])))
    found = [(bucket, citing, cited, tuple(json.loads(text))) for bucket, citing, cited, text in release.ingested()]
    assert Counter(found) == Counter(expected)
    assert account_of.get("kept", 0) == len(expected)
    assert sum(account_of.values()) == kept


@given(line=lines(), data=st.data())
def test_citations_are_the_same_with_contexts_and_without_also_from_damaged_lines(tmp_path, line, data):
    place = data.draw(st.integers(0, len(line) - 1))
    put = data.draw(st.binary(max_size=2))
    damaged = (line[:place] + put + line[place + 1 :]).replace(b"\n", b" ")
    release = Release(tmp_path)
    release.ingest([citation(1, 2), line, damaged])
    kept, report = release.ingested("citations"), release.ingested("report")
    release.ingest([citation(1, 2), line, damaged], with_contexts=False)
    assert release.ingested("citations") == kept
    assert [row for row in report if row[0] == "citations"] == release.ingested("report")


def test_contexts_beyond_what_memory_takes_are_cut_by_bucket_in_several_turns(release, monkeypatch):
    monkeypatch.setattr(citations, "LISTS_AT_ONCE", 4)
    monkeypatch.setattr(citations, "BYTES_TO_GATHER", 640)
    rows = [with_contexts(n, 100, f"{WORDS} {n} {'x' * n}") for n in range(60)]
    odd = [json.dumps(row).replace('"citing', '"\\u0063iting').encode() for row in rows[:30]]
    release.ingest(rows, odd, buckets=3)
    assert pq.ParquetFile(release.folder / "contexts/0.parquet").num_row_groups > 10
    found = sorted((citing, json.loads(text)) for _, citing, _, text in release.ingested())
    assert found == sorted((row["citingcorpusid"], row["contexts"]) for row in [*rows, *rows[:30]])
    assert all(bucket == citing % 3 for bucket, citing, _, _ in release.ingested())


@pytest.mark.parametrize(
    ("contexts", "outcome"),
    [
        *((text, citations.NO_LIST) for text in (b'"text"', b"5", b"true", b'{"a": ["b"]}', b'["a", 5]', b'["a",]')),
        *((text, citations.NO_LIST) for text in (b'["a", ["b"]]', b'[{"a": 1}]')),
        *((text, citations.WITHOUT) for text in (b"null", b"[]", b"[ ]", b"[null]", b"[null, null]")),
    ],
)
def test_contexts_that_are_no_list_of_texts_or_empty_are_counted_and_their_citation_stays(release, contexts, outcome):
    line = b'{"citingcorpusid":1,"contexts":' + contexts + b',"citedcorpusid":2}'
    last = b'{"citingcorpusid":1,"citedcorpusid":4,"contexts":' + contexts + b"}"
    assert release.ingest([line, with_contexts(1, 3, WORDS), last]) == {"kept": 1, outcome: 2}
    assert [row[1:4] for row in release.ingested("citations")] == [(None, 1, 2), (None, 1, 3), (None, 1, 4)]
    assert [row[1:3] for row in release.ingested()] == [(1, 3)]


def test_citations_without_contexts_give_an_empty_table(release):
    assert release.ingest([citation(1, 3)]) == {citations.WITHOUT: 1}
    assert release.merge() == []


def test_an_account_of_lines_is_not_thinned_by_that_of_contexts(release):
    release.ingest([with_contexts(1, 2, WORDS), with_contexts(1, 3, WORDS), b"broken"])
    with pytest.raises(Exception, match="1 of 3 lines are malformed"):
        account(release.folder / "report/0.parquet", malformed=0.3, omissions=release.folder / "o.parquet")


def test_the_same_sentence_in_several_records_is_one_that_cites_several_papers(release):
    first = [with_contexts(1, 3, WORDS, f"{WORDS} alone"), with_contexts(1, 2, WORDS), with_contexts(4, 2, WORDS)]
    release.ingest(first, [with_contexts(1, 3, WORDS)])
    release.ingest([with_contexts(1, 2, f"  {WORDS}\t[12]. "), with_contexts(1, 5, f"{WORDS}.")], part=1)
    rows = release.merge()
    assert [(row["citing"], row["sentence"], row["cited"]) for row in rows if row["citing"] == 4] == [(4, WORDS, [2])]
    expected = {WORDS: [2, 3], f"{WORDS} alone": [3], f"{WORDS}.": [2, 5]}
    assert sentences(row for row in rows if row["citing"] == 1) == expected
    assert all(row["context"] == text_id(row["sentence"], None, is_query=True) for row in rows)
    assert release.left_out == {COPIES: 1}


def test_texts_that_are_empty_too_short_too_long_or_unreadable_are_counted(release):
    broken = b'{"citingcorpusid":1,"citedcorpusid":2,"contexts":["a \\q b c d e", "one two three four five"]}'
    latin = b'{"citingcorpusid":1,"citedcorpusid":3,"contexts":["caf\xe9 two three four five"]}'
    half = b'{"citingcorpusid":1,"citedcorpusid":4,"contexts":["\\ud83d two three four five"]}'
    texts = ["", " \u3000\n", "[12]", "(Doe, 2020)", None, "one two", "word " * 10_000, "one two three"]
    release.ingest([broken, latin, half, with_contexts(1, 5, *texts)])
    assert sentences(release.merge(min_words=3, max_words=50)) == {"one two three": [5]}
    assert release.left_out == dict(zip(REASONS.values(), [3, 5, 1, 1], strict=True))


def test_bounds_count_words_without_markers_and_include_themselves(release):
    release.ingest([with_contexts(1, 2, "a b c (Doe et al., 2019; Roe, 2020).", "a b c d", "a b", "a b c d e")])
    assert set(sentences(release.merge(min_words=3, max_words=4))) == {"a b c.", "a b c d"}
    assert release.left_out[REASONS[SHORT]] == 1


@pytest.mark.parametrize("style", [(",", ":"), (" , ", " : ")])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_sentences_are_unescaped_whatever_their_spelling(release, style, is_ascii):
    text = 'Über "naïve" models\\of Größe 😀 we say\u2028nothing\t'
    line = json.dumps(with_contexts(1, 2, text), separators=style, ensure_ascii=is_ascii).encode()
    release.ingest([line])
    assert set(sentences(release.merge())) == {'Über "naïve" models\\of Größe 😀 we say nothing'}


def test_each_bucket_has_its_own_rows_and_an_empty_one_has_none(release):
    release.ingest([with_contexts(n, 100, WORDS) for n in (3, 4, 6)], buckets=4)
    found = [[row["citing"] for row in release.merge(bucket)] for bucket in range(4)]
    assert found == [[4], [], [6], [3]]


WORD = st.sampled_from(["alpha", "beta", "gamma", "delta", "(epsilon)"])
PLAIN = st.lists(WORD, min_size=1, max_size=6).map(" ".join)


ROWS = st.lists(st.tuples(st.integers(1, 4), st.integers(5, 9), st.lists(PLAIN, max_size=3)), max_size=6)


@given(shards=st.lists(ROWS, min_size=1, max_size=3), least=st.integers(1, 3))
def test_sentences_without_markers_are_what_dictionaries_give(tmp_path, shards, least):
    release = Release(tmp_path)
    release.ingest(*([with_contexts(*ends, *texts) for *ends, texts in rows] or [citation(1, 2)] for rows in shards))
    expected: dict[tuple[int, str], set[int]] = defaultdict(set)
    given = [(citing, cited, text) for rows in shards for citing, cited, texts in rows for text in texts]
    enough = [row for row in given if len(row[2].split()) >= least]
    for citing, cited, text in enough:
        expected[citing, text].add(cited)
    rows = release.merge(min_words=least)
    found = {(row["citing"], row["sentence"]): row["cited"] for row in rows}
    assert found == {key: sorted(cited) for key, cited in expected.items()}
    assert len(rows) == len(expected)
    counted = {REASONS[SHORT]: len(given) - len(enough), COPIES: len(enough) - sum(map(len, expected.values()))}
    assert release.left_out == {reason: count for reason, count in counted.items() if count}


QUERY = f"SELECT {without_markers('text')} FROM (SELECT {with_single_blanks('$text')} AS text)"


def clean(text: str) -> str:
    ((cleaned,),) = duckdb.execute(QUERY, {"text": text}).fetchall()
    return cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Trees were studied [12].", "Trees were studied."),
        ("Trees [3, 4–6], grass [ 47,51-54 ] and moss [7a; 8]", "Trees, grass and moss"),
        ("We use BERT [DCLT19] and GloVe [PSM14, MCCD13].", "We use BERT and GloVe."),
        ("Trees grow (Smith et al., 2019; Doe, 2020a, b).", "Trees grow."),
        ("Trees grow (see, e.g., van Dyk and Lee, 2001, p. 7) fast", "Trees grow fast"),
        ("Trees grow [Smith et al., 2019] fast", "Trees grow fast"),
        ("Trees (Müller 1999a,b) and moss (O’Brien & Ångström, 2003; WHO, 2010).", "Trees and moss."),
        ("Moss was seen (de Vries et al., 2002; ICA/ILO, 2005; J. B. Li, 1999).", "Moss was seen."),
        ("Smith et al. (2019) show that trees grow.", "show that trees grow."),
        ("According to Smith and Doe (2019), trees grow.", "According to, trees grow."),
        ("as van der Berg, Lee and colleagues (1998a, 2001) say", "as say"),
        ("the study of Njoroge et al, (2013) where", "the study of where"),
        ("Trees (see [12]) and moss (see also [3] and [4]).", "Trees and moss."),
        ("Trees [1], [2], [3].", "Trees."),
        ("[12] Trees grow", "Trees grow"),
        ("[12]", ""),
        ("(Doe, 2020)", ""),
        (" \u3000one\ttwo\r\nthree\x00four \u2028 five\xa0", "one two three four five"),
    ],
)
def test_a_marker_of_any_style_goes_with_its_names_and_its_brackets_and_blanks_become_single_ones(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "Values in [0, 1] and [0.5, 2] were taken.",
        "As in equation (3) and Table (2), trees (n = 2000) grow.",
        "In 2019, Smith grew trees (and moss) in the USA (Fig. 2).",
        "The token [CLS] and the set {1, 2} stay.",
        "It holds for x(1999) and for Smith 2019.",
        "Trees, which grow; moss: it does not. Does it?",
    ],
)
def test_what_is_no_marker_stays(text):
    assert clean(text) == text


def test_the_official_sample_is_read_as_a_loop_over_its_lines_reads_it(release, read_rows, shared):
    records = read_rows(shared / "data/s2ag-samples/citations")
    # Many of its citations have no cited id, and so no row.
    release.ingest([record | {"citedcorpusid": str(number)} for number, record in enumerate(records)])
    found = {cited: json.loads(text) for _, _, cited, text in release.ingested()}
    assert found == {number: record["contexts"] for number, record in enumerate(records) if record["contexts"]}
    rows = release.merge()
    assert len(rows) > 30
    assert not any(mark in row["sentence"] for row in rows for mark in ("[47]", "(Karim, 2005", "Njoroge et al"))


def test_sentences_of_papers_from_after_the_last_year_of_the_corpus_are_left_out_and_counted(release):
    citing = {1: 2018, 2: 2019, 3: 2020, 4: None}
    texts = {paper: f"{WORDS} of {paper}" for paper in [*citing, 5]}  # paper 5 has no record
    release.ingest([with_contexts(paper, 9, text) for paper, text in texts.items()])
    papers = [{"bucket": 0, "corpusid": paper, "fields": [], "year": year} for paper, year in citing.items()]
    write_rows(release.folder / "papers/0.parquet", "ingested_papers", papers)
    assert {row["citing"] for row in release.merge(until=2019)} == {1, 2, 4, 5}
    assert release.left_out == {"copies of contexts from after corpus.until": 1}
    assert {row["citing"] for row in release.merge()} == {1, 2, 3, 4, 5}
    with pytest.raises(InputError, match=r"corpus\.until is 2021, and papers are from 2018 to 2020"):
        release.merge(until=2021)
