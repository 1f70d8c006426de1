"""The engines: how they are found, and the one that the how-to page adds."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.workflow.conftest import ROOT

from cocite.core.tables.files import read_table

PAGE = ROOT / "docs/how-to/new-engine.md"
DIMENSION = 32
ADDED = """
import cocite.embeddings.engines

cocite.embeddings.engines.__path__.append("added")
"""
"""Has a process find the engines of a folder beside those of the package, as if they lay there."""

WEIGHING = '''
from pathlib import Path
from typing import ClassVar, Literal

from cocite.config.engine import WeightedEdges
from cocite.config.engine import Engine
from cocite.config.entries import Entry, GivenPath


class Weighing(Engine):
    """Trains edges by their weights."""

    edges: ClassVar[type[Entry]] = WeightedEdges
    engine: Literal["weighing"]
    """The engine."""
    start: GivenPath | None = None
    """Where it starts."""

    @property
    def files(self):
        return () if self.start is None else (Path(self.start),)

    def train(self, imported, *, seed, state):
        raise NotImplementedError
'''


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """A folder in which the engine of the page has been added."""
    (module,) = re.findall(r"engines/spectral\.py`:\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    return with_engine(tmp_path_factory.mktemp("project"), "spectral", module)


@pytest.fixture(scope="module")
def weighing(tmp_path_factory):
    """A folder with an engine that weighs edges and reads a file."""
    return with_engine(tmp_path_factory.mktemp("weighing"), "weighing", WEIGHING)


def with_engine(folder: Path, name: str, module: str) -> Path:
    (folder / "added").mkdir()
    (folder / f"added/{name}.py").write_text(module, encoding="utf-8")
    return folder


def run(folder: Path, code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", ADDED + code, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_importing_the_engines_takes_neither_torch_nor_an_engine_of_its_own():
    code = "import sys; import cocite.config.embeddings; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "h5py"} & set(ran.stdout.split())


def test_the_engine_of_the_page_is_one_more_that_an_entry_can_name(added):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    entry = yaml.safe_load(text)["embeddings"]["spectral"]
    wrong = {"lr": 0.1, "import": "arrow", "partitions": 2, "weights": True}
    (resolved, faults), *others = explained(added, entry, *({**entry, key: value} for key, value in wrong.items()))
    assert not faults
    assert (resolved["engine"], resolved["dimension"], resolved["holdout"]) == ("spectral", 8, 0.05)
    assert [faults for _, faults in others] == [[misplaced(key, "spectral")] for key in wrong]


def test_an_engine_that_weighs_edges_takes_their_bound_and_no_partitions(weighing):
    entry = {"engine": "weighing", "graph": "cocitation", "neighbours": {"k": 20}, "weighted": True, "max_weight": 5.0}
    others = {**entry, "partitions": 2}, {**entry, "engine": "biggraph", "max_weight": None}
    (resolved, faults), (_, of_partitions), (_, of_biggraph) = explained(weighing, entry, *others)
    assert not faults
    assert (resolved["weighted"], resolved["max_weight"]) == (True, 5.0)
    assert not {"import", "partitions", "weights"} & set(resolved)
    assert of_partitions == [misplaced("partitions", "weighing")]
    assert of_biggraph == [misplaced(key, "biggraph") for key in ("weighted", "max_weight")]


def test_a_file_that_an_engine_reads_has_to_be_there(weighing, tmp_path):
    there, start = tmp_path / "there.parquet", tmp_path / "vectors.parquet"
    there.touch()
    entry = {"engine": "weighing", "graph": "cocitation", "neighbours": {"k": 20}}
    found = explained(weighing, *({**entry, "start": str(path)} for path in (start, there)))
    missing = f"Configuration key embeddings.spectral: the file {start} does not exist."
    assert [faults for _, faults in found] == [[missing], []]


def misplaced(key: str, engine: str) -> str:
    return f"Configuration key embeddings.spectral.{key} does not go with engine: {engine}."


def explained(folder: Path, *entries: dict[str, Any]) -> list[tuple[dict[str, Any], list[str]]]:
    """Each entry as it is resolved where the engine has been added, and what is wrong with it."""
    written = {
        "release": "2026-01-06",
        "corpus": {"source": "demo"},
        "graphs": {"cocitation": {"signal": "cocitation"}},
    }
    code = """
import json, sys
from cocite.config.configuration import resolve_or_explain
print(json.dumps([resolve_or_explain(each) for each in json.loads(sys.argv[1])]))
"""
    given = [written | {"embeddings": {"spectral": entry}} for entry in entries]
    found = json.loads(run(folder, code, json.dumps(given)))
    return [(((config or {}).get("embeddings") or {}).get("spectral"), faults) for config, faults in found]


@pytest.mark.long
def test_the_engine_of_the_page_finds_communities(added, tmp_path, graphs):
    imported = graphs.imported(tmp_path, graphs.communities(30, 12))
    tables = {name: tmp_path / f"{name}.parquet" for name in ("vectors", "scores", "omissions")}
    options = {"settings": json.dumps({"engine": "spectral", "dimension": DIMENSION}), "seed": "1"}
    options |= {"state": str(tmp_path / "state"), "written-settings": str(tmp_path / "settings.json")}
    options |= {name: str(path) for name, path in tables.items()}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    code = "from cocite.cli import app; app()"
    run(added, code, "embeddings", "train", str(imported), *arguments)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings == {"engine": "spectral", "dimension": DIMENSION, "seed": 1}
    vectors = read_table(tables["vectors"], "graph_embeddings")
    assert np.stack(vectors["vector"].to_numpy()).shape == (len(vectors), DIMENSION)
    scores = read_table(tables["scores"], "graph_scores").to_pylist()
    (auc,) = [row["value"] for row in scores if row["metric"] == "auc" and not row["filtered"]]
    assert auc > 0.8
