"""Build an encoder for a corpus without a network: an untrained BERT, or a static encoder, random or distilled.

The vocabulary comes from the corpus without the papers that are kept out. Further encoders are made of trained ones:
one with another pooling, and the mean of the weights of several trainings (Wortsman et al., 2022, "Model soups").
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import compress, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from cocite.config.encoders import TITLE_AND_ABSTRACT, AnyEncoder, EncoderSettings, StaticSettings
from cocite.config.graphs import SPACES
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.options import Output, Queries, Seed
from cocite.core.progress import report
from cocite.core.randomness import derive_seed, fractions, priorities
from cocite.core.tables.files import count_rows, scan_table
from cocite.core.tables.papers import read_kept_out
from cocite.core.written_ids import distinct, look_up
from cocite.encoder import poolings
from cocite.encoder.card import add_remark, card_of_untrained
from cocite.encoder.documents import Numbers
from cocite.encoder.model import CARD, drawing, kept_of, open_encoder, readable, save_encoder
from cocite.encoder.spaces import spaces_in
from cocite.encoder.static import distilled_vectors, first_vectors, save_static, save_tokenizer, tokenizer_in
from cocite.encoder.tokens import TEXTS_IN_CALL, as_text, open_tokenizer, texts_of, write_reading

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
COUNTED, READ = 100_000, 500_000
"""About how many papers the pieces of a static encoder are counted in, and the vocabulary is made from."""
CHARACTERS = 1000
"""Distinct characters that the vocabulary can spell; rarer ones are unknown."""
INSIDE = "##"
"""Marks a token that continues a word."""
Texts = Callable[[], Iterator[list[str]]]
"""Opens the texts, some at a time; they are read twice and never held whole."""

OF_MEAN = """
The weights are the mean of those of {trainings} trainings, which differ in their seed alone. What is said below of a
training is said of the first of them.
"""
OF_POOLING = """
The pooling is {pooling}, and was {trained} in the training that the card describes. The weights are the same.
"""
WITHOUT_SPACES = "The spaces of aspects are left out: their maps are for vectors of the other pooling.\n"


def build_encoder(
    papers: Annotated[Sequence[Path], typer.Argument(help="Buckets of the table papers.")],
    queries: Queries,
    output: Output,
    *,
    settings: GivenAsJson[AnyEncoder],
    seed: Seed,
    source: Annotated[
        Path | None, typer.Option(help="Folder of the encoder that gives a static one its vocabulary, or is distilled.")
    ] = None,
) -> None:
    """Build an untrained BERT, or a static encoder, with a vocabulary from the corpus or from another encoder.

    Raises `InputError` if the settings have no sizes to build.
    """
    if isinstance(settings, StaticSettings):
        build_static(papers, queries, output, settings, seed, source)
    else:
        _build_bert(papers, queries, output, settings, seed)


def build_static(
    papers: Sequence[Path], queries: Path, output: Path, settings: StaticSettings, seed: int, source: Path | None
) -> None:
    """Build a static encoder; the rarer a piece, the longer its vector."""
    if source is not None:
        backend = tokenizer_in(source)
    else:
        texts = corpus_texts(papers, queries, seed, settings.text or TITLE_AND_ABSTRACT)
        vocabulary = _train_vocabulary(texts, settings.vocabulary, ["unk"])
        if len(vocabulary) < settings.vocabulary:
            report(f"The corpus gives {len(vocabulary):,} word pieces; vocabulary allows {settings.vocabulary:,}.")
        backend = _plain_tokenizer(vocabulary)
    with atomic_path(output) as folder:
        folder.mkdir()
        save_tokenizer(backend, folder, settings.max_length)
        write_reading(folder, settings)
        counted, number = documents_with(papers, queries, folder, seed)
        distilled, of_vectors = None, f"random, of {settings.dimension} dimensions"
        if source is not None and settings.distilled_from:
            teacher = open_encoder(source).cpu()
            distilled, share = distilled_vectors(teacher, counted > 0, settings.dimension)
            of_vectors = f"{distilled.shape[1]} of the {settings.dimension} dimensions have {share:.1%} of the variance"
            report(f"Distilled {len(counted):,} tokens of {settings.distilled_from}: {of_vectors}, others are random.")
            of_vectors = f"distilled from it ({of_vectors}, others are random)"
        origin = f"the encoder {settings.source}" if source else "the corpus without the papers that are kept out"
        text = f"A table of {len(counted):,} word pieces, which come from {origin}; its vectors are {of_vectors}"
        card = card_of_untrained("A static encoder", f"{text} (seed {seed}). It is where training starts.")
        vectors = first_vectors(counted, number, settings.dimension, derive_seed(seed, "build"), distilled)
        save_static(vectors, folder, counts=settings.counts or "log", card=card)


def documents_with(papers: Sequence[Path], queries: Path, folder: Path, seed: int) -> tuple[Numbers, int]:
    """How many of about `COUNTED` papers have each piece of a folder's tokenizer, and the number of these papers."""
    tokenizer = open_tokenizer(folder)
    is_drawn = _drawn(papers, queries, COUNTED, seed, "papers whose pieces are counted")
    counts, number = np.zeros(tokenizer.rows, dtype=np.int64), 0
    texts = texts_of(papers, tokenizer, "papers", tells=False)
    while some := list(islice(texts, TEXTS_IN_CALL)):
        drawn = compress(some, is_drawn(np.array([text.id for text in some])))
        for pieces in tokenizer([each.text for each in drawn if each.text]):
            counts[np.unique(pieces)] += 1
            number += 1
    return counts, number


