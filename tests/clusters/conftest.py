"""The run that those on clusters and storages are compared with."""

from pathlib import Path

import pytest
from tests.configurations import with_changes
from tests.slurm import conftest as slurm
from tests.slurm.conftest import CONFIGURATION, Ended, command, ending, start

NEAR = {"triplets": "near", "encoder": "small", "lr": 1.0e-3, "epochs": 8, "validations": 8}


def configured(folder: Path) -> Path:
    return slurm.configured(folder, with_changes(CONFIGURATION, models__near=NEAR))


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The run on this machine."""
    folder = configured(tmp_path_factory.mktemp("calm"))
    ended = ending(folder, start([*command(folder), "--cores", "2"], folder))
    assert ended.status == 0, ended.log[-5000:]
    return ended
