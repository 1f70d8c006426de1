"""Settings of a step: JSON from the command line, checked against a frozen dataclass."""

import dataclasses
import json
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeVar

from cocite.errors import InputError

Settings = TypeVar("Settings")


def parse_settings(kind: type[Settings], text: str, *, others: str | None = None) -> Settings:
    """Build the dataclass `kind` from JSON text, or from a file where `text` is @path.

    A key that is a word of Python, such as `from`, fills the field of that name with an underscore, `from_`. The field
    `others`, if there is one, takes all keys that are no field's.
    Raises `InputError` for anything that is not a JSON object, for unknown keys and for missing ones.
    """
    try:
        given = json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except FileNotFoundError:
        raise InputError(f"--settings: {text[1:]} does not exist.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"--settings: not JSON ({error.msg} at character {error.pos}).") from None
    if not isinstance(given, dict):
        raise InputError("--settings: must be a JSON object.")
    given = {f"{name}_" if iskeyword(name) else name: value for name, value in given.items()}
    if others is not None:
        known = {field.name for field in dataclasses.fields(kind)} - {others}  # type: ignore[arg-type]
        rest = {name: given.pop(name) for name in sorted(set(given) - known)}
        given[others] = rest
    return _build(kind, given)


def settings_as_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain JSON values, to be written beside a result."""
    return dataclasses.asdict(settings)


def _build(kind: type[Settings], given: dict[str, Any]) -> Settings:
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise InputError(f"--settings: unknown key {unknown[0]!r}; known are {', '.join(fields)}.")
    missing = [
        name
        for name, field in fields.items()
        if name not in given and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"--settings: the key {missing[0]!r} is missing.")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return kind(**values)
