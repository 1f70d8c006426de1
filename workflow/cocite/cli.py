"""The command `cocite <stage> <step>`: what the rules call, and what works by hand as well.

A step is one function: its annotations are its command line, its docstring is its help. It has its name here, and its
module is imported when it is called, so that `cocite --help` is quick.
"""

import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from cocite.core.errors import InputError, os_error_hint, printable
from cocite.core.locks import hold_steps_lock
from cocite.core.progress import report_usage
from cocite.encoder import work_offline
from cocite.tools.commands import app as commands
from cocite.tools.documentation import app as documentation

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
STEPS: dict[str, dict[str, str]] = {
    "corpus": {
        "plan": "release.plan:print_plan",
        "list": "release.plan:list_shards",
        "download": "release.plan:download",
        "ingest": "ingest.release_shards:ingest",
        "account": "ingest.accounting:account",
        "update": "ingest.changes:update",
        "merge": "ingest.merge:merge",
        "merge-contexts": "ingest.sentences:merge_contexts",
        "list-names": "ingest.user_tables:list_names",
        "number-names": "ingest.user_tables:number_names",
        "ingest-tables": "ingest.user_tables:ingest_tables",
        "count-cited": "ingest.outside:count_cited",
        "check-cited": "ingest.outside:check_cited",
        "number-ids": "selection:number_ids",
        "ingest-works": "ingest.works:ingest_works",
        "reuse-works": "ingest.works:reuse_works",
        "match": "matching:match_papers",
        "find-documents": "matching:find_documents",
        "find-twins": "twins:find_twins",
        "merge-twins": "twins:merge_twins",
        "read-triplets": "published:read_triplets",
        "select": "selection:select",
        "leaks": "leaks:check_leaks",
        "compare-texts": "leaks:compare_texts",
        "sample": "sample:write_sample",
    },
    "graph": {
        "count": "pairs:count_pairs",
        "choose-citations": "citations:choose_citations",
        "choose-sentences": "citations:choose_sentences",
        "split-citations": "citations:split_citations",
        "unite-citations": "citations:unite_citations",
        "pair-edges": "edges:edges_of_pairs",
        "citation-edges": "edges:edges_of_citations",
        "combine": "edges:combine_graphs",
        "count-intents": "edges:count_intents",
    },
    "embeddings": {"import": "imported:import_graph", "train": "trained:train"},
    "neighbours": {
        "index": "searching:build_index",
        "search": "searching:search_neighbours",
        "measure": "searching:measure_search",
        "adjacency": "adjacency:build_adjacency",
        "walk": "walking:walk_neighbours",
        "mine": "mining:mine",
    },
    "triplets": {
        "sample": "sampling:sample",
        "fetch": "user_pairs:fetch_parts",
        "materialise": "texts:materialise",
        "relate": "checks:relate_sample",
        "measure-bands": "checks:measure_bands",
        "check": "checks:check_triplets",
    },
    "retrieval": {
        "find": "candidates:find_candidates",
        "rank": "ranker:rank_candidates",
        "build": "building:build_index",
    },
    "baselines": {
        "train": "steps:train_baseline",
        "embed": "steps:embed_documents",
        "draw-validation": "grid:draw_validation",
        "choose": "grid:choose_point",
    },
    "evaluation": {
        "prepare-holdout": "preparation.holdout:prepare_holdout",
        "fetch": "preparation.readers:fetch_config",
        "prepare-folder": "preparation.readers:prepare_folder",
        "describe-documents": "preparation.readers:describe_documents",
        "prepare-beir": "preparation.searches:prepare_beir",
        "prepare-screening": "preparation.screening:prepare_screening",
        "score": "scoring:score_run",
        "search": "corpus_scoring:search_corpus",
        "read-reported": "reported:write_reported",
        "average": "over_tasks:write_averages",
        "by-year": "over_tasks:score_by_year",
        "compare": "comparisons:compare_models",
        "compare-over-tasks": "over_tasks:compare_over_tasks",
        "score-maps": "probes:score_maps",
        "rank-probe": "probes:rank_probe",
    },
    "report": {
        "provenance": "provenance:write_provenance",
        "corpus": "provenance:write_corpus_statistics",
        "map-papers": "map_layout:write_papers",
        "map-layout": "map_layout:write_layout",
        "topics": "topics:write_topics",
        "figures": "figures:draw_figures",
        "page": "writing:write_report",
        "archive": "writing:write_archive",
    },
    "encoder": {
        "build": "build:build_encoder",
        "fetch": "fetch:fetch_encoder",
        "tokenise": "tokens:tokenise_table",
        "train": "processes:train",
        "embed": "embedding:embed_tables",
        "select": "spaces:select_vectors",
        "average": "build:average_models",
        "repool": "build:repool",
        "map": "spaces:map_vectors",
        "probe": "probing:probe_examples",
    },
    "demo": {"release": "release:generate_release", "benchmark": "benchmark:generate_benchmark"},
}
"""The steps of each stage by their names, with the module of the stage and the function in it."""


