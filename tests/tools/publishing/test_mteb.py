"""`cocite export-mteb`: the scores of a run as mteb's own code reads them, under names that are right."""

import json

import pytest
import yaml
from tests.configurations import with_changes
from tests.rows import write_rows
from tests.tools.builders import invoke
from tests.workflow.conftest import SMALL

from cocite.config.configuration import resolve
from cocite.core.errors import InputError

FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qrels/dev.tsv")
MEASURED = {"ndcg_cut_10": 71.25, "recip_rank_10": 66.5, "recall_100": 93.125}
HELD_OUT = {"benchmark": "holdout", "task": "cite", "form": "proximity"}


def rows(values=MEASURED, *, queries=300, form="search", evaluation_seed=1, **others):
    row = {"model": "cocite", "seed": 1, "benchmark": "beir", "task": "beir_scifact"}
    row |= {"evaluation_seed": evaluation_seed, "mode": "both", "format": form, "documents": 900, "missing": 0}
    row |= {"scored": queries - 1, "unscored": 1, **dict.fromkeys(("searched", "copies", "unfindable")), **others}
    return [row | {"metric": metric, "value": value} for metric, value in values.items()]


def write_scores(results, *scored):
    """A file of scores for each model, seed and benchmark."""
    files = {}
    for row in (row for of in scored for row in of):
        files.setdefault((row["benchmark"], row["model"], row["seed"]), []).append(row)
    for (benchmark, model, seed), found in files.items():
        path = results / f"evaluation/{benchmark}/scores/small/{model}-{seed}.parquet"
        ordered = sorted(found, key=lambda row: [row[key] for key in ("task", "metric", "evaluation_seed", "mode")])
        write_rows(path, "scores", " ".join(ordered[0]), [tuple(row.values()) for row in ordered])


@pytest.fixture
def results(tmp_path):
    """A run with SciFact, a sample of it, its split dev, a collection of its own and two tasks of held-out papers."""
    for path in (f"{name}/{file}" for name in ("scifact", "my-papers", "arguana") for file in FILES):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    again = {"kind": "beir", "folder": str(tmp_path / "scifact")}
    beir = {"beir": {"kind": "beir", "folder": str(tmp_path)}, "again": again, "dev": again | {"split": "dev"}}
    config = resolve(with_changes(SMALL, benchmarks={"holdout": {"kind": "holdout"}, **beir}))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "configuration.yaml").write_text(yaml.safe_dump(config | {"corpus": {"source": "s2"}}, sort_keys=False))
    configured(folder)
    return folder


def configured(results, **changes):
    """Record that the run was finished with the configuration, and these changes of it."""
    config = with_changes(yaml.safe_load((results / "configuration.yaml").read_text()), **changes)
    (results / "provenance.json").write_text(json.dumps({"configuration": config}))


def export(results, output, *arguments):
    return invoke("export-mteb", "--results", results, "--output", output, *arguments)


def names(folder):
    return sorted(path.stem for path in folder.rglob("*.json") if path.name != "model_meta.json")


def scores_in(folder, name):
    [path] = folder.rglob(f"{name}.json")
    return json.loads(path.read_text())["scores"]


def test_mteb_reads_the_scores_that_the_run_has(results, tmp_path):
    pytest.importorskip("mteb")
    from mteb import ResultCache
    from mteb.models.model_meta import ModelMeta

    write_scores(results, rows(), rows({"ndcg_cut_10": 61.0}, model="bm25", seed=0))
    said = export(results, tmp_path / "out", "--owner", "me")
    assert "2 results" in said.stderr
    found = ResultCache(tmp_path / "out").load_results(validate_and_filter=True, include_remote=False)
    by_model = {(of.model_name, of.model_revision): of.task_results for of in found.model_results}
    assert set(by_model) == {("me/cocite", "seed-1"), ("me/bm25", "seed-0")}
    [result] = by_model["me/cocite", "seed-1"]
    assert (result.task_name, result.mteb_version, result.get_score()) == ("SciFact", None, 0.7125)
    [scores] = result.scores["test"]
    assert (scores["ndcg_at_10"], scores["mrr_at_10"], scores["recall_at_100"]) == (0.7125, 0.665, 0.93125)
    assert by_model["me/bm25", "seed-0"][0].get_score() == 0.61
    text = (tmp_path / "out/results/me__cocite/seed-1/model_meta.json").read_text()
    meta = ModelMeta.model_validate_json_resolved(text)
    assert (meta.name, meta.revision, meta.languages) == ("me/cocite", "seed-1", ["eng-Latn"])


