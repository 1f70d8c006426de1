"""A configuration as it stands in a YAML file: keys that stand once, in the types of JSON."""

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cocite.config.explained import joined, quoted, shown
from cocite.ground.errors import InputError

LARGEST_NUMBER = (1 << 63) - 1


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


def written_configuration(path: Path) -> dict[str, Any]:
    """The configuration in a YAML file as it stands there. Raises `InputError` if it is no YAML."""
    try:
        written: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}  # noqa: S506 (a safe loader)
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


def as_written(value: Any, key: str = "") -> Any:
    """A copy of what YAML holds, in the types of JSON. Raises `InputError` for what has no place there."""
    match value:
        case Mapping():
            return {str(name): as_written(entry, joined(key, str(name))) for name, entry in value.items()}
        case list():
            return [as_written(entry, f"{key}[{number}]") for number, entry in enumerate(value)]
        case float() if not math.isfinite(value):
            raise InputError(f"Configuration key {key} is {value}; it must be a number that is finite.")
        case int() if abs(value) > LARGEST_NUMBER:
            raise InputError(f"Configuration key {key} is {quoted(value)}; a whole number must be below 2⁶³.")
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)  # a date without quotes is one in YAML
