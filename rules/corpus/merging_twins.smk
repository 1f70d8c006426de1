rule merge_twins_of_papers:
    input:
        records=plan.corpus.papers_by_record(),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/papers/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/merge-twins-of-papers.parquet",
    log:
        "<logs>/corpus/merge-twins-of-papers.log",
    benchmark:
        "<benchmarks>/corpus/merge-twins-of-papers.jsonl"
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
        output=f"{plan.results}/corpus/papers",
    shell:
        """
        cocite corpus merge-twins {params.table} \
            --records {params.records:q} \
            --twins {input.twins:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {params.output:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


use rule merge_twins_of_papers as merge_twins_of_citations with:
    input:
        records=buckets(f"{plan.corpus.by_records}/citations/{{bucket}}.parquet"),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/citations/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/merge-twins-of-citations.parquet",
    log:
        "<logs>/corpus/merge-twins-of-citations.log",
    benchmark:
        "<benchmarks>/corpus/merge-twins-of-citations.jsonl"
    params:
        table="citations",
        output=f"{plan.results}/corpus/citations",


use rule merge_twins_of_papers as merge_twins_of_contexts with:
    input:
        records=buckets(f"{plan.corpus.by_records}/contexts/{{bucket}}.parquet"),
        twins="<results>/corpus/twins.parquet",
    output:
        tables=buckets("<results>/corpus/contexts/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/merge-twins-of-contexts.parquet",
    log:
        "<logs>/corpus/merge-twins-of-contexts.log",
    benchmark:
        "<benchmarks>/corpus/merge-twins-of-contexts.jsonl"
    params:
        table="contexts",
        output=f"{plan.results}/corpus/contexts",
