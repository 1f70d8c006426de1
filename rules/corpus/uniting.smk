rule unite_papers:
    input:
        records=buckets(f"{plan.corpus.by_records}/papers/{{bucket}}.parquet"),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/papers/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/unite-papers.parquet",
    log:
        "<logs>/corpus/unite-papers.log",
    benchmark:
        "<benchmarks>/corpus/unite-papers.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded by DuckDB, as a merge is.
        mem_mb=megabytes(2000),
        runtime=minutes(20, records=0.02),
    params:
        version=1,
        table="papers",
        records=folders_of("records"),
        output=subpath(output.tables[0], parent=True),
    shell:
        """
        cocite corpus unite {params.table} \
            --records {params.records:q} \
            --twins {input.twins:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {params.output:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


use rule unite_papers as unite_citations with:
    input:
        records=buckets(f"{plan.corpus.by_records}/citations/{{bucket}}.parquet"),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/citations/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/unite-citations.parquet",
    log:
        "<logs>/corpus/unite-citations.log",
    benchmark:
        "<benchmarks>/corpus/unite-citations.jsonl"
    params:
        table="citations",


use rule unite_papers as unite_contexts with:
    input:
        records=buckets(f"{plan.corpus.by_records}/contexts/{{bucket}}.parquet"),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/contexts/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/unite-contexts.parquet",
    log:
        "<logs>/corpus/unite-contexts.log",
    benchmark:
        "<benchmarks>/corpus/unite-contexts.jsonl"
    params:
        table="contexts",
