"""The section `models`: encoders that are fine-tuned on triplets."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config.aspects import CONCATENATED
from cocite.config.encoders import AdapterName
from cocite.config.entries import (
    Count,
    Entry,
    NonNegative,
    Positive,
    Refers,
    Seeds,
    ShortFor,
    Whole,
    all_parts,
    distinct,
    filled,
    inconsistent,
)
from cocite.config.loss import Loss
from cocite.config.plugins import one_of
from cocite.config.runs import BASELINES

LOSSES = "cocite.encoder.losses"

if TYPE_CHECKING:
    AnyLoss = Loss
else:
    AnyLoss = one_of(LOSSES, "kind")


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


class Bottlenecks(Entry):
    """An adapter alone: bottlenecks between the layers, which stay beside the weights of the encoder. Tasks of its
    format see what the encoder gives with it; the others see what they saw before."""

    kind: Literal["adapter"]
    """Which weights learn."""
    name: AdapterName = "proximity"
    """Its name, that of a format of tasks; one that the encoder has by that name learns on."""
    reduction: Count = 16
    """How many times narrower than the encoder the bottlenecks are."""


Kinds = Annotated[tuple[Literal["linked", "two-away", "easy"], ...], Strict(False), AfterValidator(filled)]


Spaces = Annotated[
    tuple[Literal["background", "methodology", "result", "miscellaneous", "concatenated"], ...],
    Strict(False),
    AfterValidator(distinct),
]


class Term(Entry):
    """One of the losses that a training adds up."""

    loss: Annotated[AnyLoss, ShortFor("kind")]
    """How examples are compared: a name, or a name and its settings."""
    space: Literal["encoder", "aspects"] = "encoder"
    """Where: the vectors of the encoder, or those that a linear map of each aspect makes of them."""
    negatives: Kinds | None = None
    """Kinds of negatives that it sees; an example without any of them does not count in it. Left out, all."""
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    """What it is multiplied by. The α of a hybrid is the weight of one loss, and 1 − α that of the other; with 0, it is
    not computed."""


def _usual_loss(given: dict[str, Any]) -> str | None:
    return None if given.get("objectives") else "triplet"


class TrainingSettings(Entry):
    """How an encoder is fine-tuned on triplets."""

    objectives: Annotated[tuple[Term, ...], Strict(False), AfterValidator(filled)] | None = None
    """Several losses that are added up, in place of loss, each in a space and over kinds of negatives of its own."""
    loss: Annotated[AnyLoss | None, ShortFor("kind")] = Field(default_factory=_usual_loss, validate_default=True)
    """How triplets are compared (docs/losses.md has the formulas): a name, or a name and its settings. Left out,
    triplet, where there are no objectives."""
    matryoshka: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Numbers of leading dimensions by which the loss is computed as well, beside all of them; the losses are added
    up, so that vectors can be cut to these lengths (Kusupati et al., 2022)."""
    projection: Count | None = None
    """Dimensions of a projection of two layers that the loss sees in place of the vectors; it learns with the encoder
    and is dropped in the end (SimCLR)."""
    block: Count | None = None
    """Triplets of a query that stay together in a batch, which encodes the query once for all of them; infonce and
    supcon compare within them. 1 shuffles all triplets, as published for the triplet loss. Left out, the published 4
    in infonce and 8 in the others."""
    epochs: Count = 1
    """Passes over the triplets."""
    max_steps: Count | None = None
    """Steps after which the training ends, if it has not gone through its epochs by then."""
    batch_size: Count = 32
    """Triplets in a batch, which several processes share."""
    mini_batch_tokens: Count | None = None
    """Tokens of a batch that are in memory at once, padding counted, but at least one document. Left out, all; with a
    number, the gradients are the same (GradCache), a batch of any size fits, and a step takes about a third longer."""
    trainable: Annotated[
        AllWeights | BiasTerms | LowRank | Bottlenecks, Field(discriminator="kind"), ShortFor("kind")
    ] = AllWeights(kind="all")
    """Which weights learn: a name, or a name and its settings."""
    accumulation: Count = 1
    """Batches whose gradients make one step."""
    lr: Positive = 2e-5
    """Largest learning rate (AdamW)."""
    warmup: NonNegative = 0.05
    """Steps in which the learning rate rises from zero: below 1 a share of all steps, otherwise their number."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rate goes on after that: linear and cosine fall to zero, constant stays."""
    weight_decay: NonNegative = 0.0
    """Weight decay (AdamW). Vectors, such as biases and the weights of normalisation, do not decay."""
    epsilon: Positive = 1e-8
    """What AdamW adds to the root of the second moment."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm."""
    evaluations: Count = 4
    """Times that the common validation set is measured, at even intervals; the best state is kept."""
    validate_every: Count | None = None
    """Steps between two measurements of the validation set, in place of evaluations; the last step is followed by one
    in any case."""
    patience: Count | None = None
    """Measurements in a row without a smaller loss that end the training. Left out, it runs to the end."""

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> "TrainingSettings":
        if self.loss is not None and self.objectives is not None:
            raise inconsistent(".loss has no effect beside objectives, each of which has a loss of its own.")
        if not self.terms:
            raise inconsistent(".objectives all have weight 0; nothing would be learned.")
        in_encoder = any(term.space == "encoder" for term in self.terms)
        for key in ("matryoshka", "projection"):
            if getattr(self, key) is not None and not in_encoder:
                raise inconsistent(f".{key} has no effect where no objective is in the encoder's space.")
        if self.validate_every is not None and self.evaluations != type(self).model_fields["evaluations"].default:
            raise inconsistent(
                f".evaluations ({self.evaluations}) has no effect beside validate_every ({self.validate_every}); leave "
                "one of them out."
            )
        if self.matryoshka is not None and self.projection is not None:
            raise inconsistent(".matryoshka has no effect on vectors behind a projection; leave one of them out.")
        return self

    @property
    def terms(self) -> tuple[Term, ...]:
        """The losses that are added up: the objectives that have a weight, or the loss alone."""
        given = self.objectives or (Term.model_construct(loss=self.loss),)
        return tuple(term for term in given if term.weight)

    @property
    def together(self) -> int:
        """How many triplets of a query stay together in a batch."""
        return max(term.loss.together for term in self.terms) if self.block is None else self.block


