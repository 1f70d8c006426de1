rule sample_from_neighbours:
    input:
        neighbours=lambda wildcards: expand(
            "<results>/neighbours/{embedding}/neighbours.parquet",
            embedding=config["triplets"][wildcards.triplets]["embedding"],
        ),
        queries="<results>/corpus/queries.parquet",
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
    output:
        triplets="<results>/triplets/{triplets}/triplets.parquet",
        omissions="<results>/triplets/omissions/{triplets}.parquet",
        settings="<results>/triplets/{triplets}/settings.json",
    log:
        "<logs>/triplets/{triplets}/sample.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/sample.jsonl"
    wildcard_constraints:
        triplets=named("triplets", sampler="neighbours"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, neighbours=8, papers=0.2),
        runtime=60,
    params:
        version=1,
        settings=settings("triplets", "triplets", "sampler", "embedding", "group"),
        seed=config["seed"],
    shell:
        """
        cocite triplets sample-neighbours {input.papers:q} \
            --neighbours {input.neighbours:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --output {output.triplets:q} \
            --omissions {output.omissions:q} \
            --written-settings {output.settings:q} \
            >> {log:q} 2>&1
        """


rule sample_from_citations:
    input:
        edges=lambda wildcards: buckets(
            "<results>/graph/{graph}/edges/{bucket}.parquet", graph=config["triplets"][wildcards.triplets]["graph"]
        ),
        queries="<results>/corpus/queries.parquet",
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
    output:
        triplets="<results>/triplets/{triplets}/triplets.parquet",
        omissions="<results>/triplets/omissions/{triplets}.parquet",
        settings="<results>/triplets/{triplets}/settings.json",
    log:
        "<logs>/triplets/{triplets}/sample.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/sample.jsonl"
    wildcard_constraints:
        triplets=named("triplets", sampler="citations"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, edges=3, papers=0.2),
        runtime=60,
    params:
        version=2,
        edges=folder_of("edges"),
        settings=settings("triplets", "triplets", "sampler", "graph", "group"),
        seed=config["seed"],
    shell:
        """
        cocite triplets sample-citations {input.papers:q} \
            --edges {params.edges:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --output {output.triplets:q} \
            --omissions {output.omissions:q} \
            --written-settings {output.settings:q} \
            >> {log:q} 2>&1
        """


rule materialise_training:
    input:
        triplets="<results>/triplets/{triplets}/triplets.parquet",
        group=lambda wildcards: expand(
            "<results>/triplets/{member}/triplets.parquet", member=group_of(wildcards.triplets)
        ),
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
    output:
        "<results>/triplets/{triplets}/training_texts.parquet",
    log:
        "<logs>/triplets/{triplets}/materialise.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/materialise.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, triplets=500, papers=0.2),
        runtime=60,
    params:
        version=1,
        papers=folder_of("papers"),
        seed=config["seed"],
    shell:
        """
        cocite triplets materialise {input.group:q} \
            --triplets {input.triplets:q} \
            --papers {params.papers:q} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule materialise_validation:
    input:
        group=lambda wildcards: expand(
            "<results>/triplets/{member}/triplets.parquet",
            member=[name for name, entry in config["triplets"].items() if entry["group"] == wildcards.group],
        ),
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
    output:
        "<results>/triplets/validation_{group}.parquet",
    log:
        "<logs>/triplets/validation_{group}.log",
    benchmark:
        "<benchmarks>/triplets/validation_{group}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, group=500, papers=0.2),
        runtime=60,
    params:
        version=1,
        papers=folder_of("papers"),
        seed=config["seed"],
    shell:
        """
        cocite triplets materialise-validation {input.group:q} \
            --papers {params.papers:q} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
