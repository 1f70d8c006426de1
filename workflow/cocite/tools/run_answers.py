"""What a finished run answers, over HTTP (`web`) and to assistants (`assistants`), as plain values of JSON.

The readers of requests, the OpenAPI document and the tools of assistants follow from the signatures. Ids are texts in
answers, since JavaScript has no whole numbers of 63 bits. Several threads may call at once: DuckDB gets a cursor for
each answer, and one text is embedded at a time.
"""

from collections.abc import Callable, Mapping
from inspect import getdoc
from typing import Annotated, Any, Literal, NotRequired
from urllib.parse import quote

import duckdb
import numpy as np
from bm25s.stopwords import STOPWORDS_EN
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict  # which pydantic asks for before Python 3.12

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.written_ids import LARGEST_ID
from cocite.plan.recorded import configuration_of
from cocite.retrieval.search import WORD
from cocite.tools.answers import RecordForm, written
from cocite.tools.contents import changed_files, viewed_tables
from cocite.tools.finished_run import BM25, RELATIONS, MissingError, Run, WrongRequestError
from cocite.tools.nearest import moved
from cocite.tools.paper_map import PaperMap
from cocite.tools.search_indexes import Paper

SUGGESTIONS = 8
EXAMPLES = 3
WORDS = 6
"""Words that two papers share, at most."""
TITLE = 300
"""Characters of a text that count as a title."""
ORDER = ("cites", "is cited by", "co-cited", "positive", "negative")
ADDRESSES = {"s2": "https://api.semanticscholar.org/CorpusID:{}", "openalex": "https://openalex.org/W{}"}
"""Whose ids papers have → the address of a paper without a DOI."""

CorpusId = Annotated[int, Field(ge=0, le=LARGEST_ID, title="a corpus id")]
CorpusIds = Annotated[list[CorpusId], Field(min_length=1, max_length=100)]
Shown = Annotated[list[CorpusId], Field(min_length=1, max_length=200, description="papers, of two lists at most")]
Text = Annotated[str, Field(min_length=1, max_length=8000, description="more than any abstract has")]
Name = Annotated[str, Field(max_length=200)]
Model = Annotated[str, Field(max_length=200, description="an index or model of the run; the best one by default")]
Count = Annotated[int, Field(ge=1, le=100, description="papers in the answer, at most")]
Known = Annotated[Literal["more", "balanced", "less"], Field(description="how much an index prefers well-known papers")]
Years = Annotated[
    str, Field(pattern="^([0-9]{4}(-([0-9]{4})?)?|-[0-9]{4})$", description="such as 2010, 2010-2015 or 2010-")
]
OfField = Annotated[str, Field(max_length=200, description="a field of study, as the run names it")]
Venue = Annotated[str, Field(max_length=200, description="a part of the venue's name, in any case")]

Found = dict[int, dict[str, Any]]
"""The papers that are found, the best first, and what is known of each hit."""


class Record(TypedDict):
    """What the corpus knows of a paper."""

    paper: str
    title: str | None
    year: int | None
    authors: list[str]
    venue: str | None
    fields: list[str]
    doi: str | None
    url: str | None
    cited: int | None
    abstract: str | None


class Hit(Record):
    """A paper that is found: by a model at a distance, by an index with a score."""

    words: list[str]
    topic: str | None
    distance: NotRequired[float]
    score: NotRequired[float]
    parts: NotRequired[dict[str, float]]
    similarity: NotRequired[float]


def described(run: Run) -> dict[str, Any]:
    """The run, its indexes and models, how each is searched, by which model it has a map, and the fields of papers."""
    searches = [(name, of.arrays.weights.known, 0) for name, of in run.found_by.items()]
    if run.words:
        searches.insert(1, (BM25, None, 0))
    searches += [(name, None, index.lists) for name, index in run.vectors.items()]
    return {
        "run": run.results.resolve().name,
        "release": configuration.release if (configuration := configuration_of(run.results)) else None,
        "papers": run.titles.size,
        "models": [
            {"name": name, "known": known, "lists": lists, "map": run.model_of(name)} for name, known, lists in searches
        ],
        "fields": run.fields,
        "examples": [_shown(run, paper) for paper in run.titles.best_known(EXAMPLES)],
    }


