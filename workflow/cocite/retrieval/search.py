"""Search an index with NumPy alone; each published index brings this file.

    index = Index(Path("found"))
    for answer in index.search("a title and an abstract", {"static": vector}, k=10):
        print(answer.paper, answer.score, answer.parts)

An index is a folder of arrays, which are mapped into memory and read in part. Papers are numbered by their corpus ids,
ascending; arrays have a row for each paper unless a comment says otherwise.

    index.json                    names of models, settings of BM25, stop words
    papers.npy, citations.npy     corpus ids; how often each paper is cited
    ages.npy                      years by which each paper is older than the newest one, NaN if unknown
    links/starts.npy, others.npy  papers that cite each paper or that it cites: others[starts[n]:starts[n + 1]]
    words/hashes.npy              BLAKE2b of each word (8 bytes), ascending
    words/starts.npy, papers.npy, scores.npy   papers with each word, and its share of BM25 in each
    vectors/<model>/              vectors of 8 bits, in lists by the nearest centroid
    weights.json                  how papers are ranked, where the index is published
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LISTED = 300
"""Papers that each list gives a query."""
TEMPERATURE = 0.1
"""What cosines are divided by before the softmax that weighs the hits."""
NPROBE = 32
"""Lists of vectors that are read for a query."""
ROWS_AT_ONCE = 16_384
WORD = re.compile(r"\b\w\w+\b")
"""Words as bm25s splits them."""

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]


class Vote(NamedTuple):
    """How the nearest papers vote: how many, and the power of the links of a voter and a receiver that divides."""

    hits: int
    voter: float
    receiver: float


VOTES = {"votes_10": Vote(10, 0, 0), "votes_30": Vote(30, 0.5, 0.3), "votes_100": Vote(100, 0, 0)}
OF_TEXTS = re.compile("cosine .*|words")
"""Names of the columns that compare texts."""
RANK = "rank "
"""What the name of a column begins with that has the logarithms of the ranks by another one."""
CONSTANT = 60
"""Added to ranks in reciprocal rank fusion (Cormack et al., 2009)."""
KNOWN = ("more", "balanced", "less")
"""How much well-known papers are preferred."""
PARTS = ("similarity", "words", "links", "citations", "age")


class Answer(NamedTuple):
    """A paper that is found."""

    paper: int
    score: float
    parts: dict[str, float]
    """What similarity, words, links, citations and age add to the score, compared with a paper of average values."""
    facts: dict[str, float | None]
    """The mean cosine; BM25, divided by the best of the query; the share of the votes of the 30 nearest papers, divided
    by the largest; the number of citations. None if it is not known."""


class Vectors:
    """The vectors of papers by a model, of length 1, as whole numbers of 8 bits and a factor for each."""

    def __init__(self, folder: Path) -> None:
        self.centroids = np.load(folder / "centroids.npy")
        self.starts = np.load(folder / "starts.npy")
        self.rows, self.places, self.numbers, self.factors = _mapped(folder, "rows", "places", "numbers", "factors")

    def nearest(self, vector: NDArray[np.float32], count: int, out: NDArray[np.bool_] | None = None) -> Rows:
        """The papers with the largest cosines in the nearest lists, but those out; the fewer are in, the more lists."""
        if out is None:
            out = np.zeros(len(self.places), dtype=bool)
        number = NPROBE * len(out) // max(1, len(out) - int(out.sum()))
        lists = np.sort(np.argsort(-(self.centroids @ vector), kind="stable")[:number])
        spans = [(int(self.starts[each]), int(self.starts[each + 1])) for each in lists]
        blocks = [(at, min(at + ROWS_AT_ONCE, end)) for start, end in spans for at in range(start, end, ROWS_AT_ONCE)]
        kept = [start + np.flatnonzero(~out[self.rows[start:end]]) for start, end in blocks]
        rows = [np.empty(0, np.int64), *(self.rows[each] for each in kept)]
        cosines = [np.empty(0), *((self.numbers[each] @ vector) * self.factors[each] for each in kept)]
        return best(np.concatenate(cosines), np.concatenate(rows), count)

    def cosines(self, rows: Rows, vector: NDArray[np.float32]) -> Numbers:
        """The cosines of some papers; NaN without a vector."""
        places = self.places[rows]
        cosines = (self.numbers[places] @ vector) * self.factors[places]
        return np.where(places >= 0, cosines, np.nan)


class Words:
    """The words of papers, and what they add to BM25."""

    def __init__(self, folder: Path, stop_words: Sequence[str]) -> None:
        self.stop_words = frozenset(stop_words)
        self.hashes, self.starts, self.papers, self.scores = _mapped(folder, "hashes", "starts", "papers", "scores")

    def of(self, text: str, papers: int) -> NDArray[np.float32]:
        """BM25 of a text to all papers."""
        words = [word for word in WORD.findall(text.lower()) if word not in self.stop_words]
        hashes, times = np.unique(np.array([hash_of(word) for word in words], np.uint64), return_counts=True)
        at = np.searchsorted(self.hashes, hashes)
        scores = np.zeros(papers, np.float32)
        for place, hashed, count in zip(at.tolist(), hashes, times.tolist(), strict=True):
            if place < len(self.hashes) and self.hashes[place] == hashed:
                start, end = self.starts[place : place + 2]
                np.add.at(scores, self.papers[start:end], count * self.scores[start:end])
        return scores


class Links:
    """Who cites whom."""

    def __init__(self, folder: Path) -> None:
        self.starts, self.others = _mapped(folder, "starts", "others")

    def number(self, rows: Rows) -> Rows:
        """How many links papers have."""
        return np.asarray(self.starts[rows + 1] - self.starts[rows])

    def votes(self, hits: Rows, similarity: Numbers) -> dict[str, tuple[Rows, Numbers]]:
        """The papers that hits vote for, ascending, and the votes; hits have links, and the most similar is first."""
        received: dict[str, tuple[Rows, Numbers]] = {}
        for name, vote in VOTES.items():
            voters, number = hits[: vote.hits], self.number(hits[: vote.hits])
            weights = np.exp((similarity[: vote.hits] - similarity[:1]) / TEMPERATURE)
            weights = weights / weights.sum() / number**vote.voter
            spans = [self.others[self.starts[row] : self.starts[row + 1]] for row in voters]
            rows, at = np.unique(np.concatenate([np.empty(0, np.int64), *spans]), return_inverse=True)
            received[name] = rows, np.bincount(at, np.repeat(weights, number), len(rows)).astype(np.float64)
        return received


class Weights:
    """How papers are ranked: columns, standardised or as reciprocal ranks, times weights, and offsets by citations."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.is_reciprocal, self.known = table["rank"] == "reciprocal", table["known"]
        self.names = [row["name"] for row in table["weights"]]
        columns = ("mean", "deviation", "weight")
        self.means, self.deviations, self.weights = (np.array([row[of] for row in table["weights"]]) for of in columns)
        self.offsets = table["offsets"]

    def parts(self, values: Numbers, known: str | None = None) -> dict[str, Numbers]:
        """What similarity, words, links, citations and age add to the score of each candidate of a query. Raises
        `ValueError` if `known` is not more, balanced or less."""
        known = known or self.known
        if known not in KNOWN:
            raise ValueError(f"known is {known!r}; it can be {', '.join(KNOWN)}.")
        comparable = within_query(values, self.names)
        if self.is_reciprocal:
            weighed = reciprocal_ranks(comparable) * self.weights
        else:
            weighed = standardised(comparable, self.means, self.deviations) * self.weights
        named = [re.sub("^cosine .*", "similarity", name.removeprefix(RANK)) for name in self.names]
        part_of = np.array([name if name in PARTS else "links" for name in named])
        parts = {part: weighed[:, part_of == part].sum(axis=1) for part in PARTS}
        citations = np.rint(np.expm1(values[:, self.names.index("citations")]))
        for row in self.offsets:
            parts["citations"] += row[known] * ((citations >= row["from"]) & (citations <= row["to"]))
        return parts


