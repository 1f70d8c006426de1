from cocite.config.embeddings import AnyEngine, edge_settings


rule import_edges:
    input:
        edges=lambda wildcards: plan.graph.edges(configuration.embeddings[wildcards.embedding].graph),
    output:
        directory("<results>/embeddings/{embedding}/imported"),
    log:
        "<logs>/embeddings/{embedding}/import.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/import.jsonl"
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 2 million edges (9 MB) took 381 MB and 2.4 s, 8 million (35 MB) 429 MB and 6 s, 100 million 1.0 GB and 33 s.
        # As published, hci's 4.7 MB of lines took 456 MB and 53 s, 10 MB of 40,000 papers 86 s; lines have 3.3 times the size.
        mem_mb=plan.graph.by_import(megabytes(1500, edges=35), megabytes(500, edges=4)),
        runtime=plan.graph.by_import(minutes(30, edges=2), minutes(10, edges=0.02)),
    params:
        version=1,
        direction=lambda wildcards: (
            "directed" if plan.graph.is_directed(configuration.embeddings[wildcards.embedding].graph) else "undirected"
        ),
        settings=lambda wildcards: as_text(edge_settings(configuration.embeddings[wildcards.embedding])),
        seed=configuration.run_seed,
    shell:
        """
        cocite embeddings import {input.edges:q} \
            --{params.direction} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule train_graph_embedding:
    input:
        imported="<results>/embeddings/{embedding}/imported",
        files=lambda wildcards: list(map(str, configuration.embeddings[wildcards.embedding].files)),
    output:
        vectors="<results>/embeddings/{embedding}/graph_embeddings.parquet",
        scores="<results>/embeddings/{embedding}/graph_scores.parquet",
        settings="<results>/embeddings/{embedding}/settings.json",
        omissions="<results>/embeddings/omissions/{embedding}.parquet",
    log:
        "<logs>/embeddings/{embedding}/train.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/train.jsonl"
    priority: 1  # the longest jobs start first
    conda:
        "../envs/pipeline.yaml"
    threads: value("embeddings", "embedding", "cores")
    resources:
        # 250,000 papers with 1.9 million edges (36 MB) took 1.0 GB in 64 dimensions and 1.5 GB in 256; 40,000 papers
        # with 2 million (35 MB) took 1.0 GB in 64. An epoch of either in 64 dimensions took 62 s.
        mem_mb=plan.graph.training_memory,
        runtime=plan.graph.training_minutes,
        gpu=lambda wildcards: configuration.embeddings[wildcards.embedding].devices if plan.with_gpu else 0,
    params:
        version=3,
        settings=settings("embeddings", "embedding", AnyEngine),
        seed=configuration.run_seed,
        state=state("embeddings/{embedding}"),
    shell:
        """
        cocite embeddings train {input.imported:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --state {params.state:q} \
            --vectors {output.vectors:q} \
            --scores {output.scores:q} \
            --written-settings {output.settings:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
