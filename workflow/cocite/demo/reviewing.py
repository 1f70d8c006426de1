"""The generated task of matching reviewers: authors, known by their papers, are ranked for a paper.

A judgement is hard where only the paper's own venue counts, soft where its main field of study does.
"""

from collections import defaultdict

from cocite.demo.publications import Paper, Publications, draw

QUERIES, REVIEWERS, JUDGED = 40, 60, 25
_PAPERS_PER_REVIEWER = range(3, 9)

Reviewers = dict[str, list[Paper]]
Judgements = dict[tuple[int, str], tuple[int, int]]
"""The hard and the soft score, 0 or 1, of each pair of a paper and a reviewer."""


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
        nearest = sorted(scores, key=lambda name: scores[name], reverse=True)[:JUDGED]
        judgements |= {(query, name): scores[name] for name in sorted(nearest)}
    return judgements


def _scores(query: Paper, papers: list[Paper]) -> tuple[int, int]:
    same_venue = query.venue != "" and any(paper.venue == query.venue for paper in papers)
    same_field = any(paper.fields[:1] == query.fields[:1] for paper in papers)
    return int(same_venue), int(same_venue or same_field)