class Model(TrainingSettings):
    """An encoder that is fine-tuned on a set of triplets."""

    triplets: Annotated[str, Refers("triplets")]
    """Name of the set of triplets."""
    encoder: Annotated[str, Refers("encoders")]
    """Name of the encoder."""
    seeds: Seeds = (1,)
    """One training for each seed."""
    dimension: Count | None = None
    """Dimensions of its vectors that benchmarks and searches see, the first so many; left out, all. A model that is
    trained with matryoshka loses little by it, and is not trained again."""
    spaces: Spaces = ()
    """Spaces of aspects in which benchmarks score it as well, beside that of the encoder; concatenated has the
    dimensions of all of them. In the scores it is called after the space: hybrid_in_result."""
    processes: Count = 1
    """Processes that share each batch of a training. It starts them; each has a GPU of its own where there are any."""
    threads: Count = 1
    """Threads of a training on the CPU. Several trainings side by side with one thread each are faster than one
    after the other with several; another number changes the last digits of the weights."""
    memory_mb: Count | None = None
    """Memory that a training asks for, MB. Left out, it follows from the sizes of the encoder, of the documents and of
    the batch. A second attempt asks for twice as much."""

    def faults_of_references(self, key: str, config: Whole) -> Iterator[str]:
        """Objectives that the set of triplets has nothing for, or spaces that the model does not have."""
        sets = config.triplets
        held = [sets[name] for name in (self.triplets, *all_parts(self.triplets, lambda part: sets[part].parts))]
        aspects = dict.fromkeys(aspect for each in held for aspect in each.aspects)
        kinds = dict.fromkeys(kind for each in held for kind in each.kinds)
        in_aspects = any(term.space == "aspects" for term in self.terms)
        known = (*aspects, CONCATENATED) if in_aspects else ()
        for space in self.spaces:
            if space not in known:
                has = ", ".join(known) or "none; an objective with space: aspects gives them"
                yield f"{key}.spaces names {space!r}, and the model has {has}."
        if self.spaces and self.dimension is not None:
            yield f"{key}.dimension ({self.dimension}) cuts vectors, which have no other spaces then; leave it out."
        for number, term in enumerate(self.objectives or ()):
            at = f"{key}.objectives[{number}]"
            if term.space == "aspects" and not aspects:
                yield f"{at}.space is aspects, and triplets.{self.triplets} has none; the sampler aspects gives them."
            for kind in term.negatives or ():
                if kind not in kinds:
                    has = ", ".join(kinds) or "no kinds of negatives"
                    yield f"{at}.negatives names {kind!r}, and triplets.{self.triplets} has {has}."

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """The name of a baseline, or the width of an adapter that exists."""
        if key.removeprefix("models.") in BASELINES:
            yield f"{key}: that name is a baseline's; give the model another."
        encoder = config.encoders.get(self.encoder)
        match self.trainable:
            case Bottlenecks(name=name, reduction=reduction) if encoder is not None and name in (
                encoder.adapters or {}
            ):
                if reduction != Bottlenecks.model_fields["reduction"].default:
                    yield (
                        f"{key}.trainable.reduction ({reduction}) has no effect: the encoder {self.encoder} has an "
                        f"adapter {name}, which learns on as wide as it is."
                    )
