"""`cocite report …`: tables, figures, the page and the DuckDB file of a run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.atomic import read_json
from cocite.ground.options import MemoryMb, Output, Results, Seed, Settings, Threads

app = typer.Typer(no_args_is_help=True)

Provenance = Annotated[Path, typer.Option(help="What `cocite report provenance` wrote.")]
Pairs = Annotated[str, typer.Option(help="The table of pairs of each graph that is made of them, as JSON.")]


@app.command()
def provenance(
    configuration: Annotated[Path, typer.Option(help="File of the resolved configuration, as JSON.")],
    spaces: Annotated[str, typer.Option(help="The rows of the table id_spaces, as JSON.")],
    manifest: Annotated[Path, typer.Option(help="What `cocite corpus list` wrote.")],
    output: Output,
    ids: Annotated[Path, typer.Option(help="Table id_spaces, written: whose ids the corpus and benchmarks have.")],
) -> None:
    """Record what makes the results: configuration, release, machine, versions, and whose ids there are."""
    from cocite.report.provenance import write_id_spaces, write_provenance

    write_id_spaces(json.loads(spaces), ids)
    write_provenance(read_json(configuration), manifest, output)


@app.command()
def corpus(
    results: Results,
    pairs: Pairs,
    memory_mb: MemoryMb,
    threads: Threads,
    statistics: Output,
    counts: Output,
) -> None:
    """Count the papers, the citations, and how often papers are paired."""
    from cocite.report.corpus_statistics import write_corpus_statistics

    write_corpus_statistics(
        results, json.loads(pairs), memory_mb=memory_mb, threads=threads, statistics=statistics, counts=counts
    )


@app.command()
def figures(
    results: Results,
    provenance: Provenance,
    pairs: Pairs,
    output: Output,
) -> None:
    """Draw all figures but those of maps into a folder."""
    from cocite.report.figures import draw_figures

    draw_figures(results, read_json(provenance)["configuration"], json.loads(pairs), output)


@app.command()
def map_papers(
    tables: Annotated[Path, typer.Option(help="Folder of the benchmark's tables.")],
    settings: Settings,
    tasks: Annotated[str, typer.Option(help="Tasks whose labels are classes, with commas between them.")],
    seed: Seed,
    papers: Output,
    labels: Output,
    only_queries: Annotated[bool, typer.Option(help="Leave out documents that are no queries.")] = False,
    corpus: Annotated[
        Path | None, typer.Option(help="Table of papers, where documents are papers of the corpus.")
    ] = None,
) -> None:
    """Choose the papers of a map, and look up their labels."""
    from cocite.config.benchmarks import names
    from cocite.config.maps import Map
    from cocite.config.settings import parse_settings
    from cocite.report.maps.papers import write_papers

    asked = parse_settings(Map, settings)
    write_papers(
        tables, asked, names(tasks), only_queries=only_queries, corpus=corpus, seed=seed, papers=papers, labels=labels
    )


@app.command()
def map_layout(
    embeddings: Annotated[Path, typer.Argument(help="Table document_embeddings of a model.")],
    papers: Annotated[Path, typer.Option(help="Table map_papers.")],
    labels: Annotated[Path, typer.Option(help="Table map_labels.")],
    settings: Settings,
    seed: Seed,
    points: Output,
    scores: Output,
) -> None:
    """Lay the papers of a map out as a model places them, find clusters, and compare these with the labels."""
    from cocite.config.maps import Map
    from cocite.config.settings import parse_settings
    from cocite.report.maps.layout import write_layout

    write_layout(embeddings, papers, labels, parse_settings(Map, settings), seed=seed, points=points, scores=scores)


@app.command("map")
def draw(
    results: Results,
    provenance: Provenance,
    name: Annotated[str, typer.Option("--map", help="Name of the map.")],
    seed: Seed,
    output: Output,
) -> None:
    """Draw some papers of a map as each model places them."""
    from cocite.report.maps.picture import draw_map
    from cocite.report.maps.results import read_map

    shown = read_map(results, read_json(provenance)["configuration"], name)
    classes = next(iter(shown.classes.values()), [None] * len(shown.titles))
    draw_map(shown.layouts, classes, shown.titles, seed, output)


@app.command()
def aspects(results: Results, provenance: Provenance, output: Output) -> None:
    """Draw the intents of citations, and the queries that each aspect serves."""
    from cocite.config.triplets import graphs_of_aspects, sets_by_aspect
    from cocite.report.aspects import draw_aspects
    from cocite.report.results import read_each

    configuration = read_json(provenance)["configuration"]
    intents = read_each(results, "intent_counts", "graph", graphs_of_aspects(configuration))
    draw_aspects(intents, read_each(results, "triplet_checks", "triplets", sets_by_aspect(configuration)), output)


@app.command()
def spaces(results: Results, provenance: Provenance, output: Output) -> None:
    """Draw what each space of a model scores on each aspect, as a heat map."""
    from cocite.config.benchmarks import tells_spaces_apart
    from cocite.report.results import read_scored
    from cocite.report.spaces import draw_spaces

    configuration = read_json(provenance)["configuration"]
    asked = {name: entry for name, entry in configuration["benchmarks"].items() if tells_spaces_apart(entry)}
    scores = read_scored(results, {**configuration, "benchmarks": asked}, "scores")
    draw_spaces(scores, configuration, output)


@app.command()
def probes(results: Results, provenance: Provenance, output: Output) -> None:
    """Draw what linear maps reach that were trained on the sets of each probe."""
    from cocite.report.probes import draw_probes
    from cocite.report.results import read_each

    configuration = read_json(provenance)["configuration"]
    draw_probes(read_each(results, "probe_scores", "probe", configuration["probes"]), output)


@app.command()
def trade(results: Results, provenance: Provenance, output: Output) -> None:
    """Draw what each model scores on short queries against what it scores on documents."""
    from cocite.config.benchmarks import sides_of
    from cocite.report.results import read_scored
    from cocite.report.trade import draw_trade

    configuration = read_json(provenance)["configuration"]
    named = {benchmark for side in sides_of(configuration) for benchmark, _ in side}
    asked = {name: entry for name, entry in configuration["benchmarks"].items() if name in named}
    draw_trade(read_scored(results, {**configuration, "benchmarks": asked}, "scores"), configuration, output)


@app.command()
def page(
    figures: Annotated[list[Path], typer.Argument(help="Figures, SVG; the file's name is the figure's.")],
    results: Results,
    provenance: Provenance,
    logs: Annotated[str, typer.Option(help="The logs of each rule, wildcards in braces, as JSON.")],
    tables: Annotated[Path, typer.Option(help="Folder to write with the tables as CSV files.")],
    cards: Annotated[Path, typer.Option(help="Folder to write with the models' cards and their scores.")],
    costs: Annotated[Path, typer.Option(help="The table costs to write: what the finished jobs took.")],
    output: Output,
) -> None:
    """Write the page, with its tables, the models' cards and what the run took."""
    from cocite.report.writing import write_report

    recorded, of_rules = read_json(provenance), json.loads(logs)
    write_report(results, recorded, figures, of_rules, page=output, tables=tables, cards=cards, costs=costs)


@app.command()
def views(results: Results, output: Output) -> None:
    """Write a DuckDB file with a view over every table."""
    from cocite.report.views import write_views

    write_views(results, output)


@app.command()
def archive(configfile: Annotated[Path, typer.Option(help="The configuration of the finished run.")]) -> None:
    """Have Snakemake write its own report, report.zip, of a finished run."""
    from cocite.report.writing import write_archive

    archive = write_archive(configfile)
    typer.echo(
        f"The report: {archive.with_name('index.html')}; Snakemake's own, with every rule and command: {archive}"
    )
