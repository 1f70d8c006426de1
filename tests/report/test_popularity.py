"""What the report says about popularity."""

import polars as pl
from tests.workflow.conftest import SMALL

from cocite.config.configuration import configure
from cocite.report.results import empty_frame
from cocite.report.scores import found_by_citations, popularity_in_words, same_authors_in_words


def found(model, seed, citations, recall, share):
    keys = {"model": model, "seed": seed, "benchmark": "holdout", "task": "cite_search", "citations": citations}
    return {**keys, "recall": recall, "error": 1.0, "queries": 10, "share": share}


def test_recall_by_citations_is_a_mean_over_seeds_and_a_class_without_papers_has_a_dash():
    table = pl.DataFrame(
        [
            found("m", 1, "0", 10.0, 30.0),
            found("m", 2, "0", 20.0, 40.0),
            found("m", 1, "over 10", None, 1.0),
            found("m", 1, "top 1%", 50.0, 2.0),
            found("m", 2, "top 1%", 60.0, 4.0),
            found("bm25", 0, "0", 7.0, 3.0),
        ]
    )
    model, words = found_by_citations(table).to_dicts()
    assert (model["model"], model["cited 0 times"], model["cited over 10 times"]) == ("m", "15.0 ± 7.1", "–")
    assert model["answers of the 1% most cited"] == "3.0 ± 1.4"
    assert (words["model"], words["cited 0 times"], words["answers of the 1% most cited"]) == ("bm25", "7.0", "–")


def test_a_sentence_says_what_citations_alone_score_on_each_hold_out():
    configuration = configure(SMALL)
    values = {"cite": 56.1, "cocite": 64.9, "cite_matched": 24.9}
    keys = {"model": "popularity", "seed": 0, "benchmark": "holdout", "metric": "map"}
    scores = pl.DataFrame([{**keys, "task": task, "value": value} for task, value in values.items()])
    assert popularity_in_words(scores, configuration) == [
        "On holdout, a ranking by citation counts has a MAP of 56.1 (papers it cites) and 64.9 (papers cited with "
        "it); with candidates that are cited as often, 24.9 (papers it cites)."
    ]
    assert popularity_in_words(scores.clear(), configuration) == []


def test_a_sentence_says_how_many_relevant_papers_share_an_author_with_their_query():
    counts = {
        "task cite: relevant papers whose authors are known, and the query's (kept)": 200,
        "task cite: relevant papers by an author of the query (kept)": 23,
        "task cocite: relevant papers whose authors are known, and the query's (kept)": 100,
        "held-out paper without text": 4,
    }
    rows = [{"stage": "evaluation", "step": "holdout", "reason": of, "count": count} for of, count in counts.items()]
    assert same_authors_in_words(pl.DataFrame(rows), configure(SMALL)) == [
        "On holdout, an author of the query wrote 11.5% (papers it cites) and 0.0% (papers cited with it) of the "
        "relevant papers."
    ]
    assert same_authors_in_words(pl.DataFrame(rows[3:]), configure(SMALL)) == []


def test_nothing_is_said_of_a_run_without_hold_outs():
    configuration = configure(SMALL | {"benchmarks": {}})
    assert popularity_in_words(pl.DataFrame(schema=["model"]), configuration) == []
    assert found_by_citations(empty_frame("scores_by_citations")).is_empty()
