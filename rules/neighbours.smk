rule search_neighbours:
    input:
        vectors="<results>/biggraph/{embedding}/graph_embeddings.parquet",
        queries="<results>/corpus/queries.parquet",
        papers=searched_papers,
    output:
        neighbours="<results>/neighbours/{embedding}/neighbours.parquet",
        omissions="<results>/neighbours/omissions/{embedding}.parquet",
    log:
        "<logs>/neighbours/{embedding}/search.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/search.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=megabytes(1000, vectors=6, papers=0.2),
        runtime=240,
    params:
        version=1,
        metric=lookup(within=config, dpath="embeddings/{embedding}/neighbours/metric"),
        k=lookup(within=config, dpath="embeddings/{embedding}/neighbours/k"),
        state=state("neighbours/{embedding}"),
    shell:
        """
        cocite neighbours search {input.papers:q} \
            --vectors {input.vectors:q} \
            --queries {input.queries:q} \
            --metric {params.metric} \
            --k {params.k} \
            --threads {threads} \
            --state {params.state:q} \
            --output {output.neighbours:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
