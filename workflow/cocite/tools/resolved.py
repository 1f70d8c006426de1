"""`cocite config`: a configuration with its defaults, or everything that is wrong with it."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def config(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
) -> None:
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
