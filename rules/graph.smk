from cocite.config.graphs import PAIRS, Combination, Counting


rule choose_citations:
    input:
        citations=plan.corpus.citations(),
        papers=plan.corpus.papers() if configuration.corpus.authors else [],
        contexts=lambda wildcards: (
            "<results>/corpus/contexts/{bucket}.parquet"
            if configuration.graphs[wildcards.graph].citations.counts_mentions
            else []
        ),
    output:
        citations=temp("<results>/graph/{graph}/citations/{bucket}.parquet"),
        omissions="<results>/graph/omissions/{graph}-citations-{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/choose-citations-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/choose-citations-{bucket}.jsonl"
    wildcard_constraints:
        graph=either(plan.graph.chosen),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 10 million citations and the authors of 2 million papers took 1.7 GB and 24 s of processor time,
        # and 0.8 GB and 25 s when given 700 MB. By 5 million sentences, they took 1.7 GB and 7 s.
        mem_mb=megabytes(2000),
        runtime=minutes(10, papers=0.02, citations=0.02),
    params:
        version=1,
        citations=folders_of("citations"),
        papers=option("--papers", of_folder=True),
        contexts=option("--contexts"),
        settings=lambda wildcards: as_text(configuration.graphs[wildcards.graph].citations),
    shell:
        """
        cocite graph choose-citations {params.citations:q} {params.papers:q} {params.contexts:q} \
            --settings {params.settings:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.citations:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule choose_sentences:
    input:
        contexts="<results>/corpus/contexts/{bucket}.parquet",
        citations="<results>/graph/{graph}/citations/{bucket}.parquet",
    output:
        contexts=temp("<results>/graph/{graph}/contexts/{bucket}.parquet"),
        omissions="<results>/graph/omissions/{graph}-contexts-{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/choose-sentences-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/choose-sentences-{bucket}.jsonl"
    wildcard_constraints:
        graph=either(plan.graph.chosen),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams sentences: 295 MB and 5 s for 3.3 million.
        mem_mb=megabytes(800),
        runtime=minutes(10, every=0.05),
    params:
        version=1,
    shell:
        """
        cocite graph choose-sentences {input.contexts:q} \
            --citations {input.citations:q} \
            --output {output.contexts:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule split_citations:
    input:
        citations="<results>/corpus/citations/{bucket}.parquet",
        queries="<results>/corpus/queries.parquet",
    output:
        temp(directory("<results>/graph/split_citations/{bucket}")),
    log:
        "<logs>/graph/split-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/split-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 203 MB for 0.06 MB, 243 MB and 1.6 s for 1.
        mem_mb=megabytes(2000),
        runtime=minutes(10, citations=0.05),
    params:
        version=1,
        buckets=configuration.corpus.buckets,
    shell:
        """
        cocite graph split-citations {input.citations:q} \
            --queries {input.queries:q} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule split_citations as split_chosen_citations with:
    input:
        citations="<results>/graph/{graph}/citations/{bucket}.parquet",
        queries="<results>/corpus/queries.parquet",
    output:
        temp(directory("<results>/graph/{graph}/split_citations/{bucket}")),
    log:
        "<logs>/graph/{graph}/split-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/split-{bucket}.jsonl"
    wildcard_constraints:
        graph=either(plan.graph.chosen),
    params:
        version=1,


rule unite_citations:
    input:
        buckets("<results>/graph/split_citations/{bucket}"),
    output:
        temp("<results>/graph/citations_by_cited/{bucket}.parquet"),
    log:
        "<logs>/graph/unite-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/unite-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 197 MB for 0.1 MB, 213 MB and 1.1 s for 1.7.
        mem_mb=megabytes(2000),
        runtime=minutes(10, every=0.05 / configuration.corpus.buckets),
    params:
        version=1,
    shell:
        """
        cocite graph unite-citations {input:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule unite_citations as unite_chosen_citations with:
    input:
        buckets("<results>/graph/{{graph}}/split_citations/{bucket}"),
    output:
        temp("<results>/graph/{graph}/citations_by_cited/{bucket}.parquet"),
    log:
        "<logs>/graph/{graph}/unite-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/unite-{bucket}.jsonl"
    wildcard_constraints:
        graph=either(plan.graph.chosen),
    params:
        version=1,


rule count_pairs:
    input:
        citations=plan.graph.citations_in_groups,
        queries="<results>/corpus/queries.parquet",
    output:
        pairs="<results>/graph/{graph}/{pairs}/{bucket}.parquet",
        omissions="<results>/graph/omissions/{graph}-{pairs}-{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/count-{pairs}-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/count-{pairs}-{bucket}.jsonl"
    wildcard_constraints:
        pairs=either(sorted(set(PAIRS.values()))),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 351 MB for 0.1 MB, 380 MB and 10 s for 2. 102 million citations, of 60,000 queries, took two
        # jobs 1.6 GB and 23 s (docs/speed.md).
        mem_mb=megabytes(2000),
        runtime=minutes(20, citations=0.05),
    params:
        version=4,
        settings=settings("graphs", "graph", Counting),
        buckets=configuration.corpus.buckets,
    shell:
        """
        cocite graph count {input.citations:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --bucket {wildcards.bucket} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --output {output.pairs:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule pair_edges:
    input:
        lambda wildcards: f"<results>/graph/{{graph}}/{plan.graph.pairs[wildcards.graph]}/{{bucket}}.parquet",
    output:
        edges="<results>/graph/{graph}/edges/{bucket}.parquet",
        omissions="<results>/graph/omissions/{graph}-edges-{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/edges-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/edges-{bucket}.jsonl"
    wildcard_constraints:
        graph=either(plan.graph.pairs),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams pairs: 172 MB for 0.1 MB, 227 MB and 1.8 s for 3.
        mem_mb=megabytes(500),
        runtime=minutes(10, every=0.05),
    params:
        version=2,
        table=lambda wildcards: plan.graph.pairs[wildcards.graph],
        min_count=value("graphs", "graph", "min_count"),
    shell:
        """
        cocite graph pair-edges {input:q} \
            --table {params.table} \
            --min-count {params.min_count} \
            --output {output.edges:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule citation_edges:
    input:
        citations=lambda wildcards: plan.graph.source_of(wildcards.graph, "citations"),
        by_cited=lambda wildcards: (
            []
            if plan.graph.is_directed(wildcards.graph)
            else plan.graph.source_of(wildcards.graph, "citations_by_cited")
        ),
        queries="<results>/corpus/queries.parquet",
    output:
        "<results>/graph/{graph}/edges/{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/edges-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/edges-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="citation"),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 209 MB for 0.1 MB, 269 MB and 1.2 s for 1.8.
        mem_mb=megabytes(2000),
        runtime=minutes(10, citations=0.05, by_cited=0.05),
    params:
        version=3,
        buckets=configuration.corpus.buckets,
    shell:
        """
        cocite graph citation-edges {input.citations:q} {input.by_cited:q} \
            --queries {input.queries:q} \
            --bucket {wildcards.bucket} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule combine_graphs:
    input:
        edges=lambda wildcards: plan.graph.edges(list(configuration.graphs[wildcards.graph].of)),
    output:
        "<results>/graph/{graph}/edges/{bucket}.parquet",
    log:
        "<logs>/graph/{graph}/edges-{bucket}.log",
    benchmark:
        "<benchmarks>/graph/{graph}/edges-{bucket}.jsonl"
    wildcard_constraints:
        graph=named("graphs", signal="combination"),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 219 MB for 0.2 MB, 304 MB and 2.6 s for 4.
        mem_mb=megabytes(2000),
        runtime=minutes(10, edges=0.05),
    params:
        version=1,
        edges=folders_of_buckets("edges"),
        settings=settings("graphs", "graph", Combination),
    shell:
        """
        cocite graph combine {params.edges:q} \
            --settings {params.settings:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule count_intents:
    input:
        edges=buckets("<results>/graph/{{graph}}/edges/{bucket}.parquet"),
    output:
        "<results>/graph/{graph}/intent_counts.parquet",
    log:
        "<logs>/graph/{graph}/intents.log",
    benchmark:
        "<benchmarks>/graph/{graph}/intents.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 212 MB for 0.4 MB, 293 MB and 0.8 s for 3 million citations (12 MB).
        mem_mb=megabytes(1000),
        runtime=minutes(10, edges=0.005),
    params:
        version=1,
        edges=folders_of("edges"),
    shell:
        """
        cocite graph count-intents {params.edges:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
