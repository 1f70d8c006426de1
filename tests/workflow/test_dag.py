"""The jobs follow from the configuration: their files, and which there are."""

import re

import pytest
import yaml
from tests.workflow.conftest import ROOT, SMALL, edited, planned

STAGES = ["corpus", "graph", "embeddings", "neighbours", "triplets", "encoder", "baselines", "evaluation", "report"]


def test_each_stage_is_a_target(run):
    result = run.snakemake("--dry-run", "--quiet", "--", *STAGES)
    assert result.returncode == 0, result.stderr


def test_a_stage_brings_things_up_to_there_and_no_further(run):
    result = run.snakemake("--dry-run", "--", "triplets")
    assert "rule materialise_training:" in result.stdout
    assert "rule train_encoder:" not in result.stdout


def test_contexts_are_ingested_where_they_are_asked_for_and_only_then(run):
    without = run.snakemake("--dry-run", "--printshellcmds", "--", "triplets").stdout
    assert "cocite corpus ingest citations" in without
    assert not re.search("ingest_with_contexts|--contexts|corpus/contexts", without)
    graphs = SMALL["graphs"] | {"sentences": {"signal": "sentence-cocitation"}}
    sets = {
        "context2doc": {"sampler": "contexts", "group": "context2doc"},
        "doc2doc": {"sampler": "cocited", "graph": "sentences", "group": "doc2doc"},
    }
    asked = edited(corpus__contexts={"min_words": 3}, graphs=graphs, triplets=SMALL["triplets"] | sets)
    planned_jobs = run.snakemake("--dry-run", "--printshellcmds", "triplets", config=run.configure(asked)).stdout
    assert "rule ingest_with_contexts:" in planned_jobs
    assert "cocite corpus ingest papers" in planned_jobs
    assert len(re.findall(r"cocite corpus ingest citations .*?--contexts \S+", planned_jobs, re.DOTALL)) == 2
    assert len(re.findall(r"cocite corpus ingest citations", planned_jobs)) == 2
    assert '"min_words": 3' in planned_jobs
    assert "output: results/triplets/context2doc/sampled_examples.parquet, results/triplets/context2doc/texts" in (
        planned_jobs
    )
    assert "input: results/corpus/contexts/0.parquet, results/corpus/contexts/1.parquet" in planned_jobs


def test_authors_and_fields_of_documents_are_looked_up_where_an_encoder_reads_them_and_only_then(run):
    without = run.snakemake("--dry-run", "--printshellcmds", "all").stdout
    assert "cocite encoder tokenise" in without
    assert not re.search("rule ingest_with_authors|--authors|document_fields", without)
    encoders = {name: entry | {"text": ["title", "authors"]} for name, entry in SMALL["encoders"].items()}
    asked = edited(corpus__authors=True, encoders=encoders)
    planned_jobs = run.snakemake("--dry-run", "--printshellcmds", "all", config=run.configure(asked)).stdout
    assert len(re.findall(r"cocite corpus ingest papers .*?--authors", planned_jobs, re.DOTALL)) == 2
    assert len(re.findall(r"cocite corpus ingest papers", planned_jobs)) == 2
    described = re.findall(r"rule describe_documents:\n +input: (.*)\n +output: (.*)\n", planned_jobs)
    assert {output for _, output in described} == {
        f"results/evaluation/{benchmark}/document_fields.parquet" for benchmark in SMALL["benchmarks"]
    }
    assert re.search(r"cocite encoder tokenise \S+/documents results/corpus/papers/0.parquet", planned_jobs)


def test_a_typo_is_refused_before_any_job(run):
    config = run.configure(edited(models__cocite__los="triplet"))
    result = run.snakemake("all", config=config)
    assert result.returncode != 0
    assert "key models.cocite.los is not known; did you mean loss?" in result.stdout + result.stderr
    assert not (run.folder / "results").exists()


def test_another_configuration_runs_alone(run):
    config = edited()
    del config["models"]["specter"]
    result = run.snakemake("--dry-run", "all", config=run.configure(config, "alone.yaml"))
    assert "encoder/cocite/" in result.stdout
    assert "encoder/specter/" not in result.stdout


def test_documents_are_embedded_by_the_adapters_that_the_tasks_of_a_benchmark_see(run):
    config = run.configure(edited(models__cocite__trainable={"kind": "adapter", "name": "search"}))
    planned_jobs = run.snakemake("--dry-run", "--printshellcmds", "all", config=config).stdout
    asked = re.findall(r"((?:--adapters=\S*\s+)+)--model results/encoder/(\w+)/", planned_jobs)
    options = {model: words.split() for words, model in asked}
    assert options.pop("cocite") == ["--adapters=", "--adapters=search"]
    assert list(options.values()) == [["--adapters="]] * len(options)


def test_a_model_is_scored_in_its_spaces_by_vectors_that_are_mapped(run):
    aspects = {"sampler": "aspects", "graph": "citation", "group": "aspects"}
    model = {"triplets": "aspects", "encoder": "small", "objectives": [{"loss": "supcon", "space": "aspects"}]}
    models = SMALL["models"] | {"aspects": model | {"spaces": ["result"]}}
    config = run.configure(edited(triplets=SMALL["triplets"] | {"aspects": aspects}, models=models))
    planned_jobs = run.snakemake("--dry-run", "all", config=config).stdout
    folder = "results/encoder/aspects_in_result/seed-1/embeddings"
    mapped = re.findall(r"rule map_embeddings:\n    input: (.*)\n    output: (.*)\n", planned_jobs)
    assert {output for _, output in mapped} == {f"{folder}/{name}.parquet" for name in SMALL["benchmarks"]}
    assert all(inputs.startswith("results/encoder/aspects/seed-1/model, ") for inputs, _ in mapped)
    scored = set(re.findall(r"output: results/evaluation/(\w+)/scores/\w+/aspects_in_result-1.parquet", planned_jobs))
    assert scored == set(SMALL["benchmarks"])
    assert "rule embed_own_documents:\n    input: results/encoder/aspects_in_result" not in planned_jobs


def test_an_encoder_has_the_map_of_a_probe_and_is_scored_with_it(run):
    ready = {"model": "someone/encoder", "revision": "0" * 40, "max_length": 64}
    learned = {"probe": "which", "triplets": "specter", "loss": "mnrl"}
    probe = {"encoder": "ready", "benchmark": "holdout", "triplets": ["specter"], "losses": ["mnrl"]}
    config = edited(
        encoders=SMALL["encoders"] | {"ready": ready, "mapped": ready | {"map": learned}},
        probes={"which": probe},
        benchmarks__holdout__choosing=0.5,
    )
    planned_jobs = run.snakemake("--dry-run", "--printshellcmds", "all", config=run.configure(config)).stdout
    maps = "results/encoder/probe_which/specter/maps.safetensors"
    assert f"rule fetch_encoder_with_map:\n    input: {maps}\n" in planned_jobs
    assert f"cocite encoder fetch {maps} " in planned_jobs
    scored = "results/evaluation/holdout/scores/small/untrained_mapped-0.parquet"
    assert f"output: {scored}" in planned_jobs


def test_a_model_is_scored_with_further_poolings_and_trained_once(run):
    models = {"cocite": SMALL["models"]["cocite"] | {"poolings": ["cls"]}}
    asked = run.configure(edited(models=models))
    planned_jobs = run.snakemake("--dry-run", "evaluation", config=asked).stdout
    assert planned_jobs.count("rule train_encoder:") == 1
    repooled = "results/encoder/cocite_in_cls/seed-1/model"
    assert re.findall(r"rule repool_encoder:\n +input: (.*)\n +output: (.*)\n", planned_jobs) == [
        ("results/encoder/cocite/seed-1/model", repooled)
    ]
    assert f"rule embed_own_documents:\n    input: {repooled}" in planned_jobs
    assert re.search(r"output: results/evaluation/\w+/scores/\w+/cocite_in_cls-1.parquet", planned_jobs)
    spaces = edited(models=models, benchmarks__holdout__spaces=False)
    planned_jobs = run.snakemake("--dry-run", "evaluation", config=run.configure(spaces)).stdout
    assert "results/evaluation/holdout/scores/small/cocite_in_cls-1.parquet" in planned_jobs


