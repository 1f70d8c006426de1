rule ingest_works:
    input:
        manifest="<results>/corpus/manifest.json",
        shards="<results>/corpus/raw/works/{part}",
    output:
        papers=temp_unless("keep_ingested", "<results>/corpus/ingested/papers/{part}.parquet"),
        abstracts=temp_unless("keep_ingested", "<results>/corpus/ingested/abstracts/{part}.parquet"),
        citations=temp_unless("keep_ingested", "<results>/corpus/ingested/citations/{part}.parquet"),
        report="<results>/corpus/ingest_report/works/{part}.parquet",
    log:
        "<logs>/corpus/ingest-works-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-works-{part}.jsonl"
    wildcard_constraints:
        part=either(map(str, PARTS.get("works", []))),
    priority: 10
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # As ingest.
        mem_mb=megabytes(1500),
        runtime=minutes(20, shards=0.02),
    params:
        version=1,
        parts=len(PARTS.get("works", [])),
        buckets=len(BUCKETS),
        authors="--authors" if SOURCE.authors else "",
        mag="--mag" if SOURCE.matched_with else "",
        settings=lambda wildcards: json.dumps(config["corpus"].get("filters", {}), sort_keys=True),
    shell:
        """
        cocite corpus ingest-works {params.authors} {params.mag} \
            --manifest {input.manifest:q} \
            --shards {input.shards:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --papers {output.papers:q} \
            --abstracts {output.abstracts:q} \
            --citations {output.citations:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


rule reuse_works:
    input:
        manifest="<results>/corpus/manifest.json",
    output:
        papers=temp_unless("keep_ingested", "<results>/corpus/ingested/papers/{part}.parquet"),
        abstracts=temp_unless("keep_ingested", "<results>/corpus/ingested/abstracts/{part}.parquet"),
        citations=temp_unless("keep_ingested", "<results>/corpus/ingested/citations/{part}.parquet"),
        report="<results>/corpus/ingest_report/works/{part}.parquet",
    log:
        "<logs>/corpus/reuse-works-{part}.log",
    benchmark:
        "<benchmarks>/corpus/reuse-works-{part}.jsonl"
    wildcard_constraints:
        part=either(map(str, REUSED.get("works", []))),
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # It copies row groups, one after the other.
        mem_mb=megabytes(1500),
        runtime=reuse_minutes,
    params:
        version=1,
        base=f"{config['corpus'].get('base', '')}/corpus",
        number=part_of_base,
        parts=len(PARTS.get("works", [])),
    shell:
        """
        cocite corpus reuse-works \
            --manifest {input.manifest:q} \
            --base {params.base:q} \
            --part {params.number} \
            --parts {params.parts} \
            --papers {output.papers:q} \
            --abstracts {output.abstracts:q} \
            --citations {output.citations:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """
