"""The data of a run as the folder of a dataset, which `datasets.load_dataset` opens: sets, pairs, vectors, hold-outs.

Each configuration is a folder named after the table and its entry in the run, as in `triplets-cocite`, with a Parquet
file for each split, or one for each bucket of a table of pairs. Papers are named by their ids. With texts, each set
also comes as `texts-cocite`, with the columns that the trainers of sentence-transformers take.
"""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from duckdb import DuckDBPyConnection

from cocite.config import origins
from cocite.config.benchmarks import KINDS
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.graphs import PAIRS
from cocite.config.sampler import oracles
from cocite.core.atomic import atomic_path, write_json, write_text
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import count_rows, table_in, verified_files
from cocite.core.tables.papers import QUERIES
from cocite.core.tables.places import as_text, path_of
from cocite.tools.mteb_export import Provenance, provenance_for
from cocite.tools.nearest import RunIndex
from cocite.tools.published_folder import CARD, write_index

MEMORY_MB = 4000
ROW_GROUP = 10_240
TRAINED = re.compile(r"anchor|positive|negative(_\d+)?")
"""The columns that trainers take, in the order of a file."""
MEANINGS = {
    "anchor": "the query: its corpus id, or its title and abstract, with a line break between them",
    "positive": "a paper that should be near the query, likewise",
    "negative": "a paper that should be far, likewise",
}
SIZES = {"n<1K": 1e3, "1K<n<10K": 1e4, "10K<n<100K": 1e5, "100K<n<1M": 1e6, "1M<n<10M": 1e7, "10M<n<100M": 1e8}
SIZES |= {"100M<n<1B": 1e9, "1B<n<10B": 1e10, "10B<n<100B": 1e11}
"""The hub's names for numbers of rows, and where they end."""
OF_CROISSANT = "citeAs column data dataType equivalentProperty examples extract field fileObject fileProperty fileSet "
OF_CROISSANT += "format includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated "
OF_CROISSANT += "replace samplingRate separator source subField transform"
CONTEXT: Mapping[str, Any] = {
    **{"@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/"},
    **{"cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/"},
    **{"dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo"},
    **{name: f"cr:{name}" for name in OF_CROISSANT.split()},
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
}
"""What Croissant 1.0 has as its context of JSON-LD."""
PARQUET = "application/x-parquet"
TYPES = {"int": "sc:Integer", "float": "sc:Float", "double": "sc:Float", "bool": "sc:Boolean"}
"""Its types, by how those of Arrow begin; others are texts."""
IDS_ONLY = "Papers are named by their ids; `resolve_ids` of sentence-transformers replaces them by texts that you have."
WITH_TEXTS = "Titles and abstracts are included; publishers may hold rights in abstracts."
TITLE = "Training data for embeddings of scientific papers"

INDEX = """
## The index

The folder `{folder}` is a search index of {papers:,} papers, and [its card]({folder}/README.md) shows how to search it.
It has no titles or abstracts: of the words of a paper it has hashes, without their order. Held-out papers and their
citations are in it, so do not train on it.
"""

Splits = Mapping[str, Sequence[Path]]
"""The files of each split, by its configuration and name, as in triplets-cocite/train."""


