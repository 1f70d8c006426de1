"""The command `cocite <stage> <step>`: what the rules call, and what works by hand as well.

Each stage brings its commands; they import what they need when they are called, so that `cocite --help` is quick.
"""

import gc
import sys

import typer

from cocite.biggraph.commands import app as biggraph
from cocite.corpus.commands import app as corpus
from cocite.demo.commands import app as demo
from cocite.doctor import app as doctor
from cocite.documentation import app as documentation
from cocite.encoder.commands import app as encoder
from cocite.errors import InputError, surroundings
from cocite.evaluation.commands import app as evaluation
from cocite.graph.commands import app as graph
from cocite.integrity import app as integrity
from cocite.looking.commands import app as looking
from cocite.neighbours.commands import app as neighbours
from cocite.report.commands import app as report
from cocite.resolved import app as resolved
from cocite.triplets.commands import app as triplets

app = typer.Typer(
    help="Embeddings of scientific publications, learned from how they are cited together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(corpus, name="corpus", help="Download and ingest a Semantic Scholar release; choose queries.")
app.add_typer(graph, name="graph", help="Count co-citations; make the edges of graphs.")
app.add_typer(biggraph, name="biggraph", help="Train and measure graph embeddings with PyTorch-BigGraph.")
app.add_typer(neighbours, name="neighbours", help="Search nearest neighbours, exactly or with an index.")
app.add_typer(triplets, name="triplets", help="Sample triplets and join them with texts.")
app.add_typer(encoder, name="encoder", help="Fine-tune encoders; embed documents.")
app.add_typer(evaluation, name="evaluation", help="Score embeddings on benchmarks.")
app.add_typer(report, name="report", help="Tables, figures, the DuckDB file and the page.")
app.add_typer(demo, name="demo", help="A small generated release and a server for it.")
app.add_typer(looking)
app.add_typer(integrity)
app.add_typer(doctor)
app.add_typer(resolved)
app.add_typer(documentation, name="docs", help="Documentation that is generated from declarations.")


def main() -> None:
    """Run the command line; what the user can mend is printed as one message, without a traceback."""
    # Libraries make objects by the hundred thousand that stay; to look for garbage among them takes a tenth of a step.
    gc.set_threshold(100_000)
    try:
        app()
    except InputError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)
    except OSError as error:
        if (told := surroundings(error)) is None:
            raise
        sys.stderr.write(f"Error: {told}\n")
        sys.exit(1)
    finally:
        # A last search for garbage takes as long as ingesting 200 MB; only DuckDB, which tells what is alive, wants it.
        if "duckdb" not in sys.modules:
            gc.freeze()
