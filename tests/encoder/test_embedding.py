"""The embeddings of documents: their windows, their batches, their vectors, and what an update of the corpus keeps."""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from tests.encoder.building import TOPICS, embedded, write_documents, write_papers
from tests.encoder.published import fetched, published
from tests.spoiling import SPOILS

from cocite.config.encoders import StaticSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.gpus import computes_in
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.encoder import embedding, tokens
from cocite.encoder.adapters import new_adapter, save_adapters, switch_on
from cocite.encoder.batch import batches_of_like_length
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_tables, tokenised_windows
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import TOKENS_IN_BATCH, Encoder, computing, embed_alike, open_encoder
from cocite.encoder.spaces import select_vectors
from cocite.encoder.static import is_static
from cocite.encoder.tokens import open_tokenizer

TEXTS = {
    "a": ("bees collect", "nectar from flowers in the meadow bees bees bees collect flowers nectar meadow in the"),
    "b": ("compilers", None),
    "c": (None, None),
    "d": (None, "registers for loops"),
    "e": ("", ""),
    "f": ("loops", "in programs", "journal of compilers", "2019"),
}


class KilledError(Exception):
    """Ends an embedding in a test."""


class Batches:
    """The sizes of all batches that are embedded into tables."""

    def __init__(self):
        self.sizes, self.most = [], None

    def __call__(self, model, documents, rows):
        if len(self.sizes) == self.most:
            raise KilledError
        self.sizes.append(len(rows))
        return embed_alike(model, documents, rows)

    @contextmanager
    def killed_after(self, most):
        """Ends an embedding in place of the batch after so many; those before it are on the disk."""
        self.sizes.clear()
        self.most = most
        with pytest.raises(KilledError):
            yield
        self.most = None


@pytest.fixture
def batches(monkeypatch):
    counting = Batches()
    monkeypatch.setattr(embedding, "embed_alike", counting)
    monkeypatch.setattr(embedding, "SECONDS_BETWEEN_SYNCS", 0.0)
    return counting


@pytest.fixture
def small_batches(batches, monkeypatch):
    """Windows of four documents, batches of at most 12 tokens: a, b, d and f have 16, 3, 5 and 11 or more tokens."""
    monkeypatch.setattr(Encoder, "window", 4)
    monkeypatch.setitem(TOKENS_IN_BATCH, "cpu", 12)
    return batches


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents.parquet", TEXTS)


@pytest.fixture
def embed(encoder, tmp_path):
    """Embeds tables of texts into a folder of this name, and returns the path of the first one's vectors."""

    def run(*sources, name="vectors", model=encoder, table="documents", **settings):
        how = {"threads": 1, "state": tmp_path / "state", "precision": "float32", **settings}
        embed_tables(model, [*sources], tmp_path / name, table, **how)
        return tmp_path / name / sources[0].name

    return run


def test_vectors_equal_those_of_sentence_transformers_and_documents_without_text_are_left_out_and_counted(
    encoder, documents, embed, capfd
):
    table = read_table(embed(documents), "document_embeddings")
    model = SentenceTransformer(str(encoder), device="cpu")
    joined = ["[SEP]".join(part for part in TEXTS[name] if part) for name in "abdf"]
    assert table["document"].to_pylist() == list("abdf")
    np.testing.assert_allclose(vectors_of(table), model.encode(joined), atol=1e-6)
    assert "Embedded 4 of 6 documents; 2 have no text." in capfd.readouterr().err


@pytest.fixture
def with_adapter(encoder, tmp_path):
    """The encoder with an adapter search, and its folder."""
    opened = open_encoder(encoder)
    torch.manual_seed(1)
    switch_on(opened, new_adapter(opened, "search", 2))
    for weight in opened.adapter.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    folder = shutil.copytree(encoder, tmp_path / "adapted")
    save_adapters(opened, encoder, folder)
    return opened, folder


def test_documents_are_embedded_by_each_adapter_that_is_asked_for(with_adapter, documents, embed):
    opened, folder = with_adapter
    table = read_table(embed(documents, name="both", model=folder, adapters=["search", ""]), "document_embeddings")
    found = {name: vectors_of(table.filter(pc.equal(table["adapter"], name))) for name in ("", "search")}
    assert list(dict.fromkeys(table["adapter"].to_pylist())) == ["", "search"]
    switch_on(opened, None)
    np.testing.assert_array_equal(found[""], vectors_of(read_table(embed(documents), "document_embeddings")))
    assert np.abs(found["search"] - found[""]).max() > 0.01


