"""The folder of a published model, with a check that it embeds as the run did, and that of a published index."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl

from cocite.config.configuration import recorded_configuration
from cocite.config.origins import generated_benchmarks
from cocite.config.runs import model_of
from cocite.config.sampler import oracle_models
from cocite.core.atomic import atomic_path, write_text
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import verified_files
from cocite.core.tables.places import path_of
from cocite.plan.recorded import configuration_of
from cocite.retrieval import search
from cocite.tools.mteb_export import Provenance, base_model, provenance_for, scores_of, write_mteb
from cocite.tools.nearest import Model, RunIndex

DOCUMENTS = 8
"""Documents of each benchmark that are embedded again."""
CARD = "README.md"
SCHEMA = """# Vectors of the papers

One row for each paper of the corpus that has a title or an abstract, as Parquet, in files by `corpusid` modulo their
number. They are those of the model {model.name}, seed {model.seed}, in this folder.{names}

| column | type | what it is |
|---|---|---|
{rows}
"""
INDEX_CARD = """---
license: {licence}
---
# Search index {name}

{papers:,} papers, found by their words, by vectors of {models}, and by who cites whom.

```python
from pathlib import Path
from index import Index  # index.py in this folder; needs NumPy only

index = Index(Path("."))
vectors = {{{vectors}}}  # the text as each model embeds it
for answer in index.search("title and abstract of a text", vectors, k=10, known="{known}"):
    print(answer.paper, answer.score, answer.parts)
```

`answer.paper` is a corpus id.{names} `known` is more, balanced or less: how much well-known papers are preferred.
`index.vectors_of(paper)` gives the vectors of a paper of the index.

