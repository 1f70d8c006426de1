"""Samplers that draw from nothing but the papers with a text: `random`, `cropping` and `titles`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Natural, inconsistent
from cocite.config.sampler import Pairing, Sampler

if TYPE_CHECKING:
    import pyarrow as pa

    from cocite.core.written_ids import Ids
    from cocite.triplets.sampled import Block, Sampled

TITLED = ("corpusid", "title", "abstract")


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

        from cocite.core.written_ids import look_up, text_ids
        from cocite.triplets.sampled import TRAINING, VALIDATION, Sampled, as_lists, each_once

        titles_kept_out, lacking, kept_out, found = block.titles_kept_out(), 0, 0, []
        for ids, titles, abstracts in _with_text(block):
            has_both = [bool(title) and bool(abstract) for title, abstract in zip(titles, abstracts, strict=True)]
            is_new = np.array([title not in titles_kept_out for title in titles], np.bool_)
            usable = np.flatnonzero(np.array(has_both, np.bool_) & is_new)
            lacking, kept_out = lacking + has_both.count(False), kept_out + int(np.count_nonzero(~is_new))
            chosen = [titles[row] for row in usable], [abstracts[row] for row in usable]
            nothing = [None] * len(usable)
            queries, documents = (
                text_ids(chosen[0], nothing, is_query=True),
                text_ids(nothing, chosen[1], is_query=False),
            )
            found.append(np.stack([ids[usable], queries, documents]))
        papers, queries, documents = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
        _, first, counts = np.unique(queries, return_index=True, return_counts=True)
        first = first[counts == 1]
        papers, queries, documents = papers[first], queries[first], documents[first]
        validates = look_up(block.validation, papers)[1]
        columns = {
            "number": np.ones(len(first), np.int32),
            "split": pa.array(np.where(validates, VALIDATION, TRAINING), pa.string()),
            "positives": as_lists(documents, np.ones(len(first), int)),
            "negatives": as_lists(documents[:0], np.zeros(len(first), int)),
        }
        omissions = {
            "papers without a title or an abstract": lacking,
            "papers with the title of one that is kept out": kept_out,
            "papers with a title that others have": int(counts[counts > 1].sum()),
        }
        return Sampled(
            rows=each_once(pa.table({"query": queries, **columns})), texts=_both(block, papers), omissions=omissions
        )


def _with_text(block: "Block") -> Iterator[tuple["Ids", list[str | None], list[str | None]]]:
    """The papers with a text that are not kept out: ids, titles and abstracts, some at a time."""
    import pyarrow as pa

    from cocite.core.id_sets import are_in

    for batch in block.read("papers", TITLED):
        some = batch.filter(pa.array(are_in(block.papers, batch["corpusid"].to_numpy())))
        yield some["corpusid"].to_numpy(), some["title"].to_pylist(), some["abstract"].to_pylist()


def _both(block: "Block", papers: "Ids") -> Iterator["pa.RecordBatch"]:
    """The titles of some papers as queries, and their abstracts as documents: rows of `sampled_texts`."""
    import numpy as np
    import pyarrow as pa

    from cocite.core.written_ids import text_ids

    for ids, titles, abstracts in _with_text(block):
        rows = np.flatnonzero(np.isin(ids, papers))
        for is_query, texts in ((True, titles), (False, abstracts)):
            chosen, nothing = [texts[row] for row in rows], [None] * len(rows)
            title, abstract = (chosen, nothing) if is_query else (nothing, chosen)
            columns = {
                "text": text_ids(title, abstract, is_query=is_query),
                "title": pa.array(title, pa.string()),
                "abstract": pa.array(abstract, pa.string()),
                "is_query": pa.repeat(is_query, len(rows)),
            }
            yield pa.RecordBatch.from_pydict(columns)
