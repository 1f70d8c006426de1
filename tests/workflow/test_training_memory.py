"""The memory that a training asks for is what it takes, and somewhat more."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.made_triplets import write_encoder, write_triplets
from tests.benchmarks.measuring import cocite
from tests.benchmarks.training_memory import write_start
from tests.examples import files_in
from tests.triplets.blocks import write_vectors

from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.plan.memory import check_weights, gpu_memory, mini_batch_tokens, training_memory

MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1.024)
"""
"""Print the most memory, kB, that a command takes. A process starts with the peak of the one that starts it; so this
stands between the command and the tests."""


def write_sets(folder: Path, queries: dict[str, int], **sizes: int) -> None:
    """An encoder of two layers, and sets of so many queries with texts as long as those of papers."""
    write_encoder(folder / "encoder", layers=2, hidden=128, heads=4, **sizes)
    for seed, (name, count) in enumerate(queries.items()):
        write_triplets(folder / name, count, seed, folder / "encoder")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    write_sets(folder, {"training": 13, "validation": 3})
    return folder


def sets_in(folder: Path) -> list[tuple[Path, Path]]:
    """The sets that a training reads."""
    return [(files_in(folder / "training").table, files_in(folder / "training").tokens)]


@pytest.fixture(scope="module")
def asked(folder):
    """A function that gives the memory that a training with some settings asks for, MB."""

    def memory(*, encoder=folder / "encoder", processes=1, on_gpu=False, teachers=(), **settings):
        how = {"processes": processes, "on_gpu": on_gpu, "teachers": teachers}
        return training_memory(encoder, sets_in(folder), TrainingSettings(**settings), **how)

    return memory


def peak_of_training(folder: Path, output: Path, memory_mb: int = 100_000, **settings) -> float:
    """The most memory that a training of two steps takes, MB, in the precision that takes more."""
    sets = [path for name in ("training", "validation") for path in vars(files_in(folder / name)).values()]
    written = {"output": "model", "curves": "curves.parquet", "written_settings": "settings.json"}
    written |= {"events": "tensorboard", "state": "state"}
    options = {"encoder": folder / "encoder", "settings": {**settings, "max_steps": 2}, "precision": "float32"}
    options |= {"memory_mb": memory_mb, "seed": 1, "training_seed": 1, "threads": 1}
    options |= {name: output / file for name, file in written.items()}
    command = [sys.executable, "-c", MEASURED, *cocite("encoder", "train", *sets, **options)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1000


MASKED = {"objectives": [{"loss": "triplet"}, {"loss": "mlm"}]}


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 32},
        pytest.param({"batch_size": 64, "mini_batch_tokens": 2048}, marks=pytest.mark.long),
        pytest.param({"batch_size": 32, **MASKED}, marks=pytest.mark.long),
        pytest.param({"batch_size": 64, "mini_batch_tokens": 2048, **MASKED}, marks=pytest.mark.long),
    ],
)
def test_a_training_takes_no_more_than_it_asks_for_and_at_least_half(folder, asked, tmp_path, settings):
    peak = peak_of_training(folder, tmp_path, **settings)
    assert peak < asked(**settings) < 2 * peak


def test_it_grows_with_the_batch_but_for_mini_batches_and_on_a_gpu_and_processes_have_weights_of_their_own(asked):
    assert asked(batch_size=64) > asked(batch_size=32) + 500
    assert asked(batch_size=4096, mini_batch_tokens=2048) == asked(batch_size=64, mini_batch_tokens=2048)
    assert asked(on_gpu=True, batch_size=4096) == asked(on_gpu=True, batch_size=8)
    assert 3 * 700 < asked(processes=4) - asked() < 4 * asked()  # which share the batch


