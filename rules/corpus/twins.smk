rule find_twins:
    input:
        papers=plan.corpus.papers_by_record(),
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
        # Bounded, but for a bucket of papers that is mapped while its checksums are read: given 2 GB, 1 million papers
        # (0.4 GB) took 1.0 GB and 22 s of processor time, 10 million (4.2 GB) 2.2 GB and 196 s.
        mem_mb=megabytes(1900, papers=0.1),
        runtime=minutes(20, papers=0.01),
    params:
        version=3,
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
