"""Writes a small benchmark about a release, generated or real, in the layout of SciRepEval and with all its formats.

    <folder>/metadata/<config>/evaluation.jsonl        the texts
    <folder>/metadata/reviewers/metadata.jsonl         reviewers and their papers
    <folder>/test/<config>/{train,test}.jsonl          labels and judgements
    <folder>/test/paper_reviewer_matching/test_{hard,soft}.jsonl

Each task has the name of the SciRepEval task whose format and metric it has; its question is generated. Without authors
in the records there are neither reviewers nor same_author, without fields of study neither biomimicry nor fos. A
ranking task has queries with five relevant papers and 25 others. To match reviewers, authors, known by their papers,
are ranked for a paper: a judgement is hard if only the paper's own venue counts, and soft if its main field counts too.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from cocite.core.atomic import atomic_path, write_text
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed
from cocite.core.randomness import smallest
from cocite.core.written_ids import is_id
from cocite.demo.release import Record, read_rows

TRAIN, TEST = 300, 150
QUERIES, OTHERS = 40, 25
REVIEWERS, JUDGED_REVIEWERS = 60, 25
_PAPERS_PER_REVIEWER = range(3, 9)
_RELEVANT = {1: (5,), 2: (3, 2)}
"""Candidates of each grade, the best first, by the number of grades."""
_POOL = 600
"""Papers that the others come from: few, since every document of a benchmark is embedded by every model."""
_VENUES = 6
_LIVING = {"Biology", "Medicine"}

Grades = Callable[[int], tuple[set[int], ...]]
"""From a query to the relevant papers: a set for each grade, the best first, disjoint."""


class Paper(NamedTuple):
    """A paper with title and abstract; its main field of study is the first."""

    corpusid: int
    document: Record
    """The paper as a document of a benchmark."""
    fields: tuple[str, ...]
    venue: str
    year: int | None
    citations: int
    authors: frozenset[int]


class Publications:
    """The papers of a release by corpus id, in rising order, and the citations among them."""

    def __init__(self, folder: Path) -> None:
        """Read a release. Raises `InputError` if the folder has no shards."""
        abstracts: dict[int, str] = {}
        for row in _with_ids(folder / "abstracts", "corpusid"):
            corpusid = int(row["corpusid"])
            abstracts[corpusid] = max(abstracts.get(corpusid, ""), row.get("abstract") or "", key=len)
        papers: dict[int, Paper] = {}
        for row in _with_ids(folder / "papers", "corpusid"):
            corpusid, title = int(row["corpusid"]), row.get("title")
            if title and (abstract := abstracts.get(corpusid)):
                fields = (field.get("category") for field in row.get("s2fieldsofstudy") or [])
                authors = (author.get("authorId") for author in row.get("authors") or [])
                papers[corpusid] = Paper(
                    corpusid,
                    {"doc_id": str(corpusid), "corpus_id": corpusid, "title": title, "abstract": abstract},
                    fields=tuple(filter(None, fields)),
                    venue=row.get("venue") or "",
                    year=row.get("year"),
                    citations=row.get("citationcount") or 0,
                    authors=frozenset(map(int, filter(is_id, authors))),
                )
        self.papers = dict(sorted(papers.items()))
        self.cited: dict[int, set[int]] = defaultdict(set)
        self._citing: dict[int, set[int]] = defaultdict(set)
        for row in _with_ids(folder / "citations", "citingcorpusid", "citedcorpusid"):
            citing, cited = int(row["citingcorpusid"]), int(row["citedcorpusid"])
            if cited in self.papers:
                self.cited[citing].add(cited)
                self._citing[cited].add(citing)

    @cached_property
    def of_author(self) -> dict[int, list[Paper]]:
        """The papers of each author; empty if the records name no authors."""
        papers: dict[int, list[Paper]] = defaultdict(list)
        for paper in self.papers.values():
            for author in paper.authors:
                papers[author].append(paper)
        return papers

    def cocited(self, corpusid: int) -> set[int]:
        """The papers that are cited together with this one by at least two papers."""
        counts = Counter(other for citing in self._citing[corpusid] for other in self.cited[citing])
        return {other for other, count in counts.items() if count >= 2 and other != corpusid}

    def by_same_authors(self, corpusid: int) -> set[int]:
        """The other papers of this one's authors."""
        authors = self.papers[corpusid].authors
        return {paper.corpusid for author in authors for paper in self.of_author[author]} - {corpusid}

    def of_same_venue(self, corpusid: int) -> set[int]:
        """The other papers of this one's venue; none if that is unknown."""
        venue = self.papers[corpusid].venue
        return {other for other, paper in self.papers.items() if venue and paper.venue == venue} - {corpusid}

    def documents(self, corpusids: Iterable[int]) -> list[Record]:
        """Papers as documents of a benchmark, by rising id."""
        return [self.papers[corpusid].document for corpusid in sorted(corpusids)]


