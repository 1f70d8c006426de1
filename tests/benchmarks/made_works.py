"""Files of works as large as a real copy's, generated once into a folder and used again.

A line has 6 kB, as a record of OpenAlex has: most of it is what a corpus does not need (authors with institutions,
locations, concepts, related works, counts by year). Half of the works have an abstract, of 160 words on average, drawn
from 20,000 made-up words by Zipf's law; a work has 18 references on average, one to three topics, four authors.
"""

import gzip
import json
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.shards import sentences_of
from tests.corpus.made_openalex import SCHEMA, url_of, work

WORKS = 400_000
"""As many as a file of a copy has: some 2.3 GB of JSON."""
_DISTINCT = 20_000
"""Works that are made; the others differ from one of them by the id."""
_FIRST = 4_000_000_000
_FIELDS = ["Computer Science", "Medicine", "Physics and Astronomy", "Social Sciences", "Engineering", "Mathematics"]


def json_lines(folder: Path, works: int = WORKS) -> Path:
    """Path of a file of JSON Lines in gzip, made where it is not there yet."""
    path = folder / "updated_date=2026-06-24_part_0000.gz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = [_as_json({key: record[key] for key in record if key != "id"})[1:] for record in _made()]
        cores = os.cpu_count() or 1
        bounds = np.linspace(0, works, cores + 1).astype(int).tolist()
        with ProcessPoolExecutor(cores) as processes:
            members = [processes.submit(_write_member, path, made, *pair) for pair in pairwise(bounds)]
            parts = [member.result() for member in members]
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part.read_bytes())
                part.unlink()
        temporary.rename(path)
    return path


def parquet(folder: Path, works: int = WORKS) -> Path:
    """Path of a file of the same works in Parquet, with snappy, made where it is not there yet."""
    path = folder / "updated_date=2026-06-24_part_0000.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made, column = _made(), "abstract_inverted_index"
        rows = [record | {column: record[column] and _as_json(record[column])} for record in made]
        table = pa.Table.from_pylist(rows, SCHEMA)
        with pq.ParquetWriter(path.with_suffix(".tmp"), SCHEMA, compression="snappy") as writer:
            for first in range(0, works, _DISTINCT):
                count = min(_DISTINCT, works - first)
                ids = pa.array([url_of(_FIRST + first + row) for row in range(count)])
                writer.write_table(table.slice(0, count).set_column(0, SCHEMA.field("id"), ids))
        path.with_suffix(".tmp").rename(path)
    return path


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _write_member(path: Path, made: list[str], first: int, last: int) -> Path:
    part = path.with_suffix(f".{first}")
    with gzip.open(part, "wb", compresslevel=6) as file:
        for number in range(first, last):
            file.write(f'{{"id":"{url_of(_FIRST + number)}",{made[number % len(made)]}\n'.encode())
    return part


def _made() -> list[dict]:
    rng = np.random.default_rng(24)
    sentences = [sentence.removesuffix(" (Ünal, 2017).") for sentence in sentences_of(rng)]
    return [_work(rng, sentences, number) for number in range(_DISTINCT)]


def _work(rng: np.random.Generator, sentences: list[str], number: int) -> dict:
    drawn = [sentences[place] for place in rng.integers(0, len(sentences), 8)]
    fields = [_FIELDS[place] for place in rng.integers(0, len(_FIELDS), rng.integers(1, 4))]
    references = (_FIRST + rng.integers(0, 240_000_000, rng.geometric(1 / 18))).tolist()
    record = work(
        _FIRST + number,
        title=drawn[0][:90],
        year=int(rng.integers(1950, 2026)),
        venue=f"Journal of {drawn[1][:30]}",
        fields=fields,
        doi=f"10.1234/{rng.integers(10**9)}",
        mag=str(rng.integers(10**10)),
        citation_count=int(rng.geometric(0.1)),
        authors=[f"{name[:6]} {name[6:14]}" for name in drawn[2:6]],
        abstract=". ".join(drawn[1:8]) + " – é." if rng.random() < 0.5 else None,
        references=references,
        related_works=[url_of(each) for each in rng.integers(1, 10**10, 10).tolist()],
        counts_by_year=[{"year": year, "cited_by_count": int(rng.integers(9))} for year in range(2015, 2026)],
    )
    for authorship in record["authorships"]:
        institution = _entity(rng, "I", f"University of {drawn[6][:20]}")
        institution |= {"ror": f"https://ror.org/{rng.integers(10**8)}", "country_code": "DE", "type": "education"}
        authorship["institutions"] = [institution | {"lineage": [institution["id"]] * 2}]
    record["locations"] = [record["primary_location"] | {"license": "cc-by", "version": "publishedVersion"}] * 2
    record["concepts"] = [_entity(rng, "C", sentence[:20]) | {"level": 1, "score": 0.31} for sentence in drawn]
    return record


def _entity(rng: np.random.Generator, kind: str, name: str) -> dict:
    return {"id": f"https://openalex.org/{kind}{rng.integers(10**10)}", "display_name": name}
