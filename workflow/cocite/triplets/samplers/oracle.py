"""The sampler `oracle`: triplets made from a benchmark's own answers, an upper bound of the scores on it.

SciNCL's appendix has such a bound. It is made from the tables of a prepared benchmark. In a classification, papers that
share a class are near, and papers that share none are far. In a ranking or a search, documents judged relevant to a
query are near it, and those judged not relevant are far; if there are none, documents without a judgement replace them.
Tasks of other kinds are counted and left out.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Count, Refers, SomeNames, Whole, all_parts
from cocite.config.mining import sets_behind_model
from cocite.config.sampler import Sampler
from cocite.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

    TextIds = Callable[[pa.ChunkedArray], Ids]
    """From names of documents to the ids of their texts; NO_TEXT if there is none."""

CALLED = "oracle"  # part of the names of everything that learns from an oracle, so that every table shows it
ANSWERED = ("binary", "multiclass", "multilabel", "ranking", "clicks", "search", "retrieval")
"""Kinds of tasks whose answers group documents."""
TRIES = 64  # documents that are drawn before a query is given up for which none is far

Pair = tuple[int, int]  # a document that is near a query, and one that is far from it


class Oracle(Sampler):
    """The answers of a benchmark: documents of one class, or relevant to a query, are near; others are far.

    Models trained on it give an upper bound for that benchmark, not a result. Each task has the same number of queries.
    Documents are separate texts, even if the corpus has papers with these titles.
    """

    sampler: Literal["oracle"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True
    benchmark: Annotated[str, Refers("benchmarks")]
    """Name of the benchmark that is given away."""
    tasks: SomeNames | None = None
    """Names of its tasks that are; left out, all that have classes or judgements."""
    per_query: Count = 5
    """Triplets of each query and task."""
    queries: Count | None = None
    """Largest number of queries per task, drawn at random. Default: that of the task with the fewest."""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the queries that validate."""

    @property
    def gives_away(self) -> str:
        """The benchmark whose answers it takes."""
        return self.benchmark

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Tasks without answers; and a name or a group that would hide what it is."""
        name = key.removeprefix("triplets.")
        there = config.benchmarks[self.benchmark].scored_tasks
        answered = [task.name for task in there if task.kind in ANSWERED]
        if not answered:
            yield f"{key}.benchmark: {self.benchmark} has no task with classes or judgements, and so no answers."
        for task in self.tasks or ():
            if task not in answered:
                yield f"{key}.tasks names {task!r}; tasks of {self.benchmark} with answers are {', '.join(answered)}."
        sets = config.triplets

        def with_parts(each: str) -> tuple[str, ...]:
            return (each, *all_parts(each, lambda part: sets[part].parts))

        def unnamed(section: str, names: list[str]) -> Iterator[str]:
            for each in (each for each in names if CALLED not in each):
                called = f"call it {each}-{CALLED}, or anything with {CALLED} in it, so that every table shows it"
                yield f"{section}.{each} learns from the answers of a benchmark; {called}."

        made_of_it = [each for each in sets if name in with_parts(each)]
        groups = {sets[made].group for made in made_of_it}
        yield from unnamed("triplets", made_of_it)
        for each, other in sets.items():
            if other.group in groups and not any(sets[part].gives_away for part in with_parts(each)):
                why = "is that of an oracle, and the sets of a group share a validation set"
                yield f"triplets.{each}.group ({other.group}) {why}; give {name} a separate group."
        learn = [each for each in config.models if name in sets_behind_model(each, config, with_groups=False)]
        yield from unnamed("models", learn)

    def sources(self, name: str, plan: Any) -> list[str]:
        """The tables of the benchmark that have its documents and answers."""
        tables = ("documents", "labels", "judgements", "collections")
        return [f"<results>/evaluation/{self.benchmark}/{table}.parquet" for table in tables]

    def sample(self, block: "Block") -> "Sampled":
        """Triplets of the benchmark's documents, from its prepared tables.

        Raises `InputError` if these are missing, or have no answers.
        """
        import numpy as np
        import pyarrow as pa

        from cocite.core.randomness import generator, priorities
        from cocite.triplets.sampled import Sampled, as_lists, drawn_splits, each_once

        counts: Counter[str] = Counter()
        [documents] = block.files("documents")
        answers = dict(_answers(block, _text_ids(documents, counts), self.tasks, counts))
        if not answers:
            raise InputError(f"{documents.parent}: the benchmark has no labels and no judgements.")
        number = min(len(each.queries) for each in answers.values()) if self.queries is None else self.queries
        found: list[tuple[int, int, int]] = []
        for task, each in answers.items():
            order = np.argsort(priorities(block.seed, f"queries of {task}", each.queries), kind="stable")
            chosen = np.sort(each.queries[order[:number]]).tolist()
            counts[f"queries of {task} beyond those of each task"] += len(each.queries) - len(chosen)
            for query in chosen:
                pairs = each.drawn(query, generator(block.seed, "oracle", task, query), self.per_query)
                counts[f"queries of {task} for which no document is far"] += not pairs
                found += [(query, near, far) for near, far in pairs]
        queries, near, far = np.array(found, dtype=np.int64).reshape(-1, 3).T
        splits = drawn_splits(block.seed, "validation of an oracle", queries, self.validation)
        numbers, ones = np.zeros(len(found), dtype=np.int32), np.ones(len(found), int)
        columns = {"positives": as_lists(near, ones), "negatives": as_lists(far, ones)}
        rows = each_once(pa.table({"query": queries, "number": numbers, "split": splits, **columns}))
        return Sampled(rows=rows, omissions=dict(counts), texts=_texts(documents, rows))


def _text_ids(documents: Path, counts: Counter[str]) -> "TextIds":
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from cocite.core.tables.papers import NO_TEXT, text_ids_of

    parts = zip(*[(pa.array([], pa.string()), np.empty(0, np.int64)), *text_ids_of(documents)], strict=True)
    names, ids = pa.concat_arrays(next(parts)), np.append(np.concatenate(next(parts)), NO_TEXT)
    counts["documents without a text"] += int(np.count_nonzero(ids[:-1] == NO_TEXT))
    return lambda asked: ids[pc.index_in(asked, value_set=names).fill_null(len(names)).to_numpy()]


def _answers(
    block: "Block", ids_of: "TextIds", tasks: Sequence[str] | None, counts: Counter[str]
) -> Iterator[tuple[str, "Classes | Judged"]]:
    """Each task that has answers for at least one query."""
    import pyarrow.compute as pc

    from cocite.config.benchmarks import declared
    from cocite.core.tables.files import read_table

    tables = [read_table(block.files(name)[0], name) for name in ("labels", "judgements", "collections")]
    there = sorted({name for table in tables[:2] for name in table["task"].unique().to_pylist()})
    for name in there if tasks is None else tasks:
        task = declared(name)
        if task.kind not in ANSWERED:
            counts[f"tasks that say of no two documents that they belong together: {name}"] += 1
            continue
        labels, judged, collection = (table.filter(pc.equal(table["task"], name)) for table in tables)
        of_judged = judged, collection, ids_of, task.relevant_from
        answers = Classes(labels, ids_of) if task.is_supervised else Judged(*of_judged)
        if len(answers.queries):
            yield name, answers
        else:
            counts[f"tasks without a query that has answers: {name}"] += 1


class Classes:
    """A classification: documents are near that share a class."""

    def __init__(self, labels: "pa.Table", ids_of: "TextIds") -> None:
        """Of the rows of `labels` of one task; a document may have several classes."""
        import numpy as np

        from cocite.core.tables.papers import NO_TEXT

        classes, members = defaultdict[int, set[str]](set), defaultdict[str, list[int]](list)
        for document, names in zip(ids_of(labels["document"]).tolist(), labels["labels"].to_pylist(), strict=True):
            if document != NO_TEXT:
                classes[document].update(names)
        for document in sorted(classes):
            for name in classes[document]:
                members[name].append(document)
        self.documents, self.classes, self.members = np.array(sorted(classes), dtype=np.int64), classes, members
        shares = [bool(self._shared(document)) for document in self.documents.tolist()]
        self.queries = self.documents[np.array(shares, dtype=bool)]
        """The documents whose class other documents share."""

    def _shared(self, document: int) -> list[str]:
        return [name for name in sorted(self.classes[document]) if len(self.members[name]) > 1]

    def drawn(self, query: int, random: "np.random.Generator", count: int) -> list[Pair]:
        """Pairs of a document of one of its classes, each as likely, and one of none of them."""
        own, classes = self.classes[query], self._shared(query)
        pairs = []
        for _ in range(count):
            members = self.members[classes[random.integers(len(classes))]]
            place = int(random.integers(len(members) - 1))
            near = members[place + (place >= bisect_left(members, query))]
            drawn = self.documents[random.integers(len(self.documents), size=TRIES)].tolist()
            pairs += [(near, far) for far in drawn if own.isdisjoint(self.classes[far])][:1]
        return pairs


class Judged:
    """A ranking or a search: documents relevant to a query are near it."""

    def __init__(self, judgements: "pa.Table", collection: "pa.Table", ids_of: "TextIds", relevant_from: int) -> None:
        """Of the rows of `judgements` and `collections` of one task."""
        import numpy as np

        from cocite.core.tables.papers import NO_TEXT
        from cocite.core.written_ids import distinct

        queries, candidates = (ids_of(judgements[name]) for name in ("query", "candidate"))
        usable = (queries != NO_TEXT) & (candidates != NO_TEXT) & (queries != candidates)
        rows = [queries, candidates, judgements["relevance"].to_numpy() >= relevant_from]
        self.far, self.near = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for query, candidate, is_near in np.unique(np.stack(rows, axis=1)[usable], axis=0).tolist():
            (self.near if is_near else self.far)[query].append(candidate)
        self.queries = np.array(sorted(self.near), dtype=np.int64)
        of_all = distinct(candidates[usable], ids_of(collection["document"]))
        self.others = of_all[of_all != NO_TEXT]

    def drawn(self, query: int, random: "np.random.Generator", count: int) -> list[Pair]:
        """Pairs of what is relevant and what is not: each document once before any is drawn again."""
        near = self.near[query]
        far = [each for each in self.far[query] if each not in near]
        if not far:
            drawn = self.others[random.integers(len(self.others), size=TRIES)].tolist()
            far = [each for each in dict.fromkeys(drawn) if each not in {query, *near}]
        if not far:
            return []
        in_turn = (cycle(random.permutation(documents).tolist()) for documents in (near, far))
        return list(islice(zip(*in_turn, strict=False), count))


def _texts(documents: Path, rows: "pa.Table") -> Iterator["pa.RecordBatch"]:
    """The texts of the documents that rows name."""
    import pyarrow.compute as pc

    from cocite.core.tables.papers import read_documents
    from cocite.triplets.sampled import documents_of
    from cocite.triplets.texts import texts_table

    named = documents_of(rows)
    for batch in read_documents(documents):
        for is_query in (False, True):
            of_kind = batch.filter(pc.equal(batch["is_query"], is_query))
            titles, abstracts = (of_kind[name].to_pylist() for name in ("title", "abstract"))
            yield from texts_table(titles, abstracts, is_query=is_query, among=named).to_batches()
