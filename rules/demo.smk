from cocite.corpus.sources.demo import GeneratedRelease

# Settings of the source demo; other sources do not use them.
GENERATED = getattr(configuration.corpus, "demo", GeneratedRelease())


rule generate_release:
    output:
        directory("<results>/demo/release"),
    log:
        "<logs>/demo/generate-release.log",
    benchmark:
        "<benchmarks>/demo/generate-release.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 3,000 papers took 102 MB and 3 s, 40,000 took 134 MB and 48 s.
        mem_mb=megabytes(300 + GENERATED.papers / 200),
        runtime=minutes(10 + GENERATED.papers / 10_000),
    params:
        version=3,
        release=configuration.release,
        papers=f"--papers={GENERATED.papers}",
        topics=f"--topics={GENERATED.topics}",
        shards=f"--shards={GENERATED.shards}",
        seed=configuration.run_seed,
    shell:
        """
        cocite demo release \
            --release {params.release:q} \
            {params.papers} \
            {params.topics} \
            {params.shards} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule generate_benchmark:
    input:
        release=plan.corpus.all_given or "<results>/demo/release",
    output:
        directory("<results>/demo/benchmark"),
    log:
        "<logs>/demo/generate-benchmark.log",
    benchmark:
        "<benchmarks>/demo/generate-benchmark.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 40,000 generated papers (19 MB) took 266 MB and 11 s, hci's 27,152 (14 MB) 193 MB and 5 s.
        mem_mb=megabytes(300, release=20),
        runtime=minutes(10, release=0.05),
    params:
        version=2,
        release=lambda wildcards, input: (
            configuration.corpus.path if configuration.corpus.source == "directory" else input.release
        ),
        seed=configuration.run_seed,
    shell:
        """
        cocite demo benchmark \
            --release {params.release:q} \
            --seed {params.seed} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
