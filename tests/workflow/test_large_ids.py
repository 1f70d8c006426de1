"""Ids of papers that take 63 bits are neither rounded nor cut off anywhere, from a release to its report.

That the choices among large ids are those among small ones, and what is made of them, the tests of each stage hold
against plain definitions.
"""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.workflow.conftest import SMALL, Run, edited

from cocite.core.tables import TABLES
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


def write_release(run: Run) -> set[int]:
    """Write a release with a random id over 10¹⁸ in place of each id; return the new ids."""
    generate_release(run.folder / "small", release=SMALL["release"], papers=600, topics=8, shards=1, seed=1)
    large: dict[int | None, int | None] = {None: None}
    draw = np.random.default_rng(1)
    for dataset in ("papers", "abstracts", "citations"):
        (run.folder / "release" / dataset).mkdir(parents=True)
        for shard in (run.folder / "small" / dataset).glob("*.gz"):
            rows = [json.loads(line) for line in gzip.decompress(shard.read_bytes()).splitlines()]
            for row in rows:
                for key in IDS:
                    if key in row:
                        row[key] = large.setdefault(row[key], int(draw.integers(10**18, 2**63)))
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (run.folder / "release" / dataset / shard.name).write_bytes(gzip.compress(lines.encode()))
    ids = [paper for paper in large.values() if paper is not None]
    (run.folder / "excluded.txt").write_text("".join(f"{paper}\n" for paper in ids[::50]))
    return set(ids)


@pytest.mark.long
@pytest.mark.end_to_end
def test_every_id_in_a_table_is_one_of_the_release(run):
    ids = pa.array(sorted(write_release(run)), pa.int64())
    run.make("all", config=run.configure(CONFIG))
    checked = set()
    for table in TABLES.values():
        for place, files in files_by_place(run.folder / "results", table).items():
            rows = read_table(files, table.name)
            for name in rows.column_names:
                values = rows[name].combine_chunks()
                values = values.flatten() if pa.types.is_list(values.type) else values
                if table.columns[name].of_papers and values.type == pa.int64() and len(values):
                    assert pc.all(pc.is_in(values.drop_null(), ids)).as_py(), (table.name, place, name)
                    checked.add(table.name)
    assert checked >= {"cocitations", "couplings", "edges", "graph_embeddings", "neighbours", "triplets"}
    documents = read_table(run.folder / "results/evaluation/holdout/documents.parquet", "documents")
    assert set(map(int, documents["document"].to_pylist())) <= set(ids.to_pylist())