def test_a_search_among_the_papers_of_triplets_waits_for_them(run):
    asked = run.configure(edited(**{"embeddings__cocitation-dot__neighbours": {"k": 100, "papers_of": "specter"}}))
    planned_jobs = run.snakemake("--dry-run", "neighbours", config=asked)
    searched = re.findall(r"rule search_neighbours:\n +input: (.*)\n", planned_jobs.stdout)
    assert searched, planned_jobs.stderr
    assert all(
        "results/triplets/specter/triplets.parquet" in inputs for inputs in searched if "cocitation-dot" in inputs
    )


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ({"papers_of": "cocite"}, "the set cocite is sampled from these neighbours"),
        ({"papers_of": "specter", "among": "texts"}, "papers_of takes the place of among: texts"),
        ({"papers_of": "part"}, "the set part is sampled from these neighbours"),
        ({"papers_of": "missing"}, "papers_of names 'missing'"),
    ],
)
def test_papers_of_a_search_that_cannot_be_are_refused(run, neighbours, message):
    sets = SMALL["triplets"] | {"part": {"sampler": "subset", "of": "cocite", "share": 0.5, "group": "part"}}
    asked = run.configure(edited(**{"embeddings__cocitation-dot__neighbours": {"k": 100, **neighbours}}, triplets=sets))
    assert message in run.snakemake("--dry-run", "neighbours", config=asked).stdout


def test_a_model_is_averaged_over_its_seeds_and_scored_like_the_others(run):
    models = {"cocite": SMALL["models"]["cocite"] | {"seeds": [1, 2], "averaged": True}}
    config = run.configure(edited(models=models))
    planned_jobs = run.snakemake("--dry-run", "all", config=config).stdout
    averaged = "results/encoder/cocite_averaged/seed-0/model"
    seeds = [f"results/encoder/cocite/seed-{seed}/model" for seed in (1, 2)]
    assert re.findall(r"rule average_weights:\n    input: (.*)\n    output: (.*)\n", planned_jobs) == [
        (", ".join(seeds), averaged)
    ]
    assert f"rule embed_own_documents:\n    input: {averaged}" in planned_jobs
    scored = set(re.findall(r"output: results/evaluation/(\w+)/scores/\w+/cocite_averaged-0.parquet", planned_jobs))
    assert scored == set(SMALL["benchmarks"])


def test_a_set_of_examples_is_sampled_and_materialised_like_triplets(run):
    aspects = {"sampler": "aspects", "graph": "citation"}
    config = run.configure(edited(triplets=SMALL["triplets"] | {"aspects": aspects}))
    planned_jobs = run.snakemake("--dry-run", "triplets", config=config).stdout
    [inputs, output] = re.findall(r"rule sample_examples:\n    input: (.*)\n    output: ([^,]*)", planned_jobs)[0]
    assert output == "results/triplets/aspects/sampled_examples.parquet"
    assert inputs.split(", ")[0] == "results/graph/citation/edges/0.parquet"
    assert "results/triplets/aspects/triplets.parquet" not in planned_jobs


def test_a_set_that_is_made_of_examples_and_triplets_is_sampled_from_both(run):
    more = {
        "aspects": {"sampler": "aspects", "graph": "citation"},
        "joined": {"sampler": "union", "of": ["cocite", "aspects"]},
        "part": {"sampler": "subset", "of": "joined", "share": 0.5},
    }
    config = run.configure(edited(triplets=SMALL["triplets"] | more))
    planned_jobs = run.snakemake("--dry-run", "triplets", config=config).stdout
    found = dict(
        re.findall(r"rule sample_examples:\n    input: (.*)\n    output: results/triplets/(\w+)/", planned_jobs)
    )
    sources = {name: inputs.split(", results/corpus/")[0] for inputs, name in found.items()}
    assert sources["joined"] == (
        "results/triplets/cocite/triplets.parquet, results/triplets/aspects/sampled_examples.parquet"
    )
    assert sources["part"] == "results/triplets/joined/sampled_examples.parquet"


