"""Ranking the candidates of each query by a similarity, given ones or a whole collection, and what rankings score.

The vectors of a collection stream past those of the queries, exact and in blocks, so that memory does not grow with it.
Equal scores at the end of a list are cut at random, the same way each time and whatever the blocks: where BM25 finds no
word, all scores are equal.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocite.config.tasks import OVER_FOLDS, Task
from cocite.core.progress import progress
from cocite.core.randomness import derive_seed
from cocite.core.searching import of_unit_length
from cocite.evaluation.benchmark import Benchmark, Click, Judgements
from cocite.evaluation.metrics import ADJUSTED, Ranked, measure_rankings
from cocite.evaluation.scored import Item, Run, Scored, UnscorableError, Vectors, count_missing

if TYPE_CHECKING:
    import torch

Similarity = Callable[[str, Sequence[str]], NDArray[np.floating]]
"""From a query and some documents to a similarity of each; more is nearer."""

PAPERS_OF_A_REVIEWER = 3
"""A reviewer's score is the mean over so many of the papers, the nearest ones."""
DEPTH, FULL_DEPTH = 100, 1000
"""Least number of hits kept per query, and the number for metrics without a depth, as in runs of TREC."""
Block = tuple[Sequence[str], Iterable[NDArray[np.floating]]]
"""Documents, and for each query the similarity of all of them; more is nearer."""
HIDDEN, DROPOUT = 50, 0.4
MARGIN, DECAY, LARGEST_NORM = 0.1, 0.95, 5.0
BATCH, EPOCHS = 128, 5
NEGATIVES = 10
"""Papers of a click that it is compared with, the first ones shown."""

Features = NDArray[np.float32]


def by_distance(vectors: Vectors) -> Similarity:
    """Minus the Euclidean distance."""
    return lambda query, documents: -np.linalg.norm(vectors.of(documents) - vectors.of([query]), axis=1)


def by_cosine(vectors: Vectors) -> Similarity:
    """The cosine; 0 to a vector of zeros."""

    def similarity(query: str, documents: Sequence[str]) -> NDArray[np.floating]:
        matrix, [vector] = vectors.of(documents), vectors.of([query])
        norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
        return matrix @ vector / np.where(norms > 0, norms, 1.0)

    return similarity


def rank_candidates(judgements: Judgements, similarity: Similarity, known: Collection[str]) -> Ranked:
    """The similarity of each candidate to its query; documents that are not `known` are left out."""
    run = {}
    for query, relevance in judgements.items():
        candidates = [candidate for candidate in relevance if candidate in known]
        if query in known and candidates:
            run[query] = dict(zip(candidates, similarity(query, candidates).tolist(), strict=True))
    return run


def rank_reviewers(
    judgements: Judgements, reviewers: Mapping[str, set[str]], similarity: Similarity, known: Collection[str]
) -> Ranked:
    """The score of each reviewer for a paper: the mean similarity of the reviewer's three nearest papers."""
    papers = {reviewer: sorted(paper for paper in theirs if paper in known) for reviewer, theirs in reviewers.items()}
    run = {}
    for query, relevance in judgements.items():
        candidates = [reviewer for reviewer in relevance if papers[reviewer]]
        if query in known and candidates:
            run[query] = {
                reviewer: float(np.sort(similarity(query, papers[reviewer]))[-PAPERS_OF_A_REVIEWER:].mean())
                for reviewer in candidates
            }
    return run


def score_ranking(scored: Scored, benchmark: Benchmark, similarity: Similarity, known: Collection[str]) -> None:
    """Score a ranking of given candidates by any similarity, over the documents that are `known`."""
    judgements = benchmark.judgements[scored.task.name]
    if scored.task.kind == "reviewers":
        ranked = rank_reviewers(judgements, benchmark.reviewers, similarity, known)
    elif scored.task.kind == "clicks":
        clicks = benchmark.clicks[scored.task.name]
        ranked = rank_by_clicks(clicks, similarity, known, seed=scored.run.evaluation_seeds[0])
    else:
        ranked = rank_candidates(judgements, similarity, known)
    score_ranked(scored, benchmark, ranked)


