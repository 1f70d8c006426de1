"""Scores of the linear maps of a probe, and the entries of a configuration for the best of them.

A map is scored like a model: by minus the Euclidean distance between mapped vectors, over given candidates. Sets and
losses are ranked on the selection queries and scored on the test queries, which take no part in the selection. The best
sets and trainings are written as sets of triplets and models.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
import yaml
from numpy.typing import NDArray
from safetensors import safe_open

from cocite.config.benchmarks import names
from cocite.config.encoders import AnyLoss
from cocite.config.probes import described_loss
from cocite.config.settings import GivenAsJson, validated
from cocite.core.atomic import write_text
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed
from cocite.core.progress import progress
from cocite.core.searching import of_unit_length
from cocite.core.tables.files import read_table, vectors_of_papers
from cocite.core.tables.places import NORMALISE, Trained, training_of
from cocite.evaluation.benchmark import Judgements, ScoredTasks, Tables, write_rows
from cocite.evaluation.comparisons import drawn_interval, draws
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.ranking import by_distance, rank_candidates
from cocite.evaluation.scored import Vectors

UNTRAINED = Trained("untrained", 0, 0)
"""How the unmapped vectors appear among the maps."""
PARTS = {"selection": "selection", "test": "judgements"}
"""The table with the judgements of each part."""
RESAMPLES = 1000
ALL = "all"
WINNERS = 5
HEAD = """\
# The results of the probe, best first on the selection queries. Copy what you want to train into a configuration
# with the same graphs, embeddings and encoders. A probe does not select the epochs and the learning rate of a
# fine-tuning.
"""

Asked = dict[tuple[str, str], Judgements]
Values = NDArray[np.float64]


class Point(NamedTuple):
    """A set of triplets with a training."""

    triplets: str
    loss: str
    batch_size: int


class Score(NamedTuple):
    """A mean over seeds and queries, × 100."""

    value: float
    deviation: float | None
    """Over the seeds; None of one."""
    queries: int
    drawn: Values
    """What it is on draws of the queries with replacement, the same draws for all sets and trainings."""


def score_maps(
    maps: Annotated[Path, typer.Argument(help="Output of `cocite encoder probe`.")],
    *,
    vectors: Annotated[Path, typer.Option(help="Folder of the table paper_embeddings of the encoder.")],
    tables: Tables,
    tasks: ScoredTasks,
    output: Output,
) -> None:
    """Score linear maps of fixed vectors on the selection queries and the test queries.

    Raises `InputError` if a document of the benchmark has no vector, or a part has no judgements.
    """
    asked = {(part, task): of for part in PARTS for task, of in asked_of(tables, part, names(tasks)).items()}
    wanted = {int(paper) for judged in asked.values() for query, of in judged.items() for paper in (query, *of)}
    rising = np.array(sorted(wanted), dtype=np.int64)
    found, is_there = vectors_of_papers(vectors, "paper_embeddings", rising)
    if len(missing := rising[~is_there]):
        raise InputError(f"{vectors}: has no vector of paper {missing[0]}, nor of {len(missing) - 1:,} others.")
    plain = Vectors({str(paper): row for row, paper in enumerate(rising.tolist())}, found)
    rows = list(_outcomes(UNTRAINED, plain, asked))
    with safe_open(maps, framework="numpy") as file:
        normalise = file.metadata()[NORMALISE] == str(True)
        for name in progress(sorted(file.keys()), of="Scored", unit="map"):
            mapped = plain.matrix @ file.get_tensor(name).T
            mapped = of_unit_length(mapped) if normalise else mapped
            rows += _outcomes(training_of(name), Vectors(plain.rows, mapped), asked)
    write_rows(output, "probe_outcomes", rows)


def asked_of(tables: Path, part: str, tasks: Sequence[str]) -> dict[str, Judgements]:
    """What is asked of the papers of a part, by task."""
    table = read_table(tables / f"{PARTS[part]}.parquet", PARTS[part], ["task", "query", "candidate", "relevance"])
    asked: dict[str, Judgements] = {}
    for row in table.filter(pc.field("task").isin(list(tasks))).to_pylist():
        asked.setdefault(row["task"], {}).setdefault(row["query"], {})[row["candidate"]] = row["relevance"]
    if not asked:
        raise InputError(f"{tables}: has no judgements of the {part} papers; hold out more papers.")
    return asked


def _outcomes(trained: Trained, vectors: Vectors, asked: Asked) -> Iterator[tuple[Any, ...]]:
    similarity = by_distance(vectors)
    for (part, task), judgements in asked.items():
        ranked = rank_candidates(judgements, similarity, vectors.rows)
        for query, value in measure_rankings(judgements, ranked, ["map"])["map"].items():
            yield *trained, part, task, query, value


def rank_probe(
    outcomes: Annotated[list[Path], typer.Argument(help="Tables probe_outcomes, each under the name of its set.")],
    *,
    settings: Annotated[
        GivenAsJson[Mapping[str, Mapping[str, Any]]], typer.Option(help="The probe, and its sets by name, as JSON.")
    ],
    seed: Seed,
    scores: Annotated[Path, typer.Option(help="Table probe_scores to write.")],
    winners: Annotated[
        Path, typer.Option(help="File to write: the best sets and trainings as entries of a configuration.")
    ],
) -> None:
    """Rank the sets and losses of a probe on the selection queries."""
    write_winners(write_scores({path.stem: path for path in outcomes}, seed, scores), settings, winners)


def write_scores(outcomes: Mapping[str, Path], seed: int, output: Path) -> list[Point]:
    """Write the table probe_scores; return sets and trainings, best first by all tasks on the selection queries."""
    found = scores_of(outcomes, seed)
    by_choice = sorted(found, key=lambda point: -found[point]["selection", ALL].value)
    rows = []
    for rank, point in enumerate(by_choice, start=1):
        for asked, score in found[point].items():
            best = found[by_choice[0]][asked]
            differs = score.value - best.value, *drawn_interval(score.drawn - best.drawn)
            own = score.value, score.deviation, *drawn_interval(score.drawn)
            rows.append((*point, *asked, *own, *differs, score.queries, rank))
    write_rows(output, "probe_scores", rows)
    return [point for point in by_choice if point.loss != UNTRAINED.loss]


def scores_of(outcomes: Mapping[str, Path], seed: int) -> dict[Point, dict[tuple[str, str], Score]]:
    """The scores of each set and training, and of the vectors as they are, by part and task."""
    found: dict[Point, dict[tuple[str, str], Score]] = {}
    for triplets, path in outcomes.items():
        table = read_table(path, "probe_outcomes")
        for row in table.group_by(["loss", "batch_size"]).aggregate([]).sort_by("loss").to_pylist():
            loss, batch_size = row["loss"], row["batch_size"]
            point = Point(triplets if loss != UNTRAINED.loss else loss, loss, batch_size)
            if point not in found:
                of_training = (pc.field("loss") == loss) & (pc.field("batch_size") == batch_size)
                found[point] = dict(_scores(table.filter(of_training), seed))
    return found


def _scores(table: pa.Table, seed: int) -> Iterator[tuple[tuple[str, str], Score]]:
    """The scores of one training by part and task; of all tasks together, a task counts as much as another."""
    for part in PARTS:
        of_part = table.filter(pc.field("part") == part)
        of_tasks, drawn = [], []
        for task in sorted(of_part["task"].unique().to_pylist()):
            ordered = of_part.filter(pc.field("task") == task).sort_by([("seed", "ascending"), ("query", "ascending")])
            values = ordered["value"].to_numpy().reshape(len(ordered["seed"].unique()), -1)  # seeds × queries
            of_queries = values.mean(axis=0)
            blocks = draws(len(of_queries), RESAMPLES, seed, "probe", part, task)
            drawn.append(np.concatenate([counts @ of_queries / len(of_queries) for counts in blocks]))
            of_tasks.append(values)
            yield (part, task), _score([values], drawn[-1:])
        yield (part, ALL), _score(of_tasks, drawn)


def _score(of_tasks: Sequence[Values], drawn: Iterable[Values]) -> Score:
    """The mean of some tasks, each seeds × queries, with what it is on draws of queries."""
    of_seeds = np.mean([values.mean(axis=1) for values in of_tasks], axis=0).tolist()
    queries = sum(values.shape[1] for values in of_tasks)
    deviation = stdev(of_seeds) if len(of_seeds) > 1 else None
    return Score(fmean(of_seeds), deviation, queries, np.mean(list(drawn), axis=0))


def write_winners(ranked: Sequence[Point], settings: Mapping[str, Mapping[str, Any]], output: Path) -> None:
    """Write the best points as entries of `triplets` and `models`. `settings` has the probe, and its sets by name."""
    probe, best = settings["probe"], ranked[:WINNERS]
    losses = {described_loss(validated(AnyLoss, loss)): loss for loss in probe["losses"]}
    models = {}
    for place, (triplets, loss, batch_size) in enumerate(best, start=1):
        training = {"triplets": triplets, "encoder": probe["encoder"], "loss": losses[loss], "batch_size": batch_size}
        models[f"winner-{place}"] = training | {"seeds": list(probe["seeds"])}
    sets = {name: settings["triplets"][name] for name in dict.fromkeys(point.triplets for point in best)}
    write_text(output, HEAD + yaml.safe_dump({"triplets": sets, "models": models}, sort_keys=False, width=120))
