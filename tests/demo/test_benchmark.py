"""The generated benchmark has SciRepEval's layout, and its labels follow from the release."""

import gzip
import json
import shutil
from collections import Counter, defaultdict
from math import log

import pytest

from cocite.core.errors import InputError
from cocite.demo.benchmark import generate_benchmark
from cocite.demo.release import generate_release

SUPERVISED = ["biomimicry", "drsm", "fos", "cite_count", "pub_year"]
RANKING = ["same_author", "relish", "scidocs_cite", "scidocs_cocite", "search"]


@pytest.fixture(scope="module")
def benchmark(release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark") / "benchmark"
    generate_benchmark(release, folder, seed=3)
    return folder


@pytest.fixture(scope="module")
def papers(papers):
    return {str(row["corpusid"]): row for row in papers}


@pytest.fixture(scope="module")
def cited(citations):
    references = defaultdict(set)
    for row in citations:
        references[str(row["citingcorpusid"])].add(str(row["citedcorpusid"]))
    return references


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def _labels(benchmark, task):
    rows = [row for split in ("train", "test") for row in _lines(benchmark / "test" / task / f"{split}.jsonl")]
    return {row["paper_id"]: row["label"] for row in rows}


def _judged(benchmark, task, split="test"):
    judged = defaultdict(dict)
    for row in _lines(benchmark / "test" / task / f"{split}.jsonl"):
        judged[row["query_id"]][row["cand_id"]] = row["score"]
    return judged


def _documents(benchmark, config):
    rows = _lines(benchmark / "metadata" / config / "evaluation.jsonl")
    queries = {row["doc_id"] for row in rows if "doc_id" in row} | {
        row["query"]["doc_id"] for row in rows if isinstance(row.get("query"), dict)
    }
    return queries | {candidate["doc_id"] for row in rows for candidate in row.get("candidates", [])}


def test_all_five_formats_are_there(benchmark):
    tasks = {*SUPERVISED, *RANKING, "paper_reviewer_matching"}
    assert {path.name for path in (benchmark / "test").iterdir()} == tasks
    texts = tasks - {"scidocs_cite", "scidocs_cocite"} | {"scidocs_view_cite_read", "reviewers"}
    assert {path.name for path in (benchmark / "metadata").iterdir()} == texts


@pytest.mark.parametrize("task", SUPERVISED)
def test_supervised_tasks_split_their_papers_two_to_one(benchmark, task):
    train, test = (_lines(benchmark / "test" / task / f"{split}.jsonl") for split in ("train", "test"))
    assert abs(len(train) - 2 * len(test)) <= 1
    assert len(train) <= 300
    assert not {row["paper_id"] for row in train} & {row["paper_id"] for row in test}
    assert {row["paper_id"] for row in train + test} == _documents(benchmark, task)


def test_labels_are_what_the_records_say(benchmark, papers):
    fields = {paper: [field["category"] for field in row["s2fieldsofstudy"] or []] for paper, row in papers.items()}
    names = sorted({name for known in fields.values() for name in known})
    for paper, label in _labels(benchmark, "biomimicry").items():
        assert label == (fields[paper][0] in ("Biology", "Medicine"))
    for paper, label in _labels(benchmark, "fos").items():
        assert {name for name, has in zip(names, label, strict=True) if has} == set(fields[paper])
    for paper, label in _labels(benchmark, "pub_year").items():
        assert label == papers[paper]["year"]
    for paper, label in _labels(benchmark, "cite_count").items():
        assert label == pytest.approx(log(1 + papers[paper]["citationcount"]))


def test_every_class_has_enough_papers_to_learn_from_and_one_of_drsm_is_a_journal(benchmark, papers):
    for task, classes in (("biomimicry", {0, 1}), ("drsm", set(range(6)))):
        counts = Counter(row["label"] for row in _lines(benchmark / "test" / task / "train.jsonl"))
        assert set(counts) == classes
        assert min(counts.values()) >= 20
    multi = [row["label"] for row in _lines(benchmark / "test" / "fos" / "train.jsonl")]
    assert min(map(sum, zip(*multi, strict=True))) >= 20
    assert any(sum(label) > 1 for label in multi)
    journals = defaultdict(set)
    for paper, label in _labels(benchmark, "drsm").items():
        journals[label].add(papers[paper]["venue"])
    assert all(len(names) == 1 for names in journals.values())
    assert len(set.union(*journals.values())) == len(journals)


@pytest.mark.parametrize("task", RANKING)
def test_forty_queries_have_five_relevant_candidates_and_25_others(benchmark, task):
    judged = _judged(benchmark, task)
    assert len(judged) == 40
    assert {(len(scores), sum(score > 0 for score in scores.values())) for scores in judged.values()} == {(30, 5)}
    assert all(query not in scores for query, scores in judged.items())
    assert all(list(scores) == sorted(scores, key=int) for scores in judged.values())  # the order reveals no score
    texts = "scidocs_view_cite_read" if task.startswith("scidocs") else task
    assert {*judged, *(candidate for scores in judged.values() for candidate in scores)} <= _documents(benchmark, texts)


def test_same_author_means_a_common_author(benchmark, papers):
    authors = {paper: {author["authorId"] for author in row["authors"]} for paper, row in papers.items()}
    for query, scores in _judged(benchmark, "same_author").items():
        assert all(bool(authors[query] & authors[paper]) == bool(score) for paper, score in scores.items())


def test_cited_and_cocited_papers_are_relevant_and_no_others(benchmark, cited):
    for query, scores in _judged(benchmark, "scidocs_cite").items():
        assert {paper for paper, score in scores.items() if score} == cited[query] & set(scores)
    for query, scores in _judged(benchmark, "scidocs_cocite").items():
        counts = {paper: sum({query, paper} <= references for references in cited.values()) for paper in scores}
        assert all((counts[paper] >= 2) == bool(score) for paper, score in scores.items())


def test_search_asks_with_the_title_of_a_paper_that_cites_the_best_answers(benchmark, papers, cited):
    judged = _judged(benchmark, "search")
    for row in _lines(benchmark / "metadata" / "search" / "evaluation.jsonl"):
        best = {paper for paper, score in judged[row["doc_id"]].items() if score == 2}
        assert any(best <= cited[paper] for paper in papers if papers[paper]["title"] == row["query"])
        assert {candidate["doc_id"] for candidate in row["candidates"]} == set(judged[row["doc_id"]])


def test_reviewers_are_judged_by_venue_and_by_field(benchmark, papers):
    rows = _lines(benchmark / "metadata" / "reviewers" / "metadata.jsonl")
    reviewers = {row["r_id"]: row["papers"] for row in rows}
    assert set().union(*reviewers.values()) <= _documents(benchmark, "paper_reviewer_matching")
    assert all(len(known) >= 3 for known in reviewers.values())
    hard, soft = (_judged(benchmark, "paper_reviewer_matching", split) for split in ("test_hard", "test_soft"))
    assert hard.keys() == soft.keys()
    for query, scores in hard.items():
        assert scores.keys() == soft[query].keys()
        for reviewer, score in scores.items():
            venues = {papers[paper]["venue"] for paper in reviewers[reviewer]} - {""}
            assert score == (papers[query]["venue"] in venues)
            assert soft[query][reviewer] >= score
            assert query not in reviewers[reviewer]
    of_soft, of_hard = (sum(sum(scores.values()) for scores in judged.values()) for judged in (soft, hard))
    assert of_soft > of_hard


def test_all_documents_have_title_and_abstract_and_one_text(benchmark):
    texts = defaultdict(set)
    for path in (benchmark / "metadata").glob("*/evaluation.jsonl"):
        for row in _lines(path):
            query = [row["query"]] if isinstance(row.get("query"), dict) else []
            for document in [*query, *row.get("candidates", []), *([row] if "title" in row else [])]:
                assert document["title"]
                assert document["abstract"]
                texts[document["doc_id"]].add((document["title"], document["abstract"]))
    assert all(len(texts_of_one) == 1 for texts_of_one in texts.values())


def test_what_the_records_of_a_release_do_not_hold_is_not_asked(release, read_rows, tmp_path):
    bare = shutil.copytree(release, tmp_path / "bare")
    unknown = ({"authors": [], "s2fieldsofstudy": None}, {"authors": None, "s2fieldsofstudy": []}, {})
    for shard in (bare / "papers").glob("*.gz"):
        lines = []
        for number, row in enumerate(read_rows(shard)):
            known = {name: value for name, value in row.items() if name not in unknown[0]}
            lines.append(json.dumps(known | unknown[number % 3]) + "\n" * (1 + number % 2))
        shard.write_bytes(gzip.compress("".join(lines).encode()))
    (bare / "papers" / ".part.gz").write_bytes(b"cut off")
    nowhere = {"citingcorpusid": None, "citedcorpusid": None}
    (bare / "citations" / "more.gz").write_bytes(gzip.compress(json.dumps(nowhere).encode()))
    generate_benchmark(bare, tmp_path / "benchmark", seed=3)
    asked = {path.name for path in (tmp_path / "benchmark/test").iterdir()}
    assert asked == {*SUPERVISED, *RANKING} - {"biomimicry", "fos", "same_author"}


def test_the_same_seed_gives_the_same_bytes_and_records_without_ids_are_skipped_as_in_ingest(
    release, benchmark, tmp_path
):
    odd = shutil.copytree(release, tmp_path / "odd")
    for paper in (2**63, 10**43, "x", None, 1.5):
        record = {"corpusid": paper, "title": "A title", "abstract": "An abstract.", "authors": [{"authorId": "x"}]}
        for dataset in ("papers", "abstracts"):
            with gzip.open(odd / dataset / "more.gz", "at") as file:
                file.write(json.dumps(record) + "\n")
        with gzip.open(odd / "citations" / "more.gz", "at") as file:
            file.write(json.dumps({"citingcorpusid": paper, "citedcorpusid": 1}) + "\n")
    generate_benchmark(odd, tmp_path / "benchmark", seed=3)
    for path in benchmark.rglob("*.jsonl"):
        assert (tmp_path / "benchmark" / path.relative_to(benchmark)).read_bytes() == path.read_bytes()


def test_a_folder_without_shards_and_a_release_that_is_too_sparse_for_a_task_are_refused(tmp_path):
    with pytest.raises(InputError, match="contains no shard"):
        generate_benchmark(tmp_path, tmp_path / "benchmark", seed=1)
    generate_release(tmp_path / "sparse", release="2026-01-06", papers=150, topics=64, shards=1, seed=1)
    with pytest.raises(InputError, match="same_author; take more papers"):
        generate_benchmark(tmp_path / "sparse", tmp_path / "benchmark", seed=1)
    assert not (tmp_path / "benchmark").exists()
