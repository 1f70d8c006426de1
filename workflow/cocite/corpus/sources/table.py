"""User-supplied tables of papers and citations, as text, Parquet or JSON Lines, read in place."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Whole
from cocite.config.release_folder import DATASETS
from cocite.config.source import IdSpace, MatchedSource, faults_of_name
from cocite.config.table_files import CitationTable, PaperTable

if TYPE_CHECKING:
    from cocite.corpus.release.manifest import Manifest


class Table(MatchedSource):
    """Reads tables of papers and of citations, whose columns the configuration names."""

    source: Literal["table"]
    """Source of the release."""
    papers: PaperTable
    """The table of papers."""
    citations: CitationTable
    """The table of citations."""
    ids: Literal["integer", "string"] = "integer"
    """Type of the ids: integer keeps whole numbers from 0 on; string accepts any text and assigns each a number, listed
    in the table names."""
    id_space: IdSpace = "own"
    """The id space of whole numbers: s2 for Semantic Scholar's corpus ids, openalex for OpenAlex's work numbers, own
    for others. Documents of benchmarks are matched to papers by id only if both use the same id space."""

    outside: Annotated[float, Field(ge=0, le=1)] = 0.999
    """Largest share of the citations of papers that may lead to ids that are no paper, in a file or in all, before the
    run stops, since the two tables then write ids differently; 1 never stops it."""

    fetches: ClassVar = False
    marks_citations: ClassVar = False
    # A file of papers counts for papers, and once more for abstracts. The releases hci and synergy as packed CSV
    # with names for ids: 0.10, 1.00 and 0.43, and 0.08, 1.04 and 0.42; the names 0.13 and 0.27 of the citations' files.
    parquet_of_packed: ClassVar = {"papers": 0.15, "abstracts": 1.05, "citations": 0.75}

    def table_of(self, dataset: str) -> PaperTable | CitationTable:
        """The table that a dataset is read from."""
        return self.citations if dataset == "citations" else self.papers

    def shards_in_place(self, dataset: str) -> Sequence[Path]:
        """The files of the table of a dataset, by path."""
        return [Path(path) for path in self.table_of(dataset).paths()]

    def origin(self, results: Path) -> str:
        """The files."""
        return " and ".join(dict.fromkeys(self.table_of(dataset).files for dataset in DATASETS))

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of the files. Raises `InputError` if a file is missing, or lacks a column that is named."""
        from cocite.corpus.ingest.user_files import check_columns
        from cocite.corpus.release.manifest import Dataset, Manifest, Shard

        datasets = {}
        for dataset in DATASETS:
            table = self.table_of(dataset)
            paths = self.shards_in_place(dataset)
            check_columns(table, paths, key="corpus.citations" if dataset == "citations" else "corpus.papers")
            shards = tuple(Shard(name=str(path), bytes=path.stat().st_size) for path in paths)
            datasets[dataset] = Dataset(shards=shards, readme="")
        return Manifest(release=release, datasets=datasets)

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """How many jobs read the files."""
        first = ", after others have listed their ids" if self.ids == "string" else ""
        return f"{sum(shards.values())} jobs read a file each{first}: those of papers once more for the abstracts."

    def remarks(self) -> Iterator[str]:
        """Which cited ids are no papers, in the first rows of the files."""
        from cocite.corpus.ingest.outside import shares_in_words

        yield shares_in_words(self.papers, self.citations, self.outside, numbers=self.ids == "integer")

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A release whose name no folder can have, files that cannot be read, and keys that do not go together."""
        yield from faults_of_name(config.release)
        for name in ("papers", "citations"):
            yield from getattr(self, name).faults_of_files(f"{key}.{name}", config.folders["results"])
        if self.ids == "string" and self.id_space != "own":
            yield f"{key}.id_space: with {key}.ids: string, papers are numbered anew; their ids are their own."
        yield from self.faults_of_match(f"{key}.match")
        if self.match is not None and self.papers.columns.doi is None:
            needs = f"needs {key}.papers.columns.doi, the column of DOIs"
            yield f"{key}.match {needs}; papers of tables are matched by nothing else."
        if self.contexts is not None:
            yield f"{key}.contexts does not go together with source: table, which reads no sentences that cite."
        named = self.papers.columns.authors is not None
        if self.authors and not named:
            yield f"{key}.authors needs {key}.papers.columns.authors, the column of their names."
        if named and not self.authors:
            yield f"{key}.papers.columns.authors has an effect only with {key}.authors: true."
