"""`cocite triplets …`: sample triplets, join them with their texts, and check them."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import (
    MemoryMb,
    Omissions,
    Output,
    Papers,
    Queries,
    Seed,
    Settings,
    State,
    Threads,
    WrittenSettings,
)

app = typer.Typer(no_args_is_help=True)


@app.command()
def sample(
    queries: Queries,
    papers: Papers,
    settings: Settings,
    seed: Seed,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    written_settings: WrittenSettings,
    sources: Annotated[list[Path] | None, typer.Argument(help="All files that the sampler draws from.")] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Table sampled_texts to write, of a sampler that brings texts.")
    ] = None,
) -> None:
    """Sample triplets, or examples; the settings are an entry of the configuration, which names the sampler."""
    from cocite.config.settings import parse_settings
    from cocite.config.triplets import TripletSet
    from cocite.triplets import sampling

    sampling.sample(
        parse_settings(TripletSet, settings),
        sources or [],
        queries=queries,
        papers=papers,
        seed=seed,
        threads=threads,
        output=output,
        omissions=omissions,
        written_settings=written_settings,
        texts=texts,
    )


@app.command()
def fetch(
    parts: Annotated[
        str,
        typer.Option(
            help="What is fetched, as JSON: for each part, such as pairs, its dataset on the Hugging Face hub, the "
            "revision and patterns of its files."
        ),
    ],
    state: State,
    output: Output,
) -> None:
    """Fetch brought queries and documents from the Hugging Face hub, pinned by commit; a killed fetch resumes."""
    import json

    from cocite.triplets.brought_pairs.fetch import fetch_parts

    fetch_parts(json.loads(parts), state=state, output=output)


@app.command()
def materialise(
    group: Annotated[
        list[Path],
        typer.Argument(
            help="Tables triplets or sampled_examples of all sets that are compared, and sampled_texts of those whose "
            "documents are written."
        ),
    ],
    papers: Papers,
    seed: Seed,
    threads: Threads,
    output: Output,
    documents: Annotated[Path, typer.Option(help="Folder of the documents to write, each with its texts once.")],
    triplets: Annotated[str, typer.Option(help="The sampled set whose training examples are written.")] = "",
) -> None:
    """Write the training examples of one set, or the validation examples of all sets of a group, and their documents.

    The training examples are cut to the smallest set of the group. Without `--triplets`, the validation examples are
    written.
    """
    from cocite.triplets.sampled import table_in
    from cocite.triplets.texts import training_examples, validation_examples, write_documents, write_examples

    use = "training" if triplets else "validation"
    texts = [path for path in group if table_in(path) == "sampled_texts"]
    sets = [path for path in group if path not in texts]
    rows = training_examples(Path(triplets), sets, seed) if triplets else validation_examples(sets, seed)
    write_documents(documents, f"{use}_documents", rows, papers, texts, threads=threads)
    write_examples(output, f"{use}_examples", rows)


@app.command()
def relate(
    citations: Annotated[list[Path], typer.Argument(help="Files of the table citations.")],
    queries: Queries,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Find out how a sample of the queries is related to other papers: the truth that neighbours are held against."""
    from cocite.triplets.band_quality import relate_sample

    relate_sample(citations, queries, seed=seed, memory_mb=memory_mb, threads=threads, output=output)


@app.command()
def measure_bands(
    neighbours: Annotated[list[Path], typer.Argument(help="Files of the table neighbours.")],
    relations: Annotated[Path, typer.Option(help="Table sampled_relations.")],
    queries: Queries,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Measure how many neighbours are truly related to the query, by their rank."""
    from cocite.config.settings import parse_settings
    from cocite.triplets.band_quality import BandSettings
    from cocite.triplets.band_quality import measure_bands as measure

    measure(
        neighbours,
        parse_settings(BandSettings, settings),
        relations=relations,
        queries=queries,
        seed=seed,
        memory_mb=memory_mb,
        threads=threads,
        output=output,
    )


@app.command()
def check(
    triplets: Annotated[Path, typer.Option(help="Table triplets.")],
    queries: Queries,
    papers: Papers,
    checks: Annotated[Path, typer.Option(help="Table triplet_checks to write.")],
    per_query: Annotated[Path, typer.Option(help="Table triplets_per_query to write.")],
    collisions: Annotated[Path, typer.Option(help="Table collisions to write.")],
    neighbours: Annotated[str, typer.Option(help="Folder of the neighbours it was drawn from, if any.")] = "",
    relations: Annotated[str, typer.Option(help="Table sampled_relations, where negatives were mined.")] = "",
    mined: Annotated[str, typer.Option(help="Table mined_positives, where negatives were mined.")] = "",
    benchmarks: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Tables documents of benchmarks, and document_papers of those whose ids are of another origin."
        ),
    ] = None,
) -> None:
    """Count what a set of triplets holds: triplets a query, collisions, papers without text or of benchmarks."""
    from cocite.tables.files import checked_files
    from cocite.triplets.checks import check_triplets

    check_triplets(
        triplets,
        neighbours=checked_files(Path(neighbours), "neighbours") if neighbours else [],
        queries=queries,
        papers=papers,
        benchmarks=benchmarks or [],
        mined=(Path(relations), Path(mined)) if mined else None,
        checks=checks,
        per_query=per_query,
        collisions=collisions,
    )
