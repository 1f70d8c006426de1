"""What an encoder learns from: examples over tokenised documents, and the graph embeddings that teach it.

An example is a query with some positives and negatives and, if the set has them, an aspect and the kinds of the
negatives; a triplet is the smallest one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import read_table, vectors_of_papers
from cocite.core.written_ids import distinct
from cocite.encoder.documents import Documents, Numbers, Spans, count_within, joined_documents, open_tokens

Names = NDArray[np.str_]
WHOLE = 3
"""Stands for all roles of a paper, which is one document wherever it is whole; the roles are numbered from 0."""


@dataclass(frozen=True, kw_only=True)
class ExampleFiles:
    """The files of a set of examples."""

    table: Path
    """The table training_examples or validation_examples."""
    tokens: Path
    """The folder of the tokens of their documents, which `tokenise_table` wrote."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """Documents of each example, one example after the other."""

    documents: Numbers
    starts: Numbers
    """The start of those of each example, and the end of the last."""

    @property
    def owners(self) -> Numbers:
        """The example that each document is of."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def places_of(self, examples: Numbers) -> tuple[Numbers, Numbers]:
        """The example, by its place in `examples`, and the place of each document of some examples."""
        sizes = self.starts[examples + 1] - self.starts[examples]
        owner = np.repeat(np.arange(len(examples)), sizes)
        return owner, self.starts[examples][owner] + count_within(sizes)

    def of(self, examples: Numbers) -> "Links":
        """Those of some examples."""
        starts = np.append(0, np.cumsum(self.starts[examples + 1] - self.starts[examples]))
        return Links(documents=self.documents[self.places_of(examples)[1]], starts=starts)

    def only(self, is_kept: NDArray[np.bool_]) -> "Links":
        """Those whose documents are kept."""
        before = np.append(0, np.cumsum(is_kept))
        return Links(documents=self.documents[is_kept], starts=before[self.starts])


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """The vectors of documents in a graph embedding."""

    rows: Numbers
    """The row of each document's vector; −1 if it has none, as texts that are no papers."""
    vectors: NDArray[np.float32]

    @property
    def untaught(self) -> int:
        """Number of documents without a vector."""
        return int(np.count_nonzero(self.rows < 0))


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """Examples over numbered documents."""

    queries: Numbers
    """The document of each example's query."""
    positives: Links
    negatives: Links
    ids: Numbers
    """Corpus id of each document; they are numbered in the order of their first occurrence."""
    objectives: Numbers | None = None
    """The objective of each example; None if there is one for all."""

    @cached_property
    def occurrences(self) -> dict[str, Numbers]:
        """By role, how often the paper of each document is one of an objective's: objectives × documents."""
        papers, paper_of = np.unique(self.ids, return_inverse=True)
        objectives = 1 if self.objectives is None else 1 + int(self.objectives.max(initial=0))
        counts = {}
        for role, links in (("positives", self.positives), ("negatives", self.negatives)):
            objective = 0 if self.objectives is None else self.objectives[links.owners].astype(np.int64)
            keys, sizes = objective * len(papers) + paper_of[links.documents], (objectives, len(papers))
            counts[role] = np.bincount(keys, minlength=objectives * len(papers)).reshape(sizes)[:, paper_of]
        return counts


@dataclass(frozen=True, kw_only=True)
class Examples(Numbered):
    """Examples over tokenised documents."""

    documents: Documents
    aspects: Names | None = None
    """The aspect of each example, empty for none; None if the set has no aspects."""
    kinds: Names | None = None
    """The kind of each negative, likewise."""
    teachers: Mapping[str, Teacher] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.queries)

    def with_negatives(self, kinds: Sequence[str]) -> "Examples":
        """The examples with only negatives of these kinds. Raises `InputError` if they have no kinds."""
        if self.kinds is None:
            raise InputError(f"An objective asks for negatives that are {kinds[0]}, and the examples tell no kinds.")
        is_kept = np.isin(self.kinds, kinds)
        return replace(self, negatives=self.negatives.only(is_kept), kinds=self.kinds[is_kept])


