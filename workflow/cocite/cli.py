"""The command `cocite <stage> <step>`: what the rules call, and what works by hand as well.

Each stage brings its commands; they import what they need when they are called, so that `cocite --help` is quick.
"""

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

import typer

from cocite.baselines.commands import app as baselines
from cocite.corpus.commands import app as corpus
from cocite.demo.commands import app as demo
from cocite.embeddings.commands import app as embeddings
from cocite.encoder.commands import app as encoder
from cocite.evaluation.commands import app as evaluation
from cocite.graph.commands import app as graph
from cocite.ground.errors import InputError, surroundings
from cocite.ground.usage import report_usage
from cocite.ground.words import printable
from cocite.neighbours.commands import app as neighbours
from cocite.people.doctor import app as doctor
from cocite.people.documentation import app as documentation
from cocite.people.inspection import app as inspection
from cocite.people.integrity import app as integrity
from cocite.people.integrity import fault_behind
from cocite.people.locked import hold_steps_lock
from cocite.people.publishing import app as publishing
from cocite.people.resolved import app as resolved
from cocite.people.serving import app as serving
from cocite.people.status.commands import app as status
from cocite.report.commands import app as report
from cocite.triplets.commands import app as triplets

app = typer.Typer(
    help="Embeddings of scientific publications, learned from how they are cited together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
STAGES = {
    "corpus": (corpus, "Download and ingest a Semantic Scholar release; choose queries."),
    "graph": (graph, "Count co-citations; make the edges of graphs."),
    "embeddings": (embeddings, "Train and measure graph embeddings with PyTorch-BigGraph."),
    "neighbours": (neighbours, "Search nearest neighbours, exactly or with an index."),
    "triplets": (triplets, "Sample triplets and join them with texts."),
    "encoder": (encoder, "Fine-tune encoders; embed documents."),
    "baselines": (baselines, "Train and apply what models are compared with."),
    "evaluation": (evaluation, "Score embeddings on benchmarks."),
    "report": (report, "Tables, figures, the DuckDB file and the page."),
    "demo": (demo, "A small generated release, and benchmarks about it."),
}
"""The commands whose steps say at the end of their log what they took; the others answer people."""

for name, (stage, purpose) in STAGES.items():
    app.add_typer(stage, name=name, help=purpose)
app.add_typer(inspection)
app.add_typer(serving)
app.add_typer(status)
app.add_typer(integrity)
app.add_typer(doctor)
app.add_typer(resolved)
app.add_typer(publishing)
app.add_typer(documentation, name="docs", help="Documentation that is generated from declarations.")


def main() -> None:
    """Run the command line; an error that the user can mend is printed as one message, without a traceback."""
    # Libraries make hundreds of thousands of objects that stay. Looking for garbage among them takes a third of the
    # time of their import.
    gc.set_threshold(100_000)
    hold_steps_lock()
    code = _run()
    if code == 0 and sys.argv[1:2] and sys.argv[1] in STAGES and "--help" not in sys.argv and not sys.stderr.isatty():
        report_usage()
    _leave(code)


def _run() -> int:
    """Run the command line; return its exit status."""
    try:
        app()
    except InputError as error:
        explanation = str(error)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception as error:
        known = (surroundings(error) if isinstance(error, OSError) else None) or fault_behind(error)
        if known is None:
            raise
        explanation = known
    else:
        return 0
    sys.stderr.write(f"Error: {printable(explanation)}\n")
    return 1


def _leave(status: int) -> NoReturn:
    """End the process at once: all files are closed, and taking down the libraries would take half a second."""
    with suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)
