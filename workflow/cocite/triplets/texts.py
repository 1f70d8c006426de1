"""Sets of triplets as a training reads them: examples in order, and the documents that these name, each once.

All sets of a group are cut to the size of its smallest (CoCite, 2024), counted in the documents that the examples name,
and share the validation examples of all. Queries are in random order, by hashes, and so are the examples of a query,
which stay together. Larger sets are first dealt out to files by these hashes, and each file is ordered by itself.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.core.atomic import atomic_path
from cocite.core.database import spill_folder
from cocite.core.errors import InputError
from cocite.core.options import Output, Papers, Seed, Threads
from cocite.core.randomness import priorities
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import checked_files, open_table, table_in, write_table
from cocite.core.written_ids import Ids, distinct, look_up, text_ids
from cocite.triplets.sampled import LISTS, ROLES, as_examples, documents_of, first_of_each

SCHEMA = empty_schema(TABLES["sampled_texts"])
USER_SUPPLIED_QUERIES = pa.schema([("corpusid", pa.int64()), ("split", pa.string())])
RANGE_BITS = 6
ID_BITS = 62  # negative ids are between −2⁶² and −1
SHUFFLED_AT_ONCE = 1 << 22  # ids and other values of the examples that are ordered in memory
ROWS_AT_ONCE = 50_000  # texts that are found together, and those of a row group
PAPERS_IN_MEMORY = 5_000  # papers that each thread reads at once
DOCUMENTS = pa.schema(
    [("corpusid", pa.int64()), ("title", pa.string()), ("abstract", pa.string()), ("is_query", pa.bool_())]
)
TEXT_COLUMNS = DOCUMENTS.names[:3]
ORDER = "order"  # the column of the hashes that the examples of a query are ordered by


def materialise(
    group: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Tables triplets or sampled_examples of all sets that are compared, and sampled_texts of those whose "
            "documents are written."
        ),
    ],
    *,
    triplets: Annotated[Path | None, typer.Option(help="The sampled set whose training examples are written.")] = None,
    papers: Papers,
    seed: Seed,
    threads: Threads,
    output: Output,
    documents: Annotated[Path, typer.Option(help="Folder of the documents to write, each with its texts once.")],
) -> None:
    """Write the training examples of one set, or the validation examples of all sets of a group, and their documents.

    The training examples are cut to the smallest set of the group. Without `--triplets`, the validation examples are
    written.
    """
    use = "training" if triplets else "validation"
    texts = [path for path in group if table_in(path) == "sampled_texts"]
    sets = [path for path in group if path not in texts]
    # The documents so far, and those of further parts, which are united with them once they are more.
    named = [np.empty(0, dtype=np.int64)]

    def noted(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
        for rows in parts:
            named.append(documents_of(rows))
            if sum(map(len, named[1:])) > len(named[0]):
                named[:] = [distinct(*named)]
            yield rows.drop_columns([ORDER])

    with spill_folder(output.parent) as spilled:
        make = partial(training_examples, triplets) if triplets else validation_examples
        parts = noted(make(sets, seed, Path(spilled)))
        first = next(parts)
        batches = (batch for rows in chain([first], parts) for batch in rows.to_batches(ROWS_AT_ONCE))
        write_table(output, f"{use}_examples", pa.RecordBatchReader.from_batches(first.schema, batches))
    write_documents(documents, f"{use}_documents", distinct(*named), papers, texts, threads=threads)


def training_examples(sampled: Path, group: Sequence[Path], seed: int, spill_to: Path) -> Iterator[pa.Table]:
    """The training examples of one set of a group, shuffled by query and cut to the size of the group's smallest. They
    come some at a time. Raises `InputError` if the smallest set has none."""
    smallest = _smallest(group, "train")
    return _cut(_read_split(sampled, "train", seed, _bits_for([sampled]), spill_to / "0"), smallest)


def validation_examples(group: Sequence[Path], seed: int, spill_to: Path) -> Iterator[pa.Table]:
    """The validation examples of all sets of a group, cut in the same way, each example once, shuffled by query. They
    come some at a time. Raises `InputError` if there is none."""
    smallest, bits = _smallest(group, "validation"), _bits_for(group)
    sets = [
        _cut(_read_split(path, "validation", seed, bits, spill_to / str(number)), smallest)
        for number, path in enumerate(group)
    ]
    for parts in zip(*sets, strict=True):  # the same ranges of queries
        rows = pa.concat_tables(parts, promote_options="default")
        yield _shuffled(rows.take(pa.array(first_of_each(rows))), seed)


def _smallest(group: Sequence[Path], split: str) -> int:
    """The number of documents that the examples of a group's smallest set name. Raises `InputError` if it is 0."""
    use, remedy = ("training", "smaller") if split == "train" else ("validation", "larger")
    sizes = []
    for path in group:
        if table_in(path) == "triplets":  # no ids are read for it
            sizes.append(len(ROLES) * sum(map(len, _rows_of(path, split, []))))
        else:
            sizes.append(sum(int(_sizes(rows).sum()) for rows in _rows_of(path, split, LISTS)))
        if sizes[-1] == 0:
            raise InputError(f"{path}: no {use} example; more query papers or a {remedy} queries.validation would do.")
    return min(sizes)


