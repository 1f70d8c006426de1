"""A corpus from a query of Semantic Scholar's API: the shards of a release of the same papers, whatever goes wrong."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.releases.faults import EVERY_FAULT, Fault, Faults, Mishaps, each_request
from tests.releases.graph_server import GraphCatalogue, GraphHandler, Paper, serve_graph
from tests.releases.server import Arrival
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.release_folder import DATASETS
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.release import graph_query, retry
from cocite.corpus.release.manifest import write_manifest
from cocite.corpus.sources.s2_api import SemanticScholarQuery
from cocite.tools import machine

KEY = "a-key-that-must-stay-secret"
SIZE = 7
"""Papers on a page, and ids in a batch."""
QUERY = {"query": "paper", "years": "2004-2013"}
EXPANDED = QUERY | {"expand": {}}


def made_paper(number: int) -> Paper:
    cited = [{"paperId": "x", "corpusId": 1000 + (number * factor + 1) % 55} for factor in range(number % 5)]
    cited[3:4] = [{"paperId": None, "corpusId": None}] * len(cited[3:4])
    ids = {"DOI": f"10.1000/X{number}", "CorpusId": 1000 + number}
    ids |= {"PubMed": str(number)} if number % 5 == 0 else {}
    ids |= {"ArXiv": f"2101.{number:05}"} if number % 7 == 0 else {}
    return {
        "paperId": hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest(),
        "corpusId": 1000 + number,
        "externalIds": ids,
        "title": f"{'Paper' if number % 3 else 'Note'} {number}",
        "abstract": f"About it {number} é" if number % 4 else None,
        "year": 2000 + number % 16,
        "publicationDate": f"{2000 + number % 16}-03-01",
        "venue": "A venue",
        "s2FieldsOfStudy": [{"category": "Art", "source": "s2-fos-model"}],
        "citationCount": number,
        "referenceCount": number % 5,
        "authors": [{"authorId": "1", "name": f"Ada {number}"}],
        "references": cited if number % 11 else None,
    }


def made() -> list[Paper]:
    """Papers of 16 years, of which two in three have the word that is searched for; each cites up to four papers, some
    of which are unknown, or no paper of Semantic Scholar's."""
    return [made_paper(number) for number in range(50)]


PAPERS = made()
MATCHING = [each for each in PAPERS if "Paper" in each["title"] and 2004 <= each["year"] <= 2013]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)
    monkeypatch.setattr(graph_query, "PER_BATCH", SIZE)
    monkeypatch.setattr(retry, "DISTANCE", 0.0)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.6))


@contextmanager
def served(*, corpus: Any = None, longest: int = 10**7, **options: Any) -> Iterator[Any]:
    with serve_graph(GraphCatalogue(PAPERS, SIZE, longest), **({"key": KEY} | options)) as api:
        yield SemanticScholarQuery(source="semantic-scholar-api", api=api, **(corpus or QUERY))


def fetch(source: SemanticScholarQuery, folder: Path) -> dict[str, bytes]:
    """Dataset → the lines of its shard."""
    manifest, lines = source.list_release("2026-11-20", folder), {}
    write_manifest(folder / "corpus/manifest.json", manifest)
    for name, dataset in manifest.datasets.items():
        raw = folder / f"corpus/raw/{name}/0"
        source.fetch(manifest, name, dataset.shards, results=folder, state=folder / "unused", output=raw)
        lines[name] = gzip.decompress((raw / f"{name}.gz").read_bytes())
    assert not (folder / ".state/semantic-scholar-api").exists()
    return lines


def papers_of(fetched: dict[str, bytes]) -> list[int]:
    return sorted(json.loads(line)["corpusid"] for line in fetched["papers"].splitlines())


def released(papers: list[Paper]) -> dict[str, list[dict[str, Any]]]:
    """The records of a release of the same papers."""
    cited = [(each["corpusId"], to["corpusId"]) for each in papers for to in each["references"] or ()]
    keys = "corpusId externalIds title year publicationDate venue s2FieldsOfStudy citationCount referenceCount authors"
    return {
        "papers": [{key.lower(): each[key] for key in keys.split()} for each in papers],
        "abstracts": [{"corpusid": p["corpusId"], "abstract": p["abstract"]} for p in papers if p["abstract"]],
        "citations": [{"citingcorpusid": paper, "citedcorpusid": other} for paper, other in cited if other],
    }


