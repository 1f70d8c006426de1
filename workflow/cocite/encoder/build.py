"""Build an untrained BERT for a corpus, so that a whole run needs no network.

Its vocabulary comes from the corpus itself, its weights from BERT's own initialisation, drawn from the run's seed.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from cocite.config.settings import parse_settings
from cocite.encoder.environment import library_versions
from cocite.encoder.model import save_encoder
from cocite.encoder.settings import ArchitectureSettings, EncoderSettings
from cocite.encoder.vocabulary import corpus_texts, train_tokenizer
from cocite.ground.errors import InputError
from cocite.ground.randomness import derive_seed
from cocite.tables.files import atomic_path

CARD = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
---
# An untrained BERT

Its {tokens} WordPiece tokens come from the titles and abstracts of the corpus, but for the papers that are kept out;
its weights are random ({layers} layers of width {hidden}, {heads} heads, seed {seed}). It is the starting point of
fine-tuning and a baseline to compare with; by itself it knows nothing.

Pooling: {pooling}; texts are cut to {max_length} tokens. Made with {versions}.
"""


def build_encoder(papers: Sequence[Path], queries: Path, output: Path, *, settings: EncoderSettings, seed: int) -> None:
    """Write the folder of an untrained encoder. Raises `InputError` where the settings have no sizes to build."""
    from transformers import BertConfig, BertModel

    if settings.build is None:
        raise InputError("Setting build is missing; `fetch` is for encoders that exist.")
    sizes = parse_settings(ArchitectureSettings, json.dumps(settings.build))
    tokenizer = train_tokenizer(corpus_texts(papers, queries), settings, sizes.vocabulary)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=4 * sizes.hidden,
        max_position_embeddings=settings.max_length,
        pad_token_id=tokenizer.pad_token_id,
        # A few passes over little text leave nothing to regularise, and dropout is a quarter of the work on a CPU.
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "build"))
        bert = BertModel(config)
    card = CARD.format(
        tokens=len(tokenizer),
        layers=sizes.layers,
        hidden=sizes.hidden,
        heads=sizes.heads,
        seed=seed,
        pooling=settings.pooling,
        max_length=settings.max_length,
        versions=", ".join(f"{name} {version}" for name, version in library_versions().items()),
    )
    with atomic_path(output) as folder:
        tokenizer.save_pretrained(folder)
        save_encoder(bert, folder, pooling=settings.pooling, max_length=settings.max_length, card=card)
