"""The commands for people, which look at a run, prepare one or share one. What they do is in the modules beside this
one, which are imported when a command is called, so that `cocite --help` is quick.
"""

import os
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.core.errors import InputError, printable
from cocite.core.options import ConfigFile, Output, Results
from cocite.core.progress import report

app = typer.Typer(add_completion=False)

Form = Literal["table", "csv", "json", "markdown"]
"""The ways to print an answer."""
LOOK, BEFORE, SHARE = "Look at a run", "Before a run", "Share a run"
"""The groups of these commands in `cocite --help`."""
Known = Literal["more", "balanced", "less"]
"""How much well-known papers are preferred."""
Limit = Annotated[int, typer.Option(min=1, max=10**9, help="Rows at most.")]
Format = Annotated[Form, typer.Option("--format", help="How it is printed.")]
Configuration = Annotated[Path, typer.Option(help="The configuration of the run.")]


def results_of(results: Path, configfile: Path | None) -> Path:
    """The folder of the results: the one that is named, or that of a run with this configuration. Raises `InputError`
    if it cannot be read."""
    from cocite.config.configuration import results_folder
    from cocite.config.yaml_files import written_configuration

    folder = results if configfile is None else results_folder(written_configuration(configfile))
    try:
        within = list(folder.iterdir())
    except FileNotFoundError:
        raise InputError(f"{folder} does not exist; start a run, or name other results with --results.") from None
    except OSError as error:
        raise InputError(f"{folder} is no folder that can be read ({error.strerror}).") from None
    for path in within:
        if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
            report(f"Left out: {path}: its permissions do not let you read it.")
    return folder


@app.command(rich_help_panel=LOOK)
def scores(results: Results = Path("results"), configfile: ConfigFile = None, form: Format = "table") -> None:
    """Print the verdict of a run and the scores of all systems on each benchmark, the best first, with intervals."""
    from cocite.tools.leaderboard import print_scores

    print_scores(results_of(results, configfile), form)


@app.command(rich_help_panel=LOOK)
def show(
    table: Annotated[str | None, typer.Argument(help="Table to look at; without it, all are listed.")] = None,
    paper: Annotated[str | None, typer.Option(help="Corpus id of a paper: what the table holds of it.")] = None,
    of: Annotated[str | None, typer.Option(help="Name of what the table is of, where there are several.")] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Describe its columns instead of showing rows.")] = False,
    where: Annotated[str | None, typer.Option(help="Condition in SQL, such as \"task = 'cite'\".")] = None,
    order: Annotated[str | None, typer.Option(help='Order of the rows in SQL, such as "value DESC".')] = None,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    limit: Annotated[int | None, typer.Option(min=1, max=10**9, help="Rows at most; default: as many as fit.")] = None,
    form: Format = "table",
) -> None:
    """List the tables that a run has made so far, or show one, or what it contains about a paper."""
    from cocite.tools import contents
    from cocite.tools.answers import print_answer

    if table is None and (paper, of, where, order, columns) != (None, None, None, None, False):
        raise InputError("Name a table for these options; `cocite show` lists all there are.")
    if paper is not None and (where or order or columns):
        raise InputError("--paper shows the rows about a paper; leave --where, --order and --columns out.")
    if columns and table:
        print_answer(contents.columns_of(table), form)
        return
    folder = results_of(results, configfile)
    chosen = contents.named_table(folder, table) if table is not None else None
    with contents.open_results(folder, {chosen.name, "papers"} if chosen else None) as db:
        if chosen is None:
            answer = contents.list_tables(db, folder, for_people=form == "table")
        elif chosen.name not in contents.viewed_tables(db):
            command = contents.checking_command(folder)
            raise InputError(f"Table {chosen.name} cannot be read; `{command}` names what is broken.")
        elif paper is not None:
            number = contents.corpus_id(paper)
            answer = contents.rows_about(db, folder, chosen, number, of, limit or contents.ROWS)
        else:
            answer = contents.first_rows(db, folder, chosen, of, limit, where, order)
    print_answer(answer, form)


