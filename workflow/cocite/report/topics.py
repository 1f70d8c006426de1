"""Topics: clusters of all papers by k-means, named by the words of their titles, and compared with fields of study.

k-means learns from a sample; then vectors and titles are read once, a bucket at a time. Memory is needed for the sample
of vectors, the words of the topics, and the ids of a bucket.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.core.atomic import atomic_path
from cocite.core.options import Output, Papers, Seed, Threads
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import (
    VECTORS_AT_ONCE,
    checked_files,
    count_rows,
    finite_vectors,
    open_table,
    vectors_of,
    write_table,
)
from cocite.core.written_ids import Ids, look_up

SAMPLED = 256
"""Papers of each topic that k-means learns from; FAISS takes no more."""
WORD = r"\b[^\W\d_]{3,}\b"
UNTITLED = "untitled"
"""A word, so that there is one."""


def write_topics(
    vectors: Annotated[Sequence[Path], typer.Argument(help="Buckets of the table paper_embeddings.")],
    *,
    papers: Papers,
    seed: Seed,
    threads: Threads,
    topics: Output,
    scores: Output,
    output: Output,
) -> None:
    """Find topics of all papers, name them, and compare them with the fields of study."""
    files = checked_files(vectors, "paper_embeddings")
    means = _means(files, seed, threads)
    counter = _counter()
    with open_table(papers / files[0].name, "papers") as table:  # a random sample, as ids are dealt to buckets
        counter.fit([*filter(None, table.read(["title"])["title"].to_pylist()), UNTITLED])
    words = np.zeros((means.ntotal, len(counter.vocabulary_)), np.int32)
    sizes, fields = np.zeros(len(words), np.int64), Counter[tuple[int, str]]()
    with atomic_path(output) as folder:
        folder.mkdir()
        for file in files:
            ids, found = _assigned(file, means)
            write_table(folder / file.name, "paper_topics", pa.table({"corpusid": ids, "topic": found}))
            sizes += np.bincount(found, minlength=len(sizes))
            with open_table(papers / file.name, "papers") as table:
                for batch in table.iter_batches(VECTORS_AT_ONCE, columns=["corpusid", "title", "fields"]):
                    places, is_placed = look_up(ids, batch["corpusid"].to_numpy())
                    placed, of_each = batch.filter(pa.array(is_placed)), found[places[is_placed]]
                    counted = counter.transform([title or "" for title in placed["title"].to_pylist()]).tocoo()
                    np.add.at(words, (of_each[counted.row], counted.col), counted.data.astype(np.int32))
                    of_papers = zip(of_each.tolist(), placed["fields"].to_pylist(), strict=True)
                    fields.update((topic, listed[0]) for topic, listed in of_papers if listed)
    names = named_by_words(words, counter.get_feature_names_out())
    largest = {topic: (field, count) for (topic, field), count in reversed(fields.most_common())}
    rows = []
    for topic, size in enumerate(sizes.tolist()):
        field, count = largest.get(topic, (None, None))
        rows.append({"topic": topic, "papers": size, "words": names[topic], "field": field, "in_field": count})
    for path, name, content in ((topics, "topics", rows), (scores, "topic_scores", _agreement(fields, len(sizes)))):
        write_table(path, name, pa.Table.from_pylist(content, schema=empty_schema(TABLES[name])))


def named_by_words(counts: NDArray[Any], words: Sequence[str]) -> list[list[str]]:
    """The words that name each topic, from how often each word is in its titles (topics × words): the highest
    class-based tf-idf (Grootendorst, 2022, "BERTopic", with BM25 weighting and less weight of frequent words), which is
    √n log((A + 1) / (f + 0.5)) for a word n times in the topic, f times in all, and A words in a topic on average."""
    weights = np.log((counts.sum() / max(len(counts), 1) + 1) / (counts.sum(axis=0) + 0.5))
    named = []
    for row in counts:
        values = np.sqrt(row) * weights
        order = np.argsort(-values, kind="stable")[:5]
        named.append([str(words[at]) for at in order if values[at] > 0])
    return named


def names_of(titles: Sequence[str | None], topics: NDArray[np.int64], number: int) -> list[list[str]]:
    """The words that name each of so many topics, by the titles of their papers; a negative number is no topic."""
    counter = _counter()
    counted = counter.fit_transform([*(title or "" for title in titles), UNTITLED])[:-1][topics >= 0].tocoo()
    words = np.zeros((number, len(counter.vocabulary_)), np.int32)
    np.add.at(words, (topics[topics >= 0][counted.row], counted.col), counted.data)
    return named_by_words(words, counter.get_feature_names_out())


def _counter() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(stop_words="english", max_features=20_000, token_pattern=WORD)


def _means(files: Sequence[Path], seed: int, threads: int) -> Any:
    """The means of the topics, as an index of FAISS."""
    import faiss

    faiss.omp_set_num_threads(threads)
    papers = count_rows(files)
    topics = max(1, min(papers, round(papers**0.5 / 5)))  # 200 of a million papers
    drawn, sample = generator(seed, "sample for topics"), []
    for file in files:
        with open_table(file, "paper_embeddings") as table:
            for batch in table.iter_batches(VECTORS_AT_ONCE, columns=["vector"]):
                chosen = vectors_of(pa.table(batch))[drawn.random(len(batch)) < SAMPLED * topics / papers]
                sample.append(chosen[np.isfinite(chosen).all(axis=1)])
    matrix = np.concatenate(sample)
    if len(matrix) < topics:  # hardly a vector is finite
        matrix = np.pad(matrix, ((0, topics - len(matrix)), (0, 0)))
    settings = {"seed": derive_seed(seed, "topics") % 2**31, "min_points_per_centroid": 1}
    means = faiss.Kmeans(matrix.shape[1], topics, niter=20, **settings)
    means.train(matrix)
    return means.index


def _assigned(file: Path, means: Any) -> tuple[Ids, NDArray[np.int32]]:
    """The papers of a bucket that have a finite vector, and the topic of each."""
    ids, found = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for of_block, vectors in finite_vectors([file]):
        ids.append(of_block)
        found.append(means.search(vectors, 1)[1][:, 0].astype(np.int32))
    return np.concatenate(ids), np.concatenate(found)


def _agreement(fields: Counter[tuple[int, str]], topics: int) -> list[dict[str, Any]]:
    """How the topics agree with the first field of each paper that has one."""
    from scipy.stats import entropy
    from sklearn.metrics import mutual_info_score

    names = {field: at for at, field in enumerate(sorted({field for _, field in fields}))}
    table = np.zeros((topics, max(len(names), 1)))
    for (topic, field), count in fields.items():
        table[topic, names[field]] = count
    shared = mutual_info_score(None, None, contingency=table) if names else 0.0
    spreads = (float(entropy(table.sum(axis=axis))) for axis in (0, 1))
    homogeneity, completeness = (shared / spread if spread > 0 else 1.0 for spread in spreads)
    together = 2 * homogeneity * completeness / (homogeneity + completeness) if homogeneity + completeness else 0.0
    values = {"homogeneity": homogeneity, "completeness": completeness, "v_measure": together}
    measured = values if names else dict.fromkeys(values)
    return [{"label": "field", "papers": int(table.sum()), "classes": len(names), "topics": topics, **measured}]
