"""A file of vectors in the layout of SPECTER's released ones, and a benchmark's documents of the same ids."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.tables.files import write_table

DIMENSION = 768


def main(folder: Path, documents: int) -> None:
    """Write vectors.jsonl and documents.parquet."""
    folder.mkdir(parents=True)
    draw, names = np.random.default_rng(1), [f"{number:040x}" for number in range(documents)]
    with (folder / "vectors.jsonl").open("w", encoding="utf-8") as file:
        for name in names:
            vector = draw.standard_normal(DIMENSION).tolist()
            file.write(json.dumps({"paper_id": name, "title": f"On the paper {name}", "embedding": vector}) + "\n")
    columns = {"document": names, "title": names, "abstract": pa.nulls(documents, pa.string())}
    more = {"more": pa.array([[]] * documents, pa.list_(pa.string())), "field": pa.nulls(documents, pa.string())}
    write_table(folder / "documents.parquet", "documents", pa.table({**columns, **more}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
