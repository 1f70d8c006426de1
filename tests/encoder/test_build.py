"""Encoders that are built: transformers, static tables of word pieces, and means of trained ones."""

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
from tests.encoder.building import built, paper_texts, trained, vectors_by, write_papers, write_queries
from tests.encoder.published import edit
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn.functional import embedding_bag
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

from cocite.config.encoders import StaticSettings
from cocite.core.errors import InputError
from cocite.encoder import build
from cocite.encoder.build import average_models, build_encoder
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_papers
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import open_encoder
from cocite.encoder.results import CHECKPOINT
from cocite.encoder.spaces import read_space, save_spaces
from cocite.encoder.static import PieceTable, StaticEncoder, bags_of
from cocite.encoder.tokens import Tokenizer as Tokenizers

WEIGHTS = "model.safetensors"


def test_both_libraries_open_a_built_encoder(encoder):
    model = SentenceTransformer(str(encoder))
    assert model.max_seq_length == 16
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    bert = AutoModel.from_pretrained(encoder)
    assert (bert.config.hidden_size, bert.config.num_hidden_layers, bert.config.intermediate_size) == (16, 1, 64)


def test_frequent_words_are_tokens_in_lower_case_and_papers_that_are_kept_out_leave_no_trace(encoder):
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Bees COLLECT")["input_ids"])
    assert tokens == ["[CLS]", "bees", "collect", "[SEP]"]
    assert "y" not in tokenizer.get_vocab()
    assert not [token for token in tokenizer.get_vocab() if "zy" in token or "ÿ" in token]


def test_buckets_and_runs_do_not_change_an_encoder_and_another_seed_gives_other_weights(
    corpus, encoder, small_settings, halves, tmp_path
):
    build_encoder(halves, corpus / "queries.parquet", tmp_path / "model", settings=small_settings, seed=1)
    for file in ("tokenizer.json", WEIGHTS, "config.json"):
        assert (tmp_path / "model" / file).read_bytes() == (encoder / file).read_bytes()
    built(corpus, tmp_path / "other", small_settings, seed=2)
    assert (tmp_path / "other/tokenizer.json").read_bytes() == (encoder / "tokenizer.json").read_bytes()
    assert (tmp_path / "other" / WEIGHTS).read_bytes() != (encoder / WEIGHTS).read_bytes()


def test_a_corpus_without_texts_is_refused(small_settings, tmp_path):
    papers = write_papers(tmp_path / "papers.parquet", {1: (None, None), 2: ("held out", None)})
    queries = write_queries(tmp_path / "queries.parquet", {2: "holdout"})
    with pytest.raises(InputError, match="no titles and abstracts"):
        build_encoder([papers], queries, tmp_path / "model", settings=small_settings, seed=1)
    assert not (tmp_path / "model").exists()


def changed(folder: Path, source: Path, by: float) -> Path:
    """A copy of an encoder with this added to all its weights."""
    shutil.copytree(source, folder)
    save_file({name: weight + by for name, weight in load_file(source / WEIGHTS).items()}, folder / WEIGHTS)
    return folder


def test_weights_are_the_means_and_all_else_is_as_the_first_has_it_and_the_card_says_so(encoder, tmp_path):
    models = [changed(tmp_path / str(number), encoder, by) for number, by in enumerate((0.0, 0.25, 0.5))]
    average_models(models, tmp_path / "mean")
    expected = load_file(changed(tmp_path / "expected", encoder, 0.25) / WEIGHTS)
    found = load_file(tmp_path / "mean" / WEIGHTS)
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=0, atol=1e-6)
    for name in ("tokenizer.json", "modules.json", "config.json"):
        assert (tmp_path / "mean" / name).read_bytes() == (models[0] / name).read_bytes()
    lines = (tmp_path / "mean" / "README.md").read_text().splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("# "))
    assert lines[title + 2].startswith("The weights are the mean of those of 3 trainings")


