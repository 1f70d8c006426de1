"""The embeddings of documents: their windows, their batches, and their vectors."""

import json
import shutil

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from tests.encoder.building import embedded, write_documents, write_papers
from tests.spoiling import SPOILS

from cocite.core.errors import InputError
from cocite.core.gpus import computes_in
from cocite.core.tables.files import read_table, vectors_of
from cocite.encoder import embedding, tokens
from cocite.encoder.adapters import new_adapter, save_adapters, switch_on
from cocite.encoder.batch import batches_of_like_length
from cocite.encoder.embedding import embed_tables, tokenised_windows
from cocite.encoder.model import TOKENS_IN_BATCH, Encoder, computing, embed_alike, open_encoder
from cocite.encoder.spaces import select_vectors
from cocite.encoder.tokens import open_tokenizer

TEXTS = {
    "a": ("bees collect", "nectar from flowers in the meadow bees bees bees collect flowers nectar meadow in the"),
    "b": ("compilers", None),
    "c": (None, None),
    "d": (None, "registers for loops"),
    "e": ("", ""),
    "f": ("loops", "in programs", "journal of compilers", "2019"),
}
WORDS = {"a": "bees", "b": None, "c": "collect nectar", "d": "bees collect nectar", "e": "loops", "f": None, "g": "in"}


class KilledError(Exception):
    """Ends an embedding in a test."""


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents.parquet", TEXTS)


@pytest.fixture
def embed(encoder, tmp_path):
    """Embeds documents into a file of this name, and returns its path."""

    def run(documents, name="vectors", model=encoder, threads=1, **settings):
        how = {"threads": threads, "state": tmp_path / "state", "precision": "float32", **settings}
        embed_tables(model, [documents], tmp_path / name, **how)
        return tmp_path / name / documents.name

    return run


@pytest.fixture
def small_batches(monkeypatch):
    """Windows of four documents, batches of at most 12 tokens: a, b, d and f have 16, 3, 5 and 11 or more tokens. Each
    batch is written to the disk."""
    monkeypatch.setattr(Encoder, "window", 4)
    monkeypatch.setattr(embedding, "SECONDS_BETWEEN_SYNCS", 0.0)
    monkeypatch.setitem(TOKENS_IN_BATCH, "cpu", 12)


@pytest.fixture
def batches(monkeypatch):
    """The sizes of all batches that are embedded; raises `KilledError` instead of embedding one after `most`."""
    sizes = []

    def counting(model, documents, rows):
        if len(sizes) == counting.most:
            raise KilledError
        sizes.append(len(rows))
        return embed_alike(model, documents, rows)

    counting.most = None
    counting.sizes = sizes
    monkeypatch.setattr(embedding, "embed_alike", counting)
    return counting


def test_vectors_equal_those_of_sentence_transformers(encoder, documents, embed):
    table = read_table(embed(documents), "document_embeddings")
    model = SentenceTransformer(str(encoder), device="cpu")
    joined = ["[SEP]".join(part for part in TEXTS[name] if part) for name in "abdf"]
    assert table["document"].to_pylist() == list("abdf")
    np.testing.assert_allclose(vectors_of(table), model.encode(joined), atol=1e-6)


@pytest.fixture
def with_adapter(encoder, tmp_path):
    """The encoder with an adapter search."""
    folder = tmp_path / "adapted"
    opened = open_encoder(encoder)
    torch.manual_seed(1)
    switch_on(opened, new_adapter(opened, "search", 2))
    for weight in opened.adapter.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    shutil.copytree(encoder, folder)
    save_adapters(opened, encoder, folder)
    return opened, folder


def by_adapter(path):
    table = read_table(path, "document_embeddings")
    names = table["adapter"].to_pylist()
    return {name: vectors_of(table.filter(pc.equal(table["adapter"], name))) for name in dict.fromkeys(names)}


