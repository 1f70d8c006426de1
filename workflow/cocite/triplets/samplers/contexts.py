"""The sampler `contexts`: sentences that cite as queries, with what they cite, in one bucket after another.

A sentence that two papers have is one text. So it is left out if it cites an excluded paper in either of them, and it
is an example of the paper with the smaller id. Memory is needed for the sentences of the query papers of one bucket,
and the ids of all examples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Natural, Whole, inconsistent
from cocite.config.sampler import Sampler
from cocite.config.source import lack_of_contexts

if TYPE_CHECKING:
    import pyarrow as pa

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

TABLE, COLUMNS = "contexts", ("citing", "context", "cited")
OF_KEPT_OUT = "sentences of papers that are kept out, or that cite one"
WITHOUT_TEXT = "sentences that cite no paper with a text"
TOO_FEW = "sentences that cite a paper with a text, but fewer than min_cited"
MORE = "sentences of a paper beyond per_query"
OF_OTHERS = "sentences that a paper with a smaller id has as well"
ROWS_AT_ONCE = 1 << 16


class CitingSentences(Sampler):
    """Context2doc (Parisot and Zavrel, 2022): the query is a sentence that cites, positives are the papers that it
    cites.

    The sentences are those of the query papers, and share their split. Hard negatives are papers that the same paper
    cites in other sentences but not in this one; easy negatives are random papers that it does not cite. Sentences that
    cite an excluded paper, or also occur in one, are not used.
    """

    sampler: Literal["contexts"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True
    numbers_of_kinds = (("elsewhere", "elsewhere"), ("easy", "easy"))
    per_query: Count = 5
    """Largest number of sentences per citing paper, drawn at random."""
    min_cited: Count = 1
    """Papers with a text that a sentence must cite (published: 2)."""
    positives: Count = 5
    """Largest number of positives per example."""
    elsewhere: Natural = 3
    """Largest number of hard negatives per example."""
    easy: Natural = 3
    """Easy negatives of an example. Without any negatives, those of a batch are all there are."""
    paired: bool = False
    """Whether each positive becomes a separate example with one of the negatives: triplets."""
    oversample: bool = False
    """Paired, a sentence with fewer positives than `positives` uses them again."""

    @model_validator(mode="after")
    def _pairs_with_something(self) -> "CitingSentences":
        if self.paired and not self.kinds:
            raise inconsistent(".paired needs negatives to pair positives with: elsewhere or easy.")
        if self.oversample and not self.paired:
            raise inconsistent(".oversample has no effect where positives are not paired with negatives.")
        return self

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Sentences that are not ingested."""
        yield from lack_of_contexts(f"{key}.sampler", self.sampler, config)

    def sources(self, name: str, plan: Any) -> list[str]:
        """The sentences that cite."""
        return list(plan.buckets("<results>/corpus/contexts/{bucket}.parquet"))

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `contexts`."""
        from dataclasses import replace

        import numpy as np
        import pyarrow as pa

        from cocite.triplets.pairing import examples_table, gathered, paired, unserved
        from cocite.triplets.sampled import Sampled

        forbidden, found = _sentences_of_kept_out(block), []
        counts = dict.fromkeys((OF_KEPT_OUT, WITHOUT_TEXT, TOO_FEW, MORE, OF_OTHERS), 0)
        has_sentence, is_served = np.zeros((2, len(block.queries)), dtype=bool)
        for path in block.files(TABLE):
            sentences = _of_queries(block, path)
            has_sentence[np.searchsorted(block.queries, sentences["citing"].to_numpy())] = True
            found.append(self._examples(block, sentences, forbidden, counts))
        context, citing, positives, *negatives = map(np.concatenate, zip(*found, strict=True))
        order = np.lexsort((citing, context))
        order = order[np.diff(context[order], prepend=0) != 0]
        counts[OF_OTHERS] = len(context) - len(order)
        places = np.searchsorted(block.queries, citing[order])
        is_served[places] = True
        of_texts = replace(block, queries=context[order], splits=block.splits.take(pa.array(places)))
        rows = gathered(np.arange(len(order)), positives[order], [papers[order] for papers in negatives])
        if self.paired:
            rows = paired(of_texts, rows, context[order], oversampled=self.positives if self.oversample else 0)
        reasons = [("no sentence that cites", ~has_sentence), ("no sentence that can be used", ~is_served)]
        return Sampled(
            rows=examples_table(of_texts, rows, ("elsewhere", "easy")),
            texts=_texts(block, of_texts.queries),
            omissions={**unserved("sampled_examples", ~is_served, reasons), **counts},
        )

    def _examples(
        self, block: "Block", sentences: "pa.Table", forbidden: "Ids", counts: dict[str, int]
    ) -> tuple["Ids", "Ids", "Ids", "Ids", "Ids"]:
        """The chosen sentences, their papers, positives, and negatives cited elsewhere and easy, examples × places."""
        from dataclasses import replace

        import numpy as np
        import pyarrow.compute as pc

        from cocite.core.id_sets import are_in
        from cocite.core.randomness import priorities
        from cocite.core.written_ids import look_up
        from cocite.triplets.pairing import first_drawn
        from cocite.triplets.picking import draw, offer_cited, picks
        from cocite.triplets.sampled import first_of_groups

        citing, context = (sentences[name].to_numpy() for name in ("citing", "context"))
        lists = sentences["cited"].combine_chunks()
        of_sentence, written = pc.list_parent_indices(lists).to_numpy(), lists.flatten().to_numpy()
        cited = block.twins.works_of(written)
        # Several records of a work are one paper, and a paper does not cite itself by its twin.
        is_other = (cited == written) | (cited != citing[of_sentence])
        of_sentence, cited = np.unique(np.stack([of_sentence, cited])[:, is_other], axis=1)
        sizes = np.bincount(of_sentence, minlength=len(citing))
        with_text = of_sentence[are_in(block.papers, cited)]
        usable_cited = np.bincount(with_text, minlength=len(citing))
        is_out = look_up(forbidden, context)[1]
        usable = np.flatnonzero(~is_out & (usable_cited >= self.min_cited))
        drawn = priorities(block.seed, "sentences", citing[usable], context[usable])
        chosen = usable[first_of_groups(citing[usable], drawn, self.per_query)]
        counts[OF_KEPT_OUT] += int(np.count_nonzero(is_out))
        counts[WITHOUT_TEXT] += int(np.count_nonzero(~is_out & (usable_cited == 0)))
        counts[TOO_FEW] += int(np.count_nonzero(~is_out & (usable_cited > 0) & (usable_cited < self.min_cited)))
        counts[MORE] += len(usable) - len(chosen)
        # Start and end of the papers that each chosen sentence cites, and of those that its paper cites.
        of_paper = (np.searchsorted(citing, citing[chosen], side) for side in ("left", "right"))
        starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        bounds = np.stack([starts[rows] for rows in (chosen, chosen + 1, *of_paper)], axis=1)
        citing, context = citing[chosen], context[chosen]
        positives = picks(len(chosen), self.positives, block.seed, "positives")
        elsewhere = picks(len(chosen), self.elsewhere, block.seed, "papers cited elsewhere")
        easy = draw(replace(block, queries=context), self.easy, "easy negatives")
        offer_cited(positives, elsewhere, easy, (context, citing), cited, bounds, block.papers)
        random = first_drawn(easy, np.full(len(chosen), self.easy)).reshape(len(chosen), self.easy)
        return context, citing, positives.papers, elsewhere.papers, random


def _sentences_of_kept_out(block: "Block") -> "Ids":
    """The sentences of papers that are kept out, and those that cite one, by their ids, rising."""
    import pyarrow.compute as pc

    from cocite.core.id_sets import NO_IDS, are_in, check_ids, set_of
    from cocite.core.tables.files import open_table
    from cocite.core.written_ids import distinct

    kept_out, found = set_of(block.kept_out), [NO_IDS]
    read = (
        (path, batch)
        for path in block.files(TABLE)
        for batch in open_table(path, TABLE).iter_batches(ROWS_AT_ONCE, columns=COLUMNS)
    )
    for path, batch in read:
        check_ids(batch["citing"].to_numpy(), path)
        is_out = are_in(kept_out, batch["citing"].to_numpy())
        is_cited_out = are_in(kept_out, batch["cited"].flatten().to_numpy())
        is_out[pc.list_parent_indices(batch["cited"]).to_numpy()[is_cited_out]] = True
        found.append(batch["context"].to_numpy()[is_out])
    return distinct(*found)


def _of_queries(block: "Block", path: Path) -> "pa.Table":
    """The sentences of a bucket whose papers are queries, in the order of their papers."""
    import pyarrow as pa

    from cocite.core.tables.files import open_table
    from cocite.core.written_ids import look_up

    with open_table(path, TABLE) as file:
        schema = pa.schema([file.schema_arrow.field(name) for name in COLUMNS])
        batches = file.iter_batches(ROWS_AT_ONCE, columns=COLUMNS)
        ours = [batch.filter(pa.array(look_up(block.queries, batch["citing"].to_numpy())[1])) for batch in batches]
        return pa.Table.from_batches([batch.cast(schema) for batch in ours], schema)


def _texts(block: "Block", chosen: "Ids") -> Iterator["pa.RecordBatch"]:
    """The rows of `sampled_texts`: the sentences that were chosen."""
    import pyarrow as pa

    from cocite.core.written_ids import look_up

    for batch in block.read(TABLE, ["context", "sentence"], rows=ROWS_AT_ONCE):
        ours = batch.filter(pa.array(look_up(chosen, batch["context"].to_numpy())[1]))
        columns = [*ours.columns, pa.nulls(len(ours), pa.string()), pa.repeat(True, len(ours))]
        yield pa.record_batch(columns, ["text", "title", "abstract", "is_query"])
