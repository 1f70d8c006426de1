"""User-supplied queries and documents, in each of the layouts that they come in."""

import gzip
import json
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.triplets.blocks import sampler, write_papers, write_queries, written_sample

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.triplets import mined_pairs

HELD_OUT = "On the Held-Out Paper"


@pytest.fixture
def folder(tmp_path):
    """A corpus with one paper that is held out, and a folder `brought` for what is brought."""
    write_queries(tmp_path, {1: "train", 2: "validation", 3: "holdout"})
    write_papers(tmp_path, {1: ("one", "first"), 2: ("two", "second"), 3: (HELD_OUT, "third")})
    (tmp_path / "brought").mkdir()
    return tmp_path


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def tabs(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


class Found(NamedTuple):
    """What a set holds: (query, positives, negatives) as words, the split of each query, and which are short."""

    examples: list
    splits: dict
    short: set
    omitted: dict


def run(folder, layout, **more):
    given = {"layout": layout, "dataset": str(folder / "brought"), "validation": 0.0, **more}
    found, omitted = written_sample(folder, sampler("pairs", **given), texts=folder / "texts.parquet")
    texts = {row["text"]: row for row in read_table(folder / "texts.parquet", "sampled_texts").to_pylist()}
    said = {key: " | ".join(filter(None, (row["title"], row["abstract"]))) for key, row in texts.items()}
    rows = found.to_pylist()
    named = {key for row in rows for key in (row["query"], *row["positives"], *row["negatives"])}
    assert named == set(texts)  # every text that is named, and no other
    examples = [
        (said[row["query"]], *([said[key] for key in row[name]] for name in ("positives", "negatives"))) for row in rows
    ]
    return Found(
        sorted(examples),
        {said[row["query"]]: row["split"] for row in rows},
        {said[key] for key, row in texts.items() if row["is_query"]},
        {reason: count for reason, count in omitted.items() if count},
    )


def run_rows(folder, rows, layout="rows", **more):
    """What is made of rows of texts in one file."""
    lines(folder / "brought/train.jsonl", rows)
    return run(folder, layout, **more)


def test_rows_hold_short_queries_and_documents_as_texts_or_objects_also_in_a_file_alone(folder):
    rows = [
        {
            "query": "bees",
            "positive": "About bees.",
            "negatives": ["About cars.", {"title": "Cars", "abstract": "", "text": "Fast."}],
        },
        {"anchor": " flowers ", "positives": [{"title": "Roses", "abstract": "Red."}]},
    ]
    lines(folder / "pairs.jsonl.gz", rows)
    for found in (run_rows(folder, rows), run(folder, "rows", dataset=str(folder / "pairs.jsonl.gz"))):
        assert found.examples == [
            ("bees", ["About bees."], ["About cars.", "Cars | Fast."]),
            ("flowers", ["Roses | Red."], []),
        ]
        assert found.short == {"bees", "flowers"}


def test_triplets_of_parquet_have_numbered_negatives_and_patterns_mean_what_they_mean_on_the_hub(folder):
    table = {"query": ["bees"], "positive": ["nectar"], "negative_1": ["cars"], "negative_2": ["boats"]}
    for place in ("hard/train", "hard/test", "easy/train"):
        (folder / f"brought/{place}").mkdir(parents=True)
        rows = pa.table(table if place == "hard/train" else {"other": [1]})
        pq.write_table(rows, folder / f"brought/{place}/0000.parquet")
    found = run(folder, {"kind": "rows", "files": ["hard/*.parquet"]})
    assert found.examples == [("bees", ["nectar"], ["cars", "boats"])]


def test_the_published_triplets_of_specter_have_papers_as_queries(folder):
    def paper(name):
        return {"corpus_id": 7, "title": name, "abstract": f"about {name}"}

    (folder / "brought/cite_prediction_new").mkdir()
    for split, name in (("train", "a"), ("evaluation", "d")):
        table = pa.table({"query": [paper(name)], "pos": [paper("b")], "neg": [paper("c")]})
        pq.write_table(table, folder / f"brought/cite_prediction_new/{split}-00000-of-00001.parquet")
    found = run(folder, "specter")
    assert found.examples == [
        ("a | about a", ["b | about b"], ["c | about c"]),
        ("d | about d", ["b | about b"], ["c | about c"]),
    ]
    assert found.short == set()
    assert found.splits == {"a | about a": "train", "d | about d": "validation"}


@pytest.fixture
def specter(folder):
    brought = folder / "brought"
    (brought / "metadata.json").write_text(json.dumps({n: {"title": n, "abstract": None, "year": 2} for n in "qabcd"}))
    data = {"q": {"a": {"count": 5}, "b": {"count": 1}, "missing": {"count": 5}}, "c": {"d": {"count": 5}}, "x": {}}
    for name, text in (("data.json", json.dumps(data)), ("train.txt", "q\n"), ("val.txt", "c\n")):
        (brought / name).write_text(text)
    return folder


def test_specters_own_files_tell_citations_from_papers_two_away(specter):
    found = run(specter, "specter")
    assert found.examples == [("c", ["d"], []), ("q", ["a"], ["b"])]
    assert found.splits == {"q": "train", "c": "validation"}
    assert found.omitted == {
        "queries of data.json in neither train.txt nor val.txt": 1,
        "names of documents that no text has": 1,
    }


HEADER = ("query-id", "corpus-id", "score")
BEIR = [
    ("words 0", ["title 0 | text 0", "title 2 | text 2"], ["title 3 | text 3"]),
    ("words 1", ["title 1 | text 1"], []),
]


@pytest.fixture
def beir(folder):
    brought = folder / "brought"
    lines(brought / "corpus.jsonl", [{"_id": f"d{n}", "title": f"title {n}", "text": f"text {n}"} for n in range(5)])
    lines(brought / "queries.jsonl", [{"_id": f"q{n}", "text": f"words {n}", "metadata": {}} for n in range(4)])
    tabs(brought / "qrels/train.tsv", [HEADER, ("q0", "d0", 2), ("q1", "d1", 1), ("q0", "d2", 1), ("q0", "d3", 0)])
    return folder


def test_the_layout_of_beir_has_judgements_and_those_of_nothing_are_negatives(beir):
    found = run(beir, "beir")
    assert found.examples == BEIR
    assert found.short == {"words 0", "words 1"}
    assert set(found.splits.values()) == {"train"}


def test_judgements_of_dev_validate_and_their_queries_do_not_train(beir):
    tabs(beir / "brought/qrels/dev.tsv", [HEADER, ("q1", "d4", 1), ("q2", "d4", 1)])
    found = run(beir, "beir")
    assert found.splits == {"words 0": "train", "words 1": "validation", "words 2": "validation"}
    assert found.omitted == {"training examples of a query that validates": 1}
    with pytest.raises(InputError, match=r"qrels/test\.tsv, but layout\.validate_on is test"):
        run(beir, {"kind": "beir", "validate_on": "test"})


def test_judgements_that_name_unknown_ids_and_queries_without_a_judged_document_are_counted(beir):
    tabs(beir / "brought/qrels/train.tsv", [("q0", "d9", 1), ("q9", "d1", 1), ("q2", "d1", 0), ("q3", "d2", 1)])
    found = run(beir, "beir")
    assert found.examples == [("words 3", ["title 2 | text 2"], [])]
    assert found.omitted == {
        "names of queries that no text has": 1,
        "names of documents that no text has": 1,
        "examples of a query that is not used": 1,
        "examples without a positive": 2,
    }


@pytest.mark.parametrize("at_once", [1, 100])
def test_a_name_that_comes_again_with_another_text_is_counted(beir, monkeypatch, at_once):
    monkeypatch.setattr("cocite.triplets.user_pairs.TEXTS_AT_ONCE", at_once)
    again = [{"_id": "d1", "text": text} for text in ("first", "second", "second", "first")]
    lines(beir / "brought/corpus.jsonl", [{"_id": "d0", "text": "text"}, *again])
    found = run(beir, "beir")
    assert found.examples == [("words 0", ["text"], []), ("words 1", ["first"], [])]
    assert found.omitted["names that come again with another text (the first counts)"] == 2


@pytest.mark.parametrize("grade", ["much", "nan", "inf", ""])
def test_a_relevance_that_is_no_number_is_named(beir, grade):
    tabs(beir / "brought/qrels/train.tsv", [("q0", "d0", 1), ("q0", "d1", grade)])
    with pytest.raises(InputError, match=rf"train\.tsv, line 2: the relevance must be a number, not '{grade}'"):
        run(beir, "beir")


@pytest.fixture
def msmarco(folder):
    """One query with the positive 1, scored 10, and negatives of two systems: 2 to 5 scored 9, 7, 6.5 and 1."""
    brought = folder / "brought"
    rows = [{"qid": 7, "pos": [1], "neg": {"bm25": [2, 3, 4, 5], "dense": [5, 4, 6]}}, {"qid": 8, "pos": [], "neg": {}}]
    lines(brought / "msmarco-hard-negatives.jsonl.gz", rows)
    tabs(brought / "collection.tsv", [(n, f"passage {n}") for n in range(1, 7)])
    tabs(brought / "queries.train.tsv", [(7, "seven"), (8, "eight")])
    tabs(folder / "scores.tsv", [(7, 1, 10.0), (7, 2, 9), (7, 3, 7.0), (7, 4, 6.5), (7, 5, 1), (8, 2, 3)])
    return folder


def scored(folder, scores="scores.tsv", **bounds):
    """The layout of MS MARCO with bounds on scores."""
    return {"kind": "msmarco", "scores": {"dataset": str(folder / scores)}, **bounds}


def negatives(found):
    [(query, positives, far)] = found.examples
    assert (query, positives) == ("seven", ["passage 1"])
    return [int(text.removeprefix("passage ")) for text in far]


def test_mined_negatives_are_the_first_of_each_system_that_no_other_gave(msmarco):
    assert negatives(run(msmarco, {"kind": "msmarco", "per_system": 2})) == [2, 3, 5, 4]
    assert negatives(run(msmarco, {"kind": "msmarco", "per_system": 2, "systems": ["dense"]})) == [5, 4]
    found = run(msmarco, "msmarco")
    assert negatives(found) == [2, 3, 4, 5, 6]
    assert found.omitted == {"queries without a positive": 1}


def test_negatives_score_so_much_less_than_the_positive(msmarco):
    found = run(msmarco, scored(msmarco, margin=3.0))
    # 3 has a score of 7 = 10 − 3, which is still kept; 6 has none.
    assert negatives(found) == [3, 4, 5]
    assert found.omitted[mined_pairs.TOO_CLOSE] == 2
    for most, kept in ((6.5, [4, 5]), (3.0, [5])):
        assert negatives(run(msmarco, scored(msmarco, max_score=most))) == kept


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet"])
@pytest.mark.parametrize("listed", [True, False])
def test_scores_come_in_several_tables(msmarco, name, listed):
    documents, scores = [1, 2, 3, 4, 5], [10.0, 9.0, 7.0, 6.5, 1.0]
    rows = [{"qid": "7", "pid": str(d), "score": s} for d, s in zip(documents, scores, strict=True)]
    if listed:
        rows = [{"query_id": 7, "corpus_id": documents, "score": scores}]
    lines(msmarco / "scores.jsonl", rows)
    if name == "scores.parquet":
        pq.write_table(pa.Table.from_pylist(rows), msmarco / name)
    assert negatives(run(msmarco, scored(msmarco, name, margin=3.0))) == [3, 4, 5]


PASSAGES = st.integers(1, 30)
MINED = st.tuples(st.lists(PASSAGES, min_size=1, max_size=2), st.lists(PASSAGES, max_size=8))


@given(st.dictionaries(st.integers(1, 400), MINED, min_size=1, max_size=30), st.floats(0, 5), st.integers(1, 4))
def test_the_margin_is_that_of_the_published_script(folder, monkeypatch, mined, margin, per_system):
    monkeypatch.setattr(mined_pairs, "PARTS", 5)
    score = {(q, d): (q * 31 + d * 17) % 100 / 8 for q in mined for d in range(1, 31)}
    rows = [{"qid": q, "pos": near, "neg": {"one": far, "other": far[::-1]}} for q, (near, far) in mined.items()]
    lines(folder / "brought/msmarco-hard-negatives.jsonl.gz", rows)
    tabs(folder / "brought/collection.tsv", [(d, f"passage {d}") for d in range(1, 31)])
    tabs(folder / "brought/queries.train.tsv", [(q, f"words {q}") for q in mined])
    tabs(folder / "scores.tsv", [(*pair, value) for pair, value in score.items()])
    expected = []
    for q, (near, far) in mined.items():
        most = min(score[q, d] for d in near) - margin
        taken = []
        for system in (far, far[::-1]):
            fresh = [d for d in dict.fromkeys(system) if score[q, d] <= most and d not in taken]
            taken += fresh[:per_system]
        positives = [f"passage {d}" for d in dict.fromkeys(near)]
        expected.append((f"words {q}", positives, [f"passage {d}" for d in taken if d not in near]))
    assert run(folder, scored(folder, margin=margin, per_system=per_system)).examples == sorted(expected)


def test_rows_may_have_scores_as_well(folder):
    row = {"query": "a", "positive": "b", "negatives": ["c", "d"], "positive_score": 9, "negative_scores": [8, 2.5]}
    for bounds, kept in (({"margin": 3.0}, ["d"]), ({"max_score": 8}, ["c", "d"]), ({}, ["c", "d"])):
        assert run_rows(folder, [row], {"kind": "rows", **bounds}).examples == [("a", ["b"], kept)]


def test_a_pickle_of_scores_is_not_loaded_and_scores_that_are_no_numbers_are_named(msmarco):
    (msmarco / "pickled").mkdir()
    path = msmarco / "pickled/cross-encoder-ms-marco-MiniLM-L-6-v2-scores.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps({7: {1: 10.0}})))
    with pytest.raises(InputError, match=r"scores\.pkl\.gz is a pickle, which is not loaded\).*msmarco-scores"):
        run(msmarco, scored(msmarco, "pickled", margin=3.0))
    tabs(msmarco / "scores.tsv", [("qid", "pid", "score"), (7, 1, "high")])
    with pytest.raises(InputError, match=r"scores\.tsv, line 2: the score must be a number, not 'high'"):
        run(msmarco, scored(msmarco, margin=3.0))


@pytest.fixture
def inpars(folder):
    rows = [
        {"query": "one", "doc_id": "d1", "log_probs": [-1.0, -3.0], "prompt_text": "…", "fewshot_examples": []},
        {"query": "two", "doc_id": "d2", "log_probs": [-0.5, -0.5, -0.5]},
        {"query": "three", "doc_id": "d1", "log_probs": [-9.0], "score": -1},
    ]
    lines(folder / "brought/queries.jsonl", rows)
    documents = [{"_id": "d1", "title": "", "text": "t1"}, {"_id": "d2", "title": "T2", "text": "t2"}]
    lines(folder / "brought/corpus.jsonl", documents)
    return folder


def test_queries_of_inpars_are_kept_by_their_scores(inpars):
    found = run(inpars, {"kind": "inpars", "top": 1})
    assert found.examples == [("two", ["T2 | t2"], [])]
    assert found.omitted == {"queries beyond the best scores": 2}
    assert len(run(inpars, "inpars").examples) == 3


def test_queries_of_inpars_may_bring_their_documents(folder):
    row = {"query": "one", "doc_id": 3, "log_probs": -1.5}
    for more in ({"question": "one", "query": None, "doc_text": "text"}, {"text": "text", "score": 2}):
        lines(folder / "brought/queries.jsonl", [row | more])
        assert run(folder, "inpars").examples == [("one", ["text"], [])]
    lines(folder / "brought/queries.jsonl", [row])
    with pytest.raises(InputError, match=r"contains no documents, but the queries name theirs by doc_id"):
        run(folder, "inpars")


def test_a_text_with_the_title_of_a_paper_that_is_held_out_is_left_out_on_either_side(folder):
    title = "on the HELD-OUT  paper."
    rows = [
        {"query": title, "positive": "a"},
        {"query": "b", "positives": [{"title": title, "abstract": "x"}, "c"], "negatives": [title, "d"]},
        {"query": "on the held-out paper and others", "positive": "e"},
    ]
    found = run_rows(folder, rows)
    assert found.examples == [("b", ["c"], ["d"]), ("on the held-out paper and others", ["e"], [])]
    assert found.omitted["queries with the title of a paper that is kept out"] == 1
    assert found.omitted["documents with the title of a paper that is kept out"] == 2


def test_empty_queries_and_very_long_ones_are_left_out_and_counted(folder):
    rows = [
        {"query": " ", "positive": "a"},
        {"query": "word " * 10_000, "positive": "b"},
        {"query": "c", "positive": ""},
        {"query": "d", "positive": "word " * 10_000},
        {"query": None, "positive": "e"},
    ]
    found = run_rows(folder, rows)
    assert [query for query, _, _ in found.examples] == ["d"]
    assert found.omitted == {
        "queries without a text": 1,
        "documents without a text": 1,
        "short queries of more than 1,000 words": 1,
        "examples of a query that is not used": 3,
        "examples without a positive": 1,
    }


def test_a_negative_that_is_a_positive_of_the_query_is_left_out_and_a_document_may_have_the_words_of_its_query(folder):
    rows = [{"query": "q", "positive": "a", "negatives": ["b", "c"]}, {"query": "q", "positive": "b", "negative": "c"}]
    found = run_rows(folder, [*rows, {"query": "bees", "positive": "bees"}])
    assert found.examples == [("bees", ["bees"], []), ("q", ["a"], ["c"]), ("q", ["b"], ["c"])]
    assert found.omitted == {"negatives that are positives of the same query": 1}


def test_pairs_have_one_positive_and_one_negative(folder):
    rows = [
        {"query": "q", "positives": ["a", "b"], "negatives": ["c", "d", "e"]},
        {"query": "r", "positives": ["a", "b"]},
    ]
    found = run_rows(folder, rows, paired=True).examples
    assert found == [
        *[("q", ["a"], ["c"]), ("q", ["a"], ["e"]), ("q", ["b"], ["d"])],
        *[("r", ["a"], []), ("r", ["b"], [])],
    ]
    few = run(folder, "rows", paired=True, per_query=2)
    assert [query for query, _, _ in few.examples] == ["q", "q", "r", "r"]
    assert set(map(str, few.examples)) <= set(map(str, found))
    assert few.omitted == {"examples beyond per_query": 1}


@pytest.mark.parametrize(
    ("settings", "kept", "beyond"),
    [
        ({}, {"a": 3, "b": 4, "c": 9}, {}),
        ({"blocks_of": 4}, {"b": 4, "c": 8}, {"last whole block of a query": 4}),
        ({"blocks_of": 3}, {"a": 3, "b": 3, "c": 9}, {"last whole block of a query": 1}),
        ({"blocks_of": 4, "per_query": 7}, {"b": 4, "c": 4}, {"per_query": 2, "last whole block of a query": 6}),
        ({"blocks_of": 1, "per_query": 2}, {"a": 2, "b": 2, "c": 2}, {"per_query": 10}),
    ],
)
def test_triplets_of_a_query_are_taken_in_whole_blocks(folder, settings, kept, beyond):
    rows = [
        {"query": q, "positive": f"{q}{n}", "negative": "z"}
        for q, many in zip("abc", (3, 4, 9), strict=True)
        for n in range(many)
    ]
    found = run_rows(folder, rows, paired=True, **settings)
    assert Counter(query for query, _, _ in found.examples) == kept
    assert found.omitted == {
        f"examples beyond {'the ' if 'block' in name else ''}{name}": many for name, many in beyond.items()
    }


def test_a_share_of_the_queries_validates_unless_the_names_of_files_say_which_do(folder):
    rows = [{"query": f"query {n}", "positive": f"text {n} {i}"} for n in range(400) for i in range(2)]
    found = run_rows(folder, rows, validation=0.1)
    assert 25 <= list(found.splits.values()).count("validation") <= 55
    assert run_rows(folder, rows[::-1], validation=0.1).splits == found.splits
    for name in ("train", "dev", "test"):
        lines(folder / f"brought/{name}.jsonl", [{"query": name, "positive": f"text of {name}"}])
    assert run(folder, "rows", validation=0.5).splits == {"train": "train", "dev": "validation"}


SCORED = '{"query": "a", "positive": "b", "negative": "c", "negative_score": '


@pytest.mark.parametrize(
    ("layout", "name", "text", "message"),
    [
        ("rows", "a.jsonl", '{"query": "a", "positiv": "b"}', "1: has the unknown column 'positiv'; a row has a query"),
        ("rows", "a.jsonl", '{"query": "a"}', r"line 1: has no query, or no positive \(its columns: query\)"),
        ("rows", "a.jsonl", '{"query": 3, "positive": "b"}', r"line 1: query must be a text, not 3"),
        ("rows", "a.jsonl", '{"query": "a", "positive": ["b", 3]}', r"line 1: positive must be a text, not 3"),
        ("rows", "a.jsonl", '["a"]', r"line 1: must be an object, not \['a'\]"),
        ("rows", "a.jsonl", '{"query": "a", ', r"line 1: not JSON"),
        ("rows", "a.parquet", "no table", r"a\.parquet: not a readable Parquet file"),
        ("rows", "a.jsonl.gz", "no gzip", r"a\.jsonl\.gz: not a whole gzip file"),
        ("rows", "a.csv", "query,positive", r"contains no files of JSON Lines \(\.jsonl\) or Parquet"),
        ({"margin": 3.0}, "a.jsonl", SCORED + "1}", "has 0 positive_scores for 1 positives; margin and max_score need"),
        ({"max_score": 3.0}, "a.jsonl", SCORED + '"1"}', r"line 1: negative_scores must be a number, not '1'"),
        ("rows", "a.jsonl", f'{{"query": "{HELD_OUT}", "positive": "a"}}', r"with the title of a paper .* kept out: 1"),
        ("beir", "a", "", r"brought: contains no qrels/train\.tsv"),
        ("msmarco", "a", "", r"brought: contains no msmarco-hard-negatives\.jsonl\.gz"),
        ("msmarco", "msmarco-hard-negatives.jsonl", "", r"contains no queries; there should be queries\.jsonl"),
        ("specter", "a", "", r"brought: contains no files of JSON Lines \(\.jsonl\) or Parquet"),
        ("specter", "data.json", "{}", r"contains data.json but no metadata.json"),
        ("inpars", "a", "", r"brought: contains no files of JSON Lines"),
    ],
)
def test_what_has_no_place_in_the_layout_is_named_and_nothing_is_written(folder, layout, name, text, message):
    (folder / "brought" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        run(folder, layout if isinstance(layout, str) else {"kind": "rows", **layout})
    assert not (folder / "texts.parquet").exists()


@pytest.mark.parametrize(
    "name", ["brought/collection.2.tsv", "brought/queries.2.tsv", "scores/2.tsv", "brought/2.jsonl"]
)
def test_a_link_that_leads_nowhere_is_no_file_to_leave_out(msmarco, name):
    (msmarco / "scores").mkdir()
    (msmarco / "scores.tsv").rename(msmarco / "scores/1.tsv")
    (msmarco / name).symlink_to(msmarco / "nowhere")
    with pytest.raises(InputError, match=rf"{re.escape(name)} does not exist"):
        run(msmarco, "rows" if name.endswith(".jsonl") else scored(msmarco, "scores", margin=3.0))


def test_large_sets_are_read_in_parts_of_any_size(msmarco, monkeypatch):
    layout = scored(msmarco, margin=3.0)
    expected = run(msmarco, layout).examples
    monkeypatch.setattr("cocite.triplets.user_pairs.TEXTS_AT_ONCE", 2)
    monkeypatch.setattr(mined_pairs, "SCORES_AT_ONCE", 1)
    assert run(msmarco, layout).examples == expected


PAGE = (Path(__file__).parents[2] / "docs/how-to/pairs.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(
    ("title", "written", "expected"),
    [
        (
            "Rows with texts",
            "folder",
            [
                ("nectar of flowers", ["Bees | They collect nectar."], ["Cars are fast."]),
                ("register allocation", ["Colouring the graph of variables.", "Linear scan."], []),
            ],
        ),
        ("BEIR's layout", "beir", BEIR),
        ("SPECTER's triplets", "specter", [("c", ["d"], []), ("q", ["a"], ["b"])]),
        (
            "MS MARCO's mined negatives",
            "msmarco",
            [("seven", ["passage 1"], [f"passage {passage}"]) for passage in (3, 4, 5)],
        ),
        ("InPars", "inpars", [("three", ["t1"], []), ("two", ["T2 | t2"], [])]),
    ],
)
def test_the_example_of_each_layout_in_the_documentation_is_read_as_documented(
    request, folder, monkeypatch, title, written, expected
):
    request.getfixturevalue(written)
    for text in re.findall(r"```json\n(.*?)```", SECTIONS[title], flags=re.DOTALL):
        (folder / "brought/train.jsonl").write_text(text)
    [block] = re.findall(r"```yaml\n(.*?)```", SECTIONS[title], flags=re.DOTALL)
    [entry] = yaml.safe_load(block)["triplets"].values()
    (folder / entry["dataset"]).symlink_to(folder / "brought")
    monkeypatch.chdir(folder)
    assert run(folder, **{key: value for key, value in entry.items() if key != "sampler"}).examples == expected