@app.command(rich_help_panel=LOOK)
def search(
    query: Annotated[str, typer.Argument(help="A text, such as a title, or the corpus id of a paper.")],
    index: Annotated[str | None, typer.Option(help="Name of an index; default: the best one of the run.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of a model, or model/seed, to search by instead.")] = None,
    known: Annotated[Known | None, typer.Option(help="How much an index prefers well-known papers.")] = None,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    limit: Limit = 10,
    form: Format = "table",
    embed: Annotated[bool, typer.Option(help="Embed the papers first if the model has no vectors of them.")] = False,
) -> None:
    """Find papers for a text or a paper, by an index or by the vectors of a model.

    The default is the index with the highest recall on the selection queries, or the first model of a run without
    indexes.
    """
    from cocite.tools.answers import print_answer
    from cocite.tools.contents import open_results
    from cocite.tools.nearest import choose_index, choose_model, nearest_papers, papers_of_index
    from cocite.tools.paper_map import with_topics

    if not query.strip():
        raise InputError("There is nothing to search for: the query is empty.")
    if index and (model or embed):
        raise InputError("--index searches by an index; leave --model and --embed out.")
    folder = results_of(results, configfile)
    chosen = choose_index(folder, index, configfile) if index or not (model or embed) else None
    if known and not chosen:
        raise InputError("--known is for indexes, and a model answers here.")
    by_model = None if chosen else choose_model(folder, model, configfile, embed=embed)
    with open_results(folder, {"papers"}) as db:
        if chosen:
            answer = with_topics(folder, chosen.models.values(), papers_of_index(db, chosen, query, limit, known))
        elif by_model:
            answer = with_topics(folder, [by_model], nearest_papers(db, by_model, query, limit))
    if form != "table":
        report(answer.heading)
    print_answer(answer, form)


Indexes = Annotated[
    list[str] | None,
    typer.Option("--index", help="Name of an index; can be repeated. Without --index and --model, all that are ready."),
]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="Name of a model with vectors, or model/seed; can be given again.")
]
Cache = Annotated[Path | None, typer.Option(help="Folder of the indexes; default: one in the user's cache.")]


