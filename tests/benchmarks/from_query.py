"""50,000 works by query, and those that they cite, from a local server of OpenAlex's API to a report and a search.

The works are generated: communities of a hundred share words and mostly cite each other, the well known more often.
"""

import json
import os
import re
import shlex
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tests.benchmarks.made_triplets import word
from tests.benchmarks.measuring import Cost, cocite, run, run_and_read, say
from tests.corpus.made_openalex import work, write_copy
from tests.releases.server import Arrival
from tests.releases.works_server import ID, Work, WorksCatalogue, serve_works

WORKS, MATCHING = 120_000, 50_000
COMMUNITY, TOPICS, YEARS = 100, 6, (1985, 2023)
FIRST = 4_000_000_000
FILTER = "primary_topic.id:T1,publication_year:2005-2022"
COMMON, OWN = 30_000, 120
"""Words of all works, and of a community."""
LENGTH, REFERENCES = 130, 10
SHARES = {"community": 0.6, "topic": 0.2, "all": 0.12}
"""Of references, by where the cited works are; the others are to works that there are not."""


class Unchanging(WorksCatalogue):
    """A catalogue that looks for works once for each query."""

    def matching(self, sent: dict[str, str]) -> list[Work]:
        return self._matching(sent["filter"])

    @cache  # noqa: B019
    def _matching(self, filters: str) -> list[Work]:
        return super().matching({"filter": filters})


