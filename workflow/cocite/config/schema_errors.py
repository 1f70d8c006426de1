"""What is wrong with a configuration by its schema, in sentences that name the key and say what would be right."""

import difflib
from collections.abc import Sequence
from typing import Any

from jsonschema import ValidationError

MEANS = "means"
"""The keyword of the schema that says in words what its `pattern` asks for."""
BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}
LONGEST_VALUE = 60


def precedence(error: ValidationError) -> tuple[bool, int, str]:
    """The order of errors. A wrong choice (signal, sampler, kind) comes first: the keys with it are judged by it."""
    return error.validator != "enum", len(error.absolute_path), error.message


def explain(error: ValidationError) -> str:
    """The sentence on one error of a configuration."""
    key = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        unknown = next(name for name in error.instance if name not in known)
        return f"Configuration key {joined(key, unknown)} is not known{_suggest(unknown, known)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"Configuration key {joined(key, missing)} is missing."
    if error.validator == "enum":
        choices = [str(choice) for choice in error.validator_value]
        return (
            f"Configuration key {key} is {quoted(error.instance)}; it must be one of "
            f"{', '.join(choices)}{_suggest(str(error.instance), choices, list_all=False)}"
        )
    if "propertyNames" in error.absolute_schema_path:
        return f"Configuration key {joined(key, error.instance)}: a name must be {error.schema[MEANS]}."
    if not key:
        return f"A configuration must be of {_kinds(error.validator_value)}, not {quoted(error.instance)}."
    return f"Configuration key {key} {fault(error)}."


def fault(error: ValidationError) -> str:
    """What is wrong with a value, and what would be right, to go on a sentence that names it."""
    value = quoted(error.instance)
    if error.validator == "type":
        return f"must be of {_kinds(error.validator_value)}, not {value}{_hint(error.instance, error.validator_value)}"
    if error.validator == "pattern":
        return f"is {value}; it must be {error.schema[MEANS]}"
    if error.validator in BOUNDS:
        return f"is {value}; it must be {BOUNDS[error.validator]} {error.validator_value}"
    return f"is {value}, which {error.message.removeprefix(repr(error.instance)).strip()}"


def quoted(value: Any) -> str:
    """A value as it is quoted in a sentence, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def shown(text: str) -> str:
    """A text as it stands in a sentence: cut where it is long, in quotes where it cannot be printed."""
    text = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return text if text.isprintable() else repr(text)


def joined(key: str, name: str) -> str:
    """The key of an entry within another."""
    return f"{key}.{shown(name)}" if key else shown(name)


def _kinds(kinds: str | Sequence[str]) -> str:
    return f"type {kinds if isinstance(kinds, str) else ' or '.join(kinds)}"


def _hint(value: Any, kinds: str | Sequence[str]) -> str:
    if isinstance(value, str) and _is_number(value):
        return " (YAML reads numbers such as 2e-5 as text: write 2.0e-5)"
    if value is None:
        return " (nothing stands behind the key: leave it out, or write {} or [])"
    if "string" in kinds and isinstance(value, int | float):
        return " (write it in quotes)"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _suggest(given: str, known: list[str], *, list_all: bool = True) -> str:
    """The end of a sentence on a word that is not known."""
    close = difflib.get_close_matches(given, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(known)}." if list_all and known else "."
