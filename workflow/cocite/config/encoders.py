"""The section `encoders`: text encoders before fine-tuning, and which of their weights can learn."""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config import entries
from cocite.config.entries import Commit, Count, Entry, GivenPath, Name, Refers, ShortFor, Text, Whole, inconsistent
from cocite.config.loss import Loss

POOLINGS = tuple(import_module("cocite.encoder.poolings").POOLINGS)
USUAL_POOLING = "mean"  # that of an encoder whose folder and settings name none
LOSSES = "cocite.encoder.losses"

if TYPE_CHECKING:
    AnyLoss = Loss
else:
    AnyLoss = entries.one_of(LOSSES, "kind")

AdapterName = Literal["proximity", "classification", "regression", "search"]
FieldName = Literal["title", "abstract", "venue", "authors", "year"]
TITLE_AND_ABSTRACT: tuple[FieldName, ...] = ("title", "abstract")  # what a document is read as by default


def _starts_with_title(fields: tuple[FieldName, ...]) -> tuple[FieldName, ...]:
    if fields[:1] != ("title",):
        raise entries.unsuitable(", which must start with title")
    return fields


Fields = Annotated[
    tuple[FieldName, ...], Strict(False), AfterValidator(entries.distinct), AfterValidator(_starts_with_title)
]


class Architecture(Entry):
    """Sizes of a BERT that is built untrained."""

    layers: Count = 2
    """Transformer layers."""
    hidden: Annotated[int, Field(ge=8)] = 128
    """Width of a layer; a multiple of heads. The feed-forward layer is four times as wide."""
    heads: Count = 2
    """Attention heads."""
    vocabulary: Annotated[int, Field(ge=200)] = 4000
    """Largest number of WordPiece tokens."""

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> "Architecture":
        if self.hidden % self.heads:
            raise inconsistent(".hidden must be a multiple of heads.")
        return self


class Adapter(Entry):
    """An adapter that exists, in the layout of the library adapters with its weights as safetensors."""

    model: GivenPath
    """Hugging Face id (pin it with revision) or a local folder; variables of the environment are filled in."""
    revision: Commit | None = None
    """Commit of the Hugging Face model, 40 hexadecimal digits."""


class Prompts(Entry):
    """What is put before texts, such as `query: ` and `passage: `. Without either, nothing, whatever the folder has."""

    query: Text | None = None
    """Before short queries: those of sets of examples and of benchmarks, and what `cocite search` is asked."""
    document: Text | None = None
    """Prefix of all other texts: papers, including those that are queries, and user-supplied documents."""


class LearnedMap(Entry):
    """A linear map that a probe has learned of the vectors of the same encoder."""

    probe: Annotated[str, Refers("probes")]
    """Name of the probe."""
    triplets: Text
    """Name of one of its sets."""
    loss: Annotated[AnyLoss, ShortFor("kind")]
    """One of its losses: a name, or a name and its settings."""
    batch_size: Count = 128
    """One of its sizes of a batch."""
    training_seed: Count = 1
    """One of its seeds."""


