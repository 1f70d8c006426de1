"""The configuration: defaults filled in, every key and name checked, before any job.

`resolve` takes the configuration as it was written and returns it complete. What is wrong is refused with one
sentence that names the key. The schema says what a key may hold; `consistency.py` checks what a schema cannot say.
"""

import json
import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from cocite.config.choices import fill_in
from cocite.config.consistency import Configuration, inconsistencies
from cocite.config.folders import folders_of
from cocite.config.schema_errors import explain, joined, precedence, quoted, shown
from cocite.config.variables import fill_in_variables
from cocite.ground.errors import InputError

LARGEST_NUMBER = (1 << 63) - 1
SCHEMA_FILE = Path(__file__).parents[2] / "schemas" / "config.schema.yaml"


class _Loader(yaml.SafeLoader):
    """YAML whose keys stand once: PyYAML takes the last of several, in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in first:
                    raise _UnreadableError(
                        f"lines {first[key.value]} and {line}: the key {key.value} stands twice; write it once"
                    )
                first[key.value] = line
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # what looks like a date or a number, and is none
            line, value = node.start_mark.line + 1, shown(str(node.value))
            raise _UnreadableError(f"line {line}: {value} cannot be read ({error}); a text stands in quotes") from None


class _UnreadableError(yaml.YAMLError):
    """Where and why a configuration cannot be read."""


def load_schema() -> dict[str, Any]:
    """The JSON schema of the configuration, with all that its choices add."""
    with SCHEMA_FILE.open(encoding="utf-8") as file:
        return fill_in(yaml.safe_load(file))


def resolve(written: Mapping[str, Any]) -> Configuration:
    """The complete configuration. Raises `InputError`, one sentence that names the key, if it cannot be run."""
    config, faults = resolve_or_explain(written)
    if faults:
        raise InputError(faults[0])
    return config


def resolve_or_explain(written: Mapping[str, Any]) -> tuple[Configuration, list[str]]:
    """The configuration as far as it is complete, and a sentence on each thing that is wrong with it.

    What fits together is checked only where each key by itself is right.
    """
    try:
        config: Configuration = _as_json(written)
    except InputError as error:
        return {}, [str(error)]
    except RecursionError:
        return {}, ["The configuration has an entry that is a part of itself (&name and *name); write it out."]
    errors = sorted(_validator().iter_errors(config), key=precedence)
    if errors:
        return config, list(dict.fromkeys(map(explain, errors)))
    return config, fill_in_variables(config) or inconsistencies(config)


def read_configuration(path: Path, keys: Collection[str] | None = None) -> Configuration:
    """The configuration in a YAML file, resolved; with `keys`, what depends on these alone. Raises `InputError`."""
    written = written_configuration(path)
    return resolve({key: entry for key, entry in written.items() if keys is None or key in keys})


def written_configuration(path: Path) -> Configuration:
    """The configuration in a YAML file as it stands there. Raises `InputError` if it is no YAML."""
    try:
        written: Configuration = yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}  # noqa: S506 (a safe loader)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; --configfile names a configuration of a run.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; --configfile names a configuration of a run.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; a configuration is text in UTF-8.") from None
    except yaml.reader.ReaderError as error:
        raise InputError(f"{path}: not YAML (character U+{error.character:04X} may not be in it).") from None
    except _UnreadableError as error:
        raise InputError(f"{path}, {error}.") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}, line {line}: not YAML ({error.problem}).") from None
    if not isinstance(written, dict):
        raise InputError(f"{path} holds no keys; a configuration has some, such as `release:` and `corpus:`.")
    return written


def results_folder(config: Mapping[str, Any]) -> Path:
    """Where the results of a run with this configuration, resolved or not, lie."""
    return folders_of(config)["results"]


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


def _as_json(value: Any, key: str = "") -> Any:
    """A copy of what YAML holds, in the types of JSON. Raises `InputError` for what has no place there."""
    match value:
        case Mapping():
            return {str(name): _as_json(entry, joined(key, str(name))) for name, entry in value.items()}
        case list():
            return [_as_json(entry, f"{key}[{number}]") for number, entry in enumerate(value)]
        case float() if not math.isfinite(value):
            raise InputError(f"Configuration key {key} is {value}; it must be a number that is finite.")
        case int() if abs(value) > LARGEST_NUMBER:
            raise InputError(f"Configuration key {key} is {quoted(value)}; a whole number must be below 2⁶³.")
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)  # a date without quotes is one in YAML
