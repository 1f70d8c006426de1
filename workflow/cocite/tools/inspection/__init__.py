"""Look inside results without a line of SQL: `cocite show` and `cocite search`.

They read the tables in a folder of results and the folders of trained models, and make no output of a rule.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.core.errors import InputError
from cocite.core.options import ConfigFile, Results
from cocite.core.progress import report

app = typer.Typer(add_completion=False)

Form = Literal["text", "csv", "json"]
"""The ways to print an answer."""

Limit = Annotated[int, typer.Option(min=1, max=10**9, help="Rows at most.")]
Format = Annotated[Form, typer.Option("--format", help="How it is printed.")]


@app.command()
def show(
    table: Annotated[str | None, typer.Argument(help="Table to look at; without it, all are listed.")] = None,
    paper: Annotated[str | None, typer.Option(help="Corpus id of a paper: what the table holds of it.")] = None,
    of: Annotated[str | None, typer.Option(help="Name of what the table is of, where there are several.")] = None,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    limit: Limit = 20,
    form: Format = "text",
) -> None:
    """List the tables that a run has made so far, or show one, or what it holds of a paper."""
    from cocite.tools.inspection import contents
    from cocite.tools.inspection.answers import print_answer
    from cocite.tools.inspection.opening import checking_command, open_results, results_of, viewed_tables

    if table is None and (paper, of) != (None, None):
        raise InputError("Name a table for --paper or --of; `cocite show` lists all there are.")
    folder = results_of(results, configfile)
    if table is None:
        with open_results(folder) as db:
            listing = contents.list_tables(db, folder, for_people=form == "text")
        print_answer(listing, form)
        return
    chosen = contents.named_table(folder, table)
    with open_results(folder, {chosen.name, "papers"}) as db:
        if chosen.name not in viewed_tables(db):
            raise InputError(f"Table {chosen.name} cannot be read; `{checking_command(folder)}` names what is broken.")
        if paper is not None:
            print_answer(contents.rows_about(db, folder, chosen, contents.corpus_id(paper), of, limit), form)
            return
        rows = contents.first_rows(db, folder, chosen, of, limit)
        if form == "text":
            print_answer(contents.columns_of(db, chosen), form)
        print_answer(rows, form)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A text, such as a title, or the corpus id of a paper.")],
    model: Annotated[str | None, typer.Option(help="Name of a model, or model/seed; else the first there is.")] = None,
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    limit: Limit = 10,
    form: Format = "text",
    embed: Annotated[
        bool, typer.Option(help="Ask the model that was trained last, and embed the papers by it first if need be.")
    ] = False,
) -> None:
    """Find the papers that a trained model places nearest to a text or a paper."""
    from cocite.tools.inspection.answers import print_answer
    from cocite.tools.inspection.nearest import choose_model, nearest_papers
    from cocite.tools.inspection.opening import open_results, results_of

    if not query.strip():
        raise InputError("There is nothing to search for: the query is empty.")
    folder = results_of(results, configfile)
    chosen = choose_model(folder, model, configfile, embed=embed)
    with open_results(folder, {"papers"}) as db:
        answer = nearest_papers(db, chosen, query, limit)
    if form != "text":
        report(answer.heading)
    print_answer(answer, form)
