"""What is counted of a set of triplets: collisions, triplets per query, papers without a text or of benchmarks.

What is true of queries is read from the citations, and neighbours are held against it by their rank.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS
from tests.rows import table_of, write_rows
from tests.triplets.blocks import (
    TRIPLET,
    found_by,
    write_examples,
    write_neighbours,
    write_papers,
    write_queries,
    written_checks,
)

from cocite.core.tables.files import read_table, write_table
from cocite.triplets import checks
from cocite.triplets.checks import (
    BandSettings,
    collision_curve,
    count_collisions,
    measure_bands,
    relate_sample,
    sample_queries,
)

PAPERS = st.integers(1, 8)


def triplet_table(rows):
    """rows: (query, positive, negative, positive_rank, negative_rank, kind), of which the last three may be absent."""
    rows = sorted((*row, None, None, "hard")[:6] for row in rows)
    return table_of("triplets", TRIPLET, [(*row[:3], "train", *row[3:]) for row in rows])


@given(st.lists(st.tuples(PAPERS, PAPERS, PAPERS), min_size=1, max_size=40), st.sampled_from(RELABELLINGS))
def test_a_pair_collides_if_it_is_positive_and_negative_in_any_direction(rows, relabel):
    rows = [tuple(map(relabel, row)) for row in rows]
    positive = {frozenset((query, paper)) for query, paper, _ in rows}
    negative = {frozenset((query, paper)) for query, _, paper in rows}
    assert count_collisions(triplet_table(rows)) == (len(positive & negative), len(positive))


@given(
    orders=st.lists(st.permutations(range(1, 13)), min_size=12, max_size=12),
    count=st.integers(2, 12),
    k_positive=st.integers(1, 4),
    width=st.integers(1, 3),
    relabel=st.sampled_from(RELABELLINGS),
)
def test_the_curve_counts_the_queries_among_the_negatives_of_their_positives(
    tmp_path, orders, count, k_positive, width, relabel
):
    ranked = {relabel(query): [relabel(p) for p in orders[query - 1] if p != query] for query in range(1, count + 1)}
    positives = {(query, found[i]) for query, found in ranked.items() for i in range(k_positive)}
    own = range(11 - width, 11)
    triplets = triplet_table(
        (query, found[i], found[j], i + 1, j + 1, "hard")
        for query, found in ranked.items()
        for i in range(k_positive)
        for j in own
    )
    path = write_neighbours(tmp_path / "0.parquet", ranked)
    curve = collision_curve(triplets, [path]).to_pylist()
    assert [row["k_negative"] for row in curve] == list(range(k_positive + width, 12))
    for row in curve:
        band = slice(row["k_negative"] - width, row["k_negative"])
        colliding = {frozenset(pair) for pair in positives if pair[0] in ranked.get(pair[1], [])[band]}
        assert row["collisions"] == len(colliding)
        assert row["pairs"] == len({frozenset(pair) for pair in positives})


def write_documents(path, names):
    rows = [(name, None, None, [], None) for name in sorted(names)]
    return write_rows(path, "documents", "document title abstract more field", rows)


@pytest.fixture
def checked(tmp_path):
    """Check a set of the queries 1, 2 and 3, of which 3 has no triplets and paper 30 has no text."""
    rows = [(1, 10, 20, None, None, "hard"), (1, 11, 21, None, None, "easy"), (2, 30, 20, None, None, "hard")]
    write_table(tmp_path / "triplets.parquet", "triplets", triplet_table(rows))
    ids = (1, 2, 3, 10, 11, 20, 21, 30, 40)
    write_papers(tmp_path, {paper: ("title", None if paper == 30 else "abstract") for paper in ids})
    write_queries(tmp_path, {1: "train", 2: "validation", 3: "train", 8: "holdout"})
    return lambda *benchmarks: written_checks(tmp_path, tmp_path / "triplets.parquet", benchmarks)


def test_queries_are_counted_by_their_triplets_and_papers_without_a_text_by_role(checked):
    found, per_query, collisions = checked()
    assert [tuple(row.values()) for row in per_query] == [("train", 0, 1), ("train", 2, 1), ("validation", 1, 1)]
    assert found_by(found) == {
        ("collision", "pairs"): (0, 3),
        ("no text", "query"): (0, 2),
        ("no text", "positive"): (1, 3),
        ("no text", "negative"): (0, 2),
    }
    assert collisions == []  # the set is not drawn from neighbours


def test_a_planted_paper_of_a_benchmark_is_found(checked, tmp_path):
    clean = write_documents(tmp_path / "clean/documents.parquet", ["50", "51", "a name"])
    planted = write_documents(tmp_path / "planted/documents.parquet", ["task:21", "other:21", "52"])
    found = found_by(checked(clean, planted)[0])
    assert (found["in benchmark", "clean"], found["in benchmark", "planted"]) == ((0, 2), (1, 2))


HASHES = [f"{number:a>40}" for number in (10, 11, 12)]


@pytest.mark.parametrize(
    ("names", "known", "without_record", "in_benchmark", "not_matched"),
    [
        # 20 and 21 are papers of the set, but the documents of these numbers are not: 7 is, as the paper 10.
        (["20", "21", "7", "task:7", "8", "MED-4"], {"7": 10, "8": 99, "task:7": 10}, (), (1, 2), (2, 4)),
        (["20", "98", "99"], {"20": 20, "98": 98, "99": 99}, ("98", "99"), (1, 3), (2, 3)),
        (["20", "21", "MED-4"], {}, (), None, (2, 2)),
        ([*HASHES, f"again2:{HASHES[0]}", "a"], {HASHES[0]: 21, f"again2:{HASHES[0]}": 21}, (), (1, 1), (2, 3)),
    ],
)
def test_documents_of_other_ids_are_found_by_their_matches_and_those_without_are_counted(
    checked, tmp_path, names, known, without_record, in_benchmark, not_matched
):
    documents = write_documents(tmp_path / "other/documents.parquet", names)
    rows = [(name, paper, "mag", name not in without_record) for name, paper in known.items()]
    columns = "document corpusid matched_by has_record"
    papers = write_rows(tmp_path / "papers_of/other.parquet", "document_papers", columns, rows)
    found = found_by(checked(documents, papers)[0])
    assert (found.get(("in benchmark", "other")), found["not matched", "other"]) == (in_benchmark, not_matched)


def checks_of(folder, rows, papers):
    """The checks of a set of examples, by check and part, and its rows of triplets_per_query."""
    write_papers(folder, papers)
    write_queries(folder, {1: "train", 2: "train", 3: "validation"})
    found, per_query, _ = written_checks(folder, write_examples(folder / "examples", rows))
    return found_by(found), per_query


def test_examples_collide_within_an_aspect_alone(tmp_path):
    # 1 and 2 are positive and negative at once as background; as results they are negative only.
    rows = [
        (1, "background", [2, 5], [6]),
        (2, "background", [7], [1, 8]),
        (2, "result", [5], [1]),
        (3, "result", [9], [6]),
    ]
    found, per_query = checks_of(tmp_path, rows, [1, 2, 3, 5, 6, 7, 9])
    expected = {
        ("collision", "pairs in background"): (1, 3),
        ("collision", "pairs in result"): (0, 2),
        ("served", "background"): (2, 3),
        ("served", "result"): (2, 3),
        ("no text", "negative"): (1, 3),
    }
    assert found.items() >= expected.items()
    assert [tuple(row.values()) for row in per_query] == [("train", 1, 1), ("train", 2, 1), ("validation", 1, 1)]


def test_examples_without_an_aspect_are_checked_together_beside_those_of_each(tmp_path):
    rows = [(1, "result", [2], [3]), (1, None, [4], [5]), (4, None, [6], [1]), (5, None, [1], [4])]
    found, _ = checks_of(tmp_path, rows, range(1, 7))
    # 1 and 4 are near for the query 1, far for the query 4; 1 and 5 are near for 5 and far for 1.
    assert found["collision", "pairs"] == (2, 3)
    assert found["collision", "pairs in result"] == (0, 1)
    assert [part for check, part in found if check == "served"] == ["result"]
    found, _ = checks_of(tmp_path, [(1, None, [2], [3, 4]), (2, None, [5], [1])], range(1, 6))
    assert found["collision", "pairs"] == (1, 2)
    assert not any(check == "served" for check, _ in found)


RELATED = range(1, 10)
CITATIONS = st.sets(st.tuples(*[st.sampled_from(RELATED)] * 2).filter(lambda ends: ends[0] != ends[1]))
QUERIES = {1: "train", 2: "validation", 3: "train", 8: "holdout", 9: "excluded"}
KEPT_OUT = {8, 9}
LIMITS = {"memory_mb": 400, "threads": 1}


def related(folder, citations, works=None):
    """How papers are related with the queries by citations in two buckets; `works` stand for their twins."""
    rows = [(paper, split, None) for paper, split in QUERIES.items()]
    rows += [(paper, "twin", work) for paper, work in (works or {}).items()]
    queries = write_rows(folder / "queries.parquet", "queries", "corpusid split work", sorted(rows))
    files = []
    for bucket in (0, 1):
        rows = [(*ends, False, []) for ends in sorted(citations) if ends[0] % 2 == bucket]
        path = folder / f"citations/{bucket}.parquet"
        files.append(write_rows(path, "citations", "citing cited influential intents", rows))
    relate_sample(files, queries, seed=1, output=folder / "relations.parquet", **LIMITS)
    rows = read_table(folder / "relations.parquet", "sampled_relations").to_pylist()
    return {(row["query"], row["paper"]): (row["cocited"], row["cited"]) for row in rows}


def measured(folder, *neighbours, **settings):
    """The bands of shards of neighbours, held against the relations that are in the folder."""
    files = [write_neighbours(folder / f"{number}.parquet", found) for number, found in enumerate(neighbours)]
    known = {"relations": folder / "relations.parquet", "queries": folder / "queries.parquet", "seed": 1}
    measure_bands(files, BandSettings(**settings), **known, output=folder / "quality.parquet", **LIMITS)
    return read_table(folder / "quality.parquet", "band_quality").to_pylist()


@given(CITATIONS)
def test_a_query_is_related_to_what_is_cited_with_it_what_it_cites_and_what_cites_it(tmp_path, citations):
    known = {ends for ends in citations if not KEPT_OUT & set(ends)}
    cites = {paper: {cited for citing, cited in known if citing == paper} for paper in RELATED}
    expected = {}
    for query in (1, 2, 3):
        for paper in set(RELATED) - {query}:
            together = sum({query, paper} <= cited for cited in cites.values())
            directly = paper in cites[query] or query in cites[paper]
            if together or directly:
                expected[query, paper] = (together, directly)
    assert related(tmp_path, citations) == expected


@given(CITATIONS)
def test_records_of_a_work_are_related_as_one_paper(tmp_path, citations):
    works = {4: 1, 5: 6, 7: 6}
    united = {(works.get(citing, citing), works.get(cited, cited)) for citing, cited in citations}
    expected = related(tmp_path, {ends for ends in united if ends[0] != ends[1]})
    assert related(tmp_path, citations, works) == expected


def test_a_neighbour_is_related_as_its_work_is(tmp_path):
    related(tmp_path, {(4, 1), (4, 5), (4, 6)}, {7: 6})
    [row] = measured(tmp_path, {1: [7, 3]})
    assert (row["papers"], row["cocited"]) == (2, 1)


def test_the_sample_follows_from_the_seed_and_holds_queries_only(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "QUERIES_SAMPLED", 20)
    queries = write_queries(tmp_path, {paper: "holdout" if paper % 2 else "train" for paper in range(1, 201)})
    one, again, other = (sample_queries(queries, seed)["corpusid"].to_pylist() for seed in (1, 1, 2))
    assert one == again != other
    assert len(set(one)) == 20
    assert not any(paper % 2 for paper in one)


@pytest.fixture
def quality(tmp_path):
    # Paper 4 cites 1, 5 and 6, and 7 cites 2: of the query 1, papers 5 and 6 are co-cited and 4 cites it.
    related(tmp_path, {(4, 1), (4, 5), (4, 6), (7, 2)})
    return lambda *ranks: measured(tmp_path, {1: [5, 4, 6, *range(10, 20)], 9: [5]}, {2: [7, 5]}, ranks=ranks)


def test_the_related_among_the_first_five_ranks_are_counted(quality):
    first, second = quality()
    assert first == {"last_rank": 5, "first_rank": 1, "queries": 2, "papers": 7, "cocited": 2, "cited": 2}
    assert second == {"last_rank": 10, "first_rank": 6, "queries": 1, "papers": 5, "cocited": 0, "cited": 0}


def test_bands_end_where_sets_of_triplets_take_theirs_and_are_measured_once(quality):
    rows = {row["last_rank"]: row for row in quality(2, 7, 10)}
    assert list(rows) == [2, 5, 7, 10]
    assert (rows[2]["first_rank"], rows[2]["papers"], rows[2]["cocited"], rows[2]["cited"]) == (1, 4, 1, 2)
    assert (rows[7]["first_rank"], rows[7]["papers"], rows[7]["cocited"]) == (3, 5, 1)
