"""What a finished run of the small demo made: `python -m tests.workflow.record` writes it to record.txt.

For each rule there is its version and a digest of the parameters of its jobs, and for each table that follows from no
learned number, which would differ between machines, a digest of its rows. A table that changes is a changed result: the
`version` of its rule has to be raised, so that finished runs make it again.
"""

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from cocite.tools.cluster import RULE, rule_files

RECORD = Path(__file__).with_name("record.txt")
LEARNED = ("embeddings", "neighbours", "encoder", "baselines", "report")
"""Folders of results whose numbers depend on the machine."""

Lines = dict[tuple[str, str], str]
"""The kind (rule or table) and name of what is recorded, and the rest of its line."""


def versions() -> dict[str, int]:
    """The version of each rule; one that uses another has its version, unless it has its own."""
    found: dict[str, int] = {}
    for rule in RULE.finditer("".join(path.read_text(encoding="utf-8") for path in rule_files())):
        own = re.search(r"^ +version=(\d+),", rule["body"], re.MULTILINE)
        found[rule["rule"] or rule["use"]] = int(own[1]) if own else found.get(rule["base"], 0)
    return found


def read_record() -> Lines:
    """What was recorded."""
    lines = (line.split(maxsplit=2) for line in RECORD.read_text(encoding="utf-8").splitlines())
    return {(kind, name): rest for kind, name, rest in lines}


def record_of(folder: Path) -> Lines:
    """What Snakemake's metadata and the tables of a finished run in this folder say."""
    jobs, metadata = {}, folder / ".snakemake" / "metadata"
    for file in filter(Path.is_file, metadata.rglob("*")):
        name = base64.b64decode(str(file.relative_to(metadata)).replace("/", "")).decode()
        jobs[name] = json.loads(file.read_text(encoding="utf-8"))
    version = versions()
    lines: Lines = {}
    for rule in {job["rule"] for job in jobs.values()}:
        of_jobs = {(job["job_hash"], *job["params"]) for job in jobs.values() if job["rule"] == rule}
        parameters = sorted(" ".join(str(value) for value in values) for _, *values in of_jobs)
        lines["rule", rule] = f"{version[rule]} {digest(parameters)}"
    for output, job in jobs.items():
        if output.endswith(".parquet") and not _is_learned(output, jobs) and (folder / output).is_file():
            table = pq.read_table(folder / output)
            rows = [str(table.schema.remove_metadata()), *map(_as_text, table.to_pylist())]
            lines["table", output] = f"{job['rule']} {version[job['rule']]} {digest(rows)}"
    return lines


def digest(lines: Iterable[str]) -> str:
    """A digest of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def _as_text(value: object) -> str:
    """A value of a table, with six digits of a float: the last ones depend on the machine."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_text, value))}]"
    return _as_text([[name, each] for name, each in value.items()]) if isinstance(value, dict) else repr(value)


def _is_learned(output: str, jobs: dict[str, dict]) -> bool:
    """Whether an output, or what it is made from, has numbers that depend on the machine."""
    if Path(output).parts[1] in LEARNED:
        return True
    return any(_is_learned(each, jobs) for each in jobs[output]["input"] if each in jobs)


def main() -> None:
    """Run the small demo, and record it."""
    from tests.workflow.conftest import fresh_run

    with tempfile.TemporaryDirectory() as folder:
        run = fresh_run(Path(folder))
        run.make("all")
        lines = record_of(run.folder)
    RECORD.write_text("".join(f"{kind} {name} {rest}\n" for (kind, name), rest in sorted(lines.items())))


if __name__ == "__main__":
    main()
