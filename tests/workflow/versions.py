"""The code behind each rule beside its version: `python -m tests.workflow.versions` records both in versions.txt.

Snakemake runs a finished job again when its rule changes, not when the package does. A rule therefore has a `version`,
which is raised when the same input gives another result. Nobody remembers that every time; so versions.txt holds for
each rule its version and a digest of the code that its command imports from its own stage. A test fails when the code
has changed and the table has not. Whoever changed the code decides whether results differ, and records the decision.

The digest ignores what cannot change a result: formatting, comments, docstrings, annotations, imports, the sentences of
errors and of help, and in which module of the stage a definition stands. It leaves out the rooms below the stages,
where every edit would reach every rule.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cocite.people.doctor.asked import RULE, RULES, rule_files

PACKAGE = RULES.parent / "workflow" / "cocite"
TABLE = Path(__file__).with_name("versions.txt")
WORDS = ("help", "description")
"""Keyword arguments that hold sentences for people."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """The version of a rule, and a digest of the code behind it."""

    number: int
    code: str


@cache
def current() -> dict[str, Version]:
    """The versions of all rules as they are now."""
    text = "".join(path.read_text(encoding="utf-8") for path in rule_files())
    found: dict[str, tuple[int, str, str]] = {}
    for rule in RULE.finditer(text):
        number = re.search(r"^ +version=(\d+),", rule["body"], re.MULTILINE)
        command = re.search(r"\bcocite (\w+) ([\w-]+)", rule["body"].partition(" shell:")[2])
        before = found.get(rule["base"], (0, "", ""))
        stage, step = command.groups() if command else before[1:]
        found[rule["rule"] or rule["use"]] = (int(number[1]) if number else before[0], stage, step)
    return {name: Version(number=number, code=code_of(stage, step)) for name, (number, stage, step) in found.items()}


def recorded() -> dict[str, Version]:
    """The versions of all rules as versions.txt has them."""
    lines = (line.split() for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {rule: Version(number=int(number), code=code) for rule, number, code in lines}


def code_of(stage: str, step: str, package: Path = PACKAGE) -> str:
    """A digest of the command of a step and of all modules of its stage that it imports, directly or not."""
    command = ast.Module(body=_command(package / stage, step), type_ignores=[])
    pending, reached = list(_imported(command, package, stage)), set[Path]()
    while pending:
        file = pending.pop()
        if file not in reached:
            reached.add(file)
            pending += _imported(_parsed(file), package, stage)
    return digest([*command.body, *(statement for file in reached for statement in _parsed(file).body)])


def digest(statements: list[ast.stmt]) -> str:
    """A digest of definitions, in whatever order they stand."""
    bare = {_written(kept) for statement in statements if (kept := _Bare().visit(statement)) is not None}
    return hashlib.sha256("\n".join(sorted(bare)).encode()).hexdigest()[:12]


def _written(node: Any) -> str:
    """A part of code as text that is the same in every version of Python, unlike that of `ast.dump`."""
    if isinstance(node, list):
        return f"[{', '.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (f"{name}={_written(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({', '.join(fields)})"


class _Bare(ast.NodeTransformer):
    """Code without what cannot change a result."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> Any:
        is_docstring = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_docstring else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        return ast.Raise(exc=None, cause=None)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(arg=node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return self.generic_visit(ast.Assign(targets=[node.target], value=node.value or ast.Constant(None)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in WORDS]
        return self.generic_visit(node)


def _command(stage: Path, step: str) -> list[ast.stmt]:
    """The function that is decorated as the command of this name, and the functions beside it that it calls."""
    for file in sorted(stage.rglob("*.py")):
        functions = [node for node in _parsed(file).body if isinstance(node, ast.FunctionDef)]
        for function in functions:
            if step in _names_as_command(function):
                called = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
                return [function, *(other for other in functions if other.name in called)]
    raise LookupError(f"{stage.name} has no command {step}")


def _names_as_command(function: ast.FunctionDef) -> Iterator[str]:
    """The name that a function has as a command; none if it is no command."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(".command"):
            given = [str(argument.value) for argument in decorator.args if isinstance(argument, ast.Constant)]
            yield from given or [function.name.replace("_", "-")]


def _imported(code: ast.AST, package: Path, stage: str) -> Iterator[Path]:
    """The modules of a stage that some code imports; of a package that it imports as a whole, all modules."""
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"cocite.{stage}"):
            parent = package.joinpath(*str(node.module).split(".")[1:])
            for name in node.names:
                inner = parent / name.name
                if inner.is_dir():
                    yield from inner.rglob("*.py")
                elif inner.with_suffix(".py").is_file():
                    yield inner.with_suffix(".py")
                else:
                    yield parent / "__init__.py" if parent.is_dir() else parent.with_suffix(".py")


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    lines = [f"{rule} {version.number} {version.code}\n" for rule, version in sorted(current().items())]
    TABLE.write_text("".join(lines), encoding="utf-8")
