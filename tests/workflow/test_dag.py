"""The jobs follow from the configuration: their files, their commands, and which there are.

A dry run costs seconds, so that one serves many tests.
"""

import json
import re

import pytest
import yaml
from tests.workflow.conftest import ROOT, SMALL, Plan, Run, edited, fresh_run, planned, write_release

STAGES = [
    "corpus",
    "graph",
    "embeddings",
    "neighbours",
    "triplets",
    "encoder",
    "retrieval",
    "baselines",
    "evaluation",
    "report",
]
SETS = SMALL["triplets"]
NEAR = {**SETS["cocite"], "easy": 3}
TINY = {"encoder": "small", "triplets": "cocite", "loss": "triplet"}
BASELINES = {
    "fasttext": {"kind": "fasttext"},
    "sif": {"kind": "sif", "of": "fasttext"},
    "sgc": {"kind": "sgc", "of": "sif", "graph": "citation"},
}
PINNED = {"model": "someone/encoder", "revision": "0" * 40, "max_length": 64}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A working folder with the small configuration, for plans by others."""
    return fresh_run(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def rich(elsewhere: Run) -> Plan:
    """A plan of all stages by a configuration with an entry of nearly every kind."""
    walks = {"steps": {"graph": "citation", "k": 100, "query_jobs": 2, "among": "texts"}}
    index = {"kind": "ivf", "nlist": 8, "nprobe": 2}
    searches = {
        "cocitation-dot": {"k": 100, "query_jobs": 3},
        "indexed": {"k": 100, "query_jobs": 3, "index": index},
        "among-some": {"k": 100, "papers_of": "specter"},
    }
    embedding = SMALL["embeddings"]["cocitation-dot"]
    embeddings = {name: {**embedding, "neighbours": search} for name, search in searches.items()}
    sets = {
        "near": NEAR,
        "far": NEAR | {"easy_negatives": "k-means"},
        "walked": NEAR | {"embedding": "steps"},
        "cited": {"sampler": "citations", "graph": "citation"},
        "cocited": {"sampler": "cocited", "graph": "cocitation"},
        "chance": {"sampler": "random"},
        "both": {"sampler": "union", "of": ["near", "cited"]},
        "part": {"sampler": "subset", "of": "both", "share": 0.5},
        "aspects": {"sampler": "aspects", "graph": "citation", "group": "aspects"},
        "with-aspects": {"sampler": "union", "of": ["cocite", "aspects"]},
        "part-with-aspects": {"sampler": "subset", "of": "with-aspects", "share": 0.5},
        "crops": {"sampler": "cropping", "group": "crops"},
        "context2doc": {"sampler": "contexts", "group": "context2doc"},
        "doc2doc": {"sampler": "cocited", "graph": "sentences", "group": "doc2doc"},
        "mined": {"sampler": "mined", "of": "cocite", "by": {"kind": "model", "name": "cocite"}, "group": "mined"},
        "words": {"sampler": "mined", "of": "specter", "by": "bm25", "unlinked_in": ["citation"], "group": "words"},
    }
    several = [{"triplets": name, "loss": "mnrl"} for name in ("cocite", "crops")]
    in_space = [{"loss": "supcon", "space": "aspects"}]
    models = {
        "cocite": SMALL["models"]["cocite"],
        "adapted": TINY | {"trainable": {"kind": "adapter", "name": "search"}},
        "pooled": TINY | {"poolings": ["cls"]},
        "averaged": TINY | {"seeds": [1, 2], "averaged": True},
        "aspects": {"encoder": "small", "triplets": "aspects", "objectives": in_space, "spaces": ["result"]},
        "both": {"encoder": "small", "objectives": several, "seeds": [1, 2]},
        "then": {"from": "both", "triplets": "crops", "loss": "mnrl", "seeds": [2]},
        "second": TINY | {"triplets": "mined"},
    }
    baselines = BASELINES | {
        **{"random": {"kind": "random"}, "doc2vec": {"kind": "doc2vec"}},
        "fasttext": {"kind": "fasttext", "seeds": [3]},
        "sgc": BASELINES["sgc"] | {"grid": {"hops": [1, 3]}},
        "citeomatic": {"kind": "citeomatic", "triplets": "specter"},
    }
    learned = {"probe": "which", "triplets": "specter", "loss": "mnrl"}
    small = {**SMALL["encoders"]["small"], "text": ["title", "authors"]}
    on_map = ["random", "fasttext", "sif", "sgc", "cocite", "untrained_small"]
    config = edited(
        precision="bfloat16",
        corpus__authors=True,
        corpus__contexts={"min_words": 3},
        corpus__twins="merge",
        corpus__until=2012,
        graphs=SMALL["graphs"] | {"sentences": {"signal": "sentence-cocitation"}},
        embeddings=embeddings,
        walks=walks,
        triplets=SETS | sets,
        encoders={
            **{"small": small, "ready": PINNED, "mapped": PINNED | {"linear_map": learned}},
            "table": {"kind": "static", "distilled_from": "ready"},
        },
        models=models,
        baselines=baselines,
        probes={"which": {"encoder": "ready", "benchmark": "holdout", "triplets": ["specter"], "losses": ["mnrl"]}},
        benchmarks__holdout__selection=0.5,
        benchmarks__holdout__spaces=False,
        maps={"one": {"benchmark": "holdout", "models": on_map}},
    )
    return planned(elsewhere, config, *STAGES, "results/report/maps/one/points/sgc-3.parquet")


@pytest.fixture(scope="module")
def brought(elsewhere: Run) -> Plan:
    """A plan by a configuration whose queries, papers to exclude, triplets, encoder and benchmark lie in files."""
    for name in ("bert/config.json", "bert/sub/weights", "bert/.git/objects/pack", "scidocs/x", "papers/0.gz"):
        (elsewhere.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere.folder / name).touch()
    (elsewhere.folder / "ids.txt").write_text("1\n")
    (elsewhere.folder / "mine.parquet").touch()
    pair = {"query": "words", "positive": {"title": "Document", "text": "about them"}}
    (elsewhere.folder / "train.jsonl").write_text(json.dumps(pair))
    sets = {
        "mine": {"sampler": "file", "path": "mine.parquet"},
        "searches": {"sampler": "pairs", "layout": "rows", "dataset": "train.jsonl"},
        "joined": {"sampler": "union", "of": ["searches", "specter"], "group": "joined"},
        "part": {"sampler": "subset", "of": "joined", "share": 0.5, "group": "part"},
    }
    scidocs = {"kind": "scidocs", "folder": "scidocs"}
    config = edited(
        corpus__paper_ids="papers",
        queries={"from": "file", "path": "ids.txt", "holdout": 10},
        exclude=["scirepeval", "scidocs", "ids.txt"],
        triplets=SETS | sets,
        encoders={"small": {**SMALL["encoders"]["small"], "text": ["title", "venue"]}, "bert": {"model": "./bert"}},
        benchmarks=SMALL["benchmarks"] | {"scidocs": scidocs},
        baselines=BASELINES,
    )
    return planned(elsewhere, config)


@pytest.fixture(scope="module")
def on_hub(elsewhere: Run) -> Plan:
    """A plan by a configuration whose queries and benchmark are on the hub."""
    labels = {"labels": {"revision": "0" * 40}}
    sre = {"kind": "scirepeval", "hub": labels, "tasks": ["hIndex", "peer_review_score"]}
    queries = {"from": "triplets", "revision": "0" * 40, "count": 50, "holdout": 10}
    return planned(elsewhere, edited(queries=queries, benchmarks={"sre": sre}), "corpus", "evaluation")


@pytest.fixture(scope="module")
def moved(elsewhere: Run) -> Plan:
    """A plan by a configuration with other folders, published triplets in one of them, and two GPUs."""
    (elsewhere.folder / "triplets").mkdir()
    (elsewhere.folder / "triplets" / "train-0.parquet").touch()
    folders = {"results": "out/r", "logs": "out/l", "benchmarks": "out/b"}
    queries = {"from": "triplets", "revision": "0" * 40, "count": 50, "holdout": 10, "dataset": "triplets"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        return planned(elsewhere, edited(pathvars=folders, precision="auto", gpu=True, queries=queries))


def in_buckets(folder: str, count: int = 2) -> list[str]:
    """The files of the buckets or shards of a table."""
    return [f"results/{folder}/{bucket}.parquet" for bucket in range(count)]


def test_a_stage_brings_things_up_to_there_and_no_further(run):
    rules = planned(run, None, "triplets").rules()
    assert "materialise_training" in rules
    assert "train_encoder" not in rules


def test_another_configuration_runs_alone(elsewhere, rich):
    assert "specter" in yaml.safe_load((elsewhere.folder / "config.yaml").read_text())["models"]
    assert not rich.of("train_encoder", model="specter")


def test_contexts_are_ingested_where_they_are_asked_for_and_only_then(plan, rich):
    assert len(plan.commands("corpus ingest citations")) == 2
    assert "ingest_with_contexts" not in plan.rules()
    assert not [job for job in plan.jobs if re.search("--contexts|corpus/contexts", job.command)]
    ingested = rich.of("ingest_with_contexts")
    assert len(ingested) == len(rich.commands("corpus ingest citations")) == 2
    assert all(" --contexts results/corpus/" in job.command for job in ingested)
    assert all('"min_words": 3' in job.command for job in rich.of("merge_contexts"))
    sampled, folder = rich.one("sample_texts"), "results/triplets/context2doc"
    assert sampled.outputs[:2] == [f"{folder}/sampled_examples.parquet", f"{folder}/texts.parquet"]
    assert sampled.inputs[:2] == in_buckets("corpus/contexts")


def test_with_a_last_year_whatever_is_merged_reads_the_years_of_papers_and_otherwise_nothing_more(plan, rich):
    papers = {f"results/corpus/ingested/papers/{part}.parquet" for part in range(2)}
    for rule in ("merge_papers", "merge_citations", "merge_contexts"):
        merged = rich.of(rule)
        assert merged
        assert all(papers <= set(job.inputs) and " --until 2012 " in job.command for job in merged)
    assert not papers & {path for job in plan.of("merge_citations") for path in job.inputs}
    assert not [job for job in plan.jobs if "--until" in job.command]


def test_records_are_merged_into_works_where_it_is_asked_for_and_twins_are_found_before_queries_are_chosen(plan, rich):
    for table in ("papers", "citations", "contexts"):
        records, merged = in_buckets(f"corpus/records/{table}"), rich.one(f"merge_twins_of_{table}")
        assert set(records) <= set(rich.outputs(f"merge_{table}"))
        assert merged.inputs == [*records, "results/corpus/twins.parquet"]
        assert merged.outputs[:2] == in_buckets(f"corpus/{table}")
    assert rich.one("find_twins").inputs == in_buckets("corpus/records/papers")
    assert plan.one("find_twins").inputs == in_buckets("corpus/papers")
    assert "results/corpus/twins.parquet" in plan.one("select_queries").inputs
    assert not [job for job in plan.jobs if "corpus/records" in job.command]


def test_authors_and_fields_of_documents_are_looked_up_where_an_encoder_reads_them_and_only_then(plan, rich):
    assert plan.commands("encoder tokenise")
    assert not {"ingest_with_authors", "describe_documents"} & plan.rules()
    assert not [job for job in plan.jobs if re.search("--authors|document_fields", job.command)]
    ingested = rich.commands("corpus ingest papers")
    assert len(ingested) == 2
    assert all(" --authors " in command for command in ingested)
    fields, documents = (
        {f"results/evaluation/{benchmark}/{table}.parquet" for benchmark in SMALL["benchmarks"]}
        for table in ("document_fields", "documents")
    )
    assert set(rich.outputs("describe_documents")) == fields
    assert [c for c in rich.commands("encoder tokenise") if "/documents results/corpus/papers/0.parquet" in c]
    assert fields | documents <= set(rich.one("write_page").inputs)
    assert (fields | documents) & set(plan.one("write_page").inputs) == documents


def test_documents_are_embedded_by_the_adapters_that_the_tasks_of_a_benchmark_see(rich):
    adapters = {
        job.wildcards["model"]: re.findall(r"--adapters=\S*", job.command) for job in rich.of("embed_own_documents")
    }
    assert adapters.pop("adapted") == ["--adapters=", "--adapters=search"]
    assert [*adapters.values()] == [["--adapters="]] * len(adapters)


def scored(plan: Plan, name: str) -> set[str]:
    """The benchmarks on which a run is scored."""
    scores = plan.outputs("score_model", "score_baseline", "score_words")
    return {output.split("/")[2] for output in scores if output.endswith(f"/{name}.parquet") and "/scores/" in output}


def test_models_that_are_made_of_trained_ones_and_encoders_with_a_map_are_scored_like_the_others(rich):
    for rule, inputs, made in (
        ("fetch_encoder_with_map", ["probe_which/specter/maps.safetensors"], "untrained_mapped/seed-0"),
        ("repool_encoder", ["pooled/seed-1/model"], "pooled_in_cls/seed-1"),
        ("average_weights", [f"averaged/seed-{seed}/model" for seed in (1, 2)], "averaged_averaged/seed-0"),
    ):
        job, model = rich.one(rule), f"results/encoder/{made}/model"
        assert job.inputs == [f"results/encoder/{each}" for each in inputs]
        assert job.outputs[0] == model
        assert rich.one("embed_own_documents", model=made.split("/")[0]).inputs[0] == model
        assert scored(rich, made.replace("/seed", "")) == set(SMALL["benchmarks"])
    assert len(rich.of("train_encoder", model="pooled")) == 1


def test_a_static_encoder_is_built_once_the_encoder_is_there_that_is_distilled(rich):
    job, source = rich.one("build_encoder", encoder="table"), "results/encoder/untrained_ready/seed-0/model"
    assert job.inputs[-1] == source
    assert f"--source {source} " in job.command
    assert "--source" not in rich.one("build_encoder", encoder="small").command


def test_a_model_is_scored_in_its_spaces_by_vectors_that_are_mapped(rich):
    mapped = rich.one("map_embeddings")  # of one benchmark: the other has `spaces: false`
    assert mapped.inputs[0] == "results/encoder/aspects/seed-1/model"
    assert mapped.outputs == ["results/encoder/aspects_in_result/seed-1/embeddings/scirepeval.parquet"]
    assert scored(rich, "aspects_in_result-1") == {"scirepeval"}
    assert not rich.of("embed_own_documents", model="aspects_in_result")


def test_an_index_is_built_once_for_all_shards_and_a_search_among_the_papers_of_triplets_waits_for_them(rich):
    for job in rich.of("search_neighbours"):
        waits = "results/triplets/specter/triplets.parquet" in job.inputs
        assert waits == (job.wildcards["embedding"] == "among-some")
    for name, counts in {"indexed": [1, 3, 1], "cocitation-dot": [0, 3, 0]}.items():
        rules = ("build_index", "search_neighbours", "measure_search")
        assert [len(rich.of(rule, embedding=name)) for rule in rules] == counts


def test_walks_go_along_the_links_of_a_graph_and_are_sampled_and_measured_like_a_search(rich):
    links = rich.one("build_adjacency")
    assert links.inputs == in_buckets("graph/citation/edges")
    assert links.outputs == ["results/neighbours/steps/adjacency"]
    walked = rich.of("walk_neighbours")
    shards = in_buckets("neighbours/steps/neighbours")
    assert sorted(job.outputs[0] for job in walked) == shards
    assert walked[0].inputs == [*links.outputs, "results/corpus/queries.parquet", *in_buckets("corpus/papers")]
    assert rich.one("sample_triplets", triplets="walked").inputs[:2] == shards
    measured = rich.one("measure_bands", embedding="steps")
    assert measured.inputs[:2] == shards
    assert measured.outputs[0] == "results/triplets/band_quality/steps.parquet"
    assert not [job for job in rich.jobs if "embeddings/steps" in job.command]


def test_a_set_is_sampled_from_what_its_entry_names(rich, brought):
    near, edges = in_buckets("neighbours/cocitation-dot/neighbours", 3), in_buckets("graph/citation/edges")
    sets = "results/triplets/{}.parquet".format
    named = {
        "near": near,
        "far": [*near, "results/embeddings/cocitation-dot/graph_embeddings.parquet"],
        "cited": edges,
        "cocited": in_buckets("graph/cocitation/cocitations"),
        "chance": [],
        "both": [sets("near/triplets"), sets("cited/triplets")],
        "part": [sets("both/triplets")],
        "aspects": edges,
        "with-aspects": [sets("cocite/triplets"), sets("aspects/sampled_examples")],
        "part-with-aspects": [sets("with-aspects/sampled_examples")],
    }
    for name, files in named.items():
        [job] = [job for job in rich.jobs if job.rule.startswith("sample_") and job.wildcards["triplets"] == name]
        assert job.inputs == [*files, "results/corpus/queries.parquet", *in_buckets("corpus/papers")], name
        assert job.outputs[0] == sets(f"{name}/{'sampled_examples' if 'aspects' in name else 'triplets'}")
    assert brought.one("sample_triplets", triplets="mine").inputs[0] == "mine.parquet"


def test_a_set_that_brings_texts_has_them_beside_its_examples_and_so_has_what_is_made_of_it(brought):
    sampled, texts = brought.one("sample_texts"), "results/triplets/searches/texts.parquet"
    assert sampled.inputs[0] == "train.jsonl"
    assert sampled.outputs[:2] == ["results/triplets/searches/sampled_examples.parquet", texts]
    for rule, key, names in (
        ("materialise_training", "triplets", {"searches", "joined", "part"}),
        ("materialise_validation", "group", {"all", "joined", "part"}),
    ):
        assert {job.wildcards[key] for job in brought.of(rule) if texts in job.inputs} == names
    assert "fetch_pairs" not in brought.rules()


def test_a_model_learns_from_several_sets_and_another_goes_on_from_it(rich):
    tokens = "results/encoder/untrained_small/seed-0/tokens"
    names = ("cocite", "validation_all", "crops", "validation_crops")
    sets = [f"results/triplets/{name}/examples.parquet {tokens}/{name} " for name in names]
    for model, seed, start, given in (
        ("both", "1", "untrained_small/seed-0", sets),
        ("then", "2", "both/seed-2", sets[2:]),
    ):
        command = rich.one("train_encoder", model=model, seed=seed).command
        assert command.startswith(f"cocite encoder train {''.join(given)}--encoder results/encoder/{start}/model ")


def test_a_round_of_mining_waits_for_the_model_that_mines_and_precedes_the_one_that_learns_from_it(rich):
    mined = [f"results/neighbours/mined_{name}" for name in ("mined", "words")]
    tables = {f"{folder}/{table}.parquet" for folder in mined for table in ("candidates", "positives")}
    assert set(rich.outputs("mine_candidates")) >= tables
    assert set(in_buckets("encoder/cocite/seed-1/papers")) <= set(rich.outputs("embed_papers"))
    assert "results/triplets/mined/examples.parquet" in rich.one("train_encoder", model="second").inputs


def test_a_training_of_a_baseline_asks_for_the_cores_that_it_uses(rich):
    threads = {job.wildcards["baseline"]: job.threads for job in rich.of("train_baseline")}
    cores = {"fasttext": 1, "sif": 1, "doc2vec": 1, "citeomatic": 2}  # gensim with one worker repeats itself
    assert cores.items() <= threads.items()


def test_baselines_are_on_maps_by_their_vectors(rich):
    baselines = [f"results/baselines/{run}/embeddings" for run in ("fasttext/seed-3", "random/seed-0", "sgc/seed-3")]
    encoders = [f"results/encoder/{run}/embeddings" for run in ("cocite/seed-1", "untrained_small/seed-0")]
    folders = [*baselines, "results/baselines/sif/seed-3/embeddings", *encoders]
    assert sorted(job.inputs[-1] for job in rich.of("lay_out_map")) == [f"{each}/holdout.parquet" for each in folders]


def test_documents_are_scored_in_float32_unless_a_precision_is_named(rich, moved):
    for plan, precision, scored_in in ((rich, "bfloat16", "bfloat16"), (moved, "auto", "float32")):
        for command, named in (("encoder train", precision), ("encoder embed", scored_in)):
            given = plan.commands(command)
            assert given
            assert all(f" --precision {named} " in words for words in given)


def test_what_lies_in_files_is_an_input_of_what_reads_it(brought):
    queries = brought.one("select_queries")
    assert {"ids.txt", "results/evaluation/scirepeval/documents.parquet"} <= set(queries.inputs)
    assert brought.one("fetch_encoder").inputs == ["bert/config.json", "bert/sub/weights"]


def test_documents_with_hashes_for_ids_are_looked_for_among_the_papers_before_they_are_kept_out(brought):
    found = "results/corpus/document_papers/scidocs.parquet"
    looked_for = brought.one("find_documents")
    assert {"results/corpus/papers/0.parquet", "papers/0.gz"} <= set(looked_for.inputs)
    assert "--papers results/corpus/papers" in looked_for.command
    assert "--paper-ids papers" in looked_for.command
    for command in (*brought.commands("corpus select"), *brought.commands("triplets check")):
        assert " results/evaluation/scidocs/documents.parquet " in command.partition(f" {found} ")[0]
    assert any(f'"document_papers": "{found}"' in job.command for job in brought.jobs)  # of the baseline sgc
    described = brought.one("describe_documents", benchmark="scidocs")
    assert f"--document-papers {found}" in described.command  # of the venues of documents


def test_each_config_of_a_benchmark_on_the_hub_is_fetched_by_a_job_of_its_own(on_hub):
    folders = ["metadata/peer_review_score_hIndex", "test/hIndex", "test/peer_review_score"]
    assert sorted(on_hub.outputs("fetch_benchmark")) == [f"results/evaluation/sre/hub/{folder}" for folder in folders]
    assert len(on_hub.of("prepare_folder")) == 1


def test_published_triplets_are_fetched_unless_they_are_in_a_folder(on_hub, moved):
    assert "fetch_triplets" in on_hub.rules() - moved.rules()
    assert moved.one("read_triplets").inputs == ["triplets/train-0.parquet"]


def test_pathvars_move_results_logs_and_benchmarks(moved):
    assert "out/r/encoder/cocite/seed-1/model" in moved.outputs("train_encoder")
    assert "--state out/r/.state/encoder/cocite/seed-1" in moved.one("train_encoder", model="cocite").command
    for job in moved.jobs:
        assert not re.search(r"(?<!out/r)(?<!/)\bresults/\w", " ".join([job.command, *job.inputs, *job.outputs]))


def test_without_a_cluster_trainings_and_embeddings_ask_for_the_gpus_of_the_machine(run, monkeypatch, moved):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    without = planned(run, edited(gpu=True), "encoder")
    assert {job.resources["gpu"] for job in without.of("train_encoder")} == {"0"}
    assert {job.resources["gpu"] for job in moved.of("train_encoder") + moved.of("embed_own_documents")} == {"1"}
    assert not [job for job in moved.of("score_model") if "gpu" in job.resources]


def test_every_run_ends_with_the_check_for_leaks_and_embeds_no_papers_unless_asked_to(plan):
    inputs = plan.one("check_leaks").inputs
    for file in ("graph/citation/edges/1.parquet", "neighbours/cocitation-dot/neighbours/0.parquet"):
        assert f"results/{file}" in inputs
    assert "results/triplets/validation_all/documents" in inputs
    assert "write_page" in plan.rules()
    assert "embed_papers" not in plan.rules()


def test_scores_on_benchmarks_that_others_made_ask_for_no_corpus(run):
    """The configuration that docs/how-to/compare-models.md starts from, and the target that it names."""
    dataset = run.folder / "searches/library"
    (dataset / "qrels").mkdir(parents=True)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (dataset / file).touch()
    page = (ROOT / "docs/how-to/compare-models.md").read_text()
    jobs = planned(run, yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0]), "evaluation")
    scored = {"score_model", "score_baseline", "score_words", "average_scores", "compare_models", "compare_over_tasks"}
    assert jobs.rules() == {"fetch_encoder", "prepare_beir", "embed_documents", "embed_by_baseline", *scored}


def test_buckets_of_an_earlier_run_are_removed_and_a_shard_that_is_added_to_a_folder_is_noticed(run):
    folder = run.folder / "release [1]"
    write_release(folder)
    run.configure(edited(corpus={"source": "directory", "path": folder.name, "buckets": 2}, benchmarks={}))
    papers = run.folder / "results" / "corpus" / "papers"
    papers.mkdir(parents=True)
    for bucket in range(4):
        (papers / f"{bucket}.parquet").touch()
    manifest = "results/corpus/manifest.json"
    assert run.snakemake(manifest).returncode == 0
    assert sorted(file.name for file in papers.iterdir()) == ["0.parquet", "1.parquet"]
    assert not planned(run, None, manifest).jobs
    (folder / "papers" / "1.gz").write_bytes(b"shard")
    assert planned(run, None, manifest).rules() == {"list_shards"}


SIGNALS = {
    "cocited": {"signal": "cocitation"},
    "said": {"signal": "sentence-cocitation"},
    "coupled": {"signal": "coupling"},
    "cites": {"signal": "citation"},
    "linked": {"signal": "citation", "directed": False},
}
READ = {
    **{"cocited": ["corpus/citations"], "said": ["corpus/contexts"], "coupled": ["graph/citations_by_cited"]},
    **{"cites": ["corpus/citations"], "linked": ["corpus/citations", "graph/citations_by_cited"]},
}
CHOICE = {"influential": True, "self": False}


@pytest.fixture(scope="module")
def choosing(elsewhere: Run) -> Plan:
    """The graphs of all signals, each once with a choice and once without."""
    graphs = {f"{name}-some": {**entry, "citations": CHOICE} for name, entry in SIGNALS.items()}
    graphs["weighed"] = {"signal": "citation", "citations": {"weights": {"mentions": "log"}}}
    config = edited(corpus__authors=True, corpus__contexts={}, graphs=SMALL["graphs"] | SIGNALS | graphs)
    return planned(elsewhere, config, "graph")


@pytest.mark.parametrize("graph", SIGNALS)
def test_every_signal_reads_the_chosen_citations_where_citations_are_chosen(choosing, graph):
    chosen = [f"graph/{graph}-some/{table.split('/')[1]}" for table in READ[graph]]
    for name, tables in ((graph, READ[graph]), (f"{graph}-some", chosen)):
        jobs = [job for rule in ("count_pairs", "citation_edges") for job in choosing.of(rule, graph=name)]
        read = {path.rpartition("/")[0] for job in jobs for path in job.inputs if "queries" not in path}
        assert read == {f"results/{table}" for table in tables}


def test_a_choice_of_citations_is_made_once_per_graph_and_bucket(choosing):
    jobs, weighed = choosing.of("choose_citations"), choosing.of("choose_citations", graph="weighed")
    assert len(jobs) == 2 * len(SIGNALS) + 2
    assert len(weighed) == 2
    for job in weighed:
        assert f"--contexts results/corpus/contexts/{job.wildcards['bucket']}.parquet" in job.command
    for job in (job for job in jobs if job not in weighed):
        assert "--contexts" not in job.command
        assert "--papers results/corpus/papers" in job.command
        assert json.dumps(CHOICE | {"intents": []}, sort_keys=True) in job.command
    assert {job.wildcards["graph"] for job in choosing.of("choose_sentences")} == {"said-some"}
    assert {job.wildcards["graph"] for job in choosing.of("split_chosen_citations")} == {"coupled-some", "linked-some"}
    for job in choosing.of("count_pairs"):
        assert "citations" not in job.command.partition("--settings")[2].partition("--bucket")[0]
