"""A part of a release of Semantic Scholar as of 2026: generated records with the shape and the flaws of real ones.

With SCALE 1 it would have 220 million papers, 100 million abstracts and 5.1 billion rows of 2.7 billion citations, in
as many shards as it is told. References and citations have heavy tails; a fifth of the rows cite nothing that is known,
a twentieth a paper without a record; copies of a citation lie in other shards and disagree on its influence. Papers of
a community share words and cite each other more often, the well known most.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from isal import igzip
from numpy.typing import NDArray
from tests.benchmarks.made_records import citation_lines, sentences_of
from tests.benchmarks.made_triplets import ABSTRACTS as LENGTHS
from tests.benchmarks.made_triplets import word

from cocite.core.atomic import atomic_path, write_json, write_text
from cocite.demo.release import shard_paths

PAPERS, ABSTRACTS, CITATIONS, ROWS = 220_000_000, 100_000_000, 2_700_000_000, 5_100_000_000
LARGEST_ID = 288_000_000
YEARS = (1960, 2026)
COMMUNITY, FIELDS = 500, 23
"""Papers of a community, on average; the fields of study that communities belong to."""
CITING, SPREAD, MOST = 0.45, 1.0, 3000
"""Share of papers with references, the deviation of the logarithm of their number, and the most of them."""
REPLACED = 1.35
"""References drawn for each that is wanted: some are drawn twice."""
BY_GROUP = {"community": 0.5, "field": 0.25, "all": 0.25}
"""Share of references by where the cited papers are."""
UNRESOLVED, UNRECORDED = 0.22, 0.05
WORDS, OWN, TITLE = 200_000, 150, 10
"""Words of all papers and of a community, and those of a title."""
AT_ONCE = 20_000
"""Records that are made at once."""
Numbers = NDArray[Any]


def write_release(folder: Path, scale: float, release: str, shards: dict[str, int], seed: int = 49) -> dict[str, int]:
    """Write the shards of a release, unless they are there; the numbers of papers, abstracts, citations and rows."""
    described = folder / "release.json"
    if not described.is_file():
        with atomic_path(folder) as made:
            made.mkdir(parents=True)
            counts = _write(made, scale, date.fromisoformat(release), shards, seed)
            for name in shards:
                write_text(made / name / "README.txt", f"Generated {name}, with the shape of Semantic Scholar's.\n")
            write_json(made / "release.json", {"release_id": release, "datasets": list(shards), "counts": counts})
    counts = json.loads(described.read_text())["counts"]
    return dict(counts)


def _write(folder: Path, scale: float, day: date, shards: dict[str, int], seed: int) -> dict[str, int]:
    papers = _papers(np.random.default_rng(seed), round(PAPERS * scale), ABSTRACTS / PAPERS)
    cited = _citations(np.random.default_rng(seed + 1), papers, CITATIONS * scale)
    rows = _rows(np.random.default_rng(seed + 2), papers, cited, round(ROWS * scale))
    degrees = (np.bincount(each, minlength=len(papers["id"])) for each in cited)
    for name, values in {**papers, **rows, **dict(zip(("references", "citations"), degrees, strict=True))}.items():
        np.save(folder / f"{name}.npy", values)
    write_json(folder / "sentences.json", sentences_of(np.random.default_rng(1)))
    jobs = []
    for name, write in {"papers": _paper, "abstracts": _abstract, "citations": _citation}.items():
        (folder / name).mkdir()
        jobs += [
            (folder, write, path, number, shards[name], [seed, len(jobs) + number])
            for number, path in enumerate(shard_paths(folder / name, day, shards[name]))
        ]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        list(processes.map(_write_shard, *zip(*jobs, strict=True)))
    for path in (*folder.glob("*.npy"), folder / "sentences.json"):
        path.unlink()
    counts = {"papers": len(papers["id"]), "abstracts": papers["has_abstract"].sum(), "citations": len(cited[0])}
    return {name: int(count) for name, count in (counts | {"rows": len(rows["citing"])}).items()}


def _papers(rng: np.random.Generator, count: int, with_abstract: float) -> dict[str, Numbers]:
    ids = np.unique(rng.integers(1, LARGEST_ID, 2 * count if count < LARGEST_ID / 8 else 3 * count))
    first, end = YEARS
    community = rng.integers(0, max(count // COMMUNITY, 1), count)
    return {
        "id": np.sort(rng.permutation(ids)[:count]),
        "community": community,
        "field": community % FIELDS,
        "all": np.zeros(count, dtype=np.int64),
        "year": first + ((end - first) * rng.random(count) ** 0.5).astype(np.int64),
        "has_abstract": rng.random(count) < with_abstract,
    }


def _citations(rng: np.random.Generator, papers: dict[str, Numbers], wanted: float) -> tuple[Numbers, Numbers]:
    """Pairs of rows of papers, each once."""
    count = len(papers["id"])
    mean = REPLACED * wanted / count / CITING
    sizes = rng.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD, count).clip(1, MOST)
    sizes[rng.random(count) >= CITING] = 0
    fame, pairs = rng.pareto(1.2, count) + 0.05, []
    for group, share in BY_GROUP.items():
        citing = np.repeat(np.arange(count), rng.poisson(share * sizes))
        cited = cited_by_fame(rng, papers[group], papers["year"], fame, citing, later=1)
        pairs.append(citing[cited != citing] * count + cited[cited != citing])
    return np.divmod(np.unique(np.concatenate(pairs)), count)


def cited_by_fame(
    rng: np.random.Generator, group: Numbers, year: Numbers, fame: Numbers, citing: Numbers, later: int
) -> Numbers:
    """A work that each of these cites, of the same group and of a year before its own, plus `later`, by fame.

    Where there is none, it is one of another group or of another year.
    """
    order = np.lexsort((year, group))
    sums = np.concatenate([[0.0], np.cumsum(fame[order])])
    keys = group[order] * 10_000 + year[order]
    start, end = (np.searchsorted(keys, group[citing] * 10_000 + bound) for bound in (0, year[citing] + later))
    drawn = sums[start] + rng.random(len(citing)) * (sums[end] - sums[start])
    cited: Numbers = order[np.searchsorted(sums, drawn, side="right").clip(1, len(group)) - 1]
    return cited


def _rows(
    rng: np.random.Generator, papers: dict[str, Numbers], cited: tuple[Numbers, Numbers], count: int
) -> dict[str, Numbers]:
    """The ids of all rows of citations in their order: each pair, copies of some, and those that nothing resolves."""
    resolved = max(round(count * (1 - UNRESOLVED)), len(cited[0]))
    chosen = np.concatenate([np.arange(len(cited[0])), rng.integers(0, len(cited[0]), resolved - len(cited[0]))])
    citing, others = papers["id"][cited[0][chosen]], papers["id"][cited[1][chosen]]
    # The id of a paper without a record follows from that of the pair, so that copies have the same.
    is_unrecorded = (cited[0] * 31 + cited[1] * 17) % 1000 < 1000 * UNRECORDED
    others = np.where(is_unrecorded[chosen], LARGEST_ID + others % 10_000_000, others)
    unresolved = papers["id"][cited[0][rng.integers(0, len(cited[0]), max(count - resolved, 0))]]
    order = rng.permutation(resolved + len(unresolved))
    return {
        "citing": np.concatenate([citing, unresolved])[order],
        "cited": np.concatenate([others, np.full(len(unresolved), -1)])[order],
    }


def _write_shard(
    folder: Path, write: Callable[..., Iterator[str]], path: Path, shard: int, shards: int, seed: list[int]
) -> None:
    arrays = {each.stem: np.load(each, mmap_mode="r") for each in folder.glob("*.npy")}
    arrays["sentences"] = json.loads((folder / "sentences.json").read_text())
    with igzip.open(path, "wb", compresslevel=2) as file:
        for lines in write(arrays, shard, shards, np.random.default_rng(seed)):
            file.write(lines.encode())


def _paper(arrays: dict[str, Numbers], shard: int, shards: int, rng: np.random.Generator) -> Iterator[str]:
    texts = Texts(arrays["community"])
    for rows in _blocks(np.arange(shard, len(arrays["id"]), shards)):
        titles = texts.drawn(rng, rows, np.full(len(rows), TITLE))
        columns = [arrays[name][rows].tolist() for name in ("id", "year", "field", "references", "citations")]
        lines = []
        for title, paper, year, field, references, citations in zip(titles, *columns, strict=True):
            doi = f'"10.5555/{paper:x}"' if paper % 10 < 6 else "null"
            authors = ",".join(
                f'{{"authorId":"{(paper * 7 + n) % 9_000_000}","name":"A. Author{n}"}}' for n in range(paper % 5)
            )
            lines.append(
                f'{{"corpusid":{paper},"externalids":{{"ACL":null,"DBLP":null,"ArXiv":null,"MAG":"{paper}","CorpusId":'
                f'"{paper}","PubMed":null,"DOI":{doi},"PubMedCentral":null}},"url":"https://example.org/paper/{paper}",'
                f'"title":"{title.capitalize()}","authors":[{authors}],"venue":"Journal {field}","publicationvenueid":'
                f'null,"year":{year if paper % 100 else "null"},"referencecount":{references},"citationcount":'
                f'{citations},"influentialcitationcount":{citations // 20},"isopenaccess":false,"s2fieldsofstudy":'
                f'[{{"category":"Field {field}","source":"s2-fos-model"}}],"publicationtypes":null,"publicationdate":'
                f'"{year}-06-01","journal":{{"name":"Journal {field}","pages":null,"volume":"{year - 1950}"}}}}\n'
            )
        yield "".join(lines)


def _abstract(arrays: dict[str, Numbers], shard: int, shards: int, rng: np.random.Generator) -> Iterator[str]:
    texts, share = Texts(arrays["community"]), np.linspace(0, 1, len(LENGTHS))
    for rows in _blocks(np.flatnonzero(arrays["has_abstract"])[shard::shards]):
        lengths = np.interp(rng.random(len(rows)), share, LENGTHS).astype(np.int64)
        abstracts = texts.drawn(rng, rows, lengths)
        yield "".join(
            f'{{"corpusid":{paper},"openaccessinfo":{{"externalids":{{"MAG":"{paper}","DOI":null}},"license":null,'
            f'"url":null,"status":null}},"abstract":"{abstract.capitalize()}."}}\n'
            for paper, abstract in zip(arrays["id"][rows].tolist(), abstracts, strict=True)
        )


def _citation(arrays: dict[str, Numbers], shard: int, shards: int, rng: np.random.Generator) -> Iterator[str]:
    sentences = [json.dumps(sentence, ensure_ascii=False) for sentence in arrays["sentences"]]
    for rows in _blocks(np.arange(shard, len(arrays["citing"]), shards)):
        yield citation_lines(rng, sentences, rows, arrays["citing"][rows], arrays["cited"][rows])


def _blocks(rows: Numbers) -> Iterator[Numbers]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]


class Texts:
    """Texts of papers: half of the words by Zipf's law from all, half from those of the community."""

    def __init__(self, community: Numbers, words: int = WORDS, own: int = OWN) -> None:
        self.community = community
        self.names = np.array([word(number) for number in range(words)], dtype=object)
        self.common, self.own = (np.cumsum(1 / np.arange(1, size + 1)) for size in (words, own))

    def drawn(self, rng: np.random.Generator, papers: Numbers, lengths: Numbers) -> list[str]:
        """A text of so many words for each paper."""
        total, words = int(lengths.sum()), len(self.names)
        community = np.repeat(self.community[papers], lengths)
        common, own = (
            np.searchsorted(ends, rng.random(total) * ends[-1]).clip(max=len(ends) - 1)
            for ends in (self.common, self.own)
        )
        # A community's own words follow from its number.
        own_words = (community * 2_654_435_761 + own * 40_503) % (words - 300) + 300
        names = self.names[np.where(rng.random(total) < 0.5, common, own_words)]
        return [" ".join(some) for some in np.split(names, np.cumsum(lengths)[:-1])]
