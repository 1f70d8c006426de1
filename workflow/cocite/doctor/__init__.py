"""`cocite doctor`: looks at the place before a run, and says of each thing whether it will do and what to do if not.

A finding that would stop the run is `failed`, and the exit status then 1; one that may surprise is a `warning`.
Nothing is written, and the key goes to the host of the API and nowhere else.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cocite.doctor.finding import Finding

app = typer.Typer()


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


def examine(config: Mapping[str, Any], profile: Path | None) -> Iterator["Finding"]:
    """All findings on a resolved configuration, and on the profile of a cluster if the run shall go there."""
    from cocite.doctor.cluster import examine_cluster
    from cocite.doctor.machine import examine_machine
    from cocite.doctor.source import examine_source

    yield from examine_machine(gpu_wanted=config["gpu"], on_cluster=profile is not None)
    yield from examine_source(config)
    if profile is not None:
        yield from examine_cluster(profile)