def test_an_embedding_killed_at_any_batch_goes_on_there_and_gives_the_same_bytes(
    with_adapter, documents, embed, small_batches, tmp_path
):
    how = {"model": with_adapter[1], "adapters": ["search", ""]}
    whole = embed(documents, name="whole", **how).read_bytes()
    all_batches = len(small_batches.sizes)
    for most in range(1, all_batches):
        with small_batches.killed_after(most):
            embed(documents, name="killed", **how)
        assert embed(documents, name="killed", **how).read_bytes() == whole
        assert len(small_batches.sizes) == all_batches
        assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("adapters", [[], ["search"]])
def test_documents_that_are_papers_have_the_bytes_of_their_embedding_from_those_of_papers(
    encoder, with_adapter, embed, adapters, tmp_path, capfd
):
    how = {"model": with_adapter[1] if adapters else encoder, "adapters": adapters}
    texts = {7: ("bees", "in the meadow"), 30: ("loops", None), 200: (None, None), 1000: ("compilers", "registers")}
    buckets = [
        write_papers(tmp_path / f"papers/{bucket}.parquet", {paper: texts[paper] for paper in papers})
        for bucket, papers in enumerate(([7, 1000], [30, 200]))
    ]
    embed(*buckets, table="papers", **how)
    documents = write_documents(tmp_path / "some.parquet", {str(paper): texts[paper] for paper in (7, 200, 1000)})
    select_vectors(documents, tmp_path / "vectors", tmp_path / "selected.parquet", adapters)
    assert "2 of 3 documents have the vector of their paper" in capfd.readouterr().err
    assert (tmp_path / "selected.parquet").read_bytes() == embed(documents, name="whole", **how).read_bytes()


def test_documents_may_all_be_without_text(embed, encoder, tmp_path):
    empty = write_documents(tmp_path / "empty.parquet", {"a": (None, None), "b": ("", " ")})
    table = read_table(embed(empty), "document_embeddings")
    assert len(table) == 0
    assert table.schema.field("vector").type.list_size == open_encoder(encoder).dimension


def test_how_much_is_read_embedded_and_written_together_changes_nothing(documents, embed, monkeypatch):
    whole = read_table(embed(documents), "document_embeddings")
    for size in (1, 2, 3):
        of_tables = (tokens, "ROWS_READ"), (embedding, "ROWS_WRITTEN")
        for changed in (of_tables, [(Encoder, "window")], [(tokens, "TEXTS_IN_CALL")]):
            with monkeypatch.context() as patch:
                for owner, name in changed:
                    patch.setattr(owner, name, size)
                assert read_table(embed(documents), "document_embeddings").equals(whole)


def test_several_tables_in_one_go_give_the_bytes_of_each_by_itself(documents, embed, tmp_path):
    others = write_documents(tmp_path / "others.parquet", {"b": ("bees", None), "x": ("loops in programs", None)})
    alone = [embed(documents, name="first").read_bytes(), embed(others, name="second").read_bytes()]
    (tmp_path / "benchmark").mkdir()
    others.rename(tmp_path / "benchmark/documents.parquet")
    embed(documents, tmp_path / "benchmark", name="both")
    assert [(tmp_path / "both" / f"{name}.parquet").read_bytes() for name in ("documents", "benchmark")] == alone
    assert not (tmp_path / "state").exists()


def test_sources_of_one_name_are_refused(documents, embed, tmp_path):
    (tmp_path / "documents.v1").mkdir()
    shutil.copy(documents, tmp_path / "documents.v1/documents.parquet")
    with pytest.raises(InputError, match=r"Two sources are named documents, "):
        embed(documents, tmp_path / "documents.v1/documents.parquet")
    embed(documents, tmp_path / "documents.v1", name="both")
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
    first, again, by_three = (embed(documents, threads=threads).read_bytes() for threads in (1, 1, 3))
    assert first == again == by_three


