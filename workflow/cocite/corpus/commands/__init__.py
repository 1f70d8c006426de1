"""`cocite corpus …`: list, download and ingest a release, choose queries; a module for what belongs together."""

import typer

from cocite.corpus.commands import ingest, matching, queries, release, sample, tables, works

app = typer.Typer(no_args_is_help=True)
for module in (release, ingest, tables, works, matching, queries, sample):
    app.add_typer(module.app)
