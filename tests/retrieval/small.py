"""A small hold-out with vectors, texts and links, and its candidates by plain numpy, all papers at once."""

from dataclasses import dataclass, field
from pathlib import Path

import bm25s
import numpy as np
from tests.evaluation.folders import write_paper_vectors
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.config.embeddings import Links
from cocite.config.index import Lists
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.neighbours.adjacency import build_adjacency
from cocite.retrieval.candidates import find_candidates

WORDS = ("graph", "network", "citation", "paper", "model", "search", "vector", "index", "user", "study", "rank")
RUNS = {"one": 5, "two": 3}
"""Models, and the dimensions of their vectors."""
LISTED = 8
"""Lists that are shorter than the corpus."""
VOTES = {"votes_10": (3, 0, 0), "votes_30": (5, 0.5, 0.3), "votes_100": (9, 0, 0)}
NAMES = [*(f"cosine {name}" for name in RUNS), "words", *VOTES, "citations", "without links", "age"]
"""What is known of a candidate."""
COLUMNS = [*NAMES, *(f"rank {name}" for name in NAMES[:3])]
"""What ranks it."""


@dataclass
class Small:
    """Papers 10, 20, …, of which the first are held out; every third query and paper is of after the cut."""

    folder: Path
    papers: int = 120
    queries: int = 40
    seed: int = 1
    edges: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self):
        random = np.random.default_rng(self.seed)
        self.ids = [10 * (1 + number) for number in range(self.papers)]
        self.held_out = self.ids[: self.queries]
        self.later = self.held_out[::3]
        self.searched = [each for each in self.ids if each not in self.later]
        self.vectors = {name: {each: random.standard_normal(of) for each in self.ids} for name, of in RUNS.items()}
        self.texts = {each: (" ".join(random.choice(WORDS, 4)), " ".join(random.choice(WORDS, 9))) for each in self.ids}
        linked = self.ids[self.queries : -20]  # the last papers have no links
        pairs = {(int(a), int(b)) for a, b in random.choice(linked, (3 * self.papers, 2)) if a < b}
        well_known = linked[-8:]
        pairs |= {(int(a), int(random.choice(well_known))) for a in linked[:-8]}
        self.edges = sorted(pairs)
        self.citations = {each: sum(b == each for _, b in self.edges) for each in self.searched}
        self.relevant = {}
        for q in self.held_out:  # some of the nearest by one model, some that everybody cites, and others
            nearest = sorted(self.searched, key=lambda p: -np.dot(*(self.vectors["one"][each] for each in (q, p))))[:9]
            drawn = [int(p) for of in (nearest, well_known, self.searched) for p in random.choice(of, 3)]
            self.relevant[q] = sorted({*drawn} - {q})
        self.splits = {q: "selection" if at % 4 else "test" for at, q in enumerate(self.held_out)}
        self.years = {each: 2000 + int(random.integers(20)) for each in self.ids}
        self.years |= dict.fromkeys([*self.ids[1::9]], None)
        self.judged = {q: {str(p): 0 for p in self.searched[-5:]} for q in self.held_out if self.splits[q] == "test"}

    def write(self):
        """All tables that `find` reads."""
        for name, vectors in self.vectors.items():
            write_paper_vectors(self.folder / name, vectors)
        for bucket in (0, 1):
            of_bucket = {each: text for each, text in self.texts.items() if each // 10 % 2 == bucket}
            years = [self.years[each] for each in of_bucket]
            write_table(self.folder / f"papers/{bucket}.parquet", "papers", papers_table(of_bucket, year=years))
        edges = [(*edge, 1.0) for edge in self.edges]
        write_rows(self.folder / "edges.parquet", "edges", "source target weight", edges)
        self.link()
        rows = [("cite_search", q, p, 1, self.splits[q]) for q, papers in self.relevant.items() for p in papers]
        tables = self.folder / "tables"
        write_rows(tables / "searches.parquet", "searches", "task query paper relevance split", rows)
        popularity = [(each, self.citations[each]) for each in self.searched]
        write_rows(tables / "popularity.parquet", "popularity", "corpusid citations", popularity)
        judgements = {"cite": {str(q): candidates for q, candidates in self.judged.items()}}
        write_tables(Benchmark(judgements=judgements), tables)
        return self

    def write_citations(self, name, citations):
        """The table citations, in a file."""
        rows = [(*ends, False, []) for ends in sorted(citations)]
        return write_rows(self.folder / name, "citations", "citing cited influential intents", rows)

    def link(self):
        """Lay the links of the edges out."""
        build_adjacency([self.folder / "edges.parquet"], Links(), memory_mb=1000, output=self.folder / "links")

    def find(self, words=True, models=tuple(RUNS)):
        """The table candidates."""
        vectors, output = [self.folder / name for name in models], self.folder / "candidates.parquet"
        tables = {name: self.folder / name for name in ("tables", "papers", "links")}
        find_candidates(vectors, **tables, settings=Lists(words=words), tasks="cite", output=output)
        return read_table(output, "candidates")

    def plain(self, listed, votes, papers=None):
        """What each query finds, and the columns of the table of each pair, by plain numpy. Ages count from the
        newest of some papers, or of those that are searched."""
        newest = max(self.years[each] or 0 for each in papers or self.searched)
        unit = {}
        for name, of in self.vectors.items():
            exact = {each: np.asarray(vector, np.float32).astype(float) for each, vector in of.items()}
            unit[name] = {each: vector / np.linalg.norm(vector) for each, vector in exact.items()}
        links = {each: {b for pair in self.edges if each in pair for b in pair if b != each} for each in self.ids}
        texts = [" ".join(self.texts[each]) for each in self.ids]
        tokens = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
        index = bm25s.BM25(dtype="float64")
        searched = [of for each, of in zip(self.ids, tokens, strict=True) if each in self.searched]
        index.index(searched, show_progress=False)
        found, rows = {}, {}
        for query in self.held_out:
            others = [each for each in self.searched if each != query]
            cosines = {p: [float(unit[name][query] @ unit[name][p]) for name in RUNS] for p in others}
            bm25 = dict(zip(self.searched, index.get_scores(tokens[self.ids.index(query)]), strict=True))
            bm25.pop(query, None)
            nearest = {p for at in range(len(RUNS)) for p in sorted(others, key=lambda p: -cosines[p][at])[:listed]}
            hits = sorted((p for p in nearest if links[p]), key=lambda p: -np.mean(cosines[p]))
            received = {}
            for name, (k, voter, receiver) in votes.items():
                weights = np.exp([np.mean(cosines[p]) / 0.1 for p in hits[:k]])
                weights /= weights.sum()
                worth = {h: w / len(links[h]) ** voter for h, w in zip(hits[:k], weights, strict=True)}
                votes_of = {p: sum(vote for h, vote in worth.items() if p in links[h]) for p in others}
                received[name] = {p: votes_of[p] / max(1, len(links[p])) ** receiver for p in others}
            voted = sorted((p for p in others if received["votes_100"][p]), key=lambda p: -received["votes_100"][p])
            named = {p for p in sorted(others, key=lambda p: -bm25[p])[:listed] if bm25[p] > 0}
            found[query] = nearest | named | set(voted[:listed])
            for p in others:
                most = {name: max(of[each] for each in found[query]) for name, of in received.items()}
                rows[query, p] = {
                    "cosines": cosines[p],
                    "words": bm25[p] / max(bm25.values()) if max(bm25.values()) else None,
                    **{name: of[p] / most[name] if links[p] else None for name, of in received.items()},
                    "citations": self.citations[p],
                    "age": newest - self.years[p] if self.years[p] else None,
                }
        return found, rows
