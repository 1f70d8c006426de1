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
    ran = subprocess.run(
        [sys.executable, "-c", ADDED + code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_importing_the_engines_takes_neither_torch_nor_an_engine_of_its_own():
    code = "import sys; import cocite.config.embeddings; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "h5py"} & set(ran.stdout.split())


def test_the_engine_of_the_page_is_one_more_that_an_entry_can_name(added):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    entry = yaml.safe_load(text)["embeddings"]["spectral"]
    config, faults = explained(added, entry)
    resolved = config["embeddings"]["spectral"]
    assert not faults
    assert (resolved["engine"], resolved["dimension"], resolved["holdout"]) == ("spectral", 8, 0.05)
    assert explained(added, {**entry, "lr": 0.1})[1] == [
        "Configuration key embeddings.spectral.lr does not go with engine: spectral."
    ]


@pytest.mark.parametrize(("key", "value"), [("import", "arrow"), ("partitions", 2), ("weights", True)])
def test_a_key_of_the_import_that_an_engine_does_not_name_is_refused(added, key, value):
    entry = {"engine": "spectral", "graph": "cocitation", "neighbours": {"k": 20}, key: value}
    assert explained(added, entry)[1] == [
        f"Configuration key embeddings.spectral.{key} does not go with engine: spectral."
    ]


def test_an_engine_that_weighs_edges_takes_their_bound_and_no_partitions(weighing):
    entry = {"engine": "weighing", "graph": "cocitation", "neighbours": {"k": 20}, "weighted": True, "max_weight": 5.0}
    config, faults = explained(weighing, entry)
    resolved = config["embeddings"]["spectral"]
    assert not faults
    assert (resolved["weighted"], resolved["max_weight"]) == (True, 5.0)
    assert not {"import", "partitions", "weights"} & set(resolved)
    assert explained(weighing, {**entry, "partitions": 2})[1] == [
        "Configuration key embeddings.spectral.partitions does not go with engine: weighing."
    ]
    assert explained(weighing, {**entry, "engine": "biggraph", "max_weight": None})[1] == [
        f"Configuration key embeddings.spectral.{key} does not go with engine: biggraph."
        for key in ("weighted", "max_weight")
    ]


def test_a_file_that_an_engine_reads_has_to_be_there(weighing, tmp_path):
    start = tmp_path / "vectors.parquet"
    entry = {"engine": "weighing", "graph": "cocitation", "neighbours": {"k": 20}, "start": str(start)}
    assert explained(weighing, entry)[1] == [f"Configuration key embeddings.spectral: the file {start} does not exist."]
    start.touch()
    assert not explained(weighing, entry)[1]


def explained(folder: Path, entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration with this entry where the engine has been added, and what is wrong with it."""
    written = {
        **{"release": "2026-01-06", "corpus": {"source": "demo"}, "graphs": {"cocitation": {"signal": "cocitation"}}},
        "embeddings": {"spectral": entry},
    }
    code = """
import json, sys
from cocite.config.configuration import resolve_or_explain
print(json.dumps(resolve_or_explain(json.loads(sys.argv[1]))))
"""
    config, faults = json.loads(run(folder, code, json.dumps(written)))
    return config, faults


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
