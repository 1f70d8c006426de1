"""Changed configurations, for tests of what is refused."""

import copy
import re
from textwrap import dedent
from typing import Any

import pytest
import yaml

from cocite.config.configuration import Configuration, configure, recorded_configuration, resolve
from cocite.core.errors import InputError
from cocite.plan.plan import Plan


def with_changes(configuration, **entries):
    """A configuration with some keys changed; `models__cocite__loss=…` is models.cocite.loss."""
    changed = copy.deepcopy(configuration)
    for path, value in entries.items():
        *parents, last = path.split("__")
        entry = changed
        for name in parents:
            entry = entry[name]
        entry[last] = value
    return changed


def refused(written, path, value):
    """The message with which a configuration is refused that has this value at a path, or several by their paths."""
    changes = value if path == "several" else {path: value}
    with pytest.raises(InputError) as error:
        resolve(with_changes(written, **{key.replace(".", "__"): each for key, each in changes.items()}))
    return str(error.value)


def plan_of(with_gpu=False, **sections):
    """The plan of a small configuration of a generated corpus with these sections."""
    usual = {"release": "2026-01-06", "corpus": {"source": "demo"}, "baselines": {}, "maps": {}}
    return Plan(configure(usual | sections), with_gpu=with_gpu)


def refusals(table: str) -> list[tuple[str, Any, str]]:
    """The rows of a table: the path of a key, its value in YAML, and behind a bar what is said of it.

    A line that is indented further goes on with the one above.
    """
    rows = []
    for line in re.sub(r"\n +", " ", dedent(table).strip()).splitlines():
        path, _, rest = line.partition(": ")
        value, _, sentence = rest.rpartition(" | ")
        rows.append((path, yaml.safe_load(value), sentence))
    return rows


LEAST = {
    "corpus": {"source": "demo"},
    "graphs": {"signal": "citation"},
    "embeddings": {"graph": "g"},
    "triplets": {"sampler": "cropping"},
    "encoders": {"build": {}},
    "benchmarks": {"kind": "holdout"},
    "baselines": {"kind": "random"},
    "maps": {"benchmark": "b"},
}
"""The least that entries of a section have."""
IN_FOLDERS = ("scirepeval", "scidocs", "mdcr", "s2and", "csfcube", "doris_mae", "litsearch", "beir")
OF_KINDS = {
    **{("benchmarks", kind): {"folder": "."} for kind in IN_FOLDERS},
    **{("baselines", kind): {"path": "."} for kind in ("reported", "brought")},
    **{("triplets", sampler): {"graph": "g"} for sampler in ("citations", "aspects", "undirected")},
    ("triplets", "neighbours"): {"embedding": "n", "k_positive": 10, "k_negative": 80},
    ("triplets", "oracle"): {"benchmark": "b"},
    ("benchmarks", "screening"): {"labels": ".", "columns": {"paper": "id", "included": "label"}},
    ("corpus", "directory"): {"path": "."},
}


def recorded(configuration):
    """A configuration as a run recorded it, not checked for what its names refer to, with the least that is needed."""
    if isinstance(configuration, Configuration):
        return configuration

    def completed(section, entry):
        if section == "encoders" and entry.keys() & {"model", "package"}:
            return entry
        entry = LEAST[section] | entry
        least = OF_KINDS.get((section, entry.get({"triplets": "sampler", "corpus": "source"}.get(section, "kind"))), {})
        has_bands = any(key.startswith(("k_", "distance_")) for key in entry)
        return entry if entry.keys() & {"hub", "datasets"} or has_bands else least | entry

    def model(entry):
        terms = [{"loss": "mnrl"} | term for term in entry.get("objectives", ())]
        least = {} if "from" in entry else {"encoder": "e"}
        least |= {"objectives": terms} if terms else {"loss": "mnrl"}
        return (
            least
            | ({} if any("triplets" in term for term in terms) else {"triplets": "t"})
            | entry
            | ({"objectives": terms} if terms else {})
        )

    whole = {"release": "2026-01-06", "maps": {}} | configuration
    whole["corpus"] = completed("corpus", whole.get("corpus", {}))
    for section in whole.keys() & (LEAST.keys() - {"corpus"}):
        whole[section] = {name: completed(section, entry) for name, entry in whole[section].items()}
    whole["models"] = {name: model(entry) for name, entry in whole.get("models", {}).items()}
    return recorded_configuration(whole)