def test_documents_are_embedded_by_each_adapter_that_is_asked_for(with_adapter, documents, embed):
    opened, folder = with_adapter
    found = by_adapter(embed(documents, "both", folder, adapters=["search", ""]))
    assert list(found) == ["", "search"]
    switch_on(opened, None)
    np.testing.assert_array_equal(found[""], vectors_of(read_table(embed(documents), "document_embeddings")))
    assert np.abs(found["search"] - found[""]).max() > 0.01


def test_an_embedding_killed_at_any_batch_goes_on_there_and_gives_the_same_bytes(
    with_adapter, documents, embed, small_batches, batches, tmp_path
):
    _, folder = with_adapter
    whole = embed(documents, "whole", folder, adapters=["search", ""]).read_bytes()
    all_batches = len(batches.sizes)
    for most in range(1, all_batches):
        batches.sizes.clear()
        batches.most = most
        with pytest.raises(KilledError):
            embed(documents, "killed", folder, adapters=["search", ""])
        batches.most = None
        assert embed(documents, "killed", folder, adapters=["search", ""]).read_bytes() == whole
        assert len(batches.sizes) == all_batches
        assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("adapters", [[], ["search"]])
def test_documents_that_are_papers_have_the_bytes_of_their_embedding_from_those_of_papers(
    encoder, with_adapter, embed, adapters, tmp_path, capfd
):
    model = with_adapter[1] if adapters else encoder
    texts = {7: ("bees", "in the meadow"), 30: ("loops", None), 200: (None, None), 1000: ("compilers", "registers")}
    for bucket, papers in enumerate(([7, 1000], [30, 200])):
        write_papers(tmp_path / f"papers/{bucket}.parquet", {paper: texts[paper] for paper in papers})
    papers = sorted((tmp_path / "papers").iterdir())
    how = {"threads": 1, "state": tmp_path / "state", "precision": "float32", "adapters": adapters}
    embed_tables(model, papers, tmp_path / "vectors", "papers", **how)
    documents = write_documents(tmp_path / "some.parquet", {str(paper): texts[paper] for paper in (7, 200, 1000)})
    select_vectors(documents, tmp_path / "vectors", tmp_path / "selected.parquet", adapters)
    assert "2 of 3 documents have the vector of their paper" in capfd.readouterr().err
    whole = embed(documents, "whole", model, adapters=adapters)
    assert (tmp_path / "selected.parquet").read_bytes() == whole.read_bytes()


def test_documents_without_text_are_left_out_and_counted(documents, embed, capfd):
    embed(documents)
    assert "Embedded 4 of 6 documents; 2 have no text." in capfd.readouterr().err


def test_documents_may_all_be_without_text(embed, encoder, tmp_path):
    empty = write_documents(tmp_path / "empty.parquet", {"a": (None, None), "b": ("", " ")})
    table = read_table(embed(empty), "document_embeddings")
    assert len(table) == 0
    assert table.schema.field("vector").type.list_size == open_encoder(encoder).dimension


def test_how_much_is_read_embedded_and_written_together_changes_nothing(documents, embed, monkeypatch):
    whole = read_table(embed(documents), "document_embeddings")
    for size in (1, 2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "ROWS_READ", size)
            patch.setattr(embedding, "ROWS_WRITTEN", size)
            assert read_table(embed(documents), "document_embeddings").equals(whole)
        with monkeypatch.context() as patch:
            patch.setattr(Encoder, "window", size)
            assert read_table(embed(documents), "document_embeddings").equals(whole)


def test_several_tables_in_one_go_give_the_bytes_of_each_by_itself(documents, embed, encoder, tmp_path):
    others = write_documents(tmp_path / "others.parquet", {"b": ("bees", None), "x": ("loops in programs", None)})
    alone = [embed(documents, "first").read_bytes(), embed(others, "second").read_bytes()]
    (tmp_path / "benchmark").mkdir()
    others.rename(tmp_path / "benchmark/documents.parquet")
    sources = [documents, tmp_path / "benchmark"]
    embed_tables(encoder, sources, tmp_path / "both", threads=1, state=tmp_path / "state", precision="float32")
    assert [(tmp_path / "both" / f"{name}.parquet").read_bytes() for name in ("documents", "benchmark")] == alone
    assert not (tmp_path / "state").exists()


