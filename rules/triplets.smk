rule sample_triplets:
    input:
        sources=lambda wildcards: configuration.triplets[wildcards.triplets].sources(wildcards.triplets, plan),
        queries="<results>/corpus/queries.parquet",
        papers=plan.corpus.papers(),
    output:
        sampled="<results>/triplets/{triplets}/triplets.parquet",
        omissions="<results>/triplets/omissions/{triplets}.parquet",
        settings="<results>/triplets/{triplets}/settings.json",
    log:
        "<logs>/triplets/{triplets}/sample.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/sample.jsonl"
    wildcard_constraints:
        triplets=either(plan.triplets.sets_in("triplets")),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    threads: 1  # a job of two would wait until all others are done
    resources:
        # It streams its sources: 380 MB for 3,000 papers and for hci's; 0.7 GB for 5 million papers, both with 100
        # million neighbours (770 MB, 4 s) and with 97 million citations (11.5 s; docs/triplets.md). A union has the rows
        # of a block: 0.7 GB and 3.5 s for two sets of 2.5 million triplets, 1.7 GB and 19 s for two of 2 million examples
        # with 18 papers each; a half of one of them 0.9 GB and 1.0 GB.
        mem_mb=plan.triplets.sampling_memory,
        runtime=minutes(20, sources=0.005, papers=0.002),
    params:
        version=5,
        papers=folders_of("papers"),
        settings=lambda wildcards: as_text(configuration.triplets[wildcards.triplets], "group"),
        seed=configuration.run_seed,
        texts=[],
    shell:
        """
        cocite triplets sample {input.sources:q} \
            --queries {input.queries:q} \
            --papers {params.papers:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --threads {threads} \
            --output {output.sampled:q} \
            {params.texts:q} \
            --omissions {output.omissions:q} \
            --written-settings {output.settings:q} \
            >> {log:q} 2>&1
        """


use rule sample_triplets as sample_examples with:
    output:
        sampled="<results>/triplets/{triplets}/sampled_examples.parquet",
        omissions="<results>/triplets/omissions/{triplets}.parquet",
        settings="<results>/triplets/{triplets}/settings.json",
    log:
        "<logs>/triplets/{triplets}/sample-examples.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/sample-examples.jsonl"
    wildcard_constraints:
        triplets=either(
            name for name in plan.triplets.sets_in("sampled_examples") if not configuration.triplets[name].brings_texts
        ),
    params:
        version=2,


