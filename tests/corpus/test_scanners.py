"""The kernels that read citations and abstracts from JSON, against Python's own parser, on lines of every kind."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from isal import igzip

from cocite.corpus.ingest.accounting import MalformedError, Tally
from cocite.corpus.ingest.citations import read_citations
from cocite.corpus.ingest.json_texts import LEFT_TO_PYTHON, NO_INDEX, abstracts_of
from cocite.corpus.ingest.navigating import U, after_value, overlapping_words
from cocite.corpus.ingest.unpacking import unpack
from cocite.corpus.ingest.work_readers import words_of
from cocite.corpus.ingest.work_records import abstract_of

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
styles = st.fixed_dictionaries(
    {"separators": st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :  ")]), "ensure_ascii": st.booleans()}
)


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
        blocks = unpack(path)
        batches = list(read_citations(blocks, tally, buckets=3, keep_ids=True))
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return Counter(rows), tally


def expected_row(record: dict) -> tuple | None:
    citing, cited, number = (
        None if record.get(key) is None else int(record[key])
        for key in ("citingcorpusid", "citedcorpusid", "citationid")
    )
    if citing is None or cited is None or citing == cited:
        return None
    named = {
        name for entry in record.get("intents") or [] for name in ([entry] if isinstance(entry, str) else entry or [])
    }
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


def by_kernel(*texts):
    """The abstract of each index; LEFT_TO_PYTHON where the kernel does not say."""
    words, bounds = words_of(pa.array(texts, pa.string()))
    text, ends, outcomes = abstracts_of(words, (bounds[:-1], bounds[1:]))
    written = [text[first:last].tobytes().decode() for first, last in pairwise(ends)]
    of_outcome = {NO_INDEX: lambda _: None, LEFT_TO_PYTHON: lambda _: LEFT_TO_PYTHON}
    return [of_outcome.get(int(outcome), str)(one) for outcome, one in zip(outcomes, written, strict=True)]


def by_definition(pairs):
    """The words of (word, positions) in the order of (position, word), each once at a position."""
    placed = {(place, word) for word, places in pairs for place in places or [] if place is not None}
    return " ".join(word for _, word in sorted(placed))


def as_json(pairs, *, ascii_only, separators, blank):
    """An object whose keys may repeat."""
    item, colon = separators
    dump = [
        json.dumps(word, ensure_ascii=ascii_only) + colon + json.dumps(places, separators=(item, ":"))
        for word, places in pairs
    ]
    return "{" + blank + (item + blank).join(dump) + blank + "}"


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.sampled_from(
    ["a", "b", "the", "", '"', "\\"]
)
PLACES = st.none() | st.lists(st.none() | st.integers(0, 12) | st.integers(0, 40_000), max_size=4)
PAIRS = st.lists(st.tuples(WORDS, PLACES), max_size=30)
STYLE = st.fixed_dictionaries(
    {
        "ascii_only": st.booleans(),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]),
        "blank": st.sampled_from(["", " ", "\n\t"]),
    }
)


@given(st.lists(st.tuples(PAIRS, STYLE), min_size=1, max_size=4))
@example([([("b", [0, 2]), ("a", [0]), ("b", [1, 0])], {"ascii_only": True, "separators": (",", ":"), "blank": ""})])
@example([([("\U0001f600é", [3])], {"ascii_only": True, "separators": (",", ":"), "blank": ""})])
def test_an_index_gives_its_words_by_position_and_word(indexes):
    texts = [as_json(pairs, **style) for pairs, style in indexes]
    expected = [by_definition(pairs) for pairs, _ in indexes]
    assert [abstract_of(text) for text in texts] == expected
    for found, text in zip(by_kernel(*texts), expected, strict=True):
        assert found in (text, LEFT_TO_PYTHON)


@given(st.binary(max_size=40) | st.text('{}[]":,\\u0d8a1 null', max_size=40).map(str.encode))
def test_of_what_is_no_index_the_kernel_says_nothing(raw):
    index = b'{"a": [0], ' + raw
    array = pa.array([index], pa.binary()).view(pa.string())
    words, bounds = words_of(array)
    text, ends, outcomes = abstracts_of(words, (bounds[:-1], bounds[1:]))
    try:
        expected = abstract_of(index.decode())
    except (UnicodeDecodeError, MalformedError):
        assert outcomes.tolist() == [LEFT_TO_PYTHON]
    else:
        assert outcomes[0] == LEFT_TO_PYTHON or text[: ends[1]].tobytes().decode() == expected


@pytest.mark.parametrize(
    ("index", "abstract"),
    [
        ('{"is": [1], "This": [0], "text": [9]}', "This is text"),
        ('{"a": [0, 2], "b": [1]}', "a b a"),
        ('{"a": [0], "b": [1], "a": [2]}', "a b a"),
        ('{"b": [0], "a": [0]}', "a b"),
        ('{"a": [0, 0], "\\u0061": [0]}', "a"),
        ('{"a": null, "b": [null, 1, null]}', "b"),
        ('{"caf\\u00e9": [0], "\\ud83d\\ude00": [1]}', "café 😀"),
        ("{}", ""),
        ("null", None),
        (None, None),
    ],
)
def test_usual_indexes_are_read_by_the_kernel(index, abstract):
    assert by_kernel(index) == [abstract]


def test_an_abstract_of_many_words_is_read_as_well():
    places = np.random.default_rng(1).permutation(40_000).tolist()
    index = {f"w{place}": [place] for place in places}
    assert abstract_of(json.dumps(index)).split() == [f"w{place}" for place in range(40_000)]
    assert by_kernel(json.dumps(index)) == [LEFT_TO_PYTHON]
