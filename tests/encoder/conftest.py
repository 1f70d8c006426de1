"""A small corpus about two topics, its triplets, and an encoder built from it."""

import json
import shutil
from pathlib import Path

import pytest
from tests.encoder.building import built, paper_texts, trained, write_papers, write_queries
from tests.encoder.published import as_sentence_transformer, dense, published
from tests.examples import HYBRID, files_in, written_aspects, written_crops, written_examples

from cocite.config.encoders import Architecture, EncoderSettings
from cocite.core.atomic import read_json
from cocite.encoder.examples import ExampleFiles
from cocite.encoder.trainer import Inputs

KEPT_OUT_WORD = "zyzzyva"


@pytest.fixture(scope="session")
def small_settings() -> EncoderSettings:
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "vocabulary": 220}
    return EncoderSettings(build=Architecture(**sizes), pooling="mean", max_length=16)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with papers.parquet and queries.parquet; papers 24 and 25 are kept out and have a word of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    kept_out = (f"{KEPT_OUT_WORD} {KEPT_OUT_WORD}", f"{KEPT_OUT_WORD} ÿ ÿ ÿ")
    write_papers(folder / "papers.parquet", paper_texts() | dict.fromkeys((24, 25), kept_out))
    write_queries(folder / "queries.parquet", {0: "train", 1: "validation", 24: "holdout", 25: "excluded"})
    return folder


@pytest.fixture(scope="session")
def encoder(corpus: Path, small_settings: EncoderSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(corpus, tmp_path_factory.mktemp("encoder") / "model", small_settings)


@pytest.fixture(scope="session")
def layered(tmp_path_factory):
    """A BERT with a linear map, in the layout of sentence-transformers."""
    folder = tmp_path_factory.mktemp("published")
    return as_sentence_transformer(published(folder / "plain"), folder / "layered", dense())


@pytest.fixture(scope="session")
def with_dropout(encoder, tmp_path_factory):
    """An encoder whose training draws random numbers in every layer."""
    folder = shutil.copytree(encoder, tmp_path_factory.mktemp("dropout") / "model")
    config = read_json(folder / "config.json")
    config.update(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="session")
def examples(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with training (22 examples) and validation (6); positives share the topic."""
    folder = tmp_path_factory.mktemp("examples")
    training = [
        (query, (query + 2 * step) % 16, (query + 2 * step + 1) % 16) for query in range(6) for step in (1, 2, 3)
    ]
    training += [(query, (query + 8) % 16, (query + 9) % 16) for query in range(4)]
    validation = [(query, query + 2 * step, 23 - 2 * step + query % 2) for query in (16, 17) for step in (1, 2, 3)]
    for name, rows in (("training", training), ("validation", validation)):
        written_examples(folder / name, rows, paper_texts(), encoder)
    return folder


@pytest.fixture(scope="session")
def inputs(encoder: Path, examples: Path) -> Inputs:
    return Inputs(encoder=encoder, **{name: [files_in(examples / name)] for name in ("training", "validation")})


@pytest.fixture(scope="session")
def aspects(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Inputs of trainings on examples of two aspects: papers of the same topic, and papers of neighbouring numbers."""
    folder = tmp_path_factory.mktemp("aspects")
    sets = {}
    for name, queries in (("training", range(12)), ("validation", range(12, 16))):
        rows = []
        for query in queries:
            topic, near = [(query + 2 * step) % 16 for step in (1, 2)], [(query + step) % 16 for step in (1, 3)]
            kinds = ["linked", "linked", "two-away", "easy"]
            rows.append((query, topic, [*near, (query + 5) % 16, (query + 7) % 16], "background", kinds))
            rows.append((query, near, [*topic, (query + 6) % 16, (query + 8) % 16], "result", kinds))
        sets[name] = [written_aspects(folder / name, rows, paper_texts(), encoder)]
    return Inputs(encoder=encoder, **sets)


@pytest.fixture(scope="session")
def cropped_papers(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Inputs of trainings on spans of papers."""
    folder = tmp_path_factory.mktemp("crops")
    parts = {"training": range(12), "validation": range(16, 22)}
    sets = {name: [written_crops(folder / name, [*of], paper_texts(), encoder)] for name, of in parts.items()}
    return Inputs(encoder=encoder, **sets)


@pytest.fixture(scope="session")
def several(inputs: Inputs, cropped_papers: Inputs) -> Inputs:
    """Inputs of trainings with two objectives: triplets of a topic, and spans of papers."""
    training, validation = ([*getattr(inputs, of), *getattr(cropped_papers, of)] for of in ("training", "validation"))
    return Inputs(encoder=inputs.encoder, training=training, validation=validation)


@pytest.fixture(scope="session")
def train_several(several: Inputs, tmp_path_factory: pytest.TempPathFactory):
    """A function that trains with two objectives and returns the folder of the results."""
    return lambda inputs=several, **settings: trained(tmp_path_factory.mktemp("several"), inputs, **settings)


@pytest.fixture(scope="session")
def command_line(inputs: Inputs):
    """A function that gives the words of a command that trains with some settings and writes into a folder."""

    def words(folder: Path, encoder: Path = inputs.encoder, inputs: Inputs = inputs, **settings) -> list[str]:
        written = {"output": "model", "curves": "curves.parquet", "written-settings": "settings.json"}
        written |= {"events": "tensorboard", "state": "state"}
        options = {name: folder / file for name, file in written.items()}
        options |= {"encoder": encoder, "seed": 1, "training-seed": 1, "threads": 1, "settings": json.dumps(settings)}
        options |= {"precision": "float32"}
        pairs = zip(inputs.training, inputs.validation, strict=True)
        sets = [path for pair in pairs for files in pair for path in (files.table, files.tokens)]
        given = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        return ["encoder", "train", *map(str, sets), *given]

    return words


@pytest.fixture
def train_hybrid(aspects, tmp_path):
    """A function that trains by a hybrid of two losses into a folder of this name."""

    def run(name, stopping=None, inputs=aspects, **settings):
        return trained(tmp_path / name, inputs, stopping, **{"objectives": HYBRID, "epochs": 3, **settings})

    return run


@pytest.fixture(scope="module")
def train(inputs, tmp_path_factory):
    """A function that trains, two epochs of six steps unless settings say otherwise, and returns the folder."""

    def run(name="trained", stopping=None, inputs=inputs, folder=None, **settings):
        given = {"epochs": 2, **settings}
        return trained(folder or tmp_path_factory.mktemp(name), inputs, stopping, **given)

    return run


@pytest.fixture(scope="session")
def write_examples(encoder):
    """A function that writes examples of some triplets of paper numbers, and their tokens, into a folder."""

    def write(folder: Path, rows: list[tuple[int, int, int]]) -> ExampleFiles:
        return written_examples(folder, rows, paper_texts(), encoder)

    return write