def _build_bert(papers: Sequence[Path], queries: Path, output: Path, settings: EncoderSettings, seed: int) -> None:
    from tokenizers import processors
    from transformers import BertConfig, BertModel, BertTokenizer

    sizes, fields = settings.build, settings.text or TITLE_AND_ABSTRACT
    if sizes is None:
        raise InputError("Setting build is missing; `fetch` is for encoders that exist.")
    texts = corpus_texts(papers, queries, seed, fields)
    backend = _plain_tokenizer(_train_vocabulary(texts, sizes.vocabulary, SPECIAL))
    ends = [(SPECIAL[name], backend.token_to_id(SPECIAL[name])) for name in ("sep", "cls")]
    backend.post_processor = processors.BertProcessing(*ends)
    how: dict[str, Any] = {f"{name}_token": token for name, token in SPECIAL.items()}
    how |= {"do_lower_case": True, "model_max_length": settings.max_length}
    tokenizer = BertTokenizer(tokenizer_object=backend, **how)
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
    with drawing(seed, "build"):
        bert = BertModel(config)
    read = "titles and abstracts" if fields == TITLE_AND_ABSTRACT else f"texts ({', '.join(fields)})"
    text = (
        f"Its {len(tokenizer)} WordPiece tokens come from the {read} of the corpus, but for the papers "
        f"that are kept out;\nits weights are random ({sizes.layers} layers of width {sizes.hidden}, {sizes.heads} "
        f"heads, seed {seed}). It is the starting point of\nfine-tuning and a baseline to compare with; by itself it "
        f"knows nothing.\n\nPooling: {settings.known_pooling}; texts are cut to {settings.max_length} tokens."
    )
    card = card_of_untrained("An untrained BERT", text)
    with atomic_path(output) as folder:
        tokenizer.save_pretrained(folder)
        save_encoder(bert, folder, card=card, **kept_of(settings))
        write_reading(folder, settings)


def corpus_texts(papers: Sequence[Path], queries: Path, seed: int, fields: Sequence[str] = TITLE_AND_ABSTRACT) -> Texts:
    """The fields that an encoder reads of about `READ` papers."""
    is_drawn = _drawn(papers, queries, READ, seed, "papers whose texts make the vocabulary")

    def texts() -> Iterator[list[str]]:
        for batch in scan_table(papers, "papers").to_batches(columns=["corpusid", *fields]):
            seen = batch.filter(pa.array(is_drawn(batch["corpusid"].to_numpy())))
            yield [text for column in fields for text in map(as_text, seen[column].to_pylist()) if text]

    return texts


