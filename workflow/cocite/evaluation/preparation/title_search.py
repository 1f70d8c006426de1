"""The search made of held-out papers: each title has to find its abstract among those of the others.

A title is not searched for if its abstract repeats it, or if several papers share it or its abstract.
"""

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from cocite.config.benchmark import TitleSearch
from cocite.config.benchmarks.holdout import TITLE_SEARCH
from cocite.core.errors import InputError
from cocite.core.randomness import smallest
from cocite.evaluation.benchmark import Benchmark, Document

NOT_A_WORD = re.compile(r"[\W_]+")
REPEATED = f"task {TITLE_SEARCH.name}: title that its abstract repeats"
WORDLESS = f"task {TITLE_SEARCH.name}: title or abstract without a word"
SHARED = f"task {TITLE_SEARCH.name}: title or abstract of several held-out papers"
BEYOND = f"task {TITLE_SEARCH.name}: held-out paper beyond those asked for"


def add_title_search(
    benchmark: Benchmark, papers: Mapping[int, Document], settings: TitleSearch, seed: int, omitted: dict[str, int]
) -> tuple[dict[str, Document], set[str]]:
    """Add the search of abstracts by titles to a benchmark; return its documents, and which of them are queries.
    `papers` are the held-out ones that it may be about. Raises `InputError` if none has a title to search for."""
    ids = np.array(sorted(_with_telling_titles(papers, omitted)), dtype=np.int64)
    if len(ids) == 0:
        lacking = f"None of the {len(papers)} held-out papers with a text has a unique title"
        remedy = "hold out more papers, or leave `title_search` out of the benchmark"
        raise InputError(f"{lacking} that its abstract does not repeat; {remedy}.")
    chosen = smallest(ids, settings.documents, seed, f"holdout {TITLE_SEARCH.name}")
    omitted[BEYOND] = len(ids) - len(chosen)
    queries: dict[str, Document] = {}
    abstracts: dict[str, Document] = {}
    for paper in chosen.tolist():
        title, abstract, _, field = papers[paper]
        queries[f"title:{paper}"] = title, None, (), field
        abstracts[f"abstract:{paper}"] = None, abstract, (), field
    benchmark.judgements[TITLE_SEARCH.name] = {q: {a: 1} for q, a in zip(queries, abstracts, strict=True)}
    benchmark.collections[TITLE_SEARCH.name] = set(abstracts)
    return queries | abstracts, set(queries)


def _with_telling_titles(papers: Mapping[int, Document], omitted: dict[str, int]) -> list[int]:
    """The papers whose title can be searched for; count the others. An abstract may be missing, with
    `corpus.allow_missing_abstract`."""
    words = {paper: (_words(title), _words(abstract)) for paper, (title, abstract, *_) in papers.items()}
    times = Counter(text for both in words.values() for text in set(both))
    found, counts = [], dict.fromkeys((REPEATED, WORDLESS, SHARED), 0)
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


def _words(text: str | None) -> str:
    """A text without what is no letter or digit, so that spelling alike in two places counts as one."""
    return NOT_A_WORD.sub(" ", (text or "").casefold()).strip()
