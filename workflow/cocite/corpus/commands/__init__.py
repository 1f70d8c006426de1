"""`cocite corpus …`: list, download and ingest a release, choose queries; a module for what belongs together."""

import typer

from cocite.corpus.commands import ingest, queries, release, sample, tables, works

app = typer.Typer(no_args_is_help=True)
for module in (release, ingest, tables, works, queries, sample):
    app.add_typer(module.app)
