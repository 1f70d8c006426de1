"""The text of a document, its tokens, and those of some documents as what the transformer takes.

A document is its title and abstract, or the fields that the encoder reads, joined by the tokenizer's own separator or
another that the encoder names; or sentence by sentence, each with the tokens that a text starts and ends with. Its
tokens are those that transformers gives it, from the same file and by the same underlying library, which loads in a
tenth of the time. Documents that the transformer takes together are of like length, and padded to the longest, or
packed without padding.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.errors import InputError
from cocite.core.options import Output, Threads
from cocite.core.tables import TABLES
from cocite.core.tables.files import atomic_path, checked_files, open_table, read_json
from cocite.encoder import poolings
from cocite.encoder.documents import Documents, Rows, documents_in, documents_of
from cocite.encoder.fields import FurtherFields, Reading, Values, read_reading, source_of
from cocite.encoder.prompts import Prompts, read_prompts

ROWS_READ = 1024
"""Rows of a table of documents that are read together."""
ROW = 128
"""A row of packed documents is a multiple of so many tokens long: products of matrices are fastest so, and memory is
used again by rows of the same length."""
TEXTS_IN_CALL = 1000
"""Texts in one call of the tokenizer, which holds some 100 kB for each, the text after the last token included."""


IS_QUERY = "is_query"
"""The column that marks short queries among documents, where there are any."""


def joined_text(parts: Iterable[str | None], separator: str) -> str:
    """Title, abstract and what may follow, whichever are not empty, joined by the separator."""
    return separator.join(filled(parts))


def filled(parts: Iterable[str | None]) -> list[str]:
    """The parts that are not empty, without the space around them."""
    return [part.strip() for part in parts if part and part.strip()]


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """The tokenizer of an encoder."""

    backend: Any
    """A `tokenizers.Tokenizer` that cuts texts to `max_length`."""
    separator: str
    """What title and abstract are joined by: what the encoder's folder says, else the separator of the vocabulary, or a
    space where it has none."""
    padding: int
    """Token id of the padding."""
    max_length: int
    """Tokens of a text at most, the special ones among them."""
    sentence: int | None = None
    """Token id that each sentence starts with; None where texts are not split into sentences."""
    prompts: Prompts = Prompts()
    """What texts begin with."""
    reading: Reading = Reading()
    """Which fields a document is read as."""
    of_queries: Any = None
    """A backend that cuts texts to the length of short queries; None where these are as long as documents."""
    mask: int | None = None
    """Token id of the mask, which stands for a token that is to be predicted; None where there is none."""

    @property
    def special(self) -> list[int]:
        """The ids of the tokens that stand for no piece of a text."""
        return sorted(id for id, token in self.backend.get_added_tokens_decoder().items() if token.special)

    @property
    def frame(self) -> tuple[int, int]:
        """How many tokens every document starts with, those of its prompt among them, and how many it ends with."""
        prompt = self.backend.encode(self.prompts.of(is_query=False), add_special_tokens=False)
        encoded = self.backend.encode("a")
        of_text = np.flatnonzero(np.array(encoded.special_tokens_mask) == 0)
        return len(prompt.ids) + int(of_text[0]), len(encoded.ids) - 1 - int(of_text[-1])

    def text_of(self, title: str | None, *others: str | None, is_query: bool = False) -> str:
        """The text of a title and an abstract, and what may follow; empty where all of them are.

        A prompt goes before it. Where texts are split, the title is a sentence, and the separator ends a sentence and
        starts the next one.
        """
        if self.sentence is not None:
            others = tuple(chain.from_iterable(map(sentences_of, others)))
        text = joined_text((title, *others), self.separator)
        return self.prompts.of(is_query=is_query) + text if text else ""

    def parts_of(self, fields: Mapping[str, str | None], more: Iterable[str] = ()) -> list[str]:
        """What the text of a document is joined from: the fields that are read, and what a task adds to them.

        Where texts are split, the abstract and what is added are sentences. What is among the further fields is not
        added again.
        """
        splits = self.sentence is not None or self.reading.sentence_wise
        parts = list[str | None]()
        for name in self.reading.fields:
            value = fields.get(name)
            parts += sentences_of(value) if splits and name == "abstract" else [value]
        further = {fields.get(name) for name in self.reading.further}
        for each in more:
            if each not in further:
                parts += sentences_of(each) if splits else [each]
        return filled(parts)

    def document(self, id: Any, fields: Mapping[str, str | None], more: Iterable[str] = ()) -> "Text":
        """The text of a document that is no short query."""
        parts, prompt = self.parts_of(fields, more), self.prompts.of(is_query=False)
        text = prompt + self.separator.join(parts) if parts else ""
        sentences = tuple(prompt + part for part in parts) if self.reading.sentence_wise else ()
        return Text(id, text, False, sentences)

    def short_query(self, id: Any, text: str | None, *others: str | None) -> "Text":
        """The text of a short query."""
        found = self.text_of(text, *others, is_query=True)
        return Text(id, found, True, (found,) if self.reading.sentence_wise and found else ())

    def __call__(self, texts: Sequence[str], are_queries: Sequence[bool] = ()) -> Iterator[NDArray[np.int32]]:
        """Yield the token ids of each text, special ones too; without `are_queries`, no text is a short query."""
        for start in range(0, len(texts), TEXTS_IN_CALL):
            some = slice(start, start + TEXTS_IN_CALL)
            yield from self._encoded(list(texts[some]), are_queries[some])

    def _encoded(self, texts: list[str], are_queries: Sequence[bool]) -> list[NDArray[np.int32]]:
        if self.of_queries is None or not any(are_queries):
            return [np.array(text.ids, dtype=np.int32) for text in self.backend.encode_batch_fast(texts)]
        found: list[NDArray[np.int32]] = [np.empty(0, np.int32)] * len(texts)
        for backend, of_queries in ((self.backend, False), (self.of_queries, True)):
            rows = [row for row, is_query in enumerate(are_queries) if is_query == of_queries]
            for row, text in zip(rows, backend.encode_batch_fast([texts[row] for row in rows]), strict=True):
                found[row] = np.array(text.ids, dtype=np.int32)
        return found


def sentences_of(text: str | None) -> list[str]:
    """The sentences of a text in English."""
    from sentencex import segment

    return list(segment("en", text or ""))


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in an encoder's folder. Raises `InputError` if there is none, or none with a vocabulary."""
    settings, prompts = read_json(folder / "tokenizer_config.json"), read_prompts(folder)
    backend = _open_backend(folder, settings["model_max_length"])
    separator, padding, first, mask = (
        _content(settings.get(f"{name}_token")) for name in ("sep", "pad", "cls", "mask")
    )
    reading = read_reading(folder)
    splits = poolings.is_by_sentence(poolings.pooling_in(folder))
    if splits and not (separator and first):
        raise InputError(f"{folder}: its vocabulary has no tokens that a sentence starts and ends with.")
    return Tokenizer(
        backend=backend,
        separator=f"{separator}{first}" if splits else reading.separator or separator or " ",
        padding=(backend.token_to_id(padding) if padding else None) or 0,
        max_length=settings["model_max_length"],
        sentence=backend.token_to_id(first) if splits and first else None,
        prompts=prompts,
        reading=reading,
        of_queries=_open_backend(folder, prompts.query_max_length) if prompts.query_max_length else None,
        mask=backend.token_to_id(mask) if mask else None,
    )


