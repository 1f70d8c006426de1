"""The spaces of aspects: linear maps of an encoder's vectors, in each of which papers linked by an aspect are near.

A map z = W h + b (SciAspect, 2023) keeps the number of dimensions. It is in `aspects/<aspect>` of the encoder's folder,
which sentence-transformers opens too; `aspects/concatenated` has all maps. NumPy maps ready vectors, as importing torch
takes longer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.graphs import ASPECTS, CONCATENATED, SPACES
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.options import Output
from cocite.core.progress import report
from cocite.core.tables.files import open_table, read_table, vector_column, vectors_of, vectors_of_papers, write_table

if TYPE_CHECKING:
    from torch import nn

MAP, WEIGHTS = "2_Dense", "model.safetensors"
ROWS_AT_ONCE = 4096
"""Vectors that are written together: as many as an embedding writes, so that tables have the same bytes."""


class LinearMap(NamedTuple):
    """A map to a space: its weight, dimensions of the space × dimensions of the encoder, and its bias."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors in the space, documents × dimensions."""
        return vectors @ self.weight.T + self.bias


def spaces_in(folder: Path) -> list[str]:
    """The spaces in the folder of an encoder, the concatenated one last."""
    return [name for name in (*ASPECTS, CONCATENATED) if (folder / SPACES / name / "modules.json").is_file()]


def read_map(folder: Path, name: str) -> LinearMap:
    """The map of a space in the folder of an encoder. Raises `InputError` if there is no such space."""
    from safetensors.numpy import load_file

    if name not in spaces_in(folder):
        raise InputError(f"{folder}: has no space {name}; it has {', '.join(spaces_in(folder)) or 'none'}.")
    weights = load_file(folder / SPACES / name / MAP / WEIGHTS)
    return LinearMap(weights["linear.weight"], weights["linear.bias"])


def map_vectors(
    embeddings: Annotated[Path, typer.Argument(help="Table document_embeddings of a model.")],
    model: Annotated[Path, typer.Option(help="Folder of the model.")],
    space: Annotated[str, typer.Option(help="Which of its spaces: an aspect, or concatenated.")],
    output: Output,
) -> None:
    """Map vectors of a model to a space of an aspect. Raises `InputError` where the model has no such space."""
    file = open_table(embeddings, "document_embeddings")
    to_space = read_map(model, space)

    def mapped(batch: pa.RecordBatch) -> pa.RecordBatch:
        column = vector_column(to_space.of(vectors_of(pa.table(batch))))
        return batch.set_column(batch.schema.get_field_index("vector"), "vector", column)

    write_table(output, "document_embeddings", map(mapped, file.iter_batches(ROWS_AT_ONCE)))


def select_vectors(
    documents: Annotated[Path, typer.Argument(help="The table documents, whose ids are those of papers.")],
    vectors: Annotated[Path, typer.Option(help="Folder of the tables paper_embeddings of all buckets.")],
    output: Annotated[Path, typer.Option(help="The table document_embeddings.")],
    adapters: Annotated[
        Sequence[str], typer.Option(help="The adapter by which the papers were embedded; left out for none.")
    ] = (),
) -> None:
    """Write the vectors of papers as those of documents, in the order of these; one without a vector is left out."""
    names = read_table(documents, "documents", ["document"])["document"].combine_chunks()
    papers = names.cast(pa.int64()).to_numpy()
    rising, place = np.unique(papers, return_inverse=True)
    of_papers, is_there = vectors_of_papers(vectors, "paper_embeddings", rising)
    kept = np.flatnonzero(is_there[place])
    [adapter] = adapters or [""]
    vector = pa.list_(pa.float32(), of_papers.shape[1])
    schema = pa.schema({"adapter": pa.string(), "document": pa.string(), "vector": vector})
    parts = (kept[start : start + ROWS_AT_ONCE] for start in range(0, len(kept), ROWS_AT_ONCE))
    rows = (
        pa.record_batch([[adapter] * len(part), names.take(part), vector_column(of_papers[place[part]])], schema=schema)
        for part in parts
    )
    write_table(output, "document_embeddings", pa.RecordBatchReader.from_batches(schema, rows))
    report(f"{len(kept)} of {len(papers)} documents have the vector of their paper.")


def read_space(folder: Path, name: str) -> "nn.Linear":
    """The map of a space (see `read_map`) as a layer."""
    import torch

    from cocite.encoder.layers import linear_of

    weight, bias = map(torch.from_numpy, read_map(folder, name))
    return linear_of(weight, bias)


def save_spaces(maps: Mapping[str, "nn.Linear"], folder: Path) -> None:
    """Write the maps of aspects, in their order, and all of them as one, to the folder of an encoder."""
    import torch

    from cocite.encoder.layers import DENSE, Dense, linear_of, save_dense
    from cocite.encoder.model import CARD

    weights, biases = zip(*((linear.weight.detach(), linear.bias.detach()) for linear in maps.values()), strict=True)
    concatenated = linear_of(torch.cat(weights), torch.cat(biases))
    modules = read_json(folder / "modules.json")
    number = len(modules)
    for name, linear in {**maps, CONCATENATED: concatenated}.items():
        place = folder / SPACES / name
        place.mkdir(parents=True)
        for file in sorted(folder.iterdir()):
            if file.name not in (SPACES, CARD, "modules.json"):
                (place / file.name).symlink_to(Path("..", "..", file.name))
        last = {"idx": number, "name": str(number), "path": MAP, "type": DENSE}
        write_json(place / "modules.json", [*modules, last])
        save_dense(Dense(linear), place / MAP)
