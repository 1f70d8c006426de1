"""Static encoders: what they give, what other libraries make of their folders, and how they learn."""

import json
import runpy
import shutil
import signal
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from time import sleep

import model2vec
import mteb
import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import assert_goes_on, built, cut_at_random, paper_texts, trained, write_papers
from tests.encoder.published import edit
from tests.examples import written_examples, written_pairs
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn.functional import embedding_bag
from torch.utils.data import DataLoader
from transformers import AutoModel

from cocite.config.encoders import StaticSettings
from cocite.core.errors import InputError
from cocite.encoder import build
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_papers
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import open_encoder
from cocite.encoder.results import CHECKPOINT
from cocite.encoder.static import PieceTable, StaticEncoder, bags_of
from cocite.encoder.tokens import Tokenizer as Tokenizers
from cocite.encoder.trainer import Inputs

LEARNING = {"loss": "mnrl", "epochs": 4, "lr": 0.05, "warmup": 0.0, "batch_size": 8}
TEXTS = [("Bees collect", "nectar and nectar"), ("Bees, bees", None), ("ÿ ÿ", "ÿ")]


@pytest.fixture(scope="module")
def static(corpus, tmp_path_factory):
    return built(corpus, tmp_path_factory.mktemp("static") / "model", StaticSettings(kind="static", dimension=12))


@pytest.fixture(scope="module")
def pairs(static, tmp_path_factory):
    """Inputs of trainings on pairs of the same topic."""
    folder, sets = tmp_path_factory.mktemp("pairs"), {}
    rows = {
        "training": [(query, (query + 2 * step) % 16, 0) for query in range(16) for step in (1, 2, 3)],
        "validation": [(query, query + 2 * step, 0) for query in (16, 17) for step in (1, 2, 3)],
    }
    for name, of in rows.items():
        with_negatives = written_examples(folder / "triplets" / name, of, paper_texts(), static)
        sets[name] = [written_pairs(folder / name, with_negatives, static)]
    return Inputs(encoder=static, **sets)


def vectors_by_definition(folder, texts, counts):
    """The weighted means over the pieces of each text, of length 1, from the files of the folder alone."""
    table = load_file(folder / "model.safetensors")["embeddings"].numpy()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = []
    for text in texts:
        pieces = [piece for piece in tokenizer.encode(text).ids if piece != tokenizer.token_to_id("[UNK]")]
        of_each = {piece: pieces.count(piece) for piece in pieces}
        weights = {piece: count if counts == "plain" else np.log(1 + count) for piece, count in of_each.items()}
        mean = sum((weight * table[piece] for piece, weight in weights.items()), start=np.zeros(table.shape[1]))
        rows.append(mean / max(np.linalg.norm(mean), 1e-12))
    return np.array(rows)


@pytest.mark.parametrize("counts", ["log", "plain"])
def test_a_text_has_the_weighted_mean_of_its_known_pieces(corpus, tmp_path, counts):
    folder = built(corpus, tmp_path / "model", StaticSettings(kind="static", dimension=12, counts=counts))
    joined = [" ".join(filter(None, text)) for text in TEXTS]
    expected = vectors_by_definition(folder, joined, counts)
    found = embed_papers(folder, TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 0], abs=1e-6)
    others = [
        SentenceTransformer(str(folder)).encode(joined),
        model2vec.StaticModel.from_pretrained(folder).encode(joined),
        mteb.models.SentenceTransformerEncoderWrapper(str(folder)).encode(
            DataLoader(Dataset.from_dict({"text": joined}), batch_size=2),
            task_metadata=mteb.get_task("SciFact").metadata,
            hf_split="test",
            hf_subset="default",
        ),
    ]
    for vectors in others:
        np.testing.assert_allclose(vectors, vectors_by_definition(folder, joined, "plain"), atol=1e-5)


def test_kept_out_papers_and_buckets_leave_no_trace_in_the_table(static, corpus, tmp_path):
    assert not [piece for piece in Tokenizer.from_file(str(static / "tokenizer.json")).get_vocab() if "ÿ" in piece]
    again = built(corpus, tmp_path / "again", StaticSettings(kind="static", dimension=12))
    other = built(corpus, tmp_path / "other", StaticSettings(kind="static", dimension=12), seed=2)
    table, repeated, another = ((folder / "model.safetensors").read_bytes() for folder in (static, again, other))
    assert table == repeated
    assert table != another