rule fetch_pairs:
    output:
        directory("<results>/triplets/{triplets}/fetched"),
    log:
        "<logs>/triplets/{triplets}/fetch.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/fetch.jsonl"
    wildcard_constraints:
        triplets=either(name for name, entry in configuration.triplets.items() if getattr(entry, "fetched", None)),
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # It streams a dataset of unknown size, and a stopped job resumes.
        mem_mb=megabytes(1000),
        runtime=minutes(240),
    params:
        version=1,
        parts=lambda wildcards: as_text(configuration.triplets[wildcards.triplets].fetched),
        state=state("triplets/{triplets}"),
    shell:
        """
        cocite triplets fetch \
            --parts {params.parts:q} \
            --state {params.state:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule sample_triplets as sample_texts with:
    output:
        sampled="<results>/triplets/{triplets}/sampled_examples.parquet",
        texts="<results>/triplets/{triplets}/texts.parquet",
        omissions="<results>/triplets/omissions/{triplets}.parquet",
        settings="<results>/triplets/{triplets}/settings.json",
    log:
        "<logs>/triplets/{triplets}/sample-texts.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/sample-texts.jsonl"
    wildcard_constraints:
        triplets=named("triplets", brings_texts=True),
    threads: 2
    resources:
        # Streams collections, and keeps the ids of all examples: 60,000 queries with 600 mined negatives and scores each,
        # from a million passages (0.9 GB), took 1.1 GB and 78 s.
        mem_mb=megabytes(1500, sources=0.5),
        runtime=minutes(20, sources=0.02, papers=0.002),
    params:
        version=3,
        texts=lambda wildcards, output: ["--texts", output.texts],


rule materialise_training:
    input:
        triplets=lambda wildcards: plan.triplets.sampled(wildcards.triplets),
        group=plan.triplets.group_to_train,
        papers=plan.corpus.papers(),
    output:
        examples="<results>/triplets/{triplets}/examples.parquet",
        documents=directory("<results>/triplets/{triplets}/documents"),
    log:
        "<logs>/triplets/{triplets}/materialise.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/materialise.jsonl"
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    threads: 1  # a job of two would wait until all others are done
    resources:
        # 11 million pairs (69 MB) are ordered within 525 MB, 1 million (5 MB) within 415.
        mem_mb=megabytes(700, triplets=5),
        runtime=plan.triplets.by_sets(20, sets=1, others=0.005),
    params:
        version=3,
        triplets=lambda wildcards, input: ["--triplets", input.triplets],
        papers=folders_of("papers"),
        seed=configuration.run_seed,
    shell:
        """
        cocite triplets materialise {input.group:q} \
            {params.triplets:q} \
            --papers {params.papers:q} \
            --seed {params.seed} \
            --threads {threads} \
            --output {output.examples:q} \
            --documents {output.documents:q} \
            >> {log:q} 2>&1
        """


use rule materialise_training as materialise_validation with:
    input:
        group=plan.triplets.group_to_validate,
        papers=plan.corpus.papers(),
    output:
        examples="<results>/triplets/validation_{group}/examples.parquet",
        documents=directory("<results>/triplets/validation_{group}/documents"),
    log:
        "<logs>/triplets/validation_{group}.log",
    benchmark:
        "<benchmarks>/triplets/validation_{group}.jsonl"
    resources:
        # As materialise_training.
        mem_mb=plan.triplets.by_sets(700, sets=5),
        runtime=plan.triplets.by_sets(20, sets=1, others=0.005),
    params:
        triplets=[],


rule relate_sample:
    input:
        citations=plan.corpus.citations(),
        queries="<results>/corpus/queries.parquet",
    output:
        "<results>/triplets/sampled_relations.parquet",
    log:
        "<logs>/triplets/sampled_relations.log",
    benchmark:
        "<benchmarks>/triplets/sampled_relations.jsonl"
    conda:
        "../envs/pipeline.yaml"
    threads: 2
    resources:
        # Bounded: 214 MB and 1.1 s for 0.1 MB, 231 MB and 1.5 s for 2.
        mem_mb=megabytes(2000),
        runtime=minutes(20, citations=0.01),
    params:
        version=2,
        seed=configuration.run_seed,
    shell:
        """
        cocite triplets relate {input.citations:q} \
            --queries {input.queries:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule measure_bands:
    input:
        neighbours=lambda wildcards: plan.neighbours.of(wildcards.embedding),
        relations="<results>/triplets/sampled_relations.parquet",
        queries="<results>/corpus/queries.parquet",
    output:
        "<results>/triplets/band_quality/{embedding}.parquet",
    log:
        "<logs>/triplets/band_quality/{embedding}.log",
    benchmark:
        "<benchmarks>/triplets/band_quality/{embedding}.jsonl"
    wildcard_constraints:
        embedding=either(plan.neighbours.rankings),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: 202 MB for 240,000 neighbours (2 MB), 209 MB and 1.4 s for 3 million (22 MB).
        mem_mb=megabytes(1000),
        runtime=minutes(10, neighbours=0.005),
    params:
        version=2,
        settings=plan.triplets.ranks_in_use,
        seed=configuration.run_seed,
    shell:
        """
        cocite triplets measure-bands {input.neighbours:q} \
            --relations {input.relations:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --memory-mb {resources.mem_mb} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule check_triplets:
    input:
        triplets=lambda wildcards: plan.triplets.sampled(wildcards.triplets),
        neighbours=plan.triplets.ranked_neighbours,
        relations=plan.triplets.of_mined("<results>/triplets/sampled_relations.parquet"),
        mined=plan.triplets.of_mined("<results>/neighbours/mined_{triplets}/positives.parquet"),
        queries="<results>/corpus/queries.parquet",
        papers=plan.corpus.papers(),
        benchmarks=plan.triplets.documents_to_look_for,
    output:
        checks="<results>/triplets/{triplets}/checks.parquet",
        per_query="<results>/triplets/{triplets}/per_query.parquet",
        collisions="<results>/triplets/{triplets}/collisions.parquet",
    log:
        "<logs>/triplets/{triplets}/check.log",
    benchmark:
        "<benchmarks>/triplets/{triplets}/check.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 3,000 triplets with 240,000 neighbours (2 MB) took 338 MB and 2.5 s, a million (10 MB) alone 505 MB and 10 s.
        mem_mb=megabytes(700, triplets=40),
        runtime=minutes(20, triplets=1, neighbours=0.005, papers=0.002),
    params:
        version=5,
        papers=folders_of("papers"),
        neighbours=option("--neighbours", of_folder=True),
        mined=lambda wildcards, input: (
            ["--relations", str(input.relations), "--mined", str(input.mined)] if input.mined else []
        ),
    shell:
        """
        cocite triplets check {input.benchmarks:q} \
            --triplets {input.triplets:q} \
            {params.neighbours:q} \
            {params.mined:q} \
            --queries {input.queries:q} \
            --papers {params.papers:q} \
            --checks {output.checks:q} \
            --per-query {output.per_query:q} \
            --collisions {output.collisions:q} \
            >> {log:q} 2>&1
        """
