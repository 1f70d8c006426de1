"""What a schema cannot say of a configuration: names that must be declared, values that are impossible together.

Each check takes the configuration with its defaults and raises `InputError`, one sentence that names the key.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cocite.config.benchmarks import BENCHMARKS, is_generated
from cocite.config.consistent_corpus import check_corpus, largest_index
from cocite.config.consistent_triplets import check_triplets, parts_of_triplets
from cocite.config.folders import folders_of, in_the_way
from cocite.config.runs import BASELINES
from cocite.ground.errors import InputError, surroundings

OMISSIONS = "omissions"
NAMED_FOLDERS = ("graphs", "embeddings", "triplets", "models", "benchmarks")

Configuration = dict[str, Any]


def inconsistencies(config: Configuration) -> list[str]:
    """A sentence on what does not fit together: for each check, the first thing that it finds."""
    return _faults(CHECKS, config) or _faults(CHECKS_OF_REFERENCES, config)


def _faults(checks: Iterable[Callable[[Configuration], None]], config: Configuration) -> list[str]:
    faults = []
    for check in checks:
        try:
            check(config)
        except InputError as error:
            faults.append(str(error))
        except OSError as error:
            told = surroundings(error)
            if told is None:
                raise
            faults.append(told)
    return faults


def _check_queries(config: Configuration) -> None:
    queries = config["queries"]
    if queries["from"] == "file":
        if "path" not in queries:
            raise InputError("Configuration key queries.path is missing; queries from a file need it.")
        if not Path(queries["path"]).is_file():
            raise InputError(f"Configuration key queries.path: the file {queries['path']} does not exist.")
    if queries["from"] == "triplets":
        _check_origin("queries", "dataset", queries)
    if queries.get("min_year", 0) > queries.get("max_year", math.inf):
        raise InputError(
            f"Configuration key queries.min_year ({queries['min_year']}) must not be after max_year "
            f"({queries['max_year']})."
        )


def _check_exclude(config: Configuration) -> None:
    declared = config["benchmarks"]
    for number, entry in enumerate(config["exclude"]):
        key = f"Configuration key exclude[{number}]"
        if entry in declared and declared[entry]["kind"] == "holdout":
            raise InputError(f"{key}: the papers of the benchmark {entry} are held out already.")
        if entry not in declared and entry.lower().endswith(".parquet"):
            raise InputError(f"{key}: {entry} is a table; the papers to exclude stand in a text file, an id a line.")
        if entry not in declared and not Path(entry).is_file():
            raise InputError(
                f"{key}: {entry} is neither a file nor a benchmark (declared: {', '.join(declared) or 'none'})."
            )


def _check_names(config: Configuration) -> None:
    references = [
        *(
            (f"graphs.{name}.of", part, "graphs")
            for name, entry in config["graphs"].items()
            for part in entry.get("of", ())
        ),
        *((f"embeddings.{name}.graph", entry["graph"], "graphs") for name, entry in config["embeddings"].items()),
        *(
            (f"triplets.{name}.{key}", entry[key], section)
            for name, entry in config["triplets"].items()
            for key, section in (("embedding", "embeddings"), ("graph", "graphs"))
            if key in entry
        ),
        *(
            (f"triplets.{name}.of", part, "triplets")
            for name, entry in config["triplets"].items()
            for part in parts_of_triplets(entry)
        ),
        *(
            (f"models.{name}.{key}", entry[key], section)
            for name, entry in config["models"].items()
            for key, section in (("triplets", "triplets"), ("encoder", "encoders"))
        ),
    ]
    for key, name, section in references:
        if name not in config[section]:
            declared = ", ".join(config[section]) or "none"
            raise InputError(
                f"Configuration key {key} names {name!r}, which {section} does not declare (declared: {declared})."
            )


def _check_graphs(config: Configuration) -> None:
    for name, entry in config["graphs"].items():
        key = f"Configuration key graphs.{name}"
        other = {"cocitation": "max_citations", "coupling": "max_references"}.get(entry["signal"])
        if other in entry:
            raise InputError(f"{key}.{other} does not go with the signal {entry['signal']}.")
        for part in entry.get("of", ()):
            if config["graphs"][part].get("directed"):
                raise InputError(f"{key}.of names {part!r}, which is directed; a combination takes undirected graphs.")
        if name in _parts_of(config, name):
            raise InputError(f"{key}.of: a combination must not be a part of itself.")


def _parts_of(config: Configuration, name: str) -> set[str]:
    """The graphs that a combination is made of, those that its parts are made of among them."""
    found: set[str] = set()
    left = list(config["graphs"][name].get("of", ()))
    while left:
        part = left.pop()
        if part not in found:
            found.add(part)
            left += config["graphs"][part].get("of", ())
    return found


def _check_neighbours(config: Configuration) -> None:
    largest = largest_index(config)
    for name, entry in config["embeddings"].items():
        k = entry["neighbours"]["k"]
        lists, probes = (entry["neighbours"][key] for key in ("lists", "probes"))
        if entry["neighbours"]["index"] == "ivf" and probes > lists:
            raise InputError(
                f"Configuration key embeddings.{name}.neighbours.probes ({probes}) must not exceed lists ({lists})."
            )
        if largest is not None and k >= largest - 1:
            raise InputError(
                f"Configuration key embeddings.{name}.neighbours.k ({k}) must be smaller than {largest - 1}: "
                f"the release has at most {largest} papers."
            )


def _check_folders(config: Configuration) -> None:
    for key, folder in config.get("pathvars", {}).items():
        if folder.startswith("~") or "$" in folder or folder != os.path.normpath(folder):
            raise InputError(
                f"Configuration key pathvars.{key} is {folder!r}; it is taken as it stands, without ~ or variables "
                "filled in, and has no ./ in front and no slash too many."
            )
    for key, path in folders_of(config).items():
        if reason := in_the_way(path):
            raise InputError(f"Configuration key pathvars.{key}: no folder can be made at {path} ({reason}).")
    for section in NAMED_FOLDERS:
        if OMISSIONS in config[section]:
            raise InputError(
                f"Configuration key {section}.{OMISSIONS}: the folder of that name is taken; give it another."
            )


def _check_embeddings(config: Configuration) -> None:
    for name, entry in config["embeddings"].items():
        if entry["batch_negatives"] + entry["uniform_negatives"] == 0:
            raise InputError(
                f"Configuration key embeddings.{name}: batch_negatives and uniform_negatives are both 0; "
                "one must be more."
            )
        if entry["batch_negatives"] and entry["batch_size"] % entry["batch_negatives"]:
            raise InputError(
                f"Configuration key embeddings.{name}.batch_size ({entry['batch_size']}) must be a multiple of "
                f"batch_negatives ({entry['batch_negatives']})."
            )


def _check_models(config: Configuration) -> None:
    for name in config["models"]:
        if name in BASELINES:
            raise InputError(f"Configuration key models.{name}: that name is a baseline's; give the model another.")


def _check_encoders(config: Configuration) -> None:
    for name, entry in config["encoders"].items():
        origins = [key for key in ("model", "package", "build") if key in entry]
        if len(origins) != 1:
            raise InputError(f"Configuration key encoders.{name} needs exactly one of model, package and build.")
        if "build" in entry and entry["build"]["hidden"] % entry["build"]["heads"]:
            raise InputError(f"Configuration key encoders.{name}.build.hidden must be a multiple of heads.")
        if "model" in entry:
            _check_origin(f"encoders.{name}", "model", entry)


def _check_origin(section: str, key: str, entry: Mapping[str, Any]) -> None:
    """Check that what is a folder is there, and what comes from the hub is pinned."""
    origin = entry[key]
    if Path(origin).is_dir():
        return
    if origin.startswith((".", "/")):
        raise InputError(f"Configuration key {section}.{key}: the folder {origin} does not exist.")
    if "revision" not in entry:
        raise InputError(
            f"Configuration key {section}.revision is missing; what comes from the Hugging Face hub is pinned by its "
            "commit."
        )


def _check_benchmarks(config: Configuration) -> None:
    for name, entry in config["benchmarks"].items():
        if entry["kind"] == "holdout" and config["queries"]["holdout"] == 0:
            raise InputError(f"Configuration key benchmarks.{name} needs held-out papers; queries.holdout is 0.")
        declared = [task.name for task in BENCHMARKS[entry["kind"]]]
        for task in entry.get("tasks", ()):
            if task not in declared:
                raise InputError(
                    f"Configuration key benchmarks.{name}.tasks names {task!r}, which is no task of the kind "
                    f"{entry['kind']} (they are {', '.join(declared)})."
                )
        if ("folder" in entry) == ("hub" in entry) and entry["kind"] == "scirepeval":
            raise InputError(f"Configuration key benchmarks.{name} needs exactly one of folder and hub.")
        if is_generated(entry):
            if config["corpus"]["source"] == "s2":
                raise InputError(
                    f"Configuration key benchmarks.{name}.folder is demo, but a benchmark can only be generated about "
                    "a release in a folder or a generated one, not one of the source s2."
                )
        elif "folder" in entry and not Path(entry["folder"]).is_dir():
            raise InputError(
                f"Configuration key benchmarks.{name}.folder: the folder {entry['folder']} does not exist."
            )


CHECKS = (
    check_corpus,
    _check_queries,
    _check_exclude,
    _check_names,
    _check_embeddings,
    _check_encoders,
    _check_models,
    _check_folders,
    _check_benchmarks,
)
CHECKS_OF_REFERENCES = (_check_graphs, check_triplets, _check_neighbours)
"""Those that look up what names refer to, and the release: they need it to be there."""
