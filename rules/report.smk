import json

from cocite.config.map import labels_of
from cocite.config.sampler import graphs_of_aspects, sets_by_aspect
from cocite.plan.recorded import FOR_PROVENANCE


rule provenance:
    input:
        "<results>/corpus/manifest.json",
    output:
        provenance="<results>/provenance.json",
        ids="<results>/report/id_spaces.parquet",
    log:
        "<logs>/report/provenance.log",
    benchmark:
        "<benchmarks>/report/provenance.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The configuration, a list of names and the machine: 95 MB.
        mem_mb=megabytes(300),
        runtime=minutes(5),
    params:
        version=3,
        # Only for Snakemake, which reruns the job after an edit: a command line is too short for a configuration.
        configuration=lambda wildcards: json.dumps(plan.resolved),
        file=f"{plan.results}/{FOR_PROVENANCE}",
        spaces=plan.corpus.id_spaces(),
    shell:
        """
        cocite report provenance \
            --configuration {params.file:q} \
            --spaces {params.spaces:q} \
            --manifest {input:q} \
            --output {output.provenance:q} \
            --ids {output.ids:q} \
            >> {log:q} 2>&1
        """


rule describe_corpus:
    input:
        papers=plan.corpus.papers(),
        citations=plan.corpus.citations(),
        queries="<results>/corpus/queries.parquet",
        pairs=plan.graph.tables_of_pairs(),
    output:
        statistics="<results>/report/corpus_statistics.parquet",
        counts="<results>/report/pair_counts.parquet",
    log:
        "<logs>/report/corpus.log",
    benchmark:
        "<benchmarks>/report/corpus.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 265 MB for 3,000 papers, 266 MB and 3 s for 40,000.
        mem_mb=megabytes(1000),
        runtime=minutes(10, papers=0.005, citations=0.005, pairs=0.005),
    params:
        version=3,
        results=subpath(input.queries, ancestor=2),
        pairs=as_text(plan.graph.pairs),
    shell:
        """
        cocite report corpus \
            --results {params.results:q} \
            --pairs {params.pairs:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --statistics {output.statistics:q} \
            --counts {output.counts:q} \
            >> {log:q} 2>&1
        """


rule choose_mapped_papers:
    input:
        tables=plan.report.mapped_tables,
        corpus=lambda wildcards: (
            plan.corpus.papers() if configuration.maps[wildcards.map].benchmark in plan.evaluation.holdouts else []
        ),
    output:
        papers="<results>/report/maps/{map}/papers.parquet",
        labels="<results>/report/maps/{map}/labels.parquet",
    log:
        "<logs>/report/maps/{map}/papers.log",
    benchmark:
        "<benchmarks>/report/maps/{map}/papers.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 2,729 documents of a hold-out took 204 MB and 0.8 s.
        mem_mb=megabytes(1000, tables=10),
        runtime=minutes(10, tables=0.05, corpus=0.005),
    params:
        version=1,
        tables=lambda wildcards, input: Path(input.tables[0]).parent,
        corpus=plan.report.option_of_corpus,
        settings=plan.report.settings_of_map,
        tasks=lambda wildcards: (
            ",".join(labels_of(configuration.benchmarks[configuration.maps[wildcards.map].benchmark])[1:])
        ),
        only_queries=lambda wildcards: (
            "--only-queries" if configuration.maps[wildcards.map].shows_queries(configuration) else ""
        ),
        seed=configuration.run_seed,
    shell:
        """
        cocite report map-papers {params.only_queries} {params.corpus} \
            --tables {params.tables:q} \
            --settings {params.settings:q} \
            --tasks={params.tasks:q} \
            --seed {params.seed} \
            --papers {output.papers:q} \
            --labels {output.labels:q} \
            >> {log:q} 2>&1
        """


rule lay_out_map:
    input:
        papers="<results>/report/maps/{map}/papers.parquet",
        labels="<results>/report/maps/{map}/labels.parquet",
        embeddings=plan.report.mapped_vectors,
    output:
        points="<results>/report/maps/{map}/points/{model}-{seed}.parquet",
        scores="<results>/report/maps/{map}/scores/{model}-{seed}.parquet",
    log:
        "<logs>/report/maps/{map}/layout-{model}-{seed}.log",
    benchmark:
        "<benchmarks>/report/maps/{map}/layout-{model}-{seed}.jsonl"
    wildcard_constraints:
        model=either(plan.report.mapped_models),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # By t-SNE, 2,729 papers (64 dimensions) took 318 MB and 10 s, 10,000 (768 dimensions) 545 MB and 39 s; by UMAP,
        # these took 760 MB and 23 s.
        mem_mb=megabytes(lambda wildcards: 900 + 0.1 * configuration.maps[wildcards.map].papers),
        runtime=minutes(lambda wildcards: 10 + 0.002 * configuration.maps[wildcards.map].papers, embeddings=0.01),
    params:
        version=1,
        settings=plan.report.settings_of_map,
        seed=configuration.run_seed,
    shell:
        """
        cocite report map-layout {input.embeddings:q} \
            --papers {input.papers:q} \
            --labels {input.labels:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --points {output.points:q} \
            --scores {output.scores:q} \
            >> {log:q} 2>&1
        """


