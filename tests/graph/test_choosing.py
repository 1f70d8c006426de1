"""A graph is built from the citations that its entry chooses, and the others are counted by reason."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.config.graphs import CitationChoice
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.graph.citations import choose_citations, choose_sentences
from cocite.graph.edges import edges_of_citations

from . import conftest as made

COST = {"memory_mb": 300, "threads": 1}
BIBLIOGRAPHIES = "citations by papers with more references than citations.max_references"
NOT_INFLUENTIAL, OTHER_INTENT = "citations that are not influential", "citations with none of citations.intents"
RARELY_MADE = "citations that fewer contexts make than citations.min_mentions"
SELF, SELF_KEPT = "self-citations", "self-citations (kept)"
KEPT = "citations that the graph is built from (kept)"

INTENTS = st.lists(st.sampled_from(["background", "methodology", "result"]), unique=True, max_size=2).map(sorted)
PAPERS = st.integers(1, 8)
CITATIONS = st.dictionaries(st.tuples(PAPERS, PAPERS), st.tuples(st.booleans(), INTENTS), min_size=1, max_size=25)
NAMES = st.lists(st.sampled_from(["Ann Lee", "ann  LEE", "Å. Bø", "A Bø", "José Díaz", "Jose Diaz", "?"]), max_size=2)
AUTHORS = st.dictionaries(PAPERS, NAMES, min_size=1)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "influential": st.just(True),
        "intents": st.lists(st.sampled_from(["background", "methodology", "result"]), unique=True, min_size=1),
        "self": st.just(False),
        "max_references": st.integers(1, 4),
        "min_mentions": st.integers(1, 3),
    },
).filter(bool)
WORDS = {"Ann Lee": 1, "ann  LEE": 1, "Å. Bø": 2, "A Bø": 2, "José Díaz": 3, "Jose Diaz": 3}
"""What each name is, without case, accents and punctuation; a question mark is no name."""


def write_corpus(folder, citations, authors, buckets):
    for bucket in range(buckets):
        rows = [(*ends, *marks) for ends, marks in sorted(citations.items()) if ends[0] % buckets == bucket]
        columns = "citing cited influential intents"
        write_rows(folder / f"corpus/citations/{bucket}.parquet", "citations", columns, rows)
        papers = sorted(paper for paper in authors if paper % buckets == bucket)
        table = papers_table(dict.fromkeys(papers, ("title", None)), authors=[authors[paper] for paper in papers])
        write_table(folder / f"papers/{bucket}.parquet", "papers", table)


def choose(folder, buckets, *, with_papers=True, contexts=None, **choice):
    for bucket in range(buckets):
        choose_citations(
            folder / "corpus/citations",
            CitationChoice.model_validate(choice),
            bucket=bucket,
            papers=folder / "papers" if with_papers else None,
            contexts=contexts and contexts / f"{bucket}.parquet",
            **COST,
            output=folder / f"citations/{bucket}.parquet",
            omissions=folder / f"omissions/{bucket}.parquet",
        )
    rows = read_table(folder / "citations", "citations").to_pylist()
    return {(row["citing"], row["cited"]): (row["influential"], row["intents"]) for row in rows}, made.left_out(folder)


def mentions(sentences, citing, cited):
    return sum(of == citing and cited in papers for of, papers in sentences)


def expected(citations, authors, choice, sentences):
    """The chosen citations and the counts by the definition, one citation after another."""
    references, counts, chosen = Counter(citing for citing, _ in citations), Counter(), {}
    names = {paper: {WORDS[name] for name in of if name in WORDS} for paper, of in authors.items()}
    for (citing, cited), (influential, intents) in citations.items():
        if references[citing] > choice.get("max_references", 99):
            counts[BIBLIOGRAPHIES] += 1
        elif choice.get("influential") and not influential:
            counts[NOT_INFLUENTIAL] += 1
        elif "intents" in choice and not set(choice["intents"]) & set(intents):
            counts[OTHER_INTENT] += 1
        elif mentions(sentences, citing, cited) < choice.get("min_mentions", 0):
            counts[RARELY_MADE] += 1
        else:
            is_self = bool(names.get(citing, set()) & names.get(cited, set()))
            counts[SELF_KEPT if choice.get("self", True) else SELF] += is_self
            if choice.get("self", True) or not is_self:
                chosen[citing, cited] = (influential, intents)
    return chosen, counts + Counter({KEPT: len(chosen)})


@settings(max_examples=20)
@given(CITATIONS, AUTHORS, CHOICES, made.SENTENCES, st.integers(1, 3))
def test_the_choice_equals_brute_force_whatever_the_number_of_buckets(
    tmp_path_factory, citations, authors, choice, sentences, buckets
):
    citations = citations | {(9, 10): (True, ["background", "methodology", "result"])}  # the marks are in the corpus
    folder = tmp_path_factory.mktemp("graph")
    write_corpus(folder, citations, authors | {9: ["Eve"]}, buckets)
    made.write_contexts(folder, sentences, buckets)
    chosen, counts = choose(folder, buckets, contexts=folder / "contexts", **choice)
    assert (chosen, +Counter(counts)) == expected(citations, authors, choice, sentences)


@settings(max_examples=12)
@given(made.SENTENCES, st.data(), st.integers(1, 3))
def test_sentences_keep_the_chosen_citations(tmp_path_factory, sentences, data, buckets):
    folder = tmp_path_factory.mktemp("graph")
    every = sorted({(citing, paper) for citing, cited in sentences for paper in cited})
    chosen = data.draw(st.sets(st.sampled_from(every)))
    made.write_contexts(folder, sentences, buckets)
    write_corpus(folder, dict.fromkeys(chosen, (False, [])), {}, buckets)
    for bucket in range(buckets):
        name = f"{bucket}.parquet"
        written = {"output": folder / "chosen" / name, "omissions": folder / "omissions" / name}
        choose_sentences(folder / "contexts" / name, citations=folder / "corpus/citations" / name, **written)
    rows = read_table(folder / "chosen", "contexts").to_pylist()
    found = {row["sentence"]: (row["citing"], row["cited"]) for row in rows}
    left = {
        f"sentence {number}": (citing, kept)
        for number, (citing, cited) in enumerate(sentences)
        if (kept := sorted(paper for paper in cited if (citing, paper) in chosen))
    }
    assert found == left
    assert made.left_out(folder) == {"sentences of which no citation is chosen": len(sentences) - len(left)}


@pytest.mark.parametrize(
    ("signal", "pairs"), [("cocitation", {(2, 3): 1, (2, 4): 1, (3, 4): 2}), ("coupling", {(1, 5): 2})]
)
def test_pairs_are_counted_over_the_chosen_citations_alone(tmp_path, signal, pairs):
    """Pairs are cocited by 1, which cites 2, 3 and 4, and by 5, which cites 3 and 4."""
    chosen = {(1, 2), (1, 3), (1, 4), (5, 3), (5, 4)}
    others = {(5, 2), (6, 2), (6, 3), (7, 2)}
    citations = {ends: (ends in chosen, []) for ends in chosen | others}
    write_corpus(tmp_path, citations, {}, 2)
    made.write_queries(tmp_path / "queries.parquet", dict.fromkeys(range(1, 8), "train"))
    choose(tmp_path, 2, with_papers=False, influential=True)
    rows = made.count_all(tmp_path, made.pair_counting(signal), 2).to_pylist()
    assert {(row["paper"], row["other"]): row["count"] for row in rows} == pairs


@settings(max_examples=12)
@given(
    CITATIONS,
    st.data(),
    st.sampled_from(["count", "log", None]),
    st.sampled_from([1.0, 2.5]),
    st.dictionaries(st.sampled_from(["background", "methodology", "result"]), st.sampled_from([0.5, 3.0])),
    st.booleans(),
)
def test_a_citation_counts_for_more_by_its_marks_and_by_the_sentences_that_make_it(
    tmp_path_factory, citations, data, by_mentions, factor, intents, directed
):
    citations = {ends: marks for ends, marks in citations.items() if ends[0] != ends[1]}
    citations |= {(9, 10): (True, []), (9, 11): (False, ["background", "methodology", "result"])}
    sentences = data.draw(
        st.lists(st.tuples(st.sampled_from(sorted(citations)), st.sets(PAPERS, max_size=2)), min_size=1, max_size=15)
    )
    if by_mentions is None and factor == 1 and not intents:
        factor = 0.5
    folder = tmp_path_factory.mktemp("graph")
    write_corpus(folder, citations, {}, 2)
    sentences = [(citing, {cited} | others) for (citing, cited), others in sentences]
    made.write_contexts(folder, sentences, 2)
    made.write_queries(folder / "queries.parquet", {})
    weights = {"influential": factor, "intents": intents, "mentions": by_mentions}
    choose(folder, 2, with_papers=False, contexts=folder / "contexts", weights=weights)
    made.shard_by_cited(folder, 2)
    for bucket in range(2):
        name = f"{bucket}.parquet"
        both = [folder / "citations" / name, None if directed else folder / "citations_by_cited" / name]
        where = {"queries": folder / "queries.parquet", "bucket": bucket, "buckets": 2, **COST}
        edges_of_citations(*both, **where, output=folder / "edges" / name)
    expected = {}
    for (citing, cited), (influential, of_citation) in citations.items():
        times = max(1, mentions(sentences, citing, cited))
        weight = {None: 1, "count": times, "log": 1 + np.log(times)}[by_mentions] * (factor if influential else 1)
        weight *= max((intents.get(intent, 1) for intent in of_citation), default=1)
        ends = (citing, cited) if directed else (min(citing, cited), max(citing, cited))
        expected[ends] = max(expected.get(ends, 0), weight)
    assert made.weights_in(folder / "edges") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"influential": True}, "citations: contains only citations that are not influential, so nothing is le"),
        ({"weights": {"influential": 2.0}}, "so nothing is left for the graph, or heavier"),
        (
            {"weights": {"intents": {"methodology": 2.0}}},
            r"contains only citations with none of citations\.weights\.intents, so nothing",
        ),
        ({"intents": ["background", "methodology"]}, r"contains only citations with none of citations\.intents, so"),
        ({"self": False}, "papers: no paper has the name of an author, so self-citations are not known"),
        (
            {"self": False, "with_papers": False},
            "--papers is missing, and self-citations are known by the authors of papers",
        ),
    ],
)
def test_a_corpus_without_the_marks_is_refused(tmp_path, choice, said):
    write_corpus(tmp_path, {(1, 2): (False, ["result"]), (1, 3): (False, [])}, {1: [], 2: []}, 2)
    with pytest.raises(InputError, match=said):
        choose(tmp_path, 2, **choice)
    assert not list(tmp_path.glob("citations/*"))


def test_without_authors_the_count_of_self_citations_is_not_there(tmp_path):
    write_corpus(tmp_path, {(1, 2): (True, []), (1, 3): (False, [])}, {}, 1)
    assert choose(tmp_path, 1, with_papers=False, influential=True)[1] == {NOT_INFLUENTIAL: 1, KEPT: 1}
