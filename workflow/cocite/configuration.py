"""The configuration: defaults filled in, every key and name checked, before any job.

`resolve` takes the configuration as it was written and returns it complete. What is wrong is refused with one
sentence that names the key. The schema says what a key may hold; `consistency.py` checks what a schema cannot say.
"""

import difflib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from cocite.choices import fill_in
from cocite.consistency import Configuration, check_consistency
from cocite.errors import InputError

SCHEMA_FILE = Path(__file__).parents[1] / "schemas" / "config.schema.yaml"


def load_schema() -> dict[str, Any]:
    """The JSON schema of the configuration, with all that its choices add."""
    with SCHEMA_FILE.open(encoding="utf-8") as file:
        return fill_in(yaml.safe_load(file))


def resolve(written: Mapping[str, Any]) -> Configuration:
    """The complete configuration. Raises `InputError`, one sentence that names the key, if it cannot be run."""
    config: Configuration = json.loads(json.dumps(written, default=str))  # a date without quotes is one in YAML
    errors = sorted(_validator().iter_errors(config), key=_precedence)
    if errors:
        raise InputError(_explain(errors[0]))
    _fill_in_variables(config)
    check_consistency(config)
    return config


def read_configuration(path: Path, keys: Collection[str] | None = None) -> Configuration:
    """The configuration in a YAML file, resolved; with `keys`, what hangs on these alone. Raises `InputError`."""
    written = written_configuration(path)
    return resolve({key: entry for key, entry in written.items() if keys is None or key in keys})


def written_configuration(path: Path) -> Configuration:
    """The configuration in a YAML file as it stands there. Raises `InputError` if it is no YAML."""
    try:
        written: Configuration = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; --configfile names a configuration of a run.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; --configfile names a configuration of a run.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; a configuration is text in UTF-8.") from None
    except yaml.reader.ReaderError as error:
        raise InputError(f"{path}: not YAML (character U+{error.character:04X} may not be in it).") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}, line {line}: not YAML ({error.problem}).") from None
    if not isinstance(written, dict):
        raise InputError(f"{path} holds no keys; a configuration has some, such as `release:` and `corpus:`.")
    return written


def results_folder(config: Mapping[str, Any]) -> Path:
    """The folder of a run with this configuration, resolved or not. Raises `InputError` where it is no path."""
    pathvars = config.get("pathvars") or {}
    folder = pathvars.get("results", "results") if isinstance(pathvars, dict) else None
    if not isinstance(folder, str) or not folder:
        raise InputError("Configuration key pathvars must hold paths, as in pathvars: {results: results/mine}.")
    return Path(folder)


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

    # JSON Schema takes 2.0 for an integer, and Python does not.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return validators.extend(Draft202012Validator, {"properties": fill_and_check}, type_checker=types)(load_schema())


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
        kinds = error.validator_value
        kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
        return f"Configuration key {place} must be of type {kind}, not {error.instance!r}{hint}."
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
    if error.validator == "pattern" and "description" in error.schema:
        meaning = error.schema["description"].strip().partition(". ")[0].rstrip(".")
        return f"Configuration key {key}: {error.instance!r} is not what it has to be: {meaning}."
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
        (config["corpus"], "base", "corpus.base"),
        (config["queries"], "path", "queries.path"),
        (config["queries"], "dataset", "queries.dataset"),
        *((entry, "model", f"encoders.{name}.model") for name, entry in config["encoders"].items()),
        *((entry, "path", f"triplets.{name}.path") for name, entry in config["triplets"].items()),
        *((entry, "folder", f"benchmarks.{name}.folder") for name, entry in config["benchmarks"].items()),
    ]
    for entry, name, key in places:
        if name in entry:
            entry[name] = _filled_in(entry[name], key)
    config["exclude"] = [_filled_in(path, f"exclude[{number}]") for number, path in enumerate(config["exclude"])]


def _filled_in(path: str, key: str) -> str:
    filled = os.path.expandvars(path)
    if "$" in filled:
        raise InputError(f"Configuration key {key} is {filled!r}, but that variable is not set.")
    return str(Path(filled).expanduser()) if filled.startswith("~") else filled
