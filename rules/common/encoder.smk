"""Models, and what they are trained from."""


def trained(path):
    """A file for each model and each of its seeds."""
    return [file for name, entry in config["models"].items() for file in expand(path, model=name, seed=entry["seeds"])]


def encoder_of(wildcards):
    """The encoder that a model starts from."""
    return config["models"][wildcards.model]["encoder"]


def origin_of_model(wildcards):
    """The settings of the earlier steps for a model's card, as JSON; a change in them trains the model again."""
    return json.dumps(settings_of_origin(wildcards.model, config), sort_keys=True)


def given_encoder(wildcards):
    """The files of an encoder that the user brings; those from the hub or a package are fetched."""
    model = config["encoders"][wildcards.encoder].get("model")
    return files_in(model) if model and Path(model).is_dir() else []


def building_memory(wildcards, input, attempt):
    """Memory to build an encoder, MB: its vocabulary reads 130,000 papers at a time, or a whole smaller bucket."""
    largest = max(map(size_mb, input.papers))
    return ceil(800 + 60 * min(60, largest)) * attempt


def embedding_minutes(table):
    """Time to embed a table, no more than a day at first: by the size of its texts and that of the encoder.

    On two threads an encoder of MiniLM's size embeds 30 documents a second, one of BERT's 4.5; a GPU is assumed to take
    a hundredth of that time.
    """

    def asked(wildcards, input, attempt):
        passes = size_mb(input[table]) * size_mb(input.model)
        return min(A_DAY, ceil(20 + passes * (0.001 if config["gpu"] else 0.1))) * attempt

    return asked


def validation_of(wildcards):
    """The validation set that a model shares with all models of its group."""
    group = config["triplets"][config["models"][wildcards.model]["triplets"]]["group"]
    return expand("<results>/triplets/validation_{group}", group=group)
