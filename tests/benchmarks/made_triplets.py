"""Triplets with texts as long as those of real papers, and an untrained encoder of MiniLM's size.

The lengths are those of the titles and abstracts of the release hci, counted in WordPiece tokens; the words are drawn.
"""

from pathlib import Path

import numpy as np
from tests.examples import written_examples

from cocite.encoder.model import save_encoder

SHARES = (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)
LENGTHS = (37, 109, 129, 155, 178, 194, 212, 232, 254, 279, 314, 348, 555)
"""Tokens that this share of 3,001 papers of hci has at most."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = 30_000
PER_QUERY = 5
LENGTH = 512


def write_encoder(
    folder: Path, *, layers: int = 6, hidden: int = 384, heads: int = 12, length: int = LENGTH, words: int = WORDS
) -> None:
    """Six layers of width 384, with twelve heads, dropout and a vocabulary as MiniLM has them; or other sizes."""
    import torch
    from transformers import BertConfig, BertModel

    vocabulary = write_tokenizer(folder, words, length)
    torch.manual_seed(1)
    sizes = {"hidden_size": hidden, "intermediate_size": 4 * hidden}
    sizes |= {"num_hidden_layers": layers, "num_attention_heads": heads}
    bert = BertModel(BertConfig(vocab_size=vocabulary, **sizes))
    save_encoder(bert, folder, pooling="mean", max_length=length, card="")


def write_decoder(folder: Path) -> None:
    """A decoder in the shape of Qwen3-Embedding-0.6B, with random weights and the vocabulary of `write_encoder`."""
    import torch
    from transformers import Qwen3Config, Qwen3Model

    vocabulary = write_tokenizer(folder)
    sizes = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128}
    sizes |= {"num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": vocabulary, "dtype": torch.bfloat16}
    torch.manual_seed(1)
    decoder = Qwen3Model(Qwen3Config(pad_token_id=0, **sizes)).to(torch.bfloat16)
    save_encoder(decoder, folder, pooling="last", max_length=LENGTH, card="")


def write_tokenizer(folder: Path, words: int = WORDS, length: int = LENGTH) -> int:
    """A tokenizer whose words are one token each; the size of its vocabulary."""
    from transformers import BertTokenizer

    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *map(word, range(words))))}
    BertTokenizer(vocab=vocabulary, model_max_length=length).save_pretrained(folder)
    return len(vocabulary)


def write_triplets(folder: Path, queries: int, seed: int, encoder: Path) -> None:
    """Five triplets of each query, positives and negatives drawn from as many papers as there are triplets."""
    random = np.random.default_rng(seed)
    papers = queries * (PER_QUERY + 1)
    texts = dict(enumerate(paper_text(random) for _ in range(papers)))
    query = np.repeat(np.arange(queries), PER_QUERY)
    others = (random.integers(queries, papers, len(query)) for _ in range(2))
    written_examples(folder, np.stack([query, *others], axis=1), texts, encoder)


def word(number: int) -> str:
    letters = ""
    while number or not letters:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return f"w{letters}"


def paper_text(random: np.random.Generator) -> tuple[str, str]:
    words = [word(number) for number in random.integers(0, WORDS, int(np.interp(random.random(), SHARES, LENGTHS)))]
    return " ".join(words[:12]), " ".join(words[12:])
