"""The declarations of tasks: names that are known everywhere, and entries of the configuration."""

from pathlib import Path

import pytest
from tests.workflow.conftest import SMALL

from cocite.config.benchmarks import BENCHMARKS, TASKS, declared, names
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import SciDocs, SciRepEval
from cocite.config.configuration import configure
from cocite.config.runs import scored_runs
from cocite.core.errors import InputError

DOCUMENTATION = Path(__file__).parents[2] / "docs/benchmarks.md"


def test_no_two_tasks_share_a_name_and_the_documentation_lists_every_one():
    for tasks in BENCHMARKS.values():
        assert all(TASKS[task.name] is task for task in tasks)
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert [name for name in TASKS if f"`{name}`" not in text] == []


def test_an_entry_has_the_tasks_that_it_lists_in_their_declared_order_or_all_of_its_kind():
    listed = SciRepEval(kind="scirepeval", folder=".", tasks=("fos", "drsm")).scored_tasks
    assert [task.name for task in listed] == ["drsm", "fos"]
    assert tuple(SciDocs(kind="scidocs", folder=".").scored_tasks) == SciDocs.declared


def test_rankings_that_two_benchmarks_have_are_one_declaration():
    assert {task.name for task in SciDocs.declared} & {task.name for task in SCIREPEVAL} == {
        f"scidocs_{name}" for name in ("cite", "cocite", "view", "read")
    }


def test_a_name_that_is_not_declared_is_refused_with_those_that_are():
    assert (names(""), names("fos,drsm")) == ([], ["fos", "drsm"])
    with pytest.raises(
        InputError, match="The task: 'chess' is not known; known are background, beir_arguana, beir_nfcorpus"
    ):
        declared("chess")


def test_who_is_scored_on_what():
    benchmarks = {
        "holdout": {"kind": "holdout", "search": True},
        "sre": {"kind": "scirepeval", "folder": str(DOCUMENTATION.parent), "tasks": ["fos", "pub_year", "relish"]},
    }
    config = configure(SMALL | {"models": {}, "benchmarks": benchmarks})
    everywhere = {"untrained_small-0", "random-0"}
    assert {suite: {*runs} for suite, runs in scored_runs(config, "sre").items()} == {
        "fos": everywhere,  # BM25 ranks and does nothing else
        "small": everywhere | {"bm25-0"},  # popularity is known of papers of the corpus alone
    }
    ranked = everywhere | {"bm25-0", "popularity-0"}
    assert {suite: {*runs} for suite, runs in scored_runs(config, "holdout").items()} == {
        "small": ranked, "search": ranked
    }  # fmt: skip


def test_the_small_tasks_of_a_benchmark_are_scored_together_and_each_large_one_alone():
    published = SciRepEval(kind="scirepeval", folder="scirepeval").suites
    assert [task.name for task in published["fos"]] == ["fos"]
    assert list(published) == ["small", "mesh_descriptors", "fos"]
    assert sum(map(len, published.values())) == 23
    assert list(SciRepEval(kind="scirepeval", folder="scirepeval", tasks=("fos",)).suites) == ["fos"]
    assert list(SciRepEval(kind="scirepeval", folder="demo").suites) == ["small"]  # none is large if it is generated
