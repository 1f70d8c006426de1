"""Mine negatives: rank documents for each query of a set of examples, and write the best and the positives' scores.

In come a set (`triplets` or `sampled_examples`), the texts or the vectors of its papers and texts, and the documents
that are searched; out go `mined_candidates` and `mined_positives`. Queries are taken in groups that there is memory
for. A search that was killed resumes after the last finished group and, by vectors, where it stood in the next one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.entries import as_json
from cocite.config.mining import ByWords, Collection, SearchedDocuments
from cocite.config.settings import GivenAsJson
from cocite.core.checkpoints import open_whole, remove_state, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, id_set
from cocite.core.options import MemoryMb, Omissions, Papers, Queries, State, Threads
from cocite.core.progress import report
from cocite.core.tables.files import checked_files, read_table, table_in, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out
from cocite.core.written_ids import look_up
from cocite.neighbours.distances import FARTHEST, Metric, distances_in, numbers_in
from cocite.neighbours.pools import start_workers
from cocite.neighbours.query_groups import RESERVED_MB, Checkpoint, open_search
from cocite.neighbours.ranking import Asked, Ranking, VectorRanking, scores_of
from cocite.neighbours.vectors import Documents, VectorFiles, papers_with_text

TABLES_OF_VECTORS = ("paper_embeddings", "text_embeddings")
"""The tables whose vectors are searched; the first column of each has the ids."""
SHORT = "candidates, up to the last rank of each query, that there are no documents for"


def mine(
    examples: Annotated[Path, typer.Argument(help="Table triplets or sampled_examples: queries and positives.")],
    files: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Tables paper_embeddings and text_embeddings, none for BM25; and sampled_texts, of a set that brings "
            "texts."
        ),
    ] = (),
    *,
    papers: Papers,
    queries: Queries,
    settings: GivenAsJson[SearchedDocuments],
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    candidates: Annotated[Path, typer.Option(help="Table mined_candidates to write.")],
    positives: Annotated[Path, typer.Option(help="Table mined_positives to write.")],
    omissions: Omissions,
) -> None:
    """Write the tables `mined_candidates` and `mined_positives` of a set, and what is missing, by reason.

    Resumes from what `state` holds, if it belongs to the same search, and removes it at the end. Raises `InputError`
    where a query or a positive has no text or vector, or there is nothing to search.
    """
    tables = {path: table_in(path) for path in files}
    vectors = [path for path in files if tables[path] in TABLES_OF_VECTORS]
    texts = [path for path in files if path not in vectors]
    if other := next((path for path in texts if tables[path] != "sampled_texts"), None):
        raise InputError(f"{other}: is none of the tables {', '.join(TABLES_OF_VECTORS)} and sampled_texts.")
    asked = read_asked(examples)
    documents = read_documents(settings.collection, papers, queries, texts)
    buckets = checked_files(papers, "papers")
    ranking = _ranking(settings, documents, vectors, [*([] if settings.collection == "texts" else buckets), *texts])
    last = settings.ranks[1]
    k = min(last + asked.most_positives, documents.size)
    depends_on = {**as_json(settings), "inputs": sampled_fingerprint([examples, *buckets, queries, *vectors, *texts])}
    words = state.with_name(f"{state.name}-words")
    with start_workers(threads) as workers:
        left_mb = memory_mb - RESERVED_MB - documents.held_mb
        left_mb -= ranking.prepare(words, workers, left_mb)
        of_query = ranking.bytes_of_query(k, len(asked.positives) / len(asked.queries))
        size = open_search(state, depends_on, max(1, int(left_mb * 1e6 / of_query)))
        groups = [asked.slice(start, start + size) for start in range(0, len(asked.queries), size)]
        written = [state / "groups" / f"{number}.npz" for number in range(len(groups))]
        for number, (group, file) in enumerate(zip(groups, written, strict=True)):
            if not file.exists():
                report(f"group {number + 1} of {len(groups)}")
                ranked = ranking.rank(group, k, workers, Checkpoint(state / "going.npz", number))
                with open_whole(file) as opened:
                    np.savez(opened, **ranked._asdict())
    found = list(zip(groups, written, strict=True))
    rows = write_table(candidates, "mined_candidates", _candidates(found, documents, ranking.metric, last))
    write_table(positives, "mined_positives", _positives(found))
    write_omissions(omissions, {SHORT: len(asked.queries) * last - rows})
    remove_state(state)
    remove_state(words)


def read_documents(collection: Collection, papers: Path, queries: Path, texts: Sequence[Path]) -> Documents:
    """The documents of a collection: papers with text that are not kept out, texts that are no queries, or both.

    `papers` is the folder of the table papers, `texts` are tables `sampled_texts`. Raises `InputError` where there are
    no documents.
    """
    listed, brought = id_set(()), NO_IDS
    if collection != "texts":
        listed = id_set(papers_with_text(papers), without=read_kept_out(queries)["corpusid"].to_numpy())
    if collection != "papers":
        tables = [read_table(path, "sampled_texts", ["text", "is_query"]) for path in texts]
        each = [table["text"].filter(pc.invert(table["is_query"])).to_numpy() for table in tables]
        brought = np.unique(np.concatenate([NO_IDS, *each]))
    documents = Documents(papers=listed, texts=brought)
    if documents.size == 0:
        where = "the set brings no documents" if collection == "texts" else f"{papers} has no paper with text"
        raise InputError(f"There is nothing to mine negatives among: {where}.")
    return documents


def read_asked(examples: Path) -> Asked:
    """The queries of a set of triplets or examples, and the distinct positives of each."""
    table = table_in(examples)
    if table not in ("triplets", "sampled_examples"):
        raise InputError(f"{examples}: is neither the table triplets nor sampled_examples.")
    name = "positive" if table == "triplets" else "positives"
    read = read_table(examples, table, ["query", name])
    queries, positives = read["query"].to_numpy(), read[name]
    if table == "sampled_examples":
        lists = positives.combine_chunks()
        queries, positives = queries[pc.list_parent_indices(lists).to_numpy()], lists.flatten()
    pairs = np.unique(np.stack([queries, positives.to_numpy()]), axis=1)
    asked, starts = np.unique(pairs[0], return_index=True)
    if len(asked) == 0:
        raise InputError(f"{examples}: has no examples to mine negatives for.")
    return Asked(asked, pairs[1], np.append(starts, pairs.shape[1]))


def _ranking(
    settings: SearchedDocuments, documents: Documents, vectors: Sequence[Path], texts: Sequence[Path]
) -> Ranking:
    if (settings.by.kind == "bm25") == bool(vectors):
        needs = "bm25 takes no vectors" if vectors else f"{settings.by.kind} needs vectors"
        raise InputError(f"by is {settings.by.kind}: {needs}.")
    if isinstance(settings.by, ByWords):
        from cocite.neighbours.word_ranking import WordRanking

        return WordRanking(texts, documents)
    return VectorRanking(VectorFiles(vectors, documents), Metric[settings.by.metric.upper()])


def _candidates(
    found: Sequence[tuple[Asked, Path]], documents: Documents, metric: Metric, last: int
) -> Iterator[pa.RecordBatch]:
    """The rows of `mined_candidates`: the best documents that are no positives, up to the last rank."""
    for group, file in found:
        with np.load(file) as ranked:
            keys, likeness = ranked["keys"], ranked["likeness"]
        places, columns = np.nonzero(keys != FARTHEST)
        chosen = keys[places, columns]
        ids = documents.ids_of(numbers_in(chosen))
        # Positives are left out. Both sides are pairs of small numbers, so that one number can stand for a pair.
        named = np.unique(group.positives)
        of_documents, is_named = look_up(named, ids)
        pairs = group.query_of_positive * len(named) + np.searchsorted(named, group.positives)
        is_left = ~(is_named & np.isin(places * len(named) + of_documents, pairs))
        places, columns, chosen, ids = places[is_left], columns[is_left], chosen[is_left], ids[is_left]
        ranks = 1 + np.arange(len(places)) - np.searchsorted(places, places)
        rows = {
            "query": group.queries[places],
            "rank": ranks.astype(np.int32),
            "document": ids,
            "score": scores_of(distances_in(chosen), metric),
            "likeness": likeness[places, columns],
        }
        yield pa.record_batch({name: column[ranks <= last] for name, column in rows.items()})


def _positives(found: Sequence[tuple[Asked, Path]]) -> Iterator[pa.RecordBatch]:
    """The rows of `mined_positives`."""
    for group, file in found:
        with np.load(file) as ranked:
            columns = {"positive": group.positives, "score": ranked["positives"]}
        yield pa.record_batch({"query": group.queries[group.query_of_positive], **columns})
