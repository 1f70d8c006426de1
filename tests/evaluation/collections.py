"""Ten collections in the layouts in which they are released, all about the same generated papers.

A paper is about one of four topics, and shares words with the others of its topic. What is relevant, alike or of one
class is of one topic, so that words find it and chance does not.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.evaluation.folders import write_lines, write_parquet, write_text

TOPICS = ("kernels graphs walks", "proteins folding cells", "stars dust spectra", "courts statutes appeals")
PAPERS = range(1, 61)
"""Ids of the papers; those of a topic lie four apart."""
FILLER = ("we", "study", "new", "methods", "results", "data", "show", "large", "small", "models")


def topic_of(paper: int) -> int:
    return paper % len(TOPICS)


def title_of(paper: int) -> str:
    return f"On {TOPICS[topic_of(paper)].split()[paper % 3]} {paper}"


def sentences_of(paper: int) -> list[str]:
    draw = np.random.default_rng(paper)
    words = [*TOPICS[topic_of(paper)].split(), *FILLER]
    return [f"{' '.join(draw.choice(words, 8))}." for _ in range(3)]


def abstract_of(paper: int) -> str:
    return " ".join(sentences_of(paper))


def alike(paper: int, count: int) -> list[int]:
    """Papers of the same topic."""
    return [other for other in PAPERS if other != paper and topic_of(other) == topic_of(paper)][:count]


def unlike(paper: int, count: int) -> list[int]:
    """Papers of other topics."""
    return [other for other in PAPERS if topic_of(other) != topic_of(paper)][:count]


def judged(paper: int) -> dict[int, int]:
    """Candidates of a paper, and whether each is of its topic."""
    return {**dict.fromkeys(alike(paper, 4), 1), **dict.fromkeys(unlike(paper, 8), 0)}


def scirepeval(root: Path) -> None:
    papers = [{"doc_id": str(n), "title": title_of(n), "abstract": abstract_of(n), "corpus_id": n} for n in PAPERS]
    for config in ("relish", "drsm"):
        write_lines(root / f"metadata/{config}/evaluation.jsonl", papers)
    judgements = [(q, c, grade) for q in PAPERS[:10] for c, grade in judged(q).items()]
    relish = [{"query_id": str(q), "cand_id": str(c), "score": 2 * grade} for q, c, grade in judgements]
    write_lines(root / "test/relish/test.jsonl", relish)
    for split, part in (("train", PAPERS[:48]), ("test", PAPERS[48:])):
        write_lines(root / f"test/drsm/{split}.jsonl", ({"paper_id": str(n), "label": topic_of(n)} for n in part))


def scidocs(root: Path) -> None:
    papers = {f"{n:040x}": {"paper_id": f"{n:040x}", "title": title_of(n), "abstract": abstract_of(n)} for n in PAPERS}
    for name in ("mag_mesh", "view_cite_read", "recomm"):
        write_text(root / f"paper_metadata_{name}.json", json.dumps(papers))
    for split, part in (("train", PAPERS[:48]), ("val", PAPERS[48:50]), ("test", PAPERS[48:])):
        rows = "".join(f"{n:040x},{topic_of(n)}\n" for n in part)
        write_text(root / f"mag/{split}.csv", f"pid,class_label\n{rows}")
    rows = "".join(f"{q:040x} 0 {c:040x} {grade}\n" for q in PAPERS[:10] for c, grade in judged(q).items())
    write_text(root / "cite/test.qrel", rows)
    shown = [(q, alike(q, 1)[0], [*unlike(q, 2), *alike(q, 1)]) for q in PAPERS[:10]]
    rows = "".join(f'{q:040x},{c:040x},"{",".join(f"{n:040x}" for n in listed)}"\n' for q, c, listed in shown)
    for split in ("train", "test"):
        write_text(root / f"recomm/{split}.csv", f"pid,clicked_pid,similar_papers_avail_at_time\n{rows}")
    write_text(root / "recomm/propensity_scores.json", json.dumps({"scores": [0.5, 0.25, 0.1]}))


def mdcr(root: Path) -> None:
    papers = [{"paper_id": n, "title": title_of(n), "abstract": abstract_of(n)} for n in PAPERS]
    write_lines(root / "mdcr_test_data.jsonl", papers)
    fields: dict[str, Any] = {"Art": {}, "Computer Science": {}}
    for place, query in enumerate(PAPERS[:10]):
        kinds = ("bm25", "graph", "most_cited", "random", "scincl", "specter")
        negatives = {kind: unlike(query, 24)[number::6] for number, kind in enumerate(kinds)}
        fields[list(fields)[place % 2]][str(query)] = {**negatives, "true": alike(query, 4)}
    write_text(root / "mdcr_test.json", json.dumps(fields))


def csfcube(root: Path) -> None:
    papers = [{"paper_id": str(n), "title": title_of(n), "abstract": sentences_of(n)} for n in PAPERS]
    write_lines(root / "abstracts-csfcube-preds.jsonl", papers)
    for facet in ("background", "method", "result"):
        lists = {q: ([str(n) for n in judged(q)], [3 * grade for grade in judged(q).values()]) for q in PAPERS[:8]}
        graded = {str(q): {"cands": cands, "relevance_adju": grades} for q, (cands, grades) in lists.items()}
        write_text(root / f"test-pid2anns-csfcube-{facet}.json", json.dumps(graded))


def s2and(root: Path) -> None:
    signatures = {f"s{n}": {"paper_id": n, "author_info": {"block": f"j smith {n // 12}"}} for n in PAPERS}
    authors: dict[str, list[str]] = {}
    for n in PAPERS:
        authors.setdefault(f"j smith {n // 12}: {topic_of(n)}", []).append(f"s{n}")
    tables = {
        "papers": {str(n): {"paper_id": n, "title": title_of(n), "abstract": abstract_of(n)} for n in PAPERS},
        "signatures": signatures,
        "clusters": {author: {"signature_ids": theirs} for author, theirs in authors.items()},
    }
    for table, members in tables.items():
        write_text(root / f"qian/qian_{table}.json", json.dumps(members))


def _beir(root: Path, name: str, queries: Mapping[str, dict[str, str]], relevant: Mapping[str, Sequence[int]]) -> None:
    papers = ({"_id": str(n), "title": title_of(n), "text": abstract_of(n), "metadata": {}} for n in PAPERS)
    write_lines(root / name / "corpus.jsonl", papers)
    write_lines(root / name / "queries.jsonl", ({"_id": each, **query} for each, query in queries.items()))
    rows = (f"{query}\t{n}\t1\n" for query, found in relevant.items() for n in found)
    write_text(root / name / "qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + "".join(rows))


def _all_of(topic: int) -> list[int]:
    return [n for n in PAPERS if topic_of(n) == topic]


def scifact(root: Path) -> None:
    """Claims: short queries."""
    queries = {f"claim-{topic}": {"text": f"{words} are linked"} for topic, words in enumerate(TOPICS)}
    _beir(root, "scifact", queries, {f"claim-{topic}": _all_of(topic) for topic in range(len(TOPICS))})


def arguana(root: Path) -> None:
    """Queries that are documents of the corpus themselves."""
    queries = {str(n): {"title": title_of(n), "text": abstract_of(n)} for n in PAPERS[:8]}
    _beir(root, "arguana", queries, {str(n): alike(n, 20) for n in PAPERS[:8]})


def library(root: Path) -> None:
    """A dataset of one's own, of any name."""
    queries = {f"q{topic}": {"text": f"what is known about {words}"} for topic, words in enumerate(TOPICS)}
    _beir(root, "library", queries, {f"q{topic}": _all_of(topic) for topic in range(len(TOPICS))})


