rule prepare_holdout:
    input:
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
        queries="<results>/corpus/queries.parquet",
    output:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        labels="<results>/evaluation/{benchmark}/labels.parquet",
        reviewers="<results>/evaluation/{benchmark}/reviewers.parquet",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=named("benchmarks", kind="holdout"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        version=2,
        papers=folder_of("papers"),
        citations=folder_of("citations"),
        settings=settings("benchmarks", "benchmark", only=["positives", "negatives", "min_cocitations"]),
        seed=config["seed"],
    shell:
        """
        cocite evaluation prepare-holdout \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --documents {output.documents:q} \
            --judgements {output.judgements:q} \
            --labels {output.labels:q} \
            --reviewers {output.reviewers:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule prepare_scirepeval:
    input:
        folder=benchmark_folder,
    output:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        labels="<results>/evaluation/{benchmark}/labels.parquet",
        reviewers="<results>/evaluation/{benchmark}/reviewers.parquet",
        omissions="<results>/evaluation/omissions/{benchmark}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/prepare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/prepare.jsonl"
    wildcard_constraints:
        benchmark=named("benchmarks", kind="scirepeval"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(2000, folder=3),
        runtime=60,
    params:
        version=2,
    shell:
        """
        cocite evaluation prepare-scirepeval {input.folder:q} \
            --documents {output.documents:q} \
            --judgements {output.judgements:q} \
            --labels {output.labels:q} \
            --reviewers {output.reviewers:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule score_model:
    input:
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        labels="<results>/evaluation/{benchmark}/labels.parquet",
        reviewers="<results>/evaluation/{benchmark}/reviewers.parquet",
        embeddings="<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
    output:
        scores="<results>/evaluation/{benchmark}/scores/{model}-{seed}.parquet",
        outcomes="<results>/evaluation/{benchmark}/outcomes/{model}-{seed}.parquet",
    log:
        "<logs>/evaluation/{benchmark}/score-{model}-{seed}.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/score-{model}-{seed}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, embeddings=5),
        runtime=lambda wildcards, attempt: 1440 * attempt,
    params:
        version=2,
        mode=lambda wildcards: config["benchmarks"][wildcards.benchmark].get("mode", "correct"),
        largest_missing=lookup(within=config, dpath="benchmarks/{benchmark}/largest_missing"),
        seeds=lookup(within=config, dpath="benchmarks/{benchmark}/seeds"),
    shell:
        """
        cocite evaluation score {params.seeds} \
            --benchmark {wildcards.benchmark} \
            --model {wildcards.model} \
            --training-seed {wildcards.seed} \
            --mode {params.mode} \
            --largest-missing {params.largest_missing} \
            --threads {threads} \
            --judgements {input.judgements:q} \
            --labels {input.labels:q} \
            --reviewers {input.reviewers:q} \
            --embeddings {input.embeddings:q} \
            --scores {output.scores:q} \
            --outcomes {output.outcomes:q} \
            >> {log:q} 2>&1
        """


rule score_random:
    input:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        labels="<results>/evaluation/{benchmark}/labels.parquet",
        reviewers="<results>/evaluation/{benchmark}/reviewers.parquet",
    output:
        scores="<results>/evaluation/{benchmark}/scores/random-0.parquet",
        outcomes="<results>/evaluation/{benchmark}/outcomes/random-0.parquet",
    log:
        "<logs>/evaluation/{benchmark}/score-random.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/score-random.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, documents=4),
        runtime=lambda wildcards, attempt: 1440 * attempt,
    params:
        version=2,
        mode=lambda wildcards: config["benchmarks"][wildcards.benchmark].get("mode", "correct"),
        seeds=lookup(within=config, dpath="benchmarks/{benchmark}/seeds"),
        seed=config["seed"],
    shell:
        """
        cocite evaluation score-random {params.seeds} \
            --benchmark {wildcards.benchmark} \
            --mode {params.mode} \
            --seed {params.seed} \
            --threads {threads} \
            --documents {input.documents:q} \
            --judgements {input.judgements:q} \
            --labels {input.labels:q} \
            --reviewers {input.reviewers:q} \
            --scores {output.scores:q} \
            --outcomes {output.outcomes:q} \
            >> {log:q} 2>&1
        """


rule score_bm25:
    input:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        labels="<results>/evaluation/{benchmark}/labels.parquet",
        reviewers="<results>/evaluation/{benchmark}/reviewers.parquet",
    output:
        scores="<results>/evaluation/{benchmark}/scores/bm25-0.parquet",
        outcomes="<results>/evaluation/{benchmark}/outcomes/bm25-0.parquet",
    log:
        "<logs>/evaluation/{benchmark}/score-bm25.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/score-bm25.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, documents=4),
        runtime=120,
    params:
        version=2,
        seeds=lookup(within=config, dpath="benchmarks/{benchmark}/seeds"),
    shell:
        """
        cocite evaluation score-bm25 {params.seeds} \
            --benchmark {wildcards.benchmark} \
            --documents {input.documents:q} \
            --judgements {input.judgements:q} \
            --labels {input.labels:q} \
            --reviewers {input.reviewers:q} \
            --scores {output.scores:q} \
            --outcomes {output.outcomes:q} \
            >> {log:q} 2>&1
        """


rule average_scores:
    input:
        scored("scores"),
    output:
        "<results>/evaluation/{benchmark}/averages.parquet",
    log:
        "<logs>/evaluation/{benchmark}/average.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/average.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        version=1,
    shell:
        """
        cocite evaluation average {input:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule compare_models:
    input:
        scored("outcomes"),
    output:
        "<results>/evaluation/{benchmark}/comparisons.parquet",
    log:
        "<logs>/evaluation/{benchmark}/compare.log",
    benchmark:
        "<benchmarks>/evaluation/{benchmark}/compare.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
    params:
        version=1,
        resamples=lookup(within=config, dpath="benchmarks/{benchmark}/resamples"),
        seed=config["seed"],
    shell:
        """
        cocite evaluation compare {input:q} \
            --resamples {params.resamples} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
