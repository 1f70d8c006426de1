"""`cocite doctor`: looks at the place before a run, and says of each thing whether it will do and what to do if not.

A finding that would stop the run is `failed`, and the exit status then 1; one that may surprise is a `warning`.
Nothing is written, and the key goes to the host of the API and nowhere else.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import yaml

from cocite.errors import InputError

app = typer.Typer()

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "envs" / "lock.txt"
PATIENCE = 20
"""Seconds that the API and Slurm are waited for."""
PLACEHOLDERS = ("your-partition", "your-account", "your-gpu-partition")
"""What the delivered profile has in place of names that only the site knows."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's."""

    verdict: Literal["ok", "warning", "failed"]
    what: str
    """What was looked at, and how it is."""
    to_do: str = ""
    """What helps; empty where all is well."""

    def __str__(self) -> str:
        """The line that is printed."""
        return " — ".join(part for part in (f"{self.verdict:7}", self.what, self.to_do) if part)


@app.command()
def doctor(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
    profile: Annotated[Path | None, typer.Option(help="Folder of the cluster's profile, such as slurm.")] = None,
) -> None:
    """Check this place before a run: libraries, GPU, key, disk, Slurm; the exit status is 1 if the run would stop."""
    from cocite.configuration import read_configuration

    findings = []
    for finding in examine(read_configuration(configfile), profile):
        findings.append(finding)
        typer.echo(str(finding))
    raise typer.Exit(int(any(finding.verdict == "failed" for finding in findings)))


def examine(config: Mapping[str, Any], profile: Path | None) -> Iterator[Finding]:
    """All findings on a resolved configuration, and on the profile of a cluster if the run shall go there."""
    yield python(sys.version_info[:2])
    yield from libraries(LOCK.read_text(encoding="utf-8"))
    yield gpu(wanted=config["gpu"], on_cluster=profile is not None)
    yield faiss()
    accepted = key(config)
    yield accepted
    if accepted.verdict == "ok":
        yield disk(config)
    if profile is not None:
        yield from examine_cluster(profile)


def examine_cluster(profile: Path) -> Iterator[Finding]:
    """The findings on Slurm, and on the profile for it."""
    partitions = yield from slurm()
    yield from site(profile, partitions)


def python(version: tuple[int, ...]) -> Finding:
    """Whether this Python is new enough."""
    name = f"Python {version[0]}.{version[1]}"
    return Finding("ok", name) if version >= (3, 11) else Finding("failed", name, "use Python 3.11 or newer")


def libraries(lock: str) -> Iterator[Finding]:
    """The libraries that CoCite asks for, beside the versions that the lock has."""
    locked = dict(line.split("==") for line in lock.splitlines() if "==" in line)
    asked = [line for line in metadata.requires("cocite") or () if "extra ==" not in line]
    names = [re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in asked]
    found = {name: _version(name) for name in names if name in locked}
    missing = [name for name, version in found.items() if version is None]
    others = [f"{name} {version}" for name, version in found.items() if version and not _same(version, locked[name])]
    if missing:
        yield Finding("failed", f"libraries missing: {', '.join(missing)}", "run `make run`, which installs them")
    if others:
        yield Finding(
            "warning", f"not as in envs/lock.txt: {', '.join(others)}", "the last digits of results may differ"
        )
    if not missing and not others:
        yield Finding("ok", f"{len(found)} libraries as in envs/lock.txt")


def gpu(*, wanted: bool, on_cluster: bool) -> Finding:
    """Whether PyTorch sees a GPU."""
    import torch

    if torch.cuda.is_available():
        return Finding("ok", f"GPU: {torch.cuda.get_device_name(0)}")
    if wanted and not on_cluster:
        return Finding("warning", "no GPU in sight, which `gpu: true` asks for", "fine-tuning will run on the CPU")
    return Finding("ok", "no GPU here; the nodes have their own" if wanted else "no GPU, and none asked for")


