"""Settings of a step: the part of the configuration that a rule passes to it and that is saved with the result.

A step gets only the keys that it uses, so that editing another key does not make its result stale.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from cocite.config.entries import Entry, as_json, discriminator, fields_of, is_left_out, tag_of, variants
from cocite.config.explained import explain
from cocite.core.atomic import read_json
from cocite.core.errors import InputError

AnySettings = TypeVar("AnySettings")
AS_JSON = "as JSON"
GivenAsJson = Annotated[AnySettings, AS_JSON]  # read from JSON text or @file: entries, or a mapping
_validator = cache(TypeAdapter)  # The Snakefile resolves the settings of each job.


def settings_of(entry: Entry, kind: Any) -> dict[str, Any]:
    """The values of an entry for the keys of a step's settings, including nested keys, as plain values."""
    kinds, found = list(variants(kind)), {}
    if len(kinds) > 1:
        key = discriminator(kinds)
        kinds = [each for each in kinds if tag_of(each, key) == tag_of(type(entry), key)]
    [chosen] = kinds
    for (key, field), name in zip(fields_of(chosen).items(), chosen.model_fields, strict=True):
        value = getattr(entry, name)
        if not is_left_out(value, field):
            has_settings = isinstance(value, Entry) and any(variants(field.annotation))
            found[key] = settings_of(value, field.annotation) if has_settings else as_json(value)
    return found


def entry_of(resolved: Mapping[str, Any], kind: Any) -> Any:
    """The settings of a step as an entry, from a resolved entry of the configuration that has more keys."""
    return _validator(kind).validate_json(json.dumps(resolved), extra="ignore", by_alias=True, by_name=False)


def validated(kind: Any, given: Mapping[str, Any]) -> Any:
    """An entry from plain values, all of which must be right. Raises pydantic's `ValidationError`."""
    return _validator(kind).validate_json(json.dumps(given), by_alias=True, by_name=False)


def parse_settings(kind: Any, text: str, option: str = "--settings") -> Any:
    """Settings from JSON text, or from a file where `text` is @path; `kind` is an entry, a union of some, or a mapping.
    Raises `InputError`, which names the option, for anything that is wrong."""
    try:
        given = read_json(Path(text[1:])) if text.startswith("@") else json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{option}: not JSON ({error.msg} at character {error.pos}).") from None
    if not isinstance(given, dict):
        raise InputError(f"{option}: must be a JSON object.")
    try:
        return validated(kind, given)
    except ValidationError as error:
        raise InputError(explain(error, kind, given, f"{option}: key")[0]) from None
