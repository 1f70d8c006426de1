"""Whole runs, from an API to a report and a search, and what they are planned to cost.

`make rehearse SCALE=0.001` runs experiments/whole.yaml on a part of a release, in four buckets, and trains on all
links. At SCALE 0.01 a bucket has two thirds as many citations as one of the 256 that a whole release has. It writes
what each stage and each rule took.
"""

import json
import os
import re
import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
import yaml
from tests.benchmarks.made_release import Texts, cited_by_fame, write_release
from tests.benchmarks.measuring import Command, Cost, cocite, run, run_and_read, say, say_header, say_row
from tests.corpus.made_openalex import work, write_copy
from tests.releases.server import Arrival, serve, serve_copy
from tests.releases.works_server import ID, Work, WorksCatalogue, serve_works

from cocite.core.atomic import write_json
from cocite.demo.release import shard_paths
from cocite.tools.documentation import ROOT

RELEASE, KEY = "2026-01-06", "a-key-of-the-rehearsal"
SHARDS = {"papers": 4, "abstracts": 4, "citations": 12}
BUCKETS, QUERIES = 4, 2000
MEMORY_MB = 4000

GB = 10**9
WHOLE = {"papers": (60, 45 * GB), "abstracts": (30, 38 * GB), "citations": (358, 255 * GB)}
"""Files of a release of Semantic Scholar and their size. That of abstracts is an estimate: a third of 133 GB unpacked
in 2024, and what has been added since."""
WHOLE_COPY = (700, 320 * GB, 240_000_000)
"""Files of OpenAlex's works in JSON Lines, their size and the works in them."""
MACHINES = {
    "one server": ["--cores", "16", "--memory-mb", "192000"],
    "four nodes": ["--cores", "128", "--memory-mb", "1024000"],
    "a cluster": ["--profile", ROOT / "profiles/slurm"],
}

COMMUNITY, TOPICS, YEARS = 100, 6, (1985, 2023)
FIRST = 4_000_000_000
FILTER = "primary_topic.id:T1,publication_year:2005-2022"
COMMON, OWN = 30_000, 120
"""Words of all works, and of a community."""
LENGTH, REFERENCES = 130, 10
SHARES = {"community": 0.6, "topic": 0.2, "all": 0.12}
"""Of references, by where the cited works are; the others are to works that there are not."""


def main(kept: Path, scale: float = 0.001, cores: int = os.cpu_count() or 1) -> None:
    folder = kept.absolute() / f"rehearsal-{scale:g}"
    start = time.perf_counter()
    say(f"Release: {write_release(folder / 'release', scale, RELEASE, SHARDS)}, {time.perf_counter() - start:.0f} s")
    os.chdir(folder)
    os.environ["S2_API_KEY"] = KEY
    with serve(folder / "release", key=KEY, port=_port()) as api:
        _write_config("whole.yaml", configuration(api))
        say(f"Planning: {run([*_snakemake(cores), '--dry-run'])}")
        before = psutil.disk_usage(str(folder)).free
        say(f"Run: {_watched(_snakemake(cores), before)}")
        say(f"Planning when all is done: {run([*_snakemake(cores), '--dry-run'])}")
    say(f"Search: {run(cocite('search', 'a word wab', results='results/whole'))}")
    _say_stages(Path("benchmarks/whole"))


def _port() -> int:
    """The port of the API that the run began with, which its jobs are told; 0 for a new run."""
    path = Path("whole.yaml")
    api = yaml.safe_load(path.read_text())["corpus"]["api"] if path.is_file() else ""
    return urlsplit(api).port or 0


def _write_config(path: str, config: dict[str, Any]) -> None:
    Path(path).write_text(yaml.safe_dump(config, sort_keys=False))


def configuration(api: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / "experiments/whole.yaml").read_text())
    config["corpus"] |= {"api": api, "shards": SHARDS, "buckets": BUCKETS}
    config["queries"]["count"] = QUERIES
    del config["triplets"]["citations"]["share"]
    return config | {"release": RELEASE}


def _snakemake(cores: int) -> Command:
    program = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", ROOT / "Snakefile"]
    limits = ["--cores", str(cores), "--resources", f"mem_mb={MEMORY_MB}"]
    return [*program, *limits, "--configfile", "whole.yaml", "--replace-workflow-config", "--benchmark-extended", "all"]


def _watched(command: Command, free: int) -> str:
    """Run a command; its cost, and how much of the disk was taken at most, as far as a look now and then shows it."""
    least, is_over = [free], Event()

    def watch() -> None:
        while not is_over.wait(2):
            least[0] = min(least[0], psutil.disk_usage(".").free)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        cost = run(command)
    finally:
        is_over.set()
        watcher.join()
    return f"{cost}, {(free - least[0]) / 1e9:.1f} GB of disk at most"


def _records(benchmarks: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Snakemake's records of the jobs, with the files that they are in."""
    for path in benchmarks.rglob("*.jsonl"):
        yield from ((path, job) for job in map(json.loads, path.open()))


def _say_stages(benchmarks: Path) -> None:
    """Print what each stage and each of its rules took."""
    by_stage: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for path, job in _records(benchmarks):
        by_stage[path.relative_to(benchmarks).parts[0]][job["rule_name"]].append(job)
    names = ("jobs", "CPU, s", "longest, s", "memory, MB", "of its request", "read, MB", "written, MB")
    say_header("stage or rule", *names)
    for stage, rules in sorted(by_stage.items()):
        _say_jobs(f"**{stage}**", [job for jobs in rules.values() for job in jobs])
        for rule, jobs in sorted(rules.items(), key=lambda each: -sum(_number(job["cpu_time"]) for job in each[1])):
            _say_jobs(rule, jobs)


def _say_jobs(name: str, jobs: list[dict[str, Any]]) -> None:
    of = {key: [_number(job[key]) for job in jobs] for key in ("cpu_time", "s", "io_in", "io_out")}
    share = max(peak_mb(job) / job["resources"]["mem_mb"] for job in jobs)
    took = [f"{cell:,.0f}" for cell in (len(jobs), sum(of["cpu_time"]), max(of["s"]), max(map(peak_mb, jobs)))]
    say_row(name, *took, f"{share:.0%}", *(f"{sum(of[key]):,.0f}" for key in ("io_in", "io_out")))


def peak_mb(job: dict[str, Any]) -> float:
    """The most memory that a job had, MB: Snakemake counts in MiB."""
    return _number(job["max_rss"]) * 2**20 / 1e6


def _number(value: Any) -> float:
    """A figure of a record; a job that ended at once has none."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def whole_plans(folder: Path) -> None:
    """What whole releases cost on three kinds of cluster, as `cocite plan` tells it: the tables of docs/scale.md.

    The files of a release are of the sizes of real ones (2026) but have no content: only their sizes are read.
    """
    os.environ["S2_API_KEY"] = KEY
    for served in (semantic_scholar, openalex):
        with served(folder / served.__name__) as corpus:
            os.chdir(folder / served.__name__)
            whole: dict[str, Any] = yaml.safe_load((ROOT / "experiments/whole.yaml").read_text())
            _write_config("whole.yaml", whole | {"corpus": corpus, "release": RELEASE})
            for name, machine in MACHINES.items():
                with Path("plan.md").open("w") as file:
                    command = cocite("plan", "--configfile", "whole.yaml", *machine, "--format", "markdown")
                    cost, _ = run_and_read(command, file)
                say(f"{served.__name__}, {name}: the plan took {cost}\n{Path('plan.md').read_text()}")


@contextmanager
def semantic_scholar(folder: Path) -> Iterator[dict[str, Any]]:
    """A release of Semantic Scholar behind its API, as the corpus of a configuration."""
    for name, (number, size) in WHOLE.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "README.txt").write_text("Without content.\n")
        for path in shard_paths(folder / name, date.fromisoformat(RELEASE), number):
            _write_hole(path, size // number)
    write_json(folder / "release.json", {"release_id": RELEASE, "datasets": [*WHOLE]})
    shards = {"papers": 15, "abstracts": 8, "citations": 90}
    with serve(folder, key=KEY) as api:
        yield {"source": "s2", "api": api, "buckets": 256, "shards": shards}


@contextmanager
def openalex(folder: Path) -> Iterator[dict[str, Any]]:
    """A copy of OpenAlex."""
    number, size, works = WHOLE_COPY
    part = {"content_length": size // number, "record_count": works // number}
    files = [f"data/jsonl/works/updated_date={RELEASE}/part_{place:04}.gz" for place in range(number)]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write_hole(folder / name, part["content_length"])
    entries = [{"url": f"s3://openalex/{name}", "meta": part} for name in files]
    entity = {"entity": "works", "content_length": size, "files": entries}
    meta = {"record_count": works, "content_length": size}
    manifest = {"date": RELEASE, "format": "jsonl", "meta": meta, "entities": [entity]}
    (folder / "data/jsonl/manifest.json").write_text(json.dumps(manifest))
    with serve_copy(folder) as origin:
        yield {"source": "openalex", "format": "jsonl", "url": f"{origin}/data/jsonl", "buckets": 256, "jobs": 90}


def _write_hole(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


class Unchanging(WorksCatalogue):
    """A catalogue that looks for works once for each query."""

    def matching(self, sent: dict[str, str]) -> list[Work]:
        return self._matching(sent["filter"])

    @cache  # noqa: B019
    def _matching(self, filters: str) -> list[Work]:
        return super().matching({"filter": filters})


def from_query(folder: Path, works: int = 120_000, matching: int = 50_000) -> None:
    """50,000 works by query, and those that they cite, from a local server of OpenAlex's API to a report and a search.

    The works are generated: communities of a hundred share words and mostly cite each other, the well known more often.
    """
    folder = folder.absolute()
    os.chdir(folder)
    records, requests = made_works(works, matching), list[Arrival]()
    key = os.environ["OPENALEX_API_KEY"] = "a-key-of-the-benchmark"
    printed = folder / "started.txt"
    with printed.open("wb") as file:
        run_and_read(cocite("start", "from-query.yaml", filter=FILTER), file)
    config = yaml.safe_load(Path("from-query.yaml").read_text())
    with serve_works(Unchanging(records), key=key, requests=requests) as origin:
        config["corpus"]["api"] = origin
        _write_config("from-query.yaml", config)
        command = next(line for line in printed.read_text().splitlines() if "--snakefile" in line).partition("#")[0]
        say(f"Run: {_time(run(shlex.split(command)))}")
    kinds = Counter(_kind_of(each) for each in requests)
    say(f"Requests: {dict(kinds)}, {sum(each.body_sent for each in requests) / 1e6:.0f} MB of answers.")
    results = folder / config["pathvars"]["results"]
    say(f"Disk: {sum(path.stat().st_size for path in results.rglob('*') if path.is_file()) / 1e6:.0f} MB.")
    jobs = list(_records(Path("benchmarks")))
    for key in ("max_rss", "s"):
        for path, job in sorted(jobs, key=lambda each: -float(each[1][key]))[:5]:
            say(f"  {job['max_rss']:,.0f} MB, {job['s']:.0f} s: {path.relative_to('benchmarks/from-query')}")
    say(f"Search: {_time(run(cocite('search', records[-1]['title'], results=results)))}")
    _compare_with_copy(config, records, command, results)


def _time(cost: Cost) -> str:
    """The time of a command; its peak memory is no less than that of this process, which has all works."""
    return f"{cost.wall:.1f} s ({cost.cpu:.1f} s of processors)"


def _kind_of(request: Arrival) -> str:
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
    corpus = {"format": "jsonl", "jobs": 1, "path": str(Path("bucket/data/jsonl").absolute())}
    config["corpus"] = {name: config["corpus"][name] for name in copied} | corpus
    _write_config("copy.yaml", config | {"release": "latest", "pathvars": {"results": "results/copy"}})
    words = [re.sub("^from-query.yaml$", "copy.yaml", each) for each in shlex.split(command)]
    say(f"Corpus of the copy: {_time(run([*words[:-1], 'corpus']))}")
    for path in sorted(chain(*((results / "corpus" / name).glob("*.parquet") for name in ("papers", "citations")))):
        same = path.read_bytes() == Path("results/copy", path.relative_to(results)).read_bytes()
        say(f"  {path.relative_to(results)}, {path.stat().st_size:,} bytes: {'equal' if same else 'DIFFERENT'}")


def made_works(works: int, matching: int) -> list[Work]:
    """Works, of which so many match the filter; they cite works of earlier years in the same group, by fame."""
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
        citing, group = (
            np.repeat(np.arange(works), rng.geometric(1 / (1 + share * REFERENCES), works) - 1),
            groups[name],
        )
        others = cited_by_fame(rng, group, year, fame, citing, later=0)
        is_earlier = (year[others] < year[citing]) & (group[others] == group[citing])
        for one, other in zip(citing[is_earlier], others[is_earlier], strict=True):
            cited[one].add(other)
    for citing, other in zip(*rng.integers(0, works, (2, int(works * REFERENCES * 0.08))), strict=True):
        cited[citing].add(works + 1000 + other // 3)
    times = Counter(chain(*cited))
    texts = Texts(community, COMMON, OWN).drawn(rng, np.arange(works), np.full(works, LENGTH))
    split = [text.split(" ", 10) for text in texts]
    return [
        work(
            FIRST + number,
            title=" ".join(title).capitalize(),
            abstract=abstract if rng.random() < 0.8 else None,
            year=int(year[number]),
            venue=f"Journal {topic[number]}",
            doi=f"10.1234/{number}",
            authors=["Ada Abel", "Bo Bell"],
            citation_count=times[number],
            references=[FIRST + int(other) for other in sorted(cited[number])],
            primary_topic={"id": f"{ID}T{topic[number]}", "field": {"id": f"{ID}F1", "display_name": "Art"}},
        )
        for number, (*title, abstract) in enumerate(split)
    ]
