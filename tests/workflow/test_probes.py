"""A probe of a set and a grid, on top of a finished run, to its scores and its winners."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from tests.workflow.conftest import Run, edited, planned

from cocite.config.configuration import resolve

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

PROBE = {
    "encoder": "small",
    "benchmark": "holdout",
    "triplets": ["specter"],
    "grids": {"bands": {"of": "cocite", "grid": {"k_positive": [5, 10]}}},
    "losses": ["triplet", {"kind": "mnrl", "scale": 10.0}],
    "seeds": [1, 2],
}
CONFIG = edited(benchmarks__holdout={"kind": "holdout", "selection": 0.4}, probes={"which": PROBE})


@pytest.fixture(scope="module")
def probed(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = finished.copy(tmp_path_factory.mktemp("probed") / "run")
    run.make("probe", config=run.configure(CONFIG, "probed.yaml"))
    return run


def test_a_probe_trains_no_encoder_and_samples_the_sets_of_its_grids(finished):
    jobs = planned(finished, CONFIG, "probe")
    assert not {"train_encoder", "score_model", "search_neighbours", "check_triplets"} & jobs.rules()
    rules = ("sample_triplets", "probe_examples", "score_maps", "embed_papers")
    assert [len(jobs.of(rule)) for rule in rules] == [2, 3, 3, 2]


def test_each_set_and_loss_has_scores_beside_the_vectors_as_they_are(probed):
    scores = pq.read_table(probed.folder / "results/evaluation/probe_which/scores.parquet")
    assert set(scores["triplets"].to_pylist()) == {"specter", "bands-1", "bands-2", "untrained"}
    assert len(scores.filter(pc.field("part") == "selection").filter(pc.field("task") == "all")) == 7
    assert sorted(set(scores["rank"].to_pylist())) == list(range(1, 8))
    queries = scores.filter(pc.field("task") == "cite").group_by("part").aggregate([("queries", "max")]).to_pydict()
    assert all(count > 3 for count in queries["queries_max"])


def test_those_who_choose_are_scored_by_no_model(probed):
    files = [probed.folder / f"results/evaluation/holdout/{name}.parquet" for name in ("selection", "judgements")]
    selection, test = (set(pq.read_table(file)["query"].to_pylist()) for file in files)
    assert selection
    assert test
    assert not selection & test


def test_winners_resolve_in_the_configuration_that_they_came_from(probed):
    written = yaml.safe_load((probed.folder / "results/evaluation/probe_which/winners.yaml").read_text())
    config = {key: entry for key, entry in CONFIG.items() if key != "probes"}
    resolved = resolve(config | {key: {**config[key], **entries} for key, entries in written.items()})
    assert resolved["models"]["winner-1"]["loss"]["kind"] in ("triplet", "mnrl")
    assert len(written["models"]) == 5


def test_another_seed_trains_the_maps_again_and_nothing_else(probed):
    changed = CONFIG | {"probes": {"which": {**PROBE, "seeds": [1, 2, 3]}}}
    jobs = planned(probed, changed, "probe")
    assert jobs.rules() == {"probe_examples", "score_maps", "rank_probe"}
