"""The text of a document or of a short query, and its tokens, by the library below transformers.

An encoder reads title and abstract, or the fields that its folder names, joined by a separator and behind a prompt; or
each sentence by itself. Venue, authors and year are looked up by the document's id in a second table.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray
from tokenizers import Tokenizer as Backend

from cocite.config.encoders import TITLE_AND_ABSTRACT, EncoderSettings, StaticSettings
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.options import Output, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import checked_files, open_table
from cocite.encoder import poolings
from cocite.encoder.documents import LEFT_OUT, Documents, documents_of
from cocite.encoder.word_pieces import WordPieces, special_ends, splits_at_spaces

FIELDS, PROMPTS, QUERIES = "document_text.json", "config_sentence_transformers.json", "short_queries.json"
"""Files of an encoder's folder: the fields that it reads, its prompts, and the length of short queries."""
IS_QUERY = "is_query"
"""The column that marks short queries among documents, where there are any."""
ROWS_READ, ROWS_LOOKED_UP = 1024, 10_000
"""Rows of a table of documents, and of one with further fields, that are read together."""
TEXTS_IN_CALL = 4096
"""Texts that are tokenised together; where not by word, the library, which holds some 100 kB for each, gets fewer."""
TEXTS_OF_LIBRARY = 1024


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How an encoder reads documents and short queries."""

    fields: tuple[str, ...] = TITLE_AND_ABSTRACT
    sentence_wise: bool = False
    """Whether sentences are embedded by themselves."""
    separator: str | None = None
    """Between the fields; None for the tokenizer's separator."""
    query_prompt: str = ""
    document_prompt: str = ""
    query_max_length: int | None = None
    """Maximum tokens of a short query, with its prompt and the special ones; None for the maximum of documents."""
    pools_prompts: bool = True
    """Whether the tokens of prompts are pooled."""

    @cached_property
    def further(self) -> list[str]:
        """The fields beside title and abstract."""
        return [name for name in self.fields if name not in TITLE_AND_ABSTRACT]


def write_reading(folder: Path, settings: EncoderSettings | StaticSettings) -> None:
    """Write how the settings read texts into the folder of an encoder; no file for what is usual."""
    prompts = settings.prompts
    if prompts is not None and (prompts.query or prompts.document):
        of_each = {"query": prompts.query or "", "document": prompts.document or ""}
        write_json(folder / PROMPTS, {"prompts": of_each, "default_prompt_name": None})
    if settings.query_max_length is not None:
        write_json(folder / QUERIES, {"max_length": settings.query_max_length})
    if settings.text is not None or settings.sentence_wise or settings.separator is not None:
        said = {"fields": list(settings.text or TITLE_AND_ABSTRACT), "sentence_wise": bool(settings.sentence_wise)}
        separator = {} if settings.separator is None else {"separator": settings.separator}
        write_json(folder / FIELDS, said | separator)


def read_reading(folder: Path) -> Reading:
    """How the encoder in a folder reads texts; title and abstract as one text if there are no such files."""
    files = (folder / name for name in (FIELDS, PROMPTS, QUERIES, f"{poolings.FOLDER}/config.json"))
    said, prompts, queries, pooling = (read_json(path) if path.is_file() else {} for path in files)
    of_each = prompts.get("prompts", {})
    return Reading(
        fields=tuple(said.get("fields", TITLE_AND_ABSTRACT)),
        sentence_wise=said.get("sentence_wise", False),
        separator=said.get("separator"),
        query_prompt=of_each.get("query", ""),
        document_prompt=of_each.get("document", ""),
        query_max_length=queries.get("max_length"),
        pools_prompts=bool(pooling.get(poolings.WITH_PROMPT, True)),
    )


class Text(NamedTuple):
    """A row of a table of documents."""

    id: Any
    text: str
    """With the prompt; empty if the document has no text."""
    is_query: bool
    sentences: tuple[str, ...] = ()
    """Its sentences, each with the prompt, if they are embedded by themselves."""


def filled(parts: Iterable[str | None]) -> list[str]:
    """The parts that are not empty, stripped."""
    return [part.strip() for part in parts if part and part.strip()]


