"""A corpus gives the same results whatever the ids of its papers are, from its release to its report.

Random choices are hashes of ids. So all runs make those of the small ids (`relabelled/sitecustomize.py`), and then
every table must be the same, up to the ids in it. That the choices of large ids are as random as they should be, and
what is made of them, the tests of each stage hold against plain definitions.
"""

import gzip
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.workflow.conftest import Run, edited
from tests.workflow.relabelled import relabelling
from tests.workflow.relabelled.relabelling import FILE, around_2_to_the_40, back, spread_over_63_bits, text_back

from cocite.core.tables import TABLES, Table
from cocite.core.tables.files import read_table
from cocite.core.tables.places import files_by_place
from cocite.demo.release import generate_release

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(3600)]

SET = {"per_query": 3, "easy": 1}
CONFIG = edited(
    corpus={"source": "directory", "path": "release", "buckets": 2},
    queries={"count": 120, "min_references": 5, "holdout": 40},
    exclude=["excluded.txt"],
    graphs={
        "cocitation": {"signal": "cocitation", "strength": "cosine"},
        "coupling": {"signal": "coupling", "pairs": "all", "strength": "fractional"},
        "citation": {"signal": "citation"},
    },
    embeddings={
        "flat": {"graph": "cocitation", "dimension": 16, "epochs": 2, "neighbours": {"k": 100, "query_jobs": 2}},
        "lists": {
            "graph": "coupling",
            "dimension": 16,
            "epochs": 2,
            "neighbours": {"k": 60, "index": {"kind": "ivf", "nlist": 8, "nprobe": 4}, "among": "texts"},
        },
    },
    triplets={
        "near": {"sampler": "neighbours", "embedding": "flat", "k_positive": 10, "k_negative": [20, 80], **SET},
        "listed": {
            **{"sampler": "neighbours", "embedding": "lists", "k_positive": 9, "k_negative": 50, **SET},
            **{"easy_negatives": "sorted-random"},
        },
        "cited": {"sampler": "citations", "graph": "citation", **SET},
        "cocited": {"sampler": "cocited", "graph": "cocitation", "per_query": 3},
        "random": {"sampler": "random", "per_query": 3},
        "all": {"sampler": "union", "of": ["near", "cited"], "group": "all"},
        "part": {"sampler": "subset", "of": "all", "share": 0.5, "group": "part"},
    },
    models={"near": {"triplets": "near", "encoder": "small", "loss": "triplet", "lr": 1.0e-3}},
    benchmarks__scirepeval__tasks=["relish", "paper_reviewer_matching_hard", "search"],
)
IDS = ("corpusid", "citingcorpusid", "citedcorpusid")
MEASURED = {"seconds", "exact_seconds", "longest_seconds", "cpu_seconds", "peak_mb", "read_mb", "written_mb"}
"""What differs from one run to the next in any case."""
WORK = ("queries", "work")
"""A column of ids that searches for a paper and for leaks leave out."""

Rows = list[dict[str, Any]]
Records = dict[str, Rows]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, read_rows: Callable[[Path], Rows]) -> Records:
    """The records of a release, by dataset."""
    folder = tmp_path_factory.mktemp("small") / "release"
    generate_release(folder, release=CONFIG["release"], papers=600, topics=8, shards=1, seed=1)
    return {dataset: read_rows(folder / dataset) for dataset in ("papers", "abstracts", "citations")}


@pytest.fixture(scope="module")
def small(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of all ids, rising."""
    ids = {row.get(key) for rows in records.values() for row in rows for key in IDS} - {None}
    path = tmp_path_factory.mktemp("ids") / "small.npy"
    np.save(path, np.array(sorted(ids), dtype=np.int64))
    return path


@pytest.fixture(scope="module")
def run_with(records: Records, small: Path, tmp_path_factory: pytest.TempPathFactory):
    # Compiled kernels are kept apart; other runs must not find those that make the choices of small ids.
    cache = tmp_path_factory.mktemp("kernels")

    def run_with(relabel) -> Path:
        ids = np.load(small)
        large = dict(zip(ids.tolist(), relabel(ids).tolist(), strict=True)) | {None: None}
        run = Run(folder=tmp_path_factory.mktemp("run"))
        run.configure(CONFIG)
        (run.folder / "excluded.txt").write_text("".join(f"{large[paper]}\n" for paper in ids[::50].tolist()))
        for dataset, rows in records.items():
            relabelled = [row | {key: large[row[key]] for key in IDS if key in row} for row in rows]
            (run.folder / "release" / dataset).mkdir(parents=True)
            lines = "".join(json.dumps(row) + "\n" for row in relabelled)
            (run.folder / "release" / dataset / "0.gz").write_bytes(gzip.compress(lines.encode()))
        path = os.pathsep.join([str(Path(relabelling.__file__).parent), os.environ.get("PYTHONPATH", "")])
        with pytest.MonkeyPatch.context() as patched:
            for name, value in {"PYTHONPATH": path, FILE: str(small), "NUMBA_CACHE_DIR": str(cache)}.items():
                patched.setenv(name, value)
            run.make("all")
        return run.folder / "results"

    return run_with


@pytest.fixture(scope="module")
def expected(run_with) -> Path:
    """The results with small ids."""
    return run_with(lambda ids: ids)


def rows_of(table: Table, files: list[Path], small: np.ndarray) -> pl.DataFrame:
    """The rows of all buckets of a table in the order of its key, with small ids; times and memory are left out."""
    rows = pl.DataFrame(read_table(files, table.name))
    for name, column in table.columns.items():
        of_papers = column.of_papers or (table.name, name) == WORK
        change, kind = (
            (partial(back, small=small), pl.Int64) if of_papers else (partial(text_back, small=small), pl.String)
        )
        if rows.schema.get(name) == kind:
            rows = rows.with_columns(pl.col(name).map_elements(change, kind))
        elif rows.schema.get(name) == pl.List(kind):
            rows = rows.with_columns(pl.col(name).list.eval(pl.element().map_elements(change, kind)))
    return rows.drop(MEASURED, strict=False).sort(*table.key)


@pytest.mark.parametrize("relabel", [around_2_to_the_40, spread_over_63_bits])
def test_every_table_is_the_same_up_to_the_ids(run_with, expected: Path, small: Path, relabel) -> None:
    ids, found = np.load(small), run_with(relabel)
    compared = set()
    for table in TABLES.values():
        places = files_by_place(expected, table)
        assert files_by_place(found, table).keys() == places.keys(), table.name
        for place, files in places.items():
            rows = rows_of(table, files_by_place(found, table)[place], ids)
            assert rows.equals(rows_of(table, files, ids)), (table.name, place)
            compared.add(table.name)
    assert compared >= {"cocitations", "couplings", "edges", "graph_embeddings", "neighbours", "triplets", "scores"}
    with_ids = pl.DataFrame(read_table(found / "corpus/papers", "papers"))["corpusid"]
    assert with_ids.min() >= min(2**40, relabel(ids).min())
