"""Encoders of sentences: how texts are split, attention to sentences, their sum, and how they train."""

import json
import re

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tests.encoder.building import WEIGHTS as OF_MODEL
from tests.encoder.building import assert_goes_on, built, cut_at_random, embedded, paper_texts, trained
from tests.examples import written_aspects
from tests.papers import papers_table

from cocite.config.encoders import EncoderSettings
from cocite.config.models import TrainingSettings
from cocite.config.settings import parse_settings
from cocite.core.atomic import read_json, write_json
from cocite.core.tables.files import read_table, write_table
from cocite.encoder import model as encoder_model
from cocite.encoder import poolings
from cocite.encoder.attention import enable_sequence_packing
from cocite.encoder.batch import TOKENS_OF_A_START, Collator
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_papers, embed_sums, tokenise_texts
from cocite.encoder.examples import open_examples
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.layers import WEIGHTS, open_names
from cocite.encoder.model import Encoder, embed, open_encoder
from cocite.encoder.objective import Learner, Objective
from cocite.encoder.spaces import read_space
from cocite.encoder.tokens import open_tokenizer, sentences_of, tokenise
from cocite.encoder.trainer import Inputs

OBJECTIVES = [{"loss": "supcon", "space": space, "weight": 0.5} for space in ("aspects", "encoder")]
PAPERS = [
    ("bees collect nectar", "Flowers in the meadow. Bees collect nectar from flowers."),
    ("compilers", None),
    (None, "Programs allocate registers. Loops in programs. Compilers allocate loops."),
]


@pytest.fixture(scope="module")
def by_sentence(corpus, small_settings, tmp_path_factory):
    """An untrained encoder that weighs sentences, and draws random numbers in training."""
    settings = small_settings.model_copy(update={"pooling": "sentences", "max_length": 32})
    folder = built(corpus, tmp_path_factory.mktemp("sentences") / "model", settings)
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1})
    return folder


@pytest.fixture(scope="module")
def split(by_sentence, tmp_path_factory):
    """Examples of two aspects over papers whose abstracts have three sentences."""
    folder = tmp_path_factory.mktemp("aspects")
    texts = {}
    for paper, (title, abstract) in paper_texts().items():
        words = abstract.split()
        texts[paper] = (title, " ".join(" ".join(words[at : at + 4]).capitalize() + "." for at in (0, 4, 8)))
    sets = {}
    for name, queries in (("training", range(12)), ("validation", range(12, 16))):
        kinds = ["linked", "easy"]
        rows = [(q, [(q + 2) % 16], [(q + 1) % 16, (q + 5) % 16], "background", kinds) for q in queries]
        rows += [(q, [(q + 1) % 16], [(q + 2) % 16, (q + 6) % 16], "result", kinds) for q in queries]
        sets[name] = [written_aspects(folder / name, rows, texts, by_sentence)]
    return Inputs(encoder=by_sentence, **sets)


SETTINGS = {"objectives": OBJECTIVES, "epochs": 2, "batch_size": 6, "lr": 1e-3, "warmup": 0.0}


@pytest.fixture(scope="module")
def model(split, tmp_path_factory):
    """The folder of a trained encoder."""
    return trained(tmp_path_factory.mktemp("trained"), split, **SETTINGS) / "model"


def fields(title, abstract):
    return {"title": title, "abstract": abstract}


def test_abbreviations_and_numbers_end_no_sentence():
    text = "We follow Smith et al. (2019), i.e. Fig. 3. E. coli grew by 3.5 % (P < .001). Is it so? Yes."
    assert [sentence.strip() for sentence in sentences_of(text)] == [
        "We follow Smith et al. (2019), i.e. Fig. 3.",
        "E. coli grew by 3.5 % (P < .001).",
        "Is it so?",
        "Yes.",
    ]
    assert sentences_of(None) == sentences_of("") == []


