"""Texts are read as their encoder names it: the fields of documents, prompts, and the length of short queries."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from tests.encoder.building import built, embedded, trained
from tests.encoder.published import fetched
from tests.papers import papers_table
from tests.rows import write_rows
from tokenizers import AddedToken, pre_tokenizers
from tokenizers import Tokenizer as Backend

from cocite.config.encoders import EncoderSettings
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.encoder import tokens, word_pieces
from cocite.encoder.documents import open_tokens
from cocite.encoder.embedding import embed_papers
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.tokens import FurtherFields, open_tokenizer, texts_of, tokenise, tokenise_table

ALL = ["title", "abstract", "venue", "authors", "year"]
PAPERS = {
    1: ("Bees", "They collect nectar.", "Meadows", ["Ada Abel", "Mira Okoye"], 1999),
    2: ("Loops", None, None, [], 2004),
    3: ("Flowers", "In the meadow.", "Meadows", [], None),
}
WHOLE = ["Bees|They collect nectar.|Meadows|Ada Abel, Mira Okoye|1999", "Loops|2004", "Flowers|In the meadow.|Meadows"]


def papers_of(rows=PAPERS, *, authors=True):
    columns = {"venue": [row[2] for row in rows.values()], "year": [row[4] for row in rows.values()]}
    columns |= {"authors": [row[3] for row in rows.values()]} if authors else {}
    return papers_table({paper: row[:2] for paper, row in rows.items()}, **columns)


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A folder of the table papers with one bucket."""
    folder = tmp_path_factory.mktemp("papers")
    write_table(folder / "0.parquet", "papers", papers_of())
    return folder


@pytest.fixture
def reading(encoder, tmp_path):
    """A function that gives the folder of the small encoder, which then reads these fields."""

    return lambda text, **settings: fetched(encoder, tmp_path / "-".join(text), max_length=16, text=text, **settings)


def texts_by(folder, file, table, papers=()):
    tokenizer = open_tokenizer(folder)
    return [text.text.replace(tokenizer.separator, "|") for text in texts_of([file], tokenizer, table, papers)]


def documents_of(rows, path):
    texts = [(paper, *of) for paper, of in rows.items()]
    write_rows(path, "training_documents", "corpusid title abstract", texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["title"], ["Bees", "Loops", "Flowers"]),
        (["title", "abstract"], ["Bees|They collect nectar.", "Loops", "Flowers|In the meadow."]),
        (["title", "year", "abstract"], ["Bees|1999|They collect nectar.", "Loops|2004", "Flowers|In the meadow."]),
        (ALL, WHOLE),
    ],
)
def test_papers_are_read_as_the_fields_in_their_order_without_those_they_lack(reading, papers, text, expected):
    assert texts_by(reading(text), papers / "0.parquet", "papers") == expected


def test_what_lacks_a_field_is_counted(reading, papers, capsys):
    texts_by(reading(ALL), papers / "0.parquet", "papers")
    told = capsys.readouterr().err
    for missing in ("venue: 1", "authors: 2", "year: 1"):
        assert f"{missing} of 3 papers have none" in told


def test_documents_of_examples_have_the_fields_of_their_papers_and_brought_texts_have_none(reading, papers, tmp_path):
    documents = {-5: ("A brought document", "Of its own."), 1: PAPERS[1][:2], 3: PAPERS[3][:2], 9: ("No record", None)}
    documents_of(documents, tmp_path / "documents" / "0.parquet")
    folder, buckets = reading(ALL), [papers / "0.parquet"]
    found = texts_by(folder, tmp_path / "documents" / "0.parquet", "training_documents", buckets)
    assert found == ["A brought document|Of its own.", WHOLE[0], WHOLE[2], "No record"]
    tokenise_table(tmp_path / "documents", buckets, encoder=folder, threads=1, output=tmp_path / "tokens")
    ids, tokens = open_tokens(tmp_path / "tokens")
    assert ids.tolist() == [-5, 1, 3, 9]
    expected = tokenise([WHOLE[0].replace("|", "[SEP]")], open_tokenizer(folder))
    assert tokens[1].tolist() == expected[0].tolist()


