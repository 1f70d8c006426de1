"""The command: every sampler writes the same table, whatever the blocks of queries, and says what it left out."""

import json
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.papers import papers_table

from cocite.config.configuration import SAMPLERS
from cocite.config.entries import plugins
from cocite.core.errors import InputError
from cocite.core.id_sets import are_in, size
from cocite.core.tables.files import write_table
from cocite.triplets.sampled import ROLES, read_papers

from .blocks import (
    sampler,
    write_cocitations,
    write_edges,
    write_examples,
    write_neighbours,
    write_queries,
    write_triplets,
    write_vectors,
    written_sample,
)

PAPERS = range(1, 301)
ASPECTS = list(enumerate(("background", "methodology", "result")))
QUERIES = ("corpusid", "split", "work")
ENDS = ("paper", "other")
SPLITS = {**dict.fromkeys(range(1, 19), "train"), 19: "validation", 20: "validation", 299: "holdout", 300: "excluded"}


@pytest.fixture
def folder(tmp_path):
    """20 queries, and something for every sampler to draw from; papers 200 to 209 have no abstract."""
    write_queries(tmp_path, SPLITS)
    for bucket in (0, 1):
        ids = [paper for paper in PAPERS if paper % 2 == bucket]
        texts = {
            paper: (None if paper == 210 else "title", None if 200 <= paper < 210 else "abstract") for paper in ids
        }
        write_table(tmp_path / f"papers/{bucket}.parquet", "papers", papers_table(texts).to_batches(40))
    near = {query: [(20 + 12 * query + rank, float(rank)) for rank in range(1, 19)] for query in range(1, 21)}
    write_neighbours(tmp_path / "neighbours", near)
    intents = {1: ["background"], 7: ["methodology", "result"], 19: ["background", "result"]}
    edges = {(p, p + step): intents[step] for p in range(1, 280) for step in intents}
    write_edges(tmp_path / "edges", edges, edges)
    write_cocitations(tmp_path / "cocitations", {(p, p + step): step for p in range(1, 280) for step in (1, 2, 3, 4)})
    write_triplets(tmp_path / "before", [(q, 50 + q, 90 + i, SPLITS[q]) for q in range(1, 21) for i in range(5)])
    for name, part in (("examples", slice(40)), ("more", slice(20, None))):
        rows = [
            (q, aspect, [50 + q, 70 + q], [95 + i, 120], SPLITS[q]) for q in SPLITS if q < 21 for i, aspect in ASPECTS
        ]
        write_examples(tmp_path / name, rows[part])
    return tmp_path


EACH = {
    "neighbours": (["neighbours"], {"per_query": 3, "easy": 1, "k_positive": 5, "k_negative": 15}),
    "citations": (["edges"], {"per_query": 3, "easy": 1}),
    "cocited": (["cocitations"], {"per_query": 3, "min_count": 2}),
    "linked": (["cocitations"], {"per_query": 3, "pick": "weighted"}),
    "linked by edges": (["edges"], {"per_query": 3, "pick": "strongest"}),
    "links": (["cocitations"], {}),
    "links by edges": (["edges"], {}),
    "undirected": (["edges"], {"positives": 3, "hard": 2, "easy": 2}),
    "aspects": (["edges"], {"positives": 2, "linked": 3, "two_away": 2, "easy": 1}),
    "cropping": ([], {"negatives": 2}),
    "random": ([], {"per_query": 3}),
    "file": (["before"], {"per_query": 3}),
    "union": (["before", "before"], {}),
    "subset": (["before"], {"share": 0.6}),
    "union of examples": (["examples", "more"], {}),
    "union of both": (["before", "examples"], {}),
    "subset of examples": (["examples"], {"share": 0.6, "by": "triplet"}),
}
"""Sources and settings of each sampler; its name may say more."""


def run(folder, name, output="triplets", *, threads=1, **more):
    """What the sampler of a name in `EACH` gives."""
    sources, settings = EACH[name]
    asked = sampler(name.split()[0], **settings | more)
    paths = [folder / source for source in sources]
    return written_sample(folder, asked, paths, output=output, threads=threads)


def listed_in(folder, queries="queries.parquet"):
    listed = read_papers(folder / "papers", folder / queries)
    found = [paper for paper in PAPERS if are_in(listed, np.array([paper]))[0]]
    assert len(found) == size(listed)
    return found


def test_listed_papers_have_title_and_abstract_and_are_not_kept_out(folder):
    assert listed_in(folder) == [paper for paper in PAPERS if not 200 <= paper <= 210 and paper < 299]


def test_a_number_that_is_no_paper_may_be_excluded_whatever_its_size(folder):
    excluded = pa.table({"corpusid": [1, 300, 10**17], "split": ["train", "excluded", "excluded"]})
    write_table(folder / "excluding", "queries", excluded)
    assert listed_in(folder, "excluding") == [paper for paper in PAPERS if not 200 <= paper <= 210 and paper != 300]


def test_a_folder_among_the_sources_is_refused(folder):
    with pytest.raises(InputError, match="papers does not exist or is not a Parquet file"):
        written_sample(folder, sampler("neighbours", **EACH["neighbours"][1]), [folder / "papers"])


@pytest.mark.parametrize("name", EACH)
def test_neither_triplets_nor_counts_depend_on_threads_blocks_of_queries_or_what_is_read_at_once(
    folder, name, monkeypatch
):
    one = run(folder, name)
    with monkeypatch.context() as patched:
        patched.setattr("cocite.triplets.sampled.ROWS_AT_ONCE", 7)
        patched.setattr("cocite.triplets.samplers.sets.QUERIES_AT_ONCE", 3)
        assert run(folder, name, output="again", threads=3) == one
    monkeypatch.setattr("cocite.triplets.sampling.QUERIES_AT_ONCE", 3)
    assert run(folder, name, output="again") == one


