rule count_cocitations:
    input:
        citations="<results>/corpus/citations/{bucket}.parquet",
        queries="<results>/corpus/queries.parquet",
    output:
        temp(directory("<results>/graph/{graph}/counted/{bucket}")),
    log:
        "<logs>/graph/{graph}/count-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/count-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="cocitation"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        version=1,
        pairs=lookup(within=config, dpath="graphs/{graph}/pairs"),
        buckets=len(BUCKETS),
    shell:
        """
        cocite graph count \
            --citations {input.citations:q} \
            --queries {input.queries:q} \
            --pairs {params.pairs} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule merge_cocitations:
    input:
        expand("<results>/graph/{{graph}}/counted/{counted}", counted=BUCKETS),
    output:
        "<results>/graph/{graph}/cocitations/{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/merge-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/merge-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="cocitation"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        version=1,
    shell:
        """
        cocite graph merge {input:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule cocitation_edges:
    input:
        "<results>/graph/{graph}/cocitations/{bucket}.parquet",
    output:
        "<results>/graph/{graph}/edges/{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/edges-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/edges-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="cocitation"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    params:
        version=1,
        min_count=lookup(within=config, dpath="graphs/{graph}/min_count"),
    shell:
        """
        cocite graph cocitation-edges \
            --cocitations {input:q} \
            --min-count {params.min_count} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule citation_edges:
    input:
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
        queries="<results>/corpus/queries.parquet",
    output:
        "<results>/graph/{graph}/edges/{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/edges-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/edges-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="citation"),
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        version=1,
        direction=lambda wildcards: ("directed" if config["graphs"][wildcards.graph]["directed"] else "undirected"),
        buckets=len(BUCKETS),
    shell:
        """
        cocite graph citation-edges {input.citations:q} \
            --queries {input.queries:q} \
            --{params.direction} \
            --bucket {wildcards.bucket} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
