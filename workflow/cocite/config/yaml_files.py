"""A configuration in a YAML file: unique keys, and values in the types of JSON."""

import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cocite.config.explained import WORDS_OF_TRUTH, joined, quoted, shown
from cocite.core.errors import InputError

EXTENDS = "extends"  # the key that names the file of another configuration: what is not written comes from there
LARGEST_NUMBER = (1 << 63) - 1
LONGEST_TEXT = 10_000  # characters; the command of a step, which includes texts of the configuration, can have 128 KiB
MOST_VALUES = 100_000
MOST_LEVELS = 50
TOO_DEEP = f"entries are within each other at more than {MOST_LEVELS} levels; no configuration has so many."
CREDENTIALS = re.compile(r"://\S*(?:@|\?\S*=\S)")  # a URL with a user, and perhaps a password, or a key
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
OTHER_BASE = re.compile(r"[-+]?(?:0[0-7_]+|[0-9_]+(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
"""Numbers that YAML reads in another base, and that people write as dates, times, hashes or years."""


class _Loader(yaml.SafeLoader):
    """YAML with unique keys: PyYAML silently uses the last of several."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in first:
                    raise _UnreadableError(
                        f"lines {first[key.value]} and {line}: the key {shown(key.value)} is repeated; write it once"
                    )
                first[key.value] = line
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:
            line = node.start_mark.line + 1
            raise _UnreadableError(f"line {line}: more than {MOST_VALUES:,} keys are merged by <<; write them out")

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        line = node.start_mark.line + 1
        if node.tag in NUMBERS and OTHER_BASE.fullmatch(node.value):
            raise _UnreadableError(
                f"line {line}: YAML reads {shown(node.value)} as another number (one that begins with 0 is octal, one "
                "with colons has base 60); write the number itself, or a text in quotes"
            )
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, OverflowError) as error:  # it looks like a date, and is none
            value = shown(str(node.value))
            raise _UnreadableError(f"line {line}: {value} cannot be read ({error}); quote a text") from None


class _UnreadableError(yaml.YAMLError):
    """Where and why a configuration cannot be read."""


def written_configuration(path: Path, through: tuple[str, ...] = ()) -> dict[str, Any]:
    """The configuration in a YAML file as written, with what it extends. Raises `InputError` if it is not YAML."""
    try:
        read = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 (a safe loader)
    except RecursionError:
        raise InputError(f"{path}: {TOO_DEEP}") from None
    except (FileNotFoundError, IsADirectoryError):
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}; --configfile names a configuration of a run.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; a configuration is text in UTF-8.") from None
    except yaml.reader.ReaderError as error:
        raise InputError(f"{path}: not YAML (character U+{error.character:04X} may not be in it).") from None
    except _UnreadableError as error:
        raise InputError(f"{path}, {error}.") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}, line {line}: not YAML ({error.problem}).") from None
    written = {} if read is None else read
    if not isinstance(written, dict):
        raise InputError(f"{path} has no keys; a configuration has some, such as `release:` and `corpus:`.")
    return extended(written, through)


def extended(written: Mapping[str, Any], through: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is written, over the configuration that it extends; `through` names those that led here."""
    own = dict(written)
    base = own.pop(EXTENDS, None)
    if base is None:
        return own
    if not isinstance(base, str) or base in through:
        what = "extends itself" if base in through else "is no path"
        raise InputError(f"Configuration key {EXTENDS}: {quoted(base)} {what}; name the file of another configuration.")
    if not isinstance(own.get("pathvars"), Mapping) or not own["pathvars"]:
        raise InputError(
            f"Configuration key {EXTENDS}: a configuration that extends another needs folders of its own, as in "
            "pathvars: {results: results/mine, logs: logs/mine, benchmarks: benchmarks/mine}."
        )
    inherited = written_configuration(Path(base), (*through, base))
    inherited.pop("pathvars", None)  # Snakemake reads those of the file itself, and no others
    return _merged(inherited, own)


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings as one, and likewise within; other values of `own` replace those of the base, null drops them."""
    merged = dict(base)
    for key, value in own.items():
        are_both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        merged[key] = _merged(base[key], value) if are_both else value
    return {key: value for key, value in merged.items() if key not in own or value is not None}


def as_written(value: Any) -> Any:
    """A copy of the content of YAML in the types of JSON. Raises `InputError` for other values."""
    if _count(value, {}) > MOST_VALUES:
        raise InputError(
            f"The configuration has more than {MOST_VALUES:,} values, including those repeated by &name and *name; "
            "write a list of papers into a separate file."
        )
    return _as_json(value, "")


def _count(value: Any, counts: dict[int, int], level: int = 0) -> int:
    """A value and the values within it; values of several aliases count each time, but are checked once."""
    if counts.get(id(value)) == 0:
        raise InputError("The configuration has an entry that is a part of itself (&name and *name); write it out.")
    if level > MOST_LEVELS:
        raise InputError(f"The configuration: {TOO_DEEP}")
    if id(value) not in counts:
        items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        counts[id(value)] = 0
        counts[id(value)] = 1 + sum(_count(item, counts, level + 1) for item in items)
    return counts[id(value)]


def _as_json(value: Any, key: str) -> Any:
    match value:
        case Mapping():
            names = (_name(_as_json(name, key) if isinstance(name, int) else name, key) for name in value)
            named = zip(names, value.values(), strict=True)
            return {_text(name, joined(key, name)): _as_json(each, joined(key, name)) for name, each in named}
        case list():
            return [_as_json(entry, f"{key}[{number}]") for number, entry in enumerate(value)]
        case float() if not math.isfinite(value):
            must = "it must be a number that is finite, or a text in quotes"
            raise InputError(f"Configuration key {key} is {value}; {must}.")
        case int() if abs(value) > LARGEST_NUMBER:
            written = quoted(value) if value.bit_length() < 200 else "a number of more than 60 digits"
            raise InputError(f"Configuration key {key} is {written}; a whole number must be below 2⁶³.")
        case None | bool() | int() | float():
            return value
        case _:
            return _text(str(value), key)  # a date without quotes is one in YAML


def _text(text: str, key: str) -> str:
    """The text. Raises `InputError` on one that no step can be given, or that should be written nowhere."""
    if CREDENTIALS.search(text):
        raise InputError(
            f"Configuration key {key} has a user, a password or a key in a URL, and a configuration is written into "
            "results; leave it out there, and put it into ~/.netrc, which is read for each host."
        )
    if len(text) > LONGEST_TEXT:
        raise InputError(f"Configuration key {key} has {len(text):,} characters; {LONGEST_TEXT:,} are the most.")
    for character in text:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise InputError(f"Configuration key {key} is {quoted(text)}; a text must not have {character!r}.")
    return text


def _name(name: Any, key: str) -> str:
    """The name of an entry. Raises `InputError` for a word that YAML does not take for one."""
    if name is None or isinstance(name, bool):
        said = "reads null, ~ and an empty name as no value" if name is None else WORDS_OF_TRUTH.removeprefix("YAML ")
        key = key or "at the top"
        raise InputError(f"Configuration key {key} has an entry {name!r} (YAML {said}: write it in quotes).")
    return str(name)