def write_data(
    results: Path, output: Path, *, licence: str, with_texts: bool, index: RunIndex | None = None
) -> tuple[int, int]:
    """Write the folder of a run's data, perhaps with an index; return the numbers of its configurations and rows.
    Raises `InputError` if the output exists, the run is not finished, or the corpus does not allow texts."""
    provenance = provenance_for(results, output)
    if with_texts and origins.terms_of_corpus(provenance) in (origins.SEMANTIC_SCHOLAR, origins.SEMANTIC_SCHOLAR_API):
        why = "the abstracts of Semantic Scholar belong to their publishers, and its licence does not cover them"
        raise InputError(f"--texts: {why}. Leave the option out: papers are then named by their ids.")
    configuration, beside = recorded_configuration(provenance["configuration"]), output.absolute().parent
    with atomic_path(output) as folder, connect(memory_mb=MEMORY_MB, threads=2, spill_to=beside) as db:
        folder.mkdir()
        db.execute("CREATE TABLE named (corpusid BIGINT)")
        # Ids, and not texts, are held in memory by joins: those on the right.
        db.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        sets = [name for name in configuration.triplets if _write_set(db, results, name, configuration, folder)]
        if without := ", ".join(sorted(configuration.triplets.keys() - sets)):
            report(f"Left out, as not made, or with answers of benchmarks or texts that are no papers: {without}.")
        for name, entry in configuration.benchmarks.items():
            if KINDS[entry.kind].made_by is not None:
                _write_holdout(db, results, name, folder)
        for name, graph in configuration.graphs.items():
            table = PAIRS.get(graph.signal, "edges")
            _copy(path_of(results, table, graph=name), folder / f"{table}-{name}/pairs")
        for name in configuration.embeddings:
            _copy(path_of(results, "graph_embeddings", embedding=name), folder / f"graph_embeddings-{name}/vectors")
        for table in ("names", "queries"):
            _copy(path_of(results, table), folder / table / table)
        _write_papers(db, results, folder, with_texts=with_texts)
        splits: dict[str, list[Path]] = {}
        for path in sorted(folder.glob("*/*.parquet")):
            splits.setdefault(f"{path.parent.name}/{path.stem.partition('-')[0]}", []).append(path)
        card, described = _card(splits, sets, provenance, licence, with_texts), _croissant(splits, provenance, licence)
        if index:
            within = f"index-{index.name}"
            papers = write_index(results, index, folder / within, licence=licence)
            card += INDEX.format(folder=within, papers=papers)
            described["distribution"].append(_file_set(within, f"{within}/**", "application/octet-stream"))
        write_text(folder / CARD, card)
        write_json(folder / "croissant.json", described)
        return len({name.partition("/")[0] for name in splits}), sum(map(count_rows, splits.values()))


def _write_set(db: DuckDBPyConnection, results: Path, name: str, configuration: Configuration, folder: Path) -> bool:
    """Write a set by its splits, and note its papers in the table `named`; whether it may be published."""
    paths = (path_of(results, table, triplets=name) for table in ("triplets", "sampled_examples"))
    path = next(filter(Path.is_file, paths), None)
    if path is None or name in oracles(configuration):
        return False
    table = table_in(path)
    _view(db, "sampled", verified_files(path, table))
    if table == "triplets":
        rows = "SELECT query AS anchor, positive, negative, * EXCLUDE (query, positive, negative) FROM sampled"
    else:
        rows = _in_columns(db, name)
    papers = f"SELECT unnest([{', '.join(_trained(db.sql(rows).columns))}]) AS corpusid FROM ({rows})"
    if number(db, f"SELECT count(*) FROM ({papers}) WHERE corpusid < 0"):
        return False
    db.execute(f"INSERT INTO named {papers}")
    for split in QUERIES:
        chosen = f"SELECT * EXCLUDE (split) FROM ({rows}) WHERE split = {as_text(split)} ORDER BY ALL"
        _write(db, folder / f"{table}-{name}" / split, chosen)
    return True


def _in_columns(db: DuckDBPyConnection, name: str) -> str:
    """The query for the examples of the view `sampled` with a row for each positive and a column for each negative. As
    trainers need, all rows have the same number of negatives, the one that most examples have; or the first of more."""
    sizes = "SELECT len(negatives) AS size FROM sampled GROUP BY size ORDER BY count(*) DESC, size DESC"
    size = number(db, f"{sizes} LIMIT 1")
    if fewer := number(db, f"SELECT count(*) FROM sampled WHERE len(negatives) < {size}"):
        report(f"Left out of the set {name}: {fewer:,} of the examples, with fewer negatives than {size}.")
    negatives = [f"negatives[{at}] AS negative{f'_{at}' if size > 1 else ''}" for at in range(1, size + 1)]
    columns = ", ".join(["query AS anchor", "unnest(positives) AS positive", *negatives])
    return f"SELECT {columns}, * EXCLUDE (query, positives, negatives) FROM sampled WHERE len(negatives) >= {size}"


