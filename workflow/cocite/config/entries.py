"""The base of every section of the configuration: entries that reject unknown keys, and the types of their values.

A key is a field of an entry, and the docstring below it its description. Engines, samplers, losses and benchmarks are
plugins: entries in the modules of a package, found by the only value of a field. Every job imports all of them with the
configuration, so slow imports belong inside their methods.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from inspect import isclass
from operator import or_
from pathlib import Path
from pkgutil import iter_modules
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from cocite.core.errors import InputError

TAKEN = "{}<>"  # characters that Snakemake reads as wildcards and path variables
MEANINGS = {
    "^[a-z0-9][a-z0-9-]{0,99}$": (
        "of lowercase letters, digits and hyphens, start with a letter or digit, and have at most 100 of them"
    ),
    "^[0-9a-f]{40}$": "a commit of 40 lowercase hexadecimal digits",
    r"^https?://[^/?#@\s]+(/[^?#@\s]*)?$": "a URL that starts with http:// or https://, without user, ? and #",
    "^[A-Za-z_][A-Za-z0-9_]*$": "the name of a Python package, of letters from a to z, digits and underscores",
    r"^[\x01-\t\x0b\x0c\x0e-!#-\x7f]$": (
        "one ASCII character, neither a double quote nor a line break; for tabs, use the format tsv"
    ),
    r"^(ndcg|map|Rprec|recip_rank|(ndcg_cut|map_cut|recip_rank|recall|P|success)_[1-9][0-9]{0,3})$": (
        "a metric as trec_eval names it, such as ndcg_cut_10, recall_100 or map"
    ),
    r"^(\d{4}(-(\d{4})?)?|-\d{4})$": "a year or years, such as 2020, 2005-2026, 2015- or -2020",
}
"""The description of each regular expression in error messages."""
NAME, COMMIT, URL, PACKAGE, DELIMITER, MEASURE, YEARS = MEANINGS

Item = TypeVar("Item", bound=Hashable)
Whole = Any  # the whole `Configuration`, which knows all entries, so that none of them can know it


class Entry(BaseModel):
    """A part of the configuration: its fields are its keys.

    Validators check combinations of its keys, the two methods what needs the disk, other sections or other entries.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True, defer_build=True)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """What is wrong in view of the disk and of other sections, a key and why; the first sentence counts."""
        yield from ()

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """What is wrong in view of the entries that this one names; asked only where all names are declared."""
        yield from ()


@dataclass(frozen=True)
class Refers:
    """Marks a name, or names, as those of entries in a section, or in one of two."""

    section: str
    or_in: str = ""


def inconsistent(what: str) -> PydanticCustomError:
    """The error of keys that do not go together; `what` follows the key of the entry, as in `.lr must be …`."""
    return PydanticCustomError("inconsistent", "{what}", {"what": what})


def unsuitable(what: str) -> PydanticCustomError:
    """The error of a value; `what` follows the key and the value, as in `a path must not …`."""
    return PydanticCustomError("unsuitable", "{what}", {"what": what})


def distinct(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items. Raises a sentence if one is repeated."""
    if len(set(items)) < len(items):
        raise unsuitable(", which has non-unique elements")
    return items


def filled(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items. Raises a sentence if there are none; a bound of the type would also count invalid items."""
    if not items:
        raise unsuitable(", which should be non-empty")
    return items


def _filled_in(path: str) -> str:
    filled = os.path.expandvars(f"./{path}" if path.startswith("-") else path)  # so that it is not read as an option
    if "$" in filled:
        raise unsuitable(", but that variable is not set")
    check_characters(filled)
    try:
        return str(Path(filled).expanduser()) if filled.startswith("~") else filled
    except RuntimeError:
        raise unsuitable(", but there is no such home; write it out") from None


def check_characters(path: str) -> str:
    """The path. Raises a sentence on a character that Snakemake takes for something else, or that no file can have."""
    for character in path:
        if character in TAKEN or not character.isprintable():
            raise unsuitable(f"; a path must not have the character {character!r}, so rename it")
    return path


def default_of(key: str, value: str) -> BeforeValidator:
    """Adds a default for the key that selects the variant of an entry. The field of the default variant has the same
    default, which puts it into the JSON schema and `docs/config.md`."""
    return BeforeValidator(lambda given: {key: value, **given} if isinstance(given, Mapping) else given)


@dataclass(frozen=True)
class ShortFor:
    """Accepts a plain text as short for an entry with only this key: `flat` for `{kind: flat}`."""

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the entry, behind a function that writes the short form out."""
        return no_info_before_validator_function(
            lambda given: {self.key: given} if isinstance(given, str) else given, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The JSON schema: a text, one of those of variants that need no other key, or the entry."""
        whole = handler(schema)
        short: JsonSchemaValue = {"type": "string"}
        for each in (whole, *whole.get("anyOf", ())):
            if "discriminator" in each:
                needed = {
                    tag: handler.resolve_ref_schema({"$ref": of}).get("required", [])
                    for tag, of in each["discriminator"]["mapping"].items()
                }
                short = {"enum": [tag for tag, keys in needed.items() if {*keys} <= {self.key}]}
        return {"anyOf": [short, whole]}


Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=NAME)]
Commit = Annotated[str, Field(pattern=COMMIT)]
Url = Annotated[str, Field(pattern=URL)]
PackageName = Annotated[str, Field(pattern=PACKAGE)]
GivenPath = Annotated[str, Field(min_length=1), AfterValidator(_filled_in)]  # ~ and variables are filled in
# Strict tuples refuse lists, which is what is left of JSON behind a short form.
Ranks = Annotated[tuple[Count, Count], Strict(False)]
Seeds = Annotated[tuple[Count, ...], Strict(False), Field(min_length=1), AfterValidator(distinct)]
Names = Annotated[tuple[Text, ...], Strict(False), AfterValidator(distinct)]
SomeNames = Annotated[tuple[Text, ...], Strict(False), Field(min_length=1), AfterValidator(distinct)]


