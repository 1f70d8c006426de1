"""An oracle in the configuration: what it must be called, and what it must not touch."""

import pytest
from tests.configurations import refusals, refused

from cocite.config.configuration import resolve

ORACLE = {"sampler": "oracle", "benchmark": "scirepeval", "group": "oracle"}


@pytest.fixture
def with_oracle(written):
    written["triplets"]["oracle"] = dict(ORACLE)
    written["models"]["oracle"] = {"triplets": "oracle", "encoder": "small"}
    return written


def test_an_oracle_is_asked_for_by_name(with_oracle):
    assert resolve(with_oracle)["triplets"]["oracle"]["per_query"] == 5


def test_the_default_configuration_has_none(written):
    assert "oracle" not in {entry["sampler"] for entry in resolve(written)["triplets"].values()}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *refusals("""
        triplets.oracle.benchmark: nothing | triplets.oracle.benchmark names 'nothing', which benchmarks
        triplets.oracle.tasks: [pub_year] | tasks names 'pub_year'; tasks of scirepeval with answers are fos,
        triplets.oracle.group: aspects | triplets.aspects.group (aspects) is that of an oracle
        models.best: {triplets: oracle, encoder: small} | models.best learns from the answers of a benchmark; call it
            best-oracle
        models.next: {triplets: specter, from: oracle} | models.next learns from the answers of a benchmark; call it
            next-oracle
        triplets.part: {sampler: subset, of: oracle, share: 0.5, group: oracle} | triplets.part learns from the answers
            of a benchmark; call it part-oracle
        """),
        (
            "triplets.bound",
            ORACLE,
            "triplets.bound learns from the answers of a benchmark; call it bound-oracle, or anything",
        ),
    ],
)
def test_what_would_hide_an_oracle_is_refused(with_oracle, path, value, message):
    assert message in refused(with_oracle, path, value)


def test_a_benchmark_without_answers_has_no_oracle(with_oracle, tmp_path):
    with_oracle["benchmarks"]["authors"] = {"kind": "s2and", "folder": str(tmp_path)}
    message = "triplets.oracle.benchmark: authors has no task with classes or judgements, and so no answers"
    assert message in refused(with_oracle, "triplets.oracle.benchmark", "authors")