def test_the_papers_whose_pieces_are_counted_do_not_depend_on_buckets(corpus, static, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "COUNTED", 12)
    halves = [
        write_papers(tmp_path / f"{rest}.parquet", {n: text for n, text in paper_texts().items() if n % 2 == rest})
        for rest in (1, 0)
    ]
    whole = write_papers(tmp_path / "whole.parquet", paper_texts())
    counts, number = build.documents_with([whole], corpus / "queries.parquet", static, 1)
    again, of_halves = build.documents_with(halves, corpus / "queries.parquet", static, 1)
    assert number == of_halves
    assert 0 < number < len(paper_texts())
    assert counts.tolist() == again.tolist()


def test_the_vocabulary_of_many_papers_is_made_of_some_that_do_not_depend_on_buckets(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "READ", 12)
    queries = corpus / "queries.parquet"
    halves = [
        write_papers(tmp_path / f"{rest}.parquet", {n: text for n, text in paper_texts().items() if n % 2 == rest})
        for rest in (1, 0)
    ]
    whole = write_papers(tmp_path / "whole.parquet", paper_texts())
    read, again = ([text for some in build.corpus_texts(of, queries, 1)() for text in some] for of in ([whole], halves))
    assert sorted(read) == sorted(again)
    assert 0 < len(read) < sum(bool(text) for texts in paper_texts().values() for text in texts)


def test_a_table_has_the_vocabulary_of_another_encoder(corpus, encoder, tmp_path):
    settings = StaticSettings(kind="static", dimension=12, vocabulary_of="bert")
    folder = built(corpus, tmp_path / "model", settings, source=encoder)
    ours, theirs = (open_encoder(of).tokenizer.backend for of in (folder, encoder))
    text = "Bees collect ж nectar"
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.encode(text).ids == theirs.encode(text, add_special_tokens=False).ids
    np.testing.assert_allclose(
        embed_papers(folder, [(text, None)]), vectors_by_definition(folder, [text], "log"), atol=1e-6
    )