@pytest.fixture
def given_release(run):
    """A configuration whose release is a folder with one shard of each dataset, and that folder."""
    folder = run.folder / "release [1]"
    for dataset in ("papers", "abstracts", "citations"):
        (folder / dataset).mkdir(parents=True)
        (folder / dataset / f"x_0_{dataset}.gz").write_bytes(b"shard")
    config = edited(corpus={"source": "directory", "path": folder.name, "buckets": 2}, benchmarks={})
    return run.configure(config), folder


def test_a_shard_that_is_added_to_a_folder_is_noticed(run, given_release):
    config, folder = given_release
    assert run.snakemake("results/corpus/manifest.json", config=config).returncode == 0
    assert "Nothing to be done" in run.snakemake("results/corpus/manifest.json", config=config).stderr
    (folder / "papers" / "x_1_papers.gz").write_bytes(b"shard")
    assert "rule list_shards:" in run.snakemake("-n", "results/corpus/manifest.json", config=config).stdout


def test_buckets_that_a_run_with_more_of_them_left_are_removed(run, given_release):
    config, _ = given_release
    papers = run.folder / "results" / "corpus" / "papers"
    papers.mkdir(parents=True)
    for bucket in range(4):
        (papers / f"{bucket}.parquet").touch()
    assert run.snakemake("results/corpus/manifest.json", config=config).returncode == 0
    assert sorted(file.name for file in papers.iterdir()) == ["0.parquet", "1.parquet"]


def test_the_file_of_queries_is_an_input_of_their_choice(run):
    (run.folder / "ids.txt").write_text("1\n")
    config = run.configure(edited(queries={"from": "file", "path": "ids.txt", "holdout": 10}))
    assert re.search(
        r"rule select_queries:\n    input: .*ids\.txt", run.snakemake("-n", "corpus", config=config).stdout
    )


def test_the_files_of_an_encoder_that_is_brought_are_inputs_of_it(run):
    for name in ("bert/config.json", "bert/sub/weights", "bert/.git/objects/pack"):
        (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / name).touch()
    config = run.configure(edited(encoders__small={"model": "./bert"}))
    planned = run.snakemake("-n", "results/encoder/untrained_small/seed-0/model", config=config)
    assert re.search(r"rule fetch_encoder:\n    input: bert/config\.json, bert/sub/weights\n", planned.stdout), (
        planned.stdout + planned.stderr
    )


def test_excluded_lists_and_benchmarks_are_inputs_of_the_choice_of_queries(run):
    (run.folder / "ids.txt").write_text("1\n")
    config = run.configure(edited(exclude=["scirepeval", "ids.txt"]))
    planned = run.snakemake("-n", "all", config=config).stdout
    inputs = re.search(r"rule select_queries:\n    input: (.*)", planned)[1]
    assert {"results/evaluation/scirepeval/documents.parquet", "ids.txt"} <= set(inputs.split(", "))


