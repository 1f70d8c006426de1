"""Baselines in the configuration: which are scored, what is refused, and the choice among the points of a grid."""

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.baselines.tables import documents, embedded, papers, queries, write_vectors
from tests.configurations import refusals, refused
from tests.rows import write_rows

from cocite.baselines.grid import RANDOM, choose_point, draw_validation, read_judged, reciprocal_rank
from cocite.config.baseline import combinations
from cocite.config.configuration import configure
from cocite.config.runs import (
    baselines_with_vectors,
    beside_models,
    reported_on,
    runs_of,
    runs_that_rank_alone,
    seeds_of,
    trained_entries,
)
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.plan.recorded import is_configured

ROOT = Path(__file__).parents[2]
GRID = {"fasttext": {"kind": "fasttext", "seeds": [1, 2]}, "sif": {"kind": "sif", "of": "fasttext"}}
GRID["sif"] |= {"grid": {"a": [1e-5, 1e-3]}}


@pytest.fixture
def written():
    """The default configuration without its index."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    del config["indexes"]
    return config


def baseline_runs(config):
    models = {f"{name}-{seed}" for name, entry in config.models.items() for seed in entry.seeds}
    return [run for run in runs_of(config) if run not in models and "_" not in run]


def test_bm25_popularity_and_random_vectors_are_scored_where_no_baselines_are_named(written):
    config = configure(written)
    assert baseline_runs(config) == ["bm25-0", "popularity-0", "random-0"]
    assert runs_that_rank_alone(config) == ["bm25-0", "popularity-0"]


def test_exactly_the_baselines_that_are_named_are_scored(written):
    named = {"words": {"kind": "bm25", "k1": 2.0}, "ft": {"kind": "fasttext", "seeds": [4, 5]}}
    named |= {"s": {"kind": "sif", "of": "ft"}}
    config = configure(written | {"baselines": named})
    assert baseline_runs(config) == ["words-0", "ft-4", "ft-5", "s-4", "s-5"]
    assert runs_that_rank_alone(config) == ["words-0"]
    assert baseline_runs(configure(written | {"baselines": {}})) == []


def test_brought_vectors_are_scored_on_the_benchmarks_that_they_are_for(written, tmp_path):
    (tmp_path / "v.jsonl").touch()
    named = {"theirs": {"kind": "brought", "path": str(tmp_path / "v.jsonl"), "benchmarks": ["holdout"]}}
    config = configure(written | {"baselines": named})
    assert "theirs-0" in runs_of(config, "holdout")
    assert "theirs-0" not in runs_of(config, "scirepeval")


def with_datasets(written, folder, *names):
    """A configuration with datasets in BEIR's layout."""
    for path in (Path(name, file) for name in names for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    beir = {"kind": "beir", "datasets": {name: str(folder / name) for name in names}}
    return written | {"benchmarks": {"holdout": {"kind": "holdout"}, "beir": beir}}


def test_reported_scores_are_read_on_benchmarks_with_tasks_of_mteb_and_are_no_run(written, tmp_path):
    (tmp_path / "SciFact.json").write_text("{}")
    named = {"theirs": {"kind": "reported", "path": str(tmp_path / "SciFact.json")}, "random": {"kind": "random"}}
    config = configure(with_datasets(written, tmp_path, "scifact", "own") | {"baselines": named})
    assert [reported_on(config, name) for name in ("holdout", "beir")] == [[], ["theirs"]]
    assert baseline_runs(config) == ["random-0"]
    assert baselines_with_vectors(config) == ["random"]
    assert beside_models(config) == []
    places = [{"benchmark": name, "baseline": "theirs"} for name in ("beir", "holdout")]
    places += [{"stage": "evaluation", "step": step} for step in ("beir_theirs", "beir_gone", "holdout_theirs")]
    assert [is_configured(place, config) for place in places] == [True, False, True, False, False]


def test_reported_scores_that_cannot_be_shown_are_refused(written, tmp_path):
    (tmp_path / "theirs").mkdir()
    entry = {"theirs": {"kind": "reported", "path": str(tmp_path / "theirs")}}
    found = refused(with_datasets(written, tmp_path, "scifact"), "baselines", entry)
    assert re.search(r"baselines\.theirs\.path: .* contains no results of mteb: there is no <task>\.json", found)
    (tmp_path / "theirs/SciFact.json").write_text("{}")
    found = refused(with_datasets(written, tmp_path, "own"), "baselines", entry)
    assert "baselines.theirs: no benchmark has a task of mteb, which kind: beir has with" in found


def test_a_grid_has_a_point_for_each_combination():
    points = [tuple(point.values()) for point in combinations({"window": [5, 10], "sample": [0, 1e-6, 1e-5]})]
    assert points == [(5, 0), (5, 1e-6), (5, 1e-5), (10, 0), (10, 1e-6), (10, 1e-5)]


def test_each_point_is_trained_by_itself_with_the_seeds_of_its_baseline(written):
    baselines = configure(written | {"baselines": GRID}).baselines
    trained = trained_entries(baselines)
    assert list(trained) == ["fasttext", "sif_point-0", "sif_point-1"]
    assert [getattr(entry, "a", None) for entry in trained.values()] == [None, 1e-5, 1e-3]
    assert seeds_of("sif_point-1", baselines) == (1, 2)


REFUSED = """
    baselines.cocite: {kind: random} | models.cocite: that name is a baseline's; give the model another
    baselines.a: {kind: chess} | baselines.a.kind is 'chess'; it must be one of bm25, brought, citeomatic
    baselines.a: {kind: random, k1: 1.0} | baselines.a.k1 does not go with kind: random
    baselines.a: {kind: sif, of: b} | baselines.a.of names 'b', which baselines does not declare
    baselines.a: {kind: sif, of: a} | baselines.a.of: a baseline cannot be derived from itself
    baselines: {a: {kind: sif, of: b}, b: {kind: doc2vec}} | baselines.a.of: the baseline b (doc2vec) has no word
        vectors; those of the kind fasttext have
    baselines: {a: {kind: sif, of: b}, b: {kind: bm25}} | the baseline b (bm25) has no vectors
    baselines.a: {kind: fasttext, min_n: 7} | baselines.a.min_n (7) must be at least 1 and not exceed max_n
    baselines.a: {kind: brought, path: /no/such.jsonl} | baselines.a.path: /no/such.jsonl does not exist
    baselines.a: {kind: brought, path: Makefile} | baselines.a.path: Makefile is none of .parquet
    baselines.a: {kind: brought, path: tests, benchmarks: [x]} | baselines.a.benchmarks names 'x', which benchmarks does
        not declare (declared: holdout
    baselines.a: {kind: sgc, graph: citation} | must have either of
    baselines.a: {kind: sgc, graph: citation, encoder: small, grid: {hops: [1, 2]}} | grid needs of
    baselines.sif.grid: {b: [1]} | baselines.sif.grid names 'b'; it can name a.
    baselines.sif.grid: {of: [fasttext]} | baselines.sif.grid names 'of'
    baselines.sif.grid: {a: [0.001, -1.0]} | baselines.sif.grid: a: -1.0 cannot be trained (Input should be greater
        than 0)
    baselines.sif.grid: {a: []} | baselines.sif.grid.a is [], which should be non-empty
    baselines.sif.grid: {a: [0.001, 0.001]} | which has non-unique elements
"""


@pytest.mark.parametrize(("path", "value", "said"), refusals(REFUSED))
def test_baselines_that_cannot_be_scored_are_refused(written, path, value, said, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert said in refused(written | {"baselines": GRID}, path, value)


def test_the_published_grids_are_valid(shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    trained = trained_entries(configure(yaml.safe_load((ROOT / "experiments/baselines.yaml").read_text())).baselines)
    assert sum(name.startswith("doc2vec_point-") for name in trained) == 27
    assert [entry.a for entry in trained.values() if entry.kind == "sif"] == [1e-5, 3e-5, 1e-4, 3e-4, 1e-3]


def test_the_example_of_the_documentation_embeds(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/new-baseline.md").read_text(), re.DOTALL)
    space: dict = {"__name__": "initials"}
    exec(code, space)  # noqa: S102
    source = documents(tmp_path / "documents.parquet", {"x": ("An apple", "bakes"), "y": (None, None)})
    found = embedded(space["Initials"](kind="initials", letters="abz"), source, tmp_path / "v.parquet")
    assert {name: vector.tolist() for name, vector in found.items()} == {"x": [2, 1, 0], "y": [0, 0, 0]}


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