def numbered_examples(table: pa.Table, path: Path, frame: tuple[int, int] = (1, 1)) -> tuple[Numbered, Spans | None]:
    """The examples of a table from `path`, and the spans of their documents, with the frame's head and tail; None if
    all are whole. Raises `InputError` if there are no examples."""
    if len(table) == 0:
        raise InputError(f"{path}: has no examples.")
    queries = table["query"].to_numpy()
    positives, negatives = (
        Links(documents=lists.flatten().to_numpy(), starts=np.append(0, np.cumsum(lists.value_lengths().to_numpy())))
        for lists in (table[name].combine_chunks() for name in ("positives", "negatives"))
    )
    by_role = (queries, positives.documents, negatives.documents)
    papers = distinct(*map(distinct, by_role))
    keys: list[NDArray[Any]] = [np.searchsorted(papers, ids).astype(np.int32) for ids in by_role]  # they are many
    bounds = None
    if "shortest_span" in table.column_names:
        named = (("shortest_span", 0), ("longest_span", np.iinfo(np.int32).max))
        bounds = [table[name].fill_null(none).to_numpy().astype(np.int64) for name, none in named]
        examples = np.arange(len(table)), positives.owners, negatives.owners
        roles = [np.where(bounds[0][of] > 0, role, WHOLE) for role, of in enumerate(examples)]
        keys = [key * (WHOLE + 1) + role for key, role in zip(keys, roles, strict=True)]
    # Of each example its query comes first, then its positives and its negatives.
    begins = np.arange(len(table)) + positives.starts[:-1] + negatives.starts[:-1]
    first = _first_places(keys, begins, positives, negatives)
    found = np.flatnonzero(first < sum(map(len, keys)))
    found = found[np.argsort(first[found])]
    places = first[found]
    number: NDArray[Any] = np.empty(len(first), dtype=np.int32)
    number[found] = np.arange(len(found))
    query, positive, negative = (number[key] for key in keys)
    numbered = Numbered(
        queries=query,
        positives=replace(positives, documents=positive),
        negatives=replace(negatives, documents=negative),
        ids=papers[found if bounds is None else found // (WHOLE + 1)],
    )
    if bounds is None:
        return numbered, None
    example = np.searchsorted(begins, places, side="right") - 1
    after_query = places - begins[example]
    role = (after_query > 0).astype(np.int64) + (after_query > np.diff(positives.starts)[example])
    shortest, longest = (bound[example] for bound in bounds)
    head, tail = frame
    return numbered, Spans(shortest=shortest, longest=longest, papers=numbered.ids, roles=role, head=head, tail=tail)


def _first_places(keys: Sequence[Numbers], begins: Numbers, positives: Links, negatives: Links) -> Numbers:
    """The first place of each key among the documents of all examples; their number for keys that do not occur."""
    first = np.full(1 + max(int(key.max(initial=-1)) for key in keys), sum(map(len, keys)))
    np.minimum.at(first, keys[0], begins)
    for key, links, before in ((keys[1], positives, 1), (keys[2], negatives, 1 + np.diff(positives.starts))):
        places = np.repeat(begins + before - links.starts[:-1], np.diff(links.starts))
        places += np.arange(len(key))
        np.minimum.at(first, key, places)
    return first


def open_examples(files: ExampleFiles, frame: tuple[int, int] = (1, 1)) -> Examples:
    """The examples of a table (see `numbered_examples`). Raises `InputError` if a paper has no tokens."""
    table = read_table(files.table, "training_examples")
    numbered, spans = numbered_examples(table, files.table, frame)
    there, documents = open_tokens(files.tokens)
    order = np.argsort(there)
    row = order[np.minimum(np.searchsorted(there, numbered.ids, sorter=order), len(there) - 1)]
    if len(missing := numbered.ids[there[row] != numbered.ids]):
        raise InputError(f"{files.tokens}: has no tokens of paper {missing[0]}, nor of {len(missing) - 1:,} others.")
    return Examples(
        **vars(numbered),
        documents=replace(documents.chosen(row), spans=spans),
        aspects=_names(table["aspect"]) if "aspect" in table.column_names else None,
        kinds=_kinds(table["negative_kinds"], numbered.negatives) if "negative_kinds" in table.column_names else None,
    )


def _names(column: pa.ChunkedArray) -> Names:
    return column.fill_null("").to_numpy().astype(np.str_)


def _kinds(kinds: pa.ChunkedArray, negatives: Links) -> Names:
    """The kinds of all negatives; empty for examples without, which came as triplets."""
    is_named, values = np.repeat(kinds.is_valid().to_numpy(), np.diff(negatives.starts)), _names(pc.list_flatten(kinds))
    of_negatives = np.full(len(is_named), "", dtype=values.dtype)
    of_negatives[is_named] = values
    return of_negatives


def joined_examples(parts: Sequence[Examples]) -> Examples:
    """The examples of several objectives, one part after the other; a whole document of several is one."""
    if len(parts) == 1:
        return parts[0]
    documents = joined_documents([part.documents for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    number = np.arange(len(ids), dtype=np.int32)
    whole = number if documents.spans is None else np.flatnonzero(documents.spans.shortest == 0)
    _, first, of_each = np.unique(ids[whole], return_index=True, return_inverse=True)
    number[whole] = whole[first][of_each]
    before = np.cumsum([0, *(len(part.documents) for part in parts[:-1])], dtype=np.int32)

    def joined(numbers: Sequence[Numbers]) -> Numbers:
        return number[np.concatenate([some + start for some, start in zip(numbers, before, strict=True)])]

    def joined_links(links: Sequence[Links]) -> Links:
        sizes = np.concatenate([np.diff(each.starts) for each in links])
        return Links(documents=joined([each.documents for each in links]), starts=np.append(0, np.cumsum(sizes)))

    def joined_names(names: Sequence[tuple[Names | None, int]]) -> Names | None:
        filled = [np.full(count, "") if each is None else each for each, count in names]
        return None if all(each is None for each, _ in names) else np.concatenate(filled)

    return Examples(
        queries=joined([part.queries for part in parts]),
        positives=joined_links([part.positives for part in parts]),
        negatives=joined_links([part.negatives for part in parts]),
        documents=documents,
        ids=ids,
        aspects=joined_names([(part.aspects, len(part)) for part in parts]),
        kinds=joined_names([(part.kinds, len(part.negatives.documents)) for part in parts]),
        objectives=np.repeat(np.arange(len(parts), dtype=np.int8), [len(part) for part in parts]),
    )


def open_teachers(path: Path, sets: Sequence[Numbers]) -> list[Teacher]:
    """A teacher for each set of documents, by their ids. Raises `InputError` if it has none of the first set."""
    wanted = distinct(*sets)
    vectors, is_there = vectors_of_papers(path, "graph_embeddings", wanted)
    row_of, of_taught = np.where(is_there, np.cumsum(is_there) - 1, -1), vectors[is_there]
    teachers = [Teacher(rows=row_of[np.searchsorted(wanted, ids)], vectors=of_taught) for ids in sets]
    if teachers[0].untaught == len(sets[0]):
        missing = f"has no vector of any of the {len(sets[0]):,} documents that are learned from"
        raise InputError(f"{path}: {missing}; a teacher is an embedding of a graph over these papers.")
    return teachers


def open_sets(
    training: Sequence[ExampleFiles],
    validation: Sequence[ExampleFiles],
    teachers: Mapping[str, Path],
    settings: TrainingSettings,
    frame: tuple[int, int],
) -> tuple[Examples, dict[ExampleFiles, Examples]]:
    """The examples to learn from, of all objectives, and those to validate on, which objectives may share."""
    learned = joined_examples([open_examples(files, frame) for files in training])
    if all(each.negatives for each in settings.comparisons):  # other negatives are not embedded
        learned = learned.with_negatives([kind for each in settings.comparisons for kind in each.negatives or ()])
    opened = {files: open_examples(files, frame) for files in validation}
    sets = [learned, *opened.values()]
    for name in settings.teachers:
        known = open_teachers(teachers[name], [each.ids for each in sets])
        pairs = zip(sets, known, strict=True)
        sets = [replace(each, teachers={**each.teachers, name: teacher}) for each, teacher in pairs]
        report(f"The teacher {name} has no vectors of {known[0].untaught:,} of {len(sets[0].ids):,} documents.")
    return sets[0], dict(zip(opened, sets[1:], strict=True))


def describe_missing_teacher_vectors(training: Examples, validation: Collection[Examples]) -> dict[str, str]:
    """How many documents each teacher has no vectors of, in words."""
    said = {}
    for name, teacher in training.teachers.items():
        untaught = sum(each.teachers[name].untaught for each in validation)
        of_training = f"no vector of {teacher.untaught:,} of {len(training.ids):,} training documents"
        of_validation = f"of {untaught:,} of {sum(len(each.ids) for each in validation):,} validation documents"
        said[name] = f"{of_training} and {of_validation}, which are left out of its pairs"
    return said
