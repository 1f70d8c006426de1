"""The indexes behind a search: vectors, titles, and the folder that they lie in."""

import errno
import fcntl
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spoiling import SPOILS
from tests.tools.serving.conftest import LARGE, write_run

from cocite.core.errors import InputError
from cocite.core.randomness import generator
from cocite.core.tables.files import vector_column, write_table
from cocite.tools import search_indexes
from cocite.tools.contents import open_results
from cocite.tools.search_indexes import Titles, VectorIndex, cache_of, cached, index_titles, index_vectors


def write(path: Path, ids: list[int], values: np.ndarray) -> Path:
    write_table(path, "paper_embeddings", pa.table({"corpusid": ids, "vector": vector_column(values)}))
    return path


def index_of(folder: Path, *files: Path) -> VectorIndex:
    made = folder / "index"
    made.mkdir()
    index_vectors(files, made)
    return VectorIndex(made)


def brute_force(ids: np.ndarray, values: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    distances = [sum((float(a) - float(b)) ** 2 for a, b in zip(row, query, strict=True)) for row in values]
    return [paper for _, paper in sorted(zip(distances, ids.tolist(), strict=True))[:k]]


@given(data=st.data(), papers=st.integers(1, 30), wide=st.integers(1, 4), k=st.integers(1, 40))
def test_an_exact_search_finds_what_brute_force_finds_ties_by_id(tmp_path_factory, data, papers, wide, k):
    numbers = st.lists(st.integers(-3, 3), min_size=papers * wide, max_size=papers * wide)
    values = np.array(data.draw(numbers), np.float32).reshape(papers, wide)
    ids = np.sort(generator(1, "ids", papers).choice(10**6, papers, replace=False))
    folder = tmp_path_factory.mktemp("exact")
    odd = [ids % 2 == rest for rest in (0, 1)]
    index = index_of(
        folder,
        *(write(folder / f"{n}.parquet", ids[each].tolist(), values[each]) for n, each in enumerate(odd) if each.any()),
    )
    query = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=wide, max_size=wide)), np.float32)
    assert index.nearest(query, k)[0].tolist() == brute_force(ids, values, query, k)
    others = ids != ids[0]
    assert index.nearest(query, k, but=[int(ids[0])])[0].tolist() == brute_force(ids[others], values[others], query, k)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """An index of 2,500 papers in 50 lists, its ids and vectors."""
    monkeypatch.setattr(search_indexes, "EXACT_UP_TO", 1000)
    values = generator(1, "large").normal(size=(2500, 16)).astype(np.float32)
    ids = np.arange(2500) * 3 + 1
    return index_of(tmp_path, write(tmp_path / "0.parquet", ids.tolist(), values)), ids, values


def test_of_many_papers_the_search_reads_some_lists_and_gives_exact_distances(large):
    index, ids, values = large
    assert index.lists == 50
    hits = 0
    for place in range(0, 2500, 100):
        found, distances = index.nearest(values[place], 10, but=[int(ids[place])])
        true = brute_force(np.delete(ids, place), np.delete(values, place, 0), values[place], 10)
        hits += len(set(true) & set(found.tolist()))
        rows = np.searchsorted(ids, found)
        expected = np.sqrt(((values[rows].astype(np.float64) - values[place]) ** 2).sum(axis=1))
        assert distances.tolist() == pytest.approx(expected.tolist(), rel=1e-12)
        assert (np.diff(distances) >= 0).all()
    assert hits >= 0.95 * 250


def test_among_some_of_many_papers_none_is_missed(large):
    index, ids, values = large
    within = ids[::50]
    for place in (0, 7, 1234):
        found, _ = index.nearest(values[place], 10, but=[int(ids[place])], within=within)
        others = within[within != ids[place]]
        assert found.tolist() == brute_force(others, values[np.searchsorted(ids, others)], values[place], 10)
    assert index.nearest(values[0], 10, within=np.array([2]))[0].tolist() == []


def test_where_all_lists_are_read_nothing_is_missed_and_an_index_is_always_the_same(large, tmp_path, monkeypatch):
    index, ids, values = large
    monkeypatch.setattr(search_indexes, "NPROBE", 50)
    for place in (0, 1234, 2499):
        assert index.nearest(values[place], 20)[0].tolist() == brute_force(ids, values, values[place], 20)
    again = tmp_path / "again"
    again.mkdir()
    index_vectors([tmp_path / "0.parquet"], again)
    for name in ("ids", "vectors", "lists.faiss"):
        assert (again / name).read_bytes() == (tmp_path / "index" / name).read_bytes()