def test_documents_with_hashes_for_ids_are_looked_for_among_the_papers_before_they_are_kept_out(run):
    for folder in ("scidocs", "paper-ids"):
        (run.folder / folder).mkdir()
    (run.folder / "paper-ids/0.gz").touch()
    config = edited(exclude=["scidocs"], benchmarks={"scidocs": {"kind": "scidocs", "folder": "scidocs"}})
    config["corpus"] |= {"paper_ids": "paper-ids"}
    config["encoders"]["small"]["text"] = ["title", "abstract", "venue"]
    config["baselines"] = {
        "fasttext": {"kind": "fasttext"},
        "sif": {"kind": "sif", "of": "fasttext"},
        "sgc": {"kind": "sgc", "of": "sif", "graph": "citation"},
    }
    planned = run.snakemake("-n", "-p", "all", config=run.configure(config)).stdout
    found = "results/corpus/document_papers/scidocs.parquet"
    inputs = re.search(r"rule find_documents:\n    input: (.*)", planned)[1]
    assert {"results/corpus/papers/0.parquet", "paper-ids/0.gz"} <= set(inputs.split(", "))
    assert "--papers results/corpus/papers" in planned
    assert "--paper-ids paper-ids" in planned
    for command in ("corpus select", "triplets check"):
        assert f"cocite {command} results/evaluation/scidocs/documents.parquet {found} " in planned
    assert f'"document_papers": "{found}"' in planned  # of the baseline sgc
    assert f"--document-papers {found}" in planned  # of the venues of documents


def test_each_config_of_a_benchmark_on_the_hub_is_fetched_by_a_job_of_its_own(run):
    hub = {"kind": "scirepeval", "hub": {"labels": {"revision": "0" * 40}}, "tasks": ["hIndex", "peer_review_score"]}
    jobs = planned(run, edited(benchmarks={"sre": hub}))
    folders = ["metadata/peer_review_score_hIndex", "test/hIndex", "test/peer_review_score"]
    assert sorted(jobs["fetch_benchmark"]) == [f"results/evaluation/sre/hub/{folder}" for folder in folders]
    assert len(jobs["prepare_folder"]) == 1


def test_scores_on_benchmarks_that_others_made_ask_for_no_corpus(run):
    """The configuration that docs/how-to/compare-models.md starts from, and the target that it names."""
    dataset = run.folder / "searches/library"
    (dataset / "qrels").mkdir(parents=True)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (dataset / file).touch()
    page = (ROOT / "docs/how-to/compare-models.md").read_text()
    jobs = planned(run, yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0]), "evaluation")
    scored = {"score_model", "score_baseline", "score_words"}
    compared = {"average_scores", "compare_models", "compare_over_tasks"}
    assert jobs.keys() == {"fetch_encoder", "prepare_beir", "embed_documents", "embed_by_baseline", *scored, *compared}


def test_published_triplets_are_fetched_unless_they_are_in_a_folder(run):
    queries = {"from": "triplets", "revision": "0" * 40, "count": 50, "holdout": 10}
    config = run.configure(edited(queries=queries))
    assert "rule fetch_triplets:" in run.snakemake("-n", "corpus", config=config).stdout
    (run.folder / "triplets").mkdir()
    (run.folder / "triplets" / "train-0.parquet").touch()
    config = run.configure(edited(queries=queries | {"dataset": "triplets"}))
    planned = run.snakemake("-n", "corpus", config=config).stdout
    assert "rule fetch_triplets:" not in planned
    assert re.search(r"rule read_triplets:\n    input: triplets/train-0\.parquet\n", planned)


def test_a_set_of_triplets_is_sampled_from_what_its_entry_names(run):
    (run.folder / "mine.parquet").touch()
    near = {"sampler": "neighbours", "embedding": "cocitation-dot", "k_positive": 10, "k_negative": 80, "easy": 3}
    sets = {
        "near": near,
        "far": near | {"easy_negatives": "k-means"},
        "cited": {"sampler": "citations", "graph": "citation"},
        "cocited": {"sampler": "cocited", "graph": "cocitation"},
        "mine": {"sampler": "file", "path": "mine.parquet"},
        "chance": {"sampler": "random"},
        "both": {"sampler": "union", "of": ["near", "cited"]},
        "part": {"sampler": "subset", "of": "both", "share": 0.5},
    }
    config = run.configure(edited(triplets=SMALL["triplets"] | sets))
    planned = run.snakemake("-n", "triplets", config=config).stdout
    found = re.findall(r"rule sample_triplets:\n    input: (.*)\n    output: results/triplets/([\w-]+)/", planned)
    shared = ["corpus/queries", "corpus/papers/0", "corpus/papers/1"]
    vectors = "embeddings/cocitation-dot/graph_embeddings"
    named = {
        "near": ["neighbours/cocitation-dot/neighbours/0"],
        "far": ["neighbours/cocitation-dot/neighbours/0", vectors],
        "cited": ["graph/citation/edges/0", "graph/citation/edges/1"],
        "cocited": ["graph/cocitation/cocitations/0", "graph/cocitation/cocitations/1"],
        "chance": [],
        "both": ["triplets/near/triplets", "triplets/cited/triplets"],
        "part": ["triplets/both/triplets"],
    }
    sources = {name: inputs.split(", ") for inputs, name in found if name in sets}
    expected = {name: [f"results/{file}.parquet" for file in [*files, *shared]] for name, files in named.items()}
    assert sources.pop("mine")[0] == "mine.parquet"
    assert sources == expected


