"""Triplets that a benchmark's own answers give: an upper bound of what can be reached on it (SciNCL's appendix).

What comes in are the tables of a prepared benchmark, `documents`, `labels`, `judgements` and `collections`. In a
classification, papers that share a class are near, and papers that share none are far. In a ranking or a search, what
is judged relevant to a query is near it, and what is judged not relevant is far; where nothing is, documents that are
not judged relevant to it stand for that. Tasks of other kinds are counted and left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.benchmarks import declared
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.randomness import generator, priorities
from cocite.core.tables.documents import NO_TEXT, read_documents, text_ids_of
from cocite.core.tables.files import read_table
from cocite.triplets.combining import LISTS, each_once
from cocite.triplets.sampled import Block, Sampled
from cocite.triplets.sampled_texts import texts_table
from cocite.triplets.samplers.oracle import ANSWERED

TRIES = 64
"""Documents that are drawn before a query is given up for which none is far."""

Pair = tuple[int, int]
"""A document that is near a query, and one that is far from it."""


class Answers(Protocol):
    """What a task says of its documents."""

    @property
    def queries(self) -> Ids:
        """The documents that can be asked with, by their text ids, rising."""

    def drawn(self, query: int, random: np.random.Generator, count: int) -> list[Pair]:
        """So many pairs for a query, or fewer."""


def sample_answers(
    block: Block, tasks: Sequence[str] | None, *, per_query: int, queries: int | None, validation: float
) -> Sampled:
    """The triplets of the tasks, and the texts of their documents.

    Raises `InputError` where a table of the benchmark is missing, or no task that is asked for has answers.
    """
    counts: Counter[str] = Counter()
    [documents] = block.files("documents")
    texts = _text_ids(documents)
    counts["documents without a text"] += int(np.count_nonzero(texts.ids == NO_TEXT))
    answers = dict(_answers(block, texts, tasks, counts))
    if not answers:
        raise InputError(f"{documents.parent}: the benchmark has no labels and no judgements.")
    number = min(len(each.queries) for each in answers.values()) if queries is None else queries
    found: list[tuple[int, int, int]] = []
    for task, each in answers.items():
        chosen = _chosen(each.queries, number, block.seed, task)
        counts[f"queries of {task} beyond those of each task"] += len(each.queries) - len(chosen)
        for query in chosen.tolist():
            pairs = each.drawn(query, generator(block.seed, "oracle", task, query), per_query)
            counts[f"queries of {task} for which no document is far"] += not pairs
            found += [(query, near, far) for near, far in pairs]
    rows = _rows(np.array(found, dtype=np.int64).reshape(-1, 3), block.seed, validation)
    return Sampled(rows=rows, omissions=dict(counts), texts=_texts(documents, rows))


@dataclass(frozen=True)
class TextIds:
    """The documents of a benchmark."""

    names: pa.Array
    """Their names, in the order of the table."""
    ids: Ids
    """The id of each one's text."""

    def of(self, names: pa.ChunkedArray) -> Ids:
        """The ids of the documents of these names; NO_TEXT where there is none."""
        places = pc.index_in(names, value_set=self.names).fill_null(len(self.ids)).to_numpy()
        found: Ids = np.append(self.ids, NO_TEXT)[places]
        return found


def _text_ids(documents: Path) -> TextIds:
    names, ids = zip(*[(pa.array([], pa.string()), np.empty(0, np.int64)), *text_ids_of(documents)], strict=True)
    return TextIds(pa.concat_arrays(names), np.concatenate(ids))


def _answers(
    block: Block, texts: TextIds, tasks: Sequence[str] | None, counts: Counter[str]
) -> Iterator[tuple[str, Answers]]:
    """Each task that has answers for at least one query."""
    labels, judgements, collections = (
        read_table(block.files(name)[0], name) for name in ("labels", "judgements", "collections")
    )
    there = sorted({*labels["task"].unique().to_pylist(), *judgements["task"].unique().to_pylist()})
    for name in there if tasks is None else tasks:
        task = declared(name)
        if task.kind not in ANSWERED:
            counts[f"tasks that say of no two documents that they belong together: {name}"] += 1
            continue
        rows = [table.filter(pc.equal(table["task"], name)) for table in (labels, judgements, collections)]
        answers = Classes(rows[0], texts) if task.is_supervised else Judged(rows[1], rows[2], texts, task.relevant_from)
        if len(answers.queries):
            yield name, answers
        else:
            counts[f"tasks without a query that has answers: {name}"] += 1


