"""The tables of the study: what is kept of its runs, and how the pages show it."""

import polars as pl
import pyarrow as pa
import pytest

from cocite.core.tables import TABLES, empty_schema
from cocite.evaluation.benchmark import write_rows
from cocite.tools import study

SYSTEMS = """\
runs: {hci: study.yaml}
systems:
  nothing is trained: {bm25: BM25, random: random vectors}
  indexes: {found: the index}
first: {found: the index, bm25: BM25}
by citations: {found: the index}
questions: {index: [[found, bm25], [random, bm25]]}
"""
PAGE = """\
Before.

<!-- study: scores later hci -->
| old |

<!-- study: first later hci -->

<!-- study: citations later hci -->

<!-- study: answers index hci -->
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a page and a study of one corpus, whose run has ended."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "docs/study.yaml").write_text(SYSTEMS)
    (tmp_path / "study.yaml").write_text(f"pathvars: {{results: {tmp_path / 'results'}}}\n")
    monkeypatch.setattr(study, "ROOT", tmp_path)
    monkeypatch.setattr(study, "PAGES", ("page.md",))
    monkeypatch.setattr(study, "SCORES", tmp_path / "docs/study.csv")
    monkeypatch.setattr(study, "SYSTEMS", tmp_path / "docs/study.yaml")
    of_all = {"benchmark": "later", "mode": "zero-shot", "evaluation_seed": 0}
    for model, seed, found in (("bm25", 0, 20.0), ("random", 0, 0.0), ("found", 1, 30.0), ("found", 2, 32.0)):
        run = {**of_all, "model": model, "seed": seed}
        scores = [
            {**run, "task": "cite_search", "metric": "recall_cap_20", "value": found},
            {**run, "task": "cite_search", "metric": "mrr", "value": 99.0},
            {**run, "task": "cocite_search", "metric": "recall_cap_20", "value": found + 5},
        ]
        write(tmp_path, "scores", f"scores/search/{model}-{seed}", scores)
        by_class = {"0": 10.0 * seed, "4-10": 40.0}
        recalls = [{**run, "task": "cite_search", "citations": each, "recall": by_class[each]} for each in by_class]
        write(tmp_path, "scores_by_citations", f"by_citations/{model}-{seed}", recalls)
    asked = {**of_all, "task": "cite_search", "metric": "recall_cap_20"}
    compared = [
        {**asked, "model": "bm25", "other": "found", "difference": -11.0, "wide_low": -12.5, "wide_high": -9.5},
        {**asked, "model": "bm25", "other": "random", "difference": 20.0, "wide_low": 18.0, "wide_high": 22.0},
        {**asked, "model": "found", "other": "random", "difference": 31.0, "wide_low": 29.0, "wide_high": 33.0},
    ]
    write(tmp_path, "comparisons", "comparisons", compared)
    return tmp_path


def write(project, table, name, rows):
    """The rows of a table of the benchmark `later`, with zeros and empty texts where they say nothing."""
    schema = empty_schema(TABLES[table])
    empty = {field.name: "" if field.type == pa.string() else 0 for field in schema}
    write_rows(
        project / f"results/evaluation/later/{name}.parquet",
        table,
        [tuple({**empty, **row}[name] for name in schema.names) for row in rows],
    )


def test_scores_differences_and_recall_by_class_become_the_tables_of_a_page(project):
    study.renew(["hci"])
    assert (
        (project / "page.md").read_text()
        == """\
Before.

<!-- study: scores later hci -->
|  | hci, random: MAP | hci, matched: MAP | hci, R@20 |
| --- | --- | --- | --- |
| **nothing is trained** |  |  |  |
| `bm25`: BM25 |  |  | 20.0 / 25.0 |
| `random`: random vectors |  |  | 0.0 / 5.0 |
| **indexes** |  |  |  |
| `found`: the index |  |  | 31.0 ± 1.4 / 36.0 ± 1.4 |

<!-- study: first later hci -->
| cited / co-cited papers among the first 20 | hci |
| --- | --- |
| the index | 31.0 ± 1.4 / 36.0 ± 1.4 |
| BM25 | 20.0 / 25.0 |

<!-- study: citations later hci -->
|  | never cited | cited 1-3 times | cited 4-10 times | cited over 10 times |
| --- | --- | --- | --- | --- |
| the index | 15.0 ± 7.1 / – |  | 40.0 ± 0.0 / – |  |

<!-- study: answers index hci -->
|  | corpus | held out | random: MAP | matched: MAP | R@20 |
| --- | --- | --- | --- | --- | --- |
| `found` − `bm25` | hci | by time |  |  | +11.0 (9.5 to 12.5) / – |
| `random` − `bm25` | hci | by time |  |  | −20.0 (−22.0 to −18.0) / – |
"""
    )


def test_what_a_run_lacks_is_kept_and_what_it_has_is_replaced(project):
    earlier = {"benchmark": "later", "task": "cite_search", "metric": "recall_cap_20", "value": 1.0}
    systems = [("hci", "bm25", 0), ("hci", "slow", 1), ("other", "bm25", 0), ("hci", "found", 3)]
    rows = [{**earlier, "corpus": corpus, "model": model, "seed": seed} for corpus, model, seed in systems]
    pl.DataFrame(rows, schema=study.COLUMNS).write_csv(project / "docs/study.csv")
    study.renew(["hci"])
    kept = study.read_scores().filter(pl.col("other").is_null(), metric="recall_cap_20", task="cite_search")
    known = {(row["corpus"], row["model"], row["seed"]): row["value"] for row in kept.iter_rows(named=True)}
    assert known == {
        ("hci", "bm25", 0): 20.0,
        ("hci", "random", 0): 0.0,
        ("hci", "found", 1): 30.0,
        ("hci", "found", 2): 32.0,
        ("hci", "found", 3): 1.0,
        ("hci", "slow", 1): 1.0,
        ("other", "bm25", 0): 1.0,
    }
