"""Plugins found by name: engines, samplers, losses and benchmarks, each a class in the package of its kind.

Adding a module to that folder registers it. Its class is an `Entry`: the fields are the keys of an entry of the
configuration, one of them has the plugin's name as its only value, and a method does the work. Every job imports all
plugins with the configuration, so slow imports belong inside the method.
"""

from collections.abc import Callable, Iterable
from functools import cache, reduce
from importlib import import_module
from inspect import isclass
from operator import or_
from pkgutil import iter_modules
from typing import Annotated, Any

from pydantic import Field

from cocite.config.entries import Entry, default_of, tag_of
from cocite.core.errors import InputError


@cache
def plugins(package: str, key: str) -> dict[str, type[Entry]]:
    """The classes with a field `key` in a module, and in its modules if it is a package, by the only value of it.

    Raises `ValueError` if two of them have the same.
    """
    root = import_module(package)
    names = [name for _, name, _ in iter_modules(getattr(root, "__path__", ()))]
    kinds = [
        kind
        for module in (root, *(import_module(f"{package}.{name}") for name in names))
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
