"""The generated ranking tasks: a query, five relevant papers and 25 others, which authors or citations tell apart.

Each has the name of the SciRepEval task whose format it has, whatever it asks. In the task of matching reviewers,
authors, known by their papers, are ranked for a paper: a judgement is hard where only the paper's own venue counts, and
soft where its main field of study does.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from cocite.demo.publications import Paper, Publications, draw
from cocite.ground.errors import InputError

QUERIES, OTHERS = 40, 25
REVIEWERS, JUDGED_REVIEWERS = 60, 25
_PAPERS_PER_REVIEWER = range(3, 9)
_RELEVANT = {1: (5,), 2: (3, 2)}
"""Candidates of each grade, the best first, by the number of grades."""
_POOL = 600
"""Papers that the others come from: few, since every document of a benchmark is embedded by every model."""

Row = dict[str, Any]
Grades = Callable[[int], tuple[set[int], ...]]
"""From a query to the relevant papers: a set for each grade, the best first, disjoint."""
Judged = dict[int, dict[int, int]]
"""The score of each candidate of each query."""
Reviewers = dict[str, list[Paper]]
Judgements = dict[tuple[int, str], tuple[int, int]]
"""The hard and the soft score, 0 or 1, of each pair of a paper and a reviewer."""


def judge_rankings(publications: Publications, seed: int) -> dict[str, Judged]:
    """The judgements of every task by its name; scores go from 0 for the others to 1 or 2.

    Where no paper's record has authors, there is no same_author.
    """
    cited, cocited = publications.cited, publications.cocited
    tasks: dict[str, Grades] = {
        **({"same_author": _same_author(publications)} if publications.have_authors else {}),
        "relish": lambda query: (cocited(query), _same_venue(publications, query) - cocited(query)),
        "scidocs_cite": lambda query: (cited[query],),
        "scidocs_cocite": lambda query: (cocited(query),),
        "search": lambda query: (cited[query], cocited(query) - cited[query]),
    }
    return {name: _judge(publications, name, grades, seed) for name, grades in tasks.items()}


def judgement_rows(judged: Judged, query_ids: dict[int, str]) -> list[Row]:
    """One row for each query and candidate; `query_ids` names the queries that do not go by a corpus id."""
    return [
        {"query_id": query_ids.get(query, str(query)), "cand_id": str(candidate), "score": score}
        for query, scores in judged.items()
        for candidate, score in scores.items()
    ]


def document_rows(publications: Publications, *tasks: Judged) -> list[Row]:
    """The texts of all queries and candidates, each once."""
    ids = {paper for judged in tasks for query, scores in judged.items() for paper in (query, *scores)}
    return [publications.papers[paper].document for paper in sorted(ids)]


def pair_rows(publications: Publications, judged: Judged) -> list[Row]:
    """One row for each query: its document and those of its candidates."""
    return [
        {"query": publications.papers[query].document, "candidates": _candidates(publications, scores)}
        for query, scores in judged.items()
    ]


def search_rows(publications: Publications, judged: Judged, query_ids: dict[int, str]) -> list[Row]:
    """One row for each query: the title of a paper that is not among the candidates, and their documents."""
    return [
        {
            "doc_id": query_ids[query],
            "query": publications.papers[query].title,
            "candidates": _candidates(publications, scores),
        }
        for query, scores in judged.items()
    ]


def choose_reviewers(publications: Publications, seed: int) -> Reviewers:
    """Authors of three to eight papers, with these papers."""
    papers: dict[int, list[Paper]] = defaultdict(list)
    for paper in publications.papers.values():
        for author in paper.authors:
            papers[int(author)].append(paper)
    known = [author for author in papers if len(papers[author]) in _PAPERS_PER_REVIEWER]
    return {f"r{author}": papers[author] for author in draw(known, REVIEWERS, seed, "demo", "reviewers")}


def judge_reviewers(publications: Publications, reviewers: Reviewers, seed: int) -> Judgements:
    """Forty papers of none of the reviewers, each with the 25 reviewers that are nearest in venue and field."""
    written = {paper.corpusid for papers in reviewers.values() for paper in papers}
    chosen = [paper for paper in publications.papers.values() if paper.corpusid not in written and paper.fields]
    judgements: Judgements = {}
    for query in draw((paper.corpusid for paper in chosen), QUERIES, seed, "demo", "submissions"):
        scores = {name: _scores(publications.papers[query], papers) for name, papers in reviewers.items()}
        nearest = sorted(scores, key=lambda name: scores[name], reverse=True)[:JUDGED_REVIEWERS]
        judgements |= {(query, name): scores[name] for name in sorted(nearest)}
    return judgements


def _candidates(publications: Publications, scores: dict[int, int]) -> list[Row]:
    papers = publications.papers
    return [
        {**papers[paper].document, "venue": papers[paper].venue, "year": papers[paper].year, "score": score}
        for paper, score in scores.items()
    ]


def _judge(publications: Publications, name: str, grades: Grades, seed: int) -> Judged:
    """Forty queries (fewer, if not as many have enough relevant papers) with their candidates, by rising id."""
    judged: Judged = {}
    sample = draw(publications.papers, len(publications.papers), seed, "demo", "benchmark")
    for query in sample:
        relevant = grades(query)
        wanted = _RELEVANT[len(relevant)]
        if all(len(papers) >= count for papers, count in zip(relevant, wanted, strict=True)):
            others = set(sample[:_POOL]) - {query}.union(*relevant)
            scores = dict.fromkeys(draw(others, OTHERS, seed, "demo", name, query), 0)
            for grade, (papers, count) in enumerate(zip(relevant, wanted, strict=True)):
                chosen = draw(papers, count, seed, "demo", name, query)
                scores |= dict.fromkeys(chosen, len(relevant) - grade)
            judged[query] = dict(sorted(scores.items()))
        if len(judged) == QUERIES:
            return judged
    if not judged:
        raise InputError(f"--release: no paper has enough relevant ones for {name}; take more papers or fewer topics.")
    return judged


def _same_author(publications: Publications) -> Grades:
    papers = publications.papers
    by_author: dict[str, set[int]] = defaultdict(set)
    for paper in papers.values():
        for author in paper.authors:
            by_author[author].add(paper.corpusid)
    return lambda query: (set().union(*(by_author[author] for author in papers[query].authors)) - {query},)


def _same_venue(publications: Publications, query: int) -> set[int]:
    papers = publications.papers
    venue = papers[query].venue
    return {paper for paper in papers if venue and papers[paper].venue == venue} - {query}


def _scores(query: Paper, papers: list[Paper]) -> tuple[int, int]:
    same_venue = query.venue != "" and any(paper.venue == query.venue for paper in papers)
    same_field = any(paper.fields[:1] == query.fields[:1] for paper in papers)
    return int(same_venue), int(same_venue or same_field)
