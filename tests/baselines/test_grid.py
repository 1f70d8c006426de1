"""Grids: their points, what they are judged on, and the choice among them."""

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.baselines.tables import papers, queries, write_vectors
from tests.configurations import refused
from tests.rows import write_rows

from cocite.baselines.grid import RANDOM, choose_point, draw_validation, read_judged, reciprocal_rank
from cocite.config.baseline import combinations
from cocite.config.configuration import configure
from cocite.config.runs import seeds_of, trained_entries
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table

GRID = {"fasttext": {"kind": "fasttext", "seeds": [1, 2]}, "sif": {"kind": "sif", "of": "fasttext"}}
GRID["sif"] |= {"grid": {"a": [1e-5, 1e-3]}}


@pytest.fixture
def written():
    return yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text()) | {"baselines": GRID}


def test_a_grid_has_a_point_for_each_combination():
    points = [tuple(point.values()) for point in combinations({"window": [5, 10], "sample": [0, 1e-6, 1e-5]})]
    assert points == [(5, 0), (5, 1e-6), (5, 1e-5), (10, 0), (10, 1e-6), (10, 1e-5)]


def test_each_point_is_trained_by_itself_with_the_seeds_of_its_baseline(written):
    trained = trained_entries(configure(written).baselines)
    assert list(trained) == ["fasttext", "sif_point-0", "sif_point-1"]
    assert [getattr(entry, "a", None) for entry in trained.values()] == [None, 1e-5, 1e-3]
    assert seeds_of("sif_point-1", configure(written).baselines) == (1, 2)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"b": [1]}, r"baselines.sif.grid names 'b'; it can name a\."),
        ({"of": ["fasttext"]}, "baselines.sif.grid names 'of'"),
        ({"a": [1e-3, -1.0]}, r"baselines.sif.grid: a: -1.0 cannot be trained \(Input should be greater than 0\)"),
        ({"a": []}, "baselines.sif.grid.a is .*, which should be non-empty"),
        ({"a": [1e-3, 1e-3]}, "non-unique"),
    ],
)
def test_a_grid_that_cannot_be_trained_is_refused(written, grid, said):
    found = refused(written, "baselines.sif.grid", grid)
    assert re.search(said, found), found


def test_a_point_is_worth_the_mean_reciprocal_rank_of_cited_papers_among_random_ones(tmp_path):
    path = write_vectors(tmp_path / "v.parquet", {"q": [0], "c": [2], "d": [5], "r": [1], "s": [2], "t": [9], "p": [0]})
    # c: r is nearer and s as near, rank 2.5; d: r and s are nearer, rank 3; e has no vector; u neither.
    assert reciprocal_rank(path, {"q": (["c", "d", "e"], ["r", "s", "t", "u"])}) == pytest.approx((1 / 2.5 + 1 / 3) / 3)
    assert reciprocal_rank(path, {"q": (["c"], ["t"]), "x": (["c"], ["t"])}) == pytest.approx(0.5)


def test_the_best_point_is_taken_with_its_settings_and_the_first_of_equals(tmp_path):
    rows = [("t", "q", candidate, relevance, None, None) for candidate, relevance in (("c", 1), ("r", 0))]
    columns = "task query candidate relevance propensity fold"
    write_rows(tmp_path / "judgements.parquet", "judgements", columns, rows)
    near, far = {"q": [0.0], "c": [1.0], "r": [2.0]}, {"q": [0.0], "c": [3.0], "r": [2.0]}
    models, files = [], []
    for number, given in enumerate((far, near, near)):
        model = tmp_path / f"m{number}"
        model.mkdir()
        write_json(model / "settings.json", {"baseline": {"kind": "sif", "a": float(number)}})
        models.append(model)
        files.append(write_vectors(tmp_path / f"{number}.parquet", given))
    output, grid = tmp_path / "model", tmp_path / "grid.parquet"
    choose_point([*models, *files], judgements=tmp_path / "judgements.parquet", grid=grid, output=output)
    assert json.loads((output / "settings.json").read_text())["baseline"]["a"] == 1
    rows = read_table(grid, "baseline_grid").to_pylist()
    reached = [(row["reciprocal_rank"], row["judged"], row["chosen"]) for row in rows]
    assert reached == [(0.5, 1, False), (1, 1, True), (1, 1, False)]


def drawn(tmp_path: Path, count: int, splits: dict[int, str], seed: int = 1):
    """What is drawn from papers that each cite the two after them; every tenth has no abstract."""
    texts = {number: (f"t{number}", f"a{number}" if number % 10 else None) for number in range(1, count + 1)}
    papers(tmp_path / "papers" / "0.parquet", texts)
    rows = [(number, number + step, False, []) for number in range(1, count - 1) for step in (1, 2)]
    write_rows(tmp_path / "citations" / "0.parquet", "citations", "citing cited influential intents", rows)
    files = {"documents": tmp_path / "documents.parquet", "judgements": tmp_path / "judgements.parquet"}
    folders = {"papers": tmp_path / "papers", "citations": tmp_path / "citations"}
    draw_validation(**folders, queries=queries(tmp_path / "q.parquet", splits), seed=seed, **files)
    return read_judged(files["judgements"]), read_table(files["documents"], "documents")


def test_validation_queries_are_judged_on_what_they_cite_among_random_papers(tmp_path):
    splits = {5: "validation", 18: "validation", 30: "validation", 40: "train", 6: "holdout", 90: "excluded"}
    judged, documents = drawn(tmp_path, 200, splits)
    assert {query: cited for query, (cited, _) in judged.items()} == {"5": ["7"], "18": ["19"]}  # 30 has no abstract
    for query, (cited, others) in judged.items():
        assert len(set(others)) == RANDOM
        assert not {query, *cited, "6", "90"} & set(others)
        assert not any(int(paper) % 10 == 0 for paper in others)
    everything = {name for query, (cited, others) in judged.items() for name in (query, *cited, *others)}
    assert documents["document"].to_pylist() == sorted(everything)
    texts = dict(zip(documents["document"].to_pylist(), documents["abstract"].to_pylist(), strict=True))
    assert texts["5"] == "a5"


def test_the_draw_depends_on_the_seed(tmp_path):
    first, again, other = (drawn(tmp_path / str(at), 300, {5: "validation"}, of)[0] for at, of in enumerate((1, 1, 2)))
    assert first == again
    assert first != other


@pytest.mark.parametrize(("count", "splits"), [(40, {5: "validation"}), (200, {5: "train"}), (200, {10: "validation"})])
def test_a_corpus_that_is_too_small_for_a_grid_is_refused(tmp_path, count, splits):
    with pytest.raises(InputError, match=r"too small for a grid: \d of \d validation queries cite a paper"):
        drawn(tmp_path, count, splits)
