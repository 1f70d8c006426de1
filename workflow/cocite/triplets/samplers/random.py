"""Samplers that draw from nothing but the papers with a text: `random`, `cropping` and `titles`."""

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Natural, inconsistent
from cocite.config.sampler import Pairing, Sampler

if TYPE_CHECKING:
    import pyarrow as pa

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

LACKING, KEPT_OUT = "papers without a title or an abstract", "papers with the title of one that is kept out"


class RandomPapers(Pairing):
    """Random papers as positives and as negatives: what training makes of triplets that know nothing."""

    sampler: Literal["random"]

    @model_validator(mode="after")
    def _draws_texts_only(self) -> "RandomPapers":
        if self.text_filter == "after":
            raise inconsistent(".text_filter has no effect: all papers that are drawn have a text.")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """Sample from nothing but the papers with a text."""
        import numpy as np

        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw, drawn, picks

        papers = draw(block, 2 * self.per_query, "random papers", spare=0).papers
        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        # By turns, so that neither takes all if there are few papers.
        positives.papers[:] = papers[:, ::2]
        easy = drawn(np.ascontiguousarray(papers[:, 1::2]))
        return pair(block, self, positives, easy)


class CroppedPapers(Sampler):
    """Independent cropping (Izacard et al., 2022): two spans of a paper's text are near, spans of other papers are far.

    No citation is needed. A training draws the spans again for each epoch, from the seed, the epoch and the paper; the
    two of a paper are drawn by themselves, and may overlap. First the length of a span is drawn, evenly, and then where
    it starts.
    """

    gives = "sampled_examples"
    numbers_of_kinds = (("easy", "negatives"),)
    sampler: Literal["cropping"]
    shortest: Count = 10
    """Smallest length of a span in tokens; a shorter paper is used whole."""
    longest: Count | None = None
    """Largest length of a span in tokens. Default: the length of the text."""
    negatives: Natural = 1
    """Random papers of whose texts spans are negatives. With 0, a loss has only the other papers of a batch."""

    @property
    def has_negatives(self) -> bool:
        """Whether it uses some."""
        return self.negatives > 0

    @model_validator(mode="after")
    def _spans_have_a_length(self) -> "CroppedPapers":
        if self.longest is not None and self.longest < self.shortest:
            raise inconsistent(f".longest ({self.longest}) must not be below shortest ({self.shortest}).")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """An example of each query that has a text, from nothing but the papers with a text."""
        import numpy as np
        import pyarrow as pa

        from cocite.core.id_sets import are_in
        from cocite.triplets.pairing import examples_table, gathered
        from cocite.triplets.picking import draw
        from cocite.triplets.sampled import UNSERVED, Sampled

        places = np.flatnonzero(are_in(block.papers, block.queries))
        drawn = draw(block, self.negatives, "easy negatives", spare=0).papers[places]
        rows = examples_table(block, gathered(places, block.queries[places, None], [drawn]), ("easy",))
        for name, length in (("shortest_span", self.shortest), ("longest_span", self.longest)):
            # These tell a training to draw spans.
            rows = rows.append_column(name, pa.array([length] * len(rows), pa.int32()))
        omissions = {f"{UNSERVED['sampled_examples']}: no text": len(block.queries) - len(rows)}
        return Sampled(rows=rows, omissions=omissions)


class TitlesOfAbstracts(Sampler):
    """The title of each paper, as a short query, is to find its abstract. No citation is needed, and all papers count
    that have both and are not excluded, not only those of `queries.count`.

    A title that several papers have, or that an excluded paper has too, is left out. Those of validation queries
    validate.
    """

    sampler: Literal["titles"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True

    @property
    def has_negatives(self) -> bool:
        """None: those of a batch are all there are."""
        return False

    def sources(self, name: str, plan: Any) -> list[str]:
        """All papers."""
        return list(plan.corpus.papers())

    def sample(self, block: "Block") -> "Sampled":
        """An example of each paper with a title of its own and an abstract. Memory is needed for their ids."""
        import numpy as np
        import pyarrow as pa

        from cocite.core.written_ids import look_up, text_id
        from cocite.triplets.sampled import TRAINING, VALIDATION, Sampled, as_lists, documents_of, each_once

        titles_kept_out, found, omissions = block.titles_kept_out(), array("q"), dict.fromkeys((LACKING, KEPT_OUT), 0)
        for paper, title, abstract in (row for some in _with_text(block) for row in zip(*some, strict=True)):
            if not (title and abstract) or title in titles_kept_out:
                omissions[KEPT_OUT if title and abstract else LACKING] += 1
            else:
                query, document = text_id(title, None, is_query=True), text_id(None, abstract, is_query=False)
                found.extend((paper, query, document))
        rows = np.array(found).reshape(-1, 3)
        _, first, counts = np.unique(rows[:, 1], return_index=True, return_counts=True)
        omissions["papers with a title that others have"] = int(counts[counts > 1].sum())
        papers, queries, documents = rows[first[counts == 1]].T
        columns = {
            "query": queries,
            "number": np.ones(len(papers), np.int32),
            "split": pa.array(np.where(look_up(block.validation, papers)[1], VALIDATION, TRAINING), pa.string()),
            "positives": as_lists(documents, np.ones(len(papers), int)),
            "negatives": as_lists(documents[:0], np.zeros(len(papers), int)),
        }
        examples = each_once(pa.table(columns))
        return Sampled(rows=examples, texts=_texts(block, documents_of(examples)), omissions=omissions)


def _with_text(block: "Block") -> Iterator[tuple["Ids", list[str | None], list[str | None]]]:
    """The papers with a text that are not kept out: ids, titles and abstracts, some at a time."""
    import pyarrow as pa

    from cocite.core.id_sets import are_in

    for batch in block.read("papers", ("corpusid", "title", "abstract")):
        some = batch.filter(pa.array(are_in(block.papers, batch["corpusid"].to_numpy())))
        yield some["corpusid"].to_numpy(), some["title"].to_pylist(), some["abstract"].to_pylist()


def _texts(block: "Block", named: "Ids") -> Iterator["pa.RecordBatch"]:
    """The titles and the abstracts that examples name: rows of `sampled_texts`."""
    from cocite.triplets.texts import texts_table

    for _, titles, abstracts in _with_text(block):
        nothing = [None] * len(titles)
        yield from texts_table(titles, nothing, is_query=True, among=named).to_batches()
        yield from texts_table(nothing, abstracts, is_query=False, among=named).to_batches()
