"""What is added to a finished run: baselines, probes and an index, made and scored beside models that are left alone.

A task that cannot be scored takes nothing with it and is named at the top of the report; broken files are mended.
"""

import csv
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from tests.workflow.conftest import Run, edited, planned
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import resolve
from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table, write_table

pytestmark = pytest.mark.end_to_end

BASELINES = {
    "fasttext": {"kind": "fasttext", "dimension": 16, "epochs": 1},
    "sif": {"kind": "sif", "of": "fasttext"},
    "sgc": {"kind": "sgc", "of": "sif", "graph": "citation", "grid": {"hops": [1, 3]}},
    "sgc-small": {"kind": "sgc", "encoder": "small", "graph": "citation"},
    "citeomatic": {"kind": "citeomatic", "triplets": "specter", "epochs": 2, "seeds": [1, 2]},
}
PROBE = {
    "encoder": "small",
    "benchmark": "holdout",
    "triplets": ["specter"],
    "grids": {"bands": {"of": "cocite", "grid": {"k_positive": [5, 10]}}},
    "losses": ["triplet", {"kind": "mnrl", "scale": 10.0}],
    "seeds": [1, 2],
}
PROBED = edited(benchmarks__holdout={"kind": "holdout", "selection": 0.4}, probes={"which": PROBE})
INDEXES = {
    "found": {"models": ["cocite", "small"], "graph": "citation"},
    "raw": {"of": "found", "rank": {"small": 1}, "known": "more"},
}
SEARCHED = {"holdout": {"kind": "holdout", "search": True, "selection": 0.3}}
INDEXED = edited(indexes=INDEXES, benchmarks=SEARCHED, models__cocite__seeds=[1, 2])


@pytest.mark.long
def test_baselines_are_trained_and_scored_beside_models_that_are_left_alone(finished, tmp_path):
    run = finished.copy(tmp_path / "baselines")
    jobs = planned(run, edited(baselines=BASELINES))
    assert not {"train_encoder", "embed_own_documents", "score_model", "sample_triplets"} & jobs.rules()
    scores = [file for file in jobs.outputs("score_baseline") if "/scores/" in file]
    runs = {"fasttext-1", "sif-1", "sgc-1", "sgc-small-0", "citeomatic-1", "citeomatic-2"}
    assert {Path(file).stem for file in scores} == runs
    of_rankings = sorted(file for file in scores if "/holdout/" in file)
    run.make(*of_rankings, config=run.folder / "edited.yaml")
    for file in of_rankings:
        values = pq.read_table(run.folder / file)["value"].to_numpy()
        assert ((values >= 0) & (values <= 100)).all()
    assert pq.read_metadata(run.folder / "results/baselines/sgc/seed-1/grid.parquet").num_rows == 2


