"""`cocite doctor`: checks, before a run, the configuration, this machine, the disks, the key and the cluster.

Each finding says what was checked and, where it is not fine, what to do. `failed` would stop the run and makes the exit
status 1; `warning` may surprise. All findings are reported at once. The doctor writes nothing, and sends the key to the
API's host only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer()

TIMEOUT = 20
"""Seconds to wait for an answer of the API or of Slurm."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    verdict: Literal["ok", "warning", "failed"]
    what: str
    """What was checked, with the result."""
    to_do: str = ""
    """What to do about it; empty where nothing is wrong."""

    def __str__(self) -> str:
        """The line that is printed."""
        return " — ".join(part for part in (f"{self.verdict:7}", self.what, self.to_do) if part)


@app.command()
def doctor(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
    profile: Annotated[Path | None, typer.Option(help="Folder of the cluster's profile, such as slurm.")] = None,
    memory_mb: Annotated[
        int, typer.Option(help="Memory that all jobs together may take on this machine, MB: MEMORY_MB of make.")
    ] = 4000,
) -> None:
    """Check this place before a run: configuration, libraries, memory, disks, key, Slurm.

    The exit status is 1 if the run would stop.
    """
    findings = []
    for finding in examine(configfile, profile, memory_mb):
        findings.append(finding)
        typer.echo(str(finding))
    raise typer.Exit(int(any(finding.verdict == "failed" for finding in findings)))


def examine(configfile: Path, profile: Path | None, memory_mb: int) -> Iterator[Finding]:
    """All findings on a run with this configuration and, where a profile is given, on that cluster."""
    from cocite.tools.doctor.cluster import examine_cluster
    from cocite.tools.doctor.configuration import examine_configuration, examine_places, examine_source
    from cocite.tools.doctor.machine import examine_machine, memory

    config, corpus = yield from examine_configuration(configfile)
    yield from examine_machine(gpu_wanted=bool(config and config["gpu"]), on_cluster=profile is not None)
    if profile is None:
        yield memory(config, memory_mb)
    yield from examine_places(corpus or {})
    if corpus:
        yield from examine_source(corpus)
    if profile is not None:
        yield from examine_cluster(profile, config)
