"""The poolings: what they make of token vectors, how a folder names them, and encoders that weigh sentences."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tests.encoder.building import TOPICS, built, embedded, trained, vectors_by, write_papers
from tests.encoder.published import fetched

from cocite.config.models import TrainingSettings
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.encoder import model as encoder_model
from cocite.encoder import poolings
from cocite.encoder.attention import enable_sequence_packing
from cocite.encoder.batch import TOKENS_OF_A_START, Collator
from cocite.encoder.build import repool
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_papers, embed_sums, tokenise_texts
from cocite.encoder.examples import open_examples
from cocite.encoder.layers import WEIGHTS, open_names
from cocite.encoder.model import Encoder, embed, open_encoder
from cocite.encoder.objective import Learner, Objective
from cocite.encoder.spaces import read_space, save_spaces, spaces_in
from cocite.encoder.tokens import open_tokenizer, sentences_of, tokenise

PAGE = Path(__file__).parents[2] / "docs/how-to/new-encoder.md"
# Two documents, of two tokens and of one; the second token of the second document is padding.
HIDDEN = torch.tensor([[[1.0, -4.0], [3.0, -2.0]], [[5.0, -6.0], [90.0, 90.0]]])
MASK = torch.tensor([[1, 1], [1, 0]])
PACKED, STARTS = torch.tensor([[1.0, -4.0], [3.0, -2.0], [5.0, -6.0]]), torch.tensor([0, 2, 3])
BY_HAND = {
    "cls": [[1.0, -4.0], [5.0, -6.0]],
    "mean": [[2.0, -3.0], [5.0, -6.0]],
    "max": [[3.0, -2.0], [5.0, -6.0]],
    "last": [[3.0, -2.0], [5.0, -6.0]],
}


@pytest.fixture
def scaled(monkeypatch):
    """The pooling that the how-to page adds: the sum of the tokens over the root of their number."""
    pattern = r"```python\n(def scaled_sum.*?)\n\n\nPOOLINGS = {\n    \"scaled\": (.*?),\n"
    [(function, entry)] = re.findall(pattern, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = dict(vars(poolings))
    exec(function, names)  # noqa: S102 (a page of ours)
    monkeypatch.setitem(poolings.POOLINGS, "scaled", eval(entry, names))  # noqa: S307
    return "scaled"


def test_listing_the_poolings_imports_no_torch():
    code = "import sys; import cocite.encoder.poolings; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


@pytest.mark.parametrize("name", BY_HAND)
def test_a_pooling_makes_the_vectors_worked_out_by_hand_of_padded_and_of_packed_tokens(name):
    assert poolings.POOLINGS[name].pool(HIDDEN, MASK).tolist() == BY_HAND[name]
    assert poolings.pool_packed(name, PACKED, STARTS).tolist() == BY_HAND[name]


def test_a_pooling_of_padded_tokens_alone_takes_packed_ones_too(scaled):
    expected = torch.tensor([[4.0 / 2**0.5, -6.0 / 2**0.5], [5.0, -6.0]])
    torch.testing.assert_close(poolings.POOLINGS[scaled].pool(HIDDEN, MASK), expected)
    torch.testing.assert_close(poolings.pool_packed(scaled, PACKED, STARTS), expected)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_folder_names_its_pooling_by_three_flags_as_sentence_transformers_has_them(name):
    flags = poolings.flags_of(name)
    of_each = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
    own = f"pooling_mode_{of_each[name]}"
    assert list(flags)[:3] == ["pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens"]
    assert [flag for flag, is_on in flags.items() if is_on] == [own]
    mode = "lasttoken" if name == "last" else name
    assert poolings.pooling_of(flags) == poolings.pooling_of({"pooling_mode": mode}) == name


def test_no_pooling_of_ours_or_several_are_refused(encoder, tmp_path):
    for modes in ((), ("cls_token", "max_tokens"), ("mean_tokens", "weightedmean_tokens")):
        assert poolings.pooling_of({f"pooling_mode_{mode}": True for mode in modes}) is None
    assert poolings.pooling_of({"pooling_mode": ["mean", "max"]}) is None
    folder = shutil.copytree(encoder, tmp_path / "model")
    write_json(folder / poolings.FOLDER / "config.json", {"pooling_mode": "weightedmean"})
    said = "1_Pooling: names no pooling of ours; there are cls, last, max, mean, sentences"
    with pytest.raises(InputError, match=said):
        open_encoder(folder)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last", "scaled"])
def test_sentence_transformers_pools_the_tokens_of_a_folder_alike(corpus, small_settings, tmp_path, scaled, pooling):
    settings = small_settings.model_copy(update={"pooling": pooling})
    built(corpus, tmp_path / "m", settings)
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    tokens = theirs.encode("bees collect nectar", output_value="token_embeddings")[None]
    ours = poolings.POOLINGS[open_encoder(tmp_path / "m").pooling].pool(tokens, torch.ones(tokens.shape[:2]))
    assert theirs.encode("bees collect nectar") == pytest.approx(ours[0].numpy(), abs=1e-6)


def test_another_pooling_of_an_encoder_has_its_weights_and_other_vectors_and_no_spaces(encoder, tmp_path):
    source, texts = shutil.copytree(encoder, tmp_path / "model"), ["bees collect nectar"]
    save_spaces({"result": torch.nn.Linear(16, 4)}, source)
    assert "result" in spaces_in(source)
    repool(encoder, "cls", tmp_path / "plain")
    assert "left out" not in (tmp_path / "plain/README.md").read_text()
    repool(source, "cls", tmp_path / "run/model_in_cls/model")
    other = tmp_path / "run/model_in_cls/model"
    assert poolings.pooling_in(source) != poolings.pooling_in(other) == "cls"
    assert (other / "model.safetensors").samefile(source / "model.safetensors")
    card = (other / "README.md").read_text()
    assert "The pooling is cls, and was mean in the training" in card
    assert "The spaces of aspects are left out" in card
    assert "The pooling is cls" not in (source / "README.md").read_text()
    assert spaces_in(other) == []
    assert not (other / "aspects").exists()
    theirs = SentenceTransformer(str(other), device="cpu")
    tokens = theirs.tokenize(texts)
    hidden = theirs[0].auto_model(**{key: tokens[key] for key in ("input_ids", "attention_mask")}).last_hidden_state
    assert torch.allclose(torch.from_numpy(vectors_by(other, texts)), hidden[:, 0], atol=1e-5)


def test_a_pooling_by_sentence_is_refused(encoder, tmp_path):
    with pytest.raises(InputError, match="by sentence"):
        repool(encoder, "sentences", tmp_path / "model")
    assert not (tmp_path / "model").exists()


OBJECTIVES = [{"loss": "supcon", "space": space, "weight": 0.5} for space in ("aspects", "encoder")]
PAPERS = [
    ("bees collect nectar", "Flowers in the meadow. Bees collect nectar from flowers."),
    ("compilers", None),
    (None, "Programs allocate registers. Loops in programs. Compilers allocate loops."),
]


@pytest.fixture(scope="module")
def model(split, tmp_path_factory):
    """The folder of a trained encoder."""
    settings = {"objectives": OBJECTIVES, "epochs": 2, "batch_size": 6, "lr": 1e-3, "warmup": 0.0}
    return trained(tmp_path_factory.mktemp("trained"), split, **settings) / "model"


def text_of(tokenizer, paper):
    return tokenizer.document(0, dict(zip(("title", "abstract"), paper, strict=True))).text


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
    fields = {"title": "bees. nectar", "abstract": "In the meadow. Collect flowers."}
    text = tokenizer.document(0, fields, ["Loops."]).text
    assert text == "bees. nectar[SEP][CLS]In the meadow.[SEP][CLS]Collect flowers.[SEP][CLS]Loops."
    [ids] = tokenizer([text])
    words = [tokenizer.backend.id_to_token(number) for number in ids]
    assert [words[0], words[-1]] == ["[CLS]", "[SEP]"]
    assert words.count("[CLS]") == words.count("[SEP]") == 4
    assert all(words[at + 1] == "[CLS]" for at, word in enumerate(words[:-1]) if word == "[SEP]")


def test_a_text_without_sentences_is_empty_and_one_without_a_title_starts_with_its_abstract(by_sentence):
    tokenizer = open_tokenizer(by_sentence)
    texts = [text_of(tokenizer, of) for of in ((None, None), (" ", ""), (None, "Bees. Nectar."))]
    assert texts == ["", "", "Bees.[SEP][CLS]Nectar."]
    query = tokenizer.short_query(0, "Bees.", "In the meadow. Nectar.")
    assert query.text == "Bees.[SEP][CLS]In the meadow.[SEP][CLS]Nectar."


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
    [tokens] = encoder.tokenizer([text_of(encoder.tokenizer, PAPERS[0])])

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
    documents = tokenise([text_of(encoder.tokenizer, paper) for paper in PAPERS], encoder.tokenizer)
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
    texts = [text_of(encoder.tokenizer, paper) for paper in PAPERS]
    np.testing.assert_allclose(embed(encoder, tokenise(texts, encoder.tokenizer)), exact, atol=0.05)


def test_training_teaches_the_map_and_its_folder_has_it(model, by_sentence):
    encoder = open_encoder(model)
    assert not torch.equal(encoder.names.map.weight, torch.eye(16))
    of_folder, unmapped = (open_names(folder, 16, encoder.tokenizer).map.weight for folder in (model, by_sentence))
    assert torch.equal(of_folder, encoder.names.map.weight)
    assert torch.equal(unmapped, torch.eye(16))
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


def test_an_adapter_learns_alone(split, tmp_path):
    adapter = {"kind": "adapter", "name": "proximity", "reduction": 4}
    folder = trained(tmp_path, split, trainable=adapter, batch_size=6) / "model"
    assert torch.equal(open_encoder(folder).names.map.weight, torch.eye(16))


def test_the_card_gives_the_one_import_that_opens_the_folder_and_its_spaces(model):
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "sentence-transformers cannot open it" in card
    code = "\n".join(line[4:] for line in card.splitlines() if line.startswith("    "))
    imports = re.findall(r"^from .*|^import .*", code, flags=re.MULTILINE)
    assert imports == ["from cocite.encoder.embedding import embed_papers"]
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


def papers_of(count):
    """Papers whose abstracts have none to six sentences of one to nine words; every tenth has no title."""
    random, texts, words = np.random.default_rng(3), {}, " ".join(TOPICS.values()).split()
    for paper in range(count):
        sentences = [" ".join(random.choice(words, random.integers(1, 10))) for _ in range(random.integers(0, 7))]
        abstract = " ".join(f"{sentence.capitalize()}." for sentence in sentences) or None
        texts[paper] = (None if paper % 10 == 5 else " ".join(random.choice(words, 3)), abstract)
    return texts


@pytest.fixture(scope="module")
def sentence_wise(encoder, tmp_path_factory):
    """The small encoder, by sentence."""
    folder = tmp_path_factory.mktemp("sentence-wise") / "model"
    return fetched(encoder, folder, max_length=16, sentence_wise=True, prompts={"document": "loops "})


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
    write_papers(tmp_path / "in/0.parquet", texts)
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
    write_papers(tmp_path / "in/0.parquet", papers_of(40))
    embedded(sentence_wise, tmp_path / "in/0.parquet", tmp_path, "papers")
    assert asked
    assert max(asked) <= 64


def test_short_queries_are_one_text_and_normalised_as_well(sentence_wise):
    encoder = open_encoder(sentence_wise)
    text = encoder.tokenizer.short_query("q", "Bees collect. Nectar flowers.")
    [vector] = embed_sums(encoder, tokenise_texts([text], encoder.tokenizer), np.array([0]))
    [alone] = embed(encoder, tokenise(["Bees collect. Nectar flowers."], encoder.tokenizer, [True]))
    np.testing.assert_allclose(vector, alone / np.linalg.norm(alone), atol=1e-6)
