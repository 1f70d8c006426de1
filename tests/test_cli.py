"""The command line is quick to answer, and says what is wrong in one message."""

import subprocess
import sys
from importlib.metadata import version

from cocite.core.errors import os_error_hint

HEAVY = ["torch", "transformers", "sentence_transformers", "polars", "pyarrow", "duckdb", "faiss", "sklearn", "numpy"]


def cocite(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cocite.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_loads_nothing_heavy():
    code = f"import sys, cocite.cli; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_steps_that_keep_blas_from_starting_threads_come_before_numpy():
    code = "import os, sys, cocite.corpus.ingest; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False 1\n"


def test_a_step_imports_pandas_only_if_it_asks_for_it():
    code = (
        "import sys, cocite.cli; cocite.cli.hide_pandas_from_pyarrow()\n"
        "import pyarrow as pa; pa.array([1]); print('pandas' in sys.modules)\n"
        "import pandas; print(pa.Table.from_pandas(pandas.DataFrame({'a': [1, 2]}))['a'].to_pylist())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n[1, 2]\n"


def test_help_names_every_stage_in_the_order_of_the_corridor():
    text = cocite("--help").stdout
    stages = ["corpus", "graph", "embeddings", "neighbours", "triplets", "encoder", "evaluation", "report"]
    places = [text.index(f" {stage} ") for stage in stages]
    assert places == sorted(places)


def test_help_has_groups_and_there_is_a_version():
    text = cocite("--help").stdout
    groups = ["Look at a run", "Before a run", "Share a run", "Steps of the pipeline", "For contributors"]
    commands = ["scores", "doctor", "publish", "corpus", "docs"]
    places = [
        text.index(words) for pair in zip(groups, [f" {name} " for name in commands], strict=True) for words in pair
    ]
    assert places == sorted(places)
    assert cocite("--version").stdout == f"cocite {version('cocite')}\n"


def test_bad_input_is_one_message_without_a_traceback(tmp_path):
    cocitations = tmp_path / "cocitations.parquet"
    arguments = [str(cocitations), "--table", "cocitations", "--min-count", "1"]
    arguments += ["--output", str(tmp_path / "edges.parquet"), "--omissions", str(tmp_path / "omissions.parquet")]
    result = cocite("graph", "pair-edges", *arguments)
    assert result.returncode == 1
    assert result.stderr == f"Error: {cocitations} does not exist.\n"


def test_settings_that_are_not_json_are_told_where():
    options = "--queries q --papers p --seed 1 --threads 1 --output o --omissions m --written-settings w"
    result = cocite("triplets", "sample", "e", *options.split(), "--settings", "{per_query: 5}")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: --settings: not JSON")


def test_what_a_place_does_not_allow_is_one_message_too(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    result = cocite("corpus", "plan", "--configfile", str(loop / "my.yaml"))
    assert result.returncode == 1
    told = f"Error: {loop}/my.yaml: Too many levels of symbolic links; mend the link, which leads to itself.\n"
    assert result.stderr == told


def test_only_errors_that_the_environment_causes_are_told_without_a_traceback():
    assert os_error_hint(PermissionError(13, "Permission denied", "a")) == (
        "a: Permission denied; grant this user the right to it."
    )
    assert os_error_hint(FileNotFoundError(2, "No such file or directory", "a")) is None
    assert os_error_hint(OSError("without a file")) is None