def test_a_document_of_a_training_has_the_tokens_with_which_it_is_embedded(reading, papers, tmp_path):
    folder = reading(ALL)
    documents_of({1: PAPERS[1][:2]}, tmp_path / "documents" / "0.parquet")
    buckets = [papers / "0.parquet"]
    tokenise_table(tmp_path / "documents", buckets, encoder=folder, threads=1, output=tmp_path / "tokens")
    of_paper = embedded(folder, buckets[0], tmp_path, "papers")[0]
    of_training = embed(open_encoder(folder), open_tokens(tmp_path / "tokens")[1])[0]
    np.testing.assert_allclose(of_paper, of_training, atol=1e-6)
    names = ", ".join(PAPERS[1][3])
    by_hand = embed_papers(folder, [(*PAPERS[1][:3], names, "1999")])[0]
    np.testing.assert_allclose(of_paper, by_hand, atol=1e-6)


def test_examples_without_the_papers_that_have_the_fields_are_refused(reading, tmp_path):
    documents_of({1: ("Bees", None)}, tmp_path / "documents" / "0.parquet")
    where = {"encoder": reading(["title", "year"]), "output": tmp_path / "tokens"}
    with pytest.raises(InputError, match=r"fields that stand in the table papers, whose bucket 0.parquet is not given"):
        tokenise_table(tmp_path / "documents", threads=1, **where)


def test_authors_that_the_corpus_does_not_keep_are_refused(reading, tmp_path):
    write_table(tmp_path / "0.parquet", "papers", papers_of(authors=False))
    with pytest.raises(InputError, match=r"0.parquet: has no column authors, .* set corpus.authors: true"):
        texts_by(reading(["title", "authors"]), tmp_path / "0.parquet", "papers")


@pytest.mark.parametrize(
    ("text", "more", "is_query", "expected"),
    [
        (ALL, [], False, ["Bees|They collect nectar.|Meadows|Ada Abel|1999", "Loops"]),
        (["title"], [], False, ["Bees", "Loops"]),
        # What a task adds follows the fields, and comes once.
        (["title", "venue"], ["Meadows", "1999", "of a search"], False, ["Bees|Meadows|1999|of a search", "Loops"]),
        (["title"], ["Meadows", "1999", "of a search"], False, ["Bees|Meadows|1999|of a search", "Loops"]),
        (["title", "year"], [], True, ["document: Bees|1999", "query: Loops"]),
    ],
)
def test_documents_of_a_benchmark_have_the_fields_beside_them_and_short_queries_are_read_as_they_are(
    reading, tmp_path, text, more, is_query, expected
):
    rows = [("d", "Bees", "They collect nectar.", more, None, False), ("e", "Loops", None, [], None, is_query)]
    file = write_rows(tmp_path / "documents.parquet", "documents", "document title abstract more field is_query", rows)
    of_d = [("d", "Meadows", ["Ada Abel"], 1999)]
    write_rows(tmp_path / "document_fields.parquet", "document_fields", "document venue authors year", of_d)
    prompts = {"prompts": {"query": "query: ", "document": "document: "}} if is_query else {}
    assert texts_by(reading(text, **prompts), file, "documents") == expected


@pytest.fixture
def build_on(corpus, small_settings, tmp_path):
    """A function that builds an encoder with these settings on some papers and gives its tokenizer."""

    def run(rows=PAPERS, **settings):
        copied = shutil.copytree(corpus, tmp_path / "corpus", dirs_exist_ok=True)
        write_table(copied / "papers.parquet", "papers", papers_of(rows))
        given = EncoderSettings.model_validate(small_settings.model_dump(exclude_none=True) | settings)
        return open_tokenizer(built(copied, tmp_path / f"model-{len(list(tmp_path.iterdir()))}", given))

    return run


def test_sentences_are_those_of_the_abstract_alone(build_on):
    fields = {"title": "A. B.", "abstract": "One here. Two here.", "venue": "J. Inf. Sci."}
    found = build_on(pooling="sentences", text=ALL).parts_of(fields)
    assert [part.strip() for part in found] == ["A. B.", "One here.", "Two here.", "J. Inf. Sci."]


def test_a_built_encoder_has_the_words_of_the_fields_that_it_reads_and_its_prompts(build_on):
    rows = {paper: (*row[:2], "Zymurgy", ["Xu Quux"] * 3, 1999) for paper, row in PAPERS.items()}
    of_texts = build_on(rows, text=["title", "abstract"], prompts=PROMPTS, query_max_length=9)
    of_venues = build_on(rows, text=["title", "venue", "authors"])
    knows = [{"zymurgy", "quux"} <= tokenizer.backend.get_vocab().keys() for tokenizer in (of_texts, of_venues)]
    assert knows == [False, True]
    assert of_texts.short_query(0, "nectar").text == "bees: nectar"
    assert of_texts.reading.query_max_length == 9


