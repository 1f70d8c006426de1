"""Benchmarks that give each query a pool of candidates to rank: CSFCube, DORIS-MAE and MDCR."""

from collections.abc import Collection, Sequence
from pathlib import Path

from cocite.config.benchmarks.by_aspect import ALL, FACETS, FOLDS, JUDGED, TEXTS
from cocite.config.tasks import OVER_FOLDS, Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row, read_items, read_lines, read_objects, shown
from cocite.evaluation.preparation.builder import Builder, References, as_number, grade

CSFCUBE, MDCR, DORIS, OF_DORIS = "csfcube", "mdcr", "doris_mae", "doris_mae-query"
TEST_FOLDS = ("fold1_test", "fold2_test")
DORIS_FILE = "DORIS-MAE_dataset_v1.json"
SCORES = (0, 1, 2)
"""How far an abstract meets an aspect: not, in part, in full."""
MDCR_JUDGED, MDCR_TEXTS = "mdcr_test.json", "mdcr_test_data.jsonl"
CITED = "true"


def read_csfcube(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """CSFCube (Mysore et al., 2021), in the layout of github.com/iesl/CSFCube: the tasks of these names, or all facets.

        abstracts-csfcube-preds.jsonl       texts: a paper per line, its id under paper_id; abstracts are lists
        test-pid2anns-csfcube-<facet>.json  query → candidates (cands) and, aligned with them, grades (relevance_adju)
        evaluation_splits.json              facet → fold1_test and fold2_test, queries named <id>_<facet>; read only if
                                            a metric is a mean over folds, and may be missing

    In the task of all facets, a query is named <id>_<facet>, since its judgements differ by facet. A query that is in
    its own pool is removed from it, as in the released rankings.
    """
    for row in progress(read_lines(folder / TEXTS), of="Texts", unit="paper"):
        builder.texts.add(CSFCUBE, row.identifier("paper_id"), (row.text("title"), _sentences(row), ()))
    asked = [task for task in declared if (task.name in names if names else task.test != ALL)]
    for task in progress(asked, of="Tasks", unit="task"):
        files = {facet: folder / JUDGED.format(facet) for facet in (FACETS if task.test == ALL else [task.test])}
        is_there = all(path.is_file() for path in files.values())
        builder.omitted[f"task {task.name} absent"] = int(not is_there)
        if is_there or names:
            with builder.documents_of(task) as references:
                for facet, path in files.items():
                    _read_facet(path, facet, task, references, builder)
            if any(metric.endswith(OVER_FOLDS) for metric in task.metrics) and (folder / FOLDS).is_file():
                _read_folds(folder / FOLDS, task, builder)
    if not builder.benchmark.judgements:
        raise InputError(f"{folder}: contains no facet; there must be files such as {JUDGED.format('background')}.")


def _sentences(row: Row) -> str | None:
    sentences = row.values.get("abstract")
    if sentences is None:
        return None
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InputError(f"{row.place}: abstract must be a list of sentences, not {shown(sentences)}.")
    return " ".join(row.as_text(sentence, "abstract") or "" for sentence in sentences).strip() or None


def _read_facet(path: Path, facet: str, task: Task, references: References, builder: Builder) -> None:
    builder.benchmark.judgements.setdefault(task.name, {})
    own = f"task {task.name}: query among its own candidates (left out)"
    for query_id, judged in read_objects(path):
        query = name = references.find(judged.place, CSFCUBE, query_id)
        if query is not None and task.test == ALL:
            name = f"{query_id}_{facet}"
            builder.further_names[name] = query
        grades, candidates = judged.require("relevance_adju"), judged.identifiers("cands")
        if not isinstance(grades, list) or any(as_number(value) is None for value in grades):
            raise InputError(f"{judged.place}: relevance_adju must be a list of grades, not {shown(grades)}.")
        if len(grades) != len(candidates):
            raise InputError(f"{judged.place}: has {len(candidates)} cands and {len(grades)} grades in relevance_adju.")
        for identifier, value in zip(candidates, grades, strict=True):
            relevance = max(grade(value, judged.place), 0)
            if identifier == query_id:
                builder.omitted[own] += 1
            else:
                builder.judge(task, name, references.find(judged.place, CSFCUBE, identifier), relevance)


def _read_folds(path: Path, task: Task, builder: Builder) -> None:
    """Add the test fold of each query of a task. Raises `InputError` if a query is in no fold, or in both."""
    facets, facet, folds = dict(read_objects(path)), task.test, dict[str, int]()
    if facet not in facets:
        raise InputError(f"{path}: the key {facet!r}, of the folds of this facet, is missing.")
    for number, fold in enumerate(TEST_FOLDS, start=1):
        for query in facets[facet].identifiers(fold):
            if query in folds:
                raise InputError(f"{path}, {facet}: the query {query!r} is in a test fold twice.")
            folds[query] = number
    for name in builder.benchmark.judgements[task.name]:
        released = name if facet == ALL else f"{name}_{facet}"
        if released not in folds:
            raise InputError(f"{path}, {facet}: no test fold has the query {released!r}.")
        builder.benchmark.folds.setdefault(task.name, {})[name] = folds[released]


def read_doris_mae(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """DORIS-MAE (Wang et al., 2023, "DORIS-MAE"), record 8299749 of Zenodo: the tasks of these names, or both.

        Query           query_text, aspects (aspect → its sub-aspects), candidate_pool (abstracts)
        Annotation      aspect_id, abstract_id, score: 0, 1 or 2
        Corpus          abstract_id, title, original_abstract

    A query is named by its place, from 0. The grade of a candidate is the sum of its scores over the aspects and
    sub-aspects of the query; it is relevant if their mean is 1 or more. A query without a relevant candidate is left
    out of the task doris_mae, as released. The file is read in three passes, since most abstracts are in no pool.
    """
    path = folder / DORIS_FILE
    queries = {f"query-{number}": row for number, row in enumerate(read_items(path, "Query"))}
    if not queries:
        raise InputError(f"{path}: the list Query is missing or empty.")
    aspects: dict[str, frozenset[str]] = {}
    for name, row in queries.items():
        listed = row.nested("aspects")
        if not listed.values:
            raise InputError(f"{row.place}: aspects is empty, so that no candidate can be graded.")
        aspects[name] = frozenset(listed.values).union(*map(listed.identifiers, listed.values))
    pools = {name: row.identifiers("candidate_pool") for name, row in queries.items()}
    texts, wanted = builder.texts, {(DORIS, identifier) for pool in pools.values() for identifier in pool}
    texts.asked = wanted | {(OF_DORIS, name) for name in queries}
    for name, row in queries.items():
        row.require("query_text")
        texts.add_query(OF_DORIS, name, row.text("query_text"))
    for row in progress(read_items(path, "Corpus"), of="Corpus", unit="abstract"):
        # Lines of an abstract are broken as they were on the page.
        abstract = " ".join((row.text("original_abstract") or "").split()) or None
        texts.add(DORIS, row.identifier("abstract_id"), (row.text("title"), abstract, ()))
    asked = {(aspect, each) for name, pool in pools.items() for aspect in aspects[name] for each in pool}
    scores = _read_scores(path, asked, builder)
    grades = {
        name: {each: sum(scores.get((aspect, each), 0) for aspect in aspects[name]) for each in pool}
        for name, pool in pools.items()
    }
    for task in (task for task in declared if not names or task.name in names):
        without = f"task {task.name}: query without a relevant candidate (left out)"
        with builder.documents_of(task) as references:
            for name, row in queries.items():
                query = references.find(row.place, OF_DORIS, name)
                found = {each: references.find(row.place, DORIS, each) for each in pools[name]}
                judged = grades[name]
                if not task.name.endswith("_graded"):
                    judged = {each: int(value >= len(aspects[name])) for each, value in judged.items()}
                    builder.omitted[without] += not any(judged.values())
                    judged = judged if any(judged.values()) else {}
                for each, relevance in judged.items():
                    builder.judge(task, query, found[each], relevance)


def _read_scores(path: Path, asked: Collection[tuple[str, str]], builder: Builder) -> dict[tuple[str, str], int]:
    """The score of each requested aspect and abstract; of repeated ones, the first counts."""
    scores: dict[tuple[str, str], int] = {}
    for row in progress(read_items(path, "Annotation"), of="Annotations", unit="score"):
        pair = row.identifier("aspect_id"), row.identifier("abstract_id")
        score = row.require("score")
        if isinstance(score, bool) or score not in SCORES:
            raise InputError(f"{row.place}: score must be 0, 1 or 2, not {score!r}.")
        if pair in asked:
            builder.omitted["score that is repeated (the first counts)"] += pair in scores
            scores.setdefault(pair, int(score))
    builder.omitted["aspect of a candidate without a score (counts 0)"] = len(asked) - len(scores)
    return scores


def read_mdcr(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """MDCR: the tasks of these names, or all its fields if none are named.

    mdcr_test.json          field → query → kind of candidate → papers; those under `true` are cited by the query
    mdcr_test_data.jsonl    texts: a paper per line, its id under paper_id
    """
    asked = {task.labels_folder: task for task in declared if not names or task.name in names}
    for row in progress(read_lines(folder / MDCR_TEXTS), of="Texts", unit="paper"):
        builder.texts.add_paper(MDCR, row.identifier("paper_id"), row)
    for field, queries in progress(read_objects(folder / MDCR_JUDGED), of="Tasks", unit="task"):
        if field in asked:
            _read_field(queries, asked[field], builder)
    absent = [task for task in asked.values() if task.name not in builder.benchmark.judgements]
    if absent and (names or not builder.benchmark.judgements):
        raise InputError(f"{folder / MDCR_JUDGED}: has no field {absent[0].labels_folder!r}.")
    builder.omitted.update({f"task {task.name} absent": 1 for task in absent})


def _read_field(queries: Row, task: Task, builder: Builder) -> None:
    judgements = builder.benchmark.judgements.setdefault(task.name, {})
    with builder.documents_of(task) as references:
        for query_id in queries.values:
            kinds = queries.nested(query_id)
            query = references.find(kinds.place, MDCR, query_id)
            if CITED not in kinds.values:
                raise InputError(f"{kinds.place}: the key {CITED!r}, of the papers that the query cites, is missing.")
            # Cited papers come last: one that was drawn as a negative as well is relevant.
            for kind in sorted(kinds.values, key=lambda name: name == CITED):
                for identifier in kinds.identifiers(kind):
                    candidate = references.find(kinds.place, MDCR, identifier)
                    if query is not None and candidate is not None:
                        candidates = judgements.setdefault(query, {})
                        again = f"task {task.name}: repeated candidate (once is enough)"
                        builder.omitted[again] += candidate in candidates
                        candidates[candidate] = int(kind == CITED)
