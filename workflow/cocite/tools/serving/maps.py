"""Where the report's maps place papers of the corpus, by each model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.config.stale import configuration_of, configured_in
from cocite.core.tables import TABLES
from cocite.core.tables.documents import NO_PAPER, papers_of_documents
from cocite.core.tables.files import read_table
from cocite.core.tables.places import files_by_place, path_of


@dataclass(frozen=True, kw_only=True)
class PaperMap:
    """A map as one model places its papers."""

    name: str
    model: str
    """Name of the model and its seed, such as cocite/1."""
    path: Path
    """Its table `map_points`."""


def maps_of(results: Path) -> list[PaperMap]:
    """The maps of the configuration that a run has made, in the order of their names."""
    places = files_by_place(results, TABLES["map_points"], configured_in(configuration_of(results)))
    found = []
    for place, (path,) in places.items():
        values = dict(place)
        found.append(PaperMap(name=values["map"], model=f"{values['model']}/{values['seed']}", path=path))
    return found


def points_of(results: Path, chosen: PaperMap) -> dict[str, Any]:
    """The points of a map: corpus ids, x and y of its documents that are papers of the corpus."""
    table = read_table(chosen.path, "map_points")
    known = papers_of_documents(_papers_of_benchmark(results, chosen.name))
    ids = known(table["document"].combine_chunks())
    is_paper = ids != NO_PAPER
    return {
        # Texts, since JavaScript has no whole numbers of 63 bits.
        "papers": [str(paper) for paper in ids[is_paper].tolist()],
        "x": table["x"].to_numpy()[is_paper].tolist(),
        "y": table["y"].to_numpy()[is_paper].tolist(),
    }


def _papers_of_benchmark(results: Path, name: str) -> Path | None:
    """The table document_papers of the benchmark that a map shows; None where its documents have corpus ids."""
    config = configuration_of(results)
    if config is None:
        return None
    path = path_of(results, "document_papers", benchmark=config["maps"][name]["benchmark"])
    return path if path.is_file() else None
