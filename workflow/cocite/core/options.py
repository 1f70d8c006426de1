"""Options that many commands share, so that the same thing has the same name everywhere; and what `precision` means."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    import torch

Precision = Literal["auto", "float32", "bfloat16"]
CPU_UNITS = ("amx_bf16", "avx512_bf16")
"""What a CPU that multiplies bfloat16 faster than float32 has, one of them, in torch's words."""

Output = Annotated[Path, typer.Option(help="What is written: a file or a folder, whole or not at all.")]
Omissions = Annotated[Path, typer.Option(help="Table of what was left out, counted by reason.")]
MemoryMb = Annotated[int, typer.Option(help="Memory that the step may use, MB; beyond it, it spills to disk.")]
Threads = Annotated[int, typer.Option(help="Threads that the step may use.")]
Seed = Annotated[int, typer.Option(help="The run's seed.")]
WrittenSettings = Annotated[Path, typer.Option(help="The resolved settings, written beside the result as JSON.")]
State = Annotated[Path, typer.Option(help="Folder that a killed step resumes from; removed when it is done.")]
Buckets = Annotated[int, typer.Option(help="Number of buckets that big tables are sharded into.")]
Bucket = Annotated[int, typer.Option(help="The bucket to write, from 0.")]
Papers = Annotated[Path, typer.Option(help="Folder of the table papers.")]
Citations = Annotated[Path, typer.Option(help="Folder of the table citations.")]
Queries = Annotated[Path, typer.Option(help="Table queries.")]
Vectors = Annotated[Path, typer.Option(help="Table graph_embeddings.")]
Shard = Annotated[
    tuple[int, int], typer.Option(help="Number of the shard of queries, by corpus id, and how many there are.")
]
PrecisionOption = Annotated[
    Precision,
    typer.Option("--precision", help="What it computes in; auto is bfloat16 where the device has units for it."),
]
OnlyPapers = Annotated[
    Sequence[Path],
    typer.Argument(help="Buckets of papers, or triplets: only papers with a text, or those of triplets, are ranked."),
]
Results = Annotated[Path, typer.Option(help="Folder of the results.")]
ConfigFile = Annotated[Path | None, typer.Option(help="The run's configuration, instead of --results.")]


def computes_in(precision: Precision, device: "torch.device") -> "torch.dtype":
    """The numbers that a precision stands for: auto is bfloat16 where the device has units for products in it."""
    import torch

    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cuda":
        has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has_units = any(map(torch.cpu.get_capabilities().get, CPU_UNITS))
    return torch.bfloat16 if has_units else torch.float32
