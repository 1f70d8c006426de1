from cocite.config.release_folder import DATASETS, WORKS

DEMO_RELEASE = "<results>/demo/release" if configuration.corpus.source == "demo" else []
UNTIL = [] if configuration.corpus.until is None else ["--until", str(configuration.corpus.until)]


rule list_shards:
    input:
        generated=DEMO_RELEASE,
        given=plan.corpus.all_given + plan.corpus.list_of_papers,
    output:
        "<results>/corpus/manifest.json",
    log:
        "<logs>/corpus/list.log",
    benchmark:
        "<benchmarks>/corpus/list.jsonl"
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Only names: 105 MB for any release. Most of the time is spent on the API's rate limit.
        mem_mb=megabytes(300),
        runtime=minutes(60),
    params:
        version=1,
        settings=lambda wildcards: as_text(configuration.corpus.listing_settings()),
        release=configuration.release,
        results=subpath(output[0], ancestor=2),
    shell:
        """
        cocite corpus list \
            --settings {params.settings:q} \
            --release {params.release:q} \
            --results {params.results:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule download_shards:
    input:
        manifest="<results>/corpus/manifest.json",
        generated=DEMO_RELEASE,
    output:
        *(
            [
                "<results>/corpus/unresolved/{dataset}/{part}.parquet",
                "<results>/corpus/omissions/download-{dataset}-{part}.parquet",
            ]
            if plan.corpus.list_of_papers
            else []
        ),
        shards=plan.corpus.temp_unless("keep_raw", directory("<results>/corpus/raw/{dataset}/{part}")),
    log:
        "<logs>/corpus/download-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/download-{dataset}-{part}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 2  # as many as ingest, so that every job that ends makes room for an ingest, which has priority
    resources:
        # Shards stream to disk: 156 MB with a local server, for 0.1 MB and for 6.4 MB. Of a query, the ids that its
        # works cite are in memory: 219 MB for 100,000 works with 25 references each.
        mem_mb=plan.corpus.download_mb,
        downloads=1,
        runtime=plan.corpus.download_minutes,
    params:
        version=1,
        settings=lambda wildcards: as_text(configuration.corpus.listing_settings()),
        parts=lambda wildcards: len(plan.corpus.parts[wildcards.dataset]),
        results=subpath(output.shards, ancestor=4),
        state=state("corpus/{dataset}-{part}"),
    shell:
        """
        cocite corpus download {wildcards.dataset} \
            --settings {params.settings:q} \
            --manifest {input.manifest:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --results {params.results:q} \
            --state {params.state:q} \
            --output {output.shards:q} \
            >> {log:q} 2>&1
        """


include: "corpus/records.smk"
include: "corpus/tables.smk"
include: "corpus/works.smk"


rule account:
    input:
        reports=plan.corpus.each_part("<results>/corpus/ingest_report/{dataset}/{part}.parquet"),
    output:
        "<results>/corpus/omissions/ingest-{dataset}.parquet",
    log:
        "<logs>/corpus/account-{dataset}.log",
    benchmark:
        "<benchmarks>/corpus/account-{dataset}.jsonl"
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It reads a few numbers per shard: 146 MB for 2 shards and for 4.
        mem_mb=megabytes(300, reports=20),
        runtime=minutes(5, reports=1),
    params:
        version=1,
        reports=folders_of("reports"),
        malformed=configuration.corpus.malformed,
    shell:
        """
        cocite corpus account {params.reports:q} \
            --malformed {params.malformed} \
            --omissions {output:q} \
            >> {log:q} 2>&1
        """


rule update:
    input:
        manifest="<results>/corpus/manifest.json",
        accounted=ancient("<results>/corpus/omissions/ingest-{dataset}.parquet"),
        changes=plan.corpus.each_part("<results>/corpus/changes/{dataset}/{part}.parquet"),
    output:
        table=plan.corpus.ingested("{dataset}/{bucket}"),
        omissions="<results>/corpus/omissions/update-{dataset}-{bucket}.parquet",
    log:
        "<logs>/corpus/update-{dataset}-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/update-{dataset}-{bucket}.jsonl"
    wildcard_constraints:
        dataset=either(DATASETS if plan.corpus.base else []),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded, as the merge of a bucket is: 205 MB and 0.8 s for half of 40,000 papers, 5% of them changed.
        mem_mb=megabytes(1500),
        runtime=plan.corpus.update_minutes,
    params:
        version=3,
        base=f"{plan.corpus.base}/corpus",
        changes=folders_of("changes"),
        buckets=configuration.corpus.buckets,
    shell:
        """
        cocite corpus update {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --base {params.base:q} \
            --changes {params.changes:q} \
            --bucket {wildcards.bucket} \
            --buckets {params.buckets} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule merge_papers:
    input:
        accounted=ancient(plan.corpus.accounted("papers", "abstracts")),
        papers=plan.corpus.rows_to_merge("papers"),
        abstracts=plan.corpus.rows_to_merge("abstracts"),
    output:
        table=f"{plan.corpus.by_records}/papers/{{bucket}}.parquet",
        omissions="<results>/corpus/omissions/merge-papers-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-papers-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-papers-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 212 MB for 3,000 papers, 264 for 40,000, 271 MB and 1.9 s for hci's (11 MB in 2 buckets).
        mem_mb=megabytes(1500),
        runtime=minutes(10, papers=0.1 / configuration.corpus.buckets, abstracts=0.1 / configuration.corpus.buckets),
    params:
        version=7,
        table="papers",
        allow_missing_abstract="--allow-missing-abstract" if configuration.corpus.allow_missing_abstract else "",
        until=UNTIL,
        ingested=f"{plan.results}/corpus/ingested",
        buckets=configuration.corpus.buckets,  # with another number, a bucket of the same name has other papers
    shell:
        """
        cocite corpus merge {params.table} {params.allow_missing_abstract} {params.until} \
            --ingested {params.ingested:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


use rule merge_papers as merge_citations with:
    input:
        accounted=ancient(plan.corpus.accounted("citations")),
        citations=plan.corpus.rows_to_merge("citations"),
        newest=plan.corpus.rows_to_merge("papers") if plan.corpus.held_in["papers"] == WORKS else [],
        years=plan.corpus.papers_with_years(),
    output:
        table=f"{plan.corpus.by_records}/citations/{{bucket}}.parquet",
        omissions="<results>/corpus/omissions/merge-citations-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-citations-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-citations-{bucket}.jsonl"
    threads: 2
    resources:
        # Bounded: 207 MB for 0.2 MB, 250 MB and 1.8 s for 2.9. 400 million rows took 68 s (docs/speed.md).
        mem_mb=megabytes(1500),
        runtime=minutes(10, citations=0.05 / configuration.corpus.buckets),
    params:
        version=3,
        table="citations",
        allow_missing_abstract="",


rule merge_contexts:
    input:
        accounted=ancient("<results>/corpus/omissions/ingest-citations.parquet"),
        contexts=plan.corpus.each_part("<results>/corpus/ingested/{dataset}/contexts/{part}.parquet", "citations"),
        years=plan.corpus.papers_with_years(),
    output:
        table=f"{plan.corpus.by_records}/contexts/{{bucket}}.parquet",
        omissions="<results>/corpus/omissions/merge-contexts-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-contexts-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-contexts-{bucket}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 146 MB and 0.5 s for 1,500 papers, 283 MB and 1.3 s for one of 256 buckets of a shard of 14 million
        # citations (7 MB of sentences); all of them in one bucket (1.9 GB) took 1.8 GB and 125 s.
        mem_mb=megabytes(2000),
        runtime=minutes(20, contexts=0.02 / configuration.corpus.buckets),
    params:
        version=1,
        ingested=f"{plan.results}/corpus/ingested/citations/contexts",
        settings=as_text(configuration.corpus.contexts or {}),
        until=UNTIL,
        papers=f"{plan.results}/corpus/ingested/papers",
        buckets=configuration.corpus.buckets,  # with another number, a bucket of the same name has other papers
    shell:
        """
        cocite corpus merge-contexts {params.until} \
            --ingested {params.ingested:q} \
            --papers {params.papers:q} \
            --settings {params.settings:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


include: "corpus/matching.smk"
include: "corpus/queries.smk"
include: "corpus/twins.smk"


if configuration.corpus.twins == "merge":

    include: "corpus/merging_twins.smk"
