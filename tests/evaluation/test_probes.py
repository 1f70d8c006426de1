"""What maps of a probe are worth, against plain Python; and that those who choose do not prove."""

import numpy as np
import pyarrow as pa
import pytest
import yaml
from safetensors.numpy import save_file
from tests.evaluation.folders import write_paper_vectors

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.core.tables.places import Trained, name_of_map
from cocite.evaluation.benchmark import write_rows
from cocite.evaluation.comparisons import drawn_interval
from cocite.evaluation.probes import UNTRAINED, Point, score_maps, scores_of, write_scores, write_winners

TASKS = ("cite", "cocite")
QUERIES = {"selection": ["1", "2", "3"], "judgements": ["4", "5", "6", "7"]}
CANDIDATES = [str(number) for number in range(10, 22)]
MAPS = {Trained("triplet margin=1.0", 8, seed): np.diag([1.0, seed, 0.5]).astype(np.float32) for seed in (1, 2)}


@pytest.fixture
def folder(tmp_path):
    """Two parts of queries with candidates, vectors of all, and maps with two seeds."""
    draw = np.random.default_rng(3)
    for table, queries in QUERIES.items():
        rows = [(t, q, c, int(draw.random() < 0.4)) for t in TASKS for q in queries for c in CANDIDATES]
        rows = [(t, q, c, 1 if c == "10" else relevance) for t, q, c, relevance in rows]
        further = (None, None) if table == "judgements" else ()
        write_rows(tmp_path / f"{table}.parquet", table, [(*row, *further) for row in rows])
    papers = np.arange(1, 40)
    vectors = draw.normal(size=(len(papers), 3)).astype(np.float32)
    write_paper_vectors(tmp_path / "papers", dict(zip(papers.tolist(), vectors, strict=True)))
    maps = {name_of_map(trained): weight for trained, weight in MAPS.items()}
    save_file(maps, tmp_path / "maps", {"normalise": "False"})
    return tmp_path


def score(folder, output="specter.parquet"):
    asked = {"tables": folder, "tasks": ",".join(TASKS)}
    score_maps(folder / "maps", vectors=folder / "papers", **asked, output=folder / output)
    return read_table(folder / output, "probe_outcomes").to_pylist()


def average_precision(folder, table, task, query, weight):
    """Of the candidates in the order of their distance, × 100."""
    papers = read_table(folder / "papers", "paper_embeddings").to_pylist()
    vectors = {str(row["corpusid"]): weight @ np.array(row["vector"]) for row in papers}
    judged = read_table(folder / f"{table}.parquet", table).to_pylist()
    relevance = {r["candidate"]: r["relevance"] for r in judged if (r["task"], r["query"]) == (task, query)}
    ranked = sorted(relevance, key=lambda paper: np.linalg.norm(vectors[paper] - vectors[query]))
    hits = [relevance[paper] for paper in ranked]
    precisions = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
    return 100 * sum(precisions) / len(precisions)


def test_each_query_has_its_average_precision_with_each_map_and_without_one(folder):
    rows = score(folder)
    expected = {}
    for trained, weight in {**MAPS, UNTRAINED: np.eye(3)}.items():
        for part, table in {"selection": "selection", "test": "judgements"}.items():
            for task in TASKS:
                for query in QUERIES[table]:
                    value = average_precision(folder, table, task, query, weight)
                    expected[*trained, part, task, query] = pytest.approx(value)
    found = {tuple(row[name] for name in list(row)[:-1]): row["value"] for row in rows}
    assert found == expected


def test_scores_are_means_over_queries_and_seeds_with_their_deviation(folder):
    rows = score(folder)
    scores = scores_of({"specter": folder / "specter.parquet"}, seed=1)
    untrained, trained = Point("untrained", "untrained", 0), Point("specter", "triplet margin=1.0", 8)
    assert set(scores) == {untrained, trained}
    assert scores[untrained]["test", "cite"].deviation is None
    for part in ("selection", "test"):
        of_tasks = []
        for task in TASKS:
            of_task = [row for row in rows if (row["part"], row["task"]) == (part, task)]
            found = scores[trained][part, task]
            by_seed = [np.mean([row["value"] for row in of_task if row["seed"] == seed]) for seed in (1, 2)]
            assert found.value == pytest.approx(np.mean(by_seed))
            assert found.deviation == pytest.approx(np.std(by_seed, ddof=1))
            low, high = drawn_interval(found.drawn)
            assert low <= found.value <= high
            of_tasks.append(np.mean(by_seed))
        assert scores[trained][part, "all"].value == pytest.approx(np.mean(of_tasks))


