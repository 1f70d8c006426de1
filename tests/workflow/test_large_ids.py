"""A corpus gives the same results whatever the ids of its papers are, from its release to its report.

Random choices are hashes of ids. So all runs make those of the small ids (`relabelled/sitecustomize.py`), and then
every table must be the same, up to the ids in it. That the choices of large ids are as random as they should be, and
what is made of them, the tests of each stage hold against plain definitions.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.workflow.conftest import SMALL, Run, edited
from tests.workflow.relabelled import relabelling
from tests.workflow.relabelled.relabelling import FILE, LEAST, back, large_ids, text_back

from cocite.core.tables import TABLES, Table
from cocite.core.tables.files import read_table
from cocite.core.tables.places import files_by_place
from cocite.demo.release import generate_release

INDEX = {"kind": "ivf", "nlist": 8, "nprobe": 4}
COUPLED = {"graph": "coupling", "dimension": 16, "epochs": 2}
LISTED = {"sampler": "neighbours", "embedding": "lists", "k_positive": 9, "k_negative": 50, "per_query": 3, "easy": 1}
SETS = {
    "listed": LISTED | {"easy_negatives": "sorted-random"},
    "cocited": {"sampler": "cocited", "graph": "cocitation", "per_query": 3},
    "random": {"sampler": "random", "per_query": 3},
    "all": {"sampler": "union", "of": ["cocite", "specter"], "group": "all"},
    "part": {"sampler": "subset", "of": "all", "share": 0.5, "group": "part"},
}
CONFIG = edited(
    corpus={"source": "directory", "path": "release", "buckets": 2},
    exclude=["excluded.txt"],
    graphs__cocitation__strength="cosine",
    graphs__coupling={"signal": "coupling", "pairs": "all", "strength": "fractional"},
    embeddings__lists=COUPLED | {"neighbours": {"k": 60, "index": INDEX, "among": "texts"}},
    triplets=SMALL["triplets"] | SETS,
    models={"cocite": SMALL["models"]["cocite"]},
    benchmarks__scirepeval__tasks=["relish", "paper_reviewer_matching_hard", "search"],
)
IDS = ("corpusid", "citingcorpusid", "citedcorpusid")
MEASURED = {"seconds", "exact_seconds", "longest_seconds", "cpu_seconds", "peak_mb", "read_mb", "written_mb"}
"""What differs from one run to the next in any case."""


def records_of(folder: Path) -> dict[str, list[dict]]:
    """The records of a generated release, by dataset."""
    generate_release(folder, release="2026-01-06", papers=600, topics=8, shards=1, seed=1)
    records: dict[str, list[dict]] = {}
    for dataset in ("papers", "abstracts", "citations"):
        lines = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob(f"{dataset}/*.gz"))]
        records[dataset] = [json.loads(line) for line in b"".join(lines).splitlines()]
    return records


def made_with(run: Run, records: dict[str, list[dict]], large: dict[int | None, int | None], small: np.ndarray) -> Path:
    """The results with some ids in place of the small ones."""
    run.folder.mkdir()
    (run.folder / "excluded.txt").write_text("".join(f"{large[paper]}\n" for paper in small[::50].tolist()))
    for dataset, rows in records.items():
        relabelled = [row | {key: large[row[key]] for key in IDS if key in row} for row in rows]
        (run.folder / "release" / dataset).mkdir(parents=True)
        lines = "".join(json.dumps(row) + "\n" for row in relabelled)
        (run.folder / "release" / dataset / "0.gz").write_bytes(gzip.compress(lines.encode()))
    run.make("all", config=run.configure(CONFIG))
    return run.folder / "results"


def rows_of(table: Table, files: list[Path], small: np.ndarray) -> pl.DataFrame:
    """The rows of all buckets of a table in the order of its key, with small ids; times and memory are left out."""
    rows = pl.DataFrame(read_table(files, table.name))
    for name in rows.columns:
        column, kind = pl.col(name), rows.schema[name]
        if kind == pl.String:
            rows = rows.with_columns(column.map_elements(lambda text: text_back(text, small), pl.String))
        elif table.columns[name].of_papers and kind == pl.Int64:
            rows = rows.with_columns(column.map_elements(lambda number: back(number, small), pl.Int64))
        elif table.columns[name].of_papers:
            each = pl.element().map_elements(lambda number: back(number, small), pl.Int64)
            rows = rows.with_columns(column.list.eval(each))
    return rows.drop(MEASURED, strict=False).sort(*table.key)


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(3600)
def test_every_table_is_the_same_up_to_the_ids(tmp_path, monkeypatch) -> None:
    records = records_of(tmp_path / "small")
    small = np.array(sorted({row.get(key) for rows in records.values() for row in rows for key in IDS} - {None}))
    np.save(tmp_path / "small.npy", small)
    monkeypatch.setenv(FILE, str(tmp_path / "small.npy"))
    path = [str(Path(relabelling.__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    # Other runs must not find the compiled kernels that make the choices of small ids.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    large = dict(zip(small.tolist(), large_ids(small).tolist(), strict=True)) | {None: None}
    expected = made_with(Run(folder=tmp_path / "expected"), records, {paper: paper for paper in large}, small)
    found = made_with(Run(folder=tmp_path / "found"), records, large, small)
    compared = set()
    for table in TABLES.values():
        places = files_by_place(expected, table)
        assert files_by_place(found, table).keys() == places.keys(), table.name
        for place, files in places.items():
            rows = rows_of(table, files_by_place(found, table)[place], small)
            assert rows.equals(rows_of(table, files, small)), (table.name, place)
            compared.add(table.name)
    assert compared >= {"cocitations", "couplings", "edges", "graph_embeddings", "neighbours", "triplets", "scores"}
    assert pl.DataFrame(read_table(found / "corpus/papers", "papers"))["corpusid"].min() >= LEAST
