"""Baselines without a training: user-supplied vectors, as Parquet, NPZ or JSON Lines, random ones, and those of several
models side by side."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.tables import documents, embedded, papers, write_vectors

from cocite.baselines.methods.untrained import JoinedVectors, RandomVectors, UserSuppliedVectors
from cocite.baselines.user_vectors import FieldNames, read_vectors
from cocite.config.benchmarks import TASKS
from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import embedded as scored_by

IDS = ["d1", "d2", "d3"]
VECTORS = np.array([[1, 2], [3, 4.5], [-5, 1e-3]], np.float32)


def as_parquet(path: Path, ids, vectors, names=("document", "vector")) -> Path:
    pq.write_table(pa.table({names[0]: ids, names[1]: pa.array([list(each) for each in vectors])}), path)
    return path


def as_npz(path: Path, ids, vectors, names=("ids", "vectors")) -> Path:
    np.savez(path, **{names[0]: np.array(ids), names[1]: np.array(vectors)})
    return path


def as_lines(path: Path, ids, vectors, names=("paper_id", "embedding")) -> Path:
    rows = [
        {names[0]: each, "title": f"Title of {each}", names[1]: [float(value) for value in vector]}
        for each, vector in zip(ids, vectors, strict=True)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


RANDOM = RandomVectors(kind="random")
FORMATS = {"v.parquet": as_parquet, "v.npz": as_npz, "v.jsonl": as_lines, "v.jsonl.gz": as_lines}


def baseline(path: Path, **more) -> UserSuppliedVectors:
    return UserSuppliedVectors(kind="brought", path=str(path), **more)


@pytest.mark.parametrize("name", FORMATS)
def test_vectors_are_read_from_every_format_and_ids_that_are_numbers_are_taken_as_text(tmp_path, name):
    found = read_vectors([FORMATS[name](tmp_path / name, IDS, VECTORS)], {"d3", "d1", "else"})
    assert found.read == 3
    assert {each: found.matrix[row].tolist() for each, row in found.rows.items()} == {
        each: VECTORS[IDS.index(each)].tolist() for each in ("d1", "d3")
    }
    assert read_vectors([FORMATS[name](tmp_path / name, [11, 12, 13], VECTORS)], {"12"}).rows == {"12": 0}


@pytest.mark.parametrize("name", FORMATS)
def test_ids_and_vectors_may_have_any_name(tmp_path, name):
    path = FORMATS[name](tmp_path / name, IDS, VECTORS, ("sha", "specter"))
    assert len(read_vectors([path], IDS, FieldNames("sha", "specter")).rows) == 3
    with pytest.raises(InputError, match=r"has no ids under paper_id or id or .*; its (columns|arrays|keys) are sha"):
        read_vectors([path], IDS)
    with pytest.raises(InputError, match=r"has no vectors under cls; its .* are sha, .*specter"):
        read_vectors([path], IDS, FieldNames("sha", "cls"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("ids", "vectors", "said"),
    [
        (IDS, [[1, 2], [np.nan, 1], [0, np.inf]], "2: the vector of 'd2' contains a value that is not finite"),
        (IDS[:2] * 2, [*VECTORS, [0, 0]], "3: the id 'd1' is there a second time; it came .*(row|line) 1"),
        (IDS, [[1, 2], [3, 4], [5]], "3: the vector has 1 dimensions, and that of .* 1 has 2"),
    ],
)
def test_vectors_that_cannot_be_are_refused_with_their_place(tmp_path, name, ids, vectors, said):
    if name != "v.npz" or len(vectors[-1]) == 2:  # an array has no rows of other lengths
        path = FORMATS[name](tmp_path / name, ids, vectors)
        with pytest.raises(InputError, match=rf"{name}, (row|line) {said}"):
            read_vectors([path], ["d1"])


def test_an_id_may_come_again_in_another_file_with_the_same_vector(tmp_path):
    first = as_lines(tmp_path / "a.jsonl", IDS, VECTORS)
    assert len(read_vectors([first, as_npz(tmp_path / "b.npz", IDS[:1], VECTORS[:1])], IDS).rows) == 3
    wide = as_npz(tmp_path / "w.npz", ["e"], [[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match=r"w\.npz, row 1: the vector has 3 dimensions, and that of .*a\.jsonl.* has 2"):
        read_vectors([first, wide], IDS)
    other = as_npz(tmp_path / "c.npz", IDS[:1], VECTORS[1:2])
    with pytest.raises(InputError, match=r"c\.npz, row 1: the id 'd1' is there again with another vector; .*a\.jsonl"):
        read_vectors([first, other], IDS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 3: not JSON"),
        ("[1, 2]", "line 3: must be an object"),
        ('{"paper_id": "x", "embedding": null}', "line 3: the key 'embedding' is missing or null"),
        ('{"paper_id": null, "embedding": [1.0, 2.0]}', "line 3: the key 'paper_id' is missing or null"),
        ('{"paper_id": "x", "embedding": [1.0, "2"]}', "line 3: embedding must be a list of numbers, but is '2'"),
        ('{"paper_id": "x", "embedding": 7}', "line 3: embedding must be a list of numbers, not 7"),
        ('{"paper_id": "x"}', "has no vectors under embedding or .*; its keys are paper_id"),
        (
            '{"paper_id": "x", "embedding": []}',
            "line 3: the vector (has 0 dimensions, and that of .* line 1 has|of 'x' is empty)",
        ),
    ],
)
@pytest.mark.parametrize("bytes_at_once", [1, 1 << 25])
def test_the_line_of_a_fault_is_named(tmp_path, monkeypatch, line, said, bytes_at_once):
    monkeypatch.setattr("cocite.core.rows.BLOCK", bytes_at_once)
    path = as_lines(tmp_path / "v.jsonl", IDS[:2], VECTORS[:2])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=said):
        read_vectors([path], IDS)


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(IDS, dtype=object), vectors=VECTORS)
    with pytest.raises(InputError, match=r"v\.npz: not a readable NPZ file \(an array of Python objects"):
        read_vectors([tmp_path / "v.npz"], IDS)


def test_a_paper_stands_for_all_its_documents_but_for_short_queries(tmp_path):
    table = documents(
        tmp_path / "documents.parquet",
        {"7": ("t", None), "search:7": ("t", "2020"), "queries:7": ("seven", None), "8": ("u", None)},
        queries=["queries:7"],
    )
    path = as_lines(tmp_path / "v.jsonl", [7], VECTORS[:1])
    found = embedded(baseline(path), table, tmp_path / "by-paper.parquet")
    assert found.keys() == {"7", "search:7"}
    found = embedded(baseline(path, ids_of="documents"), table, tmp_path / "by-document.parquet")
    assert found.keys() == {"7"}


def test_all_files_of_a_folder_are_read_and_vectors_of_none_of_the_documents_are_refused(tmp_path):
    table = dict.fromkeys(IDS, ("t", None))
    (tmp_path / "of").mkdir()
    as_lines(tmp_path / "of" / "cls.jsonl", IDS[:1], VECTORS[:1])
    as_parquet(tmp_path / "of" / "recomm.parquet", IDS[2:], VECTORS[2:])
    (tmp_path / "of" / "README.md").write_text("Read me.")
    assert embedded(baseline(tmp_path / "of"), table, tmp_path / "vectors.parquet").keys() == {"d1", "d3"}
    with pytest.raises(InputError, match=r"of: none of its 2 ids is one of the 1 of .*, such as '7'"):
        embedded(baseline(tmp_path / "of"), {"7": ("t", None)}, tmp_path / "vectors.parquet")


def test_scores_are_those_of_a_model_with_the_same_vectors_and_documents_without_one_count_as_missing(tmp_path):
    draw = np.random.default_rng(3)
    names = [f"{number}" for number in range(100, 140)]
    vectors = draw.standard_normal((40, 6)).astype(np.float32)
    columns = {"adapter": [""] * 40, "document": names, "vector": vector_column(vectors)}
    write_table(tmp_path / "model.parquet", "document_embeddings", pa.table(columns))
    brought = {tmp_path / "model.parquet": 0, as_lines(tmp_path / "v.jsonl", names[::-1], vectors[::-1]): 0}
    brought[as_npz(tmp_path / "v.npz", names[:-1], vectors[:-1])] = 1
    judged = {query: {other: int(draw.integers(0, 3)) for other in names[5:]} for query in names[:5]}
    asked = TASKS["relish"], Benchmark(judgements={"relish": judged})
    run = Run(model="m", training_seed=0, benchmark="b", modes=["compat"], evaluation_seeds=[1], largest_missing=0.5)
    expected = scored_by(tmp_path / "model.parquet", run)(*asked)
    assert expected.scores[0][8] > 0
    for path, missing in brought.items():
        embedded(baseline(path), dict.fromkeys(names, ("t", None)), tmp_path / "ours.parquet")
        found = scored_by(tmp_path / "ours.parquet", run)(*asked)
        assert (found.documents, found.missing) == (40, missing)
        assert missing or (found.scores, found.outcomes) == (expected.scores, expected.outcomes)


def test_random_vectors_have_25_dimensions_and_a_mean_of_zero_and_depend_on_the_seed_alone(tmp_path):
    texts = {f"d{number:04}": ("t", None) for number in range(9000)}
    first, again, other = (
        np.stack(list(embedded(RANDOM, texts, tmp_path / f"{at}.parquet", seed=of).values()))
        for at, of in enumerate((1, 1, 2))
    )
    assert (first == again).all()
    assert not (first == other).any()
    assert first.shape == (9000, 25)
    assert abs(first.mean(axis=0)).max() < 5 / np.sqrt(9000)
    assert first.std() == pytest.approx(1, abs=0.02)
    columns = {"adapter": pa.string(), "document": pa.string(), "vector": pa.list_(pa.float32(), 25)}
    assert [(field.name, field.type) for field in pq.read_schema(tmp_path / "0.parquet")] == [*columns.items()]


def test_random_vectors_of_papers_follow_from_their_ids_whatever_the_buckets(tmp_path):
    ids = range(400)
    together = embedded(RANDOM, papers(tmp_path / "papers/0.parquet", dict.fromkeys(ids, ("t", "a"))), tmp_path / "all")
    parts = {}
    for bucket in (0, 1):
        of_bucket = {each: ("t", "a") for each in ids if each % 2 == bucket}
        source = papers(tmp_path / f"{bucket}/papers/0.parquet", of_bucket)
        parts |= embedded(RANDOM, source, tmp_path / f"of-{bucket}")
    assert parts.keys() == together.keys()
    assert all((vector == together[each]).all() for each, vector in parts.items())
    matrix = np.array(list(together.values()))
    assert len({row.tobytes() for row in matrix}) == 400
    assert abs(matrix.mean()) < 0.05
    assert matrix.std() == pytest.approx(1, abs=0.05)


SHORT = st.lists(st.integers(-3, 3), min_size=2, max_size=2).filter(any)


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdefgh"), SHORT, min_size=1), min_size=2, max_size=3),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
)
def test_cosines_are_weighted_means_of_the_cosines_by_each_model(tmp_path_factory, of_models, weights):
    folder, weights = tmp_path_factory.mktemp("joined"), weights[: len(of_models)]
    tables = [write_vectors(folder / f"{number}.parquet", given) for number, given in enumerate(of_models)]
    joined = JoinedVectors(kind="joined", models=tuple("abc"[: len(of_models)]), weights=tuple(map(float, weights)))
    texts = dict.fromkeys(of_models[0], ("title", None))
    found = embedded(joined, texts, folder / "vectors.parquet", joined_vectors=tables)
    assert set(found) == set.intersection(*map(set, of_models))
    for one in found:
        for other in found:
            pairs = [np.array([of[one], of[other]]) for of in of_models]
            cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]
            assert found[one] @ found[other] == pytest.approx(np.average(cosines, weights=weights), abs=1e-5)


def test_papers_are_joined_as_well(tmp_path):
    first, second = {1: [3, 4], 2: [1, 0]}, {2: [0, 2], 3: [1, 1]}
    tables = [write_vectors(tmp_path / f"{number}.parquet", of) for number, of in enumerate((first, second))]
    joined = JoinedVectors(kind="joined", models=("a", "b"))
    source = papers(tmp_path / "papers/0.parquet", dict.fromkeys((1, 2, 3), ("title", None)))
    found = embedded(joined, source, tmp_path / "vectors.parquet", joined_vectors=tables)
    assert {paper: vector.tolist() for paper, vector in found.items()} == {2: pytest.approx([0.5**0.5, 0, 0, 0.5**0.5])}