def change(path, by, part=None):
    """Change the outcomes of the trained maps, of one part or of both."""
    table = read_table(path, "probe_outcomes")
    is_changed = (table["seed"].to_numpy() > 0) & np.isin(table["part"].to_pylist(), part or ("selection", "test"))
    value = pa.array(table["value"].to_numpy() + np.where(is_changed, by, 0.0))
    write_table(path, "probe_outcomes", table.set_column(table.schema.get_field_index("value"), "value", value))


def ranked(folder):
    """The sets good and bad, the better one first, and the rows of the table probe_scores of what was trained."""
    outcomes = {name: folder / f"{name}.parquet" for name in ("good", "bad")}
    order = [point.triplets for point in write_scores(outcomes, 1, folder / "scores.parquet")]
    rows = read_table(folder / "scores.parquet", "probe_scores").to_pylist()
    return order, [row for row in rows if row["triplets"] != "untrained"]


def test_the_choice_does_not_see_the_queries_that_prove(folder):
    """Whatever test queries score, ranks stay; whatever selection queries score decides them."""
    for name in ("good", "bad"):
        score(folder, f"{name}.parquet")
    for name, part, by, expected in (
        ("good", "selection", 5.0, ["good", "bad"]),
        ("bad", "test", 50.0, ["good", "bad"]),
        ("bad", "selection", 10.0, ["bad", "good"]),
    ):
        change(folder / f"{name}.parquet", by, part)
        order, rows = ranked(folder)
        assert order == expected
        assert {row["triplets"] for row in rows if row["rank"] == 1} == {expected[0]}


def test_differences_from_the_best_are_paired_by_query(folder):
    """A set that is better by the same in every query differs without any width."""
    for name in ("good", "bad"):
        score(folder, f"{name}.parquet")
    change(folder / "good.parquet", 4.0)
    for row in ranked(folder)[1]:
        found = [row[name] for name in ("difference", "difference_low", "difference_high")]
        assert found == pytest.approx([0.0 if row["triplets"] == "good" else -4.0] * 3)


def test_a_paper_without_a_vector_is_named_and_without_papers_that_choose_nothing_is_scored(folder):
    (folder / "papers/1.parquet").unlink()
    with pytest.raises(InputError, match="has no vector of paper 1, nor of 9 others"):
        score(folder)
    path = folder / "selection.parquet"
    write_table(path, "selection", read_table(path, "selection").slice(0, 0))
    with pytest.raises(InputError, match="has no judgements of the selection papers; hold out more papers"):
        score(folder)


def test_winners_are_entries_that_a_configuration_can_hold(tmp_path):
    losses = [{"kind": "triplet", "margin": 1.0}, {"kind": "mnrl", "scale": 10.0, "sampled_negatives": True}]
    sets = {name: {"sampler": "citations", "graph": "citation", "group": name} for name in ("specter", "other")}
    settings = {"probe": {"losses": losses, "encoder": "small", "seeds": [1, 2]}, "triplets": sets}
    mnrl = "mnrl scale=10.0 sampled_negatives=true"
    ranked = [Point("specter", mnrl, 512), Point("specter", "triplet margin=1.0", 128)]
    write_winners(ranked, settings, tmp_path / "winners.yaml")
    written = yaml.safe_load((tmp_path / "winners.yaml").read_text())
    assert written["triplets"] == {"specter": sets["specter"]}
    training = {"encoder": "small", "loss": losses[1], "batch_size": 512, "seeds": [1, 2]}
    assert written["models"]["winner-1"] == {"triplets": "specter", **training}
    assert written["models"]["winner-2"]["loss"] == losses[0]