def test_sources_of_one_name_are_refused(documents, encoder, tmp_path):
    (tmp_path / "documents.v1").mkdir()
    shutil.copy(documents, tmp_path / "documents.v1/documents.parquet")
    how = {"threads": 1, "state": tmp_path / "state", "precision": "float32"}
    with pytest.raises(InputError, match=r"Two sources are named documents, "):
        embed_tables(encoder, [documents, tmp_path / "documents.v1/documents.parquet"], tmp_path / "both", **how)
    embed_tables(encoder, [documents, tmp_path / "documents.v1"], tmp_path / "both", **how)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["documents.parquet", "documents.v1.parquet"]


def test_a_state_with_files_of_a_user_keeps_them(documents, embed, tmp_path):
    home = tmp_path / "home"
    write_documents(home / "letters.parquet", TEXTS)
    embed(documents, state=home)
    (home / "letters.parquet").rename(home / "documents")
    with pytest.raises(InputError, match="documents: has files, and is not a state"):
        embed(documents, state=home)
    assert [path.name for path in home.iterdir()] == ["documents"]


def test_the_same_documents_give_the_same_bytes_again_also_by_more_threads(documents, embed, small_batches):
    first, again, by_three = (embed(documents, str(number), threads=1 + number).read_bytes() for number in (0, 0, 2))
    assert first == again == by_three


@pytest.mark.parametrize("killed_after", [1, 3])
@pytest.mark.parametrize("name", ["fingerprint.json", "adapter-/reached.json", "adapter-/vectors.bin"])
@pytest.mark.parametrize("spoil", ["first byte changed", "cut"])
def test_an_embedding_whose_state_is_spoilt_gives_the_same_bytes_and_says_so(
    documents, embed, small_batches, batches, monkeypatch, tmp_path, capfd, killed_after, name, spoil
):
    whole = embed(documents, "whole").read_bytes()
    batches.sizes.clear()
    batches.most = killed_after
    with monkeypatch.context() as killed:
        if killed_after == 3:  # all batches are done
            killed.setattr(embedding, "write_table", raise_killed)
        with pytest.raises(KilledError):
            embed(documents, "resumed")
    batches.most = None
    (path,) = tmp_path.glob(f"state/*/{name}")
    SPOILS[spoil](path)
    capfd.readouterr()
    assert embed(documents, "resumed").read_bytes() == whole
    assert f"{path}: " in capfd.readouterr().err


def raise_killed(*_):
    raise KilledError


def test_other_documents_are_embedded_from_the_start(documents, embed, small_batches, batches):
    batches.most = 2
    with pytest.raises(KilledError):
        embed(documents)
    write_documents(documents, {**TEXTS, "a": ("compilers", "allocate")})
    batches.most = None
    batches.sizes.clear()
    resumed = embed(documents, "resumed").read_bytes()
    assert sum(batches.sizes) == 4
    assert resumed == embed(documents, "afresh").read_bytes()


def test_a_vector_that_is_not_finite_is_reported_with_its_document(documents, embed, monkeypatch):
    def broken(model, tokens, rows):
        vectors = embed_alike(model, tokens, rows)
        vectors[tokens.lengths[rows] == 3, 5] = np.inf
        return vectors

    # Only b has a text of one word, and with it three tokens.
    monkeypatch.setattr(embedding, "embed_alike", broken)
    with pytest.raises(InputError, match="gives document 'b' a vector that is not finite"):
        embed(documents)


def test_a_folder_that_is_no_encoder_or_a_broken_one_is_named(encoder, documents, embed, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match=r"has no modules\.json"):
        embed(documents, model=tmp_path)
    weights = shutil.copytree(encoder, tmp_path / "broken") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match="broken: cannot be opened as an encoder"):
        embed(documents, model=weights.parent)


def test_texts_are_tokenised_some_at_a_time_and_none_is_lost(encoder, monkeypatch):
    monkeypatch.setattr(tokens, "TEXTS_IN_CALL", 2)
    texts = ["bees", "collect nectar", "loops", "bees bees", "programs"]
    tokenised = tokens.tokenise(texts, tokens.open_tokenizer(encoder))
    # Each word of the corpus is a token; [CLS] and [SEP] are two more.
    assert tokenised.lengths.tolist() == [3, 4, 3, 4, 3]


