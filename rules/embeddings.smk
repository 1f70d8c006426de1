

rule import_edges:
    input:
        edges=edges_of_embedding,
    output:
        directory("<results>/embeddings/{embedding}/imported"),
    log:
        "<logs>/embeddings/{embedding}/import.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/import.jsonl"
    wildcard_constraints:
        embedding=named("embeddings", **{"import": "arrow"}),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 2 million edges (9 MB) took 381 MB and 2.4 s, 8 million (35 MB) 429 MB and 6 s, 100 million 1.0 GB and 33 s.
        mem_mb=megabytes(500, edges=4),
        runtime=minutes(10, edges=0.02),
    params:
        version=1,
        direction=direction_of_edges,
        settings=settings("embeddings", "embedding", EdgeSettings),
        seed=config["seed"],
    shell:
        """
        cocite embeddings import {input.edges:q} \
            --{params.direction} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule split_edges:
    input:
        edges=edges_of_embedding,
    output:
        training=temp("<results>/embeddings/{embedding}/training.tsv"),
        holdout=temp("<results>/embeddings/{embedding}/holdout.tsv"),
    log:
        "<logs>/embeddings/{embedding}/split.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/split.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 408 MB for 0.1 MB, 456 MB and 4 s for 1.6.
        mem_mb=megabytes(1500),
        runtime=minutes(10, edges=0.1),
    params:
        version=3,
        direction=direction_of_edges,
        settings=settings("embeddings", "embedding", EdgeSettings),
        seed=config["seed"],
    shell:
        """
        cocite embeddings split {input.edges:q} \
            --{params.direction} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --training {output.training:q} \
            --holdout-edges {output.holdout:q} \
            >> {log:q} 2>&1
        """


rule import_tsv:
    input:
        training="<results>/embeddings/{embedding}/training.tsv",
        holdout="<results>/embeddings/{embedding}/holdout.tsv",
    output:
        directory("<results>/embeddings/{embedding}/imported"),
    log:
        "<logs>/embeddings/{embedding}/import.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/import.jsonl"
    wildcard_constraints:
        embedding=named("embeddings", **{"import": "tsv"}),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 0.7 MB took 377 MB and 9 s, hci's 4.7 MB 399 MB and 49 s, 10 MB of 40,000 papers 394 MB and 82 s.
        mem_mb=megabytes(800, training=10, holdout=10),
        runtime=minutes(20, training=0.5, holdout=0.5),
    params:
        version=2,
        partitions=lookup(within=config, dpath="embeddings/{embedding}/partitions"),
        seed=config["seed"],
    shell:
        """
        cocite embeddings import-tsv \
            --training {input.training:q} \
            --holdout-edges {input.holdout:q} \
            --partitions {params.partitions} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule train_graph_embedding:
    input:
        imported="<results>/embeddings/{embedding}/imported",
    output:
        vectors="<results>/embeddings/{embedding}/graph_embeddings.parquet",
        scores="<results>/embeddings/{embedding}/graph_scores.parquet",
        settings="<results>/embeddings/{embedding}/settings.json",
        omissions="<results>/embeddings/omissions/{embedding}.parquet",
    log:
        "<logs>/embeddings/{embedding}/train.log",
    benchmark:
        "<benchmarks>/embeddings/{embedding}/train.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: lambda wildcards: engine_of(wildcards).threads
    resources:
        # 250,000 papers with 1.9 million edges (36 MB) took 1.0 GB in 64 dimensions and 1.5 GB in 256; 40,000 papers
        # with 2 million (35 MB) took 1.0 GB in 64. An epoch of either in 64 dimensions took 62 s.
        mem_mb=graph_training_memory,
        runtime=graph_training_minutes,
    params:
        version=2,
        settings=settings("embeddings", "embedding", AnyEngine),
        seed=config["seed"],
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