def test_each_sentence_has_a_first_and_a_last_token_and_the_title_is_one(by_sentence):
    tokenizer = open_tokenizer(by_sentence)
    text = tokenizer.document(0, fields("bees. nectar", "In the meadow. Collect flowers."), ["Loops."]).text
    assert text == "bees. nectar[SEP][CLS]In the meadow.[SEP][CLS]Collect flowers.[SEP][CLS]Loops."
    [ids] = tokenizer([text])
    words = [tokenizer.backend.id_to_token(number) for number in ids]
    assert [words[0], words[-1]] == ["[CLS]", "[SEP]"]
    assert words.count("[CLS]") == words.count("[SEP]") == 4
    assert all(words[at + 1] == "[CLS]" for at, word in enumerate(words[:-1]) if word == "[SEP]")


def test_a_text_without_sentences_is_empty_and_one_without_a_title_starts_with_its_abstract(by_sentence):
    tokenizer = open_tokenizer(by_sentence)
    texts = [tokenizer.document(0, fields(*of)).text for of in ((None, None), (" ", ""), (None, "Bees. Nectar."))]
    assert texts == ["", "", "Bees.[SEP][CLS]Nectar."]
    assert tokenizer.short_query(0, "Bees.", "In the meadow. Nectar.").text == (
        "Bees.[SEP][CLS]In the meadow.[SEP][CLS]Nectar."
    )


def test_the_pooling_is_the_mean_over_the_names_of_attention_to_the_sentences():
    random = torch.Generator().manual_seed(1)
    hidden, names = (torch.randn(*shape, 6, generator=random, dtype=torch.float64) for shape in ((2, 5), (3,)))
    mask = torch.tensor([[1, 0, 1, 0, 1], [1, 0, 0, 0, 0]])
    pooled = poolings.attended_sentences(hidden, mask, names)
    for document in range(2):
        sentences = [hidden[document, token] for token in range(5) if mask[document, token]]
        expected = torch.zeros(6, dtype=torch.float64)
        for name in names:
            weights = [float(torch.exp(name @ sentence / 6**0.5)) for sentence in sentences]
            for weight, sentence in zip(weights, sentences, strict=True):
                expected += weight / sum(weights) * sentence / 3
        torch.testing.assert_close(pooled[document], expected)
    assert torch.autograd.gradcheck(
        lambda tokens, asked: poolings.attended_sentences(tokens, mask, asked),
        (hidden.requires_grad_(), names.requires_grad_()),
    )


def test_a_vector_comes_from_the_names_as_the_encoder_embeds_them_and_from_first_tokens_alone(by_sentence):
    encoder = open_encoder(by_sentence).eval()
    torch.nn.init.normal_(encoder.names.map.weight, generator=torch.Generator().manual_seed(1))
    [tokens] = encoder.tokenizer([encoder.tokenizer.document(0, fields(*PAPERS[0])).text])

    def hidden_of(ids):
        return encoder.transformer(input_ids=torch.tensor(ids[None], dtype=torch.long)).last_hidden_state[0]

    with torch.no_grad():
        sentences = hidden_of(tokens)[tokens == encoder.tokenizer.sentence]
        aspects = encoder.tokenizer(["background", "methodology", "result"])
        queries = torch.stack([encoder.names.map(hidden_of(name)[0]) for name in aspects])
    assert len(sentences) == 3
    expected = (torch.softmax(queries @ sentences.T / 4, dim=1) @ sentences).mean(dim=0)
    np.testing.assert_allclose(embed(encoder, documents_of([tokens]))[0], expected, atol=1e-6)


def test_padding_and_packing_leave_vectors_and_gradients_as_they_are(by_sentence):
    encoder = open_encoder(by_sentence).eval()
    documents = tokenise([encoder.tokenizer.document(0, fields(*paper)).text for paper in PAPERS], encoder.tokenizer)
    rows, found = np.arange(3), []
    assert enable_sequence_packing(encoder)
    for features in (documents.padded(rows, encoder.tokenizer.padding), documents.packed(rows)):
        encoder.zero_grad()
        vectors = encoder(features)
        vectors.square().sum().backward()
        found.append((vectors.detach(), encoder.names.map.weight.grad.clone()))
    alone = torch.cat([encoder(documents.padded([row], 0)) for row in rows]).detach()
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found[0][0], alone, rtol=1e-5, atol=1e-6)