def score_ranked(scored: Scored, benchmark: Benchmark, ranked: Ranked) -> None:
    """Score the ranking of each query.

    The value is the mean over the queries; for an adjusted metric, weighted by the inverse propensity of each query and
    normalised by the sum of the weights (Swaminathan & Joachims, 2015, "The Self-Normalized Estimator for
    Counterfactual Learning"). For a metric over folds, all folds have equal weight; without folds, it raises
    `UnscorableError`."""
    task = scored.task
    judgements, folds = benchmark.judgements[task.name], benchmark.folds.get(task.name)
    for metric, values in measure_rankings(judgements, ranked, task.metrics, task.relevant_from).items():
        weights = benchmark.weights[task.name] if metric.endswith(ADJUSTED) else dict.fromkeys(values, 1.0)
        if metric.endswith(OVER_FOLDS):
            if folds is None:
                lacks = f"have no test folds, over which {metric} is a mean"
                raise UnscorableError(f"The queries of the task {task.name} {lacks}.")
            sizes = Counter(folds[query] for query in values)
            weights = {query: 1 / sizes[folds[query]] for query in values}
        value = float(np.average(list(values.values()), weights=[weights[query] for query in values]))
        items: list[Item] = [(query, of_query, weights[query], [], []) for query, of_query in values.items()]
        scored.add(metric, value, items, len(judgements))


def score_search(task: Task, benchmark: Benchmark, queries: Vectors, blocks: Iterable[Vectors], run: Run) -> Scored:
    """Score the search of a collection, by minus the squared Euclidean distance or the cosine. Raises `UnscorableError`
    if a larger share of the queries and the collection than the run allows has no vector."""
    asked = [query for query in benchmark.judgements[task.name] if query in queries.rows]
    seen = set(asked)
    is_cosine = task.similarity == "cosine"
    of_queries = of_unit_length(queries.of(asked)) if is_cosine else queries.of(asked)

    def nearness() -> Iterator[Block]:
        for block in progress(blocks, of="Searched", unit="block"):
            names = list(block.rows)
            seen.update(names)
            if names and asked:
                documents = block.of(names)
                if is_cosine:
                    yield names, of_queries @ of_unit_length(documents).T
                else:
                    squares = (of_queries**2).sum(axis=1)[:, None] + (documents**2).sum(axis=1)[None, :]
                    yield names, 2 * of_queries @ documents.T - squares

    with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
        found = best_hits(asked, nearness(), benchmark.own.get(task.name, {}), depth_of(task))
    scored = count_missing(task, benchmark, seen, run)
    score_found(scored, benchmark, found)
    return scored


def score_collection(
    scored: Scored, benchmark: Benchmark, collection: Sequence[str], similarities: Iterable[NDArray[np.floating]]
) -> None:
    """Score the search of a collection by the similarities of all its documents to each query, in their order."""
    task = scored.task
    queries, own = list(benchmark.judgements[task.name]), benchmark.own.get(task.name, {})
    score_found(scored, benchmark, best_hits(queries, [(collection, similarities)], own, depth_of(task)))


def score_found(scored: Scored, benchmark: Benchmark, found: Ranked) -> None:
    """Score what each query found in a collection. If any found something, those that found nothing score 0."""
    queries = benchmark.judgements[scored.task.name] if found else {}
    score_ranked(scored, benchmark, {query: found.get(query, {}) for query in queries})


def depth_of(task: Task) -> int:
    """How many hits of each query the metrics of a search look at."""
    depths = (re.search(r"_(\d+)$", metric) for metric in task.metrics)
    return max(DEPTH, *(int(depth[1]) if depth else FULL_DEPTH for depth in depths))


