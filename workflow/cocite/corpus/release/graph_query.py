"""A corpus from a query of Semantic Scholar's API or a list of papers: papers with their references, and those cited.

They become a release of three shards, in the layout of a download. Papers, abstracts and citations come in the same
answers, so the jobs that download the three go through them one after the other, and only the first one has to ask.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isal import igzip

from cocite.config.release_folder import DATASETS
from cocite.core.atomic import atomic_path
from cocite.core.progress import about, progress, report
from cocite.corpus.release.graph_api import ASKED_BY, PER_BATCH, PER_PAGE, GraphApi
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest
from cocite.corpus.release.paper_list import Found, Id, Register, gather_listed, read_papers
from cocite.corpus.release.query import ADDED_BY_WORK, Gathered, Pages, Work, batches, check_count, matching, pinned
from cocite.corpus.release.retry import DISTANCE, turn

if TYPE_CHECKING:
    from cocite.corpus.sources.s2_api import SemanticScholarQuery

FIELDS = {
    "corpusId": "corpusid",
    "externalIds": "externalids",
    "title": "title",
    "year": "year",
    "publicationDate": "publicationdate",
    "venue": "venue",
    "s2FieldsOfStudy": "s2fieldsofstudy",
    "citationCount": "citationcount",
    "referenceCount": "referencecount",
    "authors": "authors",
}
"""Field of the API → key of a paper in a release."""
REQUESTED = {"fields": ",".join([*FIELDS, "abstract", "references.corpusId"])}
PACKED_OF_PAPER = {"papers": 400, "abstracts": 700, "citations": 300}
"""Bytes of a packed paper with its abstract and references in the shards, about."""
README = (
    "From the Semantic Scholar Academic Graph API. Cite Kinney et al., 2023, The Semantic Scholar Open Data Platform "
    "(arXiv 2301.10140), and keep to the licence of the API: https://www.semanticscholar.org/product/api/license.\n"
)


def list_query(source: "SemanticScholarQuery", release: str, turns: Path) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day.

    Raises `InputError` if no paper matches, or more than the limit, or if a list has no ids.
    """
    if source.list is not None:
        return _manifest(source, release, sum(bool(paper.ids) for paper in read_papers(Path(source.list))))
    count = GraphApi(source.api, turns).count(source.parameters)
    of = ("paper", "Semantic Scholar")
    check_count(count, source.limit, source.parameters, of=of, cost=_cost(_calls(count)))
    return _manifest(source, release, count)


def _manifest(source: "SemanticScholarQuery", release: str, count: int) -> Manifest:
    datasets = {}
    for name in DATASETS:
        size = PACKED_OF_PAPER[name] * (count + _added(source, count))
        shard = CopiedShard(
            name=f"{name}.gz", path=f"{name}.gz", bytes=size, needed=size, records=count, estimated=True
        )
        datasets[name] = Dataset(shards=(shard,), readme=README)
    return Manifest(release=pinned(release), datasets=datasets)


def _added(source: "SemanticScholarQuery", count: int) -> int:
    """The cited papers that are added, about or at most."""
    return 0 if source.expand is None else min(source.expand.limit, ADDED_BY_WORK * count)


