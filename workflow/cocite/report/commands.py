"""`cocite report …`: tables, figures, the page and the DuckDB file of a run."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import MemoryMb, Output, Seed, Threads

app = typer.Typer(no_args_is_help=True)

Results = Annotated[Path, typer.Option(help="Folder of the results.")]
Provenance = Annotated[Path, typer.Option(help="What `cocite report provenance` wrote.")]
Tables = Annotated[Path, typer.Option(help="Folder of what `cocite report tables` wrote.")]


@app.command()
def provenance(
    configuration: Annotated[str, typer.Option(help="The resolved configuration as JSON.")],
    manifest: Annotated[Path, typer.Option(help="What `cocite corpus list` wrote.")],
    output: Output,
) -> None:
    """Write down what made the results: configuration, release, versions."""
    import json

    from cocite.report.provenance import write_provenance

    write_provenance(json.loads(configuration), manifest, output)


@app.command()
def tables(results: Results, provenance: Provenance, output: Output) -> None:
    """Write the report's tables as CSV files into a folder."""
    from cocite.files import atomic_path, read_json
    from cocite.report import compared_models
    from cocite.report import results as read
    from cocite.report import score_tables as tabulate_scores
    from cocite.report import tables as tabulate
    from cocite.report.published_tables import beside_published
    from cocite.report.triplet_tables import band_quality, triplet_sets

    configuration = read_json(provenance)["configuration"]
    scores = read.read_scored(results, configuration, "scores")
    averages = tabulate_scores.scirepeval(read.read_summary(results, configuration, "averages"), configuration)
    curves = read.read_curves(results, configuration)
    made = {
        "failures": tabulate_scores.failures(read.read_scored(results, configuration, "failures")),
        "models": tabulate.models_by_format(scores, configuration),
        "scirepeval_formats": averages.drop(tabulate_scores.GROUPS.values(), strict=False),
        "scirepeval_groups": averages.drop(tabulate_scores.WEIGHTS, strict=False),
        "scirepeval_tasks": beside_published("scirepeval", scores, configuration),
        "scidocs": beside_published("scidocs", scores, configuration),
        "mdcr": beside_published("mdcr", scores, configuration),
        "tasks": tabulate_scores.tasks(scores),
        "significance": tabulate_scores.significance(read.read_summary(results, configuration, "comparisons")),
        "losses": compared_models.losses(scores, curves, configuration),
        "difficulties": compared_models.difficulties(scores, curves, configuration),
        "graph_embeddings": tabulate.graph_embeddings(read.read_graph_scores(results, configuration)),
        "searches": tabulate.searches(results, configuration),
        "band_quality": band_quality(read.read_bands(results, configuration)),
        "triplets": triplet_sets(
            read.read_sets(results, configuration, "per_query", "triplets_per_query"),
            read.read_sets(results, configuration, "checks", "triplet_checks"),
        ),
        "leaks": tabulate.leaks(results),
        "omissions": tabulate.omissions(results, configuration),
    }
    with atomic_path(output) as folder:
        folder.mkdir()
        for name, table in made.items():
            table.write_csv(folder / f"{name}.csv")


@app.command()
def corpus(
    results: Results,
    pairs: Annotated[str, typer.Option(help="The table of pairs of each graph that is made of them, as JSON.")],
    memory_mb: MemoryMb,
    threads: Threads,
    statistics: Output,
    counts: Output,
    figure: Output,
) -> None:
    """Count the papers and citations, and draw how often papers are paired."""
    import json

    import polars as pl

    from cocite.files import read_table
    from cocite.report.corpus_statistics import write_corpus_statistics
    from cocite.report.figures import draw_pair_counts

    tables = json.loads(pairs)
    write_corpus_statistics(results, tables, memory_mb=memory_mb, threads=threads, statistics=statistics, counts=counts)
    draw_pair_counts(pl.DataFrame(read_table(counts, "pair_counts")), tables, figure)