def test_an_encoder_in_half_precision_pools_in_float32(by_sentence):
    encoder = open_encoder(by_sentence, "bfloat16", reduced=True)
    assert {weight.dtype for weight in encoder.names.parameters()} == {torch.float32}
    exact = embed_papers(by_sentence, PAPERS)
    texts = [encoder.tokenizer.document(0, fields(*paper)).text for paper in PAPERS]
    np.testing.assert_allclose(embed(encoder, tokenise(texts, encoder.tokenizer)), exact, atol=0.05)


def test_training_teaches_the_map_and_its_folder_has_it(model, by_sentence):
    encoder = open_encoder(model)
    assert not torch.equal(encoder.names.map.weight, torch.eye(16))
    again = open_names(model, 16, encoder.tokenizer)
    assert torch.equal(again.map.weight, encoder.names.map.weight)
    unmapped = open_names(by_sentence, 16, encoder.tokenizer)
    assert torch.equal(unmapped.map.weight, torch.eye(16))
    assert (model / poolings.FOLDER / WEIGHTS).is_file()


def test_batches_bounded_in_memory_have_the_same_gradients(split, monkeypatch):
    monkeypatch.setitem(TOKENS_OF_A_START, "cpu", 10**6)
    encoder = open_encoder(split.encoder).eval()
    examples = open_examples(split.training[0])
    learner = Learner(encoder, {name: torch.nn.Linear(16, 16) for name in ("background", "result")})
    gradients = []
    for tokens in ("all", 80):
        settings = TrainingSettings(objectives=OBJECTIVES, mini_batch_tokens=tokens)
        learner.zero_grad()
        batch = Collator(examples=examples, encoder=encoder, settings=settings)(np.arange(6, 18))
        Objective(learner=learner, settings=settings)(batch).backward()
        gradients.append((encoder.names.map.weight.grad.clone(), learner.heads["result"].weight.grad.clone()))
    assert len(batch.mini_batches) > 2
    for some, others in zip(*gradients, strict=True):
        torch.testing.assert_close(some, others, rtol=1e-4, atol=1e-7)


def test_a_training_that_is_stopped_goes_on_to_the_same_weights(split, tmp_path):
    maps = (f"model/{poolings.FOLDER}/{WEIGHTS}", "model/aspects/result/2_Dense/model.safetensors")
    assert_goes_on(tmp_path, split, 1, files=(OF_MODEL, *maps), **SETTINGS)


def test_an_adapter_learns_alone(split, tmp_path):
    adapter = {"kind": "adapter", "name": "proximity", "reduction": 4}
    folder = trained(tmp_path, split, trainable=adapter, batch_size=6) / "model"
    assert torch.equal(open_encoder(folder).names.map.weight, torch.eye(16))


def test_the_card_gives_the_one_import_that_opens_the_folder_and_its_spaces(model):
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "sentence-transformers cannot open it" in card
    code = "\n".join(line[4:] for line in card.splitlines() if line.startswith("    "))
    assert re.findall(r"^from .*|^import .*", code, flags=re.MULTILINE) == [
        "from cocite.encoder.embedding import embed_papers"
    ]
    found = {"title": PAPERS[0][0], "abstract": PAPERS[0][1]}
    for line in code.replace('"this folder"', repr(str(model))).splitlines():
        exec(line, found)  # noqa: S102 (a card of ours)
        if line.startswith("vectors") and "space" not in line:
            plain = found["vectors"]
    expected = read_space(model, "background")(torch.from_numpy(plain)).detach().numpy()
    np.testing.assert_allclose(found["vectors"], expected, atol=1e-6)


def test_sentence_transformers_refuses_the_folder_in_place_of_another_pooling(by_sentence):
    with pytest.raises(Exception, match="pooling"):
        SentenceTransformer(str(by_sentence), device="cpu")


