"""`cocite publish --data`: sets, pairs, vectors, splits and hold-outs of a run as a dataset, by ids or with texts."""

import hashlib
import json
import re
import runpy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard
from tests.encoder.published import published
from tests.papers import papers_table
from tests.rows import write_rows
from tests.tools.builders import invoke
from tests.workflow.conftest import SMALL

from cocite.config.configuration import resolve
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.tools.documentation import ROOT

PAPERS = {paper: (f"Title {paper}", f"An abstract of {paper}.") for paper in range(1, 40)}
TRIPLETS = [(1, 2, 3, "train"), (1, 4, 5, "train"), (6, 7, 8, "validation")]
EXAMPLES = [(1, 1, "train", [2, 4], [9, 10, 11]), (1, 2, "train", [5], [9, 12])]
EXAMPLES += [(6, 1, "validation", [7], [8, 3]), (7, 1, "train", [8], [9])]
PAIRS = {0: [(2, 4, 5), (2, 9, 1)], 1: [(1, 2, 3)]}
"""Papers, others and counts, by bucket of the paper."""
QUERIES = [(1, "train"), (6, "validation"), (7, "train"), (20, "holdout")]
JUDGED = [("cite", "20", "21", 1, None, None), ("cite", "20", "22", 0, None, None)]
TABLES = [
    ("corpus/queries", "queries", "corpusid split", QUERIES),
    ("triplets/specter/sampled_examples", "sampled_examples", "query number split positives negatives", EXAMPLES),
    *((f"graph/cocitation/cocitations/{at}", "cocitations", "paper other count", rows) for at, rows in PAIRS.items()),
    ("graph/citation/edges/0", "edges", "source target weight", [(1, 2, 1.0)]),
    ("graph/citation/edges/1", "edges", "source target weight", []),
    ("evaluation/holdout/judgements", "judgements", "task query candidate relevance propensity fold", JUDGED),
    ("evaluation/holdout/selection", "selection", "task query candidate relevance", []),
    ("evaluation/holdout/searches", "searches", "task query paper relevance split", [("cite", 20, 23, 1, "test")]),
]
"""Where tables lie, their names, columns and rows."""
OWN = {"source": "directory", "path": "own-release"}
OF_S2 = {"readmes": {"papers": "Semantic Scholar Academic Graph\nLicensed under ODC-BY."}}


@pytest.fixture
def results(tmp_path):
    """What a run on an own release has left of a set of triplets and one of examples, and of what else is published."""
    folder = tmp_path / "results"
    config = resolve(SMALL) | {"corpus": OWN}
    write_json(folder / "provenance.json", {"configuration": config, "release": "2026-01-06", "readmes": {}})
    for bucket in range(2):
        some = {paper: text for paper, text in PAPERS.items() if paper % 2 == bucket}
        write_table(folder / f"corpus/papers/{bucket}.parquet", "papers", papers_table(some))
    write_triplets(folder, TRIPLETS)
    for path, table, columns, rows in TABLES:
        write_rows(folder / f"{path}.parquet", table, columns, rows)
    vectors = pa.table({"corpusid": [1, 2], "vector": vector_column(np.eye(2, 4))})
    write_table(folder / "embeddings/cocitation-dot/graph_embeddings.parquet", "graph_embeddings", vectors)
    return folder


def write_triplets(folder, triplets, name="cocite"):
    columns = "query positive negative split positive_rank negative_rank negative_kind"
    rows = [(*triplet, rank, None, "hard") for rank, triplet in enumerate(triplets)]
    write_rows(folder / f"triplets/{name}/triplets.parquet", "triplets", columns, rows)


def publish(results, *arguments):
    """What the command says, and the folder that it wrote."""
    output = results.parent / "data"
    said = invoke("publish", "--data", "--licence", "odc-by", "--results", results, "--output", output, *arguments)
    return said.stderr, output


def rows_of(output, name):
    return [tuple(row.values()) for row in pq.read_table(output / f"{name}.parquet").to_pylist()]


def text_of(paper):
    return "\n".join(PAPERS[paper])


def test_sets_vectors_splits_and_holdouts_are_published_by_ids(results):
    said, output = publish(results)
    assert "9 configurations with" in said
    assert rows_of(output, "triplets-cocite/train") == [(1, 2, 3, 0, None, "hard"), (1, 4, 5, 1, None, "hard")]
    assert rows_of(output, "triplets-cocite/validation") == [(6, 7, 8, 2, None, "hard")]
    assert rows_of(output, "graph_embeddings-cocitation-dot/vectors") == [(1, [1, 0, 0, 0]), (2, [0, 1, 0, 0])]
    assert (20, "holdout") in rows_of(output, "queries/queries")
    assert rows_of(output, "judgements-holdout/test") == [("cite", "20", "21", 1), ("cite", "20", "22", 0)]
    assert rows_of(output, "searches-holdout/test") == [("cite", 20, 23, 1)]
    named = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20, 21, 22, 23} - {11}  # the third negative is left out
    assert {row[0] for row in rows_of(output, "papers/papers")} == named
    assert b"abstract of" not in b"".join(path.read_bytes() for path in output.rglob("*") if path.is_file())


def test_the_pairs_of_graphs_are_published_by_files(results):
    _, output = publish(results)
    assert {bucket: rows_of(output, f"cocitations-cocitation/pairs-{bucket}") for bucket in PAIRS} == PAIRS
    assert [path.name for path in output.glob("edges-*/*")] == ["pairs-0.parquet"]  # There are no rows in the other.
    assert rows_of(output, "edges-citation/pairs-0") == [(1, 2, 1.0)]
    card = (output / "README.md").read_text()
    assert "| cocitations-cocitation | pairs | 3 | paper, other, count |" in card
    assert "distinct papers that cite both" in card