def test_only_tests_of_mteb_are_written_and_the_others_are_named(results, tmp_path):
    pytest.importorskip("mteb")
    import mteb

    write_scores(
        results,
        rows({"map": 40.0, "ndcg": 60.0}, **HELD_OUT),
        rows({"recall_cap_20": 40.0}, benchmark="holdout", task="cite_search", form="corpus-search"),
        rows(),
        rows(task="beir_my_papers"),
        rows(task="beir_arguana", queries=200),  # a sample of its 1,406 queries
        rows({"ndcg_cut_10": 5.0}, benchmark="again"),
        rows({"ndcg_cut_10": 5.0}, benchmark="dev"),
    )
    said = export(results, tmp_path / "out")
    others = ["again/beir_scifact", "beir/beir_arguana", "beir/beir_my_papers", "dev/beir_scifact"]
    named = ", ".join([*others, "holdout/cite", "holdout/cite_search"])
    said_of_others = f"these queries, documents and judgements, or that come twice ({named})"
    assert said_of_others in " ".join(said.stderr.split())
    assert names(tmp_path / "out") == ["SciFact"]
    assert scores_in(tmp_path / "out", "SciFact")["test"][0]["main_score"] == 0.7125
    assert {task.metadata.name for task in mteb.get_tasks()} >= {"SciFact"}


def test_a_value_is_the_mean_over_evaluation_seeds(results, tmp_path):
    write_scores(results, *(rows({"ndcg_cut_10": 70.0 + seed}, evaluation_seed=seed) for seed in (0, 1)))
    export(results, tmp_path / "out")
    assert scores_in(tmp_path / "out", "SciFact")["test"][0]["main_score"] == 0.705


def test_scores_on_generated_documents_are_not_written(results, tmp_path):
    write_scores(results, rows({"map": 40.0}, **HELD_OUT), rows())
    configured(results, corpus={"source": "demo"})
    said = export(results, tmp_path / "out")
    assert "Left out are scores on generated documents (holdout)" in said.stderr
    assert names(tmp_path / "out") == ["SciFact"]


def test_what_is_missing_is_said_before_anything_is_written(results, tmp_path):
    with pytest.raises(InputError, match="has no scores that can be written"):
        export(results, tmp_path / "out")
    write_scores(results, rows({"map": 40.0}, **HELD_OUT))
    with pytest.raises(InputError, match=r"has no scores that can be written \(those on tasks that mteb does not have"):
        export(results, tmp_path / "out")
    with pytest.raises(InputError, match="--owner is 'a/b'; it must be of letters"):
        export(results, tmp_path / "out", "--owner", "a/b")
    (results / "provenance.json").unlink()
    with pytest.raises(InputError, match="finish the run first"):
        export(results, tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        export(results, results)
    assert not (tmp_path / "out").exists()


def test_a_sample_of_the_documents_and_judgements_that_leave_some_out_are_other_tests(results, tmp_path):
    benchmarks = yaml.safe_load((results / "configuration.yaml").read_text())["benchmarks"]
    ordered = {name: benchmarks[name] for name in ("again", "beir", "dev", "holdout")}
    configured(results, benchmarks=ordered, benchmarks__again__missing_documents="drop")
    searched = {"searched": 5183, "copies": 0, "unfindable": 0}
    sampled = rows(model="bm25", seed=0, **searched | {"searched": 900})
    dropped = rows(benchmark="again", **searched)
    fewer = rows(task="beir_arguana", queries=1405, **searched | {"searched": 8674})
    write_scores(results, rows(**searched), sampled, dropped, fewer)
    export(results, tmp_path / "out")
    folder = tmp_path / "out/results"
    assert names(folder / "cocite__cocite") == ["SciFact"]
    assert not (folder / "cocite__bm25").exists()


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("ignore_identical_ids", "auto", ["ArguAna", "SciFact"]),
        ("ignore_identical_ids", False, ["SciFact"]),
        ("ignore_identical_ids", True, ["ArguAna"]),
        ("queries", "short", ["ArguAna", "SciFact"]),
        ("queries", "documents", ["SciFact"]),  # that of `again`
    ],
)
def test_a_query_that_finds_itself_or_is_embedded_as_a_document_makes_another_test(
    results, tmp_path, key, value, found
):
    configured(results, **{f"benchmarks__beir__{key}": value})
    scored = rows() + rows(task="beir_arguana", queries=1406)
    if key == "queries":
        scored += rows(benchmark="again")
    write_scores(results, scored)
    export(results, tmp_path / "out")
    assert names(tmp_path / "out") == found


def test_metrics_have_the_names_that_mteb_has_for_them(results, tmp_path):
    names_here = ("ndcg_cut_10", "map_cut_100", "recall_5", "P_1", "recip_rank_5", "map")
    measured = dict(zip(names_here, (70.0, 60.0, 50.0, 40.0, 30.0, 20.0), strict=True))
    write_scores(results, rows(measured))
    export(results, tmp_path / "out")
    [scores] = scores_in(tmp_path / "out", "SciFact")["test"]
    expected = {"ndcg_at_10": 0.7, "map_at_100": 0.6, "recall_at_5": 0.5, "precision_at_1": 0.4, "mrr_at_5": 0.3}
    assert {name: scores[name] for name in expected} == expected
    assert (scores["map"], scores["main_score"]) == (0.2, 0.7)