def _write_holdout(db: DuckDBPyConnection, results: Path, name: str, folder: Path) -> None:
    """Write the judged candidates of held-out papers, and the papers that they should find; note these papers."""
    for table, split in (("judgements", "test"), ("selection", "selection")):
        _view(db, "judged", verified_files(path_of(results, table, benchmark=name), table))
        rows = "SELECT task, query, candidate, relevance FROM judged ORDER BY ALL"
        if _write(db, folder / f"judgements-{name}" / split, rows):
            db.execute("INSERT INTO named SELECT TRY_CAST(unnest([query, candidate]) AS BIGINT) FROM judged")
    _view(db, "judged", verified_files(path_of(results, "searches", benchmark=name), "searches"))
    for split in ("test", "selection"):
        rows = f"SELECT * EXCLUDE (split) FROM judged WHERE split = '{split}' ORDER BY ALL"
        _write(db, folder / f"searches-{name}" / split, rows)
    db.execute("INSERT INTO named SELECT unnest([query, paper]) FROM judged")


def _write_papers(db: DuckDBPyConnection, results: Path, folder: Path, *, with_texts: bool) -> None:
    """Write the papers that were noted; with texts, also the sets with texts in place of ids."""
    columns = ["corpusid", "doi", "year", *(("title", "abstract") if with_texts else ())]
    _view(db, "papers", verified_files(path_of(results, "papers"), "papers", columns))
    rows = f"SELECT {', '.join(columns)} FROM papers WHERE corpusid IN (FROM named) ORDER BY corpusid"
    _write(db, folder / "papers/papers", rows)
    for ids in [*folder.glob("*/*.parquet")] if with_texts else ():
        if names := _trained(pq.read_schema(ids).names):
            _write_texts(db, ids, names, folder / f"texts-{ids.parent.name.partition('-')[2]}/{ids.name}")


def _write_texts(db: DuckDBPyConnection, ids: Path, names: Sequence[str], path: Path) -> None:
    """Write a file of a set again with texts in these columns, which are read once, and sorted on the disk. Raises
    `InputError` if a paper is missing."""
    reader = db.sql(
        f"""
        SELECT text FROM (SELECT corpusid, concat_ws('\n', title, abstract) AS text FROM papers)
        RIGHT JOIN (
            SELECT file_row_number AS row, unnest([{", ".join(names)}]) AS corpusid,
                unnest(range({len(names)})) AS place
            FROM read_parquet({as_text(escape(str(ids)))}, hive_partitioning = false, file_row_number = true)
        ) USING (corpusid) ORDER BY row, place
        """
    ).to_arrow_reader(ROW_GROUP * len(names))
    path.parent.mkdir(exist_ok=True)
    schema, texts = pa.schema([(name, pa.string()) for name in names]), pa.array([], pa.string())
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in reader:
            texts = pa.concat_arrays([texts, batch.column(0)])
            if texts.null_count:
                raise InputError(f"A paper of {ids.parent.name} is not in the table papers; finish the run.")
            whole = len(texts) - len(texts) % len(names)
            columns = [texts.take(np.arange(at, whole, len(names))) for at in range(len(names))]
            writer.write_batch(pa.record_batch(columns, schema))
            texts = texts[whole:]


def _view(db: DuckDBPyConnection, name: str, files: Sequence[str]) -> None:
    db.read_parquet([escape(file) for file in files]).create_view(name)


def _write(db: DuckDBPyConnection, path: Path, rows: str) -> int:
    """Write rows as Parquet, unless there are none; return their number."""
    path.parent.mkdir(exist_ok=True)
    file, form = path.with_name(f"{path.name}.parquet"), f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"
    written = number(db, f"COPY ({rows}) TO {as_text(str(file))} ({form})")
    if not written:
        file.unlink()
    return written


def _copy(table: Path, path: Path) -> None:
    """Copy the file of a table, or those of its buckets, if there are any with rows."""
    for file in filter(count_rows, [table] if table.is_file() else table.glob("*.parquet")):
        path.parent.mkdir(exist_ok=True)
        [verified] = verified_files(file, table_in(file))
        bucket = "" if file == table else f"-{file.stem}"
        shutil.copyfile(verified, path.with_name(f"{path.name}{bucket}.parquet"))


def _pattern(split: str, paths: Sequence[Path]) -> str:
    """The file of a split, or the pattern of its files."""
    return f"{split}.parquet" if paths[0].stem == Path(split).name else f"{split}-*.parquet"


def _trained(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if TRAINED.fullmatch(name)]


