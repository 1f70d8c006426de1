"""The command: every sampler writes the same table, whatever the blocks of queries, and says what it left out.

What is drawn and picked depends on seed, query and paper, and is as random as it should be.
"""

import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.config.configuration import SAMPLERS
from cocite.config.entries import plugins
from cocite.core.errors import InputError
from cocite.core.id_sets import are_in, size
from cocite.core.randomness import priorities
from cocite.core.tables.files import write_table
from cocite.core.written_ids import text_id
from cocite.triplets.picking import NONE, draw, half_bits, offer, permuted, picks
from cocite.triplets.sampled import ROLES, kept_out_titles, read_papers

from .blocks import (
    block,
    rows_of,
    sample,
    sampler,
    unserved,
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
    vectors = np.random.default_rng(0).normal(size=(300, 12)).tolist()
    write_vectors(tmp_path / "vectors", dict(zip(PAPERS, vectors, strict=True)))
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


BANDS = {"per_query": 3, "easy": 1, "k_positive": 5, "k_negative": 15}
CLUSTERS, FAR = {"kind": "k-means", "clusters": 8}, {"kind": "sorted-random", "drawn": 50}
EACH = {
    "neighbours": (["neighbours"], BANDS),
    "neighbours and clusters": (["neighbours", "vectors"], {**BANDS, "easy_negatives": CLUSTERS}),
    "neighbours and distances": (["neighbours", "vectors"], {**BANDS, "easy_negatives": FAR}),
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
OF_SETS = {name for name in EACH if name.startswith(("file", "union", "subset"))}


def run(folder, name, output="triplets", *, sources=None, threads=1, seed=1, **more):
    """What the sampler of a name in `EACH` gives."""
    usual, settings = EACH[name]
    asked = sampler(name.split()[0], **settings | more)
    paths = [folder / source for source in sources or usual]
    return written_sample(folder, asked, paths, output=output, threads=threads, seed=seed)


def listed_in(folder, queries="queries.parquet"):
    listed = read_papers(folder / "papers", folder / queries)
    found = [paper for paper in PAPERS if are_in(listed, np.array([paper]))[0]]
    assert len(found) == size(listed)
    return found


def test_listed_papers_have_title_and_abstract_and_are_not_kept_out(folder):
    assert listed_in(folder) == [paper for paper in PAPERS if not 200 <= paper <= 210 and paper < 299]


def test_a_number_that_is_no_paper_may_be_excluded_whatever_its_size(folder):
    excluded = [(1, "train"), (300, "excluded"), (10**17, "excluded")]
    write_rows(folder / "excluding", "queries", "corpusid split", excluded)
    assert listed_in(folder, "excluding") == [paper for paper in PAPERS if not 200 <= paper <= 210 and paper != 300]


@pytest.mark.parametrize("name", EACH)
def test_neither_triplets_nor_counts_depend_on_threads_blocks_of_queries_or_what_is_read_at_once_but_on_the_seed(
    folder, name, monkeypatch
):
    one = run(folder, name)
    with monkeypatch.context() as patched:
        patched.setattr("cocite.triplets.sampled.ROWS_AT_ONCE", 7)
        patched.setattr("cocite.triplets.samplers.sets.QUERIES_AT_ONCE", 3)
        assert run(folder, name, output="again", threads=3) == one
    monkeypatch.setattr("cocite.triplets.sampling.QUERIES_AT_ONCE", 3)
    assert run(folder, name, output="again") == one
    other, _ = run(folder, name, output="again", seed=2)
    assert (other == one[0]) == name.startswith(("links", "union"))


@pytest.mark.parametrize("name", [name for name, (sources, _) in EACH.items() if sources and name not in OF_SETS])
def test_shards_of_what_is_drawn_from_make_no_difference_in_any_order(folder, name):
    [whole, *others] = EACH[name][0]
    table = pq.read_table(folder / whole)
    for half in (0, 1):
        pq.write_table(table.filter(pc.equal(pc.bit_wise_and(table[0], 1), half)), folder / f"half-{half}")
    assert run(folder, name, sources=["half-1", "half-0", *others]) == run(folder, name, output="whole")


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


@pytest.mark.parametrize(
    ("name", "sources", "more", "message"),
    [
        ("neighbours", ["papers"], {}, "papers does not exist or is not a Parquet file"),
        ("neighbours and clusters", None, {"easy_negatives": {"kind": "k-means", "clusters": 400}}, "clusters is 400"),
        ("cocited", ["edges"], {}, "draws from the table cocitations; .*edges"),
        ("cocited", None, {"min_count": 9}, "no paper co-cited often enough: 20"),
        ("aspects", ["bare"], {}, "No citation of the graph has an intent, .* the sampler undirected"),
        ("union", ["before", "edges"], {}, "edges: is neither the table triplets nor sampled_examples"),
        ("subset", ["edges"], {}, "edges: is neither the table triplets nor sampled_examples"),
        ("subset", None, {"share": None, "count": 91}, "count is 91, but there are only 90 training triplets"),
        ("subset of examples", None, {"share": None, "count": 41}, "count is 41, but there are only 40 training exam"),
    ],
)
def test_what_cannot_be_sampled_is_refused_and_nothing_is_written(folder, name, sources, more, message):
    write_edges(folder / "bare", {(1, 2), (2, 3)})
    with pytest.raises(InputError, match=message):
        run(folder, name, sources=sources, **more)
    assert not (folder / "triplets").exists()


def test_every_sampler_of_papers_is_tested():
    # What brings texts is asked once, for all queries, and what mines needs candidates that were searched for before:
    # both have tests of their own.
    of_papers = {name for name, kind in plugins(SAMPLERS, "sampler").items() if not kind.brings_texts}
    assert of_papers == {name.split()[0] for name in EACH} | {"mined"}


@pytest.mark.parametrize(
    "name", [name for name in EACH if not name.startswith(("neighbours and", "cropping", "union", "subset"))]
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
    for row in sorted(pq.read_table(folder / "neighbours").to_pylist(), key=lambda row: (row["query"], row["rank"])):
        neighbour = works.get(row["neighbour"], row["neighbour"])
        if neighbour != row["query"]:
            near[row["query"]].setdefault(neighbour, row["distance"])
    write_neighbours(united / "neighbours", {query: [*found.items()] for query, found in near.items()})
    triplets = {tuple(row[role] for role in ROLES): row["split"] for row in tables["before"]}
    write_triplets(united / "before", [(*ids, split) for ids, split in triplets.items()])
    asked = {"pick": "evenly"} if name == "linked by edges" else {}  # here all edges have the weight 1
    expected, _ = run(united, name, **asked)
    rows = [(paper, split, None) for paper, split in SPLITS.items()] + [(p, "twin", work) for p, work in works.items()]
    write_rows(folder / "queries.parquet", "queries", "corpusid split work", sorted(rows))
    found, _ = run(folder, name, **asked)
    assert found.equals(expected)
    assert len(found) >= 20


IDS = st.sets(st.integers(0, 400))


@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_each_key_permutes_all_places(papers, key):
    sent_to = [permuted(place, np.uint64(key), half_bits(papers), papers) for place in range(papers)]
    assert sorted(sent_to) == list(range(papers))


def test_first_draws_are_spread_evenly_and_pairs_of_them_too():
    keys = priorities(1, "test", np.arange(12_000))
    first, second = ([permuted(place, key, half_bits(4), 4) for key in keys] for place in (0, 1))
    pairs = Counter(zip(first, second, strict=True))
    assert len(pairs) == 12
    # 1,000 expected of each, with a standard deviation of 30.
    assert all(abs(count - 1000) < 150 for count in pairs.values())


@given(IDS, st.sets(st.integers(0, 400), min_size=1, max_size=4), st.integers(1, 5), st.sampled_from(RELABELLINGS))
def test_draws_are_distinct_papers_with_text_but_not_the_query(ids, queries, count, relabel):
    ids, queries = set(map(relabel, ids)), set(map(relabel, queries))
    papers = draw(block(queries, ids), count, "test").papers
    for query, row in zip(sorted(queries), papers.tolist(), strict=True):
        found = [paper for paper in row if paper != NONE]
        assert len(set(found)) == len(found) == min(papers.shape[1], len(ids - {query}))
        assert set(found) <= ids - {query}


@given(st.lists(st.integers(1, 60)), st.sets(st.integers(1, 60)), st.integers(0, 6), st.sampled_from(RELABELLINGS))
def test_the_picks_are_the_papers_of_smallest_hash_whatever_their_order(offered, refused, count, relabel):
    query, ranks = relabel(5), {relabel(paper): 2 * paper for paper in offered}
    offered, refused = list(map(relabel, offered)), set(map(relabel, refused))
    picked = picks(1, count, 7, "test")
    for paper in offered:
        offer(picked, 0, query, paper, ranks[paper], np.array(sorted(refused), dtype=np.int64))
    allowed = sorted(set(offered) - refused)
    hashes = priorities(7, "test", np.full(len(allowed), query), np.array(allowed, dtype=np.int64)).tolist()
    expected = [paper for _, paper in sorted(zip(hashes, allowed, strict=True))][:count]
    assert picked.papers[0].tolist() == expected + [NONE] * (count - len(expected))
    assert picked.ranks[0].tolist()[: len(expected)] == [ranks[paper] for paper in expected]


def test_few_papers_make_few_random_triplets_and_are_shared_out_between_positives_and_negatives():
    sampled = sample("random", block([1], {1, 2, 3, 4, 5}), per_query=9)
    assert len(rows_of(sampled)) == 2
    assert {paper for row in rows_of(sampled) for paper in row[1:3]} == {2, 3, 4, 5}
    assert sampled.omissions["triplets fewer than asked for, of queries with some"] == 7


def test_each_query_with_a_text_is_near_to_itself_and_far_from_random_papers():
    found = sample("cropping", block(range(20), range(5, 100)), negatives=3, shortest=12, longest=40)
    rows = found.rows.to_pylist()
    assert [row["query"] for row in rows] == list(range(5, 20))
    for row in rows:
        assert row["positives"] == [row["query"]]
        assert len(set(row["negatives"])) == 3
        assert row["query"] not in row["negatives"]
        assert set(row["negatives"]) <= set(range(5, 100))
        assert row["negative_kinds"] == ["easy"] * 3
        assert (row["shortest_span"], row["longest_span"], row["number"]) == (12, 40, 1)
    assert unserved(found, of="an example") == {"no text": 5}


def test_crops_without_negatives_and_without_a_longest_span():
    [row] = sample("cropping", block([7], [7, 8]), negatives=0).rows.to_pylist()
    assert row["negatives"] == []
    assert (row["shortest_span"], row["longest_span"]) == (10, None)


def test_the_title_of_each_paper_finds_its_abstract_unless_others_share_it(tmp_path):
    texts = {1: ("Bees", "on bees"), 2: ("Ants", "on ants"), 3: ("Flies", None), 4: ("Bees", "more bees")}
    texts |= {5: ("Kept Out", "of all"), 6: ("kept out!", "of one"), 7: ("Wasps", "on wasps"), 8: ("Moths", "on moths")}
    write_queries(tmp_path, {5: "holdout", 7: "validation"})
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(texts))
    asked = block([7], {*texts} - {5, 8}, [tmp_path / "papers/0.parquet"])  # 8 is no paper of triplets
    titles = kept_out_titles(tmp_path / "papers", tmp_path / "queries.parquet")
    found = sample("titles", replace(asked, validation=np.array([7]), titles_kept_out=lambda: titles))
    named = {text_id(title, None, is_query=True): title for title, _ in texts.values()}
    named |= {text_id(None, abstract, is_query=False): abstract for _, abstract in texts.values()}
    rows = [
        (named[row["query"]], [named[of] for of in row["positives"]], row["split"]) for row in found.rows.to_pylist()
    ]
    assert sorted(rows) == [("Ants", ["on ants"], "train"), ("Wasps", ["on wasps"], "validation")]
    assert found.rows["negatives"].to_pylist() == [[], []]
    written = [row for batch in found.texts for row in batch.to_pylist()]
    assert all(named[row["text"]] == (row["title"] or row["abstract"]) for row in written)
    assert {named[row["text"]]: row["is_query"] for row in written} == {
        **{"Ants": True, "Wasps": True},
        **{"on ants": False, "on wasps": False},
    }
    assert list(found.omissions.values()) == [1, 1, 2]
