"""What a schema cannot say of a configuration: names that must be declared, values that are impossible together.

Each check takes the configuration with its defaults and raises `InputError`, one sentence that names the key.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cocite.errors import InputError

DATASETS = ("papers", "abstracts", "citations")
BASELINES = ("bm25", "random")

Configuration = dict[str, Any]


def check_consistency(config: Configuration) -> None:
    """Raise `InputError` at the first thing that does not fit together."""
    for check in CHECKS:
        check(config)


def _check_corpus(config: Configuration) -> None:
    corpus = config["corpus"]
    if corpus["source"] != "directory":
        return
    if "path" not in corpus:
        raise InputError("Configuration key corpus.path is missing; the source directory needs it.")
    folder = Path(corpus["path"])
    if not folder.is_dir():
        raise InputError(f"Configuration key corpus.path: the folder {folder} does not exist.")
    for dataset in DATASETS:
        if not any((folder / dataset).glob("*.gz")):
            raise InputError(
                f"Configuration key corpus.path: the release in {folder} lacks the dataset {dataset} "
                f"(no {dataset}/*.gz)."
            )
    stated = _stated(folder).get("release_id")
    if stated is not None and stated != config["release"]:
        raise InputError(f"Configuration key release is {config['release']}, but {folder} holds the release {stated}.")


def _check_queries(config: Configuration) -> None:
    queries = config["queries"]
    if queries["from"] == "file":
        if "path" not in queries:
            raise InputError("Configuration key queries.path is missing; queries from a file need it.")
        if not Path(queries["path"]).is_file():
            raise InputError(f"Configuration key queries.path: the file {queries['path']} does not exist.")


def _check_names(config: Configuration) -> None:
    references = [
        *((f"embeddings.{name}.graph", entry["graph"], "graphs") for name, entry in config["embeddings"].items()),
        *(
            (f"triplets.{name}.{key}", entry[key], section)
            for name, entry in config["triplets"].items()
            for key, section in (("embedding", "embeddings"), ("graph", "graphs"))
            if key in entry
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


def _check_triplets(config: Configuration) -> None:
    for name, entry in config["triplets"].items():
        if entry["easy"] > entry["per_query"]:
            raise InputError(
                f"Configuration key triplets.{name}.easy must not exceed per_query ({entry['per_query']})."
            )
        if entry["sampler"] == "neighbours":
            _check_bands(name, entry, config["embeddings"][entry["embedding"]]["neighbours"]["k"])
        else:
            graph = config["graphs"][entry["graph"]]
            if graph["signal"] != "citation" or not graph["directed"]:
                raise InputError(
                    f"Configuration key triplets.{name}.graph: {entry['graph']!r} is not a directed citation graph."
                )


def _check_bands(name: str, entry: Mapping[str, Any], k: int) -> None:
    key = f"Configuration key triplets.{name}"
    if entry["k_positive"] >= entry["k_negative"]:
        raise InputError(f"{key}.k_positive ({entry['k_positive']}) must be below k_negative ({entry['k_negative']}).")
    if entry["k_positive"] < entry["per_query"]:
        raise InputError(f"{key}.k_positive ({entry['k_positive']}) must be at least per_query ({entry['per_query']}).")
    hard = entry["per_query"] - entry["easy"]
    if entry["k_negative"] - hard < entry["k_positive"]:
        raise InputError(
            f"{key}.k_negative ({entry['k_negative']}) must be at least k_positive + hard negatives "
            f"({entry['k_positive']} + {hard}), or the bands overlap."
        )
    if entry["k_negative"] > k:
        raise InputError(
            f"{key}.k_negative ({entry['k_negative']}) must not exceed "
            f"embeddings.{entry['embedding']}.neighbours.k ({k})."
        )


def _check_neighbours(config: Configuration) -> None:
    largest = _largest_index(config)
    for name, entry in config["embeddings"].items():
        k = entry["neighbours"]["k"]
        if largest is not None and k >= largest:
            raise InputError(
                f"Configuration key embeddings.{name}.neighbours.k ({k}) is larger than the index can be: "
                f"the release has at most {largest} papers."
            )


def _largest_index(config: Configuration) -> int | None:
    """Upper bound of the papers that can have an edge, where the release says enough to tell."""
    corpus = config["corpus"]
    if corpus["source"] == "demo":
        papers: int = corpus["demo"]["papers"]
        return papers
    if corpus["source"] == "directory":
        stated = _stated(Path(corpus["path"]))
        if "papers" in stated and "citations" in stated:
            return int(stated["papers"]) + int(stated["citations"])
    return None


def _stated(folder: Path) -> dict[str, Any]:
    """What the release says of itself in release.json, if it has one."""
    try:
        stated: dict[str, Any] = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise InputError(f"{folder / 'release.json'}, line {error.lineno}: not JSON ({error.msg}).") from None
    return stated


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
        if "model" in entry and _is_folder(entry["model"]):
            if not Path(entry["model"]).is_dir():
                raise InputError(
                    f"Configuration key encoders.{name}.model: the folder {entry['model']} does not exist."
                )
        elif "model" in entry and "revision" not in entry:
            raise InputError(
                f"Configuration key encoders.{name}.revision is missing; what comes from the Hugging Face hub is "
                "pinned by its commit."
            )


def _is_folder(model: str) -> bool:
    return model.startswith((".", "/", "~")) or Path(model).is_dir()


def _check_benchmarks(config: Configuration) -> None:
    for name, entry in config["benchmarks"].items():
        if entry["kind"] == "holdout" and config["queries"]["holdout"] == 0:
            raise InputError(f"Configuration key benchmarks.{name} needs held-out papers; queries.holdout is 0.")
        if entry["kind"] == "scirepeval":
            if entry["folder"] == "demo" and config["corpus"]["source"] != "demo":
                raise InputError(f"Configuration key benchmarks.{name}.folder is demo, but corpus.source is not.")
            if entry["folder"] != "demo" and not Path(entry["folder"]).is_dir():
                raise InputError(
                    f"Configuration key benchmarks.{name}.folder: the folder {entry['folder']} does not exist."
                )


CHECKS = (
    _check_corpus,
    _check_queries,
    _check_names,
    _check_triplets,
    _check_neighbours,
    _check_encoders,
    _check_models,
    _check_benchmarks,
)
