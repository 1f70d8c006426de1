"""The tasks of held-out papers: relevant papers among random ones, or among others cited as often; a title search.

Relevant papers are often cited, random ones are not: a ranking only by citations beats chance among random candidates.
Among candidates from the same class of citations it does not.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.benchmark import HoldoutSettings, MadeOfHeldOut, TitleSearch
from cocite.config.benchmarks.holdout import MATCHED, TITLE_SEARCH
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS
from cocite.core.randomness import generator, priorities, smallest
from cocite.core.written_ids import NOT_A_WORD, Ids, distinct, look_up
from cocite.evaluation.benchmark import Benchmark, Document, Judgements

CLASSES_IN_A_UNIT = 3
LARGEST_POOL, LARGEST_CLASS = 1_000_000, 200_000
"""Papers that candidates are drawn from: of all, and of each class."""
ROWS_AT_ONCE = 100_000

LinkedBy = Mapping[int, Ids]
"""The papers that each query is linked with, ascending."""
REPEATED = f"task {TITLE_SEARCH.name}: title that its abstract repeats"
WORDLESS = f"task {TITLE_SEARCH.name}: title or abstract without a word"
SHARED = f"task {TITLE_SEARCH.name}: title or abstract of several held-out papers"
BEYOND = f"task {TITLE_SEARCH.name}: held-out paper beyond those asked for"


class Links(NamedTuple):
    """The papers that queries are linked with."""

    all: LinkedBy
    relevant: LinkedBy
    otherwise: LinkedBy | None = None
    """Those that are linked only by another aspect; None without aspects."""


@dataclass(frozen=True)
class Choice:
    """The choice of candidates in one task; that of a query depends only on the seed and the query."""

    name: str
    settings: MadeOfHeldOut
    seed: int

    def in_order(self, query: int, papers: Ids) -> Ids:
        """The papers by seeded priority, the same with random candidates and with matched ones."""
        label = f"holdout {self.name.removesuffix(MATCHED)}"
        rank = priorities(self.seed, label, np.full(len(papers), query), papers)
        return papers[np.argsort(rank, kind="stable")]


@dataclass(frozen=True)
class RandomChoice(Choice):
    """Relevant papers, some that are linked by another aspect, and random ones."""

    pool: Ids
    """Papers with text that random candidates are drawn from, ascending."""

    def judge(self, queries: Ids, links: Links, omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        few_positives = f"task {self.name}: fewer than {self.settings.positives} positives"
        few_negatives = f"task {self.name}: fewer than {self.settings.negatives} papers to draw negatives from"
        no_others = f"task {self.name}: no paper that is linked by another aspect only"
        omitted |= {few_positives: 0, few_negatives: 0} | ({} if links.otherwise is None else {no_others: 0})
        judgements = {}
        for query in queries.tolist():
            linked, relevant, others = (of.get(query, NO_IDS) if of else NO_IDS for of in links)
            negatives = self.negatives(query, linked)
            if len(relevant) < self.settings.positives:
                omitted[few_positives] += 1
            elif links.otherwise is not None and len(others) == 0:
                omitted[no_others] += 1
            elif len(negatives) < self.settings.negatives:
                omitted[few_negatives] += 1
            else:
                positives = self.in_order(query, relevant)[: self.settings.positives].tolist()
                negatives = [*self.in_order(query, others)[: self.settings.linked].tolist(), *negatives]
                judgements[str(query)] = {str(p): 1 for p in positives} | {str(n): 0 for n in negatives}
        return judgements

    def negatives(self, query: int, linked: Ids) -> list[int]:
        """Random papers of the pool, none of which is linked with the query or the query itself."""
        draws = min(len(self.pool), self.settings.negatives + len(linked) + 1)
        draw = generator(self.seed, "holdout negatives", self.name, query)
        drawn = self.pool[draw.choice(len(self.pool), draws, replace=False)]
        return drawn[~np.isin(drawn, linked) & (drawn != query)][: self.settings.negatives].tolist()


@dataclass(frozen=True)
class MatchedChoice(Choice):
    """Relevant papers, each among the same number of others that are cited as often."""

    settings: HoldoutSettings
    papers: Ids
    """All papers that are relevant to a query, ascending."""
    classes: NDArray[np.int64]
    pools: Mapping[int, Ids]
    """The papers of each class that others are drawn from, ascending."""

    def judge(self, queries: Ids, links: Links, omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        positives, each = self.settings.positives, max(1, self.settings.negatives // self.settings.positives)
        few = f"task {self.name}: fewer than {positives} positives with {each} other papers that are cited as often"
        judgements: Judgements = {}
        for query in queries.tolist():
            candidates = self._candidates(query, links.relevant.get(query, NO_IDS), each)
            if sum(candidates.values()) == positives:
                judgements[str(query)] = candidates
        omitted[few] = len(queries) - len(judgements)
        return judgements

    def _candidates(self, query: int, relevant: Ids, each: int) -> dict[str, int]:
        """Relevant papers in seeded order, each with others of its class, until there are enough."""
        draw = generator(self.seed, "holdout matched", self.name, query)
        taken, candidates = np.append(relevant, query), dict[str, int]()
        in_order = self.in_order(query, relevant)
        for paper, place in zip(in_order.tolist(), look_up(self.papers, in_order)[0].tolist(), strict=True):
            pool = self.pools[int(self.classes[place])]
            drawn = pool[draw.choice(len(pool), min(len(pool), each + len(taken)), replace=False)]
            others = drawn[~np.isin(drawn, taken)][:each]
            if len(others) == each:
                taken = np.append(taken, others)
                candidates |= {str(paper): 1} | dict.fromkeys(map(str, others.tolist()), 0)
            if sum(candidates.values()) == self.settings.positives:
                break
        return candidates


def citation_class(citations: NDArray[np.integer]) -> NDArray[np.int64]:
    """Classes of citations: a third of a unit of log(1 + citations); up to three citations, each number is a class."""
    return np.floor(CLASSES_IN_A_UNIT * np.log1p(citations)).astype(np.int64)


def pools_of(database: duckdb.DuckDBPyConnection, seed: int) -> tuple[Ids, dict[int, Ids]]:
    """The papers of the table `popularity`, and those of each class of citations, ascending; samples of many."""
    whole, pools = NO_IDS, dict[int, Ids]()
    for batch in database.sql("FROM popularity").to_arrow_reader(ROWS_AT_ONCE):
        ids, classes = batch["corpusid"].to_numpy(), citation_class(batch["citations"].to_numpy())
        whole = smallest(np.concatenate([whole, ids]), LARGEST_POOL, seed, "holdout pool")
        for each in np.unique(classes).tolist():
            sample = np.concatenate([pools.get(each, NO_IDS), ids[classes == each]])
            pools[each] = smallest(sample, LARGEST_CLASS, seed, "holdout matched pool")
    return np.sort(whole), {each: np.sort(pool) for each, pool in pools.items()}


def classes_of(database: duckdb.DuckDBPyConnection, linked: LinkedBy) -> tuple[Ids, NDArray[np.int64]]:
    """All papers that queries are linked with, ascending, and their classes by the table `popularity`."""
    database.register("linked_papers", pa.table({"corpusid": distinct(NO_IDS, *linked.values())}))
    rows = database.sql("FROM popularity SEMI JOIN linked_papers USING (corpusid) ORDER BY corpusid").fetchnumpy()
    return rows["corpusid"], citation_class(rows["citations"])


def add_title_search(
    benchmark: Benchmark, papers: Mapping[int, Document], settings: TitleSearch, seed: int, omitted: dict[str, int]
) -> tuple[dict[str, Document], set[str]]:
    """Add the search of abstracts by titles to a benchmark; return its documents, and which of them are queries.
    `papers` are the held-out ones that it may be about. Raises `InputError` if none has a title to search for."""
    words = {paper: (_words(title), _words(abstract)) for paper, (title, abstract, *_) in papers.items()}
    times = Counter(text for both in words.values() for text in set(both))
    telling, counts = [], dict.fromkeys((REPEATED, WORDLESS, SHARED), 0)
    for paper, (title, abstract) in words.items():
        if not (title and abstract):  # as with `corpus.allow_missing_abstract`
            counts[WORDLESS] += 1
        elif f" {title} " in f" {abstract} ":
            counts[REPEATED] += 1
        elif times[title] > 1 or times[abstract] > 1:
            counts[SHARED] += 1
        else:
            telling.append(paper)
    omitted |= counts
    if not telling:
        lacking = f"None of the {len(papers)} held-out papers with a text has a unique title"
        remedy = "hold out more papers, or leave `title_search` out of the benchmark"
        raise InputError(f"{lacking} that its abstract does not repeat; {remedy}.")
    chosen = smallest(
        np.array(sorted(telling), dtype=np.int64), settings.documents, seed, f"holdout {TITLE_SEARCH.name}"
    )
    omitted[BEYOND] = len(telling) - len(chosen)
    queries: dict[str, Document] = {}
    abstracts: dict[str, Document] = {}
    for paper in chosen.tolist():
        of_title, of_abstract, _, field = papers[paper]
        queries[f"title:{paper}"] = of_title, None, (), field
        abstracts[f"abstract:{paper}"] = None, of_abstract, (), field
    benchmark.judgements[TITLE_SEARCH.name] = {q: {a: 1} for q, a in zip(queries, abstracts, strict=True)}
    benchmark.collections[TITLE_SEARCH.name] = set(abstracts)
    return queries | abstracts, set(queries)


def _words(text: str | None) -> str:
    """A text without what is no letter or digit, so that spelling alike in two places counts as one."""
    return NOT_A_WORD.sub(" ", (text or "").casefold()).strip()
