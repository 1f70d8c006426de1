"""The shards of a release as a run has them, from whatever source: listed once, then fetched part by part."""

from typing import Annotated

import typer

from cocite.config.corpus import Corpus
from cocite.config.settings import GivenAsJson
from cocite.core.options import Output, Results, State
from cocite.corpus.options import Dataset, ManifestFile, Part, Parts
from cocite.corpus.release.manifest import read_manifest, shards_of_part, write_manifest


def list_shards(
    settings: GivenAsJson[Corpus],
    *,
    release: Annotated[str, typer.Option(help="Id of the release, a date, or latest.")],
    results: Results,
    output: Output,
) -> None:
    """List the shards of a release, or of the diffs that lead to it. The source s2 needs the key in S2_API_KEY."""
    write_manifest(output, settings.list_release(release, results))


def download(
    dataset: Dataset,
    settings: GivenAsJson[Corpus],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    results: Results,
    state: State,
    output: Output,
) -> None:
    """Download the shards of a part of a dataset; a killed download resumes where it stopped."""
    listed = read_manifest(manifest)
    shards = shards_of_part(listed, dataset, part=part, parts=parts)
    settings.fetch(listed, dataset, shards, results=results, state=state, output=output)
