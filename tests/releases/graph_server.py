"""Semantic Scholar's Graph API on this machine: papers by a bulk search with tokens and by batches of ids."""

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.local_server import Catalogue
from tests.releases.server import Arrival, FailingHandler, FailingSite, serving

Paper = dict[str, Any]
BASE = "/graph/v1"
PREFIXES = {"DOI": "DOI", "PMID": "PubMed", "ARXIV": "ArXiv"}
"""Prefix of an id → its name among the external ids."""


class GraphCatalogue(Catalogue):
    """Papers as the API has them, with all their fields."""

    storages = ()

    def __init__(self, papers: Sequence[Paper], per_page: int = 1000, longest: int = 10**7) -> None:
        """`longest` is the length of the longest answer to a batch, bytes."""
        self.papers = {paper["corpusId"]: paper for paper in papers}
        self.per_page, self.longest = per_page, longest

    def matching(self, sent: dict[str, str]) -> list[Paper]:
        """The papers with all words, and of a year from the first to the last."""
        first, _, last = sent.get("year", "-").partition("-")
        words = sent["query"].lower().split()
        return [
            paper
            for _, paper in sorted(self.papers.items())
            if all(word in f"{paper['title']} {paper['abstract'] or ''}".lower() for word in words)
            and int(first or 0) <= (paper["year"] or 0) <= int(last or 9999)
        ]

    def of_id(self, asked: str) -> Paper | None:
        """The paper that an id names."""
        prefix, _, value = asked.partition(":")
        if prefix == "CorpusId":
            return self.papers.get(int(value))
        if not value:
            return next((each for each in self.papers.values() if each["paperId"] == asked), None)
        named = ((each["externalIds"].get(PREFIXES[prefix], ""), each) for each in self.papers.values())
        return next((paper for name, paper in named if name.lower() == value.lower()), None)


def chosen_fields(paper: Paper, fields: str) -> Paper:
    """A paper with its paperId and the fields of a list, such as corpusId,references.corpusId."""
    names = (name.partition(".")[0] for name in fields.split(","))
    return {"paperId": paper["paperId"], **{name: paper[name] for name in names}}


class GraphSite(FailingSite):
    catalogue: GraphCatalogue

    def __init__(self, catalogue: GraphCatalogue, key: str | None) -> None:
        super().__init__(catalogue, key or "")
        self.needs_key = key is not None
        self.tokens: dict[str, int] = {}
        """Tokens that were given and have not lapsed, and the place that they lead on from."""


class GraphHandler(FailingHandler):
    site: GraphSite
    sent = b""
    """The body of a request."""
    too_long = 400, "Response would exceed maximum size"
    """How an answer that would be too long is refused."""

    def do_POST(self) -> None:  # noqa: N802
        self.sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer()

    def answer_api(self, parts: list[str]) -> None:
        url = urlsplit(self.path)
        parameters = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.arrival.target += self.sent.decode()
        if self.arrival.fault == Fault.ALL_LAPSED:
            self.site.tokens.clear()
        if self.site.needs_key and not self.key_is_right():
            return
        answers = {
            ("GET", f"{BASE}/paper/search/bulk"): self._search,
            ("GET", f"{BASE}/paper/search"): self._search,
            ("POST", f"{BASE}/paper/batch"): self._batch,
        }
        if answer := answers.get((self.command, url.path)):
            answer(parameters)
        else:
            self.send_unknown()

    def _search(self, sent: dict[str, str]) -> None:
        if sent["query"].count('"') % 2:
            self.send_json(HTTPStatus.BAD_REQUEST, {"error": "Bad query parameters: unbalanced quotation marks"})
            return
        if "token" in sent and sent["token"] not in self.site.tokens:
            self.send_json(HTTPStatus.BAD_REQUEST, {"error": "Invalid or expired continuation token"})
            return
        found = self.site.catalogue.matching(sent)
        start = self.site.tokens.get(sent.get("token", ""), 0)
        end = start + self.site.catalogue.per_page
        token = secrets.token_urlsafe(16) if end < len(found) else None
        if token:
            self.site.tokens[token] = end
        data = [chosen_fields(paper, sent["fields"]) for paper in found[start:end]]
        self.send_json(HTTPStatus.OK, {"total": len(found), "token": token, "data": data})

    def _batch(self, sent: dict[str, str]) -> None:
        ids = json.loads(self.sent)["ids"]
        papers = [self.site.catalogue.of_id(each) for each in ids]
        answer = [paper and chosen_fields(paper, sent["fields"]) for paper in papers]
        if not 0 < len(ids) <= 500:
            self.send_json(HTTPStatus.BAD_REQUEST, {"error": "Too many paper ids"})
        elif not any(papers):
            self.send_json(HTTPStatus.BAD_REQUEST, {"error": "No valid paper ids given"})
        elif len(json.dumps(answer)) > self.site.catalogue.longest:
            status, said = self.too_long
            self.send_json(HTTPStatus(status), {"error": said})
        else:
            self.send_json(HTTPStatus.OK, answer)


GraphSite.handler = GraphHandler


@contextmanager
def serve_graph(
    catalogue: GraphCatalogue,
    *,
    key: str | None = None,
    mishaps: Mishaps | None = None,
    requests: list[Arrival] | None = None,
) -> Iterator[str]:
    """Serve the papers of a catalogue, to all or to those with the key; yield the base URL."""
    with serving(GraphSite(catalogue, key), mishaps or Mishaps(Faults()), requests) as origin:
        yield f"{origin}{BASE}"