@app.command()
def costs(
    benchmarks: Annotated[str, typer.Option(help="The benchmark files of each rule, wildcards in braces, as JSON.")],
    output: Output,
) -> None:
    """Sum up what the finished jobs of each rule took."""
    import json

    from cocite.report.costs import write_costs

    write_costs(json.loads(benchmarks), output)


@app.command()
def curves(results: Results, provenance: Provenance, validation: Output, link_prediction: Output) -> None:
    """Draw the validation curves of the models and the link prediction of the graph embeddings."""
    from cocite.files import read_json
    from cocite.report.figures import draw_link_prediction, draw_validation_curves
    from cocite.report.results import read_curves, read_graph_scores

    configuration = read_json(provenance)["configuration"]
    losses = {name: entry["loss"] for name, entry in configuration["models"].items()}
    draw_validation_curves(read_curves(results, configuration), losses, validation)
    draw_link_prediction(read_graph_scores(results, configuration), link_prediction)


@app.command()
def checks(results: Results, provenance: Provenance, bands: Output, triplets: Output) -> None:
    """Draw what the neighbours hold by rank, and what the sets of triplets hold."""
    from cocite.files import read_json
    from cocite.report import results as read
    from cocite.report.triplet_figures import draw_band_quality, draw_triplets

    configuration = read_json(provenance)["configuration"]
    draw_band_quality(read.read_bands(results, configuration), bands)
    ranks = {name: entry["k_negative"] for name, entry in configuration["triplets"].items() if "k_negative" in entry}
    draw_triplets(
        read.read_sets(results, configuration, "collisions", "collisions"),
        read.read_sets(results, configuration, "per_query", "triplets_per_query"),
        {name: rank[-1] if isinstance(rank, list) else rank for name, rank in ranks.items()},
        triplets,
    )


@app.command("map")
def draw(
    results: Results,
    provenance: Provenance,
    benchmark: Annotated[str, typer.Option(help="Name of a benchmark of the kind holdout.")],
    seed: Seed,
    output: Output,
) -> None:
    """Draw the held-out papers as each model places them."""
    from cocite.files import read_json
    from cocite.report.figures import draw_map
    from cocite.report.results import read_heldout_embeddings

    embeddings, papers = read_heldout_embeddings(results, read_json(provenance)["configuration"], benchmark)
    draw_map(embeddings, papers["field"].to_list(), papers["title"].to_list(), seed, output)


@app.command()
def page(
    figures: Annotated[list[Path], typer.Argument(help="Figures, SVG; the file's name is the figure's.")],
    tables: Tables,
    statistics: Annotated[Path, typer.Option(help="The table corpus_statistics.")],
    costs: Annotated[Path, typer.Option(help="The table costs.")],
    provenance: Provenance,
    output: Output,
) -> None:
    """Write the page."""
    import polars as pl

    from cocite.files import read_json, read_table
    from cocite.report.page import write_page
    from cocite.report.run_tables import costs_of_rules, size_of_corpus

    write_page(
        tables={
            **{path.stem: pl.read_csv(path, infer_schema=False) for path in sorted(tables.glob("*.csv"))},
            "corpus": size_of_corpus(pl.DataFrame(read_table(statistics, "corpus_statistics"))),
            "costs": costs_of_rules(pl.DataFrame(read_table(costs, "costs"))),
        },
        figures={path.stem: path for path in figures},
        provenance=read_json(provenance),
        output=output,
    )


@app.command()
def views(results: Results, output: Output) -> None:
    """Write a DuckDB file with a view over every table."""
    from cocite.report.views import write_views

    write_views(results, output)


@app.command()
def archive(configfile: Annotated[Path, typer.Option(help="The configuration of the finished run.")]) -> None:
    """Have Snakemake write its own report, report.zip, of a finished run."""
    from cocite.report.archive import write_archive

    archive = write_archive(configfile)
    typer.echo(
        f"The report: {archive.with_name('index.html')}; Snakemake's own, with every rule and command: {archive}"
    )