{scores}
"""


def write_folder(results: Path, model: Model, output: Path, *, licence: str, with_vectors: bool) -> int:
    """Write the folder of a model, and return the number of documents that were embedded again to check it. Raises
    `InputError` if the output exists, the run is not finished, vectors are missing, or the check fails."""
    provenance = provenance_for(results, output)
    scores, _ = scores_of(results, provenance, (model.name, model.seed))
    with atomic_path(output) as folder:
        shutil.copytree(model.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        scored = results / f"report/cards/{model.name}/seed-{model.seed}" / CARD
        card = scored if scored.is_file() else model.folder / CARD
        write_text(folder / CARD, _card_for_hub(card.read_text(encoding="utf-8"), model, scores, provenance, licence))
        if (results / "report/index.html").is_file():
            shutil.copyfile(results / "report/index.html", folder / "report.html")
        if len(scores):
            write_mteb(scores, provenance, folder / "mteb", licence=licence)
        if with_vectors:
            if not model.vectors:
                what = f"The papers have no vectors of model {model.name}, seed {model.seed}, that are newer than it is"
                raise InputError(f"{what}; `cocite search` says how to make them.")
            (folder / "vectors").mkdir()
            for file in model.vectors:
                shutil.copyfile(file, folder / "vectors" / file.name)
            columns = TABLES["paper_embeddings"].columns
            rows = "\n".join(f"| `{name}` | {column.type} | {column.meaning} |" for name, column in columns.items())
            names = _copy_names(results, folder)
            write_text(folder / "vectors" / CARD, SCHEMA.format(model=model, rows=rows, names=names))
        return _check_vectors(results, model, folder)


def write_index(results: Path, index: RunIndex, output: Path, *, licence: str) -> int:
    """Write the folder of an index; return the number of its papers. Raises `InputError` as `provenance_for` does."""
    provenance = provenance_for(results, output)
    scores, _ = scores_of(results, provenance, (index.name, index.seed))
    recall = scores.filter(pl.col("metric").str.starts_with("recall_cap_"), pl.col("searched").is_not_null())
    line = "| {benchmark} | {task} | {metric} | {value:.1f} |"
    rows = [line.format_map(row) for row in recall.to_dicts()]
    head = ["| benchmark | task | metric | × 100 |", "|---|---|---|---|"]
    with atomic_path(output) as folder:
        shutil.copytree(index.folder, folder)
        shutil.copyfile(index.weights, folder / "weights.json")
        shutil.copyfile(search.__file__, folder / "index.py")
        opened = search.Index(folder)
        card = INDEX_CARD.format(
            licence=licence,
            name=index.name,
            papers=len(opened.papers),
            names=_copy_names(results, folder),
            models=" and ".join(opened.models),
            vectors=", ".join(f'"{name}": …' for name in opened.models),
            known=opened.weights.known,
            scores="\n".join([*head, *rows]) if rows else "It was scored on generated papers only.",
        )
        write_text(folder / CARD, card)
        return len(opened.papers)


def _copy_names(results: Path, folder: Path) -> str:
    """Copy the table names if the corpus has text ids, and return what a card says of it."""
    if not (names := path_of(results, "names")).is_file():
        return ""
    shutil.copyfile(verified_files(names, "names")[0], folder / names.name)
    return f" `{names.name}` of this folder has the id of each paper in its source, by `corpusid`."


def _card_for_hub(card: str, model: Model, scores: pl.DataFrame, provenance: Provenance, licence: str) -> str:
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    configuration = recorded_configuration(provenance["configuration"])
    if model_of(model.name) in oracle_models(configuration):
        report("Its scores are left out of the metadata: it has learned from the answers of benchmarks.")
    elif generated := generated_benchmarks(provenance):
        report(f"Left out of the metadata are scores on generated documents ({', '.join(generated)}).")
    order = pl.col("benchmark").cast(pl.Enum(list(configuration.benchmarks)))
    results = [
        EvalResult(
            task_type="feature-extraction",
            dataset_type=row["benchmark"],
            dataset_name=f"{row['benchmark']}: {row['task']}",
            dataset_config=row["task"],
            dataset_args={"mode": row["mode"]},
            metric_type=row["metric"],
            metric_name=f"{row['metric']} × 100",
            metric_value=round(row["value"], 2),
        )
        for row in scores.sort(order, "task", "metric", "mode").iter_rows(named=True)
    ]
    made, base = ModelCard(card), base_model(model.name, configuration)
    data = made.data.to_dict() | {"license": licence, "model_name": model.name, "base_model": base}
    made.data = ModelCardData(**data, eval_results=results or None)
    return str(made)


def _check_vectors(results: Path, model: Model, folder: Path) -> int:
    """Embed some documents of the run again, by CoCite and, if that opens the folder, by sentence-transformers; return
    their number. Raises `InputError` if one has another vector than in the run."""
    from cocite.encoder.adapters import adapters_in
    from cocite.encoder.embedding import embed_texts
    from cocite.encoder.model import open_encoder
    from cocite.encoder.poolings import is_by_sentence
    from cocite.encoder.static import counts_in

    encoder, checked = open_encoder(folder), 0
    reading = encoder.tokenizer.reading
    plain = not (is_by_sentence(encoder.pooling) or reading.sentence_wise or adapters_in(folder))
    if encoder.reads == "bags" and counts_in(folder) != "plain":
        plain, others = False, "Other libraries count repeated word pieces fully, and so give other vectors"
        report(f"{others}: `counts` is log, not plain.")
    configuration = configuration_of(results)
    for benchmark in configuration.benchmarks if configuration else ():
        known = _known(results, model, benchmark)
        texts = [encoder.tokenizer.document(row["document"], row) for row in known.iter_rows(named=True)]
        if not texts or reading.fields != ("title", "abstract"):
            continue
        documents, expected = known["document"].to_list(), np.stack(known["vector"].to_list())
        _compare(documents, embed_texts(encoder, texts), expected, "CoCite")
        if plain:
            from sentence_transformers import SentenceTransformer

            theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            found = theirs.encode([each.text for each in texts])
            _compare(documents, found, expected, "sentence-transformers")
        checked += len(texts)
    return checked


def _known(results: Path, model: Model, benchmark: str) -> pl.DataFrame:
    """Some documents of a benchmark with a title, and their vectors of the run."""
    documents = results / f"evaluation/{benchmark}/documents.parquet"
    vectors = results / f"encoder/{model.name}/seed-{model.seed}/embeddings/{benchmark}.parquet"
    if not (documents.is_file() and vectors.is_file()):
        return pl.DataFrame()
    texts = pl.scan_parquet(verified_files(documents, "documents"))
    texts = texts.filter(pl.col("title").is_not_null(), pl.col("more").list.len() == 0)
    embedded = pl.scan_parquet(verified_files(vectors, "document_embeddings")).filter(pl.col("adapter") == "")
    known = texts.select("document", "title", "abstract").join(embedded.select("document", "vector"), on="document")
    return known.sort("document").head(DOCUMENTS).collect()


def _compare(documents: list[str], found: np.ndarray, expected: np.ndarray, library: str) -> None:
    """Raise if the vectors of a document differ; those of the run may have been cut."""
    found = found[:, : expected.shape[1]]
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found * expected).sum(axis=1) / np.maximum(lengths, 1e-12)
    worst = int(cosines.argmin())
    if not cosines[worst] >= 0.999:  # bfloat16 differs in the third digit; one that is not a number fails, too
        what = f"document {documents[worst]} another vector than in the run (cosine {cosines[worst]:.4f})"
        raise InputError(f"Opened by {library}, the encoder gives {what}.")