def _open_backend(folder: Path, length: int) -> Any:
    """The tokenizer of a folder as the library has it, which cuts texts to so many tokens."""
    from tokenizers import Tokenizer as Backend

    try:
        backend = Backend.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing more special
        raise InputError(f"{folder / 'tokenizer.json'}: cannot be opened as a tokenizer: {error}.") from error
    backend.no_padding()
    backend.enable_truncation(length)
    return backend


def tokenise(texts: Sequence[str], tokenizer: Tokenizer, are_queries: Sequence[bool] = ()) -> Documents:
    """Tokenise some texts in memory; without `are_queries`, none of them is a short query."""
    return documents_of(list(tokenizer(texts, are_queries)))


def tokenise_table(
    documents: Annotated[Path, typer.Argument(help="Folder of the table training_documents or validation_documents.")],
    papers: Annotated[
        Sequence[Path],
        typer.Argument(help="Buckets of the table papers, for an encoder that reads more than title and abstract."),
    ] = (),
    *,
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder whose tokenizer is used.")],
    threads: Threads,
    output: Output,
) -> None:
    """Tokenise the documents of a set of examples, for all trainings that start from an encoder.

    `open_tokens` opens the folder. The tokenizer's threads are those of the environment, which the command line sets.
    """
    tokenizer = open_tokenizer(encoder)
    files = checked_files(documents, "training_documents")
    ids, lengths = array("q"), array("q")
    with atomic_path(output) as folder:
        folder.mkdir()
        read = texts_of(files, tokenizer, "training_documents", papers)
        with (folder / "tokens.bin").open("wb") as file:
            while some := list(islice(read, TEXTS_IN_CALL)):
                tokenised = tokenizer([each.text for each in some], [each.is_query for each in some])
                for each, tokens in zip(some, tokenised, strict=True):
                    file.write(tokens.tobytes())
                    ids.append(each.id)
                    lengths.append(len(tokens))
        for name, numbers in (("ids", ids), ("lengths", lengths)):
            np.save(folder / f"{name}.npy", np.array(numbers))


def open_tokens(folder: Path) -> tuple[NDArray[np.int64], Documents]:
    """The corpus ids of the documents that `tokenise_table` wrote, and their tokens, mapped from disk."""
    ids, lengths = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("ids", "lengths"))
    tokens = np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r")
    return ids, documents_in(tokens, lengths)


class Text(NamedTuple):
    """What a row of a table of documents says."""

    id: Any
    text: str
    """Its text with the prompt; empty where it has none."""
    is_query: bool
    """Whether it is a short query."""
    sentences: tuple[str, ...] = ()
    """Its sentences, each with the prompt, where they are embedded by themselves."""


