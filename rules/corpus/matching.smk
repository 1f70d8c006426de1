rule match:
    input:
        theirs=plan.corpus.shards_in(configuration.corpus.matched_with),
        papers=plan.corpus.papers_by_record(),
    output:
        matches="<results>/corpus/matches.parquet",
        omissions="<results>/corpus/omissions/match.parquet",
    log:
        "<logs>/corpus/match.log",
    benchmark:
        "<benchmarks>/corpus/match.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: given 1 GB, 8 million papers on either side (200 MB packed) took 1.1 GB and 38 s of processor time;
        # given 2 GB, 2 million (50 MB) took 0.7 GB and 9 s.
        mem_mb=megabytes(4000),
        runtime=minutes(20, theirs=0.02, papers=0.005),
    params:
        version=2,
        papers=folders_of("papers"),
        theirs=str(configuration.corpus.matched_with or ""),
    shell:
        """
        cocite corpus match {params.theirs:q} \
            --papers {params.papers:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.matches:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule find_documents:
    input:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        papers=plan.corpus.papers_by_record(),
        matches=plan.corpus.by_link("matches", "<results>/corpus/matches.parquet"),
        paper_ids=plan.corpus.shards_in(configuration.corpus.paper_ids),
    output:
        papers="<results>/corpus/document_papers/{benchmark}.parquet",
        omissions="<results>/corpus/omissions/{benchmark}_documents.parquet",
    log:
        "<logs>/corpus/find-documents-{benchmark}.log",
    benchmark:
        "<benchmarks>/corpus/find-documents-{benchmark}.jsonl"
    wildcard_constraints:
        benchmark=either(name for name, known_by in plan.corpus.known_by.items() if known_by != "ids"),
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # Bounded, but for the names of documents: given 2 GB, 100,000 among 10 million papers (4.1 GB) took 0.8 GB and 53 s of
        # processor time, among 1 million 0.7 GB and 11 s.
        mem_mb=megabytes(1000, documents=4),
        runtime=minutes(10, documents=0.05, papers=0.01, matches=0.01, paper_ids=0.01),
    params:
        version=5,
        papers=folders_of("papers"),
        text_only=plan.corpus.by_link("text", ["--text-only"]),
        matches=option("--matches"),
        paper_ids=["--paper-ids", configuration.corpus.paper_ids] if configuration.corpus.paper_ids else [],
    shell:
        """
        cocite corpus find-documents {input.documents:q} {params.text_only} \
            --papers {params.papers:q} \
            {params.matches:q} \
            {params.paper_ids:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.papers:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
