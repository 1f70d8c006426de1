"""The rules of evaluation: folders that others put together, and models in any number."""

import copy
import json
import os
import re

from tests.workflow.conftest import SMALL

from cocite.tables.files import read_json


def test_a_benchmark_without_a_list_of_tasks_is_prepared_as_it_lies_and_again_when_a_file_changes(run):
    for dataset in ("qian", "zbmath"):
        folder = run.folder / "authors" / dataset
        folder.mkdir(parents=True)
        signatures = {f"s{n}": {"paper_id": n, "author_info": {"block": f"j smith {n}"}} for n in range(4)}
        tables = {
            "papers": {str(n): {"title": f"{dataset} {n}"} for n in range(4)},
            "signatures": signatures,
            "clusters": {"a": {"signature_ids": list(signatures)}},
        }
        for table, members in tables.items():
            (folder / f"{dataset}_{table}.json").write_text(json.dumps(members))
    config = run.configure(SMALL | {"benchmarks": {"authors": {"kind": "s2and", "folder": "authors"}}})
    prepared = "results/evaluation/authors/signatures.parquet"
    result = run.snakemake("--show-failed-logs", prepared, config=config)
    assert result.returncode == 0, result.stdout + result.stderr
    sizes = read_json(run.folder / "results/evaluation/authors/sizes.json")
    assert sizes["tasks"] == {"s2and_qian": 4, "s2and_zbmath": 4}
    assert "Nothing to be done" in run.snakemake("-n", prepared, config=config).stdout
    clusters = {"a": {"signature_ids": ["s0"]}, "b": {"signature_ids": ["s1", "s2", "s3"]}}
    (run.folder / "authors/qian/qian_clusters.json").write_text(json.dumps(clusters))
    assert "rule prepare_folder:" in run.snakemake("-n", prepared, config=config).stdout


def test_of_litsearch_only_the_files_that_are_read_are_inputs_and_full_texts_take_no_memory(run):
    for name, size in (("query", 1), ("corpus_clean", 200_000_000), ("corpus_s2orc", 900_000_000)):
        file = run.folder / f"litsearch/{name}/full-00000-of-00001.parquet"
        file.parent.mkdir(parents=True)
        file.touch()
        os.truncate(file, size)
    config = run.configure(SMALL | {"benchmarks": {"questions": {"kind": "litsearch", "folder": "litsearch"}}})
    planned = run.snakemake("-n", "results/evaluation/questions/sizes.json", config=config).stdout
    assert "litsearch/query/full-00000" in planned
    assert "corpus_s2orc" not in planned
    assert int(re.search(r"resources: .*mem_mb=(\d+)", planned.partition("rule prepare_folder:")[2])[1]) == 1101


def test_no_command_grows_with_the_tables_of_all_models(run):
    # A shell takes no more than 128 KiB as a command, which the names of two thousand tables fill.
    config = copy.deepcopy(SMALL)
    config["models"]["cocite"]["seeds"] = list(range(1, 101))
    planned = run.snakemake("-n", "-p", "all", config=run.configure(config)).stdout
    commands = re.findall(r"^ +cocite evaluation (?:average|compare) .*$", planned, re.MULTILINE)
    assert len(commands) == 4
    assert max(len(command) for command in commands) < 3000
