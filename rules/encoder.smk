from cocite.config.encoders import AnyEncoder
from cocite.config.graphs import ASPECTS, CONCATENATED
from cocite.config.models import SIMPLE_POOLINGS, TrainingSettings
from cocite.config.origins import settings_of_origin
from cocite.config.probes import MapTraining
from cocite.config.runs import scored_in


rule build_encoder:
    input:
        papers=plan.corpus.papers(),
        queries="<results>/corpus/queries.parquet",
        source=plan.encoder.source_of,
    output:
        directory("<results>/encoder/untrained_{encoder}/seed-0/model"),
    log:
        "<logs>/encoder/untrained_{encoder}/build.log",
    benchmark:
        "<benchmarks>/encoder/untrained_{encoder}/build.jsonl"
    wildcard_constraints:
        encoder=either(name for name, entry in configuration.encoders.items() if entry.is_built),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    resources:
        # 3,000 papers (0.2 MB) took 608 MB and 11 s, 40,000 (3 MB) 641 MB and 16 s, hci's (11 MB) 694 MB and 22 s;
        # 2.2 million (476 MB) 1,971 MB and 176 s. Distilled from MiniLM (91 MB, 30,522 tokens), hci's took 1,133 MB and 40 s.
        mem_mb=plan.encoder.building_memory,
        runtime=minutes(15, papers=0.5, source=0.05),
    params:
        version=2,
        settings=settings("encoders", "encoder", AnyEncoder),
        seed=configuration.run_seed,
        source=option("--source"),
    shell:
        """
        cocite encoder build {input.papers:q} \
            --queries {input.queries:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            {params.source:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule fetch_encoder:
    input:
        given=plan.encoder.given,
        maps=[],
    output:
        directory("<results>/encoder/untrained_{encoder}/seed-0/model"),
    log:
        "<logs>/encoder/untrained_{encoder}/fetch.log",
    benchmark:
        "<benchmarks>/encoder/untrained_{encoder}/fetch.jsonl"
    wildcard_constraints:
        encoder=either(
            name for name, entry in configuration.encoders.items() if not (entry.is_built or entry.linear_map)
        ),
    localrule: True
    conda:
        "../envs/pipeline.yaml"
    resources:
        # For the weights of the encoder, whose size is not known before; BERT's are 440 MB.
        mem_mb=megabytes(2000),
        runtime=minutes(60),
    params:
        version=3,
        settings=settings("encoders", "encoder", AnyEncoder),
    shell:
        """
        cocite encoder fetch {input.maps:q} \
            --settings {params.settings:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule fetch_encoder as fetch_encoder_with_map with:
    input:
        given=plan.encoder.given,
        maps=lambda wildcards: "<results>/encoder/probe_{0.probe}/{0.triplets}/maps.safetensors".format(
            configuration.encoders[wildcards.encoder].linear_map
        ),
    wildcard_constraints:
        encoder=either(name for name, entry in configuration.encoders.items() if entry.linear_map),
    params:
        version=2,


rule tokenise_examples:
    input:
        encoder="<results>/encoder/untrained_{encoder}/seed-0/model",
        documents=plan.encoder.documents_to_tokenise,
    output:
        directory("<results>/encoder/untrained_{encoder}/seed-0/tokens/{examples}"),
    log:
        "<logs>/encoder/untrained_{encoder}/tokenise-{examples}.log",
    benchmark:
        "<benchmarks>/encoder/untrained_{encoder}/tokenise-{examples}.jsonl"
    wildcard_constraints:
        encoder=either(configuration.encoders),
        examples=either(plan.triplets.examples),
    priority: 1  # leads to a training
    conda:
        "../envs/pipeline.yaml"
    threads: 1  # a job of two would wait until all others are done
    resources:
        # One thread tokenises some 1,000 documents (1 MB) per second; it keeps a thousand, and ids and lengths of all.
        mem_mb=plan.encoder.of_examples(1000, 0.1),
        runtime=plan.encoder.of_examples(20, 0.02),
    params:
        version=1,
    shell:
        """
        cocite encoder tokenise {input.documents:q} \
            --encoder {input.encoder:q} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule train_encoder:
    input:
        encoder=plan.encoder.start_of,
        sets=plan.encoder.sets_to_learn_from,
        teachers=lambda wildcards: expand(
            "<results>/embeddings/{embedding}/graph_embeddings.parquet",
            embedding=configuration.models[wildcards.model].teachers,
        ),
        # For the release and its terms on the model's card. When it changes, so does everything else here.
        manifest="<results>/corpus/manifest.json",
    output:
        model=directory("<results>/encoder/{model}/seed-{seed}/model"),
        curves="<results>/encoder/{model}/seed-{seed}/training_curves.parquet",
        settings="<results>/encoder/{model}/seed-{seed}/settings.json",
        events=directory("<results>/encoder/{model}/seed-{seed}/tensorboard"),
    log:
        "<logs>/encoder/{model}/seed-{seed}/train.log",
    benchmark:
        "<benchmarks>/encoder/{model}/seed-{seed}/train.jsonl"
    wildcard_constraints:
        model=named("models"),
    priority: 1  # the longest jobs start first
    conda:
        "../envs/pipeline.yaml"
    threads: value("models", "model", "threads")
    resources:
        mem_mb=plan.encoder.training_memory,
        # Slurm ends a job that takes longer; elsewhere a training runs to its end.
        runtime=1440,
        gpu=lambda wildcards: (
            configuration.models[wildcards.model].processes if plan.encoder.trains_on_gpu(wildcards.model) else 0
        ),
    params:
        version=9,
        settings=settings("models", "model", TrainingSettings),
        run_seed=configuration.run_seed,
        origin=lambda wildcards: as_text(settings_of_origin(wildcards.model, plan.resolved)),
        teachers=plan.encoder.teachers_as_json,
        processes=lambda wildcards: f"--processes={configuration.models[wildcards.model].processes}",
        precision=configuration.precision,
        state=state("encoder/{model}/seed-{seed}"),
    shell:
        """
        cocite encoder train {input.sets:q} \
            --encoder {input.encoder:q} \
            --settings {params.settings:q} \
            --seed {params.run_seed} \
            --training-seed {wildcards.seed} \
            --threads {threads} \
            {params.processes} \
            --teachers {params.teachers:q} \
            --precision {params.precision} \
            --memory-mb {resources.mem_mb} \
            ${{SLURM_JOB_ID:+--time-limit {resources.runtime}}} \
            --state {params.state:q} \
            --output {output.model:q} \
            --curves {output.curves:q} \
            --written-settings {output.settings:q} \
            --events {output.events:q} \
            --origin {params.origin:q} \
            --manifest {input.manifest:q} \
            >> {log:q} 2>&1
        """


rule average_weights:
    input:
        models=lambda wildcards: plan.encoder.trained("<results>/encoder/{model}/seed-{seed}/model", wildcards.model),
    output:
        directory("<results>/encoder/{model}_averaged/seed-0/model"),
    log:
        "<logs>/encoder/{model}_averaged/average.log",
    benchmark:
        "<benchmarks>/encoder/{model}_averaged/average.jsonl"
    wildcard_constraints:
        model=named("models", averaged=True),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # For a mean and one tensor of each, with the files mapped: three of MiniLM's size (273 MB) took 694 MB and 9 s,
        # three of BERT's (1,320 MB) 2,333 MB and 16 s.
        mem_mb=megabytes(1000, models=1.5),
        runtime=minutes(10, models=0.001),
    params:
        version=1,
    shell:
        """
        cocite encoder average {input.models:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule repool_encoder:
    input:
        model="<results>/encoder/{model}/seed-{seed}/model",
    output:
        directory("<results>/encoder/{model}_in_{pooling}/seed-{seed}/model"),
    log:
        "<logs>/encoder/{model}_in_{pooling}/seed-{seed}/repool.log",
    benchmark:
        "<benchmarks>/encoder/{model}_in_{pooling}/seed-{seed}/repool.jsonl"
    wildcard_constraints:
        model=named("models"),
        pooling=either(SIMPLE_POOLINGS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=megabytes(1000),
        runtime=minutes(10),
    params:
        version=1,
    shell:
        """
        cocite encoder repool {input.model:q} \
            --pooling {wildcards.pooling} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule embed_documents:
    input:
        model="<results>/encoder/{model}/seed-{seed}/model",
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        fields=plan.encoder.fields_of_documents(["{benchmark}"]),
    output:
        "<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
    log:
        "<logs>/encoder/{model}/seed-{seed}/embed-{benchmark}.log",
    benchmark:
        "<benchmarks>/encoder/{model}/seed-{seed}/embed-{benchmark}.jsonl"
    wildcard_constraints:
        model=either(plan.encoder.with_weights),
        benchmark=either(
            name for name in configuration.benchmarks if name not in (*plan.evaluation.own, *plan.evaluation.searching)
        ),
    conda:
        "../envs/pipeline.yaml"
    threads: 8 if plan.with_gpu else 1  # with a GPU, they tokenise
    resources:
        # For a window of documents: with tiny encoders 35,441 documents (2.6 MB) took 707 MB and 25 s, hci's 6.5
        # MB 760 MB; docs/speed.md has 1.2 GB for 20,000 documents and for 80,000. With a GPU, 1.7 GB were used.
        mem_mb=megabytes(4000 if plan.with_gpu else 1500, model=3),
        runtime=plan.encoder.embedding_minutes,
        gpu=int(plan.with_gpu),
    params:
        version=4,
        sources=folders_of("documents"),
        table="documents",
        precision=scored_in(configuration),
        dimension=plan.encoder.kept_dimensions,
        adapters=plan.encoder.adapters_for([]),
        base=[],
        state=state("embedding/{model}/seed-{seed}/{benchmark}"),
        vectors=subpath(output[0], parent=True),
    shell:
        """
        cocite encoder embed {params.sources:q} \
            --table {params.table} \
            --precision {params.precision} \
            {params.dimension:q} \
            {params.adapters:q} \
            --model {input.model:q} \
            {params.base:q} \
            --threads {threads} \
            --state {params.state:q} \
            --output {params.vectors:q} \
            >> {log:q} 2>&1
        """


if plan.evaluation.own:

    use rule embed_documents as embed_own_documents with:
        input:
            model="<results>/encoder/{model}/seed-{seed}/model",
            documents=expand("<results>/evaluation/{benchmark}/documents.parquet", benchmark=plan.evaluation.own),
            fields=plan.encoder.fields_of_documents(plan.evaluation.own),
        output:
            expand(
                "<results>/encoder/{{model}}/seed-{{seed}}/embeddings/{benchmark}.parquet",
                benchmark=plan.evaluation.own,
            ),
        log:
            "<logs>/encoder/{model}/seed-{seed}/embed_own.log",
        benchmark:
            "<benchmarks>/encoder/{model}/seed-{seed}/embed_own.jsonl"
        params:
            adapters=plan.encoder.adapters_for(plan.evaluation.own),
            state=state("embedding/{model}/seed-{seed}/own_documents"),


rule select_vectors:
    input:
        documents="<results>/evaluation/{benchmark}/documents.parquet",
        vectors=plan.buckets("<results>/encoder/{{model}}/seed-{{seed}}/papers/{bucket}.parquet"),
    output:
        "<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
    log:
        "<logs>/encoder/{model}/seed-{seed}/select-{benchmark}.log",
    benchmark:
        "<benchmarks>/encoder/{model}/seed-{seed}/select-{benchmark}.jsonl"
    wildcard_constraints:
        model=either(plan.encoder.with_weights),
        benchmark=either(plan.evaluation.searching),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Their vectors are in memory: 4,355 documents (2.7 MB) of 384 numbers took 206 MB; texts of a kB take as much as 30
        # times their compressed size with vectors of 4,096 numbers.
        mem_mb=megabytes(700, documents=30),
        runtime=minutes(10, vectors=0.01),
    params:
        version=1,
        vectors=folders_of("vectors"),
        adapters=plan.encoder.adapter_for_papers,
    shell:
        """
        cocite encoder select {input.documents:q} \
            --vectors {params.vectors:q} \
            {params.adapters:q} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


use rule embed_documents as embed_papers with:
    input:
        model="<results>/encoder/{model}/seed-{seed}/model",
        documents="<results>/corpus/papers/{bucket}.parquet",
    output:
        "<results>/encoder/{model}/seed-{seed}/papers/{bucket}.parquet",
    log:
        "<logs>/encoder/{model}/seed-{seed}/embed_papers-{bucket}.log",
    benchmark:
        "<benchmarks>/encoder/{model}/seed-{seed}/embed_papers-{bucket}.jsonl"
    params:
        version=3,
        sources=lambda wildcards, input: input.documents,
        table="papers",
        precision=scored_in(configuration) if plan.evaluation.by_citations() else configuration.precision,
        adapters=plan.encoder.adapter_for_papers,
        base=["--base", plan.corpus.reused_base] if plan.corpus.reused_base else [],
        state=state("embedding/{model}/seed-{seed}/papers_{bucket}"),


use rule embed_documents as embed_texts with:
    input:
        model="<results>/encoder/{model}/seed-{seed}/model",
        documents="<results>/triplets/{triplets}/texts.parquet",
    output:
        "<results>/encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet",
    log:
        "<logs>/encoder/{model}/seed-{seed}/embed_texts-{triplets}.log",
    benchmark:
        "<benchmarks>/encoder/{model}/seed-{seed}/embed_texts-{triplets}.jsonl"
    wildcard_constraints:
        model=either(plan.encoder.with_weights),
        triplets=named("triplets", brings_texts=True),
    params:
        version=2,
        sources=lambda wildcards, input: input.documents,
        table="sampled_texts",
        precision=configuration.precision,
        adapters=plan.encoder.adapter_for_papers,
        state=state("embedding/{model}/seed-{seed}/texts_{triplets}"),


rule map_embeddings:
    input:
        model="<results>/encoder/{model}/seed-{seed}/model",
        embeddings="<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
    output:
        "<results>/encoder/{model}_in_{space}/seed-{seed}/embeddings/{benchmark}.parquet",
    log:
        "<logs>/encoder/{model}_in_{space}/seed-{seed}/map-{benchmark}.log",
    benchmark:
        "<benchmarks>/encoder/{model}_in_{space}/seed-{seed}/map-{benchmark}.jsonl"
    wildcard_constraints:
        model=named("models"),
        space=either([*ASPECTS, CONCATENATED]),
    conda:
        "../envs/pipeline.yaml"
    resources:
        # Bounded: of 768 dimensions, 20,000 vectors (60 MB) took 365 MB and 2 s, 2 million (6 GB) 390 MB and 100 s; to the
        # space of three aspects together, 20,000 and 200,000 took 513 MB.
        mem_mb=megabytes(1000),
        runtime=minutes(10, embeddings=0.01),
    params:
        version=2,
    shell:
        """
        cocite encoder map {input.embeddings:q} \
            --model {input.model:q} \
            --space {wildcards.space} \
            --output {output:q} \
            >> {log:q} 2>&1
        """


rule probe_examples:
    input:
        examples="<results>/triplets/{triplets}/examples.parquet",
        vectors=plan.encoder.vectors_to_map,
        encoder=lambda wildcards: (
            f"<results>/encoder/untrained_{configuration.probes[wildcards.probe].encoder}/seed-0/model"
        ),
    output:
        "<results>/encoder/probe_{probe}/{triplets}/maps.safetensors",
    log:
        "<logs>/encoder/probe_{probe}/{triplets}.log",
    benchmark:
        "<benchmarks>/encoder/probe_{probe}/{triplets}.jsonl"
    conda:
        "../envs/pipeline.yaml"
    resources:
        # The vectors of the set's own papers are held, and the similarities of a batch: six maps of 15,000 triplets (0.3 MB
        # with all 40,500) took 594 MB and 24 s, sixteen maps of all of them 650 MB and 188 s.
        mem_mb=megabytes(1500, examples=300),
        runtime=plan.encoder.mapping_minutes,
    params:
        version=2,
        vectors=folders_of("vectors"),
        settings=settings("probes", "probe", MapTraining),
        seed=configuration.run_seed,
    shell:
        """
        cocite encoder probe {input.examples:q} \
            --vectors {params.vectors:q} \
            --encoder {input.encoder:q} \
            --settings {params.settings:q} \
            --seed {params.seed} \
            --threads {threads} \
            --output {output:q} \
            >> {log:q} 2>&1
        """