rule find_topics:
    input:
        vectors=plan.buckets("<results>/encoder/{{model}}/seed-{{seed}}/papers/{bucket}.parquet"),
        papers=plan.corpus.papers(),
    output:
        topics="<results>/report/topics/{model}/seed-{seed}/topics.parquet",
        scores="<results>/report/topics/{model}/seed-{seed}/scores.parquet",
        papers=directory("<results>/report/topics/{model}/seed-{seed}/papers"),
    log:
        "<logs>/report/topics/{model}-{seed}.log",
    benchmark:
        "<benchmarks>/report/topics/{model}-{seed}.jsonl"
    wildcard_constraints:
        model=either(plan.encoder.with_weights),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # 500,000 papers (256 dimensions) took 437 MB and 19 s of processor time.
        mem_mb=megabytes(1500, vectors=0.01),
        runtime=minutes(20, vectors=0.1),
    params:
        version=1,
        papers=lambda wildcards, input: Path(input.papers[0]).parent,
        seed=configuration.run_seed,
    shell:
        """
        cocite report topics {input.vectors:q} \
            --papers {params.papers:q} \
            --seed {params.seed} \
            --threads {threads} \
            --topics {output.topics:q} \
            --scores {output.scores:q} \
            --output {output.papers:q} \
            >> {log:q} 2>&1
        """


rule draw_figures:
    input:
        curves=plan.encoder.trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        graphs=expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=configuration.embeddings),
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=plan.neighbours.rankings),
        triplets=plan.triplets.checked("collisions", "per_query"),
        counts="<results>/report/pair_counts.parquet",
        intents=expand("<results>/graph/{graph}/intent_counts.parquet", graph=graphs_of_aspects(configuration)),
        checks=expand("<results>/triplets/{triplets}/checks.parquet", triplets=sets_by_aspect(configuration)),
        spaces=plan.evaluation.of_runs("scores", *plan.evaluation.by_aspect),
        trade=plan.evaluation.trade,
        screening=plan.evaluation.of_runs("outcomes", *plan.evaluation.reviews),
        probes=expand("<results>/evaluation/probe_{probe}/scores.parquet", probe=configuration.probes),
        papers=expand("<results>/report/maps/{map}/{table}.parquet", map=configuration.maps, table=["papers", "labels"]),
        points=plan.report.on_maps("points"),
        provenance="<results>/provenance.json",
    output:
        plan.report.figures(),
    log:
        "<logs>/report/figures.log",
    benchmark:
        "<benchmarks>/report/figures.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Nine figures of a small run took 243 MB and 2.4 s; a map of 2,729 papers by 6 models alone 245 MB and 1.4 s.
        mem_mb=megabytes(700, every=20),
        runtime=minutes(10, every=1),
    params:
        version=3,
        results=subpath(input.provenance, parent=True),
        pairs=as_text(plan.graph.pairs),
        seed=configuration.run_seed,
    shell:
        """
        cocite report figures {output:q} \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --pairs {params.pairs:q} \
            --seed {params.seed} \
            >> {log:q} 2>&1
        """


rule write_page:
    input:
        scores=plan.evaluation.of_runs("scores", *configuration.benchmarks),
        failures=plan.evaluation.of_runs("failures", *configuration.benchmarks),
        screening=rules.draw_figures.input.screening,
        reported=plan.evaluation.all_reported(),
        by_citations=plan.evaluation.by_citations(),
        by_year=expand("<results>/evaluation/{benchmark}/scores_by_year.parquet", benchmark=plan.evaluation.by_time),
        summaries=plan.evaluation.summaries(),
        documents=expand("<results>/evaluation/{benchmark}/documents.parquet", benchmark=configuration.benchmarks),
        fields=expand(
            "<results>/evaluation/{benchmark}/document_fields.parquet", benchmark=plan.evaluation.with_fields()
        ),
        over_tasks="<results>/evaluation/task_comparisons.parquet" if configuration.benchmarks else [],
        curves=plan.encoder.trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        settings=plan.encoder.trained("<results>/encoder/{model}/seed-{seed}/settings.json"),
        models=plan.encoder.with_cards(),
        graphs=expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=configuration.embeddings),
        searches=expand(
            "<results>/neighbours/{embedding}/search_quality.parquet", embedding=plan.neighbours.approximate
        ),
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=plan.neighbours.rankings),
        triplets=plan.triplets.checked("checks", "per_query"),
        intents=expand("<results>/graph/{graph}/intent_counts.parquet", graph=graphs_of_aspects(configuration)),
        probes=expand("<results>/evaluation/probe_{probe}/scores.parquet", probe=configuration.probes),
        leaks=["<results>/corpus/leaks.parquet", "<results>/corpus/leaks_by_text.parquet"],
        statistics="<results>/report/corpus_statistics.parquet",
        figures=rules.draw_figures.output,
        maps=plan.report.on_maps("points", "scores"),
        papers=rules.draw_figures.input.papers,
        ids="<results>/report/id_spaces.parquet",
        provenance="<results>/provenance.json",
    output:
        page="<results>/report/index.html",
        tables=report(
            directory("<results>/report/tables"),
            patterns=["{name}.csv"],
            caption="../workflow/report/captions/tables.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
        cards=directory("<results>/report/cards"),
        costs="<results>/report/costs.parquet",
        database="<results>/cocite.duckdb",
    log:
        "<logs>/report/page.log",
    benchmark:
        "<benchmarks>/report/page.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # That of a small run took 322 MB and 2.1 s.
        mem_mb=megabytes(700, scores=20, failures=20, summaries=40, curves=20, figures=20, maps=30),
        runtime=minutes(10, scores=1, failures=1, summaries=1, figures=1, maps=1),
    params:
        version=24,
        results=subpath(input.provenance, parent=True),
        logs=lambda wildcards: json.dumps(
            {rule.name: str(rule.log[0]) for rule in workflow.rules if rule.log}, sort_keys=True
        ),
    shell:
        """
        cocite report page {input.figures:q} \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --logs {params.logs:q} \
            --tables {output.tables:q} \
            --cards {output.cards:q} \
            --costs {output.costs:q} \
            --database {output.database:q} \
            --output {output.page:q} \
            >> {log:q} 2>&1
        """
