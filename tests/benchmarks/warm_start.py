"""A graph embedding that starts from the vectors of the release before, beside one that starts from drawn vectors.

The newer release has a tenth more papers, with all their edges. Which edges are held out depends on the seed and their
papers alone, so the older training has seen none of those that both trainings of the newer release are measured on.

    python -m tests.benchmarks warm_start .bench --papers 5000 --edges 40000 --dimension 32 --epochs 3   # to try it
"""

from pathlib import Path
from typing import Any

from tests.benchmarks.engines import CORES, import_graph, settings_of, train
from tests.benchmarks.made_graphs import write_communities
from tests.benchmarks.measuring import python, run, say


def main(
    folder: Path,
    papers: int = 200_000,
    edges: int = 1_950_000,
    dimension: int = 128,
    epochs: int = 10,
    cores: int = CORES,
) -> None:
    for release, more in {"older": {"older": True}, "newer": {}}.items():
        table = folder / f"{release}.parquet"
        run(python(write_communities, table, papers, edges, **more))
        import_graph(table, folder / release)
    settings: dict[str, Any] = settings_of("torch", cores=cores, dimension=dimension, epochs=epochs)
    train(folder / "older", settings, seed=1, output=folder / "before")
    warm_settings = {**settings, "start": str(folder / "before" / "vectors")}
    cold, warm = (
        train(folder / "newer", either, seed=1, output=folder / "trained").mrr for either in (settings, warm_settings)
    )
    tell(cold, warm)


def tell(cold: list[float], warm: list[float]) -> None:
    say("| epoch | MRR from drawn vectors | MRR from the older release's |\n|---|---|---|")
    for epoch, (drawn, older) in enumerate(zip(cold, warm, strict=True), start=1):
        say(f"| {epoch} | {drawn:.4f} | {older:.4f} |")
    best = max(cold)
    reached = next((epoch for epoch, mrr in enumerate(warm, start=1) if mrr >= best), None)
    told = f"after epoch {reached}" if reached else "not within as many epochs"
    say(f"\nThe best MRR from drawn vectors, {best:.4f}, comes after epoch {cold.index(best) + 1}; warm, {told}.")
