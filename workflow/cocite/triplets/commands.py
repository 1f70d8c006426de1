"""`cocite triplets …`: sample triplets, and join them with their texts."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import Omissions, Output, Papers, Queries, Seed, Settings, WrittenSettings

app = typer.Typer(no_args_is_help=True)

PaperBuckets = Annotated[list[Path], typer.Argument(help="All buckets of the table papers.")]
Group = Annotated[list[Path], typer.Argument(help="The triplets of all sets that are compared with one another.")]


@app.command()
def sample_neighbours(
    papers: PaperBuckets,
    neighbours: Annotated[Path, typer.Option(help="Table neighbours.")],
    queries: Queries,
    settings: Settings,
    seed: Seed,
    output: Output,
    omissions: Omissions,
    written_settings: WrittenSettings,
) -> None:
    """Sample triplets from bands of ranked neighbours (CoCite, SciNCL)."""
    from cocite.files import write_json
    from cocite.settings import parse_settings, settings_as_dict
    from cocite.triplets.neighbours import NeighbourSettings, sample_from_neighbours
    from cocite.triplets.pairing import papers_with_text, read_queries, write_sampled

    chosen = parse_settings(NeighbourSettings, settings)
    pool = papers_with_text(papers, queries)
    sampled = sample_from_neighbours(neighbours, read_queries(queries), pool, chosen, seed)
    write_sampled(sampled, output=output, omissions=omissions)
    write_json(written_settings, {"sampler": "neighbours", "seed": seed, **settings_as_dict(chosen)})


@app.command()
def sample_citations(
    papers: PaperBuckets,
    edges: Annotated[Path, typer.Option(help="Folder of the edges of a directed citation graph.")],
    queries: Queries,
    settings: Settings,
    seed: Seed,
    output: Output,
    omissions: Omissions,
    written_settings: WrittenSettings,
) -> None:
    """Sample triplets from citations (SPECTER)."""
    from cocite.files import write_json
    from cocite.settings import parse_settings, settings_as_dict
    from cocite.triplets.citations import CitationSettings, sample_from_citations
    from cocite.triplets.pairing import papers_with_text, read_queries, write_sampled

    chosen = parse_settings(CitationSettings, settings)
    pool = papers_with_text(papers, queries)
    sampled = sample_from_citations(edges, read_queries(queries), pool, chosen, seed)
    write_sampled(sampled, output=output, omissions=omissions)
    write_json(written_settings, {"sampler": "citations", "seed": seed, **settings_as_dict(chosen)})


@app.command()
def materialise(
    group: Group,
    triplets: Annotated[Path, typer.Option(help="Table triplets of the set that is written.")],
    papers: Papers,
    seed: Seed,
    output: Output,
) -> None:
    """Join the training triplets of one set with their texts, cut to the smallest set of its group."""
    from cocite.triplets.texts import materialise_training

    materialise_training(triplets=triplets, group=group, papers=papers, seed=seed, output=output)


@app.command()
def materialise_validation(group: Group, papers: Papers, seed: Seed, output: Output) -> None:
    """Join the validation triplets of all sets of a group with their texts."""
    from cocite.triplets.texts import materialise_validation as materialise_for_validation

    materialise_for_validation(group=group, papers=papers, seed=seed, output=output)
