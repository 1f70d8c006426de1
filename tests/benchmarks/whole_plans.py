"""What whole releases cost on three kinds of cluster, as `cocite plan` tells it: the tables of docs/scale.md.

The files of a release are of the sizes of real ones (2026) but have no content: only their sizes are read.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from tests.benchmarks.measuring import cocite, run_and_read, say
from tests.releases.server import serve, serve_copy

from cocite.core.atomic import write_json
from cocite.demo.release import shard_paths
from cocite.tools.documentation import ROOT

RELEASE, KEY = "2026-01-06", "a-key"
GB = 10**9
SHARDS = {"papers": (60, 45 * GB), "abstracts": (30, 38 * GB), "citations": (358, 255 * GB)}
"""Files of a release of Semantic Scholar and their size. That of abstracts is an estimate: a third of 133 GB unpacked
in 2024, and what has been added since."""
WORKS = (700, 320 * GB, 240_000_000)
"""Files of OpenAlex's works in JSON Lines, their size and the works in them."""
MACHINES = {
    "one server": ["--cores", "16", "--memory-mb", "192000"],
    "four nodes": ["--cores", "128", "--memory-mb", "1024000"],
    "a cluster": ["--profile", ROOT / "profiles/slurm"],
}


def main(folder: Path) -> None:
    os.environ["S2_API_KEY"] = KEY
    for served in (semantic_scholar, openalex):
        with served(folder / served.__name__) as corpus:
            os.chdir(folder / served.__name__)
            whole: dict[str, Any] = yaml.safe_load((ROOT / "experiments/whole.yaml").read_text())
            written = yaml.safe_dump(whole | {"corpus": corpus, "release": RELEASE}, sort_keys=False)
            Path("whole.yaml").write_text(written)
            for name, machine in MACHINES.items():
                with Path("plan.md").open("w") as file:
                    command = cocite("plan", "--configfile", "whole.yaml", *machine, "--format", "markdown")
                    cost, _ = run_and_read(command, file)
                say(f"{served.__name__}, {name}: the plan took {cost}\n{Path('plan.md').read_text()}")


@contextmanager
def semantic_scholar(folder: Path) -> Iterator[dict[str, Any]]:
    """A release of Semantic Scholar behind its API, as the corpus of a configuration."""
    for name, (number, size) in SHARDS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "README.txt").write_text("Without content.\n")
        for path in shard_paths(folder / name, date.fromisoformat(RELEASE), number):
            _hole(path, size // number)
    write_json(folder / "release.json", {"release_id": RELEASE, "datasets": [*SHARDS]})
    shards = {"papers": 15, "abstracts": 8, "citations": 90}
    with serve(folder, key=KEY) as api:
        yield {"source": "s2", "api": api, "buckets": 256, "shards": shards}


@contextmanager
def openalex(folder: Path) -> Iterator[dict[str, Any]]:
    """A copy of OpenAlex."""
    number, size, works = WORKS
    part = {"content_length": size // number, "record_count": works // number}
    files = [f"data/jsonl/works/updated_date={RELEASE}/part_{place:04}.gz" for place in range(number)]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _hole(folder / name, part["content_length"])
    entries = [{"url": f"s3://openalex/{name}", "meta": part} for name in files]
    entity = {"entity": "works", "content_length": size, "files": entries}
    meta = {"record_count": works, "content_length": size}
    manifest = {"date": RELEASE, "format": "jsonl", "meta": meta, "entities": [entity]}
    (folder / "data/jsonl/manifest.json").write_text(json.dumps(manifest))
    with serve_copy(folder) as origin:
        yield {"source": "openalex", "format": "jsonl", "url": f"{origin}/data/jsonl", "buckets": 256, "jobs": 90}


def _hole(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