@pytest.mark.parametrize("killed_after", [1, 3])
@pytest.mark.parametrize("name", ["fingerprint.json", "adapter-/reached.json", "adapter-/vectors.bin"])
@pytest.mark.parametrize("spoil", ["first byte changed", "cut"])
def test_an_embedding_whose_state_is_spoilt_gives_the_same_bytes_and_says_so(
    documents, embed, small_batches, monkeypatch, tmp_path, capfd, killed_after, name, spoil
):
    def raise_killed(*_):
        raise KilledError

    whole = embed(documents, name="whole").read_bytes()
    with monkeypatch.context() as killed, small_batches.killed_after(killed_after):
        if killed_after == 3:  # all batches are done
            killed.setattr(embedding, "write_table", raise_killed)
        embed(documents)
    (path,) = tmp_path.glob(f"state/*/{name}")
    SPOILS[spoil](path)
    capfd.readouterr()
    assert embed(documents).read_bytes() == whole
    assert f"{path}: " in capfd.readouterr().err


def test_other_documents_are_embedded_from_the_start(documents, embed, small_batches):
    with small_batches.killed_after(2):
        embed(documents)
    write_documents(documents, {**TEXTS, "a": ("compilers", "allocate")})
    small_batches.sizes.clear()
    resumed = embed(documents).read_bytes()
    assert sum(small_batches.sizes) == 4
    assert resumed == embed(documents, name="afresh").read_bytes()


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


WORDS = {"a": "bees", "b": None, "c": "collect nectar", "d": "bees collect nectar", "e": "loops", "f": None, "g": "in"}


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
def test_a_window_of_two_files_counts_documents_with_a_text_and_without(encoder, tmp_path, start, size, expected):
    files = [
        write_documents(tmp_path / f"{names}.parquet", {name: (WORDS[name], None) for name in names})
        for names in ("ab", "cdefg")
    ]
    tokenizer = open_tokenizer(encoder)
    windows = tokenised_windows(tokens.texts_of(files, tokenizer, "documents"), tokenizer, start=start, size=size)
    assert [(each.names, each.rows.tolist(), each.tokens.lengths.tolist()) for each in windows] == expected


@given(lengths=st.lists(st.integers(1, 40), max_size=60), tokens=st.integers(1, 200))
def test_batches_hold_each_document_once_and_no_more_tokens_than_asked(lengths, tokens):
    lengths = np.array(lengths, dtype=np.int64)
    batches = list(batches_of_like_length(lengths, tokens))
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    assert lengths[rows].tolist() == sorted(lengths.tolist(), reverse=True)
    for number, batch in enumerate(batches):
        longest, is_last = lengths[batch].max(), number == len(batches) - 1
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert is_last or (len(batch) + 1) * longest > tokens