def _bits_for(group: Sequence[Path]) -> int:
    """How many leading bits tell apart the parts of the largest set that are shuffled one after the other."""
    most = 1  # values in all columns and their lists
    for footer in (open_table(path, table_in(path)).metadata for path in group):
        places = product(range(footer.num_row_groups), range(footer.num_columns))
        most = max(most, sum(footer.row_group(number).column(column).num_values for number, column in places))
    return max(0, math.ceil(math.log2(most / SHUFFLED_AT_ONCE)))


def _read_split(path: Path, split: str, seed: int, bits: int, spill_to: Path) -> Iterator[pa.Table]:
    """The examples of a split, shuffled by query: a table for each range of hashes that differ in so many bits."""
    are_triplets = table_in(path) == "triplets"
    name, keys = ("order of triplets", [*ROLES]) if are_triplets else ("order of examples", ["query", "number"])

    def read() -> Iterator[pa.Table]:
        for rows in _rows_of(path, split, keys if are_triplets else ["number", *TABLES["training_examples"].columns]):
            order = priorities(seed, name, *(rows[key].to_numpy().astype(np.int64) for key in keys))
            examples = as_examples(rows) if are_triplets else rows.drop_columns(["number"])
            yield examples.drop_columns(["split"]).append_column(ORDER, pa.array(order))

    if bits == 0:
        yield _shuffled(pa.concat_tables(read()).combine_chunks(), seed)
        return
    spill_to.mkdir()
    paths = [spill_to / str(number) for number in range(1 << bits)]
    _deal_out(read(), paths, lambda rows: _order_of_queries(rows, seed) >> np.uint64(64 - bits))
    for part in paths:
        yield _shuffled(_dealt(part), seed)
        part.unlink()


def _rows_of(path: Path, split: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    file = open_table(path, table_in(path))
    read = {"split", *columns}.intersection(file.schema_arrow.names)
    for batch in file.iter_batches(columns=sorted(read)):
        yield pa.Table.from_batches([batch.filter(pc.equal(batch["split"], split))])


def _sizes(rows: pa.Table) -> Ids:
    positives, negatives = (pc.list_value_length(rows[name]).to_numpy().astype(np.int64) for name in LISTS)
    return 1 + positives + negatives


def _cut(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """The first rows, up to this total number of documents; parts beyond are empty."""
    for rows in parts:
        ends = np.append(0, np.cumsum(_sizes(rows)))
        kept = int(np.searchsorted(ends, most, side="right")) - 1
        most = most - int(ends[-1]) if kept == len(rows) else 0
        yield rows.slice(0, kept)


def _order_of_queries(rows: pa.Table, seed: int) -> NDArray[np.uint64]:
    return priorities(seed, "order of queries", rows["query"].to_numpy())


def _shuffled(rows: pa.Table, seed: int) -> pa.Table:
    keys = {"order of queries": _order_of_queries(rows, seed), "query": rows["query"], ORDER: rows[ORDER]}
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]))


def write_documents(
    output: Path, table: str, wanted: Ids, papers: Path, texts: Sequence[Path] = (), *, threads: int
) -> None:
    """Write documents by their rising ids as the table training_documents or validation_documents: papers of the folder
    `papers`, whose buckets the table shares, and texts of the tables `sampled_texts` in `texts`, spread over the
    buckets evenly. Raises `InputError` if a paper has no text there, or a text is in none of the tables."""
    of_texts, of_papers = np.split(wanted, [np.searchsorted(wanted, 0)])
    found_texts, found = (np.zeros(len(ids), dtype=bool) for ids in (of_texts, of_papers))
    buckets, given = checked_files(papers, "papers"), ", ".join(map(str, texts)) or "none are given"
    shares = zip(*(np.array_split(some, len(buckets)) for some in (of_texts, found_texts)), strict=True)
    with atomic_path(output) as folder:
        folder.mkdir()

        def write(bucket: Path, share: tuple[Ids, NDArray[np.bool_]]) -> None:
            documents = _documents(of_papers, found, bucket)
            if len(of_texts):  # then every bucket has the column, even an empty one
                named = (batch.rename_columns(DOCUMENTS.names) for batch in find_texts(*share, texts))
                no_query = (batch.append_column("is_query", pa.array([False] * len(batch))) for batch in documents)
                both = (batch.cast(DOCUMENTS) for batch in chain(named, no_query))
                documents = pa.RecordBatchReader.from_batches(DOCUMENTS, both)
            write_table(folder / bucket.name, table, documents)

        with ThreadPoolExecutor(threads) as workers:
            list(workers.map(write, buckets, shares))
        for missing, what in (
            (of_texts[~found_texts], f"texts of the examples are in no table sampled_texts ({given})"),
            (of_papers[~found], f"papers of the triplets have neither title nor abstract in {papers}"),
        ):
            if len(missing):
                raise InputError(f"{len(missing):,} {what}, the first of them {missing[0]}.")


