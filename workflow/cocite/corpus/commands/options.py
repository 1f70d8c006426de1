"""Options that several of these commands have."""

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str, typer.Argument(help="papers, abstracts or citations.")]
ManifestFile = Annotated[Path, typer.Option("--manifest", help="What `cocite corpus list` wrote.")]
Results = Annotated[Path, typer.Option(help="Folder of the results of the run.")]
Part = Annotated[int, typer.Option(help="Which part of the shards to work on, from 0.")]
Parts = Annotated[int, typer.Option(help="Number of parts; each takes every n-th shard.")]
