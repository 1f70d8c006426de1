rule list_shards:
    input:
        served=served_release,
        given=[shard for dataset in DATASETS for shard in given_shards(dataset)],
    output:
        "<results>/corpus/manifest.json",
    log:
        "<logs>/corpus/list.log",
    benchmark:
        "<benchmarks>/corpus/list.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=60,
    params:
        version=1,
        served=served_by,
        origin=origin(),
        release=config["release"],
    shell:
        """
        {params.served} cocite corpus list \
            --origin {params.origin:q} \
            --release {params.release:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule download_shards:
    input:
        manifest="<results>/corpus/manifest.json",
        served=served_release,
    output:
        temp(directory("<results>/corpus/raw/{dataset}/{part}")),
    log:
        "<logs>/corpus/download-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/download-{dataset}-{part}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        version=1,
        served=served_by,
        origin=origin(),
        parts=len(PARTS),
        state=state("corpus/{dataset}-{part}"),
    shell:
        """
        {params.served} cocite corpus download {wildcards.dataset} \
            --origin {params.origin:q} \
            --manifest {input.manifest:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule ingest:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=raw_shards,
    output:
        table=temp(directory("<results>/corpus/ingested/{dataset}/{part}")),
        omissions="<results>/corpus/omissions/ingest-{dataset}-{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        # 1 GB of JSON: citations 14 s and 0.57 GB, abstracts 28 s and 1.41 GB; beyond that, it spills.
        mem_mb=lambda wildcards, attempt: 1500 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        version=1,
        shards=folder_of_shards,
        parts=len(PARTS),
        buckets=len(BUCKETS),
        malformed=config["corpus"]["malformed"],
    shell:
        """
        cocite corpus ingest {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --shards {params.shards:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --malformed {params.malformed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule merge_papers:
    input:
        papers=expand("<results>/corpus/ingested/papers/{part}", part=PARTS),
        abstracts=expand("<results>/corpus/ingested/abstracts/{part}", part=PARTS),
    output:
        table="<results>/corpus/papers/{bucket}.parquet",
        omissions="<results>/corpus/omissions/merge-papers-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-papers-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-papers-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1500 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        version=1,
        papers=folder_of("papers"),
        abstracts=folder_of("abstracts"),
        parts=len(PARTS),
    shell:
        """
        cocite corpus merge-papers \
            --papers {params.papers:q} \
            --abstracts {params.abstracts:q} \
            --parts {params.parts} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule merge_citations:
    input:
        expand("<results>/corpus/ingested/citations/{part}", part=PARTS),
    output:
        table="<results>/corpus/citations/{bucket}.parquet",
        omissions="<results>/corpus/omissions/merge-citations-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-citations-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-citations-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1500 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        version=1,
    shell:
        """
        cocite corpus merge-citations {input:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule select_queries:
    input:
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
        ids=config["queries"]["path"] if config["queries"]["from"] == "file" else [],
    output:
        queries="<results>/corpus/queries.parquet",
        omissions="<results>/corpus/omissions/select.parquet",
    log:
        "<logs>/corpus/select.log",
    benchmark:
        "<benchmarks>/corpus/select.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        version=1,
        papers=folder_of("papers"),
        citations=folder_of("citations"),
        settings=json.dumps(config["queries"], sort_keys=True),
        seed=config["seed"],
    shell:
        """
        cocite corpus select \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.queries:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """
