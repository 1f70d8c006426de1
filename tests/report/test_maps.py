"""Maps: which papers are on them, where models place them, how clusters agree with labels; and topics of all papers."""

import gzip
import json
import math
from base64 import b64decode
from itertools import product

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.papers import papers_table
from tests.report.made_page import AGREEMENT, COUNTS
from tests.rows import write_rows
from tests.tools.builders import invoke, write_model, write_vectors

from cocite.config.configuration import Map
from cocite.config.map import Clustering
from cocite.config.settings import entry_of
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.report.map_layout import (
    NOISE,
    agreement,
    find_clusters,
    knee_of_distances,
    lay_out,
    usual_min_samples,
    write_layout,
    write_papers,
)
from cocite.report.map_page import ABSENT, LARGEST, MapData, agreement_table, aligned, packed, quantised
from cocite.report.topics import named_by_words, write_topics

METHODS = ["tsne", pytest.param("umap", marks=pytest.mark.long)]  # whose libraries compile for half a minute
VECTORS = generator(1, "map").normal(size=(120, 8)).astype(np.float32)


def map_with(**settings):
    return entry_of({"benchmark": "b", **settings}, Map)


@pytest.fixture
def benchmark(tmp_path):
    """Six documents, two of them queries of a ranking, one a short query; a field each, and classes of two tasks."""
    columns = {
        "document": ["1", "2", "3", "4", "5", "words"],
        "title": ["one", None, "three", "four", "five", "a few words"],
        "abstract": pa.nulls(6, pa.string()),
        "more": pa.array([[]] * 6, pa.list_(pa.string())),
        "field": ["physics", "history", None, "physics", None, None],
        "is_query": [False] * 5 + [True],
    }
    write_table(tmp_path / "documents.parquet", "documents", pa.table(columns))
    judged = {"task": ["cite"] * 3, "query": ["2", "4", "words"], "candidate": ["1", "1", "3"], "relevance": [1, 0, 1]}
    judgements = pa.table({**judged, "propensity": pa.nulls(3, pa.float64()), "fold": pa.nulls(3, pa.int8())})
    write_table(tmp_path / "judgements.parquet", "judgements", judgements)
    rows = [("mag", "test", "1", ["b", "a"]), ("mag", "train", "3", ["a"]), ("year", "test", "1", ["1999"])]
    write_rows(tmp_path / "labels.parquet", "labels", "task split document labels", rows)
    return tmp_path


def chosen(benchmark, settings=None, *, only_queries=False, corpus=None, seed=1):
    """The tables of a map's papers and labels."""
    paths = {"papers": benchmark / "mapped.parquet", "labels": benchmark / "mapped_labels.parquet"}
    asked = {"settings": settings or map_with(), "tasks": "mag", "only_queries": only_queries, "corpus": corpus}
    write_papers(tables=benchmark, **asked, seed=seed, **paths)
    tables = (read_table(paths["papers"], "map_papers"), read_table(paths["labels"], "map_labels"))
    return [table.to_pylist() for table in tables]


def test_a_map_has_all_documents_but_short_queries_and_their_fields_and_first_classes(benchmark):
    papers, labels = chosen(benchmark)
    assert [row["document"] for row in papers] == ["1", "2", "3", "4", "5"]
    assert [row["title"] for row in papers] == ["one", None, "three", "four", "five"]
    assert [tuple(row.values()) for row in labels] == [
        ("field", "1", "physics"),
        ("field", "2", "history"),
        ("field", "4", "physics"),
        ("mag", "1", "b"),
        ("mag", "3", "a"),
    ]


def test_a_map_of_queries_leaves_out_their_candidates_and_papers_of_the_corpus_have_its_years(benchmark):
    known = papers_table(dict.fromkeys((1, 4, 9), ("a title", None)), year=[1990, None, 2000])
    write_table(benchmark / "corpus" / "0.parquet", "papers", known)
    papers, _ = chosen(benchmark, corpus=benchmark / "corpus")
    assert {row["document"]: row["year"] for row in papers} == {"1": 1990, "2": None, "3": None, "4": None, "5": None}
    papers, _ = chosen(benchmark, only_queries=True)
    assert [row["document"] for row in papers] == ["2", "4"]


def test_of_too_many_papers_those_with_a_wanted_label_come_first_and_others_are_drawn_by_the_seed(benchmark):
    papers, labels = chosen(benchmark, map_with(papers=3, labels=["mag"]))
    assert len(papers) == 3
    assert {"1", "3"} < {row["document"] for row in papers}
    assert {row["label"] for row in labels} == {"mag"}
    drawn = [chosen(benchmark, map_with(papers=2), seed=seed)[0] for seed in (1, 1, 2, 3, 4, 5, 6)]
    assert drawn[0] == drawn[1]
    assert any(other != drawn[0] for other in drawn)


def test_a_label_that_no_document_has_is_an_error_that_names_those_there_are(benchmark):
    with pytest.raises(InputError, match=r"has the label mesh, .* field, mag"):
        chosen(benchmark, map_with(labels=["mesh"]))


def test_agreement_is_as_worked_out_by_hand_and_papers_in_no_cluster_are_one_of_their_own():
    # H(class) = ln 2. In the first cluster 2 of 3 are a: H(class | cluster) = ¾ (ln 3 − ⅔ ln 2).
    # H(cluster) = ln 4 − ¾ ln 3. Of b, one paper is in each cluster: H(cluster | class) = ½ ln 2.
    homogeneity = 1 - 0.75 * (math.log(3) - 2 / 3 * math.log(2)) / math.log(2)
    completeness = 1 - 0.5 * math.log(2) / (math.log(4) - 0.75 * math.log(3))
    both = 2 * homogeneity * completeness / (homogeneity + completeness)
    found = agreement(pl.Series(["a", "a", "b", "b", None]), np.array([0, 0, 0, NOISE, 1]))
    measures = [found[name] for name in ("homogeneity", "completeness", "v_measure")]
    assert measures == pytest.approx([homogeneity, completeness, both])


def blobs(*sizes):
    """Round groups of so many points, ten apart."""
    draw = generator(1, "blobs")
    return np.concatenate([draw.normal((10 * place, 0), 0.3, size=(size, 2)) for place, size in enumerate(sizes)])


def test_groups_that_lie_apart_are_clusters_the_largest_first_and_a_paper_alone_is_in_none():
    points = np.concatenate([blobs(40, 60), [[100.0, 100.0]]])
    clusters, eps = find_clusters(points, Clustering())
    assert 0.05 < eps < 9
    assert set(clusters[:40]) == {1}
    assert set(clusters[40:100]) == {0}
    assert clusters[100] == NOISE

    assert [usual_min_samples(papers) for papers in (1, 20, 200, 3000, 10_000)] == [4, 4, 5, 8, 9]
    clusters, eps = find_clusters(blobs(40, 60), Clustering(eps=50.0))
    assert (eps, set(clusters)) == (50, {0})


@pytest.mark.parametrize(("papers", "expected"), [(0, []), (3, [NOISE] * 3), (12, [0] * 12)])
def test_papers_on_one_spot_are_a_cluster_if_there_are_enough(papers, expected):
    clusters, _ = find_clusters(np.zeros((papers, 2)), Clustering(min_samples=10))
    assert clusters.tolist() == expected


def test_eps_is_where_the_sorted_distances_are_farthest_below_the_line_between_their_ends():
    points = generator(2, "bend").normal(size=(60, 2))
    between = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    curve = sorted(np.sort(between, axis=1)[:, 4])  # the fifth nearest, the point itself first
    below = [curve[0] + (curve[-1] - curve[0]) * place / 59 - value for place, value in enumerate(curve)]
    assert knee_of_distances(points, 5) == pytest.approx(curve[below.index(max(below))])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_map_is_the_same_each_time_and_another_with_another_seed(method, metric):
    settings = map_with(method=method, metric=metric)
    once, again, other = (lay_out(VECTORS, settings, seed=seed) for seed in (1, 1, 2))
    assert once.shape == (120, 2)
    assert np.isfinite(once).all()
    assert (once == again).all()
    assert (once != other).any() or method == "tsne"  # which starts from principal components


@pytest.mark.parametrize("method", METHODS)
def test_groups_of_papers_stay_together_on_a_map(method):
    groups = np.repeat([[0.0] * 6, [9.0] * 6, [0, 9.0] * 3], 40, axis=0)
    vectors = (groups + generator(1, "groups").normal(size=groups.shape)).astype(np.float32)
    points = lay_out(vectors, map_with(method=method), seed=1)
    between = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(between, np.inf)
    assert (between.argmin(axis=1) // 40 == np.arange(120) // 40).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("papers", [0, 1, 2, 3, 4, 5, 6, 20])
def test_a_few_papers_can_be_laid_out(method, papers):
    points = lay_out(VECTORS[:papers], map_with(method=method), seed=1)
    assert points.shape == (papers, 2)
    assert np.isfinite(points).all()


def test_papers_that_a_model_does_not_tell_apart_lie_on_one_spot():
    assert (lay_out(np.ones((40, 4), np.float32), map_with(), seed=1) == 0).all()


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"perplexity": 50.0}, "perplexity is 50, which needs at least 151 papers; the map has 120"),
        ({"method": "umap", "neighbours": 120}, "neighbours is 120, which needs at least 121 papers"),
    ],
)
def test_a_setting_that_asks_for_more_papers_than_there_are_is_an_error_that_says_what_would_be_right(given_, said):
    with pytest.raises(InputError, match=said):
        lay_out(VECTORS, map_with(**given_), seed=1)


@pytest.fixture
def mapped(tmp_path):
    """A map of 60 papers in two fields, and the vectors of a model: without those of one paper, and two not finite."""
    names = [f"{number:03}" for number in range(60)]
    fields = ["a" if number < 30 else "b" for number in range(60)]
    papers = {"document": names, "title": names, "year": pa.nulls(60, pa.int32())}
    write_table(tmp_path / "papers.parquet", "map_papers", pa.table(papers))
    labels = {"label": ["field"] * 50, "document": names[:50], "value": fields[:50]}
    write_table(tmp_path / "labels.parquet", "map_labels", pa.table(labels))
    vectors = VECTORS[:60] + np.where(np.array(fields) == "a", 0, 50)[:, None]
    vectors[[3, 7], 2] = [np.nan, np.inf]
    rows = {"adapter": [""] * 59, "document": names[:59], "vector": vector_column(vectors[:59])}
    write_table(tmp_path / "vectors.parquet", "document_embeddings", pa.table(rows))
    return tmp_path


def laid_out(folder, **settings):
    paths = {name: folder / f"{name}.parquet" for name in ("papers", "labels", "points", "scores")}
    write_layout(folder / "vectors.parquet", settings=map_with(**settings), seed=1, **paths)
    tables = (read_table(paths["points"], "map_points"), read_table(paths["scores"], "map_scores"))
    return [table.to_pylist() for table in tables]


def test_papers_without_a_finite_vector_are_left_out_counted_and_told(mapped, capsys):
    points, [score] = laid_out(mapped)
    assert [row["document"] for row in points] == [f"{n:03}" for n in range(59) if n not in (3, 7)]
    assert (score["papers"], score["missing"], score["labelled"], score["classes"]) == (57, 3, 48, 2)
    assert "the vectors of 2 of 59 papers contain values that are not finite" in capsys.readouterr().err


def test_two_groups_of_papers_are_two_clusters_that_agree_with_their_fields(mapped):
    points, [score] = laid_out(mapped, clusters={"min_samples": 3, "eps": 2.0})
    assert score["clusters"] == 2
    assert score["unclustered"] == 0
    assert score["homogeneity"] == score["completeness"] == score["v_measure"] == pytest.approx(1)
    found = {(int(row["document"]) >= 30, row["cluster"]) for row in points}
    assert found in ({(False, 0), (True, 1)}, {(False, 1), (True, 0)})


def test_a_map_without_any_vector_is_empty(mapped):
    empty = {"adapter": [""], "document": ["elsewhere"], "vector": vector_column(VECTORS[:1])}
    write_table(mapped / "vectors.parquet", "document_embeddings", pa.table(empty))
    points, [score] = laid_out(mapped)
    assert points == []
    assert (score["papers"], score["missing"], score["homogeneity"], score["clusters"]) == (0, 60, None, 0)


def test_of_an_encoder_with_adapters_the_vectors_are_those_of_proximity(mapped):
    vectors = {"": VECTORS[:20], "proximity": VECTORS[20:40]}
    rows = {"adapter": np.repeat(list(vectors), 20), "document": [f"{n:03}" for n in range(20)] * 2}
    both = pa.table({**rows, "vector": vector_column(np.concatenate([*vectors.values()]))})
    write_table(mapped / "vectors.parquet", "document_embeddings", both)
    points, _ = laid_out(mapped)
    expected = lay_out(VECTORS[20:40], map_with(), seed=derive_seed(1, "map") % 2**32)
    assert np.allclose([[row["x"], row["y"]] for row in points], expected)


def scored(**values):
    return pl.DataFrame([COUNTS | AGREEMENT | {"label": "mag", "papers": 1200, "unclustered": 40} | values])


def table_of(scores, kind, source="s2", folder="x"):
    benchmarks = {"b": {"kind": kind, "folder": folder}}
    configuration = {"corpus": {"source": source}, "benchmarks": benchmarks, "maps": {"m": {"benchmark": "b"}}}
    return agreement_table("m", {"ours": scores}, {"configuration": configuration}).to_dicts()


@pytest.mark.parametrize(("kind", "label"), [("scidocs", "mag"), ("scirepeval", "scidocs_mag")])
def test_agreement_with_the_classes_of_mag_stands_beside_what_was_published(kind, label):
    rows = table_of(pl.concat([scored(label=label), scored(label="field", homogeneity=None)]), kind)
    shown = [(row["model"], row["label"], row["source"], row["homogeneity"], row["completeness"]) for row in rows]
    assert shown == [
        ("ours", label, "b", "0.25", "0.50"),
        ("SPECTER", label, "published", "0.41", "0.72"),
        ("SciBERT", label, "published", "0.19", "0.63"),
        ("ours", "field", "b", "–", "0.50"),
    ]
    assert (rows[0]["V-measure"], rows[0]["papers"], rows[0]["in none"]) == ("0.33", "1,200", "40")
    assert rows[1]["V-measure"] == "0.52"  # 2 · 0.41 · 0.72 / 1.13


@pytest.mark.parametrize("label", ["scidocs_mag", "field"])
def test_nothing_published_stands_beside_generated_papers_or_other_labels(label):
    assert len(table_of(scored(label=label), "scirepeval", source="demo", folder="demo")) == 1
    assert table_of(scored().clear(), "scidocs") == []


def unpacked(text):
    return gzip.decompress(b64decode(text))