@pytest.fixture
def files(tmp_path):
    """Two files of documents, with a, b and c to g; b and f have no text."""
    names = list(WORDS)
    return [
        write_documents(tmp_path / f"{number}.parquet", {name: (WORDS[name], None) for name in some})
        for number, some in enumerate((names[:2], names[2:]))
    ]


@pytest.mark.parametrize(
    ("start", "size", "expected"),
    [
        # Each word is a token; [CLS] and [SEP] are two more.
        (0, 3, [(["a", "c"], [0, 2], [3, 4]), (["d", "e"], [3, 4], [5, 3]), (["g"], [6], [3])]),
        (1, 3, [(["d", "e"], [3, 4], [5, 3]), (["g"], [6], [3])]),
        (3, 3, []),
        (5, 1, [([], [], []), (["g"], [6], [3])]),
    ],
)
def test_a_window_counts_documents_with_a_text_and_without(encoder, files, start, size, expected):
    tokenizer = open_tokenizer(encoder)
    windows = tokenised_windows(tokens.texts_of(files, tokenizer, "documents"), tokenizer, start=start, size=size)
    assert [(each.names, each.rows.tolist(), each.tokens.lengths.tolist()) for each in windows] == expected


@given(lengths=st.lists(st.integers(1, 40), max_size=60), tokens=st.integers(1, 200))
def test_batches_hold_each_document_once_and_no_more_tokens_than_asked(lengths, tokens):
    lengths = np.array(lengths, dtype=np.int64)
    batches = [lengths[rows] for rows in batches_of_like_length(lengths, tokens)]
    joined = np.concatenate([np.empty(0, np.int64), *batches])
    assert joined.tolist() == sorted(lengths.tolist(), reverse=True)
    rows = [row for batch in batches_of_like_length(lengths, tokens) for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    for number, batch in enumerate(batches):
        assert len(batch) == 1 or len(batch) * batch.max() <= tokens
        is_last = number == len(batches) - 1
        assert is_last or (len(batch) + 1) * batch.max() > tokens


CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("units", "dtype"),
    [({"amx_bf16": False, "avx512_bf16": True}, torch.bfloat16), ({"amx_bf16": False}, torch.float32)],
)
def test_auto_is_bfloat16_where_a_cpu_has_instructions_for_it(monkeypatch, units, dtype):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    assert computes_in("auto", CPU) == dtype


def test_a_precision_that_is_named_is_kept_to_and_said_to_be_slow(monkeypatch, capsys):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert computes_in("float32", CPU) == torch.float32
    assert capsys.readouterr().err == ""
    assert computes_in("bfloat16", CPU) == torch.bfloat16
    assert capsys.readouterr().err == (
        "This CPU has no instructions for bfloat16; float32 may be many times faster. Set `precision: auto`.\n"
    )


def test_vectors_of_bfloat16_point_where_those_of_float32_do(encoder, tmp_path):
    texts = {f"d{number}": (f"bees collect nectar {number}", "from flowers in the meadow") for number in range(9)}
    documents = write_documents(tmp_path / "documents.parquet", texts)
    exact, fast = (embedded(encoder, documents, tmp_path / name, precision=name) for name in ("float32", "bfloat16"))
    cosines = (exact * fast).sum(axis=1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(fast, axis=1)
    assert fast.dtype == np.float32
    assert 0.9999 < cosines.min() < 1 - 1e-9


def test_weights_are_held_in_bfloat16_to_embed_and_in_float32_to_learn(encoder):
    opened = open_encoder(encoder, "bfloat16")
    assert {weight.dtype for weight in opened.parameters()} == {torch.float32}
    with computing(opened):
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == torch.bfloat16
    assert {weight.dtype for weight in open_encoder(encoder, "bfloat16", reduced=True).parameters()} == {torch.bfloat16}