def _meaning(configuration: str, column: str) -> str:
    table = TABLES.get(configuration.partition("-")[0])
    declared = table and table.columns.get(column)
    return declared.meaning if declared else MEANINGS.get(column.partition("_")[0], column)


def _card(splits: Splits, sets: Sequence[str], provenance: Provenance, licence: str, with_texts: bool) -> str:
    """The card, with the metadata by which the hub and `datasets` find the files."""
    rows, files, meanings = list[str](), dict[str, list[dict[str, str]]](), dict[str, None]()
    for both, paths in splits.items():
        name, _, split = both.partition("/")
        columns = pq.read_schema(paths[0]).names
        files.setdefault(name, []).append({"split": split, "path": _pattern(both, paths)})
        rows.append(f"| {name} | {split} | {count_rows(paths):,} | {', '.join(columns)} |")
        meanings |= {f"- `{column}`: {_meaning(name, column)}": None for column in columns}
    number = sum(map(count_rows, splits.values()))
    head = {
        "license": licence,
        "task_categories": ["sentence-similarity", "text-ranking"],
        "tags": ["sentence-transformers", "scientific-publications"],
        "size_categories": [next(size for size, most in SIZES.items() if number < most)],
        "configs": [{"config_name": name, "data_files": of_name} for name, of_name in files.items()],
    }
    sampled = {name: {**origins.sampling_of(name, provenance), **origins.graph_of(name, provenance)} for name in sets}
    made = [f"- `{name}`: {'; '.join(f'{key}: {value}' for key, value in sampled[name].items())}" for name in sets]
    lines = "\n".join
    return f"""---
{yaml.safe_dump(head, sort_keys=False)}---
# {TITLE}

Training sets, pairs and vectors of graphs, splits and hold-outs, made with CoCite.
{WITH_TEXTS if with_texts else IDS_ONLY}
{_corpus(provenance)}

```python
from datasets import load_dataset

data = load_dataset("this folder", "{next((name for name in files if name.startswith("t")), "queries")}")
```

| configuration | split | rows | columns |
|---|---|---|---|
{lines(rows)}

{lines(meanings)}

## How the sets were made

{lines(made)}
"""


def _corpus(provenance: Provenance) -> str:
    source = f"{origins.corpus_in_words(provenance)} (release {provenance['release']})"
    return f"Source of the papers: {source}. {origins.terms_of_corpus(provenance)}"


def _croissant(splits: Splits, provenance: Provenance, licence: str) -> dict[str, Any]:
    """The description of the files by Croissant 1.0; each split is a record set."""
    distribution, records = [], []
    for name, paths in splits.items():
        schema, pattern = pq.read_schema(paths[0]), _pattern(name, paths)
        for path in paths:
            file = f"{path.parent.name}/{path.name}"
            of_file = {"@type": "cr:FileObject", "@id": file, "name": file, "contentUrl": file}
            of_file |= {"encodingFormat": PARQUET, "contentSize": f"{path.stat().st_size} B"}
            with path.open("rb") as content:
                distribution.append({**of_file, "sha256": hashlib.file_digest(content, "sha256").hexdigest()})
        kind = "fileSet" if "*" in pattern else "fileObject"
        if "*" in pattern:
            distribution.append(_file_set(pattern, pattern, PARQUET))
        fields = []
        for column, type_ in zip(schema.names, schema.types, strict=True):
            innermost = str(getattr(type_, "value_type", type_))
            named = next((name for start, name in TYPES.items() if innermost.startswith(start)), "sc:Text")
            field: dict[str, Any] = {"@type": "cr:Field", "@id": f"{name}/{column}", "dataType": named}
            field |= {"source": {kind: {"@id": pattern}, "extract": {"column": column}}}
            field |= {"repeated": True} if hasattr(type_, "value_type") else {}
            fields.append({**field, "description": _meaning(paths[0].parent.name, column)})
        records.append({"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields})
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": TITLE,
        "description": _corpus(provenance),
        "license": licence,
        "distribution": distribution,
        "recordSet": records,
    }


def _file_set(name: str, pattern: str, form: str) -> dict[str, str]:
    return {"@type": "cr:FileSet", "@id": name, "name": name, "includes": pattern, "encodingFormat": form}
