"""What the linear maps of a probe are called in the file that holds them."""

import json
from typing import NamedTuple


class Trained(NamedTuple):
    """How a map was trained."""

    loss: str
    """The loss with its settings."""
    batch_size: int
    """Examples of a batch."""
    seed: int


def name_of_map(trained: Trained) -> str:
    """The name of a map in its file."""
    return json.dumps(trained)


def training_of(name: str) -> Trained:
    """How the map of this name was trained."""
    return Trained(*json.loads(name))
