"""The poolings: what they make of token vectors, how a folder names them, and how a new one is found."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from tests.encoder.building import built

from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.encoder import poolings
from cocite.encoder.model import open_encoder

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
    assert poolings.pooling_of({}) is None
    assert poolings.pooling_of({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}) is None
    assert poolings.pooling_of({"pooling_mode_mean_tokens": True, "pooling_mode_weightedmean_tokens": True}) is None
    assert poolings.pooling_of({"pooling_mode": ["mean", "max"]}) is None
    folder = shutil.copytree(encoder, tmp_path / "model")
    write_json(folder / poolings.FOLDER / "config.json", {"pooling_mode": "weightedmean"})
    with pytest.raises(
        InputError, match="1_Pooling: names no pooling of ours; there are cls, last, max, mean, sentences"
    ):
        open_encoder(folder)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last", "scaled"])
def test_sentence_transformers_pools_the_tokens_of_a_folder_alike(corpus, small_settings, tmp_path, scaled, pooling):
    settings = small_settings.model_copy(update={"pooling": pooling})
    built(corpus, tmp_path / "m", settings)
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    tokens = theirs.encode("bees collect nectar", output_value="token_embeddings")[None]
    ours = poolings.POOLINGS[open_encoder(tmp_path / "m").pooling].pool(tokens, torch.ones(tokens.shape[:2]))
    assert theirs.encode("bees collect nectar") == pytest.approx(ours[0].numpy(), abs=1e-6)