@pytest.mark.long
def test_weights_of_sentences_are_bit_identical_after_twenty_random_cuts(split, tmp_path):
    of_names = f"model/{poolings.FOLDER}/{WEIGHTS}"
    cut_at_random(tmp_path, split, 20, of_names, objectives=OBJECTIVES, accumulation=2)


WORDS = ("bees", "collect", "nectar", "flowers", "meadow", "compilers", "allocate", "registers", "loops", "programs")


def papers_of(count):
    """Papers whose abstracts have none to six sentences of one to nine words; every tenth has no title."""
    random = np.random.default_rng(3)
    texts = {}
    for paper in range(count):
        sentences = [" ".join(random.choice(WORDS, random.integers(1, 10))) for _ in range(random.integers(0, 7))]
        abstract = " ".join(f"{sentence.capitalize()}." for sentence in sentences) or None
        texts[paper] = (None if paper % 10 == 5 else " ".join(random.choice(WORDS, 3)), abstract)
    return texts


@pytest.fixture(scope="module")
def sentence_wise(encoder, tmp_path_factory):
    """The small encoder, by sentence."""
    folder = tmp_path_factory.mktemp("sentence-wise") / "model"
    settings = {"model": str(encoder), "max_length": 16, "sentence_wise": True, "prompts": {"document": "loops "}}
    fetch_encoder(parse_settings(EncoderSettings, json.dumps(settings)), folder)
    return folder


def by_a_plain_loop(folder, papers):
    """The definition: each text is embedded alone; the vectors of a paper are added up and divided by their norm."""
    encoder = open_encoder(folder)
    vectors = []
    for title, abstract in papers:
        parts = [part.strip() for part in [title, *sentences_of(abstract)] if part and part.strip()]
        total = sum(embed(encoder, tokenise([f"loops {part}"], encoder.tokenizer))[0] for part in parts)
        vectors.append(total / np.sqrt((total**2).sum()))
    return np.array(vectors)


def test_vectors_are_those_of_a_plain_loop(sentence_wise, tmp_path, monkeypatch):
    monkeypatch.setattr(Encoder, "window", 16)
    monkeypatch.setitem(encoder_model.TOKENS_IN_BATCH, "cpu", 64)
    texts = papers_of(60)
    write_table(tmp_path / "in/0.parquet", "papers", papers_table(texts))
    vectors = embedded(sentence_wise, tmp_path / "in/0.parquet", tmp_path, "papers", threads=2)
    table = read_table(tmp_path / "0.parquet", "paper_embeddings")
    there = [paper for paper, parts in texts.items() if any(parts)]
    assert table["corpusid"].to_pylist() == there
    expected = by_a_plain_loop(sentence_wise, [texts[paper] for paper in there])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(embed_papers(sentence_wise, [texts[paper] for paper in there]), expected, atol=1e-5)


def test_a_batch_has_no_more_tokens_than_a_batch_of_whole_texts(sentence_wise, tmp_path, monkeypatch):
    asked = []

    def noted(encoder, documents, rows):
        asked.append(int(documents.lengths[rows].max() * len(rows)))
        return plain(encoder, documents, rows)

    plain = encoder_model.embed_batch
    monkeypatch.setattr(encoder_model, "embed_batch", noted)
    monkeypatch.setitem(encoder_model.TOKENS_IN_BATCH, "cpu", 64)
    write_table(tmp_path / "in/0.parquet", "papers", papers_table(papers_of(40)))
    embedded(sentence_wise, tmp_path / "in/0.parquet", tmp_path, "papers")
    assert asked
    assert max(asked) <= 64


def test_short_queries_are_one_text_and_normalised_as_well(sentence_wise):
    encoder = open_encoder(sentence_wise)
    text = encoder.tokenizer.short_query("q", "Bees collect. Nectar flowers.")
    [vector] = embed_sums(encoder, tokenise_texts([text], encoder.tokenizer), np.array([0]))
    [alone] = embed(encoder, tokenise(["Bees collect. Nectar flowers."], encoder.tokenizer, [True]))
    np.testing.assert_allclose(vector, alone / np.linalg.norm(alone), atol=1e-6)