def sentences_of(text: str | None) -> list[str]:
    """The sentences of a text in English."""
    from sentencex import segment

    return list(segment("en", text or ""))


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """The tokenizer of an encoder."""

    backend: Any
    """A `tokenizers.Tokenizer`, which cuts texts itself unless they are tokenised word by word."""
    separator: str
    """Between the fields of a document."""
    padding: int
    """Token id of the padding."""
    max_length: int
    """Maximum tokens of a text, with the special ones."""
    sentence: int | None = None
    """Token id that each sentence starts with; None if texts are not split into sentences."""
    reading: Reading = Reading()
    encode: Callable[[list[str]], list[NDArray[np.int32]]]
    """The token ids of each text, with special ones, cut to `max_length`."""
    encode_queries: Callable[[list[str]], list[NDArray[np.int32]]] | None = None
    """Likewise, cut to the length of short queries; None if these are as long as documents."""
    mask: int | None = None
    """Token id of the mask; None if there is none."""
    unknown: int | None = None
    """Token id of what the vocabulary lacks, likewise."""

    @property
    def rows(self) -> int:
        """Rows of a table that has one for each token: the largest id, and one more."""
        return max(self.backend.get_vocab(with_added_tokens=True).values()) + 1

    @property
    def frame(self) -> tuple[int, int]:
        """Number of tokens that every document starts with, those of its prompt included, and ends with."""
        prompt, (head, tail) = self.reading.document_prompt, special_ends(self.backend)
        encoded = self.backend.encode(f"{prompt}a", add_special_tokens=False)
        length = len(prompt.rstrip(" "))  # a token may have the space and the word after it
        return len(head) + sum(start < length >= end for start, end in encoded.offsets), len(tail)

    def left_out(self, are_queries: Sequence[int]) -> NDArray[np.int64] | None:
        """Tokens at the start of each text that the pooling leaves out, as sentence-transformers counts; None for
        none."""
        if self.reading.pools_prompts:
            return None
        special = {id for id, token in self.backend.get_added_tokens_decoder().items() if token.special}
        of_each = []
        for prompt in (self.reading.document_prompt, self.reading.query_prompt):
            ids = self.backend.encode(prompt).ids if prompt else []
            of_each.append(len(ids) - (bool(ids) and ids[-1] in special))
        return np.array(of_each)[np.array(are_queries, dtype=np.int64)]

    def parts_of(self, fields: Mapping[str, str | None], more: Iterable[str] = ()) -> list[str]:
        """The fields of a document that are read, and additions of a task that are not among them, not empty and
        stripped. If texts are split, abstract and additions are sentences: the separator ends one and starts the next
        one."""
        splits = self.sentence is not None or self.reading.sentence_wise
        further = {fields.get(name) for name in self.reading.further}
        read = [(fields.get(name), name == "abstract") for name in self.reading.fields]
        read += [(each, True) for each in more if each not in further]
        parts = (sentences_of(text) if splits and has_sentences else [text] for text, has_sentences in read)
        return filled(chain.from_iterable(parts))

    def document(self, id: Any, fields: Mapping[str, str | None], more: Iterable[str] = ()) -> Text:
        """The text of a document."""
        parts, prompt = self.parts_of(fields, more), self.reading.document_prompt
        text = prompt + self.separator.join(parts) if parts else ""
        sentences = tuple(prompt + part for part in parts) if self.reading.sentence_wise else ()
        return Text(id, text, False, sentences)

    def short_query(self, id: Any, text: str | None, *others: str | None) -> Text:
        """The text of a short query; if texts are split, all parts but the first are sentences."""
        further = chain.from_iterable(map(sentences_of, others)) if self.sentence is not None else others
        parts = filled((text, *further))
        query = self.reading.query_prompt + self.separator.join(parts) if parts else ""
        return Text(id, query, True, (query,) if self.reading.sentence_wise and query else ())

    def __call__(self, texts: Sequence[str], are_queries: Sequence[bool] = ()) -> Iterator[NDArray[np.int32]]:
        """Yield the token ids of each text, with special ones; without `are_queries`, no text is a short query."""
        for start in range(0, len(texts), TEXTS_IN_CALL):
            some, marks = list(texts[start : start + TEXTS_IN_CALL]), are_queries[start : start + TEXTS_IN_CALL]
            if self.encode_queries is None or not any(marks):
                yield from self.encode(some)
                continue
            queries = iter(self.encode_queries([text for text, is_query in zip(some, marks, strict=True) if is_query]))
            others = iter(self.encode([text for text, is_query in zip(some, marks, strict=True) if not is_query]))
            yield from (next(queries if is_query else others) for is_query in marks)


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in an encoder's folder. Raises `InputError` if there is none, or none with a vocabulary."""
    settings, reading = read_json(folder / "tokenizer_config.json"), read_reading(folder)
    backend, length = _open_backend(folder), settings["model_max_length"]
    named = (settings.get(f"{name}_token") for name in ("sep", "pad", "cls", "mask", "unk"))
    # A special token is text, or an object that has the text in it.
    separator, padding, first, mask, unknown = (each["content"] if isinstance(each, dict) else each for each in named)
    splits = (folder / poolings.FOLDER).is_dir() and poolings.is_by_sentence(poolings.pooling_in(folder))
    if splits and not (separator and first):
        raise InputError(f"{folder}: its vocabulary has no tokens that a sentence starts and ends with.")
    if not separator:
        reading = replace(reading, separator=reading.separator or " ")
    return Tokenizer(
        backend=backend,
        separator=f"{separator}{first}" if splits else reading.separator or separator,
        padding=(backend.token_to_id(padding) if padding else None) or 0,
        max_length=length,
        sentence=backend.token_to_id(first) if splits else None,
        reading=reading,
        encode=_encoder_of(backend, length),
        encode_queries=_encoder_of(_open_backend(folder), shorter) if (shorter := reading.query_max_length) else None,
        mask=backend.token_to_id(mask) if mask else None,
        unknown=backend.token_to_id(unknown) if unknown else None,
    )


