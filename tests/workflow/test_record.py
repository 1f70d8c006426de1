"""A changed table or parameter is a decision: the rule gets another version, and the record says so."""

import pytest
from tests.workflow.record import read_record, record_of, versions

AGAIN = "Then record it with `.venv/bin/python -m tests.workflow.record` (docs/developing.md)."


@pytest.mark.end_to_end
def test_a_finished_run_made_what_is_recorded(finished):
    before = read_record()
    made = record_of(finished.folder)  # and by tests that had more made there
    now = {key: made.get(key, "missing") for key in before}
    tables = [key for key in now if key[0] == "table"]
    same_version = [name for kind, name in tables if _differ(now[kind, name].split(), before[kind, name].split())]
    assert not same_version, (
        f"{', '.join(same_version)} changed and the versions of their rules did not. Raise `version=` in them. {AGAIN}"
    )
    assert now == before, f"Parameters of jobs, tables or versions differ from tests/workflow/record.txt. {AGAIN}"


def test_every_rule_has_a_version_that_never_goes_down():
    recorded = {name: int(rest.split()[0]) for (kind, name), rest in read_record().items() if kind == "rule"}
    assert not [rule for rule, version in versions().items() if version < recorded.get(rule, 1)]


def _differ(now, before):
    """Whether a table of the same rule in the same version has other rows."""
    return now[:2] == before[:2] and now[2:] != before[2:]