def faiss() -> Finding:
    """Whether FAISS loads, and for what it is built."""
    try:
        import faiss as library
    except ImportError as error:
        return Finding("failed", f"FAISS does not load ({error})", "run `make run`, which installs it")
    device = "GPUs" if hasattr(library, "StandardGpuResources") else "CPUs"
    return Finding("ok", f"FAISS {library.__version__} for {device}")


def key(config: Mapping[str, Any]) -> Finding:
    """Whether the API, where the corpus comes from one, takes the key."""
    import requests

    from cocite.corpus.release.client import KEY_HEADER, KEY_VARIABLE, has_key

    corpus = config["corpus"]
    if corpus["source"] != "s2":
        return Finding("ok", f"no key needed for the source {corpus['source']}")
    if not has_key():
        to_do = f"run `export {KEY_VARIABLE}=…`; https://www.semanticscholar.org/product/api gives one"
        return Finding("failed", f"{KEY_VARIABLE} is not set", to_do)
    url = f"{corpus['api'].rstrip('/')}/release/{config['release']}/dataset/papers"
    headers = {KEY_HEADER: os.environ[KEY_VARIABLE].strip()}
    try:
        status = requests.get(url, headers=headers, timeout=PATIENCE, allow_redirects=False).status_code
    except (requests.RequestException, ValueError) as error:
        return Finding("failed", f"{corpus['api']} cannot be reached ({type(error).__name__})", "check the network")
    answers = {
        200: Finding("ok", f"{corpus['api']} takes the key"),
        401: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again"),
        403: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again, or ask for a new one"),
        404: Finding(
            "failed", f"{corpus['api']} has no release {config['release']}", "check `release` and `corpus.api`"
        ),
    }
    return answers.get(status, Finding("warning", f"{corpus['api']} answers with status {status}", "try again later"))


def disk(config: Mapping[str, Any]) -> Finding:
    """Whether the disk of the results holds the corpus, as `cocite corpus plan` estimates it."""
    from cocite.corpus.release.outlook import in_words
    from cocite.corpus.release.plan import plan_corpus

    try:
        plan = plan_corpus(config)
    except InputError as error:
        return Finding("failed", "the corpus cannot be planned", str(error))
    need = max(plan.at_peak - plan.there, 0)
    what = f"disk: {in_words(plan.free)} free, about {in_words(need)} needed for the corpus"
    return (
        Finding("ok", what) if plan.free >= need else Finding("failed", what, "point pathvars.results to another disk")
    )


def slurm() -> Generator[Finding, None, list[str]]:
    """Whether Slurm answers; returns the names of its partitions, none if it does not."""
    if shutil.which("sinfo") is None:
        yield Finding("failed", "no Slurm: sinfo is not on the PATH", "start from a login node of the cluster")
        return []
    command = ["sinfo", "--noheader", "--format=%R"]
    try:
        answered = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    except (subprocess.SubprocessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().partition("\n")[0]
        yield Finding("failed", f"Slurm does not answer: {reason}", "ask those who run the cluster")
        return []
    partitions = sorted(set(answered.stdout.split()))
    yield Finding("ok", f"Slurm answers, with the partitions {', '.join(partitions)}")
    return partitions


def site(profile: Path, partitions: list[str]) -> Iterator[Finding]:
    """Whether the profile names an account, and partitions that there are."""
    file = profile / "config.yaml"
    if not file.is_file():
        yield Finding("failed", f"{file} does not exist", "--profile names a folder, such as slurm")
        return
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings = [written["default-resources"], *written.get("set-resources", {}).values()]
    for entry in ("slurm_partition", "slurm_account"):
        for name in sorted({str(resources[entry]) for resources in settings if entry in resources}):
            if name in PLACEHOLDERS:
                yield Finding("failed", f"{file}: {entry} is still {name}", "set it to what your site has")
            elif entry == "slurm_partition" and partitions and name not in partitions:
                yield Finding("failed", f"{file}: no partition {name}", f"take one of {', '.join(partitions)}")
            else:
                yield Finding("ok", f"{file}: {entry} {name}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _same(version: str, locked: str) -> bool:
    return version.partition("+")[0] == locked.partition("+")[0]
