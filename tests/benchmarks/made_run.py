"""Write what `cocite serve` reads of a run: papers with titles, citations, co-citations, and the vectors of one model.

Vectors lie in clusters as `clustered_vectors` has them. Titles have ten words, drawn by Zipf's law; a paper cites
`REFERENCES` random ones with larger ids and is co-cited with the same. A file of each table holds some consecutive ids.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.benchmarks.clustered_vectors import batches

from cocite.core.randomness import generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_table

REFERENCES, VOCABULARY, WORDS = 10, 50_000, 10
SYLLABLES = [f"{first}{second}" for first in "bdfghjklmnprstvwz" for second in "aeiou"]


def main(results: Path, papers: int, dimension: int) -> None:
    """Write the tables, and a folder that stands for the encoder."""
    model = results / "encoder/model/seed-1/model"
    model.mkdir(parents=True)
    (model / "modules.json").write_text("[]")
    for number, batch in enumerate(batches(papers, dimension, gap=1)):
        ids = batch["corpusid"].to_numpy()
        drawn = generator(1, "papers of a run", number)
        write_table(results / f"encoder/model/seed-1/papers/{number}.parquet", "paper_embeddings", [batch])
        _write(results / f"corpus/papers/{number}.parquet", "papers", _papers(ids, drawn))
        others = ids[:, None] + np.cumsum(drawn.integers(1, papers // REFERENCES, (len(ids), REFERENCES)), axis=1)
        pairs = {"citing": np.repeat(ids, REFERENCES), "cited": others.ravel()}
        traits = {
            "influential": np.zeros(others.size, bool),
            "intents": pa.array([[]] * others.size, pa.list_(pa.string())),
        }
        _write(results / f"corpus/citations/{number}.parquet", "citations", {**pairs, **traits})
        count = drawn.integers(1, 20, others.size)
        columns = {"paper": pairs["citing"], "other": pairs["cited"], "count": count}
        _write(results / f"graph/cocitation/cocitations/{number}.parquet", "cocitations", columns)


def _papers(ids: np.ndarray, drawn: np.random.Generator) -> Mapping[str, Any]:
    words = np.minimum(drawn.zipf(1.3, (len(ids), WORDS)), VOCABULARY)
    titles = [" ".join(map(_word, row)) for row in words.tolist()]
    counts = drawn.integers(0, 1000, len(ids))
    nothing = pa.nulls(len(ids), pa.string())
    texts = {"title": titles, "abstract": nothing, "venue": nothing, "doi": nothing, "fields": [[]] * len(ids)}
    numbers = {"year": drawn.integers(1950, 2025, len(ids)), "citation_count": counts, "reference_count": counts}
    return {"corpusid": ids, "has_text": np.zeros(len(ids), bool), **texts, **numbers}


def _word(number: int) -> str:
    """A word of three syllables for a number."""
    return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(3))


def _write(path: Path, name: str, columns: Mapping[str, Any]) -> None:
    schema = empty_schema(TABLES[name])
    write_table(
        path, name, pa.table([pa.array(columns[each]).cast(schema.field(each).type) for each in columns], [*columns])
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
