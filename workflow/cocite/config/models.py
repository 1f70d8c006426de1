"""The section `models`: encoders that are fine-tuned on one set of examples, or on several."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config import entries
from cocite.config.encoders import POOLINGS, AllWeights, AnyLoss, BiasTerms, Bottlenecks, LowRank
from cocite.config.entries import Count, Entry, NonNegative, Positive, Refers, Seeds, ShortFor, Whole, inconsistent
from cocite.config.graphs import CONCATENATED
from cocite.config.loss import Loss

Kinds = Annotated[
    tuple[Literal["linked", "two-away", "easy", "elsewhere", "mined"], ...],
    Strict(False),
    AfterValidator(entries.filled),
]
Spaces = Annotated[
    tuple[Literal["background", "methodology", "result", "miscellaneous", "concatenated"], ...],
    Strict(False),
    AfterValidator(entries.distinct),
]

SIMPLE_POOLINGS = tuple(name for name in POOLINGS if name != "sentences")  # the poolings of token vectors


class Term(Entry):
    """A training objective: one of several losses that are summed, or, with its own set, one of several tasks."""

    triplets: Annotated[str | None, Refers("triplets")] = None
    """Name of the set that it learns from, with its own validation set, that of the set's group. Left out, that of the
    model; with one, each objective has one, and they are mixed as the model's mixing says."""
    loss: Annotated[AnyLoss, ShortFor("kind")]
    """How examples are compared: a name, or a name and its settings."""
    one_per_query: bool = False
    """For a set of its own: whether one pass through it uses one example per query, a different one in each pass."""
    space: Literal["encoder", "aspects"] = "encoder"
    """Space of the loss: the encoder's vectors, or a linear projection of them for each aspect."""
    negatives: Kinds | None = None
    """Kinds of negatives that it sees; an example without any of them does not count in it. Left out, all."""
    weight: Annotated[float | None, Field(ge=0, le=1)] = None
    """Factor of a loss in the sum; default 1. The α of a hybrid is the weight of one loss, 1 − α that of the other. A
    loss with weight 0 is not computed. For objectives with their own sets, the share of the examples that come from
    this set: the shares sum to 1, and are equal by default."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A loss that a training computes, with what it compares."""

    loss: Loss
    space: Literal["encoder", "aspects"]
    negatives: tuple[str, ...] | None  # kinds of negatives that it sees; None for all
    weight: float = 1.0  # what it is multiplied by
    objectives: frozenset[int] | None = None  # objectives whose examples it compares with one another; None for all