def test_what_the_page_holds_is_what_was_placed():
    layouts = {"one": np.array([[0.0, 0.0], [4.0, 2.0], [np.nan, np.nan]]), "other": np.full((3, 2), np.nan)}
    clusters = {"one": [0, None, None], "other": [None] * 3}
    classes, years = {"field": ["x", None, "x"]}, [1999, None, 2001]
    page = packed(MapData(titles=["a", "<b>", "c"], years=years, classes=classes, layouts=layouts, clusters=clusters))
    assert json.loads(unpacked(page["texts"])) == {"titles": ["a", "<b>", "c"], "years": [1999, None, 2001]}
    [label] = page["labels"]
    assert (label["name"], label["classes"]) == ("field", ["x"])
    assert np.frombuffer(unpacked(label["values"]), "<u2").tolist() == [0, ABSENT, 0]
    first, other = page["models"]
    # The longer side, x, goes from end to end; y, half as long, is in the middle.
    assert np.frombuffer(unpacked(first["points"]), "<u2").tolist() == [
        *(0, LARGEST, ABSENT),
        *(round(LARGEST / 4), round(3 * LARGEST / 4), ABSENT),
    ]
    assert np.frombuffer(unpacked(first["clusters"]), "<u2").tolist() == [0, ABSENT, ABSENT]
    assert set(np.frombuffer(unpacked(other["points"]), "<u2").tolist()) == {ABSENT}
    assert set(quantised(np.full((4, 2), 7.0)).flat) == {LARGEST // 2}  # one spot is in the middle


def turned(points, angle, sign):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return (points * [sign, 1]) @ turn


@given(st.floats(0, 2 * math.pi), st.sampled_from([-1, 1]), st.floats(-50, 50))
def test_a_map_that_was_turned_mirrored_and_moved_is_turned_back(angle, sign, moved):
    points = generator(1, "turned").normal(size=(30, 2))
    back = aligned(turned(points, angle, sign) + moved, points)
    assert np.allclose(back, points - points.mean(axis=0), atol=1e-6)


def test_no_turn_brings_a_map_nearer_to_another_than_the_one_that_is_taken():
    points, reference = (generator(seed, "maps").normal(size=(40, 2)) for seed in (1, 2))
    target = reference - reference.mean(axis=0)
    taken = ((aligned(points, reference) - target) ** 2).sum()
    centred = points - points.mean(axis=0)
    for angle, sign in product(np.linspace(0, 2 * math.pi, 360), (1, -1)):
        assert taken <= ((turned(centred, angle, sign) - target) ** 2).sum() + 1e-9


PAPERS = 100
SUBJECTS = (("Glaciers melting", "Geology"), ("Compilers allocating", "Computer Science"))


@pytest.fixture
def results(tmp_path):
    """Papers on two subjects, whose vectors lie apart, in two buckets; the first has none that is finite."""
    for bucket in range(2):
        ids = range(bucket, PAPERS, 2)
        texts = {paper: (f"{SUBJECTS[paper < 40][0]} in case {paper}", "A text.") for paper in ids}
        table = papers_table(texts, fields=[[SUBJECTS[paper < 40][1], "Other"] for paper in ids])
        write_table(tmp_path / f"corpus/papers/{bucket}.parquet", "papers", table)
    write_model(tmp_path)
    noise = np.random.default_rng(1).normal(size=(PAPERS, 4)).astype(np.float32)
    vectors = {paper: noise[paper] + [40 * (paper < 40), 0, 0, 0] for paper in range(PAPERS)}
    vectors[0] = np.full(4, np.nan)
    for bucket in range(2):
        path = tmp_path / f"encoder/model/seed-1/papers/{bucket}.parquet"
        write_vectors(path, {paper: vectors[paper] for paper in range(bucket, PAPERS, 2)})
    return tmp_path


def find_topics(results):
    folder = results / "report/topics/model/seed-1"
    vectors = sorted((results / "encoder/model/seed-1/papers").glob("*.parquet"))
    paths = {"topics": folder / "topics.parquet", "scores": folder / "scores.parquet", "output": folder / "papers"}
    write_topics(vectors, papers=results / "corpus/papers", seed=1, threads=1, **paths)
    return folder


def test_topics_are_the_subjects_with_their_words_and_fields(results):
    folder = find_topics(results)
    topics = {row["field"]: row for row in read_table(folder / "topics.parquet", "topics").to_pylist()}
    for (words, field), papers in zip(SUBJECTS, (60, 39), strict=True):
        assert topics[field]["papers"] == topics[field]["in_field"] == papers
        assert set(topics[field]["words"][:2]) == {*words.lower().split()}
    of_papers = read_table(folder / "papers", "paper_topics").to_pylist()
    numbers = {field: topics[field]["topic"] for _, field in SUBJECTS}
    expected = {paper: numbers[SUBJECTS[paper < 40][1]] for paper in range(1, PAPERS)}
    assert {row["corpusid"]: row["topic"] for row in of_papers} == expected
    [scores] = read_table(folder / "scores.parquet", "topic_scores").to_pylist()
    assert scores | {"papers": 99, "classes": 2, "topics": 2, "v_measure": pytest.approx(1)} == scores


def test_a_word_of_all_topics_names_none():
    counts = np.array([[9, 0, 10], [0, 9, 10], [1, 1, 10]])
    assert named_by_words(counts, ["ice", "loop", "case"]) == [["ice"], ["loop"], ["ice", "loop"]]


def test_a_search_shows_the_topic_of_each_paper(results):
    find_topics(results)
    said = invoke("search", "50", "--model", "model", "--results", results, "--limit", "3", "--format", "csv").stdout
    assert said.splitlines()[0] == "rank,distance,corpusid,year,topic,title"
    assert all("glaciers" in line and "melting" in line for line in said.splitlines()[1:])
