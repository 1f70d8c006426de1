"""The configuration: defaults filled in, every key and name checked, before any job.

`resolve` takes the configuration as it was written and returns it complete. What is wrong is refused with one
sentence that names the key. The schema says what a key may hold; this module adds what a schema cannot: names that
must be declared, and values that are impossible together.
"""

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from cocite.errors import InputError

SCHEMA_FILE = Path(__file__).parents[1] / "schemas" / "config.schema.yaml"
DATASETS = ("papers", "abstracts", "citations")

BASELINES = ("bm25", "random")

Configuration = dict[str, Any]


def load_schema() -> dict[str, Any]:
    """The JSON schema of the configuration."""
    with SCHEMA_FILE.open(encoding="utf-8") as file:
        schema: dict[str, Any] = yaml.safe_load(file)
    return schema


def resolve(written: Mapping[str, Any]) -> Configuration:
    """The complete configuration. Raises `InputError`, one sentence that names the key, if it cannot be run."""
    config: Configuration = json.loads(json.dumps(written))
    errors = sorted(_validator().iter_errors(config), key=_precedence)
    if errors:
        raise InputError(_explain(errors[0]))
    _fill_in_variables(config)
    for check in CHECKS:
        check(config)
    return config


def _validator() -> Draft202012Validator:
    """A validator that also fills in defaults, so that what hangs below a default is checked and filled as well."""
    check_properties = Draft202012Validator.VALIDATORS["properties"]

    def fill_and_check(
        validator: Draft202012Validator, properties: dict[str, Any], instance: Any, schema: dict[str, Any]
    ) -> Iterator[ValidationError]:
        if isinstance(instance, dict):
            for name, subschema in properties.items():
                if isinstance(subschema, dict) and "default" in subschema:
                    instance.setdefault(name, json.loads(json.dumps(subschema["default"])))
        yield from check_properties(validator, properties, instance, schema)

    return validators.extend(Draft202012Validator, {"properties": fill_and_check})(load_schema())


def _precedence(error: ValidationError) -> tuple[bool, int, str]:
    """A wrong choice (signal, sampler, kind) comes first: the keys that go with it are judged by it."""
    return error.validator != "enum", len(error.absolute_path), error.message


def _explain(error: ValidationError) -> str:
    key = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        unknown = next(name for name in error.instance if name not in known)
        return f"Configuration key {_join(key, unknown)} is not known{_suggest(unknown, known)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"Configuration key {_join(key, missing)} is missing."
    if error.validator == "type":
        hint = " (YAML reads numbers such as 2e-5 as text: write 2.0e-5)" if _looks_like_number(error.instance) else ""
        place = key or "at the top"
        return f"Configuration key {place} must be of type {error.validator_value}, not {error.instance!r}{hint}."
    if error.validator == "enum":
        choices = [str(choice) for choice in error.validator_value]
        return (
            f"Configuration key {key} is {error.instance!r}; it must be one of "
            f"{', '.join(choices)}{_suggest(str(error.instance), choices, list_all=False)}"
        )
    if "propertyNames" in error.absolute_schema_path:
        return (
            f"Configuration key {_join(key, error.instance)}: a name must be of small letters, digits and hyphens, "
            "and start with a letter or digit."
        )
    return f"Configuration key {key}: {error.message}."


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _suggest(given: str, known: list[str], *, list_all: bool = True) -> str:
    """The end of a sentence on a word that is not known."""
    close = difflib.get_close_matches(given, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(known)}." if list_all and known else "."


def _looks_like_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def _fill_in_variables(config: Configuration) -> None:
    places: list[tuple[dict[str, Any], str, str]] = [
        (config["corpus"], "path", "corpus.path"),
        (config["queries"], "path", "queries.path"),
        *((entry, "model", f"encoders.{name}.model") for name, entry in config["encoders"].items()),
        *((entry, "folder", f"benchmarks.{name}.folder") for name, entry in config["benchmarks"].items()),
    ]
    for entry, name, key in places:
        if name in entry:
            entry[name] = os.path.expandvars(entry[name])
            if "$" in entry[name]:
                raise InputError(f"Configuration key {key} is {entry[name]!r}, but that variable is not set.")


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
