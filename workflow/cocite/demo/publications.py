"""A release read back: its papers that have a text, and who cites whom."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cocite.core.randomness import priorities
from cocite.core.written_ids import is_id
from cocite.demo.shards import Record, read_rows


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with title and abstract."""

    corpusid: int
    title: str
    abstract: str
    fields: tuple[str, ...]
    """Fields of study, the main one first; empty where unknown."""
    venue: str
    year: int | None
    citations: int
    authors: frozenset[int]

    @property
    def document(self) -> Record:
        """The paper as a document of a benchmark."""
        ids = {"doc_id": str(self.corpusid), "corpus_id": self.corpusid}
        return {**ids, "title": self.title, "abstract": self.abstract}


class Publications:
    """The papers of a release by corpus id, in rising order, and the citations among them."""

    def __init__(self, folder: Path) -> None:
        """Read a release. Raises `InputError` where the folder holds no shards."""
        abstracts: dict[int, str] = {}
        for row in _with_ids(folder / "abstracts", "corpusid"):
            corpusid = int(row["corpusid"])
            abstracts[corpusid] = max(abstracts.get(corpusid, ""), row.get("abstract") or "", key=len)
        rows = _with_ids(folder / "papers", "corpusid")
        papers = filter(None, (_paper(row, abstracts.get(int(row["corpusid"]), "")) for row in rows))
        self.papers = {paper.corpusid: paper for paper in sorted(papers, key=lambda paper: paper.corpusid)}
        self.cited: dict[int, set[int]] = defaultdict(set)
        self._citing: dict[int, set[int]] = defaultdict(set)
        for row in _with_ids(folder / "citations", "citingcorpusid", "citedcorpusid"):
            citing, cited = int(row["citingcorpusid"]), int(row["citedcorpusid"])
            if cited in self.papers:
                self.cited[citing].add(cited)
                self._citing[cited].add(citing)

    @cached_property
    def of_author(self) -> dict[int, list[Paper]]:
        """The papers of each author; empty where the records name no authors."""
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
        """The other papers of this one's venue; none where that is unknown."""
        venue = self.papers[corpusid].venue
        return {other for other, paper in self.papers.items() if venue and paper.venue == venue} - {corpusid}

    def documents(self, corpusids: Iterable[int]) -> list[Record]:
        """Papers as documents of a benchmark, by rising id."""
        return [self.papers[corpusid].document for corpusid in sorted(corpusids)]


def draw(ids: Iterable[int], count: int, seed: int, *names: str | int) -> list[int]:
    """A random sample of `count` ids (all, where there are fewer), in random order."""
    candidates = np.array(sorted(ids), dtype=np.int64)
    order = np.argsort(priorities(seed, " ".join(map(str, names)), candidates), kind="stable")
    return [int(corpusid) for corpusid in candidates[order[:count]]]


def _with_ids(folder: Path, *keys: str) -> Iterator[Record]:
    """The rows of a dataset that have all of these ids; ingest also omits the others, and counts them."""
    return (row for row in read_rows(folder) if all(is_id(row.get(key)) for key in keys))


def _paper(row: Record, abstract: str) -> Paper | None:
    """The paper, or None if it lacks title or abstract; anything else that its record lacks is unknown."""
    if not row.get("title") or not abstract:
        return None
    return Paper(
        corpusid=int(row["corpusid"]),
        title=row["title"],
        abstract=abstract,
        fields=tuple(field["category"] for field in row.get("s2fieldsofstudy") or [] if field.get("category")),
        venue=row.get("venue") or "",
        year=row.get("year"),
        citations=row.get("citationcount") or 0,
        authors=frozenset(
            int(author["authorId"]) for author in row.get("authors") or [] if is_id(author.get("authorId"))
        ),
    )
