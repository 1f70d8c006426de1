"""Documents are ranked for each query of a set by words or by vectors, as a brute force would rank them."""

import json
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS
from tests.neighbours.small import read_counts
from tests.rows import write_rows
from tests.triplets import blocks
from tests.triplets.blocks import write_examples, write_queries, write_triplets, write_vectors

from cocite.config.mining import SearchedDocuments
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.neighbours import mining, nearest, word_ranking
from cocite.neighbours import vectors as vectors_module
from cocite.neighbours.mining import mine

BY_ENCODER = {"kind": "encoder", "name": "any"}
TITLES = ["graph theory", "deep graph networks", "citation networks", "a theory of citation", "deep deep learning"]


def write_papers(folder, texts):
    """texts: {id: (title, abstract)}; in two buckets."""
    for bucket in range(2):
        blocks.write_papers(folder, {paper: texts[paper] for paper in sorted(texts)[bucket::2]}, bucket)


def write_paper_vectors(folder, vectors, rows=1000):
    """vectors: {id: vector}; in two files."""
    parts = [{paper: vectors[paper] for paper in sorted(vectors)[bucket::2]} for bucket in range(2)]
    return [
        write_vectors(folder / f"vectors-{bucket}.parquet", part, "paper_embeddings", rows)
        for bucket, part in enumerate(parts)
    ]


def write_texts(folder, texts, vectors):
    """texts: {negative id: (title, abstract, is_query)}."""
    rows = [(text, *texts[text]) for text in sorted(texts)]
    return [
        write_rows(folder / "texts.parquet", "sampled_texts", "text title abstract is_query", rows),
        write_vectors(folder / "text-vectors.parquet", {text: vectors[text] for text in texts}, "text_embeddings"),
    ]


def mined(folder, examples, files, *, by=BY_ENCODER, last=5, kept_out=(), threads=1, memory_mb=1000, **chosen):
    """What is found: {query: [(document, score, likeness), …]} by rank, and {(query, positive): score}."""
    queries = write_queries(folder, dict.fromkeys(kept_out, "holdout") or {10**6: "train"})
    asked = parse_settings(SearchedDocuments, json.dumps({"by": by, "ranks": [1, last], **chosen}))
    limits = {"memory_mb": memory_mb, "threads": threads, "state": folder / "state"}
    written = {name: folder / f"{name}.parquet" for name in ("candidates", "positives", "omissions")}
    mine(examples, files, papers=folder / "papers", queries=queries, settings=asked, **limits, **written)
    rows = read_table(folder / "candidates.parquet", "mined_candidates").to_pylist()
    found = {}
    for row in rows:
        found.setdefault(row["query"], []).append((row["document"], row["score"], row["likeness"]))
        assert row["rank"] == len(found[row["query"]])
    scores = read_table(folder / "positives.parquet", "mined_positives").to_pylist()
    assert sum(read_counts(folder).values()) == last * len({row["query"] for row in scores}) - len(rows)
    return found, {(row["query"], row["positive"]): row["score"] for row in scores}


def score(one, other, metric):
    one, other = (np.array(vector, dtype=np.float64) for vector in (one, other))
    if metric == "l2":
        return float(np.float32(-np.square(one - other).sum()))
    if metric == "inner_product":
        return float(np.float32(one @ other))
    lengths = np.sqrt((one @ one) * (other @ other))
    distance = np.float32(max(0.0, 1 - one @ other / lengths)) if lengths else np.float32(1)
    return float(np.float32(1 - np.float64(distance)))


def by_brute_force(vectors, searched, asked, metric, last):
    """asked: {query: its positives}."""
    found = {}
    for query, positives in asked.items():
        near = [query, *positives]
        left = searched - {*near}
        ranked = sorted((-score(vectors[query], vectors[paper], metric), paper) for paper in left)
        found[query] = [
            (paper, -far, max(score(vectors[paper], vectors[one], "cosine") for one in near))
            for far, paper in ranked[:last]
        ]
    return {query: rows for query, rows in found.items() if rows}


def asked_in(rows):
    asked = {}
    for query, positive, *_ in rows:
        asked.setdefault(query, set()).add(positive)
    return asked


