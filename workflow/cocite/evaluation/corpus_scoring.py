"""What searches of the whole corpus find of the papers that each held-out paper is linked with.

Recall at k is the share of the relevant papers among the first k answers, of at most k (BEIR's capped recall), also for
each class of how often the relevant papers are cited in training. nDCG gains the grade of an answer; other metrics take
all relevant papers alike. The vectors, or the texts, of all papers stream past those of the queries (`core.searching`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow.compute as pc
import typer
from threadpoolctl import threadpool_limits

from cocite.config.benchmarks import declared, names
from cocite.config.benchmarks.holdout import CITATION_CLASSES, MOST_CITED
from cocite.config.settings import parse_settings
from cocite.config.tasks import BOTH
from cocite.core.id_sets import NO_IDS
from cocite.core.progress import progress, report
from cocite.core.randomness import priorities
from cocite.core.searching import Answers, block_size, vector_blocks
from cocite.core.tables.files import read_table, table_in, vectors_of_papers
from cocite.core.words import WordSearch
from cocite.core.written_ids import Ids, look_up
from cocite.evaluation.benchmark import ScoredTasks, Tables, write_rows
from cocite.evaluation.bm25 import Formula
from cocite.evaluation.scored import Item, Row, Run, Scored, UnscorableError

FIRST = 20
"""Answers that are counted by their citations."""
DEPTH = 1000
"""Answers of each query that MAP looks at, as runs of TREC have them."""
SHARE_OF_MOST_CITED = 0.01
ROUNDING = 1e-9
"""Squared distances below this share of the squared lengths are 0."""


class Popularity(NamedTuple):
    """The papers that are searched, ascending, and how often each is cited in training."""

    papers: Ids
    citations: Ids

    def citations_of(self, papers: Ids) -> Ids:
        """The citations of some of them; of other papers, -1."""
        places, is_there = look_up(self.papers, papers)
        return np.where(is_there, self.citations[np.where(is_there, places, 0)], -1)

    @classmethod
    def read(cls, path: Path) -> "Popularity":
        """Read the table popularity."""
        table = read_table(path, "popularity")
        return cls(table["corpusid"].to_numpy(), table["citations"].to_numpy())


Found = tuple[Mapping[int, Ids], int]
"""The papers that each query finds, the nearest first, and how many papers and queries could not be compared."""


def by_vectors(folder: Path, queries: Ids, popularity: Popularity) -> Found:
    """Search by minus the squared Euclidean distance, as the other tasks of held-out papers rank."""
    files = sorted(folder.glob("*.parquet"))
    vectors, is_known = vectors_of_papers(files, table_in(files[0]), queries)
    vectors, answers = vectors[is_known].astype(np.float64), Answers(queries[is_known], DEPTH)
    seen, size = np.zeros(len(popularity.papers), np.bool_), block_size(len(vectors))
    for places, matrix in progress(vector_blocks(files, popularity.papers, size), of="Searched", unit="block"):
        if not np.isfinite(matrix).all():
            raise UnscorableError(f"{folder}: a vector is not finite; the model's training has probably diverged.")
        squares = (vectors**2).sum(axis=1)[:, None] + (matrix**2).sum(axis=1)
        nearness = 2 * vectors @ matrix.T - squares
        nearness[nearness > -ROUNDING * squares] = 0  # the same vector
        answers.add((popularity.papers[places], nearness.astype(np.float32)))
        seen[places] = True
    is_outside = popularity.citations_of(queries) < 0
    return answers.ranked(), int(np.count_nonzero(~seen) + np.count_nonzero(is_outside & ~is_known))


def by_words(folder: Path, formula: Formula, queries: Ids, popularity: Popularity) -> Found:
    """Search the table papers by the words of the queries. A paper that shares no word with a query is no answer."""
    search = WordSearch(folder, queries, popularity.papers, formula)
    answers = Answers(search.queries, DEPTH)
    for block in search.blocks():
        answers.add(block)
    return answers.ranked(), len(queries) - len(search.queries)


def by_answers(path: Path, queries: Ids) -> Found:
    """The answers of an index, in the order of their scores."""
    table = read_table(path, "answers")
    table = table.filter(table["is_found"])
    rows, is_asked = look_up(queries, table["query"].to_numpy())
    papers, scores = (table[name].to_numpy()[is_asked] for name in ("paper", "score"))
    return Answers(queries, DEPTH, rows[is_asked], papers, scores).ranked(), 0


def by_citations_alone(queries: Ids, popularity: Popularity) -> Found:
    """The most cited papers, the same for every query. Raises `UnscorableError` if no paper is cited in training."""
    if not popularity.citations.any():
        raise UnscorableError("No paper is cited in training, so that citations rank nothing.")
    ties = priorities(0, "equal answers", popularity.papers)
    first = popularity.papers[np.lexsort((ties, -popularity.citations))[: DEPTH + 1]]
    return {query: first[first != query][:DEPTH] for query in queries.tolist()}, 0


class Relevant(NamedTuple):
    """The papers that a query has to find, ascending, and their grades, which are above 0."""

    papers: Ids
    grades: Ids


def search_corpus(
    *,
    tables: Tables,
    tasks: ScoredTasks,
    model: Annotated[str, typer.Option(help="Name of the model or baseline.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    evaluation_seed: Annotated[int, typer.Option(help="The benchmark's first seed, under which rankings are.")],
    largest_missing: Annotated[
        float, typer.Option(help="Share of the papers that may be without a vector; with more there is no score.")
    ],
    vectors: Annotated[
        Path | None,
        typer.Option(help="Folder of its vectors of all papers; none for what ranks by words or citations."),
    ] = None,
    papers: Annotated[Path | None, typer.Option(help="Folder of the table papers, for what ranks by words.")] = None,
    words: Annotated[str | None, typer.Option(help="For the same, k1, b and method of BM25 as JSON.")] = None,
    answers: Annotated[Path | None, typer.Option(help="Table answers of an index.")] = None,
    scores: Annotated[Path, typer.Option(help="Table scores, written.")],
    outcomes: Annotated[Path, typer.Option(help="Table outcomes, written.")],
    failures: Annotated[Path, typer.Option(help="Table failures, written.")],
    by_citations: Annotated[Path, typer.Option(help="Table scores_by_citations, written.")],
) -> None:
    """Score how held-out papers search the whole corpus: by vectors, words, citations only, or an index."""
    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=tables.name,
        modes=[BOTH],
        evaluation_seeds=[evaluation_seed],
        largest_missing=largest_missing,
    )
    popularity = Popularity.read(tables / "popularity.parquet")
    relevant = {task: _relevant(tables / "searches.parquet", task.name) for task in map(declared, names(tasks))}
    queries = np.array(sorted({query for of_task in relevant.values() for query in of_task}), np.int64)
    rows: dict[str, list[Row]] = {"failures": [], "outcomes": [], "scores": [], "scores_by_citations": []}
    try:
        with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
            if vectors:
                answers_of, missing = by_vectors(vectors, queries, popularity)
            elif papers:
                formula = parse_settings(Formula, words or "{}", "--words")
                answers_of, missing = by_words(papers, formula, queries, popularity)
            elif answers:
                answers_of, missing = by_answers(answers, queries)
            else:
                answers_of, missing = by_citations_alone(queries, popularity)
        # Queries that are not among the papers take part, but need nothing if only citations rank.
        outside = (popularity.citations_of(queries) < 0).sum() if vectors or papers or answers else 0
        documents = len(popularity.papers) + int(outside)
        if missing > documents * largest_missing and any(relevant.values()):
            raise UnscorableError(
                f"{missing:,} of {documents:,} papers have no vector of {model}; embed the corpus again, or allow more "
                "in `largest_missing` of the benchmark."
            )
        for task, of_task in relevant.items():
            if not of_task:
                report(f"{run.benchmark} does not contain the task {task.name}; there is nothing to score.")
                continue
            unfindable = sum(int((popularity.citations_of(of.papers) < 0).sum()) for of in of_task.values())
            sizes = len(popularity.papers), 0, unfindable
            scored = Scored(run=run, task=task, documents=documents, missing=missing, search=sizes)
            _add_metrics(scored, of_task, answers_of)
            rows["scores"] += scored.scores
            rows["outcomes"] += scored.outcomes
            rows["scores_by_citations"] += _by_class(scored, of_task, answers_of, popularity)
    except UnscorableError as error:
        report(f"NOT SCORED: {model} (seed {training_seed}) on the searches of {run.benchmark}. {error}")
        rows["failures"] = [(model, training_seed, run.benchmark, task.name, str(error)) for task in relevant]
    files = {"failures": failures, "outcomes": outcomes, "scores": scores, "scores_by_citations": by_citations}
    for table, of_table in rows.items():
        write_rows(files[table], table, of_table)


def _relevant(searches: Path, task: str) -> dict[int, Relevant]:
    rows = read_table(searches, "searches")
    mine = rows.filter((pc.field("task") == task) & (pc.field("split") == "test"))
    queries, papers, grades = (mine[name].to_numpy() for name in ("query", "paper", "relevance"))
    distinct, starts = np.unique(queries, return_index=True)
    spans = map(slice, starts, [*starts[1:], len(queries)])
    return {query: Relevant(papers[of], grades[of]) for query, of in zip(distinct.tolist(), spans, strict=True)}


def _add_metrics(scored: Scored, relevant: Mapping[int, Relevant], answers: Mapping[int, Ids]) -> None:
    """Add the metrics of a task; a query without answers counts as zero."""
    measures = {query: _measures(answers.get(query, NO_IDS), *of) for query, of in relevant.items()}
    for metric in scored.task.metrics:
        items: list[Item] = [(str(query), 100 * of[metric], 1.0, [], []) for query, of in measures.items()]
        scored.add(metric, 100 * float(np.mean([of[metric] for of in measures.values()])), items, len(relevant))


def _measures(answers: Ids, relevant: Ids, grades: Ids) -> dict[str, float]:
    """The metrics of one ranking, between 0 and 1; relevant papers are given ascending."""
    places, hits = look_up(relevant, answers)
    ranks = np.flatnonzero(hits) + 1
    gains = np.where(hits, grades[places], 0)[:10]
    ideal, discounts = -np.sort(-grades)[:10], np.log2(np.arange(2, 12))
    capped = {f"recall_cap_{k}": hits[:k].sum() / min(k, len(relevant)) for k in (20, 50, 100)}
    return capped | {
        "ndcg_cut_10": (gains / discounts[: len(gains)]).sum() / (ideal / discounts[: len(ideal)]).sum(),
        "map": (np.arange(1, len(ranks) + 1) / ranks).sum() / len(relevant),
        "recip_rank": 1 / ranks[0] if len(ranks) else 0.0,
    }


def _by_class(
    scored: Scored, relevant: Mapping[int, Relevant], answers: Mapping[int, Ids], popularity: Popularity
) -> Iterator[Row]:
    """Per class of citations: recall of relevant papers, its standard error over queries, share of first answers."""
    first = {query: answers.get(query, NO_IDS)[:FIRST] for query in relevant}
    cited = {query: popularity.citations_of(of.papers) for query, of in relevant.items()}
    of_answers = popularity.citations_of(np.concatenate([*first.values()]))
    of_task = (scored.run.model, scored.run.training_seed, scored.run.benchmark, scored.task.name)
    papers = len(popularity.papers)
    most_cited = min(max(1, round(SHARE_OF_MOST_CITED * papers)), papers - 1)
    from_most = int(np.partition(popularity.citations, -most_cited - 1)[-most_cited - 1]) + 1 if most_cited else 1
    for name, (least, most) in {**CITATION_CLASSES, MOST_CITED: (from_most, np.inf)}.items():
        in_class = {query: relevant[query].papers[(least <= of) & (of <= most)] for query, of in cited.items()}
        recalls = [
            100 * np.isin(first[query], papers).sum() / min(FIRST, len(papers))
            for query, papers in in_class.items()
            if len(papers)
        ]
        mean = float(np.mean(recalls)) if recalls else None
        error = float(np.std(recalls, ddof=1) / np.sqrt(len(recalls))) if len(recalls) > 1 else None
        share = 100 * float(np.mean((least <= of_answers) & (of_answers <= most))) if len(of_answers) else None
        yield *of_task, name, mean, error, len(recalls), share
