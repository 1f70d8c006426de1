NAMES_OF_IDS = "<results>/corpus/names.parquet" if plan.corpus.with_names else []


rule list_names:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=plan.corpus.raw_shards,
    output:
        temp("<results>/corpus/ingested/{dataset}/names/{part}.parquet"),
    log:
        "<logs>/corpus/list-names-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/list-names-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(plan.corpus.with_names),
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 8 million citations between a million names (527 MB of CSV) took 0.8 GB and 10 s of processor time.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.02),
    params:
        version=2,
        settings=lambda wildcards: as_text(configuration.corpus.table_of(wildcards.dataset)),
        parts=lambda wildcards: len(plan.corpus.parts[wildcards.dataset]),
    shell:
        """
        cocite corpus list-names {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule number_names:
    input:
        listed=plan.corpus.all_listed_names(),
    output:
        "<results>/corpus/names.parquet",
    log:
        "<logs>/corpus/number-names.log",
    benchmark:
        "<benchmarks>/corpus/number-names.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: a million names (8 MB) took 341 MB and 1 s.
        mem_mb=megabytes(2000),
        runtime=minutes(10, listed=0.05),
    params:
        version=1,
        folders=folders_of("listed"),
    shell:
        """
        cocite corpus number-names {params.folders:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule ingest_tables:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=plan.corpus.raw_shards,
        listed=plan.corpus.listed_names,
        names=NAMES_OF_IDS,
    output:
        table=plan.corpus.read_from_shards(),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(plan.corpus.from_tables),
    priority: 10
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: abstracts took 1.29 GB for 0.9 GB of CSV and 1.32 GB for 1.8, and 15 and 32 s of processor time;
        # 8 million citations with names (527 MB of CSV) 1.1 GB and 12 s, with whole numbers 1.1 GB and 6 s.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.05, names=0.01),
    params:
        version=6,
        settings=lambda wildcards: as_text(configuration.corpus.table_of(wildcards.dataset)),
        parts=lambda wildcards: f"--parts={len(plan.corpus.parts[wildcards.dataset])}",
        buckets=f"--buckets={configuration.corpus.buckets}",
        numbering=lambda wildcards, input: ["--listed", input.listed, "--names", input.names] if input.listed else [],
    shell:
        """
        cocite corpus ingest-tables {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            {params.parts} \
            {params.buckets} \
            {params.numbering:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


rule count_cited:
    input:
        manifest="<results>/corpus/manifest.json",
        accounted=ancient("<results>/corpus/omissions/ingest-citations.parquet"),
        papers=plan.corpus.rows_to_merge("papers"),
        citations=plan.corpus.rows_to_merge("citations"),
        names=NAMES_OF_IDS,
    output:
        "<results>/corpus/cited_ids.parquet",
    log:
        "<logs>/corpus/count-cited.log",
    benchmark:
        "<benchmarks>/corpus/count-cited.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 8 million citations among a million papers took 295 MB and 2 s of processor time.
        mem_mb=megabytes(2000),
        runtime=minutes(10, papers=0.02, citations=0.02),
    params:
        version=1,
        ingested=f"{plan.results}/corpus/ingested",
        names=option("--names"),
    shell:
        """
        cocite corpus count-cited \
            --manifest {input.manifest:q} \
            --papers {params.ingested:q}/papers \
            --citations {params.ingested:q}/citations \
            {params.names:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule check_cited:
    input:
        "<results>/corpus/cited_ids.parquet",
    output:
        "<results>/corpus/omissions/cited.parquet",
    log:
        "<logs>/corpus/check-cited.log",
    benchmark:
        "<benchmarks>/corpus/check-cited.jsonl"
    localrule: True
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # It reads a few numbers per file.
        mem_mb=megabytes(300),
        runtime=minutes(5),
    params:
        version=1,
        outside=getattr(configuration.corpus, "outside", 1),
    shell:
        """
        cocite corpus check-cited {input:q} \
            --outside {params.outside} \
            --omissions {output:q} \
            >> {log:q} 2>&1
        """


rule number_ids:
    input:
        file=lambda wildcards: plan.corpus.named[wildcards.list],
        names="<results>/corpus/names.parquet",
    output:
        ids="<results>/corpus/numbered/{list}.txt",
        omissions="<results>/corpus/omissions/number-ids-{list}.parquet",
    log:
        "<logs>/corpus/number-ids-{list}.log",
    benchmark:
        "<benchmarks>/corpus/number-ids-{list}.jsonl"
    wildcard_constraints:
        list=either(plan.corpus.named),
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # A file of ids is small; the names stream past it: 189 MB for a million.
        mem_mb=megabytes(1000),
        runtime=minutes(10, names=0.01),
    params:
        version=2,
    shell:
        """
        cocite corpus number-ids {input.file:q} \
            --names {input.names:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.ids:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
