"""What vectors score on the tasks of a benchmark: rows of the table scores, and of the table outcomes behind them.

A row for each evaluation seed and mode where they can change the value (classification, regression). Rankings and the
disambiguation of authors have no random choice and no modes: one row, under the first evaluation seed, with the mode
`both`. The outcomes tell what each query or test document contributed, so that models can be compared on the same ones.
"""

from collections.abc import Collection

import numpy as np

from cocite.config.tasks import BOTH, Task
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.failures import UnscorableError
from cocite.evaluation.ranking import (
    ADJUSTED,
    Ranked,
    Similarity,
    by_cosine,
    by_distance,
    measure,
    rank_candidates,
    rank_reviewers,
)
from cocite.evaluation.scored import Counts, Row, Run, Scored, outcome_key, score_row
from cocite.evaluation.vectors import Vectors


def score_task(task: Task, benchmark: Benchmark, vectors: Vectors, run: Run) -> Scored:
    """Score vectors on one task of a benchmark, which need not hold any other.

    Raises `UnscorableError` where a larger share of the task's documents than the run allows has no vector, and where
    there is too little to fit or to rank.
    """
    counts = check_missing(task, benchmark, vectors.rows.keys(), run)
    if task.is_supervised:
        return _score_fits(benchmark, task, vectors, run, counts)
    if task.kind == "disambiguation":
        from cocite.evaluation.disambiguation import score_disambiguation

        return score_disambiguation(task, benchmark, vectors, run, counts)
    similarity = by_cosine(vectors) if task.kind == "reviewers" else by_distance(vectors)
    return score_ranking(benchmark, task, similarity, vectors.rows, run, counts)


def check_missing(task: Task, benchmark: Benchmark, known: Collection[str], run: Run) -> Counts:
    """Count the documents of a task, and those that have no vector because they are not `known`.

    Raises `UnscorableError` where these are a larger share than the run allows.
    """
    documents = benchmark.documents_of(task)
    missing = sorted(documents.difference(known))
    if len(missing) > len(documents) * run.largest_missing:
        raise UnscorableError(
            f"The task {task.name} of {run.benchmark}: {len(missing)} of {len(documents)} documents have no vector "
            f"of {run.model}, among them {missing[0]!r}; embed the benchmark's documents again."
        )
    return Counts(documents=len(documents), missing=len(missing))


def _score_fits(benchmark: Benchmark, task: Task, vectors: Vectors, run: Run, counts: Counts) -> Scored:
    """Fit and score a supervised task once with each evaluation seed and mode."""
    # scikit-learn takes a second to import, which benchmarks of rankings alone need not wait for.
    from cocite.evaluation.machines.fitting import Protocol
    from cocite.evaluation.supervised import Examples, score_supervised

    asked = {split: benchmark.labels.get((task.name, split), {}) for split in ("train", "test")}
    train, test = (
        {document: names for document, names in labels.items() if document in vectors.rows} for labels in asked.values()
    )
    if not test:
        raise UnscorableError(f"The task {task.name} has no test document with a vector.")
    examples = Examples(
        train=vectors.as_stored(list(train)),
        train_labels=list(train.values()),
        test=vectors.as_stored(list(test)),
        test_labels=list(test.values()),
    )
    scores, outcomes = list[Row](), list[Row]()
    for seed in run.evaluation_seeds:
        for mode in run.modes:
            found = score_supervised(Protocol(task=task, seed=seed, mode=mode, threads=run.threads), examples)
            size = (len(test), len(asked["test"]) - len(test))
            scores.append(score_row(run, task, counts, (found.metric, seed, mode), found.value, size))
            key = outcome_key(run, task, (task.metrics[0], seed, mode))
            told = zip(test.items(), found.predicted, strict=True)
            outcomes += [(*key, document, None, 1.0, predicted, names) for (document, names), predicted in told]
    return Scored(scores=scores, outcomes=outcomes)


def score_ranking(
    benchmark: Benchmark, task: Task, similarity: Similarity, known: Collection[str], run: Run, counts: Counts
) -> Scored:
    """Score a ranking of given candidates by any similarity, over the documents that are `known`."""
    judgements = benchmark.judgements[task.name]
    if task.kind == "reviewers":
        return score_run(
            benchmark, task, rank_reviewers(judgements, benchmark.reviewers, similarity, known), run, counts
        )
    return score_run(benchmark, task, rank_candidates(judgements, similarity, known), run, counts)


def score_run(benchmark: Benchmark, task: Task, ranked: Ranked, run: Run, counts: Counts) -> Scored:
    """Score what was ranked for each query.

    The value is the mean over the queries; of an adjusted metric, weighted by the inverse propensity of each query.
    What was clicked was seen, and what stood first was seen most often: a query whose click had a propensity of p
    stands for 1/p queries, and weights are normalised by their sum (Swaminathan & Joachims, 2015, "The Self-Normalized
    Estimator for Counterfactual Learning").
    """
    judgements = benchmark.judgements[task.name]
    scores, outcomes = list[Row](), list[Row]()
    for metric, values in measure(judgements, ranked, task.metrics).items():
        weights = benchmark.weights[task.name] if metric.endswith(ADJUSTED) else dict.fromkeys(values, 1.0)
        value = float(np.average(list(values.values()), weights=[weights[query] for query in values]))
        varied = (metric, run.evaluation_seeds[0], BOTH)
        scores.append(score_row(run, task, counts, varied, value, (len(ranked), len(judgements) - len(ranked))))
        key = outcome_key(run, task, varied)
        outcomes += [(*key, query, of_query, weights[query], [], []) for query, of_query in values.items()]
    return Scored(scores=scores, outcomes=outcomes)