def test_examples_have_a_row_for_each_positive_and_a_column_for_each_negative(results):
    said, output = publish(results)
    assert "Left out of the set specter: 1 of the examples, with fewer negatives than 2." in said
    columns = ["anchor", "positive", "negative_1", "negative_2", "number"]
    assert pq.read_schema(output / "sampled_examples-specter/train.parquet").names == columns
    assert rows_of(output, "sampled_examples-specter/train") == [(1, 2, 9, 10, 1), (1, 4, 9, 10, 1), (1, 5, 9, 12, 2)]


def test_the_card_and_croissant_name_every_file(results):
    _, output = publish(results)
    data = DatasetCard.load(output / "README.md").data
    files = {path.relative_to(output).as_posix() for path in output.glob("*/*.parquet")}
    assert data.license == "odc-by"
    assert data.size_categories == ["n<1K"]
    patterns = [split["path"] for each in data.configs for split in each["data_files"]]
    matches = [path.relative_to(output).as_posix() for pattern in patterns for path in output.glob(pattern)]
    assert sorted(matches) == sorted(files)
    described = json.loads((output / "croissant.json").read_text())
    digests = {each["contentUrl"]: each["sha256"] for each in described["distribution"] if "sha256" in each}
    assert digests == {file: hashlib.sha256((output / file).read_bytes()).hexdigest() for file in files}
    card = (output / "README.md").read_text()
    assert "The terms are those of the owner of the release in the folder own-release." in card
    assert "Papers are named by their ids" in card


def test_texts_stand_in_the_rows_of_the_ids(results):
    _, output = publish(results, "--texts")
    for name, source in (("texts-cocite/train", TRIPLETS[:2]), ("texts-cocite/validation", TRIPLETS[2:])):
        assert rows_of(output, name) == [tuple(map(text_of, row[:3])) for row in source]
    texts = pq.read_table(output / "texts-specter/train.parquet")
    assert texts.column_names == ["anchor", "positive", "negative_1", "negative_2"]
    assert texts["negative_2"].to_pylist() == [text_of(paper) for paper in (10, 10, 12)]
    assert "publishers may hold rights" in (output / "README.md").read_text()


@pytest.mark.parametrize("corpus", [{"source": "s2"}, {"source": "directory", "path": "copy"}])
def test_texts_of_semantic_scholar_are_refused(results, corpus):
    provenance = json.loads((results / "provenance.json").read_text())
    provenance["configuration"]["corpus"] = corpus
    write_json(results / "provenance.json", provenance | OF_S2)
    with pytest.raises(InputError, match="belong to their publishers"):
        publish(results, "--texts")
    assert not (results.parent / "data").exists()
    _, output = publish(results)
    assert "ODC-BY" in (output / "README.md").read_text()


def test_a_set_with_texts_that_are_no_papers_is_left_out(results):
    write_triplets(results, [(-5, 2, 3, "train"), *TRIPLETS])
    said, output = publish(results)
    assert "texts that are no papers: cocite." in said
    assert not (output / "triplets-cocite").exists()


def test_a_paper_without_a_record_stops_the_texts(results):
    write_triplets(results, [*TRIPLETS, (50, 51, 52, "train")])
    with pytest.raises(InputError, match="A paper of triplets-cocite is not in the table papers"):
        publish(results, "--texts")


def test_the_options_of_data_and_models_exclude_each_other(results):
    with pytest.raises(InputError, match="choose --data"):
        publish(results, "cocite")
    with pytest.raises(InputError, match="--texts is for --data only"):
        invoke("publish", "cocite", "--texts", "--licence", "mit", "--results", results, "--output", results / "out")


@pytest.mark.long
def test_libraries_open_the_data_and_train_on_it_as_the_documentation_says(results, monkeypatch):
    import mlcroissant
    from datasets import get_dataset_config_names, load_dataset
    from sentence_transformers import CrossEncoderTrainer, MultiVectorEncoderTrainer, SparseEncoderTrainer
    from transformers import BertConfig, BertForMaskedLM, Trainer

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_triplets(results, [(paper, paper + 10, paper + 20, "train") for paper in range(1, 11)], name="specter")
    _, output = publish(results, "--texts")
    described = mlcroissant.Dataset(str(output / "croissant.json"))
    assert not described.metadata.ctx.issues.errors
    for name in get_dataset_config_names(str(output)):
        for split, rows in load_dataset(str(output), name, cache_dir=str(results / "cache")).items():
            single = output / name / f"{split}.parquet"
            written = pq.read_table(single if single.is_file() else output / name)
            assert rows.to_list() == written.to_pylist()
            assert len(list(described.records(f"{name}/{split}"))) == len(written)

    trained = []
    step = Trainer.training_step

    def counted(self, *given):
        loss = step(self, *given)
        trained.append((type(self), loss))
        return loss

    monkeypatch.setattr(Trainer, "training_step", counted)
    monkeypatch.chdir(results.parent)
    bert = published(results.parent / "bert")
    BertForMaskedLM(BertConfig.from_pretrained(bert)).save_pretrained(bert)
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/publish.md").read_text(), flags=re.DOTALL)
    (results.parent / "documented.py").write_text(
        code.replace("bert-base-uncased", "bert").replace('split="train"', 'split="train[:8]"')
    )
    ran = runpy.run_path("documented.py")
    trainers = [SparseEncoderTrainer, MultiVectorEncoderTrainer, CrossEncoderTrainer]
    assert [*dict.fromkeys(kind for kind, _ in trained)] == trainers
    assert all(loss.isfinite() and loss > 0 for _, loss in trained)
    assert ran["ids"][0] == {"anchor": "Title 1", "positive": "Title 11", "negative": "Title 21"}