def standardised(values: Numbers, means: Numbers, deviations: Numbers) -> Numbers:
    """Deviations from the mean; a value that is not known counts as the mean."""
    return np.nan_to_num((values - means) / deviations)


def within_query(values: Numbers, names: Sequence[str], is_found: NDArray[np.bool_] | None = None) -> Numbers:
    """What is known of the candidates of a query, made comparable with that of others: cosines and words in deviations
    from their mean among those that are found, or among all, and −log(1 + rank) of each after the other columns."""
    at = [at for at, name in enumerate(names) if OF_TEXTS.fullmatch(name)]
    texts, changed = values[:, at], values.copy()
    among = texts if is_found is None else texts[is_found]
    known = np.maximum(np.sum(~np.isnan(among), axis=0), 1)
    means = np.nansum(among, axis=0) / known
    deviations = np.sqrt(np.nansum((among - means) ** 2, axis=0) / known)
    changed[:, at] = (texts - means) / np.where(deviations > 0, deviations, 1)
    ranks = np.where(np.isnan(texts), np.nan, ranks_of(texts, is_found))
    return np.column_stack([changed, -np.log1p(ranks)])


def reciprocal_ranks(values: Numbers, is_found: NDArray[np.bool_] | None = None) -> Numbers:
    """1 / (60 + rank) of each candidate of a query in each column; 0 for a value that is not known."""
    return 1 / (CONSTANT + ranks_of(values, is_found))