def _documents(wanted: Ids, found: NDArray[np.bool_], papers: Path) -> Iterator[pa.RecordBatch]:
    """The papers of a bucket that are wanted and have a text; their places in `found` become true."""
    if len(wanted) == 0:
        return
    file = open_table(papers, "papers")
    for batch in file.iter_batches(PAPERS_IN_MEMORY, columns=TEXT_COLUMNS, use_threads=False):
        has_text = pc.or_(*(pc.is_valid(batch.column(name)) for name in ("title", "abstract")))
        ids = batch.column("corpusid").to_numpy()
        place, is_wanted = look_up(wanted, ids)
        chosen = is_wanted & has_text.to_numpy(zero_copy_only=False)
        found[place[chosen]] = True
        yield batch.select(TEXT_COLUMNS).filter(pa.array(chosen))


def texts_table(
    titles: Sequence[str | None], abstracts: Sequence[str | None], *, is_query: bool, among: Ids | None = None
) -> pa.Table:
    """The rows of `sampled_texts` for some texts, in their order; if given, only those `among` these rising ids."""
    ids = text_ids(titles, abstracts, is_query=is_query)
    columns = [ids, titles, abstracts, np.full(len(titles), is_query)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    table = pa.table(arrays, SCHEMA.names)
    return table if among is None else table.filter(pa.array(look_up(among, ids)[1]))


def write_texts(output: Path, texts: Iterable[pa.RecordBatch]) -> int:
    """Write texts, each once, as the table `sampled_texts`; return how many there are. Ids are hashes, and so spread
    evenly: only the texts of one range of them are in memory."""
    with spill_folder(output.parent) as folder:
        paths = [Path(folder) / str(number) for number in range(1 << RANGE_BITS)]
        tables = (pa.Table.from_batches([batch.select(SCHEMA.names).cast(SCHEMA)]) for batch in texts)
        _deal_out(
            chain([SCHEMA.empty_table()], tables),
            paths,
            lambda rows: (rows["text"].to_numpy() + (1 << ID_BITS)) >> (ID_BITS - RANGE_BITS),
        )
        of_ranges = (_first_of_each(_dealt(path), "text").combine_chunks() for path in paths)
        batches = (batch for rows in of_ranges for batch in rows.to_batches(ROWS_AT_ONCE))
        return write_table(output, "sampled_texts", batches)


def _deal_out(tables: Iterator[pa.Table], paths: Sequence[Path], number_of: Callable[[pa.Table], NDArray[Any]]) -> None:
    """Write the rows of tables to the files that they are numbered for."""
    first = next(tables)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with ExitStack() as stack:
        files = [stack.enter_context(pa.ipc.new_stream(str(path), first.schema, options=options)) for path in paths]
        for some in chain([first], tables):
            numbers = number_of(some).astype(np.int64)
            order = np.argsort(numbers, kind="stable")
            ends = np.searchsorted(numbers[order], np.arange(len(files) + 1))
            for file, start, end in zip(files, ends[:-1], ends[1:], strict=True):
                if start < end:
                    file.write_table(some.take(pa.array(order[start:end])))


def _dealt(path: Path) -> pa.Table:
    with pa.ipc.open_stream(str(path)) as file:
        return file.read_all().combine_chunks()


def _first_of_each(rows: pa.Table, column: str) -> pa.Table:
    """The first of the rows with the same value in a column, in its order."""
    return rows.take(pa.array(np.unique(rows[column].to_numpy(), return_index=True)[1]))


def user_supplied_queries(sets: Sequence[Path]) -> pa.Table:
    """The queries of some sets that are texts: their ids, rising, and the split of each."""
    found = [USER_SUPPLIED_QUERIES.empty_table()]
    for path in sets:
        for batch in open_table(path, table_in(path)).iter_batches(columns=["query", "split"]):
            texts = pa.Table.from_batches([batch.filter(pc.less(batch["query"], 0))])
            found.append(texts.rename_columns(USER_SUPPLIED_QUERIES.names))
    return _first_of_each(pa.concat_tables(table.cast(USER_SUPPLIED_QUERIES) for table in found), "corpusid")


def find_texts(wanted: Ids, found: NDArray[np.bool_], files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The wanted texts, by their rising ids, from tables `sampled_texts`; their places in `found` become true."""
    opened = [open_table(path, "sampled_texts") for path in files]
    for first in range(0, len(wanted), ROWS_AT_ONCE):
        ids = wanted[first : first + ROWS_AT_ONCE]
        is_found = np.zeros(len(ids), dtype=bool)
        pieces = [SCHEMA.empty_table()]
        for file in opened:
            for number in range(file.num_row_groups):
                bounds = file.metadata.row_group(number).column(0).statistics
                if bounds.min <= ids[-1] and bounds.max >= ids[0]:
                    rows = file.read_row_group(number, SCHEMA.names)
                    place, is_asked = look_up(ids, rows["text"].to_numpy())
                    is_new = is_asked & ~is_found[place]
                    is_found[place[is_new]] = True
                    pieces.append(rows.filter(pa.array(is_new)).cast(SCHEMA))
        found[first : first + ROWS_AT_ONCE] = is_found
        yield from pa.concat_tables(pieces).sort_by("text").combine_chunks().to_batches()
