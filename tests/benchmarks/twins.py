"""Finding twins: precision and recall on generated pairs, beside bib-dedupe's; time and memory by the size of a corpus.

bib-dedupe is no dependency: `--rival` names the Python of an environment with it (`pip install bib-dedupe==0.11.0`);
without that only our part is measured. Both read the same papers and run as whole commands. The generated papers
keep the venue of what they are a copy of, which bib-dedupe compares and we do not.

The large corpora have texts as long as those of hci; 50,000 papers of each come twice, with their titles in capital
letters and two thirds of their abstracts.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.benchmarks.made_triplets import documents_table, write_papers
from tests.benchmarks.measuring import Cost, cocite, python, run, say
from tests.made_twins import NEGATIVES, OTHER_TITLE, SAME_TITLE, made_twins, pairs_of, table_of

from cocite.core.tables.files import open_table, read_table, write_table

EACH, MEMORY_MB, THREADS = 300, 2000, 2
COPIED = 20
"""One of so many of the first million papers comes twice."""
AT_FIRST, LETTERS = 1_000_000, "wghijklmnop"
"""Papers whose texts are made, and the letters that words of theirs and of further millions begin with."""


def main(folder: Path, papers: int = 1_000_000, memory_mb: int = MEMORY_MB, rival: str = "") -> None:
    run(python(write_pairs, folder, EACH))
    cost = _find(folder, MEMORY_MB)
    truth = json.loads((folder / "truth.json").read_text())
    _say("Ours", _groups(folder / "twins.parquet"), truth, cost)
    if rival:
        script = Path(__file__).with_name("rivals.py")
        cost = run([rival, script, "find_twins", folder / "papers.json", folder / "rival.json"])
        groups = json.loads((folder / "rival.json").read_text())
        _say("bib-dedupe", {paper: min(group) for group in groups for paper in group}, truth, cost)
    if papers:
        large = folder / "large/corpus"
        run(python(write_corpus, large, papers))
        cost = _find(large, memory_mb)
        found, copies = _groups(large / "twins.parquet"), min(papers, AT_FIRST) // COPIED
        right = sum(found.get(papers + 1 + number) == 1 + COPIED * number for number in range(copies))
        size = sum(path.stat().st_size for path in (large / "papers").iterdir()) / 1e6
        say(
            f"{papers:,} papers and {copies:,} copies ({size:,.0f} MB), given {memory_mb:,} MB: {cost}; "
            f"{right:,} copies found, {len(found) - 2 * right:,} papers wrongly."
        )
        _find_leaks(folder / "large", memory_mb)


def _groups(path: Path) -> dict[int, int]:
    return {row["corpusid"]: row["group"] for row in read_table(path, "twins").to_pylist()}


def _find_leaks(results: Path, memory_mb: int) -> None:
    """Measure the check for leaks if a tenth of the papers is excluded and training reads all others, and the search
    for the documents of a benchmark by text: 100,000 titles of these papers, a tenth of them excluded."""
    run(python(write_training, results))
    paths = {"documents": results / "evaluation/bench/documents.parquet", "by_text": results / "by_text.parquet"}
    limits = {"memory_mb": memory_mb, "threads": THREADS}
    tables = {"results": results, "queries": results / "corpus/queries.parquet", "output": results / "leaks.parquet"}
    cost = run(cocite("corpus", "leaks", **tables, **paths, **limits))
    say(f"leaks: {cost}; {read_table(paths['by_text'], 'leaks_by_text').drop(['examples']).to_pylist()}")
    outputs = {"output": results / "found.parquet", "omissions": results / "left.parquet"}
    papers = {"papers": results / "corpus/papers", "text_only": True}
    cost = run(cocite("corpus", "find-documents", paths["documents"], **papers, **outputs, **limits))
    say(f"find-documents: {cost}; {len(read_table(outputs['output'], 'document_papers')):,} papers found.")


def _find(folder: Path, memory_mb: int) -> Cost:
    paths = {"output": folder / "twins.parquet", "omissions": folder / "omissions.parquet"}
    return run(cocite("corpus", "find-twins", folder / "papers", memory_mb=memory_mb, threads=THREADS, **paths))


def _say(who: str, groups: dict[int, int], truth: dict[str, list[int | str]], cost: Cost) -> None:
    """Say how many of the pairs are right, of all and of each kind."""
    kinds = {int(paper): str(kind) for paper, (_, kind) in truth.items()}
    right, found = pairs_of({int(paper): int(work) for paper, (work, _) in truth.items()}), pairs_of(groups)
    say(f"{who}, {len(truth):,} papers, {len(right):,} pairs: {cost}.")
    say(f"  precision {len(found & right) / len(found):.4f}, recall {len(found & right) / len(right):.4f}")
    for name, among in (("equal titles", SAME_TITLE), ("other titles", OTHER_TITLE)):
        pairs = {pair for pair in right if kinds[pair[0]] in among}
        say(f"  {name}: recall {len(found & pairs) / len(pairs):.4f}")
    for kind in SAME_TITLE | OTHER_TITLE:
        pairs = {pair for pair in right if kinds[pair[0]] == kind}
        say(f"    {kind}: {len(found & pairs) / len(pairs):.3f}")
    wrong = Counter(kinds[one] if kinds[one] == kinds[other] else "others" for one, other in found - right)
    told = [f"{wrong[kind]} {kind}" for kind in (*NEGATIVES, "others") if wrong[kind]]
    say(f"  wrong: {', '.join(told) or 'none'}")


def write_pairs(folder: Path, each: int) -> None:
    """Write the generated papers as the table papers and as JSON, and the work and kind of each."""
    made = made_twins(each)
    write_table(folder / "papers/0.parquet", "papers", table_of(made.papers))
    (folder / "papers.json").write_text(json.dumps(made.papers))
    rows = zip(made.papers, made.works, made.kinds, strict=True)
    (folder / "truth.json").write_text(json.dumps({paper["corpusid"]: (work, kind) for paper, work, kind in rows}))


def write_corpus(folder: Path, papers: int) -> None:
    """Write papers in buckets of at most a million, and copies of some in a last one.

    All but the first million have its texts with another first letter in each word, which is quicker than to make them.
    """
    first = min(papers, AT_FIRST)
    write_papers(folder, first)
    bucket = folder / "papers/0.parquet"
    for number in range(1, papers // first):
        write_table(folder / f"papers/{number}.parquet", "papers", _respelt(bucket, LETTERS[number], number * first))
    write_table(folder / f"papers/{papers // first}.parquet", "papers", _copies(bucket, papers))


def _respelt(path: Path, letter: str, further: int) -> Iterator[pa.RecordBatch]:
    for batch in open_table(path, "papers").iter_batches(50_000):
        columns = {name: batch[name] for name in batch.schema.names}
        texts = {name: pc.replace_substring(batch[name], LETTERS[0], letter) for name in ("title", "abstract")}
        yield pa.record_batch(columns | texts | {"corpusid": pc.add(batch["corpusid"], further)})


def _copies(path: Path, papers: int) -> Iterator[pa.RecordBatch]:
    for batch in open_table(path, "papers").iter_batches(50_000):
        ids = batch["corpusid"].to_numpy()
        rows = batch.filter(pa.array((ids - 1) % COPIED == 0))
        copied = pa.array(papers + 1 + (rows["corpusid"].to_numpy() - 1) // COPIED)
        cut = pa.array([text and text[: len(text) * 2 // 3] for text in rows["abstract"].to_pylist()], pa.string())
        columns = {name: rows[name] for name in rows.schema.names}
        changed = {"corpusid": copied, "title": pc.utf8_upper(rows["title"]), "abstract": cut}
        yield pa.record_batch(columns | changed)


def write_training(results: Path) -> None:
    """Write what training reads of the papers, the tenth of them that is excluded, and a benchmark of others' ids."""
    papers = sorted((results / "corpus/papers").iterdir(), key=lambda path: int(path.stem))
    for path in papers:
        write_table(results / f"triplets/t/documents/{path.name}", "training_documents", _read(path, excluded=False))
    ids = pa.concat_tables(pa.Table.from_batches(_read(path, excluded=True)) for path in papers)["corpusid"]
    queries = pa.table({"corpusid": ids, "split": pa.repeat("excluded", len(ids))})
    write_table(results / "corpus/queries.parquet", "queries", queries)
    first = open_table(papers[0], "papers").read(["corpusid", "title", "abstract"]).slice(0, 100_000)
    names = pc.binary_join_element_wise("d", pc.utf8_lpad(first["corpusid"].cast(pa.string()), 9, "0"), "")
    documents = documents_table(names, pc.utf8_upper(first["title"]), first["abstract"])
    write_table(results / "evaluation/bench/documents.parquet", "documents", documents)


def _read(path: Path, excluded: bool) -> Iterator[pa.RecordBatch]:
    """Papers of a bucket: each tenth, of which none comes twice, or all others."""
    for batch in open_table(path, "papers").iter_batches(50_000, columns=["corpusid", "title", "abstract"]):
        is_tenth = batch["corpusid"].to_numpy() % 10 == 0
        is_copy = np.array([(title or "").isupper() for title in batch["title"].to_pylist()])
        yield batch.filter(pa.array((is_tenth & ~is_copy) == excluded))