def fields_of(kind: type[Entry]) -> dict[str, FieldInfo]:
    """The fields of an entry, by the names that a configuration has for them."""
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def summary_of(kind: type[Entry]) -> str:
    """The first sentence or sentences of an entry's docstring."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def variants(annotation: Any) -> Iterator[type[Entry]]:
    """The entries that a value of this type can be."""
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from variants(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from variants(each)


def discriminator(kinds: list[type[Entry]]) -> str | None:
    """The key that tells variants of an entry apart: the first literal of one value that each of them has."""
    for key in fields_of(kinds[0]):
        tags = [get_args(fields_of(kind)[key].annotation) if key in fields_of(kind) else () for kind in kinds]
        if len(set(tags)) == len(tags) and all(len(tag) == 1 for tag in tags):
            return key
    return None


def tag_of(kind: type[Entry], key: str | None) -> Any:
    """What the key that tells variants apart is in this one."""
    return get_args(fields_of(kind)[key].annotation)[0] if key else None


def all_parts(name: str, parts_of: Callable[[str], Iterable[str]]) -> list[str]:
    """The entries that an entry is made of, those that its parts are made of among them."""
    found, left = list[str](), [*parts_of(name)]
    while left:
        part = left.pop(0)
        if part not in found:
            found.append(part)
            left += parts_of(part)
    return found


def names_in(value: Any, section: str) -> Iterator[str]:
    """The names of entries of a section that an entry refers to, in whatever depth."""
    match value:
        case Entry():
            for name, field in type(value).model_fields.items():
                given = getattr(value, name)
                if given is not None and Refers(section) in field.metadata:
                    yield from [given] if isinstance(given, str) else given
                else:
                    yield from names_in(given, section)
        case tuple():
            for item in value:
                yield from names_in(item, section)


def as_json(value: Any) -> Any:
    """An entry as plain JSON values, under the names that a configuration has; without what was left out for good."""
    match value:
        case Entry():
            kind = type(value)
            held = zip(fields_of(kind).items(), kind.model_fields, strict=True)
            items = ((key, field, getattr(value, name)) for (key, field), name in held)
            return {key: as_json(item) for key, field, item in items if not is_left_out(item, field)}
        case Mapping():
            return {name: as_json(item) for name, item in value.items()}
        case tuple() | list():
            return [as_json(item) for item in value]
        case _:
            return value


def is_left_out(value: Any, field: FieldInfo) -> bool:
    """Whether a value means that the key is omitted."""
    return value is None and (field.default is None or field.default_factory is not None)


def unpinned(key: str, name: str, origin: str, revision: str | None) -> Iterator[str]:
    """A sentence where what should be a folder is not there, or what comes from the hub has no commit."""
    if Path(origin).is_dir():
        return
    if origin.startswith((".", "/")):
        yield f"{key}.{name}: the folder {origin} does not exist."
    elif revision is None:
        yield f"{key}.revision is missing; what comes from the Hugging Face hub is pinned by its commit."


@cache
def plugins(package: str, key: str) -> dict[str, type[Entry]]:
    """The classes with a field `key` in a module, and in its modules if it is a package, by the only value of it.
    Raises `ValueError` if two of them have the same."""
    root = import_module(package)
    modules = [root, *(import_module(f"{package}.{each.name}") for each in iter_modules(getattr(root, "__path__", ())))]
    kinds = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isclass(kind) and issubclass(kind, Entry) and kind.__module__ == module.__name__ and key in kind.model_fields
    ]
    found = {tag_of(kind, key): kind for kind in kinds}
    if len(found) < len(kinds):
        raise ValueError(f"Two classes in the modules of {package} have the same {key}.")
    return dict(sorted(found.items()))


def one_of(
    package: str,
    key: str,
    *,
    default: str | None = None,
    beside: Callable[[Any], tuple[type[Entry], ...]] | None = None,
) -> Any:
    """The union type of the plugins, discriminated by the key, whose default is the default plugin, if any. `beside`
    gives the entries that contribute further keys, for each plugin."""
    kinds = list(plugins(package, key).values())
    if beside is not None:
        kinds = [type(kind.__name__, (kind, *beside(kind)), {"__doc__": kind.__doc__}) for kind in kinds]
    union = Annotated[reduce(or_, kinds), Field(discriminator=key)] if len(kinds) > 1 else kinds[0]
    return Annotated[union, default_of(key, default)] if default else union


def check_choice(name: str, known: Iterable[str], what: str) -> None:
    """Raise `InputError`, which names those that are known, where this one is not."""
    if name not in known:
        raise InputError(f"{what}: {name!r} is not known; known are {', '.join(sorted(known))}.")