class TrainingSettings(Entry):
    """How an encoder is fine-tuned on examples."""

    objectives: Annotated[tuple[Term, ...], Strict(False), AfterValidator(entries.filled)] | None = None
    """Several losses in place of loss: either summed over one set of examples, each with its own space and kinds of
    negatives, or with separate sets that are mixed."""
    mixing: Literal["in-batch", "alternating"] | None = None
    """How sets of examples are mixed. in-batch draws each example of a batch from one of the sets, so that losses over
    whole batches compare the examples of all objectives with the same loss. alternating takes each batch from one set,
    in turn, or more often from sets with a larger share. Default with sets: in-batch. An epoch has as many examples as
    all sets together; smaller sets start over."""
    loss: Annotated[AnyLoss | None, ShortFor("kind")] = Field(
        default_factory=lambda given: None if given.get("objectives") else "triplet", validate_default=True
    )
    """How triplets are compared (docs/losses.md has the formulas): a name, or a name and its settings. Default without
    objectives: triplet."""
    matryoshka: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Numbers of leading dimensions for which the loss is also computed, in addition to the full vector. The losses are
    summed, so that vectors can be truncated to these lengths (Kusupati et al., 2022)."""
    projection: Count | None = None
    """Dimensions of a projection of two layers that the loss sees in place of the vectors; it learns with the encoder
    and is dropped in the end (SimCLR)."""
    block: Count | None = None
    """Triplets of a query that stay together in a batch, which encodes the query once for all of them; infonce and
    supcon compare within them. 1 shuffles all triplets, as published for the triplet loss. Left out, the published 4
    in infonce, 8 in triplet and supcon, and 1 in the others; of several losses, the largest."""
    one_per_query: bool = False
    """Whether an epoch uses one example per query, a different one in each epoch, instead of all. Objectives with their
    own sets configure this per set."""
    epochs: Count = 1
    """Passes over the triplets."""
    max_steps: Count | None = None
    """Steps after which the training ends, if it has not gone through its epochs by then."""
    batch_size: Count = 32
    """Triplets in a batch, which several processes share."""
    mini_batch_tokens: Count | Literal["auto", "all"] = "auto"
    """Tokens of a batch that are in memory at once, padding counted, but at least one document. With a number, the
    gradients are the same (GradCache), a batch of any size fits, and a step takes about a third longer. auto takes all
    if they fit into the memory of the job, or of the GPU, and else as many as do."""
    trainable: Annotated[
        AllWeights | BiasTerms | LowRank | Bottlenecks, Field(discriminator="kind"), ShortFor("kind")
    ] = AllWeights(kind="all")
    """Which weights learn: a name, or a name and its settings."""
    accumulation: Count = 1
    """Batches whose gradients make one step."""
    lr: Positive = 2e-5
    """Largest learning rate (AdamW)."""
    warmup: NonNegative = 0.05
    """Warm-up steps, in which the learning rate rises from zero: a share of all steps if below 1, else a number."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """Learning rate after the warm-up: linear and cosine decay to zero, constant does not change."""
    weight_decay: NonNegative = 0.0
    """Weight decay (AdamW). Vectors, such as biases and the weights of normalisation, do not decay."""
    epsilon: Positive = 1e-8
    """What AdamW adds to the root of the second moment."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm."""
    validations: Count = 4
    """Times that the common validation set is measured, at even intervals; the best state is kept."""
    validate_every: Count | None = None
    """Steps between two measurements of the validation set, in place of validations; the last step is followed by one
    in any case."""
    patience: Count | None = None
    """Measurements in a row without a smaller loss that end the training. Left out, it runs to the end."""

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> "TrainingSettings":
        if self.loss is not None and self.objectives is not None:
            raise inconsistent(".loss has no effect with objectives, each of which has its own loss.")
        if self.loss is None and self.objectives is None:
            raise inconsistent(".loss is null; name a loss, or leave it out for triplet.")
        if not self.comparisons:
            raise inconsistent(".objectives all have weight 0; nothing would be learned.")
        self._check_mixing()
        for number, term in enumerate(self.objectives or ()):
            if term.loss.input_kind != "examples":
                at, of = f".objectives[{number}]", f"has no effect on the loss {term.loss.kind}, which sees"
                if term.space != "encoder":
                    raise inconsistent(f"{at}.space ({term.space}) {of} documents of no aspect.")
                if term.negatives is not None:
                    raise inconsistent(f"{at}.negatives {of} all documents.")
        if len({term.loss for term in self.objectives or () if term.loss.input_kind == "masks"}) > 1:
            raise inconsistent(".objectives mask two shares of the tokens; give each mlm the same share.")
        in_encoder = any(each.space == "encoder" and each.loss.input_kind != "masks" for each in self.comparisons)
        for key in ("matryoshka", "projection"):
            if getattr(self, key) is not None and not in_encoder:
                raise inconsistent(f".{key} has no effect if no objective is in the encoder's space.")
        if self.block not in (None, 1) and all(self.of_one_per_query):
            raise inconsistent(f".block ({self.block}) has no effect with one_per_query, which shuffles all examples.")
        if self.patience is not None and self.validate_every is None and self.patience >= self.validations - 1:
            raise inconsistent(f".patience ({self.patience}) has no effect on {self.validations} validations.")
        if self.validate_every is not None and self.validations != type(self).model_fields["validations"].default:
            raise inconsistent(f".validations ({self.validations}) has no effect with validate_every; leave one out.")
        if self.matryoshka is not None and self.projection is not None:
            raise inconsistent(".matryoshka has no effect on vectors behind a projection; leave one of them out.")
        return self

    def _check_mixing(self) -> None:
        """Raise a sentence where sets and shares of the objectives do not fit."""
        given = self.objectives or ()
        with_sets = [term.triplets for term in given if term.triplets is not None]
        if self.one_per_query if with_sets else self.mixing or any(term.one_per_query for term in given):
            raise inconsistent(
                ": mixing has no effect without triplets in the objectives, and one_per_query belongs beside triplets: "
                "in the model, or in each objective."
            )
        if not with_sets:
            return
        if len(set(with_sets)) < len(given):
            raise inconsistent(
                ".objectives: all of them name triplets, each other ones, or none; of one set, losses are added up."
            )
        shares = [term.weight for term in given if term.weight is not None]
        if shares and not (len(shares) == len(given) and math.isclose(math.fsum(shares), 1, abs_tol=1e-6)):
            raise inconsistent(".objectives: all of them have a weight, and these sum to 1, or none has one.")

    @property
    def tokens_at_once(self) -> int | None:
        """The tokens that are in memory at once; None for all."""
        return self.mini_batch_tokens if isinstance(self.mini_batch_tokens, int) else None

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the examples from the set of each objective; 1 if there is only one set."""
        if not self.sets:
            return (1.0,)
        given = self.objectives or ()
        return tuple(1 / len(given) if term.weight is None else term.weight for term in given)

    @property
    def of_one_per_query(self) -> tuple[bool, ...]:
        """Whether each set gives one example of each query in a round."""
        return tuple(term.one_per_query for term in self.objectives or ()) if self.sets else (self.one_per_query,)

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets of the objectives, in order; empty if they have no sets of their own."""
        return tuple(term.triplets for term in self.objectives or () if term.triplets is not None)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What is computed and added up. Of one set, that is each loss with a weight above 0. Of several sets, it is
        each loss once, over the examples of all objectives that have it."""
        given = self.objectives or (Term.model_construct(loss=self.loss),)
        if not self.sets:
            return tuple(
                Comparison(loss=term.loss, space=term.space, negatives=term.negatives, weight=weight)
                for term in given
                if (weight := 1.0 if term.weight is None else term.weight)
            )
        objectives: dict[tuple[Any, Any, Any], frozenset[int]] = {}
        for number, (term, share) in enumerate(zip(given, self.shares, strict=True)):
            compared = term.loss, term.space, term.negatives
            if share:
                objectives[compared] = objectives.pop(compared, frozenset()) | {number}
        return tuple(
            Comparison(loss=loss, space=space, negatives=negatives, objectives=numbers)
            for (loss, space, negatives), numbers in objectives.items()
        )

    @property
    def teachers(self) -> tuple[str, ...]:
        """The graph embeddings that teach, each once."""
        return tuple(dict.fromkeys(each.loss.teacher for each in self.comparisons if each.loss.teacher is not None))

    @property
    def masked_share(self) -> float | None:
        """The share of tokens to mask; None if no loss masks tokens."""
        return next(filter(None, (each.loss.masked_share for each in self.comparisons)), None)

    @property
    def together(self) -> int:
        """How many triplets of a query stay together in a batch."""
        return max(each.loss.together for each in self.comparisons) if self.block is None else self.block


class Model(TrainingSettings):
    """An encoder that is fine-tuned on a set of triplets or examples, or on several."""

    triplets: Annotated[str | None, Refers("triplets")] = None
    """Name of the set of triplets or examples. Leave it out if each objective has its own."""
    encoder: Annotated[str | None, Refers("encoders")] = None
    """Name of the encoder to start from."""
    from_: Annotated[str | None, Refers("models")] = Field(default=None, alias="from")
    """Name of a model to continue from, in place of an encoder: its weights after the training with the same seed.
    Everything else starts anew, with the settings of this model."""
    seeds: Seeds = (1,)
    """One training for each seed."""
    dimension: Count | None = None
    """Dimensions of its vectors that benchmarks and searches see, the first so many; left out, all. A model that is
    trained with matryoshka loses little by it, and is not trained again."""
    spaces: Spaces = ()
    """Spaces of aspects that benchmarks also score; concatenated has the dimensions of all of them. Scores name the
    model with its space: hybrid_in_result."""
    poolings: Annotated[tuple[Literal[*SIMPLE_POOLINGS], ...], Strict(False), AfterValidator(entries.distinct)] = ()  # type: ignore[valid-type]
    """Further poolings that benchmarks also score, without another training (CoCite, 2024, scores both):
    losses_in_mean."""
    averaged: bool = False
    """Whether to score the mean of its weights over all seeds as a further model (Wortsman et al., 2022):
    hybrid_averaged. It needs no training."""
    processes: Count = 1
    """Processes that share each batch of a training, each on its own GPU if there are any."""
    threads: Count = 1
    """Threads of a training on the CPU. Several trainings side by side with one thread each are faster than one
    after the other with several; another number changes the last digits of the weights."""
    memory_mb: Count | None = None
    """Memory that a training requests, MB. Default: estimated from the sizes of the encoder, the documents and the
    batch. A second attempt requests twice as much."""

    @model_validator(mode="after")
    def _starts_and_learns_from_something(self) -> "Model":
        if (self.encoder is None) == (self.from_ is None):
            raise inconsistent(" starts from one of the two: encoder, or from, another model.")
        if (self.triplets is None) != bool(self.sets):
            raise inconsistent(" learns from one of the two: triplets, or those that each of its objectives names.")
        return self

    @property
    def learns_from(self) -> tuple[str, ...]:
        """The sets of triplets or examples that it learns from, in the order of its objectives."""
        return self.sets if self.triplets is None else (self.triplets,)

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A start that is none or cannot learn, objectives without examples, or spaces that the model does not have."""
        if self.encoder is not None and config.encoders[self.encoder].sentence_wise:
            yield f"{key}.encoder names {self.encoder!r}, which is sentence_wise; no model starts from such an encoder."
        name = key.removeprefix("models.")
        if self.from_ is not None:
            earlier = entries.all_parts(name, lambda each: filter(None, [config.models[each].from_]))
            if name in earlier:
                yield f"{key}.from: a model cannot continue from itself ({' from '.join((name, *earlier))})."
            for seed in set(self.seeds).difference(config.models[self.from_].seeds):
                yield f"{key}.seeds has {seed}, but models.{self.from_}, which it continues, has no such training."
        yield from self._faults_of_objectives(key, config)

    def _faults_of_objectives(self, key: str, config: Whole) -> Iterator[str]:
        """Objectives that their set has nothing for, or spaces that the model does not have."""
        aspects = dict[str, None]()
        for number, term in enumerate(self.objectives or (Term.model_construct(loss=self.loss),)):
            name = term.triplets or self.triplets or ""
            held = list(config.set_with_parts(name).values())
            of_set = dict.fromkeys(aspect for each in held for aspect in each.aspects)
            kinds = dict.fromkeys(kind for each in held for kind in each.kinds)
            at, of = f"{key}.objectives[{number}]" if self.objectives else key, f"triplets.{name}"
            if term.space == "aspects":
                aspects |= of_set
                if not of_set:
                    yield f"{at}.space is aspects, and {of} has none; the sampler aspects gives them."
            if term.loss.needs_negatives and not any(each.has_negatives for each in held):
                yield f"{at}: the loss {term.loss.kind} needs negatives, and {of} has none."
            for kind in term.negatives or ():
                if kind not in kinds:
                    has = ", ".join(kinds) or "no kinds of negatives"
                    yield f"{at}.negatives names {kind!r}, and {of} has {has}."
        encoder = config.base_encoder(key.removeprefix("models."))
        if encoder and config.encoders[encoder].kind == "static":
            given = {"trainable": self.trainable.kind != "all", "loss": self.masked_share, "poolings": self.poolings}
            for name in filter(given.get, given):
                yield f"{key}.{name} does not go with a static encoder: it learns whole and has no order of tokens."
        pooling = config.encoders[encoder].known_pooling if encoder else None
        if self.poolings and encoder and pooling is None:
            yield f"{key}.poolings needs encoders.{encoder}.pooling: which is the encoder's own must be known before."
        if self.poolings and pooling == "sentences":
            yield f"{key}.poolings does not go with an encoder whose pooling is sentences."
        elif pooling in self.poolings:
            yield f"{key}.poolings names {pooling!r}, which is the encoder's own pooling; leave it out."
        known = (*aspects, CONCATENATED) if aspects else ()
        for space in self.spaces:
            if space not in known:
                has = ", ".join(known) or "none; an objective with space: aspects gives them"
                yield f"{key}.spaces names {space!r}, and the model has {has}."
        if self.spaces and self.dimension is not None:
            yield f"{key}.dimension ({self.dimension}) cuts vectors, which have no other spaces then; leave it out."

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """The name of a baseline, or one seed to average over."""
        if self.averaged and len(self.seeds) < 2:
            yield f"{key}.averaged has no effect on one training; name further seeds."
        if key.removeprefix("models.") in config.baselines:
            yield f"{key}: that name is a baseline's; give the model another."