@pytest.fixture(scope="module")
def probed(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of the finished run with a probe of a set and a grid, to its scores and its winners."""
    run = finished.copy(tmp_path_factory.mktemp("probed") / "run")
    run.make("probe", config=run.configure(PROBED, "probed.yaml"))
    return run


@pytest.mark.long
def test_a_probe_trains_no_encoder_and_samples_the_sets_of_its_grids(finished):
    jobs = planned(finished, PROBED, "probe")
    assert not {"train_encoder", "score_model", "search_neighbours", "check_triplets"} & jobs.rules()
    rules = ("sample_triplets", "probe_examples", "score_maps", "embed_papers")
    assert [len(jobs.of(rule)) for rule in rules] == [2, 3, 3, 2]


@pytest.mark.long
def test_each_set_and_loss_has_scores_beside_the_vectors_as_they_are(probed):
    scores = pq.read_table(probed.folder / "results/evaluation/probe_which/scores.parquet")
    assert set(scores["triplets"].to_pylist()) == {"specter", "bands-1", "bands-2", "untrained"}
    assert len(scores.filter(pc.field("part") == "selection").filter(pc.field("task") == "all")) == 7
    assert sorted(set(scores["rank"].to_pylist())) == list(range(1, 8))
    queries = scores.filter(pc.field("task") == "cite").group_by("part").aggregate([("queries", "max")]).to_pydict()
    assert all(count > 3 for count in queries["queries_max"])


@pytest.mark.long
def test_those_who_choose_are_scored_by_no_model(probed):
    files = [probed.folder / f"results/evaluation/holdout/{name}.parquet" for name in ("selection", "judgements")]
    selection, test = (set(pq.read_table(file)["query"].to_pylist()) for file in files)
    assert selection
    assert test
    assert not selection & test


@pytest.mark.long
def test_winners_resolve_in_the_configuration_that_they_came_from(probed):
    written = yaml.safe_load((probed.folder / "results/evaluation/probe_which/winners.yaml").read_text())
    config = {key: entry for key, entry in PROBED.items() if key != "probes"}
    resolved = resolve(config | {key: {**config[key], **entries} for key, entries in written.items()})
    assert resolved["models"]["winner-1"]["loss"]["kind"] in ("triplet", "mnrl")
    assert len(written["models"]) == 5


@pytest.mark.long
def test_another_seed_trains_the_maps_of_a_probe_again_and_nothing_else(probed):
    changed = PROBED | {"probes": {"which": {**PROBE, "seeds": [1, 2, 3]}}}
    assert planned(probed, changed, "probe").rules() == {"probe_examples", "score_maps", "rank_probe"}


def test_an_edit_of_how_an_index_ranks_finds_and_embeds_nothing_again(run):
    jobs = planned(run, INDEXED)
    assert not jobs.of("embed_own_documents")
    assert len(jobs.of("select_vectors", model="cocite")) == 2  # of two seeds
    assert {job.wildcards["seed"] for job in jobs.of("find_candidates", index="found")} == {"1", "2"}
    assert not jobs.of("find_candidates", index="raw")
    vectors = [path for path in jobs.of("find_candidates", seed="2")[0].inputs if "/papers/" in path]
    folders = ["corpus", "encoder/cocite/seed-2", "encoder/untrained_small/seed-0"]
    assert vectors == [f"results/{folder}/papers/{bucket}.parquet" for folder in folders for bucket in (0, 1)]


@pytest.mark.long
def test_an_index_is_scored_like_a_model_and_in_the_report(finished, tmp_path):
    run = finished.copy(tmp_path / "retrieval")
    run.make("all", config=run.configure(INDEXED, "edited.yaml"))
    evaluation, found = run.folder / "results/evaluation/holdout", run.folder / "results/retrieval/found/seed-2/holdout"
    tasks = set()
    for suite in ("small", "search"):
        tasks |= {*read_table(evaluation / f"scores/{suite}/found-2.parquet", "scores")["task"].to_pylist()}
    assert tasks == {f"{side}{kind}" for side in ("cite", "cocite") for kind in ("", "_matched", "_search")}
    assert len(read_json(found / "weights.json")["weights"]) == 2 + 7
    assert pq.read_metadata(evaluation / "by_citations/raw-1.parquet").num_rows
    page = (run.folder / "results/report/index.html").read_text(encoding="utf-8")
    assert page.count(">found<") >= 2  # rows of two tables
    assert page.count(">raw<") >= 2
    # The candidates have cosines in the order of the models.
    swapped = {**INDEXES, "found": {**INDEXES["found"], "models": ["small", "cocite"]}}
    assert planned(run, INDEXED | {"indexes": swapped}).of("find_candidates", index="found")


@pytest.mark.long
def test_a_model_that_lost_embeddings_is_named_in_the_report_and_the_others_are_scored(finished, tmp_path):
    run = finished.copy(tmp_path / "lost")
    results = run.folder / "results"
    embeddings = results / "encoder/cocite/seed-1/embeddings/scirepeval.parquet"
    labels = read_table(results / "evaluation/scirepeval/labels.parquet", "labels").to_pylist()
    lost = {row["document"] for row in labels if row["task"] == "pub_year" and row["split"] == "train"}
    rows = read_table(embeddings, "document_embeddings")
    kept = rows.filter(pa.array([document not in lost for document in rows["document"].to_pylist()]))
    write_table(embeddings, "document_embeddings", kept)
    run.make("results/report/index.html")
    with (results / "report/tables/failures.csv").open() as file:
        [failure] = [row for row in csv.DictReader(file) if row["task"].startswith("year of publication")]
    assert failure["model"] == "cocite"
    assert f"{len(lost)} of" in failure["reason"]
    page = (results / "report/index.html").read_text()
    assert page.index("Not scored.") < page.index("All models on all benchmarks.")
    scores = read_table(results / "evaluation/scirepeval/scores/small", "scores").to_pylist()
    assert {row["model"] for row in scores if row["task"] == "pub_year"} == {"specter", "untrained_small", "random"}


@pytest.mark.long
def test_what_was_broken_is_made_again_with_all_that_depends_on_it(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "spoilt")
    shard = run.folder / "results/triplets/cocite/documents/0.parquet"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    (run.folder / "results/.state/run.json").unlink()  # it would say that this is a copy of another run
    monkeypatch.chdir(run.folder)
    targets = shlex.split(CliRunner().invoke(app, ["check", "--remove"]).output.splitlines()[-1])[3:]
    assert targets == ["results/triplets/cocite/documents"]
    run.make(*targets)
    assert shard.read_bytes() == whole
    assert len(planned(run).of("train_encoder")) == 1
