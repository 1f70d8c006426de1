"""Peak memory of trainings beside what their job was given: three encoders, 64 to 512 tokens, batches of 32 to 4,096.

Each takes two steps of MNRL in float32 and chooses its mini-batches itself (`mini_batch_tokens: auto`).
"""

from pathlib import Path
from typing import Any

from tests.benchmarks.made_triplets import PER_QUERY, paper_text, write_encoder, write_triplets
from tests.benchmarks.measuring import cocite, run, say
from tests.encoder.building import write_papers, write_queries
from tests.examples import files_in

from cocite.core.atomic import read_json

SIZES = {"small": {"layers": 2, "hidden": 64, "heads": 2}, "minilm": {"layers": 6, "hidden": 384, "heads": 12}}
CASES = (
    ("small", 64, 32, 1500),
    ("small", 64, 4096, 1500),
    ("small", 512, 512, 1500),
    ("minilm", 64, 512, 4000),
    ("minilm", 128, 32, 4000),
    ("minilm", 128, 64, 4000),
    ("minilm", 128, 64, 8000),
    ("minilm", 512, 32, 4000),
    ("static", 512, 1024, 2000),
    ("static", 512, 4096, 2000),
)
"""The encoder, the most tokens of a text, the triplets of a batch, and the memory of the job, MB."""


def main(folder: Path) -> None:
    for kind, length, batch_size, memory_mb in CASES:
        at = folder / f"{kind}-{length}-{batch_size}-{memory_mb}"
        write_start(at / "encoder", kind, length)
        for seed, (name, triplets) in enumerate({"training": 2 * batch_size, "validation": 15}.items()):
            write_triplets(at / name, -(-triplets // PER_QUERY), seed, at / "encoder")
        sets = [path for name in ("training", "validation") for path in vars(files_in(at / name)).values()]
        settings = {"loss": "mnrl", "batch_size": batch_size, "max_steps": 2, "validations": 1}
        written = {"output": "model", "curves": "curves.parquet", "written_settings": "settings.json"}
        written |= {"events": "tensorboard", "state": "state"}
        options = {"encoder": at / "encoder", "settings": settings, "precision": "float32", "threads": 2}
        options |= {"memory_mb": memory_mb, "seed": 1, "training_seed": 1}
        cost = run(cocite("encoder", "train", *sets, **options, **{name: at / file for name, file in written.items()}))
        chosen = read_json(at / "settings.json")["settings"]["mini_batch_tokens"]
        say(f"{kind}, {length} tokens, {batch_size} triplets, {chosen} at once, in {memory_mb} MB: {cost}")


def write_start(folder: Path, kind: str, length: int, dimension: int = 256, texts: Any = None) -> None:
    if kind != "static":
        write_encoder(folder, length=length, **SIZES[kind])
        return
    import numpy as np

    from cocite.config.encoders import StaticSettings
    from cocite.encoder.build import build_encoder

    random, above = np.random.default_rng(9), folder.parent
    texts = texts or {paper: paper_text(random) for paper in range(6000)}
    papers = write_papers(above / "papers.parquet", texts)
    queries = write_queries(above / "queries.parquet", {})
    settings = StaticSettings(kind="static", max_length=length, dimension=dimension)
    build_encoder([papers], queries, folder, settings=settings, seed=1)
