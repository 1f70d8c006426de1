"""What the hub reads on the card of a published model: licence, base model, and scores as its model-index."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.lineage import encoder_under
from cocite.config.runs import model_of
from cocite.config.stale import PROVENANCE
from cocite.config.terms import generated_benchmarks
from cocite.config.triplets import oracle_models
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import read_table
from cocite.tools.inspection.nearest import Model


def provenance_for(results: Path, output: Path) -> Mapping[str, Any]:
    """The provenance of a finished run, of which something is written into a new folder.

    Raises `InputError` where the folder exists already, or the run is not at its end.
    """
    if output.exists():
        raise InputError(f"{output} exists already; name another folder.")
    if not (results / PROVENANCE).is_file():
        raise InputError(f"{results} has no {PROVENANCE}, which a run writes for its report; finish the run first.")
    provenance: Mapping[str, Any] = read_json(results / PROVENANCE)
    return provenance


def card_for_hub(card: str, results: Path, model: Model, provenance: Mapping[str, Any], licence: str) -> str:
    """A card with the metadata that the hub reads, in place of those that it has."""
    from huggingface_hub import ModelCard, ModelCardData

    made = ModelCard(card)
    made.data = ModelCardData(
        **made.data.to_dict(),
        license=licence,
        model_name=model.name,
        base_model=base_model(model.name, provenance["configuration"]),
        eval_results=list(_results(results, model, provenance)) or None,
    )
    return str(made)


def base_model(name: str, configuration: Mapping[str, Any]) -> str | None:
    """The model of the hub that a model was trained from; None where it came from elsewhere."""
    models = configuration["models"]
    encoder = encoder_under(model_of(name), models) if model_of(name) in models else name.removeprefix("untrained_")
    entry = configuration["encoders"][encoder]
    return str(entry["model"]) if "revision" in entry else None


def _results(results: Path, model: Model, provenance: Mapping[str, Any]) -> Iterator[Any]:
    """The scores of a model, averaged over evaluation seeds; none of generated documents, and none of an oracle."""
    from huggingface_hub import EvalResult

    configuration = provenance["configuration"]
    if model_of(model.name) in oracle_models(configuration):
        report("Its scores are left out of the metadata: it has learned from the answers of benchmarks.")
        return
    generated = generated_benchmarks(provenance)
    if generated:
        report(f"Left out of the metadata are scores on generated documents ({', '.join(generated)}).")
    for benchmark in configuration["benchmarks"]:
        files = sorted(results.glob(f"evaluation/{benchmark}/scores/*/{model.name}-{model.seed}.parquet"))
        if benchmark in generated or not files:
            continue
        keys = ["task", "metric", "mode"]
        found = pl.DataFrame(read_table(files, "scores")).group_by(keys).agg(pl.col("value").mean())
        for row in found.sort(keys).iter_rows(named=True):
            yield EvalResult(
                task_type="feature-extraction",
                dataset_type=benchmark,
                dataset_name=f"{benchmark}: {row['task']}",
                dataset_config=row["task"],
                dataset_args={"mode": row["mode"]},
                metric_type=row["metric"],
                metric_name=f"{row['metric']} × 100",
                metric_value=round(row["value"], 2),
            )
