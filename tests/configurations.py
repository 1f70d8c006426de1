"""Changed configurations, for tests of what is refused."""

import copy

import pytest

from cocite.config.configuration import resolve
from cocite.core.errors import InputError


def refused(written, path, value):
    """The message with which a configuration is refused whose key at `path` has this value."""
    changed = copy.deepcopy(written)
    *parents, last = path.split(".")
    entry = changed
    for name in parents:
        entry = entry[name]
    entry[last] = value
    with pytest.raises(InputError) as error:
        resolve(changed)
    return str(error.value)
