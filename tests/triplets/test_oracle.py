"""The answers of a benchmark as triplets: what is near, what is far, and how the tasks are balanced."""

from collections import Counter

import pytest
from tests.configurations import recorded
from tests.rows import write_rows
from tests.triplets.blocks import found_by, sampler, write_papers, write_queries, written_checks, written_sample

from cocite.config.sampler import oracle_models, oracles
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table

CLASSES = {f"d{number:02}": ["even", "odd"][number % 2] for number in range(12)}
JUDGED = {"q": {"a": 1, "b": 2, "c": 0, "d": 0}, "r": {"a": 0, "d": 1}}
TEXTS = {name: (f"title of {name}", f"abstract of {name}") for name in [*CLASSES, *"abcdqr"]}


def write_benchmark(folder, texts=TEXTS, labels=(), judgements=(), collection=(), short=()):
    """The prepared tables of a benchmark; labels are (task, split, document, labels)."""
    documents = [(name, *texts[name], [], None, name in short) for name in sorted(texts)]
    judged = [(*row, None, None) for row in judgements]
    collected = [(*row, None, None) for row in collection]
    tables = {
        "documents": ("document title abstract more field is_query", documents),
        "labels": ("task split document labels", sorted(labels)),
        "judgements": ("task query candidate relevance propensity fold", judged),
        "collections": ("task document query copy_of", collected),
    }
    return [write_rows(folder / f"{name}.parquet", name, *given) for name, given in tables.items()]


def labelled(task="fos", classes=CLASSES):
    return [(task, "test" if name > "d08" else "train", name, [of]) for name, of in classes.items()]


def judged(task="relish", judgements=JUDGED):
    return [(task, query, *row) for query, grades in sorted(judgements.items()) for row in sorted(grades.items())]


@pytest.fixture
def oracle(tmp_path):
    """A function that samples an oracle: (query, positive, negative) by the names of the documents, splits, counts."""
    write_queries(tmp_path, {1: "train", 2: "holdout"})
    write_papers(tmp_path, {1: ("one", "first"), 2: TEXTS["a"]})

    def run(sources, **more):
        asked = sampler("oracle", benchmark="b", **{"validation": 0.0, **more})
        rows, omitted = written_sample(tmp_path, asked, sources, texts=tmp_path / "texts.parquet")
        texts, rows = read_table(tmp_path / "texts.parquet", "sampled_texts").to_pylist(), rows.to_pylist()
        name = {row["text"]: row["title"].removeprefix("title of ") for row in texts}
        named = {text for row in rows for text in (row["query"], *row["positives"], *row["negatives"])}
        assert named == set(name)  # every text that is named, and no other
        return (
            [(name[row["query"]], name[row["positives"][0]], name[row["negatives"][0]]) for row in rows],
            {(name[row["query"]], row["split"]) for row in rows},
            {reason: count for reason, count in omitted.items() if count},
        )

    return run


def test_papers_of_several_classes_are_near_where_one_is_shared_and_far_where_none_is(oracle, tmp_path):
    of = {"d00": ["x", "y"], "d01": ["y", "z"], "d02": ["x"], "d03": ["z"], "d04": ["w"]}
    labels = [("biomimicry", "train", name, classes) for name, classes in of.items()]
    triplets, _, _ = oracle(write_benchmark(tmp_path / "b", labels=labels), per_query=30)
    assert "d04" not in {query for query, _, _ in triplets}  # alone in its class
    assert all(set(of[q]) & set(of[p]) and not set(of[q]) & set(of[n]) for q, p, n in triplets)
    assert {p for q, p, _ in triplets if q == "d00"} == {"d01", "d02"}
    assert {n for q, _, n in triplets if q == "d00"} == {"d03", "d04"}


def test_what_is_judged_relevant_is_near_and_what_is_judged_not_to_be_is_far(oracle, tmp_path):
    triplets, _, _ = oracle(write_benchmark(tmp_path / "b", judgements=judged()), per_query=4)
    assert {(q, p) for q, p, _ in triplets} == {("q", "a"), ("q", "b"), ("r", "d")}
    assert {(q, n) for q, _, n in triplets} == {("q", "c"), ("q", "d"), ("r", "a")}
    assert Counter(q for q, _, _ in triplets)["r"] == 1  # one pair, however often it is drawn


