"""Baselines that stand on each other, on a graph, on an encoder and on a set of triplets, in a run."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.workflow.conftest import edited, planned

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

BASELINES = {
    "fasttext": {"kind": "fasttext", "dimension": 16, "epochs": 1},
    "sif": {"kind": "sif", "of": "fasttext"},
    "sgc": {"kind": "sgc", "of": "sif", "graph": "citation", "grid": {"hops": [1, 3]}},
    "sgc-small": {"kind": "sgc", "encoder": "small", "graph": "citation"},
    "citeomatic": {"kind": "citeomatic", "triplets": "specter", "epochs": 2, "seeds": [1, 2]},
}
RUNS = {"fasttext-1", "sif-1", "sgc-1", "sgc-small-0", "citeomatic-1", "citeomatic-2"}


def test_baselines_are_trained_and_scored_beside_models_that_are_left_alone(finished, tmp_path):
    run = finished.copy(tmp_path / "baselines")
    jobs = planned(run, edited(baselines=BASELINES))
    assert not {"train_encoder", "embed_own_documents", "score_model", "sample_triplets"} & jobs.rules()
    scores = [file for file in jobs.outputs("score_baseline") if "/scores/" in file]
    assert {Path(file).stem for file in scores} == RUNS
    of_rankings = sorted(file for file in scores if "/holdout/" in file)
    run.make(*of_rankings, config=run.folder / "edited.yaml")
    for file in of_rankings:
        values = pq.read_table(run.folder / file)["value"].to_numpy()
        assert ((values >= 0) & (values <= 100)).all()
    assert pq.read_metadata(run.folder / "results/baselines/sgc/seed-1/grid.parquet").num_rows == 2