def test_an_index_is_built_once_for_all_shards_of_the_queries_and_measured(run):
    searched = {"k": 100, "shards": 3, "index": {"kind": "ivf", "nlist": 8, "nprobe": 2}}
    jobs = planned(run, edited(**{"embeddings__cocitation-dot__neighbours": searched}))
    assert [len(jobs[rule]) for rule in ("build_index", "search_neighbours", "measure_search")] == [1, 3, 1]


def test_walks_go_along_the_links_of_a_graph_and_are_sampled_and_measured_like_a_search(run):
    walks = {"steps": {"graph": "citation", "k": 100, "shards": 2, "among": "texts"}}
    walked = SMALL["triplets"]["cocite"] | {"embedding": "steps"}
    config = run.configure(edited(walks=walks, triplets=SMALL["triplets"] | {"walked": walked}))
    shown = run.snakemake("-n", "--", "triplets", "neighbours", config=config).stdout
    links, *more = re.findall(r"rule build_adjacency:\n    input: (.*)\n    output: (.*)\n", shown)
    edges = ", ".join(f"results/graph/citation/edges/{bucket}.parquet" for bucket in range(2))
    assert (links, more) == ((edges, "results/neighbours/steps/adjacency"), [])
    inputs = re.findall(r"rule walk_neighbours:\n    input: (.*)\n    output: \S+/steps/neighbours/(\d)", shown)
    assert sorted(shard for _, shard in inputs) == ["0", "1"]
    assert inputs[0][0].split(", ") == [
        *("results/neighbours/steps/adjacency", "results/corpus/queries.parquet"),
        *(f"results/corpus/papers/{bucket}.parquet" for bucket in range(2)),
    ]
    shards = ", ".join(f"results/neighbours/steps/neighbours/{shard}.parquet" for shard in range(2))
    assert f"rule sample_triplets:\n    input: {shards}, " in shown
    assert re.search(
        rf"rule measure_bands:\n    input: {shards}, .*\n    output: \S+/band_quality/steps.parquet", shown
    )
    assert "embeddings/steps" not in shown


def test_an_exact_search_has_no_index(run):
    jobs = planned(run, edited(**{"embeddings__cocitation-dot__neighbours": {"k": 100, "shards": 3}}))
    assert len(jobs["search_neighbours"]) == 3
    assert not {"build_index", "measure_search"} & set(jobs)


def test_every_run_ends_with_the_check_for_leaks(plan):
    inputs = re.search(r"rule check_leaks:\n    input: (.*)", plan)[1].split(", ")
    for file in ("graph/citation/edges/1.parquet", "neighbours/cocitation-dot/neighbours/0.parquet"):
        assert f"results/{file}" in inputs
    assert "results/triplets/validation_all/documents" in inputs


def test_pathvars_move_results_logs_and_benchmarks(run):
    moved = {"results": "out/r", "logs": "out/l", "benchmarks": "out/b"}
    result = run.snakemake("--dry-run", "--printshellcmds", "all", config=run.configure({**SMALL, "pathvars": moved}))
    assert "out/r/encoder/cocite/seed-1/model" in result.stdout
    assert "--state out/r/.state/encoder/cocite/seed-1" in result.stdout
    assert not re.search(r"(?<!out/r)(?<!/)\bresults/\w", result.stdout)