def _drawn(papers: Sequence[Path], queries: Path, most: int, seed: int, what: str) -> Callable[[Numbers], Any]:
    """A function of corpus ids that draws about so many papers, whatever the buckets, and none that are kept out."""
    kept_out = distinct(read_kept_out(queries)["corpusid"].to_numpy())
    share = most / max(1, count_rows(papers))
    return lambda ids: (fractions(priorities(seed, what, ids)) < share) & ~look_up(kept_out, ids)[1]


def _train_vocabulary(texts: Texts, size: int, special: Iterable[str]) -> dict[str, int]:
    """Token → id. Raises `InputError` if there are no texts. The trainer numbers characters in an order that differs
    from run to run, and breaks ties by number, so they are given to it among the special tokens."""
    from tokenizers import trainers

    tokenizer = _plain_tokenizer({})
    counts: Counter[str] = Counter()
    for some in texts():
        for text in some:  # each by itself: a normalised text takes many times its own memory
            counts.update(tokenizer.normalizer.normalize_str(text))
    del counts[" "]
    most = min(CHARACTERS, size // 4)
    alphabet = sorted(sorted(counts, key=lambda character: (-counts[character], character))[:most])
    if not alphabet:
        raise InputError("The corpus has no titles and abstracts but those that are kept out; nothing to build from.")
    inside = [INSIDE + character for character in alphabet]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[*(SPECIAL[name] for name in special), *alphabet, *inside],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=INSIDE,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return dict(tokenizer.get_vocab())


def _plain_tokenizer(vocabulary: dict[str, int]) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=INSIDE)
    return tokenizer


def average_models(
    models: Annotated[Sequence[Path], typer.Argument(help="Folders of the encoders.")], output: Output
) -> None:
    """Write an encoder whose weights are the means of those of trained encoders.

    All else is from the first. Spaces of aspects and adapters are averaged too. Memory holds the weights once, and one
    tensor of each encoder. Raises `InputError` for encoders that are not alike.
    """
    first = models[0]
    files = sorted(path.relative_to(first) for path in first.rglob("*.safetensors") if not path.is_symlink())
    with atomic_path(output) as folder:
        shutil.copytree(first, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        for file in files:
            means: dict[str, Tensor] = {}
            with ExitStack() as stack, readable((first / file).parent, "be averaged with the other encoders"):
                opened = [stack.enter_context(safe_open(model / file, framework="pt")) for model in models]
                for name in opened[0].keys():  # noqa: SIM118
                    tensors = [each.get_tensor(name) for each in opened]
                    means[name] = (sum(tensor.double() for tensor in tensors) / len(models)).to(tensors[0].dtype)
                metadata = opened[0].metadata() or {}
            save_file(means, folder / file, metadata=metadata)
        add_remark(folder / CARD, OF_MEAN.format(trainings=len(models)))


def repool(
    model: Annotated[Path, typer.Argument(help="Folder of the encoder.")],
    pooling: Annotated[str, typer.Option(help="Name of the pooling.")],
    output: Output,
) -> None:
    """Write an encoder with another pooling and without spaces of aspects; all other files are links.

    Raises `InputError` if one of the two poolings is by sentence, which needs other weights and tokens.
    """
    trained = poolings.pooling_in(model)
    if any(map(poolings.is_by_sentence, (pooling, trained))):
        raise InputError(f"{model}: a pooling by sentence is no alternative to another one.")
    changed = Path(poolings.FOLDER, "config.json")
    kept = {key: value for key, value in read_json(model / changed).items() if not key.startswith("pooling_mode")}
    with atomic_path(output) as folder:
        left_out = shutil.ignore_patterns(".*", SPACES)
        shutil.copytree(model, folder, symlinks=True, ignore=left_out, copy_function=_link)
        write_json(folder / changed, kept | poolings.flags_of(pooling))
        if (folder / CARD).is_file():
            remark = OF_POOLING.format(pooling=pooling, trained=trained) + (WITHOUT_SPACES if spaces_in(model) else "")
            add_remark(folder / CARD, remark)


def _link(source: str, target: str) -> None:
    """Make a hard link, or a copy if the disk has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
