"""Examples are given those candidates as negatives that may be some, by margins, bounds, likeness and links."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import write_rows
from tests.triplets.blocks import (
    block,
    found_by,
    sample,
    sampler,
    unserved,
    write_cocitations,
    write_edges,
    write_examples,
    write_papers,
    write_queries,
    write_triplets,
    written_checks,
    written_sample,
)

from cocite.core.tables.files import write_table
from cocite.triplets.samplers import mined
from cocite.triplets.samplers.mined import DUPLICATE, FEW, LINKED, NEAR, OUT_OF_BOUNDS


def write_mined(folder, candidates, positives, examples=None):
    """candidates: {query: [(document, score, likeness), …]} from rank 1; positives: {(query, positive): score}.

    The set that they were found for is one of triplets, unless it is given.
    """
    found = [(query, rank, *row) for query in sorted(candidates) for rank, row in enumerate(candidates[query], start=1)]
    scored = [(*pair, positives[pair]) for pair in sorted(positives)]
    return [
        examples or write_triplets(folder / "set", [(*pair, 10**6) for pair in positives]),
        write_rows(folder / "candidates.parquet", "mined_candidates", "query rank document score likeness", found),
        write_rows(folder / "positives.parquet", "mined_positives", "query positive score", scored),
    ]


def mined_from(sources, queries=(1,), seed=1, **chosen):
    """What the sampler makes of a set and of what was found for it."""
    return sample("mined", block(queries, [], sources, seed=seed), **{"of": "set", "by": "bm25"} | chosen)


def negatives(sampled):
    """{(query, number): its negatives}."""
    return {(row["query"], row["number"]): row["negatives"] for row in sampled.rows.to_pylist()}


@pytest.fixture
def one(tmp_path):
    """A query with the positives 2 and 3, of which the lower score is 0.8, and five candidates."""
    found = {1: [(10, 0.9, 0.97), (11, 0.79, 0.8), (12, 0.75, 0.75), (13, 0.5, 0.5), (14, 0.1, 0.2)]}
    sources = write_mined(tmp_path, found, {(1, 2): 0.85, (1, 3): 0.8})

    def mined(*graphs, **settings):
        chosen = {"duplicates": None, "negatives": 5, **settings}
        sampled = mined_from([*sources, *graphs], **chosen)
        assert [row["positives"] for row in sampled.rows.to_pylist()] == [[2], [3]][: len(sampled.rows)]
        return negatives(sampled).get((1, 1)), sampled.omissions

    return mined


@pytest.mark.parametrize(
    ("chosen", "left", "reason"),
    [
        ({}, [10, 11, 12, 13, 14], None),
        ({"negatives": 2}, [10, 11], None),
        ({"ranks": [2, 4], "negatives": 3}, [11, 12, 13], None),
        ({"margin": 0.0}, [11, 12, 13, 14], NEAR),  # from 0.8, the lower of the positives' scores
        ({"margin": 0.04}, [12, 13, 14], NEAR),
        ({"relative_margin": 0.05}, [12, 13, 14], NEAR),  # 0.76
        ({"max_score": 0.5}, [13, 14], OUT_OF_BOUNDS),
        ({"min_score": 0.5}, [10, 11, 12, 13], OUT_OF_BOUNDS),
        ({"duplicates": 0.8}, [12, 13, 14], DUPLICATE),
    ],
)
def test_candidates_are_left_out_for_a_reason_that_is_counted(one, chosen, left, reason):
    found, omissions = one(**chosen)
    assert found == left
    counted = {name: omissions[name] for name in (DUPLICATE, NEAR, OUT_OF_BOUNDS, LINKED)}
    assert counted == {name: 5 - len(left) if name == reason else 0 for name in counted}
    assert omissions[FEW] == 2 * (chosen.get("negatives", 5) - len(left))


def test_a_margin_below_zero_scores_is_a_share_of_their_size(tmp_path):
    """Of −10, 10% is 1: a negative scores −11 at most, as far from the query as distances go."""
    found = {1: [(10, -10.5, 0.0), (11, -11.0, 0.0), (12, -12.0, 0.0)]}
    sources = write_mined(tmp_path, found, {(1, 2): -10.0})
    sampled = mined_from(sources, relative_margin=0.1, negatives=3)
    assert negatives(sampled) == {(1, 1): [11, 12]}


def test_what_is_linked_with_the_query_in_a_graph_is_no_negative(one, tmp_path):
    edges = write_edges(tmp_path / "edges", [(1, 10), (13, 1), (11, 12)])
    assert one(edges, unlinked_in=["citation"])[0] == [11, 12, 14]
    both = one(edges, write_cocitations(tmp_path / "cocitations", {(1, 14): 2, (14, 1): 2}), unlinked_in=["citation"])
    assert both[0] == [11, 12]
    assert both[1][LINKED] == 3


def test_an_example_with_too_few_negatives_is_kept_or_dropped(one):
    assert one(max_score=0.5, negatives=3, partial="kept")[0] == [13, 14]
    assert one(max_score=0.5, negatives=2, partial="dropped")[0] == [13, 14]
    found, omissions = one(max_score=0.5, negatives=3, partial="dropped")
    assert found is None
    assert omissions["queries without an example: too few candidates are left"] == 1


def test_negatives_of_the_set_stay_in_front_where_asked_for(tmp_path):
    examples = write_examples(tmp_path / "set", [(1, None, [2], [10, 9]), (1, None, [3], [8])])
    found = {1: [(10, 0.9, 0.1), (11, 0.8, 0.1)]}
    sources = write_mined(tmp_path, found, {(1, 2): 1.0, (1, 3): 1.0}, examples)
    rows = mined_from(sources, negatives=2, others="kept").rows.to_pylist()
    assert [row["negatives"] for row in rows] == [[10, 9, 11], [8, 10, 11]]
    assert [row["negative_kinds"] for row in rows] == [["easy", "easy", "mined"], ["easy", "mined", "mined"]]
    assert [row["negative_ranks"] for row in rows] == [[None, None, 2], [None, 1, 2]]
    assert rows[1]["negative_scores"] == pytest.approx([None, 0.9, 0.8])
    assert negatives(mined_from(sources, negatives=1)) == {(1, 1): [10], (1, 2): [10]}


def test_negatives_that_stay_have_a_kind_where_they_had_one(tmp_path):
    """A union of triplets and examples has examples without kinds beside others with kinds."""
    some = write_examples(tmp_path / "some", [(1, None, [3], [9])])
    union = sample("union", block([1], [], [write_triplets(tmp_path / "triplets", [(1, 2, 8)]), some]))
    write_table(tmp_path / "set", "sampled_examples", union.rows)
    sources = write_mined(tmp_path, {1: [(10, 0.5, 0.1)]}, {(1, 2): 0.9, (1, 3): 0.9}, tmp_path / "set")
    rows = mined_from(sources, negatives=1, others="kept").rows.to_pylist()
    assert [row["negatives"] for row in rows] == [[8, 10], [9, 10]]
    assert [row["negative_kinds"] for row in rows] == [[None, "mined"], ["easy", "mined"]]


def test_examples_that_differ_in_their_former_negatives_alone_become_one(tmp_path):
    triplets = write_triplets(tmp_path / "set", [(1, 2, 8), (1, 2, 9), (1, 3, 9)])
    sources = write_mined(tmp_path, {1: [(10, 0.5, 0.1)]}, {(1, 2): 0.9, (1, 3): 0.9}, triplets)
    sampled = mined_from(sources, [1, 5, 7], negatives=1)
    assert negatives(sampled) == {(1, 1): [10], (1, 2): [10]}
    assert unserved(sampled, "an example") == {"not in the set": 2}


DOCUMENTS = st.lists(st.integers(20, 60), max_size=14, unique=True)
SCORES = st.sampled_from([-1.0, -0.5, 0.25, 0.5, 0.75, 1.0])


@given(
    found=st.dictionaries(st.integers(1, 6), DOCUMENTS, min_size=1),
    first=st.integers(1, 4),
    width=st.integers(1, 8),
    count=st.integers(1, 8),
    at_once=st.integers(1, 5),
    seed=st.integers(1, 9),
    data=st.data(),
)
def test_random_negatives_are_of_the_ranks_and_depend_on_seed_and_example_alone(
    tmp_path, monkeypatch, found, first, width, count, at_once, seed, data
):
    count = min(count, width)
    ranked = {query: [(document, 0.5, 0.1) for document in documents] for query, documents in found.items()}
    positives = {query: data.draw(st.lists(st.integers(7, 12), min_size=1, max_size=3, unique=True)) for query in found}
    pairs = {(query, positive): 1.0 for query, of_query in positives.items() for positive in of_query}
    sources = write_mined(tmp_path, ranked, pairs)
    chosen = {"seed": seed, "pick": "random", "ranks": [first, first + width - 1], "negatives": count}
    whole = mined_from(sources, found, **chosen)
    monkeypatch.setattr(mined, "QUERIES_AT_ONCE", at_once)
    monkeypatch.setattr(mined, "EXAMPLES_AT_ONCE", at_once)
    assert negatives(mined_from(sources, found, **chosen)) == negatives(whole)
    for (query, number), of_example in negatives(whole).items():
        band = found[query][first - 1 : first + width - 1]
        assert of_example == [document for document in band if document in of_example]
        assert len(of_example) == min(count, len(band))
        assert number <= len(positives[query])
    served = {query for query, documents in found.items() if len(documents) >= first}
    assert {query for query, _ in negatives(whole)} == served


@pytest.mark.long
def test_the_margins_are_those_of_sentence_transformers(tmp_path):
    """On random vectors, both find the same negatives, whichever of the options are set."""
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives
    from tests.benchmarks.mining_rival import Ready

    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(200, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = {(query, 100 + 3 * query + step) for query in range(20) for step in range(1 + query % 2)}
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    found = {}
    for query in range(20):
        ours = {positive for one, positive in pairs if one == query} | {query}
        best = sorted((-cosines[query, other], other) for other in range(200) if other not in ours)[:30]
        found[query] = [(other, -far, 0.0) for far, other in best]
    sources = write_mined(tmp_path, found, {pair: cosines[pair] for pair in pairs})
    given_pairs = Dataset.from_dict({"q": [str(q) for q, _ in sorted(pairs)], "p": [str(p) for _, p in sorted(pairs)]})
    for chosen in ({"relative_margin": 0.1}, {"absolute_margin": 0.05, "max_score": 0.8}):
        limits = {"range_max": 30, "num_negatives": 3, "verbose": False}
        theirs = mine_hard_negatives(given_pairs, Ready(vectors), corpus=list(map(str, range(200))), **limits, **chosen)
        expected = {(int(row["q"]), int(row["negative"])) for row in theirs if row["q"] != row["negative"]}
        renamed = {name.removeprefix("absolute_"): value for name, value in chosen.items()}
        mined = mined_from(sources, range(20), ranks=[1, 30], negatives=3, **renamed)
        assert {(query, paper) for (query, _), some in negatives(mined).items() for paper in some} == expected
        assert expected


def test_the_whole_set_is_written_with_queries_that_are_texts(tmp_path):
    """A set whose queries are short texts has negatives mined for them as for papers."""
    examples = write_examples(tmp_path / "set", [(-7, None, [2], [3]), (1, None, [2], [3])])
    found = {-7: [(10, 0.5, 0.1)], 1: [(11, 0.5, 0.1)]}
    sources = write_mined(tmp_path, found, {(-7, 2): 0.9, (1, 2): 0.9}, examples)
    write_papers(tmp_path, (1, 2, 3, 10, 11))
    write_queries(tmp_path, {1: "train"})
    rows, _ = written_sample(tmp_path, sampler("mined", of="set", by="bm25", negatives=1), sources)
    found = [(row["query"], row["split"], row["negatives"]) for row in rows.to_pylist()]
    assert found == [(-7, "train", [10]), (1, "train", [11])]


def test_the_check_counts_mined_negatives_that_are_linked_or_score_above_a_positive(tmp_path):
    found = {1: [(10, 0.9, 0.1), (11, 0.7, 0.1), (12, 0.6, 0.1)], 4: [(10, 0.3, 0.1)]}
    positives = {(1, 2): 0.8, (1, 3): 0.65, (4, 2): 0.5}
    sources = write_mined(tmp_path, found, positives)
    mined = mined_from(sources, [1, 4], negatives=3)
    write_table(tmp_path / "mined.parquet", "sampled_examples", mined.rows)
    related = [(1, 10, 2, False), (1, 12, 0, True), (1, 50, 3, True)]
    write_rows(tmp_path / "relations.parquet", "sampled_relations", "query paper cocited cited", related)
    write_papers(tmp_path, (1, 2, 3, 4, 10, 11, 12))
    write_queries(tmp_path, {1: "train", 4: "train"})
    known = {"relations": tmp_path / "relations.parquet", "mined": sources[2]}
    checks, _, _ = written_checks(tmp_path, tmp_path / "mined.parquet", **known)
    assert {part: found for (check, part), found in found_by(checks).items() if check == "false negative"} == {
        "above a positive": (2, 4),  # 0.9 and 0.7 above 0.65
        "citing or cited": (1, 3),  # the relations of the query 4 are not known
        "co-cited": (1, 3),
    }