def generate_benchmark(
    release: Annotated[Path, typer.Option(help="Folder of a release, generated or real.")],
    output: Output,
    *,
    seed: Seed,
) -> None:
    """Write the benchmark about a release.

    Raises `InputError` if there is none.
    """
    publications = Publications(release)
    with atomic_path(output) as folder:
        files = _supervised_files(publications, seed) | _ranking_files(publications, seed)
        if publications.of_author:
            files |= _reviewing_files(publications, seed)
        for path, rows in files.items():
            write_text(folder / path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _supervised_files(publications: Publications, seed: int) -> dict[str, list[Record]]:
    """Classification and regression: 300 papers to train on and 150 to test; two to one if there are fewer."""
    papers = publications.papers
    fields = sorted({field for paper in papers.values() for field in paper.fields})
    counts = Counter(paper.venue for paper in papers.values() if paper.venue)
    venues = sorted(sorted(counts), key=lambda name: -counts[name])[:_VENUES]
    label_of: dict[str, Callable[[Paper], int | float | list[int] | None]] = {
        "biomimicry": lambda paper: int(paper.fields[0] in _LIVING) if paper.fields else None,
        "drsm": lambda paper: venues.index(paper.venue) if paper.venue in venues else None,
        "fos": lambda paper: [int(field in paper.fields) for field in fields] if paper.fields else None,
        "cite_count": lambda paper: math.log1p(paper.citations),
        "pub_year": lambda paper: paper.year,
    }
    files = {}
    for task, label in label_of.items():
        known = [corpusid for corpusid, paper in papers.items() if label(paper) is not None]
        chosen = [papers[corpusid] for corpusid in draw(known, TRAIN + TEST, seed, "demo", "benchmark")]
        split = round(len(chosen) * TRAIN / (TRAIN + TEST))
        if chosen[split:]:
            rows = [{"paper_id": str(paper.corpusid), "label": label(paper)} for paper in chosen]
            files[f"metadata/{task}/evaluation.jsonl"] = [
                {**paper.document, "venue": paper.venue, "fields": list(paper.fields)} for paper in chosen
            ]
            files[f"test/{task}/train.jsonl"], files[f"test/{task}/test.jsonl"] = rows[:split], rows[split:]
    return files


def _ranking_files(publications: Publications, seed: int) -> dict[str, list[Record]]:
    """The texts and the judgements of every task; scores go from 0 for the others to 1 or 2.

    The queries of `search` are titles with separate ids. Raises `InputError` if no paper has enough relevant ones.
    """
    papers, cited, cocited = publications.papers, publications.cited, publications.cocited
    tasks: dict[str, Grades] = {
        "same_author": lambda query: (publications.by_same_authors(query),),
        "relish": lambda query: (cocited(query), publications.of_same_venue(query) - cocited(query)),
        "scidocs_cite": lambda query: (cited[query],),
        "scidocs_cocite": lambda query: (cocited(query),),
        "search": lambda query: (cited[query], cocited(query) - cited[query]),
    }
    if not publications.of_author:
        del tasks["same_author"]
    judged = {name: _judge(publications, name, grades, seed) for name, grades in tasks.items()}
    names = {query: f"q{place}" for place, query in enumerate(judged["search"])}

    def with_candidates(task: str, described: Callable[[int], Record]) -> list[Record]:
        def candidate(paper: Paper, score: int) -> Record:
            return {**paper.document, "venue": paper.venue, "year": paper.year, "score": score}

        return [
            {**described(query), "candidates": [candidate(papers[paper], score) for paper, score in scores.items()]}
            for query, scores in judged[task].items()
        ]

    def texts_of(*of: str) -> list[Record]:
        return publications.documents(
            {paper for task in of for query, scores in judged[task].items() for paper in (query, *scores)}
        )

    texts = {
        "relish": texts_of("relish"),
        "scidocs_view_cite_read": texts_of("scidocs_cite", "scidocs_cocite"),
        "search": with_candidates(
            "search", lambda query: {"doc_id": names[query], "query": papers[query].document["title"]}
        ),
    }
    if "same_author" in judged:
        texts["same_author"] = with_candidates("same_author", lambda query: {"query": papers[query].document})
    return {f"metadata/{name}/evaluation.jsonl": rows for name, rows in texts.items()} | {
        f"test/{task}/test.jsonl": _judgements(scores, names if task == "search" else {})
        for task, scores in judged.items()
    }


def _reviewing_files(publications: Publications, seed: int) -> dict[str, list[Record]]:
    """Forty papers of none of the reviewers, each with the 25 reviewers that are nearest in venue and field.

    Reviewers are authors of three to eight papers; their hard and soft scores are 0 or 1.
    """
    of_author = publications.of_author
    known = [author for author in of_author if len(of_author[author]) in _PAPERS_PER_REVIEWER]
    reviewers = {f"r{author}": of_author[author] for author in draw(known, REVIEWERS, seed, "demo", "reviewers")}
    written = {paper.corpusid for papers in reviewers.values() for paper in papers}
    others = [key for key, paper in publications.papers.items() if key not in written and paper.fields]
    judged: dict[str, dict[int, dict[str, int]]] = {"hard": {}, "soft": {}}
    for number in draw(others, QUERIES, seed, "demo", "submissions"):
        query = publications.papers[number]
        scores: dict[str, tuple[int, int]] = {}  # hard and soft
        for name, papers in reviewers.items():
            same_venue = query.venue != "" and any(paper.venue == query.venue for paper in papers)
            same_field = any(paper.fields[:1] == query.fields[:1] for paper in papers)
            scores[name] = int(same_venue), int(same_venue or same_field)
        nearest = sorted(sorted(scores, key=lambda name: scores[name], reverse=True)[:JUDGED_REVIEWERS])
        for place, of_split in enumerate(judged.values()):
            of_split[number] = {name: scores[name][place] for name in nearest}
    return {
        "metadata/paper_reviewer_matching/evaluation.jsonl": publications.documents(written | judged["hard"].keys()),
        "metadata/reviewers/metadata.jsonl": [
            {"r_id": name, "papers": [str(paper.corpusid) for paper in papers]} for name, papers in reviewers.items()
        ],
        **{f"test/paper_reviewer_matching/test_{split}.jsonl": _judgements(of, {}) for split, of in judged.items()},
    }


def _judgements(judged: Mapping[int, Mapping[Any, int]], names: Mapping[int, str]) -> list[Record]:
    """One row for each query and candidate; `names` are of the queries that do not go by a corpus id."""
    return [
        {"query_id": names.get(query, str(query)), "cand_id": str(candidate), "score": score}
        for query, scores in judged.items()
        for candidate, score in scores.items()
    ]


def _judge(publications: Publications, name: str, grades: Grades, seed: int) -> dict[int, dict[int, int]]:
    """Up to forty queries with enough relevant papers, and the scores of their candidates by rising id."""
    judged: dict[int, dict[int, int]] = {}
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
            break
    if not judged:
        raise InputError(f"--release: no paper has enough relevant ones for {name}; take more papers or fewer topics.")
    return judged


def draw(ids: Iterable[int], count: int, seed: int, *names: str | int) -> list[int]:
    """A random sample of `count` ids (all, if there are fewer), in random order."""
    candidates = np.array(sorted(ids), dtype=np.int64)
    return [int(corpusid) for corpusid in smallest(candidates, count, seed, " ".join(map(str, names)))]


def _with_ids(folder: Path, *keys: str) -> Iterator[Record]:
    """The rows of a dataset that have all of these ids; ingest also omits the others, and counts them."""
    return (row for row in read_rows(folder) if all(is_id(row.get(key)) for key in keys))