def _open_backend(folder: Path) -> Any:
    try:
        backend = Backend.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing more special
        raise InputError(f"{folder / 'tokenizer.json'}: cannot be opened as a tokenizer: {error}.") from error
    backend.no_padding()
    backend.no_truncation()
    return backend


def _encoder_of(backend: Any, length: int) -> Callable[[list[str]], list[NDArray[np.int32]]]:
    """What gives the token ids of texts, cut to so many."""
    if splits_at_spaces(backend):
        return WordPieces(backend, length)
    backend.enable_truncation(length)
    return lambda texts: [
        np.array(text.ids, dtype=np.int32)
        for start in range(0, len(texts), TEXTS_OF_LIBRARY)
        for text in backend.encode_batch_fast(texts[start : start + TEXTS_OF_LIBRARY])
    ]


def tokenise(texts: Sequence[str], tokenizer: Tokenizer, are_queries: Sequence[bool] = ()) -> Documents:
    """Tokenise some texts in memory; without `are_queries`, none of them is a short query."""
    left_out = tokenizer.left_out(are_queries or [False] * len(texts))
    return documents_of(list(tokenizer(texts, are_queries)), left_out)


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
    """Tokenise the documents of a set of examples, for all trainings that start from an encoder (see `open_tokens`)."""
    tokenizer = open_tokenizer(encoder)
    files = checked_files(documents, "training_documents")
    ids, lengths, are_queries = array("q"), array("q"), array("b")
    with atomic_path(output) as folder:
        folder.mkdir()
        read = texts_of(files, tokenizer, "training_documents", papers)
        with (folder / "tokens.bin").open("wb") as file:
            while some := list(islice(read, TEXTS_IN_CALL)):
                marks = [each.is_query for each in some]
                for tokens in tokenizer([each.text for each in some], marks):
                    file.write(tokens.tobytes())
                    lengths.append(len(tokens))
                ids.extend(each.id for each in some)
                are_queries.extend(marks)
        columns = {"ids": ids, "lengths": lengths, LEFT_OUT: tokenizer.left_out(are_queries)}
        for name, numbers in columns.items():
            if numbers is not None:
                np.save(folder / f"{name}.npy", np.array(numbers))


