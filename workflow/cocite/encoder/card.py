"""The card of an encoder, README.md in its folder. The report adds scores on benchmarks to a copy of it."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.origins import CARD_SCORES
from cocite.core.atomic import write_text
from cocite.encoder.poolings import is_by_sentence

VERSIONED = ("torch", "transformers", "tokenizers", "sentencex", "safetensors", "numpy")
UNTRAINED = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
---
# {title}

{text} Made with {versions}.
"""
FIELDS, SEPARATOR = "fields", "between the fields"
"""Rows of the card for the fields of a document and the separator between them, if they are not the usual ones."""
PAPER = "PAPER"
"""Placeholder of a paper in the code that the card shows."""
USE = """    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("this folder")
    vectors = model.encode([{joined}{of_document})"""
USE_OF_PROMPTS = """

It was trained with prompts, which the library puts before the texts: `prompt_name="document"` before publications, and
`prompt_name="query"` before short queries."""
USE_OF_SPACES = """

The folder also has a space for each aspect of citations, a linear map of the vectors above ({names}):

    """
USE_OF_SPACE = """of_aspect = SentenceTransformer("this folder/aspects/{first}")"""
USE_OF_SPACE_BY_SENTENCE = """vectors = embed_papers("this folder", [PAPER], space="{first}")"""
USE_BY_SENTENCE = """    from cocite.encoder.embedding import embed_papers

    vectors = embed_papers("this folder", [PAPER])

sentence-transformers cannot open it: the pooling weighs the sentences of a text by the names of aspects
(SciAspectWeighted, 2023), and no module of that library does."""
USE_OF_ADAPTER = """What was trained is the adapter `{name}` alone, in `adapters/{name}`. sentence-transformers opens
this folder without it. The library adapters switches it on; vectors are pooled from its tokens ({pooling}):

    from adapters import AutoAdapterModel

    model = AutoAdapterModel.from_pretrained("this folder")
    model.load_adapter("this folder/adapters/{name}", use_safetensors=True, set_active=True)"""
CARD = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags:
- sentence-transformers
- scientific-publications
---
# An encoder of scientific publications

It embeds {read}, joined by {separator}, so that publications that belong together lie
near each other. It was fine-tuned on examples (queries, positives, negatives); of the states that were validated on
further ones, it is the one with the smallest validation loss ({loss:.4f} at step {step}, where {accuracy:.1%} of the
positives were nearer than their negatives).

{use}

{tables}

{scores}

This card was written when the training ended, before the model was scored. A run writes a copy of it with the scores
to `report/cards` in its folder of results.
"""


def card_of(
    *,
    origin: Mapping[str, Mapping[str, Any]],
    encoder: Mapping[str, Any],
    settings: Mapping[str, Any],
    seeds: Mapping[str, int],
    triplets: Mapping[str, int],
    best: Mapping[str, float],
    versions: Mapping[str, str],
    spaces: Sequence[str] = (),
    teachers: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The card, in Markdown: `origin` is as `cocite.config.origins` has it, `best` the validation of the state kept."""
    validated = {name: f"{value:.4f}" for name, value in best.items() if name.startswith("validation_")}
    tables = {
        "Encoder": encoder,
        **origin,
        "Training": {
            **{f"{name} triplets": number for name, number in triplets.items()},
            **effective(settings),
            **{f"seed of the {name}": seed for name, seed in seeds.items()},
            **{f"teacher {name}": said for name, said in teachers.items()},
        },
        "Scores on the validation triplets": validated,
        "Libraries": versions,
    }
    shown = []
    for heading, values in tables.items():
        cells = {name: str(value).replace("|", "\\|").replace("\n", " ") for name, value in values.items()}
        rows = "".join(f"\n| {name} | {cell} |" for name, cell in cells.items())
        shown += [f"## {heading}\n\n| | |\n|---|---|{rows}"] if values else []
    return CARD.format(
        read=f"the fields {encoder[FIELDS]}" if FIELDS in encoder else "a title and an abstract",
        separator=encoder.get(SEPARATOR, "the tokenizer's separator"),
        use=_use(encoder, settings["trainable"], spaces),
        loss=best["validation_loss"],
        step=best["step"],
        accuracy=best["validation_accuracy"],
        tables="\n\n".join(shown),
        scores=CARD_SCORES,
    )


def _use(encoder: Mapping[str, Any], trainable: Mapping[str, Any], spaces: Sequence[str]) -> str:
    """How to open the encoder, and the spaces of its aspects, if there are any."""
    fields = encoder[FIELDS].split(", ") if FIELDS in encoder else TITLE_AND_ABSTRACT
    joined = f" + {encoder.get(SEPARATOR, 'model.tokenizer.sep_token')} + ".join(fields)
    opened = USE_OF_SPACE
    if is_by_sentence(encoder["pooling"]):
        paper = f"({', '.join(fields)})" if len(fields) > 1 else f"({fields[0]},)"
        use, opened = (text.replace(PAPER, paper) for text in (USE_BY_SENTENCE, USE_OF_SPACE_BY_SENTENCE))
    elif "prompts" in encoder:
        use = USE.format(joined=joined, of_document='], prompt_name="document"') + USE_OF_PROMPTS
    else:
        use = USE.format(joined=joined, of_document="]")
    if trainable["kind"] == "adapter":
        use = USE_OF_ADAPTER.format(name=trainable["name"], pooling=encoder["pooling"])
    return use + (USE_OF_SPACES.format(names=", ".join(spaces)) + opened.format(first=spaces[0]) if spaces else "")


def card_of_untrained(title: str, text: str) -> str:
    """The card of an encoder that is not fine-tuned, in Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    return UNTRAINED.format(title=title, text=text, versions=versions)


def add_remark(card: Path, remark: str) -> None:
    """Add a remark to a card, below its title."""
    title, line, rest = card.read_text(encoding="utf-8").partition("\n# ")
    heading, _, text = rest.partition("\n")
    write_text(card, f"{title}{line}{heading}\n{remark}{text}")


def effective(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a training, one a row, with those of its losses and of the weights that learn."""
    rows: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            rows[name] = value["kind"]
            rows |= {f"{name}: {key}": each for key, each in value.items() if key != "kind"}
        elif name == "objectives":
            for number, objective in enumerate(value, 1):
                rows |= {f"objective {number}: {key}": each for key, each in effective(objective).items()}
        elif value is not None:
            rows[name] = value
    return rows


def library_versions() -> dict[str, str]:
    """The versions of the libraries that a result depends on."""
    return {name: version(name) for name in VERSIONED}
