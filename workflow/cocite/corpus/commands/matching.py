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
    papers: Annotated[
        str, typer.Option(help="Folder of the table papers; without it, no document is known to be a paper.")
    ] = "",
    matches: Annotated[str, typer.Option(help="Table matches, if the corpus has other ids than the documents.")] = "",
    paper_ids: Annotated[
        str, typer.Option(help="Folder of Semantic Scholar's dataset paper-ids, by which hashes are found.")
    ] = "",
) -> None:
    """Find the documents of a benchmark among papers, if their ids alone do not say which they are."""
    from cocite.corpus.matching.documents import Evidence
    from cocite.corpus.matching.documents import find_documents as find

    leading = {name: Path(path) if path else None for name, path in (("matches", matches), ("paper_ids", paper_ids))}
    find(
        documents,
        Evidence(papers=Path(papers), **leading) if papers else None,
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )
