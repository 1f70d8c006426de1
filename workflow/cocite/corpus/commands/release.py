"""Plan, list and download a release."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.corpus.commands.options import Dataset, ManifestFile, Part, Parts, Results
from cocite.ground.options import Output, Settings, State

app = typer.Typer()


@app.command()
def plan(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
) -> None:
    """Report what a corpus needs before any of it is fetched: shards, downloads, disk space, and what is there."""
    from cocite.config.configuration import read_configuration
    from cocite.corpus.release.plan import KEYS, plan_corpus
    from cocite.corpus.release.plan_in_words import describe

    typer.echo(describe(plan_corpus(read_configuration(configfile, KEYS)), configfile))


@app.command("list")
def list_shards(
    settings: Settings,
    release: Annotated[str, typer.Option(help="Id of the release, a date, or latest.")],
    results: Results,
    output: Output,
) -> None:
    """List the shards of a release, or of the diffs that lead to it. The source s2 needs the key in S2_API_KEY."""
    from cocite.config.corpus import Corpus
    from cocite.config.settings import parse_settings
    from cocite.corpus.release.manifest import write_manifest

    write_manifest(output, parse_settings(Corpus, settings).list_release(release, results))


@app.command()
def download(
    dataset: Dataset,
    settings: Settings,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    results: Results,
    state: State,
    output: Output,
) -> None:
    """Download the shards of a part of a dataset; a killed download resumes where it stopped."""
    from cocite.config.corpus import Corpus
    from cocite.config.settings import parse_settings
    from cocite.corpus.release.manifest import read_manifest, shards_of_part

    listed = read_manifest(manifest)
    shards = shards_of_part(listed, dataset, part=part, parts=parts)
    parse_settings(Corpus, settings).fetch(listed, dataset, shards, results=results, state=state, output=output)