class _Encoder(Entry):
    """What encoders of any kind have in common; each has the fields `model`, `revision` and `text`."""

    @property
    def further(self) -> tuple[FieldName, ...]:
        """The fields of a document that are read in addition to title and abstract."""
        fields: tuple[FieldName, ...] | None = self.text  # type: ignore[attr-defined]
        return tuple(name for name in fields or () if name not in TITLE_AND_ABSTRACT)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder that is not there, a model of the hub without its commit, or authors that are not kept."""
        entry: Any = self
        if "authors" in self.further and not config.corpus.authors:
            yield f"{key}.text has authors, which the corpus does not keep; set corpus.authors: true."
        if entry.model is not None:
            yield from entries.unpinned(key, "model", entry.model, entry.revision)


class EncoderSettings(_Encoder):
    """A transformer before fine-tuning. Exactly one of model, package and build gives its source."""

    kind: Literal["transformer"] = "transformer"
    """What it is."""
    model: GivenPath | None = None
    """Hugging Face id (pin it with revision) or a local folder in the layout of Hugging Face or sentence-transformers;
    variables of the environment are filled in."""
    revision: Commit | None = None
    """Commit of the Hugging Face model, 40 hexadecimal digits."""
    package: entries.PackageName | None = None
    """Installed Python package that carries the model and names its folder with get_model_path()."""
    build: Architecture | None = None
    """Builds an untrained BERT with a WordPiece vocabulary from the corpus itself."""
    pooling: Literal[*POOLINGS] | None = None  # type: ignore[valid-type]
    """How the vectors of a text's tokens become one: cls takes the first token's vector, last the last one's, as in
    decoders (Qwen3-Embedding), mean the mean over all tokens, max the largest value of each dimension, sentences the
    vectors of its sentences, weighted by attention to the names of the aspects. Left out, that of the model's folder,
    and mean if the folder has none."""
    normalise: bool | None = None
    """Whether vectors are scaled to length 1, so that Euclidean distances rank documents as cosines do. Models that are
    trained from the encoder do the same, and losses see the scaled vectors. Left out, they are scaled if the folder of
    the model ends with a normalisation; false leaves it out, as the literature on papers has it."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Largest number of tokens of a text; longer texts are truncated."""
    text: Fields | None = None
    """Fields that a document is read as, in this order, joined by the tokenizer's separator: title first, and any of
    abstract, venue, authors and year. A field that a document lacks is left out; short queries are read as they are.
    Models that are trained from the encoder read the same. authors needs corpus.authors. Left out, title and
    abstract."""
    separator: Text | None = None
    """Separator between the fields of a document. A space suits encoders that were trained on texts joined by spaces,
    as most published encoders for general text. Models trained from this encoder use the same separator. Default: the
    tokenizer's separator token, as usual in the literature on papers."""
    sentence_wise: bool | None = None
    """Whether the title, each sentence of the abstract and each further field are embedded by themselves; a document's
    vector is then their sum, normalised to length 1. Such an encoder is scored as it is, and no model starts from it.
    Left out, a document is embedded as one text."""
    linear_map: LearnedMap | None = None
    """A linear map behind the pooling, which a probe of the same encoder without it has learned: a model after seconds
    of training, scored as it is, and a start for models that are trained from the encoder. Left out, none but one that
    the model's own folder has."""
    prompts: Prompts | None = None
    """What is put before texts. It travels with models that are trained from the encoder. Left out, the prompts of the
    model's folder; `{}` for none."""
    query_max_length: Annotated[int, Field(ge=8)] | None = None
    """Largest number of tokens of a short query, prompt included; longer ones are truncated. Default: max_length."""
    adapters: dict[AdapterName, Adapter] | None = None
    """Adapters of the model (SPECTER2: bottlenecks within its layers), by the format of the tasks that use them. A
    model that is fine-tuned from this encoder keeps them if it trains an adapter itself."""

    source: ClassVar[None] = None  # no other encoder gives it anything, as to a static one

    @model_validator(mode="after")
    def _has_one_origin(self) -> "EncoderSettings":
        given = [name for name in ("model", "package", "build") if getattr(self, name) is not None]
        if len(given) != 1:
            raise inconsistent(" needs exactly one of model, package and build.")
        if self.revision is not None and self.model is None:
            raise inconsistent(f".revision does not go with {given[0]}: only a model of the hub has one.")
        if self.query_max_length is not None and self.query_max_length > self.max_length:
            raise inconsistent(
                f".query_max_length ({self.query_max_length}) must not exceed max_length ({self.max_length})."
            )
        if self.adapters and self.build is not None:
            raise inconsistent(".adapters do not go with build: they belong to the weights of an encoder that exists.")
        if self.linear_map is not None and self.build is not None:
            raise inconsistent(".linear_map does not go with build: it belongs behind weights that exist.")
        if self.separator is not None and (self.sentence_wise or self.pooling == "sentences"):
            raise inconsistent(".separator has no effect if the sentences of a document are told apart; leave it out.")
        if self.sentence_wise and self.pooling == "sentences":
            raise inconsistent(".sentence_wise does not go with pooling: sentences, which weighs them within one text.")
        return self

    @property
    def is_built(self) -> bool:
        """Whether it is built for the corpus."""
        return self.build is not None

    @property
    def known_pooling(self) -> str | None:
        """The pooling before the encoder is fetched; None if it is that of a folder."""
        return self.pooling or (USUAL_POOLING if self.is_built else None)

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A map that the probe does not learn, or learns of the vectors of another encoder."""
        if self.linear_map is None:
            return
        probe = config.probes[self.linear_map.probe]
        learned = {
            "triplets": (self.linear_map.triplets, probe.sets),
            "loss": (self.linear_map.loss, probe.losses),
            "batch_size": (self.linear_map.batch_size, probe.batch_sizes),
            "training_seed": (self.linear_map.training_seed, probe.seeds),
        }
        for name, (asked, known) in learned.items():
            if asked not in known:
                yield f"{key}.linear_map.{name} is none of probes.{self.linear_map.probe}."
        if config.encoders[probe.encoder] != self.model_copy(update={"linear_map": None}):
            of = f"probes.{self.linear_map.probe} maps vectors of the encoder {probe.encoder}"
            yield f"{key}.linear_map: {of}, which has other settings than this one has without its map."
        for entry in config.set_with_parts(self.linear_map.triplets).values():
            by: Any = getattr(entry, "by", None)
            match getattr(by, "kind", None):  # nothing is mined without one: `by` of a subset is query or triplet
                case "encoder":
                    name = by.name
                case "model":
                    name = config.base_encoder(by.name)  # empty in a circle
                case _:
                    continue
            if name and config.encoders[config.encoders[name].source or name].linear_map is not None:
                yield (
                    f"{key}.linear_map.triplets ({self.linear_map.triplets}) has negatives that were mined by the "
                    f"encoder {name}, which has a map as well, or comes from one that has; mine them by an encoder "
                    "without one."
                )

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """What any encoder lacks, and adapters that are not there or have no commit."""
        yield from super().check_environment(key, config)
        for name, adapter in (self.adapters or {}).items():
            yield from entries.unpinned(f"{key}.adapters.{name}", "model", adapter.model, adapter.revision)


class StaticSettings(_Encoder):
    """A table of the vectors of word pieces: a text has their weighted mean, of length 1.

    It trains on pairs, such as those of the sampler `links`, in minutes of a CPU. Built for a corpus, its vectors are
    random and its vocabulary is that of the corpus, without papers that are kept out, unless another encoder gives
    them.
    """

    kind: Literal["static"]
    """What it is."""
    dimension: Count = 256
    """Numbers of a vector of a table that is built."""
    vocabulary: Annotated[int, Field(ge=200)] = 30_000
    """Largest number of word pieces of a table with its own vocabulary."""
    vocabulary_of: Annotated[Name | None, Refers("encoders")] = None
    """A transformer whose tokenizer and vocabulary the table uses. Default: a vocabulary from the corpus."""
    distilled_from: Annotated[Name | None, Refers("encoders")] = None
    """A transformer that provides the vocabulary and the initial vectors: the principal components of its vectors of
    single tokens, scaled by the rarity of each token in the corpus. Remaining dimensions are random; without this key,
    all are."""
    counts: Literal["log", "plain"] | None = None
    """Weight of a piece that occurs n times in a text: log is log(1 + n), plain is n. Other libraries support only
    plain. Default: log for a new table, plain for an existing one."""
    model: GivenPath | None = None
    """A table that exists: Hugging Face id (pin it with revision) or a local folder in the layout of model2vec or of
    sentence-transformers' StaticEmbedding. Left out, one is built."""
    revision: Commit | None = None
    """Commit of the Hugging Face model, 40 hexadecimal digits."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Largest number of word pieces of a text; longer texts are truncated."""
    text: Fields | None = None
    """Fields that a document is read as, in this order, as of a transformer. Left out, title and abstract."""

    # The same properties as a transformer's.
    known_pooling: ClassVar[str] = USUAL_POOLING
    separator: ClassVar[str] = " "
    sentence_wise: ClassVar[bool] = False
    build: ClassVar[None] = None
    package: ClassVar[None] = None
    linear_map: ClassVar[None] = None
    prompts: ClassVar[None] = None
    query_max_length: ClassVar[None] = None
    adapters: ClassVar[None] = None

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> "StaticSettings":
        if self.model is None and self.revision is not None:
            raise inconsistent(".revision has no effect without model: only a model of the hub has one.")
        keys = ("dimension", "vocabulary", "vocabulary_of", "distilled_from")
        given = [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]
        if self.model is not None and given:
            raise inconsistent(f".{given[0]} has no effect with model, whose table has its own.")
        if len(given) > 1 + ("dimension" in given):
            raise inconsistent(
                f" has {given[-2]} and {given[-1]}, each of which chooses the vocabulary; leave one out."
            )
        return self

    @property
    def is_built(self) -> bool:
        """Whether it is built for the corpus."""
        return self.model is None

    @property
    def source(self) -> str | None:
        """The encoder that gives the vocabulary, and the first vectors if they are distilled."""
        return self.distilled_from or self.vocabulary_of

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A static encoder as the source."""
        if self.source is not None and config.encoders[self.source].kind == "static":
            name = "distilled_from" if self.distilled_from else "vocabulary_of"
            yield f"{key}.{name} ({self.source}) is a static encoder; name a transformer."


AnyEncoder = Annotated[
    EncoderSettings | StaticSettings, Field(discriminator="kind"), entries.default_of("kind", "transformer")
]


class AllWeights(Entry):
    """All weights learn."""

    kind: Literal["all"]
    """Which weights learn."""


class BiasTerms(Entry):
    """The bias terms only (BitFit), for which ten times the learning rate is common."""

    kind: Literal["bias"]
    """Which weights learn."""


class LowRank(Entry):
    """Low-rank additions to the linear layers, which are summed into them in the end."""

    kind: Literal["lora"]
    """Which weights learn."""
    rank: Count = 8
    """Rank of the additions."""
    alpha: Count = 16
    """The additions are scaled by this over their rank."""
    modules: Annotated[tuple[Text, ...], Strict(False), AfterValidator(entries.distinct)] | None = None
    """Names of the linear layers that get additions, such as q_proj and v_proj. Left out, all within the layers of the
    transformer: those of attention and of the feed-forward part."""


class Bottlenecks(Entry):
    """Trains only an adapter: bottlenecks between the layers, saved with the unchanged weights of the encoder. Only
    tasks of its format use it; the others get the encoder as it was."""

    kind: Literal["adapter"]
    """Which weights learn."""
    name: AdapterName = "proximity"
    """Its name, that of a format of tasks; one that the encoder has by that name learns on."""
    reduction: Count = 16
    """How many times narrower than the encoder the bottlenecks are."""
