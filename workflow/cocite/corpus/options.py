"""Options that several steps of the corpus have."""

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str, typer.Argument(help="papers, abstracts or citations.")]
ManifestFile = Annotated[Path, typer.Option("--manifest", help="What `cocite corpus list` wrote.")]
Part = Annotated[int, typer.Option(help="Which part of the shards to work on, from 0.")]
Parts = Annotated[int, typer.Option(help="Number of parts; each takes every n-th shard.")]
IngestedPapers = Annotated[Path, typer.Option(help="Table ingested_papers to write.")]
IngestedAbstracts = Annotated[Path, typer.Option(help="Table ingested_abstracts to write.")]
IngestedCitations = Annotated[Path, typer.Option(help="Table ingested_citations to write.")]
Report = Annotated[Path, typer.Option(help="Table ingest_report of these files.")]
Authors = Annotated[bool, typer.Option("--authors", help="Keep the names of papers' authors.")]
Names = Annotated[Path | None, typer.Option(help="Table names, where ids are texts.")]