def test_where_nothing_is_judged_irrelevant_other_documents_of_the_collection_are_far(oracle, tmp_path):
    judgements = judged("title_search", {"q": {"a": 1}, "r": {"b": 1}})
    collection = [("title_search", name) for name in "abcd"]
    paths = write_benchmark(tmp_path / "b", judgements=judgements, collection=collection, short="qr")
    triplets, _, _ = oracle(paths, per_query=20)
    assert {n for q, _, n in triplets if q == "q"} == {"b", "c", "d"}
    texts = read_table(tmp_path / "texts.parquet", "sampled_texts").to_pylist()
    assert {row["title"][-1] for row in texts if row["is_query"]} == {"q", "r"}


def test_each_task_has_as_many_queries_as_the_one_with_the_fewest(oracle, tmp_path):
    paths = write_benchmark(tmp_path / "b", labels=labelled(), judgements=judged())
    triplets, _, omitted = oracle(paths, per_query=2)
    queries = {query for query, _, _ in triplets}
    assert len(queries & set(CLASSES)) == len(queries & set("qr")) == 2
    assert omitted["queries of fos beyond those of each task"] == 10


def test_queries_are_chosen_by_number_and_drawn_the_same_whichever_tasks_stand_beside(oracle, tmp_path):
    paths = write_benchmark(tmp_path / "b", labels=labelled(), judgements=judged())
    alone, _, _ = oracle(paths, tasks=["fos"], queries=5)
    assert len({query for query, _, _ in alone}) == 5
    beside, _, _ = oracle(paths, queries=5)
    assert set(alone) == {triplet for triplet in beside if triplet[0] in CLASSES}


def test_a_query_trains_or_validates_with_all_its_triplets(oracle, tmp_path):
    _, splits, _ = oracle(write_benchmark(tmp_path / "b", labels=labelled()), validation=0.4)
    assert {split for _, split in splits} == {"train", "validation"}
    assert len(splits) == len({query for query, _ in splits})


def test_documents_without_a_text_are_left_out_and_counted(oracle, tmp_path):
    paths = write_benchmark(tmp_path / "b", {**TEXTS, "d00": (None, None), "d01": ("", None)}, labels=labelled())
    triplets, _, omitted = oracle(paths)
    assert not {"d00", "d01"} & {name for triplet in triplets for name in triplet}
    assert omitted["documents without a text"] == 2


def test_regressions_have_no_answers_and_a_benchmark_without_answers_is_refused(oracle, tmp_path):
    numbers = [("cite_count", "train", name, [str(place)]) for place, name in enumerate(CLASSES)]
    for labels in (numbers, []):
        with pytest.raises(InputError, match="b: the benchmark has no labels and no judgements"):
            oracle(write_benchmark(tmp_path / "b", labels=labels))
    _, _, omitted = oracle(write_benchmark(tmp_path / "b", labels=[*numbers, *labelled()]))
    assert omitted["tasks that say of no two documents that they belong together: cite_count"] == 1


def test_the_check_finds_the_documents_that_were_given_away_in_whichever_benchmark(oracle, tmp_path):
    def found(benchmark):
        return found_by(written_checks(tmp_path, tmp_path / "sampled.parquet", [benchmark])[0])

    paths = write_benchmark(tmp_path / "b", labels=labelled())
    oracle(paths, per_query=20)
    assert found(paths[0])["in benchmark", "b"] == (12, len(TEXTS))
    oracle(write_benchmark(tmp_path / "b", judgements=judged("relish", {"q": {"a": 1, "b": 0}})))
    [others, *_] = write_benchmark(tmp_path / "other", {"a": TEXTS["a"], "x": ("nobody", "knows")})
    assert found(others)["in benchmark", "other"] == (1, 2)


SETS = {
    "answers-oracle": {"sampler": "oracle", "benchmark": "scirepeval"},
    "half-oracle": {"sampler": "subset", "of": "answers-oracle", "share": 0.5},
    "plain": {"sampler": "citations"},
}


def test_sets_and_models_that_know_the_answers_are_known_by_all_that_they_come_from():
    models = {
        "one-oracle": {"triplets": "half-oracle"},
        "two-oracle": {"from": "one-oracle", "triplets": "plain"},
        "three": {"objectives": [{"triplets": "plain"}]},
        "four-oracle": {"triplets": "mined-oracle"},
    }
    mined = {"sampler": "mined", "of": "plain", "by": {"kind": "model", "name": "two-oracle"}}
    config = recorded({"triplets": {**SETS, "mined-oracle": mined}, "models": models})
    assert oracles(config) == {"answers-oracle": ["scirepeval"], "half-oracle": ["scirepeval"]}
    assert oracle_models(config) == {f"{name}-oracle": ["scirepeval"] for name in ("one", "two", "four")}
