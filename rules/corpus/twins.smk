rule find_twins:
    input:
        papers=plan.corpus.papers(),
    output:
        twins="<results>/corpus/twins.parquet",
        omissions="<results>/corpus/omissions/twins.parquet",
    log:
        "<logs>/corpus/twins.log",
    benchmark:
        "<benchmarks>/corpus/twins.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        mem_mb=megabytes(4000),
        runtime=minutes(20, papers=0.1),
    params:
        version=1,
        papers=folders_of("papers"),
    shell:
        """
        cocite corpus find-twins {params.papers:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.twins:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
