"""The layouts of user-supplied queries and documents (docs/how-to/pairs.md); that of MS MARCO is in `mined_pairs`.

A text in a row is a string or, if it is that of a paper, an object. BEIR (Thakur et al., 2021) has judgements of
documents and queries by name. SPECTER (Cohan et al., 2020) has for each query its documents and their relation to it,
{"QUERY": {"DOCUMENT": {"count": 5}}}, and the names of the queries of each split. InPars (Bonifacio et al., 2022) has
queries that a language model wrote, each for one document, which it names by doc_id or contains.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.rows import Row, read_fields, read_members, read_objects, read_rows, shown
from cocite.core.written_ids import text_id, text_ids
from cocite.triplets import user_pairs as pairs
from cocite.triplets.mined_pairs import read_msmarco
from cocite.triplets.sampled import TRAINING, VALIDATION
from cocite.triplets.samplers.pairs import AnyLayout, BeirFolder, Inpars, MsMarco, Scored, SpecterFolder, TextRows

Part = tuple[str | None, str | None]  # the title and the abstract of a text

COLUMNS = {
    "query": re.compile("query|anchor"),
    "positives": re.compile(r"positives?|pos|positive_\d+"),
    "negatives": re.compile(r"negatives?|neg|negative_\d+"),
    "positive_scores": re.compile("positive_scores?"),
    "negative_scores": re.compile("negative_scores?"),
    "": re.compile("_?id|(query|positive|negative)_ids?|metadata"),
}
"""What each column is, by its name; those of no role are not read."""
QUESTION = ("query", "question")
DIRECT = 5  # the count of a document that the query cites; less is of one cited by a paper which it cites
OF_NEITHER = "queries of data.json in neither train.txt nor val.txt"


class _Texts(NamedTuple):
    """The texts of a row; a query is short if it is no pair of a title and an abstract."""

    query: str | Part | None
    positives: Sequence[Part] = ()
    negatives: Sequence[Part] = ()


def read_layout(layout: AnyLayout, folders: Mapping[str, Path], spill_to: Path) -> pairs.UserPairs:
    """The contents of a layout, by the folders of its parts."""
    folder = folders["pairs"]
    collection = folders.get("collection", folder)
    match layout:
        case TextRows():
            return read_text_rows(folder, layout.files, layout)
        case BeirFolder():
            return read_beir(folder, folders.get("qrels", folder), layout.validate_on)
        case SpecterFolder():
            return read_specter(folder, layout.files)
        case MsMarco():
            return read_msmarco(folder, collection, folders.get("scores"), layout, spill_to)
        case Inpars():
            beside = ("queries.jsonl*",) if any(folder.glob("corpus.jsonl*")) else ()
            return read_inpars(folder, collection, layout.files or beside, layout.top)


def read_text_rows(folder: Path, patterns: Sequence[str], bounds: Scored) -> pairs.UserPairs:
    """Rows with their own texts: plain strings, or objects with a title and an abstract."""
    files = pairs.row_files(folder, patterns)

    def examples(counts: Counter[str]) -> Iterator[pairs.Example]:
        for row, split in _rows_of(files):
            roles = _roles(row)
            texts = _texts_in(row, roles)
            near, far = ([_key(part) for part in parts] for parts in (texts.positives, texts.negatives))
            if bounds.has_bounds:
                positives = _scores_of(row, roles, "positive_scores", len(near), needed=bounds.margin is not None)
                kept = pairs.kept(bounds, positives, np.array(_scores_of(row, roles, "negative_scores", len(far))))
                counts[pairs.TOO_CLOSE] += len(far) - int(kept.sum())
                far = [key for key, is_kept in zip(far, kept.tolist(), strict=True) if is_kept]
            yield pairs.Example(_key(texts.query), near, far, split)

    return pairs.UserPairs(
        examples=examples, texts=lambda: _texts_inside(_texts_in(row, _roles(row)) for row, _ in _rows_of(files))
    )


def _rows_of(files: Sequence[tuple[Path, str]]) -> Iterator[tuple[Row, str]]:
    return ((row, split) for path, split in files for row in read_rows(path))


def _texts_inside(rows: Iterator[_Texts]) -> Iterator[pairs.Texts]:
    """The queries and documents of rows, some at a time: their keys are their ids."""
    short, documents = list[str | None](), list[Part]()
    for row in chain(rows, [None]):
        if row is not None:
            if isinstance(row.query, tuple):
                documents.append(row.query)
            else:
                short.append(row.query)
            documents += (*row.positives, *row.negatives)
        if row is None or len(documents) + len(short) >= pairs.TEXTS_AT_ONCE:
            none = [None] * len(short)
            yield pairs.Texts(text_ids(short, none, is_query=True), short, none, are_queries=True)
            titles, abstracts = [title for title, _ in documents], [abstract for _, abstract in documents]
            yield pairs.Texts(text_ids(titles, abstracts, is_query=False), titles, abstracts, are_queries=False)
            short, documents = [], []


def _texts_in(row: Row, roles: Mapping[str, Sequence[str]]) -> _Texts:
    def part(value: Any, key: str) -> Part:
        if not isinstance(value, Mapping):
            return None, row.as_text(value, key)
        inner = Row(dict(value), row.path, row.at)
        return inner.text("title"), inner.text("abstract", "text")

    [key] = roles["query"]
    query = row.values[key]
    if isinstance(query, Mapping):
        query = part(query, key)
    elif query is not None:
        query = row.as_text(query, key)
    positives, negatives = (
        [part(value, key) for key in roles[role] for value in pairs.as_list(row, key) if value is not None]
        for role in ("positives", "negatives")
    )
    return _Texts(query, positives, negatives)


def _roles(row: Row) -> dict[str, list[str]]:
    """The columns of a row by their roles."""
    roles: dict[str, list[str]] = {role: [] for role in COLUMNS}
    for key in row.values:
        role = next((role for role, name in COLUMNS.items() if name.fullmatch(key)), None)
        if role is None:
            known = "a row has a query, positives, negatives, positive_scores and negative_scores"
            raise InputError(f"{row.place}: has the unknown column {key!r}; {known}.")
        roles[role].append(key)
    if len(roles["query"]) != 1 or not roles["positives"]:
        raise InputError(f"{row.place}: has no query, or no positive (its columns: {', '.join(row.values) or 'none'}).")
    return roles


def _key(text: str | Part | None) -> int:
    """The key of a short query, or of a document or a query that is a paper."""
    return text_id(*text, is_query=False) if isinstance(text, tuple) else text_id(text, None, is_query=True)


def _scores_of(
    row: Row, roles: Mapping[str, Sequence[str]], role: str, count: int, *, needed: bool = True
) -> list[float]:
    scores = [row.as_number(value, role) for key in roles[role] for value in pairs.as_list(row, key)]
    if needed and len(scores) != count:
        said = f"has {len(scores)} {role} for {count} {role.removesuffix('_scores')}s"
        raise InputError(f"{row.place}: {said}; margin and max_score need one for each.")
    return scores


def read_beir(folder: Path, qrels: Path, validate: str) -> pairs.UserPairs:
    """Queries and documents by their names, and judgements: of a relevance of 0, a document is a negative."""
    training = _qrels_in(qrels, "train")
    if training is None:
        raise InputError(f"{qrels}: contains no qrels/train.tsv, the judgements to train on.")
    validation = None if validate == "share" else _qrels_in(qrels, validate)
    if validate == "test" and validation is None:
        raise InputError(f"{qrels}: contains no qrels/test.tsv, but layout.validate_on is test.")
    files = {TRAINING: training, VALIDATION: validation} if validation else {pairs.UNTOLD: training}
    return pairs.UserPairs(examples=partial(_examples_of_qrels, files), texts=partial(pairs.all_named, folder))


def _qrels_in(folder: Path, name: str) -> Path | None:
    places = [folder / inner / f"{name}.tsv{end}" for inner in ("qrels", ".") for end in ("", ".gz")]
    return next((path for path in places if path.is_file()), None)


def _examples_of_qrels(files: Mapping[str, Path], counts: Counter[str]) -> Iterator[pairs.Example]:
    for split, path in files.items():
        queries, documents, is_near = array("q"), array("q"), array("b")
        for number, (query, document, grade) in read_fields(path, 3):
            try:
                relevance = float(grade)
            except ValueError:
                if number == 1:  # the names of the columns
                    continue
                relevance = math.nan
            if not math.isfinite(relevance):
                raise InputError(f"{path}, line {number}: the relevance must be a number, not {shown(grade)}.")
            queries.append(pairs.key_of(query, pairs.QUERIES))
            documents.append(pairs.key_of(document, pairs.DOCUMENTS))
            is_near.append(relevance > 0)
        columns = (np.array(queries), np.array(documents), np.array(is_near, dtype=bool))
        order = np.argsort(columns[0], kind="stable")
        of_queries, of_documents, are_near = (column[order] for column in columns)
        starts = np.append(np.flatnonzero(np.diff(of_queries, prepend=-1)), len(order))
        for first, last in pairwise(starts.tolist()):
            found, near = of_documents[first:last], are_near[first:last]
            yield pairs.Example(int(of_queries[first]), found[near].tolist(), found[~near].tolist(), split)


def read_specter(folder: Path, patterns: Sequence[str]) -> pairs.UserPairs:
    """Papers by their names, and how often each is cited by a query: 5 for a direct citation, 1 for one two away."""
    if not (folder / "data.json").is_file():
        return read_text_rows(folder, patterns, Scored())
    texts = folder / "metadata.json"
    if not texts.is_file():
        raise InputError(f"{folder}: contains data.json but no metadata.json, which has the titles and abstracts.")
    return pairs.UserPairs(
        examples=partial(_examples_of_counts, folder),
        texts=lambda: pairs.texts_of(
            ((name, row.text("title"), row.text("abstract")) for name, row in read_objects(texts)), pairs.DOCUMENTS
        ),
    )


def _examples_of_counts(folder: Path, counts: Counter[str]) -> Iterator[pairs.Example]:
    splits = dict[str, str]()
    for path, split in ((folder / "train.txt", TRAINING), (folder / "val.txt", VALIDATION)):
        if path.is_file():
            with explain_unreadable(path, "file of text"):
                names = path.read_text(encoding="utf-8-sig").splitlines()
            splits |= {line.strip(): split for line in names if line.strip()}
    counts[OF_NEITHER] += 0
    for query, others in read_members(folder / "data.json"):
        if splits and query not in splits:
            counts[OF_NEITHER] += 1
            continue
        near, far = list[int](), list[int]()
        for document, said in others.items() if isinstance(others, Mapping) else [("", None)]:
            count = said.get("count") if isinstance(said, Mapping) else None
            if isinstance(count, bool) or not isinstance(count, int | float):
                place = f"{folder / 'data.json'}, {query}"
                raise InputError(f'{place}: must be an object such as {{"DOCUMENT": {{"count": 5}}}}.')
            (near if count >= DIRECT else far).append(pairs.key_of(document, pairs.DOCUMENTS))
        yield pairs.Example(pairs.key_of(query, pairs.DOCUMENTS), near, far, splits.get(query, pairs.UNTOLD))


def read_inpars(folder: Path, collection: Path, patterns: Sequence[str], top: int | None) -> pairs.UserPairs:
    """Queries that a language model wrote, each for one document; of all of them those with the best scores. A score is
    that of a reranker or, without one, the mean of the logarithms of the tokens' probabilities."""
    files = pairs.row_files(folder, patterns)
    has_names = any(_text_in(row) is None for path, _ in files for row in islice(read_rows(path), 1))
    if has_names and not pairs.collection_files(collection, pairs.DOCUMENTS):
        said = f"{collection}: contains no documents, but the queries name theirs by doc_id"
        raise InputError(f"{said}; add a corpus.jsonl, or name one in layout.collection.")

    def texts() -> Iterator[pairs.Texts]:
        parts = ((row.text(*QUESTION), _text_in(row)) for row, _ in _rows_of(files))
        yield from _texts_inside(_Texts(question, [part] if part else []) for question, part in parts)
        if has_names:
            yield from pairs.named_texts(collection, pairs.DOCUMENTS)

    def examples(counts: Counter[str]) -> Iterator[pairs.Example]:
        chosen: set[int] | None = None
        if top is not None:
            found = np.array([_score_of_inpars(row) for row, _ in _rows_of(files)])
            chosen = set(np.argsort(-found, kind="stable")[:top].tolist())
            counts["queries beyond the best scores"] += len(found) - len(chosen)
        for number, (row, split) in enumerate(_rows_of(files)):
            if chosen is None or number in chosen:
                part = _text_in(row)
                near = _key(part) if part else pairs.key_of(row.identifier("doc_id"), pairs.DOCUMENTS)
                yield pairs.Example(_key(row.text(*QUESTION)), [near], [], split)

    return pairs.UserPairs(examples=examples, texts=texts)


def _text_in(row: Row) -> Part | None:
    """The title and the text of the document in a query's row, if it has one."""
    text = row.text("doc_text", "text")
    return None if text is None else (row.text("title"), text)


def _score_of_inpars(row: Row) -> float:
    key = next((key for key in ("score", "log_probs") if row.values.get(key) is not None), None)
    if key is None:
        raise InputError(f"{row.place}: has no score and no log_probs, and layout.top chooses by them.")
    given = [row.as_number(value, key) for value in pairs.as_list(row, key)]
    return float(np.mean(given)) if given else -np.inf
