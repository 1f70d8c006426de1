"""Small encoders in the layouts in which encoders are published, with weights that are drawn."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedTokenizerFast

from cocite.config.encoders import EncoderSettings
from cocite.encoder.fetch import fetch_encoder

SENTENCES = [
    "Bees collect nectar from flowers in the meadow.",
    "Compilers allocate registers for loops in programs.",
    "Stars fuse hydrogen into helium, and the court dismissed the appeal.",
]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ROBERTAS = ("roberta", "camembert", "xlm-roberta", "mpnet")
WORDS = sorted({word for sentence in SENTENCES for word in re.findall(r"\w+", sentence)})
LETTERS = sorted({letter for sentence in SENTENCES for letter in sentence} - {" "})
"""Vocabularies are written out: trainers number and choose equally frequent pieces anew in each process."""


def _wordpiece() -> Tokenizer:
    letters = sorted({letter.lower() for letter in LETTERS})
    pieces = [*BERT, *(word.lower() for word in WORDS if len(word) > 1), *letters, *(f"##{each}" for each in letters)]
    vocabulary = {piece: id for id, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=BERT[1]))
    tokenizer.add_special_tokens([*BERT])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _bytes() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[*ROBERTA], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _unigram() -> Tokenizer:
    pieces = [*((token, 0.0) for token in ROBERTA), *((f"▁{word}", -1.0) for word in WORDS)]
    tokenizer = Tokenizer(models.Unigram([*pieces, *((letter, -5.0) for letter in ["▁", *LETTERS])], unk_id=3))
    tokenizer.add_special_tokens([*ROBERTA])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _saved_tokenizer(folder: Path, kind: str) -> int:
    """Save a tokenizer as the kind has it, and return the number of its tokens."""
    make = {"roberta": _bytes, "camembert": _unigram, "xlm-roberta": _unigram}.get(kind, _wordpiece)
    backend = make()
    pad, unk, cls, sep, mask = BERT if make is _wordpiece else (ROBERTA[at] for at in (1, 3, 0, 2, 4))
    names = {"pad_token": pad, "unk_token": unk, "cls_token": cls, "sep_token": sep, "mask_token": mask}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=backend, **names)
    wrapped.save_pretrained(folder)
    return len(wrapped)


DECODER = {"num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
DECODER |= {"max_position_embeddings": 32}
OF_KINDS = {
    **{kind: {"pad_token_id": 1, "max_position_embeddings": 34} for kind in ROBERTAS},
    "modernbert": {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    | {"max_position_embeddings": 32, "num_hidden_layers": 4, "local_attention": 8},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}
    | {"norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
    | {"max_position_embeddings": 32, "pooler_hidden_size": 16},
    **{"qwen3": DECODER, "llama": DECODER, "gemma3_text": DECODER | {"sliding_window": 8}},
    "t5": {"d_model": 16, "d_ff": 32, "d_kv": 8, "num_layers": 1, "num_heads": 2},
}
"""What some kinds need beside the sizes."""


def published(folder: Path, kind: str = "bert", **settings: Any) -> Path:
    """Save a small transformer of this kind and its tokenizer in Hugging Face's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    size = _saved_tokenizer(folder, kind)
    named = {key: CONFIG_MAPPING[kind].attribute_map.get(key, key) for key in SIZES}
    given = {named[key]: value for key, value in SIZES.items()} | {"vocab_size": size}
    given |= OF_KINDS.get(kind, {"max_position_embeddings": 32})
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModel.from_config(CONFIG_MAPPING[kind](**(given | settings)))
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    return folder


def as_sentence_transformer(
    plain: Path, folder: Path, *behind: torch.nn.Module, pooling: str = "mean", include_prompt: bool = True, **more: Any
) -> Path:
    """Save a plain transformer as sentence-transformers saves it, with these modules behind its pooling."""
    transformer = Transformer(str(plain))
    pooled = Pooling(transformer.get_embedding_dimension(), pooling, include_prompt)
    whole = SentenceTransformer(modules=[transformer, pooled, *behind], device="cpu", **more)
    whole.save(str(folder), create_model_card=False)
    return folder


def dense(takes: int = 16, gives: int = 8, activation: type[torch.nn.Module] | None = torch.nn.Tanh) -> Dense:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Dense(takes, gives, activation_function=(activation or torch.nn.Identity)())


def edit(path: Path, change: Callable[[Any], Any] | None = None, **settings: Any) -> None:
    """Change a file of JSON: by a function, or by some keys."""
    content = json.loads(path.read_text()) if path.is_file() else {}
    content = change(content) if change else content | settings
    path.write_text(json.dumps(content))


def fetched(source: Path, output: Path, **settings: Any) -> Path:
    """Fetch an encoder from a folder."""
    fetch_encoder(EncoderSettings(**{"model": str(source), "max_length": 32} | settings), output)
    return output
