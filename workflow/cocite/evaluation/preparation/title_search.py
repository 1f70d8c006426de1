"""A search made of held-out papers: the title of each has to find its abstract among those of the others.

A title is a short query that somebody wrote about the paper, and no abstract of a held-out paper has been in any
training. Titles that are given away are left out and counted: one that its abstract repeats word by word is found by
these words, and one that several papers have, or whose abstract several papers have, has more than one answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from cocite.config.benchmarks.holdout import TITLE_SEARCH
from cocite.evaluation.benchmark import Document, Judgements

NOT_A_WORD = re.compile(r"[\W_]+")
REPEATED = f"task {TITLE_SEARCH.name}: title that its abstract repeats"
WORDLESS = f"task {TITLE_SEARCH.name}: title or abstract without a word"
SHARED = f"task {TITLE_SEARCH.name}: title or abstract of several held-out papers"
BEYOND = f"task {TITLE_SEARCH.name}: held-out paper beyond those asked for"

Paper = tuple[str, str | None, str | None]
"""Title, abstract and field of study; no abstract where `corpus.titles_alone` lets it be missing."""


def fitting(papers: Mapping[int, Paper], omitted: dict[str, int]) -> list[int]:
    """The papers whose title can be searched for; count the others."""
    words = {paper: (_words(title), _words(abstract or "")) for paper, (title, abstract, _) in papers.items()}
    times = Counter(text for both in words.values() for text in set(both))
    found = []
    counts = dict.fromkeys((REPEATED, WORDLESS, SHARED), 0)
    for paper, (title, abstract) in words.items():
        if not (title and abstract):
            counts[WORDLESS] += 1
        elif f" {title} " in f" {abstract} ":
            counts[REPEATED] += 1
        elif times[title] > 1 or times[abstract] > 1:
            counts[SHARED] += 1
        else:
            found.append(paper)
    omitted |= counts
    return found


def ask_for_abstracts(
    chosen: Iterable[int], papers: Mapping[int, Paper]
) -> tuple[Judgements, set[str], dict[str, Document], set[str]]:
    """Judgements, collection, documents and the names of the queries among them, of a search for some papers."""
    judgements: Judgements = {}
    documents: dict[str, Document] = {}
    for paper in chosen:
        title, abstract, field = papers[paper]
        query, document = f"title:{paper}", f"abstract:{paper}"
        judgements[query] = {document: 1}
        documents |= {query: (title, None, (), field), document: (None, abstract, (), field)}
    queries = set(judgements)
    return judgements, documents.keys() - queries, documents, queries


def _words(text: str) -> str:
    """A text without what is no letter or digit, so that spelling alike in two places counts as one."""
    return NOT_A_WORD.sub(" ", text.casefold()).strip()
