"""What entries of the configuration choose among, a module each: samplers, losses and benchmarks.

A choice is a module in the folder of its kind, known by its name as soon as it lies there. `SCHEMA` in it says, as JSON
Schema, what an entry that chooses it may hold beside what all entries may; the first sentence of its docstring tells
people what it is. Both are read from the source, because such modules import compiled libraries, and every job reads
the configuration.
"""

import ast
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from cocite.config.schema_errors import fault
from cocite.ground.errors import InputError

PACKAGE = Path(__file__).parents[1]
KEYWORD = "choices"
"""What a property has in the schema in place of `enum`: the folder of the modules that it chooses among."""

Schema = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the source of one module tells."""

    summary: str
    """The first sentence of its docstring."""
    constants: Mapping[str, Any]
    """What it assigns to names in capitals, as far as these are literals."""

    @property
    def schema(self) -> Schema | None:
        """What an entry that chooses it may hold; none where it says nothing."""
        return self.constants.get("SCHEMA")

    @property
    def keys(self) -> Mapping[str, Any]:
        """Its own keys of an entry, with what each may hold."""
        return (self.schema or {}).get("properties", {})

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of its own keys where they are left out."""
        return {name: key["default"] for name, key in self.keys.items() if "default" in key}

    def check(self, given: Mapping[str, Any], what: str) -> None:
        """Raise `InputError`, which says what was given, for keys that are not its own and values they may not have."""
        for name, value in given.items():
            check_choice(name, self.keys, what)
            for error in Draft202012Validator(self.keys[name]).iter_errors(value):
                raise InputError(f"{what}: {name} {fault(error)}.")


def choices(folder: Path | str) -> dict[str, Choice]:
    """The modules of a folder by their names; where it is relative, of one in the package."""
    files = sorted((PACKAGE / folder).glob("[!_]*.py"))
    return {file.stem: _read(file) for file in files}


def check_choice(name: str, known: Iterable[str], what: str) -> None:
    """Raise `InputError`, which names those that are known, where this one is not."""
    if name not in known:
        raise InputError(f"{what}: {name!r} is not known; known are {', '.join(sorted(known))}.")


def fill_in(schema: Schema) -> Schema:
    """The schema with all choices written out: their names, what they are, and what goes with each."""
    for definition in schema["$defs"].values():
        for name, key in list(definition.get("properties", {}).items()):
            if isinstance(key, dict) and KEYWORD in key:
                _write_out(definition, name, choices(key.pop(KEYWORD)))
    return schema


def _write_out(definition: Schema, chosen: str, found: Mapping[str, Choice]) -> None:
    """Let a key of an entry be one of the choices, and other keys follow from it."""
    key, common = definition["properties"][chosen], definition["properties"]
    told = [f"{name} – {choice.summary}" for name, choice in found.items()]
    key.update(enum=list(found), description=" ".join([key["description"], *told]))
    branch = definition.pop("else", None)
    for name, choice in reversed(list(found.items())):
        if choice.schema is not None:
            own = {
                "title": name,
                "additionalProperties": False,
                **choice.schema,
                "properties": {**dict.fromkeys(common, True), **choice.keys},
            }
            is_chosen = {"properties": {chosen: {"const": name}}}
            branch = own if branch is None else {"if": is_chosen, "then": own, "else": branch}
    definition.update(branch or {})


def _read(file: Path) -> Choice:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").split("\n\n")[0]
    constants = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                with suppress(ValueError):
                    constants[name] = ast.literal_eval(value)
    return Choice(summary=" ".join(first.split()), constants=constants)