class Classes:
    """A classification: documents are near that share a class."""

    def __init__(self, labels: pa.Table, texts: TextIds) -> None:
        """Of the rows of `labels` of one task; a document may have several classes."""
        documents = texts.of(labels["document"])
        self.classes: dict[int, set[str]] = {}
        for document, names in zip(documents.tolist(), labels["labels"].to_pylist(), strict=True):
            if document != NO_TEXT:
                self.classes.setdefault(document, set()).update(names)
        self.documents = np.array(sorted(self.classes), dtype=np.int64)
        self.members: dict[str, list[int]] = {}
        for document in self.documents.tolist():
            for name in self.classes[document]:
                self.members.setdefault(name, []).append(document)

    @property
    def queries(self) -> Ids:
        """The documents with a class that is not theirs alone."""
        shares = [any(len(self.members[name]) > 1 for name in self.classes[each]) for each in self.documents.tolist()]
        return self.documents[np.array(shares, dtype=bool)]

    def drawn(self, query: int, random: np.random.Generator, count: int) -> list[Pair]:
        """Pairs of a document of one of its classes, each as likely, and one of none of them."""
        own = self.classes[query]
        classes = [name for name in sorted(own) if len(self.members[name]) > 1]
        pairs = []
        for _ in range(count):
            members = self.members[classes[random.integers(len(classes))]]
            near = _other(members, query, random)
            drawn = self.documents[random.integers(len(self.documents), size=TRIES)].tolist()
            far = next((each for each in drawn if own.isdisjoint(self.classes[each])), None)
            if far is not None:
                pairs.append((near, far))
        return pairs


def _other(members: list[int], query: int, random: np.random.Generator) -> int:
    """A random one of some rising numbers that is not the query, which is among them."""
    place = int(np.searchsorted(members, query))
    drawn = int(random.integers(len(members) - 1))
    return members[drawn + (drawn >= place)]


class Judged:
    """A ranking or a search: what is relevant to a query is near it."""

    def __init__(self, judgements: pa.Table, collection: pa.Table, texts: TextIds, relevant_from: int) -> None:
        """Of the rows of `judgements` and `collections` of one task."""
        queries, candidates = (texts.of(judgements[name]) for name in ("query", "candidate"))
        is_near = judgements["relevance"].to_numpy() >= relevant_from
        usable = (queries != NO_TEXT) & (candidates != NO_TEXT) & (queries != candidates)
        self.near, self.far = (
            _lists(queries[usable & chosen], candidates[usable & chosen]) for chosen in (is_near, ~is_near)
        )
        of_all = np.unique(np.concatenate([candidates[usable], texts.of(collection["document"])]))
        self.others = of_all[of_all != NO_TEXT]

    @property
    def queries(self) -> Ids:
        """The queries to which something is relevant."""
        return np.array(sorted(self.near), dtype=np.int64)

    def drawn(self, query: int, random: np.random.Generator, count: int) -> list[Pair]:
        """Pairs of what is relevant and what is not: each document once before any is drawn again."""
        near = self.near[query]
        far = [each for each in self.far.get(query, []) if each not in set(near)]
        if not far:
            drawn = self.others[random.integers(len(self.others), size=TRIES)].tolist()
            far = [each for each in dict.fromkeys(drawn) if each not in {query, *near}]
        if not far:
            return []
        of_each = (_in_turn(random.permutation(documents), count) for documents in (near, far))
        return list(zip(*of_each, strict=True))


def _lists(keys: Ids, values: Ids) -> dict[int, list[int]]:
    """The values of each key, rising and each once."""
    found: dict[int, list[int]] = {}
    for key, value in np.unique(np.stack([keys, values], axis=1), axis=0).tolist():
        found.setdefault(key, []).append(value)
    return found


def _in_turn(documents: NDArray[np.int64], count: int) -> list[int]:
    turns: list[int] = np.resize(documents, count).tolist()
    return turns


def _chosen(queries: Ids, number: int, seed: int, task: str) -> Ids:
    """So many of the queries of a task at random, rising."""
    order = np.argsort(priorities(seed, f"queries of {task}", queries), kind="stable")
    return np.sort(queries[order[:number]])


def _rows(triplets: NDArray[np.int64], seed: int, validation: float) -> pa.Table:
    """Triplets as examples, each once, with the split of their queries."""
    queries, *others = triplets.T
    drawn = priorities(seed, "validation of an oracle", queries)
    validates = drawn < np.uint64(min(validation * 2.0**64, 2.0**64 - 2**12))
    starts = pa.array(np.arange(len(triplets) + 1), pa.int32())
    lists = {
        name: pa.ListArray.from_arrays(starts, pa.array(column)) for name, column in zip(LISTS, others, strict=True)
    }
    splits = pa.array(np.where(validates, "validation", "train"), pa.string())
    columns = {"query": queries, "number": np.zeros(len(queries), dtype=np.int32), "split": splits}
    return each_once(pa.table({**columns, **lists}))


def _texts(documents: Path, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The texts of the documents that rows name."""
    lists = (rows[name].combine_chunks().flatten().to_numpy() for name in LISTS)
    named = np.unique(np.concatenate([rows["query"].to_numpy(), *lists]))
    for batch in read_documents(documents):
        for is_query in (False, True):
            of_kind = batch.filter(pc.equal(batch["is_query"], is_query))
            titles, abstracts = (of_kind[name].to_pylist() for name in ("title", "abstract"))
            texts = texts_table(titles, abstracts, is_query=is_query)
            yield from texts.filter(pa.array(np.isin(texts["text"].to_numpy(), named))).to_batches()