def test_a_distilled_table_has_the_components_of_model2vec_scaled_by_rarity(corpus, encoder, tmp_path, capsys):
    settings = StaticSettings(kind="static", dimension=7, distilled_from="bert")
    folder = built(corpus, tmp_path / "model", settings, source=encoder)
    # Its package cannot be imported beside a newer transformers, which this module does not mind.
    theirs = runpy.run_path(str(Path(model2vec.__file__).with_name("distill") / "inference.py"))
    backend = open_encoder(encoder).tokenizer.backend
    pieces = [set(backend.encode(" ".join(text), add_special_tokens=False).ids) for text in paper_texts().values()]
    having = Counter(chain(*pieces))
    occurring = sorted(having)
    first, last = backend.encode("").ids
    around = [[first, token, last] for token in occurring]
    whole = theirs["create_embeddings"](AutoModel.from_pretrained(encoder), around, "cpu", 0)
    components = theirs["apply_pca"](whole, 7)
    share = components.var(axis=0).sum() / whole.var(axis=0).sum()
    rarity = np.log((len(pieces) + 1) / (np.array([having[token] for token in occurring]) + 1)) + 0.1
    expected = components / components.std(axis=0) / np.sqrt(7) * rarity[:, None]
    found = load_file(folder / "model.safetensors")["embeddings"].numpy()[occurring]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)  # whatever the signs of components
    said = f"Distilled {backend.get_vocab_size()} tokens of bert: 7 of the 7 dimensions have {share:.1%} of the var"
    assert said in capsys.readouterr().err
    again, wider = (
        built(corpus, tmp_path / name, settings.model_copy(update={"dimension": size}), source=encoder)
        for name, size in (("again", 7), ("wider", 40))
    )
    assert (again / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert load_file(wider / "model.safetensors")["embeddings"].shape == (backend.get_vocab_size(), 40)


def test_a_vocabulary_that_the_corpus_does_not_fill_is_counted(corpus, tmp_path, capsys):
    folder = built(corpus, tmp_path / "model", StaticSettings(kind="static", dimension=12, vocabulary=5000))
    pieces = len(load_file(folder / "model.safetensors")["embeddings"])
    assert f"The corpus gives {pieces} word pieces; vocabulary allows 5,000." in capsys.readouterr().err


def test_bags_of_documents_have_each_known_piece_once():
    documents = documents_of([np.array(of, np.int32) for of in ([3, 1, 3, 0], [], [0, 0], [2])])
    found = bags_of(documents, np.array([3, 0, 1, 2]), 0, plain=True)
    assert {name: values.tolist() for name, values in found.items()} == {
        "pieces": [2, 1, 3],
        "starts": [0, 1, 3, 3],
        "weights": [1, 1, 2],
    }
    assert bags_of(documents, np.array([0]), None, plain=False)["weights"].tolist() == pytest.approx(np.log([2, 2, 3]))


def test_gradients_are_those_of_torch():
    table, pieces, starts = (
        torch.randn(9, 4, requires_grad=True),
        torch.tensor([2, 5, 1, 2, 8]),
        torch.tensor([0, 2, 2, 3]),
    )
    features = {"pieces": pieces, "starts": starts, "weights": torch.rand(5)}
    into = torch.randn(4, 4)
    module = PieceTable(table.detach().clone())
    module(features).backward(into)
    embedding_bag(pieces, table, starts, mode="sum", per_sample_weights=features["weights"]).backward(into)
    torch.testing.assert_close(module.weight.grad, table.grad)


def test_it_learns_from_pairs_and_stays_a_folder_that_others_open(pairs, tmp_path):
    folder = trained(tmp_path, pairs, **LEARNING) / "model"
    assert "log(1 + n) for a piece that a text has n times" in (folder / "README.md").read_text()
    texts = [paper_texts()[paper] for paper in range(20, 24)]
    vectors = embed_papers(folder, texts)
    cosines, before = vectors @ vectors.T, embed_papers(pairs.encoder, texts) @ embed_papers(pairs.encoder, texts).T
    # Even papers are of one topic, and odd ones of the other.
    assert cosines[0, 2] - cosines[0, 1] > before[0, 2] - before[0, 1]
    assert SentenceTransformer(str(folder)).encode("bees").shape == (12,)
    moved = (
        load_file(folder / "model.safetensors")["embeddings"]
        - load_file(pairs.encoder / "model.safetensors")["embeddings"]
    )
    assert torch.count_nonzero(moved.abs().sum(dim=1)) > 10


def test_a_stopped_training_ends_like_one_that_was_not(pairs, tmp_path):
    assert_goes_on(tmp_path, pairs, 1, 5, **LEARNING, matryoshka=(4,))


@pytest.mark.long
def test_a_training_that_is_killed_twenty_times_ends_like_one_that_was_not(pairs, tmp_path):
    cut_at_random(tmp_path, pairs, 20, loss="mnrl")


@pytest.mark.long
def test_two_processes_learn_what_one_learns_also_when_they_are_killed(command_line, pairs, tmp_path):
    def started(name, processes):
        words = command_line(tmp_path / name, encoder=pairs.encoder, inputs=pairs, **{**LEARNING, "epochs": 400})
        return subprocess.Popen([Path(sys.executable).with_name("cocite"), *words, "--processes", str(processes)])

    assert [started("one", 1).wait(), started("two", 2).wait()] == [0, 0]
    checkpoint, saved = tmp_path / "killed/state" / CHECKPOINT, 0
    for _ in range(2):
        process = started("killed", 2)
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == saved:
            assert process.poll() is None
            sleep(0.01)
        saved = checkpoint.stat().st_mtime_ns
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert started("killed", 2).wait() == 0
    one, two, killed = (
        load_file(tmp_path / name / "model/model.safetensors")["embeddings"] for name in ("one", "two", "killed")
    )
    assert (one - two).norm() < 1e-3 * one.norm()
    assert torch.equal(two, killed)


def test_mini_batches_change_nothing_but_rounding(pairs, tmp_path):
    whole, cut = (
        load_file(trained(tmp_path / name, pairs, **LEARNING, **more) / "model/model.safetensors")["embeddings"]
        for name, more in (("whole", {}), ("cut", {"mini_batch_tokens": 20}))
    )
    assert (whole - cut).norm() < 1e-3 * whole.norm()


def assert_as_brought(folder, backend, texts, **tensors):
    """Fetch a table as other libraries save it; it gives texts the vectors that model2vec and sentence-transformers
    give them."""
    brought, fetched = folder / "brought", folder / "fetched"
    brought.mkdir()
    backend.save(str(brought / "tokenizer.json"))
    save_file(tensors, brought / "model.safetensors")
    (brought / "config.json").write_text(json.dumps({"normalize": True}))
    fetch_encoder(StaticSettings(kind="static", model=str(brought)), fetched)
    expected = model2vec.StaticModel.from_pretrained(brought).encode(texts)
    np.testing.assert_allclose(embed_papers(fetched, [(text, None) for text in texts]), expected, atol=1e-6)
    np.testing.assert_allclose(SentenceTransformer(str(fetched)).encode(texts), expected, atol=1e-6)


def test_a_table_with_weights_and_shared_rows_keeps_its_vectors(tmp_path):
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "[CLS]": 1, "bees": 2, "nectar": 3}))
    backend.normalizer, backend.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    more = {"weights": torch.tensor([1.0, 1.0, 0.5, 2.0]), "mapping": torch.tensor([0, 0, 1, 2])}
    assert_as_brought(tmp_path, backend, ["Bees nectar nectar", "nectar"], embeddings=torch.randn(3, 5), **more)


