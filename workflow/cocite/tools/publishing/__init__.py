"""`cocite publish`: a trained model as a folder for upload. `cocite export-mteb`: the scores of a run for mteb."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.core.options import ConfigFile, Output, Results
from cocite.core.progress import report

app = typer.Typer(add_completion=False)


@app.command()
def publish(
    model: Annotated[str, typer.Argument(help="Name of a model, or model/seed.")],
    *,
    licence: Annotated[str, typer.Option(help="Licence of the weights, as the hub calls it, such as apache-2.0.")],
    output: Output,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    vectors: Annotated[bool, typer.Option(help="Put the vectors of all papers in.")] = False,
) -> None:
    """Write the folder of a model for publication, and check that it opens and embeds as the run did."""
    from cocite.tools.inspection.nearest import find_model
    from cocite.tools.inspection.opening import results_of
    from cocite.tools.publishing.folder import write_folder

    folder = results_of(results, configfile)
    checked = write_folder(folder, find_model(folder, model, "MODEL"), output, licence=licence, with_vectors=vectors)
    report(f"{output}: opens, and gives {checked} documents of the run the vectors that they had there.")


@app.command("export-mteb")
def export_mteb(
    *,
    output: Output,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    owner: Annotated[str, typer.Option(help="Whose models they are, before the slash in mteb's names.")] = "cocite",
) -> None:
    """Write the scores of a run as the library mteb writes its results, a file of JSON for each task of each model."""
    from cocite.tools.inspection.opening import results_of
    from cocite.tools.publishing.mteb import export_results

    written, omitted = export_results(results_of(results, configfile), output, owner)
    for reason, names in omitted.items():
        report(f"Left out are scores {reason} ({', '.join(names)}).")
    report(f"{output}: {written:,} results, which mteb reads with ResultCache({str(output)!r}).")
