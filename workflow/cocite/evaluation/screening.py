"""Simulated screening of systematic reviews: how soon does a learning ranker find the papers that a review included?

It starts with one included and one excluded paper, and learns from all that were screened: a logistic regression ranks
the others, and the best are screened next. All starts of a review advance together, as columns of matrices. The task
screening_citations adds how many of the included and of the excluded papers an unscreened one cites or is cited by, and
shares references with; weights are learned on the other reviews.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import expit
from threadpoolctl import threadpool_limits

from cocite.config.benchmarks.screening import CITATIONS, FIRST_TENTH, FOUND_EARLY, SAVED
from cocite.core.progress import progress
from cocite.core.randomness import generator
from cocite.core.searching import of_unit_length
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.scored import Item, Scored, UnscorableError, Vectors

Matrix = NDArray[np.floating]
Flags = NDArray[np.bool_]
Product = Callable[[Matrix], Matrix]
"""From values of papers, papers × starts, to the sums of those that each paper is similar to or linked with."""
BATCH, GROWTH = 10, 20
"""Papers that are screened before the ranking is learned again: ten, or a twentieth of those screened."""
C = 10.0
"""The inverse of the weight of the penalty, as scikit-learn has it."""
NEWTON, CONJUGATE, TOLERANCE = 5, 12, 1e-4
"""Largest numbers of steps of a fit and of each of their equations, and the share of the error that ends these."""
LENGTHS = 0.5 ** np.arange(7)
"""What a step is multiplied by, of which the best is taken."""
LARGEST_GRAM = 5_000
"""Papers of a review up to which the products of all pairs are kept (0.1 GB)."""
USUAL = np.array([1.65, 1.55, 1.35, 0.9, -1.1])
"""Weights of the standardised ranking and of the counts where there are too few reviews to learn them: those that nine
reviews of SYNERGY gave with TF-IDF. They were tested on no other."""
FEWEST, TAUGHT = 3, 5
"""Other reviews that weights are learned on, at least, and starts of each."""
METRICS: Mapping[str, Callable[[NDArray[np.int64], int], float]] = {
    FIRST_TENTH: lambda found, papers: 100 * float((found <= max(1, papers // 10)).mean()),
    SAVED: lambda found, papers: 95 - 100 * float(found[-(-95 * len(found) // 100) - 1]) / papers,
    FOUND_EARLY: lambda found, papers: 100 - 100 * float(found.mean()) / papers,
}
"""Each metric of the rising places, from 1, at which the included papers are screened, and the number of all papers."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """What is known of the papers of a review."""

    name: str
    included: Flags
    """papers × 1."""
    similar: Product
    linked: Sequence[Product] = ()
    """By citations, and by shared references; none if citations are not known."""


def score_screening(
    scored: Scored, benchmark: Benchmark, vectors: Sequence[Vectors], texts: Mapping[str, str] | None
) -> None:
    """Screen the papers of all reviews by their joined vectors and words, from the start of each evaluation seed."""
    seeds, cited = scored.run.evaluation_seeds, benchmark.references if scored.task.name.endswith(CITATIONS) else None
    reviews = []
    for name, judged in sorted(benchmark.judgements[scored.task.name].items()):
        papers = sorted(judged)
        features: list[Matrix | csr_array] = [_centred(each, papers) for each in vectors]
        if texts is not None:
            features.append(_words([texts[paper] for paper in papers]))
        included, similar = np.array([[judged[paper] > 0] for paper in papers]), _similar(features, len(papers))
        linked = _linked(papers, cited) if cited is not None else ()
        reviews.append(Review(name=name, included=included, similar=similar, linked=linked))
    with threadpool_limits(1):  # The last bits of products depend on how many threads there are.
        weights = {} if cited is None else learned_weights(reviews, seeds[:TAUGHT])
        places = [simulate(of, seeds, weights.get(of.name)) for of in progress(reviews, of="Reviews", unit="review")]
    found = [1 + np.sort(at[of.included[:, 0]], axis=0) for of, at in zip(reviews, places, strict=True)]
    for metric, measure in METRICS.items():
        for seed, at_seed in zip(seeds, zip(*(of.T for of in found), strict=True), strict=True):
            items: list[Item] = []
            for review, at in zip(reviews, at_seed, strict=True):
                size = len(review.included)
                known = ([str(place) for place in at], [str(size)]) if metric == FOUND_EARLY else ([], [])
                items.append((review.name, measure(at, size), 1.0, *known))
            scored.add(metric, float(np.mean([item[1] for item in items])), items, len(items), seed=seed)


def _centred(vectors: Vectors, papers: Sequence[str]) -> Matrix:
    """Vectors of length 1 around their mean; the mean itself for papers without one."""
    is_known = np.array([paper in vectors.rows for paper in papers])
    centred = np.zeros((len(papers), vectors.matrix.shape[1]))
    centred[is_known] = of_unit_length(vectors.of([paper for paper in papers if paper in vectors.rows]))
    centred[is_known] -= centred[is_known].mean(axis=0)
    return centred


def _words(texts: Sequence[str]) -> csr_array:
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        found = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), stop_words="english").fit_transform(texts)
    except ValueError:
        raise UnscorableError("A review has no paper with a word that is no stop word.") from None
    return csr_array(found)


def _similar(features: Sequence[Matrix | csr_array], papers: int) -> Product:
    """The mean of the products of papers by each of some features, plus 1 for a constant."""
    if papers > LARGEST_GRAM:
        return lambda values: sum(f @ (f.T @ values) for f in features) / len(features) + values.sum(axis=0)
    gram = np.ones((papers, papers), np.float32)
    for alike in (f @ f.T for f in features):
        gram += (alike.toarray() if isinstance(alike, csr_array) else alike) / len(features)
    return lambda values: gram @ values.astype(np.float32)


def _linked(papers: Sequence[str], cited: Mapping[str, Sequence[int]]) -> Sequence[Product]:
    """The papers that cite each other, and those that share references, each by the root of how many cite it."""
    columns = {int(paper): column for column, paper in enumerate(papers)}
    links = [(row, each) for row, paper in enumerate(papers) for each in cited.get(paper, ())]
    rows = np.array([row for row, _ in links], np.int64)
    at = np.array([columns.setdefault(each, len(columns)) for _, each in links], np.int64)
    references = csr_array((np.ones(len(at)), (rows, at)), shape=(len(papers), len(columns)))
    within = references[:, : len(papers)]
    direct = (within + within.T).sign()
    shared = references @ diags_array(1 / np.sqrt(np.maximum(references.sum(axis=0), 1)))
    own = shared.power(2).sum(axis=1)[:, None]
    return (lambda values: direct @ values), (lambda values: shared @ (shared.T @ values) - own * values)


def simulate(
    review: Review, seeds: Sequence[int], weights: Matrix | None = None, pools: list[tuple[Matrix, Flags]] | None = None
) -> NDArray[np.int64]:
    """The places at which papers are screened, from 0, papers × starts; the number of papers for excluded ones that are
    left when all included ones are found. `weights` are those of the ranking and of the counts of citations. `pools`
    receives, more and more rarely, what is known of the unscreened papers of each start, and whether each is included.
    """
    included, papers = review.included, len(review.included)
    places, steps, screened = np.full((papers, len(seeds)), papers), 0, 2
    for column, seed in enumerate(seeds):
        places[start_of(review.name, included[:, 0], seed), column] = 0, 1
    solution: Matrix = np.zeros(places.shape)
    outputs = solution
    while screened < papers and (places[included[:, 0]] == papers).any():
        seen = places < papers
        solution, outputs = _fit(review, seen, solution, outputs)
        ranking = outputs
        if weights is not None or pools is not None:
            known = _known(review, seen, outputs)
            ranking = outputs if weights is None else np.tensordot(weights, known, 1)
            if pools is not None and not steps & (steps - 1):
                pools += [(known[:, of, column].T, included[of, 0]) for column, of in enumerate(~seen.T)]
        size = min(max(BATCH, screened // GROWTH), papers - screened)
        best = np.argsort(np.where(seen, np.inf, -ranking), axis=0, kind="stable")[:size]
        np.put_along_axis(places, best, np.arange(screened, screened + size)[:, None], axis=0)
        screened, steps = screened + size, steps + 1
    return places


def start_of(name: str, included: Flags, seed: int) -> list[int]:
    """The included and the excluded paper that a simulation of a review starts with."""
    draw = generator(seed, "screening", name)
    return [int(draw.choice(np.flatnonzero(of))) for of in (included, ~included)]


def _fit(review: Review, seen: Flags, solution: Matrix, outputs: Matrix) -> tuple[Matrix, Matrix]:
    """The regressions on what is seen, papers × starts: their weights by paper, and their outputs for all papers. By
    Newton's method with conjugate gradients from products of papers, in a third of liblinear's time on nine reviews."""
    included, similar = review.included, review.similar
    of_class = [seen & included, seen & ~included]
    cost = sum(of * (seen.sum(axis=0) / (2 * of.sum(axis=0))) for of in of_class)
    sign = np.where(included, 1.0, -1.0)
    for _ in range(NEWTON):
        probable = expit(outputs)
        error, curvature = cost * (probable - included) + solution / C, cost * probable * (1 - probable)
        of_error = similar(error)
        toward, of_toward, norm = error, of_error, (error * of_error).sum(axis=0)
        step, change, enough = np.zeros_like(error), np.zeros_like(error), TOLERANCE * norm
        for _ in range(CONJUGATE):
            bent = curvature * of_toward + toward / C
            length = _ratio(norm, (of_toward * bent).sum(axis=0))
            step, change, error = step + length * toward, change + length * of_toward, error - length * bent
            of_error, before = similar(error), norm
            norm = (error * of_error).sum(axis=0)
            if (norm <= enough).all():
                break
            toward, of_toward = (a + _ratio(norm, before) * b for a, b in ((error, toward), (of_error, of_toward)))
        tried = [(solution - length * step, outputs - length * change) for length in LENGTHS]
        losses = [(cost * np.logaddexp(0, -sign * o) + s * o / (2 * C)).sum(axis=0) for s, o in tried]
        best = LENGTHS[np.argmin(losses, axis=0)]
        solution, outputs = solution - best * step, outputs - best * change
        if (enough <= TOLERANCE**2 * seen.sum(axis=0)).all():
            break
    return solution, outputs


def _ratio(above: Matrix, below: Matrix) -> Matrix:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _known(review: Review, seen: Flags, outputs: Matrix) -> Matrix:
    """The standardised ranking, and of each kind of links the logarithms of the included papers that each paper is
    linked with, and of the excluded ones, whose number is scaled to that of the included: counts × papers × starts."""
    included, excluded = ((seen & of).astype(float) for of in (review.included, ~review.included))
    ratio = included.sum(axis=0) / excluded.sum(axis=0)
    counts = [np.log1p(count) for link in review.linked for count in (link(included), link(excluded) * ratio)]
    return np.array([(outputs - outputs.mean(axis=0)) / np.maximum(outputs.std(axis=0), 1e-9), *counts])


def learned_weights(reviews: Sequence[Review], seeds: Sequence[int]) -> dict[str, Matrix]:
    """The weights for each review, learned in the pools of all others, in which classes and reviews weigh alike."""
    from sklearn.linear_model import LogisticRegression

    weights = {review.name: USUAL for review in reviews}
    if len(reviews) <= FEWEST:
        return weights
    examples = {}
    for review in progress(reviews, of="Reviews to learn from", unit="review"):
        pools: list[tuple[Matrix, Flags]] = []
        simulate(review, seeds, pools=pools)
        weighted = []
        for known, included in pools:
            if included.any() and not included.all():
                shares = np.where(included, 0.5 / included.sum(), 0.5 / (~included).sum())
                weighted.append((known - shares @ known, included, shares))  # around the mean of both classes
        if weighted:
            points, labels, shares = map(np.concatenate, zip(*weighted, strict=True))
            examples[review.name] = points, labels, shares / len(weighted)
    for review in reviews:
        others = [of for name, of in examples.items() if name != review.name]
        if len(others) >= FEWEST:
            points, labels, shares = map(np.concatenate, zip(*others, strict=True))
            model = LogisticRegression(C=1e3, fit_intercept=False).fit(points, labels, sample_weight=shares)
            weights[review.name] = model.coef_[0]
    return weights