@pytest.mark.long
def test_the_published_setting_has_at_most_1200_jobs(run, monkeypatch):
    (run.folder / "scibert").mkdir()
    (run.folder / "scibert/config.json").write_text("{}")
    monkeypatch.setenv("COCITE_SCIBERT", str(run.folder / "scibert"))
    planned = run.snakemake("--dry-run", "all", config=ROOT / "experiments/cocite.yaml")
    assert planned.returncode == 0, planned.stderr[-2000:]
    assert int(re.search(r"^total +(\d+)$", planned.stdout, re.MULTILINE)[1]) <= 1200


@pytest.mark.parametrize(("visible", "asked"), [("0,1", 1), ("", 0)])
def test_without_a_cluster_trainings_and_embeddings_ask_for_the_gpus_of_the_machine(run, monkeypatch, visible, asked):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    plan = run.snakemake("--dry-run", "all", config=run.configure(edited(gpu=True))).stdout
    for rule in ("train_encoder", "embed_own_documents"):
        assert re.search(rf"^rule {rule}:\n(?:    .*\n)*?    resources: .*\bgpu={asked}\b", plan, re.MULTILINE), rule
    assert not re.search(r"^rule score_model:\n(?:    .*\n)*?    resources: .*\bgpu=", plan, re.MULTILINE)


def test_a_model_learns_from_several_sets_and_another_goes_on_from_it(run):
    triplets = SMALL["triplets"] | {"crops": {"sampler": "cropping", "group": "crops"}}
    first = next(iter(SMALL["triplets"]))
    objectives = [{"triplets": name, "loss": "mnrl"} for name in (first, "crops")]
    both = {"encoder": "small", "objectives": objectives, "seeds": [1, 2]}
    models = SMALL["models"] | {
        "both": both,
        "then": {"from": "both", "triplets": "crops", "loss": "mnrl", "seeds": [2]},
    }
    config = run.configure(edited(triplets=triplets, models=models))
    result = run.snakemake("--dry-run", "--printshellcmds", "all", config=config)
    assert result.returncode == 0, result.stdout + result.stderr
    commands = re.findall(r"cocite encoder train (.*?) +--encoder (\S+).*?--output (\S+)", result.stdout, re.DOTALL)
    trainings = {output: (start, sets.split()) for sets, start, output in commands}
    tokens = "results/encoder/untrained_small/seed-0/tokens"
    group = SMALL["triplets"][first].get("group", "all")
    named = [
        path
        for each in (first, f"validation_{group}", "crops", "validation_crops")
        for path in (f"results/triplets/{each}/examples.parquet", f"{tokens}/{each}")
    ]
    untrained = "results/encoder/untrained_small/seed-0/model"
    assert trainings["results/encoder/both/seed-1/model"] == (untrained, named)
    assert trainings["results/encoder/then/seed-2/model"] == ("results/encoder/both/seed-2/model", named[4:])


def test_a_round_of_mining_waits_for_the_model_that_mines_and_precedes_the_one_that_learns_from_it(run):
    mined = {"sampler": "mined", "of": "cocite", "by": {"kind": "model", "name": "cocite"}, "group": "mined"}
    words = {"sampler": "mined", "of": "specter", "by": "bm25", "unlinked_in": ["citation"], "group": "words"}
    second = SMALL["models"]["cocite"] | {"triplets": "mined"}
    config = edited(triplets=SMALL["triplets"] | {"mined": mined, "words": words}, models__second=second)
    jobs = planned(run, config)
    assert {output for outputs in jobs["mine_candidates"] for output in outputs.split(", ")} >= {
        f"results/neighbours/mined_{name}/{table}.parquet"
        for name in ("mined", "words")
        for table in ("candidates", "positives")
    }
    folder = "results/encoder/cocite/seed-1/papers"
    assert {f"{folder}/{bucket}.parquet" for bucket in range(2)} <= {
        o for out in jobs["embed_papers"] for o in out.split(", ")
    }
    assert "results/encoder/second/seed-1/model" in " ".join(jobs["train_encoder"])


