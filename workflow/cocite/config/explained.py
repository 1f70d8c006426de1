"""Error messages for a configuration: sentences that name the key and say what would be right.

Pydantic finds the errors and describes them in terms of types. These sentences name the keys as they are written, quote
the value, and recognise common mistakes: a misspelled key, a key of another variant, a number in quotes.
"""

import difflib
import re
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cocite.config.entries import MEANINGS, Entry, discriminator, fields_of, tag_of, variants

BOUNDS = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
KINDS = {
    **{"int": "integer", "float": "number", "bool": "boolean", "string": "string", "tuple": "array", "list": "array"},
    **dict.fromkeys(("dict", "model", "model_attributes"), "object"),
}
"""What a type is called in JSON, by the beginning of pydantic's name for its errors."""
FOLLOWS = "default_factory_not_called"  # pydantic's name for a default that was not looked for, since a value is wrong
LONGEST_VALUE = 60
CHOICES = ("union_tag_invalid", "union_tag_not_found", "literal_error")
WORDS_OF_TRUTH = "YAML reads yes, no, on and off as true and false"
NUMBER = re.compile(r"(?:[+-]?[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def explain(error: ValidationError, kind: Any, given: Any, what: str = "Configuration key") -> list[str]:
    """A sentence per error in what was given for this type. A wrong choice (signal, sampler, kind) comes first, since
    the other keys depend on it. If a value matches none of several types, one sentence names them all."""
    places: dict[tuple[int | str, ...], tuple[_Place, list[ErrorDetails]]] = {}
    for details in error.errors(include_url=False):
        if details["type"] == FOLLOWS:
            continue
        place = _place(kind, given, details["loc"])
        places.setdefault(place.keys, (place, []))[1].append(details)
    for keys in [keys for keys, (_, faults) in places.items() if faults[0]["type"] == "too_short"]:
        if any(len(other) > len(keys) and other[: len(keys)] == keys for other in places):
            del places[keys]  # pydantic counts only the items that are right

    def precedence(each: tuple[_Place, list[ErrorDetails]]) -> tuple[bool, bool, int]:
        """Wrong choices first, then missing keys, then others; of these, the outer ones."""
        place, [details, *_] = each
        is_choice = details["type"] in CHOICES or details["loc"][-1:] == ("[key]",)
        return not is_choice, details["type"] != "missing", len(place.keys)

    found = sorted(places.values(), key=precedence)
    return list(dict.fromkeys(_sentence(place, faults, what) for place, faults in found))


def quoted(value: Any) -> str:
    """A value as quoted in a sentence, shortened if it is long."""
    text = without_password(repr(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def shown(text: str) -> str:
    """A text as quoted in a sentence: shortened if it is long, in quotes if it is not printable."""
    text = without_password(text)
    text = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return text if text.isprintable() else repr(text)


def without_password(text: str) -> str:
    """The text without what can be a user and a password before a host, or a key behind an address."""
    before, _, after = text.rpartition("@")
    user, colon, _ = before.partition(":")
    if colon:
        text = user.removesuffix(re.split(r"['\"\s]", user)[-1]) + "…" + after
    return re.sub(r"(?<=://)[^'\"]*[?#][^'\"\s]*", "…", text)


def joined(key: str, name: str) -> str:
    """The key of an entry within another."""
    return f"{key}.{shown(name)}" if key else shown(name)


@dataclass(kw_only=True)
class _Place:
    """Location of an error: the path of keys, the entry whose key is wrong, and the value."""

    keys: tuple[int | str, ...]
    entry: type[Entry]
    written: Any
    siblings: list[type[Entry]]  # the variants of which that entry is one


def _place(kind: Any, given: Any, location: tuple[int | str, ...]) -> _Place:
    """The place of an error, without the variants that pydantic names on the way and nobody wrote."""
    found = _Place(keys=(), entry=Entry, written=given, siblings=[])
    kinds: list[type[Entry]] = []
    annotation = _bare(kind)
    for part in location:
        if part == "[key]":
            break
        if isinstance(annotation, type) and issubclass(annotation, Entry):
            found.entry, found.siblings, kinds = annotation, kinds, []
            fields = fields_of(annotation)
            annotation = _bare(fields[str(part)].annotation) if part in fields else None
        elif get_origin(annotation) in (dict, tuple):
            annotation = _bare(get_args(annotation)[-1 if get_origin(annotation) is dict else 0])
        else:
            kinds = list(variants(annotation))
            key = discriminator(kinds) if kinds else None
            names = {tag_of(each, key) if key else each.__name__: each for each in kinds}
            annotation = names.get(part, annotation)
            continue
        found.keys += (part,)
        is_there = isinstance(found.written, dict) and part in found.written
        is_there |= isinstance(found.written, list) and isinstance(part, int)
        found.written = found.written[part] if is_there else None
    if isinstance(annotation, type) and issubclass(annotation, Entry) and found.entry is Entry:
        found.entry = annotation
    return found


def _bare(annotation: Any) -> Any:
    """A type without what is said about it, and without None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [each for each in get_args(annotation) if each is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _sentence(place: _Place, faults: list[ErrorDetails], what: str) -> str:
    details, key = faults[0], ""
    for part in place.keys:
        key = f"{key}[{part}]" if isinstance(part, int) else joined(key, str(part))
    context = details.get("ctx", {})
    of_tag = context.get("discriminator", "").strip("'").rstrip("_")  # pydantic names the field and not its key
    match details["type"]:
        case "extra_forbidden":
            return f"{what} {key} {_unknown_key_message(str(place.keys[-1]), place.entry, place.siblings)}"
        case "missing":
            return f"{what} {key} is missing."
        case "union_tag_not_found":
            return f"{what} {joined(key, of_tag)} is missing."
        case "union_tag_invalid":
            key = key if isinstance(place.written, str) else joined(key, of_tag)
            return _no_choice(f"{what} {key}", context["tag"], context["expected_tags"])
        case "literal_error":
            return _no_choice(f"{what} {key}", details["input"], context["expected"])
        case "string_pattern_mismatch" if details["loc"][-1] == "[key]":
            return f"{what} {key}: a name must be {MEANINGS[context['pattern']]}."
        case "inconsistent":
            return f"{what} {key}{context['what']}" if key else f"--settings: {context['what'].lstrip(' .:')}"
    value = details["input"]
    kinds = list(dict.fromkeys(_kind(fault["type"]) for fault in faults))
    if all(kinds):
        if not key:
            return f"A configuration must be of type {' or '.join(kinds)}, not {quoted(value)}."
        hint = _hint(value, kinds)
        return f"{what} {key} must be of type {' or '.join(kinds)}, not {quoted(value)}{hint}."
    return f"{what} {key} is {_fault(next(fault for fault in faults if not _kind(fault['type'])))}."


def _fault(details: ErrorDetails) -> str:
    """What a value is, and what would be right."""
    value, context = quoted(details["input"]), details.get("ctx", {})
    for bound in BOUNDS.keys() & context.keys():
        return f"{value}; it must be {BOUNDS[bound]} {context[bound]}"
    match details["type"]:
        case "string_pattern_mismatch":
            return f"{value}; it must be {MEANINGS[context['pattern']]}"
        case "unsuitable":
            return f"{value}{details['msg']}"
        case "too_short" | "string_too_short":
            return f"{value}, which {'should be non-empty' if context.get('min_length') == 1 else 'is too short'}"
        case _:
            return f"{value}; {details['msg'][0].lower()}{details['msg'][1:]}"


def _kind(error: str) -> str:
    """The JSON name of the type that an error expects; empty for other errors."""
    name = re.sub(r"_(type|parsing|from_float)$", "", error)
    return KINDS.get(name, "") if name != error else ""


def _no_choice(key: str, given: Any, expected: str) -> str:
    choices = re.findall(r"'([^']*)'", expected)
    suggestion = _suggest(str(given), choices, list_all=False)
    words = f" ({WORDS_OF_TRUTH}: write it in quotes)" if isinstance(given, bool) else ""
    return f"{key} is {quoted(given)}{words}; it must be one of {', '.join(choices)}{suggestion}"


def _unknown_key_message(name: str, kind: type[Entry], siblings: list[type[Entry]]) -> str:
    """The end of a sentence on a key that an entry does not have."""
    key = discriminator(siblings) if siblings else None
    if key and any(name in fields_of(each) for each in siblings):
        return f"does not go with {key}: {tag_of(kind, key)}."
    is_near = difflib.get_close_matches(name, fields_of(kind), n=1)
    for outer, field in () if is_near else fields_of(kind).items():
        bare = _bare(field.annotation)
        for each in variants(get_args(bare)[-1] if get_origin(bare) is dict else bare):
            if name in fields_of(each):
                tag = f"kind: {tag_of(each, 'kind')}, " if "kind" in each.model_fields else ""
                return f"is not known; it belongs in {outer}, as in {outer}: {{{tag}{name}: …}}."
    return f"is not known{_suggest(name, list(fields_of(kind)))}"


def _hint(value: Any, kinds: list[str]) -> str:
    """What YAML may have made of what was written, and how to write it."""
    match value:
        case None:
            return ' (YAML reads null, ~ and an empty place as no value: leave it out, or write "null" in quotes)'
        case bool():
            return f" ({WORDS_OF_TRUTH}{': write it in quotes' if 'string' in kinds else ''})"
        case int() | float() if "string" in kinds:
            return " (write it in quotes)"
        case str() | 0 | 1 if "boolean" in kinds:
            return " (write true or false, without quotes)"
        case str() if {"integer", "number"} & {*kinds} and NUMBER.fullmatch(value):
            return " (write a number without quotes or zeros in front, and 2e-5 as 2.0e-5, since YAML reads it as text)"
        case _:
            return ""


def _suggest(given: str, known: list[str], *, list_all: bool = True) -> str:
    """The end of a sentence on a word that is not known."""
    close = difflib.get_close_matches(given, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(known)}." if list_all and known else "."