def cost_of_query(source: "SemanticScholarQuery", manifest: Manifest) -> str:
    """The calls and the time for the papers that match by a manifest, and for those that are added, in words."""
    count = matching(manifest)
    what = "papers match" if source.list is None else f"entries of {source.list} have an id"
    calls = _calls(count) if source.list is None else -(-count // PER_BATCH)
    parts = [f"{count:,} {what}: {_cost(calls)}."]
    if added := _added(source, count):
        parts.append(f"expand.references adds perhaps {added:,} papers: {_cost(-(-added // PER_BATCH))}.")
    if source.api_key is None:
        parts.append("Without a key, calls share a limit with all who have none, and may have to wait.")
    return " ".join(parts)


def _calls(count: int) -> int:
    """Those of the search and those that request what it found."""
    return -(-count // PER_PAGE) + -(-count // PER_BATCH)


def _cost(calls: int) -> str:
    return f"about {calls:,} call{'s' * (calls != 1)} of the API, which cost nothing, {about(2 * DISTANCE * calls)}"


def fetch_query(
    source: "SemanticScholarQuery", manifest: Manifest, dataset: str, *, results: Path, turns: Path, output: Path
) -> None:
    """Make a folder with the shard of a dataset. Raises `InputError` if the API refuses."""
    query = sha256(f"{manifest.release} {source.model_dump_json()}".encode()).hexdigest()[:16]
    with _answers_of(results, query) as folder:
        api = GraphApi(source.api, turns)
        pages = Pages(api=api, folder=folder, fixed={}, release=manifest.release)
        with atomic_path(output) as made:
            made.mkdir()
            with igzip.open(made / f"{dataset}.gz", "wb") as lines:
                gathered = Gathered(
                    write=lambda papers: lines.write(_lines(papers, RECORDS[dataset])),
                    number_of=lambda paper: paper.get("corpusId"),
                    cited_by=_cited,
                )
                if source.list is not None:
                    register = Register("Semantic Scholar", _refusal, lambda ids: _look_up(ids, pages))
                    is_told = dataset == "papers"
                    gather_listed(Path(source.list), register, gathered, results, dataset=dataset, is_told=is_told)
                else:
                    _gather_matching(source, matching(manifest), pages, gathered)
                if source.expand is not None:
                    gathered.add_cited(
                        source.expand.limit, PER_BATCH, lambda ids: _request(map(_by_number, ids), pages)
                    )
        gathered.summary(pages, is_expanded=source.expand is not None)
        (folder / f"{query}-{dataset}").touch()


@contextmanager
def _answers_of(results: Path, query: str) -> Iterator[Path]:
    """The folder of the answers, for one job at a time; it goes once it has served all three of this query."""
    folder = results / ".state/semantic-scholar-api"
    with turn(results / ".state/semantic-scholar-api.lock"):
        folder.mkdir(exist_ok=True)
        yield folder
        if all((folder / f"{query}-{name}").exists() for name in DATASETS):
            shutil.rmtree(folder)


def _gather_matching(source: "SemanticScholarQuery", count: int, pages: Pages, gathered: Gathered) -> None:
    """Search for ids, and request the papers that have them: a search gives no references."""
    sent = {**source.parameters, "fields": "corpusId"}
    found: dict[int, None] = {}
    for page in progress(pages.all(sent), of="search papers", unit="calls", total=-(-count // PER_PAGE)):
        found |= dict.fromkeys(number for paper in page.works if (number := paper.get("corpusId")))
    for ids in progress(batches(list(found), PER_BATCH), of="request papers", unit="calls"):
        gathered.add(_request(map(_by_number, ids), pages))
    if len(gathered.ids) < count:
        report(f"{count - len(gathered.ids):,} of the {count:,} papers that matched at first did not come.")


def _refusal(listed: Id) -> str | None:
    """Why an id cannot be looked up, if it cannot."""
    return "OpenAlex's id, which Semantic Scholar does not have" if listed[0] == "ids.openalex" else None


def _look_up(ids: Sequence[Id], pages: Pages) -> Iterator[list[Found]]:
    for batch in batches(ids, PER_BATCH):
        listed = {_as_asked(each): each for each in batch}
        papers = _request(listed, pages)
        yield [(paper, str(paper["corpusId"]), [listed[paper[ASKED_BY]]]) for paper in papers]


def _as_asked(listed: Id) -> str:
    """An id of a list as the API takes it."""
    name, value = listed
    arxiv = value.removeprefix("10.48550/arxiv.")
    if name == "s2":
        return value
    if name == "ids.pmid":
        return f"PMID:{value}"
    return f"DOI:{value}" if arxiv == value else f"ARXIV:{arxiv}"


def _by_number(number: int) -> str:
    return f"CorpusId:{number}"


def _request(ids: Iterable[str], pages: Pages) -> list[Work]:
    return [paper for paper in pages.one({"ids": [*ids], **REQUESTED}).works if paper.get("corpusId")]


def _cited(paper: Work) -> list[int]:
    """The corpus ids of the references; those that are no paper of Semantic Scholar's have none."""
    return [cited for each in paper.get("references") or () if (cited := (each or {}).get("corpusId"))]


def _lines(papers: Iterable[Work], records: Callable[[Work], Iterable[Mapping[str, Any]]]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for paper in papers for record in records(paper)).encode()


def _papers(paper: Work) -> Iterator[Mapping[str, Any]]:
    yield {key: paper.get(field) for field, key in FIELDS.items()}


def _abstracts(paper: Work) -> Iterator[Mapping[str, Any]]:
    if paper.get("abstract"):
        yield {"corpusid": paper["corpusId"], "abstract": paper["abstract"]}


def _citations(paper: Work) -> Iterator[Mapping[str, Any]]:
    yield from ({"citingcorpusid": paper["corpusId"], "citedcorpusid": cited} for cited in _cited(paper))


RECORDS = {"papers": _papers, "abstracts": _abstracts, "citations": _citations}
"""Dataset → the records of a paper in it."""