def test_unknown_pieces_of_a_unigram_tokenizer_do_not_count(tmp_path):
    backend = Tokenizer(models.Unigram([("<unk>", 0.0), ("bees", -1.0), ("nectar", -1.0)], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    assert_as_brought(tmp_path, backend, ["bees ж nectar", "ж ж bees"], embeddings=torch.randn(3, 5))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "cannot be opened"),
        (
            lambda folder: save_file({"other": torch.zeros(2)}, folder / "model.safetensors"),
            "has no table of word pieces",
        ),
        (
            lambda folder: save_file({"embeddings": torch.zeros(3, 2)}, folder / "model.safetensors"),
            "and its table has 3 rows",
        ),
        (
            lambda folder: edit(folder / "modules.json", lambda found: [*found, {"type": "a.Dense", "path": "2"}]),
            "lists the modules StaticEmbedding Normalize Dense",
        ),
        (
            lambda folder: save_file({"embeddings": torch.full((999, 2), torch.nan)}, folder / "model.safetensors"),
            "not finite",
        ),
    ],
)
def test_a_folder_without_a_whole_table_is_refused(static, tmp_path, spoil, said):
    brought = shutil.copytree(static, tmp_path / "brought")
    spoil(brought)
    with pytest.raises(InputError, match=said):
        fetch_encoder(StaticSettings(kind="static", model=str(brought)), tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()


def test_a_folder_of_ours_that_is_brought_again_keeps_its_counts(corpus, tmp_path):
    folder = built(corpus, tmp_path / "model", StaticSettings(kind="static", dimension=12))
    fetch_encoder(StaticSettings(kind="static", model=str(folder)), tmp_path / "fetched")
    np.testing.assert_array_equal(embed_papers(tmp_path / "fetched", TEXTS), embed_papers(folder, TEXTS))


def test_a_text_whose_pieces_have_no_vector_stops_no_step():
    table = torch.ones(3, 4)
    table[1] = 0
    encoder = StaticEncoder(
        table, Tokenizers(backend=None, encode=None, separator=" ", padding=0, max_length=9), "plain"
    )
    documents = documents_of([np.array([1], np.int32), np.array([2], np.int32)])
    vectors = encoder(encoder.features_of(documents, np.arange(2)))
    (vectors @ torch.randn(4)).sum().backward()
    assert vectors[0].tolist() == [0, 0, 0, 0]
    assert torch.isfinite(encoder.transformer.weight.grad).all()


def test_vectors_can_be_cut(static):
    assert open_encoder(static, dimension=5).dimension == 5
    with pytest.raises(InputError, match="gives vectors of 12 dimensions, and 13 are to be kept"):
        open_encoder(static, dimension=13)
