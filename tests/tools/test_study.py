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
    for model, seed, found in (("bm25", 0, 20.0), ("random", 0, 0.0), ("found", 1, 30.0), ("found", 2, 32.0)):
        scores = [("cite_search", "recall_cap_20", found), ("cite_search", "mrr", 99.0)]
        scores = [(model, seed, *score) for score in (*scores, ("cocite_search", "recall_cap_20", found + 5))]
        write(tmp_path, "scores", f"scores/search/{model}-{seed}", "model seed task metric value", scores)
        recalls = [(model, seed, "0", 10.0 * seed), (model, seed, "4-10", 40.0)]
        write(tmp_path, "scores_by_citations", f"by_citations/{model}-{seed}", "model seed citations recall", recalls)
    compared = [("bm25", "found", -11.0, -12.5, -9.5), ("bm25", "random", 20.0, 18.0, 22.0)]
    compared += [("found", "random", 31.0, 29.0, 33.0)]
    write(tmp_path, "comparisons", "comparisons", "model other difference wide_low wide_high", compared)
    return tmp_path


def write(project, table, name, columns, rows):
    """The rows of a table of the benchmark `later`, with zeros and empty texts where they say nothing."""
    schema = empty_schema(TABLES[table])
    usual = {field.name: "" if field.type == pa.string() else 0 for field in schema}
    usual |= {"benchmark": "later", "mode": "zero-shot", "task": "cite_search", "metric": "recall_cap_20"}
    whole = [{**usual, **dict(zip(columns.split(), row, strict=True))} for row in rows]
    path = project / f"results/evaluation/later/{name}.parquet"
    write_rows(path, table, [tuple(row[each] for each in schema.names) for row in whole])


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
    replaced = {("hci", "bm25", 0): 20.0, ("hci", "random", 0): 0.0}
    replaced |= {("hci", "found", 1): 30.0, ("hci", "found", 2): 32.0}
    assert known == {**replaced, **dict.fromkeys([("hci", "found", 3), ("hci", "slow", 1), ("other", "bm25", 0)], 1.0)}
