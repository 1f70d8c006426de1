"""An oracle in the configuration: what it must be called, and what it must not touch."""

from tests.configurations import refused

from cocite.config.configuration import resolve


def test_an_oracle_is_asked_for_by_name(with_oracle):
    assert resolve(with_oracle)["triplets"]["oracle"]["per_query"] == 5


def test_the_default_configuration_has_none(written):
    assert "oracle" not in {entry["sampler"] for entry in resolve(written)["triplets"].values()}


def test_a_benchmark_without_answers_has_no_oracle(with_oracle, tmp_path):
    with_oracle["benchmarks"]["authors"] = {"kind": "s2and", "folder": str(tmp_path)}
    message = "triplets.oracle.benchmark: authors has no task with classes or judgements, and so no answers"
    assert message in refused(with_oracle, "triplets.oracle.benchmark", "authors")
