"""What reads citations and abstracts from JSON, against Python's own parser, on lines of every kind."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import igzip

from cocite.corpus.ingest.accounting import Tally
from cocite.corpus.ingest.citation_scanner import U, after_value, overlapping_words
from cocite.corpus.ingest.citations import read_citations
from cocite.corpus.ingest.unpacking import unpack
from cocite.corpus.ingest.works import MACROS

BITS = {"background": 1, "methodology": 2, "result": 4}

whole_numbers = st.integers(0, 2**63 - 1) | st.integers(0, 10)
ids = whole_numbers | whole_numbers.map(str) | st.none()
texts = st.text(max_size=40) | st.sampled_from(['say "background"', "back\\slash", "[{", "\\", '"', "é\u2028"])
intents = st.sampled_from(["background", "methodology", "result", "results", "Result", ""])
nested = st.recursive(
    texts | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=6,
)
records = st.fixed_dictionaries(
    {"citingcorpusid": ids, "citedcorpusid": ids},
    optional={
        "citationid": ids,
        "isinfluential": st.booleans() | st.none(),
        "contexts": st.lists(texts, max_size=3) | st.none(),
        "intents": st.none() | st.lists(intents, max_size=3) | st.lists(st.none() | st.lists(intents, max_size=2)),
        "updated": texts,
        "intent": nested,
        "isinfluentia": nested,
    },
)
spaces = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :  "), (" ,\t", " :\r ")])
styles = st.fixed_dictionaries({"separators": spaces, "ensure_ascii": st.booleans()})


@st.composite
def lines(draw) -> bytes:
    record = draw(records)
    keys = draw(st.permutations(list(record)))
    return json.dumps({key: record[key] for key in keys}, **draw(styles)).encode(errors="surrogatepass")


def read(shard: bytes) -> tuple[Counter, Tally]:
    tally = Tally(dataset="citations", shard="x")
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.gz")
        path.write_bytes(igzip.compress(shard))
        batches = list(read_citations(unpack(path), tally, buckets=3, keep_ids=True))
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist()), tally


def expected_row(record: dict) -> tuple | None:
    keys = ("citingcorpusid", "citedcorpusid", "citationid")
    citing, cited, number = (None if record.get(key) is None else int(record[key]) for key in keys)
    if citing is None or cited is None or citing == cited:
        return None
    entries = ([entry] if isinstance(entry, str) else entry or [] for entry in record.get("intents") or [])
    named = {name for entry in entries for name in entry}
    traits = sum(bit for name, bit in BITS.items() if name in named) + 8 * (record.get("isinfluential") is True)
    return (citing % 3, number, citing, cited, traits + 16 * bool(named - set(BITS)))


@given(st.lists(lines(), min_size=1, max_size=6))
def test_valid_lines_are_read_as_python_reads_them(given_lines):
    rows, tally = read(b"\n".join(given_lines) + b"\n")
    expected = [expected_row(json.loads(line)) for line in given_lines]
    assert rows == Counter(row for row in expected if row)
    assert tally.lines == len(given_lines)
    assert tally.first_line is None


@given(lines(), st.data())
def test_a_damaged_line_is_never_read_as_another_citation(line, data):
    place = data.draw(st.integers(0, len(line) - 1))
    damaged = data.draw(
        st.sampled_from([line[:place], line[place:], line[:place] + line[place + 1 :]])
        | st.binary(min_size=1, max_size=2).map(lambda put: line[:place] + put + line[place + 1 :])
    )
    rows, tally = read(b'{"citingcorpusid":1,"citedcorpusid":2}\n' + damaged.replace(b"\n", b" ") + b"\n")
    assert tally.lines == 2
    rows -= Counter({(1, None, 1, 2, 0): 1})
    try:
        record = json.loads(damaged.replace(b"\n", b" "))
        is_record = isinstance(record, dict) and {"citingcorpusid", "citedcorpusid"} <= record.keys()
        expected = expected_row(record) if is_record else None
    except (ValueError, TypeError, OverflowError):
        # It may be damaged where nobody reads, as in a context; then the ids are those of the whole line.
        assert all(str(row[2]).encode() in line and str(row[3]).encode() in line for row in rows)
    else:
        assert set(rows) <= {expected}


TEXTS = st.text('"\\{}[],: a', max_size=80)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda values: st.lists(values, max_size=5) | st.dictionaries(TEXTS, values, max_size=4),
    max_leaves=12,
)


def end_of(text, start):
    """Where the kernel says that the value at `start` ends."""
    words = overlapping_words(np.frombuffer(text + bytes(128), dtype=np.uint8).copy())
    return int(after_value(words, U(start), U(len(text))))


@given(VALUES, st.integers(0, 70), st.text(",]} \n", min_size=1, max_size=3))
def test_what_follows_a_value_is_found_whatever_the_value_holds(value, start, rest):
    written = json.dumps(value, separators=(",", ":")).encode()
    assert end_of(b" " * start + written + rest.encode(), start) == start + len(written)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 40))
def test_a_list_that_is_not_closed_ends_with_the_text(texts, cut):
    written = json.dumps(texts).encode()
    whole = written[: max(1, len(written) - cut)]
    assert end_of(whole, 0) == len(whole)


def abstracts_of(*indexes):
    """The abstract of each inverted index, as it comes of works."""
    given = pa.table({"place": range(len(indexes)), "inverted": pa.array(indexes, pa.string())})
    with duckdb.connect() as connection:
        connection.execute(MACROS)
        connection.register("given", given)
        return [text for (text,) in connection.sql("SELECT abstract_of(inverted) FROM given ORDER BY place").fetchall()]


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.sampled_from(["a", "b", "", '"', "\\"])
PLACES = st.none() | st.lists(st.integers(0, 12) | st.integers(0, 40_000), max_size=4, unique=True)
STYLE = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans(), "separators": spaces, "indent": st.sampled_from([None, 1])}
)


@given(st.lists(st.tuples(st.dictionaries(WORDS, PLACES, max_size=30), STYLE), min_size=1, max_size=4))
def test_an_index_gives_its_words_by_position_and_word(indexes):
    texts = [json.dumps(index, **style) for index, style in indexes]
    placed = [sorted((place, word) for word, places in index.items() for place in places or []) for index, _ in indexes]
    assert abstracts_of(*texts) == [" ".join(word for _, word in words) for words in placed]


@pytest.mark.parametrize(
    ("index", "abstract"),
    [
        ('{"is": [1], "This": [0], "text": [9]}', "This is text"),
        ('{"a": [0, 2], "b": [1]}', "a b a"),
        ('{"b": [0], "a": [0]}', "a b"),
        ('{"a": null, "b": [1]}', "b"),
        ('{"caf\\u00e9": [0], "\\ud83d\\ude00": [1]}', "café 😀"),
        ("{}", ""),
        ("null", None),
        (None, None),
        ("[1]", None),
        ('{"a": 1}', None),
        ('{"a": [0', None),
    ],
)
def test_usual_indexes_and_what_is_none(index, abstract):
    assert abstracts_of(index) == [abstract]


def test_an_abstract_of_many_words_is_read_as_well():
    places = np.random.default_rng(1).permutation(40_000).tolist()
    (text,) = abstracts_of(json.dumps({f"w{place}": [place] for place in places}))
    assert text.split() == [f"w{place}" for place in range(40_000)]
