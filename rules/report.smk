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
        # For Snakemake alone, which makes it again after an edit: a command cannot hold a configuration of any length. A
        # function, since Snakemake takes words in braces for wildcards in a text.
        configuration=lambda wildcards: json.dumps(config),
        file=f"{RESULTS}/{FOR_PROVENANCE}",
        spaces=id_spaces(),
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
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
        queries="<results>/corpus/queries.parquet",
        pairs=tables_of_pairs(),
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
        pairs=json.dumps(PAIRS_OF, sort_keys=True),
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


rule draw_figures:
    input:
        curves=trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        graphs=expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=config["embeddings"]),
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=RANKINGS),
        triplets=expand(
            "<results>/triplets/{triplets}/{table}.parquet",
            triplets=named_sets(config),
            table=["collisions", "per_query"],
        ),
        counts="<results>/report/pair_counts.parquet",
        provenance="<results>/provenance.json",
    output:
        pairs=figure("pair_counts", "pairs of papers"),
        validation=figure("validation_curves", "validation curves"),
        link_prediction=figure("link_prediction", "link prediction"),
        bands=figure("band_quality", "neighbours by rank"),
        triplets=figure("triplets", "triplets"),
    log:
        "<logs>/report/figures.log",
    benchmark:
        "<benchmarks>/report/figures.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The demo's five figures took 252 MB and 3 s.
        mem_mb=megabytes(600, every=20),
        runtime=minutes(10, every=1),
    params:
        version=1,
        results=subpath(input.provenance, parent=True),
        pairs=json.dumps(PAIRS_OF, sort_keys=True),
        figures=subpath(output.pairs, parent=True),
    shell:
        """
        cocite report figures \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --pairs {params.pairs:q} \
            --output {params.figures:q} \
            >> {log:q} 2>&1
        """


rule choose_mapped_papers:
    input:
        tables=mapped_tables,
        corpus=corpus_of_map,
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
        corpus=option_of_corpus,
        settings=settings_of_map,
        tasks=labelled_tasks,
        only_queries=option_of_queries,
        seed=config["seed"],
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
        embeddings=mapped_vectors,
    output:
        points="<results>/report/maps/{map}/points/{model}-{seed}.parquet",
        scores="<results>/report/maps/{map}/scores/{model}-{seed}.parquet",
    log:
        "<logs>/report/maps/{map}/layout-{model}-{seed}.log",
    benchmark:
        "<benchmarks>/report/maps/{map}/layout-{model}-{seed}.jsonl"
    wildcard_constraints:
        model=either(
            model for entry in config["maps"].values() for model, _ in mapped_runs(config, entry.get("models"))
        ),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # By t-SNE, 2,729 papers (64 dimensions) took 318 MB and 10 s, 10,000 (768 dimensions) 545 MB and 39 s; by UMAP,
        # these took 760 MB and 23 s.
        mem_mb=laying_out_memory,
        runtime=laying_out_minutes,
    params:
        version=1,
        settings=settings_of_map,
        seed=config["seed"],
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


rule draw_map:
    input:
        papers="<results>/report/maps/{map}/papers.parquet",
        labels="<results>/report/maps/{map}/labels.parquet",
        points=lambda wildcards: on_map(wildcards.map, "points"),
        provenance="<results>/provenance.json",
    output:
        figure("map", "map of papers", path="map_{map}"),
    log:
        "<logs>/report/maps/{map}/draw.log",
    benchmark:
        "<benchmarks>/report/maps/{map}/draw.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The points of 6 models on a map of 2,729 papers took 245 MB and 1.4 s.
        mem_mb=megabytes(700, points=20),
        runtime=minutes(10, points=1),
    params:
        version=5,
        results=subpath(input.provenance, parent=True),
        seed=config["seed"],
    shell:
        """
        cocite report map \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --map {wildcards.map} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule draw_aspects:
    input:
        intents=expand("<results>/graph/{graph}/intent_counts.parquet", graph=ASPECT_GRAPHS),
        checks=expand("<results>/triplets/{triplets}/checks.parquet", triplets=sets_by_aspect(config)),
        provenance="<results>/provenance.json",
    output:
        figure("aspects", "intents and aspects"),
    log:
        "<logs>/report/aspects.log",
    benchmark:
        "<benchmarks>/report/aspects.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The counts of one graph and two sets took 212 MB and 1.2 s.
        mem_mb=megabytes(600),
        runtime=minutes(10),
    params:
        version=1,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report aspects \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule draw_spaces:
    input:
        scores=scored_by_aspect(),
        provenance="<results>/provenance.json",
    output:
        figure("spaces", "spaces by aspects"),
    log:
        "<logs>/report/spaces.log",
    benchmark:
        "<benchmarks>/report/spaces.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The scores of two models in five spaces, with three seeds each, took 223 MB and 1.1 s.
        mem_mb=megabytes(600, scores=20),
        runtime=minutes(10, scores=1),
    params:
        version=1,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report spaces \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule draw_trade:
    input:
        scores=scored_on_both_sides(),
        provenance="<results>/provenance.json",
    output:
        figure("trade", "short queries against documents"),
    log:
        "<logs>/report/trade.log",
    benchmark:
        "<benchmarks>/report/trade.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The scores of 5 models and baselines on three benchmarks took 214 MB and 1.1 s.
        mem_mb=megabytes(600, scores=20),
        runtime=minutes(10, scores=1),
    params:
        version=2,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report trade \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule draw_probes:
    input:
        scores=ranked_probes("scores.parquet"),
        provenance="<results>/provenance.json",
    output:
        figure("probes", "sets and losses of the probes"),
    log:
        "<logs>/report/probes.log",
    benchmark:
        "<benchmarks>/report/probes.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Three probes with 53 sets and losses took 221 MB and 2 s.
        mem_mb=megabytes(600, scores=20),
        runtime=minutes(10, scores=1),
    params:
        version=1,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report probes \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule write_page:
    input:
        scores=all_scored("scores"),
        failures=all_scored("failures"),
        reported=all_reported(),
        summaries=summaries(),
        documents=expand("<results>/evaluation/{benchmark}/documents.parquet", benchmark=config["benchmarks"]),
        fields=expand("<results>/evaluation/{benchmark}/document_fields.parquet", benchmark=with_fields_described()),
        over_tasks="<results>/evaluation/task_comparisons.parquet" if config["benchmarks"] else [],
        curves=trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        settings=trained("<results>/encoder/{model}/seed-{seed}/settings.json"),
        models=models_with_cards(),
        graphs=expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=config["embeddings"]),
        searches=measured_searches(),
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=RANKINGS),
        triplets=expand(
            "<results>/triplets/{triplets}/{table}.parquet",
            triplets=named_sets(config),
            table=["checks", "per_query"],
        ),
        intents=expand("<results>/graph/{graph}/intent_counts.parquet", graph=ASPECT_GRAPHS),
        probes=ranked_probes("scores.parquet"),
        leaks="<results>/corpus/leaks.parquet",
        statistics="<results>/report/corpus_statistics.parquet",
        figures=[
            rules.draw_figures.output,
            rules.draw_trade.output if all(SIDES) else [],
            rules.draw_probes.output if config["probes"] else [],
            rules.draw_spaces.output if BY_ASPECT else [],
            rules.draw_aspects.output if ASPECT_GRAPHS else [],
            expand("<results>/report/figures/map_{map}.svg", map=config["maps"]),
        ],
        maps=[file for name in config["maps"] for table in ("points", "scores") for file in on_map(name, table)],
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
    log:
        "<logs>/report/page.log",
    benchmark:
        "<benchmarks>/report/page.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The demo's took 232 MB and 3 s.
        mem_mb=megabytes(700, scores=20, failures=20, summaries=40, curves=20, figures=20, maps=30),
        runtime=minutes(10, scores=1, failures=1, summaries=1, figures=1, maps=1),
    params:
        version=15,
        results=subpath(input.provenance, parent=True),
        logs=logs_of_rules(),
    shell:
        """
        cocite report page {input.figures:q} \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --logs {params.logs:q} \
            --tables {output.tables:q} \
            --cards {output.cards:q} \
            --costs {output.costs:q} \
            --output {output.page:q} \
            >> {log:q} 2>&1
        """


rule write_views:
    input:
        "<results>/report/index.html",
        "<results>/report/id_spaces.parquet",
    output:
        "<results>/cocite.duckdb",
    log:
        "<logs>/report/views.log",
    benchmark:
        "<benchmarks>/report/views.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Views hold no rows: 152 MB and 1.2 s.
        mem_mb=megabytes(400),
        runtime=minutes(5),
    params:
        version=3,
        results=subpath(output[0], parent=True),
    shell:
        """
        cocite report views \
            --results {params.results:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