class Stage(TyperGroup):
    """The commands of a stage, each of which is imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of its steps."""
        return list(STEPS[str(self.name)])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The step that is called, after setting the environment that its libraries read when they are imported."""
        if self.name == "encoder" and args[0] != "fetch":
            threads = re.search(r"--threads[ =](\d+)", " ".join(args))
            work_offline(int(threads[1]) if threads else 1)
        hide_pandas_from_pyarrow()
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a step; None if there is none of this name."""
        if cmd_name not in STEPS[str(self.name)]:
            return None
        module, function = STEPS[str(self.name)][cmd_name].split(":")
        alone = typer.Typer(add_completion=False)
        alone.command(cmd_name)(command_line_of(getattr(import_module(f"cocite.{self.name}.{module}"), function)))
        return typer.main.get_command(alone)


class Hidden:
    """A finder of modules that finds no pandas, and leaves all other modules to the finders that follow."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Refuse pandas."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def hide_pandas_from_pyarrow() -> None:
    """Let pyarrow look for pandas once, when it makes its first array, and not find it: importing pandas takes longer
    than a short step takes to work. A step may still import it; arrays of a `Series` need `to_pandas` before."""
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, Hidden)
    pa.array([0])
    sys.meta_path.remove(Hidden)


def command_line_of(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step as Typer can call it: its settings are JSON text, and its sequences are lists."""
    from cocite.config.settings import AS_JSON, parse_settings

    hints = get_type_hints(step, include_extras=True)
    settings = {name: hint for name, hint in hints.items() if AS_JSON in getattr(hint, "__metadata__", ())}

    @wraps(step)
    def run(**values: Any) -> None:
        for name, kind in settings.items():
            values[name] = parse_settings(kind, values[name], f"--{name}")
        step(**values)

    as_json = typer.Option(metavar="JSON", help="Settings as JSON, or @FILE.")
    parameters = []
    for name, parameter in signature(step).parameters.items():
        hint = hints[name]
        if name in settings:
            own = (option for option in hint.__metadata__ if isinstance(option, OptionInfo))
            hint = Annotated[str, next(own, as_json)]
        elif hasattr(hint, "__metadata__") and get_origin(hint.__origin__) is Sequence:
            hint = Annotated[list[get_args(hint.__origin__)[0]], *hint.__metadata__]  # type: ignore[misc]
        parameters.append(parameter.replace(annotation=hint))
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


STAGES = {
    "corpus": "Download and ingest a Semantic Scholar release; choose queries.",
    "graph": "Count co-citations; make the edges of graphs.",
    "embeddings": "Train and measure graph embeddings.",
    "neighbours": "Search nearest neighbours, exactly or with an index.",
    "triplets": "Sample triplets and join them with texts.",
    "encoder": "Fine-tune encoders; embed documents.",
    "retrieval": "Find papers by texts and citations, and learn how they are ranked.",
    "baselines": "Train and apply what models are compared with.",
    "evaluation": "Score embeddings on benchmarks.",
    "report": "Tables, figures, the DuckDB file and the page.",
    "demo": "A small generated release, and benchmarks about it.",
}
"""The commands whose steps end their log with their usage; the others answer people."""

app.add_typer(commands)
for name, purpose in STAGES.items():
    stage = typer.Typer(no_args_is_help=True, cls=Stage)
    app.add_typer(stage, name=name, help=purpose, rich_help_panel="Steps of the pipeline, which its rules call")
generated = "Documentation that is generated from declarations."
app.add_typer(documentation, name="docs", help=generated, rich_help_panel="For contributors to CoCite")


def print_version(is_asked: bool) -> None:
    """Print the installed version, and end."""
    if is_asked:
        typer.echo(f"cocite {version('cocite')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Embeddings of scientific publications, learned from how they are cited together."""


def main() -> None:
    """Run the command line; an error that the user can mend is printed as one message, without a traceback."""
    # Libraries make hundreds of thousands of objects that stay. Looking for garbage among them takes a third of the
    # time of their import.
    gc.set_threshold(100_000)
    hold_steps_lock()
    code = _run()
    if code == 0 and sys.argv[1:2] and sys.argv[1] in STAGES and "--help" not in sys.argv and not sys.stderr.isatty():
        report_usage()
    # All files are closed, and taking down the libraries would take half a second.
    with suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run() -> int:
    """Run the command line; return its exit status."""
    try:
        app()
    except InputError as error:
        explanation = str(error)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception as error:
        known = os_error_hint(error) if isinstance(error, OSError) else None
        if known is None:
            with suppress(OSError, ImportError):  # an error of this import must not hide the first one
                from cocite.tools.integrity import fault_behind

                known = fault_behind(error)
        if known is None:
            raise
        explanation = known
    else:
        return 0
    sys.stderr.write(f"Error: {printable(explanation)}\n")
    return 1