@given(
    drawn=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=6, max_size=50),
    metric=st.sampled_from(["cosine", "l2", "inner_product"]),
    last=st.integers(1, 12),
    relabel=st.sampled_from(RELABELLINGS),
    in_memory=st.booleans(),
    data=st.data(),
)
def test_the_best_documents_are_those_of_a_brute_force(
    tmp_path, monkeypatch, drawn, metric, last, relabel, in_memory, data
):
    block = data.draw(st.integers(1, 9))
    for module in (vectors_module, nearest):
        monkeypatch.setattr(module, "BLOCK", block)
    vectors = {relabel(at): [float(value) for value in vector] for at, vector in enumerate(drawn)}
    papers = sorted(vectors)
    pick = st.sampled_from(papers)
    without_text = data.draw(st.sets(pick, max_size=3))
    kept_out = data.draw(st.sets(pick, max_size=3)) - without_text
    pairs = data.draw(st.sets(st.tuples(pick, pick).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=8))
    write_papers(tmp_path, {paper: ("title", None if paper in without_text else "abstract") for paper in papers})
    searched = set(papers) - without_text - kept_out
    if not searched:
        return
    examples = write_triplets(tmp_path / "set", [(*pair, papers[0]) for pair in pairs])
    files = write_paper_vectors(tmp_path, vectors, rows=data.draw(st.integers(1, 20)))
    chosen = {"by": {**BY_ENCODER, "metric": metric}, "last": last, "kept_out": kept_out}
    found, scores = mined(tmp_path, examples, files, memory_mb=1000 if in_memory else 0, threads=2, **chosen)
    expected = by_brute_force(vectors, searched, asked_in(pairs), metric, last)
    assert {query: [row[:2] for row in rows] for query, rows in found.items()} == {
        query: [row[:2] for row in rows] for query, rows in expected.items()
    }
    for query, rows in expected.items():  # but for the last bit of float32
        assert [row[2] for row in found[query]] == pytest.approx([row[2] for row in rows], abs=1e-6)
    assert scores == {pair: score(vectors[pair[0]], vectors[pair[1]], metric) for pair in pairs}


@pytest.fixture
def crowd(tmp_path):
    """Three hundred papers of which some are nearly the same, the last ten without a text; a set of forty queries."""
    rng = np.random.default_rng(3)
    near = rng.normal(size=(12, 16))
    vectors = {paper: near[paper % 12] + 1e-4 * rng.normal(size=16) for paper in range(300)}
    words_of = {paper: " ".join(rng.choice(TITLES, 2)) for paper in vectors}
    write_papers(tmp_path, {paper: (words_of[paper], "abstract" if paper < 290 else None) for paper in vectors})
    rows = [(query, query + 12 * step, 1) for query in range(40) for step in range(1, 1 + query % 3 + 1)]
    return tmp_path, write_triplets(tmp_path / "set", rows), write_paper_vectors(tmp_path, vectors, rows=37)


@pytest.mark.parametrize("by", [BY_ENCODER, {"kind": "bm25"}])
def test_groups_threads_files_and_memory_change_no_bit(crowd, monkeypatch, by):
    folder, examples, vectors = crowd
    files = vectors if by == BY_ENCODER else []
    whole = mined(folder, examples, files, by=by, threads=2)
    assert len(whole[0]) == 40
    for group, texts in ((7, 50), (3, 37)):
        monkeypatch.setattr(
            mining, "open_search", lambda *_, size=group: (folder / "state").mkdir(exist_ok=True) or size
        )
        monkeypatch.setattr(word_ranking, "TEXTS_AT_ONCE", texts)
        assert mined(folder, examples, files, by=by, threads=1, memory_mb=0) == whole


@pytest.mark.parametrize("by", [BY_ENCODER, {"kind": "bm25"}])
def test_a_search_that_was_killed_goes_on_after_its_last_group(crowd, monkeypatch, by):
    folder, examples, vectors = crowd
    files = vectors if by == BY_ENCODER else []
    whole = mined(folder, examples, files, by=by)
    kind = mining.VectorRanking if by == BY_ENCODER else word_ranking.WordRanking
    rank, ranked = kind.rank, []

    def dying(self, asked, *rest):
        ranked.append(asked.queries[0])
        if len(ranked) == 3:
            raise KeyboardInterrupt
        return rank(self, asked, *rest)

    monkeypatch.setattr(kind, "rank", dying)
    monkeypatch.setattr(kind, "bytes_of_query", lambda *_: 60e6)
    with pytest.raises(KeyboardInterrupt):
        mined(folder, examples, files, by=by)
    done = len(ranked)
    assert mined(folder, examples, files, by=by) == whole
    assert ranked[done] == ranked[done - 1]
    assert not (folder / "state").exists()
    assert not (folder / "state-words").exists()


STOPPED = {"a", "of", "the"}
TEXTS = st.lists(
    st.tuples(st.sampled_from([*TITLES, None]), st.sampled_from([*TITLES, "graph", "the of"])), min_size=4, max_size=25
)


def counted(text):
    return [word for word in " ".join(filter(None, text)).split() if word not in STOPPED]


def bm25(texts, searched):
    """BM25 of Lucene of any text in each of those that are searched; and the weights of the words of any text."""
    lengths = {one: len(counted(text)) for one, text in texts.items()}
    mean = sum(lengths[one] for one in searched) / len(searched) or 1.0

    def weights(one):
        of_text = counted(texts[one])
        found = {}
        for word in set(of_text):
            having = sum(word in counted(texts[each]) for each in searched)
            rarity = log(1 + (len(searched) - having + 0.5) / (having + 0.5))
            count = of_text.count(word)
            found[word] = rarity * count / (count + 1.5 * (0.25 + 0.75 * lengths[one] / mean))
        return found

    return weights


