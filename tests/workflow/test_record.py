"""A changed table or parameter is a decision: the rule gets another version, and the record says so."""

import json
import re
from pathlib import Path

import pytest
from tests.workflow.record import read_record, record_of, versions

AGAIN = "Then record it with `.venv/bin/python -m tests.workflow.record` (docs/developing.md)."


@pytest.mark.end_to_end
def test_a_finished_run_made_what_is_recorded(finished):
    before = read_record()
    made = record_of(finished.folder)  # and by tests that had more made there
    now = {key: made.get(key, "missing") for key in before}
    # The rule and its version come before the digest of the rows.
    changed = [key for key in before if key[0] == "table" and now[key] != before[key]]
    unraised = [name for _, name in changed if now["table", name].split()[:2] == before["table", name].split()[:2]]
    assert not unraised, f"{', '.join(unraised)} changed, but no `version=` of their rules. Raise it. {AGAIN}"
    assert now == before, f"Parameters of jobs, tables or versions differ from tests/workflow/record.txt. {AGAIN}"


@pytest.mark.end_to_end
def test_a_job_has_at_most_two_bare_numbers_for_parameters(finished):
    """Snakemake compares the values of all parameters as one set: of three numbers one can take another's value."""
    files = filter(Path.is_file, (finished.folder / ".snakemake/metadata").rglob("*"))
    jobs = [json.loads(file.read_text()) for file in files]
    numbers = [(job["rule"], [each for each in job["params"] if re.fullmatch(r"[0-9.]+", each)]) for job in jobs]
    assert ("ingest", [str(versions()["ingest"])]) in numbers
    assert not [(rule, found) for rule, found in numbers if len(found) > 2]


def test_every_rule_has_a_version_that_never_goes_down():
    recorded = {name: int(rest.split()[0]) for (kind, name), rest in read_record().items() if kind == "rule"}
    assert not [rule for rule, version in versions().items() if version < recorded.get(rule, 1)]
