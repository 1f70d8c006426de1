"""Models, and what they are trained from."""


def trained(path):
    """A file for each model and each of its seeds."""
    return [file for name, entry in config["models"].items() for file in expand(path, model=name, seed=entry["seeds"])]


def models_with_cards():
    """The encoders that have a card with their scores: each training, with its further poolings, and the averages."""
    return [
        f"<results>/encoder/{name}/seed-{seed}/model"
        for name in with_weights(config)
        for seed in training_seeds(config, name)
    ]


def models_of_all_seeds(wildcards):
    """The encoders that a model became, one for each of its seeds."""
    entry = config["models"][wildcards.model]
    return expand("<results>/encoder/{{model}}/seed-{seed}/model", seed=entry["seeds"])


def encoder_of(wildcards):
    """The encoder that a model starts from."""
    return encoder_under(wildcards.model, config["models"])


def start_of(wildcards):
    """The folder that a training starts from: the encoder, or the model that it goes on from, of the same seed."""
    earlier = config["models"][wildcards.model].get("from")
    if earlier is None:
        return f"<results>/encoder/untrained_{encoder_of(wildcards)}/seed-0/model"
    return f"<results>/encoder/{earlier}/seed-{wildcards.seed}/model"


def origin_of_model(wildcards):
    """The settings of the earlier steps for a model's card, as JSON; a change in them trains the model again."""
    return json.dumps(settings_of_origin(wildcards.model, config), sort_keys=True)


def given_encoder(wildcards):
    """The files of an encoder that the user brings; those from the hub or a package are fetched."""
    entry = config["encoders"][wildcards.encoder]
    models = [entry.get("model"), *(adapter["model"] for adapter in entry.get("adapters", {}).values())]
    return [file for model in models if model and Path(model).is_dir() for file in files_in(model)]


def maps_of_probe(wildcards):
    """The maps of the probe that has learned what is put behind an encoder."""
    asked = config["encoders"][wildcards.encoder]["map"]
    return f"<results>/encoder/probe_{asked['probe']}/{asked['triplets']}/maps.safetensors"


def building_memory(wildcards, input, attempt):
    """Memory to build an encoder, MB: its vocabulary reads 130,000 papers at a time, or a whole smaller bucket."""
    largest = max(map(size_mb, input.papers))
    return ceil(800 + 60 * min(60, largest)) * attempt


def kept_dimensions(wildcards):
    """The option for how many leading dimensions of a model's vectors are kept; nothing where all are."""
    dimension = config["models"].get(model_of(wildcards.model), {}).get("dimension")
    return ["--dimension", str(dimension)] if dimension else []


def further_fields(model):
    """Whether a model, or an untrained encoder, reads more of a document than its title and abstract."""
    encoder = (
        model.removeprefix("untrained_") if model in UNTRAINED else encoder_under(model_of(model), config["models"])
    )
    return bool(entry_of(config["encoders"][encoder], EncoderSettings).further)


def documents_to_tokenise(wildcards):
    """The documents of examples, and the papers that have their further fields where the encoder reads such."""
    reads_more = further_fields(f"untrained_{wildcards.encoder}")
    papers = buckets("<results>/corpus/papers/{bucket}.parquet") if reads_more else []
    return [f"<results>/triplets/{wildcards.examples}/documents", *papers]


def of_examples(least, factor):
    """A constant, plus a factor for each MB of the documents of examples."""

    def asked(wildcards, input, attempt):
        return ceil(least + factor * size_mb(input.documents[:1])) * attempt

    return asked


def fields_of_documents(benchmarks):
    """The further fields of the documents of some benchmarks, for models that read such; nothing for others."""

    def files(wildcards):
        asked = further_fields(wildcards.model)
        return expand("<results>/evaluation/{name}/document_fields.parquet", name=benchmarks) if asked else []

    return files


def adapters_for(benchmarks):
    """The option for each adapter by which a model embeds the documents of some benchmarks, or none for a format."""

    def names(wildcards):
        has = adapters_of(config, wildcards.model)
        entries = [config["benchmarks"][name] for name in benchmarks or [wildcards.benchmark]]
        tasks = [task for entry in entries for task in tasks_of(entry)]
        return as_adapters({name for task in tasks for name in task.adapters_among(has)})

    return names


