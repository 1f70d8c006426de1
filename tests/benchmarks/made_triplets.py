"""Texts as long as those of the release hci, as papers, documents and triplets, and untrained encoders of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.papers import papers_table

from cocite.core.tables.files import write_table

SHARES = (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)
LENGTHS = (37, 109, 129, 155, 178, 194, 212, 232, 254, 279, 314, 348, 555)
"""Tokens that this share of 3,001 papers of hci has at most."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = 30_000
PER_QUERY = 5
LENGTH = 512
ABSTRACTS = (12, 91, 110, 124, 135, 143, 149, 157, 173, 202, 735)
"""Words of an abstract of hci at each tenth of its 27,152, from the shortest to the longest."""
TITLE, NAMES = 10, 200_000
AT_ONCE = 10_000


def write_encoder(
    folder: Path, *, layers: int = 6, hidden: int = 384, heads: int = 12, length: int = LENGTH, words: int = WORDS
) -> None:
    """Six layers of width 384, with twelve heads, dropout and a vocabulary as MiniLM has them; or other sizes."""
    import torch
    from transformers import BertConfig, BertModel

    from cocite.encoder.model import save_encoder

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

    from cocite.encoder.model import save_encoder

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
    from tests.examples import written_examples

    random = np.random.default_rng(seed)
    papers = queries * (PER_QUERY + 1)
    texts = dict(enumerate(paper_text(random) for _ in range(papers)))
    query = np.repeat(np.arange(queries), PER_QUERY)
    others = (random.integers(queries, papers, len(query)) for _ in range(2))
    written_examples(folder, np.stack([query, *others], axis=1), texts, encoder)


def write_documents(path: Path, number: int) -> None:
    write_table(path, "documents", _documents(number))


def _documents(number: int) -> Iterator[pa.RecordBatch]:
    drawn = np.random.default_rng(1)
    for start in range(0, number, AT_ONCE):
        names = [f"{document:08}" for document in range(start, min(start + AT_ONCE, number))]
        titles, abstracts = zip(*(paper_text(drawn) for _ in names), strict=True)
        yield from documents_table(names, pa.array(titles), pa.array(abstracts)).to_batches()


def documents_table(names: Sequence[str] | pa.Array, titles: pa.Array, abstracts: pa.Array) -> pa.Table:
    """Documents with these names and texts, and nothing more."""
    more = pa.array([[]] * len(names), pa.list_(pa.string()))
    columns = {"document": names, "title": titles, "abstract": abstracts, "more": more}
    return pa.table({**columns, "field": pa.nulls(len(names), pa.string())})


def write_papers(folder: Path, papers: int) -> None:
    """Write a bucket of papers, whose words follow Zipf's law, and queries that keep the first hundred of them out."""
    write_table(folder / "papers" / "0.parquet", "papers", _papers(papers))
    splits = pa.table({"corpusid": range(1, 101), "split": ["holdout"] * 100})
    write_table(folder / "queries.parquet", "queries", splits)


def _papers(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(1)
    names = np.array([f"w{number:x}q" for number in range(NAMES)])
    share = 1 / np.arange(1, NAMES + 1)
    ends = np.cumsum(share) / share.sum()
    for start in range(0, papers, AT_ONCE):
        count = min(AT_ONCE, papers - start)
        lengths = np.interp(draw.random(count), np.linspace(0, 1, len(ABSTRACTS)), ABSTRACTS).astype(int)
        words = names[np.searchsorted(ends, draw.random(int(lengths.sum()) + TITLE * count)).clip(max=NAMES - 1)]
        texts = np.split(words, np.cumsum(lengths + TITLE)[:-1])
        titled = {start + 1 + row: (" ".join(text[:TITLE]), " ".join(text[TITLE:])) for row, text in enumerate(texts)}
        yield from papers_table(titled).to_batches()


def word(number: int) -> str:
    letters = ""
    while number or not letters:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return f"w{letters}"


def paper_text(random: np.random.Generator) -> tuple[str, str]:
    words = [word(number) for number in random.integers(0, WORDS, int(np.interp(random.random(), SHARES, LENGTHS)))]
    return " ".join(words[:12]), " ".join(words[12:])
