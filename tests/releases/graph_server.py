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
from tests.releases.server import Arrival, Handler, Site, serving

Paper = dict[str, Any]
BASE = "/graph/v1"
PREFIXES = {"DOI": "DOI", "PMID": "PubMed", "ARXIV": "ArXiv"}
"""Prefix of an id → its name among the external ids."""


class GraphCatalogue(Catalogue):
    storages = ()

    def __init__(self, papers: Sequence[Paper], per_page: int = 1000, longest: int = 10**7) -> None:
        """`longest` is the length of the longest answer to a batch, bytes."""
        self.papers = {paper["corpusId"]: paper for paper in papers}
        self.per_page, self.longest = per_page, longest

    def matching(self, sent: dict[str, str]) -> list[Paper]:
        first, _, last = sent.get("year", "-").partition("-")
        words = sent["query"].lower().split()
        papers = [paper for _, paper in sorted(self.papers.items())]
        dated = [paper for paper in papers if int(first or 0) <= (paper["year"] or 0) <= int(last or 9999)]
        texts = [f"{paper['title']} {paper['abstract'] or ''}".lower() for paper in dated]
        return [paper for paper, text in zip(dated, texts, strict=True) if all(word in text for word in words)]

    def of_id(self, asked: str) -> Paper | None:
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


class GraphSite(Site):
    catalogue: GraphCatalogue

    def __init__(self, catalogue: GraphCatalogue, key: str | None) -> None:
        super().__init__(catalogue, key or "")
        self.needs_key = key is not None
        self.tokens: dict[str, int] = {}
        """Tokens that were given and have not lapsed, and the place that they lead on from."""


class GraphHandler(Handler):
    site: GraphSite
    sent = b""
    too_long = 400, "Response would exceed maximum size"

    def do_POST(self) -> None:  # noqa: N802
        self.sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def answer_api(self, parts: list[str]) -> None:
        url = urlsplit(self.path)
        parameters = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.arrival.target += self.sent.decode()
        if self.arrival.fault == Fault.ALL_LAPSED:
            self.site.tokens.clear()
        if self.site.needs_key and not self.key_is_right():
            return
        match self.command, url.path.removeprefix(BASE):
            case "GET", "/paper/search/bulk" | "/paper/search":
                self._search(parameters)
            case "POST", "/paper/batch":
                self._batch(parameters)
            case _:
                self.send_unknown()

    def refuse(self, error: str, status: int = 400) -> None:
        self.send_json(HTTPStatus(status), {"error": error})

    def _search(self, sent: dict[str, str]) -> None:
        tokens, catalogue = self.site.tokens, self.site.catalogue
        if sent["query"].count('"') % 2:
            self.refuse("Bad query parameters: unbalanced quotation marks")
            return
        if "token" in sent and sent["token"] not in tokens:
            self.refuse("Invalid or expired continuation token")
            return
        found = catalogue.matching(sent)
        start = tokens.get(sent.get("token", ""), 0)
        end = start + catalogue.per_page
        token = secrets.token_urlsafe(16) if end < len(found) else None
        if token:
            tokens[token] = end
        data = [chosen_fields(paper, sent["fields"]) for paper in found[start:end]]
        self.send_json(HTTPStatus.OK, {"total": len(found), "token": token, "data": data})

    def _batch(self, sent: dict[str, str]) -> None:
        ids = json.loads(self.sent)["ids"]
        papers = [self.site.catalogue.of_id(each) for each in ids]
        answer = [paper and chosen_fields(paper, sent["fields"]) for paper in papers]
        if not 0 < len(ids) <= 500:
            self.refuse("Too many paper ids")
        elif not any(papers):
            self.refuse("No valid paper ids given")
        elif len(json.dumps(answer)) > self.site.catalogue.longest:
            status, said = self.too_long
            self.refuse(said, status)
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
