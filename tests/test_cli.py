"""The command line is quick to answer, and says what is wrong in one message."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cocite.core.errors import os_error_hint

HEAVY = ["torch", "transformers", "sentence_transformers", "polars", "pyarrow", "duckdb", "faiss", "sklearn", "numpy"]


def cocite(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from cocite.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


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


def test_help_names_every_stage_in_the_order_of_the_corridor_in_groups_and_there_is_a_version():
    answer = cocite("--help")
    text = answer.stdout
    assert answer.stderr == ""  # what a step took is said by steps alone
    stages = ["corpus", "graph", "embeddings", "neighbours", "triplets", "encoder", "evaluation", "report"]
    of_groups = {"Look at a run": "scores", "Before a run": "doctor", "Share a run": "publish"}
    of_groups |= {"Steps of the pipeline": "corpus", "For contributors": "docs"}
    for named in (stages, [name for pair in of_groups.items() for name in pair]):
        places = [text.index(name if name in of_groups else f" {name} ") for name in named]
        assert places == sorted(places)
    assert cocite("--version").stdout == f"cocite {version('cocite')}\n"


ERRORS = {
    "graph pair-edges pairs --table cocitations --min-count 1 --output o --omissions m": "pairs does not exist.\n",
    "triplets sample e --queries q --papers p --seed 1 --threads 1 --output o --omissions m --written-settings w "
    "--settings {per_query:5}": "--settings: not JSON",
    "corpus plan --configfile loop/my.yaml": "loop/my.yaml: Too many levels of symbolic links; mend the link, which "
    "leads to itself.\n",
}


@pytest.mark.parametrize("command", ERRORS)
def test_bad_input_and_what_a_place_does_not_allow_are_one_message_without_a_traceback(tmp_path, command):
    (tmp_path / "loop").symlink_to("loop")
    result = cocite(*command.split(), folder=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: {ERRORS[command]}")
    assert len(result.stderr.splitlines()) == 1


def test_only_errors_that_the_environment_causes_are_told_without_a_traceback():
    hint = os_error_hint(PermissionError(13, "Permission denied", "a"))
    assert hint == "a: Permission denied; grant this user the right to it."
    assert os_error_hint(FileNotFoundError(2, "No such file or directory", "a")) is None
    assert os_error_hint(OSError("without a file")) is None