def suggested(run: Run, words: Name) -> list[Record]:
    """The paper with this DOI, or the most cited papers whose titles have these words."""
    return [_shown(run, found) for found in run.titles.with_words(words, SUGGESTIONS)]


def record(run: Run, paper: CorpusId) -> Record:
    """A paper with its abstract. Raises `MissingError` if the corpus has no record of it."""
    found = run.titles.papers([paper])
    if paper not in found:
        raise MissingError(f"The corpus has no record of paper {paper}.")
    return _shown(run, found[paper])


def _shown(run: Run, paper: Paper) -> Record:
    of, address = paper.details, ADDRESSES.get(run.whose_ids, "").format(paper.corpusid)
    if paper.doi:
        address = f"https://doi.org/{quote(paper.doi, safe='/:;()')}"
    return {
        "paper": str(paper.corpusid),
        "title": paper.title,
        "year": paper.year,
        "authors": of.get("authors") or [],
        "venue": of.get("venue"),
        "fields": of.get("fields") or [],
        "doi": paper.doi,
        "url": address or None,
        "cited": of.get("citation_count"),
        "abstract": of.get("abstract"),
    }


def nearest(
    run: Run,
    model: Model | None = None,
    *,
    paper: CorpusIds | None = None,
    unlike: CorpusIds | None = None,
    text: Text | None = None,
    k: Count = 10,
    known: Known | None = None,
    years: Years | None = None,
    field: OfField | None = None,
    venue: Venue | None = None,
) -> list[Hit]:
    """The k papers that an index finds or a model places nearest, for papers, without these, or for a text, or both.

    They are nearest to the mean of what is asked for, moved away from the mean of the papers of `unlike`. Those of a
    model have a Euclidean distance, those of an index a score and the parts that it is the sum of; `words` are shared
    with what is asked for, and `topic` names the papers that the model, or the first one of the index, places around
    it. Raises `MissingError` if the run has no such model, or the model no vector of a paper.
    """
    if not paper and text is None:
        raise WrongRequestError("A search is for papers or for a text: give one of the two.")
    name, paper, unlike = model or run.best, paper or [], unlike or []
    records = run.titles.papers(paper)
    texts = {each: _text_of(records.get(each)) for each in paper}
    words = " ".join(filter(None, [text, *texts.values()]))
    titles = " ".join(filter(None, [(text or "")[:TITLE], *(each.title for each in records.values())]))
    within = run.within(years, field, venue) if years or field or venue else None
    found: Found = {}
    if name in run.found_by:
        try:
            answers = run.found_by[name].find(text, texts, k, known, unlike=unlike, within=within)
        except InputError as error:
            raise MissingError(str(error)) from None
        for each in answers:
            found[each.paper] = {"score": each.score, "parts": each.parts, "similarity": each.facts["cosine"]}
    elif name == BM25 and run.words:
        by_words = run.words.arrays.by_words(words, k=k, without=[*texts, *unlike], within=within)
        found = {each: {"score": score, "parts": {}} for each, score in by_words}
    elif name in run.vectors:
        liked = [] if text is None else [np.array(run.embed(name, text), np.float32)]
        liked += [_vector_of(run, name, each) for each in texts]
        vector = moved(liked, [_vector_of(run, name, each) for each in unlike]).astype(np.float32)
        ids, distances = run.vectors[name].nearest(vector, k, but=[*texts, *unlike], within=within)
        found = {each: {"distance": at} for each, at in zip(ids.tolist(), distances.tolist(), strict=True)}
    else:
        raise _missing(run, name)
    topics = run.topics[run.model_of(name)].of([*found])
    for hit, topic in zip(found.values(), topics, strict=True):
        hit["topic"] = topic
    return _with_records(run, found, words, titles)


def _missing(run: Run, name: str) -> MissingError:
    names = " or ".join([*run.found_by, *run.vectors])
    return MissingError(f"This run has no model {name!r:.80} with vectors; there is {names}.")


def _vector_of(run: Run, name: str, paper: int) -> NDArray[np.float32]:
    if (vector := run.vectors[name].vector_of(paper)) is None:
        raise MissingError(f"Model {name} has no vector of paper {paper}: it is not in the corpus, or has no text.")
    return vector


def _text_of(paper: Paper | None) -> str:
    return " ".join(filter(None, [paper.title, paper.details["abstract"]])) if paper else ""


