"""A training that is killed at any moment and run again ends as if nothing had happened."""

import signal
from dataclasses import replace
from importlib import metadata

import pytest
from tests.encoder.building import assert_all_alike, cut_at_random, run_killed, trained
from tests.spoiling import SPOILS

from cocite.core.atomic import read_json, remove_marks
from cocite.core.tables.files import read_table
from cocite.encoder import card, trainer
from cocite.encoder.results import BEST, CHECKPOINT


@pytest.fixture(scope="module")
def killed(with_dropout, examples, tmp_path_factory):
    """Folder of trainings that were killed and run again, and how their processes ended."""
    folder = tmp_path_factory.mktemp("killed")
    run_killed(with_dropout, examples, folder)
    return folder


def test_every_training_was_killed_or_stopped_and_then_ran_through(killed):
    endings = read_json(killed / "endings.json")
    assert endings.pop("whole") == [0]
    assert endings.pop("sent-sigterm") == [75, 0]
    assert len(endings) == 12
    assert {moment: ends for moment, ends in endings.items() if ends != [-signal.SIGKILL, 0]} == {}


def test_weights_and_curves_are_bit_identical_wherever_it_was_killed(killed):
    assert_all_alike(killed)
    assert [path for path in killed.rglob("*") if path.name == "state"] == []


@pytest.mark.long
def test_weights_and_curves_are_bit_identical_after_twenty_random_cuts(with_dropout, inputs, tmp_path):
    cut_at_random(tmp_path, replace(inputs, encoder=with_dropout), 20)


@pytest.mark.long
def test_maps_of_aspects_are_bit_identical_after_twenty_random_cuts(aspects, with_dropout, tmp_path):
    terms = [{"loss": "supcon", "space": space, "weight": 0.5} for space in ("aspects", "encoder")]
    more = "model/aspects/background/2_Dense/model.safetensors"
    with_drawing = replace(aspects, encoder=with_dropout)
    cut_at_random(tmp_path, with_drawing, 20, more, objectives=terms, accumulation=2)


@pytest.mark.parametrize(("mixing", "cuts"), [("in-batch", 2), pytest.param("alternating", 20, marks=pytest.mark.long)])
def test_several_objectives_are_bit_identical_after_kills(mixing, cuts, several, with_dropout, tmp_path):
    objectives = [{"triplets": name, "loss": "mnrl"} for name in ("topics", "crops")]
    with_drawing = replace(several, encoder=with_dropout)
    cut_at_random(tmp_path, with_drawing, cuts, objectives=objectives, mixing=mixing)


def test_the_curves_have_every_step_and_validation_once(killed):
    curves = read_table(killed / "whole" / "curves.parquet", "training_curves").to_pylist()
    steps = {
        metric: [row["step"] for row in curves if row["metric"] == metric]
        for metric in ("training_loss", "validation_loss")
    }
    # 22 triplets in batches of 4 are 6 batches, 3 steps an epoch, 9 in all; quarters of 9 rounded up.
    assert steps == {"training_loss": list(range(1, 10)), "validation_loss": [3, 5, 7, 9]}


def test_dropout_was_at_work(killed, inputs, tmp_path):
    settings = {"loss": "infonce", "epochs": 3, "accumulation": 2, "lr": 1e-3, "warmup": 0.2, "evaluations": 4}
    trained(tmp_path, inputs, training_seed=2, **settings)
    assert (tmp_path / "curves.parquet").read_bytes() != (killed / "whole" / "curves.parquet").read_bytes()


@pytest.fixture
def stopped(inputs, tmp_path, monkeypatch):
    """A function that trains and, unless `stop` is false, stops where the third validation would be."""

    def run(lr: float, *, stop: bool) -> str:
        measured, measure = [], trainer.measure

        def counted(*arguments, **keywords):
            measured.append(1)
            if stop and len(measured) == 3:
                raise KeyboardInterrupt
            return measure(*arguments, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(trainer, "measure", counted)
            trained(tmp_path, inputs, epochs=2, lr=lr)
        return (tmp_path / "curves.parquet").read_bytes()

    return run


def test_other_settings_start_afresh(stopped, capfd):
    expected = stopped(1e-3, stop=False)
    with pytest.raises(KeyboardInterrupt):
        stopped(5e-3, stop=True)
    capfd.readouterr()
    assert stopped(1e-3, stop=False) == expected
    assert "Going on" not in capfd.readouterr().err


def test_the_same_settings_go_on(stopped, capfd):
    with pytest.raises(KeyboardInterrupt):
        stopped(1e-3, stop=True)
    capfd.readouterr()
    stopped(1e-3, stop=False)
    assert "Going on after step 6 of 12." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        *((CHECKPOINT, spoil) for spoil in ("changed", "cut", "mark gone")),
        *((BEST, spoil) for spoil in ("changed", "gone", "gone with its mark")),
        ("fingerprint.json", "cut"),
    ],
)
def test_a_spoilt_checkpoint_is_named_and_the_training_starts_afresh(stopped, tmp_path, capfd, name, spoil):
    expected = stopped(1e-3, stop=False), (tmp_path / "model/model.safetensors").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        stopped(1e-3, stop=True)
    path = tmp_path / "state" / name
    if spoil in SPOILS:
        SPOILS[spoil](path)
    else:
        remove_marks(path)
        if spoil == "gone with its mark":
            path.unlink()
    capfd.readouterr()
    assert (stopped(1e-3, stop=False), (tmp_path / "model/model.safetensors").read_bytes()) == expected
    said = capfd.readouterr().err
    assert f"{path}: " in said
    assert "Going on" not in said
    assert not (tmp_path / "state.spoilt").exists()


def test_a_checkpoint_of_another_version_of_a_library_is_not_gone_on_from(stopped, capfd, monkeypatch):
    expected = stopped(1e-3, stop=False)
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "library_versions", lambda: {**card.library_versions(), "torch": "2.0.0"})
        with pytest.raises(KeyboardInterrupt):
            stopped(1e-3, stop=True)
    capfd.readouterr()
    assert stopped(1e-3, stop=False) == expected
    said = capfd.readouterr().err
    assert "versions changed since the training that was killed; starting afresh" in said
    assert "Going on" not in said


@pytest.mark.parametrize("library", ["torch", "transformers", "tokenizers", "numpy"])
def test_the_versions_that_a_training_depends_on_are_those_installed(library):
    assert card.library_versions()[library] == metadata.version(library)
