"""Shards, parts and buckets of a release, the files that name queries, and which documents are papers of the corpus."""

import json
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.io import expand, temp

from cocite.config.benchmark import HoldoutSettings
from cocite.config.release_folder import DATASETS, WORKS, find_shards
from cocite.config.source import Link
from cocite.plan.stage import StagePlan, as_text, size_mb, whole, within_a_day

NUMBERED = "<results>/corpus/numbered/{list}.txt"
LISTED_NAMES = "<results>/corpus/ingested/{dataset}/names/{part}.parquet"


class CorpusPlan(StagePlan):
    """The corpus: its shards, their records, and the papers that are queries."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.source: Any = self.config.corpus  # source of the release
        self.reused_base: str = getattr(self.source, "base", None) or ""
        """The results whose rows are reused, by diffs or by shards; empty if the release is read whole."""
        self.base = self.reused_base if self.source.updates_by_diffs else ""  # results that diffs lead from
        self.datasets = list(dict.fromkeys([*self.source.holds, *DATASETS]))  # released, and ingested from them
        self.list_of_papers = list(filter(None, [self.source.list_of_papers]))  # the file that lists them
        self.held_in = {name: dataset for dataset, held in self.source.holds.items() for name in held}
        """The dataset of the release with the records of papers, abstracts or citations: that of the name, or works."""
        self.with_contexts = [] if self.source.contexts is None else ["citations"]  # ingested with sentences
        self.from_tables = list(DATASETS) if self.source.source == "table" else []  # read by separate rules
        self.with_names = ["papers", "citations"] if getattr(self.source, "ids", "") == "string" else []
        """Those among them whose ids are texts that are to be numbered."""
        has_authors = self.source.authors and "papers" in self.source.holds and not self.from_tables
        self.with_authors = ["papers"] if has_authors else []
        """The datasets that are ingested with authors; works and tables have separate rules with an option for it."""
        others = [*self.with_contexts, *self.with_authors, *self.from_tables]
        self.ingested_alone = [name for name in self.source.holds if name in DATASETS and name not in others]
        """All others whose records become one table."""
        queries = {"queries": path} if (path := getattr(self.config.queries, "path", "")) else {}
        lists = {
            f"exclude-{n}": path for n, path in enumerate(self.config.exclude) if path not in self.config.benchmarks
        }
        self.named: dict[str, str] = queries | lists if self.with_names else {}
        """The files that name queries and papers to exclude, if these are the names of ids that were numbered."""
        self.by_records = "<results>/corpus/records" if self.source.twins == "merge" else "<results>/corpus"
        """The folder of papers, citations and sentences by records, which may be more than works."""
        self.known_by: dict[str, Link] = {name: self.config.link_of(name) for name in self.config.benchmarks}
        """How the documents of each benchmark are matched to papers: by ids, hashes, matches, or text only."""

    @cached_property
    def given(self) -> dict[str, list[str]]:
        """Shards of each dataset that are read in place; none if they are downloaded."""
        return {dataset: list(map(str, self.source.shards_in_place(dataset))) for dataset in self.source.holds}

    @cached_property
    def all_given(self) -> list[str]:
        """All of these."""
        return [shard for shards in self.given.values() for shard in shards]

    @cached_property
    def parts(self) -> dict[str, range]:
        """The jobs that share the shards of each dataset; of more shards than planned, some take several."""
        return {name: range(self.source.parts(name)) for name in dict.fromkeys([*self.source.holds, *self.held_in])}

    @cached_property
    def reused(self) -> dict[str, list[int]]:
        """Further jobs, which take the rows of shards from a base that no diffs lead on from."""
        has_reused = self.reused_base and not self.base
        return {name: [len(each) + part for part in each] if has_reused else [] for name, each in self.parts.items()}

    @cached_property
    def all_parts(self) -> dict[str, list[int]]:
        """All jobs of each dataset."""
        return {name: [*self.parts[name], *self.reused[name]] for name in self.parts}

    def papers_by_record(self) -> list[str]:
        """All records of papers, by whose ids, DOIs and texts documents of others are known."""
        return self.buckets(f"{self.by_records}/papers/{{bucket}}.parquet")

    def papers(self) -> list[str]:
        """The papers of the corpus."""
        return self.buckets("<results>/corpus/papers/{bucket}.parquet")

    def citations(self) -> list[str]:
        """Their citations."""
        return self.buckets("<results>/corpus/citations/{bucket}.parquet")

    def each_part(self, path: str, dataset: str = "") -> Callable[[Any], list[str]]:
        """A file for each job that shares the shards of a dataset, or takes their rows from the base."""

        def files(wildcards: Any) -> list[str]:
            name = dataset or wildcards.dataset
            return expand(path, dataset=name, part=self.all_parts[name])

        return files

    def download_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time of a download, at first no more than a day: two seconds per MB, and two hours if the server is down."""
        return within_a_day(120 + self._mb_to_download(wildcards.dataset, input) / 30, attempt)

    def download_mb(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of a download; for a query, 1.5 kB for each work of 2 kB."""
        sizes = [self._mb_to_download(name, input) for name in self.source.holds] if self.source.is_query else []
        return whole(300 + 0.75 * sum(sizes)) * attempt

    def _mb_to_download(self, dataset: str, input: Any) -> float:
        shards = json.loads(Path(input.manifest).read_text())["datasets"][dataset]["shards"]
        return sum(shard.get("needed", shard["bytes"]) for shard in shards) / 1e6 / len(self.parts[dataset])

    def reuse_minutes(self, wildcards: Any, attempt: int) -> int:
        """Time to copy a part of what the base has ingested, three seconds per MB."""
        ingested_before = Path(self.reused_base, "corpus/ingested").glob("*/*.parquet")
        return whole(20 + 0.05 * size_mb(ingested_before) / len(self.parts[WORKS])) * attempt

    def update_minutes(self, wildcards: Any, attempt: int) -> int:
        """Time to update a bucket, as to merge one: by its share of the base's rows, all of which are written again."""
        ingested_before = Path(self.base, "corpus/ingested", wildcards.dataset).glob("*.parquet")
        return whole(20 + 0.1 * size_mb(ingested_before) / self.source.buckets) * attempt

    def temp_unless(self, key: str, path: Any) -> Any:
        """Downloaded shards or ingested rows: deleted once they are read, unless a key of the corpus keeps them."""
        return path if getattr(self.source, key, False) else temp(path)

    def ingested(self, table: str) -> Any:
        """A file of ingested rows."""
        return self.temp_unless("keep_ingested", f"<results>/corpus/ingested/{table}.parquet")

    def read_from_shards(self) -> Any:
        """What a job reads from shards: rows to merge or, with a base, the changes to its rows."""
        changes = "<results>/corpus/changes/{dataset}/{part}.parquet"
        return temp(changes) if self.base else self.ingested("{dataset}/{part}")

    def accounted(self, *names: str) -> list[str]:
        """The accounts of the lines that papers, abstracts or citations were read from."""
        datasets = dict.fromkeys(self.held_in[name] for name in names)
        accounts = expand("<results>/corpus/omissions/ingest-{dataset}.parquet", dataset=datasets)
        is_checked = self.from_tables and "citations" in names
        return accounts + (["<results>/corpus/omissions/cited.parquet"] if is_checked else [])

    def rows_to_merge(self, dataset: str) -> Any:
        """The ingested rows of a dataset: a file for each job that shares its shards, or for each updated bucket."""
        if self.base:
            return self.buckets("<results>/corpus/ingested/{dataset}/{bucket}.parquet", dataset=dataset)
        return self.each_part("<results>/corpus/ingested/{dataset}/{part}.parquet", dataset)

    def papers_with_years(self) -> Any:
        """The ingested papers, which give the years after the last year of the corpus; nothing if there is none."""
        return self.rows_to_merge("papers") if self.source.until is not None else []

    @cached_property
    def triplets(self) -> list[str] | str:
        """The files of published triplets in the folder that the configuration names; others are fetched."""
        folder = Path(getattr(self.config.queries, "dataset", ""))
        is_given = folder.name and folder.is_dir()
        return sorted(map(str, folder.rglob("*.parquet"))) if is_given else "<results>/corpus/triplets"

    def asked_queries(self) -> Any:
        """The file that names the queries: ids, or the table of published ones; nothing if the rule draws them."""
        match self.config.queries.from_:
            case "file":
                return NUMBERED.format(list="queries") if "queries" in self.named else self.config.queries.path
            case "triplets":
                return "<results>/corpus/published_queries.parquet"
        return []

    def query_settings(self) -> str:
        """How queries are chosen, as JSON, with the path of the file that names them but not its origin."""
        # Not a function of the input: Snakemake does not notice a change in a parameter that is one.
        path, entries = self.asked_queries(), self.config.benchmarks.values()
        further: dict[str, Any] = {"path": path.replace("<results>", self.plan.results)} if path else {}
        references = [getattr(each, "positives", 0) for each in entries if each.made_by is HoldoutSettings]
        if references:
            further["holdout_references"] = max(references)
        made = [each for each in entries if each.made_by is not None]
        if made and all(getattr(each, "by_time", False) for each in made):
            further["holdout_by_chance"] = False
        return as_text(self.config.queries, "dataset", "revision", "path", twins=self.source.twins, **further)

    def excluded_papers(self) -> list[str]:
        """The files that name the papers to exclude: lists of ids, and documents of benchmarks with their papers."""
        benchmarks = [entry for entry in self.config.exclude if entry in self.config.benchmarks]
        files = {entry: NUMBERED.format(list=name) for name, entry in self.named.items() if name != "queries"}
        files |= {entry: f"<results>/evaluation/{entry}/documents.parquet" for entry in benchmarks}
        return [*(files.get(entry, entry) for entry in self.config.exclude), *self.papers_of_documents(benchmarks)]

    def shards_in(self, folder: str | Path | None) -> list[str]:
        """The files of a dataset of Semantic Scholar's in a folder that the corpus names; none without one."""
        return list(map(str, find_shards(Path(folder)))) if folder else []

    def by_link(self, link: Link, value: Any) -> Callable[[Any], Any]:
        """A value for the benchmarks whose documents are matched to papers in this way; nothing for others."""
        return lambda wildcards: value if self.known_by[wildcards.benchmark] == link else []

    def papers_of_documents(self, benchmarks: Iterable[str]) -> list[str]:
        """The matched papers of documents of some benchmarks, of those whose ids alone do not identify them."""
        others = [name for name in benchmarks if self.known_by[name] != "ids"]
        return expand("<results>/corpus/document_papers/{benchmark}.parquet", benchmark=others)

    def id_spaces(self) -> str:
        """Whose ids the papers of the corpus have, and the documents of each benchmark, as JSON."""
        owners: list[tuple[Any, ...]] = [("corpus", self.source.source, self.source.whose_ids, None)]
        owners += [(name, e.kind, e.document_ids, self.known_by[name]) for name, e in self.config.benchmarks.items()]
        columns = ("owner", "kind", "id_space", "known_by")
        return json.dumps([dict(zip(columns, owner, strict=True)) for owner in owners], sort_keys=True)

    def tables_of_papers(self) -> list[str]:
        """Every table of papers between the corpus and the encoders, where an excluded paper could leak to."""
        return [
            *self.plan.graph.tables_of_pairs(),
            *self.plan.graph.edges(list(self.config.graphs)),
            *expand("<results>/embeddings/{name}/graph_embeddings.parquet", name=self.config.embeddings),
            *self.plan.neighbours.all_neighbours(),
            *map(self.plan.triplets.sampled, self.config.triplets),
            *self.plan.triplets.materialised("examples.parquet"),
            *self.plan.triplets.materialised("documents"),
        ]

    def raw_shards(self, wildcards: Any) -> str:
        """What a job ingests: the folder of its downloads, or one of the shards in the user's folder."""
        if self.source.fetches:
            return f"<results>/corpus/raw/{wildcards.dataset}/{wildcards.part}"
        return self.given[wildcards.dataset][int(wildcards.part)]

    def listed_names(self, wildcards: Any) -> str | list[str]:
        """The names in the file that a job reads, if ids are texts; abstracts are in the files of the papers."""
        dataset = "citations" if wildcards.dataset == "citations" else "papers"
        return LISTED_NAMES.format(dataset=dataset, part=wildcards.part) if self.with_names else []

    def all_listed_names(self) -> list[str]:
        """The names in all files."""
        return [file for name in self.with_names for file in expand(LISTED_NAMES, dataset=name, part=self.parts[name])]
