"""The default configuration, as it is written, and with further entries."""

import copy
import json
from pathlib import Path

import pytest
import yaml
from tests.hub import COMMIT
from tests.workflow.conftest import SMALL

PAIRS = {"sampler": "pairs", "layout": "rows", "dataset": "lab/searches", "revision": COMMIT, "group": "searches"}


@pytest.fixture
def written():
    """The default configuration without its index and its searches, with models that are transformers alone."""
    config = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())
    del config["triplets"]["citations"], config["encoders"]["static"], config["indexes"]
    config["benchmarks"]["holdout"] = {"kind": "holdout"}
    bert = config["models"]["bert"] | {"seeds": [1, 2, 3]}
    config["models"] = {name: bert | {"triplets": name} for name in config["triplets"]}
    return config


@pytest.fixture
def adapted(written, tmp_path):
    """A configuration whose encoder is a folder with adapters proximity and search."""
    adapters = {name: {"model": str(tmp_path)} for name in ("proximity", "search")}
    written["encoders"]["small"] = {"model": str(tmp_path), "adapters": adapters}
    return written


@pytest.fixture
def datasets(written, tmp_path):
    """The configuration, with a folder that has the datasets SciFact and own_papers, and a folder that is none."""
    files = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
    for path in (f"{name}/{file}" for name in ("SciFact", "own_papers") for file in files):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "notes").mkdir()
    return written


@pytest.fixture
def with_aspects(written):
    """A configuration with a set of examples of aspects, and a model that learns from it."""
    written["graphs"]["cites"] = {"signal": "citation"}
    written["triplets"]["aspects"] = {"sampler": "aspects", "graph": "cites", "group": "aspects"}
    objectives = [{"loss": "supcon", "space": "aspects"}]
    written["models"]["aspects"] = {"triplets": "aspects", "encoder": "small", "objectives": objectives}
    return written


@pytest.fixture
def with_sets(written):
    """A configuration with a model that learns from two sets, and one that goes on from it."""
    written["triplets"]["crops"] = {"sampler": "cropping", "group": "crops"}
    objectives = [{"triplets": name, "loss": "mnrl"} for name in ("cocite", "crops")]
    written["models"]["both"] = {"encoder": "small", "objectives": objectives, "seeds": [1, 2]}
    written["models"]["then"] = {"from": "both", "triplets": "cocite", "loss": "mnrl", "seeds": [2]}
    return written


@pytest.fixture
def with_indexes(written):
    """A configuration with an index, one that ranks what it finds, and models that do not go with them."""
    written["benchmarks"]["holdout"]["search"] = True
    written["models"]["other"] = {**written["models"]["cocite"], "seeds": [99]}
    written["models"]["votes"] = written["models"]["cocite"]
    written["indexes"] = {"found": {"models": ["cocite"], "graph": "citation"}, "again": {"of": "found"}}
    return written


@pytest.fixture
def with_oracle(written):
    written["triplets"]["oracle"] = {"sampler": "oracle", "benchmark": "scirepeval", "group": "oracle"}
    written["models"]["oracle"] = {"triplets": "oracle", "encoder": "small"}
    return written


@pytest.fixture
def with_pairs(written):
    """A configuration with a set of pairs from the hub, a model that learns from it, and a union with papers."""
    written["triplets"]["searches"] = PAIRS
    written["triplets"]["joined"] = {"sampler": "union", "of": ["searches", "cocite"], "group": "joined"}
    written["models"]["searches"] = {"triplets": "searches", "encoder": "small", "loss": "mnrl"}
    return written


@pytest.fixture
def with_walks(written):
    """The default configuration with walks, and a set of triplets from their neighbours."""
    written["walks"] = {"near": {"graph": "citation", "k": 400}}
    bands = {"sampler": "neighbours", "embedding": "near", "k_positive": 10, "k_negative": 300, "per_query": 4}
    written["triplets"]["walked"] = bands
    return written


@pytest.fixture
def release(tmp_path):
    """A folder with a release, of shards that are empty, and what it states of itself."""
    folder = tmp_path / "release"
    for dataset in ("papers", "abstracts", "citations"):
        (folder / dataset).mkdir(parents=True)
        (folder / dataset / f"x_00000_{dataset}.gz").touch()
    stated = {"release_id": "2026-01-06", "papers": 300, "abstracts": 290, "citations": 100}
    (folder / "release.json").write_text(json.dumps(stated))
    return folder


@pytest.fixture
def of_release(written, release, monkeypatch):
    """A configuration with this release and without the generated benchmark, in the folder in which it lies."""
    monkeypatch.chdir(release.parent)
    del written["benchmarks"]["scirepeval"]
    return written | {"corpus": {"source": "directory", "path": "release"}}


@pytest.fixture
def with_probe():
    """A small configuration with a probe, its grid of four sets, and an encoder with a map that it has learned."""
    config = copy.deepcopy(SMALL)
    config["benchmarks"]["holdout"]["selection"] = 0.5
    ready = {"model": "someone/encoder", "revision": "0" * 40, "max_length": 64}
    learned = {"probe": "which", "triplets": "specter", "loss": "triplet"}
    config["encoders"] |= {"ready": ready, "mapped": ready | {"linear_map": learned}}
    probe = {"encoder": "ready", "benchmark": "holdout", "triplets": ["specter"], "losses": ["triplet"]}
    bands = {"of": "cocite", "grid": {"k_positive": [10, 20], "k_negative": [60, 80]}}
    return config | {"probes": {"which": probe | {"grids": {"bands": bands}}}}