def answered(requests: list[Arrival]) -> Counter[str]:
    """Requests whose answer was whole, by what they ask for, without the first one, which counts what matches."""
    return Counter(f"{each.method} {each.target}" for each in [each for each in requests if each.is_whole][1:])


def test_a_query_gives_the_shards_of_a_release_of_the_papers_that_match(tmp_path):
    requests: list[Arrival] = []
    with served(requests=requests) as source:
        found = fetch(source, tmp_path)
    assert {name: [*map(json.loads, lines.splitlines())] for name, lines in found.items()} == released(MATCHING)
    assert len(MATCHING) > 2 * SIZE
    # Those that count, the pages of the search, and the batches; the answers serve all three datasets.
    calls = -(-len(MATCHING) // SIZE)
    assert sorted(each.method for each in requests) == ["GET"] * (1 + calls) + ["POST"] * calls
    assert all(each.headers["x-api-key"] == KEY for each in requests)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, len(EVERY_FAULT)))])
def test_any_fault_at_any_request_leaves_the_shards_as_they_are(tmp_path, first, capfd):
    with served(corpus=EXPANDED) as source:
        expected = fetch(source, tmp_path / "good")
    requests: list[Arrival] = []
    for mishap in each_request(requests, first):
        with served(corpus=EXPANDED, mishaps=mishap, requests=requests) as source:
            assert fetch(source, tmp_path / str(mishap.number)) == expected
        again = [target for target, times in answered(requests).items() if times > 1]
        assert not again or mishap.fault == Fault.ALL_LAPSED
    assert mishap.number > 7
    assert KEY not in capfd.readouterr().err
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_bad_day_ends_well_and_a_stop_repeats_nothing(tmp_path, monkeypatch):
    with served(corpus=EXPANDED) as source:
        expected = fetch(source, tmp_path / "good")
    monkeypatch.setattr(retry, "RETRIES", 0)
    requests, stops = list[Arrival](), 0
    while not (tmp_path / "papers").exists():
        mishaps = Mishaps(Faults(share=0.3, seed=stops + 1, retry_after="0"))
        try:
            with served(corpus=EXPANDED, mishaps=mishaps, requests=requests) as source:
                manifest = source.list_release("2026-11-20", tmp_path)
                requests.clear() if stops == 0 else None
                place = {"results": tmp_path, "state": tmp_path / "unused", "output": tmp_path / "papers"}
                source.fetch(manifest, "papers", (), **place)
        except InputError:
            stops += 1
    assert stops > 2
    lines = gzip.decompress((tmp_path / "papers/papers.gz").read_bytes())
    assert sorted(lines.splitlines()) == sorted(expected["papers"].splitlines())
    batches = {target: times for target, times in answered(requests).items() if target.startswith("POST")}
    assert set(batches.values()) == {1}


def test_answers_are_kept_until_all_datasets_of_one_query_are_there(tmp_path):
    answers = tmp_path / ".state/semantic-scholar-api"
    for corpus, names in ((QUERY, DATASETS[:2]), (EXPANDED, DATASETS[1:])):
        with served(corpus=corpus) as source:
            manifest = source.list_release("2026-11-20", tmp_path)
            for name in names:
                places = {"results": tmp_path, "state": tmp_path, "output": tmp_path / f"{name}-{len(corpus)}"}
                source.fetch(manifest, name, (), **places)
        assert answers.exists()


def test_an_answer_that_would_be_too_long_is_asked_for_in_parts(tmp_path):
    with served() as source:
        expected = fetch(source, tmp_path / "good")
    requests: list[Arrival] = []
    with served(longest=2000, requests=requests) as source:
        assert fetch(source, tmp_path / "parts") == expected
    assert Counter(each.status for each in requests)[400] > 2


@pytest.mark.parametrize("too_long", [GraphHandler.too_long, (413, "Payload too large")])
def test_a_single_paper_that_is_too_long_is_refused_and_not_halved_for_ever(tmp_path, monkeypatch, too_long):
    monkeypatch.setattr(GraphHandler, "too_long", too_long)
    said = r"refuses ids of papers \(status {}: {}".format(*too_long)
    with served(longest=100) as source, pytest.raises(InputError, match=said):
        fetch(source, tmp_path)


