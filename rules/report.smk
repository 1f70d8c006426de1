rule provenance:
    input:
        "<results>/corpus/manifest.json",
    output:
        "<results>/provenance.json",
    log:
        "<logs>/report/provenance.log",
    benchmark:
        "<benchmarks>/report/provenance.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # The configuration and a list of names: 95 MB.
        mem_mb=megabytes(300),
        runtime=minutes(5),
    params:
        version=2,
        configuration=json.dumps(config),
    shell:
        """
        cocite report provenance \
            --configuration {params.configuration:q} \
            --manifest {input:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule tabulate:
    input:
        scores=all_scored("scores"),
        failures=all_scored("failures"),
        summaries=summaries(),
        curves=trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        graphs=expand("<results>/biggraph/{embedding}/graph_scores.parquet", embedding=config["embeddings"]),
        searches=measured_searches(),
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=config["embeddings"]),
        triplets=expand(
            "<results>/triplets/{triplets}/{table}.parquet",
            triplets=config["triplets"],
            table=["checks", "per_query"],
        ),
        leaks="<results>/corpus/leaks.parquet",
        provenance="<results>/provenance.json",
    output:
        report(
            directory("<results>/report/tables"),
            patterns=["{name}.csv"],
            caption="../workflow/report/captions/tables.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
    log:
        "<logs>/report/tables.log",
    benchmark:
        "<benchmarks>/report/tables.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # The demo's took 237 MB and 2 s; a run on a task has some files of 4 kB.
        mem_mb=megabytes(700, every=20),
        runtime=minutes(10, every=1),
    params:
        version=9,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report tables \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
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
        figure=report(
            "<results>/report/figures/pair_counts.svg",
            caption="../workflow/report/captions/pair_counts.rst",
            category="Figures",
            labels={"figure": "pairs of papers"},
        ),
    log:
        "<logs>/report/corpus.log",
    benchmark:
        "<benchmarks>/report/corpus.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # Told its memory: 265 MB for 3,000 papers, 266 MB and 3 s for 40,000.
        mem_mb=megabytes(1000),
        runtime=minutes(10, papers=0.005, citations=0.005, pairs=0.005),
    params:
        version=1,
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
            --figure {output.figure:q} \
            >> {log:q} 2>&1
        """


rule draw_curves:
    input:
        curves=trained("<results>/encoder/{model}/seed-{seed}/training_curves.parquet"),
        graphs=expand("<results>/biggraph/{embedding}/graph_scores.parquet", embedding=config["embeddings"]),
        provenance="<results>/provenance.json",
    output:
        validation=report(
            "<results>/report/figures/validation_curves.svg",
            caption="../workflow/report/captions/validation_curves.rst",
            category="Figures",
            labels={"figure": "validation curves"},
        ),
        link_prediction=report(
            "<results>/report/figures/link_prediction.svg",
            caption="../workflow/report/captions/link_prediction.rst",
            category="Figures",
            labels={"figure": "link prediction"},
        ),
    log:
        "<logs>/report/curves.log",
    benchmark:
        "<benchmarks>/report/curves.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # The demo's took 225 MB and 2.4 s; a model has a file of 3 kB.
        mem_mb=megabytes(600, every=20),
        runtime=minutes(10, every=1),
    params:
        version=3,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report curves \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --validation {output.validation:q} \
            --link-prediction {output.link_prediction:q} \
            >> {log:q} 2>&1
        """


rule draw_checks:
    input:
        bands=expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=config["embeddings"]),
        triplets=expand(
            "<results>/triplets/{triplets}/{table}.parquet",
            triplets=config["triplets"],
            table=["collisions", "per_query"],
        ),
        provenance="<results>/provenance.json",
    output:
        bands=report(
            "<results>/report/figures/band_quality.svg",
            caption="../workflow/report/captions/band_quality.rst",
            category="Figures",
            labels={"figure": "neighbours by rank"},
        ),
        triplets=report(
            "<results>/report/figures/triplets.svg",
            caption="../workflow/report/captions/triplets.rst",
            category="Figures",
            labels={"figure": "triplets"},
        ),
    log:
        "<logs>/report/checks.log",
    benchmark:
        "<benchmarks>/report/checks.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # The demo's took 220 MB and 2 s; a set of triplets has files of 3 kB.
        mem_mb=megabytes(600, every=20),
        runtime=minutes(10, every=1),
    params:
        version=1,
        results=subpath(input.provenance, parent=True),
    shell:
        """
        cocite report checks \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --bands {output.bands:q} \
            --triplets {output.triplets:q} \
            >> {log:q} 2>&1
        """


rule draw_map:
    input:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        embeddings=lambda wildcards: [
            *expand(
                "<results>/encoder/{model}/seed-0/embeddings/{benchmark}.parquet",
                model=UNTRAINED,
                benchmark=wildcards.benchmark,
            ),
            *trained("<results>/encoder/{model}/seed-{seed}/embeddings/" f"{wildcards.benchmark}.parquet"),
        ],
        provenance="<results>/provenance.json",
    output:
        report(
            "<results>/report/figures/{benchmark}/map.svg",
            caption="../workflow/report/captions/map.rst",
            category="Figures",
            labels={"figure": "map of the held-out papers"},
        ),
    log:
        "<logs>/report/map-{benchmark}.log",
    benchmark:
        "<benchmarks>/report/map-{benchmark}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # 7 models' vectors of the demo (7 MB) took 347 MB and 9 s, 2 models' of hci 368 MB and 10 s.
        mem_mb=megabytes(700, documents=10, embeddings=5),
        runtime=minutes(10, embeddings=0.2),
    params:
        version=3,
        results=subpath(input.provenance, parent=True),
        seed=config["seed"],
    shell:
        """
        cocite report map \
            --results {params.results:q} \
            --provenance {input.provenance:q} \
            --benchmark {wildcards.benchmark} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule sum_costs:
    input:
        figures(),
        "<results>/report/tables",
    output:
        "<results>/report/costs.parquet",
    log:
        "<logs>/report/costs.log",
    benchmark:
        "<benchmarks>/report/costs.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # A few numbers a job: 181 MB and 1 s for the demo.
        mem_mb=megabytes(400),
        runtime=minutes(5),
    params:
        version=1,
        benchmarks=benchmark_files(),
    shell:
        """
        cocite report costs \
            --benchmarks {params.benchmarks:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule write_page:
    input:
        figures=figures(),
        tables="<results>/report/tables",
        statistics="<results>/report/corpus_statistics.parquet",
        costs="<results>/report/costs.parquet",
        provenance="<results>/provenance.json",
    output:
        "<results>/report/index.html",
    log:
        "<logs>/report/page.log",
    benchmark:
        "<benchmarks>/report/page.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # The demo's figures and tables took 196 MB and 1 s.
        mem_mb=megabytes(400, figures=10, tables=10),
        runtime=minutes(5, figures=1),
    params:
        version=5,
    shell:
        """
        cocite report page {input.figures:q} \
            --tables {input.tables:q} \
            --statistics {input.statistics:q} \
            --costs {input.costs:q} \
            --provenance {input.provenance:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule write_views:
    input:
        "<results>/report/index.html",
    output:
        "<results>/cocite.duckdb",
    log:
        "<logs>/report/views.log",
    benchmark:
        "<benchmarks>/report/views.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # Views hold no rows: 152 MB and 1.2 s.
        mem_mb=megabytes(400),
        runtime=minutes(5),
    params:
        version=3,
        results=lambda wildcards, output: Path(output[0]).parent,
    shell:
        """
        cocite report views \
            --results {params.results:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
