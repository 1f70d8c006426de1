"""Files of records as large as real ones, generated once into a folder and used again.

Rows of citations look like those of Semantic Scholar's official sample: 37% have contexts, 2.1 on average, of 193
characters each. Sentences are drawn from 20,000 made-up words by Zipf's law, so that they pack like English; citing
papers have 20 references each, 15% of the references are unresolved. A shard has as many rows as one of 2026: 5.1
billion by 358.

A line of a work has 6 kB, as a record of OpenAlex has: most of it is what a corpus does not need (authors with
institutions, locations, concepts, related works, counts by year). Half of the works have an abstract, of 160 words on
average, of the same words; a work has 18 references on average, one to three topics, four authors.
"""

import gzip
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.corpus.made_openalex import SCHEMA, url_of, work

ROWS_OF_A_SHARD = 14_200_000
"""Some 4.1 GB of JSON."""
SHARD_PAPERS = 280_000_000
SHARD_ROWS_AT_ONCE = 100_000
SENTENCES = 50_000
INTENTS = ('["background"]', '["methodology"]', '["result"]', "null", '["background","methodology"]')

WORKS = 400_000
"""As many as a file of a copy has: some 2.3 GB of JSON."""
DISTINCT = 20_000
"""Works that are made; the others differ from one of them by the id."""
FIRST_WORK = 4_000_000_000
FIELD_NAMES = ["Computer Science", "Medicine", "Physics and Astronomy", "Social Sciences", "Engineering", "Mathematics"]


def citation_shards(folder: Path, count: int, rows: int = ROWS_OF_A_SHARD) -> list[Path]:
    """Paths of so many shards, made where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{rows}-{number}.gz" for number in range(count)]
    missing = [(path, rows, seed) for seed, path in enumerate(paths) if not path.exists()]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        list(processes.map(_write_shard, *zip(*missing, strict=True))) if missing else None
    return paths


def _write_shard(path: Path, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sentences = [json.dumps(sentence, ensure_ascii=False) for sentence in sentences_of(rng)]
    temporary = path.with_suffix(".tmp")
    with gzip.open(temporary, "wb", compresslevel=6) as file:
        for first in range(0, rows, SHARD_ROWS_AT_ONCE):
            count = min(SHARD_ROWS_AT_ONCE, rows - first)
            file.write(_citations(rng, sentences, first, count).encode())
    temporary.rename(path)


def sentences_of(rng: np.random.Generator) -> list[str]:
    letters, frequencies = np.array(list("etaoinshrdlucmfwypvbgkjqxz")), 1 / np.arange(1, 27)
    lengths = rng.integers(2, 12, 20_000)
    words = ["".join(rng.choice(letters, length, p=frequencies / frequencies.sum())) for length in lengths]
    zipf = 1 / np.arange(1, len(words) + 1)
    drawn = (rng.choice(len(words), size, p=zipf / zipf.sum()) for size in rng.integers(8, 41, SENTENCES))
    return [" ".join(words[word] for word in sentence).capitalize() + " (Ünal, 2017)." for sentence in drawn]


def _citations(rng: np.random.Generator, sentences: list[str], first: int, count: int) -> str:
    citing = rng.integers(1, SHARD_PAPERS, count // 20 + 1).repeat(20)[:count]
    cited = rng.integers(1, SHARD_PAPERS, count)
    cited[rng.random(count) < 0.15] = -1
    return citation_lines(rng, sentences, np.arange(first, first + count), citing, cited)


def citation_lines(
    rng: np.random.Generator, sentences: list[str], numbers: np.ndarray, citing: np.ndarray, cited: np.ndarray
) -> str:
    """Records of citations; of what is unresolved, the cited paper is -1."""
    influential = (rng.random(len(numbers)) < 0.05).tolist()
    columns = [numbers.tolist(), citing.tolist(), cited.tolist(), influential]
    rows = zip(*columns, *_contexts(rng, sentences, len(numbers)), strict=True)
    return "".join(
        f'{{"citationid":{number},"citingcorpusid":{citing},"citedcorpusid":{"null" if cited < 0 else cited},'
        f'"isinfluential":{"true" if is_influential else "false"},"contexts":{contexts},"intents":{intents}}}\n'
        for number, citing, cited, is_influential, contexts, intents in rows
    )


def _contexts(rng: np.random.Generator, sentences: list[str], count: int) -> tuple[list[str], list[str]]:
    numbers = np.where(rng.random(count) < 0.37, rng.geometric(0.47, count), 0).tolist()
    drawn = iter(rng.integers(0, len(sentences), sum(numbers)).tolist())
    named = iter(rng.integers(0, len(INTENTS), sum(numbers)).tolist())
    contexts, intents = [], []
    for number in numbers:
        contexts.append(f"[{','.join(sentences[next(drawn)] for _ in range(number))}]" if number else "null")
        intents.append(f"[{','.join(INTENTS[next(named)] for _ in range(number))}]" if number else "null")
    return contexts, intents


def json_lines(folder: Path, works: int = WORKS) -> Path:
    """Path of a file of works as JSON Lines in gzip, made where it is not there yet."""
    path = folder / "updated_date=2026-06-24_part_0000.gz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = [_as_json({key: record[key] for key in record if key != "id"})[1:] for record in _made()]
        with gzip.open(path.with_suffix(".tmp"), "wb", compresslevel=6) as file:
            for number in range(works):
                file.write(f'{{"id":"{url_of(FIRST_WORK + number)}",{made[number % len(made)]}\n'.encode())
        path.with_suffix(".tmp").rename(path)
    return path


def parquet(folder: Path, works: int = WORKS) -> Path:
    """Path of a file of the same works in Parquet, with snappy, made where it is not there yet."""
    path = folder / "updated_date=2026-06-24_part_0000.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        column = "abstract_inverted_index"
        rows = [record | {column: record[column] and _as_json(record[column])} for record in _made()]
        table = pa.Table.from_pylist(rows, SCHEMA)
        with pq.ParquetWriter(path.with_suffix(".tmp"), SCHEMA, compression="snappy") as writer:
            for first in range(0, works, DISTINCT):
                count = min(DISTINCT, works - first)
                ids = pa.array([url_of(FIRST_WORK + first + row) for row in range(count)])
                writer.write_table(table.slice(0, count).set_column(0, SCHEMA.field("id"), ids))
        path.with_suffix(".tmp").rename(path)
    return path


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _made() -> list[dict]:
    rng = np.random.default_rng(24)
    sentences = [sentence.removesuffix(" (Ünal, 2017).") for sentence in sentences_of(rng)]
    return [_work(rng, sentences, number) for number in range(DISTINCT)]


def _work(rng: np.random.Generator, sentences: list[str], number: int) -> dict:
    drawn = [sentences[place] for place in rng.integers(0, len(sentences), 8)]
    fields = [FIELD_NAMES[place] for place in rng.integers(0, len(FIELD_NAMES), rng.integers(1, 4))]
    references = (FIRST_WORK + rng.integers(0, 240_000_000, rng.geometric(1 / 18))).tolist()
    record = work(
        FIRST_WORK + number,
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
