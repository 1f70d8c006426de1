"""A choice of citations that would have no effect, or that the corpus cannot make, is refused."""

import pytest
from tests.configurations import refusals, refused

from cocite.config.configuration import configure, resolve
from cocite.plan.recorded import is_configured

REFUSED = """
    graphs.citation.citations: {} | graphs.citation.citations has no effect: it takes all citations
    graphs.citation.citations: {self: true, influential: false, intents: []} | citations has no effect
    graphs.citation.citations: {influental: true} | influental is not known; did you mean influential?
    graphs.citation.citations: {self_: false} | self_ is not known; did you mean self?
    graphs.citation.citations: {intents: [method]} | intents[0] is 'method'; it must be one of background, methodology,
        result
    graphs.citation.citations: {intents: [result, result]} | intents is ['result', 'result'], which has non-unique
    graphs.citation.citations: {max_references: 0} | max_references is 0; it must be at least 1
    graphs.citation.citations: {weights: {}} | citations.weights has no effect: every citation counts 1
    graphs.citation.citations: {weights: {influential: 0}} | weights.influential is 0; it must be more than 0
    graphs.citation.citations: {weights: {mentions: log}} | weights.mentions: log needs the sentences that cite, which
        are not ingested
    graphs.citation.citations: {weights: {intents: {method: 2}}} | weights.intents
    graphs.citation.citations: {min_mentions: 2} | citations.min_mentions: 2 needs the sentences that cite, which are
        not ingested
    graphs.cocitation: {signal: cocitation, citations: {weights: {influential: 2}}} | citations.weights: only signal:
        citation takes weights; pairs are counted. For pairs, combine graphs of chosen citations instead
    graphs.citation.citations: {retracted: false} | retracted is not known
    graphs.citation.citations: {self: false} | graphs.citation.citations.self needs the names of authors, which are not
        kept; set corpus.authors: true.
    graphs.said: {signal: sentence-cocitation, citations: {influential: true}} | graphs.said.signal: sentence-cocitation
    graphs.cocitation: {signal: cocitation, max_references: 9, citations: {max_references: 9}} | max_references has
        no effect: citations.max_references (9) is not larger
    graphs.sum: {signal: combination, of: {cocitation: 1}, citations: {influential: true}} | citations does not go with
        signal: combination
"""
OPENALEX = {"source": "openalex", "authors": True}


@pytest.mark.parametrize(("path", "value", "sentence"), refusals(REFUSED))
def test_a_choice_without_effect_or_ground_is_refused(written, path, value, sentence):
    assert sentence in refused(written, path, value)


@pytest.mark.parametrize(
    "choice", [{"influential": True}, {"intents": ["result"]}, {"weights": {"intents": {"result": 2.0}}}]
)
def test_a_source_whose_citations_have_no_marks_is_refused(written, choice):
    written["graphs"]["citation"]["citations"] = choice
    key = {"influential": "influential", "intents": "intents", "weights": "weights.intents"}[next(iter(choice))]
    said = f"graphs.citation.citations.{key}: citations of the source openalex have neither influence nor intents"
    assert said in refused(written, "corpus", OPENALEX)


def test_grades_by_influence_need_a_source_that_marks_it(written):
    written["benchmarks"]["holdout"]["graded"] = {"influential": True}
    said = "benchmarks.holdout.graded.influential: citations of the source openalex have neither influence nor intents"
    assert said in refused(written, "corpus", OPENALEX)


def test_a_graph_without_a_choice_is_written_down_as_before(written):
    assert not [entry for entry in resolve(written)["graphs"].values() if "citations" in entry]


def test_a_choice_is_complete(written):
    written["corpus"]["authors"] = True
    written["graphs"]["citation"]["citations"] = {"self": False}
    chosen = resolve(written)["graphs"]["citation"]["citations"]
    assert chosen == {"influential": False, "intents": [], "self": False}


def test_counts_of_a_choice_that_is_gone_are_stale(written):
    steps = [{"stage": "graph", "step": f"cocitation-{table}-1"} for table in ("citations", "cocitations", "edges")]
    assert [is_configured(step, configure(written)) for step in steps] == [False, True, True]
    written["graphs"]["cocitation"]["citations"] = {"max_references": 100}
    assert [is_configured(step, configure(written)) for step in steps] == [True, True, True]
