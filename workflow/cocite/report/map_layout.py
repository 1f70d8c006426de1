"""The papers of a map, chosen once for all models, and their points, clusters and agreement with labels for each model.

Cohan et al., 2020, "SPECTER": t-SNE in two dimensions, DBSCAN on it, and homogeneity and completeness against classes
(Rosenberg & Hirschberg, 2007, "V-measure"). Their settings of DBSCAN are not published.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks import names
from cocite.config.configuration import Map
from cocite.config.map import FIELD, Clustering, MapSettings
from cocite.config.settings import GivenAsJson
from cocite.config.tasks import ADAPTERS
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed
from cocite.core.progress import report
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import VECTORS_AT_ONCE, open_table, read_table, vectors_of, verified_files, write_table

NOISE = -1
"""The cluster of points in none, as scikit-learn calls it."""
FEWEST = 5
"""Papers that a method needs; fewer are laid out along the principal axes of their vectors."""


def write_papers(
    *,
    tables: Annotated[Path, typer.Option(help="Folder of the benchmark's tables.")],
    settings: GivenAsJson[Map],
    tasks: Annotated[str, typer.Option(help="Comma-separated tasks whose labels are classes.")],
    seed: Seed,
    papers: Output,
    labels: Output,
    only_queries: Annotated[bool, typer.Option(help="Leave out documents that are not queries.")] = False,
    corpus: Annotated[Path | None, typer.Option(help="Table of papers, if documents are papers of the corpus.")] = None,
) -> None:
    """Select the papers of a map, and look up their labels.

    Raises `InputError` if no document has a label that the settings name.
    """
    documents = _documents(tables, only_queries=only_queries)
    found = _labels(tables, documents, names(tasks))
    present = found["label"].unique().sort().to_list()
    for name in settings.labels or ():
        if name not in present:
            said = f"{tables}: no document on the map has the label {name}, which the configuration names"
            raise InputError(f"{said} (labels: they have {', '.join(present) or 'none'}).")
    if settings.labels is not None:
        found = found.filter(pl.col("label").is_in(settings.labels))
    drawn = pl.Series(generator(seed, "papers of the map").permutation(len(documents)))
    labelled = pl.col("document").is_in(found["document"].unique().implode())
    ranked = documents.select("document", drawn=drawn, labelled=labelled)
    chosen = ranked.sort(["labelled", "drawn"], descending=[True, False])["document"].head(settings.papers).implode()
    shown = documents.filter(pl.col("document").is_in(chosen)).sort("document")
    shown = shown.select("document", "title", year=_years(shown, corpus))
    write_table(papers, "map_papers", shown.to_arrow())
    of_chosen = found.filter(pl.col("document").is_in(chosen)).sort("label", "document")
    write_table(labels, "map_labels", of_chosen.to_arrow())


def _documents(benchmark: Path, *, only_queries: bool) -> pl.DataFrame:
    """Id, title and field of the documents, without short queries, by id; with their years if the table has them."""
    rows = pl.scan_parquet(verified_files(benchmark / "documents.parquet", "documents"))
    held = rows.collect_schema().names()
    if "is_query" in held:
        rows = rows.filter(~pl.col("is_query"))
    if only_queries:
        judged = pl.scan_parquet(verified_files(benchmark / "judgements.parquet", "judgements"))
        rows = rows.join(judged.select(document="query").unique(), on="document", how="semi")
    columns = [name for name in ("document", "title", FIELD, "year") if name in held]
    return rows.select(columns).sort("document").collect()


def _labels(benchmark: Path, documents: pl.DataFrame, tasks: Sequence[str]) -> pl.DataFrame:
    """Label, document and class: the fields of study, and the first class of each document in each task."""
    rows = pl.scan_parquet(verified_files(benchmark / "labels.parquet", "labels"))
    first = rows.select(label="task", document="document", value=pl.col("labels").list.first())
    of_tasks = first.filter(pl.col("label").is_in(list(tasks)))
    of_tasks = of_tasks.join(documents.lazy().select("document"), on="document", how="semi")
    of_fields = documents.select(label=pl.lit(FIELD), document="document", value=FIELD)
    found = pl.concat([of_fields, of_tasks.collect()]).drop_nulls()
    return found.unique(["label", "document"], keep="first", maintain_order=True)


def _years(documents: pl.DataFrame, corpus: Path | None) -> pl.Series:
    if "year" in documents.columns:
        return documents["year"].cast(pl.Int32)
    if corpus is None:
        return pl.repeat(None, len(documents), dtype=pl.Int32, eager=True)
    ids = documents.select(corpusid=pl.col("document").cast(pl.Int64, strict=False))
    papers = pl.scan_parquet(verified_files(corpus, "papers", ["corpusid", "year"]))
    of_papers = papers.select("corpusid", pl.col("year").cast(pl.Int32))
    known = of_papers.join(ids.lazy().drop_nulls(), on="corpusid", how="semi").collect(engine="streaming")
    return ids.join(known, on="corpusid", how="left", maintain_order="left")["year"]


def read_labels(papers: pl.DataFrame, labels: pl.DataFrame) -> Mapping[str, Any]:
    """The class of each paper by each label, in the order of the papers; null if it has none."""
    parts = labels.partition_by("label", as_dict=True, maintain_order=True).items()
    return {name: papers.join(of, on="document", how="left", maintain_order="left")["value"] for (name,), of in parts}


def write_layout(
    embeddings: Annotated[Path, typer.Argument(help="Table document_embeddings of a model.")],
    *,
    papers: Annotated[Path, typer.Option(help="Table map_papers.")],
    labels: Annotated[Path, typer.Option(help="Table map_labels.")],
    settings: GivenAsJson[Map],
    seed: Seed,
    points: Output,
    scores: Output,
) -> None:
    """Lay out the papers of a map by a model's vectors, find clusters, and compare these with the labels.

    Papers without a vector, or with one that is not finite, are left out and counted.
    """
    mapped = pl.DataFrame(read_table(papers, "map_papers"))
    vectors, found = _vectors(embeddings, mapped["document"])
    documents = pl.DataFrame({"document": found}, schema={"document": pl.String})
    placed = documents.join(mapped, on="document", maintain_order="left")
    layout = lay_out(vectors, settings, seed=derive_seed(seed, "map") % 2**32)
    clusters, eps = find_clusters(layout, settings.clusters)
    numbers = pl.Series(clusters).replace(NOISE, None)
    rows = documents.with_columns(x=layout[:, 0], y=layout[:, 1], cluster=numbers)
    write_table(points, "map_points", rows.sort("document").to_arrow())
    whole = {
        "papers": len(placed),
        "missing": len(mapped) - len(placed),
        "clusters": int(clusters.max(initial=NOISE)) + 1,
        "unclustered": int((clusters == NOISE).sum()),
        "eps": eps,
    }
    labelled = read_labels(placed, pl.DataFrame(read_table(labels, "map_labels")))
    judged = [{"label": name, **whole, **agreement(classes, clusters)} for name, classes in labelled.items()]
    write_table(scores, "map_scores", pa.Table.from_pylist(judged, schema=empty_schema(TABLES["map_scores"])))


def lay_out(vectors: np.ndarray, settings: MapSettings, *, seed: int) -> np.ndarray:
    """Points (papers × 2), in one spot if no two vectors differ. Raises `InputError` if there are too few papers."""
    from sklearn.neighbors import NearestNeighbors

    points = np.zeros((len(vectors), 2))
    if len(vectors) == 0 or (vectors[:1] == vectors).all():
        return points
    needed = settings.neighbours_among(len(vectors))
    if len(vectors) < FEWEST:
        centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        points[:, : min(2, len(sizes))] = (left * sizes)[:, :2]
        return points
    search = NearestNeighbors(n_neighbors=max(1, needed), algorithm="brute", metric=settings.metric)
    distances, neighbours = search.fit(vectors).kneighbors()
    return np.asarray(settings.lay_out(vectors, neighbours, distances, seed=seed))


def _vectors(embeddings: Path, documents: pl.Series) -> tuple[np.ndarray, list[str]]:
    """The finite vectors of some documents, by the adapter of proximity if there is one, and their documents."""
    wanted = documents.to_arrow().cast(pa.string())
    with open_table(embeddings, "document_embeddings") as file:
        adapter, _ = ADAPTERS["proximity"]
        adapter = adapter if adapter in file.read(["adapter"])["adapter"].unique().to_pylist() else ""
        is_chosen = (pc.field("adapter") == adapter) & pc.field("document").isin(wanted)
        chosen = [batch.filter(is_chosen) for batch in file.iter_batches(VECTORS_AT_ONCE)]
        table = pa.Table.from_batches(chosen, schema=file.schema_arrow)
    vectors, found = vectors_of(table), table.column("document").to_pylist()
    is_finite = np.isfinite(vectors).all(axis=1)
    if broken := int((~is_finite).sum()):
        said = f"{embeddings}: the vectors of {broken} of {len(found)} papers contain values that are not finite"
        report(f"{said}, and are left out of the map; the model's training has probably diverged.")
    return vectors[is_finite], [name for name, is_right in zip(found, is_finite, strict=True) if is_right]


def find_clusters(points: NDArray[np.float64], settings: Clustering) -> tuple[NDArray[np.int64], float]:
    """The cluster of each point (papers × 2), the largest 0, or `NOISE`; and the eps that they were found with."""
    from sklearn.cluster import DBSCAN

    if len(points) == 0:
        return np.empty(0, np.int64), 0.0
    min_samples = settings.min_samples or usual_min_samples(len(points))
    eps = settings.eps or knee_of_distances(points, min_samples)
    if eps == 0:  # all points are in one spot
        found = np.zeros(len(points), np.int64) if len(points) >= min_samples else np.full(len(points), NOISE)
        return found, eps
    clusters = DBSCAN(eps=eps, min_samples=min_samples).fit_predict(points)
    sizes = np.bincount(clusters[clusters != NOISE])
    number = np.empty(len(sizes) + 1, np.int64)
    number[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))  # of two of one size, the one found first
    number[NOISE] = NOISE
    return number[clusters], eps


def usual_min_samples(papers: int) -> int:
    """Points that make a core among so many: ln n (Birant & Kut, 2007), and no fewer than 4 (Sander et al., 1998)."""
    return max(4, round(math.log(papers)))


def knee_of_distances(points: NDArray[np.float64], min_samples: int) -> float:
    """The knee of the sorted distances to the `min_samples`-th neighbour, the point itself included. There the curve is
    farthest from the line between its ends (Satopää et al., 2011, "Kneedle")."""
    from sklearn.neighbors import NearestNeighbors

    among = min(min_samples, len(points))
    distances, _ = NearestNeighbors(n_neighbors=among).fit(points).kneighbors(points)
    curve = np.sort(distances[:, -1])
    line = np.linspace(curve[0], curve[-1], len(curve))
    return float(curve[np.argmax(line - curve)])


def agreement(classes: pl.Series, clusters: NDArray[np.int64]) -> dict[str, object]:
    """How the clusters agree with one label, over the papers that have it; those in none count as one cluster."""
    from sklearn.metrics import homogeneity_completeness_v_measure

    known, of_known = classes.drop_nulls().to_list(), clusters[classes.is_not_null().to_numpy()]
    values = homogeneity_completeness_v_measure(known, of_known) if known else (None,) * 3
    agreement = dict(zip(("homogeneity", "completeness", "v_measure"), values, strict=True))
    return {"labelled": len(known), "classes": len(set(known)), **agreement}