def test_the_mean_of_an_encoder_with_itself_gives_its_vectors(encoder, tmp_path):
    average_models([encoder, encoder], tmp_path / "mean")
    texts = ["bees collect nectar", "compilers allocate registers for loops"]
    plain = vectors_by(encoder, texts)
    assert (vectors_by(tmp_path / "mean", texts) == plain).all()
    assert SentenceTransformer(str(tmp_path / "mean")).encode(texts) == pytest.approx(plain, abs=1e-5)


def test_maps_to_the_spaces_of_aspects_are_averaged_along(encoder, tmp_path):
    models = [shutil.copytree(encoder, tmp_path / name) for name in ("one", "other")]
    for folder in models:
        save_spaces({"result": torch.nn.Linear(16, 16)}, folder)
    average_models(models, tmp_path / "mean")
    one, other, mean = (read_space(folder, "result").weight for folder in (*models, tmp_path / "mean"))
    assert not torch.equal(one, other)
    torch.testing.assert_close(mean, (one + other) / 2)
    in_space = tmp_path / "mean" / "aspects" / "result" / WEIGHTS
    assert in_space.resolve() == (tmp_path / "mean" / WEIGHTS).resolve()


def test_encoders_that_are_not_alike_have_no_mean(encoder, tmp_path):
    other, weights = shutil.copytree(encoder, tmp_path / "other"), load_file(encoder / WEIGHTS)
    name = min(weights)
    narrower = weights | {name: weights[name][..., :-1].contiguous()}
    fewer = {key: weight for key, weight in weights.items() if key != name}
    for held, message in (
        (narrower, "cannot be averaged with the other encoders: The size of tensor"),
        (fewer, f"does not contain tensor {name}"),
        (None, "No such file"),
    ):
        (other / WEIGHTS).unlink()
        if held:
            save_file(held, other / WEIGHTS)
        with pytest.raises(InputError, match=message):
            average_models([encoder, other], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


LEARNING = {"loss": "mnrl", "epochs": 4, "lr": 0.05, "warmup": 0.0, "batch_size": 8}
TEXTS = [("Bees collect", "nectar and nectar"), ("Bees, bees", None), ("ÿ ÿ", "ÿ")]


def vectors_by_definition(folder, texts, counts):
    """The weighted means over the pieces of each text, of length 1, from the files of the folder alone."""
    table = load_file(folder / WEIGHTS)["embeddings"].numpy()
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
def test_a_text_has_the_weighted_mean_of_its_known_pieces_also_when_the_folder_is_brought(corpus, tmp_path, counts):
    folder = built(corpus, tmp_path / "model", StaticSettings(kind="static", dimension=12, counts=counts))
    joined = [" ".join(filter(None, text)) for text in TEXTS]
    expected = vectors_by_definition(folder, joined, counts)
    found = embed_papers(folder, TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 0], abs=1e-6)
    fetch_encoder(StaticSettings(kind="static", model=str(folder)), tmp_path / "fetched")
    np.testing.assert_array_equal(embed_papers(tmp_path / "fetched", TEXTS), found)
    task = {"task_metadata": mteb.get_task("SciFact").metadata, "hf_split": "test", "hf_subset": "default"}
    batches = DataLoader(Dataset.from_dict({"text": joined}), batch_size=2)
    others = [
        SentenceTransformer(str(folder)).encode(joined),
        model2vec.StaticModel.from_pretrained(folder).encode(joined),
        mteb.models.SentenceTransformerEncoderWrapper(str(folder)).encode(batches, **task),
    ]
    for vectors in others:
        np.testing.assert_allclose(vectors, vectors_by_definition(folder, joined, "plain"), atol=1e-5)