def test_vectors_that_are_not_finite_are_left_out_and_counted(tmp_path, capsys):
    values = np.array([[0.0, 0.0], [np.nan, 1.0], [1.0, 1.0], [np.inf, 0.0]], np.float32)
    index = index_of(tmp_path, write(tmp_path / "0.parquet", [1, 2, 3, 4], values))
    assert index.nearest(values[0], 5)[0].tolist() == [1, 3]
    assert index.vector_of(2) is None
    assert "2 papers have vectors that are not finite" in capsys.readouterr().err


def test_the_vector_of_a_paper_is_looked_up_over_all_buckets(tmp_path):
    even = write(tmp_path / "0.parquet", [2, 4], np.array([[2.0], [4.0]]))
    odd = write(tmp_path / "1.parquet", [1, 2**63 - 1], np.array([[1.0], [9.0]]))
    index = index_of(tmp_path, even, odd)
    assert [index.vector_of(paper) for paper in (1, 2, 4, 2**63 - 1)] == [[1.0], [2.0], [4.0], [9.0]]
    assert [index.vector_of(paper) for paper in (0, 3, 5)] == [None] * 3
    (tmp_path / "empty").mkdir()
    empty = index_of(tmp_path / "empty", write(tmp_path / "2.parquet", [], np.empty((0, 2))))
    assert empty.nearest(np.zeros(2, np.float32), 5)[0].tolist() == []
    assert empty.vector_of(1) is None


@pytest.fixture(scope="module")
def titles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("titles")
    results = write_run(folder / "run")
    with open_results(results, {"papers"}) as database:
        index_titles(database, folder)
    return Titles(folder)


def test_titles_are_found_by_all_words_and_the_beginning_of_the_last_the_most_cited_first(titles):
    found = {"bees": [7, 1], "BEES nect": [1], "nectar": [1, 2], "ees": [], "?!": [], "paper": [8, 9, 10]}
    assert {words: [paper.corpusid for paper in titles.with_words(words, 3)] for words in found} == found


def test_papers_are_looked_up_by_ids_of_63_bits_and_may_have_no_title(titles):
    found = titles.papers([6, LARGE, 10**9])
    assert {paper: record.title for paper, record in found.items()} == {6: None, LARGE: 'Loops "OR" compilers'}
    assert found[6].year == 1906


def test_an_index_is_made_once_and_again_where_its_files_changed(tmp_path):
    source, folder, made = tmp_path / "0.parquet", tmp_path / "cache", []

    def make(folder):
        made.append(folder)
        (folder / "content").write_text(source.read_text())

    source.write_text("first")
    first = cached(folder, "model-1", [source], make)
    assert cached(folder, "model-1", [source], make) == first
    other = cached(folder, "model-10", [source], make)
    assert len(made) == 2
    source.write_text("other")
    os.utime(source, (1, 1))
    again = cached(folder, "model-1", [source], make)
    assert (again / "content").read_text() == "other"
    assert sorted(folder.iterdir()) == sorted([folder / ".lock", again, other])


@pytest.mark.parametrize("name", ["content", "sizes.json"])
@pytest.mark.parametrize("spoil", ["cut", "emptied", "longer", "gone"])
def test_an_index_that_is_not_whole_is_made_again(tmp_path, name, spoil):
    def make(folder):
        (folder / "content").write_text("whole")

    made = cached(tmp_path, "model-1", [], make)
    SPOILS[spoil](made / name)
    assert cached(tmp_path, "model-1", [], make) == made
    assert (made / "content").read_text() == "whole"


def test_an_index_is_made_on_a_disk_without_locks_and_one_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    def fail(folder):
        (folder / "half").write_text("")
        raise InputError("The file is broken.")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert cached(tmp_path, "model-1", [], lambda folder: None).is_dir()
    with pytest.raises(InputError, match="broken"):
        cached(tmp_path / "cache", "model-1", [], fail)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [".lock"]


def test_a_cache_within_the_results_is_refused(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "results")
    for cache in ("results", "results/cache", "link/cache", "elsewhere/../results/cache"):
        with pytest.raises(InputError, match="lies within the results"):
            cache_of(tmp_path / "results", tmp_path / cache)
    assert cache_of(tmp_path / "results", tmp_path / "results-cache").parent == tmp_path / "results-cache"
