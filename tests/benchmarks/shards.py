"""Shards of citations as large as real ones, generated once into a folder and used again.

Rows look like those of the official sample of citations: 37% have contexts, 2.1 on average, of 193 characters each.
Sentences are drawn from 20,000 made-up words by Zipf's law, so that they pack like English; citing papers have 20
references each, 15% of the references are unresolved. A shard has as many rows as one of 2026: 5.1 billion by 358.
"""

import gzip
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

ROWS_OF_A_SHARD = 14_200_000
"""Some 4.1 GB of JSON."""
_PAPERS = 280_000_000
_ROWS_AT_ONCE = 100_000
_SENTENCES = 50_000
_INTENTS = ('["background"]', '["methodology"]', '["result"]', "null", '["background","methodology"]')


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
        for first in range(0, rows, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, rows - first)
            file.write("".join(_rows(rng, sentences, first, count)).encode())
    temporary.rename(path)


def sentences_of(rng: np.random.Generator) -> list[str]:
    letters, frequencies = np.array(list("etaoinshrdlucmfwypvbgkjqxz")), 1 / np.arange(1, 27)
    lengths = rng.integers(2, 12, 20_000)
    words = ["".join(rng.choice(letters, length, p=frequencies / frequencies.sum())) for length in lengths]
    zipf = 1 / np.arange(1, len(words) + 1)
    drawn = (rng.choice(len(words), size, p=zipf / zipf.sum()) for size in rng.integers(8, 41, _SENTENCES))
    return [" ".join(words[word] for word in sentence).capitalize() + " (Ünal, 2017)." for sentence in drawn]


def _rows(rng: np.random.Generator, sentences: list[str], first: int, count: int) -> list[str]:
    citing = rng.integers(1, _PAPERS, count // 20 + 1).repeat(20)[:count].tolist()
    cited = [
        "null" if unresolved else paper
        for paper, unresolved in zip(rng.integers(1, _PAPERS, count).tolist(), rng.random(count) < 0.15, strict=True)
    ]
    influential = ["true" if is_so else "false" for is_so in rng.random(count) < 0.05]
    contexts, intents = contexts_of(rng, sentences, count)
    return [
        f'{{"citationid":{first + row},"citingcorpusid":{citing[row]},"citedcorpusid":{cited[row]},'
        f'"isinfluential":{influential[row]},"contexts":{contexts[row]},"intents":{intents[row]}}}\n'
        for row in range(count)
    ]


def contexts_of(rng: np.random.Generator, sentences: list[str], count: int) -> tuple[list[str], list[str]]:
    numbers = np.where(rng.random(count) < 0.37, rng.geometric(0.47, count), 0).tolist()
    drawn = iter(rng.integers(0, len(sentences), sum(numbers)).tolist())
    named = iter(rng.integers(0, len(_INTENTS), sum(numbers)).tolist())
    contexts, intents = [], []
    for number in numbers:
        contexts.append(f"[{','.join(sentences[next(drawn)] for _ in range(number))}]" if number else "null")
        intents.append(f"[{','.join(_INTENTS[next(named)] for _ in range(number))}]" if number else "null")
    return contexts, intents
