"""`cocite status`: what a run has done stage by stage, what is running, what failed, and the time that is left."""

from pathlib import Path

import typer

from cocite.core.options import ConfigFile, Results

app = typer.Typer(add_completion=False)


@app.command()
def status(results: Results = Path("results"), configfile: ConfigFile = None) -> None:
    """Show how far a run is: what is done, running and failed, and how long it will still take."""
    from cocite.config.configuration import results_folder
    from cocite.config.started import is_copy, read_start, record_of
    from cocite.config.yaml_files import written_configuration
    from cocite.core.errors import InputError
    from cocite.core.words import printable
    from cocite.tools.status.described import described
    from cocite.tools.status.progress import read_progress

    folder = results_folder(written_configuration(configfile)) if configfile else results
    start = read_start(folder)
    if start is None and is_copy(folder):
        made = record_of(folder)
        raise InputError(
            f"{folder} was copied or moved from {made.path(made.results)}, where its run was started on {made.host}; "
            "`cocite status` tells there how far that run is, and `cocite check` whether the tables here are whole."
        )
    if start is None:
        raise InputError(
            f"No run has been started in {folder}; start one, or name the folder of its results with --results."
        )
    for line in described(read_progress(start), folder):
        typer.echo(printable(line))