@pytest.mark.parametrize(
    ("units", "precision", "dtype", "said"),
    [
        ({"amx_bf16": False, "avx512_bf16": True}, "auto", torch.bfloat16, ""),
        ({"amx_bf16": False}, "auto", torch.float32, ""),
        ({}, "float32", torch.float32, ""),
        (
            {},
            "bfloat16",
            torch.bfloat16,
            "This CPU has no instructions for bfloat16; float32 may be many times faster. Set `precision: auto`.\n",
        ),
    ],
)
def test_auto_is_bfloat16_where_a_cpu_has_instructions_for_it_and_a_named_precision_is_kept_to_and_said_to_be_slow(
    monkeypatch, capsys, units, precision, dtype, said
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    assert computes_in(precision, torch.device("cpu")) == dtype
    assert capsys.readouterr().err == said


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


def made_texts(count, seed):
    random, words = np.random.default_rng(seed), " ".join(TOPICS.values()).split()
    sizes = [random.integers(1, 12, 2) for _ in range(count)]
    return {2 * at: tuple(" ".join(random.choice(words, size)) for size in pair) for at, pair in enumerate(sizes)}


OLDER = {**made_texts(90, 1), 6: (None, None), 8: ("bees", None)}
NEWER = {paper: text for paper, text in OLDER.items() if paper not in (0, 40)}
NEWER |= {5: ("bees in", "programs"), 6: ("loops", None), 8: (None, ""), 10: ("bees", "in loops")}
NEWER |= {999: ("flowers", None)}
CHANGED = {5, 6, 10, 999}


@pytest.fixture(scope="module")
def dense(layered, tmp_path_factory):
    return fetched(layered, tmp_path_factory.mktemp("dense") / "model")


@pytest.fixture(params=["encoder", "dense", "static"])
def model(request):
    """A transformer, one with a linear map, and a static encoder."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def in_windows(batches, monkeypatch):
    monkeypatch.setattr(Encoder, "window", 32)
    return batches


@pytest.fixture
def embed_newer(embed, tmp_path):
    """Embeds the newer papers, and returns the bytes of the table."""

    def run(model, name, base=None, texts=NEWER):
        papers = write_papers(tmp_path / "newer/corpus/papers/0.parquet", texts)
        return embed(papers, name=name, model=model, table="papers", base=base).read_bytes()

    return run


@pytest.fixture
def older(model, embed, tmp_path):
    """The results of a run over the older papers, whose encoder was fetched from this folder under another name."""
    base = tmp_path / "older"
    papers = write_papers(base / "corpus/papers/0.parquet", OLDER)
    folder = base / "encoder/other/seed-3"
    if is_static(model):
        fetch_encoder(StaticSettings(kind="static", model=str(model)), folder / "model")
    else:
        fetched(model, folder / "model", max_length=read_json(model / "sentence_bert_config.json")["max_seq_length"])
    embed(papers, name=folder / "papers", model=folder / "model", table="papers")
    return base


def test_only_new_and_changed_papers_are_embedded_and_the_bytes_are_those_of_a_whole_run(
    model, older, embed_newer, in_windows, capfd
):
    whole = embed_newer(model, "whole")
    in_windows.sizes.clear()
    assert embed_newer(model, "updated", older) == whole
    assert sum(in_windows.sizes) == len(CHANGED)
    assert f"{len(NEWER) - len(CHANGED) - 1} of {len(NEWER)} papers have the text" in capfd.readouterr().err


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_where_no_paper_kept_its_text_all_are_embedded(model, older, embed_newer, in_windows):
    added = {1001: ("bees", "in loops"), 1003: ("flowers", None)}
    whole = embed_newer(model, "whole", texts=added)
    in_windows.sizes.clear()
    assert embed_newer(model, "updated", older, added) == whole
    assert sum(in_windows.sizes) == len(added)


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_an_update_killed_at_any_batch_ends_with_the_same_bytes(model, older, embed_newer, in_windows):
    whole = embed_newer(model, "whole")
    for most in range(3):
        with in_windows.killed_after(most):
            embed_newer(model, f"killed-{most}", older)
        assert embed_newer(model, f"killed-{most}", older) == whole
        assert sum(in_windows.sizes) == len(CHANGED)


@pytest.mark.parametrize("model", ["encoder", "static"], indirect=True)
def test_vectors_by_other_weights_or_computed_otherwise_are_not_taken(model, older, embed_newer, in_windows, capfd):
    whole = embed_newer(model, "whole")
    [table] = older.glob("encoder/*/*/papers/0.parquet")
    vectors = read_table(table, "paper_embeddings")
    matrix = vectors_of(vectors)
    matrix[2] = np.nextafter(matrix[2], 1)
    write_table(table, "paper_embeddings", vectors.set_column(1, "vector", vector_column(matrix)))
    assert embed_newer(model, "other-bits", older) == whole
    assert "other vectors than this encoder computes now; all papers are embedded" in capfd.readouterr().err
    [weights] = older.glob("encoder/*/*/model/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert embed_newer(model, "other-weights", older) == whole
    assert "has no vectors of these papers by this encoder" in capfd.readouterr().err


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", ["bert", "qwen3", "modernbert"])
def test_the_vector_of_a_document_depends_on_no_other_document(kind, tmp_path, one_thread):
    encoder = open_encoder(fetched(published(tmp_path / kind, kind), tmp_path / "fetched"))
    random = np.random.default_rng(1)
    documents = documents_of([random.integers(5, 60, size) for size in np.repeat(np.arange(1, 30), 4)])
    together = np.empty((len(documents), encoder.dimension), np.float32)
    for rows in encoder.batches(documents.lengths):
        assert len(set(documents.lengths[rows].tolist())) == 1
        together[rows] = embed_alike(encoder, documents, rows)
    alone = np.concatenate([embed_alike(encoder, documents, np.array([row])) for row in range(len(documents))])
    np.testing.assert_array_equal(together, alone)
