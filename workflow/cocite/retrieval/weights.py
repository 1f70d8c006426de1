"""The weights that an index ranks by: learned, shipped, given, or all alike.

What is known of a paper is standardised. What is not known counts as the mean, and papers without links have a weight
of their own, so that they are not taken for papers whose links lead elsewhere. Rarely cited papers get an offset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.benchmarks.holdout import CITATION_CLASSES
from cocite.config.index import CITATIONS, SIGNALS, VOTES, WORDS
from cocite.core.atomic import read_json
from cocite.core.tables.files import vectors_of
from cocite.core.written_ids import Ids
from cocite.retrieval.search import VOTES as VOTES_OF_HITS
from cocite.retrieval.search import reciprocal_ranks, standardised

COSINE = "cosine"
UNLINKED = "without links"
AGE = "age"
"""log(1 + years) by which a paper is older than the newest one."""
OF_VOTES = tuple(VOTES_OF_HITS)
RARE_CLASSES = ("0", "1-3")
"""The classes of citations that have an offset, from the first on."""
SHIPPED = Path(__file__).with_name("shipped_weights.json")
"""Weights and offsets that `python -m tests.retrieval.shipped` makes from runs."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """What is known of some candidates, in the order of the table."""

    table: pa.Table
    names: Sequence[str]
    values: Numbers
    """Candidates × what is known by these names; NaN for what is not."""

    @classmethod
    def of(cls, table: pa.Table, models: Sequence[str]) -> "Known":
        """What the table candidates says."""
        columns = {name: table[name].to_numpy() for name in (WORDS, *OF_VOTES)}
        columns[CITATIONS] = np.log1p(table["citations"].to_numpy())
        columns[UNLINKED] = np.isnan(columns[OF_VOTES[0]].astype(np.float64))
        columns[AGE] = np.log1p(table["age"].to_numpy().astype(np.float64))
        values = np.column_stack([vectors_of(table, "cosines"), *columns.values()])
        return cls(table, [*(f"{COSINE} {model}" for model in models), *columns], values.astype(np.float64))

    def where(self, kept: NDArray[np.bool_]) -> "Known":
        """Some of the candidates."""
        return Known(self.table.filter(pa.array(kept)), self.names, self.values[kept])

    def ids(self, name: str) -> Ids:
        """The queries or the papers."""
        ids: Ids = self.table[name].to_numpy()
        return ids

    def classes(self) -> Ids:
        """The class of citations of each paper."""
        return classes_of(self.table["citations"].to_numpy())


@dataclass(frozen=True)
class Weights:
    """What ranks: the weights of what is known, after it is standardised or turned into reciprocal ranks."""

    rank: str
    names: Sequence[str]
    means: Numbers
    deviations: Numbers
    weights: Numbers

    def scores(self, known: Known) -> Numbers:
        """The score of each candidate, without an offset."""
        if self.rank == "reciprocal":  # among those that are found for a query
            starts = np.unique(known.ids("query"), return_index=True)[1][1:]
            found = np.split(known.table["is_found"].to_numpy(), starts)
            values = np.concatenate([*map(reciprocal_ranks, np.split(known.values, starts), found)])
        else:
            values = standardised(known.values, self.means, self.deviations)
        scores: Numbers = values @ self.weights
        return scores

    def deviation(self, known: Known) -> float:
        """The deviation of the scores of candidates; 1 for none."""
        return float(np.std(self.scores(known))) or 1.0 if len(known.table) else 1.0

    def as_json(self, offsets: Mapping[str, Numbers], **facts: Any) -> dict[str, Any]:
        """A small table, from which numpy alone can rank by each setting of `known`."""
        columns = zip(self.names, self.means.tolist(), self.deviations.tolist(), self.weights.tolist(), strict=True)
        rows = [dict(zip(("name", "mean", "deviation", "weight"), row, strict=True)) for row in columns]
        of_classes = [
            {"from": first, "to": last, **{setting: float(of[at]) for setting, of in offsets.items()}}
            for at, (first, last) in enumerate(CITATION_CLASSES[name] for name in RARE_CLASSES)
        ]
        return {"rank": self.rank, "weights": rows, "offsets": of_classes, **facts}


def classes_of(citations: Ids) -> Ids:
    """The classes of papers by their citations: the places in `RARE_CLASSES`, or the next number for all others."""
    return np.searchsorted([CITATION_CLASSES[name][1] for name in RARE_CLASSES], citations)


def raised(scores: Numbers, classes: Ids, offsets: Sequence[float] | Numbers) -> Numbers:
    """Scores, higher by the offset of the class of each paper."""
    return scores + np.append(offsets, 0)[classes]


def scale_of(known: Known, rank: Any) -> tuple[Numbers, Numbers]:
    """The means and deviations that standardise what is known; what is all alike keeps its scale."""
    means, deviations = np.zeros(len(known.names)), np.ones(len(known.names))
    for at, column in enumerate(known.values.T if rank != "reciprocal" else ()):
        if len(there := column[~np.isnan(column)]) and there.std() > 0:
            means[at], deviations[at] = there.mean(), there.std()
    return means, deviations


def learned(known: Known, is_relevant: NDArray[np.bool_]) -> Weights:
    """The weights of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    means, deviations = scale_of(known, "learned")
    standard = standardised(known.values, means, deviations)
    fitted = LogisticRegression(tol=1e-8, max_iter=1000).fit(standard, is_relevant)
    return Weights("learned", known.names, means, deviations, fitted.coef_[0])


def shipped(known: Known) -> tuple[Weights, Numbers, list[str]]:
    """Weights that come with the program, the offsets of the balanced setting, and the corpora of both."""
    of = read_json(SHIPPED)
    weights = Weights("learned", known.names, *scale_of(known, "learned"), _shared(known.names, of["weights"]))
    return weights, np.array(of["offsets"]), of["corpora"]


def given(known: Known, rank: Any) -> Weights:
    """The weights of the configuration, or of a sum in which the model, words, votes and citations weigh the same."""
    signals = {_signal_of(name): float(name not in (UNLINKED, AGE)) for name in known.names}
    weights = _shared([_signal_of(name) for name in known.names], signals if isinstance(rank, str) else rank)
    return Weights(rank if isinstance(rank, str) else "sum", known.names, *scale_of(known, rank), weights)


def _shared(names: Sequence[str], weights: Mapping[str, float]) -> Numbers:
    """The weight of each column; those of one signal share its weight. Cosines by any model can be one signal."""
    signals = [name if name in weights or not name.startswith(f"{COSINE} ") else COSINE for name in names]
    return np.array([weights.get(name, 0.0) / signals.count(name) for name in signals])


def _signal_of(name: str) -> str:
    """What a configuration calls a part of what is known; a model cannot be named like another signal."""
    model = name.removeprefix(f"{COSINE} ")
    return VOTES if name in OF_VOTES else name if model in SIGNALS else model


def is_of_text(name: str) -> bool:
    """Whether a column compares texts, so that it can rank alone."""
    return name == WORDS or name.startswith(f"{COSINE} ")
