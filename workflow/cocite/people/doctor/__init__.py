"""`cocite doctor`: looks at the place before a run, and says of each thing whether it will do and what to do if not.

A finding that would stop the run is `failed`, and the exit status then 1; one that may surprise is a `warning`. All are
reported, whatever they are: who runs it on a new machine shall not have to come back for each. Nothing is written, and
the key goes to the host of the API and nowhere else.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cocite.people.doctor.finding import Finding

app = typer.Typer()


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


def examine(configfile: Path, profile: Path | None, memory_mb: int) -> Iterator["Finding"]:
    """All findings on a run with this configuration, and on the profile of a cluster if the run shall go there."""
    from cocite.people.doctor.cluster import examine_cluster
    from cocite.people.doctor.configured import examine_configuration
    from cocite.people.doctor.machine import examine_machine, memory
    from cocite.people.doctor.places import examine_places
    from cocite.people.doctor.source import examine_source

    config, corpus = yield from examine_configuration(configfile)
    yield from examine_machine(gpu_wanted=bool(config and config["gpu"]), on_cluster=profile is not None)
    if profile is None:
        yield memory(config, memory_mb)
    yield from examine_places(corpus or {})
    if corpus:
        yield from examine_source(corpus)
    if profile is not None:
        yield from examine_cluster(profile, config)