def adapter_for_papers(wildcards):
    """The option for the adapter by which a model embeds papers; nothing where it has none."""
    return as_adapters({"proximity"} & adapters_of(config, wildcards.model))


def as_adapters(names):
    """The options that name adapters, each one word: quoting would lose an empty name that stands by itself."""
    return [f"--adapters={name}" for name in sorted(names)]


def embedding_minutes(table):
    """Time to embed a table, no more than a day at first: by the size of its texts and that of the encoder.

    On two threads an encoder of MiniLM's size embeds 30 documents a second, one of BERT's 4.5; a GPU is assumed to take
    a hundredth of that time.
    """

    def asked(wildcards, input, attempt):
        passes = size_mb(input[table]) * size_mb(input.model)
        return min(A_DAY, ceil(20 + passes * (0.001 if WITH_GPU else 0.1))) * attempt

    return asked


def memory_of_training(wildcards, input, attempt):
    """Memory of a training, MB: as configured, or by sizes (docs/encoders.md has measured ones).

    A further attempt more often continues a training that ran out of time than one that ran out of memory.
    """
    entry = config["models"][wildcards.model]
    asked = entry.get("memory_mb")
    if asked is None:
        from cocite.encoder.memory import training_memory  # takes longer to import than most jobs to plan

        given = training_settings(wildcards)
        sets = list(map(Path, input.sets))
        pairs = list(zip(sets[::4], sets[1::4], strict=True))
        asked = training_memory(
            Path(input.encoder),
            pairs,
            given,
            teachers=[Path(table) for table in json.loads(teachers_as_json(wildcards, input)).values()],
            processes=entry["processes"],
            on_gpu=WITH_GPU,
        )
    return asked * min(attempt, 2)


def training_settings(wildcards):
    """The settings of a training."""
    return parse_settings(TrainingSettings, settings("models", "model", TrainingSettings)(wildcards))


def tables_of_teachers(wildcards):
    """The graph embeddings that teach a model."""
    path = "<results>/embeddings/{embedding}/graph_embeddings.parquet"
    return expand(path, embedding=training_settings(wildcards).teachers)


def teachers_as_json(wildcards, input):
    """Their tables by their names, as JSON."""
    tables = [input.teachers] if isinstance(input.teachers, str) else input.teachers
    return json.dumps({Path(table).parent.name: str(table) for table in tables})


def sets_to_learn_from(wildcards):
    """For each objective of a model: its examples and their tokens, and those of its validation set.

    An objective shares the validation set with all sets of its group.
    """
    tokens = f"<results>/encoder/untrained_{encoder_of(wildcards)}/seed-0/tokens"
    names = sets_of(config["models"][wildcards.model])
    pairs = [(name, f"validation_{config['triplets'][name]['group']}") for name in names]
    return [
        file for each in chain(*pairs) for file in (f"<results>/triplets/{each}/examples.parquet", f"{tokens}/{each}")
    ]


def vectors_to_map(probe):
    """The vectors of all papers by the encoder of a probe, before fine-tuning."""
    encoder = config["probes"][probe]["encoder"]
    return buckets("<results>/encoder/untrained_{encoder}/seed-0/papers/{bucket}.parquet", encoder=encoder)


def mapping_minutes(wildcards, input, attempt):
    """Time to train the maps of a set: by its size, the trainings of each and their epochs."""
    asked = config["probes"][wildcards.probe]
    trainings = len(asked["losses"]) * len(asked["batch_sizes"]) * len(asked["seeds"])
    return ceil(10 + trainings * asked["epochs"] * size_mb(input.examples)) * attempt


def option_to_normalise(wildcards):
    """The option by which mapped vectors are scaled to length 1, where those of the probe's encoder are."""
    encoder = config["encoders"][config["probes"][wildcards.probe]["encoder"]]
    return "--normalise" if encoder.get("normalise") else ""
