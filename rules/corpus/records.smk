rule ingest:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=plan.corpus.raw_shards,
    output:
        table=plan.corpus.read_from_shards(),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(plan.corpus.ingested_alone),
    priority: 10  # the disk may have room for only a few raw shards at a time
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: a shard of 14 million citations took 0.7 GB and 4 s, 1.3 GB of abstracts 1.2 GB and 7 s
        # (docs/speed.md); 6.4 MB of packed citations took 363 MB and 2.5 s, start included.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.02),
    params:
        version=7,
        shards=lambda wildcards, input: input.shards if configuration.corpus.fetches else Path(input.shards).parent,
        parts=lambda wildcards: f"--parts={len(plan.corpus.parts[wildcards.dataset])}",
        buckets=f"--buckets={configuration.corpus.buckets}",
        ids="keep" if configuration.corpus.keep_ingested else "drop",
        further=[],
    shell:
        """
        cocite corpus ingest {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --shards {params.shards:q} \
            --part {wildcards.part} \
            {params.parts} \
            {params.buckets} \
            --ids {params.ids} \
            {params.further:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


use rule ingest as ingest_with_authors with:
    wildcard_constraints:
        dataset=either(plan.corpus.with_authors),
    params:
        version=4,
        further=["--authors"],


use rule ingest as ingest_with_contexts with:
    output:
        table=plan.corpus.ingested("{dataset}/{part}"),
        contexts=temp("<results>/corpus/ingested/{dataset}/contexts/{part}.parquet"),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    wildcard_constraints:
        dataset=either(plan.corpus.with_contexts),
    resources:
        # Bounded: a shard of 14 million citations, 37% of them with contexts, took 1.0 GB and 16 s of processor time
        # (docs/speed.md), 1.3 GB in one bucket.
        mem_mb=megabytes(2000),
        runtime=minutes(15, shards=0.05),
    params:
        version=2,
        further=lambda wildcards, output: ["--contexts", output.contexts],
