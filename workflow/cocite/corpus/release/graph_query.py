"""A corpus from a query of Semantic Scholar's API or a list of papers: papers with their references, and those cited.

They become a release of three shards, in the layout of a download. Papers, abstracts and citations come in the same
answers, so the jobs that download the three go through them one after the other, and only the first one has to ask.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isal import igzip
from pydantic import BaseModel, NonNegativeInt

from cocite.config.release_folder import DATASETS
from cocite.config.source import S2_KEY
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import about, progress, report
from cocite.corpus.release import query
from cocite.corpus.release.client import SemanticScholarApi
from cocite.corpus.release.manifest import Manifest
from cocite.corpus.release.paper_list import Found, Id, Register, gather_listed, read_papers
from cocite.corpus.release.query import ADDED_BY_WORK, FIRST, Gathered, Page, Pages, Parameters, Work, batches
from cocite.corpus.release.retry import DISTANCE, said_by, status_of, turn

if TYPE_CHECKING:
    from cocite.corpus.sources.s2_api import SemanticScholarQuery

SEARCH, BATCH = "paper/search/bulk", "paper/batch"
PER_PAGE = 1000
"""Papers on a page of a search, at most."""
PER_BATCH = 500
"""The most ids in a call."""
ASKED_BY = "askedBy"
"""Key of a paper for the id that it was requested by, which may be that of a paper that was merged into it."""
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


class _Found(BaseModel):
    total: NonNegativeInt
    token: str | None = None
    data: list[Work]


class GraphApi(SemanticScholarApi):
    """The API at a base URL such as https://api.semanticscholar.org/graph/v1, which needs no key."""

    def __init__(self, base_url: str, turns: Path) -> None:
        """Read the key, if there is one. `turns` is the file through which all jobs keep the rate limit."""
        super().__init__(base_url, turns, S2_KEY.read() if S2_KEY.is_set else None)
        self.calls = 0
        """Answers so far."""

    def count(self, parameters: Parameters) -> int:
        """How many papers match, about."""
        return self._search({**parameters, "fields": "corpusId"}, FIRST).count

    def page(self, parameters: Parameters, cursor: str | None = None, received: int = 0) -> Page:
        """A page of the papers that match, or the papers that have the `ids` among the parameters. Raises
        `LapsedCursorError`, and `InputError` for a refused key or query."""
        if "ids" not in parameters:
            return self._search(parameters, cursor)
        papers = self._batch(list(parameters["ids"]), parameters["fields"])
        return Page(works=papers, count=len(papers), cursor=None)

    def _search(self, parameters: Parameters, cursor: str | None) -> Page:
        token = {} if cursor in (None, FIRST) else {"token": cursor}
        response = self._respond(SEARCH, params={**parameters, **token})
        if token and response.status_code in (400, 404, 410):
            raise query.LapsedCursorError(f"{self._host} no longer takes the token of a page ({status_of(response)})")
        if response.status_code == 400:
            raise InputError(f"{self._host} refuses the query ({status_of(response)}); correct corpus.query.")
        found: _Found = self._content(SEARCH, response, _Found)
        self.calls += 1
        return Page(works=found.data, count=found.total, cursor=found.token if found.data else None)

    def _batch(self, ids: list[str], fields: str) -> list[Work]:
        """The papers that have the ids; of half of them at a time if all are too much for an answer."""
        response = self._respond(BATCH, params={"fields": fields}, json={"ids": ids})
        said = said_by(response).lower()
        if response.status_code == 400 and "no valid paper ids" in said:
            self.calls += 1
            return []
        is_too_long = response.status_code == 413 or (response.status_code == 400 and "maximum" in said)
        if is_too_long and len(ids) > 1:
            half = (len(ids) + 1) // 2
            return [*self._batch(ids[:half], fields), *self._batch(ids[half:], fields)]
        if is_too_long or response.status_code == 400:
            raise InputError(f"{self._host} refuses ids of papers ({status_of(response)}); run again later.")
        papers: list[Work | None] = self._content(BATCH, response, list[Work | None])
        if len(papers) != len(ids):
            raise InputError(f"{self._host} answers with {len(papers)} papers for {len(ids)} ids; run again later.")
        self.calls += 1
        return [{**paper, ASKED_BY: of} for of, paper in zip(ids, papers, strict=True) if paper is not None]


def list_query(source: "SemanticScholarQuery", release: str, turns: Path) -> Manifest:
    """The manifest of what a query gives; `latest` is pinned to this day. Raises `InputError` if no paper matches, or
    more than the limit, or if a list has no ids."""
    if source.list is not None:
        count = sum(bool(paper.ids) for paper in read_papers(Path(source.list)))
    else:
        count = GraphApi(source.api, turns).count(source.parameters)
        of = ("paper", "Semantic Scholar")
        query.check_count(count, source.limit, source.parameters, of=of, cost=_cost(_calls(count)))
    sizes = {name: size * (count + _added(source, count)) for name, size in PACKED_OF_PAPER.items()}
    return query.manifest_of_query(release, count, sizes, README)


