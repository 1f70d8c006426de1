"""Two processes that share a training, without a GPU."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from cocite.tables.files import read_table

SETTINGS = {"epochs": 2, "lr": 0.001, "warmup": 0.0, "evaluations": 2, "batch_size": 8}


def train(encoder, triplets, folder, processes, **settings):
    """Run the command in so many processes, as torchrun would; return their exit statuses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    written = {"output": "model", "curves": "c.parquet", "written-settings": "s.json", "events": "e", "state": "state"}
    options = {name: folder / file for name, file in written.items()}
    options |= {"encoder": encoder, "training": triplets / "training.parquet", "training-seed": 1, "seed": 1}
    options |= {"validation": triplets / "validation.parquet", "threads": 1, "settings": json.dumps(settings)}
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    command = [str(Path(sys.executable).with_name("cocite")), "encoder", "train", *words]
    world = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(command, env={**os.environ, **world, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    return [process.wait() for process in started]


def test_two_processes_learn_what_one_learns(encoder, triplets, tmp_path):
    assert train(encoder, triplets, tmp_path / "two", 2, **SETTINGS) == [0, 0]
    assert train(encoder, triplets, tmp_path / "recomputed", 2, **SETTINGS, mini_batch_size=4) == [0, 0]
    assert train(encoder, triplets, tmp_path / "one", 1, **SETTINGS) == [0]
    start, whole = load_file(encoder / "model.safetensors"), load_file(tmp_path / "one/model/model.safetensors")
    for folder in ("two", "recomputed"):
        learned = load_file(tmp_path / folder / "model/model.safetensors")
        for name, weights in whole.items():
            # Adam makes whole steps of gradients that are rounding alone, as those of biases that change no
            # difference of two vectors; so biases are left out, and weights must have moved together as a whole.
            if name.endswith("weight"):
                moved, apart = np.linalg.norm(weights - start[name]), np.linalg.norm(learned[name] - weights)
                assert apart <= 0.02 * moved, f"{name} of {folder}"
    curves = [
        [row["value"] for row in read_table(tmp_path / folder / "c.parquet", "training_curves").to_pylist()]
        for folder in ("one", "two", "recomputed")
    ]
    assert curves[1] == pytest.approx(curves[0], rel=1e-3)
    assert curves[2] == pytest.approx(curves[0], rel=1e-3)