def test_a_training_of_a_baseline_asks_for_the_cores_that_it_uses(run):
    named = {
        "fasttext": {"kind": "fasttext"},
        "sif": {"kind": "sif", "of": "fasttext"},
        "doc2vec": {"kind": "doc2vec"},
        "citeomatic": {"kind": "citeomatic", "triplets": "specter"},
    }
    plan = run.snakemake("--dry-run", "baselines", config=run.configure(edited(baselines=named))).stdout
    jobs = re.findall(r"^rule train_baseline:\n((?:    .*\n)*)", plan, re.MULTILINE)
    cores = {}
    for job in jobs:  # Snakemake does not print the number where it is one
        threads = re.search(r"^    threads: (\d+)", job, re.MULTILINE)
        cores[re.search(r"baseline=(\w+)", job)[1]] = int(threads[1]) if threads else 1
    assert cores == {"fasttext": 1, "sif": 1, "doc2vec": 1, "citeomatic": 2}  # gensim with one worker repeats itself


@pytest.mark.parametrize(("precision", "scored"), [("auto", "float32"), ("bfloat16", "bfloat16")])
def test_documents_are_scored_in_float32_unless_a_precision_is_named(run, precision, scored):
    planned_jobs = run.snakemake(
        "--dry-run", "--printshellcmds", "all", config=run.configure(edited(precision=precision))
    ).stdout
    commands = re.findall(r"cocite encoder (train|embed) .*?--precision (\w+)", planned_jobs, re.DOTALL)
    assert set(commands) == {("train", precision), ("embed", scored)}


def test_baselines_are_on_maps_by_their_vectors(run):
    """Whatever the page about the configuration says can be on one."""
    baselines = {
        "random": {"kind": "random"},
        "fasttext": {"kind": "fasttext", "seeds": [3]},
        "sif": {"kind": "sif", "of": "fasttext"},
        "sgc": {"kind": "sgc", "of": "sif", "graph": "citation", "grid": {"hops": [1, 3]}},
    }
    named = [*baselines, "cocite", "untrained_small"]
    config = edited(baselines=baselines, maps={"one": {"benchmark": "holdout", "models": named}})
    points = "results/report/maps/one/points/sgc-3.parquet"
    result = run.snakemake("--dry-run", "all", points, config=run.configure(config))
    assert result.returncode == 0, result.stdout + result.stderr
    inputs = re.findall(r"rule lay_out_map:\n    input: .*?, (results/\S+/holdout.parquet)\n", result.stdout)
    assert sorted(inputs) == [
        "results/baselines/fasttext/seed-3/embeddings/holdout.parquet",
        "results/baselines/random/seed-0/embeddings/holdout.parquet",
        "results/baselines/sgc/seed-3/embeddings/holdout.parquet",
        "results/baselines/sif/seed-3/embeddings/holdout.parquet",
        "results/encoder/cocite/seed-1/embeddings/holdout.parquet",
        "results/encoder/untrained_small/seed-0/embeddings/holdout.parquet",
    ]


@pytest.mark.parametrize("text", [None, ["title", "abstract", "venue"]])
def test_the_report_reads_further_fields_of_documents_where_an_encoder_does(run, text):
    encoders = {name: entry | ({"text": text} if text else {}) for name, entry in SMALL["encoders"].items()}
    jobs = run.snakemake("--dry-run", "all", config=run.configure(edited(encoders=encoders))).stdout
    [inputs] = re.findall(r"rule write_page:\n +input: (.*)\n", jobs)
    assert ("document_fields.parquet" in inputs) is bool(text)
    assert all(f"results/evaluation/{name}/documents.parquet" in inputs for name in SMALL["benchmarks"])