def test_the_papers_that_are_cited_are_added_up_to_a_limit(tmp_path, capfd):
    known = {each["corpusId"] for each in PAPERS}
    queried = [each["corpusId"] for each in MATCHING]
    listed = [cited["corpusId"] for each in MATCHING for cited in each["references"] or () if cited["corpusId"]]
    times = Counter(cited for cited in listed if cited not in queried)
    chosen = sorted(times, key=lambda cited: (-times[cited], cited))
    for limit in (3, 100):
        with served(corpus=QUERY | {"expand": {"limit": limit}}) as source:
            found = papers_of(fetch(source, tmp_path / str(limit)))
        assert found == sorted([*queried, *({*chosen[:limit]} & known)])
    assert f"{len(chosen):,} works that are cited were requested" in capfd.readouterr().err


def test_a_list_gives_each_paper_once_and_names_the_entries_without_one(tmp_path):
    page = f"https://www.semanticscholar.org/paper/A-title/{PAPERS[5]['paperId']}"
    ids = [PAPERS[3]["paperId"], "CorpusId:1004", page, "10.1000/x6", "PMID:10", "arXiv:2101.00014"]
    ids += ["https://doi.org/10.1000/X6", "10.1000/unknown", "W77"]
    (tmp_path / "papers.txt").write_text("\n".join([*ids, ""]))
    with served(corpus={"list": str(tmp_path / "papers.txt")}) as source:
        found = papers_of(fetch(source, tmp_path))
    assert found == [1003, 1004, 1005, 1006, 1010, 1014]
    files = [tmp_path / f"corpus/unresolved/{dataset}/0.parquet" for dataset in ("papers", "citations")]
    unresolved, none = (read_table(file, "unresolved").to_pylist() for file in files)
    assert [(row["place"], row["reason"]) for row in unresolved] == [
        ("line 7", "the work of an earlier entry"),
        ("line 8", "Semantic Scholar has no work with this DOI"),
        ("line 9", "OpenAlex's id, which Semantic Scholar does not have"),
    ]
    assert not none


REFUSED = {
    "wrong key": ({"key": "another"}, r"refuses the key in S2_API_KEY \(status 403\)"),
    "no key": ({"key": ""}, r"refuses requests without a key \(status 401\): ask for one at .*export S2_API_KEY="),
    "wrong query": ({"query": 'a "phrase'}, r"refuses the query \(status 400: Bad query parameters: unbalanced"),
    "wrong place": ({"api": "/nowhere"}, "answers with status 404; is it the base URL"),
    "no match": ({"query": "zebra"}, "No paper of Semantic Scholar matches query: zebra with year: 2004-2013"),
    "many": ({"limit": 9}, r"papers of Semantic Scholar match .*corpus.limit \(9\).*set corpus.limit to 1000"),
}


@pytest.mark.parametrize(("corpus", "said"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_refuses_is_a_sentence_without_the_key(tmp_path, monkeypatch, corpus, said):
    monkeypatch.setenv("S2_API_KEY", corpus.get("key", KEY))
    with served() as source:
        changed = source.model_copy(update=corpus | {"api": source.api + corpus.get("api", "")})
        with pytest.raises(InputError, match=said) as caught:
            changed.list_release("latest", tmp_path)
    assert KEY not in str(caught.value)


def test_the_plan_and_the_doctor_say_what_it_costs_with_and_without_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("S2_API_KEY")
    requests: list[Arrival] = []
    with served(requests=requests, key=None) as source:
        corpus = {"source": "semantic-scholar-api", "api": source.api, "query": "paper", "expand": {}}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump({"release": "latest", "corpus": corpus}))
        said = CliRunner().invoke(app, ["corpus", "plan", "--configfile", "run.yaml"], catch_exceptions=False).output
        config = {"release": "latest", "corpus": corpus, "pathvars": {"results": str(tmp_path / "results")}}
        findings = list(machine.examine_source(config))
    assert "33 papers match: about 6 calls of the API, which cost nothing" in said
    assert "expand.references adds perhaps 660 papers" in said
    assert "Without a key, calls share a limit with all who have none" in said
    assert [finding.verdict for finding in findings] == ["ok", "ok"]
    assert not any("x-api-key" in request.headers for request in requests)