def test_kept_out_papers_and_buckets_leave_no_trace_in_the_table(static, corpus, tmp_path):
    assert not [piece for piece in Tokenizer.from_file(str(static / "tokenizer.json")).get_vocab() if "ÿ" in piece]
    again = built(corpus, tmp_path / "again", StaticSettings(kind="static", dimension=12))
    other = built(corpus, tmp_path / "other", StaticSettings(kind="static", dimension=12), seed=2)
    table, repeated, another = ((folder / WEIGHTS).read_bytes() for folder in (static, again, other))
    assert table == repeated
    assert table != another


def test_the_papers_that_are_read_and_counted_of_many_do_not_depend_on_buckets(
    corpus, static, halves, tmp_path, monkeypatch
):
    monkeypatch.setattr(build, "COUNTED", 12)
    monkeypatch.setattr(build, "READ", 12)
    tables = [write_papers(tmp_path / "whole.parquet", paper_texts())], halves
    queries = corpus / "queries.parquet"
    (counts, number), (again, of_halves) = (build.documents_with(of, queries, static, 1) for of in tables)
    assert 0 < number == of_halves < len(paper_texts())
    assert counts.tolist() == again.tolist()
    some, others = ([text for part in build.corpus_texts(of, queries, 1)() for text in part] for of in tables)
    assert sorted(some) == sorted(others)
    assert 0 < len(some) < sum(bool(text) for texts in paper_texts().values() for text in texts)


def test_a_table_has_the_vocabulary_of_another_encoder(corpus, encoder, tmp_path):
    settings = StaticSettings(kind="static", dimension=12, vocabulary_of="bert")
    folder = built(corpus, tmp_path / "model", settings, source=encoder)
    ours, theirs = (open_encoder(of).tokenizer.backend for of in (folder, encoder))
    text = "Bees collect ж nectar"
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.encode(text).ids == theirs.encode(text, add_special_tokens=False).ids
    expected = vectors_by_definition(folder, [text], "log")
    np.testing.assert_allclose(embed_papers(folder, [(text, None)]), expected, atol=1e-6)


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
    found = load_file(folder / WEIGHTS)["embeddings"].numpy()[occurring]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)  # whatever the signs of components
    said = f"Distilled {backend.get_vocab_size()} tokens of bert: 7 of the 7 dimensions have {share:.1%} of the var"
    assert said in capsys.readouterr().err
    again = built(corpus, tmp_path / "again", settings, source=encoder)
    assert (again / WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()
    wider = built(corpus, tmp_path / "wider", settings.model_copy(update={"dimension": 40}), source=encoder)
    assert load_file(wider / WEIGHTS)["embeddings"].shape == (backend.get_vocab_size(), 40)


def test_a_vocabulary_that_the_corpus_does_not_fill_is_counted(corpus, tmp_path, capsys):
    folder = built(corpus, tmp_path / "model", StaticSettings(kind="static", dimension=12, vocabulary=5000))
    pieces = len(load_file(folder / WEIGHTS)["embeddings"])
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
    table = torch.randn(9, 4, requires_grad=True)
    pieces, starts = torch.tensor([2, 5, 1, 2, 8]), torch.tensor([0, 2, 2, 3])
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
    cosines, before = (of @ of.T for of in (vectors, embed_papers(pairs.encoder, texts)))
    # Even papers are of one topic, and odd ones of the other.
    assert cosines[0, 2] - cosines[0, 1] > before[0, 2] - before[0, 1]
    assert SentenceTransformer(str(folder)).encode("bees").shape == (12,)
    learned, old = (load_file(of / WEIGHTS)["embeddings"] for of in (folder, pairs.encoder))
    assert torch.count_nonzero((learned - old).abs().sum(dim=1)) > 10


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
        load_file(tmp_path / name / "model" / WEIGHTS)["embeddings"] for name in ("one", "two", "killed")
    )
    assert (one - two).norm() < 1e-3 * one.norm()
    assert torch.equal(two, killed)