def test_papers_in_python_have_as_many_fields_as_the_encoder_reads(reading):
    folder = reading(["title", "abstract", "venue"])
    with pytest.raises(InputError, match=r"Paper 1 has 2 fields; the encoder reads title, abstract, venue\."):
        embed_papers(folder, [("Bees", "They collect nectar.")])


@given(
    held=st.sets(st.integers(-30, 60)),
    asked=st.lists(st.integers(-30, 60), unique=True),
    size=st.integers(1, 7),
    rows=st.integers(1, 9),
)
def test_fields_are_found_as_by_a_dictionary_however_the_tables_are_cut(held, asked, size, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("held") / "papers.parquet"
    table = papers_table(dict.fromkeys(held, ("T", None)), venue=[f"V{paper}" for paper in sorted(held)])
    write_table(path, "papers", table)
    ids = sorted(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "ROWS_LOOKED_UP", rows)
        found = FurtherFields((path, "papers"), ["venue"])
        parts = [pa.array(ids[first : first + size], pa.int64()) for first in range(0, len(ids), size)]
        values = [each["venue"] for part in parts for each in found.of(part)]
    assert values == [f"V{paper}" if paper in held else None for paper in ids]
    assert found.missing == {"venue": sum(paper not in held for paper in ids)}


def test_fields_are_joined_by_the_separator_that_the_encoder_names(reading):
    folder = reading(["title", "abstract"], separator=" ")
    tokenizer = open_tokenizer(folder)
    bees = {"title": "Bees", "abstract": "They collect nectar."}
    assert tokenizer.document(1, bees).text == "Bees They collect nectar."
    assert tokenizer.document(2, {"title": "Loops", "abstract": None}).text == "Loops"
    trained = open_encoder(folder)
    plain = embed(trained, tokenise(["Bees They collect nectar."], tokenizer))
    np.testing.assert_array_equal(embed_papers(folder, [("Bees", "They collect nectar.")]), plain)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "sentences", "separator": " "}, "separator has no effect if the sentences of a document are"),
        ({"sentence_wise": True, "separator": " "}, "separator has no effect if the sentences of a document are"),
        ({"pooling": "sentences", "sentence_wise": True}, "sentence_wise does not go with pooling: sentences"),
        ({"text": ["abstract"]}, r"text is \['abstract'\], which must start with title"),
        ({"text": ["title", "title"]}, "which has non-unique elements"),
        ({"text": ["title", "journal"]}, "journal"),
        ({"query_max_length": 600}, r"query_max_length \(600\) must not exceed max_length \(512\)"),
        ({"prompts": {"queries": "q"}}, "queries"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        parse_settings(EncoderSettings, json.dumps({"model": "x", **settings}))


PROMPTS = {"query": "bees: ", "document": "loops: "}
QUERIES = ["nectar", "collect nectar from flowers", "registers for loops"]
TITLED = [("bees collect nectar", "from flowers in the meadow"), ("compilers", None)]


@pytest.fixture(scope="session")
def prompted(encoder, tmp_path_factory):
    """The small encoder with prompts; short queries are cut to 8 tokens, documents to 16."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    return fetched(encoder, folder, max_length=16, query_max_length=8, prompts=PROMPTS)


def test_sentence_transformers_gives_the_same_vectors_by_the_names_of_the_prompts(prompted, tmp_path):
    model, ours = SentenceTransformer(str(prompted), device="cpu"), open_encoder(prompted)
    texts = [ours.tokenizer.short_query(0, query).text for query in QUERIES]
    of_queries = embed(ours, tokenise(texts, ours.tokenizer, [True] * len(texts)))
    np.testing.assert_allclose(of_queries, model.encode(QUERIES, prompt_name="query"), atol=1e-5)
    joined = [f"{title}[SEP]{abstract}" if abstract else title for title, abstract in TITLED]
    of_papers = embed_papers(prompted, TITLED)
    np.testing.assert_allclose(of_papers, model.encode(joined, prompt_name="document"), atol=1e-5)
    assert np.abs(of_papers - model.encode(joined)).max() > 1e-3
    rows = [("a", "nectar", None, [], None, True), ("b", "nectar", None, [], None, False)]
    file = write_rows(tmp_path / "documents.parquet", "documents", "document title abstract more field is_query", rows)
    expected = [model.encode("nectar", prompt_name=name) for name in ("query", "document")]
    np.testing.assert_allclose(embedded(prompted, file, tmp_path / "vectors"), expected, atol=1e-5)


def test_short_queries_are_cut_by_their_own_length(prompted):
    tokenizer = open_tokenizer(prompted)
    words = " ".join(["nectar"] * 40)
    long, short, other = tokenizer([words, words, "nectar"], [False, True, True])
    assert (len(long), len(short), len(other)) == (16, 8, 3)
    assert long[-1] == short[-1] == other[-1]
    assert [len(ids) for ids in tokenizer([words, words])] == [16, 16]


def test_training_documents_are_tokenised_by_what_they_are(prompted, tmp_path):
    words = " ".join(["nectar"] * 40)
    rows = [(-7, words, None, True), (-5, words, None, False), (3, words, None, False)]
    columns = "corpusid title abstract is_query"
    write_rows(tmp_path / "documents/0.parquet", "training_documents", columns, rows)
    tokenizer = open_tokenizer(prompted)
    tokenise_table(tmp_path / "documents", encoder=prompted, threads=1, output=tmp_path / "tokens")
    ids, documents = open_tokens(tmp_path / "tokens")
    assert dict(zip(ids.tolist(), documents.lengths.tolist(), strict=True)) == {-7: 8, -5: 16, 3: 16}
    # [CLS], the two tokens of "bees:" or "loops:", and then the words.
    first = {name: tokenizer.backend.token_to_id(name) for name in ("bees", "loops")}
    assert [int(documents[row][1]) for row in range(3)] == [first["bees"], first["loops"], first["loops"]]


def test_a_trained_model_reads_as_the_encoder_it_started_from_and_its_card_says_so(prompted, inputs, tmp_path):
    reading = fetched(prompted, tmp_path / "encoder", max_length=16, query_max_length=8, text=["title", "venue"])
    trained(tmp_path, replace(inputs, encoder=reading), max_steps=2)
    reads = open_tokenizer(tmp_path / "model").reading
    assert (reads.query_prompt, reads.document_prompt, reads.query_max_length) == (*PROMPTS.values(), 8)
    assert reads.fields == ("title", "venue")
    card = (tmp_path / "model/README.md").read_text()
    assert "It embeds the fields title, venue, joined" in card
    assert 'model.encode([title + model.tokenizer.sep_token + venue], prompt_name="document")' in card
    assert "'bees: ' before short queries, 'loops: ' before documents" in card
    assert SentenceTransformer(str(tmp_path / "model"), device="cpu").prompts["query"] == PROMPTS["query"]


@pytest.mark.parametrize(("prompts", "kept"), [(None, PROMPTS), ({}, {}), ({"query": "q: "}, {"query": "q: "})])
def test_prompts_of_the_folder_that_is_fetched_are_taken_unless_the_settings_have_others(
    prompted, tmp_path, prompts, kept
):
    reading = open_tokenizer(fetched(prompted, tmp_path / "model", max_length=16, prompts=prompts)).reading
    assert (reading.query_prompt, reading.document_prompt) == (kept.get("query", ""), kept.get("document", ""))


OF_WORDS = ["Bees", "nectar.", "(2019)", "....", "a-b=c!", "##s", "x" * 120, "[SEP]", "x[SEP].", "[[SEP", *" \t\n"]
OTHERS = ["naïve", "e\u0301", "\u0301", "蜂蜜", "\u00a0", "\u200b", "\x01", "\u2028", "\ufffd", "ΟΔΟΣ", "İ", "ﬁ", "😀"]
PARTS = st.sampled_from(OF_WORDS + OTHERS)


@given(texts=st.lists(st.lists(PARTS | st.text(max_size=3), max_size=12).map("".join), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tokens_of_words_are_those_of_the_whole_text(encoder, texts, monkeypatch):
    monkeypatch.setattr(word_pieces, "WORDS_KEPT", 20)  # forgets often
    tokenizer = open_tokenizer(encoder)
    whole = Backend.from_file(str(encoder / "tokenizer.json"))
    whole.no_padding()
    for length in (7, 64):
        whole.enable_truncation(length)
        words = word_pieces.WordPieces(tokenizer.backend, length)
        for _ in range(2):
            assert [each.tolist() for each in words(texts)] == [each.ids for each in whole.encode_batch(texts)]


def test_a_tokenizer_that_joins_words_is_asked_for_whole_texts(encoder):
    backend = open_tokenizer(encoder).backend
    assert word_pieces.splits_at_spaces(backend)
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    assert not word_pieces.splits_at_spaces(backend)
    backend = open_tokenizer(encoder).backend
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert not word_pieces.splits_at_spaces(backend)