@pytest.mark.long
@pytest.mark.parametrize(("dimension", "batch_size"), [(1024, 1024), (256, 4096)])
def test_a_training_of_a_static_encoder_takes_no_more_than_it_asks_for(tmp_path, dimension, batch_size):
    write_start(tmp_path / "encoder", "static", 512, dimension)
    for seed, (name, queries) in enumerate({"training": batch_size // 2, "validation": 3}.items()):
        write_triplets(tmp_path / name, queries, seed, tmp_path / "encoder")
    settings = {"loss": "mnrl", "batch_size": batch_size}
    asked = training_memory(tmp_path / "encoder", sets_in(tmp_path), TrainingSettings(**settings))
    peak = peak_of_training(tmp_path, tmp_path / "output", **settings)
    assert peak < asked < 2 * peak


@pytest.mark.long
@pytest.mark.parametrize("loss", ["mnrl", "infonce"])
def test_a_batch_of_4096_triplets_takes_the_memory_of_64(tmp_path, loss):
    folder, settings = tmp_path / "made", {"loss": loss, "mini_batch_tokens": 2048}
    write_sets(folder, {"training": 820, "validation": 3}, length=32)  # 4,100 triplets of short texts
    few = peak_of_training(folder, tmp_path / "few", batch_size=64, **settings)
    # With the same settings, the peak of infonce varies by a tenth from run to run, with how soon memory goes back.
    most = min(peak_of_training(folder, tmp_path / f"most-{run}", batch_size=4096, **settings) for run in range(2))
    assert most < 1.15 * few


def test_the_vectors_of_a_teacher_count_by_documents_and_dimensions(folder, tmp_path, asked):
    teacher = write_vectors(tmp_path / "t.parquet", dict.fromkeys((0, 1), [0.0] * 4096))
    documents = len(np.load(files_in(folder / "training").tokens / "lengths.npy"))
    more = asked(teachers=[teacher]) - asked()
    assert more == pytest.approx(1.25 * documents * 4096 * 4 / 1e6, abs=1)


def test_on_a_gpu_mini_batches_are_chosen_by_its_memory_and_padding_counts(folder):
    sets, settings = sets_in(folder), TrainingSettings(batch_size=4096)

    def needed(tokens, number_format="bfloat16"):
        some = settings.model_copy(update={"mini_batch_tokens": tokens})
        return gpu_memory(folder / "encoder", sets, some, number_format)

    memory = needed(6400)
    how = {"estimate": gpu_memory, "number_format": "bfloat16"}
    chosen = mini_batch_tokens(memory, folder / "encoder", sets, settings, **how)
    assert chosen == (6400, memory)
    assert needed("all") > needed(12_800) > memory  # the tokens that there are, without padding, are 15,000
    assert needed(6400, "float32") > memory


@pytest.mark.long
def test_a_training_chooses_mini_batches_by_its_memory_and_keeps_to_it(folder, tmp_path, asked):
    needs = asked(batch_size=64)
    memory = asked(batch_size=64, mini_batch_tokens=4096) + 100
    peak = peak_of_training(folder, tmp_path / "cut", batch_size=64, memory_mb=memory)
    chosen = read_json(tmp_path / "cut/settings.json")["settings"]["mini_batch_tokens"]
    assert peak < memory < needs
    needed, more = (asked(batch_size=64, mini_batch_tokens=tokens) for tokens in (chosen, chosen + 64))
    assert needed <= memory < more


def test_all_tokens_are_in_memory_where_they_fit_and_one_document_at_least(asked, folder):
    def chosen(memory):
        return mini_batch_tokens(memory, folder / "encoder", sets_in(folder), TrainingSettings(batch_size=32))[0]

    assert chosen(asked(batch_size=32)) is None
    longest = int(np.load(files_in(folder / "training").tokens / "lengths.npy").max())
    least = asked(batch_size=32, mini_batch_tokens=1)
    assert chosen(least - 1) == longest
    assert chosen(least + 60) > longest


def test_a_base_that_does_not_fit_is_refused_with_what_it_needs(folder, asked):
    for trainable in ("all", "lora"):
        needed, settings = asked(on_gpu=True, trainable=trainable) - 1800, TrainingSettings(trainable=trainable)
        check_weights(folder / "encoder", settings, needed, 1)
        message = rf"a training needs {needed} MB for its weights, .* and has {needed - 1} MB"
        with pytest.raises(InputError, match=message):
            check_weights(folder / "encoder", settings, needed - 1, 1)
    assert asked(trainable="lora") < asked()


@pytest.mark.parametrize("names", [("d_model", "num_layers", "num_heads"), ("dim", "n_layers", "n_heads")])
def test_sizes_count_by_whatever_name_an_architecture_has_for_them(folder, tmp_path, names, asked):
    other = shutil.copytree(folder / "encoder", tmp_path / "encoder")
    sizes = read_json(other / "config.json")
    usual = ("hidden_size", "num_hidden_layers", "num_attention_heads")
    (other / "config.json").write_text(json.dumps(dict(zip(names, map(sizes.pop, usual), strict=True)) | sizes))
    assert asked(encoder=other) == asked()
