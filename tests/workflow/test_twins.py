"""Twins are looked for if they are asked for, in the papers of all buckets, and no other run has the rule."""

from tests.workflow.conftest import planned

TWINS = "results/corpus/twins.parquet"


def test_twins_are_a_target_that_reads_all_papers(run):
    jobs = planned(run, None, TWINS)
    assert jobs.one("find_twins").outputs[0] == TWINS
    (command,) = jobs.commands("corpus find-twins")
    assert command.startswith("cocite corpus find-twins results/corpus/papers --memory-mb 4000")
    assert {"merge_papers", "find_twins"} <= jobs.rules()
    assert "merge_citations" not in jobs.rules()


def test_a_run_to_the_report_does_not_look_for_them(plan):
    assert "find_twins" not in plan.rules()
