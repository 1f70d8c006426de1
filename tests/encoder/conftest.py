"""A small corpus about two topics, its triplets, and an encoder built from it."""

import json
import shutil
from pathlib import Path

import pytest
from tests.encoder.building import CURVES, built, paper_texts, trained, write_papers, write_queries
from tests.encoder.published import as_sentence_transformer, dense, edit, published
from tests.examples import files_in, written_aspects, written_crops, written_examples, written_pairs

from cocite.config.encoders import Architecture, EncoderSettings, StaticSettings
from cocite.encoder.trainer import Inputs

KEPT_OUT_WORD = "zyzzyva"


@pytest.fixture(scope="session")
def small_settings() -> EncoderSettings:
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "vocabulary": 220}
    return EncoderSettings(build=Architecture(**sizes), pooling="mean", max_length=16)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """Folder with papers.parquet and queries.parquet; papers 24 and 25 are kept out and have a word of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    kept_out = (f"{KEPT_OUT_WORD} {KEPT_OUT_WORD}", f"{KEPT_OUT_WORD} ÿ ÿ ÿ")
    write_papers(folder / "papers.parquet", paper_texts() | dict.fromkeys((24, 25), kept_out))
    write_queries(folder / "queries.parquet", {0: "train", 1: "validation", 24: "holdout", 25: "excluded"})
    return folder


@pytest.fixture
def halves(tmp_path: Path) -> list[Path]:
    """Two tables with the papers of odd numbers and of even ones."""
    of_rest = {rest: {n: text for n, text in paper_texts().items() if n % 2 == rest} for rest in (1, 0)}
    return [write_papers(tmp_path / f"halves/{rest}.parquet", texts) for rest, texts in of_rest.items()]


@pytest.fixture(scope="session")
def encoder(corpus: Path, small_settings: EncoderSettings, tmp_path_factory) -> Path:
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
    edit(folder / "config.json", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    return folder


@pytest.fixture(scope="session")
def by_sentence(corpus, small_settings, tmp_path_factory):
    """An untrained encoder that weighs sentences, and draws random numbers in training."""
    settings = small_settings.model_copy(update={"pooling": "sentences", "max_length": 32})
    folder = built(corpus, tmp_path_factory.mktemp("sentences") / "model", settings)
    edit(folder / "config.json", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    return folder


@pytest.fixture(scope="session")
def static(corpus, tmp_path_factory):
    return built(corpus, tmp_path_factory.mktemp("static") / "model", StaticSettings(kind="static", dimension=12))


@pytest.fixture(scope="session")
def examples(encoder: Path, tmp_path_factory) -> Path:
    """Folder with training (22 examples) and validation (6); positives share the topic."""
    folder = tmp_path_factory.mktemp("examples")
    asked = [(query, 2 * step) for query in range(6) for step in (1, 2, 3)] + [(query, 8) for query in range(4)]
    training = [(query, (query + ahead) % 16, (query + ahead + 1) % 16) for query, ahead in asked]
    validation = [(query, query + 2 * step, 23 - 2 * step + query % 2) for query in (16, 17) for step in (1, 2, 3)]
    for name, rows in (("training", training), ("validation", validation)):
        written_examples(folder / name, rows, paper_texts(), encoder)
    return folder


@pytest.fixture(scope="session")
def inputs(encoder: Path, examples: Path) -> Inputs:
    return Inputs(encoder=encoder, **{name: [files_in(examples / name)] for name in ("training", "validation")})


def inputs_of(encoder, write, parts):
    """Inputs of trainings on examples that a function writes, by the name of a part and what the part is of."""
    return Inputs(encoder=encoder, **{name: [write(name, of)] for name, of in parts.items()})


@pytest.fixture(scope="session")
def pairs(static, tmp_path_factory):
    """Inputs of trainings of a static encoder on pairs of the same topic."""
    folder = tmp_path_factory.mktemp("pairs")

    def write(name, rows):
        with_negatives = written_examples(folder / "triplets" / name, rows, paper_texts(), static)
        return written_pairs(folder / name, with_negatives, static)

    training = [(query, (query + 2 * step) % 16, 0) for query in range(16) for step in (1, 2, 3)]
    validation = [(query, query + 2 * step, 0) for query in (16, 17) for step in (1, 2, 3)]
    return inputs_of(static, write, {"training": training, "validation": validation})


def written_queries(folder, queries, texts, encoder):
    """Write examples of two aspects: papers of the same topic, and papers of neighbouring numbers."""
    rows, kinds = [], ["linked", "linked", "two-away", "easy"]
    for query in queries:
        topic, near = [(query + 2 * step) % 16 for step in (1, 2)], [(query + step) % 16 for step in (1, 3)]
        rows.append((query, topic, [*near, (query + 5) % 16, (query + 7) % 16], "background", kinds))
        rows.append((query, near, [*topic, (query + 6) % 16, (query + 8) % 16], "result", kinds))
    return written_aspects(folder, rows, texts, encoder)


QUERIES = {"training": range(12), "validation": range(12, 16)}


@pytest.fixture(scope="session")
def aspects(encoder: Path, tmp_path_factory) -> Inputs:
    """Inputs of trainings on examples of two aspects."""
    folder = tmp_path_factory.mktemp("aspects")
    return inputs_of(encoder, lambda name, of: written_queries(folder / name, of, paper_texts(), encoder), QUERIES)


@pytest.fixture(scope="session")
def split(by_sentence, tmp_path_factory):
    """The same over papers whose abstracts have three sentences, of an encoder that weighs these."""
    folder, texts = tmp_path_factory.mktemp("split"), {}
    for paper, (title, abstract) in paper_texts().items():
        words = abstract.split()
        texts[paper] = (title, " ".join(" ".join(words[at : at + 4]).capitalize() + "." for at in (0, 4, 8)))
    return inputs_of(by_sentence, lambda name, of: written_queries(folder / name, of, texts, by_sentence), QUERIES)


@pytest.fixture(scope="session")
def cropped_papers(encoder: Path, tmp_path_factory) -> Inputs:
    """Inputs of trainings on spans of papers."""
    folder, parts = tmp_path_factory.mktemp("crops"), {"training": range(12), "validation": range(16, 22)}
    return inputs_of(encoder, lambda name, of: written_crops(folder / name, [*of], paper_texts(), encoder), parts)


@pytest.fixture(scope="session")
def several(inputs: Inputs, cropped_papers: Inputs) -> Inputs:
    """Inputs of trainings with two objectives: triplets of a topic, and spans of papers."""
    training, validation = ([*getattr(inputs, of), *getattr(cropped_papers, of)] for of in ("training", "validation"))
    return Inputs(encoder=inputs.encoder, training=training, validation=validation)


@pytest.fixture(scope="session")
def command_line(inputs: Inputs):
    """A function that gives the words of a command that trains with some settings and writes into a folder."""

    def words(folder, encoder=inputs.encoder, inputs=inputs, **settings):
        written = {"output": "model", "curves": CURVES, "written-settings": "settings.json", "events": "tensorboard"}
        options = {name: folder / file for name, file in {**written, "state": "state"}.items()}
        options |= {"encoder": encoder, "seed": 1, "training-seed": 1, "threads": 1, "settings": json.dumps(settings)}
        options |= {"precision": "float32"}
        pairs = zip(inputs.training, inputs.validation, strict=True)
        sets = [path for pair in pairs for files in pair for path in (files.table, files.tokens)]
        given = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        return ["encoder", "train", *map(str, sets), *given]

    return words


@pytest.fixture(scope="module")
def train(inputs, tmp_path_factory):
    """A function that trains, two epochs of six steps unless settings say otherwise, and returns the folder."""

    def run(stopping=None, inputs=inputs, folder=None, **settings):
        return trained(folder or tmp_path_factory.mktemp("trained"), inputs, stopping, **{"epochs": 2, **settings})

    return run


@pytest.fixture(scope="session")
def write_examples(encoder):
    """A function that writes examples of some triplets of paper numbers, and their tokens, into a folder."""
    return lambda folder, rows: written_examples(folder, rows, paper_texts(), encoder)