def cosine(one, other):
    lengths = np.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return sum(one[word] * other.get(word, 0) for word in one) / lengths if lengths else 0.0


@given(drawn=TEXTS, last=st.integers(1, 8), data=st.data())
def test_words_are_ranked_by_bm25_as_it_is_defined(tmp_path, monkeypatch, drawn, last, data):
    monkeypatch.setattr(word_ranking, "TEXTS_AT_ONCE", data.draw(st.integers(1, 30)))
    texts = dict(enumerate(drawn))
    searched = {paper for paper, (title, _) in texts.items() if title}
    if not searched:
        return
    pick = st.sampled_from(sorted(texts))
    pairs = data.draw(st.sets(st.tuples(pick, pick).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=5))
    write_papers(tmp_path, texts)
    examples = write_triplets(tmp_path / "set", [(*pair, 0) for pair in pairs])
    found, scores = mined(tmp_path, examples, [], by={"kind": "bm25"}, last=last)
    weights = {one: bm25(texts, searched)(one) for one in texts}

    def match(query, one):
        return sum(weights[one].get(word, 0.0) for word in counted(texts[query]))

    for query, positives in asked_in(pairs).items():
        left = {one for one in searched - {query} - positives if match(query, one) > 0}
        best = sorted((match(query, one) for one in left), reverse=True)[:last]
        rows = found.get(query, [])
        assert {one for one, *_ in rows} <= left
        assert [given_score for _, given_score, _ in rows] == pytest.approx(best, rel=1e-5)
        for one, given_score, likeness in rows:
            assert given_score == pytest.approx(match(query, one), rel=1e-5)
            near = max(cosine(weights[one], weights[each]) for each in [query, *positives])
            assert likeness == pytest.approx(near, abs=1e-5)
    assert scores == pytest.approx({pair: match(*pair) for pair in pairs}, rel=1e-5)


@pytest.mark.parametrize(
    ("collection", "documents_found"), [("papers", [2, 3]), ("texts", [-20, -10]), ("all", [-20, -10, 2, 3])]
)
@pytest.mark.parametrize("by", [BY_ENCODER, {"kind": "bm25"}])
def test_a_collection_is_the_papers_the_texts_that_a_set_brings_or_both(tmp_path, by, collection, documents_found):
    write_papers(tmp_path, {1: ("graph", "one"), 2: ("graph", "two"), 3: ("graph", "three")})
    brought = {-20: ("graph", None, False), -10: (None, "graph", False), -5: ("graph", None, True)}
    vectors = {one: [1.0, one / 100] for one in (1, 2, 3, -20, -10, -5)}
    files = write_texts(tmp_path, brought, vectors)
    of_papers = write_paper_vectors(tmp_path, {paper: vectors[paper] for paper in (1, 2, 3)})
    files = [*files, *of_papers] if by == BY_ENCODER else files[:1]
    positive = -20 if collection == "texts" and by != BY_ENCODER else 1
    examples = write_examples(tmp_path / "set", [(-5, None, [positive], [positive])])
    found, _ = mined(tmp_path, examples, files, by=by, collection=collection)
    assert sorted(one for one, *_ in found[-5]) == [one for one in documents_found if one != positive]


def test_what_cannot_be_mined_is_refused_in_a_sentence(tmp_path):
    vectors = {paper: [1.0, float(paper)] for paper in range(1, 6)}
    write_papers(tmp_path, dict.fromkeys(vectors, ("title", "abstract")))
    files = write_paper_vectors(tmp_path, vectors)
    examples = write_triplets(tmp_path / "set", [(1, 2, 3)])
    stranger = write_triplets(tmp_path / "strange", [(1, 77, 3)])
    wide = write_texts(tmp_path, {-1: ("title", None, False)}, {-1: [1.0, 2.0, 3.0]})
    words = {"by": {"kind": "bm25"}}
    for rows, given_files, chosen, message in (
        (examples, [], {}, "needs vectors"),
        (examples, files, words, "bm25 takes no vectors"),
        (files[0], files, {}, "neither the table triplets nor sampled_examples"),
        (examples, files, {"collection": "texts"}, "the set supplies no documents"),
        (stranger, files, {}, "no vector of 1 papers or texts of the examples, the first of them 77"),
        (stranger, [], words, "No text of 1 papers or texts"),
        (examples, files, {"kept_out": vectors}, "has no paper with text"),
        (examples, [*files, *wide], {}, "vectors of 3 dimensions"),
        (examples, [examples], {}, "is none of the tables"),
    ):
        with pytest.raises(InputError, match=message):
            mined(tmp_path, rows, given_files, **chosen)
    broken = write_paper_vectors(tmp_path, vectors | {4: [np.nan, 1.0]})
    with pytest.raises(InputError, match="the vector of the paper or text 4 is not finite"):
        mined(tmp_path, examples, broken)