def main(folder: Path, works: int = WORKS, matching: int = MATCHING) -> None:
    folder = folder.absolute()
    os.chdir(folder)
    records, requests = made(works, matching), list[Arrival]()
    key = os.environ["OPENALEX_API_KEY"] = "a-key-of-the-benchmark"
    printed = folder / "started.txt"
    with printed.open("wb") as file:
        run_and_read(cocite("start", "from-query.yaml", filter=FILTER), file)
    config = yaml.safe_load(Path("from-query.yaml").read_text())
    with serve_works(Unchanging(records), key=key, requests=requests) as origin:
        config["corpus"]["api"] = origin
        Path("from-query.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        command = next(line for line in printed.read_text().splitlines() if "--snakefile" in line).partition("#")[0]
        say(f"Run: {_time(run(shlex.split(command)))}")
    kinds = Counter(kind_of(each) for each in requests)
    say(f"Requests: {dict(kinds)}, {sum(each.body_sent for each in requests) / 1e6:.0f} MB of answers.")
    results = folder / config["pathvars"]["results"]
    say(f"Disk: {sum(path.stat().st_size for path in results.rglob('*') if path.is_file()) / 1e6:.0f} MB.")
    jobs = [(path, job) for path in Path("benchmarks").rglob("*.jsonl") for job in map(json.loads, path.open())]
    for key in ("max_rss", "s"):
        for path, job in sorted(jobs, key=lambda each: -float(each[1][key]))[:5]:
            say(f"  {job['max_rss']:,.0f} MB, {job['s']:.0f} s: {path.relative_to('benchmarks/from-query')}")
    say(f"Search: {_time(run(cocite('search', records[-1]['title'], results=results)))}")
    _compare_with_copy(config, records, command, results)


def _time(cost: Cost) -> str:
    """The time of a command; its peak memory is no less than that of this process, which has all works."""
    return f"{cost.wall:.1f} s ({cost.cpu:.1f} s of processors)"


def kind_of(request: Arrival) -> str:
    """What a request is for, and how it was answered."""
    kind = "cited" if "ids.openalex" in request.target else "count" if "per_page=1&" in request.target else "matching"
    return f"{kind} {request.status}"


def _compare_with_copy(config: dict[str, Any], records: list[Work], command: str, results: Path) -> None:
    """Make the tables of a copy of the same works, and compare their bytes."""
    known = {record["id"]: record for record in records}
    chosen = {record["id"] for record in Unchanging(records).matching({"filter": FILTER})}
    say(f"Works that match: {len(chosen):,}.")
    chosen |= {cited for each in [*chosen] for cited in known[each]["referenced_works"] if cited in known}
    say(f"With those that they cite: {len(chosen):,}.")
    write_copy(Path("bucket"), "jsonl", [record for record in records if record["id"] in chosen], per_file=10**6)
    copied = config["corpus"].keys() - {"filter", "expand", "api"}
    config["corpus"] = {name: config["corpus"][name] for name in copied}
    config["corpus"] |= {"format": "jsonl", "jobs": 1, "path": str(Path("bucket/data/jsonl").absolute())}
    config |= {"release": "latest", "pathvars": {"results": "results/copy"}}
    Path("copy.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    words = [re.sub("^from-query.yaml$", "copy.yaml", each) for each in shlex.split(command)]
    say(f"Corpus of the copy: {_time(run([*words[:-1], 'corpus']))}")
    for path in sorted(chain(*((results / "corpus" / name).glob("*.parquet") for name in ("papers", "citations")))):
        same = path.read_bytes() == Path("results/copy", path.relative_to(results)).read_bytes()
        say(f"  {path.relative_to(results)}, {path.stat().st_size:,} bytes: {'equal' if same else 'DIFFERENT'}")


def made(works: int, matching: int) -> list[Work]:
    """Works, of which so many match the filter."""
    rng = np.random.default_rng(48)
    community = rng.integers(0, works // COMMUNITY, works)
    topic = np.where(community % 10 < 7, 1, community % TOPICS + 2)
    first, end = YEARS
    year = first + ((end - first) * rng.random(works) ** 0.6).astype(int)
    found = rng.permutation(np.flatnonzero((topic == 1) & (year >= 2005)))
    topic[found[matching:]] = 0
    groups = {"community": community, "topic": topic, "all": np.zeros(works, dtype=int)}
    cited: list[set[int]] = [set() for _ in range(works)]
    fame = rng.pareto(1.2, works) + 0.05
    for name, share in SHARES.items():
        for citing, other in zip(*_citations(rng, groups[name], year, fame, share), strict=True):
            cited[citing].add(other)
    for citing, other in zip(*rng.integers(0, works, (2, int(works * REFERENCES * 0.08))), strict=True):
        cited[citing].add(works + 1000 + other // 3)
    times = Counter(chain(*cited))
    texts = _texts(rng, community)
    return [
        work(
            FIRST + number,
            title=" ".join(text[:10]).capitalize(),
            abstract=" ".join(text[10:]) if rng.random() < 0.8 else None,
            year=int(year[number]),
            venue=f"Journal {topic[number]}",
            doi=f"10.1234/{number}",
            authors=["Ada Abel", "Bo Bell"],
            citation_count=times[number],
            references=[FIRST + int(other) for other in sorted(cited[number])],
            primary_topic={"id": f"{ID}T{topic[number]}", "field": {"id": f"{ID}F1", "display_name": "Art"}},
        )
        for number, text in enumerate(texts)
    ]


def _citations(rng: np.random.Generator, group: Any, year: Any, fame: Any, share: float) -> tuple[Any, Any]:
    """Citations of works of earlier years in the same group, by fame."""
    works = len(group)
    order = np.lexsort((year, group))
    sums = np.concatenate([[0.0], np.cumsum(fame[order])])
    keys = group[order] * 10_000 + year[order]
    citing = np.repeat(np.arange(works), rng.geometric(1 / (1 + share * REFERENCES), works) - 1)
    start, end = (np.searchsorted(keys, group[citing] * 10_000 + bound) for bound in (0, year[citing]))
    drawn = sums[start] + rng.random(len(citing)) * (sums[end] - sums[start])
    cited = order[np.searchsorted(sums, drawn, side="right").clip(1, works) - 1]
    is_earlier = (start < end) & (year[cited] < year[citing]) & (group[cited] == group[citing])
    return citing[is_earlier], cited[is_earlier]


def _texts(rng: np.random.Generator, community: Any) -> list[list[str]]:
    """Half of the words of a work by Zipf's law from all words, half from those of its community."""
    names = np.array([word(number) for number in range(COMMON)], dtype=object)
    texts = []
    ends, own_ends = (np.cumsum(1 / np.arange(1, size + 1)) for size in (COMMON, OWN))
    own = rng.integers(200, COMMON, (community.max() + 1, OWN))
    for each in community:
        is_own = rng.random(LENGTH) < 0.5
        draws = rng.random(LENGTH)
        common = np.searchsorted(ends, draws * ends[-1]).clip(max=COMMON - 1)
        places = own[each][np.searchsorted(own_ends, draws * own_ends[-1]).clip(max=OWN - 1)]
        texts.append(names[np.where(is_own, places, common)].tolist())
    return texts
