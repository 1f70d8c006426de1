"""Options that many commands share, so that the same thing has the same name everywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cocite.core.gpus import Precision

Output = Annotated[Path, typer.Option(help="Output path, written atomically.")]
Omissions = Annotated[Path, typer.Option(help="Table of what was left out, counted by reason.")]
MemoryMb = Annotated[int, typer.Option(help="Memory that the step may use, MB; beyond it, it spills to disk.")]
Threads = Annotated[int, typer.Option(help="Threads that the step may use.")]
Seed = Annotated[int, typer.Option(help="The run's seed.")]
WrittenSettings = Annotated[Path, typer.Option(help="The resolved settings as JSON, written next to the result.")]
State = Annotated[Path, typer.Option(help="Folder that a killed step resumes from; removed when it is done.")]
Buckets = Annotated[int, typer.Option(help="Number of buckets that big tables are sharded into.")]
Bucket = Annotated[int, typer.Option(help="The bucket to write, from 0.")]
Papers = Annotated[Path, typer.Option(help="Folder of the table papers.")]
Until = Annotated[str | None, typer.Option(help="Last year or day of the corpus; later papers are left out.")]
Citations = Annotated[Path, typer.Option(help="Folder of the table citations.")]
Queries = Annotated[Path, typer.Option(help="Table queries.")]
Vectors = Annotated[Path, typer.Option(help="Table graph_embeddings.")]
Shard = Annotated[
    tuple[int, int], typer.Option(help="Number of the shard of queries, by corpus id, and how many there are.")
]
PrecisionOption = Annotated[
    Precision,
    typer.Option("--precision", help="Number format of computations; auto is bfloat16 if the device supports it."),
]
OnlyPapers = Annotated[
    Sequence[Path],
    typer.Argument(help="Buckets of papers, or triplets: only papers with a text, or those of triplets, are ranked."),
]
Results = Annotated[Path, typer.Option(help="Folder of the results.")]
ConfigFile = Annotated[Path | None, typer.Option(help="The run's configuration, instead of --results.")]