def best_hits(queries: Sequence[str], blocks: Iterable[Block], own: Mapping[str, str], depth: int) -> Ranked:
    """The best documents of each query but its own; of equal ones at the end, those of the smallest digests."""
    kept = [[np.empty(0, np.object_), np.empty(0), np.empty(0, np.uint64)]] * len(queries)
    for documents, similarities in blocks:
        names, place = np.array(documents, dtype=np.object_), {name: at for at, name in enumerate(documents)}
        ties = np.array([_digest(name) for name in documents], dtype=np.uint64)
        for number, row in enumerate(similarities):
            allowed = np.arange(len(names)) != place.get(own.get(queries[number], ""), -1)
            block = (names[allowed], row[allowed], ties[allowed])
            hits = [np.concatenate(both) for both in zip(kept[number], block, strict=True)]
            if len(hits[1]) > depth:
                least = np.partition(hits[1], -depth)[-depth]
                above, equal = np.flatnonzero(hits[1] > least), np.flatnonzero(hits[1] == least)
                chosen = np.concatenate([above, equal[np.argsort(hits[2][equal])][: depth - len(above)]])
                hits = [part[chosen] for part in hits]
            kept[number] = hits
    return {
        query: dict(zip(names.tolist(), found.tolist(), strict=True))
        for query, (names, found, _) in zip(queries, kept, strict=True)
        if len(names)
    }


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def rank_by_clicks(clicks: Iterable[Click], similarity: Similarity, known: Collection[str], *, seed: int) -> Ranked:
    """Train a ranker on the clicks for training, and score the candidates of the others by it. Documents that are not
    `known` are left out. Raises `UnscorableError` if there is no pair to train on.

    SciDocs' recommendation (Cohan et al., 2020, "SPECTER", section 4): a feed-forward network of ten features, the
    cosine among them, scores the clicked paper above the others that were shown. The released code also divides the
    loss by a constant, and keeps the best of five epochs by the validation loss; here the last one is kept."""
    splits: dict[str, list[tuple[str, list[Click], Features]]] = {"train": [], "test": []}
    for (split, name), rows in groupby(clicks, key=lambda click: (click.split, click.name)):
        shown = [row for row in rows if row.query in known and row.candidate in known]
        if shown:
            angles = similarity(shown[0].query, [row.candidate for row in shown])
            columns = np.column_stack([np.array([row.features for row in shown]), angles])
            splits[split].append((name, shown, columns.astype(np.float32)))
    pairs = []  # The features of the clicked paper with those of each other one.
    for _, shown, columns in splits["train"]:
        clicked = [place for place, row in enumerate(shown) if row.is_clicked]
        others = [place for place, row in enumerate(shown) if not row.is_clicked][:NEGATIVES]
        pairs += [(columns[place], columns[other]) for place in clicked for other in others]
    if not pairs:
        raise UnscorableError("There is no click to train the ranker on whose papers have vectors.")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums over threads come out differently with their number
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "recommendation") % 2**63)
            ranker = _fit(*(torch.from_numpy(np.stack(side)) for side in zip(*pairs, strict=True)))
    finally:
        torch.set_num_threads(threads)
    ranked = {}
    with torch.inference_mode():
        for name, shown, columns in splits["test"]:
            scores = ranker(torch.from_numpy(columns))[:, 0].tolist()
            ranked[name] = {row.candidate: score for row, score in zip(shown, scores, strict=True)}
    return ranked


def _fit(better: "torch.Tensor", worse: "torch.Tensor") -> "torch.nn.Module":
    """The trained network, from pairs × features of the clicked papers and of the others."""
    import torch
    from torch import nn

    ranker = nn.Sequential(
        nn.Linear(better.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, 1), nn.Sigmoid()
    )
    optimiser = torch.optim.Adadelta(ranker.parameters(), lr=1.0, rho=DECAY)
    loss_of = nn.MarginRankingLoss(margin=MARGIN)
    ones = torch.ones(len(better), 1)
    for _ in range(EPOCHS):
        for places in torch.randperm(len(better)).split(BATCH):
            loss = loss_of(ranker(better[places]), ranker(worse[places]), ones[places])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(ranker.parameters(), LARGEST_NORM)
            optimiser.step()
    return ranker.eval()