def texts_of(
    files: Sequence[Path], tokenizer: Tokenizer, table: str, papers: Sequence[Path] = (), *, tells: bool = True
) -> Iterator[Text]:
    """The text of each row of a table of documents, in order; `tells` reports how many lack further fields."""
    [key] = TABLES[table].key
    names = [key, "title", "abstract", *TABLES[table].columns.keys() & {"more"}]
    for file in files:
        source = source_of(file, table, papers) if tokenizer.reading.further else None
        further = FurtherFields(source, tokenizer.reading.further)
        opened = open_table(file, table)
        marks = {IS_QUERY} & set(opened.schema_arrow.names)
        for batch in opened.iter_batches(ROWS_READ, columns=[*names, *marks]):
            columns = (batch.column(name).to_pylist() for name in names)
            are_queries = batch.column(IS_QUERY).to_pylist() if marks else [False] * len(batch)
            is_document = pa.array([not is_query for is_query in are_queries], pa.bool_())
            values = iter(further.of(batch.column(key).filter(is_document)))
            for is_query, document, title, abstract, *more in zip(are_queries, *columns, strict=True):
                if is_query:
                    yield tokenizer.short_query(document, title, abstract, *chain(*more))
                else:
                    fields = {"title": title, "abstract": abstract, **next(values)}
                    yield tokenizer.document(document, fields, chain(*more))
        if tells and source is not None:
            for name, count in further.missing.items():
                report(f"{name}: {count} of {further.looked_up} {table} have none; it is left out of their texts.")


def as_text(value: Any) -> str | None:
    """A field as text: the names of authors with commas between them, a year in digits."""
    if isinstance(value, list):
        value = ", ".join(name for name in value if name)
    return None if value is None else str(value).strip() or None


def source_of(documents: Path, table: str, papers: Sequence[Path] = ()) -> tuple[Path, str] | None:
    """The file with the further fields of a file of documents, and its table; None for sampled texts. Those of examples
    are in the bucket of `papers` with the same name. Raises `InputError` if it is not given."""
    if table == "sampled_texts":
        return None
    if table == "documents":
        return documents.with_name("document_fields.parquet"), "document_fields"
    bucket = documents if table == "papers" else next((path for path in papers if path.name == documents.name), None)
    if bucket is None:
        bucket_name = f"table papers, whose bucket {documents.name} is not given"
        raise InputError(f"{documents}: the encoder reads fields that stand in the {bucket_name}.")
    return bucket, "papers"


class FurtherFields:
    """Looks up the further fields of documents that come in the order of their ids, in a table that is read once."""

    def __init__(self, source: tuple[Path, str] | None, names: Sequence[str]) -> None:
        """Open the table. Raises `InputError` if it lacks one of the fields."""
        self.names, self.missing, self.looked_up = names, dict.fromkeys(names, 0), 0
        self._held: pa.Table | None = None
        if source is None:
            return
        path, table = source
        file = open_table(path, table)
        for name in names:
            if name not in file.schema_arrow.names:
                raise InputError(f"{path}: has no column {name}, which the encoder reads; set corpus.{name}: true.")
        [self._key] = TABLES[table].key
        self._batches = file.iter_batches(ROWS_LOOKED_UP, columns=[self._key, *names])
        self._held = file.schema_arrow.empty_table().select([self._key, *names])

    def of(self, ids: pa.Array) -> list[dict[str, str | None]]:
        """The fields of documents, whose ids rise from call to call; rows that were not yet asked for are held."""
        if self._held is None or len(ids) == 0:
            return [{} for _ in range(len(ids))]
        last, read = ids[-1], [self._held]
        reached = self._held[self._key][-1] if len(self._held) else None
        while reached is None or pc.less(reached, last).as_py():
            batch = next(self._batches, None)
            if batch is None:
                break
            reached = batch[self._key][-1]
            wanted = pc.or_(pc.is_in(batch[self._key], value_set=ids), pc.greater(batch[self._key], last))
            read.append(pa.Table.from_batches([batch.filter(wanted)]))
        rows = pa.concat_tables(read).combine_chunks()
        places = pc.index_in(ids, value_set=rows[self._key].combine_chunks())
        self._held = rows.filter(pc.greater(rows[self._key], last))
        fields = rows.select(self.names).take(places).to_pylist()
        values = [{name: as_text(value) for name, value in row.items()} for row in fields]
        self.looked_up += len(values)
        for name in self.names:
            self.missing[name] += sum(row[name] is None for row in values)
        return values
