rule ingest_works:
    input:
        manifest="<results>/corpus/manifest.json",
        shards="<results>/corpus/raw/works/{part}",
    output:
        papers=plan.corpus.ingested("papers/{part}"),
        abstracts=plan.corpus.ingested("abstracts/{part}"),
        citations=plan.corpus.ingested("citations/{part}"),
        report="<results>/corpus/ingest_report/works/{part}.parquet",
    log:
        "<logs>/corpus/ingest-works-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-works-{part}.jsonl"
    wildcard_constraints:
        part=either(map(str, plan.corpus.parts.get("works", []))),
    priority: 10
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # As ingest.
        mem_mb=megabytes(1500),
        runtime=minutes(20, shards=0.02),
    params:
        version=3,
        parts=f"--parts={len(plan.corpus.parts.get('works', []))}",
        buckets=f"--buckets={configuration.corpus.buckets}",
        authors="--authors" if configuration.corpus.authors else "",
        mag="--mag" if configuration.corpus.matched_with else "",
        settings=lambda wildcards: as_text(getattr(configuration.corpus, "filters", {})),
    shell:
        """
        cocite corpus ingest-works {params.authors} {params.mag} \
            --manifest {input.manifest:q} \
            --shards {input.shards:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            {params.parts} \
            {params.buckets} \
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
        papers=plan.corpus.ingested("papers/{part}"),
        abstracts=plan.corpus.ingested("abstracts/{part}"),
        citations=plan.corpus.ingested("citations/{part}"),
        report="<results>/corpus/ingest_report/works/{part}.parquet",
    log:
        "<logs>/corpus/reuse-works-{part}.log",
    benchmark:
        "<benchmarks>/corpus/reuse-works-{part}.jsonl"
    wildcard_constraints:
        part=either(map(str, plan.corpus.reused.get("works", []))),
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # It copies row groups, one after the other.
        mem_mb=megabytes(1500),
        runtime=plan.corpus.reuse_minutes,
    params:
        version=2,
        base=f"{plan.corpus.reused_base}/corpus",
        number=lambda wildcards: f"--part={int(wildcards.part) - len(plan.corpus.parts['works'])}",
        parts=f"--parts={len(plan.corpus.parts.get('works', []))}",
    shell:
        """
        cocite corpus reuse-works \
            --manifest {input.manifest:q} \
            --base {params.base:q} \
            {params.number} \
            {params.parts} \
            --papers {output.papers:q} \
            --abstracts {output.abstracts:q} \
            --citations {output.citations:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """
