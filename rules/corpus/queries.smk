from cocite.config.queries import PUBLISHED


rule fetch_triplets:
    output:
        temp(directory("<results>/corpus/triplets")),
    log:
        "<logs>/corpus/fetch-triplets.log",
    benchmark:
        "<benchmarks>/corpus/fetch-triplets.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # It streams a dataset of unknown size, and a stopped job resumes.
        mem_mb=megabytes(1000),
        runtime=minutes(480),
    params:
        version=2,
        parts=as_text(getattr(configuration.queries, "fetched", {})),
        state=state("corpus/triplets"),
    shell:
        """
        cocite triplets fetch \
            --parts {params.parts:q} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule read_triplets:
    input:
        triplets=plan.corpus.triplets,
        matches=(
            "<results>/corpus/matches.parquet"
            if configuration.corpus.whose_ids != "s2" and configuration.corpus.matched_with
            else []
        ),
    output:
        queries="<results>/corpus/published_queries.parquet",
        omissions="<results>/corpus/omissions/read-triplets.parquet",
    log:
        "<logs>/corpus/read-triplets.log",
    benchmark:
        "<benchmarks>/corpus/read-triplets.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # It streams ids: 65,000 triplets with their texts (107 MB) took 173 MB and 1 s.
        mem_mb=megabytes(600),
        runtime=minutes(10, every=0.01),
    params:
        version=2,
        folder=lambda wildcards, input: (
            f"{input[0]}/{PUBLISHED}" if isinstance(plan.corpus.triplets, str) else configuration.queries.dataset
        ),
        matches=option("--matches"),
    shell:
        """
        cocite corpus read-triplets {params.folder:q} \
            {params.matches:q} \
            --output {output.queries:q} \
            --omissions {output.omissions:q} \
            >> {log:q} 2>&1
        """


rule select_queries:
    input:
        papers=plan.corpus.papers(),
        citations=plan.corpus.citations(),
        asked=plan.corpus.asked_queries(),
        exclude=plan.corpus.excluded_papers(),
        twins="<results>/corpus/twins.parquet",
    output:
        queries="<results>/corpus/queries.parquet",
        omissions="<results>/corpus/omissions/select.parquet",
    log:
        "<logs>/corpus/select.log",
    benchmark:
        "<benchmarks>/corpus/select.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # 199 MB for 3,000 papers (0.4 MB), 205 for 40,000 (5 MB), 209 MB and 1.3 s for hci's (12 MB). The papers from
        # a year on are in memory: 276 MB for 0.9 million of them, 828 MB for 7.9 million.
        mem_mb=megabytes(2000, papers=0.3 if configuration.queries.holdout_from else 0),
        runtime=minutes(10, papers=0.005, citations=0.005),
    params:
        version=6,
        papers=folders_of("papers"),
        citations=folders_of("citations"),
        settings=plan.corpus.query_settings(),
        seed=configuration.run_seed,
    shell:
        """
        cocite corpus select {input.exclude:q} \
            --papers {params.papers:q} \
            --citations {params.citations:q} \
            --twins {input.twins:q} \
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
        tables=plan.corpus.tables_of_papers(),
        queries="<results>/corpus/queries.parquet",
        contexts=buckets("<results>/corpus/contexts/{bucket}.parquet") if plan.corpus.with_contexts else [],
        papers=plan.corpus.papers(),
        twins="<results>/corpus/twins.parquet",
        documents=plan.triplets.documents_of(),
    output:
        leaks="<results>/corpus/leaks.parquet",
        by_text="<results>/corpus/leaks_by_text.parquet",
    log:
        "<logs>/corpus/leaks.log",
    benchmark:
        "<benchmarks>/corpus/leaks.jsonl"
    conda:
        "../../envs/pipeline.yaml"
    resources:
        # Bounded: given 2 GB, 10 million papers of which training reads nine tenths (3.6 GB of texts) took 1.6 GB and 60 s of
        # processor time, 1 million 0.5 GB and 6 s.
        mem_mb=megabytes(2000),
        runtime=minutes(10, tables=0.005, contexts=0.01, papers=0.005),
    params:
        version=2,
        results=subpath(input.queries, ancestor=2),
        tables=folders_of_buckets("tables"),
        documents=lambda wildcards, input: [f"--documents={path}" for path in input.documents],
        holdout_from=[f"--holdout-from={year}" for year in [configuration.queries.holdout_from] if year is not None],
        without_twins=["--without-twins"] if configuration.corpus.twins == "exclude" else [],
        oracles=plan.triplets.oracles_and_validation(),
    shell:
        """
        cocite corpus leaks {params.tables:q} \
            --results {params.results:q} \
            --queries {input.queries:q} \
            {params.documents:q} \
            {params.holdout_from} {params.without_twins} \
            --oracles {params.oracles:q} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output.leaks:q} \
            --by-text {output.by_text:q} \
            >> {log:q} 2>&1
        """