def ranks_of(values: Numbers, is_found: NDArray[np.bool_] | None = None) -> Numbers:
    """The rank of each candidate of a query in each column, among those that are found, or among all. Equal values
    share a rank; a value that is not known has an infinite one."""
    ranks = np.full(values.shape, np.inf)
    for at, column in enumerate(values.T):
        is_known = ~np.isnan(column)
        rising = np.sort(column[is_known if is_found is None else is_known & is_found])
        ranks[is_known, at] = 1 + len(rising) - np.searchsorted(rising, column[is_known], side="right")
    return ranks


class Index:
    """An index, opened."""

    def __init__(self, folder: Path, weights: Path | None = None) -> None:
        """`weights` is the file that ranks, if it is not in the folder."""
        self.settings: Mapping[str, Any] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.weights = Weights(json.loads((weights or folder / "weights.json").read_text(encoding="utf-8")))
        self.papers, self.citations, self.ages = _mapped(folder, "papers", "citations", "ages")
        self.models = {name: Vectors(folder / "vectors" / name) for name in self.settings["models"]}
        self.words = Words(folder / "words", self.settings["stop_words"]) if self.settings["words"] else None
        self.links = Links(folder / "links")

    def search(
        self,
        text: str,
        vectors: Mapping[str, ArrayLike],
        *,
        k: int = 20,
        known: str | None = None,
        without: ArrayLike = (),
        within: ArrayLike | None = None,
    ) -> list[Answer]:
        """The k papers that a text finds, the best first, but the papers `without`, and only those `within`.

        `vectors` has the vector of the text by each model of the index. `known` is more, balanced or less: how much
        well-known papers are preferred; by default as the index was configured. Raises `ValueError` for a model without
        a vector, or another `known`.
        """
        if missing := sorted(self.models.keys() - vectors.keys()):
            raise ValueError(f"The text needs a vector by each model of the index; there is none by {missing[0]}.")
        unit = {name: of_length_1(vectors[name], len(of.centroids[0])) for name, of in self.models.items()}
        rows, values = self.candidates(text, unit, without, within)
        parts = self.weights.parts(values, known)
        scores = np.sum([*parts.values()], axis=0)
        answers = []
        for at in best(scores, np.arange(len(rows)), k).tolist():
            of_parts = {name: float(of[at]) for name, of in parts.items()}
            row = int(rows[at])
            answers.append(Answer(int(self.papers[row]), float(scores[at]), of_parts, self._facts(values[at], row)))
        return answers

    def _facts(self, values: Numbers, row: int) -> dict[str, float | None]:
        models = len(self.models)  # the columns are cosines by each, words, and votes of 10, 30 and 100
        cosines = values[:models][~np.isnan(values[:models])]
        known = {"cosine": cosines.mean() if len(cosines) else np.nan}
        known |= {"words": values[models], "votes": values[models + 2]}
        facts = {name: None if np.isnan(value) else float(value) for name, value in known.items()}
        return {**facts, "citations": int(self.citations[row])}

    def vectors_of(self, paper: int) -> dict[str, NDArray[np.float32]]:
        """The vectors of a paper by each model of the index that has one."""
        row = int(np.searchsorted(self.papers, paper))
        if row == len(self.papers) or self.papers[row] != paper:
            return {}
        places = {name: int(of.places[row]) for name, of in self.models.items()}
        return {name: self.models[name].numbers[at].astype(np.float32) for name, at in places.items() if at >= 0}

    def candidates(
        self,
        text: str,
        vectors: Mapping[str, NDArray[np.float32]],
        without: ArrayLike = (),
        within: ArrayLike | None = None,
    ) -> tuple[Rows, Numbers]:
        """The papers that a text finds, and what is known of each, in the order of the weights; NaN if it is not.
        Papers that are not `within` vote, and are not found."""
        of_models = [(self.models[name], vectors[name]) for name in self.models]
        left_out, out = self._left_out(without, within)
        near = np.unique(np.concatenate([model.nearest(vector, LISTED, left_out) for model, vector in of_models]))
        similarity = np.nanmean([model.cosines(near, vector) for model, vector in of_models], axis=0)
        is_linked = self.links.number(near) > 0
        hits, of_hits = near[is_linked], similarity[is_linked]
        order = np.lexsort((hits, -of_hits))
        votes = self.links.votes(hits[order], of_hits[order])
        receiving, received = votes["votes_100"]
        voted = best(received[~out[receiving]], receiving[~out[receiving]], LISTED)
        by_words = self._by_words(text)
        by_words[left_out] = 0
        named = _with_words(by_words, out, LISTED)
        if within is not None:
            near = np.concatenate([model.nearest(vector, LISTED, out) for model, vector in of_models])
        rows = np.unique(np.concatenate([near, voted, named]))
        number = self.links.number(rows)
        columns = [model.cosines(rows, vector) for model, vector in of_models]
        columns.append(by_words[rows] / (by_words.max() or np.nan))
        for name, vote in VOTES.items():
            shares = _looked_up(*votes[name], rows) / np.maximum(number, 1) ** vote.receiver
            columns.append(np.where(number > 0, shares / (shares.max(initial=0) or 1), np.nan))
        columns += [np.log1p(self.citations[rows]), (number == 0).astype(float), np.log1p(self.ages[rows])]
        return rows, np.column_stack(columns)

    def by_words(
        self, text: str, *, k: int = 20, without: ArrayLike = (), within: ArrayLike | None = None
    ) -> list[tuple[int, float]]:
        """The k papers with the highest BM25 of a text, and what it is."""
        scores = self._by_words(text)
        rows = _with_words(scores, self._left_out(without, within)[1], k)
        return [(int(self.papers[row]), float(scores[row])) for row in rows]

    def _by_words(self, text: str) -> NDArray[np.float32]:
        return self.words.of(text, len(self.papers)) if self.words else np.zeros(len(self.papers), np.float32)

    def _left_out(self, without: ArrayLike, within: ArrayLike | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which papers are `without`, and which are that or not `within`."""
        left_out = np.isin(self.papers, without)
        return left_out, left_out if within is None else left_out | ~np.isin(self.papers, within)


def _mapped(folder: Path, *names: str) -> list[NDArray[Any]]:
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in names]


def best(scores: NDArray[Any], rows: Rows, count: int) -> Rows:
    """The rows with the largest scores, the best first; equal scores by row."""
    if (size := len(scores) // (4 * count)) > 1:
        # At least so many are as large as the largest of `count` blocks, which are much faster to sort.
        blocks = scores[: 4 * count * size].reshape(4 * count, size).max(axis=1)
        kept = np.flatnonzero(scores >= np.partition(blocks, -count)[-count])
        scores, rows = scores[kept], rows[kept]
    return rows[np.lexsort((rows, -scores))[:count]]


def hash_of(word: str) -> int:
    """The number that stands for a word."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def _with_words(scores: NDArray[np.float32], out: NDArray[np.bool_], count: int) -> Rows:
    there = np.flatnonzero((scores > 0) & ~out)
    return best(scores[there], there, count)


def of_length_1(vector: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """The first numbers of a vector, divided by their length."""
    given = np.asarray(vector, np.float32)[:dimension]
    return given / max(float(np.linalg.norm(given)), 1e-12)


def _looked_up(rows: Rows, votes: Numbers, sought: Rows) -> Numbers:
    """The votes for some papers; 0 if there are none."""
    at = np.minimum(np.searchsorted(rows, sought), max(len(rows) - 1, 0))
    return np.where(rows[at] == sought, votes[at], 0) if len(rows) else np.zeros(len(sought))