def _added(source: "SemanticScholarQuery", count: int) -> int:
    """The cited papers that are added, about or at most."""
    return 0 if source.expand is None else min(source.expand.limit, ADDED_BY_WORK * count)


def cost_of_query(source: "SemanticScholarQuery", manifest: Manifest) -> str:
    """The calls and the time for the papers that match by a manifest, and for those that are added, in words."""
    count = query.matching(manifest)
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
    asked = sha256(f"{manifest.release} {source.model_dump_json()}".encode()).hexdigest()[:16]
    with _answers_of(results, asked) as folder:
        pages = Pages(api=GraphApi(source.api, turns), folder=folder, fixed={}, release=manifest.release)
        with atomic_path(output) as made:
            made.mkdir()
            with igzip.open(made / f"{dataset}.gz", "wb") as lines:

                def write(papers: Iterable[Work]) -> None:
                    records = (record for paper in papers for record in _records(paper, dataset))
                    lines.write("".join(f"{json.dumps(record)}\n" for record in records).encode())

                gathered = Gathered(write=write, number_of=lambda paper: paper.get("corpusId"), cited_by=_cited)
                if source.list is not None:
                    register = Register("Semantic Scholar", _refusal, lambda ids: _look_up(ids, pages))
                    is_told = dataset == "papers"
                    gather_listed(Path(source.list), register, gathered, results, dataset=dataset, is_told=is_told)
                else:
                    _gather_matching(source, query.matching(manifest), pages, gathered)
                if source.expand is not None:
                    gathered.add_cited(source.expand.limit, PER_BATCH, lambda ids: _request_numbers(ids, pages))
        gathered.summary(pages, is_expanded=source.expand is not None)
        (folder / f"{asked}-{dataset}").touch()


@contextmanager
def _answers_of(results: Path, asked: str) -> Iterator[Path]:
    """The folder of the answers, for one job at a time; it goes once it has served all three of this query."""
    folder = results / ".state/semantic-scholar-api"
    with turn(results / ".state/semantic-scholar-api.lock"):
        folder.mkdir(exist_ok=True)
        yield folder
        if all((folder / f"{asked}-{name}").exists() for name in DATASETS):
            shutil.rmtree(folder)


def _gather_matching(source: "SemanticScholarQuery", count: int, pages: Pages, gathered: Gathered) -> None:
    """Search for ids, and request the papers that have them: a search gives no references."""
    sent = {**source.parameters, "fields": "corpusId"}
    found: dict[int, None] = {}
    for page in progress(pages.all(sent), of="search papers", unit="calls", total=-(-count // PER_PAGE)):
        found |= dict.fromkeys(number for paper in page.works if (number := paper.get("corpusId")))
    for ids in progress(batches(list(found), PER_BATCH), of="request papers", unit="calls"):
        gathered.add(_request_numbers(ids, pages))
    if len(gathered.ids) < count:
        report(f"{count - len(gathered.ids):,} of the {count:,} papers that matched at first did not come.")


def _refusal(listed: Id) -> str | None:
    return "OpenAlex's id, which Semantic Scholar does not have" if listed[0] == "ids.openalex" else None


def _look_up(ids: Sequence[Id], pages: Pages) -> Iterator[list[Found]]:
    for batch in batches(ids, PER_BATCH):
        listed = {}
        for name, value in batch:
            arxiv = value.removeprefix("10.48550/arxiv.")
            of_doi = f"DOI:{value}" if arxiv == value else f"ARXIV:{arxiv}"
            listed[{"s2": value, "ids.pmid": f"PMID:{value}"}.get(name, of_doi)] = (name, value)
        papers = _request(listed, pages)
        yield [(paper, str(paper["corpusId"]), [listed[paper[ASKED_BY]]]) for paper in papers]


def _request_numbers(numbers: Iterable[int], pages: Pages) -> list[Work]:
    return _request(map("CorpusId:{}".format, numbers), pages)


def _request(ids: Iterable[str], pages: Pages) -> list[Work]:
    return [paper for paper in pages.one({"ids": [*ids], **REQUESTED}).works if paper.get("corpusId")]


def _cited(paper: Work) -> list[int]:
    """The corpus ids of the references; those that are no paper of Semantic Scholar's have none."""
    return [cited for each in paper.get("references") or () if (cited := (each or {}).get("corpusId"))]


def _records(paper: Work, dataset: str) -> list[dict[str, Any]]:
    if dataset == "papers":
        return [{key: paper.get(field) for field, key in FIELDS.items()}]
    if dataset == "abstracts":
        return [{"corpusid": paper["corpusId"], "abstract": paper["abstract"]}] if paper.get("abstract") else []
    return [{"citingcorpusid": paper["corpusId"], "citedcorpusid": cited} for cited in _cited(paper)]
