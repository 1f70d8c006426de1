"""A training equals a loop written out with plain torch, transformers and tokenised texts, to rounding."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.examples import OVER_EXAMPLES, texts_of_examples
from transformers import AutoModel, AutoTokenizer

from cocite.config.models import TrainingSettings
from cocite.core.randomness import derive_seed
from cocite.encoder.batch import PairIndices
from cocite.encoder.schedule import round_order
from cocite.encoder.trainer import Inputs

LENGTH = 16
SETTINGS = {
    "plain": {"epochs": 1, "warmup": 0.0},
    "accumulated": {"epochs": 2, "accumulation": 2, "warmup": 0.2},
    "decayed": {"epochs": 2, "weight_decay": 0.1, "epsilon": 1e-4, "warmup": 3, "schedule": "cosine"},
    "cut off": {"epochs": 3, "max_steps": 7, "schedule": "constant", "validate_every": 100},
}
LR = 3e-3
BATCH = 4


def share(name: str, step: int, steps: int) -> float:
    """The share of the learning rate at a step, from 0, by the definitions of the schedules."""
    warmup = {"plain": 0, "accumulated": math.ceil(0.2 * steps), "decayed": 3, "cut off": math.ceil(0.05 * steps)}[name]
    if step < warmup:
        return step / warmup
    progress = (step - warmup) / (steps - warmup)
    return {"decayed": 0.5 * (1 + math.cos(math.pi * progress)), "cut off": 1.0}.get(name, 1 - progress)


def loop(inputs: Inputs, name: str, settings: TrainingSettings) -> dict[str, torch.Tensor]:
    """The weights after a training, step by step."""
    tokenizer, model = AutoTokenizer.from_pretrained(inputs.encoder), AutoModel.from_pretrained(inputs.encoder)
    model.eval()  # without dropout
    texts = texts_of_examples(inputs.training[0], tokenizer.sep_token)
    numbers: dict[str, int] = {}
    for text in (text for triplet in texts for text in triplet):
        numbers.setdefault(text, len(numbers))  # documents are numbered in the order in which they first occur
    queries = np.array([numbers[query] for query, *_ in texts])
    decay = SETTINGS[name].get("weight_decay", 0.0)
    used = [weight for key, weight in model.named_parameters() if not key.startswith("pooler")]
    matrices, vectors = ([weight for weight in used if (weight.ndim > 1) is is_matrix] for is_matrix in (True, False))
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=LR,
        eps=SETTINGS[name].get("epsilon", 1e-8),
        foreach=False,
    )
    accumulation = SETTINGS[name].get("accumulation", 1)
    of_epoch = math.ceil(len(texts) / (BATCH * accumulation))
    steps = min(SETTINGS[name]["epochs"] * of_epoch, SETTINGS[name].get("max_steps", math.inf))
    seed = derive_seed(1, "train", 1)
    for step in range(steps):
        epoch, within = divmod(step, of_epoch)
        order = round_order(queries, block=settings.together, seed=seed, number=epoch)
        chosen = order[within * BATCH * accumulation : (within + 1) * BATCH * accumulation]
        batches = [chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH)]
        for batch in batches:
            (loss_of(model, tokenizer, [texts[number] for number in batch], settings) / len(batches)).backward()
        torch.nn.utils.clip_grad_norm_(used, 1.0)
        for group in optimiser.param_groups:
            group["lr"] = LR * share(name, step, steps)
        optimiser.step()
        optimiser.zero_grad()
    return dict(model.state_dict())


def loss_of(model, tokenizer, triplets: list[list[str]], settings: TrainingSettings) -> torch.Tensor:
    """The loss of triplets of texts, each text embedded once."""
    distinct = sorted({text for triplet in triplets for text in triplet})
    rows = torch.tensor([[distinct.index(text) for text in triplet] for triplet in triplets])
    tokens = tokenizer(distinct, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    hidden, mask = model(**tokens).last_hidden_state, tokens["attention_mask"].unsqueeze(-1)
    vectors = (hidden * mask).sum(1) / mask.sum(1)
    batch = PairIndices(positives=rows[:, [0, 1]], negatives=rows[:, [0, 2]], triplets=rows)
    return settings.loss(vectors, batch)


@pytest.mark.parametrize(
    ("name", "loss"), [*(("accumulated", loss) for loss in OVER_EXAMPLES), *((n, "mnrl") for n in SETTINGS)]
)
def test_a_training_ends_with_the_weights_of_a_loop_written_out(name, loss, train, inputs, tmp_path):
    given = {"loss": loss, "batch_size": BATCH, "lr": LR, **SETTINGS[name]}
    # The last weights are the best where nothing is measured before them.
    given = given if "validate_every" in given else {**given, "validations": 1}
    train(folder=tmp_path, **given)
    settings = TrainingSettings(**given)
    ours, theirs = load_file(tmp_path / "model/model.safetensors"), loop(inputs, name, settings)
    # Distances do not change where all vectors move alike, so Adam follows nothing but rounding there.
    left_out = {"encoder.layer.0.output.LayerNorm.bias"} if loss == "triplet" else set()
    compared = (ours.keys() & theirs.keys()) - left_out
    assert len(compared) > 15
    for key in compared:
        torch.testing.assert_close(ours[key], theirs[key], rtol=2e-3, atol=2e-5)
