rule train_baseline:
    input:
        papers=sources_of_baseline("trained_on", "papers"),
        citations=sources_of_baseline("trained_on", "citations"),
        baseline=sources_of_baseline("trained_on", "baseline"),
        paper_vectors=sources_of_baseline("trained_on", "paper_vectors"),
        edges=sources_of_baseline("trained_on", "edges"),
        examples=sources_of_baseline("trained_on", "examples"),
        texts=sources_of_baseline("trained_on", "texts"),
        queries="<results>/corpus/queries.parquet",
    output:
        directory("<results>/baselines/{baseline}/seed-{seed}/model"),
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/train.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/train.jsonl"
    wildcard_constraints:
        baseline=either(trained_entries(config)),
    conda:
        "../envs/pipeline.yaml"
    threads: lambda wildcards: kind_of_baseline(wildcards.baseline).training_cores
    resources:
        # A class of `baselines/methods` says what its training takes, by the size of what it reads.
        mem_mb=by_baseline("training_memory"),
        runtime=by_baseline("training_minutes"),
    params:
        version=1,
        settings=baseline_settings,
        sources=baseline_sources("papers", "citations", "baseline", "paper_vectors", "edges", "examples", "texts"),
        run_seed=config["seed"],
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
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        model=trained_baseline,
        grid=grid_of_baseline,
        files=files_of_baseline,
        document_vectors=sources_of_baseline("embeds_with", "document_vectors"),
        document_papers=sources_of_baseline("embeds_with", "document_papers"),
        paper_vectors=sources_of_baseline("embeds_with", "paper_vectors"),
        edges=sources_of_baseline("embeds_with", "edges"),
        citations=sources_of_baseline("embeds_with", "citations"),
    output:
        "<results>/baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed-{benchmark}.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed-{benchmark}.jsonl"
    wildcard_constraints:
        baseline=either(baselines_with_vectors(config)),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=by_baseline("embedding_memory"),
        runtime=by_baseline("embedding_minutes"),
    params:
        version=1,
        table="documents",
        settings=baseline_settings,
        model=lambda wildcards, input: ["--model", str(input.model)] if input.model else [],
        sources=baseline_sources("document_vectors", "document_papers", "paper_vectors", "edges", "citations"),
        run_seed=config["seed"],
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
        model=trained_baseline,
        grid=grid_of_baseline,
        files=files_of_baseline,
    output:
        "<results>/baselines/{baseline}/seed-{seed}/papers/{bucket}.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed-papers-{bucket}.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed-papers-{bucket}.jsonl"
    params:
        table="papers",
        sources="{}",


rule draw_validation:
    input:
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
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
        seed=config["seed"],
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
        documents="<results>/baselines/validation_queries/documents.parquet",
        model=trained_baseline,
        grid=grid_of_baseline,
        files=files_of_baseline,
        document_vectors=sources_of_baseline("embeds_with", "document_vectors"),
        document_papers=sources_of_baseline("embeds_with", "document_papers"),
        paper_vectors=sources_of_baseline("embeds_with", "paper_vectors"),
        edges=sources_of_baseline("embeds_with", "edges"),
        citations=sources_of_baseline("embeds_with", "citations"),
    output:
        "<results>/baselines/{baseline}/seed-{seed}/validation.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/embed-validation.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/embed-validation.jsonl"
    wildcard_constraints:
        baseline=either([*baselines_with_vectors(config), *trained_entries(config)]),
    params:
        version=1,


rule choose_point:
    input:
        judgements="<results>/baselines/validation_queries/judgements.parquet",
        models=points("<results>/baselines/{baseline}/seed-{seed}/model"),
        vectors=points("<results>/baselines/{baseline}/seed-{seed}/validation.parquet"),
    output:
        model=directory("<results>/baselines/{baseline}/seed-{seed}/model"),
        grid="<results>/baselines/{baseline}/seed-{seed}/grid.parquet",
    log:
        "<logs>/baselines/{baseline}/seed-{seed}/choose.log",
    benchmark:
        "<benchmarks>/baselines/{baseline}/seed-{seed}/choose.jsonl"
    wildcard_constraints:
        baseline=either(GRIDS),
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
