"""The configuration as people and editors read it: every key with type, default and description, and the JSON schema.

All of it is made from the entries. The docstring below a field is its description; Python does not keep it, so it is
read from the source.
"""

import ast
import inspect
import json
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import AfterValidatorFunctionSchema, DictSchema

from cocite.config.configuration import Configuration
from cocite.config.entries import (
    Entry,
    ShortFor,
    discriminator,
    distinct,
    fields_of,
    filled,
    summary_of,
    tag_of,
    variants,
)

TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", tuple: "array", dict: "object"}
CHECKED: Mapping[Any, JsonSchemaValue] = {distinct: {"uniqueItems": True}, filled: {"minItems": 1}}
Row = tuple[str, str, str, str, str]  # the variants that have a key (empty for all), key, type, default and meaning


class _Schema(GenerateJsonSchema):
    """The schema with what pydantic leaves out: names of no other pattern, and what functions check."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        return made | ({"additionalProperties": False} if "patternProperties" in made else {})

    def function_after_schema(self, schema: AfterValidatorFunctionSchema) -> JsonSchemaValue:
        return super().function_after_schema(schema) | CHECKED.get(schema["function"]["function"], {})


def json_schema() -> dict[str, Any]:
    """The JSON schema of a configuration, with descriptions, for editors that check YAML while it is written."""
    schema = Configuration.model_json_schema(schema_generator=_Schema)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["description"] = summary_of(Configuration)
    entries = {kind.__name__: kind for kind in _all_entries(Configuration)}
    for name, node in [("Configuration", schema), *schema["$defs"].items()]:
        if name in entries:
            node["description"] = summary_of(entries[name])
            for key, text in _described(entries[name]).items():
                node["properties"][key]["description"] = text
    return schema


def configuration_page() -> str:
    """Every key of the configuration with type, default and description, a section each key at the top, as Markdown."""
    fields, described = Configuration.model_fields, _described(Configuration)
    sections = {name: field for name, field in fields.items() if any(variants(_item(field.annotation)[0]))}
    lines = ["# Configuration", "", "<!-- Generated from workflow/cocite/config by `make docs`. -->", ""]
    plain = [_row("", "", name, field, described) for name, field in fields.items() if name not in sections]
    lines += [summary_of(Configuration), "", *_table(plain, {""})]
    for name, field in sections.items():
        annotation, mark = _item(field.annotation)
        kinds = list(variants(annotation))
        tags = {tag_of(kind, discriminator(kinds)) for kind in kinds} if len(kinds) > 1 else {""}
        lines += [f"## {name}", "", described[name], "", *_table(_rows(annotation, f"{name}{mark}."), tags)]
    return "\n".join(lines)


def cell(text: str) -> str:
    """A text escaped for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


@cache
def _described(kind: type[Entry]) -> dict[str, str]:
    """The docstrings of the fields of an entry, inherited ones as well, by their keys."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, Entry) and "__annotations__" in vars(each):
            for field, below in pairwise(_classes(each.__module__)[each.__name__].body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        texts[name] = " ".join(text.split())
    return {key: texts[name] for key, name in zip(fields_of(kind), kind.model_fields, strict=True)}


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    parsed = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in parsed.body if isinstance(node, ast.ClassDef)}


def _all_entries(kind: type[Entry]) -> Iterator[type[Entry]]:
    """An entry and all entries below it."""
    yield kind
    for field in kind.model_fields.values():
        for each in variants(_item(field.annotation)[0]):
            yield from _all_entries(each)


def _item(annotation: Any) -> tuple[Any, str]:
    """The type below a key, and the placeholder for its names or numbers: `.<name>`, `[]`, or nothing."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return arguments[1], ".<name>"
    if origin is tuple and any(variants(arguments[0])):
        return arguments[0], "[]"
    if origin in (Annotated, Union, types.UnionType):
        for each in arguments[: 1 if origin is Annotated else None]:
            item, mark = _item(each)
            if mark:
                return item, mark
    return annotation, ""


def _rows(annotation: Any, prefix: str, tag: str = "") -> Iterator[Row]:
    """A row per key of an entry, by variants; `<name>` is any name, and `tag` the enclosing variant, if any."""
    kinds = list(variants(annotation))
    told_apart = discriminator(kinds)
    if told_apart:
        tags = {tag_of(kind, told_apart): kind for kind in kinds}
        default = next((each for each in tags if not fields_of(tags[each])[told_apart].is_required()), "")
        summaries = " ".join(f"`{each}`: {summary_of(kind)}" for each, kind in tags.items())
        meaning = cell(f"{_described(kinds[0])[told_apart]} {summaries}")
        choices = " or ".join(f"`{each}`" for each in tags)
        yield tag, f"`{prefix}{told_apart}`", choices, f"`{default}`" if default else "", meaning
    for kind in kinds:
        described = _described(kind)
        variant = tag_of(kind, told_apart) if len(kinds) > 1 else tag
        for key, field in sorted(fields_of(kind).items(), key=lambda named: not named[1].is_required()):
            if key == told_apart:
                continue
            yield _row(variant, prefix, key, field, described)
            below, mark = _item(field.annotation)
            if any(variants(below)):
                yield from _rows(below, f"{prefix}{key}{mark}.", variant)


def _row(tag: str, prefix: str, key: str, field: FieldInfo, described: Mapping[str, str]) -> Row:
    return tag, f"`{prefix}{key}`", _type(field.annotation, field.metadata), _default(field), cell(described[key])


def _type(annotation: Any, metadata: list[Any] | None = None) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0], list(arguments[1:]))
    below, mark = _item(annotation)
    if mark == "[]":
        return TYPES[tuple]
    if any(variants(below)):
        has_short_form = any(isinstance(mark, ShortFor) for mark in metadata or [])
        return "name, or name and settings" if has_short_form else "names and settings"
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        kinds = dict.fromkeys(_type(each) for each in arguments if each is not type(None))
        return " or ".join(kinds)
    return TYPES[origin or annotation]


def _default(field: FieldInfo) -> str:
    default = field.default
    if isinstance(default, Entry):
        default = getattr(default, "kind", None)
    if field.is_required() or field.default_factory is not None or default in (None, {}):
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)}`"


def _table(rows: Iterable[Row], tags: set[str]) -> list[str]:
    """The rows as a table; keys that variants share are listed once, with their names unless all tags have them."""
    by_cells: dict[tuple[str, ...], list[str]] = {}
    for kind, *cells in rows:
        by_cells.setdefault(tuple(cells), []).append(kind)
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for (*others, meaning), kinds in by_cells.items():
        names = ", ".join(f"`{kind}`" for kind in dict.fromkeys(kinds) if kind and set(kinds) != tags)
        lines.append(f"| {' | '.join(others)} | {f'({names}) ' if names else ''}{meaning} |")
    return [*lines, ""]
