from cocite.config.embeddings import IndexSettings, Links, SearchSettings, WalkSettings
from cocite.config.mining import SearchedDocuments


rule build_index:
    input:
        vectors="<results>/embeddings/{embedding}/graph_embeddings.parquet",
        papers=plan.neighbours.searched_papers,
    output:
        directory("<results>/neighbours/{embedding}/index"),
    log:
        "<logs>/neighbours/{embedding}/index.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/index.jsonl"
    wildcard_constraints:
        embedding=either(plan.neighbours.approximate),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 1.1 MB of vectors took 293 MB and 2 s as lists, 315 MB and 1.7 s as links; 24 MB as lists 374 MB and 2.5 s.
        mem_mb=plan.neighbours.index_memory,
        runtime=minutes(20, vectors=0.05),
    params:
        version=1,
        settings=plan.neighbours.search_settings(IndexSettings),
        seed=configuration.run_seed,
    shell:
        """
        cocite neighbours index {input.papers:q} \
            --vectors {input.vectors:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule search_neighbours:
    input:
        vectors="<results>/embeddings/{embedding}/graph_embeddings.parquet",
        queries="<results>/corpus/queries.parquet",
        papers=plan.neighbours.searched_papers,
        index=lambda wildcards: (
            "<results>/neighbours/{embedding}/index" if wildcards.embedding in plan.neighbours.approximate else []
        ),
    output:
        neighbours="<results>/neighbours/{embedding}/neighbours/{bucket}.parquet",
        omissions="<results>/neighbours/omissions/{embedding}_{bucket}.parquet",
    log:
        "<logs>/neighbours/{embedding}/search-{bucket}.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/search-{bucket}.jsonl"
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 0.6 GB for 500,000 vectors and for ten times as many, 6.5 s on two threads (docs/speed.md).
        mem_mb=plan.neighbours.search_memory,
        runtime=plan.neighbours.search_minutes,
    params:
        version=2,
        index=option("--index"),
        settings=plan.neighbours.search_settings(SearchSettings),
        jobs=lambda wildcards: plan.neighbours.rankings[wildcards.embedding].query_jobs,
        state=state("neighbours/{embedding}/{bucket}"),
    shell:
        """
        cocite neighbours search {input.papers:q} \
            --vectors {input.vectors:q} \
            --queries {input.queries:q} \
            {params.index:q} \
            --settings {params.settings:q} \
            --shard {wildcards.bucket} {params.jobs} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --state {params.state:q} \
            --output {output.neighbours:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule build_adjacency:
    input:
        edges=lambda wildcards: plan.graph.edges(configuration.walks[wildcards.embedding].graph),
    output:
        temp(directory("<results>/neighbours/{embedding}/adjacency")),
    log:
        "<logs>/neighbours/{embedding}/adjacency.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/adjacency.jsonl"
    wildcard_constraints:
        embedding=named("walks"),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 297 MB and 2.3 s for a million edges (3 MB), 954 MB for 95 million (274 MB) within 1,000 MB.
        mem_mb=plan.neighbours.adjacency_memory,
        runtime=minutes(10, edges=0.02),
    params:
        version=1,
        settings=settings("walks", "embedding", Links),
    shell:
        """
        cocite neighbours adjacency {input.edges:q} \
            --settings {params.settings:q} \
            --memory-mb {resources.mem_mb} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule walk_neighbours:
    input:
        adjacency="<results>/neighbours/{embedding}/adjacency",
        queries="<results>/corpus/queries.parquet",
        papers=plan.neighbours.searched_papers,
    output:
        neighbours="<results>/neighbours/{embedding}/neighbours/{bucket}.parquet",
        omissions="<results>/neighbours/omissions/{embedding}_{bucket}.parquet",
    log:
        "<logs>/neighbours/{embedding}/walk-{bucket}.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/walk-{bucket}.jsonl"
    wildcard_constraints:
        embedding=named("walks"),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # 100 queries among 100,000 papers took 312 MB and 4 s, 2,000 among 10 million 1.6 GB, 1.1 GB of it links.
        mem_mb=plan.neighbours.walk_memory,
        runtime=plan.neighbours.walk_minutes,
    params:
        version=1,
        settings=settings("walks", "embedding", WalkSettings),
        jobs=lambda wildcards: plan.neighbours.rankings[wildcards.embedding].query_jobs,
        state=state("neighbours/{embedding}/{bucket}"),
    shell:
        """
        cocite neighbours walk {input.papers:q} \
            --adjacency {input.adjacency:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --shard {wildcards.bucket} {params.jobs} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --state {params.state:q} \
            --output {output.neighbours:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule measure_search:
    input:
        vectors="<results>/embeddings/{embedding}/graph_embeddings.parquet",
        queries="<results>/corpus/queries.parquet",
        papers=plan.neighbours.searched_papers,
        index="<results>/neighbours/{embedding}/index",
    output:
        "<results>/neighbours/{embedding}/search_quality.parquet",
    log:
        "<logs>/neighbours/{embedding}/measure.log",
    benchmark:
        "<benchmarks>/neighbours/{embedding}/measure.jsonl"
    wildcard_constraints:
        embedding=either(plan.neighbours.approximate),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 1.1 MB of vectors took 359 MB and 3 s, 24 MB took 350 MB and 2.4 s.
        mem_mb=plan.neighbours.search_memory,
        runtime=minutes(20, vectors=0.05, index=0.05),
    params:
        version=1,
        settings=plan.neighbours.search_settings(SearchSettings),
        sample=lambda wildcards: "--sample={}".format(
            configuration.embeddings[wildcards.embedding].neighbours.index.recall_queries
        ),
        seed=configuration.run_seed,
    shell:
        """
        cocite neighbours measure {input.papers:q} \
            --vectors {input.vectors:q} \
            --queries {input.queries:q} \
            --index {input.index:q} \
            --settings {params.settings:q} \
            {params.sample} \
            --seed {params.seed} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule mine_candidates:
    input:
        examples=lambda wildcards: plan.triplets.sampled(configuration.triplets[wildcards.triplets].of),
        vectors=plan.neighbours.mined_vectors,
        texts=lambda wildcards: plan.triplets.texts_of([configuration.triplets[wildcards.triplets].of]),
        papers=plan.corpus.papers(),
        queries="<results>/corpus/queries.parquet",
    output:
        candidates="<results>/neighbours/mined_{triplets}/candidates.parquet",
        positives="<results>/neighbours/mined_{triplets}/positives.parquet",
        omissions="<results>/neighbours/omissions/mined_{triplets}.parquet",
    log:
        "<logs>/neighbours/mined_{triplets}.log",
    benchmark:
        "<benchmarks>/neighbours/mined_{triplets}.jsonl"
    wildcard_constraints:
        triplets=named("triplets", sampler="mined"),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # By vectors 336 MB and 3 s for the demo's 700 papers, 1.2 GB for 500,000 of 384 dimensions, which are held; by words
        # 520 MB and 10 s for 40,000 papers (12 MB) and 1,000 queries.
        mem_mb=plan.neighbours.mining_memory,
        runtime=plan.neighbours.mining_minutes,
    params:
        version=2,
        papers=folders_of("papers"),
        settings=settings("triplets", "triplets", SearchedDocuments),
        state=state("neighbours/mined_{triplets}"),
    shell:
        """
        cocite neighbours mine {input.examples:q} {input.vectors:q} {input.texts:q} \
            --papers {params.papers:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --state {params.state:q} \
            --candidates {output.candidates:q} \
            --positives {output.positives:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
