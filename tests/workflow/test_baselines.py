"""Baselines that stand on each other, on a graph, on an encoder and on a set of triplets, in a run."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.workflow.conftest import Run, edited, planned

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

BASELINES = {
    "fasttext": {"kind": "fasttext", "dimension": 16, "parts": 1000, "epochs": 1},
    "sif": {"kind": "sif", "of": "fasttext"},
    "sgc": {"kind": "sgc", "of": "sif", "graph": "citation", "grid": {"hops": [1, 3]}},
    "sgc-small": {"kind": "sgc", "encoder": "small", "graph": "citation"},
    "citeomatic": {"kind": "citeomatic", "triplets": "specter", "epochs": 2, "seeds": [1, 2]},
}


def test_baselines_are_trained_and_scored_beside_models_that_are_left_alone(finished, tmp_path):
    run = Run(folder=shutil.copytree(finished.folder, tmp_path / "baselines"))
    config = edited(baselines=BASELINES)
    jobs = planned(run, config)
    assert not {"train_encoder", "embed_own_documents", "score_model", "sample_triplets"} & jobs.rules()
    scores = [file for file in jobs.outputs("score_baseline") if "/scores/" in file]
    assert {Path(file).stem for file in scores} == {
        "fasttext-1",
        "sif-1",
        "sgc-1",
        "sgc-small-0",
        "citeomatic-1",
        "citeomatic-2",
    }

    of_rankings = sorted(file for file in scores if "/holdout/" in file)
    result = run.snakemake("--show-failed-logs", *of_rankings, config=run.folder / "edited.yaml")
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    for file in of_rankings:
        values = pq.read_table(run.folder / file)["value"].to_numpy()
        assert ((values >= 0) & (values <= 100)).all()
    grid = pq.read_table(run.folder / "results/baselines/sgc/seed-1/grid.parquet")
    assert len(grid) == 2
