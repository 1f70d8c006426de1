"""What may import what: tools above the stages, these side by side, and below them the plan and two rooms."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "workflow" / "cocite"
STAGES = ("corpus", "graph", "embeddings", "neighbours", "triplets")
STAGES += ("encoder", "retrieval", "baselines", "evaluation", "report")
FLOORS = {"core": 0, "config": 1, **dict.fromkeys((*STAGES, "demo"), 3), "plan": 2, "tools": 4, "cli": 5}
CARRIED_ALONE = {"encoder": {"polars", "duckdb", "faiss"}, "core/tables": {"polars", "duckdb", "numba", "torch"}}
"""What a room does without: the encoder goes to a GPU machine alone, and tables are read on Arrow alone."""


def imports(file: Path) -> set[str]:
    """The modules that a file names in its imports, within functions as well."""
    found = set()
    for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found |= {name.name for name in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            found |= {f"{statement.module}.{name.name}" for name in statement.names}
    return found


ROOMS = {room: sorted((PACKAGE / room).rglob("*.py")) or [PACKAGE / f"{room}.py"] for room in FLOORS}


def test_nothing_lies_loose_beside_the_rooms() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert there == set(FLOORS)


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_from_lower_floors_only(room: str) -> None:
    upward = [
        (file.name, module)
        for file in ROOMS[room]
        for module in imports(file)
        if module.startswith("cocite.") and (other := module.split(".")[1]) in FLOORS
        if other != room and FLOORS[other] >= FLOORS[room]
    ]
    assert not upward


@pytest.mark.parametrize(
    ("room", "library"), [(room, name) for room, names in CARRIED_ALONE.items() for name in sorted(names)]
)
def test_a_room_does_without_a_library(room: str, library: str) -> None:
    files = (PACKAGE / room).rglob("*.py")
    assert not [file.name for file in files for module in imports(file) if module.split(".")[0] == library]


def test_no_file_takes_the_name_of_its_folder_for_a_column() -> None:
    """DuckDB would, of a folder such as `year=2020`, unless a query says otherwise."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert not [path for path, text in texts.items() if re.search(r"read_(parquet|json|csv)\([${](?!.*hive)", text)]
