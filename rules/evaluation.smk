from pathlib import Path

from cocite.config.benchmark import MadeOfHeldOut
from cocite.config.benchmarks.beir import BeirSettings
from cocite.config.benchmarks.screening import ScreeningSettings


rule prepare_holdout:
    input:
        papers=plan.corpus.papers(),
        citations=plan.corpus.citations(),
        contexts=plan.evaluation.sentences_for_grades,
        queries="<results>/corpus/queries.parquet",
    output:
        tables=plan.evaluation.prepared("documents", "selection", "popularity", "searches"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=either(plan.evaluation.holdouts),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 216 MB for 200 held-out papers of 3,000, 334 MB and 3 s for 2,667 of 40,000.
        mem_mb=plan.evaluation.holdout_memory,
        runtime=minutes(10, papers=0.005, citations=0.005),
    params:
        version=10,
        tables=subpath(output.sizes, parent=True),
        papers=folders_of("papers"),
        citations=folders_of("citations"),
        contexts=option("--contexts", of_folder=True),
        settings=settings("benchmarks", "benchmark", MadeOfHeldOut),
        seed=configuration.run_seed,
    shell:
        """
        cocite evaluation prepare-holdout \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --queries {input.queries:q} {params.contexts:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --tables {params.tables:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule fetch_benchmark:
    output:
        directory("<results>/evaluation/{benchmark}/hub/{half}/{name}"),
    log:
        "<logs>/evaluation/{benchmark}/fetch-{half}-{name}.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/fetch-{half}-{name}.jsonl"
    wildcard_constraints:
        benchmark=either(name for name, entry in configuration.benchmarks.items() if entry.from_hub),
        half="metadata|test|data",
        name="[^/]+",
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams a dataset of unknown size, and a stopped job resumes.
        mem_mb=megabytes(1000),
        runtime=minutes(240),
    params:
        version=1,
        dataset=lambda wildcards: plan.evaluation.fetched(wildcards).dataset,
        revision=lambda wildcards: plan.evaluation.fetched(wildcards).revision,
        splits=lambda wildcards: ",".join(plan.evaluation.fetched(wildcards).splits),
        state=state("evaluation/{benchmark}/{half}/{name}"),
    shell:
        """
        cocite evaluation fetch {wildcards.name} \
            --dataset {params.dataset:q} \
            --revision {params.revision:q} \
            --splits {params.splits:q} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule prepare_folder:
    input:
        files=plan.evaluation.sources,
    output:
        tables=plan.evaluation.prepared("documents"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=either(plan.evaluation.in_folders),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 100,000 documents (112 MB of JSON) took 602 MB and 6 s, 2,345 (5 MB) 161 MB and 1.1 s. 64,183 papers in LitSearch's
        # layout (1,200 MB with full texts) took 484 MB and 3.7 s, 36,000 abstracts in that of DORIS-MAE (64 MB) 240 MB and 2.8 s.
        mem_mb=megabytes(1000, files=value("benchmarks", "benchmark", "memory_of_byte")),
        runtime=minutes(20, files=0.02),
    params:
        version=7,
        tables=subpath(output.sizes, parent=True),
        folder=plan.evaluation.folder,
        kind=value("benchmarks", "benchmark", "kind"),
        tasks=plan.evaluation.listed_tasks,
        metrics=lambda wildcards: ",".join(configuration.benchmarks[wildcards.benchmark].asked_metrics),
    shell:
        """
        cocite evaluation prepare-folder {params.folder:q} \
            --kind {params.kind} \
            --tasks={params.tasks:q} \
            --metrics={params.metrics:q} \
            --tables {params.tables:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule prepare_beir:
    input:
        files=plan.evaluation.dataset_files,
    output:
        tables=plan.evaluation.prepared("documents"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=named("benchmarks", kind="beir"),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 100,000 documents (119 MB of JSON) took 558 MB, and 23 s on a shared machine.
        mem_mb=plan.evaluation.dataset_memory,
        runtime=minutes(20, files=0.02),
    params:
        version=3,
        tables=subpath(output.sizes, parent=True),
        settings=settings("benchmarks", "benchmark", BeirSettings),
        tasks=plan.evaluation.listed_tasks,
    shell:
        """
        cocite evaluation prepare-beir \
            --settings {params.settings:q} \
            --tasks={params.tasks:q} \
            --tables {params.tables:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule prepare_screening:
    input:
        labels=lambda wildcards: configuration.benchmarks[wildcards.benchmark].files(),
        papers=plan.corpus.papers(),
        citations=plan.corpus.citations(),
    output:
        tables=plan.evaluation.prepared("documents", "reference_lists"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=either(plan.evaluation.reviews),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 7,234 papers of nine reviews with 248,890 citations took 266 MB and 0.7 s.
        mem_mb=megabytes(1000, labels=200),
        runtime=minutes(10, papers=0.005, citations=0.005),
    params:
        version=1,
        tables=subpath(output.sizes, parent=True),
        papers=folders_of("papers"),
        citations=folders_of("citations"),
        settings=settings("benchmarks", "benchmark", ScreeningSettings),
        tasks=plan.evaluation.listed_tasks,
    shell:
        """
        cocite evaluation prepare-screening \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --settings {params.settings:q} \
            --tasks={params.tasks:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --tables {params.tables:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule describe_documents:
    input:
        sources=lambda wildcards: (
            plan.evaluation.sources(wildcards) if wildcards.benchmark in plan.evaluation.in_folders else []
        ),
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        papers=lambda wildcards: plan.corpus.papers() if plan.corpus.known_by[wildcards.benchmark] != "text" else [],
        document_papers=lambda wildcards: (
            plan.corpus.papers_of_documents([wildcards.benchmark])
            if plan.corpus.known_by[wildcards.benchmark] != "text"
            else []
        ),
    output:
        "<results>/evaluation/{benchmark}/document_fields.parquet",
    log:
        "<logs>/evaluation/{benchmark}/describe.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/describe.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # A benchmark that others made is read as it is to be prepared; of papers, one batch is in memory.
        mem_mb=megabytes(1000, sources=value("benchmarks", "benchmark", "memory_of_byte")),
        runtime=minutes(20, sources=0.02, papers=0.005),
    params:
        version=2,
        kind=value("benchmarks", "benchmark", "kind"),
        tasks=plan.evaluation.listed_tasks,
        sources=plan.evaluation.options_of_fields,
    shell:
        """
        cocite evaluation describe-documents {input.documents:q} \
            --kind {params.kind} \
            --tasks={params.tasks:q} \
            {params.sources:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule score_model:
    input:
        tables=plan.evaluation.prepared(),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        embeddings="<results>/encoder/{system}/seed-{seed}/embeddings/{benchmark}.parquet",
    output:
        scores="<results>/evaluation/{benchmark}/scores/{suite}/{system}-{seed}.parquet",
        outcomes="<results>/evaluation/{benchmark}/outcomes/{suite}/{system}-{seed}.parquet",
        failures="<results>/evaluation/{benchmark}/failures/{suite}/{system}-{seed}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/score-{suite}-{system}-{seed}.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/score-{suite}-{system}-{seed}.jsonl"
    wildcard_constraints:
        system=either(plan.evaluation.scored),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # With 768 dimensions, ranking 9,150 documents (28 MB) took 490 MB, fitting linear models to 30,000 (92 MB)
        # 1,280 MB; fitting them to 54,603 (168 MB) took 172 s, to 258,687 (795 MB) 230 s (docs/evaluation.md).
        # Screening nine reviews with 7,233 papers (30 MB) from ten starts took 571 MB and 24 s, by an index 742 MB and 29 s.
        mem_mb=plan.evaluation.scoring_memory("embeddings", 700, ranked=3, fitted=12),
        runtime=plan.evaluation.scoring_minutes,
    params:
        version=10,
        tables=subpath(input.sizes, parent=True),
        tasks=plan.evaluation.tasks_of_suite,
        model="{system}",
        training_seed="{seed}",
        mode=lambda wildcards: getattr(configuration.benchmarks[wildcards.benchmark], "mode", "correct"),
        metrics=lambda wildcards: ",".join(configuration.benchmarks[wildcards.benchmark].asked_metrics),
        largest_missing=value("benchmarks", "benchmark", "largest_missing"),
        seeds=plan.evaluation.seeds,
        by=lambda wildcards, input: ["--embeddings", str(input.embeddings)],
    shell:
        """
        cocite evaluation score {params.seeds} \
            --tables {params.tables:q} \
            --tasks {params.tasks} \
            --model {params.model} \
            --training-seed {params.training_seed} \
            --mode {params.mode} \
            --metrics={params.metrics:q} \
            --largest-missing {params.largest_missing} \
            --threads {threads} \
            {params.by:q} \
            --scores {output.scores:q} \
            --outcomes {output.outcomes:q} \
            --failures {output.failures:q} \
            >> {log:q} 2>&1
        """


use rule score_model as score_baseline with:
    input:
        tables=plan.evaluation.prepared(),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        embeddings="<results>/baselines/{system}/seed-{seed}/embeddings/{benchmark}.parquet",
    wildcard_constraints:
        system=either(plan.baselines.with_vectors),
    params:
        version=3,


use rule score_model as score_words with:
    input:
        tables=plan.evaluation.prepared("documents"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
    wildcard_constraints:
        system=either(name for name, entry in configuration.baselines.items() if entry.kind in ("bm25", "tfidf")),
    resources:
        # The words of 20,000 abstracts, 11 MB as they are stored, took 480 MB; ranking the candidates of 2,667 queries
        # among 35,441 documents (2.6 MB) took 392 MB and 3.5 s.
        mem_mb=plan.evaluation.scoring_memory("tables", 600, ranked=20, fitted=20),
        runtime=plan.evaluation.word_scoring_minutes,
    params:
        version=11,
        # It ranks only, without a random choice: the benchmark's mode does not change its scores.
        mode="correct",
        # Every document has words, or none, which is no reason not to rank it.
        largest_missing=0,
        by=lambda wildcards: ["--words", as_text(configuration.baselines[wildcards.system], "kind")],


use rule score_words as score_popularity with:
    input:
        tables=plan.evaluation.prepared("popularity"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
    wildcard_constraints:
        system=named("baselines", kind="popularity"),
    params:
        version=1,
        by=["--by-citations"],


use rule score_words as score_index with:
    input:
        tables=plan.evaluation.prepared(),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        answers="<results>/retrieval/{system}/seed-{seed}/{benchmark}/answers.parquet",
    wildcard_constraints:
        benchmark=either(plan.retrieval.benchmarks),
        system=named("indexes"),
    params:
        version=1,
        tasks=plan.retrieval.tasks,
        by=lambda wildcards, input: ["--answers", str(input.answers)],


use rule score_model as screen_by_index with:
    input:
        tables=plan.evaluation.prepared("documents", "reference_lists"),
        sizes="<results>/evaluation/{benchmark}/sizes.json",
        embeddings=plan.evaluation.vectors_of_index,
    wildcard_constraints:
        benchmark=either(plan.evaluation.reviews),
        system=named("indexes"),
    params:
        version=1,
        words=lambda wildcards: configuration.indexes[wildcards.system].words,  # Snakemake compares no param of inputs
        by=plan.evaluation.by_vectors_and_words,


rule search_corpus:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
        vectors=plan.buckets("<results>/encoder/{{system}}/seed-{{seed}}/papers/{bucket}.parquet"),
    output:
        scores="<results>/evaluation/{benchmark}/scores/search/{system}-{seed}.parquet",
        outcomes="<results>/evaluation/{benchmark}/outcomes/search/{system}-{seed}.parquet",
        failures="<results>/evaluation/{benchmark}/failures/search/{system}-{seed}.parquet",
        by_citations="<results>/evaluation/{benchmark}/by_citations/{system}-{seed}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/search-{system}-{seed}.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/search-{system}-{seed}.jsonl"
    wildcard_constraints:
        system=either(plan.encoder.with_weights),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # For a block of similarities, and 0.2 MB of best answers for each query.
        mem_mb=megabytes(1500 + configuration.queries.holdout // 4, popularity=30),
        runtime=minutes(20, vectors=0.1),
    params:
        version=1,
        tables=subpath(input.searches, parent=True),
        tasks=plan.evaluation.tasks_of_suite,
        model="{system}",
        training_seed="{seed}",
        evaluation_seed=lambda wildcards: f"--evaluation-seed={configuration.benchmarks[wildcards.benchmark].seeds[0]}",
        largest_missing=value("benchmarks", "benchmark", "largest_missing"),
        by=lambda wildcards, input: ["--vectors", str(Path(input.vectors[0]).parent)],
    shell:
        """
        cocite evaluation search \
            --tables {params.tables:q} \
            --tasks {params.tasks} \
            --model {params.model} \
            --training-seed {params.training_seed} \
            {params.evaluation_seed} \
            --largest-missing {params.largest_missing} \
            {params.by:q} \
            --scores {output.scores:q} \
            --outcomes {output.outcomes:q} \
            --failures {output.failures:q} \
            --by-citations {output.by_citations:q} \
            >> {log:q} 2>&1
        """


use rule search_corpus as search_corpus_by_index with:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
        answers="<results>/retrieval/{system}/seed-{seed}/{benchmark}/answers.parquet",
    wildcard_constraints:
        system=named("indexes"),
    resources:
        mem_mb=megabytes(1000, answers=60, popularity=30),
        runtime=minutes(20),
    params:
        by=lambda wildcards, input: ["--answers", str(input.answers)],


use rule search_corpus as search_corpus_by_baseline with:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
        vectors=plan.buckets("<results>/baselines/{{system}}/seed-{{seed}}/papers/{bucket}.parquet"),
    wildcard_constraints:
        system=either(plan.baselines.with_vectors),


use rule search_corpus as search_corpus_by_words with:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
        papers=plan.corpus.papers(),
    wildcard_constraints:
        system=named("baselines", kind="bm25"),
    resources:
        # 0.6 GB and 12 s for 220,000 papers (docs/speed.md).
        mem_mb=megabytes(1500 + configuration.queries.holdout // 4, popularity=30),
        runtime=minutes(20, papers=1),
    params:
        by=lambda wildcards, input: [
            *("--papers", str(Path(input.papers[0]).parent)),
            *("--words", as_text(configuration.baselines[wildcards.system], "kind")),
        ],


use rule search_corpus as search_corpus_by_citations with:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
    wildcard_constraints:
        system=named("baselines", kind="popularity"),
    resources:
        mem_mb=megabytes(1000, popularity=30),
        runtime=minutes(20),
    params:
        by=[],


rule read_reported:
    input:
        files=plan.baselines.files,
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        collections="<results>/evaluation/{benchmark}/collections.parquet",
    output:
        scores="<results>/evaluation/{benchmark}/reported/{baseline}.parquet",
        omissions="<results>/evaluation/omissions/{benchmark}_{baseline}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/reported-{baseline}.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/reported-{baseline}.jsonl"
    wildcard_constraints:
        baseline=named("baselines", kind="reported"),
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 78,700 judgements (0.2 MB) took 205 MB and 1.3 s.
        mem_mb=megabytes(400, judgements=100),
        runtime=minutes(5, judgements=1),
    params:
        version=3,
        path=lambda wildcards: configuration.baselines[wildcards.baseline].files[0],
        tables=subpath(input.judgements, parent=True),
        tasks=lambda wildcards: ",".join(
            task.name for task in configuration.benchmarks[wildcards.benchmark].scored_tasks
        ),
        settings=settings("benchmarks", "benchmark", BeirSettings),
    shell:
        """
        cocite evaluation read-reported {params.path:q} \
            --tables {params.tables:q} \
            --tasks {params.tasks} \
            --settings {params.settings:q} \
            --baseline {wildcards.baseline} \
            --output {output.scores:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule average_scores:
    input:
        lambda wildcards: plan.evaluation.of_runs("scores", wildcards.benchmark),
    output:
        "<results>/evaluation/{benchmark}/averages.parquet",
    log:
        "<logs>/evaluation/{benchmark}/average.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/average.jsonl"
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 7 runs and baselines on 5 tasks of the demo took 143 MB and 1 s: a file of 4 kB for each.
        mem_mb=megabytes(400, every=20),
        runtime=minutes(5, every=1),
    params:
        version=3,
        scores=subpath(input[0], ancestor=2),
        suites=plan.evaluation.suites_as_json,
        metrics=lambda wildcards: ",".join(configuration.benchmarks[wildcards.benchmark].asked_metrics),
    shell:
        """
        cocite evaluation average {params.scores:q} \
            --suites {params.suites:q} \
            --metrics={params.metrics:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule score_by_year:
    input:
        outcomes=lambda wildcards: plan.evaluation.of_runs("outcomes", wildcards.benchmark),
        papers=plan.corpus.papers(),
    output:
        "<results>/evaluation/{benchmark}/scores_by_year.parquet",
    log:
        "<logs>/evaluation/{benchmark}/by-year.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/by-year.jsonl"
    wildcard_constraints:
        benchmark=either(plan.evaluation.by_time),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 86 MB and 0.4 s for three baselines on 1,000 queries of hci's 27,152 papers.
        mem_mb=megabytes(1000),
        runtime=minutes(10, outcomes=0.1, papers=0.005),
    params:
        version=1,
        outcomes=subpath(input[0], ancestor=2),
        suites=plan.evaluation.suites_as_json,
        papers=folders_of("papers"),
    shell:
        """
        cocite evaluation by-year {params.outcomes:q} \
            --suites {params.suites:q} \
            --papers {params.papers:q} \
            --memory-mb {resources.mem_mb} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule compare_models:
    input:
        lambda wildcards: plan.evaluation.of_runs("outcomes", wildcards.benchmark),
    output:
        "<results>/evaluation/{benchmark}/comparisons.parquet",
    log:
        "<logs>/evaluation/{benchmark}/compare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/compare.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 7 models on 5 tasks of the demo (0.2 MB), drawn 1,000 times, took 160 MB and 1.5 s.
        mem_mb=megabytes(1000, every=30),
        runtime=minutes(20, every=10),
    params:
        version=5,
        outcomes=subpath(input[0], ancestor=2),
        suites=plan.evaluation.suites_as_json,
        resamples=lambda wildcards: f"--resamples={configuration.benchmarks[wildcards.benchmark].resamples}",
        seed=configuration.run_seed,
    shell:
        """
        cocite evaluation compare {params.outcomes:q} \
            --suites {params.suites:q} \
            {params.resamples} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule compare_over_tasks:
    input:
        expand("<results>/evaluation/{benchmark}/comparisons.parquet", benchmark=configuration.benchmarks),
    output:
        "<results>/evaluation/task_comparisons.parquet",
    log:
        "<logs>/evaluation/compare-over-tasks.log",
    benchmark:
        "<benchmarks>/evaluation/compare-over-tasks.jsonl"
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 9,900 comparisons of 12 models on 57 tasks (0.1 MB) took 226 MB and 3 s.
        mem_mb=megabytes(600, every=100),
        runtime=minutes(5, every=10),
    params:
        version=3,
    shell:
        """
        cocite evaluation compare-over-tasks {input:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule score_maps:
    input:
        maps="<results>/encoder/probe_{probe}/{triplets}/maps.safetensors",
        vectors=plan.encoder.vectors_to_map,
        judgements=lambda wildcards: (
            f"<results>/evaluation/{configuration.probes[wildcards.probe].benchmark}/judgements.parquet"
        ),
        selection=lambda wildcards: (
            f"<results>/evaluation/{configuration.probes[wildcards.probe].benchmark}/selection.parquet"
        ),
    output:
        "<results>/evaluation/probe_{probe}/outcomes/{triplets}.parquet",
    log:
        "<logs>/evaluation/probe_{probe}/score-{triplets}.log",
    benchmark:
        "<benchmarks>/evaluation/probe_{probe}/score-{triplets}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The vectors of the papers that are asked about are held twice, as they are and mapped: six maps on 2,198
        # rankings (0.2 MB) took 461 MB and 6 s.
        mem_mb=megabytes(1000, judgements=100),
        runtime=minutes(20, maps=1),
    params:
        version=3,
        vectors=folders_of("vectors"),
        tables=subpath(input.judgements, parent=True),
        tasks=plan.evaluation.probed_tasks,
    shell:
        """
        cocite evaluation score-maps {input.maps:q} \
            --vectors {params.vectors:q} \
            --tables {params.tables:q} \
            --tasks {params.tasks} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule rank_probe:
    input:
        lambda wildcards: expand(
            "<results>/evaluation/probe_{probe}/outcomes/{triplets}.parquet",
            probe=wildcards.probe,
            triplets=configuration.probes[wildcards.probe].sets,
        ),
    output:
        scores="<results>/evaluation/probe_{probe}/scores.parquet",
        winners="<results>/evaluation/probe_{probe}/winners.yaml",
    log:
        "<logs>/evaluation/probe_{probe}/rank.log",
    benchmark:
        "<benchmarks>/evaluation/probe_{probe}/rank.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 20 sets with two losses (0.9 MB) took 186 MB and 7 s.
        mem_mb=megabytes(500, every=20),
        runtime=minutes(10, every=1),
    params:
        version=1,
        settings=plan.evaluation.entries_of_probe,
        seed=configuration.run_seed,
    shell:
        """
        cocite evaluation rank-probe {input:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --scores {output.scores:q} \
            --winners {output.winners:q} \
            >> {log:q} 2>&1
        """
