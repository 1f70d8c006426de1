"""Encoders and models: what they start from and learn from, what they embed, and what that costs."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from snakemake.io import expand

from cocite.config.folders import files_in
from cocite.config.runs import UNTRAINED, adapters_of, model_of, training_seeds, untrained, with_weights
from cocite.plan.stage import Request, StagePlan, size_mb, whole, within_a_day
from cocite.plan.triplets import validation_of

MODEL = "<results>/encoder/{model}/seed-{seed}/model"


class EncoderPlan(StagePlan):
    """Encoders before fine-tuning, and the models that are trained from them."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.untrained = untrained(self.config)  # what the encoders are called as they are before fine-tuning
        self.with_weights = [*with_weights(self.config), *self.untrained]  # all that have a folder of weights

    def trained(self, path: str, *names: str) -> list[str]:
        """A file for each of some models, or of all, and each of its seeds."""
        models = self.config.models
        return [file for name in names or models for file in expand(path, model=name, seed=models[name].seeds)]

    def with_cards(self) -> list[str]:
        """The encoders that have a card with their scores: each training, with its further poolings, and averages."""
        names = with_weights(self.config)
        return [file for name in names for file in expand(MODEL, model=name, seed=training_seeds(self.config, name))]

    def start_of(self, wildcards: Any) -> str:
        """The folder that a training starts from: the encoder, or the model that it continues, of the same seed."""
        entry = self.config.models[wildcards.model]
        model, seed = (f"{UNTRAINED}{entry.encoder}", 0) if entry.from_ is None else (entry.from_, wildcards.seed)
        return MODEL.format(model=model, seed=seed)

    def given(self, wildcards: Any) -> list[str]:
        """The user-supplied files of an encoder; those from the hub or a package are fetched."""
        entry = self.config.encoders[wildcards.encoder]
        models = [entry.model, *(adapter.model for adapter in (entry.adapters or {}).values())]
        return [file for model in models if model and Path(model).is_dir() for file in files_in(model)]

    def building_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to build an encoder, MB: its vocabulary reads 130,000 papers at a time, or a whole smaller bucket."""
        entry: Any = self.config.encoders[wildcards.encoder]
        table = 0 if entry.kind != "static" else 3 * 4e-6 * entry.vocabulary * entry.dimension
        # A source is opened, and gives each token a vector; its own table of them is a part of its weights.
        return whole(800 + table + 3 * size_mb(input.source) + 25 * min(60, max(map(size_mb, input.papers)))) * attempt

    def source_of(self, wildcards: Any) -> list[str]:
        """The encoder that gives a static one its vocabulary or is distilled into it, if any."""
        source = self.config.encoders[wildcards.encoder].source
        return [] if source is None else [MODEL.format(model=f"{UNTRAINED}{source}", seed=0)]

    def kept_dimensions(self, wildcards: Any) -> list[str]:
        """The option for how many leading dimensions of a model's vectors are kept; nothing if all are."""
        model = self.config.models.get(model_of(wildcards.model))
        return ["--dimension", str(model.dimension)] if model is not None and model.dimension else []

    def reads_further_fields(self, model: str) -> bool:
        """Whether a model, or an untrained encoder, reads more of a document than its title and abstract."""
        is_untrained = model in self.untrained
        encoder = model.removeprefix(UNTRAINED) if is_untrained else self.config.base_encoder(model_of(model))
        return bool(self.config.encoders[encoder].further)

    def documents_to_tokenise(self, wildcards: Any) -> list[str]:
        """The documents of examples, and the papers that have their further fields if the encoder reads such."""
        papers = self.plan.corpus.papers() if self.config.encoders[wildcards.encoder].further else []
        return [f"<results>/triplets/{wildcards.examples}/documents", *papers]

    def of_examples(self, least: float, factor: float) -> Request:
        """A constant, plus a factor for each MB of the documents of examples."""
        return lambda wildcards, input, attempt: whole(least + factor * size_mb(input.documents[:1])) * attempt

    def fields_of_documents(self, benchmarks: Sequence[str]) -> Callable[[Any], list[str]]:
        """The further fields of the documents of some benchmarks, for models that read such; nothing for others."""
        files = expand("<results>/evaluation/{name}/document_fields.parquet", name=benchmarks)
        return lambda wildcards: files if self.reads_further_fields(wildcards.model) else []

    def adapters_for(self, benchmarks: Sequence[str] = ()) -> Callable[[Any], list[str]]:
        """The options for the adapters by which a model embeds the documents of some benchmarks, or of the job's."""

        def options(wildcards: Any) -> list[str]:
            has = adapters_of(self.config, wildcards.model)
            entries = [self.config.benchmarks[name] for name in benchmarks or [wildcards.benchmark]]
            tasks = [task for entry in entries for task in entry.scored_tasks]
            return as_adapters({name for task in tasks for name in task.adapters_among(has)})

        return options

    def adapter_for_papers(self, wildcards: Any) -> list[str]:
        """The option for the adapter by which a model embeds papers; nothing if it has none."""
        return as_adapters({"proximity"} & adapters_of(self.config, wildcards.model))

    def embedding_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time to embed documents. On two threads an encoder of MiniLM's size embeds 30 documents a second, one of
        BERT's 4.5; a GPU is assumed to take a hundredth of that time."""
        passes = size_mb(input.documents) * size_mb(input.model)
        return within_a_day(20 + passes * (0.001 if self.plan.with_gpu else 0.1), attempt)

    def trains_on_gpu(self, model: str) -> bool:
        """Whether a training takes a GPU, which a static encoder does not."""
        return self.plan.with_gpu and self.config.encoders[self.config.base_encoder(model)].kind != "static"

    def training_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of a training, MB: as configured, or by sizes (docs/encoders.md has measured ones). A further attempt
        more often continues a training that ran out of time than one that ran out of memory."""
        entry = self.config.models[wildcards.model]
        needed = entry.memory_mb
        if needed is None:
            from cocite.plan.memory import training_memory  # takes longer to import than most jobs to plan

            sets = list(map(Path, input.sets))
            needed = training_memory(
                Path(input.encoder),
                list(zip(sets[::4], sets[1::4], strict=True)),
                entry,
                teachers=_paths(input.teachers),
                processes=entry.processes,
                on_gpu=self.trains_on_gpu(wildcards.model),
            )
        return needed * min(attempt, 2)

    def teachers_as_json(self, wildcards: Any, input: Any) -> str:
        """The tables of a model's teachers by the names of the embeddings, as JSON."""
        return json.dumps({table.parent.name: str(table) for table in _paths(input.teachers)})

    def sets_to_learn_from(self, wildcards: Any) -> list[str]:
        """Of each objective: its examples and their tokens, and those of the validation set of its group."""
        tokens = f"<results>/encoder/{UNTRAINED}{self.config.base_encoder(wildcards.model)}/seed-0/tokens"
        return [
            file
            for name in self.config.models[wildcards.model].learns_from
            for each in (name, validation_of(self.config.triplets[name].group))
            for file in (f"<results>/triplets/{each}/examples.parquet", f"{tokens}/{each}")
        ]

    def vectors_to_map(self, wildcards: Any) -> list[str]:
        """The vectors of all papers by the encoder of a probe, before fine-tuning."""
        encoder = self.config.probes[wildcards.probe].encoder
        return self.buckets(f"<results>/encoder/{UNTRAINED}{encoder}/seed-0/papers/{{bucket}}.parquet")

    def mapping_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time to train the maps of a set: by its size, the trainings of each and their epochs."""
        probe = self.config.probes[wildcards.probe]
        trainings = len(probe.losses) * len(probe.batch_sizes) * len(probe.seeds)
        return whole(10 + trainings * probe.epochs * size_mb(input.examples)) * attempt


def as_adapters(names: Iterable[str]) -> list[str]:
    """The options that name adapters, each one word: quoting would lose an empty name."""
    return [f"--adapters={name}" for name in sorted(names)]


def _paths(files: str | Iterable[str]) -> list[Path]:
    return [Path(files)] if isinstance(files, str) else list(map(Path, files))