@pytest.mark.parametrize("way", [{"kind": "k-means", "clusters": 8}, {"kind": "sorted-random", "drawn": 50}])
def test_easy_negatives_of_an_embedding_do_not_depend_on_blocks_either(folder, way, monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(300, 12))
    write_vectors(folder / "vectors", dict(zip(PAPERS, vectors.tolist(), strict=True)))
    monkeypatch.setitem(EACH, "neighbours", (["neighbours", "vectors"], EACH["neighbours"][1]))
    more = {"easy_negatives": way}
    whole = run(folder, "neighbours", **more)
    monkeypatch.setattr("cocite.triplets.sampling.QUERIES_AT_ONCE", 3)
    assert run(folder, "neighbours", output="again", **more) == whole
    assert set(whole[0]["negative_kind"].to_pylist()) == {"easy", "hard"}


@pytest.mark.parametrize("name", EACH)
def test_triplets_hold_papers_with_text_alone_and_the_split_of_their_query(folder, name):
    rows, _ = run(folder, name)
    listed = set(listed_in(folder))
    for row in rows.to_pylist():
        positives, negatives = (row[f"{role}s"] if f"{role}s" in row else [row[role]] for role in ROLES[1:])
        assert {*positives, *negatives} <= listed
        assert row["split"] == (SPLITS.get(row["query"], "train") if name.startswith("links") else SPLITS[row["query"]])
        assert row["query"] not in negatives
        assert (row["query"] in positives) == (name == "cropping")
        assert not set(positives) & set(negatives)


def test_the_settings_are_written_with_their_defaults_and_what_was_sampled_from(folder):
    run(folder, "citations")
    sources = [str(folder / source) for source in EACH["citations"][0]]
    assert json.loads((folder / "settings.json").read_text()) == {
        "sources": sources,
        **{"sampler": "citations", "seed": 1, "per_query": 3, "easy": 1, "text_filter": "before", "partial": "kept"},
        **{"directed": True, "fill": False, "oversample": False, "graph": "g", "group": "all"},
    }


def test_a_set_without_a_triplet_is_an_error_that_says_why(folder):
    with pytest.raises(InputError, match="no paper co-cited often enough: 20"):
        run(folder, "cocited", min_count=9)
    assert not (folder / "triplets").exists()


def test_every_sampler_of_papers_is_tested():
    # What brings texts is asked once, for all queries, and what mines needs candidates that were searched for before:
    # both have tests of their own.
    of_papers = {name for name, kind in plugins(SAMPLERS, "sampler").items() if not kind.brings_texts}
    assert of_papers == {name.split()[0] for name in EACH} | {"mined"}


@pytest.mark.parametrize(
    "name",
    [
        "citations",
        "cocited",
        "linked",
        "linked by edges",
        "links",
        "links by edges",
        "undirected",
        "aspects",
        "file",
        "random",
        "neighbours",
    ],
)
def test_what_is_drawn_is_works_with_the_links_of_all_their_records(folder, name, tmp_path):
    works = {30: 1, 31: 2, 32: 33, 60: 61, 100: 61, 21: 3, 22: 40, 45: 44, 150: 70}
    united = tmp_path / "united"
    write_queries(united, SPLITS)
    listed = {paper: ("title", "abstract") for paper in PAPERS if not 200 <= paper <= 210 and paper not in works}
    write_table(united / "papers/0.parquet", "papers", papers_table(listed))
    tables = {table: pq.read_table(folder / table).to_pylist() for table in ("edges", "cocitations", "before")}
    for rows in tables.values():
        for row in rows:
            row |= {key: works.get(row[key], row[key]) for key in row.keys() & {"source", "target", *ENDS, *ROLES}}
    counts, intents = Counter(), defaultdict(set)
    for row in tables["cocitations"]:
        counts[tuple(sorted((row["paper"], row["other"])))] += row["count"]
    for row in tables["edges"]:
        intents[row["source"], row["target"]].update(row["intents"])
    write_cocitations(united / "cocitations", {ends: count for ends, count in counts.items() if ends[0] != ends[1]})
    edges = {ends: found for ends, found in intents.items() if ends[0] != ends[1]}
    write_edges(united / "edges", edges, edges)
    near = defaultdict(dict)
    for row in (
        pq.read_table(folder / "neighbours").sort_by([("query", "ascending"), ("rank", "ascending")]).to_pylist()
    ):
        neighbour = works.get(row["neighbour"], row["neighbour"])
        if neighbour != row["query"]:
            near[row["query"]].setdefault(neighbour, row["distance"])
    write_neighbours(united / "neighbours", {query: [*found.items()] for query, found in near.items()})
    triplets = {tuple(row[role] for role in ROLES): row["split"] for row in tables["before"]}
    write_triplets(united / "before", [(*ids, split) for ids, split in triplets.items()])
    asked = {"pick": "evenly"} if name == "linked by edges" else {}  # here all edges have the weight 1
    expected, _ = run(united, name, **asked)
    rows = [(paper, split, None) for paper, split in SPLITS.items()] + [(p, "twin", work) for p, work in works.items()]
    write_table(
        folder / "queries.parquet",
        "queries",
        pa.table(dict(zip(QUERIES, zip(*sorted(rows), strict=True), strict=True))),
    )
    found, _ = run(folder, name, **asked)
    assert found.equals(expected)
    assert len(found) >= 20
