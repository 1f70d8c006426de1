rule list_shards:
    input:
        generated=generated_release(),
        given=[shard for shards in GIVEN.values() for shard in shards],
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
        # It holds names only: 105 MB for any release. Most of the time goes to the API's rate limit.
        mem_mb=megabytes(300),
        runtime=minutes(60),
    params:
        version=1,
        settings=listing_settings(),
        release=config["release"],
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
        generated=generated_release(),
    output:
        temp_unless("keep_raw", directory("<results>/corpus/raw/{dataset}/{part}")),
    log:
        "<logs>/corpus/download-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/download-{dataset}-{part}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 2  # as many as ingest, so that every job that ends makes room for an ingest, which has priority
    resources:
        # Shards stream to disk: 156 MB with the demo's server, for 0.1 MB and for 6.4 MB.
        mem_mb=megabytes(300),
        downloads=1,
        runtime=download_minutes,
    params:
        version=1,
        settings=listing_settings(),
        parts=parts,
        results=subpath(output[0], ancestor=4),
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
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule ingest:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=raw_shards,
    output:
        table=read_from_shards(),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(INGESTED_ALONE),
    priority: 10  # the disk may have room for only a few raw shards at a time
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: a shard of 14 million citations took 0.7 GB and 4 s, 1.3 GB of abstracts 1.2 GB and 7 s
        # (docs/speed.md); 6.4 MB of packed citations took 363 MB and 2.5 s, start included.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.02),
    params:
        version=5,
        shards=folder_of_shards,
        parts=parts,
        buckets=len(BUCKETS),
        ids="keep" if config["corpus"]["keep_ingested"] else "drop",
    shell:
        """
        cocite corpus ingest {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --shards {params.shards:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --ids {params.ids} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


rule ingest_with_authors:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=raw_shards,
    output:
        table=read_from_shards(),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(WITH_AUTHORS),
    priority: 10
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # As ingest.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.02),
    params:
        version=1,
        shards=folder_of_shards,
        parts=parts,
        buckets=len(BUCKETS),
        ids="keep" if config["corpus"]["keep_ingested"] else "drop",
    shell:
        """
        cocite corpus ingest {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --shards {params.shards:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --ids {params.ids} \
            --authors \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


rule ingest_with_contexts:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=raw_shards,
    output:
        table=temp_unless("keep_ingested", "<results>/corpus/ingested/{dataset}/{part}.parquet"),
        contexts=temp("<results>/corpus/ingested/{dataset}/contexts/{part}.parquet"),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(WITH_CONTEXTS),
    priority: 10
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: a shard of 14 million citations, 37% of them with contexts, took 1.0 GB and 16 s of processor time
        # (docs/speed.md), 1.3 GB in one bucket.
        mem_mb=megabytes(2000),
        runtime=minutes(15, shards=0.05),
    params:
        version=1,
        shards=folder_of_shards,
        parts=parts,
        buckets=len(BUCKETS),
        ids="keep" if config["corpus"]["keep_ingested"] else "drop",
    shell:
        """
        cocite corpus ingest {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --shards {params.shards:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --ids {params.ids} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --contexts {output.contexts:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


rule list_names:
    input:
        manifest="<results>/corpus/manifest.json",
        shards=raw_shards,
    output:
        temp("<results>/corpus/ingested/{dataset}/names/{part}.parquet"),
    log:
        "<logs>/corpus/list-names-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/list-names-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(WITH_NAMES),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 8 million citations between a million names (527 MB of CSV) took 0.8 GB and 10 s of processor time.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.02),
    params:
        version=1,
        settings=table_settings,
        parts=parts,
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
        listed=all_listed_names(),
    output:
        "<results>/corpus/names.parquet",
    log:
        "<logs>/corpus/number-names.log",
    benchmark:
        "<benchmarks>/corpus/number-names.jsonl"
    conda:
        "../envs/pipeline.yaml"
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
        shards=raw_shards,
        listed=listed_names,
        names="<results>/corpus/names.parquet" if WITH_NAMES else [],
    output:
        table=read_from_shards(),
        report="<results>/corpus/ingest_report/{dataset}/{part}.parquet",
    log:
        "<logs>/corpus/ingest-{dataset}-{part}.log",
    benchmark:
        "<benchmarks>/corpus/ingest-{dataset}-{part}.jsonl"
    wildcard_constraints:
        dataset=either(FROM_TABLES),
    priority: 10
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: abstracts took 1.29 GB for 0.9 GB of CSV and 1.32 GB for 1.8, and 15 and 32 s of processor time;
        # 8 million citations with names (527 MB of CSV) 1.1 GB and 12 s, with whole numbers 1.1 GB and 6 s.
        mem_mb=megabytes(1500),
        runtime=minutes(10, shards=0.05, names=0.01),
    params:
        version=1,
        settings=table_settings,
        parts=parts,
        buckets=len(BUCKETS),
    shell:
        """
        cocite corpus ingest-tables {wildcards.dataset} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --listed={input.listed:q} \
            --names={input.names:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --report {output.report:q} \
            >> {log:q} 2>&1
        """


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
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # As ingest.
        mem_mb=megabytes(1500),
        runtime=minutes(20, shards=0.02),
    params:
        version=1,
        parts=len(PARTS.get("works", [])),
        buckets=len(BUCKETS),
        ids="keep" if config["corpus"]["keep_ingested"] else "drop",
        authors="--authors" if SOURCE.authors else "",
        settings=json.dumps(config["corpus"].get("filters", {}), sort_keys=True),
    shell:
        """
        cocite corpus ingest-works {params.authors} \
            --manifest {input.manifest:q} \
            --shards {input.shards:q} \
            --settings {params.settings:q} \
            --part {wildcards.part} \
            --parts {params.parts} \
            --buckets {params.buckets} \
            --ids {params.ids} \
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
        "../envs/pipeline.yaml"
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


rule account:
    input:
        reports=each_part("<results>/corpus/ingest_report/{dataset}/{part}.parquet"),
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
        malformed=config["corpus"]["malformed"],
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
        changes=each_part("<results>/corpus/changes/{dataset}/{part}.parquet"),
    output:
        table=temp_unless("keep_ingested", "<results>/corpus/ingested/{dataset}/{bucket}.parquet"),
        omissions="<results>/corpus/omissions/update-{dataset}-{bucket}.parquet",
    log:
        "<logs>/corpus/update-{dataset}-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/update-{dataset}-{bucket}.jsonl"
    wildcard_constraints:
        dataset=either(DATASETS if BASE else []),
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded, as the merge of a bucket is: 205 MB and 0.8 s for half of 40,000 papers, 5% of them changed.
        mem_mb=megabytes(1500),
        runtime=update_minutes,
    params:
        version=2,
        base=f"{BASE}/corpus",
        changes=folders_of("changes"),
        buckets=len(BUCKETS),
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
        accounted=ancient(accounted("papers", "abstracts")),
        papers=rows_to_merge("papers"),
        abstracts=rows_to_merge("abstracts"),
    output:
        table="<results>/corpus/papers/{bucket}.parquet",
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
        runtime=minutes(10, papers=0.1 / len(BUCKETS), abstracts=0.1 / len(BUCKETS)),
    params:
        version=4,
        table="papers",
        ingested=f"{RESULTS}/corpus/ingested",
        buckets=len(BUCKETS),  # with another number of buckets, a bucket of the same name holds other papers
    shell:
        """
        cocite corpus merge {params.table} \
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
        accounted=ancient(accounted("citations")),
        citations=rows_to_merge("citations"),
        newest=papers_of_works(),
    output:
        table="<results>/corpus/citations/{bucket}.parquet",
        omissions="<results>/corpus/omissions/merge-citations-{bucket}.parquet",
    log:
        "<logs>/corpus/merge-citations-{bucket}.log",
    benchmark:
        "<benchmarks>/corpus/merge-citations-{bucket}.jsonl"
    threads: 2
    resources:
        # Bounded: 207 MB for 0.2 MB, 250 MB and 1.8 s for 2.9. 400 million rows took 68 s (docs/speed.md).
        mem_mb=megabytes(1500),
        runtime=minutes(10, citations=0.05 / len(BUCKETS)),
    params:
        version=3,
        table="citations",


rule merge_contexts:
    input:
        accounted=ancient("<results>/corpus/omissions/ingest-citations.parquet"),
        contexts=each_part("<results>/corpus/ingested/{dataset}/contexts/{part}.parquet", "citations"),
    output:
        table="<results>/corpus/contexts/{bucket}.parquet",
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
        runtime=minutes(20, contexts=0.02 / len(BUCKETS)),
    params:
        version=1,
        ingested=f"{RESULTS}/corpus/ingested/citations/contexts",
        settings=json.dumps(config["corpus"].get("contexts", {}), sort_keys=True),
        buckets=len(BUCKETS),  # with another number of buckets, a bucket of the same name holds other papers
    shell:
        """
        cocite corpus merge-contexts \
            --ingested {params.ingested:q} \
            --settings {params.settings:q} \
            --bucket {wildcards.bucket} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.table:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule fetch_triplets:
    output:
        temp(directory("<results>/corpus/triplets")),
    log:
        "<logs>/corpus/fetch-triplets.log",
    benchmark:
        "<benchmarks>/corpus/fetch-triplets.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams a dataset of unknown size, and a stopped job resumes.
        mem_mb=megabytes(1000),
        runtime=minutes(480),
    params:
        version=1,
        dataset=config["queries"].get("dataset", ""),
        revision=config["queries"].get("revision", ""),
        state=state("corpus/triplets"),
    shell:
        """
        cocite corpus fetch-triplets \
            --dataset {params.dataset:q} \
            --revision {params.revision:q} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule read_triplets:
    input:
        published_triplets(),
    output:
        queries="<results>/corpus/published_queries.parquet",
        omissions="<results>/corpus/omissions/read-triplets.parquet",
    log:
        "<logs>/corpus/read-triplets.log",
    benchmark:
        "<benchmarks>/corpus/read-triplets.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams ids: 65,000 triplets with their texts (107 MB) took 173 MB and 1 s.
        mem_mb=megabytes(600),
        runtime=minutes(10, every=0.01),
    params:
        version=1,
        folder=folder_of_triplets,
    shell:
        """
        cocite corpus read-triplets {params.folder:q} \
            --output {output.queries:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule number_ids:
    input:
        file=named_papers,
        names="<results>/corpus/names.parquet",
    output:
        ids="<results>/corpus/numbered/{list}.txt",
        omissions="<results>/corpus/omissions/number-ids-{list}.parquet",
    log:
        "<logs>/corpus/number-ids-{list}.log",
    benchmark:
        "<benchmarks>/corpus/number-ids-{list}.jsonl"
    wildcard_constraints:
        list=either(NAMED),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # A file of ids is small; the names stream past it: 189 MB for a million.
        mem_mb=megabytes(1000),
        runtime=minutes(10, names=0.01),
    params:
        version=1,
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


rule select_queries:
    input:
        papers=buckets("<results>/corpus/papers/{bucket}.parquet"),
        citations=buckets("<results>/corpus/citations/{bucket}.parquet"),
        asked=asked_queries(),
        exclude=excluded_papers(),
    output:
        queries="<results>/corpus/queries.parquet",
        omissions="<results>/corpus/omissions/select.parquet",
    log:
        "<logs>/corpus/select.log",
    benchmark:
        "<benchmarks>/corpus/select.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 199 MB for 3,000 papers (0.4 MB), 205 for 40,000 (5 MB), 209 MB and 1.3 s for hci's (12 MB).
        mem_mb=megabytes(2000),
        runtime=minutes(10, papers=0.005, citations=0.005),
    params:
        version=2,
        papers=folders_of("papers"),
        citations=folders_of("citations"),
        settings=query_settings(),
        seed=config["seed"],
    shell:
        """
        cocite corpus select {input.exclude:q} \
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


rule check_leaks:
    input:
        tables=tables_of_papers(),
        queries="<results>/corpus/queries.parquet",
        contexts=buckets("<results>/corpus/contexts/{bucket}.parquet") if WITH_CONTEXTS else [],
    output:
        "<results>/corpus/leaks.parquet",
    log:
        "<logs>/corpus/leaks.log",
    benchmark:
        "<benchmarks>/corpus/leaks.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 197 MB and 1.4 s for the tables of 3,000 papers (12 MB).
        mem_mb=megabytes(1000),
        runtime=minutes(10, tables=0.005, contexts=0.01),
    params:
        version=1,
        results=subpath(input.queries, ancestor=2),
        tables=folders_of_buckets("tables"),
        oracles=oracles_and_validation(),
    shell:
        """
        cocite corpus leaks {params.tables:q} \
            --results {params.results:q} \
            --queries {input.queries:q} \
            --oracles {params.oracles:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
