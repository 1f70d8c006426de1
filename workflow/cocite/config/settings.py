"""Settings of a step: JSON from the command line, checked against a frozen dataclass.

The configuration has been checked before it gets here, so what is refused here was written by hand.
"""

import dataclasses
import json
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cocite.ground.errors import InputError

Settings = TypeVar("Settings")


def parse_settings(kind: type[Settings], text: str, *, others: str | None = None) -> Settings:
    """Build the dataclass `kind` from JSON text, or from a file where `text` is @path.

    A key that is a word of Python, such as `from`, fills the field of that name with an underscore, `from_`. The field
    `others`, if there is one, takes all keys that are no field's.
    Raises `InputError` for anything that is not a JSON object, for keys that are unknown or missing, and for values
    that are not of the type of their field.
    """
    given = {f"{name}_" if iskeyword(name) else name: value for name, value in _read(text).items()}
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if others is not None:
        given[others] = {name: given.pop(name) for name in sorted(set(given) - (set(fields) - {others}))}
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise InputError(f"--settings: unknown key {unknown[0]!r}; known are {', '.join(fields)}.")
    values = _checked(given, get_type_hints(kind, include_extras=True))
    missing = [name for name, field in fields.items() if name not in given and not _has_default(field)]
    if missing:
        raise InputError(f"--settings: the key {missing[0]!r} is missing.")
    return kind(**values)


def settings_as_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain JSON values, to be written beside a result."""
    return dataclasses.asdict(settings)


def _read(text: str) -> dict[str, Any]:
    try:
        given = json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except FileNotFoundError:
        raise InputError(f"--settings: {text[1:]} does not exist.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"--settings: not JSON ({error.msg} at character {error.pos}).") from None
    if not isinstance(given, dict):
        raise InputError("--settings: must be a JSON object.")
    return given


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _checked(given: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The values as their fields hold them: tuples in place of lists."""
    values = {}
    for name, value in given.items():
        try:
            held = tuple(value) if isinstance(value, list) else value
            values[name] = TypeAdapter(types[name]).validate_python(held, strict=True)
        except ValidationError as error:
            wrong = "; ".join(dict.fromkeys(fault["msg"] for fault in error.errors()))
            raise InputError(f"--settings: {name.rstrip('_')} is {json.dumps(value)}. {wrong}.") from None
    return values
