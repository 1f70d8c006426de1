"""Masked language modelling: which tokens are masked, what is predicted of them, and what a training takes from it."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tests.encoder.published import edit, fetched
from tests.examples import curve_in
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer, BertForMaskedLM

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder import masking as masks_and_head
from cocite.encoder.adapters import learned_weights
from cocite.encoder.attention import enable_sequence_packing
from cocite.encoder.batch import Collator
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import joined_examples, open_examples
from cocite.encoder.masking import HEAD, Masking, masking_of, new_head, open_head
from cocite.encoder.measuring import predict
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Objective, new_learner
from cocite.encoder.tokens import open_tokenizer

ADDED = {"objectives": [{"loss": "triplet"}, {"loss": {"kind": "mlm", "share": 0.3}, "weight": 0.5}]}
ALONE = {"loss": "mlm"}
MASKING = Masking(share=0.15, mask=4, special=np.arange(5, dtype=np.int32), vocabulary=1000)


@pytest.fixture(scope="module")
def documents():
    """200 documents of 500 tokens 5 to 994, between the tokens 2 and 3."""
    middle = np.random.default_rng(7).integers(5, 995, (200, 500), dtype=np.int32)
    return documents_of([np.array([2, *row, 3], np.int32) for row in middle])


@pytest.fixture(scope="module")
def drawn(documents):
    return MASKING.drawn(documents, 1, np.zeros(200, np.int64), np.arange(200))


def test_the_share_is_to_be_predicted_and_special_tokens_never_are(drawn):
    # 100,000 tokens: the standard deviation of the share is 0.0011.
    special = np.isin(drawn.tokens, [2, 3])
    assert drawn.is_chosen[~special].mean() == pytest.approx(0.15, abs=0.006)
    assert not drawn.is_chosen[special].any()


def test_of_those_80_percent_are_the_mask_10_percent_any_token_and_10_percent_stay(drawn):
    seen = np.concatenate([drawn.documents[row] for row in range(len(drawn.documents))])
    np.testing.assert_array_equal(seen[~drawn.is_chosen], drawn.tokens[~drawn.is_chosen])
    before, after = drawn.tokens[drawn.is_chosen], seen[drawn.is_chosen]
    # 15,000 tokens: the standard deviation of a share of 0.1 is 0.0024. A random token is itself once in a thousand.
    assert (after == 4).mean() == pytest.approx(0.8, abs=0.015)
    assert (after == before).mean() == pytest.approx(0.1, abs=0.012)
    others = after[(after != 4) & (after != before)]
    assert len(others) / len(after) == pytest.approx(0.1, abs=0.012)
    assert others.min() < 20
    assert others.max() > 980
    assert others.mean() == pytest.approx(500, abs=35)  # evenly over the vocabulary: 289 / √1500 is 7.5


def test_masks_follow_from_seed_epoch_and_paper_and_not_from_their_company(documents, drawn):
    def masks(drawn, row):
        start = drawn.documents.starts[row]
        return drawn.is_chosen[start : start + drawn.documents.lengths[row]].tolist(), drawn.documents[row].tolist()

    def again(seed, epoch, paper):
        some = documents.chosen(np.array([9, 3]))
        return masks(MASKING.drawn(some, seed, np.full(2, epoch), np.array([9, paper])), 1)

    assert again(1, 0, 3) == masks(drawn, 3)
    for other in (again(2, 0, 3), again(1, 1, 3), again(1, 0, 4)):
        assert other[0] != masks(drawn, 3)[0]


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return open_tokenizer(encoder)


def test_the_mask_the_special_tokens_and_the_vocabulary_are_those_of_transformers(tokenizer, encoder):
    theirs, masking = AutoTokenizer.from_pretrained(encoder), masking_of(tokenizer, 0.15)
    assert masking.mask == theirs.mask_token_id
    assert sorted(masking.special.tolist()) == sorted(theirs.all_special_ids)
    assert masking.vocabulary == len(theirs)


def test_encoders_without_a_mask_or_of_a_kind_without_masked_language_models_are_refused(
    encoder, inputs, train, tmp_path
):
    class Stub:
        config = AutoConfig.for_model("clip_text_model")

    folder = shutil.copytree(encoder, tmp_path / "model")
    edit(folder / "tokenizer_config.json", lambda settings: {k: v for k, v in settings.items() if k != "mask_token"})
    with pytest.raises(InputError, match="The loss mlm needs an encoder whose vocabulary has a token for masks"):
        train(inputs=replace(inputs, encoder=folder), **ADDED)
    with pytest.raises(InputError, match="and clip_text_model is none"):
        new_head(Stub())


def learner_of(encoder, seed=1, **settings):
    """A learner that draws no dropout, and its settings."""
    given = TrainingSettings(**(settings or ADDED))
    return new_learner(open_encoder(encoder), given, seed, folder=encoder).eval(), given


def test_the_head_learns_in_float32_in_a_transformer_that_is_held_in_bfloat16(encoder):
    opened = open_encoder(encoder, "bfloat16", reduced=True)
    learner = new_learner(opened, TrainingSettings(**ADDED, trainable="lora"), 1, folder=encoder)
    assert {weight.dtype for weight in learned_weights(learner).values()} == {torch.float32}


def collated(learner, given, inputs, numbers=8, **how):
    examples = open_examples(inputs.training[0])
    collate = Collator(examples=examples, encoder=learner.encoder, settings=given, seed=5, **how)
    return collate(np.arange(numbers), np.zeros(numbers, np.int64))


def test_the_loss_is_that_of_the_masked_language_model_of_transformers(encoder, inputs):
    learner, given = learner_of(encoder, **ALONE)
    batch = collated(learner, given, inputs, 22)
    ours = Objective(learner=learner, settings=given)(batch)
    theirs = BertForMaskedLM(AutoConfig.from_pretrained(encoder)).eval()
    theirs.bert.load_state_dict(learner.encoder.transformer.state_dict(), strict=False)
    own = learner.prediction.model.cls.predictions
    theirs.cls.predictions.transform.load_state_dict(own.transform.state_dict())
    theirs.cls.predictions.decoder.bias.data.copy_(own.decoder.bias.data)
    losses, tokens = 0.0, 0
    for some in batch.masked:
        labels = torch.full_like(some.features["input_ids"], -100)
        labels.view(-1)[some.places] = some.tokens
        losses += theirs(**some.features, labels=labels).loss.item() * len(some.tokens)
        tokens += len(some.tokens)
    assert tokens > 10
    assert ours.item() == pytest.approx(losses / tokens, rel=1e-5)


def test_each_document_of_a_batch_is_masked_once_and_its_vector_is_of_the_whole_text(encoder, inputs):
    learner, given = learner_of(encoder)
    batch = collated(learner, given, inputs)
    assert sum(len(some.features["input_ids"]) for some in batch.masked) == len(batch.documents)
    mask = learner.encoder.tokenizer.mask
    assert all((some["input_ids"] != mask).all() for some in batch.mini_batches)
    for some in batch.masked:
        rows = some.places // some.features["input_ids"].shape[1]
        lengths = some.features["attention_mask"].sum(1)
        assert (lengths[rows] == torch.tensor(batch.tokens.lengths)[some.of]).all()


def gradients(learner, given, batch):
    learner.zero_grad()
    loss = Objective(learner=learner, settings=given)(batch)
    loss.backward()
    return {"": loss.detach()} | {n: w.grad.clone() for n, w in learner.named_parameters() if w.grad is not None}


def test_mini_batches_blocks_of_logits_and_packing_leave_the_gradients_as_they_are(encoder, inputs, monkeypatch):
    learner, given = learner_of(encoder)
    whole = gradients(learner, given, collated(learner, given, inputs))
    monkeypatch.setattr(masks_and_head, "LOGITS_AT_ONCE", 600)
    learner, given = learner_of(encoder, **ADDED, mini_batch_tokens=40)
    batch = collated(learner, given, inputs)
    assert len(batch.masked) > 3
    found = [gradients(learner, given, batch)]
    assert enable_sequence_packing(learner.encoder)
    found.append(gradients(learner, given, collated(learner, given, inputs, packs=True)))
    for some in found:
        assert some.keys() == whole.keys()
        for name, gradient in whole.items():
            torch.testing.assert_close(some[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "architecture", ["bert", "roberta", "modernbert", "mpnet", "distilbert", "electra", "longformer"]
)
def test_a_head_gives_the_logits_of_the_whole_model(architecture):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    if architecture == "distilbert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2}
    more = {"electra": {"embedding_size": 16}, "longformer": {"attention_window": 4}}.get(architecture, {})
    config = AutoConfig.for_model(architecture, vocab_size=50, pad_token_id=0, **sizes, **more)
    torch.manual_seed(2)
    whole = AutoModelForMaskedLM.from_config(config).eval()
    tokens = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = whole(tokens, attention_mask=torch.ones_like(tokens)).logits[0]
        transformer = getattr(whole, whole.base_model_prefix)
        hidden = transformer(tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0]
        head = masks_and_head.PredictionHead(whole, transformer.get_input_embeddings().weight).eval()
        torch.testing.assert_close(head(hidden), expected)


def test_the_head_that_an_encoder_was_pretrained_with_is_fetched_and_used(encoder, tmp_path):
    torch.manual_seed(3)
    model = BertForMaskedLM(AutoConfig.from_pretrained(encoder))
    torch.nn.init.normal_(model.cls.predictions.decoder.bias)
    model.save_pretrained(tmp_path / "source")
    AutoTokenizer.from_pretrained(encoder).save_pretrained(tmp_path / "source")
    folder = fetched(tmp_path / "source", tmp_path / "model", max_length=16)
    head = open_head(folder, open_encoder(folder).transformer).eval()
    hidden = torch.randn(3, 16)
    with torch.no_grad():
        torch.testing.assert_close(head(hidden), model.eval().cls(hidden[None])[0])


def test_an_encoder_without_a_head_is_fetched_without_one_and_gets_a_new_one_by_the_seed(encoder, tmp_path):
    for part in (AutoModel, AutoTokenizer):
        part.from_pretrained(encoder).save_pretrained(tmp_path / "bare")
    fetched(tmp_path / "bare", tmp_path / "model", max_length=16)
    assert not (tmp_path / "model" / HEAD).exists()
    heads = (learner_of(tmp_path / "model", seed)[0].prediction.state_dict() for seed in (1, 1, 2))
    one, again, other = (head["model.cls.predictions.transform.dense.weight"] for head in heads)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_head_that_does_not_fit_is_refused(encoder, tmp_path):
    folder = shutil.copytree(encoder, tmp_path / "model")
    shutil.copy(encoder / "model.safetensors", folder / HEAD)
    with pytest.raises(InputError, match=f"{HEAD}: is no head of this encoder"):
        open_head(folder, open_encoder(folder).transformer)


@pytest.mark.long
@pytest.mark.parametrize("settings", [ALONE, ADDED], ids=["alone", "added"])
def test_masked_tokens_are_predicted_far_better_than_by_chance(train, tokenizer, settings):
    folder = train(**settings, epochs=25)
    losses = list(curve_in(folder, "validation_loss" + (" of mlm" if settings is ADDED else "")).values())
    assert min(losses) < np.log(tokenizer.backend.get_vocab_size()) - 1.5  # 4.6 nats for a guess among 100
    if settings is ADDED:
        assert max(curve_in(folder, "validation_accuracy").values()) == 1.0


def test_the_losses_of_a_validation_do_not_depend_on_the_batches_they_are_computed_in(encoder, inputs, monkeypatch):
    learner, given = learner_of(encoder)
    masking = masking_of(learner.encoder.tokenizer, given.masked_share)
    examples = open_examples(inputs.validation[0])
    whole = predict(learner, examples, masking, seed=1)
    monkeypatch.setitem(sys.modules["cocite.encoder.model"].TOKENS_IN_BATCH, "cpu", 30)
    torch.testing.assert_close(predict(learner, examples, masking, seed=1), whole)
    assert (whole[:, 1] > 0).any()


def test_a_model_is_saved_as_one_without_masks_is(train):
    masked, plain = (train(**settings) / "model" for settings in (ADDED, {"loss": "triplet"}))
    files, others = (sorted(str(path.relative_to(of)) for path in of.rglob("*")) for of in (masked, plain))
    assert files == others
    names, others = (load_file(folder / "model.safetensors").keys() for folder in (masked, plain))
    assert names == others
    assert SentenceTransformer(str(masked), device="cpu").encode("bees").shape == (16,)


@pytest.mark.parametrize("trainable", ["bias", "adapter"])
def test_masks_go_with_whichever_weights_learn(train, trainable):
    folder = train(**ADDED, trainable=trainable, epochs=8)
    losses = list(curve_in(folder, "validation_loss of mlm").values())
    assert losses[-1] < losses[0]


def test_of_several_sets_only_the_documents_are_masked_that_the_loss_is_for(encoder, several):
    terms = [{"triplets": "topics", "loss": "mnrl"}, {"triplets": "crops", "loss": "mlm"}]
    learner, given = learner_of(encoder, objectives=terms)
    examples = joined_examples([open_examples(files) for files in several.training])
    collate = Collator(examples=examples, encoder=learner.encoder, settings=given, seed=5)
    both, topics = (collate(np.array(some), np.zeros(len(some), np.int64)) for some in ([0, 1, 22, 23], [0, 1]))
    assert topics.masked is None
    masked = sum(len(some.features["input_ids"]) for some in both.masked)
    assert 0 < masked < len(both.documents)