def texts_of(
    files: Sequence[Path], tokenizer: Tokenizer, table: str, papers: Sequence[Path] = (), *, tells: bool = True
) -> Iterator[Text]:
    """The text of each row of a table of documents, in its order; reports what lacks further fields if it `tells`."""
    for file in files:
        source = source_of(file, table, papers) if tokenizer.reading.further else None
        further = FurtherFields(source, tokenizer.reading.further)
        yield from _texts_in(file, tokenizer, table, further)
        if tells and source is not None:
            further.tell(table)


def _texts_in(file: Path, tokenizer: Tokenizer, table: str, further: FurtherFields) -> Iterator[Text]:
    [key] = TABLES[table].key
    names = [key, "title", "abstract", *TABLES[table].columns.keys() & {"more"}]
    opened = open_table(file, table)
    asked = [*names, *({IS_QUERY} & set(opened.schema_arrow.names))]
    for batch in opened.iter_batches(ROWS_READ, columns=asked):
        columns = (batch.column(name).to_pylist() for name in names)
        are_queries = batch.column(IS_QUERY).to_pylist() if IS_QUERY in asked else [False] * len(batch)
        is_document = pa.array([not is_query for is_query in are_queries], pa.bool_())
        values: Iterator[Values] = iter(further.of(batch.column(key).filter(is_document)))
        for is_query, document, title, abstract, *more in zip(are_queries, *columns, strict=True):
            if is_query:
                yield tokenizer.short_query(document, title, abstract, *chain(*more))
            else:
                fields = {"title": title, "abstract": abstract, **next(values)}
                yield tokenizer.document(document, fields, chain(*more))


def batches_of_like_length(lengths: Rows, tokens: int) -> Iterator[Rows]:
    """Documents of these lengths in batches of at most so many tokens, or of one document, with little padding.

    The longest come first, so that a lack of memory shows at the start.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start:end]
        start = end


def mini_batches_of_like_length(lengths: Rows, *, start: int, most: int | None = None) -> list[Rows]:
    """Documents of these lengths cut into the mini-batches that cost least, the longest documents first.

    A mini-batch of n documents whose longest has l tokens costs n · l + `start`, and n · l is at most `most`, unless n
    is 1. The best cut of the first n documents is the best over all last mini-batches (dynamic programming, as for
    breaking lines).
    """
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order]
    cost = np.zeros(len(order) + 1)
    first = np.zeros(len(order) + 1, dtype=np.int64)
    for end in range(1, len(order) + 1):
        starts = np.arange(end)
        sizes = (end - starts) * longest[:end]  # they fall, since the longest come first
        starts = starts[0 if most is None else min(end - 1, int(np.count_nonzero(sizes > most))) :]
        costs = cost[starts] + sizes[starts] + start
        best = int(costs.argmin())
        cost[end], first[end] = costs[best], starts[best]
    mini_batches = []
    end = len(order)
    while end:
        mini_batches.append(order[first[end] : end])
        end = int(first[end])
    return mini_batches[::-1]


def runs_of(lengths: Rows, most: int | None) -> list[slice]:
    """Documents of these lengths, in their order, cut into runs of at most so many tokens, or of one document."""
    ends = np.cumsum(lengths)
    runs, start = [], 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        end = len(lengths) if most is None else int(np.searchsorted(ends, before + most, "right"))
        runs.append(slice(start, max(start + 1, end)))
        start = runs[-1].stop
    return runs


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on a device. From pinned memory a GPU takes it when it gets there, and the CPU goes on."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def moved_features(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """What the transformer takes of some documents, on a device."""
    return {name: moved(value, device) if isinstance(value, Tensor) else value for name, value in features.items()}


def features_of(documents: Documents, rows: Rows, padding: int) -> dict[str, Any]:
    """What the transformer takes: token ids and attention mask of some documents, padded."""
    ids, mask = documents.padded(rows, padding)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


def packed(documents: Documents, rows: Rows, *, first_position: int = 0) -> dict[str, Any]:
    """What the transformer takes: the token ids of some documents in one row, and where each document starts.

    A document of filling comes last, which makes the row a multiple of `ROW` long. The names are those by which
    transformers knows packed documents.
    """
    filling = ROW - documents.lengths[rows].sum() % ROW
    lengths = np.append(documents.lengths[rows], filling)
    ends = np.cumsum(lengths)
    ids = np.concatenate([*(documents[row] for row in rows), np.zeros(filling, dtype=np.int32)])
    positions = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    positions[-filling:] = 0
    return {
        "input_ids": torch.from_numpy(ids.astype(np.int64))[None],
        "position_ids": torch.from_numpy(first_position + positions)[None],
        "cu_seq_lens_q": torch.from_numpy(np.append(0, ends).astype(np.int32)),
        "max_length_q": int(lengths.max()),
    }


def _content(token: Any) -> str | None:
    """A special token, which is text or an object that has the text in it."""
    found: str | None = token["content"] if isinstance(token, dict) else token
    return found
