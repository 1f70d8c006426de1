"""How often papers are cited in training, and candidates that are cited as often as the relevant papers.

Relevant papers are often cited, random ones are not: a ranking by citations alone is ahead of chance among random
candidates. Among candidates from the same class of citations it is not. A class spans a third of a unit of
log(1 + citations); up to three citations, each number is a class of its own.
"""

from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.benchmark import HoldoutSettings
from cocite.config.benchmarks.holdout import MATCHED
from cocite.core.id_sets import NO_IDS, Ids
from cocite.core.randomness import generator, priorities
from cocite.core.tables.files import verified_files, write_table
from cocite.core.written_ids import look_up
from cocite.evaluation.benchmark import Judgements

CLASSES_IN_A_UNIT = 3
LARGEST_POOL = 200_000
"""Papers of each class that candidates are drawn from."""
ROWS_AT_ONCE = 100_000

POPULARITY = """
    SELECT corpusid, coalesce(citations, 0) AS citations
    FROM with_text LEFT JOIN (
        SELECT cited AS corpusid, count(*) AS citations
        FROM citations
        WHERE citing <> cited AND citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
        GROUP BY cited
    ) USING (corpusid)
    ORDER BY corpusid
"""


def write_popularity(path: Path, database: duckdb.DuckDBPyConnection) -> None:
    """Write how often each paper of `with_text` is cited by papers that training reads, and name that table in the
    database. Papers of `kept_out` are cited by none."""
    write_table(path, "popularity", database.sql(POPULARITY).to_arrow_reader(ROWS_AT_ONCE))
    database.read_parquet(verified_files(path, "popularity")).create_view("popularity")


def citation_class(citations: NDArray[np.integer]) -> NDArray[np.int64]:
    """The class of each number of citations."""
    return np.floor(CLASSES_IN_A_UNIT * np.log1p(citations)).astype(np.int64)


@dataclass
class Sample:
    """A uniform sample of papers that stream past: those with the smallest seeded priorities."""

    seed: int
    name: str
    size: int
    ids: Ids = field(default_factory=lambda: NO_IDS)
    ranks: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, ids: Ids) -> None:
        """Let some more papers take part."""
        self.ids = np.concatenate([self.ids, ids])
        self.ranks = np.concatenate([self.ranks, priorities(self.seed, self.name, ids)])
        if len(self.ids) > self.size:
            first = np.argpartition(self.ranks, self.size)[: self.size]
            self.ids, self.ranks = self.ids[first], self.ranks[first]


@dataclass(frozen=True, kw_only=True)
class MatchedChoice:
    """The choice of candidates that are cited as often as the relevant papers; the same number for each of these."""

    task: str
    settings: HoldoutSettings
    seed: int
    relevant: Ids
    """All papers that are relevant to a query, ascending."""
    classes: NDArray[np.int64]
    """Their classes of citations."""
    pools: dict[int, Ids]
    """The papers of each class, ascending."""

    @classmethod
    def of(
        cls,
        database: duckdb.DuckDBPyConnection,
        task: str,
        linked: dict[int, Ids],
        settings: HoldoutSettings,
        seed: int,
    ) -> "MatchedChoice":
        """Read the classes of the papers that queries are linked with, and the papers of each class."""
        relevant = np.unique(np.concatenate([NO_IDS, *linked.values()]))
        database.register("relevant", pa.table({"corpusid": relevant}))
        found = database.sql("FROM popularity SEMI JOIN relevant USING (corpusid) ORDER BY corpusid").fetchnumpy()
        classes = citation_class(found["citations"])
        samples = {each: Sample(seed, "holdout matched pool", LARGEST_POOL) for each in np.unique(classes).tolist()}
        for batch in database.sql("FROM popularity").to_arrow_reader(ROWS_AT_ONCE):
            ids, of_batch = batch["corpusid"].to_numpy(), citation_class(batch["citations"].to_numpy())
            for each in np.intersect1d(of_batch, classes).tolist():
                samples[each].add(ids[of_batch == each])
        pools = {each: np.sort(sample.ids) for each, sample in samples.items()}
        return cls(task=task, settings=settings, seed=seed, relevant=found["corpusid"], classes=classes, pools=pools)

    def judge(self, queries: Ids, linked: dict[int, Ids], omitted: dict[str, int]) -> Judgements:
        """The candidates of each query that has enough, 1 for the relevant and 0 for the others; count the rest."""
        positives, each = self.settings.positives, max(1, self.settings.negatives // self.settings.positives)
        few = f"task {self.task}: fewer than {positives} positives with {each} other papers that are cited as often"
        judgements: Judgements = {}
        for query in queries.tolist():
            chosen = self._candidates(query, linked.get(query, NO_IDS), each)
            if sum(chosen.values()) == positives:
                judgements[str(query)] = chosen
        omitted[few] = len(queries) - len(judgements)
        return judgements

    def _candidates(self, query: int, linked: Ids, each: int) -> dict[str, int]:
        """Relevant papers in seeded order, each with others of its class, until there are enough."""
        rank = priorities(self.seed, f"holdout {self.task.removesuffix(MATCHED)}", np.full(len(linked), query), linked)
        places, _ = look_up(self.relevant, linked)
        draw = generator(self.seed, "holdout matched", self.task, query)
        taken, chosen = np.append(linked, query), dict[str, int]()
        for number in np.argsort(rank, kind="stable").tolist():
            pool = self.pools[int(self.classes[places[number]])]
            drawn = pool[draw.choice(len(pool), min(len(pool), each + len(taken)), replace=False)]
            others = drawn[~np.isin(drawn, taken)][:each]
            if len(others) == each:
                taken = np.append(taken, others)
                chosen |= {str(linked[number]): 1} | dict.fromkeys(map(str, others.tolist()), 0)
            if sum(chosen.values()) == self.settings.positives:
                break
        return chosen
