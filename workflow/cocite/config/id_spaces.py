"""Whose ids papers and documents have, and what shows which document of a benchmark is which paper of the corpus.

A number says which paper is meant only among ids of the same origin: paper 5 of OpenAlex is not paper 5 of Semantic
Scholar. What keeps documents of a benchmark out, or looks for them, asks here before it compares ids.
"""

from typing import Literal

IdSpace = Literal["s2", "openalex", "own"]
"""Semantic Scholar's corpus ids, the numbers of OpenAlex's works, or ids that whoever made the corpus gave."""
DocumentIds = Literal["s2", "openalex", "corpus", "own"]
"""The same, or those of the corpus, whatever these are."""
Link = Literal["ids", "hashes", "matches", "nothing"]
"""How documents are known to be papers of the corpus: by their ids; by their ids and, if they have hashes for ids, by
these, DOI or title; by the table matches, with hashes likewise; or not at all."""
OWNERS = {"s2": "Semantic Scholar's", "openalex": "OpenAlex's", "own": "their own"}
"""Whose ids they are, in words."""


def link_between(documents: DocumentIds, corpus: IdSpace, *, has_match: bool, has_hashes: bool = False) -> Link:
    """How documents with some ids are known to be papers of a corpus with others.

    Ids that somebody gave are nobody else's, so those of a benchmark and those of a corpus are not the same ones.
    `has_hashes` says that documents may have Semantic Scholar's hashes in place of its corpus ids.
    """
    if has_hashes and documents == corpus == "s2":
        return "hashes"
    if documents == "corpus" or documents == corpus != "own":
        return "ids"
    return "matches" if documents == "s2" and has_match else "nothing"