def litsearch(root: Path) -> None:
    papers = [{"corpusid": n, "title": title_of(n), "abstract": abstract_of(n)} for n in PAPERS]
    papers = [{**paper, "citations": [1], "full_paper": "A long text."} for paper in papers]
    for shard in range(2):
        write_parquet(root / f"corpus_clean/full-{shard:05}-of-00002.parquet", papers[shard::2])
    questions = [
        {"query_set": "manual_acl", "query": f"Which papers look at {words}?", "specificity": specificity, "quality": 2}
        | {"corpusids": _all_of(topic)[: 2 + 3 * (1 - specificity)]}
        for topic, words in enumerate(TOPICS)
        for specificity in (0, 1)
    ]
    write_parquet(root / "query/full-00000-of-00001.parquet", questions)


def doris_mae(root: Path) -> None:
    pools = {topic: [*_all_of(topic)[:10], *unlike(topic, 10)] for topic in range(len(TOPICS))}
    queries = [
        {"query_text": f"I look for {words}. They have to be new.", "query_type": "NLP", "candidate_pool": pools[topic]}
        | {"aspects": {f"{topic}": [f"{topic}-a"]}, "sent2aspect_id": {}, "aspect_id2sent": {}}
        for topic, words in enumerate(TOPICS)
    ]
    annotations = [
        {"aspect_id": aspect, "abstract_id": n, "score": 2 if topic_of(n) == topic else 0}
        for topic, pool in pools.items()
        for aspect in (f"{topic}", f"{topic}-a")
        for n in pool
    ]
    corpus = [{"abstract_id": n, "title": title_of(n), "original_abstract": abstract_of(n), "url": ""} for n in PAPERS]
    names = {"aspect2aspect_id": {}, "aspect_id2aspect": {}}
    released = {**names, "Query": queries, "Corpus": corpus, "Annotation": annotations}
    write_text(root / "DORIS-MAE_dataset_v1.json", json.dumps(released))


LAYOUTS: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "scirepeval": ("scirepeval", scirepeval),
    "scidocs": ("scidocs", scidocs),
    "mdcr": ("mdcr", mdcr),
    "csfcube": ("csfcube", csfcube),
    "s2and": ("s2and", s2and),
    "scifact": ("beir", scifact),
    "arguana": ("beir", arguana),
    "library": ("beir", library),
    "litsearch": ("litsearch", litsearch),
    "doris-mae": ("doris_mae", doris_mae),
}
"""The kind of each collection, and what writes it into a folder."""


def write_collections(folder: Path) -> dict[str, dict[str, Any]]:
    """Write all ten, each into a folder of its name; return their entries in a configuration."""
    for name, (_, write) in LAYOUTS.items():
        write(folder / name)
    return {name: {"kind": kind, "folder": str(folder / name)} for name, (kind, _) in LAYOUTS.items()}