@app.command(rich_help_panel=LOOK)
def serve(
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    index: Indexes = None,
    model: Models = None,
    cache: Cache = None,
    host: Annotated[str, typer.Option(help="Address; this machine alone reaches 127.0.0.1.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8642,
) -> None:
    """Search a finished run in a browser, by two of its indexes or models at a time."""
    import ipaddress
    import signal

    from cocite.tools.finished_run import open_run
    from cocite.tools.run_answers import warm_up
    from cocite.tools.web import listen, server, url_of

    folder = results_of(results, configfile)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary folders are removed
    with ExitStack() as opened:
        listening = opened.enter_context(listen(host, port))
        run = opened.enter_context(open_run(folder, model, cache, configfile, index))
        if not ipaddress.ip_address(listening.getsockname()[0]).is_loopback:
            risk = f"everyone who can reach {host} can search these results without a password"
            report(f"Warning: {risk}; leave --host out to keep them to this machine.")
        warm_up(run)
        report(f"Serving {folder} at {url_of(listening)} until Ctrl+C.")
        try:
            server(run, host).run(sockets=[listening])
        except KeyboardInterrupt:
            report("Ended.")


@app.command(rich_help_panel=LOOK)
def mcp(
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    index: Indexes = None,
    model: Models = None,
    cache: Cache = None,
) -> None:
    """Let assistants search a finished run, by the Model Context Protocol over standard input and output."""
    try:
        from cocite.tools.assistants import assistant_server
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        command = ".venv/bin/pip install --constraint envs/lock.txt --editable '.[mcp]'"
        raise InputError(f"The library mcp is not installed; in the clone, run {command}") from None
    from threading import Thread

    from cocite.tools.finished_run import open_run
    from cocite.tools.run_answers import warm_up

    folder = results_of(results, configfile)
    with open_run(folder, model, cache, configfile, index) as run:
        Thread(target=warm_up, args=[run], daemon=True).start()
        assistant_server(run).run("stdio")


@app.command(rich_help_panel=LOOK)
def status(results: Results = Path("results"), configfile: ConfigFile = None) -> None:
    """Show how far a run is: what is done, running and failed, and how long it will still take."""
    from cocite.config.started import is_copy, read_start, record_of
    from cocite.tools.run_progress import contents_of_copy, described, read_progress

    folder = results_of(results, configfile)
    if start := read_start(folder):
        lines = described(read_progress(start), folder)
    elif is_copy(folder):
        made = record_of(folder)
        typer.echo(f"{folder}: a copy of {made.path(made.results)}, where its run was started on {made.host}")
        lines = contents_of_copy(folder)
    else:
        raise InputError(f"No run has been started in {folder}; start one, or name the results of one with --results.")
    for line in lines:
        typer.echo(printable(line))


@app.command(rich_help_panel=LOOK)
def check(
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    remove: Annotated[bool, typer.Option(help="Delete what is broken, and print what makes it again.")] = False,
) -> None:
    """Read all tables to their ends and name the files that are broken or gone; the status is then 1."""
    from cocite.core.locks import locked_results
    from cocite.tools.integrity import check_tables

    folder = results_of(results, configfile)
    with locked_results(folder) if remove else nullcontext():
        raise typer.Exit(check_tables(folder, configfile, remove=remove))


@app.command(rich_help_panel=BEFORE)
def start(
    configfile: Annotated[Path, typer.Argument(help="The configuration to write.")] = Path("my.yaml"),
    filters: Annotated[
        str | None, typer.Option("--filter", help="Filter of OpenAlex, such as publication_year:2005-2026.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Name of a topic of OpenAlex, which is looked up.")] = None,
    search: Annotated[str | None, typer.Option(help="Words to search for.")] = None,
    papers_list: Annotated[str | None, typer.Option("--list", help="Papers: BibTeX, RIS, CSL JSON, CSV, ids.")] = None,
    api: Annotated[
        Literal["openalex", "semantic-scholar"], typer.Option(help="API that is searched; the latter needs no key.")
    ] = "openalex",
    papers: Annotated[str | None, typer.Option(help="Table of papers, or a pattern of several files.")] = None,
    citations: Annotated[str | None, typer.Option(help="Table of citations, if papers list no references.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="A column, such as id=doi; can be given again.")] = None,
) -> None:
    """Write a configuration for papers of OpenAlex or Semantic Scholar, or your own tables, of a size that fits them
    and this machine.

    Without options, it asks.
    """
    from cocite.tools.first_configuration import write_first

    question = {"topic": topic, "filter": filters, "search": search, "list": papers_list, "papers": papers}
    question |= {"citations": citations, "api": api if api != "openalex" else None}
    for line in write_first(configfile, question, column or []):
        typer.echo(printable(line))


@app.command(rich_help_panel=BEFORE)
def doctor(
    configfile: Configuration = Path("config.yaml"),
    profile: Annotated[Path | None, typer.Option(help="Folder of the cluster's profile, such as slurm.")] = None,
    memory_mb: Annotated[
        int, typer.Option(help="Memory that all jobs together may take on this machine, MB: MEMORY_MB of make.")
    ] = 4000,
) -> None:
    """Check this place before a run: configuration, libraries, memory, disks, key, Slurm.

    The exit status is 1 if the run would stop.
    """
    from cocite.tools.machine import examine

    is_failed = False
    for finding in examine(configfile, profile, memory_mb):
        is_failed |= finding.verdict == "failed"
        typer.echo(str(finding))
    raise typer.Exit(int(is_failed))


@app.command(rich_help_panel=BEFORE)
def plan(
    configfile: Configuration = Path("config.yaml"),
    cores: Annotated[int, typer.Option(min=1, help="Cores that all jobs together may use.")] = 2,
    memory_mb: Annotated[int, typer.Option(min=1, help="Memory that they may take together, MB.")] = 4000,
    profile: Annotated[Path | None, typer.Option(help="Profile of a cluster, in place of cores and memory.")] = None,
    like: Annotated[Path | None, typer.Option(help="Results of a finished run whose jobs are measures.")] = None,
    form: Format = "table",
) -> None:
    """Show what a run costs before it starts: jobs, time of processors and GPUs, memory, disk and download.

    It counts what is not done yet. Measures are, in this order, `--like`, the run's own jobs, and those that come with
    CoCite.
    """
    from cocite.tools import run_cost
    from cocite.tools.answers import print_answer

    on = run_cost.machine_of(profile) if profile else run_cost.Machine(cores=cores, memory_mb=memory_mb)
    cost = run_cost.cost_of(configfile, on, like)
    print_answer(run_cost.as_table(cost, configfile), form)
    for line in run_cost.in_words(cost) if form == "table" and cost.jobs else ():
        typer.echo(printable(line))


@app.command(rich_help_panel=BEFORE)
def config(configfile: Configuration = Path("config.yaml")) -> None:
    """Print a configuration with all defaults filled in; the exit status is 1 where it cannot be run."""
    import yaml

    from cocite.config.configuration import resolve_or_explain
    from cocite.config.yaml_files import written_configuration

    resolved, faults = resolve_or_explain(written_configuration(configfile))
    for fault in faults:
        typer.echo(f"Error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True), nl=False)


@app.command(rich_help_panel=SHARE)
def publish(
    model: Annotated[str | None, typer.Argument(help="Name of a model, or model/seed.")] = None,
    *,
    index: Annotated[str | None, typer.Option(help="Name of an index to publish, alone or with the data.")] = None,
    data: Annotated[bool, typer.Option("--data", help="Publish training sets, pairs, vectors, hold-outs.")] = False,
    licence: Annotated[str, typer.Option(help="Its licence, as the hub calls it, such as apache-2.0 or odc-by.")],
    output: Output,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    vectors: Annotated[bool, typer.Option(help="Of a model, include the vectors of all papers.")] = False,
    texts: Annotated[bool, typer.Option("--texts", help="Of data, include titles and abstracts if you may.")] = False,
) -> None:
    """Write the folder of a model for publication, and check that it opens and embeds as the run did; that of an
    index, which NumPy alone can search; or the data that models learned from, and hold-outs, as a dataset.

    A dataset names papers by ids. `--texts` adds texts of OpenAlex or of your own tables; Semantic Scholar's abstracts
    belong to their publishers, and are refused.
    """
    from cocite.tools.nearest import choose_index, find_model
    from cocite.tools.published_data import write_data
    from cocite.tools.published_folder import write_folder, write_index

    folder = results_of(results, configfile)
    if (model is not None) == (data or index is not None):
        raise InputError("Name either a model or, with --index, an index, or choose --data.")
    if texts and not data:
        raise InputError("--texts is for --data only.")
    chosen = choose_index(folder, index, configfile) if index else None
    if data:
        configurations, rows = write_data(folder, output, licence=licence, with_texts=texts, index=chosen)
        report(f"{output}: {configurations} configurations with {rows:,} rows; README.md in it lists them.")
    elif chosen:
        papers = write_index(folder, chosen, output, licence=licence)
        report(f"{output}: finds {papers:,} papers; README.md in it shows how.")
    else:
        found = find_model(folder, model, "MODEL")
        checked = write_folder(folder, found, output, licence=licence, with_vectors=vectors)
        report(f"{output}: opens, and gives {checked} documents of the run the vectors that they had there.")


@app.command("export-mteb", rich_help_panel=SHARE)
def export_mteb(
    *,
    output: Output,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    owner: Annotated[str, typer.Option(help="Whose models they are, before the slash in mteb's names.")] = "cocite",
) -> None:
    """Write the scores of a run as the library mteb writes its results, a file of JSON for each task of each model."""
    from cocite.tools.mteb_export import export_results

    written, omitted = export_results(results_of(results, configfile), output, owner)
    for reason, names in omitted.items():
        report(f"Left out are scores {reason} ({', '.join(names)}).")
    report(f"{output}: {written:,} results, which mteb reads with ResultCache({str(output)!r}).")
