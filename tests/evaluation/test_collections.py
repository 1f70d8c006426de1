"""Ten collections, each in the layout in which it is released, are read by one command a kind and ranked by words."""

from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.collections import LAYOUTS, PAPERS, topic_of, write_collections
from tests.evaluation.folders import read_benchmark, scores_of, write_vectors

from cocite.config.benchmarks import declared
from cocite.config.benchmarks.beir import BeirSettings
from cocite.core.tables.files import read_table
from cocite.evaluation.bm25 import read_document_texts, score_words
from cocite.evaluation.preparation.beir import prepare_beir
from cocite.evaluation.preparation.readers import prepare_folder
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import embedded

RUN = Run(model="m", training_seed=0, benchmark="b", modes=["correct"], evaluation_seeds=[1])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder of the tables of each collection, by name."""
    folder = tmp_path_factory.mktemp("collections")
    found = {}
    for name, entry in write_collections(folder).items():
        tables = folder / "tables" / name
        where = {"tables": tables, "omissions": tables / "omissions.parquet"}
        if entry["kind"] == "beir":
            prepare_beir(settings=BeirSettings(datasets={name: f"{entry['folder']}/{name}"}), **where)
        else:
            prepare_folder(Path(entry["folder"]), kind=entry["kind"], **where)
        found[name] = tables
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_words_find_what_is_of_the_topic_of_a_query_and_random_vectors_do_not(prepared, name, tmp_path):
    tables = prepared[name]
    benchmark = read_benchmark(tables)
    documents = read_table(tables / "documents.parquet", "documents")["document"].to_pylist()
    draw = np.random.default_rng(7)
    by_chance = embedded(write_vectors(tmp_path, {each: draw.normal(size=9) for each in documents}), RUN)
    ranked = [task for task in map(declared, sorted(benchmark.tasks)) if task.is_ranking]
    assert ranked or name == "s2and"
    for task in ranked:
        texts = read_document_texts(tables / "documents.parquet", benchmark.documents_of(task))
        words, chance = scores_of(score_words(task, benchmark, texts, RUN)), scores_of(by_chance(task, benchmark))
        metric = task.metrics[0]
        assert words[metric] > 1.2 * chance[metric], (task.name, metric)


def test_vectors_of_topics_tell_authors_and_classes_apart(prepared, tmp_path):
    def by_topic(tables):
        documents = read_table(tables / "documents.parquet", "documents").to_pylist()
        of_title = {f"{number}": topic_of(number) for number in PAPERS}
        vectors = {each["document"]: np.eye(4)[of_title[each["title"].split()[-1]]] for each in documents}
        return embedded(write_vectors(tmp_path, vectors), RUN)

    authors, classes = declared("s2and_qian"), declared("drsm")
    found = by_topic(prepared["s2and"])(authors, read_benchmark(prepared["s2and"]))
    assert scores_of(found)["b3_f1"] == pytest.approx(100)
    found = by_topic(prepared["scirepeval"])(classes, read_benchmark(prepared["scirepeval"]))
    assert scores_of(found)["f1_macro"] == pytest.approx(100)