def _with_records(run: Run, hits: Found, asked: str, asked_titles: str) -> list[Hit]:
    """Papers with their records, what is added to each, and the words that it shares with what is asked for, the rarest
    first: those in one of the titles."""
    records, words, own = run.titles.papers(hits), _words(asked), _words(asked_titles)
    counts = run.titles.counts(words)
    # A word in more than 5% of all titles tells nothing.
    rare = [word for word in words if counts.get(word, 0) <= max(2, 0.05 * run.titles.size)]
    rare.sort(key=lambda word: (counts.get(word, 0), word))
    answers: list[Any] = []
    for paper, more in hits.items():
        found = records.get(paper, Paper(paper, None, None))
        title, text = _words(found.title or ""), _words(_text_of(records.get(paper)))
        shared = [word for word in rare if word in text and (word in title or word in own)]
        answers.append({**_shown(run, found), "words": shared[:WORDS], **more})
    return answers


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower())).difference(STOPWORDS_EN)


def related(run: Run, paper: CorpusId, others: CorpusIds) -> dict[str, list[dict[str, Any]]]:
    """The relations of a paper to each of the others in the graph and the triplets, by kind and by name.

    Each has its kind, from the paper to the other one; its graph or set of triplets; and the number of co-citations.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for table in filter(RELATIONS.get, viewed_tables(run.database.cursor())):
        for other, relation, name, count in _rows(run, RELATIONS[table], {"paper": paper, "others": [*others]}):
            found.setdefault(str(other), []).append({"relation": relation, "name": name, "count": count})
    for of_other in found.values():
        of_other.sort(key=lambda each: (ORDER.index(each["relation"]), each["name"] or ""))
    return found


def linked(run: Run, papers: Shown) -> list[list[str]]:
    """The citations among some papers, each as the citing paper and the cited one."""
    among = "SELECT DISTINCT citing, cited FROM citations WHERE citing IN $papers AND cited IN $papers ORDER BY ALL"
    return [[str(citing), str(cited)] for citing, cited in _rows(run, among, {"papers": [*papers]})]


def citing(run: Run, paper: CorpusId, k: Count = 100) -> list[Record]:
    """The papers that cite a paper, the most cited first."""
    return _most_cited(run, "SELECT DISTINCT citing FROM citations WHERE cited = $paper", paper, k)


def cited(run: Run, paper: CorpusId, k: Count = 100) -> list[Record]:
    """The papers of the corpus that a paper cites, the most cited first."""
    return _most_cited(run, "SELECT DISTINCT cited FROM citations WHERE citing = $paper", paper, k)


def _most_cited(run: Run, query: str, paper: int, k: int) -> list[Record]:
    ids = [found for (found,) in _rows(run, query, {"paper": paper})]
    return [_shown(run, each) for each in run.titles.papers(ids, k).values()]


def _rows(run: Run, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    database = run.database.cursor()
    if "FROM citations" in query and "citations" not in viewed_tables(database):
        return []
    try:
        return database.execute(query, values).fetchall()
    except duckdb.Error as error:
        raise changed_files(run.results, error) from error


def mapped(run: Run, model: Model | None = None) -> PaperMap:
    """The map of all papers as a model, or the first one of an index, places them; made once, in some minutes at most.

    Raises `MissingError` if the run has no such model.
    """
    if (name := run.model_of(model or run.best)) not in run.topics:
        raise _missing(run, name)
    return run.map_by(name)


def exported(run: Run, papers: Shown, form: RecordForm) -> str:
    """Records of papers as BibTeX, RIS or CSV, for reference managers and spreadsheets."""
    found = run.titles.papers(papers)
    return written([_shown(run, found[paper]) for paper in papers if paper in found], form)


def warm_up(run: Run) -> None:
    """Open the encoders of the two searches that the page shows first, so that the first text does not wait."""
    for model in [each["name"] for each in described(run)["models"]][:2]:
        report(f"Opening {model}.")
        try:
            nearest(run, model, text="science", k=1)
        except InputError as error:
            report(f"{model} can answer no text: {error}")


def explained(function: Callable[..., Any]) -> str:
    """What a function answers, in paragraphs of one line."""
    paragraphs = str(getdoc(function)).partition("Raises")[0].split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs).strip()