def test_mini_batches_change_nothing_but_rounding(pairs, tmp_path):
    whole, cut = (
        load_file(trained(tmp_path / name, pairs, **LEARNING, **more) / "model" / WEIGHTS)["embeddings"]
        for name, more in (("whole", {}), ("cut", {"mini_batch_tokens": 20}))
    )
    assert (whole - cut).norm() < 1e-3 * whole.norm()


def word_pieces():
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "[CLS]": 1, "bees": 2, "nectar": 3}))
    backend.normalizer = normalizers.Lowercase()
    backend.post_processor = processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    return backend


def unigrams():
    return Tokenizer(models.Unigram([("<unk>", 0.0), ("bees", -1.0), ("nectar", -1.0)], unk_id=0))


WEIGHED = {"weights": torch.tensor([1.0, 1.0, 0.5, 2.0]), "mapping": torch.tensor([0, 0, 1, 2])}


@pytest.mark.parametrize(
    ("tokenizer", "texts", "more"),
    [(word_pieces, ["Bees nectar nectar", "nectar"], WEIGHED), (unigrams, ["bees ж nectar", "ж ж bees"], {})],
    ids=["weights and shared rows", "unknown pieces of unigrams"],
)
def test_a_table_as_other_libraries_save_it_keeps_the_vectors_that_they_give(tokenizer, texts, more, tmp_path):
    backend, brought, fetched = tokenizer(), tmp_path / "brought", tmp_path / "fetched"
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    brought.mkdir()
    backend.save(str(brought / "tokenizer.json"))
    save_file({"embeddings": torch.randn(3, 5), **more}, brought / WEIGHTS)
    (brought / "config.json").write_text(json.dumps({"normalize": True}))
    fetch_encoder(StaticSettings(kind="static", model=str(brought)), fetched)
    expected = model2vec.StaticModel.from_pretrained(brought).encode(texts)
    np.testing.assert_allclose(embed_papers(fetched, [(text, None) for text in texts]), expected, atol=1e-6)
    np.testing.assert_allclose(SentenceTransformer(str(fetched)).encode(texts), expected, atol=1e-6)


def holding(**tensors):
    return lambda folder: save_file(tensors, folder / WEIGHTS)


DENSE_BEHIND = {"type": "a.Dense", "path": "2"}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / WEIGHTS).unlink(), "has no model.safetensors"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"no"), "cannot be opened"),
        (holding(other=torch.zeros(2)), "has no table of word pieces"),
        (holding(embeddings=torch.zeros(3, 2)), "and its table has 3 rows"),
        (
            lambda folder: edit(folder / "modules.json", lambda found: [*found, DENSE_BEHIND]),
            "lists the modules StaticEmbedding Normalize Dense",
        ),
        (holding(embeddings=torch.full((999, 2), torch.nan)), "not finite"),
    ],
)
def test_a_folder_without_a_whole_table_is_refused(static, tmp_path, spoil, said):
    brought = shutil.copytree(static, tmp_path / "brought")
    spoil(brought)
    with pytest.raises(InputError, match=said):
        fetch_encoder(StaticSettings(kind="static", model=str(brought)), tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()


def test_a_text_whose_pieces_have_no_vector_stops_no_step():
    table = torch.ones(3, 4)
    table[1] = 0
    tokenizer = Tokenizers(backend=None, encode=None, separator=" ", padding=0, max_length=9)
    encoder = StaticEncoder(table, tokenizer, "plain")
    documents = documents_of([np.array([1], np.int32), np.array([2], np.int32)])
    vectors = encoder(encoder.features_of(documents, np.arange(2)))
    (vectors @ torch.randn(4)).sum().backward()
    assert vectors[0].tolist() == [0, 0, 0, 0]
    assert torch.isfinite(encoder.transformer.weight.grad).all()


def test_vectors_can_be_cut(static):
    assert open_encoder(static, dimension=5).dimension == 5
    with pytest.raises(InputError, match="gives vectors of 12 dimensions, and 13 are to be kept"):
        open_encoder(static, dimension=13)
