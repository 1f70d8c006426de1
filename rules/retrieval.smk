from cocite.config.embeddings import Links
from cocite.config.index import Ranking


use rule build_adjacency as link_papers with:
    input:
        edges=lambda wildcards: plan.graph.edges(wildcards.graph),
    output:
        directory("<results>/retrieval/links/{graph}"),
    log:
        "<logs>/retrieval/links/{graph}.log",
    benchmark:
        "<benchmarks>/retrieval/links/{graph}.jsonl"
    params:
        settings=as_text(Links()),


rule find_candidates:
    input:
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        judgements="<results>/evaluation/{benchmark}/judgements.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
        papers=plan.corpus.papers(),
        vectors=plan.retrieval.vectors,
        links=plan.retrieval.links,
    output:
        "<results>/retrieval/{index}/seed-{seed}/{benchmark}/candidates.parquet",
    log:
        "<logs>/retrieval/{index}/seed-{seed}/find-{benchmark}.log",
    benchmark:
        "<benchmarks>/retrieval/{index}/seed-{seed}/find-{benchmark}.jsonl"
    wildcard_constraints:
        index=named("indexes", of=None),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 1,000 queries among 27,152 papers, with two models (150 MB of vectors), took 812 MB and 29 s, 1,500 among 2.2
        # million, with one, 1,333 MB and 138 s, among 10 million 3,926 MB (18 MB of popularity); it holds the candidates
        # of each query and some tens of bytes for each paper.
        mem_mb=megabytes(1200 + 0.5 * configuration.queries.holdout, popularity=120),
        runtime=minutes(20, vectors=0.3, papers=1),
    params:
        version=3,
        tables=subpath(input.searches, parent=True),
        settings=plan.retrieval.lists,
        models=plan.retrieval.models,  # the order of the cosines
        tasks=plan.retrieval.tasks,
        papers=folders_of("papers"),
        vectors=folders_of("vectors"),
    shell:
        """
        cocite retrieval find {params.vectors:q} \
            --tables {params.tables:q} \
            --settings {params.settings:q} \
            --tasks {params.tasks} \
            --papers {params.papers:q} \
            --links {input.links:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule rank_candidates:
    input:
        candidates=plan.retrieval.candidates,
        searches="<results>/evaluation/{benchmark}/searches.parquet",
        popularity="<results>/evaluation/{benchmark}/popularity.parquet",
    output:
        answers="<results>/retrieval/{index}/seed-{seed}/{benchmark}/answers.parquet",
        weights="<results>/retrieval/{index}/seed-{seed}/{benchmark}/weights.json",
        selection="<results>/retrieval/{index}/seed-{seed}/{benchmark}/selection_scores.parquet",
    log:
        "<logs>/retrieval/{index}/seed-{seed}/rank-{benchmark}.log",
    benchmark:
        "<benchmarks>/retrieval/{index}/seed-{seed}/rank-{benchmark}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 20 MB of candidates took 670 MB and 7 s.
        mem_mb=megabytes(1000, candidates=40, popularity=60),
        runtime=minutes(20, candidates=1),
    params:
        version=4,
        tables=subpath(input.searches, parent=True),
        settings=settings("indexes", "index", Ranking),
        models=plan.retrieval.models,
    shell:
        """
        cocite retrieval rank {input.candidates:q} \
            --tables {params.tables:q} \
            --settings {params.settings:q} \
            --models {params.models} \
            --weights {output.weights:q} \
            --selection {output.selection:q} \
            --output {output.answers:q} \
            >> {log:q} 2>&1
        """


rule lay_out_index:
    input:
        papers=plan.corpus.papers(),
        vectors=plan.retrieval.vectors,
        citations=plan.corpus.citations(),
        links=plan.retrieval.all_links,
    output:
        directory("<results>/retrieval/{index}/seed-{seed}/index"),
    log:
        "<logs>/retrieval/{index}/seed-{seed}/build.log",
    benchmark:
        "<benchmarks>/retrieval/{index}/seed-{seed}/build.jsonl"
    wildcard_constraints:
        index=named("indexes", of=None),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # A million papers of 90 words with ten million citations, and 1 GB of vectors, took 1.9 GB and 176 s.
        mem_mb=megabytes(2000, papers=2, vectors=0.2),
        runtime=minutes(20, vectors=0.3, papers=1),
    params:
        version=2,
        settings=plan.retrieval.lists,
        models=plan.retrieval.models,
        papers=folders_of("papers"),
        vectors=folders_of("vectors"),
        citations=folders_of("citations"),
        links=folders_of("links"),
    shell:
        """
        cocite retrieval build {params.vectors:q} \
            --settings {params.settings:q} \
            --models {params.models} \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --links {params.links:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
