"""`cocite doctor`: checks, before a run, the configuration, this machine, the disks, the key and the cluster.

`cocite config` prints the configuration with its defaults, or everything that is wrong with it.

Each finding says what was checked and, where it is not fine, what to do. `failed` would stop the run and makes the exit
status 1; `warning` may surprise. All findings are reported at once. The doctor writes nothing, and sends the key to the
API's host only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

app = typer.Typer()

TIMEOUT = 20
"""Seconds to wait for an answer of the API or of Slurm."""
Configuration = Mapping[str, Any]
ConfigFile = Annotated[Path, typer.Option(help="The configuration of the run.")]


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
    configfile: ConfigFile = Path("config.yaml"),
    profile: Annotated[Path | None, typer.Option(help="Folder of the cluster's profile, such as slurm.")] = None,
    memory_mb: Annotated[
        int, typer.Option(help="Memory that all jobs together may take on this machine, MB: MEMORY_MB of make.")
    ] = 4000,
) -> None:
    """Check this place before a run: configuration, libraries, memory, disks, key, Slurm.

    The exit status is 1 if the run would stop.
    """
    is_failed = False
    for finding in examine(configfile, profile, memory_mb):
        is_failed |= finding.verdict == "failed"
        typer.echo(str(finding))
    raise typer.Exit(int(is_failed))


def examine(configfile: Path, profile: Path | None, memory_mb: int) -> Iterator[Finding]:
    """All findings on a run with this configuration and, where a profile is given, on that cluster."""
    from cocite.tools.doctor import machine
    from cocite.tools.doctor.cluster import examine_cluster

    config, corpus = yield from machine.examine_configuration(configfile)
    yield from machine.examine_machine(gpu_wanted=bool(config and config["gpu"]), on_cluster=profile is not None)
    if profile is None:
        yield machine.memory(config, memory_mb)
    yield from machine.examine_places(corpus or {})
    if corpus:
        yield from machine.examine_source(corpus)
    if profile is not None:
        yield from examine_cluster(profile, config)


@app.command()
def config(configfile: ConfigFile = Path("config.yaml")) -> None:
    """Print a configuration with all defaults filled in; the exit status is 1 where it cannot be run."""
    import yaml

    from cocite.config.configuration import resolve_or_explain
    from cocite.config.yaml_files import written_configuration

    resolved, faults = resolve_or_explain(written_configuration(configfile))
    for fault in faults:
        typer.echo(f"Error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True), nl=False)
