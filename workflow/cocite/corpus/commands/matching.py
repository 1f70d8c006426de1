"""Ids of different origin: match papers with Semantic Scholar's, and find the documents of benchmarks among them."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import MemoryMb, Omissions, Output, Papers, Threads

app = typer.Typer()


@app.command()
def match(
    theirs: Annotated[Path, typer.Argument(help="Folder of Semantic Scholar's dataset papers.")],
    papers: Papers,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Match papers of other ids with Semantic Scholar's, by their MAG ids and DOIs."""
    from cocite.corpus.matching.papers import match_papers

    match_papers(papers, theirs, output=output, omissions=omissions, memory_mb=memory_mb, threads=threads)


@app.command()
def find_documents(
    documents: Annotated[Path, typer.Argument(help="Table documents of a benchmark.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    matches: Annotated[str, typer.Option(help="Table matches; without it, no document is known to be a paper.")] = "",
) -> None:
    """Find the documents of a benchmark among papers whose ids are of another origin."""
    from cocite.corpus.matching.documents import find_documents as find

    find(
        documents,
        Path(matches) if matches else None,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )
