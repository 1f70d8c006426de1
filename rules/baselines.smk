TRAINED_ON = ("papers", "citations", "baseline", "paper_vectors", "edges", "examples", "texts")
EMBEDS_WITH = ("document_vectors", "joined_vectors", "document_papers", "paper_vectors", "edges", "citations")
EMBEDDING = {"model": plan.baselines.model, "grid": plan.baselines.grid, "files": plan.baselines.files}
EMBEDDING |= {name: plan.baselines.sources("embeds_with", name) for name in EMBEDS_WITH}


rule train_baseline:
    input:
        **{name: plan.baselines.sources("trained_on", name) for name in TRAINED_ON},
        queries="<results>/corpus/queries.parquet",
    output:
        directory("<results>/baselines/{baseline}/seed-{seed}/model"),
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/train.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/train.jsonl"
    wildcard_constraints:
        baseline=either(plan.baselines.trained),
    conda:
        "../envs/pipeline.yaml"
    threads: lambda wildcards: plan.baselines.entries[wildcards.baseline].training_cores
    resources:
        # A class of `baselines/methods` estimates its training from the size of its inputs.
        mem_mb=plan.baselines.by_inputs("training_memory"),
        runtime=plan.baselines.by_inputs("training_minutes"),
    params:
        version=2,
        settings=plan.baselines.settings,
        sources=plan.baselines.sources_as_json(*TRAINED_ON),
        run_seed=configuration.run_seed,
        state=state("baselines/{baseline}/seed-{seed}"),
    shell:
        """
        cocite baselines train \
            --settings {params.settings:q} \
            --sources {params.sources:q} \
            --queries {input.queries:q} \
            --seed {params.run_seed} \
            --training-seed {wildcards.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule embed_by_baseline:
    input:
        **EMBEDDING,
        documents="<results>/evaluation/{benchmark}/documents.parquet",
    output:
        "<results>/baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed-{benchmark}.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed-{benchmark}.jsonl"
    wildcard_constraints:
        baseline=either(plan.baselines.with_vectors),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=plan.baselines.by_inputs("embedding_memory"),
        runtime=plan.baselines.by_inputs("embedding_minutes"),
    params:
        version=1,
        table="documents",
        settings=plan.baselines.settings,
        model=option("--model"),
        sources=plan.baselines.sources_as_json(*EMBEDS_WITH),
        run_seed=configuration.run_seed,
    shell:
        """
        cocite baselines embed {input.documents:q} \
            --table {params.table} \
            --settings {params.settings:q} \
            {params.model:q} \
            --sources {params.sources:q} \
            --seed {params.run_seed} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule embed_by_baseline as embed_papers_by_baseline with:
    input:
        documents="<results>/corpus/papers/{bucket}.parquet",
        model=plan.baselines.model,
        grid=plan.baselines.grid,
        files=plan.baselines.files,
        document_vectors=plan.baselines.sources("embeds_with", "document_vectors"),
        joined_vectors=plan.baselines.sources("embeds_with", "joined_vectors"),
    output:
        "<results>/baselines/{baseline}/seed-{seed}/papers/{bucket}.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed_papers-{bucket}.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed_papers-{bucket}.jsonl"
    params:
        version=2,
        table="papers",
        sources=plan.baselines.sources_as_json("document_vectors", "joined_vectors"),


rule draw_validation:
    input:
        papers=plan.corpus.papers(),
        citations=plan.corpus.citations(),
        queries="<results>/corpus/queries.parquet",
    output:
        documents="<results>/baselines/validation_queries/documents.parquet",
        judgements="<results>/baselines/validation_queries/judgements.parquet",
    log:
        "<logs>/baselines/validation_queries.log",
    benchmark:
        "<benchmarks>/baselines/validation_queries.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Papers and citations come some thousand at a time; 20,000 papers are held.
        mem_mb=megabytes(1000),
        runtime=minutes(20, papers=0.02, citations=0.02),
    params:
        version=1,
        papers=folders_of("papers"),
        citations=folders_of("citations"),
        seed=configuration.run_seed,
    shell:
        """
        cocite baselines draw-validation \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --queries {input.queries:q} \
            --seed {params.seed} \
            --documents {output.documents:q} \
            --judgements {output.judgements:q} \
            >> {log:q} 2>&1
        """


use rule embed_by_baseline as embed_validation with:
    input:
        **EMBEDDING,
        documents="<results>/baselines/validation_queries/documents.parquet",
    output:
        "<results>/baselines/{baseline}/seed-{seed}/validation.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed-validation.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed-validation.jsonl"
    wildcard_constraints:
        baseline=either([*plan.baselines.with_vectors, *plan.baselines.trained]),
    params:
        version=1,


rule choose_point:
    input:
        judgements="<results>/baselines/validation_queries/judgements.parquet",
        models=plan.baselines.points("<results>/baselines/{baseline}/seed-{seed}/model"),
        vectors=plan.baselines.points("<results>/baselines/{baseline}/seed-{seed}/validation.parquet"),
    output:
        model=directory("<results>/baselines/{baseline}/seed-{seed}/model"),
        grid="<results>/baselines/{baseline}/seed-{seed}/grid.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/choose.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/choose.jsonl"
    wildcard_constraints:
        baseline=either(plan.baselines.with_grids),
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The vectors of one point are in memory at a time.
        mem_mb=megabytes(500, vectors=3),
        runtime=minutes(20, vectors=0.1, models=0.01),
    params:
        version=1,
    shell:
        """
        cocite baselines choose {input.models:q} {input.vectors:q} \
            --judgements {input.judgements:q} \
            --grid {output.grid:q} \
            --output {output.model:q} \
            >> {log:q} 2>&1
        """
